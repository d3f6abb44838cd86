//! Matrix ops: what the lanes of a warp compute together from the registers of all.
//!
//! Takes: nothing; these are data. Gives: the op, the types of its sources and results, its text, and which element of which matrix lies where
//! in the registers of which lane. What a product is stands in `num::matrix`.

use serde::{Deserialize, Serialize};

use crate::types::{Rounding, Ty};

/// An op on matrices that lie in the registers of a warp. The last source is the membermask.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MatrixOp {
    /// registers of `a`, of `b`, of `c`, membermask (B32) -> registers of `d = a * b + c`
    Product(Product),
    /// address of a row, membermask (B32) -> addresses of the lane's elements: eight lanes name the rows of a matrix, which each lane holds as
    /// [`Transpose`](MatrixOp::Transpose) says
    Addresses(Addresses),
    /// register, membermask (B32) -> register: an 8 by 8 matrix of 16-bit elements with rows and columns changed. Lane `l` holds the elements
    /// `2 * (l % 4)` and the next of row `l / 4`.
    Transpose,
}

/// Where the elements of small matrices lie in memory.
///
/// # PTX ISA
/// Warp-level matrix load instruction: ldmatrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Addresses {
    /// Type of an address: `B32` or `B64`.
    pub ty: Ty,
    /// Matrices: 1, 2 or 4. The rows of matrix `i` come from the lanes from `8 * i` on.
    pub count: u8,
    /// Rows are columns: the two elements of a lane lie apart, and have an address each.
    pub trans: bool,
}

/// What the elements of `a` or `b` are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Element {
    /// `.f16`
    F16,
    /// `.bf16`
    Bf16,
    /// `.tf32`: the lower 13 bits do not count.
    Tf32,
    /// `.e4m3`
    E4m3,
    /// `.e5m2`
    E5m2,
    /// `.f64`
    F64,
    /// `.u8`
    U8,
    /// `.s8`
    S8,
    /// `.u4`
    U4,
    /// `.s4`
    S4,
    /// `.b1`
    B1,
}

impl Element {
    /// Its size in bits.
    pub const fn bits(self) -> u32 {
        match self {
            Element::B1 => 1,
            Element::U4 | Element::S4 => 4,
            Element::E4m3 | Element::E5m2 | Element::U8 | Element::S8 => 8,
            Element::F16 | Element::Bf16 => 16,
            Element::Tf32 => 32,
            Element::F64 => 64,
        }
    }

    /// The register type that holds it, or several.
    #[inline]
    pub const fn register(self) -> Ty {
        match self {
            Element::F64 => Ty::B64,
            _ => Ty::B32,
        }
    }

    /// How many lie in a register.
    #[inline]
    pub const fn per_register(self) -> usize {
        // All are powers of two, and a routine asks for each product.
        (self.register().bits() >> self.bits().trailing_zeros()) as usize
    }

    const fn name(self) -> &'static str {
        match self {
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
            Element::Tf32 => "tf32",
            Element::E4m3 => "e4m3",
            Element::E5m2 => "e5m2",
            Element::F64 => "f64",
            Element::U8 => "u8",
            Element::S8 => "s8",
            Element::U4 => "u4",
            Element::S4 => "s4",
            Element::B1 => "b1",
        }
    }
}

/// What the elements of `c` or `d` are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Accumulator {
    /// `.f16`: two in a register.
    F16,
    /// `.f32`
    F32,
    /// `.f64`
    F64,
    /// `.s32`
    S32,
}

impl Accumulator {
    /// The register type that holds it.
    #[inline]
    pub const fn register(self) -> Ty {
        match self {
            Accumulator::F64 => Ty::B64,
            Accumulator::F16 | Accumulator::F32 | Accumulator::S32 => Ty::B32,
        }
    }

    /// How many lie in a register.
    #[inline]
    pub const fn per_register(self) -> usize {
        match self {
            Accumulator::F16 => 2,
            Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => 1,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Accumulator::F16 => "f16",
            Accumulator::F32 => "f32",
            Accumulator::F64 => "f64",
            Accumulator::S32 => "s32",
        }
    }
}

