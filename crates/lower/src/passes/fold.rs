//! Folding of value ops: constants through `num::eval`, and identities that hold for all bits.
//!
//! Floating-point ops are folded only when all sources are constants: `x + 0` is not `x` for -0, and NaNs become canonical.

use handloom_ir::num;
use handloom_ir::simt::{Pure, Val, Vals};
use handloom_ir::types::*;
use smallvec::smallvec;

/// What an op became.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Folded {
    /// A value that exists already.
    Value(Val),
    /// A simpler op.
    Op(Pure, Vals),
}

/// The definition of a value by an op whose sources are constants and values.
pub(crate) type Definition<'a> = (Pure, &'a [Val]);

/// Folds one op with one result. `def` returns the definition of a source, if it is a value.
pub(crate) fn fold<'a>(op: Pure, src: &[Val], def: impl Fn(Val) -> Option<Definition<'a>>) -> Option<Folded> {
    if let Some(v) = constant(op, src) {
        return Some(Folded::Value(v));
    }
    match op {
        Pure::Mov(_) => Some(Folded::Value(src[0])),
        Pure::Add(Ty::B64) | Pure::Or(Ty::B64) | Pure::Xor(Ty::B64) if let Some(pair) = pair(src, &def) => Some(pair),
        Pure::Add(ty) | Pure::Sub(ty) => sum(op, ty, src, def),
        Pure::Mul(ty) => product(ty, src),
        Pure::MulWide(int) => wide_product(int, src),
        Pure::Div(int) | Pure::Rem(int) => quotient(op, int, src),
        Pure::And(ty) | Pure::Or(ty) | Pure::Xor(ty) => bitwise(op, ty, src),
        Pure::Not(ty) => match def(src[0]) {
            Some((Pure::Not(_), inner)) => Some(Folded::Value(inner[0])),
            Some((Pure::ICmp(cmp, int), s)) if ty == Ty::P => {
                Some(Folded::Op(Pure::ICmp(cmp.opposite()?, int), s.into()))
            }
            Some((Pure::FCmp { cmp, ty: of, ftz }, s)) if ty == Ty::P => {
                Some(Folded::Op(Pure::FCmp { cmp: cmp.opposite_of_floats(), ty: of, ftz }, s.into()))
            }
            _ => None,
        },
        Pure::Shl(ty) => shift(ty, false, src),
        Pure::Shr(int) => shift(int.ty, int.signed, src),
        Pure::Min(_) | Pure::Max(_) => (src[0] == src[1]).then_some(Folded::Value(src[0])),
        Pure::AbsDiff(int) => (src[0] == src[1]).then_some(Folded::Value(Val::Imm(0, int.ty))),
        Pure::ICmp(cmp, int) => compare(cmp, int, src, def),
        Pure::Select(ty) => select(ty, src, def),
        Pure::Ext { bits, signed, from, to } => extend(u32::from(bits), signed, from, to, src[0], def),
        Pure::Pack(ty) => match (def(src[0]), def(src[1])) {
            (Some((Pure::Half { hi: false, .. }, lo)), Some((Pure::Half { hi: true, .. }, hi))) if lo == hi => {
                Some(Folded::Value(lo[0]))
            }
            _ if src[1] == Val::Imm(0, ty) => Some(Folded::Op(
                Pure::Ext { bits: ty.bits() as u8, signed: false, from: ty, to: ty.twice() },
                smallvec![src[0]],
            )),
            _ => None,
        },
        Pure::Half { from, hi } => match def(src[0]) {
            Some((Pure::Pack(_), parts)) => Some(Folded::Value(parts[usize::from(hi)])),
            Some((Pure::Ext { bits, signed, from: inner, .. }, s)) if !hi && u32::from(bits) <= from.half().bits() => {
                extend_from(u32::from(bits), signed, inner, from.half(), s[0])
            }
            _ => None,
        },
        Pure::ToPred(_) => match def(src[0]) {
            Some((Pure::FromPred(_), p)) => Some(Folded::Value(p[0])),
            _ => None,
        },
        // An op without an identity: a new one is right here, and folds where all of its sources are constants.
        _ => None,
    }
}

/// Puts the sources of a commutative op into one order, constants last, so that equal values look equal.
pub(crate) fn canonical(op: &mut Pure, src: &mut [Val]) {
    let rank = |v: &Val| match v {
        Val::Reg(r) => u64::from(r.0),
        Val::Imm(..) => u64::MAX,
    };
    let wrong = src.len() >= 2 && rank(&src[0]) > rank(&src[1]);
    if !wrong {
        return;
    }
    if op.facts().commutes {
        src.swap(0, 1);
    } else if let Pure::ICmp(cmp, int) = *op {
        src.swap(0, 1);
        *op = Pure::ICmp(cmp.swapped(), int);
    }
}

