//! What the trees of small texts are.

mod common;

use common::{SAMPLES, in_body, read, stmts};
use handloom_syntax::ast::{BinaryOp, Expr, ExprKind, Init, Inst, Item, Linkage, Operand, OperandKind, Stmt, UnaryOp};
use handloom_syntax::{decode, parse, print, same};

#[test]
fn samples_parse_without_errors() {
    for sample in SAMPLES {
        assert_eq!(common::errors(sample), "");
    }
}

#[test]
fn printing_and_parsing_again_gives_the_same_tree() {
    for sample in SAMPLES {
        let first = read(sample);
        let text = print(&first.module);
        let second = read(&text);
        assert_eq!(common::errors(&text), "");
        assert!(same(&first.module, &second.module), "{text}");
        assert_eq!(print(&second.module), text);
    }
}

#[test]
fn trees_that_differ_are_not_the_same() {
    let base = "mov.f64 %fd1, 0d7FF0000000000001;";
    for other in [
        "mov.f64 %fd1, 0d7FF0000000000002;",
        "mov.f64 %fd1, 0d7FF0000000000001; ret;",
        "mov.f64 %fd1, 1;",
        "@p mov.f64 %fd1, 0d7FF0000000000001;",
        "mov.b64 %fd1, 0d7FF0000000000001;",
        "{ mov.f64 %fd1, 0d7FF0000000000001; }",
    ] {
        let (a, b) = (in_body(base), in_body(other));
        assert!(!same(&read(&a).module, &read(&b).module), "{other}");
        assert!(same(&read(&a).module, &read(&format!("/* moved */ {a}")).module));
    }
    let quoted = ".pragma \"Span { x\"; .pragma \"}\";";
    assert!(!same(&read(quoted).module, &read(".pragma \"Span { y\"; .pragma \"}\";").module));
}

