//! Which conversions there is vector code for, and what kind.

use handloom_ir::num::format::Format;
use handloom_ir::simt::*;
use handloom_ir::types::*;

/// What there is code for.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// Integers of at most 32 bits: clamped or cut.
    Clamp,
    /// To `.f32` from an integer of at most 32 bits.
    IntToF32,
    /// To `.f64` from an integer.
    IntToF64,
    /// To `.f16` or `.bf16` from an integer that is a number of `.f32`, or so large that both are infinite.
    IntToHalf(&'static Format),
    /// A float of at most 32 bits to an integer of at most 32 bits.
    F32ToInt,
    /// `.f64`, or a smaller float by way of it, to an integer.
    F64ToInt,
    /// `.f64` to `.f32`.
    Demote,
    /// `.f32` to itself, or to an integral value.
    SameF32,
    /// `.f64` to an integral value.
    IntegralF64,
    /// `.f32`, one for each element of the result, to a float of at most 16 bits.
    Narrow {
        /// Format of the result.
        to: &'static Format,
        /// Bits from one element of the pair to the next.
        step: i64,
        /// Elements of the result.
        count: usize,
    },
    /// A pair of `.f16` or `.bf16` to a pair of smaller floats.
    NarrowPair {
        /// Format of the source.
        from: &'static Format,
        /// Format of the result.
        to: &'static Format,
        /// Bits from one element of the pair to the next.
        step: i64,
    },
    /// `.f16` or `.bf16` to one of them, or to an integral value.
    Half {
        /// Format of the source.
        from: &'static Format,
        /// Format of the result.
        to: &'static Format,
    },
    /// `.f16` or `.bf16` to `.f32`, or `.f32` to `.f64` (`None`).
    Widen(Option<&'static Format>),
    /// `.f32` to tf32, in place.
    Tf32,
    /// A pair of `.f32`, or of `.bf16`, to exponents.
    Powers {
        /// Whether the source is a pair in one register.
        is_pair: bool,
    },
    /// A pair of exponents to `.bf16x2`.
    FromPowers,
    /// A pair of floats of at most 8 bits to `.f16x2`.
    WidenPair {
        /// Format of the source.
        from: &'static Format,
        /// Bits from one element of the pair to the next.
        step: i64,
    },
}

/// How a conversion is done on vectors; `None`: not at all.
pub fn way(c: Cvt) -> Option<Way> {
    use ScalarType::*;
    let is_nearest = c.round == Rounding::Nearest;
    let small = |ty| match ty {
        E4M3x2 => Some((&Format::E4M3, 8)),
        E5M2x2 => Some((&Format::E5M2, 8)),
        E2M3x2 => Some((&Format::E2M3, 8)),
        E3M2x2 => Some((&Format::E3M2, 8)),
        E2M1x2 => Some((&Format::E2M1, 4)),
        _ => None,
    };
    let half = |ty| match ty {
        F16 => Some(&Format::F16),
        BF16 => Some(&Format::BF16),
        _ => None,
    };
    let finite = c.satfinite || c.relu;
    match (c.to, c.from) {
        (to, from) if is_word(to) && is_word(from) => Some(Way::Clamp),
        (F32, from) if is_word(from) => (is_nearest && !c.sat).then_some(Way::IntToF32),
        (F64, from) if is_int(from) => (is_nearest && !c.sat).then_some(Way::IntToF64),
        (F16, from) if is_word(from) => (is_nearest && !c.sat).then_some(Way::IntToHalf(&Format::F16)),
        (BF16, from) if is_word(from) && from.bits() <= 16 => is_nearest.then_some(Way::IntToHalf(&Format::BF16)),
        (to, F32 | F16 | BF16) if is_word(to) => Some(Way::F32ToInt),
        (to, F32 | F64 | F16 | BF16) if is_int(to) => Some(Way::F64ToInt),
        (F32, F64) => (is_nearest && !c.sat && !c.ftz).then_some(Way::Demote),
        (F32, F32) => (!finite && (c.integral || is_nearest)).then_some(Way::SameF32),
        (F64, F64) => (c.integral && !c.sat).then_some(Way::IntegralF64),
        (F64, F32) => (!c.sat).then_some(Way::Widen(None)),
        (F32, F16) => Some(Way::Widen(Some(&Format::F16))),
        (F32, BF16) => Some(Way::Widen(Some(&Format::BF16))),
        (TF32, F32) => Some(Way::Tf32),
        (UE8M0x2, F32 | BF16x2) => Some(Way::Powers { is_pair: c.from == BF16x2 }),
        (BF16x2, UE8M0x2) => Some(Way::FromPowers),
        (to @ (F16 | BF16), from @ (F16 | BF16)) if !c.sat && (c.integral || is_nearest) => {
            half(from).zip(half(to)).map(|(from, to)| Way::Half { from, to })
        }
        (to, F32) if is_nearest && !c.sat => match (to, small(to)) {
            (F16, _) => Some(Way::Narrow { to: &Format::F16, step: 16, count: 1 }),
            (BF16, _) => Some(Way::Narrow { to: &Format::BF16, step: 16, count: 1 }),
            (F16x2, _) => Some(Way::Narrow { to: &Format::F16, step: 16, count: 2 }),
            (BF16x2, _) => Some(Way::Narrow { to: &Format::BF16, step: 16, count: 2 }),
            (_, found) => found.map(|(to, step)| Way::Narrow { to, step, count: 2 }),
        },
        (to, F16x2) => small(to).map(|(to, step)| Way::NarrowPair { from: &Format::F16, to, step }),
        (to, BF16x2) => small(to).map(|(to, step)| Way::NarrowPair { from: &Format::BF16, to, step }),
        (F16x2, from) if is_nearest => small(from).map(|(from, step)| Way::WidenPair { from, step }),
        _ => None,
    }
}

fn is_int(ty: ScalarType) -> bool {
    use ScalarType::*;
    is_word(ty) || matches!(ty, S64 | U64)
}

/// An integer of at most 32 bits.
fn is_word(ty: ScalarType) -> bool {
    use ScalarType::*;
    matches!(ty, S8 | U8 | S16 | U16 | S32 | U32)
}
