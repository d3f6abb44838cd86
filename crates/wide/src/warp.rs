//! Warp-level ops by all lanes that there are, without a call.
//!
//! An op completes at once where no lane of the warp is anywhere else: then nobody can come whom these lanes wait for, and nobody is parked who would
//! take part. In a block that all lanes execute that is known; elsewhere code compares the lanes with those that live, and goes to the routine
//! (`flow`) if there are more. All lanes must name the same members, which is known of a uniform membermask.

use std::mem::offset_of;

use handloom_ir::simt::{Addresses, Inst, MatrixOp, Op, Pure, Reg, Val};
use handloom_ir::types::{AtomOp, Int, ShflMode, Ty, VoteMode};
use handloom_plan::abi::WarpCtx;
use iced_x86::{Code, Register};

use crate::alloc::n_parts;
use crate::asm::{Label, Mem, Out};
use crate::atomic::fold;
use crate::emit::*;
use crate::table::constant;
use crate::table::is_met_inline;
use crate::values::{Src, is_wide, load_code, store_code};

const ESI: Register = Register::ESI;
const K5: Register = Register::K5;
const K6: Register = Register::K6;
const K7: Register = Register::K7;
const UNSIGNED: Code = Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8;
const SIGNED: Code = Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8;
/// What comparisons of integers are called by number.
const LE: u32 = 2;
const GE: u32 = 5;

