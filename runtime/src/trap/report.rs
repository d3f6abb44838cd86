//! A trap with all that a person or a program wants to read of it.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use handloom_diag::{
    Footer, Heading, LineColumn, Report, Snippet, SourceMap, Span, Style, names, names_json, render_snippets,
};
use handloom_ir::simt;
use handloom_ir::trap::{AccessKind, Trap, TrapKind, Waiter};

use super::Binding;
use super::describe::{Described, describe, timeout_message};
use crate::finding::{Finding, FoundAt, FoundIn, FoundLine};
use crate::grid::{Grid, LaunchReport, compiling_trap};
use crate::module::Function;
use crate::words::quoted;

/// Most waiting groups that a report lists.
const MAX_WAITERS: usize = 16;

/// A trap, its text, and its place.
#[derive(Clone, Debug)]
pub struct TrapReport {
    trap: Trap,
    described: Described,
    ntid: [u32; 3],
    sources: Arc<SourceMap>,
    cuda: Option<(String, u32)>,
    /// Where the code of that line is called, if it was inlined.
    caller: Option<(String, u32)>,
    entry: Arc<str>,
    launch: LaunchReport,
}

impl TrapReport {
    /// Finds out what there is to say.
    pub(crate) fn new(
        trap: Trap,
        grid: &Grid,
        bindings: &[Binding],
        entry: &Arc<str>,
        launch: LaunchReport,
    ) -> TrapReport {
        let described = describe(&trap, grid, bindings);
        let (cuda, caller) = (cuda_line(&grid.module.ir, trap.span), cuda_caller(&grid.module.ir, trap.span));
        let (sources, entry) = (Arc::clone(&grid.module.sources), Arc::clone(entry));
        TrapReport { trap, described, ntid: grid.env.ntid, sources, cuda, caller, entry, launch }
    }

    /// The time limit of a launch has passed while its code was made.
    pub(crate) fn of_compiling(function: &Function, ntid: [u32; 3], compile: Duration) -> TrapReport {
        let ir = function.module().ir();
        let span = ir.funcs[function.entry().func.idx()].span;
        let trap = compiling_trap(function.name(), span);
        let described = Described { message: timeout_message(&trap.detail), ..Described::default() };
        let launch = LaunchReport { compile, ..LaunchReport::default() };
        let sources = Arc::clone(function.module().sources());
        TrapReport {
            trap,
            described,
            ntid,
            sources,
            cuda: None,
            caller: None,
            entry: Arc::clone(&function.name),
            launch,
        }
    }

    /// What the launch did until then.
    pub fn launch(&self) -> &LaunchReport {
        &self.launch
    }

    /// The same, to be told with what came before.
    pub(crate) fn launch_mut(&mut self) -> &mut LaunchReport {
        &mut self.launch
    }

    /// Name of the entry, as in the PTX.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// The bare facts.
    pub fn trap(&self) -> &Trap {
        &self.trap
    }

    /// The fault, as `handloom traps` lists them.
    pub fn kind(&self) -> TrapKind {
        self.trap.kind
    }

    /// One sentence: `out of bounds: write of 4 bytes at d+2400, ...`.
    pub fn message(&self) -> &str {
        &self.described.message
    }

    /// Name of the PTX file, line and column of the instruction.
    pub fn place(&self) -> Option<(&str, LineColumn)> {
        let span = self.trap.span;
        if span == Span::NONE {
            return None;
        }
        Some((self.sources.name(span.file), self.sources.position(span.file, span.start)))
    }

    /// The CUDA source line, from `.loc`: name of the file and line.
    pub fn cuda_place(&self) -> Option<(&str, u32)> {
        self.cuda.as_ref().map(|(file, line)| (file.as_str(), *line))
    }

