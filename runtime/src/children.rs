//! What the threads of a launch ask of CUDA's device runtime: launches, copies and fills in streams, which run when the launch itself has come to its
//! end, and what is told at once: limits, attributes, errors.
//!
//! A parent is not sure to see a child run before its own end, so a child may always wait for that. Nothing is lost by it, and every write of
//! the parent is there when the child begins.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use handloom_audit::Before;
use handloom_interp::builtin::Fresh;
use handloom_interp::memory::{Answer, Asked};
use handloom_ir::simt::device_call::Part;
use handloom_ir::simt::{DeviceCall, FuncId};

use crate::lock::lock;
use crate::memory::{AllocKind, Rows, Space, access};
use crate::module::ModuleInner;

/// Deepest nesting of launches below that of the host.
const MAX_DEPTH: u32 = 24;

/// What kernels may ask of the device that they run on.
pub trait DeviceFacts: Send + Sync + fmt::Debug {
    /// The number of the device.
    fn ordinal(&self) -> i32;

    /// How many devices there are.
    fn count(&self) -> i32;

    /// An attribute of a device, by its number.
    fn attribute(&self, number: i32, device: i32) -> Option<i32>;

    /// A limit, by its number; that of launches that are pending is number 4.
    fn limit(&self, number: u32) -> Option<u64>;
}

/// The number of the limit of pending launches.
const PENDING_LAUNCHES: u32 = 4;

macro_rules! errors {
    ($($name:ident = $number:literal $word:literal $text:literal;)*) => {
        $(const $name: u32 = $number;)*

        /// Errors with their names and what they mean.
        const ERRORS: &[(u32, &str, &str)] = &[$(($number, $word, $text)),*];
    };
}

errors! {
    SUCCESS = 0 "cudaSuccess" "no error";
    INVALID_VALUE = 1 "cudaErrorInvalidValue" "invalid argument";
    MEMORY_ALLOCATION = 2 "cudaErrorMemoryAllocation" "out of memory";
    INVALID_CONFIGURATION = 9 "cudaErrorInvalidConfiguration" "invalid configuration argument";
    INVALID_DIRECTION = 21 "cudaErrorInvalidMemcpyDirection" "invalid copy direction for memcpy";
    MAX_DEPTH_EXCEEDED = 65 "cudaErrorLaunchMaxDepthExceeded" "launch would exceed maximum depth of nested launches";
    PENDING_COUNT_EXCEEDED = 69 "cudaErrorLaunchPendingCountExceeded" "launch would exceed the limit of pending launches";
    INVALID_DEVICE_FUNCTION = 98 "cudaErrorInvalidDeviceFunction" "invalid device function";
    INVALID_DEVICE = 101 "cudaErrorInvalidDevice" "invalid device ordinal";
    UNSUPPORTED_LIMIT = 215 "cudaErrorUnsupportedLimit" "limit is not supported on this architecture";
    INVALID_HANDLE = 400 "cudaErrorInvalidResourceHandle" "invalid resource handle";
    OUT_OF_RESOURCES = 701 "cudaErrorLaunchOutOfResources" "too many resources requested for launch";
}

/// A launch that a thread asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Child {
    pub(crate) entry: Arc<str>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) params: Vec<u8>,
    /// Launches above it, up to that of the host.
    pub(crate) depth: u32,
}

/// Work that a thread gave a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// A launch.
    Launch(Child),
    /// Copies rows of so many bytes.
    Copy { to: Rows, from: Rows, width: u64, height: u64 },
    /// Fills rows of so many bytes.
    Fill { to: Rows, byte: u8, width: u64, height: u64 },
}

/// Why a launch cannot be.
pub(crate) enum Unfit {
    /// Its shape.
    Shape,
    /// Threads or shared memory.
    Resources,
}

/// Says whether an entry can be launched so: everything but its parameters is looked at.
pub(crate) type Judge = fn(&Arc<ModuleInner>, &Child) -> Result<(), Unfit>;

