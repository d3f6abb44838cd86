//! The code of gangs.

use std::mem::offset_of;

use handloom_ir::simt::{Inst, Op, Pure, Reg, Val};
use handloom_ir::types::{StateSpace, Ty};
use handloom_plan::abi::{CtaCtx, WarpCtx};
use handloom_plan::access::{AccessClass, Kind};
use iced_x86::{Code, Register};

use super::far::Far;
use super::way::{End, Exit, Gang};
use super::{GangAccess, Team};
use crate::access::{Access, Folded, Form, Held, Joints, Limits};
use crate::alloc::{FIRST_VECTOR, Place, n_parts};
use crate::asm::{Label, Mem, Rm};
use crate::emit::*;
use crate::flow::Way;
use crate::head::{Apart, Going, Table};
use crate::turns::{Chosen, code as turns, place_of};
use crate::values::{At, Src, is_wide, load_code, store_code};

impl Emit<'_> {
    /// Finds and emits what warps go side by side.
    pub(crate) fn gangs(&mut self) -> Result<(), Refusal> {
        let (ways, teams, strip) = self.find_gangs();
        let step = self.places.ctx_bytes(self.scratch.1).cast_signed();
        for team in &teams {
            let label = self.a.label();
            self.begin_gang(team, &ways, label, step);
            // A way of several turns asks which one it is.
            let goes = |t: &&Team| t.ways.contains(&team.start) && ways[t.first].warps == ways[team.first].warps;
            let is_alone = teams.iter().filter(goes).count() == 1;
            let fixed = team.fixed.filter(|_| is_alone).map(|n| (n, self.a.label()));
            if let Some((n, all)) = fixed {
                self.begin_fixed(n, ways[team.first].warps, all, label, step);
            }
            let chosen = Chosen {
                start: team.start,
                bits: team.bits,
                place: team.place,
                warps: ways[team.first].warps,
                ways: team.ways.clone(),
                label,
                fixed,
            };
            if let Some(turns) = &mut self.turns {
                turns.gangs.push(chosen);
            }
        }
        for way in &ways {
            self.gang(way, &ways, step)?;
        }
        if let Some((strip, unit)) = strip {
            self.strip(&strip, unit, step)?;
        }
        self.has_grown = self.places.ctx_bytes(self.scratch.1).cast_signed() != step;
        Ok(())
    }

    /// The start of a gang's turn.
    fn begin_gang(&mut self, team: &Team, ways: &[Gang], label: Label, step: i32) {
        let first = &ways[team.first];
        self.a.bind(label);
        self.a.comment(format_args!("turns from b{} if the head has set {:#x}", team.start, team.bits));
        for m in 0..first.warps {
            if team.needs_live {
                self.a.shift(m as i32 * step);
                self.store_number(warp(offset_of!(WarpCtx, live)), u32::MAX);
            }
        }
        self.a.shift(0);
        self.a.jump(Code::Jmp_rel32_64, first.label);
    }

    /// The start of the code of a way.
    pub(super) fn begin_way(&mut self, gang: &Gang, step: i32) {
        self.enter_members(gang);
        // Those of the first warp are the current ones; in their stead, those of single warps are kept.
        std::mem::swap(&mut self.places.of, &mut self.members[0]);
        self.in_part = false;
        self.folds.clear();
        self.folded.clear();
        self.alike.clear();
        self.proven.clear();
        self.joints = Joints::default();
        self.slow = None;
        (self.at_hand, self.in_flags) = (None, None);
        self.drop_held();
        self.a.bind(gang.label);
        self.a.comment(format_args!("{gang}"));
        self.member_step = step;
        // A single warp goes so only where the others do nothing, and one gang of all begins with the first.
        self.knows_numbers = gang.warps == 1 || gang.warps == self.plan.facts.shape.n_warps() as usize;
        self.is_by_warp = gang.by_warp;
    }

    fn gang(&mut self, gang: &Gang, ways: &[Gang], step: i32) -> Result<(), Refusal> {
        self.begin_way(gang, step);
        let refused = self.a.label();
        self.test_gang(gang, refused);
        self.keep_constants(gang);
        self.alone.clone_from(&gang.alone);
        self.at_hand_words.clear();
        let far = self.far_of_gang(gang);
        if gang.by_warp {
            for m in 0..gang.warps {
                // What is the same in all warps was read for the first one.
                self.alike.retain(|r| gang.common.has(r.idx()));
                self.insts_of_gang(gang, m..m + 1, far.as_ref())?;
            }
        } else {
            self.insts_of_gang(gang, 0..gang.warps, far.as_ref())?;
        }
        self.end_insts();
        match gang.end {
            End::Place(place) => self.end_gangs_turn(gang, place, step),
            End::Back(from, to) => self.go_on_in_gang(ways, gang, from, to),
            End::Branch(from, cond, then, otherwise) => {
                let no = self.a.label();
                self.jump_unless(cond, from, no);
                self.count_way_of_gang(true, gang.warps);
                self.go_on_in_gang(ways, gang, from, then);
                self.a.bind(no);
                self.count_way_of_gang(false, gang.warps);
                self.go_on_in_gang(ways, gang, from, otherwise);
                self.branch_counter = None;
            }
        }
        self.end_way(gang);
        if !gang.tests.is_empty() {
            self.stop_before(gang, gang.start, refused);
        }
        for (b, label) in gang.stops.iter().copied().chain(gang.exits.iter().flat_map(Exit::stops)) {
            self.stop_before(gang, b, label);
        }
        Ok(())
    }

    /// Behind the instructions of a way nothing is known of registers, and the code is for the first warp.
    pub(super) fn end_insts(&mut self) {
        self.go_to_member(0);
        self.kept.clear();
        self.spreads.clear();
        self.drop_held();
    }

    /// The end of the code of a way.
    pub(super) fn end_way(&mut self, gang: &Gang) {
        self.go_to_member(0);
        std::mem::swap(&mut self.places.of, &mut self.members[0]);
        self.leave_members(gang);
        self.alone.clear();
        (self.knows_numbers, self.is_by_warp) = (false, false);
    }

    /// The places of registers of each warp of a gang where its way begins.
    fn enter_members(&mut self, gang: &Gang) {
        self.members = std::mem::take(&mut self.spare_members);
        while self.members.len() < gang.warps {
            self.members.push(self.places.of.clone());
        }
        for (r, places) in &gang.entered {
            places.iter().zip(&mut self.members).for_each(|(place, of)| of[*r] = *place);
        }
    }

    /// Registers lie again where they do outside of a gang. A function has many ways, each of which moves few of its registers.
    fn leave_members(&mut self, gang: &Gang) {
        let entered = gang.entered.iter().map(|(r, _)| *r);
        for r in entered.chain(gang.moves.iter().map(|(_, r, _)| *r)) {
            self.members.iter_mut().for_each(|of| of[r] = self.places.of[r]);
        }
        self.spare_members = std::mem::take(&mut self.members);
    }

    /// The instructions of a way for some of its warps, each for all of these. What is the same in all warps is done for the first warp.
    pub(super) fn insts_of_gang(
        &mut self,
        gang: &Gang,
        members: std::ops::Range<usize>,
        far: Option<&Far>,
    ) -> Result<(), Refusal> {
        for m in members.clone() {
            self.go_to_member(m);
            gang.entered.iter().for_each(|(r, _)| self.move_register(*r, Way::In));
        }
        if let Some(again) = gang.again {
            self.a.bind(again);
            self.at_hand_words.clear();
        }
        let mut moves = gang.moves.iter().peekable();
        let mut number = 0;
        // Instructions of the next block that have been done.
        let mut done = 0;
        for (k, &(b, n)) in gang.blocks.iter().enumerate() {
            let f = self.f;
            let insts = &gang.insts(f, b)[..n];
            let mut i = std::mem::take(&mut done);
            while i < n {
                let inst = &insts[i];
                number += 1;
                while let Some((_, r, places)) = moves.next_if(|m| m.0 == number) {
                    for m in members.clone() {
                        self.go_to_member(m);
                        self.places.of[*r] = places[m];
                    }
                }
                self.at = (b, i);
                let is_asked = gang.is_asked(b) && i + 1 == n && inst.dst.iter().all(|d| self.is_for_branch(*d));
                let is_one = |d: &Reg| gang.common.has(d.idx()) || gang.alone.iter().any(|k| k.0 == *d);
                let is_common = inst.dst.iter().any(is_one) || is_asked && !inst.dst.is_empty();
                // A warp stores what it has made before the next one makes it: stores in a row behind all loads of a gang take longer.
                let store = self.stored_next(gang, (k, i)).filter(|_| !is_common);
                // What is to be known of their accesses is the same for all warps.
                let mut accesses: [Option<GangAccess>; 2] = [None, None];
                for m in members.clone().filter(|m| !is_common || *m == 0) {
                    self.go_to_member(m);
                    for (k, (b, i)) in [Some((b, i)), store].into_iter().flatten().enumerate() {
                        let inst = &gang.insts(f, b)[i];
                        self.at = (b, i);
                        // A warp of the rank before has read it.
                        if gang.carried(self.at).is_some_and(|c| c.is_there(m)) {
                            continue;
                        }
                        self.scratch.0 = 0;
                        self.going = gang.guarded.get(&b).map(|g| g.going);
                        let live = gang.alive_after(m, (number, number + k), is_common);
                        self.a.begin_instruction(live);
                        let is_access = matches!(inst.op, Op::Load { .. } | Op::Store { .. });
                        if is_access && accesses[k].is_none() && self.fixed_of_gang(inst).is_none() {
                            accesses[k] = self.access_of_gang(inst);
                        }
                        far.iter().for_each(|far| self.fetch_far(far));
                        self.in_gang(gang, inst, accesses[k].as_ref())?;
                        self.going = None;
                        self.a.end_instruction(live);
                    }
                }
                let last = store.unwrap_or((b, i));
                number += usize::from(store.is_some());
                for inst in [inst, &gang.insts(f, last.0)[last.1]] {
                    self.folded.retain(|f| !inst.src.contains(&Val::Reg(f.reg)));
                }
                if members.start == 0 {
                    self.tell_store(&gang.insts(f, last.0)[last.1]);
                }
                if last.0 == b {
                    i = last.1 + 1;
                } else {
                    (i, done) = (n, 1);
                }
            }
            self.leave_by_exit(gang, b, number);
            if gang.end != End::Place(Some(b)) && self.plain_barrier(b).is_some() {
                self.a.imm(Code::Add_rm32_imm32, cta(offset_of!(CtaCtx, epoch)), 1);
            }
        }
        if gang.again.is_none() {
            self.leave_gang(gang, members);
        }
        Ok(())
    }

    /// Values that live on go to their homes.
    fn leave_gang(&mut self, gang: &Gang, members: std::ops::Range<usize>) {
        let last = members.end == gang.warps;
        for m in members {
            self.go_to_member(m);
            gang.leaves.iter().for_each(|r| self.move_register(*r, Way::Out));
        }
        self.write_those_kept_alone(gang);
        if last {
            self.a.end_instruction(0);
        }
    }

    /// The way follows itself: registers get what they are to have at its start.
    fn come_back_in_gang(&mut self, gang: &Gang, again: Label) {
        let (mut moves, mut live) = (Vec::new(), 0);
        for m in 0..gang.warps {
            self.go_to_member(m);
            for (r, places) in &gang.entered {
                let (Place::Vectors(from), Place::Vectors(to)) = (self.places.of[*r], places[m]) else {
                    continue;
                };
                for (from, to) in from.into_iter().zip(to).take(n_parts(self.f.regs[*r])) {
                    live |= 1 << (to - FIRST_VECTOR);
                    if from != to && !moves.contains(&(from, to)) {
                        moves.push((from, to));
                    }
                }
            }
        }
        self.go_to_member(0);
        let mut copy = |from: u8, to: u8| self.a.op2(load_code(Ty::B32), zmm(to), zmm(from));
        while !moves.is_empty() {
            // What nobody waits for is written; of vectors that change places, one steps aside.
            match moves.iter().position(|(_, to)| moves.iter().all(|(from, _)| from != to)) {
                Some(k) => {
                    let (from, to) = moves.swap_remove(k);
                    copy(from, to);
                }
                None => {
                    let aside = moves[0].0;
                    copy(aside, 0);
                    moves.iter_mut().filter(|m| m.0 == aside).for_each(|m| m.0 = 0);
                }
            }
        }
        self.a.end_instruction(live);
        self.a.jump(Code::Jmp_rel32_64, again);
    }

    /// A gang goes from a block to the way of another one.
    fn go_on_in_gang(&mut self, ways: &[Gang], gang: &Gang, from: usize, to: usize) {
        if to <= from {
            self.stop_check(to);
        }
        match gang.again {
            Some(again) if to == gang.start => return self.come_back_in_gang(gang, again),
            Some(_) => self.leave_gang(gang, 0..gang.warps),
            None => {}
        }
        let way = ways.iter().find(|w| w.start == to && w.warps == gang.warps && !w.is_first).map(|w| w.label);
        let stop = gang.stops.iter().find(|(b, _)| *b == to).map(|(_, label)| *label);
        if let Some(label) = stop.or(way) {
            self.a.jump(Code::Jmp_rel32_64, label);
        }
    }

    /// What follows is for one warp of the gang.
    pub(super) fn go_to_member(&mut self, m: usize) {
        if m != self.member {
            std::mem::swap(&mut self.places.of, &mut self.members[self.member]);
            std::mem::swap(&mut self.places.of, &mut self.members[m]);
            self.member = m;
            self.a.shift(m as i32 * self.member_step);
        }
    }

    fn in_gang(&mut self, gang: &Gang, inst: &Inst, access: Option<&GangAccess>) -> Result<(), Refusal> {
        if self.head.as_ref().is_some_and(|h| h.has(inst)) || gang.is_done_later(self.at) {
            return Ok(());
        }
        if self.head.as_ref().is_some_and(|h| h.is_linear(inst)) {
            self.linear_words(inst);
            return Ok(());
        }
        if let Op::Count(count) = inst.op {
            if self.member == 0 {
                self.count_in_gang(count, self.at.0, gang.warps);
            }
            return Ok(());
        }
        if let (Some(table), Some(d)) = (self.table_of_merging(gang, inst), inst.dst.first()) {
            let lanes = self.word_of_lanes(table);
            self.set_masks_of(lanes, self.f.regs[d.idx()]);
            self.in_part = true;
        }
        let done = self.inst_in_gang(gang, inst, access);
        self.in_part = false;
        self.drop_addresses(&inst.dst);
        done
    }

    fn inst_in_gang(&mut self, gang: &Gang, inst: &Inst, access: Option<&GangAccess>) -> Result<(), Refusal> {
        let (b, i) = self.at;
        if matches!(inst.op, Op::Load { .. } | Op::Store { .. }) {
            if let Some((at, _)) = self.fixed_of_gang(inst) {
                self.fixed_in_gang(inst, at);
                return Ok(());
            }
            let Some(g) = access else {
                return Err(Refusal { what: "a bug: an access of a gang".to_owned(), span: inst.span });
            };
            if let Some(passed) = gang.passed((b, i)) {
                return self.load_passed(gang, inst, g, passed);
            }
            if let Some(shifted) = gang.shifted((b, i)) {
                self.load_shifted(inst, g, shifted);
                return Ok(());
            }
            if !gang.folds.contains_key(&(b, i)) {
                self.tested_for(inst, g);
                if matches!(inst.op, Op::Load { .. }) && !g.scalars {
                    self.fetch_next(g);
                }
                return Ok(());
            }
            if g.form == Form::Row && self.fetches_for_row(&g.x, &g.runs) {
                let (m, _) = self.part_of_run(&g.x, &g.runs, g.form, 0);
                self.fetch_for_row(&g.x, &g.runs, m);
            }
            if self.member == 0 || gang.by_warp {
                self.folded.push(Folded { reg: inst.dst[0], x: g.x, runs: g.runs.clone(), form: g.form });
            }
            return Ok(());
        }
        self.operands.clear();
        for f in std::mem::take(&mut self.folded) {
            if inst.src.contains(&Val::Reg(f.reg)) {
                let operand = self.operand_of(&f);
                self.operands.push(operand);
            }
            self.folded.push(f);
        }
        self.inst(b, inst)?;
        self.operands.clear();
        Ok(())
    }

    /// An access of all lanes to one place of shared memory, which is a constant.
    fn fixed_in_gang(&mut self, inst: &Inst, at: i32) {
        let Some(class) = AccessClass::of(inst) else { return };
        let (x, ..) = self.kind_of_access(inst, class, Limits::Safe, LANES);
        self.load64(Register::R10, cta(offset_of!(CtaCtx, shared_base)));
        let m = Mem::at(Register::R10, at);
        if class.kind == Kind::Load {
            for (e, d) in (0..).zip(&inst.dst) {
                for q in self.parts_in_use(x.ty) {
                    self.spread_part(*d, q, m.behind(e * x.size()), &x);
                }
            }
            return;
        }
        match self.going {
            Some(Going::Known(1)) => self.store_first(inst, &x, m),
            Some(Going::Written(table)) => self.store_last_written(inst, &x, 1, table, |_, _| m),
            Some(Going::Known(_)) | None => self.store_one(inst, &x, m),
        }
    }

    /// An access that is right in all lanes, for those that do it.
    fn tested_for(&mut self, inst: &Inst, g: &GangAccess) {
        if let Some(guard) = inst.guard() {
            self.store_if(inst, g, guard);
            return;
        }
        let (Some(Going::Written(table)), Op::Store { .. }) = (self.going, inst.op) else {
            self.tested(inst, &g.x, &g.runs, g.scalars, g.form);
            return;
        };
        if g.form == Form::Row && g.x.class.bits >= 32 {
            self.store_where_written(inst, g, table);
            return;
        }
        if matches!(g.form, Form::Same | Form::Bands) {
            let n = if g.form == Form::Same { 1 } else { n_parts(g.x.ty) };
            self.store_last_written(inst, &g.x, n, table, |e, q| e.run_element(&g.x, &g.runs, 32 / n * q));
            return;
        }
        // A store under a mask without lanes is slow where nobody has touched memory.
        let (before, skip) = (self.held(), self.a.label());
        let lanes = self.word_of_lanes(table);
        self.a.imm(Code::Cmp_rm32_imm8, lanes, 0);
        self.a.jump(Code::Je_rel32_64, skip);
        // Halves of parts are eight lanes, as parts of 64 bits are.
        self.set_masks_of(lanes, if g.form == Form::Halves { Ty::B64 } else { g.x.ty });
        self.in_part = true;
        self.tested(inst, &g.x, &g.runs, g.scalars, g.form);
        self.in_part = false;
        self.a.bind(skip);
        self.hold_only(&before);
    }

    /// A store under a predicate, for those of the lanes that do it where it holds.
    fn store_if(&mut self, inst: &Inst, g: &GangAccess, guard: Val) {
        let (before, skip) = (self.held(), self.a.label());
        let guard = self.src(guard);
        self.bits(&guard);
        match self.going.take() {
            Some(Going::Written(table)) => {
                self.a.op2(Code::Mov_r32_rm32, ECX, EAX);
                let lanes = self.word_of_lanes(table);
                self.a.op2(Code::And_r32_rm32, ECX, lanes);
                self.a.op2(Code::Mov_r32_rm32, EAX, ECX);
            }
            Some(Going::Known(lanes)) => self.a.imm(Code::And_rm32_imm32, EAX, lanes.cast_signed()),
            None => {}
        }
        self.a.op2(Code::Test_rm32_r32, EAX, EAX);
        self.a.jump(Code::Je_rel32_64, skip);
        self.set_masks_from(EAX);
        self.in_part = true;
        self.tested(inst, &g.x, &g.runs, g.scalars, g.form);
        self.in_part = false;
        self.a.bind(skip);
        self.hold_only(&before);
    }

    /// A store of all lanes to one place, or of those of each of `n` parts to one, for the lanes that the head wrote down: what the last of them has is written. `at` says
    /// where, by part.
    fn store_last_written(
        &mut self,
        inst: &Inst,
        x: &Access,
        n: usize,
        table: Table,
        mut at: impl FnMut(&mut Self, usize) -> Mem,
    ) {
        let sources: Vec<Src> = inst.operands()[1..].iter().map(|v| self.clean_src(*v)).collect();
        let rows: Vec<u32> = sources.iter().map(|_| self.take_scratch(256)).collect();
        for (s, row) in sources.iter().zip(&rows) {
            self.put_row(s, *row);
        }
        let bytes = if is_wide(x.ty) { 8 } else { 4 };
        for q in 0..n {
            let m = at(self, q);
            let skip = self.a.label();
            let lanes = self.word_of_lanes(table);
            self.load32(Register::EDX, lanes);
            if n > 1 {
                let of_part = (u32::MAX >> (32 - 32 / n)) << (32 / n * q);
                self.a.imm(Code::And_rm32_imm32, Register::EDX, of_part.cast_signed());
            }
            self.a.op2(Code::Bsr_r32_rm32, Register::EDX, Register::EDX);
            self.a.jump(Code::Je_rel32_64, skip);
            for (e, row) in (0..).zip(&rows) {
                let from = Mem::indexed(WARP, RDX, bytes, row.cast_signed());
                if is_wide(x.ty) {
                    self.load64(RAX, from);
                } else {
                    self.load32(EAX, from);
                }
                self.store_element(x, m.behind(e * x.size()), RAX);
            }
            self.a.bind(skip);
        }
    }

    /// A store of a row for the lanes that the head wrote down: without a mask where these are all, since masked stores are slow on some hosts with AVX2 alone, and not at all
    /// where there are none: an address that nobody uses may lie in memory that nobody has touched, where a store without lanes takes hundreds of cycles.
    fn store_where_written(&mut self, inst: &Inst, g: &GangAccess, table: Table) {
        let s = self.clean_src(inst.src[1]);
        let (m, _) = self.part_of_run(&g.x, &g.runs, Form::Row, 0);
        let rows: Vec<Register> = (0..4).take(n_parts(g.x.ty)).map(|q| self.reg(&s, q.into(), 4 + q)).collect();
        let lanes = self.word_of_lanes(table);
        if !self.a.has_wide_vectors() {
            self.a.store_row(m, &rows, lanes, is_wide(g.x.ty));
            return;
        }
        let code = store_code(g.x.ty);
        let [some, done] = std::array::from_fn(|_| self.a.label());
        self.a.imm(Code::Cmp_rm32_imm8, lanes, -1);
        self.a.jump(Code::Jne_rel32_64, some);
        for (q, r) in (0..).zip(&rows) {
            self.a.store(code, m.behind(64 * q), *r, ALL);
        }
        self.a.jump(Code::Jmp_rel32_64, done);
        self.a.bind(some);
        self.a.imm(Code::Cmp_rm32_imm8, lanes, 0);
        self.a.jump(Code::Je_rel32_64, done);
        self.set_masks_of(lanes, g.x.ty);
        self.in_part = true;
        for (q, r) in rows.iter().enumerate() {
            let mask = self.mask(g.x.ty, q);
            self.a.store(code, m.behind(64 * q as i32), *r, mask);
        }
        self.in_part = false;
        self.a.bind(done);
    }

    /// Asks for what the next turn will read through a pointer that goes up in the loop.
    pub(super) fn fetch_next(&mut self, g: &GangAccess) {
        let Some(step) = self.step_of_pointer(g.runs.address) else { return };
        let lines = self.lines_of_run(&g.x, &g.runs, g.form);
        for m in lines {
            match (step, self.src(step).at) {
                (Val::Imm(by, _), _) => match i32::try_from(by.cast_signed()) {
                    Ok(by) if by.unsigned_abs() < 1 << 20 => self.a.op1(Code::Prefetcht0_m8, m.behind(by)),
                    _ => return,
                },
                (_, At::Words(_, at)) => {
                    let step = self.word_at_hand(at);
                    self.a.op1(Code::Prefetcht0_m8, m.plus(step));
                }
                _ => return,
            }
        }
    }

    /// What is added to an address, if there is one instruction that changes it so, by the same in all warps.
    fn step_of_pointer(&self, address: Reg) -> Option<Val> {
        let insts = self.f.blocks.iter().flat_map(|b| &b.insts);
        let mut steps = insts.filter(|i| {
            matches!(i.op, Op::Pure(Pure::Add(Ty::B64))) && i.dst[..] == [address] && i.src[0] == Val::Reg(address)
        });
        let step = steps.next()?.src[1];
        let is_same = match step {
            Val::Imm(..) => true,
            Val::Reg(r) => self.head.as_ref().is_some_and(|h| h.same[r.idx()].is_some()),
        };
        (steps.next().is_none() && is_same).then_some(step)
    }

    /// Whose address a register is to hold for an element of the warp, and bytes from that one's element.
    pub(crate) fn member_of_run(&self, address: Reg) -> (usize, i32) {
        let Some(head) = self.head.as_ref().filter(|_| self.member > 0) else { return (self.member, 0) };
        let of = self.distance_of(address);
        let constant = |from: usize| {
            head.apart(of, from, self.member).filter(|by| by.words == [None; 2]).map(|by| (from, by.number))
        };
        head.neighbours(self.member).into_iter().find_map(constant).unwrap_or((self.member, 0))
    }

    /// From which address of those that registers hold another one is made by adding a word of the head: that of the warp beside or before.
    pub(crate) fn one_step_before(&mut self, h: &Held) -> Option<(Held, u32)> {
        if h.of == 0 || self.f.regs[h.address.idx()] != Ty::B64 {
            return None;
        }
        let (of, held) = (self.distance_of(h.address), self.held());
        let head = self.head.as_mut()?;
        let one_step = |x: &Held| match head.apart(of, x.of, h.of)? {
            Apart { number: 0, words: [Some((at, 1)), None] | [None, Some((at, 1))] } => Some((*x, at)),
            _ => None,
        };
        let before = |x: &&Held| Held { at: h.at, of: h.of, ..**x } == *h && x.of < h.of;
        let (from, at) = held.iter().filter(before).find_map(one_step)?;
        Some((from, head.word_of_step(self.plan, of, at)))
    }

    /// Makes an address from another one, by a word of the head.
    pub(crate) fn step_address(&mut self, h: &Held, (from, step): (Held, u32)) {
        if h.at == from.at {
            let by = if self.has_at_hand(step) { self.word_at_hand(step).into() } else { Rm::Mem(ctx(step)) };
            self.a.op2(Code::Add_r64_rm64, h.at, by);
        } else {
            let step = self.word_at_hand(step);
            self.a.op2(Code::Lea_r64_m, h.at, Mem::indexed(from.at, step, 1, 0));
        }
        self.a.forget_written(h.at);
    }

    /// The start of a turn whose warps all go by gangs.
    fn begin_fixed(&mut self, n: usize, by: usize, all: Label, label: Label, step: i32) {
        self.a.bind(all);
        self.load64(WARP, cta(offset_of!(CtaCtx, first)));
        if n > by {
            self.a.op2(Code::Lea_r64_m, RAX, Mem::at(WARP, step * n as i32));
            self.store64(turns::gang_limit(), RAX);
        }
        self.a.jump(Code::Jmp_rel32_64, label);
    }

    /// The end of a gang's way in such a turn: nothing of where the warps are has been written, and nothing need be.
    fn end_fixed(&mut self, t: &Chosen, (n, all): (usize, Label), place: Option<usize>, step: i32) {
        if n > t.warps {
            self.a.imm(Code::Add_rm64_imm32, WARP, step * t.warps as i32);
            self.a.op2(Code::Cmp_r64_rm64, WARP, turns::gang_limit());
            self.a.jump(Code::Jb_rel32_64, t.label);
        }
        if t.start == 0 && place.is_none() && !self.has_shared_memory() {
            self.go_on_in_batch(all, t.bits);
        }
        let Some(turns) = &self.turns else { return };
        let Some(next) = place.and_then(|b| self.plain_barrier(b)) else {
            let after = turns.after(place);
            self.a.jump(Code::Jmp_rel32_64, after);
            return;
        };
        let begin = turns.start(next).map(|s| s.0);
        // What the head has set stays set.
        let follows = turns.gangs.iter().find(|x| x.start == next && x.bits & !t.bits == 0);
        let Some(to) = follows.and_then(|x| x.fixed).map(|f| f.1).or(begin) else { return };
        self.a.imm(Code::Add_rm32_imm32, cta(offset_of!(CtaCtx, epoch)), 1);
        self.a.jump(Code::Jmp_rel32_64, to);
    }

    /// Whether the function names shared memory.
    pub(super) fn has_shared_memory(&self) -> bool {
        let insts = self.f.blocks.iter().flat_map(|b| &b.insts);
        insts.into_iter().any(|i| {
            let is_shared = |s: StateSpace| matches!(s, StateSpace::Shared | StateSpace::SharedCluster);
            matches!(i.op, Op::SharedAddr(_)) || AccessClass::of(i).is_some_and(|c| is_shared(c.space))
        })
    }

    /// At the start of a turn that gangs alone may go: they go, if all that they rest on holds.
    pub(crate) fn choose_fixed(&mut self, start: usize) {
        let Some(turns) = &self.turns else { return };
        let Some((chosen, all)) =
            turns.gangs.iter().find(|t| t.start == start).and_then(|t| Some((t.bits, t.fixed?.1)))
        else {
            return;
        };
        if chosen != 0 {
            self.test_decided(chosen);
            self.a.jump(Code::Je_rel32_64, all);
        } else {
            self.a.jump(Code::Jmp_rel32_64, all);
        }
    }

    /// The end of a gang's turn: the next gang, or warps one after the other, or what follows the turn.
    fn end_gangs_turn(&mut self, gang: &Gang, place: Option<usize>, step: i32) {
        let Some(turns) = &self.turns else { return };
        let of_turn = |t: &&Chosen| t.warps == gang.warps && t.ways.contains(&gang.start);
        let (starts, after) = (turns.gangs.iter().filter(of_turn).cloned().collect::<Vec<_>>(), turns.after(place));
        if let [t] = &starts[..]
            && let Some(fixed) = t.fixed
        {
            self.end_fixed(t, fixed, place, step);
            return;
        }
        let nexts: Vec<_> = starts.iter().filter_map(|t| turns.start(t.start)).collect();
        // Of turns that may end elsewhere too, it is only known here.
        if starts.iter().any(|t| t.place.is_none()) {
            self.store_number(turns::place(), place_of(place));
            self.a.op2(Code::Lea_r64_m, RAX, Mem::label(after));
            self.store64(turns::after(), RAX);
        }
        self.a.imm(Code::Add_rm64_imm32, WARP, step * gang.warps as i32);
        let rest = self.a.label();
        self.a.op2(Code::Cmp_r64_rm64, WARP, turns::gang_limit());
        self.a.jump(Code::Jae_rel32_64, rest);
        match &starts[..] {
            [t] => self.a.jump(Code::Jmp_rel32_64, t.label),
            _ => self.a.op1(Code::Jmp_rm64, turns::gang_next()),
        }
        self.a.bind(rest);
        self.a.op2(Code::Cmp_r64_rm64, WARP, turns::limit());
        self.a.jump(Code::Jae_rel32_64, after);
        match nexts[..] {
            [(_, next)] => self.a.jump(Code::Jmp_rel32_64, next),
            _ => self.a.op1(Code::Jmp_rm64, turns::next()),
        }
    }

    /// At the start of a turn: the way of a gang, if all that it rests on holds and there are enough warps.
    pub(crate) fn choose_gang(&mut self, start: usize, step: i32) {
        let Some(turns) = &self.turns else { return };
        let Some(chosen) = turns.gangs.iter().find(|t| t.start == start && t.fixed.is_none()).cloned() else { return };
        let Some((_, next)) = turns.start(start) else { return };
        let place = chosen.place.map(|place| (place_of(place), turns.after(place)));
        let (bits, warps) = (chosen.bits.cast_signed(), chosen.warps as i32);
        if bits != 0 {
            self.a.op2(Code::Mov_r32_rm32, EAX, crate::head::DECIDED);
            self.a.imm(Code::And_rm32_imm32, EAX, bits);
            self.a.imm(Code::Cmp_rm32_imm32, EAX, bits);
            self.a.jump(Code::Jne_rel32_64, next);
        }
        self.load64(RAX, turns::limit());
        self.a.imm(Code::Sub_rm64_imm32, RAX, step * (warps - 1));
        self.store64(turns::gang_limit(), RAX);
        self.a.op2(Code::Cmp_r64_rm64, WARP, RAX);
        self.a.jump(Code::Jae_rel32_64, next);
        if let Some((place, after)) = place {
            self.store_number(turns::place(), place);
            self.a.op2(Code::Lea_r64_m, RAX, Mem::label(after));
            self.store64(turns::after(), RAX);
        }
        self.a.op2(Code::Lea_r64_m, RAX, Mem::label(chosen.label));
        self.store64(turns::gang_next(), RAX);
        self.a.jump(Code::Jmp_rel32_64, chosen.label);
    }
}
