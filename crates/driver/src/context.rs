//! Contexts: what a program's work on a device belongs to. Each thread has a stack of them.
//!
//! A fault of a kernel ends the context that it ran in: every later call that waits for work or gives some returns its code.

use std::cell::RefCell;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use handloom_diag::Style;
use handloom_runtime::words::quoted;
use handloom_runtime::{Budget, Context, LaunchConfig, LaunchError, Sink, StreamError};

use crate::checked;
use crate::code::{Code, Result};
use crate::gpu::Gpu;
use crate::printed::Printed;
use crate::process::{Process, may_wait, process, say};
use crate::stream::Stream;

/// The number of the limit for the stack of a thread.
const STACK_SIZE: u32 = 0;

/// The number of the limit for what kernels allocate by `malloc`, and what it is at first.
const MALLOC_HEAP: (u32, u64) = (2, 8 << 20);

/// The other limits of a context, by number, with what they are at first.
const LIMITS: &[(u32, u64)] = &[(STACK_SIZE, 1024), (1, 1 << 20), (3, 2), (4, 2048), (5, 64), (6, 0)];

/// Flags of contexts that have a meaning.
const FLAGS: u32 = 0xff;

/// A context.
pub struct Ctx {
    /// Its handle.
    pub handle: u64,
    /// A number that no other context has.
    pub id: u64,
    /// Its device.
    pub gpu: Arc<Gpu>,
    /// Whether it is the primary one of the device.
    pub is_primary: bool,
    /// How many use it, as far as they said so.
    pub uses: AtomicU32,
    /// How it was made.
    pub flags: AtomicU32,
    /// Streams and events of the device.
    pub rt: Context,
    /// Takes what kernels print.
    pub sink: Sink,
    /// The default stream.
    pub null: Arc<Stream>,
    /// What is the default stream of a thread for threads that have ended theirs.
    pub last_of_threads: OnceLock<Arc<Stream>>,
    /// The preferred use of caches, which changes nothing.
    pub cache_config: AtomicU32,
    /// What kernels allocate by `malloc`, and may.
    pub heap: Arc<Budget>,
    printed: Arc<Printed>,
    limits: [AtomicU64; LIMITS.len()],
    is_destroyed: AtomicBool,
    failed: OnceLock<Code>,
    /// Contexts whose memory its kernels may use.
    pub peers: Mutex<Vec<u64>>,
}

impl Ctx {
    fn new(handle: u64, id: u64, gpu: &Arc<Gpu>, is_primary: bool, flags: u32) -> Ctx {
        let rt = Context::new(&gpu.device);
        let check = process().ok().and_then(|process| process.config.check);
        if check.is_some_and(|check| check.races.keeps_footprint) {
            rt.watch(checked::between());
        }
        let printed = Arc::<Printed>::default();
        Ctx {
            handle,
            id,
            gpu: Arc::clone(gpu),
            is_primary,
            uses: AtomicU32::new(1),
            flags: AtomicU32::new(flags),
            null: Arc::new(Stream::default_of(handle, &rt)),
            last_of_threads: OnceLock::new(),
            rt,
            sink: printed.sink(),
            cache_config: AtomicU32::new(0),
            heap: Arc::new(Budget::new(MALLOC_HEAP.1)),
            printed,
            limits: LIMITS.map_values(),
            is_destroyed: AtomicBool::new(false),
            failed: OnceLock::new(),
            peers: Mutex::default(),
        }
    }

    /// Makes a context and its handle.
    ///
    /// # Errors
    /// There are too many, or flags are unknown.
    pub fn create(process: &Process, gpu: &Arc<Gpu>, is_primary: bool, flags: u32) -> Result<Arc<Ctx>> {
        check_flags(flags)?;
        let id = process.next_id();
        let made = process.contexts.add_with(|handle| Ctx::new(handle, id, gpu, is_primary, flags));
        made.map(|(_, ctx)| ctx).ok_or(Code::OUT_OF_MEMORY)
    }

