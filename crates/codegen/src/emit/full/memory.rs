//! Loads and stores of full copies.
//!
//! An affine address is checked once for each group and then accessed at constant distances; other addresses are checked together, as
//! vectors, and accessed lane by lane. What a check refuses goes to a routine, which knows all rules, and comes back if it was right.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::analysis::shape::Shape;
use handloom_plan::packs::accesses::FullWay;
use handloom_plan::packs::{LANES, PACKS, pack_start};

use crate::emit::asm::{FULL, width};
use crate::emit::bounds::{mem_op, own_refused, refuse, safe_address, site_of_group};
use crate::emit::copy::Emit;
use crate::emit::device::MemOp;
use crate::emit::exits::{start_over, tell_store};
use crate::emit::full::joint_bounds::verified_address;
use crate::emit::full::scattered::{access_by_routine, access_scattered};
use crate::emit::value::Rep;

/// A load or store of a full copy, with its guard.
pub(crate) fn full_access(cx: &mut Emit<'_, '_>, inst: &Inst) {
    let mem = mem_op(cx, inst);
    let addr = cx.rep(mem.class.address);
    let data: Vec<Rep> = inst.operands()[1..].iter().map(|v| cx.clean(*v)).collect();
    let Some(guard) = inst.guard() else {
        let results = access_all(cx, &mem, inst, &addr, &data);
        set_results(cx, inst, results);
        return;
    };
    let g = cx.rep(guard);
    let uniform = matches!(&g, Rep::Affine(s, _) if s.is_uniform());
    let bits = cx.asm.predicate_bits(&g);
    // Lanes that do not take part keep what the register held.
    let old: Vec<Option<Rep>> =
        inst.dst.iter().map(|d| if cx.n_defs(*d) > 1 { Some(cx.rep(Val::Reg(*d))) } else { None }).collect();
    let all = cx.asm.b.ins().icmp_imm_s(IntCC::Equal, bits, FULL as u32 as i32 as i64);
    let (fast, other, join) = (cx.asm.b.create_block(), cx.asm.b.create_block(), cx.asm.b.create_block());
    let on = cx.asm.on_line();
    cx.asm.b.ins().brif(all, fast, &[], other, &[]);
    cx.asm.b.switch_to_block(fast);
    let results = access_all(cx, &mem, inst, &addr, &data);
    // With lanes that differ, both sides meet as rows.
    let results: Vec<Rep> =
        if uniform { results } else { results.iter().map(|r| Rep::Rows(cx.asm.rows(r, mem.ty))).collect() };
    let flat = cx.asm.flatten(&results, mem.ty);
    cx.asm.b.ins().jump(join, &flat.iter().map(|v| (*v).into()).collect::<Vec<_>>());
    cx.asm.b.switch_to_block(other);
    let others: Vec<Rep> = if uniform {
        (0..results.len()).map(|i| cx.asm.shaped_like(&results[i], old[i].as_ref(), mem.ty)).collect()
    } else {
        cx.asm.b.set_cold_block(other);
        let (some, none) = (cx.asm.b.create_block(), cx.asm.b.create_block());
        let meet = cx.asm.b.create_block();
        let mut rows: Vec<Rep> = Vec::new();
        for o in old.iter().take(results.len()) {
            let r = match o {
                Some(o) => o.clone(),
                None => cx.asm.zero_rows(mem.ty),
            };
            rows.push(Rep::Rows(cx.asm.rows(&r, mem.ty)));
        }
        let flat: Vec<Value> = rows.iter().flat_map(|r| cx.asm.rows(r, mem.ty)).collect();
        for v in &flat {
            let t = cx.asm.b.func.dfg.value_type(*v);
            cx.asm.b.append_block_param(meet, t);
        }
        cx.asm.b.ins().brif(bits, some, &[], none, &[]);
        cx.asm.b.switch_to_block(none);
        cx.asm.b.ins().jump(meet, &flat.iter().map(|v| (*v).into()).collect::<Vec<_>>());
        cx.asm.b.switch_to_block(some);
        let out = access_by_routine(cx, &mem, inst, &addr, &data, bits, &rows);
        let flat: Vec<Value> = out.iter().flat_map(|r| cx.asm.rows(r, mem.ty)).collect();
        cx.asm.b.ins().jump(meet, &flat.iter().map(|v| (*v).into()).collect::<Vec<_>>());
        cx.asm.b.switch_to_block(meet);
        let params = cx.asm.b.block_params(meet).to_vec();
        let n = PACKS * width(mem.ty);
        (0..results.len()).map(|i| Rep::Rows(params[i * n..(i + 1) * n].to_vec())).collect()
    };
    // Both sides in the form of the fast side; rows unless the guard is uniform.
    let results = cx.asm.join_forms(join, &results, &others, mem.ty);
    cx.asm.rejoin(join, on);
    set_results(cx, inst, results);
}

