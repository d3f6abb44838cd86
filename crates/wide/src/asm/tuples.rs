//! Vectors of tuples taken apart and put together: units of some bytes, every second one or in turns.

use iced_x86::{Code, Register};

use super::{Asm, Mem, Out};

/// Lanes of 32 bits of a vector.
const LANES: u32 = 16;

impl Asm {
    /// Every second unit of `x`, then of `y`, from the first on or from the second on. A unit has 4, 8 or 16 bytes; `out` is another vector.
    pub fn every_second(&mut self, unit: u32, odd: bool, out: Register, x: Register, y: Register) {
        if self.narrow.is_some() {
            self.narrow_every_second(unit, odd, out, x, y);
            return;
        }
        let n = unit / 4;
        self.picked_words(out, x, y, |i| (2 * (i / n) + u32::from(odd)) * n + i % n);
    }

    /// Units of the lower or the upper halves of two vectors in turns. A unit has 4, 8 or 16 bytes; `out` is another vector.
    pub fn in_turns(&mut self, unit: u32, upper: bool, out: Register, x: Register, y: Register) {
        if self.narrow.is_some() {
            self.narrow_in_turns(unit, upper, out, x, y);
            return;
        }
        let n = unit / 4;
        let first = if upper { LANES / 2 } else { 0 };
        self.picked_words(out, x, y, |i| i / n % 2 * LANES + first + i / n / 2 * n + i % n);
    }

    /// Eight rows of eight elements of 16 bits, which follow each other in two vectors, with rows and columns changed. `out` are two other vectors.
    pub fn transposed(&mut self, out: [Register; 2], x: [Register; 2]) {
        if self.narrow.is_some() {
            self.narrow_transposed(out, x);
            return;
        }
        for (q, out) in (0..).zip(out) {
            let words = std::array::from_fn(|i| {
                let lane = LANES * q + i as u32;
                let first = 16 * (lane % 4) + lane / 4;
                first | (first + 8) << 16
            });
            let c = self.words(words);
            self.op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, out, Mem::constant(c, 0));
            self.op3(Code::EVEX_Vpermi2w_zmm_k1z_zmm_zmmm512, out, x[0], x[1]);
        }
    }

    /// Words of a mask from memory into a vector; what the others become is open.
    pub fn load_some(&mut self, out: Register, m: Mem, mask: Register) {
        if self.narrow.is_some() && mask != Register::None {
            self.narrow_load_some(out, m, mask);
            return;
        }
        self.op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, Out::masked(out, mask), m);
    }

    /// Nobody reads some of the vectors 0 to 7 any more on the way that is being written.
    pub fn done_with(&mut self, vectors: &[u8]) {
        if self.narrow.is_some() {
            self.narrow_done_with(vectors);
        }
    }

    /// Words of two vectors by number.
    fn picked_words(&mut self, out: Register, x: Register, y: Register, number: impl Fn(u32) -> u32) {
        let c = self.words(std::array::from_fn(|i| number(i as u32)));
        self.op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, out, Mem::constant(c, 0));
        self.op3(Code::EVEX_Vpermi2d_zmm_k1z_zmm_zmmm512b32, out, x, y);
    }
}
