//! Something that is made once, while those who want it wait, and that they can leave.
//!
//! The compiler cannot be interrupted inside a function. So code that takes long is made on a thread of its own: who waits for it can be stopped,
//! or run out of time, and goes. The thread then ends where it next asks whether anybody still wants what it makes; until then it goes on
//! beside whatever comes next. Whoever wants the same thing later waits for it again, or starts it anew.
//!
//! Invariants: one thread makes a thing at a time; what is there stays; a panic while making is an error of what is made.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use handloom_codegen::Failure;

use crate::error::panic_text;
use crate::lock::lock;
use crate::run::{StopHandle, UsualFloats};

/// How often one who waits looks whether to go on waiting.
const TICK: Duration = Duration::from_millis(20);

/// What those who want a thing share.
#[derive(Debug)]
pub(crate) struct Task<T> {
    there: OnceLock<Result<T, Failure>>,
    work: Mutex<Work>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Work {
    /// Somebody makes it, or is about to.
    claimed: bool,
    /// Since when.
    since: Option<Instant>,
    /// Who waits for it.
    n_waiting: usize,
}

impl<T> Default for Task<T> {
    fn default() -> Task<T> {
        Task { there: OnceLock::new(), work: Mutex::default(), changed: Condvar::new() }
    }
}

/// How long somebody waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience<'s> {
    /// Ends the wait, whatever it says.
    pub(crate) stop: &'s StopHandle,
    /// Longest time, from the later of the start of the wait and of the work.
    pub(crate) limit: Option<Duration>,
}

/// Whoever waited has left: its launch is to stop, or its time is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Left;

/// Asks whether anybody still wants what is made.
pub(crate) type Wanted<'w> = &'w (dyn Fn() -> bool + Sync);

/// Where work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// On the calling thread: it takes less time than starting another one is worth.
    Here,
    /// On a thread of its own.
    Aside,
    /// On a thread of the pool, beside other work.
    Pool,
}

/// Keeps a thing wanted.
#[derive(Debug)]
pub(crate) struct Ticket<'t, T>(&'t Task<T>);

impl<T> Drop for Ticket<'_, T> {
    fn drop(&mut self) {
        lock(&self.0.work).n_waiting -= 1;
    }
}

impl<T> Task<T> {
    /// What was made.
    pub(crate) fn get(&self) -> Option<Result<&T, &Failure>> {
        self.there.get().map(Result::as_ref)
    }

    /// A task that is done.
    pub(crate) fn done(made: T) -> Task<T> {
        let task = Task::default();
        _ = task.there.set(Ok(made));
        task
    }

