//! One test for all accesses of a block through the same address.
//!
//! In a full copy every access of a block happens, so a program without faults passes the test of all of them together. Tests are only where
//! nothing of the block has happened yet, so that it can start over in code that tests each access by itself.

use handloom_ir::simt::{Op, Reg, Val};
use handloom_ir::types::StateSpace;

use crate::access::Kind;
use crate::analysis::shape::Shape;
use crate::packs::Strategy;

/// What a block does through one address register, up to the register's next definition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JointTest {
    /// Space of all of its accesses.
    pub space: StateSpace,
    /// Lowest byte, relative to the register.
    pub low: i64,
    /// End of the highest access.
    pub high: i64,
    /// The strictest alignment.
    pub align: i64,
    /// Number of accesses.
    pub count: usize,
    /// Whether any of them writes.
    pub writes: bool,
    /// Index of the first.
    pub inst: usize,
}

impl JointTest {
    /// Whether an address of this shape can be tested: ascending, every lane aligned if the lowest one is, and not too many groups.
    pub fn fits(&self, address: &Shape) -> bool {
        address.is_regular(self.align)
    }
}

impl Strategy<'_> {
    /// Addresses that block `b` gets from other blocks, in the order of their first accesses. Each may be tested at its start.
    pub fn incoming_addresses(&self, b: usize) -> Vec<Reg> {
        let mut seen: Vec<Reg> = Vec::new();
        if !self.plan.facts.speculate {
            return seen;
        }
        let mut defined: Vec<Reg> = Vec::new();
        for inst in &self.plan.func.blocks[b].insts {
            if let (Op::Load { .. } | Op::Store { .. }, Some(Val::Reg(r))) = (inst.op, inst.src.first())
                && !defined.contains(r)
                && !seen.contains(r)
            {
                seen.push(*r);
            }
            defined.extend(&inst.dst);
        }
        seen
    }

    /// Whether a test may be at instruction `i` of block `b`: nothing has happened in the block before.
    pub fn may_test_at(&self, b: usize, i: usize) -> bool {
        self.plan.facts.speculate && i <= self.plan.facts.n_before_effects[b]
    }

    /// The test of all accesses of block `b` from instruction `from` on through `r`. `None` if they do not fit one test, if there is nothing to
    /// gain, or if they need no test.
    pub fn joint_test(&self, b: usize, from: usize, r: Reg) -> Option<JointTest> {
        let safe = self.plan.origin(r).is_some_and(|o| matches!(o.op, Op::ParamAddr { .. } | Op::SlotAddr(_)));
        self.uses(b, from, r).filter(|u| u.count >= 2 && !safe)
    }

    fn uses(&self, b: usize, from: usize, r: Reg) -> Option<JointTest> {
        let mut out: Option<JointTest> = None;
        for (i, inst) in self.plan.func.blocks[b].insts.iter().enumerate().skip(from) {
            if let Some(access) = self.plan.access(inst)
                && !matches!(access.kind, Kind::Atomic(..))
                && access.address == Val::Reg(r)
            {
                if !access.may_be_tested_jointly() {
                    return None;
                }
                let (offset, bytes, writes) = (access.offset, access.bytes(), access.writes());
                match &mut out {
                    None => {
                        out = Some(JointTest {
                            space: access.space,
                            low: offset,
                            high: offset + bytes,
                            align: bytes,
                            count: 1,
                            writes,
                            inst: i,
                        });
                    }
                    Some(u) if u.space == access.space => {
                        u.low = u.low.min(offset);
                        u.high = u.high.max(offset + bytes);
                        u.align = u.align.max(bytes);
                        u.count += 1;
                        u.writes |= writes;
                    }
                    Some(_) => return None,
                }
            }
            if inst.dst.contains(&r) {
                break;
            }
        }
        out
    }
}
