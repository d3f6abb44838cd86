//! The code of a head: values, steps and ends, then what they decide.

use std::mem::offset_of;

use handloom_ir::simt::{Inst, Op, Pure, Reg, Val};
use handloom_ir::types::{Cmp, Int, StateSpace, Ty};
use handloom_plan::abi::WarpCtx;
use iced_x86::{Code, Register};

use super::{ACROSS, DECIDED, DOWN, FRAME_WORDS, Group, Guard, Head, Idle, Linear, Ranks, reg};
use crate::access::{Access, Limits};
use crate::alloc::Place;
use crate::asm::{Label, Mem, low32};
use crate::emit::*;

impl Head {
    /// The bits that the launch decides.
    fn launch_bits(&self) -> Mem {
        ctx(FRAME_WORDS + 8 * (self.spare + 31))
    }
}

impl Emit<'_> {
    /// The bit of an access that the head may decide about.
    pub(crate) fn decided_access(&mut self, x: &Access) -> Option<u32> {
        let Val::Reg(r) = x.class.address else { return None };
        let key = (r, x.class.space, x.class.kind, x.class.bytes());
        if !matches!(x.limits, Limits::Heap(_) | Limits::Shared) {
            return None;
        }
        let g = self.head.as_mut()?.groups.iter_mut().find(|g| g.key == key)?;
        if !g.covers(&x.class) {
            return None;
        }
        g.first.get_or_insert(*x);
        Some(g.bit)
    }

    /// Before the instructions of a guard: where the head decided about it, they are passed over. Returns labels for the two ways on.
    pub(crate) fn pass_guard(&mut self, b: usize, guard: Guard) -> (Label, Label) {
        let (yes, no) = (self.a.label(), self.a.label());
        self.a.imm(Code::Test_rm32_imm32, DECIDED, guard.bits.0.cast_signed());
        self.a.jump(Code::Jne_rel32_64, yes);
        self.a.imm(Code::Test_rm32_imm32, DECIDED, guard.bits.1.cast_signed());
        self.a.jump(Code::Jne_rel32_64, no);
        let insts = &self.f.blocks[b].insts[guard.from..];
        if let [inst] = insts {
            self.decide_in_warp(inst, yes, no);
        }
        insts.iter().flat_map(|i| &i.src).for_each(|v| self.ensure_words(*v));
        (yes, no)
    }

    /// A comparison of an affine value with a uniform one, by the ends of the warp.
    fn decide_in_warp(&mut self, inst: &Inst, yes: Label, no: Label) {
        let Op::Pure(Pure::ICmp(cmp, int @ Int { ty: Ty::B32, .. })) = inst.op else { return };
        let shapes = [0, 1].map(|i| self.shape(inst.src[i]));
        let (Some(s), Some(t)) = (shapes[0], shapes[1]) else { return };
        // The ends are those of 32 lanes. Where the last warp has fewer, what is known of the threads says nothing of the others.
        let are_all = self.plan.facts.shape.threads().is_multiple_of(32);
        let is_plain = if are_all { s.no_wrap(32, int.signed) } else { s.no_lane_wraps(32, int.signed) };
        if !t.is_uniform() || s.groups() != 1 || !is_plain {
            return;
        }
        let (lo, hi) = s.span(0);
        let (Ok(lo), Ok(hi)) = (i32::try_from(lo), i32::try_from(hi)) else { return };
        // The end where it is hardest, and the one where it is easiest.
        let (hard, easy, all, none) = match (cmp, int.signed) {
            (Cmp::Lt, true) => (hi, lo, Code::Jl_rel32_64, Code::Jge_rel32_64),
            (Cmp::Lt, false) => (hi, lo, Code::Jb_rel32_64, Code::Jae_rel32_64),
            (Cmp::Le, true) => (hi, lo, Code::Jle_rel32_64, Code::Jg_rel32_64),
            (Cmp::Le, false) => (hi, lo, Code::Jbe_rel32_64, Code::Ja_rel32_64),
            (Cmp::Gt, true) => (lo, hi, Code::Jg_rel32_64, Code::Jle_rel32_64),
            (Cmp::Gt, false) => (lo, hi, Code::Ja_rel32_64, Code::Jbe_rel32_64),
            (Cmp::Ge, true) => (lo, hi, Code::Jge_rel32_64, Code::Jl_rel32_64),
            (Cmp::Ge, false) => (lo, hi, Code::Jae_rel32_64, Code::Jb_rel32_64),
            _ => return,
        };
        self.lane_value(inst.src[0], s.first_lane(0), RAX);
        self.lane_value(inst.src[1], 0, RCX);
        for (by, jump, to) in [(hard, all, yes), (easy, none, no)] {
            self.a.op2(Code::Lea_r32_m, EDX, Mem::at(RAX, by));
            self.a.op2(Code::Cmp_r32_rm32, EDX, ECX);
            self.a.jump(jump, to);
        }
    }

    /// The subroutines: one for what differs between CTAs, not zero in `eax` if the code does not hold for this one, and one for what the launch decides.
    pub(crate) fn emit_head(&mut self) {
        let Some(head) = self.head.take() else { return };
        let was = self.places.of.clone();
        for (r, l) in head.linear.iter().enumerate() {
            if let Some(l) = l {
                self.places.of[r] = Place::Words(l.base);
            }
        }
        (self.in_part, self.in_head) = (false, true);
        self.head_part(&head, false);
        self.head_part(&head, true);
        self.places.of = was;
        self.in_head = false;
        self.head = Some(head);
    }

    fn head_part(&mut self, head: &Head, by_cta: bool) {
        let parts = head.row.as_ref().filter(|_| by_cta).and_then(|r| Some((r, r.guards?)));
        let [guards, decided] = std::array::from_fn(|_| self.a.label());
        if let Some((_, alone)) = parts {
            // What else was decided stays.
            self.a.bind(alone);
            self.a.op1(Code::Pop_r64, Register::R13);
            self.a.op2(Code::Mov_r32_rm32, Register::R15D, DECIDED);
            self.a.imm(Code::And_rm32_imm32, Register::R15D, !head.bits_of_guards(self.plan).cast_signed());
            self.a.jump(Code::Jmp_rel32_64, guards);
        }
        self.a.bind(if by_cta { head.label } else { head.of_launch });
        // The return address is below the words: it is kept in a register that nothing here uses.
        self.a.op1(Code::Pop_r64, Register::R13);
        let f = self.f;
        for &(b, i) in &head.insts {
            let inst = &f.blocks[b].insts[i];
            if head.courses[inst.dst[0].idx()].is_some_and(|c| c.by_cta) == by_cta {
                self.at = (b, i);
                self.scratch.0 = 0;
                self.head_inst(inst);
                let stays = !matches!(inst.op, Op::Load { .. })
                    && self.shape(Val::Reg(inst.dst[0])).is_some_and(|s| s.groups() == 1);
                self.in_rax = stays.then_some(inst.dst[0]);
                self.steps(head, inst);
            }
        }
        self.in_rax = None;
        if !by_cta {
            self.launched_steps(head);
        }
        self.find_rises(head, by_cta);
        let [broken, end] = std::array::from_fn(|_| self.a.label());
        if by_cta {
            let in_row = head.row.as_ref().map_or([].as_slice(), |r| &r.checks);
            for (v, signed) in head.checks.iter().chain(in_row.iter().filter(|c| !head.checks.contains(c))) {
                self.ends(head, *v, *signed, None, broken);
            }
        }
        self.climbs(head, by_cta, broken);
        self.a.number(Register::R15, 0);
        if by_cta {
            self.load32(Register::R15D, head.launch_bits());
        }
        self.a.bind_if_wanted(guards);
        for (b, guard) in head.guards.iter().enumerate() {
            if let Some(guard) = guard
                && head.is_by_cta(&f.blocks[b].insts[guard.from..]) == by_cta
            {
                match guard.lanes {
                    Some(lanes) => self.decide_lanes(head, b, *guard, lanes),
                    None => self.decide(
                        head,
                        &f.blocks[b].insts[guard.from..].iter().collect::<Vec<_>>(),
                        guard.cond,
                        guard.bits,
                    ),
                }
                if let Some(idle) = head.idle[b] {
                    self.count_active(head, &f.blocks[b].insts[guard.from], idle);
                }
            }
        }
        for known in &head.known {
            let insts = known.insts(self.plan);
            if head.is_by_cta(insts.iter().copied()) == by_cta {
                self.decide(head, &insts, known.cond, known.bits);
            }
        }
        if let Some((row, _)) = parts {
            self.a.imm(Code::Cmp_rm32_imm32, row.parted(), 0);
            self.a.jump(Code::Jne_rel32_64, decided);
        }
        let mut in_heap = false;
        for g in &head.groups {
            // Those of the heap ask caches, which fill while CTAs run.
            let differs = head.course_of(Val::Reg(g.from)).is_some_and(|c| c.by_cta)
                || head.rises(g.key.0).is_some_and(|r| head.turns_by_cta(&r.turns));
            if (differs || g.key.1 != StateSpace::Shared) == by_cta {
                self.decide_bounds(head, g, &mut in_heap);
            }
        }
        if !by_cta {
            self.decide_fixed(head);
            self.store32(head.launch_bits(), Register::R15D);
            self.return_of_head();
            return;
        }
        self.a.bind_if_wanted(decided);
        self.a.op2(Code::Mov_r32_rm32, DECIDED, Register::R15D);
        self.a.number(RAX, 0);
        self.a.jump(Code::Jmp_rel32_64, end);
        self.a.bind(broken);
        self.a.number(RAX, 1);
        self.a.bind(end);
        self.return_of_head();
    }

    /// Back to the caller: with a return, which hosts foretell by the calls that they have seen. (A jump would also leave the returns of all callers foretold in vain.)
    fn return_of_head(&mut self) {
        self.a.op1(Code::Push_r64, Register::R13);
        self.a.op0(Code::Retnq);
    }

    /// A value of the head, as it is in warp 0.
    fn head_inst(&mut self, inst: &Inst) {
        match inst.op {
            Op::Pure(op) => self.scalar_op(inst, op),
            Op::Sreg(s) => self.scalar_sreg(inst.dst[0], s),
            Op::Cvta { space, to_space } => self.scalar_cvta(inst, space, to_space),
            Op::Load { .. } => self.access(inst),
            op => self.address(inst.dst[0], op),
        }
    }

    /// A linear value of a lane, made from its value in warp 0. Says whether it is one.
    pub(crate) fn linear_value(&mut self, v: Val, lane: usize, to: Register) -> bool {
        let Some((r, head)) = reg(v).zip(self.head.as_ref()) else { return false };
        let Some(l) = head.linear[r.idx()] else { return false };
        let (even, ranks) = (head.even_step(r), head.ranks);
        let Some(shape) = self.shape(v) else { return false };
        let is_short = self.ty(v) != Ty::B64;
        let base = ctx(l.base + 8 * shape.group_of(lane) as u32);
        let by = shape.delta(lane);
        let n_warps = i64::from(self.plan.facts.shape.n_warps());
        let number_of_warp = warp(offset_of!(WarpCtx, warp));
        let short = low32(to);
        let number = self.number_of_warp();
        let known = number.zip(l.known()).map(|(number, steps)| ranks.distance(steps, number));
        match even {
            _ if number == Some(0) || even == Some(0) => self.load64(to, base),
            _ if let Some(n) = known => {
                self.load64(to, base);
                if is_short && n != 0 {
                    self.a.imm(Code::Add_rm32_imm32, short, (n.cast_unsigned() as u32).cast_signed());
                } else {
                    self.add_number(to, n);
                }
            }
            Some(n) if is_short || n > 0 && n <= i64::from(i32::MAX) / n_warps => {
                let n = (n.cast_unsigned() as u32).cast_signed();
                self.a.op2i(Code::Imul_r32_rm32_imm32, short, number_of_warp, n.cast_unsigned());
                let code = if is_short { Code::Add_r32_rm32 } else { Code::Add_r64_rm64 };
                self.a.op2(code, if is_short { short } else { to }, base);
            }
            _ => {
                self.load64(to, base);
                for way in [ACROSS, DOWN] {
                    self.add_steps(&l, ranks, way, to);
                }
                if is_short {
                    self.a.op2(Code::Mov_r32_rm32, short, short);
                }
            }
        }
        if is_short {
            if by != 0 {
                self.a.imm(Code::Add_rm32_imm32, short, (by.cast_unsigned() as u32).cast_signed());
            }
        } else {
            self.add_number(to, by);
        }
        true
    }

    /// The number of the warp that the code is for, if that is a constant.
    pub(crate) fn number_of_warp(&self) -> Option<usize> {
        (self.knows_numbers || self.plan.facts.shape.n_warps() == 1).then_some(self.member)
    }

    /// The number of the warp, in the low half of a register.
    pub(crate) fn load_number_of_warp(&mut self, to: Register) {
        match self.number_of_warp() {
            Some(n) => self.a.number(to, n as u64),
            None => self.load32(low32(to), warp(offset_of!(WarpCtx, warp))),
        }
    }

    /// Whether a value is made from its value in warp 0.
    pub(crate) fn is_linear_value(&self, v: Val) -> bool {
        reg(v).zip(self.head.as_ref()).is_some_and(|(r, head)| head.linear[r.idx()].is_some())
    }

    /// Adds to a register how far a linear value is from that of the first warp beside it, or of the first rank. Clobbers `r10`.
    fn add_steps(&mut self, l: &Linear, ranks: Ranks, way: usize, to: Register) {
        let r10 = Register::R10D;
        if l.numbers[way] == Some(0) || ranks.last()[way] == 0 {
            return;
        }
        if let Some(number) = self.number_of_warp() {
            let at = ranks.place(number)[way];
            match (l.numbers[way], at) {
                (_, 0) => {}
                (Some(n), _) => self.add_number(to, n.wrapping_mul(at)),
                (None, 1) => self.a.op2(Code::Add_r64_rm64, to, ctx(l.steps[way])),
                (None, _) => {
                    self.a.times(Register::R10, ctx(l.steps[way]), at as i32);
                    self.a.op2(Code::Add_r64_rm64, to, Register::R10);
                }
            }
            return;
        }
        self.load32(r10, warp(offset_of!(WarpCtx, warp)));
        match way {
            ACROSS if ranks.down > 1 => self.a.imm(Code::And_rm32_imm32, r10, (ranks.across - 1).cast_signed()),
            DOWN if ranks.across > 1 => self.a.imm8(Code::Shr_rm32_imm8, r10, ranks.across.trailing_zeros()),
            _ => {}
        }
        match l.numbers[way].map(i32::try_from) {
            Some(Ok(n)) => self.a.times(Register::R10, Register::R10, n),
            // A step of more bits is one of addresses: it is added as often as it says.
            Some(Err(_)) => {
                let n = l.numbers[way].unwrap_or(0).cast_unsigned();
                let c = self.a.doubles([n; 8]);
                self.a.op2(Code::Imul_r64_rm64, Register::R10, Mem::constant(c, 0));
            }
            None => self.a.op2(Code::Imul_r64_rm64, Register::R10, ctx(l.steps[way])),
        }
        self.a.op2(Code::Add_r64_rm64, to, Register::R10);
    }

    /// A linear value is due: its words in the context are written if anybody reads them.
    pub(crate) fn linear_words(&mut self, inst: &Inst) {
        for d in &inst.dst {
            if self.head.as_ref().is_some_and(|h| !h.lean[d.idx()]) {
                self.write_words(*d);
            }
        }
    }

    /// Writes the words of a linear value that are written only where somebody reads them. Clobbers `rax` and `r10`.
    pub(crate) fn ensure_words(&mut self, v: Val) {
        if let Some(r) = reg(v)
            && self.head.as_ref().is_some_and(|h| h.lean[r.idx()])
        {
            self.write_words(r);
        }
    }

    fn write_words(&mut self, r: Reg) {
        let Some((shape, at)) = self.words(r) else { return };
        for g in 0..shape.groups() {
            self.linear_value(Val::Reg(r), shape.first_lane(g), RAX);
            self.store64(ctx(at + 8 * g as u32), RAX);
        }
    }

    /// Sets the bits of a predicate that instructions make.
    pub(super) fn decide(&mut self, head: &Head, insts: &[&Inst], cond: Reg, bits: (u32, u32)) {
        let word = |k: usize| ctx(FRAME_WORDS + 8 * (head.spare + k as u32));
        if insts.len() > 16 {
            return;
        }
        // In the order of the block: each has a word with bit 0 for all lanes and bit 1 for none.
        let of = |v: Val| insts.iter().position(|i| reg(v).is_some_and(|r| i.dst.contains(&r)));
        for (k, inst) in insts.iter().enumerate() {
            match inst.op {
                Op::Pure(Pure::ICmp(cmp, int)) => match head.known_comparison(self.plan, inst, cmp, int) {
                    Some(0) if insts.len() == 1 => return,
                    Some(bits) => self.a.number(RAX, u64::from(bits)),
                    None => self.decide_comparison(head, inst, cmp, int),
                },
                Op::Pure(op) => {
                    let Some(a) = of(inst.src[0]) else { return };
                    self.load32(EAX, word(a));
                    if let Some(b) = inst.src.get(1).and_then(|v| of(*v)) {
                        // All of `and` is all of both, none is none of either; `or` is the other way.
                        let (all, none) = if matches!(op, Pure::And(_)) { (1, 2) } else { (2, 1) };
                        self.load32(ECX, word(b));
                        self.a.op2(Code::Mov_r32_rm32, EDX, EAX);
                        self.a.op2(Code::And_r32_rm32, EAX, ECX);
                        self.a.imm(Code::And_rm32_imm32, EAX, all);
                        self.a.op2(Code::Or_r32_rm32, EDX, ECX);
                        self.a.imm(Code::And_rm32_imm32, EDX, none);
                        self.a.op2(Code::Or_r32_rm32, EAX, EDX);
                    } else {
                        self.a.op2(Code::Mov_r32_rm32, ECX, EAX);
                        self.a.imm8(Code::Shr_rm32_imm8, ECX, 1);
                        self.a.op2(Code::Add_r32_rm32, EAX, EAX);
                        self.a.imm(Code::And_rm32_imm32, EAX, 2);
                        self.a.op2(Code::Or_r32_rm32, EAX, ECX);
                    }
                }
                _ => return,
            }
            if insts.len() > 1 {
                self.store64(word(k), RAX);
            }
        }
        let Some(cond) = of(Val::Reg(cond)) else { return };
        if insts.len() > 1 {
            self.load32(EAX, word(cond));
        }
        self.a.imm8(Code::Shl_rm32_imm8, EAX, bits.0.trailing_zeros());
        self.a.op2(Code::Or_r32_rm32, Register::R15D, EAX);
    }

    /// Counts the warps from the first on that do something: those whose first lane is not above the bound.
    fn count_active(&mut self, head: &Head, inst: &Inst, idle: Idle) {
        let Op::Pure(Pure::ICmp(_, int)) = inst.op else { return };
        if let Some(n) = head.known_active(self.plan, inst, int.signed, idle) {
            self.a.imm(Code::Mov_rm64_imm32, ctx(idle.word), n.cast_signed());
            return;
        }
        let Some(step) = reg(inst.src[0]).and_then(|r| head.even_step(r)) else { return };
        let n = self.plan.facts.shape.n_warps();
        let [unknown, none, end] = std::array::from_fn(|_| self.a.label());
        let hold = ctx(FRAME_WORDS + 8 * (head.spare + 16));
        self.ends(head, inst.src[1], int.signed, None, unknown);
        self.store64(hold, RAX);
        self.ends(head, inst.src[0], int.signed, None, unknown);
        self.a.op2(Code::Mov_r64_rm64, RCX, RAX);
        self.load64(RAX, hold);
        self.a.op2(Code::Sub_r64_rm64, RAX, RCX);
        self.a.imm(Code::Sub_rm64_imm32, RAX, i32::from(idle.from_equal));
        self.a.op2(Code::Test_rm64_r64, RAX, RAX);
        self.a.jump(Code::Js_rel32_64, none);
        self.a.number(RDX, 0);
        self.a.number(RCX, step.cast_unsigned());
        self.a.op1(Code::Div_rm64, RCX);
        self.a.imm(Code::Add_rm64_imm32, RAX, 1);
        self.a.jump(Code::Jmp_rel32_64, end);
        self.a.bind(unknown);
        self.a.number(RAX, u64::from(n));
        self.a.jump(Code::Jmp_rel32_64, end);
        self.a.bind(none);
        self.a.number(RAX, 0);
        self.a.bind(end);
        self.store64(ctx(idle.word), RAX);
    }

    /// Sets the bit of a group of accesses if all of them are right. `in_heap`: the ends of the heap are where tests want them, from another group.
    fn decide_bounds(&mut self, head: &Head, g: &Group, in_heap: &mut bool) {
        let Some(first) = &g.first else { return };
        let Some(shape) = self.shape(Val::Reg(g.from)) else { return };
        let failed = self.a.label();
        let rim = self.rim(head, g, first);
        let x = Access { cold: if rim.is_some() { self.a.label() } else { failed }, ..*first };
        let bytes = x.class.bytes();
        let numbers = head.linear[g.from.idx()].map_or([None; 2], |l| l.numbers);
        if numbers.into_iter().flatten().any(|n| n % bytes != 0) {
            return;
        }
        let rises = head.rises(g.key.0);
        let is_shared = rises.is_none() && self.is_within_heap(&x);
        if is_shared && !*in_heap {
            self.limits(&x);
        }
        *in_heap = is_shared;
        for at in head.step_words(g.from).filter(|_| bytes > 1) {
            self.a.imm(Code::Test_rm32_imm32, ctx(at), (bytes - 1) as i32);
            self.a.jump(Code::Jne_rel32_64, failed);
        }
        if let Some(r) = rises {
            self.rise(head, r, bytes, failed);
        }
        for group in 0..shape.groups() {
            let is_plain = rises.is_none() && !x.short;
            let ends = (g.begin, g.end);
            if let Some(distance) = is_plain.then(|| self.begin_of_all(head, g.from, group, ends)).flatten() {
                if !is_shared {
                    self.limits(&x);
                }
                self.test_between(head, &x, distance);
                continue;
            }
            self.ends(head, Val::Reg(g.from), false, Some(group), failed);
            if let Some(r) = rises {
                self.ends_of_rise(head, r, x.short, failed);
            }
            self.add_number(RAX, g.begin);
            self.add_number(RCX, g.end);
            if !is_shared {
                self.limits(&x);
            }
            self.test(&x, RAX, false);
            self.test(&x, RCX, true);
        }
        if let Some(comparisons) = rim {
            let right = self.a.label();
            self.a.jump(Code::Jmp_rel32_64, right);
            self.a.bind(x.cold);
            self.decide_at_rim(head, g, &x, &comparisons, failed);
            *in_heap = false;
            self.a.bind(right);
        }
        self.a.imm(Code::Or_rm32_imm32, Register::R15D, g.bit.cast_signed());
        self.a.bind(failed);
    }

    /// Runs what the head does for the launch.
    pub(crate) fn begin_launch(&mut self) {
        self.begin_rows();
        if let Some(label) = self.head.as_ref().map(Head::of_launch) {
            self.a.jump(Code::Call_rel32_64, label);
        }
    }
}