/// Where a launch stands among those that threads make.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    /// Launches above it.
    pub(crate) depth: AtomicU32,
    /// Work of the whole tree that has not begun.
    pub(crate) pending: Arc<AtomicU64>,
}

/// What the threads of a launch asked for.
#[derive(Debug)]
pub(crate) struct Children {
    facts: Arc<dyn DeviceFacts>,
    judge: Judge,
    nesting: Nesting,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Memory for parameters, by address.
    buffers: BTreeMap<u64, Buffer>,
    works: Vec<Given>,
    tails: Vec<(Work, Order)>,
    /// How many works each row of works has.
    rows: Vec<u32>,
    /// By stream: the works that the next one has to follow.
    last: BTreeMap<Stream, Vec<usize>>,
    streams: BTreeSet<u64>,
    events: BTreeMap<u64, Vec<usize>>,
    handles: u64,
    /// The last error of a thread.
    errors: BTreeMap<(u64, u32), u32>,
    /// Texts of errors in device memory.
    texts: BTreeMap<&'static str, u64>,
}

#[derive(Debug)]
struct Buffer {
    bytes: u64,
    /// The launch, where it is known already.
    launch: Option<Child>,
}

/// Work, in the order in which it was given.
#[derive(Debug)]
struct Given {
    /// Number of the cta that gave it.
    cta: u64,
    work: Work,
    /// Works that come first.
    after: Vec<usize>,
    order: Order,
}

/// Which of the works of a launch come before one, and what of the launch itself, if somebody looks at races.
#[derive(Clone, Default, Debug)]
pub(crate) struct Order {
    /// Its row, and its place there: all before it in its row come before it.
    at: (u32, u32),
    /// By row: the last work that comes before.
    known: Arc<BTreeMap<u32, u32>>,
    is_tail: bool,
    /// What of the launch comes before it.
    pub(crate) before: Option<Before>,
}

impl Order {
    /// Whether it comes after a work of the same launch that ran before it.
    pub(crate) fn is_after(&self, other: &Order) -> bool {
        self.is_tail || self.known.get(&other.at.0).is_some_and(|last| *last >= other.at.1)
    }

    /// Whether it comes after all that the launch itself did.
    pub(crate) fn is_after_all(&self) -> bool {
        self.is_tail
    }
}

/// A stream, as a launch sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stream {
    /// The default stream of a cta.
    Cta(u64),
    /// That of a thread.
    Thread(u64, u32),
    Named(u64),
    FireAndForget,
    Tail,
}

/// Handles of streams that a program need not make, from 1 on: legacy, of the thread, tail, fire and forget.
const FIXED: u64 = 16;

/// Who calls.
struct Caller<'c> {
    module: &'c Arc<ModuleInner>,
    space: &'c Space,
    cta: u64,
    thread: u32,
    per_thread: bool,
    before: Option<&'c Before>,
}

impl Children {
    pub(crate) fn new(facts: Arc<dyn DeviceFacts>, judge: Judge, nesting: Nesting) -> Children {
        Children { facts, judge, nesting, state: Mutex::default() }
    }

    fn depth(&self) -> u32 {
        self.nesting.depth.load(Ordering::Relaxed)
    }

    /// Its place among launches that threads make.
    pub(crate) fn nesting(&self) -> &Nesting {
        &self.nesting
    }

    /// Answers a call.
    pub(crate) fn answer(&self, asked: &Asked, cta: u64, module: &Arc<ModuleInner>, space: &Space) -> Answer {
        let before = asked.before.as_ref();
        let caller = Caller { module, space, cta, thread: asked.thread, per_thread: asked.per_thread, before };
        let mut state = lock(&self.state);
        let answer = self.call(&mut state, &caller, asked);
        state.noted(asked, cta, answer)
    }

