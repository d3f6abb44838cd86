//! Loops over whole rows for the value ops that code gives away most often.
//!
//! The op is looked at once; the loop behind it has no branch and no call where the op allows that, so the compiler makes vector code of it.
//! Ops on 16-bit floats, and those of `.f32` that `num` does in software, are done in `.f32`, with the argument why the bits are the same.
//!
//! Invariants: results are those of `num::eval`, bit for bit, for any bits of the sources (the tests compare them); lanes outside of the mask
//! keep what they hold.

use handloom_ir::simt::{Exactness, FMode, Pure};
use handloom_ir::types::{Float, Int, Rounding, Ty};
use handloom_plan::Host;
use handloom_plan::abi::{EvalSite, Loc};

use super::convert;
use super::eval::Active;
use super::halves;
use super::looked_up;
use crate::warp::context::Ctx;

/// A row of 32-bit lanes.
pub(super) type Row = [u32; 32];

/// Does the op for the lanes, if there is a loop for it.
pub(super) fn eval(host: &Host, c: Active, site: &EvalSite) -> bool {
    // SAFETY: the record of a device says nothing that was not detected, and so the host has the features that the function asks for.
    host.has_row_loops() && unsafe { with_features(c, site) }
}

#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
fn with_features(c: Active, site: &EvalSite) -> bool {
    match site.op {
        Pure::Cvt(cvt) => convert::convert(c, site, cvt),
        op => integers(c, site) || floats(c, site, op) || looked_up::look_up(c, site),
    }
}

/// Ops whose rows have 32-bit lanes, sources and result.
#[inline(always)]
pub(super) fn rows<const N: usize>(c: Active, site: &EvalSite, mask: [Ty; N], f: impl Fn([Row; N]) -> Row) -> bool {
    let [loc] = site.dst[..] else { return false };
    if site.src.len() != N {
        return false;
    }
    let src: [Row; N] = std::array::from_fn(|i| {
        let low = mask[i].mask() as u32;
        map(&row(c.ctx, site.src[i]), |v| v & low)
    });
    put(c, loc, f(src));
    true
}

/// The same, lane by lane.
#[inline(always)]
pub(super) fn lanes<const N: usize>(c: Active, site: &EvalSite, mask: [Ty; N], f: impl Fn([u32; N]) -> u32) -> bool {
    rows(c, site, mask, |src| {
        let mut out = [0; 32];
        for l in 0..32 {
            out[l] = f(std::array::from_fn(|i| src[i][l]));
        }
        out
    })
}

/// A source of at most 32 bits.
#[inline(always)]
pub(super) fn row(ctx: Ctx, loc: Loc) -> Row {
    match place_of_row(ctx, loc) {
        // SAFETY: tables name rows inside the context, 32 lanes long and aligned; no code runs on it now.
        Some(place) => unsafe { place.cast::<Row>().read() },
        None => {
            let mut wide = [0; 32];
            ctx.read_row(loc, u32::MAX, &mut wide);
            map(&wide, |v| v as u32)
        }
    }
}

/// Where a row of the context is, if it is one.
#[inline(always)]
pub(super) fn place_of_row(ctx: Ctx, loc: Loc) -> Option<*mut u32> {
    let Loc::Row32(at) = loc else { return None };
    Some(ctx.warp.cast::<u8>().wrapping_add(at as usize).cast())
}

/// Writes the lanes of the mask.
#[inline(always)]
fn put(c: Active, loc: Loc, values: Row) {
    put_row(c.ctx, c.mask, loc, values);
}

/// Writes the lanes of a mask.
#[inline(always)]
pub(super) fn put_row(ctx: Ctx, mask: u32, loc: Loc, values: Row) {
    let Some(place) = place_of_row(ctx, loc).map(|place| place.cast::<Row>()) else {
        return ctx.write_row(loc, mask, &map(&values, u64::from));
    };
    if mask == u32::MAX {
        // SAFETY: as in `row`; no code runs on the context now.
        return unsafe { place.write(values) };
    }
    // SAFETY: as in `row`.
    let old = unsafe { place.read() };
    let mut new = old;
    for (l, (to, value)) in new.iter_mut().zip(values).enumerate() {
        *to = if mask >> l & 1 == 1 { value } else { *to };
    }
    // SAFETY: as in `row`; no code runs on the context now.
    unsafe { place.write(new) }
}