fn set_results(cx: &mut Emit<'_, '_>, inst: &Inst, results: Vec<Rep>) {
    for (d, r) in inst.dst.iter().zip(results) {
        cx.set_fetched(*d, r);
    }
}

/// The access by all 32 lanes.
pub(crate) fn access_all(cx: &mut Emit<'_, '_>, mem: &MemOp, inst: &Inst, addr: &Rep, data: &[Rep]) -> Vec<Rep> {
    cx.copy.n_scratch_used = 0;
    let shape = match addr {
        Rep::Affine(s, _) => Some(s),
        Rep::Rows(_) | Rep::Logic(_) => None,
    };
    let is_store = matches!(inst.op, Op::Store { .. });
    let aty = cx.ty(mem.class.address);
    let mut way = mem.class.full_way(aty, shape, cx.may_start_over());
    if way == FullWay::ByLanes && !cx.takes_in_place() {
        way = FullWay::Routine;
    }
    let out = match (way, addr) {
        (FullWay::Routine, _) => {
            let m = cx.asm.i32(FULL);
            return access_by_routine(cx, mem, inst, addr, data, m, &[]);
        }
        (FullWay::ByGroups, Rep::Affine(s, base)) => {
            let at = check_affine(cx, mem, s, base);
            if is_store { store_affine(cx, mem, s, &at, data) } else { load_affine(cx, mem, s, &at) }
        }
        (FullWay::ByGroups | FullWay::ByLanes, _) => access_scattered(cx, mem, inst, addr, data),
    };
    tell_store(cx, inst);
    out
}

/// Host address of the lowest lane of each group, checked, with its difference to the group's base.
pub(crate) fn check_affine(cx: &mut Emit<'_, '_>, mem: &MemOp, s: &Shape, base: &[Value]) -> Vec<(Value, i64)> {
    let shared_base = mem.is_shared().then(|| cx.asm.shared_base());
    if let Some(at) = verified_address(cx, mem) {
        return at;
    }
    let groups: Vec<Group> = (0..s.groups())
        .map(|g| {
            let (low, high) = s.span(g);
            let lanes = s.lanes_of(g);
            Group { site: site_of_group(cx, mem, g), base: base[g], low, length: high - low + mem.bytes(), lanes }
        })
        .collect();
    (0..groups.len())
        .map(|g| {
            let (group, rest) = (&groups[g], &groups[g + 1..]);
            if let Some(at) = safe_address(cx, mem, g) {
                return (at, group.low);
            }
            let first = first_of(cx, mem, group);
            let mem = MemOp { site: group.site, ..*mem };
            let bad = if mem.class.is_own_by_lane(s, cx.plan.facts.local_stride) {
                own_refused(cx, first, mem.bytes(), mem.bytes())
            } else {
                refuse(cx, &mem, first, group.length)
            };
            check_range(cx, &mem, s.is_even(), first, group, rest, bad);
            match shared_base {
                Some(b) => (cx.asm.b.ins().iadd(first, b), group.low),
                None => (first, group.low),
            }
        })
        .collect()
}

/// Lanes that have their addresses from one base.
struct Group {
    site: usize,
    base: Value,
    /// Bytes from the base to the lowest of them.
    low: i64,
    /// Bytes from there to the end of the last.
    length: i64,
    lanes: u32,
}

/// Address of the lowest lane of a group.
fn first_of(cx: &mut Emit<'_, '_>, mem: &MemOp, group: &Group) -> Value {
    let first = cx.asm.moved(group.base, group.low + mem.class.offset);
    // Addresses of 32 bits are sums of 32 bits.
    if cx.ty(mem.class.address) == Ty::B64 { first } else { cx.asm.b.ins().uextend(types::I64, first) }
}

