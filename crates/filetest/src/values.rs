//! Element types of buffers, literals of directives, and how close a result must be.

use handloom_ir::num::format::{Format, Rounder, narrow, widen};
use handloom_ir::types::Rounding;

/// Type of the elements of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Elem {
    /// An integer or plain bits, of so many bytes.
    Int {
        /// 1, 2, 4 or 8.
        bytes: usize,
        /// Whether results are shown with a sign.
        signed: bool,
    },
    /// IEEE half.
    F16,
    /// Brain float.
    Bf16,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
}

impl Elem {
    /// The type of a name such as `u32`.
    ///
    /// # Errors
    /// There is no such type.
    pub fn parse(name: &str) -> Result<Elem, String> {
        let int = |bytes, signed| Ok(Elem::Int { bytes, signed });
        match name {
            "u8" | "b8" => int(1, false),
            "u16" | "b16" => int(2, false),
            "u32" | "b32" => int(4, false),
            "u64" | "b64" => int(8, false),
            "s8" => int(1, true),
            "s16" => int(2, true),
            "s32" => int(4, true),
            "s64" => int(8, true),
            "f16" => Ok(Elem::F16),
            "bf16" => Ok(Elem::Bf16),
            "f32" => Ok(Elem::F32),
            "f64" => Ok(Elem::F64),
            other => Err(format!("no buffer type `{other}`")),
        }
    }

    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            Elem::Int { bytes, .. } => bytes,
            Elem::F16 | Elem::Bf16 => 2,
            Elem::F32 => 4,
            Elem::F64 => 8,
        }
    }

    /// The bits of a literal: integers in any base; floats as numbers, `inf`, `nan`, or bits (`0x`, `0f`, `0d`).
    ///
    /// # Errors
    /// It is no literal of this type.
    pub fn literal(self, text: &str) -> Result<u64, String> {
        let fail = || format!("`{text}` is no {}", self.name());
        match self {
            Elem::Int { bytes, .. } => {
                let value = integer(text).ok_or_else(fail)?;
                let bits = u32::try_from(8 * bytes).unwrap_or(64);
                if value >= 1 << bits || value < -(1 << (bits - 1)) {
                    return Err(format!("`{text}` does not fit {bits} bits"));
                }
                Ok(low_bits(value, bits))
            }
            Elem::F16 | Elem::Bf16 | Elem::F32 | Elem::F64 => {
                if text.starts_with("0x") {
                    let value = integer(text).ok_or_else(fail)?;
                    return u64::try_from(value).map_err(|_| fail());
                }
                if let Some(hex) = text.strip_prefix("0f") {
                    let bits = u32::from_str_radix(hex, 16).map_err(|_| fail())?;
                    return Ok(self.of_f64(f64::from(f32::from_bits(bits))));
                }
                if let Some(hex) = text.strip_prefix("0d") {
                    let bits = u64::from_str_radix(hex, 16).map_err(|_| fail())?;
                    return Ok(self.of_f64(f64::from_bits(bits)));
                }
                if text == "nan" {
                    return Ok(self.canonical_nan());
                }
                if self == Elem::F32 {
                    return text.parse::<f32>().map(|v| u64::from(v.to_bits())).map_err(|_| fail());
                }
                Ok(self.of_f64(text.parse::<f64>().map_err(|_| fail())?))
            }
        }
    }

    /// The bits of a number, rounded to the type; integers are cut.
    pub fn of_f64(self, v: f64) -> u64 {
        match self {
            // Only `iota` and `random` come here with integers, whose numbers are small and whole.
            #[allow(clippy::cast_possible_truncation, reason = "the numbers are small and whole")]
            Elem::Int { bytes, .. } => low_bits(i128::from(v as i64), u32::try_from(8 * bytes).unwrap_or(64)),
            Elem::F16 => narrow(&Format::F16, v, Rounder::new(Rounding::Nearest), false),
            Elem::Bf16 => narrow(&Format::BF16, v, Rounder::new(Rounding::Nearest), false),
            #[allow(clippy::cast_possible_truncation, reason = "the rounding is what is asked for")]
            Elem::F32 => u64::from((v as f32).to_bits()),
            Elem::F64 => v.to_bits(),
        }
    }

    /// The number behind the bits.
    pub fn to_f64(self, bits: u64) -> f64 {
        match self {
            #[allow(clippy::cast_precision_loss, reason = "used for distances only")]
            Elem::Int { .. } => self.signed(bits) as f64,
            Elem::F16 => widen(&Format::F16, bits),
            Elem::Bf16 => widen(&Format::BF16, bits),
            Elem::F32 => f64::from(f32::from_bits(low32(bits))),
            Elem::F64 => f64::from_bits(bits),
        }
    }

    /// All ones behind the sign, as every instruction that makes a NaN gives it; doubles have NVIDIA's pattern.
    fn canonical_nan(self) -> u64 {
        match self {
            Elem::Int { .. } => 0,
            Elem::F16 | Elem::Bf16 => 0x7fff,
            Elem::F32 => 0x7fff_ffff,
            Elem::F64 => 0x7fff_ffff_ffff_ffff,
        }
    }

    fn signed(self, bits: u64) -> i128 {
        match self {
            Elem::Int { bytes, signed: true } => {
                let shift = 64 - 8 * u32::try_from(bytes).unwrap_or(8);
                i128::from((bits << shift).cast_signed() >> shift)
            }
            Elem::Int { .. } | Elem::F16 | Elem::Bf16 | Elem::F32 | Elem::F64 => i128::from(bits),
        }
    }

    /// For people.
    pub fn show(self, bits: u64) -> String {
        let hex = format!("{bits:#0width$x}", width = 2 + 2 * self.bytes());
        match self {
            Elem::Int { .. } => format!("{} ({hex})", self.signed(bits)),
            Elem::F16 | Elem::Bf16 | Elem::F32 | Elem::F64 => format!("{} ({hex})", float(self.to_f64(bits))),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Elem::Int { .. } => "integer",
            Elem::F16 | Elem::Bf16 | Elem::F32 | Elem::F64 => "float",
        }
    }

    /// Element `i` of a buffer; `None` behind its end.
    pub fn get(self, buffer: &[u8], i: usize) -> Option<u64> {
        let bytes = buffer.get(i * self.bytes()..(i + 1) * self.bytes())?;
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }

    /// Steps between two floats of the type; `None` if exactly one of them is a NaN.
    fn ulps(self, a: u64, b: u64) -> Option<u64> {
        let (x, y) = (self.to_f64(a), self.to_f64(b));
        if x.is_nan() || y.is_nan() {
            return (x.is_nan() && y.is_nan()).then_some(0);
        }
        let sign = 1_u64 << (8 * self.bytes() - 1);
        let rank = |v: u64| {
            let magnitude = i128::from(v & (sign - 1));
            if v & sign == 0 { magnitude } else { -magnitude }
        };
        u64::try_from((rank(a) - rank(b)).abs()).ok()
    }
}

