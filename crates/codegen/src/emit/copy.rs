//! One copy being emitted: what is known of its registers, and their homes in the context of the warp.
//!
//! # Invariants
//! - A register that is live across blocks has one home: a row, or one 64-bit word for each group of its shape.
//! - Homes are written at the end of a block, after all of its side effects, and read at first use.
//! - Where code parts, each way goes on with a [`struct@Copy`] of its own; nothing is put back by hand.

use std::collections::{BTreeMap, BTreeSet};

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, SourceLoc, Value};
use handloom_diag::hash::{FastMap, FastSet};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::Plan;
use handloom_plan::abi::*;
use handloom_plan::access::InPlace;
use handloom_plan::analysis::classes::Class;
use handloom_plan::analysis::shape::Shape;
use handloom_plan::packs::layout::Home;
use handloom_plan::packs::{LANES, PACKS, Strategy, first_pack};

use crate::emit::asm::{Asm, scalar_type};
use crate::emit::value::Rep;

/// What is known while one copy of a block is emitted. Where its code parts, each way goes on with a copy of its own of this.
#[derive(Clone, Default)]
pub(crate) struct Copy {
    /// The position: SIMT block and instruction.
    pub(crate) at: (usize, usize),
    /// Lanes of a masked copy; none in a full one.
    pub(crate) mask: Option<Value>,
    /// Values of registers.
    pub(crate) reps: FastMap<Reg, Rep>,
    /// Registers that were written, and not to their homes yet.
    pub(crate) written: BTreeSet<Reg>,
    /// Loose registers that were made canonical.
    pub(crate) cleaned: FastSet<Reg>,
    /// Values that blocks before this one, of the same chain, hold in registers of the host.
    pub(crate) held: BTreeMap<Reg, Rep>,
    /// Registers whose value is in their row, in a masked copy.
    pub(crate) in_row: FastSet<Reg>,
    /// Addresses whose accesses in this block were tested together.
    pub(crate) verified: FastMap<Reg, Verified>,
    /// Scratch rows that the instruction being emitted has taken.
    pub(crate) n_scratch_used: u32,
}

impl Copy {
    /// A full copy, of which nothing is known yet.
    pub(crate) fn full() -> Copy {
        Copy::default()
    }

    /// A masked copy for some lanes.
    pub(crate) fn masked(lanes: Value) -> Copy {
        Copy { mask: Some(lanes), ..Copy::default() }
    }
}

/// What grows while a function is emitted, and the CLIF blocks that its copies go to.
pub(crate) struct Code {
    /// Tables of sites.
    pub(crate) tables: Tables,
    /// The start of the full copy of each block.
    pub(crate) full: Vec<clif::Block>,
    /// The prologue of each block.
    pub(crate) prologue: Vec<clif::Block>,
    /// Goes to the block of a context.
    pub(crate) dispatch: clif::Block,
    /// Goes to the next context.
    pub(crate) advance: clif::Block,
    /// The end of the chain of prologues.
    pub(crate) idle: clif::Block,
    /// Where a full copy is given up, for each block that is.
    pub(crate) given_up: FastMap<usize, clif::Block>,
    /// The most instructions of Cranelift IR that are wanted.
    pub(crate) most: usize,
    /// Accesses lane by lane of full copies, and of masked ones.
    pub(crate) in_place: [InPlace; 2],
}

/// One copy being emitted: how it is said, what was decided, where it goes, and what is known.
pub(crate) struct Emit<'e, 'b> {
    pub(crate) asm: &'e mut Asm<'b>,
    pub(crate) plan: &'e Plan,
    pub(crate) packs: &'e Strategy<'e>,
    pub(crate) code: &'e mut Code,
    pub(crate) copy: Copy,
}

/// An address register whose accesses in the block were tested together.
#[derive(Clone, Debug)]
pub(crate) struct Verified {
    pub(crate) space: StateSpace,
    /// Bytes relative to the register that passed.
    pub(crate) low: i64,
    pub(crate) high: i64,
    pub(crate) align: i64,
    /// Host address of the register's lowest lane of each group, and its difference to the group's base.
    pub(crate) at: Vec<(Value, i64)>,
}

