//! What small shapes of PTX become.

use crate::common::*;
use handloom_check::module::*;
use handloom_ir::simt::SymKind;
use handloom_ir::types::ScalarType::{B32, B64, Pred, S8, U8, U16};
use handloom_ir::types::Sreg;

fn lowered(code: Code) -> String {
    text(&handloom_lower::lower(&entry(code)), 0)
}

#[test]
fn an_unguarded_result_is_written_directly() {
    let mut c = Code::new(&[B32, B32]);
    c.inst(&ADD, &[c.r(0)], &[c.r(0), c.r(1)]);
    c.inst(&MOV, &[c.r(1)], &[Operand::Sreg { sreg: Sreg::Tid(0), ty: B32, to: B32 }]);
    assert_text(
        &lowered(c),
        "
b0:
    v0:b32 = add.b32 v0, v1
    v1:b32 = sreg.tid.x
    exit
",
    );
}

#[test]
fn a_guard_selects_and_reaches_memory_ops() {
    let mut c = Code::new(&[Pred, B32, B64]);
    c.guarded(Some((0, false)), &LD_GLOBAL, &[c.r(1)], &[at(2, 4)]);
    c.guarded(Some((0, true)), &ST_GLOBAL, &[], &[at(2, -8), c.r(1)]);
    c.guarded(Some((0, false)), &RET, &[], &[]);
    c.inst(&ADD, &[c.r(1)], &[c.r(1), imm(1 << 20, B32)]);
    assert_text(
        &lowered(c),
        "
b0:
    v3:b32 = load.global.b32 [v2 + 4] if v0
    v1:b32 = select.b32 v0, v3, v1
    v4:p = not.p v0
    store.global.b32 [v2 - 8], v1 if v4
    branch v0, b2, b1
b1:
    v1:b32 = add.b32 v1, 0x100000
    exit
b2:
    exit
",
    );
}

#[test]
fn results_are_written_at_once() {
    let mut c = Code::new(&[B32, B32, Pred, Pred]);
    let pair = Operand::Vector(vec![c.r(0), c.r(1)]);
    let swapped = Operand::Vector(vec![c.r(1), c.r(0)]);
    c.inst(&MOV, &[pair], &[swapped]);
    let preds = Operand::Vector(vec![c.r(2), c.r(3)]);
    c.guarded(Some((2, false)), &SPLIT, &[preds], &[c.r(0)]);
    assert_text(
        &lowered(c),
        "
b0:
    v4:b32 = mov.b32 v1
    v1:b32 = mov.b32 v0
    v0:b32 = mov.b32 v4
    v6:p = to_pred.b32 v0
    v7:p = not.p v6
    v8:p = mov.p v2
    v2:p = select.p v8, v6, v2
    v3:p = select.p v8, v7, v3
    exit
",
    );
}

#[test]
fn registers_are_chopped_and_extended() {
    let mut c = Code::new(&[U8, U16, B32, B64]);
    c.inst(&LD_GLOBAL_U8, &[c.r(0)], &[at(3, 0)]);
    c.inst(&LD_GLOBAL_U8, &[c.wide(2, S8, Fit::Sign)], &[at(3, 0)]);
    c.inst(&LD_GLOBAL_U8, &[c.wide(1, U8, Fit::Zero)], &[at(3, 0)]);
    c.inst(&ADD, &[c.wide(1, U16, Fit::Same)], &[c.wide(2, U16, Fit::Zero), imm(7, U16)]);
    assert_text(
        &lowered(c),
        "
b0:
    v0:b16 = load.global.b8 [v3]
    v5:b16 = load.global.b8 [v3]
    v2:b32 = ext.s8.b16.b32 v5
    v1:b16 = load.global.b8 [v3]
    v8:b16 = ext.u16.b32.b16 v2
    v1:b16 = add.b16 v8, 7
    exit
",
    );
}

#[test]
fn a_loop_stands_together_and_a_counted_one_does_not_yield() {
    let mut c = Code::new(&[Pred, B32, B64, B32]);
    c.label(0);
    c.inst(&LD_GLOBAL, &[c.r(3)], &[at(2, 0)]);
    c.inst(&LESS, &[c.r(0)], &[c.r(3), imm(5, B32)]);
    c.guarded(Some((0, false)), &BRA, &[], &[to(1)]);
    c.inst(&ADD, &[c.r(1)], &[c.r(1), imm(1, B32)]);
    c.inst(&LESS, &[c.r(0)], &[c.r(1), imm(9, B32)]);
    c.guarded(Some((0, false)), &BRA, &[], &[to(0)]);
    c.inst(&RET, &[], &[]);
    c.label(1);
    c.inst(&ST_GLOBAL, &[], &[at(2, 0), c.r(1)]);
    assert_text(
        &lowered(c),
        "
b0:
    jump b1
b1:
    v3:b32 = load.global.b32 [v2]
    v0:p = cmp.lt.u32 v3, 5
    branch v0, b4, b2
b2:
    v1:b32 = add.b32 v1, 1
    v0:p = cmp.lt.u32 v1, 9
    branch v0, b1, b3
b3:
    exit
b4:
    store.global.b32 [v2], v1
    exit
",
    );
}

