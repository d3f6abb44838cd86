//! `ldmatrix`, `stmatrix`, `movmatrix`: small matrices between shared memory and the registers of a warp.
//!
//! Lane `l` holds of each matrix of 8 by 8 the elements `2 * (l % 4)` and the next one of row `l / 4`, or with `.trans` of that column. The
//! addresses of the rows come from eight lanes for each matrix, and go round by shuffles.
//!
//! Choice: each lane reads or writes its own elements, so that an address which is not a multiple of 16 goes unnoticed if its elements lie well.

use handloom_ir::simt::{Access, Addr, Op, Pure, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{Int, Order, Scope, ShflMode, Sreg, StateSpace, Ty};

use crate::data_movement::memory::{SHARED, SHARED_CTA, space};
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const WHY: &str = "tensor instructions";
const NUM: Group =
    must(Slot::Num, &[choice(".x1", Value::Count(1)), choice(".x2", Value::Count(2)), choice(".x4", Value::Count(4))]);
const SMALL_NUM: Group = must(Slot::Num, &[choice(".x1", Value::Count(1)), choice(".x2", Value::Count(2))]);
const SPACE: Group = maybe(Slot::Space, &[SHARED, SHARED_CTA]);
const NEW: Needs = Needs::on(8, 6, ARCH_100_120);
const R: Operand = Operand { count: Count::Fragment(|u| u.count(Slot::Num)), ..vector("r", Is::Fixed(B32), Slot::Num) };
/// Matrices of 16 rows take two registers each.
const R2: Operand = Operand { count: Count::Fragment(|u| 2 * u.count(Slot::Num)), ..R };

/// `ldmatrix.sync.aligned.m8n8.num{.trans}{.ss}.b16 r, [p]`.
pub const LDMATRIX: Form = Form {
    opcode: "ldmatrix",
    words: &[".sync", ".aligned", ".m8n8", ".b16"],
    section: "Warp-level matrix load instruction: ldmatrix",
    qualifiers: &[NUM, maybe(Slot::Flag, &[choice(".trans", Value::Flag)]), SPACE],
    dst: &[R],
    src: &[address("p")],
    needs: Needs::on(6, 5, SM_75),
    semantics: Semantics::Warp(|x| {
        for m in 0..x.u.count(Slot::Num) {
            let value = match places(x, m).as_slice() {
                [word] => x.b.load(access(x.u, 32), *word)[0],
                halves => {
                    let h: Vec<Val> = halves.iter().map(|at| x.b.load(access(x.u, 16), *at)[0]).collect();
                    x.b.pack(h[0], h[1])
                }
            };
            x.set_at(0, usize::from(m), value);
        }
    }),
    ..UNSUPPORTED_FORM
};

/// `ldmatrix.sync.aligned.m16n16.num.trans{.ss}.b8 r, [p]`.
pub const LDMATRIX_B8: Form = Form {
    semantics: Semantics::Unsupported(WHY),
    words: &[".sync", ".aligned", ".m16n16", ".trans", ".b8"],
    qualifiers: &[SMALL_NUM, SPACE],
    dst: &[R2],
    needs: NEW,
    ..LDMATRIX
};

const SOURCE: Group = must(Slot::Type2, &[choice(".b6x16_p32", Value::Flag), choice(".b4x16_p64", Value::Flag)]);

/// `ldmatrix.sync.aligned.m8n16.num{.ss}.b8x16.src_fmt r, [p]`.
pub const LDMATRIX_PACKED: Form = Form {
    words: &[".sync", ".aligned", ".m8n16", ".b8x16"],
    qualifiers: &[NUM, SPACE, SOURCE],
    needs: NEW,
    semantics: Semantics::Unsupported(WHY),
    ..LDMATRIX
};

/// `ldmatrix.sync.aligned.m16n16.num.trans{.ss}.b8x16.src_fmt r, [p]`.
pub const LDMATRIX_PACKED_TRANS: Form = Form {
    words: &[".sync", ".aligned", ".m16n16", ".trans", ".b8x16"],
    qualifiers: &[SMALL_NUM, SPACE, SOURCE],
    dst: &[R2],
    needs: NEW,
    semantics: Semantics::Unsupported(WHY),
    ..LDMATRIX
};

/// `stmatrix.sync.aligned.m8n8.num{.trans}{.ss}.b16 [p], r`.
pub const STMATRIX: Form = Form {
    opcode: "stmatrix",
    section: "Warp-level matrix store instruction: stmatrix",
    dst: &[],
    src: &[address("p"), R],
    needs: Needs::on(7, 8, SM_90),
    semantics: Semantics::Warp(|x| {
        let words = x.srcs(1);
        for (m, word) in (0..x.u.count(Slot::Num)).zip(words) {
            match places(x, m).as_slice() {
                [at] => x.b.store(access(x.u, 32), *at, &[word]),
                halves => {
                    for (hi, at) in [false, true].into_iter().zip(halves) {
                        let half = x.b.half(word, hi);
                        x.b.store(access(x.u, 16), *at, &[half]);
                    }
                }
            }
        }
    }),
    ..LDMATRIX
};

/// `stmatrix.sync.aligned.m16n8.num.trans{.ss}.b8 [p], r`.
pub const STMATRIX_B8: Form = Form {
    words: &[".sync", ".aligned", ".m16n8", ".trans", ".b8"],
    qualifiers: &[NUM, SPACE],
    needs: NEW,
    semantics: Semantics::Unsupported(WHY),
    ..STMATRIX
};

/// `movmatrix.sync.aligned.m8n8.trans.b16 d, a`.
pub const MOVMATRIX: Form = Form {
    opcode: "movmatrix",
    words: &[".sync", ".aligned", ".m8n8", ".trans", ".b16"],
    section: "Warp-level matrix transpose instruction: movmatrix",
    qualifiers: &[],
    dst: &[reg("d", Is::Fixed(B32))],
    src: &[reg("a", Is::Fixed(B32))],
    needs: Needs::on(7, 8, &[AtLeast(75)]),
    semantics: Semantics::Warp(|x| {
        // Column `l / 4`: its elements lie in rows `2 * (l % 4)` and the next, four lanes a row and two columns a lane.
        let (source, lane) = (x.src(0), lane(x));
        let (row, column) = (bits(x, lane, 0, 2, 3), bits(x, lane, 3, 2, 0));
        let (first, odd) = (x.b.add(row, column), bits(x, lane, 2, 1, 4));
        let second = x.b.add(first, Val::Imm(4, Ty::B32));
        let halves = [first, second].map(|from| {
            let word = shuffle(x, source, from);
            let moved = x.b.pure(Pure::Shr(Int::U32), Ty::B32, &[word, odd]);
            x.b.half(moved, false)
        });
        let value = x.b.pack(halves[0], halves[1]);
        x.set(value);
    }),
    ..LDMATRIX
};

/// Where the elements of matrix `m` that belong to the lane lie: a word, or with `.trans` two halves.
fn places(x: &mut Cx<'_, '_>, m: u8) -> Vec<Addr> {
    let lane = lane(x);
    let first = Val::Imm(8 * u64::from(m), Ty::B32);
    let (quarter, eighth) = (bits(x, lane, 0, 2, 1), bits(x, lane, 2, 3, 0));
    if x.u.has(Slot::Flag) {
        let column = bits(x, lane, 2, 3, 1);
        let row = x.b.add(first, quarter);
        let next = x.b.add(row, Val::Imm(1, Ty::B32));
        vec![row_at(x, row, column), row_at(x, next, column)]
    } else {
        let (row, column) = (x.b.add(first, eighth), bits(x, lane, 0, 2, 2));
        vec![row_at(x, row, column)]
    }
}

/// The address that lane `from` names, and `distance` bytes more.
fn row_at(x: &mut Cx<'_, '_>, from: Val, distance: Val) -> Addr {
    let Addr { base, offset } = x.addr(0);
    let wide = x.b.ty(base) == Ty::B64;
    let low = if wide { x.b.half(base, false) } else { base };
    let low = shuffle(x, low, from);
    if !wide {
        return Addr { base: x.b.add(low, distance), offset };
    }
    // An offset in shared memory has nothing above the lower half.
    let high = match space(x.u) {
        StateSpace::Shared => Val::Imm(0, Ty::B32),
        _ => {
            let high = x.b.half(base, true);
            shuffle(x, high, from)
        }
    };
    let row = x.b.pack(low, high);
    let distance = x.b.ext(distance, 32, false, Ty::B64);
    Addr { base: x.b.add(row, distance), offset }
}

fn access(u: &Use, bits: u8) -> Access {
    Access { space: space(u), bits, count: 1, elements: 1, order: Order::Weak, scope: Scope::Cta, whole: false }
}

pub(super) fn lane(x: &mut Cx<'_, '_>) -> Val {
    let lane = x.b.reg(Ty::B32);
    x.b.push(Op::Sreg(Sreg::Laneid), vec![lane], vec![]);
    Val::Reg(lane)
}

/// `count` bits of a value from bit `from` on, shifted left by `by`.
pub(super) fn bits(x: &mut Cx<'_, '_>, value: Val, from: u64, count: u32, by: u64) -> Val {
    let moved = x.b.pure(Pure::Shr(Int::U32), Ty::B32, &[value, Val::Imm(from, Ty::B32)]);
    let kept = x.b.and(moved, Val::Imm((1 << count) - 1, Ty::B32));
    x.b.pure(Pure::Shl(Ty::B32), Ty::B32, &[kept, Val::Imm(by, Ty::B32)])
}

/// The value of another lane.
pub(super) fn shuffle(x: &mut Cx<'_, '_>, value: Val, from: Val) -> Val {
    let (got, in_range) = (x.b.reg(Ty::B32), x.b.reg(Ty::P));
    let all = [Val::Imm(31, Ty::B32), Val::Imm(0xffff_ffff, Ty::B32)];
    x.b.push(Op::Shfl(ShflMode::Idx), vec![got, in_range], vec![value, from, all[0], all[1]]);
    Val::Reg(got)
}