/// A function of each lane. The maps of arrays in the standard library do not become vector code at this length.
#[inline(always)]
pub(super) fn map<A: Copy, B: Copy + Default>(row: &[A; 32], f: impl Fn(A) -> B) -> [B; 32] {
    let mut out = [B::default(); 32];
    for (to, from) in out.iter_mut().zip(row) {
        *to = f(*from);
    }
    out
}

/// A function of the same lane of two rows.
#[inline(always)]
pub(super) fn zip<A: Copy, B: Copy + Default>(a: &[A; 32], b: &[A; 32], f: impl Fn(A, A) -> B) -> [B; 32] {
    let mut out = [B::default(); 32];
    for (to, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
        *to = f(*a, *b);
    }
    out
}

/// Integers of 32 bits, as `num` has them: those for which vector code is faster than `num` lane by lane.
#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
fn integers(c: Active, site: &EvalSite) -> bool {
    const ONE: [Ty; 1] = [Ty::B32];
    const TWO: [Ty; 2] = [Ty::B32; 2];
    const THREE: [Ty; 3] = [Ty::B32; 3];
    let (signed, unsigned) = (Int::S32, Int::U32);
    match site.op {
        Pure::Popc(Ty::B32) => lanes(c, site, ONE, |[a]| a.count_ones()),
        Pure::Clz(Ty::B32) => lanes(c, site, ONE, |[a]| a.leading_zeros()),
        Pure::Brev(Ty::B32) => lanes(c, site, ONE, |[a]| a.reverse_bits()),
        Pure::Bfind { int, shiftamt } if int.ty == Ty::B32 => lanes(c, site, ONE, |[a]| {
            let a = if int.signed { a ^ (a.cast_signed() >> 31).cast_unsigned() } else { a };
            let shift = a.leading_zeros();
            let found = if shiftamt { shift } else { 31_u32.wrapping_sub(shift) };
            if a == 0 { u32::MAX } else { found }
        }),
        Pure::Shl(Ty::B32) => lanes(c, site, TWO, |[a, n]| if n > 31 { 0 } else { a << (n & 31) }),
        Pure::Shr(int) if int == unsigned => lanes(c, site, TWO, |[a, n]| if n > 31 { 0 } else { a >> (n & 31) }),
        Pure::Shr(int) if int == signed => lanes(c, site, TWO, |[a, n]| (a.cast_signed() >> n.min(31)).cast_unsigned()),
        // Division by zero gives all ones; the least number divided by -1 wraps.
        Pure::Div(int) if int == unsigned => lanes(c, site, TWO, |[a, b]| a.checked_div(b).unwrap_or(u32::MAX)),
        Pure::Rem(int) if int == unsigned => lanes(c, site, TWO, |[a, b]| a.checked_rem(b).unwrap_or(u32::MAX)),
        Pure::Div(int) if int == signed => lanes(c, site, TWO, |[a, b]| {
            if b == 0 { u32::MAX } else { a.cast_signed().wrapping_div(b.cast_signed()).cast_unsigned() }
        }),
        Pure::Rem(int) if int == signed => lanes(c, site, TWO, |[a, b]| {
            if b == 0 { u32::MAX } else { a.cast_signed().wrapping_rem(b.cast_signed()).cast_unsigned() }
        }),
        Pure::Mul24 { signed, hi } => lanes(c, site, TWO, |[a, b]| {
            let wide = |a: u32| if signed { i64::from((a << 8).cast_signed() >> 8) } else { i64::from(a & 0xff_ffff) };
            ((wide(a) * wide(b)) >> if hi { 16 } else { 0 }) as u32
        }),
        Pure::MulHi(int) if int == unsigned => {
            lanes(c, site, TWO, |[a, b]| ((u64::from(a) * u64::from(b)) >> 32) as u32)
        }
        Pure::MulHi(int) if int == signed => {
            lanes(c, site, TWO, |[a, b]| ((i64::from(a.cast_signed()) * i64::from(b.cast_signed())) >> 32) as u32)
        }
        Pure::AddSat(int) if int == signed => {
            lanes(c, site, TWO, |[a, b]| a.cast_signed().saturating_add(b.cast_signed()).cast_unsigned())
        }
        Pure::SubSat(int) if int == signed => {
            lanes(c, site, TWO, |[a, b]| a.cast_signed().saturating_sub(b.cast_signed()).cast_unsigned())
        }
        Pure::Bfe(int) if int == unsigned => lanes(c, site, THREE, |[a, at, len]| {
            let (at, len) = (at & 0xff, len & 0xff);
            let shifted = if at > 31 { 0 } else { a >> (at & 31) };
            if len > 31 { shifted } else { shifted & !(u32::MAX << (len & 31)) }
        }),
        Pure::Bfe(int) if int == signed => lanes(c, site, THREE, |[a, at, len]| {
            let (at, len) = (at & 0xff, len & 0xff);
            let shifted = a.cast_signed() >> at.min(31);
            // The shift by 32 - len is at most 31 for a field that is not empty.
            let up = 32 - len.clamp(1, 32);
            if len == 0 { 0 } else { ((shifted << up) >> up).cast_unsigned() }
        }),
        Pure::Bfi(Ty::B32) => lanes(c, site, [Ty::B32; 4], |[field, base, at, len]| {
            let (at, len) = (at & 0xff, len & 0xff);
            let ones = if len > 31 { u32::MAX } else { !(u32::MAX << (len & 31)) };
            let mask = ones << (at & 31);
            if at > 31 { base } else { base & !mask | field << (at & 31) & mask }
        }),
        _ => false,
    }
}

