//! SIMD video instructions: bytes and halves of the words of a vector.
//!
//! Where both sources have one sign, elements stay in lanes of their own width. Else, or where the exact result is wider than an element, the even and
//! the odd elements are spread over two vectors of lanes twice as wide, in which every result is exact.

use handloom_ir::simt::video::*;
use handloom_ir::types::{Cmp, Ty};
use iced_x86::{Code, Register};

use crate::asm::{Mem, Out};
use crate::emit::*;
use crate::values::{Src, load_code};

/// An instruction on bytes, on halves and on words.
#[derive(Clone, Copy)]
struct Sizes([Code; 3]);

const ADD: Sizes = Sizes([
    Code::EVEX_Vpaddb_zmm_k1z_zmm_zmmm512,
    Code::EVEX_Vpaddw_zmm_k1z_zmm_zmmm512,
    Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32,
]);
const SUB: Sizes = Sizes([
    Code::EVEX_Vpsubb_zmm_k1z_zmm_zmmm512,
    Code::EVEX_Vpsubw_zmm_k1z_zmm_zmmm512,
    Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32,
]);
const LEAST_SIGNED: Sizes = Sizes([
    Code::EVEX_Vpminsb_zmm_k1z_zmm_zmmm512,
    Code::EVEX_Vpminsw_zmm_k1z_zmm_zmmm512,
    Code::EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32,
]);
const LEAST: Sizes = Sizes([
    Code::EVEX_Vpminub_zmm_k1z_zmm_zmmm512,
    Code::EVEX_Vpminuw_zmm_k1z_zmm_zmmm512,
    Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32,
]);
const MOST_SIGNED: Sizes = Sizes([
    Code::EVEX_Vpmaxsb_zmm_k1z_zmm_zmmm512,
    Code::EVEX_Vpmaxsw_zmm_k1z_zmm_zmmm512,
    Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32,
]);
const MOST: Sizes = Sizes([
    Code::EVEX_Vpmaxub_zmm_k1z_zmm_zmmm512,
    Code::EVEX_Vpmaxuw_zmm_k1z_zmm_zmmm512,
    Code::EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32,
]);
const XOR: Code = Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32;
const AND: Code = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
const BYTES: Code = Code::EVEX_Vpshufb_zmm_k1z_zmm_zmmm512;
const PAIRS_OF_BYTES: Code = Code::EVEX_Vpmaddubsw_zmm_k1z_zmm_zmmm512;
const PAIRS_OF_HALVES: Code = Code::EVEX_Vpmaddwd_zmm_k1z_zmm_zmmm512;
const CHOOSE: Code = Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8;
/// `a ? b : c`, bit by bit.
const CHOICE: u32 = 0xca;

impl Sizes {
    fn of(self, bits: u32) -> Code {
        self.0[bits.trailing_zeros() as usize - 3]
    }
}

/// Where the results of the elements are.
#[derive(Clone, Copy)]
enum Results {
    /// In place, in a vector. They are exact if read with this sign.
    Own(Register, bool),
    /// The even ones and the odd ones in lanes twice as wide, signed, in vectors 3 and 6.
    Spread,
}

