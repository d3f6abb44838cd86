//! What stands in a job for the contents of memory, for arguments and for expectations.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use handloom_ir::num::image::{self, Kind, Spec};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::buffers::{Made, Source};
use crate::elements::Element;
use crate::layout::{Field, Item, Place, Struct};
use crate::npy::Array;
use crate::scalar;
use crate::tensor_maps::TensorMapSpec;

/// What a buffer or a variable is filled with: one of the five.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, expecting = "an object with `file`, `zero`, `values`, `addresses` or `struct`")]
pub struct ContentSpec {
    file: Option<String>,
    zero: Option<u64>,
    values: Option<Box<RawValue>>,
    addresses: Option<Vec<PlaceSpec>>,
    #[serde(rename = "struct")]
    structure: Option<Vec<Option<ValueSpec>>>,
    /// Type of the elements of a file or of values.
    #[serde(rename = "type")]
    ty: Option<String>,
    /// All bytes of a structure.
    size: Option<u64>,
    /// First byte of a variable that is filled.
    pub offset: Option<u64>,
    /// The record of a texture.
    texture: Option<Spec>,
    /// The record of a sampler.
    sampler: Option<Spec>,
    /// The record of a surface.
    surface: Option<Spec>,
}

/// Where an address points: a name, an object, or nothing.
#[derive(Debug)]
pub enum PlaceSpec {
    /// The null pointer.
    Null,
    /// A buffer or a variable.
    To(TargetSpec),
}

/// A byte of a buffer or of a variable.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct TargetSpec {
    buffer: Option<String>,
    global: Option<String>,
    offset: Option<u64>,
}

impl<'de> Deserialize<'de> for PlaceSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<PlaceSpec, D::Error> {
        struct Words;
        impl<'de> Visitor<'de> for Words {
            type Value = PlaceSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a buffer, an object with `buffer` or `global`, or null")
            }
            fn visit_unit<E: de::Error>(self) -> Result<PlaceSpec, E> {
                Ok(PlaceSpec::Null)
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<PlaceSpec, E> {
                Ok(PlaceSpec::To(TargetSpec { buffer: Some(name.to_owned()), ..TargetSpec::default() }))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PlaceSpec, A::Error> {
                TargetSpec::deserialize(de::value::MapAccessDeserializer::new(map)).map(PlaceSpec::To)
            }
        }
        from.deserialize_any(Words)
    }
}

/// The value of a parameter or of a field of a structure.
#[derive(Deserialize, Debug)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with `buffer`, `scalar` or `bytes`, or `struct`, `values`, `zero`, `global` or `tensor_map`"
)]
pub struct ValueSpec {
    /// Name of a buffer.
    pub buffer: Option<String>,
    global: Option<String>,
    /// Byte of the buffer or variable.
    pub offset: Option<u64>,
    /// A scalar: of the parameter's type unless `type` says which.
    pub scalar: Option<Scalar>,
    #[serde(rename = "type")]
    ty: Option<String>,
    /// Bytes as hexadecimal digits.
    pub bytes: Option<String>,
    values: Option<Box<RawValue>>,
    zero: Option<u64>,
    /// A tensor map of the job, by name.
    tensor_map: Option<String>,
    #[serde(rename = "struct")]
    structure: Option<Vec<Option<ValueSpec>>>,
    size: Option<u64>,
    at: Option<u64>,
    align: Option<u64>,
}

/// A scalar as text, or as a number of JSON.
#[derive(Deserialize, Debug)]
#[serde(untagged, expecting = "a `scalar` that is no text and no number")]
pub enum Scalar {
    /// `"5"`.
    Text(String),
    /// `5`.
    Number(serde_json::Number),
}

impl Scalar {
    /// As it would be typed.
    pub fn text(&self) -> String {
        match self {
            Scalar::Text(text) => text.clone(),
            Scalar::Number(n) => n.to_string(),
        }
    }
}

