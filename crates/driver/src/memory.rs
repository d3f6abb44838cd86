//! What was allocated: by whom, as what, and where it lies.
//!
//! Memory of devices, pinned memory of the host and managed memory are the same: they lie in the window of a device, at the address that both the
//! program and kernels use. Kernels of other devices reach the last two as well ([`Reach`]).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use handloom_runtime::{AllocKind, Check, Found, MemoryError, Touched, Word, meminfo};

use crate::caller::Caller;
use crate::checked;
use crate::code::{Code, Result};
use crate::context::{self, Ctx};
use crate::gpu::Gpu;
use crate::hints::pages;
use crate::ipc;
use crate::process::{Process, may_wait, process};
use crate::reach::{self, Reach};
use crate::stream::{self, Stream};
use crate::work::Op;

/// What memory was asked for as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Memory of the device.
    Device,
    /// Pinned memory of the host, with the flags that were given.
    Host(u32),
    /// Memory that the host and all devices use.
    Managed,
    /// Memory of a pool, by its handle.
    Pool(u64),
    /// Memory that a graph allocates.
    Graph,
    /// Memory that was mapped there, by its handle.
    Mapped(u64),
    /// Memory of another process.
    Foreign,
    /// Memory of a pool of another process, by the handle of the pool here.
    ForeignPool(u64),
    /// An array, or the record of a texture or surface: no address of the program.
    Array,
}

/// An allocation.
#[derive(Clone, Debug)]
pub struct Allocated {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub bytes: u64,
    /// What it was asked for as.
    pub kind: Use,
    /// Handle of its context.
    pub ctx: u64,
    /// Number of its device.
    pub ordinal: i32,
    /// A number that no other allocation has.
    pub id: u64,
    /// Kernels of other devices reach it too.
    pub reach: Option<Arc<Reach>>,
}

/// Memory of the process that was registered.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// Bytes.
    pub bytes: u64,
    /// The flags that were given.
    pub flags: u32,
    /// Handle of the context.
    pub ctx: u64,
}

impl Registered {
    /// The flag of memory that kernels only read.
    pub const READ_ONLY: u32 = 8;
}

/// All allocations of the process.
#[derive(Debug, Default)]
pub struct Registry {
    all: RwLock<BTreeMap<u64, Allocated>>,
    registered: RwLock<BTreeMap<u64, (Registered, Reach)>>,
    /// Something was registered, now or before.
    has_registered: AtomicBool,
    graphs: Mutex<BTreeMap<u64, Weak<GraphMemory>>>,
    graphs_high: AtomicU64,
    in_use: AtomicU64,
}

/// Allocations from this size on are checked against what the host has left.
const LARGE: u64 = 64 << 20;

/// Allocations from this size on begin with a page.
const PAGES: u64 = 1 << 20;

/// Bytes of a page of the host.
pub const PAGE: u64 = 4096;

/// What memory is filled with when it is allocated and when it is freed, if that is asked for: no number that a test expects, and a NaN.
pub const POISON: [u8; 2] = [0xfa, 0xfd];

impl Registry {
    /// Allocates memory of a context.
    ///
    /// # Errors
    /// There is no room, or nothing is asked for.
    pub fn allocate(&self, ctx: &Ctx, bytes: u64, kind: Use) -> Result<u64> {
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        if bytes >= LARGE && meminfo("MemAvailable:").is_some_and(|free| bytes > free) {
            return Err(Code::OUT_OF_MEMORY);
        }
        let process = process()?;
        let memory = ctx.gpu.device.memory();
        // Programs rely on large allocations, and managed ones, to begin with a page, as they do on a GPU.
        let align = if bytes >= PAGES || kind == Use::Managed { PAGE } else { 1 };
        let base = memory.allocate_aligned(bytes, align)?;
        if process.config.poison {
            let _ = memory.fill(base, Word::B8(POISON[0]), bytes);
        }
        if matches!(kind, Use::Device | Use::Pool(_)) {
            memory.begins_blank(base, bytes);
        }
        if process.config.leaks && is_left(kind) {
            process.calls.makes(base);
        }
        let id = process.next_id();
        let reach = is_for_all(kind).then(|| Arc::new(Reach::new(process, base, bytes, true)));
        self.add(Allocated { base, bytes, kind, ctx: ctx.handle, ordinal: ctx.gpu.ordinal, id, reach });
        Ok(base)
    }