/// What becomes of two elements and a sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Step {
    /// Their product is added; integers wrap.
    Add,
    /// The same at `.f64`, with another rounding than to nearest.
    AddRounded(Rounding),
    /// The same, and the sum with `c` is kept within `.s32`.
    AddSaturating,
    /// The ones of their exclusive or are added.
    XorPopc,
    /// The ones of their and are added.
    AndPopc,
}

/// `d = a * b + c` of matrices of `m` by `k`, `k` by 8 and `m` by 8 elements.
///
/// With `g = lane / 4` and `t = lane % 4`, a lane holds in register `q * (m / 8) + h` of `a` the neighbouring elements of row `g + 8 * h` from
/// depth `(4 * q + t) * per_register` on, in register `q` of `b` the same depths of column `g`, and of the accumulators columns `2 * t` and
/// `2 * t + 1` of row `g`, then those of row `g + 8`.
///
/// # PTX ISA
/// Matrix multiply-accumulate operation using mma instruction: Matrix Fragments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Product {
    /// Rows of `a`, `c` and `d`: 8 or 16.
    pub m: u8,
    /// Columns of `a` and rows of `b`.
    pub k: u16,
    /// Elements of `a`.
    pub a: Element,
    /// Elements of `b`.
    pub b: Element,
    /// Elements of `c`.
    pub c: Accumulator,
    /// Elements of `d`.
    pub d: Accumulator,
    /// How products are added.
    pub step: Step,
}

impl Product {
    /// Rows of eight: 1 or 2.
    #[inline]
    pub const fn n_rows(self) -> usize {
        self.m as usize / 8
    }

    /// Registers of `b` in a lane. `a` has as many for each row of eight.
    #[inline]
    pub const fn depth_registers(self) -> usize {
        self.k as usize >> (2 + self.b.per_register().trailing_zeros())
    }

    /// Registers of `a`, of `b`, of `c` and of `d` in a lane.
    #[inline]
    pub const fn registers(self) -> [usize; 4] {
        let (rows, depth) = (self.n_rows(), self.depth_registers());
        let (c, d) = (self.c.per_register().trailing_zeros(), self.d.per_register().trailing_zeros());
        [rows * depth, depth, (2 * rows) >> c, (2 * rows) >> d]
    }
}

impl MatrixOp {
    /// Types of the sources, the membermask among them.
    pub fn sources(self) -> Vec<Ty> {
        let mut types = match self {
            MatrixOp::Product(p) => {
                let [a, b, c, _] = p.registers();
                let of = |ty: Ty, n: usize| std::iter::repeat_n(ty, n);
                of(p.a.register(), a).chain(of(p.b.register(), b)).chain(of(p.c.register(), c)).collect()
            }
            MatrixOp::Addresses(a) => vec![a.ty],
            MatrixOp::Transpose => vec![Ty::B32],
        };
        types.push(Ty::B32);
        types
    }

    /// Types of the results.
    pub fn results(self) -> Vec<Ty> {
        match self {
            MatrixOp::Product(p) => vec![p.d.register(); p.registers()[3]],
            MatrixOp::Addresses(a) => vec![a.ty; usize::from(a.count) << usize::from(a.trans)],
            MatrixOp::Transpose => vec![Ty::B32],
        }
    }

    /// Its name with modifiers in the text of the IR.
    pub fn name(self) -> String {
        let p = match self {
            MatrixOp::Product(p) => p,
            MatrixOp::Addresses(a) => {
                return format!("matrix.addresses.x{}{}.{}", a.count, if a.trans { ".trans" } else { "" }, a.ty);
            }
            MatrixOp::Transpose => return "matrix.transpose".into(),
        };
        let step = match p.step {
            Step::Add => String::new(),
            Step::AddRounded(round) => super::modes::rounding(round).into(),
            Step::AddSaturating => ".sat".into(),
            Step::XorPopc => ".xor_popc".into(),
            Step::AndPopc => ".and_popc".into(),
        };
        let (m, k, d, a, b, c) = (p.m, p.k, p.d.name(), p.a.name(), p.b.name(), p.c.name());
        format!("matrix.product.m{m}n8k{k}.{d}.{a}.{b}.{c}{step}")
    }
}
