//! What `tcgen05` is in ops on tensor memory. Longer loads and stores are several ops.
//!
//! `tcgen05.wait` and `tcgen05.fence` have nothing to wait for, since all is done at once; nor does a collector buffer show.

use handloom_ir::simt::tensor::{
    CellShape, Cells, CopyRows, Kind, MOST_REGISTERS, Packed, TensorCopy, TensorOp, TensorProduct,
};
use handloom_ir::simt::{Access, Op, Pure, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{Float, Int, Ty};
use smallvec::smallvec;

use crate::data_movement::memory::space;
use crate::data_movement::transfer::{shared_address_of, shared_space};
use crate::form::*;

/// An address in tensor memory as a word.
fn address(x: &mut Cx<'_, '_>, i: usize) -> Val {
    let address = x.addr(i);
    let bits = x.b.ty(address.base).bits();
    let base = x.b.ext(address.base, bits, false, Ty::B32);
    match address.offset {
        0 => base,
        offset => x.b.add(base, Val::Imm(offset.cast_unsigned() & 0xffff_ffff, Ty::B32)),
    }
}

fn ops(x: &mut Cx<'_, '_>, op: TensorOp, src: Vec<Val>) -> Vec<Val> {
    let dst: Vec<_> = op.results().into_iter().map(|ty| x.b.reg(ty)).collect();
    x.b.push(Op::Tensor(op), dst.clone().into(), src.into());
    dst.into_iter().map(Val::Reg).collect()
}

fn is_pair(u: &Use) -> bool {
    u.count(Role::Flag2) == 2
}

/// What is done once for a warp is done when its lanes are together.
fn together(x: &mut Cx<'_, '_>) {
    x.b.push(Op::BarWarp, smallvec![], smallvec![Val::Imm(0xffff_ffff, Ty::B32)]);
}

pub(super) fn alloc(x: &mut Cx<'_, '_>) -> Val {
    let (columns, pair) = (x.src(1), is_pair(x.u));
    let results = ops(x, TensorOp::Alloc { pair }, vec![columns]);
    let to = x.addr(0);
    x.b.guard = Some(results[0]);
    x.b.store(Access::weak(space(x.u), 32), to, &results[1..]);
    x.b.guard = None;
    results[0]
}

pub(super) fn dealloc(x: &mut Cx<'_, '_>) {
    together(x);
    let (src, pair) = (vec![x.src(0), x.src(1)], is_pair(x.u));
    ops(x, TensorOp::Dealloc { pair }, src);
}

pub(super) fn relinquish(x: &mut Cx<'_, '_>) {
    together(x);
    ops(x, TensorOp::Relinquish, vec![Val::Imm(0, Ty::B32)]);
}

fn shape(u: &Use) -> (CellShape, u8) {
    let shape = match u.text(Role::Shape) {
        ".32x32b" => CellShape::X32b32,
        ".16x64b" => CellShape::X16b64,
        ".16x128b" => CellShape::X16b128,
        ".16x256b" => CellShape::X16b256,
        // The others are words of their forms.
        _ => CellShape::X16b32x2,
    };
    (shape, u.count(Role::Num) * u.count(Role::Shape))
}

/// The parts of a load or store, and the addresses of its halves. `split`: the operand that tells how far they are apart, if there is one.
fn parts(x: &mut Cx<'_, '_>, split: Option<usize>) -> (Vec<Cells>, [Val; 2]) {
    let first = address(x, 0);
    let second = match split {
        None => first,
        Some(i) => {
            let by = x.src(i);
            x.b.add(first, by)
        }
    };
    let (mut shape, n) = shape(x.u);
    if !x.u.has(Role::Shape) && split.is_none() {
        shape = CellShape::X32b32;
    }
    let halves = x.u.has(Role::Flag);
    let most = u8::try_from(MOST_REGISTERS).unwrap_or(1);
    let parts = (0..n).step_by(usize::from(most));
    (parts.map(|first| Cells { shape, halves, first, count: most.min(n - first) }).collect(), [first, second])
}

/// The registers of a load, which are its results too.
fn loaded(x: &mut Cx<'_, '_>) -> Vec<Val> {
    let split = (x.args.len() > 1).then_some(1);
    let (parts, addresses) = parts(x, split);
    let words: Vec<Val> =
        parts.into_iter().flat_map(|cells| ops(x, TensorOp::Load(cells), addresses.to_vec())).collect();
    words.iter().enumerate().for_each(|(i, word)| x.set_at(0, i, *word));
    words
}

pub(super) fn load(x: &mut Cx<'_, '_>) {
    loaded(x);
}

/// The first two, and each other one with what came of those before it.
fn reduced(x: &mut Cx<'_, '_>, values: Vec<Val>, op: Pure) {
    let mut values = values.into_iter();
    if let Some(first) = values.next() {
        let all = values.fold(first, |all, value| x.b.pure(op, Ty::B32, &[all, value]));
        x.set_at(1, 0, all);
    }
}

pub(super) fn reduce_floats(x: &mut Cx<'_, '_>) {
    let mut values = loaded(x);
    if x.u.has(Role::XorSign) {
        let abs = Pure::FAbs { ty: Float::F32, ftz: false };
        values = values.into_iter().map(|v| x.b.pure(abs, Ty::B32, &[v])).collect();
    }
    let (ty, ftz, nan, xorsign) = (Float::F32, false, x.u.has(Role::Nan), false);
    let is_min = x.u.text(Role::Op) == ".min";
    let op = if is_min { Pure::FMin { ty, ftz, nan, xorsign } } else { Pure::FMax { ty, ftz, nan, xorsign } };
    reduced(x, values, op);
}

pub(super) fn reduce_integers(x: &mut Cx<'_, '_>) {
    let values = loaded(x);
    let int = if x.u.ty(Role::Type) == S32 { Int::S32 } else { Int::U32 };
    let op = if x.u.text(Role::Op) == ".min" { Pure::Min(int) } else { Pure::Max(int) };
    reduced(x, values, op);
}

pub(super) fn store(x: &mut Cx<'_, '_>) {
    let last = x.args.len() - 1;
    let (parts, addresses) = parts(x, (last > 1).then_some(1));
    let values = x.srcs(last);
    for cells in parts {
        let own = &values[usize::from(cells.first)..][..usize::from(cells.count)];
        ops(x, TensorOp::Store(cells), [&addresses[..], own].concat());
    }
}

pub(super) fn copy(x: &mut Cx<'_, '_>) {
    let rows = match (x.u.text(Role::Shape), x.u.text(Role::Mode)) {
        (".4x256b", _) => CopyRows::Four,
        (".64x128b", ".warpx2::02_13") => CopyRows::Pairs02,
        (".64x128b", _) => CopyRows::Pairs01,
        (".32x128b", _) => CopyRows::Every,
        _ => CopyRows::All,
    };
    let bytes = if x.u.text(Role::Shape).ends_with("x256b") { 32 } else { 16 };
    let packed = match x.u.text(Role::Type2) {
        ".b6x16_p32" => Some(Packed::Six),
        ".b4x16_p64" => Some(Packed::Four),
        _ => None,
    };
    let to = address(x, 0);
    let src = vec![to, x.src(1)];
    ops(x, TensorOp::Copy(TensorCopy { pair: is_pair(x.u), rows, bytes, packed }), src);
}

pub(super) fn shift(x: &mut Cx<'_, '_>) {
    let at = address(x, 0);
    let pair = is_pair(x.u);
    ops(x, TensorOp::Shift { pair }, vec![at]);
}

pub(super) fn commit(x: &mut Cx<'_, '_>) {
    let (space, multicast) = (shared_space(x.u), x.u.has(Role::Flag));
    let at = shared_address_of(x, 0);
    let mask = if multicast {
        let mask = x.src(1);
        let bits = x.b.ty(mask).bits();
        x.b.ext(mask, bits.min(16), false, Ty::B32)
    } else {
        Val::Imm(0, Ty::B32)
    };
    ops(x, TensorOp::Commit { space, multicast }, vec![at, mask]);
}

fn kind(u: &Use) -> Kind {
    match u.text(Role::Mode) {
        ".kind::tf32" => Kind::Tf32,
        ".kind::f8f6f4" => Kind::F8f6f4,
        ".kind::i8" => Kind::I8,
        ".kind::mxf8f6f4" => Kind::Mxf8f6f4,
        ".kind::mxf4" => Kind::Mxf4,
        ".kind::mxf4nvf4" => Kind::Mxf4nvf4,
        _ => Kind::F16,
    }
}

/// How many scales a row of `a` has.
fn scales(u: &Use, kind: Kind) -> u8 {
    match (u.text(Role::Num), kind) {
        (".scale_vec::1X", _) | (_, Kind::Mxf8f6f4) => 1,
        (".scale_vec::4X" | ".block16", _) => 4,
        _ => 2,
    }
}

/// `tcgen05.mma` of a form: its opcode and operands say what is where.
pub(super) fn product<const A_IN_TENSOR: bool, const SPARSE: bool, const LANES: bool, const WS: bool>(
    x: &mut Cx<'_, '_>,
) {
    let kind = kind(x.u);
    let is_scaled = x.u.has(Role::Flag3);
    let p = TensorProduct {
        kind,
        pair: is_pair(x.u),
        ws: WS,
        a_in_tensor: A_IN_TENSOR,
        a_shift: x.u.has(Role::Flag),
        sparse: SPARSE,
        scales: is_scaled.then(|| scales(x.u, kind)),
        masked: LANES,
    };
    let word = |n| Val::Imm(n, Ty::B32);
    let d = address(x, 0);
    let a = if A_IN_TENSOR { address(x, 1) } else { x.src(1) };
    let b = x.src(2);
    let mut next = 3;
    let mut take = || {
        next += 1;
        next - 1
    };
    let metadata = if SPARSE { vec![address(x, take())] } else { vec![] };
    let instruction = x.src(take());
    let scales: Vec<Val> = if is_scaled { (0..2).map(|_| address(x, take())).collect() } else { vec![] };
    let lanes = if LANES { x.srcs(take()) } else { vec![] };
    let enable = x.src(take());
    let adds = x.b.pure(Pure::FromPred(Ty::B32), Ty::B32, &[enable]);
    let last = x.src_opt(take());
    let (shift, zeros) = match last {
        Some(zeros) if WS => (word(0), zeros),
        Some(shift) => (shift, Val::Imm(0, Ty::B64)),
        None => (word(0), Val::Imm(0, Ty::B64)),
    };
    let src = [vec![d, a, b, instruction, adds, shift, zeros], metadata, scales, lanes].concat();
    ops(x, TensorOp::Product(p), src);
}
