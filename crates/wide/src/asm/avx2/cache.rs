//! What the registers of the host hold.

use iced_x86::{Code, Register};

use super::super::{Asm, Mem};
use super::state::{Value, number_of};

impl Asm {
    /// A register that nothing is in, for the expansion of the instruction.
    pub(super) fn temp(&mut self) -> Register {
        let cache = &self.n().cache;
        let free = (0..16).filter(|i| cache.pinned >> i & 1 == 0);
        // One that holds nothing, else the one that was used longest ago.
        let Some(i) = free.min_by_key(|i| (!cache.held[*i].values.is_empty(), cache.held[*i].used)) else {
            self.lacks("a bug: an expansion needs more registers than there are");
            return Register::YMM0;
        };
        self.evict(i);
        self.n().cache.touch(i)
    }

    /// A register holds nothing; slots get what it held.
    pub(super) fn evict(&mut self, i: usize) {
        let values = std::mem::take(&mut self.n().cache.held[i].values);
        let r = Register::YMM0 + i as u32;
        for (v, _) in values.iter().filter(|(_, changed)| *changed) {
            self.raw_store(Code::VEX_Vmovdqu_ymmm256_ymm, v.slot(), r);
        }
    }

    /// Whether half of a vector is read where it lies, and no register is to hold it.
    pub(super) fn reads_slot(&mut self, v: Value) -> bool {
        let n = self.n();
        let dies = matches!(v, Value::Half(v, _) if n.live >> (v - 8) & 1 == 0);
        n.cache.find(v).is_none() && (dies || n.cache.is_full())
    }

    /// A value in a register, which must not be written.
    pub(super) fn load(&mut self, v: Value) -> Register {
        if let Some(i) = self.n().cache.find(v) {
            return self.n().cache.touch(i);
        }
        let r = self.temp();
        self.raw2(Code::VEX_Vmovdqu_ymm_ymmm256, r, v.slot().into());
        self.n().cache.held[number_of(r)].values.push((v, false));
        r
    }

    /// A value is what a register has.
    pub(super) fn set(&mut self, v: Value, r: Register) {
        let cache = &mut self.n().cache;
        let held = &cache.held[number_of(r)].values;
        if held.iter().any(|(x, _)| *x == v) {
            return;
        }
        cache.forget(v);
        cache.held[number_of(r)].values.push((v, true));
    }

    /// Whether a register holds this value alone, so that it may be written for it.
    pub(super) fn holds_only(&mut self, r: Register, v: Value) -> bool {
        matches!(self.n().cache.held[number_of(r)].values[..], [(x, _)] if x == v)
    }

    /// What a register held is something else now.
    pub(super) fn changed(&mut self, r: Register) {
        self.n().cache.held[number_of(r)].values.iter_mut().for_each(|(_, changed)| *changed = true);
    }

    /// A value at its slot.
    pub(super) fn at_slot(&mut self, v: Value) -> Mem {
        if let Some(i) = self.n().cache.find(v) {
            let list = &mut self.n().cache.held[i].values;
            let changed = list.iter_mut().find(|(x, changed)| *x == v && *changed);
            if let Some((_, changed)) = changed {
                *changed = false;
                self.raw_store(Code::VEX_Vmovdqu_ymmm256_ymm, v.slot(), Register::YMM0 + i as u32);
            }
        }
        v.slot()
    }

    /// Gives slots of vectors what changed. (Masks end at the next label.)
    pub(super) fn write_back(&mut self) {
        for i in 0..16 {
            let r = Register::YMM0 + i as u32;
            let list = &mut self.n().cache.held[i].values;
            let mut changed = Vec::new();
            for (v, is_changed) in list.iter_mut() {
                if *is_changed && matches!(v, Value::Half(..)) {
                    *is_changed = false;
                    changed.push(*v);
                }
            }
            for v in changed {
                self.raw_store(Code::VEX_Vmovdqu_ymmm256_ymm, v.slot(), r);
            }
        }
    }
}
