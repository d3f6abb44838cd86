//! Accesses of full copies whose addresses have no known relation, and those that the routine does.

use std::mem::offset_of;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::Ty;
use handloom_plan::abi::*;
use handloom_plan::access::Own;
use handloom_plan::analysis::shape::{LANES, PACKS};

use super::memory::MemOp;
use super::rep::{Rep, width};
use super::{Emit, FULL};

impl Emit<'_, '_> {
    /// Addresses without a known relation: one test of all, then lane by lane.
    pub(crate) fn access_scattered(&mut self, mem: &MemOp, inst: &Inst, addr: &Rep, data: &[Rep]) -> Vec<Rep> {
        let aty = self.ty(mem.class.address);
        let rows = self.rows(addr, aty);
        let bad = if mem.is_shared() && aty != Ty::B64 {
            self.refuse_shared(mem, &rows)
        } else if mem.is_shared() {
            None
        } else {
            Some(self.refuse_rows(mem, &rows))
        };
        let Some(bad) = bad else {
            let m = self.i32(FULL);
            return self.access_by_routine(mem, inst, addr, data, m, &[]);
        };
        let (cold, go, join) = (self.cold_block(), self.b.create_block(), self.b.create_block());
        let n = usize::from(mem.class.count);
        let is_store = matches!(inst.op, Op::Store { .. });
        let values: Vec<Vec<Value>> = data.iter().map(|r| self.rows(r, mem.ty)).collect();
        let shared = mem.is_shared().then(|| self.shared_base());
        let on = self.on_line();
        let has_own = mem.class.own() != Own::Never && self.facts.local_stride >= mem.bytes();
        if has_own {
            let other = self.b.create_block();
            self.b.ins().brif(bad, other, &[], go, &[]);
            self.b.switch_to_block(other);
            let bad = self.refuse_own_rows(mem, &rows);
            self.b.ins().brif(bad, cold, &[], go, &[]);
        } else {
            self.b.ins().brif(bad, cold, &[], go, &[]);
        }
        self.b.switch_to_block(cold);
        let m = self.i32(FULL);
        let held: Vec<Rep> = values.iter().map(|v| Rep::Rows(v.clone())).collect();
        let out = self.access_at_site(mem.site, mem, inst, (&Rep::Rows(rows.clone()), &held), m, &[]);
        let args: Vec<clif::BlockArg> = self.flatten(&out, mem.ty).into_iter().map(Into::into).collect();
        self.b.ins().jump(join, &args);
        self.b.switch_to_block(go);
        let mut results: Vec<Vec<Value>> = vec![Vec::new(); if is_store { 0 } else { n }];
        for p in 0..PACKS {
            let mut loaded: Vec<Vec<Value>> = vec![Vec::new(); n];
            for l in 0..LANES {
                let host = self.lane_address(&rows, p, l, aty, shared);
                for e in 0..n {
                    if is_store && mem.class.elements >> e & 1 == 0 {
                        continue;
                    }
                    let d = (mem.class.offset + e as i64 * mem.size()) as i32;
                    if is_store {
                        let w = width(mem.ty);
                        let v = if w == 2 {
                            self.b.ins().extractlane(values[e][2 * p + l / 2], (l % 2) as u8)
                        } else {
                            self.b.ins().extractlane(values[e][p], l as u8)
                        };
                        self.store_scalar(mem, v, host, d);
                    } else {
                        let v = self.load_scalar(mem, host, d);
                        loaded[e].push(v);
                    }
                }
            }
            for (e, r) in results.iter_mut().enumerate() {
                r.extend(self.gather(&loaded[e], mem.ty));
            }
        }
        let args: Vec<clif::BlockArg> = results.iter().flatten().map(|v| (*v).into()).collect();
        for v in results.iter().flatten() {
            let t = self.b.func.dfg.value_type(*v);
            self.b.append_block_param(join, t);
        }
        self.b.ins().jump(join, &args);
        self.rejoin(join, on);
        let params = self.b.block_params(join).to_vec();
        let w = PACKS * width(mem.ty);
        (0..results.len()).map(|i| Rep::Rows(params[i * w..(i + 1) * w].to_vec())).collect()
    }

