//! From an image to PTX texts, and from those to a program that can be put on a device.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use handloom_diag::{Diagnostic, FileId, Severity, SourceMap, Style, render_human};
use handloom_images::{Arch, Extent, MemberKind, Want, What, Wrapper, extent, open, parts};
use handloom_ir::simt;
use handloom_profile::unique_name;
use handloom_runtime::{LoadError, UsualFloats, front};

use crate::checked;
use crate::code::{Code, Result};
use crate::host::HostMemory;
use crate::partial::{Without, leave_out};
use crate::process::{process, say};

/// What a linker of ours returns begins with this: then the number of texts, and of each the bytes of its name and of itself, and both.
pub const LINKED: &[u8; 16] = b"\x7fHandloom-link\0\x01";

/// The most bytes of an image: headers that say more are damaged.
const MOST: u64 = 4 << 30;

/// A text with its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text {
    /// What diagnostics call it.
    pub name: String,
    /// The PTX.
    pub ptx: String,
}

/// Why an image was not loaded: the code, and what the program's log and the user are told.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The code.
    pub code: Code,
    /// The text.
    pub log: String,
}

fn refused(code: Code, log: impl Into<String>) -> Refused {
    Refused { code, log: log.into() }
}

/// A program that was checked, for any device of its capability.
#[derive(Debug)]
pub struct Loaded {
    /// What is run.
    pub ir: simt::Module,
    /// Its texts.
    pub sources: Arc<SourceMap>,
    /// What was warned of.
    pub warnings: Vec<Diagnostic>,
    /// The architecture that its texts were made for: the least that runs all of them.
    pub target: u32,
    /// Kernels of the texts that are left out, and why.
    pub without: Without,
}

impl Loaded {
    /// The warnings as text.
    pub fn log(&self) -> String {
        render(&self.warnings, &self.sources)
    }
}

/// Copies an image whose length nobody said out of the process.
///
/// # Errors
/// Its headers are damaged.
pub fn fetch(host: &dyn HostMemory, address: u64) -> std::result::Result<Vec<u8>, Refused> {
    let copy = |bytes: u64| {
        let mut out = Vec::new();
        host.read(address, usize::try_from(bytes).unwrap_or(0), &mut |b| out.extend_from_slice(b));
        out
    };
    let damaged = || refused(Code::INVALID_IMAGE, "the image is damaged: its headers say what cannot be");
    // Four bytes are there in any image, an empty text apart.
    if host.text_bytes(address) < 4 && copy(1) != LINKED[..1] {
        return Ok(copy(host.text_bytes(address) as u64));
    }
    let mut head = copy(4);
    if head == LINKED[..4] {
        return Ok(copy(linked_bytes(&mut |n| copy(n)).ok_or_else(damaged)?));
    }
    loop {
        match extent(&head) {
            Extent::Text => return Ok(copy(host.text_bytes(address) as u64)),
            Extent::Bytes(n) if n <= MOST => return Ok(copy(n)),
            Extent::Needs(n) if n <= MOST && n > head.len() as u64 => head = copy(n),
            Extent::Bytes(_) | Extent::Needs(_) | Extent::Damaged => return Err(damaged()),
        }
    }
}

/// An image that the program handed over by its address alone: a fat binary may come in a wrapper.
///
/// # Errors
/// Its headers are damaged.
pub fn fetch_all(host: &dyn HostMemory, address: u64) -> std::result::Result<Vec<Vec<u8>>, Refused> {
    let mut first = Vec::new();
    host.read(address, 4.min(host.text_bytes(address).max(1)), &mut |b| first.extend_from_slice(b));
    if first != handloom_images::fatbin::WRAPPER_MAGIC.to_le_bytes() {
        return Ok(vec![fetch(host, address)?]);
    }
    let mut head = Vec::new();
    host.read(address, Wrapper::BYTES, &mut |b| head.extend_from_slice(b));
    let wrapper = Wrapper::read(&head).ok_or_else(|| refused(Code::INVALID_IMAGE, "the wrapper is damaged"))?;
    if wrapper.version < 2 || wrapper.list == 0 {
        return Ok(vec![fetch(host, wrapper.data)?]);
    }
    let mut images = Vec::new();
    let mut at = wrapper.list;
    loop {
        let mut word = [0; 8];
        host.read(at, 8, &mut |b| word.copy_from_slice(b));
        match u64::from_le_bytes(word) {
            0 => return Ok(images),
            container => images.push(fetch(host, container)?),
        }
        at += 8;
    }
}

