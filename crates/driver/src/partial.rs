//! Programs of which some kernels are refused.
//!
//! A program registers its kernels before it knows which of them it will launch. So a library is loaded without those that use something unsupported:
//! they are blanked out of the texts, together with what calls them, and whoever asks for one of them is told why it is not there.

use std::collections::BTreeMap;

use handloom_diag::{Diagnostic, FileId, Kind, Severity};
use handloom_syntax::ast::{Function, Item};

use crate::image::Text;

/// Kernels that are left out, and why.
pub type Without = BTreeMap<String, String>;

/// A function in a text.
struct Place {
    name: String,
    is_entry: bool,
    /// First byte, and one past the last one.
    bytes: (usize, usize),
}

fn start(item: &Item<'_>) -> usize {
    let span = match item {
        Item::Version { span, .. }
        | Item::Target { span, .. }
        | Item::AddressSize { span, .. }
        | Item::File { span, .. }
        | Item::Section { span, .. }
        | Item::Alias { span, .. } => *span,
        Item::Pragma(p) => p.span,
        Item::Vars(v) => v.span,
        Item::Function(f) => return first_byte(f),
    };
    span.start as usize
}

fn first_byte(f: &Function<'_>) -> usize {
    let linkage = f.linkage.map_or(u32::MAX, |(_, span)| span.start);
    linkage.min(f.span.start) as usize
}

/// The functions that a text defines, with the text up to the next item.
fn functions(text: &Text, file: FileId) -> Vec<Place> {
    let parse = handloom_syntax::parse(&text.ptx, file);
    let items = &parse.module.items;
    let ends = items.iter().skip(1).map(start).chain([text.ptx.len()]);
    items
        .iter()
        .zip(ends)
        .filter_map(|(item, end)| match item {
            Item::Function(f) if f.body.is_some() => {
                Some(Place { name: f.name.text.to_owned(), is_entry: f.is_entry, bytes: (first_byte(f), end) })
            }
            _ => None,
        })
        .collect()
}

/// Whether a text has a name as a word.
fn mentions(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    text.match_indices(name).any(|(at, _)| {
        let after = text[at + name.len()..].chars().next();
        let before = text[..at].chars().next_back();
        !after.is_some_and(is_word) && !before.is_some_and(is_word)
    })
}

/// Blanks out the functions that errors lie in, and all that call them. `None` if that cannot mend it: an error is no lack of ours, or lies elsewhere.
///
/// `why` renders what is wrong for the users of a kernel. The kernels that were blanked out are added to `without`.
pub fn leave_out(
    texts: &mut [Text],
    files: &[FileId],
    errors: &[Diagnostic],
    why: impl Fn(&Diagnostic) -> String,
    without: &mut Without,
) -> Option<()> {
    let all: Vec<Vec<Place>> = texts.iter().zip(files).map(|(text, file)| functions(text, *file)).collect();
    // By text and place: why it goes.
    let mut gone: BTreeMap<(usize, usize), String> = BTreeMap::new();
    for error in errors.iter().filter(|d| d.severity == Severity::Error) {
        if error.kind != Kind::Unsupported {
            return None;
        }
        let text = files.iter().position(|f| *f == error.span().file)?;
        let at = error.span().start as usize;
        let place = all[text].iter().position(|p| (p.bytes.0..p.bytes.1).contains(&at))?;
        gone.entry((text, place)).or_insert_with(|| why(error));
    }
    if gone.is_empty() {
        return None;
    }
    // Who calls, or takes the address of, a function that goes, goes too; a function that is not an entry may be called from any text.
    loop {
        let called: Vec<(&str, String)> = gone
            .iter()
            .map(|((text, place), why)| (&all[*text][*place], why))
            .filter(|(p, _)| !p.is_entry)
            .map(|(p, why)| (p.name.as_str(), why.clone()))
            .collect();
        let mut more = Vec::new();
        for (t, places) in all.iter().enumerate() {
            for (p, place) in places.iter().enumerate().filter(|(p, _)| !gone.contains_key(&(t, *p))) {
                let body = &texts[t].ptx[place.bytes.0..place.bytes.1];
                if let Some((_, why)) = called.iter().find(|(name, _)| mentions(body, name)) {
                    more.push(((t, p), why.clone()));
                }
            }
        }
        if more.is_empty() {
            break;
        }
        gone.extend(more);
    }
    for ((t, p), why) in gone {
        let place = &all[t][p];
        // Lines stay where they were: reports name them.
        let blank = |b: u8| if b == b'\n' { '\n' } else { ' ' };
        let blanks: String = texts[t].ptx[place.bytes.0..place.bytes.1].bytes().map(blank).collect();
        texts[t].ptx.replace_range(place.bytes.0..place.bytes.1, &blanks);
        if place.is_entry {
            without.insert(place.name.clone(), why);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use crate::image::{Text, check, check_kernels};

    fn of(version: &str, target: &str, body: &str) -> Vec<Text> {
        let ptx = format!(".version {version}\n.target {target}\n.address_size 64\n{body}");
        vec![Text { name: "t.ptx".into(), ptx }]
    }

    #[test]
    fn a_kernel_that_is_refused_takes_no_other_with_it() {
        let lacks = "{ .param .b32 r; call (r), cudaDeviceSynchronize; }";
        let texts = of(
            "8.6",
            "sm_80",
            &format!(
                ".extern .func (.param .b32 r) cudaDeviceSynchronize(); .func f() {{ {lacks} ret; }}\n.func g() {{ call f; ret; }}\n\
             .visible .entry own() {{ {lacks} ret; }}\n.visible .entry calls() {{ call g; ret; }}\n.visible .entry good() {{ ret; }}\n"
            ),
        );
        assert!(check(&texts).is_err());
        let loaded = check_kernels(&texts).unwrap();
        assert_eq!(loaded.ir.entries.keys().collect::<Vec<_>>(), ["good"]);
        assert_eq!(loaded.without.keys().collect::<Vec<_>>(), ["calls", "own"]);
        assert!(loaded.without["calls"].contains("cudaDeviceSynchronize"), "{}", loaded.without["calls"]);
        assert!(loaded.without["own"].contains("t.ptx:6"), "{}", loaded.without["own"]);
    }

    #[test]
    fn wrong_text_is_refused_whole() {
        let texts =
            of("8.6", "sm_100a", ".visible .entry bad() { mov.b32 a, 1; ret; }\n.visible .entry good() { ret; }\n");
        assert!(check_kernels(&texts).is_err());
    }
}
