//! Loads and stores of full copies.
//!
//! An affine address is checked once for each group and then accessed at constant distances; other addresses are checked together, as
//! vectors, and accessed lane by lane. What a check refuses goes to a routine, which knows all rules, and comes back if it was right.

use std::mem::offset_of;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::{Order, StateSpace, Ty};
use handloom_plan::Bounds;
use handloom_plan::abi::*;
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::shape::{LANES, PACKS, Shape};

use super::line::Key;
use super::rep::{Rep, scalar_type, vector_type, width};
use super::{Emit, FULL};

/// What tells the addresses of packs apart: group and offset.
type PackKey = (u8, i64);

/// An access with its site.
#[derive(Clone, Copy)]
pub(crate) struct MemOp {
    pub class: AccessClass,
    pub site: usize,
    /// IR type of an element.
    pub ty: Ty,
}

impl MemOp {
    pub(crate) fn size(&self) -> i64 {
        i64::from(self.class.bits) / 8
    }

    pub(crate) fn bytes(&self) -> i64 {
        self.class.bytes()
    }

    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.class.space, StateSpace::Shared | StateSpace::SharedCluster)
    }
}

impl Emit<'_, '_> {
    pub(crate) fn mem_op(&mut self, inst: &Inst) -> MemOp {
        let Some(class) = AccessClass::of(inst) else { panic!("{:?} is no access", inst.op) };
        self.mem_op_of(inst, class)
    }

    /// An access that is more than the instruction's own, at its site.
    pub(crate) fn mem_op_of(&mut self, inst: &Inst, class: AccessClass) -> MemOp {
        let ty = match class.bits {
            8 | 16 => Ty::B16,
            32 => Ty::B32,
            _ => Ty::B64,
        };
        let site = self.tables.mems.len();
        self.tables.mems.push(MemSite { op: inst.op, addr: Loc::Imm(0), src: vec![], dst: vec![], span: inst.span });
        MemOp { class, site, ty }
    }

    /// A load or store of a full copy, with its guard.
    pub(crate) fn full_access(&mut self, inst: &Inst) {
        let mem = self.mem_op(inst);
        let addr = self.rep(mem.class.address);
        let data: Vec<Rep> = inst.operands()[1..].iter().map(|v| self.clean(*v)).collect();
        let Some(guard) = inst.guard() else {
            let results = self.access_all(&mem, inst, &addr, &data);
            self.set_results(inst, results);
            return;
        };
        let g = self.rep(guard);
        let uniform = matches!(&g, Rep::Affine(s, _) if s.is_uniform());
        let bits = self.bits(&g);
        // Lanes that do not take part keep what the register held.
        let old: Vec<Option<Rep>> =
            inst.dst.iter().map(|d| if self.n_defs(*d) > 1 { Some(self.rep(Val::Reg(*d))) } else { None }).collect();
        let all = self.b.ins().icmp_imm_s(IntCC::Equal, bits, FULL as u32 as i32 as i64);
        let (fast, other, join) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let on = self.on_line();
        self.b.ins().brif(all, fast, &[], other, &[]);
        self.b.switch_to_block(fast);
        let results = self.access_all(&mem, inst, &addr, &data);
        // With lanes that differ, both sides meet as rows.
        let results: Vec<Rep> =
            if uniform { results } else { results.iter().map(|r| Rep::Rows(self.rows(r, mem.ty))).collect() };
        let flat = self.flatten(&results, mem.ty);
        self.b.ins().jump(join, &flat.iter().map(|v| (*v).into()).collect::<Vec<_>>());
        self.b.switch_to_block(other);
        let others: Vec<Rep> = if uniform {
            (0..results.len()).map(|i| self.shaped_like(&results[i], old[i].as_ref(), mem.ty)).collect()
        } else {
            self.b.set_cold_block(other);
            let (some, none) = (self.b.create_block(), self.b.create_block());
            let meet = self.b.create_block();
            let mut rows: Vec<Rep> = Vec::new();
            for o in old.iter().take(results.len()) {
                let r = match o {
                    Some(o) => o.clone(),
                    None => self.zero_rows(mem.ty),
                };
                rows.push(Rep::Rows(self.rows(&r, mem.ty)));
            }
            let flat: Vec<Value> = rows.iter().flat_map(|r| self.rows(r, mem.ty)).collect();
            for v in &flat {
                let t = self.b.func.dfg.value_type(*v);
                self.b.append_block_param(meet, t);
            }
            self.b.ins().brif(bits, some, &[], none, &[]);
            self.b.switch_to_block(none);
            self.b.ins().jump(meet, &flat.iter().map(|v| (*v).into()).collect::<Vec<_>>());
            self.b.switch_to_block(some);
            let out = self.access_by_routine(&mem, inst, &addr, &data, bits, &rows);
            let flat: Vec<Value> = out.iter().flat_map(|r| self.rows(r, mem.ty)).collect();
            self.b.ins().jump(meet, &flat.iter().map(|v| (*v).into()).collect::<Vec<_>>());
            self.b.switch_to_block(meet);
            let params = self.b.block_params(meet).to_vec();
            let n = PACKS * width(mem.ty);
            (0..results.len()).map(|i| Rep::Rows(params[i * n..(i + 1) * n].to_vec())).collect()
        };
        // Both sides in the form of the fast side; rows unless the guard is uniform.
        let results = self.join_forms(join, &results, &others, mem.ty);
        self.rejoin(join, on);
        self.set_results(inst, results);
    }

