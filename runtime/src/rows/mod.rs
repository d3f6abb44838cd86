//! The routines that compiled code calls, in the order of [`abi::Routine`](handloom_plan::abi::Routine).
//!
//! Each takes a cta, a context, the index of a site, a mask of lanes and two words. A routine works on rows of the context; device memory is
//! touched behind the same checks as everywhere. What goes wrong is recorded in the host state of the cta, and the routine says so by
//! giving 0. A panic, which would be a fault of ours, is recorded too: nothing unwinds into compiled code.

mod atomic;
mod audited;
mod builtin;
mod check;
#[cfg(target_arch = "x86_64")]
mod convert;
mod counted;
mod eval;
#[cfg(target_arch = "x86_64")]
mod fast;
#[cfg(target_arch = "x86_64")]
mod halves;
mod image;
#[cfg(target_arch = "x86_64")]
mod looked_up;
#[cfg(target_arch = "x86_64")]
mod matrix;
mod memory;
mod sreg;
mod stack;
mod sync;
mod tensor;
#[cfg(target_arch = "x86_64")]
mod texels;
mod transfer;
#[cfg(target_arch = "x86_64")]
mod whole;

pub(crate) use matrix::is_at_hand as has_products;
pub(crate) use transfer::end_transfers;

use std::panic::{AssertUnwindSafe, catch_unwind};

use handloom_codegen::Failure;
use handloom_plan::abi::{CtaCtx, Routine, Tables, WarpCtx};

use crate::error::panic_text;
use crate::warp::context::Ctx;
use crate::warp::host::CtaHost;

pub(crate) use counted::end_counted;
pub(crate) use memory::lanes;
pub(crate) use sync::complete_parked;

/// A routine, as code calls it.
type Entry = extern "sysv64" fn(*mut CtaCtx, *mut WarpCtx, u32, u32, u64, u64) -> u64;

/// One call of a routine.
struct Call<'h> {
    cta: *mut CtaCtx,
    host: &'h mut CtaHost,
    ctx: Ctx,
    tables: &'h Tables,
    site: usize,
    mask: u32,
    x: u64,
    y: u64,
}

impl Call<'_> {
    /// Index of the warp.
    fn warp(&self) -> u32 {
        self.ctx.header().warp
    }

    /// Number of the thread of a lane in its cta.
    fn thread(&self, lane: usize) -> u32 {
        CtaHost::thread(&self.ctx.header(), lane)
    }

    /// Notes that memory changed or time was read, so that waiting threads are no deadlock.
    fn touched(&self) {
        // SAFETY: `cta` is the context block that code passed; code does not run now.
        unsafe { (*self.cta).dirty = 1 }
    }
}

/// The table that `CtaCtx::routines` points to.
pub(crate) static TABLE: [Entry; Routine::ALL.len()] = {
    let mut table: [Entry; Routine::ALL.len()] = [eval_entry; Routine::ALL.len()];
    let mut i = 0;
    while i < table.len() {
        table[Routine::ALL[i] as usize] = entry(Routine::ALL[i]);
        i += 1;
    }
    table
};

const fn entry(routine: Routine) -> Entry {
    match routine {
        Routine::Check => check_entry,
        Routine::Eval => eval_entry,
        Routine::Memory => memory_entry,
        Routine::Sync => sync_entry,
        Routine::Builtin => builtin_entry,
        Routine::Sreg => sreg_entry,
        Routine::Misaligned => misaligned_entry,
        Routine::Range => range_entry,
        Routine::Meet => meet_entry,
        Routine::Add => add_entry,
    }
}

macro_rules! entries {
    ($($name:ident => $path:path),*) => {$(
        extern "sysv64" fn $name(cta: *mut CtaCtx, warp: *mut WarpCtx, site: u32, mask: u32, x: u64, y: u64) -> u64 {
            enter(cta, warp, site, mask, x, y, $path)
        }
    )*};
}

entries! {
    check_entry => check::check,
    eval_entry => eval::eval,
    memory_entry => memory::memory,
    sync_entry => sync::sync,
    builtin_entry => builtin::builtin,
    sreg_entry => sreg::sreg,
    misaligned_entry => check::misaligned,
    range_entry => check::range,
    meet_entry => counted::meet,
    add_entry => atomic::add
}

fn enter(
    cta: *mut CtaCtx,
    warp: *mut WarpCtx,
    site: u32,
    mask: u32,
    x: u64,
    y: u64,
    body: fn(&mut Call<'_>) -> u64,
) -> u64 {
    // SAFETY: code passes the block that the scheduler set up; the scheduler holds no reference into the host state while code runs.
    let host = unsafe { CtaHost::of(cta) };
    // SAFETY: `tables` of the block is the address of the running code's tables, which the program keeps.
    let tables: *const Tables = std::ptr::with_exposed_provenance(unsafe { (*cta).tables } as usize);
    // SAFETY: as above; tables are never written.
    let known = unsafe { &*tables };
    let mut call = Call { cta, host, ctx: Ctx { warp, tables }, tables: known, site: site as usize, mask, x, y };
    match catch_unwind(AssertUnwindSafe(|| body(&mut call))) {
        Ok(result) => result,
        Err(panic) => {
            call.host.failure = Some(Failure::Bug(format!("a routine: {}", panic_text(panic.as_ref()))));
            0
        }
    }
}
