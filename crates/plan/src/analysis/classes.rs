//! Which registers are uniform or affine, which branches diverge, and which blocks lanes may execute in part.
//!
//! Invariants: the class of a register covers every value it can hold at every use; classes only get coarser during the fixpoint; a
//! register that several groups of lanes may hold with different values at the same time is `Varying`.

use handloom_diag::hash::FastMap;
use handloom_ir::simt::*;
use handloom_ir::types::{StateSpace, Varies};
use smallvec::SmallVec;

use super::cfg::{Cfg, Set};
use super::live::Live;
use super::members::{Members, members};
use super::shape::{self, Arg, May, Shape};
use crate::access::AccessClass;

/// What is known of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Not reached yet.
    Unknown,
    /// Lanes relate by constants.
    Affine(Shape),
    /// Nothing: one value for each lane.
    Varying,
}

impl Class {
    /// The shape, if there is one.
    pub fn shape(&self) -> Option<Shape> {
        match self {
            Class::Affine(s) => Some(*s),
            // Never written: reads as zero.
            Class::Unknown => Some(Shape::constant(0)),
            Class::Varying => None,
        }
    }

    /// Whether all lanes hold the same.
    pub fn is_uniform(&self) -> bool {
        self.shape().is_some_and(|s| s.is_uniform())
    }
}

/// Facts about a function for one launch shape.
#[derive(Debug)]
pub struct Facts {
    /// Control flow.
    pub cfg: Cfg,
    /// The registers that live at the ends of blocks.
    pub live: Live,
    /// Class of each register.
    pub class: Vec<Class>,
    /// Blocks whose end sends lanes different ways.
    pub diverges: Vec<bool>,
    /// Blocks that part of the live lanes may execute: they need a masked copy.
    pub masked: Set,
    /// Of those, the ones whose warp-level op may let lanes go on while others wait, even if all lanes came together.
    pub parts: Set,
    /// For each block the number of instructions before the first one with side effects.
    pub n_before_effects: Vec<usize>,
    /// For each block the number of instructions before the first one that a masked copy cannot defer.
    pub n_deferrable: Vec<usize>,
    /// What the shapes of values may ask of code.
    pub may: May,
    /// Registers that are tested against wrapping before any code of a CTA runs, where they must not: what an op makes of them alone may rest on that.
    pub tested: Set,
    /// The order of blocks does not bring lanes together where their paths meet (irreducible loops).
    pub is_irreducible: bool,
    /// The launch shape.
    pub shape: LaunchShape,
    /// Bytes between the frames of neighbouring lanes.
    pub local_stride: i64,
}

/// Computes the facts.
pub fn analyse(f: &Function, shape: &LaunchShape, local_stride: u32, speculate: bool) -> Facts {
    let cfg = Cfg::new(f);
    let live = Live::new(f, &cfg);
    let tested = Set::new(f.regs.len());
    analyse_with(f, (cfg, live), shape, local_stride, May { test: speculate, flip: false }, tested, false)
}

/// Computes the facts of a function whose control flow and liveness are known. `in_parts`: lanes that come to any block together are taken for a part of
/// the warp too.
pub fn analyse_with(
    f: &Function,
    (cfg, live): (Cfg, Live),
    shape: &LaunchShape,
    local_stride: u32,
    may: May,
    tested: Set,
    in_parts: bool,
) -> Facts {
    let n = f.blocks.len();
    let n_before_effects =
        f.blocks.iter().map(|b| b.insts.iter().position(has_effect).unwrap_or(b.insts.len())).collect();
    let n_deferrable =
        f.blocks.iter().map(|b| b.insts.iter().position(|i| !defers(i)).unwrap_or(b.insts.len())).collect();
    let mut facts = Facts {
        cfg,
        live,
        class: vec![Class::Unknown; f.regs.len()],
        diverges: vec![false; n],
        masked: Set::new(n),
        parts: Set::new(n),
        n_before_effects,
        n_deferrable,
        may,
        tested,
        is_irreducible: false,
        shape: *shape,
        local_stride: i64::from(local_stride),
    };
    let defs = Defs::new(f, &facts.cfg);
    let partial = !shape.threads().is_multiple_of(32);
    let has_call = f.blocks.iter().any(|b| matches!(b.term, Term::Call { .. }));
    facts.is_irreducible = facts.cfg.is_odd();
    if partial || has_call || !f.is_entry || facts.is_irreducible || in_parts {
        facts.masked = Set::full(n);
    }
    if in_parts {
        facts.parts = Set::full(n);
    }
    loop {
        let changed = facts.propagate(f, &defs);
        let diverged = facts.divergence(f, &defs);
        // Registers that wait for each other only: each reads another before it is written.
        let circular = !changed && !diverged && facts.settle_circles(&defs);
        if !changed && !diverged && !circular {
            break;
        }
    }
    facts
}

