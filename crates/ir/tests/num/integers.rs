//! Integer ops against references written from the manual's pseudocode, one bit at a time.

use handloom_ir::num::eval;
use handloom_ir::simt::Pure;
use handloom_ir::types::{BoolOp, Cmp, Int, PrmtMode, Ty};

use crate::{Random, run};

const INTS: [Int; 6] = [Int::U16, Int::S16, Int::U32, Int::S32, Int::U64, Int::S64];
const TYPES: [Ty; 3] = [Ty::B16, Ty::B32, Ty::B64];
const SAMPLES: u32 = 20_000;

fn number(t: Int, a: u64) -> i128 {
    let top = 1i128 << (t.bits() - 1);
    let a = i128::from(a);
    if t.signed && a >= top { a - 2 * top } else { a }
}

fn cut(ty: Ty, a: i128) -> u64 {
    (a & i128::from(ty.mask())) as u64
}

fn bit(a: u64, at: u64) -> u64 {
    if at < 64 { a >> at & 1 } else { 0 }
}

#[test]
fn arithmetic() {
    let mut random = Random(1);
    for t in INTS {
        let ty = t.ty;
        let (low, high) =
            if t.signed { (-1i128 << (t.bits() - 1), (1i128 << (t.bits() - 1)) - 1) } else { (0, ty.mask().into()) };
        let corners = [0, 1, 2, ty.mask(), ty.mask() - 1, ty.mask() >> 1, (ty.mask() >> 1) + 1];
        let pairs = corners.iter().flat_map(|&a| corners.map(|b| (a, b))).collect::<Vec<_>>();
        let sample = (0..SAMPLES).map(|_| (random.int(t.bits()), random.int(t.bits())));
        for (a, b) in pairs.into_iter().chain(sample.collect::<Vec<_>>()) {
            let (x, y) = (number(t, a), number(t, b));
            let check = |op: Pure, expected: i128| {
                assert_eq!(run(op, &[a, b]), cut(ty, expected), "{op:?} {a:#x} {b:#x}");
            };
            check(Pure::Mov(ty), x);
            check(Pure::Add(ty), x + y);
            check(Pure::Sub(ty), x - y);
            check(Pure::Mul(ty), x.wrapping_mul(y));
            // The exact product of two u64 does not fit in an i128.
            let high_half = if t.signed { (x * y) >> t.bits() } else { ((x as u128 * y as u128) >> t.bits()) as i128 };
            check(Pure::MulHi(t), high_half);
            check(Pure::Div(t), if y == 0 { -1 } else { x / y });
            check(Pure::Rem(t), if y == 0 { -1 } else { x % y });
            check(Pure::Min(t), x.min(y));
            check(Pure::Max(t), x.max(y));
            check(Pure::AbsDiff(t), (x - y).abs());
            check(Pure::AddSat(t), (x + y).clamp(low, high));
            check(Pure::SubSat(t), (x - y).clamp(low, high));
            check(Pure::And(ty), (a & b).into());
            check(Pure::Or(ty), (a | b).into());
            check(Pure::Xor(ty), (a ^ b).into());
            check(Pure::Not(ty), (!a).into());
            check(Pure::Cnot(ty), (a == 0).into());
            check(Pure::Neg(ty), -x);
            check(Pure::Abs(ty), number(Int { ty, signed: true }, a).abs());
            if t.bits() < 64 {
                let wide = if t.bits() == 16 { Ty::B32 } else { Ty::B64 };
                assert_eq!(run(Pure::MulWide(t), &[a, b]), cut(wide, x * y));
            }
            for (cmp, expected) in [
                (Cmp::Eq, x == y),
                (Cmp::Ne, x != y),
                (Cmp::Lt, x < y),
                (Cmp::Le, x <= y),
                (Cmp::Gt, x > y),
                (Cmp::Ge, x >= y),
            ] {
                assert_eq!(run(Pure::ICmp(cmp, t), &[a, b]), u64::from(expected), "{cmp:?} {t} {a:#x} {b:#x}");
            }
            for carry in [0, 1] {
                let sum = u128::from(a) + u128::from(b) + u128::from(carry);
                let expected = [(sum as u64) & ty.mask(), (sum >> t.bits()) as u64];
                assert_eq!(eval(Pure::AddCarry(ty), &[a, b, carry]), expected);
                let difference = i128::from(a) - i128::from(b) - i128::from(carry);
                let expected = [cut(ty, difference), u64::from(difference < 0)];
                assert_eq!(eval(Pure::SubBorrow(ty), &[a, b, carry]), expected);
            }
        }
    }
}

