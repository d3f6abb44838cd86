//! `mbarrier`: barriers in memory that count arrivals and bytes. [`handloom_ir::mbarrier`] says how the object is laid out.
//!
//! Choice: a `try_wait` comes back at once, as the manual allows: what waits is the loop around it.

use handloom_ir::mbarrier::{BYTES_BIT, COUNT_BITS, PENDING, PHASE_BIT};
use handloom_ir::simt::{Access, AtomAccess, Op, Pure, Transfer, Val};
use handloom_ir::types::ScalarType::*;
use handloom_ir::types::{AtomOp, Order, Scope, StateSpace, Ty};
use smallvec::smallvec;

use crate::data_movement::memory::*;
use crate::data_movement::transfer::{shared_address_of, shared_space, transfer};
use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;
use crate::words::*;

const SPACE: Group = maybe(Role::Space, &[SHARED, SHARED_CTA]);
const ANY_SPACE: Group = maybe(Role::Space, &[SHARED, SHARED_CTA, SHARED_CLUSTER]);
const CLUSTER_SPACE: Group = must(Role::Space, &[SHARED_CLUSTER]);
const SCOPE: Group = maybe(
    Role::Scope,
    &[
        choice_if(".cta", Value::Scope(Scope::Cta), Needs::ptx(8, 0)),
        choice_if(".cluster", Value::Scope(Scope::Cluster), Needs::on(8, 0, SM_90)),
    ],
);
const RELAXED: Choice = choice_if(".relaxed", Value::Order(Order::Relaxed), Needs::on(8, 6, SM_90));
const RELEASE: Group =
    maybe(Role::Order, &[choice_if(".release", Value::Order(Order::Release), Needs::ptx(8, 0)), RELAXED]);
const ACQUIRE: Group =
    maybe(Role::Order, &[choice_if(".acquire", Value::Order(Order::Acquire), Needs::ptx(8, 0)), RELAXED]);
const SM_80_NEEDS: Needs = Needs::on(7, 0, &[AtLeast(80)]);
const STATE: Operand = operand("state", Kind::RegOrSink, Is::Descriptor(U64));
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
    semantics: Semantics::Build(|x| {
        let count = wide(x, 1);
        let expected = shifted(x, count, COUNT_BITS);
        let word = x.b.or(count, expected);
        let address = x.addr(0);
        x.b.store(object(x.u, Order::Weak), address, &[word]);
    }),
    ..UNSUPPORTED_FORM
};

/// `mbarrier.inval{.shared}.b64 [addr]`.
pub const INVAL: Form = Form {
    opcode: "mbarrier.inval",
    section: "Parallel Synchronization and Communication Instructions: mbarrier.inval",
    src: &[address("addr")],
    semantics: Semantics::Wait(|x| {
        let at = shared_address_of(x, 0);
        transfer(x, Transfer::Inval(shared_space(x.u)), vec![at]);
    }),
    ..INIT
};

/// `mbarrier.expect_tx{.relaxed.scope}{.space}.b64 [addr], txCount`.
pub const EXPECT_TX: Form = Form {
    opcode: "mbarrier.expect_tx",
    section: "Parallel Synchronization and Communication Instructions: mbarrier.expect_tx",
    qualifiers: &[maybe(Role::Order, &[choice(".relaxed", Value::Order(Order::Relaxed))]), SCOPE, ANY_SPACE],
    src: &[address("addr"), val("txCount", WORD)],
    needs: Needs::on(8, 0, SM_90),
    legal: paired,
    semantics: Semantics::Build(|x| {
        let bytes = bytes(x, 1);
        step(x, bytes);
    }),
    ..INIT
};

