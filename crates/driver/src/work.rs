//! What a stream can be given, and a node of a graph can be: launches, copies, fills, functions of the host.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockWriteGuard};

use handloom_runtime::{DeviceFacts, DeviceMemory, LaunchConfig, Launcher, StreamError};

use crate::batch::MemOp;
use crate::checked;
use crate::code::{Code, Result};
use crate::condition::{Chosen, Condition, Conditional};
use crate::context::Ctx;
use crate::copy::{Copy, Fill};
use crate::event::Event;
use crate::graph::Graph;
use crate::memory::{self, GraphMemory};
use crate::module::Func;
use crate::process::process;
use crate::stream::Stream;

/// A function of the host, which may be called again and again.
pub type HostFunction = Arc<dyn Fn() + Send + Sync>;

/// A call of a function of the host, and what the program said of it.
#[derive(Clone)]
pub struct HostCall {
    /// Calls it.
    pub call: HostFunction,
    /// Address of the function.
    pub function: u64,
    /// Its argument.
    pub data: u64,
}

/// Something to do.
#[derive(Clone)]
pub enum Op {
    /// Nothing: a place where others meet.
    Empty,
    /// A launch.
    Kernel(Arc<Launch>),
    /// A copy.
    Copy(Copy),
    /// A fill.
    Fill(Fill),
    /// A call of a function of the host.
    Host(HostCall),
    /// An event that is recorded.
    Record(Arc<Event>),
    /// An event that is waited for.
    Wait(Arc<Event>),
    /// Memory that is freed: its first address and bytes.
    Free(u64, u64),
    /// Memory of a graph that is allocated.
    GraphAlloc(Arc<GraphMemory>),
    /// Memory of a graph that is freed, by its address.
    GraphFree(u64),
    /// Words that are written or waited for.
    Batch(Arc<Vec<MemOp>>),
    /// What the nodes of another graph do, in an order that it allows.
    Child(Arc<Vec<Op>>),
    /// A graph that is part of a node: what it does is settled when the graph around it is made ready.
    Graph(Arc<Graph>),
    /// Graphs that run as a condition says.
    Conditional(Arc<Conditional>),
    /// The same, once what the graphs do is settled.
    Chosen(Arc<Chosen>),
}

/// A launch of a kernel.
pub struct Launch {
    /// The kernel.
    pub func: Arc<Func>,
    /// The handle that the program knows it by.
    pub handle: u64,
    /// Its shape.
    pub shape: Shape,
    /// All parameters as they lie in memory.
    pub params: Vec<u8>,
    /// Addresses of each parameter, once they are asked for.
    pub pointers: OnceLock<Vec<u64>>,
    /// Attributes of a node that change nothing, by number.
    pub hints: BTreeMap<u32, [u8; 64]>,
}

/// The shape of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shape {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared: u32,
    /// All blocks may wait for each other.
    pub cooperative: bool,
    /// Blocks of a cluster in x, y, z.
    pub cluster: Option<[u32; 3]>,
}

impl Shape {
    /// Checks what it says of shared memory.
    ///
    /// # Errors
    /// The kernel does not allow it.
    pub fn check(&self, func: &Func) -> Result {
        if self.shared > func.max_dynamic_shared() { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }
}

impl Op {
    /// Puts it at the end of a stream.
    ///
    /// # Errors
    /// It is wrong, or the context failed.
    pub fn enqueue(&self, ctx: &Ctx, stream: &Stream) -> Result {
        let rt = stream.rt();
        match self {
            Op::Empty => Ok(()),
            Op::Kernel(launch) => launch.enqueue(ctx, stream),
            Op::Copy(copy) => {
                let copy = copy.clone();
                let touched = ctx.rt.touched(|| copy.touched());
                ctx.result(rt.memory_touching(touched, move |_| copy.run()))
            }
            Op::Fill(fill) => {
                let fill = *fill;
                let touched = ctx.rt.touched(|| fill.touched());
                ctx.result(rt.memory_touching(touched, move |_| fill.run()))
            }
            Op::Host(host) => {
                let call = Arc::clone(&host.call);
                ctx.result(rt.host(move || call()))
            }
            Op::Record(event) => event.record(ctx, rt),
            Op::Wait(event) => event.wait(ctx, rt),
            Op::Free(address, bytes) => {
                let (address, bytes, context) = (*address, *bytes, ctx.rt.clone());
                ctx.result(rt.memory(move |memory| {
                    // It may have gone with its context.
                    let _ = memory.free(address);
                    context.forget_touched_in(address, bytes);
                    Ok(())
                }))
            }
            Op::GraphAlloc(memory) => {
                let memory = Arc::clone(memory);
                ctx.result(rt.memory(move |_| {
                    memory.allocated();
                    Ok(())
                }))
            }
            Op::GraphFree(address) => {
                let (address, context) = (*address, ctx.rt.clone());
                ctx.result(rt.memory(move |_| {
                    memory::graph_freed(address);
                    context.forget_touched();
                    Ok(())
                }))
            }
            Op::Batch(ops) => ops.iter().try_for_each(|op| op.enqueue(ctx, stream)),
            Op::Child(ops) => ops.iter().try_for_each(|op| op.enqueue(ctx, stream)),
            Op::Graph(graph) => graph.line()?.iter().try_for_each(|op| op.enqueue(ctx, stream)),
            Op::Conditional(node) => Op::Chosen(Arc::new(node.resolved()?)).enqueue(ctx, stream),
            Op::Chosen(chosen) => {
                let (chosen, handle) = (Arc::clone(chosen), ctx.handle);
                let may = LAUNCHES.read().unwrap_or_else(PoisonError::into_inner);
                ctx.result(rt.steps(move |memory| {
                    let ctx = process().ok().and_then(|process| process.contexts.get(handle));
                    ctx.map_or(Ok(()), |ctx| chosen.perform(&ctx, memory))
                }))?;
                drop(may);
                if process()?.config.open_addresses {
                    let _ = rt.synchronize();
                }
                Ok(())
            }
        }
    }

