//! A program while it runs: its signals, its end, and what ends it before.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
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

/// Waits for the program, and passes signals on meanwhile. It is stopped, with all programs that it started, when its time is over or `is_enough`. `mark` is
/// what their environment has and that of no other program.
///
/// # Errors
/// The host refuses a thread.
pub fn wait(
    mut child: Child,
    mark: &OsStr,
    signals: &Signals,
    limit: Option<Duration>,
    is_enough: &mut dyn FnMut() -> bool,
) -> std::io::Result<(ExitStatus, Option<Why>)> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let end_at = limit.and_then(|limit| Instant::now().checked_add(limit));
    let is_late = |now: Instant| end_at.is_some_and(|end| now >= end);
    let (ended, end) = mpsc::channel();
    std::thread::Builder::new().name("handloom-wait".into()).spawn(move || ended.send(child.wait()))?;
    // Why it is stopped, by which signal next, and when.
    let mut stopping: Option<(Why, Signal, Instant)> = None;
    loop {
        match end.recv_timeout(TICK) {
            Ok(status) => {
                // What it started may go on without it.
                if stopping.is_some() || is_late(Instant::now()) {
                    end_rest(mark);
                }
                return Ok((status?, stopping.map(|(why, ..)| why)));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => pid.into_iter().for_each(|pid| signals.pass_on(pid)),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(std::io::Error::other("its watcher is gone")),
        }
        let now = Instant::now();
        if stopping.is_none() {
            stopping = match () {
                () if is_enough() => Some((Why::Enough, Signal::TERM, now)),
                () if is_late(now) => Some((Why::Time, Signal::TERM, now + PATIENCE)),
                () => None,
            };
        }
        if let Some((_, signal, at)) = &mut stopping
            && now >= *at
        {
            tell(&family(pid, mark), *signal);
            (*signal, *at) = (Signal::KILL, now + PATIENCE);
        }
    }
}

/// Sends a signal to processes.
fn tell(all: &[Pid], signal: Signal) {
    for pid in all {
        // It may have ended just now.
        let _ = kill_process(*pid, signal);
    }
}

/// Ends what a program that has ended started and that goes on: first each is told to end, later those that do not want to are ended.
fn end_rest(mark: &OsStr) {
    for signal in [Signal::TERM, Signal::KILL] {
        tell(&family(None, mark), signal);
        let begin = Instant::now();
        while !family(None, mark).is_empty() {
            if begin.elapsed() >= PATIENCE {
                break;
            }
            std::thread::sleep(TICK);
        }
    }
}

/// A process and all whose environment has a mark, and all that these started, and those started, but for those that have ended and that nobody waits for.
fn family(first: Option<Pid>, mark: &OsStr) -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let mut all: Vec<i32> = first.into_iter().map(|pid| pid.as_raw_nonzero().get()).collect();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        // State and number of the parent are the first two words after the name, which is in parentheses.
        let text = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let mut words = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        if words.next() == Some("Z") {
            continue;
        }
        let parent = words.next().and_then(|word| word.parse().ok());
        children.entry(parent.unwrap_or(0)).or_default().push(pid);
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()) && !all.contains(&pid) {
            all.push(pid);
        }
    }
    let mut next = 0;
    while let Some(pid) = all.get(next) {
        let more = children.remove(pid).unwrap_or_default();
        all.extend(more.into_iter().filter(|pid| !all.contains(pid)).collect::<Vec<_>>());
        next += 1;
    }
    all.into_iter().filter_map(Pid::from_raw).collect()
}
