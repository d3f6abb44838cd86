//! Instructions of full copies: all 32 lanes together, packs side by side.

use std::mem::offset_of;

use cranelift_codegen::ir::types;
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::shape::Shape;
use handloom_plan::order::{AccessOrder, FenceOrder};

use crate::emit::address::address;
use crate::emit::asm::FULL;
use crate::emit::copy::Emit;
use crate::emit::exits::tell_dirty;
use crate::emit::full::by_routine::full_by_routine;
use crate::emit::full::joint_bounds::verify_at;
use crate::emit::full::memory::full_access;
use crate::emit::full::sync::full_sync;
use crate::emit::sreg::sreg_rep;
use crate::emit::value::Rep;
use crate::emit::value_op::for_all_lanes;
use handloom_plan::ValueOp;

/// One instruction of a full copy.
pub(crate) fn full_inst(cx: &mut Emit<'_, '_>, b: usize, i: usize) {
    let f = &cx.plan.func;
    let inst = &f.blocks[b].insts[i];
    cx.copy.n_scratch_used = 0;
    match inst.op {
        Op::Pure(p) => full_pure(cx, inst, p, cx.plan.facts.may_test(b, i)),
        Op::Sreg(s) => {
            let rep = sreg_rep(cx, s, cx.plan.func.regs[inst.dst[0].idx()]);
            cx.set(inst.dst[0], rep);
        }
        Op::SymAddr(_) | Op::SharedAddr(_) | Op::ParamAddr { .. } | Op::SlotAddr(_) | Op::ArgAddr { .. } => {
            let rep = address(cx, inst.op);
            cx.set(inst.dst[0], rep);
        }
        Op::Cvta { space: StateSpace::SharedCluster, .. }
        | Op::Stack(_)
        | Op::Image(_)
        | Op::Tensor(_)
        | Op::Transfer(_) => full_by_routine(cx, inst),
        Op::Cvta { space, to_space } => cvta(cx, inst, space, to_space),
        Op::Load { .. } | Op::Store { .. } => {
            let order = cx.plan.access(inst).filter(AccessClass::is_inline_in_full);
            let order = order.map(|a| a.order_inline(&cx.plan.options.host));
            cx.asm.fence_if(order == Some(AccessOrder::FenceBefore));
            verify_at(cx, b, i);
            full_access(cx, inst);
            cx.asm.fence_if(order == Some(AccessOrder::FenceAfter));
        }
        Op::Atom { .. } | Op::Red { .. } | Op::IsSpace(_) => full_by_routine(cx, inst),
        Op::Fence { .. } if cx.plan.options.tells_fences() => full_by_routine(cx, inst),
        Op::Fence { order, scope } => cx.asm.fence(FenceOrder::of(order, scope, &cx.plan.options.host)),
        Op::Shfl(_) | Op::Vote(_) | Op::Match { .. } | Op::Redux { .. } | Op::Matrix(_) | Op::Elect | Op::BarWarp => {
            full_sync(cx, inst);
        }
        Op::Activemask => {
            let all = cx.asm.i32(FULL);
            cx.set(inst.dst[0], Rep::Affine(Shape::constant(FULL as u64), vec![all]));
        }
        Op::Builtin(which) => full_builtin(cx, which, inst),
        Op::Nanosleep | Op::Mark | Op::Count(_) => {}
    }
}

fn cvta(cx: &mut Emit<'_, '_>, inst: &Inst, space: StateSpace, to_space: bool) {
    let rep = cx.rep(inst.src[0]);
    if space != StateSpace::Shared {
        cx.set(inst.dst[0], rep);
        return;
    }
    let base = cx.asm.load_cta(types::I64, offset_of!(CtaCtx, shared_base));
    let op = if to_space { Pure::Sub(Ty::B64) } else { Pure::Add(Ty::B64) };
    let shift = Rep::Affine(Shape::UNIFORM, vec![base]);
    let out = for_all_lanes(cx, &ValueOp::of_values(op, &[Ty::B64; 2]), &[rep, shift], false);
    cx.set(inst.dst[0], out.0);
}

fn full_pure(cx: &mut Emit<'_, '_>, inst: &Inst, op: Pure, may_test: bool) {
    let v = cx.plan.value_op(inst, op);
    let args: Vec<Rep> = inst.src.iter().map(|s| if v.takes_odd_nans { cx.rep(*s) } else { cx.clean(*s) }).collect();
    let (first, second) = for_all_lanes(cx, &v, &args, may_test);
    let d = inst.dst[0];
    cx.copy.cleaned.remove(&d);
    cx.set(d, first);
    if let Some(d2) = inst.dst.get(1) {
        let second = second.unwrap_or(Rep::Affine(Shape::UNIFORM, vec![]));
        cx.set(*d2, second);
    }
}

fn full_builtin(cx: &mut Emit<'_, '_>, which: Builtin, inst: &Inst) {
    let src = cx.loc(inst.src[0]);
    let site = cx.code.tables.builtins.len();
    cx.code.tables.builtins.push((which, src, inst.span));
    let m = cx.asm.i32(FULL);
    let ok = cx.asm.routine(Routine::Builtin, site, m, None, None);
    cx.asm.go_on_if(ok);
    tell_dirty(cx);
}