/// Whether lanes may wait in a block for others.
pub(crate) fn may_wait(block: &Block) -> bool {
    block.term.suspends() || block.insts.last().is_some_and(|i| i.op.is_warp_sync())
}

/// Whether a masked copy can do an instruction before or after others, so that a block may start over behind it.
fn defers(inst: &Inst) -> bool {
    match inst.op {
        Op::Load { .. } => AccessClass::of(inst).is_some_and(|a| a.is_read_only()),
        _ => !has_effect(inst),
    }
}

/// Whether an instruction does more than compute or read.
fn has_effect(inst: &Inst) -> bool {
    match inst.op {
        Op::Pure(_)
        | Op::Sreg(_)
        | Op::SymAddr(_)
        | Op::SharedAddr(_)
        | Op::ParamAddr { .. }
        | Op::SlotAddr(_)
        | Op::ArgAddr { .. }
        | Op::Cvta { .. }
        | Op::IsSpace(_)
        | Op::Activemask
        | Op::Mark => false,
        Op::Load { access, .. } => access.order.is_strong(),
        Op::Count(_)
        | Op::Store { .. }
        | Op::Atom { .. }
        | Op::Red { .. }
        | Op::Fence { .. }
        | Op::Shfl(_)
        | Op::Vote(_)
        | Op::Match { .. }
        | Op::Redux { .. }
        | Op::Matrix(_)
        | Op::Elect
        | Op::BarWarp
        | Op::Nanosleep
        | Op::Transfer(_)
        | Op::Stack(_)
        | Op::Image(_)
        | Op::Tensor(_)
        | Op::Builtin(_) => true,
    }
}

/// Where registers are written.
struct Defs {
    /// Blocks of the definitions of each register.
    blocks: Vec<SmallVec<[usize; 1]>>,
    /// Registers with one definition that dominates every use.
    single: Vec<bool>,
    /// The others that each block writes.
    several: Vec<Vec<usize>>,
    /// Whether lanes leave the warp-level op of a block together.
    members: Vec<Members>,
}

impl Defs {
    fn new(f: &Function, cfg: &Cfg) -> Defs {
        let mut blocks: Vec<SmallVec<[usize; 1]>> = vec![SmallVec::new(); f.regs.len()];
        let mut position = vec![0usize; f.regs.len()];
        for (b, block) in f.blocks.iter().enumerate() {
            for (i, inst) in block.insts.iter().enumerate() {
                for d in &inst.dst {
                    blocks[d.idx()].push(b);
                    position[d.idx()] = i;
                }
            }
            if let Some(d) = block.term.result() {
                blocks[d.idx()].push(b);
                position[d.idx()] = block.insts.len();
            }
        }
        let mut single: Vec<bool> = blocks.iter().map(|d| d.len() == 1).collect();
        for (b, block) in f.blocks.iter().enumerate() {
            let mut used = |v: &Val, i: usize| {
                if let Val::Reg(r) = v
                    && single[r.idx()]
                {
                    let d = blocks[r.idx()][0];
                    let before = if d == b { position[r.idx()] < i } else { cfg.dominates(d, b) };
                    single[r.idx()] = before;
                }
            };
            for (i, inst) in block.insts.iter().enumerate() {
                inst.src.iter().for_each(|v| used(v, i));
                if inst.guarded {
                    inst.dst.iter().for_each(|d| used(&Val::Reg(*d), i));
                }
            }
            block.term.sources().iter().for_each(|v| used(v, usize::MAX));
        }
        let members = members(f, &single);
        let mut several: Vec<Vec<usize>> = vec![Vec::new(); f.blocks.len()];
        for (r, in_blocks) in blocks.iter().enumerate().filter(|(r, _)| !single[*r]) {
            in_blocks.iter().for_each(|b| several[*b].push(r));
        }
        Defs { blocks, single, several, members }
    }
}

/// A block that lanes may come to after they parted.
struct OfSide {
    block: usize,
    /// The block that all of its paths go through: where the lanes parted to, or one where some met.
    label: usize,
    /// The latter: all are there who were at lower blocks.
    met: Option<usize>,
}

