//! Accesses of full copies whose addresses have no known relation, and those that the routine does.

use std::mem::offset_of;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::access::Own;
use handloom_plan::packs::{LANES, PACKS};

use crate::emit::asm::{FULL, width};
use crate::emit::bounds::{bounds, site_of};
use crate::emit::copy::Emit;
use crate::emit::device::MemOp;
use crate::emit::value::Rep;

/// Addresses without a known relation: one test of all, then lane by lane.
pub(crate) fn access_scattered(cx: &mut Emit<'_, '_>, mem: &MemOp, inst: &Inst, addr: &Rep, data: &[Rep]) -> Vec<Rep> {
    let aty = cx.ty(mem.class.address);
    let rows = cx.asm.rows(addr, aty);
    let bad = if mem.is_shared() { refuse_shared(cx, mem, &rows) } else { refuse_rows(cx, mem, &rows) };
    let (cold, go, join) = (cx.asm.cold_block(), cx.asm.b.create_block(), cx.asm.b.create_block());
    let n = usize::from(mem.class.count);
    let is_store = matches!(inst.op, Op::Store { .. });
    let values: Vec<Vec<Value>> = data.iter().map(|r| cx.asm.rows(r, mem.ty)).collect();
    let shared = mem.is_shared().then(|| cx.asm.shared_base());
    let on = cx.asm.on_line();
    let has_own = mem.class.own() != Own::Never && cx.plan.facts.local_stride >= mem.bytes();
    if has_own {
        let other = cx.asm.b.create_block();
        cx.asm.b.ins().brif(bad, other, &[], go, &[]);
        cx.asm.b.switch_to_block(other);
        let bad = refuse_own_rows(cx, mem, &rows);
        cx.asm.b.ins().brif(bad, cold, &[], go, &[]);
    } else {
        cx.asm.b.ins().brif(bad, cold, &[], go, &[]);
    }
    cx.asm.b.switch_to_block(cold);
    let m = cx.asm.i32(FULL);
    let held: Vec<Rep> = values.iter().map(|v| Rep::Rows(v.clone())).collect();
    let out = access_at_site(cx, mem.site, mem, inst, (&Rep::Rows(rows.clone()), &held), m, &[]);
    let args: Vec<clif::BlockArg> = cx.asm.flatten(&out, mem.ty).into_iter().map(Into::into).collect();
    cx.asm.b.ins().jump(join, &args);
    cx.asm.b.switch_to_block(go);
    let mut results: Vec<Vec<Value>> = vec![Vec::new(); if is_store { 0 } else { n }];
    for p in 0..PACKS {
        let mut loaded: Vec<Vec<Value>> = vec![Vec::new(); n];
        for l in 0..LANES {
            let host = cx.asm.lane_address(&rows, p, l, aty, shared);
            for e in 0..n {
                if is_store && mem.class.elements >> e & 1 == 0 {
                    continue;
                }
                let d = mem.class.offset + e as i64 * mem.size();
                if is_store {
                    let w = width(mem.ty);
                    let v = if w == 2 {
                        cx.asm.b.ins().extractlane(values[e][2 * p + l / 2], (l % 2) as u8)
                    } else {
                        cx.asm.b.ins().extractlane(values[e][p], l as u8)
                    };
                    cx.asm.store_scalar(mem, v, host, d);
                } else {
                    let v = cx.asm.load_scalar(mem, host, d);
                    loaded[e].push(v);
                }
            }
        }
        for (e, r) in results.iter_mut().enumerate() {
            r.extend(cx.asm.gather(&loaded[e], mem.ty));
        }
    }
    let args: Vec<clif::BlockArg> = results.iter().flatten().map(|v| (*v).into()).collect();
    for v in results.iter().flatten() {
        let t = cx.asm.b.func.dfg.value_type(*v);
        cx.asm.b.append_block_param(join, t);
    }
    cx.asm.b.ins().jump(join, &args);
    cx.asm.rejoin(join, on);
    let params = cx.asm.b.block_params(join).to_vec();
    let w = PACKS * width(mem.ty);
    (0..results.len()).map(|i| Rep::Rows(params[i * w..(i + 1) * w].to_vec())).collect()
}

/// Whether the quick test refuses any of 32 host addresses.
pub(crate) fn refuse_rows(cx: &mut Emit<'_, '_>, mem: &MemOp, rows: &[Value]) -> Value {
    let (base, limit) = bounds(cx, mem, mem.bytes());
    refuse_apart(cx, mem, rows, base, limit, 0)
}

/// Whether any of 32 addresses is not in the lane's own local memory.
fn refuse_own_rows(cx: &mut Emit<'_, '_>, mem: &MemOp, rows: &[Value]) -> Value {
    let window = cx.asm.load_warp(types::I64, offset_of!(WarpCtx, window));
    let limit = cx.asm.i64(cx.plan.facts.local_stride - mem.bytes() + 1);
    refuse_apart(cx, mem, rows, window, limit, cx.plan.facts.local_stride)
}

