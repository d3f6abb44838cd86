//! Accesses of CTAs at the rim of a picture, which are right for the warps that do them.
//!
//! # The model
//! Where a guard keeps whole rows of threads from what it guards, as the first and the last row of a picture, a group of accesses behind it may be wrong for these alone: they would read the row
//! before the first one. Gangs read for all lanes and store for those that go. So it is enough for them that accesses are right in the warps that may go, and that the host lets read what all
//! others would: what is between the first and the last page of the heap, and [`HEAP_RIM`] bytes before it. Which warps may go the comparisons say that are the same in all lanes of a warp, or of a row of
//! threads, and in all CTAs that the head asks for.

use std::mem::offset_of;

use handloom_ir::simt::{Inst, Op, Pure, Val};
use handloom_ir::types::StateSpace;
use handloom_plan::Plan;
use handloom_plan::abi::{CtaCtx, HEAP_RIM};
use iced_x86::{Code, Register};

use super::lanes::{By, alike, guarded, is_done_if_true};
use super::{ACROSS, DOWN, FRAME_WORDS, Group, Head, reg};
use crate::access::{Access, Limits};
use crate::asm::{Label, Mem};
use crate::emit::*;
use crate::values::Src;

const R8: Register = Register::R8;
const R9: Register = Register::R9;

/// Bytes, at most, behind what an access names that a gang reads with it: the rest of a vector.
const BEHIND: u64 = 64;

impl Head {
    /// Groups all of whose accesses one guard guards, which writes down the lanes that go.
    pub(super) fn find_rims(&mut self, plan: &Plan) {
        let f = &plan.func;
        let mut guards = vec![None; f.blocks.len()];
        for b in 0..f.blocks.len() {
            let is_written = self.guards[b].is_some_and(|g| g.lanes.is_some_and(|t| !t.is_known));
            let blocks = guarded(plan, b).filter(|_| is_written && self.idle[b].is_none()).map(|g| g.0);
            blocks.into_iter().flatten().for_each(|x| guards[x] = Some(b));
        }
        if guards.iter().all(Option::is_none) {
            return;
        }
        let accesses = self.accesses_of_groups(f);
        for g in &mut self.groups {
            let mut by = accesses[&g.key.0].iter().filter(|(_, class)| g.has(class)).map(|(b, _)| guards[*b]);
            let first = by.next().flatten();
            g.rim = first.filter(|_| by.all(|b| b == first) && g.from == g.key.0);
        }
    }

    /// The comparisons that must hold (or must not) in a row of threads for what a block's guard guards, of those that are the same in all CTAs of a row.
    fn comparisons_by_warps<'p>(&self, plan: &'p Plan, b: usize) -> Vec<(&'p Inst, bool)> {
        let Some(guard) = self.guards[b] else { return Vec::new() };
        let insts = &plan.func.blocks[b].insts[guard.from..];
        let rises = |v: &Val| reg(*v).is_some_and(|r| self.row.as_ref().is_some_and(|row| row.step(r) != 0));
        let mut found = Vec::new();
        let mut work = vec![(Val::Reg(guard.cond), is_done_if_true(&plan.func, b))];
        while let Some((v, holds)) = work.pop() {
            let Some(inst) = insts.iter().find(|i| reg(v).is_some_and(|r| i.dst.contains(&r))) else { continue };
            match inst.op {
                Op::Pure(Pure::Not(_)) => work.push((inst.src[0], !holds)),
                Op::Pure(Pure::And(_)) if holds => work.extend(inst.src.iter().map(|v| (*v, true))),
                Op::Pure(Pure::Or(_)) if !holds => work.extend(inst.src.iter().map(|v| (*v, false))),
                Op::Pure(Pure::ICmp(..)) if self.by(plan, inst) == Some(By::Warps) && !inst.src.iter().any(rises) => {
                    found.push((inst, holds));
                }
                _ => {}
            }
        }
        found
    }
}

/// The word of a head for what is found of a rim.
fn word_of_rim(head: &Head, k: u32) -> Mem {
    ctx(FRAME_WORDS + 8 * (head.spare + 18 + k))
}

impl<'p> Emit<'p> {
    /// Where a group of accesses that is not right in all lanes may be so for those that go: the comparisons that say in which warps these are.
    pub(super) fn rim(&self, head: &Head, g: &Group, x: &Access) -> Option<Vec<(&'p Inst, bool)>> {
        let b = g.rim.filter(|_| self.plan.options.gangs && !x.short && matches!(x.limits, Limits::Heap(_)))?;
        let is_of_heap = matches!(x.class.space, StateSpace::Global | StateSpace::Generic);
        let fits = |n: Option<i64>| n.is_none_or(|n| i32::try_from(n).is_ok());
        let are_short = head.linear[g.from.idx()].is_none_or(|l| l.numbers.into_iter().all(fits));
        (is_of_heap && are_short).then(|| head.comparisons_by_warps(self.plan, b)).filter(|all| !all.is_empty())
    }

