//! Nodes of graphs with a condition: a word of device memory, which kernels set, says whether and how often other graphs run.
//!
//! The handle of a condition is the address of its word, so that `cudaGraphSetConditional` is a store (`check/src/library.ptx`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use handloom_runtime::{DeviceMemory, StreamError};

use crate::code::{Code, Result};
use crate::context::Ctx;
use crate::graph::{self, Graph};
use crate::memory::Use;
use crate::process::process;
use crate::work::Op;

/// `CU_GRAPH_COND_ASSIGN_DEFAULT`
const ASSIGN_DEFAULT: u32 = 1;

/// Bytes of the word of a condition.
const WORD: u64 = 4;

/// A condition.
#[derive(Debug)]
pub struct Condition {
    /// Address of its word, which is its handle.
    pub handle: u64,
    /// Handle of its context.
    pub ctx: u64,
    /// What each launch of a graph sets it to before anything runs.
    default: Option<u32>,
    /// The number of its allocation.
    id: u64,
}

/// All conditions of the process, by handle.
static ALL: Mutex<BTreeMap<u64, Weak<Condition>>> = Mutex::new(BTreeMap::new());

fn all() -> MutexGuard<'static, BTreeMap<u64, Weak<Condition>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Condition {
    /// A condition of a context.
    ///
    /// # Errors
    /// Flags are unknown, or there is no room.
    pub fn new(ctx: &Ctx, default: u32, flags: u32) -> Result<Arc<Condition>> {
        if flags & !ASSIGN_DEFAULT != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let memory = &process()?.memory;
        let handle = memory.allocate(ctx, WORD, Use::Array)?;
        ctx.gpu.device.memory().write(handle, &default.to_le_bytes())?;
        let id = memory.find(handle).map_or(0, |a| a.id);
        let default = (flags & ASSIGN_DEFAULT != 0).then_some(default);
        let new = Arc::new(Condition { handle, ctx: ctx.handle, default, id });
        all().insert(handle, Arc::downgrade(&new));
        Ok(new)
    }

    /// What sets it when a graph is launched, if anything does.
    pub fn begins_with(&self) -> Option<u32> {
        self.default
    }

    /// What it is now.
    fn value(&self, memory: &DeviceMemory) -> std::result::Result<u32, StreamError> {
        let mut word = [0; WORD as usize];
        memory.read(self.handle, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }
}

impl Drop for Condition {
    fn drop(&mut self) {
        all().remove(&self.handle);
        let Ok(process) = process() else { return };
        // The memory went with its context, if that has ended, and may be another allocation now.
        let is_there = process.memory.find(self.handle).is_some_and(|a| a.id == self.id);
        if is_there
            && let Ok(a) = process.memory.take(self.handle, |kind| kind == Use::Array)
            && let Ok(gpu) = process.gpu(a.ordinal)
        {
            let _ = gpu.device.memory().free(a.base);
        }
    }
}

/// A condition by its handle.
///
/// # Errors
/// There is none.
pub fn by_handle(handle: u64) -> Result<Arc<Condition>> {
    all().get(&handle).and_then(Weak::upgrade).ok_or(Code::INVALID_VALUE)
}

/// Which graph of a node runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// The first one if the condition is not 0, else the second one, if there is one.
    If,
    /// The only one, as long as the condition is not 0.
    While,
    /// The one whose number the condition is, if there is one.
    Switch,
}

