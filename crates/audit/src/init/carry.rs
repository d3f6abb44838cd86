//! How value ops carry bits that nobody wrote from their sources to their results.
//!
//! Exact to the bit are moves, logic, shifts and fields by amounts that are known, permutations of bytes, extensions, packing, selections, and comparisons
//! whose result the known bits decide. Sums and differences are unknown from the lowest unknown bit on, products from where the other factor moves it. Of floats and conversions each element of
//! a packed type is known or not as a whole, as is each element of a SIMD video instruction. Of everything else no bit is known if one of a source is not.

use handloom_ir::num;
use handloom_ir::simt::{Pure, VideoSimd};
use handloom_ir::types::{Cmp, Float, Int, ScalarType, Ty};

/// The bits of the results that are not known. `src`: the bits of the sources, `undef`: which of them nobody wrote.
pub fn pure(op: Pure, src: &[u64], undef: &[u64]) -> [u64; 2] {
    if undef.iter().all(|u| *u == 0) {
        return [0; 2];
    }
    let (first, second) = op.results();
    let all = [first.mask(), second.map_or(0, Ty::mask)];
    let one = |value: u64| [value & all[0], 0];
    let any = || undef.iter().fold(0, |all, u| all | u);
    match op {
        Pure::Mov(_) | Pure::Not(_) => one(undef[0]),
        Pure::And(_) => one(undef[0] & (src[1] | undef[1]) | undef[1] & (src[0] | undef[0])),
        Pure::Or(_) => one(undef[0] & (!src[1] | undef[1]) | undef[1] & (!src[0] | undef[0])),
        Pure::Xor(_) => one(undef[0] | undef[1]),
        Pure::Lop3(table) => one(lop3(table, src, undef)),
        Pure::Select(_) if undef[0] == 0 => one(if src[0] & 1 == 1 { undef[1] } else { undef[2] }),
        Pure::Select(_) => one(src[1] ^ src[2] | undef[1] | undef[2]),
        Pure::Brev(_) | Pure::Ext { .. } | Pure::Pack(_) | Pure::Half { .. } | Pure::FromPred(_) => {
            one(num::eval(op, undef)[0])
        }
        Pure::Shl(_) | Pure::Shr(_) | Pure::Szext { .. } | Pure::Bfe(_) => moved(op, src, undef, 1, all),
        Pure::Shf { .. } | Pure::Prmt(_) | Pure::Bfi(_) => moved(op, src, undef, 2, all),
        Pure::Add(_) | Pure::Sub(_) | Pure::Neg(_) => one(from_lowest(any())),
        Pure::Mul(_) | Pure::MulWide(_) | Pure::MulHi(_) if is_zero(src, undef) => [0; 2],
        Pure::Mul(_) | Pure::MulWide(_) => one(product(src, undef)),
        Pure::AddCarry(_) | Pure::SubBorrow(_) => [from_lowest(any()) & all[0], all[1]],
        Pure::ICmp(cmp, int) => one(u64::from(compared(cmp, int, src, undef))),
        Pure::ToPred(_) => one(u64::from(src[0] & !undef[0] == 0)),
        Pure::FAdd(mode) | Pure::FSub(mode) | Pure::FMul(mode) | Pure::FFma(mode) => one(by_element(mode.ty, any())),
        Pure::FMin { ty, .. }
        | Pure::FMax { ty, .. }
        | Pure::FAbs { ty, .. }
        | Pure::FNeg { ty, .. }
        | Pure::Ex2 { ty, .. }
        | Pure::Tanh { ty } => one(by_element(ty, any())),
        Pure::Cvt(cvt) => one(converted(cvt.to, cvt.from, undef, all[0])),
        Pure::VideoSimd(v) => one(video_simd(v, undef)),
        Pure::MulHi(_)
        | Pure::Mul24 { .. }
        | Pure::Div(_)
        | Pure::Rem(_)
        | Pure::Min(_)
        | Pure::Max(_)
        | Pure::Abs(_)
        | Pure::AbsDiff(_)
        | Pure::AddSat(_)
        | Pure::SubSat(_)
        | Pure::Cnot(_)
        | Pure::Popc(_)
        | Pure::Clz(_)
        | Pure::Bfind { .. }
        | Pure::Dp4a { .. }
        | Pure::Dp2a { .. }
        | Pure::Fns
        | Pure::Bmsk { .. }
        | Pure::Video(_)
        | Pure::Vmad(_)
        | Pure::FCmp { .. }
        | Pure::FDiv { .. }
        | Pure::FRcp { .. }
        | Pure::FSqrt { .. }
        | Pure::FRsqrt(_)
        | Pure::Sin { .. }
        | Pure::Cos { .. }
        | Pure::Lg2 { .. }
        | Pure::Copysign(_)
        | Pure::Testp { .. } => all,
    }
}

