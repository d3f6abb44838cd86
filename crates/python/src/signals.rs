//! Ctrl-C while a kernel runs.
//!
//! Python notes a signal and acts on it when its main thread runs Python code again, which a kernel does not. So before a kernel runs on the main thread, our handler is
//! put before Python's: it stops the kernel and calls Python's, and the launch asks Python whether to raise.

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use handloom_runtime::StopHandle;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::FORKS;
use libc::{SIG_DFL, SIG_IGN, SIGINT, c_int, c_void, siginfo_t};

/// Ends what runs on the main thread.
static STOP: OnceLock<StopHandle> = OnceLock::new();
/// A kernel runs there.
static RUNS: AtomicBool = AtomicBool::new(false);
/// The handler that was there before ours, and whether it takes three arguments.
static BEFORE: AtomicUsize = AtomicUsize::new(0);
static BEFORE_TAKES_INFO: AtomicBool = AtomicBool::new(false);

extern "C" fn handler(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    if RUNS.load(Ordering::Acquire)
        && let Some(stop) = STOP.get()
    {
        stop.stop();
    }
    let before = BEFORE.load(Ordering::Acquire);
    if before == SIG_DFL || before == SIG_IGN {
        return;
    }
    if BEFORE_TAKES_INFO.load(Ordering::Acquire) {
        // SAFETY: the system gave this address as that of the handler in use, with the flag that says that it takes these arguments.
        let call = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int, *mut siginfo_t, *mut c_void)>(before) };
        call(signal, info, context);
    } else {
        // SAFETY: the same, without the flag.
        let call = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(before) };
        call(signal);
    }
}

/// Puts our handler before the one in use, unless it is there, or signals are not handled at all.
fn install() {
    let ours = handler as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
    // SAFETY: a `sigaction` is plain numbers, for which zeros are allowed.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: asks for the handler in use; `now` can be written.
    let asked = unsafe { libc::sigaction(SIGINT, std::ptr::null(), &raw mut now) };
    if asked != 0 || now.sa_sigaction == ours || now.sa_sigaction == SIG_DFL || now.sa_sigaction == SIG_IGN {
        return;
    }
    BEFORE_TAKES_INFO.store(now.sa_flags & libc::SA_SIGINFO != 0, Ordering::Release);
    BEFORE.store(now.sa_sigaction, Ordering::Release);
    now.sa_sigaction = ours;
    now.sa_flags |= libc::SA_SIGINFO;
    // SAFETY: our handler only stores words and calls the handler that was there.
    unsafe { libc::sigaction(SIGINT, &raw const now, null_mut()) };
}

/// How long it is believed that our handler is still the first, as long as Python's has not changed: to ask the system takes as long as a small launch.
const BELIEVED: Duration = Duration::from_millis(1);

/// When the system was asked last, and which handler Python had then.
static ASKED: Mutex<Option<(Instant, usize)>> = Mutex::new(None);

/// Puts our handler before the one in use, if that may have changed.
fn look_after(py: Python<'_>) -> PyResult<()> {
    static GETSIGNAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let getsignal =
        GETSIGNAL.get_or_try_init(py, || Ok::<_, PyErr>(py.import("_signal")?.getattr("getsignal")?.unbind()))?;
    let now = getsignal.bind(py).call1((SIGINT,))?.as_ptr() as usize;
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if asked.is_none_or(|(when, before)| before != now || when.elapsed() > BELIEVED) {
        install();
        *asked = Some((Instant::now(), now));
    }
    Ok(())
}

/// Whether this is the main thread. Each thread asks the system once, and again in the child of a fork.
pub(crate) fn is_main() -> bool {
    thread_local! {
        static KNOWN: Cell<Option<(u64, bool)>> = const { Cell::new(None) };
    }
    let forks = FORKS.load(Ordering::Acquire);
    match KNOWN.get() {
        Some((then, is_main)) if then == forks => is_main,
        Some(_) | None => {
            // SAFETY: both only return numbers.
            let is_main = unsafe { libc::gettid() == libc::getpid() };
            KNOWN.set(Some((forks, is_main)));
            is_main
        }
    }
}

/// What ends a launch of this thread.
pub(crate) fn stop() -> StopHandle {
    static NEVER: OnceLock<StopHandle> = OnceLock::new();
    let stop = if is_main() { &STOP } else { &NEVER };
    stop.get_or_init(StopHandle::new).clone()
}

/// A launch that Ctrl-C ends, if it runs on the main thread.
pub(crate) struct Interruptible {
    is_main: bool,
}

impl Interruptible {
    /// From here on a signal ends launches with the handle of [`stop`].
    pub(crate) fn begin(py: Python<'_>) -> PyResult<Interruptible> {
        let is_main = is_main();
        if is_main {
            STOP.get_or_init(StopHandle::new).renew();
            RUNS.store(true, Ordering::Release);
            look_after(py)?;
        }
        Ok(Interruptible { is_main })
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        if self.is_main {
            RUNS.store(false, Ordering::Release);
            // A prepared launch of this thread may be run by another one, which is not stopped by what was for this one.
            STOP.get_or_init(StopHandle::new).renew();
        }
    }
}
