//! The results of the driver API: which of them an error of the runtime is.

/// A result of the driver API.
pub use handloom_diag::DriverError as Code;

/// What a call returns.
pub type Result<T = ()> = std::result::Result<T, Code>;