    pub(crate) fn set_results(&mut self, inst: &Inst, results: Vec<Rep>) {
        for (d, r) in inst.dst.iter().zip(results) {
            self.set_fetched(*d, r);
        }
    }

    /// Values of results in order, in the form they have.
    pub(crate) fn flatten(&mut self, reps: &[Rep], ty: Ty) -> Vec<Value> {
        reps.iter()
            .flat_map(|r| match r {
                Rep::Affine(_, base) => base.clone(),
                Rep::Rows(v) => v.clone(),
                Rep::Logic(_) => self.rows(r, ty),
            })
            .collect()
    }

    /// Gives the join its parameters and both sides' values. The fast side has jumped already, with its values as they are.
    pub(crate) fn join_forms(&mut self, join: clif::Block, results: &[Rep], others: &[Rep], ty: Ty) -> Vec<Rep> {
        let mut out = Vec::new();
        let mut args = Vec::new();
        for (r, o) in results.iter().zip(others) {
            match (r, o) {
                (Rep::Affine(s, base), Rep::Affine(_, theirs)) => {
                    let t = scalar_type(ty);
                    let params = base.iter().map(|_| self.b.append_block_param(join, t)).collect();
                    args.extend(theirs.iter().map(|v| clif::BlockArg::from(*v)));
                    out.push(Rep::Affine(*s, params));
                }
                (_, o) => {
                    let rows = self.rows(o, ty);
                    let t = vector_type(ty);
                    let params: Vec<Value> = rows.iter().map(|_| self.b.append_block_param(join, t)).collect();
                    args.extend(rows.iter().map(|v| clif::BlockArg::from(*v)));
                    out.push(Rep::Rows(params));
                }
            }
        }
        self.b.ins().jump(join, &args);
        out
    }

    /// Zero, or an old value, in the form of another value.
    pub(crate) fn shaped_like(&mut self, like: &Rep, old: Option<&Rep>, ty: Ty) -> Rep {
        match (like, old) {
            (Rep::Affine(s, base), Some(Rep::Affine(o, b))) => {
                let firsts: Vec<usize> = (0..base.len()).map(|g| s.first(g)).collect();
                let words = firsts.into_iter().map(|p| self.first_lane(&(*o, b.clone()), p, ty)).collect();
                Rep::Affine(*s, words)
            }
            (Rep::Affine(s, base), _) => {
                let z = self.scalar_const(0, ty);
                Rep::Affine(*s, vec![z; base.len()])
            }
            (_, Some(o)) => Rep::Rows(self.rows(o, ty)),
            _ => self.zero_rows(ty),
        }
    }