    /// The finding that it is an access to an allocation of the program after a call has freed it: its first address and bytes.
    pub fn after_free(&self, freed: FoundAt, (base, size): (u64, u64)) -> Finding {
        let trap = &self.trap;
        let does = match trap.access {
            Some(AccessKind::Read) | None => "read",
            Some(AccessKind::Write) => "write",
            Some(AccessKind::Atomic) => "atomic",
        };
        let (file, at) = self.place().unwrap_or(("", LineColumn { line: 1, column: 1 }));
        let used = FoundAt {
            file: file.to_owned(),
            line: at.line,
            column: at.column,
            block: trap.cta,
            thread: trap.thread,
            caller: self.caller.clone().map(|(file, line)| FoundLine { file, line }),
            ..FoundAt::of_call(does, self.sources.slice(trap.span), self.cuda.clone())
        };
        let (offset, bytes) = (trap.address.unwrap_or(base).saturating_sub(base), u64::from(trap.bytes));
        let message =
            format!("{does} of {bytes} bytes at +{offset} of an allocation of {size} bytes, after it was freed");
        let data = FoundIn::of_allocation(size, offset, bytes);
        Finding::new("freed", "use", message, (freed, Some(used)), data)
    }

    /// The report for a person, without a newline at the end. `cuda_text` is the text of the line that
    /// [`cuda_place`](Self::cuda_place) names, if the caller has it.
    pub fn human(&self, style: Style, cuda_text: Option<&str>) -> String {
        let mut snippets = Vec::new();
        if self.trap.span != Span::NONE {
            snippets.push(Snippet::Places(vec![(self.trap.span, self.who())]));
        }
        let mut footers = Vec::new();
        match (&self.cuda, cuda_text) {
            (Some((name, line)), Some(text)) => {
                let label = "the CUDA source line, from `.loc`".to_owned();
                snippets.push(Snippet::Line { name, line: *line, text, label });
            }
            (Some((name, line)), None) => {
                footers.push(Footer::Note(format!("{name}:{line} is the CUDA source line, from `.loc`")))
            }
            (None, _) => {}
        }
        if let Some((name, line)) = &self.caller {
            footers.push(Footer::Note(format!("it is a part of what {name}:{line} calls")));
        }
        footers.extend(self.described.notes.iter().cloned().map(Footer::Note));
        footers.extend(self.others().map(Footer::Note));
        footers.extend(self.other_warps().map(Footer::Note));
        footers.extend(self.waiters().into_iter().map(Footer::Note));
        footers.extend(self.names().into_iter().map(Footer::Note));
        footers.extend(self.described.help.iter().cloned().map(Footer::Help));
        let report = Report { heading: Heading::Word("trap"), title: self.message().to_owned(), snippets, footers };
        render_snippets(&report, &self.sources, style)
    }

    /// The report as one JSON object on one line.
    pub fn json(&self) -> String {
        let t = &self.trap;
        let mut out = format!("{{\"kind\":\"{}\"", t.kind.word());
        let triple = |v: [u32; 3]| format!("[{},{},{}]", v[0], v[1], v[2]);
        if let Some((file, at)) = self.place() {
            let _ = write!(out, ",\"file\":{},\"line\":{},\"column\":{}", quoted(file), at.line, at.column);
        }
        let _ = write!(out, ",\"block\":{},\"thread\":{}", triple(t.cta), triple(t.thread));
        if let Some(address) = t.address {
            let _ = write!(out, ",\"address\":{address}");
        }
        if let Some((file, line)) = &self.cuda {
            let _ = write!(out, ",\"cuda_file\":{},\"cuda_line\":{line}", quoted(file));
        }
        if let Some((file, line)) = &self.caller {
            let _ = write!(out, ",\"caller_file\":{},\"caller_line\":{line}", quoted(file));
        }
        let _ = write!(out, ",\"other_threads\":{}", t.other_threads());
        let _ = write!(out, ",\"message\":{}", quoted(self.message()));
        if let Some(names) = names_json(self.texts()) {
            let _ = write!(out, ",\"names\":{names}");
        }
        out.push('}');
        out
    }

