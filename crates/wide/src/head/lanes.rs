//! Guards that leave out some lanes: which lanes of each warp go on, where that is known once a CTA.
//!
//! # The model
//! A guard whose comparisons are each of what is the same in all warps (the ends of a row of a picture) or of what is the same in all lanes of a warp (its first and last row) parts every warp in a
//! way that the head writes down: a word of lanes for each warp. Where only the first warp does anything in a turn, and constants say which of its lanes, these lanes are a number. Gangs then do
//! what is guarded for all lanes and store under a mask, and what is read behind the guard they make under one too: nobody reads what the others made else, and accesses were found to be right for all of them.

use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Function, Inst, Op, Pure, Reg, Term, Val};
use handloom_ir::types::{Int, Sreg, Ty};
use handloom_plan::Plan;
use handloom_plan::access::AccessClass;
use iced_x86::{Code, Register};

use super::{ACROSS, DOWN, FRAME_WORDS, Going, Guard, Head, Linear, Row, Table, reg};
use crate::alloc::FIRST_VECTOR;
use crate::asm::Mem;
use crate::emit::*;
use crate::values::{At, Src};

/// Warps of a CTA whose lanes may be written down: those of one vector of words.
const MOST_WARPS: u32 = 16;
/// Comparisons of a guard: each has a vector, and so has what connects two.
const MOST_COMPARISONS: usize = 8;

/// Instructions, at most, that all warps do where a guard lets only some of them go on.
const SHORT: usize = 16;
/// Pieces of a warp, at most, that a comparison is made for one by one.
const MOST_PIECES: usize = 4;

/// Warps of a rank, at most, that a comparison is made for one by one.
const MOST_ACROSS: u32 = 8;

/// How a comparison differs inside of a CTA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// In the same way in all warps, or in those of a file.
    Lanes,
    /// Only from warp to warp, and between rows of threads that a warp has several of.
    Warps,
}

/// Lanes in which all of some values are the same, by the first one of them.
pub(super) fn alike(plan: &Plan, src: &[Val]) -> Vec<(usize, u32)> {
    let place = |v: &Val, l: usize| plan.facts.arg(*v).shape.map(|s| (s.group_of(l), s.delta(l)));
    let mut pieces: Vec<(usize, u32)> = Vec::new();
    for lane in 0..32 {
        match pieces.iter_mut().find(|(first, _)| src.iter().all(|v| place(v, *first) == place(v, lane))) {
            Some((_, lanes)) => *lanes |= 1 << lane,
            None => pieces.push((lane, 1 << lane)),
        }
    }
    pieces
}

/// What a guard guards, if that is straight: blocks one after the other, up to the one where all lanes meet.
pub(super) fn guarded(plan: &Plan, b: usize) -> Option<(Vec<usize>, usize)> {
    let f = &plan.func;
    let Term::Branch { then, otherwise, .. } = f.blocks[b].term else { return None };
    let (low, high) = (then.idx().min(otherwise.idx()), then.idx().max(otherwise.idx()));
    let mut blocks = Vec::new();
    let mut at = low;
    while at != high {
        let block = &f.blocks[at];
        let Term::Jump(next) = block.term else { return None };
        if at <= b || next.idx() <= at || plan.facts.cfg.preds[at].len() != 1 {
            return None;
        }
        blocks.push(at);
        at = next.idx();
    }
    (!blocks.is_empty()).then_some((blocks, high))
}

/// The same where nothing behind reads what these blocks make.
fn guarded_alone(plan: &Plan, b: usize) -> Option<Vec<usize>> {
    let (blocks, meet) = guarded(plan, b)?;
    let lives = |d: &Reg| plan.facts.live.entry[meet].has(d.idx());
    let made = blocks.iter().flat_map(|x| &plan.func.blocks[*x].insts).flat_map(|i| &i.dst);
    (!made.into_iter().any(lives)).then_some(blocks)
}

