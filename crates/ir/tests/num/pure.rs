//! `eval` works for every op with sources of the types that its row has, and keeps results inside their types.

use handloom_ir::num::eval;
use handloom_ir::simt::video::{Elements, Negated, Part, PartOf, SimdOp, Video, VideoEnd, VideoOp, VideoSimd, Vmad};
use handloom_ir::simt::{Cvt, Exactness, FMode, Pure};
use handloom_ir::types::{Cmp, Float, Int, PrmtMode, Rounding, ScalarType, ScalarType::*, TestProperty, Ty};

use crate::Random;

fn check(op: Pure, random: &mut Random) {
    let types = op.sources();
    let (first, second) = op.results();
    for _ in 0..20 {
        let mut src: Vec<u64> = types.iter().map(|ty| random.int(ty.bits())).collect();
        let results = eval(op, &src);
        assert!(results[0] <= first.mask(), "{op:?} {src:x?} gives {:#x}", results[0]);
        assert!(results[1] <= second.map_or(0, |ty| ty.mask()), "{op:?} {src:x?} gives {:#x}", results[1]);
        if op.facts().commutes {
            src.swap(0, 1);
            assert_eq!(eval(op, &src), results, "{op:?} {src:x?} exchanged");
        }
    }
}

const ROUNDINGS: [Rounding; 6] =
    [Rounding::Nearest, Rounding::NearestAway, Rounding::Zero, Rounding::Down, Rounding::Up, Rounding::Stochastic];

#[test]
fn integer_ops() {
    let random = &mut Random(1);
    for ty in [Ty::P, Ty::B16, Ty::B32, Ty::B64] {
        for op in [Pure::Mov, Pure::And, Pure::Or, Pure::Xor, Pure::Not, Pure::Select, Pure::FromPred, Pure::ToPred] {
            check(op(ty), random);
        }
    }
    for int in [Int::U16, Int::S16, Int::U32, Int::S32, Int::U64, Int::S64] {
        for op in [
            Pure::Add,
            Pure::Sub,
            Pure::Mul,
            Pure::Abs,
            Pure::Neg,
            Pure::AddCarry,
            Pure::SubBorrow,
            Pure::Cnot,
            Pure::Shl,
            Pure::Popc,
            Pure::Clz,
            Pure::Brev,
            Pure::Bfi,
        ] {
            check(op(int.ty), random);
        }
        for op in [
            Pure::MulHi,
            Pure::MulWide,
            Pure::Div,
            Pure::Rem,
            Pure::Min,
            Pure::Max,
            Pure::AbsDiff,
            Pure::AddSat,
            Pure::SubSat,
            Pure::Shr,
            Pure::Bfe,
        ] {
            check(op(int), random);
        }
    }
    check(Pure::Pack(Ty::B16), random);
    check(Pure::Pack(Ty::B32), random);
    for yes in [false, true] {
        check(Pure::Half { from: Ty::B32, hi: yes }, random);
        check(Pure::Half { from: Ty::B64, hi: yes }, random);
        check(Pure::Szext { signed: yes, wrap: false }, random);
        check(Pure::Bmsk { wrap: yes }, random);
        check(Pure::Shf { right: yes, wrap: true }, random);
        check(Pure::Dp4a { a_signed: yes, b_signed: true }, random);
        check(Pure::Dp2a { a_signed: yes, b_signed: false, hi: yes }, random);
        check(Pure::Mul24 { signed: yes, hi: yes }, random);
    }
    for (i, part) in Part::ALL.into_iter().enumerate() {
        let (a, b) = (PartOf { part, signed: i % 2 == 0 }, PartOf { part: Part::ALL[6 - i], signed: i % 3 == 0 });
        let ends = [VideoEnd::Plain, VideoEnd::Add, VideoEnd::Min, VideoEnd::Max, VideoEnd::Merge(part)];
        for (end, sat) in ends.into_iter().flat_map(|e| [(e, false), (e, true)]) {
            for op in [VideoOp::Sub, VideoOp::Shl { wrap: sat }, VideoOp::Shr { wrap: false }, VideoOp::Set(Cmp::Lt)] {
                check(Pure::Video(Video { op, signed: !sat, a, b, sat, end }), random);
            }
        }
        for (negated, shift) in [(Negated::None, 0), (Negated::Product, 7), (Negated::Addend, 15)] {
            check(Pure::Vmad(Vmad { a, b, negated, plus_one: shift == 0, sat: i > 2, shift }), random);
        }
    }
    for (n, mask) in [(2, 1), (2, 3), (4, 5), (4, 15)] {
        let elements = |signed| Elements { select: [1, 0, 3, 2], signed };
        for op in [SimdOp::Add, SimdOp::Sub, SimdOp::Avrg, SimdOp::AbsDiff, SimdOp::Min, SimdOp::Set(Cmp::Ge)] {
            let (a, b) = (elements(mask == 1), elements(mask == 5));
            check(
                Pure::VideoSimd(VideoSimd { op, n, signed: n == 2, a, b, mask, sat: n == 4, accumulate: mask == 3 }),
                random,
            );
        }
    }
    check(Pure::Fns, random);
    check(Pure::Lop3(0x96), random);
    check(Pure::Prmt(PrmtMode::Default), random);
}

