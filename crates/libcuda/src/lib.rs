//! `libcuda.so.1`: the CUDA driver API over Handloom's driver.
//!
//! Takes: calls of a C interface. Gives: their results. Every documented name is exported; `api/driver.txt` says which of them work, and the others
//! return `CUDA_ERROR_NOT_SUPPORTED`.
//! Does not know: what a call means (that is `driver`), only how its arguments arrive.
//!
//! Invariants: no panic leaves an exported function; nothing is kept of a pointer but its address.
//!
//! How to read it: [`table`] is the table of names with the exported functions, which `build.rs` writes, `call` what each of them does around
//! its work, [`ptr`] what pointers are, [`abi`] the structures. The other files are the work, a file a chapter of the documentation.
//!
//! The static library becomes the shared one by `ci/libraries`.

pub mod abi;
mod arrays;
mod batches;
mod call;
mod contexts;
mod copies;
mod devices;
mod events;
mod execution;
mod graphs;
mod initialization;
mod libraries;
mod links;
mod many;
mod memories;
mod modules;
mod nodes;
mod occupancy;
mod peers;
mod pointers;
mod pools;
pub mod ptr;
mod references;
mod streams;
pub mod table;
mod tensor_maps;
mod user_objects;
mod virtual_memory;

/// `CUDA_VERSION` of the interface: 13.5.
pub const VERSION: i32 = 13050;
