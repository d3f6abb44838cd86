//! Calls: layout, prototypes, built-ins.

use crate::common::*;
use handloom_check::module::{Call, CallArg, CallTarget, Operand};
use handloom_ir::simt::Builtin;

fn call_of(text: &str) -> Call {
    let m = module(&format!("{HEADER}{text}"));
    let found = insts(&m, "k").into_iter().find_map(|i| match i.src.first() {
        Some(Operand::Call(c)) => Some((**c).clone()),
        _ => None,
    });
    found.expect("a call")
}

#[test]
fn direct() {
    let c = call_of(
        ".func (.param .b32 r) f(.param .b32 a, .param .align 4 .b8 b[8]) { ret; }\n.entry k() { .param .b32 x; .param .align 4 .b8 y[8]; \
         .param .b32 z; call.uni (z), f, (x, y); ret; }",
    );
    assert!(matches!(c.target, CallTarget::Direct(_)));
    assert_eq!((c.params.len(), c.result_params.len(), c.param_bytes), (2, 1, 16));
    assert!(matches!(c.args[..], [CallArg::Var(_), CallArg::Var(_)]));
}

#[test]
fn registers_and_constants() {
    let c = call_of(
        ".func (.reg .u32 r) f(.reg .u32 a, .param .f32 b) { mov.u32 r, a; ret; }\n.entry k() { .reg .u32 x; call (x), f, (x, 1.0); ret; }",
    );
    assert!(matches!(c.args[..], [CallArg::Reg(_), CallArg::Imm(0x3f80_0000)]));
    assert!(matches!(c.results[..], [CallArg::Reg(_)]));
}

#[test]
fn builtins_and_extern() {
    let text = |name: &str| {
        format!(
            ".extern .func (.param .b64 r) {name}(.param .b64 a);\n.entry k() {{ .param .b64 x; .param .b64 z; call (z), {name}, (x); ret; }}"
        )
    };
    assert_eq!(call_of(&text("malloc")).target, CallTarget::Builtin(Builtin::Malloc));
    assert!(matches!(call_of(&text("other")).target, CallTarget::Direct(_)));
}

#[test]
fn indirect() {
    let c = call_of(
        ".func f(.param .b32 a) { ret; }\n.entry k() { .reg .u64 p; .param .b32 x; mov.u64 p, f;\n\
         proto: .callprototype _ (.param .b32 _);\ncall p, (x), proto; ret; }",
    );
    assert!(matches!(c.target, CallTarget::Indirect(_)) && c.targets.is_none());
    let c = call_of(
        ".func f() { ret; } .func g() { ret; }\n.entry k() { .reg .u64 p; mov.u64 p, f;\nT: .calltargets f, g;\ncall p, (), T; ret; }",
    );
    assert_eq!(c.targets.map(|t| t.len()), Some(2));
    let c = call_of(".func f() { ret; }\n.global .u64 T[2] = {f, f};\n.entry k() { .reg .u64 p; call p, (), T; ret; }");
    assert_eq!(c.targets.map(|t| t.len()), Some(2));
}

#[test]
fn wrong_calls() {
    for (functions, body, code, message) in [
        (".func f(.param .u32 a) { ret; }", "call f;", "E0302", "has 1 argument, and 0 are given"),
        (".func f(.param .u32 a) { ret; }", "call f, (1.0);", "E0305", "a float literal"),
        (".func f(.param .u32 a) { ret; }", ".reg .f32 x; call f, (x);", "E0303", "a `.f32` register"),
        (".func f(.param .u32 a) { ret; }", ".param .u64 x; call f, (x);", "E0303", "has 8 bytes"),
        (".func f(.param .align 4 .b8 a[4]) { ret; }", ".param .b8 x[4]; call f, (x);", "E0303", "aligned to 1"),
        (".func f(.param .u32 a) { ret; }", ".local .u32 x; call f, (x);", "E0303", "`.local`"),
        (".func (.param .u32 r) f() { ret; }", "call f;", "E0302", "has 1 result, and 0 are given"),
        (".entry e() { ret; }", "call e;", "E0203", "is an entry"),
        (".global .u32 g;", "call g;", "E0203", "is a variable"),
        ("", "call nope;", "E0201", "`nope`"),
        ("", ".reg .u64 x; call x;", "E0302", "needs a prototype"),
        ("", ".reg .f64 x; call x;", "E0303", "cannot hold a function"),
        ("", ".reg .u64 x; call x, (), nope;", "E0201", "`nope`"),
    ] {
        let text = format!("{HEADER}{functions}\n.entry k() {{\n{body}\nret; }}");
        expect(&text, &[(code, 6, message)]);
    }
}

#[test]
fn parameters_of_calls_are_not_guarded() {
    let text = format!("{HEADER}.entry k() {{ .reg .pred p; .param .u32 x;\n@p st.param.u32 [x], 1;\nret; }}");
    expect(&text, &[("E0306", 5, "cannot be guarded")]);
}