/// A lock taken again and again: going around for the next time is counted, going around to wait is not.
#[test]
fn a_loop_yields_only_where_it_goes_around_to_wait() {
    let mut c = Code::new(&[Pred, B32, B64, B32]);
    c.label(0);
    c.inst(&LD_GLOBAL, &[c.r(3)], &[at(2, 0)]);
    c.inst(&LESS, &[c.r(0)], &[c.r(3), imm(5, B32)]);
    c.guarded(Some((0, false)), &BRA, &[], &[to(0)]);
    c.inst(&ADD, &[c.r(1)], &[c.r(1), imm(1, B32)]);
    c.inst(&LESS, &[c.r(0)], &[c.r(1), imm(9, B32)]);
    c.guarded(Some((0, false)), &BRA, &[], &[to(0)]);
    c.inst(&RET, &[], &[]);
    assert_text(
        &lowered(c),
        "
b0:
    jump b1
b1:
    v3:b32 = load.global.b32 [v2]
    v0:p = cmp.lt.u32 v3, 5
    branch v0, b3, b2
b2:
    v1:b32 = add.b32 v1, 1
    v0:p = cmp.lt.u32 v1, 9
    branch v0, b1, b4
b3:
    yield, then b1
b4:
    exit
",
    );
}

#[test]
fn a_loop_that_waits_for_memory_yields() {
    let mut c = Code::new(&[Pred, B32, B64]);
    c.label(0);
    c.inst(&LD_GLOBAL, &[c.r(1)], &[at(2, 0)]);
    c.inst(&LESS, &[c.r(0)], &[c.r(1), imm(1, B32)]);
    c.guarded(Some((0, false)), &BRA, &[], &[to(0)]);
    assert_text(
        &lowered(c),
        "
b0:
    jump b1
b1:
    v1:b32 = load.global.b32 [v2]
    v0:p = cmp.lt.u32 v1, 1
    branch v0, b2, b3
b2:
    yield, then b1
b3:
    exit
",
    );
}

#[test]
fn a_loop_that_counts_to_a_bound_in_memory_does_not_yield() {
    // do { i += 1 } while (i < *bound), and the same with the counter on the other side.
    for counter_first in [true, false] {
        let mut c = Code::new(&[Pred, B32, B64, B32]);
        c.label(0);
        c.inst(&ADD, &[c.r(3)], &[c.r(3), imm(1, B32)]);
        c.inst(&LD_GLOBAL, &[c.r(1)], &[at(2, 0)]);
        let (a, b) = if counter_first { (c.r(3), c.r(1)) } else { (c.r(1), c.r(3)) };
        c.inst(&LESS, &[c.r(0)], &[a, b]);
        c.guarded(Some((0, false)), &BRA, &[], &[to(0)]);
        assert!(!lowered(c).contains("yield"));
    }
    // do { i += 1 } while (*p + i < 1): memory takes part in what counts.
    let mut c = Code::new(&[Pred, B32, B64, B32]);
    c.label(0);
    c.inst(&ADD, &[c.r(3)], &[c.r(3), imm(1, B32)]);
    c.inst(&LD_GLOBAL, &[c.r(1)], &[at(2, 0)]);
    c.inst(&ADD, &[c.r(1)], &[c.r(1), c.r(3)]);
    c.inst(&LESS, &[c.r(0)], &[c.r(1), imm(1, B32)]);
    c.guarded(Some((0, false)), &BRA, &[], &[to(0)]);
    assert!(lowered(c).contains("yield"));
}

#[test]
fn a_loop_that_walks_a_table_does_not_yield() {
    let mut c = Code::new(&[Pred, B32, B64]);
    c.label(0);
    c.inst(&ADD, &[c.r(2)], &[c.r(2), imm(4, B64)]);
    c.inst(&LD_GLOBAL, &[c.r(1)], &[at(2, 0)]);
    c.inst(&LESS, &[c.r(0)], &[c.r(1), imm(1, B32)]);
    c.guarded(Some((0, false)), &BRA, &[], &[to(0)]);
    assert!(!lowered(c).contains("yield"));
}

