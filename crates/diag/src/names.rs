//! Names of symbols as they are written in the source: `saxpy(int, float, float*)` for `_Z5saxpyifPf`.
//!
//! Compilers of C++, Rust and Python (Numba) put the types of a function into its name. People are shown both.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// Longest name that is looked at. Names of templates are long, but not endless.
const MAX_MANGLED: usize = 8 << 10;

/// Longest readable name. Short mangled names can stand for very long ones.
const MAX_READABLE: usize = 2 << 10;

/// How deep a name may be nested.
const MAX_DEPTH: u32 = 128;

/// Names that one report explains.
const MAX_EXPLAINED: usize = 4;

/// The readable form of a name, if it is mangled.
pub fn readable(name: &str) -> Option<String> {
    if name.len() > MAX_MANGLED {
        return None;
    }
    if name.starts_with("_R") || is_rust_hash(name) {
        let mut out = Short::default();
        let demangled = rustc_demangle::try_demangle(name).ok()?;
        write!(out, "{demangled:#}").ok()?;
        return Some(out.0);
    }
    if !name.starts_with("_Z") {
        return None;
    }
    let parse = ParseOptions::default().recursion_limit(MAX_DEPTH);
    let symbol = Symbol::new_with_options(name, &parse).ok()?;
    let mut out = Short::default();
    symbol.structured_demangle(&mut out, &DemangleOptions::default().recursion_limit(MAX_DEPTH)).ok()?;
    (!out.0.is_empty()).then_some(out.0)
}

/// Mangled names in texts with their readable forms, each once, in order. A name that belongs to a function
/// (`_Z1fv_param_0`, `_Z1fv$tile$0`) counts as that function's.
pub fn explain<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    for word in texts.into_iter().flat_map(|t| t.split(move |c| !is_part(c))) {
        if !(word.starts_with("_Z") || word.starts_with("_R")) || found.len() >= MAX_EXPLAINED {
            continue;
        }
        let known = |found: &[(&str, String)], name: &str| found.iter().any(|(n, _)| *n == name);
        let Some((name, text)) = owners(word).find_map(|name| Some((name, readable(name)?))) else { continue };
        if !known(&found, name) {
            found.push((name, text));
        }
    }
    found
}

/// A name, and those of the functions that it may belong to.
fn owners(name: &str) -> impl Iterator<Item = &str> {
    let of_param = name.rsplit_once("_param_").map(|(owner, _)| owner);
    let of_variable = name.match_indices('$').map(move |(at, _)| &name[..at]);
    std::iter::once(name.trim_end_matches('.')).chain(of_param).chain(of_variable)
}

/// `` `_Z1fv` is `f()` `` for each mangled name in texts.
pub fn notes<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    explain(texts).into_iter().map(|(name, text)| format!("`{name}` is `{text}`")).collect()
}

/// `_ZN4demo1k17h0123456789abcdefE`: the older form of Rust, which C++ does not write.
fn is_rust_hash(name: &str) -> bool {
    let hash = name.strip_suffix('E').and_then(|n| n.len().checked_sub(16).and_then(|at| n.split_at_checked(at)));
    hash.is_some_and(|(head, hash)| head.ends_with("17h") && hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Text that does not grow beyond what is shown.
#[derive(Default)]
struct Short(String);

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_READABLE {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(name: &str, text: &str) {
        assert_eq!(readable(name).as_deref(), Some(text));
    }

    #[test]
    fn names_of_compilers() {
        // As `c++filt` writes them, but for suffixes of numbers.
        is("_Z5saxpyifPKfPf", "saxpy(int, float, float const*, float*)");
        is("_ZN2ns5scaleIfEEvPT_", "void ns::scale<float>(float*)");
        is("_ZN3cub6detail4scanILj3ELb1EEEvv", "void cub::detail::scan<(unsigned int)3, true>()");
        // As `rustc-demangle` documents them.
        is("_ZN4demo6kernel17h0123456789abcdefE", "demo::kernel");
        is("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function");
        for name in ["saxpy", "_Z", "_R", "_Zfoo", "", "_1", "kernel$tile$0", "_Z5saxpy("] {
            assert_eq!(readable(name), None, "{name}");
        }
    }

    #[test]
    fn names_of_numba() {
        let name = "_ZN8__main__4axpyB2v8B92cw51cXTLSUwv1sDUaKthrqNgqqmjgOR3W3CwAkMXLaJtQYkOIgxJU0gCqOkEJoHkbttqdVhoqlspQGNFHSgJ5BnXagIAEf5ArrayIdLi1E1A7mutable7alignedE";
        let text = readable(name).unwrap();
        assert!(
            text.starts_with("__main__::axpy[abi:v8]") && text.contains("Array<double, 1, A, mutable, aligned>"),
            "{text}"
        );
    }

    #[test]
    fn short_names_of_very_long_ones_are_left() {
        // Each step doubles: a tuple of two of the last.
        let mut name = String::from("_Z1f1aIiiE");
        for i in 0..60 {
            let s = |n: u32| char::from_digit(n, 36).map(|c| c.to_ascii_uppercase());
            let one = s(i % 36).map_or(String::new(), |c| format!("S{c}_"));
            name.push_str(&format!("1aI{one}{one}E"));
        }
        let start = std::time::Instant::now();
        assert!(readable(&name).is_none_or(|t| t.len() <= MAX_READABLE));
        assert_eq!(readable(&format!("_Z1f{}i", "P".repeat(5000))), None);
        assert_eq!(readable(&format!("_Z{}", "N".repeat(100_000))), None);
        assert!(start.elapsed().as_secs() < 2);
    }

    #[test]
    fn names_in_sentences() {
        let found = explain(["no entry `_Z1fv` beside _Z1gi_param_0, `_Z1fv` and `_Z1hv$tile$0`", "k _Zx"]);
        let found: Vec<(&str, &str)> = found.iter().map(|(n, t)| (*n, t.as_str())).collect();
        assert_eq!(found, [("_Z1fv", "f()"), ("_Z1gi", "g(int)"), ("_Z1hv", "h()")]);
        assert_eq!(notes(["`_Z1fv`"]), ["`_Z1fv` is `f()`"]);
    }
}
