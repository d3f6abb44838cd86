//! Values of literals.

use crate::ast::ExprKind;

/// What is wrong with a literal: a sentence and what to write.
pub(crate) struct Malformed(pub(crate) String, pub(crate) Option<String>);

/// The value of the text of a number token.
pub(crate) fn number<'a>(text: &str) -> Result<ExprKind<'a>, Malformed> {
    let bytes = text.as_bytes();
    match bytes {
        [b'0', b'f' | b'F', digits @ ..] => hex_float(text, digits, 8).map(|bits| ExprKind::Float32(bits as u32)),
        [b'0', b'd' | b'D', digits @ ..] => {
            hex_float(text, digits, 16).map(|bits| ExprKind::Float(f64::from_bits(bits)))
        }
        [b'0', b'x' | b'X', digits @ ..] => integer(text, digits, 16),
        [b'0', b'b' | b'B', digits @ ..] => integer(text, digits, 2),
        _ if bytes.iter().any(|b| matches!(b, b'.' | b'e' | b'E')) => decimal_float(text),
        [b'0', digits @ ..] if !matches!(digits, [] | b"U") => integer(text, digits, 8),
        _ => integer(text, bytes, 10),
    }
}

fn hex_float(text: &str, digits: &[u8], count: usize) -> Result<u64, Malformed> {
    let value = std::str::from_utf8(digits).ok().and_then(|d| u64::from_str_radix(d, 16).ok());
    match value {
        // `from_str_radix` would take a sign, which a number token never has at its third byte.
        Some(bits) if digits.len() == count => Ok(bits),
        _ => Err(Malformed(
            format!("`{}` is not a float literal", short(text)),
            Some(format!("write exactly {count} hexadecimal digits behind `{}`", &text[..2])),
        )),
    }
}

fn decimal_float<'a>(text: &str) -> Result<ExprKind<'a>, Malformed> {
    // Rust reads all that the manual allows; what it reads besides (`inf`) is no number token.
    match text.parse() {
        Ok(value) => Ok(ExprKind::Float(value)),
        Err(_) => {
            let suffix = text.ends_with(['f', 'F']).then(|| "float literals have no suffix".to_owned());
            Err(Malformed(format!("`{}` is not a float literal", short(text)), suffix))
        }
    }
}

fn integer<'a>(text: &str, digits: &[u8], radix: u32) -> Result<ExprKind<'a>, Malformed> {
    let (digits, suffix) = match digits {
        [digits @ .., b'U'] => (digits, true),
        _ => (digits, false),
    };
    let (mut value, mut truncated) = (0u64, false);
    for &digit in digits {
        let Some(digit) = char::from(digit).to_digit(radix) else { return Err(not_integer(text, radix)) };
        let exact = value.checked_mul(u64::from(radix)).and_then(|v| v.checked_add(u64::from(digit)));
        truncated |= exact.is_none();
        value = value.wrapping_mul(u64::from(radix)).wrapping_add(u64::from(digit));
    }
    if digits.is_empty() {
        return Err(not_integer(text, radix));
    }
    let unsigned = suffix || truncated || value > i64::MAX as u64;
    Ok(ExprKind::Int { value, unsigned, truncated })
}

fn not_integer(text: &str, radix: u32) -> Malformed {
    let kind = match radix {
        2 => "a binary",
        8 => "an octal",
        16 => "a hexadecimal",
        _ => "a decimal",
    };
    let help = match radix {
        8 => Some("an integer that begins with `0` is octal: its digits are `0` to `7`".to_owned()),
        _ if text.ends_with(['u', 'L', 'l']) => Some("the only suffix of an integer is `U`".to_owned()),
        _ => None,
    };
    Malformed(format!("`{}` is not {kind} integer", short(text)), help)
}

/// The text for a message: a long one is cut.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}
