//! Video instructions on whole rows: each step of the definition (`num::video`) is a loop over the lanes that looks at nothing of the op, so that the
//! compiler makes vector code of it.
//!
//! Numbers are 64 bits wide here (of SIMD ops 32) where the definition has 128. What does not fit is left to the definition: shifts of whole words to the left, and
//! products of two words.

use handloom_ir::simt::Pure;
use handloom_ir::simt::video::*;
use handloom_ir::types::{Cmp, Ty};
use handloom_plan::abi::EvalSite;

use super::eval::Active;
use super::fast::{Row, map, rows, zip};

/// Numbers of the lanes.
type Wide = [i64; 32];
type Narrow = [i32; 32];

/// Does a video op for the lanes, if there is a loop for it.
#[inline(always)]
pub(super) fn video(c: Active, site: &EvalSite) -> bool {
    const THREE: [Ty; 3] = [Ty::B32; 3];
    match site.op {
        Pure::Video(Video { op: VideoOp::Shl { .. }, a: PartOf { part: Part::Word, .. }, .. }) => false,
        Pure::Video(v) if matches!(v.end, VideoEnd::Plain) => {
            rows(c, site, [Ty::B32; 2], |[a, b]| low(&scalar(v, &a, &b)))
        }
        Pure::Video(v) => rows(c, site, THREE, |[a, b, third]| ended(v, &scalar(v, &a, &b), &third)),
        Pure::Vmad(Vmad { a: PartOf { part: Part::Word, .. }, b: PartOf { part: Part::Word, .. }, .. }) => false,
        Pure::Vmad(v) => rows(c, site, THREE, |[a, b, third]| vmad(v, &a, &b, &third)),
        Pure::VideoSimd(v) => rows(c, site, THREE, |[a, b, third]| {
            let in_place = match v.n {
                _ if !is_plain(v) => None,
                4 => bytes::packed(v, a, b, third),
                _ => halves::packed(v, a, b, third),
            };
            in_place.unwrap_or_else(|| simd(v, &a, &b, third))
        }),
        _ => false,
    }
}

/// A part of words, extended by its sign or by zeros.
#[inline(always)]
fn part(p: PartOf, words: &Row) -> Wide {
    let (up, down) = (64 - p.part.bits() - p.part.at(), 64 - p.part.bits());
    if p.signed {
        map(words, |w| (u64::from(w) << up).cast_signed() >> down)
    } else {
        map(words, |w| ((u64::from(w) << up) >> down).cast_signed())
    }
}

/// The low halves.
#[inline(always)]
fn low(values: &Wide) -> Row {
    map(values, |v| v as u32)
}

/// The primary operation, clamped if that is asked for.
#[inline(always)]
fn scalar(v: Video, a: &Row, b: &Row) -> Wide {
    let (a, b) = (&part(v.a, a), &part(v.second(), b));
    let result = match v.op {
        VideoOp::Add => zip(a, b, |a, b| a + b),
        VideoOp::Sub => zip(a, b, |a, b| a - b),
        VideoOp::AbsDiff => zip(a, b, |a, b| (a - b).abs()),
        VideoOp::Min => zip(a, b, |a, b| if a < b { a } else { b }),
        VideoOp::Max => zip(a, b, |a, b| if a > b { a } else { b }),
        VideoOp::Shl { wrap: true } => zip(a, b, |a, b| a << (b & 31)),
        VideoOp::Shr { wrap: true } => zip(a, b, |a, b| a >> (b & 31)),
        VideoOp::Shl { wrap: false } => zip(a, b, |a, b| a << if b > 32 { 32 } else { b }),
        VideoOp::Shr { wrap: false } => zip(a, b, |a, b| a >> if b > 32 { 32 } else { b }),
        VideoOp::Set(cmp) => set(cmp, a, b),
    };
    if v.sat { clamped(&result, v.range_bits(), v.signed) } else { result }
}

/// 1 where a comparison holds, else 0. Numbers are never unordered.
#[inline(always)]
fn set<T: Copy + Default + PartialOrd + From<bool>>(cmp: Cmp, a: &[T; 32], b: &[T; 32]) -> [T; 32] {
    match cmp {
        Cmp::Eq | Cmp::Equ => zip(a, b, |a, b| T::from(a == b)),
        Cmp::Ne | Cmp::Neu => zip(a, b, |a, b| T::from(a != b)),
        Cmp::Lt | Cmp::Ltu => zip(a, b, |a, b| T::from(a < b)),
        Cmp::Le | Cmp::Leu => zip(a, b, |a, b| T::from(a <= b)),
        Cmp::Gt | Cmp::Gtu => zip(a, b, |a, b| T::from(a > b)),
        Cmp::Ge | Cmp::Geu => zip(a, b, |a, b| T::from(a >= b)),
        Cmp::Num => [T::from(true); 32],
        Cmp::Nan => [T::from(false); 32],
    }
}

