//! Modifiers of float ops and of conversions.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::types::*;

use super::sources::Types;
use super::words::flag;

/// Rounding, flushing and clamping of a floating-point op.
///
/// `sat` clamps to [0, 1] with NaN to +0; `relu` clamps below at +0 with NaN canonical.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FMode {
    /// Operand and result type.
    pub ty: Float,
    /// Rounding of the result.
    pub round: Rounding,
    /// Flush subnormal inputs and results to zero, keeping the sign.
    pub ftz: bool,
    /// Clamp to [0, 1].
    pub sat: bool,
    /// Clamp below at +0.
    pub relu: bool,
}

impl FMode {
    /// Rounding to nearest at `.f32` or `.f64`, which hosts do, without clamping.
    pub fn is_plain(self) -> bool {
        self.round == Rounding::Nearest && !self.sat && !self.relu && self.ty.is_of_host()
    }
}

/// Rounding, modifiers, type: `.rn.ftz.f32`.
impl fmt::Display for FMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FMode { ty, round, ftz, sat, relu } = *self;
        let modifiers = [(ftz, ".ftz"), (sat, ".sat"), (relu, ".relu")].map(|(on, text)| flag(on, text));
        write!(f, "{}{}.{ty}", rounding(round), modifiers.concat())
    }
}

/// How exact a division, reciprocal or square root is asked to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Exactness {
    /// `.rn` and its like: correctly rounded.
    Ieee(Rounding),
    /// `.approx`.
    Approx,
    /// `.full` (`div` only).
    Full,
}

impl Exactness {
    /// Whether it is the IEEE result, rounded to nearest.
    pub fn is_nearest(self) -> bool {
        self == Exactness::Ieee(Rounding::Nearest)
    }
}

impl fmt::Display for Exactness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Exactness::Ieee(round) => rounding(*round),
            Exactness::Approx => ".approx",
            Exactness::Full => ".full",
        })
    }
}

/// A conversion, as `cvt` writes it.
///
/// # PTX ISA
/// Data Movement and Conversion Instructions: cvt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cvt {
    /// Destination type.
    pub to: ScalarType,
    /// Source type.
    pub from: ScalarType,
    /// Rounding; [`Rounding::Nearest`] where the form has none and the result is exact. Ignored unless `rounded`.
    pub round: Rounding,
    /// A rounding modifier was written: float to float of the same type with an *integer* rounding rounds to an integral value.
    pub integral: bool,
    /// `.ftz`.
    pub ftz: bool,
    /// `.sat`.
    pub sat: bool,
    /// `.relu`.
    pub relu: bool,
    /// `.satfinite`.
    pub satfinite: bool,
}

impl Cvt {
    /// A conversion without modifiers, to nearest where it is not exact.
    pub const fn plain(to: ScalarType, from: ScalarType) -> Cvt {
        let round = Rounding::Nearest;
        Cvt { to, from, round, integral: false, ftz: false, sat: false, relu: false, satfinite: false }
    }

    /// Whether it has a scale operand: the `.s2f6x2` ones do. Without the qualifier it is `0x7f7f`, two ones.
    pub const fn is_scaled(self) -> bool {
        matches!(self.from, ScalarType::S2F6x2) || matches!(self.to, ScalarType::S2F6x2)
    }

    /// Types of its sources: one that is packed holds all elements of the destination; else there is a source for each. Then the random
    /// bits (B32) of `.rs`, or the scale (B16) of the `.s2f6x2` conversions: a form without the qualifier has the constant `0x7f7f`.
    pub(super) fn sources(self) -> Types {
        let mut types = Types::from([]);
        for _ in 0..if self.from.elements() == 1 { self.to.elements() } else { 1 } {
            types.push(self.from.ty());
        }
        if matches!(self.round, Rounding::Stochastic) {
            types.push(Ty::B32);
        } else if self.is_scaled() {
            types.push(Ty::B16);
        }
        types
    }
}

/// Rounding, modifiers, types: `.rni.sat.u8.f32`.
impl fmt::Display for Cvt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cvt { to, from, round, integral, ftz, sat, relu, satfinite } = *self;
        let flags = [(integral, "i"), (ftz, ".ftz"), (sat, ".sat"), (relu, ".relu"), (satfinite, ".satfinite")];
        write!(f, "{}{}{to}{from}", rounding(round), flags.map(|(on, text)| flag(on, text)).concat())
    }
}

pub(super) const fn rounding(r: Rounding) -> &'static str {
    match r {
        Rounding::Nearest => ".rn",
        Rounding::NearestAway => ".rna",
        Rounding::Zero => ".rz",
        Rounding::Down => ".rm",
        Rounding::Up => ".rp",
        Rounding::Stochastic => ".rs",
    }
}
