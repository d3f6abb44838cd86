//! What the semantics of several records have in common: modes read from qualifiers, comparisons, packed types by their parts.

use handloom_ir::simt::{FMode, Op, Pure, Reg, Val};
use handloom_ir::types::{BoolOp, Cmp, Float, Int, Rounding, ScalarType, Ty, TypeClass};
use smallvec::smallvec;

use crate::form::*;
use crate::words::Half;

/// Builds a value op on the first `n` source operands and makes its value the result of the instruction.
pub(crate) fn apply(x: &mut Cx<'_, '_>, op: Pure, ty: Ty, n: usize) {
    let sources: Vec<Val> = (0..n).map(|i| x.src(i)).collect();
    let value = x.b.pure(op, ty, &sources);
    x.set(value);
}

/// The float type of the instruction.
pub(crate) fn float(u: &Use) -> Float {
    float_of(u.ty(Role::Type))
}

/// The float type of a scalar type.
pub(crate) fn float_of(t: ScalarType) -> Float {
    Float::of(t).unwrap_or_else(|| panic!("record has {t} where a float type with arithmetic belongs"))
}

/// Rounding, flushing and clamping as the qualifiers say; no rounding means to nearest.
pub(crate) fn mode(u: &Use, ty: Float) -> FMode {
    FMode {
        ty,
        round: u.round(Role::Round).unwrap_or(Rounding::Nearest),
        ftz: u.has(Role::Ftz),
        sat: u.has(Role::Sat),
        relu: u.has(Role::Relu),
    }
}

/// A mode that rounds to nearest and does nothing else.
pub(crate) const fn plain(ty: Float) -> FMode {
    FMode { ty, round: Rounding::Nearest, ftz: false, sat: false, relu: false }
}

/// The part of a product that the instruction keeps.
pub(crate) fn half(u: &Use) -> Half {
    match u.value(Role::Half) {
        Some(Value::Tag(tag)) if tag == Half::Hi as u16 => Half::Hi,
        Some(Value::Tag(tag)) if tag == Half::Wide as u16 => Half::Wide,
        _ => Half::Lo,
    }
}

/// The part of the product of sources 0 and 1 that the instruction keeps.
pub(crate) fn product(x: &mut Cx<'_, '_>) -> Val {
    let int = Int::of(x.u.ty(Role::Type));
    let (op, ty) = match half(x.u) {
        Half::Lo => (Pure::Mul(int.ty), int.ty),
        Half::Hi => (Pure::MulHi(int), int.ty),
        Half::Wide => (Pure::MulWide(int), int.ty.twice()),
    };
    x.b.pure(op, ty, &[x.src(0), x.src(1)])
}

/// Whether `.wrap` is written, not `.clamp`.
pub(crate) fn wraps(u: &Use) -> bool {
    u.value(Role::Mode) == Some(Value::Tag(1))
}

/// Refuses operators that the type of a comparison does not have.
pub(crate) fn check_comparison(u: &Use, t: ScalarType) -> Result<(), Reason> {
    const SIGNED: &[&str] = &[".eq", ".ne", ".lt", ".le", ".gt", ".ge"];
    const UNSIGNED: &[&str] = &[".eq", ".ne", ".lt", ".le", ".gt", ".ge", ".lo", ".ls", ".hi", ".hs"];
    const BITS: &[&str] = &[".eq", ".ne"];
    let word = u.text(Role::Cmp);
    let (fits, help) = match t.class() {
        TypeClass::Bits | TypeClass::Pred => (BITS.contains(&word), "bit types compare with `.eq` and `.ne`"),
        TypeClass::Unsigned => {
            (UNSIGNED.contains(&word), "unsigned types compare with `.eq .ne .lt .le .gt .ge .lo .ls .hi .hs`")
        }
        TypeClass::Signed => (SIGNED.contains(&word), "signed types compare with `.eq .ne .lt .le .gt .ge`"),
        TypeClass::Float => (
            SIGNED.contains(&word) || !UNSIGNED.contains(&word),
            "floats compare with `.eq .ne .lt .le .gt .ge`, their unordered forms, `.num` and `.nan`",
        ),
    };
    if fits { Ok(()) } else { Err(Reason::new(format!("`{word}` does not compare `{t}`")).at(word).help(help)) }
}

/// The comparison operator of the instruction.
pub(crate) fn cmp(u: &Use) -> Cmp {
    match u.value(Role::Cmp) {
        Some(Value::Cmp(cmp)) => cmp,
        other => panic!("record asks for a comparison and finds {other:?}"),
    }
}

/// `a CmpOp b` of a scalar type, as a predicate.
pub(crate) fn compare(x: &mut Cx<'_, '_>, t: ScalarType, a: Val, b: Val) -> Val {
    let op = match Float::of(t) {
        Some(ty) => Pure::FCmp { cmp: cmp(x.u), ty, ftz: x.u.has(Role::Ftz) },
        None => Pure::ICmp(cmp(x.u), Int::of(t)),
    };
    x.b.pure(op, Ty::P, &[a, b])
}

