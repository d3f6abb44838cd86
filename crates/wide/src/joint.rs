//! One test of bounds for accesses of a block through one address register, where all lanes execute the block.
//!
//! It stands before the first of them and covers the lowest to the highest byte of all lanes; nothing is left of the tests of each. Where it does not pass, the
//! block goes on in a *slow* piece of code, emitted after all blocks, in which the routine does each of these accesses, so that a report is the same and
//! caches of sites are filled. After the last of them it comes back.
//!
//! # Folded loads
//! A load that such a test covers, whose value one arithmetic instruction alone wants, is an operand in memory of that instruction, if between the two nothing is written, no
//! test may refuse, and the address stays.

use handloom_diag::hash::{FastMap, FastSet};
use handloom_ir::simt::{Inst, Op, Reg, Val};
use handloom_ir::types::{Order, StateSpace, Ty};
use handloom_plan::access::{AccessClass, Kind};
use handloom_plan::analysis::classes::Class;
use handloom_plan::analysis::shape::Shape;
use iced_x86::Code;

use crate::access::{Access, Elsewhere, Folded, Joints, Member, Runs, Slow, is_of_elements};
use crate::alloc::{MOST_APART, Place, n_parts};
use crate::asm::{Label, Mem};
use crate::bands::is_banded;
use crate::emit::*;
use crate::table::{arithmetic, simple};

/// What accesses that are tested together have in common: the address, the space, what they do, and their bytes.
type Key = (Reg, StateSpace, Kind, i64);

