//! `multimem.ld_reduce`, `multimem.st`, `multimem.red` and the bulk copies of `multimem`: accesses to all memories behind a multimem address.
//!
//! Choice: a multimem address is an address in `.global`, and one memory lies behind it, that of the device. So a reduction of what is loaded there is
//! what is loaded, and the others are the ordinary accesses.

use handloom_ir::simt::{Access, AtomAccess, Op};
use handloom_ir::types::ScalarType::{self, *};
use handloom_ir::types::{AtomOp, Order, Scope, StateSpace};
use smallvec::smallvec;

use super::cp_async_bulk::{ADD_NOFTZ, BULK_REDUCE, HALVES, REDUCED, REDUCTIONS, copy};
use super::memory::*;
use crate::form::*;
use crate::sync_comm::atomic::operation;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const SECTION: &str = "Data Movement and Conversion Instructions: multimem.ld_reduce, multimem.st, multimem.red";

const INTEGERS: Group = must(
    Role::Type,
    &[ty(".b32", B32), ty(".b64", B64), ty(".u32", U32), ty(".u64", U64), ty(".s32", S32), ty(".s64", S64)],
);
const FLOATS: Group = must(
    Role::Type,
    &[
        ty(".f16", F16),
        ty(".f16x2", F16x2),
        ty(".bf16", BF16),
        ty(".bf16x2", BF16x2),
        ty(".f32", F32),
        ty(".f64", F64),
        ty_if(".e5m2", B8, SMALL),
        ty_if(".e5m2x2", B16, SMALL),
        ty_if(".e5m2x4", B32, SMALL),
        ty_if(".e4m3", B8, SMALL),
        ty_if(".e4m3x2", B16, SMALL),
        ty_if(".e4m3x4", B32, SMALL),
    ],
);
const RED_FLOATS: Group = must(
    Role::Type,
    &[ty(".f16", F16), ty(".f16x2", F16x2), ty(".bf16", BF16), ty(".bf16x2", BF16x2), ty(".f32", F32), ty(".f64", F64)],
);
const SMALL: Needs = Needs::on(8, 6, ARCH_100_120);
const OPS: Group = must(
    Role::Op,
    &[
        choice(".min", Value::Atom(AtomOp::Min)),
        choice(".max", Value::Atom(AtomOp::Max)),
        choice(".add", Value::Atom(AtomOp::Add)),
        choice(".and", Value::Atom(AtomOp::And)),
        choice(".or", Value::Atom(AtomOp::Or)),
        choice(".xor", Value::Atom(AtomOp::Xor)),
    ],
);
const FLOAT_OPS: Group = must(
    Role::Op,
    &[
        choice(".min", Value::Atom(AtomOp::Min)),
        choice(".max", Value::Atom(AtomOp::Max)),
        choice(".add", Value::Atom(AtomOp::Add)),
    ],
);
const LOAD_ORDER: Group = maybe(
    Role::Order,
    &[
        choice(".weak", Value::Order(Order::Weak)),
        choice(".relaxed", Value::Order(Order::Relaxed)),
        choice(".acquire", Value::Order(Order::Acquire)),
    ],
);
const STORE_ORDER: Group = maybe(
    Role::Order,
    &[
        choice(".weak", Value::Order(Order::Weak)),
        choice(".relaxed", Value::Order(Order::Relaxed)),
        choice(".release", Value::Order(Order::Release)),
    ],
);
const RED_ORDER: Group = maybe(
    Role::Order,
    &[choice(".relaxed", Value::Order(Order::Relaxed)), choice(".release", Value::Order(Order::Release))],
);
const SCOPE: Group = maybe(Role::Scope, SCOPES);
const SPACE: Group = maybe(Role::Space, &[GLOBAL]);
const VEC: Group = maybe(Role::Vec, VECTORS);
const ACC: Group = maybe(
    Role::Mode,
    &[choice_if(".acc::f32", Value::Flag, Needs::ptx(8, 2)), choice_if(".acc::f16", Value::Flag, SMALL)],
);
const NEEDS: Needs = Needs::on(8, 1, SM_90);

