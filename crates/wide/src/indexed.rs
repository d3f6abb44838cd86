//! What addresses are made of, where that is an index of 32 bits: `base + (index << shift)`, the base being a sum of words and numbers. Found before places are given, since who reads an index later than the text says
//! wants it kept.

use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Inst, Op, Pure, Reg, Val};
use handloom_ir::types::{Int, Order, StateSpace, Ty};
use handloom_plan::Plan;
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::classes::Class;

use crate::access::{Indexed, Indices, reg};
use crate::uses::Uses;

/// Of how many steps an address may be made, at most.
const MOST_STEPS: u32 = 8;

/// Looks for addresses by indices.
pub(crate) struct Finder<'a> {
    pub(crate) plan: &'a Plan,
}

/// Whether an instruction is an access of a kind whose address may be one.
fn may_be_indexed(inst: &Inst) -> bool {
    match inst.op {
        Op::Load { access, .. } | Op::Store { access, .. } => {
            matches!(access.space, StateSpace::Global | StateSpace::Generic)
        }
        _ => false,
    }
}

impl Finder<'_> {
    /// Finds those of a function.
    pub(crate) fn find(&self, uses: &Uses) -> Indices {
        let f = &self.plan.func;
        let mut found = Indices::none(f.regs.len());
        let mut made: FastMap<usize, usize> = FastMap::default();
        // How often each register is the address of an access that may find it so.
        let mut n_accesses: FastMap<usize, u32> = FastMap::default();
        for (b, block) in f.blocks.iter().enumerate() {
            let insts = &block.insts[..];
            if !insts.iter().any(may_be_indexed) {
                continue;
            }
            made.clear();
            n_accesses.clear();
            for (i, inst) in insts.iter().enumerate() {
                if let Some(indexed) = self.indexed_access(insts, i, &made)
                    && let Some(address) = inst.src.first().copied().and_then(reg)
                {
                    *n_accesses.entry(address.idx()).or_default() += 1;
                    found.of.insert((b, i), indexed);
                }
                inst.dst.iter().for_each(|d| _ = made.insert(d.idx(), i));
            }
            if n_accesses.is_empty() {
                continue;
            }
            // Who reads what is delayed comes behind it.
            let mut n_delayed: FastMap<usize, u32> = FastMap::default();
            for (i, inst) in insts.iter().enumerate().rev() {
                let [d] = inst.dst[..] else { continue };
                let is_part =
                    self.part_of_index(insts, &made, d, MOST_STEPS).is_some() && made.get(&d.idx()) == Some(&i);
                if !is_part {
                    continue;
                }
                let n = n_delayed.get(&d.idx()).copied().unwrap_or(0);
                let n = n + n_accesses.get(&d.idx()).copied().unwrap_or(0);
                if n == uses.count(d) {
                    found.delayed.add(d.idx());
                    let sources = inst.src.iter().filter_map(|v| reg(*v));
                    sources.for_each(|r| *n_delayed.entry(r.idx()).or_default() += 1);
                }
            }
        }
        found
    }

    /// What the address of an access is made of. `made`: by register, the last instruction of the block before it that makes it.
    fn indexed_access(&self, insts: &[Inst], i: usize, made: &FastMap<usize, usize>) -> Option<Indexed> {
        let inst = &insts[i];
        if !may_be_indexed(inst) {
            return None;
        }
        let class = AccessClass::of(inst)?;
        let fits = class.order == Order::Weak
            && !class.is_single
            && !class.is_told
            && class.wants_all()
            && (class.count == 1 || crate::tuples::is_of_tuples(&class))
            && inst.src.first() == Some(&class.address)
            && inst.dst.iter().all(|d| self.plan.facts.class[d.idx()] == Class::Varying);
        let address = reg(class.address).filter(|_| fits)?;
        let indexed = self.part_of_index(insts, made, address, MOST_STEPS)?;
        // Nothing that it is made of has changed since.
        let start = *made.get(&address.idx())?;
        let sources = || indexed.words.iter().map(|w| w.0).chain([Val::Reg(indexed.index)]).filter_map(reg);
        let earliest = self.start_of_index(insts, made, start);
        let stays = sources().all(|r| made.get(&r.idx()).is_none_or(|k| *k < earliest));
        let fits = indexed.shape(self.plan).map_or(indexed.shift <= crate::numbers::MOST_SHIFT, |shape| {
            // Each vector of addresses is made of one of the groups, which are tested one by one.
            let is_of_one = |q: usize| (8 * q..8 * q + 8).all(|l| shape.group_of(l) == shape.group_of(8 * q));
            let is_far = (0..shape.groups()).any(|g| crate::strided::run_of(&shape, g).1 >= 1 << 20);
            shape.groups() <= 4 && (0..4).all(is_of_one) && !shape.is_uniform() && !is_far
        });
        (fits && stays).then_some(indexed)
    }

    /// The first instruction of the block that belongs to the making of an address.
    fn start_of_index(&self, insts: &[Inst], made: &FastMap<usize, usize>, at: usize) -> usize {
        let is_part = |r: &Reg| self.part_of_index(insts, made, *r, MOST_STEPS).is_some();
        let parts = insts[at].src.iter().filter_map(|v| reg(*v)).filter(is_part);
        let starts = parts.filter_map(|r| made.get(&r.idx()).filter(|k| **k < at));
        starts.map(|k| self.start_of_index(insts, made, *k)).min().unwrap_or(at)
    }

    fn class(&self, r: Reg) -> Class {
        self.plan.facts.class[r.idx()]
    }

    /// What a register that varies is made of in its block, in so many steps at most.
    fn part_of_index(&self, insts: &[Inst], made: &FastMap<usize, usize>, r: Reg, steps: u32) -> Option<Indexed> {
        let steps = steps.checked_sub(1)?;
        if self.plan.def_count[r.idx()] != 1 || self.class(r) != Class::Varying {
            return None;
        }
        let inst = &insts[*made.get(&r.idx())?];
        let Op::Pure(op) = inst.op else { return None };
        let of_index = |v: Val, signed: bool, shift: u32| {
            let fits = |r: &Reg| self.class(*r) != Class::Unknown;
            let index = reg(v).filter(|r| self.plan.func.regs[r.idx()] == Ty::B32 && fits(r))?;
            Some(Indexed { index, signed, shift, words: Vec::new(), number: 0 })
        };
        match (op, &inst.src[..]) {
            (Pure::MulWide(Int { ty: Ty::B32, signed }), &[a, b]) => {
                let (v, Val::Imm(by, _)) = (if reg(a).is_some() { (a, b) } else { (b, a) }) else { return None };
                // As a factor of 32 bits it is a positive one.
                (by.is_power_of_two() && by < 1 << 31).then_some(())?;
                of_index(v, signed, by.trailing_zeros())
            }
            (Pure::Ext { bits: 32, signed, from: Ty::B32, to: Ty::B64 }, &[v]) => of_index(v, signed, 0),
            (Pure::Shl(Ty::B64), &[Val::Reg(v), Val::Imm(by, _)]) if by < 32 => {
                let mut of = self.part_of_index(insts, made, v, steps)?;
                let by = by as u32;
                of.words.iter_mut().for_each(|(_, shift)| *shift += by);
                of.number = of.number.wrapping_shl(by);
                of.shift += by;
                let shifts = of.words.iter().map(|w| w.1).chain([of.shift]);
                shifts.max().is_none_or(|most| most < 32).then_some(of)
            }
            (Pure::Add(Ty::B64), &[a, b]) => {
                let is_same =
                    |v: Val| reg(v).is_none_or(|r| matches!(self.class(r), Class::Affine(s) if s.is_uniform()));
                let (of, with) = match (reg(a), reg(b)) {
                    (Some(x), _) if is_same(b) => (x, b),
                    (_, Some(x)) if is_same(a) => (x, a),
                    _ => return None,
                };
                let mut of = self.part_of_index(insts, made, of, steps)?;
                match with {
                    Val::Imm(n, _) => of.number = of.number.wrapping_add(n.cast_signed()),
                    Val::Reg(_) => of.words.push((with, 0)),
                }
                (of.words.len() <= 2).then_some(of)
            }
            _ => None,
        }
    }
}
