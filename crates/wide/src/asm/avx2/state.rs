//! What is known while code for AVX2 is made, and the names of what it is made of.

use std::mem::offset_of;

use handloom_diag::hash::{FastMap, FastSet};
use handloom_plan::abi::CtaBlock;
use iced_x86::Register;

use super::super::operand::Mem;

/// The lanes of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lanes {
    /// Of 8 bits.
    B,
    /// Of 32 bits.
    D,
    /// Of 64 bits.
    Q,
}

/// What is known while code for AVX2 is made.
pub(crate) struct Narrow {
    pub(crate) cache: Cache,
    pub(crate) masks: [Mask; 8],
    /// Which of the vectors 0 to 7 have been written since the last end of an instruction.
    pub(crate) written: u8,
    /// By bit from vector 8 on, which of them somebody reads after the instruction of the SIMT IR that is being emitted, as far as that is known.
    pub(crate) live: u32,
    /// What could not be said in AVX2.
    pub(crate) lack: Option<String>,
    pub(crate) labels: Labels,
}

impl Default for Narrow {
    fn default() -> Narrow {
        Narrow {
            cache: Cache::default(),
            masks: Default::default(),
            written: 0,
            live: u32::MAX,
            lack: None,
            labels: Labels::default(),
        }
    }
}

/// Slots of masks after those of vectors, then words of masks, then what general registers are saved in, then bytes on their way.
pub(crate) const MASKS: i32 = 64 * 32;
pub(crate) const WORDS: i32 = MASKS + 32 * 32;
pub(crate) const SAVED: i32 = WORDS + 64;
pub(crate) const BYTES: i32 = SAVED + 64;
const _: () = assert!(BYTES as usize + 128 <= CtaBlock::VECTORS);

/// A place in the block of the CTA.
pub(crate) fn slot(at: i32) -> Mem {
    Mem::at(Register::RBX, offset_of!(CtaBlock, vectors) as i32 + at)
}

pub(crate) fn is_vector(r: Register) -> bool {
    r.is_vector_register() || r.is_k()
}

/// The number of a vector or mask register.
pub(crate) fn number_of(r: Register) -> usize {
    let first = if r.is_k() {
        Register::K0
    } else if r.is_xmm() {
        Register::XMM0
    } else if r.is_ymm() {
        Register::YMM0
    } else {
        Register::ZMM0
    };
    (r as usize).saturating_sub(first as usize)
}

/// A vector by its number, and the halves of it that a name of it means.
pub(crate) fn halves(r: Register) -> (u8, usize) {
    (number_of(r) as u8, if r.is_zmm() { 2 } else { 1 })
}

/// An operand of the emitters: for both halves.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    Vector(u8),
    Mem(Mem),
    /// One register of the host.
    Made(Register),
}

/// Something with a slot of 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    /// Half of a vector.
    Half(u8, u8),
    /// A form of a mask, by number.
    Mask(u8),
}

impl Value {
    pub(crate) fn slot(self) -> Mem {
        match self {
            Value::Half(v, h) => slot(64 * i32::from(v) + 32 * i32::from(h)),
            Value::Mask(id) => slot(MASKS + 32 * i32::from(id)),
        }
    }
}

#[derive(Default)]
pub(crate) struct Held {
    /// What it holds, and whether the slot has something else.
    pub(crate) values: Vec<(Value, bool)>,
    pub(crate) used: u32,
}

/// The sixteen registers.
#[derive(Default)]
pub(crate) struct Cache {
    pub(crate) held: [Held; 16],
    /// Registers that the expansion of the instruction uses.
    pub(crate) pinned: u16,
    pub(crate) now: u32,
}

impl Cache {
    /// A new instruction.
    pub(crate) fn begin(&mut self) {
        self.pinned = 0;
    }

    pub(crate) fn pins(&self) -> u16 {
        self.pinned
    }

    pub(crate) fn unpin(&mut self, to: u16) {
        self.pinned = to;
    }

    pub(crate) fn touch(&mut self, i: usize) -> Register {
        self.now += 1;
        self.held[i].used = self.now;
        self.pinned |= 1 << i;
        Register::YMM0 + i as u32
    }

    pub(crate) fn find(&self, v: Value) -> Option<usize> {
        self.held.iter().position(|h| h.values.iter().any(|(x, _)| *x == v))
    }

    /// Whether every register holds something.
    pub(crate) fn is_full(&self) -> bool {
        self.held.iter().all(|h| !h.values.is_empty())
    }

