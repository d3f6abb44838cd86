//! Graphs: making, changing and launching them.

use std::sync::Arc;

use handloom_driver::condition::Condition;
use handloom_driver::graph::{self, Graph, GraphExec, by_handle, node};
use handloom_driver::stream::{self, Null};
use handloom_driver::{Code, Result, context, process};

use crate::abi::{InstantiateParams, UpdateResult};
use crate::ptr::{In, Out};

pub(crate) fn create(to: Out<u64>, flags: u32) -> Result {
    to.check()?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    to.set(graph::create()?.handle)
}

pub(crate) fn destroy(handle: u64) -> Result {
    graph::destroy(handle)
}

pub(crate) fn duplicate(to: Out<u64>, handle: u64) -> Result {
    to.check()?;
    to.set(by_handle(handle)?.duplicate()?.handle)
}

/// The node of a copy that a node of the original became.
pub(crate) fn node_in_clone(to: Out<u64>, original: u64, clone: u64) -> Result {
    to.check()?;
    let (_, number) = node(original)?;
    to.set(by_handle(clone)?.get(number)?.handle)
}

/// Writes handles as the interface hands lists out: without a list their number, with one as many as fit, and nulls after them.
fn list(all: &[u64], to: Out<u64>, n: Out<u64>) -> Result {
    n.check()?;
    if to.is_null() {
        return n.set(all.len() as u64);
    }
    let room = usize::try_from(n.get()?).map_err(|_| Code::INVALID_VALUE)?;
    for i in 0..room {
        to.set_at(i, all.get(i).copied().unwrap_or(0));
    }
    n.set(all.len().min(room) as u64)
}

pub(crate) fn nodes(handle: u64, to: Out<u64>, n: Out<u64>) -> Result {
    let all: Vec<u64> = by_handle(handle)?.all().iter().map(|(_, node)| node.handle).collect();
    list(&all, to, n)
}

pub(crate) fn roots(handle: u64, to: Out<u64>, n: Out<u64>) -> Result {
    let all = by_handle(handle)?.all();
    let roots: Vec<u64> = all.iter().filter(|(_, node)| node.after.is_empty()).map(|(_, node)| node.handle).collect();
    list(&roots, to, n)
}

/// Edges: the node before, the one after, and what was said of it.
type Edges = Vec<(u64, u64, u64)>;

/// Writes a list of edges; one without data is refused if that would be lost.
fn hand_out(all: &Edges, from: Out<u64>, to: Out<u64>, data: Option<Out<u64>>, n: Out<u64>) -> Result {
    n.check()?;
    let asks = !from.is_null() || !to.is_null();
    if asks && data.is_none_or(Out::is_null) && all.iter().any(|edge| edge.2 != 0) {
        return Err(Code::LOSSY_QUERY);
    }
    let room = n.get()?;
    let column = |get: fn(&(u64, u64, u64)) -> u64| all.iter().map(get).collect::<Vec<u64>>();
    for (place, column) in
        [(from, column(|e| e.0)), (to, column(|e| e.1)), (data.unwrap_or(Out::null()), column(|e| e.2))]
    {
        if !place.is_null() {
            n.set(room)?;
            list(&column, place, n)?;
        }
    }
    if asks { Ok(()) } else { n.set(all.len() as u64) }
}

fn edges_of(handle: u64) -> Result<Edges> {
    let graph = by_handle(handle)?;
    let mut all = Vec::new();
    for (_, node) in graph.all() {
        for before in &node.after {
            all.push((graph.get(*before)?.handle, node.handle, node.data.get(before).copied().unwrap_or(0)));
        }
    }
    Ok(all)
}

pub(crate) fn edges(handle: u64, from: Out<u64>, to: Out<u64>, n: Out<u64>) -> Result {
    n.check()?;
    let all = edges_of(handle)?;
    if from.is_null() != to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    hand_out(&all, from, to, None, n)
}

pub(crate) fn edges_v2(handle: u64, from: Out<u64>, to: Out<u64>, data: Out<u64>, n: Out<u64>) -> Result {
    n.check()?;
    let all = edges_of(handle)?;
    if from.is_null() != to.is_null() || (from.is_null() && !data.is_null()) {
        return Err(Code::INVALID_VALUE);
    }
    hand_out(&all, from, to, Some(data), n)
}

/// Edges to a node.
fn before(handle: u64) -> Result<Edges> {
    let (graph, number) = node(handle)?;
    let own = graph.get(number)?;
    let edge = |n: &usize| Ok((graph.get(*n)?.handle, handle, own.data.get(n).copied().unwrap_or(0)));
    own.after.iter().map(edge).collect()
}

