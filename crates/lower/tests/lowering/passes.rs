//! What the passes make of small shapes.

use crate::common::*;
use handloom_check::module::*;
use handloom_ir::simt::LaunchShape;
use handloom_ir::types::ScalarType::{B32, B64, Pred};
use handloom_ir::types::Sreg;
use handloom_lower::passes::Strengths;

const SHAPE: LaunchShape = LaunchShape { ntid: [64, 1, 1], small_grid: true };

fn specialised(m: &CheckedModule) -> String {
    specialised_for(m, Strengths::default())
}

fn specialised_for(m: &CheckedModule, strengths: Strengths) -> String {
    let module = handloom_lower::lower(m);
    function_text(&handloom_lower::specialise(&module, "k", &SHAPE, &[], strengths)[module.entries["k"].func])
}

/// For code that several warps go through side by side.
fn side_by_side(code: Code) -> String {
    specialised_for(&entry(code), Strengths { side_by_side: true, ..Strengths::default() })
}

fn entry_text(code: Code) -> String {
    specialised(&entry(code))
}

fn sreg(s: Sreg) -> Operand {
    Operand::Sreg { sreg: s, ty: B32, to: B32 }
}

#[test]
fn the_launch_shape_folds() {
    let mut c = Code::new(&[B32, B32, B64, Pred]);
    c.inst(&MOV, &[c.r(0)], &[sreg(Sreg::Ntid(0))]);
    c.inst(&MOV, &[c.r(1)], &[sreg(Sreg::Tid(1))]);
    c.inst(&ADD, &[c.r(0)], &[c.r(0), c.r(1)]);
    c.inst(&LESS, &[c.r(3)], &[c.r(0), imm(64, B32)]);
    c.guarded(Some((3, false)), &BRA, &[], &[to(0)]);
    c.inst(&ST_GLOBAL, &[], &[at(2, 0), c.r(0)]);
    c.label(0);
    c.inst(&ST_GLOBAL, &[], &[at(2, 4), c.r(0)]);
    assert_text(
        &entry_text(c),
        "
b0:
    store.global.b32 [v0], 64
    store.global.b32 [v0 + 4], 64
    exit
",
    );
}

#[test]
fn a_loop_over_the_elements_of_a_block_goes_round_once() {
    let mut c = Code::new(&[B32, B32, B64, Pred]);
    c.inst(&MOV, &[c.r(0)], &[sreg(Sreg::Tid(0))]);
    c.label(0);
    c.inst(&ST_GLOBAL, &[], &[at(2, 0), c.r(0)]);
    c.inst(&ADD, &[c.r(0)], &[c.r(0), imm(64, B32)]);
    c.inst(&LESS, &[c.r(3)], &[c.r(0), imm(64, B32)]);
    c.guarded(Some((3, false)), &BRA, &[], &[to(0)]);
    c.inst(&RET, &[], &[]);
    assert_text(
        &entry_text(c),
        "
b0:
    v0:b32 = sreg.tid.x
    store.global.b32 [v1], v0
    exit
",
    );
}

#[test]
fn a_loop_that_some_threads_repeat_stays() {
    let mut c = Code::new(&[B32, B32, B64, Pred]);
    c.inst(&MOV, &[c.r(0)], &[sreg(Sreg::Tid(0))]);
    c.label(0);
    c.inst(&ST_GLOBAL, &[], &[at(2, 0), c.r(0)]);
    c.inst(&ADD, &[c.r(0)], &[c.r(0), imm(63, B32)]);
    c.inst(&LESS, &[c.r(3)], &[c.r(0), imm(64, B32)]);
    c.guarded(Some((3, false)), &BRA, &[], &[to(0)]);
    c.inst(&RET, &[], &[]);
    assert!(entry_text(c).contains("branch"));
}

#[test]
fn a_store_that_lanes_part_at_has_a_predicate() {
    let code = || {
        let mut c = Code::new(&[B32, B32, B64, Pred, B32]);
        c.inst(&MOV, &[c.r(0)], &[sreg(Sreg::Tid(0))]);
        c.inst(&LD_GLOBAL, &[c.r(1)], &[at(2, 0)]);
        c.inst(&ADD, &[c.r(4)], &[c.r(1), c.r(0)]);
        c.inst(&LESS, &[c.r(3)], &[c.r(4), imm(64, B32)]);
        c.guarded(Some((3, false)), &BRA, &[], &[to(0)]);
        c.inst(&ADD, &[c.r(1)], &[c.r(4), imm(5, B32)]);
        c.inst(&ST_GLOBAL, &[], &[at(2, 0), c.r(1)]);
        c.label(0);
        c.inst(&RET, &[], &[]);
        c
    };
    assert!(entry_text(code()).contains("branch"));
    assert_text(
        &side_by_side(code()),
        "
b0:
    v0:b32 = sreg.tid.x
    v2:b32 = load.global.b32 [v1]
    v3:b32 = add.b32 v0, v2
    v4:p = cmp.ge.u32 v3, 64
    v5:b32 = add.b32 v3, 5
    store.global.b32 [v1], v5 if v4
    exit
",
    );
}

