//! What the runtime does for code: operands in rows, results out of rows.

use handloom_ir::simt::{Inst, Pure, Reg, Val};
use handloom_ir::types::Ty;
use handloom_plan::abi::{EvalSite, Loc, Routine};
use handloom_plan::analysis::classes::Class;
use handloom_plan::analysis::shape::Shape;
use iced_x86::{Code, Register};

use crate::alloc::{Place, n_parts};
use crate::asm::Out;
use crate::emit::*;
use crate::head::FRAME_WORDS;
use crate::values::{At, Src, is_wide, load_code, store_code};

/// Bytes of a row.
pub(crate) fn row_bytes(ty: Ty) -> u32 {
    if is_wide(ty) { 256 } else { 128 }
}

/// A row as the runtime finds it.
pub(crate) fn row(ty: Ty, at: u32) -> Loc {
    if is_wide(ty) { Loc::Row64(at) } else { Loc::Row32(at) }
}

impl Emit<'_> {
    /// Where a routine finds a source, its NaNs canonical.
    pub(crate) fn loc(&mut self, v: Val) -> Loc {
        self.ensure_words(v);
        let s = self.clean_src(v);
        match s.at {
            At::Imm(x) => Loc::Imm(x),
            At::Row(at) if !s.odd => row(s.ty, at),
            At::Flags(at) => Loc::Row32(at),
            At::Words(shape, at) if !s.odd => {
                let at = self.words_in_context(shape, at);
                let bits = s.ty.bits() as u8;
                if shape.is_uniform() { Loc::Scalar(at) } else { Loc::Shaped { at, shape, bits } }
            }
            _ => {
                let at = self.take_scratch(row_bytes(s.ty));
                self.put_row(&s, at);
                row(s.ty, at)
            }
        }
    }

    /// Where a routine finds an address. One of 32 bits wraps at its width.
    pub(crate) fn address_loc(&mut self, v: Val) -> Loc {
        if self.ty(v) == Ty::B64 {
            return self.loc(v);
        }
        self.ensure_words(v);
        let s = self.src(v);
        match s.at {
            At::Row(at) => Loc::Row32(at),
            At::Words(shape, at) if !s.odd || shape.is_uniform() => {
                let at = self.words_in_context(shape, at);
                if shape.is_uniform() {
                    Loc::Linear { at, stride: 0, bits: 32 }
                } else {
                    Loc::Shaped { at, shape, bits: 32 }
                }
            }
            _ => {
                let at = self.take_scratch(128);
                self.put_row(&s, at);
                Loc::Row32(at)
            }
        }
    }

    /// Where the context has the words of a shape: a routine does not see those of the stack. Clobbers `rax`.
    fn words_in_context(&mut self, shape: Shape, at: u32) -> u32 {
        if at < FRAME_WORDS {
            return at;
        }
        let n = shape.groups() as u32;
        let to = self.take_scratch(8 * n);
        for g in 0..n {
            self.load64(RAX, ctx(at + 8 * g));
            self.store64(ctx(to + 8 * g), RAX);
        }
        to
    }

    /// Writes all lanes of a source to a row.
    pub(crate) fn put_row(&mut self, s: &Src, at: u32) {
        if s.ty == Ty::P {
            self.bits(s);
            for q in 0..2 {
                if q == 1 {
                    self.a.imm8(Code::Shr_rm32_imm8, EAX, 16);
                }
                self.a.op2(Code::VEX_Kmovd_kr_r32, Register::K5, EAX);
                self.a.op2(Code::EVEX_Vpmovm2d_zmm_kr, zmm(3), Register::K5);
                self.a.store(store_code(Ty::B32), ctx(at + 64 * q), zmm(3), ALL);
            }
            return;
        }
        for q in 0..n_parts(s.ty) {
            let r = self.reg(s, q, 0);
            self.a.store(store_code(s.ty), ctx(at + 64 * q as u32), r, ALL);
        }
    }

    /// Where a routine writes a result: its own row, if it may.
    pub(crate) fn result_loc(&mut self, d: Reg, in_place: bool) -> Loc {
        let ty = self.f.regs[d.idx()];
        match self.place(d) {
            Place::Row(at) if in_place => row(ty, at),
            Place::Flags(at) if in_place => Loc::Row32(at),
            _ => {
                let at = self.take_scratch(row_bytes(ty));
                row(ty, at)
            }
        }
    }

    /// Takes a result that a routine wrote for some lanes, which are in a register that is neither `eax` nor `ecx`.
    pub(crate) fn take_result(&mut self, d: Reg, loc: Loc, lanes: Register) {
        let ty = self.f.regs[d.idx()];
        let (Loc::Row32(from) | Loc::Row64(from)) = loc else { panic!("{d:?} in {loc:?} at {:?}", self.at) };
        match self.place(d) {
            Place::Vectors(v) => {
                for (q, v) in v.into_iter().take(n_parts(ty)).enumerate() {
                    let mask = self.lanes_mask(lanes, ty, q);
                    self.a.op2(load_code(ty), Out::masked(zmm(v), mask), ctx(from + 64 * q as u32));
                }
            }
            Place::Mask(at) => {
                let s = Src::new(At::Flags(from), Ty::P);
                self.bits(&s);
                self.a.op2(Code::Xor_r32_rm32, EAX, ctx(at));
                self.a.op2(Code::And_r32_rm32, EAX, lanes);
                self.a.store(Code::Xor_rm32_r32, ctx(at), EAX, ALL);
            }
            Place::Words(at) => {
                let Class::Affine(s) = self.plan.facts.class[d.idx()] else { panic!("{d:?} without a shape") };
                for g in 0..s.groups() {
                    self.word_of_row(ty, from, s.first_lane(g) as u32);
                    self.store64(ctx(at + 8 * g as u32), RAX);
                }
            }
            Place::Row(at) | Place::Flags(at) if at != from => {
                for q in 0..n_parts(ty) {
                    self.a.op2(load_code(ty), zmm(3), ctx(from + 64 * q as u32));
                    let mask = self.lanes_mask(lanes, ty, q);
                    self.a.store(store_code(ty), ctx(at + 64 * q as u32), zmm(3), mask);
                }
            }
            Place::Row(_) | Place::Flags(_) | Place::Nowhere => {}
        }
    }

    /// A lane of a row as a word, in `rax`.
    fn word_of_row(&mut self, ty: Ty, from: u32, lane: u32) {
        match ty {
            Ty::B64 => self.load64(RAX, ctx(from + 8 * lane)),
            Ty::P => {
                self.load32(EAX, ctx(from + 4 * lane));
                self.a.imm(Code::And_rm32_imm32, EAX, 1);
            }
            Ty::B16 | Ty::B32 => self.load32(EAX, ctx(from + 4 * lane)),
        }
    }

    /// The mask of a part of some lanes: those of the block have theirs, others get `k5`. Clobbers `eax`.
    pub(crate) fn lanes_mask(&mut self, lanes: Register, ty: Ty, q: usize) -> Register {
        if lanes == LANES {
            return self.mask(ty, q);
        }
        self.a.op2(Code::Mov_r32_rm32, EAX, lanes);
        let by = if is_wide(ty) { 8 * q } else { 16 * q };
        if by > 0 {
            self.a.imm8(Code::Shr_rm32_imm8, EAX, by as u32);
        }
        self.a.op2(Code::VEX_Kmovd_kr_r32, Register::K5, EAX);
        Register::K5
    }

    /// A value op by the routine. Lanes outside of the block may be computed too: nobody looks at them.
    pub(crate) fn eval(&mut self, inst: &Inst, op: Pure) {
        let src: Vec<Loc> = inst.src.iter().map(|v| self.loc(*v)).collect();
        // Scalars are read in the first lanes of their groups.
        let shaped = inst.dst.iter().filter_map(|d| match self.place(*d) {
            Place::Words(_) => self.plan.facts.class[d.idx()].shape(),
            _ => None,
        });
        let firsts = shaped.fold(0u32, |m, s| (0..s.groups()).fold(m, |m, g| m | 1 << s.first_lane(g)));
        let all_scalars = inst.dst.iter().all(|d| matches!(self.place(*d), Place::Words(_) | Place::Nowhere));
        // A row that is a register's own must keep lanes of others.
        let dst: Vec<Loc> = inst.dst.iter().map(|d| self.result_loc(*d, firsts == 0)).collect();
        self.tables.evals.push(EvalSite { op, dst: dst.clone(), src });
        let site = self.tables.evals.len() - 1;
        if all_scalars {
            self.a.number(RCX, u64::from(firsts));
        } else {
            self.a.op2(Code::Mov_r32_rm32, ECX, LANES);
            if firsts != 0 {
                self.a.imm(Code::Or_rm32_imm32, ECX, firsts.cast_signed());
            }
        }
        self.routine(Routine::Eval, site, ECX);
        for (d, loc) in inst.dst.iter().zip(&dst) {
            self.take_result(*d, *loc, LANES);
        }
    }

    /// A memory op by the routine, for the lanes of a register. Leaves with the trap if there is one.
    pub(crate) fn memory_routine(&mut self, inst: &Inst, lanes: Register, site: Option<usize>) {
        let chunks = self.take_bundle_apart(inst);
        let mut src: Vec<Loc> = Vec::new();
        for (i, v) in inst.operands().iter().enumerate() {
            let loc = if i == 0 { self.address_loc(*v) } else { self.loc(*v) };
            src.push(loc);
        }
        let dst: Vec<Loc> = inst.dst.iter().map(|d| self.result_loc(*d, true)).collect();
        let site = self.fill_site(inst, &src, dst.clone(), site);
        self.routine(Routine::Memory, site, lanes);
        self.go_on_if_right();
        for (d, loc) in inst.dst.iter().zip(&dst) {
            match self.place(*d) {
                // One address for all: any lane that took part has the value.
                Place::Words(at) => self.word_of_taker(*d, *loc, lanes, at),
                _ => self.take_result(*d, *loc, lanes),
            }
        }
        self.put_bundle_together(inst, chunks);
        self.tell_store(inst);
    }

    /// A site with the places of its operands: one that was made before these were known, or a new one.
    pub(crate) fn fill_site(&mut self, inst: &Inst, src: &[Loc], dst: Vec<Loc>, site: Option<usize>) -> usize {
        let made = self.mem_site(inst, src, dst);
        let Some(site) = site else { return made };
        self.tables.mems.swap_remove(site);
        site
    }

    /// A result for which the lanes are grouped: the value of a lane that took part.
    fn word_of_taker(&mut self, d: Reg, loc: Loc, lanes: Register, at: u32) {
        let (Loc::Row32(from) | Loc::Row64(from)) = loc else { panic!("{d:?} in {loc:?} at {:?}", self.at) };
        let ty = self.f.regs[d.idx()];
        let Class::Affine(s) = self.plan.facts.class[d.idx()] else { panic!("{d:?} without a shape") };
        if s.groups() > 1 || !self.in_part {
            for g in 0..s.groups() {
                self.word_of_row(ty, from, s.first_lane(g) as u32);
                self.store64(ctx(at + 8 * g as u32), RAX);
            }
            return;
        }
        self.a.op2(Code::Tzcnt_r32_rm32, ECX, lanes);
        let scale = if is_wide(ty) { 8 } else { 4 };
        let m = crate::asm::Mem::indexed(WARP, RCX, scale, from as i32);
        if is_wide(ty) {
            self.load64(RAX, m)
        } else {
            self.load32(EAX, m)
        }
        self.store64(ctx(at), RAX);
    }

    /// Says that a store changes memory, where somebody wants to know.
    pub(crate) fn tell_store(&mut self, inst: &Inst) {
        if self.plan.tells_store(inst) {
            self.tell_dirty();
        }
    }

    /// Says that memory may have changed, where somebody wants to know.
    pub(crate) fn tell_dirty(&mut self) {
        if self.plan.tells_dirty {
            self.store_number(cta(std::mem::offset_of!(handloom_plan::abi::CtaCtx, dirty)), 1);
        }
    }
}
