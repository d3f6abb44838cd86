//! What is known of the results of ops.

use handloom_ir::num::eval;
use handloom_ir::simt::Pure;
use handloom_ir::types::{Int, Ty};
use handloom_plan::analysis::reach::{Reach, made};

/// All ops, of numbers up to some and with some zeros: what comes out is within what is known.
#[test]
fn nothing_is_beyond() {
    let numbers = [0_u32, 1, 2, 3, 7, 8, 12, 31, 0x70, 0x3ff, 0x1c00, 0x3_ffff, 0x8000_0000, u32::MAX];
    let unsigned = Int { ty: Ty::B32, signed: false };
    let ops = [
        Pure::Mov(Ty::B32),
        Pure::And(Ty::B32),
        Pure::Or(Ty::B32),
        Pure::Xor(Ty::B32),
        Pure::Add(Ty::B32),
        Pure::Sub(Ty::B32),
        Pure::MulWide(Int { ty: Ty::B16, signed: false }),
        Pure::MulWide(Int { ty: Ty::B16, signed: true }),
        Pure::Mul(Ty::B32),
        Pure::Shl(Ty::B32),
        Pure::Shr(unsigned),
    ];
    for op in ops {
        for (a, b) in numbers.iter().flat_map(|a| numbers.map(|b| (*a, b))) {
            let exact = |n: u32| Reach { most: n, zeros: n.trailing_zeros() };
            // As it is, and as if it were any number that is not larger.
            for (x, y) in [(exact(a), exact(b)), (Reach { zeros: 0, ..exact(a) }, exact(b)), (Reach::ANY, exact(b))] {
                let by = Some(b).filter(|n| *n < 32);
                let reach = made(op, x, y, by);
                let sources = [u64::from(a), u64::from(b)];
                let n = if matches!(op, Pure::Mov(_)) { 1 } else { 2 };
                let out = eval(op, &sources[..n])[0] as u32;
                assert!(out <= reach.most, "{op:?} of {a:#x} and {b:#x}: {out:#x}, {reach:?}");
                let is_aligned = reach.zeros >= 32 && out == 0 || out & ((1_u64 << reach.zeros) - 1) as u32 == 0;
                assert!(is_aligned, "{op:?} of {a:#x} and {b:#x}: {out:#x}, {reach:?}");
            }
        }
    }
}
