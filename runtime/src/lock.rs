//! Locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock whose holder never leaves it half changed: a panic of another thread does not matter.
pub(crate) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}
