//! Counted runs: compiled code counts what the interpreter does, statement by statement.

use std::sync::Arc;

use handloom_diag::SourceMap;
use handloom_profile::{Launch, Row};
use handloom_runtime::{Device, Module, front};

use crate::engines::{INTERP, Job, NARROW_EXACT, WIDE_EXACT, Way, is_there};

/// The slow count.
pub const COUNTED: Way = Way { name: "interp, counted", counts: true, ..INTERP };

/// Compiled code that counts.
pub const CODE_COUNTED: [Way; 2] = [
    Way { name: "wide, counted", counts: true, ..WIDE_EXACT },
    Way { name: "wide of avx2, counted", counts: true, ..NARROW_EXACT },
];

impl Job<'_> {
    /// The module, with its statements marked.
    pub(crate) fn marked(&self, device: &Device) -> Result<Module, String> {
        let mut sources = SourceMap::new();
        let file = sources.add(self.name, self.text);
        let (checked, _) = front(&sources, &[file]).map_err(|told| format!("{told:?}"))?;
        let ir = handloom_lower::lower_marked(&checked);
        Module::from_ir(device, ir, Arc::new(sources), vec![]).map_err(|e| e.to_string())
    }

    /// Runs it counted by the interpreter and by compiled code, which must count the same. Returns how many of its launches compiled code counted. What a launch
    /// counted that a trap ended is not looked at: how far other warps came until then is not the same.
    ///
    /// # Errors
    /// What differs.
    pub fn counts_alike(&self, seed: u64) -> Result<usize, String> {
        let want = self.run(COUNTED, seed)?;
        let mut compiled = 0;
        for way in CODE_COUNTED.into_iter().filter(|way| is_there(way.backend, way.vectors)) {
            let got = self.run(way, seed)?;
            compiled += got.compiled;
            if want.trap.is_some() || got.trap.is_some() {
                continue;
            }
            if want.counted.len() != got.counted.len() {
                return Err(format!("{}: {} launches, not {}", way.name, got.counted.len(), want.counted.len()));
            }
            for (want, got) in want.counted.iter().zip(&got.counted) {
                same_counts(want, got).map_err(|why| format!("{}: `{}`: {why}", way.name, want.entry))?;
            }
            if want.buffers != got.buffers {
                return Err(format!("{}: other bytes are left", way.name));
            }
        }
        Ok(compiled)
    }
}

/// The first statement that differs, or what else does.
fn same_counts(want: &Launch, got: &Launch) -> Result<(), String> {
    let text = |row: &Row| serde_json::to_string_pretty(row).unwrap_or_default();
    for (want, got) in want.statements.iter().zip(&got.statements) {
        if want != got {
            return Err(format!("counted is\n{}\nbut by compiled code\n{}", text(want), text(got)));
        }
    }
    if want.warps != got.warps {
        return Err(format!("warps are {:?}, but of compiled code {:?}", want.warps, got.warps));
    }
    if want != got { Err("sums differ".into()) } else { Ok(()) }
}
