//! Graphs: work with an order among its parts, which is given to a stream as one.
//!
//! Choice: the nodes of a graph run one after the other in an order that their edges allow. Nothing that a graph may express tells the difference
//! but the time it takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handloom_runtime::Mark;

use crate::code::{Code, Result};
use crate::condition::Condition;
use crate::context::Ctx;
use crate::process::process;
use crate::stream::Stream;
use crate::user_object::References;
use crate::work::{HostCall, Launch, Op};

/// A node by the handle of its graph and its number in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeRef {
    /// Handle of the graph.
    pub graph: u64,
    /// Number of the node.
    pub number: usize,
}

/// A node.
#[derive(Clone)]
pub struct Node {
    /// Its handle.
    pub handle: u64,
    /// What it does.
    pub op: Op,
    /// Numbers of the nodes that come before it.
    pub after: Vec<usize>,
    /// What was said of the edges from them, if it was not nothing.
    pub data: BTreeMap<usize, u64>,
}

/// A graph.
pub struct Graph {
    /// Its handle.
    pub handle: u64,
    /// A number that no other graph has.
    pub id: u32,
    /// It is part of a node of another graph, and goes with it.
    is_embedded: AtomicBool,
    nodes: Mutex<Vec<Option<Node>>>,
    /// Objects of the program that it refers to.
    pub objects: References,
    /// Conditions that were made for it.
    conditions: Mutex<Vec<Arc<Condition>>>,
}

/// A number that no other graph has, as long as there are not too many.
fn next_id() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Makes an empty graph.
///
/// # Errors
/// There are too many.
pub fn create() -> Result<Arc<Graph>> {
    with_objects(References::default())
}

/// An empty graph that refers to objects of the program.
fn with_objects(objects: References) -> Result<Arc<Graph>> {
    let (id, is_embedded) = (next_id(), AtomicBool::new(false));
    let made = process()?.graphs.add_with(|handle| Graph {
        handle,
        id,
        is_embedded,
        nodes: Mutex::default(),
        objects,
        conditions: Mutex::default(),
    });
    made.map(|(_, graph)| graph).ok_or(Code::OUT_OF_MEMORY)
}

/// A graph by its handle.
///
/// # Errors
/// There is none.
pub fn by_handle(handle: u64) -> Result<Arc<Graph>> {
    process()?.graphs.get(handle).ok_or(Code::INVALID_VALUE)
}

/// Ends a graph.
///
/// # Errors
/// There is none, or it is part of another one.
pub fn destroy(handle: u64) -> Result {
    let graph = by_handle(handle)?;
    if graph.is_embedded() {
        return Err(Code::INVALID_VALUE);
    }
    graph.end();
    Ok(())
}

/// A node by its handle: its graph, and its number.
///
/// # Errors
/// There is none.
pub fn node(handle: u64) -> Result<(Arc<Graph>, usize)> {
    let at = process()?.nodes.get(handle).ok_or(Code::INVALID_VALUE)?;
    Ok((by_handle(at.graph)?, at.number))
}

/// The number of what a node does, as the interface counts kinds of nodes.
pub fn kind(op: &Op) -> u32 {
    match op {
        Op::Kernel(_) => 0,
        Op::Copy(_) => 1,
        Op::Fill(_) => 2,
        Op::Host(_) => 3,
        Op::Child(_) | Op::Graph(_) => 4,
        Op::Empty => 5,
        Op::Wait(_) => 6,
        Op::Record(_) => 7,
        Op::GraphAlloc(_) => 10,
        Op::Free(..) | Op::GraphFree(_) => 11,
        Op::Batch(_) => 12,
        Op::Conditional(_) | Op::Chosen(_) => 13,
    }
}

