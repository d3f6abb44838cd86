//! `clusterlaunchcontrol`: takes over the work of a cluster that has not started.

use handloom_ir::types::ScalarType::*;

use crate::data_movement::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const SECTION: &str = "Parallel Synchronization and Communication Instructions: clusterlaunchcontrol.query_cancel";
const WHY: &str = "cluster launch control";

/// `clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes{.multicast::cluster::all}.b128 [addr], [mbar]`.
pub const TRY_CANCEL: Form = Form {
    opcode: "clusterlaunchcontrol.try_cancel",
    words: &[".async", COMPLETE_TX, ".b128"],
    section: "Parallel Synchronization and Communication Instructions: clusterlaunchcontrol.try_cancel",
    qualifiers: &[
        maybe(Role::Space, &[SHARED_CTA]),
        maybe(Role::Flag, &[choice_if(".multicast::cluster::all", Value::Flag, Needs::on(8, 6, ARCH_100_120))]),
    ],
    src: &[address("addr"), address("mbar")],
    needs: Needs::on(8, 6, &[AtLeast(100)]),
    semantics: Semantics::Unsupported(WHY),
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
    ..TRY_CANCEL
};

/// `clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {x, y, z, w}, try_cancel_response`.
pub const FIRST_CTAID: Form = Form {
    opcode: "clusterlaunchcontrol.query_cancel.get_first_ctaid",
    words: &[".v4", ".b32", ".b128"],
    dst: &[Operand {
        name: "xdim",
        kind: Kind::Vector,
        is: Is::Fixed(B32),
        count: Count::Fixed(4),
        optional: false,
        when: When::Always,
    }],
    ..IS_CANCELED
};

/// `clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 reg, try_cancel_response`.
pub const FIRST_CTAID_X: Form = Form {
    opcode: "clusterlaunchcontrol.query_cancel.get_first_ctaid::x",
    words: &[".b32", ".b128"],
    dst: &[reg("reg", Is::Fixed(B32))],
    ..IS_CANCELED
};

/// `clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 reg, try_cancel_response`.
pub const FIRST_CTAID_Y: Form = Form {
    opcode: "clusterlaunchcontrol.query_cancel.get_first_ctaid::y",
    words: &[".b32", ".b128"],
    dst: &[reg("reg", Is::Fixed(B32))],
    ..IS_CANCELED
};

/// `clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 reg, try_cancel_response`.
pub const FIRST_CTAID_Z: Form = Form {
    opcode: "clusterlaunchcontrol.query_cancel.get_first_ctaid::z",
    words: &[".b32", ".b128"],
    dst: &[reg("reg", Is::Fixed(B32))],
    ..IS_CANCELED
};
