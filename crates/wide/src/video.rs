//! Scalar video instructions.
//!
//! The bounds of each value are known when code is made. Where all that is asked for is right in 32 bits, signed or unsigned, an op stays in lanes of 32
//! bits; else it goes through lanes of 64 bits, in which every number is exact, half by half.

use handloom_ir::simt::Pure;
use handloom_ir::simt::video::*;
use handloom_ir::types::Ty;
use iced_x86::{Code, Register};

use crate::asm::Out;
use crate::emit::*;
use crate::table::int_cmp;
use crate::values::{At, Src, load_code};

use Code::{
    EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8 as UPPER_HALF, EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8 as JOIN,
    EVEX_Vpabsq_zmm_k1z_zmmm512b64 as ABS_Q, EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32 as ADD,
    EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64 as ADD_Q, EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32 as AND,
    EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32 as MOST_S, EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64 as MOST_Q,
    EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32 as MOST_U, EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32 as LEAST_S,
    EVEX_Vpminsq_zmm_k1z_zmm_zmmm512b64 as LEAST_Q, EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32 as LEAST_U,
    EVEX_Vpminuq_zmm_k1z_zmm_zmmm512b64 as LEAST_UQ, EVEX_Vpmovqd_ymmm256_k1z_zmm as CUT,
    EVEX_Vpmovsxdq_zmm_k1z_ymmm256 as WIDEN_S, EVEX_Vpmovzxdq_zmm_k1z_ymmm256 as WIDEN_U,
    EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32 as SUB, EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64 as SUB_Q,
    EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8 as CHOOSE,
};

/// What ends at a product of two unsigned words is cut to this: what it is clamped to is far below, also after a shift by 15.
const HUGE: u64 = 1 << 62;

/// Least and greatest of some numbers.
#[derive(Clone, Copy)]
struct Bounds {
    low: i64,
    high: i64,
}

impl Bounds {
    /// Numbers of so many bits.
    fn range(bits: u32, signed: bool) -> Bounds {
        if signed {
            Bounds { low: -(1 << (bits - 1)), high: (1 << (bits - 1)) - 1 }
        } else {
            Bounds { low: 0, high: (1 << bits) - 1 }
        }
    }

    fn of(p: PartOf) -> Bounds {
        Bounds::range(p.part.bits(), p.signed)
    }

    fn fit(self, signed: bool) -> bool {
        let all = Bounds::range(32, signed);
        self.low >= all.low && self.high <= all.high
    }

    /// The sign that these and others can be compared with in 32 bits.
    fn sign_with(self, other: Bounds) -> Option<bool> {
        [true, false].into_iter().find(|signed| self.fit(*signed) && other.fit(*signed))
    }

    fn clamped(self, to: Bounds) -> Bounds {
        Bounds { low: self.low.clamp(to.low, to.high), high: self.high.clamp(to.low, to.high) }
    }
}

/// Whether the exact number of the primary operation is asked for, not its low 32 bits.
fn is_exact(v: Video) -> bool {
    v.sat || matches!(v.end, VideoEnd::Min | VideoEnd::Max)
}

