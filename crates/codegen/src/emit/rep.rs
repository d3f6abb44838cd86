//! Values of registers inside a copy of a block, and their homes in the warp context.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use std::rc::Rc;

use handloom_ir::simt::*;
use handloom_ir::types::{Cmp, Int, Ty};
use handloom_plan::abi::Loc;
use handloom_plan::analysis::classes::Class;
use handloom_plan::analysis::shape::{LANES, PACKS, Shape};
use handloom_plan::layout::{Home, SCRATCH_ROWS};

use super::Emit;
use super::line::Key;

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
    /// Both.
    And(Rc<Logic>, Rc<Logic>),
    /// Either.
    Or(Rc<Logic>, Rc<Logic>),
    /// Not.
    Not(Rc<Logic>),
}

/// A comparison kept for later.
#[derive(Clone, Debug)]
pub struct Compare {
    /// Comparison.
    pub cmp: Cmp,
    /// Type.
    pub int: Int,
    /// Left side.
    pub a: (Shape, Vec<Value>),
    /// Right side.
    pub b: (Shape, Vec<Value>),
}

/// Vectors of a pack.
pub(crate) fn width(ty: Ty) -> usize {
    if ty == Ty::B64 { 2 } else { 1 }
}

/// Type of a uniform value.
pub(crate) fn scalar_type(ty: Ty) -> clif::Type {
    match ty {
        Ty::P => types::I8,
        Ty::B16 | Ty::B32 => types::I32,
        Ty::B64 => types::I64,
    }
}

/// Type of the vectors of a pack.
pub(crate) fn vector_type(ty: Ty) -> clif::Type {
    if ty == Ty::B64 { types::I64X2 } else { types::I32X4 }
}

impl Emit<'_, '_> {
    /// A constant as a scalar of a type.
    pub(crate) fn scalar_const(&mut self, v: u64, ty: Ty) -> Value {
        let t = scalar_type(ty);
        let v = match ty {
            Ty::P => (v & 1) as i64,
            Ty::B16 | Ty::B32 => (v & ty.mask()) as i64,
            Ty::B64 => v as i64,
        };
        self.b.ins().iconst(t, v)
    }

    /// The value of a source.
    pub(crate) fn rep(&mut self, v: Val) -> Rep {
        match v {
            Val::Imm(x, ty) => {
                let c = self.scalar_const(x, ty);
                Rep::Affine(Shape::constant(x & ty.mask()), vec![c])
            }
            Val::Reg(r) => {
                if let Some(rep) = self.reps.get(&r) {
                    return rep.clone();
                }
                let rep = self.load_home(r);
                self.reps.insert(r, rep.clone());
                rep
            }
        }
    }

    /// Reads a register's home. A register that is never written reads as zero.
    pub(crate) fn load_home(&mut self, r: Reg) -> Rep {
        let ty = self.f.regs[r.idx()];
        match (self.plan.layout.homes[r.idx()], self.facts.class[r.idx()]) {
            (Some(Home::Words(at)), Class::Affine(s)) => {
                let t = scalar_type(ty);
                let base = (0..s.groups()).map(|g| self.load_warp(t, at as usize + 8 * g)).collect();
                Rep::Affine(s, base)
            }
            (Some(Home::Row32(at)), _) => {
                Rep::Rows((0..PACKS).map(|p| self.load_warp(types::I32X4, at as usize + 16 * p)).collect())
            }
            (Some(Home::Row64(at)), _) => {
                Rep::Rows((0..2 * PACKS).map(|p| self.load_warp(types::I64X2, at as usize + 16 * p)).collect())
            }
            _ => {
                let z = self.scalar_const(0, ty);
                Rep::Affine(Shape::constant(0), vec![z])
            }
        }
    }

    /// Writes a value to its register's home.
    pub(crate) fn store_home(&mut self, r: Reg, rep: &Rep) {
        let ty = self.f.regs[r.idx()];
        match (self.plan.layout.homes[r.idx()], self.facts.class[r.idx()]) {
            (Some(Home::Words(at)), Class::Affine(s)) => {
                let words = self.words_of(rep, &s, ty);
                for (g, w) in words.into_iter().enumerate() {
                    let w = self.as_word(w, ty);
                    self.store_warp(w, at as usize + 8 * g);
                }
            }
            (Some(Home::Row32(at) | Home::Row64(at)), _) => {
                let rows = self.rows(rep, ty);
                for (i, v) in rows.into_iter().enumerate() {
                    self.store_warp(v, at as usize + 16 * i);
                }
            }
            _ => {}
        }
    }

    /// A scalar as a 64-bit word, zero above its width.
    pub(crate) fn as_word(&mut self, v: Value, ty: Ty) -> Value {
        if ty == Ty::B64 { v } else { self.b.ins().uextend(types::I64, v) }
    }

