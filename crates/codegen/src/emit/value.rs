//! Values of registers inside a copy, as scalars with a shape or as lanes.

use std::rc::Rc;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::analysis::shape::Shape;
use handloom_plan::packs::{MOST_OPS, PACKS, first_pack, pack_start};

use crate::emit::asm::{Asm, scalar_type, vector_type, width};

/// The value of a register.
#[derive(Clone, Debug)]
pub enum Rep {
    /// One scalar for each group of a shape.
    Affine(Shape, Vec<Value>),
    /// One vector (two for 64 bits) for each of eight packs.
    Rows(Vec<Value>),
    /// A predicate that was not needed as lanes yet.
    Logic(Rc<Logic>),
}

/// A predicate made of comparisons of affine integers: often known for all lanes from a few scalars.
#[derive(Clone, Debug)]
pub enum Logic {
    /// A comparison.
    Compare(Box<Compare>),
    /// The same in all lanes.
    Uniform(Value),
    /// Holds in lanes where both hold.
    And(Rc<Logic>, Rc<Logic>),
    /// Holds in lanes where one of them holds.
    Or(Rc<Logic>, Rc<Logic>),
    /// Holds in lanes where the other does not.
    Not(Rc<Logic>),
}

impl Logic {
    /// The number of ops and comparisons in it.
    fn n_ops(&self) -> usize {
        match self {
            Logic::Compare(_) | Logic::Uniform(_) => 1,
            Logic::And(a, b) | Logic::Or(a, b) => 1 + a.n_ops() + b.n_ops(),
            Logic::Not(a) => 1 + a.n_ops(),
        }
    }
}

/// A comparison kept for later.
#[derive(Clone, Debug)]
pub struct Compare {
    /// Which relation is asked for.
    pub cmp: Cmp,
    /// The integers that are compared: width and sign.
    pub int: Int,
    /// Left side.
    pub a: (Shape, Vec<Value>),
    /// Right side.
    pub b: (Shape, Vec<Value>),
}

