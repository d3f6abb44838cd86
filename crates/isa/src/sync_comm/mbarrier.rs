//! `mbarrier`: barriers in memory that count arrivals and bytes.

use handloom_ir::types::ScalarType::*;
use handloom_ir::types::StateSpace;

use crate::data_movement::memory::*;
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const WHY: &str = "barriers in memory";

const SPACE: Group = maybe(Slot::Space, &[SHARED, SHARED_CTA]);
const ANY_SPACE: Group = maybe(Slot::Space, &[SHARED, SHARED_CTA, SHARED_CLUSTER]);
const CLUSTER_SPACE: Group = must(Slot::Space, &[SHARED_CLUSTER]);
const SCOPE: Group = maybe(
    Slot::Scope,
    &[choice_if(".cta", Value::Flag, Needs::ptx(8, 0)), choice_if(".cluster", Value::Flag, Needs::on(8, 0, SM_90))],
);
const RELAXED: Choice = choice_if(".relaxed", Value::Flag, Needs::on(8, 6, SM_90));
const RELEASE: Group = maybe(Slot::Order, &[choice_if(".release", Value::Flag, Needs::ptx(8, 0)), RELAXED]);
const ACQUIRE: Group = maybe(Slot::Order, &[choice_if(".acquire", Value::Flag, Needs::ptx(8, 0)), RELAXED]);
const SM_80_NEEDS: Needs = Needs::on(7, 0, &[AtLeast(80)]);
const STATE: Operand = operand("state", Kind::RegOrSink, Is::Fixed(B64));
const ONLY_SINK: Operand = operand("_", Kind::Sink, Is::Any);

/// `mbarrier.init{.shared}.b64 [addr], count`.
pub const INIT: Form = Form {
    opcode: "mbarrier.init",
    words: &[".b64"],
    section: "Parallel Synchronization and Communication Instructions: mbarrier.init",
    qualifiers: &[SPACE],
    src: &[address("addr"), val("count", WORD)],
    needs: SM_80_NEEDS,
    legal: shared_only,
    semantics: Semantics::Unsupported(WHY),
    ..UNSUPPORTED_FORM
};

/// `mbarrier.inval{.shared}.b64 [addr]`.
pub const INVAL: Form = Form {
    opcode: "mbarrier.inval",
    section: "Parallel Synchronization and Communication Instructions: mbarrier.inval",
    src: &[address("addr")],
    ..INIT
};

/// `mbarrier.expect_tx{.relaxed.scope}{.space}.b64 [addr], txCount`.
pub const EXPECT_TX: Form = Form {
    opcode: "mbarrier.expect_tx",
    section: "Parallel Synchronization and Communication Instructions: mbarrier.expect_tx",
    qualifiers: &[maybe(Slot::Order, &[choice(".relaxed", Value::Flag)]), SCOPE, ANY_SPACE],
    src: &[address("addr"), val("txCount", WORD)],
    needs: Needs::on(8, 0, SM_90),
    legal: paired,
    ..INIT
};

/// `mbarrier.complete_tx{.relaxed.scope}{.space}.b64 [addr], txCount`.
pub const COMPLETE_TX_COUNT: Form = Form {
    opcode: "mbarrier.complete_tx",
    section: "Parallel Synchronization and Communication Instructions: mbarrier.complete_tx",
    ..EXPECT_TX
};

/// `mbarrier.arrive{.sem.scope}{.shared}.b64 state, [addr]{, count}`.
pub const ARRIVE: Form = Form {
    opcode: "mbarrier.arrive",
    section: "Parallel Synchronization and Communication Instructions: mbarrier.arrive",
    qualifiers: &[RELEASE, SCOPE, SPACE],
    dst: &[STATE],
    src: &[address("addr"), val("count", WORD).optional()],
    needs: SM_80_NEEDS,
    legal: counted,
    ..INIT
};

/// `mbarrier.arrive{.sem.scope}.shared::cluster.b64 _, [addr]{, count}`.
pub const ARRIVE_CLUSTER: Form =
    Form { qualifiers: &[RELEASE, SCOPE, CLUSTER_SPACE], dst: &[ONLY_SINK], needs: Needs::on(8, 0, SM_90), ..ARRIVE };

/// `mbarrier.arrive.expect_tx{.sem.scope}{.shared}.b64 state, [addr], txCount`.
pub const ARRIVE_EXPECT_TX: Form = Form {
    opcode: "mbarrier.arrive.expect_tx",
    src: &[address("addr"), val("txCount", WORD)],
    needs: Needs::on(8, 0, SM_90),
    legal: paired,
    ..ARRIVE
};

/// `mbarrier.arrive.expect_tx{.sem.scope}.shared::cluster.b64 _, [addr], txCount`.
pub const ARRIVE_EXPECT_TX_CLUSTER: Form =
    Form { qualifiers: &[RELEASE, SCOPE, CLUSTER_SPACE], dst: &[ONLY_SINK], ..ARRIVE_EXPECT_TX };

