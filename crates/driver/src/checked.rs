//! What checks of launches find, as it is told to the user, to the report file, and to who runs the program.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use handloom_ir::trap::TrapKind;
use handloom_runtime::words::quoted;
use handloom_runtime::{
    Allocated, Check, CheckReport, CheckSink, DeviceMemory, Finding, Found, MemoryError, TrapReport,
};

use crate::caller::Caller;
use crate::code::Code;
use crate::process::{Process, process, say};

/// What was found in the process so far, each pair of places once.
#[derive(Debug, Default)]
pub struct Known(Mutex<Vec<Finding>>);

impl Known {
    /// The number of a finding, and whether it is new.
    fn number(&self, finding: &Finding) -> (usize, bool) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match list.iter().position(|known| known.is_same(finding)) {
            Some(number) => (number, false),
            None => {
                list.push(finding.clone());
                (list.len() - 1, true)
            }
        }
    }
}

/// Takes the reports of checked launches.
pub fn sink() -> CheckSink {
    CheckSink::new(|entry, report| {
        if let Ok(process) = process() {
            tell(process, entry, report);
        }
    })
}

/// Takes what work of several streams, or of the host, did to the same memory without order.
pub fn between() -> CheckSink {
    CheckSink::new(|_, report| {
        if let Ok(process) = process() {
            let notes = found(process, "", report);
            process.note(&notes.join("\n"));
        }
    })
}

/// Says that a launch is given that is to be checked or counted.
pub fn given(process: &Process) {
    process.note("{\"event\":\"given\"}");
}

/// A call of the program names memory that is not there, which a check of memory tells. Gives the error that the call returns.
pub fn refused(does: &'static str, why: &MemoryError) -> Code {
    if let Ok(process) = process()
        && process.config.checks(Check::Memory)
    {
        let freed = match why {
            MemoryError::Freed { allocation, .. } => process.calls.freed(allocation.base),
            _ => None,
        };
        if let Some(finding) = why.finding(does, Caller::now().at(does), freed) {
            tell_found(process, vec![finding]);
        }
    }
    why.kind().into()
}

/// Something kept kernels of the program from running, so that they are not checked.
pub fn not_run(why: &str) {
    if let Ok(process) = process() {
        process.note(&format!("{{\"event\":\"refused\",\"why\":{}}}", quoted(why)));
    }
}

/// A call of the program copies bytes of a device to the host of which nobody has written any, which a check of what nobody wrote tells. `from`: the ranges.
pub fn copied(memory: &DeviceMemory, from: &[(u64, u64)]) {
    let is_blank = |(address, bytes): &(u64, u64)| memory.is_blank(*address, *bytes);
    if let Ok(process) = process()
        && let (Some((first, _)), Some((last, bytes))) = (from.first(), from.last())
        && from.iter().all(is_blank)
        && let Some((base, size)) = memory.range_of(*first)
    {
        let at = Caller::now().at("copy");
        tell_found(process, vec![Finding::copied_unwritten(size, first - base, last + bytes - first, at)]);
    }
}

/// A kernel has stopped at memory that a call of the program had freed, if it has: told beside the trap.
pub fn stopped(process: &Process, trap: &TrapReport) {
    if process.config.checks(Check::Memory)
        && trap.kind() == TrapKind::OutOfBounds
        && let Some(address) = trap.trap().address
        && let Some(gpu) = process.gpu_of(address)
        && let Found::Freed(a) = gpu.device.memory().find(address)
        && let Some(freed) = process.calls.freed(a.base)
    {
        tell_found(process, vec![trap.after_free(freed, (a.base, a.size))]);
    }
}

/// Tells findings of no launch.
fn tell_found(process: &Process, findings: Vec<Finding>) {
    process.note(&found(process, "", &CheckReport { findings, ..CheckReport::default() }).join("\n"));
}

/// Memory that kernels allocated and that nobody has freed, if the program asked for leaks.
#[derive(Debug, Default)]
pub struct Left(Mutex<BTreeMap<u64, Allocated>>);

impl Left {
    fn add(&self, report: &CheckReport) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        report.freed.iter().for_each(|address| drop(all.remove(address)));
        all.extend(report.allocated.iter().map(|a| (a.address, a.clone())));
    }
}

/// The process ends: what is allocated now is never freed.
pub fn at_exit() {
    let Ok(process) = process() else { return };
    if !process.config.leaks {
        return;
    }
    let left = std::mem::take(&mut *process.left.0.lock().unwrap_or_else(PoisonError::into_inner));
    let of_program = process.memory.left().into_iter();
    let of_program = of_program.map(|(base, bytes)| Finding::never_freed(base, bytes, process.calls.made(base)));
    tell_found(process, left.values().map(Allocated::leak).chain(of_program).collect());
}

/// Tells what a launch found. All notes of it are one write, so that those of several processes do not mix.
fn tell(process: &Process, entry: &str, report: &CheckReport) {
    if process.config.leaks {
        process.left.add(report);
    }
    let mut notes = found(process, entry, report);
    let seed = process.config.seed;
    let unchecked = match &report.unchecked {
        None => "null".to_owned(),
        Some(why) => {
            if process.config.findings.is_none() {
                say(&format!("the check of `{entry}` ended before it did, and there may be more to find: {why}"));
            }
            quoted(why)
        }
    };
    notes.push(format!("{{\"event\":\"checked\",\"seed\":{seed},\"unchecked\":{unchecked}}}"));
    process.note(&notes.join("\n"));
}

/// Tells the findings of a report, and gives the notes of them.
fn found(process: &Process, entry: &str, report: &CheckReport) -> Vec<String> {
    let (pid, seed) = (std::process::id(), process.config.seed);
    let mut notes = Vec::new();
    for finding in &report.findings {
        let (number, is_new) = process.known.number(finding);
        let who = format!("\"pid\":{pid},\"number\":{number}");
        if !is_new {
            notes.push(format!("{{\"event\":\"again\",{who},\"pairs\":{}}}", finding.pairs));
            continue;
        }
        let found = finding.json();
        process.report(&format!("{{\"event\":\"finding\",\"entry\":\"{entry}\",\"seed\":{seed},\"found\":{found}}}"));
        notes.push(format!("{{\"event\":\"finding\",{who},\"found\":{found}}}"));
        if process.config.findings.is_none() {
            let _ = std::io::stderr().write_all(format!("{}\n", finding.human()).as_bytes());
        }
    }
    notes
}