/// The bounds of the primary operation's result, if lanes of 32 bits have all that is asked for.
fn in_words(v: Video) -> Option<Bounds> {
    let (x, y) = (Bounds::of(v.a), Bounds::of(v.second()));
    let result = match v.op {
        VideoOp::Add => Bounds { low: x.low + y.low, high: x.high + y.high },
        VideoOp::Sub => Bounds { low: x.low - y.high, high: x.high - y.low },
        VideoOp::Shr { .. } => x,
        // Up to 64 bits.
        VideoOp::Shl { .. } => Bounds { low: i64::MIN, high: i64::MAX },
        VideoOp::AbsDiff | VideoOp::Min | VideoOp::Max | VideoOp::Set(_) => {
            x.sign_with(y)?;
            match v.op {
                VideoOp::AbsDiff => Bounds { low: 0, high: (x.high - y.low).max(y.high - x.low) },
                VideoOp::Min => Bounds { low: x.low.min(y.low), high: x.high.min(y.high) },
                VideoOp::Max => Bounds { low: x.low.max(y.low), high: x.high.max(y.high) },
                _ => Bounds { low: 0, high: 1 },
            }
        }
    };
    if !is_exact(v) {
        return Some(Bounds::range(32, true));
    }
    if !(result.fit(true) || result.fit(false)) {
        return None;
    }
    if matches!(v.end, VideoEnd::Min | VideoEnd::Max) {
        let last = if v.sat { result.clamped(Bounds::range(v.range_bits(), v.signed)) } else { result };
        last.sign_with(Bounds::range(32, v.signed))?;
    }
    Some(result)
}

/// Whether an op has code here.
pub(crate) fn has_code(op: Pure) -> bool {
    match op {
        Pure::Video(Video { op: VideoOp::Set(cmp), .. }) | Pure::VideoSimd(VideoSimd { op: SimdOp::Set(cmp), .. }) => {
            int_cmp(cmp).is_some()
        }
        Pure::Video(_) | Pure::Vmad(_) | Pure::VideoSimd(_) => true,
        _ => false,
    }
}

