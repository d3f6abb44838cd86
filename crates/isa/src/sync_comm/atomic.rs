//! What `atom` and `red` share: tables of qualifiers, rules of spaces and vectors, and the access.

use handloom_ir::simt::{AtomAccess, Op, Reg, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{AtomOp, Order, Scope, StateSpace};
use smallvec::smallvec;

use crate::data_movement::memory::{
    CACHE_HINT, GLOBAL, SHARED, SHARED_CLUSTER, SHARED_CTA, check_named_space, check_policy, is_global, refuse, space,
};
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

/// State spaces; generic if none is written.
pub const SPACES: Group = maybe(Role::Space, &[GLOBAL, SHARED, SHARED_CTA, SHARED_CLUSTER]);
/// State space of vectors.
pub const VECTOR_SPACES: Group = maybe(Role::Space, &[GLOBAL]);

const SCOPE_GATE: Needs = Needs::on(5, 0, &[AtLeast(60)]);

/// Scopes; `.gpu` if none is written.
pub const SCOPE: Group = maybe(
    Role::Scope,
    &[
        choice_if(".cta", Value::Scope(Scope::Cta), SCOPE_GATE),
        choice_if(".cluster", Value::Scope(Scope::Cluster), Needs::on(7, 8, &[AtLeast(90)])),
        choice_if(".gpu", Value::Scope(Scope::Gpu), SCOPE_GATE),
        choice_if(".sys", Value::Scope(Scope::Sys), SCOPE_GATE),
    ],
);

const ORDER_GATE: Needs = Needs::on(6, 0, &[AtLeast(70)]);
const RELAXED: Choice = choice_if(".relaxed", Value::Order(Order::Relaxed), ORDER_GATE);
const ACQUIRE: Choice = choice_if(".acquire", Value::Order(Order::Acquire), ORDER_GATE);
const RELEASE: Choice = choice_if(".release", Value::Order(Order::Release), ORDER_GATE);
const ACQ_REL: Choice = choice_if(".acq_rel", Value::Order(Order::AcqRel), ORDER_GATE);

/// Orders of `atom`; relaxed if none is written.
pub const ATOM_ORDER: Group = maybe(Role::Order, &[RELAXED, ACQUIRE, RELEASE, ACQ_REL]);
/// Orders of `red`: it reads nothing that could acquire.
pub const RED_ORDER: Group = maybe(Role::Order, &[RELAXED, RELEASE]);

/// `.L2::cache_hint`.
pub const HINT: Group = maybe(Role::CacheHint, CACHE_HINT);

/// `.add`.
pub const ADD: Choice = choice(".add", Value::Atom(AtomOp::Add));
/// `.min`.
pub const MIN: Choice = choice(".min", Value::Atom(AtomOp::Min));
/// `.max`.
pub const MAX: Choice = choice(".max", Value::Atom(AtomOp::Max));

/// Bitwise operations.
pub const BITWISE: Group = must(
    Role::Op,
    &[
        choice(".and", Value::Atom(AtomOp::And)),
        choice(".or", Value::Atom(AtomOp::Or)),
        choice(".xor", Value::Atom(AtomOp::Xor)),
    ],
);
/// Types of bitwise operations.
pub const BITWISE_TYPES: Group = must(Role::Type, &[ty(".b32", B32), ty_if(".b64", B64, LONG_GATE)]);

/// `.inc` and `.dec`, which wrap at their operand.
pub const WRAPPING: Group =
    must(Role::Op, &[choice(".inc", Value::Atom(AtomOp::Inc)), choice(".dec", Value::Atom(AtomOp::Dec))]);
/// Their type.
pub const WRAPPING_TYPES: Group = must(Role::Type, &[ty(".u32", U32)]);

/// Types of a scalar `.add`.
pub const ADD_TYPES: Group = must(
    Role::Type,
    &[
        ty(".u32", U32),
        ty(".s32", S32),
        ty_if(".u64", U64, Needs::on(1, 2, &[AtLeast(12)])),
        ty_if(".f32", F32, Needs::on(2, 0, &[AtLeast(20)])),
        ty_if(".f64", F64, Needs::on(5, 0, &[AtLeast(60)])),
    ],
);

/// Types of `.min` and `.max`.
pub const ORDERED_TYPES: Group =
    must(Role::Type, &[ty(".u32", U32), ty(".s32", S32), ty_if(".u64", U64, LONG_GATE), ty_if(".s64", S64, LONG_GATE)]);

const LONG_GATE: Needs = Needs::on(3, 1, &[AtLeast(32)]);
const BF16_GATE: Needs = Needs::on(7, 8, &[AtLeast(90)]);

/// Types of `.add.noftz`.
pub const HALF_TYPES: Group = must(
    Role::Type,
    &[
        ty_if(".f16", F16, Needs::on(6, 3, &[AtLeast(70)])),
        ty_if(".f16x2", F16x2, Needs::on(6, 2, &[AtLeast(60)])),
        ty_if(".bf16", BF16, BF16_GATE),
        ty_if(".bf16x2", BF16x2, BF16_GATE),
    ],
);

/// Gate of vectors.
pub const VECTOR_GATE: Needs = Needs::on(8, 1, &[AtLeast(90)]);
/// Vector lengths of 32-bit floats.
pub const VECTORS_F32: Group = must(Role::Vec, &[choice(".v2", Value::Count(2)), choice(".v4", Value::Count(4))]);
/// Vector lengths of half-precision types; [`legal_vector`] keeps `.v8` to those of 16 bits.
pub const VECTORS_HALF: Group =
    must(Role::Vec, &[choice(".v2", Value::Count(2)), choice(".v4", Value::Count(4)), choice(".v8", Value::Count(8))]);

/// Rules of the scalar forms with `n_others` source operands before the policy.
pub fn legal_scalar(u: &Use, n_others: usize) -> Result<Needs, Reason> {
    check_named_space(u)?;
    check_policy(u, n_others)?;
    let place = space(u);
    if !matches!(place, StateSpace::Global | StateSpace::Shared | StateSpace::SharedCluster | StateSpace::Generic) {
        return Err(Reason::new(format!("an atomic operation cannot go to `.{}`", place.name())));
    }
    if !is_global(u) {
        refuse(u, Role::CacheHint, "goes only with `.global` or generic addresses")?;
    }
    if u.ty(Role::Type) == B128 && u.scope(Role::Scope) == Some(Scope::Sys) {
        return Ok(Needs::ptx(8, 4));
    }
    Ok(Needs::NONE)
}

/// Rules of the vector forms.
pub fn legal_vector(u: &Use, n_others: usize) -> Result<Needs, Reason> {
    if !is_global(u) {
        return Err(Reason::new("an atomic operation on a vector goes only to `.global`"));
    }
    if u.count(Role::Vec) == 8 && u.ty(Role::Type).bits() != 16 {
        return Err(Reason::new("`.v8` takes only `.f16` and `.bf16`").at(".v8"));
    }
    legal_scalar(u, n_others)
}

fn access(u: &Use, op: AtomOp) -> AtomAccess {
    AtomAccess {
        op,
        ty: u.ty(Role::Type),
        space: space(u),
        order: u.order(Role::Order).unwrap_or(Order::Relaxed),
        scope: u.scope(Role::Scope).unwrap_or(Scope::Gpu),
        count: u.count(Role::Vec),
    }
}

/// The operation of a use; `.add` where it is a fixed word.
pub fn operation(u: &Use) -> AtomOp {
    match u.value(Role::Op) {
        Some(Value::Atom(op)) => op,
        _ => AtomOp::Add,
    }
}

/// Address, then the elements of `n` operands.
fn sources(x: &Cx<'_, '_>, n: usize) -> Vec<Val> {
    let mut src = vec![x.addr(0).base];
    for i in 1..=n {
        src.extend(x.srcs(i));
    }
    src
}

/// Builds an `atom` with one operand, two for `.cas`.
pub fn atom(x: &mut Cx<'_, '_>) {
    let op = operation(x.u);
    let access = access(x.u, op);
    let n_results = usize::from(access.count) * if access.ty == B128 { 2 } else { 1 };
    let src = sources(x, if op == AtomOp::Cas { 2 } else { 1 });
    let dst: Vec<Reg> = (0..n_results).map(|_| x.b.reg(access.ty.ty())).collect();
    let offset = x.addr(0).offset;
    x.b.push_guarded(Op::Atom { access, offset }, dst.clone().into(), src.into());
    for (j, d) in dst.into_iter().enumerate() {
        x.set_at(0, j, Val::Reg(d));
    }
}

/// Builds a `red`.
pub fn red(x: &mut Cx<'_, '_>) {
    let access = access(x.u, operation(x.u));
    let src = sources(x, 1);
    let offset = x.addr(0).offset;
    x.b.push_guarded(Op::Red { access, offset }, smallvec![], src.into());
}
