//! `--check`: what is asked for, and what was found, as text and as JSON.

use std::collections::{BTreeMap, BTreeSet};

use handloom_ir::simt::Counting;
use handloom_profile::{Launch, Part};
use handloom_runtime::{Allocated, CheckConfig, CheckReport, Finding, LaunchConfig, RaceOptions, Tally};
use serde::Serialize;

use crate::args::{FindArgs, RunArgs};
use crate::documents::{Case, Told, Trapped, junit};
use crate::launch::{self, Launched};
use crate::report::{Document, Failure, Format, Out, Status};
use crate::sarif::sarif;
use crate::suppress::{Suppressions, line_of};

/// The checks of a command line, if it asks for some.
pub fn asked(args: &FindArgs) -> Option<CheckConfig> {
    let FindArgs { check: Some(checks), check_volatile, check_same_values, .. } = *args else { return None };
    let races = RaceOptions {
        strong_volatile: check_volatile,
        same_values: check_same_values,
        first: args.ends_launches(),
        ..RaceOptions::default()
    };
    Some(CheckConfig { checks, races })
}

/// Asks for the checks of a command line in a launch, for counts and for a trace.
pub fn ask(args: &RunArgs, config: &mut LaunchConfig) {
    config.check = asked(&args.checks).or(config.check);
    config.count = match args.counts {
        Counting::Nothing => None,
        Counting::Coverage => Some(Tally::coverage()),
        Counting::All => Some(Tally::default()),
    };
    config.trace.clone_from(&args.tracing);
}

/// What was found at one pair of places.
#[derive(Debug)]
struct Found {
    finding: Finding,
    /// The seed that it was first seen with.
    seed: u64,
    /// The launches that it was seen in, by number.
    launches: BTreeSet<usize>,
    /// How many seeds it was seen with.
    seeds: usize,
}

/// A trap, of a run with one of several seeds.
#[derive(Debug)]
struct SeedTrap {
    entry: String,
    launch: Launched,
    seed: u64,
    seeds: usize,
}

/// What the launches of a command found.
#[derive(Debug, Default)]
pub struct Collected {
    list: Vec<Found>,
    traps: Vec<SeedTrap>,
    unchecked: Vec<String>,
    /// Why something was not checked at all.
    missed: BTreeSet<String>,
    launches: usize,
    /// Runs with different seeds, and the seed of this one.
    seeds: usize,
    seed: u64,
    suppressions: Suppressions,
    /// Findings that are not told, one for each pair of places.
    suppressed: Vec<Finding>,
    /// Memory that kernels allocated and that nobody freed yet, with the seed.
    allocated: BTreeMap<u64, (Allocated, u64)>,
    cases: Vec<Case>,
    only_first: bool,
    wants_leaks: bool,
    counted: Vec<Launch>,
    /// Entries that compiled code did not count, and why.
    by_interpreter: BTreeSet<(String, &'static str)>,
}

impl Collected {
    /// Nothing yet.
    ///
    /// # Errors
    /// A file of suppressions cannot be read.
    pub fn new(args: &FindArgs) -> Result<Collected, Failure> {
        let FindArgs { first: only_first, check_leaks: wants_leaks, .. } = *args;
        let suppressions = Suppressions::read(&args.suppressions)?;
        Ok(Collected { suppressions, only_first, wants_leaks, ..Collected::default() })
    }

    /// Nothing yet, asked for the same.
    pub fn empty(&self) -> Collected {
        let Collected { only_first, wants_leaks, .. } = *self;
        Collected { suppressions: self.suppressions.clone(), only_first, wants_leaks, ..Collected::default() }
    }

    /// Whether there is a finding, and no more are asked for.
    pub fn is_enough(&self) -> bool {
        self.only_first && !self.list.is_empty()
    }

    /// Adds what was counted of a launch.
    pub fn count(&mut self, config: &LaunchConfig) {
        self.counted.extend(config.count.iter().flat_map(Tally::launches));
        self.by_interpreter.extend(config.count.iter().flat_map(Tally::interpreted));
    }

    /// Takes what was counted.
    pub fn take_counted(&mut self) -> Part {
        let interpreted = std::mem::take(&mut self.by_interpreter);
        let interpreted = interpreted.into_iter().map(|(entry, why)| (entry, why.to_owned())).collect();
        Part { launches: std::mem::take(&mut self.counted), interpreted, ..Part::default() }
    }

    /// A run with a seed begins.
    pub fn begin(&mut self, seed: u64) {
        self.seeds += 1;
        self.seed = seed;
    }

