//! Whole rows against `num::eval`, op by op.

use handloom_ir::num;
use handloom_ir::simt::{Cvt, Exactness, FMode, Pure};
use handloom_ir::types::*;
use handloom_plan::abi::{EvalSite, Loc};
use handloom_plan::host::{Host, Vectors};
use handloom_plan::ways::{Way, way};

use super::{Active, as_lane, eval_lanes, has_loop};
use crate::warp::context::Ctx;

/// Rows of a context: sixteen of 64-bit lanes.
#[repr(align(64))]
struct Rows([[u64; 32]; 16]);

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Bits of a source: edges of formats and their neighbours, small integers, or anything; packed ones mix two.
    fn source(&mut self, ty: Ty) -> u64 {
        const EDGES: [u64; 24] = [
            0,
            1,
            31,
            32,
            0x7f,
            0x80,
            0x3ff,
            0x400,
            0x3c00,
            0x7bff,
            0x7c00,
            0x7c01,
            0x7f7f,
            0x7f80,
            0x7fff,
            0x007f_ffff,
            0x0080_0000,
            0x3f80_0000,
            0x4b00_0000,
            0x7e80_0001,
            0x7f7f_ffff,
            0x7f80_0000,
            0x7fc0_0001,
            0x3380_0000,
        ];
        let sign = 1 << (ty.bits() - 1);
        let pick = self.next();
        let mut value = match pick % 8 {
            0..3 => EDGES[(pick >> 8) as usize % EDGES.len()].wrapping_add((pick >> 20) % 3).wrapping_sub(1),
            3 => pick >> 8 & 0x3f,
            // Floats near one, with few bits.
            4 => 0x3e80_0000 + ((pick >> 16 & 0xff) << 17),
            5 => (pick >> 9 & 0xffff) << 16 | (pick >> 30 & 0xffff),
            _ => self.next(),
        };
        if pick >> 40 & 1 == 1 {
            value ^= sign;
        }
        value & ty.mask()
    }
}

/// Compares an op on random rows and masks; lanes outside of the mask must keep what they hold.
fn compare(op: Pure, random: &mut Random) {
    let types = op.sources();
    let (ty, second) = op.results();
    let at = |i: usize| 256 * i as u32;
    let place = |ty: Ty, i: usize| if ty == Ty::B64 { Loc::Row64(at(i)) } else { Loc::Row32(at(i)) };
    let dst: Vec<Loc> = [Some(ty), second].iter().flatten().enumerate().map(|(i, t)| place(*t, i)).collect();
    let src: Vec<Loc> = types.iter().enumerate().map(|(i, t)| place(*t, 2 + i)).collect();
    let site = EvalSite { op, dst, src };
    for turn in 0..40 {
        let mut rows = Rows([[0x5a5a_5a5a_5a5a_5a5a; 32]; 16]);
        let ctx = Ctx { warp: (&raw mut rows.0).cast(), tables: std::ptr::null() };
        let mask = if turn % 4 == 0 { u32::MAX } else { random.next() as u32 };
        let values: Vec<[u64; 32]> = types.iter().map(|t| std::array::from_fn(|_| random.source(*t))).collect();
        for (i, t) in types.iter().enumerate() {
            (0..32).for_each(|l| ctx.write(site.src[i], l, as_lane(*t == Ty::P, values[i][l])));
        }
        eval_lanes(&Host::detect(), Active { ctx, mask }, &site);
        for lane in 0..32 {
            let src: Vec<u64> = values.iter().map(|row| row[lane]).collect();
            let want = num::eval(op, &src);
            for ((loc, want), ty) in site.dst.iter().zip(want).zip([Some(ty), second]) {
                let kept = if ty == Some(Ty::B64) { 0x5a5a_5a5a_5a5a_5a5a } else { 0x5a5a_5a5a };
                let want = if mask >> lane & 1 == 1 { as_lane(ty == Some(Ty::P), want) } else { kept };
                let want = if ty == Some(Ty::B64) { want } else { want & 0xffff_ffff };
                assert_eq!(ctx.read(*loc, lane), want, "{op:?} of {src:x?} in lane {lane} of {mask:#x}");
            }
        }
    }
}

const FLAGS: [bool; 2] = [false, true];

fn modes(types: &[Float]) -> Vec<FMode> {
    let mut out = Vec::new();
    for &ty in types {
        for round in [Rounding::Nearest, Rounding::Zero] {
            for ftz in FLAGS {
                for (sat, relu) in [(false, false), (true, false), (false, true)] {
                    out.push(FMode { ty, round, ftz, sat, relu });
                }
            }
        }
    }
    out
}

