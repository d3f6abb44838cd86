//! Text of floating-point numbers, as C writes them.

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

/// Text of a number without its sign, in lower case. `hash` is the flag `#`: always a point, and `%g` keeps its zeros.
pub(super) fn text(value: f64, style: Style, precision: Option<usize>, hash: bool) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return "inf".into();
    }
    match style {
        Style::Fixed => fixed(value, precision.unwrap_or(6), hash),
        Style::Exponent => exponent(value, precision.unwrap_or(6), hash),
        Style::General => general(value, precision.unwrap_or(6).max(1), hash),
        Style::Hex => hex(value, precision, hash),
    }
}

fn fixed(value: f64, precision: usize, hash: bool) -> String {
    let point = if hash && precision == 0 { "." } else { "" };
    format!("{value:.precision$}{point}")
}

/// Mantissa text and decimal exponent, with `precision` digits after the point, correctly rounded.
fn scientific(value: f64, precision: usize) -> (String, i32) {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa.to_owned(), exponent.parse().unwrap_or(0)),
        None => (text, 0),
    }
}

fn exponent(value: f64, precision: usize, hash: bool) -> String {
    let (mantissa, exponent) = scientific(value, precision);
    let point = if hash && precision == 0 { "." } else { "" };
    format!("{mantissa}{point}{}", exponent_text(exponent))
}

/// `e+05`: a sign and at least two digits.
fn exponent_text(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.unsigned_abs())
}

/// `%g` with `digits` significant digits.
fn general(value: f64, digits: usize, hash: bool) -> String {
    let (mantissa, exponent) = scientific(value, digits - 1);
    // As many digits after the point as are left of the significant ones; C takes `%e` outside -4 .. digits.
    let places = if exponent < -4 { None } else { i64::try_from(digits).ok().map(|d| d - 1 - i64::from(exponent)) };
    match places.and_then(|p| usize::try_from(p).ok()) {
        Some(places) => trim(fixed(value, places, hash), hash),
        None => {
            let point = if hash && digits == 1 { "." } else { "" };
            format!("{}{}", trim(format!("{mantissa}{point}"), hash), exponent_text(exponent))
        }
    }
}

/// Without the zeros at the end of the fraction, unless they are asked for.
fn trim(text: String, keep: bool) -> String {
    if keep || !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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