/// `mbarrier.arrive.noComplete{.release.cta}{.shared}.b64 state, [addr], count`.
pub const ARRIVE_NO_COMPLETE: Form = Form {
    opcode: "mbarrier.arrive.noComplete",
    qualifiers: &[
        maybe(Slot::Order, &[choice_if(".release", Value::Flag, Needs::ptx(8, 0))]),
        maybe(Slot::Scope, &[choice_if(".cta", Value::Flag, Needs::ptx(8, 0))]),
        SPACE,
    ],
    src: &[address("addr"), val("count", WORD)],
    legal: paired,
    ..ARRIVE
};

const DROP: &str = "Parallel Synchronization and Communication Instructions: mbarrier.arrive_drop";

/// `mbarrier.arrive_drop{.sem.scope}{.shared}.b64 state, [addr]{, count}`.
pub const DROP_ARRIVE: Form = Form { opcode: "mbarrier.arrive_drop", section: DROP, ..ARRIVE };

/// `mbarrier.arrive_drop{.sem.scope}.shared::cluster.b64 _, [addr]{, count}`.
pub const DROP_CLUSTER: Form = Form { opcode: "mbarrier.arrive_drop", section: DROP, ..ARRIVE_CLUSTER };

/// `mbarrier.arrive_drop.expect_tx{.sem.scope}{.shared}.b64 state, [addr], tx_count`.
pub const DROP_EXPECT_TX: Form = Form { opcode: "mbarrier.arrive_drop.expect_tx", section: DROP, ..ARRIVE_EXPECT_TX };

/// `mbarrier.arrive_drop.expect_tx{.sem.scope}.shared::cluster.b64 _, [addr], tx_count`.
pub const DROP_EXPECT_TX_CLUSTER: Form =
    Form { opcode: "mbarrier.arrive_drop.expect_tx", section: DROP, ..ARRIVE_EXPECT_TX_CLUSTER };

/// `mbarrier.arrive_drop.noComplete{.release.cta}{.shared}.b64 state, [addr], count`.
pub const DROP_NO_COMPLETE: Form =
    Form { opcode: "mbarrier.arrive_drop.noComplete", section: DROP, ..ARRIVE_NO_COMPLETE };

/// `mbarrier.test_wait{.sem.scope}{.shared}.b64 waitComplete, [addr], state`.
pub const TEST_WAIT: Form = Form {
    opcode: "mbarrier.test_wait",
    section: "Parallel Synchronization and Communication Instructions: mbarrier.test_wait / mbarrier.try_wait",
    qualifiers: &[ACQUIRE, SCOPE, SPACE],
    dst: &[reg("waitComplete", Is::Fixed(Pred))],
    src: &[address("addr"), reg("state", Is::Fixed(B64))],
    legal: paired,
    ..INIT
};

/// `mbarrier.test_wait.parity{.sem.scope}{.shared}.b64 waitComplete, [addr], phaseParity`.
pub const TEST_WAIT_PARITY: Form = Form {
    opcode: "mbarrier.test_wait.parity",
    src: &[address("addr"), val("phaseParity", WORD)],
    needs: Needs::on(7, 1, &[AtLeast(80)]),
    ..TEST_WAIT
};

/// `mbarrier.try_wait{.sem.scope}{.shared}.b64 waitComplete, [addr], state{, suspendTimeHint}`.
pub const TRY_WAIT: Form = Form {
    opcode: "mbarrier.try_wait",
    src: &[address("addr"), reg("state", Is::Fixed(B64)), val("suspendTimeHint", WORD).optional()],
    needs: Needs::on(7, 8, SM_90),
    ..TEST_WAIT
};

/// `mbarrier.try_wait.parity{.sem.scope}{.shared}.b64 waitComplete, [addr], phaseParity{, suspendTimeHint}`.
pub const TRY_WAIT_PARITY: Form = Form {
    opcode: "mbarrier.try_wait.parity",
    src: &[address("addr"), val("phaseParity", WORD), val("suspendTimeHint", WORD).optional()],
    ..TRY_WAIT
};

/// `mbarrier.pending_count.b64 count, state`.
pub const PENDING_COUNT: Form = Form {
    opcode: "mbarrier.pending_count",
    section: "Parallel Synchronization and Communication Instructions: mbarrier.pending_count",
    qualifiers: &[],
    dst: &[reg("count", WORD)],
    src: &[reg("state", Is::Fixed(B64))],
    ..INIT
};

/// The object lies in shared memory.
fn shared_only(u: &Use) -> Result<Needs, Reason> {
    match u.named_space {
        Some(space) if space != StateSpace::Shared => {
            Err(Reason::new("the object of an `mbarrier` lies in shared memory"))
        }
        _ => Ok(Needs::NONE),
    }
}

/// An order comes with a scope, and a scope with an order.
fn paired(u: &Use) -> Result<Needs, Reason> {
    shared_only(u)?;
    if u.has(Slot::Order) == u.has(Slot::Scope) {
        return Ok(Needs::NONE);
    }
    let (word, other) = if u.has(Slot::Order) { (Slot::Order, "a scope") } else { (Slot::Scope, "an order") };
    Err(Reason::new(format!("`{}` needs {other}", u.text(word))).at(u.text(word)))
}

fn counted(u: &Use) -> Result<Needs, Reason> {
    paired(u)?;
    Ok(if u.n_src > 1 { Needs::on(7, 8, SM_90) } else { Needs::NONE })
}
