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
            let state = self.n().labels.of(to.idx()).put;
            state.list().for_each(|(r, v)| self.hold(r, v));
        } else {
            let found = self.n().cache.state();
            let arrivals = &mut self.n().labels.of(to.idx()).arrivals;
            *arrivals = Some(arrivals.map_or(found, |all| all.both(found)));
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
        let of = n.labels.of(l.idx());
        let state = match (here, of.arrivals.take()) {
            _ if of.is_named => State::NOTHING,
            (Some(here), Some(arrivals)) => here.both(arrivals),
            (Some(state), None) | (None, Some(state)) => state,
            (None, None) => State::NOTHING,
        };
        of.put = state;
        n.restart(Cache::of(state));
        n.labels.is_dead_end = false;
    }

    /// Code comes to a label in ways that are not seen here.
    pub(in super::super) fn comes_from_anywhere(&mut self, l: Label) {
        if self.narrow.is_none() {
            return;
        }
        let of = self.n().labels.of(l.idx());
        of.is_named = true;
        if !of.put.is_nothing() {
            self.lacks("a bug: a label that registers are known at is named");
        }
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