#[test]
fn carry_chain_adds_128_bits() {
    let mut random = Random(2);
    for _ in 0..SAMPLES {
        let (a, b) = (u128::from(random.int(64)) << 64 | u128::from(random.int(64)), u128::from(random.int(64)));
        let [low, carry] = eval(Pure::AddCarry(Ty::B64), &[a as u64, b as u64, 0]);
        let [high, _] = eval(Pure::AddCarry(Ty::B64), &[(a >> 64) as u64, (b >> 64) as u64, carry]);
        assert_eq!(u128::from(high) << 64 | u128::from(low), a.wrapping_add(b));
    }
}

#[test]
fn shifts() {
    let mut random = Random(3);
    for _ in 0..SAMPLES {
        let amount = if random.below(3) == 0 { random.int(32) } else { random.below(70) };
        for t in INTS {
            let (a, n) = (random.int(t.bits()), amount.min(t.bits().into()));
            let sign = if t.signed { bit(a, u64::from(t.bits()) - 1) } else { 0 };
            let (mut left, mut right) = (0, 0);
            for i in 0..u64::from(t.bits()) {
                left |= if i >= n { bit(a, i - n) << i } else { 0 };
                right |= if i + n < t.bits().into() { bit(a, i + n) << i } else { sign << i };
            }
            assert_eq!(run(Pure::Shl(t.ty), &[a, amount]), left, "shl {t} {a:#x} {amount}");
            assert_eq!(run(Pure::Shr(t), &[a, amount]), right, "shr {t} {a:#x} {amount}");
        }
        let (a, b) = (random.int(32), random.int(32));
        for (right, wrap) in [(false, false), (false, true), (true, false), (true, true)] {
            let n = if wrap { amount & 0x1f } else { amount.min(32) };
            let part = |x: u64, by: u64, left: bool| {
                if by >= 32 {
                    0
                } else if left {
                    (x << by) & 0xffff_ffff
                } else {
                    x >> by
                }
            };
            let expected = if right {
                part(b, 32 - n, true) | part(a, n, false)
            } else {
                part(b, n, true) | part(a, 32 - n, false)
            };
            assert_eq!(run(Pure::Shf { right, wrap }, &[a, b, amount]), expected, "shf {right} {wrap} {amount}");
        }
    }
}