    /// Does it now, on the thread of a stream that does what a condition says.
    ///
    /// # Errors
    /// It failed.
    pub fn perform(&self, ctx: &Ctx, memory: &DeviceMemory) -> std::result::Result<(), StreamError> {
        match self {
            Op::Kernel(launch) => launch.perform(ctx),
            Op::Copy(copy) => copy.run(),
            Op::Fill(fill) => fill.run(),
            Op::Child(ops) => ops.iter().try_for_each(|op| op.perform(ctx, memory)),
            Op::Chosen(chosen) => chosen.perform(ctx, memory),
            // Nothing else is settled as part of a condition.
            _ => Ok(()),
        }
    }

    /// Checks the launches in what is settled. Code of those that a condition decides about is made.
    ///
    /// # Errors
    /// A launch is wrong.
    pub fn ready(&self, ctx: &Ctx, in_condition: bool) -> Result {
        match self {
            Op::Kernel(launch) => {
                launch.check()?;
                if in_condition { launcher(ctx, &launch.func, &launch.shape).map(drop) } else { Ok(()) }
            }
            Op::Child(ops) => ops.iter().try_for_each(|op| op.ready(ctx, in_condition)),
            Op::Chosen(chosen) => chosen.ready(ctx),
            _ => Ok(()),
        }
    }

    /// All conditions in what is settled.
    pub fn conditions(&self, to: &mut Vec<Arc<Condition>>) {
        match self {
            Op::Chosen(chosen) => chosen.conditions(to),
            Op::Child(ops) => ops.iter().for_each(|op| op.conditions(to)),
            _ => {}
        }
    }

    /// The same, of which nothing changes any more.
    ///
    /// # Errors
    /// The edges of a graph in it make a circle.
    pub fn resolved(self) -> Result<Op> {
        match self {
            Op::Graph(graph) => Ok(Op::Child(Arc::new(graph.line()?))),
            Op::Conditional(node) => Ok(Op::Chosen(Arc::new(node.resolved()?))),
            other => Ok(other),
        }
    }

    /// The same with the attributes of another launch, if both are launches: they belong to the node.
    #[must_use]
    pub fn with_attributes_of(self, old: &Op) -> Op {
        let (Op::Kernel(new), Op::Kernel(old)) = (&self, old) else { return self };
        let Shape { cooperative, cluster, .. } = old.shape;
        let mut launch = new.copy();
        launch.shape = Shape { cooperative, cluster, ..launch.shape };
        launch.hints.clone_from(&old.hints);
        Op::Kernel(Arc::new(launch))
    }

    /// Ends the graphs that are a part of it.
    pub fn end_graph(&self) {
        match self {
            Op::Graph(graph) => graph.end(),
            Op::Conditional(node) => node.graphs().iter().for_each(|graph| graph.end()),
            _ => {}
        }
    }
}

impl Launch {
    /// A copy of it.
    #[must_use]
    pub fn copy(&self) -> Launch {
        let Launch { func, handle, shape, params, hints, .. } = self;
        let (func, params, hints) = (Arc::clone(func), params.clone(), hints.clone());
        Launch { func, handle: *handle, shape: *shape, params, pointers: OnceLock::new(), hints }
    }

    /// Checks the shape of a launch and what it says of shared memory.
    ///
    /// # Errors
    /// The kernel does not allow it.
    pub fn check(&self) -> Result {
        self.shape.check(&self.func)
    }

