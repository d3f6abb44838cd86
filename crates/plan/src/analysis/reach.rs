//! The most that a value of 32 bits can be, and how many of its lowest bits are zero, by the ops that make it: of offsets into swizzled tiles, which have no
//! shape, nothing else is known.

use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Inst, Op, Pure, Reg, Val};
use handloom_ir::types::{Sreg, Ty};

/// What is known of a value of 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// The most that it can be.
    pub most: u32,
    /// How many of its lowest bits are zero.
    pub zeros: u32,
}

impl Reach {
    /// Of any value.
    pub const ANY: Reach = Reach { most: u32::MAX, zeros: 0 };
}

/// Ops behind each other that are looked at.
const MOST_OPS: u32 = 24;

/// What is known of registers.
#[derive(Clone, Debug, Default)]
pub struct Reaches(FastMap<Reg, Reach>);

impl Reaches {
    /// What is known of a value. `origin`: the only instruction that makes a register, if there is one.
    pub fn of<'i>(&mut self, v: Val, origin: &impl Fn(Reg) -> Option<&'i Inst>) -> Reach {
        self.find(v, origin, MOST_OPS)
    }

    fn find<'i>(&mut self, v: Val, origin: &impl Fn(Reg) -> Option<&'i Inst>, left: u32) -> Reach {
        let r = match v {
            Val::Imm(n, _) => {
                let n = n as u32;
                return Reach { most: n, zeros: n.trailing_zeros() };
            }
            Val::Reg(r) => r,
        };
        if let Some(known) = self.0.get(&r) {
            return *known;
        }
        let Some(inst) = origin(r).filter(|inst| left > 0 && !inst.guarded) else { return Reach::ANY };
        let reach = match inst.op {
            Op::Sreg(Sreg::Laneid | Sreg::Warpid) => Reach { most: 31, zeros: 0 },
            Op::Pure(op) => {
                let source = |i: usize| inst.src.get(i).copied();
                let [x, y] = [source(0), source(1)].map(|v| v.map_or(Reach::ANY, |v| self.find(v, origin, left - 1)));
                let by = match source(1) {
                    Some(Val::Imm(n, _)) => u32::try_from(n).ok().filter(|n| *n < 32),
                    _ => None,
                };
                made(op, x, y, by)
            }
            _ => Reach::ANY,
        };
        self.0.insert(r, reach);
        reach
    }
}

/// What an op makes of two values. `by`: the second one, if it is a distance that is known.
pub fn made(op: Pure, x: Reach, y: Reach, by: Option<u32>) -> Reach {
    let least = x.zeros.min(y.zeros);
    match (op, by) {
        (Pure::Mov(Ty::B32), _) => x,
        (Pure::And(Ty::B32), _) => Reach { most: x.most.min(y.most), zeros: x.zeros.max(y.zeros) },
        (Pure::Or(Ty::B32) | Pure::Xor(Ty::B32), _) => {
            let bits = 32 - (x.most | y.most).leading_zeros();
            Reach { most: u32::MAX.checked_shr(32 - bits).unwrap_or(0), zeros: least }
        }
        // What wraps can be anything, but its lowest bits are as they were.
        (Pure::Add(Ty::B32), _) => Reach { most: x.most.saturating_add(y.most), zeros: least },
        (Pure::Sub(Ty::B32), _) => Reach { most: u32::MAX, zeros: least },
        (Pure::MulWide(int), _) if int.ty == Ty::B16 => Reach { most: u32::MAX, zeros: (x.zeros + y.zeros).min(32) },
        (Pure::Mul(Ty::B32), _) => {
            let zeros = (x.zeros + y.zeros).min(32);
            Reach { most: x.most.saturating_mul(y.most), zeros }
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