/// A comparison joined with the predicate in source 2 by the operator of the instruction; itself if there is none.
pub(crate) fn join(x: &mut Cx<'_, '_>, t: Val) -> Val {
    match (x.u.value(Role::Bool), x.src_opt(2)) {
        (Some(Value::Bool(BoolOp::And)), Some(c)) => x.b.and(t, c),
        (Some(Value::Bool(BoolOp::Or)), Some(c)) => x.b.or(t, c),
        (Some(Value::Bool(BoolOp::Xor)), Some(c)) => x.b.xor(t, c),
        _ => t,
    }
}

/// A predicate as `set` writes it: 1.0 or all ones, else 0.
pub(crate) fn truth(x: &mut Cx<'_, '_>, p: Val, t: ScalarType) -> Val {
    let yes = match t {
        ScalarType::F32 => 0x3f80_0000,
        ScalarType::F16 => 0x3c00,
        ScalarType::BF16 => 0x3f80,
        _ => t.ty().mask(),
    };
    x.b.select(p, Val::Imm(yes, t.ty()), Val::Imm(0, t.ty()))
}

/// The carry flag, for reading.
pub(crate) fn carry_in(x: &mut Cx<'_, '_>) -> Val {
    Val::Reg(x.b.carry_flag())
}

/// Sets the carry flag; under a guard that is 0 it keeps its value.
pub(crate) fn carry_out(x: &mut Cx<'_, '_>, carry: Val) {
    let flag = x.b.carry_flag();
    let new = match x.b.guard {
        Some(guard) => x.b.select(guard, carry, Val::Reg(flag)),
        None => carry,
    };
    x.b.copy(flag, new);
}

/// `AddCarry` or `SubBorrow`: the value, and the carry or borrow.
pub(crate) fn with_carry(x: &mut Cx<'_, '_>, op: Pure, a: Val, b: Val, carry: Val) -> (Val, Val) {
    let value: Reg = x.b.reg(x.b.ty(a));
    let out = x.b.reg(Ty::P);
    x.b.push(Op::Pure(op), smallvec![value, out], smallvec![a, b, carry]);
    (Val::Reg(value), Val::Reg(out))
}

/// A value of 16 bits, plus one where the predicate holds.
pub(crate) fn plus_one_if(x: &mut Cx<'_, '_>, value: Val, carry: Val) -> Val {
    let one = x.b.pure(Pure::FromPred(Ty::B16), Ty::B16, &[carry]);
    x.b.add(value, one)
}

/// Whether a type is a pair of 16-bit parts in 32 bits.
pub(crate) const fn is_pair(t: ScalarType) -> bool {
    matches!(t, ScalarType::U16x2 | ScalarType::S16x2 | ScalarType::F16x2 | ScalarType::BF16x2)
}

/// Whether a type is four 8-bit integers in 32 bits.
pub(crate) const fn is_quad(t: ScalarType) -> bool {
    matches!(t, ScalarType::U8x4 | ScalarType::S8x4)
}

/// Does something to the parts of packed 32-bit sources. Parts arrive as `B16`, 8-bit ones extended by their sign; of the results of
/// 8-bit parts the lower 8 bits count.
pub(crate) fn by_parts(x: &mut Cx<'_, '_>, t: ScalarType, n: usize, f: fn(&mut Cx<'_, '_>, ScalarType, &[Val]) -> Val) {
    let sources: Vec<Val> = (0..n).map(|i| x.src(i)).collect();
    let mut halves = [Val::Imm(0, Ty::B16); 2];
    for (hi, half) in halves.iter_mut().enumerate() {
        let parts: Vec<Val> = sources.iter().map(|&s| x.b.half(s, hi == 1)).collect();
        *half = if is_quad(t) { bytes(x, t, &parts, f) } else { f(x, t, &parts) };
    }
    let value = x.b.pack(halves[0], halves[1]);
    x.set(value);
}

fn bytes(x: &mut Cx<'_, '_>, t: ScalarType, halves: &[Val], f: fn(&mut Cx<'_, '_>, ScalarType, &[Val]) -> Val) -> Val {
    let eight = Val::Imm(8, Ty::B32);
    let shift = Pure::Shr(Int { ty: Ty::B16, signed: t.is_signed() });
    let low: Vec<Val> = halves.iter().map(|&h| x.b.ext(h, 8, t.is_signed(), Ty::B16)).collect();
    let high: Vec<Val> = halves.iter().map(|&h| x.b.pure(shift, Ty::B16, &[h, eight])).collect();
    let low = f(x, t, &low);
    let high = f(x, t, &high);
    let low = x.b.ext(low, 8, false, Ty::B16);
    let high = x.b.pure(Pure::Shl(Ty::B16), Ty::B16, &[high, eight]);
    x.b.or(low, high)
}

/// Clamps a `B16` to the range of an 8-bit type.
pub(crate) fn clamp_byte(x: &mut Cx<'_, '_>, t: ScalarType, a: Val) -> Val {
    // The two ends of the range as 16-bit signed numbers.
    let (low, high) = if t.is_signed() { (0xff80, 0x7f) } else { (0, 0xff) };
    let a = x.b.pure(Pure::Max(Int::S16), Ty::B16, &[a, Val::Imm(low, Ty::B16)]);
    x.b.pure(Pure::Min(Int::S16), Ty::B16, &[a, Val::Imm(high, Ty::B16)])
}
