//! Floats of 8 and 4 bits by their tables: a number goes to the nearest entry, found by looking at all of them.

/// The numbers of a format in the order of their codes, without signs.
#[derive(Clone, Debug)]
pub struct Table {
    numbers: Vec<f64>,
}

impl Table {
    /// `e4m3`: 127 numbers up to 448.
    pub fn e4m3() -> Table {
        Table::new(4, 3, 0x7f)
    }

    /// `e2m1`: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
    pub fn e2m1() -> Table {
        Table { numbers: vec![0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0] }
    }

    /// `.f16`: its finite numbers.
    pub fn f16() -> Table {
        Table::new(5, 10, 0x7c00)
    }

    fn new(exponent: i32, fraction: i32, count: i32) -> Table {
        let bias = (1 << (exponent - 1)) - 1;
        let one = 1 << fraction;
        let number = |code: i32| {
            let (field, rest) = (code / one, code % one);
            let significand = if field == 0 { rest } else { rest + one };
            f64::from(significand) * 2_f64.powi(field.max(1) - bias - fraction)
        };
        Table { numbers: (0..count).map(number).collect() }
    }

    /// The code of the nearest number, the even one of two, with a sign above the magnitude. Beyond the last number is the last.
    ///
    /// # Panics
    /// For NaN.
    pub fn code(&self, a: f32, sign_bit: u32) -> u32 {
        assert!(!a.is_nan(), "a table has no NaN");
        let size = f64::from(a.abs());
        let above = self.numbers.partition_point(|n| *n <= size);
        let code = match self.numbers.get(above) {
            None => above - 1,
            // The last at or below, the first above; the middle is exact in `f64`.
            Some(next) => {
                let middle = f64::midpoint(self.numbers[above - 1], *next);
                let goes_up = size > middle || (size == middle && above.is_multiple_of(2));
                if goes_up { above } else { above - 1 }
            }
        };
        u32::try_from(code).expect("few codes") | u32::from(a.is_sign_negative()) << sign_bit
    }

    /// The number of a code.
    pub fn number(&self, code: u32, sign_bit: u32) -> f32 {
        let size = self.numbers[(code & ((1 << sign_bit) - 1)) as usize] as f32;
        if code >> sign_bit & 1 != 0 { -size } else { size }
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn ends_and_ties() {
        let t = Table::e4m3();
        assert_eq!((t.number(0x7e, 7), t.number(1, 7), t.number(0xb8, 7)), (448.0, 1.0 / 512.0, -1.0));
        assert_eq!((t.code(1e9, 7), t.code(-1.0625, 7), t.code(1.1875, 7)), (0x7e, 0xb8, 0x3a));
        let t = Table::e2m1();
        assert_eq!((t.code(0.25, 3), t.code(0.75, 3), t.code(-5.0, 3), t.code(2.5, 3)), (0, 2, 14, 4));
    }
}
