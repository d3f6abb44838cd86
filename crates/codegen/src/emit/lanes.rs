//! Loads, stores and atomics by some lanes of a warp, inline: a loop over packs, or over lanes.
//!
//! Operands stand in rows or are scalars; results go to rows, only in the lanes of the mask. An access that the quick test refuses sends the
//! whole instruction to the routine: doing a load or store again changes nothing, and an atomic is tested before the first lane has an effect.

use std::mem::offset_of;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::access::Own;
use handloom_plan::analysis::shape::{LANES, PACKS, Shape};

use super::Emit;
use super::memory::MemOp;
use super::rep::{Rep, scalar_type, vector_type, width};

/// Where the lanes of an operand are.
#[derive(Clone, Debug)]
pub(crate) enum Lanes {
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

impl Emit<'_, '_> {
    /// Locs of operands for the routine. In a cold block: scalars are written to scratch rows here.
    fn lane_locs(&mut self, v: &[(Lanes, Ty)]) -> Vec<Loc> {
        v.iter()
            .map(|(l, ty)| match l {
                Lanes::Affine(s, base) => self.loc_of(&Rep::Affine(*s, base.clone()), *ty),
                Lanes::Row(at) if *ty == Ty::B64 => Loc::Row64(*at),
                Lanes::Row(at) => Loc::Row32(*at),
            })
            .collect()
    }

    /// The routine for the lanes of `m`, then to `done`.
    fn lanes_by_routine(
        &mut self,
        inst: &Inst,
        mem: &MemOp,
        operands: &[(Lanes, Ty)],
        dst: &[u32],
        m: Value,
        done: clif::Block,
    ) {
        let locs = self.lane_locs(operands);
        let dst = inst
            .dst
            .iter()
            .zip(dst)
            .map(|(d, at)| if self.f.regs[d.idx()] == Ty::B64 { Loc::Row64(*at) } else { Loc::Row32(*at) });
        let dst = dst.collect();
        self.tables.mems[mem.site] = self.site_of(inst, &locs, dst);
        let ok = self.routine(Routine::Memory, mem.site, m, None, None);
        self.return_unless(ok, done);
    }

