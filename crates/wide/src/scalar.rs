//! Uniform and affine values: one word for each group of their shape.
//!
//! A value op acts lane by lane, so the word of a group is the op of what its sources are in the first lane of the group.

use std::mem::offset_of;

use handloom_ir::simt::{Inst, Op, Pure, Reg, Val, shape_constant};
use handloom_ir::types::{Cmp, Int, Sreg, StateSpace, Ty};
use handloom_plan::abi::{CtaCtx, Routine, WarpCtx};
use handloom_plan::analysis::classes::Class;
use handloom_plan::analysis::shape::Shape;
use iced_x86::{Code, Register};
use smallvec::SmallVec;

use crate::alloc::Place;
use crate::asm::{Mem, low32};
use crate::emit::*;
use crate::ops::has_vector_code;
use crate::table::{constant, has_scalar_code};
use crate::values::{At, Src, by_width, is_wide, load_code};

const REGS: [Register; 4] = [RAX, RCX, RDX, RSI];
/// Where the result of vector code for one lane is made.
const RESULT: Register = Register::ZMM7;

/// The second source of a multiplication of 32 or 64 bits, if it is a number that an instruction can hold.
fn factor_of(op: Pure, constants: &[Option<u64>]) -> Option<i32> {
    let n = (*constants.get(1)?)?;
    match op {
        Pure::Mul(Ty::B32) | Pure::MulWide(Int { ty: Ty::B32, signed: true }) => Some((n as u32).cast_signed()),
        Pure::MulWide(Int { ty: Ty::B32, signed: false }) => i32::try_from(n as u32).ok(),
        Pure::Mul(Ty::B64) => i32::try_from(n.cast_signed()).ok(),
        _ => None,
    }
}

/// What an instruction can take as it is.
#[derive(Clone, Copy, Debug)]
enum Operand {
    Number(i32),
    Word(Mem),
}

