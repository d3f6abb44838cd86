//! Loops over whole rows for the conversions that code does not hold inline: `.f32` to smaller floats by any rounding, and pairs of small
//! floats to `.bf16x2`.
//!
//! Invariant: results are those of `num`, bit for bit. The rounding here is its own, in 64-bit integers without branches, so that the compiler
//! makes vector code of it; `tests/cvt_results.rs` and the tests of `eval` compare them. The tables of small floats are made by `num`.

use std::sync::OnceLock;

use handloom_ir::num;
use handloom_ir::num::format::Format;
use handloom_ir::simt::{Cvt, Pure};
use handloom_ir::types::{Rounding, ScalarType, Ty};
use handloom_plan::abi::EvalSite;

use super::eval::Active;
use super::fast::{CANONICAL, INFINITE, Row, SIGN, flush, lanes, map, rows, tiny, zip};
use super::halves;

/// How `.f32` is written in a smaller format.
#[derive(Clone, Copy)]
struct Target {
    /// Fraction bits.
    fraction: u32,
    /// Exponent field, of `.f32`, of the least normal number.
    least: u32,
    /// Code of the greatest finite number.
    max: u32,
    /// What a number above it becomes, without and with a sign.
    beyond: [u32; 2],
    /// Code of infinity as a source.
    infinite: u32,
    /// What NaN becomes.
    nan: u32,
    sign: u32,
    /// Greatest result.
    most: u32,
    /// Whether what has a sign becomes zero.
    drops_sign: bool,
    tiny: u32,
    /// Distance of the elements of a pair.
    step: u32,
}

impl Target {
    fn of(c: Cvt, f: &Format, step: u32) -> Target {
        // A format without infinity has NaN in its place, else its greatest number.
        let infinite = if c.satfinite { f.max } else { f.inf.or(f.nan).unwrap_or(f.max) } as u32;
        let stays = |negative: bool| match c.round {
            Rounding::Nearest | Rounding::NearestAway | Rounding::Stochastic => false,
            Rounding::Zero => true,
            Rounding::Down => !negative,
            Rounding::Up => negative,
        };
        let max = f.max as u32;
        Target {
            fraction: f.fraction,
            least: (f.least_exponent + 127).cast_unsigned(),
            max,
            beyond: [false, true].map(|negative| if stays(negative) { max } else { infinite }),
            infinite,
            nan: if c.sat { 0 } else { f.nan.unwrap_or(f.max) as u32 },
            sign: f.sign,
            most: if c.sat { f.one() as u32 } else { u32::MAX },
            drops_sign: c.sat || c.relu,
            tiny: tiny(c.ftz),
            step,
        }
    }

    /// One element. `add` gives what is added before the lower `cut` bits are dropped; its arguments are the last bit that stays, `cut`, and
    /// whether the number has a sign.
    #[inline(always)]
    fn write(self, a: u32, add: impl Fn(u64, u32, bool) -> u64) -> u32 {
        let a = flush(self.tiny, a);
        let (size, negative) = (a & CANONICAL, a & SIGN != 0);
        let field = (size >> 23).max(1);
        let significand = u64::from(size & 0x7f_ffff | u32::from(size >> 23 != 0) << 23);
        let scale = field.max(self.least);
        // Where more than 40 bits go, the number is below 2^-16 of the last place, and that many are as good as more.
        let cut = (23 - self.fraction + (scale - field)).min(40);
        let kept = (significand + add(significand >> cut & 1, cut, negative)) >> cut;
        let code = ((scale - self.least) << self.fraction) + kept as u32;
        let code = if code > self.max { self.beyond[usize::from(negative)] } else { code };
        let code = if size == INFINITE { self.infinite } else { code };
        let code = if self.drops_sign && negative { 0 } else { code.min(self.most) };
        let sign = if self.drops_sign { 0 } else { u32::from(negative) << self.sign };
        if size > INFINITE { self.nan } else { code | sign }
    }
}

