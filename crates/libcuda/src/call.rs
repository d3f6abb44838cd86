//! What every exported function does around its work: no panic leaves it, and calls are told on standard error when that is asked for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use handloom_driver::process::{process, say};
use handloom_driver::{Code, Result};

use crate::table::ROWS;

/// Whether calls are told. Read once: the environment may be asked before the driver is initialised.
fn traces() -> bool {
    static TRACE: OnceLock<bool> = OnceLock::new();
    *TRACE.get_or_init(|| std::env::var("HANDLOOM_TRACE_API").is_ok_and(|v| !v.is_empty() && v != "0"))
}

/// Does the work of an exported function, by the number of its row.
pub(crate) fn call(row: usize, work: impl FnOnce() -> Result) -> u32 {
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        say(&format!("bug: `{}` panicked; please report it", ROWS[row].symbol));
        Err(Code::UNKNOWN)
    });
    let code = result.err().unwrap_or(Code::SUCCESS);
    if traces() {
        let name = code.name().unwrap_or("?").trim_end_matches('\0');
        say(&format!("{} -> {name}", ROWS[row].symbol));
    }
    code.0
}

/// What a function returns that is exported and not supported.
pub(crate) fn missing(row: usize) -> u32 {
    static TOLD: [AtomicBool; 1024] = [const { AtomicBool::new(false) }; 1024];
    if traces() && TOLD.get(row).is_some_and(|told| !told.swap(true, Ordering::Relaxed)) {
        say(&format!("{} is not supported -> CUDA_ERROR_NOT_SUPPORTED", ROWS[row].symbol));
    }
    match process() {
        Ok(_) => Code::NOT_SUPPORTED.0,
        Err(code) => code.0,
    }
}

/// Tells what a function that is supported does not do, when that is asked for.
pub(crate) fn refused(what: &str) {
    if traces() {
        say(&format!("{what} is not supported -> CUDA_ERROR_NOT_SUPPORTED"));
    }
}
