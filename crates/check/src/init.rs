//! Initialisers: nested lists of constants and addresses, as bytes and relocations.
//!
//! # PTX ISA
//! Variables: Initializers.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_ir::types::{ScalarType, StateSpace, TypeClass};
use handloom_syntax::ast;

use crate::consts::{Const, SymbolAddress, eval, to_bits};
use crate::context::{Cx, Global, Told};
use crate::layout::{Shape, sized};
use crate::module::{Reloc, SymbolKind};
use crate::operands::literal_mismatch;

/// Initial bytes of a variable.
#[derive(Debug, Default)]
pub(crate) struct Initial {
    /// Bytes as far as given.
    pub bytes: Vec<u8>,
    /// Addresses in them.
    pub relocs: Vec<Reloc>,
}

const SECTION: &str = "Initializers";
/// Initial bytes beyond this are refused: no text of this size can give them one by one.
const MAX_INIT_BYTES: u64 = 1 << 32;

/// Evaluates an initialiser. Gives `[]` its extent.
pub(crate) fn initialise<'a>(
    cx: &mut Cx<'a>,
    shape: &mut Shape,
    init: &'a ast::Init<'a>,
    name: Span,
) -> Result<Initial, Told> {
    let element = shape.element;
    if matches!(element.ty, ScalarType::F16 | ScalarType::F16x2 | ScalarType::Pred) {
        let d = Diagnostic::error(Code::Layout, name, format!("a `{}` variable cannot have an initialiser", element.ty));
        return Err(cx.push(d.help("declare it with a bit type and write the bits").section(SECTION)));
    }
    let mut dims = shape.dims.clone();
    if element.n > 1 {
        dims.push(u64::from(element.n));
    }
    if shape.is_unsized {
        let n = open_extent(&dims[1..], init);
        dims[0] = n;
        shape.dims[0] = n;
        shape.size = sized(shape, name, &mut cx.report).ok_or(Told)?;
    }
    let mut writer = Writer { cx, ty: element.ty, out: Initial::default(), faults: 0 };
    match (init, dims.is_empty()) {
        (ast::Init::Value(e), true) => writer.value(e, 0),
        (ast::Init::List(items, _), true) if matches!(items.as_slice(), [ast::Init::Value(_)]) => {
            if let [ast::Init::Value(e)] = items.as_slice() {
                writer.value(e, 0);
            }
        }
        (ast::Init::Value(e), false) => {
            let d = Diagnostic::error(Code::Layout, e.span, "an array or vector takes a list in braces");
            writer.fault(d);
        }
        (ast::Init::List(_, span), true) => {
            let d = Diagnostic::error(Code::Layout, *span, "a scalar takes one value");
            writer.fault(d);
        }
        (ast::Init::List(items, _), false) => writer.list(items, &dims, 0),
    }
    if writer.faults > 0 { Err(Told) } else { Ok(writer.out) }
}

/// Extent of `[]`: the items of the list, or of flat values as many rows as they fill.
fn open_extent(inner: &[u64], init: &ast::Init<'_>) -> u64 {
    let ast::Init::List(items, _) = init else { return 1 };
    let n = u64::try_from(items.len()).unwrap_or(u64::MAX);
    if items.iter().any(|i| matches!(i, ast::Init::List(..))) {
        return n;
    }
    let row: u64 = inner.iter().product::<u64>().max(1);
    n.div_ceil(row)
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

    /// Writes a list into the array of extents `dims` that begins at element `start`.
    fn list(&mut self, items: &'a [ast::Init<'a>], dims: &[u64], start: u64) {
        let Some((_, inner)) = dims.split_first() else { return };
        let total = dims.iter().fold(1u64, |n, d| n.saturating_mul(*d));
        let row = inner.iter().fold(1u64, |n, d| n.saturating_mul(*d));
        let mut at = 0u64;
        for item in items {
            let (span, width) = match item {
                ast::Init::List(_, span) => (*span, row),
                ast::Init::Value(e) => (e.span, 1),
            };
            if matches!(item, ast::Init::List(..)) {
                at = at.next_multiple_of(row.max(1));
            }
            if at.saturating_add(width) > total {
                let d = Diagnostic::error(Code::Layout, span, "more values than the variable has room for");
                return self.fault(d);
            }
            match item {
                ast::Init::Value(e) => self.value(e, start + at),
                ast::Init::List(_, span) if inner.is_empty() => {
                    let d = Diagnostic::error(Code::Layout, *span, "braces nested deeper than the array");
                    return self.fault(d);
                }
                ast::Init::List(items, _) => self.list(items, inner, start + at),
            }
            at += width;
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
        match to_bits(constant, self.ty) {
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
        let integer = matches!(ty.class(), TypeClass::Bits | TypeClass::Unsigned | TypeClass::Signed);
        let wide_enough = if a.mask.is_some() { ty.bits() >= 8 } else { matches!(ty.bits(), 32 | 64) };
        if !integer || !wide_enough {
            let message = format!("an address does not fit a `{ty}` variable");
            let d = Diagnostic::error(Code::Layout, span, message);
            return self.fault(d.help("`.u32` or `.u64`, or `.u8` with a mask as in `0xFF(x)`"));
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
            return self.fault(Diagnostic::error(Code::Layout, a.span, message).help("only `.global`, `.const` and functions"));
        }
        let shift = a.mask.map_or(0, |m| u8::try_from(m.trailing_zeros()).unwrap_or(0));
        // Choice: a masked address is one byte; a wider element is zero above it.
        let size = if a.mask.is_some() { 1 } else { u8::try_from(ty.bytes()).unwrap_or(8) };
        let Ok(place) = u32::try_from(offset) else {
            return self.fault(Diagnostic::error(Code::Layout, span, "the initialiser is too large"));
        };
        self.write(offset, &[0; 16], span);
        let generic = a.generic || self.cx.version < handloom_isa::target::Version::new(3, 1);
        self.out.relocs.push(Reloc { offset: place, size, target, addend: a.addend, shift, generic });
    }
}
