//! What launches did.

use std::ffi::c_char;

use handloom_runtime::{Finding, LaunchReport, words::quoted};

pub use crate::handle::ReportHandle;
use crate::handle::Table;
use crate::pointer::{put, put_text};
use crate::status::{Failure, Status, call};

/// A report and the entry that it is about.
struct Report {
    entry: String,
    inner: LaunchReport,
}

/// A report as text for people.
pub const FORMAT_TEXT: u32 = 0;
/// A report as a JSON object on one line, with the keys of `handloom run --format json`, and `findings`.
pub const FORMAT_JSON: u32 = 1;

static REPORTS: Table<Report> = Table::new();

/// Numbers of a report.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ReportFacts {
    /// Blocks that ran to their end.
    pub blocks: u64,
    /// Nanoseconds to make its code; 0 if the code was there.
    pub compile_ns: u64,
    /// Nanoseconds of the launch alone.
    pub run_ns: u64,
    /// Nanoseconds that it waited for code of further tiers.
    pub recompile_ns: u64,
    /// What its check found.
    pub findings: u64,
    /// 1 if its code was kept by another process.
    pub cached: u64,
}

/// Gives a report to a program that wants it, and says whether something was found.
///
/// # Safety
/// The pointer is null or may be written.
pub(crate) unsafe fn give(entry: &str, done: &LaunchReport, to: *mut ReportHandle) -> Result<(), Failure> {
    if !to.is_null() {
        let report = REPORTS.add(Report { entry: entry.to_owned(), inner: done.clone() });
        // SAFETY: by the caller's promise.
        unsafe { put(to, "report", report)? };
    }
    done.clean().map_err(|text| Failure::new(Status::Found, text))
}

fn nanoseconds(d: std::time::Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

impl Report {
    fn text(&self) -> String {
        let r = &self.inner;
        let s = if r.blocks == 1 { "" } else { "s" };
        let (compile, run) = (r.compile.as_secs_f64() * 1e3, r.run.as_secs_f64() * 1e3);
        let head = format!("{}: {} block{s}, compiled in {compile:.3} ms, ran in {run:.3} ms", self.entry, r.blocks);
        match r.clean() {
            Ok(()) => head,
            Err(told) => format!("{head}\n{told}"),
        }
    }

    fn json(&self) -> String {
        let r = &self.inner;
        let microseconds = |d: std::time::Duration| format!("{:.3}", d.as_secs_f64() * 1e6);
        let findings: Vec<String> = r.findings().iter().map(Finding::json).collect();
        let unchecked = r.check.as_ref().and_then(|check| check.unchecked.as_ref());
        let unchecked = unchecked.map_or(String::new(), |why| format!(",\"unchecked\":{}", quoted(why)));
        format!(
            "{{\"entry\":{},\"status\":\"ok\",\"blocks\":{},\"compile_us\":{},\"run_us\":{},\"recompile_us\":{},\"cached\":{},\"findings\":[{}]{unchecked}}}",
            quoted(&self.entry),
            r.blocks,
            microseconds(r.compile),
            microseconds(r.run),
            microseconds(r.recompile),
            r.cached,
            findings.join(",")
        )
    }
}

/// The numbers of a report.
///
/// # Safety
/// `facts` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_report_facts(report: ReportHandle, facts: *mut ReportFacts) -> Status {
    call(|| {
        let report = REPORTS.get(report)?;
        let r = &report.inner;
        let numbers = ReportFacts {
            blocks: r.blocks,
            compile_ns: nanoseconds(r.compile),
            run_ns: nanoseconds(r.run),
            recompile_ns: nanoseconds(r.recompile),
            findings: r.findings().len() as u64,
            cached: u64::from(r.cached),
        };
        // SAFETY: by the caller's promise.
        unsafe { put(facts, "facts", numbers) }
    })
}

/// A report with all that was found, in a format: `HANDLOOM_FORMAT_TEXT` or `HANDLOOM_FORMAT_JSON`. It goes to `buffer` with a NUL at its end, if there is room for
/// all of it: else the call fails with `HANDLOOM_STATUS_TOO_SMALL`. `needed`, unless it is NULL, gets the bytes that are needed; with a NULL `buffer` that is all that
/// is done.
///
/// # Safety
/// `buffer` is NULL or has `room` bytes that may be written; `needed` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn handloom_report_write(
    report: ReportHandle,
    format: u32,
    buffer: *mut c_char,
    room: usize,
    needed: *mut usize,
) -> Status {
    call(|| {
        let report = REPORTS.get(report)?;
        let text = match format {
            FORMAT_TEXT => report.text(),
            FORMAT_JSON => report.json(),
            other => {
                let text = format!("`format` is {other}: HANDLOOM_FORMAT_TEXT is 0, HANDLOOM_FORMAT_JSON is 1");
                return Err(Failure::new(Status::InvalidValue, text));
            }
        };
        // SAFETY: by the caller's promise.
        unsafe { put_text(text.as_bytes(), buffer, room, needed) }
    })
}

/// Frees a report.
#[unsafe(no_mangle)]
pub extern "C" fn handloom_report_release(report: ReportHandle) -> Status {
    call(|| REPORTS.remove(report).map(drop))
}
