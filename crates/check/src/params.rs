//! Parameter lists: of functions, entries and prototypes.
//!
//! # PTX ISA
//! Parameter State Space; Kernel Function Parameter Attributes; Function Declarations and Definitions.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_ir::types::ScalarType;
use handloom_syntax::ast;

use crate::layout::{align_up, element, shape, small};
use crate::module::ParamLayout;
use crate::report::Report;
use crate::words::is_opaque;

/// A parameter as written, with its layout; `None` after an error that has been told.
pub(crate) struct Param<'a> {
    /// Its name.
    pub name: ast::Name<'a>,
    /// Declared as a register: type and number of components.
    pub reg: Option<(ScalarType, u8)>,
    /// Layout, with its offset once the block is laid out.
    pub layout: Option<ParamLayout>,
}

/// Results and parameters.
pub(crate) struct Signature<'a> {
    /// Results in order.
    pub results: Vec<Param<'a>>,
    /// Parameters in order.
    pub params: Vec<Param<'a>>,
    /// Bytes of the block: parameters, then results.
    pub bytes: u32,
    /// No error in it.
    pub sound: bool,
}

impl Signature<'_> {
    /// Layouts of the parameters.
    pub fn param_layouts(&self) -> Vec<ParamLayout> {
        self.params.iter().filter_map(|p| p.layout.clone()).collect()
    }

    /// Layouts of the results.
    pub fn result_layouts(&self) -> Vec<ParamLayout> {
        self.results.iter().filter_map(|p| p.layout.clone()).collect()
    }
}

/// What parameters belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Of {
    /// An `.entry`.
    Entry,
    /// A `.func`.
    Func,
    /// A `.callprototype`.
    Prototype,
}

/// Lays out a signature.
pub(crate) fn signature<'a>(
    results: &'a [ast::VarDecl<'a>],
    params: &'a [ast::VarDecl<'a>],
    of: Of,
    report: &mut Report,
) -> Signature<'a> {
    let before = report.n_errors();
    let is_entry = of == Of::Entry;
    if is_entry && let Some(first) = results.first() {
        let d = Diagnostic::error(Code::Layout, first.span, "an `.entry` has no results");
        report.push(d.help("write results to memory").section("Kernel and Function Directives: .entry"));
    }
    if results.len() > 1
        && let Some(first) = results.iter().find(|r| r.space.text == ".param")
    {
        let d = Diagnostic::error(Code::Layout, first.span, "several results are declared `.reg`, not `.param`");
        report.push(d.help("or one array in `.param`").section("Function Declarations and Definitions"));
    }
    let mut bytes = Some(0u32);
    let params = list(params, of, true, &mut bytes, report);
    let results = list(results, of, false, &mut bytes, report);
    let mut sound = report.n_errors() == before;
    let too_large = bytes.is_none_or(|b| is_entry && b > MAX_ENTRY_BYTES);
    if too_large && sound {
        let span = params.first().map_or(Span::NONE, |p| p.name.span);
        report.push(Diagnostic::error(Code::Layout, span, "the parameters are too large"));
        sound = false;
    }
    Signature { results, params, bytes: bytes.unwrap_or(0), sound }
}

/// Bytes of the parameters of an entry.
const MAX_ENTRY_BYTES: u32 = 32764;