/// Does the conversion if there is a loop for it.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
pub(super) fn convert(c: Active, site: &EvalSite, cvt: Cvt) -> bool {
    use ScalarType::*;
    if cvt.to == BF16x2 && cvt.from != F32 {
        return widen_pair(c, site, cvt);
    }
    if cvt.from != F32 {
        return false;
    }
    if cvt.round == Rounding::Nearest && !cvt.sat && !cvt.relu && !cvt.satfinite {
        match cvt.to {
            // Subnormal numbers of `.f32` are zeros of `.f16`, flushed or not.
            F16 | F16x2 => return by_host(c, site, |row| halves::narrow_f16(&map(row, f32::from_bits))),
            BF16 | BF16x2 => return by_host(c, site, |row| map(row, |a| halves::narrow_bf16(flush(tiny(cvt.ftz), a)))),
            _ => {}
        }
    }
    let (f, step, count) = match cvt.to {
        F16 => (&Format::F16, 16, 1),
        BF16 => (&Format::BF16, 16, 1),
        F16x2 => (&Format::F16, 16, 2),
        BF16x2 => (&Format::BF16, 16, 2),
        E4M3x2 => (&Format::E4M3, 8, 2),
        E5M2x2 => (&Format::E5M2, 8, 2),
        E2M3x2 => (&Format::E2M3, 8, 2),
        E3M2x2 => (&Format::E3M2, 8, 2),
        E2M1x2 => (&Format::E2M1, 4, 2),
        E4M3x4 => (&Format::E4M3, 8, 4),
        E5M2x4 => (&Format::E5M2, 8, 4),
        E2M3x4 => (&Format::E2M3, 8, 4),
        E3M2x4 => (&Format::E3M2, 8, 4),
        E2M1x4 => (&Format::E2M1, 4, 4),
        _ => return false,
    };
    let to = Target::of(cvt, f, step);
    match (cvt.round, count) {
        (Rounding::Nearest, 1 | 2) => narrow(c, site, to, |odd, cut, _| (1 << (cut - 1)) - 1 + odd),
        (Rounding::Zero, 1 | 2) => narrow(c, site, to, |_, _, _| 0),
        (Rounding::Down, 1 | 2) => narrow(c, site, to, |_, cut, negative| if negative { (1 << cut) - 1 } else { 0 }),
        (Rounding::Up, 1 | 2) => narrow(c, site, to, |_, cut, negative| if negative { 0 } else { (1 << cut) - 1 }),
        (Rounding::Stochastic, 2) => stochastic_pair(c, site, to, cvt.to == F16x2),
        (Rounding::Stochastic, 4) => stochastic_four(c, site, to, cvt.to == E2M1x4),
        _ => false,
    }
}

/// One row of `.f32` numbers as halves, or two of which the first goes uppermost.
#[inline(always)]
fn by_host(c: Active, site: &EvalSite, narrow: impl Fn(&Row) -> Row) -> bool {
    match site.src.len() {
        1 => rows(c, site, [Ty::B32], |[a]| narrow(&a)),
        _ => rows(c, site, [Ty::B32; 2], |[a, b]| zip(&narrow(&a), &narrow(&b), |a, b| a << 16 | b)),
    }
}

/// One source, or two of which the first goes uppermost.
#[inline(always)]
fn narrow(c: Active, site: &EvalSite, to: Target, add: impl Fn(u64, u32, bool) -> u64 + Copy) -> bool {
    if site.src.len() == 1 {
        return lanes(c, site, [Ty::B32], |[a]| to.write(a, add));
    }
    lanes(c, site, [Ty::B32; 2], |[a, b]| to.write(a, add) << to.step | to.write(b, add))
}

/// Random bits that stand at the top of what is dropped.
#[inline(always)]
fn random(bits: u32, n: u32) -> impl Fn(u64, u32, bool) -> u64 + Copy {
    move |_, cut, _| u64::from(bits) << (cut - n)
}

/// The upper half of the random bits is for the first source; `.f16` takes 13 of them.
#[inline(always)]
fn stochastic_pair(c: Active, site: &EvalSite, to: Target, is_f16: bool) -> bool {
    let n = if is_f16 { 13 } else { 16 };
    let kept = (1 << n) - 1;
    lanes(c, site, [Ty::B32; 3], |[a, b, r]| {
        to.write(a, random(r >> 16 & kept, n)) << to.step | to.write(b, random(r & kept, n))
    })
}

/// The random bits are shared as `num` says.
#[inline(always)]
fn stochastic_four(c: Active, site: &EvalSite, to: Target, by_bytes: bool) -> bool {
    lanes(c, site, [Ty::B32; 5], |[a, b, e, f, r]| {
        let (upper, lower) = if by_bytes {
            (r >> 16 & 0xff00 | r >> 8 & 0xff, r >> 8 & 0xff00 | r & 0xff)
        } else {
            (r >> 16, r & 0xffff)
        };
        let turned = |bits: u32| bits.reverse_bits() >> 16;
        let one = |v, bits| to.write(v, random(bits, 16));
        let high = one(a, turned(upper)) << to.step | one(b, upper);
        let low = one(e, turned(lower)) << to.step | one(f, lower);
        high << (2 * to.step) | low
    })
}

/// The results of one small format and its modifiers, by code.
type Table = [u32; 256];

/// Pairs of floats of at most 8 bits to `.bf16x2`, by a table for each format and combination of modifiers.
fn widen_pair(c: Active, site: &EvalSite, cvt: Cvt) -> bool {
    use ScalarType::*;
    static TABLES: [OnceLock<Table>; 20] = [const { OnceLock::new() }; 20];
    let (index, step) = match cvt.from {
        E4M3x2 => (0, 8),
        E5M2x2 => (1, 8),
        E2M3x2 => (2, 8),
        E3M2x2 => (3, 8),
        E2M1x2 => (4, 4),
        _ => return false,
    };
    if cvt.round != Rounding::Nearest || cvt.sat || cvt.ftz {
        return false;
    }
    let entry = |code: usize| num::eval(Pure::Cvt(cvt), &[code as u64])[0] as u32 & 0xffff;
    let index = 4 * index + 2 * usize::from(cvt.relu) + usize::from(cvt.satfinite);
    let table = TABLES[index].get_or_init(|| std::array::from_fn(entry));
    let mask = (1 << step) - 1;
    lanes(c, site, [Ty::B16], |[a]| table[(a & mask) as usize] | table[(a >> step & mask) as usize] << 16)
}