/// So often, at most, each block of a function is looked at as one that lanes may come to after they parted at a branch, in a round; and so many more. In
/// a function where branches lead from anywhere to anywhere each leads to all blocks, and time would grow with the square of the text.
const MOST_TIMES_FOLLOWED: usize = 100;

/// See [`MOST_TIMES_FOLLOWED`].
const LEAST_FOLLOWED: usize = 100_000;

/// What lanes may execute between a branch and the block where they meet again.
struct Region {
    from: usize,
    to: Option<usize>,
    blocks: Set,
}

impl Facts {
    /// The class of a source.
    pub fn arg(&self, v: Val) -> Arg {
        match v {
            Val::Imm(..) => Arg::of(v).unwrap_or(Arg { shape: None, value: None }),
            Val::Reg(r) => Arg { shape: self.class[r.idx()].shape(), value: None },
        }
    }

    /// Nothing is known of registers that no sweep reached; tells whether there were any.
    fn settle_circles(&mut self, defs: &Defs) -> bool {
        let mut any = false;
        for (r, class) in self.class.iter_mut().enumerate() {
            if *class == Class::Unknown && !defs.blocks[r].is_empty() {
                *class = Class::Varying;
                any = true;
            }
        }
        any
    }

    /// Sweeps of class propagation until nothing changes; tells whether anything did.
    fn propagate(&mut self, f: &Function, defs: &Defs) -> bool {
        let mut any = false;
        let n_insts: usize = f.blocks.iter().map(|b| b.insts.len()).sum();
        // By register, when its class changed; each instruction of each sweep has a time of its own.
        let mut changed_at = vec![0; f.regs.len()];
        let mut now = 0;
        for sweep in 0.. {
            let mut changed = false;
            for (b, block) in f.blocks.iter().enumerate() {
                for (i, inst) in block.insts.iter().enumerate() {
                    now += 1;
                    // What it reads is as it was when it was looked at before.
                    let is_new = |v: &Val| matches!(v, Val::Reg(r) if changed_at[r.idx()] + n_insts >= now);
                    if sweep > 0 && !inst.src.iter().any(is_new) {
                        continue;
                    }
                    // Nothing is coarser.
                    if inst.dst.iter().all(|d| self.class[d.idx()] == Class::Varying) {
                        continue;
                    }
                    // A source that is still to be reached says nothing yet.
                    let waits = |v: &Val| matches!(v, Val::Reg(r) if self.class[r.idx()] == Class::Unknown && !defs.blocks[r.idx()].is_empty());
                    if inst.src.iter().any(waits) {
                        continue;
                    }
                    let args: SmallVec<[Arg; 3]> = inst.operands().iter().map(|v| self.arg(*v)).collect();
                    for (k, d) in inst.dst.iter().enumerate() {
                        let mut new = match self.result(inst, k, &args, b, i) {
                            Some(s) => Class::Affine(s),
                            None => Class::Varying,
                        };
                        // Lanes whose guard is 0 keep an old value, unless all lanes do.
                        if inst.guarded
                            && !inst.guard().is_some_and(|g| self.arg(g).shape.is_some_and(|s| s.is_uniform()))
                        {
                            new = Class::Varying;
                        }
                        if self.join(d.idx(), new, defs) {
                            changed = true;
                            changed_at[d.idx()] = now;
                        }
                    }
                }
                if let Some(d) = block.term.result() {
                    // The scheduler writes it lane by lane.
                    if self.join(d.idx(), Class::Varying, defs) {
                        changed = true;
                        changed_at[d.idx()] = now;
                    }
                }
            }
            any |= changed;
            if !changed {
                break;
            }
        }
        any
    }

    fn join(&mut self, r: usize, new: Class, defs: &Defs) -> bool {
        let old = self.class[r];
        let joined = match (old, new) {
            (Class::Varying, _) | (_, Class::Varying) => Class::Varying,
            (Class::Unknown, Class::Affine(s)) if defs.single[r] => Class::Affine(s),
            (Class::Unknown, Class::Affine(s)) => Class::Affine(s.of_any_value()),
            (Class::Affine(a), Class::Affine(s)) if defs.single[r] && a.same(&s) => {
                // A sweep only coarsens what it saw before.
                Class::Affine(a.or(&s))
            }
            (Class::Affine(a), Class::Affine(s)) if a.same(&s) => Class::Affine(a.or(&s).of_any_value()),
            (Class::Affine(_), Class::Affine(_)) => Class::Varying,
            (c, Class::Unknown) => c,
        };
        self.class[r] = joined;
        joined != old
    }