    /// The run is over: what is allocated now stays so.
    pub fn end(&mut self) {
        let left = std::mem::take(&mut self.allocated);
        if self.wants_leaks {
            for (leak, seed) in left.into_values() {
                self.find(leak.leak(), seed);
            }
        }
    }

    /// Adds what the runs of a launch found.
    pub fn add(&mut self, entry: &str, done: &Launched, seed: u64) {
        let seconds = done.runs.iter().map(|run| run.run.as_secs_f64()).sum();
        let trap = done.trap.as_ref().map(|trap| Trapped::of(trap));
        self.cases.push(Case { what: "launch", entry: entry.to_owned(), seconds, trap, program: None });
        for run in &done.runs {
            match &run.check {
                Some(check) => self.add_launch(check, seed),
                None => self.launches += 1,
            }
        }
        if done.trap.is_some() {
            let (entry, launch) = (entry.to_owned(), done.clone());
            self.traps.push(SeedTrap { entry, launch, seed: self.seed, seeds: 1 });
        }
    }

    /// Adds a case of the document alone.
    pub fn add_case(&mut self, case: Case) {
        self.cases.push(case);
    }

    /// Whether a finding is left out.
    pub fn is_suppressed(&self, finding: &Finding) -> bool {
        self.suppressions.has(finding)
    }

    /// Adds what one run of a launch found.
    pub fn add_launch(&mut self, check: &CheckReport, seed: u64) {
        self.launches += 1;
        self.unchecked.extend(check.unchecked.clone());
        for address in &check.freed {
            self.allocated.remove(address);
        }
        self.allocated.extend(check.allocated.iter().map(|a| (a.address, (a.clone(), seed))));
        for new in &check.findings {
            self.find(new.clone(), seed);
        }
    }

    /// Adds a finding of the last launch.
    pub fn find(&mut self, finding: Finding, seed: u64) {
        if self.suppressions.has(&finding) {
            self.suppress(finding);
            return;
        }
        let launches = BTreeSet::from([self.launches]);
        self.add_found(Found { finding, seed, launches, seeds: 1 }, 0);
    }

    /// Leaves a finding out.
    fn suppress(&mut self, finding: Finding) {
        if !self.suppressed.iter().any(|known| known.is_same(&finding)) {
            self.suppressed.push(finding);
        }
    }

    /// Counts a finding for its pair of places. `seeds`: with how many seeds more it was seen.
    fn add_found(&mut self, new: Found, seeds: usize) {
        let is_enough = self.is_enough();
        match self.list.iter_mut().find(|f| f.finding.is_same(&new.finding)) {
            Some(f) => {
                f.finding.pairs += new.finding.pairs;
                f.launches.extend(new.launches);
                f.seeds += seeds;
            }
            None if is_enough => {}
            None => self.list.push(new),
        }
    }

    /// Adds what was found with other seeds.
    pub fn join(&mut self, other: Collected) {
        for mut new in other.list {
            new.launches = new.launches.into_iter().map(|launch| launch + self.launches).collect();
            let seeds = new.seeds;
            self.add_found(new, seeds);
        }
        for new in other.traps {
            let key = |t: &SeedTrap| {
                t.launch.trap.as_ref().map(|trap| (trap.kind(), trap.place().map(|(f, at)| (f.to_owned(), at))))
            };
            match self.traps.iter_mut().find(|t| key(t) == key(&new)) {
                Some(t) => t.seeds += new.seeds,
                None => self.traps.push(new),
            }
        }
        self.cases.extend(other.cases);
        other.suppressed.into_iter().for_each(|finding| self.suppress(finding));
        self.unchecked.extend(other.unchecked);
        self.missed.extend(other.missed);
        self.launches += other.launches;
        self.seeds += other.seeds;
    }

    /// What is told: all but races of a copy that nothing has waited for. By the seed it happens before the access or after it, which is one fault by two names.
    fn told(&self) -> impl Iterator<Item = &Found> {
        let unwaited = self.list.iter().map(|f| &f.finding).filter(|f| f.class == "async_unwaited");
        let unwaited: Vec<&Finding> = unwaited.collect();
        let is_known = move |f: &Finding| f.kind == "race" && unwaited.iter().any(|other| f.is_at_places_of(other));
        self.list.iter().filter(move |found| !is_known(&found.finding))
    }

    /// Notes why something was not checked.
    pub fn not_checked(&mut self, why: String) {
        self.missed.insert(why);
    }

    /// How many there are of each kind, as `race`.
    pub fn kinds(&self) -> BTreeMap<&'static str, usize> {
        self.told().fold(BTreeMap::new(), |mut all, found| {
            *all.entry(found.finding.kind).or_default() += 1;
            all
        })
    }

