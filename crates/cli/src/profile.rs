//! `handloom profile`: what launches do, counted.
//!
//! The launches are those of `run`, by code that counts. Whether reports can be written, and whether a base can be read, is found out
//! before anything runs.

use std::path::Path;

use handloom_ir::simt::Counting;
use handloom_profile::cover::Coverage;
use handloom_profile::{Device, Form, Launch, Part, Profile, Texts, compare, place_on, summary};
use handloom_runtime::Trace;

use crate::args::{ProfileArgs, RunArgs};
use crate::findings::Collected;
use crate::input;
use crate::launch::source_text;
use crate::outputs::{Output, Store, open_all};
use crate::report::{Failure, Format, Out, Status};
use crate::seeds;
use crate::traces::Traces;
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
    let forms = args.output.iter().map(|path| form_of(path)).collect::<Result<Vec<_>, _>>()?;
    let outputs = open(&args.output)?;
    let traces = Traces::open(args.run.trace.as_deref())?.for_page(forms.contains(&Form::Html));
    let (status, mut launches) = count(&args.run, (Counting::All, traces.trace()), out)?;
    traces.draw(&mut launches);
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
    for (output, form) in outputs.into_iter().zip(forms) {
        output.write(profile_text(form, &profile, &Texts::new(), changes)?.as_bytes())?;
    }
    traces.write()?;
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
    profile: Vec<(Form, Output)>,
    cover: Vec<(Form, Output)>,
    /// What earlier runs reached.
    before: Vec<(String, Coverage)>,
}

impl Reports {
    /// Those that a command line asks for: profiles, coverages, tracefiles of lcov, coverages of earlier runs.
    ///
    /// # Errors
    /// One cannot be written, or a coverage cannot be read.
    pub fn open([profile, cover, lcov, merge]: [&[String]; 4]) -> Result<Reports, Failure> {
        let forms = |paths: &[String]| paths.iter().map(|path| form_of(path)).collect::<Result<Vec<_>, _>>();
        let (of_profile, mut of_cover) = (forms(profile)?, forms(cover)?);
        of_cover.extend(lcov.iter().map(|_| Form::Lcov));
        let before = merge.iter().map(|path| coverage(path)).collect::<Result<Vec<_>, _>>()?;
        let mut outputs = open(&[profile, cover, lcov].concat())?;
        let for_cover = outputs.split_off(of_profile.len());
        let (profile, cover) = (of_profile.into_iter().zip(outputs), of_cover.into_iter().zip(for_cover));
        Ok(Reports { profile: profile.collect(), cover: cover.collect(), before })
    }

    /// What is to be counted for them.
    pub fn level(&self) -> Counting {
        match (self.profile.is_empty(), self.cover.is_empty()) {
            (false, _) => Counting::All,
            (true, false) => Counting::Coverage,
            (true, true) => Counting::Nothing,
        }
    }

    /// Whether one of them is the page of a profile.
    pub fn has_page(&self) -> bool {
        self.profile.iter().any(|(form, _)| *form == Form::Html)
    }

    /// Writes them, and says which launches compiled code did not count.
    ///
    /// # Errors
    /// One cannot be written, or an earlier coverage is of another text.
    pub fn write(self, counted: Part, out: &mut Out) -> Result<(), Failure> {
        let Part { mut launches, texts, interpreted, timelines } = counted;
        tell_interpreted(&interpreted, out);
        if !self.cover.is_empty() {
            let mut coverage = Coverage::of(env!("CARGO_PKG_VERSION"), &launches);
            merge(&mut coverage, &self.before)?;
            for (form, output) in self.cover {
                output.write(cover_text(form, &coverage, &texts)?.as_bytes())?;
            }
        }
        launches.retain(|launch| launch.runs > 0);
        launches.iter_mut().for_each(Launch::keep_functions_that_ran);
        timelines.draw(&mut launches);
        let profile = Profile::new(env!("CARGO_PKG_VERSION"), launches);
        for (form, output) in self.profile {
            output.write(profile_text(form, &profile, &texts, &[])?.as_bytes())?;
        }
        Ok(())
    }
}

/// Adds what earlier runs reached.
///
/// # Errors
/// One is of another version of a text.
pub fn merge(coverage: &mut Coverage, before: &[(String, Coverage)]) -> Result<(), Failure> {
    for (path, other) in before {
        let wrong = |why: String| Failure::usage(format!("`{path}` cannot be merged: {why}"));
        coverage.merge(other).map_err(wrong)?;
    }
    Ok(())
}

/// A coverage that was written before, and its path.
///
/// # Errors
/// It cannot be read, or is none.
pub fn coverage(path: &str) -> Result<(String, Coverage), Failure> {
    let bytes = input::read(path)?;
    let wrong = |why: String| Failure::file(format!("`{path}` cannot be merged: {why}"));
    Ok((path.to_owned(), Coverage::read(&String::from_utf8_lossy(&bytes)).map_err(wrong)?))
}

/// Says which launches compiled code did not count.
fn tell_interpreted(all: &[(String, String)], out: &mut Out) {
    for (entry, why) in all {
        out.note(&format!("`{entry}` was counted by the interpreter, on one thread, lane by lane: {why}"));
    }
}

/// A profile as a report. `known`: texts that are no files.
fn profile_text(form: Form, profile: &Profile, known: &Texts, changes: &[compare::Changes]) -> Result<String, Failure> {
    profile.report(form, known, &read_text, changes).map_err(bug)
}

/// A coverage as a report. `known`: texts that are no files.
///
/// # Errors
/// A fault of ours.
pub fn cover_text(form: Form, coverage: &Coverage, known: &Texts) -> Result<String, Failure> {
    coverage.report(form, known, &read_text).map_err(bug)
}

fn read_text(name: &str, beside: Option<&str>) -> Option<String> {
    source_text(name, beside.map(Path::new))
}

fn bug(message: String) -> Failure {
    Failure { status: Status::Bug, message }
}

/// Runs what a command line says, and counts. Each launch is told of as far as it came.
///
/// # Errors
/// What kept it from running.
pub fn count(
    args: &RunArgs,
    (counts, tracing): (Counting, Option<Trace>),
    out: &mut Out,
) -> Result<(Status, Vec<Launch>), Failure> {
    if !args.profile.is_empty() || !args.cover.is_empty() {
        return Err(Failure::usage("`--profile` and `--cover` are for `run`: here, `-o FILE` writes a report"));
    }
    if args.checks.check.is_some() {
        return Err(Failure::usage("launches are counted as they run without checks: leave `--check` out"));
    }
    out.only_trouble();
    let watch = Watch::start(out)?;
    let mut found = Collected::new(&args.checks)?;
    let args = RunArgs { counts, tracing, ..args.clone() };
    let status = seeds::once(&args, &watch, &mut found, &mut |_| Ok(Status::Done), out)?;
    let counted = found.take_counted();
    tell_interpreted(&counted.interpreted, out);
    Ok((status, counted.launches))
}

/// Files that will be written.
///
/// # Errors
/// One cannot be.
pub fn open(paths: &[String]) -> Result<Vec<Output>, Failure> {
    let stores: Vec<Store> = paths.iter().map(|path| Store::to(path)).collect();
    open_all(stores.iter())
}

/// What a report is written as, by the ending of its file.
///
/// # Errors
/// It has another one.
pub fn form_of(path: &str) -> Result<Form, Failure> {
    let form = Form::of(Path::new(path)).filter(|form| *form != Form::Lcov);
    form.ok_or_else(|| Failure::usage(format!("`{path}`: expected a file that ends in .html or .json")))
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
