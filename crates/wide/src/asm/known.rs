//! Encodings that were made before. Most instructions of a function differ from an earlier one in nothing but their vectors, and where in memory they read
//! or write: its bytes are copied, the numbers of the vectors and the displacement put in.

use std::sync::{Mutex, PoisonError};

use handloom_diag::hash::FastMap;
use iced_x86::{Code, Register};

use super::operand::{Base, Form, Lows, Ops, Rm, Writes};
use super::parts::Codes;

/// All of an instruction but its displacement, and which of eight its vectors are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(u64, u64);

/// By register, which of eight vectors it is; 0 for others.
static LOWS: [u8; 256] = {
    let mut lows = [0; 256];
    let mut r = Register::XMM0 as usize;
    while r <= Register::ZMM31 as usize {
        lows[r] = ((r - Register::XMM0 as usize) % 8) as u8;
        r += 1;
    }
    lows
};

impl Key {
    /// The key of operands, and which of eight their vectors are.
    #[inline]
    pub(super) fn new(form: Form, o: &Ops) -> (Key, Lows) {
        let (rm, index, more) = match o.rm {
            Rm::Reg(r) => (r, Register::None, 0),
            Rm::Mem(m) => {
                let base = match m.base {
                    Base::Reg(r) => r,
                    Base::Const(_) | Base::Label(_) => Register::RIP,
                };
                (base, m.index, 1 | u64::from(m.scale) << 1 | u64::from(m.spread) << 5)
            }
        };
        let low = |r: Register| LOWS[usize::from(r as u8)];
        // One of them is no vector.
        let (out, a, third) = (low(o.out.reg), low(o.a), low(rm) | low(index));
        let fourth = if form == Form::Choice { o.n % 8 } else { 0 };
        let first = |r: Register| u64::from(r as u8 - low(r));
        let registers =
            first(o.out.reg) << 32 | (o.out.mask as u64) << 24 | first(o.a) << 16 | first(rm) << 8 | first(index);
        let (code, rounds, form) = (o.code as u64, o.round as u64, form as u64);
        let more = u64::from(o.n - fourth) << 32 | more << 16 | rounds << 8 | form;
        (Key(code << 40 | registers, more), [out, a, third, fourth as u8])
    }
}

/// Encodings of an instruction.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Of each kind there is none as long as it has no bytes. Without a displacement, or with one of which other bytes say what it is.
    plain: Bytes,
    /// With a displacement of one byte, which is zero here.
    short: Bytes,
    /// With one of four.
    long: Bytes,
    /// Of what power of two one of one byte is a multiple, once that was seen.
    unit: u32,
    /// Which displacement the one of four bytes was made with.
    far: i32,
    /// Which vectors all of them have.
    of: Lows,
    /// Where those stand, as soon as others were asked for.
    places: Option<Places>,
    /// With the first vectors.
    writes: Writes,
}

/// What is known of an instruction.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// The vectors that it was made with.
    pub(super) of: Lows,
    /// Whether others can be put in.
    pub(super) is_placed: bool,
    /// Whether it was made with a displacement of one byte, so that is known which displacements have one.
    pub(super) has_short: bool,
}

/// By operand, the bit of an instruction where the three bits begin that say which of eight a vector is. They are turned around in some.
#[derive(Clone, Copy, Default)]
pub(super) struct Places([u8; 4]);

/// By operand, by what its bits differ in the two instructions that [`Places::between`] compares.
pub(super) const DIFFERENCE: Lows = [1, 2, 4, 7];

impl Places {
    /// Compares two encodings that differ in which vectors the operands are that are vectors, by [`DIFFERENCE`].
    pub(super) fn between(one: Bytes, other: Bytes, are_vectors: [bool; 4]) -> Result<Places, String> {
        let bug = || format!("bug: {:x} and {:x} do not tell where vectors stand", one.bits(), other.bits());
        let byte = |i: u32| (one.bits() >> (8 * i)) as u8;
        // Behind the prefix are the opcode and how the operands are addressed.
        let (second, operands) = match byte(0) {
            0xc5 => (1, 3),
            0xc4 => (2, 4),
            0x62 => (2, 5),
            _ => return Err(bug()),
        };
        let has_index = byte(operands) >> 6 != 3 && byte(operands) & 7 == 4;
        let index = has_index.then_some(8 * (operands + 1) + 3);
        let fourth = are_vectors[3].then_some(8 * u32::from(one.len - 1) + 4);
        let fields = [Some(8 * second + 3), Some(8 * operands + 3), Some(8 * operands), index, fourth];
        let mut differ = one.bits() ^ other.bits();
        let mut found = [false; 4];
        let mut places = Places::default();
        for at in fields.into_iter().flatten() {
            let bits = (differ >> at) as u8 & 7;
            if let Some(operand) = DIFFERENCE.iter().position(|d| *d == bits) {
                differ ^= u128::from(bits) << at;
                places.0[operand] = at as u8;
                found[operand] = true;
            }
        }
        if differ == 0 && found == are_vectors { Ok(places) } else { Err(bug()) }
    }
}

/// An instruction in bytes, of which there are up to 16: the first eight, and the others.
#[derive(Clone, Copy, Default)]
pub(super) struct Bytes {
    low: u64,
    high: u64,
    pub(super) len: u8,
    /// Where the displacement begins, or the distance of a jump, if it has one.
    pub(super) at: u8,
}

/// A displacement of one byte is a multiple of this at most, or of half of it, and so on.
pub(super) const MOST_UNIT: u32 = 64;

impl Bytes {
    /// Bytes, the rest zero.
    pub(super) fn new(bytes: &[u8], at: usize) -> Bytes {
        let mut all = [0; 16];
        all[..bytes.len()].copy_from_slice(bytes);
        Bytes::of_bits(u128::from_le_bytes(all), bytes.len() as u8, at as u8)
    }

