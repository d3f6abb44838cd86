//! Rows of CTAs that go warp by warp, in *strips*.
//!
//! # The model
//! The warps of a CTA of a picture lie below each other, and the CTAs of a row of the grid beside each other. Where nobody waits and nothing is shared, the order is free, and a host reads and
//! writes memory fastest along its rows: above all where rows are a power of two apart, so that those of a CTA have the same places in the first cache, and loads seem to read what stores above
//! them write. So where the head has decided about a row of CTAs, and all lanes go, a rank of warps goes through all of these CTAs before the next rank begins.
//!
//! Memory itself is read faster in many rows at once: where a row of a CTA is two lines or more, strips are for what the last cache holds, or half of it.
//!
//! Addresses are those of the first CTA; how far the others are behind it is an index, the same for all of them but for a scale. What general registers have no room for is read from words of
//! the head, where a rank puts it when it begins.

use std::mem::offset_of;

use handloom_ir::simt::{Inst, Op, Reg, Val};
use handloom_plan::abi::CtaCtx;
use handloom_plan::access::{AccessClass, Kind};
use iced_x86::{Code, Register};

use super::way::{End, Gang, InStrip};
use super::{GangAccess, Search};
use crate::access::{Form, Held};
use crate::asked::reg;
use crate::asm::Mem;
use crate::emit::*;
use crate::head::MOST_OF_STRIP;
use crate::turns::Strip;

/// Warps of a CTA, at most: there is a loop for each rank of them.
const MOST_WARPS: usize = 32;
/// Most instructions times warps.
const LONG: usize = 1300;

/// Bytes of a line of memory.
const LINE: u32 = 64;

/// How far the CTA is behind the first one: code of gangs has no other use for it.
const BEHIND: Register = Register::R15;

