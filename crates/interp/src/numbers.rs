//! Numbers at the width that others want them at.

/// A thread's linear number as special registers and reports want it.
pub(crate) fn number(thread: usize) -> u32 {
    u32::try_from(thread).expect("bug: a cta has at most 1024 threads")
}

/// The low 32 bits.
pub(crate) fn low32(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
