//! What a check found in a launch, as data and as text.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

pub use handloom_audit::misuse::Wrong as MisuseClass;
use handloom_audit::proof::{Area, Areas};
pub use handloom_audit::{Check, Checks, Class, Options};
use handloom_audit::{Does, Event, Touched as Range};
use handloom_diag::names;
use handloom_ir::types::StateSpace;
use serde::{Deserialize, Deserializer, Serialize};

/// What is asked of a checked launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CheckConfig {
    /// Which checks.
    pub checks: Checks,
    /// What counts as a race.
    pub races: Options,
}

/// Takes what the check of each launch found, by the name of its entry, when the launch is over, however it ended.
#[derive(Clone)]
pub struct CheckSink(Arc<TakeReport>);

type TakeReport = dyn Fn(&str, &CheckReport) + Send + Sync;

impl CheckSink {
    /// A sink that calls a function.
    pub fn new(take: impl Fn(&str, &CheckReport) + Send + Sync + 'static) -> CheckSink {
        CheckSink(Arc::new(take))
    }

    pub(crate) fn take(&self, entry: &str, report: &CheckReport) {
        (self.0)(entry, report);
    }
}

impl fmt::Debug for CheckSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CheckSink")
    }
}

/// What the check of a launch found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CheckReport {
    /// In the order in which they were met.
    pub findings: Vec<Finding>,
    /// Why the check ended before the launch did, if it did: there may be more than what was found.
    pub unchecked: Option<String>,
    /// Memory that kernels allocated in the launch and did not free.
    pub allocated: Vec<Allocated>,
    /// First addresses of memory of earlier launches that kernels freed.
    pub freed: Vec<u64>,
    /// Global memory that the launch touched, if that was asked for ([`Options::keeps_footprint`]).
    pub touched: Arc<Footprint>,
    /// All that the check was told, if that was asked for.
    pub events: Vec<Event>,
    /// Why the reference executor ran the launch, if compiled code could not tell all that was asked for.
    pub interpreted: Option<Word>,
    /// Nothing could be found, as was known before the launch ran: code ran that tells nothing.
    pub is_proven: bool,
}

/// Neighbouring bytes of global memory that something touched: a launch, a copy, a fill.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Touched {
    /// The first byte.
    pub address: u64,
    /// How many.
    pub bytes: u64,
    /// They were written, or else read.
    pub writes: bool,
    /// Only by atomics and other strong accesses that reach the whole device.
    pub is_strong: bool,
    /// Where.
    pub at: TouchedAt,
}

/// Where memory was touched, which is looked up when somebody asks. A clone is the same.
#[derive(Clone)]
pub struct TouchedAt(Arc<LazyLock<FoundAt, LookUp>>);

type LookUp = Box<dyn FnOnce() -> FoundAt + Send>;

impl TouchedAt {
    /// A place that a function finds.
    pub fn new(look_up: impl FnOnce() -> FoundAt + Send + 'static) -> TouchedAt {
        TouchedAt(Arc::new(LazyLock::new(Box::new(look_up))))
    }
}

impl Deref for TouchedAt {
    type Target = FoundAt;

    fn deref(&self) -> &FoundAt {
        &self.0
    }
}

impl PartialEq for TouchedAt {
    fn eq(&self, other: &TouchedAt) -> bool {
        **self == **other
    }
}

impl Eq for TouchedAt {}

impl fmt::Debug for TouchedAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TouchedAt")
    }
}

impl Touched {
    /// As an audit or a proof tells it.
    pub(crate) fn new(range: &Range, at: &TouchedAt) -> Touched {
        let Range { addr: address, bytes, writes, is_strong, .. } = *range;
        Touched { address, bytes, writes, is_strong, at: at.clone() }
    }

    /// By a call of the program.
    pub fn by_call(address: u64, bytes: u64, writes: bool, at: &TouchedAt) -> Touched {
        Touched { address, bytes, writes, is_strong: false, at: at.clone() }
    }
}

/// Global memory that a launch touched. Of launches that were known before they ran it is worked out when somebody asks.
#[derive(Debug, Default)]
pub struct Footprint {
    areas: Areas,
    /// By area: where.
    places: OnceLock<Vec<Option<TouchedAt>>>,
    all: OnceLock<Vec<Touched>>,
}

impl Footprint {
    /// Of ranges that are known.
    pub fn of(mut all: Vec<Touched>) -> Footprint {
        all.sort_by_key(|t| t.address);
        Footprint { all: all.into(), areas: Areas { is_all: true, ..Areas::default() }, ..Footprint::default() }
    }

    /// Of areas whose places are told before somebody asks ([`tell_places`](Self::tell_places)).
    pub(crate) fn of_areas(areas: Areas) -> Footprint {
        Footprint { areas, ..Footprint::default() }
    }

