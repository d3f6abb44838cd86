//! Words of declarations: types and state spaces.

use handloom_ir::num::image::Kind;
use handloom_ir::types::ScalarType;

/// The type of a register or variable declaration.
///
/// The alternate formats (`.bf16`, `.tf32`, the 8-bit floats) are instruction types only.
///
/// # PTX ISA
/// Fundamental Types; Restricted Use of Sub-Word Sizes; Alternate Floating-Point Data Formats.
pub(crate) fn declared_type(word: &str) -> Option<ScalarType> {
    use ScalarType::*;
    Some(match word {
        ".pred" => Pred,
        ".b8" => B8,
        ".b16" => B16,
        ".b32" => B32,
        ".b64" => B64,
        ".b128" => B128,
        ".u8" => U8,
        ".u16" => U16,
        ".u32" => U32,
        ".u64" => U64,
        ".s8" => S8,
        ".s16" => S16,
        ".s32" => S32,
        ".s64" => S64,
        ".f16" => F16,
        ".f16x2" => F16x2,
        ".f32" => F32,
        ".f64" => F64,
        _ => return None,
    })
}

/// Types of variables that only texture and surface instructions use.
pub(crate) fn is_opaque(word: &str) -> bool {
    opaque_kind(word).is_some()
}

/// What kind of object a variable of the type is.
pub(crate) fn opaque_kind(word: &str) -> Option<Kind> {
    let word = word.strip_prefix('.')?;
    Kind::ALL.into_iter().find(|k| k.word() == word)
}

/// The type of the same kind with twice the width (`mul.wide`).
pub(crate) fn twice(t: ScalarType) -> ScalarType {
    use ScalarType::*;
    match t {
        B8 => B16,
        B16 => B32,
        B32 => B64,
        B64 => B128,
        U8 => U16,
        U16 => U32,
        U32 => U64,
        S8 => S16,
        S16 => S32,
        S32 => S64,
        F16 => F32,
        F32 => F64,
        other => other,
    }
}

/// The component of a vector register that a word names.
pub(crate) fn component(word: &str) -> Option<u8> {
    Some(match word {
        "x" | "r" => 0,
        "y" | "g" => 1,
        "z" | "b" => 2,
        "w" | "a" => 3,
        _ => return None,
    })
}
