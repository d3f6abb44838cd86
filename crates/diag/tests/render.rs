//! What people and machines read, compared whole.

use handloom_diag::{
    Code, Diagnostic, FileId, Footer, Heading, Report, Severity, Snippet, SourceMap, Span, Style, render_human,
    render_json, render_snippets,
};

fn place(sources: &SourceMap, file: FileId, text: &str) -> Span {
    let start = sources.text(file).find(text).expect("the text is in the file");
    Span::new(file, start as u32, (start + text.len()) as u32)
}

fn kernel() -> (SourceMap, FileId) {
    let mut sources = SourceMap::new();
    let text = format!("{}    sad.f32  %f4, %f1, %f2, %f3;\n    ret;\n", "\n".repeat(26));
    let file = sources.add("kernels/dist.ptx", text);
    (sources, file)
}

fn wrong_form(span: Span) -> Diagnostic {
    Diagnostic::error(Code::NoForm, span, "`sad` has no `.f32` form")
        .label("expected one of `.u16`, `.u32`, `.u64`, `.s16`, `.s32`, `.s64`")
        .help("for floats use `sub`, `abs` and `add`")
        .section("Integer Arithmetic Instructions: sad")
}

#[test]
fn a_wrong_form_for_people() {
    let (sources, file) = kernel();
    let d = wrong_form(place(&sources, file, ".f32"));
    let expected = "\
error[E0301]: `sad` has no `.f32` form
  --> kernels/dist.ptx:27:8
   |
27 |     sad.f32  %f4, %f1, %f2, %f3;
   |        ^^^^ expected one of `.u16`, `.u32`, `.u64`, `.s16`, `.s32`, `.s64`
   |
   = help: for floats use `sub`, `abs` and `add`
   = section: Integer Arithmetic Instructions: sad";
    assert_eq!(render_human(&d, &sources, Style::Plain), expected);
}

#[test]
fn colour_changes_no_text() {
    let (sources, file) = kernel();
    let d = wrong_form(place(&sources, file, ".f32"));
    let colored = render_human(&d, &sources, Style::Color);
    assert!(colored.contains('\u{1b}'));
    let mut plain = String::new();
    let mut rest = colored.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').expect("an escape ends with m").1;
    }
    plain.push_str(rest);
    assert_eq!(plain, render_human(&d, &sources, Style::Plain));
}

#[test]
fn json_has_all_keys_in_use() {
    let (sources, file) = kernel();
    let d = wrong_form(place(&sources, file, ".f32"));
    let json: serde_json::Value = serde_json::from_str(&render_json(&d, &sources)).expect("JSON");
    let expected = serde_json::json!({
        "file": "kernels/dist.ptx", "line": 27, "column": 8, "end_line": 27, "end_column": 12,
        "severity": "error", "kind": "program", "code": "E0301", "message": "`sad` has no `.f32` form",
        "help": "for floats use `sub`, `abs` and `add`", "section": "Integer Arithmetic Instructions: sad",
    });
    assert_eq!(json, expected);
    let bare = Diagnostic::unsupported(Code::Unsupported, Span::NONE, "tex.2d", "no textures");
    let json: serde_json::Value = serde_json::from_str(&render_json(&bare, &sources)).expect("JSON");
    let expected = serde_json::json!({
        "severity": "error", "kind": "unsupported", "code": "E0901", "message": "no textures", "opcode": "tex.2d",
    });
    assert_eq!(json, expected);
}

#[test]
fn nowhere_is_a_title_only() {
    let d = Diagnostic::error(Code::Missing, Span::NONE, "the file is empty").help("start with `.version`");
    let expected = "error[E0104]: the file is empty\n |\n = help: start with `.version`";
    assert_eq!(render_human(&d, &SourceMap::new(), Style::Plain), expected);
}

