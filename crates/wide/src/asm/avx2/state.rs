//! What is known while code for AVX2 is made, and the names of what it is made of.

use std::mem::offset_of;

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
    pub(crate) words: Words,
    /// Numbers of pieces of masks that are in use.
    pub(crate) ids: u32,
    /// Whether there may be some that are of no mask any more.
    pub(crate) has_stale_masks: bool,
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
            words: Words::default(),
            ids: 0,
            has_stale_masks: false,
            written: 0,
            live: u32::MAX,
            lack: None,
            labels: Labels::default(),
        }
    }
}

impl Narrow {
    /// The numbers of the pieces of all masks.
    pub(crate) fn ids_of_masks(&self) -> u32 {
        self.masks.iter().fold(0, |m, k| m | k.ids())
    }

    /// Code comes from elsewhere, and registers hold that much: no more is known.
    pub(crate) fn restart(&mut self, cache: Cache) {
        self.cache = cache;
        self.masks = Mask::after_a_label();
        self.words.clear();
        self.ids = 0;
    }
}

/// Slots of values by their numbers, those of masks after those of vectors, then words of masks, then what general registers are saved in, then bytes on their way.
pub(crate) const MASKS: i32 = 64 * 32;
pub(crate) const WORDS: i32 = MASKS + 32 * 32;
pub(crate) const SAVED: i32 = WORDS + 64;
pub(crate) const BYTES: i32 = SAVED + 64;
const _: () = assert!(BYTES as usize + 128 <= CtaBlock::VECTORS);
// A displacement of one byte reaches none of them.
const _: () = assert!(offset_of!(CtaBlock, vectors) > i8::MAX as usize);

/// A place in the block of the CTA.
pub(crate) fn slot(at: i32) -> Mem {
    Mem::at(Register::RBX, offset_of!(CtaBlock, vectors) as i32 + at)
}

pub(crate) fn is_vector(r: Register) -> bool {
    r.is_vector_register() || r.is_k()
}

/// The registers of the host.
const HOST: [Register; 16] = {
    use Register::*;
    [YMM0, YMM1, YMM2, YMM3, YMM4, YMM5, YMM6, YMM7, YMM8, YMM9, YMM10, YMM11, YMM12, YMM13, YMM14, YMM15]
};

/// One of the sixteen registers of the host.
#[inline]
pub(crate) fn host(i: usize) -> Register {
    HOST[i % 16]
}

/// By register, its number among vectors of its width or among masks; 0 for others.
static NUMBERS: [u8; 256] = {
    let mut numbers = [0; 256];
    let mut r = Register::XMM0 as usize;
    while r <= Register::ZMM31 as usize {
        numbers[r] = ((r - Register::XMM0 as usize) % 32) as u8;
        r += 1;
    }
    let mut k = 0;
    while k < 8 {
        numbers[Register::K0 as usize + k] = k as u8;
        k += 1;
    }
    numbers
};

