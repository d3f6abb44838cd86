//! `.version`, `.target`, `.address_size`.
//!
//! # PTX ISA
//! PTX Module Directives.

use handloom_diag::{Code, Diagnostic, Span};
use handloom_isa::target::{NEWEST, Suffix, Target, Version};
use handloom_syntax::ast;

use crate::context::Cx;
use crate::gates;

/// Versions by major number: the largest minor number.
const LAST_MINOR: [(u8, u8); 9] = [(1, 5), (2, 3), (3, 2), (4, 3), (5, 0), (6, 5), (7, 8), (8, 8), (9, 5)];

/// Architectures and the version that each appeared in: plain, `a`, `f`. (0, 0) where there is none.
type Row = (u16, (u8, u8), (u8, u8), (u8, u8));
const NONE: (u8, u8) = (0, 0);
const TARGETS: &[Row] = &[
    (10, (1, 0), NONE, NONE),
    (11, (1, 0), NONE, NONE),
    (12, (1, 2), NONE, NONE),
    (13, (1, 2), NONE, NONE),
    (20, (2, 0), NONE, NONE),
    (21, (2, 0), NONE, NONE),
    (30, (3, 0), NONE, NONE),
    (32, (4, 0), NONE, NONE),
    (35, (3, 1), NONE, NONE),
    (37, (4, 1), NONE, NONE),
    (50, (4, 0), NONE, NONE),
    (52, (4, 1), NONE, NONE),
    (53, (4, 2), NONE, NONE),
    (60, (5, 0), NONE, NONE),
    (61, (5, 0), NONE, NONE),
    (62, (5, 0), NONE, NONE),
    (70, (6, 0), NONE, NONE),
    (72, (6, 1), NONE, NONE),
    (75, (6, 3), NONE, NONE),
    (80, (7, 0), NONE, NONE),
    (86, (7, 1), NONE, NONE),
    (87, (7, 4), NONE, NONE),
    (88, (9, 0), NONE, NONE),
    (89, (7, 8), NONE, NONE),
    (90, (7, 8), (8, 0), NONE),
    (100, (8, 6), (8, 6), (8, 8)),
    (101, (8, 6), (8, 6), (8, 8)),
    (103, (8, 8), (8, 8), (8, 8)),
    (110, (9, 0), (9, 0), (9, 0)),
    (120, (8, 7), (8, 7), (8, 8)),
    (121, (8, 8), (8, 8), (8, 8)),
];

/// Reads the header of a module into `cx` and tells what is wrong with it.
pub(crate) fn header<'a>(cx: &mut Cx<'a>, items: &[ast::Item<'a>]) {
    let first = match items.iter().find(|i| !matches!(i, ast::Item::File { .. } | ast::Item::Section { .. })) {
        Some(ast::Item::Version { .. }) => None,
        Some(item) => Some(span_of(item)),
        None => Some(Span::new(cx.file, 0, 0)),
    };
    if let Some(span) = first {
        let d = Diagnostic::error(Code::Missing, span, "a module begins with `.version`");
        cx.push(d.help("for example `.version 8.0`").section("PTX Module Directives: .version"));
    }
    let (mut versions, mut targets, mut sizes) = (0, 0, 0);
    for item in items {
        match item {
            ast::Item::Version { major, minor, span } => {
                versions += 1;
                if versions == 2 {
                    let d = Diagnostic::error(Code::Duplicate, *span, "`.version` stands twice");
                    cx.push(d.section("PTX Module Directives: .version"));
                }
                version(cx, *major, *minor, *span);
            }
            ast::Item::Target { words, span } => {
                targets += 1;
                if targets == 2 {
                    let d = Diagnostic::error(Code::Duplicate, *span, "`.target` stands twice");
                    cx.push(d.section("PTX Module Directives: .target"));
                }
                target(cx, words, *span);
            }
            ast::Item::AddressSize { bits, span } => {
                sizes += 1;
                if sizes == 2 {
                    let d = Diagnostic::error(Code::Duplicate, *span, "`.address_size` stands twice");
                    cx.push(d.section("PTX Module Directives: .address_size"));
                }
                gates::word(cx, ".address_size", *span);
                address_size(cx, *bits, *span);
            }
            _ => {}
        }
    }
    if targets == 0 && !items.is_empty() && versions > 0 {
        let at = items.iter().find(|i| matches!(i, ast::Item::Version { .. })).map_or(Span::NONE, span_of);
        let d = Diagnostic::error(Code::Missing, at, "a module names its `.target`");
        cx.push(d.help("for example `.target sm_80`").section("PTX Module Directives: .target"));
    }
}

