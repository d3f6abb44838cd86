//! What the host does when: launches, code that is made, copies, blocks on its threads.
//!
//! All of it is time of the host, which says nothing of the time that a GPU would take.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use handloom_profile::{Piece, Timeline, Timelines};

use crate::lock::lock;
use crate::words::quoted;

/// Most pieces that a thread tells of a launch: neighbours are joined where there would be more.
const MOST: usize = 4096;

/// Grids of so many blocks or fewer run block by block while they are traced, so that each is a piece of its own.
const FEW: u64 = 4096;

/// A piece of work of the host.
#[derive(Clone, PartialEq, Debug)]
pub struct Traced {
    /// What sort of work it is.
    pub sort: &'static str,
    /// What it is called.
    pub name: String,
    /// The thread of the host, by a number of this process.
    pub thread: u32,
    /// When it began, in microseconds after the trace.
    pub begin_us: f64,
    /// How long it took, in microseconds.
    pub took_us: f64,
    /// What else there is to say of it: names and words.
    pub facts: Vec<(&'static str, String)>,
    /// Of a launch: what it ran.
    pub launch: Option<Launched>,
}

/// What a launch ran.
#[derive(Clone, PartialEq, Debug)]
pub struct Launched {
    /// Grid and block.
    pub shape: [[u32; 3]; 2],
    /// Its blocks.
    pub turns: Vec<Turn>,
}

/// Blocks that a thread of the host ran one after the other, or a part of one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Turn {
    /// The thread of the host.
    pub thread: u32,
    /// Number of the first block, x first.
    pub first: u64,
    /// How many there are.
    pub blocks: u64,
    /// When they began, in microseconds after the trace.
    pub begin_us: f64,
    /// How long they took, in microseconds.
    pub took_us: f64,
}

impl Traced {
    /// The events of a Chrome trace that it is, an object of JSON each. `process`: number of the process.
    pub fn events(&self, process: u32) -> Vec<String> {
        let facts: Vec<String> = self.facts.iter().map(|(k, v)| format!("{}:{}", quoted(k), quoted(v))).collect();
        let own = (self.name.as_str(), self.sort, self.thread, (self.begin_us, self.took_us));
        let turn = |turn: &Turn| {
            let name = match turn.blocks {
                1 => format!("block {}", turn.first),
                n => format!("blocks {} to {}", turn.first, turn.first + n - 1),
            };
            let fact = format!("\"entry\":{}", quoted(&self.name));
            event((&name, "blocks", turn.thread, (turn.begin_us, turn.took_us)), process, &fact)
        };
        let turns = self.launch.iter().flat_map(|launch| &launch.turns);
        std::iter::once(event(own, process, &facts.join(","))).chain(turns.map(turn)).collect()
    }

    /// Adds the blocks of a launch to those that are drawn.
    pub fn draw(&self, timelines: &mut Timelines) {
        let Some(launch) = &self.launch else { return };
        let piece = |turn: &Turn| Piece {
            thread: turn.thread,
            first: turn.first,
            last: turn.first + turn.blocks.max(1) - 1,
            blocks: turn.blocks,
            begin_us: turn.begin_us - self.begin_us,
            took_us: turn.took_us,
        };
        let pieces = launch.turns.iter().map(piece).collect();
        timelines.add(&self.name, launch.shape, Timeline::new(self.took_us, pieces));
    }
}

/// A complete event.
fn event((name, sort, thread, (begin, took)): (&str, &str, u32, (f64, f64)), process: u32, facts: &str) -> String {
    let (name, sort) = (quoted(name), quoted(sort));
    format!(
        "{{\"name\":{name},\"cat\":{sort},\"ph\":\"X\",\"pid\":{process},\"tid\":{thread},\"ts\":{begin:.3},\"dur\":{took:.3},\"args\":{{{facts}}}}}"
    )
}

/// Is told what the host does for launches ([`LaunchConfig::trace`](crate::LaunchConfig::trace)). A clone is the same.
#[derive(Clone)]
pub struct Trace(Arc<Inner>);

struct Inner {
    clock: Clock,
    take: Box<dyn Fn(Traced) + Send + Sync>,
}

impl Trace {
    /// One that begins now, and calls a function when a piece of work is over.
    pub fn new(take: impl Fn(Traced) + Send + Sync + 'static) -> Trace {
        Trace::since(None, take)
    }

    /// The same, of a trace that began at a time, for another process.
    pub fn since(begin: Option<SystemTime>, take: impl Fn(Traced) + Send + Sync + 'static) -> Trace {
        Trace(Arc::new(Inner { clock: Clock::new(begin), take: Box::new(take) }))
    }