    pub(crate) fn zero_rows(&mut self, ty: Ty) -> Rep {
        let z = if ty == Ty::B64 { self.vector_const64([0, 0]) } else { self.vector_const32([0; 4]) };
        Rep::Rows(vec![z; PACKS * width(ty)])
    }

    /// The access by all 32 lanes.
    pub(crate) fn access_all(&mut self, mem: &MemOp, inst: &Inst, addr: &Rep, data: &[Rep]) -> Vec<Rep> {
        self.n_scratch_used = 0;
        if !mem.class.is_inline_in_full() {
            let m = self.i32(FULL);
            return self.access_by_routine(mem, inst, addr, data, m, &[]);
        }
        let is_store = matches!(inst.op, Op::Store { .. });
        // A range that the check passes may end in elements that nobody wants, and those may lie anywhere.
        let whole = mem.class.wants_all();
        let out = match addr {
            Rep::Affine(s, base) if whole && mem.class.is_regular(s) && (s.is_even() || self.may_start_over()) => {
                let at = self.check_affine(mem, s, base);
                if is_store { self.store_affine(mem, s, &at, data) } else { self.load_affine(mem, s, &at) }
            }
            _ => self.access_scattered(mem, inst, addr, data),
        };
        if is_store {
            self.tell_dirty();
        }
        out
    }

    pub(crate) fn tell_dirty(&mut self) {
        if self.plan.tells_dirty {
            let one = self.i32(1);
            self.store_cta(one, offset_of!(CtaCtx, dirty));
        }
    }

    /// Whether nothing has happened in the block being emitted, so that it may start over.
    pub(crate) fn may_start_over(&self) -> bool {
        let (b, i) = self.at;
        self.facts.speculate && self.mask.is_none() && i <= self.facts.n_before_effects[b]
    }

    /// Host address of the lowest lane of each group, checked, with its difference to the group's base.
    pub(crate) fn check_affine(&mut self, mem: &MemOp, s: &Shape, base: &[Value]) -> Vec<(Value, i64)> {
        let shared_base = mem.is_shared().then(|| self.shared_base());
        if let Some(at) = self.verified_address(mem) {
            return at;
        }
        (0..s.groups())
            .map(|g| {
                let (low, high) = s.span(g);
                let length = high - low + mem.bytes();
                if let Some(at) = self.safe_address(mem, g) {
                    return (at, low);
                }
                let lanes = (0..PACKS).filter(|p| usize::from(s.group[*p]) == g).fold(0u32, |m, p| m | 15 << (4 * p));
                let first = if self.ty(mem.class.address) == Ty::B64 {
                    self.moved(base[g], low + mem.class.offset)
                } else {
                    // Addresses of 32 bits are sums of 32 bits.
                    let v = self.moved(base[g], low + mem.class.offset);
                    self.b.ins().uextend(types::I64, v)
                };
                let site = self.site_of_group(mem, g);
                let bad = if mem.class.is_own_by_lane(s, self.facts.local_stride) {
                    self.own_refused(first, mem.bytes(), mem.bytes())
                } else {
                    self.refuse(mem, first, length)
                };
                self.check_range(&MemOp { site, ..*mem }, s.is_even(), first, length, lanes, bad);
                match shared_base {
                    Some(b) => (self.b.ins().iadd(first, b), low),
                    None => (first, low),
                }
            })
            .collect()
    }

    /// A site for each group: each has a length of its own, which its cache holds.
    pub(crate) fn site_of_group(&mut self, mem: &MemOp, g: usize) -> usize {
        if g == 0 {
            return mem.site;
        }
        let copy = self.tables.mems[mem.site].clone();
        self.tables.mems.push(copy);
        self.tables.mems.len() - 1
    }

