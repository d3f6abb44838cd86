//! The checker over small modules.

mod calls;
mod common;
mod layout;
mod link;
mod names;
mod operands;
mod tables;
