//! `ldmatrix`, `stmatrix`, `movmatrix`: small matrices between shared memory and the registers of a warp.

use handloom_ir::types::ScalarType::*;

use crate::data_movement::memory::{SHARED, SHARED_CTA};
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
    semantics: Semantics::Unsupported(WHY),
    ..UNSUPPORTED_FORM
};

/// `ldmatrix.sync.aligned.m16n16.num.trans{.ss}.b8 r, [p]`.
pub const LDMATRIX_B8: Form = Form {
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
    ..LDMATRIX
};

/// `ldmatrix.sync.aligned.m16n16.num.trans{.ss}.b8x16.src_fmt r, [p]`.
pub const LDMATRIX_PACKED_TRANS: Form = Form {
    words: &[".sync", ".aligned", ".m16n16", ".trans", ".b8x16"],
    qualifiers: &[SMALL_NUM, SPACE, SOURCE],
    dst: &[R2],
    needs: NEW,
    ..LDMATRIX
};

/// `stmatrix.sync.aligned.m8n8.num{.trans}{.ss}.b16 [p], r`.
pub const STMATRIX: Form = Form {
    opcode: "stmatrix",
    section: "Warp-level matrix store instruction: stmatrix",
    dst: &[],
    src: &[address("p"), R],
    needs: Needs::on(7, 8, SM_90),
    ..LDMATRIX
};

/// `stmatrix.sync.aligned.m16n8.num.trans{.ss}.b8 [p], r`.
pub const STMATRIX_B8: Form = Form {
    words: &[".sync", ".aligned", ".m16n8", ".trans", ".b8"],
    qualifiers: &[NUM, SPACE],
    needs: NEW,
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
    ..LDMATRIX
};