impl Emit<'_> {
    /// A part of an op that [`has_code`] names.
    pub(crate) fn video(&mut self, op: Pure, q: usize, src: &[Src], out: Out) {
        match op {
            Pure::Video(v) => match in_words(v) {
                Some(bounds) => self.video_in_words(v, bounds, q, src, out),
                None => self.video_in_doubles(v, q, src, out),
            },
            Pure::Vmad(v) if !v.sat && v.shift == 0 => self.vmad_in_words(v, q, src, out),
            Pure::Vmad(v) => self.vmad_in_doubles(v, q, src, out),
            Pure::VideoSimd(v) => self.video_simd(v, q, src, out),
            other => panic!("{other:?} has no code here"),
        }
    }

    /// A part of each word, extended: in a vector, or the source itself.
    fn part_of_words(&mut self, p: PartOf, s: &Src, q: usize, i: u8, to: Register) -> Register {
        let from = self.reg(s, q, i);
        let (at, bits) = (p.part.at(), p.part.bits());
        if bits == 32 {
            return from;
        }
        let (left, up) = (Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, 32 - at - bits);
        if p.signed {
            let mut from = from;
            if up > 0 {
                self.a.op2i(left, to, from, up);
                from = to;
            }
            self.a.op2i(Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8, to, from, 32 - bits);
        } else if up == 0 {
            self.a.op2i(Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8, to, from, at);
        } else if at == 0 {
            let c = self.constant(Ty::B32, p.part.mask().into());
            self.a.op3(AND, to, from, c);
        } else {
            let byte = |i: usize| {
                let (lane, byte) = (i as u32 % 16 / 4 * 4, i as u32 % 4);
                if byte < bits / 8 { (lane + at / 8 + byte) as u8 } else { 0x80 }
            };
            let c = crate::asm::Mem::constant(self.a.bytes(std::array::from_fn(byte)), 0);
            self.a.op3(Code::EVEX_Vpshufb_zmm_k1z_zmm_zmmm512, to, from, c);
        }
        to
    }

    /// The amounts of a shift, cut where they wrap. Instructions of the host shift everything out from the width on.
    fn amounts(&mut self, wrap: bool, y: Register) -> Register {
        if !wrap {
            return y;
        }
        let c = self.constant(Ty::B32, 31);
        self.a.op3(AND, zmm(5), y, c);
        zmm(5)
    }

    fn video_in_words(&mut self, v: Video, bounds: Bounds, q: usize, src: &[Src], out: Out) {
        let x = self.part_of_words(v.a, &src[0], q, 0, zmm(4));
        let y = self.part_of_words(v.second(), &src[1], q, 1, zmm(5));
        // What no secondary operation follows is written at once.
        let is_last = !v.sat && matches!(v.end, VideoEnd::Plain);
        let mut to = if is_last { out } else { zmm(6).into() };
        let signed = Bounds::of(v.a).sign_with(Bounds::of(v.second()));
        let (least, most) = if signed == Some(true) { (LEAST_S, MOST_S) } else { (LEAST_U, MOST_U) };
        match v.op {
            VideoOp::Add => self.a.op3(ADD, to, x, y),
            VideoOp::Sub => self.a.op3(SUB, to, x, y),
            VideoOp::AbsDiff => {
                self.a.op3(most, zmm(6), x, y);
                self.a.op3(least, zmm(3), x, y);
                self.a.op3(SUB, to, zmm(6), zmm(3));
            }
            VideoOp::Min => self.a.op3(least, to, x, y),
            VideoOp::Max => self.a.op3(most, to, x, y),
            VideoOp::Shl { wrap } => {
                let n = self.amounts(wrap, y);
                self.a.op3(Code::EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32, to, x, n);
            }
            VideoOp::Shr { wrap } => {
                let n = self.amounts(wrap, y);
                let code = if Bounds::of(v.a).fit(true) {
                    Code::EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32
                } else {
                    Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32
                };
                self.a.op3(code, to, x, n);
            }
            VideoOp::Set(cmp) => {
                let Some(n) = int_cmp(cmp) else { panic!("{v} at {:?}", self.at) };
                let code = if signed == Some(true) {
                    Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8
                } else {
                    Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8
                };
                self.a.op3i(code, Register::K7, x, y, n);
                self.ones_of_mask(Register::K7, Ty::B32, to);
            }
        }
        if is_last {
            return;
        }
        to = zmm(6).into();
        let mut result = bounds;
        if v.sat {
            let range = Bounds::range(v.range_bits(), v.signed);
            if bounds.low < range.low {
                let c = self.constant(Ty::B32, u64::from(range.low as u32));
                self.a.op3(MOST_S, to, zmm(6), c);
            }
            if bounds.high > range.high {
                let c = self.constant(Ty::B32, range.high.cast_unsigned());
                self.a.op3(if bounds.fit(true) { LEAST_S } else { LEAST_U }, to, zmm(6), c);
            }
            result = bounds.clamped(range);
        }
        match v.end {
            VideoEnd::Plain => self.copy(Ty::B32, out, zmm(6).into()),
            VideoEnd::Add => {
                let c = self.rm(&src[2], q, 2);
                self.a.op3(ADD, out, zmm(6), c);
            }
            VideoEnd::Min | VideoEnd::Max => {
                let signed = result.sign_with(Bounds::range(32, v.signed)) == Some(true);
                let code = match (v.end == VideoEnd::Min, signed) {
                    (true, true) => LEAST_S,
                    (true, false) => LEAST_U,
                    (false, true) => MOST_S,
                    (false, false) => MOST_U,
                };
                let c = self.rm(&src[2], q, 2);
                self.a.op3(code, out, zmm(6), c);
            }
            VideoEnd::Merge(part) => self.merge(part, q, &src[2], out),
        }
    }

    /// The low part of vector 6 in place of a part of `c`.
    fn merge(&mut self, part: Part, q: usize, c: &Src, out: Out) {
        if part.at() > 0 {
            self.a.op2i(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, zmm(6), zmm(6), part.at());
        }
        let c = self.rm(c, q, 2);
        let mask = self.constant(Ty::B32, part.mask().into());
        self.a.op2(load_code(Ty::B32), zmm(3), mask);
        self.a.op3i(CHOOSE, zmm(3), zmm(6), c, 0xca);
        self.copy(Ty::B32, out, zmm(3).into());
    }

    /// Half of the lanes of 32 bits as lanes of 64.
    fn doubles(&mut self, from: Register, half: u32, signed: bool, to: Register) {
        let code = if signed { WIDEN_S } else { WIDEN_U };
        if half == 0 {
            self.a.op2(code, to, ymm(from));
        } else {
            self.a.op2i(UPPER_HALF, ymm(to), from, 1);
            self.a.op2(code, to, ymm(to));
        }
    }

    /// Both sources, extended, in vectors 4 and 5, where nothing but the code of the op writes.
    fn extended(&mut self, parts: [PartOf; 2], q: usize, src: &[Src]) {
        for ((p, s), i) in parts.into_iter().zip(src).zip(0..) {
            let to = zmm(4 + i);
            let r = self.part_of_words(p, s, q, i, to);
            self.copy(Ty::B32, to.into(), r.into());
        }
    }

    /// The third source in a register.
    fn third(&mut self, q: usize, src: &[Src]) -> Option<Register> {
        src.get(2).map(|c| self.reg(c, q, 2))
    }

    /// Puts what vector 0 has into the words of a half: vectors 6 and 7.
    fn cut_half(&mut self, half: u32) {
        self.a.op2(CUT, ymm(zmm(6 + half as u8)), zmm(0));
    }

    fn clamp_doubles(&mut self, to: Bounds) {
        for (code, end) in [(MOST_Q, to.low), (LEAST_Q, to.high)] {
            let c = self.constant(Ty::B64, end.cast_unsigned());
            self.a.op3(code, zmm(0), zmm(0), c);
        }
    }

    fn video_in_doubles(&mut self, v: Video, q: usize, src: &[Src], out: Out) {
        let second = v.second();
        self.extended([v.a, second], q, src);
        let c = self.third(q, src);
        if let VideoOp::Shl { wrap } | VideoOp::Shr { wrap } = v.op {
            let (code, most) = if wrap { (AND, 31) } else { (LEAST_U, 32) };
            let most = self.constant(Ty::B32, most);
            self.a.op3(code, zmm(5), zmm(5), most);
        }
        let (x, y) = (zmm(0), zmm(1));
        for half in 0..2 {
            self.doubles(zmm(4), half, v.a.signed, x);
            self.doubles(zmm(5), half, second.signed, y);
            match v.op {
                VideoOp::Add => self.a.op3(ADD_Q, x, x, y),
                VideoOp::Sub => self.a.op3(SUB_Q, x, x, y),
                VideoOp::AbsDiff => {
                    self.a.op3(SUB_Q, x, x, y);
                    self.a.op2(ABS_Q, x, x);
                }
                VideoOp::Min => self.a.op3(LEAST_Q, x, x, y),
                VideoOp::Max => self.a.op3(MOST_Q, x, x, y),
                VideoOp::Shr { .. } => self.a.op3(Code::EVEX_Vpsravq_zmm_k1z_zmm_zmmm512b64, x, x, y),
                VideoOp::Shl { .. } => {
                    // Only an unsigned word leaves 64 bits, and only by all 32: one that is large enough stays above all that it is compared with.
                    let most = self.constant(Ty::B64, 1 << 30);
                    self.a.op3(LEAST_UQ, zmm(3), x, most);
                    let all = self.constant(Ty::B64, 32);
                    let equal = Code::EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8;
                    if !v.a.signed {
                        self.a.op3i(equal, Register::K7, y, all, 0);
                        self.a.op2(load_code(Ty::B64), Out::masked(x, Register::K7), zmm(3));
                    }
                    self.a.op3(Code::EVEX_Vpsllvq_zmm_k1z_zmm_zmmm512b64, x, x, y);
                }
                VideoOp::Set(cmp) => {
                    let Some(n) = int_cmp(cmp) else { panic!("{v} at {:?}", self.at) };
                    self.a.op3i(Code::EVEX_Vpcmpq_kr_k1_zmm_zmmm512b64_imm8, Register::K7, x, y, n);
                    self.a.op3(Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64, x, x, x);
                    let one = self.constant(Ty::B64, 1);
                    self.a.op2(load_code(Ty::B64), Out::masked(x, Register::K7), one);
                }
            }
            if v.sat {
                self.clamp_doubles(Bounds::range(v.range_bits(), v.signed));
            }
            let code = match v.end {
                VideoEnd::Plain | VideoEnd::Merge(_) => None,
                VideoEnd::Add => Some(ADD_Q),
                VideoEnd::Min => Some(LEAST_Q),
                VideoEnd::Max => Some(MOST_Q),
            };
            if let (Some(code), Some(c)) = (code, c) {
                self.doubles(c, half, v.signed, y);
                self.a.op3(code, x, x, y);
            }
            self.cut_half(half);
        }
        self.a.op3i(JOIN, zmm(6), zmm(6), ymm(zmm(7)), 1);
        match (v.end, c) {
            (VideoEnd::Merge(part), Some(c)) => {
                let c = Src::new(At::Given(c), Ty::B32);
                self.merge(part, q, &c, out);
            }
            _ => self.copy(Ty::B32, out, zmm(6).into()),
        }
    }

    fn vmad_in_words(&mut self, v: Vmad, q: usize, src: &[Src], out: Out) {
        let x = self.part_of_words(v.a, &src[0], q, 0, zmm(4));
        let y = self.part_of_words(v.b, &src[1], q, 1, zmm(5));
        let (product, c) = (zmm(6), self.reg(&src[2], q, 2));
        self.a.op3(Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32, product, x, y);
        let to = if v.plus_one { product.into() } else { out };
        match v.negated {
            Negated::None => self.a.op3(ADD, to, product, c),
            Negated::Product => self.a.op3(SUB, to, c, product),
            Negated::Addend => self.a.op3(SUB, to, product, c),
        }
        if v.plus_one {
            let one = self.constant(Ty::B32, 1);
            self.a.op3(ADD, out, product, one);
        }
    }

    fn vmad_in_doubles(&mut self, v: Vmad, q: usize, src: &[Src], out: Out) {
        self.extended([v.a, v.b], q, src);
        let c = self.reg(&src[2], q, 2);
        let (x, y) = (zmm(0), zmm(1));
        let (a, b) = (Bounds::of(v.a), Bounds::of(v.b));
        let times = match a.sign_with(b) {
            Some(true) => Code::EVEX_Vpmuldq_zmm_k1z_zmm_zmmm512b64,
            Some(false) => Code::EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64,
            None => Code::EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64,
        };
        for half in 0..2 {
            self.doubles(zmm(4), half, v.a.signed, x);
            self.doubles(zmm(5), half, v.b.signed, y);
            self.a.op3(times, x, x, y);
            if v.sat && a.high.checked_mul(b.high).is_none() {
                let most = self.constant(Ty::B64, HUGE);
                self.a.op3(LEAST_UQ, x, x, most);
            }
            self.doubles(c, half, v.is_signed(), y);
            match v.negated {
                Negated::None => self.a.op3(ADD_Q, x, x, y),
                Negated::Product => self.a.op3(SUB_Q, x, y, x),
                Negated::Addend => self.a.op3(SUB_Q, x, x, y),
            }
            if v.plus_one {
                let one = self.constant(Ty::B64, 1);
                self.a.op3(ADD_Q, x, x, one);
            }
            // Without a clamp the sum may have lost bits above 64, which are not seen.
            if v.shift > 0 {
                self.a.op2i(Code::EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8, x, x, v.shift.into());
            }
            if v.sat {
                self.clamp_doubles(Bounds::range(32, v.is_signed()));
            }
            self.cut_half(half);
        }
        self.a.op3i(JOIN, zmm(6), zmm(6), ymm(zmm(7)), 1);
        self.copy(Ty::B32, out, zmm(6).into());
    }
}