/// Bytes of what a linker returned.
fn linked_bytes(copy: &mut dyn FnMut(u64) -> Vec<u8>) -> Option<u64> {
    let head = copy(32);
    if head.get(..16)? != LINKED {
        return None;
    }
    let total = u64::from_le_bytes(head.get(16..24)?.try_into().ok()?);
    (total <= MOST).then_some(total)
}

/// Texts as a linker returns them.
pub fn pack(texts: &[Text]) -> Vec<u8> {
    let mut body = Vec::new();
    for text in texts {
        for part in [&text.name, &text.ptx] {
            body.extend_from_slice(&(part.len() as u64).to_le_bytes());
            body.extend_from_slice(part.as_bytes());
        }
    }
    let mut out = LINKED.to_vec();
    out.extend_from_slice(&(body.len() as u64 + 32).to_le_bytes());
    out.extend_from_slice(&(texts.len() as u64).to_le_bytes());
    out.extend(body);
    out
}

/// The texts that a linker returned.
fn unpack(bytes: &[u8]) -> Option<Vec<Text>> {
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let mut at = 32;
    let mut take = || {
        let n = usize::try_from(word(at)?).ok()?;
        let start = at + 8;
        at = start.checked_add(n)?;
        String::from_utf8(bytes.get(start..at)?.to_vec()).ok()
    };
    (0..word(24)?).map(|_| Some(Text { name: take()?, ptx: take()? })).collect()
}

/// The PTX of an image for a device.
///
/// # Errors
/// There is none, or none for this device.
pub fn texts(bytes: &[u8], name: &str, capability: u32) -> std::result::Result<Vec<Text>, Refused> {
    dump(bytes);
    if bytes.starts_with(LINKED) {
        return unpack(bytes).ok_or_else(|| refused(Code::INVALID_IMAGE, "what a linker returned is damaged"));
    }
    let image = open(bytes).map_err(|fault| refused(Code::INVALID_IMAGE, format!("the image {fault}")))?;
    if let What::Foreign(f) = image.what {
        return Err(refused(Code::INVALID_IMAGE, format!("the image is {}: {}", f.what, f.advice)));
    }
    let found = parts(&image, Want::Capability(capability));
    let found = found.map_err(|fault| refused(Code::INVALID_IMAGE, format!("the image {fault}")))?;
    if let Some(part) = found.parts.iter().find(|p| p.is_other) {
        return Err(refused(Code::NO_BINARY_FOR_GPU, other_target(part.arch, capability)));
    }
    if found.parts.is_empty() && !found.device_runtime {
        let archs = image.members.iter().filter(|m| m.kind == MemberKind::Cubin).filter_map(|m| m.arch);
        let mut archs: Vec<String> = archs.map(|a| a.to_string()).collect();
        archs.dedup();
        let has =
            if archs.is_empty() { String::new() } else { format!(", only machine code for {}", archs.join(", ")) };
        let (what, advice) = (image.what.words(), image.what.advice());
        return Err(refused(Code::NO_BINARY_FOR_GPU, format!("this is {what} without PTX{has}: {advice}")));
    }
    let several = found.parts.len() > 1;
    let text = |(i, p): (usize, handloom_images::Part)| {
        let name = if several { format!("{name}#{}", i + 1) } else { name.to_owned() };
        Text { name, ptx: p.ptx }
    };
    let texts: Vec<Text> = found.parts.into_iter().enumerate().map(text).collect();
    for text in &texts {
        if let Some(arch) = Arch::of_ptx(&text.ptx).filter(|a| !a.runs_on(capability)) {
            return Err(refused(Code::INVALID_PTX, other_target(Some(arch), capability)));
        }
    }
    Ok(texts)
}

fn other_target(arch: Option<Arch>, capability: u32) -> String {
    let is = format!("the device has capability {}.{}", capability / 10, capability % 10);
    match arch {
        Some(a) => {
            format!("the image has PTX for {a}, and {is}: run with `--cc {}.{}` (HANDLOOM_CC)", a.sm / 10, a.sm % 10)
        }
        None => format!("the image has no PTX for this device: {is}"),
    }
}

/// Checks texts and joins them to a program.
///
/// # Errors
/// They are wrong, do not fit each other, or use something unsupported.
pub fn check(texts: &[Text]) -> std::result::Result<Loaded, Refused> {
    join(texts).map_err(Faults::into_refused)
}

