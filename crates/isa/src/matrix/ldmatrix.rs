//! `ldmatrix`, `stmatrix`, `movmatrix`: small matrices between shared memory and the registers of a warp.
//!
//! Lane `l` holds of each matrix of 8 by 8 the elements `2 * (l % 4)` and the next one of row `l / 4`, or with `.trans` of that column. The
//! addresses of the rows come from eight lanes for each matrix.
//!
//! Matrices of bytes have 16 rows or columns. The manual has their fragments in figures, which its text does not tell in full.
//!
//! Choice: a lane holds of a matrix of bytes that is loaded four elements of a row from `4 * (l % 4)` on: of row `l / 4`, and where there are 16 rows also
//! of row `l / 4 + 8`, as fragments of `mma` do. Of one that is stored it holds the elements `2 * (l % 4)` and the next of the rows `l / 4` and
//! `l / 4 + 8`, as accumulators do. Elements of 6 bits become the lower bits of a byte, those of 4 bits its middle, as `mma` wants them.
//!
//! Choice: each lane reads or writes its own elements, so that an address which is not a multiple of 16 goes unnoticed if its elements lie well.

use handloom_ir::simt::{Access, Addr, Addresses, Lines, MatrixOp, Op, Pure, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{Int, Sreg, Ty};
use smallvec::smallvec;

use crate::data_movement::memory::{SHARED, SHARED_CTA, space};
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

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
    src: &[address("p").in_bits(32)],
    needs: Needs::on(6, 5, SM_75),
    semantics: Semantics::Warp(|x| {
        let words: Vec<Val> =
            places(x, Lines::One).into_iter().map(|place| x.b.load(access(x.u, 32), place)[0]).collect();
        for (m, word) in words.into_iter().enumerate() {
            let word = rows(x, word);
            x.set_at(0, m, word);
        }
    }),
    ..UNSUPPORTED_FORM
};

/// `ldmatrix.sync.aligned.m16n16.num.trans{.ss}.b8 r, [p]`.
pub const LDMATRIX_B8: Form = Form {
    semantics: Semantics::Warp(|x| {
        let (g, _) = group_and_lane(x);
        let starts = places(x, Lines::Four);
        for (m, rows) in starts.chunks(4).enumerate() {
            let columns: Vec<Addr> = rows.iter().map(|row| ahead(x, *row, g, 0)).collect();
            for h in 0..2 {
                let bytes = columns.iter().map(|at| x.b.load(access(x.u, 8), shifted(*at, 8 * h))[0]).collect();
                let word = word_of_bytes(x, bytes);
                x.set_at(0, 2 * m + h as usize, word);
            }
        }
    }),
    words: &[".sync", ".aligned", ".m16n16", ".trans", ".b8"],
    qualifiers: &[SMALL_NUM, SPACE],
    dst: &[R2],
    needs: NEW,
    ..LDMATRIX
};

/// What elements become, which is said before what they are.
const FORMAT: Group = one_of(Role::Type, &[choice(".b8x16", Value::Flag)]);
const SOURCE: Group = one_of(Role::Type2, &[choice(".b6x16_p32", Value::Flag), choice(".b4x16_p64", Value::Flag)]);

/// `ldmatrix.sync.aligned.m8n16.num{.ss}.b8x16.src_fmt r, [p]`.
pub const LDMATRIX_PACKED: Form = Form {
    words: &[".sync", ".aligned", ".m8n16"],
    qualifiers: &[NUM, SPACE, FORMAT, SOURCE],
    needs: NEW,
    semantics: Semantics::Warp(|x| {
        let (_, t) = group_and_lane(x);
        let words = places(x, Lines::One);
        for (m, word) in words.into_iter().enumerate() {
            // From word `t` of 32 bits back to where four smaller elements are.
            let elements = if is_six(x.u) {
                let at = behind(x, word, t);
                let bytes = [0, 1, 2].map(|i| x.b.load(access(x.u, 8), shifted(at, i))[0]);
                let zero = x.b.imm(0, Ty::B16);
                let all = word_of_bytes(x, vec![bytes[0], bytes[1], bytes[2], zero]);
                (0..4).map(|i| bits_of(x, all, 6 * i, 0x3f, 0)).collect()
            } else {
                let twice = x.b.add(t, t);
                let at = behind(x, word, twice);
                let half = x.b.load(access(x.u, 16), at)[0];
                let all = x.b.ext(half, 16, false, Ty::B32);
                (0..4).map(|i| bits_of(x, all, 4 * i, 0xf, 2)).collect()
            };
            let word = word_of_bytes(x, elements);
            x.set_at(0, m, word);
        }
    }),
    ..LDMATRIX
};

