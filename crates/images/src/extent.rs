//! How long an image in memory is that comes as an address without a length.

use crate::fatbin;
use crate::read::{u16_at, u32_at, u64_at};

/// What the first bytes say about the length of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// It has so many bytes.
    Bytes(u64),
    /// So many bytes are needed to say.
    Needs(u64),
    /// It is text, which ends with NUL.
    Text,
    /// The headers say what cannot be.
    Damaged,
}

/// Bytes of the header of an ELF file of 64 bits.
const ELF_HEADER: u64 = 64;

/// Says how long an image is of which `head` is the beginning; 4 bytes are enough to begin with. A driver is called with an address
/// alone: it asks again with as many bytes as are needed.
pub fn extent(head: &[u8]) -> Extent {
    let needs = |n: u64| if crate::read::size(head) < n { Some(Extent::Needs(n)) } else { None };
    if let Some(more) = needs(4) {
        return more;
    }
    if fatbin::is_container(head) {
        return needs(16).unwrap_or_else(|| fatbin::container_bytes(head).map_or(Extent::Damaged, Extent::Bytes));
    }
    if !head.starts_with(b"\x7fELF") {
        return Extent::Text;
    }
    needs(ELF_HEADER).unwrap_or_else(|| elf_tables(head).unwrap_or(Extent::Damaged))
}

/// The end of the tables of an ELF file, and when the table of sections is there, the end of everything.
fn elf_tables(head: &[u8]) -> Option<Extent> {
    const NO_BITS: u32 = 8;
    let table = |start, entry, count| {
        let bytes = u64::from(u16_at(head, entry)?) * u64::from(u16_at(head, count)?);
        let start = u64_at(head, start)?;
        Some((start, start.checked_add(bytes)?))
    };
    let (_, program_end) = table(32, 54, 56)?;
    let (start, end) = table(40, 58, 60)?;
    let mut last = ELF_HEADER.max(program_end).max(end);
    if crate::read::size(head) < end {
        return Some(Extent::Needs(end));
    }
    let size = u64::from(u16_at(head, 58)?);
    for i in 0..u64::from(u16_at(head, 60)?) {
        let at = usize::try_from(start + i * size).ok()?;
        if u32_at(head, at + 4)? != NO_BITS {
            last = last.max(u64_at(head, at + 24)?.checked_add(u64_at(head, at + 32)?)?);
        }
    }
    Some(Extent::Bytes(last))
}
