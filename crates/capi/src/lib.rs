//! `libhandloom`: Handloom for programs in C and C++, and for all that can call C.
//!
//! Takes: calls by `include/handloom.h`, which `ci/capi --header` makes from this crate. Returns: a [`Status`](status::Status), and what was asked for through pointers.
//! Does not know: the CUDA interfaces (those are `libcuda`), what PTX means.
//!
//! The model: what a program holds are *handles*, numbers that stand for objects of a table. None is used twice, so a handle of something that has ended, of
//! another kind, or made up is an error and never memory that is read. What a handle stands for lives as long as a call uses it, also when another thread releases it
//! meanwhile.
//!
//! Invariants:
//! - no panic leaves an exported function: it becomes [`Bug`](status::Status::Bug);
//! - pointers are read and written in `pointer` alone, on the promise of whoever calls, and nothing is kept of them but memory that a launch was lent;
//! - any thread may call any function at any time; the last error is that of the calling thread.
//!
//! How to read it: [`status`] what calls return and what is said of errors, `pointer` what pointers are, `handle` the tables, then a file for each kind of object:
//! [`device`], [`module`], [`memory`], [`launch`], [`stop`], [`stream`], [`report`]; [`run`] is the smallest door.

pub mod device;
mod handle;
pub mod launch;
pub mod memory;
pub mod module;
mod pointer;
pub mod report;
pub mod run;
pub mod status;
pub mod stop;
pub mod stream;
