//! Accesses of shared memory at constant addresses: one bit says that shared memory is large enough for all of them.

use std::mem::offset_of;

use handloom_ir::simt::{Inst, Val};
use handloom_ir::types::{Order, StateSpace};
use handloom_plan::Plan;
use handloom_plan::abi::CtaCtx;
use handloom_plan::access::{AccessClass, Kind};
use iced_x86::{Code, Register};

use super::{Fixed, Head};
use crate::emit::*;

/// The first byte and the end of an access, if it is one.
fn bytes_of(inst: &Inst) -> Option<(u32, u32)> {
    let class = AccessClass::of(inst)?;
    let Val::Imm(base, _) = class.address else { return None };
    let at = u32::try_from(i64::try_from(base).ok()?.checked_add(class.offset)?).ok()?;
    let fits = matches!(class.kind, Kind::Load | Kind::Store)
        && class.space == StateSpace::Shared
        && class.order == Order::Weak
        && !class.is_single
        && !class.is_guarded
        && class.wants_all()
        && class.bits >= 32
        && i64::from(at) % class.bytes() == 0;
    let end = at.checked_add(u32::try_from(class.bytes()).ok()?)?;
    (fits && i32::try_from(end).is_ok()).then_some((at, end))
}

impl Head {
    /// Finds them.
    pub(super) fn find_fixed(&mut self, plan: &Plan) {
        let ends = plan.func.blocks.iter().flat_map(|b| &b.insts).filter_map(bytes_of).map(|b| b.1);
        if let Some(end) = ends.max().filter(|_| self.bits < 20) {
            self.fixed = Some(Fixed { bit: 1 << self.bits, end });
            self.bits += 1;
        }
    }

    /// Where such an access begins in shared memory, and the bit that it rests on.
    pub(crate) fn fixed(&self, inst: &Inst) -> Option<(i32, u32)> {
        let (at, _) = bytes_of(inst)?;
        Some((at.cast_signed(), self.fixed?.bit))
    }
}

impl Emit<'_> {
    /// Sets the bit.
    pub(super) fn decide_fixed(&mut self, head: &Head) {
        let Some(fixed) = head.fixed else { return };
        let small = self.a.label();
        self.a.imm(Code::Cmp_rm64_imm32, cta(offset_of!(CtaCtx, shared_size)), fixed.end.cast_signed());
        self.a.jump(Code::Jb_rel32_64, small);
        self.a.imm(Code::Or_rm32_imm32, Register::R15D, fixed.bit.cast_signed());
        self.a.bind(small);
    }
}
