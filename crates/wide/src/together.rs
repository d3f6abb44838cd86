//! Tuples that stay together: what a load of several elements a lane reads, what value ops make of it lane by lane, and what a store of as many elements
//! writes needs no vector with one element of all lanes.
//!
//! # The model
//! A *bundle* is as many registers as a tuple has elements, whose vectors together hold the tuples of the warp as they lie in memory: that of element `c` has chunk
//! `c` of each part (see `tuples`). A load makes a bundle. So does an op that is done alike for each element, of bundles at the element's place and of values
//! that all lanes and elements share: its code for one register then does a chunk, whatever lanes are in it.
//!
//! Registers are a bundle if only such ops and stores read them, all of them in one block, and no lane that waits elsewhere has anything in their vectors.
//! Where the routine does an access, elements are taken apart before, or put together after it.

use std::collections::BTreeMap;

use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Inst, Op, Pure, Reg, Val};
use handloom_ir::types::{Order, Ty};
use handloom_plan::Plan;
use handloom_plan::access::{AccessClass, Kind};
use handloom_plan::analysis::cfg::Set;
use handloom_plan::analysis::classes::Class;

use crate::alloc::{Place, Places, n_parts};
use crate::asked::reg;
use crate::bands::is_banded;
use crate::ops::has_vector_code;
use crate::tuples::is_of_tuples;
use crate::uses::Uses;

/// A source of an op that is done for each element.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Operand {
    /// The element's register of a bundle.
    Bundle(usize),
    /// A register that all lanes share.
    Shared(Reg),
    Constant(u64),
}

/// What is the same for each element of a bundle.
type Alike = (Pure, Vec<Operand>);

struct Bundle {
    regs: Vec<Reg>,
    /// The bundles that it is made of.
    from: Vec<usize>,
    /// By element, the instruction.
    made: Vec<usize>,
}

/// The registers of a function that are in bundles.
pub(crate) fn bundles(plan: &Plan, places: &Places, uses: &Uses) -> Set {
    let f = &plan.func;
    let mut found = Set::new(f.regs.len());
    if plan.options.audited {
        return found;
    }
    for block in &f.blocks {
        if block.insts.iter().any(|i| tuple_of(plan, i).is_some_and(|c| c.kind == Kind::Load)) {
            let mut block =
                Block { plan, places, uses, insts: &block.insts, bundles: Vec::new(), of: FastMap::default() };
            block.find();
            for r in block.bundles_that_hold().into_iter().flat_map(|t| &block.bundles[t].regs) {
                found.add(r.idx());
            }
        }
    }
    found
}

/// An access of a tuple whose lanes are not at one place.
fn tuple_of(plan: &Plan, inst: &Inst) -> Option<AccessClass> {
    let class = AccessClass::of(inst)?;
    let Val::Reg(address) = class.address else { return None };
    let ty = if class.bits == 64 { Ty::B64 } else { Ty::B32 };
    let lies_apart = plan.facts.class[address.idx()].shape().is_none_or(|s| !s.is_uniform() && !is_banded(&s, ty));
    let fits = matches!(class.kind, Kind::Load | Kind::Store)
        && is_of_tuples(&class)
        && class.bits >= 32
        && class.order == Order::Weak
        && class.wants_all()
        && !class.is_single
        && !inst.guarded
        && lies_apart;
    fits.then_some(class)
}

/// The search for bundles of a block.
struct Block<'a> {
    plan: &'a Plan,
    places: &'a Places,
    uses: &'a Uses,
    insts: &'a [Inst],
    bundles: Vec<Bundle>,
    /// The bundle of a register, and its element.
    of: FastMap<Reg, (usize, usize)>,
}

