//! Instructions that are made of their parts, as soon as the encoder has shown what is the same in all instructions of a code: nearly all that emitters write.
//!
//! # Invariants
//! - An order of operands is taken for that of a code only if it alone makes the bytes that the encoder makes, of two instructions in which all registers differ.
//! - Operands of other kinds than those are not made here, so that the encoder says what is wrong with them.

use iced_x86::{Code, Register, RoundingControl};

use super::operand::{Base, Form, Mem, Ops, Rm, Writes};

/// How an instruction begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// With the prefix of instructions for general registers, where one is wanted.
    Plain,
    Vex,
    Evex,
}

/// The fields that operands are in, by that of `out`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// `out` in `reg`, `a` in the prefix.
    Reg,
    /// `out` in the prefix, if there is one, more of the code in `reg`.
    Prefix,
    /// `out` in the field of `rm`, and `rm` in `reg`.
    Rm,
}

/// Registers that an operand may be: the first one, and how many there are.
#[derive(Clone, Copy)]
struct Kind(u8, u8);

impl Kind {
    fn of(r: Register, start: Start) -> Kind {
        use Register::{AX, EAX, K0, RAX, XMM0, YMM0, ZMM0};
        let n_vectors = if start == Start::Evex { 32 } else { 16 };
        let kinds = [(ZMM0, n_vectors), (YMM0, n_vectors), (XMM0, n_vectors), (K0, 8), (RAX, 16), (EAX, 16), (AX, 16)];
        let kinds = kinds.map(|(first, n)| Kind(first as u8, n));
        kinds.into_iter().find(|kind| kind.number(r).is_some()).unwrap_or(Kind(r as u8, 1))
    }

    /// The number of a register.
    #[inline(always)]
    fn number(self, r: Register) -> Option<u32> {
        let n = (r as u8).wrapping_sub(self.0);
        (n < self.1).then_some(u32::from(n))
    }
}

/// General registers, as bases and indices.
const ADDRESSES: Kind = Kind(Register::RAX as u8, 16);

/// What all instructions of a code have, with a register, memory, or an element for all lanes as `rm`.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    form: Form,
    start: Start,
    order: Order,
    /// The opcode, and what stands before it without registers: as a prefix of three bytes, where it may be shorter.
    opcode: u64,
    /// Of an instruction for general registers, the byte before the prefix, where one is wanted.
    lead: u8,
    /// Of those the map of the opcode, and of the prefix the bit that says how wide they are.
    map: u8,
    wide: u8,
    /// Whether the prefix has two bytes where no register needs the third.
    has_short_prefix: bool,
    /// What of the code is in `reg`.
    more: u32,
    /// Of what power of two a displacement of one byte is a multiple.
    unit: u8,
    /// Bytes of a number at the end.
    n_number: u8,
    /// What `out`, `a` and `rm` may be.
    kinds: [Kind; 3],
    written: Written,
}

/// Numbers of `out`, `a`, `rm` and a fourth register in two instructions that tell where each stands.
const PROBES: [[u32; 4]; 2] = [[1, 2, 4, 7], [6, 5, 3, 0]];

/// Two instructions of a code that tell what it is, if it may be made here.
pub(super) fn probes(form: Form, o: &Ops) -> Option<[Ops; 2]> {
    let is_made_elsewhere = matches!(form, Form::Gather | Form::Jump) || o.round != RoundingControl::None;
    let has_vector_index = o.mem().is_some_and(|m| m.index.is_vector_register());
    let with = |numbers: [u32; 4]| {
        let of = |r: Register, i: usize| {
            let kind = Kind::of(r, Start::Evex);
            if kind.1 > 1 { kind.number(r).map_or(r, |n| r - n + numbers[i]) } else { r }
        };
        let rm = match o.rm {
            Rm::Reg(r) => Rm::Reg(of(r, 2)),
            Rm::Mem(m) => Rm::Mem(Mem { spread: m.spread, ..Mem::at(Register::RBX, PLACE) }),
        };
        let n = if form == Form::Choice { numbers[3] } else { o.n };
        Ops { n, ..Ops::new(o.code, of(o.out.reg, 0), of(o.a, 1), rm, 0) }
    };
    (!is_made_elsewhere && !has_vector_index).then(|| PROBES.map(with))
}

