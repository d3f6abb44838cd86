//! A file as modules: PTX as it is, or the PTX that is taken out of what was given.
//!
//! Everywhere a PTX file is named, `FILE#3` and `FILE#sm_90` name a member of a file that holds several.

use std::path::Path;

use handloom_diag::SourceMap;
use handloom_images::{Arch, Image, Part, Want, What, open, parts};
use handloom_syntax::ast::Item;
use serde::Serialize;

use crate::input::{self, Text};
use crate::names::{self, Found};
use crate::report::{Failure, Format, Out};

/// The capability that PTX is chosen for where a file holds it for several targets: code for older devices uses fewer of the
/// instructions that do not run here.
pub const CAPABILITY: u32 = 89;

/// Why a file is no module: the sentence and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// `this is a cubin without PTX`.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// A text that a file comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// What diagnostics call it: the file, and the member where there are several.
    pub name: String,
    bytes: Vec<u8>,
    /// What was taken.
    note: Option<String>,
    refused: Option<Refused>,
    /// It is linked with the other texts of its file.
    relocatable: bool,
    /// Number of the member, if it is one.
    member: Option<usize>,
}

impl Input {
    /// Number of the member that it was taken from.
    pub fn member(&self) -> Option<usize> {
        self.member
    }

    /// The same without a note.
    pub fn silent(self) -> Input {
        Input { note: None, ..self }
    }

    fn refused(name: &str, message: String, help: &str) -> Input {
        let refused = Some(Refused { message, help: help.to_owned() });
        Input { name: name.to_owned(), bytes: Vec::new(), note: None, refused, relocatable: false, member: None }
    }

    /// Puts it into the map, and says what was taken.
    pub fn add(self, sources: &mut SourceMap, out: &mut Out) -> Text {
        #[derive(Serialize)]
        struct Note<'a> {
            file: &'a str,
            severity: &'static str,
            kind: &'static str,
            message: &'a str,
        }
        if let Some(message) = &self.note {
            match out.format {
                Format::Human => out.say(&format!("note: {message}")),
                Format::Json => out.json(&Note { file: &self.name, severity: "note", kind: "program", message }),
            }
        }
        let mut text = input::add(sources, &self.name, self.bytes);
        text.refused = self.refused;
        text
    }

    /// Names of the entries, as far as the text can be read.
    fn entries(&self) -> Vec<String> {
        let mut sources = SourceMap::new();
        let text = input::add(&mut sources, &self.name, self.bytes.clone());
        let parsed = handloom_syntax::parse(sources.text(text.file), text.file);
        let entries = parsed.module.items.iter().filter_map(|item| match item {
            Item::Function(f) if f.is_entry => Some(f.name.text.to_owned()),
            _ => None,
        });
        entries.collect()
    }
}

/// A file name, and the member that it asks for. A file of that very name comes first.
pub fn split(path: &str) -> (&str, Option<&str>) {
    match path.rsplit_once('#') {
        Some((file, member)) if !file.is_empty() && !Path::new(path).exists() => (file, Some(member)),
        _ => (path, None),
    }
}

/// What a member is asked for by.
pub fn want(member: Option<&str>) -> Result<Want, Failure> {
    let Some(member) = member else { return Ok(Want::Capability(CAPABILITY)) };
    if let Ok(number) = member.parse() {
        return Ok(Want::Member(number));
    }
    let arch: Result<Arch, ()> = member.parse();
    arch.map(Want::Target).map_err(|()| {
        Failure::usage(format!("`#{member}`: expected the number of a member or a target, as `#2` or `#sm_80`"))
    })
}

/// Reads a file and takes its modules out, all that make up the file: one, or one for each translation unit of a program.
/// `path` is where it lies, `name` what it is called.
///
/// # Errors
/// The file cannot be read, or has no such member.
pub fn read(path: &str, name: &str) -> Result<Vec<Input>, Failure> {
    let (file, member) = split(path);
    want(member)?;
    take(input::read(file)?, name, member)
}

