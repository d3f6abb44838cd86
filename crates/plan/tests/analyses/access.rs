//! What an access is, and who may do it how.

use handloom_diag::Span;
use handloom_ir::simt::{Access, AtomAccess, Inst, Op, Reg, Val};
use handloom_ir::types::{AtomOp, Order, ScalarType, Scope, StateSpace, Ty};
use handloom_plan::access::{AccessClass, Own};
use handloom_plan::analysis::shape::Shape;
use handloom_plan::packs::accesses::FullWay;
use smallvec::smallvec;

const WORD: Access = Access::weak(StateSpace::Global, 32);

fn load(access: Access, offset: i64, guarded: bool) -> AccessClass {
    let mut src = vec![Val::Reg(Reg(0))];
    src.extend(guarded.then_some(Val::Reg(Reg(2))));
    let inst =
        Inst { op: Op::Load { access, offset }, dst: smallvec![Reg(1)], src: src.into(), guarded, span: Span::NONE };
    AccessClass::of(&inst).expect("a load is an access")
}

fn atomic(op: AtomOp, ty: ScalarType, space: StateSpace) -> AccessClass {
    let access = AtomAccess { op, ty, space, order: Order::Relaxed, scope: Scope::Gpu, count: 1 };
    let (op, src) = (Op::Red { access, offset: 0 }, vec![Val::Reg(Reg(0)), Val::Imm(1, Ty::B32)]);
    AccessClass::of(&Inst { op, dst: smallvec![], src: src.into(), guarded: false, span: Span::NONE })
        .expect("a red is an access")
}

/// Inline in full copies, inline by lane, tested jointly, done in runs.
fn answers(a: AccessClass) -> [bool; 4] {
    [a.is_inline_in_full(), a.is_inline_by_lane(), a.may_be_tested_jointly(), a.may_join_run()]
}

#[test]
fn weak_words_may_all() {
    for space in [StateSpace::Global, StateSpace::Shared, StateSpace::Generic] {
        assert_eq!(answers(load(Access { space, ..WORD }, 0, false)), [true; 4], "{space:?}");
    }
}

#[test]
fn strong_words_keep_their_order() {
    let strong = Access { order: Order::Acquire, ..WORD };
    // A test of bounds has no order; a run exchanges accesses.
    assert_eq!(answers(load(strong, 0, false)), [true, true, true, false]);
    // Which memory a generic address is of decides how it is done strongly.
    assert_eq!(answers(load(Access { space: StateSpace::Generic, ..strong }, 0, false)), [false; 4]);
    // `.mmio` happens exactly as often as it is written.
    assert_eq!(answers(load(Access { order: Order::Mmio, ..WORD }, 0, false)), [false; 4]);
}

#[test]
fn single_copies_of_128_bits_are_no_two_words() {
    let pair = Access { bits: 64, count: 2, elements: 3, is_single: true, ..WORD };
    // Weakly it may be seen in part, so two words do, but not between other accesses.
    assert_eq!(answers(load(pair, 0, false)), [true, true, true, false]);
    assert_eq!(answers(load(Access { order: Order::Relaxed, ..pair }, 0, false)), [false; 4]);
}

#[test]
fn sinks_and_guards_leave_out_bytes() {
    let sink = Access { count: 4, elements: 0b1011, ..WORD };
    // Elements that nobody wants may lie outside an allocation.
    assert_eq!(answers(load(sink, 0, false)), [true, false, false, false]);
    // A guarded access may not happen at all, so nobody may test it beforehand.
    assert_eq!(answers(load(WORD, 0, true)), [true, true, false, false]);
}

#[test]
fn joint_tests_know_one_alignment() {
    assert!(load(WORD, 8, false).may_be_tested_jointly());
    assert!(!load(WORD, 6, false).may_be_tested_jointly(), "it is misaligned where the register is aligned");
}