/// What a buffer or a variable is compared with after the launches.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "an object with `values` or `file`")]
pub struct ExpectSpec {
    /// The numbers that are expected, written out.
    pub values: Option<Box<RawValue>>,
    /// A file with them.
    pub file: Option<String>,
    /// Their type.
    #[serde(rename = "type")]
    pub ty: Option<String>,
    /// The first byte that is compared; then so many as there are expected.
    pub offset: Option<u64>,
    /// Largest difference.
    pub abs: Option<f64>,
    /// Largest difference as a part of the expected number.
    pub rel: Option<f64>,
    /// Largest difference in units in the last place.
    pub ulp: Option<u64>,
}

/// Numbers of buffers, and tensor maps, by name.
#[derive(Debug, Default)]
pub struct Names<'j> {
    buffers: BTreeMap<&'j str, usize>,
    maps: BTreeMap<&'j str, Item>,
}

impl<'j> Names<'j> {
    /// Of all buffers and tensor maps of a job.
    ///
    /// # Errors
    /// What was expected of a tensor map.
    pub fn of(
        buffers: &'j BTreeMap<String, ContentSpec>,
        maps: &'j BTreeMap<String, TensorMapSpec>,
    ) -> Result<Names<'j>, String> {
        let buffers = buffers.keys().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
        let mut names = Names { buffers, maps: BTreeMap::new() };
        for (name, spec) in maps {
            let place = names.place(spec.buffer.as_deref(), spec.global.as_deref(), spec.offset);
            let item = place.and_then(|place| spec.item(place));
            names.maps.insert(name, item.map_err(|why| format!("tensor map `{name}`: {why}"))?);
        }
        Ok(names)
    }

    /// The number of a buffer.
    pub fn get(&self, name: &str) -> Option<usize> {
        self.buffers.get(name).copied()
    }

    fn tensor_map(&self, name: &str) -> Result<Item, String> {
        self.maps.get(name).cloned().ok_or_else(|| {
            format!("`{name}` is no tensor map of the job, which has {}", listed(self.maps.keys().copied()))
        })
    }

    fn index(&self, name: &str) -> Result<usize, String> {
        self.get(name).ok_or_else(|| {
            format!("`{name}` is no buffer of the job, which has {}", listed(self.buffers.keys().copied()))
        })
    }

    fn place(&self, buffer: Option<&str>, global: Option<&str>, offset: Option<u64>) -> Result<Place, String> {
        let offset = offset.unwrap_or(0);
        match (buffer, global) {
            (Some(name), None) => Ok(Place::Buffer { index: self.index(name)?, offset }),
            (None, Some(name)) => Ok(Place::Global { name: name.to_owned(), offset }),
            _ => Err("an address: expected either `buffer` or `global`".into()),
        }
    }
}

/// Names in a sentence.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let all: Vec<String> = names.map(|n| format!("`{n}`")).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

/// Fails unless exactly one of several is there.
fn one_of(said: &[bool], what: &str) -> Result<(), String> {
    if said.iter().filter(|s| **s).count() == 1 { Ok(()) } else { Err(format!("expected {what}")) }
}

/// `type` where it must be given.
fn element(ty: Option<&str>, of: &str) -> Result<&'static Element, String> {
    Element::named(ty.ok_or_else(|| format!("`{of}` need a `type`, as \"f32\""))?)
}

impl ContentSpec {
    /// A buffer that holds a texture, a sampler or a surface.
    pub fn of_object(kind: Kind, spec: Spec) -> ContentSpec {
        let (texture, sampler, surface) = match kind {
            Kind::Texture => (Some(spec), None, None),
            Kind::Sampler => (None, Some(spec), None),
            Kind::Surface => (None, None, Some(spec)),
        };
        ContentSpec { texture, sampler, surface, ..ContentSpec::default() }
    }

    /// What it is as a texture, a sampler or a surface.
    fn object(&self) -> Option<(Kind, &Spec)> {
        let all = [(Kind::Texture, &self.texture), (Kind::Sampler, &self.sampler), (Kind::Surface, &self.surface)];
        all.into_iter().find_map(|(kind, spec)| Some((kind, spec.as_ref()?)))
    }