pub(super) const CANONICAL: u32 = 0x7fff_ffff;
pub(super) const SIGN: u32 = 1 << 31;
pub(super) const INFINITE: u32 = 0x7f80_0000;

/// Numbers of `.f32` below this magnitude become zero.
#[inline(always)]
pub(super) fn tiny(ftz: bool) -> u32 {
    if ftz { 0x0080_0000 } else { 0 }
}

#[inline(always)]
pub(super) fn flush(tiny: u32, a: u32) -> u32 {
    if a & CANONICAL < tiny { a & SIGN } else { a }
}

/// `num`'s end of an `.f32` op: canonical NaN, flushing, clamping.
#[inline(always)]
fn finish(m: FMode, a: f32) -> u32 {
    let a = a.to_bits();
    if a & CANONICAL > INFINITE {
        return if m.sat { 0 } else { CANONICAL };
    }
    let a = flush(tiny(m.ftz), a);
    if (m.sat || m.relu) && a & SIGN != 0 {
        0
    } else if m.sat {
        a.min(1_f32.to_bits())
    } else {
        a
    }
}

/// An op of one `.f32` value.
#[inline(always)]
fn unary(c: Active, site: &EvalSite, m: FMode, f: impl Fn(f32) -> f32) -> bool {
    lanes(c, site, [Ty::B32], |[a]| finish(m, f(f32::from_bits(flush(tiny(m.ftz), a)))))
}

/// An op of one `.f32` value, done in `.f64` and rounded once.
#[inline(always)]
fn by_f64(c: Active, site: &EvalSite, ftz: bool, f: impl Fn(f64) -> f64) -> bool {
    let m = FMode { ty: Float::F32, round: Rounding::Nearest, ftz, sat: false, relu: false };
    unary(c, site, m, |a| f(f64::from(a)) as f32)
}