/// The bits of a product from the lowest one on that an unknown bit reaches: the other factor moves it up by as many places as that has zeros at its end.
fn product(src: &[u64], undef: &[u64]) -> u64 {
    let zeros = |i: usize| (src[i] | undef[i]).trailing_zeros();
    let reached = |i: usize| (undef[i] != 0).then(|| undef[i].trailing_zeros() + zeros(1 - i));
    let lowest = reached(0).into_iter().chain(reached(1)).min().unwrap_or(u64::BITS);
    from_lowest(1_u64.checked_shl(lowest).unwrap_or(0))
}

/// Whether an op takes one source away from itself, of which nothing is left whatever it holds.
pub fn cancels(op: Pure, is_same: bool) -> bool {
    is_same && matches!(op, Pure::Xor(_) | Pure::Sub(_))
}

/// Whether bits only move from sources to the result: what is made of such ops alone is a copy.
pub fn is_copy(op: Pure) -> bool {
    matches!(
        op,
        Pure::Mov(_)
            | Pure::And(_)
            | Pure::Or(_)
            | Pure::Xor(_)
            | Pure::Not(_)
            | Pure::Lop3(_)
            | Pure::Select(_)
            | Pure::Brev(_)
            | Pure::Ext { .. }
            | Pure::Pack(_)
            | Pure::Half { .. }
            | Pure::Shl(_)
            | Pure::Shr(_)
            | Pure::Shf { .. }
            | Pure::Prmt(_)
            | Pure::Bfi(_)
            | Pure::Bfe(_)
            | Pure::Szext { .. }
    )
}

/// Ops that move the bits of their first sources by what the others say, from `control` on.
fn moved(op: Pure, src: &[u64], undef: &[u64], control: usize, all: [u64; 2]) -> [u64; 2] {
    if undef[control..].iter().any(|u| *u != 0) {
        return all;
    }
    let mut bits = undef.to_vec();
    bits[control..].copy_from_slice(&src[control..]);
    [num::eval(op, &bits)[0], 0]
}

/// The lowest bit and all above it.
fn from_lowest(bits: u64) -> u64 {
    bits | bits.wrapping_neg()
}

/// Whether a source is known to be 0.
fn is_zero(src: &[u64], undef: &[u64]) -> bool {
    src.iter().zip(undef).any(|(value, undef)| *value == 0 && *undef == 0)
}

/// Elements of which a bit is unknown are unknown as a whole. A sum of all results is one from the lowest unknown bit on.
fn video_simd(v: VideoSimd, undef: &[u64]) -> u64 {
    let bits = v.bits();
    let of_element = (1_u64 << bits) - 1;
    let both = undef[1] << 32 | undef[0];
    let is_unknown = |i: usize| [v.a, v.b].iter().any(|e| both >> (u32::from(e.select[i]) * bits) & of_element != 0);
    let taken = (0..usize::from(v.n)).filter(|i| v.mask >> i & 1 == 1);
    if v.accumulate {
        return from_lowest(taken.fold(undef[2], |sum, i| sum | u64::from(is_unknown(i))));
    }
    taken.fold(undef[2], |merged, i| {
        let element = of_element << (i as u32 * bits);
        merged & !element | if is_unknown(i) { element } else { 0 }
    })
}

/// Bits that the table makes 0 for some values of the unknown ones and 1 for others.
fn lop3(table: u8, src: &[u64], undef: &[u64]) -> u64 {
    let mut can = [0_u64; 2];
    for row in 0..8_usize {
        let is = |i: usize| {
            let value = if row >> (2 - i) & 1 == 1 { src[i] } else { !src[i] };
            value | undef[i]
        };
        can[usize::from(table >> row & 1)] |= is(0) & is(1) & is(2);
    }
    can[0] & can[1]
}

