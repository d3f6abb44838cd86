//! `handloom traps`: the table of traps.

use handloom_ir::trap::TrapKind;
use serde::Serialize;

use crate::report::{Format, Out};

#[derive(Serialize)]
struct Row {
    kind: &'static str,
    about: &'static str,
}

/// Prints one line a kind.
pub fn traps(out: &mut Out) {
    let width = TrapKind::ALL.iter().map(|k| k.word().len()).max().unwrap_or(0);
    for kind in TrapKind::ALL {
        match out.format {
            Format::Json => out.json(&Row { kind: kind.word(), about: kind.about() }),
            Format::Human => out.line(&format!("{:width$}  {}", kind.word(), kind.about())),
        }
    }
}
