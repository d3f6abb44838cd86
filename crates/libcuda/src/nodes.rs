//! Nodes of graphs.

use std::sync::{Arc, Mutex, PoisonError};

use handloom_driver::batch::MemOp;
use handloom_driver::condition::{self, Choice, Conditional};
use handloom_driver::copy::Fill;
use handloom_driver::graph::{Graph, by_handle, kind, node};
use handloom_driver::memory::{GraphMemory, Use};
use handloom_driver::work::{Op, Shape};
use handloom_driver::{Code, Result, context, process};
use handloom_runtime::Word;

use crate::abi::{
    BatchNode, BatchOp, ChildNode, ConditionalNode, CopyNode, HostNode, HostNodeWords, KernelNode, KernelNodeOld,
    MemAllocNode, Memcpy3d, MemsetNode, NodeParams,
};
use crate::batches;
use crate::execution::{launch_of, take_attribute};
use crate::graphs::{edge_data, exec};
use crate::pools::device_of as pool_device;
use crate::ptr::{Addr, In, Out};
use crate::streams::host_call;

/// Where a new node stands: where its handle goes, in which graph, after which others.
#[derive(Clone, Copy)]
pub(crate) struct At {
    pub(crate) to: Out<u64>,
    pub(crate) graph: u64,
    pub(crate) after: In<u64>,
    pub(crate) n: u64,
}

fn add(to: Out<u64>, graph: u64, after: In<u64>, n: u64, op: impl FnOnce() -> Result<Op>) -> Result {
    add_at(At { to, graph, after, n }, None, op)
}