/// The number of a vector or mask register.
#[inline]
pub(crate) fn number_of(r: Register) -> usize {
    usize::from(NUMBERS[usize::from(r as u8)])
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

/// Something with a slot of 32 bytes, by its number: half of a vector, or a form of a mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Value(u8);

impl Value {
    /// Half of a vector.
    pub(crate) fn half(v: u8, h: u8) -> Value {
        Value(2 * v + h)
    }

    /// A form of a mask, by number.
    pub(crate) fn mask(id: u8) -> Value {
        Value(FIRST_MASK as u8 + id)
    }

    /// Among all values.
    #[inline]
    pub(crate) fn number(self) -> u32 {
        u32::from(self.0)
    }

    /// The value with a number.
    pub(crate) fn of(number: u32) -> Value {
        Value(number as u8)
    }

    /// The vector that it is half of.
    pub(crate) fn vector(self) -> Option<u8> {
        (self.number() < FIRST_MASK).then_some(self.0 / 2)
    }

    pub(crate) fn slot(self) -> Mem {
        slot(32 * i32::from(self.0))
    }
}

/// Values by their numbers, as bits.
pub(crate) type Values = u128;

/// The values that are halves of vectors.
pub(crate) const HALVES: Values = (1 << FIRST_MASK) - 1;

/// Masks by their numbers.
pub(crate) fn mask_values(ids: u32) -> Values {
    Values::from(ids) << FIRST_MASK
}

/// The halves of vectors 0 to 7.
const TEMPORARIES: Values = (1 << 16) - 1;

/// The number of the first mask among values: that of a half is twice the number of its vector, and which half it is.
const FIRST_MASK: u32 = 64;

/// Values that there are.
const VALUES: usize = 96;

/// Where a value is that no register holds.
const NOWHERE: u8 = 16;

/// The sixteen registers.
pub(crate) struct Cache {
    /// What each holds.
    held: [Values; 16],
    /// By value, the register that holds it.
    place: [u8; VALUES],
    /// Values that registers hold and slots do not.
    pub(crate) changed: Values,
    /// Values that are in registers.
    present: Values,
    /// Registers that hold something.
    full: u16,
    /// Registers that the expansion of the instruction uses.
    pinned: u16,
    /// The registers, four bits for each, from the lowest on in the order in which they were used last.
    order: u64,
    /// Where the next one that holds nothing is looked for first.
    next: u32,
}

impl Default for Cache {
    fn default() -> Cache {
        Cache {
            held: [0; 16],
            place: [NOWHERE; VALUES],
            changed: 0,
            present: 0,
            full: 0,
            pinned: 0,
            order: 0xfedc_ba98_7654_3210,
            next: 0,
        }
    }
}

/// Both halves of some vectors by bit: each bit twice.
#[inline]
fn halves_of(vectors: u32) -> Values {
    // Bits go apart by halves, quarters and so on of the word.
    const STEPS: [(u32, u64); 5] = [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ];
    let apart = STEPS.iter().fold(u64::from(vectors), |bits, (by, mask)| (bits | bits << by) & mask);
    Values::from(apart | apart << 1)
}

/// The numbers of some values.
pub(crate) fn each_of(mut values: Values) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let next = (values != 0).then(|| values.trailing_zeros())?;
        values &= values - 1;
        Some(next)
    })
}

