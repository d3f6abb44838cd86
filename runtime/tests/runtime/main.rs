//! The runtime as a program uses it. One test program: each would link all of the engines.

mod cache;
mod checks;
mod compiling;
mod errors;
mod faults;
mod launch;
mod lockstep;
mod memory;
mod printing;
mod proven;
mod services;
mod streams;