    /// The answer to `cudaMalloc`, for which memory was made, or not: then its address is 0.
    pub(crate) fn made(&self, asked: &Asked, cta: u64, word: u32, memory: Fresh) -> Answer {
        let answer = match memory {
            (0, _) => Err(MEMORY_ALLOCATION),
            (address, _) => put(asked.args[0], word, Ok(address)).map(|a| Answer { fresh: Some(memory), ..a }),
        };
        lock(&self.state).noted(asked, cta, answer)
    }

    /// The answer to `cudaFree`, by whether there was such memory.
    pub(crate) fn freed(&self, asked: &Asked, cta: u64, was_there: bool) -> Answer {
        let answer = if was_there { Ok(Answer::of(u64::from(SUCCESS))) } else { Err(INVALID_VALUE) };
        lock(&self.state).noted(asked, cta, answer)
    }

    fn call(&self, state: &mut State, caller: &Caller<'_>, asked: &Asked) -> Result<Answer, u32> {
        let key = (caller.cta, caller.thread);
        let done = Answer::of(u64::from(SUCCESS));
        match (asked.call, asked.args.as_slice()) {
            (DeviceCall::GetParameterBuffer, &[align, bytes]) => state.buffer(caller, align, bytes, None),
            (DeviceCall::GetParameterBufferV2, &[func, gx, gy, gz, bx, by, bz, shared]) => {
                let child = self.child(caller, func, [gx, gy, gz, bx, by, bz, shared])?;
                state.buffer(caller, 16, param_bytes(caller.module, &child.entry), Some(child))
            }
            (DeviceCall::LaunchDevice, &[func, buffer, gx, gy, gz, bx, by, bz, shared, stream]) => {
                let child = self.child(caller, func, [gx, gy, gz, bx, by, bz, shared]);
                self.launch(state, caller, buffer, Some(child), stream).map(|()| done)
            }
            (DeviceCall::LaunchDeviceV2, &[buffer, stream]) => {
                self.launch(state, caller, buffer, None, stream).map(|()| done)
            }
            (DeviceCall::GetLastError, []) => Ok(Answer::of(u64::from(state.errors.remove(&key).unwrap_or(SUCCESS)))),
            (DeviceCall::PeekAtLastError, []) => {
                Ok(Answer::of(u64::from(state.errors.get(&key).copied().unwrap_or(SUCCESS))))
            }
            (DeviceCall::GetErrorName, &[code]) => {
                Ok(Answer::of(state.text(caller, code, |e| e.1, "unrecognized error code")))
            }
            (DeviceCall::GetErrorString, &[code]) => {
                Ok(Answer::of(state.text(caller, code, |e| e.2, "unrecognized error code")))
            }
            (DeviceCall::GetDeviceCount, &[to]) => put(to, 4, Ok(u64::from(self.facts.count().cast_unsigned()))),
            (DeviceCall::GetDevice, &[to]) => put(to, 4, Ok(u64::from(self.facts.ordinal().cast_unsigned()))),
            (DeviceCall::DeviceGetAttribute, &[to, number, device]) => put(to, 4, self.attribute(number, device)),
            (DeviceCall::DeviceGetLimit, &[to, number]) => {
                let limit = u32::try_from(number).ok().and_then(|n| self.facts.limit(n));
                put(to, word(caller), limit.ok_or(UNSUPPORTED_LIMIT))
            }
            (DeviceCall::StreamCreateWithFlags, &[to, flags]) => {
                const NON_BLOCKING: u64 = 1;
                let handle = if flags == NON_BLOCKING { Ok(state.handle()) } else { Err(INVALID_VALUE) };
                let answer = put(to, word(caller), handle)?;
                state.streams.extend(answer.out.map(|(_, _, handle)| handle));
                Ok(answer)
            }
            (DeviceCall::StreamDestroy, &[stream]) => {
                let found = state.streams.remove(&stream);
                if found { Ok(done) } else { Err(INVALID_HANDLE) }
            }
            (DeviceCall::StreamWaitEvent, &[stream, event, flags]) => {
                let stream = state.stream_with_events(caller, stream)?;
                let works = state.events.get(&event).cloned().ok_or(INVALID_HANDLE)?;
                if flags != 0 {
                    return Err(INVALID_VALUE);
                }
                state.last.entry(stream).or_default().extend(works);
                Ok(done)
            }
            (DeviceCall::EventCreateWithFlags, &[to, flags]) => {
                const DISABLE_TIMING: u64 = 2;
                let handle = if flags == DISABLE_TIMING { Ok(state.handle()) } else { Err(INVALID_VALUE) };
                let answer = put(to, word(caller), handle)?;
                state.events.extend(answer.out.map(|(_, _, handle)| (handle, Vec::new())));
                Ok(answer)
            }
            (DeviceCall::EventRecord, &[event, stream]) | (DeviceCall::EventRecordWithFlags, &[event, stream, 0]) => {
                let stream = state.stream_with_events(caller, stream)?;
                let works = state.last.get(&stream).cloned().unwrap_or_default();
                *state.events.get_mut(&event).ok_or(INVALID_HANDLE)? = works;
                Ok(done)
            }
            (DeviceCall::EventRecordWithFlags, _) => Err(INVALID_VALUE),
            (DeviceCall::EventDestroy, &[event]) => state.events.remove(&event).map(|_| done).ok_or(INVALID_HANDLE),
            (DeviceCall::MemcpyAsync, &[to, from, bytes, kind, stream]) => {
                let (to, from) = (Rows { address: to, pitch: bytes }, Rows { address: from, pitch: bytes });
                let work = Work::Copy { to, from, width: bytes, height: 1 };
                self.copy(state, caller, kind, work, stream).map(|()| done)
            }
            (DeviceCall::Memcpy2DAsync, &[to, to_pitch, from, from_pitch, width, height, kind, stream]) => {
                let (to, from) = (Rows { address: to, pitch: to_pitch }, Rows { address: from, pitch: from_pitch });
                self.copy(state, caller, kind, Work::Copy { to, from, width, height }, stream).map(|()| done)
            }
            (DeviceCall::MemsetAsync, &[to, value, bytes, stream]) => {
                let to = Rows { address: to, pitch: bytes };
                let work = Work::Fill { to, byte: value.to_le_bytes()[0], width: bytes, height: 1 };
                self.put_memory_work(state, caller, work, stream).map(|()| done)
            }
            (DeviceCall::Memset2DAsync, &[to, pitch, value, width, height, stream]) => {
                let work = Work::Fill { to: Rows { address: to, pitch }, byte: value.to_le_bytes()[0], width, height };
                self.put_memory_work(state, caller, work, stream).map(|()| done)
            }
            // The memory of the cta does these.
            (DeviceCall::Malloc | DeviceCall::Free, _) => Err(INVALID_VALUE),
            (call, args) => panic!("bug: {call:?} has {} arguments", args.len()),
        }
    }