    /// Says that somebody wants it.
    pub(crate) fn ticket(&self) -> Ticket<'_, T> {
        lock(&self.work).n_waiting += 1;
        Ticket(self)
    }

    /// Whether the caller is to make it: it is not there, and nobody else does. Time spent in a queue does not count.
    fn claim(&self, place: Place) -> bool {
        let mut work = lock(&self.work);
        let free = !work.claimed && self.there.get().is_none();
        if free {
            work.claimed = true;
            work.since = (place != Place::Pool).then(Instant::now);
        }
        free
    }

    /// Makes it, after `claim`.
    fn make(&self, make: impl FnOnce(Wanted<'_>) -> Option<Result<T, Failure>>) {
        lock(&self.work).since.get_or_insert_with(Instant::now);
        let _floats = UsualFloats::begin();
        let work = &self.work;
        let wanted = move || lock(work).n_waiting > 0;
        let made = catch_unwind(AssertUnwindSafe(|| make(&wanted)));
        let made = made.unwrap_or_else(|p| Some(Err(Failure::Bug(format!("compiling: {}", panic_text(p.as_ref()))))));
        if let Some(made) = made {
            _ = self.there.set(made);
        }
        let mut work = lock(&self.work);
        (work.claimed, work.since) = (false, None);
        drop(work);
        self.changed.notify_all();
    }

    /// Waits until nobody makes it any more.
    fn wait(&self, start: Instant, patience: Patience<'_>) -> Result<(), Left> {
        let mut work = lock(&self.work);
        while work.claimed {
            let over = |from: Instant| patience.limit.is_some_and(|limit| from.elapsed() >= limit);
            if patience.stop.is_set() || work.since.is_some_and(|since| over(since.max(start))) {
                return Err(Left);
            }
            work = self.changed.wait_timeout(work, TICK).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

/// Starts to make a task, if it is not there and nobody does. `owner` keeps it alive.
pub(crate) fn start<O, T>(
    owner: &O,
    task: impl Fn(&O) -> &Task<T> + Send + 'static,
    place: Place,
    make: impl FnOnce(&O, Wanted<'_>) -> Option<Result<T, Failure>> + Send + 'static,
) where
    O: Clone + Send + 'static,
{
    if !task(owner).claim(place) {
        return;
    }
    let kept = owner.clone();
    let work = move || task(&kept).make(|wanted| make(&kept, wanted));
    match place {
        Place::Here => work(),
        Place::Pool => match pool() {
            Some(pool) => pool.spawn(work),
            None => work(),
        },
        Place::Aside => {
            // Held here too, since `spawn` drops what it is given when it fails.
            let mine = Arc::new(Mutex::new(Some(work)));
            let theirs = Arc::clone(&mine);
            let thread = thread::Builder::new().name("handloom-compile".into());
            let started = thread.spawn(move || take_and_run(&theirs));
            if started.is_err() {
                take_and_run(&mine);
            }
        }
    }
}

/// Threads that compile. They are nobody else's: whoever waits for code may be a thread of another pool, and keep it busy by that.
fn pool() -> Option<&'static rayon::ThreadPool> {
    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    let name = |i: usize| format!("handloom-compile-{i}");
    POOL.get_or_init(|| {
        rayon::ThreadPoolBuilder::new().thread_name(name).start_handler(|_| UsualFloats::set()).build().ok()
    })
    .as_ref()
}

/// Runs parallel work on the threads that compile.
pub(crate) fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    match pool() {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

fn take_and_run(work: &Mutex<Option<impl FnOnce()>>) {
    let work = lock(work).take();
    if let Some(work) = work {
        work();
    }
}

/// Waits for a task, starting it as often as needed: a thread that nobody waited for for a while may have given it up.
pub(crate) fn obtain<T>(task: &Task<T>, patience: Patience<'_>, mut start: impl FnMut()) -> Result<(), Left> {
    let begin = Instant::now();
    let _wanted = task.ticket();
    while task.get().is_none() {
        start();
        task.wait(begin, patience)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    type Cell = Arc<Task<u32>>;

    fn begin(
        cell: &Cell,
        place: Place,
        make: impl FnOnce(Wanted<'_>) -> Option<Result<u32, Failure>> + Send + 'static,
    ) {
        start(cell, |s| s, place, |_, wanted| make(wanted));
    }

    const FOREVER: Option<Duration> = None;

    #[test]
    fn it_is_made_once() {
        let made = Arc::new(AtomicUsize::new(0));
        for place in [Place::Here, Place::Aside, Place::Pool] {
            let (cell, stop) = (Cell::default(), StopHandle::new());
            for _ in 0..3 {
                let patience = Patience { stop: &stop, limit: FOREVER };
                let count = Arc::clone(&made);
                let work = move |_: Wanted<'_>| Some(Ok(count.fetch_add(1, Ordering::SeqCst) as u32));
                obtain(&cell, patience, || begin(&cell, place, work.clone())).unwrap();
                assert!(cell.get().unwrap().is_ok());
            }
        }
        assert_eq!(made.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_panic_is_an_error() {
        let (cell, stop) = (Cell::default(), StopHandle::new());
        let patience = Patience { stop: &stop, limit: FOREVER };
        obtain(&cell, patience, || begin(&cell, Place::Aside, |_| panic!("no"))).unwrap();
        assert!(cell.get().unwrap().unwrap_err().text().contains("no"));
    }

    #[test]
    fn who_waits_can_leave_and_come_back() {
        let (cell, stop) = (Cell::default(), StopHandle::new());
        let go_on = |wanted: Wanted<'_>| {
            while wanted() {
                thread::yield_now();
            }
            None
        };
        let short = Patience { stop: &stop, limit: Some(Duration::from_millis(30)) };
        assert_eq!(obtain(&cell, short, || begin(&cell, Place::Aside, go_on)), Err(Left));
        // Whoever comes before it is given up would wait for it.
        while lock(&cell.work).claimed {
            thread::yield_now();
        }
        // What was given up is made anew.
        let patience = Patience { stop: &stop, limit: FOREVER };
        obtain(&cell, patience, || begin(&cell, Place::Aside, |_| Some(Ok(7)))).unwrap();
        assert_eq!(cell.get(), Some(Ok(&7)));
        let cell = Cell::default();
        stop.stop();
        assert_eq!(obtain(&cell, patience, || begin(&cell, Place::Aside, go_on)), Err(Left));
    }
}
