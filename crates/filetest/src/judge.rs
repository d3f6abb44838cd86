//! Diagnostics against notes.

use handloom_check::check_text;
use handloom_diag::{Diagnostic, SourceMap, Style, render_human};
use handloom_syntax::{parse, print, same};

use crate::directives::{Directives, Golden, Note};
use crate::{FileTest, golden};

/// The text must parse with the noted errors only, and a tree without errors must survive printing.
pub fn syntax(test: &FileTest, d: &Directives, text: &str) -> Result<(), String> {
    let mut sources = SourceMap::new();
    let file = sources.add(test.file_name(), text);
    let tree = parse(text, file);
    notes(&d.notes, &tree.errors, &sources)?;
    let printed = print(&tree.module);
    if tree.errors.is_empty() {
        let again = parse(&printed, file);
        if !again.errors.is_empty() || !same(&tree.module, &again.module) {
            return Err(format!("the printed tree does not parse to the same tree:\n{printed}"));
        }
    }
    if d.goldens.contains(&Golden::Ast) {
        golden::compare(test, Golden::Ast, &printed)?;
    }
    stderr(test, d, &tree.errors, &sources)
}

/// The text must give the noted diagnostics and no other.
pub fn check(test: &FileTest, d: &Directives, text: &str) -> Result<(), String> {
    let mut sources = SourceMap::new();
    let file = sources.add(test.file_name(), text);
    let checked = check_text(text, file);
    notes(&d.notes, &checked.diagnostics, &sources)?;
    stderr(test, d, &checked.diagnostics, &sources)
}

fn stderr(test: &FileTest, d: &Directives, told: &[Diagnostic], sources: &SourceMap) -> Result<(), String> {
    if d.goldens.contains(&Golden::Stderr) {
        golden::compare(test, Golden::Stderr, &(render(told, sources) + "\n"))?;
    }
    Ok(())
}

/// All diagnostics as people read them.
pub fn render(told: &[Diagnostic], sources: &SourceMap) -> String {
    let texts: Vec<String> = told.iter().map(|d| render_human(d, sources, Style::Plain)).collect();
    texts.join("\n\n")
}

/// Each diagnostic needs a note on its line, and each note a diagnostic.
fn notes(notes: &[Note], told: &[Diagnostic], sources: &SourceMap) -> Result<(), String> {
    let mut open: Vec<&Note> = notes.iter().collect();
    let mut wrong = Vec::new();
    for d in told {
        let line = sources.position(d.span().file, d.span().start).line;
        let fits = |n: &&Note| n.line == line && n.code == d.code.name() && says(d, &n.text);
        match open.iter().position(fits) {
            Some(i) => drop(open.remove(i)),
            None => wrong.push(format!("without a note on line {line}:\n{}", render_human(d, sources, Style::Plain))),
        }
    }
    wrong.extend(open.iter().map(|n| format!("nothing is told on line {}: {} {}", n.line, n.code, n.text)));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n\n")) }
}

/// Whether the text stands in any part of the diagnostic.
fn says(d: &Diagnostic, text: &str) -> bool {
    let labels = d.labels.iter().map(|l| l.1.as_str());
    let help = d.help.as_deref();
    labels.chain(help).chain([d.message.as_str()]).any(|part| part.contains(text))
}
