//! `handloom profile`: what launches do, counted.
//!
//! The launches are those of `run`, by code that counts. Whether reports can be written, and whether a base can be read, is found out
//! before anything runs.

use std::collections::BTreeSet;
use std::path::Path;

use handloom_ir::simt::Counting;
use handloom_profile::cover::Coverage;
use handloom_profile::{Device, Launch, Profile, Row, Texts, compare, cover_page, place_on, profile_page, summary};
use serde::Serialize;

use crate::args::{ProfileArgs, RunArgs};
use crate::findings::Collected;
use crate::input;
use crate::launch::source_text;
use crate::outputs::{Output, Store, open_all};
use crate::report::{Failure, Format, Out, Status};
use crate::seeds;
use crate::watch::Watch;

/// Counts launches and reports.
///
/// # Errors
/// What kept it from running, a base that does not fit, or a report that cannot be written.
pub fn profile(args: &ProfileArgs, out: &mut Out) -> Result<Status, Failure> {
    let device = args.device.as_deref().map(Device::named).transpose().map_err(Failure::usage)?;
    let base = args.compare.as_deref().map(|path| base(path, "cannot be compared with")).transpose()?;
    let own = env!("CARGO_PKG_VERSION");
    if let Some((path, other)) = base.as_ref().filter(|(_, base)| base.handloom != own) {
        let text = format!(
            "`{path}` was counted by Handloom {}, and this is {own}: what differs may be how it counts",
            other.handloom
        );
        out.note(&text);
    }
    let endings = args.output.iter().map(|path| Ending::of(path)).collect::<Result<Vec<_>, _>>()?;
    let outputs = open(&args.output)?;
    let (status, mut launches) = count(&args.run, Counting::All, out)?;
    for launch in &mut launches {
        launch.keep_functions_that_ran();
        if let Some(device) = &device {
            place_on(device, launch, args.regs);
        }
    }
    let profile = Profile::new(own, launches);
    let compared = base.map(|(path, base)| {
        let wrong = |why| Failure::usage(format!("`{path}` cannot be compared with: {why}"));
        compare::compare(&base, &profile).map_err(wrong)
    });
    let changes = compared.as_ref().and_then(|c| c.as_deref().ok()).unwrap_or_default();
    match out.format {
        Format::Json => out.json(&profile),
        Format::Human => out.write(summary(&profile).as_bytes()),
    }
    for (output, ending) in outputs.into_iter().zip(endings) {
        output.write(profile_text(ending, &profile, changes)?.as_bytes())?;
    }
    let Some(changes) = compared.transpose()? else { return Ok(status) };
    let text = compare::text(&changes, args.threshold);
    match out.format {
        Format::Json => out.say(text.trim_end()),
        Format::Human => out.write(text.as_bytes()),
    }
    let is_above = changes.iter().any(|c| !c.above(args.threshold).is_empty());
    Ok(if is_above { status.max(Status::Found) } else { status })
}

/// Reports of the counts of a run that has another purpose.
pub struct Reports {
    profile: Vec<(Ending, Output)>,
    cover: Vec<(Ending, Output)>,
}

impl Reports {
    /// Those that a command line asks for.
    ///
    /// # Errors
    /// One cannot be written.
    pub fn open(args: &RunArgs) -> Result<Reports, Failure> {
        let endings = |paths: &[String]| paths.iter().map(|path| Ending::of(path)).collect::<Result<Vec<_>, _>>();
        let (profile, cover) = (endings(&args.profile)?, endings(&args.cover)?);
        let all: Vec<String> = args.profile.iter().chain(&args.cover).cloned().collect();
        let mut outputs = open(&all)?;
        let of_cover = outputs.split_off(profile.len());
        Ok(Reports {
            profile: profile.into_iter().zip(outputs).collect(),
            cover: cover.into_iter().zip(of_cover).collect(),
        })
    }

    /// What is to be counted for them.
    pub fn level(&self) -> Counting {
        match (self.profile.is_empty(), self.cover.is_empty()) {
            (false, _) => Counting::All,
            (true, false) => Counting::Coverage,
            (true, true) => Counting::Nothing,
        }
    }

    /// Writes them.
    ///
    /// # Errors
    /// One cannot be written.
    pub fn write(self, found: &mut Collected, out: &mut Out) -> Result<(), Failure> {
        tell_interpreted(found, out);
        let mut launches = found.take_counted();
        let coverage = Coverage::of(env!("CARGO_PKG_VERSION"), &launches);
        for (ending, output) in self.cover {
            output.write(cover_text(ending, &coverage)?.as_bytes())?;
        }
        launches.iter_mut().for_each(Launch::keep_functions_that_ran);
        let profile = Profile::new(env!("CARGO_PKG_VERSION"), launches);
        for (ending, output) in self.profile {
            output.write(profile_text(ending, &profile, &[])?.as_bytes())?;
        }
        Ok(())
    }
}

