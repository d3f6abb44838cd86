//! Values as operands of vector instructions: part by part, from wherever they live.

use handloom_ir::simt::{Reg, Term, Val};
use handloom_ir::types::Ty;
use handloom_plan::analysis::shape::Shape;
use handloom_plan::subnormals;
use iced_x86::{Code, Register};
use smallvec::SmallVec;

use crate::alloc::Place;
use crate::asm::{Mem, Out, Rm};
use crate::emit::*;

/// What a result of `.f32` that is a NaN becomes.
pub(crate) const NAN32: u64 = (u32::MAX >> 1) as u64;
/// Four bits for each kind of number: where it is a NaN, what is there stays; all others replace it.
pub(crate) const NAN_TABLE: u64 = 0x1111_1100;

/// A source, as the code of an op sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Src {
    pub(crate) at: At,
    pub(crate) ty: Ty,
    /// Its NaNs need not be canonical, and the op looks at their bits.
    pub(crate) odd: bool,
    /// Read as `.f32`, it is no subnormal number.
    pub(crate) flushed: bool,
}

/// Where a source is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    Vectors([u8; 4]),
    Row(u32),
    /// Words of the groups of a shape.
    Words(Shape, u32),
    Imm(u64),
    /// One vector, every part of it.
    Given(Register),
    /// Memory, part by part.
    Memory([Mem; 4]),
    /// A predicate.
    Mask(u32),
    Flags(u32),
}

impl Src {
    /// A source of which nothing else is known.
    pub(crate) fn new(at: At, ty: Ty) -> Src {
        Src { at, ty, odd: false, flushed: false }
    }

    /// Whether an instruction can read it from memory, as it lies there.
    pub(crate) fn is_memory(&self) -> bool {
        match self.at {
            At::Row(_) | At::Imm(_) | At::Memory(_) => !self.odd,
            At::Words(shape, _) => shape.is_uniform() && !self.odd,
            At::Vectors(_) | At::Given(_) | At::Mask(_) | At::Flags(_) => false,
        }
    }
}

/// 64 bits, or 32 and less.
pub(crate) fn is_wide(ty: Ty) -> bool {
    ty == Ty::B64
}

/// One of two codes by width.
pub(crate) fn by_width(ty: Ty, narrow: Code, wide: Code) -> Code {
    if is_wide(ty) { wide } else { narrow }
}

/// The comparison of floats of a width, into a mask.
pub(crate) fn float_compare(ty: Ty) -> Code {
    by_width(ty, Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae, Code::EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae)
}

/// The host's number of the comparison that holds where one of two floats is a NaN.
pub(crate) const UNORDERED: u32 = 3;

/// Loads of a whole vector.
pub(crate) fn load_code(ty: Ty) -> Code {
    by_width(ty, Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512)
}

/// Stores of a whole vector.
pub(crate) fn store_code(ty: Ty) -> Code {
    by_width(ty, Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm, Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm)
}

/// Lanes of a part.
fn lanes(ty: Ty, q: usize) -> std::ops::Range<usize> {
    if is_wide(ty) { 8 * q..8 * q + 8 } else { 16 * q..16 * q + 16 }
}