/// Whether what is guarded is done where the condition holds.
pub(super) fn is_done_if_true(f: &Function, b: usize) -> bool {
    matches!(f.blocks[b].term, Term::Branch { then, otherwise, .. } if then < otherwise)
}

impl Head {
    /// Whether what a block guards is short.
    pub(super) fn guards_little(plan: &Plan, b: usize) -> bool {
        let n = |b: &usize| plan.func.blocks[*b].insts.len();
        guarded_alone(plan, b).is_some_and(|of| of.iter().map(n).sum::<usize>() <= SHORT)
    }

    /// Words for the lanes that guards let go on.
    pub(super) fn give_lanes(&mut self, plan: &Plan) {
        let fits = Head::has_tables(plan);
        for b in 0..plan.func.blocks.len() {
            let Some(guard) = self.guards[b].filter(|_| fits && self.bits < 31) else { continue };
            let kinds: Option<Vec<By>> = self.comparisons(plan, b, guard).map(|i| self.by(plan, i)).collect();
            let by_lanes = |k: &[By]| k.contains(&By::Lanes) || Head::guards_little(plan, b);
            if kinds.is_some_and(|k| by_lanes(&k) && k.len() <= MOST_COMPARISONS) && guarded(plan, b).is_some() {
                self.give_table(b, guard, false);
            }
        }
    }

    /// Whether the lanes of all warps of a CTA have room in a table.
    pub(super) fn has_tables(plan: &Plan) -> bool {
        let threads = plan.facts.shape.threads();
        threads.is_multiple_of(32) && (2..=MOST_WARPS).contains(&(threads / 32))
    }

    /// Words for the lanes that a guard lets go on.
    pub(super) fn give_table(&mut self, b: usize, guard: Guard, is_known: bool) {
        let table = Table { words: FRAME_WORDS + 8 * self.words, bit: 1 << self.bits, is_known };
        self.guards[b] = Some(Guard { lanes: Some(table), ..guard });
        self.bits += 1;
        self.words += 8;
    }

    /// Accesses of a block that constants keep all but the first warps from reach less far than those of all warps.
    pub(super) fn leave_out_idle(&mut self, plan: &Plan) {
        let f = &plan.func;
        let n_warps = plan.facts.shape.n_warps() as usize;
        let mut idle = vec![0; f.blocks.len()];
        for b in 0..f.blocks.len() {
            let active = self.most_active(f, b).filter(|n| *n < n_warps && self.n_active(plan, b) == Some(*n));
            let blocks = active.and_then(|n| Some((n, guarded(plan, b)?.0)));
            blocks.iter().flat_map(|(n, of)| of.iter().map(move |x| (n, x))).for_each(|(n, x)| idle[*x] = n_warps - n);
        }
        let accesses = self.accesses_of_groups(f);
        let mut groups = std::mem::take(&mut self.groups);
        let tables = self.tables_of_blocks(plan);
        for g in &mut groups {
            let step = self.even_step(g.key.0).filter(|n| *n > 0);
            let reach = self.reach_of_lanes(plan, g);
            let ends = accesses[&g.key.0].iter().filter(|(_, class)| g.has(class)).map(|&(b, class)| {
                let by = reach.as_ref().zip(tables[b]).and_then(|(reach, lanes)| reach.of(lanes));
                let (up, down) = by.unwrap_or((0, step.unwrap_or(0) * idle[b] as i64));
                (class.offset + up, class.offset - down)
            });
            let ends: Vec<(i64, i64)> = ends.collect();
            g.begin = ends.iter().map(|e| e.0).min().map_or(g.low, |begin| begin.max(g.low));
            g.end = ends.iter().map(|e| e.1).max().map_or(g.high, |end| end.min(g.high));
        }
        self.groups = groups;
    }

