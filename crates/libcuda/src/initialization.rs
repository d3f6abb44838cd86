//! Initialization, versions, error texts, entry points, the profiler.

use std::sync::Once;

use handloom_driver::process::{at_exit, note_fork, prepare_end, process, say};
use handloom_driver::{Code, Result};
use handloom_driver::{checked, counted};

use crate::VERSION;
use crate::ptr::{In, Out, ProcessMemory};
use crate::table;

pub(crate) fn init(flags: u32) -> Result {
    static FORKS: Once = Once::new();
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    FORKS.call_once(|| {
        // SAFETY: the handler only stores a word, which is allowed in a child of a process with threads, and it stays: this library is never unloaded
        // (it is linked so).
        unsafe { libc::pthread_atfork(None, None, Some(child)) };
    });
    let process = handloom_driver::init(&ProcessMemory)?;
    static END: Once = Once::new();
    END.call_once(|| {
        prepare_end();
        // SAFETY: the handler may be called at any time after this, and stays: this library is never unloaded. A panic in it ends the process, as
        // in any function of C.
        if unsafe { libc::atexit(end) } != 0 && (process.counts.is_some() || process.config.leaks) {
            say("there is no room to note what is to be done when the program ends: counts of its last launches may be missing, and leaks");
        }
    });
    Ok(())
}

extern "C" fn end() {
    at_exit();
    counted::at_exit();
    checked::at_exit();
}

extern "C" fn child() {
    note_fork();
}

pub(crate) fn driver_version(version: Out<i32>) -> Result {
    version.set(VERSION)
}

/// Texts of codes have a NUL at their end.
fn text(to: Out<u64>, text: Option<&'static str>) -> Result {
    match text {
        Some(text) => to.set(text.as_ptr().expose_provenance() as u64),
        None => {
            to.set(0)?;
            Err(Code::INVALID_VALUE)
        }
    }
}

pub(crate) fn error_string(error: u32, to: Out<u64>) -> Result {
    text(to, Code(error).text())
}

pub(crate) fn error_name(error: u32, to: Out<u64>) -> Result {
    text(to, Code(error).name())
}

/// Flags of `cuGetProcAddress`.
const LEGACY_STREAM: u64 = 1;
const PER_THREAD_STREAM: u64 = 2;

pub(crate) fn proc_address(symbol: In<u8>, to: Out<u64>, version: i32, flags: u64) -> Result {
    proc_address_v2(symbol, to, version, flags, Out::null())
}

pub(crate) fn proc_address_v2(symbol: In<u8>, to: Out<u64>, version: i32, flags: u64, status: Out<u32>) -> Result {
    const FOUND: u32 = 0;
    const UNKNOWN: u32 = 1;
    const TOO_NEW: u32 = 2;
    to.check()?;
    if symbol.is_null()
        || flags & !(LEGACY_STREAM | PER_THREAD_STREAM) != 0
        || flags == (LEGACY_STREAM | PER_THREAD_STREAM)
    {
        return Err(Code::INVALID_VALUE);
    }
    let name = symbol.text().unwrap_or_default();
    let version = u32::try_from(version).unwrap_or(0);
    match table::find(&name, version) {
        Ok(row) => {
            let twin = row.twin.filter(|_| flags == PER_THREAD_STREAM && version >= table::PER_THREAD_SINCE);
            status.set_any(FOUND);
            to.set(twin.map_or(row.address, |(_, address)| address).address())
        }
        Err(is_known) => {
            to.set(0)?;
            status.set_any(if is_known { TOO_NEW } else { UNKNOWN });
            // Choice: the second form says by its status why there is none, if it can.
            if status.is_null() { Err(Code::NOT_FOUND) } else { Ok(()) }
        }
    }
}

/// Private tables are asked for by the static runtime library, which cannot go on without; the compilers' libraries ask for one and can.
pub(crate) fn export_table(table: Out<u64>, id: In<[u8; 16]>) -> Result {
    use std::sync::atomic::{AtomicU32, Ordering};
    static ASKED: AtomicU32 = AtomicU32::new(0);
    table.set(0)?;
    if id.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    if ASKED.fetch_add(1, Ordering::Relaxed) == 1 {
        let what = "this program uses the static CUDA runtime library";
        say(&format!(
            "{what}, which needs private driver interfaces; not supported: link it with `nvcc -cudart shared`"
        ));
        checked::not_run(what);
    }
    Err(Code::NOT_SUPPORTED)
}

pub(crate) fn profiler() -> Result {
    process().map(drop)
}

pub(crate) fn loading_mode(mode: Out<u32>) -> Result {
    const EAGER: u32 = 1;
    process()?;
    mode.set(EAGER)
}
