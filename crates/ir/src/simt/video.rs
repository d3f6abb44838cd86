//! The value ops of video instructions, with all their modifiers.
//!
//! An op says which part of each source is taken and how it is extended, what is done, whether the result is clamped, and what
//! becomes of it. Its meaning is in `num::eval` like that of any other value op.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::types::Cmp;

/// The part of a register that a scalar video instruction takes or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Part {
    /// `.b0` to `.b3`.
    Byte(u8),
    /// `.h0` and `.h1`.
    Half(u8),
    /// All 32 bits.
    Word,
}

impl Part {
    /// All parts, the word last.
    pub const ALL: [Part; 7] =
        [Part::Byte(0), Part::Byte(1), Part::Byte(2), Part::Byte(3), Part::Half(0), Part::Half(1), Part::Word];

    /// Width in bits.
    pub const fn bits(self) -> u32 {
        match self {
            Part::Byte(_) => 8,
            Part::Half(_) => 16,
            Part::Word => 32,
        }
    }

    /// Its lowest bit in the register.
    pub const fn at(self) -> u32 {
        match self {
            Part::Byte(n) => 8 * n as u32,
            Part::Half(n) => 16 * n as u32,
            Part::Word => 0,
        }
    }

    /// Ones where it is in the register.
    pub const fn mask(self) -> u32 {
        (u32::MAX >> (32 - self.bits())) << self.at()
    }
}

/// A source of a scalar video op: a part, extended by its sign or by zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PartOf {
    /// Which part.
    pub part: Part,
    /// `.s32`, not `.u32`.
    pub signed: bool,
}

/// What a scalar video op computes of its two extended sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum VideoOp {
    /// `vadd`
    Add,
    /// `vsub`
    Sub,
    /// `vabsdiff`
    AbsDiff,
    /// `vmin`
    Min,
    /// `vmax`
    Max,
    /// `vshl`
    Shl {
        /// `.wrap`, not `.clamp`.
        wrap: bool,
    },
    /// `vshr`
    Shr {
        /// `.wrap`, not `.clamp`.
        wrap: bool,
    },
    /// `vset`: 1 where the comparison holds, else 0.
    Set(Cmp),
}

/// What becomes of the result of a scalar video op.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum VideoEnd {
    /// It is the value. The op has no source c.
    Plain,
    /// c is added.
    Add,
    /// The smaller one of it and c.
    Min,
    /// The larger one of it and c.
    Max,
    /// It replaces this part of c.
    Merge(Part),
}

/// A scalar video op but for `vmad`: a, b, and c (all B32) unless it ends plainly -> B32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Video {
    /// The operation.
    pub op: VideoOp,
    /// The destination and c are signed.
    pub signed: bool,
    /// First source.
    pub a: PartOf,
    /// Second source.
    pub b: PartOf,
    /// Clamp to the range of the destination, or of the part that is merged.
    pub sat: bool,
    /// Secondary operation or merge.
    pub end: VideoEnd,
}

impl Video {
    /// The second source as it is read: the amount of a shift is unsigned.
    pub const fn second(self) -> PartOf {
        let is_shift = matches!(self.op, VideoOp::Shl { .. } | VideoOp::Shr { .. });
        PartOf { signed: self.b.signed && !is_shift, ..self.b }
    }

    /// Width in bits of the range that `.sat` clamps to.
    pub const fn range_bits(self) -> u32 {
        match self.end {
            VideoEnd::Merge(part) => part.bits(),
            VideoEnd::Plain | VideoEnd::Add | VideoEnd::Min | VideoEnd::Max => 32,
        }
    }
}

/// What `vmad` subtracts instead of adding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Negated {
    /// Neither is negated.
    None,
    /// The product.
    Product,
    /// The sum of the product with `c`.
    Addend,
}

/// `vmad`: a, b, c (B32) -> B32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Vmad {
    /// First factor.
    pub a: PartOf,
    /// Second factor.
    pub b: PartOf,
    /// What is negated.
    pub negated: Negated,
    /// `.po`: one more is added.
    pub plus_one: bool,
    /// Clamp to 32 bits of the sign of the result.
    pub sat: bool,
    /// 0, 7 or 15: how far the sum is shifted right.
    pub shift: u8,
}

impl Vmad {
    /// Whether the sum, and with it c, is signed.
    pub const fn is_signed(self) -> bool {
        self.a.signed || self.b.signed || !matches!(self.negated, Negated::None)
    }
}