/// The same for a library: kernels that use something unsupported are left out of it.
///
/// # Errors
/// The texts are wrong, do not fit each other, or use something unsupported outside kernels.
pub fn check_kernels(texts: &[Text]) -> std::result::Result<Loaded, Refused> {
    let mut without = Without::new();
    let mut left = texts.to_vec();
    // Each turn leaves out at least one function.
    loop {
        let faults = match join(&left) {
            Ok(loaded) => return Ok(Loaded { without, ..loaded }),
            Err(faults) => faults,
        };
        let why = |d: &Diagnostic| render(std::slice::from_ref(d), &faults.sources);
        if leave_out(&mut left, &faults.files, &faults.errors, why, &mut without).is_none() {
            return Err(faults.into_refused());
        }
    }
}

/// What is wrong with texts.
struct Faults {
    errors: Vec<Diagnostic>,
    sources: SourceMap,
    files: Vec<FileId>,
}

impl Faults {
    fn into_refused(self) -> Refused {
        let log = render(&self.errors, &self.sources);
        Refused { code: Code::from(&LoadError::Diagnostics(self.errors)), log }
    }
}

fn join(texts: &[Text]) -> std::result::Result<Loaded, Faults> {
    let mut sources = SourceMap::new();
    let counts = process().ok().and_then(|process| process.counts.as_ref());
    let name = |t: &Text| if counts.is_some() { unique_name(&t.name, &t.ptx) } else { t.name.clone() };
    let files: Vec<_> = texts.iter().map(|t| sources.add(name(t), &t.ptx)).collect();
    let _floats = UsualFloats::begin();
    match front(&sources, &files) {
        Ok((checked, warnings)) => {
            let is_counted = counts.is_some();
            let ir = if is_counted { handloom_lower::lower_marked(&checked) } else { handloom_lower::lower(&checked) };
            let target = texts.iter().filter_map(|t| Arch::of_ptx(&t.ptx)).map(|a| a.sm).max().unwrap_or(0);
            let sources = Arc::new(sources);
            if let Some(counts) = counts {
                counts.tally.loaded(&ir, &sources);
            }
            Ok(Loaded { ir, sources, warnings, target, without: Without::new() })
        }
        Err(mut errors) => {
            errors.retain(|d| d.severity == Severity::Error);
            Err(Faults { errors, sources, files })
        }
    }
}

fn render(all: &[Diagnostic], sources: &SourceMap) -> String {
    const MOST: usize = 20;
    let mut parts: Vec<String> =
        all.iter().take(MOST).map(|d| render_human(d, sources, Style::Plain).trim_end().to_owned()).collect();
    if all.len() > MOST {
        parts.push(format!("{} more", all.len() - MOST));
    }
    parts.join("\n")
}

/// Tells the user why an image was refused: programs often keep the log to themselves.
pub fn tell(refused: &Refused) {
    let name = refused.code.name().unwrap_or_default().trim_end_matches('\0');
    say(&format!("an image was refused ({name}):\n{}", refused.log));
    checked::not_run(&format!("an image was refused ({name}), and none of its kernels ran"));
}

/// Writes an image into the folder that the user named.
fn dump(bytes: &[u8]) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let Ok(process) = process() else { return };
    let Some(folder) = &process.config.dump_images else { return };
    let ending = match open(bytes).map(|i| i.what) {
        Ok(What::Ptx) => "ptx",
        Ok(What::Cubin) => "cubin",
        Ok(What::Fatbin) => "fatbin",
        _ => "bin",
    };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("image-{}-{number}.{ending}", std::process::id()));
    if let Err(e) = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, bytes)) {
        say(&format!("cannot write the image `{}`: {e}", path.display()));
    }
}

/// The result for a program that is told no more than a code.
///
/// # Errors
/// As what was refused says.
pub fn told<T>(result: std::result::Result<T, Refused>) -> Result<T> {
    result.map_err(|refused| {
        tell(&refused);
        refused.code
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_texts_are_packed_and_unpacked() {
        let texts = [("a", "x"), ("b", ".version 8.0")].map(|(n, p)| Text { name: n.into(), ptx: p.into() });
        let packed = pack(&texts);
        assert_eq!(linked_bytes(&mut |n| packed[..usize::try_from(n).unwrap()].to_vec()), Some(packed.len() as u64));
        assert_eq!(unpack(&packed).unwrap(), texts);
        for n in 0..packed.len() {
            assert_eq!(unpack(&packed[..n]), None, "{n}");
        }
    }
}