#[test]
fn parameters_are_read_only() {
    for space in [StateSpace::Const, StateSpace::ParamEntry] {
        let class = load(Access { space, count: 2, elements: 3, ..WORD }, 0, false);
        assert!(class.is_read_only() && class.reads_alike(), "{space:?}");
        assert!(!class.may_be_tested_jointly() && !class.may_join_run(), "{space:?}");
    }
    assert!(!load(WORD, 0, false).is_read_only());
}

#[test]
fn own_memory_is_as_far_apart_as_threads() {
    let own = |space| load(Access { space, ..WORD }, 0, false).own();
    assert_eq!(own(StateSpace::Local), Own::Always);
    assert_eq!(own(StateSpace::Generic), Own::Perhaps);
    assert_eq!(own(StateSpace::Global), Own::Never);
    let by = Shape::linear;
    let local = load(Access { space: StateSpace::Local, ..WORD }, 0, false);
    assert!(local.is_own_by_lane(&by(48), 48));
    assert!(!local.is_own_by_lane(&by(4), 48), "lanes side by side are in the memory of one thread");
    assert!(!load(WORD, 0, false).is_own_by_lane(&by(48), 48), "global memory is nobody's own");
}

#[test]
fn atomics_are_integers_of_a_word() {
    use AtomOp::{Add, Inc};
    use ScalarType::{F32, U32};
    assert!(atomic(Add, U32, StateSpace::Global).is_inline_atomic(true));
    assert!(!atomic(Add, F32, StateSpace::Global).is_inline_atomic(false), "the host adds no floats atomically");
    assert!(!atomic(Inc, U32, StateSpace::Global).is_inline_atomic(false), "nor does it count to a bound");
    // One host thread runs a cta; those of a cluster see each other's shared memory.
    assert!(atomic(Add, U32, StateSpace::Shared).is_inline_atomic(false));
    assert!(!atomic(Add, U32, StateSpace::Shared).is_inline_atomic(true));
}

/// Lanes `stride` bytes apart, and each four of them `off` bytes from those before.
fn packs(stride: i64, off: i64) -> Shape {
    Shape::of_pieces(stride, &[0, 1, 2, 3, 4, 5, 6, 7].map(|i| off * i))
}

#[test]
fn full_copies_test_ranges_where_they_can() {
    let way = |a: AccessClass, s: Option<Shape>| [true, false].map(|first| a.full_way(Ty::B64, s.as_ref(), first));
    let words = load(WORD, 0, false);
    assert_eq!(way(words, Some(packs(4, 16))), [FullWay::ByGroups; 2]);
    assert_eq!(way(words, Some(packs(0, 0))), [FullWay::ByGroups; 2], "one address for all lanes is a range too");
    // A range with gaps may end in another allocation: only a block that may start over can test it as one.
    assert_eq!(way(words, Some(packs(4, 64))), [FullWay::ByGroups, FullWay::ByLanes]);
    assert_eq!(way(words, Some(packs(2, 8))), [FullWay::ByLanes; 2], "every second lane is misaligned");
    assert_eq!(way(words, None), [FullWay::ByLanes; 2]);
    let sink = load(Access { count: 4, elements: 0b1011, ..WORD }, 0, false);
    assert_eq!(way(sink, Some(packs(16, 64))), [FullWay::ByLanes; 2], "nobody wants an element that ends the range");
    let mmio = load(Access { order: Order::Mmio, ..WORD }, 0, false);
    assert_eq!(way(mmio, Some(packs(4, 16))), [FullWay::Routine; 2]);
}

#[test]
fn runs_are_of_packs_with_addresses_of_their_own() {
    let joins = |s: Shape| load(WORD, 0, false).joins_run_at(&s, false);
    assert!(joins(packs(4, 16)));
    assert!(!joins(packs(0, 4)), "lanes that share an address read it once");
    assert!(!joins(packs(4, 0)), "packs that share addresses read them once");
    assert!(!joins(packs(4, 64)), "a range with gaps is not tested as one");
    assert!(load(WORD, 0, false).joins_run_at(&packs(4, 64), true));
}
