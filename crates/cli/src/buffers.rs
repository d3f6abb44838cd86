//! Arguments of kernels as they are typed, and the buffers behind them.

use std::path::{Path, PathBuf};

use handloom_runtime::{Device, DeviceBuffer};

use crate::npy::{self, Array};
use crate::report::{Failure, reason};
use crate::scalar;

/// One argument, as typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Word {
    /// A scalar of the parameter's type.
    Scalar(String),
    /// Bytes of a parameter.
    Bytes(Vec<u8>),
    /// A buffer.
    Buffer {
        /// What it holds before the launch.
        from: Source,
        /// Where it goes after the launch.
        to: Option<Store>,
    },
}

/// What a buffer holds at first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// The bytes of a file, or the elements of a `.npy`.
    File(PathBuf),
    /// Zeros.
    Zero(u64),
}

/// A file that a buffer is written to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Store {
    /// The file.
    pub path: PathBuf,
    /// For a `.npy`: its type and shape, if they were given.
    pub array: Option<Array>,
}

/// Whether a path names a NumPy array.
pub fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy"))
}

/// A number of bytes.
///
/// # Errors
/// What was expected.
fn byte_count(text: &str, form: &str) -> Result<u64, String> {
    let n = match text.strip_prefix("0x") {
        Some(hex) if hex.starts_with(|c: char| c.is_ascii_hexdigit()) => u64::from_str_radix(hex, 16),
        _ => text.parse(),
    };
    n.map_err(|_| format!("`{text}` is no number of bytes: expected {form}"))
}

impl Word {
    /// Reads an argument.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Word, String> {
        let Some((form, rest)) = text.split_once(':') else { return Ok(Word::Scalar(text.to_owned())) };
        let path = |p: &str| if p.is_empty() { Err(format!("`{text}` names no file")) } else { Ok(PathBuf::from(p)) };
        match form {
            "bytes" => scalar::hex(rest).map(Word::Bytes),
            "zero" => Ok(Word::Buffer { from: Source::Zero(byte_count(rest, "zero:BYTES")?), to: None }),
            "in" => Ok(Word::Buffer { from: Source::File(path(rest)?), to: None }),
            "out" => {
                let store = Store::parse(rest)?;
                if let Some(array) = &store.array {
                    let bytes = array.bytes().unwrap_or(u64::MAX);
                    return Ok(Word::Buffer { from: Source::Zero(bytes), to: Some(store) });
                }
                let forms = "out:PATH:BYTES or out:PATH.npy:TYPE:SHAPE";
                let (file, bytes) = rest.rsplit_once(':').ok_or_else(|| format!("`{text}`: expected {forms}"))?;
                if is_npy(Path::new(file)) || is_npy(Path::new(rest)) {
                    return Err(format!("`{text}`: expected {forms}, as out:y.npy:f32:64x64"));
                }
                let to = Store { path: path(file)?, array: None };
                Ok(Word::Buffer { from: Source::Zero(byte_count(bytes, forms)?), to: Some(to) })
            }
            "inout" => {
                let (from, to) =
                    rest.rsplit_once(':').ok_or_else(|| format!("`{text}`: expected inout:PATH:OUTPATH"))?;
                let (from, to) = (path(from)?, path(to)?);
                if is_npy(&to) && !is_npy(&from) {
                    return Err(format!("`{text}`: a .npy has a type and a shape, which only another .npy brings"));
                }
                Ok(Word::Buffer { from: Source::File(from), to: Some(Store { path: to, array: None }) })
            }
            _ => Err(format!("`{text}`: expected a scalar, or bytes: in: out: inout: zero:")),
        }
    }
}

impl Store {
    /// `PATH`, or `PATH.npy:TYPE:SHAPE`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Store, String> {
        let mut parts = text.rsplitn(3, ':');
        if let (Some(shape), Some(ty), Some(path)) = (parts.next(), parts.next(), parts.next())
            && is_npy(Path::new(path))
        {
            return Ok(Store { path: path.into(), array: Some(Array::parse(ty, shape)?) });
        }
        Ok(Store { path: text.into(), array: None })
    }
}

/// What a buffer is filled with: read before any device memory is taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Content {
    /// The bytes; `None` for so many zeros.
    bytes: Result<Vec<u8>, u64>,
    /// For a `.npy`: its type and shape.
    array: Option<Array>,
    /// As it was typed, for reports.
    origin: String,
}

impl Content {
    /// Reads what a buffer holds at first.
    ///
    /// # Errors
    /// The file cannot be read or is malformed.
    pub fn read(from: &Source, origin: String) -> Result<Content, Failure> {
        let path = match from {
            Source::Zero(bytes) => return Ok(Content { bytes: Err(*bytes), array: None, origin }),
            Source::File(path) => path,
        };
        let name = path.display();
        let mut bytes =
            std::fs::read(path).map_err(|e| Failure::file(format!("`{name}` cannot be read: {}", reason(&e))))?;
        let mut array = None;
        if is_npy(path) {
            let (head, start) = npy::read(&bytes).map_err(|why| Failure::file(format!("`{name}`: {why}")))?;
            bytes.drain(..start);
            array = Some(head);
        }
        Ok(Content { bytes: Ok(bytes), array, origin })
    }