impl Emit<'_> {
    /// The way of all warps of a CTA, if rows of CTAs may go it in strips, and how far accesses are behind those of the CTA before, but for their scales.
    pub(super) fn find_strip(&mut self, search: &Search) -> Option<(Gang, i32)> {
        let n_warps = self.plan.facts.shape.n_warps() as usize;
        let across = self.head.as_ref().filter(|h| h.word_of_strips().is_some()).map(|h| h.warps_of_rank())?;
        // Where a rank is a part of a line of threads, the next rank goes on where it ends.
        let is_of_lines = self.plan.facts.shape.ntid[0] as usize <= 32 * across;
        let fits = (2 * across..=MOST_WARPS).contains(&n_warps) && is_of_lines;
        if !fits || self.counts() || self.has_shared_memory() {
            return None;
        }
        let way = self.way_from(0, search, true, false)?;
        let is_straight = way.end == End::Place(None) && way.tests.is_empty() && way.exits.is_empty();
        let is_plain = way.guarded.is_empty() && way.common.is_empty() && way.alone.is_empty() && !way.is_first;
        if !is_straight || !is_plain || self.length(&way) * n_warps > LONG {
            return None;
        }
        let mut steps: Vec<i32> = Vec::new();
        let mut addresses: Vec<(Reg, usize)> = Vec::new();
        for (at, inst) in way.all_insts(self.f) {
            self.at = at;
            let access = self.access_of_strip(inst);
            if !self.fits_strip(inst, access.is_some()) {
                return None;
            }
            let Some(g) = access else { continue };
            let step = self.head.as_ref().map_or(0, |h| h.row_step(g.runs.address));
            steps.extend((step != 0).then_some(step));
            for (lane, _) in &g.runs.list {
                let of = (g.runs.address, g.runs.shape.group_of(*lane));
                if !addresses.contains(&of) {
                    addresses.push(of);
                }
            }
        }
        let unit = steps.iter().copied().min_by_key(|step| step.unsigned_abs())?;
        let is_scaled = |step: &i32| step % unit == 0 && [1, 2, 4, 8].contains(&(step / unit));
        let n_addresses = addresses.len() * across;
        if !steps.iter().all(is_scaled) || unit.unsigned_abs() >= 1 << 24 || n_addresses > MOST_OF_STRIP {
            return None;
        }
        let way = Gang { by_warp: true, ..way };
        let with_rows = self.with_shifted(&way).and_then(|with| self.places_of_gang(&with, n_warps));
        let mut gang = with_rows.or_else(|| self.places_of_gang(&way, n_warps))?;
        gang.label = self.a.label();
        Some((gang, unit))
    }

    /// Whether an instruction does the same in all CTAs of a row, but for where accesses are. `has_access`: it is an access of a strip.
    fn fits_strip(&self, inst: &Inst, has_access: bool) -> bool {
        let Some(head) = &self.head else { return false };
        if head.has(inst) {
            return true;
        }
        if head.is_linear(inst) {
            return head.is_lean(inst) || inst.dst.iter().all(|d| head.row_step(*d) == 0);
        }
        let stays = |v: &Val| reg(v).is_none_or(|r| head.row_step(r) == 0);
        match inst.op {
            Op::Mark | Op::Sreg(_) => true,
            Op::Pure(_) => inst.src.iter().all(stays) && !inst.dst.iter().any(|d| self.is_affine(*d)),
            Op::Load { .. } | Op::Store { .. } => {
                let is_moving = !inst.guarded && self.fixed_of_gang(inst).is_none();
                has_access && is_moving && inst.src[1..].iter().all(stays)
            }
            _ => false,
        }
    }

    /// What is known of an access of a strip.
    fn access_of_strip(&mut self, inst: &Inst) -> Option<GangAccess> {
        let is_store = matches!(inst.op, Op::Store { .. });
        if !is_store && !matches!(inst.op, Op::Load { .. }) || self.is_of_head(inst) {
            return None;
        }
        let fits = |form: &Form| match form {
            Form::Row | Form::Parts | Form::Halves | Form::Tuples(_) => true,
            Form::Same | Form::Bands => !is_store,
            _ => false,
        };
        self.access_of_gang(inst).filter(|g| g.bit.is_some() && !g.scalars && fits(&g.form))
    }

    /// The most CTAs of a grid that goes in strips, if there may be too many: those that read and write half of what the last cache holds, if each reads as much as it writes.
    fn most_in_strips(&self, unit: i32, gang: &Gang) -> Option<i32> {
        let last_cache = self.plan.options.host.last_cache;
        let accesses = gang.all_insts(self.f).filter_map(|(_, inst)| AccessClass::of(inst));
        let stored = accesses.filter(|c| c.kind == Kind::Store);
        let bytes: i64 = stored.map(|c| c.bytes()).sum();
        let of_cta = 2 * u64::from(self.plan.facts.shape.threads()) * bytes.cast_unsigned();
        let is_long = unit.unsigned_abs() >= 2 * LINE && last_cache > 0;
        is_long.then(|| i32::try_from(last_cache / 2 / of_cta.max(1)).unwrap_or(i32::MAX))
    }

    /// The code of a strip, which goes on behind the last CTA of the row.
    pub(super) fn strip(&mut self, gang: &Gang, unit: i32, step: i32) -> Result<(), Refusal> {
        let words = self.head.as_ref().and_then(|h| Some((h.word_of_strips()?, h.warps_of_rank())));
        let Some((end, across)) = words else {
            return Err(Refusal { what: "a bug: a strip without rows of CTAs".to_owned(), span: self.f.span });
        };
        let accesses = self.accesses_of_strip(gang);
        self.begin_way(gang, step);
        self.a.comment(format_args!("a row of CTAs, warp by warp"));
        self.load64(WARP, cta(offset_of!(CtaCtx, first)));
        self.begin_strip(unit);
        self.keep_constants(gang);
        for first in (0..gang.warps).step_by(across) {
            let members = first..first + across;
            self.drop_held();
            self.strip = Some(InStrip { unit, saved: Vec::new() });
            self.hold_addresses(&accesses, members.clone());
            let has_room = self.strip.as_ref().is_some_and(|s| s.saved.len() == self.held.len());
            if !has_room {
                self.drop_held();
            }
            let (held, again) = (self.held(), self.a.label());
            self.a.number(BEHIND, 0);
            self.a.bind(again);
            self.at_hand_words.clear();
            for m in members {
                (self.at_hand, self.in_flags) = (None, None);
                self.alike.clear();
                self.insts_of_gang(gang, m..m + 1, None)?;
            }
            let now = self.held();
            for h in held.iter().filter(|h| !now.contains(h)) {
                self.hold_saved(h);
            }
            self.a.end_instruction(0);
            self.add_number(BEHIND, unit.into());
            self.a.op2(Code::Cmp_r64_rm64, BEHIND, end);
            self.a.jump(Code::Jne_rel32_64, again);
            self.strip = None;
        }
        self.end_insts();
        self.end_way(gang);
        let ctas = self.most_in_strips(unit, gang);
        if let Some(turns) = &mut self.turns {
            turns.strip = Some(Strip { bits: gang.bits, label: gang.label, ctas });
            let after = turns.after(None);
            self.a.jump(Code::Jmp_rel32_64, after);
        }
        Ok(())
    }

    /// An element at its place in the CTA of a strip that the code is for.
    pub(crate) fn in_strip(&self, m: Mem, address: Reg) -> Mem {
        let Some(strip) = &self.strip else { return m };
        match self.head.as_ref().map_or(0, |h| h.row_step(address)) / strip.unit {
            0 => m,
            scale => m.plus_scaled(BEHIND, scale.unsigned_abs()),
        }
    }

    /// An address is put into its word, if it has none.
    fn save(&mut self, h: &Held) {
        let Some(first) = self.head.as_ref().and_then(|h| h.words_of_addresses()) else { return };
        if let Some(strip) = &mut self.strip
            && !strip.saved.iter().any(|x| x.is_same(h))
        {
            let at = first + 8 * strip.saved.len() as u32;
            strip.saved.push(*h);
            self.store64(ctx(at), h.at);
        }
    }

    /// Makes a register hold an address that has a word. Says whether it does.
    pub(crate) fn hold_saved(&mut self, h: &Held) -> bool {
        let saved = self.strip.as_ref().and_then(|s| s.saved.iter().position(|x| x.is_same(h)));
        let Some((k, first)) = saved.zip(self.head.as_ref().and_then(|h| h.words_of_addresses())) else { return false };
        self.load64(h.at, ctx(first + 8 * k as u32));
        self.a.forget_written(h.at);
        true
    }

    /// The accesses of a strip, in order.
    fn accesses_of_strip(&mut self, gang: &Gang) -> Vec<GangAccess> {
        let insts = gang.all_insts(self.f);
        let access = |(at, inst): ((usize, usize), &Inst)| {
            self.at = at;
            self.access_of_strip(inst)
        };
        insts.filter_map(access).collect()
    }

    /// Registers hold the addresses of some warps, as far as there are such, and words all of them.
    fn hold_addresses(&mut self, accesses: &[GangAccess], members: std::ops::Range<usize>) {
        for (g, m) in accesses.iter().flat_map(|g| members.clone().map(move |m| (g, m))) {
            self.go_to_member(m);
            for (lane, _) in &g.runs.list {
                self.run_element(&g.x, &g.runs, *lane);
                if let Some(h) = self.held.last().copied() {
                    self.save(&h);
                }
            }
        }
    }

    /// At the start of a turn: a strip, if the head has decided about a row of CTAs and all that it rests on holds.
    pub(crate) fn choose_strip(&mut self) {
        let Some(Strip { bits, label, ctas }) = self.turns.as_ref().and_then(|t| t.strip) else { return };
        let other = self.a.label();
        self.unless_row_is_long(other);
        if let Some(most) = ctas {
            let nctaid = offset_of!(CtaCtx, nctaid);
            self.load32(EAX, cta(nctaid));
            self.load32(ECX, cta(nctaid + 4));
            self.a.op2(Code::Imul_r64_rm64, RAX, RCX);
            self.a.imm(Code::Cmp_rm64_imm32, RAX, most);
            self.a.jump(Code::Ja_rel32_64, other);
        }
        self.test_decided(bits);
        self.a.jump(Code::Je_rel32_64, label);
        self.a.bind(other);
    }
}
