//! Work in order: a queue, and the thread that does what is in it.
//!
//! Places in queues are numbered from 1 as work is put in. Work may have to wait for places of other queues. It names them when it is put in, so they
//! were there before it, and queues cannot wait for each other in a circle.
//!
//! Invariants: work of a queue is done one after the other, in its order; each place is passed some day, also when its work is left out because of
//! an error, so whoever waits for it goes on; a queue that nobody can reach any more is still worked off.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use crate::error::Lack;
use crate::lock::lock;

/// One thing to do, and what must have been passed before.
pub(super) struct Item<W> {
    pub(super) after: Vec<Place<W>>,
    pub(super) work: W,
}

/// Work in order.
pub(super) struct Queue<W> {
    state: Mutex<State<W>>,
    changed: Condvar,
}

struct State<W> {
    items: VecDeque<Item<W>>,
    /// Number of the place that was put in last.
    last: u64,
    /// Places up to this one have been passed.
    passed: u64,
    /// A thread works.
    has_thread: bool,
    /// Nothing more will come.
    is_closed: bool,
}

/// A place in a queue: the end of what was put in there.
pub(super) struct Place<W> {
    queue: Arc<Queue<W>>,
    number: u64,
}

impl<W> Clone for Place<W> {
    fn clone(&self) -> Self {
        Place { queue: Arc::clone(&self.queue), number: self.number }
    }
}

impl<W> Place<W> {
    /// Whether all up to it is done.
    pub(super) fn is_passed(&self) -> bool {
        lock(&self.queue.state).passed >= self.number
    }

    /// Waits until all up to it is done.
    pub(super) fn wait(&self) {
        let mut state = lock(&self.queue.state);
        while state.passed < self.number {
            state = self.queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<W: Send + 'static> Queue<W> {
    pub(super) fn new() -> Arc<Queue<W>> {
        let state = State { items: VecDeque::new(), last: 0, passed: 0, has_thread: false, is_closed: false };
        Arc::new(Queue { state: Mutex::new(state), changed: Condvar::new() })
    }

    /// The end of what is there now.
    pub(super) fn end(self: &Arc<Self>) -> Place<W> {
        Place { queue: Arc::clone(self), number: lock(&self.state).last }
    }

    /// Puts work at the end. The first time, a thread is started that does it all by `perform`.
    ///
    /// # Errors
    /// The host has no thread.
    pub(super) fn put(
        self: &Arc<Self>,
        item: Item<W>,
        perform: impl FnOnce() -> Box<dyn FnMut(W) + Send>,
    ) -> Result<Place<W>, Lack> {
        let mut state = lock(&self.state);
        if !state.has_thread {
            let (queue, perform) = (Arc::clone(self), perform());
            let thread = thread::Builder::new().name("handloom-stream".into());
            thread.spawn(move || queue.work_off(perform)).map_err(|_| Lack::StreamThread)?;
            state.has_thread = true;
        }
        state.items.push_back(item);
        state.last += 1;
        let number = state.last;
        drop(state);
        self.changed.notify_all();
        Ok(Place { queue: Arc::clone(self), number })
    }

    /// Nothing more will come: the thread ends when all is done.
    pub(super) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }

    fn work_off(&self, mut perform: Box<dyn FnMut(W) + Send>) {
        while let Some(Item { after, work }) = self.next() {
            after.iter().for_each(Place::wait);
            perform(work);
            lock(&self.state).passed += 1;
            self.changed.notify_all();
        }
    }

    /// The next item; `None` when there will be none.
    fn next(&self) -> Option<Item<W>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(item) = state.items.pop_front() {
                return Some(item);
            }
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