/// Floats that code does not hold inline.
#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
fn floats(c: Active, site: &EvalSite, op: Pure) -> bool {
    const TWO: [Ty; 2] = [Ty::B32; 2];
    let of = |a: u32| f32::from_bits(a);
    // Approximate ones are rounded to nearest, like `.rn`.
    let nearest = |e| matches!(e, Exactness::Approx | Exactness::Full | Exactness::Ieee(Rounding::Nearest));
    match op {
        Pure::FRcp { mode, exact } if mode.ty == Float::F32 && nearest(exact) => unary(c, site, mode, |a| 1.0 / a),
        Pure::FSqrt { mode, exact } if mode.ty == Float::F32 && nearest(exact) => unary(c, site, mode, f32::sqrt),
        Pure::FRsqrt(m) if m.ty == Float::F32 && !m.sat && !m.relu => by_f64(c, site, m.ftz, |a| 1.0 / a.sqrt()),
        Pure::FDiv { mode, exact } if mode.ty == Float::F32 && nearest(exact) => {
            let is_approx = exact == Exactness::Approx;
            let t = tiny(mode.ftz);
            lanes(c, site, TWO, |[a, b]| {
                let (a, b) = (flush(t, a), flush(t, b));
                // The reciprocal of a divisor above 2^126 counts as zero.
                let huge = is_approx && b & CANONICAL > 0x7e80_0000 && b & CANONICAL < INFINITE;
                let quotient = if huge { of(a) * of(b & SIGN) } else { of(a) / of(b) };
                finish(mode, quotient)
            })
        }
        Pure::FAdd(m) | Pure::FSub(m) if m.ty == Float::F32 && m.round == Rounding::Nearest => {
            let (t, turn) = (tiny(m.ftz), if matches!(op, Pure::FSub(_)) { SIGN } else { 0 });
            lanes(c, site, TWO, |[a, b]| finish(m, of(flush(t, a)) + of(flush(t, b ^ turn))))
        }
        Pure::FMul(m) if m.ty == Float::F32 && m.round == Rounding::Nearest => {
            lanes(c, site, TWO, |[a, b]| finish(m, of(flush(tiny(m.ftz), a)) * of(flush(tiny(m.ftz), b))))
        }
        Pure::FFma(m) if m.ty == Float::F32 && m.round == Rounding::Nearest => lanes(c, site, [Ty::B32; 3], |src| {
            let [a, b, d] = src.map(|a| of(flush(tiny(m.ftz), a)));
            finish(m, a.mul_add(b, d))
        }),
        Pure::Sin { ftz } => by_f64(c, site, ftz, f64::sin),
        Pure::Cos { ftz } => by_f64(c, site, ftz, f64::cos),
        Pure::Tanh { ty: Float::F32 } => by_f64(c, site, false, f64::tanh),
        Pure::Lg2 { ftz } => by_f64(c, site, ftz, log2),
        Pure::Ex2 { ty: Float::F32, ftz } => by_f64(c, site, ftz, exp2),
        Pure::FMin { ty, ftz, nan, xorsign: false } => {
            halves::min_max(ty, ftz, nan, false).is_some_and(|f| lanes(c, site, TWO, f))
        }
        Pure::FMax { ty, ftz, nan, xorsign: false } => {
            halves::min_max(ty, ftz, nan, true).is_some_and(|f| lanes(c, site, TWO, f))
        }
        Pure::FAdd(m) | Pure::FSub(m) | Pure::FMul(m) if halves::is_half(m) => {
            rows(c, site, [m.ty.ty(); 2], |[a, b]| halves::binary(op, m, &a, &b))
        }
        Pure::FFma(m) if halves::is_half(m) => rows(c, site, [m.ty.ty(); 3], |[a, b, d]| halves::fma(m, &a, &b, &d)),
        _ => false,
    }
}

/// Exact for powers of two, as `num` has it.
#[inline(always)]
fn log2(a: f64) -> f64 {
    let bits = a.to_bits();
    if a > 0.0 && a.is_finite() && bits << 12 == 0 { f64::from((bits >> 52) as u32) - 1023.0 } else { a.log2() }
}

/// Exact for integers, as `num` has it; far from zero the result is infinite or zero as `.f32` either way.
#[inline(always)]
fn exp2(a: f64) -> f64 {
    let is_plain = a.fract() == 0.0 && a.abs() < 1000.0;
    if is_plain { f64::from_bits(((a as i64 + 1023) as u64) << 52) } else { a.exp2() }
}
