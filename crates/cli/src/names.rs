//! Entries by the names that people know them by: as in the source, without types, or by a part.

use std::fmt::Write;

use handloom_diag::names::readable;
use handloom_runtime::{Function, Module};

use crate::report::Failure;

/// Which entry a name means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found<'a> {
    /// This one.
    One(&'a str),
    /// No entry has the name.
    None,
    /// Any of these.
    Many(Vec<&'a str>),
}

/// Most entries that a message lists.
const MAX_LISTED: usize = 20;

/// Finds an entry: by its name as it is; by its readable name; by that without the type of its result, without its parameters,
/// without the arguments of its template, without the namespaces in front; last, by a part of a name. The first way that finds
/// anything decides.
pub fn find<'a>(entries: impl IntoIterator<Item = &'a str>, wanted: &str) -> Found<'a> {
    let entries: Vec<&str> = entries.into_iter().collect();
    if let Some(name) = entries.iter().find(|name| **name == wanted) {
        return Found::One(name);
    }
    let wanted_key = key(wanted);
    if wanted_key.is_empty() {
        return Found::None;
    }
    let ways: Vec<(&str, Vec<String>)> = entries.iter().map(|name| (*name, ways(name))).collect();
    let n_ways = ways.iter().map(|(_, w)| w.len()).max().unwrap_or(0);
    let by = |fits: &dyn Fn(&[String]) -> bool| -> Vec<&'a str> {
        ways.iter().filter(|(_, w)| fits(w)).map(|(name, _)| *name).collect()
    };
    let is_behind = |w: &String| w.strip_suffix(wanted_key.as_str()).is_some_and(|head| head.ends_with("::"));
    for way in 0..n_ways {
        let found = by(&|w| w.get(way) == Some(&wanted_key));
        if !found.is_empty() {
            return one_of(found);
        }
    }
    for way in 0..n_ways {
        let found = by(&|w| w.get(way).is_some_and(is_behind));
        if !found.is_empty() {
            return one_of(found);
        }
    }
    let is_part = |name: &str, w: &[String]| name.contains(wanted) || w.iter().any(|w| w.contains(&wanted_key));
    one_of(ways.iter().filter(|(name, w)| is_part(name, w)).map(|(name, _)| *name).collect())
}

fn one_of(found: Vec<&str>) -> Found<'_> {
    match found[..] {
        [] => Found::None,
        [one] => Found::One(one),
        [..] => Found::Many(found),
    }
}

/// The ways to write a readable name, the longest first, without blanks.
fn ways(name: &str) -> Vec<String> {
    let Some(full) = readable(name) else { return Vec::new() };
    let parts = Parts::of(&full);
    let (path, base) = (parts.path(), parts.base());
    let typed = format!("{path}{}", parts.parameters);
    // Of an entry that is no template, the last two are the same.
    [full.as_str(), typed.as_str(), path.as_str(), base.as_str()].map(key).to_vec()
}

/// A readable name: `void ns::scale<float>(float*)`.
struct Parts<'a> {
    /// `ns::scale<float>`, with tags.
    path: &'a str,
    /// `(float*)`.
    parameters: &'a str,
}

impl Parts<'_> {
    fn of(full: &str) -> Parts<'_> {
        let (mut depth, mut begin, mut open) = (0_usize, 0, full.len());
        for (at, c) in full.char_indices() {
            match c {
                '(' if depth == 0 && at > begin && !full[begin..].starts_with("(anonymous") => {
                    open = at;
                    break;
                }
                '(' | '<' | '[' | '{' => depth += 1,
                ')' | '>' | ']' | '}' => depth = depth.saturating_sub(1),
                ' ' if depth == 0 => begin = at + 1,
                _ => {}
            }
        }
        Parts { path: &full[begin..open], parameters: &full[open..] }
    }

    /// The path without tags, as `axpy[abi:v8]` has them.
    fn path(&self) -> String {
        without(self.path, '[', ']')
    }

    /// The path without arguments of templates.
    fn base(&self) -> String {
        without(&self.path(), '<', '>')
    }
}