impl Choice {
    /// By the number of the kind and how many graphs there are to be.
    ///
    /// # Errors
    /// There is none, or not of so many graphs.
    pub fn of(kind: u32, graphs: u32) -> Result<Choice> {
        match (kind, graphs) {
            (0, 1 | 2) => Ok(Choice::If),
            (1, 1) => Ok(Choice::While),
            (2, 1..) => Ok(Choice::Switch),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// The number of the kind.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The graph that runs next, by its number.
    fn next(self, value: u32) -> usize {
        match self {
            Choice::If | Choice::While => usize::from(value == 0),
            Choice::Switch => usize::try_from(value).unwrap_or(usize::MAX),
        }
    }
}

/// What a node with a condition is: its graphs belong to it.
pub struct Conditional {
    /// The condition.
    pub condition: Arc<Condition>,
    /// Which graph runs.
    pub choice: Choice,
    graphs: Vec<Arc<Graph>>,
    /// Handles of the graphs, in an array that the program may read as long as the node is there.
    handles: Vec<u64>,
}

impl Conditional {
    /// A node with empty graphs.
    ///
    /// # Errors
    /// There are too many graphs.
    pub fn new(condition: Arc<Condition>, choice: Choice, graphs: u32) -> Result<Conditional> {
        let new = |_| {
            let graph = graph::create()?;
            graph.give()?;
            Ok(graph)
        };
        let graphs = (0..graphs).map(new).collect::<Result<Vec<_>>>()?;
        let handles = graphs.iter().map(|g| g.handle).collect();
        Ok(Conditional { condition, choice, graphs, handles })
    }

    /// Its graphs.
    pub fn graphs(&self) -> &[Arc<Graph>] {
        &self.graphs
    }

    /// The address of the array of their handles.
    pub fn list(&self) -> u64 {
        self.handles.as_ptr().expose_provenance() as u64
    }

    /// What its graphs do, of which nothing changes any more.
    ///
    /// # Errors
    /// The edges of one make a circle, or it does what such graphs may not do.
    pub fn resolved(&self) -> Result<Chosen> {
        let bodies = self.graphs.iter().map(|graph| {
            let line = graph.line()?;
            if line.iter().all(may_be_chosen) { Ok(line) } else { Err(Code::INVALID_VALUE) }
        });
        Ok(Chosen {
            condition: Arc::clone(&self.condition),
            choice: self.choice,
            bodies: bodies.collect::<Result<Vec<_>>>()?,
        })
    }
}

/// Whether something may be done under a condition.
fn may_be_chosen(op: &Op) -> bool {
    match op {
        Op::Empty | Op::Kernel(_) | Op::Copy(_) | Op::Fill(_) | Op::Chosen(_) => true,
        Op::Child(ops) => ops.iter().all(may_be_chosen),
        Op::Host(_)
        | Op::Record(_)
        | Op::Wait(_)
        | Op::Free(..)
        | Op::GraphAlloc(_)
        | Op::GraphFree(_)
        | Op::Batch(_)
        | Op::Graph(_)
        | Op::Conditional(_) => false,
    }
}

/// The same of a graph that is launched.
pub struct Chosen {
    condition: Arc<Condition>,
    choice: Choice,
    bodies: Vec<Vec<Op>>,
}

impl Chosen {
    /// All conditions in it.
    pub fn conditions(&self, to: &mut Vec<Arc<Condition>>) {
        to.push(Arc::clone(&self.condition));
        self.bodies.iter().flatten().for_each(|op| op.conditions(to));
    }

    /// Checks its launches and makes their code.
    ///
    /// # Errors
    /// One is wrong, or the condition is one of another context.
    pub fn ready(&self, ctx: &Ctx) -> Result {
        if self.condition.ctx != ctx.handle {
            return Err(Code::INVALID_VALUE);
        }
        self.bodies.iter().flatten().try_for_each(|op| op.ready(ctx, true))
    }

    /// Does what the condition says, on the thread of the stream.
    ///
    /// # Errors
    /// A part of it failed.
    pub fn perform(&self, ctx: &Ctx, memory: &DeviceMemory) -> std::result::Result<(), StreamError> {
        loop {
            let value = self.condition.value(memory)?;
            let Some(body) = self.bodies.get(self.choice.next(value)) else { return Ok(()) };
            for op in body {
                op.perform(ctx, memory)?;
            }
            // A loop ends with its context too.
            if self.choice != Choice::While || ctx.rt.error().is_some() {
                return Ok(());
            }
        }
    }
}