impl Block<'_> {
    /// Whether a register may be in a bundle: it is written once, and nobody else has its vectors.
    fn fits(&self, r: Reg, ty: Ty) -> bool {
        let has_vectors = match self.places.of[r.idx()] {
            Place::Vectors(v) => v[..n_parts(ty)].iter().all(|v| self.places.kept >> v & 1 == 0),
            Place::Row(_) => true,
            Place::Nowhere | Place::Mask(_) | Place::Flags(_) | Place::Words(_) => false,
        };
        has_vectors
            && self.plan.func.regs[r.idx()] == ty
            && self.plan.facts.class[r.idx()] == Class::Varying
            && self.plan.def_count[r.idx()] == 1
            && !self.places.is_own[r.idx()]
    }

    fn find(&mut self) {
        for (i, inst) in self.insts.iter().enumerate() {
            let Some(class) = tuple_of(self.plan, inst).filter(|c| c.kind == Kind::Load) else { continue };
            let ty = if class.bits == 64 { Ty::B64 } else { Ty::B32 };
            if inst.dst.iter().all(|d| self.fits(*d, ty)) {
                self.add(Bundle { regs: inst.dst.to_vec(), from: Vec::new(), made: vec![i; inst.dst.len()] });
            }
        }
        let readers = self.readers();
        let mut first = 0;
        while first < self.bundles.len() {
            let new = self.bundles[first..].iter().flat_map(|bundle| &bundle.regs);
            let mut insts: Vec<usize> = new.filter_map(|r| readers.get(r)).flatten().copied().collect();
            insts.sort_unstable();
            insts.dedup();
            first = self.bundles.len();
            self.find_ops(&insts);
        }
    }

    /// By register: the ops that read it, which may be done on bundles.
    fn readers(&self) -> FastMap<Reg, Vec<usize>> {
        let mut readers: FastMap<Reg, Vec<usize>> = FastMap::default();
        for (i, inst) in self.insts.iter().enumerate() {
            if let (Op::Pure(_), [_]) = (inst.op, inst.dst.as_slice()) {
                inst.src.iter().filter_map(reg).for_each(|r| readers.entry(r).or_default().push(i));
            }
        }
        readers
    }

    fn add(&mut self, bundle: Bundle) {
        let number = self.bundles.len();
        self.of.extend(bundle.regs.iter().enumerate().map(|(e, r)| (*r, (number, e))));
        self.bundles.push(bundle);
    }

    /// Finds bundles that ops make of those that are known, among the ops that read those that were found last: all that make one bundle read the same ones, so they are
    /// found together or never.
    fn find_ops(&mut self, insts: &[usize]) {
        let mut alike: BTreeMap<Alike, Vec<(usize, Reg, usize)>> = BTreeMap::new();
        for &i in insts {
            let inst = &self.insts[i];
            let (Op::Pure(op), [d]) = (inst.op, inst.dst.as_slice()) else { continue };
            if let Some((element, operands)) = self.operands(inst, op)
                && !self.of.contains_key(d)
            {
                alike.entry((op, operands)).or_default().push((element, *d, i));
            }
        }
        for ((_, operands), mut list) in alike {
            let from: Vec<usize> = operands
                .iter()
                .filter_map(|o| match o {
                    Operand::Bundle(t) => Some(*t),
                    Operand::Shared(_) | Operand::Constant(_) => None,
                })
                .collect();
            list.sort_by_key(|x| x.0);
            let n = self.bundles[from[0]].regs.len();
            if list.iter().map(|x| x.0).eq(0..n) {
                let (regs, made) = list.iter().map(|x| (x.1, x.2)).unzip();
                self.add(Bundle { regs, from, made });
            }
        }
    }

    /// The element that an op is about, and its sources, if it may be done on bundles.
    fn operands(&self, inst: &Inst, op: Pure) -> Option<(usize, Vec<Operand>)> {
        let d = inst.dst[0];
        let ty = self.plan.func.regs[d.idx()];
        if inst.guarded || !matches!(ty, Ty::B32 | Ty::B64) || !has_vector_code(op) || !self.fits(d, ty) {
            return None;
        }
        let (mut element, mut n, mut operands) = (None, None, Vec::new());
        for v in &inst.src {
            let operand = match *v {
                Val::Imm(x, _) => Operand::Constant(x),
                Val::Reg(r) => match self.of.get(&r) {
                    Some((t, e)) => {
                        let regs = &self.bundles[*t].regs;
                        let is_like_others = element.is_none_or(|x| x == *e) && n.is_none_or(|n| n == regs.len());
                        if !is_like_others || self.plan.func.regs[r.idx()] != ty {
                            return None;
                        }
                        (element, n) = (Some(*e), Some(regs.len()));
                        Operand::Bundle(*t)
                    }
                    None => {
                        let is_shared = self.plan.facts.class[r.idx()].is_uniform()
                            && self.plan.def_count[r.idx()] == 1
                            && self.plan.func.regs[r.idx()] != Ty::P;
                        if !is_shared {
                            return None;
                        }
                        Operand::Shared(r)
                    }
                },
            };
            operands.push(operand);
        }
        Some((element?, operands))
    }

    /// The bundles that nobody else reads.
    fn bundles_that_hold(&self) -> Vec<usize> {
        let n = self.bundles.len();
        let mut n_stores = vec![0_usize; n];
        self.insts.iter().filter_map(|i| self.stored(i)).for_each(|t| n_stores[t] += 1);
        let mut made_of: Vec<Vec<usize>> = vec![Vec::new(); n];
        for (t, bundle) in self.bundles.iter().enumerate() {
            bundle.from.iter().for_each(|from| made_of[*from].push(t));
        }
        made_of.iter_mut().for_each(Vec::dedup);
        let holds = |t: usize| {
            let read = |e: usize, r: Reg| -> usize {
                let reads =
                    |x: &usize| self.insts[self.bundles[*x].made[e]].src.iter().filter(|v| **v == Val::Reg(r)).count();
                made_of[t].iter().map(reads).sum()
            };
            let is_all = |(e, r): (usize, &Reg)| self.uses.count(*r) as usize == n_stores[t] + read(e, *r);
            self.bundles[t].regs.iter().enumerate().all(is_all)
        };
        let mut hold: Vec<bool> = (0..n).map(holds).collect();
        // One that does not hold is read by others, and what it is made of is read by another than bundles.
        let mut todo: Vec<usize> = (0..n).filter(|t| !hold[*t]).collect();
        while let Some(t) = todo.pop() {
            for &x in self.bundles[t].from.iter().chain(&made_of[t]) {
                if std::mem::replace(&mut hold[x], false) {
                    todo.push(x);
                }
            }
        }
        (0..n).filter(|t| hold[*t]).collect()
    }

    /// The bundle that an instruction stores, in the order of its elements.
    fn stored(&self, inst: &Inst) -> Option<usize> {
        let class = tuple_of(self.plan, inst).filter(|c| c.kind == Kind::Store)?;
        let Val::Reg(first) = *inst.src.get(1)? else { return None };
        let (t, _) = *self.of.get(&first)?;
        let regs = &self.bundles[t].regs;
        let ty = self.plan.func.regs[first.idx()];
        let is_bundle = u32::from(class.bits) == ty.bits()
            && usize::from(class.count) == regs.len()
            && inst.src.len() == 1 + regs.len()
            && inst.src[1..].iter().zip(regs).all(|(v, r)| *v == Val::Reg(*r));
        is_bundle.then_some(t)
    }
}
