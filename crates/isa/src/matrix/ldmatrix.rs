//! `ldmatrix`, `stmatrix`, `movmatrix`: small matrices between shared memory and the registers of a warp.
//!
//! Lane `l` holds of each matrix of 8 by 8 the elements `2 * (l % 4)` and the next one of row `l / 4`, or with `.trans` of that column. The
//! addresses of the rows come from eight lanes for each matrix.
//!
//! Choice: each lane reads or writes its own elements, so that an address which is not a multiple of 16 goes unnoticed if its elements lie well.

use handloom_ir::simt::{Access, Addr, Addresses, MatrixOp, Op, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{Order, Scope, Ty};

use crate::data_movement::memory::{SHARED, SHARED_CTA, space};
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const WHY: &str = "tensor instructions";
const NUM: Group =
    must(Role::Num, &[choice(".x1", Value::Count(1)), choice(".x2", Value::Count(2)), choice(".x4", Value::Count(4))]);
const SMALL_NUM: Group = must(Role::Num, &[choice(".x1", Value::Count(1)), choice(".x2", Value::Count(2))]);
const SPACE: Group = maybe(Role::Space, &[SHARED, SHARED_CTA]);
const NEW: Needs = Needs::on(8, 6, ARCH_100_120);
const R: Operand = Operand { count: Count::Fragment(|u| u.count(Role::Num)), ..vector("r", Is::Fixed(B32), Role::Num) };
/// Matrices of 16 rows take two registers each.
const R2: Operand = Operand { count: Count::Fragment(|u| 2 * u.count(Role::Num)), ..R };

/// `ldmatrix.sync.aligned.m8n8.num{.trans}{.ss}.b16 r, [p]`.
pub const LDMATRIX: Form = Form {
    opcode: "ldmatrix",
    words: &[".sync", ".aligned", ".m8n8", ".b16"],
    section: "Warp-level matrix load instruction: ldmatrix",
    qualifiers: &[NUM, maybe(Role::Flag, &[choice(".trans", Value::Flag)]), SPACE],
    dst: &[R],
    src: &[address("p")],
    needs: Needs::on(6, 5, SM_75),
    semantics: Semantics::Warp(|x| {
        let places = places(x);
        for m in 0..usize::from(x.u.count(Role::Num)) {
            let value = if x.u.has(Role::Flag) {
                let halves = [0, 1].map(|i| x.b.load(access(x.u, 16), places[2 * m + i])[0]);
                x.b.pack(halves[0], halves[1])
            } else {
                x.b.load(access(x.u, 32), places[m])[0]
            };
            x.set_at(0, m, value);
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

const SOURCE: Group = must(Role::Type2, &[choice(".b6x16_p32", Value::Flag), choice(".b4x16_p64", Value::Flag)]);

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
        let (words, places) = (x.srcs(1), places(x));
        for (m, word) in words.into_iter().enumerate() {
            if x.u.has(Role::Flag) {
                for (i, hi) in [false, true].into_iter().enumerate() {
                    let half = x.b.half(word, hi);
                    x.b.store(access(x.u, 16), places[2 * m + i], &[half]);
                }
            } else {
                x.b.store(access(x.u, 32), places[m], &[word]);
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
        let source = x.src(0);
        let value = warp_op(x, MatrixOp::Transpose, vec![source])[0];
        x.set(value);
    }),
    ..LDMATRIX
};

/// Where the elements of the lane lie: a word of each matrix, or with `.trans` two halves.
fn places(x: &mut Cx<'_, '_>) -> Vec<Addr> {
    let Addr { base, offset } = x.addr(0);
    let op =
        MatrixOp::Addresses(Addresses { ty: x.b.ty(base), count: x.u.count(Role::Num), trans: x.u.has(Role::Flag) });
    warp_op(x, op, vec![base]).into_iter().map(|base| Addr { base, offset }).collect()
}

fn access(u: &Use, bits: u8) -> Access {
    Access { space: space(u), bits, count: 1, elements: 1, order: Order::Weak, scope: Scope::Cta, is_single: false }
}

/// A matrix op by the whole warp.
pub(super) fn warp_op(x: &mut Cx<'_, '_>, op: MatrixOp, mut src: Vec<Val>) -> Vec<Val> {
    src.push(Val::Imm(0xffff_ffff, Ty::B32));
    let dst: Vec<_> = op.results().into_iter().map(|ty| x.b.reg(ty)).collect();
    x.b.push(Op::Matrix(op), dst.clone(), src);
    dst.into_iter().map(Val::Reg).collect()
}
