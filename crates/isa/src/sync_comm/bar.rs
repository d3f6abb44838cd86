//! `bar`, `barrier`: barriers of a cta.
//!
//! `bar` is `barrier.aligned`. The count of a reduction is between the number and the predicate, so each reduction has a
//! record with and one without it.

use handloom_ir::simt::BarKind;
use handloom_ir::types::ScalarType::*;

use crate::form::*;
use crate::target::Needs;
use crate::target::TargetGate::AtLeast;

const SECTION: &str = "Parallel Synchronization and Communication Instructions: bar, barrier";

const CTA: Group = maybe_lead(Role::Flag, &[choice_if(".cta", Value::Flag, Needs::ptx(7, 8))]);
const SYNC: Group = lead(Role::Mode, &[choice(".sync", Value::Flag)]);
const ARRIVE: Group = lead(Role::Mode, &[choice(".arrive", Value::Flag)]);
const RED: Group = lead(Role::Mode, &[choice(".red", Value::Flag)]);
const ALIGNED: Group = maybe(Role::Flag2, &[choice(".aligned", Value::Flag)]);

const NUMBER: Operand = val("a", Is::Fixed(U32));
const COUNT: Operand = val("b", Is::Fixed(U32));
const WHICH: Operand = pred("c");

const BAR_RED_NEEDS: Needs = Needs::on(2, 0, &[AtLeast(20)]);
const BARRIER_NEEDS: Needs = Needs::on(6, 0, &[AtLeast(30)]);

/// `bar{.cta}.sync a{, b}`.
pub const BAR_SYNC: Form = Form {
    opcode: "bar",
    words: &[],
    section: SECTION,
    qualifiers: &[CTA, SYNC],
    dst: &[],
    src: &[NUMBER, COUNT.optional()],
    needs: Needs::ptx(1, 0),
    legal: always,
    semantics: Semantics::Control(Control::Barrier(BarKind::Sync)),
};

/// `bar{.cta}.arrive a, b`.
pub const BAR_ARRIVE: Form = Form {
    qualifiers: &[CTA, ARRIVE],
    src: &[NUMBER, COUNT],
    needs: BAR_RED_NEEDS,
    semantics: Semantics::Control(Control::Barrier(BarKind::Arrive)),
    ..BAR_SYNC
};

/// `bar{.cta}.red.popc.u32 d, a, {!}c`.
pub const BAR_RED_POPC: Form = Form {
    words: &[".popc", ".u32"],
    qualifiers: &[CTA, RED],
    dst: &[reg("d", Is::Of(|_| U32))],
    src: &[NUMBER, WHICH],
    needs: BAR_RED_NEEDS,
    semantics: Semantics::Control(Control::Barrier(BarKind::RedPopc)),
    ..BAR_SYNC
};

/// `bar{.cta}.red.popc.u32 d, a, b, {!}c`.
pub const BAR_RED_POPC_COUNT: Form = Form { src: &[NUMBER, COUNT, WHICH], ..BAR_RED_POPC };

/// `bar{.cta}.red.and.pred p, a, {!}c`.
pub const BAR_RED_AND: Form = Form {
    words: &[".and", ".pred"],
    qualifiers: &[CTA, RED],
    dst: &[reg("p", Is::Fixed(Pred))],
    src: &[NUMBER, WHICH],
    needs: BAR_RED_NEEDS,
    semantics: Semantics::Control(Control::Barrier(BarKind::RedAnd)),
    ..BAR_SYNC
};

/// `bar{.cta}.red.and.pred p, a, b, {!}c`.
pub const BAR_RED_AND_COUNT: Form = Form { src: &[NUMBER, COUNT, WHICH], ..BAR_RED_AND };

/// `bar{.cta}.red.or.pred p, a, {!}c`.
pub const BAR_RED_OR: Form =
    Form { words: &[".or", ".pred"], semantics: Semantics::Control(Control::Barrier(BarKind::RedOr)), ..BAR_RED_AND };

/// `bar{.cta}.red.or.pred p, a, b, {!}c`.
pub const BAR_RED_OR_COUNT: Form = Form { src: &[NUMBER, COUNT, WHICH], ..BAR_RED_OR };

/// `barrier{.cta}.sync{.aligned} a{, b}`.
pub const BARRIER_SYNC: Form =
    Form { opcode: "barrier", qualifiers: &[CTA, SYNC, ALIGNED], needs: BARRIER_NEEDS, ..BAR_SYNC };

/// `barrier{.cta}.arrive{.aligned} a, b`.
pub const BARRIER_ARRIVE: Form =
    Form { opcode: "barrier", qualifiers: &[CTA, ARRIVE, ALIGNED], needs: BARRIER_NEEDS, ..BAR_ARRIVE };

/// `barrier{.cta}.red.popc{.aligned}.u32 d, a, {!}c`.
pub const BARRIER_RED_POPC: Form =
    Form { opcode: "barrier", qualifiers: &[CTA, RED, ALIGNED], needs: BARRIER_NEEDS, ..BAR_RED_POPC };

/// `barrier{.cta}.red.popc{.aligned}.u32 d, a, b, {!}c`.
pub const BARRIER_RED_POPC_COUNT: Form = Form { src: &[NUMBER, COUNT, WHICH], ..BARRIER_RED_POPC };

/// `barrier{.cta}.red.and{.aligned}.pred p, a, {!}c`.
pub const BARRIER_RED_AND: Form =
    Form { opcode: "barrier", qualifiers: &[CTA, RED, ALIGNED], needs: BARRIER_NEEDS, ..BAR_RED_AND };

/// `barrier{.cta}.red.and{.aligned}.pred p, a, b, {!}c`.
pub const BARRIER_RED_AND_COUNT: Form = Form { src: &[NUMBER, COUNT, WHICH], ..BARRIER_RED_AND };

/// `barrier{.cta}.red.or{.aligned}.pred p, a, {!}c`.
pub const BARRIER_RED_OR: Form =
    Form { opcode: "barrier", qualifiers: &[CTA, RED, ALIGNED], needs: BARRIER_NEEDS, ..BAR_RED_OR };

/// `barrier{.cta}.red.or{.aligned}.pred p, a, b, {!}c`.
pub const BARRIER_RED_OR_COUNT: Form = Form { src: &[NUMBER, COUNT, WHICH], ..BARRIER_RED_OR };