    /// Whether the launch has touched nothing else.
    pub fn is_all(&self) -> bool {
        self.areas.is_all
    }

    /// What was known before.
    pub(crate) fn areas(&self) -> &Areas {
        &self.areas
    }

    /// Says of each area where it is touched; `None`: nobody wants to know.
    pub(crate) fn tell_places(&self, of: impl FnMut(&Area) -> Option<TouchedAt>) {
        self.places.get_or_init(|| self.areas.list.iter().map(of).collect());
    }

    /// All of it, by address.
    pub fn ranges(&self) -> &[Touched] {
        self.all.get_or_init(|| {
            let places = self.places.get().into_iter().flatten();
            let areas =
                self.areas.list.iter().zip(places).filter_map(|(area, at)| Some((area.touched(), at.as_ref()?)));
            let all = areas.flat_map(|(ranges, at)| ranges.into_iter().map(|t| Touched::new(&t, at)));
            let mut all: Vec<Touched> = all.collect();
            all.sort_by_key(|t| t.address);
            all
        })
    }

    /// How many ranges it is known by.
    pub(crate) fn len(&self) -> usize {
        self.all.get().map_or(self.areas.list.len(), Vec::len)
    }
}

impl PartialEq for Footprint {
    fn eq(&self, other: &Footprint) -> bool {
        self.ranges() == other.ranges()
    }
}

impl Eq for Footprint {}

/// The ranges of two lists that overlap, of which one is written and not both are strong; none if threads of the two may tell each other something.
pub(crate) fn conflicts<'t>(a: &'t [Touched], b: &'t [Touched]) -> Vec<(&'t Touched, &'t Touched)> {
    let longest = a.iter().map(|t| t.bytes).max().unwrap_or(0);
    let mut found = Vec::new();
    for y in b {
        let from = a.partition_point(|x| x.address.saturating_add(longest) <= y.address);
        let near = a[from..].iter().take_while(|x| x.address < y.address + y.bytes);
        for x in near.filter(|x| y.address < x.address + x.bytes && (x.writes || y.writes)) {
            if x.is_strong && y.is_strong {
                return vec![];
            }
            found.push((x, y));
        }
    }
    found
}

/// Bytes that the threads of a launch read and wrote, access by access; an atomic does both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Read from global and constant memory.
    pub global_read: u64,
    /// Written to global memory.
    pub global_written: u64,
    /// Read from shared memory.
    pub shared_read: u64,
    /// Written to shared memory.
    pub shared_written: u64,
}

impl CheckReport {
    /// Counts of the accesses that the check was told, if events were asked for ([`Options::keeps_events`]) and it saw all of the launch.
    pub fn counts(&self) -> Option<Counts> {
        if self.events.is_empty() || self.unchecked.is_some() {
            return None;
        }
        let mut counts = Counts::default();
        for event in &self.events {
            let Event::Access { site, access } = event else { continue };
            let (read, written) = match site.space {
                StateSpace::Shared | StateSpace::SharedCluster => (&mut counts.shared_read, &mut counts.shared_written),
                _ => (&mut counts.global_read, &mut counts.global_written),
            };
            let bytes = u64::from(access.bytes);
            match site.does {
                Does::Fence => {}
                Does::Read => *read += bytes,
                Does::Write => *written += bytes,
                Does::Update | Does::Reduce | Does::Step => {
                    *read += bytes;
                    *written += if access.failed { 0 } else { bytes };
                }
            }
        }
        Some(counts)
    }
}

/// Memory that a kernel allocated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocated {
    /// Its first address.
    pub address: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Where.
    pub at: FoundAt,
}

impl Allocated {
    /// The finding that nobody freed it.
    pub fn leak(&self) -> Finding {
        let what = "memory from `malloc`".to_owned();
        let message = format!("{} bytes from `malloc` are never freed", self.bytes);
        let data = FoundIn { what, size: self.bytes, bytes: self.bytes, ..FoundIn::default() };
        Finding::new("leak", "malloc", message, (self.at.clone(), None), data)
    }
}

/// A word of reports. It has a name of its own, since what is read is made to live that long.
pub type Word = &'static str;

/// A fault of a program that a check saw. Its fields are those of the JSON object of a finding.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The stable word of its kind: `race`.
    #[serde(rename = "finding", deserialize_with = "word")]
    pub kind: Word,
    /// The stable word of its class, of which a kind may have several.
    #[serde(deserialize_with = "word")]
    pub class: Word,
    /// What happened, as a sentence.
    pub message: String,
    /// Where: the one that came first in the run.
    pub first: FoundAt,
    /// The other side of a race.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<FoundAt>,
    /// The memory that it is about.
    pub data: FoundIn,
    /// What the program did to order the two, and why it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "perhaps_word")]
    pub fix: Option<Word>,
    /// How many pairs of accesses it stands for, or how many accesses.
    pub pairs: u64,
}

