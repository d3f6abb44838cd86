//! Lanes by themselves, where AVX2 has no instruction for it.

use iced_x86::{Code, Register};

use super::super::{Asm, Rm};
use super::Ops;
use super::state::Value;
use super::state::{Lanes, halves};

use Code::{
    VEX_Vpaddd_ymm_ymm_ymmm256 as ADD_D, VEX_Vpaddq_ymm_ymm_ymmm256 as ADD_Q, VEX_Vpand_ymm_ymm_ymmm256 as AND,
    VEX_Vpandn_ymm_ymm_ymmm256 as AND_NOT, VEX_Vpcmpgtq_ymm_ymm_ymmm256 as ABOVE_Q, VEX_Vpor_ymm_ymm_ymmm256 as OR,
    VEX_Vpslld_ymm_ymm_imm8 as LEFT_D, VEX_Vpsllq_ymm_ymm_imm8 as LEFT_Q, VEX_Vpsrld_ymm_ymm_imm8 as RIGHT_D,
    VEX_Vpsrlq_ymm_ymm_imm8 as RIGHT_Q, VEX_Vpsubd_ymm_ymm_ymmm256 as SUB_D, VEX_Vpsubq_ymm_ymm_ymmm256 as SUB_Q,
    VEX_Vpxor_ymm_ymm_ymmm256 as XOR,
};

/// A function of two bits: its table, by `2 * b + c`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct OfTwo(u8);

/// A function of three bits as `f ^ (x & g)` of one source and two functions of the others.
struct Split {
    /// Which source is taken out.
    x: usize,
    f: OfTwo,
    g: OfTwo,
}

impl OfTwo {
    /// Instructions that it takes.
    fn cost(self) -> u32 {
        match self.0 {
            0 | 15 | 10 | 12 => 0,
            8 | 14 | 6 | 2 | 4 => 1,
            _ => 2,
        }
    }
}

impl Split {
    fn cost(&self) -> u32 {
        let and = if matches!(self.g.0, 0 | 15) { 0 } else { 1 };
        let xor = u32::from(self.f.0 != 0 && self.g.0 != 0);
        self.f.cost() + self.g.cost() + and + xor
    }

    /// The cheapest for a table by `4 * a + 2 * b + c`.
    fn of(table: u8) -> Split {
        let splits = (0..3).map(|x| {
            let (mut low, mut high) = (0, 0);
            for i in 0..4u8 {
                // The others in order, the taken one 0 or 1.
                let (p, q) = (i >> 1, i & 1);
                let at = |t: u8| match x {
                    0 => 4 * t + 2 * p + q,
                    1 => 4 * p + 2 * t + q,
                    _ => 4 * p + 2 * q + t,
                };
                low |= (table >> at(0) & 1) << i;
                high |= (table >> at(1) & 1) << i;
            }
            Split { x, f: OfTwo(low), g: OfTwo(low ^ high) }
        });
        splits.min_by_key(Split::cost).unwrap_or(Split { x: 0, f: OfTwo(0), g: OfTwo(0) })
    }
}

impl Asm {
    /// `out += a * rm`.
    pub(super) fn multiply_add(&mut self, code: Code, lanes: Lanes, o: Ops) {
        let b = self.source(o.rm, lanes);
        let (v, _) = halves(o.out.reg);
        for h in 0..2 {
            let pins = self.n().cache.pins();
            let a = self.half(o.a, h);
            let b = self.rm_of(b, h);
            let sum = self.half(o.out.reg, h);
            let own = Value::half(v, h as u8);
            if o.out.mask == Register::None && sum != a && b != Rm::Reg(sum) && self.holds_only(sum, own) {
                self.raw3(code, sum, a, b);
                self.changed(sum);
            } else {
                let t = self.x2(Code::VEX_Vmovaps_ymm_ymmm256, sum);
                self.raw3(code, t, a, b);
                self.write(v, h, t, o.out.mask, lanes);
            }
            self.n().cache.unpin(pins);
        }
        self.end_write(v, 2);
    }

