//! NumPy's array files: a head with the type and the shape, then the elements.
//!
//! Choice: written by hand, because the packages for it bring a parser generator and a C compiler for a head of three keys. Read: numbers in
//! the byte order of the host, in the order of C. What else such files can hold is refused with a sentence.

use std::path::Path;

use crate::elements::Element;

/// Whether a path names a NumPy array.
pub fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy"))
}

/// Type and shape of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array {
    /// NumPy's type string: `<f4`.
    descr: String,
    /// The type, if it is one of ours.
    pub element: Option<&'static Element>,
    /// Dimensions; none for a single number.
    pub shape: Vec<u64>,
}

const MAGIC: &[u8] = b"\x93NUMPY";

impl Array {
    /// An array of a type by name and a shape as `64x64`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(ty: &str, shape: &str) -> Result<Array, String> {
        let element = Element::named(ty)?;
        let dimensions = shape.split('x').map(str::parse).collect::<Result<Vec<u64>, _>>();
        let shape = dimensions.map_err(|_| format!("`{shape}` is no shape: expected numbers as in 64x64"))?;
        let array = Array::of(element, shape);
        array.bytes().ok_or_else(|| "an array of 2^64 bytes or more".to_owned())?;
        Ok(array)
    }

    /// An array of a type.
    pub fn of(element: &'static Element, shape: Vec<u64>) -> Array {
        Array { descr: element.descr.to_owned(), element: Some(element), shape }
    }

    /// Its type, for people.
    pub fn type_name(&self) -> &str {
        self.element.map_or(self.descr.as_str(), |e| e.name)
    }

    /// Bytes of an element.
    pub fn element_bytes(&self) -> u64 {
        self.descr.get(2..).and_then(|n| n.parse().ok()).unwrap_or(1)
    }

    /// Bytes of all elements, if 64 bits hold them.
    pub fn bytes(&self) -> Option<u64> {
        self.shape.iter().try_fold(self.element_bytes(), |n, d| n.checked_mul(*d))
    }

    /// `f32 64x64`.
    pub fn describe(&self) -> String {
        let ty = self.type_name();
        let shape: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        if shape.is_empty() { ty.to_owned() } else { format!("{ty} {}", shape.join("x")) }
    }

    /// A file with this head.
    pub fn write(&self, data: &[u8]) -> Vec<u8> {
        let shape: String = match self.shape.as_slice() {
            [one] => format!("{one},"),
            all => all.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
        };
        let dict = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", self.descr);
        // Head and elements are 64 bytes apart or a multiple of it; the head ends with a newline.
        let start = MAGIC.len() + 4;
        let total = (start + dict.len() + 1).next_multiple_of(64);
        let mut out = Vec::with_capacity(total + data.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[1, 0]);
        // Some hundred bytes at most: a shape has few dimensions.
        let length = u16::try_from(total - start).unwrap_or(u16::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(dict.as_bytes());
        out.resize(total - 1, b' ');
        out.push(b'\n');
        out.extend_from_slice(data);
        out
    }

    /// The first elements as numbers.
    pub fn preview(&self, data: &[u8], most: usize) -> Vec<String> {
        let size = usize::try_from(self.element_bytes()).unwrap_or(1).max(1);
        data.chunks_exact(size).take(most).map(|e| self.show(e)).collect()
    }

    /// An element as a number; as hexadecimal digits where its type is not known.
    pub fn show(&self, e: &[u8]) -> String {
        match self.element {
            Some(element) => element.show(e),
            None => e.iter().rev().map(|b| format!("{b:02x}")).collect(),
        }
    }
}