/// The displacement of those, which is one byte whatever it is a multiple of.
const PLACE: i32 = 64;

/// How an instruction says what `rm` is.
struct Address {
    /// The byte with the fields `reg` and `rm`, without `reg`, and the one after it, if there is one.
    bytes: u64,
    n_bytes: u32,
    /// The highest bits of the index and of the base.
    high: u32,
    /// The displacement, and its bytes.
    shown: u64,
    size: u32,
}

impl Address {
    #[inline(always)]
    fn of_register(n: u32) -> Address {
        Address { bytes: u64::from(0xc0 | n & 7), n_bytes: 1, high: (n & 0x18) << 2, shown: 0, size: 0 }
    }

    #[inline(always)]
    fn of(m: Mem, displacement: i32, unit: u8) -> Option<Address> {
        let base = match m.base {
            Base::Reg(r) => ADDRESSES.number(r)?,
            Base::Const(_) | Base::Label(_) => {
                return Some(Address { bytes: 0x05, n_bytes: 1, high: 0, shown: 0, size: 4 });
            }
        };
        let in_units = (displacement >> unit) as i8;
        let is_short = i32::from(in_units) << unit == displacement;
        // Without a displacement, `rbp` and `r13` would mean something else.
        let (shown, size, mode) = match is_short {
            true if displacement == 0 && base & 7 != 5 => (0, 0, 0),
            true => (u64::from(in_units.cast_unsigned()), 1, 0x40),
            false => (u64::from(displacement.cast_unsigned()), 4, 0x80),
        };
        if m.index == Register::None {
            let has_two = base & 7 == 4;
            let second = if has_two { 0x2400 } else { 0 };
            let bytes = u64::from(mode | base & 7 | second);
            return Some(Address { bytes, n_bytes: 1 + u32::from(has_two), high: base >> 3 << 5, shown, size });
        }
        let index = ADDRESSES.number(m.index).filter(|_| m.index != Register::RSP)?;
        let second = m.scale.trailing_zeros() << 6 | (index & 7) << 3 | base & 7;
        let high = index >> 3 << 6 | base >> 3 << 5;
        Some(Address { bytes: u64::from(mode | 4 | second << 8), n_bytes: 2, high, shown, size })
    }
}

