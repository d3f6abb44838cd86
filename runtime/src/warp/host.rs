//! What the runtime keeps for a cta of compiled code, beside the contexts. `CtaCtx::host` points to it.

use std::sync::Arc;

use handloom_codegen::{Code, Failure};
use handloom_diag::Span;
use handloom_interp::CtaEnv;
use handloom_interp::barrier::Barriers;
use handloom_interp::cluster::ClusterBarrier;
use handloom_ir::trap::{Trap, TrapKind};
use handloom_plan::Host;
use handloom_plan::abi::{BarrierSite, CopyKind, CtaCtx, Operands, SyncSite, Tables, WarpCtx, YieldSite};

use super::KernelMemory;
use super::context::{Contexts, Ctx};
use super::counted::Counted;
use super::images::Images;
use super::sums::Sums;
use super::told::Told;
use crate::run::Tier;

/// State of a cta that routines and the scheduler share.
#[derive(Debug)]
pub(crate) struct CtaHost {
    /// The launch as this cta sees it.
    pub(crate) env: CtaEnv,
    /// What the machine has that routines may use: never more than was detected.
    pub(crate) machine: Host,
    pub(crate) memory: KernelMemory,
    /// What nobody may read, as of the grid.
    pub(crate) unread: Option<Arc<[(u64, u64)]>>,
    /// The trap that a routine recorded.
    pub(crate) trap: Option<Box<Trap>>,
    /// Lanes of the access that it is the trap of, with their addresses, as far as code has asked.
    pub(crate) refused: Vec<(usize, u64, TrapKind)>,
    /// A fault of ours that a routine met.
    pub(crate) failure: Option<Failure>,
    /// Contexts of the entry, by warp.
    pub(crate) base: Contexts,
    /// Tables of the entry's code.
    pub(crate) base_tables: *const Tables,
    pub(crate) warps: Vec<WarpHost>,
    /// Made when the first lane arrives at a barrier outside compiled code.
    pub(crate) barriers: Option<Barriers>,
    pub(crate) cluster: Option<ClusterBarrier>,
    /// Lanes that wait at barriers.
    pub(crate) waiting: Vec<BarWait>,
    /// Lanes that wait for the cluster.
    pub(crate) cluster_waits: Vec<ClusterWait>,
    /// Code gave something else back than its end since the cta started: the next one must not find what is left of it here.
    pub(crate) was_left: bool,
    /// Textures and samplers that its fetches named.
    pub(crate) images: Images,
    /// Who is told what its threads do, of a checked launch.
    pub(crate) told: Option<Told>,
    /// What is counted, of a counted launch.
    pub(crate) counted: Option<Counted>,
    /// What code has added to device memory that is not there yet: nothing, but while code runs.
    pub(crate) sums: Sums,
}

/// Calls of functions. They come and go one by one, so it is pointers that move.
type Calls = Vec<Box<Activation>>;

/// State of a warp.
#[derive(Debug, Default)]
pub(crate) struct WarpHost {
    /// Lanes that wait for others at warp-level ops.
    pub(crate) parked: Vec<Parked>,
    /// Lanes that gave way, until the round is over.
    pub(crate) yielded: Vec<Yielded>,
    /// Rounds in which lanes gave way to nobody of their own warp, since something changed.
    pub(crate) held: u32,
    /// The same since lanes met at a barrier or ended.
    pub(crate) held_in_all: u32,
    /// How often either ended because no more rounds were granted, which are half as many the next time.
    pub(crate) in_vain: u32,
    /// Calls in progress, callers before callees.
    pub(crate) calls: Calls,
    /// By function: finished calls, whose contexts are for the next ones.
    pub(crate) spare: Vec<Calls>,
    /// Lanes that barriers count as alive.
    pub(crate) known_live: u32,
    /// The runtime has counted the warp as retired.
    pub(crate) retired: bool,
    /// By lane: phase of the cluster barrier it arrived in and has not waited for.
    pub(crate) cluster_phase: [Option<u64>; 32],
    /// By lane: bytes at the end of its local memory that `alloca` gave.
    pub(crate) stack_used: [u64; 32],
}

/// Rounds in which lanes that give way do so to other warps and ctas only. Lanes of their own warp that stand farther on wait for them, since
/// they mostly wait to go on together; but they may also be the ones who hold a lock.
const HOLD: u32 = 16;

/// The same where something changes in each round.
pub(crate) const HOLD_IN_ALL: u32 = 64;

impl WarpHost {
    /// For how many rounds lanes are held back.
    pub(crate) fn most_held(&self) -> u32 {
        HOLD >> self.in_vain.min(HOLD.ilog2() + 1)
    }

    /// Lanes have met others or ended: rounds in which others are held back count anew.
    pub(crate) fn forget_held(&mut self) {
        (self.held, self.held_in_all) = (0, 0);
    }

    /// As for a cta that has not run. The lists are empty when a cta has ended.
    pub(crate) fn reset(&mut self) {
        self.forget_held();
        self.in_vain = 0;
        self.known_live = 0;
        self.retired = false;
        self.cluster_phase = [None; 32];
        self.stack_used = [0; 32];
    }
}

