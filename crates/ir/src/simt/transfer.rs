//! Transfers: what the asynchronous proxies of memory do. Copies of bytes and of boxes of tensors, stores, reductions.
//!
//! Takes: nothing; these are data. Gives: the op, the types of its sources, its text. What a transfer does stands in the interpreter.
//!
//! All addresses are sources of type B64 with their offsets added. A *barrier* is the address of an `mbarrier` object, whose bytes under way go down
//! by those of the transfer.
//!
//! # PTX ISA
//! Data Movement and Conversion Instructions: Asynchronous copy.

use serde::{Deserialize, Serialize};

use crate::types::{AtomOp, ScalarType, StateSpace, Ty};

/// A transfer. It has no results; the comment names the sources, before the guard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Transfer {
    /// destination, barrier, elements..
    Values(Values),
    /// destination, bytes (B64): makes zeros of shared memory of the CTA. The space is `Shared` or `Generic`.
    Zeros(StateSpace),
    /// destination, source, bytes (B32), barrier if the destination is shared, mask (B32) if there is one
    Bytes(Bytes),
    /// source in `.global`, bytes (B32): nothing, if they may be read
    Prefetch,
    /// shared address unless it is a prefetch, tensor map, coordinates (B32).., barrier of a load, offsets (B32).., CTAs (B32) of a multicast
    Tensor(TensorTransfer),
    /// destination in `.shared`, source in `.global`, bytes that are read (B32): makes zeros of the rest
    Few {
        /// Bytes of the destination: 4, 8 or 16.
        bytes: u8,
    },
    /// 0: what the thread has begun since the last time is a group
    Commit(Begun),
    /// 0: waits for what the thread has begun
    Wait(Wait),
    /// barrier: arrives when the copies of a few bytes that the thread has begun are done
    Arrive {
        /// `Shared`, or `Generic` for shared memory.
        space: StateSpace,
        /// The phase expects one arrival more.
        expects: bool,
    },
    /// barrier, word: whether a phase other than the word's has begun is asked next
    Ask(StateSpace),
    /// barrier: it is one no more. Only in functions whose copies may be late, as what follows
    Inval(StateSpace),
    /// barrier, what is added to its word: ends no phase, as the program says
    Open(StateSpace),
    /// address in `.global`, or a generic one: 128 bytes have no contents any more
    Discard(StateSpace),
    /// 0, or the tensor map that is acquired: orders accesses through different proxies
    Proxies(ProxyFence),
}

/// What a proxy fence orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProxyFence {
    /// The generic and the async proxy, in all memory or in a state space.
    Async(Option<StateSpace>),
    /// Writes through the generic proxy before those accesses to tensor maps that an acquire comes before.
    MapRelease,
    /// Accesses to a tensor map behind what was released.
    MapAcquire,
}

/// What a thread has begun, where threads wait for it by kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Begun {
    /// Copies of a few bytes.
    Few,
    /// Bulk copies that no barrier is told of.
    Bulk,
    /// Stores to tensor memory.
    TensorStores,
}

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Wait {
    /// What it is.
    pub of: Begun,
    /// All groups but so many; `None` for everything, in a group or not.
    pub but: Option<u32>,
    /// Only until the sources have been read.
    pub read: bool,
}

/// A store or reduction of values that stand in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Values {
    /// `Shared`, `SharedCluster`, or `Generic` for shared memory of the cluster by generic addresses.
    pub space: StateSpace,
    /// Type of an element.
    pub ty: ScalarType,
    /// Number of elements: 1, 2 or 4. The address is a multiple of their size.
    pub count: u8,
    /// A reduction of one element.
    pub op: Option<AtomOp>,
    /// To the same place in each CTA of the cluster, whose own barrier is told.
    pub to_all: bool,
}

/// Which parts a copy of bytes goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Mask {
    /// All bytes, to one place.
    None,
    /// Bit r: CTA r of the cluster gets a copy at the same place.
    Ctas,
    /// Bit i: byte i of each 16 is written.
    Bytes,
}

/// A copy or reduction of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Bytes {
    /// `Global`, `Shared` or `SharedCluster`.
    pub to: StateSpace,
    /// `Global` or `Shared`.
    pub from: StateSpace,
    /// What is done with elements of which type, instead of a copy.
    pub reduce: Option<(AtomOp, ScalarType)>,
    /// What the mask means.
    pub mask: Mask,
    /// It is done when the thread goes on, whatever may come late.
    pub now: bool,
}

/// Direction of a transfer of a box of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Way {
    /// Into shared memory.
    Load {
        /// `Shared` or `SharedCluster`.
        to: StateSpace,
        /// A mask says which CTAs of the cluster get a copy.
        multicast: bool,
        /// The barrier may be that of the other CTA of a pair.
        pair: bool,
    },
    /// From shared memory, or a reduction with what lies there.
    Store(Option<AtomOp>),
    /// Nothing, if the box may be read.
    Prefetch,
}

/// Which elements a box has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Mode {
    /// A box of the tensor's own dimensions.
    Tile,
    /// Four rows: one column and four rows are named.
    Rows4,
    /// Pixels in the order of a convolution; with offsets if they are loaded.
    Im2col,
    /// Pixels along one line.
    Im2colWide {
        /// 128 pixels, with a halo after each 32.
        is_128: bool,
    },
}

/// A transfer of a box of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TensorTransfer {
    /// Direction.
    pub way: Way,
    /// Dimensions: 1 to 5.
    pub dims: u8,
    /// Which elements.
    pub mode: Mode,
}

