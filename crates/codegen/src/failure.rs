//! Why a function has no code.

use std::fmt;

use cranelift_codegen::CodegenError;

/// Why there is no code, or none that does what it must.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// This host lacks what code needs.
    Unsupported(String),
    /// The function or its code is larger than the compiler or the host allows.
    Limit(String),
    /// A fault of ours.
    Bug(String),
}

impl Failure {
    /// The sentence.
    pub fn text(&self) -> &str {
        match self {
            Failure::Unsupported(text) | Failure::Limit(text) | Failure::Bug(text) => text,
        }
    }

    /// What Cranelift refused in the function `name`; `clif` is asked for the function as text where that helps.
    pub fn of(name: &str, error: &CodegenError, clif: impl FnOnce() -> String) -> Failure {
        match error {
            CodegenError::CodeTooLarge | CodegenError::ImplLimitExceeded => {
                Failure::Limit(format!("`{name}` is too large to compile: {error}"))
            }
            CodegenError::Unsupported(_)
            | CodegenError::Verifier(_)
            | CodegenError::RegisterMappingError(_)
            | CodegenError::Regalloc(_) => Failure::Bug(format!("codegen: {error:?}\n{}", clif())),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Failure {}
