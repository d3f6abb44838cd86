//! User objects: things of the program that live as long as somebody refers to them, graphs among them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::code::{Code, Result};
use crate::process::process;
use crate::work::HostFunction;

/// An object of the program.
pub struct UserObject {
    destroy: HostFunction,
    /// References to it, those of graphs included.
    references: Mutex<u64>,
}

impl UserObject {
    fn references(&self) -> MutexGuard<'_, u64> {
        self.references.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes an object with so many references, and returns its handle; `destroy` is called when the last one has gone.
///
/// # Errors
/// It has no reference, or there are too many objects.
pub fn create(destroy: HostFunction, references: u32) -> Result<u64> {
    if references == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let object = UserObject { destroy, references: Mutex::new(references.into()) };
    process()?.user_objects.add(object).ok_or(Code::OUT_OF_MEMORY)
}

/// Adds references.
///
/// # Errors
/// There is no such object, or nothing is added.
pub fn retain(handle: u64, n: u32) -> Result {
    let object = process()?.user_objects.get(handle).filter(|_| n > 0).ok_or(Code::INVALID_VALUE)?;
    let mut references = object.references();
    // Another thread may just have let the last one go.
    if *references == 0 {
        return Err(Code::INVALID_VALUE);
    }
    *references += u64::from(n);
    Ok(())
}

/// Takes references away.
///
/// # Errors
/// There is no such object, or it has fewer.
pub fn release(handle: u64, n: u32) -> Result {
    release_all(handle, n.into())
}

fn release_all(handle: u64, n: u64) -> Result {
    let table = &process()?.user_objects;
    let object = table.get(handle).filter(|_| n > 0).ok_or(Code::INVALID_VALUE)?;
    let left = {
        let mut references = object.references();
        *references = references.checked_sub(n).ok_or(Code::INVALID_VALUE)?;
        *references
    };
    if left == 0 {
        table.remove(handle);
        // Without a lock held: it is a function of the program.
        (object.destroy)();
    }
    Ok(())
}

/// References that a graph has: by object, how many. They go with it.
#[derive(Default)]
pub struct References(Mutex<BTreeMap<u64, u64>>);

impl References {
    fn held(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.held().is_empty()
    }

    /// Adds references; `moved`: those that the caller has, else new ones.
    ///
    /// # Errors
    /// There is no such object, or nothing is added.
    pub fn add(&self, handle: u64, n: u32, moved: bool) -> Result {
        if moved {
            process()?.user_objects.get(handle).filter(|_| n > 0).ok_or(Code::INVALID_VALUE)?;
        } else {
            retain(handle, n)?;
        }
        *self.held().entry(handle).or_default() += u64::from(n);
        Ok(())
    }

    /// Takes references away.
    ///
    /// # Errors
    /// It has fewer to this object.
    pub fn take(&self, handle: u64, n: u32) -> Result {
        let mut held = self.held();
        let count = held.get_mut(&handle).filter(|_| n > 0).ok_or(Code::INVALID_VALUE)?;
        *count = count.checked_sub(n.into()).ok_or(Code::INVALID_VALUE)?;
        if *count == 0 {
            held.remove(&handle);
        }
        drop(held);
        release(handle, n)
    }

    /// One reference to each of its objects, for a copy.
    #[must_use]
    pub fn for_copy(&self) -> References {
        let objects: Vec<u64> = self.held().keys().copied().collect();
        let kept = objects.into_iter().filter(|handle| retain(*handle, 1).is_ok());
        References(Mutex::new(kept.map(|handle| (handle, 1)).collect()))
    }
}

impl Drop for References {
    fn drop(&mut self) {
        for (handle, n) in std::mem::take(&mut *self.held()) {
            let _ = release_all(handle, n);
        }
    }
}
