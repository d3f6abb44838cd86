//! Products of matrices that are not in registers, of any size. They are those of [`matrix`](super::matrix): the order of the sums and their roundings
//! are the same.

use std::sync::OnceLock;

use super::matrix::float_element;
use crate::simt::Element;

/// Rows of `a` to be multiplied with `b`, and their sums. The floats are given by their bits.
#[derive(Debug)]
pub struct Rows<'m> {
    /// The elements of `a` that are there, row after row.
    pub a: &'m [u32],
    /// How many a row has.
    pub stored: usize,
    /// The depth of each of them. Empty: all depths in order, in each row.
    pub depths: &'m [u16],
    /// `b` by depth.
    pub b: &'m [u32],
    /// From one depth to the next.
    pub pitch: usize,
    /// The sums, row after row: what the products are added to.
    pub sums: &'m mut [u32],
    /// From one row of them to the next.
    pub sums_pitch: usize,
    /// Columns.
    pub n: usize,
    /// Rows.
    pub rows: usize,
}

impl Rows<'_> {
    /// # Panics
    /// Sizes do not fit together, or a depth is not in `b`.
    pub fn check(&self) {
        let deepest = match self.depths.iter().max() {
            Some(depth) => usize::from(*depth) + 1,
            None => self.stored,
        };
        let has_sums = self.rows == 0 || (self.rows - 1) * self.sums_pitch + self.n <= self.sums.len();
        let is_whole = has_sums && self.n <= self.sums_pitch && self.rows * self.stored == self.a.len();
        let has_depths = self.depths.is_empty() || self.depths.len() == self.a.len();
        let has_b = deepest == 0 || (deepest - 1) * self.pitch + self.n <= self.b.len();
        assert!(is_whole && has_depths && has_b, "bug: matrices whose sizes do not fit together");
    }

    /// The depth of an element of a row.
    #[inline]
    pub fn depth(&self, row: usize, k: usize) -> usize {
        if self.depths.is_empty() { k } else { usize::from(self.depths[row * self.stored + k]) }
    }

    /// Adds the products, of each sum one depth after the other. A sum that is a NaN is the canonical one.
    ///
    /// # Panics
    /// As for [`check`](Rows::check).
    pub fn add(&mut self) {
        self.check();
        for row in 0..self.rows {
            for k in 0..self.stored {
                let a = f32::from_bits(self.a[row * self.stored + k]);
                let first = self.depth(row, k) * self.pitch;
                let b = &self.b[first..][..self.n];
                for (sum, b) in self.sums[row * self.sums_pitch..][..self.n].iter_mut().zip(b) {
                    *sum = a.mul_add(f32::from_bits(*b), f32::from_bits(*sum)).to_bits();
                }
            }
            for sum in &mut self.sums[row * self.sums_pitch..][..self.n] {
                *sum = canonical(*sum);
            }
        }
    }
}

/// The bits of a float, or of the canonical NaN.
#[inline]
pub fn canonical(bits: u32) -> u32 {
    if f32::from_bits(bits).is_nan() { 0x7fff_ffff } else { bits }
}

/// The floats that the codes of small elements are, by element; made when they are first asked for.
static TABLES: [OnceLock<Box<[u32; 256]>>; Element::B1 as usize] = [const { OnceLock::new() }; Element::B1 as usize];

/// Makes the bits of elements those of floats, in their place. A NaN becomes some NaN.
///
/// # Panics
/// Products of the elements are no sums of `.f32`.
pub fn widen(e: Element, bits: &mut [u32]) {
    match e {
        Element::F16 => bits.iter_mut().for_each(|v| *v = widened_half(*v)),
        Element::Bf16 => bits.iter_mut().for_each(|v| *v <<= 16),
        Element::Tf32 => bits.iter_mut().for_each(|v| *v &= 0xffff_e000),
        e if e.bits() <= 8 => {
            let table = TABLES[e as usize].get_or_init(|| {
                Box::new(std::array::from_fn(|code| {
                    let is_code = code < 1 << e.bits();
                    if is_code { float_element(e, code as u64).to_bits() } else { 0 }
                }))
            });
            bits.iter_mut().for_each(|v| *v = table[*v as usize & 255]);
        }
        e => unreachable!("bug: floats of {e:?}"),
    }
}

/// An `.f16` as the bits of an `.f32`, without branches.
#[inline]
pub fn widened_half(half: u32) -> u32 {
    let (sign, rest) = ((half & 0x8000) << 16, (half & 0x7fff) << 13);
    // The same fraction below an exponent that is 112 too small, subnormal numbers among them: the product is exact.
    let finite = (f32::from_bits(rest) * f32::from_bits((127 + 112) << 23)).to_bits();
    let value = if rest >= 0x7c00 << 13 { rest | 0x7f80_0000 } else { finite };
    value | sign
}

/// Adds products of integers likewise, without the accumulator. No sum of so many products leaves 32 bits.
///
/// # Panics
/// A depth is not in `b`.
pub fn add_integers(a: &[u32], depths: &[u16], b: &[u32], pitch: usize, sums: &mut [u32]) {
    let n = sums.len();
    for (a, depth) in a.iter().zip(depths) {
        let row = &b[usize::from(*depth) * pitch..][..n];
        for (sum, b) in sums.iter_mut().zip(row) {
            *sum = sum.wrapping_add(a.wrapping_mul(*b));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All codes of all formats; of NaNs only that they are.
    #[test]
    fn widened_elements_are_those_of_the_definition() {
        use Element::*;
        for e in [F16, Bf16, E4m3, E5m2, E3m2, E2m3, E2m1, E2m1Packed] {
            let mut bits: Vec<u32> = (0..1 << e.bits()).collect();
            widen(e, &mut bits);
            for (code, got) in bits.iter().enumerate() {
                let want = float_element(e, code as u64);
                let got = f32::from_bits(*got);
                assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{e:?} {code:#x}: {got}");
            }
        }
        let mut bits = [0x3fff_ffff];
        widen(Tf32, &mut bits);
        assert_eq!(bits, [float_element(Tf32, 0x3fff_ffff).to_bits()]);
    }
}