/// The result of an op with one, if all of its sources are constants.
pub(super) fn constant(op: Pure, src: &[Val]) -> Option<Val> {
    let mut bits = [0u64; 9];
    for (b, v) in bits.iter_mut().zip(src) {
        let Val::Imm(i, _) = v else { return None };
        *b = *i;
    }
    let (ty, second) = op.results();
    second.is_none().then(|| Val::Imm(num::eval(op, &bits[..src.len()])[0], ty))
}

fn imm(v: Val) -> Option<u64> {
    match v {
        Val::Imm(i, _) => Some(i),
        Val::Reg(_) => None,
    }
}

/// `x - c` becomes `x + -c`; `(x + c) + d` becomes `x + (c + d)`.
fn sum<'a>(op: Pure, ty: Ty, src: &[Val], def: impl Fn(Val) -> Option<Definition<'a>>) -> Option<Folded> {
    let is_sub = matches!(op, Pure::Sub(_));
    if is_sub && src[0] == src[1] {
        return Some(Folded::Value(Val::Imm(0, ty)));
    }
    let c = imm(src[1])?;
    if c == 0 {
        return Some(Folded::Value(src[0]));
    }
    let c = if is_sub { c.wrapping_neg() & ty.mask() } else { c };
    if let Some((Pure::Add(_), &[x, Val::Imm(d, _)])) = def(src[0]) {
        return Some(match c.wrapping_add(d) & ty.mask() {
            0 => Folded::Value(x),
            both => Folded::Op(Pure::Add(ty), smallvec![x, Val::Imm(both, ty)]),
        });
    }
    is_sub.then(|| Folded::Op(Pure::Add(ty), smallvec![src[0], Val::Imm(c, ty)]))
}

fn product(ty: Ty, src: &[Val]) -> Option<Folded> {
    match imm(src[1])? {
        0 => Some(Folded::Value(Val::Imm(0, ty))),
        1 => Some(Folded::Value(src[0])),
        c if c.is_power_of_two() => Some(Folded::Op(Pure::Shl(ty), smallvec![src[0], amount(c)])),
        _ => None,
    }
}

fn wide_product(int: Int, src: &[Val]) -> Option<Folded> {
    match imm(src[1])? {
        0 => Some(Folded::Value(Val::Imm(0, int.ty.twice()))),
        1 => extend_from(int.bits(), int.signed, int.ty, int.ty.twice(), src[0]),
        _ => None,
    }
}

fn quotient(op: Pure, int: Int, src: &[Val]) -> Option<Folded> {
    let c = imm(src[1])?;
    let is_div = matches!(op, Pure::Div(_));
    match c {
        1 if is_div => Some(Folded::Value(src[0])),
        1 => Some(Folded::Value(Val::Imm(0, int.ty))),
        _ if int.signed || !c.is_power_of_two() => None,
        _ if is_div => Some(Folded::Op(Pure::Shr(int), smallvec![src[0], amount(c)])),
        _ => Some(Folded::Op(Pure::And(int.ty), smallvec![src[0], Val::Imm(c - 1, int.ty)])),
    }
}

/// The exponent of a power of two, as a shift amount.
fn amount(c: u64) -> Val {
    Val::Imm(u64::from(c.trailing_zeros()), Ty::B32)
}

fn bitwise(op: Pure, ty: Ty, src: &[Val]) -> Option<Folded> {
    let (is_and, is_xor) = (matches!(op, Pure::And(_)), matches!(op, Pure::Xor(_)));
    if src[0] == src[1] {
        return Some(Folded::Value(if is_xor { Val::Imm(0, ty) } else { src[0] }));
    }
    let c = imm(src[1])?;
    if c == 0 {
        Some(Folded::Value(if is_and { src[1] } else { src[0] }))
    } else if c != ty.mask() {
        None
    } else if is_xor {
        Some(Folded::Op(Pure::Not(ty), smallvec![src[0]]))
    } else {
        Some(Folded::Value(if is_and { src[0] } else { src[1] }))
    }
}

fn shift(ty: Ty, signed: bool, src: &[Val]) -> Option<Folded> {
    match imm(src[1])? {
        0 => Some(Folded::Value(src[0])),
        n if n >= u64::from(ty.bits()) && !signed => Some(Folded::Value(Val::Imm(0, ty))),
        _ => None,
    }
}

