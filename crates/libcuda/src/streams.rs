//! Streams and capture.

use std::ffi::c_void;
use std::sync::Arc;

use handloom_driver::capture::{self, Capture, Captured, Mode};
use handloom_driver::graph;
use handloom_driver::stream::{self, Null};
use handloom_driver::work::{HostCall, HostFunction, Op};
use handloom_driver::{Code, Result, process};
use handloom_runtime::StreamError;

use crate::abi::{HostFn, StreamCallback};
use crate::ptr::{Addr, In, Out};

pub(crate) fn create(to: Out<u64>, flags: u32) -> Result {
    create_with_priority(to, flags, 0)
}

pub(crate) fn create_with_priority(to: Out<u64>, flags: u32, priority: i32) -> Result {
    to.check()?;
    to.set(stream::create(flags, priority)?)
}

pub(crate) fn destroy(handle: u64) -> Result {
    stream::destroy(handle)
}

pub(crate) fn priority(null: Null, at: u64, to: Out<i32>) -> Result {
    to.check()?;
    to.set(stream::by_handle(at, null)?.1.priority)
}

pub(crate) fn flags(null: Null, at: u64, to: Out<u32>) -> Result {
    to.check()?;
    to.set(stream::by_handle(at, null)?.1.flags)
}

pub(crate) fn id(null: Null, at: u64, to: Out<u64>) -> Result {
    to.check()?;
    to.set(stream::by_handle(at, null)?.1.id)
}

pub(crate) fn context_of(null: Null, at: u64, to: Out<u64>) -> Result {
    to.check()?;
    to.set(stream::by_handle(at, null)?.0.handle)
}

pub(crate) fn context_of_v2(null: Null, at: u64, to: Out<u64>, green: Out<u64>) -> Result {
    context_of(null, at, to)?;
    green.set_any(0);
    Ok(())
}

pub(crate) fn device_of(null: Null, at: u64, to: Out<i32>) -> Result {
    to.check()?;
    to.set(stream::by_handle(at, null)?.0.gpu.ordinal)
}

pub(crate) fn query(null: Null, at: u64) -> Result {
    let (ctx, stream) = stream::by_handle(at, null)?;
    stream.refuse_capture()?;
    if ctx.result(stream.rt().is_done())? { Ok(()) } else { Err(Code::NOT_READY) }
}

pub(crate) fn synchronize(null: Null, at: u64) -> Result {
    let (ctx, stream) = stream::by_handle(at, null)?;
    stream.refuse_capture()?;
    if stream.is_legacy() {
        capture::refuse_implicit(&ctx)?;
    }
    ctx.result(ctx.while_waiting(|| stream.rt().synchronize()))
}

pub(crate) fn wait(null: Null, at: u64, event: u64, flags: u32) -> Result {
    if flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    let (ctx, stream) = stream::by_handle(at, null)?;
    let event = handloom_driver::event::by_handle(event)?;
    stream::wait(&ctx, &stream, &event)
}

/// What a function of the host is called with. It is sent to the thread of a stream, as the interface says.
#[derive(Clone, Copy)]
pub(crate) struct Data(u64);

impl Data {
    fn pointer(self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.0 as usize)
    }
}

/// A call of a function of the host.
pub(crate) fn host_call(function: HostFn, data: u64) -> Op {
    let call = function_of_host(function, data);
    Op::Host(HostCall { call, function: (function as *const ()).expose_provenance() as u64, data })
}

/// A function of the program with its argument.
pub(crate) fn function_of_host(function: HostFn, data: u64) -> HostFunction {
    let argument = Data(data);
    Arc::new(move || {
        // SAFETY: the program asked for this call with this argument.
        unsafe { function(argument.pointer()) }
    })
}

pub(crate) fn host_function(null: Null, at: u64, function: Option<HostFn>, data: Addr) -> Result {
    let function = function.ok_or(Code::INVALID_VALUE)?;
    let (ctx, stream) = stream::by_handle(at, null)?;
    stream::submit(&ctx, &stream, host_call(function, data.0))
}

pub(crate) fn host_function_v2(null: Null, at: u64, function: Option<HostFn>, data: Addr, _: u32) -> Result {
    host_function(null, at, function, data)
}

pub(crate) fn callback(null: Null, at: u64, function: Option<StreamCallback>, data: Addr, flags: u32) -> Result {
    let function = function.ok_or(Code::INVALID_VALUE)?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let (ctx, stream) = stream::by_handle(at, null)?;
    stream.refuse_capture()?;
    let (data, handle) = (Data(data.0), Data(at));
    let call = move |state: std::result::Result<(), StreamError>| {
        let code = state.err().map_or(Code::SUCCESS, |e| Code::from(&e));
        // SAFETY: the program asked for this call with this argument.
        unsafe { function(handle.pointer(), code.0, data.pointer()) }
    };
    ctx.result(stream.rt().callback(call))
}

pub(crate) fn begin_capture(null: Null, at: u64, mode: u32) -> Result {
    let mode = Mode::of(mode)?;
    let (_, stream) = stream::by_handle(at, null)?;
    if stream.is_legacy() {
        return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
    }
    if stream.is_capturing() {
        return Err(Code::ILLEGAL_STATE);
    }
    Capture::begin(&stream, graph::create()?, Vec::new(), mode, process()?.next_id())
}

pub(crate) fn begin_capture_v1(null: Null, at: u64) -> Result {
    begin_capture(null, at, Mode::Global.number())
}

pub(crate) fn begin_capture_to(null: Null, at: u64, to: u64, after: In<u64>, _: In<u64>, n: u64, mode: u32) -> Result {
    let mode = Mode::of(mode)?;
    let (_, stream) = stream::by_handle(at, null)?;
    let graph = graph::by_handle(to)?;
    let after = graph.numbers(&after.array(usize::try_from(n).map_err(|_| Code::INVALID_VALUE)?)?)?;
    Capture::begin(&stream, graph, after, mode, process()?.next_id())
}

