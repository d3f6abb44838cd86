//! Functions and entries: declaration, definition, alias.
//!
//! # PTX ISA
//! Kernel and Function Directives; Performance-Tuning Directives; Cluster Dimension Directives.

use handloom_diag::{Code, Diagnostic};
use handloom_ir::simt::RegisterBounds;
use handloom_isa::target::{Needs, TargetGate, Version};
use handloom_syntax::ast;

use crate::body::check_body;
use crate::context::{Cx, Global, Told, linkage};
use crate::gates;
use crate::globals::attributes;
use crate::module::{Func, Linkage, ParamLayout, Symbol, SymbolId, SymbolKind};
use crate::params::{Of, Signature, signature};

/// Checks one function or entry.
pub(crate) fn function<'a>(cx: &mut Cx<'a>, f: &'a ast::Function<'a>) {
    let signature = signature(&f.results, &f.params, if f.is_entry { Of::Entry } else { Of::Func }, &mut cx.report);
    let func = header(cx, f, &signature);
    let id = declare(cx, f, func, signature.sound);
    let Some(stmts) = &f.body else { return };
    // A second definition is checked all the same, under a symbol of its own.
    let id = id.unwrap_or_else(|Told| {
        let func = header_only(f, &signature);
        cx.add(symbol(f, func))
    });
    let body = check_body(cx, f, id, &signature, stmts);
    if let SymbolKind::Func(func) = &mut cx.symbol_mut(id).kind {
        for (layouts, regs) in [(&mut func.params, body.param_regs), (&mut func.results, body.result_regs)] {
            for (layout, reg) in layouts.iter_mut().zip(regs) {
                layout.reg = reg;
            }
        }
        func.body = Some(body.body);
    }
}

fn symbol(f: &ast::Function<'_>, func: Func) -> Symbol {
    let kind = SymbolKind::Func(Box::new(func));
    Symbol { name: f.name.text.to_owned(), linkage: linkage(f.linkage), kind, span: f.name.span }
}

fn header_only(f: &ast::Function<'_>, s: &Signature<'_>) -> Func {
    Func {
        is_entry: f.is_entry,
        results: s.result_layouts(),
        params: s.param_layouts(),
        param_bytes: s.bytes,
        maxntid: None,
        reqntid: None,
        reqcluster: None,
        registers: RegisterBounds::default(),
        noreturn: false,
        body: None,
    }
}

fn header(cx: &mut Cx<'_>, f: &ast::Function<'_>, s: &Signature<'_>) -> Func {
    let mut func = header_only(f, s);
    gates::linkage(cx, f.linkage);
    for decl in f.params.iter().chain(&f.results) {
        gates::declaration(cx, decl);
        for var in decl.vars.iter().filter(|v| matches!(*v.dims, [None])) {
            gates::needs(cx, "[]", var.name.span, Needs::on(6, 0, &[TargetGate::AtLeast(30)]));
        }
    }
    if f.is_entry && s.bytes > FEWER_BYTES {
        let what = format!("more than {FEWER_BYTES} bytes of parameters");
        gates::needs(cx, &what, f.name.span, Needs::on(8, 1, &[TargetGate::AtLeast(70)]));
    }
    attributes(cx, &f.attributes, &[".unified"], !f.is_entry);
    if let (Some((ast::Linkage::Extern, span)), Some(_)) = (f.linkage, &f.body) {
        let d = Diagnostic::error(Code::Layout, span, format!("`{}` is `.extern` and has a body", f.name.text));
        cx.push(d.help("write `.visible`").section("Linking Directives: .extern"));
    }
    for d in &f.directives {
        gates::word(cx, d.name.text, d.name.span);
        match d.name.text {
            ".noreturn" if !f.is_entry => {
                plain(cx, d);
                if func.noreturn {
                    cx.push(Diagnostic::error(Code::Duplicate, d.span, "`.noreturn` stands twice").section(TUNING));
                } else if let Some(first) = f.results.first() {
                    let d = Diagnostic::error(Code::Illegal, d.span, "a function with results returns");
                    cx.push(d.also(first.span, "the result").section("Performance-Tuning Directives: .noreturn"));
                }
                func.noreturn = true;
            }
            ".abi_preserve" | ".abi_preserve_control" if !f.is_entry => drop(one(cx, d, 0)),
            ".maxntid" if f.is_entry => func.maxntid = three(cx, d),
            ".reqntid" if f.is_entry => func.reqntid = three(cx, d),
            ".reqnctapercluster" if f.is_entry => func.reqcluster = three(cx, d),
            ".minnctapersm" if f.is_entry => func.registers.min_ctas = one(cx, d, 1),
            ".maxnreg" if f.is_entry => func.registers.maxnreg = one(cx, d, 1),
            ".maxclusterrank" | ".local_maxnreg" if f.is_entry => drop(one(cx, d, 0)),
            ".maxnctapersm" if f.is_entry => {
                func.registers.min_ctas = one(cx, d, 1);
                if cx.version > Version::new(2, 0) {
                    let told = Diagnostic::error(Code::Illegal, d.span, "`.maxnctapersm` ended with PTX 2.0");
                    cx.push(told.help("write `.minnctapersm`").section("Performance-Tuning Directives: .maxnctapersm"));
                }
            }
            ".explicitcluster" | ".blocksareclusters" if f.is_entry => plain(cx, d),
            ".pragma" if f.is_entry => {}
            other => {
                let what = if f.is_entry { "an `.entry`" } else { "a `.func`" };
                let message = format!("`{other}` is no directive of {what}");
                cx.push(Diagnostic::error(Code::Syntax, d.name.span, message).section(TUNING));
            }
        }
    }
    together(cx, f);
    func
}