    pub(crate) fn lane_address(&mut self, rows: &[Value], p: usize, l: usize, ty: Ty, shared: Option<Value>) -> Value {
        let a = if ty == Ty::B64 {
            self.b.ins().extractlane(rows[2 * p + l / 2], (l % 2) as u8)
        } else {
            let v = self.b.ins().extractlane(rows[p], l as u8);
            self.b.ins().uextend(types::I64, v)
        };
        match shared {
            Some(b) => self.b.ins().iadd(a, b),
            None => a,
        }
    }

    /// Whether the quick test refuses any of 32 host addresses.
    pub(crate) fn refuse_rows(&mut self, mem: &MemOp, rows: &[Value]) -> Value {
        let (base, limit) = self.bounds(mem, mem.bytes());
        self.refuse_apart(mem, rows, base, limit, 0)
    }

    /// Whether any of 32 addresses is not in the lane's own local memory.
    fn refuse_own_rows(&mut self, mem: &MemOp, rows: &[Value]) -> Value {
        let window = self.load_warp(types::I64, offset_of!(WarpCtx, window));
        let limit = self.i64(self.facts.local_stride - mem.bytes() + 1);
        self.refuse_apart(mem, rows, window, limit, self.facts.local_stride)
    }

    /// Whether any of 32 addresses is misaligned, or `limit` bytes or more behind `base`, which moves by `stride` from lane to lane.
    fn refuse_apart(&mut self, mem: &MemOp, rows: &[Value], base: Value, limit: Value, stride: i64) -> Value {
        let rows: Vec<Value> = if self.ty(mem.class.address) == Ty::B64 {
            rows.to_vec()
        } else {
            rows.iter().flat_map(|v| [self.b.ins().uwiden_low(*v), self.b.ins().uwiden_high(*v)]).collect()
        };
        // Signed comparison of values moved by 2^63 is unsigned comparison.
        let moved = self.b.ins().iadd_imm_s(base, i64::MIN.wrapping_sub(mem.class.offset));
        let moved = self.b.ins().splat(types::I64X2, moved);
        let limit = self.b.ins().bxor_imm_s(limit, i64::MIN);
        let limit = self.b.ins().splat(types::I64X2, limit);
        let mut inside = None;
        let mut any = None;
        for (lane, v) in (0..).step_by(2).zip(rows) {
            let start = match stride {
                0 => moved,
                _ => {
                    let apart = self.vector_const64([(stride * lane) as u64, (stride * (lane + 1)) as u64]);
                    self.b.ins().iadd(moved, apart)
                }
            };
            let t = self.b.ins().isub(v, start);
            let g = self.b.ins().icmp(IntCC::SignedGreaterThan, limit, t);
            inside = Some(inside.map_or(g, |o| self.b.ins().band(o, g)));
            any = Some(any.map_or(v, |o| self.b.ins().bor(o, v)));
        }
        let (inside, any) = (inside.unwrap_or(moved), any.unwrap_or(moved));
        let passed = self.b.ins().vhigh_bits(types::I32, inside);
        let refused = self.b.ins().bxor_imm_s(passed, 3);
        let a = mem.bytes();
        if a == 1 {
            return refused;
        }
        let low = self.vector_const64([(a - 1) as u64; 2]);
        let shift = self.vector_const64([mem.class.offset as u64; 2]);
        let any = if mem.class.offset % a == 0 { any } else { self.b.ins().bor(any, shift) };
        let odd = self.b.ins().band(any, low);
        let zero = self.vector_const64([0, 0]);
        let odd = self.b.ins().icmp(IntCC::NotEqual, odd, zero);
        let odd = self.b.ins().vhigh_bits(types::I32, odd);
        self.b.ins().bor(refused, odd)
    }