#[test]
fn float_ops() {
    let random = &mut Random(2);
    let types = [Float::F16, Float::BF16, Float::F32, Float::F64, Float::F16x2, Float::BF16x2, Float::F32x2];
    for ty in types {
        for round in ROUNDINGS {
            for flags in 0..8 {
                let mode = FMode { ty, round, ftz: flags & 1 != 0, sat: flags & 2 != 0, relu: flags & 4 != 0 };
                for op in [Pure::FAdd, Pure::FSub, Pure::FMul, Pure::FFma, Pure::FRsqrt] {
                    check(op(mode), random);
                }
                for exact in [Exactness::Ieee(round), Exactness::Approx, Exactness::Full] {
                    check(Pure::FDiv { mode, exact }, random);
                    check(Pure::FRcp { mode, exact }, random);
                    check(Pure::FSqrt { mode, exact }, random);
                }
            }
        }
        for ftz in [false, true] {
            check(Pure::FMin { ty, ftz, nan: ftz, xorsign: !ftz }, random);
            check(Pure::FMax { ty, ftz, nan: !ftz, xorsign: ftz }, random);
            check(Pure::FAbs { ty, ftz }, random);
            check(Pure::FNeg { ty, ftz }, random);
            check(Pure::Ex2 { ty, ftz }, random);
        }
        check(Pure::Tanh { ty }, random);
        check(Pure::Copysign(ty), random);
        check(Pure::Testp { property: TestProperty::Normal, ty: ty.element() }, random);
    }
}

const SCALARS: [ScalarType; 12] = [U8, U16, U32, U64, S8, S16, S32, S64, F16, BF16, F32, F64];
const SMALL_PAIRS: [ScalarType; 5] = [E4M3x2, E5M2x2, E2M3x2, E3M2x2, E2M1x2];

#[test]
fn conversions() {
    let random = &mut Random(3);
    let mut pairs: Vec<(ScalarType, ScalarType)> =
        SCALARS.into_iter().flat_map(|from| SCALARS.map(|to| (from, to))).collect();
    for small in SMALL_PAIRS {
        pairs.extend([F32, F16x2, BF16x2].map(|from| (from, small)));
        pairs.extend([F16x2, BF16x2].map(|to| (small, to)));
    }
    pairs.extend([F16x2, BF16x2, TF32, UE8M0x2, S2F6x2, E4M3x4, E5M2x4, E2M3x4, E3M2x4, E2M1x4].map(|to| (F32, to)));
    pairs.extend([(BF16x2, UE8M0x2), (UE8M0x2, BF16x2), (BF16x2, S2F6x2), (S2F6x2, BF16x2)]);
    for (from, to) in pairs {
        for round in ROUNDINGS {
            for flags in 0..32 {
                let [integral, ftz, sat, relu, satfinite] = [1, 2, 4, 8, 16].map(|bit| flags & bit != 0);
                let c = Cvt { to, from, round, integral, ftz, sat, relu, satfinite };
                check(Pure::Cvt(c), random);
                // An 8-bit result leaves the upper half of its register zero.
                if to.bits() == 8 {
                    let src: Vec<u64> = Pure::Cvt(c).sources().iter().map(|ty| random.int(ty.bits())).collect();
                    assert!(eval(Pure::Cvt(c), &src)[0] <= 0xff);
                }
            }
        }
    }
}

#[test]
fn sources_of_conversions() {
    let sources = |to, from, round| {
        let c = Cvt { to, from, round, integral: false, ftz: false, sat: false, relu: false, satfinite: false };
        Pure::Cvt(c).sources().to_vec()
    };
    use Rounding::{Nearest, Stochastic};
    assert_eq!(sources(F16x2, F32, Nearest), [Ty::B32, Ty::B32]);
    assert_eq!(sources(F16x2, F32, Stochastic), [Ty::B32; 3]);
    assert_eq!(sources(E4M3x4, F32, Stochastic), [Ty::B32; 5]);
    assert_eq!(sources(E2M1x2, F16x2, Nearest), [Ty::B32]);
    assert_eq!(sources(F16x2, E2M1x2, Nearest), [Ty::B16]);
    assert_eq!(sources(S2F6x2, F32, Nearest), [Ty::B32, Ty::B32, Ty::B16]);
    assert_eq!(sources(BF16x2, S2F6x2, Nearest), [Ty::B16, Ty::B16]);
    assert_eq!(sources(S8, F64, Nearest), [Ty::B64]);
}

