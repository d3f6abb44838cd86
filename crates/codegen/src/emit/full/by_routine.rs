//! Memory ops of full copies that a routine does, or a loop over lanes.

use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::analysis::shape::Shape;
use handloom_plan::packs::atomics::AtomicWay;
use handloom_plan::packs::layout::Home;

use crate::emit::asm::FULL;
use crate::emit::bounds::site_of;
use crate::emit::copy::Emit;
use crate::emit::full::atomics::atomic_of_all;
use crate::emit::masked::memory::{Operand, lanes_inline};
use crate::emit::value::Rep;

/// A memory op lane by lane, for the lanes of its guard: inline or by the routine.
pub(crate) fn full_by_routine(cx: &mut Emit<'_, '_>, inst: &Inst) {
    if let (Op::Atom { access, offset } | Op::Red { access, offset }, Some(a)) = (inst.op, cx.plan.access(inst)) {
        let packs = cx.packs;
        let shape = || match a.address {
            Val::Imm(x, _) => Some(Shape::constant(x)),
            address @ Val::Reg(_) => match cx.rep(address) {
                Rep::Affine(s, _) => Some(s),
                Rep::Rows(_) | Rep::Logic(_) => None,
            },
        };
        match packs.atomic_way(&a, !inst.dst.is_empty(), shape) {
            AtomicWay::Folded(fold) => return atomic_of_all(cx, inst, access, offset, Some(fold)),
            AtomicWay::Straight => return atomic_of_all(cx, inst, access, offset, None),
            AtomicWay::Loop => return full_atomic(cx, inst),
            AtomicWay::Routine => {}
        }
    }
    let (src, dst, outs) = routine_operands(cx, inst);
    let site = cx.code.tables.mems.len();
    let made = site_of(cx, inst, &src, dst);
    cx.code.tables.mems.push(made);
    let mask = match inst.guard() {
        Some(g) => {
            let g = cx.rep(g);
            cx.asm.predicate_bits(&g)
        }
        None => cx.asm.i32(FULL),
    };
    let ok = cx.asm.routine(Routine::Memory, site, mask, None, None);
    cx.asm.go_on_if(ok);
    for (r, at) in outs {
        let rep = cx.read_scratch(at, cx.plan.func.regs[r.idx()]);
        cx.set(r, rep);
    }
}

fn full_atomic(cx: &mut Emit<'_, '_>, inst: &Inst) {
    let mask = match inst.guard() {
        Some(g) => {
            let g = cx.rep(g);
            cx.asm.predicate_bits(&g)
        }
        None => cx.asm.i32(FULL),
    };
    let outs = {
        cx.copy.n_scratch_used = 0;
        let old: Vec<Option<Rep>> = inst
            .dst
            .iter()
            .map(|d| if inst.guarded && cx.n_defs(*d) > 1 { Some(cx.rep(Val::Reg(*d))) } else { None })
            .collect();
        let mut outs = Vec::new();
        for (d, o) in inst.dst.iter().zip(old) {
            let ty = cx.plan.func.regs[d.idx()];
            let (at, _) = cx.scratch_row(ty);
            if let Some(o) = o {
                let rows = cx.asm.rows(&o, ty);
                cx.asm.store_row(at, &rows);
            }
            outs.push((*d, at));
        }
        outs
    };
    let operands: Vec<(Operand, Ty)> = inst
        .operands()
        .iter()
        .map(|v| {
            let ty = cx.ty(*v);
            let rep = cx.clean(*v);
            let lanes = match rep {
                Rep::Affine(s, base) => Operand::Affine(s, base),
                rep => {
                    let (at, _) = cx.scratch_row(ty);
                    let rows = cx.asm.rows(&rep, ty);
                    cx.asm.store_row(at, &rows);
                    Operand::Row(at)
                }
            };
            (lanes, ty)
        })
        .collect();
    let dst: Vec<u32> = outs.iter().map(|(_, at)| *at).collect();
    lanes_inline(cx, inst, &operands, &dst, mask);
    for (r, at) in outs {
        let rep = cx.read_scratch(at, cx.plan.func.regs[r.idx()]);
        cx.set(r, rep);
    }
}

/// Where a routine finds a source with canonical NaNs: in its home, if that is a row which this copy has not read yet.
fn source_loc(cx: &mut Emit<'_, '_>, v: Val) -> Loc {
    if let Val::Reg(r) = v
        && matches!(cx.packs.layout.homes[r.idx()], Some(Home::Row32(_) | Home::Row64(_)))
        && !cx.plan.may_hold_odd_nan[r.idx()]
        && !cx.copy.reps.contains_key(&r)
    {
        return cx.row_of(r);
    }
    cx.clean(v);
    cx.loc(v)
}

/// Operands and results of a routine; results, in scratch rows, hold their old values where a guard may leave them.
pub(crate) fn routine_operands(cx: &mut Emit<'_, '_>, inst: &Inst) -> (Vec<Loc>, Vec<Loc>, Vec<(Reg, u32)>) {
    cx.copy.n_scratch_used = 0;
    let src: Vec<Loc> = inst.operands().iter().map(|v| source_loc(cx, *v)).collect();
    let mut dst = Vec::new();
    let mut outs = Vec::new();
    for d in &inst.dst {
        let ty = cx.plan.func.regs[d.idx()];
        let (at, loc) = cx.scratch_row(ty);
        if inst.guarded && cx.n_defs(*d) > 1 {
            let old = cx.rep(Val::Reg(*d));
            let rows = cx.asm.rows(&old, ty);
            cx.asm.store_row(at, &rows);
        }
        dst.push(loc);
        outs.push((*d, at));
    }
    (src, dst, outs)
}