impl Emit<'_> {
    /// Finds the accesses of a block that are tested together.
    pub(crate) fn joints(&self, insts: &[Inst]) -> Joints {
        let mut groups: Vec<(Key, Vec<(usize, i64)>)> = Vec::new();
        // By address: the groups that more may belong to.
        let mut open: FastMap<Reg, Vec<usize>> = FastMap::default();
        for (i, inst) in insts.iter().enumerate() {
            if let Some((key, offset)) = self.joinable(inst) {
                let of_address = open.entry(key.0).or_default();
                match of_address.iter().find(|g| groups[**g].0 == key) {
                    Some(g) => groups[*g].1.push((i, offset)),
                    None => {
                        of_address.push(groups.len());
                        groups.push((key, vec![(i, offset)]));
                    }
                }
            }
            // Another value of the address is another address, and what a built-in function frees is not to be reached.
            if matches!(inst.op, Op::Builtin(_)) {
                open.clear();
            }
            inst.dst.iter().for_each(|d| _ = open.remove(d));
        }
        let mut joints = Joints::default();
        for list in groups.into_iter().map(|(_, list)| list).filter(|list| list.len() > 1) {
            let first = list[0].0;
            let low = list.iter().map(|a| a.1).min().unwrap_or(0);
            let high = list.iter().map(|a| a.1).max().unwrap_or(0);
            for (i, _) in list {
                joints.insert(i, Member { first, test: (i == first).then_some((low, high)) });
            }
        }
        joints
    }

    /// What tells accesses apart that may be tested together, and the offset of one.
    fn joinable(&self, inst: &Inst) -> Option<(Key, i64)> {
        use StateSpace::{Generic, Global, Shared};
        let class = AccessClass::of(inst)?;
        let Val::Reg(r) = class.address else { return None };
        let shape = self.shape(class.address)?;
        let bytes = class.bytes();
        let fits = is_of_elements(&class)
            && matches!(class.space, Global | Generic | Shared)
            && !class.is_guarded
            && shape.is_regular(bytes);
        fits.then_some(((r, class.space, class.kind, bytes), class.offset))
    }

    /// What a block that all lanes execute has in common tests.
    pub(crate) fn begin_joints(&mut self, b: usize) {
        self.folds.clear();
        self.folded.clear();
        self.alike.clear();
        self.proven.clear();
        self.slow = None;
        self.joints = if self.in_part { Joints::default() } else { self.joints(&self.f.blocks[b].insts) };
        let Some(last) = self.joints.keys().max().copied() else { return };
        self.find_folds(b);
        let until = self.folds.values().copied().fold(last, usize::max) + 1;
        let joints = self.joints.clone();
        let back = self.a.label();
        self.slow = Some(Slow { block: b, joints, entries: Vec::new(), alike: Vec::new(), until, back });
    }

    /// Before an instruction of a block, or behind its last: where the slow piece of it comes back.
    pub(crate) fn rejoin(&mut self, i: usize) {
        let Some(mut slow) = self.slow.take_if(|s| s.until == i) else { return };
        if !slow.entries.is_empty() {
            slow.alike.clone_from(&self.alike);
            self.drop_held();
            self.a.bind(slow.back);
            self.slow_pieces.push(slow);
        }
    }

    /// Finds loads that may be done where they are read.
    fn find_folds(&mut self, b: usize) {
        let insts = &self.f.blocks[b].insts;
        let mut readers: FastSet<usize> = FastSet::default();
        for (i, load) in insts.iter().enumerate() {
            let Some(class) = AccessClass::of(load).filter(|c| c.kind == Kind::Load && self.joints.contains_key(&i))
            else {
                continue;
            };
            // One vector will do for parts that lie at one place.
            let Some(ty) = load.dst.first().map(|d| self.f.regs[d.idx()]) else { continue };
            let places = |s: Shape, q: usize| (s.group_of(32 / n_parts(ty) * q), s.delta(32 / n_parts(ty) * q));
            let is_repeated = |s: Shape| !is_banded(&s, ty) && places(s, 0) == places(s, 1);
            if self.shape(class.address).is_none_or(is_repeated) {
                continue;
            }
            let may_refuse = |j: usize| self.joints.get(&j).is_some_and(|m| m.test.is_some());
            if let Some(j) = self.reader_of(insts, i, &may_refuse, &|j| readers.contains(&j)) {
                self.folds.insert(i, j);
                readers.insert(j);
            }
        }
    }

    /// The one instruction that reads what a load makes, if it may read it from memory. `may_refuse`: instructions with tests; `is_taken`: those that read something else so.
    pub(crate) fn reader_of(
        &self,
        insts: &[Inst],
        i: usize,
        may_refuse: &dyn Fn(usize) -> bool,
        is_taken: &dyn Fn(usize) -> bool,
    ) -> Option<usize> {
        let class = AccessClass::of(&insts[i])?;
        let ([d], Val::Reg(address)) = (insts[i].dst.as_slice(), class.address) else { return None };
        let ty = self.f.regs[d.idx()];
        let fits = self.plan.def_count[d.idx()] == 1
            && self.shape(class.address).is_none_or(|s| {
                !self.lies_apart(&class, &s, ty)
                    && !self.lies_by_halves(&class, &s, ty)
                    && !self.lies_by_half_bands(&class, &s, ty)
            })
            && self.uses.count(*d) == 1
            && matches!(self.place(*d), Place::Vectors(_))
            && !self.places.is_own[d.idx()]
            && !self.plan.may_hold_odd_nan[d.idx()]
            && u32::from(class.bits) == ty.bits()
            && matches!(ty, Ty::B32 | Ty::B64);
        if !fits {
            return None;
        }
        for (j, inst) in insts.iter().enumerate().skip(i + 1).take(MOST_APART) {
            let is_quiet = match inst.op {
                Op::Pure(_) => true,
                Op::Load { .. } => !inst.guarded && AccessClass::of(inst).is_some_and(|c| c.order == Order::Weak),
                _ => false,
            };
            if !is_quiet || may_refuse(j) {
                return None;
            }
            if inst.src.contains(&Val::Reg(*d)) {
                return (self.reads_memory(inst, ty) && !is_taken(j)).then_some(j);
            }
            if inst.dst.contains(&address) {
                return None;
            }
        }
        None
    }

    /// Whether an instruction takes any source of a type from memory, and writes nothing before it has read.
    fn reads_memory(&self, inst: &Inst, ty: Ty) -> bool {
        let Op::Pure(op) = inst.op else { return false };
        let is_vector = |d: &Reg| self.plan.facts.class[d.idx()] == Class::Varying && self.f.regs[d.idx()] == ty;
        (arithmetic(op).is_some() || simple(op).is_some()) && inst.dst.len() == 1 && inst.dst.iter().all(is_vector)
    }

    /// Makes operands of the folded loads that an instruction reads.
    pub(crate) fn unfold(&mut self, inst: &Inst) {
        self.operands.clear();
        for v in &inst.src {
            let Some(k) = self.folded.iter().position(|f| Val::Reg(f.reg) == *v) else { continue };
            let f = self.folded.swap_remove(k);
            let operand = self.operand_of(&f);
            self.operands.push(operand);
        }
    }

    /// A folded load as an operand, part by part.
    pub(crate) fn operand_of(&mut self, f: &Folded) -> (Reg, Vec<Mem>) {
        let n = n_parts(f.x.ty);
        let parts: Vec<(Mem, bool)> = (0..n).map(|q| self.part_of_run(&f.x, &f.runs, f.form, q)).collect();
        (f.reg, parts.iter().map(|(m, spread)| if *spread { m.spread() } else { *m }).collect())
    }

    /// The joint test of the first of several accesses, which is then proven. Clobbers what tests do, and `rax`.
    pub(crate) fn prove(&mut self, x: &Access, runs: Option<&Runs>, low: i64, high: i64, site: Option<usize>) {
        let refused = self.a.label();
        let at = self.at;
        self.proven.extend(self.joints.get(&at.1).map(|m| m.first));
        if let Some(slow) = &mut self.slow {
            slow.entries.push((at.1, refused, site));
        }
        let Some(bit) = x.decided else {
            self.joint_test(x, low, high, refused);
            return;
        };
        let (start, back) = (self.a.label(), self.a.label());
        self.a.imm(Code::Test_rm32_imm32, crate::head::DECIDED, bit.cast_signed());
        self.a.jump(Code::Je_rel32_64, start);
        self.a.bind(back);
        let held = self.held();
        let runs = runs.map_or_else(Vec::new, |r| r.list.clone());
        let joint = Some((low, high, refused));
        self.elsewhere.push(Elsewhere { start, back, x: *x, runs, joint, held, in_part: self.in_part, at });
    }

    /// The slow pieces, after all blocks.
    pub(crate) fn slow_code(&mut self) -> Result<(), Refusal> {
        for slow in std::mem::take(&mut self.slow_pieces) {
            let (b, until, back) = (slow.block, slow.until, slow.back);
            let first = slow.entries.iter().map(|e| e.0).min().unwrap_or(until);
            let mut entries: FastMap<usize, (Label, Option<usize>)> = FastMap::default();
            for (i, label, site) in &slow.entries {
                entries.entry(*i).or_insert((*label, *site));
            }
            self.in_part = false;
            self.folds.clear();
            self.folded.clear();
            self.joints = Joints::default();
            self.alike = slow.alike;
            // The words were made at the start of the block.
            self.find_shared(b);
            self.drop_held();
            for i in first..until {
                let inst = &self.f.blocks[b].insts[i];
                self.at = (b, i);
                self.scratch.0 = 0;
                let entry = entries.get(&i);
                if let Some((label, _)) = entry {
                    self.drop_held();
                    self.a.bind(*label);
                }
                if slow.joints.contains_key(&i) {
                    self.drop_held();
                    self.a.of(inst.span);
                    self.memory_routine(inst, LANES, entry.and_then(|e| e.1));
                    self.end_instruction();
                } else {
                    self.instruction(b, inst)?;
                }
            }
            self.a.jump(Code::Jmp_rel32_64, back);
        }
        Ok(())
    }

    /// The start of an access's own tests: a way around them. The label is to be bound after them.
    pub(crate) fn around_tests(&mut self, x: &Access) -> Option<Label> {
        let bit = x.decided?;
        let skip = self.a.label();
        self.a.imm(Code::Test_rm32_imm32, crate::head::DECIDED, bit.cast_signed());
        self.a.jump(Code::Jne_rel32_64, skip);
        Some(skip)
    }

    /// The end of an access's own tests.
    pub(crate) fn after_tests(&mut self, skip: Option<Label>) {
        if let Some(skip) = skip {
            self.a.bind(skip);
        }
    }

    /// Tests all bytes between two offsets of an access, of all lanes. Addresses of 32 bits do not wrap.
    pub(crate) fn joint_test(&mut self, x: &Access, low: i64, high: i64, refused: Label) {
        let Some(shape) = self.shape(x.class.address) else { return };
        let own = Access { cold: refused, ..*x };
        let mut known = None;
        for g in 0..shape.groups() {
            let (first, last) = shape.span(g);
            let reach = last - first + high - low;
            if known.replace(reach) != Some(reach) {
                self.limits_of_run(&own, reach);
            }
            self.lowest_of_group(&own, &shape, g, low);
            self.test_start(&own, RAX);
        }
    }

    /// So many bytes behind the lowest address of a group of lanes, in `rax`.
    pub(crate) fn lowest_of_group(&mut self, x: &Access, shape: &Shape, g: usize, low: i64) {
        let lane = shape.first_lane(g);
        self.lane_value(x.class.address, lane, RAX);
        self.add_number(RAX, shape.span(g).0 - shape.delta(lane) + low);
    }
}
