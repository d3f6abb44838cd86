//! One test for all accesses of a block through the same address.
//!
//! In a full copy every access of a block happens, so a program without faults passes the test of all of them together. Tests are only where
//! nothing of the block has happened yet, so that it can start over in code that tests each access by itself.

use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Inst, Op, Reg, Val};
use handloom_ir::types::StateSpace;

use crate::access::Kind;
use crate::analysis::shape::Shape;
use crate::plan::Plan;

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

/// By block: its tests, in the order of their first accesses.
pub(crate) fn joint_tests(plan: &Plan) -> Vec<Vec<JointTest>> {
    if !plan.facts.may.test {
        return vec![Vec::new(); plan.func.blocks.len()];
    }
    plan.func.blocks.iter().map(|block| joint_tests_of(plan, &block.insts)).collect()
}

/// Of one block. From the last instruction to the first: a test of an access and of what comes after it.
fn joint_tests_of(plan: &Plan, insts: &[Inst]) -> Vec<JointTest> {
    let is_safe = |r: Reg| plan.origin(r).is_some_and(|o| matches!(o.op, Op::ParamAddr { .. } | Op::SlotAddr(_)));
    let mut out = Vec::new();
    // Of registers that are accessed later, before they are defined: the test, `None` if their accesses do not fit one.
    let mut later: FastMap<Reg, Option<JointTest>> = FastMap::default();
    for (i, inst) in insts.iter().enumerate().rev() {
        inst.dst.iter().for_each(|d| {
            later.remove(d);
        });
        let Some(access) = plan.access(inst).filter(|a| !matches!(a.kind, Kind::Atomic(..))) else { continue };
        let Val::Reg(r) = access.address else { continue };
        let (offset, bytes, writes) = (access.offset, access.bytes(), access.writes());
        let this = JointTest {
            space: access.space,
            low: offset,
            high: offset + bytes,
            align: bytes,
            count: 1,
            writes,
            inst: i,
        };
        let test = match later.get(&r) {
            _ if !access.may_be_tested_jointly() => None,
            None => Some(this),
            Some(Some(u)) if u.space == access.space => Some(JointTest {
                low: u.low.min(this.low),
                high: u.high.max(this.high),
                align: u.align.max(bytes),
                count: u.count + 1,
                writes: u.writes | writes,
                ..this
            }),
            Some(_) => None,
        };
        later.insert(r, test);
        out.extend(test.filter(|t| t.count >= 2 && !is_safe(r)));
    }
    out.reverse();
    out
}
