//! `red.async`: reductions in the memory of another cta that complete later.

use handloom_ir::simt::{AtomAccess, Op, Transfer, Values};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{AtomOp, Order, Scope, StateSpace};
use smallvec::smallvec;

use super::atomic::operation;
use crate::data_movement::memory::*;
use crate::data_movement::st_async::mmio_of_system;
use crate::data_movement::transfer::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const SECTION: &str = "Parallel Synchronization and Communication Instructions: red.async";
const SPACE: Group = maybe(Role::Space, &[SHARED_CLUSTER]);

/// `red.async.relaxed.cluster{.ss}.mbarrier::complete_tx::bytes.op.u32 [a], b, [mbar]` of `.inc` and `.dec`.
pub const RED_ASYNC_INC: Form = Form {
    opcode: "red.async",
    words: &[".relaxed", ".cluster", COMPLETE_TX],
    section: SECTION,
    qualifiers: &[
        SPACE,
        must(Role::Op, &[choice(".inc", Value::Atom(AtomOp::Inc)), choice(".dec", Value::Atom(AtomOp::Dec))]),
        must(Role::Type, &[ty(".u32", U32)]),
    ],
    src: &[address("a").in_bits(32), val("b", TYPE), address("mbar").in_bits(32)],
    needs: Needs::on(8, 1, SM_90),
    semantics: Semantics::Build(|x| {
        let (ty, op, space) = (x.u.ty(Role::Type), operation(x.u), shared_space(x.u));
        let src = vec![shared_address_of(x, 0), shared_address_of(x, 2), x.src(1)];
        transfer(x, Transfer::Values(Values { space, ty, count: 1, op: Some(op), to_all: false }), src);
    }),
    ..UNSUPPORTED_FORM
};

/// The same of `.min` and `.max`.
pub const RED_ASYNC_MIN: Form = Form {
    qualifiers: &[
        SPACE,
        must(Role::Op, &[choice(".min", Value::Atom(AtomOp::Min)), choice(".max", Value::Atom(AtomOp::Max))]),
        must(Role::Type, &[ty(".u32", U32), ty(".s32", S32)]),
    ],
    ..RED_ASYNC_INC
};

/// The same of `.and`, `.or` and `.xor`.
pub const RED_ASYNC_AND: Form = Form {
    qualifiers: &[
        SPACE,
        must(
            Role::Op,
            &[
                choice(".and", Value::Atom(AtomOp::And)),
                choice(".or", Value::Atom(AtomOp::Or)),
                choice(".xor", Value::Atom(AtomOp::Xor)),
            ],
        ),
        must(Role::Type, &[ty(".b32", B32)]),
    ],
    ..RED_ASYNC_INC
};

/// The same of `.add`.
pub const RED_ASYNC_ADD: Form = Form {
    qualifiers: &[
        SPACE,
        must(Role::Op, &[choice(".add", Value::Atom(AtomOp::Add))]),
        must(Role::Type, &[ty(".u32", U32), ty(".s32", S32), ty(".u64", U64)]),
    ],
    ..RED_ASYNC_INC
};

/// `red.async{.mmio}.release.scope{.global}.add.type [a], b`.
pub const RED_ASYNC_RELEASE: Form = Form {
    words: &[".release", ".add"],
    qualifiers: &[
        maybe(Role::Flag, &[choice(".mmio", Value::Flag)]),
        must(Role::Scope, &[choice(".gpu", Value::Scope(Scope::Gpu)), choice(".sys", Value::Scope(Scope::Sys))]),
        maybe(Role::Space, &[GLOBAL]),
        must(Role::Type, &[ty(".u32", U32), ty(".s32", S32), ty(".u64", U64), ty(".s64", S64)]),
    ],
    src: &[address("a").in_bits(32), val("b", TYPE)],
    needs: Needs::on(8, 7, &[AtLeast(100)]),
    legal: mmio_of_system,
    semantics: Semantics::Build(|x| {
        let access = AtomAccess {
            op: AtomOp::Add,
            ty: x.u.ty(Role::Type),
            space: StateSpace::Global,
            order: Order::Release,
            scope: scope(x),
            count: 1,
        };
        let address = x.addr(0);
        let value = x.src(1);
        x.b.push_guarded(Op::Red { access, offset: address.offset }, smallvec![], smallvec![address.base, value]);
    }),
    ..RED_ASYNC_INC
};
