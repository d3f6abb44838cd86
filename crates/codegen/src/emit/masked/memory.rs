//! Loads, stores and atomics by some lanes of a warp, inline: a loop over packs, or over lanes.
//!
//! Operands stand in rows or are scalars; results go to rows, only in the lanes of the mask. An access that the quick test refuses sends the
//! whole instruction to the routine: doing a load or store again changes nothing, and an atomic is tested before the first lane has an effect.

use std::mem::offset_of;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::access::Own;
use handloom_plan::analysis::shape::Shape;
use handloom_plan::packs::{LANES, PACKS};

use crate::emit::asm::{Asm, scalar_type, width};
use crate::emit::bounds::{bounds, mem_op, outside_own, own_refused, safe_address, site_of};
use crate::emit::copy::Emit;
use crate::emit::device::MemOp;
use crate::emit::value::Rep;

/// Where the lanes of an operand are.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// Scalars with a shape.
    Affine(Shape, Vec<Value>),
    /// A row at this offset of the context.
    Row(u32),
}

/// An operand in the loop.
enum Ready {
    Vectors(Vec<Value>),
    Words(u32, i64),
    Row(u32),
}

/// The tests of addresses in the loop.
#[derive(Clone, Copy)]
struct Limits {
    /// Subtracted from an address before the test; nothing for offsets in shared memory.
    base: Option<Value>,
    /// Largest difference.
    limit: Value,
    /// Set if there is no room for an access at all.
    none: Option<Value>,
    /// Added to an address that passed.
    host: Option<Value>,
    /// No address passes this test.
    never: bool,
    /// The thread's own local memory, which passes too: where that of lane 0 begins.
    own: Option<Value>,
}

/// A memory op that is done inline, by the lanes of a mask.
pub(crate) fn lanes_inline(cx: &mut Emit<'_, '_>, inst: &Inst, operands: &[(Operand, Ty)], dst: &[u32], mask: Value) {
    match inst.op {
        Op::Load { .. } | Op::Store { .. } => {
            let mem = mem_op(cx, inst);
            lane_access(cx, inst, &mem, operands, dst, mask);
        }
        Op::Atom { access, offset } | Op::Red { access, offset } => {
            lane_atomic(cx, inst, access, offset, operands, dst, mask);
        }
        other => panic!("{other:?} is no memory op"),
    }
}

/// A load or store by the lanes of `m`. Operands: the address, then the stored elements.
fn lane_access(cx: &mut Emit<'_, '_>, inst: &Inst, mem: &MemOp, operands: &[(Operand, Ty)], dst: &[u32], m: Value) {
    let (cold, done, some) = (cx.asm.cold_block(), cx.asm.b.create_block(), cx.asm.b.create_block());
    cx.asm.b.ins().brif(m, some, &[], done, &[]);
    cx.asm.b.switch_to_block(some);
    let bytes = mem.bytes();
    let limits = limits(cx, mem, bytes);
    // Reading bytes of lanes that take no part harms nobody as long as they are in bounds: loads are tested and done by whole packs.
    let is_load = matches!(inst.op, Op::Load { .. });
    let linear = match &operands[0].0 {
        Operand::Affine(s, base) if mem.class.is_own_by_lane(s, cx.plan.facts.local_stride) => {
            let at = match safe_address(cx, mem, 0) {
                Some(at) => at,
                None => {
                    let at = host_base(cx, mem, base[0], operands[0].1);
                    let bad = own_refused(cx, at, bytes, bytes);
                    let go = cx.asm.b.create_block();
                    cx.asm.b.ins().brif(bad, cold, &[], go, &[]);
                    cx.asm.b.switch_to_block(go);
                    at
                }
            };
            Some(at)
        }
        Operand::Affine(s, base) if !limits.never && s.is_linear() && s.stride >= 0 && s.stride % bytes == 0 => {
            let by_packs = is_load && s.stride > 0;
            Some(test_ends(cx, mem, s.stride, base[0], operands[0].1, limits, m, by_packs, cold))
        }
        _ => None,
    };
    let mut used = 0;
    let mut ready = Vec::new();
    for (k, (l, ty)) in operands.iter().enumerate() {
        // The address of a linear access is counted, not read.
        let l = if k == 0 && linear.is_some() { &Operand::Row(0) } else { l };
        ready.push(readied(cx, l, *ty, &mut used));
    }
    let (head, body, next) = (cx.asm.b.create_block(), cx.asm.b.create_block(), cx.asm.b.create_block());
    let index = cx.asm.b.append_block_param(head, types::I64);
    let rest = cx.asm.b.append_block_param(head, types::I32);
    let (start, lanes) = cx.asm.first_pack(m);
    cx.asm.b.ins().jump(head, &[start.into(), lanes.into()]);
    cx.asm.b.switch_to_block(head);
    let nibble = cx.asm.b.ins().band_imm_s(rest, 15);
    cx.asm.b.ins().brif(nibble, body, &[], next, &[]);
    cx.asm.b.switch_to_block(body);
    pack_access(cx, inst, mem, operands, &ready, dst, limits, linear, index, nibble, cold, next);
    cx.asm.b.switch_to_block(next);
    let index2 = cx.asm.b.ins().iadd_imm_s(index, 1);
    let rest2 = cx.asm.b.ins().ushr_imm_s(rest, 4);
    cx.asm.b.ins().brif(rest2, head, &[index2.into(), rest2.into()], done, &[]);
    cx.asm.b.switch_to_block(cold);
    lanes_by_routine(cx, inst, mem, operands, dst, m, done);
    cx.asm.b.switch_to_block(done);
}

