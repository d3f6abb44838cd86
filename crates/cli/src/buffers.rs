//! Buffers: what they hold before a launch, and what of them is written and shown after it.

use std::path::PathBuf;

use handloom_runtime::{Device, DeviceBuffer, Elements};

use crate::elements::Element;
use crate::layout::{Image, Item, Place};
use crate::npy::{self, Array, is_npy};
use crate::outputs::{Output, Store};
use crate::report::{Failure, reason};

/// What memory holds at first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// The bytes of a file, or the elements of a `.npy`.
    File {
        /// The file.
        path: PathBuf,
        /// What a plain file holds, if it was said.
        element: Option<&'static Element>,
    },
    /// So many bytes of zeros.
    Zero(u64),
    /// Numbers that were written out, of one type.
    Values {
        /// Their bytes.
        bytes: Vec<u8>,
        /// Their type and shape.
        array: Array,
    },
    /// Addresses, alone or in structures.
    Item(Item),
}

/// A buffer to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Made {
    /// What it holds before the launch.
    pub from: Source,
    /// Where it goes after the launch.
    pub to: Option<Store>,
    /// How it was asked for, for reports.
    pub origin: String,
    /// What reports call it; may be empty.
    pub name: String,
}

/// What memory is filled with: read before any device memory is taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Content {
    data: Data,
    /// Its type and shape, if they are known.
    array: Option<Array>,
    origin: String,
    name: String,
    is_file: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Data {
    Bytes(Vec<u8>),
    Zero(u64),
    Image(Image),
}

impl Content {
    /// Reads what memory holds at first, in modules whose addresses have `word` bytes.
    ///
    /// # Errors
    /// The file cannot be read or is malformed, or there is no such structure.
    pub fn read(made: &Made, word: usize) -> Result<Content, Failure> {
        let (data, array) = match &made.from {
            Source::Zero(bytes) => {
                let array = made.to.as_ref().and_then(|to| to.array.clone());
                (Data::Zero(*bytes), array.filter(|a| a.bytes() == Some(*bytes)))
            }
            Source::Values { bytes, array } => (Data::Bytes(bytes.clone()), Some(array.clone())),
            Source::Item(item) => (Data::Image(item.lay_out(word).map_err(Failure::usage)?), None),
            Source::File { path, element } => {
                let (bytes, array) = read_file(path, *element)?;
                (Data::Bytes(bytes), array)
            }
        };
        let is_file = matches!(made.from, Source::File { .. });
        Ok(Content { data, array, origin: made.origin.clone(), name: made.name.clone(), is_file })
    }

    /// Its bytes.
    pub fn len(&self) -> u64 {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        match &self.data {
            Data::Bytes(bytes) => count(bytes.len()),
            Data::Zero(n) => *n,
            Data::Image(image) => count(image.len()),
        }
    }

    /// Whether it was read from a file.
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// Its type and shape, if they are known.
    pub fn array(&self) -> Option<&Array> {
        self.array.as_ref()
    }

    /// Its bytes, with addresses.
    ///
    /// # Errors
    /// What `address_of` says.
    pub fn bytes<E>(&self, address_of: impl Fn(&Place) -> Result<u64, E>) -> Result<Vec<u8>, E> {
        match &self.data {
            Data::Bytes(bytes) => Ok(bytes.clone()),
            Data::Zero(n) => Ok(vec![0; usize::try_from(*n).unwrap_or(0)]),
            Data::Image(image) => image.resolve(address_of),
        }
    }

    /// Takes memory for it on a device; below 4 GiB for modules of 32-bit addresses.
    fn place(&self, device: &Device, low: bool) -> Result<DeviceBuffer, Failure> {
        let made = if low { device.zeroed_low(self.len()) } else { device.zeroed(self.len()) };
        let mut buffer = made.map_err(|e| Failure::file(format!("`{}` does not fit: {e}", self.origin)))?;
        if let Data::Bytes(bytes) = &self.data {
            buffer.write(0, bytes);
        }
        buffer.set_origin(&self.origin);
        buffer.set_name(&self.name);
        if let Some(a) = &self.array {
            let elements = Elements { ty: a.type_name().to_owned(), bytes: a.element_bytes(), shape: a.shape.clone() };
            buffer.set_elements(elements);
        }
        Ok(buffer)
    }
}

/// The elements of a file, with their type and shape where they are known.
///
/// # Errors
/// The file cannot be read, is malformed, or does not hold whole elements.
pub fn read_file(path: &PathBuf, element: Option<&'static Element>) -> Result<(Vec<u8>, Option<Array>), Failure> {
    let name = path.display();
    let mut bytes =
        std::fs::read(path).map_err(|e| Failure::file(format!("`{name}` cannot be read: {}", reason(&e))))?;
    if is_npy(path) {
        let (array, start) = npy::read(&bytes).map_err(|why| Failure::file(format!("`{name}`: {why}")))?;
        if element.is_some_and(|e| Some(e) != array.element) {
            let (want, is) = (element.map_or("", |e| e.name), array.type_name());
            return Err(Failure::usage(format!("`{name}` holds {is}, and `type` says {want}")));
        }
        bytes.drain(..start);
        return Ok((bytes, Some(array)));
    }
    let Some(element) = element else { return Ok((bytes, None)) };
    if !bytes.len().is_multiple_of(element.bytes()) {
        let (n, ty) = (bytes.len(), element.name);
        return Err(Failure::file(format!("`{name}`: {n} bytes are no whole number of elements {ty}")));
    }
    let n = u64::try_from(bytes.len() / element.bytes()).unwrap_or(u64::MAX);
    Ok((bytes, Some(Array::of(element, vec![n]))))
}

