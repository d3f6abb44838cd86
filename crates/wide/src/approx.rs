//! Approximate instructions.
//!
//! Those of `.f64` are done as `num` does them. `ex2`, `lg2`, `sin`, `cos` and `tanh` of `.f32` are roundings of
//! what the functions of the host return in `.f64`, which is right to less than one unit of its last place. Here polynomials make them, exact to `AWAY`: a
//! result is taken where every number that near to it rounds to the same `.f32`, so that the host's would too. Where that fails for a lane, about once in
//! eight thousand warps, and for sines of large arguments, the routine does the op. A function that is wanted often has code of its own, which is called for each vector: it is about
//! sixty instructions, and takes far longer than a call.

use handloom_ir::simt::{Exactness, Inst, Op, Pure, Val};
use handloom_ir::types::{Float, Ty};
use handloom_plan::abi::{EvalSite, Loc, Routine};
use iced_x86::{Code, Register};

use crate::alloc::Place;
use crate::asm::{Label, Mem, Out};
use crate::emit::*;
use crate::once::{Function, Rounded};
use crate::values::{At, Src, load_code, store_code};

use Code::{
    EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er as ADD, EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae as COMPARE,
    EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er as CUT, EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae as WIDEN,
    EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er as DIVIDE, EVEX_Vfmadd213pd_zmm_k1z_zmm_zmmm512b64_er as TIMES_PLUS,
    EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er as PLUS_TIMES, EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er as TIMES,
    EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64 as ADD_Q, EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32 as AND_D,
    EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64 as AND_Q, EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8 as LEFT_Q,
    EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8 as RIGHT_Q, EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64 as SUB_Q,
};

const K5: Register = Register::K5;
const K6: Register = Register::K6;
const K7: Register = Register::K7;
const ESI: Register = Register::ESI;
const RDI: Register = Register::RDI;

/// How far, relative to itself, a result may be from that of the host: more than eight times what the polynomials and their roundings make.
pub const AWAY: f64 = 1.0 / (1u64 << 43) as f64;
/// Up to here arguments of sines are reduced with two parts of a right angle: their products with a number of 21 bits leave errors of 2^-85.
const MOST_ANGLE: f32 = 1_048_576.0;
/// The low bits of a sum with 1.5 * 2^52 are those of the whole number.
const WHOLE: f64 = 6_755_399_441_055_744.0;
/// A logarithm of two, and what its number in `.f64` lacks.
const LOGARITHM_OF_TWO: [f64; 2] = [std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17];
/// A right angle, and what its number in `.f64` lacks.
const RIGHT_ANGLE: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17];

/// From so many instructions on, a function has code of its own.
const OFTEN: u32 = 4;
/// Bytes from the operands of a warp to the results of code of its own.
const RESULTS: u32 = 128;

/// The function of an op.
fn function(op: Pure) -> Option<Rounded> {
    Some(match op {
        Pure::Ex2 { ty: Float::F32, ftz } => (Function::Power, ftz),
        Pure::Lg2 { ftz } => (Function::Logarithm, ftz),
        Pure::Sin { ftz } => (Function::Sine, ftz),
        Pure::Cos { ftz } => (Function::Cosine, ftz),
        Pure::Tanh { ty: Float::F32 } => (Function::HyperbolicTangent, false),
        _ => return None,
    })
}

/// Whether an op is a function that is rounded here.
pub(crate) fn is_rounded(op: Pure) -> bool {
    function(op).is_some()
}

/// Whether an op is an approximation of `.f64`.
pub(crate) fn has_code(op: Pure) -> bool {
    match op {
        Pure::FRcp { mode, exact: Exactness::Approx } => mode.ty == Float::F64 && mode.ftz,
        Pure::FRsqrt(mode) => mode.ty == Float::F64,
        _ => false,
    }
}

/// `ln(2)^n / n!`, from the constant on: 2^f within a half of zero, to 2^-46.
pub fn powers() -> Vec<f64> {
    std::iter::successors(Some((1.0, 0.0)), |(c, n)| Some((c * std::f64::consts::LN_2 / (n + 1.0), n + 1.0)))
        .map(|(c, _)| c)
        .take(12)
        .collect()
}

