//! `barrier.cluster`: the barrier of a cluster, in two halves.

use handloom_ir::simt::BarKind;
use handloom_ir::types::Order;

use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

const ALIGNED: Group = maybe(Role::Flag2, &[choice(".aligned", Value::Flag)]);

/// `barrier.cluster.arrive{.sem}{.aligned}`: release if no order is written.
pub const BARRIER_CLUSTER_ARRIVE: Form = Form {
    opcode: "barrier.cluster",
    words: &[],
    section: "Parallel Synchronization and Communication Instructions: barrier.cluster",
    qualifiers: &[
        lead(Role::Mode, &[choice(".arrive", Value::Flag)]),
        maybe(
            Role::Order,
            &[
                choice_if(".release", Value::Order(Order::Release), Needs::ptx(8, 0)),
                choice_if(".relaxed", Value::Order(Order::Relaxed), Needs::ptx(8, 0)),
            ],
        ),
        ALIGNED,
    ],
    dst: &[],
    src: &[],
    needs: Needs::on(7, 8, &[AtLeast(90)]),
    legal: always,
    semantics: Semantics::Control(Control::Barrier(BarKind::ClusterArrive)),
};

/// `barrier.cluster.wait{.acquire}{.aligned}`.
pub const BARRIER_CLUSTER_WAIT: Form = Form {
    words: &[],
    qualifiers: &[
        lead(Role::Mode, &[choice(".wait", Value::Flag)]),
        maybe(Role::Order, &[choice_if(".acquire", Value::Order(Order::Acquire), Needs::ptx(8, 0))]),
        ALIGNED,
    ],
    semantics: Semantics::Control(Control::Barrier(BarKind::ClusterWait)),
    ..BARRIER_CLUSTER_ARRIVE
};
