//! `--check`: what is asked for, and what was found, as text and as JSON.

use std::collections::{BTreeMap, BTreeSet};

use handloom_runtime::{Check, CheckConfig, CheckReport, Engine, Finding, LaunchConfig, RaceOptions};
use serde::Serialize;

use crate::args::{EngineArg, FindArgs, RunArgs};
use crate::launch::{self, Launched};
use crate::report::{Failure, Format, Out, Status};

/// The checks of a command line, if it asks for some.
///
/// # Errors
/// They cannot be done.
pub fn asked(args: &FindArgs) -> Result<Option<CheckConfig>, Failure> {
    let FindArgs { check: Some(checks), check_volatile, check_same_values, .. } = *args else { return Ok(None) };
    if checks.has(Check::Init) {
        let rest = Check::ALL.into_iter().filter(|c| checks.has(*c) && *c != Check::Init).map(Check::word);
        let rest = rest.collect::<Vec<_>>().join(",");
        let help = if rest.is_empty() { String::new() } else { format!("; `--check={rest}` leaves it out") };
        let message = format!("the check `init` is not supported yet{help}");
        return Err(Failure { status: Status::Unsupported, message });
    }
    let races =
        RaceOptions { strong_volatile: check_volatile, same_values: check_same_values, ..RaceOptions::default() };
    Ok(Some(CheckConfig { checks, races }))
}

/// Asks for the checks of a command line in a launch.
///
/// # Errors
/// They cannot be done.
pub fn ask(args: &RunArgs, config: &mut LaunchConfig) -> Result<(), Failure> {
    let Some(check) = asked(&args.checks)? else { return Ok(()) };
    if args.engine == Some(EngineArg::Jit) {
        return Err(Failure::usage("a checked launch runs on the interpreter: leave `--engine jit` out"));
    }
    config.check = Some(check);
    config.engine = Engine::Interp;
    Ok(())
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

/// A trap that the first of several seeds did not have.
#[derive(Debug)]
struct Trapped {
    entry: String,
    launch: Launched,
    seed: u64,
    seeds: usize,
}

/// What the launches of a command found.
#[derive(Debug, Default)]
pub struct Collected {
    list: Vec<Found>,
    traps: Vec<Trapped>,
    unchecked: Vec<String>,
    launches: usize,
    /// Runs with different seeds, and the seed of this one.
    seeds: usize,
    seed: u64,
}

impl Collected {
    /// A run with a seed begins.
    pub fn begin(&mut self, seed: u64) {
        self.seeds += 1;
        self.seed = seed;
    }

    /// Adds what the runs of a launch found.
    pub fn add(&mut self, entry: &str, done: &Launched, seed: u64) {
        for run in &done.runs {
            match &run.check {
                Some(check) => self.add_launch(check, seed),
                None => self.launches += 1,
            }
        }
        if done.trap.is_some() {
            let (entry, launch) = (entry.to_owned(), done.clone());
            self.traps.push(Trapped { entry, launch, seed: self.seed, seeds: 1 });
        }
    }

    /// Adds what one run of a launch found.
    pub fn add_launch(&mut self, check: &CheckReport, seed: u64) {
        self.launches += 1;
        self.unchecked.extend(check.unchecked.clone());
        for new in &check.findings {
            let launches = BTreeSet::from([self.launches]);
            self.add_found(Found { finding: new.clone(), seed, launches, seeds: 1 }, 0);
        }
    }

    /// Counts a finding for its pair of places. `seeds`: with how many seeds more it was seen.
    fn add_found(&mut self, new: Found, seeds: usize) {
        match self.list.iter_mut().find(|f| f.finding.is_same(&new.finding)) {
            Some(f) => {
                f.finding.pairs += new.finding.pairs;
                f.launches.extend(new.launches);
                f.seeds += seeds;
            }
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
            let key = |t: &Trapped| {
                t.launch.trap.as_ref().map(|trap| (trap.kind(), trap.place().map(|(f, at)| (f.to_owned(), at))))
            };
            match self.traps.iter_mut().find(|t| key(t) == key(&new)) {
                Some(t) => t.seeds += new.seeds,
                None => self.traps.push(new),
            }
        }
        self.unchecked.extend(other.unchecked);
        self.launches += other.launches;
        self.seeds += other.seeds;
    }

    /// Notes why something was not checked.
    pub fn not_checked(&mut self, why: String) {
        self.unchecked.push(why);
    }

    /// How many there are of each kind, as `race`.
    pub fn kinds(&self) -> BTreeMap<&'static str, usize> {
        self.list.iter().fold(BTreeMap::new(), |mut all, found| {
            *all.entry(found.finding.kind).or_default() += 1;
            all
        })
    }

    /// Shows all of it, up to the limit. Returns what it means for the command.
    pub fn report(&self, args: &FindArgs, out: &mut Out) -> Status {
        for trap in self.traps.iter().filter(|_| self.seeds > 1) {
            // What the first seed met was told when it ran.
            if trap.seed != self.seed {
                launch::report(&trap.entry, &trap.launch, false, out);
            }
            out.note(&format!("seen with {} of {} seeds; replay: --seed {}", trap.seeds, self.seeds, trap.seed));
        }
        for found in self.list.iter().take(args.print_limit) {
            match out.format {
                Format::Json => out.json(&Object::of(found, self.seeds)),
                Format::Human => {
                    let text = format!("{}\n  seen   {}\n", found.finding.human(), self.seen(found));
                    out.say(&text);
                }
            }
        }
        let hidden = self.list.len().saturating_sub(args.print_limit);
        if hidden > 0 && out.format == Format::Human {
            let s = if hidden == 1 { "" } else { "s" };
            out.note(&format!("{hidden} more finding{s} not shown; `--print-limit N` shows more"));
        }
        for why in self.unchecked.iter().collect::<BTreeSet<_>>() {
            out.error(&format!("the check ended before the launch did, and there may be more to find: {why}"));
        }
        match (self.list.is_empty() && self.traps.is_empty(), self.unchecked.is_empty()) {
            (false, _) => Status::Found,
            (true, false) => Status::File,
            (true, true) => Status::Done,
        }
    }

    /// `256 pairs at these two lines in 1 of 5 launches; replay: --seed 3`.
    fn seen(&self, found: &Found) -> String {
        let pairs = found.finding.pairs;
        let s = if pairs == 1 { "" } else { "s" };
        if self.seeds > 1 {
            let (n, of, seed) = (found.seeds, self.seeds, found.seed);
            return format!("{n} of {of} seeds; {pairs} pair{s} at these two lines; replay: --seed {seed}");
        }
        let launches = match self.launches {
            1 => String::new(),
            n => format!(" in {} of {n} launches", found.launches.len()),
        };
        format!("{pairs} pair{s} at these two lines{launches}; replay: --seed {}", found.seed)
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
}

impl<'a> Object<'a> {
    fn of(found: &'a Found, seeds: usize) -> Object<'a> {
        let Found { finding, seed, launches, .. } = found;
        let of_seeds = |n: usize| (seeds > 1).then_some(n);
        let (seen, seeds) = (of_seeds(found.seeds), of_seeds(seeds));
        Object { finding, seed: *seed, launches: launches.len(), seen, seeds, replay: format!("--seed {seed}") }
    }
}
