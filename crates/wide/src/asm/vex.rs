//! Instructions with a VEX prefix, which is nearly all that code for AVX2 does with vectors: made of their parts, as soon as the encoder has shown what is
//! the same in all instructions of a code.
//!
//! # Invariants
//! - An order of operands is taken for that of a code only if it alone makes the bytes that the encoder makes, of two instructions in which all vectors differ.
//! - Operands of other kinds than those are not made here, so that the encoder says what is wrong with them.

use iced_x86::{Register, RoundingControl};

use super::known::Bytes;
use super::operand::{Base, Form, Mem, Ops, Rm};

/// The fields that operands are in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// `out` in `reg`, `a` in the prefix.
    Plain,
    /// `out` in the prefix, more of the code in `reg`.
    Counted,
    /// `out` in the field of `rm`, and `rm` in `reg`.
    Turned,
}

/// What all instructions of a code have, with a register or with memory as `rm`.
#[derive(Clone, Copy)]
pub(super) struct Vex {
    form: Form,
    order: Order,
    opcode: u8,
    /// The map of the opcode.
    map: u8,
    /// The last byte of the prefix, without a register.
    last: u8,
    /// What of the code is in `reg`.
    more: u8,
    /// The first registers of the kinds that `out`, `a` and `rm` are of.
    firsts: [u8; 3],
    written: Written,
}

/// Vectors of two instructions that tell where each stands.
pub(super) const PROBES: [[u8; 4]; 2] = [[1, 2, 4, 7], [6, 5, 3, 0]];

/// The memory that such instructions have.
pub(super) fn probed(o: Ops) -> Ops {
    match o.rm {
        Rm::Reg(_) => o,
        Rm::Mem(_) => Ops { rm: Mem::at(Register::RBX, 64).into(), ..o },
    }
}

/// The number of a register among those of a kind.
#[inline]
fn number(r: Register, first: u8) -> Option<u32> {
    let n = (r as u8).wrapping_sub(first);
    (n < 16).then_some(u32::from(n))
}

/// The first register of the kind.
fn first_of(r: Register) -> Register {
    use Register::{EAX, K0, RAX, XMM0, YMM0};
    let of = |first: Register| number(r, first as u8).is_some();
    [XMM0, YMM0, EAX, RAX].into_iter().find(|first| of(*first)).unwrap_or(if r.is_k() { K0 } else { r })
}

/// Whether operands are such as are made here.
#[inline]
fn is_plain(o: &Ops) -> bool {
    o.out.mask == Register::None && o.round == RoundingControl::None && o.mem().is_none_or(|m| !m.is_spread())
}

/// Whether an instruction may be one that is made here, if it has the prefix.
pub(super) fn may_be_made(form: Form, o: &Ops) -> bool {
    use Form::{Choice, Store, StoreSome, Three, ThreeNumber, Two, TwoNumber};
    matches!(form, Two | TwoNumber | Three | ThreeNumber | Store | StoreSome | Choice)
        && is_plain(o)
        && o.mem().is_none_or(|m| !m.index.is_vector_register())
}

/// How an instruction says what `rm` is.
struct Address {
    /// The byte with the fields `reg` and `rm`, without `reg`, and the one behind it, if there is one.
    bytes: u64,
    n_bytes: u32,
    /// The highest bits of the index and of the base.
    high: u32,
    /// Bytes of the displacement.
    size: u32,
}

impl Address {
    #[inline(always)]
    fn of_register(n: u32) -> Address {
        Address { bytes: u64::from(0xc0 | n & 7), n_bytes: 1, high: n >> 3 << 5, size: 0 }
    }

    #[inline(always)]
    fn of(m: Mem, displacement: i32) -> Option<Address> {
        let base = match m.base {
            Base::Reg(r) => number(r, Register::RAX as u8)?,
            Base::Const(_) | Base::Label(_) => return Some(Address { bytes: 0x05, n_bytes: 1, high: 0, size: 4 }),
        };
        // Without one, `rbp` and `r13` would mean something else.
        let (size, mode) = match i8::try_from(displacement) {
            Ok(0) if base & 7 != 5 => (0, 0),
            Ok(_) => (1, 0x40),
            Err(_) => (4, 0x80),
        };
        if m.index == Register::None {
            let has_two = base & 7 == 4;
            let second = if has_two { 0x2400 } else { 0 };
            let bytes = u64::from(mode | base & 7 | second);
            return Some(Address { bytes, n_bytes: 1 + u32::from(has_two), high: base >> 3 << 5, size });
        }
        let index = number(m.index, Register::RAX as u8).filter(|_| m.index != Register::RSP)?;
        let second = m.scale.trailing_zeros() << 6 | (index & 7) << 3 | base & 7;
        let high = index >> 3 << 6 | base >> 3 << 5;
        Some(Address { bytes: u64::from(mode | 4 | second << 8), n_bytes: 2, high, size })
    }
}

