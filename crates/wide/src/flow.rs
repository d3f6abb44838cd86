//! How lanes come and go: dispatch, pending lanes, ends of blocks, leaving and coming back.
//!
//! # The model
//! As the contract says ([`handloom_plan::abi`]), the lowest block with pending lanes runs, with all of them. Blocks that all lanes execute together jump to
//! each other. A block that part of them may execute goes on to the next block in order, taking lanes that wait there along, or adds its lanes to the
//! word of a later block and looks for the lowest one in the chain of *prologues*.
//!
//! Registers stay in their vectors over all of this. Only where lanes leave the code are they written to their homes: those of the lanes that leave, by
//! what lives in the block where they go on, and those of all pending lanes, each by the block that it waits for. On the way back the same is
//! read.

use std::mem::offset_of;

use handloom_ir::simt::{BlockId, Inst, Op, Pure, Reg, SlotId, Term, Val};
use handloom_ir::trap::TrapKind;
use handloom_ir::types::{Cmp, Int, Ty};
use handloom_plan::abi::{
    Arrivals, CallSite, CopyKind, CtaCtx, Loc, Meeting, Operands, Reason, Routine, Stop, TrapSite, TrapSource, WarpCtx,
};
use iced_x86::{Code, Register};

use crate::alloc::{Place, n_parts};
use crate::asm::{Label, Mem, Out};
use crate::emit::*;
use crate::ops::has_vector_code;
use crate::table::may_meet_by_routine;
use crate::values::{At, Src, load_code, store_code};

/// Which way values go between vectors and homes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Out,
    In,
}

/// Instructions of a block that is copied for whole warps.
const MOST_COPIED: usize = 64;