/// A statement that some thread executed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FoundAt {
    /// `read`, `write`, `atomic`.
    #[serde(rename = "access", deserialize_with = "word")]
    pub does: Word,
    /// The PTX file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// File and line of the source, from `.loc`.
    #[serde(flatten, with = "source")]
    pub source: Option<(String, u32)>,
    /// The line of the source that calls the code of that one, where functions were inlined: the outermost call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<FoundLine>,
    /// Its text.
    pub statement: String,
    /// The block.
    pub block: [u32; 3],
    /// The thread in it.
    pub thread: [u32; 3],
    /// `weak`, `relaxed`, `acquire`.
    #[serde(deserialize_with = "word")]
    pub order: Word,
    /// `cta`, `gpu`; of a strong access.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "perhaps_word")]
    pub scope: Option<Word>,
}

/// A line of a source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FoundLine {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

/// Bytes that a finding is about.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FoundIn {
    /// What it is: `argument 2`, `variable count`, `shared variable tile`.
    pub what: String,
    /// Bytes of all of it; 0 if that is not known.
    pub size: u64,
    /// The first byte, counted from its start.
    pub offset: u64,
    /// How many; 0 where `what` says all.
    pub bytes: u64,
    /// The element, where the memory has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<String>,
}

/// How the line of a source is written: as two fields of the place, if it is known.
mod source {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct At {
        source_file: String,
        source_line: u32,
    }

    pub(super) fn serialize<S: Serializer>(at: &Option<(String, u32)>, to: S) -> Result<S::Ok, S::Error> {
        let at = at.clone().map(|(source_file, source_line)| At { source_file, source_line });
        at.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<(String, u32)>, D::Error> {
        let at = Option::<At>::deserialize(from)?;
        Ok(at.map(|at| (at.source_file, at.source_line)))
    }
}

/// Reads one of the words of reports, which live for ever: there are few of them, and each is kept once.
fn word<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let text = String::deserialize(from)?;
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = words.get(text.as_str()) {
        return Ok(known);
    }
    let new: &'static str = text.leak();
    words.insert(new);
    Ok(new)
}

/// The same where a word may be missing.
fn perhaps_word<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'static str>, D::Error> {
    word(from).map(Some)
}

impl FoundIn {
    /// Bytes of an allocation of the program.
    pub(crate) fn of_allocation(size: u64, offset: u64, bytes: u64) -> FoundIn {
        FoundIn { what: "an allocation".into(), size, offset, bytes, element: None }
    }

    /// `argument 2, 4096 bytes, bytes 0..3`.
    fn text(&self) -> String {
        if self.bytes == 0 {
            return self.what.clone();
        }
        let size = if self.size == 0 { String::new() } else { format!(", {} bytes", self.size) };
        let last = self.offset + self.bytes.saturating_sub(1);
        let element = self.element.as_ref().map_or(String::new(), |e| format!(" ({e})"));
        format!("{}{size}, bytes {}..{last}{element}", self.what, self.offset)
    }
}

/// Where the host did something, of which no place in a module is known.
const PROGRAM: &str = "(program)";

impl FoundAt {
    /// Somewhere in the program. `does`: what it does there.
    pub(crate) fn of_program(does: Word, statement: &str) -> FoundAt {
        FoundAt::of_call(does, statement, None)
    }

    /// A call of the program, and its line, if that is known.
    pub fn of_call(does: Word, call: &str, source: Option<(String, u32)>) -> FoundAt {
        FoundAt {
            does,
            file: PROGRAM.to_owned(),
            line: 1,
            column: 1,
            source,
            caller: None,
            statement: call.to_owned(),
            block: [0; 3],
            thread: [0; 3],
            order: "weak",
            scope: None,
        }
    }

    /// The opcode of the statement, with its qualifiers; of a call of the program its name.
    pub fn opcode(&self) -> &str {
        opcode(&self.statement)
    }

    /// Whether it is of what the host did, and has no place in a module.
    pub fn is_of_program(&self) -> bool {
        self.file == PROGRAM
    }
}

impl Finding {
    /// That a program never freed memory that it allocated, of so many bytes. `made`: the call that did it, if it is known.
    pub fn never_freed(address: u64, bytes: u64, made: Option<FoundAt>) -> Finding {
        let message = format!("{bytes} bytes at {address:#x} that the program allocated are never freed");
        let data = FoundIn::of_allocation(bytes, 0, bytes);
        let made = made.unwrap_or_else(|| FoundAt::of_program("make", "allocation"));
        Finding::new("leak", "malloc", message, (made, None), data)
    }

