//! What is decided for code in packs of four lanes.

use handloom_diag::Span;
use handloom_ir::simt::{AtomAccess, Inst, Op, Reg, Val};
use handloom_ir::types::{AtomOp, Order, ScalarType, Scope, ShflMode, StateSpace, Ty, VoteMode};
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::shape::Shape;
use handloom_plan::packs::atomics::{AtomicWay, Fold};
use handloom_plan::packs::warp_ops::{WarpOpWay, warp_op_way};
use handloom_plan::packs::{Edges, PACKS, Strategy, first_pack, pack_start, packs_differ};
use smallvec::smallvec;

use super::read::entry;
use super::{ROW, SQUARE, facts, plan, shape};

/// Group and offset of each pack of the last register of some instructions.
fn packs(ntid: [u32; 3], insts: &str) -> ([(usize, i64); PACKS], bool) {
    let f = entry(&format!("b0:\n{insts}\nexit"));
    let s = shape(&facts(&f, ntid), f.regs.len() - 1);
    (std::array::from_fn(|p| pack_start(&s, p)), packs_differ(&s))
}

#[test]
fn packs_of_a_row_are_four_lanes_apart() {
    let row = [0, 4, 8, 12, 16, 20, 24, 28].map(|off| (0, off));
    assert_eq!(packs(ROW, "v0:b32 = sreg.tid.x"), (row, true));
}

#[test]
fn packs_of_two_rows_start_over() {
    let x = [0, 4, 8, 12, 0, 4, 8, 12].map(|off| (0, off));
    assert_eq!(packs(SQUARE, "v0:b32 = sreg.tid.x"), (x, false));
    let y = [0, 0, 0, 0, 1, 1, 1, 1].map(|off| (0, off));
    assert_eq!(packs(SQUARE, "v0:b32 = sreg.tid.y"), (y, false));
}

#[test]
fn packs_of_unrelated_rows_have_groups() {
    let index = "v0:b32 = sreg.tid.x\nv1:b32 = sreg.tid.y\nv2:b64 = param_address 0\nv3:b32 = load.param::entry.b32 [v2]\n\
        v4:b32 = mul.b32 v1, v3\nv5:b32 = add.b32 v4, v0";
    let rows = [(0, 0), (0, 4), (0, 8), (0, 12), (1, 0), (1, 4), (1, 8), (1, 12)];
    assert_eq!(packs(SQUARE, index), (rows, true));
    let f = entry(&format!("b0:\n{index}\nexit"));
    let s = shape(&facts(&f, SQUARE), 5);
    assert_eq!([0, 1].map(|g| first_pack(&s, g)), [0, 4]);
}

/// The edges of a branch on the last register of some instructions, in blocks of 64 threads in a row.
fn edges(insts: &str) -> Edges {
    let cond = insts.rsplit('\n').next().and_then(|line| line.split(':').next()).expect("an instruction has a result");
    let f = entry(&format!("b0:\n{insts}\nbranch {cond}, b1, b2\nb1:\njump b2\nb2:\nexit"));
    Strategy::new(&plan(&f, (true, false))).edges(0)
}

#[test]
fn ranges_exclude_edges() {
    let of = |cmp: &str| edges(&format!("v0:b32 = sreg.tid.x\nv1:p = cmp.{cmp}"));
    // Two warps, 0 to 31 and 32 to 63: one has lanes on both sides of 16, the other only lanes after it.
    assert_eq!(of("lt.u32 v0, 16"), Edges { all: false, none: true });
    // One warp is before 32, the other after it.
    assert_eq!(of("lt.u32 v0, 32"), Edges::BOTH);
    // Every thread is before 64.
    assert_eq!(of("lt.u32 v0, 64"), Edges { all: true, none: false });
    // One lane at most has any number; so some lane has another one.
    assert_eq!(of("eq.u32 v0, 7"), Edges { all: false, none: true });
    assert_eq!(of("ne.u32 v0, 7"), Edges { all: true, none: false });
    // Exchanged: 16 is more than some lanes of the first warp.
    assert_eq!(of("ge.u32 16, v0"), Edges { all: false, none: true });
}