#[allow(clippy::too_many_arguments, reason = "one turn of the loop of `lane_access`, taken out for length")]
fn pack_access(
    cx: &mut Emit<'_, '_>,
    inst: &Inst,
    mem: &MemOp,
    operands: &[(Operand, Ty)],
    ready: &[Ready],
    dst: &[u32],
    limits: Limits,
    linear: Option<Value>,
    index: Value,
    nibble: Value,
    cold: clif::Block,
    next: clif::Block,
) {
    let is_store = matches!(inst.op, Op::Store { .. });
    let aty = operands[0].1;
    let data: Vec<Vec<Value>> =
        ready[1..].iter().zip(&operands[1..]).map(|(r, (_, ty))| ready_vectors(cx, r, *ty, index)).collect();
    let pack_base = linear.map(|base| {
        let Operand::Affine(s, _) = &operands[0].0 else { return (base, 0) };
        let d = cx.asm.b.ins().imul_imm_s(index, s.stride * LANES as i64);
        (cx.asm.b.ins().iadd(base, d), s.stride)
    });
    if let Some((base, stride)) = pack_base
        && stride > 0
        && !is_store
    {
        let out = cx.asm.load_pack(mem, base, 0, stride);
        let mask = cx.asm.mask_of_nibble(nibble);
        let mut blended = Vec::new();
        for (new, at) in out.iter().zip(dst) {
            let old = ready_vectors(cx, &Ready::Row(*at), mem.ty, index);
            blended.push(cx.asm.blend(mask, new, &old));
        }
        write_rows(cx, &blended, dst, mem.ty, index);
        cx.asm.b.ins().jump(next, &[]);
        return;
    }
    if let Some((base, stride)) = pack_base
        && stride > 0
    {
        // All four lanes: as vectors.
        let (vectors, parts) = (cx.asm.b.create_block(), cx.asm.b.create_block());
        let all = cx.asm.b.ins().icmp_imm_s(IntCC::Equal, nibble, 15);
        cx.asm.b.ins().brif(all, vectors, &[], parts, &[]);
        cx.asm.b.switch_to_block(vectors);
        let packs: Vec<&[Value]> = data.iter().map(Vec::as_slice).collect();
        cx.asm.store_pack(mem, &packs, base, 0, stride);
        cx.asm.b.ins().jump(next, &[]);
        cx.asm.b.switch_to_block(parts);
    }
    let addr = if linear.is_some() { vec![] } else { ready_vectors(cx, &ready[0], aty, index) };
    // Where the local memory of the pack's first lane begins.
    let own = limits.own.filter(|_| linear.is_none()).map(|window| {
        let d = cx.asm.b.ins().imul_imm_s(index, cx.plan.facts.local_stride * LANES as i64);
        cx.asm.b.ins().iadd(window, d)
    });
    let limits = Limits { own, ..limits };
    let mut results: Vec<Vec<Value>> =
        dst.iter().map(|at| ready_vectors(cx, &Ready::Row(*at), mem.ty, index)).collect();
    for l in 0..LANES {
        let (on, off) = (cx.asm.b.create_block(), cx.asm.b.create_block());
        let flat: Vec<Value> = results.iter().flatten().copied().collect();
        let params: Vec<Value> = flat
            .iter()
            .map(|v| {
                let t = cx.asm.b.func.dfg.value_type(*v);
                cx.asm.b.append_block_param(off, t)
            })
            .collect();
        let args: Vec<clif::BlockArg> = flat.iter().map(|v| (*v).into()).collect();
        let bit = cx.asm.b.ins().band_imm_s(nibble, 1 << l);
        cx.asm.b.ins().brif(bit, on, &[], off, &args);
        cx.asm.b.switch_to_block(on);
        let (host, d) = match pack_base {
            Some((base, stride)) => (base, stride * l as i64),
            None => (lane_host(cx, mem, &addr, l, aty, limits, cold), 0),
        };
        let mut new = results.clone();
        for e in 0..usize::from(mem.class.count) {
            let at = d + e as i64 * mem.size();
            if is_store {
                let v = cx.asm.lane(&data[e], l);
                cx.asm.store_scalar(mem, v, host, at);
            } else {
                let v = cx.asm.load_scalar(mem, host, at);
                cx.asm.set_lane(&mut new[e], l, v);
            }
        }
        let args: Vec<clif::BlockArg> = new.iter().flatten().map(|v| (*v).into()).collect();
        cx.asm.b.ins().jump(off, &args);
        cx.asm.b.switch_to_block(off);
        let w = width(mem.ty);
        results = params.chunks(w).map(<[Value]>::to_vec).collect();
    }
    write_rows(cx, &results, dst, mem.ty, index);
    cx.asm.b.ins().jump(next, &[]);
}

