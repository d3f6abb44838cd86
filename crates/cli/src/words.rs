//! Arguments of kernels as they are typed.

use std::path::{Path, PathBuf};

use crate::buffers::{Made, Source};
use crate::elements::Element;
use crate::layout::{Field, Item, Place, Struct};
use crate::npy::is_npy;
use crate::outputs::Store;
use crate::scalar;

/// One argument, as typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Word {
    /// A scalar of the parameter's type.
    Scalar(String),
    /// The address of the buffer of this number.
    Buffer(usize),
    /// Bytes of a parameter of any type.
    Item(Item),
}

/// A variable of the module, as typed before `=`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The first byte that is filled, if a part is meant.
    pub offset: Option<u64>,
}

/// All that was typed, with the buffers behind it.
#[derive(Default, Debug)]
pub struct Words {
    /// Arguments in order.
    pub args: Vec<Word>,
    /// What variables are filled with.
    pub globals: Vec<(Variable, Made)>,
    /// Files that variables are written to.
    pub global_outputs: Vec<(String, Store)>,
    /// Buffers by number.
    pub buffers: Vec<Made>,
}

const FORMS: &str = "bytes: in: out: inout: zero: struct: addresses: global: TYPE: or null";

/// A number of bytes.
fn byte_count(text: &str, form: &str) -> Result<u64, String> {
    let n = match text.strip_prefix("0x") {
        Some(hex) if hex.starts_with(|c: char| c.is_ascii_hexdigit()) => u64::from_str_radix(hex, 16),
        _ => text.parse(),
    };
    n.map_err(|_| format!("`{text}` is no number of bytes: expected {form}"))
}

/// Numbers of a type, as `1:2:3`.
fn numbers(element: &'static Element, text: &str) -> Result<Item, String> {
    let mut bytes = Vec::new();
    text.split(':').try_for_each(|n| element.parse(n, &mut bytes))?;
    Ok(Item::Bytes { bytes, align: element.align() })
}