#[test]
fn bit_counts_and_fields() {
    let mut random = Random(4);
    for _ in 0..SAMPLES {
        let any = |random: &mut Random| if random.below(4) == 0 { random.int(32) } else { random.below(70) };
        let (pos, len) = (any(&mut random), any(&mut random));
        for t in INTS {
            let (width, ty) = (u64::from(t.bits()), t.ty);
            let (a, b) = (random.int(t.bits()), random.int(t.bits()));
            let ones: u64 = (0..width).map(|i| bit(a, i)).sum();
            assert_eq!(run(Pure::Popc(ty), &[a]), ones);
            let mut leading = 0;
            while leading < width && bit(a, width - 1 - leading) == 0 {
                leading += 1;
            }
            assert_eq!(run(Pure::Clz(ty), &[a]), leading);
            let reversed: u64 = (0..width).map(|i| bit(a, i) << (width - 1 - i)).sum();
            assert_eq!(run(Pure::Brev(ty), &[a]), reversed);

            let msb = width - 1;
            let inverted = if t.signed && bit(a, msb) == 1 { !a & ty.mask() } else { a };
            let found = (0..width).rev().find(|&i| bit(inverted, i) == 1);
            assert_eq!(run(Pure::Bfind { int: t, shiftamt: false }, &[a]), found.unwrap_or(0xffff_ffff));
            let shift = found.map_or(0xffff_ffff, |i| msb - i);
            assert_eq!(run(Pure::Bfind { int: t, shiftamt: true }, &[a]), shift);

            if t.bits() == 16 {
                continue;
            }
            let (p, n) = (pos & 0xff, len & 0xff);
            let sbit = if !t.signed || n == 0 { 0 } else { bit(a, (p + n - 1).min(msb)) };
            let mut field = 0;
            let mut inserted = b;
            for i in 0..=msb {
                field |= if i < n && p + i <= msb { bit(a, p + i) } else { sbit } << i;
                if i < n && p + i <= msb {
                    inserted = inserted & !(1 << (p + i)) | bit(a, i) << (p + i);
                }
            }
            assert_eq!(run(Pure::Bfe(t), &[a, pos, len]), field, "bfe {t} {a:#x} {pos} {len}");
            assert_eq!(run(Pure::Bfi(ty), &[a, b, pos, len]), inserted, "bfi {a:#x} {b:#x} {pos} {len}");
        }
    }
}

/// Sources of the bytes of the result, highest byte first, as the manual's table has them.
fn permutation(mode: PrmtMode, selector: usize) -> [u64; 4] {
    let table = match mode {
        PrmtMode::Default => unreachable!("the default mode has no table"),
        PrmtMode::F4e => [[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]],
        PrmtMode::B4e => [[5, 6, 7, 0], [6, 7, 0, 1], [7, 0, 1, 2], [0, 1, 2, 3]],
        PrmtMode::Rc8 => [[0; 4], [1; 4], [2; 4], [3; 4]],
        PrmtMode::Ecl => [[3, 2, 1, 0], [3, 2, 1, 1], [3, 2, 2, 2], [3, 3, 3, 3]],
        PrmtMode::Ecr => [[0, 0, 0, 0], [1, 1, 1, 0], [2, 2, 1, 0], [3, 2, 1, 0]],
        PrmtMode::Rc16 => [[1, 0, 1, 0], [3, 2, 3, 2], [1, 0, 1, 0], [3, 2, 3, 2]],
    };
    table[selector]
}

#[test]
fn permutations() {
    let mut random = Random(5);
    for _ in 0..SAMPLES {
        let (a, b, c) = (random.int(32), random.int(32), random.int(32));
        let byte = |i: u64| if i < 4 { a >> (8 * i) & 0xff } else { b >> (8 * (i - 4)) & 0xff };
        let mut expected = 0;
        for to in 0..4 {
            let control = c >> (4 * to) & 0xf;
            let value = byte(control & 7);
            let value = if control & 8 != 0 { if value & 0x80 != 0 { 0xff } else { 0 } } else { value };
            expected |= value << (8 * to);
        }
        assert_eq!(run(Pure::Prmt(PrmtMode::Default), &[a, b, c]), expected);
        for mode in [PrmtMode::F4e, PrmtMode::B4e, PrmtMode::Rc8, PrmtMode::Ecl, PrmtMode::Ecr, PrmtMode::Rc16] {
            let from = permutation(mode, (c & 3) as usize);
            let expected = from.iter().fold(0, |result, &i| result << 8 | byte(i));
            assert_eq!(run(Pure::Prmt(mode), &[a, b, c]), expected, "{mode:?} {c:#x}");
        }
    }
}