/// Host address of a lane, tested; `cold` if it is refused.
fn lane_host(
    cx: &mut Emit<'_, '_>,
    mem: &MemOp,
    addr: &[Value],
    l: usize,
    ty: Ty,
    limits: Limits,
    cold: clif::Block,
) -> Value {
    let a = cx.asm.lane(addr, l);
    let a = if ty == Ty::B64 { a } else { cx.asm.b.ins().uextend(types::I64, a) };
    let at = cx.asm.b.ins().iadd_imm_s(a, mem.class.offset);
    let go = cx.asm.b.create_block();
    let other = if limits.own.is_some() { cx.asm.b.create_block() } else { cold };
    if limits.never {
        cx.asm.b.ins().jump(other, &[]);
    } else {
        let bad = lane_refused(cx, mem, at, limits);
        cx.asm.b.ins().brif(bad, other, &[], go, &[]);
    }
    if let Some(own) = limits.own {
        cx.asm.b.switch_to_block(other);
        let lane = cx.asm.b.ins().iadd_imm_s(at, -cx.plan.facts.local_stride * l as i64);
        let off = cx.asm.b.ins().isub(lane, own);
        let bad = outside_own(cx, off, mem.bytes(), mem.bytes());
        cx.asm.b.ins().brif(bad, cold, &[], go, &[]);
    }
    cx.asm.b.switch_to_block(go);
    match limits.host {
        Some(h) => cx.asm.b.ins().iadd(at, h),
        None => at,
    }
}

/// The start of a load that a loop over packs does together with other ops: tests it, or lets the routine do it. Returns the address that pack 0
/// reads from; packs are 16 bytes apart there, in memory as in the row where the routine left the result.
pub(crate) fn begin_load(
    cx: &mut Emit<'_, '_>,
    inst: &Inst,
    mem: &MemOp,
    address: (Operand, Ty),
    dst: u32,
    m: Value,
) -> Value {
    let (cold, join) = (cx.asm.cold_block(), cx.asm.b.create_block());
    let from = cx.asm.b.append_block_param(join, types::I64);
    let limits = limits(cx, mem, 4);
    let Operand::Affine(_, base) = &address.0 else { panic!("a load by rows in a loop over packs") };
    let at = test_ends(cx, mem, 4, base[0], address.1, limits, m, true, cold);
    cx.asm.b.ins().jump(join, &[at.into()]);
    cx.asm.b.switch_to_block(cold);
    let done = cx.asm.b.create_block();
    lanes_by_routine(cx, inst, mem, &[address], &[dst], m, done);
    cx.asm.b.switch_to_block(done);
    let row = cx.asm.moved(cx.asm.warp, i64::from(dst));
    cx.asm.b.ins().jump(join, &[row.into()]);
    cx.asm.b.switch_to_block(join);
    from
}

