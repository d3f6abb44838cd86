//! Variables that outlive a thread: module scope, and `.shared`, `.global`, `.const` of a body.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_ir::types::StateSpace;
use handloom_syntax::ast;

use crate::context::{Cx, Global, Told, linkage};
use crate::gates;
use crate::init::initialise;
use crate::layout::{Extent, element, shape, sized};
use crate::module::{GlobalVar, Linkage, Symbol, SymbolId, SymbolKind};
use crate::opaque;
use crate::words::{is_opaque, opaque_kind};

/// Declares the variables of one module-scope declaration.
pub(crate) fn module_vars<'a>(cx: &mut Cx<'a>, decl: &'a ast::VarDecl<'a>) {
    gates::linkage(cx, decl.linkage);
    gates::declaration(cx, decl);
    let Some(space) = lasting_space(decl.space.text) else {
        let d = wrong_space(decl);
        cx.push(d);
        poison(cx, decl);
        return;
    };
    if let Some(bank) = decl.bank {
        let d = Diagnostic::error(
            Code::Illegal,
            decl.space.span,
            format!("`.const[{bank}]`: numbered banks ended with PTX 2.2"),
        );
        cx.push(d.help("write `.const`").section("Constant State Space"));
    }
    if let Some((ast::Linkage::Common, span)) = decl.linkage
        && space != StateSpace::Global
    {
        let d = Diagnostic::error(Code::Layout, span, "a `.common` variable stands in `.global`");
        cx.push(d.section("Linking Directives: .common"));
    }
    if let Some((ast::Linkage::Common, span)) = decl.linkage
        && is_opaque(decl.ty.text)
    {
        let d = Diagnostic::error(Code::Layout, span, format!("a `{}` variable cannot be `.common`", decl.ty.text));
        cx.push(d.section("Linking Directives: .common"));
    }
    attributes(cx, &decl.attributes, &[".managed", ".unified"], space == StateSpace::Global);
    let Some(element) = element(decl, &mut cx.report) else { return poison(cx, decl) };
    for var in &decl.vars {
        if let Some((_, span)) = var.count {
            cx.push(numbered_variable(span));
            cx.globals.entry(var.name.text).or_insert(Global::Poison);
            continue;
        }
        let Some(shape) = shape(element, var, &mut cx.report) else {
            cx.globals.entry(var.name.text).or_insert(Global::Poison);
            continue;
        };
        let Ok(global) = lasting(cx, decl, var, shape, space) else {
            cx.globals.entry(var.name.text).or_insert(Global::Poison);
            continue;
        };
        if let Ok(id) = declare(cx, decl, var, global)
            && has_attribute(decl, ".unified")
        {
            cx.unified.insert(id);
        }
    }
}

/// Tells attributes that do not belong to a declaration. `fits`: those of `known` do.
pub(crate) fn attributes(cx: &mut Cx<'_>, attributes: &[ast::Attribute<'_>], known: &[&str], fits: bool) {
    for a in attributes {
        gates::word(cx, ".attribute", a.name.span);
        gates::word(cx, a.name.text, a.name.span);
    }
    for a in attributes.iter().filter(|a| !fits || !known.contains(&a.name.text)) {
        let message = format!("`{}` is no attribute of this declaration", a.name.text);
        let d = Diagnostic::error(Code::Layout, a.name.span, message);
        cx.push(
            d.help("`.managed` and `.unified` of `.global` variables, `.unified` of functions").section("Attributes"),
        );
    }
}

/// `x<4>` of a variable that is no register.
pub(crate) fn numbered_variable(span: Span) -> Diagnostic {
    let message = "a numbered set of variables in memory is not supported yet";
    Diagnostic::unsupported(Code::Unsupported, span, "<>", message)
        .help("declare them one by one, or an array")
        .section("Parameterized Variable Names")
}

fn poison<'a>(cx: &mut Cx<'a>, decl: &'a ast::VarDecl<'a>) {
    for var in &decl.vars {
        cx.globals.entry(var.name.text).or_insert(Global::Poison);
    }
}

