//! Accesses of which nothing is known, in blocks whose rows are shorter than a warp: whether the lanes of each row turn out to be neighbours.

use handloom_ir::simt::Inst;
use handloom_ir::types::Ty;
use handloom_plan::access::Kind;
use iced_x86::{Code, Register};

use crate::access::{Access, Indexed, Limits};
use crate::alloc::n_parts;
use crate::asm::{Label, Mem};
use crate::emit::*;
use crate::values::{by_width, load_code};

use Register::{R11, RDI};

/// Where the rows begin.
const ROWS: [Register; 4] = [RCX, RSI, RDI, R11];

impl Emit<'_> {
    /// How many rows a warp has, of an access that there is code for.
    fn rows_of_warp(&self, inst: &Inst, x: &Access) -> Option<usize> {
        let fits = x.class.count == 1 && !self.is_of_bundle(inst.dst.first());
        let is_wide = self.a.has_wide_vectors();
        // Without wide vectors, rows of short elements take as long as lanes by themselves.
        let has_halves = is_wide && (n_parts(x.ty) == 4 || x.class.bits == 32 || x.class.kind == Kind::Load);
        match self.plan.options.shape.ntid[0] % 32 {
            16 if fits && (is_wide || x.class.bits >= 32) => Some(2),
            8 | 24 if fits && has_halves => Some(4),
            _ => None,
        }
    }

    /// Does an access of a whole warp whose addresses are in vectors 0 to 3, if the lanes of each row follow each other, and goes to `done`; else it goes on. Uses vectors 4 and 5,
    /// `k5` to `k7`.
    pub(crate) fn by_rows(&mut self, inst: &Inst, x: &Access, done: Label) {
        let Some(n) = self.rows_of_warp(inst, x) else { return };
        let apart = self.a.label();
        let ty = if x.short { Ty::B32 } else { Ty::B64 };
        let of: Vec<Register> = (0..n_parts(ty)).map(|q| zmm(q as u8)).collect();
        self.unless_rows(x, (ty, n, x.class.bytes() as u64), &of, apart);
        for (k, at) in ROWS.into_iter().enumerate().take(n) {
            self.first_of_row_to(at, &of, k * 32 / n);
            if x.short {
                self.in_front_too(at);
            }
        }
        let cold = if self.may_be_own(x) { apart } else { x.cold };
        self.rows(inst, &Access { cold, ..*x }, n);
        self.a.jump(Code::Jmp_rel32_64, done);
        self.a.bind(apart);
    }

    /// The same by an index of 32 bits in two vectors, from the address in `r11` on. Where the index may wrap, or a test refuses, it goes on at `x.cold`.
    pub(crate) fn rows_by_numbers(
        &mut self,
        inst: &Inst,
        x: &Access,
        (indexed, of): (&Indexed, [Register; 2]),
        done: Label,
    ) {
        let Some(n) = self.rows_of_warp(inst, x).filter(|_| 1 << indexed.shift == x.class.bytes()) else { return };
        let apart = self.a.label();
        self.unless_rows(x, (Ty::B32, n, 1), &of, apart);
        for (k, at) in ROWS.into_iter().enumerate().take(n) {
            self.first_of_row_to(RDX, &of, k * 32 / n);
            self.widen_index(RDX, RDX, indexed);
            self.unless_wraps(x, RDX, 32 / n as i32 - 1, indexed);
            self.address_of(RDX, indexed);
            self.a.op2(Code::Mov_r64_rm64, at, RAX);
        }
        self.rows(inst, x, n);
        self.a.jump(Code::Jmp_rel32_64, done);
        self.a.bind(apart);
    }

    /// Goes to `apart` unless all lanes take part, and numbers in vectors go up by a step from lane to lane of each of `n` rows.
    fn unless_rows(&mut self, x: &Access, (ty, n, step): (Ty, usize, u64), of: &[Register], apart: Label) {
        if self.is_of_part(x) {
            self.a.imm(Code::Cmp_rm32_imm8, x.lanes, -1);
            self.a.jump(Code::Jne_rel32_64, apart);
        }
        let (of_row, of_part) = (32 / n, 32 / n_parts(ty));
        let add = by_width(ty, Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64);
        let permute = by_width(ty, Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpermq_zmm_k1z_zmm_zmmm512b64);
        self.unless_equal(x, ty, of, apart, |s, q| {
            // The first lanes of the rows of a part are all of one part.
            let first = |l: usize| (q * of_part + l) / of_row * of_row;
            let firsts: Vec<u64> = (0..of_part).map(|l| (first(l) % of_part) as u64).collect();
            let steps: Vec<u64> = (0..of_part).map(|l| (q * of_part + l - first(l)) as u64 * step).collect();
            let (firsts, steps) = (s.lanes_constant(ty, &firsts), s.lanes_constant(ty, &steps));
            s.a.op2(load_code(ty), zmm(4), firsts);
            s.a.op3(permute, zmm(5), zmm(4), of[first(0) / of_part]);
            s.a.op3(add, zmm(5), zmm(5), steps);
            zmm(5)
        });
    }

    /// The number of a lane, in a register. Uses vector 5.
    fn first_of_row_to(&mut self, to: Register, of: &[Register], lane: usize) {
        let of_part = 32 / of.len();
        let mut from = of[lane / of_part];
        if !lane.is_multiple_of(of_part) {
            self.a.op2i(Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8, ymm(zmm(5)), from, 1);
            from = zmm(5);
        }
        self.a.op2(Code::EVEX_Vmovq_rm64_xmm, to, xmm(from));
    }

    /// Does an access of all lanes by rows, whose addresses are in registers, with its tests.
    fn rows(&mut self, inst: &Inst, x: &Access, n: usize) {
        let rows = &ROWS[..n];
        if x.limits != Limits::Safe {
            self.limits_of_run(x, (32 / n as i64 - 1) * x.class.bytes());
            rows.iter().for_each(|at| self.test_start(x, *at));
        }
        rows.iter().for_each(|at| self.host(x, *at));
        let n_parts = n_parts(x.ty);
        for q in 0..n_parts {
            let first = q * n / n_parts;
            if n > n_parts {
                let halves = [first, first + 1].map(|k| Mem::at(rows[k], 0));
                match x.class.bits {
                    32 => self.move_halves(inst, x, q, halves),
                    _ => self.load_short_halves(inst, x, q, halves),
                }
            } else {
                let before = q % (n_parts / n) * (32 / n_parts);
                self.move_part(inst, x, q, Mem::at(rows[first], before as i32 * x.size()));
            }
        }
    }

    /// Loads a part whose halves are of elements of 8 or 16 bits.
    fn load_short_halves(&mut self, inst: &Inst, x: &Access, q: usize, [low, high]: [Mem; 2]) {
        let bits = x.class.bits;
        self.tuple_result(inst.dst[0], q, x, |s, to| {
            if bits == 8 {
                s.a.op2(Code::EVEX_Vmovq_xmm_xmmm64, xmm(to), low);
                s.a.op3i(Code::EVEX_Vpinsrq_xmm_xmm_rm64_imm8, xmm(to), xmm(to), high, 1);
                s.a.op2(Code::EVEX_Vpmovzxbd_zmm_k1z_xmmm128, to, xmm(to));
            } else {
                s.a.op2(Code::EVEX_Vmovdqu32_xmm_k1z_xmmm128, xmm(to), low);
                s.a.op3i(Code::EVEX_Vinserti32x4_ymm_k1z_ymm_xmmm128_imm8, ymm(to), ymm(to), high, 1);
                s.a.op2(Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256, to, ymm(to));
            }
        });
    }
}
