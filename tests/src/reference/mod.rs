//! Independent references for kernels: what real kernels must compute, written on the host.
//!
//! Takes: inputs. Gives: the outputs that a kernel's source asks for, and comparisons that say where two results differ.
//! Does not know: PTX, or how Handloom computes anything; a launch goes through the public interface of the runtime.
//!
//! How to read it: `run` says how a kernel is launched in every way that must give the same result, `data` makes inputs and compares
//! outputs, `functions`, `numeric`, `paths`, `small_floats` and `threefry` are the mathematics, and the modules with names of compilers know the kernels of
//! `kernels/corpus` and how they take their parameters.

pub mod data;
pub mod functions;
pub mod numba;
pub mod numeric;
pub mod nvrtc;
pub mod order;
pub mod paths;
pub mod pictures;
pub mod products;
pub mod run;
pub mod small_floats;
pub mod threefry;
pub mod tinygrad;
pub mod triton;
pub mod video;
