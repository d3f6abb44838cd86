//! Work in order: a queue, and the thread that does what is in it.
//!
//! Places in queues are numbered from 1 as work is put in. Work may have to wait for places of other queues. It names them when it is put in, so they
//! were there before it, and queues cannot wait for each other in a circle.
//!
//! Invariants: work of a queue is done one after the other, in its order; each place is passed some day, also when its work is left out because of
//! an error, so whoever waits for it goes on; a queue that nobody can reach any more is still worked off.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Lack;
use crate::lock::lock;
use crate::run::OfStream;

/// How long a thread looks for what it waits for before it sleeps: to be woken takes about as long.
const SPIN: Duration = Duration::from_micros(15);

/// One thing to do, and what must have been passed before.
pub(super) struct Item<W> {
    pub(super) after: Vec<Place<W>>,
    pub(super) work: W,
}

/// Work in order.
pub(super) struct Queue<W> {
    /// One of all queues, from 1.
    id: u64,
    state: Mutex<State<W>>,
    /// Number of the place that was put in last. Changed while `state` is held.
    last: AtomicU64,
    /// Places up to this one have been passed.
    passed: AtomicU64,
    /// Threads that sleep until more is passed, or are about to.
    n_waiting: AtomicUsize,
    /// More was put in, or nothing will come any more.
    came: Condvar,
    /// More was passed.
    went: Condvar,
    _stream: OfStream,
}

struct State<W> {
    items: VecDeque<Item<W>>,
    /// A thread works.
    has_thread: bool,
    /// It sleeps.
    sleeps: bool,
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

/// Looks for a while whether something has come to be. Says whether it has.
fn spin(is_there: impl Fn() -> bool) -> bool {
    // Where only one thread runs at a time, nothing comes to be while this one looks.
    static ALONE: OnceLock<bool> = OnceLock::new();
    if *ALONE.get_or_init(|| thread::available_parallelism().is_ok_and(|n| n.get() == 1)) {
        return is_there();
    }
    let start = Instant::now();
    loop {
        for _ in 0..32 {
            if is_there() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > SPIN {
            return false;
        }
    }
}

impl<W> Place<W> {
    /// Numbers of the queue and of the place.
    pub(super) fn at(&self) -> (u64, u64) {
        (self.queue.id, self.number)
    }

    /// Whether all up to it is done.
    pub(super) fn is_passed(&self) -> bool {
        self.queue.passed.load(Ordering::SeqCst) >= self.number
    }

    /// Waits until all up to it is done.
    pub(super) fn wait(&self) {
        if spin(|| self.is_passed()) {
            return;
        }
        let queue = &self.queue;
        // The worker passes a place and then looks for who waits; this says that it waits and then looks. One of them sees the other.
        queue.n_waiting.fetch_add(1, Ordering::SeqCst);
        let mut state = lock(&queue.state);
        while !self.is_passed() {
            state = queue.went.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        queue.n_waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<W: Send + 'static> Queue<W> {
    pub(super) fn new() -> Arc<Queue<W>> {
        let state = State { items: VecDeque::new(), has_thread: false, sleeps: false, is_closed: false };
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(Queue {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(state),
            last: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            n_waiting: AtomicUsize::new(0),
            came: Condvar::new(),
            went: Condvar::new(),
            _stream: OfStream::begin(),
        })
    }

    /// The end of what is there now.
    pub(super) fn end(self: &Arc<Self>) -> Place<W> {
        Place { queue: Arc::clone(self), number: self.last.load(Ordering::SeqCst) }
    }

    /// The number of the place whose work is done now, for who does it.
    pub(super) fn now(&self) -> (u64, u64) {
        (self.id, self.passed.load(Ordering::SeqCst) + 1)
    }

    /// Whether all is done that was put in.
    pub(super) fn is_done(&self) -> bool {
        // In this order: what was put in between counts.
        let passed = self.passed.load(Ordering::SeqCst);
        passed >= self.last.load(Ordering::SeqCst)
    }

    /// Puts work at the end. The first time, a thread is started that does it all by `perform`.
    ///
    /// # Errors
    /// The host has no thread.
    pub(super) fn put(
        self: &Arc<Self>,
        item: Item<W>,
        perform: impl FnOnce() -> Box<dyn FnMut(W) + Send>,
    ) -> Result<u64, Lack> {
        let mut state = lock(&self.state);
        if !state.has_thread {
            let (queue, perform) = (Arc::clone(self), perform());
            let thread = thread::Builder::new().name("handloom-stream".into());
            thread.spawn(move || queue.work_off(perform)).map_err(|_| Lack::StreamThread)?;
            state.has_thread = true;
        }
        state.items.push_back(item);
        let number = self.last.load(Ordering::Relaxed) + 1;
        self.last.store(number, Ordering::SeqCst);
        let sleeps = std::mem::take(&mut state.sleeps);
        drop(state);
        if sleeps {
            self.came.notify_one();
        }
        Ok(number)
    }

    /// A place by its number.
    pub(super) fn place(self: &Arc<Self>, number: u64) -> Place<W> {
        Place { queue: Arc::clone(self), number }
    }

    /// Nothing more will come: the thread ends when all is done.
    pub(super) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.came.notify_one();
    }

    fn work_off(&self, mut perform: Box<dyn FnMut(W) + Send>) {
        let mut items = VecDeque::new();
        while self.next(&mut items) {
            for Item { after, work } in items.drain(..) {
                after.iter().for_each(Place::wait);
                perform(work);
                self.passed.fetch_add(1, Ordering::SeqCst);
                if self.n_waiting.load(Ordering::SeqCst) > 0 {
                    // Who is about to sleep holds this until it does.
                    drop(lock(&self.state));
                    self.went.notify_all();
                }
            }
        }
    }

    /// Takes all items that are there, and waits for one if there is none. Says whether there are any; there will be none if not.
    fn next(&self, items: &mut VecDeque<Item<W>>) -> bool {
        spin(|| !self.is_done());
        let mut state = lock(&self.state);
        loop {
            if !state.items.is_empty() {
                std::mem::swap(&mut state.items, items);
                return true;
            }
            if state.is_closed {
                return false;
            }
            state.sleeps = true;
            state = self.came.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
