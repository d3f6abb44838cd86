//! Scalars from text to the bits of a parameter.

use handloom_ir::num::format::{Format, Rounder, narrow, widen};
use handloom_ir::types::{Rounding, ScalarType, TypeClass};

use crate::elements::format_of;

/// The bits of a scalar of a declared type, zero above its width.
///
/// Choice: untyped and unsigned parameters take negative numbers that fit the width, because C compilers declare `int` as `.u32`, and untyped
/// ones of 16, 32 or 64 bits take floats, because newer compilers declare `float` as `.b32`.
///
/// # Errors
/// What was expected.
pub fn parse(text: &str, ty: ScalarType) -> Result<u64, String> {
    let class = match ty.class() {
        TypeClass::Bits if ty.bits() > 64 => None,
        TypeClass::Float if format_of(ty).is_none() => None,
        class => Some(class),
    };
    let bits = match class {
        None | Some(TypeClass::Pred) => return Err(format!("a {ty} takes `bytes:HEX` only")),
        Some(TypeClass::Float) => format_of(ty).and_then(|f| float(text, f, ty)),
        Some(TypeClass::Unsigned | TypeClass::Signed) => integer(text, ty),
        Some(TypeClass::Bits) => integer(text, ty).or_else(|| {
            let same_width = FLOATS.iter().find(|t| t.bits() == ty.bits())?;
            float(text, format_of(*same_width)?, ty)
        }),
    };
    bits.ok_or_else(|| format!("`{text}` is no {ty}: expected {}", expected(ty)))
}

/// Floats that untyped parameters of their width may be.
const FLOATS: [ScalarType; 3] = [ScalarType::F16, ScalarType::F32, ScalarType::F64];

fn expected(ty: ScalarType) -> String {
    let bits = ty.bits();
    match ty.class() {
        TypeClass::Float => {
            let hex = match bits {
                32 => ", or its bits as 0f3F800000",
                64 => ", or its bits as 0d3FF0000000000000",
                _ => "",
            };
            format!("a number that its range holds, inf or nan{hex}")
        }
        TypeClass::Signed => {
            format!("a whole number from -2^{} to 2^{} - 1, or 0x and hexadecimal digits", bits - 1, bits - 1)
        }
        TypeClass::Unsigned | TypeClass::Bits | TypeClass::Pred => {
            format!("a whole number from -2^{} to 2^{bits} - 1, or 0x and hexadecimal digits", bits - 1)
        }
    }
}

/// Bits above the width are cut; they repeat the sign.
fn cut(value: i128, bits: u32) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let low = u128::from_ne_bytes(value.to_ne_bytes()) & u128::from(mask);
    u64::try_from(low).unwrap_or(mask)
}

fn integer(text: &str, ty: ScalarType) -> Option<u64> {
    let bits = ty.bits();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let (digits, radix) = hex.map_or((digits, 10), |h| (h, 16));
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let magnitude = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let value = if negative { -magnitude } else { magnitude };
    // Hexadecimal digits are bits.
    let most = if ty.is_signed() && hex.is_none() { (1 << (bits - 1)) - 1 } else { (1 << bits) - 1 };
    (-(1 << (bits - 1)) <= value && value <= most).then(|| cut(value, bits))
}

/// A decimal number, or `0f` and `0d` with the bits of the same width.
fn float(text: &str, format: &Format, ty: ScalarType) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let digits = |prefix: &str, n: usize| {
        let hex = lower.strip_prefix(prefix)?;
        (hex.len() == n && !hex.starts_with('+')).then(|| u64::from_str_radix(hex, 16).ok())?
    };
    match ty.bits() {
        32 if lower.starts_with("0f") => return digits("0f", 8),
        64 if lower.starts_with("0d") => return digits("0d", 16),
        _ => {}
    }
    let wide: f64 = text.parse().ok()?;
    let bits = match ty.bits() {
        // Rounded once, from the text.
        32 => u64::from(text.parse::<f32>().ok()?.to_bits()),
        64 => wide.to_bits(),
        _ => narrow(format, wide, Rounder::new(Rounding::Nearest), false),
    };
    // What the range does not hold becomes infinity or NaN without being called so.
    let named = |c: char| lower.trim_start_matches(['-', '+']).starts_with(c);
    let held = widen(format, bits);
    (held.is_nan() == named('n') && held.is_infinite() == named('i')).then_some(bits)
}

/// The bytes behind `bytes:`.
///
/// # Errors
/// What was expected.
pub fn hex(text: &str) -> Result<Vec<u8>, String> {
    let fault = || format!("`{text}` is no list of bytes: expected two hexadecimal digits for each byte");
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return Err(fault());
    }
    let byte = |i| text.get(i..i + 2).filter(|t| t.bytes().all(|b| b.is_ascii_hexdigit()));
    let bytes = (0..text.len()).step_by(2).map(|i| u8::from_str_radix(byte(i)?, 16).ok());
    bytes.collect::<Option<_>>().ok_or_else(fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ScalarType::*;

    #[test]
    fn integers_fit_their_width() {
        assert_eq!(parse("1024", U32), Ok(1024));
        assert_eq!(parse("-3", U32), Ok(0xffff_fffd));
        assert_eq!(parse("-3", S8), Ok(0xfd));
        assert_eq!(parse("0x10", B64), Ok(16));
        assert_eq!(parse("-9223372036854775808", S64), Ok(1 << 63));
        assert_eq!(parse("18446744073709551615", U64), Ok(u64::MAX));
        assert_eq!(parse("0xff", S8), Ok(0xff));
        for (text, ty) in
            [("256", U8), ("128", S8), ("-129", U8), ("2.5", S32), ("", U32), ("0x", U32), ("--1", S32), ("1 ", U32)]
        {
            assert!(parse(text, ty).is_err(), "{text}");
        }
        assert!(parse("18446744073709551616", U64).is_err());
    }

    #[test]
    fn floats_are_rounded_once() {
        assert_eq!(parse("2.5", F32), Ok(u64::from(2.5_f32.to_bits())));
        assert_eq!(parse("1", F64), Ok(1.0_f64.to_bits()));
        assert_eq!(parse("0f3F800000", F32), Ok(0x3f80_0000));
        assert_eq!(parse("0d3FF0000000000000", F64), Ok(1.0_f64.to_bits()));
        assert_eq!(parse("1.5", F16), Ok(0x3e00));
        assert_eq!(parse("-inf", F32), Ok(0xff80_0000));
        assert_eq!(parse("2.5", B32), Ok(u64::from(2.5_f32.to_bits())));
        assert_eq!(parse("0f3F800000", B32), Ok(0x3f80_0000));
        assert_eq!(parse("2", B32), Ok(2));
        for (text, ty) in
            [("1e99", F32), ("70000", F16), ("0f3F80", F32), ("0x10", F32), ("one", F64), ("0f3F800000", F64)]
        {
            assert!(parse(text, ty).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_come_in_pairs_of_digits() {
        assert_eq!(hex("00ffA1"), Ok(vec![0, 255, 0xa1]));
        assert_eq!(hex(""), Ok(vec![]));
        assert!(hex("0").is_err());
        assert!(hex("+1").is_err());
    }
}
