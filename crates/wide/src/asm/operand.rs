//! Operands of instructions.

use iced_x86::{Code, Register};

/// A place in the code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Label(pub(super) usize);

/// 64 bytes after the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Const(pub(super) usize);

/// Where a memory operand starts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    Reg(Register),
    Const(Const),
    Label(Label),
}

/// A memory operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mem {
    pub(super) base: Base,
    pub(super) index: Register,
    pub(super) scale: u32,
    pub(super) at: i32,
    pub(super) spread: bool,
}

impl Mem {
    /// `[base + at]`.
    pub fn at(base: Register, at: i32) -> Mem {
        Mem { base: Base::Reg(base), index: Register::None, scale: 1, at, spread: false }
    }

    /// `[base + index * scale + at]`.
    pub fn indexed(base: Register, index: Register, scale: u32, at: i32) -> Mem {
        Mem { index, scale, ..Mem::at(base, at) }
    }

    /// So many bytes further on.
    pub fn behind(self, by: i32) -> Mem {
        Mem { at: self.at + by, ..self }
    }

    /// So many bytes further on as a register says.
    pub fn plus(self, index: Register) -> Mem {
        Mem { index, scale: 1, ..self }
    }

    /// Bytes of a constant.
    pub fn constant(c: Const, at: i32) -> Mem {
        Mem { base: Base::Const(c), ..Mem::at(Register::None, at) }
    }

    /// The code or data at a label.
    pub fn label(l: Label) -> Mem {
        Mem { base: Base::Label(l), ..Mem::at(Register::None, 0) }
    }

    /// Whether it is a word of the stack.
    pub fn is_of_stack(self) -> bool {
        self.base == Base::Reg(Register::RSP) && self.index == Register::None
    }

    /// Whether it is one element for every lane.
    pub fn is_spread(self) -> bool {
        self.spread
    }

    /// The element alone.
    pub fn single(self) -> Mem {
        Mem { spread: false, ..self }
    }

    /// One element, for every lane of a vector.
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

impl From<Register> for Rm {
    fn from(r: Register) -> Rm {
        Rm::Reg(r)
    }
}

impl From<Mem> for Rm {
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
    fn from(reg: Register) -> Out {
        Out { reg, mask: Register::None }
    }
}

/// Operands of a store.
#[derive(Clone, Copy)]
pub(super) struct Ops2 {
    pub(super) code: Code,
    pub(super) mem: Mem,
    pub(super) reg: Register,
    pub(super) mask: Register,
}