/// Whether an op is one instruction on elements in place.
fn single(v: VideoSimd) -> Option<Code> {
    use Code::*;
    let same = v.a.signed == v.b.signed;
    let alike = same && v.signed == v.a.signed;
    let of = |byte, half| Some(if v.bits() == 8 { byte } else { half });
    let cut = !v.sat && !v.accumulate;
    match (v.op, v.signed) {
        (SimdOp::Add, _) if cut => Some(ADD.of(v.bits())),
        (SimdOp::Sub, _) if cut => Some(SUB.of(v.bits())),
        (SimdOp::Add, true) if v.sat && alike => of(EVEX_Vpaddsb_zmm_k1z_zmm_zmmm512, EVEX_Vpaddsw_zmm_k1z_zmm_zmmm512),
        (SimdOp::Add, false) if v.sat && alike => {
            of(EVEX_Vpaddusb_zmm_k1z_zmm_zmmm512, EVEX_Vpaddusw_zmm_k1z_zmm_zmmm512)
        }
        (SimdOp::Sub, true) if v.sat && alike => of(EVEX_Vpsubsb_zmm_k1z_zmm_zmmm512, EVEX_Vpsubsw_zmm_k1z_zmm_zmmm512),
        (SimdOp::Sub, false) if v.sat && alike => {
            of(EVEX_Vpsubusb_zmm_k1z_zmm_zmmm512, EVEX_Vpsubusw_zmm_k1z_zmm_zmmm512)
        }
        (SimdOp::Min, _) if same => Some(if v.a.signed { LEAST_SIGNED } else { LEAST }.of(v.bits())),
        (SimdOp::Max, _) if same => Some(if v.a.signed { MOST_SIGNED } else { MOST }.of(v.bits())),
        (SimdOp::Avrg, _) if same && !v.a.signed => {
            of(EVEX_Vpavgb_zmm_k1z_zmm_zmmm512, EVEX_Vpavgw_zmm_k1z_zmm_zmmm512)
        }
        _ => None,
    }
}

/// Ones in the elements that the mask names.
fn element_mask(v: VideoSimd) -> u32 {
    let element = u32::MAX >> (32 - v.bits());
    (0..u32::from(v.n)).filter(|i| v.mask >> i & 1 != 0).fold(0, |mask, i| mask | element << (i * v.bits()))
}

