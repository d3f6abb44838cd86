//! Which numbers are never subnormal.

use handloom_ir::num::eval;
use handloom_ir::simt::{Cvt, Exactness, FMode, Pure};
use handloom_ir::types::{Float, Rounding, ScalarType};
use handloom_plan::subnormals::{gives_none, is_none, takes_none};

use crate::{plan, read};

/// Numbers at which a result may be subnormal: near the least normal one, its square root and its inverse, and their neighbours.
fn sources() -> Vec<u64> {
    let exponents = [0, 1, 2, 12, 23, 24, 25, 63, 64, 75, 76, 100, 126, 127, 128, 150, 191, 230, 252, 253, 254, 255];
    let numbers = exponents.iter().flat_map(|e| [0, 1, 0x1234, 0x7f_fffe, 0x7f_ffff].map(|f| e << 23 | f));
    numbers.flat_map(|n: u64| [n, n | 1 << 31]).collect()
}

#[test]
fn what_is_said_to_give_none_gives_none() {
    let exact = [Exactness::Ieee(Rounding::Nearest), Exactness::Ieee(Rounding::Up), Exactness::Approx, Exactness::Full];
    let float = Float::F32;
    let mut ops = Vec::new();
    for ftz in [false, true] {
        for round in [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up] {
            for sat in [false, true] {
                let mode = FMode { ty: float, round, ftz, sat, relu: false };
                ops.extend([Pure::FAdd(mode), Pure::FSub(mode), Pure::FMul(mode), Pure::FFma(mode)]);
            }
        }
        let mode = FMode { ty: float, round: Rounding::Nearest, ftz, sat: false, relu: false };
        for exact in exact {
            ops.extend([Pure::FDiv { mode, exact }, Pure::FRcp { mode, exact }, Pure::FSqrt { mode, exact }]);
        }
        for (nan, xorsign) in [(false, false), (true, false), (false, true)] {
            ops.extend([Pure::FMin { ty: float, ftz, nan, xorsign }, Pure::FMax { ty: float, ftz, nan, xorsign }]);
        }
        ops.extend([Pure::FAbs { ty: float, ftz }, Pure::FNeg { ty: float, ftz }, Pure::Ex2 { ty: float, ftz }]);
        ops.extend([Pure::FRsqrt(mode), Pure::Sin { ftz }, Pure::Cos { ftz }, Pure::Lg2 { ftz }]);
    }
    use ScalarType::*;
    ops.extend([U8, S8, U16, S16, U32, S32, U64, S64, F16, BF16].map(|from| Pure::Cvt(Cvt::plain(F32, from))));
    let numbers = sources();
    let mut n_without = 0;
    for op in ops {
        let n = op.sources().len();
        let mut found = false;
        for (i, x) in numbers.iter().enumerate() {
            for (j, y) in numbers.iter().enumerate() {
                let src = [*x, *y, numbers[(7 * i + 13 * j) % numbers.len()]];
                let src: Vec<u64> = op.sources().iter().zip(src).map(|(ty, x)| x & ty.mask()).collect();
                found |= !is_none(eval(op, &src)[0]);
                if takes_none(op) {
                    let zeros: Vec<u64> = src.iter().map(|x| if is_none(*x) { *x } else { x & 1 << 31 }).collect();
                    assert_eq!(eval(op, &src), eval(op, &zeros), "{op} {src:x?}");
                }
                if n == 1 {
                    break;
                }
            }
        }
        assert!(!(found && gives_none(op)), "{op}");
        n_without += usize::from(gives_none(op));
    }
    // All that flush, and conversions of integers and of half floats.
    // And roots.
    assert_eq!(n_without, 57 + 9 + 5);
    let by_host = FMode { ty: float, round: Rounding::Nearest, ftz: false, sat: false, relu: false };
    assert!(
        !gives_none(Pure::FMul(by_host)) && !gives_none(Pure::FMul(FMode { ty: Float::F64, ftz: true, ..by_host }))
    );
}

#[test]
fn what_is_handed_on_is_looked_at() {
    let f = read::entry(
        "b0:
        v0:b32 = sreg.tid.x
        v1:b32 = fadd.rn.ftz.f32 v0, v0
        v2:b32 = mov.b32 v1
        v3:b32 = mov.b32 0x3f800000
        v4:b32 = mov.b32 1
        v5:p = cmp.lt.u32 v0, 7
        v6:b32 = select.b32 v5, v1, v3
        v7:b32 = select.b32 v5, v1, v4
        v8:b32 = mov.b32 v7
        v9:b32 = fmul.rn.f32 v1, v1
        v10:b32 = mov.b32 v1
        v10:b32 = xor.b32 v1, v0
        v11:b32 = select.b32 v5, v2, 3
        exit",
    );
    let plan = plan(&f, (false, false));
    let without: Vec<usize> = (0..plan.without_subnormals.len()).filter(|r| plan.without_subnormals[*r]).collect();
    // Not the source, what is a subnormal number itself or one of two values, what does not flush, and what another op writes too.
    assert_eq!(without, [1, 2, 3, 6]);
}