/// What a SIMD video op computes of each pair of elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SimdOp {
    /// `vadd2`, `vadd4`
    Add,
    /// `vsub2`, `vsub4`
    Sub,
    /// `vavrg2`, `vavrg4`
    Avrg,
    /// `vabsdiff2`, `vabsdiff4`
    AbsDiff,
    /// `vmin2`, `vmin4`
    Min,
    /// `vmax2`, `vmax4`
    Max,
    /// `vset2`, `vset4`: 1 where the comparison holds, else 0.
    Set(Cmp),
}

/// A source vector of a SIMD video op.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Elements {
    /// For each element, the lowest first, its number among the elements of b:a. The first `n` count.
    pub select: [u8; 4],
    /// `.s32`, not `.u32`.
    pub signed: bool,
}

/// A SIMD video op: a, b, c (B32) -> B32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VideoSimd {
    /// The operation.
    pub op: SimdOp,
    /// Number of elements: 2 or 4.
    pub n: u8,
    /// `.sat` clamps to signed elements.
    pub signed: bool,
    /// First source.
    pub a: Elements,
    /// Second source.
    pub b: Elements,
    /// Bit i: the result of element i counts.
    pub mask: u8,
    /// Clamp the results of the elements.
    pub sat: bool,
    /// `.add`: results are added to c; else they replace its elements.
    pub accumulate: bool,
}

impl VideoSimd {
    /// Width of an element in bits.
    pub const fn bits(self) -> u32 {
        32 / self.n as u32
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Byte(n) => write!(f, "b{n}"),
            Part::Half(n) => write!(f, "h{n}"),
            Part::Word => write!(f, "w"),
        }
    }
}

fn sign(signed: bool) -> char {
    if signed { 's' } else { 'u' }
}

impl fmt::Display for PartOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", sign(self.signed), self.part)
    }
}

impl fmt::Display for VideoOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shift = |wrap| if wrap { "wrap" } else { "clamp" };
        match *self {
            VideoOp::Add => write!(f, "vadd"),
            VideoOp::Sub => write!(f, "vsub"),
            VideoOp::AbsDiff => write!(f, "vabsdiff"),
            VideoOp::Min => write!(f, "vmin"),
            VideoOp::Max => write!(f, "vmax"),
            VideoOp::Shl { wrap } => write!(f, "vshl.{}", shift(wrap)),
            VideoOp::Shr { wrap } => write!(f, "vshr.{}", shift(wrap)),
            VideoOp::Set(cmp) => write!(f, "vset.{}", format!("{cmp:?}").to_lowercase()),
        }
    }
}

/// `vadd.s32.sat.u_b0.s_h1.merge_b2`.
impl fmt::Display for Video {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Video { op, signed, a, b, sat, end } = *self;
        write!(f, "{op}.{}32{}.{a}.{b}", sign(signed), if sat { ".sat" } else { "" })?;
        match end {
            VideoEnd::Plain => Ok(()),
            VideoEnd::Add => write!(f, ".add"),
            VideoEnd::Min => write!(f, ".min"),
            VideoEnd::Max => write!(f, ".max"),
            VideoEnd::Merge(part) => write!(f, ".merge_{part}"),
        }
    }
}

impl fmt::Display for Vmad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Vmad { a, b, negated, plus_one, sat, shift } = *self;
        write!(f, "vmad.{a}.{b}")?;
        match negated {
            Negated::None => {}
            Negated::Product => write!(f, ".neg_product")?,
            Negated::Addend => write!(f, ".neg_c")?,
        }
        for (on, text) in [(plus_one, ".po"), (sat, ".sat")] {
            write!(f, "{}", if on { text } else { "" })?;
        }
        if shift == 0 { Ok(()) } else { write!(f, ".shr{shift}") }
    }
}

/// `vadd4.s32.sat.u3210.u7654.mask_1111`.
impl fmt::Display for VideoSimd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VideoSimd { op, n, signed, a, b, mask, sat, accumulate } = *self;
        match op {
            SimdOp::Add => write!(f, "vadd{n}")?,
            SimdOp::Sub => write!(f, "vsub{n}")?,
            SimdOp::Avrg => write!(f, "vavrg{n}")?,
            SimdOp::AbsDiff => write!(f, "vabsdiff{n}")?,
            SimdOp::Min => write!(f, "vmin{n}")?,
            SimdOp::Max => write!(f, "vmax{n}")?,
            SimdOp::Set(cmp) => write!(f, "vset{n}.{}", format!("{cmp:?}").to_lowercase())?,
        }
        write!(f, ".{}32{}{}", sign(signed), if sat { ".sat" } else { "" }, if accumulate { ".add" } else { "" })?;
        for e in [a, b] {
            let picked: String = e.select[..usize::from(n)].iter().rev().map(u8::to_string).collect();
            write!(f, ".{}{picked}", sign(e.signed))?;
        }
        write!(f, ".mask_{mask:0width$b}", width = usize::from(n))
    }
}