    /// The bases of an affine value for a coarser or equal shape.
    fn words_of(&mut self, rep: &Rep, class: &Shape, ty: Ty) -> Vec<Value> {
        let Rep::Affine(shape, base) = rep else { panic!("a row where {class:?} was promised at {:?}", self.at) };
        (0..class.groups())
            .map(|g| {
                let p = class.first(g);
                self.first_lane(&(*shape, base.clone()), p, ty)
            })
            .collect()
    }

    /// Value of lane 0 of pack `p`.
    pub(crate) fn first_lane(&mut self, v: &(Shape, Vec<Value>), p: usize, ty: Ty) -> Value {
        let base = v.1[usize::from(v.0.group[p])];
        self.plus(base, v.0.off[p], ty)
    }

    /// A scalar plus a constant, at the width of its type.
    pub(crate) fn plus(&mut self, v: Value, c: i64, ty: Ty) -> Value {
        if c == 0 {
            return v;
        }
        let sum = self.b.ins().iadd_imm_s(v, c);
        if ty == Ty::B16 { self.b.ins().band_imm_s(sum, 0xffff) } else { sum }
    }

    /// The vectors of all packs.
    pub(crate) fn rows(&mut self, rep: &Rep, ty: Ty) -> Vec<Value> {
        match rep {
            Rep::Rows(v) => v.clone(),
            Rep::Affine(shape, base) => {
                let mut out = Vec::with_capacity(PACKS * width(ty));
                let mut memo: Vec<((u8, i64), Vec<Value>)> = Vec::new();
                for p in 0..PACKS {
                    let key = (shape.group[p], shape.off[p]);
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

    /// The vectors of a pack from its first lane and stride.
    pub(crate) fn spread(&mut self, first: Value, stride: i64, ty: Ty) -> Vec<Value> {
        self.once(Key::Spread(first, stride, ty), |e| e.spread_now(first, stride, ty))
    }

    fn spread_now(&mut self, first: Value, stride: i64, ty: Ty) -> Vec<Value> {
        match ty {
            Ty::P => {
                let wide = self.b.ins().uextend(types::I32, first);
                let mask = self.b.ins().ineg(wide);
                vec![self.b.ins().splat(types::I32X4, mask)]
            }
            Ty::B16 | Ty::B32 => {
                let v = self.b.ins().splat(types::I32X4, first);
                if stride == 0 {
                    return vec![v];
                }
                let steps = self.vector_const32(std::array::from_fn(|l| (stride.wrapping_mul(l as i64)) as u32));
                let sum = self.b.ins().iadd(v, steps);
                if ty == Ty::B16 {
                    let m = self.vector_const32([0xffff; 4]);
                    vec![self.b.ins().band(sum, m)]
                } else {
                    vec![sum]
                }
            }
            Ty::B64 => {
                let v = self.b.ins().splat(types::I64X2, first);
                if stride == 0 {
                    return vec![v, v];
                }
                (0..2)
                    .map(|h| {
                        let lane = |l: i64| stride.wrapping_mul(2 * h + l) as u64;
                        let steps = self.vector_const64([lane(0), lane(1)]);
                        self.b.ins().iadd(v, steps)
                    })
                    .collect()
            }
        }
    }

    pub(crate) fn vector_const32(&mut self, lanes: [u32; LANES]) -> Value {
        let bytes: Vec<u8> = lanes.iter().flat_map(|l| l.to_le_bytes()).collect();
        self.vector_constant(types::I32X4, &bytes)
    }

    pub(crate) fn vector_const64(&mut self, lanes: [u64; 2]) -> Value {
        let bytes: Vec<u8> = lanes.iter().flat_map(|l| l.to_le_bytes()).collect();
        self.vector_constant(types::I64X2, &bytes)
    }

    fn vector_constant(&mut self, ty: clif::Type, bytes: &[u8]) -> Value {
        let key = bytes.iter().rev().fold(0u128, |k, b| k << 8 | u128::from(*b));
        self.one(Key::Vector(ty, key), |e| {
            let c = e.b.func.dfg.constants.insert(clif::ConstantData::from(bytes));
            e.b.ins().vconst(ty, c)
        })
    }

    /// Sets a register in the copy being emitted.
    pub(crate) fn set(&mut self, r: Reg, rep: Rep) {
        let rep = match (self.facts.class[r.idx()], rep) {
            // Later ops rely on the shape that the analysis promised.
            (Class::Affine(s), Rep::Affine(mine, base)) if !mine.same(&s) => {
                let ty = self.f.regs[r.idx()];
                let words = self.words_of(&Rep::Affine(mine, base), &s, ty);
                Rep::Affine(s, words)
            }
            (_, rep) => rep,
        };
        self.reps.insert(r, rep);
        self.written.push(r);
        self.verified.remove(&r);
    }

    /// Sets a register to what all lanes of a full copy read, or were told by a routine. Rows become scalars where the analysis promised lanes
    /// that are alike: that rests on where the value comes from, not on how it was fetched.
    pub(crate) fn set_fetched(&mut self, r: Reg, rep: Rep) {
        let rep = match (self.facts.class[r.idx()], rep) {
            (Class::Affine(s), rows @ Rep::Rows(_)) => {
                let ty = self.f.regs[r.idx()];
                let words = (0..s.groups()).map(|g| {
                    let v = self.lane_of(&rows, s.first(g), 0, ty);
                    if ty == Ty::P { self.b.ins().icmp_imm_s(IntCC::NotEqual, v, 0) } else { v }
                });
                let words = words.collect();
                Rep::Affine(s, words)
            }
            (_, rep) => rep,
        };
        self.set(r, rep);
    }

    /// The bits of a predicate: bit `l` for lane `l`.
    pub(crate) fn bits(&mut self, rep: &Rep) -> Value {
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

    /// Bits of eight mask vectors.
    pub(crate) fn bits_of_rows(&mut self, rows: &[Value]) -> Value {
        let halves: Vec<Value> = (0..4).map(|i| self.b.ins().snarrow(rows[2 * i], rows[2 * i + 1])).collect();
        let low = self.b.ins().snarrow(halves[0], halves[1]);
        let high = self.b.ins().snarrow(halves[2], halves[3]);
        let low = self.b.ins().vhigh_bits(types::I32, low);
        let high = self.b.ins().vhigh_bits(types::I32, high);
        let high = self.b.ins().ishl_imm_s(high, 16);
        self.b.ins().bor(low, high)
    }

    /// The mask vector of a nibble of lanes.
    pub(crate) fn mask_of_nibble(&mut self, nibble: Value) -> Value {
        let wide = self.b.ins().uextend(types::I64, nibble);
        let at = self.b.ins().ishl_imm_s(wide, 4);
        let addr = self.b.ins().iadd(self.pool_ptr, at);
        self.b.ins().load(types::I32X4, Self::trusted(), addr, 0)
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

    /// Where a routine finds a value: constants as such, the rest in scratch rows.
    pub(crate) fn loc(&mut self, v: Val) -> Loc {
        if let Val::Imm(x, ty) = v {
            return Loc::Imm(if ty == Ty::P { x & 1 } else { x & ty.mask() });
        }
        let ty = self.ty(v);
        let rep = self.rep(v);
        self.loc_of(&rep, ty)
    }

    /// A fresh scratch row for the instruction being emitted.
    pub(crate) fn scratch_row(&mut self, ty: Ty) -> (u32, Loc) {
        let at = self.plan.layout.scratch + 256 * self.n_scratch_used;
        self.n_scratch_used += 1;
        assert!(self.n_scratch_used <= SCRATCH_ROWS, "out of scratch rows at {:?}", self.at);
        (at, if ty == Ty::B64 { Loc::Row64(at) } else { Loc::Row32(at) })
    }

    pub(crate) fn loc_of(&mut self, rep: &Rep, ty: Ty) -> Loc {
        let (at, loc) = self.scratch_row(ty);
        if let Rep::Affine(s, base) = rep
            && s.is_uniform()
            && ty != Ty::P
        {
            let w = self.as_word(base[0], ty);
            self.store_warp(w, at as usize);
            return Loc::Scalar(at);
        }
        if let Rep::Affine(s, base) = rep
            && ty != Ty::P
        {
            let (stride, bits) = (s.stride, ty.bits() as u8);
            let words = if s.is_linear() { 1 } else { PACKS };
            for p in 0..words {
                let first = self.first_lane(&(*s, base.clone()), p, ty);
                let w = self.as_word(first, ty);
                self.store_warp(w, at as usize + 8 * p);
            }
            return if words == 1 { Loc::Linear { at, stride, bits } } else { Loc::Affine { at, stride, bits } };
        }
        let rows = self.rows(rep, ty);
        for (i, v) in rows.into_iter().enumerate() {
            self.store_warp(v, at as usize + 16 * i);
        }
        loc
    }

    /// Where a routine finds the address of an access. Its sum with the offset wraps at its own width, which the place tells.
    pub(crate) fn address_loc(&mut self, loc: Loc, ty: Ty) -> Loc {
        let at = match loc {
            _ if ty == Ty::B64 => return loc,
            Loc::Scalar(at) => at,
            Loc::Imm(x) => {
                let (at, _) = self.scratch_row(Ty::B64);
                let word = self.i64(x as i64);
                self.store_warp(word, at as usize);
                at
            }
            Loc::Row32(_) | Loc::Row64(_) | Loc::Linear { .. } | Loc::Groups { .. } | Loc::Affine { .. } => return loc,
        };
        Loc::Linear { at, stride: 0, bits: ty.bits() as u8 }
    }

    /// Reads a result that a routine left in a scratch row.
    pub(crate) fn read_scratch(&mut self, at: u32, ty: Ty) -> Rep {
        let t = vector_type(ty);
        Rep::Rows((0..PACKS * width(ty)).map(|i| self.load_warp(t, at as usize + 16 * i)).collect())
    }
}