    /// Whether the affine result of instruction `i` of block `b` may rest on a run-time test.
    pub fn may_test(&self, b: usize, i: usize) -> bool {
        self.may.test && i < if self.masked.has(b) { self.n_deferrable[b] } else { self.n_before_effects[b] }
    }

    /// What the shape of the result of instruction `i` of block `b` may ask of code.
    pub fn may_at(&self, b: usize, i: usize) -> May {
        May { test: self.may_test(b, i), ..self.may }
    }

    /// Whether what an instruction reads is tested before any code of a CTA runs.
    pub fn is_tested(&self, inst: &Inst) -> bool {
        let is_tested = |v: &Val| match v {
            Val::Reg(r) => self.tested.has(r.idx()),
            Val::Imm(..) => true,
        };
        !inst.guarded && inst.src.iter().all(is_tested)
    }

    fn result(&self, inst: &Inst, k: usize, args: &[Arg], b: usize, i: usize) -> Option<Shape> {
        // What a group of lanes reads at one time another group may read differently later.
        let together = !self.masked.has(b);
        match inst.op {
            Op::Pure(p) if k == 0 => {
                let may = self.may_at(b, i);
                shape::pure(p, args, May { test: may.test || self.is_tested(inst), ..may }).map(|r| r.shape)
            }
            Op::Pure(_) => args.iter().all(|a| a.shape.is_some_and(|s| s.is_uniform())).then_some(Shape::UNIFORM),
            Op::Sreg(s) => {
                let timed = s.varies() == Varies::InTime;
                if timed && !together { None } else { shape::sreg(s, &self.shape) }
            }
            Op::SymAddr(_) | Op::SharedAddr(_) | Op::ParamAddr { .. } => Some(Shape::UNIFORM),
            Op::SlotAddr(_) | Op::ArgAddr { .. } => Some(Shape::linear(self.local_stride)),
            // Blocks of a cluster do not lie at even distances.
            Op::Cvta { space: StateSpace::SharedCluster, .. } | Op::Stack(_) | Op::Image(_) | Op::Tensor(_) => None,
            Op::Cvta { .. } => args[0].shape.map(|s| s.of_any_base()),
            Op::Load { .. } => {
                let access = AccessClass::of(inst)?;
                let s = args[0].shape.filter(|s| s.stride == 0)?;
                // Where part of the lanes come by, others may have no right to the address: only one that all lanes share is read by scalars.
                let alike = together || (access.is_read_only() && s.is_uniform() && !access.is_guarded);
                // The old value of a guarded load is merged by `propagate`.
                if !(alike && access.reads_alike()) {
                    return None;
                }
                let distinct = s.distinct();
                (distinct.groups() <= 4).then_some(distinct)
            }
            // Lanes with other member masks are another group, with a result of its own.
            Op::Vote(_) | Op::Redux { .. } => {
                let one_group = args.last().is_some_and(|mask| mask.shape.is_some_and(|s| s.is_uniform()));
                (together && one_group).then_some(Shape::UNIFORM)
            }
            Op::Activemask => together.then_some(Shape::UNIFORM),
            Op::Builtin(_)
            | Op::Transfer(_)
            | Op::IsSpace(_)
            | Op::Store { .. }
            | Op::Atom { .. }
            | Op::Red { .. }
            | Op::Fence { .. }
            | Op::Shfl(_)
            | Op::Match { .. }
            | Op::Matrix(_)
            | Op::Elect
            | Op::BarWarp
            | Op::Nanosleep
            | Op::Mark
            | Op::Count(_) => None,
        }
    }