    /// The address of an access that needs no check: parameters and frame slots at constant offsets.
    pub(crate) fn safe_address(&mut self, mem: &MemOp, g: usize) -> Option<Value> {
        let Val::Reg(r) = mem.class.address else { return None };
        let end = mem.class.offset + mem.bytes();
        match self.origin(r)? {
            Op::ParamAddr { offset } => {
                let at = i64::from(offset) + mem.class.offset;
                let fits = at >= 0
                    && i64::from(offset) + end <= i64::from(self.f.param_bytes)
                    && i64::from(offset).wrapping_add(mem.class.offset) % mem.bytes() == 0
                    && mem.class.space == StateSpace::ParamEntry;
                (fits && g == 0).then(|| {
                    let p = self.cta_field(offset_of!(CtaCtx, param));
                    self.moved(p, at)
                })
            }
            Op::SlotAddr(slot) => {
                let s = self.f.slots[slot.idx()];
                let fits = mem.class.offset >= 0
                    && end <= i64::from(s.size)
                    && mem.class.offset % mem.bytes() == 0
                    && i64::from(s.align) % mem.bytes() == 0
                    && matches!(mem.class.space, StateSpace::Local | StateSpace::Generic);
                (fits && g == 0).then(|| {
                    let l = self.load_warp(types::I64, offset_of!(WarpCtx, local));
                    let at = i64::from(self.plan.layout.slot_offsets[slot.idx()]) + mem.class.offset;
                    self.moved(l, at)
                })
            }
            _ => None,
        }
    }

    /// A scalar plus a constant.
    pub(crate) fn moved(&mut self, v: Value, by: i64) -> Value {
        if by == 0 { v } else { self.b.ins().iadd_imm_s(v, by) }
    }

    /// Base of the cta's shared memory.
    pub(crate) fn shared_base(&mut self) -> Value {
        self.cta_field(offset_of!(CtaCtx, shared_base))
    }

    /// Goes on only if `length` bytes from `first` may be accessed; `bad`: whether the quick test refuses them.
    fn check_range(&mut self, mem: &MemOp, even: bool, first: Value, length: i64, lanes: u32, bad: Value) {
        let (cold, go) = (self.cold_block(), self.b.create_block());
        let on = self.on_line();
        self.b.ins().brif(bad, cold, &[], go, &[]);
        self.b.switch_to_block(cold);
        // In a masked copy a group is all lanes at one address; those that take part are to blame.
        let mask = match self.mask {
            Some(m) => m,
            None => self.i32(i64::from(lanes)),
        };
        let len = self.i64(length);
        if !even {
            // The lanes are not told from the range: code that tests each of them finds which one it is.
            if !mem.is_shared() {
                let ok = self.routine(Routine::Range, mem.site, mask, Some(first), Some(len));
                let align = self.b.ins().band_imm_s(first, mem.bytes() - 1);
                let right = self.b.ins().icmp_imm_s(IntCC::Equal, align, 0);
                let zero = self.i64(0);
                let ok = self.b.ins().select(right, ok, zero);
                let fail = self.cold_block();
                self.b.ins().brif(ok, go, &[], fail, &[]);
                self.b.switch_to_block(fail);
            }
            self.start_over(self.at.0);
            self.rejoin(go, on);
            return;
        }
        let ok = self.routine(Routine::Check, mem.site, mask, Some(first), Some(len));
        self.return_unless(ok, go);
        self.rejoin(go, on);
    }

    /// Goes on if a routine said yes; else gives the trap back.
    pub(crate) fn go_on_if(&mut self, ok: Value) {
        let (go, on) = (self.b.create_block(), self.on_line());
        self.return_unless(ok, go);
        self.rejoin(go, on);
    }

    /// Goes to `go` if a routine said yes; else gives the trap back.
    pub(crate) fn return_unless(&mut self, ok: Value, go: clif::Block) {
        let fail = self.cold_block();
        self.b.ins().brif(ok, go, &[], fail, &[]);
        self.b.switch_to_block(fail);
        self.leave(Stop::Trap(TrapSource::Routine));
    }

