//! Stack Manipulation Instructions.

use crate::form::Form;

pub mod alloca;

/// Records of this chapter.
pub const FORMS: &[&Form] = &[&alloca::ALLOCA, &alloca::STACKSAVE, &alloca::STACKRESTORE];
