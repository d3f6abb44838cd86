//! The driver: what a process, its devices, contexts, streams, modules and graphs are to a program that uses the CUDA driver API.
//!
//! Takes: numbers that a program passes (handles, addresses, sizes) and a way to reach its memory. Gives: results as [`Code`]s, effects on devices.
//! Does not know: how C passes arguments (that is `libcuda`), how a kernel runs (`runtime`), what an image is made of (`images`).
//!
//! Invariants: no handle and no address is followed before it was looked up; what is wrong is a [`Code`] and changes nothing; a kernel that faults
//! ends its context and no other; all is safe to call from any thread. Text for the user goes to standard error, what kernels print to standard
//! output when a call waits for work.
//!
//! How to read it: [`process`](mod@process) is the state of the process, [`table`] what handles are, [`code`] the results, [`config`] the settings. [`gpu`] and
//! [`context`] are what work belongs to, [`stream`], [`event`] and [`work`] when it is done, [`memory`], [`virtual_memory`], [`ipc`], [`pool`], [`hints`], [`batch`], [`copy`], [`array`](mod@array), [`texture`] and [`reference`](mod@reference)
//! what it is done to,
//! [`image`], [`module`], [`link`] and [`jit`] where kernels come from, [`launch`] how their parameters arrive, [`graph`], [`condition`] and [`capture`] work that
//! is described first and done later, [`checked`] what checks of launches find, [`caller`] where the program made a call, [`counted`] what is counted and traced.

#![forbid(unsafe_code)]

pub mod array;
pub mod batch;
pub mod caller;
pub mod capture;
pub mod checked;
pub mod code;
pub mod condition;
pub mod config;
pub mod context;
pub mod copy;
pub mod counted;
pub mod event;
pub mod gpu;
pub mod graph;
pub mod hints;
pub mod host;
pub mod image;
pub mod ipc;
pub mod jit;
pub mod launch;
pub mod link;
pub mod memory;
pub mod module;
pub mod partial;
pub mod pool;
pub mod printed;
pub mod process;
pub mod reach;
pub mod reference;
pub mod shared_event;
pub mod stream;
pub mod table;
pub mod texture;
pub mod user_object;
pub mod virtual_memory;
pub mod work;

pub use code::{Code, Result};
/// Tensor maps, which the interface encodes.
pub use handloom_ir::tensor_map;
pub use host::HostMemory;
pub use process::{init, process};