impl Graph {
    fn nodes(&self) -> MutexGuard<'_, Vec<Option<Node>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a node after others, and returns its number.
    ///
    /// # Errors
    /// One of the others is not there, or named twice.
    pub fn add(&self, op: Op, after: Vec<usize>) -> Result<usize> {
        let mut nodes = self.nodes();
        let once: BTreeSet<usize> = after.iter().copied().collect();
        let there = |n: &usize| matches!(nodes.get(*n), Some(Some(_)));
        if once.len() < after.len() || !after.iter().all(there) {
            return Err(Code::INVALID_VALUE);
        }
        let number = nodes.len();
        let handle = process()?.nodes.add(NodeRef { graph: self.handle, number }).ok_or(Code::OUT_OF_MEMORY)?;
        nodes.push(Some(Node { handle, op, after, data: BTreeMap::new() }));
        Ok(number)
    }

    /// Numbers of nodes of this graph by their handles.
    ///
    /// # Errors
    /// One is no node of this graph.
    pub fn numbers(&self, handles: &[u64]) -> Result<Vec<usize>> {
        let number = |h: &u64| {
            let (graph, number) = node(*h)?;
            if graph.handle == self.handle { Ok(number) } else { Err(Code::INVALID_VALUE) }
        };
        handles.iter().map(number).collect()
    }

    /// A node by its number.
    ///
    /// # Errors
    /// There is none.
    pub fn get(&self, number: usize) -> Result<Node> {
        self.nodes().get(number).cloned().flatten().ok_or(Code::INVALID_VALUE)
    }

    /// Changes what a node does to something of the same kind.
    ///
    /// # Errors
    /// There is no such node, or it does something else.
    pub fn set(&self, number: usize, op: Op) -> Result {
        let mut nodes = self.nodes();
        let node = nodes.get_mut(number).and_then(Option::as_mut).ok_or(Code::INVALID_VALUE)?;
        if kind(&node.op) != kind(&op) {
            return Err(Code::INVALID_VALUE);
        }
        node.op = op.with_attributes_of(&node.op);
        Ok(())
    }

    /// Changes a launch.
    ///
    /// # Errors
    /// There is no such node, it launches nothing, or the change is refused.
    pub fn change_launch(&self, number: usize, change: impl FnOnce(&mut Launch) -> Result) -> Result {
        let mut nodes = self.nodes();
        let node = nodes.get_mut(number).and_then(Option::as_mut).ok_or(Code::INVALID_VALUE)?;
        let Op::Kernel(launch) = &node.op else { return Err(Code::INVALID_VALUE) };
        let mut new = launch.copy();
        change(&mut new)?;
        node.op = Op::Kernel(Arc::new(new));
        Ok(())
    }

    /// Takes a node out, with its edges.
    ///
    /// # Errors
    /// There is none.
    pub fn remove(&self, number: usize) -> Result {
        let mut nodes = self.nodes();
        let gone = nodes.get_mut(number).and_then(Option::take).ok_or(Code::INVALID_VALUE)?;
        for node in nodes.iter_mut().flatten() {
            node.after.retain(|a| *a != number);
            node.data.remove(&number);
        }
        process()?.nodes.remove(gone.handle);
        drop(nodes);
        gone.op.end_graph();
        Ok(())
    }

    /// Adds or takes edges, all or none.
    ///
    /// # Errors
    /// A node is not there, an edge is there already, or is not there to be taken.
    pub fn change_edges(&self, edges: &[(usize, usize)], add: bool) -> Result {
        let mut nodes = self.nodes();
        let mut new = nodes.clone();
        for (from, to) in edges {
            if from == to || !matches!(new.get(*from), Some(Some(_))) {
                return Err(Code::INVALID_VALUE);
            }
            let node = new.get_mut(*to).and_then(Option::as_mut).ok_or(Code::INVALID_VALUE)?;
            if node.after.contains(from) == add {
                return Err(Code::INVALID_VALUE);
            }
            if add {
                node.after.push(*from);
            } else {
                node.after.retain(|n| n != from);
                node.data.remove(from);
            }
        }
        *nodes = new;
        Ok(())
    }