/// The routine for the lanes of `m`, then to `done`.
fn lanes_by_routine(
    cx: &mut Emit<'_, '_>,
    inst: &Inst,
    mem: &MemOp,
    operands: &[(Operand, Ty)],
    dst: &[u32],
    m: Value,
    done: clif::Block,
) {
    let locs = lane_locs(cx, operands);
    let dst = inst
        .dst
        .iter()
        .zip(dst)
        .map(|(d, at)| if cx.plan.func.regs[d.idx()] == Ty::B64 { Loc::Row64(*at) } else { Loc::Row32(*at) });
    let dst = dst.collect();
    cx.code.tables.mems[mem.site] = site_of(cx, inst, &locs, dst);
    let ok = cx.asm.routine(Routine::Memory, mem.site, m, None, None);
    cx.asm.return_unless(ok, done);
}

/// Locs of operands for the routine. In a cold block: scalars are written to scratch rows here.
fn lane_locs(cx: &mut Emit<'_, '_>, v: &[(Operand, Ty)]) -> Vec<Loc> {
    v.iter()
        .map(|(l, ty)| match l {
            Operand::Affine(s, base) => cx.loc_of(&Rep::Affine(*s, base.clone()), *ty),
            Operand::Row(at) if *ty == Ty::B64 => Loc::Row64(*at),
            Operand::Row(at) => Loc::Row32(*at),
        })
        .collect()
}

fn limits(cx: &mut Emit<'_, '_>, mem: &MemOp, bytes: i64) -> Limits {
    if mem.class.space == StateSpace::Shared {
        let size = cx.asm.load_cta(types::I64, offset_of!(CtaCtx, shared_size));
        let last = cx.asm.b.ins().iadd_imm_s(size, -bytes);
        let none = cx.asm.b.ins().icmp_imm_s(IntCC::SignedLessThan, last, 0);
        let last = cx.asm.b.ins().band_imm_s(last, -mem.bytes());
        let limit = cx.asm.b.ins().iadd_imm_s(last, mem.bytes());
        let host = cx.asm.load_cta(types::I64, offset_of!(CtaCtx, shared_base));
        return Limits { base: None, limit, none: Some(none), host: Some(host), never: false, own: None };
    }
    let own = mem.class.own();
    let never = own == Own::Always;
    let own = (own != Own::Never).then(|| cx.asm.load_warp(types::I64, offset_of!(WarpCtx, window)));
    if never {
        let zero = cx.asm.i64(0);
        return Limits { base: None, limit: zero, none: None, host: None, never: true, own };
    }
    let (base, limit) = bounds(cx, mem, bytes);
    Limits { base: Some(base), limit, none: None, host: None, never: false, own }
}

/// An address with its offset, as 64 bits.
fn host_base(cx: &mut Emit<'_, '_>, mem: &MemOp, base: Value, ty: Ty) -> Value {
    let base = if ty == Ty::B64 { base } else { cx.asm.b.ins().uextend(types::I64, base) };
    cx.asm.b.ins().iadd_imm_s(base, mem.class.offset)
}

/// Whether an address (offset included) is refused.
fn lane_refused(cx: &mut Emit<'_, '_>, mem: &MemOp, at: Value, l: Limits) -> Value {
    let off = match l.base {
        Some(base) => cx.asm.b.ins().isub(at, base),
        None => at,
    };
    let k = mem.bytes().trailing_zeros();
    let over = if k == 0 {
        cx.asm.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, off, l.limit)
    } else {
        let amount = cx.asm.b.ins().iconst(types::I32, i64::from(k));
        let turned = cx.asm.b.ins().rotr(off, amount);
        let limit = cx.asm.b.ins().ushr_imm_s(l.limit, i64::from(k));
        cx.asm.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, turned, limit)
    };
    match l.none {
        Some(n) => cx.asm.b.ins().bor(over, n),
        None => over,
    }
}

/// Whether the end of a range is refused whose start has passed.
fn end_refused(cx: &mut Emit<'_, '_>, at: Value, l: Limits) -> Value {
    let off = match l.base {
        Some(base) => cx.asm.b.ins().isub(at, base),
        None => at,
    };
    cx.asm.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, off, l.limit)
}

