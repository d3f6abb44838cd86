//! Lowering and the passes over small shapes and over random functions.

mod common;
mod lower;
mod passes;
mod random;
mod reads;
