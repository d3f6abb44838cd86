//! Joining modules.

use crate::common::*;
use handloom_check::module::{AddrBase, CallTarget, CheckedModule, Linkage, Operand, SymbolKind};
use handloom_check::{link, link_to_run};

fn part(text: &str) -> CheckedModule {
    module(&format!("{HEADER}{text}"))
}

fn joined(a: &str, b: &str) -> CheckedModule {
    link(vec![part(a), part(b)], true).unwrap_or_else(|e| panic!("{e:#?}"))
}

#[track_caller]
fn refused_link(a: &str, b: &str, message: &str) {
    let errors = link(vec![part(a), part(b)], true).expect_err("an error");
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert_eq!(errors[0].code.name(), "E0502");
    assert!(errors[0].message.contains(message), "{errors:#?}");
}

/// The linker of the toolkit refuses it, and the one that makes code when a program runs does not.
#[test]
fn a_result_that_nobody_returns_is_let_pass_to_run() {
    let a = ".extern .func (.param .b64 r) f(.param .u32 a);\n.entry k() { .param .b64 r; call (r), f, (1); ret; }";
    let b = ".visible .func f(.param .u32 a) { ret; }";
    for (a, b) in [(a, b), (b, a)] {
        let errors = link(vec![part(a), part(b)], true).expect_err("an error");
        assert!(errors.iter().any(|e| e.message.contains("and 0 results") || e.message.contains("0 and 1 results")));
        let m = link_to_run(vec![part(a), part(b)]).unwrap_or_else(|e| panic!("{e:#?}"));
        assert!(func(&m, "f").body.is_some() && func(&m, "f").results.is_empty());
        let calls = func(&m, "k").body.as_ref().expect("a body").stmts.iter().filter_map(|s| match s {
            handloom_check::module::Stmt::Inst(i) => Some(i),
            _ => None,
        });
        let results =
            |o: &Operand| if let Operand::Call(c) = o { Some(c.results.len() + c.result_params.len()) } else { None };
        assert_eq!(calls.flat_map(|i| &i.src).filter_map(results).collect::<Vec<_>>(), [0]);
    }
    let one = |text: &str| vec![part(a), part(text)];
    assert!(link_to_run(one(".visible .func f(.param .u64 a) { ret; }")).is_err());
    assert!(link_to_run(one(".visible .func (.param .b32 r) f(.param .u32 a) { ret; }")).is_err());
}

#[test]
fn extern_takes_the_definition() {
    let a = ".extern .func f(.param .u32 a);\n.extern .global .u32 x;\n.entry k() { .reg .u32 r; ld.global.u32 r, [x]; call f, (1); ret; }";
    let b = ".visible .global .u32 y;\n.visible .global .u32 x = 7;\n.visible .func f(.param .u32 a) { ret; }";
    for (m, first) in [(joined(a, b), true), (joined(b, a), false)] {
        assert_eq!(m.symbols.iter().filter(|s| s.name == "x" || s.name == "f").count(), 2, "{first}");
        assert_eq!(var(&m, "x").init, [7, 0, 0, 0]);
        assert!(func(&m, "f").body.is_some());
        let k = insts(&m, "k");
        let Operand::Addr { base: AddrBase::Symbol(x), .. } = k[0].src[0] else { panic!() };
        assert_eq!(m.symbols[x.0 as usize].name, "x");
        let Operand::Call(call) = &k[1].src[0] else { panic!() };
        let CallTarget::Direct(f) = call.target else { panic!() };
        assert_eq!(m.symbols[f.0 as usize].name, "f");
    }
}

#[test]
fn weak_and_common_give_way() {
    let m = joined(
        ".weak .global .u32 x = 1;\n.common .global .u32 c;",
        ".visible .global .u32 x = 2;\n.weak .global .u32 c = 3;",
    );
    assert_eq!(var(&m, "x").init, [2, 0, 0, 0]);
    assert_eq!(var(&m, "c").init, [3, 0, 0, 0]);
    let m = joined(".weak .global .u32 x = 1;", ".weak .global .u32 x = 2;");
    assert_eq!(var(&m, "x").init, [1, 0, 0, 0]);
}

/// As `nvlink` does it.
#[test]
fn types_are_not_linked() {
    let m = joined(".extern .global .align 16 .b8 x[24];", ".visible .global .align 8 .u64 x[3] = {1, 2, 3};");
    assert_eq!((var(&m, "x").align, var(&m, "x").init.len()), (16, 24));
    joined(".visible .global .f32 x;", ".extern .global .u32 x;");
    joined(".extern .global .u32 x[2][3];", ".visible .global .u32 x[6];");
    joined(".extern .global .u32 x[];", ".visible .global .u64 x[4];");
}

#[test]
fn internal_symbols_stay_apart() {
    let m = joined(".global .u32 x = 1; .global .u64 p = x;", ".global .u32 x = 2; .global .u64 q = x;");
    assert_eq!(m.symbols.len(), 4);
    for (name, value) in [("p", 1), ("q", 2)] {
        let target = var(&m, name).relocs[0].target;
        let SymbolKind::Var(x) = &m.symbols[target.0 as usize].kind else { panic!() };
        assert_eq!(x.init[0], value);
    }
}

#[test]
fn dynamic_shared_memory_and_builtins_need_no_definition() {
    let a = ".extern .shared .align 16 .b8 m[];\n.extern .func free(.param .b64 p);\n\
             .entry k() { .reg .u32 r; ld.shared.u32 r, [m]; call free, (0); ret; }";
    let m = joined(a, ".extern .shared .align 16 .b8 m[];");
    assert_eq!(m.symbols.iter().filter(|s| s.name == "m" && s.linkage == Linkage::Extern).count(), 1);
}

#[test]
fn faults() {
    refused_link(".visible .func f() { ret; }", ".visible .func f() { ret; }", "`f` is defined twice");
    refused_link(".visible .global .u32 x;", ".visible .func x() { ret; }", "a variable in one module");
    refused_link(".visible .global .u32 x;", ".extern .global .u64 x;", "another space or size");
    refused_link(".visible .const .u32 x;", ".extern .global .u32 x;", "another space or size");
    refused_link(".extern .func f(.param .u32 a);", ".visible .func f() { ret; }", "declared differently");
    refused_link(".extern .func f();\n.entry k() { call f; ret; }", ".entry m() { ret; }", "defined in no module");
    // Nobody calls it.
    joined(".extern .func f();", ".entry m() { ret; }");
    // Without the demand, what is missing may come later.
    assert!(link(vec![part(".extern .func f();\n.entry k() { call f; ret; }")], false).is_ok());
}

#[test]
fn file_numbers_do_not_mix() {
    let a = ".file 1 \"a.cu\"\n.entry a() {\n.loc 1 2 3\nret; }";
    let b = ".file 1 \"b.cu\"\n.entry b() {\n.loc 1 5 6\nret; }";
    let m = joined(a, b);
    let names: Vec<&str> = m.files.iter().map(|f| f.1.as_str()).collect();
    assert_eq!(names, ["a.cu", "b.cu"]);
    let loc = |name: &str| {
        let body = func(&m, name).body.as_ref().expect("a body");
        body.stmts.iter().find_map(|s| match s {
            handloom_check::module::Stmt::Loc { at, .. } => Some(at.file),
            _ => None,
        })
    };
    assert_eq!(loc("a"), Some(m.files[0].0));
    assert_eq!(loc("b"), Some(m.files[1].0));
}
