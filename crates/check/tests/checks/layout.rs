//! Variables, parameters, initialisers and constant expressions.

use crate::common::*;
use handloom_check::consts::{Const, eval};
use handloom_check::module::LocalKind;
use handloom_diag::FileId;
use handloom_syntax::ast;

fn top(text: &str) -> String {
    format!("{HEADER}{text}")
}

#[test]
fn parameters() {
    let m = module(&top(".entry k(.param .u8 a, .param .u64 b, .param .align 16 .b8 c[20], .param .u16 d) { ret; }\n\
         .func (.param .u32 r) f(.param .u64 x, .reg .u32 y) { ret; }"));
    let k = func(&m, "k");
    let offsets: Vec<(u32, u32, u32)> = k.params.iter().map(|p| (p.offset, p.size, p.align)).collect();
    assert_eq!(offsets, [(0, 1, 1), (8, 8, 8), (16, 20, 16), (36, 2, 2)]);
    assert_eq!(k.param_bytes, 38);
    let f = func(&m, "f");
    assert_eq!((f.params[1].offset, f.results[0].offset, f.param_bytes), (8, 12, 16));
    assert!(f.params[1].reg.is_some() && f.params[0].reg.is_none());
    let kinds: Vec<LocalKind> = f.body.as_ref().expect("a body").vars.iter().map(|v| v.kind).collect();
    assert_eq!(kinds, [LocalKind::Param(0), LocalKind::Result(0)]);
}