    /// Goes on where a group of accesses is right in the warps that a guard may let go on, and the others may read what theirs name; to `failed` else. Clobbers all scratch registers.
    pub(super) fn decide_at_rim(
        &mut self,
        head: &Head,
        g: &Group,
        x: &Access,
        comparisons: &[(&Inst, bool)],
        failed: Label,
    ) {
        let v = Val::Reg(g.from);
        let Some(shape) = self.shape(v) else { return };
        let x = Access { cold: failed, ..*x };
        let ranks = head.ranks;
        let hold = |k: u32| word_of_rim(head, k);
        for group in 0..shape.groups() {
            self.warps_that_go(head, comparisons, &|lane| shape.group_of(lane) == group);
            // The first and the last rank.
            for (k, code) in [(0, Code::Bsf_r32_rm32), (1, Code::Bsr_r32_rm32)] {
                self.a.op2(code, ECX, EAX);
                if k == 0 {
                    self.a.jump(Code::Je_rel32_64, failed);
                }
                self.a.imm8(Code::Shr_rm32_imm8, ECX, ranks.across.trailing_zeros());
                self.store64(hold(k), RCX);
            }
            let span = shape.span(group);
            self.lane_value(v, shape.first_lane(group), RAX);
            self.a.op2(Code::Mov_r64_rm64, RCX, RAX);
            for way in [ACROSS, DOWN] {
                let last = ranks.last()[way];
                let number = head.linear[g.from.idx()].map_or(Some(0), |l| l.numbers[way]);
                if last == 0 || number == Some(0) {
                    continue;
                }
                self.step_of(head, v, way, RDX);
                self.a.op2(Code::Movsxd_r64_rm32, RSI, EDX);
                self.a.op2(Code::Cmp_r64_rm64, RSI, RDX);
                self.a.jump(Code::Jne_rel32_64, failed);
                if way == ACROSS {
                    self.a.times(RDX, RSI, last as i32);
                    self.a.number(RSI, 0);
                } else {
                    self.a.op2(Code::Imul_r64_rm64, RDX, hold(0));
                    self.a.op2(Code::Imul_r64_rm64, RSI, hold(1));
                }
                self.a.op2(Code::Mov_r64_rm64, R8, RDX);
                self.a.op2(Code::Cmp_r64_rm64, RSI, RDX);
                self.a.op2(Code::Cmovl_r64_rm64, RDX, RSI);
                self.a.op2(Code::Cmovl_r64_rm64, RSI, R8);
                self.a.op2(Code::Add_r64_rm64, RAX, RDX);
                self.a.op2(Code::Add_r64_rm64, RCX, RSI);
            }
            self.ends_in_row(head, v, RAX, RCX);
            self.add_number(RAX, span.0 + g.begin);
            self.add_number(RCX, span.1 + g.end);
            self.limits(&x);
            self.test(&x, RAX, false);
            self.test(&x, RCX, true);
            // All lanes.
            self.ends(head, v, false, Some(group), failed);
            self.add_number(RAX, g.begin);
            self.add_number(RCX, g.end);
            self.load64(R8, cta(offset_of!(CtaCtx, heap_low)));
            self.load64(R9, cta(offset_of!(CtaCtx, heap_high)));
            self.add_number(R8, -HEAP_RIM.cast_signed());
            self.a.op2(Code::Sub_r64_rm64, R9, R8);
            self.add_number(R9, -(BEHIND.cast_signed() + x.class.bytes()));
            for end in [RAX, RCX] {
                self.a.op2(Code::Sub_r64_rm64, end, R8);
                self.a.op2(Code::Cmp_r64_rm64, end, R9);
                self.a.jump(Code::Jae_rel32_64, failed);
            }
        }
    }

    /// The warps, by bit of `eax`, in which some of the lanes that are named may go where comparisons let them. Uses vectors 0 to 6.
    fn warps_that_go(&mut self, head: &Head, comparisons: &[(&Inst, bool)], is_of: &dyn Fn(usize) -> bool) {
        let all = ((1u32 << self.plan.facts.shape.n_warps()) - 1).cast_signed();
        let [hold, of_one] = [0, 1].map(|k| word_of_rim(head, k));
        self.store_number(hold, all.cast_unsigned());
        for &(inst, holds) in comparisons {
            let Op::Pure(op) = inst.op else { continue };
            let pieces = alike(self.plan, &inst.src);
            let wanted = pieces.iter().filter(|(_, lanes)| (0..32).any(|l| lanes >> l & 1 == 1 && is_of(l)));
            for (k, (lane, _)) in wanted.enumerate() {
                let src: Vec<Src> = (4..).zip(&inst.src).map(|(s, v)| self.by_warps(head, *v, *lane, s)).collect();
                self.mask_part(op, 0, &src, Register::K5);
                self.a.op2(Code::VEX_Kmovd_r32_kr, EAX, Register::K5);
                self.a.end_instruction(0);
                if !holds {
                    self.a.op1(Code::Not_rm32, EAX);
                }
                if k > 0 {
                    self.a.op2(Code::Or_r32_rm32, EAX, of_one);
                }
                self.store32(of_one, EAX);
            }
            self.a.op2(Code::And_r32_rm32, EAX, hold);
            self.store32(hold, EAX);
        }
    }
}