impl Emit<'_> {
    /// A part of a SIMD video op. Uses vectors 3 to 7 before it writes.
    pub(crate) fn video_simd(&mut self, v: VideoSimd, q: usize, src: &[Src], out: Out) {
        let counted = element_mask(v);
        if counted == 0 {
            let c = self.rm(&src[2], q, 2);
            self.copy(Ty::B32, out, c);
            return;
        }
        let (a, b) = (self.reg(&src[0], q, 0), self.reg(&src[1], q, 1));
        let x = self.selected(v, v.a, [a, b], zmm(4));
        let y = self.selected(v, v.b, [a, b], zmm(5));
        let is_merged = v.accumulate || counted != u32::MAX;
        if let Some(code) = single(v).filter(|_| !is_merged && !crosses(v) && out.mask == ALL) {
            self.a.op3(code, out, x, y);
            return;
        }
        let results = self.elements_in_place(v, x, y).unwrap_or_else(|| self.spread_out(v, x, y));
        if v.accumulate {
            self.accumulated(v, results, q, &src[2], out);
            return;
        }
        let merged = match results {
            Results::Own(r, _) => r,
            Results::Spread => {
                // Within a wide lane the odd element is above the even one.
                self.shifted(v, Shift::Left, zmm(6), zmm(6));
                self.repeated(zmm(7), if v.bits() == 8 { 0x00ff_00ff } else { 0xffff });
                self.a.op3i(CHOOSE, zmm(7), zmm(3), zmm(6), CHOICE);
                zmm(7)
            }
        };
        if counted == u32::MAX {
            self.copy(Ty::B32, out, merged.into());
            return;
        }
        let c = self.rm(&src[2], q, 2);
        self.repeated(zmm(3), counted);
        self.a.op3i(CHOOSE, zmm(3), merged, c, CHOICE);
        self.copy(Ty::B32, out, zmm(3).into());
    }

    /// A word for each lane, in a register.
    fn repeated(&mut self, to: Register, word: u32) {
        let c = self.constant(Ty::B32, word.into());
        self.a.op2(load_code(Ty::B32), to, c);
    }

    /// The same number for each element of so many bits, in memory; its upper bits are cut.
    fn in_elements(&mut self, bits: u32, value: u32) -> Mem {
        let element = value & (u32::MAX >> (32 - bits));
        let word = (0..32 / bits).fold(0, |w, i| w | element << (i * bits));
        self.constant(Ty::B32, word.into())
    }

    /// The elements of a source: one of the sources as it is, or what is made in `to`. May use vector 6.
    fn selected(&mut self, v: VideoSimd, e: Elements, from: [Register; 2], to: Register) -> Register {
        let (n, size) = (v.n, 4 / v.n);
        let picked = &e.select[..usize::from(n)];
        for (first, whole) in [(0, from[0]), (n, from[1])] {
            if picked.iter().zip(first..).all(|(have, want)| *have == want) {
                return whole;
            }
        }
        // What the other source has is zero.
        let bytes = [0, n].map(|first| {
            std::array::from_fn(|i| {
                let (lane, at) = (i as u8 % 16 / 4 * 4, i as u8 % 4);
                let element = picked[usize::from(at / size)];
                if (first..first + n).contains(&element) { lane + (element - first) * size + at % size } else { 0x80 }
            })
        });
        let mut made = None;
        for (from, bytes) in from.into_iter().zip(bytes) {
            if bytes == [0x80; 64] {
                continue;
            }
            let c = Mem::constant(self.a.bytes(bytes), 0);
            let at = if made.is_none() { to } else { zmm(6) };
            self.a.op3(BYTES, at, from, c);
            if made.is_some() {
                self.a.op3(Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, to, to, zmm(6));
            }
            made = Some(to);
        }
        to
    }

    /// Results in lanes as wide as the elements, in vector 6, if that is exact enough. Uses vector 3.
    fn elements_in_place(&mut self, v: VideoSimd, x: Register, y: Register) -> Option<Results> {
        let (bits, signed, r) = (v.bits(), v.a.signed, zmm(6));
        let same = v.a.signed == v.b.signed;
        let mut is_signed = signed;
        match (single(v), v.op) {
            (Some(code), _) => self.a.op3(code, r, x, y),
            (None, SimdOp::AbsDiff) if same => {
                let (least, most) = if signed { (LEAST_SIGNED, MOST_SIGNED) } else { (LEAST, MOST) };
                self.a.op3(most.of(bits), r, x, y);
                self.a.op3(least.of(bits), zmm(3), x, y);
                self.a.op3(SUB.of(bits), r, r, zmm(3));
                is_signed = false;
            }
            (None, SimdOp::Set(cmp)) if same => {
                self.holds(bits, cmp, signed, [x, y], r);
                return Some(Results::Own(r, false));
            }
            _ => return None,
        }
        if !crosses(v) {
            return Some(Results::Own(r, if v.sat { v.signed } else { is_signed }));
        }
        // What fits an element of one sign and is clamped to the other crosses one end only.
        if is_signed {
            let zero = self.in_elements(bits, 0);
            self.a.op3(MOST_SIGNED.of(bits), r, r, zero);
        } else {
            let most = self.in_elements(bits, (1 << (bits - 1)) - 1);
            self.a.op3(LEAST.of(bits), r, r, most);
        }
        Some(Results::Own(r, v.signed))
    }

    /// 1 in the lanes of a width where a comparison holds, else 0: the larger one is not the first, or not the second source. `to` may be the second
    /// source, or the first if that is not asked for again.
    fn holds(&mut self, bits: u32, cmp: Cmp, signed: bool, [x, y]: [Register; 2], to: Register) {
        let most = if signed { MOST_SIGNED } else { MOST }.of(bits);
        let is_turned = match cmp {
            Cmp::Lt | Cmp::Ltu | Cmp::Ge | Cmp::Geu => {
                self.a.op3(most, to, x, y);
                self.a.op3(XOR, to, to, x);
                matches!(cmp, Cmp::Ge | Cmp::Geu)
            }
            Cmp::Gt | Cmp::Gtu | Cmp::Le | Cmp::Leu => {
                // The sources change places.
                return self.holds(bits, cmp.swapped(), signed, [y, x], to);
            }
            Cmp::Eq | Cmp::Equ | Cmp::Ne | Cmp::Neu => {
                self.a.op3(XOR, to, x, y);
                matches!(cmp, Cmp::Eq | Cmp::Equ)
            }
            Cmp::Num | Cmp::Nan => panic!("a comparison of integers for {cmp:?} at {:?}", self.at),
        };
        let one = self.in_elements(bits, 1);
        self.a.op3(LEAST.of(bits), to, to, one);
        if is_turned {
            self.a.op3(XOR, to, to, one);
        }
    }

    /// Results in lanes twice as wide.
    fn spread_out(&mut self, v: VideoSimd, x: Register, y: Register) -> Results {
        let bits = 2 * v.bits();
        for (is_odd, a, b) in [(false, zmm(3), zmm(6)), (true, zmm(6), zmm(7))] {
            self.half_of_elements(v, is_odd, x, v.a.signed, a);
            self.half_of_elements(v, is_odd, y, v.b.signed, b);
            match v.op {
                SimdOp::Add => self.a.op3(ADD.of(bits), a, a, b),
                SimdOp::Sub => self.a.op3(SUB.of(bits), a, a, b),
                SimdOp::Avrg => {
                    // One more where the sum has no sign.
                    self.a.op3(ADD.of(bits), a, a, b);
                    self.by_number(bits, Shift::SignedRight, b, a, bits - 1);
                    self.a.op3(ADD.of(bits), a, a, b);
                    let one = self.in_elements(bits, 1);
                    self.a.op3(ADD.of(bits), a, a, one);
                    self.by_number(bits, Shift::SignedRight, a, a, 1);
                }
                SimdOp::AbsDiff => {
                    self.a.op3(SUB.of(bits), a, a, b);
                    let code = if bits == 16 {
                        Code::EVEX_Vpabsw_zmm_k1z_zmmm512
                    } else {
                        Code::EVEX_Vpabsd_zmm_k1z_zmmm512b32
                    };
                    self.a.op2(code, a, a);
                }
                SimdOp::Min => self.a.op3(LEAST_SIGNED.of(bits), a, a, b),
                SimdOp::Max => self.a.op3(MOST_SIGNED.of(bits), a, a, b),
                SimdOp::Set(cmp) => self.wide_set(bits, cmp, a, b),
            }
            if v.sat {
                let n = v.bits();
                let (least, most) =
                    if v.signed { (u32::MAX << (n - 1), (1 << (n - 1)) - 1) } else { (0, u32::MAX >> (32 - n)) };
                let least = self.in_elements(bits, least);
                self.a.op3(MOST_SIGNED.of(bits), a, a, least);
                let most = self.in_elements(bits, most);
                self.a.op3(LEAST_SIGNED.of(bits), a, a, most);
            }
        }
        Results::Spread
    }

    /// A comparison in wide lanes, in place of the first source; both are written.
    fn wide_set(&mut self, bits: u32, cmp: Cmp, a: Register, b: Register) {
        // The one that is asked for again must not be the result.
        match cmp {
            Cmp::Lt | Cmp::Ltu | Cmp::Ge | Cmp::Geu => {
                self.holds(bits, cmp, true, [a, b], b);
                self.a.op2(load_code(Ty::B32), a, b);
            }
            _ => self.holds(bits, cmp, true, [a, b], a),
        }
    }

    /// The even or the odd elements in lanes twice as wide.
    fn half_of_elements(&mut self, v: VideoSimd, is_odd: bool, from: Register, signed: bool, to: Register) {
        match (is_odd, signed) {
            (false, true) => {
                self.shifted(v, Shift::Left, to, from);
                self.shifted(v, Shift::SignedRight, to, to);
            }
            (false, false) => {
                let low = self.in_elements(2 * v.bits(), u32::MAX >> (32 - v.bits()));
                self.a.op3(AND, to, from, low);
            }
            (true, true) => self.shifted(v, Shift::SignedRight, to, from),
            (true, false) => self.shifted(v, Shift::Right, to, from),
        }
    }

    /// A shift of wide lanes by the width of an element.
    fn shifted(&mut self, v: VideoSimd, shift: Shift, to: Register, from: Register) {
        self.by_number(2 * v.bits(), shift, to, from, v.bits());
    }

    fn by_number(&mut self, bits: u32, shift: Shift, to: Register, from: Register, n: u32) {
        let code = match (shift, bits) {
            (Shift::Left, 16) => Code::EVEX_Vpsllw_zmm_k1z_zmmm512_imm8,
            (Shift::Left, _) => Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8,
            (Shift::Right, 16) => Code::EVEX_Vpsrlw_zmm_k1z_zmmm512_imm8,
            (Shift::Right, _) => Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8,
            (Shift::SignedRight, 16) => Code::EVEX_Vpsraw_zmm_k1z_zmmm512_imm8,
            (Shift::SignedRight, _) => Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8,
        };
        self.a.op2i(code, to, from, n);
    }

    /// `c` and the results that the mask names: products with weights of one and zero, added in pairs.
    fn accumulated(&mut self, v: VideoSimd, results: Results, q: usize, c: &Src, out: Out) {
        let counts = |i: usize| v.mask >> i & 1;
        let halves = |low: u8, high: u8| u32::from(low) | u32::from(high) << 16;
        let add = ADD.of(32);
        let sum = zmm(6);
        match (results, v.bits()) {
            (Results::Own(r, signed), 8) => {
                let weights = u32::from_le_bytes(std::array::from_fn(counts));
                if signed {
                    // The first factors are read without signs.
                    self.repeated(zmm(3), weights);
                    self.a.op3(PAIRS_OF_BYTES, sum, zmm(3), r);
                } else {
                    let weights = self.constant(Ty::B32, weights.into());
                    self.a.op3(PAIRS_OF_BYTES, sum, r, weights);
                }
                let ones = self.constant(Ty::B32, 0x0001_0001);
                self.a.op3(PAIRS_OF_HALVES, sum, sum, ones);
            }
            (Results::Own(r, true), _) => {
                let weights = self.constant(Ty::B32, halves(counts(0), counts(1)).into());
                self.a.op3(PAIRS_OF_HALVES, sum, r, weights);
            }
            (Results::Own(r, false), _) => {
                self.half_of_elements(v, false, r, false, zmm(3));
                self.half_of_elements(v, true, r, false, sum);
                self.sum_of_counted(v, zmm(3));
            }
            (Results::Spread, 8) => {
                let weights = self.constant(Ty::B32, halves(counts(0), counts(2)).into());
                self.a.op3(PAIRS_OF_HALVES, zmm(3), zmm(3), weights);
                let weights = self.constant(Ty::B32, halves(counts(1), counts(3)).into());
                self.a.op3(PAIRS_OF_HALVES, sum, sum, weights);
                self.a.op3(add, sum, sum, zmm(3));
            }
            (Results::Spread, _) => self.sum_of_counted(v, zmm(3)),
        }
        let c = self.rm(c, q, 2);
        self.a.op3(add, out, sum, c);
    }

    /// Of two elements, one in `even` and the other in vector 6, those that count: their sum in vector 6.
    fn sum_of_counted(&mut self, v: VideoSimd, even: Register) {
        match v.mask & 3 {
            1 => self.a.op2(load_code(Ty::B32), zmm(6), even),
            2 => {}
            _ => self.a.op3(ADD.of(32), zmm(6), zmm(6), even),
        }
    }
}

#[derive(Clone, Copy)]
enum Shift {
    Left,
    Right,
    SignedRight,
}

/// Whether results in place are of one sign and clamped to the other.
fn crosses(v: VideoSimd) -> bool {
    let is_signed = match v.op {
        // Those that are in place with `.sat` have the sign of the destination.
        SimdOp::Add | SimdOp::Sub | SimdOp::Set(_) => return false,
        SimdOp::AbsDiff => false,
        SimdOp::Avrg | SimdOp::Min | SimdOp::Max => v.a.signed,
    };
    v.sat && is_signed != v.signed
}