    pub(crate) fn forget(&mut self, v: Value) {
        self.held.iter_mut().for_each(|h| h.values.retain(|(x, _)| *x != v));
    }

    /// What registers hold, one value each.
    pub(crate) fn state(&self) -> Vec<(usize, Value)> {
        let half = |h: &Held| h.values.iter().map(|(v, _)| *v).find(|v| matches!(v, Value::Half(..)));
        self.held.iter().enumerate().filter_map(|(i, h)| Some((i, half(h)?))).collect()
    }

    /// With registers that hold what their slots have.
    pub(crate) fn of(state: &[(usize, Value)]) -> Cache {
        let mut cache = Cache::default();
        state.iter().for_each(|(i, v)| cache.held[*i].values.push((*v, false)));
        cache
    }

    pub(crate) fn has(&self, i: usize, v: Value) -> bool {
        self.held[i].values.iter().any(|(x, _)| *x == v)
    }

    /// A register holds a value alone, which its slot has.
    pub(crate) fn loaded(&mut self, i: usize, v: Value) {
        self.forget(v);
        self.held[i].values = vec![(v, false)];
    }

    /// Forgets vectors that nobody reads, by bit from vector 8 on.
    pub(crate) fn keep(&mut self, live: u32) {
        let lives = |v: &Value| match v {
            Value::Half(v, _) => *v >= 8 && live >> (v - 8) & 1 == 1,
            Value::Mask(_) => true,
        };
        self.held.iter_mut().for_each(|h| h.values.retain(|(v, _)| lives(v)));
    }

    /// Forgets masks but those of a set.
    pub(crate) fn keep_masks(&mut self, ids: u32) {
        let lives = |v: &Value| match v {
            Value::Half(..) => true,
            Value::Mask(id) => ids >> id & 1 == 1,
        };
        self.held.iter_mut().for_each(|h| h.values.retain(|(v, _)| lives(v)));
    }
}

/// What is known of a mask.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Mask {
    /// The word of a mask register, by its number, and its bit that is this mask's first.
    pub(crate) word: Option<(u8, u32)>,
    /// As lanes of 32 bits, eight to a piece.
    pub(crate) d: Pieces,
    /// As lanes of 64 bits, four to a piece.
    pub(crate) q: Pieces,
    /// As lanes of 8 bits, 32 to a piece.
    pub(crate) b: Pieces,
}

/// Up to eight vectors, by the number of their values.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Pieces {
    pub(crate) ids: [u8; 8],
    pub(crate) n: usize,
}

impl Pieces {
    pub(crate) fn push(&mut self, id: u8) {
        if self.n < 8 {
            self.ids[self.n] = id;
            self.n += 1;
        }
    }

    pub(crate) fn list(&self) -> &[u8] {
        &self.ids[..self.n]
    }

    /// These, then others.
    pub(crate) fn and(mut self, others: Pieces) -> Pieces {
        others.list().iter().for_each(|id| self.push(*id));
        self
    }
}

impl Mask {
    /// All masks where code comes from anywhere.
    pub(crate) fn after_a_label() -> [Mask; 8] {
        std::array::from_fn(|k| Mask { word: (1..=4).contains(&k).then(|| (1, 8 * (k as u32 - 1))), ..Mask::default() })
    }

    pub(crate) fn pieces(&mut self, lanes: Lanes) -> &mut Pieces {
        match lanes {
            Lanes::B => &mut self.b,
            Lanes::D => &mut self.d,
            Lanes::Q => &mut self.q,
        }
    }

    pub(crate) fn of(lanes: Lanes, pieces: Pieces) -> Mask {
        let mut mask = Mask::default();
        *mask.pieces(lanes) = pieces;
        mask
    }

    pub(crate) fn ids(&self) -> u32 {
        [self.d, self.q, self.b].iter().flat_map(|p| p.list()).fold(0, |m, id| m | 1 << id)
    }
}

/// Registers by number, and what they hold.
pub(crate) type State = Vec<(usize, Value)>;

#[derive(Default)]
pub(crate) struct Labels {
    /// By label that is not put: what all jumps to it found.
    pub(crate) arrivals: FastMap<usize, State>,
    /// By label that is put, if it is anything.
    pub(crate) put: FastMap<usize, State>,
    /// Whose address is taken: code comes there from anywhere.
    pub(crate) named: FastSet<usize>,
    /// Whether nothing comes to the code here but through a label.
    pub(crate) is_dead_end: bool,
}
