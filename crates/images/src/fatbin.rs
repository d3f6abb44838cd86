//! Fat binaries: a container with PTX and machine code for several architectures.
//!
//! ```text
//! container  u32 magic, u16 version, u16 bytes of this header, u64 bytes of all members
//! member      0 u16 kind            2 u16 version           4 u32 bytes of the header; the payload begins behind it
//!             8 u64 bytes of the payload, padded
//!            16 u32 packed bytes, 0 if not packed          20 u32 where the extra part begins
//!            24 u16 minor, u16 major version               28 u32 architecture
//!            32 u32 offset, u32 length of the source name  40 u64 flags
//!            56 u64 unpacked bytes
//! extra       0 u32 offset, u32 length of the assembler's options (PTX)
//! ```
//!
//! A program registers a wrapper (magic, version, pointer to a container, pointer to a list of containers) instead.

use crate::arch::Bound;
use crate::read::{part, size, u16_at, u32_at, u64_at};
use crate::{Arch, Fault, Member, MemberKind, Packing, Place};

/// The first word of a container.
pub const MAGIC: u32 = 0xba55_ed50;

/// The first word of a wrapper.
pub const WRAPPER_MAGIC: u32 = 0x4662_43b1;

/// Bytes of a container's header, and the least of a member's.
const CONTAINER_BYTES: u64 = 16;
const MEMBER_BYTES: u64 = 64;

const WHAT: &str = "a fat binary";

const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const FLAG_ARCH: u64 = 0x10_0000;
const FLAG_FAMILY: u64 = 0x20_0000;

/// What a program registers for a fat binary. The pointers are the caller's to follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wrapper {
    /// 1: `data` alone. 2: what `data` holds was linked from the containers of `list`.
    pub version: u32,
    /// Address of a container.
    pub data: u64,
    /// Version 2: address of a list of addresses of containers, which ends with 0. Else 0.
    pub list: u64,
}

impl Wrapper {
    /// Bytes of a wrapper.
    pub const BYTES: usize = 24;

    /// Reads a wrapper; `None` if these bytes are none.
    pub fn read(bytes: &[u8]) -> Option<Wrapper> {
        if u32_at(bytes, 0)? != WRAPPER_MAGIC {
            return None;
        }
        Some(Wrapper { version: u32_at(bytes, 4)?, data: u64_at(bytes, 8)?, list: u64_at(bytes, 16)? })
    }
}

/// Whether a container begins here.
pub fn is_container(bytes: &[u8]) -> bool {
    u32_at(bytes, 0) == Some(MAGIC)
}

/// Bytes of the container that begins here, by its header.
pub(crate) fn container_bytes(bytes: &[u8]) -> Option<u64> {
    let header = u64::from(u16_at(bytes, 6)?).max(CONTAINER_BYTES);
    u64_at(bytes, 8)?.checked_add(header)
}

/// The members of one container.
///
/// # Errors
/// The container is damaged.
pub fn container<'a>(bytes: &'a [u8], place: &Place) -> Result<Vec<Member<'a>>, Fault> {
    let is_short = size(bytes) < CONTAINER_BYTES;
    let wanted = container_bytes(bytes).unwrap_or(if is_short { CONTAINER_BYTES } else { u64::MAX });
    let header = u64::from(u16_at(bytes, 6).unwrap_or(0)).max(CONTAINER_BYTES);
    let cut = |wanted| Fault::Truncated { what: WHAT, wanted, have: size(bytes) };
    let whole = part(bytes, 0, wanted).ok_or_else(|| cut(wanted))?;
    let mut members = Vec::new();
    let mut at = header;
    while at < wanted {
        let number = members.len() + 1;
        let wrong =
            |why: &str| Fault::Header { what: WHAT, why: format!("whose member {number}, at byte {at}, {why}") };
        let head = part(whole, at, MEMBER_BYTES).ok_or_else(|| wrong("has no room for its header"))?;
        let word = |offset| u32_at(head, offset).unwrap_or(0);
        let (header, payload) = (u64::from(word(4)), u64_at(head, 8).unwrap_or(0));
        if header < MEMBER_BYTES {
            return Err(wrong(&format!("has a header of {header} bytes")));
        }
        let head = part(whole, at, header).ok_or_else(|| wrong("has no room for its header"))?;
        let after = at.checked_add(header).and_then(|start| start.checked_add(payload));
        let (Some(after), Some(data)) = (after, part(whole, at + header, payload)) else {
            return Err(wrong(&format!("has {payload} bytes, more than are left")));
        };
        members
            .push(member(head, data, place).ok_or_else(|| wrong("says that its packed data has more bytes than it"))?);
        at = after;
    }
    Ok(members)
}

fn member<'a>(head: &[u8], data: &'a [u8], place: &Place) -> Option<Member<'a>> {
    let word = |offset| u32_at(head, offset).unwrap_or(0);
    let half = |offset| u16_at(head, offset).unwrap_or(0);
    let flags = u64_at(head, 40).unwrap_or(0);
    let packing = match flags {
        f if f & FLAG_ZSTD != 0 => Packing::Zstd,
        f if f & FLAG_LZ4 != 0 => Packing::Lz4,
        _ => Packing::None,
    };
    let bound = match flags {
        f if f & FLAG_ARCH != 0 => Bound::Arch,
        f if f & FLAG_FAMILY != 0 => Bound::Family,
        _ => Bound::None,
    };
    let (payload, bytes) = match packing {
        Packing::None => (data, size(data)),
        Packing::Zstd | Packing::Lz4 => (part(data, 0, u64::from(word(16)))?, u64_at(head, 56).unwrap_or(0)),
    };
    let text = |offset: u32, length: u32| {
        let bytes = part(head, u64::from(offset), u64::from(length))?;
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
        (!text.is_empty()).then(|| text.to_owned())
    };
    let kind = MemberKind::of(half(0));
    let options = (kind == MemberKind::Ptx).then(|| usize::try_from(word(20)).ok()).flatten().and_then(|extra| {
        let at = u32_at(head, extra)?;
        text(at, u32_at(head, extra.checked_add(4)?)?)
    });
    Some(Member {
        kind,
        arch: Some(Arch { sm: word(28), bound }),
        version: (half(26), half(24)),
        flags,
        options,
        source: text(word(32), word(36)),
        packing,
        bytes,
        place: place.clone(),
        payload,
    })
}

/// The members of all containers of a section, which stand one after the other with padding between them.
pub(crate) fn containers<'a>(bytes: &'a [u8], place: &Place) -> Result<Vec<Member<'a>>, Fault> {
    const STEP: usize = 8;
    let (mut members, mut place) = (Vec::new(), place.clone());
    let mut rest = bytes;
    while rest.len() >= STEP {
        if is_container(rest) {
            members.extend(container(rest, &place)?);
            place.container += 1;
            let length = container_bytes(rest).and_then(|n| usize::try_from(n).ok()).unwrap_or(rest.len());
            rest = rest.get(length.next_multiple_of(STEP)..).unwrap_or_default();
        } else {
            rest = &rest[STEP..];
        }
    }
    Ok(members)
}
