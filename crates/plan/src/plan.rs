//! A function with all that was decided about it.

use handloom_diag::Span;
use handloom_ir::simt::{Block, BlockId, Function, Op, Reg, Sites, Term};

use crate::abi::{BarrierSite, Loc, SyncSite, Tables, YieldSite};
use crate::analysis::cfg::{Cfg, Set};
use crate::analysis::classes::{Facts, analyse_with};
use crate::analysis::live::Live;
use crate::copies::{chained, pendable};
use crate::layout::Layout;
use crate::nans::loose;
use crate::options::Options;
use crate::prepare::{addresses_first, single_latches, zero_first};

/// What an emitter reads of a function. It changes nothing in here.
#[derive(Debug)]
pub struct Plan {
    /// The function in the form that is emitted.
    pub func: Function,
    /// What is known of it.
    pub facts: Facts,
    /// What the code is made for.
    pub options: Options,
    /// Where values are kept.
    pub layout: Layout,
    /// Number of definitions of each register.
    pub def_count: Vec<u32>,
    /// The op of registers with one definition.
    pub origins: Vec<Option<Op>>,
    /// Blocks that lanes may be pending at: they get a prologue.
    pub pendable: Set,
    /// Blocks whose full copy follows that of the only block that goes to them.
    pub chained: Set,
    /// Registers whose bits may hold a NaN that is not canonical.
    pub may_hold_odd_nan: Vec<bool>,
    /// Whether stores must tell that memory changed.
    pub tells_dirty: bool,
    /// The numbers of barriers, yields and warp-level ops.
    pub sites: Sites,
}

impl Plan {
    /// Decides about a function.
    pub fn new(func: &Function, options: &Options) -> Plan {
        Plan::with_tested(func, options, Set::new(func.regs.len()))
    }

    /// Decides about a function some of whose registers are tested before any code of a CTA runs ([`Facts::tested`]).
    pub fn with_tested(func: &Function, options: &Options, tested: Set) -> Plan {
        let mut f = single_latches(func);
        addresses_first(&mut f);
        let mut cfg = Cfg::new(&f);
        let mut live = Live::new(&f, &cfg);
        let mut def_count = n_definitions(&f);
        let early: Vec<Reg> = live.entry[0].iter().filter(|r| def_count[*r] > 0).map(|r| Reg(r as u32)).collect();
        if !early.is_empty() {
            zero_first(&mut f, &early);
            cfg = Cfg::new(&f);
            live = Live::new(&f, &cfg);
            def_count = n_definitions(&f);
        }
        let facts = analyse_with(&f, cfg, live, &options.shape, options.local_stride, options.speculate, tested);
        let pendable = pendable(&f, &facts, options.masked);
        Plan {
            layout: Layout::new(&f, &facts, &def_count),
            origins: origins(&f, &def_count),
            chained: chained(&f, &facts, &pendable),
            may_hold_odd_nan: loose(&f, &facts),
            tells_dirty: f.blocks.iter().any(|b| matches!(b.term, Term::Yield { .. })),
            sites: Sites::of(&f),
            def_count,
            pendable,
            facts,
            func: f,
            options: *options,
        }
    }

    /// The tables of the code: what has a number for all code of the function is in them, without the operands of warp-level ops. Other sites are
    /// numbered while code is emitted.
    pub fn tables(&self) -> Tables {
        let f = &self.func;
        let homes = self.layout.locs(f, &self.facts);
        let known = |span: &Span| *span != Span::NONE;
        let first_span = |b: &Block| {
            let mut spans = b.insts.iter().map(|i| i.span).chain([b.term_span]);
            spans.find(known).unwrap_or(f.span)
        };
        Tables {
            name: f.name.clone(),
            ctx_bytes: self.layout.ctx_bytes,
            pend_offset: self.layout.pend_offset,
            n_blocks: f.blocks.len() as u32,
            block_spans: f.blocks.iter().map(first_span).collect(),
            frame_bytes: u64::from(self.layout.frame_bytes).max(self.options.frame_bytes) as u32,
            barriers: self.sites.barriers.iter().map(|b| self.barrier_site(*b, &homes)).collect(),
            yields: self.sites.yields.iter().map(|b| self.yield_site(*b)).collect(),
            syncs: self.sites.warp_ops.iter().map(|b| self.sync_site(*b)).collect(),
            homes,
            ..Tables::default()
        }
    }

    fn barrier_site(&self, block: BlockId, homes: &[Option<Loc>]) -> BarrierSite {
        let Block { term, term_span, .. } = &self.func.blocks[block.idx()];
        let Term::Barrier { kind, count, dst, next, .. } = term else { unreachable!("bug: {term:?} is no barrier") };
        BarrierSite {
            kind: *kind,
            is_counted: count.is_some(),
            result: dst.and_then(|d| homes[d.idx()]),
            next: next.0,
            span: *term_span,
        }
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

/// Number of definitions of each register.
fn n_definitions(f: &Function) -> Vec<u32> {
    let mut n = vec![0; f.regs.len()];
    for b in &f.blocks {
        b.insts.iter().flat_map(|i| &i.dst).chain(b.term.result().iter()).for_each(|d| n[d.idx()] += 1);
    }
    n
}

/// The op of each register with one definition.
fn origins(f: &Function, def_count: &[u32]) -> Vec<Option<Op>> {
    let mut out = vec![None; f.regs.len()];
    for inst in f.blocks.iter().flat_map(|b| &b.insts) {
        for d in &inst.dst {
            if def_count[d.idx()] == 1 {
                out[d.idx()] = Some(inst.op);
            }
        }
    }
    out
}