#[inline(always)]
fn clamped(values: &Wide, bits: u32, signed: bool) -> Wide {
    let (least, most) = if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1_i64 << bits) - 1) };
    map(values, |v| {
        let v = if v < least { least } else { v };
        if v > most { most } else { v }
    })
}

/// The secondary operation, or the merge.
#[inline(always)]
fn ended(v: Video, result: &Wide, third: &Row) -> Row {
    let c = part(PartOf { part: Part::Word, signed: v.signed }, third);
    match v.end {
        VideoEnd::Plain => low(result),
        VideoEnd::Add => low(&zip(result, &c, |a, c| a + c)),
        VideoEnd::Min => low(&zip(result, &c, |a, c| if a < c { a } else { c })),
        VideoEnd::Max => low(&zip(result, &c, |a, c| if a > c { a } else { c })),
        VideoEnd::Merge(part) => {
            let (at, mask) = (part.at(), part.mask());
            zip(&low(result), third, |a, c| (a << at) & mask | c & !mask)
        }
    }
}

/// The sum is exact: one factor has 17 bits at most.
#[inline(always)]
fn vmad(v: Vmad, a: &Row, b: &Row, third: &Row) -> Row {
    let product = zip(&part(v.a, a), &part(v.b, b), |a, b| a * b);
    let c = part(PartOf { part: Part::Word, signed: v.is_signed() }, third);
    let sum = match v.negated {
        Negated::None => zip(&product, &c, |p, c| p + c),
        Negated::Product => zip(&product, &c, |p, c| c - p),
        Negated::Addend => zip(&product, &c, |p, c| p - c),
    };
    let (one, shift) = (i64::from(v.plus_one), v.shift);
    let sum = map(&sum, |s| (s + one) >> shift);
    low(&if v.sat { clamped(&sum, 32, v.is_signed()) } else { sum })
}

/// Element `i` of a source, which is chosen among those of both.
#[inline(always)]
fn element(e: Elements, i: usize, n: u8, bits: u32, words: [&Row; 2]) -> Narrow {
    // There are 2 or 4 elements.
    let (number, two) = (e.select[i], n.trailing_zeros());
    let (word, at) = (words[usize::from(number >> two & 1)], u32::from(number & (n - 1)) * bits);
    let (up, down) = (32 - bits - at, 32 - bits);
    if e.signed {
        map(word, |w| (w << up).cast_signed() >> down)
    } else {
        map(word, |w| ((w << up) >> down).cast_signed())
    }
}

/// Elements have 16 bits at most, so no number leaves 32; the sum wraps as a register does.
#[inline(always)]
fn simd(v: VideoSimd, a: &Row, b: &Row, third: Row) -> Row {
    let bits = v.bits();
    let (least, most) = if v.signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1_i32 << bits) - 1) };
    let mut out = third;
    for i in (0..usize::from(v.n)).filter(|i| v.mask >> i & 1 != 0) {
        let (x, y) = (&element(v.a, i, v.n, bits, [a, b]), &element(v.b, i, v.n, bits, [a, b]));
        let mut result: Narrow = match v.op {
            SimdOp::Add => zip(x, y, |a, b| a + b),
            SimdOp::Sub => zip(x, y, |a, b| a - b),
            SimdOp::Avrg => zip(x, y, |a, b| (a + b + i32::from(a + b >= 0)) >> 1),
            SimdOp::AbsDiff => zip(x, y, |a, b| (a - b).abs()),
            SimdOp::Min => zip(x, y, |a, b| if a < b { a } else { b }),
            SimdOp::Max => zip(x, y, |a, b| if a > b { a } else { b }),
            SimdOp::Set(cmp) => set(cmp, x, y),
        };
        if v.sat {
            result = map(&result, |a| {
                let a = if a < least { least } else { a };
                if a > most { most } else { a }
            });
        }
        let result = map(&result, |a: i32| a.cast_unsigned());
        let at = i as u32 * bits;
        let mask = (u32::MAX >> (32 - bits)) << at;
        out = if v.accumulate {
            zip(&out, &result, u32::wrapping_add)
        } else {
            zip(&out, &result, |out, a| out & !mask | (a << at) & mask)
        };
    }
    out
}

