//! Who works while a launch runs.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Who works while a launch runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beside {
    /// Nobody.
    Nobody,
    /// The host, which may read and write memory that it shares with the device.
    Host,
    /// Streams, with launches, copies and fills of their own.
    Streams,
}

/// Streams of the process.
static STREAMS: AtomicUsize = AtomicUsize::new(0);

impl Beside {
    /// Beside a launch of a stream: others if there are other streams, whoever's they are.
    pub(crate) fn stream() -> Beside {
        if STREAMS.load(Ordering::SeqCst) > 1 { Beside::Streams } else { Beside::Host }
    }
}

/// A stream, as long as it lives.
#[derive(Debug)]
pub(crate) struct OfStream;

impl OfStream {
    /// It begins.
    pub(crate) fn begin() -> OfStream {
        STREAMS.fetch_add(1, Ordering::SeqCst);
        OfStream
    }
}

impl Drop for OfStream {
    fn drop(&mut self) {
        STREAMS.fetch_sub(1, Ordering::SeqCst);
    }
}
