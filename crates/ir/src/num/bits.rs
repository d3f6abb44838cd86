//! Shifts, bit fields, permutations and masks.

use crate::types::{Int, PrmtMode, Ty};

use super::int::sext;

/// Left shift; amounts above the width shift everything out.
#[inline]
pub(super) fn shl(ty: Ty, a: u64, amount: u64) -> u64 {
    if amount >= u64::from(ty.bits()) { 0 } else { (a << amount) & ty.mask() }
}

/// Right shift, arithmetic when signed; amounts above the width act as the width.
#[inline]
pub(super) fn shr(t: Int, a: u64, amount: u64) -> u64 {
    if t.signed {
        (sext(a, t.bits()) >> amount.min(63)) as u64 & t.ty.mask()
    } else if amount >= u64::from(t.bits()) {
        0
    } else {
        a >> amount
    }
}

/// One word of the 64-bit value `hi:lo` after a shift.
///
/// # PTX ISA
/// Logic and Shift Instructions: shf.
#[inline]
pub(super) fn shf(right: bool, wrap: bool, lo: u64, hi: u64, amount: u64) -> u64 {
    let n = if wrap { amount & 31 } else { amount.min(32) };
    let pair = hi << 32 | lo;
    (if right { pair >> n } else { (pair << n) >> 32 }) & Ty::B32.mask()
}

/// Position of the most significant bit that differs from the sign, or all ones.
///
/// # PTX ISA
/// Integer Arithmetic Instructions: bfind.
#[inline]
pub(super) fn bfind(t: Int, shiftamt: bool, a: u64) -> u64 {
    let a = if t.signed && sext(a, t.bits()) < 0 { !a & t.ty.mask() } else { a };
    match a.checked_ilog2() {
        None => Ty::B32.mask(),
        Some(at) if shiftamt => u64::from(t.bits() - 1 - at),
        Some(at) => u64::from(at),
    }
}

/// The field of `len` bits at `pos`, extended by its own top bit when signed.
///
/// # PTX ISA
/// Integer Arithmetic Instructions: bfe.
#[inline]
pub(super) fn bfe(t: Int, a: u64, pos: u64, len: u64) -> u64 {
    let (pos, len, width) = ((pos & 0xff) as u32, (len & 0xff) as u32, t.bits());
    if len == 0 {
        return 0;
    }
    // A signed field is read from the sign-extended source: bits past the top are the sign there, which is also the
    // bit that the manual names for a field reaching past the top.
    if t.signed {
        let shifted = sext(a, width) >> pos.min(63);
        (if len < 64 { sext(shifted as u64, len) } else { shifted }) as u64 & t.ty.mask()
    } else {
        let shifted = if pos < width { a >> pos } else { 0 };
        if len < 64 { shifted & ((1 << len) - 1) } else { shifted }
    }
}

/// `base` with the low `len` bits of `field` at `pos`; what would reach past the top is dropped.
///
/// # PTX ISA
/// Integer Arithmetic Instructions: bfi.
#[inline]
pub(super) fn bfi(ty: Ty, field: u64, base: u64, pos: u64, len: u64) -> u64 {
    let (pos, len) = ((pos & 0xff) as u32, (len & 0xff) as u32);
    if pos >= ty.bits() {
        return base;
    }
    let ones = if len < 64 { (1 << len) - 1 } else { u64::MAX };
    let mask = (ones << pos) & ty.mask();
    (base & !mask) | ((field << pos) & mask)
}

/// Four bytes picked from the eight of `b:a`.
///
/// # PTX ISA
/// Data Movement and Conversion Instructions: prmt.
#[inline]
pub(super) fn prmt(mode: PrmtMode, a: u64, b: u64, control: u64) -> u64 {
    let source = b << 32 | a;
    let at = control & 3;
    // A selector has a nibble for each byte of the result, the lowest byte first.
    let selector = match mode {
        PrmtMode::Default => control,
        PrmtMode::F4e => 0x3210 + 0x1111 * at,
        PrmtMode::B4e => [0x5670, 0x6701, 0x7012, 0x0123][at as usize],
        PrmtMode::Rc8 => 0x1111 * at,
        PrmtMode::Ecl => [0x3210, 0x3211, 0x3222, 0x3333][at as usize],
        PrmtMode::Ecr => [0x0000, 0x1110, 0x2210, 0x3210][at as usize],
        PrmtMode::Rc16 => [0x1010, 0x3232, 0x1010, 0x3232][at as usize],
    };
    let mut result = 0;
    for to in 0..4 {
        let nibble = selector >> (4 * to);
        let byte = (source >> (8 * (nibble & 7))) & 0xff;
        let byte = if nibble & 8 == 0 { byte } else { (byte >> 7) * 0xff };
        result |= byte << (8 * to);
    }
    result
}

/// The truth table `table` applied to each bit of the three operands; `a` is the top bit of the index.
///
/// # PTX ISA
/// Logic and Shift Instructions: lop3.
#[inline]
pub(super) fn lop3(table: u8, a: u64, b: u64, c: u64) -> u64 {
    let row = |index: u8| if table >> index & 1 != 0 { u64::MAX } else { 0 };
    let pick = |index: u8| (row(index) & !c) | (row(index + 1) & c);
    let low = (pick(0) & !b) | (pick(2) & b);
    let high = (pick(4) & !b) | (pick(6) & b);
    ((low & !a) | (high & a)) & Ty::B32.mask()
}

/// Position of the n-th set bit of `mask`, counted from `base` in the direction of the sign of `offset`.
///
/// # PTX ISA
/// Integer Arithmetic Instructions: fns.
#[inline]
pub(super) fn fns(mask: u64, base: u64, offset: u64) -> u64 {
    const NONE: u64 = 0xffff_ffff;
    let offset = offset as u32 as i32;
    // Choice: the manual leaves a base above 31 undefined. No bit is there, so nothing is found.
    if base > 31 {
        return NONE;
    }
    if offset == 0 {
        return if mask >> base & 1 != 0 { base } else { NONE };
    }
    let mut rest = if offset > 0 { mask >> base << base } else { mask & ((2 << base) - 1) };
    for _ in 1..offset.unsigned_abs().min(33) {
        rest &= if offset > 0 { rest.wrapping_sub(1) } else { !top_bit(rest) };
    }
    match (rest, offset > 0) {
        (0, _) => NONE,
        (_, true) => u64::from(rest.trailing_zeros()),
        (_, false) => u64::from(rest.ilog2()),
    }
}

#[inline]
fn top_bit(a: u64) -> u64 {
    a.checked_ilog2().map_or(0, |at| 1 << at)
}

/// Sign or zero extension from a width given at run time.
///
/// # PTX ISA
/// Integer Arithmetic Instructions: szext.
#[inline]
pub(super) fn szext(signed: bool, wrap: bool, a: u64, width: u64) -> u64 {
    if width >= 32 && !wrap {
        return a;
    }
    match (width & 31) as u32 {
        0 => 0,
        width if signed => sext(a, width) as u64 & Ty::B32.mask(),
        width => a & ((1 << width) - 1),
    }
}

/// `width` ones from `pos` upwards, within 32 bits.
///
/// # PTX ISA
/// Integer Arithmetic Instructions: bmsk.
#[inline]
pub(super) fn bmsk(wrap: bool, pos: u64, width: u64) -> u64 {
    if !wrap && pos >= 32 {
        return 0;
    }
    let ones = if !wrap && width >= 32 { Ty::B32.mask() } else { (1 << (width & 31)) - 1 };
    (ones << (pos & 31)) & Ty::B32.mask()
}