    /// Tells of work of this thread that began at a time and is over now.
    pub fn tell(&self, sort: &'static str, name: &str, begin: Instant, facts: Vec<(&'static str, String)>) {
        self.tell_of((sort, name), (begin, begin.elapsed()), facts, None);
    }

    /// The same of work that took so long, of a launch with what it ran.
    pub(crate) fn tell_of(
        &self,
        (sort, name): (&'static str, &str),
        (begin, took): (Instant, Duration),
        facts: Vec<(&'static str, String)>,
        launch: Option<Launched>,
    ) {
        let (begin_us, took_us) = (self.0.clock.micros(begin), took.as_secs_f64() * 1e6);
        (self.0.take)(Traced { sort, name: name.to_owned(), thread: me(), begin_us, took_us, facts, launch });
    }

    /// Where the workers of a launch of so many units note what they run.
    pub(crate) fn log(&self, units: u64) -> Arc<TurnLog> {
        Arc::new(TurnLog { clock: self.0.clock, one_by_one: units <= FEW, all: Mutex::default() })
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trace")
    }
}

/// Turns times of this process into those of the trace.
#[derive(Clone, Copy, Debug)]
struct Clock {
    base: Instant,
    /// How long before that the trace began, in another process.
    before: Duration,
}

impl Clock {
    fn new(begin: Option<SystemTime>) -> Clock {
        let before = begin.and_then(|begin| begin.elapsed().ok()).unwrap_or_default();
        Clock { base: Instant::now(), before }
    }

    fn micros(&self, at: Instant) -> f64 {
        let (after, earlier) = (at.saturating_duration_since(self.base), self.base.saturating_duration_since(at));
        ((self.before + after).as_secs_f64() - earlier.as_secs_f64()) * 1e6
    }
}

/// The number of this thread, from 1 in the order in which threads ask.
fn me() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local!(static ME: Cell<u32> = const { Cell::new(0) });
    ME.with(|me| {
        if me.get() == 0 {
            me.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        me.get()
    })
}

/// What the workers of a launch ran.
#[derive(Debug)]
pub(crate) struct TurnLog {
    clock: Clock,
    /// Units are to run one at a time, for a piece each.
    pub(crate) one_by_one: bool,
    all: Mutex<Vec<Turn>>,
}

impl TurnLog {
    /// All of it, of a launch that is over.
    pub(crate) fn take(&self) -> Vec<Turn> {
        std::mem::take(&mut *lock(&self.all))
    }
}

/// What one of them runs.
#[derive(Debug)]
pub(crate) struct Turns<'g> {
    log: &'g TurnLog,
    thread: u32,
    list: Vec<Turn>,
    /// Units of which neighbours are joined.
    joined: u64,
}

impl<'g> Turns<'g> {
    /// Of a worker that begins.
    pub(crate) fn new(log: &'g TurnLog) -> Turns<'g> {
        Turns { log, thread: me(), list: Vec::new(), joined: 1 }
    }

    /// Notes that units ran since a time, or one of them in part.
    pub(crate) fn add(&mut self, first: u64, blocks: u64, begin: Instant) {
        let took_us = begin.elapsed().as_secs_f64() * 1e6;
        let begin_us = self.log.clock.micros(begin);
        let new = Turn { thread: self.thread, first, blocks, begin_us, took_us };
        match self.list.last_mut() {
            Some(last) if last.blocks < self.joined && last.first + last.blocks == first => last.join(&new),
            _ => self.list.push(new),
        }
        if self.list.len() >= MOST {
            self.joined *= 2;
            let mut joined: Vec<Turn> = Vec::with_capacity(MOST);
            for turn in std::mem::take(&mut self.list) {
                match joined.last_mut() {
                    Some(last) if last.blocks < self.joined && last.first + last.blocks == turn.first => {
                        last.join(&turn)
                    }
                    _ => joined.push(turn),
                }
            }
            // Units that take turns have no neighbours: the first pieces are what is left of them.
            joined.truncate(MOST - 1);
            self.list = joined;
        }
    }
}

impl Turn {
    /// Adds units that follow it.
    fn join(&mut self, next: &Turn) {
        self.blocks += next.blocks;
        self.took_us = next.begin_us + next.took_us - self.begin_us;
    }
}

impl Drop for Turns<'_> {
    fn drop(&mut self) {
        lock(&self.log.all).append(&mut self.list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_joined_where_there_are_many() {
        let trace = Trace::new(|_| {});
        let log = trace.log(1);
        let mut turns = Turns::new(&log);
        let n = 5 * MOST as u64;
        for i in 0..n {
            turns.add(i, 1, Instant::now());
        }
        drop(turns);
        let all = lock(&log.all);
        assert!(all.len() < MOST && all.len() > MOST / 4, "{}", all.len());
        assert_eq!(all.iter().map(|t| t.blocks).sum::<u64>(), n);
        assert!(all.windows(2).all(|w| w[0].first + w[0].blocks == w[1].first));
    }

    #[test]
    fn events_are_json() {
        let turn = Turn { thread: 2, first: 3, blocks: 2, begin_us: 10.0, took_us: 1.5 };
        let facts = vec![("grid", "4,1,1".to_owned())];
        let (sort, name) = ("launch", "k<\"a\">".to_owned());
        let launch = Some(Launched { shape: [[4, 1, 1], [32, 1, 1]], turns: vec![turn] });
        let one = Traced { sort, name, thread: 1, begin_us: 9.0, took_us: 4.0, facts, launch };
        let events: Vec<serde_json::Value> =
            one.events(7).iter().map(|e| serde_json::from_str(e).expect("it is JSON")).collect();
        assert_eq!(events[0]["name"], "k<\"a\">");
        assert_eq!((&events[0]["ph"], &events[0]["args"]["grid"]), (&"X".into(), &"4,1,1".into()));
        assert_eq!(
            (&events[1]["name"], &events[1]["tid"], &events[1]["pid"]),
            (&"blocks 3 to 4".into(), &2.into(), &7.into())
        );
    }
}
