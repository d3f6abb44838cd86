//! Nodes of graphs.

use std::sync::{Arc, Mutex, PoisonError};

use handloom_driver::batch::MemOp;
use handloom_driver::copy::Fill;
use handloom_driver::graph::{Graph, by_handle, kind, node};
use handloom_driver::memory::{GraphMemory, Use};
use handloom_driver::work::{Op, Shape};
use handloom_driver::{Code, Result, context, process};
use handloom_runtime::Word;

use crate::abi::{
    BatchNode, BatchOp, HostNode, HostNodeWords, KernelNode, KernelNodeOld, MemAllocNode, Memcpy3d, MemsetNode,
};
use crate::batches;
use crate::execution::launch_of;
use crate::graphs::exec;
use crate::pools::device_of as pool_device;
use crate::ptr::{In, Out};
use crate::streams::host_call;

fn add(to: Out<u64>, graph: u64, after: In<u64>, n: u64, op: impl FnOnce() -> Result<Op>) -> Result {
    to.check()?;
    let graph = by_handle(graph)?;
    let n = usize::try_from(n).map_err(|_| Code::INVALID_VALUE)?;
    let after = graph.numbers(&after.array(n)?)?;
    let number = graph.add(op()?, after)?;
    to.set(graph.get(number)?.handle)
}

fn kernel_op(p: &KernelNode) -> Result<Op> {
    let ctx = if p.ctx == 0 { context::current()? } else { context::by_handle(p.ctx)? };
    let shape = Shape { grid: p.grid, block: p.block, shared: p.shared_mem_bytes, ..Shape::default() };
    let handle = if p.func == 0 { p.kern } else { p.func };
    Ok(Op::Kernel(Arc::new(launch_of(&ctx, handle, shape, p.kernel_params, p.extra)?)))
}

fn newer(p: KernelNodeOld) -> KernelNode {
    let KernelNodeOld { func, grid, block, shared_mem_bytes, kernel_params, extra } = p;
    KernelNode { func, grid, block, shared_mem_bytes, kernel_params, extra, kern: 0, ctx: 0 }
}

fn copy_op(p: &Memcpy3d) -> Result<Op> {
    Ok(crate::copies::of_3d(p)?.map_or(Op::Empty, Op::Copy))
}

fn fill_op(p: &MemsetNode) -> Result<Op> {
    let [a, b, ..] = p.value.to_le_bytes();
    let word = match p.element_size {
        1 => Word::B8(a),
        2 => Word::B16(u16::from_le_bytes([a, b])),
        4 => Word::B32(p.value),
        _ => return Err(Code::INVALID_VALUE),
    };
    Ok(Fill::new(p.dst, p.pitch, word, p.width, p.height)?.map_or(Op::Empty, Op::Fill))
}

fn host_op(p: &HostNode) -> Result<Op> {
    Ok(host_call(p.function.ok_or(Code::INVALID_VALUE)?, p.user_data))
}

fn current(handle: u64) -> Result {
    if handle == 0 { context::current().map(drop) } else { context::by_handle(handle).map(drop) }
}

pub(crate) fn add_kernel(to: Out<u64>, graph: u64, after: In<u64>, n: u64, params: In<KernelNode>) -> Result {
    add(to, graph, after, n, || kernel_op(&params.get()?))
}

pub(crate) fn add_kernel_old(to: Out<u64>, graph: u64, after: In<u64>, n: u64, params: In<KernelNodeOld>) -> Result {
    add(to, graph, after, n, || kernel_op(&newer(params.get()?)))
}

pub(crate) fn add_copy(to: Out<u64>, graph: u64, after: In<u64>, n: u64, params: In<Memcpy3d>, ctx: u64) -> Result {
    current(ctx)?;
    add(to, graph, after, n, || copy_op(&params.get()?))
}

pub(crate) fn add_fill(to: Out<u64>, graph: u64, after: In<u64>, n: u64, params: In<MemsetNode>, ctx: u64) -> Result {
    current(ctx)?;
    add(to, graph, after, n, || fill_op(&params.get()?))
}

