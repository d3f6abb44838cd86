//! Tuples taken apart and put together in vectors of 256 bits.

use iced_x86::{Code, Register};

use super::super::{Asm, Mem};
use super::state::{Lanes, Value};

impl Asm {
    pub(in super::super) fn narrow_every_second(
        &mut self,
        unit: u32,
        odd: bool,
        out: Register,
        x: Register,
        y: Register,
    ) {
        use Code::*;
        self.n().cache.begin();
        let made = [x, y].map(|r| {
            self.only(|s| {
                let (a, b) = (s.half(r, 0), s.half(r, 1));
                // Within each 128 bits first.
                let mixed = match (unit, odd) {
                    (4, false) => s.x3i(VEX_Vshufps_ymm_ymm_ymmm256_imm8, a, b, 0x88),
                    (4, true) => s.x3i(VEX_Vshufps_ymm_ymm_ymmm256_imm8, a, b, 0xdd),
                    (8, false) => s.x3(VEX_Vpunpcklqdq_ymm_ymm_ymmm256, a, b),
                    (8, true) => s.x3(VEX_Vpunpckhqdq_ymm_ymm_ymmm256, a, b),
                    (_, false) => return s.x3i(VEX_Vperm2i128_ymm_ymm_ymmm256_imm8, a, b, 0x20),
                    (_, true) => return s.x3i(VEX_Vperm2i128_ymm_ymm_ymmm256_imm8, a, b, 0x31),
                };
                s.x2i(VEX_Vpermq_ymm_ymmm256_imm8, mixed, 0xd8)
            })
        });
        self.set_halves(out.into(), Lanes::D, &made);
        self.drop_masks();
    }

    pub(in super::super) fn narrow_in_turns(
        &mut self,
        unit: u32,
        upper: bool,
        out: Register,
        x: Register,
        y: Register,
    ) {
        use Code::*;
        self.n().cache.begin();
        let [a, b] = [x, y].map(|r| self.half(r, usize::from(upper)));
        let [low, high] = match unit {
            4 => [VEX_Vpunpckldq_ymm_ymm_ymmm256, VEX_Vpunpckhdq_ymm_ymm_ymmm256].map(|code| self.x3(code, a, b)),
            8 => [VEX_Vpunpcklqdq_ymm_ymm_ymmm256, VEX_Vpunpckhqdq_ymm_ymm_ymmm256].map(|code| self.x3(code, a, b)),
            _ => [a, b],
        };
        let made = [0x20, 0x31].map(|n| self.x3i(VEX_Vperm2i128_ymm_ymm_ymmm256_imm8, low, high, n));
        self.set_halves(out.into(), Lanes::D, &made);
        self.drop_masks();
    }

    pub(in super::super) fn narrow_transposed(&mut self, out: [Register; 2], [x, y]: [Register; 2]) {
        use Code::*;
        self.n().cache.begin();
        // Rows four apart, from two next to each other.
        let rows = |s: &mut Asm, h: usize, n: u32| {
            s.only(|s| {
                let (a, b) = (s.half(x, h), s.half(y, h));
                s.x3i(VEX_Vperm2i128_ymm_ymm_ymmm256_imm8, a, b, n)
            })
        };
        let [a, b, c, d] = [(0, 0x20), (0, 0x31), (1, 0x20), (1, 0x31)].map(|(h, n)| rows(self, h, n));
        let [low, high] = [VEX_Vpunpcklwd_ymm_ymm_ymmm256, VEX_Vpunpckhwd_ymm_ymm_ymmm256]
            .map(|code| [self.x3(code, a, b), self.x3(code, c, d)]);
        // Two columns, each from two pieces of four rows.
        let made = [low, high].map(|[x, y]| {
            [VEX_Vpunpckldq_ymm_ymm_ymmm256, VEX_Vpunpckhdq_ymm_ymm_ymmm256].map(|code| {
                self.only(|s| {
                    let pieces = s.x3(code, x, y);
                    s.x2i(VEX_Vpermq_ymm_ymmm256_imm8, pieces, 0xd8)
                })
            })
        });
        for (out, halves) in out.into_iter().zip(made) {
            self.set_halves(out.into(), Lanes::D, &halves);
        }
        self.drop_masks();
    }

    pub(in super::super) fn narrow_load_some(&mut self, out: Register, m: Mem, mask: Register) {
        self.n().cache.begin();
        let made = [0, 1].map(|h| {
            let own = self.piece(mask, Lanes::D, h);
            self.x3(Code::VEX_Vpmaskmovd_ymm_ymm_m256, own, m.behind(32 * h as i32))
        });
        self.set_halves(out.into(), Lanes::D, &made);
        self.drop_masks();
    }

    pub(in super::super) fn narrow_done_with(&mut self, vectors: &[u8]) {
        for v in vectors {
            (0..2).for_each(|h| self.n().cache.forget(Value::half(*v, h)));
        }
    }
}
