//! Nodes of graphs.

use std::sync::Arc;

use handloom_driver::copy::Fill;
use handloom_driver::graph::{Graph, by_handle, kind, node};
use handloom_driver::work::{Op, Shape};
use handloom_driver::{Code, Result, context};
use handloom_runtime::Word;

use crate::abi::{HostNode, KernelNode, KernelNodeOld, Memcpy3d, MemsetNode};
use crate::execution::launch_of;
use crate::graphs::exec;
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
    add(to, graph, after, n, || Ok(Op::Record(handloom_driver::event::by_handle(event)?)))
}

pub(crate) fn add_wait(to: Out<u64>, graph: u64, after: In<u64>, n: u64, event: u64) -> Result {
    add(to, graph, after, n, || Ok(Op::Wait(handloom_driver::event::by_handle(event)?)))
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
    set_in_exec(exec, handle, || Ok(Op::Record(handloom_driver::event::by_handle(event)?)))
}

pub(crate) fn exec_set_wait(exec: u64, handle: u64, event: u64) -> Result {
    set_in_exec(exec, handle, || Ok(Op::Wait(handloom_driver::event::by_handle(event)?)))
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