/// Goes on only if the bytes of a group from `first` may be accessed; `bad`: whether the quick test refuses them. `rest`: the groups that are tested later.
fn check_range(
    cx: &mut Emit<'_, '_>,
    mem: &MemOp,
    even: bool,
    first: Value,
    group: &Group,
    rest: &[Group],
    bad: Value,
) {
    let (cold, go) = (cx.asm.cold_block(), cx.asm.b.create_block());
    let on = cx.asm.on_line();
    cx.asm.b.ins().brif(bad, cold, &[], go, &[]);
    cx.asm.b.switch_to_block(cold);
    // In a masked copy a group is all lanes at one address; those that take part are to blame.
    let mask = match cx.copy.mask {
        Some(m) => m,
        None => cx.asm.i32(i64::from(group.lanes)),
    };
    let len = cx.asm.i64(group.length);
    if !even {
        // The lanes are not told from the range: code that tests each of them finds which one it is.
        if !mem.is_shared() {
            let ok = cx.asm.routine(Routine::Range, mem.site, mask, Some(first), Some(len));
            let align = cx.asm.b.ins().band_imm_s(first, mem.bytes() - 1);
            let right = cx.asm.b.ins().icmp_imm_s(IntCC::Equal, align, 0);
            let zero = cx.asm.i64(0);
            let ok = cx.asm.b.ins().select(right, ok, zero);
            let fail = cx.asm.cold_block();
            cx.asm.b.ins().brif(ok, go, &[], fail, &[]);
            cx.asm.b.switch_to_block(fail);
        }
        start_over(cx, cx.copy.at.0);
        cx.asm.rejoin(go, on);
        return;
    }
    let ok = cx.asm.routine(Routine::Check, mem.site, mask, Some(first), Some(len));
    let fail = cx.asm.cold_block();
    cx.asm.b.ins().brif(ok, go, &[], fail, &[]);
    cx.asm.b.switch_to_block(fail);
    // Lanes of the groups behind may stray too, and the report names them all.
    for group in rest {
        let (first, len) = (first_of(cx, mem, group), cx.asm.i64(group.length));
        let mask = cx.asm.i32(i64::from(group.lanes));
        cx.asm.routine(Routine::Check, group.site, mask, Some(first), Some(len));
    }
    cx.asm.leave(Stop::Trap(TrapSource::Routine));
    cx.asm.rejoin(go, on);
}

/// What tells the addresses of packs apart: group and offset.
type PackKey = (usize, i64);

fn load_affine(cx: &mut Emit<'_, '_>, mem: &MemOp, s: &Shape, at: &[(Value, i64)]) -> Vec<Rep> {
    let count = usize::from(mem.class.count);
    if s.stride == 0 {
        return (0..count).map(|e| load_uniform(cx, mem, s, at, e)).collect();
    }
    let n = width(mem.ty);
    let mut out: Vec<Vec<Value>> = vec![Vec::with_capacity(PACKS * n); count];
    let weak = mem.class.order == Order::Weak;
    let mut packs_read: Vec<(PackKey, Vec<Vec<Value>>)> = Vec::new();
    for p in 0..PACKS {
        let key = pack_start(s, p);
        let (base, low) = at[key.0];
        let d = key.1 - low;
        // Packs that read the same bytes share the load.
        let packs = match packs_read.iter().find(|(k, _)| weak && *k == key) {
            Some((_, v)) => v.clone(),
            None => {
                let v = cx.asm.load_pack(mem, base, d, s.stride);
                packs_read.push((key, v.clone()));
                v
            }
        };
        for (e, v) in packs.into_iter().enumerate() {
            out[e].extend(v);
        }
    }
    out.into_iter().map(Rep::Rows).collect()
}

/// An element that is the same within each piece: one scalar load for each distinct address.
fn load_uniform(cx: &mut Emit<'_, '_>, mem: &MemOp, s: &Shape, at: &[(Value, i64)], element: usize) -> Rep {
    let shape = s.distinct();
    let load = |g: usize| {
        let lane = shape.first_lane(g);
        let (host, low) = at[s.group_of(lane)];
        let d = s.delta(lane) - low + element as i64 * mem.size();
        cx.asm.load_scalar(mem, host, d)
    };
    Rep::Affine(shape, (0..shape.groups()).map(load).collect())
}

fn store_affine(cx: &mut Emit<'_, '_>, mem: &MemOp, s: &Shape, at: &[(Value, i64)], data: &[Rep]) -> Vec<Rep> {
    let n = width(mem.ty);
    if s.stride == 0 && s.is_uniform() {
        // Every lane writes the same place; which one wins is open. The last does.
        for (e, rep) in data.iter().enumerate() {
            let v = cx.asm.lane_of(rep, PACKS - 1, LANES - 1, mem.ty);
            cx.asm.store_scalar(mem, v, at[0].0, e as i64 * mem.size());
        }
        return vec![];
    }
    let rows: Vec<Vec<Value>> = data.iter().map(|r| cx.asm.rows(r, mem.ty)).collect();
    for p in 0..PACKS {
        let (group, off) = pack_start(s, p);
        let (base, low) = at[group];
        let d = off - low;
        let packs: Vec<&[Value]> = rows.iter().map(|r| &r[p * n..(p + 1) * n]).collect();
        cx.asm.store_pack(mem, &packs, base, d, s.stride);
    }
    vec![]
}