    /// Finds branches that diverge and what follows from them; tells whether anything changed.
    fn divergence(&mut self, f: &Function, defs: &Defs) -> bool {
        // Of those that meet anywhere it is known without a look at where.
        let mut changed = self.is_irreducible && self.scatter_registers(f, defs);
        let anywhere = self.is_irreducible && self.masked.len() == f.blocks.len();
        // Registers of which it is still to be found that lanes that parted differ in them.
        let mut open = None;
        let mut region = None;
        let mut labels = vec![None; f.blocks.len()];
        let mut n_left = LEAST_FOLLOWED + MOST_TIMES_FOLLOWED * f.blocks.len();
        for b in 0..f.blocks.len() {
            if self.diverges[b] {
                continue;
            }
            let uniform = f.blocks[b].term.sources().iter().all(|v| self.arg(*v).shape.is_some_and(|s| s.is_uniform()));
            if uniform || !matches!(f.blocks[b].term, Term::Branch { .. } | Term::Switch { .. }) {
                continue;
            }
            self.diverges[b] = true;
            changed = true;
            // Once: what it does depends on the graph alone.
            let open = open.get_or_insert_with(|| self.may_differ(defs));
            if !anywhere {
                self.mask_region(b, &mut region);
            }
            n_left = n_left.saturating_sub(self.differ(b, defs, open, region.as_ref(), &mut labels));
            if n_left == 0 {
                // Whatever may differ does, as far as anybody knows.
                open.iter().for_each(|r| self.class[r] = Class::Varying);
                *open = Set::new(self.class.len());
            }
        }
        // Lanes that part at a block only part of them executes stay apart while some wait: what is written there may differ.
        for b in (0..f.blocks.len()).filter(|b| self.may_part(*b, defs)).collect::<Vec<_>>() {
            changed |= self.parts.add(b);
            self.masked.add(b);
        }
        changed | (self.unstable(f) && self.scatter_registers(f, defs))
    }

    /// In an unstable function: what follows the blocks where lanes wait may be executed in part, and what is written there with several definitions
    /// varies. Tells whether anything changed.
    fn scatter_registers(&mut self, f: &Function, defs: &Defs) -> bool {
        let mut changed = self.scatter(f);
        for (r, blocks) in defs.blocks.iter().enumerate() {
            if !defs.single[r] && blocks.iter().any(|b| self.masked.has(*b)) && self.class[r] != Class::Varying {
                self.class[r] = Class::Varying;
                changed = true;
            }
        }
        changed
    }

    /// Whether lanes that come to the end of a block together may have to wait for different ones there.
    fn may_part(&self, b: usize, defs: &Defs) -> bool {
        match defs.members[b] {
            Members::Together => false,
            Members::TogetherIf(found) => self.masked.has(found),
            Members::Open(mask) => !self.class[mask.idx()].is_uniform(),
        }
    }

    /// Lanes that wait in a block that only part of them executes let others go on: all that follows may be executed in part.
    fn scatter(&mut self, f: &Function) -> bool {
        let waits = |b: &usize| self.is_irreducible || may_wait(&f.blocks[*b]);
        let mut work: Vec<usize> = self.masked.iter().filter(waits).collect();
        let mut reached = Set::new(f.blocks.len());
        while let Some(b) = work.pop() {
            work.extend(self.cfg.succs[b].iter().filter(|s| reached.add(**s)));
        }
        self.masked.union(&reached)
    }

    /// Whether lanes may wait inside a block that only part of them executes, or meet elsewhere than where branches say.
    fn unstable(&self, f: &Function) -> bool {
        self.is_irreducible || self.masked.iter().any(|b| may_wait(&f.blocks[b]))
    }

    /// The region of a diverging branch at `b` is executed in part. `region`: that of a branch before, which becomes that of `b`.
    fn mask_region(&mut self, b: usize, region: &mut Option<Region>) {
        let to = self.cfg.ipdom[b];
        // Branches in a loop go to the same blocks if they come to each other without the block where lanes meet.
        let is_same = |r: &Region| {
            let around = self.cfg.loop_of[b].and_then(|h| self.cfg.body(h));
            r.to == to && around.is_some_and(|body| body.has(r.from) && !to.is_some_and(|to| body.has(to)))
        };
        if region.as_ref().is_some_and(is_same) {
            return;
        }
        let found = region.insert(Region { from: b, to, blocks: self.cfg.region(b) });
        self.masked.union(&found.blocks);
        // The region must end before lanes look at the block where they meet.
        self.is_irreducible |= to.is_some_and(|to| found.blocks.last() >= Some(to));
    }

    /// Registers that differ by path or by iteration after a diverging branch at `b` vary. Only those of `open` may do so; the ones that do are taken out of it.
    /// `region`: that of the branch, if it is not known already that what is written in several places varies. `labels`: room for [`Facts::joins`]. Returns how many blocks
    /// it looked at.
    fn differ(
        &mut self,
        b: usize,
        defs: &Defs,
        open: &mut Set,
        region: Option<&Region>,
        labels: &mut [Option<usize>],
    ) -> usize {
        if open.is_empty() || region.is_none() && self.cfg.loop_of[b].is_none() {
            return 0;
        }
        let is_in_region = |d: usize| region.is_some_and(|r| r.blocks.has(d));
        let (joins, sides) = Self::joins(&self.cfg, b, labels);
        for (join, out_of) in joins {
            for r in self.live.entry[join].both(open) {
                // What the block itself writes is the same on all paths, unless a path leads back to it.
                let by_path = || !defs.single[r] && defs.blocks[r].iter().any(|d| is_in_region(*d));
                let by_time = || out_of.is_some_and(|body| defs.blocks[r].iter().any(|d| body.has(*d)));
                if by_path() || by_time() {
                    self.class[r] = Class::Varying;
                    open.remove(r);
                }
            }
        }
        if region.is_some() {
            self.differ_beside(defs, open, &sides);
        }
        sides.len()
    }

