//! Loads and stores.
//!
//! Addresses are tested before anything happens: a uniform one alone, neighbouring ones by their ends, others as vectors. What a test refuses is done by the
//! routine, which knows all rules, in code after all blocks; it comes back with the results. Neighbouring elements are read and written as vectors
//! under a mask, others by the gathers and scatters of the host; a scatter writes its lanes in ascending order, as the manual's order of lanes here is.

use std::mem::{offset_of, size_of};

use handloom_ir::simt::{Inst, Op, Reg, Val};
use handloom_ir::types::{Order, StateSpace, Ty};
use handloom_plan::Bounds;
use handloom_plan::abi::{CtaCtx, SiteCache, WarpCtx};
use handloom_plan::access::{AccessClass, Kind, Own};
use handloom_plan::analysis::shape::{LANES as PACK, Shape};
use iced_x86::{Code, Register};

use crate::alloc::Place;
use crate::asm::{Label, Mem, Out};
use crate::emit::*;
use crate::values::{Src, is_wide, load_code, store_code};

const R8: Register = Register::R8;
const R9: Register = Register::R9;
const R10: Register = Register::R10;
const R11: Register = Register::R11;

/// Where lanes of a part lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// All at one address.
    Same,
    /// Elements follow each other through the whole warp.
    Row,
    /// Elements follow each other within each part of a vector.
    Parts,
    /// Anywhere.
    Scattered,
}

/// What a test is against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Limits {
    /// Nothing: the address is known to be right.
    Safe,
    /// An allocation, or the heap.
    Heap(usize),
    /// The CTA's shared memory.
    Shared,
    /// The thread's own local memory.
    Own,
}

struct Access {
    class: AccessClass,
    limits: Limits,
    /// Lanes that take part.
    lanes: Register,
    cold: Label,
    /// IR type of an element.
    ty: Ty,
    /// Addresses are offsets of 32 bits.
    short: bool,
}

impl Access {
    fn size(&self) -> i32 {
        i32::from(self.class.bits) / 8
    }
}