/// A text without what stands between brackets.
fn without(text: &str, open: char, close: char) -> String {
    let (mut depth, mut out) = (0_usize, String::new());
    for c in text.chars() {
        match c {
            c if c == open => depth += 1,
            c if c == close => depth = depth.saturating_sub(1),
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

/// Casts that stand before numbers, and that people leave out.
const CASTS: &[&str] =
    &["(unsignedint)", "(unsignedlong)", "(long)", "(char)", "(unsignedchar)", "(short)", "(unsignedshort)"];

/// A name for comparison: without blanks, and with numbers as numbers only.
fn key(name: &str) -> String {
    let mut name: String = name.split_whitespace().collect();
    for cast in CASTS {
        for (digit, with) in [("<", "<"), (",", ",")].map(|(d, w)| (format!("{d}{cast}"), w)) {
            name = name.replace(&digit, with);
        }
    }
    // `3u`, `8ul`: letters behind a number that begins an argument.
    let (mut out, mut in_number, mut before) = (String::new(), false, ' ');
    for c in name.chars() {
        in_number = c.is_ascii_digit() && (in_number || matches!(before, '<' | ',' | '-'))
            || in_number && matches!(c, 'u' | 'l' | 'U' | 'L');
        if !in_number || c.is_ascii_digit() {
            out.push(c);
        }
        before = c;
    }
    out
}

/// A name with its readable form: `` `_Z1fv` (`f()`) ``.
pub fn both(name: &str) -> String {
    readable(name).map_or_else(|| format!("`{name}`"), |text| format!("`{text}` (`{name}`)"))
}

/// The same without backticks, for lines that begin with it.
pub fn plain(name: &str) -> String {
    readable(name).map_or_else(|| name.to_owned(), |text| format!("{name} ({text})"))
}

/// Names for a message.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.into_iter().collect();
    let mut out = all.iter().take(MAX_LISTED).map(|n| both(n)).collect::<Vec<_>>().join(", ");
    if all.len() > MAX_LISTED {
        let _ = write!(out, " and {} more", all.len() - MAX_LISTED);
    }
    out
}

/// Why a name means no entry.
pub fn ambiguous(wanted: &str, many: &[&str]) -> String {
    format!("which entry: `{wanted}` may be {}", list(many.iter().copied()))
}

/// An entry of a module by any of its names; with `None` the only one.
///
/// # Errors
/// There is none, or there are several.
pub fn function(module: &Module, wanted: Option<&str>) -> Result<Function, Failure> {
    let entries: Vec<&str> = module.entries().collect();
    let name = match wanted.map(|w| (w, find(entries.iter().copied(), w))) {
        Some((_, Found::One(name))) => Some(name),
        Some((w, Found::Many(many))) => return Err(Failure::usage(ambiguous(w, &many))),
        Some((w, Found::None)) if entries.len() > 1 => {
            return Err(Failure::usage(format!("no entry `{w}`: the module has {}", list(entries))));
        }
        Some((w, Found::None)) => Some(w),
        None if entries.len() > 1 => {
            return Err(Failure::usage(format!("which entry: the module has {}", list(entries))));
        }
        None => None,
    };
    module.function(name).map_err(Failure::usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[&str] = &[
        "_Z5saxpyifPKfPf",
        "_ZN2ns5scaleIfEEvPT_",
        "_ZN2ns5scaleIiEEvPT_",
        "_ZN5other4scanILj3ELb1EEEvv",
        "_ZN8__main__4axpyB2v8B4tagsEf5ArrayIdLi1EE",
        "plain",
        "plain_2",
    ];

    #[track_caller]
    fn one(wanted: &str, name: &str) {
        assert_eq!(find(ALL.iter().copied(), wanted), Found::One(name), "{wanted}");
    }

    #[test]
    fn names_are_found_in_every_way() {
        let saxpy = "_Z5saxpyifPKfPf";
        for wanted in [
            saxpy,
            "saxpy(int, float, float const*, float*)",
            "saxpy(int,float,float const *,float *)",
            "saxpy",
            "sax",
            "5saxpy",
        ] {
            one(wanted, saxpy);
        }
        let scale = "_ZN2ns5scaleIfEEvPT_";
        for wanted in [
            "void ns::scale<float>(float*)",
            "ns::scale<float>(float*)",
            "ns::scale<float>",
            "scale<float>",
            "e<float>",
        ] {
            one(wanted, scale);
        }
        for wanted in ["other::scan<3u, true>()", "scan<3,true>", "other::scan", "scan", "scan<(unsigned int)3, true>"]
        {
            one(wanted, "_ZN5other4scanILj3ELb1EEEvv");
        }
        for wanted in ["__main__::axpy", "axpy", "axpy(float, Array<double, 1>)"] {
            one(wanted, "_ZN8__main__4axpyB2v8B4tagsEf5ArrayIdLi1EE");
        }
        // The name itself comes before what it is a part of.
        one("plain", "plain");
        one("plain_", "plain_2");
    }

    #[test]
    fn several_are_listed() {
        let Found::Many(many) = find(ALL.iter().copied(), "ns::scale") else { panic!() };
        assert_eq!(many, [ALL[1], ALL[2]]);
        assert!(ambiguous("scale", &many).contains("`void ns::scale<float>(float*)` (`_ZN2ns5scaleIfEEvPT_`)"));
        assert!(matches!(find(ALL.iter().copied(), "s"), Found::Many(_)));
        for none in ["frob", "", "saxpy(int)", "  "] {
            assert_eq!(find(ALL.iter().copied(), none), Found::None, "{none}");
        }
    }
}
