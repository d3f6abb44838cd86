//! Control Flow Instructions.

use crate::form::Form;

pub mod bra;
pub mod brx_idx;
pub mod call;
pub mod exit;
pub mod ret;

/// Records of this chapter.
pub const FORMS: &[&Form] = &[&bra::BRA, &brx_idx::BRX_IDX, &call::CALL, &ret::RET, &exit::EXIT];
