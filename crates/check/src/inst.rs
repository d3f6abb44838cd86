//! One instruction: its record, its operands, its gates.

use handloom_diag::hash::FastSet;
use handloom_diag::{Code, Diagnostic};
use handloom_ir::types::ScalarType;
use handloom_isa::find::Chosen;
use handloom_isa::form::{self, Form, InRegisters, Is, Kind, Semantics, Use};
use handloom_isa::target::Needs;
use handloom_syntax::ast::{self, OperandKind};

use crate::context::{Told, index};
use crate::fit::Side;
use crate::forms::{Candidate, Entry, Rule, last_span, unsupported_form, word_span};
use crate::module::{Inst, Operand, RegId};
use crate::names::Bind;
use crate::scope::{BodyCx, InstCx, Pairing, n_elements};

impl<'a> BodyCx<'_, 'a> {
    /// Checks an instruction.
    pub fn inst(&mut self, i: &'a ast::Inst<'a>) -> Result<Box<Inst>, Told> {
        let guard = match &i.guard {
            None => Ok(None),
            Some(g) => self.predicate(g.name.text, g.name.span).map(|r| Some((r, g.negated))),
        };
        let (start, end) = (index(i.opcode.span.start), index(last_span(i).end));
        let key: &'a str = self.cx.text.get(start..end).unwrap_or(i.opcode.text);
        let entry = self.cx.forms.find(key, i, self.cx.version, self.cx.target);
        let candidates = match &*entry {
            Entry::Forms(c) => c,
            Entry::Wrong(w) => {
                let d = w.at(i);
                return Err(self.cx.push(d));
            }
        };
        let candidate = self.choose(candidates, i);
        let checked = self.with_form(i, candidate, guard.as_ref().ok().and_then(|g| *g));
        let (mut inst, guard) = (checked?, guard?);
        inst.guard = guard;
        Ok(inst)
    }

    /// The record whose kinds of operands fit best; of equals the first.
    fn choose<'c>(&mut self, candidates: &'c [Candidate], i: &'a ast::Inst<'a>) -> &'c Candidate {
        let mut best = &candidates[0];
        if candidates.len() == 1 {
            return best;
        }
        let mut most = 0;
        for c in candidates {
            let Some((n_dst, n_src)) = split(c.form, &c.used.chosen, i.operands.len()) else { continue };
            let chosen = &c.used.chosen;
            let wanted = c.form.dst_of(chosen).take(n_dst).chain(c.form.src_of(chosen).take(n_src));
            let fitting = wanted.zip(&i.operands).filter(|(w, o)| self.shape_fits(w, o, &c.used)).count();
            if fitting == i.operands.len() {
                return c;
            }
            if fitting > most {
                (most, best) = (fitting, c);
            }
        }
        best
    }

    /// Whether a written operand looks like what is wanted.
    fn shape_fits(&mut self, wanted: &form::Operand, o: &'a ast::Operand<'a>, u: &Use) -> bool {
        let n = n_elements(wanted, u);
        let single = n == 1;
        match (&o.kind, wanted.kind) {
            (_, Kind::Call) => true,
            (OperandKind::Address(a), Kind::Point | Kind::Texel(_)) => !a.more.is_empty(),
            (OperandKind::Address(a), k) => k == Kind::Address && a.more.is_empty(),
            (OperandKind::Indexed(..), k) => matches!(k, Kind::Address | Kind::MovSource) && single,
            (OperandKind::Sink, k) => matches!(k, Kind::RegOrSink | Kind::Sink | Kind::PredPair | Kind::RegPredPair),
            (OperandKind::Pair(first, _), Kind::VectorPredPair) => {
                self.shape_fits(&form::Operand { kind: Kind::Vector, ..*wanted }, first, u)
            }
            (OperandKind::Pair(..), k) => matches!(k, Kind::PredPair | Kind::RegPredPair),
            (OperandKind::Not(_), k) => matches!(k, Kind::Pred { negatable: true }),
            (OperandKind::Neg(_), k) => matches!(k, Kind::Val | Kind::Video { negatable: true, .. }),
            (OperandKind::Paren(_), _) => false,
            (OperandKind::Vector(v), k) => {
                v.len() == usize::from(n)
                    && (matches!(k, Kind::Vector | Kind::Tuple | Kind::VectorPredPair)
                        || k == Kind::MovSource && !single)
            }
            (OperandKind::Expr(e), Kind::Reg) => single && crate::operands::is_sum(e),
            (OperandKind::Expr(_), k) => {
                single
                    && matches!(
                        k,
                        Kind::Val
                            | Kind::Imm
                            | Kind::MovSource
                            | Kind::Vector
                            | Kind::Pred { .. }
                            | Kind::Video { literal: true, .. }
                    )
            }
            (OperandKind::Member(..), k) => {
                use Kind::{MovSource, Reg, RegOrSink, RegPredPair, Val, Vector, Video};
                single && matches!(k, Reg | RegOrSink | Val | MovSource | Vector | RegPredPair | Video { .. })
            }
            (OperandKind::Name(name), _) => self.name_fits(wanted, name, n),
        }
    }

    /// `{a, b}`, or the name of a vector register.
    fn is_tuple(&mut self, o: &'a ast::Operand<'a>) -> bool {
        match o.kind {
            OperandKind::Vector(_) => true,
            OperandKind::Name(name) => {
                matches!(self.scopes.find(name, &mut self.body), Some(Bind::Reg(r)) if r.n > 1)
            }
            _ => false,
        }
    }

    fn name_fits(&mut self, wanted: &form::Operand, name: &'a str, n: u8) -> bool {
        let register = match self.scopes.find(name, &mut self.body) {
            Some(Bind::Reg(r)) => Some(r),
            _ => None,
        };
        let Some(r) = register else {
            // A special register, an address, a label, or a name that nobody knows.
            return match wanted.kind {
                Kind::MovSource => n == 1 || handloom_isa::sreg::is_family(name),
                Kind::Imm | Kind::Address | Kind::Point | Kind::Texel(_) | Kind::Sink => false,
                Kind::Vector | Kind::VectorPredPair => n == 1,
                _ => true,
            };
        };
        let is_pred = r.ty == ScalarType::Pred;
        match wanted.kind {
            Kind::Pred { .. } | Kind::PredPair => is_pred,
            Kind::Reg | Kind::RegOrSink | Kind::Val | Kind::RegPredPair | Kind::Video { .. } => {
                r.n == 1 && is_pred == (wanted.is == Is::Fixed(ScalarType::Pred))
            }
            Kind::Vector | Kind::Tuple | Kind::VectorPredPair | Kind::MovSource => r.n == n,
            Kind::Label | Kind::Targets | Kind::Imm | Kind::Address | Kind::Point | Kind::Texel(_) | Kind::Sink => {
                false
            }
            Kind::Call => true,
        }
    }

    fn with_form(
        &mut self,
        i: &'a ast::Inst<'a>,
        candidate: &Candidate,
        guard: Option<(RegId, bool)>,
    ) -> Result<Box<Inst>, Told> {
        let form = candidate.form;
        if let Some((at, message)) = &candidate.gate {
            let d = Diagnostic::error(Code::Gate, word_span(i, *at), message.clone()).section(form.section);
            return Err(self.cx.push(d));
        }
        let is_call = form.src.first().is_some_and(|o| o.kind == Kind::Call);
        let counts = if is_call { Some((0, 1)) } else { split(form, &candidate.used.chosen, i.operands.len()) };
        let Some((n_dst, n_src)) = counts else { return Err(self.wrong_count(i, form, &candidate.used.chosen)) };
        let mut icx =
            InstCx { ast: i, candidate, used: candidate.used.clone(), n_addresses: 0, at: 0, is_misplaced: false };
        icx.used.func = self.kind;
        (icx.used.n_dst, icx.used.n_src) = (n_dst, n_src);
        let before = self.cx.report.len();
        let operands = if is_call {
            self.call(i).map(|c| (Vec::new(), vec![Operand::Call(Box::new(c))]))
        } else {
            self.operands(&mut icx, n_dst, n_src, guard.is_some())
        };
        if !icx.is_misplaced && self.legal(&icx).is_err() {
            // What the operands of a wrong combination lack follows from it; undeclared names do not.
            self.cx.report.keep_unknown_names(before);
            return Err(Told);
        }
        let (dst, src) = operands?;
        if let Semantics::Unsupported(why) = form.semantics {
            return Err(self.cx.push(unsupported_form(i, form, why)));
        }
        Ok(Box::new(Inst { form, u: icx.used, guard: None, dst, src, span: i.span }))
    }

    /// Asks the record's own rules.
    fn legal(&mut self, icx: &InstCx<'_, 'a>) -> Result<(), Told> {
        let form = icx.form();
        match (form.legal)(&icx.used) {
            Ok(needs) if needs == Needs::NONE => Ok(()),
            Ok(needs) => match self.cx.gate(needs) {
                None => Ok(()),
                Some(text) => {
                    let d = Diagnostic::error(Code::Gate, icx.ast.opcode.span, format!("`{}` {text}", icx.words()));
                    Err(self.cx.push(d.section(form.section)))
                }
            },
            Err(reason) => self.reason(icx, reason, None),
        }
    }

    fn operands(
        &mut self,
        icx: &mut InstCx<'_, 'a>,
        n_dst: usize,
        n_src: usize,
        guarded: bool,
    ) -> Result<(Vec<Operand>, Vec<Operand>), Told> {
        let i = icx.ast;
        let form = icx.form();
        let (mut dst, mut src) = (Vec::with_capacity(n_dst), Vec::with_capacity(n_src));
        let mut failed = false;
        let chosen = std::sync::Arc::clone(&icx.candidate.used.chosen);
        let belongs = |o: &(usize, &'static form::Operand)| o.1.when.holds(&chosen);
        let n = form.dst.len();
        let sources = form.src.iter().enumerate().map(|(at, o)| (at + n, o)).filter(belongs);
        let mut operands = i.operands.iter().peekable();
        let mut left_out = None;
        for (at, wanted) in form.dst.iter().enumerate().filter(belongs).take(n_dst).chain(sources) {
            let Some(&written) = operands.peek() else { break };
            let (side, list) = if at < n { (Side::Destination, &mut dst) } else { (Side::Source, &mut src) };
            if wanted.kind == Kind::Tuple && wanted.optional && !self.is_tuple(written) {
                list.push(Operand::Vector(Vec::new()));
                left_out = Some(wanted);
                continue;
            }
            operands.next();
            icx.at = at;
            let rule = self.rule(icx, wanted, at);
            let p = Pairing { wanted, written, rule, side, joined: None };
            match self.operand(icx, p, guarded) {
                Ok(o) => list.push(o),
                Err(Told) => {
                    failed = true;
                    // Keeps the positions of what follows.
                    list.push(Operand::Sink);
                }
            }
        }
        if failed {
            return Err(Told);
        }
        if let (Some(written), Some(wanted)) = (operands.next(), left_out) {
            let p = Pairing { wanted, written, rule: None, side: Side::Source, joined: None };
            return Err(self.wrong_kind(icx, p, "a vector in braces"));
        }
        self.ordered_literals(icx, &chosen, &src, n_dst)?;
        self.different_results(icx, &dst)?;
        Ok((dst, src))
    }

    /// What comes late from a load comes into registers that are all different.
    fn different_results(&mut self, icx: &InstCx<'_, 'a>, dst: &[Operand]) -> Result<(), Told> {
        if icx.form().in_registers() != Some(InRegisters::Load) {
            return Ok(());
        }
        let single = |o: &Operand| if let Operand::Reg { reg, .. } = o { Some(*reg) } else { None };
        let registers = dst
            .iter()
            .flat_map(|o| if let Operand::Vector(all) = o { all.as_slice() } else { std::slice::from_ref(o) });
        let mut seen = FastSet::default();
        if registers.filter_map(single).all(|r| seen.insert(r)) {
            return Ok(());
        }
        let message = format!("`{}` writes one register twice", icx.words());
        let d = Diagnostic::error(Code::OperandKind, icx.ast.span, message).section(icx.form().section);
        Err(self.cx.push(d))
    }

    /// Two literals of which one must not be above the other.
    fn ordered_literals(
        &mut self,
        icx: &InstCx<'_, 'a>,
        chosen: &Chosen,
        src: &[Operand],
        n_dst: usize,
    ) -> Result<(), Told> {
        let form = icx.form();
        let literal = |name: &str| {
            let at = form.src_of(chosen).position(|o| o.name == name)?;
            match src.get(at)? {
                Operand::Imm { bits, .. } => Some((*bits, icx.ast.operands.get(n_dst + at)?.span)),
                _ => None,
            }
        };
        for (_, smaller, larger) in handloom_isa::ORDERED.iter().filter(|(opcode, ..)| *opcode == form.opcode) {
            if let (Some((value, span)), Some((most, _))) = (literal(smaller), literal(larger))
                && value > most
            {
                let message = format!("operand `{smaller}` is {value}, more than the {most} of `{larger}`");
                return Err(self.cx.push(Diagnostic::error(Code::Illegal, span, message).section(form.section)));
            }
        }
        Ok(())
    }

    fn rule(&self, icx: &InstCx<'_, 'a>, wanted: &form::Operand, at: usize) -> Option<Rule> {
        match wanted.is {
            Is::Of(f) => Some(Rule { own: wanted.count.is_computed(), ..Rule::ordinary(f(&icx.used)) }),
            Is::Address | Is::AddressOf(_) => {
                let ty = if self.cx.address_size == 64 { ScalarType::U64 } else { ScalarType::U32 };
                Some(Rule { own: true, ..Rule::ordinary(ty) })
            }
            _ => icx.candidate.rules.get(at).copied().flatten(),
        }
    }
}

/// How many of the written operands are destinations and sources.
pub(crate) fn split(form: &Form, chosen: &Chosen, written: usize) -> Option<(usize, usize)> {
    let count = |list: &[form::Operand]| {
        let belong = list.iter().filter(|o| o.when.holds(chosen));
        belong.fold((0, 0), |(required, all), o| (required + usize::from(!o.optional), all + 1))
    };
    let ((dst, all_dst), (src, all_src)) = (count(form.dst), count(form.src));
    let room = written.checked_sub(dst + src)?;
    let n_dst = all_dst.min(dst + room);
    let n_src = written - n_dst;
    (n_src <= all_src).then_some((n_dst, n_src))
}