/// Adds a node, with what is said of the edges to it.
pub(crate) fn add_at(at: At, data: Option<In<u64>>, op: impl FnOnce() -> Result<Op>) -> Result {
    at.to.check()?;
    let graph = by_handle(at.graph)?;
    let n = usize::try_from(at.n).map_err(|_| Code::INVALID_VALUE)?;
    let after = graph.numbers(&at.after.array(n)?)?;
    let data = data.map_or(Ok(Vec::new()), |data| edge_data(data, n))?;
    let op = op()?;
    // A graph that is given away, and not a copy of one.
    let given = if let Op::Graph(child) = &op { Some(child).filter(|child| !child.is_embedded()) } else { None };
    if let Some(child) = given {
        if child.holds(&graph) {
            return Err(Code::INVALID_VALUE);
        }
        child.give()?;
    }
    let is_copy = given.is_none();
    let number = graph.add(op.clone(), after.clone()).inspect_err(|_| {
        if is_copy {
            op.end_graph();
        }
    })?;
    after.iter().zip(data).try_for_each(|(from, data)| graph.say_of_edge(*from, number, data))?;
    at.to.set(graph.get(number)?.handle)
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

/// A copy of a graph as part of a node.
fn child_op(child: u64) -> Result<Op> {
    let child = by_handle(child)?;
    child.order()?;
    // A copy would free what the original allocates, and set its conditions.
    if child.allocates() || child.has_conditions() {
        return Err(Code::NOT_SUPPORTED);
    }
    Ok(Op::Graph(child.embed()?))
}

pub(crate) fn get_child(handle: u64, to: Out<u64>) -> Result {
    to.check()?;
    let Op::Graph(graph) = op_of(handle)? else { return Err(Code::INVALID_VALUE) };
    to.set(graph.handle)
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
    add_alloc_at(At { to, graph, after, n }, None, params)
}

fn add_alloc_at(at: At, data: Option<In<u64>>, params: Out<MemAllocNode>) -> Result {
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
    add_at(at, data, || Ok(Op::GraphAlloc(memory)))?;
    params.set(given)
}

pub(crate) fn add_free(to: Out<u64>, graph: u64, after: In<u64>, n: u64, address: u64) -> Result {
    add(to, graph, after, n, || free_op(address))
}

fn free_op(address: u64) -> Result<Op> {
    let found = process()?.memory.find(address).filter(|a| a.base == address && a.kind == Use::Graph);
    found.map(|_| Op::GraphFree(address)).ok_or(Code::INVALID_VALUE)
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

/// What the nodes of a graph do, in an order that it allows.
fn line_op(child: u64) -> Result<Op> {
    Ok(Op::Child(Arc::new(by_handle(child)?.line()?)))
}

pub(crate) fn exec_set_child(exec: u64, handle: u64, child: u64) -> Result {
    set_in_exec(exec, handle, || line_op(child))
}

pub(crate) fn exec_set_record(exec: u64, handle: u64, event: u64) -> Result {
    set_in_exec(exec, handle, || record_op(event))
}

pub(crate) fn exec_set_wait(exec: u64, handle: u64, event: u64) -> Result {
    set_in_exec(exec, handle, || wait_op(event))
}

/// The words before the parameters of a node of any kind, and those after them.
const HEAD: u64 = 16;

/// What parameters of any kind ask for, that need no place to write to.
fn op_of_params(params: Out<NodeParams>) -> Result<Op> {
    let given = params.get()?;
    if given.reserved_0 != [0; 3] || given.reserved_2 != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let at = params.address() + HEAD;
    // A context stands after the parameters that the calls of one kind have.
    let ctx = |offset: u64| In::<u64>::of(at + offset).get().and_then(current);
    match given.kind {
        0 => kernel_op(&In::of(at).get()?),
        1 => {
            let CopyNode { flags, reserved, ctx, copy } = In::of(at).get()?;
            current(ctx)?;
            if flags != 0 || reserved != 0 { Err(Code::INVALID_VALUE) } else { copy_op(&copy) }
        }
        2 => {
            ctx(size_of::<MemsetNode>() as u64)?;
            fill_op(&In::of(at).get()?)
        }
        3 => host_op(&In::of(at).get()?),
        4 => {
            let ChildNode { graph, ownership } = In::of(at).get()?;
            match ownership {
                0 => child_op(graph),
                1 => {
                    let child = by_handle(graph)?;
                    let refused = child.is_embedded() || child.has_conditions();
                    if refused { Err(Code::INVALID_VALUE) } else { Ok(Op::Graph(child)) }
                }
                _ => Err(Code::INVALID_VALUE),
            }
        }
        5 => Ok(Op::Empty),
        6 => wait_op(In::of(at).get()?),
        7 => record_op(In::of(at).get()?),
        11 => free_op(In::of(at).get()?),
        12 => batch_op(&In::of(at).get()?),
        // Semaphores of others, batches of copies.
        8 | 9 => refuse("a node of a graph with a semaphore"),
        14 | 18 => refuse("a node of a graph with a batch of copies"),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn refuse(what: &str) -> Result<Op> {
    crate::call::refused(what);
    Err(Code::NOT_SUPPORTED)
}

pub(crate) fn add_any(to: Out<u64>, graph: u64, after: In<u64>, n: u64, params: Out<NodeParams>) -> Result {
    add_any_at(At { to, graph, after, n }, None, params)
}

pub(crate) fn add_any_v2(
    to: Out<u64>,
    graph: u64,
    after: In<u64>,
    data: In<u64>,
    n: u64,
    params: Out<NodeParams>,
) -> Result {
    add_any_at(At { to, graph, after, n }, Some(data), params)
}

fn add_any_at(at: At, data: Option<In<u64>>, params: Out<NodeParams>) -> Result {
    const ALLOC: u32 = 10;
    const CONDITIONAL: u32 = 13;
    match params.get()?.kind {
        ALLOC => add_alloc_at(at, data, Addr(params.address() + HEAD).out()),
        CONDITIONAL => add_conditional_at(at, data, Addr(params.address() + HEAD).out()),
        _ => add_at(at, data, || op_of_params(params)),
    }
}

/// The graphs of the new node are told where they were asked for.
fn add_conditional_at(at: At, data: Option<In<u64>>, params: Out<ConditionalNode>) -> Result {
    let mut given = params.get()?;
    let condition = condition::by_handle(given.handle)?;
    let ctx = if given.ctx == 0 { context::current()?.handle } else { context::by_handle(given.ctx)?.handle };
    if condition.ctx != ctx {
        return Err(Code::INVALID_VALUE);
    }
    let choice = Choice::of(given.kind, given.size)?;
    let node = Arc::new(Conditional::new(condition, choice, given.size)?);
    given.graphs = node.list();
    add_at(at, data, || Ok(Op::Conditional(Arc::clone(&node)))).inspect_err(|_| Op::Conditional(node).end_graph())?;
    params.set(given)
}

/// Kinds of nodes whose parameters stay what they are.
fn changeable(params: Out<NodeParams>) -> Result {
    if matches!(params.get()?.kind, 10 | 11 | 13) { Err(Code::NOT_SUPPORTED) } else { Ok(()) }
}

pub(crate) fn set_any(handle: u64, params: Out<NodeParams>) -> Result {
    changeable(params)?;
    // The graph of a node is changed by its own handle.
    if params.get()?.kind == 4 {
        return Err(Code::NOT_SUPPORTED);
    }
    set(handle, || op_of_params(params))
}

pub(crate) fn exec_set_any(exec: u64, handle: u64, params: Out<NodeParams>) -> Result {
    changeable(params)?;
    if params.get()?.kind == 4 {
        let child: ChildNode = In::of(params.address() + HEAD).get()?;
        return exec_set_child(exec, handle, child.graph);
    }
    set_in_exec(exec, handle, || op_of_params(params))
}

pub(crate) fn get_any(handle: u64, params: Out<NodeParams>) -> Result {
    params.check()?;
    let (graph, number) = node(handle)?;
    let kind = kind(&graph.get(number)?.op);
    let mut all = NodeParams { kind, reserved_0: [0; 3], body: [0; 29], reserved_2: 0 };
    params.set(all)?;
    let at = Addr(params.address() + HEAD);
    match kind {
        0 => get_kernel(handle, at.out()),
        1 => {
            let Op::Copy(copy) = op_of(handle)? else { return Err(Code::INVALID_VALUE) };
            at.out().set(CopyNode { flags: 0, reserved: 0, ctx: 0, copy: crate::copies::described(&copy) })
        }
        2 => get_fill(handle, at.out()),
        3 => get_host(handle, at.out()),
        4 => {
            const OF_THE_NODE: i32 = -1;
            let Op::Graph(child) = op_of(handle)? else { return Err(Code::INVALID_VALUE) };
            at.out().set(ChildNode { graph: child.handle, ownership: OF_THE_NODE })
        }
        6 => get_wait(handle, at.out()),
        7 => get_record(handle, at.out()),
        10 => get_alloc(handle, at.out()),
        11 => get_free(handle, at.out()),
        12 => get_batch(handle, at.out()),
        13 => {
            let Op::Conditional(node) = op_of(handle)? else { return Err(Code::INVALID_VALUE) };
            let (condition, size) = (&node.condition, node.graphs().len());
            at.out().set(ConditionalNode {
                handle: condition.handle,
                kind: node.choice.number(),
                size: u32::try_from(size).map_err(|_| Code::INVALID_VALUE)?,
                graphs: node.list(),
                ctx: condition.ctx,
            })
        }
        _ => {
            all.body = [0; 29];
            params.set(all)
        }
    }
}

/// Bytes of the value of an attribute of a node.
type Value = [u8; 64];

pub(crate) fn kernel_attribute(handle: u64, number: u32, to: Addr) -> Result {
    let Op::Kernel(launch) = op_of(handle)? else { return Err(Code::INVALID_VALUE) };
    let mut value: Value = launch.hints.get(&number).copied().unwrap_or([0; 64]);
    let words: &[u32] = match number {
        2 => &[u32::from(launch.shape.cooperative)],
        4 => &launch.shape.cluster.unwrap_or([1; 3]),
        1 | 5 | 8 | 9 | 10 | 11 | 14 | 16 | 17 | 18 => &[],
        _ => return Err(Code::INVALID_VALUE),
    };
    for (i, word) in words.iter().enumerate() {
        value[4 * i..4 * i + 4].copy_from_slice(&word.to_le_bytes());
    }
    to.out::<Value>().set(value)
}

pub(crate) fn set_kernel_attribute(handle: u64, number: u32, from: Addr) -> Result {
    let (graph, at) = node(handle)?;
    let value = from.out::<Value>().get()?;
    graph.change_launch(at, |launch| {
        take_attribute(&mut launch.shape, number, In::of(from.0))?;
        if !matches!(number, 2 | 4) {
            launch.hints.insert(number, value);
        }
        Ok(())
    })
}

pub(crate) fn copy_attributes(to: u64, from: u64) -> Result {
    let Op::Kernel(from) = op_of(from)? else { return Err(Code::INVALID_VALUE) };
    let (graph, at) = node(to)?;
    graph.change_launch(at, |launch| {
        let Shape { cooperative, cluster, .. } = from.shape;
        launch.shape = Shape { cooperative, cluster, ..launch.shape };
        launch.hints.clone_from(&from.hints);
        Ok(())
    })
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
