//! Files that hold PTX, and files that people take for PTX.
//!
//! Takes: the bytes of a file, or of an image in memory. Gives: what they are, the members in them, and the PTX of a member.
//! Does not know: what PTX means, files, pointers. A driver that is handed an address reads as many bytes as [`extent()`] and
//! [`Wrapper`] say and hands those over.
//!
//! Invariants: no bytes cause a panic, and no header makes room for more than [`MAX_MEMBER_BYTES`] or for more than its data can
//! become; members keep the order of the file.
//!
//! How to read it: [`open`] here goes from bytes to an [`Image`]; [`foreign`] is the table of what is no image; [`fatbin`] is the
//! container of NVIDIA's tools, [`member`] one member of it and how it is unpacked, `elf` object files, programs and archives;
//! [`choose()`] is the choice of a member by capability, [`parts()`] the modules that a whole file comes to.

#![forbid(unsafe_code)]

pub mod arch;
pub mod choose;
mod elf;
mod extent;
pub mod fatbin;
mod fault;
pub mod foreign;
pub mod member;
pub mod parts;
mod read;

pub use arch::Arch;
pub use choose::{Choice, choose};
pub use extent::{Extent, extent};
pub use fatbin::Wrapper;
pub use fault::Fault;
pub use foreign::Foreign;
pub use member::{MAX_MEMBER_BYTES, Member, MemberKind, Packing, Place};
pub use parts::{Part, Want, parts};

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// PTX text, or text that is at least not known to be anything else.
    Ptx,
    /// A fat binary by itself.
    Fatbin,
    /// A cubin: machine code of a GPU.
    Cubin,
    /// An object file of a host.
    Object,
    /// A program or a shared library of a host.
    Program,
    /// An archive of object files.
    Archive,
    /// Something else.
    Foreign(&'static Foreign),
}

impl What {
    /// As the end of a sentence: `a fat binary`.
    pub fn words(self) -> &'static str {
        match self {
            What::Ptx => "PTX text",
            What::Fatbin => "a fat binary",
            What::Cubin => "a cubin",
            What::Object => "an object file",
            What::Program => "a program or a shared library",
            What::Archive => "an archive",
            What::Foreign(f) => f.what,
        }
    }

    /// One word for programs: `fatbin`.
    pub fn word(self) -> &'static str {
        match self {
            What::Ptx => "ptx",
            What::Fatbin => "fatbin",
            What::Cubin => "cubin",
            What::Object => "object",
            What::Program => "program",
            What::Archive => "archive",
            What::Foreign(_) => "other",
        }
    }

    /// What a user does who has such a file, and no PTX is in it.
    pub fn advice(self) -> &'static str {
        match self {
            What::Ptx => "",
            What::Fatbin => {
                "embed PTX: `nvcc -fatbin -gencode arch=compute_80,code=compute_80`, or write it with `nvcc -ptx`"
            }
            What::Cubin => "compile with `-lineinfo`, which keeps the PTX inside, or with `nvcc -ptx`",
            What::Object | What::Program | What::Archive => {
                "compile the CUDA sources with `-gencode arch=compute_80,code=compute_80` in addition, which embeds PTX, or with `nvcc -ptx`"
            }
            What::Foreign(f) => f.advice,
        }
    }
}

/// A file with the members that it holds.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    /// What it is.
    pub what: What,
    /// All members, in the order of the file. PTX text is one member.
    pub members: Vec<Member<'a>>,
}

/// Finds out what bytes are and what is in them. Nothing is unpacked.
///
/// # Errors
/// They begin like an image and are damaged.
pub fn open(bytes: &[u8]) -> Result<Image<'_>, Fault> {
    if fatbin::is_container(bytes) {
        return Ok(Image { what: What::Fatbin, members: fatbin::containers(bytes, &Place::default())? });
    }
    if elf::is_elf(bytes) {
        return elf::open(bytes);
    }
    if elf::is_archive(bytes) {
        return elf::archive(bytes);
    }
    match foreign::recognise(bytes) {
        Some(f) => Ok(Image { what: What::Foreign(f), members: Vec::new() }),
        None => Ok(Image { what: What::Ptx, members: vec![Member::text(bytes)] }),
    }
}
