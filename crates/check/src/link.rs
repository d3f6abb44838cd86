//! Joining modules: symbols by name.
//!
//! # PTX ISA
//! Linking Directives.

use handloom_diag::{Code, Diagnostic, Span};

use crate::call::builtin;
use crate::context::index;
use crate::elsewhere::device_runtime;
use crate::func::{differing_lists, disagreement};
use crate::library;
use crate::module::{
    AddrBase, Body, CallTarget, CheckedModule, GlobalVar, Linkage, Operand, Stmt, Symbol, SymbolId, SymbolKind,
};
use handloom_diag::hash::{FastMap as Map, FastSet as Set};

/// Joins modules. Internal symbols stay apart; `.weak` and `.common` give way; `.extern` ones take the definition of another module.
///
/// With `require_resolved`, an extern symbol that is used must have a definition; built-in functions and dynamic shared memory
/// need none, and functions of the device runtime get theirs from PTX text of ours.
///
/// # Errors
/// E0502, one for each pair of symbols that do not fit and for each unresolved symbol.
pub fn link(modules: Vec<CheckedModule>, require_resolved: bool) -> Result<CheckedModule, Vec<Diagnostic>> {
    join(modules, require_resolved, Linker::default())
}

/// The same as it is done when a program runs: [`link`] refuses what the linker of the toolkit does, but the one in the driver's place lets an `.extern`
/// function have results that its definition has not. Nothing is returned then, and what the caller reads is undefined.
///
/// # Errors
/// As [`link`], with all symbols resolved.
pub fn link_to_run(modules: Vec<CheckedModule>) -> Result<CheckedModule, Vec<Diagnostic>> {
    join(modules, true, Linker { lets_results_differ: true, ..Linker::default() })
}

fn join(
    mut modules: Vec<CheckedModule>,
    require_resolved: bool,
    mut linker: Linker,
) -> Result<CheckedModule, Vec<Diagnostic>> {
    if require_resolved && modules.iter().all(|m| m.address_size == 64) {
        modules.extend(library::missing(&modules));
    }
    let mut joined = CheckedModule {
        version: handloom_isa::target::Version::new(1, 0),
        target: handloom_isa::target::Target { sm: 0, suffix: handloom_isa::target::Suffix::None },
        address_size: modules.first().map_or(64, |m| m.address_size),
        symbols: Vec::new(),
        files: Vec::new(),
    };
    for (number, module) in (0u64..).zip(modules) {
        joined.version = joined.version.max(module.version);
        if module.target.sm > joined.target.sm {
            joined.target = module.target;
        }
        if module.address_size != joined.address_size {
            let span = module.symbols.first().map_or(Span::NONE, |s| s.span);
            let message = format!(
                "a module of {}-bit addresses cannot be joined with one of {} bits",
                module.address_size, joined.address_size
            );
            linker.errors.push(Diagnostic::error(Code::Link, span, message));
        }
        linker.take(module, number, &mut joined);
    }
    if require_resolved {
        linker.unresolved(&joined);
    }
    if linker.lets_results_differ {
        drop_results(&mut joined);
    }
    if linker.errors.is_empty() { Ok(joined) } else { Err(linker.errors) }
}

#[derive(Default)]
struct Linker {
    /// Symbols with linkage, by name.
    by_name: Map<String, SymbolId>,
    /// Symbols that something refers to.
    used: Set<SymbolId>,
    /// A declaration may have results where the definition has none.
    lets_results_differ: bool,
    errors: Vec<Diagnostic>,
}

/// Whether one symbol is a function without results and with a body, and the other one its declaration with results.
fn lacks_results(a: &Symbol, b: &Symbol) -> bool {
    let (SymbolKind::Func(x), SymbolKind::Func(y)) = (&a.kind, &b.kind) else { return false };
    let (definition, declaration, linkage) = if x.body.is_some() { (x, y, b.linkage) } else { (y, x, a.linkage) };
    let results = (definition.results.is_empty(), declaration.results.is_empty());
    let is_one_of_each = definition.body.is_some() && declaration.body.is_none() && linkage == Linkage::Extern;
    let same_params = differing_lists("parameter", &declaration.params, &definition.params, false).is_none();
    is_one_of_each && !definition.is_entry && results == (true, false) && same_params
}