    fn attribute(&self, number: u64, device: u64) -> Result<u64, u32> {
        let int = |v: u64| u32::try_from(v).map(u32::cast_signed).map_err(|_| INVALID_VALUE);
        let device = int(device)?;
        if device < 0 || device >= self.facts.count() {
            return Err(INVALID_DEVICE);
        }
        let value = self.facts.attribute(int(number)?, device).ok_or(INVALID_VALUE)?;
        Ok(u64::from(value.cast_unsigned()))
    }

    /// A launch without its parameters.
    fn child(&self, caller: &Caller<'_>, func: u64, shape: [u64; 7]) -> Result<Child, u32> {
        let func = FuncId::of_handle(func).ok_or(INVALID_DEVICE_FUNCTION)?;
        let named = caller.module.ir.entries.iter().find(|(_, e)| e.func == func);
        let (name, _) = named.ok_or(INVALID_DEVICE_FUNCTION)?;
        let [gx, gy, gz, bx, by, bz, shared_bytes] = shape.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        Ok(Child {
            entry: Arc::from(name.as_str()),
            grid: [gx, gy, gz],
            block: [bx, by, bz],
            shared_bytes,
            params: Vec::new(),
            depth: self.depth() + 1,
        })
    }

    /// Takes parameters and puts their launch into a stream. What is wrong with it is found here, where the program gets a code.
    fn launch(
        &self,
        state: &mut State,
        caller: &Caller<'_>,
        address: u64,
        child: Option<Result<Child, u32>>,
        stream: u64,
    ) -> Result<(), u32> {
        let buffer = state.buffers.remove(&address).ok_or(INVALID_VALUE)?;
        let mut params = vec![0; usize::try_from(buffer.bytes).map_err(|_| INVALID_VALUE)?];
        // SAFETY: the buffer was made with so many bytes, and kernels cannot end it.
        unsafe { access::copy_out(address, &mut params) };
        caller.space.free(address, Some(AllocKind::Global));
        let mut child = match child {
            Some(child) => child?,
            None => buffer.launch.ok_or(INVALID_VALUE)?,
        };
        let bytes = usize::try_from(param_bytes(caller.module, &child.entry)).unwrap_or(usize::MAX);
        if params.len() < bytes {
            return Err(INVALID_VALUE);
        }
        params.truncate(bytes);
        child.params = params;
        let stream = state.stream(caller, stream)?;
        (self.judge)(caller.module, &child).map_err(|unfit| match unfit {
            Unfit::Shape => INVALID_CONFIGURATION,
            Unfit::Resources => OUT_OF_RESOURCES,
        })?;
        if stream == Stream::Tail {
            // Choice: it takes the place of the launch that made it, so a chain of them is no deeper than its first.
            child.depth = self.depth();
        }
        if child.depth > MAX_DEPTH {
            return Err(MAX_DEPTH_EXCEEDED);
        }
        self.put_work(state, caller, Work::Launch(child), stream)
    }

