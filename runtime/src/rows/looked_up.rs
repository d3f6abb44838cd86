//! Functions of one `.f16` or `.bf16` number that take long to compute: each is looked up among all there are, and computed when it is first asked for.
//!
//! Invariant: a result is that of `num::eval`, since that is who computes it.

use std::sync::atomic::{AtomicU32, Ordering};

use handloom_ir::num;
use handloom_ir::simt::Pure;
use handloom_ir::types::{Float, Ty};
use handloom_plan::abi::EvalSite;

use super::eval::Active;
use super::fast::lanes;

/// The results of a function, by the bits of its argument: zero as long as nobody asked, else with [`KNOWN`].
type Results = [AtomicU32; 1 << 16];

/// Beside a result.
const KNOWN: u32 = 1 << 16;

/// By number of a function. Pages that nobody asks for take no memory.
static RESULTS: [Results; 6] = [const { [const { AtomicU32::new(0) }; 1 << 16] }; 6];

/// The function of an op on single numbers, its number, and whether the op is on pairs.
fn function(op: Pure) -> Option<(Pure, usize, bool)> {
    let (ty, of, first): (Float, fn(Float) -> Pure, usize) = match op {
        Pure::Ex2 { ty, ftz: false } => (ty, |ty| Pure::Ex2 { ty, ftz: false }, 0),
        Pure::Ex2 { ty, ftz: true } => (ty, |ty| Pure::Ex2 { ty, ftz: true }, 2),
        Pure::Tanh { ty } => (ty, |ty| Pure::Tanh { ty }, 4),
        _ => return None,
    };
    let (single, number, is_pair) = match ty {
        Float::F16 => (Float::F16, 0, false),
        Float::F16x2 => (Float::F16, 0, true),
        Float::BF16 => (Float::BF16, 1, false),
        Float::BF16x2 => (Float::BF16, 1, true),
        _ => return None,
    };
    Some((of(single), first + number, is_pair))
}

/// Does the op for the lanes, if it is such a function.
#[inline(always)]
pub(super) fn look_up(c: Active, site: &EvalSite) -> bool {
    let Some((single, number, is_pair)) = function(site.op) else { return false };
    let results = &RESULTS[number];
    let of = |a: u32| {
        let known = results[a as usize & 0xffff].load(Ordering::Relaxed);
        if known != 0 { known & 0xffff } else { compute(single, results, a & 0xffff) }
    };
    if is_pair {
        lanes(c, site, [Ty::B32], |[a]| of(a) | of(a >> 16) << 16)
    } else {
        lanes(c, site, [Ty::B16], |[a]| of(a))
    }
}

#[cold]
fn compute(single: Pure, results: &Results, a: u32) -> u32 {
    let result = num::eval(single, &[a.into()])[0] as u32;
    results[a as usize].store(result | KNOWN, Ordering::Relaxed);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each op has results of its own, and a function has the same ones for single numbers and for pairs.
    #[test]
    fn functions_have_results_of_their_own() {
        let mut seen = Vec::new();
        for (single, pair) in [(Float::F16, Float::F16x2), (Float::BF16, Float::BF16x2)] {
            let ops = |ty| [Pure::Ex2 { ty, ftz: false }, Pure::Ex2 { ty, ftz: true }, Pure::Tanh { ty }];
            for (one, two) in ops(single).into_iter().zip(ops(pair)) {
                let (of_one, of_two) = (function(one), function(two));
                assert_eq!(of_one.map(|f| (f.0, f.2)), Some((one, false)));
                assert_eq!(of_two.map(|f| (f.0, f.2)), Some((one, true)));
                assert_eq!(of_one.map(|f| f.1), of_two.map(|f| f.1));
                seen.extend(of_one.map(|f| f.1));
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
        assert_eq!(function(Pure::Tanh { ty: Float::F32 }), None);
    }

    /// What is looked up is what is computed, at first and later.
    #[test]
    fn what_is_looked_up_is_what_is_computed() {
        let op = Pure::Tanh { ty: Float::F16 };
        let Some((single, number, _)) = function(op) else { panic!("{op:?} is not looked up") };
        let results = &RESULTS[number];
        for a in (0..1 << 16).step_by(7) {
            let want = num::eval(op, &[u64::from(a)])[0] as u32;
            assert_eq!(compute(single, results, a), want);
            assert_eq!(results[a as usize].load(Ordering::Relaxed), want | KNOWN);
        }
    }
}
