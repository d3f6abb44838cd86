//! Which instruction records the file tests use.

use std::collections::HashSet;

use handloom_diag::FileId;
use handloom_isa::form::{Form, Semantics};
use handloom_isa::lookup;
use handloom_syntax::ast::{Inst, Item, Stmt};

/// Address of a record, which tells it from all others.
type Key = *const Form;

/// The records that a text uses. Where several fit an instruction, all of them count.
pub fn used_by(text: &str, used: &mut HashSet<Key>) {
    let tree = handloom_syntax::parse(text, FileId(0));
    for item in &tree.module.items {
        if let Item::Function(f) = item {
            f.body.iter().flatten().for_each(|s| statement(s, used));
        }
    }
}

fn statement(s: &Stmt<'_>, used: &mut HashSet<Key>) {
    match s {
        Stmt::Inst(i) => instruction(i, used),
        Stmt::Block(inner, _) => inner.iter().for_each(|s| statement(s, used)),
        _ => {}
    }
}

fn instruction(i: &Inst<'_>, used: &mut HashSet<Key>) {
    let words = i.qualifiers.iter().map(|q| q.text);
    if let Some(candidates) = lookup(i.opcode.text, words.clone()) {
        let mut matches = Vec::new();
        candidates.matches(words, i.operands.len(), &mut matches);
        used.extend(matches.iter().map(|m| std::ptr::from_ref(m.form)));
    }
}

/// The records that can run and that none of the texts uses, as `opcode.words section`.
pub fn missing<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<String> {
    unused(texts, true)
}

/// The records that cannot run and that none of the texts uses.
pub fn unchecked<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<String> {
    unused(texts, false)
}

fn unused<'t>(texts: impl Iterator<Item = &'t str>, can_run: bool) -> Vec<String> {
    let mut used = HashSet::new();
    texts.for_each(|t| used_by(t, &mut used));
    let wanted = |f: &&&Form| matches!(f.semantics, Semantics::Unsupported(_)) != can_run;
    let unused = handloom_isa::forms().iter().filter(wanted).filter(|f| !used.contains(&std::ptr::from_ref(**f)));
    unused.map(|f| format!("{}{} ({}): {}", f.opcode, f.words.concat(), types(f), f.section)).collect()
}

/// Choices of the last group, which tell records of one opcode apart.
fn types(f: &Form) -> String {
    f.qualifiers.last().map_or(String::new(), |g| g.choices.iter().map(|c| c.text).collect())
}
