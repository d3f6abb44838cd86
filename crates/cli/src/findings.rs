//! `--check`: what is asked for, and what was found, as text and as JSON.

use std::collections::BTreeSet;

use handloom_runtime::{Check, CheckConfig, Checks, Engine, Finding, FoundAt, LaunchConfig, LaunchReport, RaceOptions};
use serde::Serialize;

use crate::args::{EngineArg, FindArgs, RunArgs};
use crate::report::{Failure, Format, Out, Status};

/// Asks for the checks of a command line in a launch.
///
/// # Errors
/// They cannot be done.
pub fn ask(args: &RunArgs, config: &mut LaunchConfig) -> Result<(), Failure> {
    let FindArgs { check: Some(checks), check_volatile, check_same_values, .. } = args.checks else { return Ok(()) };
    if checks.has(Check::Init) {
        let rest = Check::ALL.into_iter().filter(|c| checks.has(*c) && *c != Check::Init).map(Check::word);
        let rest = rest.collect::<Vec<_>>().join(",");
        let help = if rest.is_empty() { String::new() } else { format!("; `--check={rest}` leaves it out") };
        let message = format!("the check `init` is not supported yet{help}");
        return Err(Failure { status: Status::Unsupported, message });
    }
    if args.engine == Some(EngineArg::Jit) {
        return Err(Failure::usage("a checked launch runs on the interpreter: leave `--engine jit` out"));
    }
    let races =
        RaceOptions { strong_volatile: check_volatile, same_values: check_same_values, ..RaceOptions::default() };
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
}

impl Collected {
    /// Nothing yet.
    pub fn new(args: &RunArgs) -> Collected {
        Collected { checks: args.checks.check, ..Collected::default() }
    }

    /// Adds what the runs of a launch found.
    pub fn add(&mut self, runs: &[LaunchReport], seed: u64) {
        for run in runs {
            self.launches += 1;
            let Some(check) = &run.check else { continue };
            self.unchecked.extend(check.unchecked.clone());
            for new in &check.findings {
                match self.list.iter_mut().find(|f| f.finding.is_same(new)) {
                    Some(f) => {
                        f.finding.pairs += new.pairs;
                        f.launches.insert(self.launches);
                    }
                    None => {
                        let (finding, launches) = (new.clone(), BTreeSet::from([self.launches]));
                        self.list.push(Found { finding, seed, launches });
                    }
                }
            }
        }
    }

    /// Shows all of it, up to the limit. Returns what it means for the command.
    pub fn report(&self, args: &FindArgs, out: &mut Out) -> Status {
        let Some(_) = self.checks else { return Status::Done };
        for found in self.list.iter().take(args.print_limit) {
            match out.format {
                Format::Json => out.json(&Object::of(found)),
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
        for why in &self.unchecked {
            out.error(&format!("the check ended before the launch did, and there may be more to find: {why}"));
        }
        match (self.list.is_empty(), self.unchecked.is_empty()) {
            (false, _) => Status::Found,
            (true, false) => Status::File,
            (true, true) => Status::Done,
        }
    }

    /// `256 pairs at these two lines in 1 of 5 launches; replay: --seed 3`.
    fn seen(&self, found: &Found) -> String {
        let pairs = found.finding.pairs;
        let s = if pairs == 1 { "" } else { "s" };
        let launches = match self.launches {
            1 => String::new(),
            n => format!(" in {} of {n} launches", found.launches.len()),
        };
        format!("{pairs} pair{s} at these two lines{launches}; replay: --seed {}", found.seed)
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
    fn of(found: &'a Found) -> Object<'a> {
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
