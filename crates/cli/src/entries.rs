//! What of a wrong module can still be used: one entry that fails does not hide the others.
//!
//! Functions with errors are overwritten with blanks, so that all places stay, and the rest is checked again. A function that calls one of
//! them fails then as well, and so on until nothing is left to blame.

use std::collections::BTreeMap;
use std::ops::Range;

use handloom_check::module::SymbolKind;
use handloom_check::{Checked, CheckedModule, check_text};
use handloom_diag::{Diagnostic, FileId};
use handloom_syntax::parse;

use crate::report::{Status, errors};

/// Why an entry cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Wrong or unsupported.
    pub status: Status,
    /// The first message.
    pub message: String,
}

/// What a text holds.
#[derive(Debug)]
pub struct Parts {
    /// The entries that can be used; `None` if there is nothing to use.
    pub module: Option<CheckedModule>,
    /// All entries in the order of the text, with the fault of those that cannot be used.
    pub entries: Vec<(String, Option<Fault>)>,
    /// Errors and warnings of the whole text.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parts {
    /// Entries that cannot be used.
    pub fn faults(&self) -> BTreeMap<&str, &Fault> {
        self.entries.iter().filter_map(|(name, fault)| Some((name.as_str(), fault.as_ref()?))).collect()
    }
}

/// How often a text is checked again. Deeper chains of calls fail as a whole.
const MAX_ROUNDS: usize = 16;

/// Finds the usable part of a text that was checked.
pub fn parts(checked: Checked, text: &str, file: FileId) -> Parts {
    let Checked { module, diagnostics } = checked;
    if let Some(module) = module {
        let entries = module.symbols.iter().filter(|s| matches!(&s.kind, SymbolKind::Func(f) if f.is_entry));
        let entries = entries.map(|s| (s.name.clone(), None)).collect();
        return Parts { module: Some(module), entries, diagnostics };
    }
    let functions = functions(text, file);
    let mut faults: Vec<Option<Fault>> = vec![None; functions.len()];
    let mut module = None;
    let mut rest = text.to_owned();
    let mut wrong = diagnostics.clone();
    for _ in 0..MAX_ROUNDS {
        if !blame(&mut faults, &functions, &wrong, text) {
            module = None;
            break;
        }
        let failed: Vec<&str> = names(&functions, &faults).collect();
        // Declarations go too, so that a call of what is gone is seen.
        for f in functions.iter().filter(|f| failed.contains(&f.name.as_str())) {
            rest.replace_range(f.extent.clone(), &blanks(&text[f.extent.clone()]));
        }
        let again = check_text(&rest, file);
        module = again.module;
        if module.is_some() {
            break;
        }
        wrong = again.diagnostics;
    }
    if module.is_none() {
        let first = errors(&diagnostics).max_by_key(|d| Status::of_all(std::slice::from_ref(d)));
        let fault = Fault {
            status: Status::of_all(&diagnostics),
            message: first.map_or("the module cannot be used".into(), |d| d.message.clone()),
        };
        faults.iter_mut().for_each(|f| *f = f.take().or_else(|| Some(fault.clone())));
    }
    let entries = functions.into_iter().zip(faults).filter(|(f, _)| f.is_entry && f.has_body);
    Parts { module, entries: entries.map(|(f, fault)| (f.name, fault)).collect(), diagnostics }
}

fn names<'f>(functions: &'f [Extent], faults: &'f [Option<Fault>]) -> impl Iterator<Item = &'f str> {
    functions.iter().zip(faults).filter(|(_, fault)| fault.is_some()).map(|(f, _)| f.name.as_str())
}

