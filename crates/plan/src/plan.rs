//! A function with what is known and decided about it for every generator of code.

use std::borrow::Cow;

use handloom_diag::Span;
use handloom_ir::simt::{
    BARRIERS, BarKind, Block, BlockId, Counting, FrameLayout, Function, Inst, Op, Reg, Sites, Term, Val,
};
use handloom_ir::types::StateSpace;

use crate::abi::{BarrierSite, Origin, SyncSite, Tables, Waited, YieldSite};
use crate::access::{AccessClass, Kind};
use crate::analysis::cfg::{Cfg, Set};
use crate::analysis::classes::{Facts, analyse_with};
use crate::analysis::live::Live;
use crate::analysis::n_definitions;
use crate::analysis::shape::May;
use crate::analysis::variables::{Trace, Variable, traces_of_addresses};
use crate::nans::loose;
use crate::options::Options;
use crate::prepare::{addresses_first, single_latches, warps_apart, zero_first};
use crate::subnormals::without;

/// Statements of a function, ends of blocks included, above which what its code costs to make counts as much as how fast it is, where a generator must choose.
const LONG: usize = 150;

/// What an emitter reads of a function. It changes nothing in here.
#[derive(Debug)]
pub struct Plan {
    /// The function in the form that is emitted.
    pub func: Function,
    /// What is known of it.
    pub facts: Facts,
    /// What the code is made for.
    pub options: Options,
    /// The frame of a thread in local memory.
    pub frame: Frame,
    /// Number of definitions of each register.
    pub def_count: Vec<u32>,
    /// Where registers with one definition get it: block and instruction.
    pub origins: Vec<Option<(u32, u32)>>,
    /// Registers whose bits may hold a NaN that is not canonical.
    pub may_hold_odd_nan: Vec<bool>,
    /// Registers that never hold a subnormal number of `.f32`.
    pub without_subnormals: Vec<bool>,
    /// Whether stores must tell that memory changed.
    pub tells_dirty: bool,
    /// The numbers of barriers, yields and warp-level ops.
    pub sites: Sites,
    /// By block and instruction: the variable that an address is made from, where an audit is told.
    pub traces: Vec<Vec<Trace>>,
    /// Code is short rather than fast: every block is executed in part, and routines do all accesses but a few.
    pub is_short: bool,
    /// The function has many statements.
    pub is_long: bool,
}

/// The frame of a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Offset of each slot.
    pub slot_offsets: Vec<u32>,
    /// Bytes of all of them.
    pub bytes: u32,
}

impl Frame {
    fn of(f: &Function) -> Frame {
        let frame = FrameLayout::new(f);
        Frame { slot_offsets: frame.offsets.iter().map(|o| *o as u32).collect(), bytes: frame.size as u32 }
    }
}

impl Plan {
    /// Decides about a function.
    pub fn new(func: &Function, options: &Options) -> Plan {
        Plan::with_tested(Cow::Borrowed(func), options, Set::new(func.regs.len()))
    }

    /// Decides about a function that is long, so that it has little code: all of its blocks are executed in part, in every tier.
    pub fn short(func: &Function, options: &Options) -> Plan {
        Plan::made(Cow::Borrowed(func), &Options { masked: true, ..*options }, Set::new(func.regs.len()), true)
    }

    /// Decides about a function some of whose registers are tested before any code of a CTA runs ([`Facts::tested`]).
    pub fn with_tested(func: Cow<'_, Function>, options: &Options, tested: Set) -> Plan {
        Plan::made(func, options, tested, false)
    }

    fn made(func: Cow<'_, Function>, options: &Options, tested: Set, is_short: bool) -> Plan {
        // Who is told what happens is told the same by every engine: blocks and accesses stay where they are.
        // Where lanes meet, they are counted together.
        let keeps_blocks = options.audited || options.counted != Counting::Nothing;
        let mut f = func.into_owned();
        if !keeps_blocks {
            single_latches(&mut f);
        }
        if !options.audited {
            addresses_first(&mut f);
        }
        let mut cfg = Cfg::new(&f);
        warps_apart(&mut f, &cfg);
        let mut live = Live::new(&f, &cfg);
        let mut def_count = n_definitions(&f);
        let early: Vec<Reg> = live.entry[0].iter().filter(|r| def_count[*r] > 0).map(|r| Reg(r as u32)).collect();
        if !early.is_empty() {
            zero_first(&mut f, &early);
            cfg = Cfg::new(&f);
            live = Live::new(&f, &cfg);
            def_count = n_definitions(&f);
        }
        let (shape, stride) = (&options.shape, options.local_stride);
        let may = May { test: options.speculate, flip: options.flips };
        let facts = analyse_with(&f, (cfg, live), shape, stride, may, tested, is_short);
        Plan {
            frame: Frame::of(&f),
            origins: origins(&f, &def_count),
            may_hold_odd_nan: loose(&f, &facts),
            without_subnormals: without(&f),
            tells_dirty: f.blocks.iter().any(|b| matches!(b.term, Term::Yield { .. })),
            sites: Sites::of(&f),
            traces: if options.audited { traces_of_addresses(&f) } else { Vec::new() },
            is_long: n_statements(&f) > LONG,
            def_count,
            facts,
            func: f,
            options: *options,
            is_short,
        }
    }

