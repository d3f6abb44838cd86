//! What the checks of one module share.

use handloom_diag::{Code, Diagnostic, FileId, Span};
use handloom_isa::target::{Needs, Target, Version};
use handloom_syntax::ast;

use crate::forms::FormCache;
use crate::module::{Linkage, Symbol, SymbolId, SymbolKind};
use crate::report::Report;
use handloom_diag::hash::{FastMap as Map, FastSet as Set};

/// A name at module level.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Global {
    /// A symbol.
    Symbol(SymbolId),
    /// A declaration with an error, which has been told.
    Poison,
}

/// State of the check of one module.
pub(crate) struct Cx<'a> {
    /// Text of the module.
    pub text: &'a str,
    /// Its number.
    pub file: FileId,
    /// What was found.
    pub report: Report,
    /// `.version`.
    pub version: Version,
    /// `.target`.
    pub target: Target,
    /// `.address_size`.
    pub address_size: u8,
    /// Symbols so far.
    pub symbols: Vec<Symbol>,
    /// Symbols by name.
    pub globals: Map<&'a str, Global>,
    /// Variables with `.attribute(.unified)`.
    pub unified: Set<SymbolId>,
    /// Functions with a body, wherever they are: name and place.
    pub defined: Map<&'a str, Span>,
    /// Records found for instruction words.
    pub forms: FormCache<'a>,
    /// `.file`.
    pub files: Vec<(u64, String)>,
    /// Their numbers.
    pub file_numbers: Set<u64>,
    /// Undeclared module-level names that have been told.
    pub told: Set<&'a str>,
    /// Bytes of `.const` variables so far.
    pub const_bytes: u64,
    /// How many more "did you mean" may be looked for.
    pub suggestions_left: u32,
}

/// A fault that is in the report already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told;

impl<'a> Cx<'a> {
    /// Adds a diagnostic.
    pub fn push(&mut self, d: Diagnostic) -> Told {
        self.report.push(d);
        Told
    }

    /// The symbol of an id.
    pub fn symbol(&self, id: SymbolId) -> &Symbol {
        &self.symbols[index(id.0)]
    }

    /// The same, to change it.
    pub fn symbol_mut(&mut self, id: SymbolId) -> &mut Symbol {
        &mut self.symbols[index(id.0)]
    }

    /// The symbol of an id; where that is an alias, the symbol that it names.
    pub fn resolved(&self, id: SymbolId) -> SymbolId {
        match self.symbol(id).kind {
            // An alias never names an alias: the check of `.alias` follows it.
            SymbolKind::Alias(target) => target,
            SymbolKind::Var(_) | SymbolKind::Func(_) => id,
        }
    }

    /// Adds a symbol.
    pub fn add(&mut self, symbol: Symbol) -> SymbolId {
        let id = SymbolId(u32::try_from(self.symbols.len()).unwrap_or(u32::MAX));
        self.symbols.push(symbol);
        id
    }

    /// Binds a module-level name to a new symbol; a second declaration is an error.
    pub fn bind(&mut self, name: ast::Name<'a>, symbol: Symbol) -> Result<SymbolId, Told> {
        if let Some(earlier) = self.globals.get(name.text).copied() {
            return Err(self.duplicate(name, earlier));
        }
        let id = self.add(symbol);
        self.globals.insert(name.text, Global::Symbol(id));
        Ok(id)
    }

    /// Tells that a module-level name is declared twice.
    pub fn duplicate(&mut self, name: ast::Name<'a>, earlier: Global) -> Told {
        match earlier {
            Global::Poison => Told,
            Global::Symbol(id) => {
                let first = self.symbol(id).span;
                self.push(duplicate(name, first))
            }
        }
    }

    /// Whether the module passes a gate; else what to tell.
    pub fn gate(&self, needs: Needs) -> Option<String> {
        needs.lacking(self.version, self.target)
    }
}

/// An index into a table.
pub(crate) fn index(i: u32) -> usize {
    usize::try_from(i).unwrap_or(usize::MAX)
}

/// An error for a second declaration.
pub(crate) fn duplicate(name: ast::Name<'_>, first: Span) -> Diagnostic {
    Diagnostic::error(Code::Duplicate, name.span, format!("`{}` is declared twice", name.text))
        .also(first, "first declared here")
}

/// Linkage of a declaration.
pub(crate) fn linkage(l: Option<(ast::Linkage, Span)>) -> Linkage {
    match l.map(|l| l.0) {
        None => Linkage::Internal,
        Some(ast::Linkage::Visible) => Linkage::Visible,
        Some(ast::Linkage::Extern) => Linkage::Extern,
        Some(ast::Linkage::Weak) => Linkage::Weak,
        Some(ast::Linkage::Common) => Linkage::Common,
    }
}