/// Numbers of four bits each, with one of them last.
#[inline]
fn last_in(order: u64, i: u64) -> u64 {
    const ONES: u64 = 0x1111_1111_1111_1111;
    // The lowest four bits that are zero here are where it is.
    let others = order ^ (ONES * i);
    let at = (others.wrapping_sub(ONES) & !others & (8 * ONES)).trailing_zeros() - 3;
    let before = order & ((1 << at) - 1);
    before | (order >> at >> 4) << at | i << 60
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
        self.order = last_in(self.order, i as u64);
        self.pinned |= 1 << i;
        host(i)
    }

    /// The register for something new: one that holds nothing, else the one that was used longest ago. `None` if the expansion uses all.
    pub(crate) fn oldest(&mut self) -> Option<usize> {
        let empty = !self.full & !self.pinned;
        if empty != 0 {
            // In turn: if it were the lowest one always, ways to a label would hold different things in it.
            let i = (empty.rotate_right(self.next).trailing_zeros() + self.next) % 16;
            self.next = i + 1;
            return Some(i as usize);
        }
        (0..16).map(|at| (self.order >> (4 * at)) as usize & 15).find(|i| self.pinned >> i & 1 == 0)
    }

    pub(crate) fn find(&self, v: Value) -> Option<usize> {
        let i = self.place[v.number() as usize];
        (i != NOWHERE).then_some(usize::from(i))
    }

    /// Whether registers hold all pieces of a mask.
    pub(crate) fn has_all(&self, pieces: Pieces) -> bool {
        mask_values(pieces.ids()) & !self.present == 0
    }

    /// Whether every register holds something.
    pub(crate) fn is_full(&self) -> bool {
        self.full == u16::MAX
    }

    /// Whether a register holds a value.
    pub(crate) fn has(&self, i: usize, v: Value) -> bool {
        usize::from(self.place[v.number() as usize]) == i
    }

    /// What a register holds.
    pub(crate) fn held(&self, i: usize) -> Values {
        self.held[i]
    }

    /// A register holds a value too. `changed`: its slot has something else.
    pub(crate) fn hold(&mut self, i: usize, v: Value, changed: bool) {
        self.forget(v);
        let bit = 1 << v.number();
        self.held[i] |= bit;
        self.place[v.number() as usize] = i as u8;
        self.present |= bit;
        self.full |= 1 << i;
        if changed {
            self.changed |= bit;
        }
    }

    /// No register holds a value.
    #[inline]
    pub(crate) fn forget(&mut self, v: Value) {
        let Some(i) = self.find(v) else { return };
        let others = !(1 << v.number());
        self.place[v.number() as usize] = NOWHERE;
        self.held[i] &= others;
        self.present &= others;
        self.changed &= others;
        if self.held[i] == 0 {
            self.full &= !(1 << i);
        }
    }

    /// A register holds nothing.
    pub(crate) fn empty(&mut self, i: usize) {
        let held = std::mem::take(&mut self.held[i]);
        each_of(held).for_each(|v| self.place[v as usize] = NOWHERE);
        self.present &= !held;
        self.changed &= !held;
        self.full &= !(1 << i);
    }

    /// No register holds any of some values.
    pub(crate) fn forget_all(&mut self, values: Values) {
        let values = values & self.present;
        for v in each_of(values) {
            let i = usize::from(std::mem::replace(&mut self.place[v as usize], NOWHERE));
            self.held[i] &= !(1 << v);
            if self.held[i] == 0 {
                self.full &= !(1 << i);
            }
        }
        self.present &= !values;
        self.changed &= !values;
    }

    /// Halves of vectors that registers hold, one for each.
    pub(crate) fn state(&self) -> State {
        let mut state = State::NOTHING;
        for (values, half) in self.held.iter().zip(&mut state.0) {
            let halves = (values & HALVES) as u64;
            if halves != 0 {
                // Of vectors 0 to 7 hardly any is read behind a label.
                let lasting = halves & !(TEMPORARIES as u64);
                *half = if lasting != 0 { lasting } else { halves }.trailing_zeros() as u8;
            }
        }
        state
    }

    /// With registers that hold what their slots have.
    pub(crate) fn of(state: State) -> Cache {
        let mut cache = Cache::default();
        state.list().for_each(|(i, v)| cache.hold(i, v, false));
        cache
    }

    /// Forgets vectors that nobody reads, by bit from vector 8 on.
    pub(crate) fn keep(&mut self, live: u32) {
        let dead = self.present & HALVES & !(halves_of(live) << 16);
        self.forget_all(dead);
    }

    /// Forgets masks but those of a set.
    pub(crate) fn keep_masks(&mut self, ids: u32) {
        self.forget_all(self.present & !HALVES & !mask_values(ids));
    }
}

/// By register of the host, which half it holds.
#[derive(Clone, Copy)]
pub(crate) struct State([u8; 16]);

/// In a state: none.
const NO_HALF: u8 = u8::MAX;

impl State {
    /// Nothing is in registers.
    pub(crate) const NOTHING: State = State([NO_HALF; 16]);

    /// What registers hold here and there.
    pub(crate) fn both(self, other: State) -> State {
        State(std::array::from_fn(|i| if self.0[i] == other.0[i] { self.0[i] } else { NO_HALF }))
    }

    pub(crate) fn is_nothing(self) -> bool {
        self.list().next().is_none()
    }