#[test]
fn a_trap_shows_both_sources() {
    let mut sources = SourceMap::new();
    let text = format!("{}    st.global.f32 [%rd7], %f3;\n", "\n".repeat(30));
    let file = sources.add("kernels/saxpy.ptx", text);
    let report = Report {
        heading: Heading::Word("trap"),
        title: "out of bounds: write of 4 bytes at d+2400".into(),
        snippets: vec![
            Snippet::Places(vec![(place(&sources, file, "st.global.f32"), "block (2,0,0), thread (88,0,0)".into())]),
            Snippet::Line {
                name: "saxpy.cu",
                line: 9,
                text: "  y[i] = a * x[i] + y[i];",
                label: "the CUDA source line, from `.loc`".into(),
            },
        ],
        footers: vec![
            Footer::Note("`d` is argument 3: 600 elements of 4 bytes".into()),
            Footer::Help("guard the store with the element count".into()),
        ],
    };
    let expected = "\
trap: out of bounds: write of 4 bytes at d+2400
  --> kernels/saxpy.ptx:31:5
   |
31 |     st.global.f32 [%rd7], %f3;
   |     ^^^^^^^^^^^^^ block (2,0,0), thread (88,0,0)
   |
  ::: saxpy.cu:9:3
   |
 9 |   y[i] = a * x[i] + y[i];
   |   ----------------------- the CUDA source line, from `.loc`
   |
   = note: `d` is argument 3: 600 elements of 4 bytes
   = help: guard the store with the element count";
    assert_eq!(render_snippets(&report, &sources, Style::Plain), expected);
}

#[test]
fn a_second_place_far_away_is_a_second_piece() {
    let mut sources = SourceMap::new();
    let text = format!(".reg .b32 a;\n{}.reg .b32 b; .reg .f32 a;\n", "\n".repeat(5000));
    let file = sources.add("k.ptx", text);
    let first = place(&sources, file, "a;");
    let second = place(&sources, file, "f32 a");
    let d = Diagnostic::error(Code::Duplicate, second, "`a` is declared twice").also(first, "first here");
    let expected = "\
error[E0202]: `a` is declared twice
    --> k.ptx:5002:20
     |
5002 | .reg .b32 b; .reg .f32 a;
     |                    ^^^^^
     |
    ::: k.ptx:1:11
     |
   1 | .reg .b32 a;
     |           -- first here";
    assert_eq!(render_human(&d, &sources, Style::Plain), expected);
}

#[test]
fn a_line_of_megabytes_is_cut() {
    let mut sources = SourceMap::new();
    let text = format!("{} é here {}", "x ".repeat(500_000), "y ".repeat(500_000));
    let file = sources.add("long.ptx", text);
    let d = Diagnostic::error(Code::Syntax, place(&sources, file, "here"), "no");
    let text = render_human(&d, &sources, Style::Plain);
    assert!(text.len() < 2000, "{}", text.len());
    assert!(text.contains("--> long.ptx:1:1000005"), "{text}");
    assert!(text.contains("^^^^"), "{text}");
}

#[test]
fn any_place_can_be_drawn() {
    let mut sources = SourceMap::new();
    let file = sources.add("a.ptx", "é\tö\r\n\0x\n\nend");
    let len = sources.text(file).len() as u32;
    for start in 0..len + 3 {
        for end in start.saturating_sub(1)..len + 3 {
            let d = Diagnostic::error(Code::Syntax, Span::new(file, start, end), "m")
                .also(Span::new(file, end, start), "l");
            render_human(&d, &sources, Style::Plain);
            render_json(&d, &sources);
        }
    }
}

#[test]
fn twenty_thousand_errors_of_a_big_file_are_quick() {
    let line = "    add.s32 %r1, %r2, %r3; // some ordinary line of the usual length\n";
    let mut sources = SourceMap::new();
    let file = sources.add("big.ptx", line.repeat(150_000));
    let clock = std::time::Instant::now();
    for i in 0..20_000 {
        let at = i * 7 * line.len() as u32;
        let span = Span::new(file, at + 4, at + 11);
        let d = Diagnostic::error(Code::NoForm, span, "m").also(Span::new(file, 4, 11), "there");
        let d = Diagnostic { severity: Severity::Warning, ..d };
        assert!(render_human(&d, &sources, Style::Plain).len() < 1000);
        render_json(&d, &sources);
    }
    assert!(clock.elapsed().as_secs() < 20, "{:?}", clock.elapsed());
}
