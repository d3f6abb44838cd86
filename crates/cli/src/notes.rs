//! What the libraries of a program that ran under `exec` noted: traps, and what checks found.
//!
//! All processes of the program write lines of JSON into one file. A launch that is checked or counted leaves two marks, when it was given and when it is over,
//! so that those which the program did not wait for are known. What a process counted, and its trace, are files of their own.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek, SeekFrom};
use std::path::PathBuf;

use handloom_diag::names;
use handloom_profile::{Part, join};
use handloom_runtime::{CheckReport, Finding};
use serde::{Deserialize, Serialize};

use crate::args::FindArgs;
use crate::documents::{Case, NotedTrap};
use crate::findings::Collected;
use crate::report::{Failure, Format, Out, Status, reason};

/// The variable by which the libraries of a program find the file.
pub const FINDINGS: &str = "HANDLOOM_FINDINGS";

/// The file in which the libraries of all processes of the program note what they found.
pub struct Notes {
    /// A folder for what is more than a line.
    pub folder: PathBuf,
    /// Where it is.
    pub file: PathBuf,
}

/// A line of it.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Note {
    /// A kernel stopped.
    Trap(Trap),
    /// Something kept kernels from running: why.
    Refused { why: String },
    /// A launch that is to be checked was given.
    Given,
    /// A check found something for the first time in a process, which gave it a number.
    Finding { pid: u32, number: usize, found: Box<Finding> },
    /// It found it in a later launch too.
    Again { pid: u32, number: usize, pairs: u64 },
    /// A launch is over: what was found since the mark before was found in it. `unchecked`: why its check ended before.
    Checked { seed: u64, unchecked: Option<String> },
    /// So many launches were counted, and that was written.
    Counted { launches: u64 },
}

/// A kernel stopped.
#[derive(Deserialize)]
struct Trap {
    code: String,
    /// Its name.
    #[serde(default)]
    entry: Option<String>,
    #[serde(default)]
    trap: Option<serde_json::Value>,
    /// The report for a person.
    #[serde(default)]
    text: String,
}

/// Traps of one place, of runs with different seeds.
struct Stopped {
    trap: Trap,
    /// How many there were.
    times: usize,
    /// The seed of the first one, if there are several.
    seed: Option<u64>,
    /// With how many seeds they were seen.
    seeds: usize,
}

impl Stopped {
    fn is_same(&self, other: &Stopped) -> bool {
        let key = |of: &Stopped| {
            let fields = of.trap.trap.as_ref().map(|trap| ["kind", "file", "line", "column"].map(|f| trap[f].clone()));
            (of.trap.code.clone(), of.trap.entry.clone(), fields)
        };
        key(self) == key(other)
    }
}

/// A trap as JSON: the object of a launch that stopped, with the error that calls of the program returned.
#[derive(Serialize)]
struct Object<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    demangled: Option<String>,
    status: &'static str,
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    trap: Option<&'a serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seeds: Option<usize>,
}

impl Notes {
    /// An empty one, of a run with a seed of several.
    ///
    /// # Errors
    /// There is no room for temporary files.
    pub fn new(seed: Option<u64>) -> Result<Notes, Failure> {
        let of_seed = seed.map_or_else(String::new, |seed| format!("-{seed}"));
        let folder = std::env::temp_dir().join(format!("handloom-exec-{}{of_seed}", std::process::id()));
        std::fs::create_dir_all(&folder)
            .map_err(|e| Failure::file(format!("`{}`: {}", folder.display(), reason(&e))))?;
        let file = folder.join("findings");
        Ok(Notes { folder, file })
    }

    /// What the environment of the program, and of all that it starts, has and that of no other.
    pub fn mark(&self) -> OsString {
        let mut mark = OsString::from(format!("{FINDINGS}="));
        mark.push(&self.file);
        mark
    }

