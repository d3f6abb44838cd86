//! Loads and stores whose lanes are anywhere: gathers and scatters of the host, unless the lanes turn out to be neighbours.
//!
//! A scatter writes its lanes in ascending order, so that the last of those with one address wins, as in the interpreter.

use std::mem::offset_of;

use handloom_ir::simt::{Inst, Op, Val};
use handloom_ir::types::{Order, StateSpace, Ty};
use handloom_plan::abi::{CtaCtx, Loc};
use handloom_plan::access::{AccessClass, Kind};
use handloom_plan::analysis::reach::Reach;
use handloom_plan::order::AccessOrder;
use iced_x86::{Code, Register};

use crate::access::{Access, Limits};
use crate::alloc::n_parts;
use crate::asm::{Label, Mem, Out, low};
use crate::emit::*;
use crate::found::{Found, ONE_PLACE, found_in};
use crate::lies::by_all;
use crate::once::Called;
use crate::tuples::is_of_tuples;
use crate::turns::FOUND;
use crate::values::{At, is_wide, load_code, store_code};

const R8: Register = Register::R8;
const R9: Register = Register::R9;
const R11: Register = Register::R11;

/// Bytes of shared memory, at most.
const MOST_SHARED: i32 = 256 << 10;
/// Accesses of shared memory of which nothing is known that are looked at whether their lanes are neighbours.
const MOST_LOOKED_AT: u32 = 48;
/// Lanes, at most, whose accesses are done one by one.
pub(crate) const FEW: i32 = 4;
/// The comparison for what is not equal, of vectors.
pub(crate) const NOT_EQUAL: u32 = 4;
/// The same for what is not below, without signs.
pub(crate) const NOT_BELOW: u32 = 5;