/// Whether any of 32 addresses is misaligned, or `limit` bytes or more above `base`, which moves by `stride` from lane to lane.
fn refuse_apart(cx: &mut Emit<'_, '_>, mem: &MemOp, rows: &[Value], base: Value, limit: Value, stride: i64) -> Value {
    let rows: Vec<Value> = if cx.ty(mem.class.address) == Ty::B64 {
        rows.to_vec()
    } else {
        rows.iter().flat_map(|v| [cx.asm.b.ins().uwiden_low(*v), cx.asm.b.ins().uwiden_high(*v)]).collect()
    };
    // Signed comparison of values moved by 2^63 is unsigned comparison.
    let moved = cx.asm.b.ins().iadd_imm_s(base, i64::MIN.wrapping_sub(mem.class.offset));
    let moved = cx.asm.splat64(moved);
    let limit = cx.asm.b.ins().bxor_imm_s(limit, i64::MIN);
    let limit = cx.asm.splat64(limit);
    let mut inside = None;
    let mut any = None;
    for (lane, v) in (0..).step_by(2).zip(rows) {
        let start = match stride {
            0 => moved,
            _ => {
                let apart = cx.asm.vector_const64([(stride * lane) as u64, (stride * (lane + 1)) as u64]);
                cx.asm.b.ins().iadd(moved, apart)
            }
        };
        let t = cx.asm.b.ins().isub(v, start);
        let g = cx.asm.b.ins().icmp(IntCC::SignedGreaterThan, limit, t);
        inside = Some(inside.map_or(g, |o| cx.asm.b.ins().band(o, g)));
        any = Some(any.map_or(v, |o| cx.asm.b.ins().bor(o, v)));
    }
    let (inside, any) = (inside.unwrap_or(moved), any.unwrap_or(moved));
    let passed = cx.asm.b.ins().vhigh_bits(types::I32, inside);
    let refused = cx.asm.b.ins().bxor_imm_s(passed, 3);
    let a = mem.bytes();
    if a == 1 {
        return refused;
    }
    let low = cx.asm.vector_const64([(a - 1) as u64; 2]);
    let shift = cx.asm.vector_const64([mem.class.offset as u64; 2]);
    let any = if mem.class.offset % a == 0 { any } else { cx.asm.b.ins().bor(any, shift) };
    let odd = cx.asm.b.ins().band(any, low);
    let zero = cx.asm.vector_const64([0, 0]);
    let odd = cx.asm.b.ins().icmp(IntCC::NotEqual, odd, zero);
    let odd = cx.asm.b.ins().vhigh_bits(types::I32, odd);
    cx.asm.b.ins().bor(refused, odd)
}

/// The same for 32-bit offsets in shared memory; `None` for offsets that need the routine.
pub(crate) fn refuse_shared(cx: &mut Emit<'_, '_>, mem: &MemOp, rows: &[Value]) -> Value {
    let size = cx.asm.load_cta(types::I64, offset_of!(CtaCtx, shared_size));
    let room = cx.asm.b.ins().iadd_imm_s(size, -(mem.class.offset + mem.bytes()));
    let none = cx.asm.b.ins().icmp_imm_s(IntCC::SignedLessThan, room, 0);
    let mut most = rows[0];
    let mut any = rows[0];
    for v in &rows[1..] {
        most = cx.asm.b.ins().umax(most, *v);
        any = cx.asm.b.ins().bor(any, *v);
    }
    // Two halves, then two lanes: the largest of all.
    let x = cx.asm.shuffle32(most, most, [2, 3, 2, 3]);
    let most = cx.asm.b.ins().umax(most, x);
    let x = cx.asm.shuffle32(most, most, [1, 1, 1, 1]);
    let most = cx.asm.b.ins().umax(most, x);
    let top = cx.asm.b.ins().extractlane(most, 0);
    let top = cx.asm.b.ins().uextend(types::I64, top);
    let over = cx.asm.b.ins().icmp(IntCC::UnsignedGreaterThan, top, room);
    let mut bad = cx.asm.b.ins().bor(over, none);
    let a = mem.bytes();
    if a > 1 {
        let low = cx.asm.vector_const32([(a - 1) as u32; 4]);
        let odd = cx.asm.b.ins().band(any, low);
        let odd = cx.asm.b.ins().vany_true(odd);
        bad = cx.asm.b.ins().bor(bad, odd);
    }
    bad
}

/// The access by the routine, for the lanes of `mask`. `old`: what results hold in other lanes.
pub(crate) fn access_by_routine(
    cx: &mut Emit<'_, '_>,
    mem: &MemOp,
    inst: &Inst,
    addr: &Rep,
    data: &[Rep],
    mask: Value,
    old: &[Rep],
) -> Vec<Rep> {
    // A site of its own: its cache is for single accesses.
    let site = cx.code.tables.mems.len();
    let copy = cx.code.tables.mems[mem.site].clone();
    cx.code.tables.mems.push(copy);
    access_at_site(cx, site, mem, inst, (addr, data), mask, old)
}

pub(crate) fn access_at_site(
    cx: &mut Emit<'_, '_>,
    site: usize,
    mem: &MemOp,
    inst: &Inst,
    (addr, data): (&Rep, &[Rep]),
    mask: Value,
    old: &[Rep],
) -> Vec<Rep> {
    cx.copy.n_scratch_used = 0;
    let aty = cx.ty(mem.class.address);
    let addr = cx.loc_of(addr, aty);
    let types: Vec<Ty> = inst.operands()[1..].iter().map(|v| cx.ty(*v)).collect();
    let src: Vec<Loc> = std::iter::once(addr).chain(data.iter().zip(types).map(|(d, t)| cx.loc_of(d, t))).collect();
    let outs: Vec<(u32, Loc, Ty)> = inst
        .dst
        .iter()
        .map(|d| {
            let ty = cx.plan.func.regs[d.idx()];
            let (at, loc) = cx.scratch_row(ty);
            (at, loc, ty)
        })
        .collect();
    for (i, r) in old.iter().enumerate() {
        let rows = cx.asm.rows(r, outs[i].2);
        cx.asm.store_row(outs[i].0, &rows);
    }
    let dst = outs.iter().map(|o| o.1).collect();
    cx.code.tables.mems[site] = site_of(cx, inst, &src, dst);
    let ok = cx.asm.routine(Routine::Memory, site, mask, None, None);
    cx.asm.go_on_if(ok);
    outs.into_iter().map(|(at, _, ty)| cx.read_scratch(at, ty)).collect()
}
