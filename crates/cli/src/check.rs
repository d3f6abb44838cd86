//! `handloom check`: parses and checks, runs nothing. Of a good file it says so on a terminal.

use handloom_check::Checked;
use handloom_diag::{Severity, SourceMap};

use crate::args::CheckArgs;
use crate::report::{Failure, Out, Status, errors};
use crate::{bug, input};

/// Checks files, one after the other. A file that cannot be read does not hide the next one.
///
/// # Errors
/// None at present: each file's fault is told on its own.
pub fn check(args: &CheckArgs, out: &mut Out) -> Result<Status, Failure> {
    out.set_limit(args.limit.error_limit);
    let mut status = Status::Done;
    let (mut n_errors, mut n_wrong) = (0, 0);
    for name in &args.files {
        let bytes = match input::read(name) {
            Ok(bytes) => bytes,
            Err(failure) => {
                status = status.max(out.failure(&failure));
                continue;
            }
        };
        let mut sources = SourceMap::new();
        let text = input::add(&mut sources, name, bytes);
        match bug::catch(|| text.check(&sources)) {
            Ok(Checked { diagnostics, .. }) => {
                out.diagnostics(&diagnostics, &sources);
                status = status.max(Status::of_all(&diagnostics));
                let n = errors(&diagnostics).count();
                n_errors += n;
                n_wrong += usize::from(n > 0);
                if n == 0 {
                    let warnings = match diagnostics.iter().filter(|d| d.severity == Severity::Warning).count() {
                        0 => String::new(),
                        1 => ", 1 warning".to_owned(),
                        n => format!(", {n} warnings"),
                    };
                    out.line_on_terminal(&format!("{name}: ok{warnings}"));
                }
            }
            Err(panic) => {
                out.bug(&panic, Some(name));
                status = Status::Bug;
            }
        }
    }
    if n_errors > 0 && out.format == crate::report::Format::Human {
        let s = |n: usize| if n == 1 { "" } else { "s" };
        out.say(&format!("{n_errors} error{} in {n_wrong} file{}", s(n_errors), s(n_wrong)));
    }
    Ok(status)
}
