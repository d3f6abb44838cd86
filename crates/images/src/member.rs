//! A member of an image, and how it is unpacked.

use std::borrow::Cow;
use std::io::Read;

use crate::elf;
use crate::read::size;
use crate::{Arch, Fault};

/// The most bytes that a member may unpack to.
pub const MAX_MEMBER_BYTES: u64 = 1 << 30;

/// What a member holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberKind {
    /// PTX text.
    Ptx,
    /// Machine code in an ELF file, perhaps with its PTX for debuggers.
    Cubin,
    /// Intermediate code of link-time optimisation (`-dlto`).
    LtoIr,
    /// Something else, by its number.
    Other(u16),
}

impl MemberKind {
    pub(crate) fn of(number: u16) -> MemberKind {
        match number {
            1 => MemberKind::Ptx,
            2 => MemberKind::Cubin,
            8 => MemberKind::LtoIr,
            n => MemberKind::Other(n),
        }
    }

    /// For people: `PTX`.
    pub fn words(self) -> &'static str {
        match self {
            MemberKind::Ptx => "PTX",
            MemberKind::Cubin => "cubin",
            MemberKind::LtoIr => "LTO IR",
            MemberKind::Other(_) => "unknown",
        }
    }

    /// For programs: `ptx`.
    pub fn word(self) -> &'static str {
        match self {
            MemberKind::Ptx => "ptx",
            MemberKind::Cubin => "cubin",
            MemberKind::LtoIr => "lto",
            MemberKind::Other(_) => "other",
        }
    }
}

/// How a member is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packing {
    /// Not at all.
    None,
    /// A frame of zstd.
    Zstd,
    /// A block of LZ4 without a frame.
    Lz4,
}

impl Packing {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Packing::None => "raw",
            Packing::Zstd => "zstd",
            Packing::Lz4 => "lz4",
        }
    }
}

/// Where a member stands in its file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The file of an archive.
    pub file: Option<String>,
    /// The section of an ELF file.
    pub section: Option<String>,
    /// Number of the container in the file, from 0: members of one container are the same code for several architectures.
    pub container: usize,
}

/// A member of an image.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// What it holds.
    pub kind: MemberKind,
    /// Its architecture, where a header says it.
    pub arch: Option<Arch>,
    /// Of PTX its version; of a cubin that of its layout.
    pub version: (u16, u16),
    /// The flags of its header.
    pub flags: u64,
    /// What the assembler was to be called with.
    pub options: Option<String>,
    /// Name of the source file.
    pub source: Option<String>,
    /// How it is compressed.
    pub packing: Packing,
    /// Bytes when it is unpacked, as the header says.
    pub bytes: u64,
    /// Where it stands.
    pub place: Place,
    pub(crate) payload: &'a [u8],
}

/// PTX that a member holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text {
    /// The text.
    pub ptx: String,
    /// The section of a cubin that it comes from.
    pub section: Option<String>,
}

impl<'a> Member<'a> {
    /// A text by itself.
    pub(crate) fn text(payload: &'a [u8]) -> Member<'a> {
        Member::plain(MemberKind::Ptx, payload, Place::default())
    }

    /// Bytes without a header of their own.
    pub(crate) fn plain(kind: MemberKind, payload: &'a [u8], place: Place) -> Member<'a> {
        Member {
            kind,
            arch: None,
            version: (0, 0),
            flags: 0,
            options: None,
            source: None,
            packing: Packing::None,
            bytes: size(payload),
            place,
            payload,
        }
    }

    /// Its bytes as they are in the image, packed or not.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Whether it is a part of a program that is linked from several (`-rdc=true`).
    pub fn is_relocatable(&self) -> bool {
        self.place.section.as_deref() == Some(elf::RELOCATABLE)
            || self.options.as_deref().is_some_and(|o| o.split_whitespace().any(|w| w == "--compile-only"))
    }

    /// Its bytes, unpacked. `number` is what the user calls it.
    ///
    /// # Errors
    /// The packed data is damaged, or becomes more than the header says or than is read.
    pub fn unpack(&self, number: usize) -> Result<Cow<'a, [u8]>, Fault> {
        let damaged = |why: String| Fault::Packed { packing: self.packing, whose: format!("member {number}"), why };
        // No packed byte of LZ4 stands for more than 255 bytes; zstd has no such bound, and is read only as far as the header says.
        let most = match self.packing {
            Packing::None => return Ok(Cow::Borrowed(self.payload)),
            Packing::Lz4 => MAX_MEMBER_BYTES.min(size(self.payload).saturating_mul(255)),
            Packing::Zstd => MAX_MEMBER_BYTES,
        };
        let length = usize::try_from(self.bytes).ok().filter(|_| self.bytes <= most);
        let Some(length) = length else {
            return Err(Fault::TooLarge { whose: format!("member {number}"), bytes: self.bytes });
        };
        let out = match self.packing {
            Packing::Lz4 => {
                let mut out = vec![0; length];
                let n = lz4_flex::block::decompress_into(self.payload, &mut out).map_err(|e| damaged(e.to_string()))?;
                out.truncate(n);
                out
            }
            Packing::None | Packing::Zstd => {
                let mut out = Vec::new();
                let decoder =
                    ruzstd::decoding::StreamingDecoder::new(self.payload).map_err(|e| damaged(e.to_string()))?;
                // One byte more than promised tells that there is too much.
                decoder.take(self.bytes + 1).read_to_end(&mut out).map_err(|e| damaged(e.to_string()))?;
                out
            }
        };
        if out.len() != length {
            let than = if out.len() > length { "more" } else { "fewer" };
            return Err(damaged(format!("{than} bytes than the {length} of its header")));
        }
        Ok(Cow::Owned(out))
    }

    /// The PTX in it: of PTX the text, of a cubin what debuggers would be shown, which may be several texts or none.
    ///
    /// # Errors
    /// The member is damaged.
    pub fn texts(&self, number: usize) -> Result<Vec<Text>, Fault> {
        match self.kind {
            MemberKind::Ptx => {
                let bytes = self.unpack(number)?;
                let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
                let ptx = String::from_utf8(bytes[..end].to_vec());
                let ptx = ptx.map_err(|_| Fault::NotText { whose: format!("member {number}") })?;
                Ok(vec![Text { ptx, section: None }])
            }
            MemberKind::Cubin => elf::texts(&self.unpack(number)?, number),
            MemberKind::LtoIr | MemberKind::Other(_) => Ok(Vec::new()),
        }
    }
}
