//! Values of special registers.
//!
//! # PTX ISA
//! Special Registers.

use handloom_ir::types::Sreg;

use crate::env::CtaEnv;
use crate::late;
use crate::memory::Memory;
use crate::warp::WARP_SIZE;

/// Who asks, and when.
pub struct Asker<'a> {
    /// The cta.
    pub env: &'a CtaEnv,
    /// Linear number of the thread.
    pub thread: u32,
    /// What the cycle counter shows: in the interpreter, the instructions that the cta has executed.
    pub clock: u64,
}

/// Component of a vector register; the fourth is unused and zero.
fn component(v: [u32; 3], i: u8) -> u64 {
    v.get(usize::from(i)).map_or(0, |c| u64::from(*c))
}

/// Static and dynamic shared memory in whole units.
fn total_shared(env: &CtaEnv) -> u32 {
    env.own_shared().next_multiple_of(env.shared_rules.unit.max(1))
}

/// Value of a special register.
pub fn value(s: Sreg, who: &Asker<'_>, mem: &mut dyn Memory) -> u64 {
    let env = who.env;
    let lane = who.thread % WARP_SIZE;
    let eq = 1_u32 << lane;
    let lt = eq - 1;
    let clusters = |i: u8| component([0, 1, 2].map(|k| env.nctaid[k].div_ceil(env.cluster.nctaid[k].max(1))), i);
    match s {
        Sreg::Tid(i) => component(env.tid(who.thread), i),
        Sreg::Ntid(i) => component(env.ntid, i),
        Sreg::Ctaid(i) => component(env.ctaid, i),
        Sreg::Nctaid(i) => component(env.nctaid, i),
        Sreg::Laneid => u64::from(lane),
        Sreg::Warpid => u64::from(who.thread / WARP_SIZE),
        Sreg::Nwarpid => u64::from(env.threads().div_ceil(WARP_SIZE)),
        // Choice: multiprocessors are numbers that repeat over the grid, the same in each run.
        Sreg::Smid => env.linear_ctaid() % u64::from(env.nsmid.max(1)),
        Sreg::Nsmid => u64::from(env.nsmid),
        Sreg::Gridid => env.gridid,
        Sreg::LanemaskEq => u64::from(eq),
        Sreg::LanemaskLe => u64::from(eq | lt),
        Sreg::LanemaskLt => u64::from(lt),
        Sreg::LanemaskGe => u64::from(!lt),
        Sreg::LanemaskGt => u64::from(!(eq | lt)),
        // Choice: the cycle counter counts instructions of the cta, so that differences are positive and repeat.
        Sreg::Clock => who.clock & u64::from(u32::MAX),
        Sreg::ClockHi => who.clock >> 32,
        Sreg::Clock64 => who.clock,
        Sreg::Globaltimer => mem.time_ns(),
        Sreg::GlobaltimerLo => mem.time_ns() & u64::from(u32::MAX),
        Sreg::GlobaltimerHi => mem.time_ns() >> 32,
        Sreg::DynamicSmemSize => u64::from(env.dynamic_shared),
        Sreg::TotalSmemSize => u64::from(total_shared(env)),
        Sreg::AggrSmemSize => u64::from(total_shared(env) + env.shared_rules.reserved),
        Sreg::ReservedSmemBegin => 0,
        Sreg::ReservedSmemEnd | Sreg::ReservedSmemCap => u64::from(env.shared_rules.reserved),
        Sreg::ReservedSmemOffset(i) => u64::from(env.shared_rules.offset(i)),
        // Choice: performance counters stand still.
        Sreg::Pm(_) | Sreg::Pm64(_) => 0,
        Sreg::Envreg(i) => env.envregs.get(usize::from(i)).map_or(0, |v| u64::from(*v)),
        Sreg::IsExplicitCluster => u64::from(env.cluster.explicit),
        Sreg::Clusterid(i) => component([0, 1, 2].map(|k| env.ctaid[k] / env.cluster.nctaid[k].max(1)), i),
        Sreg::Nclusterid(i) => clusters(i),
        Sreg::ClusterCtaid(i) => component(env.cluster_ctaid(), i),
        Sreg::ClusterNctaid(i) => component(env.cluster.nctaid, i),
        Sreg::ClusterCtarank => u64::from(env.cluster_rank()),
        Sreg::ClusterNctarank => u64::from(env.cluster_size()),
        Sreg::CurrentGraphExec => 0,
        Sreg::Late => u64::from(late::coins(env)),
    }
}
