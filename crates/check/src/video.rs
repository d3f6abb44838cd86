//! Operands of video instructions: a register with a selector after it or a sign before it.

use handloom_diag::{Code, Diagnostic};
use handloom_ir::types::ScalarType;
use handloom_isa::selector::{Select, Selector};
use handloom_syntax::ast::OperandKind;

use crate::context::Told;
use crate::module::Operand;
use crate::names::Bind;
use crate::scope::{BodyCx, InstCx, Named, Pairing};

impl<'a> BodyCx<'_, 'a> {
    /// Checks an operand, and notes in the use what is written with it.
    pub fn video(
        &mut self,
        icx: &mut InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        select: Select,
        literal: bool,
        negatable: bool,
    ) -> Result<Operand, Told> {
        let (at, written) = (icx.at, p.written);
        let p = match &written.kind {
            OperandKind::Neg(inner) if negatable => {
                icx.used.marks[at].negated = true;
                if let OperandKind::Name(name) | OperandKind::Member(name, _) = &inner.kind
                    && let Some(Named::Bind(Bind::Reg(r))) = self.named(name)?
                    && r.ty == ScalarType::F16x2
                {
                    return Err(self.wrong_kind(icx, p, "an integer register behind `-`"));
                }
                Pairing { written: inner, ..p }
            }
            OperandKind::Neg(_) => return Err(self.no_sign(icx, p)),
            _ => p,
        };
        match &p.written.kind {
            OperandKind::Name(name) => self.name(icx, p, name, p.written.span),
            OperandKind::Member(name, words) => match (self.named(name)?, &words[..]) {
                (Some(Named::Bind(Bind::Reg(r))), [word]) if r.n == 1 => {
                    // A wrong one is noted too: what the record's rules would say of its absence is not what is wrong.
                    let selector = Selector::parse(word);
                    icx.used.marks[at].selector = selector;
                    if !selector.is_some_and(|s| select.takes(s)) {
                        return Err(self.wrong_selector(icx, p, select, word));
                    }
                    self.name(icx, p, name, p.written.span)
                }
                _ => self.member(icx, p, name, words),
            },
            OperandKind::Expr(e) if literal => self.constant(icx, p, e),
            _ => Err(self.wrong_kind(icx, p, "a register")),
        }
    }

    fn wrong_selector(&mut self, icx: &InstCx<'_, 'a>, p: Pairing<'a, 'a>, select: Select, word: &str) -> Told {
        let message = format!("`{}` takes no selector `.{word}` behind `{}`", icx.words(), p.wanted.name);
        let d = Diagnostic::error(Code::OperandKind, p.written.span, message).section(icx.form().section);
        self.cx.push(d.help(select.expected()))
    }
}
