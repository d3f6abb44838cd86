//! Accesses of one element for each part of a vector: what is read at an address that many lanes share goes straight into vectors, where vectors are all that
//! wants it, and of what such lanes store the last is written.

use handloom_ir::simt::{Inst, Op, Reg, Val};
use handloom_ir::types::{Order, StateSpace, Ty};
use handloom_plan::Plan;
use handloom_plan::access::{AccessClass, Kind};
use handloom_plan::analysis::cfg::Set;
use handloom_plan::analysis::classes::Class;
use handloom_plan::analysis::shape::Shape;
use iced_x86::{Code, Register};

use crate::access::{Access, Limits};
use crate::alloc::{Place, n_parts};
use crate::asked::reg;
use crate::asm::Mem;
use crate::emit::*;
use crate::ops::has_vector_code;
use crate::values::{by_width, is_wide, store_code};

/// Whether all lanes of each part of a vector have one address.
pub(crate) fn is_banded(s: &Shape, ty: Ty) -> bool {
    has_bands(s, 32 / n_parts(ty))
}

/// Whether all lanes of each half of a part have one address, in parts of 32 bits a lane.
pub(crate) fn is_half_banded(s: &Shape, ty: Ty) -> bool {
    ty == Ty::B32 && has_bands(s, 8)
}

/// Whether every `n` lanes have one address. Both `n` and pieces are of several lanes.
fn has_bands(s: &Shape, n: usize) -> bool {
    let at = |lane: usize| (s.group_of(lane), s.delta(lane));
    s.stride == 0 && (0..32).step_by(s.piece_len()).all(|lane| at(lane) == at(lane / n * n))
}

/// Whether an instruction is a value op whose one result varies, in vector code.
pub(crate) fn is_on_vectors(plan: &Plan, inst: &Inst) -> bool {
    let varies = |d: &Reg| plan.facts.class[d.idx()] == Class::Varying;
    match inst.op {
        Op::Pure(op) => inst.dst.len() == 1 && inst.dst.iter().all(varies) && has_vector_code(op),
        _ => false,
    }
}

/// Lets what such a load returns live in vectors.
pub(crate) fn read_into_vectors(plan: &mut Plan) {
    let mut chosen: Vec<Reg> = Vec::new();
    for inst in plan.func.blocks.iter().flat_map(|b| &b.insts) {
        let Some(class) = AccessClass::of(inst) else { continue };
        let fits = class.kind == Kind::Load
            && matches!(class.space, StateSpace::Shared | StateSpace::Global | StateSpace::Generic)
            && class.order == Order::Weak
            && !class.is_single
            && !class.is_guarded
            && class.wants_all()
            && class.bits >= 32
            && plan.facts.arg(class.address).shape.is_some_and(|s| {
                let ty = plan.func.regs[inst.dst[0].idx()];
                is_banded(&s, ty) || class.count == 1 && is_half_banded(&s, ty)
            });
        if fits && inst.dst.iter().all(|d| plan.def_count[d.idx()] == 1) {
            chosen.extend(&inst.dst);
        }
    }
    if chosen.is_empty() {
        return;
    }
    let mut is_chosen = Set::new(plan.func.regs.len());
    chosen.iter().for_each(|r| _ = is_chosen.add(r.idx()));
    // What others than value ops on vectors read stays a scalar.
    let read = |v: &Val| reg(v).map(Reg::idx).filter(|r| is_chosen.has(*r));
    let mut is_scalar = Set::new(plan.func.regs.len());
    for block in &plan.func.blocks {
        let others = block.insts.iter().filter(|i| i.src.iter().any(|v| read(v).is_some()) && !is_on_vectors(plan, i));
        let read = others.flat_map(|i| &i.src).chain(&block.term.sources()).filter_map(read).collect::<Vec<_>>();
        read.into_iter().for_each(|r| _ = is_scalar.add(r));
    }
    for r in chosen.into_iter().filter(|r| !is_scalar.has(r.idx())) {
        plan.facts.class[r.idx()] = Class::Varying;
    }
}

