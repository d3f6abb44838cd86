//! Versions and targets that directives and types of declarations need.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_isa::target::Needs;
use handloom_isa::target::TargetGate::AtLeast;
use handloom_syntax::ast;

use crate::context::Cx;

/// Words of directives, attributes and types, in the order of the alphabet.
const GATES: &[(&str, Needs)] = &[
    (".abi_preserve", Needs::on(9, 0, &[AtLeast(80)])),
    (".abi_preserve_control", Needs::on(9, 0, &[AtLeast(80)])),
    (".address_size", Needs::ptx(2, 3)),
    (".alias", Needs::on(6, 3, &[AtLeast(30)])),
    (".attribute", Needs::ptx(4, 0)),
    (".b128", Needs::on(8, 3, &[AtLeast(70)])),
    (".blocksareclusters", Needs::on(9, 0, &[AtLeast(90)])),
    (".common", Needs::ptx(5, 0)),
    (".explicitcluster", Needs::on(7, 8, &[AtLeast(90)])),
    (".f16x2", Needs::ptx(4, 2)),
    (".local_maxnreg", Needs::ptx(8, 8)),
    (".managed", Needs::on(4, 0, &[AtLeast(30)])),
    (".maxclusterrank", Needs::on(7, 8, &[AtLeast(90)])),
    (".maxnctapersm", Needs::ptx(1, 3)),
    (".maxnreg", Needs::ptx(1, 3)),
    (".maxntid", Needs::ptx(1, 3)),
    (".minnctapersm", Needs::ptx(2, 0)),
    (".noreturn", Needs::on(6, 4, &[AtLeast(30)])),
    (".pragma", Needs::ptx(2, 0)),
    (".ptr", Needs::ptx(2, 2)),
    (".reqnctapercluster", Needs::on(7, 8, &[AtLeast(90)])),
    (".reqntid", Needs::ptx(2, 1)),
    (".unified", Needs::on(8, 0, &[AtLeast(90)])),
    (".weak", Needs::ptx(3, 1)),
];

/// Tells what the module lacks for a word, if there is a gate before it.
pub(crate) fn word(cx: &mut Cx<'_>, word: &str, span: Span) {
    if let Ok(i) = GATES.binary_search_by_key(&word, |(w, _)| w) {
        needs(cx, word, span, GATES[i].1);
    }
}

/// Tells what the module lacks for `what`.
pub(crate) fn needs(cx: &mut Cx<'_>, what: &str, span: Span, needs: Needs) {
    if let Some(text) = cx.gate(needs) {
        cx.push(Diagnostic::error(Code::Gate, span, format!("`{what}` {text}")).section("Release Notes"));
    }
}

/// The words of a declaration, of a variable or a parameter.
pub(crate) fn declaration(cx: &mut Cx<'_>, decl: &ast::VarDecl<'_>) {
    // Few types have a gate; registers are many.
    if matches!(decl.ty.text, ".b128" | ".f16x2") {
        word(cx, decl.ty.text, decl.ty.span);
    }
    if decl.ptr.is_some() {
        word(cx, ".ptr", decl.span);
    }
}

/// A linking directive.
pub(crate) fn linkage(cx: &mut Cx<'_>, linkage: Option<(ast::Linkage, Span)>) {
    match linkage {
        Some((ast::Linkage::Common, span)) => word(cx, ".common", span),
        Some((ast::Linkage::Weak, span)) => word(cx, ".weak", span),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_stand_in_order() {
        assert!(super::GATES.is_sorted_by_key(|(w, _)| w));
    }
}
