//! Text of floating-point numbers, as C writes them.

use std::io::Write;

use super::digits::{Digits, scaled};

/// How a number is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `%f`.
    Fixed,
    /// `%e`.
    Exponent,
    /// `%g`.
    General,
    /// `%a`.
    Hex,
}

/// Writes a number without its sign, in lower case. `hash` is the flag `#`: always a point, and `%g` keeps its zeros.
pub(super) fn write(value: f64, style: Style, precision: Option<usize>, hash: bool, to: &mut Vec<u8>) {
    if value.is_nan() {
        return to.extend_from_slice(b"nan");
    }
    if value.is_infinite() {
        return to.extend_from_slice(b"inf");
    }
    match style {
        Style::Fixed => fixed(value, precision.unwrap_or(6), hash, to),
        Style::Exponent => exponent(value, precision.unwrap_or(6), hash, to),
        Style::General => general(value, precision.unwrap_or(6).max(1), hash, to),
        Style::Hex => to.extend_from_slice(hex(value, precision, hash).as_bytes()),
    }
}

fn fixed(value: f64, precision: usize, hash: bool, to: &mut Vec<u8>) {
    match i32::try_from(precision).ok().and_then(|power| scaled(value, power)) {
        Some(number) => {
            let digits = Digits::new(number, 10);
            let digits = digits.as_bytes();
            to.extend(std::iter::repeat_n(b'0', (precision + 1).saturating_sub(digits.len())));
            to.extend_from_slice(digits);
            if precision > 0 {
                to.insert(to.len() - precision, b'.');
            }
        }
        // Nothing fails that is written to memory.
        None => drop(write!(to, "{value:.precision$}")),
    }
    if hash && precision == 0 {
        to.push(b'.');
    }
}