impl Emit<'_> {
    /// One element for each part.
    pub(crate) fn bands(&mut self, inst: &Inst, x: &Access) {
        let Some(shape) = self.address_shape(x) else { return };
        if x.limits != Limits::Safe {
            let skip = self.around_tests(x);
            self.limits(x);
            for g in 0..shape.groups() {
                let lanes = (0..32).filter(|lane| shape.group_of(*lane) == g);
                let mut offsets: Vec<(i64, usize)> = lanes.map(|lane| (shape.delta(lane), lane)).collect();
                offsets.dedup_by_key(|o| o.0);
                for (_, lane) in offsets {
                    self.lane_address(x, lane);
                    self.test(x, RAX, false);
                }
            }
            self.after_tests(skip);
        }
        let n = n_parts(x.ty);
        let mut last = None;
        for q in 0..n {
            let lane = 32 / n * q;
            let from = (shape.group_of(lane), shape.delta(lane));
            if last != Some(from) {
                self.lane_address(x, lane);
                self.host(x, RAX);
                last = Some(from);
            }
            if x.class.kind == Kind::Store {
                self.a.op2(Code::Mov_r64_rm64, Register::R8, RAX);
                self.store_last(inst, x, q, Mem::at(Register::R8, 0));
                last = None;
            }
            for (e, d) in (0..).zip(&inst.dst) {
                self.spread_part(*d, q, Mem::at(RAX, e * x.size()), x);
            }
        }
    }

    /// One element for each half of a part, with its own tests.
    pub(crate) fn all_half_bands(&mut self, inst: &Inst, x: &Access) {
        if x.limits != Limits::Safe {
            let skip = self.around_tests(x);
            self.limits(x);
            for lane in (0..32).step_by(8) {
                self.lane_address(x, lane);
                self.test(x, RAX, false);
            }
            self.after_tests(skip);
        }
        for q in 0..n_parts(x.ty) {
            for (half, to) in (0..).zip([RCX, RSI]) {
                self.lane_address(x, 16 * q + 8 * half);
                self.host(x, RAX);
                self.a.op2(Code::Mov_r64_rm64, to, RAX);
            }
            self.half_bands(inst, x, q, [RCX, RSI].map(|r| Mem::at(r, 0)));
        }
    }

    /// A part of a load whose halves are at one address each. Uses vector 4.
    pub(crate) fn half_bands(&mut self, inst: &Inst, x: &Access, q: usize, [low, high]: [Mem; 2]) {
        let spread = Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32;
        self.tuple_result(inst.dst[0], q, x, |s, to| {
            s.a.op2(spread, zmm(4), high);
            s.a.op2(spread, to, low);
            s.a.op3i(Code::EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8, to, to, ymm(zmm(4)), 1);
            s.a.done_with(&[4]);
        });
    }

    /// Stores of all lanes of a part to one place: what the last of them has. Clobbers `rax`, vector 4.
    pub(crate) fn store_last(&mut self, inst: &Inst, x: &Access, q: usize, m: Mem) {
        for (e, v) in (0..).zip(&inst.operands()[1..]) {
            let s = self.clean_src(*v);
            let row = self.take_scratch(64);
            let r = self.reg(&s, q, 4);
            self.a.store(store_code(x.ty), ctx(row), r, ALL);
            if is_wide(x.ty) {
                self.load64(RAX, ctx(row + 56));
            } else {
                self.load32(EAX, ctx(row + 60));
            }
            self.store_element(x, m.behind(e * x.size()), RAX);
        }
    }

    /// An element of memory for all lanes of a part that take part. Keeps `rax`.
    pub(crate) fn spread_part(&mut self, d: Reg, q: usize, m: Mem, x: &Access) {
        let ty = self.f.regs[d.idx()];
        let code = by_width(ty, Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32, Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64);
        match self.place(d) {
            Place::Vectors(_) if x.lanes == LANES => {
                let out = self.out(d, q);
                self.a.op2(code, out, m);
            }
            _ => {
                self.a.op2(code, zmm(4), m);
                self.a.op2(Code::Mov_r64_rm64, Register::R8, RAX);
                self.put(d, q, zmm(4), x.lanes);
                self.a.op2(Code::Mov_r64_rm64, RAX, Register::R8);
            }
        }
    }
}
