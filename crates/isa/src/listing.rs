//! The table of forms as text: what `handloom isa` and `ISA.md` say.

use std::fmt::Write as _;

use crate::CHAPTERS;
use crate::form::{Form, Group, Kind, Operand, Role, Semantics};
use crate::selector::Select;
use crate::target::{Needs, TargetGate};

/// All forms by chapter, as a Markdown text.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Instruction forms\n\nPrinted from the table of forms; `UPDATE_EXPECT=1 cargo test -p handloom-tests --test isa_listing` writes it again.\n\
         What stands in braces may be left out, and what stands in lower case behind a dot is one of several qualifiers, which\n\
         `handloom isa OPCODE` lists. Forms that do not run are parsed and checked, and a module that uses one is refused when it is loaded.\n",
    );
    let mut section = "";
    for form in CHAPTERS.iter().copied().flatten() {
        if form.section != section {
            section = form.section;
            let _ = write!(text, "\n## {section}\n\n");
        }
        let support = match form.semantics {
            Semantics::Build(_)
            | Semantics::Timed { .. }
            | Semantics::Warp(_)
            | Semantics::WarpUpdate(_)
            | Semantics::Attempt(_)
            | Semantics::Control(_) => String::new(),
            Semantics::Wait(_) => ": matters where results may come late".to_owned(),
            Semantics::Hint => ": checked, and does nothing".to_owned(),
            Semantics::Unsupported(why) => format!(": does not run yet ({why})"),
        };
        let needs = gates(&form.needs).map_or(String::new(), |n| format!("; {n}"));
        let _ = writeln!(text, "- `{}`{support}{needs}", syntax(form));
    }
    text
}

/// The syntax line of a form, as the manual writes it.
pub fn syntax(f: &Form) -> String {
    let mut line = f.opcode.to_owned();
    let (leading, others): (Vec<&Group>, Vec<&Group>) = f.qualifiers.iter().partition(|g| g.lead);
    let group = |line: &mut String, g: &Group| {
        let text = match g.choices {
            [one] => one.text.to_owned(),
            _ => name(g.role),
        };
        line.push_str(&if g.required { text } else { format!("{{{text}}}") });
    };
    // An optional word that has two places, or is taken a second time, is not shown twice.
    let is_among = |g: &Group, list: &[&Group]| {
        let is_same = |e: &Group| matches!((e.choices, g.choices), ([a], [b]) if a.text == b.text);
        !g.required && list.iter().any(|e| !e.required && is_same(e))
    };
    leading.iter().filter(|g| !is_among(g, &others)).for_each(|g| group(&mut line, g));
    f.words.iter().for_each(|w| line.push_str(w));
    let shown = others.iter().enumerate().filter(|(i, g)| !is_among(g, &others[..*i]));
    shown.for_each(|(_, g)| group(&mut line, g));
    for (i, o) in f.dst.iter().chain(f.src).enumerate() {
        let (comma, text) = (if i == 0 { " " } else { ", " }, operand(o));
        line.push_str(&if o.optional { format!("{{{comma}{text}}}") } else { format!("{comma}{text}") });
    }
    line
}

/// A role as the manual names a group of qualifiers.
pub fn name(role: Role) -> String {
    format!(".{role:?}").to_lowercase()
}

fn operand(o: &Operand) -> String {
    match o.kind {
        Kind::PredPair => format!("{}|q", o.name),
        Kind::RegPredPair | Kind::VectorPredPair => format!("{}{{|p}}", o.name),
        Kind::Address | Kind::Point | Kind::Texel(_) => format!("[{}]", o.name),
        Kind::Pred { negatable: true } => format!("{{!}}{}", o.name),
        Kind::Video { select, negatable, .. } => {
            let sign = if negatable { "{-}" } else { "" };
            format!("{sign}{}{}", o.name, selector(o.name, select))
        }
        Kind::Pred { negatable: false }
        | Kind::Reg
        | Kind::RegOrSink
        | Kind::Sink
        | Kind::Val
        | Kind::Imm
        | Kind::Vector
        | Kind::Tuple
        | Kind::Label
        | Kind::MovSource
        | Kind::Targets
        | Kind::Call => o.name.to_owned(),
    }
}

/// What may follow a register of a video instruction, as the manual names it.
fn selector(operand: &str, select: Select) -> String {
    match select {
        Select::Nothing => String::new(),
        Select::PairMask | Select::QuadMask => "{.mask}".to_owned(),
        Select::Part | Select::Pair | Select::Quad => format!("{{.{operand}sel}}"),
    }
}

/// A word with its gates after it.
pub fn with_gates(text: &str, needs: &Needs) -> String {
    gates(needs).map_or(text.to_owned(), |n| format!("{text} ({n})"))
}

/// `PTX 7.8, sm_90`; `None` if every module may use it.
pub fn gates(n: &Needs) -> Option<String> {
    let mut parts = Vec::new();
    if n.version > Needs::NONE.version {
        parts.push(format!("PTX {}.{}", n.version.major, n.version.minor));
    }
    let target = |g: &TargetGate| match g {
        TargetGate::AtLeast(sm) => format!("sm_{sm} or higher"),
        TargetGate::Arch(sm) => format!("sm_{sm}a"),
        TargetGate::Family(sm, since) => format!("sm_{sm}f (from PTX {}.{})", since.major, since.minor),
    };
    if !n.targets.is_empty() {
        parts.push(n.targets.iter().map(target).collect::<Vec<_>>().join(" or "));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}