    /// That a call of the program copies bytes to the host of which nobody has written any: so many from an offset of an allocation.
    pub fn copied_unwritten(size: u64, offset: u64, bytes: u64, copy: FoundAt) -> Finding {
        let data = FoundIn::of_allocation(size, offset, bytes);
        let message = format!("what nobody wrote of {}+{offset} is copied to the host", data.what);
        Finding::new("uninitialised", "result", message, (copy, None), data)
    }

    /// A finding that stands for itself alone, and of which no more is known.
    pub(crate) fn new(
        kind: Word,
        class: Word,
        message: String,
        (first, second): (FoundAt, Option<FoundAt>),
        data: FoundIn,
    ) -> Finding {
        Finding { kind, class, message, first, second, data, tried: None, fix: None, pairs: 1 }
    }

    /// Whether it is of what the host did, and of no launch.
    pub fn is_of_host(&self) -> bool {
        self.first.is_of_program() && self.second.as_ref().is_none_or(FoundAt::is_of_program)
    }

    /// The report for a person: lines without a newline at the end.
    pub fn human(&self) -> String {
        let mut lines = vec![format!("{}: {} [{}]", self.kind, self.message, self.class.replace('_', " "))];
        let all: Vec<&FoundAt> = std::iter::once(&self.first).chain(&self.second).collect();
        let width = |of: fn(&FoundAt) -> String| all.iter().map(|at| of(at).chars().count()).max().unwrap_or(0);
        let (statement, source, place) =
            (width(|at| at.opcode().to_owned()), width(FoundAt::source), width(FoundAt::place));
        for at in &all {
            let [x, y, z] = at.block;
            let [tx, ty, tz] = at.thread;
            let (statement_of, source_of, place_of) = (at.opcode(), at.source(), at.place());
            let who = format!("  block ({x},{y},{z}) thread ({tx},{ty},{tz})");
            let who = if at.is_of_program() { String::new() } else { who };
            let line =
                format!("  {:6} {statement_of:statement$}  {source_of:source$}  {place_of:place$}{who}", at.does);
            lines.push(line.trim_end().to_owned());
            lines.extend(at.caller.iter().map(|FoundLine { file, line }| format!("  from   {file}:{line}")));
        }
        lines.push(format!("  data   {}", self.data.text()));
        lines.extend(names::notes([self.message.as_str()]).iter().map(|name| format!("  name   {name}")));
        lines.extend(self.tried.iter().map(|tried| format!("  tried  {tried}")));
        lines.extend(self.fix.iter().map(|fix| format!("  fix    {fix}")));
        lines.join("\n")
    }

    /// It as a JSON object, in one line.
    pub fn json(&self) -> String {
        // Nothing in it can fail to be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether another one is the same pair of places, for the same reason.
    pub fn is_same(&self, other: &Finding) -> bool {
        let key = |f: &Finding| {
            // What the host does alone and has no place is told apart by what is said of it.
            let is_placeless = f.is_of_host() && f.first.source.is_none();
            (f.kind, f.class, is_placeless.then(|| f.message.clone()))
        };
        key(self) == key(other) && self.is_at_places_of(other)
    }

    /// Whether it has the pair of places of another one, in either order.
    pub fn is_at_places_of(&self, other: &Finding) -> bool {
        let places = |f: &Finding| {
            let source = |at: &FoundAt| at.source.clone().filter(|_| at.is_of_program());
            let at = |at: &FoundAt| (at.file.clone(), at.line, at.column, source(at));
            match (at(&f.first), f.second.as_ref().map(at)) {
                (a, Some(b)) if b < a => (b, Some(a)),
                places => places,
            }
        };
        places(self) == places(other)
    }
}

impl FoundAt {
    fn place(&self) -> String {
        match self.statement.split_once(' ') {
            // The function, where that is all that is known of the place of a call.
            Some((_, function)) if self.is_of_program() => format!("{PROGRAM} {function}"),
            None if self.is_of_program() => PROGRAM.to_owned(),
            _ => format!("{}:{}", self.file, self.line),
        }
    }

    fn source(&self) -> String {
        self.source.as_ref().map_or(String::new(), |(file, line)| format!("{file}:{line}"))
    }
}

/// The opcode of a statement, with its qualifiers.
pub(crate) fn opcode(statement: &str) -> &str {
    let text = statement.trim_start();
    let guarded = text.starts_with('@').then(|| text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest));
    let text = guarded.unwrap_or(text).trim_start();
    text.split(|c: char| c.is_whitespace() || c == ';').next().unwrap_or("")
}
