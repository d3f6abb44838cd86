//! Addresses by an index that goes round a loop: `base + 4 * i`, where `i` has 32 bits and lanes differ in a known way, mostly since each has the next one.
//!
//! # The model
//! That `i` does not wrap between two lanes is not known when code is made, so an address made of it varies as far as the plan knows. Mostly it does not, which is
//! one look at the ends of each group: then lanes lie as their indices do, and addresses are made by general registers. What makes the address as a vector is
//! *delayed*: only where an index wraps, or a test refuses, is it done, in front of what is done with addresses of which nothing is known (`scattered`).
//!
//! Of an index whose lanes are anywhere, neighbours and one place for all are looked for, and bounds are tested, by its 32 bits (`numbers`).

use handloom_ir::simt::{Inst, Op, Pure, Reg, Term, Val};
use handloom_ir::types::{Cmp, Int, Ty};
use handloom_plan::access::Kind;
use handloom_plan::analysis::shape::Shape;
use iced_x86::{Code, Register};

use crate::access::{Access, Form, Indexed, Limits, reg};
use crate::alloc::Place;
use crate::asm::{Label, Mem, low32};
use crate::emit::*;
use crate::head::FRAME_WORDS;
use crate::lies::by_all;
use crate::strided::run_of;

/// How many turns of a loop data is asked for ahead, as a power of two; where warps go through it in turn, all of them.
const TURNS_AHEAD: u32 = 2;
pub(crate) const TURNS_AHEAD_OF_ALL: u32 = 1;