impl Parts {
    /// What two instructions of a form show of their code, if it can be made here: the bytes that the encoder makes, how many, and what they write.
    pub(super) fn of(form: Form, made: [(Ops, (u128, u8), Writes); 2]) -> Option<Parts> {
        let (o, (bytes, len), _) = made[0];
        let mut left = (0..len).map(|i| (bytes >> (8 * i)) as u8);
        let mut byte = || left.next().unwrap_or(0);
        let (start, map, lead, last, opcode) = match byte() {
            // Without registers, that is with all bits of their numbers, which are turned around.
            0xc5 => (Start::Vex, 1, 0, byte() & 0x7f | 0x78, byte()),
            0xc4 => (Start::Vex, byte() & 0x1f, 0, byte() | 0x78, byte()),
            0x62 => (Start::Evex, byte() & 0x07, byte() | 0x78, byte() | 0x08, byte()),
            first => {
                let mut next = first;
                let lead = if matches!(next, 0x66 | 0xf2 | 0xf3) { std::mem::replace(&mut next, byte()) } else { 0 };
                let prefix = if next >> 4 == 4 { std::mem::replace(&mut next, byte()) } else { 0 };
                let (map, opcode) = match next {
                    0x0f => match byte() {
                        0x38 => (2, byte()),
                        0x3a => (3, byte()),
                        opcode => (1, opcode),
                    },
                    opcode => (0, opcode),
                };
                (Start::Plain, map, lead, prefix & 8, opcode)
            }
        };
        let operands = byte();
        let has_memory = o.mem().is_some();
        let displacement = if has_memory { byte() } else { 0 };
        if has_memory && displacement == 0 {
            return None;
        }
        let unit = if has_memory { (PLACE / i32::from(displacement)).trailing_zeros() as u8 } else { 0 };
        let n_number = left.count() as u8;
        let rm = match o.rm {
            Rm::Reg(r) => r,
            Rm::Mem(_) => Register::None,
        };
        let kinds = [o.out.reg, o.a, rm].map(|r| Kind::of(r, start));
        let (more, written) = (u32::from(operands) >> 3 & 7, Written::of(form, &o));
        let bytes = |list: [u8; 4]| u64::from(u32::from_le_bytes(list));
        let (has_short_prefix, opcode) = match start {
            Start::Plain => (false, u64::from(opcode)),
            Start::Vex => (map == 1 && last & 0x80 == 0, bytes([0xc4, 0xe0 | map, last, opcode])),
            Start::Evex => (false, bytes([0x62, 0xf0 | map, lead, last]) | u64::from(opcode) << 32),
        };
        let wide = last & 8;
        let known = |order| Parts {
            form,
            start,
            order,
            opcode,
            lead,
            map,
            wide,
            has_short_prefix,
            more,
            unit,
            n_number,
            kinds,
            written,
        };
        let makes = |parts: &Parts| {
            made.iter().all(|(o, bytes, writes)| {
                let own = parts.with(form, o, o.mem().map_or(0, |m| m.at));
                own.is_some_and(|own| (own.bits(), own.len()) == *bytes && *writes == own.written.with(own.first))
            })
        };
        let orders: &[Order] = match form {
            // There is no `out`.
            Form::Number | Form::Signed => &[Order::Prefix],
            _ => &[Order::Reg, Order::Prefix, Order::Rm],
        };
        let mut right = orders.iter().map(|order| known(*order)).filter(makes);
        let parts = right.next()?;
        right.next().is_none().then_some(parts)
    }

    /// An instruction of the code, if its operands are of the kinds that are known.
    fn with(&self, form: Form, o: &Ops, displacement: i32) -> Option<Made> {
        match o.rm {
            Rm::Reg(r) => self.with_register(form, o, r),
            Rm::Mem(m) => self.with_memory(form, o, m, displacement),
        }
    }

    /// The same where `rm` is a register.
    #[inline(always)]
    fn with_register(&self, form: Form, o: &Ops, rm: Register) -> Option<Made> {
        let third = self.kinds[2].number(rm)?;
        let (out, a) = self.numbers(form, o)?;
        let (reg, also, rm) = match self.order {
            Order::Reg => (out, a, third),
            Order::Prefix => (self.more, out, third),
            Order::Rm => (third, a, out),
        };
        let first = if matches!(form, Form::Number | Form::Signed) { third } else { out };
        self.made(form, o, [reg, also], Address::of_register(rm), first)
    }

    /// The same where it is memory.
    #[inline(always)]
    fn with_memory(&self, form: Form, o: &Ops, rm: Mem, displacement: i32) -> Option<Made> {
        let (out, a) = self.numbers(form, o)?;
        let address = Address::of(rm, displacement, self.unit)?;
        let (reg, also) = match self.order {
            Order::Reg => (out, a),
            Order::Prefix => (self.more, out),
            Order::Rm => return None,
        };
        let first = if matches!(form, Form::Number | Form::Signed) { 0 } else { out };
        self.made(form, o, [reg, also], address, first)
    }

