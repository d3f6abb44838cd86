//! Work in order: a queue, and the thread that does what is in it.
//!
//! Who waits for a place helps: where the thread has not begun with what stands before it, that is done on the waiting thread, since to wake another one takes
//! longer than most launches. As long as somebody helps, the thread only dozes, and short work does not wake it.
//!
//! Places in queues are numbered from 1 as work is put in. Work may have to wait for places of other queues. It names them when it is put in, so they
//! were there before it, and queues cannot wait for each other in a circle.
//!
//! Invariants: who does work has the queue's hands, so work of a queue is done one after the other, in its order; each place is passed some day, also when its work is left out because of
//! an error, so whoever waits for it goes on; a queue that nobody can reach any more is still worked off.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Lack;
use crate::lock::lock;
use crate::rows::has_products;
use crate::run::thread::{Uncancelled, has_stack};
use crate::run::{OfStream, UsualFloats};

/// How long a thread looks for what it waits for before it sleeps: to be woken takes about as long.
const SPIN: Duration = Duration::from_micros(15);

/// How long a thread dozes before it looks for work that nobody woke it for.
const DOZE: Duration = Duration::from_micros(200);

/// How long after somebody helped it dozes before it sleeps.
const HELPED: Duration = Duration::from_millis(10);

/// How many waits of a thread may be for what stands before what it helps with.
const DEEPEST: u32 = 64;

/// Bytes of its stack that a thread must have left to help: launches take some of it.
const ROOM: usize = 1 << 20;

/// More than the number of any place.
const NONE: u64 = u64::MAX;

/// What a queue wants to know of work.
pub(super) trait Job: Send + 'static {
    /// Whether any thread that waits may do it.
    fn may_be_helped(&self) -> bool;

    /// Whether it takes less time than to wake a thread.
    fn is_short(&self) -> bool;
}

/// Does work.
pub(super) type Hands<W> = Box<dyn FnMut(W) + Send>;

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
    /// The first place that a thread sleeps for, or is about to; [`NONE`] if none does.
    awaited: AtomicU64,
    /// More was put in, or nothing will come any more.
    came: Condvar,
    /// The awaited place was passed.
    went: Condvar,
    _stream: OfStream,
}

struct State<W> {
    items: VecDeque<Item<W>>,
    /// A thread works.
    has_thread: bool,
    /// Who does the work has them.
    hands: Option<Hands<W>>,
    rest: Rest,
    /// When somebody helped last.
    helped: Option<Instant>,
    /// Nobody helped with the last short work that the thread was not woken for.
    was_late: bool,
    /// Nothing more will come.
    is_closed: bool,
}

/// What the thread of a queue does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// It works, or looks for work.
    Awake,
    /// It sleeps, but not for long.
    Dozes,
    /// It sleeps until it is woken.
    Sleeps,
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
}