/// Whether elements stay where they are, all of them count, and all numbers have one sign.
fn is_plain(v: VideoSimd) -> bool {
    let in_place = |e: Elements, first: u8| (0..v.n).all(|i| e.select[usize::from(i)] == first + i);
    in_place(v.a, 0)
        && in_place(v.b, v.n)
        && v.mask == (1 << v.n) - 1
        && v.a.signed == v.signed
        && v.b.signed == v.signed
}

macro_rules! packed {
    ($name:ident $unsigned:ident $signed:ident $count:literal) => {
        /// Elements of one width that lie side by side.
        mod $name {
            use super::{Cmp, Row, SimdOp, VideoSimd};

            type Elements = [$unsigned; $count];

            #[inline(always)]
            fn each(a: &Elements, b: &Elements, f: impl Fn($unsigned, $unsigned) -> $unsigned) -> Elements {
                let mut out = [0; $count];
                for (to, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
                    *to = f(*a, *b);
                }
                out
            }

            #[inline(always)]
            fn signed(a: &Elements, b: &Elements, f: impl Fn($signed, $signed) -> $unsigned) -> Elements {
                each(a, b, |a, b| f(a.cast_signed(), b.cast_signed()))
            }

            /// The op, where no result needs more bits than an element has, or they are not looked at.
            #[inline(always)]
            pub(super) fn packed(v: VideoSimd, a: Row, b: Row, third: Row) -> Option<Row> {
                // SAFETY: both are arrays of plain integers of the same size, and any bits are values of them.
                let [a, b] = [a, b].map(|row| unsafe { std::mem::transmute::<Row, Elements>(row) });
                let (a, b) = (&a, &b);
                let result = match (v.op, v.signed, v.sat) {
                    // What is summed up is exact.
                    (SimdOp::Add | SimdOp::Sub, ..) if v.accumulate => return None,
                    (_, true, _) if v.accumulate => return None,
                    (SimdOp::Add, _, false) => each(a, b, $unsigned::wrapping_add),
                    (SimdOp::Add, false, true) => each(a, b, $unsigned::saturating_add),
                    (SimdOp::Add, true, true) => signed(a, b, |a, b| a.saturating_add(b).cast_unsigned()),
                    (SimdOp::Sub, _, false) => each(a, b, $unsigned::wrapping_sub),
                    (SimdOp::Sub, false, true) => each(a, b, $unsigned::saturating_sub),
                    (SimdOp::Sub, true, true) => signed(a, b, |a, b| a.saturating_sub(b).cast_unsigned()),
                    (SimdOp::AbsDiff, false, _) => each(a, b, $unsigned::abs_diff),
                    (SimdOp::AbsDiff, true, false) => signed(a, b, $signed::abs_diff),
                    (SimdOp::AbsDiff, true, true) => {
                        signed(a, b, |a, b| a.abs_diff(b).min($signed::MAX.cast_unsigned()))
                    }
                    (SimdOp::Min, false, _) => each(a, b, |a, b| a.min(b)),
                    (SimdOp::Min, true, _) => signed(a, b, |a, b| a.min(b).cast_unsigned()),
                    (SimdOp::Max, false, _) => each(a, b, |a, b| a.max(b)),
                    (SimdOp::Max, true, _) => signed(a, b, |a, b| a.max(b).cast_unsigned()),
                    (SimdOp::Avrg, false, _) => each(a, b, |a, b| (a | b) - ((a ^ b) >> 1)),
                    (SimdOp::Set(Cmp::Eq), ..) => each(a, b, |a, b| $unsigned::from(a == b)),
                    (SimdOp::Set(Cmp::Ne), ..) => each(a, b, |a, b| $unsigned::from(a != b)),
                    (SimdOp::Set(Cmp::Lt), false, _) => each(a, b, |a, b| $unsigned::from(a < b)),
                    (SimdOp::Set(Cmp::Gt), false, _) => each(a, b, |a, b| $unsigned::from(a > b)),
                    (SimdOp::Avrg | SimdOp::Set(_), ..) => return None,
                };
                // SAFETY: as above.
                let result = unsafe { std::mem::transmute::<Elements, Row>(result) };
                if !v.accumulate {
                    return Some(result);
                }
                let mut out = third;
                for (to, word) in out.iter_mut().zip(result) {
                    let sum = (0..v.n).map(|i| word >> (u32::from(i) * $unsigned::BITS) & u32::from($unsigned::MAX));
                    *to = sum.fold(*to, u32::wrapping_add);
                }
                Some(out)
            }
        }
    };
}

packed!(bytes u8 i8 128);
packed!(halves u16 i16 64);
