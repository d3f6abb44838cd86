//! Points in streams that can be waited for.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use super::context::{Place, Shared};
use super::error::StreamError;
use crate::lock::lock;
use crate::run::asked;

/// A point in a stream, once it was recorded there. A new recording takes the place of the one before; who waits for that goes on waiting for it.
#[derive(Debug)]
pub struct Event {
    pub(super) shared: Arc<Shared>,
    keeps_time: bool,
    pub(super) recorded: Mutex<Option<Recorded>>,
}

/// Where an event was recorded.
pub(super) struct Recorded {
    pub(super) place: Place,
    /// When the work before it had ended.
    pub(super) time: Arc<OnceLock<Instant>>,
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorded").field("time", &self.time).finish_non_exhaustive()
    }
}

impl Event {
    pub(super) fn new(shared: Arc<Shared>, keeps_time: bool) -> Event {
        Event { shared, keeps_time, recorded: Mutex::new(None) }
    }

    /// What was recorded last.
    pub(super) fn place(&self) -> Option<Place> {
        lock(&self.recorded).as_ref().map(|r| r.place.clone())
    }

    /// Whether the work before the point where it was recorded has ended; one that was not recorded stands for no work.
    ///
    /// # Errors
    /// Work of the context has failed.
    pub fn is_done(&self) -> Result<bool, StreamError> {
        let place = self.place();
        let is_done = place.as_ref().is_none_or(Place::ask);
        if is_done {
            self.shared.waited(place.as_slice());
        } else {
            asked();
        }
        self.shared.result().map(|()| is_done)
    }

    /// Waits for the work before the point where it was recorded.
    ///
    /// # Errors
    /// Work of the context has failed, or the thread [may not wait](super::may_wait).
    pub fn synchronize(&self) -> Result<(), StreamError> {
        self.shared.wait_for(self.place().as_slice())
    }

    /// Milliseconds from another event to this one; less than 0 if that was later.
    ///
    /// # Errors
    /// One of them was not recorded, keeps no time, or its work has not ended.
    pub fn milliseconds_since(&self, start: &Event) -> Result<f64, StreamError> {
        let (start, end) = (start.time()?, self.time()?);
        let (start, end) = (start.ok_or(StreamError::NotReady)?, end.ok_or(StreamError::NotReady)?);
        let after = end.saturating_duration_since(start).as_secs_f64();
        let before = start.saturating_duration_since(end).as_secs_f64();
        Ok((after - before) * 1e3)
    }

    /// When its work ended, if it has.
    fn time(&self) -> Result<Option<Instant>, StreamError> {
        match &*lock(&self.recorded) {
            Some(r) if self.keeps_time => Ok(r.time.get().copied()),
            Some(_) | None => Err(StreamError::NoTime),
        }
    }
}
