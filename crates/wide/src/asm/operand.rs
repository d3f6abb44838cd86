//! Operands of instructions.

use iced_x86::{Code, Instruction, Register, RoundingControl};

/// A place in the code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Label(pub(super) u32);

impl Label {
    /// Its number among labels.
    #[inline]
    pub(super) fn idx(self) -> usize {
        self.0 as usize
    }
}

/// 64 bytes after the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Const(pub(super) u32);

impl Const {
    /// Its number among constants.
    #[inline]
    pub(super) fn idx(self) -> usize {
        self.0 as usize
    }
}

/// Where a memory operand starts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    Reg(Register),
    Const(Const),
    Label(Label),
}

/// A memory operand: no longer than what goes from function to function in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mem {
    pub(super) base: Base,
    pub(super) index: Register,
    pub(super) scale: u8,
    pub(super) at: i32,
    pub(super) spread: bool,
}

const _: () = assert!(size_of::<Rm>() == 16);

impl Mem {
    /// `[base + at]`.
    #[inline]
    pub fn at(base: Register, at: i32) -> Mem {
        Mem { base: Base::Reg(base), index: Register::None, scale: 1, at, spread: false }
    }

    /// `[base + index * scale + at]`.
    #[inline]
    pub fn indexed(base: Register, index: Register, scale: u32, at: i32) -> Mem {
        Mem::at(base, at).plus_scaled(index, scale)
    }

    /// So many bytes further on.
    #[inline]
    pub fn behind(self, by: i32) -> Mem {
        Mem { at: self.at + by, ..self }
    }

    /// So many bytes further on as a register says.
    #[inline]
    pub fn plus(self, index: Register) -> Mem {
        self.plus_scaled(index, 1)
    }

    /// So many times a scale further on as a register says.
    #[inline]
    pub fn plus_scaled(self, index: Register, scale: u32) -> Mem {
        Mem { index, scale: scale as u8, ..self }
    }

    /// Bytes of a constant.
    #[inline]
    pub fn constant(c: Const, at: i32) -> Mem {
        Mem { base: Base::Const(c), ..Mem::at(Register::None, at) }
    }

    /// The code or data at a label.
    #[inline]
    pub fn label(l: Label) -> Mem {
        Mem { base: Base::Label(l), ..Mem::at(Register::None, 0) }
    }

    /// Whether it is a word of the stack.
    #[inline]
    pub fn is_of_stack(self) -> bool {
        self.base == Base::Reg(Register::RSP) && self.index == Register::None
    }

    /// Whether it is one element for every lane.
    #[inline]
    pub fn is_spread(self) -> bool {
        self.spread
    }

    /// The element alone.
    #[inline]
    pub fn single(self) -> Mem {
        Mem { spread: false, ..self }
    }

    /// One element, for every lane of a vector.
    #[inline]
    pub fn spread(self) -> Mem {
        Mem { spread: true, ..self }
    }
}

/// A register or memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rm {
    /// A register.
    Reg(Register),
    /// Memory.
    Mem(Mem),
}

impl Rm {
    /// The place in memory, if it is one.
    #[inline]
    pub(super) fn mem(self) -> Option<Mem> {
        match self {
            Rm::Mem(m) => Some(m),
            Rm::Reg(_) => None,
        }
    }
}

impl From<Register> for Rm {
    #[inline]
    fn from(r: Register) -> Rm {
        Rm::Reg(r)
    }
}

impl From<Mem> for Rm {
    #[inline]
    fn from(m: Mem) -> Rm {
        Rm::Mem(m)
    }
}

/// A register that is written, and which of its elements are: those of a mask register, or all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Out {
    /// The register.
    pub reg: Register,
    /// `Register::None` for all elements. Others keep their value.
    pub mask: Register,
}

impl Out {
    /// Some elements of a register.
    pub fn masked(reg: Register, mask: Register) -> Out {
        Out { reg, mask }
    }
}

impl From<Register> for Out {
    #[inline]
    fn from(reg: Register) -> Out {
        Out { reg, mask: Register::None }
    }
}

/// Operands of an instruction as the emitters give them: `out, a, rm, n`.
#[derive(Clone, Copy)]
pub(super) struct Ops {
    pub(super) code: Code,
    pub(super) out: Out,
    pub(super) a: Register,
    pub(super) rm: Rm,
    pub(super) n: u32,
    pub(super) round: RoundingControl,
}

impl Ops {
    /// Operands of which there are no others.
    #[inline]
    pub(super) fn new(code: Code, out: impl Into<Out>, a: Register, rm: impl Into<Rm>, n: u32) -> Ops {
        Ops { code, out: out.into(), a, rm: rm.into(), n, round: RoundingControl::None }
    }

    /// The same with the first of each eight vectors, where `lows` says which they are.
    pub(super) fn without(self, lows: Lows) -> Ops {
        self.moved(lows, |r, low| r - low, |n, low| n - low)
    }

    /// The same with vectors that come so much later.
    pub(super) fn with(self, lows: Lows) -> Ops {
        self.moved(lows, |r, low| r + low, |n, low| n + low)
    }