    fn copy(&self, state: &mut State, caller: &Caller<'_>, kind: u64, work: Work, stream: u64) -> Result<(), u32> {
        const DEVICE_TO_DEVICE: u64 = 3;
        const DEFAULT: u64 = 4;
        match kind {
            DEVICE_TO_DEVICE | DEFAULT => self.put_memory_work(state, caller, work, stream),
            _ => Err(INVALID_DIRECTION),
        }
    }

    fn put_memory_work(&self, state: &mut State, caller: &Caller<'_>, work: Work, stream: u64) -> Result<(), u32> {
        let stream = state.stream(caller, stream)?;
        let memory = &caller.module.device.inner.memory;
        let fits = match &work {
            Work::Copy { to, from, width, height } => {
                memory.check_rows(*to, *width, *height).and(memory.check_rows(*from, *width, *height))
            }
            Work::Fill { to, width, height, .. } => memory.check_rows(*to, *width, *height),
            Work::Launch(_) => Ok(0),
        };
        fits.map_err(|_| INVALID_VALUE)?;
        self.put_work(state, caller, work, stream)
    }

    fn put_work(&self, state: &mut State, caller: &Caller<'_>, work: Work, stream: Stream) -> Result<(), u32> {
        // Choice: all that waits counts, also work that a GPU might have begun while its parent ran.
        let limit = self.facts.limit(PENDING_LAUNCHES).unwrap_or(u64::MAX);
        let more = |n: u64| (n < limit).then_some(n + 1);
        let counted = self.nesting.pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.map_err(|_| PENDING_COUNT_EXCEEDED)?;
        let before = caller.before.cloned();
        match stream {
            Stream::Tail => state.tails.push((work, Order { is_tail: true, before, ..Order::default() })),
            Stream::FireAndForget => state.put(caller.cta, work, Vec::new(), before),
            Stream::Cta(_) | Stream::Thread(..) | Stream::Named(_) => {
                let number = state.works.len();
                let after = state.last.insert(stream, vec![number]).unwrap_or_default();
                state.put(caller.cta, work, after, before);
            }
        }
        Ok(())
    }

