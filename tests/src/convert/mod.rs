//! An opinion of its own about `cvt`: which forms there are, what each gives, and a way to ask both engines about many values at once.
//!
//! Takes: the rules of the manual, written again. Gives: forms with their text, the bits that a form must give, the bits that it gives.
//! Does not know: how Handloom computes any of it. Nothing here calls `handloom_ir::num`.
//!
//! The model: [`exact`] holds numbers as exact binary magnitudes. A rounding is found by *searching* the codes of a format for the two
//! neighbours of a number and comparing with the middle between them, which is a different algorithm from shifting and adding.
//! [`forms`] lists every legal combination of types and modifiers, [`oracle`] what each gives, [`inputs`] the values worth asking about,
//! [`bulk`] makes kernels of forms and runs them.
//!
//! # PTX ISA
//! Data Movement and Conversion Instructions: cvt; Alternate Floating-Point Data Formats; Operand Size Exceeding Instruction-Type Size.

pub mod bulk;
pub mod exact;
pub mod forms;
pub mod inputs;
pub mod oracle;