    /// Ends a context: its streams, events, modules and memory are gone.
    ///
    /// # Errors
    /// The thread may not wait for its work.
    pub fn destroy(&self, process: &Process) -> Result {
        may_wait()?;
        self.is_destroyed.store(true, Ordering::Release);
        let _ = self.while_waiting(|| self.rt.synchronize());
        if self.is_primary {
            // Its handle is the same for ever.
            process.contexts.vacate(self.handle);
        } else {
            process.contexts.remove(self.handle);
        }
        let of_this = |ctx: u64| ctx == self.handle;
        for (handle, stream) in process.streams.all().into_iter().filter(|(_, s)| of_this(s.ctx)) {
            stream.forget_capture();
            process.streams.remove(handle);
        }
        for (handle, _) in process.events.all().into_iter().filter(|(_, e)| of_this(e.ctx)) {
            process.events.remove(handle);
        }
        for (handle, module) in process.modules.all().into_iter().filter(|(_, m)| of_this(m.ctx)) {
            module.unload(process);
            process.modules.remove(handle);
        }
        for (_, library) in process.libraries.all() {
            library.forget(self.handle);
        }
        process.opened.close_all_of(process, self);
        process.memory.free_all_of(process, self.handle);
        Ok(())
    }

    /// Whether it may be used.
    ///
    /// # Errors
    /// It was destroyed, or a kernel of it failed.
    pub fn check(&self) -> Result {
        if self.is_destroyed.load(Ordering::Acquire) {
            return Err(Code::CONTEXT_IS_DESTROYED);
        }
        if let Some(code) = self.failed.get() {
            return Err(*code);
        }
        match self.rt.error() {
            None => Ok(()),
            Some(e) => Err(self.fail(&e)),
        }
    }

    /// What an error of a stream is for the program. One that ends the context is told in full, once.
    pub fn fail(&self, e: &StreamError) -> Code {
        let code = Code::from(e);
        if self.rt.error().is_some() && self.failed.set(code).is_ok() {
            self.printed.show();
            tell(e, code);
        }
        code
    }

    /// The result of something that a stream was asked for.
    ///
    /// # Errors
    /// It failed.
    pub fn result<T>(&self, result: std::result::Result<T, StreamError>) -> Result<T> {
        result.map_err(|e| match &e {
            StreamError::Launch(why) if self.rt.error().is_none() => {
                refused(why);
                Code::from(&e)
            }
            _ => self.fail(&e),
        })
    }

    /// Waits for all work, and prints what kernels printed.
    ///
    /// # Errors
    /// A kernel failed.
    pub fn synchronize(&self) -> Result {
        let done = self.while_waiting(|| self.rt.synchronize());
        self.result(done)
    }

    /// Waits no longer than until then, and prints what kernels printed. Returns whether all work is done.
    pub fn is_done_by(&self, then: Instant) -> bool {
        self.while_waiting(|| self.rt.is_done_by(then))
    }

    /// Waits for work: what kernels print meanwhile appears at once.
    pub fn while_waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.printed.while_waiting(wait)
    }

    /// Bytes of the stack of a thread that the program asked for.
    pub fn stack(&self) -> u32 {
        u32::try_from(self.limits[STACK_SIZE as usize].load(Ordering::Relaxed)).unwrap_or(u32::MAX)
    }

    /// Sets a limit by its number.
    ///
    /// # Errors
    /// There is none of that number, or no thread has so large a stack.
    pub fn set_limit(&self, number: u32, value: u64) -> Result {
        if number == MALLOC_HEAP.0 {
            self.heap.set_limit(value);
            return Ok(());
        }
        let limit = self.stored_limit(number)?;
        if number == STACK_SIZE && value > u64::from(LaunchConfig::MOST_STACK) {
            return Err(Code::INVALID_VALUE);
        }
        limit.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// A limit by its number.
    ///
    /// # Errors
    /// There is none of that number.
    pub fn limit(&self, number: u32) -> Result<u64> {
        if number == MALLOC_HEAP.0 {
            return Ok(self.heap.get().0);
        }
        self.stored_limit(number).map(|limit| limit.load(Ordering::Relaxed))
    }

    fn stored_limit(&self, number: u32) -> Result<&AtomicU64> {
        let place = LIMITS.iter().position(|(n, _)| *n == number);
        place.map(|i| &self.limits[i]).ok_or(if number < 11 { Code::UNSUPPORTED_LIMIT } else { Code::INVALID_VALUE })
    }
}