    /// The texts that may hold names.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let d = &self.described;
        let more = d.notes.iter().chain(&d.help).map(String::as_str);
        [&*self.entry, d.message.as_str()].into_iter().chain(more)
    }

    /// The entry, where its name says more than itself, and other names of that kind.
    fn names(&self) -> Vec<String> {
        let mut notes = names::notes(self.texts());
        if names::readable(&self.entry).is_some()
            && let Some(first) = notes.first_mut()
        {
            first.insert_str(0, "in the entry ");
            *first = first.replacen("` is `", "`, which is `", 1);
        }
        notes
    }

    /// `block (2,0,0), thread (88,0,0), lane 24 of warp 2`.
    fn who(&self) -> String {
        // No thread is to blame for the time that compiling takes.
        if self.trap.kind == TrapKind::Timeout && !self.trap.detail.is_empty() {
            return "the entry".into();
        }
        let number = self.thread_number();
        let triple = |v: [u32; 3]| format!("({},{},{})", v[0], v[1], v[2]);
        format!(
            "block {}, thread {}, lane {} of warp {}",
            triple(self.trap.cta),
            triple(self.trap.thread),
            number % 32,
            number / 32
        )
    }

    fn thread_number(&self) -> u32 {
        let [x, y, z] = self.trap.thread;
        x + self.ntid[0] * (y + self.ntid[1] * z)
    }

    /// The other lanes of the warp that did the same.
    fn others(&self) -> Option<String> {
        let mask = self.trap.other_lanes;
        match mask.count_ones() {
            0 => None,
            1 => Some(format!("1 other thread of this warp did the same: lane {}", mask.trailing_zeros())),
            n => Some(format!("{n} other threads of this warp did the same: lanes {}", lane_list(mask))),
        }
    }

    /// The other warps of the block that did the same.
    fn other_warps(&self) -> Option<String> {
        let warps = &self.trap.other_warps;
        let at_least = if self.trap.others_may_follow { "at least " } else { "" };
        let numbers: Vec<u32> = warps.iter().map(|(warp, _)| *warp).collect();
        let (s, list) = (if numbers.len() == 1 { "" } else { "s" }, number_list(&numbers));
        match warps.iter().map(|(_, n)| n).sum() {
            0 => None,
            1 => Some(format!("{at_least}1 thread of another warp of the block did the same: warp {list}")),
            n => Some(format!("{at_least}{n} threads of other warps of the block did the same: warp{s} {list}")),
        }
    }

    fn waiters(&self) -> Vec<String> {
        let all = &self.trap.waiters;
        let mut lines: Vec<String> = all.iter().take(MAX_WAITERS).map(|w| self.waiter(w)).collect();
        let rest: u64 = all.iter().skip(MAX_WAITERS).map(|w| u64::from(w.count)).sum();
        if rest > 0 {
            lines.push(format!("{rest} more threads wait elsewhere"));
        }
        lines
    }

    fn waiter(&self, w: &Waiter) -> String {
        let at = self.sources.position(w.span.file, w.span.start);
        let place = if w.span == Span::NONE {
            String::new()
        } else {
            format!(" at {}:{}:{}", self.sources.name(w.span.file), at.line, at.column)
        };
        let [bx, by, bz] = w.cta;
        let [x, y, z] = w.thread;
        let who = match w.count {
            1 => format!("thread ({x},{y},{z}) waits"),
            n => format!("{n} threads from ({x},{y},{z}) on wait"),
        };
        format!("block ({bx},{by},{bz}): {who} for {}{place}", w.what)
    }
}

/// The lanes of a mask: `0-3, 7`.
fn lane_list(mask: u32) -> String {
    let lanes: Vec<u32> = (0..32).filter(|lane| mask >> lane & 1 == 1).collect();
    number_list(&lanes)
}

/// Ascending numbers: `0-3, 7`.
fn number_list(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let parts: Vec<String> = runs
        .map(|run| match run {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect();
    parts.join(", ")
}

/// The line of the source that calls the inlined code of a place.
pub(crate) fn cuda_caller(ir: &simt::Module, span: Span) -> Option<(String, u32)> {
    ir.source_caller(span).map(|(file, line)| (file.to_owned(), line))
}

/// The line of the source that a place came from.
pub(crate) fn cuda_line(ir: &simt::Module, span: Span) -> Option<(String, u32)> {
    ir.source_line(span).map(|(file, line)| (file.to_owned(), line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_listed_in_runs() {
        assert_eq!(lane_list(0xfe00_0000), "25-31");
        assert_eq!(lane_list(0b1000_1111), "0-3, 7");
        assert_eq!(lane_list(u32::MAX), "0-31");
    }
}
