//! From the code of one tier to that of the next: a block met what its code was not made for, and starts over.
//!
//! Both are made from the same function, with the same blocks and registers. Values move from their homes in the one to their homes in the other, lane
//! by lane.

use std::sync::Arc;

use handloom_ir::simt::FuncId;
use handloom_plan::abi::Loc;

use super::cta::{CtaRun, address, entry_code};
use crate::grid::Ended;
use crate::rows::lanes;
use crate::run::Tier;
use crate::warp::context::{Contexts, Ctx};

impl CtaRun {
    /// Moves all contexts of the entry to code of the next tier.
    pub(super) fn change_code(&mut self) -> Result<(), Ended> {
        let program = Arc::clone(&self.program);
        let Some(tier) = program.behind(self.tier) else {
            return Err(Ended::bug("careful code rests on a guess"));
        };
        self.obtain(tier)?;
        let code = entry_code(&program, tier)?;
        (self.code, self.tier) = (code, tier);
        let n = self.host().warps.len();
        let contexts = Contexts::new(&code.tables, n);
        let moves: Vec<(Ctx, Ctx)> =
            (0..n).map(|w| (self.host().base_ctx(w), contexts.at(w, &raw const *code.tables))).collect();
        moves.iter().for_each(|(from, to)| copy(*from, *to));
        let cur = self.ctx().cur;
        let old = std::mem::replace(&mut self.host().base, contexts);
        self.host().base_tables = &raw const *code.tables;
        self.rename(&moves);
        drop(old);
        let (first, end) = (self.host().base.first(), self.host().base.end());
        let cur = moves.iter().find(|(from, _)| address(from.warp) == cur).map_or(first, |(_, to)| address(to.warp));
        let cta = self.ctx();
        (cta.cur, cta.first, cta.end) = (cur, first, end);
        cta.tables = address(&raw const *code.tables);
        self.use_sites()
    }

    /// Moves the context of a call to careful code.
    pub(super) fn change_callee(&mut self, w: usize, i: usize) -> Result<(), Ended> {
        self.obtain(Tier::Careful)?;
        let program = Arc::clone(&self.program);
        let func = self.host().warps[w].calls[i].func;
        let Some(code) = program.codes(Tier::Careful)?.get(FuncId(func as u32)) else {
            return Err(Ended::bug("a call lost its code"));
        };
        let from = self.host().warps[w].calls[i].ctx;
        let memory = Contexts::new(&code.tables, 1);
        let to = memory.at(0, &raw const *code.tables);
        if from.tables == to.tables {
            return Err(Ended::bug("careful code rests on a guess"));
        }
        copy(from, to);
        self.rename(&[(from, to)]);
        let call = &mut self.host().warps[w].calls[i];
        (call.memory, call.code, call.tier) = (memory, &raw const *code, Tier::Careful);
        self.called[func].is_careful = true;
        Ok(())
    }

    /// Replaces contexts in all lists of lanes. The numbers of barriers, yields and warp-level ops in them mean the same in all code.
    fn rename(&mut self, moves: &[(Ctx, Ctx)]) {
        let new = |ctx: &mut Ctx| {
            if let Some((_, to)) = moves.iter().find(|(from, _)| from == ctx) {
                *ctx = *to;
            }
        };
        let host = self.host();
        host.waiting.iter_mut().for_each(|x| new(&mut x.ctx));
        host.cluster_waits.iter_mut().for_each(|x| new(&mut x.ctx));
        for warp in &mut host.warps {
            warp.yielded.iter_mut().for_each(|x| new(&mut x.ctx));
            warp.parked.iter_mut().for_each(|x| new(&mut x.ctx));
            for a in &mut warp.calls {
                new(&mut a.ctx);
                new(&mut a.caller);
            }
        }
    }
}

/// Copies header, pending lanes and registers.
fn copy(from: Ctx, to: Ctx) {
    let header = from.header();
    let n = from.tables().n_blocks.min(to.tables().n_blocks);
    to.update(|h| *h = header);
    (0..n).for_each(|b| to.set_pend(b, from.pend(b)));
    for homes in from.tables().homes.iter().zip(&to.tables().homes) {
        if let (Some(a), Some(b)) = homes {
            move_home((from, *a), (to, *b), header.live);
        }
    }
}

/// Copies a register from its home in one context to its home in another, which may be of another kind: code that rests on fewer assumptions knows of fewer registers
/// that they are the same in all lanes.
fn move_home((from, a): (Ctx, Loc), (to, b): (Ctx, Loc), live: u32) {
    // As a word a predicate is 0 or 1, in a row 0 or all ones.
    let is_bit = |loc| matches!(loc, Loc::Shaped { bits: 1, .. });
    let value = |lane| match (is_bit(a), is_bit(b)) {
        (true, false) => from.read(a, lane).wrapping_neg(),
        (false, true) => from.read(a, lane) & 1,
        _ => from.read(a, lane),
    };
    match (a, b) {
        // What a row holds in lanes that have exited is nothing: any lane that lives tells the word of its group.
        (Loc::Row32(_) | Loc::Row64(_), Loc::Shaped { shape, .. }) => {
            for lane in lanes(live) {
                let word = value(lane).wrapping_add_signed(shape.delta(lane).wrapping_neg());
                to.write(b, shape.first_lane(shape.group_of(lane)), word);
            }
        }
        _ => (0..32).for_each(|lane| to.write(b, lane, value(lane))),
    }
}

#[cfg(test)]
mod tests {
    use handloom_plan::analysis::shape::Shape;

    use super::*;

    #[repr(align(64))]
    struct Rows([[u64; 32]; 4]);

    #[test]
    fn values_move_between_homes_of_other_kinds() {
        let (mut one, mut two) = (Rows([[0xdead; 32]; 4]), Rows([[0; 32]; 4]));
        let ctx = |rows: &mut Rows| Ctx { warp: (&raw mut rows.0).cast(), tables: std::ptr::null() };
        let (from, to) = (ctx(&mut one), ctx(&mut two));
        let word = |shape, bits| Loc::Shaped { at: 0, shape, bits };
        let (narrow, wide) = (Loc::Row32(256), Loc::Row64(512));
        // Lanes 0 to 2 have exited, and hold anything.
        let live = u32::MAX << 3;
        for bit in [0, 1] {
            let flag = word(Shape::UNIFORM, 1);
            from.write(flag, 0, bit);
            move_home((from, flag), (to, narrow), live);
            assert!((0..32).all(|l| to.read(narrow, l) == if bit == 1 { 0xffff_ffff } else { 0 }));
            (3..32).for_each(|l| from.write(narrow, l, bit.wrapping_neg()));
            move_home((from, narrow), (to, flag), live);
            assert_eq!((to.read(flag, 0), to.read(flag, 31)), (bit, bit));
        }
        // Values at even distances, whose lane 0 would be below zero.
        let shape = Shape::linear(4);
        for (row, bits) in [(narrow, 32), (wide, 64)] {
            (3..32).for_each(|l| from.write(row, l, 4 * (l as u64 - 3)));
            move_home((from, row), (to, word(shape, bits)), live);
            assert!((3..32).all(|l| to.read(word(shape, bits), l) == 4 * (l as u64 - 3)), "{bits}");
            from.write(word(shape, bits), 0, 100);
            move_home((from, word(shape, bits)), (to, row), live);
            assert!((0..32).all(|l| to.read(row, l) == 100 + 4 * l as u64), "{bits}");
        }
    }
}
