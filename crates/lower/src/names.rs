//! The symbols of a module and the numbers that its functions get.

use handloom_check::module as checked;
use handloom_check::module::{CheckedModule, SymbolId, SymbolKind};
use handloom_ir::simt::FuncId;
use handloom_ir::types::StateSpace;

use crate::short_addresses;

/// A module with the numbers that its functions get.
pub(crate) struct Names<'m> {
    pub(crate) module: &'m CheckedModule,
    /// The symbol of each function.
    pub(crate) bodies: Vec<SymbolId>,
    /// The function of each function symbol.
    numbers: Vec<Option<FuncId>>,
    /// Some function of a 64-bit module keeps addresses of local memory in 32 bits, as LLVM does; others may get them from it.
    pub(crate) short_locals: bool,
    /// What is asynchronous may come late.
    pub(crate) late: bool,
    /// Statements begin with a mark.
    pub(crate) marked: bool,
}

impl<'m> Names<'m> {
    /// Numbers the functions of a module.
    pub(crate) fn of(module: &'m CheckedModule) -> Names<'m> {
        let mut bodies = Vec::new();
        let mut numbers = vec![None; module.symbols.len()];
        for (i, s) in module.symbols.iter().enumerate() {
            if matches!(s.kind, SymbolKind::Func(_)) {
                numbers[i] = Some(FuncId(bodies.len() as u32));
                bodies.push(SymbolId(i as u32));
            }
        }
        let short_locals = module.address_size == 64
            && module.symbols.iter().any(|s| match &s.kind {
                SymbolKind::Func(f) => f.body.as_ref().is_some_and(short_addresses::makes_short_addresses),
                SymbolKind::Var(_) | SymbolKind::Alias(_) => false,
            });
        Names { module, bodies, numbers, short_locals, late: false, marked: false }
    }

    pub(crate) fn symbol(&self, id: SymbolId) -> &'m checked::Symbol {
        &self.module.symbols[id.0 as usize]
    }

    /// The function of a function symbol, or of an alias of one.
    pub(crate) fn func(&self, id: SymbolId) -> FuncId {
        match self.numbers[resolve(self.module, id).0 as usize] {
            Some(f) => f,
            None => panic!("bug: lower: `{}` is called and is no function", self.symbol(id).name),
        }
    }

    /// The state space of a variable; `None` for a function.
    pub(crate) fn space(&self, id: SymbolId) -> Option<StateSpace> {
        match &self.symbol(id).kind {
            SymbolKind::Var(v) => Some(v.space),
            SymbolKind::Func(_) | SymbolKind::Alias(_) => None,
        }
    }
}

/// Follows aliases.
pub(crate) fn resolve(module: &CheckedModule, mut id: SymbolId) -> SymbolId {
    while let SymbolKind::Alias(of) = module.symbols[id.0 as usize].kind {
        id = of;
    }
    id
}
