//! The strategy of full and masked copies for one function.

use crate::abi::Tables;
use crate::analysis::cfg::Set;
use crate::packs::copies::{chained, pendable};
use crate::packs::layout::Layout;
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
}

impl Strategy<'_> {
    /// Decides about a function.
    pub fn new(plan: &Plan) -> Strategy<'_> {
        let (f, facts) = (&plan.func, &plan.facts);
        let pendable = pendable(f, facts, plan.options.masked);
        Strategy {
            layout: Layout::new(f, facts, &plan.def_count),
            chained: chained(f, facts, &pendable),
            pendable,
            plan,
        }
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
