//! Code by content: what modules of one process share, and what is kept on disk.
//!
//! Here is only who holds what under which digest; what is held, and how it is made and written, is known to `module`.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use handloom_store::{Digest, Store};

use crate::lock::lock;

/// Bytes of code that modules may share; what was asked for longest ago goes first, and stays with the modules that have it.
const MOST_BYTES: u64 = 256 << 20;

/// Entries of that.
const MOST_ENTRIES: usize = 4096;

/// Code that was made, by what it was made from: text, options and host. Devices that are given the same one compile a kernel once, in however many modules
/// it is; with a [`Store`], processes do too. A clone is the same cache.
#[derive(Clone, Debug, Default)]
pub struct CodeCache {
    inner: Arc<Inner>,
}

/// What a cache did so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CacheCounts {
    /// Times that an entry was compiled, in one of its tiers.
    pub compiled: u64,
    /// Times that an entry of a module was found made, or being made, for another module.
    pub shared: u64,
    /// Times that code was read from disk.
    pub loaded: u64,
}

#[derive(Debug, Default)]
struct Inner {
    store: Option<Store>,
    held: Mutex<Held>,
    compiled: AtomicU64,
    shared: AtomicU64,
    loaded: AtomicU64,
}

#[derive(Debug, Default)]
struct Held {
    by_digest: HashMap<Digest, Slot>,
    /// Counts uses.
    clock: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Slot {
    thing: Arc<dyn Any + Send + Sync>,
    used: u64,
    bytes: u64,
}

impl CodeCache {
    /// A cache of one process, and of all that use the store.
    pub fn new(store: Option<Store>) -> CodeCache {
        CodeCache { inner: Arc::new(Inner { store, ..Inner::default() }) }
    }

    /// What it did so far.
    pub fn counts(&self) -> CacheCounts {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let Inner { compiled, shared, loaded, .. } = &*self.inner;
        CacheCounts { compiled: read(compiled), shared: read(shared), loaded: read(loaded) }
    }

    /// What is held under a digest, made if nothing is, or nothing that `is_good`.
    pub(crate) fn share<T: Send + Sync + 'static>(
        &self,
        digest: Digest,
        is_good: impl Fn(&T) -> bool,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        let mut held = lock(&self.inner.held);
        held.clock += 1;
        let now = held.clock;
        if let Some(slot) = held.by_digest.get_mut(&digest)
            && let Ok(thing) = Arc::clone(&slot.thing).downcast::<T>()
            && is_good(&thing)
        {
            slot.used = now;
            self.inner.shared.fetch_add(1, Ordering::Relaxed);
            return thing;
        }
        let thing = Arc::new(make());
        let slot = Slot { thing: Arc::<T>::clone(&thing), used: now, bytes: 0 };
        if let Some(old) = held.by_digest.insert(digest, slot) {
            held.bytes -= old.bytes;
        }
        held.trim();
        thing
    }

    /// Says how many bytes of code what is held has by now.
    pub(crate) fn note_bytes(&self, digest: Digest, bytes: u64) {
        let mut held = lock(&self.inner.held);
        let Some(slot) = held.by_digest.get_mut(&digest) else { return };
        let before = std::mem::replace(&mut slot.bytes, bytes);
        held.bytes = held.bytes - before + bytes;
        held.trim();
    }

    /// What the store has.
    pub(crate) fn load(&self, digest: Digest) -> Option<Vec<u8>> {
        self.inner.store.as_ref()?.get(digest)
    }

    /// Puts something into the store.
    pub(crate) fn keep(&self, digest: Digest, bytes: impl FnOnce() -> Option<Vec<u8>>) {
        if let Some(store) = &self.inner.store
            && let Some(bytes) = bytes()
        {
            store.put(digest, &bytes);
        }
    }

    pub(crate) fn note_compiled(&self) {
        self.inner.compiled.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_loaded(&self) {
        self.inner.loaded.fetch_add(1, Ordering::Relaxed);
    }
}

impl Held {
    /// Where there is too much, lets go of what was asked for longest ago, down to three quarters.
    fn trim(&mut self) {
        if self.bytes <= MOST_BYTES && self.by_digest.len() <= MOST_ENTRIES {
            return;
        }
        let mut all: Vec<(u64, Digest)> = self.by_digest.iter().map(|(d, slot)| (slot.used, *d)).collect();
        all.sort_unstable_by_key(|(used, _)| *used);
        for (_, digest) in all {
            if self.bytes <= MOST_BYTES / 4 * 3 && self.by_digest.len() <= MOST_ENTRIES / 4 * 3 {
                break;
            }
            if let Some(slot) = self.by_digest.remove(&digest) {
                self.bytes -= slot.bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_so_much_and_the_oldest_goes_first() {
        let cache = CodeCache::default();
        let get = |i: u64, was: u64| *cache.share(Digest::of(&i), |_: &u64| true, || was);
        for i in 0..8 {
            assert_eq!(get(i, i), i);
            cache.note_bytes(Digest::of(&i), MOST_BYTES / 8);
        }
        assert_eq!(get(0, 100), 0);
        assert_eq!(get(8, 8), 8);
        cache.note_bytes(Digest::of(&8_u64), MOST_BYTES / 8);
        // The first was asked for, the second was not.
        assert_eq!((get(0, 100), get(1, 101)), (0, 101));
        for i in 100..100 + 2 * MOST_ENTRIES as u64 {
            get(i, i);
        }
        assert!(lock(&cache.inner.held).by_digest.len() <= MOST_ENTRIES);
        assert_eq!(get(0, 100), 100);
    }

    #[test]
    fn what_is_not_good_is_made_anew() {
        let cache = CodeCache::default();
        let get = |is_good: bool, was: u64| *cache.share(Digest::of(&1), |_: &u64| is_good, || was);
        assert_eq!((get(true, 1), get(true, 2), get(false, 3), get(true, 4)), (1, 1, 3, 3));
        assert_eq!(cache.counts().shared, 2);
    }
}