/// `mbarrier.complete_tx{.relaxed.scope}{.space}.b64 [addr], txCount`.
pub const COMPLETE_TX_COUNT: Form = Form {
    opcode: "mbarrier.complete_tx",
    section: "Parallel Synchronization and Communication Instructions: mbarrier.complete_tx",
    semantics: Semantics::Build(|x| {
        let bytes = bytes(x, 1);
        let back = negative(x, bytes);
        step(x, back);
    }),
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
    semantics: Semantics::Build(|x| {
        let count = count(x);
        let back = negative(x, count);
        step(x, back);
    }),
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
    semantics: Semantics::Build(|x| {
        let bytes = bytes(x, 1);
        let delta = x.b.sub(bytes, Val::Imm(1, Ty::B64));
        step(x, delta);
    }),
    ..ARRIVE
};

/// `mbarrier.arrive.expect_tx{.sem.scope}.shared::cluster.b64 _, [addr], txCount`.
pub const ARRIVE_EXPECT_TX_CLUSTER: Form =
    Form { qualifiers: &[RELEASE, SCOPE, CLUSTER_SPACE], dst: &[ONLY_SINK], ..ARRIVE_EXPECT_TX };

/// `mbarrier.arrive.noComplete{.release.cta}{.shared}.b64 state, [addr], count`.
pub const ARRIVE_NO_COMPLETE: Form = Form {
    words: &[".noComplete", ".b64"],
    qualifiers: &[
        maybe(Role::Order, &[choice_if(".release", Value::Order(Order::Release), Needs::ptx(8, 0))]),
        maybe(Role::Scope, &[choice_if(".cta", Value::Scope(Scope::Cta), Needs::ptx(8, 0))]),
        SPACE,
    ],
    src: &[address("addr"), val("count", WORD)],
    legal: paired,
    semantics: Semantics::Timed {
        now: |x| {
            let count = count(x);
            let back = negative(x, count);
            step(x, back);
        },
        late: |x| {
            let count = count(x);
            let back = negative(x, count);
            open(x, back);
            step(x, back);
        },
    },
    ..ARRIVE
};

const DROP: &str = "Parallel Synchronization and Communication Instructions: mbarrier.arrive_drop";

/// `mbarrier.arrive_drop{.sem.scope}{.shared}.b64 state, [addr]{, count}`.
pub const DROP_ARRIVE: Form =
    Form { opcode: "mbarrier.arrive_drop", section: DROP, semantics: Semantics::Build(drop_out), ..ARRIVE };

/// `mbarrier.arrive_drop{.sem.scope}.shared::cluster.b64 _, [addr]{, count}`.
pub const DROP_CLUSTER: Form =
    Form { opcode: "mbarrier.arrive_drop", section: DROP, semantics: Semantics::Build(drop_out), ..ARRIVE_CLUSTER };

/// `mbarrier.arrive_drop.expect_tx{.sem.scope}{.shared}.b64 state, [addr], tx_count`.
pub const DROP_EXPECT_TX: Form = Form {
    opcode: "mbarrier.arrive_drop.expect_tx",
    section: DROP,
    semantics: Semantics::Build(|x| {
        let bytes = bytes(x, 1);
        let delta = x.b.sub(bytes, Val::Imm(1 | 1 << COUNT_BITS, Ty::B64));
        step(x, delta);
    }),
    ..ARRIVE_EXPECT_TX
};

/// `mbarrier.arrive_drop.expect_tx{.sem.scope}.shared::cluster.b64 _, [addr], tx_count`.
pub const DROP_EXPECT_TX_CLUSTER: Form = Form {
    opcode: "mbarrier.arrive_drop.expect_tx",
    section: DROP,
    semantics: DROP_EXPECT_TX.semantics,
    ..ARRIVE_EXPECT_TX_CLUSTER
};

/// `mbarrier.arrive_drop.noComplete{.release.cta}{.shared}.b64 state, [addr], count`.
pub const DROP_NO_COMPLETE: Form = Form {
    opcode: "mbarrier.arrive_drop",
    section: DROP,
    semantics: Semantics::Timed {
        now: drop_out,
        late: |x| {
            let delta = without(x);
            open(x, delta);
            step(x, delta);
        },
    },
    ..ARRIVE_NO_COMPLETE
};

