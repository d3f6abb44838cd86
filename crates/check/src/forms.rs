//! From the words of an instruction to its record.
//!
//! The same words lead to the same records, so each distinct text is matched once.

use std::rc::Rc;

use handloom_diag::{Code, Diagnostic, Span};
use handloom_ir::types::{ScalarType, StateSpace, TypeClass};
use handloom_isa::form::{self, Form, FuncKind, Is, Kind, Semantics, Use, Value};
use handloom_isa::target::{Needs, Target, Version};
use handloom_isa::{Match, lookup, suggest, suggest_qualifier};
use handloom_syntax::ast;

use crate::fit::{Side, ordinary, relaxed};
use crate::module::Fit;
use crate::words::twice;
use handloom_diag::hash::FastMap as Map;

/// Records found so far, by the text of opcode and qualifiers and by the number of operands.
#[derive(Default)]
pub(crate) struct FormCache<'a> {
    found: Map<&'a str, Vec<(usize, Rc<Entry>)>>,
    matches: Vec<Match>,
}

/// What words and a number of operands lead to.
pub(crate) enum Entry {
    /// Records, in order of preference; at least one.
    Forms(Vec<Candidate>),
    /// No record.
    Wrong(Wrong),
}

/// A record that the words fit.
pub(crate) struct Candidate {
    /// The record.
    pub form: &'static Form,
    /// Its use, but for what depends on the operands.
    pub used: Use,
    /// The gate that the module does not pass, told at the word with this index among opcode and qualifiers.
    pub gate: Option<(usize, String)>,
    /// Type rules of the destinations, then of the sources; `None` where only the operands tell.
    pub rules: Vec<Option<Rule>>,
    /// State spaces of the address operands, in order; empty when they cannot be told.
    pub spaces: Vec<StateSpace>,
}

/// The type rule of an operand of one use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    /// Instruction type.
    pub ty: ScalarType,
    /// Registers may be wider.
    pub relaxed: bool,
    /// The type belongs to the operand, not to the instruction: a register of type `.f16x2` is no integer then.
    pub own: bool,
    /// Only registers of this very type.
    pub only: bool,
}

impl Rule {
    /// The rule for ordinary instructions.
    pub const fn ordinary(ty: ScalarType) -> Rule {
        Rule { ty, relaxed: false, own: false, only: false }
    }

    /// How a register fits.
    pub fn fits(self, reg: ScalarType, side: Side) -> Option<Fit> {
        if self.only {
            return (reg == self.ty).then_some(Fit::Same);
        }
        if self.own && reg == ScalarType::F16x2 && matches!(self.ty.class(), TypeClass::Unsigned | TypeClass::Signed) {
            return None;
        }
        if self.relaxed { relaxed(self.ty, reg, side) } else { ordinary(self.ty, reg) }
    }
}

/// Why there is no record; the place is that of each instruction.
pub(crate) struct Wrong {
    /// Index of the guilty word among opcode and qualifiers.
    at: usize,
    to_last: bool,
    diagnostic: Diagnostic,
}

impl Wrong {
    /// The diagnostic at one instruction.
    pub fn at(&self, i: &ast::Inst<'_>) -> Diagnostic {
        let mut d = self.diagnostic.clone();
        let span = word_span(i, self.at);
        if let Some(first) = d.labels.first_mut() {
            first.0 = if self.to_last { span.to(last_span(i)) } else { span };
        }
        d
    }
}

/// Place of opcode (0) or qualifier (1..).
pub(crate) fn word_span(i: &ast::Inst<'_>, at: usize) -> Span {
    match at.checked_sub(1) {
        Some(q) => i.qualifiers.get(q).map_or(i.opcode.span, |q| q.span),
        None => i.opcode.span,
    }
}

/// Place of the last word.
pub(crate) fn last_span(i: &ast::Inst<'_>) -> Span {
    i.qualifiers.last().map_or(i.opcode.span, |q| q.span)
}

/// Opcode and qualifiers as one text.
pub(crate) fn words_of(i: &ast::Inst<'_>) -> String {
    let mut text = i.opcode.text.to_owned();
    for q in &i.qualifiers {
        text.push_str(q.text);
    }
    text
}