    /// Checks that it says one thing.
    ///
    /// # Errors
    /// What was expected.
    pub fn check(&self) -> Result<(), String> {
        let said = [
            self.file.is_some(),
            self.zero.is_some(),
            self.values.is_some(),
            self.addresses.is_some(),
            self.structure.is_some(),
            self.texture.is_some(),
            self.sampler.is_some(),
            self.surface.is_some(),
        ];
        one_of(&said, "either `file` or `zero`, or `values`, `addresses` or `struct`")?;
        if self.ty.is_some() && self.file.is_none() && self.values.is_none() {
            return Err("`type` belongs to `file` or `values`".into());
        }
        if self.size.is_some() && self.structure.is_none() {
            return Err("`size` belongs to `struct`".into());
        }
        Ok(())
    }

    /// What is to be made of it. Paths begin at `base`.
    ///
    /// # Errors
    /// What was expected.
    pub fn made(&self, name: &str, base: &Path, names: &Names<'_>) -> Result<Made, String> {
        let ty = self.ty.as_deref();
        let (from, origin) = if let Some(file) = &self.file {
            let element = ty.map(Element::named).transpose()?;
            (Source::File { path: base.join(file), element }, format!("file {file}"))
        } else if let Some(raw) = &self.values {
            let (bytes, shape) = numbers(raw, element(ty, "values")?)?;
            let array = Array::of(element(ty, "values")?, shape);
            let origin = format!("values of {}", array.describe());
            (Source::Values { bytes, array }, origin)
        } else if let Some(list) = &self.addresses {
            let fields = list.iter().enumerate().map(|(i, place)| {
                let wrong = |why| format!("address {}: {why}", i + 1);
                Ok(Item::Address(place.resolve(names).map_err(wrong)?).into())
            });
            let fields = fields.collect::<Result<Vec<Field>, String>>()?;
            let origin = format!("{} addresses", fields.len());
            (Source::Item(Item::Struct(Struct { fields, size: None })), origin)
        } else if let Some(fields) = &self.structure {
            (Source::Item(structure(fields, self.size, names)?), "struct".to_owned())
        } else if let Some((kind, spec)) = self.object() {
            (Source::Item(record(kind, spec, names)?), kind.word().to_owned())
        } else {
            let zeros = self.zero.unwrap_or(0);
            (Source::Zero(zeros), format!("zero:{zeros}"))
        };
        Ok(Made { from, to: None, origin, name: name.to_owned() })
    }
}

impl PlaceSpec {
    fn resolve(&self, names: &Names<'_>) -> Result<Option<Place>, String> {
        match self {
            PlaceSpec::Null => Ok(None),
            PlaceSpec::To(t) => names.place(t.buffer.as_deref(), t.global.as_deref(), t.offset).map(Some),
        }
    }
}

/// The record of an object, with the address of its texels.
fn record(kind: Kind, spec: &Spec, names: &Names<'_>) -> Result<Item, String> {
    let bytes = spec.object(kind)?.encode();
    let base = to_index(image::BASE_AT);
    let part = |range: Range<usize>| Field {
        at: u64::try_from(range.start).ok(),
        align: None,
        item: Item::Bytes { bytes: bytes[range].to_vec(), align: 1 },
    };
    let mut fields = vec![part(0..base), part(base + 8..bytes.len())];
    if kind != Kind::Sampler {
        let Some(buffer) = &spec.buffer else { return Err("`buffer` is missing".into()) };
        let item = Item::Address(Some(names.place(Some(buffer), None, Some(spec.offset))?));
        fields.push(Field { at: Some(u64::from(image::BASE_AT)), align: None, item });
    }
    Ok(Item::Struct(Struct { fields, size: None }))
}