/// The only instruction of a body.
fn inst(text: &str, look: impl FnOnce(&Inst<'_>)) {
    let text = in_body(text);
    let parsed = read(&text);
    match stmts(&parsed) {
        [Stmt::Inst(inst)] => look(inst),
        other => panic!("{other:?}"),
    }
}

/// An operand as a short text that shows the kinds of nodes.
fn shape(operand: &Operand<'_>) -> String {
    match &operand.kind {
        OperandKind::Name(name) => format!("name {name}"),
        OperandKind::Member(name, words) => format!("member {name} {}", words.join(" ")),
        OperandKind::Expr(e) => expr(e),
        OperandKind::Vector(list) => format!("vector({})", shapes(list)),
        OperandKind::Address(a) => {
            let mut parts = vec![shape(&a.base)];
            parts.extend(a.offset.as_ref().map(|o| format!("offset {}", expr(o))));
            parts.extend(a.more.iter().map(shape));
            format!("address({}){}", parts.join(", "), if a.unified { " unified" } else { "" })
        }
        OperandKind::Sink => "sink".into(),
        OperandKind::Not(name) => format!("not {}", name.text),
        OperandKind::Neg(inner) => format!("neg {}", shape(inner)),
        OperandKind::Pair(a, b) => format!("pair({}, {})", shape(a), shape(b)),
        OperandKind::Paren(list) => format!("paren({})", shapes(list)),
        OperandKind::Indexed(name, index) => format!("indexed {name} {}", shape(index)),
    }
}

fn shapes(list: &[Operand<'_>]) -> String {
    list.iter().map(shape).collect::<Vec<_>>().join(", ")
}

fn expr(e: &Expr<'_>) -> String {
    match &e.kind {
        ExprKind::Int { value, unsigned, truncated } => {
            format!("{value}{}{}", if *unsigned { "u" } else { "" }, if *truncated { "!" } else { "" })
        }
        ExprKind::Float(v) => format!("{v:?}"),
        ExprKind::Float32(bits) => format!("f{bits:08x}"),
        ExprKind::Name(name) => (*name).into(),
        ExprKind::Generic(inner) => format!("generic({})", expr(inner)),
        ExprKind::Mask(mask, inner) => format!("mask({mask:x}, {})", expr(inner)),
        ExprKind::Unary(op, a) => format!("{op:?}({})", expr(a)),
        ExprKind::Binary(op, a, b) => format!("{op:?}({}, {})", expr(a), expr(b)),
        ExprKind::Ternary(a, b, c) => format!("If({}, {}, {})", expr(a), expr(b), expr(c)),
        ExprKind::Cast { signed, value } => format!("{}({})", if *signed { "s64" } else { "u64" }, expr(value)),
    }
}

#[test]
fn operands() {
    for (text, expected) in [
        ("x %r1, _, %tid.x, r2.b0", "name %r1, sink, member %tid x, member r2 b0"),
        (
            "x %p1|%p2, _|%p2, {a}|p, %p1 | _",
            "pair(name %p1, name %p2), pair(sink, name %p2), pair(vector(name a), name p), pair(name %p1, sink)",
        ),
        ("x !%p, -%r1, -r1.h0, ! q", "not %p, neg name %r1, neg member r1 h0, not q"),
        ("x {%r1, _, 5, V.x}", "vector(name %r1, sink, 5, member V x)"),
        (
            "x [a], [a+4], [%r+-4], [a + 8 - 4]",
            "address(name a), address(name a, offset 4), address(name %r, offset Minus(4)), address(name a, offset Sub(8, 4))",
        ),
        (
            "x [16], [-4], [4+4], [t, {x, y}], [t, s, {x}].unified",
            "address(16), address(Minus(4)), address(Add(4, 4)), address(name t, vector(name x, name y)), address(name t, name s, vector(name x)) unified",
        ),
        (
            "x table[2], table[%r3], table[%r3+4], table[1+1]",
            "indexed table 2, indexed table name %r3, indexed table Add(%r3, 4), indexed table Add(1, 1)",
        ),
        (
            "x sym+4, sym+4+4, WARP_SZ, WARP_SZ|1, -WARP_SZ",
            "Add(sym, 4), Add(sym, Add(4, 4)), WARP_SZ, Or(WARP_SZ, 1), Minus(WARP_SZ)",
        ),
        ("call (r), f, (a, 5, {x, y}), p", "paren(name r), name f, paren(name a, 5, vector(name x, name y)), name p"),
        ("call f, ()", "name f, paren()"),
        ("x (5), (1+2)*3", "5, Mul(Add(1, 2), 3)"),
    ] {
        inst(&format!("{text};"), |i| assert_eq!(shapes(&i.operands), expected, "{text}"));
    }
}

#[test]
fn expressions_bind_as_in_c() {
    for (text, expected) in [
        ("1 + 2 * 3 - 4", "Sub(Add(1, Mul(2, 3)), 4)"),
        ("1 << 2 + 3 >> 4", "Shr(Shl(1, Add(2, 3)), 4)"),
        ("1 < 2 == 3 >= 4 != 5", "Ne(Eq(Lt(1, 2), Ge(3, 4)), 5)"),
        ("1 | 2 ^ 3 & 4 && 5 || 6", "LogicalOr(LogicalAnd(Or(1, Xor(2, And(3, 4))), 5), 6)"),
        ("1 ? 2 : 3 ? 4 : 5", "If(1, 2, If(3, 4, 5))"),
        ("1 ? 2 ? 3 : 4 : 5", "If(1, If(2, 3, 4), 5)"),
        ("-~!+1", "Minus(Complement(Not(Plus(1))))"),
        ("(.s64)-1 * 2", "Mul(s64(Minus(1)), 2)"),
        ("10 % 3", "Rem(10, 3)"),
        ("--5", "Minus(Minus(5))"),
    ] {
        inst(&format!("x {text};"), |i| assert_eq!(shapes(&i.operands), expected, "{text}"));
    }
    assert_eq!((UnaryOp::Not, BinaryOp::Rem), (UnaryOp::Not, BinaryOp::Rem));
}

#[test]
fn literals() {
    for (text, expected) in [
        ("0", "0"),
        ("0U", "0u"),
        ("017", "15"),
        ("0x1fU", "31u"),
        ("0B101", "5"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808u"),
        ("18446744073709551615", "18446744073709551615u"),
        ("18446744073709551616", "0u!"),
        ("0x1FFFFFFFFFFFFFFFF", "18446744073709551615u!"),
        ("0b10000000000000000000000000000000000000000000000000000000000000001", "1u!"),
        ("0f3F800000", "f3f800000"),
        ("0Fbf800000", "fbf800000"),
        ("0d3FF8000000000000", "1.5"),
        ("1.5", "1.5"),
        ("1.", "1.0"),
        (".5", "0.5"),
        (".5e1", "5.0"),
        ("1e3", "1000.0"),
        ("1E+3", "1000.0"),
        ("25e-2", "0.25"),
        ("00.5", "0.5"),
        ("1e999", "inf"),
    ] {
        // Not as the first operand: there `.5` would be a qualifier.
        inst(&format!("x a, {text};"), |i| assert_eq!(shapes(&i.operands[1..]), expected, "{text}"));
    }
}

#[test]
fn qualifiers_keep_their_dots_and_colons() {
    let text =
        "@!%p cp.async.bulk.1d.m16n8k16.shared::cluster.L2::128B.mbarrier::complete_tx::bytes.collector::b2:use;";
    inst(text, |i| {
        let words: Vec<_> = i.qualifiers.iter().map(|q| q.text).collect();
        let expected = [
            ".async",
            ".bulk",
            ".1d",
            ".m16n8k16",
            ".shared::cluster",
            ".L2::128B",
            ".mbarrier::complete_tx::bytes",
            ".collector::b2:use",
        ];
        assert_eq!(words, expected);
        assert_eq!(i.opcode.text, "cp");
        assert!(i.guard.is_some_and(|g| g.negated && g.name.text == "%p"));
    });
}

#[test]
fn places_are_those_of_the_text() {
    let text = in_body("@p ld.global.b32 %r1, [%rd1+4];");
    let parsed = read(&text);
    let [Stmt::Inst(i)] = stmts(&parsed) else { panic!("not one instruction") };
    let at = |span: handloom_diag::Span| &text[span.start as usize..span.end as usize];
    assert_eq!(at(i.span), "@p ld.global.b32 %r1, [%rd1+4];");
    assert_eq!(at(i.opcode.span), "ld");
    assert_eq!(at(i.qualifiers[1].span), ".b32");
    assert_eq!(at(i.operands[0].span), "%r1");
    assert_eq!(at(i.operands[1].span), "[%rd1+4]");
    let OperandKind::Address(a) = &i.operands[1].kind else { panic!("no address") };
    assert_eq!(at(a.base.span), "%rd1");
    assert_eq!(a.offset.as_ref().map(|o| at(o.span)), Some("4"));
}

#[test]
fn declarations() {
    let text = ".visible .global .attribute(.unified(1,2)) .align 8 .v2 .f32 a, b<4>, c[2][3] = {{1.0}, {}};";
    let parsed = read(text);
    assert!(parsed.errors.is_empty());
    let [Item::Vars(d)] = &parsed.module.items[..] else { panic!("not one declaration") };
    assert_eq!(d.linkage.map(|l| l.0), Some(Linkage::Visible));
    assert_eq!((d.space.text, d.ty.text, d.vector.map(|v| v.text)), (".global", ".f32", Some(".v2")));
    assert_eq!(d.align.map(|a| a.0), Some(8));
    assert_eq!((d.attributes[0].name.text, &d.attributes[0].values[..]), (".unified", &[1, 2][..]));
    assert_eq!(d.vars[1].count.map(|c| c.0), Some(4));
    assert_eq!(d.vars[2].dims.len(), 2);
    let Some(Init::List(rows, _)) = &d.vars[2].init else { panic!("no list") };
    assert!(matches!(&rows[..], [Init::List(one, _), Init::List(none, _)] if one.len() == 1 && none.is_empty()));
}

#[test]
fn functions() {
    let text = ".weak .func (.param .b32 r) f(.param .u64 .ptr .global .align 4 a, .param .b8 rest[]) .noreturn;";
    let parsed = read(text);
    assert!(parsed.errors.is_empty());
    let [Item::Function(f)] = &parsed.module.items[..] else { panic!("not one function") };
    assert_eq!((f.name.text, f.is_entry, f.results.len(), f.params.len()), ("f", false, 1, 2));
    let ptr = f.params[0].ptr.expect("a pointer");
    assert_eq!((ptr.space.map(|s| s.text), ptr.align), (Some(".global"), Some(4)));
    assert!(matches!(f.params[1].vars[0].dims[..], [None]));
    assert_eq!(f.directives[0].name.text, ".noreturn");
    assert!(f.body.is_none());
}

#[test]
fn targets_of_a_range_keep_their_text() {
    let text = in_body("ts: .branchtargets N <5>, L;");
    let parsed = read(&text);
    let [Stmt::Targets { label, calls: false, targets, .. }] = stmts(&parsed) else { panic!("no targets") };
    assert_eq!(label.text, "ts");
    assert_eq!(targets.iter().map(|t| t.text).collect::<Vec<_>>(), ["N <5>", "L"]);
}

#[test]
fn one_nul_at_the_end_is_ignored() {
    assert!(read(".version 8.0\0").errors.is_empty());
    for text in [".version 8.0\0\0", ".version 8.0\0\n", "\0.version 8.0\0", "// \0\n.version 8.0", ".ver\0sion 8.0"] {
        let errors = read(text).errors;
        assert_eq!(errors.iter().map(|d| d.code.name()).collect::<Vec<_>>(), ["E0103"], "{text:?}");
    }
}

#[test]
fn bytes_that_are_no_text() {
    assert_eq!(decode(b".version 8.0"), Ok(".version 8.0"));
    assert_eq!(decode(b"// \xff"), Err(3));
    assert!(parse("", handloom_diag::FileId(0)).module.items.is_empty());
}