/// Reads a file: its head and where the elements begin.
///
/// # Errors
/// Why it is no array that can be read.
pub fn read(file: &[u8]) -> Result<(Array, usize), String> {
    let rest = file.strip_prefix(MAGIC).ok_or("not a NumPy array: the first bytes are not `\\x93NUMPY`")?;
    let cut = || "the file ends in its head".to_owned();
    let (major, rest) = rest.split_first().ok_or_else(cut)?;
    let rest = rest.get(1..).ok_or_else(cut)?;
    let (length, rest) = match major {
        1 => (rest.first_chunk::<2>().map(|b| u64::from(u16::from_le_bytes(*b))), rest.get(2..)),
        2 | 3 => (rest.first_chunk::<4>().map(|b| u64::from(u32::from_le_bytes(*b))), rest.get(4..)),
        other => return Err(format!("version {other} of the format is not known")),
    };
    let (length, rest) = length.zip(rest).ok_or_else(cut)?;
    let length = usize::try_from(length).map_err(|_| cut())?;
    let dict = rest.get(..length).ok_or_else(cut)?;
    // Names of fields may be in another encoding than ours; all that is read is ASCII.
    let array = head(&String::from_utf8_lossy(dict))?;
    let data = &rest[length..];
    let want = array.bytes().ok_or("an array of 2^64 bytes or more")?;
    if u64::try_from(data.len()) != Ok(want) {
        return Err(format!("{} bytes of elements, but {} are {want} bytes", data.len(), array.describe()));
    }
    Ok((array, file.len() - data.len()))
}