    /// What was noted, added to what is collected. `seed`: the one of several that the program ran with. `program` is what documents say of the program itself;
    /// `is_stopped`: it was not to end by itself, nor were its launches.
    pub fn read(
        &self,
        mut collected: Collected,
        args: &FindArgs,
        seed: Option<u64>,
        (program, is_stopped): (Case, bool),
    ) -> Read {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let notes = text.lines().filter_map(|l| serde_json::from_str(l).ok());
        seed.into_iter().for_each(|seed| collected.begin(seed));
        let mut read = Read::of(notes, collected, seed, args.check.is_some());
        if args.check.is_some() && read.left > 0 && !is_stopped {
            let (s, was) = if read.left == 1 { ("", "was") } else { ("es", "were") };
            let with = seed.map_or_else(String::new, |seed| format!(" with seed {seed}"));
            read.collected.not_checked(format!("{} launch{s} {was} not over when the program ended{with}", read.left));
        }
        read.collected.add_case(program);
        read
    }

    /// Whether a check has found something that is not left out. `looked` is how many bytes of the notes were looked at before.
    pub fn has_finding(&self, asked: &Collected, looked: &mut u64) -> bool {
        let mut new = Vec::new();
        let read = File::open(&self.file).and_then(|mut file| {
            file.seek(SeekFrom::Start(*looked))?;
            file.read_to_end(&mut new)
        });
        if read.is_err() {
            return false;
        }
        let whole = new.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        *looked += whole as u64;
        let is_finding = |line: &[u8]| match serde_json::from_slice(line) {
            Ok(Note::Finding { found, .. }) => !asked.is_suppressed(&found),
            Ok(_) | Err(_) => false,
        };
        new[..whole].split(|byte| *byte == b'\n').any(is_finding)
    }

    /// What all processes counted.
    pub fn counted(&self) -> Part {
        let mut all = Part::default();
        for part in self.files("json").filter_map(|text| Part::read(&text).ok()) {
            join(&mut all.launches, part.launches);
            all.texts.extend(part.texts);
            all.interpreted.extend(part.interpreted);
            all.timelines.join(part.timelines);
        }
        all.interpreted.sort_unstable();
        all.interpreted.dedup();
        all
    }

    /// Events of the traces of all processes.
    pub fn traced(&self) -> Vec<String> {
        let is_event = |line: &&str| line.starts_with('{') && serde_json::from_str::<serde_json::Value>(line).is_ok();
        let events = |text: String| -> Vec<String> {
            text.lines().map(|line| line.trim_end_matches(',')).filter(is_event).map(str::to_owned).collect()
        };
        self.files("trace").flat_map(events).collect()
    }

    /// The texts of the files of an ending, in the order of their names.
    fn files(&self, ending: &str) -> impl Iterator<Item = String> {
        let all = std::fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut all: Vec<PathBuf> = all.filter(|path| path.extension().is_some_and(|e| e == ending)).collect();
        all.sort_unstable();
        all.into_iter().filter_map(|path| std::fs::read_to_string(path).ok())
    }
}

/// What a program's kernels did wrong.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// What checks found, or that they were not done to the end.
    pub checks: Status,
    /// A kernel stopped.
    pub has_traps: bool,
    /// Launches that were not counted.
    pub left: u64,
}

/// `2 traps: CUDA_ERROR_ASSERT`.
fn counted(n: usize, what: &str, which: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {what}{s}: {which}")
}

/// All notes together.
pub struct Read {
    traps: Vec<Stopped>,
    collected: Collected,
    /// The seed of the first run, if there are several.
    seed: Option<u64>,
    /// How many runs there were.
    runs: usize,
    /// Launches that were given and whose end nobody noted.
    left: u64,
}

impl Read {
    /// Adds what was noted with another seed.
    pub fn join(&mut self, other: Read) {
        for new in other.traps {
            match self.traps.iter_mut().find(|known| known.is_same(&new)) {
                Some(known) => {
                    known.times += new.times;
                    known.seeds += new.seeds;
                }
                None => self.traps.push(new),
            }
        }
        self.collected.join(other.collected);
        self.runs += other.runs;
        self.left += other.left;
    }

    /// Whether there is a finding, and no more are asked for.
    pub fn is_enough(&self) -> bool {
        self.collected.is_enough()
    }