/// Calls of functions that return nothing have no results, whatever the module of the call declared.
fn drop_results(joined: &mut CheckedModule) {
    let returns_nothing = |s: &Symbol| matches!(&s.kind, SymbolKind::Func(f) if f.results.is_empty());
    let nothing: Vec<bool> = joined.symbols.iter().map(returns_nothing).collect();
    let bodies = joined.symbols.iter_mut().filter_map(|s| match &mut s.kind {
        SymbolKind::Func(f) => f.body.as_mut(),
        SymbolKind::Var(_) | SymbolKind::Alias(_) => None,
    });
    for stmt in bodies.flat_map(|body| &mut body.stmts) {
        let Stmt::Inst(inst) = stmt else { continue };
        for operand in &mut inst.src {
            let Operand::Call(call) = operand else { continue };
            if matches!(call.target, CallTarget::Direct(id) if nothing[index(id.0)]) {
                call.results.clear();
                call.result_params.clear();
            }
        }
    }
}

/// Numbers of `.file` directives are those of one module: the module's number is put above them.
const FILE_BITS: u32 = 40;

impl Linker {
    fn take(&mut self, module: CheckedModule, number: u64, joined: &mut CheckedModule) {
        let mut map = Vec::with_capacity(module.symbols.len());
        let mut kept = Vec::with_capacity(module.symbols.len());
        for symbol in module.symbols {
            let (id, keeps) = self.place(symbol, joined);
            map.push(id);
            kept.extend(keeps.then_some(id));
        }
        let remap = Remap { map: &map, number };
        for id in kept {
            self.rewrite(&mut joined.symbols[index(id.0)], &remap);
        }
        let files = module.files.into_iter().map(|(n, name)| (remap.file(n), name));
        joined.files.extend(files);
    }

    /// Puts a symbol where it belongs. Returns the place, and whether it is kept there or another one is.
    fn place(&mut self, symbol: Symbol, joined: &mut CheckedModule) -> (SymbolId, bool) {
        let fresh = SymbolId(u32::try_from(joined.symbols.len()).unwrap_or(u32::MAX));
        let known = if symbol.linkage == Linkage::Internal { None } else { self.by_name.get(&symbol.name).copied() };
        let Some(id) = known else {
            if symbol.linkage != Linkage::Internal {
                self.by_name.insert(symbol.name.clone(), fresh);
            }
            joined.symbols.push(symbol);
            return (fresh, true);
        };
        let earlier = &mut joined.symbols[index(id.0)];
        let is_let = self.lets_results_differ && lacks_results(earlier, &symbol);
        if !is_let && let Some(difference) = misfit(earlier, &symbol) {
            self.tell(earlier, &symbol, &difference);
            return (id, false);
        }
        let (old, new) = (strength(earlier), strength(&symbol));
        if old == STRONG && new == STRONG {
            self.tell(earlier, &symbol, "is defined twice");
        }
        // One module may access it by more bytes at a time than the other.
        let align = |s: &Symbol| if let SymbolKind::Var(v) = &s.kind { v.align } else { 0 };
        let align = align(earlier).max(align(&symbol));
        if new > old {
            *earlier = symbol;
        }
        if let SymbolKind::Var(v) = &mut earlier.kind {
            v.align = align;
        }
        (id, new > old)
    }

    fn tell(&mut self, earlier: &Symbol, symbol: &Symbol, what: &str) {
        let message = format!("`{}` {what}", symbol.name);
        let d = Diagnostic::error(Code::Link, symbol.span, message).also(earlier.span, "the other one is here");
        self.errors.push(d.section("Linking Directives"));
    }

    fn rewrite(&mut self, symbol: &mut Symbol, remap: &Remap<'_>) {
        match &mut symbol.kind {
            SymbolKind::Var(v) => {
                for r in &mut v.relocs {
                    r.target = remap.symbol(r.target);
                    self.used.insert(r.target);
                }
                v.owner = v.owner.map(|o| remap.symbol(o));
            }
            SymbolKind::Func(f) => {
                if let Some(body) = &mut f.body {
                    self.rewrite_body(body, remap);
                }
            }
            SymbolKind::Alias(target) => {
                *target = remap.symbol(*target);
                self.used.insert(*target);
            }
        }
    }

    fn rewrite_body(&mut self, body: &mut Body, remap: &Remap<'_>) {
        for s in &mut body.stmts {
            match s {
                Stmt::Inst(i) => {
                    i.dst.iter_mut().chain(&mut i.src).for_each(|o| self.rewrite_operand(o, remap));
                }
                Stmt::Loc { at, inlined_at, .. } => {
                    std::iter::once(at).chain(inlined_at).for_each(|at| at.file = remap.file(at.file));
                }
                Stmt::Label(_) | Stmt::Pragma(_) => {}
            }
        }
    }