    /// Notes what was said of an edge that is there.
    ///
    /// # Errors
    /// There is no such node.
    pub fn say_of_edge(&self, from: usize, to: usize, data: u64) -> Result {
        let mut nodes = self.nodes();
        let node = nodes.get_mut(to).and_then(Option::as_mut).ok_or(Code::INVALID_VALUE)?;
        if data != 0 {
            node.data.insert(from, data);
        }
        Ok(())
    }

    /// All nodes with their numbers.
    pub fn all(&self) -> Vec<(usize, Node)> {
        self.nodes().iter().enumerate().filter_map(|(i, n)| Some((i, n.clone()?))).collect()
    }

    /// Whether each of some nodes comes before one of the `ends`, or is one.
    pub fn reach(&self, ends: &[usize], of: &[usize]) -> bool {
        let nodes = self.nodes();
        let mut seen = BTreeSet::new();
        let mut todo = ends.to_vec();
        while let Some(n) = todo.pop() {
            if seen.insert(n)
                && let Some(Some(node)) = nodes.get(n)
            {
                todo.extend(&node.after);
            }
        }
        of.iter().all(|n| seen.contains(n))
    }

    /// Its nodes in an order that its edges allow.
    ///
    /// # Errors
    /// The edges make a circle.
    pub fn order(&self) -> Result<Vec<(usize, Node)>> {
        let all = self.all();
        let mut done = BTreeSet::new();
        let mut order = Vec::with_capacity(all.len());
        let mut left = all;
        while !left.is_empty() {
            let known = left.len();
            let mut rest = Vec::new();
            for (number, node) in left {
                if node.after.iter().all(|n| done.contains(n)) {
                    done.insert(number);
                    order.push((number, node));
                } else {
                    rest.push((number, node));
                }
            }
            if rest.len() == known {
                return Err(Code::INVALID_VALUE);
            }
            left = rest;
        }
        Ok(order)
    }

    /// A copy of it, with handles of its own.
    ///
    /// # Errors
    /// There are too many graphs or nodes, or one has a condition.
    pub fn duplicate(&self) -> Result<Arc<Graph>> {
        if self.has_conditions() {
            return Err(Code::NOT_SUPPORTED);
        }
        let copy = with_objects(self.objects.for_copy())?;
        let old = self.nodes().clone();
        let mut new = copy.nodes();
        let table = &process()?.nodes;
        for (number, node) in old.into_iter().enumerate() {
            let node = match node {
                None => None,
                Some(node) => {
                    let handle = table.add(NodeRef { graph: copy.handle, number }).ok_or(Code::OUT_OF_MEMORY)?;
                    let op = if let Op::Graph(child) = &node.op { Op::Graph(child.embed()?) } else { node.op };
                    Some(Node { handle, op, ..node })
                }
            };
            new.push(node);
        }
        drop(new);
        Ok(copy)
    }

    /// A copy of it that is part of a node.
    ///
    /// # Errors
    /// There are too many graphs or nodes.
    pub fn embed(&self) -> Result<Arc<Graph>> {
        let copy = self.duplicate()?;
        copy.is_embedded.store(true, Ordering::Release);
        Ok(copy)
    }

    /// Whether it is part of a node.
    pub fn is_embedded(&self) -> bool {
        self.is_embedded.load(Ordering::Acquire)
    }