    /// So many of some bytes.
    #[inline]
    pub(super) fn of_bits(bits: u128, len: u8, at: u8) -> Bytes {
        Bytes { low: bits as u64, high: (bits >> 64) as u64, len, at }
    }

    #[inline]
    pub(super) fn bits(self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.low)
    }

    /// With some bits turned around.
    #[inline]
    fn changed(self, bits: u128) -> Bytes {
        Bytes { low: self.low ^ bits as u64, high: self.high ^ (bits >> 64) as u64, ..self }
    }

    /// With other vectors.
    #[inline]
    fn with(self, places: Places, from: Lows, to: Lows) -> Bytes {
        // All but the fourth are in the first bytes.
        let bits = |i: usize| u64::from(from[i] ^ to[i]) << (places.0[i] % 64);
        let low = self.low ^ bits(0) ^ bits(1) ^ bits(2);
        let made = Bytes { low, ..self };
        if from[3] == to[3] { made } else { made.changed(u128::from(from[3] ^ to[3]) << (places.0[3] % 128)) }
    }

    /// With a displacement in bytes that have the other one.
    #[inline]
    fn displaced(self, from: u32, to: u32) -> Bytes {
        self.changed(u128::from(from ^ to) << (8 * self.at % 128))
    }
}

impl Known {
    /// The bytes for a displacement, if they are known.
    #[inline]
    fn with(&self, displacement: i32) -> Option<Bytes> {
        let has = |b: Bytes| (b.len > 0).then_some(b);
        if displacement == 0 {
            return has(self.plain);
        }
        let has_short = self.short.len > 0;
        let in_units = displacement >> self.unit;
        if has_short
            && in_units << self.unit == displacement
            && let Ok(short) = i8::try_from(in_units)
        {
            return Some(self.short.displaced(0, u32::from(short.cast_unsigned())));
        }
        let is_far = displacement.unsigned_abs() > 128 * MOST_UNIT;
        let known = has_short || is_far || displacement == self.far;
        has(self.long).filter(|_| known).map(|b| b.displaced(0, displacement.cast_unsigned()))
    }
}

/// All that are known: by the function that is made, and by those that were made before it.
#[derive(Default)]
pub(super) struct Encodings {
    known: Vec<Known>,
    /// By key, which of them it is: such a map grows faster.
    numbers: FastMap<Key, u32>,
    /// What is known of instructions that are made of their parts.
    pub(super) codes: Codes,
    /// Jumps and calls, whose distances are put in when all code is there.
    jumps: Vec<(Code, Bytes)>,
}

/// As many as functions were made at one time.
static KEPT: Mutex<Vec<Encodings>> = Mutex::new(Vec::new());

/// So many encodings, and more, are forgotten with the function.
const MOST: usize = 8192;

impl Encodings {
    /// Those of a function that was made before, if nobody has them.
    pub(super) fn take() -> Encodings {
        KEPT.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Keeps them for another function.
    pub(super) fn keep(self) {
        if self.known.len() < MOST {
            KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(self);
        }
    }

    /// A jump or call.
    pub(super) fn jump(&self, code: Code) -> Option<Bytes> {
        self.jumps.iter().find(|(known, _)| *known == code).map(|(_, made)| *made)
    }

    /// Remembers a jump or call.
    pub(super) fn add_jump(&mut self, code: Code, made: Bytes) {
        if self.jump(code).is_none() {
            self.jumps.push((code, made));
        }
    }

    /// What is known for a key, to be changed.
    fn known(&mut self, key: Key) -> &mut Known {
        let at = *self.numbers.entry(key).or_insert_with(|| {
            self.known.push(Known::default());
            self.known.len() as u32 - 1
        });
        &mut self.known[at as usize]
    }

    /// An instruction with a displacement and vectors, and what it writes, if that is known.
    #[inline(always)]
    pub(super) fn get(&self, key: Key, displacement: i32, form: Form, lows: Lows) -> Option<(Bytes, Writes)> {
        let known = self.known.get(*self.numbers.get(&key)? as usize)?;
        let made = known.with(displacement)?;
        let made = if lows == known.of { made } else { made.with(known.places?, known.of, lows) };
        Some((made, known.writes.with(form, lows)))
    }

    /// What is known of an instruction that was made with any displacement and vectors.
    pub(super) fn seen(&self, key: Key) -> Option<Seen> {
        let known = self.known.get(*self.numbers.get(&key)? as usize)?;
        Some(Seen { of: known.of, is_placed: known.places.is_some(), has_short: known.short.len > 0 })
    }

    /// Remembers an instruction with a displacement, of which it has a number of bytes, and the vectors that all of that key are made with.
    pub(super) fn add(&mut self, key: Key, of: Lows, displacement: i32, (made, size): (Bytes, usize)) {
        let known = self.known(key);
        known.of = of;
        let here = displacement.cast_unsigned();
        match (displacement, size) {
            (0, _) => known.plain = made,
            (_, 1) => {
                let short = (made.bits() >> (8 * made.at)) as u8;
                known.short = made.displaced(u32::from(short), 0);
                known.unit = (displacement / i32::from(short.cast_signed())).trailing_zeros();
            }
            _ => (known.long, known.far) = (made.displaced(here, 0), displacement),
        }
    }

    /// Notes where the vectors of an instruction stand.
    pub(super) fn place(&mut self, key: Key, places: Places) {
        self.known(key).places = Some(places);
    }

    /// Notes what an instruction writes whose vectors are the first of each eight.
    pub(super) fn writes(&mut self, key: Key, writes: Writes) {
        self.known(key).writes = writes;
    }
}