/// `ldmatrix.sync.aligned.m16n16.num.trans{.ss}.b8x16.src_fmt r, [p]`.
pub const LDMATRIX_PACKED_TRANS: Form = Form {
    words: &[".sync", ".aligned", ".m16n16", ".trans"],
    qualifiers: &[SMALL_NUM, SPACE, FORMAT, SOURCE],
    dst: &[R2],
    needs: NEW,
    semantics: Semantics::Warp(|x| {
        let (g, _) = group_and_lane(x);
        let starts = places(x, Lines::Four);
        // Element `g` of a row begins in this byte, at this bit.
        let size = if is_six(x.u) { 6 } else { 4 };
        let bit = times(x, g, size);
        let byte = x.b.pure(Pure::Shr(Int::U32), Ty::B32, &[bit, Val::Imm(3, Ty::B32)]);
        let bit = x.b.and(bit, Val::Imm(7, Ty::B32));
        for (m, rows) in starts.chunks(4).enumerate() {
            let columns: Vec<Addr> = rows.iter().map(|row| ahead(x, *row, byte, 0)).collect();
            for h in 0..2 {
                let mut elements = Vec::new();
                for at in &columns {
                    let n = if size == 6 { 2 } else { 1 };
                    let mut bytes: Vec<Val> =
                        (0..n).map(|i| x.b.load(access(x.u, 8), shifted(*at, h * i64::from(size) + i))[0]).collect();
                    bytes.resize(4, x.b.imm(0, Ty::B16));
                    let all = word_of_bytes(x, bytes);
                    let low = x.b.pure(Pure::Shr(Int::U32), Ty::B32, &[all, bit]);
                    elements.push(if size == 6 { bits_of(x, low, 0, 0x3f, 0) } else { bits_of(x, low, 0, 0xf, 2) });
                }
                let word = word_of_bytes(x, elements);
                x.set_at(0, 2 * m + h as usize, word);
            }
        }
    }),
    ..LDMATRIX
};

/// `stmatrix.sync.aligned.m8n8.num{.trans}{.ss}.b16 [p], r`.
pub const STMATRIX: Form = Form {
    opcode: "stmatrix",
    section: "Warp-level matrix store instruction: stmatrix",
    dst: &[],
    src: &[address("p").in_bits(32), R],
    needs: Needs::on(7, 8, SM_90),
    semantics: Semantics::Warp(|x| {
        let words: Vec<Val> = x.srcs(1).into_iter().map(|word| rows(x, word)).collect();
        for (word, place) in words.into_iter().zip(places(x, Lines::One)) {
            x.b.store(access(x.u, 32), place, &[word]);
        }
    }),
    ..LDMATRIX
};

