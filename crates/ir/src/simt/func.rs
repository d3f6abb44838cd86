//! Functions, blocks and warp values.
//!
//! A function is blocks of instructions over *registers*: one register stands for a value in each of 32 lanes. A register may have
//! several definitions (PTX registers do); one with a single definition that dominates its uses behaves as a value in SSA form.

use std::collections::BTreeMap;

use handloom_diag::Span;
use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use crate::trap::TrapKind;
use crate::types::{Sreg, Ty};

use super::ids::*;
use super::op::{Callee, Op};

/// A source operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Val {
    /// A register.
    Reg(Reg),
    /// A constant, the same in each lane, zero above the width of its type.
    Imm(u64, Ty),
}

/// Registers of an instruction: one or two as a rule, which need no memory of their own.
pub type Regs = SmallVec<[Reg; 2]>;

/// Sources of an instruction: three and fewer as a rule, which need no memory of their own.
pub type Vals = SmallVec<[Val; 3]>;

/// One instruction.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Inst {
    /// What it does.
    pub op: Op,
    /// Results. A result that nobody wants is a fresh register.
    pub dst: Regs,
    /// Sources, in the order of the op's comment.
    pub src: Vals,
    /// Whether the last source is a guard.
    pub guarded: bool,
    /// The PTX statement.
    pub span: Span,
}

impl Inst {
    /// The guard, if the instruction has one.
    pub fn guard(&self) -> Option<Val> {
        if self.guarded { self.src.last().copied() } else { None }
    }

    /// The sources without the guard.
    pub fn operands(&self) -> &[Val] {
        &self.src[..self.src.len() - usize::from(self.guarded)]
    }
}

/// Barriers of a cta.
pub const BARRIERS: u32 = 16;

/// What an arrival at a cta barrier does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
pub enum BarKind {
    /// Waits for all of them.
    Sync,
    /// Arrives and goes on.
    Arrive,
    /// Waits and returns the number of true predicates (B32).
    RedPopc,
    /// Waits and returns whether all predicates are true (P).
    RedAnd,
    /// Waits and returns whether any predicate is true (P).
    RedOr,
    /// `barrier.cluster.arrive`; `id` and `count` are unused.
    ClusterArrive,
    /// `barrier.cluster.arrive.relaxed`: the same, and it orders nothing by itself.
    ClusterArriveRelaxed,
    /// `barrier.cluster.wait`.
    ClusterWait,
    /// Waits for the warps of its warpgroup: four neighbouring warps of the cta; `id` and `count` are unused.
    Warpgroup,
    /// The same, before a product that the warpgroup begins together. A program may not build on that, so that it orders nothing for a check.
    WarpgroupStart,
}

/// How a block ends.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum Term {
    /// To one block.
    Jump(BlockId),
    /// By a predicate.
    Branch {
        /// Type P.
        cond: Val,
        /// Where lanes with 1 go.
        then: BlockId,
        /// Where lanes with 0 go.
        otherwise: BlockId,
    },
    /// By an index (B32); an index past the list traps with `BadCall`.
    Switch {
        /// The index.
        index: Val,
        /// The targets.
        targets: Vec<BlockId>,
    },
    /// Returns from a function; ends the thread in an entry.
    Ret,
    /// Ends the thread.
    Exit,
    /// Stops the launch.
    Trap(TrapKind),
    /// A cta barrier; the executing lanes go on at `next` when it is met (at once for an arrival).
    Barrier {
        /// What the arrival does.
        kind: BarKind,
        /// Number of the barrier (B32), 0 to 15.
        id: Val,
        /// Number of threads expected (B32); all of the cta if absent.
        count: Option<Val>,
        /// Predicate (P) of a reduction.
        pred: Option<Val>,
        /// Result of a reduction.
        dst: Option<Reg>,
        /// Where lanes go on.
        next: BlockId,
    },
    /// A call. Arguments lie in the frame slot `args` by the callee's parameter layout; results are written after them.
    Call {
        /// What is called.
        callee: Callee,
        /// Function handle (B64) of an indirect call.
        target: Option<Val>,
        /// For an indirect call: bytes of parameters and results, which the callee's must equal.
        signature: (u32, u32),
        /// Slot of the outgoing argument block.
        args: SlotId,
        /// Where lanes go on.
        next: BlockId,
    },
    /// Lets other lanes, warps and ctas run, then goes on at `next`: it is on back edges of loops that may wait for other threads.
    Yield {
        /// Where lanes go on.
        next: BlockId,
    },
}

