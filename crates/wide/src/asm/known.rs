//! Encodings that were made before. Most instructions of a function differ from an earlier one in nothing but where in memory they read or write: their
//! bytes are copied, and the displacement put in.

use std::sync::{Mutex, PoisonError};

use handloom_diag::hash::FastMap;
use iced_x86::Register;

use super::operand::{Base, Form, Ops, Rm, Writes};

/// All of an instruction but its displacement.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(u64, u64);

impl Key {
    #[inline]
    pub(super) fn new(form: Form, o: &Ops) -> Key {
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
        let (code, rounds, form) = (o.code as u64, o.round as u64, form as u64);
        let registers = [o.out.reg, o.out.mask, o.a, rm, index].map(|r| r as u8);
        let registers = registers.iter().fold(0, |all, r| all << 8 | u64::from(*r));
        Key(code << 40 | registers, u64::from(o.n) << 32 | more << 16 | rounds << 8 | form)
    }
}

/// Encodings of an instruction.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Without a displacement, or with one of which other bytes say what it is.
    plain: Option<Bytes>,
    /// With a displacement of one byte.
    short: Option<Bytes>,
    /// With one of four.
    long: Option<Bytes>,
    /// What one of one byte is a multiple of; 0 as long as that was not seen.
    unit: i32,
    writes: Writes,
}

/// An instruction in bytes.
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    /// The bytes, and more.
    pub(super) bytes: [u8; 16],
    pub(super) len: u8,
    /// Where the displacement begins, or the distance of a jump, if it has one.
    pub(super) at: u8,
}

/// A displacement of one byte is a multiple of this at most.
const MOST_UNIT: u32 = 64;

impl Bytes {
    /// With another displacement of one byte.
    fn short(mut self, displacement: i8) -> Bytes {
        self.bytes[usize::from(self.at)] = displacement.cast_unsigned();
        self
    }

    /// With another displacement of four bytes.
    fn long(mut self, displacement: i32) -> Bytes {
        self.bytes[usize::from(self.at)..][..4].copy_from_slice(&displacement.to_le_bytes());
        self
    }
}

impl Known {
    /// The bytes for a displacement, if they are known.
    #[inline]
    fn with(&self, displacement: i32) -> Option<Bytes> {
        if displacement == 0 {
            return self.plain;
        }
        if self.unit > 0
            && displacement % self.unit == 0
            && let Ok(short) = i8::try_from(displacement / self.unit)
        {
            return Some(self.short?.short(short));
        }
        let is_far = displacement.unsigned_abs() > 128 * MOST_UNIT;
        if self.unit > 0 || is_far { Some(self.long?.long(displacement)) } else { None }
    }
}

/// All that are known: by the function that is made, and by those that were made before it.
#[derive(Default)]
pub(super) struct Encodings(FastMap<Key, Known>);

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
        if self.0.len() < MOST {
            KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(self);
        }
    }

    /// An instruction with a displacement, and what it writes, if that is known.
    #[inline]
    pub(super) fn get(&self, key: Key, displacement: i32) -> Option<(Bytes, Writes)> {
        let known = self.0.get(&key)?;
        Some((known.with(displacement)?, known.writes))
    }

    /// Remembers an instruction with a displacement, of which it has a number of bytes.
    pub(super) fn add(&mut self, key: Key, (displacement, size): (i32, usize), made: Bytes, writes: Writes) {
        let known = self.0.entry(key).or_default();
        known.writes = writes;
        match (displacement, size) {
            (0, _) => known.plain = Some(made),
            (_, 1) => {
                known.short = Some(made);
                known.unit = displacement / i32::from(made.bytes[usize::from(made.at)].cast_signed());
            }
            _ => known.long = Some(made),
        }
    }
}
