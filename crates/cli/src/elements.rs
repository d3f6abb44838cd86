//! Types of elements: their names, how numbers of them are read and shown.

use handloom_ir::num::format::{Format, widen};
use handloom_ir::types::ScalarType;

use crate::scalar;

/// What the bits of an element mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A number of one of PTX's types.
    Number(ScalarType),
    /// One byte, 0 or 1.
    Bool,
    /// Two floats: the real and the imaginary part.
    Complex(ScalarType),
}

/// A type of elements.
#[derive(PartialEq, Eq, Debug)]
pub struct Element {
    /// Its name.
    pub name: &'static str,
    /// NumPy's type string, as files get it.
    pub descr: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Other names: PTX's, NumPy's and those of `ml_dtypes`.
    others: &'static [&'static str],
}

const fn number(name: &'static str, descr: &'static str, ty: ScalarType, others: &'static [&'static str]) -> Element {
    Element { name, descr, kind: Kind::Number(ty), others }
}

/// All types.
///
/// Choice: NumPy has no type for `bf16` and the floats of 8 bits. `ml_dtypes` writes them as plain bytes, and what it writes for `e5m2` NumPy
/// refuses to read; so those are written as plain bytes of their size, which `numpy.load(...).view(...)` makes what they are.
const ALL: &[Element] = &[
    number("f16", "<f2", ScalarType::F16, &["float16", "half"]),
    number("f32", "<f4", ScalarType::F32, &["float32", "single"]),
    number("f64", "<f8", ScalarType::F64, &["float64", "double"]),
    number("bf16", "<V2", ScalarType::BF16, &["bfloat16"]),
    number("e4m3", "|V1", ScalarType::E4M3, &["float8_e4m3fn", "e4m3fn"]),
    number("e5m2", "|V1", ScalarType::E5M2, &["float8_e5m2"]),
    number("i8", "|i1", ScalarType::S8, &["int8", "s8"]),
    number("i16", "<i2", ScalarType::S16, &["int16", "s16"]),
    number("i32", "<i4", ScalarType::S32, &["int32", "s32"]),
    number("i64", "<i8", ScalarType::S64, &["int64", "s64"]),
    number("u8", "|u1", ScalarType::U8, &["uint8", "b8"]),
    number("u16", "<u2", ScalarType::U16, &["uint16", "b16"]),
    number("u32", "<u4", ScalarType::U32, &["uint32", "b32"]),
    number("u64", "<u8", ScalarType::U64, &["uint64", "b64"]),
    Element { name: "bool", descr: "|b1", kind: Kind::Bool, others: &["bool_"] },
    Element { name: "c64", descr: "<c8", kind: Kind::Complex(ScalarType::F32), others: &["complex64"] },
    Element { name: "c128", descr: "<c16", kind: Kind::Complex(ScalarType::F64), others: &["complex128"] },
];

impl Element {
    /// A type by one of its names.
    ///
    /// # Errors
    /// Which names there are.
    pub fn named(name: &str) -> Result<&'static Element, String> {
        let is_descr = |e: &Element| !e.descr.contains('V') && same_descr(e.descr, name);
        let found = ALL.iter().find(|e| e.name == name || e.others.contains(&name) || is_descr(e));
        found.ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|e| e.name).collect();
            format!("`{name}` is no element type: expected one of {} or its name in NumPy", names.join(", "))
        })
    }

    /// The type behind a type string of a file; none for bytes that may be of several types.
    pub fn of_descr(descr: &str) -> Option<&'static Element> {
        // What `ml_dtypes` writes for `float8_e5m2`.
        let name = if descr == "<f1" { Some("e5m2") } else { None };
        let mut found = ALL.iter().filter(|e| name.map_or_else(|| same_descr(e.descr, descr), |n| e.name == n));
        found.next().filter(|_| found.next().is_none())
    }

    /// Bytes of an element.
    pub fn bytes(&self) -> usize {
        let size = match self.kind {
            Kind::Number(ty) => ty.bytes(),
            Kind::Bool => 1,
            Kind::Complex(part) => 2 * part.bytes(),
        };
        size as usize
    }

    /// Alignment in a structure.
    pub fn align(&self) -> usize {
        if let Kind::Complex(_) = self.kind { self.bytes() / 2 } else { self.bytes() }
    }

    /// Appends the bytes of a number.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(&self, text: &str, to: &mut Vec<u8>) -> Result<(), String> {
        match self.kind {
            Kind::Number(ty) => to.extend(&scalar::parse(text, ty)?.to_le_bytes()[..self.bytes()]),
            Kind::Bool => match text {
                "true" | "1" => to.push(1),
                "false" | "0" => to.push(0),
                _ => return Err(format!("`{text}` is no bool: expected true or false")),
            },
            Kind::Complex(part) => {
                let part = if part == ScalarType::F32 { "f32" } else { "f64" };
                return Err(format!("`{}` has no words for numbers: give the parts as {part}", self.name));
            }
        }
        Ok(())
    }

    /// An element as a number.
    pub fn show(&self, e: &[u8]) -> String {
        match self.kind {
            Kind::Number(ty) => show(ty, e),
            Kind::Bool => bits(e).to_string(),
            Kind::Complex(part) => {
                let (real, imaginary) = e.split_at(e.len() / 2);
                let imaginary = show(part, imaginary);
                let plus = if imaginary.starts_with('-') { "" } else { "+" };
                format!("{}{plus}{imaginary}j", show(part, real))
            }
        }
    }
}