    /// Lane by lane in several instructions.
    pub(super) fn emulate(&mut self, o: Ops) -> bool {
        use Code::*;
        let two = |s: &mut Asm, lanes: Lanes, f: &dyn Fn(&mut Asm, Register, Register) -> Register| {
            let b = s.source(o.rm, lanes);
            s.each(o.out, lanes, |s, h| {
                let x = s.half(o.a, h);
                let y = s.in_register(b, h);
                f(s, x, y)
            });
        };
        let one = |s: &mut Asm, lanes: Lanes, f: &dyn Fn(&mut Asm, Register) -> Register| {
            let b = s.source(o.rm, lanes);
            s.each(o.out, lanes, |s, h| {
                let x = s.in_register(b, h);
                f(s, x)
            });
        };
        match o.code {
            EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64 => two(self, Lanes::Q, &|s, x, y| {
                // Low by low, and both crosses above it.
                let high = s.x2i(VEX_Vpshufd_ymm_ymmm256_imm8, y, 0xb1);
                let cross = s.x3(VEX_Vpmulld_ymm_ymm_ymmm256, x, high);
                let other = s.x2i(RIGHT_Q, cross, 32);
                let sum = s.x3(ADD_D, other, cross);
                let up = s.x2i(LEFT_Q, sum, 32);
                let low = s.x3(VEX_Vpmuludq_ymm_ymm_ymmm256, x, y);
                s.x3(ADD_Q, low, up)
            }),
            EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64 => two(self, Lanes::Q, &|s, x, y| s.extreme(x, y, true, true)),
            EVEX_Vpminsq_zmm_k1z_zmm_zmmm512b64 => two(self, Lanes::Q, &|s, x, y| s.extreme(x, y, false, true)),
            EVEX_Vpmaxuq_zmm_k1z_zmm_zmmm512b64 => two(self, Lanes::Q, &|s, x, y| s.extreme(x, y, true, false)),
            EVEX_Vpminuq_zmm_k1z_zmm_zmmm512b64 => two(self, Lanes::Q, &|s, x, y| s.extreme(x, y, false, false)),
            EVEX_Vpsravq_zmm_k1z_zmm_zmmm512b64 => two(self, Lanes::Q, &|s, x, y| {
                // From the width on, the first part is zero and the other one the sign.
                let sign = s.sign(x);
                let ones = s.ones();
                let kept = s.x3(VEX_Vpsrlvq_ymm_ymm_ymmm256, ones, y);
                let shifted = s.x3(VEX_Vpsrlvq_ymm_ymm_ymmm256, x, y);
                let above = s.x3(AND_NOT, kept, sign);
                s.x3(OR, shifted, above)
            }),
            EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8 => one(self, Lanes::Q, &|s, x| {
                let sign = s.sign(x);
                if o.n >= 64 {
                    return sign;
                }
                let shifted = s.x2i(RIGHT_Q, x, o.n);
                let above = s.x2i(LEFT_Q, sign, 64 - o.n);
                s.x3(OR, shifted, above)
            }),
            EVEX_Vpabsq_zmm_k1z_zmmm512b64 => one(self, Lanes::Q, &|s, x| {
                let sign = s.sign(x);
                let turned = s.x3(XOR, x, sign);
                s.x3(SUB_Q, turned, sign)
            }),
            EVEX_Vprold_zmm_k1z_zmmm512b32_imm8 => {
                one(self, Lanes::D, &|s, x| s.rotated(x, LEFT_D, RIGHT_D, o.n & 31, 32));
            }
            EVEX_Vprord_zmm_k1z_zmmm512b32_imm8 => {
                one(self, Lanes::D, &|s, x| s.rotated(x, RIGHT_D, LEFT_D, o.n & 31, 32));
            }
            EVEX_Vprorq_zmm_k1z_zmmm512b64_imm8 => {
                one(self, Lanes::Q, &|s, x| s.rotated(x, RIGHT_Q, LEFT_Q, o.n & 63, 64));
            }
            EVEX_Vplzcntd_zmm_k1z_zmmm512b32 => one(self, Lanes::D, &|s, x| s.leading_zeros(x)),
            EVEX_Vplzcntq_zmm_k1z_zmmm512b64 => one(self, Lanes::Q, &|s, x| {
                // Of both halves; those of the lower one count where the upper one has no bit.
                let both = s.leading_zeros(x);
                let upper = s.x2i(RIGHT_Q, both, 32);
                let all = s.all(Lanes::Q, 32);
                let is_zero = s.x3(VEX_Vpcmpeqq_ymm_ymm_ymmm256, upper, all);
                let low = s.all(Lanes::Q, 0xffff_ffff);
                let lower = s.x3(AND, both, low);
                let lower = s.x3(AND, lower, is_zero);
                s.x3(ADD_Q, upper, lower)
            }),
            EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8 => self.ternary(o, Lanes::D),
            EVEX_Vpternlogq_zmm_k1z_zmm_zmmm512b64_imm8 => self.ternary(o, Lanes::Q),
            _ => return false,
        }
        true
    }

    /// Ones in lanes of 64 bits that are negative.
    fn sign(&mut self, x: Register) -> Register {
        let zero = self.zero();
        self.x3(ABOVE_Q, zero, x)
    }