impl Term {
    /// The blocks that lanes may go to.
    pub fn successors(&self) -> SmallVec<[BlockId; 2]> {
        match self {
            Term::Jump(b) => smallvec![*b],
            Term::Branch { then, otherwise, .. } => smallvec![*then, *otherwise],
            Term::Switch { targets, .. } => targets.as_slice().into(),
            Term::Ret | Term::Exit | Term::Trap(_) => smallvec![],
            Term::Barrier { next, .. } | Term::Call { next, .. } | Term::Yield { next } => smallvec![*next],
        }
    }

    /// Changes each successor.
    pub fn map_successors(&mut self, mut f: impl FnMut(BlockId) -> BlockId) {
        match self {
            Term::Jump(b) => *b = f(*b),
            Term::Branch { then, otherwise, .. } => {
                *then = f(*then);
                *otherwise = f(*otherwise);
            }
            Term::Switch { targets, .. } => targets.iter_mut().for_each(|b| *b = f(*b)),
            Term::Ret | Term::Exit | Term::Trap(_) => {}
            Term::Barrier { next, .. } | Term::Call { next, .. } | Term::Yield { next } => *next = f(*next),
        }
    }

    /// The values it reads.
    pub fn sources(&self) -> Vals {
        match self {
            Term::Branch { cond, .. } => smallvec![*cond],
            Term::Switch { index, .. } => smallvec![*index],
            Term::Barrier { id, count, pred, .. } => [Some(*id), *count, *pred].into_iter().flatten().collect(),
            Term::Call { target, .. } => target.iter().copied().collect(),
            Term::Jump(_) | Term::Ret | Term::Exit | Term::Trap(_) | Term::Yield { .. } => smallvec![],
        }
    }

    /// Changes each value it reads.
    pub fn map_sources(&mut self, mut f: impl FnMut(Val) -> Val) {
        match self {
            Term::Branch { cond, .. } => *cond = f(*cond),
            Term::Switch { index, .. } => *index = f(*index),
            Term::Barrier { id, count, pred, .. } => {
                *id = f(*id);
                if let Some(c) = count {
                    *c = f(*c);
                }
                if let Some(p) = pred {
                    *p = f(*p);
                }
            }
            Term::Call { target, .. } => {
                if let Some(t) = target {
                    *t = f(*t);
                }
            }
            Term::Jump(_) | Term::Ret | Term::Exit | Term::Trap(_) | Term::Yield { .. } => {}
        }
    }

    /// The register it writes (the result of a barrier reduction).
    pub fn result(&self) -> Option<Reg> {
        match self {
            Term::Barrier { dst, .. } => *dst,
            Term::Jump(_)
            | Term::Branch { .. }
            | Term::Switch { .. }
            | Term::Ret
            | Term::Exit
            | Term::Trap(_)
            | Term::Call { .. }
            | Term::Yield { .. } => None,
        }
    }

    /// Whether lanes may stop here for others: the warp function returns to the scheduler.
    pub const fn suspends(&self) -> bool {
        matches!(self, Term::Barrier { .. } | Term::Call { .. } | Term::Yield { .. })
    }
}

/// A basic block.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Block {
    /// Instructions in order. A warp-synchronising op is the last one.
    pub insts: Vec<Inst>,
    /// The end.
    pub term: Term,
    /// The PTX statement of the end.
    pub term_span: Span,
}

/// A slot of a frame in the thread's local memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Slot {
    /// Its place, if it is settled: else slots lie in order.
    pub at: Option<Placed>,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// Where a slot lies: places of the program as it was written, which stay when a pass removes other slots or the call of the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Placed {
    /// From the base of the frame, in bytes.
    pub offset: u32,
    /// End of the frame that the slot was written in, in bytes from the same base: where the frame of a callee begins.
    pub frame_end: u32,
}

impl Placed {
    /// The same, in a frame that begins so many bytes before.
    pub fn moved(self, by: u32) -> Placed {
        Placed { offset: self.offset.saturating_add(by), frame_end: self.frame_end.saturating_add(by) }
    }
}