    /// Statements, ends of blocks included, after all that is left out and put in.
    pub fn n_statements(&self) -> usize {
        n_statements(&self.func)
    }

    /// The instruction that makes a register, if one does: nobody reads it before.
    pub fn origin(&self, r: Reg) -> Option<&Inst> {
        let inst = self.origins[r.idx()].map(|(b, i)| &self.func.blocks[b as usize].insts[i as usize]);
        debug_assert!(inst.is_none_or(|i| i.dst.contains(&r)), "{r:?} is not made where its origin says");
        inst
    }

    /// Puts some instructions of a block, by their numbers, behind all others of it, both in their order. Returns the number of the first one of them. Nothing may be kept by numbers of
    /// instructions but what is in here.
    pub fn put_last(&mut self, b: usize, last: &[usize]) -> usize {
        let n = self.func.blocks[b].insts.len();
        let (mut order, mut end): (Vec<usize>, Vec<usize>) = (0..n).partition(|i| !last.contains(i));
        let from = order.len();
        order.append(&mut end);
        let mut insts: Vec<Option<Inst>> =
            std::mem::take(&mut self.func.blocks[b].insts).into_iter().map(Some).collect();
        self.func.blocks[b].insts = order.iter().filter_map(|i| insts[*i].take()).collect();
        if let Some(traces) = self.traces.get_mut(b) {
            *traces = order.iter().map(|i| traces[*i]).collect();
        }
        for (i, inst) in (0..).zip(&self.func.blocks[b].insts) {
            for d in &inst.dst {
                if let Some(at) = &mut self.origins[d.idx()] {
                    *at = (b as u32, i);
                }
            }
        }
        from
    }

    /// The tables of the code: what has a number for all code of the function is in them. Left out is what a generator decides: the context and
    /// the homes in it, results of barriers, operands of barriers and warp-level ops. Other sites are numbered while code is emitted.
    pub fn tables(&self) -> Tables {
        let f = &self.func;
        let known = |span: &Span| *span != Span::NONE;
        let first_span = |b: &Block| {
            let mut spans = b.insts.iter().map(|i| i.span).chain([b.term_span]);
            spans.find(known).unwrap_or(f.span)
        };
        Tables {
            name: f.name.clone(),
            n_blocks: f.blocks.len() as u32,
            block_spans: f.blocks.iter().map(first_span).collect(),
            frame_bytes: u64::from(self.frame.bytes).max(self.options.frame_bytes) as u32,
            barriers: self.sites.barriers.iter().map(|b| self.barrier_site(*b)).collect(),
            yields: self.sites.yields.iter().map(|b| self.yield_site(*b)).collect(),
            syncs: self.sites.warp_ops.iter().map(|b| self.sync_site(*b)).collect(),
            ..Tables::default()
        }
    }

    /// Whether a block ends with a barrier that code passes by itself once all warps are there or have ended, where all lanes of a warp come together.
    pub fn ends_with_plain_barrier(&self, b: usize) -> bool {
        self.is_without_result(b) && self.waits_for_all(b) == Some(Waited { id: 0, threads: None })
    }

    /// Whether a block ends with a barrier that is no reduction.
    pub fn is_without_result(&self, b: usize) -> bool {
        matches!(self.func.blocks[b].term, Term::Barrier { kind: BarKind::Sync, pred: None, .. })
    }