/// Whether unknown bits decide a comparison of integers.
fn compared(cmp: Cmp, int: Int, src: &[u64], undef: &[u64]) -> bool {
    // A signed order is the unsigned one with the sign bit flipped.
    let flip = if int.signed { 1 << (int.bits() - 1) } else { 0 };
    let low = |i: usize| (src[i] ^ flip) & !undef[i];
    let high = |i: usize| (src[i] ^ flip) | undef[i];
    let differ = (src[0] ^ src[1]) & !(undef[0] | undef[1]) & int.ty.mask() != 0;
    let apart = |a: usize, b: usize| high(a) < low(b);
    let apart_or_equal = |a: usize, b: usize| high(a) <= low(b);
    match cmp {
        Cmp::Eq | Cmp::Ne => !differ,
        Cmp::Lt | Cmp::Ge => !(apart(0, 1) || apart_or_equal(1, 0)),
        Cmp::Gt | Cmp::Le => !(apart(1, 0) || apart_or_equal(0, 1)),
        Cmp::Equ | Cmp::Neu | Cmp::Ltu | Cmp::Leu | Cmp::Gtu | Cmp::Geu | Cmp::Num | Cmp::Nan => true,
    }
}

/// All bits of each element that has one.
fn by_element(ty: Float, bits: u64) -> u64 {
    let width = match ty {
        Float::F16x2 | Float::BF16x2 => 16,
        Float::F32x2 => 32,
        Float::F16 | Float::BF16 | Float::F32 | Float::F64 => return whole(bits, ty.ty().bits()),
    };
    let low = u64::MAX >> (64 - width);
    whole(bits & low, width) | whole(bits >> width, width) << width
}

fn whole(bits: u64, width: u32) -> u64 {
    if bits == 0 { 0 } else { u64::MAX >> (64 - width) }
}

/// A conversion, element by element.
fn converted(to: ScalarType, from: ScalarType, undef: &[u64], all: u64) -> u64 {
    let n = to.elements();
    let (wide, narrow) = (from.bits() / from.elements(), to.bits() / n);
    let low = |bits: u32| u64::MAX >> 64_u32.saturating_sub(bits.max(1)).min(63);
    let n_values = if from.elements() == 1 { n } else { 1 };
    let values = usize::try_from(n_values).unwrap_or(1).min(undef.len());
    if undef[values..].iter().any(|u| *u != 0) {
        return all;
    }
    let is_unknown = |i: u32| match from.elements() {
        // The first source is the uppermost element.
        1 => usize::try_from(n - 1 - i).ok().and_then(|i| undef.get(i)).is_some_and(|u| u & low(wide) != 0),
        _ => undef[0] >> (i * wide) & low(wide) != 0,
    };
    if n == 1 {
        return if undef[0] & low(from.bits()) != 0 { all } else { 0 };
    }
    (0..n).filter(|i| is_unknown(*i)).fold(0, |bits, i| bits | low(narrow) << (i * narrow)) & all
}

#[cfg(test)]
mod tests {
    use handloom_ir::simt::video::{Elements, SimdOp};

    use super::*;

    const HALF: u64 = 0xffff;

    #[test]
    fn logic_is_exact() {
        // Every pair of known and unknown bits, by trying both values of the unknown ones.
        let ops: [Pure; 3] = [Pure::And(Ty::B16), Pure::Or(Ty::B16), Pure::Xor(Ty::B16)];
        for op in ops {
            for bits in 0..16_u64 {
                let (src, undef) = ([bits & 1, bits >> 1 & 1], [bits >> 2 & 1, bits >> 3 & 1]);
                let mut seen = Vec::new();
                for flips in 0..4_u64 {
                    let flip = |i: usize| src[i] ^ flips >> i & undef[i];
                    seen.push(num::eval(op, &[flip(0), flip(1)])[0] & 1);
                }
                let differs = seen.iter().any(|s| *s != seen[0]);
                assert_eq!(pure(op, &src, &undef)[0], u64::from(differs), "{op} of {src:?} {undef:?}");
            }
        }
    }

    #[test]
    fn tables_of_three_are_exact() {
        for table in 0..=u8::MAX {
            for bits in 0..64_u64 {
                let (src, undef) = ([0, 1, 2].map(|i| bits >> i & 1), [3, 4, 5].map(|i| bits >> i & 1));
                let value = |flips: u64| {
                    num::eval(Pure::Lop3(table), &[0, 1, 2].map(|i| src[i] ^ flips >> i & undef[i]))[0] & 1
                };
                let differs = (0..8).any(|flips| value(flips) != value(0));
                assert_eq!(pure(Pure::Lop3(table), &src, &undef)[0] & 1, u64::from(differs), "{table:#x} {bits:#b}");
            }
        }
    }