impl Slot {
    /// A slot after those before it.
    pub const fn new(size: u32, align: u32) -> Slot {
        Slot { at: None, size, align }
    }
}

/// Dimensions that a launch is specialised on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct LaunchShape {
    /// Threads of a cta in x, y, z.
    pub ntid: [u32; 3],
    /// `ntid.x * nctaid.x`, likewise y and z, are all below 2^31: a global index does not wrap.
    pub small_grid: bool,
}

impl LaunchShape {
    /// Threads of a cta.
    pub fn threads(&self) -> u32 {
        self.ntid.iter().product()
    }

    /// Warps of a cta; the last one may have fewer lanes.
    pub fn n_warps(&self) -> u32 {
        self.threads().div_ceil(32)
    }
}

/// A function.
#[derive(Clone, PartialEq, Debug, Hash)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Whether it is a kernel.
    pub is_entry: bool,
    /// Blocks in a good order: the entry first, then reverse post-order with loops contiguous.
    pub blocks: Vec<Block>,
    /// Types of the registers.
    pub regs: Vec<Ty>,
    /// Frame slots in local memory.
    pub slots: Vec<Slot>,
    /// Size of the parameter block: parameters, then results, in bytes.
    pub param_bytes: u32,
    /// Size of the results at the end of the block of a function, in bytes.
    pub result_bytes: u32,
    /// The declaration.
    pub span: Span,
}

impl Function {
    /// Type of a value.
    pub fn ty(&self, v: Val) -> Ty {
        match v {
            Val::Reg(r) => self.regs[r.idx()],
            Val::Imm(_, t) => t,
        }
    }

    /// A new register.
    pub fn register(&mut self, ty: Ty) -> Reg {
        self.regs.push(ty);
        Reg(self.regs.len() as u32 - 1)
    }

    /// By register: how often instructions and ends of blocks read it.
    pub fn n_reads(&self) -> Vec<u32> {
        let mut reads = vec![0; self.regs.len()];
        let mut read = |v: &Val| {
            if let Val::Reg(r) = v {
                reads[r.idx()] += 1;
            }
        };
        for block in &self.blocks {
            block.insts.iter().flat_map(|i| &i.src).for_each(&mut read);
            block.term.sources().iter().for_each(&mut read);
        }
        reads
    }

    /// The blocks of an ordered function that a block behind them, or they themselves, lead back to: where its loops begin. Some come more than once.
    pub fn led_back_to(&self) -> impl Iterator<Item = BlockId> + '_ {
        let blocks = self.blocks.iter().enumerate();
        blocks.flat_map(|(b, block)| block.term.successors().into_iter().filter(move |t| t.idx() <= b))
    }

    /// Predecessors of each block.
    pub fn predecessors(&self) -> Vec<Vec<BlockId>> {
        let mut preds = vec![Vec::new(); self.blocks.len()];
        for (i, b) in self.blocks.iter().enumerate() {
            for s in b.term.successors() {
                if !preds[s.idx()].contains(&BlockId(i as u32)) {
                    preds[s.idx()].push(BlockId(i as u32));
                }
            }
        }
        preds
    }
}

/// Where a symbol's bytes lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum SymKind {
    /// `.global`.
    Global,
    /// `.const`.
    Const,
    /// `.shared`: static, at `offset` of the cta's shared memory.
    Shared {
        /// Byte offset.
        offset: u32,
    },
    /// `.extern .shared` of no size: starts after all static shared memory.
    DynamicShared {
        /// Byte offset, the end of static shared memory of the module.
        offset: u32,
    },
    /// A function; its address is [`FuncId::handle`].
    Func(FuncId),
}

/// A word of an initialiser that holds an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Reloc {
    /// Byte offset in the symbol.
    pub offset: u32,
    /// Size of the word in bytes: 4 or 8 (1 with a shift for `mask` initialisers).
    pub size: u8,
    /// The symbol whose address is meant.
    pub target: SymId,
    /// Added to the address.
    pub addend: i64,
    /// Bits shifted right before storing the low `size` bytes (for `0xFF00(symbol)` forms).
    pub shift: u8,
}