pub(crate) fn end_capture(null: Null, at: u64, to: Out<u64>) -> Result {
    to.check()?;
    let (_, stream) = stream::by_handle(at, null)?;
    to.set(0)?;
    to.set(Capture::end(&stream)?.handle)
}

const NONE: u32 = 0;
const ACTIVE: u32 = 1;
const INVALIDATED: u32 = 2;

/// The capture of a stream. Asking for that of the default stream while another stream is captured is refused.
fn captured(null: Null, at: u64) -> Result<Option<Captured>> {
    let (ctx, stream) = stream::by_handle(at, null)?;
    if stream.is_legacy() {
        capture::refuse_implicit(&ctx)?;
    }
    Ok(stream.captured())
}

fn status(of: Option<&Captured>) -> u32 {
    of.map_or(NONE, |c| if c.capture.is_invalid() { INVALIDATED } else { ACTIVE })
}

pub(crate) fn is_capturing(null: Null, at: u64, to: Out<u32>) -> Result {
    to.check()?;
    to.set(status(captured(null, at)?.as_ref()))
}

pub(crate) fn capture_info(null: Null, at: u64, to: Out<u32>, id: Out<u64>) -> Result {
    to.check()?;
    let captured = captured(null, at)?;
    id.set_any(captured.as_ref().map_or(0, |c| c.capture.id));
    to.set(status(captured.as_ref()))
}

thread_local! {
    /// Handles of nodes that the call before handed out.
    static NODES: std::cell::RefCell<Vec<u64>> = const { std::cell::RefCell::new(Vec::new()) };
}

pub(crate) fn capture_info_v2(
    null: Null,
    at: u64,
    to: Out<u32>,
    id: Out<u64>,
    graph: Out<u64>,
    after: Out<u64>,
    n: Out<u64>,
) -> Result {
    to.check()?;
    let captured = captured(null, at)?;
    to.set(status(captured.as_ref()))?;
    let Some(captured) = captured else { return Ok(()) };
    id.set_any(captured.capture.id);
    graph.set_any(captured.capture.graph.handle);
    let nodes: Result<Vec<u64>> = captured.after.iter().map(|n| Ok(captured.capture.graph.get(*n)?.handle)).collect();
    let nodes = nodes?;
    n.set_any(nodes.len() as u64);
    let mut nodes = Some(nodes);
    let address = NODES.try_with(|own| {
        *own.borrow_mut() = nodes.take().unwrap_or_default();
        own.borrow().as_ptr().expose_provenance() as u64
    });
    // A thread that is about to end makes no later call that they are kept until.
    after.set_any(address.unwrap_or_else(|_| nodes.unwrap_or_default().leak().as_ptr().expose_provenance() as u64));
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the interface has so many")]
pub(crate) fn capture_info_v3(
    null: Null,
    at: u64,
    to: Out<u32>,
    id: Out<u64>,
    graph: Out<u64>,
    after: Out<u64>,
    edges: Out<u64>,
    n: Out<u64>,
) -> Result {
    capture_info_v2(null, at, to, id, graph, after, n)?;
    edges.set_any(0);
    Ok(())
}

pub(crate) fn update_dependencies(null: Null, at: u64, nodes: Out<u64>, n: u64, flags: u32) -> Result {
    const SET: u32 = 1;
    if flags > SET {
        return Err(Code::INVALID_VALUE);
    }
    let (_, stream) = stream::by_handle(at, null)?;
    let captured = stream.captured().ok_or(Code::ILLEGAL_STATE)?;
    let n = usize::try_from(n).map_err(|_| Code::INVALID_VALUE)?;
    let handles = In::<u64>::of(nodes.address()).array(n)?;
    let mut after = captured.capture.graph.numbers(&handles)?;
    if flags != SET {
        let new: Vec<usize> = captured.after.iter().filter(|n| !after.contains(n)).copied().collect();
        after.extend(new);
    }
    stream.set_capture(Some(Captured { capture: captured.capture, after }));
    Ok(())
}

pub(crate) fn update_dependencies_v2(null: Null, at: u64, nodes: Out<u64>, _: In<u64>, n: u64, flags: u32) -> Result {
    update_dependencies(null, at, nodes, n, flags)
}

pub(crate) fn exchange_mode(mode: Out<u32>) -> Result {
    process()?;
    let new = Mode::of(mode.get()?)?;
    mode.set(capture::exchange_thread_mode(new).number())
}

/// Attributes of streams (1 to 3, 8 to 10) are hints to a GPU.
pub(crate) fn attribute(null: Null, at: u64, number: u32, value: Addr) -> Result {
    let (_, stream) = stream::by_handle(at, null)?;
    let bytes = value.out::<[u8; 64]>();
    bytes.check()?;
    match number {
        1 | 3 | 9 | 10 => bytes.set([0; 64]),
        8 => {
            let mut all = [0; 64];
            all[..4].copy_from_slice(&stream.priority.to_le_bytes());
            bytes.set(all)
        }
        _ => Err(Code::INVALID_VALUE),
    }
}

pub(crate) fn set_attribute(null: Null, at: u64, number: u32, value: Addr) -> Result {
    stream::by_handle(at, null)?;
    if value.0 == 0 || !matches!(number, 1 | 3 | 8 | 9 | 10) { Err(Code::INVALID_VALUE) } else { Ok(()) }
}

pub(crate) fn copy_attributes(null: Null, to: u64, from: u64) -> Result {
    stream::by_handle(to, null)?;
    stream::by_handle(from, null).map(drop)
}