    /// Whether the quick test refuses `length` bytes at `first` (an offset for shared memory).
    pub(crate) fn refuse(&mut self, mem: &MemOp, first: Value, length: i64) -> Value {
        let align = mem.bytes();
        if mem.is_shared() {
            let size = self.cta_field(offset_of!(CtaCtx, shared_size));
            let end = self.b.ins().iadd_imm_s(first, length);
            // A negative start would wrap to a small end.
            let below = self.b.ins().icmp(IntCC::UnsignedGreaterThan, first, size);
            let over = self.b.ins().icmp(IntCC::UnsignedGreaterThan, end, size);
            let over = self.b.ins().bor(below, over);
            return if align > 1 {
                let low = self.b.ins().band_imm_s(first, align - 1);
                let odd = self.b.ins().icmp_imm_s(IntCC::NotEqual, low, 0);
                self.b.ins().bor(over, odd)
            } else {
                over
            };
        }
        let k = align.trailing_zeros();
        let (base, limit) = self.bounds(mem, length);
        let off = self.b.ins().isub(first, base);
        if k == 0 {
            return self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, off, limit);
        }
        // Low bits of a misaligned address become high ones: one comparison tests both. Allocations are aligned to more.
        let amount = self.b.ins().iconst(types::I32, i64::from(k));
        let turned = self.b.ins().rotr(off, amount);
        let limit = match self.opt.bounds {
            Bounds::Exact => self.b.ins().ushr_imm_s(limit, i64::from(k)),
            Bounds::Contained => self.one(Key::Units(align - length, k), |e| e.b.ins().ushr_imm_s(limit, i64::from(k))),
        };
        self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, turned, limit)
    }

    /// Base and limit of the quick test for `length` bytes, as those of a [`SiteCache`].
    pub(crate) fn bounds(&mut self, mem: &MemOp, length: i64) -> (Value, Value) {
        match self.opt.bounds {
            Bounds::Exact => {
                let sites = self.cta_field(offset_of!(CtaCtx, sites));
                let at = (mem.site * size_of::<SiteCache>()) as i32;
                let base = self.b.ins().load(types::I64, Self::trusted(), sites, at);
                let limit = self.b.ins().load(types::I64, Self::trusted(), sites, at + 8);
                (base, limit)
            }
            Bounds::Contained => {
                let low = self.cta_field(offset_of!(CtaCtx, heap_low));
                // The arena ends at a page.
                let more = mem.bytes() - length;
                let room = self.one(Key::Room(more), |e| {
                    let high = e.cta_field(offset_of!(CtaCtx, heap_high));
                    let size = e.b.ins().isub(high, low);
                    e.moved(size, more)
                });
                (low, room)
            }
        }
    }

    pub(crate) fn load_affine(&mut self, mem: &MemOp, s: &Shape, at: &[(Value, i64)]) -> Vec<Rep> {
        let count = usize::from(mem.class.count);
        if s.stride == 0 {
            return (0..count).map(|e| self.load_uniform(mem, s, at, e)).collect();
        }
        let n = width(mem.ty);
        let mut out: Vec<Vec<Value>> = vec![Vec::with_capacity(PACKS * n); count];
        let weak = mem.class.order == Order::Weak;
        let mut packs_read: Vec<(PackKey, Vec<Vec<Value>>)> = Vec::new();
        for p in 0..PACKS {
            let (base, low) = at[usize::from(s.group[p])];
            let d = (s.off[p] - low) as i32;
            // Packs that read the same bytes share the load.
            let key = (s.group[p], s.off[p]);
            let packs = match packs_read.iter().find(|(k, _)| weak && *k == key) {
                Some((_, v)) => v.clone(),
                None => {
                    let v = self.load_pack(mem, base, d, s.stride);
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

    /// An element that is the same within each pack: one scalar load for each distinct address.
    pub(crate) fn load_uniform(&mut self, mem: &MemOp, s: &Shape, at: &[(Value, i64)], element: usize) -> Rep {
        let mut shape = Shape { stride: 0, ..Shape::UNIFORM };
        let mut keys: Vec<(u8, i64)> = Vec::new();
        let mut base = Vec::new();
        for p in 0..PACKS {
            let key = (s.group[p], s.off[p]);
            let g = match keys.iter().position(|k| *k == key) {
                Some(g) => g,
                None => {
                    let (host, low) = at[usize::from(s.group[p])];
                    let d = s.off[p] - low + element as i64 * mem.size();
                    let v = self.load_scalar(mem, host, d as i32);
                    keys.push(key);
                    base.push(v);
                    keys.len() - 1
                }
            };
            shape.group[p] = g as u8;
        }
        Rep::Affine(shape, base)
    }

    pub(crate) fn load_scalar(&mut self, mem: &MemOp, base: Value, d: i32) -> Value {
        let m = Self::device();
        match mem.class.bits {
            8 => self.b.ins().uload8(types::I32, m, base, d),
            16 => self.b.ins().uload16(types::I32, m, base, d),
            32 => self.b.ins().load(types::I32, m, base, d),
            _ => self.b.ins().load(types::I64, m, base, d),
        }
    }

    /// The elements of one pack whose lanes are `stride` apart.
    pub(crate) fn load_pack(&mut self, mem: &MemOp, base: Value, d: i32, stride: i64) -> Vec<Vec<Value>> {
        let m = Self::device();
        match (mem.class.count, mem.class.bits, stride) {
            (1, 32, 4) => vec![vec![self.b.ins().load(types::I32X4, m, base, d)]],
            (1, 64, 8) => vec![(0..2).map(|h| self.b.ins().load(types::I64X2, m, base, d + 16 * h)).collect()],
            (1, 8, 1) => {
                let v = self.b.ins().load(types::I32, m, base, d);
                let v = self.b.ins().scalar_to_vector(types::I32X4, v);
                let v = self.bitcast(v, types::I8X16);
                let v = self.b.ins().uwiden_low(v);
                vec![vec![self.b.ins().uwiden_low(v)]]
            }
            (1, 16, 2) => {
                let v = self.b.ins().load(types::I64, m, base, d);
                let v = self.b.ins().scalar_to_vector(types::I64X2, v);
                let v = self.bitcast(v, types::I16X8);
                vec![vec![self.b.ins().uwiden_low(v)]]
            }
            (2, 32, 8) => {
                let v: Vec<Value> = (0..2).map(|h| self.b.ins().load(types::I32X4, m, base, d + 16 * h)).collect();
                let t = self.turn(&v, Emit::parted);
                t.into_iter().map(|v| vec![v]).collect()
            }
            (4, 32, 16) => {
                let v: Vec<Value> = (0..4).map(|h| self.b.ins().load(types::I32X4, m, base, d + 16 * h)).collect();
                let t = self.turn(&v, Emit::transposed);
                t.into_iter().map(|v| vec![v]).collect()
            }
            (2, 64, 16) => {
                let v: Vec<Value> = (0..4).map(|h| self.b.ins().load(types::I64X2, m, base, d + 16 * h)).collect();
                let t = self.turn(&v, Emit::paired);
                vec![vec![t[0], t[2]], vec![t[1], t[3]]]
            }
            (count, ..) => (0..i32::from(count))
                .map(|e| {
                    let lanes: Vec<Value> = (0..LANES as i64)
                        .map(|l| {
                            let at = d + (stride * l) as i32 + e * mem.size() as i32;
                            self.load_scalar(mem, base, at)
                        })
                        .collect();
                    self.gather(&lanes, mem.ty)
                })
                .collect(),
        }
    }

    pub(crate) fn bitcast(&mut self, v: Value, to: clif::Type) -> Value {
        let little = clif::MemFlagsData::new().with_endianness(clif::Endianness::Little);
        self.b.ins().bitcast(to, little, v)
    }

    pub(crate) fn pair64(&mut self, a: Value, b: Value, high: bool) -> Value {
        let h = if high { 8 } else { 0 };
        self.shuffle(a, b, std::array::from_fn(|i| if i < 8 { h + i as u8 } else { 16 + h + (i as u8 - 8) }))
    }

    /// Vectors put in another order, by one of the functions below or its opposite. What was turned is turned back for nothing: copies need
    /// no shuffles.
    fn turn(&mut self, v: &[Value], how: fn(&mut Self, &[Value]) -> Vec<Value>) -> Vec<Value> {
        if let Some(before) = self.turned.get(v) {
            return before.clone();
        }
        let made = how(self, v);
        self.turned.insert(made.clone(), v.to_vec());
        made
    }

    /// Even and odd elements of two vectors.
    fn parted(&mut self, v: &[Value]) -> Vec<Value> {
        vec![self.shuffle32(v[0], v[1], [0, 2, 4, 6]), self.shuffle32(v[0], v[1], [1, 3, 5, 7])]
    }

    /// The opposite of `parted`.
    fn merged(&mut self, v: &[Value]) -> Vec<Value> {
        vec![self.shuffle32(v[0], v[1], [0, 4, 1, 5]), self.shuffle32(v[0], v[1], [2, 6, 3, 7])]
    }

    /// Two pairs of vectors of two elements, each pair transposed. Its own opposite.
    fn paired(&mut self, v: &[Value]) -> Vec<Value> {
        let half = |e: &mut Self, i: usize, high| e.pair64(v[i], v[i + 1], high);
        vec![half(self, 0, false), half(self, 0, true), half(self, 2, false), half(self, 2, true)]
    }

    /// Four vectors as rows and columns change places. Its own opposite.
    fn transposed(&mut self, v: &[Value]) -> Vec<Value> {
        let a = self.shuffle32(v[0], v[1], [0, 4, 1, 5]);
        let b = self.shuffle32(v[2], v[3], [0, 4, 1, 5]);
        let c = self.shuffle32(v[0], v[1], [2, 6, 3, 7]);
        let d = self.shuffle32(v[2], v[3], [2, 6, 3, 7]);
        vec![
            self.shuffle32(a, b, [0, 1, 4, 5]),
            self.shuffle32(a, b, [2, 3, 6, 7]),
            self.shuffle32(c, d, [0, 1, 4, 5]),
            self.shuffle32(c, d, [2, 3, 6, 7]),
        ]
    }

    /// Four scalars as the vectors of a pack.
    pub(crate) fn gather(&mut self, lanes: &[Value], ty: Ty) -> Vec<Value> {
        if ty == Ty::B64 {
            return (0..2)
                .map(|h| {
                    let v = self.b.ins().scalar_to_vector(types::I64X2, lanes[2 * h]);
                    self.b.ins().insertlane(v, lanes[2 * h + 1], 1)
                })
                .collect();
        }
        let mut v = self.b.ins().scalar_to_vector(types::I32X4, lanes[0]);
        for (l, x) in lanes.iter().enumerate().skip(1) {
            v = self.b.ins().insertlane(v, *x, l as u8);
        }
        vec![v]
    }

    pub(crate) fn store_affine(&mut self, mem: &MemOp, s: &Shape, at: &[(Value, i64)], data: &[Rep]) -> Vec<Rep> {
        let n = width(mem.ty);
        if s.stride == 0 && s.is_uniform() {
            // Every lane writes the same place; which one wins is open. The last does.
            for (e, rep) in data.iter().enumerate() {
                let v = self.lane_of(rep, PACKS - 1, LANES - 1, mem.ty);
                self.store_scalar(mem, v, at[0].0, (e as i64 * mem.size()) as i32);
            }
            return vec![];
        }
        let rows: Vec<Vec<Value>> = data.iter().map(|r| self.rows(r, mem.ty)).collect();
        for p in 0..PACKS {
            let (base, low) = at[usize::from(s.group[p])];
            let d = (s.off[p] - low) as i32;
            let packs: Vec<&[Value]> = rows.iter().map(|r| &r[p * n..(p + 1) * n]).collect();
            self.store_pack(mem, &packs, base, d, s.stride);
        }
        vec![]
    }

    /// Lane `l` of pack `p` as a scalar.
    pub(crate) fn lane_of(&mut self, rep: &Rep, p: usize, l: usize, ty: Ty) -> Value {
        if let Rep::Affine(s, base) = rep {
            let v = self.first_lane(&(*s, base.clone()), p, ty);
            return self.plus(v, s.stride * l as i64, ty);
        }
        let rows = self.rows(rep, ty);
        if ty == Ty::B64 {
            self.b.ins().extractlane(rows[2 * p + l / 2], (l % 2) as u8)
        } else {
            self.b.ins().extractlane(rows[p], l as u8)
        }
    }

    pub(crate) fn store_scalar(&mut self, mem: &MemOp, v: Value, base: Value, d: i32) {
        let m = Self::device();
        match mem.class.bits {
            8 => self.b.ins().istore8(m, v, base, d),
            16 => self.b.ins().istore16(m, v, base, d),
            _ => self.b.ins().store(m, v, base, d),
        };
    }

    fn store_vectors(&mut self, v: &[Value], base: Value, d: i32) {
        for (x, at) in v.iter().zip((d..).step_by(16)) {
            self.b.ins().store(Self::device(), *x, base, at);
        }
    }

    pub(crate) fn store_pack(&mut self, mem: &MemOp, v: &[&[Value]], base: Value, d: i32, stride: i64) {
        let m = Self::device();
        match (mem.class.count, mem.class.bits, stride) {
            (1, 32, 4) => {
                self.b.ins().store(m, v[0][0], base, d);
            }
            (1, 64, 8) => {
                for (h, x) in v[0].iter().enumerate() {
                    self.b.ins().store(m, *x, base, d + 16 * h as i32);
                }
            }
            (1, 8, 1) => {
                let mask = self.vector_const32([0xff; 4]);
                let x = self.b.ins().band(v[0][0], mask);
                let x = self.b.ins().unarrow(x, x);
                let x = self.b.ins().unarrow(x, x);
                let x = self.bitcast(x, types::I32X4);
                let x = self.b.ins().extractlane(x, 0);
                self.b.ins().store(m, x, base, d);
            }
            (1, 16, 2) => {
                let x = self.b.ins().unarrow(v[0][0], v[0][0]);
                let x = self.bitcast(x, types::I64X2);
                let x = self.b.ins().extractlane(x, 0);
                self.b.ins().store(m, x, base, d);
            }
            (2, 32, 8) => {
                let t = self.turn(&[v[0][0], v[1][0]], Emit::merged);
                self.store_vectors(&t, base, d);
            }
            (4, 32, 16) => {
                let rows: Vec<Value> = v.iter().map(|x| x[0]).collect();
                let t = self.turn(&rows, Emit::transposed);
                self.store_vectors(&t, base, d);
            }
            (2, 64, 16) => {
                let t = self.turn(&[v[0][0], v[1][0], v[0][1], v[1][1]], Emit::paired);
                self.store_vectors(&t, base, d);
            }
            _ => {
                for l in 0..LANES {
                    for (e, x) in v.iter().enumerate() {
                        let lane = if mem.ty == Ty::B64 {
                            self.b.ins().extractlane(x[l / 2], (l % 2) as u8)
                        } else {
                            self.b.ins().extractlane(x[0], l as u8)
                        };
                        let at = d + (stride * l as i64) as i32 + (e as i64 * mem.size()) as i32;
                        self.store_scalar(mem, lane, base, at);
                    }
                }
            }
        }
    }
}