impl Emit<'_> {
    /// The words of a register, with its shape.
    pub(crate) fn words(&self, d: Reg) -> Option<(Shape, u32)> {
        match (self.place(d), self.plan.facts.class[d.idx()]) {
            (Place::Words(at), Class::Affine(s)) => Some((s, at)),
            _ => None,
        }
    }

    /// A value op with an affine result.
    pub(crate) fn scalar_op(&mut self, inst: &Inst, op: Pure) {
        let Some((shape, at)) = self.words(inst.dst[0]) else { return };
        let constants: SmallVec<[Option<u64>; 3]> = inst.src.iter().map(|v| constant(*v)).collect();
        let is_odd = |v: &Val| matches!(v, Val::Reg(r) if self.plan.may_hold_odd_nan[r.idx()]);
        let clean = op.facts().takes_loose || !inst.src.iter().any(is_odd);
        let by_gpr = clean && has_scalar_code(op, &inst.src);
        if inst.dst.len() > 1 || !by_gpr && !has_vector_code(op) {
            self.eval(inst, op);
            return;
        }
        if by_gpr && (self.in_place(inst, op, shape, at) || self.compare_for_branch(inst, op, shape)) {
            return;
        }
        for g in 0..shape.groups() {
            let lane = shape.first_lane(g);
            if by_gpr && self.on_memory(inst, op, lane) {
                self.in_rax = None;
            } else if by_gpr {
                // What is in `rax` already is wanted before another value is.
                let number = factor_of(op, &constants);
                let is_known = number.is_some() || matches!(op, Pure::Shl(_) | Pure::Shr(_));
                let wanted = if is_known { 1 } else { inst.src.len() };
                for (v, to) in inst.src.iter().zip(REGS).take(wanted).rev() {
                    self.lane_value(*v, lane, to);
                }
                self.in_rax = None;
                match number {
                    Some(n) => self.times(op, n),
                    None => self.gpr_op(op, &constants),
                }
            } else {
                self.in_rax = None;
                let mut src: SmallVec<[_; 3]> = SmallVec::new();
                for (i, v) in inst.src.iter().enumerate() {
                    src.push(self.given((op, inst.dst[0]), *v, lane, i as u8));
                }
                self.one_lane(op, inst.dst[0], &src);
            }
            self.store64(ctx(at + 8 * g as u32), RAX);
        }
    }

    /// A source of an op on general registers that an instruction can name: a number of 32 bits, or a word that holds the value of the lane.
    fn as_it_is(&self, v: Val, lane: usize) -> Option<Operand> {
        let s = self.src(v);
        match s.at {
            At::Imm(x) if is_wide(s.ty) => i32::try_from(x.cast_signed()).ok().map(Operand::Number),
            At::Imm(x) => Some(Operand::Number((x as u32).cast_signed())),
            At::Words(shape, at) if shape.delta(lane) == 0 && !self.is_linear_value(v) && !self.is_in_rax(v) => {
                Some(Operand::Word(ctx(at + 8 * shape.group_of(lane) as u32)))
            }
            _ => None,
        }
    }

    /// Whether a value is in `rax` from the instruction before.
    fn is_in_rax(&self, v: Val) -> bool {
        self.in_rax.is_some_and(|r| v == Val::Reg(r))
    }

    /// The instruction of an op of two sources that takes the second from a register or memory, and the one that takes a number, for 32 bits or 64.
    fn two_sources(op: Pure) -> Option<[Code; 3]> {
        let wide = is_wide(op.results().0);
        let of = |narrow: [Code; 3], w: [Code; 3]| Some(if wide { w } else { narrow });
        match op {
            Pure::Add(Ty::B32 | Ty::B64) => of(
                [Code::Add_r32_rm32, Code::Add_rm32_imm32, Code::Add_rm32_r32],
                [Code::Add_r64_rm64, Code::Add_rm64_imm32, Code::Add_rm64_r64],
            ),
            Pure::Sub(Ty::B32 | Ty::B64) => of(
                [Code::Sub_r32_rm32, Code::Sub_rm32_imm32, Code::Sub_rm32_r32],
                [Code::Sub_r64_rm64, Code::Sub_rm64_imm32, Code::Sub_rm64_r64],
            ),
            Pure::And(Ty::B32 | Ty::B64) => of(
                [Code::And_r32_rm32, Code::And_rm32_imm32, Code::And_rm32_r32],
                [Code::And_r64_rm64, Code::And_rm64_imm32, Code::And_rm64_r64],
            ),
            Pure::Or(Ty::B32 | Ty::B64) => of(
                [Code::Or_r32_rm32, Code::Or_rm32_imm32, Code::Or_rm32_r32],
                [Code::Or_r64_rm64, Code::Or_rm64_imm32, Code::Or_rm64_r64],
            ),
            Pure::Xor(Ty::B32 | Ty::B64) => of(
                [Code::Xor_r32_rm32, Code::Xor_rm32_imm32, Code::Xor_rm32_r32],
                [Code::Xor_r64_rm64, Code::Xor_rm64_imm32, Code::Xor_rm64_r64],
            ),
            _ => None,
        }
    }

    /// An op of two sources to `rax`, the second of which needs no register. Says whether it is one.
    fn on_memory(&mut self, inst: &Inst, op: Pure, lane: usize) -> bool {
        let Some([from, number, _]) = Self::two_sources(op) else { return false };
        let (mut a, mut b) = (inst.src[0], inst.src[1]);
        if self.is_in_rax(b) && !matches!(op, Pure::Sub(_)) {
            (a, b) = (b, a);
        }
        let Some(second) = self.as_it_is(b, lane) else { return false };
        self.lane_value(a, lane, RAX);
        let to = if is_wide(op.results().0) { RAX } else { EAX };
        match second {
            Operand::Number(n) => self.a.imm(number, to, n),
            Operand::Word(m) => self.a.op2(from, to, m),
        }
        true
    }

    /// An op that changes the words of its first source. Says whether it is one.
    fn in_place(&mut self, inst: &Inst, op: Pure, shape: Shape, at: u32) -> bool {
        let Some([_, number, to_memory]) = Self::two_sources(op) else { return false };
        // Differences between lanes are added to what is in the words: those of both must be the same.
        let is_own = inst.src[0] == Val::Reg(inst.dst[0]) && self.words(inst.dst[0]) == Some((shape, at));
        let second = inst.src[1];
        let is_plain = matches!(op, Pure::Add(_) | Pure::Sub(_)) || shape.is_uniform();
        if !is_own || !is_plain || !self.shape(second).is_some_and(|s| s.is_uniform()) || self.in_head {
            return false;
        }
        let wide = is_wide(op.results().0);
        let by = self.as_it_is(second, 0);
        let by = match by {
            Some(Operand::Number(n)) => Some(n),
            Some(Operand::Word(_)) | None => {
                self.lane_value(second, 0, RAX);
                None
            }
        };
        for g in 0..shape.groups() {
            let m = ctx(at + 8 * g as u32);
            match by {
                Some(n) => self.a.imm(number, m, n),
                None => self.a.store(to_memory, m, if wide { RAX } else { EAX }, ALL),
            }
        }
        true
    }

    /// A comparison of uniform values that the branch behind it alone asks for: flags will do. Says whether it is one.
    fn compare_for_branch(&mut self, inst: &Inst, op: Pure, shape: Shape) -> bool {
        let (Pure::ICmp(cmp, int), [d]) = (op, inst.dst.as_slice()) else { return false };
        if int.ty == Ty::B16 || self.in_head || !shape.is_uniform() || !self.is_for_branch(*d) {
            return false;
        }
        let unless = match (cmp, int.signed) {
            (Cmp::Eq | Cmp::Equ, _) => Code::Jne_rel32_64,
            (Cmp::Ne | Cmp::Neu, _) => Code::Je_rel32_64,
            (Cmp::Lt | Cmp::Ltu, true) => Code::Jge_rel32_64,
            (Cmp::Le | Cmp::Leu, true) => Code::Jg_rel32_64,
            (Cmp::Gt | Cmp::Gtu, true) => Code::Jle_rel32_64,
            (Cmp::Ge | Cmp::Geu, true) => Code::Jl_rel32_64,
            (Cmp::Lt | Cmp::Ltu, false) => Code::Jae_rel32_64,
            (Cmp::Le | Cmp::Leu, false) => Code::Ja_rel32_64,
            (Cmp::Gt | Cmp::Gtu, false) => Code::Jbe_rel32_64,
            (Cmp::Ge | Cmp::Geu, false) => Code::Jb_rel32_64,
            (Cmp::Num | Cmp::Nan, _) => return false,
        };
        let wide = is_wide(int.ty);
        self.lane_value(inst.src[0], 0, RAX);
        let a = if wide { RAX } else { EAX };
        match self.as_it_is(inst.src[1], 0) {
            Some(Operand::Number(n)) => {
                self.a.imm(if wide { Code::Cmp_rm64_imm32 } else { Code::Cmp_rm32_imm32 }, a, n);
            }
            Some(Operand::Word(m)) => {
                self.a.op2(if wide { Code::Cmp_r64_rm64 } else { Code::Cmp_r32_rm32 }, a, m);
            }
            None => {
                self.lane_value(inst.src[1], 0, RCX);
                self.compare(int);
            }
        }
        self.in_flags = Some((*d, unless));
        true
    }

    /// The value of a scalar source in a lane, in a register.
    pub(crate) fn lane_value(&mut self, v: Val, lane: usize, to: Register) {
        if self.linear_value(v, lane, to) {
            return;
        }
        if self.is_in_rax(v) && self.shape(v).is_some_and(|s| s.delta(lane) == 0) {
            if to != RAX {
                self.a.op2(Code::Mov_r64_rm64, to, RAX);
            }
            return;
        }
        let s = self.src(v);
        match s.at {
            At::Imm(x) => self.a.number(to, x),
            At::Words(shape, at) => {
                let from = ctx(at + 8 * shape.group_of(lane) as u32);
                let by = shape.delta(lane);
                if s.ty == Ty::B64 {
                    self.load64(to, from);
                    self.add_number(to, by);
                    return;
                }
                let to = low32(to);
                self.load32(to, from);
                if by != 0 {
                    // The low half is all that counts.
                    self.a.imm(Code::Add_rm32_imm32, to, (by.cast_unsigned() as u32).cast_signed());
                    if s.ty == Ty::B16 {
                        self.a.imm(Code::And_rm32_imm32, to, 0xffff);
                    }
                }
            }
            other => panic!("{other:?} as a scalar at {:?}", self.at),
        }
    }

    /// Adds a number to a register of 64 bits. Clobbers `r10`.
    pub(crate) fn add_number(&mut self, to: Register, by: i64) {
        match i32::try_from(by) {
            Ok(0) => {}
            Ok(by) => self.a.imm(Code::Add_rm64_imm32, to, by),
            Err(_) => {
                self.a.number(Register::R10, by.cast_unsigned());
                self.a.op2(Code::Add_r64_rm64, to, Register::R10);
            }
        }
    }

    /// The same in all lanes of vector `i`, as a source of vector code.
    fn given(&mut self, (op, result): (Pure, Reg), v: Val, lane: usize, i: u8) -> Src {
        let ty = self.ty(v);
        if let Val::Imm(x, ty) = v {
            return Src::new(At::Imm(x & ty.mask()), ty);
        }
        if ty == Ty::P {
            self.lane_value(v, lane, RAX);
            let at = self.take_scratch(64);
            self.store64(ctx(at), RAX);
            return Src::new(At::Words(Shape::UNIFORM, at), ty);
        }
        let spread = by_width(ty, Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32, Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64);
        if self.is_in_vector(v) {
            self.a.op2(load_code(ty), zmm(i), RESULT);
        } else if let Some(Operand::Word(m)) = self.as_it_is(v, lane).filter(|_| ty != Ty::B16) {
            self.a.op2(spread, zmm(i), m);
        } else {
            self.lane_value(v, lane, RAX);
            if is_wide(ty) {
                self.a.op2(Code::EVEX_Vpbroadcastq_zmm_k1z_r64, zmm(i), RAX);
            } else {
                self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(i), EAX);
            }
        }
        if self.source_of(op, result, v).odd {
            self.canonical(ty, zmm(i).into());
        }
        Src::new(At::Given(zmm(i)), ty)
    }

    /// Whether every lane of the vector for results holds a value, since it was made as the result of vector code.
    fn is_in_vector(&self, v: Val) -> bool {
        self.in_vector.is_some_and(|(r, member, since)| {
            (v, self.member) == (Val::Reg(r), member) && self.a.still_holds(RESULT, since)
        })
    }

    /// One lane of an op, by vector code, in `rax`.
    fn one_lane(&mut self, op: Pure, d: Reg, src: &[Src]) {
        let ty = self.f.regs[d.idx()];
        if ty == Ty::P {
            self.mask_part(op, 0, src, Register::K5);
            self.a.op2(Code::VEX_Kmovd_r32_kr, EAX, Register::K5);
            self.a.imm(Code::And_rm32_imm32, EAX, 1);
            return;
        }
        self.part(op, 0, src, RESULT.into());
        if op.facts().is_loose && !self.plan.may_hold_odd_nan[d.idx()] {
            self.canonical(ty, RESULT.into());
        }
        let is_one = self.words(d).is_some_and(|(shape, _)| shape.is_uniform()) && self.plan.def_count[d.idx()] == 1;
        if is_one && matches!(ty, Ty::B32 | Ty::B64) && self.a.has_wide_vectors() {
            self.in_vector = Some((d, self.member, self.a.position()));
        }
        if is_wide(ty) {
            self.a.op2(Code::EVEX_Vmovq_rm64_xmm, RAX, xmm(RESULT));
        } else {
            self.a.op2(Code::EVEX_Vmovd_rm32_xmm, EAX, xmm(RESULT));
        }
    }

    /// The product of `rax` and a number, as an op makes it.
    fn times(&mut self, op: Pure, n: i32) {
        match op {
            Pure::MulWide(int) => {
                if int.signed {
                    self.sign_extend(int.ty, RAX);
                }
                self.a.times(RAX, RAX, n);
            }
            _ if is_wide(op.results().0) => self.a.times(RAX, RAX, n),
            _ => self.a.op2i(Code::Imul_r32_rm32_imm32, EAX, EAX, n.cast_unsigned()),
        }
    }

    /// An op on `rax`, `rcx`, `rdx`, to `rax`. Sources are zero above their width, and so is the result.
    fn gpr_op(&mut self, op: Pure, constants: &[Option<u64>]) {
        let ty = op.results().0;
        let wide = is_wide(ty);
        let pick = |narrow, wide_code| if wide { wide_code } else { narrow };
        let (a, b) = if wide { (RAX, RCX) } else { (EAX, ECX) };
        match op {
            Pure::Mov(_) | Pure::FromPred(_) => {}
            Pure::Add(_) => self.a.op2(pick(Code::Add_r32_rm32, Code::Add_r64_rm64), a, b),
            Pure::Sub(_) => self.a.op2(pick(Code::Sub_r32_rm32, Code::Sub_r64_rm64), a, b),
            Pure::Mul(_) => self.a.op2(pick(Code::Imul_r32_rm32, Code::Imul_r64_rm64), a, b),
            Pure::And(_) => self.a.op2(pick(Code::And_r32_rm32, Code::And_r64_rm64), a, b),
            Pure::Or(_) => self.a.op2(pick(Code::Or_r32_rm32, Code::Or_r64_rm64), a, b),
            Pure::Xor(_) => self.a.op2(pick(Code::Xor_r32_rm32, Code::Xor_r64_rm64), a, b),
            Pure::Not(Ty::P) => self.a.imm(Code::Xor_rm32_imm32, EAX, 1),
            Pure::Not(_) => self.a.op1(pick(Code::Not_rm32, Code::Not_rm64), a),
            Pure::Neg(_) => self.a.op1(pick(Code::Neg_rm32, Code::Neg_rm64), a),
            Pure::Shl(_) | Pure::Shr(_) => {
                let by = constants[1].unwrap_or(0);
                let most = u64::from(ty.bits());
                match op {
                    Pure::Shr(int) if int.signed => {
                        if ty == Ty::B16 {
                            self.a.op2(Code::Movsx_r32_rm16, EAX, Register::AX);
                        }
                        let by = by.min(if wide { 63 } else { 31 }) as u32;
                        self.a.imm8(pick(Code::Sar_rm32_imm8, Code::Sar_rm64_imm8), a, by);
                    }
                    _ if by >= most => self.a.number(RAX, 0),
                    Pure::Shr(_) => self.a.imm8(pick(Code::Shr_rm32_imm8, Code::Shr_rm64_imm8), a, by as u32),
                    _ => self.a.imm8(pick(Code::Shl_rm32_imm8, Code::Shl_rm64_imm8), a, by as u32),
                }
            }
            Pure::Min(int) | Pure::Max(int) => {
                let max = matches!(op, Pure::Max(_));
                self.compare(int);
                let code = match (int.signed, max) {
                    (true, false) => Code::Cmovg_r64_rm64,
                    (true, true) => Code::Cmovl_r64_rm64,
                    (false, false) => Code::Cmova_r64_rm64,
                    (false, true) => Code::Cmovb_r64_rm64,
                };
                self.a.op2(code, RAX, RCX);
            }
            Pure::MulWide(int) => {
                if int.signed {
                    self.sign_extend(int.ty, RAX);
                    self.sign_extend(int.ty, RCX);
                }
                self.a.op2(Code::Imul_r64_rm64, RAX, RCX);
                if int.ty == Ty::B16 {
                    self.a.op2(Code::Mov_r32_rm32, EAX, EAX);
                }
            }
            Pure::ICmp(cmp, int) => {
                self.compare(int);
                let code = match (cmp, int.signed) {
                    (Cmp::Eq | Cmp::Equ, _) => Code::Sete_rm8,
                    (Cmp::Ne | Cmp::Neu, _) => Code::Setne_rm8,
                    (Cmp::Lt | Cmp::Ltu, true) => Code::Setl_rm8,
                    (Cmp::Le | Cmp::Leu, true) => Code::Setle_rm8,
                    (Cmp::Gt | Cmp::Gtu, true) => Code::Setg_rm8,
                    (Cmp::Ge | Cmp::Geu, true) => Code::Setge_rm8,
                    (Cmp::Lt | Cmp::Ltu, false) => Code::Setb_rm8,
                    (Cmp::Le | Cmp::Leu, false) => Code::Setbe_rm8,
                    (Cmp::Gt | Cmp::Gtu, false) => Code::Seta_rm8,
                    (Cmp::Ge | Cmp::Geu, false) => Code::Setae_rm8,
                    (Cmp::Num | Cmp::Nan, _) => panic!("{op:?} at {:?}", self.at),
                };
                self.a.op1(code, Register::AL);
                self.a.op2(Code::Movzx_r32_rm8, EAX, Register::AL);
            }
            Pure::Select(_) => {
                self.a.op2(Code::Test_rm32_r32, EAX, EAX);
                self.a.op2(Code::Mov_r64_rm64, RAX, RDX);
                self.a.op2(Code::Cmovne_r64_rm64, RAX, RCX);
            }
            Pure::ToPred(_) => {
                self.a.op2(Code::Test_rm64_r64, RAX, RAX);
                self.a.op1(Code::Setne_rm8, Register::AL);
                self.a.op2(Code::Movzx_r32_rm8, EAX, Register::AL);
            }
            Pure::Ext { bits, signed, to, .. } => {
                match (bits, signed) {
                    (8, true) => self.a.op2(Code::Movsx_r64_rm8, RAX, Register::AL),
                    (16, true) => self.a.op2(Code::Movsx_r64_rm16, RAX, Register::AX),
                    (32, true) => self.a.op2(Code::Movsxd_r64_rm32, RAX, EAX),
                    (8, false) => self.a.op2(Code::Movzx_r32_rm8, EAX, Register::AL),
                    (16, false) => self.a.op2(Code::Movzx_r32_rm16, EAX, Register::AX),
                    (32, false) => self.a.op2(Code::Mov_r32_rm32, EAX, EAX),
                    _ => {}
                }
                match to {
                    Ty::B64 => {}
                    Ty::B32 => self.a.op2(Code::Mov_r32_rm32, EAX, EAX),
                    Ty::B16 | Ty::P => self.a.op2(Code::Movzx_r32_rm16, EAX, Register::AX),
                }
                return;
            }
            Pure::Pack(half) => {
                self.a.imm8(Code::Shl_rm64_imm8, RCX, half.bits());
                self.a.op2(Code::Or_r64_rm64, RAX, RCX);
            }
            Pure::Half { from, hi } => {
                if hi {
                    self.a.imm8(Code::Shr_rm64_imm8, RAX, from.bits() / 2);
                }
                if from == Ty::B64 {
                    self.a.op2(Code::Mov_r32_rm32, EAX, EAX);
                } else {
                    self.a.op2(Code::Movzx_r32_rm16, EAX, Register::AX);
                }
            }
            other => panic!("{other:?} has no scalar code at {:?}", self.at),
        }
        if ty == Ty::B16 {
            self.a.op2(Code::Movzx_r32_rm16, EAX, Register::AX);
        }
    }

    fn sign_extend(&mut self, ty: Ty, r: Register) {
        match ty {
            Ty::B32 => self.a.op2(Code::Movsxd_r64_rm32, r, low32(r)),
            Ty::B16 if r == RAX => self.a.op2(Code::Movsx_r64_rm16, RAX, Register::AX),
            Ty::B16 => self.a.op2(Code::Movsx_r64_rm16, RCX, Register::CX),
            Ty::P | Ty::B64 => {}
        }
    }

    /// Compares `rax` with `rcx`; both keep their bits.
    fn compare(&mut self, int: Int) {
        match int.ty {
            Ty::B64 => self.a.op2(Code::Cmp_r64_rm64, RAX, RCX),
            Ty::B32 => self.a.op2(Code::Cmp_r32_rm32, EAX, ECX),
            Ty::B16 | Ty::P => self.a.op2(Code::Cmp_r16_rm16, Register::AX, Register::CX),
        }
    }

    /// An address of something that the function names.
    pub(crate) fn address(&mut self, d: Reg, op: Op) {
        if let Some((_, at)) = self.words(d) {
            self.address_value(op);
            self.store64(ctx(at), RAX);
        }
    }

    /// The same for lane 0, in `rax`.
    pub(crate) fn address_value(&mut self, op: Op) {
        match op {
            Op::SymAddr(s) | Op::SharedAddr(s) => {
                self.load64(RAX, cta(offset_of!(CtaCtx, symbols)));
                self.load64(RAX, Mem::at(RAX, s.0 as i32 * 8));
            }
            Op::ParamAddr { offset } => {
                self.load64(RAX, cta(offset_of!(CtaCtx, param)));
                self.add_number(RAX, i64::from(offset));
            }
            Op::SlotAddr(slot) => {
                self.load64(RAX, warp(offset_of!(WarpCtx, local)));
                self.add_number(RAX, i64::from(self.plan.frame.slot_offsets[slot.idx()]));
            }
            Op::ArgAddr { offset } => {
                self.load64(RAX, warp(offset_of!(WarpCtx, args)));
                self.add_number(RAX, i64::from(offset));
            }
            other => panic!("{other:?} is no address"),
        }
    }

    /// `cvta` between generic and shared addresses, of a scalar.
    pub(crate) fn scalar_cvta(&mut self, inst: &Inst, space: StateSpace, to_space: bool) {
        let Some((shape, at)) = self.words(inst.dst[0]) else { return };
        for g in 0..shape.groups() {
            self.lane_value(inst.src[0], shape.first_lane(g), RAX);
            if space == StateSpace::Shared {
                let code = if to_space { Code::Sub_r64_rm64 } else { Code::Add_r64_rm64 };
                self.a.op2(code, RAX, cta(offset_of!(CtaCtx, shared_base)));
            }
            self.store64(ctx(at + 8 * g as u32), RAX);
        }
    }

    /// A special register that is a scalar.
    pub(crate) fn scalar_sreg(&mut self, d: Reg, s: Sreg) {
        let Some((shape, at)) = self.words(d) else { return };
        // What the first lane has, others have with their differences: the shape of a special register has one group.
        assert!(shape.groups() == 1, "{s:?} with {shape:?}");
        self.sreg_value(s);
        if self.f.regs[d.idx()] != Ty::B64 {
            self.a.op2(Code::Mov_r32_rm32, EAX, EAX);
        }
        self.store64(ctx(at), RAX);
    }

    /// A special register of lane 0, in `rax`.
    pub(crate) fn sreg_value(&mut self, s: Sreg) {
        if let Some(c) = shape_constant(s, &self.plan.facts.shape) {
            self.a.number(RAX, c);
            return;
        }
        match s {
            Sreg::Laneid => self.a.number(RAX, 0),
            Sreg::Tid(i) if i < 3 => self.lane_zero(i),
            Sreg::Ctaid(i) if i < 3 => self.load32(EAX, cta(offset_of!(CtaCtx, ctaid) + 4 * usize::from(i))),
            Sreg::Nctaid(i) if i < 3 => self.load32(EAX, cta(offset_of!(CtaCtx, nctaid) + 4 * usize::from(i))),
            Sreg::Warpid if self.in_head => self.a.number(RAX, 0),
            Sreg::Warpid => self.load_number_of_warp(RAX),
            Sreg::DynamicSmemSize => self.load32(EAX, cta(offset_of!(CtaCtx, dynamic_shared))),
            _ => self.sreg_routine(s),
        }
    }

    /// A special register by the routine, in `rax`.
    fn sreg_routine(&mut self, s: Sreg) {
        self.tables.sregs.push(s);
        let site = self.tables.sregs.len() - 1;
        self.a.number(RCX, 1);
        self.routine(Routine::Sreg, site, ECX);
    }

    /// A component of `%tid` of lane 0, in `eax`. Uses `ecx` and `edx`.
    fn lane_zero(&mut self, i: u8) {
        let [nx, ny, _] = self.plan.facts.shape.ntid;
        if self.in_head {
            self.a.number(RAX, 0);
            return;
        }
        self.load_number_of_warp(RAX);
        self.a.imm8(Code::Shl_rm32_imm8, EAX, 5);
        // `eax` is what is left, `edx` the remainder.
        self.divide(nx);
        if i == 0 {
            self.a.op2(Code::Mov_r32_rm32, EAX, EDX);
            return;
        }
        self.divide(ny);
        if i == 1 {
            self.a.op2(Code::Mov_r32_rm32, EAX, EDX);
        }
    }

    /// Quotient in `eax` and remainder in `edx` of `eax` by a constant.
    pub(crate) fn divide(&mut self, by: u32) {
        if by.is_power_of_two() {
            self.a.op2(Code::Mov_r32_rm32, EDX, EAX);
            self.a.imm(Code::And_rm32_imm32, EDX, (by - 1).cast_signed());
            self.a.imm8(Code::Shr_rm32_imm8, EAX, by.trailing_zeros());
        } else {
            self.a.number(RCX, u64::from(by));
            self.a.number(RDX, 0);
            self.a.op1(Code::Div_rm32, ECX);
        }
    }
}
