//! Scalars of a loop that a gang keeps for its first warp alone.
//!
//! # The model
//! In a loop that warps go round together, a count is the same in all of them, and an address that rises (`rising`) is as far from that of the next warp as it was before the loop. So the
//! loop changes the words of the first warp; where other warps read an element, its address is made from that of the warp before. Behind the loop the words of all
//! others are written.

use handloom_ir::simt::{Op, Pure, Reg, Val};
use handloom_ir::types::Ty;
use handloom_plan::access::AccessClass;
use iced_x86::{Code, Register};

use super::way::{Alone, Gang, SIZES};
use crate::alloc::Place;
use crate::emit::*;

/// The most warps of a gang.
const MOST: usize = SIZES[0].0;

/// Registers that the code of gangs has no other use for.
const HOLDERS: [Register; 2] = [Register::R15, Register::R13];

impl Emit<'_> {
    /// The scalars that a loop keeps for its first warp. `common`: what is the same in all warps.
    pub(super) fn kept_alone(&self, way: &Gang, common: &[bool]) -> Vec<(Reg, Alone)> {
        let Some(head) = self.head.as_ref().filter(|_| way.comes_back()) else { return Vec::new() };
        let insts = || way.blocks.iter().flat_map(|&(b, n)| way.insts(self.f, b)[..n].iter());
        let own = || insts().filter(|i| !head.has(i) && !head.is_linear(i));
        let mut kept: Vec<(Reg, Alone)> = Vec::new();
        for d in own().flat_map(|i| &i.dst) {
            let knows = |first: &Reg| (0..MOST).all(|m| head.apart(*first, 0, m).is_some());
            let alone = match head.first_value(*d).filter(knows) {
                _ if !matches!(self.place(*d), Place::Words(_)) => None,
                _ if common[d.idx()] => Some(Alone::Same),
                first => first.map(Alone::Apart),
            };
            if let Some(alone) = alone.filter(|_| !kept.iter().any(|k| k.0 == *d)) {
                kept.push((*d, alone));
            }
        }
        // What the branch at the end asks is made last, for nobody else.
        let asked = way.blocks.last().and_then(|&(b, n)| {
            let (block, last) = (&self.f.blocks[b], way.insts(self.f, b)[..n].last()?);
            let is_for_branch = |d: &Reg| {
                way.is_asked(b) && block.term.sources().contains(&Val::Reg(*d)) && !self.places.is_own[d.idx()]
            };
            (n == block.insts.len() && last.dst.iter().all(is_for_branch)).then_some(last)
        });
        loop {
            let before = kept.len();
            let is_kept = |r: Reg, alone: Alone| kept.contains(&(r, alone));
            let is_one = |v: &Val| match v {
                Val::Imm(..) => true,
                Val::Reg(r) => {
                    let stays = || common[r.idx()] && !own().any(|i| i.dst.contains(r));
                    head.is_same_in_warps(*r) || is_kept(*r, Alone::Same) || stays()
                }
            };
            let keeps = |&(r, alone): &(Reg, Alone)| {
                own().all(|inst| {
                    let writes = inst.dst.contains(&r);
                    let reads = inst.src.contains(&Val::Reg(r));
                    let is_asked = asked.is_some_and(|last| std::ptr::eq(last, inst));
                    let is_first = |d: &Reg| is_asked || way.common.has(d.idx()) || is_kept(*d, Alone::Same);
                    match alone {
                        Alone::Same => {
                            let is_made = matches!(inst.op, Op::Pure(_)) && inst.src.iter().all(is_one);
                            (!writes || is_made) && (!reads || !inst.dst.is_empty() && inst.dst.iter().all(is_first))
                        }
                        Alone::Apart(_) => {
                            let others = inst.src.iter().filter(|v| **v != Val::Reg(r));
                            let rises = matches!(inst.op, Op::Pure(Pure::Add(_))) && others.clone().all(is_one);
                            let is_address = AccessClass::of(inst).is_some_and(|c| c.address == Val::Reg(r))
                                && others.count() + 1 == inst.src.len();
                            if writes { rises } else { !reads || is_address }
                        }
                    }
                })
            };
            let next: Vec<_> = kept.iter().copied().filter(keeps).collect();
            kept = next;
            if kept.len() == before {
                return kept;
            }
        }
    }

    /// What says how far an address is from that of another warp: itself, or its first value.
    pub(super) fn distance_of(&self, address: Reg) -> Reg {
        match self.alone.iter().find(|k| k.0 == address) {
            Some((_, Alone::Apart(first))) => *first,
            _ => address,
        }
    }

    /// Makes the address of a group that a register is to hold for a warp, from the first warp's. Says whether only that has it.
    pub(crate) fn hold_from_first(&mut self, address: Reg, lane: usize, to: Register, member: usize) -> bool {
        let Some((_, alone)) = self.alone.iter().find(|k| k.0 == address).copied() else { return false };
        self.a.shift(0);
        self.lane_value(Val::Reg(address), lane, to);
        if let Alone::Apart(first) = alone
            && member > 0
        {
            self.add_distance(first, (0, member), to);
        }
        true
    }

    /// A register that holds a word of the head, in the code of a gang.
    pub(super) fn word_at_hand(&mut self, at: u32) -> Register {
        self.drop_written_words();
        if let Some((r, _)) = self.at_hand_words.iter().find(|w| w.1 == at) {
            return *r;
        }
        let is_free = |r: &Register| !self.at_hand_words.iter().any(|w| w.0 == *r);
        let r = HOLDERS.into_iter().find(is_free).unwrap_or_else(|| self.at_hand_words.remove(0).0);
        self.at_hand_words.push((r, at));
        self.load64(r, ctx(at));
        self.a.forget_written(r);
        r
    }

    fn drop_written_words(&mut self) {
        let a = &self.a;
        self.at_hand_words.retain(|w| !a.is_written(w.0));
    }

    /// Whether a register holds a word of the head in the code of a gang, or one is free for it.
    pub(super) fn has_at_hand(&mut self, at: u32) -> bool {
        self.drop_written_words();
        self.at_hand_words.len() < HOLDERS.len() || self.at_hand_words.iter().any(|w| w.1 == at)
    }

    /// Adds how far a value of the head is in one warp of the gang from that in another one. Clobbers `r10`.
    fn add_distance(&mut self, of: Reg, (from, warp): (usize, usize), to: Register) {
        let Some(by) = self.head.as_ref().and_then(|h| h.apart(of, from, warp)) else { return };
        self.add_number(to, by.number.into());
        for (step, n) in by.words.into_iter().flatten() {
            self.a.times(Register::R10, ctx(step), n);
            self.a.op2(Code::Add_r64_rm64, to, Register::R10);
        }
    }

    /// Writes the words of all warps but the first one, behind the way.
    pub(super) fn write_those_kept_alone(&mut self, gang: &Gang) {
        let last = gang.blocks.last().map_or(0, |(b, _)| *b);
        self.write_alone(gang, |e, r| e.plan.facts.live.exit(last).has(r));
    }

    /// The same of those that live on.
    pub(super) fn write_alone(&mut self, gang: &Gang, lives: impl Fn(&Self, usize) -> bool) {
        for (r, alone) in gang.alone.clone() {
            let Some((shape, at)) = self.words(r).filter(|_| lives(self, r.idx())) else {
                continue;
            };
            let is_short = self.ty(Val::Reg(r)) != Ty::B64;
            for g in 0..shape.groups() {
                let word = ctx(at + 8 * g as u32);
                self.go_to_member(0);
                self.load64(RAX, word);
                for m in 1..gang.warps {
                    if let Alone::Apart(first) = alone {
                        self.add_distance(first, (m - 1, m), RAX);
                        if is_short {
                            self.a.op2(Code::Mov_r32_rm32, EAX, EAX);
                        }
                    }
                    self.go_to_member(m);
                    self.store64(word, RAX);
                }
            }
        }
        self.go_to_member(0);
    }
}