#[test]
fn three_input_logic() {
    let mut random = Random(6);
    for table in 0..=255u8 {
        for _ in 0..50 {
            let (a, b, c) = (random.int(32), random.int(32), random.int(32));
            let expected: u64 = (0..32u64)
                .map(|i| u64::from(table) >> (bit(a, i) << 2 | bit(b, i) << 1 | bit(c, i)) & 1)
                .enumerate()
                .map(|(i, value)| value << i)
                .sum();
            assert_eq!(run(Pure::Lop3(table), &[a, b, c]), expected);
        }
    }
    // The manual's own example: the table of a function is the function of the three constants.
    let f = |a: u8, b: u8, c: u8| (a & b) ^ !c;
    let expected = (0x1234_5678u64 & 0x0ff0_ff0f) ^ (!0xdead_beefu64 & 0xffff_ffff);
    assert_eq!(run(Pure::Lop3(f(0xf0, 0xcc, 0xaa)), &[0x1234_5678, 0x0ff0_ff0f, 0xdead_beef]), expected);
}

#[test]
fn dot_products_and_24_bit_products() {
    let mut random = Random(7);
    for _ in 0..SAMPLES {
        let (a, b, c) = (random.int(32), random.int(32), random.int(32));
        let part = |x: u64, at: u32, bits: u32, signed: bool| {
            let x = (x >> at & ((1 << bits) - 1)) as i128;
            if signed && x >= 1 << (bits - 1) { x - (1 << bits) } else { x }
        };
        for (a_signed, b_signed) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut four = i128::from(c);
            for at in [0, 8, 16, 24] {
                four += part(a, at, 8, a_signed) * part(b, at, 8, b_signed);
            }
            assert_eq!(run(Pure::Dp4a { a_signed, b_signed }, &[a, b, c]), cut(Ty::B32, four));
            for hi in [false, true] {
                let select = if hi { 16 } else { 0 };
                let two = i128::from(c)
                    + part(a, 0, 16, a_signed) * part(b, select, 8, b_signed)
                    + part(a, 16, 16, a_signed) * part(b, select + 8, 8, b_signed);
                assert_eq!(run(Pure::Dp2a { a_signed, b_signed, hi }, &[a, b, c]), cut(Ty::B32, two));
            }
        }
        for signed in [false, true] {
            let product = part(a, 0, 24, signed) * part(b, 0, 24, signed);
            assert_eq!(run(Pure::Mul24 { signed, hi: false }, &[a, b]), cut(Ty::B32, product));
            assert_eq!(run(Pure::Mul24 { signed, hi: true }, &[a, b]), cut(Ty::B32, product >> 16));
        }
    }
}

fn nth_set(mask: u64, base: u64, offset: i32) -> u64 {
    if offset == 0 {
        return if bit(mask, base) == 1 { base } else { 0xffff_ffff };
    }
    let mut count = offset.unsigned_abs() - 1;
    let step = if offset > 0 { 1 } else { -1 };
    let mut pos = base as i64;
    while (0..32).contains(&pos) {
        if bit(mask, pos as u64) == 1 {
            if count == 0 {
                return pos as u64;
            }
            count -= 1;
        }
        pos += step;
    }
    0xffff_ffff
}

#[test]
fn masks_and_extensions() {
    let mut random = Random(8);
    for _ in 0..SAMPLES {
        let mask = random.int(32);
        let base = random.below(32);
        let offset = match random.below(8) {
            0 => i32::MIN,
            1 => i32::MAX,
            _ => random.below(80) as i32 - 40,
        };
        let expected = nth_set(mask, base, offset);
        assert_eq!(run(Pure::Fns, &[mask, base, u64::from(offset as u32)]), expected, "fns {mask:#x} {base} {offset}");
        assert_eq!(run(Pure::Fns, &[mask, 32 + base, u64::from(offset as u32)]), 0xffff_ffff);

        let any = |random: &mut Random| if random.below(4) == 0 { random.int(32) } else { random.below(40) };
        let (a, b) = (any(&mut random), any(&mut random));
        for wrap in [false, true] {
            // `szext`, with all variables of 32 bits as in the manual.
            let x = random.int(32) as u32;
            for signed in [false, true] {
                let b1 = (b & 0x1f) as u32;
                let too_large = b >= 32 && !wrap;
                let mask = if too_large { 0 } else { u32::MAX << b1 };
                let sign_pos = b1.wrapping_sub(1) & 0x1f;
                let sign = if b1 == 0 || too_large || !signed { 0 } else { x >> sign_pos & 1 };
                let expected = x & !mask | if sign != 0 { mask } else { 0 };
                let result = run(Pure::Szext { signed, wrap }, &[x.into(), b]);
                assert_eq!(result, u64::from(expected), "szext {signed} {wrap} {x:#x} {b}");
            }
            // `bmsk`.
            let a1 = (a & 0x1f) as u32;
            let b1 = (b & 0x1f) as u32;
            let sum = a1 + b1;
            let mut mask0 = u32::MAX << a1;
            let mut mask1 = u32::MAX.checked_shl(sum).unwrap_or(0);
            let (mut bad_pos, mut bad_width) = (false, false);
            if !wrap {
                if a >= 32 {
                    bad_pos = true;
                    mask0 = 0;
                }
                bad_width = b >= 32;
            }
            if sum >= 32 || bad_pos || bad_width {
                mask1 = 0;
            } else if b1 == 0 {
                mask1 = u32::MAX;
            }
            assert_eq!(run(Pure::Bmsk { wrap }, &[a, b]), u64::from(mask0 & !mask1), "bmsk {wrap} {a} {b}");
        }
    }
}

