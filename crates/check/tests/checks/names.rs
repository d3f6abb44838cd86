//! Names: scopes, numbered registers, labels, errors that are told once.

use crate::common::*;

#[test]
fn scopes_and_shadowing() {
    for body in [
        ".reg .u32 x; { .reg .f32 x; mov.f32 x, 1.0; } mov.u32 x, 1;",
        "{ .reg .u32 pa; mov.u32 pa, 1; }",
        // An inner range hides only the numbers that it has.
        "{ .reg .f32 %r<2>; add.f32 %r1, %r1, %r1; add.u32 %r2, %r2, 1; }",
        "{ L: bra L; } { L: bra L; }",
        "{ bra OUT; } OUT: ret;",
        ".reg .u32 g; mov.u32 g, 1;",
        ".reg .b8 %c <15>; ld.global.u8 %c14, [g];",
        ".reg .u32 a, b; add.u32 a, b, b;",
    ] {
        accepted(body);
    }
}

#[test]
fn wrong_names() {
    for (body, code, message) in [
        ("mov.u32 %r9, 1;", "E0201", "`%r9` is not declared in `k`"),
        ("mov.u32 %r09, 1;", "E0201", "`%r09` is not declared"),
        ("{ .reg .u32 y; } mov.u32 y, 1;", "E0201", "`y` is not declared"),
        ("{ L: ret; } bra L;", "E0201", "`L` is not declared"),
        (".reg .u32 %r3;", "E0202", "`%r3` is declared twice"),
        (".reg .u32 %r<4>;", "E0202", "`%r` is declared twice"),
        (".reg .u32 x5; .reg .u32 x<9>;", "E0202", "`x` is declared twice"),
        (".reg .u32 pa;", "E0202", "`pa` is declared twice"),
        ("L: L: ret;", "E0202", "`L` is declared twice"),
        (".reg .u32 L; L: ret;", "E0202", "`L` is declared twice"),
        ("call late; ", "E0201", "`late` is not declared"),
    ] {
        refused(body, code, message);
    }
}

#[test]
fn errors_are_told_once() {
    // An undeclared name once a function.
    expect(&in_entry("mov.u32 no, 1;\nmov.u32 no, 2;"), &[("E0201", FIRST, "`no`")]);
    // A bad declaration is not blamed on its uses.
    expect(
        &in_entry(".reg .bf16 x, y<4>;\nadd.bf16 x, x, y3;"),
        &[("E0501", FIRST, "`.bf16` is no type of a variable")],
    );
    let text = format!(
        "{HEADER}.global .u32 a[0];\n.func f(.param .pred p);\n.entry k() {{ .reg .u32 r;\nld.global.u32 r, [a];\ncall f, (r);\nret; }}"
    );
    expect(&text, &[("E0501", 4, "size of `a`"), ("E0501", 5, "`.pred`")]);
    // Two faults that stand on their own are two errors.
    expect(&in_entry("@no add.u32 %f1, %r1, %r2;"), &[("E0201", FIRST, "`no`"), ("E0303", FIRST, "`%f1`")]);
}

#[test]
fn every_error_is_reported() {
    let text = in_entry("sad.f32 %f1, %f2, %f3, %f4;\nadd.u32 %r1, %r2;\nfoo;\nadd.f32 %f1, %f2, 1;");
    expect(
        &text,
        &[
            ("E0301", FIRST, "sad"),
            ("E0302", FIRST + 1, "takes 3"),
            ("E0307", FIRST + 2, "foo"),
            ("E0305", FIRST + 3, "integer"),
        ],
    );
}

#[test]
fn help() {
    let help = |text: &str| run(text).diagnostics[0].help.clone().unwrap_or_default();
    assert_eq!(help(&in_entry("mov.u32 %r9, 1;")), "`%r<9>` declares `%r0` to `%r8`");
    assert_eq!(help(&in_entry(".reg .u32 counter;\nmov.u32 countr, 1;")), "did you mean `counter`?");
    let text = format!("{HEADER}.entry k() {{ call late; ret; }}\n.func late() {{ ret; }}");
    assert_eq!(help(&text), "declare it before its first use");
}

/// A statement that could not be read may have declared what is missing; other names are still told.
#[test]
fn syntax_errors_beside_names() {
    let found = told(&in_entry(".reg .u32 lost ?;\nmov.u32 lost, other;"));
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found.iter().any(|t| t.code == "E0101"));
    assert!(found.iter().any(|t| t.code == "E0201" && t.message.contains("`other`")));
}

#[test]
fn registers_get_a_place_when_used() {
    let m = module(&in_entry(
        ".reg .u32 %big<1000000>;\nmov.u32 %big999999, 1;\nmov.u32 %big7, %big999999;\nmov.f32 %v.y, 1.0;",
    ));
    let body = func(&m, "k").body.clone().expect("a body");
    let names: Vec<&str> = body.regs.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["%big999999", "%big7", "%v.x", "%v.y", "%v.z", "%v.w"]);
}

#[test]
fn errors_in_functions_name_them() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
        .func helper() { .reg .u32 %r<2>; add.f32 %r0, %r1, %r1; mov.u32 %r0 %r1; ret; }\n\
        .func other() { ret; }\n\
        .entry k() { .reg .u32 %r<2>; add.f32 %r0, %r1, %r1; mov.u32 %r0 %r1; ret; }\n";
    let told = handloom_check::check_text(text, handloom_diag::FileId(0)).diagnostics;
    let functions: Vec<Option<&str>> = told.iter().map(|d| d.function.as_deref()).collect();
    // Three registers and a forgotten comma in each.
    assert_eq!(functions, [[Some("helper"); 4], [None; 4]].concat(), "{told:?}");
}