    /// Puts it on a device; below 4 GiB for modules of 32-bit addresses.
    ///
    /// # Errors
    /// There is no room.
    pub fn place(self, device: &Device, low: bool) -> Result<Buffer, Failure> {
        let len = match &self.bytes {
            Ok(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            Err(zeros) => *zeros,
        };
        let made = if low { device.zeroed_low(len) } else { device.zeroed(len) };
        let mut buffer = made.map_err(|e| Failure::file(format!("`{}` does not fit: {e}", self.origin)))?;
        if let Ok(bytes) = &self.bytes {
            buffer.write(0, bytes);
        }
        buffer.set_origin(&self.origin);
        Ok(Buffer { device: buffer, array: self.array })
    }
}

/// A buffer on a device.
#[derive(Debug)]
pub struct Buffer {
    /// The memory.
    pub device: DeviceBuffer,
    /// Type and shape of the `.npy` that it came from.
    array: Option<Array>,
}

/// Elements of an array that a report shows.
const PREVIEW_ELEMENTS: usize = 8;

/// Bytes of a plain file that a report shows.
const PREVIEW_BYTES: usize = 32;

impl Buffer {
    /// Writes it to a file. Gives a line that says what was written.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn store(&self, store: &Store) -> Result<String, Failure> {
        let data = self.device.to_vec();
        let name = store.path.display();
        let write = |bytes: &[u8]| {
            let written = std::fs::write(&store.path, bytes);
            written.map_err(|e| Failure::file(format!("`{name}` cannot be written: {}", reason(&e))))
        };
        if !is_npy(&store.path) {
            write(&data)?;
            let words: Vec<String> = data.iter().take(PREVIEW_BYTES).map(|b| format!("{b:02x}")).collect();
            let shown: Vec<String> = words.chunks(4).map(<[String]>::concat).collect();
            return Ok(preview(format!("{name}: {} bytes", data.len()), &shown, data.len() > PREVIEW_BYTES));
        }
        let array = self.array_for(store).ok_or_else(|| Failure::usage(no_array(store)))?;
        if array.bytes() != u64::try_from(data.len()).ok() {
            let array = array.describe();
            return Err(Failure::usage(format!("`{name}`: a buffer of {} bytes is no {array}", data.len())));
        }
        write(&array.write(&data))?;
        let shown = array.preview(&data, PREVIEW_ELEMENTS + 1);
        let more = shown.len() > PREVIEW_ELEMENTS;
        Ok(preview(format!("{name}: {}", array.describe()), &shown[..shown.len().min(PREVIEW_ELEMENTS)], more))
    }

    /// Whether it can be written so.
    ///
    /// # Errors
    /// What is missing or does not fit.
    pub fn check_store(&self, store: &Store) -> Result<(), Failure> {
        if !is_npy(&store.path) {
            return Ok(());
        }
        let array = self.array_for(store).ok_or_else(|| Failure::usage(no_array(store)))?;
        if array.bytes() != Some(self.device.len()) {
            let (name, bytes, array) = (store.path.display(), self.device.len(), array.describe());
            return Err(Failure::usage(format!("`{name}`: a buffer of {bytes} bytes is no {array}")));
        }
        Ok(())
    }

    fn array_for<'a>(&'a self, store: &'a Store) -> Option<&'a Array> {
        store.array.as_ref().or(self.array.as_ref())
    }
}

fn no_array(store: &Store) -> String {
    let name = store.path.display();
    format!("`{name}`: a .npy needs a type and a shape, as `{name}:f32:64x64`")
}

fn preview(head: String, shown: &[String], more: bool) -> String {
    if shown.is_empty() {
        return head;
    }
    format!("{head}: {}{}", shown.join(" "), if more { " ..." } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_are_read() {
        assert_eq!(Word::parse("-3"), Ok(Word::Scalar("-3".into())));
        assert_eq!(Word::parse("bytes:00ff"), Ok(Word::Bytes(vec![0, 255])));
        assert_eq!(Word::parse("zero:0x10"), Ok(Word::Buffer { from: Source::Zero(16), to: None }));
        assert_eq!(Word::parse("in:a:b.bin"), Ok(Word::Buffer { from: Source::File("a:b.bin".into()), to: None }));
        let Ok(Word::Buffer { from, to: Some(store) }) = Word::parse("out:a:b.bin:8") else { panic!() };
        assert_eq!((from, store.path), (Source::Zero(8), "a:b.bin".into()));
        let Ok(Word::Buffer { from, to: Some(store) }) = Word::parse("out:y.npy:f32:4x8") else { panic!() };
        assert_eq!((from, store.array.unwrap().shape), (Source::Zero(128), vec![4, 8]));
        let Ok(Word::Buffer { from, to: Some(store) }) = Word::parse("inout:x.npy:y.npy") else { panic!() };
        assert_eq!((from, store.path), (Source::File("x.npy".into()), "y.npy".into()));
    }

    #[test]
    fn wrong_forms_get_a_sentence() {
        for text in
            ["zero:", "zero:-1", "out:a.bin", "out:y.npy", "out:y.npy:16", "out:y.npy:f31:4", "out:y.npy:f32:4y4"]
        {
            assert!(Word::parse(text).is_err(), "{text}");
        }
        for text in ["inout:a.bin", "inout:a.bin:y.npy", "in:", "bytes:1", "file:x", "out::8"] {
            assert!(Word::parse(text).is_err(), "{text}");
        }
        assert!(Word::parse("out:y.npy:f31:4").unwrap_err().contains("f16, f32"));
    }
}