impl Emit<'_> {
    /// Elements anywhere. Addresses, with the offset, are in vectors 0 to 3. Returns what code after all blocks has to know if it is done by code that the function has once.
    pub(crate) fn scattered(&mut self, inst: &Inst, x: &Access) -> Option<Called> {
        if self.reads_matrix(inst, x) {
            return None;
        }
        if self.is_called(inst, x) {
            self.has_left |= self.before_routine.is_some();
            return Some(self.call_accessor(inst, x));
        }
        if self.is_left(x) {
            if let Some(indexed) = self.index_of(x).cloned() {
                self.make_delayed(x, &indexed);
            }
            self.ensure_words(x.class.address);
            self.a.jump(Code::Jmp_rel32_64, x.cold);
            return None;
        }
        let done = self.a.label();
        self.by_all(inst, x, done);
        let is_indexed = self.by_index(inst, x, done);
        let aty = if x.short { Ty::B32 } else { Ty::B64 };
        let n = n_parts(aty);
        let is_of_heap = matches!(x.limits, Limits::Heap(_));
        // Of shared memory, places in swizzled tiles are most of what long functions have.
        let is_few = x.limits == Limits::Shared && x.short && x.class.count == 1 && self.n_looked_at < MOST_LOOKED_AT;
        self.n_looked_at += u32::from(is_few);
        let is_looked_at = is_of_heap || is_few;
        let may_be_row = is_looked_at
            && !is_indexed
            && matches!(x.class.kind, Kind::Load | Kind::Store)
            && (x.class.count == 1 || is_of_tuples(&x.class))
            && !x.class.order.is_strong()
            && !self.is_known(x);
        let found = if may_be_row && is_of_heap { self.found_here(inst, x) } else { None };
        let reads_found = found.filter(|found| !found.is_first);
        if let Some(found) = reads_found {
            self.as_found(inst, x, found, done);
        }
        self.each_address(x, |s, q, r| {
            let to = zmm(q as u8);
            if r != to {
                s.a.op2(load_code(aty), to, r);
            }
        });
        let asked = self.ask_of_lanes(x);
        let x = &Access { cold: asked.map_or(x.cold, |(start, _)| start), ..*x };
        if may_be_row && reads_found.is_none() {
            // Indices that nothing is known of are mostly those of neighbours.
            let apart = self.a.label();
            let by_whole_warps = is_of_tuples(&x.class) && x.lanes != LANES;
            let in_part = self.in_part;
            let y = if by_whole_warps {
                // Tuples under a guard: masks for each chunk would be most of the code, and most guards hold in all lanes of most warps.
                self.a.imm(Code::Cmp_rm32_imm8, x.lanes, -1);
                self.a.jump(Code::Jne_rel32_64, apart);
                self.in_part = false;
                Access { lanes: LANES, ..*x }
            } else {
                *x
            };
            self.first_of_row(&y, apart);
            if is_of_heap {
                self.fetch_ahead(&y);
            }
            self.limits(&y);
            // One lane by itself is a row wherever it is: what lies in local memory is tested below.
            let cold = if self.may_be_own(x) { apart } else { x.cold };
            self.test_row(&Access { cold, ..y });
            self.note_found(found, false);
            self.row(inst, &y);
            self.a.jump(Code::Jmp_rel32_64, done);
            self.in_part = in_part;
            self.a.bind(apart);
            if !by_whole_warps {
                self.at_one_place(inst, x, found, done);
                self.by_rows(inst, x, done);
            }
        }
        if x.limits != Limits::Safe {
            if self.may_be_own(x) {
                let (own, passed) = (self.a.label(), self.a.label());
                self.test_lanes(&Access { cold: own, ..*x }, n);
                self.a.jump(Code::Jmp_rel32_64, passed);
                self.a.bind(own);
                self.test_lanes(&Access { limits: Limits::Own, ..*x }, n);
                self.a.bind(passed);
            } else {
                self.test_lanes(x, n);
            }
        }
        asked.iter().for_each(|(_, passed)| self.a.bind(*passed));
        if x.class.space == StateSpace::Shared {
            self.load64(R11, cta(offset_of!(CtaCtx, shared_base)));
        } else {
            self.a.number(R11, 0);
        }
        if x.class.count == 1 && self.finds_by_numbers(x) {
            // Few lanes, or places that no index of 32 bits finds: an access of this kind rarely comes here.
            self.one_by_one(inst, x, n);
        } else {
            self.by_few(inst, x, n, done);
            self.at_lanes(inst, x, n);
        }
        self.a.bind_if_wanted(done);
        None
    }

    /// Whether an access is left to the routine, so that a long function is made in time.
    fn is_left(&mut self, x: &Access) -> bool {
        let is_in_loop = self.plan.facts.cfg.loop_of[self.at.0].is_some();
        let is_left = x.limits != Limits::Safe
            && !self.in_head
            && self.before_routine.as_mut().is_some_and(|first| !first.takes(is_in_loop));
        self.has_left |= is_left;
        is_left
    }

    /// Gives each vector of the addresses of lanes, with the offset, to `take`: in vector 0 to 3 by its number, or where they live.
    pub(crate) fn each_address(&mut self, x: &Access, mut take: impl FnMut(&mut Self, usize, Register)) {
        let aty = if x.short { Ty::B32 } else { Ty::B64 };
        self.ensure_words(x.class.address);
        let s = self.src(x.class.address);
        for q in 0..n_parts(aty) {
            let mut r = self.reg(&s, q, q as u8);
            if x.class.offset != 0 {
                let c = self.constant(aty, x.class.offset.cast_unsigned() & aty.mask());
                let code = if x.short {
                    Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32
                } else {
                    Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64
                };
                let to = zmm(q as u8);
                self.a.op3(code, to, r, c);
                r = to;
            }
            take(self, q, r);
        }
    }

    /// Does an access whose tests have passed: at the addresses in vectors 0 to `n`, from `r11` on.
    pub(crate) fn at_lanes(&mut self, inst: &Inst, x: &Access, n: usize) {
        if x.class.kind == Kind::Load && x.class.order.is_strong() {
            self.loads_by_lane(inst, x, n);
        } else if is_of_tuples(&x.class) && !x.class.order.is_strong() {
            self.tuples_by_lane(inst, x, n);
        } else if x.class.kind == Kind::Load {
            for (e, d) in (0..).zip(&inst.dst) {
                self.gather(x, e, &mut |s, q, r| s.put(*d, q, r, x.lanes));
            }
        } else if x.class.kind != Kind::Store {
            self.atomics(inst, x, n);
        } else if x.class.bits < 32 || x.class.order.is_strong() {
            self.by_lane(inst, x, n);
        } else {
            for e in 0..i32::from(x.class.count) {
                let s = self.clean_src(inst.src[1 + e as usize]);
                self.scatter(x, e, &mut |t, q| t.reg(&s, q, 4));
            }
        }
    }

    /// An access that some lanes do, if all tests pass, as it would be done by all of them, where it needs no gather then; of some forms only if all lanes of the block do it.
    /// Goes to `done`.
    fn by_all(&mut self, inst: &Inst, x: &Access, done: Label) {
        let is_plain = matches!(x.class.kind, Kind::Load | Kind::Store) && !x.class.order.is_strong();
        if !self.is_of_part(x) || x.limits == Limits::Own || !is_plain {
            return;
        }
        let in_part = std::mem::replace(&mut self.in_part, false);
        let (y, form, scalars) = self.kind_of_access(inst, x.class, x.limits, LANES);
        let apart = self.a.label();
        if !scalars && self.by_some(&x.class, form) {
            self.in_part = in_part;
            self.of_some(inst, &Access { cold: apart, ..*x }, form);
            self.a.jump(Code::Jmp_rel32_64, done);
        } else if !scalars && by_all(form) {
            self.a.imm(Code::Cmp_rm32_imm8, x.lanes, -1);
            self.a.jump(Code::Jne_rel32_64, apart);
            self.of_all(inst, &Access { cold: apart, ..y }, form);
            self.a.jump(Code::Jmp_rel32_64, done);
        }
        self.in_part = in_part;
        self.a.bind_if_wanted(apart);
    }

    /// Finds the accesses of a block that share words.
    pub(crate) fn find_shared(&mut self, b: usize) {
        // What is found by an index asks its index.
        let is_known = |i, r| self.indices.of.contains_key(&(b, i)) || self.shape(Val::Reg(r)).is_some();
        self.found = found_in(self.f, b, &is_known);
    }

    /// Nothing is found yet, at the start of a block.
    pub(crate) fn begin_found(&mut self, b: usize) {
        self.find_shared(b);
        let n = self.found.values().filter(|found| found.is_first).count();
        (0..n).for_each(|word| self.a.imm(Code::Mov_rm64_imm32, word_of_found(word), 0));
    }

    /// What the access being emitted has to do with a word.
    pub(crate) fn found_here(&self, inst: &Inst, x: &Access) -> Option<Found> {
        let is_shared = x.lanes == LANES && self.members.is_empty() && !self.is_of_bundle(inst.dst.first());
        self.found.get(&self.at.1).copied().filter(|_| is_shared)
    }

    /// Notes that lanes lie one after the other from the address in `rax` on, or that it is the address of all. Uses `rdx`.
    pub(crate) fn note_found(&mut self, found: Option<Found>, is_one_place: bool) {
        let Some(Found { word, is_first: true, offset }) = found else { return };
        self.a.op2(Code::Lea_r64_m, RDX, Mem::at(RAX, -offset));
        if is_one_place {
            self.a.imm8(Code::Bts_rm64_imm8, RDX, ONE_PLACE);
        }
        self.store64(word_of_found(word), RDX);
    }

    /// Does an access as the first one found its lanes to lie, and goes to `done`; else, or where a test fails, it goes on.
    pub(crate) fn as_found(&mut self, inst: &Inst, x: &Access, found: Found, done: Label) {
        let [apart, one] = [self.a.label(), self.a.label()];
        let is_load = matches!(inst.op, Op::Load { .. });
        let y = Access { cold: apart, ..*x };
        self.load64(RAX, word_of_found(found.word));
        self.a.op2(Code::Test_rm64_r64, RAX, RAX);
        self.a.jump(if is_load { Code::Je_rel32_64 } else { Code::Jle_rel32_64 }, apart);
        if is_load {
            self.a.jump(Code::Js_rel32_64, one);
        }
        self.add_offset(found.offset);
        self.fetch_ahead(&y);
        self.limits(&y);
        self.test_row(&y);
        self.row(inst, &y);
        self.a.jump(Code::Jmp_rel32_64, done);
        if is_load {
            self.a.bind(one);
            self.a.imm8(Code::Btr_rm64_imm8, RAX, ONE_PLACE);
            self.add_offset(found.offset);
            self.limits(&y);
            self.test(&y, RAX, false);
            self.spread_place(inst, &y);
            self.a.jump(Code::Jmp_rel32_64, done);
        }
        self.a.bind(apart);
    }

    fn add_offset(&mut self, offset: i32) {
        if offset != 0 {
            self.a.imm(Code::Add_rm64_imm32, RAX, offset);
        }
    }

    /// Does an access lane by lane where few take part: gathers and scatters of the host take as long for one lane as for all.
    fn by_few(&mut self, inst: &Inst, x: &Access, n: usize, done: Label) {
        let is_whole = !self.is_of_part(x);
        let is_plain = matches!(x.class.kind, Kind::Load | Kind::Store) && !x.class.order.is_strong();
        if is_whole || !is_plain || x.class.count > 1 || x.class.kind == Kind::Store && x.class.bits < 32 {
            return;
        }
        let many = self.a.label();
        let lanes = x.lanes;
        self.a.op2(Code::Popcnt_r32_rm32, ECX, lanes);
        self.a.imm(Code::Cmp_rm32_imm8, ECX, FEW);
        self.a.jump(Code::Ja_rel32_64, many);
        let scratch = self.scratch.0;
        self.one_by_one(inst, x, n);
        self.scratch.0 = scratch;
        self.a.jump(Code::Jmp_rel32_64, done);
        self.a.bind(many);
    }

    /// A load or store lane by lane, at the addresses in vectors 0 to `n`.
    fn one_by_one(&mut self, inst: &Inst, x: &Access, n: usize) {
        if x.class.kind == Kind::Load {
            self.loads_by_lane(inst, x, n);
        } else {
            self.by_lane(inst, x, n);
        }
    }

    /// Whether something is known of how the lanes of an address differ that says more than a look at them.
    pub(crate) fn is_known(&self, x: &Access) -> bool {
        self.shape(x.class.address).is_some_and(|s| !s.is_flipped() || self.a.has_wide_vectors())
    }

    /// Whether generic addresses that are not in the heap may be those of objects in local memory, as functions get them: each lane's lie in its own.
    pub(crate) fn may_be_own(&self, x: &Access) -> bool {
        x.class.space == StateSpace::Generic
            && !self.elements.are_apart()
            && matches!(x.class.kind, Kind::Load | Kind::Store)
            && x.class.order == Order::Weak
            && !x.short
            && self.plan.facts.local_stride >= x.class.bytes()
    }

    /// Tests the addresses in vectors 0 to `n`. Uses vectors 4 to 6, `k5` to `k7`.
    fn test_lanes(&mut self, x: &Access, n: usize) {
        let passed = self.a.label();
        if let Some(end) = self.most_end(x) {
            self.a.imm(Code::Cmp_rm64_imm32, cta(offset_of!(CtaCtx, shared_size)), end);
            self.a.jump(Code::Jae_rel32_64, passed);
        }
        self.limits(x);
        self.test_vectors(x, n);
        self.a.bind_if_wanted(passed);
    }

    /// The same against limits that are known.
    pub(crate) fn test_vectors(&mut self, x: &Access, n: usize) {
        let k = x.class.bytes().trailing_zeros();
        if k > 0 {
            self.a.imm8(Code::Shr_rm64_imm8, R9, k);
        }
        let (ty, compare) = if x.short {
            (Ty::B32, Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8)
        } else {
            (Ty::B64, Code::EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8)
        };
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
            if x.limits == Limits::Own && !self.elements.are_apart() {
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
            self.add_to_k7(compare, q, mask, [r, zmm(6)], NOT_BELOW);
        }
        self.a.op2(Code::VEX_Kortestw_kr_kr, Register::K7, Register::K7);
        self.a.jump(Code::Jne_rel32_64, x.cold);
    }

    /// Where an access to shared memory ends at most, if its address is aligned whatever it is: then the size of the memory is all that is to be tested.
    fn most_end(&mut self, x: &Access) -> Option<i32> {
        if x.limits != Limits::Shared || !x.short {
            return None;
        }
        let bytes = u32::try_from(x.class.bytes()).ok()?;
        let offset = u32::try_from(x.class.offset).ok()?;
        let plan = self.plan;
        let Reach { most, zeros } = self.reaches.of(x.class.address, &|r| plan.origin(r));
        let is_aligned = bytes.trailing_zeros() <= zeros.min(offset.trailing_zeros());
        let end = most.checked_add(offset)?.checked_add(bytes)?;
        i32::try_from(end).ok().filter(|end| is_aligned && *end <= MOST_SHARED)
    }

    /// The mask of a gather or scatter, which it clears, in `k6`.
    pub(crate) fn own_mask(&mut self, x: &Access, ty: Ty, q: usize) {
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

    /// Words of a part at places of 32 bits, which are the index of `m`.
    pub(crate) fn gather_words(&mut self, x: &Access, q: usize, m: Mem, to: Register) {
        self.own_mask(x, Ty::B32, q);
        self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, to, to, to);
        self.a.op2(Code::EVEX_Vpgatherdd_zmm_k1_vm32z, Out::masked(to, Register::K6), m);
    }

    /// Reads element `e` of each lane at the addresses in vectors 0 to 3, from `r11` on, and gives it to `put` part by part.
    pub(crate) fn gather(&mut self, x: &Access, e: i32, put: &mut dyn FnMut(&mut Self, usize, Register)) {
        if x.class.bits < 32 {
            self.gather_small(x, e, put);
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
                put(self, q, t);
            }
        } else if x.short {
            for q in 0..2 {
                self.gather_words(x, q, at(zmm(q as u8)), t);
                put(self, q, t);
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
                put(self, q, t);
            }
        }
    }

    /// Elements of 8 and 16 bits: the aligned word around each is read, which lies in the same page.
    fn gather_small(&mut self, x: &Access, e: i32, put: &mut dyn FnMut(&mut Self, usize, Register)) {
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
            put(self, q, zmm(4));
        }
    }

    /// Reads eight words at the addresses in a vector into its lower half, by way of the stack: all other vectors are in use.
    fn gather_word(&mut self, data: Register) {
        let spare = Mem::at(RSP, VECTOR_AREA - 72);
        self.a.store(store_code(Ty::B64), spare, zmm(0), ALL);
        self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, zmm(0), zmm(0), zmm(0));
        let m = Mem::indexed(R11, data, 1, 0);
        self.a.op2(Code::EVEX_Vpgatherqd_ymm_k1_vm64z, Out::masked(ymm(zmm(0)), Register::K6), m);
        self.a.op2(load_code(Ty::B64), data, zmm(0));
        self.a.op2(load_code(Ty::B64), zmm(0), spare);
    }

    /// Writes element `e` of each lane, which `get` has part by part, in vector 4 at most.
    pub(crate) fn scatter(&mut self, x: &Access, e: i32, get: &mut dyn FnMut(&mut Self, usize) -> Register) {
        let at = |i| Mem::indexed(R11, i, 1, e * x.size());
        if is_wide(x.ty) {
            for q in 0..4 {
                let r = get(self, q);
                let i = self.index(x, Ty::B64, q);
                self.own_mask(x, Ty::B64, q);
                let code =
                    if x.short { Code::EVEX_Vpscatterdq_vm32y_k1_zmm } else { Code::EVEX_Vpscatterqq_vm64z_k1_zmm };
                self.a.store(code, at(i), r, Register::K6);
            }
        } else if x.short {
            for q in 0..2 {
                let r = get(self, q);
                self.own_mask(x, Ty::B32, q);
                self.a.store(Code::EVEX_Vpscatterdd_vm32z_k1_zmm, at(zmm(q as u8)), r, Register::K6);
            }
        } else {
            for q in 0..4 {
                let mut r = get(self, q / 2);
                if q % 2 == 1 {
                    self.a.op2i(Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8, ymm(zmm(5)), r, 1);
                    r = zmm(5);
                }
                self.own_mask(x, Ty::B64, q);
                self.a.store(Code::EVEX_Vpscatterqd_vm64z_k1_ymm, at(zmm(q as u8)), ymm(r), Register::K6);
            }
        }
    }

    /// Rows of the addresses in vectors 0 to `n`, and of the operands.
    pub(crate) fn lane_rows(&mut self, inst: &Inst, x: &Access, n: usize) -> (u32, Vec<u32>) {
        let addresses = self.lane_addresses(x, n);
        let values = &inst.operands()[1..];
        let rows: Vec<u32> = values.iter().map(|_| self.take_scratch(256)).collect();
        for (at, v) in rows.iter().zip(values) {
            let s = self.clean_src(*v);
            self.put_row(&s, *at);
        }
        (addresses, rows)
    }

    /// The addresses in vectors 0 to `n` as a row in the scratch space.
    pub(crate) fn lane_addresses(&mut self, x: &Access, n: usize) -> u32 {
        let aty = if x.short { Ty::B32 } else { Ty::B64 };
        let addresses = self.take_scratch(64 * n as u32);
        for q in 0..n {
            self.a.store(store_code(aty), ctx(addresses + 64 * q as u32), zmm(q as u8), ALL);
        }
        addresses
    }

    /// Goes through the lanes that take part, in ascending order: the number of one is in `edx`, its address in `rax`. Clobbers `ecx`.
    pub(crate) fn each_lane(&mut self, x: &Access, addresses: u32, mut one: impl FnMut(&mut Self)) {
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
        one(self);
        self.a.op2(Code::VEX_Blsr_r32_rm32, ECX, ECX);
        self.a.jump(Code::Jne_rel32_64, again);
    }

    /// Stores of all lanes to one place.
    pub(crate) fn store_same(&mut self, inst: &Inst, x: &Access) {
        self.one_place(x);
        self.a.op2(Code::Mov_r64_rm64, R8, RAX);
        self.store_one(inst, x, Mem::at(R8, 0));
    }

    /// Stores what the last lane that takes part has: lanes come one directly after the other. Clobbers `rax`, `rdx`.
    pub(crate) fn store_one(&mut self, inst: &Inst, x: &Access, m: Mem) {
        const RDX: Register = Register::RDX;
        let last = crate::alloc::n_parts(x.ty) - 1;
        for (e, v) in (0..).zip(&inst.operands()[1..]) {
            let s = self.clean_src(*v);
            let to = if is_wide(x.ty) { RDX } else { Register::EDX };
            let bytes = if is_wide(x.ty) { 8 } else { 4 };
            let load = if is_wide(x.ty) { Code::Mov_r64_rm64 } else { Code::Mov_r32_rm32 };
            match s.at {
                At::Imm(n) if !s.odd => self.a.number(RDX, n),
                At::Words(shape, at) if !s.odd && shape.is_uniform() => self.a.op2(load, to, ctx(at)),
                _ if !self.is_of_part(x) => {
                    let at = self.take_scratch(64);
                    let r = self.reg(&s, last, 4);
                    self.a.store(store_code(x.ty), ctx(at), r, ALL);
                    self.a.op2(load, to, ctx(at + 64 - bytes));
                }
                _ => {
                    let row = self.take_scratch(256);
                    self.put_row(&s, row);
                    self.a.op2(Code::Bsr_r32_rm32, Register::EDX, x.lanes);
                    self.a.op2(load, to, Mem::indexed(WARP, RDX, bytes, row.cast_signed()));
                }
            }
            self.store_element(x, m.behind(e * x.size()), RDX);
        }
    }

    /// Stores an element that one of the first eight general registers holds.
    pub(crate) fn store_element(&mut self, x: &Access, m: Mem, from: Register) {
        let code = match x.class.bits {
            8 => Code::Mov_rm8_r8,
            16 => Code::Mov_rm16_r16,
            32 => Code::Mov_rm32_r32,
            _ => Code::Mov_rm64_r64,
        };
        self.a.store(code, m, low(from, x.class.bits), ALL);
    }

    /// Stores lane by lane: of 8 and 16 bits, and strong ones.
    fn by_lane(&mut self, inst: &Inst, x: &Access, n: usize) {
        let (addresses, rows) = self.lane_rows(inst, x, n);
        self.each_lane(x, addresses, |s| {
            for (e, at) in (0..).zip(&rows) {
                let m = Mem::at(RAX, e * x.size());
                if is_wide(x.ty) {
                    s.load64(Register::RSI, Mem::indexed(WARP, RDX, 8, *at as i32));
                } else {
                    s.load32(Register::ESI, Mem::indexed(WARP, RDX, 4, *at as i32));
                }
                s.store_element(x, m, Register::RSI);
            }
        });
    }

    /// Loads lane by lane. Of strong ones no other thread's store is seen in part.
    fn loads_by_lane(&mut self, inst: &Inst, x: &Access, n: usize) {
        let (addresses, _) = self.lane_rows(inst, x, n);
        let rows: Vec<u32> = inst.dst.iter().map(|_| self.take_scratch(256)).collect();
        self.each_lane(x, addresses, |s| {
            for (e, at) in (0..).zip(&rows) {
                let m = Mem::at(RAX, e * x.size());
                if is_wide(x.ty) {
                    s.load64(Register::RSI, m);
                    s.a.store(Code::Mov_rm64_r64, Mem::indexed(WARP, RDX, 8, *at as i32), Register::RSI, ALL);
                } else {
                    let code = match x.class.bits {
                        8 => Code::Movzx_r32_rm8,
                        16 => Code::Movzx_r32_rm16,
                        _ => Code::Mov_r32_rm32,
                    };
                    s.a.op2(code, Register::ESI, m);
                    s.a.store(Code::Mov_rm32_r32, Mem::indexed(WARP, RDX, 4, *at as i32), Register::ESI, ALL);
                }
            }
        });
        for (d, row) in inst.dst.iter().zip(rows) {
            self.take_result(*d, if is_wide(x.ty) { Loc::Row64(row) } else { Loc::Row32(row) }, x.lanes);
        }
    }

    /// Whether plain moves of the host, one for each element, do a strong access as its order asks. Those whose results are scalars of other shapes than
    /// their address are left to the routine.
    pub(crate) fn is_plain_strong(&self, inst: &Inst, class: &AccessClass) -> bool {
        let ordered = match class.order {
            Order::Volatile | Order::Relaxed | Order::Acquire | Order::Release => true,
            Order::Weak | Order::Mmio | Order::AcqRel | Order::Sc => false,
        };
        let alike = class.kind == Kind::Load && self.shape(class.address).is_some_and(|s| s.is_uniform());
        ordered
            && class.order_inline(&self.plan.options.host) == AccessOrder::Plain
            && (alike || self.results_vary(inst))
    }
}

/// The word of the stack with a number that holds what was found.
fn word_of_found(word: usize) -> Mem {
    Mem::at(RSP, VECTOR_AREA + FOUND + 8 * word as i32)
}