    /// All that was asked for, in an order that keeps that of streams and events: else that of ctas. The works of the tail stream come last. Nothing
    /// is left of the launch.
    pub(crate) fn take(&self, space: &Space) -> VecDeque<(Work, Order)> {
        let state = std::mem::take(&mut *lock(&self.state));
        for address in state.buffers.into_keys().chain(state.texts.into_values()) {
            space.free(address, None);
        }
        let mut order: VecDeque<(Work, Order)> = in_order(state.works).into();
        order.extend(state.tails);
        order
    }
}

/// Works, each of them after those that it has to follow, and where that leaves a choice in the order of ctas.
fn in_order(works: Vec<Given>) -> Vec<(Work, Order)> {
    let mut followers = vec![Vec::new(); works.len()];
    let mut open: Vec<usize> = works.iter().map(|given| given.after.len()).collect();
    for (i, given) in works.iter().enumerate() {
        given.after.iter().for_each(|before| followers[*before].push(i));
    }
    let mut works: Vec<(u64, Option<(Work, Order)>)> =
        works.into_iter().map(|g| (g.cta, Some((g.work, g.order)))).collect();
    let is_ready = |i: &usize| open[*i] == 0;
    let mut ready: BinaryHeap<Reverse<(u64, usize)>> =
        (0..works.len()).filter(is_ready).map(|i| Reverse((works[i].0, i))).collect();
    let mut order = Vec::new();
    while let Some(Reverse((_, i))) = ready.pop() {
        order.extend(works[i].1.take());
        for &next in &followers[i] {
            open[next] -= 1;
            if open[next] == 0 {
                ready.push(Reverse((works[next].0, next)));
            }
        }
    }
    order
}

impl State {
    /// An answer; that it is an error is kept for the thread.
    fn noted(&mut self, asked: &Asked, cta: u64, answer: Result<Answer, u32>) -> Answer {
        answer.unwrap_or_else(|code| {
            self.errors.insert((cta, asked.thread), code);
            Answer::of(if asked.call.result() == Part::Int { u64::from(code) } else { 0 })
        })
    }

    /// Puts down work that comes after others. It is the next one of the row of one of these that is the last one there.
    fn put(&mut self, cta: u64, work: Work, after: Vec<usize>, before: Option<Before>) {
        let orders = || after.iter().map(|i| &self.works[*i].order);
        let row = orders().map(|o| o.at).find(|(row, place)| self.rows.get(*row as usize) == Some(place));
        let at = row.map_or((self.rows.len() as u32, 1), |(row, place)| (row, place + 1));
        let mut known = BTreeMap::new();
        for (row, place) in orders().flat_map(|o| o.known.iter().map(|(r, p)| (*r, *p)).chain([o.at])) {
            let last: &mut u32 = known.entry(row).or_default();
            *last = place.max(*last);
        }
        let known = Arc::new(known);
        if at.1 == 1 {
            self.rows.push(1)
        } else {
            self.rows[at.0 as usize] = at.1
        }
        self.works.push(Given { cta, work, after, order: Order { at, known, is_tail: false, before } });
    }

    fn handle(&mut self) -> u64 {
        self.handles += 1;
        FIXED * self.handles
    }

    /// Memory for parameters.
    fn buffer(&mut self, caller: &Caller<'_>, align: u64, bytes: u64, launch: Option<Child>) -> Result<Answer, u32> {
        if !align.is_power_of_two() || align > 4096 || bytes > 1 << 20 {
            return Err(INVALID_VALUE);
        }
        let made = caller.space.allocate(
            AllocKind::Global,
            bytes.max(8),
            align.max(16),
            "the parameters of a launch of the device",
            "",
        );
        let address = made.map_err(|_| MEMORY_ALLOCATION)?;
        self.buffers.insert(address, Buffer { bytes, launch });
        Ok(Answer { fresh: Some((address, bytes.max(8))), ..Answer::of(address) })
    }