/// Where a result may lie around the wanted value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Within {
    /// The same bits.
    Bits,
    /// At most so many steps of the type.
    Ulp(u64),
    /// At most so far as a number.
    Absolute(f64),
    /// At most so much of the wanted value.
    Relative(f64),
}

impl Within {
    /// `2 ulp`, `1e-5 abs`, `1e-5 rel`.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(text: &str) -> Result<Within, String> {
        let fail = || format!("`within {text}`: expected `N ulp`, `X abs` or `X rel`");
        let (number, unit) = text.trim().split_once(' ').ok_or_else(fail)?;
        match unit.trim() {
            "ulp" => number.parse().map(Within::Ulp).map_err(|_| fail()),
            "abs" => number.parse().map(Within::Absolute).map_err(|_| fail()),
            "rel" => number.parse().map(Within::Relative).map_err(|_| fail()),
            _ => Err(fail()),
        }
    }

    /// Whether a result is near enough.
    pub fn holds(self, elem: Elem, got: u64, want: u64) -> bool {
        if got == want {
            return true;
        }
        let (g, w) = (elem.to_f64(got), elem.to_f64(want));
        match self {
            Within::Bits => false,
            Within::Ulp(n) => elem.ulps(got, want).is_some_and(|d| d <= n),
            Within::Absolute(x) => (g.is_nan() && w.is_nan()) || (g - w).abs() <= x,
            Within::Relative(x) => (g.is_nan() && w.is_nan()) || (g - w).abs() <= x * w.abs(),
        }
    }
}