pub(crate) fn add_host(to: Out<u64>, graph: u64, after: In<u64>, n: u64, params: In<HostNode>) -> Result {
    add(to, graph, after, n, || host_op(&params.get()?))
}

pub(crate) fn add_empty(to: Out<u64>, graph: u64, after: In<u64>, n: u64) -> Result {
    add(to, graph, after, n, || Ok(Op::Empty))
}

/// What the nodes of a graph do, in an order that it allows.
fn child_op(child: u64) -> Result<Op> {
    let order = by_handle(child)?.order()?;
    Ok(Op::Child(Arc::new(order.into_iter().map(|(_, node)| node.op).collect())))
}

pub(crate) fn add_child(to: Out<u64>, graph: u64, after: In<u64>, n: u64, child: u64) -> Result {
    add(to, graph, after, n, || child_op(child))
}

pub(crate) fn add_record(to: Out<u64>, graph: u64, after: In<u64>, n: u64, event: u64) -> Result {
    add(to, graph, after, n, || record_op(event))
}

pub(crate) fn add_wait(to: Out<u64>, graph: u64, after: In<u64>, n: u64, event: u64) -> Result {
    add(to, graph, after, n, || wait_op(event))
}

pub(crate) fn add_alloc(to: Out<u64>, graph: u64, after: In<u64>, n: u64, params: Out<MemAllocNode>) -> Result {
    let mut given = params.get()?;
    if given.access_desc_count > 0 && given.access_descs == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let gpu = pool_device(&In::of(params.address()))?;
    let ctx = context::current()?;
    if ctx.gpu.ordinal != gpu {
        return Err(Code::NOT_SUPPORTED);
    }
    let memory = GraphMemory::new(&ctx, given.bytes)?;
    given.dptr = memory.base;
    add(to, graph, after, n, || Ok(Op::GraphAlloc(memory)))?;
    params.set(given)
}

pub(crate) fn add_free(to: Out<u64>, graph: u64, after: In<u64>, n: u64, address: u64) -> Result {
    let process = process()?;
    let found = process.memory.find(address).filter(|a| a.base == address && a.kind == Use::Graph);
    found.ok_or(Code::INVALID_VALUE)?;
    add(to, graph, after, n, || Ok(Op::GraphFree(address)))
}

fn batch_op(p: &BatchNode) -> Result<Op> {
    current(p.ctx)?;
    if p.flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    batches::batch(In::of(p.param_array), p.count, true)
}

pub(crate) fn add_batch(to: Out<u64>, graph: u64, after: In<u64>, n: u64, params: In<BatchNode>) -> Result {
    add(to, graph, after, n, || batch_op(&params.get()?))
}

fn record_op(event: u64) -> Result<Op> {
    Ok(Op::Record(handloom_driver::event::by_handle(event)?))
}

fn wait_op(event: u64) -> Result<Op> {
    Ok(Op::Wait(handloom_driver::event::by_handle(event)?))
}

/// What a node does.
fn op_of(handle: u64) -> Result<Op> {
    let (graph, number) = node(handle)?;
    Ok(graph.get(number)?.op)
}

fn kernel_of(handle: u64) -> Result<KernelNode> {
    let Op::Kernel(launch) = op_of(handle)? else { return Err(Code::INVALID_VALUE) };
    let is_kernel = process()?.kernels.get(launch.handle).is_some();
    let (func, kern) = if is_kernel { (0, launch.handle) } else { (launch.handle, 0) };
    let Shape { grid, block, shared, .. } = launch.shape;
    Ok(KernelNode { func, grid, block, shared_mem_bytes: shared, kernel_params: launch.list(), extra: 0, kern, ctx: 0 })
}

pub(crate) fn get_kernel(handle: u64, to: Out<KernelNode>) -> Result {
    to.check()?;
    to.set(kernel_of(handle)?)
}