impl Vex {
    /// What two instructions of a form, made by the encoder, show of their code, if it can be made here.
    pub(super) fn of(form: Form, made: [(Ops, Bytes); 2]) -> Option<Vex> {
        let (o, bytes) = made[0];
        let byte = |i: u32| (bytes.bits() >> (8 * i)) as u8;
        // The map and the last byte of the prefix, with what a register is that is zero.
        let (map, last, opcode) = match byte(0) {
            0xc5 => (1, byte(1) & 0x7f, 2),
            0xc4 => (byte(1) & 0x1f, byte(2), 3),
            _ => return None,
        };
        let rm = match o.rm {
            Rm::Reg(r) => first_of(r),
            Rm::Mem(_) => Register::None,
        };
        let firsts = [first_of(o.out.reg), first_of(o.a), rm].map(|r| r as u8);
        let (more, written) = (byte(opcode + 1) >> 3 & 7, Written::of(form, o.out.reg));
        let known = |order| Vex { form, order, opcode: byte(opcode), map, last: last | 0x78, more, firsts, written };
        let makes = |vex: &Vex| {
            made.iter().all(|(o, bytes)| {
                let displacement = o.mem().map_or(0, |m| m.at);
                vex.with(form, o, displacement).is_some_and(|own| {
                    let bits = u128::from(own.start) | u128::from(own.end) << (8 * own.at);
                    bits == bytes.bits() && own.at + own.more == bytes.len
                })
            })
        };
        let mut right = [Order::Plain, Order::Counted, Order::Turned].map(known).into_iter().filter(makes);
        let vex = right.next()?;
        right.next().is_none().then_some(vex)
    }

    /// An instruction of the code, if its operands are of the kinds that are known.
    #[inline(always)]
    fn with(&self, form: Form, o: &Ops, displacement: i32) -> Option<Made> {
        if form != self.form || !is_plain(o) {
            return None;
        }
        let (out, a) = (number(o.out.reg, self.firsts[0])?, number(o.a, self.firsts[1])?);
        let (third, address) = match o.rm {
            Rm::Reg(r) => {
                let n = number(r, self.firsts[2])?;
                (n, Address::of_register(n))
            }
            Rm::Mem(m) => (0, Address::of(m, displacement)?),
        };
        let (reg, also, address) = match self.order {
            Order::Plain => (out, a, address),
            Order::Counted => (u32::from(self.more), out, address),
            Order::Turned => (third, a, Address::of_register(out)),
        };
        let (number, has_number) = match form {
            Form::TwoNumber | Form::ThreeNumber => (u8::try_from(o.n).ok()?, 1),
            Form::Choice => ((o.n as u8 & 15) << 4, 1),
            _ => (0, 0),
        };
        let last = u32::from(self.last) ^ also << 3;
        let high = reg >> 3 << 7 | address.high;
        let (prefix, n_prefix) = if self.map == 1 && (last & 0x80) | (high & 0x60) == 0 {
            (0xc5 | (last | high ^ 0x80) << 8, 2)
        } else {
            (0xc4 | (high ^ 0xe0 | u32::from(self.map)) << 8 | last << 16, 3)
        };
        let operands = address.bytes | u64::from(reg & 7) << 3;
        let start = u64::from(prefix) | (u64::from(self.opcode) | operands << 8) << (8 * n_prefix);
        let shown = u64::from(displacement.cast_unsigned()) & ((1 << (8 * address.size)) - 1);
        let end = shown | u64::from(number) << (8 * address.size);
        let (at, more) = ((n_prefix + 1 + address.n_bytes) as u8, (address.size + has_number) as u8);
        Some(Made { start, end, at, more, written: self.written, out: out as u8 })
    }
}

/// What an instruction writes: of which kind its first operand is.
#[derive(Clone, Copy)]
pub(super) enum Written {
    /// Nothing that somebody asks for.
    Nothing,
    General,
    Vector,
    Mask,
}

impl Written {
    fn of(form: Form, out: Register) -> Written {
        match form {
            Form::Store | Form::StoreSome => Written::Nothing,
            _ if out.is_vector_register() => Written::Vector,
            _ if out.is_k() => Written::Mask,
            _ => Written::General,
        }
    }
}

/// An instruction in bytes: its start, before the displacement, and its end.
#[derive(Clone, Copy)]
pub(super) struct Made {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Bytes of the start.
    pub(super) at: u8,
    /// Bytes of the end.
    pub(super) more: u8,
    pub(super) written: Written,
    /// The number of the first operand.
    pub(super) out: u8,
}

/// What is known of codes.
#[derive(Default)]
pub(super) struct Codes {
    /// By code, and whether `rm` is memory: one more than its place in `known`; 0 if nobody has asked the encoder.
    places: Vec<u16>,
    known: Vec<Vex>,
}

/// The place of what is not made here.
const NOT_HERE: u16 = u16::MAX;

impl Codes {
    fn index(o: &Ops) -> usize {
        2 * o.code as usize + usize::from(o.mem().is_some())
    }

    /// An instruction, and what it writes, if its code is known.
    #[inline(always)]
    pub(super) fn get(&self, form: Form, o: &Ops, displacement: i32) -> Option<Made> {
        let place = *self.places.get(Codes::index(o))?;
        self.known.get(usize::from(place).wrapping_sub(1))?.with(form, o, displacement)
    }

    /// Whether somebody has asked the encoder about a code.
    pub(super) fn is_seen(&self, o: &Ops) -> bool {
        self.places.get(Codes::index(o)).is_some_and(|place| *place != 0)
    }

    /// Notes what the encoder showed of a code.
    pub(super) fn add(&mut self, o: &Ops, vex: Option<Vex>) {
        let at = Codes::index(o);
        if self.places.len() <= at {
            self.places.resize(at + 1, 0);
        }
        self.known.extend(vex);
        self.places[at] = if vex.is_some() { self.known.len() as u16 } else { NOT_HERE };
    }
}
