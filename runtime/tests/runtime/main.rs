//! The runtime as a program uses it. One test program: each would link all of the engines.

mod cache;
mod checks;
mod compiling;
mod errors;
mod far;
mod faults;
mod launch;
mod lockstep;
mod memory;
mod printing;
mod proven;
mod rising;
mod services;
mod special;
mod streams;

/// How texts begin that any device of today can run.
const SM_80: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// How texts begin that want clusters.
const SM_90: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";