#[test]
fn edges_of_predicates_follow_from_their_parts() {
    let of = |op: &str| {
        edges(&format!("v0:b32 = sreg.tid.x\nv1:p = cmp.lt.u32 v0, 16\nv2:p = cmp.ne.u32 v0, 7\nv3:p = {op}"))
    };
    assert_eq!(of("not.p v1"), Edges { all: true, none: false });
    // Both in all lanes: then the first would be, too. That both are in no lane is not excluded by the parts.
    assert_eq!(of("and.p v1, v2"), Edges { all: false, none: true });
    // Either in no lane: then the second would be, too.
    assert_eq!(of("or.p v1, v2"), Edges { all: true, none: false });
    // Of lanes that differ in another way nothing is known.
    assert_eq!(of("xor.p v1, v2"), Edges::BOTH);
}

#[test]
fn a_value_that_is_only_uniform_goes_either_way() {
    assert_eq!(edges("v0:b32 = sreg.ctaid.x\nv1:p = cmp.lt.u32 v0, 16"), Edges::BOTH);
}

/// The way of a `red` or `atom` by all lanes of blocks that do nothing else.
fn atomic(op: AtomOp, space: StateSpace, is_read: bool, address: Option<Shape>) -> AtomicWay {
    let access = AtomAccess { op, ty: ScalarType::U32, space, order: Order::Relaxed, scope: Scope::Gpu, count: 1 };
    let f = entry("b0:\nv0:b32 = sreg.tid.x\nexit");
    let inst = Inst {
        op: Op::Red { access, offset: 0 },
        dst: smallvec![],
        src: smallvec![Val::Reg(Reg(0)), Val::Imm(1, Ty::B32)],
        guarded: false,
        span: Span::NONE,
    };
    let class = AccessClass::of(&inst).expect("a red is an access");
    Strategy::new(&plan(&f, (true, false))).atomic_way(&class, is_read, || address)
}

#[test]
fn atomics_of_one_location_are_one() {
    use StateSpace::{Global, Shared};
    let (one, row) = (Some(Shape::UNIFORM), Some(Shape::linear(4)));
    assert_eq!(atomic(AtomOp::Add, Global, false, one), AtomicWay::Folded(Fold::Sum));
    assert_eq!(atomic(AtomOp::Min, Shared, false, one), AtomicWay::Folded(Fold::Least));
    // Each lane gets another old value, and the last of 32 exchanges is one lane's.
    assert_eq!(atomic(AtomOp::Add, Shared, true, one), AtomicWay::Straight);
    assert_eq!(atomic(AtomOp::Exch, Shared, false, one), AtomicWay::Straight);
    // One host thread runs a cta; global memory is everybody's.
    assert_eq!(atomic(AtomOp::Add, Shared, false, row), AtomicWay::Straight);
    assert_eq!(atomic(AtomOp::Add, Global, false, row), AtomicWay::Loop);
    assert_eq!(atomic(AtomOp::Inc, Global, false, one), AtomicWay::Routine);
}

#[test]
fn warp_level_ops_of_all_lanes_are_inline() {
    let way = |op, src: &[u64]| {
        let src = src.iter().map(|x| Val::Imm(*x, Ty::B32)).collect();
        warp_op_way(&Inst { op, dst: smallvec![Reg(1)], src, guarded: false, span: Span::NONE }, false)
    };
    const ALL: u64 = 0xffff_ffff;
    assert_eq!(way(Op::BarWarp, &[ALL]), WarpOpWay::Nothing);
    assert_eq!(way(Op::BarWarp, &[0xffff]), WarpOpWay::Routine);
    assert_eq!(way(Op::Vote(VoteMode::Any), &[1, ALL]), WarpOpWay::Vote(VoteMode::Any));
    let (mode, lane, clamp) = (ShflMode::Bfly, 16, 31);
    assert_eq!(way(Op::Shfl(mode), &[5, 16, 31, ALL]), WarpOpWay::Shuffle { mode, lane, clamp });
    let by_register = vec![Val::Imm(5, Ty::B32), Val::Reg(Reg(0)), Val::Imm(31, Ty::B32), Val::Imm(ALL, Ty::B32)];
    let inst =
        Inst { op: Op::Shfl(mode), dst: smallvec![Reg(1)], src: by_register.into(), guarded: false, span: Span::NONE };
    assert_eq!(warp_op_way(&inst, false), WarpOpWay::Routine);
}
