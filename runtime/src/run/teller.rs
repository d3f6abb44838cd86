//! Tells what has happened soon after it did, and never for long.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock::lock;

/// After it told something, it waits for so many times as long before it tells again.
const REST: u32 = 4;

/// Calls a function soon after it was asked to: on the asking thread if the last call is long enough ago, else later on one of its own. Several requests may be
/// one call, which begins after each of them.
pub(crate) struct Teller {
    tell: Box<dyn Fn() + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Not before.
    next: Option<Instant>,
    /// A thread waits to call it.
    waits: bool,
}

impl Teller {
    pub(crate) fn new(tell: impl Fn() + Send + Sync + 'static) -> Arc<Teller> {
        Arc::new(Teller { tell: Box::new(tell), state: Mutex::default() })
    }

    /// Asks for a call.
    pub(crate) fn ask(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        if state.waits {
            return;
        }
        let left = state.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(Instant::now()));
        if !left.is_zero() && self.later(left) {
            state.waits = true;
        } else {
            self.call(&mut state);
        }
    }

    /// Calls it on another thread after a time. Says whether there is one.
    fn later(self: &Arc<Self>, left: Duration) -> bool {
        let this = Arc::clone(self);
        let work = move || {
            std::thread::sleep(left);
            let mut state = lock(&this.state);
            state.waits = false;
            this.call(&mut state);
        };
        std::thread::Builder::new().name("handloom-tell".into()).spawn(work).is_ok()
    }

    fn call(&self, state: &mut State) {
        let start = Instant::now();
        (self.tell)();
        state.next = Some(Instant::now() + REST * start.elapsed());
    }
}

impl fmt::Debug for Teller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Teller")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn each_request_is_followed_by_a_call() {
        let asked = Arc::new(AtomicU64::new(0));
        let (seen, calls) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let teller = {
            let (asked, seen, calls) = (Arc::clone(&asked), Arc::clone(&seen), Arc::clone(&calls));
            Teller::new(move || {
                seen.store(asked.load(Ordering::SeqCst), Ordering::SeqCst);
                calls.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(2));
            })
        };
        for _ in 0..200 {
            asked.fetch_add(1, Ordering::SeqCst);
            teller.ask();
        }
        let end = Instant::now() + Duration::from_secs(20);
        while seen.load(Ordering::SeqCst) < 200 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(seen.load(Ordering::SeqCst), 200);
        assert!(calls.load(Ordering::SeqCst) < 200, "requests that follow each other are told together");
    }
}
