//! Sizes and alignments of variables and parameter blocks.
//!
//! # PTX ISA
//! Variables: Vectors, Array Declarations, Alignment; Parameter State Space.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_ir::num::image;
use handloom_ir::types::ScalarType;
use handloom_syntax::ast;

use crate::consts::{Const, eval};
use crate::report::Report;
use crate::words::{declared_type, is_opaque};

/// What all variables of one declaration share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element {
    /// Type of one component.
    pub ty: ScalarType,
    /// Components of a vector type; 1 otherwise.
    pub n: u8,
    /// Bytes of an element with all its components.
    pub bytes: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// How one variable is laid out.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    /// Its element.
    pub element: Element,
    /// Extents, outermost first; the first may be 0 for `[]`.
    pub dims: Vec<u64>,
    /// `[]`.
    pub is_unsized: bool,
    /// Size in bytes; 0 while unsized.
    pub size: u64,
}

/// More than any memory that could hold it.
const MAX_BYTES: u64 = 1 << 46;

/// Type, vector and alignment of a declaration. `None` after an error, which is told once for all its variables.
pub(crate) fn element(decl: &ast::VarDecl<'_>, report: &mut Report) -> Option<Element> {
    if let Some(element) = opaque(decl) {
        return Some(element);
    }
    let Some(ty) = declared_type(decl.ty.text) else {
        report.push(unknown_type(decl));
        return None;
    };
    let is_reg = decl.space.text == ".reg";
    if ty == ScalarType::Pred && !is_reg {
        let d = Diagnostic::error(Code::Layout, decl.ty.span, "a `.pred` variable can only be a register");
        report.push(d.section("Fundamental Types"));
        return None;
    }
    if ty == ScalarType::F16x2 && decl.space.text == ".param" {
        let d = Diagnostic::error(Code::Layout, decl.ty.span, "an `.f16x2` variable cannot stand in `.param`");
        report.push(d.help("declare it `.b32`").section("Parameter State Space"));
        return None;
    }
    let n = match decl.vector.map(|v| v.text) {
        None => 1,
        Some(".v2") => 2,
        Some(".v4") => 4,
        Some(other) => {
            let span = decl.vector.map_or(decl.span, |v| v.span);
            let d = Diagnostic::error(Code::Layout, span, format!("no variable can be declared `{other}`"));
            report.push(d.help("`.v2` or `.v4`").section("Vectors"));
            return None;
        }
    };
    let bytes = ty.bytes() * u32::from(n);
    if n > 1 && (bytes > 16 || ty == ScalarType::Pred) {
        let message = format!("a vector of {n} `{ty}` is wider than 128 bits");
        let message = if ty == ScalarType::Pred { "there are no vectors of predicates".to_owned() } else { message };
        report.push(Diagnostic::error(Code::Layout, decl.span, message).section("Vectors"));
        return None;
    }
    let align = alignment(decl, bytes, report)?;
    Some(Element { ty, n, bytes, align })
}

/// A texture, sampler or surface: its record, or as a parameter the handle of one.
fn opaque(decl: &ast::VarDecl<'_>) -> Option<Element> {
    if !is_opaque(decl.ty.text) {
        return None;
    }
    match decl.space.text {
        ".global" => Some(Element { ty: ScalarType::B8, n: 1, bytes: image::BYTES, align: image::ALIGN }),
        ".param" => Some(Element { ty: ScalarType::B64, n: 1, bytes: 8, align: 8 }),
        _ => None,
    }
}

fn alignment(decl: &ast::VarDecl<'_>, natural: u32, report: &mut Report) -> Option<u32> {
    let Some((align, span)) = decl.align else { return Some(natural) };
    let fits = u32::try_from(align).ok().filter(|a| a.is_power_of_two());
    if fits.is_none() {
        let d = Diagnostic::error(Code::Layout, span, format!("the alignment {align} is not a power of two"));
        report.push(d.section("Alignment"));
    }
    fits
}

fn unknown_type(decl: &ast::VarDecl<'_>) -> Diagnostic {
    let word = decl.ty.text;
    if is_opaque(word) {
        let message = format!("a `{word}` variable stands in `.global` or is a parameter of an entry");
        return Diagnostic::error(Code::Layout, decl.span, message).section("Texture Sampler and Surface Types");
    }
    let d = Diagnostic::error(Code::Layout, decl.ty.span, format!("`{word}` is no type of a variable"));
    match word {
        ".bf16" => d.help("declare it `.b16`").section("Alternate Floating-Point Data Formats"),
        ".bf16x2" | ".tf32" => d.help("declare it `.b32`").section("Alternate Floating-Point Data Formats"),
        _ => d.section("Fundamental Types"),
    }
}

/// How one variable is laid out of a declaration. `None` after an error.
pub(crate) fn shape(element: Element, var: &ast::Var<'_>, report: &mut Report) -> Option<Extent> {
    let mut dims = Vec::with_capacity(var.dims.len());
    let mut is_unsized = false;
    for (i, dim) in var.dims.iter().enumerate() {
        match dim {
            None if i == 0 => {
                is_unsized = true;
                dims.push(0);
            }
            None => {
                let message = format!("only the first dimension of `{}` may be left open", var.name.text);
                report.push(Diagnostic::error(Code::Layout, var.name.span, message).section("Array Declarations"));
                return None;
            }
            Some(e) => dims.push(extent(e, report)?),
        }
    }
    let mut shape = Extent { element, dims, is_unsized, size: 0 };
    shape.size = sized(&shape, var.name.span, report)?;
    Some(shape)
}

/// Size from the extents.
pub(crate) fn sized(shape: &Extent, span: Span, report: &mut Report) -> Option<u64> {
    let bytes = u64::from(shape.element.bytes);
    let size = shape.dims.iter().try_fold(bytes, |n, d| n.checked_mul(*d)).filter(|n| *n <= MAX_BYTES);
    if size.is_none() {
        report.push(Diagnostic::error(Code::Layout, span, "the array is too large"));
    }
    size
}

/// A size of a variable that has to fit the thread's own memory or a parameter block.
pub(crate) fn small(size: u64, span: Span, report: &mut Report) -> Option<u32> {
    let size = u32::try_from(size).ok().filter(|s| *s <= 1 << 30);
    if size.is_none() {
        report.push(Diagnostic::error(Code::Layout, span, "the variable is too large for its state space"));
    }
    size
}

fn extent(e: &ast::Expr<'_>, report: &mut Report) -> Option<u64> {
    match eval(e) {
        Ok(Const::Int { value, unsigned, .. }) if unsigned || value.cast_signed() >= 0 => return Some(value),
        Ok(_) => {
            let d = Diagnostic::error(Code::Layout, e.span, "the size of an array must be a positive integer");
            report.push(d.section("Array Declarations"));
        }
        Err(d) => report.push(*d),
    }
    None
}

/// `offset` rounded up to `align`.
pub(crate) fn align_up(offset: u32, align: u32) -> Option<u32> {
    offset.checked_next_multiple_of(align.max(1))
}