impl Begun {
    const fn name(self) -> &'static str {
        match self {
            Begun::Few => "few",
            Begun::Bulk => "bulk",
            Begun::TensorStores => "tensor_stores",
        }
    }
}

impl TensorTransfer {
    /// How many coordinates it names.
    pub const fn coordinates(self) -> usize {
        match self.mode {
            Mode::Rows4 => 5,
            Mode::Tile | Mode::Im2col | Mode::Im2colWide { .. } => self.dims as usize,
        }
    }

    /// How many offsets it has.
    pub const fn offsets(self) -> usize {
        match (self.mode, self.way) {
            (Mode::Tile | Mode::Rows4, _) | (_, Way::Store(_)) => 0,
            (Mode::Im2col, _) => self.dims.saturating_sub(2) as usize,
            (Mode::Im2colWide { .. }, _) => 2,
        }
    }
}

impl Transfer {
    /// Types of the sources without the guard.
    pub fn sources(self) -> Vec<Ty> {
        use Ty::{B32, B64};
        match self {
            Transfer::Values(v) => {
                let mut types = vec![B64; 2];
                types.extend(std::iter::repeat_n(v.ty.ty(), usize::from(v.count)));
                types
            }
            Transfer::Zeros(_) => vec![B64; 2],
            Transfer::Bytes(b) => {
                let mut types = vec![B64, B64, B32];
                types.extend((b.to != StateSpace::Global).then_some(B64));
                types.extend((b.mask != Mask::None).then_some(B32));
                types
            }
            Transfer::Prefetch => vec![B64, B32],
            Transfer::Few { .. } => vec![B64, B64, B32],
            Transfer::Commit(_) | Transfer::Wait(_) | Transfer::Arrive { .. } => vec![B64],
            Transfer::Ask(_) | Transfer::Open(_) => vec![B64; 2],
            Transfer::Inval(_) | Transfer::Discard(_) | Transfer::Proxies(_) => vec![B64],
            Transfer::Tensor(t) => {
                let mut types = vec![B64; if t.way == Way::Prefetch { 1 } else { 2 }];
                types.extend(std::iter::repeat_n(B32, t.coordinates()));
                let (barrier, multicast) = match t.way {
                    Way::Load { multicast, .. } => (true, multicast),
                    Way::Store(_) | Way::Prefetch => (false, false),
                };
                types.extend(barrier.then_some(B64));
                types.extend(std::iter::repeat_n(B32, t.offsets()));
                types.extend(multicast.then_some(B32));
                types
            }
        }
    }

    /// Its name with modifiers in the text of the IR.
    pub fn name(self) -> String {
        let op = |op: AtomOp| format!("{op:?}").to_lowercase();
        match self {
            Transfer::Values(v) => {
                let what = v.op.map_or("store".into(), op);
                let all = if v.to_all { ".all" } else { "" };
                format!("transfer.{}.{what}.v{}{}{all}", v.space.name(), v.count, v.ty.name())
            }
            Transfer::Zeros(space) => format!("transfer.{}.zeros", space.name()),
            Transfer::Bytes(b) => {
                let what = b.reduce.map_or("copy".into(), |(o, ty)| format!("{}{}", op(o), ty.name()));
                let mask = match b.mask {
                    Mask::None => "",
                    Mask::Ctas => ".ctas",
                    Mask::Bytes => ".bytes",
                };
                let now = if b.now { ".now" } else { "" };
                format!("transfer.{}_to_{}.{what}{mask}{now}", b.from.name(), b.to.name())
            }
            Transfer::Prefetch => "transfer.prefetch".into(),
            Transfer::Few { bytes } => format!("transfer.global_to_shared.few{bytes}"),
            Transfer::Commit(of) => format!("transfer.commit.{}", of.name()),
            Transfer::Wait(Wait { of, but, read }) => {
                let but = but.map_or(String::new(), |n| format!(".but{n}"));
                format!("transfer.wait.{}{but}{}", of.name(), if read { ".read" } else { "" })
            }
            Transfer::Arrive { space, expects } => {
                format!("transfer.{}.arrive{}", space.name(), if expects { ".expected" } else { "" })
            }
            Transfer::Ask(space) => format!("transfer.{}.ask", space.name()),
            Transfer::Inval(space) => format!("transfer.{}.inval", space.name()),
            Transfer::Open(space) => format!("transfer.{}.open", space.name()),
            Transfer::Discard(space) => format!("transfer.{}.discard", space.name()),
            Transfer::Proxies(ProxyFence::Async(space)) => {
                format!("transfer.proxies.async{}", space.map_or(String::new(), |s| format!(".{}", s.name())))
            }
            Transfer::Proxies(ProxyFence::MapRelease) => "transfer.proxies.map.release".into(),
            Transfer::Proxies(ProxyFence::MapAcquire) => "transfer.proxies.map.acquire".into(),
            Transfer::Tensor(t) => {
                let way = match t.way {
                    Way::Load { to, multicast, pair } => {
                        let ctas = if multicast { ".ctas" } else { "" };
                        format!("load_to_{}{ctas}{}", to.name(), if pair { ".pair" } else { "" })
                    }
                    Way::Store(None) => "store".into(),
                    Way::Store(Some(o)) => op(o),
                    Way::Prefetch => "prefetch".into(),
                };
                let mode = match t.mode {
                    Mode::Tile => "",
                    Mode::Rows4 => ".rows4",
                    Mode::Im2col => ".im2col",
                    Mode::Im2colWide { is_128: false } => ".im2col_w",
                    Mode::Im2colWide { is_128: true } => ".im2col_w128",
                };
                format!("transfer.tensor{}d.{way}{mode}", t.dims)
            }
        }
    }
}