/// A symbol.
#[derive(Clone, PartialEq, Debug, Hash)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Where its bytes lie, or which function it is.
    pub kind: SymKind,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u32,
    /// Initial bytes; zero after them. Empty for uninitialised.
    pub init: Vec<u8>,
    /// Addresses in it.
    pub relocs: Vec<Reloc>,
    /// There is one for all devices (`.managed`).
    pub managed: bool,
    /// The declaration.
    pub span: Span,
}

/// A parameter of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Byte offset in the parameter block.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// Declared element type.
    pub ty: crate::types::ScalarType,
    /// Whether it is an array.
    pub is_array: bool,
}

/// Bits of an entry's parameters that a load reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
pub struct ParamPlace {
    /// Byte offset in the parameter block.
    pub offset: u32,
    /// 32 or 64 bits.
    pub bits: u8,
}

/// What a place in an entry's parameters holds in some launches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct ParamValue {
    /// The place.
    pub place: ParamPlace,
    /// Its bits.
    pub value: u64,
}

/// What an entry says of the registers of a GPU that its threads may have. Nothing here depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RegisterBounds {
    /// `.maxnreg`: the most registers of a thread.
    pub maxnreg: Option<u32>,
    /// `.minnctapersm`: ctas that a multiprocessor is to hold at least.
    pub min_ctas: Option<u32>,
}

/// What a launch of an entry must know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The function.
    pub func: FuncId,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// `.reqntid`.
    pub reqntid: Option<[u32; 3]>,
    /// `.maxntid`.
    pub maxntid: Option<[u32; 3]>,
    /// `.reqnctapercluster`.
    pub reqcluster: Option<[u32; 3]>,
    /// Registers of its threads on a GPU.
    pub registers: RegisterBounds,
    /// Static shared memory of the entry in bytes, without what is reserved.
    pub shared_bytes: u32,
}

/// A module: what `lower` returns and both engines read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Module {
    /// Functions, entries among them; [`FuncId`] is an index.
    pub funcs: Vec<Function>,
    /// Variables and functions by [`SymId`].
    pub syms: Vec<Symbol>,
    /// Entries by name.
    pub entries: BTreeMap<String, Entry>,
    /// 32 or 64.
    pub address_size: u8,
    /// CUDA source lines: (span start in PTX file order) sorted by (file, start): file name index and line.
    pub lines: Vec<LineEntry>,
    /// Names of CUDA source files.
    pub line_files: Vec<String>,
    /// How shared memory is dealt out.
    pub shared: SharedRules,
    /// The same functions for launches whose asynchronous results may come late, if that makes a difference to any of them; else none.
    pub late: Vec<Function>,
    /// The instructions as they were written, those that nothing reaches too, if their begin is marked ([`Op::Mark`]); else none.
    pub statements: Vec<Statement>,
}

/// An instruction of a function, as it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Its function.
    pub func: FuncId,
    /// Its place; the ops that it became have the same.
    pub span: Span,
    /// The opcode, without qualifiers.
    pub opcode: &'static str,
    /// How lanes may leave it.
    pub ways: Ways,
}

/// How lanes may leave a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ways {
    /// One way.
    One,
    /// `bra` under a guard: taken, or not.
    Two,
    /// `brx.idx`: as many as it has labels.
    Many(u32),
}

impl Module {
    /// The name of a variable as it was declared: those of functions carry that of the function and a number.
    pub fn declared_name<'s>(&self, name: &'s str) -> &'s str {
        let functions = self.funcs.iter().filter_map(|f| name.strip_prefix(f.name.as_str())?.strip_prefix('$'));
        let inner = functions.filter_map(|rest| rest.rsplit_once('$').map(|(inner, _)| inner));
        inner.min_by_key(|inner| inner.len()).unwrap_or(name)
    }

    /// The file and the line of the source, from 1, that a place came from: those of the `.loc` that governs it.
    pub fn source_line(&self, span: Span) -> Option<(&str, u32)> {
        let line = self.line_entry(span)?;
        self.line_of(line.file, line.line)
    }

    /// The file and the line from which the code at a place was called before it was inlined there: the outermost call, in the kernel or a function that was not
    /// inlined.
    pub fn source_caller(&self, span: Span) -> Option<(&str, u32)> {
        let (file, line) = self.line_entry(span)?.caller?;
        self.line_of(file, line)
    }

    /// The `.loc` that governs a place.
    fn line_entry(&self, span: Span) -> Option<&LineEntry> {
        if span == Span::NONE {
            return None;
        }
        let key = |l: &LineEntry| (l.at.file, l.at.start);
        let behind = self.lines.partition_point(|l| key(l) <= (span.file, span.start));
        self.lines.get(behind.checked_sub(1)?).filter(|line| line.line != 0 && line.at.file == span.file)
    }

    fn line_of(&self, file: u32, line: u32) -> Option<(&str, u32)> {
        let file = self.line_files.get(usize::try_from(file).ok()?)?;
        if file.is_empty() { None } else { Some((file, line)) }
    }
}

