//! The parser: trees, errors compared whole, and texts that are no PTX.

mod common;
mod errors;
mod robust;
mod tree;
