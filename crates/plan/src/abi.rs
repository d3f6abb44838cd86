//! The contract between compiled code and the runtime: contexts, entry states, reasons, tables, routines.
//!
//! # The model
//! A compiled function runs *warp contexts* one after the other. Each holds a header ([`WarpCtx`]), a word of *pending lanes* for each
//! block ([`Tables::pend_offset`]), and the registers as *rows*. `CtaCtx::cur` is the context to run next, `CtaCtx::end` the end of the array
//! (contexts follow each other at [`Tables::ctx_bytes`]). `pend[b]` holds the lanes that wait to execute block `b`. Code runs the lowest
//! block that has lanes (blocks are ordered so that lanes then meet again as early as possible); when a block holds all 32 lanes it runs the
//! unmasked copy.
//!
//! # How a context is entered
//! `WarpCtx::state` is the block to look at first: no lower block may be pending. [`skip`](Tables::skip) (the number of blocks) means that the context is not to
//! run now. Entering an unstarted warp: `pend[0] = live`, `state = 0`.
//!
//! # What code gives back
//! A [`Reason`], for the context in `CtaCtx::cur`. What belongs to it is in the header of the context: [`Stop`] says which word holds what,
//! to the generators, which write a stop, and to the runtime, which reads it. After handling it the runtime calls the code again, with `cur` on the
//! same or another context.
//!
//! # Sites
//! Barriers, yields and warp-level ops have numbers ([`handloom_ir::simt::Sites`]) that are the same in all code of a function: an index of
//! [`Tables::barriers`], [`Tables::yields`], [`Tables::syncs`]. So what the runtime knows of lanes that wait stays right when they go on in other
//! code. Other tables are numbered as their code was emitted, and mean something to that code alone.
//!
//! # Barriers inside code
//! A plain `bar.sync 0` in an entry, reached together by all 32 lanes (in wide code: by all that the warp has left), does not leave the code: it writes `wait_epoch = CtaCtx::epoch`,
//! `state = next` and `site`, the number of the barrier, adds 1 to `CtaCtx::arrived` and goes on with the next context. When the array ends and `arrived + retired == n_warps` (and
//! `arrived > 0`), code sets `arrived = 0`, adds 1 to `epoch` and starts over at `CtaCtx::first`. Otherwise it returns [`Reason::Phase`]: the runtime
//! counts the contexts with `wait_epoch == epoch` as waiting there with all lanes that live ([`WarpCtx::plain_barrier`]), which are in `pend[state]` already.
//!
//! In code that keeps to the seed's order ([`Options::in_order`](crate::Options::in_order)) who arrives last goes on at once, as an audit sees it, and others when it is their turn: the one by
//! whom `arrived + retired == n_warps`, be it by an exit, does what the end of the array does above, but for starting over, and writes 1 to [`CtaCtx::passed`]. At the end of the
//! array code starts over if that is not 0, and makes it 0. While [`CtaCtx::outside`] is not 0, barriers and exits leave such code.
//!
//! # CTAs one after the other
//! Where [`Tables::starts_warps`] says so, code runs a CTA that has not run without its headers ([`CtaCtx::fresh`] is not 0, and code makes it 0), and where
//! [`Tables::runs_on`] says so, then, as often as
//! [`CtaCtx::more`] says, the one whose `ctaid[0]` is 1 higher. Each time it takes 1 from `more`, adds 1 to `ctaid[0]`, and fills shared memory as the runtime
//! does. It looks at the stop word before each of them, and goes on only from a CTA all of whose warps have ended and which began in the same call. While `fresh` is not 0 headers need not be
//! read, and while warps run so none are written but `live` of the warp that runs: whoever leaves the code first writes
//! headers and pending words of all warps. [`Reason::Phase`] then means that the CTA in `ctaid` has ended, with `retired` equal to `n_warps`.

mod stop;

use serde::{Deserialize, Serialize};

