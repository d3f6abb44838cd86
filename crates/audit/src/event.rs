//! What engines tell: who did what where.

use handloom_diag::Span;
use handloom_ir::types::{Order, Scope, StateSpace};

/// A thread of a launch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Thread {
    /// Linear number of its block in the grid.
    pub cta: u32,
    /// Its warp in the block.
    pub warp: u8,
    /// Its lane.
    pub lane: u8,
}

impl Thread {
    /// By linear number in its block, below 1,024.
    #[inline]
    pub fn new(cta: u32, number: usize) -> Thread {
        let [warp, lane] = [number / 32, number % 32].map(|n| u8::try_from(n).unwrap_or(u8::MAX));
        Thread { cta, warp, lane }
    }

    /// Linear number in its block.
    pub fn number(self) -> u32 {
        u32::from(self.warp) * 32 + u32::from(self.lane)
    }

    /// Its lane as a mask.
    pub(crate) fn bit(self) -> u32 {
        1 << (self.lane & 31)
    }
}

/// The space that accesses to a state space are told of, and its number from 0; `None` where threads cannot meet, or nobody looks. `constants`: somebody looks at those.
pub(crate) fn told_space(space: StateSpace, constants: bool) -> Option<(StateSpace, usize)> {
    match space {
        // They lie among global memory, and copies change them.
        StateSpace::Const if constants => Some((StateSpace::Global, 0)),
        StateSpace::Global => Some((StateSpace::Global, 0)),
        StateSpace::Shared | StateSpace::SharedCluster => Some((StateSpace::Shared, 1)),
        StateSpace::Generic
        | StateSpace::Reg
        | StateSpace::Sreg
        | StateSpace::Const
        | StateSpace::Local
        | StateSpace::ParamEntry
        | StateSpace::ParamFunc
        | StateSpace::Tex => None,
    }
}

/// An instruction that touches memory, and how.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Site {
    /// The statement.
    pub span: Span,
    /// What it does.
    pub does: Does,
    /// How it is ordered.
    pub order: Order,
    /// Among whom, if it is strong.
    pub scope: Scope,
    /// The state space that its address lies in.
    pub space: StateSpace,
    /// By which way.
    pub proxy: Proxy,
}

impl Site {
    /// A weak read of no statement.
    pub const NONE: Site = Site {
        span: Span::NONE,
        does: Does::Read,
        order: Order::Weak,
        scope: Scope::Cta,
        space: StateSpace::Generic,
        proxy: Proxy::Generic,
    };
}

/// The way of an access to memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Proxy {
    /// As loads and stores.
    #[default]
    Generic,
    /// As bulk copies and products of `wgmma` and `tcgen05`.
    Async,
    /// As what copies a tensor reads its map.
    TensorMap,
    /// Of `cp.async`, `st.async` and `red.async`, of which the manual does not say it: it is compared with no other one.
    Unsaid,
}

/// Accesses through which proxies a fence orders.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProxyFence {
    /// Generic and async, in global and in shared memory.
    Async([bool; 2]),
    /// Generic writes before accesses to tensor maps, as far as the other half follows.
    MapRelease,
    /// The other half.
    MapAcquire,
}

/// What an access is to an `mbarrier` object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Turn {
    /// Nothing but an access, or nobody knows.
    #[default]
    None,
    /// An arrival, or bytes that have come.
    Arrives,
    /// The same, and the phase ends.
    Ends,
    /// A question whether a phase has ended: yes.
    Yes,
    /// The same: no. Nothing is known by that.
    No,
}

/// One scalar access of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Who.
    pub thread: Thread,
    /// Generic address of its first byte, a multiple of its size.
    pub addr: u64,
    /// 1, 2, 4, 8 or 16.
    pub bytes: u8,
    /// A `cas` that found another value: it only reads.
    pub failed: bool,
    /// It writes what is there already.
    pub same_value: bool,
    /// What it is to an `mbarrier` object.
    pub turn: Turn,
    /// When it was begun, as [`Audit::begin`](crate::Audit::begin) has numbered it; 0: now.
    pub begun: u32,
}

impl Access {
    /// One that is no question and no arrival, of no bytes.
    pub const NONE: Access = Access {
        thread: Thread { cta: 0, warp: 0, lane: 0 },
        addr: 0,
        bytes: 0,
        failed: false,
        same_value: false,
        turn: Turn::None,
        begun: 0,
    };
}

/// What an access does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Does {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes as one.
    Update,
    /// The same without a result for the program, which forms no acquire pattern.
    Reduce,
    /// Reads and writes an `mbarrier` object.
    Step,
    /// Touches no memory: it orders what does.
    Fence,
}

impl Does {
    /// Whether bytes are written.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Does::Write | Does::Update | Does::Reduce | Does::Step)
    }

    /// Whether bytes are read.
    pub(crate) fn reads(self) -> bool {
        matches!(self, Does::Read | Does::Update | Does::Reduce | Does::Step)
    }
}

/// The threads that a barrier of a block let go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Met {
    /// Which barrier.
    pub id: u32,
    /// Warps and lanes that waited.
    pub waited: Vec<(usize, u32)>,
    /// Whether nobody else of the block is left.
    pub is_whole: bool,
}

/// All that an audit is told, for those who look at a run themselves.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the fields are the parameters of the functions of `Audit`")]
pub enum Event {
    /// [`Audit::access`](crate::Audit::access).
    Access { site: Site, access: Access },
    /// [`Audit::fence`](crate::Audit::fence).
    Fence { who: Thread, order: Order, scope: Scope },
    /// [`Audit::arrive`](crate::Audit::arrive).
    Arrive { cta: u32, id: u32, warp: usize, lanes: u32 },
    /// [`Audit::barrier`](crate::Audit::barrier).
    Barrier { cta: u32, met: Met },
    /// [`Audit::warp_barrier`](crate::Audit::warp_barrier).
    WarpBarrier { cta: u32, warp: usize, lanes: u32 },
    /// [`Audit::cluster_arrive`](crate::Audit::cluster_arrive).
    ClusterArrive { cta: u32, phase: u64, warp: usize, lanes: u32, releases: bool },
    /// [`Audit::cluster_wait`](crate::Audit::cluster_wait).
    ClusterWait { who: Thread, phase: u64 },
    /// [`Audit::proxy_fence`](crate::Audit::proxy_fence).
    ProxyFence { who: Thread, fence: ProxyFence },
    /// [`Audit::begin`](crate::Audit::begin).
    Begin { who: Thread, number: u32 },
    /// [`Audit::start_cta`](crate::Audit::start_cta).
    StartCta { cta: u32, threads: u32, cluster: u32, shared: (u64, u64), proxies: bool },
}