/// Writes so many significant digits, correctly rounded, without a point. Returns the exponent of ten of the first.
fn significant(value: f64, n: usize, to: &mut Vec<u8>) -> i32 {
    if let Some((number, exponent)) = significant_of_few(value, n) {
        let digits = Digits::new(number, 10);
        to.extend(std::iter::repeat_n(b'0', n.saturating_sub(digits.as_bytes().len())));
        to.extend_from_slice(digits.as_bytes());
        return exponent;
    }
    let text = format!("{value:.*e}", n - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    to.extend(mantissa.bytes().filter(|b| *b != b'.'));
    exponent.parse().unwrap_or(0)
}

/// The same as a number, for numbers that are neither very large nor very small.
fn significant_of_few(value: f64, n: usize) -> Option<(u64, i32)> {
    if value == 0.0 {
        return Some((0, 0));
    }
    let power = i32::try_from(n).ok().filter(|n| *n <= 17)? - 1;
    let least = 10_u64.pow(power.unsigned_abs());
    // The logarithm is rounded, and may be off by one.
    let mut exponent = value.log10().floor() as i32;
    let mut number = scaled(value, power - exponent)?;
    if number >= 10 * least {
        exponent += 1;
        number = scaled(value, power - exponent)?;
    } else if number <= least {
        // That many digits may have been rounded up to one more.
        let finer = scaled(value, power - exponent + 1)?;
        if finer < 10 * least {
            (exponent, number) = (exponent - 1, finer);
        }
    }
    Some((number, exponent))
}

fn exponent(value: f64, precision: usize, hash: bool, to: &mut Vec<u8>) {
    let start = to.len();
    let exponent = significant(value, precision + 1, to);
    if hash || precision > 0 {
        to.insert(start + 1, b'.');
    }
    exponent_text(exponent, to);
}

/// `e+05`: a sign and at least two digits.
fn exponent_text(exponent: i32, to: &mut Vec<u8>) {
    to.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
    let digits = Digits::new(exponent.unsigned_abs().into(), 10);
    if digits.as_bytes().len() < 2 {
        to.push(b'0');
    }
    to.extend_from_slice(digits.as_bytes());
}

/// `%g` with `n` significant digits.
fn general(value: f64, n: usize, hash: bool, to: &mut Vec<u8>) {
    let start = to.len();
    let exponent = significant(value, n, to);
    // Digits before the point; C takes `%e` outside of -4 .. n.
    let before = usize::try_from(exponent).map(|e| e + 1);
    match before {
        Ok(before) if before <= n => {
            to.insert(start + before, b'.');
            trim(hash, to);
        }
        Err(_) if exponent >= -4 => {
            to.splice(start..start, b"0.000".iter().copied().take(1 + exponent.unsigned_abs() as usize));
            trim(hash, to);
        }
        Ok(_) | Err(_) => {
            to.insert(start + 1, b'.');
            trim(hash, to);
            exponent_text(exponent, to);
        }
    }
}

/// Leaves the zeros at the end of a fraction out, and a point without a fraction, unless they are asked for.
fn trim(keep: bool, text: &mut Vec<u8>) {
    if keep {
        return;
    }
    while text.last() == Some(&b'0') {
        text.pop();
    }
    if text.last() == Some(&b'.') {
        text.pop();
    }
}

fn hex(value: f64, precision: Option<usize>, hash: bool) -> String {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let biased = bits >> 52 & 0x7ff;
    // Subnormal numbers are written with the leading digit 0 and the least exponent, as glibc does.
    let exponent = match (biased, fraction) {
        (0, 0) => 0,
        (0, _) => -1022,
        (e, _) => i64::try_from(e).unwrap_or(0) - 1023,
    };
    // The leading digit is above 52 bits of fraction, 13 hexadecimal digits.
    let mut mantissa = u64::from(biased != 0) << 52 | fraction;
    let digits = match precision {
        Some(p) if p < 13 => {
            let dropped = 4 * (13 - p);
            let half = 1_u64 << (dropped - 1);
            let (kept, rest) = (mantissa >> dropped, mantissa & ((1 << dropped) - 1));
            let up = rest > half || (rest == half && kept & 1 == 1);
            mantissa = (kept + u64::from(up)) << dropped;
            p
        }
        Some(p) => p,
        None => {
            let text = format!("{:013x}", mantissa & ((1 << 52) - 1));
            text.trim_end_matches('0').len()
        }
    };
    let fraction = format!("{:013x}{}", mantissa & ((1 << 52) - 1), "0".repeat(digits.saturating_sub(13)));
    let point = if digits > 0 || hash { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("0x{}{point}{}p{sign}{}", mantissa >> 52, &fraction[..digits], exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64, style: Style, precision: usize) -> String {
        let mut to = Vec::new();
        write(value, style, Some(precision), false, &mut to);
        String::from_utf8_lossy(&to).into_owned()
    }

    /// The digits are those of the standard library, which takes longer for them: of numbers of all sizes, of short fractions, whose halves are exact, and of powers of ten
    /// and what lies beside them.
    #[test]
    fn digits_are_rounded_correctly() {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let mut values = vec![0.0, f64::MAX, f64::MIN_POSITIVE, 5e-324];
        for power in -30..30 {
            let ten: f64 = format!("1e{power}").parse().expect("a number");
            values.extend([
                ten.next_down(),
                ten,
                ten.next_up(),
                9.999_999_4 * ten,
                9.999_999_5 * ten,
                9.999_999_6 * ten,
            ]);
        }
        for _ in 0..4000 {
            let bits = next();
            let short = (bits % 100_000) as f64 / f64::from(1_u32 << (bits >> 32 & 15));
            let near = f64::from_bits(bits >> 12 | (1023 - 40 + (bits & 127)) << 52);
            values.extend([f64::from_bits(bits >> 1), short, near]);
        }
        for value in values.into_iter().filter(|v| v.is_finite()) {
            for precision in [0, 1, 2, 6, 9, 15, 17, 20] {
                assert_eq!(text(value, Style::Fixed, precision), format!("{value:.precision$}"));
                let want = format!("{value:.precision$e}");
                let (mantissa, exponent) = want.split_once('e').expect("an exponent");
                let exponent: i32 = exponent.parse().expect("a number");
                let sign = if exponent < 0 { '-' } else { '+' };
                let want = format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
                assert_eq!(text(value, Style::Exponent, precision), want);
            }
        }
    }
}