impl<W: Job> Place<W> {
    /// Waits until all up to it is done, and helps with that.
    pub(super) fn wait(&self) {
        if self.is_passed() {
            return;
        }
        self.queue.help(self.number);
        if spin(|| self.is_passed()) {
            return;
        }
        let queue = &self.queue;
        let mut state = lock(&queue.state);
        loop {
            // The worker passes a place and then looks for what is awaited; this says what it waits for and then looks. One of them sees the other.
            queue.awaited.fetch_min(self.number, Ordering::SeqCst);
            if self.is_passed() {
                return;
            }
            state = queue.went.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether all up to it is done. If not, the thread that does it is awake from now on.
    pub(super) fn ask(&self) -> bool {
        self.is_passed() || {
            self.queue.wake(&mut lock(&self.queue.state));
            false
        }
    }
}

thread_local! {
    /// How many waits of this thread are for what stands before what it helps with.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// How many queues' hands this thread has.
    static HANDS: Cell<u32> = const { Cell::new(0) };
}

/// Whether the calling thread is in the middle of work of a queue: in a function of the program that the work calls.
pub(super) fn is_at_work() -> bool {
    HANDS.get() > 0
}

impl<W: Job> Queue<W> {
    pub(super) fn new() -> Arc<Queue<W>> {
        let state = State {
            items: VecDeque::new(),
            has_thread: false,
            hands: None,
            rest: Rest::Awake,
            helped: None,
            was_late: false,
            is_closed: false,
        };
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(Queue {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(state),
            last: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            awaited: AtomicU64::new(NONE),
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
    pub(super) fn put(self: &Arc<Self>, item: Item<W>, perform: impl FnOnce() -> Hands<W>) -> Result<u64, Lack> {
        let mut state = lock(&self.state);
        if !state.has_thread {
            let queue = Arc::clone(self);
            let thread = thread::Builder::new().name("handloom-stream".into());
            thread.spawn(move || queue.work_off()).map_err(|_| Lack::StreamThread)?;
            state.has_thread = true;
            state.hands = Some(perform());
        }
        let is_short = item.work.is_short() && item.work.may_be_helped();
        state.items.push_back(item);
        let number = self.last.load(Ordering::Relaxed) + 1;
        self.last.store(number, Ordering::SeqCst);
        if state.rest == Rest::Sleeps || !is_short || state.was_late {
            self.wake(&mut state);
        }
        Ok(number)
    }

    /// Wakes the thread that does the work, if it rests.
    fn wake(&self, state: &mut State<W>) {
        if std::mem::replace(&mut state.rest, Rest::Awake) != Rest::Awake {
            self.came.notify_one();
        }
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

    fn work_off(&self) {
        let mut items = VecDeque::new();
        while let Some(hands) = self.next(&mut items) {
            self.give_back(self.work(items.drain(..), hands));
        }
    }

    /// Does work with the queue's hands, and returns them.
    fn work(&self, items: impl Iterator<Item = Item<W>>, mut hands: Hands<W>) -> Hands<W> {
        HANDS.set(HANDS.get() + 1);
        for Item { after, work } in items {
            after.iter().for_each(Place::wait);
            hands(work);
            let passed = self.passed.fetch_add(1, Ordering::SeqCst) + 1;
            // Who waits for more is left asleep: to wake a thread takes longer than many a launch.
            if passed >= self.awaited.load(Ordering::SeqCst) {
                // Who is about to sleep holds this until it does. Who wakes for nothing says again what it waits for.
                let state = lock(&self.state);
                self.awaited.store(NONE, Ordering::SeqCst);
                drop(state);
                self.went.notify_all();
            }
        }
        HANDS.set(HANDS.get() - 1);
        hands
    }

    /// Gives the queue its hands back. Where there is nothing more to do with them they are dropped, since they hold the queue.
    fn give_back(&self, hands: Hands<W>) {
        let mut state = lock(&self.state);
        let is_over = state.is_closed && state.items.is_empty();
        let unneeded = if is_over { Some(hands) } else { state.hands.replace(hands) };
        if is_over || !state.items.is_empty() {
            self.wake(&mut state);
        }
        drop(state);
        drop(unneeded);
    }

    /// Does what stands up to a place on the calling thread, which waits for it, as far as nobody does it and any thread may.
    fn help(&self, number: u64) {
        let (depth, is_able) = (DEPTH.get(), has_stack(ROOM) && has_products());
        let mut state = lock(&self.state);
        let left = number.saturating_sub(self.passed.load(Ordering::SeqCst));
        let mine = state.items.iter().take(left as usize).take_while(|item| item.work.may_be_helped()).count();
        if mine == 0 || depth == DEEPEST || !is_able {
            // Work that is left for the thread, if nobody does it.
            if !state.items.is_empty() {
                self.wake(&mut state);
            }
            return;
        }
        let Some(hands) = state.hands.take() else { return };
        let items: Vec<Item<W>> = state.items.drain(..mine).collect();
        (state.helped, state.was_late) = (Some(Instant::now()), false);
        drop(state);
        DEPTH.set(depth + 1);
        let (_floats, _uncancelled) = (UsualFloats::lent(), Uncancelled::begin());
        let hands = self.work(items.into_iter(), hands);
        DEPTH.set(depth);
        self.give_back(hands);
    }

    /// Takes all items that are there and the hands, and waits for them if there are none. `None` if nothing will come any more.
    fn next(&self, items: &mut VecDeque<Item<W>>) -> Option<Hands<W>> {
        spin(|| !self.is_done());
        let mut state = lock(&self.state);
        loop {
            if !state.items.is_empty()
                && let Some(hands) = state.hands.take()
            {
                state.was_late |= state.rest == Rest::Dozes;
                state.rest = Rest::Awake;
                std::mem::swap(&mut state.items, items);
                return Some(hands);
            }
            if state.is_closed && state.items.is_empty() {
                let unneeded = state.hands.take();
                drop(state);
                drop(unneeded);
                return None;
            }
            let dozes = state.helped.is_some_and(|at| at.elapsed() < HELPED);
            if dozes {
                state.rest = Rest::Dozes;
                state = self.came.wait_timeout(state, DOZE).unwrap_or_else(PoisonError::into_inner).0;
            } else {
                state.rest = Rest::Sleeps;
                state = self.came.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}
