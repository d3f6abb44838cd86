//! Accesses of which nothing is known: whether their lanes turn out to be neighbours, or to be at one place, as those of most programs do.

use handloom_ir::simt::Inst;
use handloom_ir::types::Ty;
use handloom_plan::access::Kind;
use iced_x86::{Code, Register};

use crate::access::Access;
use crate::alloc::n_parts;
use crate::asm::{Label, Mem, Out, low32};
use crate::emit::*;
use crate::found::Found;
use crate::scattered::NOT_EQUAL;
use crate::turns::{N_STREAMS, STREAMS};
use crate::values::store_code;

const R11: Register = Register::R11;

/// How many turns of a loop data is asked for ahead, as a power of two.
const TURNS_AHEAD: u32 = 2;

impl Emit<'_> {
    /// Where lane 0 would be, in `rax`, if the addresses in vectors 0 to 3 of the lanes that take part follow each other; else goes to `apart`. Uses
    /// vectors 4 and 5, `k5` to `k7`.
    pub(crate) fn first_of_row(&mut self, x: &Access, apart: Label) {
        self.a.op2(Code::EVEX_Vmovq_rm64_xmm, R11, xmm(zmm(0)));
        if self.is_of_part(x) {
            let (ty, scale) = if x.short { (Ty::B32, 4) } else { (Ty::B64, 8) };
            let row = self.take_scratch(256);
            let lanes = x.lanes;
            let known = self.a.label();
            self.a.imm(Code::Test_rm32_imm32, lanes, 1);
            self.a.jump(Code::Jne_rel32_64, known);
            for q in 0..n_parts(ty) as u32 {
                self.a.store(store_code(ty), ctx(row + 64 * q), zmm(q as u8), ALL);
            }
            self.a.op2(Code::Tzcnt_r32_rm32, ECX, lanes);
            self.load64(R11, Mem::indexed(WARP, RCX, scale, row as i32));
            self.a.imm8(Code::Shl_rm32_imm8, ECX, x.class.bytes().trailing_zeros());
            self.a.op2(Code::Sub_r64_rm64, R11, RCX);
            self.a.bind(known);
        }
        if x.short {
            self.in_front_too(R11);
        }
        self.follow(x, R11, apart);
        self.a.op2(Code::Mov_r64_rm64, RAX, R11);
    }

    /// Goes to `apart` unless the addresses in vectors 0 to 3 of the lanes that take part follow each other from the one in a register on, which is that of lane 0. Uses vectors 4
    /// and 5, `k5` to `k7`.
    pub(crate) fn follow(&mut self, x: &Access, first: Register, apart: Label) {
        let (ty, add) = match x.short {
            true => (Ty::B32, Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32),
            false => (Ty::B64, Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64),
        };
        self.spread_address(x, first);
        let n = 32 / n_parts(ty);
        self.unless_addresses(x, apart, |s, q| {
            let lanes: Vec<u64> = (n * q..n * (q + 1)).map(|l| l as u64 * x.class.bytes() as u64).collect();
            let c = s.lanes_constant(ty, &lanes);
            s.a.op3(add, zmm(5), zmm(4), c);
            zmm(5)
        });
    }

    /// An address in all lanes of vector 4.
    fn spread_address(&mut self, x: &Access, r: Register) {
        if x.short {
            self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(4), low32(r));
        } else {
            self.a.op2(Code::EVEX_Vpbroadcastq_zmm_k1z_r64, zmm(4), r);
        }
    }

    /// In a loop, asks for what a load reads some turns later, if it goes on by the step from the last turn to this one. The address is in `rax`. Uses `rdx`.
    pub(crate) fn fetch_ahead(&mut self, x: &Access) {
        let is_in_loop = self.plan.facts.cfg.loop_of[self.at.0].is_some();
        if x.class.kind != Kind::Load || !is_in_loop {
            return;
        }
        let at = (self.at.0 as i32 + self.at.1 as i32) % N_STREAMS;
        let last = Mem::at(RSP, VECTOR_AREA + STREAMS + 8 * at);
        self.a.op2(Code::Mov_r64_rm64, RDX, RAX);
        self.a.op2(Code::Sub_r64_rm64, RDX, last);
        self.store64(last, RAX);
        self.a.imm8(Code::Shl_rm64_imm8, RDX, TURNS_AHEAD);
        for line in (0..32 * x.class.bytes() as i32).step_by(64) {
            self.a.op1(Code::Prefetcht0_m8, Mem::indexed(RAX, RDX, 1, line));
        }
    }

    /// Does a load of lanes that turn out to have one address, behind [`first_of_row`](Self::first_of_row); else it goes on. (What is indexed by quotients is mostly so.)
    pub(crate) fn at_one_place(&mut self, inst: &Inst, x: &Access, found: Option<Found>, done: Label) {
        if x.class.kind != Kind::Load || self.is_of_bundle(inst.dst.first()) {
            return;
        }
        let apart = self.a.label();
        if self.is_of_part(x) {
            let lanes = x.lanes;
            self.a.op2(Code::Tzcnt_r32_rm32, ECX, lanes);
            self.a.imm8(Code::Shl_rm32_imm8, ECX, x.class.bytes().trailing_zeros());
            self.a.op2(Code::Add_r64_rm64, R11, RCX);
            self.spread_address(x, R11);
        }
        self.unless_addresses(x, apart, |_, _| zmm(4));
        self.a.op2(Code::Mov_r64_rm64, RAX, R11);
        self.limits(x);
        let cold = if self.may_be_own(x) { apart } else { x.cold };
        self.test_place(&Access { cold, ..*x });
        self.note_found(found, true);
        self.host(x, RAX);
        self.spread_place(inst, x);
        self.a.jump(Code::Jmp_rel32_64, done);
        self.a.bind(apart);
    }

    /// Goes to `apart` unless the addresses in vectors 0 to 3 of the lanes that take part are what each part is compared with.
    fn unless_addresses(&mut self, x: &Access, apart: Label, with: impl FnMut(&mut Self, usize) -> Register) {
        let ty = if x.short { Ty::B32 } else { Ty::B64 };
        let of: Vec<Register> = (0..n_parts(ty)).map(|q| zmm(q as u8)).collect();
        self.unless_equal(x, ty, &of, apart, with);
    }

    /// Goes to `apart` unless the values in vectors, of the lanes that take part, are what each part is compared with. Uses `rax`, `k5` to `k7`.
    pub(crate) fn unless_equal(
        &mut self,
        x: &Access,
        ty: Ty,
        of: &[Register],
        apart: Label,
        mut with: impl FnMut(&mut Self, usize) -> Register,
    ) {
        let code = match ty {
            Ty::B32 => Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8,
            _ => Code::EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8,
        };
        for (q, r) in of.iter().enumerate() {
            let with = with(self, q);
            let mask = self.lanes_mask(x.lanes, ty, q);
            self.add_to_k7(code, q, mask, [with, *r], NOT_EQUAL);
        }
        self.a.op2(Code::VEX_Kortestw_kr_kr, Register::K7, Register::K7);
        self.a.jump(Code::Jne_rel32_64, apart);
    }

    /// Adds to `k7` for which lanes of a part a comparison of two vectors holds. Uses `k6`.
    pub(crate) fn add_to_k7(&mut self, code: Code, q: usize, mask: Register, [a, b]: [Register; 2], cmp: u32) {
        let to = if q == 0 { Register::K7 } else { Register::K6 };
        self.a.op3i(code, Out::masked(to, mask), a, b, cmp);
        if q > 0 {
            self.a.op3(Code::VEX_Korw_kr_kr_kr, Register::K7, Register::K7, Register::K6);
        }
    }
}