    /// Notes what lies at its addresses from now on.
    pub fn add(&self, new: Allocated) {
        self.in_use.fetch_add(new.bytes, Ordering::Relaxed);
        self.all.write().unwrap_or_else(PoisonError::into_inner).insert(new.base, new);
    }

    /// The allocation that holds an address.
    pub fn find(&self, address: u64) -> Option<Allocated> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let (_, a) = all.range(..=address).next_back()?;
        (address - a.base < a.bytes).then(|| a.clone())
    }

    /// First addresses and bytes of what the program allocated on a device and has not freed.
    pub fn left(&self) -> Vec<(u64, u64)> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.values().filter(|a| is_left(a.kind)).map(|a| (a.base, a.bytes)).collect()
    }

    /// Takes an allocation out by its first address, if it is of a kind that `is` likes.
    ///
    /// # Errors
    /// There is none.
    pub fn take(&self, base: u64, is: impl FnOnce(Use) -> bool) -> Result<Allocated> {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        match all.get(&base) {
            Some(a) if is(a.kind) => {}
            Some(_) | None => return Err(Code::INVALID_VALUE),
        }
        let a = all.remove(&base).ok_or(Code::INVALID_VALUE)?;
        self.in_use.fetch_sub(a.bytes, Ordering::Relaxed);
        Ok(a)
    }

    /// Frees all memory of a context.
    pub fn free_all_of(&self, process: &Process, ctx: u64) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        let own: Vec<Allocated> = all.values().filter(|a| a.ctx == ctx).cloned().collect();
        for a in own {
            all.remove(&a.base);
            self.in_use.fetch_sub(a.bytes, Ordering::Relaxed);
            process.hints.forget(pages(a.base, a.base, a.bytes));
            if let Some(gpu) = process.gpu_of(a.base) {
                let _ = gpu.device.memory().free(a.base);
            }
        }
        drop(all);
        let mut registered = self.registered.write().unwrap_or_else(PoisonError::into_inner);
        registered.retain(|_, (r, _)| r.ctx != ctx);
    }

    fn graphs(&self) -> MutexGuard<'_, BTreeMap<u64, Weak<GraphMemory>>> {
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of memory of graphs.
    pub fn of_graphs(&self) -> u64 {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.values().filter(|a| a.kind == Use::Graph).map(|a| a.bytes).sum()
    }

    /// The most bytes of memory of graphs that there were; with `reset` from now on.
    pub fn of_graphs_at_most(&self, reset: bool) -> u64 {
        if reset {
            self.graphs_high.store(self.of_graphs(), Ordering::Relaxed);
        }
        self.graphs_high.load(Ordering::Relaxed)
    }

    /// Bytes of allocations of a pool.
    pub fn of_pool(&self, pool: u64) -> u64 {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.values().filter(|a| a.kind == Use::Pool(pool)).map(|a| a.bytes).sum()
    }

    /// Notes memory of the process as registered.
    ///
    /// # Errors
    /// A part of it is.
    pub fn register(&self, process: &Process, base: u64, new: Registered) -> Result {
        let end = base.checked_add(new.bytes).ok_or(Code::INVALID_VALUE)?;
        let mut all = self.registered.write().unwrap_or_else(PoisonError::into_inner);
        let before = all.range(..end).next_back();
        if before.is_some_and(|(b, (r, _))| b + r.bytes > base) {
            return Err(Code::HOST_MEMORY_ALREADY_REGISTERED);
        }
        let is_writable = new.flags & Registered::READ_ONLY == 0;
        all.insert(base, (new, Reach::new(process, base, new.bytes, is_writable)));
        self.has_registered.store(true, Ordering::Release);
        Ok(())
    }

    /// Forgets memory that was registered.
    ///
    /// # Errors
    /// It was not.
    pub fn unregister(&self, base: u64) -> Result {
        let mut all = self.registered.write().unwrap_or_else(PoisonError::into_inner);
        all.remove(&base).map(drop).ok_or(Code::HOST_MEMORY_NOT_REGISTERED)
    }

    /// The registered memory that holds an address, with its first address.
    pub fn registered(&self, address: u64) -> Option<(u64, Registered)> {
        if !self.has_registered.load(Ordering::Acquire) {
            return None;
        }
        let all = self.registered.read().unwrap_or_else(PoisonError::into_inner);
        let (base, (r, _)) = all.range(..=address).next_back()?;
        (address - base < r.bytes).then_some((*base, *r))
    }

    /// Whether all of a range is registered.
    pub fn is_registered(&self, address: u64, bytes: u64) -> bool {
        self.registered(address)
            .is_some_and(|(base, r)| address - base <= r.bytes && bytes <= r.bytes - (address - base))
    }
}

