//! What a stream can be given, and a node of a graph can be: launches, copies, fills, functions of the host.

use std::sync::Arc;

use handloom_runtime::{Arg, LaunchConfig};

use crate::code::{Code, Result};
use crate::context::Ctx;
use crate::copy::{Copy, Fill};
use crate::event::Event;
use crate::module::Func;
use crate::process::process;
use crate::stream::Stream;

/// A function of the host, which may be called again and again.
pub type HostFunction = Arc<dyn Fn() + Send + Sync>;

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
    Host(HostFunction),
    /// An event that is recorded.
    Record(Arc<Event>),
    /// An event that is waited for.
    Wait(Arc<Event>),
    /// Memory that is freed.
    Free(u64),
    /// What the nodes of another graph do, in an order that it allows.
    Child(Arc<Vec<Op>>),
}

/// A launch of a kernel.
#[derive(Clone)]
pub struct Launch {
    /// The kernel.
    pub func: Arc<Func>,
    /// The handle that the program knows it by.
    pub handle: u64,
    /// Its shape.
    pub shape: Shape,
    /// All parameters as they lie in memory.
    pub params: Vec<u8>,
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
                ctx.result(rt.memory(move |_| copy.run()))
            }
            Op::Fill(fill) => {
                let fill = *fill;
                ctx.result(rt.memory(move |_| fill.run()))
            }
            Op::Host(call) => {
                let call = Arc::clone(call);
                ctx.result(rt.host(move || call()))
            }
            Op::Record(event) => ctx.result(rt.record(&event.rt)),
            Op::Wait(event) => ctx.result(rt.wait(&event.rt)),
            Op::Free(address) => {
                let address = *address;
                ctx.result(rt.memory(move |memory| {
                    // It may have gone with its context.
                    let _ = memory.free(address);
                    Ok(())
                }))
            }
            Op::Child(ops) => ops.iter().try_for_each(|op| op.enqueue(ctx, stream)),
        }
    }
}

impl Launch {
    /// Checks the shape of a launch and what it says of shared memory.
    ///
    /// # Errors
    /// The kernel does not allow it.
    pub fn check(&self) -> Result {
        let most = self.func.max_dynamic_shared();
        if i64::from(self.shape.shared) > i64::from(most) {
            return Err(Code::INVALID_VALUE);
        }
        Ok(())
    }

    fn enqueue(&self, ctx: &Ctx, stream: &Stream) -> Result {
        if !Arc::ptr_eq(&self.func.module_gpu, &ctx.gpu) {
            return Err(Code::INVALID_HANDLE);
        }
        self.check()?;
        let process = process()?;
        let config = LaunchConfig {
            shared_bytes: self.shape.shared,
            cooperative: self.shape.cooperative,
            cluster: self.shape.cluster,
            seed: process.config.seed,
            bounds: process.config.bounds,
            threads: process.config.threads,
            output: Some(ctx.sink.clone()),
            ..LaunchConfig::new(self.shape.grid, self.shape.block)
        };
        let params = self.func.function.params();
        let part = |p: &handloom_ir::simt::Param| {
            let at = p.offset as usize;
            self.params.get(at..at + p.size as usize).map(Arg::Bytes).ok_or(Code::INVALID_VALUE)
        };
        let args: Result<Vec<Arg<'_>>> = params.iter().map(part).collect();
        let pending = ctx.result(stream.rt().launch(&self.func.function, &config, &args?))?;
        drop(pending);
        if process.config.report.is_some() {
            let [g, b] = [self.shape.grid, self.shape.block].map(|d| format!("[{},{},{}]", d[0], d[1], d[2]));
            let name = self.func.function.name();
            process.report(&format!("{{\"event\":\"launch\",\"entry\":\"{name}\",\"grid\":{g},\"block\":{b}}}"));
        }
        Ok(())
    }
}
