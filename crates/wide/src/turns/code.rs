//! The code of turns.

use std::mem::offset_of;

use handloom_ir::simt::{BarKind, Inst, Op, Term};
use handloom_ir::types::{AtomOp, Order, ScalarType, Ty};
use handloom_plan::abi::{AT_ANOTHER, CtaCtx, Loc, Meeting, Reason, Stop, WarpCtx};
use iced_x86::{Code, Register};

use super::{
    AFTER, BARRIERS, BEGUN, BEHIND, END, Elsewhere, FRESH_SHARED, GANG_LIMIT, GANG_NEXT, LIMIT, NEXT, NOWHERE, PLACE,
    SETTLED, START, Turns, place_of,
};
use crate::asm::{Label, Mem};
use crate::emit::*;
use crate::head::Head;
use crate::values::store_code;

const RDI: Register = Register::RDI;
const R8D: Register = Register::R8D;

/// A word of the stack.
fn word(at: i32) -> Mem {
    Mem::at(RSP, VECTOR_AREA + at)
}

/// The end of the contexts of warps that do something in the turn.
pub(crate) fn limit() -> Mem {
    word(LIMIT)
}

/// Where the context of the first warp must lie before for another gang to go.
pub(crate) fn gang_limit() -> Mem {
    word(GANG_LIMIT)
}

/// Where the next gang of the turn starts.
pub(crate) fn gang_next() -> Mem {
    word(GANG_NEXT)
}

/// Where the next warp of the turn starts.
pub(crate) fn next() -> Mem {
    word(NEXT)
}

/// The block that the turn started at.
pub(crate) fn start() -> Mem {
    word(START)
}

/// Where the warps of the turn came to.
pub(crate) fn place() -> Mem {
    word(PLACE)
}

/// Where the code goes on after the last warp.
pub(crate) fn after() -> Mem {
    word(AFTER)
}

/// A field of the header at a register.
fn field(r: Register, at: usize) -> Mem {
    Mem::at(r, at as i32)
}

