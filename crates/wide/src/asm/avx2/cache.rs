//! What the registers of the host hold.

use iced_x86::{Code, Register};

use super::super::{Asm, Mem};
use super::state::{HALVES, Value, Values, each_of, host, mask_values, number_of};

impl Asm {
    /// A register that nothing is in, for the expansion of the instruction.
    pub(super) fn temp(&mut self) -> Register {
        let cache = &mut self.n().cache;
        match cache.oldest() {
            Some(i) if cache.held(i) == 0 => cache.touch(i),
            oldest => self.freed(oldest),
        }
    }

    /// The same of one that holds something.
    #[inline(never)]
    fn freed(&mut self, oldest: Option<usize>) -> Register {
        let Some(i) = oldest else {
            self.lacks("a bug: an expansion needs more registers than there are");
            return Register::YMM0;
        };
        self.evict(i);
        self.n().cache.touch(i)
    }

    /// A register holds nothing; slots get what it held.
    pub(super) fn evict(&mut self, i: usize) {
        let n = self.n();
        let held = n.cache.held(i);
        let mut changed = held & n.cache.changed;
        if changed != 0 {
            if changed & !HALVES != 0 {
                // Lanes of words that are no masks now are not worth a store.
                changed &= !mask_values(n.words.ids() & !n.ids_of_masks());
            }
            for v in each_of(changed).map(Value::of) {
                self.slot_move(v, i, true);
            }
        }
        self.n().cache.empty(i);
    }

    /// A value goes from a register to its slot, or comes from there.
    pub(super) fn slot_move(&mut self, v: Value, i: usize, is_store: bool) {
        if self.keeps_text() {
            let (m, r) = (v.slot(), host(i));
            return match is_store {
                true => self.raw_store(Code::VEX_Vmovdqu_ymmm256_ymm, m, r),
                false => self.raw2(Code::VEX_Vmovdqu_ymm_ymmm256, r, m.into()),
            };
        }
        self.append_slot_move(i, v.slot(), is_store);
    }

    /// Slots get values that they do not have.
    fn put_away(&mut self, values: Values) {
        for v in each_of(values).map(Value::of) {
            if let Some(i) = self.n().cache.find(v) {
                self.slot_move(v, i, true);
            }
        }
        self.n().cache.changed &= !values;
    }

    /// Whether half of a vector is read where it lies, and no register is to hold it.
    pub(super) fn reads_slot(&mut self, v: Value) -> bool {
        let n = self.n();
        let dies = v.vector().is_some_and(|v| n.live >> (v - 8) & 1 == 0);
        n.cache.find(v).is_none() && (dies || n.cache.is_full())
    }

    /// A value in a register, which must not be written.
    pub(super) fn load(&mut self, v: Value) -> Register {
        let cache = &mut self.n().cache;
        match cache.find(v) {
            Some(i) => cache.touch(i),
            None => self.load_slot(v),
        }
    }

    /// The same of a value that no register holds.
    #[inline(never)]
    fn load_slot(&mut self, v: Value) -> Register {
        let r = self.temp();
        self.slot_move(v, number_of(r), false);
        self.n().cache.hold(number_of(r), v, false);
        r
    }

    /// A value is what a register has.
    pub(super) fn set(&mut self, v: Value, r: Register) {
        let cache = &mut self.n().cache;
        if !cache.has(number_of(r), v) {
            cache.hold(number_of(r), v, true);
        }
    }

    /// Whether a register holds this value alone, so that it may be written for it.
    pub(super) fn holds_only(&mut self, r: Register, v: Value) -> bool {
        self.n().cache.held(number_of(r)) == 1 << v.number()
    }

    /// What a register held is something else now.
    pub(super) fn changed(&mut self, r: Register) {
        let cache = &mut self.n().cache;
        cache.changed |= cache.held(number_of(r));
    }

    /// A value at its slot.
    pub(super) fn at_slot(&mut self, v: Value) -> Mem {
        let changed = self.n().cache.changed & 1 << v.number();
        self.put_away(changed);
        v.slot()
    }

    /// Gives slots of vectors what changed. (Masks end at the next label.)
    pub(super) fn write_back(&mut self) {
        let changed = self.n().cache.changed & HALVES;
        self.put_away(changed);
    }
}
