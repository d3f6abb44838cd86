//! Integer ops of several instructions: carries, division, bit counting, fields and permutations by registers, kinds of floats by their bits.
//!
//! Shifts of the host by amounts from the width on give zero, or the sign: most cases of fields that reach past an end come out by that.

use handloom_ir::simt::{Inst, Pure};
use handloom_ir::types::{Int, PrmtMode, TestProperty, Ty};
use iced_x86::{Code, Register, RoundingControl};

use crate::alloc::{Place, n_parts};
use crate::asm::{Label, Mem, Out, Rm};
use crate::emit::*;
use crate::values::{At, Src, by_width, is_wide, load_code, store_code};

const ESI: Register = Register::ESI;
const K5: Register = Register::K5;
const K6: Register = Register::K6;
const K7: Register = Register::K7;

/// An instruction at both widths.
#[derive(Clone, Copy)]
struct Both(Code, Code);

const ADD: Both = Both(Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64);
const SUB: Both = Both(Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64);
const AND: Both = Both(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64);
const OR: Both = Both(Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vporq_zmm_k1z_zmm_zmmm512b64);
const XOR: Both = Both(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64);
const LEFT: Both = Both(Code::EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpsllvq_zmm_k1z_zmm_zmmm512b64);
const RIGHT: Both = Both(Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpsrlvq_zmm_k1z_zmm_zmmm512b64);
const SIGNED_RIGHT: Both = Both(Code::EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpsravq_zmm_k1z_zmm_zmmm512b64);
const LEAST: Both = Both(Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpminuq_zmm_k1z_zmm_zmmm512b64);
const IS_ZERO: Both = Both(Code::EVEX_Vptestnmd_kr_k1_zmm_zmmm512b32, Code::EVEX_Vptestnmq_kr_k1_zmm_zmmm512b64);
const COMPARE: Both = Both(Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8, Code::EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8);
const BYTES: Code = Code::EVEX_Vpshufb_zmm_k1z_zmm_zmmm512;
const LESS: u32 = 1;

/// Whether an op has code here.
pub(crate) fn has_code(op: Pure) -> bool {
    match op {
        Pure::Popc(ty) | Pure::Brev(ty) | Pure::Clz(ty) => ty != Ty::P,
        Pure::Bfind { int, .. } | Pure::Bfe(int) => int.ty != Ty::B16,
        Pure::Bfi(ty) => ty != Ty::B16,
        Pure::AddSat(int) | Pure::SubSat(int) => int == Int::S32,
        Pure::MulHi(int) => int.ty == Ty::B64,
        Pure::Div(int) | Pure::Rem(int) => int.ty != Ty::P,
        Pure::Prmt(_) | Pure::Szext { .. } | Pure::Bmsk { .. } => true,
        Pure::Dp4a { .. } | Pure::Dp2a { .. } | Pure::Mul24 { .. } => true,
        _ => false,
    }
}