/// `mbarrier.test_wait{.sem.scope}{.shared}.b64 waitComplete, [addr], state`.
pub const TEST_WAIT: Form = Form {
    opcode: "mbarrier.test_wait",
    section: "Parallel Synchronization and Communication Instructions: mbarrier.test_wait / mbarrier.try_wait",
    qualifiers: &[ACQUIRE, SCOPE, SPACE],
    dst: &[reg("waitComplete", Is::Fixed(Pred))],
    src: &[address("addr"), val("state", Is::Descriptor(U64))],
    legal: paired,
    semantics: Semantics::Timed {
        now: |x| test(x, x.src(1)),
        late: |x| {
            ask(x, x.src(1));
            test(x, x.src(1));
        },
    },
    ..INIT
};

/// `mbarrier.test_wait.parity{.sem.scope}{.shared}.b64 waitComplete, [addr], phaseParity`.
pub const TEST_WAIT_PARITY: Form = Form {
    opcode: "mbarrier.test_wait.parity",
    src: &[address("addr"), val("phaseParity", WORD)],
    needs: Needs::on(7, 1, &[AtLeast(80)]),
    semantics: Semantics::Timed {
        now: |x| {
            let wanted = of_parity(x);
            test(x, wanted);
        },
        late: |x| {
            let wanted = of_parity(x);
            ask(x, wanted);
            test(x, wanted);
        },
    },
    ..TEST_WAIT
};

/// `mbarrier.try_wait{.sem.scope}{.shared}.b64 waitComplete, [addr], state{, suspendTimeHint}`.
pub const TRY_WAIT: Form = Form {
    opcode: "mbarrier.try_wait",
    src: &[address("addr"), val("state", Is::Descriptor(U64)), val("suspendTimeHint", WORD).optional()],
    needs: Needs::on(7, 8, SM_90),
    ..TEST_WAIT
};

/// `mbarrier.try_wait.parity{.sem.scope}{.shared}.b64 waitComplete, [addr], phaseParity{, suspendTimeHint}`.
pub const TRY_WAIT_PARITY: Form = Form {
    opcode: "mbarrier.try_wait.parity",
    src: &[address("addr"), val("phaseParity", WORD), val("suspendTimeHint", WORD).optional()],
    semantics: TEST_WAIT_PARITY.semantics,
    ..TRY_WAIT
};

/// `mbarrier.pending_count.b64 count, state`.
pub const PENDING_COUNT: Form = Form {
    opcode: "mbarrier.pending_count",
    section: "Parallel Synchronization and Communication Instructions: mbarrier.pending_count",
    qualifiers: &[],
    dst: &[reg("count", WORD)],
    src: &[val("state", Is::Descriptor(U64))],
    semantics: Semantics::Build(|x| {
        let low = x.b.half(x.src(0), false);
        let count = x.b.and(low, Val::Imm(PENDING, Ty::B32));
        x.set(count);
    }),
    ..INIT
};

/// The access to the object. An unwritten scope is `.cta`.
fn object(u: &Use, order: Order) -> Access {
    let scope = u.scope(Role::Scope).unwrap_or(Scope::Cta);
    Access { order, scope, ..Access::weak(space(u), 64) }
}

/// Adds to the object, and returns the state it had.
pub(crate) fn step(x: &mut Cx<'_, '_>, delta: Val) {
    let order = x.u.order(Role::Order).unwrap_or(Order::Release);
    let Access { space, order, scope, .. } = object(x.u, order);
    let access = AtomAccess { op: AtomOp::Step, ty: B64, space, order, scope, count: 1 };
    let address = x.addr(0);
    if !x.wants(0, 0) {
        x.b.push_guarded(Op::Red { access, offset: address.offset }, smallvec![], smallvec![address.base, delta]);
        return;
    }
    let state = x.b.reg(Ty::B64);
    x.b.push_guarded(Op::Atom { access, offset: address.offset }, smallvec![state], smallvec![address.base, delta]);
    x.set(Val::Reg(state));
}

