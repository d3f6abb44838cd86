//! `handloom isa`: the instruction table as the program holds it.

use handloom_isa::form::{Count, Form, Is, Kind, Operand, Semantics, When};
use handloom_isa::listing::{gates, name, syntax, with_gates};
use handloom_isa::selector::Select;
use handloom_isa::{forms, suggest};
use serde::Serialize;

use crate::report::{Failure, Format, Out, Status};

#[derive(Serialize)]
struct Row<'a> {
    opcode: &'a str,
    form: String,
    support: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    section: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    words: &'a [&'a str],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    qualifiers: Vec<Choices>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    operands: Vec<Slotted>,
}

#[derive(Serialize)]
struct Slotted {
    name: &'static str,
    role: &'static str,
    kind: String,
    #[serde(rename = "type")]
    ty: String,
    count: String,
    optional: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    with: Option<String>,
}

#[derive(Serialize)]
struct Choices {
    name: String,
    /// Stands before the fixed words.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lead: bool,
    required: bool,
    choices: Vec<String>,
}

/// Prints all forms, or those of one opcode with their qualifiers.
///
/// # Errors
/// There is no such opcode.
pub fn isa(opcode: Option<&str>, out: &mut Out) -> Result<Status, Failure> {
    let wanted =
        |known: &str| opcode.is_none_or(|o| known == o || known.strip_prefix(o).is_some_and(|r| r.starts_with('.')));
    let mut rows: Vec<Row<'_>> = forms().iter().filter(|f| wanted(f.opcode)).map(|f| row(f)).collect();
    rows.sort_by_key(|r| r.opcode);
    if let (Some(opcode), true) = (opcode, rows.is_empty()) {
        let first = opcode.split('.').next().unwrap_or(opcode);
        let meant = suggest(first).map_or(String::new(), |o| format!("; did you mean `{o}`?"));
        return Err(Failure::usage(format!("there is no opcode `{opcode}`{meant}")));
    }
    for r in &rows {
        match out.format {
            Format::Json => out.json(r),
            Format::Human if opcode.is_some() => details(r, out),
            Format::Human => out.line(&format!("{:4}  {}", r.support, r.form)),
        }
    }
    if out.format == Format::Human && opcode.is_none() {
        let n = |support: &str| rows.iter().filter(|r| r.support == support).count();
        let (yes, hint, no) = (n("yes"), n("hint"), n("no"));
        out.line(&format!(
            "\n{yes} forms run (yes), {hint} are checked and do nothing (hint), {no} are not supported (no)"
        ));
    }
    Ok(Status::Done)
}

