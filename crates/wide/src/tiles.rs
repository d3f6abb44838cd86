//! Warp-level ops of tiles: lanes that follow each other, a power of two of them, as groups of threads are cut from a warp.

use handloom_ir::simt::{Inst, Op};
use handloom_ir::types::{AtomOp, Ty, VoteMode};
use iced_x86::{Code, Register};

use crate::asm::{Label, Mem};
use crate::emit::*;
use crate::table::simple;
use crate::values::{load_code, store_code};
use crate::warp::redux_op;

const EDX: Register = Register::EDX;
const K5: Register = Register::K5;
const K6: Register = Register::K6;
const K7: Register = Register::K7;
const AND: Code = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
const EQUAL: Code = Code::EVEX_Vpcmpeqd_kr_k1_zmm_zmmm512b32;

impl Emit<'_> {
    /// Goes to the label that it returns where all lanes of the warp are there, and each names those of its tile: the warp is cut into tiles of 1 to 32 lanes. Whom they name is in two
    /// vectors, and is put into a row. Uses vectors 2, 3 and 6.
    pub(crate) fn are_tiles(&mut self, named: [Register; 2], row: u32) -> Label {
        let (told, apart) = (self.a.label(), self.a.label());
        for (q, named) in (0..).zip(named) {
            self.a.store(store_code(Ty::B32), ctx(row + 64 * q), named, ALL);
        }
        self.a.imm(Code::Cmp_rm32_imm8, LANES, -1);
        self.a.jump(Code::Jne_rel32_64, apart);
        // The first tile: lanes from 0 on, a power of two of them.
        self.load32(EAX, ctx(row));
        self.a.op2(Code::Lea_r32_m, ECX, Mem::at(RAX, 1));
        self.a.op2(Code::Test_rm32_r32, ECX, EAX);
        self.a.jump(Code::Jne_rel32_64, apart);
        self.a.op2(Code::Popcnt_r32_rm32, ECX, EAX);
        self.a.op2(Code::Lea_r32_m, EDX, Mem::at(RCX, -1));
        self.a.op2(Code::Test_rm32_r32, EDX, ECX);
        self.a.jump(Code::Jne_rel32_64, apart);
        self.a.op1(Code::Neg_rm32, ECX);
        self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(6), ECX);
        self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(2), EAX);
        for (q, k) in [K5, K6].into_iter().enumerate() {
            let (first, numbers) = (zmm(3), self.lane_numbers(Ty::B32, q));
            self.a.op3(AND, first, zmm(6), numbers);
            self.a.op3(Code::EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32, first, zmm(2), first);
            self.a.op3(EQUAL, k, named[q], first);
        }
        self.lanes_found(EAX);
        self.a.imm(Code::Cmp_rm32_imm8, EAX, -1);
        self.a.jump(Code::Je_rel32_64, told);
        self.a.bind(apart);
        told
    }

    /// A vote or a reduction where the warp is cut into tiles; else it goes to `wait`. Whom lanes name is in vectors 4 and 5.
    pub(crate) fn of_tiles(&mut self, inst: &Inst, named: [Register; 2], wait: Label) {
        let is_for_tiles = matches!(inst.op, Op::Vote(_) | Op::Redux { .. }) && self.words(inst.dst[0]).is_none();
        if !is_for_tiles {
            self.a.jump(Code::Jmp_rel32_64, wait);
            return;
        }
        let row = self.take_scratch(128);
        let told = self.are_tiles(named, row);
        self.a.jump(Code::Jmp_rel32_64, wait);
        self.a.bind(told);
        match inst.op {
            Op::Vote(mode) => self.vote_of_tiles(inst, mode, named),
            Op::Redux { op, signed } => self.redux_of_tiles(inst, op, signed, row),
            other => panic!("{other:?} is not for tiles"),
        }
    }

    fn vote_of_tiles(&mut self, inst: &Inst, mode: VoteMode, named: [Register; 2]) {
        let p = self.src(inst.src[0]);
        self.bits(&p);
        let (bits, d) = (zmm(6), inst.dst[0]);
        self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, bits, EAX);
        let ours = [zmm(0), zmm(1)];
        for (ours, named) in ours.into_iter().zip(named) {
            self.a.op3(AND, ours, bits, named);
        }
        if mode == VoteMode::Ballot {
            self.put_parts(d, ours);
            return;
        }
        // Lanes of whose tile one has it, all have, or all or none.
        for (q, k) in [K5, K6].into_iter().enumerate() {
            if mode == VoteMode::Any {
                self.a.op3(Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32, k, ours[q], ours[q]);
                continue;
            }
            self.a.op3(EQUAL, k, ours[q], named[q]);
            if mode == VoteMode::Uni {
                self.a.op3(Code::EVEX_Vptestnmd_kr_k1_zmm_zmmm512b32, K7, ours[q], ours[q]);
                self.a.op3(Code::VEX_Korw_kr_kr_kr, k, k, K7);
            }
        }
        self.lanes_found(EAX);
        self.set_bits(d);
    }

    /// Lanes take what those at a distance of 1, 2, 4 and so on have, as far as their tile goes.
    fn redux_of_tiles(&mut self, inst: &Inst, op: AtomOp, signed: bool, row: u32) {
        let (op, _) = redux_op(op, signed);
        let Some(code) = simple(op).map(|c| c.narrow) else { panic!("{op:?} is no instruction") };
        let s = self.clean_src(inst.src[0]);
        let (parts, other) = ([zmm(0), zmm(1)], zmm(2));
        for (q, part) in parts.into_iter().enumerate() {
            let r = self.reg(&s, q, q as u8);
            if r != part {
                self.a.op2(load_code(Ty::B32), part, r);
            }
        }
        let done = self.a.label();
        self.load32(EAX, ctx(row));
        self.a.op2(Code::Popcnt_r32_rm32, ECX, EAX);
        for (step, distance) in [1, 2, 4, 8, 16].into_iter().enumerate() {
            self.a.imm(Code::Cmp_rm32_imm8, ECX, distance);
            self.a.jump(Code::Jbe_rel32_64, done);
            if distance == 16 {
                self.a.op3(code, parts[0], parts[0], parts[1]);
                self.a.op2(load_code(Ty::B32), parts[1], parts[0]);
                continue;
            }
            for part in parts {
                let order = if step % 2 == 0 { 0xb1 } else { 0x4e };
                if step < 2 {
                    self.a.op2i(Code::EVEX_Vpshufd_zmm_k1z_zmmm512b32_imm8, other, part, order);
                } else {
                    self.a.op3i(Code::EVEX_Vshufi64x2_zmm_k1z_zmm_zmmm512b64_imm8, other, part, part, order);
                }
                self.a.op3(code, part, part, other);
            }
        }
        self.a.bind(done);
        self.put_parts(inst.dst[0], parts);
    }
}