/// Whether flags of a context have a meaning.
///
/// # Errors
/// They have none.
pub fn check_flags(flags: u32) -> Result {
    let one_way = matches!(flags & 7, 0 | 1 | 2 | 4);
    if flags & !FLAGS == 0 && one_way { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

trait MapValues {
    fn map_values(&self) -> [AtomicU64; LIMITS.len()];
}

impl MapValues for [(u32, u64)] {
    fn map_values(&self) -> [AtomicU64; LIMITS.len()] {
        std::array::from_fn(|i| AtomicU64::new(self[i].1))
    }
}

/// Tells the user why a context ended.
fn tell(e: &StreamError, code: Code) {
    let name = code.name().unwrap_or_default().trim_end_matches('\0');
    match e {
        StreamError::Launch(why) => match &**why {
            LaunchError::Trap(report) => {
                let cuda = report.cuda_place().and_then(|(file, line)| source_line(file, line));
                let text = report.human(Style::Plain, cuda.as_deref());
                let lost = format!("{text}\n  = note: this context is lost; calls return {name}\n");
                let _ = std::io::stderr().write_all(lost.as_bytes());
                if let Ok(process) = process() {
                    let entry = quoted(report.entry());
                    let json = report.json();
                    let line = format!("{{\"event\":\"trap\",\"code\":\"{name}\",\"entry\":{entry},\"trap\":{json}");
                    process.report(&format!("{line}}}"));
                    process.note(&format!("{line},\"text\":{}}}", quoted(&text)));
                    checked::stopped(process, report);
                }
            }
            other => {
                say(&format!("a launch failed ({name}): {other}"));
                checked::not_run(&format!("a launch failed ({name})"));
            }
        },
        other => {
            say(&format!("work of a stream failed ({name}): {other}"));
            checked::not_run(&format!("work of a stream failed ({name}), and nothing ran after it"));
        }
    }
}

/// Tells the user why a launch was refused.
fn refused(why: &LaunchError) {
    if let LaunchError::Failed(_) | LaunchError::NoRoom(_) = why {
        say(&format!("a launch was refused: {why}"));
        checked::not_run("a launch was refused");
    }
}

/// A line of a source file, where it is at hand.
fn source_line(file: &str, line: u32) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?).map(str::to_owned)
}

thread_local! {
    /// The contexts of this thread. Never dropped: destructors of the program's own objects of a thread, and exit handlers, have them too.
    static STACK: RefCell<ManuallyDrop<Stack>> =
        const { RefCell::new(ManuallyDrop::new(Stack { current: 0, below: Vec::new() })) };
    /// The context that this thread looked up last.
    static LAST: RefCell<Option<Arc<Ctx>>> = const { RefCell::new(None) };
}

/// Handles of contexts, one above the other.
struct Stack {
    /// The uppermost one, 0 if there is none.
    current: u64,
    /// Those below it. It has no memory while there are none.
    below: Vec<u64>,
}

impl Stack {
    fn push(&mut self, handle: u64) {
        if self.current != 0 {
            self.below.push(self.current);
        }
        self.current = handle;
    }

    fn pop(&mut self) -> Option<u64> {
        let popped = std::mem::replace(&mut self.current, self.below.pop().unwrap_or(0));
        if self.below.is_empty() {
            self.below = Vec::new();
        }
        (popped != 0).then_some(popped)
    }
}

/// Works on the stack of this thread.
fn stack<R>(work: impl FnOnce(&mut Stack) -> R) -> R {
    STACK.with_borrow_mut(|stack| work(stack))
}

/// A context by its handle, mostly without asking the table, which all threads share: programs name their context before each operation.
fn find(process: &Process, handle: u64) -> Option<Arc<Ctx>> {
    let is_it = |ctx: &&Arc<Ctx>| ctx.handle == handle && !ctx.is_destroyed.load(Ordering::Acquire);
    let known = LAST.try_with(|last| last.borrow().as_ref().filter(is_it).cloned());
    if let Ok(Some(ctx)) = known {
        return Some(ctx);
    }
    let found = process.contexts.get(handle);
    // What was there before may be the last of its context: it is dropped when nothing is borrowed. A thread that ends remembers nothing.
    let _old = LAST.try_with(|last| last.replace(found.clone()));
    found
}

