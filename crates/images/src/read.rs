//! Little-endian numbers at places that may not exist.

/// The `N` bytes at `at`.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

/// `length` bytes from `start` on, if they are there.
pub(crate) fn part(bytes: &[u8], start: u64, length: u64) -> Option<&[u8]> {
    let (start, end) = (usize::try_from(start).ok()?, usize::try_from(start.checked_add(length)?).ok()?);
    bytes.get(start..end)
}

/// A length as a number of 64 bits.
pub(crate) fn size(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
