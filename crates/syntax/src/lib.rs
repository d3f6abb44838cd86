//! From text to a syntax tree and back.
//!
//! Takes: text. Gives: [`Parse`] with a tree and all syntax errors; printing a tree and parsing it again gives the same tree.
//! Does not know: which opcodes exist, what a type means, targets, versions. An unknown opcode parses.
//!
//! Invariants: parsing never fails and never panics, takes linear time, and does not recurse deeper than a fixed limit.

#![forbid(unsafe_code)]

pub mod ast;
mod lexer;
mod literal;
mod parser;
mod print;

pub use parser::{Parse, decode, parse};
pub use print::{print, same};
