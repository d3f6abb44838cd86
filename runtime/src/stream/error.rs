//! Why work of a stream was not done.

use std::fmt;
use std::sync::Arc;

use handloom_diag::DriverError;
use handloom_ir::trap::TrapKind;

use crate::error::{ErrorKind, Lack};
use crate::launch::LaunchError;
use crate::memory::MemoryError;

/// Why work was not taken, or failed later.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StreamError {
    /// A launch is wrong, or did not come to its end.
    Launch(Arc<LaunchError>),
    /// Memory that work names is not there.
    Memory(MemoryError),
    /// A function of the host panicked: the text of the panic.
    HostFunction(String),
    /// An event whose work has not ended.
    NotReady,
    /// A wait for work that has not ended, by a function that a stream calls, or when the process ends and has waited in vain.
    MayNotWait,
    /// An event that was not recorded, or that keeps no time.
    NoTime,
    /// An event of another context.
    OtherContext,
    /// What the stream waits for will never be.
    Silence,
    /// There is no room for the stream.
    NoRoom(Lack),
}

impl StreamError {
    /// What sort of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            StreamError::Launch(e) => e.kind(),
            StreamError::Memory(e) => e.kind(),
            StreamError::HostFunction(_) => ErrorKind::HostFunction,
            StreamError::NotReady => ErrorKind::NotReady,
            StreamError::MayNotWait => ErrorKind::NotPermitted,
            StreamError::NoTime | StreamError::OtherContext => ErrorKind::InvalidHandle,
            StreamError::Silence => ErrorKind::Trap(TrapKind::Deadlock),
            StreamError::NoRoom(_) => ErrorKind::OutOfMemory,
        }
    }
}

impl From<&StreamError> for DriverError {
    fn from(e: &StreamError) -> DriverError {
        e.kind().into()
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Launch(e) => e.fmt(f),
            StreamError::Memory(e) => e.fmt(f),
            StreamError::HostFunction(text) => write!(f, "a function of the host panicked: {text}"),
            StreamError::NotReady => f.write_str("the work before the event has not ended"),
            StreamError::MayNotWait => {
                f.write_str("a function that a stream calls, or a process that ends, may not wait for work")
            }
            StreamError::NoTime => f.write_str("the event was not recorded, or keeps no time"),
            StreamError::OtherContext => f.write_str("the event belongs to another context"),
            StreamError::Silence => f.write_str("deadlock: nothing will ever change what the stream waits for"),
            StreamError::NoRoom(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for StreamError {}

impl From<LaunchError> for StreamError {
    fn from(e: LaunchError) -> StreamError {
        StreamError::Launch(Arc::new(e))
    }
}

impl From<MemoryError> for StreamError {
    fn from(e: MemoryError) -> StreamError {
        StreamError::Memory(e)
    }
}

impl From<Lack> for StreamError {
    fn from(e: Lack) -> StreamError {
        StreamError::NoRoom(e)
    }
}