    /// By address of a group: accesses through it and their blocks.
    pub(super) fn accesses_of_groups(&self, f: &Function) -> FastMap<Reg, Vec<(usize, AccessClass)>> {
        let mut accesses: FastMap<Reg, Vec<(usize, AccessClass)>> = FastMap::default();
        self.groups.iter().for_each(|g| _ = accesses.entry(g.key.0).or_default());
        for (b, inst) in f.blocks.iter().enumerate().flat_map(|(b, block)| block.insts.iter().map(move |i| (b, i))) {
            let class = AccessClass::of(inst);
            if let Some((of, class)) = class.and_then(|c| Some((accesses.get_mut(&reg(c.address)?)?, c))) {
                of.push((b, class));
            }
        }
        accesses
    }

    fn comparisons<'p>(&self, plan: &'p Plan, b: usize, guard: Guard) -> impl Iterator<Item = &'p Inst> {
        plan.func.blocks[b].insts[guard.from..].iter().filter(|i| matches!(i.op, Op::Pure(Pure::ICmp(..))))
    }

    pub(super) fn by(&self, plan: &Plan, inst: &Inst) -> Option<By> {
        let by_lanes = |v: &Val| {
            let is_of_file = |l: &Linear| l.numbers[DOWN] == Some(0) && self.ranks.across <= MOST_ACROSS;
            reg(*v).is_none_or(|r| self.is_same_in_warps(r)) || self.linear_of(*v).is_some_and(is_of_file)
        };
        let by_warps = |v: &Val| plan.facts.arg(*v).shape.is_some_and(|s| s.stride == 0);
        let is_short = matches!(inst.op, Op::Pure(Pure::ICmp(_, Int { ty: Ty::B32, .. })));
        let alike_in_warp = |all: &[Val]| alike(plan, all).len() == 1;
        match inst.src.as_slice() {
            _ if !is_short => None,
            all if all.iter().all(by_lanes) && !alike_in_warp(all) => Some(By::Lanes),
            all if all.iter().all(by_warps) && alike(plan, all).len() <= MOST_PIECES => Some(By::Warps),
            _ => None,
        }
    }

    /// The lanes that do what the guard of a block guards, with the blocks of that, and the one where all lanes meet; none of these where all lanes do. `is_start`: the warps are those that do something in a turn from the block.
    pub(crate) fn going(&self, plan: &Plan, b: usize, is_start: bool) -> Option<(Going, Vec<usize>, usize)> {
        let known = self.known_lanes(plan, b).filter(|_| is_start);
        if known == Some(u32::MAX) {
            return Some((Going::Known(u32::MAX), Vec::new(), b));
        }
        let (blocks, meet) = guarded(plan, b)?;
        let known = known.filter(|_| guarded_alone(plan, b).is_some()).map(Going::Known);
        let written = || self.guards[b]?.lanes.map(Going::Written);
        Some((known.or_else(written)?, blocks, meet))
    }

    /// How many warps do something in a turn that starts at a block, if a constant says so: a guard asks for thread numbers below it.
    pub(crate) fn most_active(&self, f: &Function, b: usize) -> Option<usize> {
        let (idle, guard) = (self.idle[b]?, self.guards[b]?);
        let inst = f.blocks[b].insts.get(guard.from)?;
        let (a, bound) = (reg(inst.src[0])?, crate::table::constant(inst.src[1])?);
        let makes = |i: &&Inst| i.dst.contains(&a);
        let is_tid =
            f.blocks.iter().flat_map(|x| &x.insts).find(makes).is_some_and(|i| matches!(i.op, Op::Sreg(Sreg::Tid(_))));
        let step =
            self.even_step(a).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0 && is_tid && bound < 1 << 16)?;
        let beyond = if idle.from_equal { bound } else { bound + 1 };
        usize::try_from(beyond.div_ceil(step)).ok()
    }

    /// How many warps do something in turns that start at a block, if constants say so.
    pub(crate) fn n_active(&self, plan: &Plan, b: usize) -> Option<usize> {
        let n_warps = plan.facts.shape.n_warps() as usize;
        match self.idle[b] {
            // All warps begin such a turn.
            Some(idle) if b == 0 && idle.barrier.is_some() => Some(n_warps),
            Some(_) => Some(self.most_active(&plan.func, b)?.min(n_warps)),
            None => Some(n_warps),
        }
    }

    /// The lanes that do what the guard of a block guards, if constants say which they are and they are the same in all warps that do something in turns from the block.
    fn known_lanes(&self, plan: &Plan, b: usize) -> Option<u32> {
        let f = &plan.func;
        let (guard, active) = (self.guards[b].filter(|_| self.idle[b].is_some())?, self.n_active(plan, b)?);
        self.most_active(f, b)?;
        let table = self.known_table(plan, b, guard)?;
        let first = *table.first()?;
        table.iter().take(active).all(|lanes| *lanes == first).then_some(first)
    }
}