use crate::analysis::shape::Shape;

pub use stop::{BadStop, Stop, TrapSource, Word};

/// Bytes before [`CtaCtx::heap_low`] that code may read: they hold zeros, and belong to nobody.
pub const HEAP_RIM: u64 = 28 * 4096;

/// Launch and cta facts that compiled code reads. One for each cta that runs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CtaCtx {
    /// Context to run next; on return the one the reason is about.
    pub cur: u64,
    /// First context of the array.
    pub first: u64,
    /// End of the array of contexts.
    pub end: u64,
    /// Contexts that arrived at the plain barrier in this epoch, and [`AT_ANOTHER`] for each that arrived at another one.
    pub arrived: u32,
    /// Contexts that have no live lane left (counted by code when a whole warp exits unmasked, by the runtime otherwise).
    pub retired: u32,
    /// Number of contexts.
    pub n_warps: u32,
    /// Counts the plain barriers passed; starts at 1.
    pub epoch: u32,
    /// `%ctaid`.
    pub ctaid: [u32; 3],
    /// `%nctaid`.
    pub nctaid: [u32; 3],
    /// Host address of the entry's parameters.
    pub param: u64,
    /// Host address of the cta's shared memory.
    pub shared_base: u64,
    /// Bytes of it that may be used.
    pub shared_size: u64,
    /// Table of routine addresses, indexed by [`Routine`].
    pub routines: u64,
    /// Table of `u64`: generic address of each symbol (offset for shared ones, handle for functions).
    pub symbols: u64,
    /// Table of [`SiteCache`], one for each bounds site of the running code; private to the worker.
    pub sites: u64,
    /// Lowest address of device memory (contained bounds).
    pub heap_low: u64,
    /// End of device memory (contained bounds).
    pub heap_high: u64,
    /// Address of a `u32` that is not zero when the launch is to stop.
    pub stop: u64,
    /// The runtime's own.
    pub host: u64,
    /// Address of the [`Tables`] of the code that runs.
    pub tables: u64,
    /// `%dynamic_smem_size`.
    pub dynamic_shared: u32,
    /// Set to 1 by stores and by atomics that changed memory, in functions with yield points.
    pub dirty: u32,
    /// Private word for `fence.sc`.
    pub fence: u64,
    /// Not 0 for a CTA that has not run: see the module's text on CTAs one after the other.
    pub fresh: u32,
    /// Further CTAs that code may run.
    pub more: u32,
    /// Address of the counters of a counted launch that this host thread adds to.
    pub counts: u64,
    /// Not 0 while threads wait at a barrier of which code does not know, in code that keeps to the seed's order.
    pub outside: u32,
    /// Not 0 if the plain barrier was passed since the array of contexts began, in such code.
    pub passed: u32,
    /// Table of words of [`Granule`]s from `heap_low` on.
    pub granules: u64,
    /// Bytes from `heap_low` on that the table is for. 0: code asks the runtime.
    pub granules_size: u64,
}

/// A [`CtaCtx`] with memory after it that is the running code's own: nothing in it lasts over a return from the code.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
pub struct CtaBlock {
    /// What code gets the address of.
    pub ctx: CtaCtx,
    /// Vectors that have no register of the host.
    pub vectors: Vectors,
}

/// Room for vectors, none of which lies in two lines of the cache.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
pub struct Vectors([u8; CtaBlock::VECTORS]);

impl CtaBlock {
    /// Bytes for vectors.
    pub const VECTORS: usize = 3328;

    /// With vectors of zeros.
    pub const fn new(ctx: CtaCtx) -> CtaBlock {
        CtaBlock { ctx, vectors: Vectors([0; CtaBlock::VECTORS]) }
    }
}

