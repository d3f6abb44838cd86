//! What is told of operands and names that do not fit.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_ir::types::ScalarType;
use handloom_isa::find::Chosen;
use handloom_isa::form::{Form, Reason};
use handloom_syntax::ast::{self, OperandKind};

use crate::consts::{Mismatch, literal_mismatch};
use crate::context::{Told, index};
use crate::forms::{Rule, syntax_of, words_of};
use crate::names::Bind;
use crate::scope::{BodyCx, InstCx, Named, Pairing};

/// The section on types of registers.
pub(crate) const TYPES_SECTION: &str = "Type Information for Instructions and Operands";
const WIDE_SECTION: &str = "Operand Size Exceeding Instruction-Type Size";

impl<'a> BodyCx<'_, 'a> {
    /// Tells that a name is not declared, once a function.
    pub fn undeclared(&mut self, name: &'a str, span: Span) -> Told {
        if !self.told.insert(name) {
            return Told;
        }
        let d = Diagnostic::error(Code::Unknown, span, format!("`{name}` is not declared in `{}`", self.name));
        if let Some(at) = self.cx.defined.get(name) {
            return self.cx.push(d.also(*at, "defined here").help("declare it before its first use"));
        }
        if let Some(help) = self.beyond_range(name) {
            return self.cx.push(d.help(help));
        }
        if self.cx.suggestions_left == 0 {
            return self.cx.push(d);
        }
        let mut names: Vec<&str> = self.scopes.in_sight().collect();
        names.extend(self.cx.globals.keys());
        let d = self.cx.with_suggestion(d, name, names.into_iter());
        self.cx.push(d)
    }

    /// Help for a register number beyond its range.
    fn beyond_range(&self, name: &str) -> Option<String> {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        if stem.len() == name.len() {
            return None;
        }
        let (prefix, count) = (stem, self.scopes.range_count(stem)?);
        Some(format!("`{prefix}<{count}>` declares `{prefix}0` to `{prefix}{}`", count.saturating_sub(1)))
    }

    /// Tells a rule's reason: an error, or a warning and no refusal. The place is the guilty word unless `at` is given.
    pub fn reason(&mut self, icx: &InstCx<'_, 'a>, reason: Reason, at: Option<Span>) -> Result<(), Told> {
        let guilty = reason.word.and_then(|w| icx.ast.qualifiers.iter().find(|q| q.text == w));
        let span = at.unwrap_or(guilty.map_or(icx.ast.opcode.span, |q| q.span));
        let mut d = if reason.warning {
            Diagnostic::warning(Code::WForbidden, span, reason.message)
        } else {
            Diagnostic::error(Code::Illegal, span, reason.message)
        };
        d.help = reason.help;
        let told = self.cx.push(d.section(icx.form().section));
        if reason.warning { Ok(()) } else { Err(told) }
    }

    pub fn wrong_count(&mut self, i: &ast::Inst<'_>, form: &'static Form, chosen: &Chosen) -> Told {
        let n = i.operands.len();
        let words = words_of(i);
        let (least, all) = handloom_isa::find::n_operands_of(form, chosen);
        let wanted = match (least, all) {
            (0, 0) => "takes no operands".to_owned(),
            (1, 1) => "takes one operand".to_owned(),
            (a, b) if a == b => format!("takes {a} operands"),
            (a, b) => format!("takes {a} to {b} operands"),
        };
        let given = if n == 1 { "1 is given".to_owned() } else { format!("{n} are given") };
        let span = i.operands.get(all).or(i.operands.last()).map_or(i.opcode.span, |o| o.span);
        let d = Diagnostic::error(Code::OperandCount, span, format!("`{words}` {wanted}, {given}"));
        self.cx.push(d.help(format!("write `{}`", syntax_of(form, chosen, &words))).section(form.section))
    }

    /// Tells that an operand is of another kind than wanted.
    pub fn wrong_kind(&mut self, icx: &InstCx<'_, 'a>, p: Pairing<'a, 'a>, wanted: &str) -> Told {
        let given = match &p.written.kind {
            OperandKind::Name(_) | OperandKind::Member(..) => "a name",
            OperandKind::Expr(_) => "a constant",
            OperandKind::Vector(_) => "a vector",
            OperandKind::Address(_) | OperandKind::Indexed(..) => "an address",
            OperandKind::Sink => "`_`",
            OperandKind::Not(_) => "a negated predicate",
            OperandKind::Neg(_) => "a negated register",
            OperandKind::Pair(..) => "a pair",
            OperandKind::Paren(_) => "a list in parentheses",
        };
        let message = format!("`{}` takes {wanted} as `{}`, not {given}", icx.words(), p.wanted.name);
        let d = Diagnostic::error(Code::OperandKind, p.written.span, message);
        self.cx.push(d.section(icx.form().section))
    }

    pub fn wrong_type(
        &mut self,
        icx: &InstCx<'_, 'a>,
        p: Pairing<'a, 'a>,
        rule: Rule,
        ty: ScalarType,
        span: Span,
    ) -> Told {
        const REGISTERS: &[ScalarType] = &[
            ScalarType::Pred,
            ScalarType::B8,
            ScalarType::B16,
            ScalarType::B32,
            ScalarType::B64,
            ScalarType::B128,
            ScalarType::U8,
            ScalarType::U16,
            ScalarType::U32,
            ScalarType::U64,
            ScalarType::S8,
            ScalarType::S16,
            ScalarType::S32,
            ScalarType::S64,
            ScalarType::F16,
            ScalarType::F16x2,
            ScalarType::F32,
            ScalarType::F64,
        ];
        let text = self.cx.text.get(index(span.start)..index(span.end)).unwrap_or("");
        let message = format!("`{}` cannot take the `{ty}` register `{text}` as `{}`", icx.words(), p.wanted.name);
        let takes = |r: &ScalarType| rule.fits(*r, p.side).is_some();
        let fitting: Vec<String> = REGISTERS.iter().filter(|r| takes(r)).map(|r| format!("`{r}`")).collect();
        let section = if rule.relaxed { WIDE_SECTION } else { TYPES_SECTION };
        let d = Diagnostic::error(Code::OperandType, span, message).section(section);
        let d = if fitting.is_empty() { d } else { d.help(format!("registers of type {}", fitting.join(", "))) };
        self.cx.push(d)
    }

    pub fn no_value(&mut self, icx: &InstCx<'_, 'a>, found: Named<'a>, name: &str, span: Span) -> Told {
        let what = self.what(found);
        let message = format!("`{name}` is {what}, which `{}` cannot take as a value", icx.words());
        let d = Diagnostic::error(Code::WrongKind, span, message);
        let is_memory = matches!(found, Named::Symbol(_) | Named::Bind(Bind::Symbol(_) | Bind::Var(_)));
        self.cx.push(if is_memory { d.help("load it, or take its address with `mov`") } else { d })
    }

    pub fn no_sum(&mut self, span: Span) -> Told {
        self.cx.push(literal_mismatch(Mismatch::Address, ScalarType::B64, span))
    }

    /// Reports that no sign may come before an operand.
    pub fn no_sign(&mut self, icx: &InstCx<'_, 'a>, p: Pairing<'a, 'a>) -> Told {
        let message = format!("`{}` takes no negated register", icx.words());
        let d = Diagnostic::error(Code::OperandKind, p.written.span, message).section(icx.form().section);
        self.cx.push(d.help("negate it with `neg` first"))
    }
}