impl Emit<'_> {
    /// Sets the bits of a guard, and writes down which lanes of each warp do what it guards.
    pub(super) fn decide_lanes(&mut self, head: &Head, b: usize, guard: Guard, table: Table) {
        let f = self.f;
        let insts = &f.blocks[b].insts[guard.from..];
        let is_done = is_done_if_true(f, b);
        let differs = |row: &&Row| insts.iter().flat_map(|i| &i.src).filter_map(|v| reg(*v)).any(|r| row.step(r) != 0);
        let end = self.a.label();
        if table.is_known {
            self.write_known_lanes(head, b, table);
            return;
        }
        if let Some(row) = head.row.as_ref().filter(differs) {
            // For several CTAs at once only what holds in all lanes of them or in none is known.
            let alone = self.a.label();
            self.a.imm(Code::Cmp_rm32_imm32, row.row(), 0);
            self.a.jump(Code::Je_rel32_64, alone);
            self.decide(head, &insts.iter().collect::<Vec<_>>(), guard.cond, guard.bits);
            let (yes, no) = guard.bits;
            let (on, off) = if is_done { (yes, no) } else { (no, yes) };
            self.a.imm(Code::Test_rm32_imm32, Register::R15D, (on | off).cast_signed());
            self.a.jump(Code::Je_rel32_64, end);
            self.a.op2(Code::Mov_r32_rm32, EAX, Register::R15D);
            self.a.imm8(Code::Shr_rm32_imm8, EAX, on.trailing_zeros());
            self.a.imm(Code::And_rm32_imm32, EAX, 1);
            self.a.op1(Code::Neg_rm32, EAX);
            self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(0), EAX);
            self.write_lanes(table);
            self.a.jump(Code::Jmp_rel32_64, end);
            self.a.bind(alone);
        }
        // One vector for each of them: what holds, by warp and lane.
        let vector = |k: usize| zmm(FIRST_VECTOR + k as u8);
        let of = |v: Val| insts.iter().position(|i| reg(v).is_some_and(|r| i.dst.contains(&r)));
        for (k, inst) in insts.iter().enumerate() {
            let Op::Pure(op) = inst.op else { continue };
            let ones = self.constant(Ty::B32, u64::from(u32::MAX));
            match (op, inst.src.first().and_then(|v| of(*v)), inst.src.get(1).and_then(|v| of(*v))) {
                (Pure::ICmp(..), ..) => self.compare_in_cta(head, inst, op, vector(k)),
                (Pure::And(_), Some(x), Some(y)) => {
                    self.a.op3(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, vector(k), vector(x), vector(y));
                }
                (Pure::Or(_), Some(x), Some(y)) => {
                    self.a.op3(Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, vector(k), vector(x), vector(y));
                }
                (_, Some(x), _) => self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, vector(k), vector(x), ones),
                _ => {}
            }
        }
        let Some(cond) = of(Val::Reg(guard.cond)) else { return };
        self.a.end_instruction(1 << cond);
        // One CTA of a row alone: the next one asks anew, and what all lanes do is in the words too.
        let written = self.a.label();
        if let Some(row) = head.row.as_ref().filter(|r| r.guards.is_some()) {
            self.a.imm(Code::Cmp_rm32_imm32, row.parted(), 0);
            self.a.jump(Code::Jne_rel32_64, written);
        }
        let warps = self.plan.facts.shape.threads() / 32;
        let all = ((1u32 << warps) - 1).cast_signed();
        for (value, bit) in [(u32::MAX, guard.bits.0), (0, guard.bits.1)] {
            let no = self.a.label();
            let c = self.constant(Ty::B32, u64::from(value));
            self.a.op3i(Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8, Register::K5, vector(cond), c, 0);
            self.a.op2(Code::VEX_Kmovd_r32_kr, EAX, Register::K5);
            self.a.imm(Code::And_rm32_imm32, EAX, all);
            self.a.imm(Code::Cmp_rm32_imm32, EAX, all);
            self.a.jump(Code::Jne_rel32_64, no);
            self.a.imm(Code::Or_rm32_imm32, Register::R15D, bit.cast_signed());
            self.a.bind(no);
        }
        self.a.bind_if_wanted(written);
        let flips = self.constant(Ty::B32, if is_done { 0 } else { u64::from(u32::MAX) });
        self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, zmm(0), vector(cond), flips);
        self.write_lanes(table);
        self.a.end_instruction(0);
        self.a.bind(end);
    }

    /// Vector 0 is what all warps' lanes are.
    pub(super) fn write_lanes(&mut self, table: Table) {
        self.a.store(Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm, ctx(table.words), zmm(0), ALL);
        self.a.imm(Code::Or_rm32_imm32, Register::R15D, table.bit.cast_signed());
    }

    /// Where a comparison holds: a word of lanes for each warp.
    fn compare_in_cta(&mut self, head: &Head, inst: &Inst, op: Pure, to: Register) {
        let (and, or) = (Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32);
        if head.by(self.plan, inst) == Some(By::Lanes) {
            let is_same = |v: &Val| reg(*v).is_none_or(|r| head.is_same_in_warps(r));
            let across = if inst.src.iter().all(is_same) { 1 } else { head.ranks.across as usize };
            for file in 0..across {
                let src: Vec<Src> = (0..).zip(&inst.src).map(|(k, v)| self.in_file(head, *v, file, k)).collect();
                self.mask_op(op, &src);
                let one = if file == 0 { to } else { zmm(4) };
                self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, one, EAX);
                if across > 1 {
                    let warps: Vec<u64> =
                        (0..16).map(|w| if w % across == file { u64::from(u32::MAX) } else { 0 }).collect();
                    let warps = self.lanes_constant(Ty::B32, &warps);
                    self.a.op3(and, one, one, warps);
                }
                if file > 0 {
                    self.a.op3(or, to, to, one);
                }
            }
            return;
        }
        let pieces = alike(self.plan, &inst.src);
        for (k, (lane, lanes)) in pieces.iter().enumerate() {
            let of = |(scratch, v): (u8, &Val)| self.by_warps(head, *v, *lane, scratch);
            let src: Vec<Src> = (4..).zip(&inst.src).map(of).collect();
            self.mask_part(op, 0, &src, Register::K5);
            let one = if k == 0 { to } else { zmm(4) };
            self.a.op2(Code::EVEX_Vpmovm2d_zmm_kr, one, Register::K5);
            if pieces.len() > 1 {
                let lanes = self.constant(Ty::B32, u64::from(*lanes));
                self.a.op3(and, one, one, lanes);
            }
            if k > 0 {
                self.a.op3(or, to, to, one);
            }
        }
    }

    /// A value of 32 bits in the first warp of a file, by words of its own for the `k`-th source of an instruction.
    fn in_file(&mut self, head: &Head, v: Val, file: usize, k: u32) -> Src {
        let s = self.src(v);
        let (Some(l), At::Words(shape, at)) = (head.linear_of(v).copied(), s.at) else { return s };
        if file == 0 || l.numbers[ACROSS] == Some(0) {
            return s;
        }
        let own = FRAME_WORDS + 8 * (head.spare + 20 + 4 * k);
        for g in 0..shape.groups() as u32 {
            match l.numbers[ACROSS] {
                Some(n) => self.a.number(RAX, n.wrapping_mul(file as i64).cast_unsigned()),
                None => self.a.times(RAX, ctx(l.steps[ACROSS]), file as i32),
            }
            self.a.op2(Code::Add_r32_rm32, EAX, ctx(at + 8 * g));
            self.store64(ctx(own + 8 * g), RAX);
        }
        Src { at: At::Words(shape, own), ..s }
    }

    /// The value of each warp, in a vector, of what is the same in some lanes of one, of which one is named.
    pub(super) fn by_warps(&mut self, head: &Head, v: Val, lane: usize, scratch: u8) -> Src {
        let s = self.src(v);
        let Some(l) = head.linear_of(v) else {
            if let At::Words(shape, _) = s.at
                && !shape.is_uniform()
            {
                self.lane_value(v, lane, RAX);
                self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, zmm(scratch), EAX);
                return Src { at: At::Given(zmm(scratch)), ..s };
            }
            return s;
        };
        let r = match s.at {
            At::Words(shape, at) if !shape.is_uniform() => {
                let delta = self.constant(Ty::B32, shape.delta(lane).cast_unsigned() & Ty::B32.mask());
                let first = ctx(at + 8 * shape.group_of(lane) as u32);
                self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32, zmm(scratch), first);
                self.a.op3(Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, zmm(scratch), zmm(scratch), delta);
                zmm(scratch)
            }
            _ => self.reg(&s, 0, scratch),
        };
        let add = Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32;
        let of_warps = |of: &dyn Fn(usize) -> i64| (0..16).map(|w| of(w).cast_unsigned()).collect::<Vec<u64>>();
        let numbers = l.numbers.map(|n| n.unwrap_or(0));
        let steps = self.lanes_constant(Ty::B32, &of_warps(&|w| head.ranks.distance(numbers, w)));
        self.a.op3(add, zmm(scratch), r, steps);
        for way in [ACROSS, DOWN].into_iter().filter(|w| l.numbers[*w].is_none()) {
            let places = self.lanes_constant(Ty::B32, &of_warps(&|w| head.ranks.place(w)[way]));
            self.a.op2(Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32, zmm(6), ctx(l.steps[way]));
            self.a.op3(Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32, zmm(6), zmm(6), places);
            self.a.op3(add, zmm(scratch), zmm(scratch), zmm(6));
        }
        Src { at: At::Given(zmm(scratch)), ..s }
    }

    /// The word of the lanes of the warp that the head wrote down. Clobbers `rax`, which the place goes by.
    pub(crate) fn word_of_lanes(&mut self, table: Table) -> Mem {
        if let Some(number) = self.number_of_warp() {
            return ctx(table.words).behind(4 * number as i32);
        }
        self.load_number_of_warp(RAX);
        self.a.imm8(Code::Shl_rm32_imm8, EAX, 2);
        ctx(table.words).plus(RAX)
    }

    /// Mask registers of the lanes of a warp that do what is guarded, from its word.
    pub(crate) fn set_masks_of(&mut self, m: Mem, ty: Ty) {
        if ty == Ty::B64 {
            for (q, k) in (0..).zip([Register::K1, Register::K2, Register::K3, Register::K4]) {
                self.a.op2(Code::VEX_Kmovb_kr_km8, k, m.behind(q));
            }
        } else {
            self.a.op2(Code::VEX_Kmovw_kr_km16, Register::K1, m);
            self.a.op2(Code::VEX_Kmovw_kr_km16, Register::K3, m.behind(2));
        }
    }
}
