//! What registers hold at labels.
//!
//! Every slot is right at a jump, so code behind a label could load all that it wants. But mostly all ways to a label were seen when it is put: a test was
//! passed over, or done. Then registers hold what they hold on each of these ways. Who jumps there later (code of what is rare) loads the same first.

use iced_x86::Code;

use super::super::{Asm, Label};
use super::state::{Cache, State, Value};

impl Asm {
    /// Slots get what changed, and registers hold nothing: before code is left, or a register jumped through.
    pub(in super::super) fn settle(&mut self, is_dead_end: bool) {
        if self.narrow.is_none() {
            return;
        }
        self.write_back();
        let n = self.n();
        n.restart(Cache::default());
        n.labels.is_dead_end = is_dead_end;
    }

    /// Before a jump to a label, or a call.
    pub(in super::super) fn settle_jump(&mut self, code: Code, to: Label) {
        if self.narrow.is_none() {
            return;
        }
        self.write_back();
        let is_put = self.labels[to.idx()].is_some();
        if code == Code::Call_rel32_64 {
            self.comes_from_anywhere(to);
            self.settle(false);
            return;
        }
        if is_put {
            let state = self.n().labels.put.get(&to.idx()).copied().unwrap_or(State::NOTHING);
            state.list().for_each(|(r, v)| self.hold(r, v));
        } else {
            let found = self.n().cache.state();
            let all = self.n().labels.arrivals.entry(to.idx()).or_insert(found);
            *all = all.both(found);
        }
        if code == Code::Jmp_rel32_64 {
            self.settle(true);
        }
    }

    /// At a label.
    pub(in super::super) fn settle_label(&mut self, l: Label) {
        if self.narrow.is_none() {
            return;
        }
        self.write_back();
        let n = self.n();
        let here = (!n.labels.is_dead_end).then(|| n.cache.state());
        let state = match (here, n.labels.arrivals.remove(&l.idx())) {
            _ if n.labels.named.contains(&l.idx()) => State::NOTHING,
            (Some(here), Some(arrivals)) => here.both(arrivals),
            (Some(state), None) | (None, Some(state)) => state,
            (None, None) => State::NOTHING,
        };
        n.restart(Cache::of(state));
        n.labels.is_dead_end = false;
        if !state.is_nothing() {
            n.labels.put.insert(l.idx(), state);
        }
    }

    /// Code comes to a label in ways that are not seen here.
    pub(in super::super) fn comes_from_anywhere(&mut self, l: Label) {
        if self.narrow.is_none() {
            return;
        }
        if self.n().labels.put.contains_key(&l.idx()) {
            self.lacks("a bug: a label that registers are known at is named");
        }
        self.n().labels.named.insert(l.idx());
    }

    /// Loads a value into a register, if it is not there.
    fn hold(&mut self, r: usize, v: Value) {
        if self.n().cache.has(r, v) {
            return;
        }
        self.evict(r);
        self.slot_move(v, r, false);
        self.n().cache.hold(r, v, false);
    }
}
