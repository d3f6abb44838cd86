//! How the turns of threads that wait for each other vary.
//!
//! Whoever waits in a loop gives way after each turn of it, and everybody goes on in the next round. Threads that answer each other in strict
//! alternation would do so for ever, which no real machine keeps up. So after a while some are left out of some rounds: the others have several
//! turns in a row.
//!
//! Who waits for nobody runs on. So of two threads of which one should keep the other out, one is always done when the other comes. Where races are looked for,
//! half of the seeds let threads give way after strong reads too ([`pauses`]), which the interpreter alone can do.
//!
//! Invariants:
//! - only the seed, the place in the grid and the rounds so far decide: the same seed gives the same run;
//! - a stretch of rounds in which some are left out begins only after a round that changed memory, and has an end. Who concludes from rounds
//!   without a change that nobody can ever go on leaves out those rounds ([`Pace::leaves_out`]), and so finds what it would find if nothing varied.

use handloom_ir::simt::Op;
use handloom_ir::types::{AtomOp, Order};

use crate::env::CtaEnv;
use crate::numbers::low32;

/// Rounds of a cta that changed memory, before its rounds vary.
const AFTER: u32 = 1 << 10;

/// Longest stretch of rounds in which the same threads are left out, as a power of 2.
const LONGEST: u64 = 7;

/// Who goes on in the rounds of one cta.
#[derive(Clone, Debug)]
pub struct Pace {
    /// What decides in the present stretch; 0 where everybody goes on.
    choice: u64,
    /// What is left of the present stretch: rounds; where everybody goes on, rounds that change memory.
    left: u32,
    /// Stretches begun.
    n_stretches: u32,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { choice: 0, left: AFTER, n_stretches: 0 }
    }
}

impl Pace {
    /// Starts a round. `changed`: the one before it changed memory.
    #[inline]
    pub fn next_round(&mut self, env: &CtaEnv, changed: bool) {
        if changed || self.choice != 0 {
            self.left -= 1;
            if self.left == 0 {
                self.begin_stretch(env, changed);
            }
        }
    }

    #[cold]
    fn begin_stretch(&mut self, env: &CtaEnv, changed: bool) {
        let mut state = env.seed ^ env.linear_ctaid().rotate_left(32) ^ u64::from(self.n_stretches);
        self.n_stretches = self.n_stretches.wrapping_add(1);
        let kind = splitmix(&mut state);
        self.left = 1 << (kind % (LONGEST + 1));
        // Most stretches are as always: who is left out may be the one that all others wait for.
        self.choice = if changed && kind >> 61 == 0 { splitmix(&mut state) | 1 } else { 0 };
    }

    /// Whether some may be left out of this round.
    #[inline]
    pub fn leaves_out(&self) -> bool {
        self.choice != 0
    }

    /// The lanes of a warp that go on in this round, if they gave way before it.
    #[inline]
    pub fn lanes(&self, warp: u32) -> u32 {
        if self.leaves_out() { low32(self.of_warp(warp)) } else { u32::MAX }
    }

    /// Whether lanes that are farther on than others of their warp run in this round although those go round a loop.
    #[inline]
    pub fn lets_pass(&self, warp: u32) -> bool {
        self.leaves_out() && self.of_warp(warp) >> 63 == 1
    }

    fn of_warp(&self, warp: u32) -> u64 {
        let mut state = self.choice ^ u64::from(warp) << 40;
        splitmix(&mut state)
    }
}

/// Whether threads give way after strong reads with a seed: after every second one, where races are looked for.
pub fn pauses(seed: u64) -> bool {
    seed >> 3 & 1 == 1
}

/// Whether threads may give way after an op: what it read may decide what they do next, as it is with locks.
pub fn may_pause(op: Op) -> bool {
    matches!(op, Op::Load { access, .. } if access.order != Order::Weak)
        || matches!(op, Op::Atom { access, .. } if access.op != AtomOp::Step)
}

/// The next number of a SplitMix64 sequence.
pub fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The masks of warp 0 and 1 in rounds that all change memory.
    fn masks(seed: u64, cta: u32, rounds: u32) -> Vec<(u32, u32)> {
        let env = CtaEnv { seed, ctaid: [cta, 0, 0], nctaid: [8, 1, 1], ..CtaEnv::default() };
        let mut pace = Pace::default();
        let round = |_| {
            pace.next_round(&env, true);
            (pace.lanes(0), pace.lanes(1))
        };
        (0..rounds).map(round).collect()
    }

    #[test]
    fn turns_vary_after_a_while_by_seed_cta_and_warp() {
        let all = masks(1, 0, 1 << 15);
        assert!(all[..AFTER as usize - 1].iter().all(|m| *m == (u32::MAX, u32::MAX)));
        let late = &all[AFTER as usize..];
        let apart = |bits: u32| late.iter().filter(|m| (m.0 ^ m.1) & 1 == bits).count();
        assert!(apart(1) > 200 && apart(0) > 1000);
        assert!(late.iter().any(|m| m.0 & 0b11 == 0b10) && late.iter().any(|m| m.0 & 0b11 == 0b01));
        assert_eq!(all, masks(1, 0, 1 << 15));
        assert_ne!(all, masks(2, 0, 1 << 15));
        assert_ne!(all, masks(1, 3, 1 << 15));
    }

    #[test]
    fn nobody_is_left_out_for_long_while_nothing_changes() {
        let mut pace = Pace::default();
        (0..1 << 14).for_each(|_| pace.next_round(&CtaEnv::default(), true));
        let later = |_| {
            pace.next_round(&CtaEnv::default(), false);
            (pace.leaves_out(), pace.lanes(0) == u32::MAX, pace.lets_pass(0))
        };
        let rounds: Vec<_> = (0..1 << 10).map(later).collect();
        assert!(rounds[1 << LONGEST..].iter().all(|r| *r == (false, true, false)));
    }
}