impl Emit<'_> {
    pub(crate) fn src(&self, v: Val) -> Src {
        let ty = self.ty(v);
        let at = match v {
            Val::Imm(x, ty) => At::Imm(x & ty.mask()),
            Val::Reg(r) if self.operands.iter().any(|o| o.0 == r) => self.memory_operand(r),
            Val::Reg(r) => match self.place(r) {
                Place::Vectors(v) if self.alike.contains(&r) && !self.apart.contains(&r) => At::Vectors([v[0]; 4]),
                Place::Nowhere => At::Imm(0),
                Place::Vectors(v) => At::Vectors(v),
                Place::Row(at) => At::Row(at),
                Place::Mask(at) => At::Mask(at),
                Place::Flags(at) => At::Flags(at),
                Place::Words(at) => At::Words(self.shape(v).unwrap_or(Shape::UNIFORM), at),
            },
        };
        let flushed = match v {
            Val::Imm(x, _) => subnormals::is_none(x),
            Val::Reg(r) => self.plan.without_subnormals[r.idx()],
        };
        Src { at, ty, odd: false, flushed }
    }

    fn memory_operand(&self, r: Reg) -> At {
        let parts = self.operands.iter().find(|o| o.0 == r).map_or([].as_slice(), |o| &o.1);
        At::Memory(std::array::from_fn(|q| parts.get(q).or(parts.first()).copied().unwrap_or(ctx(0))))
    }

    /// A source whose NaNs are to be canonical.
    pub(crate) fn clean_src(&self, v: Val) -> Src {
        let odd = matches!(v, Val::Reg(r) if self.plan.may_hold_odd_nan[r.idx()]);
        Src { odd, ..self.src(v) }
    }

    /// A constant for every lane.
    pub(crate) fn constant(&mut self, ty: Ty, x: u64) -> Mem {
        let word = if is_wide(ty) { x } else { u64::from(x as u32) * 0x1_0000_0001 };
        Mem::constant(self.a.repeated(word), 0)
    }

    /// The same in the vector that keeps it, or in memory.
    pub(crate) fn constant_rm(&mut self, ty: Ty, x: u64) -> Rm {
        match self.kept_in(ty, Repeated::Number(x)) {
            Some(v) => Rm::Reg(v),
            None => Rm::Mem(self.constant(ty, x)),
        }
    }

    /// The vector that keeps what all lanes have.
    fn kept_in(&self, ty: Ty, value: Repeated) -> Option<Register> {
        let k = self.kept.iter().find(|k| k.is_wide == is_wide(ty) && k.value == value)?;
        Some(zmm(k.vector))
    }

    /// A part of a source as a register or memory; `scratch` where it must be made. Clobbers `eax` and `k7`.
    pub(crate) fn rm(&mut self, s: &Src, q: usize, scratch: u8) -> Rm {
        if s.odd {
            return Rm::Reg(self.reg(s, q, scratch));
        }
        match s.at {
            At::Vectors(v) => Rm::Reg(zmm(v[q])),
            At::Given(r) => Rm::Reg(r),
            At::Memory(m) => Rm::Mem(m[q]),
            At::Row(at) => Rm::Mem(ctx(at + 64 * q as u32)),
            At::Imm(x) => self.constant_rm(s.ty, x),
            At::Words(shape, at) if shape.is_uniform() => {
                self.kept_in(s.ty, Repeated::Word(at)).map_or_else(|| Rm::Mem(ctx(at).spread()), Rm::Reg)
            }
            At::Words(shape, at) => {
                self.make_affine(&shape, at, s.ty, q, zmm(scratch));
                Rm::Reg(zmm(scratch))
            }
            At::Mask(_) | At::Flags(_) => panic!("a predicate as a vector at {:?}", self.at),
        }
    }

    /// A part of a source in a register.
    pub(crate) fn reg(&mut self, s: &Src, q: usize, scratch: u8) -> Register {
        let plain = Src { odd: false, ..*s };
        let to = zmm(scratch);
        let r = match self.rm(&plain, q, scratch) {
            Rm::Reg(r) => r,
            Rm::Mem(m) => {
                self.fetch(s.ty, to, m, m.is_spread());
                to
            }
        };
        if s.odd {
            if r == to {
                self.canonical(s.ty, to.into());
            } else {
                self.canonical_copy(s.ty, to, r);
            }
            return to;
        }
        r
    }

    fn fetch(&mut self, ty: Ty, to: Register, m: Mem, spread: bool) {
        if spread {
            self.copy(ty, to.into(), m.spread().into());
        } else {
            self.a.op2(load_code(ty), to, m);
        }
    }

    /// Copies a part to a register.
    pub(crate) fn copy(&mut self, ty: Ty, out: Out, rm: Rm) {
        match rm {
            Rm::Mem(m) if m.is_spread() => {
                if self.has_spread(ty, out.reg, m) {
                    return;
                }
                let code = by_width(ty, Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32, Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64);
                self.a.op2(code, out, m.single());
                if out.mask == ALL {
                    self.spreads.push((ty, out.reg, m, self.a.position()));
                }
            }
            rm if rm == Rm::Reg(out.reg) => {}
            rm => self.a.op2(load_code(ty), out, rm),
        }
    }

    /// Whether a vector for one instruction holds a word of the stack already: where warps go side by side, those are the same for all.
    fn has_spread(&mut self, ty: Ty, to: Register, m: Mem) -> bool {
        let fits = !self.members.is_empty() && m.is_of_stack() && self.a.has_wide_vectors();
        self.spreads.retain(|s| self.a.still_holds(s.1, s.3));
        if !fits {
            self.spreads.clear();
        }
        fits && self.spreads.iter().any(|s| (s.0, s.1, s.2) == (ty, to, m))
    }

    /// A part of an affine value.
    fn make_affine(&mut self, s: &Shape, at: u32, ty: Ty, q: usize, to: Register) {
        let spread = by_width(ty, Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32, Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64);
        let first = lanes(ty, q).start;
        self.a.op2(spread, to, ctx(at + 8 * s.group_of(first) as u32));
        // By group, whether it is done.
        let mut done = 1u32 << s.group_of(first);
        for l in lanes(ty, q) {
            let g = s.group_of(l);
            if done >> g & 1 != 0 {
                continue;
            }
            done |= 1 << g;
            let of_group = lanes(ty, q).filter(|l| s.group_of(*l) == g).fold(0u64, |m, l| m | 1 << (l - first));
            self.a.number(RAX, of_group);
            self.a.op2(Code::VEX_Kmovd_kr_r32, Register::K7, EAX);
            self.a.op2(spread, Out::masked(to, Register::K7), ctx(at + 8 * g as u32));
        }
        let deltas: SmallVec<[u64; 16]> = lanes(ty, q).map(|l| s.delta(l).cast_unsigned()).collect();
        if deltas.iter().any(|d| *d != 0) {
            let c = self.lanes_constant(ty, &deltas);
            let add = by_width(ty, Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64);
            self.a.op3(add, to, to, c);
        }
        if ty == Ty::B16 {
            let c = self.constant(ty, 0xffff);
            self.a.op3(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, to, to, c);
        }
    }

    /// A constant that differs between lanes.
    pub(crate) fn lanes_constant(&mut self, ty: Ty, lanes: &[u64]) -> Mem {
        let c = if is_wide(ty) {
            self.a.doubles(std::array::from_fn(|i| lanes[i]))
        } else {
            self.a.words(std::array::from_fn(|i| lanes[i] as u32))
        };
        Mem::constant(c, 0)
    }

    /// Numbers of the lanes of a part.
    pub(crate) fn lane_numbers(&mut self, ty: Ty, q: usize) -> Mem {
        let n = if is_wide(ty) { 8 } else { 16 };
        let numbers: Vec<u64> = (0..n).map(|i| n * q as u64 + i).collect();
        self.lanes_constant(ty, &numbers)
    }

    /// Eight lanes of a source of 32 bits or less as 64 bits, extended from 32.
    pub(crate) fn widened(&mut self, s: &Src, q: usize, signed: bool, scratch: u8) -> Register {
        let code = if signed { Code::EVEX_Vpmovsxdq_zmm_k1z_ymmm256 } else { Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256 };
        let to = zmm(scratch);
        match (s.at, s.odd) {
            (At::Row(at), false) => self.a.op2(code, to, ctx(at + 32 * q as u32)),
            _ => {
                let r = self.reg(s, q / 2, scratch);
                if q % 2 == 1 {
                    self.a.op2i(Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8, ymm(to), r, 1);
                    self.a.op2(code, to, ymm(to));
                } else {
                    self.a.op2(code, to, ymm(r));
                }
            }
        }
        to
    }

    /// Sixteen lanes of the lower halves of 64 bits, or of the upper ones. Uses the two vectors after `scratch` too.
    pub(crate) fn narrowed(&mut self, s: &Src, q: usize, high: bool, scratch: u8) -> Register {
        let [x, y] = [0, 1].map(|i| self.reg(s, 2 * q + usize::from(i), scratch + i));
        let to = zmm(scratch + 2);
        self.a.every_second(4, high, to, x, y);
        to
    }

    /// Copies a vector with canonical NaNs: all but NaNs replace what is there, as a table of four bits for each kind of number says.
    fn canonical_copy(&mut self, ty: Ty, to: Register, from: Register) {
        if !self.a.has_wide_vectors() {
            // The copy is none there.
            self.a.op2(load_code(ty), to, from);
            self.canonical(ty, to.into());
            return;
        }
        let (nan, code) = if is_wide(ty) {
            (u64::MAX >> 1, Code::EVEX_Vfixupimmpd_zmm_k1z_zmm_zmmm512b64_imm8_sae)
        } else {
            (NAN32, Code::EVEX_Vfixupimmps_zmm_k1z_zmm_zmmm512b32_imm8_sae)
        };
        let nan = self.constant_rm(ty, nan);
        self.a.op2(load_code(ty), to, nan);
        let table = self.constant_rm(ty, NAN_TABLE);
        self.a.op3i(code, to, from, table, 0);
    }

    /// Makes NaNs canonical. Uses `k7`.
    pub(crate) fn canonical(&mut self, ty: Ty, out: Out) {
        let (code, nan) = (float_compare(ty), if is_wide(ty) { u64::MAX >> 1 } else { NAN32 });
        self.a.op3i(code, Out::masked(Register::K7, out.mask), out.reg, out.reg, UNORDERED);
        let nan = self.constant_rm(ty, nan);
        self.a.op2(load_code(ty), Out::masked(out.reg, Register::K7), nan);
    }

    /// Where a part of a result is written: its own vector, or vector 7 on the way to its row.
    pub(crate) fn out(&self, r: Reg, q: usize) -> Out {
        let ty = self.f.regs[r.idx()];
        match self.place(r) {
            Place::Vectors(v) if self.is_unshared(r, v[q]) => zmm(v[q]).into(),
            Place::Vectors(v) => Out::masked(zmm(v[q]), self.mask(ty, q)),
            _ => zmm(7).into(),
        }
    }

    /// Before some lanes of a part of a result are read from memory: those that are not, and of which it holds nothing, find zeros there. (What is left of other values may
    /// be numbers of which arithmetic on all lanes is slow, as hosts are with subnormal ones.)
    pub(crate) fn nothing_first(&mut self, d: Reg, vector: u8, mask: Register) {
        if mask != ALL && self.is_unshared(d, vector) {
            let v = zmm(vector);
            self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, v, v, v);
        }
    }

    /// Whether a vector of a register holds nothing for lanes that wait elsewhere: that of one that lives in this block alone, or any where that is known. (Gangs have vectors of their own.)
    fn is_unshared(&self, r: Reg, vector: u8) -> bool {
        if self.going.is_some() {
            return !self.places.is_own[r.idx()];
        }
        let of_block = !self.places.is_own[r.idx()] && self.places.kept >> vector & 1 == 0;
        of_block || self.awaited.get(self.at.0).is_some_and(|held| held >> vector & 1 == 0)
    }

    /// After a part of a result was written to `out`.
    pub(crate) fn commit(&mut self, r: Reg, q: usize) {
        let ty = self.f.regs[r.idx()];
        if let Place::Row(at) = self.place(r) {
            // Rows of values of one block are nobody else's there.
            let mask = if self.places.is_own[r.idx()] { self.mask(ty, q) } else { ALL };
            self.a.store(store_code(ty), ctx(at + 64 * q as u32), zmm(7), mask);
        }
    }

    /// Bits of a predicate in `eax`, for lanes outside of the block anything. Uses `ecx`, `k5`, `k6`, vector 3.
    pub(crate) fn bits(&mut self, s: &Src) {
        match s.at {
            At::Imm(x) => self.a.number(RAX, if x & 1 == 1 { 0xffff_ffff } else { 0 }),
            At::Mask(at) => self.load32(EAX, ctx(at)),
            At::Flags(at) => {
                for (k, q) in [(Register::K5, 0), (Register::K6, 1)] {
                    self.a.op2(load_code(Ty::B32), zmm(3), ctx(at + 64 * q));
                    self.a.op3(Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32, k, zmm(3), zmm(3));
                }
                self.a.op3(Code::VEX_Kunpckwd_kr_kr_kr, Register::K5, Register::K6, Register::K5);
                self.a.op2(Code::VEX_Kmovd_r32_kr, EAX, Register::K5);
            }
            At::Words(shape, at) => {
                for g in 0..shape.groups() {
                    let to = if g == 0 { EAX } else { ECX };
                    self.load32(to, ctx(at + 8 * g as u32));
                    self.a.op1(Code::Neg_rm32, to);
                    if shape.groups() > 1 {
                        self.a.imm(Code::And_rm32_imm32, to, shape.lanes_of(g).cast_signed());
                    }
                    if g > 0 {
                        self.a.op2(Code::Or_r32_rm32, EAX, ECX);
                    }
                }
            }
            At::Vectors(_) | At::Row(_) | At::Given(_) | At::Memory(_) => {
                panic!("a vector as a predicate at {:?}", self.at)
            }
        }
    }

    /// Whether lanes that take no part keep their bits of a predicate.
    fn keeps_others(&self, r: Reg) -> bool {
        self.in_part && self.places.is_own[r.idx()]
    }

    /// Notes that `k5` and `k6` hold the halves of a predicate that was just made: who reads it next may find it there.
    pub(crate) fn note_halves(&mut self, r: Reg) {
        self.halves = match self.place(r) {
            Place::Mask(at) if !self.is_for_branch(r) => {
                if !self.keeps_others(r) {
                    self.a.remember_word(ctx(at), Register::K5);
                }
                self.a.has_wide_vectors().then(|| (at, self.a.position()))
            }
            _ => None,
        };
    }

    /// The mask register that holds a part of a predicate, by its word, since it was made.
    fn half_at_hand(&self, at: u32, ty: Ty, q: usize) -> Option<Register> {
        let (_, since) = self.halves.filter(|h| !is_wide(ty) && h.0 == at)?;
        let k = if q == 0 { Register::K5 } else { Register::K6 };
        self.a.still_holds(k, since).then_some(k)
    }

    /// A part of a predicate in a mask register: in `k`, or where it is. Clobbers `eax`, `ecx`, `k5`, `k6`, vector 3, before it writes.
    pub(crate) fn part_bits(&mut self, s: &Src, ty: Ty, q: usize, k: Register) -> Register {
        if let At::Mask(at) = s.at {
            if let Some(k) = self.half_at_hand(at, ty, q) {
                return k;
            }
            let (code, at) = if is_wide(ty) {
                (Code::VEX_Kmovb_kr_km8, at + q as u32)
            } else {
                (Code::VEX_Kmovw_kr_km16, at + 2 * q as u32)
            };
            self.a.op2(code, k, ctx(at));
            return k;
        }
        self.bits(s);
        let by = if is_wide(ty) { 8 * q } else { 16 * q };
        if by > 0 {
            self.a.imm8(Code::Shr_rm32_imm8, EAX, by as u32);
        }
        self.a.op2(Code::VEX_Kmovd_kr_r32, k, EAX);
        k
    }

    /// Whether the instruction being emitted is the last of its block, and makes what the branch behind it asks and nobody else.
    pub(crate) fn is_for_branch(&self, r: Reg) -> bool {
        let (b, i) = self.at;
        let block = &self.f.blocks[b];
        let is_asked = matches!(block.term, Term::Branch { cond: Val::Reg(c), .. } if c == r);
        is_asked && i + 1 == block.insts.len() && !self.places.is_own[r.idx()]
    }

    /// Writes the predicate in `eax` to a register, for the lanes of the block. Uses `ecx`, `k5`, vector 3.
    pub(crate) fn set_bits(&mut self, r: Reg) {
        self.halves = None;
        match self.place(r) {
            Place::Mask(_) if self.is_for_branch(r) => self.at_hand = Some(r),
            Place::Mask(at) => {
                if self.keeps_others(r) {
                    self.a.op2(Code::Xor_r32_rm32, EAX, ctx(at));
                    self.a.op2(Code::And_r32_rm32, EAX, LANES);
                    self.a.store(Code::Xor_rm32_r32, ctx(at), EAX, ALL);
                } else {
                    self.store32(ctx(at), EAX);
                }
            }
            Place::Flags(at) => {
                for q in 0..2 {
                    if q == 1 {
                        self.a.imm8(Code::Shr_rm32_imm8, EAX, 16);
                    }
                    self.a.op2(Code::VEX_Kmovd_kr_r32, Register::K5, EAX);
                    self.a.op2(Code::EVEX_Vpmovm2d_zmm_kr, zmm(3), Register::K5);
                    let mask = self.mask(Ty::B32, q as usize);
                    self.a.store(store_code(Ty::B32), ctx(at + 64 * q), zmm(3), mask);
                }
            }
            Place::Words(at) => {
                self.a.imm(Code::And_rm32_imm32, EAX, 1);
                self.store64(ctx(at), RAX);
            }
            Place::Nowhere | Place::Vectors(_) | Place::Row(_) => {}
        }
    }
}