#[test]
fn moving_and_selecting() {
    let mut random = Random(9);
    for _ in 0..SAMPLES {
        let (a, b) = (random.int(64), random.int(64));
        for from in TYPES {
            for to in TYPES {
                for bits in [8u8, 16, 32, 64] {
                    let kept = u32::from(bits).min(from.bits());
                    if kept != u32::from(bits) {
                        continue;
                    }
                    let a = a & from.mask();
                    for signed in [false, true] {
                        let field = i128::from(a) & ((1 << bits) - 1);
                        let value = if signed && field >> (bits - 1) != 0 { field - (1 << bits) } else { field };
                        let op = Pure::Ext { bits, signed, from, to };
                        assert_eq!(run(op, &[a]), cut(to, value), "{op:?} {a:#x}");
                    }
                }
            }
            assert_eq!(run(Pure::Select(from), &[1, a & from.mask(), b & from.mask()]), a & from.mask());
            assert_eq!(run(Pure::Select(from), &[0, a & from.mask(), b & from.mask()]), b & from.mask());
            assert_eq!(run(Pure::ToPred(from), &[a & from.mask()]), u64::from(a & from.mask() != 0));
            assert_eq!(run(Pure::FromPred(from), &[1]), 1);
        }
        assert_eq!(run(Pure::Pack(Ty::B32), &[a & 0xffff_ffff, b & 0xffff_ffff]), b << 32 | a & 0xffff_ffff);
        assert_eq!(run(Pure::Pack(Ty::B16), &[a & 0xffff, b & 0xffff]), (b & 0xffff) << 16 | a & 0xffff);
        assert_eq!(run(Pure::Half { from: Ty::B64, hi: true }, &[a]), a >> 32);
        assert_eq!(run(Pure::Half { from: Ty::B64, hi: false }, &[a]), a & 0xffff_ffff);
        assert_eq!(run(Pure::Half { from: Ty::B32, hi: true }, &[a & 0xffff_ffff]), a >> 16 & 0xffff);
        assert_eq!(run(Pure::Half { from: Ty::B32, hi: false }, &[a & 0xffff_ffff]), a & 0xffff);
    }
}

#[test]
fn predicates() {
    for op in [BoolOp::And, BoolOp::Or, BoolOp::Xor] {
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let (pure, expected) = match op {
                BoolOp::And => (Pure::And(Ty::P), a & b),
                BoolOp::Or => (Pure::Or(Ty::P), a | b),
                BoolOp::Xor => (Pure::Xor(Ty::P), a ^ b),
            };
            assert_eq!(run(pure, &[a, b]), expected);
            assert_eq!(run(Pure::Not(Ty::P), &[a]), 1 - a);
            assert_eq!(run(Pure::Select(Ty::P), &[a, b, 1 - b]), if a == 1 { b } else { 1 - b });
        }
    }
}
