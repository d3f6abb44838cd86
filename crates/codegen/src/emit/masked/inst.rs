//! Masked copies: some lanes of a warp execute a block.
//!
//! Values that are the same for all lanes, or affine, are computed once as scalars. The rest is deferred and then done in a loop over the packs
//! that have lanes; results that live on are blended into their rows. Memory ops are loops of their own ([`super::memory`]) or join that
//! loop; warp-level ops are done by routines on rows.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::shape::Shape;
use handloom_plan::order::{AccessOrder, FenceOrder};
use handloom_plan::packs::PACKS;
use handloom_plan::packs::deferral::{Deferral, deferral};
use handloom_plan::packs::layout::Home;

use crate::emit::address::address;
use crate::emit::asm::{Asm, vector_type, width};
use crate::emit::bounds::{mem_op, site_of};
use crate::emit::copy::Emit;
use crate::emit::ends::masked_bits;
use crate::emit::exits::{tell_dirty, tell_store};
use crate::emit::full::memory::access_all;
use crate::emit::masked::memory::{Operand, begin_load, lanes_inline};
use crate::emit::masked::pack_loop::{Deferred, Waiting, flush_waiting};
use crate::emit::masked::term::masked_term;
use crate::emit::sreg::sreg_rep;
use crate::emit::value::Rep;
use crate::emit::value_op::by_scalars;
use handloom_plan::ValueOp;
use handloom_plan::ways::{SregWay, sreg_way};

/// The masked copy of block `b` for the lanes of `m`.
pub(crate) fn emit_masked(cx: &mut Emit<'_, '_>, b: usize, m: Value) {
    cx.asm.end_line();
    let f = &cx.plan.func;
    let block = &f.blocks[b];
    let mut waiting = Waiting::new(block);
    let mut synced = false;
    for (i, inst) in block.insts.iter().enumerate() {
        if cx.is_too_long() {
            cx.give_up();
            return;
        }
        cx.set_loc(b, i);
        if masked_scalar(cx, b, i, inst, m) {
            continue;
        }
        match deferral(inst.op) {
            Deferral::Waits => {
                let scalars: Vec<_> = inst.src.iter().map(|v| cx.scalar_source(*v)).collect();
                let value_op = match inst.op {
                    Op::Pure(op) => {
                        let uniform: Vec<bool> =
                            scalars.iter().map(|s| s.as_ref().is_some_and(|(s, _)| s.is_uniform())).collect();
                        let v = cx.plan.value_op(inst, op);
                        let way = v.way(&uniform);
                        Some((v, way))
                    }
                    _ => None,
                };
                waiting.push(Deferred { inst: i, scalars, value_op, from: None }, inst);
                inst.dst.iter().for_each(|d| now_in_row(cx, *d));
            }
            // Neighbouring words are read in the loop, together with what is done to them.
            Deferral::Load
                if cx.plan.access(inst).is_some_and(|a| {
                    !a.is_guarded
                        && a.order_inline(&cx.plan.options.host) == AccessOrder::Plain
                        && cx.scalar_source(a.address).is_some_and(|(s, _)| a.is_by_words(&s))
                }) && (!cx.plan.is_short || cx.takes_in_place()) =>
            {
                cx.copy.n_scratch_used = 0;
                let address = (lanes_of(cx, inst.src[0]), cx.ty(inst.src[0]));
                let mem = mem_op(cx, inst);
                // What waits may still read the old value of the row that the routine would write.
                if waiting.touches(inst.dst[0]) {
                    flush_waiting(cx, b, &mut waiting, m, None);
                }
                let row = cx.row_offset(inst.dst[0]);
                let from = begin_load(cx, inst, &mem, address, row, m);
                waiting.push(Deferred { inst: i, scalars: vec![], value_op: None, from: Some(from) }, inst);
                inst.dst.iter().for_each(|d| now_in_row(cx, *d));
            }
            Deferral::Load | Deferral::Memory => {
                flush_waiting(cx, b, &mut waiting, m, None);
                masked_memory(cx, inst, m);
                tell_store(cx, inst);
            }
            Deferral::Builtin(which) => {
                flush_waiting(cx, b, &mut waiting, m, None);
                cx.copy.n_scratch_used = 0;
                let src = row_or_scalar(cx, inst.src[0]);
                let site = cx.code.tables.builtins.len();
                cx.code.tables.builtins.push((which, src, inst.span));
                let ok = cx.asm.routine(Routine::Builtin, site, m, None, None);
                let go = cx.asm.b.create_block();
                cx.asm.return_unless(ok, go);
                cx.asm.b.switch_to_block(go);
                tell_dirty(cx);
            }
            Deferral::Fence(order, scope) => {
                flush_waiting(cx, b, &mut waiting, m, None);
                if cx.plan.options.tells_fences() {
                    masked_memory(cx, inst, m);
                    continue;
                }
                cx.asm.fence(FenceOrder::of(order, scope, &cx.plan.options.host));
            }
            Deferral::Sync => {
                flush_waiting(cx, b, &mut waiting, m, None);
                masked_sync(cx, b, inst, m);
                synced = true;
            }
            Deferral::Nothing => {}
            Deferral::Scalar => panic!("{:?} is a scalar", inst.op),
        }
    }
    cx.set_loc(b, block.insts.len());
    let cond = match (&block.term, cx.plan.facts.diverges[b]) {
        (Term::Branch { cond: Val::Reg(r), .. }, true) => Some(*r),
        _ => None,
    };
    let taken = flush_waiting(cx, b, &mut waiting, m, cond);
    if !synced {
        masked_write_back(cx, b, m);
    }
    masked_term(cx, b, m, taken);
}