impl Emit<'_> {
    /// Decides whether a function has turns: entries do.
    pub(crate) fn make_turns(&mut self) {
        if !self.f.is_entry || self.plan.options.is_callee {
            return;
        }
        let mut starts: Vec<Option<(Label, Label)>> = vec![None; self.f.blocks.len()];
        starts[0] = Some((self.a.label(), self.a.label()));
        for b in 0..self.f.blocks.len() {
            if let Some(next) = self.meets(b) {
                starts[next].get_or_insert_with(|| (self.a.label(), self.a.label()));
            }
        }
        let loops: Vec<usize> =
            (1..self.f.blocks.len()).filter(|h| starts[*h].is_none() && self.may_go_in_turn(*h)).collect();
        for h in &loops {
            starts[*h] = Some((self.a.label(), self.a.label()));
        }
        let [ended, done, settle] = std::array::from_fn(|_| self.a.label());
        let afters = (0..self.f.blocks.len()).map(|_| self.a.label()).collect();
        let from = self.starts_of_blocks(&starts);
        let (whole, cold, gangs) = (Vec::new(), Vec::new(), Vec::new());
        self.turns = Some(Turns { starts, loops, whole, afters, from, ended, done, settle, cold, gangs, strip: None });
    }

    /// Whether the warps of a CTA go through the loop of a header in turn.
    fn may_go_in_turn(&self, header: usize) -> bool {
        let (f, cfg) = (self.f, &self.plan.facts.cfg);
        let threads = self.plan.facts.shape.threads();
        let Some(body) = cfg.body(header) else { return false };
        let n_latches = cfg.preds[header].iter().filter(|p| **p >= header).count();
        // No order of the warps changes what these leave.
        let fits = |inst: &Inst| match inst.op {
            Op::Pure(_) | Op::Mark => true,
            Op::Load { access, .. } | Op::Store { access, .. } => access.order == Order::Weak && !access.is_async,
            Op::Red { access, .. } => {
                use AtomOp::{Add, And, Max, Min, Or, Xor};
                matches!(access.op, Add | And | Or | Xor | Min | Max)
                    && matches!(access.ty, ScalarType::U32 | ScalarType::S32 | ScalarType::B32)
            }
            _ => false,
        };
        let is_simple = |b: usize| {
            matches!(f.blocks[b].term, Term::Jump(_) | Term::Branch { .. }) && f.blocks[b].insts.iter().all(fits)
        };
        // Loops that all lanes leave together are for gangs.
        let may_rise = self.plan.facts.masked.has(header);
        let reads_stream = |b: usize| {
            let insts = f.blocks[b].insts.iter().enumerate();
            let rises = |x: &Inst| self.head.as_ref().is_some_and(|h| h.is_rising(x));
            insts
                .filter(|(_, x)| matches!(x.op, Op::Load { .. }))
                .any(|(i, x)| self.indices.has(self.plan, (b, i)) || may_rise && rises(x))
        };
        threads >= 64
            && threads.is_multiple_of(32)
            && !self.counts()
            && cfg.is_innermost(header)
            && n_latches == 1
            && self.live_vectors(header).is_empty()
            && body.iter().all(is_simple)
            && body.iter().any(reads_stream)
    }

    /// Whether warps go in turn through the loop of a header.
    pub(crate) fn goes_in_turn(&self, header: usize) -> bool {
        self.turns.as_ref().is_some_and(|t| t.loops.binary_search(&header).is_ok())
    }

    /// A copy of a header for all lanes, if part of a warp may execute it, and warps go in turn through its loop.
    pub(crate) fn whole_header(&mut self, header: usize) -> Option<Label> {
        let fits = self.goes_in_turn(header) && self.plan.facts.masked.has(header);
        let label = fits.then(|| self.a.label())?;
        self.turns.as_mut()?.whole.push((header, label));
        Some(label)
    }

    /// Before a back edge to the header of a loop: a warp that goes back as a whole gives way to the next one.
    pub(crate) fn come_round(&mut self, header: usize) {
        let turns = self.turns.as_ref().filter(|_| self.goes_in_turn(header));
        let Some((after, _)) = turns.and_then(|t| t.starts[header]) else { return };
        let stays = self.a.label();
        if self.in_part {
            self.a.imm(Code::Cmp_rm32_imm32, LANES, -1);
            self.a.jump(Code::Jne_rel32_64, stays);
        }
        self.come_to_place(self.place_of_loop(header), after);
        self.a.bind_if_wanted(stays);
    }

    fn place_of_loop(&self, header: usize) -> u32 {
        BARRIERS + (self.f.blocks.len() + header) as u32
    }

    /// By block: the block that a turn started at which comes to it, if there is only one.
    fn starts_of_blocks(&self, starts: &[Option<(Label, Label)>]) -> Vec<Option<usize>> {
        let n = self.f.blocks.len();
        let mut from: Vec<Vec<usize>> = vec![Vec::new(); n];
        for s in (0..n).filter(|s| starts[*s].is_some()) {
            let mut work = vec![s];
            while let Some(b) = work.pop() {
                if from[b].contains(&s) {
                    continue;
                }
                from[b].push(s);
                if self.meets(b).is_none() {
                    work.extend(self.f.blocks[b].term.successors().iter().map(|t| t.idx()));
                }
            }
        }
        from.into_iter().map(|list| if let [s] = list[..] { Some(s) } else { None }).collect()
    }

    /// Where lanes go on after the barrier at the end of a block, if it is one that turns end at: of all threads. Barrier 0 is also passed by headers.
    pub(crate) fn meets(&self, b: usize) -> Option<usize> {
        match &self.f.blocks[b].term {
            Term::Barrier { next, .. } if self.plan.waits_for_all(b).is_some() => Some(next.idx()),
            _ => None,
        }
    }

    /// The same, if nobody wants to know anything of the others.
    pub(crate) fn plain_barrier(&self, b: usize) -> Option<usize> {
        self.meets(b).filter(|_| self.plan.is_without_result(b))
    }

    /// The blocks that turns start at, but those of loops.
    pub(crate) fn starts_of_turns(&self) -> Vec<usize> {
        let Some(turns) = &self.turns else { return Vec::new() };
        let is_start = |s: &usize| turns.starts[*s].is_some() && !self.goes_in_turn(*s);
        (0..turns.starts.len()).filter(is_start).collect()
    }

    /// At the start of the function: a CTA that has not run begins its first turn.
    pub(crate) fn enter_turns(&mut self) {
        if self.turns.is_none() {
            return;
        }
        self.begin_launch();
        let Some(turns) = &self.turns else { return };
        let Some((begin, _)) = turns.starts[0] else { return };
        let resumed = self.a.label();
        self.store_number(word(PLACE), SETTLED);
        self.store_number(word(BEGUN), 0);
        self.store_number(word(BEHIND), 0);
        self.a.imm(Code::Cmp_rm32_imm32, cta(offset_of!(CtaCtx, fresh)), 0);
        self.a.jump(Code::Je_rel32_64, resumed);
        self.store_number(cta(offset_of!(CtaCtx, fresh)), 0);
        self.a.jump(Code::Jmp_rel32_64, begin);
        self.a.bind(resumed);
        if let Some(head) = self.head.as_ref().map(Head::label) {
            self.a.jump(Code::Call_rel32_64, head);
        }
    }

    /// Lanes of a warp that has not run, in `LANES`: all of them, but in the last warp of a CTA that ends in the middle of one.
    fn first_lanes(&mut self, of: Register, to: Register) {
        let threads = self.plan.facts.shape.threads();
        self.a.imm(Code::Mov_rm32_imm32, to, -1);
        if self.has_warp_of_few() {
            let whole = self.a.label();
            let last = i32::try_from(threads / 32).unwrap_or(i32::MAX);
            self.a.imm(Code::Cmp_rm32_imm32, field(of, offset_of!(WarpCtx, warp)), last);
            self.a.jump(Code::Jne_rel32_64, whole);
            self.a.imm(Code::Mov_rm32_imm32, to, ((1u32 << (threads % 32)) - 1).cast_signed());
            self.a.bind(whole);
        }
    }

    /// Whether the last warp of a CTA has fewer lanes than others. Then there are no gangs, and turns are of the lanes that live.
    pub(crate) fn has_warp_of_few(&self) -> bool {
        !self.plan.facts.shape.threads().is_multiple_of(32)
    }

    /// The starts of turns and of their warps.
    fn starts(&mut self, step: i32) {
        let deopt = self.a.label();
        let starts = self.turns.as_ref().map_or(Vec::new(), |t| t.starts.clone());
        for (s, (begin, next)) in starts.into_iter().enumerate().filter_map(|(s, l)| l.map(|l| (s, l))) {
            self.a.bind(begin);
            if s > 0 {
                self.choose_fixed(s);
            } else {
                self.store_number(word(BEGUN), 1);
                self.go_on_in_row();
            }
            self.a.op2(Code::Lea_r64_m, RAX, Mem::label(next));
            self.store64(word(NEXT), RAX);
            self.store_number(word(PLACE), NOWHERE);
            self.store_number(word(START), s as u32);
            self.load64(WARP, cta(offset_of!(CtaCtx, first)));
            self.load64(RAX, cta(offset_of!(CtaCtx, end)));
            self.store64(word(LIMIT), RAX);
            if s == 0 {
                self.begin_cta(deopt);
                self.choose_strip();
                self.choose_fixed(s);
            }
            self.pass_idle(s, step);
            self.choose_gang(s, step);
            self.a.bind(next);
            if s == 0 {
                self.first_lanes(WARP, LANES);
                self.store32(warp(offset_of!(WarpCtx, live)), LANES);
            } else if self.has_warp_of_few() {
                self.load32(LANES, warp(offset_of!(WarpCtx, live)));
            } else {
                self.a.imm(Code::Mov_rm32_imm32, LANES, -1);
            }
            self.in_part = false;
            if self.has_warp_of_few() {
                self.load_living(s);
            } else {
                self.load_live(s);
            }
            let whole = self.turns.as_ref().and_then(|t| t.whole.iter().find(|w| w.0 == s)).map(|w| w.1);
            let block = whole.unwrap_or(self.block[s]);
            self.a.jump(Code::Jmp_rel32_64, block);
        }
        // Other code starts the CTA.
        self.a.bind(deopt);
        self.first_lanes(WARP, LANES);
        self.store32(warp(offset_of!(WarpCtx, live)), LANES);
        self.store_number(warp(offset_of!(WarpCtx, state)), 0);
        let pend = self.pend(0);
        self.store32(pend, LANES);
        self.leave(Stop::Deopt);
    }

    /// Leaves warps out of a turn that do nothing in it. They count as come to its end; if the others come elsewhere, they stand at its start.
    fn pass_idle(&mut self, s: usize, step: i32) {
        if self.goes_in_turn(s) {
            return;
        }
        // What they execute until they leave is counted.
        let Some(idle) = self.head.as_ref().and_then(|h| h.idle(s)).filter(|_| !self.counts()) else { return };
        let Some(turns) = &self.turns else { return };
        let (place, after) = match idle.barrier {
            // What says that a warp lives is written when it first runs.
            Some(_) if s == 0 => return,
            Some(b) if self.plain_barrier(b).is_none() => return,
            Some(b) => (BARRIERS + b as u32, turns.afters[b]),
            None => (END, turns.done),
        };
        let n_warps = self.plan.facts.shape.n_warps();
        let all = self.a.label();
        self.load64(RAX, ctx(idle.word));
        self.a.imm(Code::Cmp_rm64_imm32, RAX, n_warps.cast_signed());
        self.a.jump(Code::Jae_rel32_64, all);
        self.store_number(word(PLACE), place);
        self.a.op2(Code::Lea_r64_m, RCX, Mem::label(after));
        self.store64(word(AFTER), RCX);
        self.a.op2(Code::Test_rm64_r64, RAX, RAX);
        self.a.jump(Code::Je_rel32_64, after);
        self.a.times(RAX, RAX, step);
        self.a.op2(Code::Add_r64_rm64, RAX, WARP);
        self.store64(word(LIMIT), RAX);
        self.a.bind(all);
    }

    /// All lanes of the warp have come to the end, or to the barrier of a block. What follows is for a CTA that goes by headers.
    pub(crate) fn come_to(&mut self, barrier: Option<usize>) {
        let Some(turns) = &self.turns else { return };
        self.come_to_place(place_of(barrier), turns.after(barrier));
    }

    /// The same of a place that is known by its number, and what follows when all warps have come there.
    fn come_to_place(&mut self, place: u32, after: Label) {
        let Some(turns) = &self.turns else { return };
        let from = turns.from[self.at.0];
        let [start, ended, settled] = std::array::from_fn(|_| self.a.label());
        self.a.imm(Code::Cmp_rm32_imm32, word(PLACE), place.cast_signed());
        self.a.jump(Code::Je_rel32_64, ended);
        self.a.jump(Code::Jmp_rel32_64, start);
        self.a.bind(settled);
        if let Some(turns) = &mut self.turns {
            turns.cold.push(Elsewhere { start, ended, from, place, after, settled });
        }
    }

    /// Before the code is left: the other warps get their headers.
    pub(crate) fn settle(&mut self, reason: Reason) {
        if let Some(turns) = &self.turns
            && reason != Reason::Phase
        {
            let settle = turns.settle;
            self.a.jump(Code::Call_rel32_64, settle);
        }
    }

    /// All that belongs to turns. Emitted when the size of a context is known.
    pub(crate) fn turns(&mut self, step: i32) {
        if self.turns.is_none() {
            return;
        }
        self.starts(step);
        let Some(turns) = &mut self.turns else { return };
        let (ended, done, settle) = (turns.ended, turns.done, turns.settle);
        let starts = turns.starts.clone();
        let afters = turns.afters.clone();
        let cold = std::mem::take(&mut turns.cold);
        for c in cold {
            let other = self.a.label();
            self.a.bind(c.start);
            self.a.imm(Code::Cmp_rm32_imm32, word(PLACE), NOWHERE.cast_signed());
            self.a.jump(Code::Jne_rel32_64, other);
            self.store_number(word(PLACE), c.place);
            self.a.op2(Code::Lea_r64_m, RAX, Mem::label(c.after));
            self.store64(word(AFTER), RAX);
            self.a.jump(Code::Jmp_rel32_64, c.ended);
            self.a.bind(other);
            self.a.jump(Code::Call_rel32_64, settle);
            self.a.jump(Code::Jmp_rel32_64, c.settled);
            self.a.bind(c.ended);
            match c.from.and_then(|s| starts[s]) {
                // Where the next warp starts, and what follows the last one, is known.
                Some((_, next)) => {
                    self.a.imm(Code::Add_rm64_imm32, WARP, step);
                    self.a.op2(Code::Cmp_r64_rm64, WARP, word(LIMIT));
                    self.a.jump(Code::Jb_rel32_64, next);
                    self.a.jump(Code::Jmp_rel32_64, c.after);
                }
                None => self.a.jump(Code::Jmp_rel32_64, ended),
            }
        }
        for (b, after) in afters.into_iter().enumerate() {
            if let Some((begin, _)) = self.meets(b).and_then(|next| starts[next]) {
                self.a.bind(after);
                self.reduce_all(b, step);
                self.tell_meeting(Meeting::All, self.plan.sites.number(b));
                self.a.imm(Code::Add_rm32_imm32, cta(offset_of!(CtaCtx, epoch)), 1);
                self.a.jump(Code::Jmp_rel32_64, begin);
            }
        }
        let all = self.a.label();
        self.a.bind(ended);
        self.a.imm(Code::Add_rm64_imm32, WARP, step);
        self.a.op2(Code::Cmp_r64_rm64, WARP, word(LIMIT));
        self.a.jump(Code::Jae_rel32_64, all);
        self.a.op1(Code::Jmp_rm64, word(NEXT));
        self.a.bind(all);
        self.a.op1(Code::Jmp_rm64, word(AFTER));
        self.next_cta(done);
        self.write_headers(settle, step);
    }

    /// All warps have come to a barrier that may be a reduction: what the predicates in their contexts come to, to the home of its result in each.
    fn reduce_all(&mut self, b: usize, step: i32) {
        let Term::Barrier { kind, dst: Some(d), .. } = self.f.blocks[b].term else { return };
        let Some(home) = self.places.home_of(self.plan, d.idx()) else { return };
        let all = R8D;
        let (again, next) = (self.a.label(), self.a.label());
        self.a.op2(Code::Xor_r32_rm32, all, all);
        self.load64(RSI, cta(offset_of!(CtaCtx, first)));
        self.a.bind(again);
        self.load32(EAX, field(RSI, WarpCtx::PREDICATES));
        match kind {
            BarKind::RedPopc => {
                self.a.op2(Code::Popcnt_r32_rm32, EAX, EAX);
                self.a.op2(Code::Add_r32_rm32, all, EAX);
            }
            // Those that do not hold.
            BarKind::RedAnd => {
                self.a.op1(Code::Not_rm32, EAX);
                if self.has_warp_of_few() {
                    self.a.op2(Code::And_r32_rm32, EAX, field(RSI, offset_of!(WarpCtx, live)));
                }
                self.a.op2(Code::Or_r32_rm32, all, EAX);
            }
            _ => self.a.op2(Code::Or_r32_rm32, all, EAX),
        }
        self.next_context(step, again);
        if kind != BarKind::RedPopc {
            // All ones where one of them does not hold, or one does; the other way round of those that shall all hold.
            self.a.op1(Code::Neg_rm32, all);
            self.a.op2(Code::Sbb_r32_rm32, all, all);
            if kind == BarKind::RedAnd {
                self.a.op1(Code::Not_rm32, all);
            }
            if matches!(home, Loc::Shaped { .. }) {
                self.a.imm(Code::And_rm32_imm32, all, 1);
            }
        }
        self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(0), all);
        self.load64(RSI, cta(offset_of!(CtaCtx, first)));
        self.a.bind(next);
        match home {
            Loc::Row32(at) => {
                for part in [0, 64] {
                    self.a.store(store_code(Ty::B32), field(RSI, at as usize + part), zmm(0), ALL);
                }
            }
            Loc::Shaped { at, .. } => self.store64(field(RSI, at as usize), Register::R8),
            other => panic!("a result of 32 bits lives at {other:?}"),
        }
        self.next_context(step, next);
    }

    /// Steps the context in `rsi` to the next one, and goes to `again` if there is one.
    fn next_context(&mut self, step: i32, again: Label) {
        self.a.imm(Code::Add_rm64_imm32, RSI, step);
        self.a.op2(Code::Cmp_r64_rm64, RSI, cta(offset_of!(CtaCtx, end)));
        self.a.jump(Code::Jb_rel32_64, again);
    }

    /// Behind the last context of a CTA that goes by headers: warps before the one by which the turn was settled go on. If all warps have ended, and the CTA began here, the next one
    /// starts.
    pub(crate) fn end_settled(&mut self) {
        let Some(turns) = self.turns.as_ref().filter(|_| !self.plan.options.in_order) else { return };
        let (done, out) = (turns.done, self.a.label());
        if !turns.loops.is_empty() {
            let (none, dispatch) = (self.a.label(), self.dispatch);
            self.a.imm(Code::Cmp_rm32_imm32, word(BEHIND), 0);
            self.a.jump(Code::Je_rel32_64, none);
            self.store_number(word(BEHIND), 0);
            self.load64(WARP, cta(offset_of!(CtaCtx, first)));
            self.a.jump(Code::Jmp_rel32_64, dispatch);
            self.a.bind(none);
        }
        self.a.imm(Code::Cmp_rm32_imm32, word(BEGUN), 0);
        self.a.jump(Code::Je_rel32_64, out);
        self.load32(EAX, cta(offset_of!(CtaCtx, retired)));
        self.a.op2(Code::Cmp_r32_rm32, EAX, cta(offset_of!(CtaCtx, n_warps)));
        self.a.jump(Code::Jne_rel32_64, out);
        self.store_number(cta(offset_of!(CtaCtx, retired)), 0);
        self.a.jump(Code::Jmp_rel32_64, done);
        self.a.bind(out);
    }

    /// All warps of the CTA have ended: the next one, or back to the runtime.
    fn next_cta(&mut self, done: Label) {
        let Some((begin, _)) = self.turns.as_ref().and_then(|t| t.starts[0]) else { return };
        let out = self.a.label();
        self.a.bind(done);
        self.a.imm(Code::Cmp_rm32_imm32, cta(offset_of!(CtaCtx, more)), 0);
        self.a.jump(Code::Je_rel32_64, out);
        self.load64(RAX, cta(offset_of!(CtaCtx, stop)));
        self.a.imm(Code::Cmp_rm32_imm32, Mem::at(RAX, 0), 0);
        self.a.jump(Code::Jne_rel32_64, out);
        self.tell_meeting(Meeting::End, 0);
        self.a.imm(Code::Sub_rm32_imm32, cta(offset_of!(CtaCtx, more)), 1);
        self.next_place();
        self.store_number(cta(offset_of!(CtaCtx, epoch)), 1);
        // Shared memory is open up to the end of its page.
        let (filled, again) = (self.a.label(), self.a.label());
        self.load64(RCX, cta(offset_of!(CtaCtx, shared_size)));
        self.a.op2(Code::Test_rm64_r64, RCX, RCX);
        self.a.jump(Code::Je_rel32_64, begin);
        self.load64(RAX, cta(offset_of!(CtaCtx, shared_base)));
        self.a.op2(Code::Add_r64_rm64, RCX, RAX);
        let c = self.a.bytes([FRESH_SHARED; 64]);
        self.a.op2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, zmm(0), Mem::constant(c, 0));
        self.a.bind(again);
        self.a.store(Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm, Mem::at(RAX, 0), zmm(0), ALL);
        self.a.imm(Code::Add_rm64_imm32, RAX, 64);
        self.a.op2(Code::Cmp_r64_rm64, RAX, RCX);
        self.a.jump(Code::Jb_rel32_64, again);
        self.a.bind(filled);
        self.a.jump(Code::Jmp_rel32_64, begin);
        self.a.bind(out);
        self.load32(EAX, cta(offset_of!(CtaCtx, n_warps)));
        self.store32(cta(offset_of!(CtaCtx, retired)), EAX);
        self.give_back(Reason::Phase);
    }

    /// Steps `%ctaid` to the next CTA of the grid: along a row, then to the next row, then to the next plane. Clobbers `eax` and `ecx`.
    fn next_place(&mut self) {
        let word = |field: usize, dim: usize| cta(field + 4 * dim);
        let (ctaid, nctaid) = (offset_of!(CtaCtx, ctaid), offset_of!(CtaCtx, nctaid));
        let (in_row, in_plane) = (self.a.label(), self.a.label());
        for (dim, r, inside) in [(0, EAX, in_row), (1, ECX, in_plane)] {
            self.load32(r, word(ctaid, dim));
            self.a.imm(Code::Add_rm32_imm32, r, 1);
            self.a.op2(Code::Cmp_r32_rm32, r, word(nctaid, dim));
            self.a.jump(Code::Jb_rel32_64, inside);
            self.a.op2(Code::Xor_r32_rm32, r, r);
        }
        self.a.imm(Code::Add_rm32_imm32, word(ctaid, 2), 1);
        self.a.bind(in_plane);
        self.store32(word(ctaid, 1), ECX);
        self.a.bind(in_row);
        self.store32(word(ctaid, 0), EAX);
    }

    /// Writes the headers of all warps but the one that runs, as a subroutine. Keeps the registers above `r11` and all vectors.
    fn write_headers(&mut self, settle: Label, step: i32) {
        let on_stack = |at: i32| Mem::at(RSP, VECTOR_AREA + 8 + at);
        let pend = self.places.pend as i32;
        let [again, next, later, out] = std::array::from_fn(|_| self.a.label());
        self.a.bind(settle);
        self.load32(EDX, on_stack(PLACE));
        self.a.imm(Code::Cmp_rm32_imm32, EDX, SETTLED.cast_signed());
        self.a.jump(Code::Je_rel32_64, out);
        self.store_number(on_stack(PLACE), SETTLED);
        self.load32(ECX, on_stack(START));
        self.load64(RSI, cta(offset_of!(CtaCtx, first)));
        self.a.bind(again);
        self.a.op2(Code::Cmp_r64_rm64, RSI, cta(offset_of!(CtaCtx, end)));
        self.a.jump(Code::Jae_rel32_64, out);
        self.store_number(field(RSI, offset_of!(WarpCtx, wait_epoch)), 0);
        self.a.op2(Code::Cmp_r64_rm64, RSI, WARP);
        self.a.jump(Code::Je_rel32_64, next);
        self.a.jump(Code::Ja_rel32_64, later);
        // It came to the place of the turn.
        let barrier = self.a.label();
        self.a.imm(Code::Cmp_rm32_imm32, EDX, END.cast_signed());
        self.a.jump(Code::Jne_rel32_64, barrier);
        self.store_number(field(RSI, offset_of!(WarpCtx, live)), 0);
        self.store_number(field(RSI, offset_of!(WarpCtx, state)), self.f.blocks.len() as u32);
        self.a.imm(Code::Add_rm32_imm32, cta(offset_of!(CtaCtx, retired)), 1);
        self.a.jump(Code::Jmp_rel32_64, next);
        self.a.bind(barrier);
        for b in 0..self.f.blocks.len() {
            let Some(to) = self.meets(b) else { continue };
            let other = self.a.label();
            self.a.imm(Code::Cmp_rm32_imm32, EDX, (BARRIERS + b as u32).cast_signed());
            self.a.jump(Code::Jne_rel32_64, other);
            self.store_number(field(RSI, offset_of!(WarpCtx, state)), to as u32);
            if self.has_warp_of_few() {
                self.load32(EAX, field(RSI, offset_of!(WarpCtx, live)));
                self.store32(Mem::at(RSI, pend + 4 * to as i32), EAX);
            } else {
                self.a.imm(Code::Mov_rm32_imm32, Mem::at(RSI, pend + 4 * to as i32), -1);
            }
            self.store_number(field(RSI, WarpCtx::PLAIN_BARRIER), self.plan.sites.number(b));
            if !self.plan.ends_with_plain_barrier(b) {
                self.a.imm(Code::Add_rm32_imm32, cta(offset_of!(CtaCtx, arrived)), AT_ANOTHER.cast_signed());
            }
            self.a.bind(other);
        }
        for h in self.turns.as_ref().map_or(Vec::new(), |t| t.loops.clone()) {
            let other = self.a.label();
            self.a.imm(Code::Cmp_rm32_imm32, EDX, self.place_of_loop(h).cast_signed());
            self.a.jump(Code::Jne_rel32_64, other);
            self.store_number(field(RSI, offset_of!(WarpCtx, state)), h as u32);
            self.a.imm(Code::Mov_rm32_imm32, Mem::at(RSI, pend + 4 * h as i32), -1);
            self.store_number(on_stack(BEHIND), 1);
            self.a.jump(Code::Jmp_rel32_64, next);
            self.a.bind(other);
        }
        self.load32(EAX, cta(offset_of!(CtaCtx, epoch)));
        self.store32(field(RSI, offset_of!(WarpCtx, wait_epoch)), EAX);
        self.a.imm(Code::Add_rm32_imm32, cta(offset_of!(CtaCtx, arrived)), 1);
        self.a.jump(Code::Jmp_rel32_64, next);
        // It stands at the start of the turn.
        self.a.bind(later);
        self.store32(field(RSI, offset_of!(WarpCtx, state)), ECX);
        let behind = self.a.label();
        if self.has_warp_of_few() {
            self.load32(R8D, field(RSI, offset_of!(WarpCtx, live)));
        } else {
            self.a.imm(Code::Mov_rm32_imm32, R8D, -1);
        }
        self.a.op2(Code::Test_rm32_r32, ECX, ECX);
        self.a.jump(Code::Jne_rel32_64, behind);
        self.first_lanes(RSI, R8D);
        self.store32(field(RSI, offset_of!(WarpCtx, live)), R8D);
        self.a.bind(behind);
        self.a.op2(Code::Mov_r64_rm64, RDI, RSI);
        self.store32(Mem::indexed(RDI, RCX, 4, pend), R8D);
        self.a.bind(next);
        self.a.imm(Code::Add_rm64_imm32, RSI, step);
        self.a.jump(Code::Jmp_rel32_64, again);
        self.a.bind(out);
        self.a.op0(Code::Retnq);
    }
}
