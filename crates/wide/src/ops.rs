//! Value ops as vector instructions, part by part: 16 lanes of 32 bits, or 8 of 64.
//!
//! # Invariants
//! - Sources may use vectors 0 to 3, an op vectors 4 to 6. The result goes to `out` with the last instruction that reads a source, so that a register
//!   may be source and result.
//! - An op that has no arm here is done by the routine; nothing is written before that is known.

use handloom_ir::simt::{FMode, Inst, Op, Pure, Reg};
use handloom_ir::types::{Float, Int, PrmtMode, Ty};
use iced_x86::{Code, Register, RoundingControl};
use smallvec::SmallVec;

use crate::asm::{Out, Rm};
use crate::emit::*;
use crate::flushes::is_flush;
use crate::half::Half;
use crate::table::{ArithmeticForm, MinMax, arithmetic, float_cmp, int_cmp, shift, simple, width_of};
use crate::values::{At, Src, by_width, float_compare, is_wide, load_code};

/// Whether the runtime does an op, by its routine, wherever sources vary.
pub fn is_for_routine(op: Pure) -> bool {
    let is_logic = match op {
        Pure::Mov(ty) | Pure::Not(ty) | Pure::And(ty) | Pure::Or(ty) | Pure::Xor(ty) | Pure::Select(ty) => ty == Ty::P,
        Pure::AddCarry(ty) | Pure::SubBorrow(ty) => ty != Ty::B16,
        _ => false,
    };
    !(is_logic || has_vector_code(op) || crate::approx::is_rounded(op))
}

/// Whether an op with these sources has vector code here.
pub(crate) fn has_vector_code(op: Pure) -> bool {
    match op {
        _ if op.results().0 == Ty::P => has_mask_code(op),
        Pure::Mov(_) | Pure::Neg(_) | Pure::Not(_) | Pure::Abs(_) | Pure::AbsDiff(_) | Pure::Cnot(_) => true,
        _ if simple(op).is_some() || shift(op).is_some() => true,
        _ if arithmetic(op).is_some() => true,
        Pure::MulHi(_) => true,
        Pure::MulWide(int) => int.ty != Ty::B64,
        Pure::Shf { .. } | Pure::Lop3(_) | Pure::Select(_) | Pure::Ext { .. } | Pure::Pack(_) | Pure::Half { .. } => {
            true
        }
        Pure::FromPred(ty) => ty != Ty::P,
        _ if crate::integer::has_code(op) => true,
        _ if of_singles(op).is_some() => true,
        _ if crate::half::has_code(op) || crate::video::has_code(op) || crate::approx::has_code(op) => true,
        Pure::FMin { ty, .. } | Pure::FMax { ty, .. } => ty.is_of_host(),
        Pure::FAbs { ty, .. } | Pure::FNeg { ty, .. } | Pure::Copysign(ty) => ty.is_of_host(),
        Pure::Cvt(c) => crate::convert::conversion(c).is_some(),
        _ => false,
    }
}

/// The op of `.f32` that a packed one does with both of its elements.
fn of_singles(op: Pure) -> Option<Pure> {
    let single = |m: FMode| (m.ty == Float::F32x2).then_some(FMode { ty: Float::F32, ..m });
    let is_pair = |ty: Float| ty == Float::F32x2;
    Some(match op {
        Pure::FAdd(m) => Pure::FAdd(single(m)?),
        Pure::FSub(m) => Pure::FSub(single(m)?),
        Pure::FMul(m) => Pure::FMul(single(m)?),
        Pure::FFma(m) => Pure::FFma(single(m)?),
        Pure::FMin { ty, ftz, nan, xorsign } if is_pair(ty) => Pure::FMin { ty: Float::F32, ftz, nan, xorsign },
        Pure::FMax { ty, ftz, nan, xorsign } if is_pair(ty) => Pure::FMax { ty: Float::F32, ftz, nan, xorsign },
        Pure::FAbs { ty, ftz } if is_pair(ty) => Pure::FAbs { ty: Float::F32, ftz },
        Pure::FNeg { ty, ftz } if is_pair(ty) => Pure::FNeg { ty: Float::F32, ftz },
        _ => return None,
    })
}