/// Values of a buffer; `None` where any value will do.
pub type Values = Vec<Option<u64>>;

/// A list `[1, 2 x 5, 0..4, _]`, or `zero N`, `iota N`, `random(SEED) N`, `edges(SEED) N`.
///
/// # Errors
/// It is none of these, or a literal does not fit the type.
pub fn values(elem: Elem, text: &str) -> Result<Values, String> {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        let mut out = Vec::new();
        for item in inner.split(',').map(str::trim).filter(|t| !t.is_empty()) {
            list_item(elem, item, &mut out)?;
        }
        return Ok(out);
    }
    let (word, count) = text.rsplit_once(' ').ok_or_else(|| format!("`{text}` is no list of values"))?;
    let count = number_of(count)?;
    let word = word.trim();
    if let Some(seed) = word.strip_prefix("random(").and_then(|w| w.strip_suffix(')')) {
        let seed: u64 = seed.trim().parse().map_err(|_| format!("`{seed}` is no seed"))?;
        return Ok(random(elem, seed, count));
    }
    if let Some(seed) = word.strip_prefix("edges(").and_then(|w| w.strip_suffix(')')) {
        let seed: u64 = seed.trim().parse().map_err(|_| format!("`{seed}` is no seed"))?;
        let mut rng = crate::rng::Rng::new(seed);
        let mask = u64::MAX >> (64 - 8 * elem.bytes());
        return Ok((0..count).map(|_| Some(edge(&mut rng) & mask)).collect());
    }
    match word {
        "zero" => Ok(vec![Some(0); count]),
        // Numbers of elements are far below 2^53.
        #[allow(clippy::cast_precision_loss, reason = "counts are small")]
        "iota" => Ok((0..count).map(|i| Some(elem.of_f64(i as f64))).collect()),
        other => Err(format!("`{other}`: expected a list, `zero N`, `iota N`, `random(SEED) N` or `edges(SEED) N`")),
    }
}

/// Most elements of a buffer: what a test should hold in memory several times.
const MOST: usize = 1 << 28;

fn number_of(count: &str) -> Result<usize, String> {
    let number = count.trim().parse().ok().filter(|n| *n <= MOST);
    number.ok_or_else(|| format!("`{count}` is no number of elements up to {MOST}"))
}

fn list_item(elem: Elem, item: &str, out: &mut Values) -> Result<(), String> {
    if let Some((value, count)) = item.rsplit_once(" x ") {
        let count = number_of(count)?;
        let value = one_value(elem, value.trim())?;
        out.extend(std::iter::repeat_n(value, count));
        return Ok(());
    }
    if let Some((from, to)) = item.split_once("..") {
        let (from, to) = (integer(from), integer(to));
        let (Some(from), Some(to)) = (from, to) else { return Err(format!("`{item}` is no range")) };
        if to.saturating_sub(from) > MOST as i128 {
            return Err(format!("`{item}` is longer than {MOST} elements"));
        }
        #[allow(clippy::cast_precision_loss, reason = "bounds of ranges are small")]
        out.extend((from..to).map(|v| Some(elem.of_f64(v as f64))));
        return Ok(());
    }
    out.push(one_value(elem, item)?);
    Ok(())
}

fn one_value(elem: Elem, text: &str) -> Result<Option<u64>, String> {
    if text == "_" { Ok(None) } else { elem.literal(text).map(Some) }
}

/// Random bits for integers; for floats numbers in -8..8 with twenty bits behind the point.
fn random(elem: Elem, seed: u64, count: usize) -> Values {
    let mut rng = crate::rng::Rng::new(seed);
    let one = |_| match elem {
        Elem::Int { bytes, .. } => Some(low_bits(i128::from(rng.next()), u32::try_from(8 * bytes).unwrap_or(64))),
        #[allow(clippy::cast_precision_loss, reason = "24 bits are exact")]
        Elem::F16 | Elem::Bf16 | Elem::F32 | Elem::F64 => {
            let bits = (rng.next() >> 40) as f64;
            Some(elem.of_f64(bits / f64::from(1 << 20) - 8.0))
        }
    };
    (0..count).map(one).collect()
}

