//! Accesses by an index of 32 bits whose lanes are anywhere: `base + (index << shift)` in global memory.
//!
//! # The model
//! What 32 bits say is asked of them, which are half as many vectors as addresses: whether lanes are neighbours, whether all are at one place, and else whether each index lies
//! between the first and the last one that the limits leave, which scalars find. Elements are then so many bytes from the place of the first of these: offsets of 32 bits, as those of
//! shared memory are (`scattered`). Only what is nearer to the base than [`REACH`] is done so; for all else, and where a test refuses, the address is made as a vector (`indices`).

use handloom_ir::simt::{Inst, Val};
use handloom_ir::types::Ty;
use handloom_plan::access::Kind;
use iced_x86::{Code, Register};

use crate::access::{Access, Indexed};
use crate::asm::{Label, Mem};
use crate::emit::*;
use crate::scattered::FEW;
use crate::values::store_code;

use Register::{K7, R8, R9, R11};

/// An index is shifted by so much at most.
pub(crate) const MOST_SHIFT: u32 = 16;
/// Bytes from the base to an element, at most, as a power of two.
const REACH: u32 = 30;
/// The comparison for what is greater, of vectors.
const GREATER: u32 = 6;

/// An access by an index, with the vectors that hold the index.
struct Numbers<'a> {
    x: &'a Access,
    indexed: &'a Indexed,
    of: [Register; 2],
}