impl<'a> FormCache<'a> {
    /// Finds the records of an instruction. `key` is the text from its opcode to its last qualifier.
    pub fn find(&mut self, key: &'a str, i: &ast::Inst<'a>, version: Version, target: Target) -> Rc<Entry> {
        let n = i.operands.len();
        if let Some(known) = self.found.get(key)
            && let Some((_, entry)) = known.iter().find(|(operands, _)| *operands == n)
        {
            return Rc::clone(entry);
        }
        let entry = Rc::new(self.search(i, version, target));
        self.found.entry(key).or_default().push((n, Rc::clone(&entry)));
        entry
    }

    fn search(&mut self, i: &ast::Inst<'_>, version: Version, target: Target) -> Entry {
        let words = i.qualifiers.iter().map(|q| q.text);
        let Some(candidates) = lookup(i.opcode.text, words.clone()) else { return Entry::Wrong(unknown_opcode(i)) };
        self.matches.clear();
        candidates.matches(words.clone(), i.operands.len(), &mut self.matches);
        if self.matches.is_empty() {
            return Entry::Wrong(no_form(i, &candidates, candidates.mismatch(words)));
        }
        let mut found: Vec<Candidate> = self.matches.iter().map(|m| candidate(m, i, version, target)).collect();
        // Of records that say the same, one whose gates hold is meant; the order decides among the rest.
        found.sort_by_key(|c| c.gate.is_some());
        Entry::Forms(found)
    }
}

fn candidate(m: &Match, i: &ast::Inst<'_>, version: Version, target: Target) -> Candidate {
    let used = m.used(FuncKind::Entry, m.form.dst.len(), m.form.src.len(), version, target, None);
    let operands = m.form.dst.iter().chain(m.form.src);
    let rules = operands.map(|o| static_rule(o, &used)).collect();
    let spaces = spaces(m.form, &used);
    Candidate { form: m.form, gate: failing_gate(m, i, version, target), rules, spaces, used }
}

/// The type rule of an operand, where the qualifiers alone decide it.
fn static_rule(o: &form::Operand, u: &Use) -> Option<Rule> {
    let of = |role| match u.value(role) {
        Some(Value::Ty(t)) => Some(t),
        _ => None,
    };
    let ordinary = Rule::ordinary;
    match o.is {
        Is::Fixed(t) | Is::Descriptor(t) => Some(Rule { own: true, ..ordinary(t) }),
        Is::Wider(t) => Some(Rule { relaxed: true, ..ordinary(t) }),
        Is::Only(t) => Some(Rule { only: true, ..ordinary(t) }),
        Is::Like(role) => of(role).map(ordinary),
        Is::Exactly(role) => of(role).map(|ty| Rule { own: true, ..ordinary(ty) }),
        Is::Relaxed(role) => of(role).map(|ty| Rule { relaxed: true, ..ordinary(ty) }),
        Is::Twice(role) => of(role).map(|t| ordinary(twice(t))),
        // Asked again at each instruction: it may look at the number of operands.
        Is::Of(_) | Is::Address | Is::AddressOf(_) | Is::Handle(_) | Is::Any => None,
    }
}

fn failing_gate(m: &Match, i: &ast::Inst<'_>, version: Version, target: Target) -> Option<(usize, String)> {
    let fails = |needs: Needs| needs.lacking(version, target);
    if let Some(text) = fails(m.form.needs) {
        return Some((0, format!("`{}` {text}", words_of(i))));
    }
    m.chosen.iter().flatten().find_map(|choice| {
        let text = fails(choice.needs)?;
        let at = i.qualifiers.iter().position(|q| q.text == choice.text).map_or(0, |p| p + 1);
        Some((at, format!("`{}` {text}", choice.text)))
    })
}

/// State spaces of the address operands: those of the roles, or those among the fixed words.
fn spaces(form: &Form, u: &Use) -> Vec<StateSpace> {
    let n = form.dst.iter().chain(form.src).filter(|o| matches!(o.kind, Kind::Address | Kind::Point)).count();
    if n == 0 {
        return Vec::new();
    }
    let in_role = |role| match u.value(role) {
        Some(Value::Space(s)) => Some(s),
        _ => None,
    };
    let mut all: Vec<StateSpace> = form.words.iter().filter_map(|w| space_word(w)).collect();
    all.extend(in_role(form::Role::Space));
    all.extend(in_role(form::Role::Space2));
    let has_role = form.qualifiers.iter().any(|g| g.role == form::Role::Space);
    match all.len() {
        0 if has_role => vec![StateSpace::Generic],
        1.. if all.len() <= n => all,
        _ => Vec::new(),
    }
}