impl Asm<'_> {
    /// The vectors of all packs.
    pub(crate) fn rows(&mut self, rep: &Rep, ty: Ty) -> Vec<Value> {
        match rep {
            Rep::Rows(v) => v.clone(),
            Rep::Affine(shape, base) => {
                let mut out = Vec::with_capacity(PACKS * width(ty));
                let mut memo: Vec<((usize, i64), Vec<Value>)> = Vec::new();
                for p in 0..PACKS {
                    let key = pack_start(shape, p);
                    if let Some((_, v)) = memo.iter().find(|(k, _)| *k == key) {
                        out.extend_from_slice(v);
                        continue;
                    }
                    let first = self.first_lane(&(*shape, base.clone()), p, ty);
                    let v = self.spread(first, shape.stride, ty);
                    memo.push((key, v.clone()));
                    out.extend(v);
                }
                out
            }
            Rep::Logic(l) => self.logic_rows(l),
        }
    }

    /// The lanes of a predicate.
    fn logic_rows(&mut self, l: &Logic) -> Vec<Value> {
        match l {
            Logic::Uniform(v) => self.rows(&Rep::Affine(Shape::UNIFORM, vec![*v]), Ty::P),
            Logic::And(a, b) | Logic::Or(a, b) => {
                let (x, y) = (self.logic_rows(a), self.logic_rows(b));
                let both = x.into_iter().zip(y);
                if matches!(l, Logic::And(..)) {
                    both.map(|(x, y)| self.b.ins().band(x, y)).collect()
                } else {
                    both.map(|(x, y)| self.b.ins().bor(x, y)).collect()
                }
            }
            Logic::Not(a) => {
                let x = self.logic_rows(a);
                x.into_iter().map(|x| self.b.ins().bnot(x)).collect()
            }
            Logic::Compare(c) => {
                let c = c.clone();
                let a = self.rows(&Rep::Affine(c.a.0, c.a.1), c.int.ty);
                let b = self.rows(&Rep::Affine(c.b.0, c.b.1), c.int.ty);
                let w = width(c.int.ty);
                (0..PACKS).map(|p| self.vector_icmp(c.cmp, c.int, &a[p * w..p * w + w], &b[p * w..p * w + w])).collect()
            }
        }
    }

    /// The bits of a predicate: bit `l` for lane `l`.
    pub(crate) fn predicate_bits(&mut self, rep: &Rep) -> Value {
        if let Rep::Affine(s, base) = rep
            && s.is_uniform()
        {
            let wide = self.b.ins().uextend(types::I32, base[0]);
            return self.b.ins().ineg(wide);
        }
        if let Rep::Logic(l) = rep {
            return self.logic_bits(l);
        }
        let rows = self.rows(rep, Ty::P);
        self.bits_of_rows(&rows)
    }

    fn logic_bits(&mut self, l: &Logic) -> Value {
        match l {
            Logic::Uniform(v) => {
                let wide = self.b.ins().uextend(types::I32, *v);
                self.b.ins().ineg(wide)
            }
            Logic::Not(a) => {
                let x = self.logic_bits(a);
                self.b.ins().bnot(x)
            }
            Logic::And(a, b) | Logic::Or(a, b) => {
                let (x, y) = (self.logic_bits(a), self.logic_bits(b));
                if matches!(l, Logic::And(..)) { self.b.ins().band(x, y) } else { self.b.ins().bor(x, y) }
            }
            Logic::Compare(c) => match self.counted_bits(c) {
                Some(bits) => bits,
                None => {
                    let rows = self.logic_rows(l);
                    self.bits_of_rows(&rows)
                }
            },
        }
    }

    /// The bits of a comparison of neighbouring integers with a uniform one: the lanes on one side of a boundary, or one lane.
    fn counted_bits(&mut self, c: &Compare) -> Option<Value> {
        let (x, y, cmp) = if c.b.0.is_uniform() { (&c.a, &c.b, c.cmp) } else { (&c.b, &c.a, c.cmp.swapped()) };
        if !(y.0.is_uniform() && x.0.is_linear() && x.0.stride == 1 && c.int.ty == Ty::B32) {
            return None;
        }
        let one = self.i64(1);
        if matches!(cmp, Cmp::Eq | Cmp::Ne) {
            let lane = self.b.ins().isub(y.1[0], x.1[0]);
            let near = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThan, lane, 32);
            let none = self.i32(0);
            let bit = self.b.ins().ishl(one, lane);
            let bit = self.b.ins().ireduce(types::I32, bit);
            let bits = self.b.ins().select(near, bit, none);
            return Some(if cmp == Cmp::Eq { bits } else { self.b.ins().bnot(bits) });
        }
        if !x.0.no_wrap(32, c.int.signed) {
            return None;
        }
        // Lanes `x < y` for `below`, `x <= y` with one more; the others by complement.
        let (below, more) = match cmp {
            Cmp::Lt => (true, 0),
            Cmp::Le => (true, 1),
            Cmp::Gt => (false, 1),
            Cmp::Ge => (false, 0),
            _ => return None,
        };
        let wide = |e: &mut Self, v: Value| {
            if c.int.signed { e.b.ins().sextend(types::I64, v) } else { e.b.ins().uextend(types::I64, v) }
        };
        let (first, end) = (wide(self, x.1[0]), wide(self, y.1[0]));
        let count = self.b.ins().isub(end, first);
        let count = self.moved(count, more);
        let (zero, all) = (self.i64(0), self.i64(32));
        let count = self.b.ins().smax(count, zero);
        let count = self.b.ins().smin(count, all);
        let end = self.b.ins().ishl(one, count);
        let low = self.b.ins().iadd_imm_s(end, -1);
        let low = self.b.ins().ireduce(types::I32, low);
        Some(if below { low } else { self.b.ins().bnot(low) })
    }

    /// Predicate lanes from bits.
    pub(crate) fn rows_of_bits(&mut self, bits: Value) -> Rep {
        let rows = (0..PACKS)
            .map(|p| {
                let part = self.b.ins().ushr_imm_s(bits, 4 * p as i64);
                let nibble = self.b.ins().band_imm_s(part, 15);
                self.mask_of_nibble(nibble)
            })
            .collect();
        Rep::Rows(rows)
    }

    /// Value of lane 0 of pack `p`.
    pub(crate) fn first_lane(&mut self, v: &(Shape, Vec<Value>), p: usize, ty: Ty) -> Value {
        let (group, off) = pack_start(&v.0, p);
        self.plus(v.1[group], off, ty)
    }

    /// Lane `l` of pack `p` as a scalar.
    pub(crate) fn lane_of(&mut self, rep: &Rep, p: usize, l: usize, ty: Ty) -> Value {
        if let Rep::Affine(s, base) = rep {
            let v = self.first_lane(&(*s, base.clone()), p, ty);
            return self.plus(v, s.stride * l as i64, ty);
        }
        let rows = self.rows(rep, ty);
        if ty == Ty::B64 {
            self.b.ins().extractlane(rows[2 * p + l / 2], (l % 2) as u8)
        } else {
            self.b.ins().extractlane(rows[p], l as u8)
        }
    }

    /// A scalar with its NaNs made canonical.
    pub(crate) fn canonical_scalar(&mut self, v: Value, float: Float) -> Value {
        let x = self.b.ins().scalar_to_vector(Self::bits_type(float), v);
        let c = self.canonical(x, float);
        self.b.ins().extractlane(c, 0)
    }

    /// A float value with its NaNs made canonical.
    pub(crate) fn canonical_rep(&mut self, rep: &Rep, float: Float) -> Rep {
        match rep {
            Rep::Affine(s, base) => Rep::Affine(*s, base.iter().map(|v| self.canonical_scalar(*v, float)).collect()),
            Rep::Rows(rows) => Rep::Rows(rows.iter().map(|v| self.canonical(*v, float)).collect()),
            Rep::Logic(_) => rep.clone(),
        }
    }

    pub(crate) fn zero_rows(&mut self, ty: Ty) -> Rep {
        let z = if ty == Ty::B64 { self.vector_const64([0, 0]) } else { self.vector_const32([0; 4]) };
        Rep::Rows(vec![z; PACKS * width(ty)])
    }

    /// Zero, or an old value, in the form of another value.
    pub(crate) fn shaped_like(&mut self, like: &Rep, old: Option<&Rep>, ty: Ty) -> Rep {
        match (like, old) {
            (Rep::Affine(s, base), Some(Rep::Affine(o, b))) => {
                let firsts: Vec<usize> = (0..base.len()).map(|g| first_pack(s, g)).collect();
                let words = firsts.into_iter().map(|p| self.first_lane(&(*o, b.clone()), p, ty)).collect();
                Rep::Affine(*s, words)
            }
            (Rep::Affine(s, base), _) => {
                let z = self.scalar_const(0, ty);
                Rep::Affine(*s, vec![z; base.len()])
            }
            (_, Some(o)) => Rep::Rows(self.rows(o, ty)),
            _ => self.zero_rows(ty),
        }
    }

    /// Values of results in order, in the form they have.
    pub(crate) fn flatten(&mut self, reps: &[Rep], ty: Ty) -> Vec<Value> {
        reps.iter()
            .flat_map(|r| match r {
                Rep::Affine(_, base) => base.clone(),
                Rep::Rows(v) => v.clone(),
                Rep::Logic(_) => self.rows(r, ty),
            })
            .collect()
    }

    /// Gives the join its parameters and both sides' values. The fast side has jumped already, with its values as they are.
    pub(crate) fn join_forms(&mut self, join: clif::Block, results: &[Rep], others: &[Rep], ty: Ty) -> Vec<Rep> {
        let mut out = Vec::new();
        let mut args = Vec::new();
        for (r, o) in results.iter().zip(others) {
            match (r, o) {
                (Rep::Affine(s, base), Rep::Affine(_, theirs)) => {
                    let t = scalar_type(ty);
                    let params = base.iter().map(|_| self.b.append_block_param(join, t)).collect();
                    args.extend(theirs.iter().map(|v| clif::BlockArg::from(*v)));
                    out.push(Rep::Affine(*s, params));
                }
                (_, o) => {
                    let rows = self.rows(o, ty);
                    let t = vector_type(ty);
                    let params: Vec<Value> = rows.iter().map(|_| self.b.append_block_param(join, t)).collect();
                    args.extend(rows.iter().map(|v| clif::BlockArg::from(*v)));
                    out.push(Rep::Rows(params));
                }
            }
        }
        self.b.ins().jump(join, &args);
        out
    }
}