fn has_mask_code(op: Pure) -> bool {
    match op {
        Pure::ICmp(cmp, _) => int_cmp(cmp).is_some(),
        Pure::FCmp { ty, .. } => ty.is_of_host() || Half::of(ty).is_some(),
        Pure::ToPred(ty) => ty != Ty::P,
        Pure::Testp { ty, .. } => ty.is_of_host(),
        _ => false,
    }
}

fn are_constant(src: &[Src]) -> bool {
    src.iter().all(|s| matches!(s.at, At::Imm(_)))
}

/// The type whose lanes an op's parts have.
pub(crate) fn lanes_of(op: Pure) -> Ty {
    let (result, _) = op.results();
    if result == Ty::P { op.sources().first().copied().unwrap_or(Ty::B32) } else { result }
}

impl Emit<'_> {
    /// A value op whose result varies, or is one vector of a scalar.
    pub(crate) fn vector_op(&mut self, inst: &Inst) {
        let Op::Pure(op) = inst.op else { panic!("{:?} is no value op", inst.op) };
        let src: SmallVec<[Src; 3]> = inst.src.iter().map(|v| self.source_of(op, inst.dst[0], *v)).collect();
        let d = inst.dst[0];
        let ty = self.f.regs[d.idx()];
        if ty == Ty::P {
            self.mask_op(op, &src);
            self.set_bits(d);
            if !is_wide(lanes_of(op)) {
                self.note_halves(d);
            }
            return;
        }
        for q in self.parts_in_use(ty) {
            let out = self.out(d, q);
            self.part(op, q, &src, out);
            if op.facts().is_loose && !self.plan.may_hold_odd_nan[d.idx()] {
                self.canonical(ty, out);
            }
            self.commit(d, q);
        }
    }

    /// A choice where masks are vectors and one of both is zero: a mask kept in place of ones.
    fn select_or_zero(&mut self, ty: Ty, q: usize, src: &[Src], out: Out) {
        use Code::*;
        let k = self.part_bits(&src[0], ty, q, Register::K5);
        let lanes = by_width(ty, EVEX_Vpmovm2d_zmm_kr, EVEX_Vpmovm2q_zmm_kr);
        self.a.op2(lanes, zmm(0), k);
        let (code, value) = if matches!(src[2].at, At::Imm(0)) {
            (by_width(ty, EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64), &src[1])
        } else {
            (by_width(ty, EVEX_Vpandnd_zmm_k1z_zmm_zmmm512b32, EVEX_Vpandnq_zmm_k1z_zmm_zmmm512b64), &src[2])
        };
        let a = self.rm(value, q, 1);
        if out.mask == ALL {
            self.a.op3(code, out, zmm(0), a);
        } else {
            self.a.op3(code, zmm(0), zmm(0), a);
            self.copy(ty, out, zmm(0).into());
        }
    }

    /// A source of a value op with such a result.
    pub(crate) fn source_of(&self, op: Pure, result: Reg, v: handloom_ir::simt::Val) -> Src {
        if self.plan.takes_odd_nans(op, result) { self.src(v) } else { self.clean_src(v) }
    }

    /// A value op on predicates alone, if it is one.
    pub(crate) fn logic(&mut self, inst: &Inst, op: Pure) -> bool {
        let d = inst.dst[0];
        let src = |e: &Self, i: usize| e.src(inst.src[i]);
        match op {
            Pure::Mov(Ty::P) => self.bits(&src(self, 0)),
            Pure::Not(Ty::P) => {
                self.bits(&src(self, 0));
                self.a.op1(Code::Not_rm32, EAX);
            }
            Pure::And(Ty::P) | Pure::Or(Ty::P) | Pure::Xor(Ty::P) => {
                self.bits(&src(self, 0));
                self.a.op2(Code::Mov_r32_rm32, EDX, EAX);
                self.bits(&src(self, 1));
                let code = match op {
                    Pure::And(_) => Code::And_r32_rm32,
                    Pure::Or(_) => Code::Or_r32_rm32,
                    _ => Code::Xor_r32_rm32,
                };
                self.a.op2(code, EAX, EDX);
            }
            Pure::Select(Ty::P) => {
                // `b ^ (p & (a ^ b))`.
                self.bits(&src(self, 1));
                self.a.op2(Code::Mov_r32_rm32, EDX, EAX);
                self.bits(&src(self, 2));
                self.a.op2(Code::Mov_r32_rm32, Register::ESI, EAX);
                self.a.op2(Code::Xor_r32_rm32, EDX, EAX);
                self.bits(&src(self, 0));
                self.a.op2(Code::And_r32_rm32, EAX, EDX);
                self.a.op2(Code::Xor_r32_rm32, EAX, Register::ESI);
            }
            _ => return false,
        }
        self.set_bits(d);
        true
    }

    /// A comparison: its bits in `eax`.
    pub(crate) fn mask_op(&mut self, op: Pure, src: &[Src]) {
        let ty = lanes_of(op);
        if is_wide(ty) {
            let k = [Register::K5, Register::K6, Register::K7];
            self.mask_part(op, 0, src, k[0]);
            self.mask_part(op, 1, src, k[1]);
            self.a.op3(Code::VEX_Kunpckbw_kr_kr_kr, k[0], k[1], k[0]);
            self.a.op2(Code::VEX_Kmovd_r32_kr, EDX, k[0]);
            self.mask_part(op, 2, src, k[0]);
            self.mask_part(op, 3, src, k[1]);
            self.a.op3(Code::VEX_Kunpckbw_kr_kr_kr, k[0], k[1], k[0]);
            self.a.op2(Code::VEX_Kmovd_r32_kr, EAX, k[0]);
            self.a.imm8(Code::Shl_rm32_imm8, EAX, 16);
            self.a.op2(Code::Or_r32_rm32, EAX, EDX);
        } else {
            self.mask_part(op, 0, src, Register::K5);
            self.mask_part(op, 1, src, Register::K6);
            self.a.op3(Code::VEX_Kunpckwd_kr_kr_kr, Register::K5, Register::K6, Register::K5);
            self.a.op2(Code::VEX_Kmovd_r32_kr, EAX, Register::K5);
        }
    }

    /// A part of a comparison, in a mask register. Uses `eax` and `k7` before it writes.
    pub(crate) fn mask_part(&mut self, op: Pure, q: usize, src: &[Src], k: Register) {
        match op {
            Pure::ICmp(cmp, int) => {
                let swapped = [src[1], src[0]];
                let swaps = src[0].is_memory() && !src[1].is_memory();
                let (src, cmp) = if swaps { (&swapped[..], cmp.swapped()) } else { (src, cmp) };
                let Some(n) = int_cmp(cmp) else { panic!("{op:?} at {:?}", self.at) };
                let signed16 = int.ty == Ty::B16 && int.signed;
                let a = if signed16 { self.sext16(&src[0], q, 0) } else { self.reg(&src[0], q, 0) };
                let b = if signed16 { Rm::Reg(self.sext16(&src[1], q, 1)) } else { self.rm(&src[1], q, 1) };
                let code = match (is_wide(int.ty), int.signed) {
                    (false, true) => Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8,
                    (false, false) => Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8,
                    (true, true) => Code::EVEX_Vpcmpq_kr_k1_zmm_zmmm512b64_imm8,
                    (true, false) => Code::EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8,
                };
                self.a.op3i(code, k, a, b, n);
            }
            Pure::FCmp { ty, .. } if Half::of(ty).is_some() => self.compare_halves(op, q, src, k),
            Pure::FCmp { cmp, ty, ftz } => {
                let w = width_of(ty);
                let flush = ftz && ty == Float::F32;
                let a = if flush { self.flushed(&src[0], q, 0) } else { self.reg(&src[0], q, 0) };
                let b = if flush { Rm::Reg(self.flushed(&src[1], q, 1)) } else { self.rm(&src[1], q, 1) };
                let code = float_compare(w);
                self.a.op3i(code, k, a, b, float_cmp(cmp));
            }
            Pure::ToPred(ty) => {
                let a = self.reg(&src[0], q, 0);
                let code =
                    by_width(ty, Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32, Code::EVEX_Vptestmq_kr_k1_zmm_zmmm512b64);
                self.a.op3(code, k, a, a);
            }
            Pure::Testp { property, ty } => self.has_property(property, width_of(ty), q, src, k),
            other => panic!("{other:?} as a mask at {:?}", self.at),
        }
    }

    /// A source of 16 bits, extended by its sign.
    pub(crate) fn sext16(&mut self, s: &Src, q: usize, scratch: u8) -> Register {
        let r = self.reg(s, q, scratch);
        let to = zmm(scratch);
        self.a.op2i(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, to, r, 16);
        self.a.op2i(Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8, to, to, 16);
        to
    }

    /// A source of `.f32` with subnormal numbers made zero. Uses `k7`.
    pub(crate) fn flushed(&mut self, s: &Src, q: usize, scratch: u8) -> Register {
        let r = self.reg(s, q, scratch);
        if s.flushed {
            return r;
        }
        let to = zmm(scratch);
        if r != to {
            self.a.op2(load_code(Ty::B32), to, r);
        }
        self.flush(to.into());
        to
    }

    /// Makes subnormal numbers of `.f32` zero. Uses `k7`.
    pub(crate) fn flush(&mut self, out: Out) {
        // Zeros stay what they are.
        let k = Out::masked(Register::K7, out.mask);
        let exponent = self.constant(Ty::B32, 0x7f80_0000);
        self.a.op3(Code::EVEX_Vptestnmd_kr_k1_zmm_zmmm512b32, k, out.reg, exponent);
        let c = self.constant(Ty::B32, 1 << 31);
        self.a.op3(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, Out::masked(out.reg, Register::K7), out.reg, c);
    }

    /// Cuts the lanes of a result to 16 bits.
    fn cut16(&mut self, out: Out) {
        let c = self.constant(Ty::B16, 0xffff);
        self.a.op3(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, out, out.reg, c);
    }

    /// A part of the result of an op.
    pub(crate) fn part(&mut self, op: Pure, q: usize, src: &[Src], out: Out) {
        let ty = op.results().0;
        let (t0, t1) = (zmm(4), zmm(5));
        if crate::half::has_code(op) {
            self.half_op(op, q, src, out);
            return;
        }
        if let Some(single) = of_singles(op) {
            self.on_singles(single, q, src, out);
            return;
        }
        if let Some(s) = simple(op) {
            let swapped = [src[1], src[0]];
            let src = if s.commutes && src[0].is_memory() && !src[1].is_memory() { &swapped } else { src };
            let extend = s.signed && ty == Ty::B16;
            let a = if extend { self.sext16(&src[0], q, 0) } else { self.reg(&src[0], q, 0) };
            let b = if extend { Rm::Reg(self.sext16(&src[1], q, 1)) } else { self.rm(&src[1], q, 1) };
            self.a.op3(by_width(ty, s.narrow, s.wide), out, a, b);
            if s.cut && ty == Ty::B16 {
                self.cut16(out);
            }
            return;
        }
        if let Some(s) = shift(op) {
            let extend = s.signed && ty == Ty::B16;
            let a = if extend { self.sext16(&src[0], q, 0) } else { self.reg(&src[0], q, 0) };
            let b = match (is_wide(ty), src[1].at) {
                (true, At::Imm(x)) => Rm::Mem(self.constant(Ty::B64, x)),
                (true, _) => Rm::Reg(self.widened(&src[1], q, false, 1)),
                (false, _) => self.rm(&src[1], q, 1),
            };
            self.a.op3(by_width(ty, s.narrow, s.wide), out, a, b);
            if s.cut && ty == Ty::B16 {
                self.cut16(out);
            }
            return;
        }
        if is_flush(op, src) {
            let a = self.reg(&src[0], q, 0);
            self.copy(ty, out, a.into());
            self.flush(out);
            return;
        }
        if let Some(x) = arithmetic(op) {
            self.arithmetic(x, ty, q, src, out);
            // A loose result becomes canonical where it is asked for.
            if !op.facts().is_loose && !x.mode.sat && !x.mode.relu {
                self.canonical(ty, out);
            }
            return;
        }
        match op {
            Pure::Mov(_) => {
                let a = self.rm(&src[0], q, 0);
                self.copy(ty, out, a);
            }
            Pure::Neg(_) => {
                let a = self.rm(&src[0], q, 0);
                self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, t0, t0, t0);
                let code =
                    by_width(ty, Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64);
                self.a.op3(code, out, t0, a);
                if ty == Ty::B16 {
                    self.cut16(out);
                }
            }
            Pure::Not(_) => {
                let a = self.reg(&src[0], q, 0);
                let c = self.constant(ty, ty.mask());
                let code =
                    by_width(ty, Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64);
                self.a.op3(code, out, a, c);
            }
            Pure::Abs(_) => {
                let a = if ty == Ty::B16 { Rm::Reg(self.sext16(&src[0], q, 0)) } else { self.rm(&src[0], q, 0) };
                let code = by_width(ty, Code::EVEX_Vpabsd_zmm_k1z_zmmm512b32, Code::EVEX_Vpabsq_zmm_k1z_zmmm512b64);
                self.a.op2(code, out, a);
                if ty == Ty::B16 {
                    self.cut16(out);
                }
            }
            Pure::AbsDiff(int) => {
                for (to, which) in [(t0, Pure::Max(int)), (t1, Pure::Min(int))] {
                    self.part(which, q, src, to.into());
                }
                let code =
                    by_width(ty, Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64);
                self.a.op3(code, out, t0, t1);
                if ty == Ty::B16 {
                    self.cut16(out);
                }
            }
            Pure::Cnot(_) => {
                let a = self.reg(&src[0], q, 0);
                let code =
                    by_width(ty, Code::EVEX_Vptestnmd_kr_k1_zmm_zmmm512b32, Code::EVEX_Vptestnmq_kr_k1_zmm_zmmm512b64);
                self.a.op3(code, Register::K7, a, a);
                self.ones_of_mask(Register::K7, ty, out);
            }
            Pure::FromPred(_) => {
                let k = self.part_bits(&src[0], ty, q, Register::K7);
                self.ones_of_mask(k, ty, out);
            }
            Pure::MulHi(int) if int.ty != Ty::B64 => self.mul_hi(int, q, src, out),
            Pure::MulWide(int) if int.ty == Ty::B32 => {
                let a = self.widened(&src[0], q, int.signed, 0);
                let b = match src[1].at {
                    At::Imm(x) => {
                        let x = if int.signed { i64::from(x as u32 as i32).cast_unsigned() } else { x };
                        Rm::Mem(self.constant(Ty::B64, x))
                    }
                    _ => Rm::Reg(self.widened(&src[1], q, int.signed, 1)),
                };
                let code = if int.signed {
                    Code::EVEX_Vpmuldq_zmm_k1z_zmm_zmmm512b64
                } else {
                    Code::EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64
                };
                self.a.op3(code, out, a, b);
            }
            Pure::MulWide(int) => {
                let [a, b] = [0, 1].map(|i| match int.signed {
                    true => self.sext16(&src[i], q, i as u8),
                    false => self.reg(&src[i], q, i as u8),
                });
                self.a.op3(Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32, out, a, b);
            }
            Pure::Shf { right, wrap } => self.funnel(right, wrap, q, src, out),
            Pure::Lop3(table) => {
                let a = self.reg(&src[0], q, 0);
                let b = self.reg(&src[1], q, 1);
                let c = self.rm(&src[2], q, 2);
                self.a.op2(load_code(ty), t0, a);
                self.a.op3i(Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8, t0, b, c, u32::from(table));
                self.copy(ty, out, t0.into());
            }
            Pure::Select(_) if !self.a.has_wide_vectors() && src[1..].iter().any(|s| matches!(s.at, At::Imm(0))) => {
                self.select_or_zero(ty, q, src, out);
            }
            Pure::Select(_) => {
                let k = self.part_bits(&src[0], ty, q, Register::K5);
                // A vector for each source: of a value that all lanes share it holds the source already.
                let a = self.rm(&src[1], q, 1);
                let b = self.reg(&src[2], q, 2);
                let code = by_width(
                    ty,
                    Code::EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32,
                    Code::EVEX_Vpblendmq_zmm_k1z_zmm_zmmm512b64,
                );
                if out.mask == ALL {
                    self.a.op3(code, Out::masked(out.reg, k), b, a);
                } else {
                    self.a.op3(code, Out::masked(t0, k), b, a);
                    self.copy(ty, out, t0.into());
                }
            }
            Pure::Ext { bits, signed, from, to } => self.extend(u32::from(bits), signed, from, to, q, src, out),
            Pure::Pack(Ty::B32) => {
                let halves = [0, 1].map(|i| self.reg(&src[usize::from(i)], q / 2, i));
                let to = if out.mask == ALL && !halves.contains(&out.reg) { out.reg } else { t0 };
                self.a.in_turns(4, q % 2 == 1, to, halves[0], halves[1]);
                if to == t0 {
                    self.copy(ty, out, t0.into());
                }
            }
            Pure::Pack(_) => {
                let a = self.rm(&src[0], q, 0);
                let b = self.reg(&src[1], q, 1);
                self.a.op2i(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, t0, b, 16);
                self.a.op3(Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, out, t0, a);
            }
            Pure::Half { from: Ty::B64, hi } => {
                let r = self.narrowed(&src[0], q, hi, 0);
                self.copy(ty, out, r.into());
            }
            Pure::Half { hi, .. } => {
                let a = self.reg(&src[0], q, 0);
                if hi {
                    self.a.op2i(Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8, out, a, 16);
                } else {
                    let c = self.constant(ty, 0xffff);
                    self.a.op3(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, out, a, c);
                }
            }
            Pure::Bfe(int) if are_constant(&src[1..]) => self.field(int, q, src, out),
            Pure::Bfi(_) if are_constant(&src[2..]) => self.insert(ty, q, src, out),
            Pure::Prmt(PrmtMode::Default) if matches!(src[2].at, At::Imm(x) if x & 0x8888 == 0) => {
                self.permute(q, src, out);
            }
            Pure::FRsqrt(mode) if mode.ty == Float::F64 && !mode.ftz => self.inverse_double_root(q, src, out),
            _ if crate::approx::has_code(op) => self.upper_word(op, q, src, out),
            Pure::FMin { ty: float, ftz, nan, xorsign } => {
                self.min_max(MinMax { max: false, float, nan, xorsign }, ftz, q, src, out);
            }
            Pure::FMax { ty: float, ftz, nan, xorsign } => {
                self.min_max(MinMax { max: true, float, nan, xorsign }, ftz, q, src, out);
            }
            Pure::FAbs { ty: float, ftz } | Pure::FNeg { ty: float, ftz } => {
                let flush = ftz && float == Float::F32;
                let a = if flush { self.flushed(&src[0], q, 0) } else { self.reg(&src[0], q, 0) };
                let sign = (ty.mask() >> 1) + 1;
                if matches!(op, Pure::FAbs { .. }) {
                    let c = self.constant(ty, sign - 1);
                    self.a.op3(and(ty), out, a, c);
                } else {
                    let c = self.constant(ty, sign);
                    let code = by_width(
                        ty,
                        Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32,
                        Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64,
                    );
                    self.a.op3(code, out, a, c);
                }
            }
            Pure::Copysign(_) => {
                // `c ? a : b`, bit by bit.
                let (sign, magnitude) = (self.reg(&src[0], q, 0), self.rm(&src[1], q, 1));
                let c = self.constant(ty, (ty.mask() >> 1) + 1);
                self.a.op2(load_code(ty), t0, c);
                self.a.op3i(ternary(ty), t0, sign, magnitude, 0xca);
                self.copy(ty, out, t0.into());
            }
            Pure::Cvt(c) => self.convert(c, q, src, out),
            Pure::Video(_) | Pure::Vmad(_) | Pure::VideoSimd(_) => self.video(op, q, src, out),
            _ if crate::integer::has_code(op) => self.integer(op, q, src, out),
            other => panic!("{other:?} has no vector code at {:?}", self.at),
        }
    }

    /// A part of an op on all words of 64-bit lanes.
    fn on_singles(&mut self, op: Pure, q: usize, src: &[Src], out: Out) {
        let words: Vec<Src> = (0..).zip(src).map(|(i, s)| Src::new(At::Given(self.reg(s, q, i)), Ty::B32)).collect();
        self.part(op, q, &words, zmm(6).into());
        if op.facts().is_loose {
            self.canonical(Ty::B32, zmm(6).into());
        }
        self.copy(Ty::B64, out, zmm(6).into());
    }

    /// One where a mask register says so, else zero.
    pub(crate) fn ones_of_mask(&mut self, k: Register, ty: Ty, out: Out) {
        let t = zmm(4);
        self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, t, t, t);
        let c = self.constant(ty, 1);
        self.a.op2(load_code(ty), Out::masked(t, k), c);
        self.copy(ty, out, t.into());
    }

    fn arithmetic(&mut self, x: crate::table::Arithmetic, ty: Ty, q: usize, src: &[Src], out: Out) {
        let flush = x.mode.ftz && x.mode.ty == Float::F32;
        let code = by_width(ty, x.narrow, x.wide);
        let nearest = x.round == RoundingControl::None;
        // Whether all sources are taken as they are.
        let as_is = !flush || src.iter().all(|s| s.flushed);
        let source = |e: &mut Self, i: usize, scratch: u8| {
            if flush { e.flushed(&src[i], q, scratch) } else { e.reg(&src[i], q, scratch) }
        };
        match x.form {
            ArithmeticForm::Two => {
                // Which NaN comes out makes no difference.
                let swaps = nearest && as_is && x.commutes && src[0].is_memory() && !src[1].is_memory();
                let (first, second) = if swaps { (1, 0) } else { (0, 1) };
                let a = source(self, first, 0);
                if nearest && as_is {
                    let b = self.rm(&src[second], q, 1);
                    self.a.op3(code, out, a, b);
                } else {
                    let b = source(self, 1, 1);
                    self.a.op3r(code, out, a, b, x.round);
                }
            }
            ArithmeticForm::Three if nearest && as_is => {
                let [a, b, c] = [0, 1, 2].map(|i| self.rm(&src[i], q, i as u8));
                self.multiply_add(ty, out, a, b, c);
            }
            ArithmeticForm::Three => {
                let a = source(self, 0, 0);
                let c = source(self, 2, 2);
                let b = source(self, 1, 1);
                // The sum is read and written.
                let is_free = out.mask == ALL && out.reg != a && b != out.reg;
                let sum = if out.reg == c || is_free { out } else { zmm(4).into() };
                if sum.reg != c {
                    self.a.op2(load_code(ty), sum, c);
                }
                self.a.op3r(code, sum, a, b, x.round);
                if sum.reg != out.reg {
                    self.copy(ty, out, sum.reg.into());
                }
            }
            ArithmeticForm::One => {
                let a = source(self, 0, 0);
                self.a.op2r(code, out, a, x.round);
            }
            ArithmeticForm::OneBy => {
                let a = source(self, 0, 0);
                let one = if ty == Ty::B64 { 1f64.to_bits() } else { u64::from(1f32.to_bits()) };
                let c = self.constant(ty, one);
                self.a.op2(load_code(ty), zmm(4), c);
                self.a.op3r(code, out, zmm(4), a, x.round);
            }
        }
        let mode = x.mode;
        // No root is subnormal.
        if flush && x.form != ArithmeticForm::One {
            self.flush(out);
        }
        if mode.sat || mode.relu {
            // NaN: zero for `.sat`, else the canonical one. The maximum of the host is its second source then; -0 becomes +0.
            let zero = zmm(5);
            self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, zero, zero, zero);
            if mode.sat {
                let max = by_width(
                    ty,
                    Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae,
                    Code::EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae,
                );
                let min = by_width(
                    ty,
                    Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae,
                    Code::EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae,
                );
                self.a.op3(max, out, out.reg, zero);
                let one = if ty == Ty::B64 { 1f64.to_bits() } else { u64::from(1f32.to_bits()) };
                let one = self.constant(ty, one);
                self.a.op3(min, out, out.reg, one);
            } else {
                self.canonical(ty, out);
                let code =
                    by_width(ty, Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64);
                self.a.op3(code, out, out.reg, zero);
            }
        }
    }

    /// `a * b + c`, rounded once to nearest: the host's instruction replaces one of its sources, and reads one from memory. Uses vectors 0 and 1.
    fn multiply_add(&mut self, ty: Ty, out: Out, a: Rm, b: Rm, c: Rm) {
        use Code::*;
        let of = |narrow, wide| by_width(ty, narrow, wide);
        let to = Rm::Reg(out.reg);
        let into_sum = of(EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er, EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er);
        let in_register = |e: &mut Self, rm: Rm, scratch: u8| match rm {
            Rm::Reg(r) => r,
            Rm::Mem(_) => {
                e.copy(ty, zmm(scratch).into(), rm);
                zmm(scratch)
            }
        };
        let (factor, other) = if a == to { (a, b) } else { (b, a) };
        if c != to && factor == to {
            match (other, c) {
                (Rm::Mem(_), Rm::Reg(c)) => {
                    let code =
                        of(EVEX_Vfmadd132ps_zmm_k1z_zmm_zmmm512b32_er, EVEX_Vfmadd132pd_zmm_k1z_zmm_zmmm512b64_er);
                    self.a.op3(code, out, c, other);
                }
                _ => {
                    let other = in_register(self, other, 0);
                    let code =
                        of(EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er, EVEX_Vfmadd213pd_zmm_k1z_zmm_zmmm512b64_er);
                    self.a.op3(code, out, other, c);
                }
            }
            return;
        }
        let (a, b) = if matches!(a, Rm::Reg(_)) { (a, b) } else { (b, a) };
        let a = in_register(self, a, 0);
        self.copy(ty, out, c);
        self.a.op3(into_sum, out, a, b);
    }

    pub(crate) fn mul_hi(&mut self, int: Int, q: usize, src: &[Src], out: Out) {
        if int.ty == Ty::B16 {
            let [a, b] = [0, 1].map(|i| match int.signed {
                true => self.sext16(&src[i], q, i as u8),
                false => self.reg(&src[i], q, i as u8),
            });
            self.a.op3(Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32, zmm(4), a, b);
            self.a.op2i(Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8, out, zmm(4), 16);
            return;
        }
        let a = self.reg(&src[0], q, 0);
        let b = self.reg(&src[1], q, 1);
        let code = if int.signed {
            Code::EVEX_Vpmuldq_zmm_k1z_zmm_zmmm512b64
        } else {
            Code::EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64
        };
        let shift = Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8;
        self.a.op3(code, zmm(4), a, b);
        self.a.op2i(shift, zmm(5), a, 32);
        self.a.op2i(shift, zmm(6), b, 32);
        self.a.op3(code, zmm(5), zmm(5), zmm(6));
        self.a.op2i(shift, zmm(4), zmm(4), 32);
        self.a.number(RAX, 0xaaaa);
        self.a.op2(Code::VEX_Kmovd_kr_r32, Register::K7, EAX);
        self.a.op2(load_code(Ty::B32), Out::masked(zmm(4), Register::K7), zmm(5));
        self.copy(Ty::B32, out, zmm(4).into());
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of the op, and its part")]
    fn extend(&mut self, bits: u32, signed: bool, from: Ty, to: Ty, q: usize, src: &[Src], out: Out) {
        let (left, right) = (
            by_width(to, Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8),
            by_width(to, Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8, Code::EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8),
        );
        // A source is zero above its width, so bits from there on are known.
        let wide = if is_wide(to) { 64 } else { 32 };
        let a = match (is_wide(from), is_wide(to)) {
            (false, true) => self.widened(&src[0], q, signed && bits == 32, 0),
            (true, false) => self.narrowed(&src[0], q, false, 0),
            _ => self.reg(&src[0], q, 0),
        };
        if signed && bits < wide && !(is_wide(to) && !is_wide(from) && bits == 32) {
            self.a.op2i(left, zmm(4), a, wide - bits);
            self.a.op2i(right, out, zmm(4), wide - bits);
            if to == Ty::B16 {
                self.cut16(out);
            }
            return;
        }
        let kept = if signed { u64::MAX } else { u64::MAX >> (64 - bits) } & to.mask();
        if kept & from.mask() == from.mask() && to.bits() >= from.bits() || kept == Ty::B32.mask() && to == Ty::B32 {
            self.copy(to, out, a.into());
        } else {
            let c = self.constant(to, kept);
            self.a.op3(and(to), out, a, c);
        }
    }
}

pub(crate) fn and(ty: Ty) -> Code {
    by_width(ty, Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64)
}

pub(crate) fn or(ty: Ty) -> Code {
    by_width(ty, Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vporq_zmm_k1z_zmm_zmmm512b64)
}

pub(crate) fn ternary(ty: Ty) -> Code {
    by_width(ty, Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8, Code::EVEX_Vpternlogq_zmm_k1z_zmm_zmmm512b64_imm8)
}