    /// Tells of traps what the program has not told itself.
    fn report_traps(&self, out: &mut Out) {
        for Stopped { trap, seed, seeds, .. } in &self.traps {
            let of_seeds = |n: usize| (self.runs > 1).then_some(n);
            if out.format == Format::Json && out.document.is_none() {
                let entry = trap.entry.as_deref();
                out.json(&Object {
                    entry,
                    demangled: entry.and_then(names::readable),
                    status: "trap",
                    code: &trap.code,
                    trap: trap.trap.as_ref(),
                    seed: *seed,
                    seen: of_seeds(*seeds),
                    seeds: of_seeds(self.runs),
                });
            } else if let Some(seed) = seed.filter(|_| self.runs > 1) {
                // Only the first run has a standard error of its own.
                if Some(seed) != self.seed && !trap.text.is_empty() {
                    out.say(&trap.text);
                }
                out.note(&format!("{} seen with {seeds} of {} seeds; replay: --seed {seed}", trap.code, self.runs));
            }
        }
    }

    /// Tells what was found: findings of checks in full, then all of it in a line. Returns what that means for the command.
    pub fn report(&self, args: &FindArgs, out: &mut Out) -> Summary {
        self.report_traps(out);
        let status = self.collected.report(args, out);
        let mut parts =
            self.collected.kinds().into_iter().map(|(kind, n)| counted(n, "finding", kind)).collect::<Vec<_>>();
        if !self.traps.is_empty() {
            let mut codes: Vec<&str> = self.traps.iter().map(|stopped| stopped.trap.code.as_str()).collect();
            codes.sort_unstable();
            codes.dedup();
            let times = self.traps.iter().map(|stopped| stopped.times).sum();
            parts.push(counted(times, "trap", &codes.join(", ")));
        }
        if !parts.is_empty() {
            let first = self
                .traps
                .first()
                .map_or(String::new(), |stopped| format!("; `handloom explain {}` says more", stopped.trap.code));
            out.say(&format!("handloom: {}{first}", parts.join("; ")));
        }
        Summary { checks: status, has_traps: !self.traps.is_empty(), left: self.left }
    }

    fn of(notes: impl Iterator<Item = Note>, collected: Collected, seed: Option<u64>, is_checked: bool) -> Read {
        let mut read = Read { traps: Vec::new(), collected, seed, runs: 1, left: 0 };
        let mut known: HashMap<(u32, usize), Finding> = HashMap::new();
        let (mut launch, mut given, mut over) = (CheckReport::default(), 0_u64, 0_u64);
        let mut last_seed = 0;
        for note in notes {
            match note {
                Note::Trap(trap) => {
                    let noted = trap.trap.clone().and_then(|trap| serde_json::from_value::<NotedTrap>(trap).ok());
                    if let Some(noted) = noted {
                        let entry = trap.entry.as_ref().unwrap_or(&trap.code).clone();
                        let trap = Some(noted.into());
                        read.collected.add_case(Case { what: "launch", entry, seconds: 0.0, trap, program: None });
                    }
                    let new = Stopped { trap, times: 1, seed, seeds: 1 };
                    match read.traps.iter_mut().find(|known| known.is_same(&new)) {
                        Some(known) => known.times += 1,
                        None => read.traps.push(new),
                    }
                }
                Note::Refused { why } if is_checked => read.collected.not_checked(why),
                Note::Refused { .. } => {}
                Note::Given => given += 1,
                Note::Finding { pid, number, found } => {
                    known.insert((pid, number), Finding::clone(&found));
                    launch.findings.push(*found);
                }
                Note::Again { pid, number, pairs } => {
                    let found = known.get(&(pid, number)).cloned();
                    launch.findings.extend(found.map(|found| Finding { pairs, ..found }));
                }
                Note::Counted { launches } => over += launches,
                Note::Checked { seed, unchecked } => {
                    over += 1;
                    last_seed = seed;
                    launch.unchecked = unchecked;
                    read.collected.add_launch(&std::mem::take(&mut launch), seed);
                }
            }
        }
        // What is behind the last launch is of launches together, as of two streams.
        launch.findings.into_iter().for_each(|found| read.collected.find(found, last_seed));
        read.left = given.saturating_sub(over);
        read
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
