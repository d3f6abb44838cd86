//! Handles: numbers that stand for objects, and are looked up before they are used.
//!
//! A program may hand back any number. A handle says which kind of object it is for, where that lies, and which of the objects that lay there
//! one after the other it means, so that the handle of something that was destroyed is not taken for something newer.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

/// Which kind of object a handle is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Kind {
    /// A context.
    Context = 1,
    /// A stream.
    Stream,
    /// An event.
    Event,
    /// A module.
    Module,
    /// A function of a module.
    Function,
    /// A library.
    Library,
    /// A kernel of a library.
    Kernel,
    /// A linker.
    Link,
    /// A graph.
    Graph,
    /// A graph that can be launched.
    GraphExec,
    /// A node of a graph.
    Node,
    /// A memory pool.
    Pool,
    /// An object of the program that graphs may refer to.
    UserObject,
    /// Memory that lies nowhere until it is mapped.
    Physical,
    /// An array.
    Array,
    /// An array with levels of detail.
    Levels,
    /// A texture or surface reference.
    Reference,
}

const INDEX_BITS: u32 = 24;
const GENERATION_BITS: u32 = 16;

/// All objects of a kind.
#[derive(Debug)]
pub struct Table<T> {
    kind: Kind,
    slots: RwLock<Slots<T>>,
}

#[derive(Debug)]
struct Slots<T> {
    all: Vec<Slot<T>>,
    free: VecDeque<usize>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u64,
    item: Option<Arc<T>>,
}

impl<T> Table<T> {
    /// An empty table.
    pub fn new(kind: Kind) -> Table<T> {
        Table { kind, slots: RwLock::new(Slots { all: Vec::new(), free: VecDeque::new() }) }
    }

    /// The handle of a place: a multiple of 16, as an address would be.
    fn handle(&self, index: usize, generation: u64) -> u64 {
        (self.kind as u64) << (INDEX_BITS + GENERATION_BITS + 4)
            | generation << (INDEX_BITS + 4)
            | u64::try_from(index).unwrap_or(0) << 4
    }

    fn split(&self, handle: u64) -> Option<(usize, u64)> {
        if handle >> (INDEX_BITS + GENERATION_BITS + 4) != self.kind as u64 || !handle.is_multiple_of(16) {
            return None;
        }
        let index = usize::try_from(handle >> 4 & ((1 << INDEX_BITS) - 1)).ok()?;
        Some((index, handle >> (INDEX_BITS + 4) & ((1 << GENERATION_BITS) - 1)))
    }

    /// Puts an object in, which may know its own handle; `None` if there are too many.
    pub fn add_with(&self, make: impl FnOnce(u64) -> T) -> Option<(u64, Arc<T>)> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let index = match slots.free.pop_front() {
            Some(index) => index,
            None => {
                if slots.all.len() >> INDEX_BITS != 0 {
                    return None;
                }
                slots.all.push(Slot { generation: 0, item: None });
                slots.all.len() - 1
            }
        };
        let handle = self.handle(index, slots.all[index].generation);
        let item = Arc::new(make(handle));
        slots.all[index].item = Some(Arc::clone(&item));
        Some((handle, item))
    }

    /// Puts an object in and returns its handle; `None` if there are too many.
    pub fn add(&self, item: T) -> Option<u64> {
        self.add_with(|_| item).map(|(handle, _)| handle)
    }

    /// The object of a handle.
    pub fn get(&self, handle: u64) -> Option<Arc<T>> {
        let (index, generation) = self.split(handle)?;
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.all.get(index).filter(|slot| slot.generation == generation)?.item.clone()
    }

    /// Takes an object out: its handle means nothing any more.
    pub fn remove(&self, handle: u64) -> Option<Arc<T>> {
        let (index, generation) = self.split(handle)?;
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.all.get_mut(index).filter(|slot| slot.generation == generation)?;
        let item = slot.item.take()?;
        slot.generation = (generation + 1) & ((1 << GENERATION_BITS) - 1);
        slots.free.push_back(index);
        Some(item)
    }

    /// Takes an object out and keeps its handle for another one.
    pub fn vacate(&self, handle: u64) -> Option<Arc<T>> {
        let (index, generation) = self.split(handle)?;
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        slots.all.get_mut(index).filter(|slot| slot.generation == generation)?.item.take()
    }

    /// Puts an object where one was vacated; `None` if the handle is not of such a place.
    pub fn put(&self, handle: u64, item: T) -> Option<Arc<T>> {
        let (index, generation) = self.split(handle)?;
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.all.get_mut(index).filter(|slot| slot.generation == generation && slot.item.is_none())?;
        let item = Arc::new(item);
        slot.item = Some(Arc::clone(&item));
        Some(item)
    }

    /// All objects with their handles.
    pub fn all(&self) -> Vec<(u64, Arc<T>)> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let item =
            |(i, slot): (usize, &Slot<T>)| Some((self.handle(i, slot.generation), Arc::clone(slot.item.as_ref()?)));
        slots.all.iter().enumerate().filter_map(item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_destroyed_objects_mean_nothing() {
        let table = Table::new(Kind::Event);
        let a = table.add(1).unwrap();
        assert_eq!(table.get(a).as_deref(), Some(&1));
        assert_eq!(table.remove(a).as_deref(), Some(&1));
        assert!(table.get(a).is_none() && table.remove(a).is_none());
        let b = table.add(2).unwrap();
        assert_ne!(a, b);
        assert_eq!(table.all().len(), 1);
        for wrong in [0, 1, 2, b + 1, b + 16, b ^ 1 << 44, u64::MAX] {
            assert!(table.get(wrong).is_none(), "{wrong:#x}");
        }
    }
}