    /// A load or store by the lanes of `m`. Operands: the address, then the stored elements.
    pub(crate) fn lane_access(&mut self, inst: &Inst, mem: &MemOp, operands: &[(Lanes, Ty)], dst: &[u32], m: Value) {
        let (cold, done, some) = (self.cold_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().brif(m, some, &[], done, &[]);
        self.b.switch_to_block(some);
        let bytes = mem.bytes();
        let limits = self.limits(mem, bytes);
        // Reading bytes of lanes that take no part harms nobody as long as they are in bounds: loads are tested and done by whole packs.
        let is_load = matches!(inst.op, Op::Load { .. });
        let linear = match &operands[0].0 {
            Lanes::Affine(s, base) if mem.class.is_own_by_lane(s, self.facts.local_stride) => {
                let at = match self.safe_address(mem, 0) {
                    Some(at) => at,
                    None => {
                        let at = self.host_base(mem, base[0], operands[0].1);
                        let bad = self.own_refused(at, bytes, bytes);
                        let go = self.b.create_block();
                        self.b.ins().brif(bad, cold, &[], go, &[]);
                        self.b.switch_to_block(go);
                        at
                    }
                };
                Some(at)
            }
            Lanes::Affine(s, base) if !limits.never && s.is_linear() && s.stride >= 0 && s.stride % bytes == 0 => {
                let whole = is_load && s.stride > 0;
                Some(self.test_ends(mem, s.stride, base[0], operands[0].1, limits, m, whole, cold))
            }
            _ => None,
        };
        let mut used = 0;
        let mut ready = Vec::new();
        for (k, (l, ty)) in operands.iter().enumerate() {
            // The address of a linear access is counted, not read.
            let l = if k == 0 && linear.is_some() { &Lanes::Row(0) } else { l };
            ready.push(self.ready(l, *ty, &mut used));
        }
        let (head, body, next) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let index = self.b.append_block_param(head, types::I64);
        let rest = self.b.append_block_param(head, types::I32);
        let (start, lanes) = self.first_pack(m);
        self.b.ins().jump(head, &[start.into(), lanes.into()]);
        self.b.switch_to_block(head);
        let nibble = self.b.ins().band_imm_s(rest, 15);
        self.b.ins().brif(nibble, body, &[], next, &[]);
        self.b.switch_to_block(body);
        self.pack_access(inst, mem, operands, &ready, dst, limits, linear, index, nibble, cold, next);
        self.b.switch_to_block(next);
        let index2 = self.b.ins().iadd_imm_s(index, 1);
        let rest2 = self.b.ins().ushr_imm_s(rest, 4);
        self.b.ins().brif(rest2, head, &[index2.into(), rest2.into()], done, &[]);
        self.b.switch_to_block(cold);
        self.lanes_by_routine(inst, mem, operands, dst, m, done);
        self.b.switch_to_block(done);
    }

    /// The start of a load that a loop over packs does together with other ops: tests it, or lets the routine do it. Gives the address that pack 0
    /// reads from; packs are 16 bytes apart there, in memory as in the row where the routine left the result.
    pub(crate) fn begin_load(&mut self, inst: &Inst, mem: &MemOp, address: (Lanes, Ty), dst: u32, m: Value) -> Value {
        let (cold, join) = (self.cold_block(), self.b.create_block());
        let from = self.b.append_block_param(join, types::I64);
        let limits = self.limits(mem, 4);
        let Lanes::Affine(_, base) = &address.0 else { panic!("a load by rows in a loop over packs") };
        let at = self.test_ends(mem, 4, base[0], address.1, limits, m, true, cold);
        self.b.ins().jump(join, &[at.into()]);
        self.b.switch_to_block(cold);
        let done = self.b.create_block();
        self.lanes_by_routine(inst, mem, &[address], &[dst], m, done);
        self.b.switch_to_block(done);
        let row = self.moved(self.warp, i64::from(dst));
        self.b.ins().jump(join, &[row.into()]);
        self.b.switch_to_block(join);
        from
    }

    /// Number of the first pack that has lanes in a mask, and the mask without the packs before it.
    pub(crate) fn first_pack(&mut self, m: Value) -> (Value, Value) {
        let lane = self.b.ins().ctz(m);
        // No lane at all is the last pack.
        let lane = self.b.ins().band_imm_s(lane, 28);
        let rest = self.b.ins().ushr(m, lane);
        let pack = self.b.ins().ushr_imm_s(lane, 2);
        (self.b.ins().uextend(types::I64, pack), rest)
    }

    /// Whether `length` bytes at an address of lane 0 are refused as bytes of its own local memory.
    pub(crate) fn own_refused(&mut self, at: Value, length: i64, align: i64) -> Value {
        let window = self.load_warp(types::I64, offset_of!(WarpCtx, window));
        let off = self.b.ins().isub(at, window);
        self.outside_own(off, length, align)
    }

    /// Whether `length` bytes at this distance from the start of a thread's local memory are not inside, or not aligned.
    fn outside_own(&mut self, off: Value, length: i64, align: i64) -> Value {
        let k = align.trailing_zeros();
        // The largest distance, in units of the alignment. None is as small as needed for what does not fit at all.
        let units = (self.facts.local_stride - length).div_euclid(align) + 1;
        let off = if k == 0 {
            off
        } else {
            let amount = self.b.ins().iconst(types::I32, i64::from(k));
            self.b.ins().rotr(off, amount)
        };
        self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThanOrEqual, off, units.max(0))
    }

    /// An address with its offset, as 64 bits.
    fn host_base(&mut self, mem: &MemOp, base: Value, ty: Ty) -> Value {
        let base = if ty == Ty::B64 { base } else { self.b.ins().uextend(types::I64, base) };
        self.b.ins().iadd_imm_s(base, mem.class.offset)
    }

    fn limits(&mut self, mem: &MemOp, bytes: i64) -> Limits {
        if mem.class.space == StateSpace::Shared {
            let size = self.load_cta(types::I64, offset_of!(CtaCtx, shared_size));
            let last = self.b.ins().iadd_imm_s(size, -bytes);
            let none = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, last, 0);
            let last = self.b.ins().band_imm_s(last, -mem.bytes());
            let limit = self.b.ins().iadd_imm_s(last, mem.bytes());
            let host = self.load_cta(types::I64, offset_of!(CtaCtx, shared_base));
            return Limits { base: None, limit, none: Some(none), host: Some(host), never: false, own: None };
        }
        let own = mem.class.own();
        let never = own == Own::Always;
        let own = (own != Own::Never).then(|| self.load_warp(types::I64, offset_of!(WarpCtx, window)));
        if never {
            let zero = self.i64(0);
            return Limits { base: None, limit: zero, none: None, host: None, never: true, own };
        }
        let (base, limit) = self.bounds(mem, bytes);
        Limits { base: Some(base), limit, none: None, host: None, never: false, own }
    }