/// How the shared memory of a cta is dealt out, in every entry of a module.
///
/// # PTX ISA
/// Special Registers: %reserved_smem_offset_begin, %total_smem_size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct SharedRules {
    /// Bytes at its start that are reserved for system software; the variables of the program lie after them.
    pub reserved: u32,
    /// The unit of its size as special registers tell it, in bytes.
    pub unit: u32,
}

impl SharedRules {
    // Choice: the region for system software is there only in modules that ask where it is, so that shared variables start at 0 elsewhere.
    /// Bytes of the region for system software, where there is one.
    pub const REGION: u32 = 1024;
    // Choice: the manual does not say where the two offsets point. The first is what NVIDIA's assembler writes for `sm_100`. From the second on, the
    // headers of cooperative groups use 288 bytes.
    /// Offsets in the region.
    pub const OFFSETS: [u32; 2] = [64, 512];

    /// `%reserved_smem_offset_0` and `_1`.
    pub fn offset(self, i: u8) -> u32 {
        Self::OFFSETS.get(usize::from(i)).copied().unwrap_or(0).min(self.reserved)
    }
}

impl Default for SharedRules {
    /// Nothing is reserved.
    fn default() -> Self {
        SharedRules { reserved: 0, unit: 128 }
    }
}

/// From a `.loc`: PTX text from `at` on (up to the next entry) comes from this CUDA source line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineEntry {
    /// Place of the `.loc` directive.
    pub at: Span,
    /// Index in `line_files`.
    pub file: u32,
    /// Line from 1; 0 ends the range (a new function).
    pub line: u32,
    /// Where the outermost of the functions that it was inlined through is called, if that is known: file and line.
    pub caller: Option<(u32, u32)>,
}

/// Special registers that are constants of a launch shape.
pub fn shape_constant(s: Sreg, shape: &LaunchShape) -> Option<u64> {
    let n = shape.threads();
    Some(match s {
        Sreg::Ntid(i) if i < 3 => u64::from(shape.ntid[i as usize]),
        Sreg::Tid(i) if i < 3 && shape.ntid[i as usize] == 1 => 0,
        Sreg::Tid(3) | Sreg::Ntid(3) | Sreg::Ctaid(3) | Sreg::Nctaid(3) => 0,
        Sreg::Nwarpid => u64::from(n.div_ceil(32)),
        _ => return None,
    })
}

/// The least and the largest value that a special register has in launches of a shape; `None` where nothing is known.
///
/// A grid has at most 2^31 - 1 blocks in x, 65,535 in y and in z.
pub fn shape_range(s: Sreg, shape: &LaunchShape) -> Option<(u64, u64)> {
    let blocks = |i: u8| {
        let most = if i == 0 { (1 << 31) - 1 } else { 65_535 };
        let small = ((1_u64 << 31) - 1) / u64::from(shape.ntid[usize::from(i)].max(1));
        if shape.small_grid { small.clamp(1, most) } else { most }
    };
    Some(match s {
        Sreg::Tid(i @ 0..3) => (0, u64::from(shape.ntid[usize::from(i)].max(1)) - 1),
        Sreg::Ctaid(i @ 0..3) => (0, blocks(i) - 1),
        Sreg::Nctaid(i @ 0..3) => (1, blocks(i)),
        Sreg::Laneid => (0, 31),
        Sreg::Warpid => (0, u64::from(shape.n_warps().max(1)) - 1),
        _ => return None,
    })
}