/// Header of a warp context. Pending words and rows follow it.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct WarpCtx {
    /// Lanes that have not exited (of this activation).
    pub live: u32,
    /// Block to look at first, or the number of blocks for "not now".
    pub state: u32,
    /// See the module's text on barriers.
    pub wait_epoch: u32,
    /// Index of the warp in its cta.
    pub warp: u32,
    /// Lanes of a [`Stop`].
    pub lanes: u32,
    /// The number of its site; or of the plain barrier that the context waits at inside code.
    pub site: u32,
    /// What else belongs to the stop.
    pub words: [u32; 4],
    /// Host address of lane 0's frame in local memory; lane `l` has it at `+ l * local_stride`.
    pub local: u64,
    /// Host address of lane 0's incoming argument block, same stride.
    pub args: u64,
    /// Host address of lane 0's local memory as a whole, same stride.
    pub window: u64,
}

/// Why code came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Reason {
    /// The array of contexts was run through; nobody is left to run in it now.
    Phase = 0,
    /// Lanes of `cur` arrived at a barrier that code does not pass by itself. Other lanes of the context may be pending: after handling, set `state`
    /// to its lowest pending block.
    Barrier = 1,
    /// Lanes of `cur` give way.
    Yield = 2,
    /// Lanes of `cur` call a function.
    Call = 3,
    /// Lanes of `cur` trapped.
    Trap = 4,
    /// The stop word was set.
    Stopped = 5,
    /// All pending lanes of `cur` have exited or are parked (warp-level ops): nothing in it is runnable now.
    Idle = 6,
    /// Lanes of `cur` end their threads from inside a function.
    Exit = 7,
    /// Code met what it was not made for: a test that it rests on failed at the start of block `state`, or lanes went different ways and it has no
    /// masked copies. `cur` must go on in code of the next tier, with the values of its registers ([`Tables::homes`]) and its pending lanes
    /// carried over.
    Deopt = 8,
}

impl Reason {
    /// From the number that code returned.
    pub fn from_u32(n: u32) -> Option<Reason> {
        use Reason::*;
        [Phase, Barrier, Yield, Call, Trap, Stopped, Idle, Exit, Deopt].into_iter().find(|r| *r as u32 == n)
    }
}

/// What the word of a granule of the heap says of the allocation that lies there, which kernels may read and write. 0: there is none, or a large one.
///
/// From the lowest bit on: the size in [`SIZE_BITS`](Self::SIZE_BITS), the kind, and the start without its [`BITS`](Self::BITS) lowest bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granule {
    /// Where the allocation begins, from the start of the heap on: at a granule.
    pub start: u64,
    /// Bytes of it.
    pub size: u64,
    /// What it is, for the runtime.
    pub kind: u32,
}

impl Granule {
    /// Bytes of a granule, as a power of two.
    pub const BITS: u32 = 9;
    /// Bits of the size.
    pub const SIZE_BITS: u32 = 31;
    /// Bits before those of the start.
    pub const START_AT: u32 = 35;
    /// Bytes of the longest allocation that a word can tell.
    pub const MOST: u64 = (1 << Self::SIZE_BITS) - 1;

    /// The word.
    pub fn word(self) -> u64 {
        self.start >> Self::BITS << Self::START_AT | u64::from(self.kind) << Self::SIZE_BITS | self.size
    }

    /// What a word says.
    pub fn of(word: u64) -> Granule {
        let kind = (word >> Self::SIZE_BITS) as u32 & ((1 << (Self::START_AT - Self::SIZE_BITS)) - 1);
        Granule { start: word >> Self::START_AT << Self::BITS, size: word & Self::MOST, kind }
    }
}

/// The last allocation that a bounds site hit: an aligned access at `a` is inside when `a - base < limit` (unsigned).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SiteCache {
    /// Start of the allocation.
    pub base: u64,
    /// The first distance that is aligned for the site and at which the length that it tests no longer fits; 0 if nothing fits.
    pub limit: u64,
}

impl SiteCache {
    /// Hits nothing.
    pub const EMPTY: SiteCache = SiteCache { base: 0, limit: 0 };

