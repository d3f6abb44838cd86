//! The second engine: the reference executor on the same memory.

pub(crate) mod interp;
