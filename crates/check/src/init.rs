//! Initialisers: nested lists of constants and addresses, as bytes and relocations.
//!
//! # PTX ISA
//! Variables: Initializers.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_ir::types::{ScalarType, StateSpace, TypeClass};
use handloom_syntax::ast;

use crate::consts::{Const, SymbolAddress, eval, to_bits};
use crate::context::{Cx, Global, Told};
use handloom_isa::target::{Needs, Version};

use crate::consts::literal_mismatch;
use crate::gates;
use crate::layout::{Extent, sized};
use crate::module::{Reloc, SymbolKind};

/// Initial bytes of a variable.
#[derive(Debug, Default)]
pub(crate) struct Initial {
    /// Bytes as far as given.
    pub bytes: Vec<u8>,
    /// Addresses in them.
    pub relocs: Vec<Reloc>,
}

const SECTION: &str = "Initializers";
const NO_MEMBERS: &str = "only textures, samplers and surfaces have members";
/// Initial bytes beyond this are refused: no text of this size can give them one by one.
const MAX_INIT_BYTES: u64 = 1 << 32;

/// Evaluates an initialiser. Sets the extent of `[]`.
pub(crate) fn initialise<'a>(
    cx: &mut Cx<'a>,
    shape: &mut Extent,
    init: &'a ast::Init<'a>,
    name: Span,
) -> Result<Initial, Told> {
    let element = shape.element;
    if matches!(element.ty, ScalarType::F16 | ScalarType::F16x2 | ScalarType::Pred) {
        let d =
            Diagnostic::error(Code::Layout, name, format!("a `{}` variable cannot have an initialiser", element.ty));
        return Err(cx.push(d.help("declare it with a bit type and write the bits").section(SECTION)));
    }
    let mut dims = shape.dims.clone();
    if element.n > 1 {
        dims.push(u64::from(element.n));
    }
    if shape.is_unsized {
        let n = open_extent(init);
        dims[0] = n;
        shape.dims[0] = n;
        shape.size = sized(shape, name, &mut cx.report).ok_or(Told)?;
    }
    let mut writer = Writer { cx, ty: element.ty, out: Initial::default(), faults: 0 };
    match (init, dims.is_empty()) {
        (ast::Init::Value(e), true) => writer.value(e, 0),
        (ast::Init::List(items, _), false) => writer.list(items, &dims, 0),
        (ast::Init::Value(e), false) => writer.fault(nesting(e.span, "an array or vector takes a list in braces")),
        (ast::Init::List(_, span), true) => writer.fault(nesting(*span, "a scalar takes one value without braces")),
        (ast::Init::Members(_, span), _) => writer.fault(nesting(*span, NO_MEMBERS)),
    }
    if writer.faults > 0 { Err(Told) } else { Ok(writer.out) }
}

fn nesting(span: Span, message: &str) -> Diagnostic {
    Diagnostic::error(Code::Layout, span, message)
}

/// Extent of `[]`: the number of items of the outermost list.
fn open_extent(init: &ast::Init<'_>) -> u64 {
    match init {
        ast::Init::List(items, _) => u64::try_from(items.len()).unwrap_or(u64::MAX),
        ast::Init::Value(_) | ast::Init::Members(..) => 1,
    }
}

struct Writer<'c, 'a> {
    cx: &'c mut Cx<'a>,
    ty: ScalarType,
    out: Initial,
    faults: u32,
}

