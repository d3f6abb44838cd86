//! Tests of `num::eval` against oracles that share no code with it: an arbitrary-precision float library, exact integer
//! arithmetic, tables built from the definition of a format, and the manual's pseudocode written bit by bit.
//!
//! Sources of 16 bits are tested exhaustively; wider ones at boundaries and with a fixed-seed sample.

mod approx;
mod arith;
mod cvt;
mod formats;
mod halves;
mod integers;
mod order;
mod pure;

use handloom_ir::num::eval;
use handloom_ir::simt::Pure;
use handloom_ir::types::Rounding;

/// The roundings of arithmetic instructions.
const ROUNDINGS: [Rounding; 4] = [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up];

/// First result of an op.
fn run(op: Pure, src: &[u64]) -> u64 {
    eval(op, src)[0]
}

/// A small generator with a fixed seed (splitmix64).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// Bits of a float with `exponent` and `fraction` bits: any bits, near a power of two, near one, or few digits.
    fn float(&mut self, exponent: u32, fraction: u32) -> u64 {
        let width = 1 + exponent + fraction;
        let mask = u64::MAX >> (64 - width);
        let sign = self.below(2) << (width - 1);
        let bias = (1 << (exponent - 1)) - 1;
        let bits = match self.below(6) {
            0 | 1 => self.bits(),
            2 => (self.below(1 << exponent) << fraction).wrapping_add(self.below(5)).wrapping_sub(2),
            3 => (bias - 4 + self.below(8)) << fraction | self.bits() & ((1 << fraction) - 1),
            4 => self.below(1 << exponent) << fraction | self.below(4) << (fraction - 2),
            _ => self.below(4) << fraction | self.bits() & ((1 << fraction) - 1),
        };
        (bits & (mask >> 1)) | sign
    }

    /// An integer of `width` bits: any bits, few bits, or near a power of two.
    fn int(&mut self, width: u32) -> u64 {
        let bits = match self.below(4) {
            0 => self.bits(),
            1 => self.bits() >> self.below(64),
            2 => (1u64 << self.below(u64::from(width))).wrapping_add(self.below(5)).wrapping_sub(2),
            _ => (self.bits() >> self.below(64)).wrapping_neg(),
        };
        bits & (u64::MAX >> (64 - width))
    }
}

/// Boundary values of a float format, both signs.
fn edges(exponent: u32, fraction: u32) -> Vec<u64> {
    let width = 1 + exponent + fraction;
    let inf = ((1u64 << exponent) - 1) << fraction;
    let one = ((1u64 << (exponent - 1)) - 1) << fraction;
    let least = 1 << fraction;
    let mut codes = vec![0, 1, 2, 3, least / 2, least - 1, least, least + 1, 2 * least, 2 * least - 1, 3 * least + 1];
    codes.extend([one - 1, one, one + 1, one + least - 1, one + least, one + least / 2, one + 2 * least]);
    codes.extend([one + (fraction as u64) * least, one + (fraction as u64 + 1) * least, one - fraction as u64 * least]);
    codes.extend([inf - least, inf - 2, inf - 1, inf, inf + 1, inf + least / 2, inf + least - 1]);
    codes.sort_unstable();
    codes.dedup();
    codes.iter().flat_map(|&code| [code, code | 1 << (width - 1)]).collect()
}
