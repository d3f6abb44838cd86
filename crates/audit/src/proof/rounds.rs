//! Loops whose end memory decides: what changes from one round to the next is no longer followed, until a round is like the one before.

use std::collections::HashMap;

use handloom_ir::simt::{Function, Op, Reg, Val};
use handloom_ir::types::StateSpace;

use super::State;

/// What blocks began with last, by block.
#[derive(Debug, Default)]
pub(super) struct Rounds(HashMap<usize, Round>);

#[derive(Debug)]
struct Round {
    /// Barriers that the block of threads had passed, and 1.
    stretch: u32,
    /// Branches until then that parted threads by what nobody knows.
    n_unknown: u64,
    began: State,
    /// What differs is not followed: it is a round of a loop with such a branch.
    widens: bool,
    /// It began as the one before.
    is_again: bool,
}

impl Rounds {
    /// Threads come to a block. If a branch that nobody knows was met since it was run last: of registers that differ from when it was run last nothing is known from then on. Says whether it must be run: once more
    /// when nothing differs, since what ends a round meets what begins the next one, and then no more.
    pub(super) fn is_new(&mut self, block: usize, (stretch, n_unknown): (u32, u64), state: &mut State) -> bool {
        let (mut is_again, mut widens) = (false, false);
        let last = self.0.get(&block).filter(|last| last.stretch == stretch);
        if let Some(last) = last.filter(|last| last.widens || last.n_unknown < n_unknown) {
            widens = true;
            is_again = state.threads.without(&last.began.threads).is_empty();
            for (new, old) in state.regs.iter_mut().zip(&last.began.regs) {
                if *new != *old {
                    is_again &= old.is_none();
                    *new = None;
                }
            }
            // Who is here has written what he had written then.
            let threads = state.threads;
            let has = |w: &&(u32, u32, u16)| threads.has(usize::from(w.2));
            if last.began.wrote.iter().filter(has).any(|w| !state.wrote.contains(w)) {
                is_again = false;
            }
            state.wrote.retain(|w| last.began.wrote.contains(w));
            if is_again && last.is_again {
                return false;
            }
        }
        self.0.insert(block, Round { stretch, n_unknown, began: state.clone(), widens, is_again });
        true
    }
}

/// Registers that what global memory holds may decide, if it does so by values and not by ways. What comes by way of other memory does not count.
pub(super) fn reads_of_memory(code: &Function) -> Vec<bool> {
    let mut of_memory = vec![false; code.regs.len()];
    loop {
        let mut is_done = true;
        for inst in code.blocks.iter().flat_map(|b| &b.insts) {
            let of_source = |v: &Val| matches!(v, Val::Reg(r) if of_memory[r.idx()]);
            let is_so = match inst.op {
                Op::Load { access, .. } => {
                    matches!(access.space, StateSpace::Global | StateSpace::Generic | StateSpace::Const)
                }
                _ => inst.src.iter().any(of_source),
            };
            let mut set = |d: &Reg| is_done &= std::mem::replace(&mut of_memory[d.idx()], true);
            if is_so {
                inst.dst.iter().for_each(&mut set);
            }
        }
        if is_done {
            return of_memory;
        }
    }
}