fn to_index(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn structure(fields: &[Option<ValueSpec>], size: Option<u64>, names: &Names<'_>) -> Result<Item, String> {
    let field = |(i, spec): (usize, &Option<ValueSpec>)| {
        let wrong = |why| format!("field {}: {why}", i + 1);
        let Some(spec) = spec else { return Ok(Item::Address(None).into()) };
        let item = spec.item(names).map_err(wrong)?;
        Ok(Field { at: spec.at, align: spec.align, item })
    };
    let fields = fields.iter().enumerate().map(field).collect::<Result<Vec<Field>, String>>()?;
    Ok(Item::Struct(Struct { fields, size }))
}

impl ValueSpec {
    /// Checks that it says one thing.
    ///
    /// # Errors
    /// What was expected.
    fn check(&self) -> Result<(), String> {
        let said = [
            self.buffer.is_some(),
            self.scalar.is_some(),
            self.bytes.is_some(),
            self.structure.is_some(),
            self.values.is_some(),
            self.zero.is_some(),
            self.global.is_some(),
            self.tensor_map.is_some(),
        ];
        one_of(
            &said,
            "one of `buffer`, `scalar` and `bytes`, or of `struct`, `values`, `zero`, `global` and `tensor_map`",
        )?;
        if self.offset.is_some() && self.buffer.is_none() && self.global.is_none() {
            return Err("`offset` belongs to `buffer` or `global`".into());
        }
        if self.ty.is_some() && self.scalar.is_none() && self.values.is_none() {
            return Err("`type` belongs to `scalar` or `values`".into());
        }
        if self.size.is_some() && self.structure.is_none() {
            return Err("`size` belongs to `struct`".into());
        }
        Ok(())
    }

    /// As an argument: a buffer, a scalar of the parameter's type, or anything else.
    ///
    /// # Errors
    /// What was expected.
    pub fn argument(&self, names: &Names<'_>) -> Result<Argument<'_>, String> {
        self.check()?;
        if self.at.is_some() || self.align.is_some() {
            return Err("`at` and `align` belong to the fields of a `struct`".into());
        }
        match (&self.buffer, &self.scalar, &self.ty) {
            (Some(name), _, _) => Ok(Argument::Buffer { index: names.index(name)?, offset: self.offset.unwrap_or(0) }),
            (None, Some(s), None) => Ok(Argument::Scalar(s)),
            _ => self.item(names).map(Argument::Item),
        }
    }

    fn item(&self, names: &Names<'_>) -> Result<Item, String> {
        self.check()?;
        let ty = self.ty.as_deref();
        if let Some(s) = &self.scalar {
            let ty = ty.ok_or("a `scalar` in a structure needs a `type`, as \"s32\"")?;
            let element = Element::named(ty)?;
            let mut bytes = Vec::new();
            element.parse(&s.text(), &mut bytes)?;
            Ok(Item::Bytes { bytes, align: element.align() })
        } else if let Some(raw) = &self.values {
            let element = element(ty, "values")?;
            Ok(Item::Bytes { bytes: numbers(raw, element)?.0, align: element.align() })
        } else if let Some(digits) = &self.bytes {
            Ok(Item::Bytes { bytes: scalar::hex(digits)?, align: 1 })
        } else if let Some(zeros) = self.zero {
            const MOST: u64 = 1 << 26;
            let n = usize::try_from(zeros).ok().filter(|_| zeros <= MOST);
            let n = n.ok_or_else(|| format!("{zeros} bytes: expected at most {MOST}"))?;
            Ok(Item::Bytes { bytes: vec![0; n], align: 1 })
        } else if let Some(fields) = &self.structure {
            structure(fields, self.size, names)
        } else if let Some(name) = &self.tensor_map {
            names.tensor_map(name)
        } else {
            let place = names.place(self.buffer.as_deref(), self.global.as_deref(), self.offset)?;
            Ok(Item::Address(Some(place)))
        }
    }
}

/// An argument of a launch.
#[derive(Debug)]
pub enum Argument<'j> {
    /// The address of a byte of a buffer.
    Buffer {
        /// Number of the buffer.
        index: usize,
        /// The byte.
        offset: u64,
    },
    /// A scalar of the parameter's type.
    Scalar(&'j Scalar),
    /// Anything else.
    Item(Item),
}

/// How deep lists of values may be: dimensions of an array.
const MAX_DIMENSIONS: usize = 32;

/// Numbers in lists, maybe of lists. Returns their bytes and shape. Digits are read as they stand, so that each number is rounded once.
///
/// # Errors
/// What was expected.
pub fn numbers(raw: &RawValue, element: &'static Element) -> Result<(Vec<u8>, Vec<u64>), String> {
    let mut bytes = Vec::new();
    if !raw.get().starts_with('[') {
        return Err("`values` is no list".into());
    }
    let shape = collect(raw, element, MAX_DIMENSIONS, &mut bytes)?;
    Ok((bytes, shape))
}

fn collect(raw: &RawValue, element: &'static Element, depth: usize, bytes: &mut Vec<u8>) -> Result<Vec<u64>, String> {
    let text = raw.get();
    if text.starts_with('"') {
        let word: String = serde_json::from_str(text).map_err(|e| e.to_string())?;
        return element.parse(&word, bytes).map(|()| vec![]);
    }
    if !text.starts_with('[') {
        if text.starts_with('{') || text == "null" {
            return Err(format!("`values` holds `{}`: expected numbers", text.chars().take(20).collect::<String>()));
        }
        return element.parse(text, bytes).map(|()| vec![]);
    }
    let depth = depth.checked_sub(1).ok_or("`values` has too many dimensions")?;
    let list: Vec<&RawValue> = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let mut inner: Option<Vec<u64>> = None;
    for part in &list {
        let shape = collect(part, element, depth, bytes)?;
        if *inner.get_or_insert_with(|| shape.clone()) != shape {
            return Err("`values` holds lists of different lengths".into());
        }
    }
    let mut shape = vec![u64::try_from(list.len()).unwrap_or(u64::MAX)];
    shape.extend(inner.unwrap_or_default());
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, ty: &str) -> Result<(Vec<u8>, Vec<u64>), String> {
        numbers(&serde_json::from_str::<Box<RawValue>>(text).unwrap(), Element::named(ty).unwrap())
    }

    #[test]
    fn values_have_shapes() {
        assert_eq!(read("[1, -2]", "s8"), Ok((vec![1, 0xfe], vec![2])));
        assert_eq!(read("[[1, 2], [3, 4], [5, 6]]", "u8"), Ok((vec![1, 2, 3, 4, 5, 6], vec![3, 2])));
        assert_eq!(read("[]", "f32"), Ok((vec![], vec![0])));
        assert_eq!(read("[true, false]", "bool"), Ok((vec![1, 0], vec![2])));
        assert_eq!(read("[\"0xff\", \"-1\"]", "u16"), Ok((vec![0xff, 0, 0xff, 0xff], vec![2])));
        assert_eq!(read("[\"inf\", 0.1]", "f32").unwrap().0[4..], 0.1_f32.to_le_bytes());
        // 1 + 2^-24 + 2^-60 lies above the middle of two floats of 32 bits, and is that middle as one of 64 bits.
        let middle = "1.0000000596046447761640625000867361737988403547205962240695953369140625";
        assert_eq!(read(&format!("[{middle}]"), "f32").unwrap().0, 1.000_000_1_f32.to_le_bytes());
    }

    #[test]
    fn wrong_values_get_a_sentence() {
        for (text, ty, sentence) in [
            ("5", "u8", "no list"),
            ("[[1], [1, 2]]", "u8", "different lengths"),
            ("[[1], 2]", "u8", "different lengths"),
            ("[null]", "u8", "expected numbers"),
            ("[{\"a\": 1}]", "u8", "expected numbers"),
            ("[256]", "u8", "is no .u8"),
            ("[1.5]", "s32", "is no .s32"),
        ] {
            assert!(read(text, ty).unwrap_err().contains(sentence), "{text}");
        }
        assert!(read(&format!("{}1{}", "[".repeat(40), "]".repeat(40)), "u8").unwrap_err().contains("dimensions"));
    }
}
