//! Functions of the CUDA device runtime that are there without being linked, written in PTX.
//!
//! Statements of theirs have no text of the user's: reports show the line that declares the function.

use std::collections::BTreeMap;

use handloom_diag::{FileId, Span};

use crate::call::builtin;
use crate::module::{CheckedModule, Linkage, Stmt, SymbolKind};

const TEXT: &str = include_str!("library.ptx");

/// Whether a function of this name may be here.
fn is_here(name: &str) -> bool {
    name.starts_with("cudaCG") || name == "cudaGraphSetConditional"
}

/// The functions, if one of them is declared in a module and defined in none.
pub(crate) fn missing(modules: &[CheckedModule]) -> Option<CheckedModule> {
    // Most programs declare no function of others: look before the library is checked.
    let symbols = || modules.iter().flat_map(|m| &m.symbols);
    let is_defined = |name: &str| symbols().any(|s| s.name == name && s.linkage != Linkage::Extern);
    let declared: BTreeMap<&str, Span> = symbols()
        .filter(|s| s.linkage == Linkage::Extern && builtin(&s.name).is_none() && is_here(&s.name))
        .filter(|s| matches!(&s.kind, SymbolKind::Func(f) if f.body.is_none()) && !is_defined(&s.name))
        .map(|s| (s.name.as_str(), s.span))
        .collect();
    let (_, any) = declared.first_key_value()?;
    let checked = crate::check_text(TEXT, FileId(0));
    let mut library = checked.module?;
    library.symbols.iter_mut().for_each(|s| {
        let span = declared.get(s.name.as_str()).unwrap_or(any);
        s.span = *span;
        let SymbolKind::Func(f) = &mut s.kind else { return };
        let Some(body) = &mut f.body else { return };
        body.end = *span;
        for stmt in &mut body.stmts {
            match stmt {
                Stmt::Inst(i) => i.span = *span,
                Stmt::Loc { .. } | Stmt::Label(_) | Stmt::Pragma(_) => {}
            }
        }
        if is_defined(&s.name) {
            // The user's own takes its place.
            s.linkage = Linkage::Weak;
        }
    });
    Some(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_has_no_errors() {
        let checked = crate::check_text(TEXT, FileId(0));
        assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
        assert!(checked.module.is_some());
    }

    #[test]
    fn it_is_joined_where_it_is_declared() {
        let head = ".version 6.0\n.target sm_60\n.address_size 64\n";
        let part = |text: &str| crate::check_text(&format!("{head}{text}"), FileId(1)).module.unwrap();
        let uses = ".extern .func (.param .b64 h) cudaCGGetIntrinsicHandle(.param .b32 s);\n";
        assert!(missing(&[part(".entry k() { ret; }")]).is_none());
        let found = missing(&[part(uses)]).unwrap();
        assert!(found.symbols.iter().all(|s| s.span.file == FileId(1)));
        let own = ".visible .func (.param .b64 h) cudaCGGetIntrinsicHandle(.param .b32 s) { ret; }";
        assert!(missing(&[part(uses), part(own)]).is_none());
    }
}
