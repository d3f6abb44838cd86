//! What all records of `cvt` share.

use handloom_ir::simt::{Cvt, Pure, Val};
use handloom_ir::types::Rounding;

use crate::form::*;
use crate::target::Needs;

/// `.rn` and `.rz`.
pub(super) const ROUND2: Group =
    must(Role::Round, &[choice(".rn", Value::Round(Rounding::Nearest)), choice(".rz", Value::Round(Rounding::Zero))]);
/// `.satfinite`, if it is written.
pub(super) const SATFINITE: Group = maybe(Role::SatFinite, &[choice_if(".satfinite", Value::Flag, Needs::ptx(8, 1))]);

/// The conversion that the qualifiers say. Without a rounding it is exact or to nearest.
pub(super) fn conversion(u: &Use) -> Cvt {
    let (to, from) = (u.ty(Role::Type), u.ty(Role::Type2));
    Cvt {
        to,
        from,
        round: u.round(Role::Round).unwrap_or(Rounding::Nearest),
        integral: to == from && u.has(Role::Round),
        ftz: u.has(Role::Ftz),
        sat: u.has(Role::Sat),
        relu: u.has(Role::Relu),
        satfinite: u.has(Role::SatFinite),
    }
}

/// Converts the first `n` sources.
pub(super) fn convert(x: &mut Cx<'_, '_>, n: usize) {
    let op = conversion(x.u);
    let sources: Vec<Val> = (0..n).map(|i| x.src(i)).collect();
    let value = x.b.pure(Pure::Cvt(op), op.to.ty(), &sources);
    x.set(value);
}
