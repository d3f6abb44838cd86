//! Tables 26, 27 and 28 of the manual, row by row.

use crate::common::*;
use handloom_check::fit::{Side, ordinary, relaxed};
use handloom_check::module::Fit;
use handloom_ir::types::ScalarType::{self, *};

const COLUMNS: [ScalarType; 16] = [B8, B16, B32, B64, B128, S8, S16, S32, S64, U8, U16, U32, U64, F16, F32, F64];

/// `=` same size, `<` wider (chopped, or extended as the row says), `.` refused: Operand Size Exceeding Instruction-Type Size.
const ROWS: [(ScalarType, &str); 16] = [
    (B8, "=<<<<=<<<=<<<<<<"),
    (B16, ".=<<<.=<<.=<<=<<"),
    (B32, "..=<<..=<..=<.=<"),
    (B64, "...=<...=...=..="),
    (B128, "....=..........."),
    (S8, "=<<<<=<<<=<<<..."),
    (S16, ".=<<<.=<<.=<<..."),
    (S32, "..=<<..=<..=<..."),
    (S64, "...=<...=...=..."),
    (U8, "=<<<<=<<<=<<<..."),
    (U16, ".=<<<.=<<.=<<..."),
    (U32, "..=<<..=<..=<..."),
    (U64, "...=<...=...=..."),
    (F16, ".=<<<........=.."),
    (F32, "..=<<.........=."),
    (F64, "...=<..........="),
];

#[test]
fn tables_27_and_28() {
    for (inst, row) in ROWS {
        for (reg, mark) in COLUMNS.into_iter().zip(row.chars()) {
            let source = match mark {
                '=' => Some(Fit::Same),
                '<' => Some(Fit::Zero),
                _ => None,
            };
            let destination = match source {
                Some(Fit::Zero) if inst.is_signed() => Some(Fit::Sign),
                other => other,
            };
            assert_eq!(relaxed(inst, reg, Side::Source), source, "{inst} from {reg}");
            assert_eq!(relaxed(inst, reg, Side::Destination), destination, "{inst} to {reg}");
        }
    }
}

/// Table 26: of the same size, bits agree with all, integers with integers and bits, floats with themselves and bits.
#[test]
fn table_26() {
    for (inst, row) in ROWS {
        for (reg, mark) in COLUMNS.into_iter().zip(row.chars()) {
            assert_eq!(ordinary(inst, reg).is_some(), mark == '=', "{inst} with {reg}");
        }
    }
}

/// Formats without registers of their own want bits of their very size, and predicates only themselves.
#[test]
fn other_formats() {
    for (inst, reg, fits) in [
        (BF16, B16, true),
        (BF16, B32, false),
        (BF16, F16, false),
        (BF16, U16, false),
        (TF32, B32, true),
        (TF32, F32, false),
        (TF32, B64, false),
        (E4M3x2, B16, true),
        (E4M3x2, B32, false),
        (BF16x2, B32, true),
        (BF16x2, U32, false),
        (BF16x2, F16x2, false),
        (F16x2, F16x2, true),
        (F16x2, B32, true),
        (U32, F16x2, true),
        (F32, F16x2, false),
        (F16, F16x2, false),
        (Pred, Pred, true),
        (Pred, B32, false),
        (B32, Pred, false),
    ] {
        assert_eq!(ordinary(inst, reg).is_some(), fits, "{inst} with {reg}");
        assert_eq!(relaxed(inst, reg, Side::Destination).is_some(), fits, "{inst} to {reg}");
    }
    // An `.f16x2` register is a `.b32` to narrower integers too.
    assert_eq!(relaxed(B16, F16x2, Side::Source), Some(Fit::Zero));
}

/// The tables as programs: every type of `ld` into every register.
#[test]
fn loads_into_every_register() {
    for (inst, row) in ROWS.into_iter().filter(|(t, _)| *t != F16) {
        for (reg, mark) in COLUMNS.into_iter().zip(row.chars()) {
            let text = format!(
                "{HEADER}.global .align 16 .b8 x[16];\n.entry k() {{\n.reg {reg} r;\nld.global{inst} r, [x];\nret; }}"
            );
            let message = format!("`ld.global{inst}` cannot take the `{reg}` register `r`");
            let wrong = [("E0303", 7, message.as_str())];
            expect(&text, if mark == '.' { &wrong } else { &[] });
        }
    }
}