/// The parts of a list: commas within brackets do not count. A list may stand in brackets itself.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    let inner = if is_bracketed(text) { &text[1..text.len() - 1] } else { text };
    let (mut depth, mut from, mut out) = (0_u32, 0, Vec::new());
    let unbalanced = || format!("`{text}`: a bracket without its other one");
    for (i, c) in inner.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.checked_sub(1).ok_or_else(unbalanced)?,
            ',' if depth == 0 => {
                out.push(&inner[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    out.push(&inner[from..]);
    if depth == 0 { Ok(out) } else { Err(unbalanced()) }
}

/// Whether the first bracket is closed by the last one.
fn is_bracketed(text: &str) -> bool {
    let mut depth = 0_i32;
    let mut closed = text.char_indices().filter_map(|(i, c)| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        (depth == 0).then_some(i)
    });
    text.starts_with('[') && closed.next() == Some(text.len() - 1)
}

/// How deep lists may stand in lists.
const MAX_DEPTH: u32 = 16;

impl Words {
    /// Adds an argument.
    ///
    /// # Errors
    /// What was expected.
    pub fn arg(&mut self, text: &str) -> Result<(), String> {
        let word = match text.split_once(':') {
            None if text == "null" => Word::Item(Item::Address(None)),
            None => Word::Scalar(text.to_owned()),
            Some(("in" | "out" | "inout" | "zero" | "addresses", _)) => Word::Buffer(self.buffer(text, 0)?),
            Some(_) => Word::Item(self.item(text, 0)?),
        };
        self.args.push(word);
        Ok(())
    }

    /// Adds what a variable is filled with: `NAME=CONTENT` or `NAME+OFFSET=CONTENT`.
    ///
    /// # Errors
    /// What was expected.
    pub fn global(&mut self, text: &str) -> Result<(), String> {
        let forms = "NAME=in:PATH, NAME=TYPE:VALUE, or bytes: zero: struct: addresses: behind the `=`";
        let (name, content) = text.split_once('=').ok_or_else(|| format!("`{text}`: expected {forms}"))?;
        let variable = match name.rsplit_once('+') {
            None => Variable { name: name.to_owned(), offset: None },
            Some((name, offset)) => {
                let offset = byte_count(offset, "NAME+OFFSET=CONTENT")?;
                Variable { name: name.to_owned(), offset: Some(offset) }
            }
        };
        let from = match content.split_once(':') {
            Some(("in" | "zero", _)) => self.source(content)?.0,
            Some(("addresses", list)) => Source::Item(Item::Struct(self.addresses(list, 0)?)),
            Some(("out" | "inout", _)) => {
                return Err(format!("`{text}`: expected {forms}; `--global-out NAME=PATH` writes it to a file"));
            }
            Some(_) => Source::Item(self.item(content, 0)?),
            None => return Err(format!("`{text}`: expected {forms}")),
        };
        self.globals.push((variable, Made { from, to: None, origin: content.to_owned(), name: String::new() }));
        Ok(())
    }

    /// Adds a file that a variable is written to: `NAME=PATH`.
    ///
    /// # Errors
    /// What was expected.
    pub fn global_output(&mut self, text: &str) -> Result<(), String> {
        let forms = "NAME=PATH or NAME=PATH.npy:TYPE:SHAPE";
        let (name, path) = text.split_once('=').ok_or_else(|| format!("`{text}`: expected {forms}"))?;
        if path.is_empty() {
            return Err(format!("`{text}` names no file: expected {forms}"));
        }
        self.global_outputs.push((name.to_owned(), Store::parse(path)?));
        Ok(())
    }

    /// All files that are written.
    pub fn stores(&self) -> impl Iterator<Item = &Store> {
        let of_buffers = self.buffers.iter().filter_map(|b| b.to.as_ref());
        of_buffers.chain(self.global_outputs.iter().map(|(_, store)| store))
    }

    /// A value that is no buffer of its own: numbers, an address, a structure.
    fn item(&mut self, text: &str, depth: u32) -> Result<Item, String> {
        if depth > MAX_DEPTH {
            return Err("lists in lists in lists: expected fewer".into());
        }
        let Some((form, rest)) = text.split_once(':') else {
            return match text {
                "null" => Ok(Item::Address(None)),
                _ => Err(format!("`{text}`: a number here needs its type, as s32:{text}")),
            };
        };
        match form {
            "bytes" => scalar::hex(rest).map(|bytes| Item::Bytes { bytes, align: 1 }),
            "struct" => {
                let fields: Result<Vec<Field>, String> =
                    parts(rest)?.into_iter().map(|part| self.field(part, depth + 1)).collect();
                Ok(Item::Struct(Struct { fields: fields?, size: None }))
            }
            "global" if !rest.is_empty() => Ok(Item::Address(Some(Place::Global { name: rest.to_owned(), offset: 0 }))),
            "in" | "out" | "inout" | "zero" | "addresses" => {
                let index = self.buffer(text, depth)?;
                Ok(Item::Address(Some(Place::Buffer { index, offset: 0 })))
            }
            ty => match Element::named(ty) {
                Ok(element) => numbers(element, rest),
                Err(_) => Err(format!("`{text}`: expected a scalar, or {FORMS}")),
            },
        }
    }

    /// A part of a structure: a value, `@OFFSET:` before it, or a structure in brackets.
    fn field(&mut self, text: &str, depth: u32) -> Result<Field, String> {
        if let Some(rest) = text.strip_prefix('@') {
            let (at, value) = rest.split_once(':').ok_or_else(|| format!("`{text}`: expected @OFFSET:VALUE"))?;
            let at = byte_count(at, "@OFFSET:VALUE")?;
            return Ok(Field { at: Some(at), ..self.field(value, depth + 1)? });
        }
        if text.starts_with('[') {
            return Ok(self.item(&format!("struct:{text}"), depth)?.into());
        }
        Ok(self.item(text, depth)?.into())
    }

    /// A list of addresses.
    fn addresses(&mut self, list: &str, depth: u32) -> Result<Struct, String> {
        let mut fields = Vec::new();
        for part in parts(list)? {
            match self.item(part, depth + 1)? {
                Item::Address(to) => fields.push(Item::Address(to).into()),
                Item::Bytes { .. } | Item::Struct(_) => {
                    return Err(format!(
                        "`{part}` is no address: expected in: out: inout: zero: addresses: global: or null"
                    ));
                }
            }
        }
        Ok(Struct { fields, size: None })
    }

    /// A buffer. Gives its number.
    fn buffer(&mut self, text: &str, depth: u32) -> Result<usize, String> {
        let made = match text.split_once(':') {
            Some(("addresses", list)) => {
                let from = Source::Item(Item::Struct(self.addresses(list, depth)?));
                Made { from, to: None, origin: text.to_owned(), name: String::new() }
            }
            _ => {
                let (from, to) = self.source(text)?;
                let name = match (&from, &to) {
                    (Source::File { path, .. }, _) => file_name(path),
                    (_, Some(Store { path: Some(path), .. })) => file_name(path),
                    _ => String::new(),
                };
                Made { from, to, origin: text.to_owned(), name }
            }
        };
        self.buffers.push(made);
        Ok(self.buffers.len() - 1)
    }

    /// What a buffer holds before the launch, and where it goes after it.
    fn source(&mut self, text: &str) -> Result<(Source, Option<Store>), String> {
        let path = |p: &str| if p.is_empty() { Err(format!("`{text}` names no file")) } else { Ok(PathBuf::from(p)) };
        let file = |path| Source::File { path, element: None };
        match text.split_once(':') {
            Some(("zero", n)) => Ok((Source::Zero(byte_count(n, "zero:BYTES")?), None)),
            Some(("in", p)) => Ok((file(path(p)?), None)),
            Some(("out", rest)) => {
                let store = Store::parse(rest)?;
                if let Some(array) = &store.array {
                    return Ok((Source::Zero(array.bytes().unwrap_or(u64::MAX)), Some(store)));
                }
                let forms = "out:PATH:BYTES or out:PATH.npy:TYPE:SHAPE";
                let (to, bytes) = rest.rsplit_once(':').ok_or_else(|| format!("`{text}`: expected {forms}"))?;
                if is_npy(Path::new(to)) || is_npy(Path::new(rest)) {
                    return Err(format!("`{text}`: expected {forms}, as out:y.npy:f32:64x64"));
                }
                path(to)?;
                if let Some((stem, ty)) = to.rsplit_once(':').filter(|(_, word)| Element::named(word).is_ok()) {
                    let array = format!("out:{}:{ty}:{bytes}", Path::new(stem).with_extension("npy").display());
                    return Err(format!(
                        "`{text}`: a type goes with a .npy, as `{array}`; other files have bytes, as `out:{stem}:BYTES`"
                    ));
                }
                Ok((Source::Zero(byte_count(bytes, forms)?), Some(Store::to(to))))
            }
            Some(("inout", rest)) => {
                let (from, to) =
                    rest.rsplit_once(':').ok_or_else(|| format!("`{text}`: expected inout:PATH:OUTPATH"))?;
                let (from, out) = (path(from)?, path(to)?);
                if is_npy(&out) && !is_npy(&from) {
                    return Err(format!("`{text}`: a .npy has a type and a shape, which only another .npy brings"));
                }
                Ok((file(from), Some(Store::to(to))))
            }
            _ => Err(format!("`{text}`: expected in: out: inout: or zero:")),
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Words, String> {
        let mut words = Words::default();
        words.arg(text)?;
        Ok(words)
    }

    fn buffer(text: &str) -> (Source, Option<Store>) {
        let w = words(text).unwrap();
        assert_eq!(w.args, [Word::Buffer(0)]);
        (w.buffers[0].from.clone(), w.buffers[0].to.clone())
    }

    fn file(path: &str) -> Source {
        Source::File { path: path.into(), element: None }
    }

    fn item(text: &str) -> Item {
        match &words(text).unwrap().args[0] {
            Word::Item(item) => item.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_forms_are_read() {
        assert_eq!(words("-3").unwrap().args, [Word::Scalar("-3".into())]);
        assert_eq!(item("bytes:00ff"), Item::Bytes { bytes: vec![0, 255], align: 1 });
        assert_eq!(item("s16:1:-1"), Item::Bytes { bytes: vec![1, 0, 255, 255], align: 2 });
        assert_eq!(item("null"), Item::Address(None));
        assert_eq!(buffer("zero:0x10"), (Source::Zero(16), None));
        assert_eq!(buffer("in:a:b.bin"), (file("a:b.bin"), None));
        let (from, store) = buffer("out:a:b.bin:8");
        assert_eq!((from, store.unwrap().path), (Source::Zero(8), Some("a:b.bin".into())));
        let (from, store) = buffer("out:y.npy:f32:4x8");
        assert_eq!((from, store.unwrap().array.unwrap().shape), (Source::Zero(128), vec![4, 8]));
        let (from, store) = buffer("inout:x.npy:y.npy");
        assert_eq!((from, store.unwrap().path), (file("x.npy"), Some("y.npy".into())));
        let (from, store) = buffer("out:-:8");
        assert_eq!((from, store.unwrap()), (Source::Zero(8), Store { path: None, array: None }));
        let (_, store) = buffer("out:-:f32:4");
        assert!(store.is_some_and(|s| s.path.is_none() && s.array.is_some()));
    }

    #[test]
    fn structures_are_lists() {
        let w = words("struct:in:x.npy,s32:5,[f64:1,u8:2],@40:out:y.bin:8,null").unwrap();
        assert_eq!(w.buffers.len(), 2);
        let Word::Item(item) = &w.args[0] else { panic!() };
        let image = item.lay_out(8).unwrap();
        assert_eq!(image.describe(), "56 bytes, with fields of 8 bytes at 0, 4 at 8, 16 at 16, 8 at 40, 8 at 48");
        let bracketed = words("struct:[in:x.npy,s32:5]").unwrap();
        assert_eq!(bracketed.args, words("struct:in:x.npy,s32:5").unwrap().args);
        assert_eq!(words("struct:[s32:1,s32:2],[s32:3]").unwrap().args.len(), 1);
        let w = words("addresses:in:x,null,addresses:[in:y,zero:4],in:z").unwrap();
        // The inner ones come first.
        assert_eq!((w.args, w.buffers.len()), (vec![Word::Buffer(5)], 6));
        assert!(matches!(&w.buffers[5].from, Source::Item(Item::Struct(s)) if s.fields.len() == 4));
    }

    #[test]
    fn variables_are_named() {
        let mut w = Words::default();
        w.global("table=f32:1:2").unwrap();
        w.global("_ZN2ns5tableE+8=in:x.bin").unwrap();
        w.global("pointers=addresses:in:x,in:y").unwrap();
        assert_eq!(w.globals[0].0, Variable { name: "table".into(), offset: None });
        assert_eq!(w.globals[1].0, Variable { name: "_ZN2ns5tableE".into(), offset: Some(8) });
        assert_eq!(w.buffers.len(), 2);
        w.global_output("table=t.npy:f32:2").unwrap();
        assert_eq!(w.stores().count(), 1);
        for wrong in ["table", "table=5", "table=out:x:4", "t+x=f32:1", "table=file:x"] {
            assert!(w.global(wrong).is_err(), "{wrong}");
        }
        assert!(w.global_output("table").is_err() && w.global_output("table=").is_err());
    }

    #[test]
    fn wrong_forms_get_a_sentence() {
        for text in
            ["zero:", "zero:-1", "out:a.bin", "out:y.npy", "out:y.npy:16", "out:y.npy:f31:4", "out:y.npy:f32:4y4"]
        {
            assert!(words(text).is_err(), "{text}");
        }
        for text in
            ["inout:a.bin", "inout:a.bin:y.npy", "in:", "bytes:1", "file:x", "out::8", "f32:", "f32:1:x", "global:"]
        {
            assert!(words(text).is_err(), "{text}");
        }
        for text in ["struct:5", "struct:[s32:1", "struct:s32:1]", "struct:@x:s32:1", "struct:", "addresses:s32:1"] {
            assert!(words(text).is_err(), "{text}");
        }
        assert!(words(&format!("struct:{}s32:1{}", "[".repeat(99), "]".repeat(99))).is_err());
        assert!(words("struct:5").unwrap_err().contains("needs its type, as s32:5"));
        assert!(words("out:y.npy:f31:4").unwrap_err().contains("f16, f32"));
        assert!(
            words("out:y.bin:s32:4")
                .unwrap_err()
                .contains("as `out:y.npy:s32:4`; other files have bytes, as `out:y.bin:BYTES`")
        );
    }
}