/// Whether the declaration carries an attribute.
fn has_attribute(decl: &ast::VarDecl<'_>, name: &str) -> bool {
    decl.attributes.iter().any(|a| a.name.text == name)
}

/// The space of a variable that outlives a thread.
pub(crate) fn lasting_space(word: &str) -> Option<StateSpace> {
    Some(match word {
        ".global" => StateSpace::Global,
        ".const" => StateSpace::Const,
        ".shared" | ".shared::cta" => StateSpace::Shared,
        _ => return None,
    })
}

fn wrong_space(decl: &ast::VarDecl<'_>) -> Diagnostic {
    let word = decl.space.text;
    match word {
        ".tex" => Diagnostic::error(Code::Illegal, decl.space.span, "`.tex` ended with PTX 1.5")
            .help("write `.global .texref`")
            .section("Texture State Space (deprecated)"),
        ".reg" | ".local" | ".param" => {
            let message = format!("a `{word}` variable cannot stand outside a function");
            Diagnostic::error(Code::Layout, decl.space.span, message)
                .help("`.global`, `.const` or `.shared`")
                .section("State Spaces")
        }
        _ => Diagnostic::error(Code::Layout, decl.space.span, format!("no variable can be declared in `{word}`"))
            .help("`.global`, `.const` or `.shared`")
            .section("State Spaces"),
    }
}

/// Declares an extern or defined variable; a definition may follow its `.extern` declaration.
fn declare<'a>(
    cx: &mut Cx<'a>,
    decl: &'a ast::VarDecl<'a>,
    var: &'a ast::Var<'a>,
    global: GlobalVar,
) -> Result<SymbolId, Told> {
    let symbol = Symbol {
        name: var.name.text.to_owned(),
        linkage: linkage(decl.linkage),
        kind: SymbolKind::Var(global),
        span: var.name.span,
    };
    let Some(earlier) = cx.globals.get(var.name.text).copied() else { return cx.bind(var.name, symbol) };
    let Global::Symbol(id) = earlier else { return Err(Told) };
    let old = cx.symbol(id);
    let (SymbolKind::Var(a), SymbolKind::Var(b)) = (&old.kind, &symbol.kind) else {
        return Err(cx.duplicate(var.name, earlier));
    };
    if old.linkage != Linkage::Extern && symbol.linkage != Linkage::Extern {
        return Err(cx.duplicate(var.name, earlier));
    }
    if old.linkage == Linkage::Extern && symbol.linkage == Linkage::Internal {
        let first = old.span;
        let message = format!("`{}` is `.extern` before, and this definition is not seen outside", var.name.text);
        let d = Diagnostic::error(Code::Layout, var.name.span, message).also(first, "first declared here");
        return Err(cx.push(d.help("write `.visible` before it").section("Linking Directives: .extern")));
    }
    if !same_variable(a, b) {
        let first = old.span;
        let message = format!("`{}` is declared differently before", var.name.text);
        let d = Diagnostic::error(Code::Layout, var.name.span, message).also(first, "first declared here");
        return Err(cx.push(d.help("space, type and size must be the same").section("Linking Directives: .extern")));
    }
    if old.linkage == Linkage::Extern && symbol.linkage != Linkage::Extern {
        *cx.symbol_mut(id) = symbol;
    }
    Ok(id)
}

/// Whether two declarations of a module may name one variable.
fn same_variable(a: &GlobalVar, b: &GlobalVar) -> bool {
    let sizes = a.size == b.size || a.unsized_array || b.unsized_array;
    a.space == b.space && a.object == b.object && a.ty.bits() == b.ty.bits() && sizes
}