pub(crate) fn span_of(item: &ast::Item<'_>) -> Span {
    match item {
        ast::Item::Version { span, .. }
        | ast::Item::Target { span, .. }
        | ast::Item::AddressSize { span, .. }
        | ast::Item::File { span, .. }
        | ast::Item::Section { span, .. }
        | ast::Item::Alias { span, .. } => *span,
        ast::Item::Vars(v) => v.span,
        ast::Item::Function(f) => f.span,
        ast::Item::Pragma(p) => p.span,
    }
}

fn version(cx: &mut Cx<'_>, major: u32, minor: u32, span: Span) {
    let narrow = |n: u32| u8::try_from(n).unwrap_or(u8::MAX);
    let v = Version::new(narrow(major), narrow(minor));
    cx.version = v;
    if v > NEWEST {
        let message =
            format!("`.version` {major}.{minor} is newer than {}.{}, the newest known one", NEWEST.major, NEWEST.minor);
        cx.push(Diagnostic::warning(Code::WVersion, span, message));
    } else if !LAST_MINOR.iter().any(|(m, last)| *m == v.major && v.minor <= *last) {
        let d = Diagnostic::error(Code::Target, span, format!("there is no PTX version {major}.{minor}"));
        cx.push(d.section("PTX Module Directives: .version"));
        // Nothing else should be blamed on a version that does not exist.
        cx.version = NEWEST;
    }
}

fn target(cx: &mut Cx<'_>, words: &[ast::Name<'_>], span: Span) {
    const SECTION: &str = "PTX Module Directives: .target";
    let mut found = None;
    for word in words {
        match word.text {
            "debug" | "texmode_unified" | "texmode_independent" | "map_f64_to_f32" => {}
            text => match architecture(text) {
                Some((t, since)) => {
                    found = Some(t);
                    if cx.version < since {
                        let (s, v) = (since, cx.version);
                        let message = format!(
                            "`{text}` needs `.version {}.{}` or newer; this module says {}.{}",
                            s.major, s.minor, v.major, v.minor
                        );
                        cx.push(Diagnostic::error(Code::Gate, word.span, message).section(SECTION));
                        // Nothing else should be blamed on it.
                        cx.version = since;
                    }
                }
                None => {
                    let d = Diagnostic::error(Code::Target, word.span, format!("`{text}` is no known target"));
                    cx.push(d.help("for example `sm_80`, `sm_90a` or `sm_100f`").section(SECTION));
                    // As above: no gate errors after it.
                    found = Some(Target { sm: u16::MAX, suffix: Suffix::None });
                }
            },
        }
    }
    match found {
        Some(t) => cx.target = t,
        None => {
            let d = Diagnostic::error(Code::Target, span, "`.target` names no architecture");
            cx.push(d.help("for example `sm_80`").section(SECTION));
        }
    }
}

fn architecture(text: &str) -> Option<(Target, Version)> {
    // `compute_80` is the name that compiler drivers give the same thing; the assembler takes it.
    let digits = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_"))?;
    let (digits, suffix) = match digits.as_bytes().last()? {
        b'a' => (&digits[..digits.len() - 1], Suffix::Arch),
        b'f' => (&digits[..digits.len() - 1], Suffix::Family),
        _ => (digits, Suffix::None),
    };
    let sm: u16 = digits.parse().ok()?;
    let row = TARGETS.iter().find(|r| r.0 == sm)?;
    let since = match suffix {
        Suffix::None => row.1,
        Suffix::Arch => row.2,
        Suffix::Family => row.3,
    };
    (since != NONE).then_some((Target { sm, suffix }, Version::new(since.0, since.1)))
}

fn address_size(cx: &mut Cx<'_>, bits: u64, span: Span) {
    match bits {
        32 => cx.address_size = 32,
        64 => cx.address_size = 64,
        _ => {
            let d = Diagnostic::error(Code::Layout, span, format!("addresses have 32 or 64 bits, not {bits}"));
            cx.push(d.section("PTX Module Directives: .address_size"));
        }
    }
}
