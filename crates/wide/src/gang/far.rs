//! What rows of CTAs read from memory is asked for ahead.
//!
//! # The model
//! Where each CTA of a row reads what follows what the one before read, a load is some hundred instructions before the next one from its place, and the host sees less ahead than in a loop of
//! C. Where all that the row reads and writes is several times as large as the last cache, each warp asks for what lies some lines behind what it is about to read. Otherwise that would
//! take longer: it is passed over by a branch, which is always the same way.

use std::mem::offset_of;

use handloom_ir::simt::{Inst, Op};
use handloom_ir::types::StateSpace;
use handloom_plan::abi::CtaCtx;
use handloom_plan::access::{AccessClass, Kind};
use iced_x86::Code;

use super::GangAccess;
use super::way::Gang;
use crate::access::reg;
use crate::emit::*;

/// Bytes ahead: of Zen 4 those from 1 to 3 KiB are alike. Loads wait for stores whose addresses have the same lowest twelve bits, so a multiple of 4 KiB would be worse than none.
const AHEAD: i32 = 1536;

/// How many times as large as the last cache the accessed memory is.
const CACHES: u64 = 3;

/// Loads that are asked for, at most: registers hold their addresses.
const MOST: usize = 4;

/// What a gang asks for.
pub(crate) struct Far {
    loads: Vec<GangAccess>,
    /// The least number of CTAs in a row.
    ctas: i32,
    /// The first of the loads.
    at: (usize, usize),
}

impl Emit<'_> {
    /// What the loads of a gang ask for.
    pub(super) fn far_of_gang(&mut self, gang: &Gang) -> Option<Far> {
        let f = self.f;
        let in_loop = |b: usize| self.plan.facts.cfg.loop_of[b].is_some();
        let is_straight =
            gang.again.is_none() && !gang.blocks.iter().any(|(b, _)| in_loop(*b) || self.plain_barrier(*b).is_some());
        let last_cache = self.plan.options.host.last_cache;
        if !is_straight || last_cache == 0 {
            return None;
        }
        let (mut loads, mut bytes, mut first) = (Vec::new(), 0, None);
        for &(b, n) in &gang.blocks {
            for (i, inst) in gang.insts(f, b)[..n].iter().enumerate() {
                let Some(step) = self.step_of_stream(inst) else { continue };
                bytes += step;
                if !matches!(inst.op, Op::Load { .. }) {
                    continue;
                }
                self.at = (b, i);
                let Some(access) = self.access_of_gang(inst).filter(|g| !g.scalars) else { continue };
                first = first.or(Some(self.at));
                loads.push(access);
            }
        }
        let ctas = (CACHES * last_cache).div_ceil(bytes.max(1));
        let fits = (1..=MOST).contains(&loads.len());
        Some(Far { loads, ctas: i32::try_from(ctas).ok()?, at: first.filter(|_| fits)? })
    }

    /// Bytes from CTA to CTA of an access by which the CTAs of a row go through memory without a gap.
    fn step_of_stream(&self, inst: &Inst) -> Option<u64> {
        let class = AccessClass::of(inst).filter(|c| matches!(c.kind, Kind::Load | Kind::Store))?;
        let step = self.head.as_ref()?.row_step(reg(class.address)?);
        let is_gapless = i64::from(step) == i64::from(self.plan.facts.shape.threads()) * class.bytes();
        let is_stream = is_gapless && class.space != StateSpace::Shared;
        u64::try_from(step).ok().filter(|step| is_stream && *step > 0)
    }

    /// Before the first load of a gang, for a warp of it.
    pub(super) fn fetch_far(&mut self, far: &Far) {
        if self.at != far.at {
            return;
        }
        let mut lines = Vec::new();
        for g in &far.loads {
            lines.extend(self.lines_of_run(&g.x, &g.runs, g.form));
        }
        let near = self.a.label();
        self.a.imm(Code::Cmp_rm32_imm32, cta(offset_of!(CtaCtx, nctaid)), far.ctas);
        self.a.jump(Code::Jb_rel32_64, near);
        lines.iter().for_each(|m| self.a.op1(Code::Prefetcht1_m8, m.behind(AHEAD)));
        self.a.bind(near);
    }
}