    /// The numbers of `out` and `a`.
    #[inline(always)]
    fn numbers(&self, form: Form, o: &Ops) -> Option<(u32, u32)> {
        let has_mask = o.out.mask != Register::None;
        if form != self.form || o.round != RoundingControl::None || has_mask && self.start != Start::Evex {
            return None;
        }
        Some((self.kinds[0].number(o.out.reg)?, self.kinds[1].number(o.a)?))
    }

    /// An instruction with a register in `reg` and perhaps another one in the prefix.
    #[inline(always)]
    fn made(&self, form: Form, o: &Ops, [reg, also]: [u32; 2], address: Address, first: u32) -> Option<Made> {
        let number = match (form, self.n_number) {
            (_, 0) => 0,
            (Form::Choice, _) => (o.n & 15) << 4,
            (Form::Signed | Form::TwoSigned, 1) => u32::from(i8::try_from(o.n.cast_signed()).ok()?.cast_unsigned()),
            (_, 1) => u32::from(u8::try_from(o.n).ok()?),
            (Form::Signed | Form::TwoSigned, 4) => o.n,
            _ => return None,
        };
        // Of the registers, the fourth bits: of `reg`, of the index, of the base.
        let high = (reg & 8) << 4 | address.high;
        let operands = address.bytes | u64::from(reg & 7) << 3;
        // With all before the displacement but what `rm` is.
        let (start, n_start) = match self.start {
            Start::Vex => {
                let long = self.opcode ^ u64::from(high << 8 ^ also << 19);
                if self.has_short_prefix && high & 0x60 == 0 {
                    let only = (long >> 16 & 0x7f | long >> 8 & 0x80) << 8;
                    (0xc5 | only | (long >> 24) << 16 | operands << 24, 3)
                } else {
                    (long | operands << 32, 4)
                }
            }
            Start::Evex => {
                let mask = if o.out.mask != Register::None { o.out.mask as u32 - Register::K0 as u32 } else { 0 };
                let registers = (high ^ reg & 16) << 8 ^ (also & 15) << 19 ^ ((also & 16) >> 1 ^ mask) << 24;
                (self.opcode ^ u64::from(registers) | operands << 40, 5)
            }
            Start::Plain if also > 0 => return None,
            Start::Plain => {
                let (prefix, n) = self.plain_start(high);
                (prefix | (self.opcode | operands << 8) << (8 * n), n + 1)
            }
        };
        let end = address.shown | u64::from(number) << (8 * address.size);
        let (at, more) = (n_start + address.n_bytes, address.size + u32::from(self.n_number));
        Some(Made { start, end, at, more, written: self.written, first })
    }

    /// All before the opcode, of an instruction for general registers.
    #[inline(always)]
    fn plain_start(&self, high: u32) -> (u64, u32) {
        let bits = u32::from(self.wide) | high >> 7 << 2 | high >> 5 & 3;
        let mut start = u64::from(self.lead);
        let mut n = u32::from(self.lead != 0);
        if bits != 0 {
            start |= u64::from(0x40 | bits) << (8 * n);
            n += 1;
        }
        let (map, n_map): (u64, u32) = [(0, 0), (0x0f, 1), (0x380f, 2), (0x3a0f, 2)][usize::from(self.map & 3)];
        (start | map << (8 * n), n + n_map)
    }
}

/// What an instruction writes: of which kind its first operand is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// Nothing that somebody asks for.
    Nothing,
    General,
    Vector,
    Mask,
}

impl Written {
    fn of(form: Form, o: &Ops) -> Written {
        let first = match (form, o.rm) {
            (Form::Store | Form::StoreSome, _) | (Form::Number | Form::Signed, Rm::Mem(_)) => return Written::Nothing,
            (Form::Number | Form::Signed, Rm::Reg(r)) => r,
            _ => o.out.reg,
        };
        match first {
            r if r.is_vector_register() => Written::Vector,
            r if r.is_k() => Written::Mask,
            _ => Written::General,
        }
    }