impl Emit<'_> {
    /// A load, a store or an atomic.
    pub(crate) fn access(&mut self, inst: &Inst) {
        let skip = self.a.label();
        let lanes = match inst.guard() {
            None => LANES,
            Some(g) => {
                let g = self.src(g);
                self.bits(&g);
                self.a.op2(Code::And_r32_rm32, EAX, LANES);
                self.a.op2(Code::Mov_r32_rm32, TAKERS, EAX);
                self.a.jump(Code::Je_rel32_64, skip);
                TAKERS
            }
        };
        match self.inline(inst) {
            Some((class, limits)) => self.plain(inst, class, limits, lanes, skip),
            None => self.memory_routine(inst, lanes, None),
        }
        self.a.bind(skip);
    }

    /// What a load or store is tested against, if it is done here.
    fn inline(&mut self, inst: &Inst) -> Option<(AccessClass, Limits)> {
        use StateSpace::{Const, Generic, Global, Local, ParamFunc, Shared};
        let class = AccessClass::of(inst)?;
        let plain = matches!(class.kind, Kind::Load | Kind::Store)
            && class.order == Order::Weak
            && !class.is_single
            && class.wants_all();
        let n_scalars = inst.dst.iter().filter(|d| matches!(self.place(**d), Place::Words(_))).count();
        if !plain || (n_scalars != 0 && n_scalars != inst.dst.len()) {
            return None;
        }
        let short = self.ty(class.address) != Ty::B64;
        let limits = if self.is_safe(&class) {
            Limits::Safe
        } else {
            match class.space {
                Global | Const | Generic => Limits::Heap(self.mem_site(inst, &[], vec![])),
                Shared => Limits::Shared,
                Local | ParamFunc if class.own() == Own::Always => Limits::Own,
                _ => return None,
            }
        };
        // Other spaces have host addresses.
        (!short || limits == Limits::Shared).then_some((class, limits))
    }

    /// Whether an address needs no test: parameters and frame slots at constant offsets.
    fn is_safe(&self, class: &AccessClass) -> bool {
        let Val::Reg(r) = class.address else { return false };
        let bytes = class.bytes();
        match self.plan.origins[r.idx()] {
            Some(Op::ParamAddr { offset }) => {
                let at = i64::from(offset).wrapping_add(class.offset);
                class.space == StateSpace::ParamEntry
                    && at >= 0
                    && at + bytes <= i64::from(self.f.param_bytes)
                    && at % bytes == 0
            }
            Some(Op::SlotAddr(slot)) => {
                let s = self.f.slots[slot.idx()];
                matches!(class.space, StateSpace::Local | StateSpace::Generic)
                    && class.offset >= 0
                    && class.offset + bytes <= i64::from(s.size)
                    && class.offset % bytes == 0
                    && i64::from(s.align) % bytes == 0
            }
            _ => false,
        }
    }

    fn plain(&mut self, inst: &Inst, class: AccessClass, limits: Limits, lanes: Register, done: Label) {
        let ty = match class.bits {
            8 | 16 => Ty::B16,
            32 => Ty::B32,
            _ => Ty::B64,
        };
        let cold = self.a.label();
        let x = Access { class, limits, lanes, cold, ty, short: self.ty(class.address) != Ty::B64 };
        let is_load = class.kind == Kind::Load;
        let scalars = is_load && inst.dst.iter().all(|d| !matches!(self.place(*d), Place::Vectors(_) | Place::Row(_)));
        let shape = self.shape(class.address);
        let form = match shape {
            Some(s) if s.is_uniform() && is_load => Form::Same,
            Some(s) if class.count == 1 && s.is_linear() && s.stride == i64::from(x.size()) => Form::Row,
            Some(s) if class.count == 1 && self.is_by_parts(&s, &x) => Form::Parts,
            _ => Form::Scattered,
        };
        if scalars {
            self.load_words(inst, &x);
        } else {
            match form {
                Form::Same => self.load_same(inst, &x),
                Form::Row | Form::Parts => self.neighbours(inst, &x, form == Form::Row),
                Form::Scattered => self.scattered(inst, &x),
            }
        }
        if !is_load {
            self.tell_dirty();
        }
        if limits != Limits::Safe {
            let site = match limits {
                Limits::Heap(site) => Some(site),
                Limits::Safe | Limits::Shared | Limits::Own => None,
            };
            let (in_part, at) = (self.in_part, self.at);
            self.cold.push(Cold { start: cold, back: done, inst: inst.clone(), site, in_part, at });
        } else {
            // Nothing goes there.
            self.a.bind(cold);
        }
    }

    /// Whether each part's elements follow each other, in a block that all lanes execute.
    fn is_by_parts(&self, s: &Shape, x: &Access) -> bool {
        let n = if is_wide(x.ty) { 2 } else { 4 };
        !self.in_part
            && x.lanes == LANES
            && s.stride == i64::from(x.size())
            && (0..8).all(|p| {
                let first = p / n * n;
                s.group[p] == s.group[first]
                    && s.off[p] - s.off[first] == s.stride * ((p - first) * PACK) as i64
            })
    }

    /// The address of the first lane of a pack, with the access's offset, in `rax`.
    fn pack_address(&mut self, x: &Access, p: usize) {
        self.lane_value(x.class.address, p, RAX);
        if x.short {
            if x.class.offset != 0 {
                let by = (x.class.offset.cast_unsigned() as u32).cast_signed();
                self.a.imm(Code::Add_rm32_imm32, EAX, by);
            }
        } else {
            self.add_number(RAX, x.class.offset);
        }
    }

    /// Base in `r8` and limit in `r9` of a test of one access: an aligned distance below the limit is right.
    fn limits(&mut self, x: &Access) {
        let bytes = x.class.bytes() as i32;
        match x.limits {
            Limits::Safe => {}
            Limits::Heap(site) => match self.plan.options.bounds {
                Bounds::Exact => {
                    self.load64(R9, cta(offset_of!(CtaCtx, sites)));
                    let at = (site * size_of::<SiteCache>()) as i32;
                    self.load64(R8, Mem::at(R9, at));
                    self.load64(R9, Mem::at(R9, at + 8));
                }
                Bounds::Contained => {
                    // The heap ends at a page.
                    self.load64(R8, cta(offset_of!(CtaCtx, heap_low)));
                    self.load64(R9, cta(offset_of!(CtaCtx, heap_high)));
                    self.a.op2(Code::Sub_r64_rm64, R9, R8);
                }
            },
            Limits::Shared => {
                self.a.number(R8, 0);
                self.load64(R9, cta(offset_of!(CtaCtx, shared_size)));
                self.a.imm(Code::Sub_rm64_imm32, R9, bytes);
                self.a.jump(Code::Jb_rel32_64, x.cold);
                self.a.imm(Code::And_rm64_imm32, R9, -bytes);
                self.a.imm(Code::Add_rm64_imm32, R9, bytes);
            }
            Limits::Own => {
                self.load64(R8, warp(offset_of!(WarpCtx, window)));
                let stride = self.plan.facts.local_stride;
                let units = (stride - x.class.bytes()).div_euclid(x.class.bytes()) + 1;
                self.a.number(R9, (units.max(0) * x.class.bytes()).cast_unsigned());
            }
        }
    }

    /// Tests the address in `rax` against `limits`; `aligned`: whether its alignment is known. Uses `rdx` and `r10`.
    fn test(&mut self, x: &Access, at: Register, aligned: bool) {
        let k = x.class.bytes().trailing_zeros();
        self.a.op2(Code::Mov_r64_rm64, RDX, at);
        self.a.op2(Code::Sub_r64_rm64, RDX, R8);
        if k == 0 || aligned {
            self.a.op2(Code::Cmp_r64_rm64, RDX, R9);
        } else {
            // Low bits of a misaligned address become high ones.
            self.a.imm8(Code::Ror_rm64_imm8, RDX, k);
            self.a.op2(Code::Mov_r64_rm64, R10, R9);
            self.a.imm8(Code::Shr_rm64_imm8, R10, k);
            self.a.op2(Code::Cmp_r64_rm64, RDX, R10);
        }
        self.a.jump(Code::Jae_rel32_64, x.cold);
    }

    /// Makes a host address of the one in a register.
    fn host(&mut self, x: &Access, r: Register) {
        if x.class.space == StateSpace::Shared {
            self.a.op2(Code::Add_r64_rm64, r, cta(offset_of!(CtaCtx, shared_base)));
        }
    }

    /// An element of a scalar load, to `rdx`.
    fn load_scalar(&mut self, x: &Access, at: Register, e: i32) {
        let m = Mem::at(at, e * x.size());
        match x.class.bits {
            8 => self.a.op2(Code::Movzx_r32_rm8, EDX, m),
            16 => self.a.op2(Code::Movzx_r32_rm16, EDX, m),
            32 => self.load32(EDX, m),
            _ => self.load64(RDX, m),
        }
    }

    /// A load whose results are scalars.
    fn load_words(&mut self, inst: &Inst, x: &Access) {
        let Some((shape, _)) = inst.dst.iter().find_map(|d| self.words(*d)) else { return };
        if x.limits != Limits::Safe {
            self.limits(x);
            for g in 0..shape.groups() {
                self.pack_address(x, shape.first(g));
                self.test(x, RAX, false);
            }
        }
        for g in 0..shape.groups() {
            if shape.groups() > 1 || x.limits == Limits::Safe {
                self.pack_address(x, shape.first(g));
            }
            self.host(x, RAX);
            for (e, d) in (0..).zip(&inst.dst) {
                if let Some((_, at)) = self.words(*d) {
                    self.load_scalar(x, RAX, e);
                    self.store64(ctx(at + 8 * g as u32), RDX);
                }
            }
        }
    }

    /// All lanes read one place.
    fn load_same(&mut self, inst: &Inst, x: &Access) {
        self.pack_address(x, 0);
        if x.limits != Limits::Safe {
            self.limits(x);
            self.test(x, RAX, false);
        }
        self.host(x, RAX);
        self.a.op2(Code::Mov_r64_rm64, R8, RAX);
        for (e, d) in (0..).zip(&inst.dst) {
            self.load_scalar(x, R8, e);
            let t = zmm(4);
            if is_wide(x.ty) {
                self.a.op2(Code::EVEX_Vpbroadcastq_zmm_k1z_r64, t, RDX);
            } else {
                self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, t, EDX);
            }
            for q in 0..crate::alloc::n_parts(x.ty) {
                self.put(*d, q, t, x.lanes);
            }
        }
    }

    /// Writes a part of a result for some lanes.
    fn put(&mut self, d: Reg, q: usize, from: Register, lanes: Register) {
        let ty = self.f.regs[d.idx()];
        match self.place(d) {
            Place::Vectors(v) => {
                let mask = self.lanes_mask(lanes, ty, q);
                self.a.op2(load_code(ty), Out::masked(zmm(v[q]), mask), from);
            }
            Place::Row(at) => {
                let mask = if lanes == LANES && !self.places.is_own[d.idx()] {
                    ALL
                } else {
                    self.lanes_mask(lanes, ty, q)
                };
                self.a.store(store_code(ty), ctx(at + 64 * q as u32), from, mask);
            }
            Place::Nowhere | Place::Mask(_) | Place::Flags(_) | Place::Words(_) => {}
        }
    }

    /// Elements that follow each other.
    fn neighbours(&mut self, inst: &Inst, x: &Access, is_row: bool) {
        let n_parts = crate::alloc::n_parts(x.ty);
        let n = 32 / n_parts as i32;
        let stride = x.size();
        let mut at = vec![(RAX, 0); n_parts];
        self.limits(x);
        if is_row {
            self.pack_address(x, 0);
            if self.in_part || x.lanes != LANES {
                let lanes = x.lanes;
                self.a.op2(Code::Tzcnt_r32_rm32, ECX, lanes);
                self.a.op2(Code::Bsr_r32_rm32, Register::ESI, lanes);
                self.a.op2(Code::Lea_r64_m, R11, Mem::indexed(RAX, RCX, stride.cast_unsigned(), 0));
                self.test(x, R11, false);
                self.a.op2(Code::Lea_r64_m, R11, Mem::indexed(RAX, RSI, stride.cast_unsigned(), 0));
                self.test(x, R11, true);
            } else {
                self.test(x, RAX, false);
                self.a.op2(Code::Lea_r64_m, R11, Mem::at(RAX, 31 * stride));
                self.test(x, R11, true);
            }
            self.host(x, RAX);
            at.iter_mut().enumerate().for_each(|(q, a)| a.1 = q as i32 * n * stride);
        } else {
            let regs = [RCX, RSI, R11, Register::RDI];
            for (q, to) in regs.into_iter().take(n_parts).enumerate() {
                self.pack_address(x, q * n as usize / PACK);
                self.a.op2(Code::Mov_r64_rm64, to, RAX);
                self.test(x, RAX, false);
                self.a.op2(Code::Lea_r64_m, RAX, Mem::at(to, (n - 1) * stride));
                self.test(x, RAX, true);
                at[q] = (to, 0);
            }
            for (to, _) in at.clone() {
                self.host(x, to);
            }
        }
        for (q, (base, by)) in at.into_iter().enumerate() {
            let m = Mem::at(base, by);
            if x.class.kind == Kind::Load {
                // `eax` is clobbered by masks of takers.
                self.load_part(inst.dst[0], q, m, x, base == RAX);
            } else {
                let s = self.clean_src(inst.src[1]);
                if base == RAX && q == 0 {
                    self.a.op2(Code::Mov_r64_rm64, R8, RAX);
                }
                let m = Mem::at(if base == RAX { R8 } else { base }, by);
                let r = self.reg(&s, q, 4);
                let mask = self.lanes_mask(x.lanes, x.ty, q);
                let code = match x.class.bits {
                    8 => Code::EVEX_Vpmovdb_xmmm128_k1z_zmm,
                    16 => Code::EVEX_Vpmovdw_ymmm256_k1z_zmm,
                    _ => store_code(x.ty),
                };
                self.a.store(code, m, r, mask);
            }
        }
    }

    fn load_part(&mut self, d: Reg, q: usize, m: Mem, x: &Access, in_rax: bool) {
        if in_rax && q == 0 {
            self.a.op2(Code::Mov_r64_rm64, R8, RAX);
        }
        let m = if in_rax { m.rebased(R8) } else { m };
        let code = match x.class.bits {
            8 => Code::EVEX_Vpmovzxbd_zmm_k1z_xmmm128,
            16 => Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256,
            _ => load_code(x.ty),
        };
        let mask = self.lanes_mask(x.lanes, x.ty, q);
        match self.place(d) {
            Place::Vectors(v) => self.a.op2(code, Out::masked(zmm(v[q]), mask), m),
            Place::Row(at) => {
                // Lanes outside of the mask are not read: they may lie outside of memory.
                self.a.op2(code, Out::masked(zmm(7), mask), m);
                let own = self.places.is_own[d.idx()] || x.lanes != LANES;
                self.a.store(store_code(x.ty), ctx(at + 64 * q as u32), zmm(7), if own { mask } else { ALL });
            }
            Place::Nowhere | Place::Mask(_) | Place::Flags(_) | Place::Words(_) => {}
        }
    }

    /// Elements anywhere. Addresses, with the offset, are in vectors 0 to 3.
    fn scattered(&mut self, inst: &Inst, x: &Access) {
        let aty = if x.short { Ty::B32 } else { Ty::B64 };
        let s = self.src(x.class.address);
        let n = crate::alloc::n_parts(aty);
        for q in 0..n {
            let r = self.reg(&s, q, q as u8);
            let to = zmm(q as u8);
            if x.class.offset != 0 {
                let c = self.constant(aty, x.class.offset.cast_unsigned() & aty.mask());
                let code = if x.short {
                    Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32
                } else {
                    Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64
                };
                self.a.op3(code, to, r, c);
            } else if r != to {
                self.a.op2(load_code(aty), to, r);
            }
        }
        if x.limits != Limits::Safe {
            self.test_lanes(x, n);
        }
        if x.class.space == StateSpace::Shared {
            self.load64(R11, cta(offset_of!(CtaCtx, shared_base)));
        } else {
            self.a.number(R11, 0);
        }
        if x.class.kind == Kind::Load {
            for (e, d) in (0..).zip(&inst.dst) {
                self.gather(x, e, *d);
            }
        } else if x.class.bits < 32 {
            self.store_by_lane(inst, x, n);
        } else {
            for e in 0..i32::from(x.class.count) {
                let s = self.clean_src(inst.src[1 + e as usize]);
                self.scatter(x, e, &s);
            }
        }
    }

    /// Tests the addresses in vectors 0 to `n`. Uses vectors 4 to 6, `k5` to `k7`.
    fn test_lanes(&mut self, x: &Access, n: usize) {
        let k = x.class.bytes().trailing_zeros();
        self.limits(x);
        if k > 0 {
            self.a.imm8(Code::Shr_rm64_imm8, R9, k);
        }
        let ty = if x.short { Ty::B32 } else { Ty::B64 };
        if x.short {
            self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(6), Register::R9D);
        } else {
            self.a.op2(Code::EVEX_Vpbroadcastq_zmm_k1z_r64, zmm(6), R9);
            self.a.op2(Code::EVEX_Vpbroadcastq_zmm_k1z_r64, zmm(5), R8);
        }
        for q in 0..n {
            let mut r = zmm(q as u8);
            if x.limits != Limits::Shared {
                self.a.op3(Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64, zmm(4), r, zmm(5));
                r = zmm(4);
            }
            if x.limits == Limits::Own {
                let stride = self.plan.facts.local_stride;
                let lanes: Vec<u64> = (0..8).map(|l| ((8 * q as i64 + l) * stride).cast_unsigned()).collect();
                let c = self.lanes_constant(Ty::B64, &lanes);
                self.a.op3(Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64, zmm(4), r, c);
            }
            if k > 0 {
                let code = if x.short {
                    Code::EVEX_Vprord_zmm_k1z_zmmm512b32_imm8
                } else {
                    Code::EVEX_Vprorq_zmm_k1z_zmmm512b64_imm8
                };
                self.a.op2i(code, zmm(4), r, k);
                r = zmm(4);
            }
            let mask = self.lanes_mask(x.lanes, ty, q);
            let (code, to) = (
                if x.short {
                    Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8
                } else {
                    Code::EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8
                },
                if q == 0 { Register::K7 } else { Register::K6 },
            );
            self.a.op3i(code, Out::masked(to, mask), r, zmm(6), 5);
            if q > 0 {
                self.a.op3(Code::VEX_Korw_kr_kr_kr, Register::K7, Register::K7, Register::K6);
            }
        }
        self.a.op2(Code::VEX_Kortestw_kr_kr, Register::K7, Register::K7);
        self.a.jump(Code::Jne_rel32_64, x.cold);
    }

    /// The mask of a gather or scatter, which it clears, in `k6`.
    fn own_mask(&mut self, x: &Access, ty: Ty, q: usize) {
        match self.lanes_mask(x.lanes, ty, q) {
            Register::None => self.a.op3(Code::VEX_Kxnorw_kr_kr_kr, Register::K6, Register::K6, Register::K6),
            k => self.a.op2(Code::VEX_Kmovw_kr_km16, Register::K6, k),
        }
    }

    /// The addresses of eight or sixteen lanes, as an index.
    fn index(&mut self, x: &Access, ty: Ty, q: usize) -> Register {
        if !x.short {
            return zmm(q as u8);
        }
        if !is_wide(ty) {
            return zmm(q as u8);
        }
        // Eight of sixteen offsets.
        if q.is_multiple_of(2) {
            return ymm(zmm(q as u8 / 2));
        }
        self.a.op2i(Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8, ymm(zmm(6)), zmm(q as u8 / 2), 1);
        ymm(zmm(6))
    }

    fn gather(&mut self, x: &Access, e: i32, d: Reg) {
        if x.class.bits < 32 {
            self.gather_small(x, e, d);
            return;
        }
        let at = |i| Mem::indexed(R11, i, 1, e * x.size());
        let t = zmm(4);
        let zero = |s: &mut Self, r| s.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, r, r, r);
        if is_wide(x.ty) {
            for q in 0..4 {
                let i = self.index(x, Ty::B64, q);
                self.own_mask(x, Ty::B64, q);
                zero(self, t);
                let code =
                    if x.short { Code::EVEX_Vpgatherdq_zmm_k1_vm32y } else { Code::EVEX_Vpgatherqq_zmm_k1_vm64z };
                self.a.op2(code, Out::masked(t, Register::K6), at(i));
                self.put(d, q, t, x.lanes);
            }
        } else if x.short {
            for q in 0..2 {
                self.own_mask(x, Ty::B32, q);
                zero(self, t);
                let i = zmm(q as u8);
                self.a.op2(Code::EVEX_Vpgatherdd_zmm_k1_vm32z, Out::masked(t, Register::K6), at(i));
                self.put(d, q, t, x.lanes);
            }
        } else {
            for q in 0..2 {
                for (h, to) in [(0, zmm(4)), (1, zmm(5))] {
                    self.own_mask(x, Ty::B64, 2 * q + h);
                    zero(self, to);
                    let i = zmm((2 * q + h) as u8);
                    self.a.op2(Code::EVEX_Vpgatherqd_ymm_k1_vm64z, Out::masked(ymm(to), Register::K6), at(i));
                }
                self.a.op3i(Code::EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8, t, t, ymm(zmm(5)), 1);
                self.put(d, q, t, x.lanes);
            }
        }
    }

    /// Elements of 8 and 16 bits: the aligned word around each is read, which lies in the same page.
    fn gather_small(&mut self, x: &Access, e: i32, d: Reg) {
        let aty = if x.short { Ty::B32 } else { Ty::B64 };
        let (add, and, shift) = if x.short {
            (
                Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32,
                Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32,
                Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8,
            )
        } else {
            (
                Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64,
                Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64,
                Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8,
            )
        };
        let kept = (1u64 << x.class.bits) - 1;
        for q in 0..2 {
            // The words in vector 4, how far to shift them in vector 5.
            let halves: &[usize] = if x.short { &[0] } else { &[0, 1] };
            for &h in halves {
                let part = if x.short { q } else { 2 * q + h };
                let (data, by) = if h == 0 { (zmm(4), zmm(5)) } else { (zmm(6), zmm(7)) };
                let c = self.constant(aty, (e * x.size()) as u64);
                self.a.op3(add, data, zmm(part as u8), c);
                let c = self.constant(aty, 3);
                self.a.op3(and, by, data, c);
                self.a.op2i(shift, by, by, 3);
                let c = self.constant(aty, !3 & aty.mask());
                self.a.op3(and, data, data, c);
                self.own_mask(x, aty, part);
                if x.short {
                    // Vector 3 is free: there are two vectors of offsets.
                    self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, zmm(3), zmm(3), zmm(3));
                    let m = Mem::indexed(R11, data, 1, 0);
                    self.a.op2(Code::EVEX_Vpgatherdd_zmm_k1_vm32z, Out::masked(zmm(3), Register::K6), m);
                    self.a.op2(load_code(Ty::B32), data, zmm(3));
                } else {
                    self.gather_word(data);
                    self.a.op2(Code::EVEX_Vpmovqd_ymmm256_k1z_zmm, ymm(by), by);
                }
            }
            if !x.short {
                let insert = Code::EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8;
                self.a.op3i(insert, zmm(4), zmm(4), ymm(zmm(6)), 1);
                self.a.op3i(insert, zmm(5), zmm(5), ymm(zmm(7)), 1);
            }
            self.a.op3(Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32, zmm(4), zmm(4), zmm(5));
            let c = self.constant(Ty::B32, kept);
            self.a.op3(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, zmm(4), zmm(4), c);
            self.put(d, q, zmm(4), x.lanes);
        }
    }

    /// Reads eight words at the addresses in a vector into its lower half, by way of the stack: all other vectors are in use.
    fn gather_word(&mut self, data: Register) {
        let spare = Mem::at(RSP, FRAME - 72);
        self.a.store(store_code(Ty::B64), spare, zmm(0), ALL);
        self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, zmm(0), zmm(0), zmm(0));
        let m = Mem::indexed(R11, data, 1, 0);
        self.a.op2(Code::EVEX_Vpgatherqd_ymm_k1_vm64z, Out::masked(ymm(zmm(0)), Register::K6), m);
        self.a.op2(load_code(Ty::B64), data, zmm(0));
        self.a.op2(load_code(Ty::B64), zmm(0), spare);
    }

    fn scatter(&mut self, x: &Access, e: i32, s: &Src) {
        let at = |i| Mem::indexed(R11, i, 1, e * x.size());
        if is_wide(x.ty) {
            for q in 0..4 {
                let r = self.reg(s, q, 4);
                let i = self.index(x, Ty::B64, q);
                self.own_mask(x, Ty::B64, q);
                let code =
                    if x.short { Code::EVEX_Vpscatterdq_vm32y_k1_zmm } else { Code::EVEX_Vpscatterqq_vm64z_k1_zmm };
                self.a.store(code, at(i), r, Register::K6);
            }
        } else if x.short {
            for q in 0..2 {
                let r = self.reg(s, q, 4);
                self.own_mask(x, Ty::B32, q);
                self.a.store(Code::EVEX_Vpscatterdd_vm32z_k1_zmm, at(zmm(q as u8)), r, Register::K6);
            }
        } else {
            for q in 0..4 {
                let mut r = self.reg(s, q / 2, 4);
                if q % 2 == 1 {
                    self.a.op2i(Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8, ymm(zmm(5)), r, 1);
                    r = zmm(5);
                }
                self.own_mask(x, Ty::B64, q);
                self.a.store(Code::EVEX_Vpscatterqd_vm64z_k1_ymm, at(zmm(q as u8)), ymm(r), Register::K6);
            }
        }
    }

    /// Stores of 8 and 16 bits, lane by lane in ascending order.
    fn store_by_lane(&mut self, inst: &Inst, x: &Access, n: usize) {
        let aty = if x.short { Ty::B32 } else { Ty::B64 };
        let addresses = self.take_scratch(64 * n as u32);
        for q in 0..n {
            self.a.store(store_code(aty), ctx(addresses + 64 * q as u32), zmm(q as u8), ALL);
        }
        let rows: Vec<u32> = (0..x.class.count).map(|_| self.take_scratch(128)).collect();
        for (at, v) in rows.iter().zip(&inst.src[1..]) {
            let s = self.clean_src(*v);
            for q in 0..2 {
                let r = self.reg(&s, q, 4);
                self.a.store(store_code(Ty::B32), ctx(at + 64 * q as u32), r, ALL);
            }
        }
        let again = self.a.label();
        self.a.op2(Code::Mov_r32_rm32, ECX, x.lanes);
        self.a.bind(again);
        self.a.op2(Code::Tzcnt_r32_rm32, EDX, ECX);
        if x.short {
            self.load32(EAX, Mem::indexed(WARP, RDX, 4, addresses as i32));
        } else {
            self.load64(RAX, Mem::indexed(WARP, RDX, 8, addresses as i32));
        }
        self.a.op2(Code::Add_r64_rm64, RAX, R11);
        for (e, at) in (0..).zip(&rows) {
            self.load32(Register::ESI, Mem::indexed(WARP, RDX, 4, *at as i32));
            let m = Mem::at(RAX, e * x.size());
            if x.class.bits == 8 {
                self.a.store(Code::Mov_rm8_r8, m, Register::SIL, ALL);
            } else {
                self.a.store(Code::Mov_rm16_r16, m, Register::SI, ALL);
            }
        }
        self.a.op2(Code::Lea_r32_m, EDX, Mem::at(RCX, -1));
        self.a.op2(Code::And_r32_rm32, ECX, EDX);
        self.a.jump(Code::Jne_rel32_64, again);
    }

    /// The code after all blocks: accesses that tests refused.
    pub(crate) fn cold_code(&mut self) {
        for c in std::mem::take(&mut self.cold) {
            (self.in_part, self.at) = (c.in_part, c.at);
            self.scratch.0 = 0;
            self.a.bind(c.start);
            let lanes = if c.inst.guarded { TAKERS } else { LANES };
            self.memory_routine(&c.inst, lanes, c.site);
            self.a.jump(Code::Jmp_rel32_64, c.back);
        }
    }

    /// `cvta` of addresses that vary.
    pub(crate) fn cvta(&mut self, inst: &Inst, space: StateSpace, to_space: bool) {
        let s = self.src(inst.src[0]);
        let d = inst.dst[0];
        for q in 0..4 {
            let out = self.out(d, q);
            if space == StateSpace::Shared {
                let r = self.reg(&s, q, 0);
                let by = cta(offset_of!(CtaCtx, shared_base)).spread();
                let code = if to_space {
                    Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64
                } else {
                    Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64
                };
                self.a.op3(code, out, r, by);
            } else {
                let r = self.rm(&s, q, 0);
                self.copy(Ty::B64, out, r);
            }
            self.commit(d, q);
        }
    }
}
