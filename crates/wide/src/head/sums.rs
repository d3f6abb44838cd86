//! Values of the head as sums of products: whether what one warp reads lies where another warp has read.

use std::collections::BTreeMap;

use handloom_ir::simt::{Inst, Op, Pure, Reg, Val};
use handloom_ir::types::{Int, Sreg, Ty};
use handloom_plan::Plan;

use super::courses::{ACROSS, DOWN};
use super::{Head, KnownStep, reg};

/// More products than this are not looked at.
const MOST_PRODUCTS: usize = 12;
/// Values that are looked at for one sum.
const MOST_VALUES: usize = 64;

/// What is the same in all warps and is not looked into.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Factor {
    Reg(Reg),
    Special(Sreg),
    /// A sum of 32 bits, extended to 64, read as signed or not.
    Extended(Sum, bool),
}

/// Products, each of its factors in order, and how often each is added, modulo 2^64: the product of nothing is 1.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Sum(BTreeMap<Vec<Factor>, u64>);

impl Sum {
    fn number(x: u64) -> Sum {
        let mut sum = Sum::default();
        sum.put(Vec::new(), x);
        sum
    }

    fn of(factor: Factor) -> Sum {
        let mut sum = Sum::default();
        sum.put(vec![factor], 1);
        sum
    }

    /// Adds a product so many times.
    fn put(&mut self, product: Vec<Factor>, times: u64) {
        let n = self.0.entry(product).or_insert(0);
        *n = n.wrapping_add(times);
        self.0.retain(|_, n| *n != 0);
    }

    fn plus(mut self, other: &Sum, times: u64) -> Sum {
        for (product, n) in &other.0 {
            self.put(product.clone(), n.wrapping_mul(times));
        }
        self
    }

    fn times(&self, other: &Sum) -> Option<Sum> {
        let mut sum = Sum::default();
        for (a, n) in &self.0 {
            for (b, m) in &other.0 {
                let mut product: Vec<Factor> = a.iter().chain(b).cloned().collect();
                product.sort_unstable();
                sum.put(product, n.wrapping_mul(*m));
            }
        }
        (sum.0.len() <= MOST_PRODUCTS).then_some(sum)
    }

    /// Modulo 2^32.
    fn cut(mut self) -> Sum {
        self.0.retain(|_, n| {
            *n &= u64::from(u32::MAX);
            *n != 0
        });
        self
    }

    /// The number that it is, if it is one.
    fn constant(&self) -> Option<u64> {
        match self.0.len() {
            0 => Some(0),
            1 => self.0.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// A value of 32 bits at 64.
    fn extended(self, signed: bool) -> Sum {
        match self.constant() {
            Some(x) if signed => Sum::number(i64::from(x as u32 as i32).cast_unsigned()),
            Some(x) => Sum::number(x),
            None => Sum::of(Factor::Extended(self, signed)),
        }
    }
}

/// How what is extended is read. Both are right: sums that are equal by one of them may not be by the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    /// As it is in the warp.
    InWarp,
    /// As it is in warp 0, and the extended steps from there: the head has found that nothing wraps.
    BySteps,
}

/// Reads values as sums.
struct Reader<'a> {
    plan: &'a Plan,
    head: &'a Head,
    reading: Reading,
    /// Values that may still be looked at.
    left: usize,
}