impl Emit<'_> {
    /// Does an access of lanes anywhere; where a test refuses, it goes on at `x.cold`.
    pub(crate) fn by_numbers(&mut self, inst: &Inst, x: &Access, indexed: &Indexed, done: Label) {
        if self.is_of_part(x) {
            // These are done one by one.
            self.a.op2(Code::Popcnt_r32_rm32, ECX, x.lanes);
            self.a.imm(Code::Cmp_rm32_imm8, ECX, FEW);
            self.a.jump(Code::Jbe_rel32_64, x.cold);
        }
        let s = self.clean_src(Val::Reg(indexed.index));
        let n = Numbers { x, indexed, of: [0, 1].map(|q| self.reg(&s, q, q as u8)) };
        self.a.number(R11, indexed.number.wrapping_add(x.class.offset).cast_unsigned());
        self.add_words(R11, RAX, indexed);
        self.first_number(&n);
        let anywhere = self.a.label();
        if 1 << indexed.shift == x.class.bytes() {
            let apart = self.a.label();
            self.unless_so_far(x, 16, apart);
            self.row_by_numbers(inst, &n, [done, if self.is_of_part(x) { apart } else { anywhere }]);
            self.a.bind(apart);
        }
        if x.class.kind == Kind::Load && !self.is_of_bundle(inst.dst.first()) {
            self.unless_so_far(x, 0, anywhere);
            self.one_by_numbers(inst, &n, [done, anywhere]);
        }
        self.a.bind_if_wanted(anywhere);
        self.rows_by_numbers(inst, x, (indexed, n.of), done);
        self.offsets(&n);
        self.at_lanes(inst, &Access { short: true, ..*x }, 2);
        self.a.jump(Code::Jmp_rel32_64, done);
    }

    /// The index of the first lane that takes part in `rsi`, at the width of addresses; in `rcx` that lane, or if all take part in `edx` how far the index of lane 16 is from it.
    fn first_number(&mut self, n: &Numbers<'_>) {
        let x = n.x;
        self.a.op2(Code::EVEX_Vmovq_rm64_xmm, RSI, xmm(n.of[0]));
        if self.is_of_part(x) {
            let (row, known) = (self.take_scratch(128), self.a.label());
            self.a.op2(Code::Tzcnt_r32_rm32, ECX, x.lanes);
            self.a.jump(Code::Je_rel32_64, known);
            for (q, r) in (0..).zip(n.of) {
                self.a.store(store_code(Ty::B32), ctx(row + 64 * q), r, ALL);
            }
            self.load32(Register::ESI, Mem::indexed(WARP, RCX, 4, row.cast_signed()));
            self.a.bind(known);
        }
        self.widen_index(RSI, RSI, n.indexed);
        if !self.is_of_part(x) {
            self.a.op2(Code::EVEX_Vmovq_rm64_xmm, RDX, xmm(n.of[1]));
            self.a.op2(Code::Sub_r32_rm32, EDX, Register::ESI);
        }
    }

    /// Where all lanes take part, goes to `apart` unless the index of lane 16 is so far from that of the first one: what is anywhere is mostly known by that.
    fn unless_so_far(&mut self, x: &Access, distance: i32, apart: Label) {
        if !self.is_of_part(x) {
            self.a.imm(Code::Cmp_rm32_imm8, EDX, distance);
            self.a.jump(Code::Jne_rel32_64, apart);
        }
    }

    /// An address by its number in a register, in `rax`.
    pub(crate) fn address_of(&mut self, number: Register, indexed: &Indexed) {
        self.a.op2(Code::Mov_r64_rm64, RAX, number);
        if indexed.shift > 0 {
            self.a.imm8(Code::Shl_rm64_imm8, RAX, indexed.shift);
        }
        self.a.op2(Code::Add_r64_rm64, RAX, R11);
    }

    /// Goes to `x.cold` if the last of so many lanes more, whose index goes up by 1 each from that in a register on, may have an index that wraps. Uses `rax` and `r8`.
    pub(crate) fn unless_wraps(&mut self, x: &Access, first: Register, more: i32, indexed: &Indexed) {
        self.a.op2(Code::Lea_r64_m, RAX, Mem::at(first, more));
        self.widen_index(R8, RAX, indexed);
        self.a.op2(Code::Cmp_r64_rm64, R8, RAX);
        self.a.jump(Code::Jne_rel32_64, x.cold);
    }

    /// Does an access of neighbours and goes to the first label, or to the second one.
    fn row_by_numbers(&mut self, inst: &Inst, n: &Numbers<'_>, [done, apart]: [Label; 2]) {
        let x = n.x;
        self.a.op2(Code::Mov_r64_rm64, RDX, RSI);
        if self.is_of_part(x) {
            self.a.op2(Code::Sub_r64_rm64, RDX, RCX);
        }
        self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(4), EDX);
        self.unless_equal(x, Ty::B32, &n.of, apart, |s, q| {
            let lanes: Vec<u64> = (16 * q as u64..16 * q as u64 + 16).collect();
            let c = s.lanes_constant(Ty::B32, &lanes);
            s.a.op3(Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, zmm(5), zmm(4), c);
            zmm(5)
        });
        self.unless_wraps(x, RSI, 31, n.indexed);
        self.address_of(RDX, n.indexed);
        self.fetch_ahead(x);
        self.limits(x);
        self.test_row(x);
        self.row(inst, x);
        self.a.jump(Code::Jmp_rel32_64, done);
    }

    /// Does a load of lanes that are all at one place and goes to the first label, or to the second one.
    fn one_by_numbers(&mut self, inst: &Inst, n: &Numbers<'_>, [done, apart]: [Label; 2]) {
        let x = n.x;
        self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(4), Register::ESI);
        self.unless_equal(x, Ty::B32, &n.of, apart, |_, _| zmm(4));
        self.address_of(RSI, n.indexed);
        self.limits(x);
        self.test(x, RAX, false);
        self.spread_place(inst, x);
        self.a.jump(Code::Jmp_rel32_64, done);
    }

    /// Tests all lanes. What they access is as many bytes from `r11`, which is moved, as vectors 0 and 1 say.
    fn offsets(&mut self, n: &Numbers<'_>) {
        let x = n.x;
        let (shift, bytes) = (n.indexed.shift, x.class.bytes() as i32);
        self.limits(x);
        // From the first byte that may be accessed to the base, in `rax`.
        self.a.op2(Code::Mov_r64_rm64, RAX, R11);
        self.a.op2(Code::Sub_r64_rm64, RAX, R8);
        if bytes > 1 {
            self.a.imm(Code::Test_rm32_imm32, EAX, bytes - 1);
            self.a.jump(Code::Jne_rel32_64, x.cold);
        }
        // The last number in `rdx`, the first one in `rax`.
        self.a.op2(Code::Lea_r64_m, RDX, Mem::at(R9, -bytes));
        self.a.op2(Code::Sub_r64_rm64, RDX, RAX);
        if shift > 0 {
            self.a.imm8(Code::Sar_rm64_imm8, RDX, shift);
            self.a.imm8(Code::Sar_rm64_imm8, RAX, shift);
        }
        self.a.op1(Code::Neg_rm64, RAX);
        let most = 1i64 << (REACH - shift);
        let ends = [
            (RAX, if n.indexed.signed { -most } else { 0 }, Code::Cmovl_r64_rm64),
            (RDX, most - 1, Code::Cmovg_r64_rm64),
        ];
        for (at, end, code) in ends {
            self.a.number(RCX, end.cast_unsigned());
            self.a.op2(Code::Cmp_r64_rm64, at, RCX);
            self.a.op2(code, at, RCX);
        }
        self.a.op2(Code::Sub_r64_rm64, RDX, RAX);
        self.a.jump(Code::Jl_rel32_64, x.cold);
        // Numbers that are none of an element are large ones when turned.
        let turned = (bytes.trailing_zeros()).saturating_sub(shift);
        if turned > 0 {
            self.a.imm8(Code::Shr_rm32_imm8, EDX, turned);
        }
        self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(4), EAX);
        self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(5), EDX);
        if shift > 0 {
            self.a.imm8(Code::Shl_rm64_imm8, RAX, shift);
        }
        self.a.op2(Code::Add_r64_rm64, R11, RAX);
        for (q, r) in n.of.into_iter().enumerate() {
            let mut distance = zmm(q as u8);
            self.a.op3(Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32, distance, r, zmm(4));
            if turned > 0 {
                self.a.op2i(Code::EVEX_Vprord_zmm_k1z_zmmm512b32_imm8, zmm(6), distance, turned);
                distance = zmm(6);
            }
            let mask = self.lanes_mask(x.lanes, Ty::B32, q);
            self.add_to_k7(Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8, q, mask, [distance, zmm(5)], GREATER);
        }
        self.a.op2(Code::VEX_Kortestw_kr_kr, K7, K7);
        self.a.jump(Code::Jne_rel32_64, x.cold);
        if shift > 0 {
            for q in 0..2 {
                self.a.op2i(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, zmm(q), zmm(q), shift);
            }
        }
    }
}
