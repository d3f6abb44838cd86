//! Files and standard input as text with places.

use std::io::Read;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use handloom_check::{Checked, check_text};
use handloom_diag::{Code, Diagnostic, FileId, SourceMap, Span};

use crate::image::Refused;
use crate::report::{Failure, reason};

/// Runs of bytes that are no UTF-8 and are told one by one. A file with more of them is no text at all.
const MAX_TOLD: usize = 100;

/// A text whose diagnostics can be made.
pub struct Text {
    /// The file.
    pub file: FileId,
    /// Ranges of bytes that are no UTF-8.
    bad: Vec<Range<usize>>,
    /// All of them were kept.
    all_bad_known: bool,
    /// Every other byte of the beginning is NUL: an encoding of two bytes a character.
    is_wide: bool,
    /// Why the file that it stands for is no module.
    pub refused: Option<Refused>,
}

/// All bytes of a file; `-` is standard input.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &str) -> Result<Vec<u8>, Failure> {
    // Who asks again gets the same: each seed of `--many-seeds` reads its files.
    static STDIN: Mutex<Option<Vec<u8>>> = Mutex::new(None);
    let result = if path == "-" {
        let mut known = STDIN.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(bytes) => Ok(bytes.clone()),
            None => {
                let mut bytes = Vec::new();
                std::io::stdin().lock().read_to_end(&mut bytes).map(|_| known.insert(bytes).clone())
            }
        }
    } else {
        std::fs::read(path)
    };
    result.map_err(|e| Failure::file(format!("`{path}` cannot be read: {}", reason(&e))))
}

/// Puts a file into the map. Bytes that are no text become question marks, so that all places stay.
pub fn add(sources: &mut SourceMap, name: &str, bytes: Vec<u8>) -> Text {
    let is_wide = is_wide(&bytes);
    let (mut bad, mut all_bad_known) = (Vec::<Range<usize>>::new(), true);
    let text = String::from_utf8(bytes).unwrap_or_else(|e| {
        let mut text = String::with_capacity(e.as_bytes().len());
        for chunk in e.as_bytes().utf8_chunks() {
            text.push_str(chunk.valid());
            let start = text.len();
            text.extend(chunk.invalid().iter().map(|_| '?'));
            if start == text.len() {
                continue;
            }
            let told = bad.len();
            match bad.last_mut() {
                Some(Range { end, .. }) if *end == start => *end = text.len(),
                _ if told < MAX_TOLD => bad.push(start..text.len()),
                _ => all_bad_known = false,
            }
        }
        text
    });
    Text { file: sources.add(name, text), bad, all_bad_known, is_wide, refused: None }
}

/// Whether a text is UTF-16, with or without a byte order mark.
fn is_wide(bytes: &[u8]) -> bool {
    let pairs = bytes.chunks_exact(2).skip(1).take(16);
    let (low, high) =
        pairs.map(|p| (u32::from(p[0] == 0), u32::from(p[1] == 0))).fold((0, 0), |a, p| (a.0 + p.0, a.1 + p.1));
    (low == 0 || high == 0) && low + high == 16
}

impl Text {
    /// Parses and checks the text, and tells of bytes that are none.
    pub fn check(&self, sources: &SourceMap) -> Checked {
        if let Some(Refused { message, help }) = &self.refused {
            let fault = Diagnostic::error(Code::Foreign, Span::new(self.file, 0, 0), message).help(help);
            return Checked { module: None, diagnostics: vec![fault] };
        }
        if self.is_wide {
            let fault = Diagnostic::error(Code::Encoding, Span::new(self.file, 0, 0), "the text is UTF-16")
                .help("save the file as UTF-8")
                .section("Source Format");
            return Checked { module: None, diagnostics: vec![fault] };
        }
        if self.bad.is_empty() {
            return check_text(sources.text(self.file), self.file);
        }
        let place = |r: &Range<usize>| {
            let byte = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            Span::new(self.file, byte(r.start), byte(r.end))
        };
        let faults = self.bad.iter().map(|r| {
            let message = if r.len() == 1 { "a byte that is no UTF-8 text" } else { "bytes that are no UTF-8 text" };
            Diagnostic::error(Code::Encoding, place(r), message)
                .help("PTX is ASCII; other characters may stand in comments and strings, as UTF-8")
                .section("Source Format")
        });
        let mut told: Vec<Diagnostic> = faults.collect();
        if self.all_bad_known {
            let touches = |d: &Diagnostic| {
                let span = d.span();
                self.bad.iter().any(|r| (span.start as usize) <= r.end && r.start <= span.end as usize)
            };
            let checked = check_text(sources.text(self.file), self.file);
            told.extend(checked.diagnostics.into_iter().filter(|d| !touches(d)));
            told.sort_by_key(|d| d.span().start);
        } else if let Some(last) = told.last_mut() {
            last.message = format!("bytes that are no UTF-8 text, as in more than {MAX_TOLD} other places");
        }
        Checked { module: None, diagnostics: told }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_where_bytes_are_no_text() {
        let mut sources = SourceMap::new();
        let text = add(&mut sources, "a.ptx", b"ab\xff\xfec\xc3\xa9\n\xe9".to_vec());
        assert_eq!(sources.text(text.file), "ab??c\u{e9}\n?");
        assert_eq!(text.bad, [2..4, 8..9]);
    }

    #[test]
    fn two_bytes_a_character_are_one_fault() {
        let module = ".version 8.0\n.target sm_80\n.address_size 64\n";
        let wide = |to: fn(u16) -> [u8; 2], mark: &[u16]| -> Vec<u8> {
            mark.iter().copied().chain(module.encode_utf16()).flat_map(to).collect()
        };
        for bytes in [wide(u16::to_le_bytes, &[0xfeff]), wide(u16::to_be_bytes, &[0xfeff]), wide(u16::to_le_bytes, &[])]
        {
            let mut sources = SourceMap::new();
            let told = add(&mut sources, "a.ptx", bytes).check(&sources).diagnostics;
            assert_eq!(told.len(), 1);
            assert!(told[0].message.contains("UTF-16"));
        }
        assert!(!is_wide(module.as_bytes()) && !is_wide(&[0; 64]));
    }

    #[test]
    fn noise_is_told_in_a_few_lines() {
        let mut sources = SourceMap::new();
        let text = add(&mut sources, "a.ptx", b"\xffa".repeat(100_000));
        let checked = text.check(&sources);
        assert_eq!(checked.diagnostics.len(), MAX_TOLD);
    }
}