/// Whether type strings mean the same: the mark of the byte order matters only where there are several bytes, and voids have none.
fn same_descr(a: &str, b: &str) -> bool {
    let (Some(order), Some(kind)) = (b.get(..1), b.get(1..)) else { return false };
    let any_order = kind.starts_with('V') || kind.ends_with('1');
    a.get(1..) == Some(kind) && (matches!(order, "<" | "=") || (order == "|" && any_order))
}

/// The bits of an element of up to 8 bytes.
pub fn bits(e: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.iter_mut().zip(e).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(word)
}

/// The format of a float type.
pub fn format_of(ty: ScalarType) -> Option<&'static Format> {
    Some(match ty {
        ScalarType::F16 => &Format::F16,
        ScalarType::BF16 => &Format::BF16,
        ScalarType::F32 => &Format::F32,
        ScalarType::F64 => &Format::F64,
        ScalarType::E4M3 => &Format::E4M3,
        ScalarType::E5M2 => &Format::E5M2,
        _ => return None,
    })
}

/// An integer of a type.
pub fn integer(ty: ScalarType, e: &[u8]) -> i128 {
    let word = bits(e);
    let unused = 64 - ty.bits();
    if ty.is_signed() { i128::from((word << unused).cast_signed() >> unused) } else { i128::from(word) }
}

fn show(ty: ScalarType, e: &[u8]) -> String {
    match format_of(ty) {
        // Its own printer gives the fewest digits that read back as the same number.
        Some(_) if ty == ScalarType::F32 => f32::from_bits(u32::try_from(bits(e)).unwrap_or(0)).to_string(),
        Some(format) => widen(format, bits(e)).to_string(),
        None => integer(ty, e).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_of_ptx_and_numpy() {
        for (name, same) in [
            ("s32", "int32"),
            ("<f4", "float32"),
            ("=f4", "f32"),
            ("|u1", "uint8"),
            ("<c16", "complex128"),
            ("|b1", "bool"),
            ("bfloat16", "bf16"),
            ("float8_e4m3fn", "e4m3"),
            ("float8_e5m2", "e5m2"),
        ] {
            assert_eq!(Element::named(name), Element::named(same), "{name}");
        }
        for name in ["f31", ">f4", "|V2", "<V1", "", "f", "\u{e9}f4", "|f4"] {
            assert!(Element::named(name).is_err(), "{name}");
        }
        assert!(Element::named("f31").unwrap_err().contains("f16, f32, f64, bf16"));
    }

    #[test]
    fn type_strings_of_files_are_known() {
        let name = |descr| Element::of_descr(descr).map(|e| e.name);
        assert_eq!(name("<V2"), Some("bf16"));
        assert_eq!(name("|V2"), Some("bf16"));
        assert_eq!(name("<f1"), Some("e5m2"));
        // Both floats of 8 bits are written so.
        assert_eq!(name("|V1"), None);
        assert_eq!(name("<f16"), None);
    }

    #[test]
    fn numbers_read_back() {
        for (ty, text) in [
            ("f32", "0.1"),
            ("f64", "-2.5"),
            ("bf16", "1.5"),
            ("e4m3", "448"),
            ("e5m2", "-inf"),
            ("i8", "-128"),
            ("u64", "18446744073709551615"),
            ("i64", "-9223372036854775808"),
            ("bool", "1"),
            ("f16", "NaN"),
        ] {
            let e = Element::named(ty).unwrap();
            let mut bytes = Vec::new();
            e.parse(text, &mut bytes).unwrap();
            assert_eq!((bytes.len(), e.show(&bytes).as_str()), (e.bytes(), text));
        }
        for (ty, text) in [("e4m3", "1000"), ("e4m3", "inf"), ("bool", "2"), ("u8", "-129"), ("c64", "1")] {
            assert!(Element::named(ty).unwrap().parse(text, &mut Vec::new()).is_err(), "{ty} {text}");
        }
    }
}