/// Edges from a node.
fn after(handle: u64) -> Result<Edges> {
    let (graph, number) = node(handle)?;
    let all = graph.all().into_iter().filter(|(_, n)| n.after.contains(&number));
    Ok(all.map(|(_, n)| (handle, n.handle, n.data.get(&number).copied().unwrap_or(0))).collect())
}

pub(crate) fn dependencies(handle: u64, to: Out<u64>, n: Out<u64>) -> Result {
    hand_out(&before(handle)?, to, Out::null(), None, n)
}

pub(crate) fn dependents(handle: u64, to: Out<u64>, n: Out<u64>) -> Result {
    hand_out(&after(handle)?, Out::null(), to, None, n)
}

pub(crate) fn dependencies_v2(handle: u64, to: Out<u64>, data: Out<u64>, n: Out<u64>) -> Result {
    hand_out(&before(handle)?, to, Out::null(), Some(data), n)
}

pub(crate) fn dependents_v2(handle: u64, to: Out<u64>, data: Out<u64>, n: Out<u64>) -> Result {
    hand_out(&after(handle)?, Out::null(), to, Some(data), n)
}

/// What may be said of an edge: which part of a launch is waited for, and that it may end early. All of it is waited for.
pub(crate) fn edge_data(list: In<u64>, n: usize) -> Result<Vec<u64>> {
    if list.is_null() {
        return Ok(vec![0; n]);
    }
    let all = list.array(n)?;
    let is_known = |data: &u64| {
        let [from, to, kind, rest @ ..] = data.to_le_bytes();
        from <= 2 && to == 0 && kind <= 1 && rest == [0; 5]
    };
    if all.iter().all(is_known) { Ok(all) } else { Err(Code::INVALID_VALUE) }
}

fn change(handle: u64, from: In<u64>, to: In<u64>, data: Option<In<u64>>, n: u64, add: bool) -> Result {
    let graph = by_handle(handle)?;
    let n = usize::try_from(n).map_err(|_| Code::INVALID_VALUE)?;
    let (from, to) = (graph.numbers(&from.array(n)?)?, graph.numbers(&to.array(n)?)?);
    let data = data.map_or(Ok(vec![0; n]), |data| edge_data(data, n))?;
    let edges: Vec<(usize, usize)> = from.into_iter().zip(to).collect();
    graph.change_edges(&edges, add)?;
    if add {
        edges.iter().zip(data).try_for_each(|((from, to), data)| graph.say_of_edge(*from, *to, data))?;
    }
    Ok(())
}

pub(crate) fn add_edges(handle: u64, from: In<u64>, to: In<u64>, n: u64) -> Result {
    change(handle, from, to, None, n, true)
}

pub(crate) fn add_edges_v2(handle: u64, from: In<u64>, to: In<u64>, data: In<u64>, n: u64) -> Result {
    change(handle, from, to, Some(data), n, true)
}

pub(crate) fn remove_edges(handle: u64, from: In<u64>, to: In<u64>, n: u64) -> Result {
    change(handle, from, to, None, n, false)
}

pub(crate) fn remove_edges_v2(handle: u64, from: In<u64>, to: In<u64>, data: In<u64>, n: u64) -> Result {
    change(handle, from, to, Some(data), n, false)
}

pub(crate) fn id(handle: u64, to: Out<u32>) -> Result {
    to.check()?;
    to.set(by_handle(handle)?.id)
}

pub(crate) fn exec_id(handle: u64, to: Out<u32>) -> Result {
    to.check()?;
    to.set(exec(handle)?.id)
}

/// The graph that a node is in.
pub(crate) fn of_node(handle: u64, to: Out<u64>) -> Result {
    to.check()?;
    to.set(node(handle)?.0.handle)
}

pub(crate) fn local_id(handle: u64, to: Out<u32>) -> Result {
    to.check()?;
    to.set(u32::try_from(node(handle)?.1).map_err(|_| Code::INVALID_VALUE)?)
}

pub(crate) fn tools_id(handle: u64, to: Out<u64>) -> Result {
    to.check()?;
    let (graph, number) = node(handle)?;
    to.set(u64::from(graph.id) << 32 | number as u64)
}