/// The first version has no place for a kernel of a library: it becomes its function in the current context.
pub(crate) fn get_kernel_old(handle: u64, to: Out<KernelNodeOld>) -> Result {
    to.check()?;
    let KernelNode { func, grid, block, shared_mem_bytes, kernel_params, extra, kern, .. } = kernel_of(handle)?;
    let func = match process()?.kernels.get(kern) {
        Some(kernel) => kernel.function_handle(&*context::current()?)?,
        None => func,
    };
    to.set(KernelNodeOld { func, grid, block, shared_mem_bytes, kernel_params, extra })
}

pub(crate) fn get_copy(handle: u64, to: Out<Memcpy3d>) -> Result {
    to.check()?;
    let Op::Copy(copy) = op_of(handle)? else { return Err(Code::INVALID_VALUE) };
    to.set(crate::copies::described(&copy))
}

pub(crate) fn get_fill(handle: u64, to: Out<MemsetNode>) -> Result {
    to.check()?;
    let Op::Fill(fill) = op_of(handle)? else { return Err(Code::INVALID_VALUE) };
    let (value, element_size) = match fill.word {
        Word::B8(v) => (v.into(), 1),
        Word::B16(v) => (v.into(), 2),
        Word::B32(v) => (v, 4),
    };
    let Fill { address, pitch, width, height, .. } = fill;
    to.set(MemsetNode { dst: address, pitch, value, element_size, width, height })
}

pub(crate) fn get_host(handle: u64, to: Out<HostNode>) -> Result {
    to.check()?;
    let Op::Host(host) = op_of(handle)? else { return Err(Code::INVALID_VALUE) };
    to.cast::<HostNodeWords>().set(HostNodeWords { function: host.function, user_data: host.data })
}

pub(crate) fn get_alloc(handle: u64, to: Out<MemAllocNode>) -> Result {
    to.check()?;
    let Op::GraphAlloc(memory) = op_of(handle)? else { return Err(Code::INVALID_VALUE) };
    let props = crate::pools::device_props(memory.ordinal);
    to.set(MemAllocNode { props, access_descs: 0, access_desc_count: 0, bytes: memory.bytes, dptr: memory.base })
}

