//! Work that is done later: contexts, streams and events.
//!
//! A stream has a queue and a thread. What it is given is done in order; streams keep no order among each other but what events and the default
//! stream bring. `queue` is that without a device, `stream` what can be given, `event` points to wait for, `history` what of a checked
//! program touched the same memory without order, `parts` which parts of a graph come before which there, and `context` what streams share.
//!
//! Errors are those of the CUDA driver interface: what is wrong with a request is its own error, what fails later ends all work of the
//! context, and every later call returns it.
//!
//! Choice: the interpreter's atomics are plain reads and writes, so launches that run beside each other on the interpreter are not atomic to
//! each other; compiled code's are.

mod context;
mod error;
mod event;
#[cfg(test)]
mod floats;
mod history;
mod parts;
mod queue;
#[expect(clippy::module_inception, reason = "it is what the folder is named after")]
mod stream;

pub use context::{Context, give_up_waiting, may_wait};
pub use error::StreamError;
pub use event::Event;
pub use stream::{InParts, Mark, Pending, Stream};