/// Whether memory that is never freed is told.
fn is_left(kind: Use) -> bool {
    matches!(kind, Use::Device | Use::Pool(_) | Use::Managed)
}

/// Whether kernels of all devices reach it.
// Choice: pinned memory too that was not asked for as portable, as with one address space for the host and all devices.
fn is_for_all(kind: Use) -> bool {
    matches!(kind, Use::Host(_) | Use::Managed)
}

/// Memory that a node of a graph allocates: each launch of the graph has it at the same address. It is given back when neither the graph, nor what was
/// made of it, nor a launch needs it any more.
///
/// Choice: a launch finds what the one before left there, also if it was freed between, and an access to it after the graph freed it does not trap.
#[derive(Debug)]
pub struct GraphMemory {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub bytes: u64,
    /// Number of its device.
    pub ordinal: i32,
    /// It was allocated by a launch, and not freed since.
    is_live: AtomicBool,
}

impl GraphMemory {
    /// Memory in the device of a context.
    ///
    /// # Errors
    /// There is no room.
    pub fn new(ctx: &Ctx, bytes: u64) -> Result<Arc<GraphMemory>> {
        let process = process()?;
        let base = process.memory.allocate(ctx, bytes, Use::Graph)?;
        let new = Arc::new(GraphMemory { base, bytes, ordinal: ctx.gpu.ordinal, is_live: AtomicBool::new(false) });
        process.memory.graphs().insert(base, Arc::downgrade(&new));
        process.memory.graphs_high.fetch_max(process.memory.of_graphs(), Ordering::Relaxed);
        Ok(new)
    }

    /// A launch allocates it.
    pub fn allocated(&self) {
        self.is_live.store(true, Ordering::Release);
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        let Ok(process) = process() else { return };
        process.memory.graphs().remove(&self.base);
        // What the program has not freed stays until it does.
        if !self.is_live.load(Ordering::Acquire)
            && let Ok(a) = process.memory.take(self.base, |kind| kind == Use::Graph)
            && let Ok(gpu) = process.gpu(a.ordinal)
        {
            let _ = release(gpu, process, &a);
        }
    }
}

/// Memory of a graph is freed, by a launch or by the program. It goes back only when the graph is gone.
pub fn graph_freed(address: u64) {
    let Ok(process) = process() else { return };
    let known = process.memory.graphs().get(&address).and_then(Weak::upgrade);
    match known {
        Some(memory) => memory.is_live.store(false, Ordering::Release),
        None => {
            if let Ok(a) = process.memory.take(address, |kind| kind == Use::Graph)
                && let Ok(gpu) = process.gpu(a.ordinal)
            {
                let _ = release(gpu, process, &a);
            }
        }
    }
}

/// Frees memory now. All work of its context ends before; of memory that all devices reach, all work.
///
/// # Errors
/// It is not the first address of such memory, or the thread may not wait.
pub fn free(address: u64, is: impl FnOnce(Use) -> bool) -> Result {
    let process = process()?;
    let found = process.memory.find(address).filter(|a| a.base == address);
    let found = found.ok_or_else(|| not_there(process, address))?;
    may_wait()?;
    if found.kind == Use::Graph {
        if let Some(ctx) = process.contexts.get(found.ctx) {
            let _ = ctx.rt.synchronize();
        }
        graph_freed(address);
        return Ok(());
    }
    if let Use::ForeignPool(_) = found.kind {
        return ipc::close(address, |kind| matches!(kind, Use::ForeignPool(_)));
    }
    let gpu = process.gpu(found.ordinal)?;
    let a = process.memory.take(address, is).inspect_err(|_| tell_other_call(process, gpu, &found))?;
    note_free(process, address);
    // Work that was given before may still use it. Whether that fails is told by another call.
    if is_for_all(a.kind) {
        reach::settle(process)?;
    } else if let Some(ctx) = process.contexts.get(a.ctx) {
        let _ = ctx.rt.synchronize();
    }
    release(gpu, process, &a)
}

/// Notes the call that frees memory, if somebody wants to know.
fn note_free(process: &Process, address: u64) {
    if process.config.checks(Check::Memory) || process.config.leaks {
        process.calls.frees(address);
    }
}