#[test]
fn barriers_and_warp_ops_end_their_block() {
    let mut c = Code::new(&[Pred, B32]);
    c.guarded(Some((0, true)), &BAR, &[], &[imm(0, B32)]);
    c.inst(&VOTE, &[c.r(0)], &[c.r(0), imm(0xffff_ffff, B32)]);
    c.inst(&ADD, &[c.r(1)], &[c.r(1), c.r(1)]);
    assert_text(
        &lowered(c),
        "
b0:
    branch v0, b2, b1
b1:
    barrier.sync 0, then b2
b2:
    v2:p = vote.any v0, 0xffffffff
    jump b3
b3:
    v0:p = not.p v2
    v1:b32 = add.b32 v1, v1
    exit
",
    );
}

fn call_operand(target: u32) -> Operand {
    Operand::Call(Box::new(Call {
        target: CallTarget::Direct(SymbolId(target)),
        results: vec![CallArg::Reg(RegId(0))],
        args: vec![CallArg::Var(VarId(0)), CallArg::Reg(RegId(0))],
        params: vec![param(0, B32), param(4, B32)],
        result_params: vec![param(8, B32)],
        param_bytes: 12,
        targets: None,
        noreturn: false,
    }))
}

/// `k` calls `f(x, r0)`, which adds its arguments.
fn caller_and_callee() -> CheckedModule {
    let mut c = Code::new(&[B32]);
    c.vars.push(var(LocalKind::CallParam, 4));
    c.inst(&ST_PARAM, &[], &[at_var(0), imm(3, B32)]);
    c.inst(&CALL, &[], &[call_operand(1)]);
    c.inst(&ST_GLOBAL, &[], &[Operand::Addr { base: AddrBase::Absolute, offset: 64 }, c.r(0)]);
    let mut f = Code::new(&[B32, B32]);
    f.vars.push(var(LocalKind::Param(0), 4));
    f.vars.push(var(LocalKind::Result(0), 4));
    f.inst(&LD_PARAM, &[f.r(0)], &[at_var(0)]);
    f.inst(&ADD, &[f.r(0)], &[f.r(0), f.r(1)]);
    f.inst(&ST_PARAM, &[], &[at_var(1), f.r(0)]);
    f.inst(&RET, &[], &[]);
    let by_register = ParamLayout { reg: Some(RegId(1)), ..param(4, B32) };
    module(vec![
        function("k", true, vec![], vec![], c.body()),
        function("f", false, vec![param(0, B32), by_register], vec![param(8, B32)], f.body()),
    ])
}

#[test]
fn arguments_lie_in_one_block() {
    let m = handloom_lower::lower(&caller_and_callee());
    assert_text(
        &text(&m, 0),
        "
  slot0: 12 bytes, align 4
b0:
    v1:b64 = address slot0
    store.local.b32 [v1], 3
    v2:b64 = address slot0
    store.local.b32 [v2 + 4], v0
    call f1(slot0), then b1
b1:
    v3:b64 = address slot0
    v4:b32 = load.local.b32 [v3 + 8]
    v0:b32 = mov.b32 v4
    store.global.b32 [64], v0
    exit
",
    );
    assert_text(
        &text(&m, 1),
        "
b0:
    v2:b64 = argument_address 4
    v3:b32 = load.local.b32 [v2]
    v1:b32 = mov.b32 v3
    v4:b64 = argument_address 0
    v0:b32 = load.local.b32 [v4]
    v0:b32 = add.b32 v0, v1
    v7:b64 = argument_address 8
    store.local.b32 [v7], v0
    ret
",
    );
    assert_eq!((m.funcs[1].param_bytes, m.funcs[1].result_bytes), (12, 4));
}

#[test]
fn shared_variables_overlap_only_where_no_entry_has_both() {
    let kernel = |name: &str, symbols: &[u32]| {
        let mut c = Code::new(&[B32]);
        for s in symbols {
            c.inst(&LD_SHARED, &[c.r(0)], &[at_symbol(*s)]);
        }
        function(name, true, vec![], vec![], c.body())
    };
    let m = handloom_lower::lower(&module(vec![
        shared("a", 100, false),
        shared("b", 40, false),
        shared("both", 12, false),
        shared("dynamic", 0, true),
        kernel("k", &[0, 2, 3]),
        kernel("l", &[1, 2]),
    ]));
    let kinds: Vec<SymKind> = m.syms.iter().map(|s| s.kind).take(4).collect();
    assert_eq!(
        kinds,
        [
            SymKind::Shared { offset: 16 },
            SymKind::Shared { offset: 16 },
            SymKind::Shared { offset: 0 },
            SymKind::DynamicShared { offset: 128 }
        ]
    );
    assert_eq!((m.entries["k"].shared_bytes, m.entries["l"].shared_bytes), (128, 56));
}