/// Says which launches compiled code did not count.
fn tell_interpreted(found: &mut Collected, out: &mut Out) {
    for (entry, why) in found.take_interpreted() {
        out.note(&format!("`{entry}` was counted by the interpreter, on one thread, lane by lane: {why}"));
    }
}

/// A profile as a report.
fn profile_text(ending: Ending, profile: &Profile, changes: &[compare::Changes]) -> Result<String, Failure> {
    match ending {
        Ending::Json => json_line(profile),
        Ending::Html => {
            Ok(profile_page(profile, &texts_of(profile.launches.iter().flat_map(|l| &l.statements)), changes))
        }
    }
}

/// A coverage as a report.
///
/// # Errors
/// A fault of ours.
pub fn cover_text(ending: Ending, coverage: &Coverage) -> Result<String, Failure> {
    match ending {
        Ending::Json => json_line(coverage),
        Ending::Html => Ok(cover_page(coverage, &texts_of(&coverage.statements))),
    }
}

/// Runs what a command line says, and counts. Each launch is told of as far as it came.
///
/// # Errors
/// What kept it from running.
pub fn count(args: &RunArgs, level: Counting, out: &mut Out) -> Result<(Status, Vec<Launch>), Failure> {
    if !args.profile.is_empty() || !args.cover.is_empty() {
        return Err(Failure::usage("`--profile` and `--cover` are for `run`: here, `-o FILE` writes a report"));
    }
    if args.checks.check.is_some() {
        return Err(Failure::usage("launches are counted as they run without checks: leave `--check` out"));
    }
    out.only_trouble();
    let watch = Watch::start(out)?;
    let mut found = Collected::new(&args.checks)?;
    let args = RunArgs { counts: level, ..args.clone() };
    let status = seeds::once(&args, &watch, &mut found, &mut |_| Ok(Status::Done), out)?;
    tell_interpreted(&mut found, out);
    Ok((status, found.take_counted()))
}

/// Files that will be written.
///
/// # Errors
/// One cannot be.
pub fn open(paths: &[String]) -> Result<Vec<Output>, Failure> {
    let stores: Vec<Store> = paths.iter().map(|path| Store::to(path)).collect();
    open_all(stores.iter())
}

/// What a report is, by the ending of its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Data.
    Json,
    /// A page.
    Html,
}

impl Ending {
    /// That of a path.
    ///
    /// # Errors
    /// It has another one.
    pub fn of(path: &str) -> Result<Ending, Failure> {
        match Path::new(path).extension().and_then(|e| e.to_str()) {
            Some("json") => Ok(Ending::Json),
            Some("html" | "htm") => Ok(Ending::Html),
            _ => Err(Failure::usage(format!("`{path}`: expected a file that ends in .html or .json"))),
        }
    }
}

/// Data as one line of JSON.
///
/// # Errors
/// A fault of ours.
pub fn json_line(data: &impl Serialize) -> Result<String, Failure> {
    let bug = |e: serde_json::Error| Failure { status: Status::Bug, message: e.to_string() };
    serde_json::to_string(data).map(|text| text + "\n").map_err(bug)
}

/// The PTX and the source files of statements, as far as they are there.
pub fn texts_of<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Texts {
    let mut texts = Texts::new();
    let mut missing = BTreeSet::new();
    for row in rows {
        let source = row.source.as_ref().map(|place| place.file.as_str());
        for (name, beside) in std::iter::once((row.file.as_str(), None)).chain(source.map(|s| (s, Some(&row.file)))) {
            if texts.contains_key(name) || missing.contains(name) {
                continue;
            }
            match source_text(name, beside.map(Path::new)) {
                Some(text) => texts.insert(name.to_owned(), text.lines().map(str::to_owned).collect()).is_some(),
                None => missing.insert(name),
            };
        }
    }
    texts
}

/// A profile that was written before, and its path. `cannot`: what cannot be done with another file.
///
/// # Errors
/// It cannot be read, or is something else.
pub fn base(path: &str, cannot: &str) -> Result<(String, Profile), Failure> {
    let bytes = input::read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let wrong = |why: String| Failure::file(format!("`{path}` {cannot}: {why}"));
    Ok((path.to_owned(), compare::read(&text).map_err(wrong)?))
}
