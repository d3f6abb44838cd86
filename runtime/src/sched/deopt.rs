//! From the code of one tier to that of the next: a block met what its code was not made for, and starts over.
//!
//! Both are made from the same function, with the same blocks and registers. Values move from their homes in the one to their homes in the other, lane
//! by lane.

use std::sync::Arc;

use handloom_ir::simt::FuncId;

use super::cta::{CtaRun, address, entry_code};
use crate::grid::Ended;
use crate::run::Tier;
use crate::warp::context::{Contexts, Ctx};

impl CtaRun {
    /// Moves all contexts of the entry to code of the next tier.
    pub(super) fn change_code(&mut self) -> Result<(), Ended> {
        let Some(tier) = self.tier.next() else {
            return Err(Ended::bug("careful code rests on a guess"));
        };
        self.obtain(tier)?;
        let program = Arc::clone(&self.program);
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
            (0..32).for_each(|lane| to.write(*b, lane, from.read(*a, lane)));
        }
    }
}