/// Bytes of parameters that every entry may have.
const FEWER_BYTES: u32 = 4352;

const TUNING: &str = "Performance-Tuning Directives";
const CLUSTERS: &str = "Cluster Dimension Directives";

/// Directives that exclude or want each other.
fn together(cx: &mut Cx<'_>, f: &ast::Function<'_>) {
    let find = |name: &str| f.directives.iter().find(|d| d.name.text == name);
    for (a, b, section) in [(".maxntid", ".reqntid", TUNING), (".reqnctapercluster", ".maxclusterrank", CLUSTERS)] {
        if let (Some(_), Some(second)) = (find(a), find(b)) {
            let d = Diagnostic::error(Code::Illegal, second.span, format!("`{a}` and `{b}` exclude each other"));
            cx.push(d.section(section));
        }
    }
    if let Some(d) = find(".blocksareclusters")
        && (find(".reqntid").is_none() || find(".reqnctapercluster").is_none())
    {
        let message = "`.blocksareclusters` wants `.reqntid` and `.reqnctapercluster`";
        cx.push(Diagnostic::error(Code::Illegal, d.span, message).section(CLUSTERS));
    }
}

/// A directive without numbers.
fn plain(cx: &mut Cx<'_>, d: &ast::Directive<'_>) {
    if !d.values.is_empty() {
        let message = format!("`{}` takes no number", d.name.text);
        cx.push(Diagnostic::error(Code::Syntax, d.span, message).section(TUNING));
    }
}

/// A directive with one number, which is at least `least`.
fn one(cx: &mut Cx<'_>, d: &ast::Directive<'_>, least: u64) -> Option<u32> {
    let number = if let [v] = *d.values { u32::try_from(v).ok().filter(|_| v >= least) } else { None };
    if number.is_none() {
        let what = if least == 0 { "one number" } else { "one positive number" };
        let message = format!("`{}` takes {what} of 32 bits", d.name.text);
        cx.push(Diagnostic::error(Code::Layout, d.span, message).section(TUNING));
    }
    number
}

fn three(cx: &mut Cx<'_>, d: &ast::Directive<'_>) -> Option<[u32; 3]> {
    let mut out = [1u32; 3];
    let fits = !d.values.is_empty()
        && d.values.len() <= 3
        && out.iter_mut().zip(&d.values).all(|(o, v)| u32::try_from(*v).map(|v| *o = v).is_ok());
    if !fits || out.contains(&0) {
        let message = format!("`{}` takes one to three positive numbers", d.name.text);
        cx.push(Diagnostic::error(Code::Layout, d.span, message).section("Performance-Tuning Directives"));
        return None;
    }
    Some(out)
}

/// Binds the name; a definition may follow declarations, and all must agree.
fn declare<'a>(cx: &mut Cx<'a>, f: &'a ast::Function<'a>, func: Func, sound: bool) -> Result<SymbolId, Told> {
    let Some(earlier) = cx.globals.get(f.name.text).copied() else {
        let id = cx.bind(f.name, symbol(f, func))?;
        if !sound {
            cx.globals.insert(f.name.text, Global::Poison);
        }
        return Ok(id);
    };
    let Global::Symbol(id) = earlier else { return Err(Told) };
    if !sound {
        return Err(Told);
    }
    let SymbolKind::Func(old) = &cx.symbol(id).kind else { return Err(cx.duplicate(f.name, earlier)) };
    if old.body.is_some() && f.body.is_some() {
        return Err(cx.duplicate(f.name, earlier));
    }
    if let Some(difference) =
        other_linkage(old.body.is_some(), cx.symbol(id).linkage, f).or_else(|| disagreement(old, &func, true))
    {
        let first = cx.symbol(id).span;
        let message = format!("`{}` is declared differently before: {difference}", f.name.text);
        let d = Diagnostic::error(Code::Layout, f.name.span, message).also(first, "first declared here");
        return Err(cx.push(d.section("Kernel and Function Directives: .func")));
    }
    merge(cx, id, f, func);
    Ok(id)
}