impl<'a> Writer<'_, 'a> {
    fn fault(&mut self, d: Diagnostic) {
        self.faults += 1;
        self.cx.push(d.section(SECTION));
    }

    /// Writes a list into the array of extents `dims` that begins at element `start`. The braces follow the dimensions.
    fn list(&mut self, items: &'a [ast::Init<'a>], dims: &[u64], start: u64) {
        let Some((&extent, inner)) = dims.split_first() else { return };
        let row = inner.iter().fold(1u64, |n, d| n.saturating_mul(*d));
        for (at, item) in (0u64..).zip(items) {
            let span = match item {
                ast::Init::List(_, span) | ast::Init::Members(_, span) => *span,
                ast::Init::Value(e) => e.span,
            };
            if at >= extent {
                return self.fault(nesting(span, "more values than the variable has room for"));
            }
            let place = start.saturating_add(at.saturating_mul(row));
            match (item, inner.is_empty()) {
                (ast::Init::Value(e), true) => self.value(e, place),
                (ast::Init::List(items, _), false) => self.list(items, inner, place),
                (ast::Init::List(..), true) => return self.fault(nesting(span, "braces nested deeper than the array")),
                (ast::Init::Members(..), _) => return self.fault(nesting(span, NO_MEMBERS)),
                (ast::Init::Value(_), false) => {
                    return self.fault(nesting(span, "each row of an array, and each vector, is a list in braces"));
                }
            }
        }
    }

    fn value(&mut self, e: &'a ast::Expr<'a>, element: u64) {
        let offset = element.saturating_mul(u64::from(self.ty.bytes()));
        let constant = match eval(e) {
            Ok(c) => c,
            Err(d) => return self.fault(*d),
        };
        if let Const::Address(a) = constant {
            return self.address(a, e.span, offset);
        }
        // Here, unlike in an instruction, a float fits a `.b32` variable however it is written: it is rounded to `.f32`.
        let is_float = matches!(constant, Const::Float(_) | Const::Float32(_));
        let ty = match self.ty {
            ScalarType::B32 if is_float => ScalarType::F32,
            ScalarType::B64 if is_float => ScalarType::F64,
            ty => ty,
        };
        match to_bits(constant, ty) {
            Ok(bits) => {
                if bits.cut {
                    let message = format!("the value does not fit `{}` and is cut", self.ty);
                    self.cx.push(Diagnostic::warning(Code::WLiteral, e.span, message));
                }
                let wide = u128::from(bits.low) | (u128::from(bits.high) << 64);
                self.write(offset, &wide.to_le_bytes(), e.span);
            }
            Err(mismatch) => self.fault(literal_mismatch(mismatch, self.ty, e.span)),
        }
    }

    /// Writes one element's bytes, padding what was left out before it.
    fn write(&mut self, offset: u64, bytes: &[u8], span: Span) {
        let n = usize::try_from(self.ty.bytes()).unwrap_or(1);
        let Some(at) = usize::try_from(offset).ok().filter(|_| offset < MAX_INIT_BYTES) else {
            return self.fault(Diagnostic::error(Code::Layout, span, "the initialiser is too large"));
        };
        if self.out.bytes.len() < at {
            self.out.bytes.resize(at, 0);
        }
        self.out.bytes.truncate(at);
        self.out.bytes.extend_from_slice(&bytes[..n]);
    }

    fn address(&mut self, a: SymbolAddress<'a>, span: Span, offset: u64) {
        let ty = self.ty;
        let wide_enough = if a.mask.is_some() { ty.bits() != 16 } else { matches!(ty.bits(), 32 | 64) };
        if ty.class() != TypeClass::Unsigned || !wide_enough {
            let message = format!("an address does not fit a `{ty}` variable");
            let d = Diagnostic::error(Code::Layout, span, message);
            return self.fault(d.help("`.u32` or `.u64`, or `.u8` with a mask as in `0xFF(x)`"));
        }
        if a.mask.is_some() {
            gates::needs(self.cx, "0xFF(..)", span, Needs::ptx(7, 1));
        }
        if a.generic {
            gates::needs(self.cx, "generic(..)", span, Needs::ptx(3, 1));
        }
        let target = match self.cx.globals.get(a.name).copied() {
            Some(Global::Symbol(id)) => id,
            Some(Global::Poison) => {
                self.faults += 1;
                return;
            }
            None => {
                self.faults += 1;
                self.cx.undeclared_symbol(a.name, a.span);
                return;
            }
        };
        if let SymbolKind::Var(v) = &self.cx.symbol(target).kind
            && v.space == StateSpace::Shared
        {
            let message = format!("`{}` lies in `.shared`: its address is not known before the launch", a.name);
            return self.fault(
                Diagnostic::error(Code::Layout, a.span, message).help("only `.global`, `.const` and functions"),
            );
        }
        let shift = a.mask.map_or(0, |m| u8::try_from(m.trailing_zeros()).unwrap_or(0));
        // Choice: a masked address is one byte; a wider element is zero above it.
        let size = if a.mask.is_some() { 1 } else { u8::try_from(ty.bytes()).unwrap_or(8) };
        let Ok(place) = u32::try_from(offset) else {
            return self.fault(Diagnostic::error(Code::Layout, span, "the initialiser is too large"));
        };
        self.write(offset, &[0; 16], span);
        let generic = a.generic || self.cx.version < Version::new(3, 1);
        self.out.relocs.push(Reloc { offset: place, size, target, addend: a.addend, shift, generic });
    }
}