/// The value of a register is in its row from here on.
fn now_in_row(cx: &mut Emit<'_, '_>, r: Reg) {
    cx.copy.reps.remove(&r);
    cx.copy.written.remove(&r);
    cx.copy.in_row.insert(r);
}

/// Does an instruction as scalars, if it can.
fn masked_scalar(cx: &mut Emit<'_, '_>, b: usize, i: usize, inst: &Inst, m: Value) -> bool {
    match inst.op {
        Op::Pure(op) => {
            let v = cx.plan.value_op(inst, op);
            let mut args = Vec::new();
            for source in &inst.src {
                let Some((s, base)) = cx.scalar_source(*source) else { return false };
                let cleans = !v.takes_odd_nans && cx.plan.odd_nans_of(*source).is_some();
                args.push(if cleans { cx.clean(*source) } else { Rep::Affine(s, base) });
            }
            let may_test = cx.plan.facts.may_test(b, i);
            let Some((one, two)) = by_scalars(cx, &v, &args, may_test) else { return false };
            let d = inst.dst[0];
            cx.copy.cleaned.remove(&d);
            set_scalar(cx, d, one);
            if let (Some(d2), Some(two)) = (inst.dst.get(1), two) {
                set_scalar(cx, *d2, two);
            }
            true
        }
        Op::Sreg(s) => match sreg_way(s, &cx.plan.facts.shape) {
            SregWay::Scalar | SregWay::Shaped(_) => {
                let rep = sreg_rep(cx, s, cx.plan.func.regs[inst.dst[0].idx()]);
                set_scalar(cx, inst.dst[0], rep);
                true
            }
            SregWay::Mask(_) | SregWay::Tid(_) => false,
        },
        Op::SymAddr(_) | Op::SharedAddr(_) | Op::ParamAddr { .. } | Op::SlotAddr(_) | Op::ArgAddr { .. } => {
            let rep = address(cx, inst.op);
            set_scalar(cx, inst.dst[0], rep);
            true
        }
        Op::Activemask => {
            set_scalar(cx, inst.dst[0], Rep::Affine(Shape::UNIFORM, vec![m]));
            true
        }
        Op::Cvta { space, to_space } if space != StateSpace::SharedCluster => {
            let Some((s, base)) = cx.scalar_source(inst.src[0]) else { return false };
            let rep = Rep::Affine(s, base);
            let rep = if space == StateSpace::Shared {
                let shared = cx.asm.load_cta(types::I64, offset_of!(CtaCtx, shared_base));
                let op = if to_space { Pure::Sub(Ty::B64) } else { Pure::Add(Ty::B64) };
                let by = Rep::Affine(Shape::UNIFORM, vec![shared]);
                match by_scalars(cx, &ValueOp::of_values(op, &[Ty::B64; 2]), &[rep, by], false) {
                    Some((r, _)) => r,
                    None => return false,
                }
            } else {
                rep
            };
            set_scalar(cx, inst.dst[0], rep);
            true
        }
        // A parameter or constant at an address that all lanes share.
        Op::Load { .. }
            if cx.plan.access(inst).is_some_and(|a| a.is_read_only() && !a.is_guarded)
                && cx.scalar_source(inst.src[0]).is_some_and(|(s, _)| s.is_uniform()) =>
        {
            let Some((s, base)) = cx.scalar_source(inst.src[0]) else { return false };
            if cx.plan.access(inst).is_some_and(|a| a.is_told) {
                told_scalar_load(cx, inst, m);
                return true;
            }
            let mem = mem_op(cx, inst);
            let out = access_all(cx, &mem, inst, &Rep::Affine(s, base), &[]);
            for (d, r) in inst.dst.iter().zip(out) {
                set_scalar(cx, *d, r);
            }
            true
        }
        _ => false,
    }
}