impl Emit<'_> {
    fn op3b(&mut self, code: Both, ty: Ty, out: impl Into<Out>, a: Register, rm: impl Into<Rm>) {
        self.a.op3(by_width(ty, code.0, code.1), out, a, rm);
    }

    /// A constant in a register.
    fn constant_to(&mut self, ty: Ty, to: Register, x: u64) {
        let c = self.constant(ty, x);
        self.a.op2(load_code(ty), to, c);
    }

    /// A source of 32 bits at the width of an op, in a register that may be written.
    fn amount(&mut self, s: &Src, ty: Ty, q: usize, i: u8) -> Register {
        if is_wide(ty) {
            return self.widened(s, q, false, i);
        }
        let r = self.reg(s, q, i);
        if r != zmm(i) {
            self.a.op2(load_code(ty), zmm(i), r);
        }
        zmm(i)
    }

    /// A part of an op that [`has_code`] names.
    pub(crate) fn integer(&mut self, op: Pure, q: usize, src: &[Src], out: Out) {
        match op {
            Pure::Popc(ty) | Pure::Clz(ty) => self.counted(op, ty, q, src, out),
            Pure::Bfind { int, .. } => self.counted(op, int.ty, q, src, out),
            Pure::Brev(ty) => self.reversed(ty, q, src, out),
            Pure::Bfe(int) => self.field_by_registers(int, q, src, out),
            Pure::Bfi(ty) => self.insert_by_registers(ty, q, src, out),
            Pure::AddSat(_) | Pure::SubSat(_) => self.saturated(matches!(op, Pure::SubSat(_)), q, src, out),
            Pure::MulHi(int) => self.high_product(int, q, src, out),
            Pure::Div(int) if is_wide(int.ty) => self.divide_words(int, false, q, src, out),
            Pure::Rem(int) if is_wide(int.ty) => self.divide_words(int, true, q, src, out),
            Pure::Div(int) => self.divide_by_floats(int, false, q, src, out),
            Pure::Rem(int) => self.divide_by_floats(int, true, q, src, out),
            Pure::Prmt(mode) => self.permute_by_registers(mode, q, src, out),
            Pure::Szext { signed, wrap } => {
                let a = self.reg(&src[0], q, 0);
                let n = self.amount(&src[1], Ty::B32, q, 1);
                let c = self.constant(Ty::B32, if wrap { 31 } else { 32 });
                self.op3b(if wrap { AND } else { LEAST }, Ty::B32, n, n, c);
                self.extended_from(signed, a, n, Ty::B32, out);
            }
            Pure::Bmsk { wrap } => {
                let [at, n] = [0, 1].map(|i| self.amount(&src[i], Ty::B32, q, i as u8));
                if wrap {
                    let c = self.constant(Ty::B32, 31);
                    self.op3b(AND, Ty::B32, at, at, c);
                    self.op3b(AND, Ty::B32, n, n, c);
                }
                self.ones(Ty::B32, n, zmm(4));
                self.op3b(LEFT, Ty::B32, out, zmm(4), at);
            }
            Pure::Dp4a { a_signed, b_signed } => self.dot_of_bytes([a_signed, b_signed], q, src, out),
            Pure::Dp2a { a_signed, b_signed, hi } => self.dot_of_halves([a_signed, b_signed], hi, q, src, out),
            Pure::Mul24 { signed, hi: true } => {
                // The upper half of the product of numbers that are 256 times as large.
                let moved = [0, 1].map(|i| {
                    let (r, to) = (self.reg(&src[i], q, i as u8), zmm(i as u8));
                    self.a.op2i(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, to, r, 8);
                    Src::new(At::Given(to), Ty::B32)
                });
                self.mul_hi(Int { ty: Ty::B32, signed }, q, &moved, out);
            }
            Pure::Mul24 { signed, hi: false } => {
                let right = if signed {
                    Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8
                } else {
                    Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8
                };
                for (i, s) in (0..).zip(src) {
                    let r = self.reg(s, q, i);
                    self.a.op2i(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, zmm(4 + i), r, 8);
                    self.a.op2i(right, zmm(4 + i), zmm(4 + i), 8);
                }
                self.a.op3(Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32, out, zmm(4), zmm(5));
            }
            other => panic!("{other:?} has no code here"),
        }
    }

    /// A number of ones, from bit 0 on.
    fn ones(&mut self, ty: Ty, n: Register, to: Register) {
        self.constant_to(ty, to, 1);
        self.op3b(LEFT, ty, to, to, n);
        let c = self.constant(ty, ty.mask());
        self.op3b(ADD, ty, to, to, c);
    }

    /// The low bits of a value, at most all of them, extended. Clobbers `n` and vector 4.
    fn extended_from(&mut self, signed: bool, a: Register, n: Register, ty: Ty, out: Out) {
        self.constant_to(ty, zmm(4), ty.bits().into());
        self.op3b(SUB, ty, n, zmm(4), n);
        self.op3b(LEFT, ty, zmm(4), a, n);
        self.op3b(if signed { SIGNED_RIGHT } else { RIGHT }, ty, out, zmm(4), n);
    }

    fn field_by_registers(&mut self, int: Int, q: usize, src: &[Src], out: Out) {
        let ty = int.ty;
        let a = self.reg(&src[0], q, 0);
        let [at, n] = [1, 2].map(|i| self.amount(&src[i], ty, q, i as u8));
        let byte = self.constant(ty, 0xff);
        self.op3b(AND, ty, at, at, byte);
        self.op3b(AND, ty, n, n, byte);
        self.op3b(if int.signed { SIGNED_RIGHT } else { RIGHT }, ty, zmm(5), a, at);
        if int.signed {
            let most = self.constant(ty, ty.bits().into());
            self.op3b(LEAST, ty, n, n, most);
            self.extended_from(true, zmm(5), n, ty, out);
        } else {
            self.ones(ty, n, zmm(4));
            self.op3b(AND, ty, out, zmm(4), zmm(5));
        }
    }

    fn insert_by_registers(&mut self, ty: Ty, q: usize, src: &[Src], out: Out) {
        let (at, n) = (self.amount(&src[2], ty, q, 2), self.amount(&src[3], ty, q, 3));
        let byte = self.constant(ty, 0xff);
        self.op3b(AND, ty, at, at, byte);
        self.op3b(AND, ty, n, n, byte);
        self.ones(ty, n, zmm(4));
        self.op3b(LEFT, ty, zmm(4), zmm(4), at);
        let field = self.reg(&src[0], q, 0);
        self.op3b(LEFT, ty, zmm(5), field, at);
        let base = self.rm(&src[1], q, 1);
        let choose = by_width(
            ty,
            Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8,
            Code::EVEX_Vpternlogq_zmm_k1z_zmm_zmmm512b64_imm8,
        );
        self.a.op3i(choose, zmm(4), zmm(5), base, 0xca);
        self.copy(ty, out, zmm(4).into());
    }

    /// Bytes of two words: nibbles of the selector become bytes, each of which picks within its word.
    fn permute_by_registers(&mut self, mode: PrmtMode, q: usize, src: &[Src], out: Out) {
        let ty = Ty::B32;
        let s = self.amount(&src[2], ty, q, 2);
        let selectors: Option<[u32; 4]> = match mode {
            PrmtMode::Default => None,
            PrmtMode::F4e => Some([0x3210, 0x4321, 0x5432, 0x6543]),
            PrmtMode::B4e => Some([0x5670, 0x6701, 0x7012, 0x0123]),
            PrmtMode::Rc8 => Some([0x0000, 0x1111, 0x2222, 0x3333]),
            PrmtMode::Ecl => Some([0x3210, 0x3211, 0x3222, 0x3333]),
            PrmtMode::Ecr => Some([0x0000, 0x1110, 0x2210, 0x3210]),
            PrmtMode::Rc16 => Some([0x1010, 0x3232, 0x1010, 0x3232]),
        };
        if let Some(list) = selectors {
            let c = self.constant(ty, 3);
            self.op3b(AND, ty, s, s, c);
            let table = self.a.words(std::array::from_fn(|i| list[i % 4]));
            self.a.op3(Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32, s, s, Mem::constant(table, 0));
        }
        let x = zmm(4);
        let c = self.constant(ty, 0xffff);
        self.op3b(AND, ty, x, s, c);
        for (by, kept) in [(8, 0x00ff_00ff), (4, 0x0f0f_0f0f)] {
            self.a.op2i(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, zmm(5), x, by);
            self.op3b(OR, ty, x, x, zmm(5));
            let c = self.constant(ty, kept);
            self.op3b(AND, ty, x, x, c);
        }
        for (k, bit) in [(K5, 0x0404_0404), (K6, 0x0808_0808)] {
            let c = self.constant(ty, bit);
            self.a.op3(Code::EVEX_Vptestmb_kr_k1_zmm_zmmm512, k, x, c);
        }
        let c = self.constant(ty, 0x0303_0303);
        self.op3b(AND, ty, x, x, c);
        let places = self.a.bytes(std::array::from_fn(|i| (i % 16 / 4 * 4) as u8));
        self.op3b(OR, ty, x, x, Mem::constant(places, 0));
        let (a, b) = (self.reg(&src[0], q, 0), self.reg(&src[1], q, 1));
        self.a.op3(BYTES, zmm(5), a, x);
        self.a.op3(BYTES, Out::masked(zmm(5), K5), b, x);
        // Some bytes are their sign, eight times.
        self.a.op2(Code::EVEX_Vpmovb2m_kr_zmm, K7, zmm(5));
        self.a.op2(Code::EVEX_Vpmovm2b_zmm_kr, zmm(6), K7);
        self.a.op2(Code::EVEX_Vmovdqu8_zmm_k1z_zmmm512, Out::masked(zmm(5), K6), zmm(6));
        self.copy(ty, out, zmm(5).into());
    }

    /// Counts of bits: a result of 32 bits from sources of any width.
    fn counted(&mut self, op: Pure, from: Ty, q: usize, src: &[Src], out: Out) {
        let parts: &[usize] = if is_wide(from) { &[0, 1] } else { &[0] };
        for &h in parts {
            let (part, to) = if is_wide(from) { (2 * q + h, zmm(4 + h as u8)) } else { (q, zmm(4)) };
            let a = self.reg(&src[0], part, 0);
            match op {
                Pure::Popc(_) => self.ones_of(from, a, to),
                Pure::Clz(_) => self.leading_zeros(from, a, to),
                Pure::Bfind { int, shiftamt } => {
                    let mut a = a;
                    if int.signed {
                        let sign = by_width(
                            from,
                            Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8,
                            Code::EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8,
                        );
                        self.a.op2i(sign, zmm(1), a, from.bits() - 1);
                        self.op3b(XOR, from, zmm(1), zmm(1), a);
                        a = zmm(1);
                    }
                    self.leading_zeros(from, a, to);
                    if shiftamt {
                        self.op3b(IS_ZERO, from, K7, a, a);
                        let c = self.constant(from, from.mask());
                        self.a.op2(load_code(from), Out::masked(to, K7), c);
                    } else {
                        self.constant_to(from, zmm(2), u64::from(from.bits()) - 1);
                        self.op3b(SUB, from, to, zmm(2), to);
                    }
                }
                other => panic!("{other:?} counts nothing"),
            }
        }
        if is_wide(from) {
            for r in [zmm(4), zmm(5)] {
                self.a.op2(Code::EVEX_Vpmovqd_ymmm256_k1z_zmm, ymm(r), r);
            }
            self.a.op3i(Code::EVEX_Vinserti32x8_zmm_k1z_zmm_ymmm256_imm8, out, zmm(4), ymm(zmm(5)), 1);
        } else {
            self.copy(Ty::B32, out, zmm(4).into());
        }
    }

    fn leading_zeros(&mut self, ty: Ty, a: Register, to: Register) {
        let code = by_width(ty, Code::EVEX_Vplzcntd_zmm_k1z_zmmm512b32, Code::EVEX_Vplzcntq_zmm_k1z_zmmm512b64);
        self.a.op2(code, to, a);
        if ty == Ty::B16 {
            let c = self.constant(Ty::B32, 0xffff_fff0);
            self.op3b(ADD, ty, to, to, c);
        }
    }

    /// Nibbles by a table: the lower ones to vector 2, the upper ones to vector 3.
    fn nibbles(&mut self, a: Register, low: [u8; 16], high: [u8; 16]) {
        let c = self.constant(Ty::B32, 0x0f0f_0f0f);
        self.op3b(AND, Ty::B32, zmm(2), a, c);
        self.a.op2i(Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8, zmm(3), a, 4);
        self.op3b(AND, Ty::B32, zmm(3), zmm(3), c);
        for (r, table) in [(zmm(2), low), (zmm(3), high)] {
            let table = self.a.bytes(std::array::from_fn(|i| table[i % 16]));
            self.a.op2(load_code(Ty::B32), zmm(6), Mem::constant(table, 0));
            self.a.op3(BYTES, r, zmm(6), r);
        }
    }

    fn ones_of(&mut self, ty: Ty, a: Register, to: Register) {
        let table = std::array::from_fn(|i| i.count_ones() as u8);
        self.nibbles(a, table, table);
        self.a.op3(Code::EVEX_Vpaddb_zmm_k1z_zmm_zmmm512, zmm(2), zmm(2), zmm(3));
        if is_wide(ty) {
            self.op3b(XOR, ty, zmm(3), zmm(3), zmm(3));
            self.a.op3(Code::EVEX_Vpsadbw_zmm_zmm_zmmm512, to, zmm(2), zmm(3));
        } else {
            // Pairs of bytes, then pairs of their sums.
            let one = self.constant(Ty::B32, 0x0101_0101);
            self.a.op3(Code::EVEX_Vpmaddubsw_zmm_k1z_zmm_zmmm512, zmm(2), zmm(2), one);
            let one = self.constant(Ty::B32, 0x0001_0001);
            self.a.op3(Code::EVEX_Vpmaddwd_zmm_k1z_zmm_zmmm512, to, zmm(2), one);
        }
    }

    pub(crate) fn reversed(&mut self, ty: Ty, q: usize, src: &[Src], out: Out) {
        let a = self.reg(&src[0], q, 0);
        let turned = |i: usize| (i as u8).reverse_bits();
        self.nibbles(a, std::array::from_fn(turned), std::array::from_fn(|i| turned(i) >> 4));
        self.op3b(OR, Ty::B32, zmm(2), zmm(2), zmm(3));
        let size = if is_wide(ty) { 8 } else { 4 };
        let bytes = self.a.bytes(std::array::from_fn(|i| (i % 16 / size * size + size - 1 - i % size) as u8));
        if ty == Ty::B16 {
            self.a.op3(BYTES, zmm(2), zmm(2), Mem::constant(bytes, 0));
            self.a.op2i(Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8, out, zmm(2), 16);
        } else {
            self.a.op3(BYTES, zmm(2), zmm(2), Mem::constant(bytes, 0));
            self.copy(ty, out, zmm(2).into());
        }
    }

    /// Sums and differences of `.s32` that stay in its range: what overflows has the sign that the first source has.
    fn saturated(&mut self, is_sub: bool, q: usize, src: &[Src], out: Out) {
        let ty = Ty::B32;
        let (a, b) = (self.reg(&src[0], q, 0), self.reg(&src[1], q, 1));
        let (sum, x, y) = (zmm(4), zmm(5), zmm(6));
        self.op3b(if is_sub { SUB } else { ADD }, ty, sum, a, b);
        self.op3b(XOR, ty, x, a, sum);
        self.op3b(XOR, ty, y, b, if is_sub { a } else { sum });
        self.op3b(AND, ty, x, x, y);
        self.a.op2(Code::EVEX_Vpmovd2m_kr_zmm, K7, x);
        self.a.op2i(Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8, x, a, 31);
        let c = self.constant(ty, 0x7fff_ffff);
        self.op3b(XOR, ty, Out::masked(sum, K7), x, c);
        self.copy(ty, out, sum.into());
    }

    /// The upper half of a product of 64 bits, by four products of halves.
    fn high_product(&mut self, int: Int, q: usize, src: &[Src], out: Out) {
        const TIMES: Code = Code::EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64;
        const DOWN: Code = Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8;
        let ty = Ty::B64;
        let (a, b) = (self.reg(&src[0], q, 0), self.reg(&src[1], q, 1));
        let (ah, bh, sum, x, low) = (zmm(2), zmm(3), zmm(4), zmm(5), zmm(6));
        self.a.op2i(DOWN, ah, a, 32);
        self.a.op2i(DOWN, bh, b, 32);
        // The middle: `ah * bl` and what `al * bl` carries.
        self.a.op3(TIMES, x, a, b);
        self.a.op2i(DOWN, x, x, 32);
        self.a.op3(TIMES, sum, ah, b);
        self.op3b(ADD, ty, x, x, sum);
        let c = self.constant(ty, 0xffff_ffff);
        self.op3b(AND, ty, low, x, c);
        self.a.op2i(DOWN, x, x, 32);
        self.a.op3(TIMES, sum, a, bh);
        self.op3b(ADD, ty, low, low, sum);
        self.a.op2i(DOWN, low, low, 32);
        self.a.op3(TIMES, sum, ah, bh);
        self.op3b(ADD, ty, sum, sum, x);
        self.op3b(ADD, ty, sum, sum, low);
        if int.signed {
            for (sign, other) in [(a, b), (b, a)] {
                self.a.op2(Code::EVEX_Vpmovq2m_kr_zmm, K7, sign);
                self.op3b(SUB, ty, Out::masked(sum, K7), sum, other);
            }
        }
        self.copy(ty, out, sum.into());
    }

    /// Division of integers of at most 32 bits in `.f64`: the quotient of two of them is at least `1 / a` away from the next whole number, relative to
    /// itself, so the rounded one is cut to the right number. `MIN / -1` does not fit and becomes MIN.
    ///
    /// By what is the same in all lanes they are multiplied: by a number above its inverse, and by less than 2^-51 of itself. So no product is below a
    /// whole number that the quotient reaches, and what is too much of it, less than 2^32 / b * 2^-51, is less than the `1 / b` that lies below the next.
    fn divide_by_floats(&mut self, int: Int, is_rem: bool, q: usize, src: &[Src], out: Out) {
        let ty = Ty::B32;
        let signed16 = int.ty == Ty::B16 && int.signed;
        let [a, b] =
            [0, 1].map(|i| if signed16 { self.sext16(&src[i], q, i as u8) } else { self.reg(&src[i], q, i as u8) });
        let (widen, cut) = if int.signed {
            (Code::EVEX_Vcvtdq2pd_zmm_k1z_ymmm256b32_er, Code::EVEX_Vcvttpd2dq_ymm_k1z_zmmm512b64_sae)
        } else {
            (Code::EVEX_Vcvtudq2pd_zmm_k1z_ymmm256b32_er, Code::EVEX_Vcvttpd2udq_ymm_k1z_zmmm512b64_sae)
        };
        let by_same = match src[1].at {
            At::Imm(_) => true,
            At::Words(shape, _) => shape.is_uniform(),
            _ => false,
        };
        if by_same {
            let one = self.constant(Ty::B64, 1f64.to_bits());
            self.a.op2(widen, zmm(2), ymm(b));
            self.a.op2(load_code(Ty::B64), zmm(3), one);
            self.a.op3(Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er, zmm(3), zmm(3), zmm(2));
            let last_place = self.constant(Ty::B64, 1);
            self.op3b(ADD, Ty::B64, zmm(3), zmm(3), last_place);
        }
        for (h, to) in [(0, zmm(4)), (1, zmm(5))] {
            for (r, half) in [(a, zmm(2)), (b, zmm(3))].into_iter().take(if by_same { 1 } else { 2 }) {
                if h == 0 {
                    self.a.op2(widen, half, ymm(r));
                } else {
                    self.a.op2i(Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8, ymm(half), r, 1);
                    self.a.op2(widen, half, ymm(half));
                }
            }
            let code = if by_same {
                Code::EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er
            } else {
                Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er
            };
            self.a.op3(code, zmm(2), zmm(2), zmm(3));
            self.a.op2(cut, ymm(to), zmm(2));
        }
        self.a.op3i(Code::EVEX_Vinserti32x8_zmm_k1z_zmm_ymmm256_imm8, zmm(4), zmm(4), ymm(zmm(5)), 1);
        if is_rem {
            self.a.op3(Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32, zmm(4), zmm(4), b);
            self.op3b(SUB, ty, zmm(4), a, zmm(4));
        }
        self.op3b(IS_ZERO, ty, K7, b, b);
        let c = self.constant(ty, u64::from(u32::MAX));
        self.a.op2(load_code(ty), Out::masked(zmm(4), K7), c);
        if int.ty == Ty::B16 {
            let c = self.constant(ty, 0xffff);
            self.op3b(AND, ty, out, zmm(4), c);
        } else {
            self.copy(ty, out, zmm(4).into());
        }
    }

    /// Division of integers of 64 bits: all lanes at once where none of their numbers is large, else lane by lane.
    fn divide_words(&mut self, int: Int, is_rem: bool, q: usize, src: &[Src], out: Out) {
        let sources = [0, 1].map(|i| self.reg(&src[i], q, i as u8));
        // The host of AVX2 has no such conversions.
        if !self.a.has_wide_vectors() {
            return self.divide_by_lanes(int, is_rem, sources, out);
        }
        let [large, done] = std::array::from_fn(|_| self.a.label());
        self.divide_small(int, is_rem, sources, out, large);
        self.a.jump(Code::Jmp_rel32_64, done);
        self.a.bind(large);
        self.divide_by_lanes(int, is_rem, sources, out);
        self.a.bind(done);
    }

    /// Division of integers below 2^53 in `.f64`, which holds them as they are: towards zero, a quotient is rounded to no whole number beyond it, so that it is cut to the right one, and
    /// what is left is exact. Goes to `large` if a lane has another number, or divides by zero.
    fn divide_small(&mut self, int: Int, is_rem: bool, [a, b]: [Register; 2], out: Out, large: Label) {
        let ty = Ty::B64;
        let (x, y, compare) = (zmm(4), zmm(5), COMPARE.1);
        const AT_LEAST: u32 = 5;
        let limit = 1u64 << 53;
        let (add, most) =
            if int.signed { (limit, self.constant(ty, 2 * limit)) } else { (0, self.constant(ty, limit)) };
        for (r, k) in [(a, K7), (b, K6)] {
            let r = if add != 0 {
                let add = self.constant(ty, add);
                self.op3b(ADD, ty, x, r, add);
                x
            } else {
                r
            };
            self.a.op3i(compare, Out::masked(k, out.mask), r, most, AT_LEAST);
        }
        self.a.op3(Code::VEX_Korw_kr_kr_kr, K7, K7, K6);
        self.op3b(IS_ZERO, ty, Out::masked(K6, out.mask), b, b);
        self.a.op3(Code::VEX_Korw_kr_kr_kr, K7, K7, K6);
        self.a.op2(Code::VEX_Kortestw_kr_kr, K7, K7);
        self.a.jump(Code::Jne_rel32_64, large);
        let (widen, cut) = (Code::EVEX_Vcvtqq2pd_zmm_k1z_zmmm512b64_er, Code::EVEX_Vcvttpd2qq_zmm_k1z_zmmm512b64_sae);
        self.a.op2(widen, x, a);
        self.a.op2(widen, y, b);
        let quotient = if is_rem { zmm(6) } else { x };
        let divide = Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er;
        self.a.op3r(divide, quotient, x, y, RoundingControl::RoundTowardZero);
        if is_rem {
            self.a.op2i(Code::EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae, quotient, quotient, 8 | 3);
            self.a.op3(Code::EVEX_Vfnmadd231pd_zmm_k1z_zmm_zmmm512b64_er, x, quotient, y);
        }
        self.a.op2(cut, out, x);
    }

    /// The same, lane by lane.
    fn divide_by_lanes(&mut self, int: Int, is_rem: bool, sources: [Register; 2], out: Out) {
        let rows = self.take_scratch(128);
        for (i, r) in (0..).zip(sources) {
            self.a.store(store_code(Ty::B64), ctx(rows + 64 * i), r, ALL);
        }
        let [again, none, short, turned, done] = std::array::from_fn(|_| self.a.label());
        let lane = |at: u32| Mem::indexed(WARP, RCX, 8, at.cast_signed());
        self.a.number(RCX, 7);
        self.a.bind(again);
        self.load64(RAX, lane(rows));
        self.load64(RSI, lane(rows + 64));
        self.a.op2(Code::Test_rm64_r64, RSI, RSI);
        self.a.jump(Code::Je_rel32_64, none);
        if int.signed {
            self.a.imm(Code::Cmp_rm64_imm32, RSI, -1);
            self.a.jump(Code::Je_rel32_64, turned);
        }
        // Short numbers divide much faster on many hosts.
        self.a.op2(Code::Mov_r64_rm64, RDX, RAX);
        self.a.op2(Code::Or_r64_rm64, RDX, RSI);
        self.a.imm8(Code::Shr_rm64_imm8, RDX, 32);
        self.a.jump(Code::Je_rel32_64, short);
        if int.signed {
            self.a.op0(Code::Cqo);
            self.a.op1(Code::Idiv_rm64, RSI);
        } else {
            self.a.number(RDX, 0);
            self.a.op1(Code::Div_rm64, RSI);
        }
        self.a.jump(Code::Jmp_rel32_64, done);
        self.a.bind(short);
        self.a.number(RDX, 0);
        self.a.op1(Code::Div_rm32, ESI);
        self.a.jump(Code::Jmp_rel32_64, done);
        if int.signed {
            // By -1: also of MIN.
            self.a.bind(turned);
            self.a.op1(Code::Neg_rm64, RAX);
            self.a.number(RDX, 0);
            self.a.jump(Code::Jmp_rel32_64, done);
        }
        self.a.bind(none);
        self.a.imm(Code::Mov_rm64_imm32, RAX, -1);
        self.a.imm(Code::Mov_rm64_imm32, RDX, -1);
        self.a.bind(done);
        self.store64(lane(rows), if is_rem { RDX } else { RAX });
        self.a.imm(Code::Sub_rm32_imm32, ECX, 1);
        self.a.jump(Code::Jns_rel32_64, again);
        self.a.op2(load_code(Ty::B64), out, ctx(rows));
    }

    /// Even and odd bytes as halves, whose products are added in pairs.
    fn dot_of_bytes(&mut self, signed: [bool; 2], q: usize, src: &[Src], out: Out) {
        let ty = Ty::B32;
        let sources = [0, 1].map(|i| self.reg(&src[i], q, i as u8));
        let sum = self.amount(&src[2], ty, q, 2);
        for odd in [false, true] {
            for (i, (r, signed)) in sources.into_iter().zip(signed).enumerate() {
                let to = zmm(4 + i as u8);
                let right = if signed {
                    Code::EVEX_Vpsraw_zmm_k1z_zmmm512_imm8
                } else {
                    Code::EVEX_Vpsrlw_zmm_k1z_zmmm512_imm8
                };
                if odd {
                    self.a.op2i(right, to, r, 8);
                } else {
                    self.a.op2i(Code::EVEX_Vpsllw_zmm_k1z_zmmm512_imm8, to, r, 8);
                    self.a.op2i(right, to, to, 8);
                }
            }
            self.a.op3(Code::EVEX_Vpmaddwd_zmm_k1z_zmm_zmmm512, zmm(4), zmm(4), zmm(5));
            self.op3b(ADD, ty, sum, sum, zmm(4));
        }
        self.copy(ty, out, sum.into());
    }

    /// Two products of halves with bytes, and a sum.
    fn dot_of_halves(&mut self, signed: [bool; 2], hi: bool, q: usize, src: &[Src], out: Out) {
        let ty = Ty::B32;
        let sources = [0, 1].map(|i| self.reg(&src[i], q, i as u8));
        let sum = self.amount(&src[2], ty, q, 2);
        for i in 0..2 {
            // Left until nothing is above the number, and right until nothing is below it.
            let moves = [(16 - 16 * i, 16), (if hi { 8 } else { 24 } - 8 * i, 24)];
            for (n, (r, signed)) in (0..).zip(sources.into_iter().zip(signed)) {
                let (to, (left, right)) = (zmm(4 + n), moves[usize::from(n)]);
                let shift = if signed {
                    Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8
                } else {
                    Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8
                };
                self.a.op2i(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, to, r, left);
                self.a.op2i(shift, to, to, right);
            }
            self.a.op3(Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32, zmm(4), zmm(4), zmm(5));
            self.op3b(ADD, ty, sum, sum, zmm(4));
        }
        self.copy(ty, out, sum.into());
    }

    /// Whether floats are of a kind: by where their bits without the sign lie among those of all numbers.
    pub(crate) fn has_property(&mut self, property: TestProperty, ty: Ty, q: usize, src: &[Src], k: Register) {
        // As instructions number them.
        let [equal, less, at_most, at_least, more] = [0, 1, 2, 5, 6];
        let code = by_width(ty, COMPARE.0, COMPARE.1);
        let (infinite, subnormal) =
            if ty == Ty::B64 { (0x7ff0_0000_0000_0000, (1 << 52) - 1) } else { (0x7f80_0000, (1 << 23) - 1) };
        let a = self.reg(&src[0], q, 0);
        let (bits, mask, infinite) = (zmm(4), self.constant(ty, ty.mask() >> 1), self.constant(ty, infinite));
        self.op3b(AND, ty, bits, a, mask);
        let by_infinity = match property {
            TestProperty::Finite | TestProperty::Normal => Some(less),
            TestProperty::Infinite => Some(equal),
            TestProperty::Number => Some(at_most),
            TestProperty::NotANumber => Some(more),
            TestProperty::Subnormal => None,
        };
        if let Some(n) = by_infinity {
            self.a.op3i(code, k, bits, infinite, n);
        }
        // One less: zero is above them then.
        let (n, k) = match property {
            TestProperty::Subnormal => (less, Out::from(k)),
            TestProperty::Normal => (at_least, Out::masked(k, k)),
            _ => return,
        };
        let [minus, subnormal] = [ty.mask(), subnormal].map(|c| self.constant(ty, c));
        self.op3b(ADD, ty, bits, bits, minus);
        self.a.op3i(code, k, bits, subnormal, n);
    }

    /// A sum or difference with a carry, whose results vary. Says whether it is one.
    pub(crate) fn carry(&mut self, inst: &Inst, op: Pure) -> bool {
        let (ty, is_sum) = match op {
            Pure::AddCarry(ty) => (ty, true),
            Pure::SubBorrow(ty) => (ty, false),
            _ => return false,
        };
        let [sum, carry] = inst.dst[..] else { return false };
        if ty == Ty::B16 || [sum, carry].iter().any(|d| matches!(self.place(*d), Place::Words(_))) {
            return false;
        }
        let src: Vec<Src> = inst.src.iter().map(|v| self.clean_src(*v)).collect();
        let takes_none = matches!(src[2].at, At::Imm(0));
        let step = 32 / n_parts(ty);
        for q in 0..n_parts(ty) {
            if !takes_none {
                let k = self.part_bits(&src[2], ty, q, K5);
                if k != K5 {
                    self.a.op2(Code::VEX_Kmovw_kr_km16, K5, k);
                }
            }
            let (a, b) = (self.reg(&src[0], q, 0), self.reg(&src[1], q, 1));
            let compare = by_width(ty, COMPARE.0, COMPARE.1);
            let to = zmm(4);
            if is_sum {
                self.op3b(ADD, ty, to, a, b);
                self.a.op3i(compare, K6, to, a, LESS);
            } else {
                self.a.op3i(compare, K6, a, b, LESS);
                self.op3b(SUB, ty, to, a, b);
            }
            if !takes_none {
                // One more, or less, passes zero.
                let ones = self.constant(ty, ty.mask());
                if is_sum {
                    self.op3b(SUB, ty, Out::masked(to, K5), to, ones);
                }
                self.op3b(IS_ZERO, ty, Out::masked(K7, K5), to, to);
                if !is_sum {
                    self.op3b(ADD, ty, Out::masked(to, K5), to, ones);
                }
                self.a.op3(Code::VEX_Korw_kr_kr_kr, K6, K6, K7);
            }
            self.a.op2(Code::VEX_Kmovw_r32_kr, EAX, K6);
            if q == 0 {
                self.a.op2(Code::Mov_r32_rm32, ESI, EAX);
            } else {
                self.a.imm8(Code::Shl_rm32_imm8, EAX, (step * q) as u32);
                self.a.op2(Code::Or_r32_rm32, ESI, EAX);
            }
            let out = self.out(sum, q);
            self.copy(ty, out, to.into());
            self.commit(sum, q);
        }
        self.a.op2(Code::Mov_r32_rm32, EAX, ESI);
        self.set_bits(carry);
        true
    }
}
