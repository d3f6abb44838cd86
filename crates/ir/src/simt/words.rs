//! Words of the text form that several ops share.

/// The name of a variant as PTX writes it.
pub(super) fn lower_case(v: &impl std::fmt::Debug) -> String {
    format!("{v:?}").to_lowercase()
}

/// A modifier that is there or not.
pub(super) const fn flag(on: bool, text: &'static str) -> &'static str {
    if on { text } else { "" }
}

/// A 32-bit integer type by its sign.
pub(super) const fn sign(signed: bool) -> &'static str {
    if signed { "s32" } else { "u32" }
}

/// What becomes of an amount above the width.
pub(super) const fn wrap_or_clamp(wrap: bool) -> &'static str {
    if wrap { "wrap" } else { "clamp" }
}

/// Which half.
pub(super) const fn low_or_high(hi: bool) -> &'static str {
    if hi { "hi" } else { "lo" }
}