/// A load at an address that all lanes share, of which an audit is told: by the routine, for the lanes of `m`. The first of them has the value of all.
fn told_scalar_load(cx: &mut Emit<'_, '_>, inst: &Inst, m: Value) {
    cx.copy.n_scratch_used = 0;
    let src = [row_or_scalar(cx, inst.src[0])];
    let outs: Vec<(Reg, Ty, u32, Loc)> = inst
        .dst
        .iter()
        .map(|d| {
            let ty = cx.plan.func.regs[d.idx()];
            let (at, loc) = cx.scratch_row(ty);
            (*d, ty, at, loc)
        })
        .collect();
    let made = site_of(cx, inst, &src, outs.iter().map(|o| o.3).collect());
    let site = cx.code.tables.mems.len();
    cx.code.tables.mems.push(made);
    let ok = cx.asm.routine(Routine::Memory, site, m, None, None);
    let go = cx.asm.b.create_block();
    cx.asm.return_unless(ok, go);
    cx.asm.b.switch_to_block(go);
    let lane = cx.asm.b.ins().ctz(m);
    let lane = cx.asm.b.ins().uextend(types::I64, lane);
    for (d, ty, at, _) in outs {
        let (clif, shift) = if ty == Ty::B64 { (types::I64, 3) } else { (types::I32, 2) };
        let by = cx.asm.b.ins().ishl_imm_s(lane, shift);
        let from = cx.asm.b.ins().iadd(cx.asm.warp, by);
        let v = cx.asm.b.ins().load(clif, Asm::trusted(), from, at as i32);
        set_scalar(cx, d, Rep::Affine(Shape::UNIFORM, vec![v]));
    }
}

fn set_scalar(cx: &mut Emit<'_, '_>, r: Reg, rep: Rep) {
    cx.copy.in_row.remove(&r);
    cx.set(r, rep);
}

/// Where a routine finds a source in a masked copy: the register's own row, or scalars.
fn row_or_scalar(cx: &mut Emit<'_, '_>, v: Val) -> Loc {
    if let Val::Imm(..) = v {
        return cx.loc(v);
    }
    match (cx.scalar_source(v), v) {
        (Some((s, base)), _) => {
            let rep = if cx.plan.odd_nans_of(v).is_some() { cx.clean(v) } else { Rep::Affine(s, base) };
            let ty = cx.ty(v);
            cx.loc_of(&rep, ty)
        }
        (None, Val::Reg(r)) => cx.row_of(r),
        (None, Val::Imm(..)) => cx.loc(v),
    }
}

/// A source as lanes, its NaNs canonical.
fn lanes_of(cx: &mut Emit<'_, '_>, v: Val) -> Operand {
    match (cx.scalar_source(v), v) {
        (Some((s, base)), _) => match clean_scalar(cx, v) {
            Some((s, base)) => Operand::Affine(s, base),
            None => Operand::Affine(s, base),
        },
        (None, Val::Reg(r)) => Operand::Row(cx.row_offset(r)),
        (None, Val::Imm(x, ty)) => {
            let c = cx.asm.scalar_const(x, ty);
            Operand::Affine(Shape::constant(x), vec![c])
        }
    }
}

fn clean_scalar(cx: &mut Emit<'_, '_>, v: Val) -> Option<(Shape, Vec<Value>)> {
    match cx.clean(v) {
        Rep::Affine(s, base) => Some((s, base)),
        Rep::Rows(_) | Rep::Logic(_) => None,
    }
}