/// In what the linking directive of a further declaration or the definition differs. None written agrees with all but `.extern`.
fn other_linkage(is_defined: bool, old: Linkage, f: &ast::Function<'_>) -> Option<String> {
    let given = linkage(f.linkage);
    let extern_defined = (old == Linkage::Extern && f.body.is_some()) || (given == Linkage::Extern && is_defined);
    if extern_defined {
        return Some("an `.extern` function is defined in another module".to_owned());
    }
    (given != Linkage::Internal && given != old).then(|| "the linking directives differ".to_owned())
}

/// Takes over what a further declaration or the definition adds.
fn merge(cx: &mut Cx<'_>, id: SymbolId, f: &ast::Function<'_>, func: Func) {
    let defines = f.body.is_some();
    let old = cx.symbol_mut(id);
    if defines {
        old.span = f.name.span;
    }
    if let SymbolKind::Func(o) = &mut old.kind
        && o.body.is_none()
    {
        let noreturn = o.noreturn || func.noreturn;
        if defines {
            **o = func;
        }
        o.noreturn = noreturn;
    }
}

/// In what two headers differ. Within a module types and alignments count, between modules sizes.
pub(crate) fn disagreement(a: &Func, b: &Func, strict: bool) -> Option<String> {
    if a.is_entry != b.is_entry {
        return Some("one is an `.entry`, the other a `.func`".to_owned());
    }
    let params = differing_lists("parameter", &a.params, &b.params, strict);
    params.or_else(|| differing_lists("result", &a.results, &b.results, strict))
}

/// In what two lists of parameters or results differ; as [`disagreement`].
pub(crate) fn differing_lists(what: &str, a: &[ParamLayout], b: &[ParamLayout], strict: bool) -> Option<String> {
    if a.len() != b.len() {
        return Some(format!("{} and {} {what}s", a.len(), b.len()));
    }
    for (i, (x, y)) in (1..).zip(a.iter().zip(b)) {
        if x.size != y.size {
            return Some(format!("{what} {i} has {} and {} bytes", x.size, y.size));
        }
        if strict && x.ty != y.ty {
            return Some(format!("{what} {i} is `{}` and `{}`", x.ty, y.ty));
        }
        if strict && x.align != y.align {
            return Some(format!("{what} {i} is aligned to {} and {} bytes", x.align, y.align));
        }
    }
    None
}

/// `.alias a, b`: `a` is another name of `b`.
pub(crate) fn alias<'a>(cx: &mut Cx<'a>, name: ast::Name<'a>, target: ast::Name<'a>) {
    const SECTION: &str = "Kernel and Function Directives: .alias";
    let to = match cx.globals.get(target.text).copied() {
        Some(Global::Symbol(id)) => cx.resolved(id),
        Some(Global::Poison) => return,
        None => return cx.undeclared_symbol(target.text, target.span),
    };
    let is_func = matches!(cx.symbol(to).kind, SymbolKind::Func(_));
    let is_defined =
        cx.defined.contains_key(target.text) || matches!(&cx.symbol(to).kind, SymbolKind::Func(f) if f.body.is_some());
    if !is_func || !is_defined {
        let message = format!("`{}` is not a function of this module with a body", target.text);
        cx.push(Diagnostic::error(Code::WrongKind, target.span, message).section(SECTION));
        return;
    }
    let id = match cx.globals.get(name.text).copied() {
        Some(Global::Poison) => return,
        Some(Global::Symbol(id)) => id,
        None => return cx.undeclared_symbol(name.text, name.span),
    };
    let (SymbolKind::Func(old), SymbolKind::Func(aliased)) = (&cx.symbol(id).kind, &cx.symbol(to).kind) else {
        cx.duplicate(name, Global::Symbol(id));
        return;
    };
    if old.body.is_some() || cx.defined.contains_key(name.text) || id == to {
        cx.duplicate(name, Global::Symbol(id));
        return;
    }
    if let Some(difference) = disagreement(old, aliased, true) {
        let message = format!("`{}` and `{}` differ: {difference}", name.text, target.text);
        cx.push(Diagnostic::error(Code::Layout, name.span, message).section(SECTION));
        return;
    }
    cx.symbol_mut(id).kind = SymbolKind::Alias(to);
}