fn space_word(word: &str) -> Option<StateSpace> {
    Some(match word {
        ".shared" | ".shared::cta" => StateSpace::Shared,
        ".shared::cluster" => StateSpace::SharedCluster,
        ".global" => StateSpace::Global,
        ".const" => StateSpace::Const,
        ".local" => StateSpace::Local,
        _ => return None,
    })
}

/// What is told for a form that parses, checks, and does not run yet.
pub(crate) fn unsupported_form(i: &ast::Inst<'_>, form: &Form, why: &str) -> Diagnostic {
    let words = words_of(i);
    let message = format!("`{words}` is not supported yet");
    let span = i.opcode.span.to(last_span(i));
    let d = Diagnostic::unsupported(Code::Unsupported, span, words, message).section(form.section);
    if why.is_empty() { d } else { d.label(why) }
}

fn unknown_opcode(i: &ast::Inst<'_>) -> Wrong {
    let d = Diagnostic::error(Code::Opcode, i.opcode.span, format!("there is no opcode `{}`", i.opcode.text));
    let d = match suggest(i.opcode.text) {
        Some(other) if other != i.opcode.text => d.help(format!("did you mean `{other}`?")),
        _ => d,
    };
    Wrong { at: 0, to_last: false, diagnostic: d }
}

/// At most this many accepted words are listed.
const MAX_LISTED: usize = 24;

fn no_form(i: &ast::Inst<'_>, candidates: &handloom_isa::Candidates, m: handloom_isa::Mismatch) -> Wrong {
    let opcode = candidates.opcode;
    let mut accepted: Vec<String> = m.accepted.iter().take(MAX_LISTED).map(|w| format!("`{w}`")).collect();
    if m.accepted.len() > MAX_LISTED {
        accepted.push("others".to_owned());
    }
    let list = accepted.join(", ");
    let expected = match m.accepted.len() {
        0 => String::new(),
        1 => format!("expected {list}"),
        _ => format!("expected one of {list}"),
    };
    let (at, message, label) = match m.at {
        Some(q) => {
            let word = i.qualifiers.get(q).map_or("", |w| w.text);
            let repeated = i.qualifiers.iter().take(q).any(|w| w.text == word);
            let message = if repeated {
                format!("`{opcode}` takes `{word}` once")
            } else {
                format!("`{opcode}` has no `{word}` form")
            };
            let before = if q == candidates.at + candidates.n_prefix { String::new() } else { " here".to_owned() };
            let message = if before.is_empty() || repeated { message } else { format!("{message}{}", context(i, q)) };
            (q + 1, message, if expected.is_empty() { "not expected here".to_owned() } else { expected })
        }
        None => (0, format!("`{}` lacks a qualifier", words_of(i)), expected),
    };
    let mut d = Diagnostic::error(Code::NoForm, i.opcode.span, message).label(label).section(m.form.section);
    let meant = m.at.and_then(|q| i.qualifiers.get(q)).and_then(|w| suggest_qualifier(w.text, &m.accepted));
    if let Some(other) = meant {
        d = d.help(format!("did you mean `{other}`?"));
    }
    Wrong { at, to_last: m.at.is_none(), diagnostic: d }
}

/// The words before a guilty one, as far as they tell something.
fn context(i: &ast::Inst<'_>, q: usize) -> String {
    let before: String = i.qualifiers.iter().take(q).map(|w| w.text).collect();
    format!(" with `{before}`")
}

/// What an operand may be, in words, for messages about the number of operands.
pub(crate) fn syntax_of(form: &Form, chosen: &handloom_isa::find::Chosen, words: &str) -> String {
    let mut text = words.to_owned();
    let call = form.semantics_is_call();
    if call {
        return text;
    }
    for (n, o) in form.dst_of(chosen).chain(form.src_of(chosen)).enumerate() {
        let comma = if n == 0 { " " } else { ", " };
        let name = if matches!(o.kind, Kind::Address | Kind::Point | Kind::Texel(_)) {
            format!("[{}]", o.name)
        } else {
            o.name.to_owned()
        };
        text.push_str(&if o.optional { format!("{{{comma}{name}}}") } else { format!("{comma}{name}") });
    }
    text
}

/// Whether a record is that of `call`.
trait IsCall {
    fn semantics_is_call(&self) -> bool;
}

impl IsCall for Form {
    fn semantics_is_call(&self) -> bool {
        matches!(self.semantics, Semantics::Control(form::Control::Call))
    }
}
