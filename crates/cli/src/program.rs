//! A program while it runs: its signals, its end, and what ends it before.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

use crate::report::{Failure, reason};

/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(20);

/// How long a program has to end by itself once its time is over, when its kernels are stopped, and again once it was told to.
const PATIENCE: Duration = Duration::from_secs(1);

/// Signals that end programs.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Why a program was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Its time was over.
    Time,
    /// Something was found, and no more is asked for; or nobody wants to know any more.
    Enough,
}

/// Signals that are passed on.
pub struct Signals {
    seen: Arc<AtomicUsize>,
    /// The last one that ends programs, which stays.
    ending: Arc<AtomicUsize>,
    /// The terminal sends its own to the program as well.
    from_terminal: bool,
}

impl Signals {
    /// Takes them over.
    ///
    /// # Errors
    /// The host refuses.
    pub fn watch() -> Result<Signals, Failure> {
        let [seen, ending] = std::array::from_fn(|_| Arc::new(AtomicUsize::new(0)));
        let both = ENDING.iter().flat_map(|signal| [(*signal, &seen), (*signal, &ending)]);
        for (signal, to) in both.chain([(SIGUSR1, &seen), (SIGUSR2, &seen)]) {
            let number = usize::try_from(signal).unwrap_or(0);
            let set = signal_hook::flag::register_usize(signal, Arc::clone(to), number);
            set.map_err(|e| Failure::file(format!("signals cannot be watched: {}", reason(&e))))?;
        }
        Ok(Signals { seen, ending, from_terminal: std::io::stdin().is_terminal() })
    }

    /// The last signal that ends programs, if one came.
    pub fn ending(&self) -> Option<u8> {
        u8::try_from(self.ending.load(Ordering::Acquire)).ok().filter(|n| *n > 0)
    }

    fn pass_on(&self, to: Pid) {
        let number = i32::try_from(self.seen.swap(0, Ordering::AcqRel)).unwrap_or(0);
        let signal = match number {
            SIGINT if !self.from_terminal => Signal::INT,
            SIGTERM => Signal::TERM,
            SIGHUP => Signal::HUP,
            SIGUSR1 => Signal::USR1,
            SIGUSR2 => Signal::USR2,
            _ => return,
        };
        // It may have ended just now.
        let _ = kill_process(to, signal);
    }
}

/// Waits for the program, and passes signals on meanwhile. It is stopped, with all programs that it started, when its time is over or `is_enough`.
///
/// # Errors
/// The host refuses a thread.
pub fn wait(
    mut child: Child,
    signals: &Signals,
    limit: Option<Duration>,
    is_enough: &mut dyn FnMut() -> bool,
) -> std::io::Result<(ExitStatus, Option<Why>)> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let end_at = limit.and_then(|limit| Instant::now().checked_add(limit));
    let (ended, end) = mpsc::channel();
    std::thread::Builder::new().name("handloom-wait".into()).spawn(move || ended.send(child.wait()))?;
    // Why it is stopped, by which signal next, and when.
    let mut stopping: Option<(Why, Signal, Instant)> = None;
    loop {
        match end.recv_timeout(TICK) {
            Ok(status) => return Ok((status?, stopping.map(|(why, ..)| why))),
            Err(mpsc::RecvTimeoutError::Timeout) => pid.into_iter().for_each(|pid| signals.pass_on(pid)),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(std::io::Error::other("its watcher is gone")),
        }
        let now = Instant::now();
        if stopping.is_none() {
            stopping = match () {
                () if is_enough() => Some((Why::Enough, Signal::TERM, now)),
                () if end_at.is_some_and(|end| now >= end) => Some((Why::Time, Signal::TERM, now + PATIENCE)),
                () => None,
            };
        }
        if let Some((_, signal, at)) = &mut stopping
            && now >= *at
        {
            for pid in pid.into_iter().flat_map(family) {
                // It may have ended just now.
                let _ = kill_process(pid, *signal);
            }
            (*signal, *at) = (Signal::KILL, now + PATIENCE);
        }
    }
}

/// A process and all that it started, and those started, as far as they still belong to them.
fn family(first: Pid) -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        // The number of the parent is the second word after the name, which is in parentheses.
        let text = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = text.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        children.entry(parent.unwrap_or(0)).or_default().push(pid);
    }
    let mut all = vec![first.as_raw_nonzero().get()];
    let mut next = 0;
    while let Some(pid) = all.get(next) {
        all.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    all.into_iter().filter_map(Pid::from_raw).collect()
}
