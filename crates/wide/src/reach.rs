//! The most that an offset into shared memory can be, and how it is aligned, by the ops that make it: of swizzled tiles, whose addresses have no shape, nothing else is
//! known. A test of the size of the memory then stands for those of all lanes.

use handloom_ir::simt::{Op, Pure, Val};
use handloom_ir::types::{Sreg, Ty};

use crate::emit::Emit;

/// What is known of a value of 32 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// The most that it can be.
    pub(crate) most: u32,
    /// How many of its lowest bits are zero.
    pub(crate) zeros: u32,
}

impl Reach {
    const ANY: Reach = Reach { most: u32::MAX, zeros: 0 };
}

/// Ops behind each other that are looked at.
const MOST_OPS: u32 = 24;

impl Emit<'_> {
    /// What is known of a value.
    pub(crate) fn reach(&mut self, v: Val) -> Reach {
        self.reach_of(v, MOST_OPS)
    }

    fn reach_of(&mut self, v: Val, left: u32) -> Reach {
        let r = match v {
            Val::Imm(n, _) => {
                let n = n as u32;
                return Reach { most: n, zeros: n.trailing_zeros() };
            }
            Val::Reg(r) => r,
        };
        if let Some(known) = self.reaches.get(&r) {
            return *known;
        }
        let Some(inst) = self.plan.origin(r).filter(|inst| left > 0 && !inst.guarded) else { return Reach::ANY };
        let reach = match inst.op {
            Op::Sreg(Sreg::Laneid | Sreg::Warpid) => Reach { most: 31, zeros: 0 },
            Op::Pure(op) => {
                let [x, y] = [0, 1].map(|i| inst.src.get(i).map_or(Reach::ANY, |v| self.reach_of(*v, left - 1)));
                let by = match inst.src.get(1) {
                    Some(Val::Imm(n, _)) => u32::try_from(*n).ok().filter(|n| *n < 32),
                    _ => None,
                };
                made(op, x, y, by)
            }
            _ => Reach::ANY,
        };
        self.reaches.insert(r, reach);
        reach
    }
}

/// What an op makes of two values. `by`: the second one, if it is a distance that is known.
fn made(op: Pure, x: Reach, y: Reach, by: Option<u32>) -> Reach {
    let least = x.zeros.min(y.zeros);
    match (op, by) {
        (Pure::Mov(Ty::B32), _) => x,
        (Pure::And(Ty::B32), _) => Reach { most: x.most.min(y.most), zeros: x.zeros.max(y.zeros) },
        (Pure::Or(Ty::B32) | Pure::Xor(Ty::B32), _) => {
            let bits = 32 - (x.most | y.most).leading_zeros();
            Reach { most: u32::MAX.checked_shr(32 - bits).unwrap_or(0), zeros: least }
        }
        // What wraps can be anything, but its lowest bits are as they were.
        (Pure::Add(Ty::B32), _) => Reach { most: x.most.checked_add(y.most).unwrap_or(u32::MAX), zeros: least },
        (Pure::Mul(Ty::B32), _) => {
            let zeros = (x.zeros + y.zeros).min(32);
            Reach { most: x.most.checked_mul(y.most).unwrap_or(u32::MAX), zeros }
        }
        (Pure::Shl(Ty::B32), Some(by)) => {
            let most = u64::from(x.most) << by;
            Reach { most: u32::try_from(most).unwrap_or(u32::MAX), zeros: (x.zeros + by).min(32) }
        }
        (Pure::Shr(int), Some(by)) if int.ty == Ty::B32 && !int.signed => {
            Reach { most: x.most >> by, zeros: x.zeros.saturating_sub(by) }
        }
        _ => Reach::ANY,
    }
}

#[cfg(test)]
mod tests {
    use handloom_ir::num::eval;
    use handloom_ir::types::Int;

    use super::*;

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
            Pure::Mul(Ty::B32),
            Pure::Shl(Ty::B32),
            Pure::Shr(unsigned),
        ];
        for op in ops {
            for (a, b) in numbers.iter().flat_map(|a| numbers.map(|b| (*a, b))) {
                let exact = |n: u32| Reach { most: n, zeros: n.trailing_zeros() };
                // As it is, and as if it were any number that is not larger.
                for (x, y) in [(exact(a), exact(b)), (Reach { zeros: 0, ..exact(a) }, exact(b)), (Reach::ANY, exact(b))]
                {
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
}