/// The same from bytes that were read.
///
/// # Errors
/// The file has no such member.
pub fn take(bytes: Vec<u8>, name: &str, member: Option<&str>) -> Result<Vec<Input>, Failure> {
    let want = want(member)?;
    let short = split_as(name, member);
    let image = match open(&bytes) {
        Ok(image) => image,
        Err(fault) => return Ok(vec![Input::refused(name, format!("this {fault}"), "build the file again")]),
    };
    if image.what == What::Ptx && member.is_none() {
        return Ok(vec![Input {
            name: name.to_owned(),
            bytes,
            note: None,
            refused: None,
            relocatable: false,
            member: None,
        }]);
    }
    let found = match parts(&image, want) {
        Ok(found) => found,
        Err(fault @ handloom_images::Fault::NoMember { .. }) => {
            return Err(Failure::usage(format!("`{short}` {fault}")));
        }
        Err(fault) => return Ok(vec![Input::refused(name, format!("this file {fault}"), "build the file again")]),
    };
    if found.parts.is_empty() {
        let (message, help) = match image.what {
            What::Foreign(f) => (format!("this is {}, not PTX", f.what), f.advice),
            _ if found.device_runtime => ("this is the CUDA device runtime".to_owned(), DEVICE_RUNTIME),
            what if image.members.iter().any(|m| m.kind == handloom_images::MemberKind::LtoIr) => {
                (format!("this is {} with intermediate code of `-dlto` and no PTX", what.words()), what.advice())
            }
            what if image.members.is_empty() => {
                (format!("this is {} without code for a GPU", what.words()), what.advice())
            }
            what => (format!("this is {} without PTX", what.words()), what.advice()),
        };
        return Ok(vec![Input::refused(name, message, help)]);
    }
    let several = found.parts.len() > 1;
    let inputs = found.parts.into_iter().map(|part| {
        let called = if several { format!("{short}#{}", part.member) } else { name.to_owned() };
        let note = (image.what != What::Ptx).then(|| note(short, &called, &image, &part, member.is_some()));
        let (relocatable, member) = (part.relocatable, Some(part.member));
        Input { name: called, bytes: part.ptx.into_bytes(), note, refused: None, relocatable, member }
    });
    Ok(inputs.collect())
}

const DEVICE_RUNTIME: &str =
    "leave it out: device-side launches are not supported, and what else of it is comes with Handloom";

fn split_as<'n>(name: &'n str, member: Option<&str>) -> &'n str {
    member.map_or(name, |m| name.strip_suffix(m).and_then(|n| n.strip_suffix('#')).unwrap_or(name))
}

/// What was taken, and how to take another.
fn note(file: &str, called: &str, image: &Image<'_>, part: &Part, is_asked_for: bool) -> String {
    let target = part.arch.map_or(String::new(), |a| format!(" for {a}"));
    let place = image.members.get(part.member.wrapping_sub(1)).map(|m| &m.place);
    let mut from = vec![format!("member {}", part.member)];
    from.extend(place.and_then(|p| p.file.clone()).map(|f| format!("file `{f}`")));
    let section = part.section.clone().or_else(|| place.and_then(|p| p.section.clone()));
    from.extend(section.map(|s| format!("section `{s}`")));
    let kind = image.what.words();
    let mut text = format!("`{called}` is PTX{target} from {kind}: {}", from.join(", "));
    if !part.others.is_empty() && !is_asked_for {
        let others: Vec<String> = part.others.iter().map(Arch::to_string).collect();
        let example = &others[0];
        text.push_str(&format!("; there is also PTX for {}, as `{file}#{example}`", others.join(", ")));
    }
    text
}

/// The texts of a file that are one module: what is to be linked is one group, everything else a group of its own.
pub fn groups(inputs: Vec<Input>) -> Vec<Vec<Input>> {
    let (linked, alone): (Vec<Input>, Vec<Input>) = inputs.into_iter().partition(|i| i.relocatable);
    let mut groups: Vec<Vec<Input>> = alone.into_iter().map(|i| vec![i]).collect();
    if !linked.is_empty() {
        groups.insert(0, linked);
    }
    groups
}

/// Which group has an entry; with `None` the only one that has any. Of a single group it is not asked.
///
/// # Errors
/// None or several have it.
pub fn group_with(groups: &[Vec<Input>], wanted: Option<&str>) -> Result<usize, Failure> {
    if groups.len() < 2 {
        return Ok(0);
    }
    let names: Vec<Vec<String>> = groups.iter().map(|g| g.iter().flat_map(Input::entries).collect()).collect();
    let has = |names: &Vec<String>, w: &str| find(names, w) != Found::None;
    let is_exact = |names: &Vec<String>, w: &str| names.iter().any(|n| n == w);
    let fits = |i: &usize, exactly: bool| match wanted {
        Some(w) if exactly => is_exact(&names[*i], w),
        Some(w) => has(&names[*i], w),
        None => !names[*i].is_empty(),
    };
    let mut fitting: Vec<usize> = (0..groups.len()).filter(|i| fits(i, true)).collect();
    if fitting.is_empty() {
        fitting = (0..groups.len()).filter(|i| fits(i, false)).collect();
    }
    let entries = || {
        let all = groups.iter().zip(&names).map(|(g, n)| {
            let list = names::list(n.iter().map(String::as_str));
            format!("{} in `{}`", if n.is_empty() { "nothing".to_owned() } else { list }, g[0].name)
        });
        all.collect::<Vec<_>>().join("; ")
    };
    match (fitting[..].len(), wanted) {
        (1, _) => Ok(fitting[0]),
        (0, Some(w)) => Err(Failure::usage(format!("no entry `{w}`: there is {}", entries()))),
        (0, None) => Err(Failure::usage("no entry in any module of the file")),
        (_, Some(w)) => Err(Failure::usage(format!("which entry: `{w}` may be {}", entries()))),
        (_, None) => Err(Failure::usage(format!("which entry: there is {}", entries()))),
    }
}

fn find<'a>(names: &'a [String], wanted: &str) -> Found<'a> {
    names::find(names.iter().map(String::as_str), wanted)
}
