//! The strategy of full and masked copies for one function.

use handloom_diag::hash::FastSet;
use handloom_ir::simt::{Op, Reg, Val};

use crate::abi::Tables;
use crate::analysis::cfg::Set;
use crate::packs::copies::{chained, pendable};
use crate::packs::joint::{JointTest, joint_tests};
use crate::packs::layout::Layout;
use crate::packs::runs::run_ends;
use crate::plan::Plan;

/// What is decided for code in packs, beside the plan.
#[derive(Debug)]
pub struct Strategy<'p> {
    /// What is known and decided for every generator.
    pub plan: &'p Plan,
    /// Where values are kept.
    pub layout: Layout,
    /// Blocks that lanes may be pending at: they get a prologue.
    pub pendable: Set,
    /// Blocks whose full copy follows that of the only block that goes to them.
    pub chained: Set,
    /// By block and instruction: the end of a run that may begin there, 0 for none.
    pub(super) run_ends: Vec<Vec<u32>>,
    /// By block: the joint tests of its accesses, in the order of their first ones.
    pub(super) joint_tests: Vec<Vec<JointTest>>,
}

impl Strategy<'_> {
    /// Decides about a function.
    pub fn new(plan: &Plan) -> Strategy<'_> {
        let (f, facts) = (&plan.func, &plan.facts);
        let pendable = pendable(f, facts, plan.options.masked);
        Strategy {
            layout: Layout::new(f, facts, &plan.def_count),
            chained: chained(f, facts, &pendable),
            run_ends: run_ends(plan),
            joint_tests: joint_tests(plan),
            pendable,
            plan,
        }
    }

    /// The end of a run that may begin at instruction `i` of block `b`, by what the instructions are. What their addresses are may end it
    /// earlier.
    pub fn run_end(&self, b: usize, i: usize) -> Option<usize> {
        let end = self.run_ends[b][i] as usize;
        (end != 0).then_some(end)
    }

    /// Addresses that block `b` gets from other blocks, with their first accesses, in the order of those. Each may be tested at its start.
    pub fn incoming_addresses(&self, b: usize) -> Vec<(usize, Reg)> {
        let mut seen = Vec::new();
        if !self.plan.facts.may.test {
            return seen;
        }
        // Registers that were accessed or defined.
        let mut known: FastSet<Reg> = FastSet::default();
        for (i, inst) in self.plan.func.blocks[b].insts.iter().enumerate() {
            if let (Op::Load { .. } | Op::Store { .. }, Some(Val::Reg(r))) = (inst.op, inst.src.first())
                && known.insert(*r)
            {
                seen.push((i, *r));
            }
            known.extend(&inst.dst);
        }
        seen
    }

    /// Whether a test may be at instruction `i` of block `b`: nothing has happened in the block before.
    pub fn may_test_at(&self, b: usize, i: usize) -> bool {
        self.plan.facts.may.test && i <= self.plan.facts.n_before_effects[b]
    }

    /// The test of all accesses of block `b` from the one of instruction `i` on that are through the same register. `None` if they do not fit one
    /// test, if there is nothing to gain, or if they need no test.
    pub fn joint_test(&self, b: usize, i: usize) -> Option<JointTest> {
        let tests = &self.joint_tests[b];
        tests.binary_search_by_key(&i, |test| test.inst).ok().map(|at| tests[at])
    }

    /// The tables of the code, with the context and its homes.
    pub fn tables(&self) -> Tables {
        let f = &self.plan.func;
        let homes = self.layout.locs(f, &self.plan.facts);
        let mut tables = self.plan.tables();
        for (site, block) in tables.barriers.iter_mut().zip(&self.plan.sites.barriers) {
            site.result = f.blocks[block.idx()].term.result().and_then(|d| homes[d.idx()]);
        }
        Tables { ctx_bytes: self.layout.ctx_bytes, pend_offset: self.layout.pend_offset, homes, ..tables }
    }
}