impl<'b> Emit<'_, 'b> {
    /// The same function, with what is known in another copy.
    pub(crate) fn with(&mut self, copy: Copy) -> Emit<'_, 'b> {
        Emit { asm: self.asm, plan: self.plan, packs: self.packs, code: self.code, copy }
    }
}

impl Emit<'_, '_> {
    pub(crate) fn ty(&self, v: Val) -> Ty {
        self.plan.func.ty(v)
    }

    /// Number of definitions of a register.
    pub(crate) fn n_defs(&self, r: Reg) -> usize {
        self.plan.def_count[r.idx()] as usize
    }

    /// The op that defines a register, if there is only one definition.
    pub(crate) fn origin(&self, r: Reg) -> Option<Op> {
        self.plan.origin(r).map(|inst| inst.op)
    }

    /// The function, block and instruction being emitted, for the text of a bug.
    pub(crate) fn here(&self) -> String {
        let (b, i) = self.copy.at;
        let block = &self.plan.func.blocks[b];
        match block.insts.get(i) {
            Some(inst) => format!("`{}` block {b}, {:?}", self.plan.func.name, inst.op),
            None => format!("`{}` block {b}, {:?}", self.plan.func.name, block.term),
        }
    }

    pub(crate) fn set_loc(&mut self, b: usize, i: usize) {
        self.copy.at = (b, i);
        self.asm.b.set_srcloc(SourceLoc::new((b as u32) << 16 | (i as u32 & 0xffff)));
    }

    /// Whether nothing has happened in the block being emitted, so that it may start over.
    pub(crate) fn may_start_over(&self) -> bool {
        let (b, i) = self.copy.at;
        self.copy.mask.is_none() && self.packs.may_test_at(b, i)
    }

    /// Whether the access being emitted is done in place, lane by lane. It counts.
    pub(crate) fn takes_in_place(&mut self) -> bool {
        let is_in_loop = self.plan.facts.cfg.loop_of[self.copy.at.0].is_some();
        self.code.in_place[usize::from(self.copy.mask.is_some())].takes(is_in_loop)
    }

    /// Whether there are more instructions than are wanted: what is emitted now is thrown away.
    pub(crate) fn is_too_long(&self) -> bool {
        self.asm.b.func.dfg.num_insts() > self.code.most
    }

    /// Ends a copy that is too long where it has come to: others may still be begun before that is asked.
    pub(crate) fn give_up(&mut self) {
        self.asm.b.ins().trap(clif::TrapCode::unwrap_user(1));
    }

    /// The value of a source.
    pub(crate) fn rep(&mut self, v: Val) -> Rep {
        match v {
            Val::Imm(x, ty) => {
                let c = self.asm.scalar_const(x, ty);
                Rep::Affine(Shape::constant(x & ty.mask()), vec![c])
            }
            Val::Reg(r) => {
                if let Some(rep) = self.copy.reps.get(&r) {
                    return rep.clone();
                }
                let rep = self.load_home(r);
                self.copy.reps.insert(r, rep.clone());
                rep
            }
        }
    }

    /// A source whose NaNs are canonical.
    pub(crate) fn clean(&mut self, v: Val) -> Rep {
        let rep = self.rep(v);
        let (Val::Reg(r), Some(float)) = (v, self.plan.odd_nans_of(v)) else { return rep };
        if self.copy.cleaned.contains(&r) {
            return rep;
        }
        let rep = self.asm.canonical_rep(&rep, float);
        self.copy.reps.insert(r, rep.clone());
        self.copy.cleaned.insert(r);
        rep
    }

    /// A source as scalars, if it is uniform or affine here.
    pub(crate) fn scalar_source(&mut self, v: Val) -> Option<(Shape, Vec<Value>)> {
        if let Val::Reg(r) = v {
            let known = matches!(self.copy.reps.get(&r), Some(Rep::Affine(..)));
            let by_class = matches!(self.packs.layout.homes[r.idx()], Some(Home::Words(_)) | None)
                && !self.copy.in_row.contains(&r);
            if !known && !by_class {
                return None;
            }
        }
        match self.rep(v) {
            Rep::Affine(s, base) => Some((s, base)),
            Rep::Rows(_) | Rep::Logic(_) => None,
        }
    }

