//! What the tests share: a module around a snippet, and diagnostics as (code, line, message).

use handloom_check::module::{CheckedModule, Func, GlobalVar, Inst, Stmt, SymbolKind};
use handloom_check::{Checked, check_text};
use handloom_diag::{FileId, Severity, SourceMap};

/// Header of the test modules: three lines.
pub const HEADER: &str = ".version 9.0\n.target sm_100a\n.address_size 64\n";

/// Lines in front of the statements of [`in_entry`].
const ENTRY: &str = "\
.global .align 16 .u32 g[64]; .const .u32 c0 = 1; .shared .align 16 .u32 s[64]; .func fn0() { ret; }
.visible .entry k(.param .u64 pa, .param .u32 pb) {
.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .f64 %g<9>; .reg .u32 %u<9>;
.reg .s32 %s<9>; .reg .f16 %hf<9>; .reg .f16x2 %hh<9>; .reg .b8 %b<9>; .reg .v4 .f32 %v; .reg .v2 .b32 %w; .reg .b128 %q<4>;
.local .align 16 .b32 l[64];
";

/// First line of the statements of [`in_entry`].
pub const FIRST: u32 = 9;

/// A module whose entry holds some statements. The first of them stands on line [`FIRST`].
pub fn in_entry(statements: &str) -> String {
    format!("{HEADER}{ENTRY}{statements}\nret;\n}}\n")
}

/// A diagnostic as the tests compare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub code: &'static str,
    pub line: u32,
    pub message: String,
    pub is_error: bool,
}

pub fn run(text: &str) -> Checked {
    check_text(text, FileId(0))
}

/// All diagnostics of a text.
pub fn told(text: &str) -> Vec<Told> {
    let mut sources = SourceMap::new();
    let file = sources.add("test.ptx", text);
    let tell = |d: handloom_diag::Diagnostic| Told {
        code: d.code.name(),
        line: sources.position(d.span().file, d.span().start).line,
        message: d.message.clone(),
        is_error: d.severity == Severity::Error,
    };
    check_text(text, file).diagnostics.into_iter().map(tell).collect()
}

/// Asserts that a text has exactly these diagnostics: code, line, part of the message.
#[track_caller]
pub fn expect(text: &str, wanted: &[(&str, u32, &str)]) {
    let found = told(text);
    let fits = found.len() == wanted.len()
        && found.iter().zip(wanted).all(|(t, w)| t.code == w.0 && t.line == w.1 && t.message.contains(w.2));
    assert!(fits, "wanted {wanted:#?}\nfound {found:#?}\nin\n{text}");
}

/// Asserts that statements of an entry are accepted without a word.
#[track_caller]
pub fn accepted(statements: &str) {
    expect(&in_entry(statements), &[]);
}

/// Asserts that one statement of an entry gives one diagnostic.
#[track_caller]
pub fn refused(statement: &str, code: &str, message: &str) {
    expect(&in_entry(statement), &[(code, FIRST, message)]);
}

/// The checked module of a text without errors.
#[track_caller]
pub fn module(text: &str) -> CheckedModule {
    let checked = run(text);
    match checked.module {
        Some(m) => m,
        None => panic!("{:#?}\nin\n{text}", checked.diagnostics),
    }
}

#[track_caller]
pub fn var<'m>(m: &'m CheckedModule, name: &str) -> &'m GlobalVar {
    match m.symbols.iter().find(|s| s.name == name).map(|s| &s.kind) {
        Some(SymbolKind::Var(v)) => v,
        other => panic!("{name}: {other:?}"),
    }
}

#[track_caller]
pub fn func<'m>(m: &'m CheckedModule, name: &str) -> &'m Func {
    match m.symbols.iter().find(|s| s.name == name).map(|s| &s.kind) {
        Some(SymbolKind::Func(f)) => f,
        other => panic!("{name}: {other:?}"),
    }
}

/// Instructions of a function.
#[track_caller]
pub fn insts<'m>(m: &'m CheckedModule, name: &str) -> Vec<&'m Inst> {
    let body = func(m, name).body.as_ref().expect("a body");
    body.stmts.iter().filter_map(|s| if let Stmt::Inst(i) = s { Some(&**i) } else { None }).collect()
}
