//! `--check`: what is asked for, and what was found, as text and as JSON.

use std::collections::{BTreeMap, BTreeSet};

use handloom_runtime::{Allocated, CheckConfig, Checks, Engine, Finding, FoundAt, LaunchConfig, RaceOptions};
use serde::Serialize;

use crate::args::{EngineArg, FindArgs, RunArgs};
use crate::documents::{Case, Trapped, junit, sarif};
use crate::launch::Launched;
use crate::report::{Document, Failure, Format, Out, Status};
use crate::suppress::{Suppressions, line_of};

/// Asks for the checks of a command line in a launch.
///
/// # Errors
/// They cannot be done.
pub fn ask(args: &RunArgs, config: &mut LaunchConfig) -> Result<(), Failure> {
    let FindArgs { check: Some(checks), check_volatile, check_same_values, first, .. } = args.checks else {
        return Ok(());
    };
    if args.engine == Some(EngineArg::Jit) {
        return Err(Failure::usage("a checked launch runs on the interpreter: leave `--engine jit` out"));
    }
    let races = RaceOptions {
        strong_volatile: check_volatile,
        same_values: check_same_values,
        first,
        ..RaceOptions::default()
    };
    config.check = Some(CheckConfig { checks, races });
    config.engine = Engine::Interp;
    Ok(())
}

/// What was found at one pair of places.
#[derive(Debug)]
struct Found {
    finding: Finding,
    seed: u64,
    /// The launches that it was seen in, by number.
    launches: BTreeSet<usize>,
}

/// What the launches of a command found.
#[derive(Debug, Default)]
pub struct Collected {
    list: Vec<Found>,
    unchecked: Vec<String>,
    launches: usize,
    checks: Option<Checks>,
    suppressions: Suppressions,
    /// How many findings are not told.
    suppressed: usize,
    /// Memory that kernels allocated and that nobody freed yet, with the seed.
    allocated: BTreeMap<u64, (Allocated, u64)>,
    cases: Vec<Case>,
    only_first: bool,
    wants_leaks: bool,
}

impl Collected {
    /// Nothing yet.
    ///
    /// # Errors
    /// A file of suppressions cannot be read.
    pub fn new(args: &RunArgs) -> Result<Collected, Failure> {
        let FindArgs { check: checks, first: only_first, check_leaks: wants_leaks, .. } = args.checks;
        let suppressions = Suppressions::read(&args.checks.suppressions)?;
        Ok(Collected { checks, suppressions, only_first, wants_leaks, ..Collected::default() })
    }

    /// Whether there is a finding, and no more are asked for.
    pub fn is_enough(&self) -> bool {
        self.only_first && !self.list.is_empty()
    }

    /// Adds what the runs of a launch found.
    pub fn add(&mut self, entry: &str, done: &Launched, seed: u64) {
        let seconds = done.runs.iter().map(|run| run.run.as_secs_f64()).sum();
        let trap = done.trap.as_ref().map(|trap| Trapped::of(trap));
        self.cases.push(Case { entry: entry.to_owned(), seconds, trap });
        for run in &done.runs {
            self.launches += 1;
            let Some(check) = &run.check else { continue };
            self.unchecked.extend(check.unchecked.clone());
            for address in &check.freed {
                self.allocated.remove(address);
            }
            self.allocated.extend(check.allocated.iter().map(|a| (a.address, (a.clone(), seed))));
            for new in &check.findings {
                self.find(new.clone(), self.launches, seed);
            }
        }
    }

    /// Adds a finding of a launch.
    fn find(&mut self, new: Finding, launch: usize, seed: u64) {
        if self.suppressions.has(&new) {
            self.suppressed += 1;
            return;
        }
        let is_enough = self.is_enough();
        match self.list.iter_mut().find(|f| f.finding.is_same(&new)) {
            Some(f) => {
                f.finding.pairs += new.pairs;
                f.launches.insert(launch);
            }
            None if is_enough => {}
            None => self.list.push(Found { finding: new, seed, launches: BTreeSet::from([launch]) }),
        }
    }

