//! Handles: numbers that stand for objects, and are looked up before they are used.
//!
//! A program may pass any number. The upper byte of a handle is the kind of object, the rest counts all handles that the process has made, so that none is used twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::status::{Failure, Status};

/// A device: memory, and the threads that run kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct DeviceHandle {
    /// Meaningless to a program, but that 0 stands for nothing.
    pub id: u64,
}

/// A module of PTX on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct ModuleHandle {
    /// Meaningless to a program, but that 0 stands for nothing.
    pub id: u64,
}

/// An entry of a module. It ends with its module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct FunctionHandle {
    /// Meaningless to a program, but that 0 stands for nothing.
    pub id: u64,
}

/// Memory of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct BufferHandle {
    /// Meaningless to a program, but that 0 stands for nothing.
    pub id: u64,
}

/// A launch whose code and parameters are there. It ends with its module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct PreparedHandle {
    /// Meaningless to a program, but that 0 stands for nothing.
    pub id: u64,
}

/// What a launch did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct ReportHandle {
    /// Meaningless to a program, but that 0 stands for nothing.
    pub id: u64,
}

/// Work that is done later, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct StreamHandle {
    /// Meaningless to a program, but that 0 stands for nothing.
    pub id: u64,
}

/// A point in a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct EventHandle {
    /// Meaningless to a program, but that 0 stands for nothing.
    pub id: u64,
}

/// What ends launches that run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct StopHandle {
    /// Meaningless to a program, but that 0 stands for nothing.
    pub id: u64,
}

// The structures above are written out, since `cbindgen` sees none that a macro makes.
macro_rules! handles {
    ($($name:ident $kind:literal $word:literal;)*) => {$(
        impl Handle for $name {
            const KIND: u64 = $kind;
            const WORD: &'static str = $word;

            fn new(id: u64) -> $name {
                $name { id }
            }

            fn id(self) -> u64 {
                self.id
            }
        }
    )*};
}

handles! {
    DeviceHandle 1 "a device";
    ModuleHandle 2 "a module";
    FunctionHandle 3 "a function";
    BufferHandle 4 "a buffer";
    PreparedHandle 5 "a prepared launch";
    ReportHandle 6 "a report";
    StreamHandle 7 "a stream";
    EventHandle 8 "an event";
    StopHandle 9 "a stop handle";
}

/// A handle of one kind.
pub trait Handle: Copy {
    /// Its upper byte.
    const KIND: u64;
    /// Its kind in words, with their article.
    const WORD: &'static str;
    /// From a number.
    fn new(id: u64) -> Self;
    /// Its number.
    fn id(self) -> u64;
}

const KIND_SHIFT: u32 = 56;

/// All objects of a kind.
pub(crate) struct Table<T> {
    all: RwLock<BTreeMap<u64, Arc<T>>>,
}

impl<T> Table<T> {
    /// Without any.
    pub(crate) const fn new() -> Table<T> {
        Table { all: RwLock::new(BTreeMap::new()) }
    }

    /// A handle for an object.
    pub(crate) fn add<H: Handle>(&self, object: T) -> H {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = H::KIND << KIND_SHIFT | NEXT.fetch_add(1, Ordering::Relaxed);
        self.all.write().unwrap_or_else(PoisonError::into_inner).insert(id, Arc::new(object));
        H::new(id)
    }

    /// What a handle stands for.
    pub(crate) fn get<H: Handle>(&self, handle: H) -> Result<Arc<T>, Failure> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.get(&handle.id()).cloned().ok_or_else(|| unknown(handle))
    }

    /// Ends a handle. What it stood for goes when nobody uses it any more.
    pub(crate) fn remove<H: Handle>(&self, handle: H) -> Result<Arc<T>, Failure> {
        let removed = self.all.write().unwrap_or_else(PoisonError::into_inner).remove(&handle.id());
        removed.ok_or_else(|| unknown(handle))
    }

    /// Ends all handles of objects that are of a sort.
    pub(crate) fn remove_all(&self, is_gone: impl Fn(&T) -> bool) {
        let mut gone = Vec::new();
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, object| {
            let goes = is_gone(object);
            if goes {
                gone.push(Arc::clone(object));
            }
            !goes
        });
        // What ends takes its time, which others need not wait for.
        drop(all);
    }
}

/// Why a number stands for nothing.
fn unknown<H: Handle>(handle: H) -> Failure {
    let (id, word) = (handle.id(), H::WORD);
    let text = match id >> KIND_SHIFT {
        _ if id == 0 => format!("{word} of 0, which stands for nothing"),
        kind if kind == H::KIND => format!("{word} that was released, or that ended with its module"),
        _ => format!("{id:#x} is no handle of {word}"),
    };
    Failure::new(Status::InvalidHandle, text)
}