#[test]
fn integer_ops_are_those_of_num() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let ints = [Int::S16, Int::U16, Int::S32, Int::U32, Int::S64, Int::U64];
    for ty in [Ty::B32, Ty::B64] {
        for op in [Pure::Popc(ty), Pure::Clz(ty), Pure::Brev(ty), Pure::Shl(ty), Pure::Bfi(ty), Pure::AddCarry(ty)] {
            compare(op, &mut random);
        }
    }
    for int in ints {
        for op in [Pure::Div(int), Pure::Rem(int), Pure::Shr(int), Pure::Min(int), Pure::ICmp(Cmp::Lt, int)] {
            compare(op, &mut random);
        }
    }
    for int in &ints[2..] {
        let find = |shiftamt| Pure::Bfind { int: *int, shiftamt };
        for op in [Pure::Bfe(*int), find(false), find(true), Pure::MulHi(*int), Pure::AbsDiff(*int)] {
            compare(op, &mut random);
        }
    }
    for a in FLAGS {
        for b in FLAGS {
            compare(Pure::Shf { right: a, wrap: b }, &mut random);
            compare(Pure::Mul24 { signed: a, hi: b }, &mut random);
            compare(Pure::Dp4a { a_signed: a, b_signed: b }, &mut random);
            compare(Pure::Szext { signed: a, wrap: b }, &mut random);
        }
    }
    for op in [Pure::AddSat(Int::S32), Pure::SubSat(Int::S32), Pure::Prmt(PrmtMode::Default), Pure::Prmt(PrmtMode::F4e)]
    {
        compare(op, &mut random);
    }
}

#[test]
fn float_ops_are_those_of_num() {
    let mut random = Random(0x0fed_cba9_8765_4321);
    let near = Exactness::Ieee(Rounding::Nearest);
    for mode in modes(&[Float::F32, Float::F64]) {
        let plain = FMode { sat: false, relu: false, ..mode };
        for exact in [near, Exactness::Approx, Exactness::Full, Exactness::Ieee(Rounding::Up)] {
            compare(Pure::FDiv { mode, exact }, &mut random);
            compare(Pure::FRcp { mode, exact }, &mut random);
            compare(Pure::FSqrt { mode, exact }, &mut random);
        }
        compare(Pure::FRsqrt(plain), &mut random);
    }
    for m in modes(&[Float::F16, Float::BF16, Float::F16x2, Float::BF16x2, Float::F32]) {
        for op in [Pure::FAdd(m), Pure::FSub(m), Pure::FMul(m), Pure::FFma(m)] {
            compare(op, &mut random);
        }
    }
    for ftz in FLAGS {
        for op in [Pure::Sin { ftz }, Pure::Cos { ftz }, Pure::Lg2 { ftz }] {
            compare(op, &mut random);
        }
        for ty in [Float::F16, Float::BF16, Float::F16x2, Float::BF16x2, Float::F32, Float::F64] {
            for nan in FLAGS {
                compare(Pure::FMin { ty, ftz, nan, xorsign: false }, &mut random);
                compare(Pure::FMax { ty, ftz, nan, xorsign: ftz }, &mut random);
                compare(Pure::FMax { ty, ftz, nan, xorsign: false }, &mut random);
            }
            if ty != Float::F64 {
                compare(Pure::Ex2 { ty, ftz }, &mut random);
                compare(Pure::Tanh { ty }, &mut random);
            }
        }
    }
}