    /// Sets a register in the copy being emitted.
    pub(crate) fn set(&mut self, r: Reg, rep: Rep) {
        let rep = match (self.plan.facts.class[r.idx()], rep) {
            // Later ops rely on the shape that the analysis promised.
            (Class::Affine(s), Rep::Affine(mine, base)) if !mine.same(&s) => {
                let ty = self.plan.func.regs[r.idx()];
                let words = self.words_of(&Rep::Affine(mine, base), &s, ty);
                Rep::Affine(s, words)
            }
            (_, rep) => rep,
        };
        self.copy.reps.insert(r, rep);
        self.copy.written.insert(r);
        self.copy.verified.remove(&r);
    }

    /// Notes that a routine writes a register to its row: what was known of it, and what was to be written there, is out of date.
    pub(crate) fn set_at_home(&mut self, r: Reg) {
        self.copy.reps.remove(&r);
        self.copy.cleaned.remove(&r);
        self.copy.verified.remove(&r);
        self.copy.written.remove(&r);
        self.copy.held.remove(&r);
    }

    /// Sets a register to what all lanes of a full copy read, or were told by a routine. Rows become scalars where the analysis promised lanes
    /// that are alike: that rests on where the value comes from, not on how it was fetched.
    pub(crate) fn set_fetched(&mut self, r: Reg, rep: Rep) {
        let rep = match (self.plan.facts.class[r.idx()], rep) {
            (Class::Affine(s), rows @ Rep::Rows(_)) => {
                let ty = self.plan.func.regs[r.idx()];
                let words = (0..s.groups()).map(|g| {
                    let v = self.asm.lane_of(&rows, first_pack(&s, g), 0, ty);
                    if ty == Ty::P { self.asm.b.ins().icmp_imm_s(IntCC::NotEqual, v, 0) } else { v }
                });
                let words = words.collect();
                Rep::Affine(s, words)
            }
            (_, rep) => rep,
        };
        self.set(r, rep);
    }

    /// The bases of an affine value for a coarser or equal shape.
    fn words_of(&mut self, rep: &Rep, class: &Shape, ty: Ty) -> Vec<Value> {
        let Rep::Affine(shape, base) = rep else { panic!("a row where {class:?} was promised at {:?}", self.copy.at) };
        (0..class.groups())
            .map(|g| {
                let p = first_pack(class, g);
                self.asm.first_lane(&(*shape, base.clone()), p, ty)
            })
            .collect()
    }

    /// Reads a register's home. A register that is never written reads as zero.
    fn load_home(&mut self, r: Reg) -> Rep {
        let ty = self.plan.func.regs[r.idx()];
        match (self.packs.layout.homes[r.idx()], self.plan.facts.class[r.idx()]) {
            (Some(Home::Words(at)), Class::Affine(s)) => {
                let t = scalar_type(ty);
                let base = (0..s.groups()).map(|g| self.asm.load_warp(t, at as usize + 8 * g)).collect();
                Rep::Affine(s, base)
            }
            (Some(Home::Row32(at) | Home::Row64(at)), _) => Rep::Rows(self.asm.load_row(at, ty)),
            _ => {
                let z = self.asm.scalar_const(0, ty);
                Rep::Affine(Shape::constant(0), vec![z])
            }
        }
    }

    /// Writes a value to its register's home.
    pub(crate) fn store_home(&mut self, r: Reg, rep: &Rep) {
        let ty = self.plan.func.regs[r.idx()];
        match (self.packs.layout.homes[r.idx()], self.plan.facts.class[r.idx()]) {
            (Some(Home::Words(at)), Class::Affine(s)) => {
                let words = self.words_of(rep, &s, ty);
                for (g, w) in words.into_iter().enumerate() {
                    let w = self.asm.as_word(w, ty);
                    self.asm.store_warp(w, at as usize + 8 * g);
                }
            }
            (Some(Home::Row32(at) | Home::Row64(at)), _) => {
                let rows = self.asm.rows(rep, ty);
                self.asm.store_row(at, &rows);
            }
            _ => {}
        }
    }

    /// Writes back what lives on after block `b`.
    pub(crate) fn write_back(&mut self, b: usize) {
        for r in std::mem::take(&mut self.copy.written) {
            if self.plan.facts.live.exit(b).has(r.idx())
                && let Some(rep) = self.copy.reps.get(&r).cloned()
            {
                self.store_home(r, &rep);
            }
        }
    }

