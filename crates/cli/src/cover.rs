//! `handloom cover`: which statements, source lines, branches and lanes launches ran.

use handloom_ir::simt::Counting;
use handloom_profile::Texts;
use handloom_profile::cover::Coverage;

use crate::args::CoverArgs;
use crate::profile::{count, cover_text, coverage, form_of, merge, open};
use crate::report::{Failure, Format, Out, Status};
use crate::traces::Traces;

/// Runs launches and reports what they reached, with what runs before them reached.
///
/// # Errors
/// What kept it from running, a coverage that does not fit, or a report that cannot be written.
pub fn cover(args: &CoverArgs, out: &mut Out) -> Result<Status, Failure> {
    let before = args.merge.iter().map(|path| coverage(path)).collect::<Result<Vec<_>, _>>()?;
    let forms = args.output.iter().map(|path| form_of(path)).collect::<Result<Vec<_>, _>>()?;
    let paths: Vec<String> = args.output.iter().chain(&args.lcov).cloned().collect();
    let mut outputs = open(&paths)?.into_iter();
    let traces = Traces::open(args.run.trace.as_deref())?;
    let (status, launches) = count(&args.run, (Counting::Coverage, traces.trace()), out)?;
    traces.write()?;
    let mut coverage = Coverage::of(env!("CARGO_PKG_VERSION"), &launches);
    merge(&mut coverage, &before)?;
    match out.format {
        Format::Json => out.json(&coverage),
        Format::Human => out.write(coverage.summary().as_bytes()),
    }
    for (form, output) in forms.iter().zip(&mut outputs) {
        output.write(cover_text(*form, &coverage, &Texts::new())?.as_bytes())?;
    }
    for output in outputs {
        output.write(coverage.lcov().as_bytes())?;
    }
    Ok(status)
}
