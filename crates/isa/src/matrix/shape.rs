//! Shapes of matrix products: rows, columns and depth.

use crate::form::{Choice, Value, choice};

/// Rows, columns and depth of a shape such as `.m16n8k16`; zeros for what is not written.
pub fn mnk(text: &str) -> (u32, u32, u32) {
    let number = |letter: char| {
        let digits = text.split_once(letter).map_or("", |(_, rest)| rest);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().unwrap_or(0)
    };
    (number('m'), number('n'), number('k'))
}

/// Shapes of `mma`.
pub const MMA: &[Choice] = &[
    choice(".m8n8k4", Value::Flag),
    choice(".m8n8k16", Value::Flag),
    choice(".m8n8k32", Value::Flag),
    choice(".m8n8k128", Value::Flag),
    choice(".m16n8k4", Value::Flag),
    choice(".m16n8k8", Value::Flag),
    choice(".m16n8k16", Value::Flag),
    choice(".m16n8k32", Value::Flag),
    choice(".m16n8k64", Value::Flag),
    choice(".m16n8k128", Value::Flag),
    choice(".m16n8k256", Value::Flag),
];

/// Shapes of `wmma`.
pub const WMMA: &[Choice] = &[
    choice(".m16n16k16", Value::Flag),
    choice(".m8n32k16", Value::Flag),
    choice(".m32n8k16", Value::Flag),
    choice(".m16n16k8", Value::Flag),
    choice(".m8n8k4", Value::Flag),
    choice(".m8n8k32", Value::Flag),
    choice(".m8n8k128", Value::Flag),
];

/// The shapes of one depth: 64 rows, 8 to 256 columns.
macro_rules! of_depth {
    ($depth:literal: $($columns:literal)*) => {
        [$(choice(concat!(".m64n", $columns, "k", $depth), Value::Flag)),*]
    };
}

/// The shapes of some depths, the columns as each depth has them.
macro_rules! of_depths {
    ($($depth:literal)*) => {
        [$(of_depth!($depth:
            8 16 24 32 40 48 56 64 72 80 88 96 104 112 120 128
            136 144 152 160 168 176 184 192 200 208 216 224 232 240 248 256
        )),*]
    };
}

/// Shapes of `wgmma`.
pub const SHAPE_64: &[Choice] = of_depths!(8 16 32 64 256).as_flattened();