/// A word of the phase whose parity is source operand 1.
fn of_parity(x: &mut Cx<'_, '_>) -> Val {
    let parity = wide(x, 1);
    shifted(x, parity, PHASE_BIT)
}

/// Whether a phase other than that of a word has begun.
fn test(x: &mut Cx<'_, '_>, word: Val) {
    let now = load_word(x);
    let differ = x.b.xor(now, word);
    let done = phase(x, differ);
    x.set(done);
}

/// Says that this is asked, for what may be late until then.
fn ask(x: &mut Cx<'_, '_>, word: Val) {
    let at = shared_address_of(x, 0);
    transfer(x, Transfer::Ask(shared_space(x.u)), vec![at, word]);
}

/// The object as it is now.
fn load_word(x: &mut Cx<'_, '_>) -> Val {
    let order = x.u.order(Role::Order).unwrap_or(Order::Acquire);
    let address = x.addr(0);
    x.b.load(object(x.u, order), address)[0]
}

/// The phase's parity of a word as a predicate.
fn phase(x: &mut Cx<'_, '_>, word: Val) -> Val {
    let bit = x.b.and(word, Val::Imm(1 << PHASE_BIT, Ty::B64));
    x.b.pure(Pure::ToPred(Ty::B64), Ty::P, &[bit])
}

/// Source operand `i` with 64 bits.
fn wide(x: &mut Cx<'_, '_>, i: usize) -> Val {
    let value = x.src(i);
    x.b.ext(value, 32, false, Ty::B64)
}

fn shifted(x: &mut Cx<'_, '_>, value: Val, by: u32) -> Val {
    x.b.pure(Pure::Shl(Ty::B64), Ty::B64, &[value, Val::Imm(u64::from(by), Ty::B32)])
}

/// Source operand `i` at the place of the bytes under way.
fn bytes(x: &mut Cx<'_, '_>, i: usize) -> Val {
    let value = wide(x, i);
    shifted(x, value, BYTES_BIT)
}

/// The arrivals of an instruction: 1 if none are written.
fn count(x: &mut Cx<'_, '_>) -> Val {
    if x.src_opt(1).is_some() { wide(x, 1) } else { Val::Imm(1, Ty::B64) }
}

fn negative(x: &mut Cx<'_, '_>, value: Val) -> Val {
    x.b.sub(Val::Imm(0, Ty::B64), value)
}

/// Arrives, and is expected no more.
fn drop_out(x: &mut Cx<'_, '_>) {
    let delta = without(x);
    step(x, delta);
}

/// What is added by who arrives and is expected no more.
fn without(x: &mut Cx<'_, '_>) -> Val {
    let count = count(x);
    let expected = shifted(x, count, COUNT_BITS);
    let both = x.b.add(count, expected);
    negative(x, both)
}

/// What is added next ends no phase.
fn open(x: &mut Cx<'_, '_>, delta: Val) {
    let at = shared_address_of(x, 0);
    transfer(x, Transfer::Open(shared_space(x.u)), vec![at, delta]);
}

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
    if u.has(Role::Order) == u.has(Role::Scope) {
        return Ok(Needs::NONE);
    }
    let (word, other) = if u.has(Role::Order) { (Role::Order, "a scope") } else { (Role::Scope, "an order") };
    Err(Reason::new(format!("`{}` needs {other}", u.text(word))).at(u.text(word)))
}

fn counted(u: &Use) -> Result<Needs, Reason> {
    paired(u)?;
    Ok(if u.n_src > 1 { Needs::on(7, 8, SM_90) } else { Needs::NONE })
}
