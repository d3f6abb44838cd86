//! Handloom.
fn main() {}