    /// Whether an address (offset included) is refused.
    fn lane_refused(&mut self, mem: &MemOp, at: Value, l: Limits) -> Value {
        let off = match l.base {
            Some(base) => self.b.ins().isub(at, base),
            None => at,
        };
        let k = mem.bytes().trailing_zeros();
        let over = if k == 0 {
            self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, off, l.limit)
        } else {
            let amount = self.b.ins().iconst(types::I32, i64::from(k));
            let turned = self.b.ins().rotr(off, amount);
            let limit = self.b.ins().ushr_imm_s(l.limit, i64::from(k));
            self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, turned, limit)
        };
        match l.none {
            Some(n) => self.b.ins().bor(over, n),
            None => over,
        }
    }

    /// Whether the end of a range is refused whose start has passed.
    fn end_refused(&mut self, at: Value, l: Limits) -> Value {
        let off = match l.base {
            Some(base) => self.b.ins().isub(at, base),
            None => at,
        };
        self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, off, l.limit)
    }

    /// Tests the first and last lane of `m` of a linear address; gives the host address of lane 0 (which need not be in bounds).
    #[allow(clippy::too_many_arguments, reason = "an address with its shape, its test, and who takes part")]
    fn test_ends(
        &mut self,
        mem: &MemOp,
        stride: i64,
        base: Value,
        ty: Ty,
        l: Limits,
        m: Value,
        whole: bool,
        cold: clif::Block,
    ) -> Value {
        let base = self.host_base(mem, base, ty);
        let first = self.b.ins().ctz(m);
        let above = self.b.ins().clz(m);
        let top = self.i32(31);
        let last = self.b.ins().isub(top, above);
        let (first, last) =
            if whole { (self.b.ins().band_imm_s(first, 28), self.b.ins().bor_imm_s(last, 3)) } else { (first, last) };
        let lane_at = |e: &mut Self, lane: Value| {
            let lane = e.b.ins().uextend(types::I64, lane);
            let d = e.b.ins().imul_imm_s(lane, stride);
            e.b.ins().iadd(base, d)
        };
        let low = lane_at(self, first);
        let high = lane_at(self, last);
        let bad = self.lane_refused(mem, low, l);
        let bad2 = self.end_refused(high, l);
        let bad = self.b.ins().bor(bad, bad2);
        let go = self.b.create_block();
        self.b.ins().brif(bad, cold, &[], go, &[]);
        self.b.switch_to_block(go);
        match l.host {
            Some(h) => self.b.ins().iadd(base, h),
            None => base,
        }
    }

    fn ready(&mut self, l: &Lanes, ty: Ty, used: &mut u32) -> Ready {
        match l {
            Lanes::Row(at) => Ready::Row(*at),
            Lanes::Affine(s, base) if s.is_uniform() => Ready::Vectors(self.spread(base[0], 0, ty)),
            Lanes::Affine(s, base) => {
                let at = self.plan.layout.words + 64 * *used;
                *used += 1;
                for p in 0..PACKS {
                    let first = self.first_lane(&(*s, base.clone()), p, ty);
                    let w = self.as_word(first, ty);
                    self.store_warp(w, at as usize + 8 * p);
                }
                Ready::Words(at, s.stride)
            }
        }
    }

    /// The vectors of an operand for pack `index`.
    fn ready_vectors(&mut self, r: &Ready, ty: Ty, index: Value) -> Vec<Value> {
        match r {
            Ready::Vectors(v) => v.clone(),
            Ready::Words(at, stride) => {
                let d = self.b.ins().ishl_imm_s(index, 3);
                let from = self.b.ins().iadd(self.warp, d);
                let first = self.b.ins().load(scalar_type(ty), Self::trusted(), from, *at as i32);
                self.spread(first, *stride, ty)
            }
            Ready::Row(at) => {
                let from = self.row_at(index, ty);
                let t = vector_type(ty);
                (0..width(ty) as i32)
                    .map(|h| self.b.ins().load(t, Self::trusted(), from, *at as i32 + 16 * h))
                    .collect()
            }
        }
    }

    /// Context plus the distance of pack `index` in a row.
    fn row_at(&mut self, index: Value, ty: Ty) -> Value {
        let d = self.b.ins().ishl_imm_s(index, if ty == Ty::B64 { 5 } else { 4 });
        self.b.ins().iadd(self.warp, d)
    }

    #[allow(clippy::too_many_arguments, reason = "one turn of the loop of `lane_access`, taken out for length")]
    fn pack_access(
        &mut self,
        inst: &Inst,
        mem: &MemOp,
        operands: &[(Lanes, Ty)],
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
            ready[1..].iter().zip(&operands[1..]).map(|(r, (_, ty))| self.ready_vectors(r, *ty, index)).collect();
        let pack_base = linear.map(|base| {
            let Lanes::Affine(s, _) = &operands[0].0 else { return (base, 0) };
            let d = self.b.ins().imul_imm_s(index, s.stride * LANES as i64);
            (self.b.ins().iadd(base, d), s.stride)
        });
        if let Some((base, stride)) = pack_base
            && stride > 0
            && !is_store
        {
            let out = self.load_pack(mem, base, 0, stride);
            let mask = self.mask_of_nibble(nibble);
            let mut blended = Vec::new();
            for (new, at) in out.iter().zip(dst) {
                let old = self.ready_vectors(&Ready::Row(*at), mem.ty, index);
                blended.push(self.blend(mask, new, &old));
            }
            self.write_rows(&blended, dst, mem.ty, index);
            self.b.ins().jump(next, &[]);
            return;
        }
        if let Some((base, stride)) = pack_base
            && stride > 0
        {
            // All four lanes: as vectors.
            let (whole, parts) = (self.b.create_block(), self.b.create_block());
            let all = self.b.ins().icmp_imm_s(IntCC::Equal, nibble, 15);
            self.b.ins().brif(all, whole, &[], parts, &[]);
            self.b.switch_to_block(whole);
            let packs: Vec<&[Value]> = data.iter().map(Vec::as_slice).collect();
            self.store_pack(mem, &packs, base, 0, stride);
            self.b.ins().jump(next, &[]);
            self.b.switch_to_block(parts);
        }
        let addr = if linear.is_some() { vec![] } else { self.ready_vectors(&ready[0], aty, index) };
        // Where the local memory of the pack's first lane begins.
        let own = limits.own.filter(|_| linear.is_none()).map(|window| {
            let d = self.b.ins().imul_imm_s(index, self.facts.local_stride * LANES as i64);
            self.b.ins().iadd(window, d)
        });
        let limits = Limits { own, ..limits };
        let mut results: Vec<Vec<Value>> =
            dst.iter().map(|at| self.ready_vectors(&Ready::Row(*at), mem.ty, index)).collect();
        for l in 0..LANES {
            let (on, off) = (self.b.create_block(), self.b.create_block());
            let flat: Vec<Value> = results.iter().flatten().copied().collect();
            let params: Vec<Value> = flat
                .iter()
                .map(|v| {
                    let t = self.b.func.dfg.value_type(*v);
                    self.b.append_block_param(off, t)
                })
                .collect();
            let args: Vec<clif::BlockArg> = flat.iter().map(|v| (*v).into()).collect();
            let bit = self.b.ins().band_imm_s(nibble, 1 << l);
            self.b.ins().brif(bit, on, &[], off, &args);
            self.b.switch_to_block(on);
            let (host, d) = match pack_base {
                Some((base, stride)) => (base, (stride * l as i64) as i32),
                None => (self.lane_host(mem, &addr, l, aty, limits, cold), 0),
            };
            let mut new = results.clone();
            for e in 0..usize::from(mem.class.count) {
                let at = d + (e * mem.class.bits as usize / 8) as i32;
                if is_store {
                    let v = self.extract(&data[e], l);
                    self.store_scalar(mem, v, host, at);
                } else {
                    let v = self.load_scalar(mem, host, at);
                    self.insert(&mut new[e], l, v);
                }
            }
            let args: Vec<clif::BlockArg> = new.iter().flatten().map(|v| (*v).into()).collect();
            self.b.ins().jump(off, &args);
            self.b.switch_to_block(off);
            let w = width(mem.ty);
            results = params.chunks(w).map(<[Value]>::to_vec).collect();
        }
        self.write_rows(&results, dst, mem.ty, index);
        self.b.ins().jump(next, &[]);
    }

    /// Host address of a lane, tested; `cold` if it is refused.
    fn lane_host(&mut self, mem: &MemOp, addr: &[Value], l: usize, ty: Ty, limits: Limits, cold: clif::Block) -> Value {
        let a = self.extract(addr, l);
        let a = if ty == Ty::B64 { a } else { self.b.ins().uextend(types::I64, a) };
        let at = self.b.ins().iadd_imm_s(a, mem.class.offset);
        let go = self.b.create_block();
        let other = if limits.own.is_some() { self.b.create_block() } else { cold };
        if limits.never {
            self.b.ins().jump(other, &[]);
        } else {
            let bad = self.lane_refused(mem, at, limits);
            self.b.ins().brif(bad, other, &[], go, &[]);
        }
        if let Some(own) = limits.own {
            self.b.switch_to_block(other);
            let lane = self.b.ins().iadd_imm_s(at, -self.facts.local_stride * l as i64);
            let off = self.b.ins().isub(lane, own);
            let bad = self.outside_own(off, mem.bytes(), mem.bytes());
            self.b.ins().brif(bad, cold, &[], go, &[]);
        }
        self.b.switch_to_block(go);
        match limits.host {
            Some(h) => self.b.ins().iadd(at, h),
            None => at,
        }
    }

    fn extract(&mut self, v: &[Value], l: usize) -> Value {
        if v.len() == 2 {
            self.b.ins().extractlane(v[l / 2], (l % 2) as u8)
        } else {
            self.b.ins().extractlane(v[0], l as u8)
        }
    }

    fn insert(&mut self, v: &mut [Value], l: usize, x: Value) {
        if v.len() == 2 {
            v[l / 2] = self.b.ins().insertlane(v[l / 2], x, (l % 2) as u8);
        } else {
            v[0] = self.b.ins().insertlane(v[0], x, l as u8);
        }
    }

    fn write_rows(&mut self, v: &[Vec<Value>], dst: &[u32], ty: Ty, index: Value) {
        let from = self.row_at(index, ty);
        for (x, at) in v.iter().zip(dst) {
            for (h, part) in x.iter().enumerate() {
                self.b.ins().store(Self::trusted(), *part, from, *at as i32 + 16 * h as i32);
            }
        }
    }

    /// An atomic by the lanes of `m`, one after the other in ascending order. Operands in rows: address, then values.
    pub(crate) fn lane_atomic(
        &mut self,
        inst: &Inst,
        a: AtomAccess,
        offset: i64,
        operands: &[(Lanes, Ty)],
        dst: &[u32],
        m: Value,
    ) {
        let mem = self.mem_op(inst);
        let (cold, done, some) = (self.cold_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().brif(m, some, &[], done, &[]);
        self.b.switch_to_block(some);
        let limits = self.limits(&mem, mem.bytes());
        // Every operand as a row, so that a lane's place can be computed.
        let rows: Vec<(u32, Ty)> = operands
            .iter()
            .map(|(l, ty)| match l {
                Lanes::Row(at) => (*at, *ty),
                Lanes::Affine(s, base) => {
                    let (at, _) = self.scratch_row(*ty);
                    let v = self.rows(&Rep::Affine(*s, base.clone()), *ty);
                    for (i, x) in v.into_iter().enumerate() {
                        self.store_warp(x, at as usize + 16 * i);
                    }
                    (at, *ty)
                }
            })
            .collect();
        // First all tests, then all effects.
        let check = |e: &mut Self, _lane: Value, at: Value| {
            let bad = e.lane_refused(&mem, at, limits);
            let go = e.b.create_block();
            e.b.ins().brif(bad, cold, &[], go, &[]);
            e.b.switch_to_block(go);
        };
        self.each_lane(m, rows[0], offset, check);
        let ty = mem.ty;
        let effect = |e: &mut Self, lane: Value, at: Value| {
            let host = match limits.host {
                Some(h) => e.b.ins().iadd(at, h),
                None => at,
            };
            let x = e.lane_word(lane, rows[1]);
            let y = rows.get(2).map(|r| e.lane_word(lane, *r));
            let old = e.atomic_word(a, host, x, y, ty);
            if let Some(d) = dst.first() {
                let from = e.lane_place(lane, ty);
                e.b.ins().store(Self::trusted(), old, from, *d as i32);
            }
            if e.plan.tells_dirty {
                let new = e.new_word(a, old, x, y);
                let changed = e.b.ins().icmp(IntCC::NotEqual, old, new);
                let changed = e.b.ins().uextend(types::I32, changed);
                let was = e.load_cta(types::I32, offset_of!(CtaCtx, dirty));
                let both = e.b.ins().bor(was, changed);
                e.store_cta(both, offset_of!(CtaCtx, dirty));
            }
        };
        self.each_lane(m, rows[0], offset, effect);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(cold);
        let held: Vec<(Lanes, Ty)> = rows.iter().map(|(at, ty)| (Lanes::Row(*at), *ty)).collect();
        self.lanes_by_routine(inst, &mem, &held, dst, m, done);
        self.b.switch_to_block(done);
    }

    /// Context plus the distance of a lane in a row.
    fn lane_place(&mut self, lane: Value, ty: Ty) -> Value {
        let d = self.b.ins().ishl_imm_s(lane, if ty == Ty::B64 { 3 } else { 2 });
        self.b.ins().iadd(self.warp, d)
    }

    fn lane_word(&mut self, lane: Value, row: (u32, Ty)) -> Value {
        let from = self.lane_place(lane, row.1);
        self.b.ins().load(scalar_type(row.1), Self::trusted(), from, row.0 as i32)
    }

    /// A loop over the lanes of a mask that is not empty, with each lane's address (offset included).
    fn each_lane(&mut self, m: Value, addr: (u32, Ty), offset: i64, f: impl Fn(&mut Self, Value, Value)) {
        let (head, exit) = (self.b.create_block(), self.b.create_block());
        let rest = self.b.append_block_param(head, types::I32);
        self.b.ins().jump(head, &[m.into()]);
        self.b.switch_to_block(head);
        let lane = self.b.ins().ctz(rest);
        let lane = self.b.ins().uextend(types::I64, lane);
        let a = self.lane_word(lane, addr);
        let a = if addr.1 == Ty::B64 { a } else { self.b.ins().uextend(types::I64, a) };
        let at = self.b.ins().iadd_imm_s(a, offset);
        f(self, lane, at);
        let less = self.b.ins().iadd_imm_s(rest, -1);
        let rest2 = self.b.ins().band(rest, less);
        self.b.ins().brif(rest2, head, &[rest2.into()], exit, &[]);
        self.b.switch_to_block(exit);
    }

    /// One read-modify-write: the old value.
    pub(crate) fn atomic_word(&mut self, a: AtomAccess, host: Value, x: Value, y: Option<Value>, ty: Ty) -> Value {
        let t = scalar_type(ty);
        if a.space != StateSpace::Global {
            let old = self.b.ins().load(t, Self::device(), host, 0);
            let new = self.new_word(a, old, x, y);
            self.b.ins().store(Self::device(), new, host, 0);
            return old;
        }
        let flags = clif::MemFlagsData::new().with_notrap();
        if let (AtomOp::Cas, Some(y)) = (a.op, y) {
            return self.b.ins().atomic_cas(flags, host, x, y);
        }
        let op = match (a.op, a.ty.is_signed()) {
            (AtomOp::Add, _) => AtomicRmwOp::Add,
            (AtomOp::And, _) => AtomicRmwOp::And,
            (AtomOp::Or, _) => AtomicRmwOp::Or,
            (AtomOp::Xor, _) => AtomicRmwOp::Xor,
            (AtomOp::Min, true) => AtomicRmwOp::Smin,
            (AtomOp::Min, false) => AtomicRmwOp::Umin,
            (AtomOp::Max, true) => AtomicRmwOp::Smax,
            (AtomOp::Max, false) => AtomicRmwOp::Umax,
            (AtomOp::Exch | AtomOp::Cas | AtomOp::Inc | AtomOp::Dec | AtomOp::Step, _) => AtomicRmwOp::Xchg,
        };
        self.b.ins().atomic_rmw(t, flags, op, host, x)
    }

    /// What an atomic writes.
    fn new_word(&mut self, a: AtomAccess, old: Value, x: Value, y: Option<Value>) -> Value {
        let signed = a.ty.is_signed();
        match a.op {
            AtomOp::Add => self.b.ins().iadd(old, x),
            AtomOp::And => self.b.ins().band(old, x),
            AtomOp::Or => self.b.ins().bor(old, x),
            AtomOp::Xor => self.b.ins().bxor(old, x),
            AtomOp::Min if signed => self.b.ins().smin(old, x),
            AtomOp::Min => self.b.ins().umin(old, x),
            AtomOp::Max if signed => self.b.ins().smax(old, x),
            AtomOp::Max => self.b.ins().umax(old, x),
            AtomOp::Cas => {
                let hit = self.b.ins().icmp(IntCC::Equal, old, x);
                self.b.ins().select(hit, y.unwrap_or(x), old)
            }
            AtomOp::Exch | AtomOp::Inc | AtomOp::Dec | AtomOp::Step => x,
        }
    }
}