    /// A cache of `size` bytes from `base` for a site that tests `length` bytes at multiples of `align`, a power of two.
    pub fn new(base: u64, size: u64, length: u64, align: u64) -> SiteCache {
        let limit = size.checked_sub(length).map_or(0, |last| (last & align.wrapping_neg()) + align);
        SiteCache { base, limit }
    }
}

/// Routines of the runtime that code calls through [`CtaCtx::routines`]. All take `(cta, warp, site, mask, x, y)` as `u64, u64, u32, u32, u64, u64` in the
/// System V calling convention and return a `u64`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Routine {
    /// Memory site, `x` = lowest address (an offset for shared memory), `y` = length. The `n` lanes of `mask`, in ascending order, stand at even
    /// distances `(y - bytes) / (n - 1)`. Tests alignment, then bounds. Gives 1 if every lane's access is right, and refreshes the cache of the site if
    /// one allocation holds the whole range; else records the trap and gives 0.
    Check = 0,
    /// Value op of eval site, for the lanes of `mask`, rows to rows.
    Eval = 1,
    /// Memory op of memory site, lane by lane in ascending order, rows to rows, for the lanes of `mask` (guard already applied). Gives 1, or 0 after recording
    /// a trap. Refreshes the cache of the site for single accesses.
    Memory = 2,
    /// Warp-level op of a number by the lanes of `mask`; `x` is the [`CopyKind`] of the code, which tells where the operands are. Gives 1 when it is complete for exactly these lanes (go on), 0 when they were parked, or
    /// completed together with lanes parked elsewhere (all of them are then pending at their own next blocks: look for the lowest).
    Sync = 3,
    /// Built-in function of builtin site. Gives 1, or 0 after recording a trap.
    Builtin = 4,
    /// Special register that code does not hold: `site` is an index of [`Tables::sregs`]. Gives its value.
    Sreg = 5,
    /// Misaligned address: memory site, `x` = address of the first lane of `mask`. Records the trap; gives 0.
    Misaligned = 6,
    /// Memory site, `x` = address, `y` = length. Gives 1, and refreshes the cache of the site, if one allocation that the site's op may access holds
    /// the whole range; else 0. Records nothing.
    Range = 7,
    /// Of counted launches: what [`Meeting`] `x` says of the warps of the CTA; `site` is the number of a barrier. Gives 1.
    Meet = 8,
    /// Adds the words of the row at byte `y` of the context to the words of global memory that follow each other from the address `x` of lane 0 on, for the lanes of
    /// `mask`, when code comes back to the runtime at the latest. All of them were tested. Gives 1.
    Add = 9,
}

/// What [`Routine::Meet`] is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Meeting {
    /// All warps have come to the plain barrier and go on.
    All = 0,
    /// Warps whose headers say that they wait at a plain barrier go on.
    Headers = 1,
    /// The CTA has ended.
    End = 2,
    /// The lanes of the mask access memory: `site` is the place of the access among those that are counted ([`Tables::patterns`]), `y` the address of lane 0
    /// modulo [`handloom_ir::simt::Counts::ACCESS`].
    Masked = 3,
}

impl Routine {
    /// All of them, in the order of their numbers.
    pub const ALL: [Routine; 10] = {
        use Routine::*;
        [Check, Eval, Memory, Sync, Builtin, Sreg, Misaligned, Range, Meet, Add]
    };
}