pub(crate) fn dot(handle: u64, path: In<u8>, flags: u32) -> Result {
    const VERBOSE: u32 = 1;
    const LAUNCHES: u32 = 4;
    const FLAGS: u32 = (1 << 18) - 1;
    if flags & !FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let text = by_handle(handle)?.dot(flags & (VERBOSE | LAUNCHES) != 0);
    std::fs::write(path.text()?, text).map_err(|_| Code::OPERATING_SYSTEM)
}

pub(crate) fn destroy_node(handle: u64) -> Result {
    let (graph, number) = node(handle)?;
    graph.remove(number)
}

pub(crate) fn create_condition(to: Out<u64>, handle: u64, ctx: u64, default: u32, flags: u32) -> Result {
    to.check()?;
    let graph = by_handle(handle)?;
    let ctx = if ctx == 0 { context::current()? } else { context::by_handle(ctx)? };
    let condition = Condition::new(&ctx, default, flags)?;
    let made = condition.handle;
    graph.add_condition(condition);
    to.set(made)
}

/// Flags of instantiation that change nothing here: free on launch, upload, priorities. Launches from the device (4) are not supported.
const FLAGS: u64 = 1 | 2 | 8;

fn instantiate_graph(to: Out<u64>, handle: u64, flags: u64) -> Result {
    to.check()?;
    if flags & !FLAGS != 0 {
        return Err(if flags & !(FLAGS | 4) == 0 { Code::NOT_SUPPORTED } else { Code::INVALID_VALUE });
    }
    let graph = by_handle(handle)?;
    let ctx = context::current()?;
    to.set(process()?.execs.add(GraphExec::new(&graph, &ctx)?).ok_or(Code::OUT_OF_MEMORY)?)
}

pub(crate) fn instantiate(to: Out<u64>, handle: u64, error: Out<u64>, log: Out<u8>, bytes: u64) -> Result {
    error.set_any(0);
    if bytes > 0 {
        log.set_any(0);
    }
    instantiate_graph(to, handle, 0)
}

pub(crate) fn instantiate_with_flags(to: Out<u64>, handle: u64, flags: u64) -> Result {
    instantiate_graph(to, handle, flags)
}

pub(crate) fn instantiate_with_params(null: Null, to: Out<u64>, handle: u64, params: Out<InstantiateParams>) -> Result {
    const FAILED: u32 = 1;
    let mut given = params.get()?;
    if given.upload_stream != 0 {
        stream::by_handle(given.upload_stream, null)?;
    }
    let result = instantiate_graph(to, handle, given.flags);
    given.error_node = 0;
    given.result = if result.is_ok() { 0 } else { FAILED };
    params.set(given)?;
    result
}

/// A graph that can be launched, by its handle.
pub(crate) fn exec(handle: u64) -> Result<Arc<GraphExec>> {
    process()?.execs.get(handle).ok_or(Code::INVALID_VALUE)
}

pub(crate) fn launch(null: Null, handle: u64, at: u64) -> Result {
    let exec = exec(handle)?;
    let (ctx, stream) = stream::by_handle(at, null)?;
    exec.launch(&ctx, &stream)
}

pub(crate) fn upload(null: Null, handle: u64, at: u64) -> Result {
    exec(handle)?;
    stream::by_handle(at, null).map(drop)
}

pub(crate) fn destroy_exec(handle: u64) -> Result {
    process()?.execs.remove(handle).map(drop).ok_or(Code::INVALID_VALUE)
}

pub(crate) fn exec_flags(handle: u64, to: Out<u64>) -> Result {
    to.check()?;
    exec(handle)?;
    to.set(0)
}

fn update_graph(handle: u64, graph: u64) -> Result<std::result::Result<(), (u32, u64)>> {
    let graph: Arc<Graph> = by_handle(graph)?;
    Ok(exec(handle)?.update(&graph))
}

pub(crate) fn update(handle: u64, graph: u64, error: Out<u64>, result: Out<u32>) -> Result {
    let (code, node) = update_graph(handle, graph)?.err().unwrap_or((0, 0));
    error.set_any(node);
    result.set_any(code);
    if code == 0 { Ok(()) } else { Err(Code::GRAPH_EXEC_UPDATE_FAILURE) }
}

pub(crate) fn update_v2(handle: u64, graph: u64, info: Out<UpdateResult>) -> Result {
    let (code, node) = update_graph(handle, graph)?.err().unwrap_or((0, 0));
    info.set_any(UpdateResult { result: code, error_node: node, error_from_node: 0 });
    if code == 0 { Ok(()) } else { Err(Code::GRAPH_EXEC_UPDATE_FAILURE) }
}