    pub(crate) fn pend(&self, b: usize) -> usize {
        self.code.tables.pend_offset as usize + 4 * b
    }

    /// The row of a register: its home, or its place among the rows of the block's own values.
    pub(crate) fn row_of(&self, r: Reg) -> Loc {
        let at = match self.packs.layout.homes[r.idx()] {
            Some(Home::Row32(at) | Home::Row64(at)) => at,
            _ => self.packs.layout.temp_rows[r.idx()],
        };
        assert!(at != 0, "{r:?} has no row at {:?}", self.copy.at);
        if self.plan.func.regs[r.idx()] == Ty::B64 { Loc::Row64(at) } else { Loc::Row32(at) }
    }

    pub(crate) fn row_offset(&self, r: Reg) -> u32 {
        match self.row_of(r) {
            Loc::Row32(at) | Loc::Row64(at) => at,
            other => panic!("{r:?} has {other:?} for a row at {}", self.here()),
        }
    }

    /// Offset of the row of a register of at most 32 bits.
    pub(crate) fn word_row(&self, r: Reg) -> u32 {
        match self.row_of(r) {
            Loc::Row32(at) => at,
            other => panic!("{r:?} has {other:?} for a row of words at {}", self.here()),
        }
    }

    /// Where a routine finds a value: constants as such, the rest in scratch rows.
    pub(crate) fn loc(&mut self, v: Val) -> Loc {
        if let Val::Imm(x, ty) = v {
            return Loc::Imm(if ty == Ty::P { x & 1 } else { x & ty.mask() });
        }
        let ty = self.ty(v);
        let rep = self.rep(v);
        self.loc_of(&rep, ty)
    }

    pub(crate) fn loc_of(&mut self, rep: &Rep, ty: Ty) -> Loc {
        let (at, loc) = self.scratch_row(ty);
        if let Rep::Affine(s, base) = rep
            && s.is_uniform()
            && ty != Ty::P
        {
            let w = self.asm.as_word(base[0], ty);
            self.asm.store_warp(w, at as usize);
            return Loc::Scalar(at);
        }
        if let Rep::Affine(s, base) = rep
            && ty != Ty::P
        {
            let (stride, bits) = (s.stride, ty.bits() as u8);
            let words = if s.is_linear() { 1 } else { PACKS };
            for p in 0..words {
                let first = self.asm.first_lane(&(*s, base.clone()), p, ty);
                let w = self.asm.as_word(first, ty);
                self.asm.store_warp(w, at as usize + 8 * p);
            }
            let len = LANES as u8;
            return if words == 1 { Loc::Linear { at, stride, bits } } else { Loc::Pieces { at, len, stride, bits } };
        }
        let rows = self.asm.rows(rep, ty);
        self.asm.store_row(at, &rows);
        loc
    }

    /// Where a routine finds the address of an access. Its sum with the offset wraps at its own width, which the place tells.
    pub(crate) fn address_loc(&mut self, loc: Loc, ty: Ty) -> Loc {
        let at = match loc {
            _ if ty == Ty::B64 => return loc,
            Loc::Scalar(at) => at,
            Loc::Imm(x) => {
                let (at, _) = self.scratch_row(Ty::B64);
                let word = self.asm.i64(x as i64);
                self.asm.store_warp(word, at as usize);
                at
            }
            Loc::Row32(_) | Loc::Row64(_) | Loc::Linear { .. } | Loc::Shaped { .. } | Loc::Pieces { .. } => return loc,
        };
        Loc::Linear { at, stride: 0, bits: ty.bits() as u8 }
    }

    /// A fresh scratch row for the instruction being emitted.
    pub(crate) fn scratch_row(&mut self, ty: Ty) -> (u32, Loc) {
        let at = self.packs.layout.scratch + 256 * self.copy.n_scratch_used;
        self.copy.n_scratch_used += 1;
        assert!(
            self.copy.n_scratch_used <= self.packs.layout.scratch_rows,
            "out of scratch rows at {:?}",
            self.copy.at
        );
        (at, if ty == Ty::B64 { Loc::Row64(at) } else { Loc::Row32(at) })
    }

    /// Reads a result that a routine left in a scratch row.
    pub(crate) fn read_scratch(&mut self, at: u32, ty: Ty) -> Rep {
        Rep::Rows(self.asm.load_row(at, ty))
    }
}