/// Where a routine finds a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Loc {
    /// A row of 32-bit lanes at this offset of the context (types P, B16, B32). A predicate lane is 0 or all ones.
    Row32(u32),
    /// A row of 64-bit lanes.
    Row64(u32),
    /// The same 64-bit word for every lane, at this offset of the context.
    Scalar(u32),
    /// A constant.
    Imm(u64),
    /// `word at this offset + stride * lane`.
    Linear {
        /// Offset of the 64-bit word: the value of lane 0.
        at: u32,
        /// Added for each lane.
        stride: i64,
        /// Width: the value is taken modulo 2^bits.
        bits: u8,
    },
    /// `word of the lane's group + the lane's difference`: the home of a value with a shape.
    Shaped {
        /// Offset of the first group's 64-bit word; the others follow.
        at: u32,
        /// Which group a lane belongs to, and how far it is from the group's first lane, whose value the word is.
        shape: Shape,
        /// Width: the value is taken modulo 2^bits.
        bits: u8,
    },
    /// `word of the piece + stride * lane within the piece`: a value with a shape, written out.
    Pieces {
        /// Offset of a 64-bit word for each piece: the value of its first lane.
        at: u32,
        /// Lanes of a piece, a power of two.
        len: u8,
        /// Added for each lane within the piece.
        stride: i64,
        /// Width: the value is taken modulo 2^bits.
        bits: u8,
    },
}

/// A value op done by [`Routine::Eval`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvalSite {
    /// The op.
    pub op: handloom_ir::simt::Pure,
    /// Rows of the results.
    pub dst: Vec<Loc>,
    /// Where the sources are found, in the order of the op.
    pub src: Vec<Loc>,
}

/// A memory op: for bounds checks, traps, and [`Routine::Memory`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemSite {
    /// The op: a load, store, atomic or reduction, a transfer, or another that [`Routine::Memory`] does.
    pub op: handloom_ir::simt::Op,
    /// Address (without the op's offset). Of a site whose addresses are handed to [`Routine::Check`] only its width counts.
    pub addr: Loc,
    /// Operands: stored values, or operands of the atomic.
    pub src: Vec<Loc>,
    /// Rows of the results.
    pub dst: Vec<Loc>,
    /// The statement.
    pub span: handloom_diag::Span,
    /// The variable that the address is made from, where an audit is told.
    pub variable: Option<Origin>,
    /// Another site of the same op, which tests the same length: what is found here is put into its cache too.
    pub twin: Option<u32>,
    /// How the access finds local memory, if that does not lie thread by thread. The op is that of the statement then, whose offset says nothing.
    pub interleaved: Option<Interleaved>,
}

/// Local memory whose elements lie lane by lane: element i of lane l is element 32 i + l of the warp's local memory, and addresses are those of such elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Interleaved {
    /// Bytes of an element.
    pub bytes: u8,
    /// Which element of its statement's access the site does.
    pub element: u8,
    /// Added to an address, for the place of that element.
    pub offset: i64,
}

/// A variable that the address of an access is made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Origin {
    /// Of the module.
    Symbol(handloom_ir::simt::SymId),
    /// In the frame of a thread.
    Frame {
        /// From the start of the thread's local memory.
        offset: u32,
        /// Its size.
        bytes: u32,
    },
}

/// Which code a site is used by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum CopyKind {
    /// Code for all 32 lanes together.
    Full = 0,
    /// Code for some lanes.
    Masked = 1,
}

/// Where the operands of a warp-level op are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Operands {
    /// Sources by the op's order; the member mask is the last.
    pub src: Vec<Loc>,
    /// Rows of the results.
    pub dst: Vec<Loc>,
    /// No row of a result is one of a source.
    pub is_apart: bool,
    /// Offsets of those of the sources and of the results that are rows of 32 bits, 0 for others. Ops with a hundred operands look here.
    pub rows: [Vec<u32>; 2],
    /// Which of the sources and of the results are no rows of 32 bits.
    pub others: [Vec<u32>; 2],
}

impl Operands {
    /// Operands at these places.
    pub fn new(src: Vec<Loc>, dst: Vec<Loc>) -> Operands {
        let is_apart = dst.iter().all(|to| !src.contains(to));
        let row = |loc: &Loc| if let Loc::Row32(at) = loc { Some(*at) } else { None };
        let rows = [&src, &dst].map(|all| all.iter().map(|loc| row(loc).unwrap_or(0)).collect());
        let others =
            [&src, &dst].map(|all| (0..).zip(all).filter(|(_, loc)| row(loc).is_none()).map(|(i, _)| i).collect());
        Operands { src, dst, is_apart, rows, others }
    }
}