/// `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }` in any order of the keys.
fn head(dict: &str) -> Result<Array, String> {
    let malformed = || format!("a malformed head: `{}`", dict.trim().chars().take(120).collect::<String>());
    let body = dict.trim().strip_prefix('{').and_then(|d| d.strip_suffix('}')).ok_or_else(malformed)?;
    let value = |key: &str| {
        let at = [format!("'{key}'"), format!("\"{key}\"")].iter().find_map(|k| Some(body.find(k)? + k.len()))?;
        body[at..].trim_start().strip_prefix(':').map(str::trim_start)
    };
    let descr = value("descr").ok_or_else(malformed)?;
    if descr.starts_with('[') {
        return Err("an array of records: expected plain numbers".into());
    }
    let quote = descr.chars().next().filter(|c| matches!(c, '\'' | '"')).ok_or_else(malformed)?;
    let descr = descr[1..].split(quote).next().ok_or_else(malformed)?;
    let fortran = value("fortran_order").ok_or_else(malformed)?;
    let shape = value("shape").and_then(|s| s.strip_prefix('(')?.split(')').next()).ok_or_else(malformed)?;
    let dimensions = shape.split(',').map(|d| d.trim().trim_end_matches('L')).filter(|d| !d.is_empty());
    let shape = dimensions.map(str::parse).collect::<Result<Vec<u64>, _>>().map_err(|_| malformed())?;
    if descr.starts_with('>') {
        return Err(format!(
            "elements `{descr}` in the other byte order: save them with `.astype('{}')`",
            descr.replace('>', "<")
        ));
    }
    let plain = match descr.as_bytes().get(1) {
        // One byte or two: a type of `ml_dtypes`.
        Some(b'V') => matches!(&descr[2..], "1" | "2"),
        Some(kind) if b"fiubc".contains(kind) => descr[2..].parse::<u8>().is_ok_and(|n| n.is_power_of_two()),
        _ => false,
    };
    if !plain || !descr.starts_with(['<', '|', '=']) {
        return Err(format!("elements `{descr}`: expected plain numbers"));
    }
    let ordered = shape.iter().filter(|d| **d > 1).count() < 2;
    if !fortran.starts_with("False") && !ordered {
        return Err("elements in the order of Fortran: save them with `numpy.ascontiguousarray`".into());
    }
    Ok(match Element::of_descr(descr) {
        Some(element) => Array::of(element, shape),
        None => Array { descr: descr.replace('=', "<"), element: None, shape },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dict: &str, data: &[u8]) -> Vec<u8> {
        let mut out = [MAGIC, &[1, 0]].concat();
        out.extend(u16::try_from(dict.len()).unwrap().to_le_bytes());
        out.extend(dict.as_bytes());
        out.extend(data);
        out
    }

    #[test]
    fn what_is_written_reads_back() {
        for (ty, shape, bytes) in [("f32", "2x3", 24), ("u8", "5", 5), ("c128", "1", 16), ("s64", "0", 0)] {
            let a = Array::parse(ty, shape).unwrap();
            let data = vec![7; bytes];
            let written = a.write(&data);
            let (read, start) = read(&written).unwrap();
            assert_eq!((read, &written[start..]), (a, data.as_slice()));
            assert!(start.is_multiple_of(64));
        }
    }

    #[test]
    fn types_of_ml_dtypes_are_bytes() {
        let a = Array::parse("bfloat16", "1").unwrap();
        let written = a.write(&[0xc0, 0x3f]);
        assert!(String::from_utf8_lossy(&written).contains("'descr': '<V2'"));
        assert_eq!(read(&written).unwrap().0.describe(), "bf16 1");
        assert_eq!(a.preview(&[0xc0, 0x3f], 1), ["1.5"]);
        let a = Array::parse("float8_e5m2", "1").unwrap();
        assert_eq!(a.preview(&[0x3c], 1), ["1"]);
        let (back, _) = read(&a.write(&[0x3c])).unwrap();
        assert_eq!((back.describe().as_str(), back.preview(&[0x3c], 1)), ("|V1 1", vec!["3c".to_owned()]));
        let (back, _) = read(&file("{'descr': '<f1', 'fortran_order': False, 'shape': (1,)}", &[0x3c])).unwrap();
        assert_eq!(back.describe(), "e5m2 1");
        assert!(String::from_utf8_lossy(&back.write(&[0x3c])).contains("'|V1'"));
        assert!(read(&file("{'descr': '|V8', 'fortran_order': False, 'shape': (1,)}", &[0; 8])).is_err());
    }

    #[test]
    fn heads_of_other_writers_are_read() {
        let (a, _) = read(&file("{\"shape\":(2,), \"fortran_order\":True, \"descr\":\"=i2\"}\n", &[0; 4])).unwrap();
        assert_eq!(a.describe(), "i16 2");
        let (a, _) = read(&file("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", &[1])).unwrap();
        assert!(a.shape.is_empty());
    }

    #[test]
    fn other_files_are_refused_with_a_sentence() {
        let why = |f: &[u8]| read(f).unwrap_err();
        assert!(why(b"PK\x03\x04").contains("not a NumPy array"));
        assert!(why(b"\x93NUMPY\x01").contains("ends in its head"));
        assert!(why(b"\x93NUMPY\x01\x00\xff\xff{").contains("ends in its head"));
        assert!(why(&file("{'descr': '<f4'}", &[])).contains("malformed"));
        assert!(why(&file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", &[])).contains("malformed"));
        assert!(why(&file("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", &[0; 4])).contains("byte order"));
        assert!(why(&file("{'descr': '<f4', 'fortran_order': True, 'shape': (2,2)}", &[0; 16])).contains("Fortran"));
        assert!(
            why(&file("{'descr': '<U4', 'fortran_order': False, 'shape': (1,)}", &[0; 16])).contains("plain numbers")
        );
        assert!(
            why(&file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", &[])).contains("records")
        );
        // NumPy writes names of fields in Latin-1 where it can.
        let mut latin = file("{'descr': [('?', '<f4')], 'fortran_order': False, 'shape': (1,)}", &[]);
        latin.iter_mut().filter(|b| **b == b'?').for_each(|b| *b = 0xe4);
        assert!(why(&latin).contains("records"));
        assert!(
            why(&file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", &[0; 4]))
                .contains("f32 2 are 8 bytes")
        );
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}";
        assert!(why(&file(huge, &[])).contains("2^64"));
    }

    #[test]
    fn elements_are_shown_as_numbers() {
        let a = Array::parse("i16", "2").unwrap();
        assert_eq!(a.preview(&[0xff, 0xff, 2, 0], 8), ["-1", "2"]);
        let complex = [2.0_f32.to_le_bytes(), (-0.5_f32).to_le_bytes()].concat();
        assert_eq!(Array::parse("c64", "1").unwrap().preview(&complex, 8), ["2-0.5j"]);
        let complex = [0.0_f64.to_le_bytes(), 1.0_f64.to_le_bytes()].concat();
        assert_eq!(Array::parse("c128", "1").unwrap().preview(&complex, 8), ["0+1j"]);
        assert_eq!(Array::parse("f16", "1").unwrap().preview(&[0, 0x3e], 8), ["1.5"]);
    }
}