#[test]
fn any_nan_will_do() {
    let random = &mut Random(4);
    let cvt = |to, from| Pure::Cvt(Cvt::plain(to, from));
    for (ty, payload) in [(Float::F32, 0x7f_ffff), (Float::F64, 0xf_ffff_ffff_ffff)] {
        let mode = FMode { ty, round: Rounding::Nearest, ftz: false, sat: false, relu: false };
        let exact = Exactness::Ieee(Rounding::Nearest);
        let mut ops = vec![Pure::FAdd(mode), Pure::FSub(mode), Pure::FMul(mode), Pure::FFma(mode)];
        ops.extend([Pure::FDiv { mode, exact }, Pure::FRcp { mode, exact }, Pure::FSqrt { mode, exact }]);
        assert!(ops.iter().all(|op| op.facts().is_loose && op.facts().takes_loose));
        let conversions = if ty == Float::F32 {
            [cvt(F64, F32), cvt(S32, F32), cvt(F16, F32)]
        } else {
            [cvt(F32, F64), cvt(S64, F64), cvt(BF16, F64)]
        };
        ops.extend(conversions);
        ops.extend([Cmp::Lt, Cmp::Neu, Cmp::Nan].map(|cmp| Pure::FCmp { cmp, ty, ftz: false }));
        for op in ops {
            assert!(op.facts().takes_loose, "{op}");
            for place in 0..op.sources().len() {
                let mut src: Vec<u64> = op.sources().iter().map(|ty| random.int(ty.bits())).collect();
                let nan = ty.ty().mask() & !(1 << (ty.ty().bits() - 1));
                src[place] = nan;
                let canonical = eval(op, &src);
                for _ in 0..10 {
                    // Any sign, any payload but that of infinity.
                    let bits = random.int(ty.ty().bits());
                    src[place] = (nan & !payload) | (bits & !(nan & !payload)) | 1;
                    assert_eq!(eval(op, &src), canonical, "{op} {src:x?}");
                }
            }
        }
    }
    // What looks at the bits of its source must not be given any NaN.
    for op in [Pure::Mov(Ty::B32), Pure::Copysign(Float::F32), Pure::FNeg { ty: Float::F32, ftz: false }] {
        assert!(!op.facts().takes_loose && !op.facts().is_loose, "{op}");
    }
}

#[test]
fn text_form() {
    let mode = FMode { ty: Float::F32, round: Rounding::Zero, ftz: true, sat: true, relu: false };
    let narrow = Cvt { integral: true, sat: true, round: Rounding::Up, ..Cvt::plain(U8, F32) };
    let texts = [
        (Pure::Add(Ty::B32), "add.b32"),
        (Pure::MulWide(Int::S32), "mul_wide.s32"),
        (Pure::Mul24 { signed: true, hi: true }, "mul24_hi.s32"),
        (Pure::Mul24 { signed: false, hi: false }, "mul24.u32"),
        (Pure::Shf { right: true, wrap: false }, "shf.r.clamp"),
        (Pure::Lop3(0x6), "lop3.0x06"),
        (Pure::Fns, "fns"),
        (Pure::Ext { bits: 8, signed: true, from: Ty::B16, to: Ty::B64 }, "ext.s8.b16.b64"),
        (Pure::ICmp(Cmp::Le, Int::U16), "cmp.le.u16"),
        (Pure::FCmp { cmp: Cmp::Equ, ty: Float::F64, ftz: false }, "fcmp.equ.f64"),
        (Pure::FFma(mode), "fma.rz.ftz.sat.f32"),
        (Pure::FDiv { mode, exact: Exactness::Approx }, "fdiv.approx.ftz.f32"),
        (Pure::FSqrt { mode, exact: Exactness::Ieee(Rounding::Down) }, "fsqrt.rm.ftz.f32"),
        (Pure::FMin { ty: Float::F16x2, ftz: false, nan: true, xorsign: true }, "fmin.nan.xorsign.abs.f16x2"),
        (Pure::Cvt(narrow), "cvt.rpi.sat.u8.f32"),
    ];
    for (op, text) in texts {
        assert_eq!(op.to_string(), text);
    }
}