/// A warp-level op. Its number is its index in every table of the function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SyncSite {
    /// The op.
    pub op: handloom_ir::simt::Op,
    /// Block where lanes go on.
    pub next: u32,
    /// The statement.
    pub span: handloom_diag::Span,
    /// Operands of code for all lanes, where it calls the routine: live lanes never park there.
    pub full: Option<Operands>,
    /// Operands of code for some lanes, where there is such code. Lanes that park are found there later, also by other code of the function, whose
    /// operands of the same number hold the same values.
    pub masked: Option<Operands>,
}

impl SyncSite {
    /// The operands that a copy uses.
    #[inline]
    pub fn operands(&self, copy: CopyKind) -> Option<&Operands> {
        match copy {
            CopyKind::Full => self.full.as_ref(),
            CopyKind::Masked => self.masked.as_ref(),
        }
    }
}

/// What a warp adds to [`CtaCtx::arrived`] that waits inside code at another barrier than the plain one: so code passes none until the runtime has taken note.
pub const AT_ANOTHER: u32 = 1 << 16;

/// Which barrier threads come to, by constants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waited {
    /// Its number.
    pub id: u32,
    /// How many threads are expected, if it says.
    pub threads: Option<u32>,
}

/// A barrier at the end of a block. Its number is its index in every table of the function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BarrierSite {
    /// What an arrival does.
    pub kind: handloom_ir::simt::BarKind,
    /// Which one it is, if warps may wait at it inside code.
    pub waited: Option<Waited>,
    /// Where the result of a reduction lives; `None` if there is none.
    pub result: Option<Loc>,
    /// Block where lanes go on.
    pub next: u32,
    /// The statement.
    pub span: handloom_diag::Span,
}

impl BarrierSite {
    /// Whether arriving lanes bring a predicate.
    pub fn takes_predicate(&self) -> bool {
        use handloom_ir::simt::BarKind::*;
        match self.kind {
            RedPopc | RedAnd | RedOr => true,
            Sync | Arrive | ClusterArrive | ClusterArriveRelaxed | ClusterWait | Warpgroup | WarpgroupStart => false,
        }
    }
}

/// Where the operands of a barrier are as lanes arrive there. Each lane has its own.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Arrivals {
    /// The number that the program gives the barrier.
    pub id: Loc,
    /// Threads expected, if the barrier was written with a number of them.
    pub count: Option<Loc>,
}

impl Arrivals {
    /// Whether it is known that all lanes of a warp name the same.
    pub fn is_one(&self) -> bool {
        let is_one = |loc: Loc| matches!(loc, Loc::Imm(_) | Loc::Scalar(_));
        is_one(self.id) && self.count.is_none_or(is_one)
    }
}

/// A yield at the end of a block. Its number is its index in every table of the function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct YieldSite {
    /// Block where lanes go on.
    pub next: u32,
    /// Whether some of the lanes may go on without the others.
    pub in_part: bool,
    /// The statement.
    pub span: handloom_diag::Span,
}

/// A call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallSite {
    /// The function, or that it is called through a handle.
    pub callee: handloom_ir::simt::Callee,
    /// Function handle of an indirect call.
    pub target: Option<Loc>,
    /// Bytes of parameters and results.
    pub signature: (u32, u32),
    /// Offset of the outgoing argument block from the frame.
    pub args: u32,
    /// Where the frame of the callee begins, from that of the caller.
    pub frame_end: u64,
    /// Block where lanes go on.
    pub next: u32,
    /// The statement.
    pub span: handloom_diag::Span,
}