impl Emit<'_> {
    /// The start of the function, and how contexts follow each other.
    pub(crate) fn frame(&mut self) {
        for r in [RBX, RBP, Register::R12, Register::R13, Register::R14, Register::R15] {
            self.a.op1(Code::Push_r64, r);
        }
        self.a.imm(Code::Sub_rm64_imm32, RSP, self.frame_bytes());
        self.a.op2(Code::Mov_r64_rm64, CTA, Register::RDI);
        self.enter_turns();
        self.load64(WARP, cta(offset_of!(CtaCtx, cur)));
        self.dispatch();
        let waits = self.waiting_places();
        self.chain(&waits);
        for (l, way) in [(self.save, Way::Out), (self.load, Way::In)] {
            self.a.bind(l);
            if self.comes_back_in_part() {
                self.move_pending(way, &waits);
            }
            self.a.op0(Code::Retnq);
        }
    }

    fn dispatch(&mut self) {
        let n = self.f.blocks.len();
        // Where all lanes of a warp stand at one block, which they mostly do, its values alone are read.
        let any = self.a.label();
        let stubs: Vec<Label> = (0..n).map(|b| if self.is_landing(b) { self.a.label() } else { any }).collect();
        let table = self.a.table(stubs.clone());
        self.dispatch_table = (n > 1).then_some((table, any));
        self.a.bind(self.dispatch);
        let advance = self.advance;
        self.load32(EAX, warp(offset_of!(WarpCtx, wait_epoch)));
        self.a.op2(Code::Cmp_r32_rm32, EAX, cta(offset_of!(CtaCtx, epoch)));
        self.a.jump(Code::Je_rel32_64, advance);
        self.load32(EAX, warp(offset_of!(WarpCtx, state)));
        if n == 1 {
            // Its only stub follows.
            self.a.op2(Code::Test_rm32_r32, EAX, EAX);
            self.a.jump(Code::Jne_rel32_64, advance);
        } else {
            self.a.imm(Code::Cmp_rm32_imm32, EAX, n as i32);
            self.a.jump(Code::Jae_rel32_64, advance);
            self.a.op2(Code::Lea_r64_m, RCX, Mem::label(table));
            self.a.op2(Code::Movsxd_r64_rm32, RAX, Mem::indexed(RCX, RAX, 4, 0));
            self.a.op2(Code::Add_r64_rm64, RAX, RCX);
            self.a.op1(Code::Jmp_rm64, RAX);
        }
        for (b, stub) in stubs.into_iter().enumerate().filter(|(_, stub)| *stub != any) {
            self.a.bind(stub);
            let block = self.block[b];
            if self.plan.facts.masked.has(b) {
                let some = self.a.label();
                self.take_all(b, some);
                self.a.jump(Code::Jmp_rel32_64, block);
                self.a.bind(some);
                self.take_living(b, any);
            } else {
                self.take_all(b, any);
            }
            self.a.jump(Code::Jmp_rel32_64, block);
        }
        self.a.bind(any);
        let (first, load) = (self.prologue[0], self.load);
        self.a.jump(Code::Call_rel32_64, load);
        self.a.jump(Code::Jmp_rel32_64, first);
    }

    /// Takes all lanes of a warp that stands at a block, with what lives there; to `any` if some stand elsewhere.
    pub(crate) fn take_all(&mut self, b: usize, any: Label) {
        self.a.imm(Code::Cmp_rm32_imm32, self.pend(b), -1);
        self.a.jump(Code::Jne_rel32_64, any);
        self.store_number(self.pend(b), 0);
        self.a.imm(Code::Mov_rm32_imm32, LANES, -1);
        self.in_part = false;
        self.move_live(b, Way::In);
    }

    /// Takes all lanes that a warp has left, which stands at a block, with what lives there; to `any` if some stand elsewhere.
    fn take_living(&mut self, b: usize, any: Label) {
        self.load32(LANES, self.pend(b));
        self.a.op2(Code::Test_rm32_r32, LANES, LANES);
        self.a.jump(Code::Je_rel32_64, any);
        self.a.op2(Code::Cmp_r32_rm32, LANES, warp(offset_of!(WarpCtx, live)));
        self.a.jump(Code::Jne_rel32_64, any);
        self.store_number(self.pend(b), 0);
        self.load_living(b);
    }

    /// Reads what lives at the start of a block for the lanes of `LANES`.
    pub(crate) fn load_living(&mut self, b: usize) {
        if self.live_vectors(b).is_empty() {
            return;
        }
        self.set_masks();
        self.in_part = true;
        self.move_live(b, Way::In);
        self.in_part = false;
    }

    /// A place for what dispatch does for warps that stand at a block, if it is to do something else than before; and where it goes for those whose lanes stand apart.
    pub(crate) fn dispatch_stub(&mut self, b: usize) -> Option<(Label, Label)> {
        let (table, any) = self.dispatch_table?;
        if self.is_landing(b) {
            return None;
        }
        let stub = self.a.label();
        self.a.change_table(table, b, stub);
        Some((stub, any))
    }

    /// On to the next context. Emitted last, when the size of a context is known.
    pub(crate) fn advance(&mut self) {
        self.a.bind(self.advance);
        let (dispatch, out) = (self.dispatch, self.a.label());
        let step = self.places.ctx_bytes(self.scratch.1).cast_signed();
        self.a.op2(Code::Lea_r64_m, RAX, Mem::at(WARP, step));
        let phase = self.a.label();
        self.a.op2(Code::Cmp_r64_rm64, RAX, cta(offset_of!(CtaCtx, end)));
        self.a.jump(Code::Jae_rel32_64, phase);
        self.a.op2(Code::Mov_r64_rm64, WARP, RAX);
        self.a.jump(Code::Jmp_rel32_64, dispatch);
        self.a.bind(phase);
        self.load32(EAX, cta(offset_of!(CtaCtx, arrived)));
        self.a.op2(Code::Test_rm32_r32, EAX, EAX);
        self.a.jump(Code::Je_rel32_64, out);
        self.a.op2(Code::Add_r32_rm32, EAX, cta(offset_of!(CtaCtx, retired)));
        self.a.op2(Code::Cmp_r32_rm32, EAX, cta(offset_of!(CtaCtx, n_warps)));
        self.a.jump(Code::Jne_rel32_64, out);
        self.store_number(cta(offset_of!(CtaCtx, arrived)), 0);
        self.tell_meeting(Meeting::Headers, 0);
        self.a.imm(Code::Add_rm32_imm32, cta(offset_of!(CtaCtx, epoch)), 1);
        self.load64(WARP, cta(offset_of!(CtaCtx, first)));
        self.a.jump(Code::Jmp_rel32_64, dispatch);
        self.a.bind(out);
        self.end_settled();
        self.leave(Stop::Phase);
        self.turns(step);
    }

    /// The prologues, in order: the first block with lanes takes them.
    fn chain(&mut self, waits: &[bool]) {
        let starts: Vec<Label> = (0..self.f.blocks.len()).map(|_| self.a.label()).collect();
        for (b, start) in starts.iter().enumerate() {
            self.a.bind(self.prologue[b]);
            if !waits[b] {
                continue;
            }
            self.load32(LANES, self.pend(b));
            self.a.op2(Code::Test_rm32_r32, LANES, LANES);
            self.a.jump(Code::Jne_rel32_64, *start);
        }
        self.a.bind(self.idle);
        self.store_number(warp(offset_of!(WarpCtx, state)), self.f.blocks.len() as u32);
        self.leave(Stop::Idle);
        let wrong = self.a.label();
        for (b, start) in starts.into_iter().enumerate().filter(|(b, _)| waits[*b]) {
            self.a.bind(start);
            self.store_number(self.pend(b), 0);
            if !self.plan.facts.masked.has(b) {
                self.a.imm(Code::Cmp_rm32_imm32, LANES, -1);
                self.a.jump(Code::Jne_rel32_64, wrong);
            }
            let block = self.block[b];
            self.a.jump(Code::Jmp_rel32_64, block);
        }
        // Cannot happen: all lanes come to such a block together. Told as a fault of ours if it does.
        self.a.bind(wrong);
        self.leave(Stop::Trap(TrapSource::Apart { lanes: LANES }));
    }

    /// Whether a block's start finds anything in vectors.
    pub(crate) fn live_vectors(&self, b: usize) -> Vec<usize> {
        let live = self.plan.facts.live.entry[b].iter();
        live.filter(|r| matches!(self.places.of[*r], Place::Vectors(_)) && self.places.home[*r] != 0).collect()
    }

    /// Whether no code of a block wants a mask that begins inside a vector of 32 bits a lane.
    pub(crate) fn does_by_halves(&self, b: usize) -> bool {
        let block = &self.f.blocks[b];
        let is_narrow = |r: Reg| self.f.regs[r.idx()] != Ty::B64 || self.is_affine(r);
        let by_halves = |i: &Inst| {
            let of = |v: &Val| matches!(v, Val::Reg(r) if !is_narrow(*r));
            matches!(i.op, Op::Pure(op) if has_vector_code(op) || op.results().0 == Ty::P)
                && !i.src.iter().any(of)
                && i.dst.len() == 1
                && i.dst.iter().all(|d| is_narrow(*d))
        };
        matches!(block.term, Term::Jump(_) | Term::Branch { .. }) && block.insts.iter().all(by_halves)
    }

    /// The mask registers that a block wants.
    pub(crate) fn set_masks_for(&mut self, b: usize) {
        if !self.by_halves[b] {
            self.set_masks();
            return;
        }
        self.a.op2(Code::VEX_Kmovd_kr_r32, Register::K1, LANES);
        self.a.op2i(Code::VEX_Kshiftrd_kr_kr_imm8, Register::K3, Register::K1, 16);
    }

    /// Reads what lives at the start of a block.
    pub(crate) fn load_live(&mut self, b: usize) {
        self.move_live(b, Way::In);
    }

    /// Moves what lives at the start of a block, for lanes of the mask registers or all.
    fn move_live(&mut self, b: usize, way: Way) {
        for r in self.live_vectors(b) {
            self.move_register(r, way);
        }
    }

    /// Moves one register, for lanes of the mask registers or all.
    pub(crate) fn move_register(&mut self, r: usize, way: Way) {
        let (Place::Vectors(v), home) = (self.places.of[r], self.places.home[r]) else { return };
        let ty = self.f.regs[r];
        for (q, v) in v.into_iter().take(n_parts(ty)).enumerate() {
            let (m, mask) = (ctx(home + 64 * q as u32), self.mask(ty, q));
            match way {
                Way::Out => self.a.store(store_code(ty), m, zmm(v), mask),
                Way::In => self.a.op2(load_code(ty), Out::masked(zmm(v), mask), m),
            }
        }
    }

    /// A subroutine that moves what all pending lanes hold. Clobbers the masks.
    fn move_pending(&mut self, way: Way, waits: &[bool]) {
        self.in_part = true;
        for b in (0..waits.len()).filter(|b| waits[*b]) {
            if self.live_vectors(b).is_empty() {
                continue;
            }
            let next = self.a.label();
            self.load32(EAX, self.pend(b));
            self.a.op2(Code::Test_rm32_r32, EAX, EAX);
            self.a.jump(Code::Je_rel32_64, next);
            self.a.op2(Code::VEX_Kmovd_kr_r32, Register::K1, EAX);
            for (k, by) in [(Register::K2, 8), (Register::K3, 16), (Register::K4, 24)] {
                self.a.op2i(Code::VEX_Kshiftrd_kr_kr_imm8, k, Register::K1, by);
            }
            self.move_live(b, way);
            self.a.bind(next);
        }
    }

    /// Whether lanes may leave, or wait for others, in a block that only part of a warp executes: else all lanes that come back come to one block.
    fn comes_back_in_part(&self) -> bool {
        let waits = |b: usize| {
            let block = &self.f.blocks[b];
            let ends = !self.f.is_entry && block.term == Term::Exit;
            ends || block.term.suspends() || self.may_wait(b)
        };
        (0..self.f.blocks.len()).any(|b| self.plan.facts.masked.has(b) && waits(b))
    }

    /// Whether lanes start or go on at a block after they left the code.
    fn is_landing(&self, b: usize) -> bool {
        let leaves = |p: &usize| self.f.blocks[*p].term.suspends() || self.may_wait(*p);
        b == 0 || self.plan.facts.cfg.preds[b].iter().any(leaves)
    }

    /// Whether lanes may wait for others at the end of a block.
    fn may_wait(&self, b: usize) -> bool {
        let last = self.f.blocks[b].insts.last();
        last.is_some_and(|i| may_meet_by_routine(self.plan, b, i))
    }

    /// Blocks at which lanes may wait while others go on. (Most blocks follow a warp-level op of all lanes, which go on together: at such a one none does.)
    fn waiting_places(&self) -> Vec<bool> {
        let masked = &self.plan.facts.masked;
        let comes_whole = |b: usize, p: usize| {
            p < b && !masked.has(p) && matches!(self.f.blocks[p].term, Term::Jump(_)) && !self.may_wait(p)
        };
        let preds = &self.plan.facts.cfg.preds;
        (0..self.f.blocks.len())
            .map(|b| masked.has(b) || self.is_landing(b) || !preds[b].iter().all(|p| comes_whole(b, *p)))
            .collect()
    }

    /// Adds lanes to a block's pending ones.
    fn add_pending(&mut self, b: usize, lanes: Register) {
        let m = self.pend(b);
        if self.in_part {
            self.a.store(Code::Or_rm32_r32, m, lanes, ALL);
        } else {
            self.store32(m, lanes);
        }
    }

    /// To the first block after `b` that has lanes.
    fn look_after(&mut self, b: usize) {
        let to = if b + 1 < self.f.blocks.len() { self.prologue[b + 1] } else { self.idle };
        self.a.jump(Code::Jmp_rel32_64, to);
    }

    /// Before a back edge: leaves if the launch is to stop. The context is then not run again.
    pub(crate) fn stop_check(&mut self, header: usize) {
        let stopped = *self.stopped.entry(header).or_insert_with(|| self.a.label());
        self.load64(RAX, cta(offset_of!(CtaCtx, stop)));
        self.a.imm(Code::Cmp_rm32_imm32, Mem::at(RAX, 0), 0);
        self.a.jump(Code::Jne_rel32_64, stopped);
    }

    /// What is done where a launch is to stop: after all blocks.
    pub(crate) fn stops(&mut self) {
        let mut stopped: Vec<(usize, Label)> = std::mem::take(&mut self.stopped).into_iter().collect();
        stopped.sort_unstable_by_key(|(_, l)| *l);
        for (header, l) in stopped {
            self.a.bind(l);
            self.store_number(warp(offset_of!(WarpCtx, state)), header as u32);
            self.leave(Stop::Stopped);
        }
    }

    /// The lanes of `LANES`, all of those of block `b`, go to block `t`.
    fn go(&mut self, b: usize, t: usize) {
        let knows_masks = self.in_part && self.plan.facts.masked.has(t) && (self.by_halves[t] || !self.by_halves[b]);
        self.go_on(b, t, false, knows_masks);
    }

    /// The lanes of `LANES` go from block `b` to block `t`. `alone`: no other lanes wait before `t`, or at it. `knows_masks`: the mask registers are those of
    /// these lanes.
    fn go_on(&mut self, b: usize, t: usize, alone: bool, knows_masks: bool) {
        let in_part = self.plan.facts.masked.has(t);
        let block = if knows_masks { self.masks_set[t] } else { self.block[t] };
        if t <= b {
            self.stop_check(t);
            self.come_round(t);
        }
        if !self.in_part || in_part && (t <= b || alone) {
            self.a.jump(Code::Jmp_rel32_64, block);
        } else if in_part && t == b + 1 {
            let m = self.pend(t);
            if knows_masks {
                self.a.imm(Code::Cmp_rm32_imm32, m, 0);
                self.a.jump(Code::Je_rel32_64, block);
            }
            self.a.op2(Code::Or_r32_rm32, LANES, m);
            self.store_number(m, 0);
            let block = self.block[t];
            self.a.jump(Code::Jmp_rel32_64, block);
        } else {
            self.add_pending(t, LANES);
            if t <= b {
                let p = self.prologue[t];
                self.a.jump(Code::Jmp_rel32_64, p);
            } else {
                self.look_after(b);
            }
        }
    }

    /// A branch.
    fn branch(&mut self, b: usize, cond: Val, then: usize, otherwise: usize) {
        if then == otherwise {
            self.go(b, then);
            return;
        }
        let s = self.src(cond);
        let (yes, no) = self.edges.take().unwrap_or((self.a.label(), self.a.label()));
        match s.at {
            At::Imm(x) => {
                self.go(b, if x & 1 == 1 { then } else { otherwise });
                return;
            }
            At::Words(shape, at) if shape.is_uniform() => {
                match self.in_flags.take() {
                    Some((_, unless)) => self.a.jump(unless, no),
                    None => {
                        self.a.imm(Code::Cmp_rm32_imm32, ctx(at), 0);
                        self.a.jump(Code::Je_rel32_64, no);
                    }
                }
                self.a.bind_if_wanted(yes);
                self.count_whole(true);
                self.go(b, then);
                self.a.bind(no);
                self.count_whole(false);
                self.go(b, otherwise);
                self.branch_counter = None;
                return;
            }
            _ => {}
        }
        if self.at_hand.take().is_none() {
            self.bits(&s);
        }
        if self.in_part {
            self.a.op2(Code::And_r32_rm32, EAX, LANES);
            self.a.jump(Code::Je_rel32_64, no);
            self.a.op2(Code::Mov_r32_rm32, ECX, LANES);
            self.a.op2(Code::Xor_r32_rm32, ECX, EAX);
        } else {
            self.a.op2(Code::Test_rm32_r32, EAX, EAX);
            self.a.jump(Code::Je_rel32_64, no);
            self.a.op2(Code::Mov_r32_rm32, ECX, EAX);
            self.a.imm(Code::Xor_rm32_imm32, ECX, -1);
        }
        self.a.jump(Code::Je_rel32_64, yes);
        // Lanes part: those that stand lower go on.
        self.count_parted();
        let (low, high) =
            if then < otherwise { ((then, EAX), (otherwise, ECX)) } else { ((otherwise, ECX), (then, EAX)) };
        let was = self.in_part;
        self.add_pending(high.0, high.1);
        self.a.op2(Code::Mov_r32_rm32, LANES, low.1);
        self.in_part = true;
        self.go_on(b, low.0, !was, false);
        self.in_part = was;
        self.a.bind(yes);
        self.count_whole(true);
        self.go_whole(b, then);
        self.a.bind(no);
        self.count_whole(false);
        self.go_whole(b, otherwise);
        self.branch_counter = None;
    }

    /// All lanes of block `b` go to block `t`: after a guard to a copy of it for all lanes of a warp, if it is a small one that they leave together.
    fn go_whole(&mut self, b: usize, t: usize) {
        let block = &self.f.blocks[t];
        let fits = !self.in_part
            && self.head.as_ref().is_some_and(|h| h.has_guard(b))
            && self.plan.facts.masked.has(t)
            && self.plan.facts.cfg.preds[t].len() == 1
            && t > b
            && matches!(block.term, Term::Jump(_) | Term::Ret | Term::Exit)
            && block.insts.len() <= MOST_COPIED
            && !block.insts.last().is_some_and(|i| i.op.is_warp_sync());
        if fits {
            let start = self.a.label();
            self.copies.push((t, start));
            self.a.jump(Code::Jmp_rel32_64, start);
        } else {
            self.go(b, t);
        }
    }

    /// The end of a block.
    pub(crate) fn term(&mut self, b: usize) {
        let f = self.f;
        self.scratch.0 = 0;
        match &f.blocks[b].term {
            Term::Jump(t) => self.go(b, t.idx()),
            Term::Branch { cond, then, otherwise } => self.branch(b, *cond, then.idx(), otherwise.idx()),
            Term::Switch { index, targets } => self.switch(b, *index, targets),
            Term::Ret | Term::Exit => self.exit(b),
            Term::Trap(kind) => self.trap(*kind, None),
            Term::Barrier { kind: _, id, count, pred, dst: _, next } => {
                let leave = self.a.label();
                if self.meets(b).is_some() {
                    if self.in_part {
                        self.a.op2(Code::Cmp_r32_rm32, LANES, warp(offset_of!(WarpCtx, live)));
                        self.a.jump(Code::Jne_rel32_64, leave);
                    }
                    if !self.plan.ends_with_plain_barrier(b) {
                        self.come_to_another(next.idx(), *pred, leave);
                    } else {
                        self.arrive(next.idx());
                        if !self.in_part {
                            return;
                        }
                    }
                }
                self.a.bind_if_wanted(leave);
                let (id, count) = (self.loc(*id), count.map(|c| self.loc(c)));
                self.tables.arrivals.push(Arrivals { id, count });
                let arrivals = self.tables.arrivals.len() as u32 - 1;
                let predicates = pred.map(|p| {
                    self.brought(p);
                    // `save` keeps it.
                    self.a.op2(Code::Mov_r32_rm32, TAKERS, EAX);
                    TAKERS
                });
                let site = self.plan.sites.number(b);
                let stop = Stop::Barrier { site, lanes: LANES, arrivals, predicates };
                self.leave_for(next.idx(), stop);
            }
            Term::Call { callee, target, signature, args, next } => {
                let target = target.map(|t| self.loc(t));
                let site = CallSite {
                    callee: *callee,
                    target,
                    signature: *signature,
                    args: self.plan.frame.slot_offsets[args.idx()],
                    frame_end: self.frame_end(*args),
                    next: next.0,
                    span: f.blocks[b].term_span,
                };
                self.tables.calls.push(site);
                let site = self.tables.calls.len() as u32 - 1;
                self.leave_for(next.idx(), Stop::Call { site, lanes: LANES });
            }
            Term::Yield { next } => {
                let site = self.plan.sites.number(b);
                self.leave_for(next.idx(), Stop::Yield { site, lanes: LANES });
            }
        }
    }

    fn frame_end(&self, args: SlotId) -> u64 {
        let at = self.f.slots[args.idx()].at;
        u64::from(at.map_or(self.tables.frame_bytes, |at| at.frame_end))
    }

    /// Leaves the code; the lanes of the block go on at `next`.
    fn leave_for(&mut self, next: usize, stop: Stop<Register>) {
        self.move_live(next, Way::Out);
        if self.in_part {
            let save = self.save;
            self.a.jump(Code::Call_rel32_64, save);
        }
        self.leave(stop);
    }

    /// The lanes of the block whose predicate holds, in `eax`.
    fn brought(&mut self, predicate: Val) {
        let p = self.src(predicate);
        self.bits(&p);
        self.a.op2(Code::And_r32_rm32, EAX, LANES);
    }

    /// Another barrier that all threads wait at, reached by all lanes that the warp has left. A warp that no turn has goes to `leave`, or on.
    fn come_to_another(&mut self, next: usize, predicate: Option<Val>, leave: Label) {
        if self.in_part && !self.has_warp_of_few() {
            self.a.imm(Code::Cmp_rm32_imm32, LANES, -1);
            self.a.jump(Code::Jne_rel32_64, leave);
        }
        if let Some(p) = predicate {
            self.brought(p);
            self.store32(warp(WarpCtx::PREDICATES), EAX);
        }
        self.move_live(next, Way::Out);
        self.come_to(Some(self.at.0));
    }

    /// A plain barrier reached by all lanes that the warp has left.
    fn arrive(&mut self, next: usize) {
        self.move_live(next, Way::Out);
        let settled = self.a.label();
        if self.in_part && !self.has_warp_of_few() {
            // A turn is of warps with all their lanes.
            let all = self.a.label();
            self.a.imm(Code::Cmp_rm32_imm32, LANES, -1);
            self.a.jump(Code::Je_rel32_64, all);
            self.settle(Reason::Barrier);
            self.a.jump(Code::Jmp_rel32_64, settled);
            self.a.bind(all);
        }
        self.come_to(Some(self.at.0));
        self.a.bind_if_wanted(settled);
        self.store_number(warp(offset_of!(WarpCtx, state)), next as u32);
        if self.in_part {
            self.store32(self.pend(next), LANES);
        } else {
            self.store_number(self.pend(next), u32::MAX);
        }
        self.store_number(warp(WarpCtx::PLAIN_BARRIER), self.plan.sites.number(self.at.0));
        self.load32(EAX, cta(offset_of!(CtaCtx, epoch)));
        self.store32(warp(offset_of!(WarpCtx, wait_epoch)), EAX);
        self.a.imm(Code::Add_rm32_imm32, cta(offset_of!(CtaCtx, arrived)), 1);
        let advance = self.advance;
        self.a.jump(Code::Jmp_rel32_64, advance);
    }

    fn exit(&mut self, b: usize) {
        if self.plan.ends_with_told_exit(b) {
            if self.in_part {
                let save = self.save;
                self.a.jump(Code::Call_rel32_64, save);
            }
            self.leave(Stop::Exit { lanes: LANES });
            return;
        }
        if self.in_part {
            let gone = self.a.label();
            self.a.op2(Code::Mov_r32_rm32, EAX, LANES);
            self.a.op1(Code::Not_rm32, EAX);
            self.a.store(Code::And_rm32_r32, warp(offset_of!(WarpCtx, live)), EAX, ALL);
            self.a.jump(Code::Je_rel32_64, gone);
            self.look_after(b);
            self.a.bind(gone);
        }
        self.come_to(None);
        if !self.in_part {
            self.store_number(warp(offset_of!(WarpCtx, live)), 0);
        }
        self.store_number(warp(offset_of!(WarpCtx, state)), self.f.blocks.len() as u32);
        self.a.imm(Code::Add_rm32_imm32, cta(offset_of!(CtaCtx, retired)), 1);
        let advance = self.advance;
        self.a.jump(Code::Jmp_rel32_64, advance);
    }

    /// Lanes of the block, or those in `eax`, trap.
    fn trap(&mut self, kind: TrapKind, index: Option<(Loc, usize)>) {
        let span = self.f.blocks[self.at.0].term_span;
        self.tables.traps.push(TrapSite { kind, index, span });
        let site = self.tables.traps.len() as u32 - 1;
        self.leave(Stop::Trap(TrapSource::Site { site, lanes: LANES }));
    }

    fn switch(&mut self, b: usize, index: Val, targets: &[BlockId]) {
        let s = self.src(index);
        let of = |k: usize| Src::new(At::Imm(k as u64), Ty::B32);
        let go = self.a.label();
        self.mask_op(Pure::ICmp(Cmp::Ge, Int::U32), &[s, of(targets.len())]);
        self.a.op2(Code::And_r32_rm32, EAX, LANES);
        self.a.jump(Code::Je_rel32_64, go);
        self.a.op2(Code::Mov_r32_rm32, LANES, EAX);
        let loc = self.loc(index);
        self.trap(TrapKind::BadCall, Some((loc, targets.len())));
        self.a.bind(go);
        let was = std::mem::replace(&mut self.in_part, true);
        for (k, t) in targets.iter().enumerate() {
            self.mask_op(Pure::ICmp(Cmp::Eq, Int::U32), &[s, of(k)]);
            self.a.op2(Code::And_r32_rm32, EAX, LANES);
            self.add_pending(t.idx(), EAX);
        }
        self.in_part = was;
        match targets.iter().map(|t| t.idx()).min() {
            Some(first) if first <= b => {
                self.stop_check(first);
                let p = self.prologue[first];
                self.a.jump(Code::Jmp_rel32_64, p);
            }
            _ => self.look_after(b),
        }
    }

    /// A warp-level op by the routine, which may let lanes wait.
    pub(crate) fn sync_by_routine(&mut self, b: usize, inst: &Inst) -> Result<(), Refusal> {
        let mut src = Vec::new();
        for v in &inst.src {
            src.push(self.sync_source(*v, inst)?);
        }
        let mut dst = Vec::new();
        for d in &inst.dst {
            let loc = match self.places.home_of(self.plan, d.idx()) {
                Some(loc @ (Loc::Row32(_) | Loc::Row64(_))) => loc,
                _ => self.result_loc(*d, true),
            };
            dst.push(loc);
        }
        if self.in_part {
            // Lanes may be parked, and others may come back.
            let live: Vec<usize> = self.plan.facts.live.exit(b).iter().collect();
            for r in live {
                if self.places.home[r] != 0 && inst.dst.iter().all(|d| d.idx() != r) {
                    self.move_register(r, Way::Out);
                }
            }
            let save = self.save;
            self.a.jump(Code::Call_rel32_64, save);
        }
        let site = self.plan.sites.number(b) as usize;
        let operands = Some(Operands::new(src, dst.clone()));
        let copy = if self.in_part {
            self.tables.syncs[site].masked = operands;
            CopyKind::Masked
        } else {
            self.tables.syncs[site].full = operands;
            CopyKind::Full
        };
        self.a.number(Register::R8, copy as u64);
        self.routine(Routine::Sync, site, LANES);
        let (done, load, first) = (self.a.label(), self.load, self.prologue[0]);
        self.a.jump(Code::Jne_rel32_64, done);
        self.a.jump(Code::Call_rel32_64, load);
        self.a.jump(Code::Jmp_rel32_64, first);
        self.a.bind(done);
        for (d, loc) in inst.dst.iter().zip(dst) {
            self.take_result(*d, loc, LANES);
        }
        Ok(())
    }

    /// Where the routine finds a source of a warp-level op, also later, for lanes that are parked.
    fn sync_source(&mut self, v: Val, inst: &Inst) -> Result<Loc, Refusal> {
        let s = self.clean_src(v);
        let Val::Reg(r) = v else { return Ok(self.loc(v)) };
        let at = match s.at {
            At::Vectors(_) => self.places.home[r.idx()],
            At::Row(at) if s.odd => at,
            At::Words(..) if s.odd => {
                return Err(Refusal { what: format!("{:?} of a uniform float", inst.op), span: inst.span });
            }
            _ => return Ok(self.loc(v)),
        };
        for q in 0..n_parts(s.ty) {
            let part = self.reg(&s, q, 0);
            let mask = self.mask(s.ty, q);
            self.a.store(store_code(s.ty), ctx(at + 64 * q as u32), part, mask);
        }
        Ok(if s.ty == Ty::B64 { Loc::Row64(at) } else { Loc::Row32(at) })
    }
}