    #[test]
    fn elements_of_video_instructions_are_known_one_by_one() {
        let in_order = Elements { select: [0, 1, 2, 3], signed: false };
        // Those of b, in falling order.
        let of_b = Elements { select: [7, 6, 5, 4], signed: true };
        let of = |mask, accumulate| {
            let (op, n, signed, sat) = (SimdOp::AbsDiff, 4, false, false);
            Pure::VideoSimd(VideoSimd { op, n, signed, a: in_order, b: of_b, mask, sat, accumulate })
        };
        let none = [0; 3];
        assert_eq!(pure(of(15, false), &none, &[0xff00_0000, 0, 0]), [0xff00_0000, 0]);
        // The lowest byte of b goes into the highest element, one bit of it is enough.
        assert_eq!(pure(of(15, false), &none, &[0, 0x40, 0]), [0xff00_0000, 0]);
        // What is not asked for comes from c.
        assert_eq!(pure(of(7, false), &none, &[0, 0x40, 0x8000_0080]), [0x8000_0000, 0]);
        // A sum of all elements, and one without those that are not known.
        assert_eq!(pure(of(15, true), &none, &[0, 0x40, 0x100]), [0xffff_ffff, 0]);
        assert_eq!(pure(of(7, true), &none, &[0, 0x40, 0x100]), [0xffff_ff00, 0]);
    }

    #[test]
    fn what_moves_takes_its_unknown_bits_along() {
        let shr = |signed| Pure::Shr(Int { ty: Ty::B32, signed });
        assert_eq!(pure(Pure::Shl(Ty::B32), &[0, 8], &[HALF, 0]), [0x00ff_ff00, 0]);
        assert_eq!(pure(shr(false), &[0, 8], &[0xff00_0000, 0]), [0x00ff_0000, 0]);
        assert_eq!(pure(shr(true), &[0, 8], &[0xff00_0000, 0]), [0xffff_0000, 0]);
        assert_eq!(pure(shr(true), &[0, 8], &[0, 1]), [0xffff_ffff, 0]);
        let ext = Pure::Ext { bits: 8, signed: true, from: Ty::B32, to: Ty::B32 };
        assert_eq!(pure(ext, &[0], &[0xff00]), [0, 0]);
        assert_eq!(pure(ext, &[0], &[0x80]), [0xffff_ff80, 0]);
        assert_eq!(pure(Pure::Pack(Ty::B16), &[0, 0], &[0, HALF]), [0xffff_0000, 0]);
    }

    #[test]
    fn comparisons_are_known_where_known_bits_decide() {
        let lt = |signed| Pure::ICmp(Cmp::Lt, Int { ty: Ty::B32, signed });
        assert_eq!(pure(lt(false), &[0, 0x100], &[0xff, 0])[0], 0);
        assert_eq!(pure(lt(false), &[0, 0x80], &[0xff, 0])[0], 1);
        assert_eq!(pure(lt(true), &[0x8000_0000, 0], &[0xff, 0])[0], 0);
        let eq = Pure::ICmp(Cmp::Eq, Int { ty: Ty::B32, signed: false });
        assert_eq!(pure(eq, &[0x100, 0], &[0xff, 0])[0], 0);
        assert_eq!(pure(eq, &[0, 0], &[0xff, 0])[0], 1);
    }

    #[test]
    fn elements_of_packed_types_do_not_mix() {
        let mode = handloom_ir::simt::FMode {
            ty: Float::F16x2,
            round: handloom_ir::types::Rounding::Nearest,
            ftz: false,
            sat: false,
            relu: false,
        };
        assert_eq!(pure(Pure::FAdd(mode), &[0, 0], &[1 << 20, 0])[0], 0xffff_0000);
        let pack = Pure::Cvt(handloom_ir::simt::Cvt::plain(ScalarType::F16x2, ScalarType::F32));
        assert_eq!(pure(pack, &[0, 0], &[1, 0])[0], 0xffff_0000);
        assert_eq!(pure(pack, &[0, 0], &[0, 1])[0], HALF);
    }

    #[test]
    fn sums_are_known_below_the_lowest_unknown_bit() {
        assert_eq!(pure(Pure::Add(Ty::B32), &[0, 0], &[0x100, 0])[0], 0xffff_ff00);
        assert_eq!(pure(Pure::Mul(Ty::B32), &[0, 0], &[0x100, 0])[0], 0);
        assert_eq!(pure(Pure::Mul(Ty::B32), &[0, 3], &[0x100, 0])[0], 0xffff_ff00);
        assert_eq!(pure(Pure::Mul(Ty::B32), &[0, 4], &[0x100, 0])[0], 0xffff_fc00);
        assert_eq!(pure(Pure::Mul(Ty::B32), &[3, 0x10000], &[0xffff_0000, 0])[0], 0);
        assert_eq!(pure(Pure::Mul(Ty::B32), &[0, 0], &[0x100, 0x10])[0], 0xffff_f000);
    }
}