/// A Boolean op on predicates that were not needed as lanes yet.
pub(crate) fn logic_of(op: Pure, args: &[Rep]) -> Option<Logic> {
    if !args.iter().any(|a| matches!(a, Rep::Logic(_))) {
        return None;
    }
    let part = |i: usize| match &args[i] {
        Rep::Logic(l) => Some(Rc::clone(l)),
        Rep::Affine(s, base) if s.is_uniform() => Some(Rc::new(Logic::Uniform(base[0]))),
        Rep::Affine(..) | Rep::Rows(_) => None,
    };
    let made = match op {
        Pure::And(Ty::P) => Logic::And(part(0)?, part(1)?),
        Pure::Or(Ty::P) => Logic::Or(part(0)?, part(1)?),
        Pure::Not(Ty::P) => Logic::Not(part(0)?),
        _ => return None,
    };
    (made.n_ops() <= MOST_OPS).then_some(made)
}

/// The value of a constant source.
pub(crate) fn constant(v: Val) -> Option<u64> {
    match v {
        Val::Imm(x, ty) => Some(x & ty.mask()),
        Val::Reg(_) => None,
    }
}

pub(crate) fn is_uniform(r: &Rep) -> bool {
    matches!(r, Rep::Affine(s, _) if s.is_uniform())
}