fn masked_memory(cx: &mut Emit<'_, '_>, inst: &Inst, m: Value) {
    cx.copy.n_scratch_used = 0;
    let mask = match inst.guard() {
        Some(g) => {
            let bits = masked_bits(cx, g);
            cx.asm.b.ins().band(bits, m)
        }
        None => m,
    };
    let inline = match inst.op {
        Op::IsSpace(_) | Op::Cvta { .. } | Op::Stack(_) | Op::Image(_) | Op::Tensor(_) | Op::Transfer(_) => false,
        _ => {
            let by_lane = |a: AccessClass| a.is_inline_by_lane() || a.is_inline_atomic(cx.plan.options.cluster);
            cx.plan.access(inst).is_some_and(by_lane) && cx.takes_in_place()
        }
    };
    if inline {
        let order = cx.plan.access(inst).map(|a| a.order_inline(&cx.plan.options.host));
        let operands: Vec<(Operand, Ty)> = inst.operands().iter().map(|v| (lanes_of(cx, *v), cx.ty(*v))).collect();
        let dst: Vec<u32> = inst.dst.iter().map(|d| cx.row_offset(*d)).collect();
        cx.asm.fence_if(order == Some(AccessOrder::FenceBefore));
        lanes_inline(cx, inst, &operands, &dst, mask);
        cx.asm.fence_if(order == Some(AccessOrder::FenceAfter));
    } else {
        let src: Vec<Loc> = inst.operands().iter().map(|v| row_or_scalar(cx, *v)).collect();
        let dst: Vec<Loc> = inst.dst.iter().map(|d| cx.row_of(*d)).collect();
        let site = cx.code.tables.mems.len();
        let made = site_of(cx, inst, &src, dst);
        cx.code.tables.mems.push(made);
        let ok = cx.asm.routine(Routine::Memory, site, mask, None, None);
        let go = cx.asm.b.create_block();
        cx.asm.return_unless(ok, go);
        cx.asm.b.switch_to_block(go);
    }
    inst.dst.iter().for_each(|d| now_in_row(cx, *d));
}

fn masked_sync(cx: &mut Emit<'_, '_>, b: usize, inst: &Inst, m: Value) {
    cx.copy.n_scratch_used = 0;
    let src: Vec<Loc> = inst.src.iter().map(|v| row_or_scalar(cx, *v)).collect();
    let dst: Vec<Loc> = inst.dst.iter().map(|d| cx.row_of(*d)).collect();
    inst.dst.iter().for_each(|d| now_in_row(cx, *d));
    masked_write_back(cx, b, m);
    let site = cx.plan.sites.number(b) as usize;
    cx.code.tables.syncs[site].masked = Some(Operands::new(src, dst));
    let copy = cx.asm.i64(CopyKind::Masked as i64);
    let done = cx.asm.routine(Routine::Sync, site, m, Some(copy), None);
    let (go, look) = (cx.asm.b.create_block(), cx.asm.b.create_block());
    cx.asm.b.ins().brif(done, go, &[], look, &[]);
    cx.asm.b.switch_to_block(look);
    // Lanes that others waited for may be anywhere: look from the start.
    let first = cx.code.prologue[0];
    cx.asm.b.ins().jump(first, &[]);
    cx.asm.b.switch_to_block(go);
}

/// Writes scalars that live on to their homes; into rows for the lanes of `m` only.
fn masked_write_back(cx: &mut Emit<'_, '_>, b: usize, m: Value) {
    let mut rows: Vec<(Reg, Rep)> = Vec::new();
    for r in std::mem::take(&mut cx.copy.written) {
        if !cx.plan.facts.live.exit(b).has(r.idx()) {
            continue;
        }
        let Some(rep) = cx.copy.reps.get(&r).cloned() else { continue };
        match cx.packs.layout.homes[r.idx()] {
            Some(Home::Words(_)) => cx.store_home(r, &rep),
            Some(Home::Row32(_) | Home::Row64(_)) => rows.push((r, rep)),
            None => {}
        }
    }
    if rows.is_empty() {
        return;
    }
    let masks = cx.asm.rows_of_bits(m);
    let Rep::Rows(masks) = masks else { panic!("a mask of lanes that is {masks:?} at {}", cx.here()) };
    for (r, rep) in rows {
        let ty = cx.plan.func.regs[r.idx()];
        let new = cx.asm.rows(&rep, ty);
        let at = cx.row_offset(r) as usize;
        let (w, t) = (width(ty), vector_type(ty));
        for p in 0..PACKS {
            let old: Vec<Value> = (0..w).map(|h| cx.asm.load_warp(t, at + 16 * (p * w + h))).collect();
            let v = cx.asm.blend(masks[p], &new[p * w..(p + 1) * w], &old);
            for (h, x) in v.into_iter().enumerate() {
                cx.asm.store_warp(x, at + 16 * (p * w + h));
            }
        }
    }
}