/// Handle of the current context, 0 if there is none.
pub fn current_handle() -> u64 {
    stack(|s| s.current)
}

/// The current context, failed or not.
///
/// # Errors
/// There is none, or it was destroyed.
pub fn current_any() -> Result<Arc<Ctx>> {
    let process = process()?;
    match current_handle() {
        0 => Err(Code::INVALID_CONTEXT),
        handle => find(process, handle).ok_or(Code::CONTEXT_IS_DESTROYED),
    }
}

/// The current context, which works.
///
/// # Errors
/// There is none, it was destroyed, or a kernel of it failed.
pub fn current() -> Result<Arc<Ctx>> {
    let ctx = current_any()?;
    ctx.check()?;
    Ok(ctx)
}

/// A context by its handle.
///
/// # Errors
/// There is none.
pub fn by_handle(handle: u64) -> Result<Arc<Ctx>> {
    find(process()?, handle).ok_or(Code::INVALID_CONTEXT)
}

/// Pushes a context.
pub fn push(handle: u64) {
    stack(|s| s.push(handle));
}

/// Pops the current context.
///
/// # Errors
/// There is none.
pub fn pop() -> Result<u64> {
    stack(Stack::pop).ok_or(Code::INVALID_CONTEXT)
}

/// Replaces the current context; 0 for none.
pub fn set_current(handle: u64) {
    stack(|s| {
        s.pop();
        if handle != 0 {
            s.push(handle);
        }
    });
}

/// Drops a context that was destroyed from the top of the stack.
pub fn pop_destroyed(handle: u64) {
    stack(|s| {
        if s.current == handle {
            s.pop();
        }
    });
}

/// Retains the primary context of a device, which is made if there is none.
///
/// # Errors
/// There is no room.
pub fn retain_primary(process: &Process, gpu: &Arc<Gpu>) -> Result<u64> {
    let mut primary = gpu.primary.lock().unwrap_or_else(PoisonError::into_inner);
    let handle = match primary.handle {
        Some(handle) if process.contexts.get(handle).is_some() => handle,
        Some(handle) => {
            let id = process.next_id();
            let flags = primary.flags;
            process.contexts.put(handle, Ctx::new(handle, id, gpu, true, flags)).ok_or(Code::OUT_OF_MEMORY)?;
            handle
        }
        None => Ctx::create(process, gpu, true, primary.flags)?.handle,
    };
    primary.handle = Some(handle);
    primary.count += 1;
    Ok(handle)
}

/// Releases the primary context of a device; the last release ends it.
///
/// # Errors
/// It was not retained, or the thread may not wait for its work.
pub fn release_primary(process: &Process, gpu: &Gpu) -> Result {
    may_wait()?;
    let ended = {
        let mut primary = gpu.primary.lock().unwrap_or_else(PoisonError::into_inner);
        primary.count = primary.count.checked_sub(1).ok_or(Code::INVALID_CONTEXT)?;
        if primary.count > 0 { None } else { primary.handle }
    };
    ended.and_then(|handle| process.contexts.get(handle)).map_or(Ok(()), |ctx| ctx.destroy(process))
}

/// Ends the primary context of a device, and makes a fresh one if it is retained.
///
/// # Errors
/// There is no room, or the thread may not wait for its work.
pub fn reset_primary(process: &Process, gpu: &Arc<Gpu>) -> Result {
    let (handle, count, flags) = {
        let primary = gpu.primary.lock().unwrap_or_else(PoisonError::into_inner);
        (primary.handle, primary.count, primary.flags)
    };
    let Some(handle) = handle else { return Ok(()) };
    if let Some(ctx) = process.contexts.get(handle) {
        ctx.destroy(process)?;
    }
    if count > 0 {
        let id = process.next_id();
        process.contexts.put(handle, Ctx::new(handle, id, gpu, true, flags)).ok_or(Code::OUT_OF_MEMORY)?;
    }
    Ok(())
}
