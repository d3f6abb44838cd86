//! Special registers as operands.
//!
//! # PTX ISA
//! Special Registers.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_ir::types::{ScalarType, TypeClass};
use handloom_isa::form::{Kind, Role, Value};
use handloom_isa::sreg::{Found, What, is_family, lookup};

use crate::context::{Told, index};
use crate::fit::Side;
use crate::module::Operand;
use crate::scope::{BodyCx, InstCx, Pairing};

const SECTION: &str = "Special Registers";

impl<'a> BodyCx<'_, 'a> {
    /// A special register as an operand, or a name that nobody knows. `span` covers the name and the word after its dot.
    pub fn special(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        name: &'a str,
        span: Span,
    ) -> Result<Operand, Told> {
        let shown: &'a str = self.cx.text.get(index(span.start)..index(span.end)).unwrap_or(name);
        let Some(found) = lookup(shown) else {
            if is_family(name) {
                let d = Diagnostic::error(Code::Unknown, span, format!("there is no special register `{shown}`"));
                return Err(self.cx.push(d.section(SECTION)));
            }
            return Err(self.undeclared(name, span));
        };
        self.readable(icx, p, &found, shown, span)?;
        let What::Scalar(sreg) = found.what else {
            let d = Diagnostic::error(Code::OperandKind, span, format!("`{shown}` is a vector of four"));
            return Err(self.cx.push(d.help(format!("name a component, as `{shown}.x`")).section(SECTION)));
        };
        Ok(Operand::Sreg { sreg, ty: found.ty, to: p.rule.map_or(found.ty, |r| r.ty) })
    }

    /// A whole special register such as `%tid`, as the first `n` of its components.
    pub fn special_vector(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        name: &'a str,
        n: u8,
    ) -> Result<Operand, Told> {
        let Some(found) = lookup(name) else { return Err(self.undeclared(name, p.written.span)) };
        self.readable(icx, p, &found, name, p.written.span)?;
        let What::Vector(components) = found.what else {
            return Err(self.wrong_kind(icx, p, &format!("a vector of {n} registers")));
        };
        let to = p.rule.map_or(found.ty, |r| r.ty);
        let all = components.into_iter().take(usize::from(n));
        Ok(Operand::Vector(all.map(|sreg| Operand::Sreg { sreg, ty: found.ty, to }).collect()))
    }

    /// Reports why a special register cannot be here.
    fn readable(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        found: &Found,
        shown: &str,
        span: Span,
    ) -> Result<(), Told> {
        if p.side == Side::Destination {
            let message = format!("the special register `{shown}` cannot be written");
            let d = Diagnostic::error(Code::OperandKind, span, message);
            return Err(self.cx.push(d.section(SECTION)));
        }
        // The assembler lets `cvt` read one into an integer, not into a float.
        let integer_cvt =
            icx.is("cvt") && !matches!(icx.used.value(Role::Type), Some(Value::Ty(t)) if t.class() == TypeClass::Float);
        if !(p.wanted.kind == Kind::MovSource && icx.is("mov") || integer_cvt) {
            let message = format!("`{}` cannot read the special register `{shown}`", icx.words());
            let d = Diagnostic::error(Code::OperandKind, span, message);
            return Err(self.cx.push(d.help("read it with `mov` first").section(SECTION)));
        }
        if let Some(text) = self.cx.gate(found.needs) {
            let d = Diagnostic::error(Code::Gate, span, format!("`{shown}` {text}"));
            return Err(self.cx.push(d.section(SECTION)));
        }
        let to = p.rule.map_or(found.ty, |r| r.ty);
        if !reads(found, to, integer_cvt) {
            let message = format!("`{shown}` is `{}`, which `{}` cannot read", found.ty, icx.words());
            let d = Diagnostic::error(Code::OperandType, span, message);
            return Err(self.cx.push(d.section(SECTION)));
        }
        Ok(())
    }
}

/// Whether an instruction type reads a special register: at its width, or at the one it had in old versions; `cvt` also less of it.
fn reads(found: &Found, to: ScalarType, less: bool) -> bool {
    if found.ty == ScalarType::Pred {
        return to == ScalarType::Pred;
    }
    let whole = matches!(to.class(), TypeClass::Bits | TypeClass::Unsigned | TypeClass::Signed);
    whole
        && (to.bits() == found.ty.bits()
            || less && to.bits() < found.ty.bits()
            || found.legacy.is_some_and(|l| l.bits() == to.bits()))
}