/// Tests the first and last lane of `m` of a linear address; returns the host address of lane 0 (which need not be in bounds).
#[allow(clippy::too_many_arguments, reason = "an address with its shape, its test, and who takes part")]
fn test_ends(
    cx: &mut Emit<'_, '_>,
    mem: &MemOp,
    stride: i64,
    base: Value,
    ty: Ty,
    l: Limits,
    m: Value,
    by_packs: bool,
    cold: clif::Block,
) -> Value {
    let base = host_base(cx, mem, base, ty);
    let first = cx.asm.b.ins().ctz(m);
    let above = cx.asm.b.ins().clz(m);
    let top = cx.asm.i32(31);
    let last = cx.asm.b.ins().isub(top, above);
    let (first, last) = if by_packs {
        (cx.asm.b.ins().band_imm_s(first, 28), cx.asm.b.ins().bor_imm_s(last, 3))
    } else {
        (first, last)
    };
    let lane_at = |e: &mut Emit<'_, '_>, lane: Value| {
        let lane = e.asm.b.ins().uextend(types::I64, lane);
        let d = e.asm.b.ins().imul_imm_s(lane, stride);
        e.asm.b.ins().iadd(base, d)
    };
    let low = lane_at(cx, first);
    let high = lane_at(cx, last);
    let bad = lane_refused(cx, mem, low, l);
    let bad2 = end_refused(cx, high, l);
    let bad = cx.asm.b.ins().bor(bad, bad2);
    let go = cx.asm.b.create_block();
    cx.asm.b.ins().brif(bad, cold, &[], go, &[]);
    cx.asm.b.switch_to_block(go);
    match l.host {
        Some(h) => cx.asm.b.ins().iadd(base, h),
        None => base,
    }
}

fn readied(cx: &mut Emit<'_, '_>, l: &Operand, ty: Ty, used: &mut u32) -> Ready {
    match l {
        Operand::Row(at) => Ready::Row(*at),
        Operand::Affine(s, base) if s.is_uniform() => Ready::Vectors(cx.asm.spread(base[0], 0, ty)),
        Operand::Affine(s, base) => {
            let at = cx.packs.layout.words + 64 * *used;
            *used += 1;
            for p in 0..PACKS {
                let first = cx.asm.first_lane(&(*s, base.clone()), p, ty);
                let w = cx.asm.as_word(first, ty);
                cx.asm.store_warp(w, at as usize + 8 * p);
            }
            Ready::Words(at, s.stride)
        }
    }
}

/// The vectors of an operand for pack `index`.
fn ready_vectors(cx: &mut Emit<'_, '_>, r: &Ready, ty: Ty, index: Value) -> Vec<Value> {
    match r {
        Ready::Vectors(v) => v.clone(),
        Ready::Words(at, stride) => {
            let d = cx.asm.b.ins().ishl_imm_s(index, 3);
            let from = cx.asm.b.ins().iadd(cx.asm.warp, d);
            let first = cx.asm.b.ins().load(scalar_type(ty), Asm::trusted(), from, *at as i32);
            cx.asm.spread(first, *stride, ty)
        }
        Ready::Row(at) => {
            let from = row_at(cx, index, ty);
            cx.asm.load_of_row(from, *at, ty)
        }
    }
}

/// Context plus the distance of pack `index` in a row.
fn row_at(cx: &mut Emit<'_, '_>, index: Value, ty: Ty) -> Value {
    let d = cx.asm.b.ins().ishl_imm_s(index, if ty == Ty::B64 { 5 } else { 4 });
    cx.asm.b.ins().iadd(cx.asm.warp, d)
}

fn write_rows(cx: &mut Emit<'_, '_>, v: &[Vec<Value>], dst: &[u32], ty: Ty, index: Value) {
    let from = row_at(cx, index, ty);
    for (x, at) in v.iter().zip(dst) {
        cx.asm.store_of_row(from, *at, x);
    }
}