impl Emit<'_> {
    /// A warp-level op, the last of its block.
    pub(crate) fn sync(&mut self, b: usize, inst: &Inst) -> Result<(), Refusal> {
        if !is_met_inline(self.plan, inst) {
            return match inst.op {
                Op::Shfl(_) | Op::BarWarp if self.f.is_entry => self.sync_in_groups(b, inst),
                Op::Vote(_) | Op::Match { .. } | Op::Redux { .. } | Op::Elect if self.f.is_entry => {
                    self.sync_of_all(b, inst)
                }
                _ => self.sync_by_routine(b, inst),
            };
        }
        if !self.in_part {
            self.complete(inst);
            return Ok(());
        }
        let (wait, all, done) = (self.a.label(), self.a.label(), self.a.label());
        if matches!(inst.op, Op::Shfl(_)) && inst.src[1..3].iter().all(|v| constant(*v).is_some()) {
            // All lanes there are, as nearly always: known ones are taken, without a mask.
            let some = self.a.label();
            self.a.imm(Code::Cmp_rm32_imm8, LANES, -1);
            self.a.jump(Code::Jne_rel32_64, some);
            self.in_part = false;
            self.complete(inst);
            self.in_part = true;
            self.a.jump(Code::Jmp_rel32_64, done);
            self.a.bind(some);
        }
        // A function that is called has only some of the lanes in its context, and exchanges of addresses are for all lanes.
        if self.f.is_entry && !matches!(inst.op, Op::Matrix(_)) {
            let live = warp(offset_of!(WarpCtx, live));
            self.a.op2(Code::Cmp_r32_rm32, LANES, live);
            if let Some(members) = inst.src.last().filter(|v| constant(**v) != Some(u32::MAX.into())) {
                // Or all that the membermask names.
                self.a.jump(Code::Je_rel32_64, all);
                self.lane_value(*members, 0, RAX);
                self.a.op2(Code::And_r32_rm32, EAX, live);
                self.a.op2(Code::Cmp_r32_rm32, LANES, EAX);
            }
        } else {
            self.a.imm(Code::Cmp_rm32_imm32, LANES, -1);
        }
        self.a.jump(Code::Jne_rel32_64, wait);
        self.a.bind_if_wanted(all);
        self.complete(inst);
        self.else_by_routine(b, inst, wait, done)
    }

    /// Behind an op that is done at once: what waits goes to the routine.
    fn else_by_routine(&mut self, b: usize, inst: &Inst, wait: Label, done: Label) -> Result<(), Refusal> {
        self.a.jump(Code::Jmp_rel32_64, done);
        self.a.bind(wait);
        self.sync_by_routine(b, inst)?;
        self.a.bind(done);
        Ok(())
    }

    /// The lanes that live of those that each lane names, in vectors 4 and 5 by part. Uses vectors 2 and 6.
    fn named_by_lanes(&mut self, members: Val) -> [Register; 2] {
        let s = self.clean_src(members);
        self.load32(EAX, warp(offset_of!(WarpCtx, live)));
        self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(6), EAX);
        [0, 1].map(|q| {
            let (named, r) = (zmm(4 + q as u8), self.reg(&s, q, 2));
            self.a.op3(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, named, r, zmm(6));
            named
        })
    }

    /// An op of lanes that may name different members: at once if all of them name those of the block, as lanes do that have asked who is there.
    fn sync_of_all(&mut self, b: usize, inst: &Inst) -> Result<(), Refusal> {
        let (wait, done) = (self.a.label(), self.a.label());
        let Some(members) = inst.src.last() else { return self.sync_by_routine(b, inst) };
        let named = self.named_by_lanes(*members);
        self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(6), LANES);
        self.equal(named);
        self.lanes_found(EAX);
        self.a.op2(Code::Cmp_r32_rm32, EAX, LANES);
        let apart = self.a.label();
        self.a.jump(Code::Jne_rel32_64, apart);
        self.complete(inst);
        self.a.jump(Code::Jmp_rel32_64, done);
        self.a.bind(apart);
        self.of_tiles(inst, named, wait);
        self.else_by_routine(b, inst, wait, done)
    }

    /// An op of lanes that name different members: at once if these are groups of lanes of the block that name each other, as tiles of a warp do.
    fn sync_in_groups(&mut self, b: usize, inst: &Inst) -> Result<(), Refusal> {
        let (again, wait, done) = (self.a.label(), self.a.label(), self.a.label());
        let Some(members) = inst.src.last() else { return self.sync_by_routine(b, inst) };
        let named = self.named_by_lanes(*members);
        let row = self.take_scratch(128);
        let told = self.are_tiles(named, row);
        self.a.op2(Code::Mov_r32_rm32, ESI, LANES);
        self.a.bind(again);
        // Whom the first lane that is left names is left too, and names the same.
        self.a.op2(Code::Tzcnt_r32_rm32, ECX, ESI);
        self.load32(EAX, Mem::indexed(WARP, RCX, 4, row as i32));
        self.a.op2(Code::Mov_r32_rm32, Register::EDX, ESI);
        self.a.op1(Code::Not_rm32, Register::EDX);
        self.a.op2(Code::Test_rm32_r32, Register::EDX, EAX);
        self.a.jump(Code::Jne_rel32_64, wait);
        self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(6), EAX);
        self.equal([zmm(4), zmm(5)]);
        self.lanes_found(Register::EDX);
        self.a.op2(Code::Cmp_r32_rm32, Register::EDX, EAX);
        self.a.jump(Code::Jne_rel32_64, wait);
        self.a.op1(Code::Not_rm32, EAX);
        self.a.op2(Code::And_r32_rm32, ESI, EAX);
        self.a.jump(Code::Jne_rel32_64, again);
        self.a.bind(told);
        if let Op::Shfl(mode) = inst.op {
            self.shuffle(inst, mode, Some(row));
        }
        self.else_by_routine(b, inst, wait, done)
    }

    /// The op for the lanes of the block.
    fn complete(&mut self, inst: &Inst) {
        match inst.op {
            Op::BarWarp => {}
            Op::Shfl(mode) => self.shuffle(inst, mode, None),
            Op::Vote(mode) => self.vote(inst, mode),
            Op::Match { ty, all } => self.matches(inst, ty, all),
            Op::Redux { op, signed } => self.redux(inst, op, signed),
            Op::Elect => {
                self.a.op2(Code::Tzcnt_r32_rm32, EAX, LANES);
                self.put_for_all(inst.dst[0]);
                if let Some(d) = inst.dst.get(1) {
                    self.a.op2(Code::VEX_Blsi_r32_rm32, EAX, LANES);
                    self.set_bits(*d);
                }
            }
            Op::Matrix(MatrixOp::Addresses(a)) => self.addresses(inst, a),
            Op::Matrix(MatrixOp::Transpose) => self.transpose(inst),
            other => panic!("{other:?} is no warp-level op that is done here"),
        }
    }

    /// The number in `rax` to all lanes of a register.
    fn put_for_all(&mut self, d: Reg) {
        match self.words(d) {
            Some((_, at)) => self.store64(ctx(at), RAX),
            None => self.spread(d),
        }
    }

    /// 1 or 0 in `eax` to all lanes of a predicate.
    fn put_predicate_for_all(&mut self, d: Reg) {
        match self.words(d) {
            Some((_, at)) => self.store64(ctx(at), RAX),
            None => {
                self.a.op1(Code::Neg_rm32, EAX);
                self.set_bits(d);
            }
        }
    }

    /// The flags as 1 or 0 in `eax`.
    fn flag(&mut self, set: Code) {
        self.a.op1(set, Register::AL);
        self.a.op2(Code::Movzx_r32_rm8, EAX, Register::AL);
    }

    fn vote(&mut self, inst: &Inst, mode: VoteMode) {
        let p = self.src(inst.src[0]);
        self.bits(&p);
        if self.in_part {
            self.a.op2(Code::And_r32_rm32, EAX, LANES);
        }
        let d = inst.dst[0];
        match mode {
            VoteMode::Ballot => {
                self.a.op2(Code::Mov_r32_rm32, EAX, EAX);
                self.put_for_all(d);
                return;
            }
            VoteMode::All => {
                self.a.op2(Code::Cmp_r32_rm32, EAX, LANES);
                self.flag(Code::Sete_rm8);
            }
            VoteMode::Any => {
                self.a.op2(Code::Test_rm32_r32, EAX, EAX);
                self.flag(Code::Setne_rm8);
            }
            VoteMode::Uni => {
                self.a.op2(Code::Cmp_r32_rm32, EAX, LANES);
                self.a.op1(Code::Sete_rm8, Register::CL);
                self.a.op2(Code::Test_rm32_r32, EAX, EAX);
                self.a.op1(Code::Sete_rm8, Register::AL);
                self.a.op2(Code::Or_r8_rm8, Register::AL, Register::CL);
                self.a.op2(Code::Movzx_r32_rm8, EAX, Register::AL);
            }
        }
        self.put_predicate_for_all(d);
    }

    /// For each lane the lanes with its value: one turn for each value that there is.
    fn matches(&mut self, inst: &Inst, ty: Ty, all: bool) {
        let s = self.clean_src(inst.src[0]);
        let row = self.take_scratch(256);
        let n = n_parts(ty);
        let mut parts = [Register::None; 4];
        for (q, part) in parts.iter_mut().take(n).enumerate() {
            *part = self.reg(&s, q, q as u8);
            self.a.store(store_code(ty), ctx(row + 64 * q as u32), *part, ALL);
        }
        let again = self.a.label();
        self.a.op2(Code::Mov_r32_rm32, ESI, LANES);
        self.a.bind(again);
        self.a.op2(Code::Tzcnt_r32_rm32, ECX, ESI);
        let value = |scale| Mem::indexed(WARP, RCX, scale, row as i32);
        if is_wide(ty) {
            const EQUAL: Code = Code::EVEX_Vpcmpeqq_kr_k1_zmm_zmmm512b64;
            self.a.op2(Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64, zmm(6), value(8));
            for (low, high, to) in [(0, 1, K5), (2, 3, K6)] {
                self.a.op3(EQUAL, to, parts[low], zmm(6));
                self.a.op3(EQUAL, K7, parts[high], zmm(6));
                self.a.op3(Code::VEX_Kunpckbw_kr_kr_kr, to, K7, to);
            }
        } else {
            self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32, zmm(6), value(4));
            self.equal([parts[0], parts[1]]);
        }
        self.lanes_found(EAX);
        if all {
            self.a.op2(Code::Xor_r32_rm32, ECX, ECX);
            self.a.op2(Code::Cmp_r32_rm32, EAX, LANES);
            self.a.op2(Code::Cmovne_r32_rm32, EAX, ECX);
            self.a.op1(Code::Sete_rm8, Register::CL);
            self.a.op2(Code::Mov_r32_rm32, ESI, ECX);
            self.put_for_all(inst.dst[0]);
            if let Some(d) = inst.dst.get(1) {
                self.a.op2(Code::Mov_r32_rm32, EAX, ESI);
                self.put_predicate_for_all(*d);
            }
            return;
        }
        // Vectors 4 and 5 get each lane once.
        self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, Out::masked(zmm(4), K5), EAX);
        self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, Out::masked(zmm(5), K6), EAX);
        self.a.op1(Code::Not_rm32, EAX);
        self.a.op2(Code::And_r32_rm32, ESI, EAX);
        self.a.jump(Code::Jne_rel32_64, again);
        self.put_parts(inst.dst[0], [zmm(4), zmm(5)]);
    }

    /// The lanes of two vectors that are equal to those of vector 6, in `k5` and `k6`.
    fn equal(&mut self, parts: [Register; 2]) {
        for (k, part) in [K5, K6].into_iter().zip(parts) {
            self.a.op3(Code::EVEX_Vpcmpeqd_kr_k1_zmm_zmmm512b32, k, part, zmm(6));
        }
    }

    /// The lanes of the block that are in `k5` and `k6`. Uses `k7`.
    pub(crate) fn lanes_found(&mut self, to: Register) {
        self.a.op3(Code::VEX_Kunpckwd_kr_kr_kr, K7, K6, K5);
        self.a.op2(Code::VEX_Kmovd_r32_kr, to, K7);
        self.a.op2(Code::And_r32_rm32, to, LANES);
    }

    /// Both parts of a result of 32 bits.
    pub(crate) fn put_parts(&mut self, d: Reg, parts: [Register; 2]) {
        for (q, part) in parts.into_iter().enumerate() {
            let out = self.out(d, q);
            self.copy(Ty::B32, out, part.into());
            self.commit(d, q);
        }
    }

    fn redux(&mut self, inst: &Inst, op: AtomOp, signed: bool) {
        let (op, neutral) = redux_op(op, signed);
        let s = self.clean_src(inst.src[0]);
        self.reduced(&s, op, neutral, LANES);
        self.put_for_all(inst.dst[0]);
    }

    /// `with`: the row that says, by lane, who takes part with it; else all lanes of the block do.
    fn shuffle(&mut self, inst: &Inst, mode: ShflMode, with: Option<u32>) {
        let s = self.clean_src(inst.src[0]);
        let parts = [0, 1].map(|q| self.reg(&s, q, q as u8));
        match (constant(inst.src[1]), constant(inst.src[2])) {
            (Some(b), Some(c)) => {
                let from: Vec<(u32, bool)> = (0..32).map(|l| mode.source(l, b as u32, c as u32)).collect();
                let in_range = from.iter().enumerate().fold(0, |m, (l, f)| m | u32::from(f.1) << l);
                for q in 0..2 {
                    let lanes: [u32; 16] = std::array::from_fn(|i| from[16 * q + i].0);
                    if self.in_part || with.is_some() {
                        let c = self.a.words(lanes);
                        self.a.op2(load_code(Ty::B32), zmm(4 + q as u8), Mem::constant(c, 0));
                        self.take_lanes(q, parts, with);
                    } else {
                        self.take_known_lanes(q, parts, lanes);
                    }
                }
                self.a.imm(Code::Mov_rm32_imm32, ESI, in_range.cast_signed());
            }
            (_, c) => {
                for q in 0..2 {
                    self.sources_of_lanes(inst, mode, c, q);
                    self.take_lanes(q, parts, with);
                }
            }
        }
        self.put_parts(inst.dst[0], [zmm(4), zmm(5)]);
        if let Some(d) = inst.dst.get(1) {
            self.a.op2(Code::Mov_r32_rm32, EAX, ESI);
            self.set_bits(*d);
        }
    }

    /// Lanes of two vectors in a known order, to vector 4 or 5 by part.
    fn take_known_lanes(&mut self, q: usize, parts: [Register; 2], lanes: [u32; 16]) {
        let to = zmm(4 + q as u8);
        let half = (lanes[0] / 16) as usize;
        let inside: Vec<u32> = lanes.iter().map(|l| l % 16).collect();
        if lanes.iter().any(|l| (l / 16) as usize != half) {
            let c = self.a.words(lanes);
            self.a.op2(load_code(Ty::B32), to, Mem::constant(c, 0));
            self.a.op3(Code::EVEX_Vpermi2d_zmm_k1z_zmm_zmmm512b32, to, parts[0], parts[1]);
            return;
        }
        let from = parts[half];
        let order = |of: &dyn Fn(usize) -> u32| (0..4).fold(0, |n, i| n | (of(i) & 3) << (2 * i));
        if (0..16).all(|i| inside[i] as usize == i) {
            self.copy(Ty::B32, to.into(), from.into());
        } else if (0..16).all(|i| inside[i] as usize == i / 4 * 4 + (inside[i % 4] as usize & 3)) {
            // Within each group of four.
            let order = order(&|i| inside[i]);
            self.a.op2i(Code::EVEX_Vpshufd_zmm_k1z_zmmm512b32_imm8, to, from, order);
        } else if (0..16).all(|i| inside[i] as usize % 4 == i % 4 && inside[i] / 4 == inside[i / 4 * 4] / 4) {
            // Groups of four as they are.
            let order = order(&|i| inside[4 * i] / 4);
            self.a.op3i(Code::EVEX_Vshufi32x4_zmm_k1z_zmm_zmmm512b32_imm8, to, from, from, order);
        } else {
            let c = self.a.words(std::array::from_fn(|i| inside[i]));
            self.a.op2(load_code(Ty::B32), zmm(2), Mem::constant(c, 0));
            self.a.op3(Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32, to, zmm(2), from);
        }
    }

    /// Lanes of two vectors, to vector 4 or 5 by part, which has their numbers. Uses vectors 2 and 3, `k6`.
    fn take_lanes(&mut self, q: usize, parts: [Register; 2], with: Option<u32>) {
        let to = zmm(4 + q as u8);
        if with.is_some() || self.in_part && self.f.is_entry {
            // A lane that does not take part gives way to the own one.
            let one = self.constant(Ty::B32, 1);
            match with {
                Some(row) => self.a.op2(load_code(Ty::B32), zmm(3), ctx(row + 64 * q as u32)),
                None => self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(3), LANES),
            }
            self.a.op3(Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32, zmm(3), zmm(3), to);
            self.a.op2(load_code(Ty::B32), zmm(2), one);
            self.a.op3(Code::EVEX_Vptestnmd_kr_k1_zmm_zmmm512b32, K6, zmm(3), zmm(2));
            let own = self.lane_numbers(Ty::B32, q);
            self.a.op2(load_code(Ty::B32), Out::masked(to, K6), own);
        }
        self.a.op3(Code::EVEX_Vpermi2d_zmm_k1z_zmm_zmmm512b32, to, parts[0], parts[1]);
    }

    /// The lanes that `shfl` reads, in vector 4 or 5 by part; `esi` collects which are in range. `c`: the third source, if it is a constant. Uses
    /// vectors 2, 3, 6 and 7, `k5`.
    fn sources_of_lanes(&mut self, inst: &Inst, mode: ShflMode, c: Option<u64>, q: usize) {
        const AND: Code = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
        const AND_NOT: Code = Code::EVEX_Vpandnd_zmm_k1z_zmm_zmmm512b32;
        const OR: Code = Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32;
        let to = zmm(4 + q as u8);
        let [five_bits, own] = [self.constant(Ty::B32, 31), self.lane_numbers(Ty::B32, q)];
        // The segment in vector 6, the least lane in 7, the most in 3.
        let (segment, least, most) = (zmm(6), zmm(7), zmm(3));
        match c {
            Some(c) => {
                let (clamp, seg) = (c as u32 & 31, c as u32 >> 8 & 31);
                let lanes = [16 * q as u32; 16];
                let of = |f: &dyn Fn(u32) -> u32| std::array::from_fn(|i| f(lanes[i] + i as u32));
                let low = self.a.words(of(&|l| l & seg));
                let high = self.a.words(of(&|l| l & seg | clamp & !seg));
                self.a.op2(load_code(Ty::B32), least, Mem::constant(low, 0));
                self.a.op2(load_code(Ty::B32), most, Mem::constant(high, 0));
                let seg = self.constant(Ty::B32, seg.into());
                self.a.op2(load_code(Ty::B32), segment, seg);
            }
            None => {
                let s = self.src(inst.src[2]);
                let r = self.reg(&s, q, 3);
                self.a.op2i(Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8, segment, r, 8);
                self.a.op3(AND, segment, segment, five_bits);
                self.a.op3(AND, most, r, five_bits);
                self.a.op3(AND_NOT, most, segment, most);
                self.a.op3(AND, least, segment, own);
                self.a.op3(OR, most, most, least);
            }
        }
        let s = self.src(inst.src[1]);
        let b = self.reg(&s, q, 2);
        let lane = zmm(2);
        self.a.op3(AND, lane, b, five_bits);
        self.a.op2(load_code(Ty::B32), to, own);
        match mode {
            ShflMode::Up => self.a.op3(Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32, lane, to, lane),
            ShflMode::Down => self.a.op3(Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, lane, to, lane),
            ShflMode::Bfly => self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, lane, to, lane),
            ShflMode::Idx => {
                self.a.op3(AND_NOT, lane, segment, lane);
                self.a.op3(OR, lane, lane, least);
            }
        }
        // For `.up`, what is below lane 0 is below every bound.
        let (code, number) = if mode == ShflMode::Up { (SIGNED, GE) } else { (UNSIGNED, LE) };
        self.a.op3i(code, K5, lane, most, number);
        self.a.op2(load_code(Ty::B32), Out::masked(to, K5), lane);
        if q == 0 {
            self.a.op2(Code::VEX_Kmovw_r32_kr, ESI, K5);
        } else {
            self.a.op2(Code::VEX_Kmovw_r32_kr, EAX, K5);
            self.a.imm8(Code::Shl_rm32_imm8, EAX, 16);
            self.a.op2(Code::Or_r32_rm32, ESI, EAX);
        }
    }

    /// Addresses of elements from addresses of rows: lanes come from one part of the source, in a known order.
    fn addresses(&mut self, inst: &Inst, a: Addresses) {
        let s: Src = self.src(inst.src[0]);
        let wide = is_wide(a.ty);
        let lanes = if wide { 8 } else { 16 };
        for (i, d) in inst.dst.iter().enumerate() {
            // The lane that is read, and what is added.
            let of = |lane: usize| a.lines.source(i, lane);
            let part = of(0).0 / lanes;
            let from = self.reg(&s, part, 0);
            for q in 0..n_parts(a.ty) {
                let (mut order, mut by) = ([0; 16], [0; 16]);
                for l in 0..lanes {
                    let (lane, add) = of(q * lanes + l);
                    (order[l], by[l]) = ((lane % lanes) as u64, add);
                }
                // Where halves come from one half each, AVX2 picks them by one instruction.
                let of = [0, 8].map(|l| (order[l] / 8) as usize);
                let is_of_halves =
                    !wide && !self.a.has_wide_vectors() && (0..16).all(|l| order[l] as usize / 8 == of[l / 8]);
                if is_of_halves {
                    order.iter_mut().for_each(|lane| *lane %= 8);
                }
                let order = self.lanes_constant(a.ty, &order[..lanes]);
                let by = self.lanes_constant(a.ty, &by[..lanes]);
                let out = self.out(*d, q);
                if is_of_halves {
                    self.a.picked_from_halves(zmm(3), from, order, of);
                    self.a.op3(Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, out, zmm(3), by);
                    self.commit(*d, q);
                    continue;
                }
                self.a.op2(load_code(a.ty), zmm(2), order);
                let (permute, add) = if wide {
                    (Code::EVEX_Vpermq_zmm_k1z_zmm_zmmm512b64, Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64)
                } else {
                    (Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32)
                };
                self.a.op3(permute, zmm(3), zmm(2), from);
                self.a.op3(add, out, zmm(3), by);
                self.commit(*d, q);
            }
        }
    }

    /// An 8 by 8 matrix of 16-bit elements with rows and columns changed.
    fn transpose(&mut self, inst: &Inst) {
        let s = self.src(inst.src[0]);
        let parts = [0, 1].map(|q| self.reg(&s, q, q as u8));
        self.a.transposed([zmm(4), zmm(5)], parts);
        self.put_parts(inst.dst[0], [zmm(4), zmm(5)]);
    }
}

/// The op that makes one value of those of some lanes, and a value that changes nothing.
pub(crate) fn redux_op(op: AtomOp, signed: bool) -> (Pure, u64) {
    fold(op, Int { ty: Ty::B32, signed }).unwrap_or_else(|| panic!("`redux` has no {op:?}"))
}
