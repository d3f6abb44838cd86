//! Caches of bounds sites.

use handloom_plan::abi::SiteCache;

use super::cta::address;
use crate::grid::Ended;
use crate::module::Program;
use crate::run::Tier;

/// A table for each function in each tier, made when it is first wanted. Tiers number their sites each in its own way and test other lengths, and
/// calls in progress may be in another tier than the entry.
#[derive(Debug, Default)]
pub(super) struct Sites {
    tiers: [Vec<Vec<SiteCache>>; Tier::ALL.len()],
}

impl Sites {
    /// Address of the table of a function.
    pub(super) fn of(&mut self, program: &Program, tier: Tier, func: usize) -> Result<u64, Ended> {
        let tables = &mut self.tiers[tier as usize];
        if tables.is_empty() {
            let codes = program.codes(tier)?;
            let n = |c: &Option<handloom_codegen::Code>| c.as_ref().map_or(0, |c| c.tables.mems.len());
            *tables = codes.iter().map(|c| vec![SiteCache::EMPTY; n(c)]).collect();
        }
        Ok(address(tables[func].as_mut_ptr()))
    }

    /// Forgets all allocations.
    pub(super) fn clear(&mut self) {
        self.tiers.iter_mut().flatten().flatten().for_each(|s| *s = SiteCache::EMPTY);
    }
}