    fn moved(mut self, lows: Lows, to: fn(Register, u32) -> Register, fourth: fn(u32, u32) -> u32) -> Ops {
        let [out, a, third, last] = lows.map(u32::from);
        self.out.reg = to(self.out.reg, out);
        self.a = to(self.a, a);
        match &mut self.rm {
            Rm::Reg(r) => *r = to(*r, third),
            Rm::Mem(m) => m.index = to(m.index, third),
        }
        self.n = fourth(self.n, last);
        self
    }

    /// Of the operands that [`Lows`] names, which are vectors.
    pub(super) fn are_vectors(&self, form: Form) -> [bool; 4] {
        let third = match self.rm {
            Rm::Reg(r) => r,
            Rm::Mem(m) => m.index,
        };
        let [a, b, c] = [self.out.reg, self.a, third].map(Register::is_vector_register);
        [a, b, c, form == Form::Choice]
    }

    /// The operand in memory.
    #[inline]
    pub(super) fn mem(&self) -> Option<Mem> {
        self.rm.mem()
    }
}

/// Of the vectors of an instruction, which of eight that follow each other they are: `out`, `a`, `rm` or its index, and the one that is chosen by.
pub(super) type Lows = [u8; 4];

/// Which operands an instruction has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `out, rm`
    Two,
    /// `out, rm, n`
    TwoNumber,
    /// `out, rm, n`, the number with a sign.
    TwoSigned,
    /// `out, a, rm`
    Three,
    /// `out, a, rm, n`
    ThreeNumber,
    /// `rm, n`
    Number,
    /// `rm, n`, the number with a sign.
    Signed,
    /// `rm, out`, where `out` is read.
    Store,
    /// `rm, a, out`, where `out` is read: a store of some elements.
    StoreSome,
    /// `out, rm, a`: a gather.
    Gather,
    /// `out, a, rm, register`: a choice by the vector with the number `n`.
    Choice,
    /// A jump or call to the label of `rm`.
    Jump,
}

/// What an instruction writes, as far as somebody asks later.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Writes {
    /// General registers, by number.
    pub(super) general: u32,
    /// Vectors below 8, by number.
    pub(super) vectors: u8,
    /// Mask registers, by number.
    pub(super) masks: u8,
}

impl Writes {
    /// All that a call may write.
    pub(super) const ALL: Writes = Writes { general: u32::MAX, vectors: u8::MAX, masks: u8::MAX };

    /// What an instruction writes: its first operand, both where it exchanges them, all for a call.
    pub(super) fn of(i: &Instruction) -> Writes {
        if matches!(i.code(), Code::Call_rel32_64 | Code::Call_rm64) {
            return Writes::ALL;
        }
        let first = i.op0_register();
        let bit = |n: Option<usize>| n.map_or(0, |n| 1 << n);
        let mut writes =
            Writes { general: register_bit(first), vectors: bit(vector_number(first)), masks: bit(mask_number(first)) };
        // Gathers and scatters clear theirs.
        if i.is_vsib() {
            writes.masks |= bit(mask_number(i.op_mask()));
        }
        let exchanges = matches!(i.code(), Code::Xchg_rm32_r32 | Code::Xchg_rm64_r64);
        if i.has_lock_prefix() || exchanges {
            writes.general |= register_bit(i.op1_register()) | register_bit(Register::RAX);
        }
        if matches!(i.code(), Code::Div_rm32 | Code::Div_rm64) {
            writes.general |= register_bit(Register::RAX) | register_bit(Register::RDX);
        }
        writes
    }

    /// What an instruction writes whose vectors are others of their eight.
    pub(super) fn with(self, form: Form, lows: Lows) -> Writes {
        let first = if matches!(form, Form::Store | Form::Number | Form::Signed) { lows[2] } else { lows[0] };
        Writes { vectors: self.vectors << first, ..self }
    }
}

/// The number of a vector below 8 of any width.
pub(super) fn vector_number(r: Register) -> Option<usize> {
    let of = |first: Register| (r as usize).checked_sub(first as usize).filter(|n| *n < 8);
    of(Register::ZMM0).or(of(Register::YMM0)).or(of(Register::XMM0))
}

/// The number of a mask register.
pub(super) fn mask_number(r: Register) -> Option<usize> {
    (r as usize).checked_sub(Register::K0 as usize).filter(|n| *n < 8)
}

/// The bit of a general register of any width; 0 for others.
pub(super) fn register_bit(r: Register) -> u32 {
    use Register::{AL, AX, BL, EAX, R15, R15D, R15W, RAX};
    let of = |first: Register, last: Register| (first..=last).contains(&r).then(|| 1 << (r as u32 - first as u32));
    of(RAX, R15).or(of(EAX, R15D)).or(of(AX, R15W)).or(of(AL, BL)).unwrap_or(0)
}

/// Operands of a store.
#[derive(Clone, Copy)]
pub(super) struct Ops2 {
    pub(super) code: Code,
    pub(super) mem: Mem,
    pub(super) reg: Register,
    pub(super) mask: Register,
}