    /// Registers that lanes of one side write while those of another one wait for their turn with them vary: there is one place for all lanes. The lanes at the lowest block go on
    /// first.
    fn differ_beside(&mut self, defs: &Defs, open: &mut Set, sides: &[OfSide]) {
        // Of registers that were written: by label, where last.
        let mut written: FastMap<usize, Vec<(usize, usize)>> = FastMap::default();
        for &OfSide { block: b, label, met } in sides {
            if !written.is_empty() {
                let waits = &self.live.entry[b];
                let by_others = |(other, at): &(usize, usize)| *other != label && met.is_none_or(|met| *at > met);
                let differ: Vec<usize> = (written.iter())
                    .filter(|(r, by)| waits.has(**r) && by.iter().any(by_others))
                    .map(|(r, _)| *r)
                    .collect();
                for r in differ {
                    self.class[r] = Class::Varying;
                    open.remove(r);
                    written.remove(&r);
                }
            }
            for r in defs.several[b].iter().filter(|r| open.has(**r)) {
                let by = written.entry(*r).or_default();
                match by.iter_mut().find(|(other, _)| *other == label) {
                    Some(last) => last.1 = b,
                    None => by.push((label, b)),
                }
            }
        }
    }

    /// Registers that lanes may differ in once they part: those not known to vary that are written in several places or in a loop.
    fn may_differ(&self, defs: &Defs) -> Set {
        let in_loop = |r: &usize| defs.blocks[*r].iter().any(|d| self.cfg.loop_of[*d].is_some());
        let may_differ = |r: &usize| self.class[*r] != Class::Varying && (!defs.single[*r] || in_loop(r));
        let mut open = Set::new(self.class.len());
        (0..self.class.len()).filter(may_differ).for_each(|r| {
            open.add(r);
        });
        open
    }

    /// Blocks where lanes that parted at `b` meet on different paths, with the loop they left at different times, if so; and all that they may come to before, in ascending
    /// order. `label`: room for a label of each block, without any.
    fn joins<'c>(cfg: &'c Cfg, b: usize, label: &mut [Option<usize>]) -> (Vec<(usize, Option<&'c Set>)>, Vec<OfSide>) {
        let (mut found, mut is_found) = (Vec::new(), Set::new(label.len()));
        let stop = cfg.ipdom[b];
        let mut work: Vec<usize> = Vec::new();
        let mut labelled = Vec::new();
        for &s in &cfg.succs[b] {
            match label[s] {
                None => {
                    label[s] = Some(s);
                    labelled.push(s);
                }
                Some(x) if x != s && is_found.add(s) => found.push(s),
                Some(_) => {}
            }
            work.push(s);
        }
        while let Some(x) = work.pop() {
            if Some(x) == stop {
                continue;
            }
            let l = label[x];
            for &t in &cfg.succs[x] {
                if label[t].is_none() {
                    label[t] = l;
                    labelled.push(t);
                    work.push(t);
                } else if label[t] != l && label[t] != Some(t) {
                    label[t] = Some(t);
                    if is_found.add(t) {
                        found.push(t);
                    }
                    work.push(t);
                } else if label[t] != l && is_found.add(t) {
                    // Its own label: a successor of `b` reached from another path too.
                    found.push(t);
                    work.push(t);
                }
            }
        }
        labelled.sort_unstable();
        let of_side = |t: &usize| {
            let of = label[*t]?;
            Some(OfSide { block: *t, label: of, met: Some(of).filter(|of| is_found.has(*of)) })
        };
        let sides = labelled.iter().filter_map(of_side).collect();
        labelled.into_iter().for_each(|t| label[t] = None);
        // The outermost loop around `b` that does not hold the join.
        let left = |t: usize| cfg.around(b).take_while(|body| !body.has(t)).last();
        (found.into_iter().map(|t| (t, left(t))).collect(), sides)
    }
}