/// Lanes at a warp-level op.
#[derive(Clone, Debug)]
pub(crate) struct Parked {
    pub(crate) ctx: Ctx,
    /// Number of the op.
    pub(crate) site: usize,
    /// Whose operands they use.
    pub(crate) copy: CopyKind,
    pub(crate) lanes: u32,
    /// The member mask.
    pub(crate) members: u32,
    /// What they hand over, by operand and lane, once they wait: other lanes go on meanwhile, and write where the operands were. Empty before.
    pub(crate) values: Vec<[u64; 32]>,
}

impl Parked {
    /// The op, in the code that the lanes are in now.
    pub(crate) fn op<'t>(&self) -> &'t SyncSite {
        &self.ctx.tables().syncs[self.site]
    }

    /// Where the operands are in that code.
    ///
    /// # Panics
    /// The code has no such copy of the op, so no lane can be there.
    pub(crate) fn operands<'t>(&self) -> &'t Operands {
        match self.op().operands(self.copy) {
            Some(operands) => operands,
            None => {
                panic!("lanes are in the {:?} copy of warp-level op {}, which there is none of", self.copy, self.site)
            }
        }
    }
}

/// Lanes at a yield point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Yielded {
    pub(crate) ctx: Ctx,
    /// Number of the yield.
    pub(crate) site: u32,
    pub(crate) lanes: u32,
}

impl Yielded {
    /// The yield.
    pub(crate) fn site<'t>(&self) -> &'t YieldSite {
        self.ctx.tables().yield_site(self.site)
    }
}

/// Lanes at a barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarWait {
    pub(crate) warp: usize,
    pub(crate) ctx: Ctx,
    /// Number of the barrier.
    pub(crate) site: u32,
    pub(crate) lanes: u32,
    /// The number that the program gives it.
    pub(crate) id: u32,
}

impl BarWait {
    /// The barrier, in the code that the lanes are in now.
    pub(crate) fn site<'t>(&self) -> &'t BarrierSite {
        self.ctx.tables().barrier(self.site)
    }
}

/// Lanes at `barrier.cluster.wait`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterWait {
    pub(crate) ctx: Ctx,
    /// Number of the barrier.
    pub(crate) site: u32,
    pub(crate) lanes: u32,
    pub(crate) phase: u64,
}

impl ClusterWait {
    /// The barrier.
    pub(crate) fn site<'t>(&self) -> &'t BarrierSite {
        self.ctx.tables().barrier(self.site)
    }
}

/// A function called by lanes of a warp.
#[derive(Debug)]
pub(crate) struct Activation {
    /// The context's memory; `ctx` points into it.
    pub(crate) memory: Contexts,
    pub(crate) ctx: Ctx,
    /// The code that runs it. It lives as long as the program.
    pub(crate) code: *const Code,
    pub(crate) tier: Tier,
    pub(crate) func: usize,
    /// Who called.
    pub(crate) caller: Ctx,
    /// Lanes that called and have not gone on in the caller.
    pub(crate) lanes: u32,
    /// Where they go on in the caller.
    pub(crate) next: u32,
    /// Calls from the entry, itself included.
    pub(crate) depth: usize,
    /// Rounds in which lanes that have returned waited for others of it that gave way.
    pub(crate) held: u32,
}

impl CtaHost {
    /// The host state of the cta that code runs.
    ///
    /// # Safety
    /// `cta` was set up by the scheduler, no other reference to its host state is in use, and `'a` ends before the routine does.
    pub(crate) unsafe fn of<'a>(cta: *mut CtaCtx) -> &'a mut CtaHost {
        // SAFETY: by the caller's promise.
        let (host, ctaid) =
            unsafe { (&mut *std::ptr::with_exposed_provenance_mut::<CtaHost>((*cta).host as usize), (*cta).ctaid) };
        // Code may have gone on to another one.
        host.env.ctaid = ctaid;
        host
    }

    /// The context of a warp's entry function.
    pub(crate) fn base_ctx(&self, warp: usize) -> Ctx {
        self.base.at(warp, self.base_tables)
    }

    /// Lanes of a warp that have not exited.
    pub(crate) fn live(&self, warp: usize) -> u32 {
        self.base_ctx(warp).header().live
    }

    /// A trap of lanes of a warp.
    pub(crate) fn trap_of(&self, kind: TrapKind, span: Span, warp: u32, lanes: u32) -> Box<Trap> {
        let first = lanes.trailing_zeros().min(31);
        let thread = self.env.tid(warp * 32 + first);
        let mut trap = Trap::new(kind, span, self.env.ctaid, thread);
        trap.other_lanes = lanes & !(1 << first);
        Box::new(trap)
    }

    /// Linear number of a lane's thread.
    pub(crate) fn thread(warp: &WarpCtx, lane: usize) -> u32 {
        warp.warp * 32 + (lane as u32 & 31)
    }
}
