//! The counts of a run, line by line, for `explore`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use clap::Parser;
use handloom_ir::simt::Counting;
use handloom_profile::{Launch, grouped};

use crate::args::{Args, Command, ExploreArgs};
use crate::page::Count;
use crate::profile;
use crate::report::{Failure, Out, Status};

/// What lines of a PTX file and of its sources did.
#[derive(Debug)]
pub struct Counts {
    /// What was counted, in words.
    pub about: String,
    /// By line: statements of warps, lanes that acted.
    lines: BTreeMap<u32, (u64, u64)>,
    /// By file and line of the source.
    sources: BTreeMap<(String, u32), (u64, u64)>,
    /// The most statements of warps of a line, of the PTX and of a source.
    most: (u64, u64),
}

/// Reads what `profile` wrote, with the path.
///
/// # Errors
/// It cannot be read, or is something else.
pub fn read(path: &str) -> Result<(String, Vec<Launch>), Failure> {
    let (path, profile) = profile::base(path, "cannot be shown")?;
    Ok((path, profile.launches))
}

/// Runs the launch of a command line, and counts.
///
/// # Errors
/// What kept it from running.
pub fn launch(args: &ExploreArgs, grid: &str, out: &mut Out) -> Result<(Status, Vec<Launch>), Failure> {
    let block = args.block.unwrap_or([256, 1, 1]).map(|n| n.to_string()).join(",");
    let shared = args.shared.unwrap_or(0).to_string();
    let options = ["--grid", grid, "--block", &block, "--shared", &shared];
    let words = ["handloom", "run", &args.file].into_iter().chain(options).map(OsString::from);
    let words = words.chain([OsString::from("--")]).chain(args.rest.iter().map(OsString::from));
    let read = Args::try_parse_from(words).map_err(|e| {
        let text = e.to_string();
        Failure::usage(text.lines().next().unwrap_or("").trim_start_matches("error: "))
    })?;
    let Command::Run(run) = read.command else { return Err(Failure::usage("expected a launch")) };
    profile::count(&run, (Counting::All, None), out)
}

impl Counts {
    /// Those of launches, for the text of a PTX file.
    ///
    /// # Errors
    /// A sentence: they are of another file, or of another version of it.
    pub fn of(launches: &[Launch], text: &str, name: &str) -> Result<Counts, String> {
        let lines: Vec<&str> = text.lines().collect();
        let own = |file: &str| Path::new(file).file_name() == Path::new(name).file_name();
        let mut counts =
            Counts { about: String::new(), lines: BTreeMap::new(), sources: BTreeMap::new(), most: (0, 0) };
        let add = |to: &mut (u64, u64), warps: u64, active: u64| {
            to.0 += warps;
            to.1 += active;
        };
        let mut others: Vec<&str> = Vec::new();
        for row in launches.iter().flat_map(|l| &l.statements) {
            if !own(&row.file) {
                others.push(&row.file);
                continue;
            }
            let at = usize::try_from(row.line).ok().and_then(|n| lines.get(n.checked_sub(1)?)).map_or("", |l| *l);
            let first = row.text.lines().next().unwrap_or("").trim();
            if !at.contains(first) {
                return Err(format!(
                    "line {} of `{name}` is `{}`, and it was `{first}` when it was counted",
                    row.line,
                    at.trim()
                ));
            }
            add(counts.lines.entry(row.line).or_default(), row.warps, row.active);
            if let Some(place) = &row.source {
                add(counts.sources.entry((place.file.clone(), place.line)).or_default(), row.warps, row.active);
            }
        }
        if counts.lines.is_empty() {
            let what = others.first().map_or("nothing".to_owned(), |file| format!("`{file}`"));
            return Err(format!("what was counted is {what}, and not `{name}`"));
        }
        let most = |all: &mut dyn Iterator<Item = &(u64, u64)>| all.map(|(warps, _)| *warps).max().unwrap_or(0);
        counts.most = (most(&mut counts.lines.values()), most(&mut counts.sources.values()));
        let (runs, warps) = (launches.iter().map(|l| l.runs).sum(), counts.lines.values().map(|(n, _)| n).sum());
        let s = if runs == 1 { "" } else { "es" };
        counts.about = format!("{} launch{s}, {} instructions of warps", grouped(runs), grouped(warps));
        Ok(counts)
    }

    /// Those of a line of the PTX.
    pub fn of_line(&self, line: u32) -> Option<Count> {
        count(self.lines.get(&line), self.most.0)
    }

    /// Those of a line of the source.
    pub fn of_source(&self, file: &str, line: u32) -> Option<Count> {
        count(self.sources.get(&(file.to_owned(), line)), self.most.1)
    }
}

fn count(here: Option<&(u64, u64)>, most: u64) -> Option<Count> {
    let (warps, active) = *here?;
    let share = |part: u64, of: u64| if of == 0 { 0.0 } else { part as f64 / of as f64 };
    Some(Count { warps, heat: share(warps, most), lanes: share(active, 32 * warps) })
}