    /// The barrier at the end of a block, if it waits for all threads of the CTA, and says so by constants: where every warp comes to it with all its lanes, they may go on.
    pub fn waits_for_all(&self, b: usize) -> Option<Waited> {
        let Term::Barrier { kind, id: Val::Imm(id, ty), count, .. } = self.func.blocks[b].term else { return None };
        if !matches!(kind, BarKind::Sync | BarKind::RedPopc | BarKind::RedAnd | BarKind::RedOr) {
            return None;
        }
        let stays = self.func.is_entry && !self.options.is_callee && !self.options.tells_fences();
        let threads = match count {
            None => None,
            // Whole warps are counted.
            Some(Val::Imm(n, ty)) if n & ty.mask() == u64::from(32 * self.facts.shape.n_warps()) => Some(n as u32),
            Some(_) => return None,
        };
        let id = (id & ty.mask()) as u32;
        (stays && id < BARRIERS).then_some(Waited { id, threads })
    }

    /// Whether a block ends with an exit of threads that leaves the code: from inside a function, since the runtime takes them out of its callers, and
    /// where an audit is told. Others just have nothing left to do in this context.
    pub fn ends_with_told_exit(&self, b: usize) -> bool {
        let is_told = if self.func.is_entry { self.options.tells_fences() } else { true };
        match self.func.blocks[b].term {
            Term::Exit => is_told,
            Term::Ret => self.func.is_entry && is_told,
            _ => false,
        }
    }

    /// The access of an instruction, if it has one.
    pub fn access(&self, inst: &Inst) -> Option<AccessClass> {
        let Options { audited, in_order, .. } = self.options;
        AccessClass::of(inst).map(|a| AccessClass {
            is_told: audited && !in_order && a.space != StateSpace::ParamEntry,
            is_in_order: in_order && matches!(a.kind, Kind::Atomic(..)),
            ..a
        })
    }

    /// The variable that the address of instruction `i` of block `b` is made from, where an audit is told.
    pub fn variable(&self, (b, i): (usize, usize)) -> Option<Origin> {
        let Some(Trace::Of(variable)) = self.traces.get(b).and_then(|block| block.get(i)).copied() else { return None };
        Some(match variable {
            Variable::Symbol(sym) => Origin::Symbol(sym),
            Variable::Slot(slot) => {
                let i = slot.idx();
                Origin::Frame { offset: self.frame.slot_offsets[i], bytes: self.func.slots[i].size }
            }
        })
    }

    /// Whether the runtime is told that a store changes memory. What is a thread's own is part of its state, which the runtime looks at by itself.
    pub fn tells_store(&self, inst: &Inst) -> bool {
        let changes_own = || AccessClass::of(inst).is_some_and(|a| a.space == StateSpace::Local);
        self.tells_dirty && matches!(inst.op, Op::Store { .. }) && !changes_own()
    }

    fn barrier_site(&self, block: BlockId) -> BarrierSite {
        let Block { term, term_span, .. } = &self.func.blocks[block.idx()];
        let Term::Barrier { kind, next, .. } = term else { unreachable!("bug: {term:?} is no barrier") };
        let waited = self.waits_for_all(block.idx());
        BarrierSite { kind: *kind, waited, result: None, next: next.0, span: *term_span }
    }

    fn yield_site(&self, block: BlockId) -> YieldSite {
        let Block { term, term_span, .. } = &self.func.blocks[block.idx()];
        let Term::Yield { next } = term else { unreachable!("bug: {term:?} is no yield") };
        YieldSite { next: next.0, in_part: self.facts.masked.has(block.idx()), span: *term_span }
    }

    fn sync_site(&self, block: BlockId) -> SyncSite {
        let Block { term, insts, .. } = &self.func.blocks[block.idx()];
        let (Term::Jump(next), Some(inst)) = (term, insts.last()) else {
            unreachable!("bug: a warp-level op before {term:?}")
        };
        SyncSite { op: inst.op, next: next.0, span: inst.span, full: None, masked: None }
    }
}

fn n_statements(f: &Function) -> usize {
    f.blocks.iter().map(|b| b.insts.len() + 1).sum()
}

/// Where each register with one definition gets it.
fn origins(f: &Function, def_count: &[u32]) -> Vec<Option<(u32, u32)>> {
    let mut out = vec![None; f.regs.len()];
    for (b, block) in (0..).zip(&f.blocks) {
        for (i, inst) in (0..).zip(&block.insts) {
            for d in &inst.dst {
                if def_count[d.idx()] == 1 {
                    out[d.idx()] = Some((b, i));
                }
            }
        }
    }
    out
}