    /// The address of a text about an error.
    fn text(
        &mut self,
        caller: &Caller<'_>,
        code: u64,
        of: fn(&(u32, &'static str, &'static str)) -> &'static str,
        unknown: &'static str,
    ) -> u64 {
        let text = ERRORS.iter().find(|e| u64::from(e.0) == code).map_or(unknown, of);
        if let Some(address) = self.texts.get(text) {
            return *address;
        }
        let bytes = [text.as_bytes(), &[0]].concat();
        let made = caller.space.allocate(AllocKind::Const, bytes.len() as u64, 16, "the text of an error", "");
        let Ok(address) = made else { return 0 };
        // SAFETY: the memory was just made, with room for the text.
        unsafe { access::copy_in(address, &bytes) };
        self.texts.insert(text, address);
        address
    }

    /// A stream by its handle.
    fn stream(&self, caller: &Caller<'_>, handle: u64) -> Result<Stream, u32> {
        Ok(match handle {
            0 if caller.per_thread => Stream::Thread(caller.cta, caller.thread),
            0 | 1 => Stream::Cta(caller.cta),
            2 => Stream::Thread(caller.cta, caller.thread),
            3 => Stream::Tail,
            4 => Stream::FireAndForget,
            _ if self.streams.contains(&handle) => Stream::Named(handle),
            _ => return Err(INVALID_HANDLE),
        })
    }

    /// A stream that events can be used with.
    fn stream_with_events(&self, caller: &Caller<'_>, handle: u64) -> Result<Stream, u32> {
        match self.stream(caller, handle)? {
            Stream::Tail | Stream::FireAndForget => Err(INVALID_VALUE),
            stream => Ok(stream),
        }
    }
}

/// Bytes of a pointer of the module.
fn word(caller: &Caller<'_>) -> u32 {
    u32::from(caller.module.ir.address_size) / 8
}

/// Bytes of the parameters of an entry.
fn param_bytes(module: &ModuleInner, entry: &str) -> u64 {
    let params = module.ir.entries.get(entry).map_or(&[][..], |e| &e.params);
    params.iter().map(|p| u64::from(p.offset) + u64::from(p.size)).max().unwrap_or(0)
}

/// Success, with a number for where the program wants it.
fn put(to: u64, bytes: u32, value: Result<u64, u32>) -> Result<Answer, u32> {
    if to == 0 {
        return Err(INVALID_VALUE);
    }
    Ok(Answer { out: Some((to, bytes, value?)), ..Answer::of(u64::from(SUCCESS)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_streams_and_then_of_ctas() {
        let fill = |n: u8| Work::Fill { to: Rows { address: 0, pitch: 0 }, byte: n, width: 1, height: 1 };
        let mut state = State::default();
        let given: [(u64, u8, &[usize]); 5] = [(5, 0, &[]), (2, 1, &[0]), (1, 2, &[]), (2, 3, &[]), (0, 4, &[1, 3])];
        given.into_iter().for_each(|(cta, n, after)| state.put(cta, fill(n), after.to_vec(), None));
        let orders: Vec<Order> = state.works.iter().map(|given| given.order.clone()).collect();
        let pairs = (0..5).flat_map(|a| (0..a).map(move |b| (b, a)));
        let ordered: Vec<(usize, usize)> = pairs.filter(|(b, a)| orders[*a].is_after(&orders[*b])).collect();
        assert_eq!(ordered, [(0, 1), (0, 4), (1, 4), (3, 4)]);
        let order: Vec<Work> = in_order(state.works).into_iter().map(|(work, _)| work).collect();
        assert_eq!(order, [2, 3, 0, 1, 4].map(fill));
    }
}