fn list<'a>(
    decls: &'a [ast::VarDecl<'a>],
    of: Of,
    may_be_open: bool,
    bytes: &mut Option<u32>,
    report: &mut Report,
) -> Vec<Param<'a>> {
    let is_entry = of == Of::Entry;
    let mut out = Vec::with_capacity(decls.len());
    for (d, decl) in decls.iter().enumerate() {
        if of == Of::Func && is_opaque(decl.ty.text) {
            let message = format!("a `{}` cannot be a parameter of a `.func`", decl.ty.text);
            let d = Diagnostic::error(Code::Layout, decl.span, message);
            report.push(d.help("pass its address").section("Texture Sampler and Surface Types"));
            out.extend(decl.vars.iter().map(|var| Param { name: var.name, reg: None, layout: None }));
            continue;
        }
        let space_fits = match decl.space.text {
            ".param" => true,
            ".reg" => !is_entry,
            _ => false,
        };
        if !space_fits {
            let what = if is_entry { "of an `.entry` is declared `.param`" } else { "is declared `.param` or `.reg`" };
            let message = format!("a parameter {what}, not `{}`", decl.space.text);
            report.push(Diagnostic::error(Code::Layout, decl.space.span, message).section("Parameter State Space"));
        }
        let is_reg = decl.space.text == ".reg";
        pointer(decl, of, report);
        let element =
            if space_fits { element(decl, report).filter(|e| fits_param(decl, e.n, is_reg, report)) } else { None };
        for (v, var) in decl.vars.iter().enumerate() {
            let is_last = d + 1 == decls.len() && v + 1 == decl.vars.len();
            let mut param = Param { name: var.name, reg: None, layout: None };
            if let Some(e) = element
                && let Some(s) = shape(e, var, report)
                && let Some(size) = small(s.size, var.name.span, report)
            {
                if of == Of::Func {
                    of_function(var, e.align, is_reg, report);
                }
                if s.dims.contains(&0) && (is_entry || !may_be_open || !is_last) {
                    report.push(open_parameter(var.name, is_entry));
                }
                param.reg = is_reg.then_some((e.ty, e.n));
                let offset = bytes.and_then(|b| align_up(b, e.align));
                *bytes = offset.and_then(|o| o.checked_add(size)).filter(|b| *b < 1 << 30);
                let name = if var.name.text == "_" { String::new() } else { var.name.text.to_owned() };
                param.layout = Some(ParamLayout {
                    name,
                    offset: offset.unwrap_or(0),
                    size,
                    align: e.align,
                    ty: e.ty,
                    is_array: !s.dims.is_empty(),
                    components: e.n,
                    reg: None,
                });
            }
            out.push(param);
        }
    }
    out
}

fn fits_param(decl: &ast::VarDecl<'_>, n: u8, is_reg: bool, report: &mut Report) -> bool {
    if n > 1 && !is_reg {
        let d = Diagnostic::error(Code::Layout, decl.span, "a parameter cannot be of a vector type");
        report.push(d.help("declare an array with an alignment").section("Parameter State Space"));
    }
    n == 1 || is_reg
}

/// What `.ptr` says fits.
fn pointer(decl: &ast::VarDecl<'_>, of: Of, report: &mut Report) {
    const SECTION: &str = "Kernel Function Parameter Attributes: .ptr";
    let Some(ptr) = decl.ptr else { return };
    if of != Of::Entry {
        let d = Diagnostic::error(Code::Layout, decl.span, "`.ptr` belongs to parameters of an `.entry`");
        report.push(d.section(SECTION));
    } else if let Some(align) = ptr.align
        && !align.is_power_of_two()
    {
        let d = Diagnostic::error(Code::Layout, decl.span, format!("the alignment {align} is not a power of two"));
        report.push(d.section(SECTION));
    }
}

/// What only the parameters and results of a `.func` must keep to.
fn of_function(var: &ast::Var<'_>, align: u32, is_reg: bool, report: &mut Report) {
    let message = if var.name.text == "_" {
        "a parameter of a `.func` has a name".to_owned()
    } else if is_reg && !var.dims.is_empty() {
        format!("`{}` is a register, and there are no arrays of registers", var.name.text)
    } else if align > MAX_FUNC_ALIGN {
        format!("`{}` is aligned to {align} bytes, and {MAX_FUNC_ALIGN} are the most of a `.func`", var.name.text)
    } else {
        return;
    };
    let d = Diagnostic::error(Code::Layout, var.name.span, message);
    report.push(d.section("Function Declarations and Definitions"));
}

/// Largest alignment of a parameter of a `.func`.
const MAX_FUNC_ALIGN: u32 = 128;

fn open_parameter(name: ast::Name<'_>, is_entry: bool) -> Diagnostic {
    let message = if is_entry {
        format!("the size of the parameter `{}` of an entry must be known", name.text)
    } else {
        format!("only the last parameter can be an array of unknown size, and `{}` is not", name.text)
    };
    Diagnostic::error(Code::Layout, name.span, message).section("Parameter State Space")
}