    /// Makes it part of a node as it is.
    ///
    /// # Errors
    /// It is part of one already.
    pub fn give(&self) -> Result {
        if self.is_embedded.swap(true, Ordering::AcqRel) { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    /// A graph of ops one after the other, as part of a node.
    ///
    /// # Errors
    /// There are too many graphs or nodes.
    pub fn of_line(ops: Vec<Op>) -> Result<Arc<Graph>> {
        let graph = create()?;
        graph.is_embedded.store(true, Ordering::Release);
        let mut after = Vec::new();
        for op in ops {
            after = vec![graph.add(op, after)?];
        }
        Ok(graph)
    }

    /// What its nodes do, in an order that it allows, as it is now.
    ///
    /// # Errors
    /// The edges make a circle.
    pub fn line(&self) -> Result<Vec<Op>> {
        self.order()?.into_iter().map(|(_, node)| node.op.resolved()).collect()
    }

    /// Its handle and those of its nodes mean nothing any more.
    pub fn end(&self) {
        let Ok(process) = process() else { return };
        process.graphs.remove(self.handle);
        for (_, node) in self.all() {
            process.nodes.remove(node.handle);
            node.op.end_graph();
        }
    }

    /// Whether it is a part of itself, at any depth, or `other` is.
    pub fn holds(&self, other: &Graph) -> bool {
        self.handle == other.handle
            || self.all().iter().any(|(_, n)| match &n.op {
                Op::Graph(child) => child.holds(other),
                Op::Conditional(node) => node.graphs().iter().any(|graph| graph.holds(other)),
                _ => false,
            })
    }

    /// Whether a node of it, at any depth, does something.
    fn does(&self, what: fn(&Op) -> bool) -> bool {
        self.all().iter().any(|(_, node)| what(&node.op) || matches!(&node.op, Op::Graph(child) if child.does(what)))
    }

    /// Whether a node of it, at any depth, allocates or frees memory.
    pub fn allocates(&self) -> bool {
        self.does(|op| matches!(op, Op::GraphAlloc(_) | Op::GraphFree(_)))
    }

    /// Whether a node of it, at any depth, has a condition.
    pub fn has_conditions(&self) -> bool {
        self.does(|op| matches!(op, Op::Conditional(_) | Op::Chosen(_)))
    }

    /// Keeps a condition as long as it lives.
    pub fn add_condition(&self, condition: Arc<Condition>) {
        self.conditions.lock().unwrap_or_else(PoisonError::into_inner).push(condition);
    }

    /// The graph in the language of Graphviz; with `verbose` also what launches are made of.
    pub fn dot(&self, verbose: bool) -> String {
        let mut text = String::from("digraph dot {\n");
        self.draw(&mut text, verbose);
        text.push_str("}\n");
        text
    }

    fn draw(&self, text: &mut String, verbose: bool) {
        let id = self.id;
        let _ = writeln!(text, "subgraph cluster_{id} {{\nlabel=\"graph_{id}\" graph[style=\"dashed\"];");
        for (number, node) in self.all() {
            let name = format!("graph_{id}_node_{number}");
            let label = label(&node.op, verbose).replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(text, "\"{name}\" [shape=\"record\" label=\"{number} | {label}\"];");
            for before in &node.after {
                let _ = writeln!(text, "\"graph_{id}_node_{before}\" -> \"{name}\";");
            }
            match &node.op {
                Op::Graph(child) => child.draw(text, verbose),
                Op::Conditional(node) => node.graphs().iter().for_each(|graph| graph.draw(text, verbose)),
                _ => {}
            }
        }
        text.push_str("}\n");
    }
}

/// What a node does, in a few words.
fn label(op: &Op, verbose: bool) -> String {
    match op {
        Op::Kernel(launch) => {
            let [g, b] = [launch.shape.grid, launch.shape.block].map(|d| format!("{}x{}x{}", d[0], d[1], d[2]));
            let name = launch.func.function.name();
            let more = format!(" of {g} blocks of {b} threads, {} bytes shared", launch.shape.shared);
            format!("KERNEL {name}{}", if verbose { &more } else { "" })
        }
        Op::Copy(copy) => {
            let size = copy.size;
            let more = format!(" {:#x} to {:#x}", copy.from.address, copy.to.address);
            format!("MEMCPY {}x{}x{}{}", size.width, size.height, size.depth, if verbose { &more } else { "" })
        }
        Op::Fill(fill) => format!("MEMSET {:#x}, {}x{}", fill.address, fill.width, fill.height),
        Op::Host(_) => "HOST".to_owned(),
        Op::Record(_) => "EVENT_RECORD".to_owned(),
        Op::Wait(_) => "EVENT_WAIT".to_owned(),
        Op::Empty => "EMPTY".to_owned(),
        Op::GraphAlloc(memory) => format!("MEM_ALLOC {:#x}, {} bytes", memory.base, memory.bytes),
        Op::Free(address, _) | Op::GraphFree(address) => format!("MEM_FREE {address:#x}"),
        Op::Batch(ops) => format!("BATCH_MEM_OP {}", ops.len()),
        Op::Child(_) => "GRAPH".to_owned(),
        Op::Graph(graph) => format!("GRAPH {}", graph.id),
        Op::Conditional(node) => {
            let graphs: Vec<String> = node.graphs().iter().map(|g| g.id.to_string()).collect();
            format!("CONDITIONAL {:?} {:#x}: {}", node.choice, node.condition.handle, graphs.join(", "))
        }
        Op::Chosen(_) => "CONDITIONAL".to_owned(),
    }
}

/// A graph that can be launched.
pub struct GraphExec {
    /// A number that no other graph has.
    pub id: u32,
    /// Handle of the graph that it was made of.
    pub graph: u64,
    /// Handle of the context that it was made in.
    pub ctx: u64,
    steps: Mutex<Vec<Step>>,
    /// Where its last launch ends: each comes after all before it, in whatever stream.
    last: Mutex<Option<Mark>>,
    /// Objects of the program that it refers to.
    objects: Arc<References>,
}

/// A node in its turn.
struct Step {
    number: usize,
    op: Op,
    is_enabled: bool,
    /// The steps that come before it.
    after: Vec<usize>,
}

/// The steps of nodes in their order.
fn steps_of(order: Vec<(usize, Node)>) -> Result<Vec<Step>> {
    let turns: BTreeMap<usize, usize> = order.iter().enumerate().map(|(turn, (number, _))| (*number, turn)).collect();
    let step = |(number, node): (usize, Node)| {
        let after = node.after.iter().filter_map(|n| turns.get(n).copied()).collect();
        Ok(Step { number, op: node.op.resolved()?, is_enabled: true, after })
    };
    order.into_iter().map(step).collect()
}

impl GraphExec {
    /// Makes a graph ready.
    ///
    /// # Errors
    /// Its edges make a circle, or a launch is wrong.
    pub fn new(graph: &Graph, ctx: &Ctx) -> Result<GraphExec> {
        let steps = steps_of(graph.order()?)?;
        steps.iter().try_for_each(|step| step.op.ready(ctx, false))?;
        let (id, steps, last) = (next_id(), Mutex::new(steps), Mutex::default());
        let objects = Arc::new(graph.objects.for_copy());
        Ok(GraphExec { id, graph: graph.handle, ctx: ctx.handle, steps, last, objects })
    }

    fn steps(&self) -> MutexGuard<'_, Vec<Step>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a stream all of it.
    ///
    /// # Errors
    /// The context failed.
    pub fn launch(&self, ctx: &Ctx, stream: &Arc<Stream>) -> Result {
        let steps = self.steps();
        let mut conditions = Vec::new();
        steps.iter().filter(|s| s.is_enabled).for_each(|s| s.op.conditions(&mut conditions));
        if stream.is_capturing() {
            if !conditions.is_empty() {
                return Err(Code::NOT_SUPPORTED);
            }
            let ops: Vec<Op> = steps.iter().filter(|s| s.is_enabled).map(|s| s.op.clone()).collect();
            return crate::stream::submit(ctx, stream, Op::Graph(Graph::of_line(ops)?));
        }
        if stream.is_legacy() {
            crate::capture::refuse_implicit(ctx)?;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map_or(Ok(()), |mark| ctx.result(stream.rt().wait_for_mark(mark)))?;
        for (handle, value) in conditions.iter().filter_map(|c| Some((c.handle, c.begins_with()?))) {
            ctx.result(stream.rt().memory(move |memory| Ok(memory.write(handle, &value.to_le_bytes())?)))?;
        }
        let is_line = steps.iter().enumerate().skip(1).all(|(turn, step)| step.after.contains(&(turn - 1)));
        let parts = if is_line { None } else { stream.rt().parts() };
        for step in steps.iter() {
            parts.iter().for_each(|parts| parts.next(&step.after));
            if step.is_enabled {
                step.op.enqueue(ctx, stream)?;
            }
        }
        drop(parts);
        *last = Some(stream.rt().mark());
        if self.objects.is_empty() {
            return Ok(());
        }
        // What it refers to lives until the work is done, also if the graph does not.
        let objects = Arc::clone(&self.objects);
        let keep = HostCall { call: Arc::new(move || drop(Arc::clone(&objects))), function: 0, data: 0 };
        Op::Host(keep).enqueue(ctx, stream)
    }

    /// Changes what a node of the original graph does, for later launches.
    ///
    /// # Errors
    /// There is no such node, it does something else, or another kernel.
    pub fn set(&self, node: (&Graph, usize), op: Op) -> Result {
        if node.0.handle != self.graph {
            return Err(Code::INVALID_VALUE);
        }
        let mut steps = self.steps();
        let step = steps.iter_mut().find(|s| s.number == node.1).ok_or(Code::INVALID_VALUE)?;
        if kind(&step.op) != kind(&op) {
            return Err(Code::INVALID_VALUE);
        }
        step.op = op.resolved()?.with_attributes_of(&step.op);
        Ok(())
    }

    /// The launch that a node of the original graph does.
    ///
    /// # Errors
    /// There is no such node, or it launches nothing.
    pub fn kernel(&self, node: (&Graph, usize)) -> Result<Arc<Launch>> {
        let steps = self.steps();
        match steps.iter().find(|s| s.number == node.1 && node.0.handle == self.graph).map(|s| &s.op) {
            Some(Op::Kernel(launch)) => Ok(Arc::clone(launch)),
            Some(_) | None => Err(Code::INVALID_VALUE),
        }
    }

    /// Says whether a node of the original graph does anything; with `None` only returns it.
    ///
    /// # Errors
    /// There is no such node, or it always does.
    pub fn enabled(&self, node: (&Graph, usize), set: Option<bool>) -> Result<bool> {
        let mut steps = self.steps();
        let found = steps.iter_mut().find(|s| s.number == node.1 && node.0.handle == self.graph);
        let step = found.ok_or(Code::INVALID_VALUE)?;
        if !matches!(step.op, Op::Kernel(_) | Op::Copy(_) | Op::Fill(_)) {
            return Err(Code::INVALID_VALUE);
        }
        if let Some(set) = set {
            step.is_enabled = set;
        }
        Ok(step.is_enabled)
    }

    /// Takes over what the nodes of a graph of the same shape do. The error is what differs, as the interface counts it, and the handle of the
    /// node where.
    ///
    /// # Errors
    /// The graphs differ.
    pub fn update(&self, graph: &Graph) -> std::result::Result<(), (u32, u64)> {
        const TOPOLOGY: u32 = 2;
        const KIND: u32 = 3;
        let order = graph.order().map_err(|_| (1, 0))?;
        let mut steps = self.steps();
        if order.len() != steps.len() {
            return Err((TOPOLOGY, 0));
        }
        for (step, (number, node)) in steps.iter().zip(&order) {
            if kind(&step.op) != kind(&node.op) {
                return Err((KIND, node.handle));
            }
            if step.number != *number {
                return Err((TOPOLOGY, node.handle));
            }
        }
        let ops: Result<Vec<Op>> = order.into_iter().map(|(_, node)| node.op.resolved()).collect();
        for (step, op) in steps.iter_mut().zip(ops.map_err(|_| (1, 0))?) {
            step.op = op;
        }
        Ok(())
    }
}