    /// Shows all of it, up to the limit. Returns what it means for the command.
    pub fn report(&self, args: &FindArgs, out: &mut Out) -> Status {
        self.write_document(out);
        for trap in self.traps.iter().filter(|_| self.seeds > 1) {
            // What the first seed met was told when it ran.
            if trap.seed != self.seed {
                launch::report(&trap.entry, &trap.launch, false, out);
            }
            out.note(&format!("seen with {} of {} seeds; replay: --seed {}", trap.seeds, self.seeds, trap.seed));
        }
        for found in self.told().take(args.print_limit) {
            match out.format {
                Format::Json => out.json(&Object::of(found, self.seeds, args)),
                Format::Human => {
                    let more =
                        if args.gen_suppressions { format!("\n  {}", line_of(&found.finding)) } else { String::new() };
                    let text = format!("{}\n  seen   {}{more}\n", found.finding.human(), self.seen(found));
                    out.say(&text);
                }
            }
        }
        let hidden = self.told().count().saturating_sub(args.print_limit);
        let s = |n: usize| if n == 1 { "" } else { "s" };
        if hidden > 0 && out.format == Format::Human {
            out.note(&format!("{hidden} more finding{} not shown; `--print-limit N` shows more", s(hidden)));
        }
        let suppressed = self.suppressed.len();
        if suppressed > 0 && out.format == Format::Human {
            out.note(&format!("{suppressed} finding{} left out by suppressions", s(suppressed)));
        }
        self.unfinished().iter().for_each(|why| out.error(why));
        match (self.list.is_empty() && self.traps.is_empty(), self.unchecked.is_empty() && self.missed.is_empty()) {
            (false, _) => Status::Found,
            (true, false) => Status::File,
            (true, true) => Status::Done,
        }
    }

    /// Why there may be more to find, each reason once.
    fn unfinished(&self) -> Vec<String> {
        let ended = self.unchecked.iter().collect::<BTreeSet<_>>().into_iter();
        let ended =
            ended.map(|why| format!("the check ended before the launch did, and there may be more to find: {why}"));
        ended.chain(self.missed.iter().map(|why| format!("not all was checked: {why}"))).collect()
    }

    /// The document that standard output is for, if anything ran.
    fn write_document(&self, out: &mut Out) {
        let findings: Vec<&Finding> = self.told().map(|f| &f.finding).collect();
        let told = Told { cases: &self.cases, findings: &findings, unfinished: &self.unfinished() };
        let text = match out.document {
            None => return,
            Some(_) if self.cases.is_empty() => return,
            Some(Document::Sarif) => sarif(&told),
            Some(Document::Junit) => junit(&told),
        };
        out.write_document(&text);
    }

    /// `256 pairs at these two lines in 1 of 5 launches; replay: --seed 3`.
    fn seen(&self, found: &Found) -> String {
        let (n, seed) = (found.finding.pairs, found.seed);
        let s = if n == 1 { "" } else { "s" };
        if found.finding.is_of_host() {
            return format!("{n} time{s}");
        }
        let (what, lines) = match (found.finding.kind, &found.finding.second) {
            ("race", _) => ("pair", "at these two lines"),
            (_, Some(_)) => ("time", "at these two lines"),
            (_, None) => ("time", "at this line"),
        };
        if self.seeds > 1 {
            let (with, of) = (found.seeds, self.seeds);
            return format!("{with} of {of} seeds; {n} {what}{s} {lines}; replay: --seed {seed}");
        }
        let launches = match self.launches {
            1 => String::new(),
            all => format!(" in {} of {all} launches", found.launches.len()),
        };
        format!("{n} {what}{s} {lines}{launches}; replay: --seed {seed}")
    }
}

#[derive(Serialize)]
struct Object<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    seed: u64,
    launches: usize,
    /// With how many seeds it was seen, and how many there were, where there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seeds: Option<usize>,
    replay: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppression: Option<String>,
}

impl<'a> Object<'a> {
    fn of(found: &'a Found, seeds: usize, args: &FindArgs) -> Object<'a> {
        let Found { finding, seed, launches, .. } = found;
        let of_seeds = |n: usize| (seeds > 1).then_some(n);
        let (seen, seeds) = (of_seeds(found.seeds), of_seeds(seeds));
        let suppression = args.gen_suppressions.then(|| line_of(finding));
        let replay = format!("--seed {seed}");
        Object { finding, seed: *seed, launches: launches.len(), seen, seeds, replay, suppression }
    }
}
