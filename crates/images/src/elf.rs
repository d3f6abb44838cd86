//! ELF files and archives: cubins with the PTX that debuggers are shown, and host files with fat binaries in their sections.

use object::elf::{EM_CUDA, ET_DYN, ET_EXEC};
use object::read::archive::ArchiveFile;
use object::read::elf::{ElfFile32, ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSection};

use crate::member::Text;
use crate::read::{u16_at, u32_at};
use crate::{Arch, Fault, Image, Member, MemberKind, Place, What, fatbin};

/// Containers of what is linked already, or needs no linking.
const LINKED: &str = ".nv_fatbin";

/// Containers of the parts of a program that is linked from several.
pub(crate) const RELOCATABLE: &str = "__nv_relfatbin";

/// Begin of the names of sections with PTX, which ends its lines with NUL. Numbers follow where there are several.
const DEBUG_PTX: &str = ".nv_debug_ptx_txt";

const WHAT: &str = "an ELF file";
const WHAT_CUBIN: &str = "a cubin";
const WHAT_ARCHIVE: &str = "an archive";

pub(crate) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

pub(crate) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(&object::archive::MAGIC) || bytes.starts_with(&object::archive::THIN_MAGIC)
}

/// Whether an ELF file is code of a GPU of NVIDIA's.
fn is_cubin(bytes: &[u8]) -> bool {
    is_elf(bytes) && u16_at(bytes, 18) == Some(EM_CUDA)
}

fn damaged(what: &'static str, why: &object::read::Error) -> Fault {
    Fault::Header { what, why: format!("that is damaged: {}", why.to_string().to_lowercase()) }
}

/// An ELF file by itself.
pub(crate) fn open(bytes: &[u8]) -> Result<Image<'_>, Fault> {
    if is_cubin(bytes) {
        // Damage is told now, and not when the text is asked for.
        sections(bytes)?;
        return Ok(Image { what: What::Cubin, members: vec![cubin(bytes, Place::default())] });
    }
    let is_linked = matches!(u16_at(bytes, 16), Some(ET_EXEC | ET_DYN));
    let what = if is_linked { What::Program } else { What::Object };
    Ok(Image { what, members: host(bytes, &Place::default())? })
}

/// A cubin. Its architecture is in the flags of its header, in two layouts.
fn cubin(bytes: &[u8], place: Place) -> Member<'_> {
    let abi = bytes.get(8).copied().unwrap_or(0);
    let flags = u32_at(bytes, 48).unwrap_or(0);
    let sm = if abi >= 8 { flags >> 8 & 0xff } else { flags & 0xff };
    let arch = (sm != 0).then(|| Arch::new(sm));
    Member { arch, ..Member::plain(MemberKind::Cubin, bytes, place) }
}

/// Names and data of the sections.
fn sections(bytes: &[u8]) -> Result<Vec<(String, &[u8])>, Fault> {
    let what = if is_cubin(bytes) { WHAT_CUBIN } else { WHAT };
    // A class of 64 bits is all that CUDA knows today, and 32 what it had.
    let is_wide = bytes.get(4) != Some(&1);
    let sections = if is_wide {
        ElfFile64::<Endianness>::parse(bytes).and_then(|file| named(&file))
    } else {
        ElfFile32::<Endianness>::parse(bytes).and_then(|file| named(&file))
    };
    sections.map_err(|e| damaged(what, &e))
}

fn named<'a, E: FileHeader<Endian = Endianness>>(
    file: &object::read::elf::ElfFile<'a, E>,
) -> object::read::Result<Vec<(String, &'a [u8])>> {
    let mut out = Vec::new();
    for section in file.sections() {
        // Other sections may be what they like.
        let name = String::from_utf8_lossy(section.name_bytes()?).into_owned();
        if [LINKED, RELOCATABLE].contains(&name.as_str()) || name.contains(DEBUG_PTX) {
            out.push((name, section.data()?));
        }
    }
    Ok(out)
}

/// The members of all containers of a host file.
fn host<'a>(bytes: &'a [u8], place: &Place) -> Result<Vec<Member<'a>>, Fault> {
    let mut members: Vec<Member<'a>> = Vec::new();
    for (name, data) in sections(bytes)?.into_iter().filter(|(name, _)| !name.contains(DEBUG_PTX)) {
        let container = members.last().map_or(place.container, |m| m.place.container + 1);
        let place = Place { section: Some(name), container, ..place.clone() };
        members.extend(fatbin::containers(data, &place)?);
    }
    Ok(members)
}

/// The PTX in a cubin. What is kept for a second machine code of the same file (`.nv.merc`) is the same text again.
pub(crate) fn texts(bytes: &[u8], number: usize) -> Result<Vec<Text>, Fault> {
    let mut texts = Vec::new();
    for (name, data) in sections(bytes)?.into_iter().filter(|(name, _)| name.starts_with(DEBUG_PTX)) {
        let end = data.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
        let lines: Vec<u8> = data[..end].iter().map(|b| if *b == 0 { b'\n' } else { *b }).collect();
        let mut ptx = String::from_utf8(lines).map_err(|_| Fault::NotText { whose: format!("member {number}") })?;
        ptx.push('\n');
        if end > 0 {
            texts.push(Text { ptx, section: Some(name) });
        }
    }
    Ok(texts)
}

/// An archive: the members of all files in it that have some.
pub(crate) fn archive(bytes: &[u8]) -> Result<Image<'_>, Fault> {
    let wrong = |e: object::read::Error| damaged(WHAT_ARCHIVE, &e);
    let file = ArchiveFile::parse(bytes).map_err(wrong)?;
    let mut members: Vec<Member<'_>> = Vec::new();
    if file.is_thin() {
        let why = "that only names its files: name those files".to_owned();
        return Err(Fault::Header { what: WHAT_ARCHIVE, why });
    }
    for part in file.members() {
        let part = part.map_err(wrong)?;
        let data = part.data(bytes).map_err(wrong)?;
        let name = String::from_utf8_lossy(part.name()).into_owned();
        let container = members.last().map_or(0, |m| m.place.container + 1);
        let place = Place { file: Some(name), section: None, container };
        if fatbin::is_container(data) {
            members.extend(fatbin::containers(data, &place)?);
        } else if is_cubin(data) {
            members.push(cubin(data, place));
        } else if is_elf(data) {
            members.extend(host(data, &place)?);
        }
    }
    Ok(Image { what: What::Archive, members })
}