#[test]
fn a_guard_of_a_loop_is_asked_once_for_all_threads() {
    let code = || {
        let mut c = Code::new(&[B32, B32, B64, Pred, B32]);
        c.inst(&MOV, &[c.r(0)], &[sreg(Sreg::Tid(0))]);
        c.inst(&MOV, &[c.r(4)], &[imm(0, B32)]);
        c.label(0);
        c.inst(&LESS, &[c.r(3)], &[imm(999, B32), c.r(0)]);
        c.guarded(Some((3, false)), &BRA, &[], &[to(1)]);
        c.inst(&LD_GLOBAL, &[c.r(4)], &[at(2, 0)]);
        c.label(1);
        c.inst(&ST_GLOBAL, &[], &[at(2, 4), c.r(4)]);
        c.inst(&ADD, &[c.r(0)], &[c.r(0), imm(64, B32)]);
        c.inst(&LESS, &[c.r(3)], &[c.r(0), imm(2000, B32)]);
        c.guarded(Some((3, false)), &BRA, &[], &[to(0)]);
        c.inst(&RET, &[], &[]);
        c
    };
    let branches = |text: &str| text.matches("branch").count();
    assert_eq!(branches(&entry_text(code())), 2);
    let text = side_by_side(code());
    assert_eq!(branches(&text), 3, "{text}");
    // The value of thread 0, the one of thread 63 beside it, and whether these are in order.
    assert!(text.contains("v3:b32 = add.b32 v1, 63") && text.contains("cmp.le.u32 v1, v3"), "{text}");
}

#[test]
fn a_calls_argument_block_becomes_registers() {
    let call = Operand::Call(Box::new(Call {
        target: CallTarget::Direct(SymbolId(1)),
        results: vec![CallArg::Reg(RegId(0))],
        args: vec![CallArg::Reg(RegId(1)), CallArg::Reg(RegId(3))],
        params: vec![param(0, B32), param(4, B32)],
        result_params: vec![param(8, B32)],
        param_bytes: 12,
        targets: None,
        noreturn: false,
    }));
    let mut c = Code::new(&[B32, B32, B64, B32]);
    c.inst(&LD_GLOBAL, &[c.r(1)], &[at(2, 0)]);
    c.inst(&CALL, &[], &[call]);
    c.inst(&ST_GLOBAL, &[], &[at(2, 0), c.r(0)]);
    let mut f = Code::new(&[B32, B32]);
    f.vars.push(var(LocalKind::Param(0), 4));
    f.vars.push(var(LocalKind::Param(1), 4));
    f.vars.push(var(LocalKind::Result(0), 4));
    f.inst(&LD_PARAM, &[f.r(0)], &[at_var(0)]);
    f.inst(&LD_PARAM, &[f.r(1)], &[at_var(1)]);
    f.inst(&ADD, &[f.r(0)], &[f.r(0), f.r(1)]);
    f.inst(&ST_PARAM, &[], &[at_var(2), f.r(0)]);
    let m = module(vec![
        function("k", true, vec![], vec![], c.body()),
        function("f", false, vec![param(0, B32), param(4, B32)], vec![param(8, B32)], f.body()),
    ]);
    assert_text(
        &specialised(&m),
        "
b0:
    v1:b32 = load.global.b32 [v0]
    v3:b32 = add.b32 v1, v2
    store.global.b32 [v0], v3
    exit
",
    );
}

#[test]
fn parameters_are_loaded_in_front_of_a_loop_and_offsets_join() {
    let mut c = Code::new(&[Pred, B32, B64, B64]);
    c.vars.push(var(LocalKind::Param(0), 8));
    c.label(0);
    c.inst(&LD_PARAM_64, &[c.r(2)], &[at_var(0)]);
    c.inst(&ADD, &[c.r(3)], &[c.r(2), imm(12, B64)]);
    c.inst(&ST_GLOBAL, &[], &[at(3, -4), c.r(1)]);
    c.inst(&ADD, &[c.r(1)], &[c.r(1), imm(1, B32)]);
    c.inst(&LESS, &[c.r(0)], &[c.r(1), imm(9, B32)]);
    c.guarded(Some((0, false)), &BRA, &[], &[to(0)]);
    let m = module(vec![function("k", true, vec![param(0, B64)], vec![], c.body())]);
    assert_text(
        &specialised(&m),
        "
b0:
    v0:b64 = param_address 0
    v1:b64 = load.param::entry.b64 [v0]
    jump b1
b1:
    store.global.b32 [v1 + 8], v2
    v2:b32 = add.b32 v2, 1
    v3:p = cmp.lt.u32 v2, 9
    branch v3, b1, b2
b2:
    exit
",
    );
}

#[test]
fn a_warp_op_stays_the_last_of_its_block() {
    let mut c = Code::new(&[Pred, B32, B64]);
    c.inst(&VOTE, &[c.r(0)], &[c.r(0), imm(0xffff_ffff, B32)]);
    c.guarded(Some((0, false)), &ST_GLOBAL, &[], &[at(2, 0), c.r(1)]);
    assert_text(
        &entry_text(c),
        "
b0:
    v1:p = vote.any v0, 0xffffffff
    jump b1
b1:
    v0:p = not.p v1
    store.global.b32 [v2], v3 if v0
    exit
",
    );
}
