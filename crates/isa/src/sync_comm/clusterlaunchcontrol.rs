//! `clusterlaunchcontrol`: takes over the work of a cluster that has not started.
//!
//! Choice: every request is declined, which a program must expect: clusters then start as they would without requests. The response is three coordinates
//! of 32 bits and a word that is 1 if the cluster was canceled.

use handloom_ir::simt::{Pure, Transfer, Val, Values};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::Ty;

use crate::data_movement::memory::*;
use crate::data_movement::transfer::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const SECTION: &str = "Parallel Synchronization and Communication Instructions: clusterlaunchcontrol.query_cancel";

/// `clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes{.multicast::cluster::all}.b128 [addr], [mbar]`.
pub const TRY_CANCEL: Form = Form {
    opcode: "clusterlaunchcontrol.try_cancel.async",
    words: &[COMPLETE_TX, ".b128"],
    section: "Parallel Synchronization and Communication Instructions: clusterlaunchcontrol.try_cancel",
    qualifiers: &[
        maybe(Role::Space, &[SHARED_CTA]),
        maybe(Role::Flag, &[choice_if(".multicast::cluster::all", Value::Flag, Needs::on(8, 6, ARCH_100_120))]),
    ],
    src: &[address("addr"), address("mbar")],
    needs: Needs::on(8, 6, &[AtLeast(100)]),
    semantics: Semantics::Build(|x| {
        let values = Values { space: shared_space(x.u), ty: B64, count: 2, op: None, to_all: x.u.has(Role::Flag) };
        let declined = Val::Imm(0, Ty::B64);
        let src = vec![shared_address_of(x, 0), shared_address_of(x, 1), declined, declined];
        transfer(x, Transfer::Values(values), src);
    }),
    ..UNSUPPORTED_FORM
};

/// `clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 pred, try_cancel_response`.
pub const IS_CANCELED: Form = Form {
    opcode: "clusterlaunchcontrol.query_cancel.is_canceled",
    words: &[".pred", ".b128"],
    section: SECTION,
    qualifiers: &[],
    dst: &[reg("pred", Is::Fixed(Pred))],
    src: &[reg("try_cancel_response", Is::Fixed(B128))],
    semantics: Semantics::Build(|x| {
        let flag = word(x, 3);
        let canceled = x.b.pure(Pure::ToPred(Ty::B32), Ty::P, &[flag]);
        x.set(canceled);
    }),
    ..TRY_CANCEL
};

/// The type of a coordinate, then that of the response.
const OF_RESPONSE: &[Group] = &[one_of(Role::Type, &[ty(".b32", B32)]), one_of(Role::Type2, &[ty(".b128", B128)])];

/// `clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {x, y, z, w}, try_cancel_response`.
pub const FIRST_CTAID: Form = Form {
    opcode: "clusterlaunchcontrol.query_cancel.get_first_ctaid",
    words: &[".v4"],
    qualifiers: OF_RESPONSE,
    dst: &[Operand {
        name: "xdim",
        kind: Kind::Vector,
        is: Is::Fixed(B32),
        count: Count::Fixed(4),
        optional: false,
        when: When::Always,
    }],
    semantics: Semantics::Build(|x| {
        for i in 0..4 {
            let value = word(x, i);
            x.set_at(0, i, value);
        }
    }),
    ..IS_CANCELED
};

/// `clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 reg, try_cancel_response`.
pub const FIRST_CTAID_X: Form = Form {
    opcode: "clusterlaunchcontrol.query_cancel.get_first_ctaid::x",
    words: &[],
    qualifiers: OF_RESPONSE,
    dst: &[reg("reg", Is::Fixed(B32))],
    semantics: Semantics::Build(|x| {
        let value = word(x, 0);
        x.set(value);
    }),
    ..IS_CANCELED
};

/// `clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 reg, try_cancel_response`.
pub const FIRST_CTAID_Y: Form = Form {
    opcode: "clusterlaunchcontrol.query_cancel.get_first_ctaid::y",
    words: &[],
    qualifiers: OF_RESPONSE,
    dst: &[reg("reg", Is::Fixed(B32))],
    semantics: Semantics::Build(|x| {
        let value = word(x, 1);
        x.set(value);
    }),
    ..IS_CANCELED
};

/// `clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 reg, try_cancel_response`.
pub const FIRST_CTAID_Z: Form = Form {
    opcode: "clusterlaunchcontrol.query_cancel.get_first_ctaid::z",
    words: &[],
    qualifiers: OF_RESPONSE,
    dst: &[reg("reg", Is::Fixed(B32))],
    semantics: Semantics::Build(|x| {
        let value = word(x, 2);
        x.set(value);
    }),
    ..IS_CANCELED
};

/// Word `i` of the response.
fn word(x: &mut Cx<'_, '_>, i: usize) -> Val {
    let half = x.srcs(0)[i / 2];
    x.b.half(half, i % 2 == 1)
}