/// An atomic by the lanes of `m`, one after the other in ascending order. Operands in rows: address, then values.
fn lane_atomic(
    cx: &mut Emit<'_, '_>,
    inst: &Inst,
    a: AtomAccess,
    offset: i64,
    operands: &[(Operand, Ty)],
    dst: &[u32],
    m: Value,
) {
    let mem = mem_op(cx, inst);
    let (cold, done, some) = (cx.asm.cold_block(), cx.asm.b.create_block(), cx.asm.b.create_block());
    cx.asm.b.ins().brif(m, some, &[], done, &[]);
    cx.asm.b.switch_to_block(some);
    let limits = limits(cx, &mem, mem.bytes());
    // Every operand as a row, so that a lane's place can be computed.
    let rows: Vec<(u32, Ty)> = operands
        .iter()
        .map(|(l, ty)| match l {
            Operand::Row(at) => (*at, *ty),
            Operand::Affine(s, base) => {
                let (at, _) = cx.scratch_row(*ty);
                let v = cx.asm.rows(&Rep::Affine(*s, base.clone()), *ty);
                cx.asm.store_row(at, &v);
                (at, *ty)
            }
        })
        .collect();
    if mem.class.is_in_order {
        // The order of one lane is every seed's.
        let less = cx.asm.b.ins().iadd_imm_s(m, -1);
        let others = cx.asm.b.ins().band(m, less);
        let one = cx.asm.b.create_block();
        cx.asm.b.ins().brif(others, cold, &[], one, &[]);
        cx.asm.b.switch_to_block(one);
    }
    // First all tests, then all effects.
    let check = |e: &mut Emit<'_, '_>, _lane: Value, at: Value| {
        let bad = lane_refused(e, &mem, at, limits);
        let go = e.asm.b.create_block();
        e.asm.b.ins().brif(bad, cold, &[], go, &[]);
        e.asm.b.switch_to_block(go);
    };
    each_lane(cx, m, rows[0], offset, check);
    let ty = mem.ty;
    let effect = |e: &mut Emit<'_, '_>, lane: Value, at: Value| {
        let host = match limits.host {
            Some(h) => e.asm.b.ins().iadd(at, h),
            None => at,
        };
        let x = lane_word(e, lane, rows[1]);
        let y = rows.get(2).map(|r| lane_word(e, lane, *r));
        let old = e.asm.atomic_word(a, host, x, y, ty);
        if let Some(d) = dst.first() {
            let from = lane_place(e, lane, ty);
            e.asm.b.ins().store(Asm::trusted(), old, from, *d as i32);
        }
        if e.plan.tells_dirty {
            let new = e.asm.new_word(a, old, x, y);
            let changed = e.asm.b.ins().icmp(IntCC::NotEqual, old, new);
            let changed = e.asm.b.ins().uextend(types::I32, changed);
            let was = e.asm.load_cta(types::I32, offset_of!(CtaCtx, dirty));
            let both = e.asm.b.ins().bor(was, changed);
            e.asm.store_cta(both, offset_of!(CtaCtx, dirty));
        }
    };
    each_lane(cx, m, rows[0], offset, effect);
    cx.asm.b.ins().jump(done, &[]);
    cx.asm.b.switch_to_block(cold);
    let held: Vec<(Operand, Ty)> = rows.iter().map(|(at, ty)| (Operand::Row(*at), *ty)).collect();
    lanes_by_routine(cx, inst, &mem, &held, dst, m, done);
    cx.asm.b.switch_to_block(done);
}

/// A loop over the lanes of a mask that is not empty, with each lane's address (offset included).
fn each_lane(
    cx: &mut Emit<'_, '_>,
    m: Value,
    addr: (u32, Ty),
    offset: i64,
    f: impl Fn(&mut Emit<'_, '_>, Value, Value),
) {
    let (head, exit) = (cx.asm.b.create_block(), cx.asm.b.create_block());
    let rest = cx.asm.b.append_block_param(head, types::I32);
    cx.asm.b.ins().jump(head, &[m.into()]);
    cx.asm.b.switch_to_block(head);
    let lane = cx.asm.b.ins().ctz(rest);
    let lane = cx.asm.b.ins().uextend(types::I64, lane);
    let a = lane_word(cx, lane, addr);
    let a = if addr.1 == Ty::B64 { a } else { cx.asm.b.ins().uextend(types::I64, a) };
    let at = cx.asm.b.ins().iadd_imm_s(a, offset);
    f(cx, lane, at);
    let less = cx.asm.b.ins().iadd_imm_s(rest, -1);
    let rest2 = cx.asm.b.ins().band(rest, less);
    cx.asm.b.ins().brif(rest2, head, &[rest2.into()], exit, &[]);
    cx.asm.b.switch_to_block(exit);
}

fn lane_word(cx: &mut Emit<'_, '_>, lane: Value, row: (u32, Ty)) -> Value {
    let from = lane_place(cx, lane, row.1);
    cx.asm.b.ins().load(scalar_type(row.1), Asm::trusted(), from, row.0 as i32)
}

/// Context plus the distance of a lane in a row.
fn lane_place(cx: &mut Emit<'_, '_>, lane: Value, ty: Ty) -> Value {
    let d = cx.asm.b.ins().ishl_imm_s(lane, if ty == Ty::B64 { 3 } else { 2 });
    cx.asm.b.ins().iadd(cx.asm.warp, d)
}