    /// What is written if the operand has a number.
    pub(super) fn with(self, n: u32) -> Writes {
        let none = Writes::default();
        let bit = 1u32 << n;
        match self {
            Written::Nothing => none,
            Written::General => Writes { general: bit, ..none },
            Written::Vector => Writes { vectors: bit as u8, ..none },
            Written::Mask => Writes { masks: bit as u8, ..none },
        }
    }
}

/// An instruction in bytes: its start, before the displacement, and its end.
#[derive(Clone, Copy)]
pub(super) struct Made {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Bytes of the start.
    pub(super) at: u32,
    /// Bytes of the end.
    pub(super) more: u32,
    pub(super) written: Written,
    /// The number of the first operand.
    pub(super) first: u32,
}

impl Made {
    /// `vmovdqu` between one of sixteen vectors of 256 bits and `[rbx + at]`, further than a displacement of one byte reaches: a third of the instructions
    /// of AVX2 code.
    #[inline]
    pub(super) fn slot_move(n: usize, at: i32, is_store: bool) -> Made {
        let n = n as u32;
        let opcode = if is_store { 0x7f } else { 0x6f };
        let start = 0xc5 | (0xfe ^ (n & 8) << 4) << 8 | opcode << 16 | (0x83 | (n & 7) << 3) << 24;
        let start = u64::from(start) | u64::from(at.cast_unsigned()) << 32;
        let written = if is_store { Written::Nothing } else { Written::Vector };
        Made { start, end: 0, at: 8, more: 0, written, first: n }
    }

    /// All bytes, the first one lowest.
    pub(super) fn bits(self) -> u128 {
        u128::from(self.start) | u128::from(self.end) << (8 * self.at)
    }

    /// How many there are.
    pub(super) fn len(self) -> u8 {
        (self.at + self.more) as u8
    }
}

/// What is known of codes.
#[derive(Default)]
pub(super) struct Codes {
    /// By code and what `rm` is: one more than its place in `known`; 0 if nobody has asked the encoder.
    places: Vec<u16>,
    known: Vec<Parts>,
}

/// The place of what is not made here.
const NOT_HERE: u16 = u16::MAX;

impl Codes {
    #[inline(always)]
    fn index(code: Code, rm: Rm) -> usize {
        let kind = match rm {
            Rm::Reg(_) => 0,
            Rm::Mem(m) => 1 + usize::from(m.spread),
        };
        3 * code as usize + kind
    }

    #[inline(always)]
    fn known(&self, code: Code, rm: Rm) -> Option<&Parts> {
        let place = *self.places.get(Codes::index(code, rm))?;
        self.known.get(usize::from(place).wrapping_sub(1))
    }

    /// An instruction with a register as `rm`, if its code is known.
    #[inline(always)]
    pub(super) fn of_register(&self, form: Form, o: &Ops, rm: Register) -> Option<Made> {
        self.known(o.code, Rm::Reg(rm))?.with_register(form, o, rm)
    }

    /// The same with memory.
    #[inline(always)]
    pub(super) fn of_memory(&self, form: Form, o: &Ops, rm: Mem, displacement: i32) -> Option<Made> {
        self.known(o.code, Rm::Mem(rm))?.with_memory(form, o, rm, displacement)
    }

    /// Whether somebody has asked the encoder about a code.
    pub(super) fn is_seen(&self, o: &Ops) -> bool {
        self.places.get(Codes::index(o.code, o.rm)).is_some_and(|place| *place != 0)
    }

    /// Notes what the encoder showed of a code.
    pub(super) fn add(&mut self, o: &Ops, parts: Option<Parts>) {
        let at = Codes::index(o.code, o.rm);
        if self.places.len() <= at {
            self.places.resize(at + 1, 0);
        }
        self.known.extend(parts);
        self.places[at] = if parts.is_some() { self.known.len() as u16 } else { NOT_HERE };
    }
}