#[test]
fn initialisers() {
    let m = module(&top(
        ".global .s32 x[3][2] = { {1,2}, {3} };\n.global .u16 e[] = {1, 2, 3};\n.global .v2 .u8 v[2] = {{1,2},{3}};\n\
         .global .f32 f = 1.0;\n.global .f64 d = 0f3F800000;\n.global .b32 h = 1.0;\n.const .u8 c[4] = {-1, 0xff};\n.global .b128 q = -1;",
    ));
    assert_eq!(var(&m, "x").init, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    assert_eq!(var(&m, "x").size, 24);
    assert_eq!((var(&m, "e").size, var(&m, "e").init.as_slice()), (6, &[1, 0, 2, 0, 3, 0][..]));
    assert_eq!((var(&m, "v").align, var(&m, "v").init.as_slice()), (2, &[1, 2, 3][..]));
    assert_eq!(var(&m, "f").init, 1f32.to_le_bytes());
    assert_eq!(var(&m, "d").init, 1f64.to_le_bytes());
    assert_eq!(var(&m, "h").init, 1f32.to_le_bytes());
    assert_eq!(var(&m, "c").init, [255, 255]);
    assert_eq!(var(&m, "q").init, [255; 16]);
}

#[test]
fn addresses_in_initialisers() {
    let m = module(&top(".global .u32 x[4];\n.func f() { ret; }\n.global .u64 p[3] = {x, generic(x)+8, f};\n\
         .global .u8 b[3] = {0xff(x), 0xFF00(x+4), 0xff(0x1234)};"));
    let p: Vec<_> = var(&m, "p").relocs.iter().map(|r| (r.offset, r.size, r.addend, r.generic)).collect();
    assert_eq!(p, [(0, 8, 0, false), (8, 8, 8, true), (16, 8, 0, false)]);
    let b: Vec<_> = var(&m, "b").relocs.iter().map(|r| (r.offset, r.size, r.addend, r.shift)).collect();
    assert_eq!(b, [(0, 1, 0, 0), (1, 1, 4, 8)]);
    assert_eq!(var(&m, "b").init, [0, 0, 0x34]);
}

#[test]
fn wrong_variables() {
    for (text, code, message) in [
        (".global .u32 a; .global .u32 a;", "E0202", "`a` is declared twice"),
        (".extern .global .u32 a; .visible .global .u64 a;", "E0501", "declared differently"),
        (".extern .global .u32 a = 4;", "E0501", "`.extern`"),
        (".shared .u32 a = 4;", "E0501", "shared memory begins undefined"),
        (".global .u32 a[];", "E0501", "size of `a` is not known"),
        (".global .u32 a[2] = {1,2,3};", "E0501", "more values"),
        (".global .u32 a[2][2] = {1,2,3,4};", "E0501", "each row"),
        (".global .u32 a = {5};", "E0501", "without braces"),
        (".global .u32 a[2] = 5;", "E0501", "a list in braces"),
        (".global .f16 a = 1;", "E0501", "cannot have an initialiser"),
        (".global .f32 a = 1;", "E0305", "an integer literal"),
        (".global .u32 a = 1.0;", "E0305", "a float literal"),
        (".global .u64 b = a;", "E0201", "`a` is not declared"),
        (".shared .u32 a; .global .u64 b = a;", "E0501", "lies in `.shared`"),
        (".global .u32 a; .global .u16 b = a;", "E0501", "an address does not fit"),
        (".global .u32 a; .global .u8 b = 0xfff(a);", "E0102", "one byte"),
        (".global .align 3 .u32 a;", "E0501", "not a power of two"),
        (".global .v3 .u32 a;", "E0501", "`.v3`"),
        (".global .v4 .u64 a;", "E0501", "wider than 128 bits"),
        (".global .pred a;", "E0501", "can only be a register"),
        (".local .u32 a;", "E0501", "outside a function"),
        (".const .u32 a[65537];", "E0501", "there are 65536"),
        (".entry k(.param .u32 a[]) { ret; }", "E0501", "must be known"),
        (".entry k(.reg .u32 a) { ret; }", "E0501", "not `.reg`"),
        (".entry k(.param .u32 a, .param .u32 a) { ret; }", "E0202", "`a` is declared twice"),
        (".entry k(.param .b8 x[40000]) { ret; }", "E0501", "too large"),
        (".func k(.param .u32 a); .func k(.param .u64 a) { ret; }", "E0501", "4 and 8 bytes"),
        (".func k(.param .u32 a); .func k() { ret; }", "E0501", "1 and 0 parameters"),
        (".func k() { ret; } .func k() { ret; }", "E0202", "declared twice"),
        (".extern .func k(); .func k() { ret; }", "E0501", "another module"),
        (".entry k() .reqntid 32 .maxntid 32 { ret; }", "E0306", "exclude"),
        (".entry k() .maxntid 0 { ret; }", "E0501", "positive"),
        (".func k() .maxntid 32 { ret; }", "E0101", "no directive of a `.func`"),
        (".func f() { ret; } .alias a, f;", "E0201", "`a` is not declared"),
    ] {
        expect(&top(text), &[(code, 4, message)]);
    }
}

#[test]
fn headers() {
    for (text, wanted) in [
        (".target sm_80\n", &[("E0104", 1, "begins with `.version`")][..]),
        (".version 8.0\n", &[("E0104", 1, "names its `.target`")]),
        (".version 3.14\n.target sm_30\n", &[("E0402", 1, "no PTX version 3.14")]),
        (".version 9.9\n.target sm_80\n", &[("W0401", 1, "newer than 9.5")]),
        (".version 8.0\n.target sm_81\n", &[("E0402", 2, "`sm_81` is no known target")]),
        (".version 8.0\n.target debug\n", &[("E0402", 2, "names no architecture")]),
        (".version 8.0\n.target sm_80, debug\n", &[]),
        (".version 7.0\n.target sm_90\n", &[("E0401", 2, "`.version 7.8` or newer")]),
        (".version 8.0\n.target sm_80\n.address_size 48\n", &[("E0501", 3, "32 or 64 bits")]),
    ] {
        expect(text, wanted);
    }
    assert_eq!(module(".version 8.0\n.target sm_90a\n").address_size, 32);
}

#[test]
fn function_scope_variables_are_symbols() {
    let m = module(&top(".entry k() { .shared .u32 x; { .shared .u64 x; st.shared.u64 [x], 1; } ret; }"));
    let names: Vec<(&str, u64)> = m.symbols.iter().skip(1).map(|s| (s.name.as_str(), var(&m, &s.name).size)).collect();
    assert_eq!(names, [("k$x$1", 4), ("k$x$2", 8)]);
    assert_eq!(var(&m, "k$x$1").owner, Some(handloom_check::module::SymbolId(0)));
}

/// The value of an expression as the parser reads it: bits, and whether it is `.u64`.
fn value(text: &str) -> (u64, bool) {
    let source = format!(".global .u64 x = {text};");
    let parse = handloom_syntax::parse(&source, FileId(0));
    assert!(parse.errors.is_empty(), "{text}: {:?}", parse.errors);
    let ast::Item::Vars(decl) = &parse.module.items[0] else { panic!("{text}") };
    let Some(ast::Init::Value(e)) = &decl.vars[0].init else { panic!("{text}") };
    match eval(e) {
        Ok(Const::Int { value, unsigned, .. }) => (value, unsigned),
        other => panic!("{text}: {other:?}"),
    }
}

/// Integer Constant Expression Evaluation: the types of sub-expressions decide.
#[test]
fn expression_typing() {
    const S: bool = false;
    const U: bool = true;
    let minus = |n: i64| n.cast_unsigned();
    for (text, wanted) in [
        ("1 + 2 * 3", (7, S)),
        ("(1 + 2) * 3", (9, S)),
        ("42U + 1", (43, U)),
        ("-1U", (u64::MAX, U)),
        ("-7 / 2", (minus(-3), S)),
        ("-7 / 2U", (minus(-7) / 2, U)),
        ("-7 % 3", (minus(-7) % 3, S)),
        ("-8 >> 1", (minus(-4), S)),
        ("(.u64) -8 >> 1", (minus(-8) >> 1, U)),
        ("1 << 64", (0, S)),
        ("-1 >> 100", (u64::MAX, S)),
        ("~0", (u64::MAX, U)),
        ("!5", (0, S)),
        ("-1 < 1", (1, S)),
        ("-1 < 1U", (0, S)),
        ("1 == 1U", (1, S)),
        ("2 && 0 || 1", (1, S)),
        ("6 & 3 ^ 1 | 8", (11, S)),
        ("1 ? 2 : 3U", (2, U)),
        ("(.s64) 1U", (1, S)),
        ("0xfabc123400000000", (0xfabc_1234_0000_0000, U)),
        ("0b101 + 010", (13, S)),
        ("WARP_SZ * 2", (64, S)),
        ("1.5 < 2.0", (1, S)),
    ] {
        assert_eq!(value(text), wanted, "{text}");
    }
}