    /// The same for 32-bit offsets in shared memory; `None` for offsets that need the routine.
    pub(crate) fn refuse_shared(&mut self, mem: &MemOp, rows: &[Value]) -> Option<Value> {
        if mem.class.offset < 0 || mem.class.offset > 1 << 20 {
            return None;
        }
        let size = self.load_cta(types::I64, offset_of!(CtaCtx, shared_size));
        let room = self.b.ins().iadd_imm_s(size, -(mem.class.offset + mem.bytes()));
        let none = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, room, 0);
        let mut most = rows[0];
        let mut any = rows[0];
        for v in &rows[1..] {
            most = self.b.ins().umax(most, *v);
            any = self.b.ins().bor(any, *v);
        }
        // Two halves, then two lanes: the largest of all.
        let x = self.shuffle32(most, most, [2, 3, 2, 3]);
        let most = self.b.ins().umax(most, x);
        let x = self.shuffle32(most, most, [1, 1, 1, 1]);
        let most = self.b.ins().umax(most, x);
        let top = self.b.ins().extractlane(most, 0);
        let top = self.b.ins().uextend(types::I64, top);
        let over = self.b.ins().icmp(IntCC::UnsignedGreaterThan, top, room);
        let mut bad = self.b.ins().bor(over, none);
        let a = mem.bytes();
        if mem.class.offset % a != 0 {
            return None;
        }
        if a > 1 {
            let low = self.vector_const32([(a - 1) as u32; 4]);
            let odd = self.b.ins().band(any, low);
            let odd = self.b.ins().vany_true(odd);
            bad = self.b.ins().bor(bad, odd);
        }
        Some(bad)
    }

    /// The access by the routine, for the lanes of `mask`. `old`: what results hold in other lanes.
    pub(crate) fn access_by_routine(
        &mut self,
        mem: &MemOp,
        inst: &Inst,
        addr: &Rep,
        data: &[Rep],
        mask: Value,
        old: &[Rep],
    ) -> Vec<Rep> {
        // A site of its own: its cache is for single accesses.
        let site = self.tables.mems.len();
        let copy = self.tables.mems[mem.site].clone();
        self.tables.mems.push(copy);
        self.access_at_site(site, mem, inst, (addr, data), mask, old)
    }

    pub(crate) fn access_at_site(
        &mut self,
        site: usize,
        mem: &MemOp,
        inst: &Inst,
        (addr, data): (&Rep, &[Rep]),
        mask: Value,
        old: &[Rep],
    ) -> Vec<Rep> {
        self.n_scratch_used = 0;
        let aty = self.ty(mem.class.address);
        let addr = self.loc_of(addr, aty);
        let types: Vec<Ty> = inst.operands()[1..].iter().map(|v| self.ty(*v)).collect();
        let src: Vec<Loc> =
            std::iter::once(addr).chain(data.iter().zip(types).map(|(d, t)| self.loc_of(d, t))).collect();
        let outs: Vec<(u32, Loc, Ty)> = inst
            .dst
            .iter()
            .map(|d| {
                let ty = self.f.regs[d.idx()];
                let (at, loc) = self.scratch_row(ty);
                (at, loc, ty)
            })
            .collect();
        for (i, r) in old.iter().enumerate() {
            let rows = self.rows(r, outs[i].2);
            for (k, v) in rows.into_iter().enumerate() {
                self.store_warp(v, outs[i].0 as usize + 16 * k);
            }
        }
        let dst = outs.iter().map(|o| o.1).collect();
        self.tables.mems[site] = self.site_of(inst, &src, dst);
        let ok = self.routine(Routine::Memory, site, mask, None, None);
        self.go_on_if(ok);
        outs.into_iter().map(|(at, _, ty)| self.read_scratch(at, ty)).collect()
    }
}