/// Bits at the edges of formats, and others.
pub fn edge(rng: &mut crate::rng::Rng) -> u64 {
    const EDGES: &[u64] = &[
        0,
        1,
        u64::MAX,
        0x8000_0000_0000_0000,
        0x7fff_ffff_ffff_ffff,
        0x3ff0_0000_0000_0000,
        0x8000_0000_7fff_ffff,
        0x7f80_0000_ff80_0000,
        0x3f80_0000_bf80_0000,
        0x0000_0001_007f_ffff,
        0x7c00_3c00_03ff_0001,
        0x7ff0_0000_0000_0001,
        0x0000_0020_0000_001f,
    ];
    match rng.below(3) {
        0 => *rng.pick(EDGES),
        1 => rng.next() >> rng.below(63),
        _ => rng.next(),
    }
}

/// The bytes of values; "any" is written as zero.
pub fn bytes(elem: Elem, values: &[Option<u64>]) -> Vec<u8> {
    values.iter().flat_map(|v| v.unwrap_or(0).to_le_bytes().into_iter().take(elem.bytes())).collect()
}

/// An integer in any base, with a sign.
pub fn integer(text: &str) -> Option<i128> {
    let text = text.trim();
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |t| (true, t));
    let value = if let Some(hex) = digits.strip_prefix("0x") {
        i128::from_str_radix(&hex.replace('_', ""), 16).ok()?
    } else if let Some(bits) = digits.strip_prefix("0b") {
        i128::from_str_radix(&bits.replace('_', ""), 2).ok()?
    } else {
        digits.parse().ok()?
    };
    Some(if negative { -value } else { value })
}

/// The low bits of a number in two's complement.
fn low_bits(value: i128, bits: u32) -> u64 {
    let mask = (1_u128 << bits) - 1;
    u64::try_from(value.cast_unsigned() & mask).unwrap_or(0)
}

fn low32(bits: u64) -> u32 {
    u32::try_from(bits & 0xffff_ffff).unwrap_or(0)
}

/// A float as people write it: with an exponent only where it is far from 1.
fn float(n: f64) -> String {
    let is_near = n == 0.0 || (1e-4..1e7).contains(&n.abs());
    if is_near { format!("{n}") } else { format!("{n:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_all_types() {
        let s8 = Elem::parse("s8").unwrap();
        assert_eq!(s8.literal("-1"), Ok(0xff));
        assert_eq!(s8.literal("255"), Ok(0xff));
        assert!(s8.literal("256").is_err() && s8.literal("-129").is_err());
        assert_eq!(Elem::F32.literal("1.5"), Ok(0x3fc0_0000));
        assert_eq!(Elem::F32.literal("-inf"), Ok(0xff80_0000));
        assert_eq!(Elem::F32.literal("0x80000000"), Ok(0x8000_0000));
        assert_eq!(Elem::F16.literal("1"), Ok(0x3c00));
        assert_eq!(Elem::F64.literal("0f3F800000"), Ok(1.0_f64.to_bits()));
    }

    #[test]
    fn lists_repeat_and_count() {
        let u8s = Elem::parse("u8").unwrap();
        assert_eq!(values(u8s, "[1, 7 x 2, 3..5, _]").unwrap(), [Some(1), Some(7), Some(7), Some(3), Some(4), None]);
        assert_eq!(bytes(u8s, &values(u8s, "iota 3").unwrap()), [0, 1, 2]);
    }

    #[test]
    fn distances() {
        assert!(Within::Ulp(1).holds(Elem::F32, 0x8000_0000, 1));
        assert!(!Within::Ulp(1).holds(Elem::F32, 0x8000_0001, 1));
        assert!(Within::Ulp(0).holds(Elem::F32, 0x7fc0_0000, 0x7fff_ffff));
        assert!(!Within::Ulp(9).holds(Elem::F32, 0x7fc0_0000, 0x7f80_0000));
        assert!(Within::Relative(0.1).holds(Elem::F64, 1.05_f64.to_bits(), 1.0_f64.to_bits()));
    }
}
