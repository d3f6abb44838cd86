//! `handloom cover`: which statements, source lines, branches and lanes launches ran.

use handloom_ir::simt::Counting;
use handloom_profile::cover::Coverage;

use crate::args::CoverArgs;
use crate::input;
use crate::profile::{Ending, count, cover_text, open};
use crate::report::{Failure, Format, Out, Status};

/// Runs launches and reports what they reached, with what runs before them reached.
///
/// # Errors
/// What kept it from running, a coverage that does not fit, or a report that cannot be written.
pub fn cover(args: &CoverArgs, out: &mut Out) -> Result<Status, Failure> {
    let before = args.merge.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let endings = args.output.iter().map(|path| Ending::of(path)).collect::<Result<Vec<_>, _>>()?;
    let paths: Vec<String> = args.output.iter().chain(&args.lcov).cloned().collect();
    let mut outputs = open(&paths)?.into_iter();
    let (status, launches) = count(&args.run, Counting::Coverage, out)?;
    let mut coverage = Coverage::of(env!("CARGO_PKG_VERSION"), &launches);
    for (path, other) in &before {
        let wrong = |why: String| Failure::usage(format!("`{path}` cannot be merged: {why}"));
        coverage.merge(other).map_err(wrong)?;
    }
    match out.format {
        Format::Json => out.json(&coverage),
        Format::Human => out.write(coverage.summary().as_bytes()),
    }
    for (ending, output) in endings.iter().zip(&mut outputs) {
        output.write(cover_text(*ending, &coverage)?.as_bytes())?;
    }
    for output in outputs {
        output.write(coverage.lcov().as_bytes())?;
    }
    Ok(status)
}

fn read(path: &str) -> Result<(String, Coverage), Failure> {
    let bytes = input::read(path)?;
    let wrong = |why: String| Failure::file(format!("`{path}` cannot be merged: {why}"));
    Ok((path.to_owned(), Coverage::read(&String::from_utf8_lossy(&bytes)).map_err(wrong)?))
}