/// `multimem.ld_reduce{.ldsem}{.scope}{.ss}.op.type d, [a]` of integers.
pub const LD_REDUCE: Form = Form {
    opcode: "multimem.ld_reduce",
    section: SECTION,
    qualifiers: &[LOAD_ORDER, SCOPE, SPACE, OPS, INTEGERS],
    dst: &[reg("d", TYPE)],
    src: &[address("a")],
    needs: NEEDS,
    legal: |u| orders(u).and_then(|()| integer_op(u)),
    semantics: Semantics::Build(|x| {
        let (a, address) = (plain(x.u), x.addr(0));
        for (j, v) in x.b.load(a, address).into_iter().enumerate() {
            x.set_at(0, j, v);
        }
    }),
    ..UNSUPPORTED_FORM
};

/// `multimem.ld_reduce{.ldsem}{.scope}{.ss}.op{.acc_prec}{.vec}.type d, [a]` of floats.
pub const LD_REDUCE_FLOAT: Form = Form {
    qualifiers: &[LOAD_ORDER, SCOPE, SPACE, FLOAT_OPS, ACC, VEC, FLOATS],
    dst: &[vector("d", TYPE, Role::Vec)],
    legal: |u| orders(u).and_then(|()| float(u)),
    ..LD_REDUCE
};

/// `multimem.st{.stsem}{.scope}{.ss}.type [a], b` of integers.
pub const MULTIMEM_ST: Form = Form {
    opcode: "multimem.st",
    qualifiers: &[STORE_ORDER, SCOPE, SPACE, INTEGERS],
    dst: &[],
    src: &[address("a"), val("b", TYPE)],
    legal: |u| orders(u).map(|()| Needs::NONE),
    semantics: Semantics::Build(|x| {
        let (a, address, values) = (plain(x.u), x.addr(0), x.srcs(1));
        x.b.store(a, address, &values);
    }),
    ..LD_REDUCE
};

/// `multimem.st{.stsem}{.scope}{.ss}{.vec}.type [a], b` of floats.
pub const MULTIMEM_ST_FLOAT: Form = Form {
    qualifiers: &[STORE_ORDER, SCOPE, SPACE, VEC, FLOATS],
    src: &[address("a"), vector("b", TYPE, Role::Vec)],
    legal: |u| orders(u).and_then(|()| float(u)),
    ..MULTIMEM_ST
};

/// `multimem.red{.redsem}{.scope}{.ss}.op.type [a], b` of integers.
pub const MULTIMEM_RED: Form = Form {
    opcode: "multimem.red",
    qualifiers: &[RED_ORDER, SCOPE, SPACE, OPS, INTEGERS],
    dst: &[],
    src: &[address("a").in_bits(64), val("b", TYPE)],
    legal: |u| orders(u).and_then(|()| integer_op(u)),
    semantics: Semantics::Build(|x| {
        let access = AtomAccess {
            op: operation(x.u),
            ty: x.u.ty(Role::Type),
            space: StateSpace::Global,
            order: x.u.order(Role::Order).unwrap_or(Order::Relaxed),
            scope: x.u.scope(Role::Scope).unwrap_or(Scope::Sys),
            count: x.u.count(Role::Vec),
        };
        let address = x.addr(0);
        let mut src = vec![address.base];
        src.extend(x.srcs(1));
        x.b.push_guarded(Op::Red { access, offset: address.offset }, smallvec![], src.into());
    }),
    ..LD_REDUCE
};

/// `multimem.red{.redsem}{.scope}{.ss}.add{.vec}.type [a], b` of floats.
pub const MULTIMEM_RED_FLOAT: Form = Form {
    words: &[".add"],
    qualifiers: &[RED_ORDER, SCOPE, SPACE, VEC, RED_FLOATS],
    src: &[address("a").in_bits(64), Operand { count: Count::Bare(Role::Vec), ..vector("b", TYPE, Role::Vec) }],
    legal: |u| orders(u).and_then(|()| float(u)),
    ..MULTIMEM_RED
};

/// `multimem.cp.async.bulk.global.shared::cta.bulk_group{.cp_mask} [dstMem], [srcMem], size{, byteMask}`.
pub const MULTIMEM_COPY: Form = Form {
    opcode: "multimem.cp.async.bulk",
    words: &[".bulk_group"],
    section: "Data Movement and Conversion Instructions: multimem.cp.async.bulk",
    qualifiers: &[
        one_of(Role::Space, &[GLOBAL]),
        one_of(Role::Space2, &[SHARED_CTA]),
        maybe(Role::Flag, &[choice_if(".cp_mask", Value::Flag, Needs::on(9, 1, &[AtLeast(100)]))]),
    ],
    src: &[
        address("dstMem"),
        address("srcMem"),
        val("size", WORD),
        val("byteMask", Is::Descriptor(U16)).with(Role::Flag),
    ],
    needs: Needs::on(9, 1, SM_90),
    semantics: Semantics::Build(|x| copy(x, None)),
    ..UNSUPPORTED_FORM
};