/// A buffer on a device.
#[derive(Debug)]
pub struct Buffer {
    /// The memory.
    pub device: DeviceBuffer,
    /// Type and shape of what it was filled with.
    pub array: Option<Array>,
    /// What reports call it; may be empty.
    pub name: String,
}

/// Buffers by number.
#[derive(Default, Debug)]
pub struct Buffers(pub Vec<Buffer>);

impl Buffers {
    /// Puts all on a device. `global` knows the addresses of variables.
    ///
    /// # Errors
    /// There is no room, or an address is not known.
    pub fn place(
        contents: Vec<Content>,
        device: &Device,
        low: bool,
        global: impl Fn(&str, u64) -> Result<u64, Failure>,
    ) -> Result<Buffers, Failure> {
        let placed = contents.iter().map(|c| c.place(device, low)).collect::<Result<Vec<_>, _>>()?;
        let pairs = placed.into_iter().zip(&contents);
        let mut all =
            Buffers(pairs.map(|(device, c)| Buffer { device, array: c.array.clone(), name: c.name.clone() }).collect());
        for (i, content) in contents.iter().enumerate() {
            if let Data::Image(image) = &content.data {
                let bytes = image.resolve(|place| all.address(place, &global))?;
                all.0[i].device.write(0, &bytes);
            }
        }
        Ok(all)
    }

    /// The address of a place.
    ///
    /// # Errors
    /// It lies outside, or is not known.
    pub fn address(&self, place: &Place, global: impl Fn(&str, u64) -> Result<u64, Failure>) -> Result<u64, Failure> {
        match place {
            Place::Global { name, offset } => global(name, *offset),
            Place::Buffer { index, offset } => match self.0.get(*index) {
                Some(b) if *offset <= b.device.len() => Ok(b.device.address() + offset),
                Some(b) => {
                    let len = b.device.len();
                    Err(Failure::usage(format!("an offset of {offset} in a buffer of {len} bytes")))
                }
                None => Err(Failure::usage(format!("no buffer {index}"))),
            },
        }
    }
}

/// Elements of an array that a report shows.
const PREVIEW_ELEMENTS: usize = 8;

/// Bytes of a plain file that a report shows.
const PREVIEW_BYTES: usize = 32;

/// What is written to a store, and a line that says so.
pub struct Written {
    /// All bytes of the file.
    file: Vec<u8>,
    /// The line.
    line: String,
}

impl Written {
    /// Makes a file of memory that came from an array or not.
    ///
    /// # Errors
    /// What is missing or does not fit.
    pub fn of(store: &Store, data: Vec<u8>, from: Option<&Array>) -> Result<Written, Failure> {
        let name = store.name();
        check_store(store, u64::try_from(data.len()).unwrap_or(u64::MAX), from)?;
        let Some(array) = store.array_for(from).map_err(Failure::usage)? else {
            let words: Vec<String> = data.iter().take(PREVIEW_BYTES).map(|b| format!("{b:02x}")).collect();
            let shown: Vec<String> = words.chunks(4).map(<[String]>::concat).collect();
            let line = preview(format!("{name}: {} bytes", data.len()), &shown, data.len() > PREVIEW_BYTES);
            return Ok(Written { file: data, line });
        };
        let shown = array.preview(&data, PREVIEW_ELEMENTS + 1);
        let more = shown.len() > PREVIEW_ELEMENTS;
        let shown = &shown[..shown.len().min(PREVIEW_ELEMENTS)];
        Ok(Written { file: array.write(&data), line: preview(format!("{name}: {}", array.describe()), shown, more) })
    }

    /// Writes it. Returns the line.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(self, output: Output) -> Result<String, Failure> {
        output.write(&self.file)?;
        Ok(self.line)
    }
}

/// Whether so many bytes can be written so.
///
/// # Errors
/// What is missing or does not fit.
pub fn check_store(store: &Store, bytes: u64, from: Option<&Array>) -> Result<(), Failure> {
    match store.array_for(from).map_err(Failure::usage)? {
        Some(array) if array.bytes() != Some(bytes) => {
            let (name, array) = (store.name(), array.describe());
            Err(Failure::usage(format!("`{name}`: a buffer of {bytes} bytes is no {array}")))
        }
        _ => Ok(()),
    }
}

fn preview(head: String, shown: &[String], more: bool) -> String {
    if shown.is_empty() {
        return head;
    }
    format!("{head}: {}{}", shown.join(" "), if more { " ..." } else { "" })
}