    /// Registers by number, and what they hold.
    pub(crate) fn list(self) -> impl Iterator<Item = (usize, Value)> {
        let halves = self.0.into_iter().enumerate().filter(|(_, n)| *n != NO_HALF);
        halves.map(|(i, n)| (i, Value::of(u32::from(n))))
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
    pub(crate) n: u32,
    /// Their numbers, as bits.
    bits: u32,
}

impl Pieces {
    pub(crate) fn push(&mut self, id: u8) {
        if self.n < 8 {
            self.ids[self.n as usize] = id;
            self.n += 1;
            self.bits |= 1 << id;
        }
    }

    pub(crate) fn of(list: &[u8]) -> Pieces {
        let mut pieces = Pieces::default();
        list.iter().for_each(|id| pieces.push(*id));
        pieces
    }

    /// One vector twice.
    pub(crate) fn twice(id: u8) -> Pieces {
        Pieces { ids: [id; 8], n: 2, bits: 1 << id }
    }

    pub(crate) fn list(&self) -> &[u8] {
        &self.ids[..self.n as usize]
    }

    /// Their numbers, as bits.
    pub(crate) fn ids(&self) -> u32 {
        self.bits
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
        self.d.ids() | self.q.ids() | self.b.ids()
    }
}

/// Sixteen or eight lanes of a word in the context of the warp, as two vectors of lanes of 32 or 64 bits.
#[derive(Clone, Copy)]
pub(crate) struct Word {
    /// Where its bits are: bytes from the context on.
    pub(crate) at: i32,
    pub(crate) lanes: Lanes,
    pub(crate) pieces: Pieces,
}

/// Words whose lanes registers hold, the last ones last. Their pieces are never written to slots: making them anew takes as long as that.
#[derive(Default)]
pub(crate) struct Words(Vec<Word>);

/// More words than this are not remembered: they would be most of what registers hold.
const MOST_WORDS: usize = 4;

impl Words {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The lanes of a word.
    pub(crate) fn find(&self, at: i32, lanes: Lanes) -> Option<Word> {
        self.0.iter().find(|w| w.at == at && w.lanes == lanes).copied()
    }

    pub(crate) fn add(&mut self, word: Word) {
        self.0.retain(|w| w.at != word.at || w.lanes != word.lanes);
        if self.0.len() == MOST_WORDS {
            self.0.remove(0);
        }
        self.0.push(word);
    }

    /// Forgets those that lie in so many bytes.
    pub(crate) fn written(&mut self, at: i32, bytes: i32) {
        self.0.retain(|w| w.at >= at + bytes || w.at + 2 <= at);
    }

    /// Forgets all others.
    pub(crate) fn retain(&mut self, stays: impl Fn(&Word) -> bool) {
        self.0.retain(stays);
    }

    /// The numbers of their pieces.
    pub(crate) fn ids(&self) -> u32 {
        self.0.iter().fold(0, |m, w| m | w.pieces.ids())
    }
}

/// What is known of a label.
#[derive(Clone, Copy)]
pub(crate) struct AtLabel {
    /// Until it is put: what all jumps to it found.
    pub(crate) arrivals: Option<State>,
    /// Once it is put: what registers hold there.
    pub(crate) put: State,
    /// Whether its address is taken: code comes there from anywhere.
    pub(crate) is_named: bool,
}

#[derive(Default)]
pub(crate) struct Labels {
    /// By label, as far as somebody asked.
    of: Vec<AtLabel>,
    /// Whether nothing comes to the code here but through a label.
    pub(crate) is_dead_end: bool,
}

impl Labels {
    /// What is known of a label, by its number.
    #[inline]
    pub(crate) fn of(&mut self, label: usize) -> &mut AtLabel {
        if self.of.len() <= label {
            const NEW: AtLabel = AtLabel { arrivals: None, put: State::NOTHING, is_named: false };
            self.of.resize((label + 1).next_multiple_of(64), NEW);
        }
        &mut self.of[label]
    }
}