/// A trap raised by code itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrapSite {
    /// What the report calls the trap.
    pub kind: handloom_ir::trap::TrapKind,
    /// Of a branch by index: the index, and the number of targets.
    pub index: Option<(Loc, usize)>,
    /// The statement.
    pub span: handloom_diag::Span,
}

/// What the runtime must know of compiled code.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tables {
    /// Name of the function.
    pub name: String,
    /// Bytes of a context, header included; contexts stand at multiples of it. A multiple of 64.
    pub ctx_bytes: u32,
    /// Offset of the pending words: one `u32` for each block.
    pub pend_offset: u32,
    /// Number of blocks.
    pub n_blocks: u32,
    /// Statement at the start of each block, for reports of who waits where.
    pub block_spans: Vec<handloom_diag::Span>,
    /// Bytes of the frame in local memory.
    pub frame_bytes: u32,
    /// Bytes that the code takes on the stack of the host thread that runs it.
    pub stack_bytes: u32,
    /// Value ops done by routine.
    pub evals: Vec<EvalSite>,
    /// Memory ops.
    pub mems: Vec<MemSite>,
    /// Warp-level ops by number.
    pub syncs: Vec<SyncSite>,
    /// Barriers by number.
    pub barriers: Vec<BarrierSite>,
    /// What lanes that arrive at barriers name, by the number that a stop names.
    pub arrivals: Vec<Arrivals>,
    /// Yields by number.
    pub yields: Vec<YieldSite>,
    /// Calls, by the number that a stop names.
    pub calls: Vec<CallSite>,
    /// Traps that code raises itself, by the number that a stop names.
    pub traps: Vec<TrapSite>,
    /// Built-in functions: which, where its argument block is (address per lane), the statement.
    pub builtins: Vec<(handloom_ir::simt::Builtin, Loc, handloom_diag::Span)>,
    /// Special registers read by routine.
    pub sregs: Vec<handloom_ir::types::Sreg>,
    /// Where each register lives between blocks, `None` for those that do not. Nothing in code that no context leaves for other code once it has run.
    pub homes: Vec<Option<Loc>>,
    /// Whether code starts the warps of a CTA that has not run by itself ([`CtaCtx::fresh`]): their headers need not be written, and no lane may be pending.
    pub starts_warps: bool,
    /// Whether code may be told to go on with the next CTA by itself ([`CtaCtx::more`]).
    pub runs_on: bool,
    /// Offset of two words of 64 bits in a context of a counted launch: statements that the warp executed, and how many of them before it last met the others.
    pub work: Option<u32>,
    /// Counters of accesses by the address of lane 0 ([`handloom_ir::simt::Count::Access`]), and where the other lanes are then.
    pub patterns: Vec<(u32, Shape)>,
    /// Counters of accesses that need no words where all lanes execute the block: what each comes to is the same. With the counter of the block.
    pub fixed: Vec<(u32, u32)>,
}

impl Tables {
    /// The state that means "not to run now".
    pub fn skip(&self) -> u32 {
        self.n_blocks
    }

    /// A barrier of the function.
    ///
    /// # Panics
    /// There is none of that number. The numbers in a [`Stop`] are tested when it is read.
    pub fn barrier(&self, number: u32) -> &BarrierSite {
        &self.barriers[number as usize]
    }

    /// A yield of the function.
    ///
    /// # Panics
    /// As [`barrier`](Self::barrier).
    pub fn yield_site(&self, number: u32) -> &YieldSite {
        &self.yields[number as usize]
    }
}

/// The distance of contexts that need so many bytes: an odd number of cache lines that is 5 more than a multiple of 8.
///
/// A block walks over the headers of its warps in turn. At distances near a multiple of a page they would all lie in a few sets of the first
/// cache, and be driven out of it by the data that the kernel streams.
pub fn spread(bytes: u32) -> u32 {
    let lines = bytes.div_ceil(64);
    64 * (lines + (13 - lines % 8) % 8)
}
