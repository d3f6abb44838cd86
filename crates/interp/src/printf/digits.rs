//! Digits of numbers, without memory of their own.

/// Decimal, octal or hexadecimal digits of a number.
pub(super) struct Digits {
    bytes: [u8; 24],
    start: usize,
}

impl Digits {
    /// Of a number, in lower case; at least one.
    pub(super) fn new(mut value: u64, radix: u64) -> Digits {
        let mut digits = Digits { bytes: [b'0'; 24], start: 24 };
        if radix == 10 {
            // Two at a time: a division by a number that is not known takes much longer than one by a hundred.
            while value >= 100 {
                digits.put(PAIRS[(value % 100) as usize]);
                value /= 100;
            }
            if value >= 10 {
                digits.put(PAIRS[value as usize]);
            } else {
                digits.put([b'0' + value as u8]);
            }
            return digits;
        }
        let bits = radix.trailing_zeros();
        loop {
            digits.put([b"0123456789abcdef"[(value % radix) as usize]]);
            value >>= bits;
            if value == 0 {
                return digits;
            }
        }
    }

    fn put<const N: usize>(&mut self, digits: [u8; N]) {
        self.start -= N;
        self.bytes[self.start..self.start + N].copy_from_slice(&digits);
    }

    pub(super) fn upper(mut self) -> Digits {
        self.bytes.make_ascii_uppercase();
        self
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// The digits of the numbers below a hundred.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut i = 0;
    while i < 100 {
        pairs[i] = [b'0' + (i / 10) as u8, b'0' + (i % 10) as u8];
        i += 1;
    }
    pairs
};

/// A number that is not negative times a power of ten, rounded to the nearest integer, halves to the even one. `None` where numbers on the way are too large.
pub(super) fn scaled(value: f64, power: i32) -> Option<u64> {
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    // The value is `mantissa * 2^exponent`.
    let (mantissa, exponent) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    let ten = 10_u128.checked_pow(power.unsigned_abs())?;
    let (mut number, mut by) =
        if power < 0 { (u128::from(mantissa), ten) } else { (u128::from(mantissa).checked_mul(ten)?, 1) };
    if exponent >= 0 {
        let shift = exponent.unsigned_abs();
        if shift > number.leading_zeros() {
            return None;
        }
        number <<= shift;
    } else if power >= 0 {
        let shift = exponent.unsigned_abs();
        if shift > 127 {
            // Less than a half, whatever the number is, but for one shift.
            return if shift > 128 { Some(0) } else { None };
        }
        let (whole, rest, half) = (number >> shift, number & ((1 << shift) - 1), 1 << (shift - 1));
        return rounded(whole, rest.cmp(&half));
    } else {
        let shift = exponent.unsigned_abs();
        // One bit is left for twice the rest.
        if shift + 1 >= by.leading_zeros() {
            return None;
        }
        by <<= shift;
    }
    if by == 1 {
        return u64::try_from(number).ok();
    }
    let (whole, rest) = (number / by, number % by);
    if by.leading_zeros() == 0 {
        return None;
    }
    rounded(whole, (2 * rest).cmp(&by))
}

/// An integer, and what lies above it compared with a half.
fn rounded(whole: u128, rest: std::cmp::Ordering) -> Option<u64> {
    let up = rest.is_gt() || rest.is_eq() && whole & 1 == 1;
    u64::try_from(whole + u128::from(up)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_standard_library() {
        let all = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, 0x9e37_79b9_7f4a_7c15 >> bit]);
        for n in all.chain([u64::MAX, 0, 9, 10, 99, 100]) {
            let text = |radix| String::from_utf8_lossy(Digits::new(n, radix).as_bytes()).into_owned();
            assert_eq!([text(10), text(8), text(16)], [format!("{n}"), format!("{n:o}"), format!("{n:x}")]);
        }
    }

    #[test]
    fn halves_go_to_the_even_number() {
        for (value, power, want) in [
            (0.5, 0, 0),
            (1.5, 0, 2),
            (2.5, 0, 2),
            (0.125, 2, 12),
            (0.375, 2, 38),
            (25.0, -1, 2),
            (35.0, -1, 4),
            (25.5, -1, 3),
            (0.0, 6, 0),
            (1e22, -22, 1),
            (1e18, 0, 1_000_000_000_000_000_000),
        ] {
            assert_eq!(scaled(value, power), Some(want), "{value} {power}");
        }
        assert_eq!(scaled(1e-300, 6), Some(0));
        assert_eq!([scaled(1e20, 0), scaled(1e-300, 306), scaled(1e300, -290)], [None; 3]);
    }
}
