//! Special registers that code does not hold. The values are those of the interpreter, clocks apart.

use handloom_ir::types::Sreg;

use super::Call;

/// Unit of `%total_smem_size` in bytes.
const SHARED_UNIT: u32 = 128;

pub(super) fn sreg(c: &mut Call<'_>) -> u64 {
    let s = c.tables.sregs[c.site];
    let lane = c.mask.trailing_zeros().min(31);
    let thread = c.warp() * 32 + lane;
    let now = || {
        let start = c.host.memory.start();
        u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    };
    let low = |v: u64| v & 0xffff_ffff;
    let env = &c.host.env;
    let part = |v: [u32; 3], i: u8| v.get(usize::from(i)).map_or(0, |c| u64::from(*c));
    let per = |v: [u32; 3]| [0, 1, 2].map(|k| v[k] / env.cluster.nctaid[k].max(1));
    let eq = 1_u32 << lane;
    match s {
        // Choice: a cycle is a nanosecond of the host, so that differences are positive and grow with the work.
        Sreg::Clock | Sreg::GlobaltimerLo => {
            c.touched();
            low(now())
        }
        Sreg::ClockHi | Sreg::GlobaltimerHi => {
            c.touched();
            now() >> 32
        }
        Sreg::Clock64 | Sreg::Globaltimer => {
            c.touched();
            now()
        }
        Sreg::Tid(i) => part(env.tid(thread), i),
        Sreg::Ntid(i) => part(env.ntid, i),
        Sreg::Ctaid(i) => part(env.ctaid, i),
        Sreg::Nctaid(i) => part(env.nctaid, i),
        Sreg::Laneid => u64::from(lane),
        Sreg::Warpid => u64::from(thread / 32),
        Sreg::Nwarpid => u64::from(env.threads().div_ceil(32)),
        Sreg::Smid => env.linear_ctaid() % u64::from(env.nsmid.max(1)),
        Sreg::Nsmid => u64::from(env.nsmid),
        Sreg::Gridid => env.gridid,
        Sreg::LanemaskEq => u64::from(eq),
        Sreg::LanemaskLe => u64::from(eq | (eq - 1)),
        Sreg::LanemaskLt => u64::from(eq - 1),
        Sreg::LanemaskGe => u64::from(!(eq - 1)),
        Sreg::LanemaskGt => u64::from(!(eq | (eq - 1))),
        Sreg::DynamicSmemSize => u64::from(env.dynamic_shared),
        Sreg::TotalSmemSize | Sreg::AggrSmemSize => u64::from(env.shared_size.next_multiple_of(SHARED_UNIT)),
        Sreg::ReservedSmemBegin | Sreg::ReservedSmemEnd | Sreg::ReservedSmemCap | Sreg::ReservedSmemOffset(_) => 0,
        Sreg::Pm(_) | Sreg::Pm64(_) | Sreg::CurrentGraphExec => 0,
        Sreg::Envreg(i) => env.envregs.get(usize::from(i)).map_or(0, |v| u64::from(*v)),
        Sreg::IsExplicitCluster => u64::from(env.cluster.explicit),
        Sreg::Clusterid(i) => part(per(env.ctaid), i),
        Sreg::Nclusterid(i) => part(per(env.nctaid), i),
        Sreg::ClusterCtaid(i) => part(env.cluster_ctaid(), i),
        Sreg::ClusterNctaid(i) => part(env.cluster.nctaid, i),
        Sreg::ClusterCtarank => u64::from(env.cluster_rank()),
        Sreg::ClusterNctarank => u64::from(env.cluster_size()),
    }
}