impl Emit<'_> {
    /// Whether a value is a word that nobody else takes over while its block runs.
    pub(crate) fn stays_in_word(&self, r: Reg) -> bool {
        let is_linear = self.is_linear_value(Val::Reg(r));
        let stays = matches!(self.place(r), Place::Words(at) if at >= FRAME_WORDS || self.places.is_own[r.idx()]);
        (stays || is_linear) && self.shape(Val::Reg(r)).is_some()
    }

    fn is_same_word(&self, r: Reg) -> bool {
        self.stays_in_word(r) && self.shape(Val::Reg(r)).is_some_and(|s| s.is_uniform())
    }

    /// Does a load or store by an index whose lanes are neighbours, if they are and all lanes of a warp may do it; else it goes on at `apart`. Says whether there is such code.
    pub(crate) fn by_index(&mut self, inst: &Inst, x: &Access, done: Label) -> bool {
        let Some(indexed) = self.index_of(x).cloned() else { return false };
        let apart = self.a.label();
        let Some(shape) = indexed.shape(self.plan) else {
            self.by_numbers(inst, &Access { cold: apart, ..*x }, &indexed, done);
            self.end_indexed(x, &indexed, apart);
            return true;
        };
        let address = shape.times(1 << indexed.shift);
        let fast = Access { cold: apart, ..*x };
        if address.is_linear() && address.stride == x.class.bytes() {
            self.stays_in_width(&indexed, &shape, apart);
            self.indexed_address(&indexed, 0);
            self.add_number(RAX, x.class.offset);
            self.fetch_by_step(x, &indexed);
            self.limits_of_run(&fast, 31 * x.class.bytes());
            self.test_start(&fast, RAX);
            self.row(inst, x);
            self.a.jump(Code::Jmp_rel32_64, done);
        } else {
            let in_part = std::mem::replace(&mut self.in_part, false);
            let form = self.form_of(address, &Access { lanes: LANES, ..fast });
            let by_some = (in_part || x.lanes != LANES) && self.by_some(&x.class, form);
            // Registers may hold tuples as they lie in memory.
            let is_whole = form != Form::Bands || x.class.count == 1;
            if by_some || x.lanes == LANES && by_all(form) && is_whole {
                if in_part && !by_some {
                    self.a.imm(Code::Cmp_rm32_imm8, LANES, -1);
                    self.a.jump(Code::Jne_rel32_64, apart);
                }
                self.stays_in_width(&indexed, &shape, apart);
                self.by_indexed = Some((indexed.clone(), address));
                if by_some {
                    self.in_part = in_part;
                    self.of_some(inst, &fast, form);
                } else {
                    self.of_all(inst, &fast, form);
                }
                self.by_indexed = None;
                self.a.jump(Code::Jmp_rel32_64, done);
            }
            self.in_part = in_part;
        }
        self.end_indexed(x, &indexed, apart);
        true
    }

    /// The index by which the access in the making finds its places.
    pub(crate) fn index_of(&self, x: &Access) -> Option<&Indexed> {
        self.indices.of.get(&self.at).filter(|_| matches!(x.limits, Limits::Heap(_)))
    }

    /// Whether the access in the making finds its places by an index of which nothing is known.
    pub(crate) fn finds_by_numbers(&self, x: &Access) -> bool {
        self.index_of(x).is_some_and(|i| i.shape(self.plan).is_none())
    }

    /// Where an access by an index goes on that its tests refused: with its address as a vector.
    fn end_indexed(&mut self, x: &Access, indexed: &Indexed, apart: Label) {
        self.a.bind(apart);
        self.drop_held();
        self.make_delayed(x, indexed);
    }

    /// Makes the address of an access as a vector, if that waits for who wants it.
    pub(crate) fn make_delayed(&mut self, x: &Access, indexed: &Indexed) {
        if let Some(address) = reg(x.class.address).filter(|r| self.indices.delayed.has(r.idx())) {
            self.make_indexed(address, indexed);
        }
    }

    /// Goes to `apart` where an index wraps from one lane to another. Uses `rax`.
    fn stays_in_width(&mut self, indexed: &Indexed, shape: &Shape, apart: Label) {
        for (lowest, reach) in (0..shape.groups()).map(|g| run_of(shape, g)).filter(|(_, reach)| *reach > 0) {
            self.lane_value(Val::Reg(indexed.index), lowest, RAX);
            self.a.imm(Code::Add_rm32_imm32, EAX, reach as i32);
            self.a.jump(if indexed.signed { Code::Jo_rel32_64 } else { Code::Jb_rel32_64 }, apart);
        }
    }

    /// The address of a lane, without the offset of an access, in `rax`. Uses `rdx`.
    pub(crate) fn indexed_address(&mut self, indexed: &Indexed, lane: usize) {
        self.lane_value(Val::Reg(indexed.index), lane, RAX);
        self.sized(RAX, RAX, indexed);
        self.add_words(RAX, RDX, indexed);
        self.add_number(RAX, indexed.number);
    }

    /// Adds the words of an address to a register, with another one to hold them.
    pub(crate) fn add_words(&mut self, to: Register, holds: Register, indexed: &Indexed) {
        for &(word, shift) in &indexed.words {
            self.word_of_address(word, shift, holds);
            self.a.op2(Code::Add_r64_rm64, to, holds);
        }
    }

    fn word_of_address(&mut self, word: Val, shift: u32, to: Register) {
        self.lane_value(word, 0, to);
        if shift > 0 {
            self.a.imm8(Code::Shl_rm64_imm8, to, shift);
        }
    }

    /// How the lanes of the address of an access differ: of one by an index, as far as that does not wrap.
    pub(crate) fn address_shape(&self, x: &Access) -> Option<Shape> {
        match &self.by_indexed {
            Some((_, shape)) => Some(*shape),
            None => self.shape(x.class.address),
        }
    }

    /// An index at the width of addresses.
    pub(crate) fn widen_index(&mut self, to: Register, from: Register, indexed: &Indexed) {
        if indexed.signed {
            self.a.op2(Code::Movsxd_r64_rm32, to, low32(from));
        } else {
            self.a.op2(Code::Mov_r32_rm32, low32(to), low32(from));
        }
    }

    /// The same times its size.
    fn sized(&mut self, to: Register, from: Register, indexed: &Indexed) {
        self.widen_index(to, from, indexed);
        if indexed.shift > 0 {
            self.a.imm8(Code::Shl_rm64_imm8, to, indexed.shift);
        }
    }

    /// In a loop, asks for what a load reads some turns later. The address is in `rax`. Uses `rdx`.
    fn fetch_by_step(&mut self, x: &Access, indexed: &Indexed) {
        if x.class.kind != Kind::Load {
            return;
        }
        let Some(step) = self.step_of_index(indexed.index) else { return };
        self.lane_value(step, 0, RDX);
        // A step is one of either sign: what it leads to is only asked for.
        self.sized(RDX, RDX, &Indexed { signed: true, ..indexed.clone() });
        let in_turn = self.plan.facts.cfg.loop_of[self.at.0].is_some_and(|h| self.goes_in_turn(h));
        self.a.imm8(Code::Shl_rm64_imm8, RDX, if in_turn { TURNS_AHEAD_OF_ALL } else { TURNS_AHEAD });
        for line in (0..32 * x.class.bytes() as i32).step_by(64) {
            self.a.op1(Code::Prefetcht0_m8, Mem::indexed(RAX, RDX, 1, line));
        }
    }

    /// What is added to an index in each turn of the innermost loop around the access, if it is one number for all lanes.
    fn step_of_index(&self, index: Reg) -> Option<Val> {
        let b = self.at.0;
        let cfg = &self.plan.facts.cfg;
        let body = cfg.body(cfg.loop_of[b]?)?;
        let all = body.iter().flat_map(|b| &self.f.blocks[b].insts);
        let mut steps = all.filter(|i| i.dst.contains(&index));
        let step = steps.next()?;
        if steps.next().is_some() || step.op != Op::Pure(Pure::Add(Ty::B32)) {
            return None;
        }
        let other = match step.src[..] {
            [a, b] if a == Val::Reg(index) => b,
            [a, b] if b == Val::Reg(index) => a,
            _ => return None,
        };
        reg(other).is_none_or(|r| self.is_same_word(r)).then_some(other)
    }

    /// Before a comparison for the branch of a block: where it is one of an index with what is the same in all lanes, and says the same of all of them, the branch is
    /// taken here. Returns where it goes then.
    pub(crate) fn compare_ends(&mut self, b: usize, i: usize) -> Option<(Label, Label)> {
        let inst = &self.f.blocks[b].insts[i];
        let Op::Pure(Pure::ICmp(cmp, Int { ty: Ty::B32, signed })) = inst.op else { return None };
        let (&[a, c], [d]) = (&inst.src[..], &inst.dst[..]) else { return None };
        let is_same = |v: Val| self.shape(v).is_some_and(|s| s.is_uniform());
        let (index, limit, cmp) = if is_same(c) { (a, c, cmp) } else { (c, a, cmp.swapped()) };
        let shape = self.shape(index).filter(|s| s.is_linear() && s.stride > 0 && s.stride < 1 << 20)?;
        let parts = matches!(&self.f.blocks[b].term, Term::Branch { then, otherwise, .. } if then != otherwise);
        if !is_same(limit) || self.is_affine(*d) || !self.is_for_branch(*d) || !parts {
            return None;
        }
        // Whether it holds in all lanes, or in none, if the last one has the jump.
        let (holds, unsigned, with_sign) = match cmp {
            Cmp::Lt => (true, Code::Jb_rel32_64, Code::Jl_rel32_64),
            Cmp::Le => (true, Code::Jbe_rel32_64, Code::Jle_rel32_64),
            Cmp::Gt => (false, Code::Jbe_rel32_64, Code::Jle_rel32_64),
            Cmp::Ge => (false, Code::Jb_rel32_64, Code::Jl_rel32_64),
            _ => return None,
        };
        let (yes, no, apart) = (self.a.label(), self.a.label(), self.a.label());
        self.lane_value(limit, 0, RCX);
        self.lane_value(index, 0, RAX);
        self.a.imm(Code::Add_rm32_imm32, EAX, 31 * shape.stride as i32);
        self.a.jump(if signed { Code::Jo_rel32_64 } else { Code::Jb_rel32_64 }, apart);
        self.a.op2(Code::Cmp_r32_rm32, EAX, ECX);
        self.a.jump(if signed { with_sign } else { unsigned }, if holds { yes } else { no });
        self.a.bind(apart);
        Some((yes, no))
    }

    /// Makes an address as a vector: of scalars, since words of the context may be others' by now.
    fn make_indexed(&mut self, address: Reg, indexed: &Indexed) {
        let shape = indexed.shape(self.plan);
        let extend =
            if indexed.signed { Code::EVEX_Vpmovsxdq_zmm_k1z_ymmm256 } else { Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256 };
        let add = Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64;
        for q in 0..4 {
            if let Some(shape) = shape {
                self.lane_value(Val::Reg(indexed.index), 8 * q, RAX);
                self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(0), EAX);
                let delta =
                    |l: usize| (shape.delta(8 * q + l % 8) - shape.delta(8 * q)).cast_unsigned() & Ty::B32.mask();
                let deltas: Vec<u64> = (0..16).map(delta).collect();
                let c = self.lanes_constant(Ty::B32, &deltas);
                self.a.op3(Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, zmm(0), zmm(0), c);
                self.a.op2(extend, zmm(0), ymm(zmm(0)));
            } else {
                let s = self.clean_src(Val::Reg(indexed.index));
                self.widened(&s, q, indexed.signed, 0);
            }
            if indexed.shift > 0 {
                self.a.op2i(Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8, zmm(0), zmm(0), indexed.shift);
            }
            for &(word, shift) in &indexed.words {
                self.word_of_address(word, shift, RAX);
                self.a.op2(Code::EVEX_Vpbroadcastq_zmm_k1z_r64, zmm(1), RAX);
                self.a.op3(add, zmm(0), zmm(0), zmm(1));
            }
            let out = self.out(address, q);
            let number = self.constant(Ty::B64, indexed.number.cast_unsigned());
            self.a.op3(add, out, zmm(0), number);
            self.commit(address, q);
        }
    }
}