/// Gives each error to the function that it stands in. False if one stands elsewhere, or nothing new was found.
fn blame(faults: &mut [Option<Fault>], functions: &[Extent], wrong: &[Diagnostic], text: &str) -> bool {
    let mut found = false;
    let failed: BTreeMap<String, Fault> =
        functions.iter().zip(&*faults).filter_map(|(f, fault)| Some((f.name.clone(), fault.clone()?))).collect();
    for d in errors(wrong) {
        let span = d.span();
        let at = span.start as usize;
        let Some(i) = functions.iter().position(|f| f.extent.contains(&at)) else { return false };
        // An error at the name of a function that is gone is that function's.
        let named = text.get(at..span.end as usize).and_then(|name| failed.get(name));
        let fault = named
            .cloned()
            .unwrap_or_else(|| Fault { status: Status::of_all(std::slice::from_ref(d)), message: d.message.clone() });
        match &mut faults[i] {
            Some(known) if known.status >= fault.status => {}
            place => {
                *place = Some(fault);
                found = true;
            }
        }
    }
    found
}

/// A function and its place in the text.
#[derive(Debug)]
struct Extent {
    name: String,
    is_entry: bool,
    has_body: bool,
    extent: Range<usize>,
}

fn functions(text: &str, file: FileId) -> Vec<Extent> {
    let parsed = parse(text, file);
    let functions = parsed.module.items.iter().filter_map(|item| match item {
        handloom_syntax::ast::Item::Function(f) => Some(f),
        _ => None,
    });
    functions
        .map(|f| Extent {
            name: f.name.text.to_owned(),
            is_entry: f.is_entry,
            has_body: f.body.is_some(),
            extent: f.span.start as usize..end_of(text, f.span.end as usize),
        })
        .collect()
}

/// The end of a function whose header has been read up to `at`: behind its last brace, or behind the semicolon of a declaration.
fn end_of(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut i, mut depth) = (at, 0_usize);
    let skip = |from: usize, end: &str| text[from..].find(end).map_or(text.len(), |n| from + n + end.len());
    while i < bytes.len() {
        match bytes[i] {
            b'/' if bytes.get(i + 1) == Some(&b'/') => i = skip(i, "\n"),
            b'/' if bytes.get(i + 1) == Some(&b'*') => i = skip(i + 2, "*/"),
            b'"' => i = skip(i + 1, "\""),
            b'{' => (i, depth) = (i + 1, depth + 1),
            b'}' if depth <= 1 => return i + 1,
            b'}' => (i, depth) = (i + 1, depth - 1),
            b';' if depth == 0 => return i + 1,
            _ => i += 1,
        }
    }
    text.len()
}

/// As many bytes, with the same lines.
fn blanks(text: &str) -> String {
    text.bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use handloom_diag::SourceMap;

    const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

    fn faults(body: &str) -> Vec<(String, Option<Status>)> {
        let text = format!("{HEAD}{body}");
        let file = SourceMap::new().add("a.ptx", text.as_str());
        let p = parts(check_text(&text, file), &text, file);
        assert_eq!(p.module.is_some(), p.entries.iter().any(|(_, fault)| fault.is_none()));
        p.entries.into_iter().map(|(name, fault)| (name, fault.map(|f| f.status))).collect()
    }

    #[test]
    fn a_wrong_entry_does_not_hide_the_next_one() {
        let found = faults(".entry a() { sad.f32 %r1; ret; }\n.entry b() { ret; } // }\n.entry c() { ret; }");
        assert_eq!(found, [("a".into(), Some(Status::Program)), ("b".into(), None), ("c".into(), None)]);
    }

    #[test]
    fn a_caller_fails_with_what_it_calls() {
        let body = ".func f() { stacksave.u64 %r1; ret; }\n.func g() { call f; ret; }\n.entry a() { call g; ret; }\n.entry b() { ret; }";
        assert_eq!(faults(body)[1], ("b".into(), None));
        assert!(faults(body)[0].1.is_some());
    }

    #[test]
    fn an_error_between_functions_is_everybodys() {
        let found = faults(".global .u7 x;\n.entry a() { ret; }");
        assert_eq!(found, [("a".into(), Some(Status::Program))]);
    }
}