    /// Shows all of it, up to the limit. Returns what it means for the command.
    pub fn report(&mut self, args: &FindArgs, out: &mut Out) -> Status {
        if self.wants_leaks {
            for (leak, seed) in std::mem::take(&mut self.allocated).into_values() {
                self.find(leak.leak(), self.launches, seed);
            }
        }
        self.write_document(out);
        let Some(_) = self.checks else { return Status::Done };
        for found in self.list.iter().take(args.print_limit) {
            match out.format {
                Format::Json => out.json(&Object::of(found, args)),
                Format::Human => {
                    let more =
                        if args.gen_suppressions { format!("\n  {}", line_of(&found.finding)) } else { String::new() };
                    let text = format!("{}\n  seen   {}{more}\n", found.finding.human(), self.seen(found));
                    out.say(&text);
                }
            }
        }
        let hidden = self.list.len().saturating_sub(args.print_limit);
        if hidden > 0 && out.format == Format::Human {
            let s = if hidden == 1 { "" } else { "s" };
            out.note(&format!("{hidden} more finding{s} not shown; `--print-limit N` shows more"));
        }
        if self.suppressed > 0 && out.format == Format::Human {
            let s = if self.suppressed == 1 { "" } else { "s" };
            out.note(&format!("{} finding{s} left out by suppressions", self.suppressed));
        }
        for why in &self.unchecked {
            out.error(&format!("the check ended before the launch did, and there may be more to find: {why}"));
        }
        match (self.list.is_empty(), self.unchecked.is_empty()) {
            (false, _) => Status::Found,
            (true, false) => Status::File,
            (true, true) => Status::Done,
        }
    }

    /// The document that standard output is for.
    fn write_document(&self, out: &mut Out) {
        let findings: Vec<&Finding> = self.list.iter().map(|f| &f.finding).collect();
        let text = match out.document {
            None => return,
            Some(Document::Sarif) => sarif(&self.cases, &findings),
            Some(Document::Junit) => junit(&self.cases, &findings),
        };
        out.write_document(&text);
    }

    /// `256 pairs at these two lines in 1 of 5 launches; replay: --seed 3`.
    fn seen(&self, found: &Found) -> String {
        let pairs = found.finding.pairs;
        let s = if pairs == 1 { "" } else { "s" };
        let (what, lines) = match (found.finding.kind, &found.finding.second) {
            ("race", _) => ("pair", "at these two lines"),
            (_, Some(_)) => ("time", "at these two lines"),
            (_, None) => ("time", "at this line"),
        };
        let launches = match self.launches {
            1 => String::new(),
            n => format!(" in {} of {n} launches", found.launches.len()),
        };
        format!("{pairs} {what}{s} {lines}{launches}; replay: --seed {}", found.seed)
    }
}

#[derive(Serialize)]
struct Object<'a> {
    finding: &'static str,
    class: &'static str,
    seed: u64,
    pairs: u64,
    launches: usize,
    first: Place<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    second: Option<Place<'a>>,
    data: Data<'a>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tried: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'static str>,
    replay: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppression: Option<String>,
}

#[derive(Serialize)]
struct Place<'a> {
    file: &'a str,
    line: u32,
    column: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_line: Option<u32>,
    statement: &'a str,
    access: &'static str,
    block: [u32; 3],
    thread: [u32; 3],
    order: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
}

#[derive(Serialize)]
struct Data<'a> {
    what: &'a str,
    size: u64,
    offset: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    element: Option<&'a str>,
}

impl<'a> Object<'a> {
    fn of(found: &'a Found, args: &FindArgs) -> Object<'a> {
        let f = &found.finding;
        Object {
            finding: f.kind,
            class: f.class,
            seed: found.seed,
            pairs: f.pairs,
            launches: found.launches.len(),
            first: Place::of(&f.first),
            second: f.second.as_ref().map(Place::of),
            data: Data {
                what: &f.data.what,
                size: f.data.size,
                offset: f.data.offset,
                bytes: f.data.bytes,
                element: f.data.element.as_deref(),
            },
            message: &f.message,
            tried: f.tried.as_deref(),
            fix: f.fix,
            replay: format!("--seed {}", found.seed),
            suppression: args.gen_suppressions.then(|| line_of(f)),
        }
    }
}

impl<'a> Place<'a> {
    fn of(at: &'a FoundAt) -> Place<'a> {
        Place {
            file: &at.file,
            line: at.line,
            column: at.column,
            source_file: at.source.as_ref().map(|(file, _)| file.as_str()),
            source_line: at.source.as_ref().map(|(_, line)| *line),
            statement: &at.statement,
            access: at.does,
            block: at.block,
            thread: at.thread,
            order: at.order,
            scope: at.scope,
        }
    }
}
