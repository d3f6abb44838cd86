//! Caches of bounds sites.

use handloom_codegen::Code;
use handloom_ir::simt::{ByFunction, FuncId};
use handloom_plan::abi::SiteCache;

use super::cta::address;
use crate::grid::Ended;
use crate::module::Program;
use crate::run::Tier;

/// A table for each function in each tier, made when it is first wanted. Tiers number their sites each in its own way and test other lengths, and
/// calls in progress may be in another tier than the entry.
#[derive(Debug, Default)]
pub(super) struct Sites {
    tiers: [Option<ByFunction<Vec<SiteCache>>>; Tier::ALL.len()],
}

impl Sites {
    /// Address of the table of a function. `place`: where the function stood among others with code when it was looked up last.
    pub(super) fn of(&mut self, program: &Program, tier: Tier, func: FuncId, place: &mut u32) -> Result<u64, Ended> {
        let tables = &mut self.tiers[tier as usize];
        let tables = match tables {
            Some(tables) => tables,
            None => {
                let of_code = |(f, code): (FuncId, &Code)| (f, vec![SiteCache::EMPTY; code.tables.mems.len()]);
                tables.insert(program.codes(tier)?.iter().map(of_code).collect())
            }
        };
        let table = tables.get_mut_at(func, place).ok_or_else(|| Ended::bug("a function without code has accesses"))?;
        Ok(address(table.as_mut_ptr()))
    }

    /// Forgets all allocations.
    pub(super) fn clear(&mut self) {
        let tables = self.tiers.iter_mut().flatten().flat_map(ByFunction::iter_mut);
        tables.flat_map(|(_, table)| table).for_each(|s| *s = SiteCache::EMPTY);
    }
}
