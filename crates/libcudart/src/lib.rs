//! The CUDA runtime library: what programs built by nvcc call.
//!
//! It is a client of the driver library and keeps no device state of its own: contexts, streams, events, memory and modules are the driver's, so a
//! program may mix the two interfaces. What is here: the fat binaries, functions and variables that a program registers before `main`
//! (`registry`), the launch syntax (`launch`), the current device of a thread and its primary context (`device`), and the last error of
//! a thread (`error`).
//!
//! Two libraries are made of it, `libcudart.so.13` and `libcudart.so.12`. Where they have one name with two signatures, both stand here as
//! `handloom_13_NAME` and `handloom_12_NAME`, and the linker gives them the name (`names`).
//!
//! Sections of the runtime API's documentation are named by their titles.

#[macro_use]
mod call;

mod array;
mod cu;
mod device;
mod error;
mod event;
mod function;
mod graph;
mod launch;
mod library;
mod many;
mod memory;
mod memory_pool;
mod names;
mod node;
mod properties;
mod registry;
mod stream;
mod symbol;
mod types;