/// Of the odd series of `log2((1 + s) / (1 - s))`, by the square of `s`, for numbers within a square root of two of one.
pub fn logarithms() -> Vec<f64> {
    (0..9).map(|n| 2.0 / std::f64::consts::LN_2 / f64::from(2 * n + 1)).collect()
}

/// `(-1)^n / (2n + first)!`, by the square: the cosine (`first` is 0) within half a right angle of zero, and the sine (1) over its argument.
pub fn circular(first: u32) -> Vec<f64> {
    let next = |(c, n): (f64, f64)| (-c / ((n + 1.0) * (n + 2.0)), n + 2.0);
    std::iter::successors(Some((1.0, f64::from(first))), |last| Some(next(*last))).map(|(c, _)| c).take(9).collect()
}

/// `1 / (n + 1)!`, from the constant on: `(e^r - 1) / r` within half a logarithm of two of zero, to 2^-50.
pub fn exponentials() -> Vec<f64> {
    std::iter::successors(Some((1.0, 1.0)), |(c, n)| Some((c / (n + 1.0), n + 1.0))).map(|(c, _)| c).take(12).collect()
}

impl Emit<'_> {
    /// A part of `rsqrt.approx.f64`, step by step as `num` makes it.
    pub(crate) fn inverse_double_root(&mut self, q: usize, src: &[Src], out: Out) {
        let (x, guess, scaled, high, low, rest) = (zmm(1), zmm(2), zmm(3), zmm(4), zmm(5), zmm(6));
        let a = self.reg(&src[0], q, 0);
        self.a.op2(Code::EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er, x, a);
        let one = self.double(1.0);
        self.a.op2(load_code(Ty::B64), rest, one);
        self.a.op3(DIVIDE, guess, rest, x);
        // Where it is right as it is.
        let compare = Code::EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae;
        let [zero, infinite, small] = [0.0, f64::INFINITY, f64::from_bits((1023 - 900) << 52)].map(|c| self.double(c));
        self.a.op3i(compare, K6, guess, zero, 0x1e);
        self.a.op3i(compare, Out::masked(K6, K6), guess, infinite, 0x11);
        self.a.op3i(compare, K7, a, small, 0x11);
        let [up, down, back] = [200, -100, 100].map(|n: i64| self.double(f64::from_bits(((1023 + n) as u64) << 52)));
        self.a.op2(load_code(Ty::B64), x, a);
        self.a.op3(TIMES, Out::masked(x, K7), x, up);
        self.a.op2(load_code(Ty::B64), scaled, guess);
        self.a.op3(TIMES, Out::masked(scaled, K7), scaled, down);
        // `low` is what the rounded product lacks, with the sign turned twice.
        let sign = self.constant(Ty::B64, 1 << 63);
        let turn = Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64;
        self.a.op3(TIMES, high, x, scaled);
        self.a.op3(turn, low, high, sign);
        self.a.op3(PLUS_TIMES, low, x, scaled);
        self.a.op3(turn, x, scaled, sign);
        self.a.op3(PLUS_TIMES, rest, high, x);
        self.a.op3(PLUS_TIMES, rest, low, x);
        let half = self.double(0.5);
        self.a.op3(TIMES, low, scaled, half);
        self.a.op3(TIMES_PLUS, low, rest, scaled);
        self.a.op3(TIMES, Out::masked(low, K7), low, back);
        self.a.op2(load_code(Ty::B64), Out::masked(guess, K6), low);
        self.canonical(Ty::B64, guess.into());
        self.copy(Ty::B64, out, guess.into());
    }

    /// A part of the other ops that [`has_code`] names: of the upper word of the operand, rounded to the upper word of the result.
    pub(crate) fn upper_word(&mut self, op: Pure, q: usize, src: &[Src], out: Out) {
        let (x, r) = (zmm(4), zmm(5));
        let a = self.reg(&src[0], q, 0);
        let upper = self.constant(Ty::B64, 0xffff_ffff_0000_0000);
        self.a.op3(AND_Q, x, a, upper);
        self.flush_double(x);
        if matches!(op, Pure::FRsqrt(_)) {
            self.a.op2(Code::EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er, x, x);
        }
        let one = self.constant(Ty::B64, 1f64.to_bits());
        self.a.op2(load_code(Ty::B64), r, one);
        self.a.op3(DIVIDE, r, r, x);
        self.canonical(Ty::B64, r.into());
        self.flush_double(r);
        // Half of the last place that stays, less one bit if that is even. A NaN stays as it is.
        self.a.op3i(Code::EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae, K6, r, r, 7);
        self.a.op2i(RIGHT_Q, x, r, 32);
        let bit = self.constant(Ty::B64, 1);
        self.a.op3(AND_Q, x, x, bit);
        let half = self.constant(Ty::B64, 0x7fff_ffff);
        self.a.op3(ADD_Q, x, x, half);
        self.a.op3(ADD_Q, Out::masked(r, K6), r, x);
        self.a.op3(AND_Q, out, r, upper);
    }

    /// Makes subnormal numbers of `.f64` zero.
    fn flush_double(&mut self, r: Register) {
        let exponent = self.constant(Ty::B64, 0x7ff0_0000_0000_0000);
        self.a.op3(Code::EVEX_Vptestnmq_kr_k1_zmm_zmmm512b64, K7, r, exponent);
        let sign = self.constant(Ty::B64, 1 << 63);
        self.a.op3(AND_Q, Out::masked(r, K7), r, sign);
    }

    /// A function whose result varies. Says whether the op is one.
    pub(crate) fn rounded_function(&mut self, inst: &Inst, op: Pure) -> bool {
        let (Some((function, ftz)), [d]) = (function(op), inst.dst.as_slice()) else { return false };
        let d = *d;
        if matches!(self.place(d), Place::Words(_)) || matches!(inst.src[0], Val::Imm(..)) {
            return false;
        }
        let s = self.clean_src(inst.src[0]);
        // The routine may come when the source's place has the result.
        let row = self.take_scratch(2 * RESULTS);
        for q in 0..2 {
            let a = self.reg(&s, q, 0);
            let own = row + 64 * q as u32;
            self.a.store(store_code(Ty::B32), ctx(own), a, ALL);
            if let Some(code) = self.code_of((function, ftz)) {
                self.a.op2(Code::Lea_r64_m, RDI, ctx(own));
                self.a.jump(Code::Call_rel32_64, code);
                if !self.a.has_wide_vectors() {
                    self.a.op2(load_code(Ty::B32), zmm(6), ctx(own + RESULTS));
                }
            } else {
                self.part_of((function, ftz), a);
            }
            if q == 0 {
                self.a.op2(Code::Mov_r32_rm32, ESI, EAX);
            } else {
                self.a.imm8(Code::Shl_rm32_imm8, EAX, 16);
                self.a.op2(Code::Or_r32_rm32, ESI, EAX);
            }
            let out = self.out(d, q);
            self.copy(Ty::B32, out, zmm(6).into());
            self.commit(d, q);
        }
        let done = self.a.label();
        self.a.op2(Code::And_r32_rm32, ESI, LANES);
        self.a.jump(Code::Je_rel32_64, done);
        let loc = self.result_loc(d, true);
        self.tables.evals.push(EvalSite { op, dst: vec![loc], src: vec![Loc::Row32(row)] });
        let site = self.tables.evals.len() - 1;
        self.routine(Routine::Eval, site, LANES);
        self.take_result(d, loc, LANES);
        self.a.bind(done);
        true
    }

    /// A function of a vector, to vector 6; `eax` are lanes in which that is not sure.
    fn part_of(&mut self, (function, ftz): Rounded, a: Register) {
        let given = Src::new(At::Given(a), Ty::B32);
        let x = if ftz { self.flushed(&given, 0, 0) } else { a };
        self.copy(Ty::B32, zmm(0).into(), x.into());
        self.function_of(function);
        if ftz {
            self.flush(zmm(6).into());
        }
        self.a.op2(Code::VEX_Kmovw_r32_kr, EAX, K5);
    }

    /// Where the code of a function stands that is wanted often enough for one. It takes what lies at `rdi`, and makes what [`part_of`](Self::part_of) does; without wide vectors the
    /// result lies behind that in memory.
    fn code_of(&mut self, of: Rounded) -> Option<Label> {
        if self.functions.is_none() {
            let mut uses: Vec<(Rounded, u32)> = Vec::new();
            for inst in self.f.blocks.iter().flat_map(|b| &b.insts) {
                let Op::Pure(op) = inst.op else { continue };
                let Some(of) = function(op) else { continue };
                match uses.iter_mut().find(|u| u.0 == of) {
                    Some(u) => u.1 += 1,
                    None => uses.push((of, 1)),
                }
            }
            uses.retain(|u| u.1 >= OFTEN);
            self.functions = Some(uses.into_iter().map(|u| (u.0, self.a.label())).collect());
        }
        self.functions.iter().flatten().find(|f| f.0 == of).map(|f| f.1)
    }

    /// The code of functions that are wanted often.
    pub(crate) fn functions_code(&mut self) {
        for (of, label) in self.functions.take().into_iter().flatten() {
            if !self.a.is_wanted(label) {
                continue;
            }
            self.a.bind(label);
            self.a.op2(load_code(Ty::B32), zmm(0), Mem::at(RDI, 0));
            self.part_of(of, zmm(0));
            if !self.a.has_wide_vectors() {
                self.a.store(store_code(Ty::B32), Mem::at(RDI, RESULTS.cast_signed()), zmm(6), ALL);
            }
            self.a.op0(Code::Retnq);
        }
    }

    /// A constant of `.f64` for each lane.
    fn double(&mut self, x: f64) -> Mem {
        self.constant(Ty::B64, x.to_bits())
    }

    /// A polynomial: the first coefficient is the constant one.
    fn polynomial(&mut self, list: &[f64], x: Register, to: Register) {
        let (last, rest) = list.split_last().unwrap_or((&0.0, &[]));
        let c = self.double(*last);
        self.a.op2(load_code(Ty::B64), to, c);
        for c in rest.iter().rev() {
            let c = self.double(*c);
            self.a.op3(TIMES_PLUS, to, x, c);
        }
    }

    /// Of vector 0, which it keeps, to vector 6; `k5` are lanes in which that is not sure. Uses vectors 1 to 7.
    fn function_of(&mut self, function: Function) {
        let x = zmm(0);
        if function == Function::Power {
            // Far from zero the result is infinite or zero. A NaN becomes the constant.
            let [least, most] = [-200f32, 200f32].map(|end| self.constant(Ty::B32, end.to_bits().into()));
            self.a.op3(Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae, zmm(1), x, least);
            self.a.op3(Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae, zmm(1), zmm(1), most);
            // The nearest whole number, and what is left, exactly.
            self.a.op2i(Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae, zmm(2), zmm(1), 8);
            self.a.op3(Code::EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er, zmm(1), zmm(1), zmm(2));
            self.a.op2(Code::EVEX_Vcvtps2dq_zmm_k1z_zmmm512b32_er, zmm(3), zmm(2));
        }
        if function == Function::HyperbolicTangent {
            // Far from zero it is one. A NaN becomes the constant.
            let [size, most] = [0x7fff_ffff, 20f32.to_bits().into()].map(|c| self.constant(Ty::B32, c));
            self.a.op3(AND_D, zmm(1), x, size);
            self.a.op3(Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae, zmm(1), zmm(1), most);
        }
        for half in 0..2 {
            let y = match function {
                Function::Power => self.power(half),
                Function::Logarithm => self.logarithm(half),
                Function::Sine | Function::Cosine => self.circular_function(function, half),
                Function::HyperbolicTangent => self.hyperbolic_tangent(half),
            };
            // Rounded from both ends of where the result may be.
            let (low, high) = if half == 0 { (zmm(6), zmm(7)) } else { (zmm(4), zmm(5)) };
            let other = if y == zmm(5) { zmm(4) } else { zmm(5) };
            let [less, more] = [1.0 - AWAY, 1.0 + AWAY].map(|by| self.double(by));
            self.a.op3(TIMES, other, y, less);
            self.a.op3(TIMES, y, y, more);
            // Which is which makes no difference.
            let (first, second) = if y == low { (low, high) } else { (high, low) };
            self.a.op2(CUT, ymm(first), y);
            self.a.op2(CUT, ymm(second), other);
        }
        let join = Code::EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8;
        self.a.op3i(join, zmm(6), zmm(6), ymm(zmm(4)), 1);
        self.a.op3i(join, zmm(7), zmm(7), ymm(zmm(5)), 1);
        let differ = Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8;
        let nan = self.constant(Ty::B32, 0x7fff_ffff);
        match function {
            Function::Power | Function::HyperbolicTangent => {
                self.a.op3i(differ, K5, zmm(6), zmm(7), 4);
                if function == Function::HyperbolicTangent {
                    let sign = self.constant(Ty::B32, 1 << 31);
                    self.a.op3(AND_D, zmm(4), x, sign);
                    self.a.op3(Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, zmm(6), zmm(6), zmm(4));
                }
                self.a.op3i(COMPARE, K7, x, x, 3);
                self.a.op2(load_code(Ty::B32), Out::masked(zmm(6), K7), nan);
            }
            Function::Logarithm => {
                // Of positive numbers; of zero and infinity it is infinite, of what is below zero there is none.
                let [zero, infinite] = [0f32, f32::INFINITY].map(|c| self.constant(Ty::B32, c.to_bits().into()));
                self.a.op3i(COMPARE, K6, x, zero, 0x1e);
                self.a.op3i(COMPARE, Out::masked(K6, K6), x, infinite, 0x11);
                self.a.op3i(differ, Out::masked(K5, K6), zmm(6), zmm(7), 4);
                self.a.op2(load_code(Ty::B32), zmm(4), nan);
                self.a.op3i(COMPARE, K7, x, zero, 0);
                let none = self.constant(Ty::B32, f32::NEG_INFINITY.to_bits().into());
                self.a.op2(load_code(Ty::B32), Out::masked(zmm(4), K7), none);
                self.a.op3i(COMPARE, K7, x, infinite, 0);
                self.a.op2(load_code(Ty::B32), Out::masked(zmm(4), K7), infinite);
                self.a.op2(load_code(Ty::B32), Out::masked(zmm(4), K6), zmm(6));
                self.a.op2(load_code(Ty::B32), zmm(6), zmm(4));
            }
            Function::Sine | Function::Cosine => {
                self.a.op3i(differ, K5, zmm(6), zmm(7), 4);
                let size = self.constant(Ty::B32, 0x7fff_ffff);
                self.a.op3(AND_D, zmm(4), x, size);
                let most = self.constant(Ty::B32, MOST_ANGLE.to_bits().into());
                self.a.op3i(differ, K6, zmm(4), most, 6);
                self.a.op3(Code::VEX_Korw_kr_kr_kr, K5, K5, K6);
            }
        }
    }

    /// Half of the lanes as `.f64`.
    fn half_as_doubles(&mut self, from: Register, half: usize, to: Register) {
        let from = if half == 0 {
            from
        } else {
            self.a.op2i(Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8, ymm(to), from, 1);
            to
        };
        self.a.op2(WIDEN, to, ymm(from));
    }

    /// `2^f` times the power of two of the whole number: the exponent goes up.
    fn power(&mut self, half: usize) -> Register {
        let (f, y) = (zmm(4), zmm(5));
        self.half_as_doubles(zmm(1), half, f);
        self.polynomial(&powers(), f, y);
        let n = zmm(4);
        let widen = Code::EVEX_Vpmovsxdq_zmm_k1z_ymmm256;
        if half == 0 {
            self.a.op2(widen, n, ymm(zmm(3)));
        } else {
            self.a.op2i(Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8, ymm(n), zmm(3), 1);
            self.a.op2(widen, n, ymm(n));
        }
        self.a.op2i(LEFT_Q, n, n, 52);
        self.a.op3(ADD_Q, y, y, n);
        y
    }

    /// `x = e^2a - 1` by a power of two and what is left, then `x / (x + 2)`, of numbers from zero on.
    fn hyperbolic_tangent(&mut self, half: usize) -> Register {
        let (n, power, r, x) = (zmm(2), zmm(3), zmm(4), zmm(5));
        self.half_as_doubles(zmm(1), half, r);
        self.a.op3(ADD, r, r, r);
        let by = self.double(std::f64::consts::LOG2_E);
        self.a.op3(TIMES, n, r, by);
        self.a.op2i(Code::EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae, n, n, 8);
        for part in LOGARITHM_OF_TWO {
            let part = self.double(-part);
            self.a.op3(PLUS_TIMES, r, n, part);
        }
        self.polynomial(&exponentials(), r, x);
        self.a.op3(TIMES, x, x, r);
        let [magic, one, minus, two] = [WHOLE, 1.0, -1.0, 2.0].map(|c| self.double(c));
        self.a.op3(ADD, power, n, magic);
        self.a.op2i(LEFT_Q, power, power, 52);
        self.a.op3(ADD_Q, power, power, one);
        self.a.op3(ADD, r, power, minus);
        self.a.op3(TIMES_PLUS, x, power, r);
        self.a.op3(ADD, r, x, two);
        self.a.op3(DIVIDE, x, x, r);
        x
    }

    /// The exponent that leaves a number within a square root of two of one, and the logarithm of that number.
    fn logarithm(&mut self, half: usize) -> Register {
        let (s, m, y, e) = (zmm(4), zmm(5), zmm(2), zmm(3));
        let root = self.constant(Ty::B64, std::f64::consts::FRAC_1_SQRT_2.to_bits());
        self.half_as_doubles(zmm(0), half, s);
        self.a.op3(SUB_Q, m, s, root);
        self.a.op2i(Code::EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8, e, m, 52);
        let fraction = self.constant(Ty::B64, (1 << 52) - 1);
        self.a.op3(AND_Q, m, m, fraction);
        self.a.op3(ADD_Q, m, m, root);
        let [one, minus] = [1.0, -1.0].map(|c| self.double(c));
        self.a.op3(ADD, s, m, minus);
        self.a.op3(ADD, m, m, one);
        self.a.op3(DIVIDE, s, s, m);
        let square = m;
        self.a.op3(TIMES, square, s, s);
        self.polynomial(&logarithms(), square, y);
        self.a.op3(TIMES, y, y, s);
        self.a.op2(Code::EVEX_Vcvtqq2pd_zmm_k1z_zmmm512b64_er, e, e);
        self.a.op3(ADD, s, y, e);
        s
    }

    /// By the number of right angles, and what is left.
    fn circular_function(&mut self, function: Function, half: usize) -> Register {
        let (r, n, turns, y, other) = (zmm(1), zmm(2), zmm(3), zmm(4), zmm(5));
        self.half_as_doubles(zmm(0), half, r);
        let by = self.double(std::f64::consts::FRAC_2_PI);
        self.a.op3(TIMES, n, r, by);
        self.a.op2i(Code::EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae, n, n, 8);
        // -0 becomes +0, so that what is left of -0 is that.
        let zero = self.double(0.0);
        self.a.op3(ADD, n, n, zero);
        for part in RIGHT_ANGLE {
            let part = self.double(-part);
            self.a.op3(PLUS_TIMES, r, n, part);
        }
        let magic = self.double(WHOLE);
        self.a.op3(ADD, turns, n, magic);
        if function == Function::Cosine {
            let one = self.constant(Ty::B64, 1);
            self.a.op3(ADD_Q, turns, turns, one);
        }
        let square = n;
        self.a.op3(TIMES, square, r, r);
        self.polynomial(&circular(1), square, y);
        self.a.op3(TIMES, y, y, r);
        self.polynomial(&circular(0), square, other);
        let odd = self.constant(Ty::B64, 1);
        self.a.op3(Code::EVEX_Vptestmq_kr_k1_zmm_zmmm512b64, K7, turns, odd);
        self.a.op2(load_code(Ty::B64), Out::masked(y, K7), other);
        self.a.op2i(LEFT_Q, turns, turns, 62);
        let sign = self.constant(Ty::B64, 1 << 63);
        self.a.op3(AND_Q, turns, turns, sign);
        self.a.op3(Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64, y, y, turns);
        y
    }
}