/// `stmatrix.sync.aligned.m16n8.num.trans{.ss}.b8 [p], r`.
pub const STMATRIX_B8: Form = Form {
    words: &[".sync", ".aligned", ".m16n8", ".trans", ".b8"],
    qualifiers: &[NUM, SPACE],
    needs: NEW,
    semantics: Semantics::Warp(|x| {
        let (g, _) = group_and_lane(x);
        let (words, places) = (x.srcs(1), places(x, Lines::Two));
        for (word, columns) in words.into_iter().zip(places.chunks(2)) {
            // These are `2 * g` from the starts of columns.
            let columns = [0, 1].map(|e| behind(x, columns[e], g));
            for (i, hi) in [false, true].into_iter().enumerate() {
                let low = x.b.half(word, hi);
                let high =
                    x.b.pure(Pure::Shr(Int { ty: Ty::B16, signed: false }), Ty::B16, &[low, Val::Imm(8, Ty::B32)]);
                let low = x.b.ext(low, 8, false, Ty::B16);
                for (at, byte) in columns.iter().zip([low, high]) {
                    x.b.store(access(x.u, 8), shifted(*at, 8 * i as i64), &[byte]);
                }
            }
        }
    }),
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

/// A register of a matrix in registers from the one in memory, or the other way around, by rows: with `.trans` rows of one are columns of the other. Pairs of elements of
/// rows are moved, which is faster than each by itself.
fn rows(x: &mut Cx<'_, '_>, word: Val) -> Val {
    if x.u.has(Role::Flag) { warp_op(x, MatrixOp::Transpose, vec![word])[0] } else { word }
}

/// Addresses that a lane needs of each matrix.
fn places(x: &mut Cx<'_, '_>, lines: Lines) -> Vec<Addr> {
    let Addr { base, offset } = x.addr(0);
    let op = MatrixOp::Addresses(Addresses { ty: x.b.ty(base), count: x.u.count(Role::Num), lines });
    warp_op(x, op, vec![base]).into_iter().map(|base| Addr { base, offset }).collect()
}

/// `%laneid / 4` and `%laneid % 4`.
pub(crate) fn group_and_lane(x: &mut Cx<'_, '_>) -> (Val, Val) {
    let lane = x.b.reg(Ty::B32);
    x.b.push(Op::Sreg(Sreg::Laneid), smallvec![lane], smallvec![]);
    let g = x.b.pure(Pure::Shr(Int::U32), Ty::B32, &[Val::Reg(lane), Val::Imm(2, Ty::B32)]);
    (g, x.b.and(Val::Reg(lane), Val::Imm(3, Ty::B32)))
}

pub(crate) fn times(x: &mut Cx<'_, '_>, v: Val, n: u32) -> Val {
    let ty = x.b.ty(v);
    if n == 1 { v } else { x.b.pure(Pure::Mul(ty), ty, &[v, Val::Imm(u64::from(n), ty)]) }
}

/// An address so many bytes ahead, of which some are known.
fn ahead(x: &mut Cx<'_, '_>, at: Addr, by: Val, more: i64) -> Addr {
    let ty = x.b.ty(at.base);
    let by = x.b.ext(by, 32, false, ty);
    shifted(Addr { base: x.b.add(at.base, by), ..at }, more)
}

fn behind(x: &mut Cx<'_, '_>, at: Addr, by: Val) -> Addr {
    let ty = x.b.ty(at.base);
    let by = x.b.ext(by, 32, false, ty);
    Addr { base: x.b.sub(at.base, by), ..at }
}

fn shifted(at: Addr, by: i64) -> Addr {
    Addr { offset: at.offset + by, ..at }
}

fn is_six(u: &Use) -> bool {
    u.text(Role::Type2) == ".b6x16_p32"
}

/// Some bits of a word, from `from` on, as a byte with zeros below.
fn bits_of(x: &mut Cx<'_, '_>, word: Val, from: u64, mask: u64, zeros: u64) -> Val {
    let low = x.b.pure(Pure::Shr(Int::U32), Ty::B32, &[word, Val::Imm(from, Ty::B32)]);
    let masked = x.b.and(low, Val::Imm(mask, Ty::B32));
    let byte = x.b.pure(Pure::Shl(Ty::B32), Ty::B32, &[masked, Val::Imm(zeros, Ty::B32)]);
    x.b.half(byte, false)
}

/// Four bytes, each in 16 bits, as a word.
pub(super) fn word_of_bytes(x: &mut Cx<'_, '_>, bytes: Vec<Val>) -> Val {
    let halves: Vec<Val> = bytes
        .chunks(2)
        .map(|two| {
            let [low, high] = [two[0], two[1]].map(|v| x.b.ext(v, 8, false, Ty::B16));
            let high = x.b.pure(Pure::Shl(Ty::B16), Ty::B16, &[high, Val::Imm(8, Ty::B32)]);
            x.b.or(low, high)
        })
        .collect();
    x.b.pack(halves[0], halves[1])
}

fn access(u: &Use, bits: u8) -> Access {
    Access::weak(space(u), bits)
}

/// A matrix op by the whole warp.
pub(crate) fn warp_op(x: &mut Cx<'_, '_>, op: MatrixOp, mut src: Vec<Val>) -> Vec<Val> {
    src.push(Val::Imm(0xffff_ffff, Ty::B32));
    let dst: Vec<_> = op.results().into_iter().map(|ty| x.b.reg(ty)).collect();
    x.b.push(Op::Matrix(op), dst.clone().into(), src.into());
    dst.into_iter().map(Val::Reg).collect()
}