    fn extreme(&mut self, x: Register, y: Register, max: bool, signed: bool) -> Register {
        let sign = self.all(Lanes::Q, 1 << 63);
        let [a, b] = if signed { [x, y] } else { [x, y].map(|r| self.x3(XOR, r, sign)) };
        let above = self.x3(ABOVE_Q, a, b);
        if max { self.blend(y, x, above) } else { self.blend(x, y, above) }
    }

    fn rotated(&mut self, x: Register, there: Code, back: Code, n: u32, width: u32) -> Register {
        let (p, q) = (self.x2i(there, x, n), self.x2i(back, x, width - n));
        self.x3(OR, p, q)
    }

    /// By the exponent as a float. Without the bit below each set one nothing is rounded up.
    fn leading_zeros(&mut self, x: Register) -> Register {
        let below = self.x2i(RIGHT_D, x, 1);
        let x = self.x3(AND_NOT, below, x);
        let float = self.x2(Code::VEX_Vcvtdq2ps_ymm_ymmm256, x);
        let exponent = self.x2i(RIGHT_D, float, 23);
        let most = self.all(Lanes::D, 158);
        let most = self.x2(Code::VEX_Vmovdqu_ymm_ymmm256, most);
        let n = self.x3(SUB_D, most, exponent);
        // Zero has the exponent 0; a number with the first bit counts as negative.
        let width = self.all(Lanes::D, 32);
        let n = self.x3(Code::VEX_Vpminsd_ymm_ymm_ymmm256, n, width);
        let zero = self.zero();
        self.x3(Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, n, zero)
    }

    fn ternary(&mut self, o: Ops, lanes: Lanes) {
        let c = self.source(o.rm, lanes);
        let table = o.n as u8;
        let split = Split::of(table);
        self.each(o.out, lanes, |s, h| {
            let sources = [s.half(o.out.reg, h), s.half(o.a, h), s.in_register(c, h)];
            let x = sources[split.x];
            let others: Vec<Register> = (0..3).filter(|i| *i != split.x).map(|i| sources[i]).collect();
            let f = s.of_two(split.f, others[0], others[1]);
            match split.g.0 {
                0 => f,
                15 if split.f.0 == 0 => x,
                15 => s.x3(XOR, f, x),
                _ => {
                    let g = s.of_two(split.g, others[0], others[1]);
                    let kept = s.x3(AND, x, g);
                    if split.f.0 == 0 { kept } else { s.x3(XOR, f, kept) }
                }
            }
        });
    }

    fn of_two(&mut self, f: OfTwo, b: Register, c: Register) -> Register {
        let plain = |s: &mut Asm, t: u8| match t {
            12 => b,
            10 => c,
            8 => s.x3(AND, b, c),
            14 => s.x3(OR, b, c),
            6 => s.x3(XOR, b, c),
            2 => s.x3(AND_NOT, b, c),
            4 => s.x3(AND_NOT, c, b),
            _ => s.zero(),
        };
        match f.0 {
            t @ (0 | 2 | 4 | 6 | 8 | 10 | 12 | 14) => plain(self, t),
            t => {
                let r = plain(self, 15 - t);
                let ones = self.ones();
                self.x3(XOR, r, ones)
            }
        }
    }

    /// Moves between vectors and general registers, and of one element to all lanes.
    pub(super) fn spread_or_taken(&mut self, o: Ops) -> bool {
        use Code::*;
        let (lanes, spread, into) = match o.code {
            EVEX_Vpbroadcastd_zmm_k1z_r32 | EVEX_Vpbroadcastd_zmm_k1z_xmmm32 => {
                (Lanes::D, VEX_Vpbroadcastd_ymm_xmmm32, VEX_Vmovd_xmm_rm32)
            }
            EVEX_Vpbroadcastq_zmm_k1z_r64 | EVEX_Vpbroadcastq_zmm_k1z_xmmm64 => {
                (Lanes::Q, VEX_Vpbroadcastq_ymm_xmmm64, VEX_Vmovq_xmm_rm64)
            }
            _ => return false,
        };
        let r = match o.rm {
            Rm::Reg(r) if r.is_vector_register() => {
                let x = self.half(r, 0);
                self.x2(spread, super::masks::low(x))
            }
            Rm::Reg(r) => {
                let t = self.temp();
                self.raw2(into, super::masks::low(t), r.into());
                self.raw2(spread, t, super::masks::low(t).into());
                t
            }
            Rm::Mem(m) => self.x2(spread, m.single()),
        };
        self.each(o.out, lanes, |_, _| r);
        true
    }
}