pub(crate) fn get_free(handle: u64, to: Out<u64>) -> Result {
    to.check()?;
    match op_of(handle)? {
        Op::GraphFree(address) => to.set(address),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// A batch, and the list that a program asked for: it stays as long as the batch does.
type Told = (Arc<Vec<MemOp>>, Vec<BatchOp>);

/// Lists of batches that programs asked for.
static LISTS: Mutex<Vec<Told>> = Mutex::new(Vec::new());

pub(crate) fn get_batch(handle: u64, to: Out<BatchNode>) -> Result {
    to.check()?;
    let Op::Batch(ops) = op_of(handle)? else { return Err(Code::INVALID_VALUE) };
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Nobody else holds those whose node is gone.
    lists.retain(|(ops, _)| Arc::strong_count(ops) > 1);
    let known = lists.iter().position(|(known, _)| Arc::ptr_eq(known, &ops));
    let at = known.unwrap_or_else(|| {
        lists.push((Arc::clone(&ops), batches::described(&ops)));
        lists.len() - 1
    });
    let count = u32::try_from(ops.len()).map_err(|_| Code::INVALID_VALUE)?;
    let param_array = lists[at].1.as_ptr().expose_provenance() as u64;
    to.set(BatchNode { ctx: 0, count, param_array, flags: 0 })
}

pub(crate) fn get_record(handle: u64, to: Out<u64>) -> Result {
    to.check()?;
    let Op::Record(event) = op_of(handle)? else { return Err(Code::INVALID_VALUE) };
    to.set(event.handle)
}

pub(crate) fn get_wait(handle: u64, to: Out<u64>) -> Result {
    to.check()?;
    let Op::Wait(event) = op_of(handle)? else { return Err(Code::INVALID_VALUE) };
    to.set(event.handle)
}

pub(crate) fn set_record(handle: u64, event: u64) -> Result {
    set(handle, || record_op(event))
}

pub(crate) fn set_wait(handle: u64, event: u64) -> Result {
    set(handle, || wait_op(event))
}

pub(crate) fn set_batch(handle: u64, params: In<BatchNode>) -> Result {
    set(handle, || batch_op(&params.get()?))
}

pub(crate) fn exec_set_batch(exec: u64, handle: u64, params: In<BatchNode>) -> Result {
    set_in_exec(exec, handle, || batch_op(&params.get()?))
}

fn set(handle: u64, op: impl FnOnce() -> Result<Op>) -> Result {
    let (graph, number) = node(handle)?;
    graph.set(number, op()?)
}

pub(crate) fn set_kernel(handle: u64, params: In<KernelNode>) -> Result {
    set(handle, || kernel_op(&params.get()?))
}

pub(crate) fn set_kernel_old(handle: u64, params: In<KernelNodeOld>) -> Result {
    set(handle, || kernel_op(&newer(params.get()?)))
}

pub(crate) fn set_copy(handle: u64, params: In<Memcpy3d>) -> Result {
    set(handle, || copy_op(&params.get()?))
}

pub(crate) fn set_fill(handle: u64, params: In<MemsetNode>) -> Result {
    set(handle, || fill_op(&params.get()?))
}

pub(crate) fn set_host(handle: u64, params: In<HostNode>) -> Result {
    set(handle, || host_op(&params.get()?))
}

fn set_in_exec(exec_handle: u64, handle: u64, op: impl FnOnce() -> Result<Op>) -> Result {
    let exec = exec(exec_handle)?;
    let (graph, number): (Arc<Graph>, usize) = node(handle)?;
    exec.set((&graph, number), op()?)
}

pub(crate) fn exec_set_kernel(exec: u64, handle: u64, params: In<KernelNode>) -> Result {
    set_in_exec(exec, handle, || kernel_op(&params.get()?))
}

pub(crate) fn exec_set_kernel_old(exec: u64, handle: u64, params: In<KernelNodeOld>) -> Result {
    set_in_exec(exec, handle, || kernel_op(&newer(params.get()?)))
}

pub(crate) fn exec_set_copy(exec: u64, handle: u64, params: In<Memcpy3d>, ctx: u64) -> Result {
    current(ctx)?;
    set_in_exec(exec, handle, || copy_op(&params.get()?))
}

pub(crate) fn exec_set_fill(exec: u64, handle: u64, params: In<MemsetNode>, ctx: u64) -> Result {
    current(ctx)?;
    set_in_exec(exec, handle, || fill_op(&params.get()?))
}

pub(crate) fn exec_set_host(exec: u64, handle: u64, params: In<HostNode>) -> Result {
    set_in_exec(exec, handle, || host_op(&params.get()?))
}

pub(crate) fn exec_set_child(exec: u64, handle: u64, child: u64) -> Result {
    set_in_exec(exec, handle, || child_op(child))
}

pub(crate) fn exec_set_record(exec: u64, handle: u64, event: u64) -> Result {
    set_in_exec(exec, handle, || record_op(event))
}

pub(crate) fn exec_set_wait(exec: u64, handle: u64, event: u64) -> Result {
    set_in_exec(exec, handle, || wait_op(event))
}

pub(crate) fn set_enabled(exec_handle: u64, handle: u64, enabled: u32) -> Result {
    let (graph, number) = node(handle)?;
    exec(exec_handle)?.enabled((&graph, number), Some(enabled != 0)).map(drop)
}

pub(crate) fn get_enabled(exec_handle: u64, handle: u64, to: Out<u32>) -> Result {
    to.check()?;
    let (graph, number) = node(handle)?;
    to.set(u32::from(exec(exec_handle)?.enabled((&graph, number), None)?))
}

pub(crate) fn type_of(handle: u64, to: Out<u32>) -> Result {
    to.check()?;
    let (graph, number) = node(handle)?;
    to.set(kind(&graph.get(number)?.op))
}
