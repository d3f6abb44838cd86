//! `handloom check`: parses and checks, runs nothing. Of a good file it says so on a terminal.

use handloom_check::Checked;
use handloom_diag::{Severity, SourceMap};

use crate::args::CheckArgs;
use crate::report::{Failure, Out, Status, errors};
use crate::{bug, image};

/// Checks files, one after the other. A file that cannot be read does not hide the next one.
///
/// # Errors
/// None at present: each file's fault is told on its own.
pub fn check(args: &CheckArgs, out: &mut Out) -> Result<Status, Failure> {
    out.set_limit(args.limit.error_limit);
    let mut status = Status::Done;
    let (mut n_errors, mut n_wrong) = (0, 0);
    let mut first = None;
    for name in &args.files {
        let inputs = bug::catch(|| image::read(name, name)).unwrap_or_else(|panic| {
            out.bug(&panic, Some(name));
            Err(Failure::told(Status::Bug))
        });
        let inputs = inputs.unwrap_or_else(|failure| {
            status = status.max(out.failure(&failure));
            Vec::new()
        });
        let before = n_errors;
        for input in inputs {
            let mut sources = SourceMap::new();
            let called = input.name.clone();
            let text = input.add(&mut sources, out);
            match bug::catch(|| text.check(&sources)) {
                Ok(Checked { diagnostics, .. }) => {
                    out.diagnostics(&diagnostics, &sources);
                    status = status.max(Status::of_all(&diagnostics));
                    let n = errors(&diagnostics).count();
                    first = first.or(errors(&diagnostics).next().map(|d| d.code));
                    n_errors += n;
                    if n == 0 {
                        let warnings = match diagnostics.iter().filter(|d| d.severity == Severity::Warning).count() {
                            0 => String::new(),
                            1 => ", 1 warning".to_owned(),
                            n => format!(", {n} warnings"),
                        };
                        out.line_on_terminal(&format!("{called}: ok{warnings}"));
                    }
                }
                Err(panic) => {
                    out.bug(&panic, Some(name));
                    status = Status::Bug;
                }
            }
        }
        n_wrong += usize::from(n_errors > before);
    }
    if n_errors > 0 && out.format == crate::report::Format::Human {
        let s = |n: usize| if n == 1 { "" } else { "s" };
        let more = first.map_or(String::new(), |code| format!("; `handloom explain {}` says more", code.name()));
        out.say(&format!("{n_errors} error{} in {n_wrong} file{}{more}", s(n_errors), s(n_wrong)));
    }
    Ok(status)
}