fn compare<'a>(cmp: Cmp, int: Int, src: &[Val], def: impl Fn(Val) -> Option<Definition<'a>>) -> Option<Folded> {
    if src[0] == src[1] {
        let holds = matches!(cmp, Cmp::Eq | Cmp::Le | Cmp::Ge | Cmp::Equ | Cmp::Leu | Cmp::Geu | Cmp::Num);
        return Some(Folded::Value(Val::Imm(u64::from(holds), Ty::P)));
    }
    let c = imm(src[1])?;
    match (cmp, def(src[0])) {
        // A predicate that was made a number and is tested again.
        (Cmp::Ne, Some((Pure::FromPred(_), p))) if c == 0 => Some(Folded::Value(p[0])),
        (Cmp::Eq, Some((Pure::FromPred(_), p))) if c == 1 => Some(Folded::Value(p[0])),
        (Cmp::Eq, Some((Pure::FromPred(_), p))) if c == 0 => Some(Folded::Op(Pure::Not(Ty::P), smallvec![p[0]])),
        (Cmp::Lt, _) if c == 0 && !int.signed => Some(Folded::Value(Val::Imm(0, Ty::P))),
        (Cmp::Ge, _) if c == 0 && !int.signed => Some(Folded::Value(Val::Imm(1, Ty::P))),
        _ => None,
    }
}

fn select<'a>(ty: Ty, src: &[Val], def: impl Fn(Val) -> Option<Definition<'a>>) -> Option<Folded> {
    let (p, a, b) = (src[0], src[1], src[2]);
    if a == b {
        return Some(Folded::Value(a));
    }
    match (imm(p), imm(a), imm(b)) {
        (Some(p), ..) => Some(Folded::Value(if p != 0 { a } else { b })),
        (None, Some(1), Some(0)) if ty == Ty::P => Some(Folded::Value(p)),
        (None, Some(0), Some(1)) if ty == Ty::P => Some(Folded::Op(Pure::Not(Ty::P), smallvec![p])),
        (None, Some(1), Some(0)) => Some(Folded::Op(Pure::FromPred(ty), smallvec![p])),
        _ => match def(p) {
            Some((Pure::Not(_), q)) => Some(Folded::Op(Pure::Select(ty), smallvec![q[0], b, a])),
            _ => None,
        },
    }
}

/// Two words of 32 bits, one of them moved up by 32, as the halves of one value.
fn pair<'a>(src: &[Val], def: impl Fn(Val) -> Option<Definition<'a>>) -> Option<Folded> {
    let word = |v: Val| match def(v)? {
        (Pure::Ext { bits: 32, from: Ty::B32, signed, .. }, s) => Some((s[0], signed)),
        _ => None,
    };
    let moved = |v: Val| match def(v)? {
        (Pure::Shl(Ty::B64), &[x, Val::Imm(32, _)]) => Some(word(x)?.0),
        _ => None,
    };
    let lower = |v: Val| word(v).filter(|(_, signed)| !signed).map(|(word, _)| word);
    let halves = |a: Val, b: Val| Some(smallvec![lower(a)?, moved(b)?]);
    let both = halves(src[0], src[1]).or_else(|| halves(src[1], src[0]))?;
    Some(Folded::Op(Pure::Pack(Ty::B32), both))
}

fn extend<'a>(
    bits: u32,
    signed: bool,
    from: Ty,
    to: Ty,
    v: Val,
    def: impl Fn(Val) -> Option<Definition<'a>>,
) -> Option<Folded> {
    if from == to && bits == from.bits() {
        return Some(Folded::Value(v));
    }
    if let (Ty::B64, Ty::B32, 32, Some((Pure::Shr(_), &[x, Val::Imm(32, _)]))) = (from, to, bits, def(v)) {
        return Some(Folded::Op(Pure::Half { from, hi: true }, smallvec![x]));
    }
    let Some((Pure::Ext { bits: kept, signed: inner_signed, from: inner, .. }, s)) = def(v) else { return None };
    let kept = u32::from(kept);
    if bits <= kept {
        // Only bits of the source that the inner one kept are looked at.
        return extend_from(bits, signed, inner, to, s[0]);
    }
    // The bits between are copies of the sign, or zero; the outer op goes on with the same, or drops what lies above.
    match (inner_signed, signed) {
        (false, _) => extend_from(kept, false, inner, to, s[0]),
        (true, true) => extend_from(kept, true, inner, to, s[0]),
        (true, false) if to.bits() <= bits => extend_from(kept, true, inner, to, s[0]),
        (true, false) => None,
    }
}

/// An extension of the low `bits` of `v`, or `v` itself.
fn extend_from(bits: u32, signed: bool, from: Ty, to: Ty, v: Val) -> Option<Folded> {
    if from == to && bits == from.bits() {
        return Some(Folded::Value(v));
    }
    Some(Folded::Op(Pure::Ext { bits: bits as u8, signed, from, to }, smallvec![v]))
}