fn row(f: &'static Form) -> Row<'static> {
    let (support, why) = match f.semantics {
        Semantics::Build(_)
        | Semantics::Timed { .. }
        | Semantics::Warp(_)
        | Semantics::WarpUpdate(_)
        | Semantics::Attempt(_)
        | Semantics::Control(_) => ("yes", None),
        Semantics::Hint | Semantics::Wait(_) => ("hint", None),
        Semantics::Unsupported(why) => ("no", Some(why)),
    };
    let qualifiers = f.qualifiers.iter().map(|g| Choices {
        name: name(g.role),
        lead: g.lead,
        required: g.required,
        choices: g.choices.iter().map(|c| with_gates(c.text, &c.needs)).collect(),
    });
    let dst = f.dst.iter().map(|o| slotted(o, "destination"));
    let operands = dst.chain(f.src.iter().map(|o| slotted(o, "source")));
    Row {
        opcode: f.opcode,
        form: syntax(f),
        support,
        why,
        section: f.section,
        needs: gates(&f.needs),
        words: f.words,
        qualifiers: qualifiers.collect(),
        operands: operands.collect(),
    }
}

fn slotted(o: &Operand, role: &'static str) -> Slotted {
    let kind = match o.kind {
        Kind::Video { select, literal, negatable } => {
            return Slotted {
                kind: video(select, literal, negatable),
                ..slotted(&Operand { kind: Kind::Reg, ..*o }, role)
            };
        }
        Kind::Reg => "register",
        Kind::RegOrSink => "register or `_`",
        Kind::Sink => "`_`",
        Kind::Val => "register or constant",
        Kind::Imm => "constant",
        Kind::Pred { negatable: true } => "predicate, may be negated",
        Kind::Pred { negatable: false } => "predicate",
        Kind::PredPair => "predicate or pair of predicates",
        Kind::RegPredPair => "register, with or without a predicate",
        Kind::Vector => "vector of registers",
        Kind::Tuple => "vector of registers in braces",
        Kind::VectorPredPair => "vector of registers, with or without a predicate",
        Kind::Address => "address",
        Kind::Point | Kind::Texel(_) => "address and coordinates",
        Kind::Label => "label",
        Kind::MovSource => "register, constant or address of a variable",
        Kind::Targets => "list of labels",
        Kind::Call => "operands of a call",
    };
    let ty = match o.is {
        Is::Fixed(t) | Is::Descriptor(t) => t.to_string(),
        Is::Wider(t) => format!("{t} or wider"),
        Is::Only(t) => format!("{t} exactly"),
        Is::Like(slot) => name(slot),
        Is::Relaxed(slot) => format!("{} or wider", name(slot)),
        Is::Exactly(slot) => format!("{} exactly", name(slot)),
        Is::Twice(slot) => format!("twice {}", name(slot)),
        Is::Of(_) => "follows from the qualifiers".to_owned(),
        Is::Address | Is::AddressOf(_) | Is::Handle(_) => "an address".to_owned(),
        Is::Any => "any".to_owned(),
    };
    let count = match o.count {
        Count::One => "1".to_owned(),
        Count::By(slot) | Count::Bare(slot) => name(slot),
        Count::Fixed(n) => n.to_string(),
        Count::Fragment(_) | Count::Every(_) => "follows from the qualifiers".to_owned(),
    };
    let with = with(o.when);
    Slotted { with, name: o.name, role, kind: kind.to_owned(), ty, count, optional: o.optional }
}

/// Which qualifiers an operand is written with.
fn with(when: When) -> Option<String> {
    match when {
        When::Always => None,
        When::Has(slot) => Some(name(slot)),
        When::Word(_, words) => Some(words.join(" or ")),
        When::Not(_, words) => Some(format!("not {}", words.join(" or "))),
        When::All(all) => Some(all.iter().filter_map(|w| with(*w)).collect::<Vec<_>>().join(", ")),
    }
}

/// What an operand of a video instruction may be.
fn video(select: Select, literal: bool, negatable: bool) -> String {
    let constant = if literal { " or constant" } else { "" };
    let negated = if negatable { ", may be negated" } else { "" };
    let selector = match select {
        Select::Nothing => "",
        Select::Part => ", with or without a selector of a byte or half",
        Select::Pair => ", with or without a selector of two halves",
        Select::Quad => ", with or without a selector of four bytes",
        Select::PairMask => ", with or without a mask of halves",
        Select::QuadMask => ", with or without a mask of bytes",
    };
    format!("register{constant}{negated}{selector}")
}

fn details(r: &Row<'_>, out: &mut Out) {
    out.line(&r.form);
    let support = match r.support {
        "yes" => "supported".to_owned(),
        "hint" => "checked, and does nothing".to_owned(),
        _ => r.why.map_or("not supported yet".into(), |why| format!("not supported yet: {why}")),
    };
    out.line(&format!("    {support}"));
    out.line(&format!("    section: {}", r.section));
    if let Some(needs) = &r.needs {
        out.line(&format!("    needs: {needs}"));
    }
    for q in r.qualifiers.iter().filter(|q| q.choices.len() > 1 || q.choices.iter().any(|c| c.contains(' '))) {
        let optional = if q.required { "" } else { " (optional)" };
        out.line(&format!("    {} = {}{optional}", q.name, q.choices.join(", ")));
    }
    for o in &r.operands {
        let optional = if o.optional { " (optional)" } else { "" };
        let with = o.with.as_ref().map_or(String::new(), |w| format!(" (with {w})"));
        let count = if o.count == "1" { String::new() } else { format!(", count: {}", o.count) };
        out.line(&format!("    {} = {}, type: {}{count}{optional}{with}", o.name, o.kind, o.ty));
    }
    out.line("");
}
