//! Bytes that are kept from one process to the next, by key, in a folder of the user.
//!
//! Takes: a key (a [`Digest`] of all that the bytes depend on) and bytes. Returns: the bytes that a process of the same build kept under that key, or nothing.
//! Does not know: what the bytes are.
//!
//! How to read it: [`digest`](Digest) makes keys, `build` tells which build of the program this is, `folder` is the files.
//!
//! Invariants: what cannot be read, is not the user's own, or differs in one bit from what was written is not there; nothing here is an error of
//! anybody's program; a folder holds no more than its limit, and what was not used for longest goes first.
#![forbid(unsafe_code)]

mod build;
mod digest;
mod folder;

pub use build::build;
pub use digest::{Digest, Digester};
pub use folder::{LIMIT, Store, user_folder};