    fn rewrite_operand(&mut self, o: &mut Operand, remap: &Remap<'_>) {
        match o {
            Operand::Vector(elements) => elements.iter_mut().for_each(|e| self.rewrite_operand(e, remap)),
            Operand::Addr { base: AddrBase::Symbol(id), .. } | Operand::AddrOf { base: AddrBase::Symbol(id), .. } => {
                *id = remap.symbol(*id);
                self.used.insert(*id);
            }
            Operand::Point(point) => {
                let bases = [Some(&mut point.at), point.sampler.as_mut()];
                for id in bases.into_iter().flatten().filter_map(|(base, _)| base.symbol_mut()) {
                    *id = remap.symbol(*id);
                    self.used.insert(*id);
                }
                self.rewrite_operand(&mut point.coordinates, remap);
            }
            Operand::Call(call) => {
                if let CallTarget::Direct(id) = &mut call.target {
                    *id = remap.symbol(*id);
                    self.used.insert(*id);
                }
                for id in call.targets.iter_mut().flatten() {
                    *id = remap.symbol(*id);
                    self.used.insert(*id);
                }
            }
            Operand::Reg { .. }
            | Operand::Imm { .. }
            | Operand::Sreg { .. }
            | Operand::Sink
            | Operand::Addr { .. }
            | Operand::AddrOf { .. }
            | Operand::Label(_)
            | Operand::Labels(_) => {}
        }
    }

    fn unresolved(&mut self, joined: &CheckedModule) {
        for (id, s) in (0u32..).zip(&joined.symbols) {
            if s.linkage != Linkage::Extern || !self.used.contains(&SymbolId(id)) {
                continue;
            }
            let needs_none = match &s.kind {
                SymbolKind::Var(v) => v.unsized_array && v.space == handloom_ir::types::StateSpace::Shared,
                SymbolKind::Func(f) => f.body.is_some() || builtin(&s.name).is_some(),
                SymbolKind::Alias(_) => true,
            };
            if !needs_none {
                let missing = || {
                    let message = format!("`{}` is used and defined in no module", s.name);
                    let d = Diagnostic::error(Code::Link, s.span, message);
                    d.help("add the module that defines it").section("Linking Directives: .extern")
                };
                self.errors.push(device_runtime(&s.name, s.span).unwrap_or_else(missing));
            }
        }
    }
}

struct Remap<'m> {
    map: &'m [SymbolId],
    number: u64,
}

impl Remap<'_> {
    fn symbol(&self, id: SymbolId) -> SymbolId {
        self.map.get(index(id.0)).copied().unwrap_or(id)
    }

    fn file(&self, n: u64) -> u64 {
        n | (self.number << FILE_BITS)
    }
}

const STRONG: u8 = 4;

/// Of two symbols of one name the stronger one stays, of equals the first.
fn strength(s: &Symbol) -> u8 {
    let bodiless = matches!(&s.kind, SymbolKind::Func(f) if f.body.is_none());
    match s.linkage {
        Linkage::Extern => 0,
        _ if bodiless => 1,
        Linkage::Common => 2,
        Linkage::Weak => 3,
        Linkage::Visible | Linkage::Internal => STRONG,
    }
}

/// Whether variables of two modules may be one. A linker sees no types: nvcc declares arrays of pointers that another file defines as bytes.
fn may_be_one(a: &GlobalVar, b: &GlobalVar) -> bool {
    a.space == b.space && a.object == b.object && (a.size == b.size || a.unsized_array || b.unsized_array)
}

/// Why two symbols of one name cannot be one.
fn misfit(a: &Symbol, b: &Symbol) -> Option<String> {
    match (&a.kind, &b.kind) {
        (SymbolKind::Var(x), SymbolKind::Var(y)) => {
            (!may_be_one(x, y)).then(|| "has another space or size there".to_owned())
        }
        (SymbolKind::Func(x), SymbolKind::Func(y)) => {
            disagreement(x, y, false).map(|d| format!("is declared differently: {d}"))
        }
        (SymbolKind::Alias(_), SymbolKind::Func(_) | SymbolKind::Alias(_))
        | (SymbolKind::Func(_), SymbolKind::Alias(_)) => None,
        (SymbolKind::Var(_), SymbolKind::Func(_) | SymbolKind::Alias(_))
        | (SymbolKind::Func(_) | SymbolKind::Alias(_), SymbolKind::Var(_)) => {
            Some("is a variable in one module and a function in the other".to_owned())
        }
    }
}