    /// The address of a list of addresses of its parameters, which lie there as long as this does.
    pub fn list(&self) -> u64 {
        let address = |bytes: &[u8]| bytes.as_ptr().expose_provenance() as u64;
        let list = self.pointers.get_or_init(|| {
            let params = self.func.function.params();
            params.iter().map(|p| address(&self.params) + u64::from(p.offset)).collect()
        });
        list.as_ptr().expose_provenance() as u64
    }

    fn enqueue(&self, ctx: &Ctx, stream: &Stream) -> Result {
        self.check()?;
        launch(ctx, stream, &self.func, &self.shape, self.params.clone())
    }

    /// Runs it now.
    fn perform(&self, ctx: &Ctx) -> std::result::Result<(), StreamError> {
        let launcher = launcher(ctx, &self.func, &self.shape);
        // It was made once when its graph was made ready, so that an error is that of its context.
        let Ok(launcher) = launcher else { return ctx.rt.error().map_or(Ok(()), Err) };
        launcher.launch_now(self.params.clone())?;
        report(&self.func, &self.shape);
        Ok(())
    }
}

/// What kernels of a context are told that ask the device runtime.
#[derive(Debug)]
struct Facts {
    context: u64,
    ordinal: i32,
}

impl DeviceFacts for Facts {
    fn ordinal(&self) -> i32 {
        self.ordinal
    }

    fn count(&self) -> i32 {
        process().ok().and_then(|p| i32::try_from(p.gpus.len()).ok()).unwrap_or(0)
    }

    fn attribute(&self, number: i32, device: i32) -> Option<i32> {
        process().ok()?.gpu(device).ok()?.attribute(number).ok()
    }

    fn limit(&self, number: u32) -> Option<u64> {
        let context = process().ok()?.contexts.get(self.context)?;
        context.limit(number).ok()
    }
}

/// Held for writing while no stream may be given a launch.
static LAUNCHES: RwLock<()> = RwLock::new(());

/// No stream is given a launch as long as the result lives.
pub fn hold_launches() -> RwLockWriteGuard<'static, ()> {
    LAUNCHES.write().unwrap_or_else(PoisonError::into_inner)
}

/// The launches of a function in a shape, made ready.
///
/// # Errors
/// The shape is wrong, or the function one of another device.
fn launcher(ctx: &Ctx, func: &Func, shape: &Shape) -> Result<Arc<Launcher>> {
    if !Arc::ptr_eq(&func.module_gpu, &ctx.gpu) {
        return Err(Code::INVALID_HANDLE);
    }
    let process = process()?;
    let stack = ctx.stack();
    func.launchers.of(ctx.id, (shape, stack), || {
        let config = LaunchConfig {
            shared_bytes: shape.shared,
            stack_bytes: stack,
            heap: Some(Arc::clone(&ctx.heap)),
            cooperative: shape.cooperative,
            cluster: shape.cluster,
            seed: process.config.seed,
            async_order: process.config.async_order,
            bounds: process.config.bounds,
            threads: process.config.threads,
            timeout: process.config.time_left(),
            quiet: process.config.quiet,
            output: Some(ctx.sink.clone()),
            check: process.config.check,
            count: process.counts.as_ref().map(|counts| counts.tally.clone()),
            trace: process.trace.clone(),
            found: process.config.check.map(|_| checked::sink()),
            facts: Some(Arc::new(Facts { context: ctx.handle, ordinal: ctx.gpu.ordinal })),
            ..LaunchConfig::new(shape.grid, shape.block)
        };
        ctx.result(Launcher::new(&func.function, &config).map_err(StreamError::from))
    })
}

/// Gives a stream a launch with all parameters as they lie in memory.
///
/// # Errors
/// It is wrong, or the context failed.
pub fn launch(ctx: &Ctx, stream: &Stream, func: &Func, shape: &Shape, params: Vec<u8>) -> Result {
    let process = process()?;
    let launcher = launcher(ctx, func, shape)?;
    let may = LAUNCHES.read().unwrap_or_else(PoisonError::into_inner);
    ctx.result(stream.rt().launch_again(&launcher, params))?;
    drop(may);
    if process.config.check.is_some() || process.counts.is_some() {
        checked::given(process);
    }
    if process.config.open_addresses {
        // The program may look at its own memory at once. What went wrong is told by the next call that waits, as ever.
        let _ = stream.rt().synchronize();
    }
    report(func, shape);
    Ok(())
}

/// Adds a launch to the report file, if there is one.
fn report(func: &Func, shape: &Shape) {
    if let Ok(process) = process()
        && process.config.report.is_some()
    {
        let [g, b] = [shape.grid, shape.block].map(|d| format!("[{},{},{}]", d[0], d[1], d[2]));
        let name = func.function.name();
        process.report(&format!("{{\"event\":\"launch\",\"entry\":\"{name}\",\"grid\":{g},\"block\":{b}}}"));
    }
}