/// `multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.redOp.type [dstMem], [srcMem], size`.
pub const MULTIMEM_REDUCE: Form = Form {
    opcode: "multimem.cp.reduce.async.bulk",
    section: "Data Movement and Conversion Instructions: multimem.cp.reduce.async.bulk",
    qualifiers: &[one_of(Role::Space, &[GLOBAL]), one_of(Role::Space2, &[SHARED_CTA]), REDUCTIONS, REDUCED],
    src: &[address("dstMem"), address("srcMem"), val("size", WORD)],
    needs: Needs::on(9, 1, SM_90),
    ..BULK_REDUCE
};

/// `multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.type [dstMem], [srcMem], size`.
pub const MULTIMEM_REDUCE_HALF: Form = Form {
    opcode: "multimem.cp.reduce.async.bulk",
    section: "Data Movement and Conversion Instructions: multimem.cp.reduce.async.bulk",
    qualifiers: &[one_of(Role::Space, &[GLOBAL]), one_of(Role::Space2, &[SHARED_CTA]), HALVES],
    src: &[address("dstMem"), address("srcMem"), val("size", WORD)],
    needs: Needs::on(9, 1, SM_90),
    ..ADD_NOFTZ
};

/// A weak access has no scope; another order comes with one, and a scope with an order.
fn orders(u: &Use) -> Result<(), Reason> {
    match u.order(Role::Order) {
        Some(Order::Weak) => refuse(u, Role::Scope, "does not go with `.weak`"),
        Some(_) if !u.has(Role::Scope) => Err(Reason::new("a scope is missing").at(u.text(Role::Order))),
        None => refuse(u, Role::Scope, "needs an order"),
        Some(_) => Ok(()),
    }
}

fn integer_op(u: &Use) -> Result<Needs, Reason> {
    let (op, t) = (u.text(Role::Op), u.ty(Role::Type));
    let fits = match op {
        ".and" | ".or" | ".xor" => matches!(t, B32 | B64),
        ".min" | ".max" => matches!(t, U32 | S32 | U64 | S64),
        _ => matches!(t, U32 | S32 | U64),
    };
    if fits { Ok(Needs::NONE) } else { Err(Reason::new(format!("`{op}` does not go with `{t}`")).at(op)) }
}

fn float(u: &Use) -> Result<Needs, Reason> {
    let t = u.ty(Role::Type);
    let word = u.text(Role::Type);
    let bits = t.bits() * u32::from(u.count(Role::Vec));
    let refuse = |why: &str, at| Err(Reason::new(format!("{why} `{word}`")).at(at));
    let is_small = word.starts_with(".e");
    if matches!(t, F64) && u.has(Role::Vec) {
        return refuse("a vector of this length does not go with", u.text(Role::Vec));
    }
    if !matches!(bits, 32 | 64 | 128) {
        let why = format!("with `{word}` an access has {bits} bits, and must have 32, 64 or 128");
        return Err(Reason::new(why).at(if u.has(Role::Vec) { u.text(Role::Vec) } else { word }));
    }
    let ordered = [".min", ".max"].contains(&u.text(Role::Op));
    if ordered && matches!(t, F32 | F64) {
        return refuse("`.min` and `.max` do not go with", u.text(Role::Op));
    }
    let acc = match u.text(Role::Mode) {
        "" => true,
        ".acc::f32" => u.text(Role::Op) == ".add" && is_pairable(t) && !is_small,
        _ => u.text(Role::Op) == ".add" && is_small,
    };
    if acc { Ok(Needs::NONE) } else { refuse("the accumulator does not go with", u.text(Role::Mode)) }
}

fn is_pairable(t: ScalarType) -> bool {
    matches!(t, F16 | F16x2 | BF16 | BF16x2)
}

/// The access of a load or store.
fn plain(u: &Use) -> Access {
    let order = u.order(Role::Order).unwrap_or(Order::Weak);
    Access { space: StateSpace::Global, ..access(u, order, u.scope(Role::Scope).unwrap_or(Scope::Gpu)) }
}