#[test]
fn conversions_are_those_of_num() {
    use ScalarType::*;
    let mut random = Random(0x3141_5926_5358_9793);
    let all = [U8, S8, U16, S16, U32, S32, U64, S64, F16, BF16, F32, F64, F16x2, BF16x2];
    for to in all {
        for from in all {
            let packs = [F16x2, BF16x2];
            if packs.contains(&from) || packs.contains(&to) && from != F32 {
                continue;
            }
            for round in [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up] {
                for ftz in [false, from == F32 || to == F32] {
                    for (sat, relu, satfinite) in
                        [(false, false, false), (true, false, false), (false, true, false), (false, false, true)]
                    {
                        for integral in [false, to == from] {
                            compare(
                                Pure::Cvt(Cvt { to, from, round, integral, ftz, sat, relu, satfinite }),
                                &mut random,
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn conversions_of_small_floats_are_those_of_num() {
    use ScalarType::*;
    let mut random = Random(0x2718_2818_2845_9045);
    let plain = |to, from, round| Cvt {
        to,
        from,
        round,
        integral: false,
        ftz: false,
        sat: false,
        relu: false,
        satfinite: false,
    };
    for relu in FLAGS {
        for satfinite in FLAGS {
            for to in [F16x2, BF16x2, E4M3x4, E5M2x4, E2M3x4, E3M2x4, E2M1x4] {
                let c = plain(to, F32, Rounding::Stochastic);
                compare(Pure::Cvt(Cvt { relu, satfinite, ..c }), &mut random);
            }
            for small in [E4M3x2, E5M2x2, E2M3x2, E3M2x2, E2M1x2] {
                for c in [plain(BF16x2, small, Rounding::Nearest), plain(small, F32, Rounding::Nearest)] {
                    compare(Pure::Cvt(Cvt { relu, satfinite, ..c }), &mut random);
                }
            }
        }
    }
}

#[test]
fn every_half_widens_and_every_neighbourhood_of_one_narrows() {
    use ScalarType::*;
    let cvt = |to, from| {
        let round = Rounding::Nearest;
        Pure::Cvt(Cvt { to, from, round, integral: false, ftz: false, sat: false, relu: false, satfinite: false })
    };
    let check = |op: Pure, values: [u64; 32]| {
        let mut rows = Rows([[0; 32]; 16]);
        let ctx = Ctx { warp: (&raw mut rows.0).cast(), tables: std::ptr::null() };
        let site = EvalSite { op, dst: vec![Loc::Row32(0)], src: vec![Loc::Row32(256)] };
        (0..32).for_each(|l| ctx.write(site.src[0], l, values[l]));
        eval_lanes(&Host::detect(), Active { ctx, mask: u32::MAX }, &site);
        for (lane, value) in values.iter().enumerate() {
            assert_eq!(ctx.read(site.dst[0], lane), num::eval(op, &[*value])[0], "{op:?} of {value:#x}");
        }
    };
    for half in [F16, BF16] {
        for first in (0..0x1_0000_u64).step_by(32) {
            check(cvt(F32, half), std::array::from_fn(|l| first + l as u64));
        }
        for code in 0..0x1_0000_u64 {
            // The number itself, the tie above it, and the neighbours of both.
            let exact = num::eval(cvt(F32, half), &[code])[0];
            let tie = if half == F16 { 0x1000 } else { 0x8000 };
            let near =
                |l: usize| (exact + tie * (l as u64 / 8)).wrapping_add(l as u64 % 8).wrapping_sub(4) & 0xffff_ffff;
            check(cvt(half, F32), std::array::from_fn(near));
        }
    }
}

#[test]
fn what_long_functions_leave_to_the_routine_has_a_loop() {
    use ScalarType::*;
    let host = Host::detect();
    let mut rows = Rows([[3; 32]; 16]);
    let ctx = Ctx { warp: (&raw mut rows.0).cast(), tables: std::ptr::null() };
    let mode = |ftz| FMode { ty: Float::F32, round: Rounding::Nearest, ftz, sat: false, relu: false };
    let cvt = |to| {
        Pure::Cvt(Cvt {
            to,
            from: F32,
            round: Rounding::Nearest,
            integral: false,
            ftz: false,
            sat: false,
            relu: false,
            satfinite: E4M3x2 == to || E5M2x2 == to,
        })
    };
    let mut n = 0;
    let [m, plain] = [mode(true), mode(false)];
    let extreme = [false, true].map(|nan| Pure::FMin { ty: Float::F32, ftz: false, nan, xorsign: false });
    let arithmetic = [Pure::FAdd(m), Pure::FSub(m), Pure::FMul(m), Pure::FFma(m), Pure::FFma(plain)];
    let high = [Int::S32, Int::U32].map(Pure::MulHi);
    let narrow = [F16, BF16, F16x2, BF16x2, E4M3x2, E5M2x2, E2M3x2, E3M2x2, E2M1x2].map(cvt);
    for op in extreme.into_iter().chain(arithmetic).chain(high).chain(narrow) {
        let types = op.sources();
        let Way::Vector(v) = way(op, &vec![None; types.len()], &vec![false; types.len()]) else { continue };
        if !v.is_much_code() {
            continue;
        }
        n += 1;
        let src = (0..types.len()).map(|i| Loc::Row32(256 * (i as u32 + 1))).collect();
        let site = EvalSite { op, dst: vec![Loc::Row32(0)], src };
        assert_eq!(has_loop(&host, Active { ctx, mask: u32::MAX }, &site), host.has_row_loops(), "{op:?}");
    }
    assert_eq!(n, 17);
}

#[test]
fn loops_are_for_the_host_that_the_record_names() {
    let mut host = Host::detect();
    let mut rows = Rows([[3; 32]; 16]);
    let ctx = Ctx { warp: (&raw mut rows.0).cast(), tables: std::ptr::null() };
    let op = Pure::FAdd(FMode { ty: Float::F16, round: Rounding::Nearest, ftz: false, sat: false, relu: false });
    let site = EvalSite { op, dst: vec![Loc::Row32(0)], src: vec![Loc::Row32(256), Loc::Row32(512)] };
    let lanes = Active { ctx, mask: u32::MAX };
    assert_eq!(has_loop(&host, lanes, &site), host.has_row_loops());
    // A cap leaves the definition of the op, lane by lane.
    host.vectors = Vectors::V128;
    assert!(!has_loop(&host, lanes, &site));
    eval_lanes(&host, lanes, &site);
    assert_eq!(ctx.read(site.dst[0], 30), num::eval(op, &[3, 3])[0]);
}