/// Layout and initial bytes of a variable.
pub(crate) fn lasting<'a>(
    cx: &mut Cx<'a>,
    decl: &'a ast::VarDecl<'a>,
    var: &'a ast::Var<'a>,
    mut shape: Extent,
    space: StateSpace,
) -> Result<GlobalVar, Told> {
    let is_extern = matches!(decl.linkage, Some((ast::Linkage::Extern, _)));
    let element = shape.element;
    let (mut init, mut relocs) = (Vec::new(), Vec::new());
    let object = opaque_kind(decl.ty.text);
    if let Some(kind) = object {
        init = opaque::record(cx, kind, var, &shape)?;
    } else if let Some(value) = &var.init {
        refuse_init(cx, var.name, space, is_extern)?;
        let made = initialise(cx, &mut shape, value, var.name.span)?;
        (init, relocs) = (made.bytes, made.relocs);
    }
    let is_open = shape.dims.contains(&0);
    if is_open && !is_extern {
        let d = Diagnostic::error(Code::Layout, var.name.span, format!("the size of `{}` is not known", var.name.text));
        let d = d.help("write a size, an initialiser, or `.extern`").section("Array Declarations");
        return Err(cx.push(d));
    }
    let size = sized(&shape, var.name.span, &mut cx.report).ok_or(Told)?;
    if space == StateSpace::Const {
        constant_bank(cx, var.name, size, element.align)?;
    }
    let unsized_array = is_open;
    let (ty, align) = (element.ty, element.align);
    let managed = has_attribute(decl, ".managed");
    Ok(GlobalVar { space, ty, size, unsized_array, align, init, relocs, managed, object, owner: None })
}

/// Bytes of all `.const` variables of a module together.
const CONST_BYTES: u64 = 65536;

fn constant_bank(cx: &mut Cx<'_>, name: ast::Name<'_>, size: u64, align: u32) -> Result<(), Told> {
    let before = cx.const_bytes;
    cx.const_bytes = before.next_multiple_of(u64::from(align.max(1))).saturating_add(size);
    // Told where the limit is crossed, once.
    if before > CONST_BYTES || cx.const_bytes <= CONST_BYTES {
        return Ok(());
    }
    let message = format!(
        "with `{}` the `.const` variables need {} bytes, and there are {CONST_BYTES}",
        name.text, cx.const_bytes
    );
    Err(cx.push(Diagnostic::error(Code::Layout, name.span, message).section("Constant State Space")))
}

fn refuse_init(cx: &mut Cx<'_>, name: ast::Name<'_>, space: StateSpace, is_extern: bool) -> Result<(), Told> {
    let message = if is_extern {
        format!("`{}` is `.extern`: its initialiser stands where it is defined", name.text)
    } else if space == StateSpace::Shared {
        format!("`{}` cannot have an initialiser: shared memory begins undefined", name.text)
    } else {
        return Ok(());
    };
    Err(cx.push(Diagnostic::error(Code::Layout, name.span, message).section("Initializers")))
}

/// Declares a `.shared`, `.global` or `.const` variable of a body as a symbol of the module.
pub(crate) fn body_var<'a>(
    cx: &mut Cx<'a>,
    decl: &'a ast::VarDecl<'a>,
    var: &'a ast::Var<'a>,
    shape: Extent,
    space: StateSpace,
    owner: (SymbolId, &str, Span),
) -> Result<SymbolId, Told> {
    let mut global = lasting(cx, decl, var, shape, space)?;
    let is_extern = matches!(decl.linkage, Some((ast::Linkage::Extern, _)));
    let symbol = |name: String, linkage: Linkage, global: GlobalVar| Symbol {
        name,
        linkage,
        kind: SymbolKind::Var(global),
        span: var.name.span,
    };
    if is_extern {
        // The name of an extern variable belongs to the module, wherever it is declared.
        if let Some(Global::Symbol(id)) = cx.globals.get(var.name.text).copied() {
            return Ok(id);
        }
        return cx.bind(var.name, symbol(var.name.text.to_owned(), Linkage::Extern, global));
    }
    global.owner = Some(owner.0);
    // The number makes the name unique: bodies may shadow their own names.
    let name = format!("{}${}${}", owner.1, var.name.text, cx.symbols.len());
    let id = cx.add(symbol(name, Linkage::Internal, global));
    if has_attribute(decl, ".unified") {
        cx.unified.insert(id);
    }
    Ok(id)
}
