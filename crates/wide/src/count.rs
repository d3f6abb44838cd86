//! What a counted launch counts: words of an array of the host thread, which `CtaCtx::counts` names.
//!
//! A block adds to its counter once for all of its statements. An access of all lanes at even places adds to one of 32 counters, by the address of lane 0: what such
//! an access comes to depends on nothing else, and is found when the launch has ended. Others go to the routine.

use std::mem::offset_of;

use handloom_ir::simt::{Access as Extent, Count, Counting, Counts, Does, Inst, Op, Term, Touch, Val};
use handloom_ir::types::StateSpace;
use handloom_plan::abi::{CtaCtx, Meeting, Routine};
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::shape::Shape;
use iced_x86::{Code, Register};

use crate::access::{Access, Limits};
use crate::asm::{Label, Mem};
use crate::emit::*;

const R8: Register = Register::R8;
const R10: Register = Register::R10;
const R11: Register = Register::R11;

/// Bytes from the first lane of one of two groups within which the other one may share a sector.
fn reach_of(shape: &Shape, touch: Touch) -> i32 {
    let most = (0..32).map(|l| shape.delta(l).unsigned_abs()).max().unwrap_or(0);
    i32::try_from(2 * most + u64::from(touch.bytes) + 64).unwrap_or(i32::MAX / 2)
}

/// A word of the array at a register.
fn word(array: Register, at: u32) -> Mem {
    Mem::at(array, 8 * at.cast_signed())
}