/// Tells a check that a call frees memory that is there, but that other calls free.
fn tell_other_call(process: &Process, gpu: &Gpu, found: &Allocated) {
    if process.memory.find(found.base).is_none() {
        // Another thread has freed it meanwhile.
        return;
    }
    let by = match found.kind {
        Use::Device | Use::Managed | Use::Pool(_) | Use::Graph => "`cudaFree` or `cuMemFree`",
        Use::Host(_) => "`cudaFreeHost` or `cuMemFreeHost`",
        Use::Mapped(_) => "`cuMemUnmap`",
        Use::Foreign | Use::ForeignPool(_) => "`cudaIpcCloseMemHandle` or `cuIpcCloseMemHandle`",
        Use::Array => "`cudaFreeArray` or `cuArrayDestroy`",
    };
    if let Found::Live(allocation) = gpu.device.memory().find(found.base) {
        let why = MemoryError::OtherCall { address: found.base, allocation: Box::new(allocation), by };
        checked::refused("free", &why);
    }
}

/// The error of a call that frees what is no such memory.
fn not_there(process: &Process, address: u64) -> Code {
    let found = process.gpu_of(address).map_or(Found::Nothing, |gpu| gpu.device.memory().find(address));
    let why = match found {
        // A stream is still to free it.
        Found::Live(a) if a.base == address && a.kind == AllocKind::Linear => {
            MemoryError::Freed { address, allocation: Box::new(a) }
        }
        Found::Live(a) => MemoryError::NotBase { address, allocation: Box::new(a) },
        Found::Freed(a) => MemoryError::Freed { address, allocation: Box::new(a) },
        Found::Nothing => MemoryError::Nothing { address, bytes: 0 },
    };
    if address != 0 {
        checked::refused("free", &why);
    }
    Code::INVALID_VALUE
}

fn release(gpu: &Gpu, process: &Process, a: &Allocated) -> Result {
    if a.kind == Use::Managed {
        process.hints.forget(pages(a.base, a.base, a.bytes));
    }
    let memory = gpu.device.memory();
    if process.config.poison {
        let _ = memory.fill(a.base, Word::B8(POISON[1]), a.bytes);
    }
    memory.free(a.base).map_err(|_: MemoryError| Code::INVALID_VALUE)
}

/// Frees memory in the order of a stream.
///
/// # Errors
/// It is not the first address of such memory.
pub fn free_later(ctx: &Ctx, at: &Arc<Stream>, address: u64) -> Result {
    let process = process()?;
    let is = |kind| matches!(kind, Use::Pool(_) | Use::Device);
    match process.memory.find(address).filter(|a| a.base == address).map(|a| a.kind) {
        Some(Use::Graph) => return stream::submit(ctx, at, Op::GraphFree(address)),
        Some(Use::ForeignPool(_)) => {
            // Choice: work of the stream ends before the call does, as with other memory of another process.
            at.refuse_capture()?;
            let _ = at.rt().synchronize();
            return ipc::close(address, |kind| matches!(kind, Use::ForeignPool(_)));
        }
        Some(_) | None => {}
    }
    if at.is_capturing() {
        // Choice: memory that a graph would free lives on until its context ends, so that the graph can be launched again.
        process.memory.find(address).filter(|a| a.base == address && is(a.kind)).ok_or(Code::INVALID_VALUE)?;
        return stream::submit(ctx, at, Op::Empty);
    }
    let a = process.memory.take(address, is).map_err(|_| not_there(process, address))?;
    note_free(process, address);
    touch_all(ctx, at, "free", &a)?;
    stream::submit(ctx, at, Op::Free(a.base, a.bytes))
}

/// Tells who looks at the order of streams that memory begins or ends in the order of a stream, by the call that this thread is in: who uses it before or later,
/// uses something else.
fn touch_all(ctx: &Ctx, at: &Stream, does: &'static str, a: &Allocated) -> Result {
    let touched = ctx.rt.touched(|| vec![Touched::by_call(a.base, a.bytes, true, &Caller::now().touches(does, does))]);
    if touched.is_empty() { Ok(()) } else { ctx.result(at.rt().memory_touching(touched, |_| Ok(()))) }
}

/// Memory of a pool begins in the order of a stream.
///
/// # Errors
/// The context failed.
pub fn begins(ctx: &Ctx, at: &Stream, address: u64) -> Result {
    let found = process()?.memory.find(address);
    found.map_or(Ok(()), |a| touch_all(ctx, at, "alloc", &a))
}

/// Allocates memory of the current context.
///
/// # Errors
/// There is no room, or no context.
pub fn allocate(bytes: u64, kind: Use) -> Result<u64> {
    let ctx = context::current()?;
    process()?.memory.allocate(&ctx, bytes, kind)
}