impl Reader<'_> {
    fn value(&mut self, v: Val, warp: usize) -> Option<Sum> {
        self.left = self.left.checked_sub(1)?;
        let r = match v {
            Val::Imm(x, Ty::B32) => return Some(Sum::number(x).cut()),
            Val::Imm(x, _) => return Some(Sum::number(x)),
            Val::Reg(r) => r,
        };
        let is_followed = self.head.courses[r.idx()].is_some();
        let inst = self.plan.origin(r).filter(|i| is_followed && !i.guarded && i.dst.len() == 1);
        let sum = inst.and_then(|i| self.result(i, warp));
        let sum = sum.or_else(|| self.head.same[r.idx()].map(|_| Sum::of(Factor::Reg(r))))?;
        Some(if self.plan.func.regs[r.idx()] == Ty::B32 { sum.cut() } else { sum })
    }

    fn result(&mut self, inst: &Inst, warp: usize) -> Option<Sum> {
        let Op::Pure(op) = inst.op else {
            let Op::Sreg(s) = inst.op else { return None };
            let by = match self.head.special_steps(self.plan, s) {
                Some(steps) => self.head.ranks.distance(steps, warp),
                None => matches!(s, Sreg::Ctaid(_) | Sreg::Nctaid(_) | Sreg::Laneid).then_some(0)?,
            };
            return Some(Sum::of(Factor::Special(s)).plus(&Sum::number(1), by.cast_unsigned()));
        };
        let src = &inst.src;
        match op {
            Pure::Mov(Ty::B32 | Ty::B64) => self.value(src[0], warp),
            Pure::Add(Ty::B32 | Ty::B64) => Some(self.value(src[0], warp)?.plus(&self.value(src[1], warp)?, 1)),
            Pure::Sub(Ty::B32 | Ty::B64) => Some(self.value(src[0], warp)?.plus(&self.value(src[1], warp)?, u64::MAX)),
            Pure::Mul(Ty::B32 | Ty::B64) => self.value(src[0], warp)?.times(&self.value(src[1], warp)?),
            Pure::Shl(ty @ (Ty::B32 | Ty::B64)) => {
                let by = crate::table::constant(src[1]).filter(|by| *by < u64::from(ty.bits()))?;
                Some(Sum::default().plus(&self.value(src[0], warp)?, 1 << by))
            }
            Pure::MulWide(Int { ty: Ty::B32, signed }) => {
                self.extended(src[0], signed, warp)?.times(&self.extended(src[1], signed, warp)?)
            }
            Pure::Ext { bits: 32, signed, from: Ty::B32, to: Ty::B64 } => self.extended(src[0], signed, warp),
            Pure::Ext { bits: 32, from: Ty::B64, to: Ty::B32, .. } => Some(self.value(src[0], warp)?.cut()),
            _ => None,
        }
    }

    fn extended(&mut self, v: Val, signed: bool, warp: usize) -> Option<Sum> {
        let is_linear = reg(v).is_some_and(|r| self.head.linear[r.idx()].is_some());
        if self.reading == Reading::InWarp || !is_linear {
            return Some(self.value(v, warp)?.extended(signed));
        }
        let first = self.value(v, 0)?;
        let mut sum = first.clone().extended(signed);
        let at = self.head.ranks.place(warp);
        for (way, next) in [(ACROSS, 1), (DOWN, self.head.ranks.across as usize)] {
            if at[way] != 0 {
                let step = self.value(v, next)?.plus(&first, u64::MAX).cut();
                sum = sum.plus(&step.extended(true), at[way].cast_unsigned());
            }
        }
        Some(sum)
    }
}

impl Head {
    /// Whether an address is in one warp what another one is in another warp, each with an offset: in all CTAs of all launches.
    pub(crate) fn is_one_address(&self, plan: &Plan, a: (Reg, i64, usize), b: (Reg, i64, usize)) -> bool {
        [Reading::InWarp, Reading::BySteps].into_iter().any(|reading| {
            let mut reader = Reader { plan, head: self, reading, left: MOST_VALUES };
            let mut sum = |(r, offset, warp): (Reg, i64, usize)| {
                let sum = reader.value(Val::Reg(r), warp)?;
                Some(sum.plus(&Sum::number(1), offset.cast_unsigned()))
            };
            sum(a).zip(sum(b)).is_some_and(|(a, b)| a == b)
        })
    }

    /// The word to read a step of a linear value from: another one's, if that says the same in all launches and was asked for before.
    pub(crate) fn word_of_step(&mut self, plan: &Plan, r: Reg, at: u32) -> u32 {
        if let Some(known) = self.steps_known.iter().find(|k| k.at == at) {
            return known.word;
        }
        let Some(way) = self.linear[r.idx()].and_then(|l| l.steps.iter().position(|w| *w == at)) else { return at };
        let is_alike = |k: &&KnownStep| self.is_one_step(plan, (r, way), (k.of, k.way));
        let word = self.steps_known.iter().find(is_alike).map_or(at, |k| k.word);
        self.steps_known.push(KnownStep { of: r, way, at, word });
        word
    }

    /// Whether two values go up alike, each along ranks or from rank to rank.
    fn is_one_step(&self, plan: &Plan, a: (Reg, usize), b: (Reg, usize)) -> bool {
        let is_alike = |reading| {
            let step = |(r, way): (Reg, usize)| {
                let next = if way == ACROSS { 1 } else { self.ranks.across as usize };
                let mut reader = Reader { plan, head: self, reading, left: MOST_VALUES };
                let first = reader.value(Val::Reg(r), 0)?;
                Some(reader.value(Val::Reg(r), next)?.plus(&first, u64::MAX))
            };
            let are_of_one_type = plan.func.regs[a.0.idx()] == plan.func.regs[b.0.idx()];
            are_of_one_type && step(a).zip(step(b)).is_some_and(|(a, b)| a == b)
        };
        [Reading::InWarp, Reading::BySteps].into_iter().any(is_alike)
    }
}