impl Emit<'_> {
    /// Whether anything is counted.
    pub(crate) fn counts(&self) -> bool {
        self.plan.options.counted != Counting::Nothing
    }

    /// Whether accesses are counted, and what warps wait for.
    pub(crate) fn is_counted(&self) -> bool {
        self.plan.options.counted == Counting::All
    }

    /// The array, in a register.
    fn counters(&mut self, to: Register) {
        self.load64(to, cta(offset_of!(CtaCtx, counts)));
    }

    pub(crate) fn count(&mut self, inst: &Inst, count: Count) {
        match count {
            Count::Mark => {}
            Count::Block { at, statements } => self.count_block(at, statements),
            Count::Guard { at } => self.count_guard(inst.src[0], at),
            Count::Branch { at, then } => self.branch_counter = Some((at, then)),
            Count::Access { at, site, touch } => self.count_access(inst, (at, site), touch),
        }
    }

    /// The same for warps that go side by side, all lanes of which do it.
    pub(crate) fn count_in_gang(&mut self, count: Count, block: usize, warps: usize) {
        match count {
            Count::Block { at, .. } => {
                self.counters(RCX);
                self.a.imm(Code::Add_rm64_imm32, word(RCX, at), warps as i32);
            }
            Count::Branch { at, then } => {
                self.branch_counter = Some((at, then));
                // A way goes on with what is guarded, which stands before what follows.
                if self.head.as_ref().is_some_and(|h| h.guard_of(block).is_some())
                    && let Term::Branch { then, otherwise, .. } = self.f.blocks[block].term
                {
                    self.count_way_of_gang(then.idx() < otherwise.idx(), warps);
                    self.branch_counter = None;
                }
            }
            Count::Mark | Count::Guard { .. } | Count::Access { .. } => {}
        }
    }

    /// All lanes of a gang go one way of a branch.
    pub(crate) fn count_way_of_gang(&mut self, goes_then: bool, warps: usize) {
        let Some((at, _)) = self.branch_counter.filter(|(_, then)| *then == goes_then) else { return };
        self.counters(RCX);
        self.a.imm(Code::Add_rm64_imm32, word(RCX, at), 32 * warps as i32);
        self.a.imm(Code::Mov_rm32_imm32, word(RCX, at + 2), -1);
    }

    fn count_block(&mut self, at: u32, statements: u32) {
        self.counters(RCX);
        if self.in_part {
            self.a.imm(Code::Add_rm64_imm32, word(RCX, at + 1), 1);
            self.a.op2(Code::Popcnt_r32_rm32, EAX, LANES);
            self.a.store(Code::Add_rm64_r64, word(RCX, at + 2), RAX, ALL);
            self.a.store(Code::Or_rm32_r32, word(RCX, at + 3), LANES, ALL);
        } else {
            self.a.imm(Code::Add_rm64_imm32, word(RCX, at), 1);
        }
        if self.is_counted() && statements > 0 {
            self.a.imm(Code::Add_rm64_imm32, ctx(self.places.work), statements.cast_signed());
        }
    }

    fn count_guard(&mut self, guard: Val, at: u32) {
        let s = self.src(guard);
        self.bits(&s);
        let [none, all] = std::array::from_fn(|_| self.a.label());
        self.a.op2(Code::And_r32_rm32, EAX, LANES);
        self.a.jump(Code::Je_rel32_64, none);
        self.counters(RCX);
        self.a.op2(Code::Cmp_r32_rm32, EAX, LANES);
        self.a.jump(Code::Je_rel32_64, all);
        self.a.imm(Code::Add_rm64_imm32, word(RCX, at + 1), 1);
        self.a.bind(all);
        self.a.store(Code::Or_rm32_r32, word(RCX, at + 2), EAX, ALL);
        self.a.op2(Code::Popcnt_r32_rm32, EAX, EAX);
        self.a.store(Code::Add_rm64_r64, word(RCX, at), RAX, ALL);
        self.a.bind(none);
    }

    /// All lanes of the block go one way of its branch.
    pub(crate) fn count_whole(&mut self, goes_then: bool) {
        let Some((at, _)) = self.branch_counter.filter(|(_, then)| *then == goes_then) else { return };
        self.counters(RCX);
        if self.in_part {
            self.a.op2(Code::Popcnt_r32_rm32, EAX, LANES);
            self.a.store(Code::Add_rm64_r64, word(RCX, at), RAX, ALL);
            self.a.store(Code::Or_rm32_r32, word(RCX, at + 2), LANES, ALL);
        } else {
            self.a.imm(Code::Add_rm64_imm32, word(RCX, at), 32);
            self.a.imm(Code::Mov_rm32_imm32, word(RCX, at + 2), -1);
        }
    }

    /// Lanes go both ways of the branch: those in `eax` to its first target, those in `ecx` to the other.
    pub(crate) fn count_parted(&mut self) {
        let Some((at, then)) = self.branch_counter else { return };
        let lanes = if then { EAX } else { ECX };
        self.counters(RSI);
        self.a.imm(Code::Add_rm64_imm32, word(RSI, at + 1), 1);
        self.a.store(Code::Or_rm32_r32, word(RSI, at + 2), lanes, ALL);
        self.a.op2(Code::Popcnt_r32_rm32, EDX, lanes);
        self.a.store(Code::Add_rm64_r64, word(RSI, at), RDX, ALL);
    }

    /// Lanes access memory.
    fn count_access(&mut self, inst: &Inst, (at, site): (u32, u32), touch: Touch) {
        let done = self.a.label();
        let lanes = self.takers(inst, done);
        let shape = self.shape(inst.src[0]).filter(|s| self.has_pattern(s, touch));
        let Some(shape) = shape else {
            self.memory_routine(inst, lanes, None);
            self.a.bind_if_wanted(done);
            return;
        };
        if !self.tables.patterns.iter().any(|(a, _)| *a == at) {
            self.tables.patterns.push((at, shape));
        }
        let is_part = self.in_part || lanes != LANES;
        let is_fixed =
            !matches!(touch.space, StateSpace::Global | StateSpace::Generic) && touch.bytes.is_multiple_of(4);
        if is_fixed
            && !is_part
            && let Some(block) = self.counter_of(self.at.0)
        {
            let by_block = (at, block);
            if !self.tables.fixed.contains(&by_block) {
                self.tables.fixed.push(by_block);
            }
            self.a.bind_if_wanted(done);
            return;
        }
        let [rest, some] = std::array::from_fn(|_| self.a.label());
        let has_two = shape.groups() == 2;
        if is_part {
            self.a.imm(Code::Cmp_rm32_imm32, lanes, -1);
            self.a.jump(Code::Jne_rel32_64, if has_two { rest } else { some });
        }
        let x = self.counted_access(inst, touch);
        let residue = Counts::ACCESS.cast_signed() - 1;
        self.lane_address(&x, shape.first_lane(0));
        self.in_heap(touch, rest);
        if has_two {
            self.a.op2(Code::Mov_r64_rm64, R11, RAX);
            self.lane_address(&x, shape.first_lane(1));
            self.in_heap(touch, rest);
            // The groups share no sector if they lie far apart.
            let reach = reach_of(&shape, touch);
            self.a.op2(Code::Mov_r64_rm64, RCX, RAX);
            self.a.op2(Code::Sub_r64_rm64, RCX, R11);
            self.a.imm(Code::Add_rm64_imm32, RCX, reach);
            self.a.imm(Code::Cmp_rm64_imm32, RCX, 2 * reach);
            self.a.jump(Code::Jb_rel32_64, rest);
        }
        self.counters(RCX);
        let base = 8 * at.cast_signed();
        self.a.imm(Code::And_rm32_imm32, EAX, residue);
        let second = if has_two { residue + 1 } else { 0 };
        self.a.imm(Code::Add_rm64_imm32, Mem::indexed(RCX, RAX, 8, base + 8 * second), 1);
        if has_two {
            self.a.imm(Code::And_rm32_imm32, Register::R11D, residue);
            self.a.imm(Code::Add_rm64_imm32, Mem::indexed(RCX, R11, 8, base), 1);
        }
        if is_part && !has_two {
            self.a.jump(Code::Jmp_rel32_64, done);
            self.a.bind(some);
            self.lane_address(&x, shape.first_lane(0));
            self.in_heap(touch, rest);
            self.a.imm(Code::And_rm32_imm32, EAX, residue);
            self.a.op2(Code::Mov_r32_rm32, Register::R9D, EAX);
            self.a.number(R8, Meeting::Masked as u64);
            self.routine(Routine::Meet, site as usize, lanes);
        }
        if has_two || touch.space == StateSpace::Generic {
            self.a.jump(Code::Jmp_rel32_64, done);
            self.a.bind(rest);
            self.memory_routine(inst, lanes, None);
        }
        self.a.bind_if_wanted(done);
    }

    /// An address in `rax` is one of memory of the device, as nearly all generic ones are; else to `rest`.
    fn in_heap(&mut self, touch: Touch, rest: Label) {
        if touch.space == StateSpace::Generic {
            self.a.op2(Code::Cmp_r64_rm64, RAX, cta(offset_of!(CtaCtx, heap_low)));
            self.a.jump(Code::Jb_rel32_64, rest);
            self.a.op2(Code::Cmp_r64_rm64, RAX, cta(offset_of!(CtaCtx, heap_high)));
            self.a.jump(Code::Jae_rel32_64, rest);
        }
    }

    /// The counter of a block.
    fn counter_of(&self, block: usize) -> Option<u32> {
        self.f.blocks[block].insts.iter().find_map(|i| match i.op {
            Op::Count(Count::Block { at, .. }) => Some(at),
            _ => None,
        })
    }

    /// Whether what an access of all lanes comes to follows from the addresses of the first lanes of at most two groups that share no sector.
    fn has_pattern(&self, shape: &Shape, touch: Touch) -> bool {
        use StateSpace::{Const, Generic, Global, Local, ParamEntry, ParamFunc, Shared};
        let is_near = (0..32).all(|l| shape.delta(l).unsigned_abs() < 1 << 20);
        match (touch.space, shape.groups()) {
            // Each address of an atomic is counted.
            _ if touch.does == Does::Atomic => false,
            (Global | Shared | Const | ParamEntry, 1) => true,
            (Global | Generic, 1 | 2) => is_near,
            (Local | ParamFunc, _) => shape.is_linear() && shape.stride == self.plan.facts.local_stride,
            _ => false,
        }
    }

    /// The access of which a lane's address is asked.
    fn counted_access(&mut self, inst: &Inst, touch: Touch) -> Access {
        let load = Inst { op: Op::Load { access: Extent::weak(touch.space, 8), offset: touch.offset }, ..inst.clone() };
        let class = AccessClass::of(&load).unwrap_or_else(|| panic!("bug: {inst:?} has no address"));
        self.kind_of_access(&load, class, Limits::Safe, LANES).0
    }

    /// Tells the runtime that warps of the CTA meet, or have ended.
    pub(crate) fn tell_meeting(&mut self, meeting: Meeting, site: u32) {
        if !self.is_counted() {
            return;
        }
        self.a.number(RDX, u64::from(site));
        self.a.number(RCX, 0);
        self.a.number(R8, meeting as u64);
        self.a.op0(Code::VEX_Vzeroupper);
        self.a.op2(Code::Mov_r64_rm64, Register::RDI, CTA);
        self.a.op2(Code::Mov_r64_rm64, RSI, WARP);
        self.load64(R10, cta(offset_of!(CtaCtx, routines)));
        self.a.op1(Code::Call_rm64, Mem::at(R10, 8 * Routine::Meet as i32));
    }
}
