//! Files of suppressions: findings that are known and are not to be told.
//!
//! A line is `suppress KIND CLASS PLACE [PLACE]`, as `--gen-suppressions` writes it below a finding: the kind and class of the finding and the lines of
//! its places, `FILE:LINE`, those of the source where they are known. `*` stands for anything, in a place for any line: `FILE:*`, in a file for any part of its path. One place is either of
//! two. A file is named by its path or the end of it. What follows a `#`, and empty lines, are comments.

use handloom_runtime::{Finding, FoundAt};

use crate::report::{Failure, reason};

/// What is not to be told.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Suppression {
    kind: String,
    class: String,
    /// Path and line; nothing for any place.
    places: Vec<Option<(String, Option<u32>)>>,
}

/// All that is not to be told.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Suppressions(Vec<Suppression>);

impl Suppressions {
    /// Reads files.
    ///
    /// # Errors
    /// One cannot be read, or a line is none.
    pub fn read(files: &[String]) -> Result<Suppressions, Failure> {
        let mut all = Suppressions::default();
        for file in files {
            let text = std::fs::read_to_string(file)
                .map_err(|e| Failure::file(format!("`{file}` cannot be read: {}", reason(&e))))?;
            for (number, line) in (1..).zip(text.lines()) {
                let line = line.split(" #").next().unwrap_or("").trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let wrong = || {
                    let expected = "expected `suppress KIND CLASS FILE:LINE [FILE:LINE]`";
                    Failure::usage(format!("`{file}`, line {number}: {expected}, as `--gen-suppressions` writes it"))
                };
                all.0.push(parse(line).ok_or_else(wrong)?);
            }
        }
        Ok(all)
    }

    /// Whether a finding is among them.
    pub fn has(&self, finding: &Finding) -> bool {
        self.0.iter().any(|s| s.is(finding))
    }
}

fn parse(line: &str) -> Option<Suppression> {
    let mut words = line.split_whitespace();
    if words.next()? != "suppress" {
        return None;
    }
    let (kind, class) = (words.next()?.to_owned(), words.next()?.to_owned());
    let place = |word: &str| match word {
        "*" => Some(None),
        _ => {
            let (file, line) = word.rsplit_once(':')?;
            let line = if line == "*" { None } else { Some(line.parse().ok()?) };
            Some(Some((file.to_owned(), line)))
        }
    };
    let places = words.map(place).collect::<Option<Vec<_>>>()?;
    (1..=2).contains(&places.len()).then_some(Suppression { kind, class, places })
}

impl Suppression {
    fn is(&self, finding: &Finding) -> bool {
        let word = |word: &str, of: &str| word == "*" || word == of;
        if !word(&self.kind, finding.kind) || !word(&self.class, finding.class) {
            return false;
        }
        let at: Vec<&FoundAt> = std::iter::once(&finding.first).chain(&finding.second).collect();
        let all = |order: &[usize]| {
            order.len() == at.len() && at.iter().zip(order).all(|(at, i)| is_at(self.places[*i].as_ref(), at))
        };
        match self.places.len() {
            1 => at.iter().any(|at| is_at(self.places[0].as_ref(), at)),
            _ => all(&[0, 1]) || all(&[1, 0]),
        }
    }
}

/// Whether a place is one of a statement: its line of the source, or of the PTX.
fn is_at(place: Option<&(String, Option<u32>)>, at: &FoundAt) -> bool {
    let Some((file, line)) = place else { return true };
    let is = |path: &str, number: u32| {
        let mut ends = std::iter::once(path).chain(path.match_indices('/').map(|(at, _)| &path[at + 1..]));
        ends.any(|end| fits(file, end)) && line.is_none_or(|line| line == number)
    };
    let sources = at.source.iter().map(|(path, number)| (path, *number));
    let mut sources = sources.chain(at.caller.iter().map(|caller| (&caller.file, caller.line)));
    is(&at.file, at.line) || sources.any(|(path, number)| is(path, number))
}

/// Whether a text is the pattern, of which each `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        // The first place leaves most for what follows.
        let Some((_, after)) = text.split_once(part) else { return false };
        text = after;
    }
    text.ends_with(last)
}

/// The line that leaves out a finding.
pub fn line_of(finding: &Finding) -> String {
    let place = |at: &FoundAt| match &at.source {
        Some((file, line)) => place_of(file, *line),
        None => place_of(&at.file, at.line),
    };
    let places: Vec<String> = std::iter::once(&finding.first).chain(&finding.second).map(place).collect();
    format!("suppress {} {} {}", finding.kind, finding.class, places.join(" "))
}

/// A place in one word: a star stands for each blank in the path.
fn place_of(file: &str, line: u32) -> String {
    format!("{}:{line}", file.replace(char::is_whitespace, "*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_blanks_are_one_word() {
        let one = parse(&format!("suppress race unordered {}", place_of("my kernels/a b.cu", 3))).unwrap();
        let [Some((file, Some(3)))] = &one.places[..] else { panic!("{one:?}") };
        assert!(fits(file, "my kernels/a b.cu") && !fits(file, "kernels/a b.cu"));
    }

    #[test]
    fn lines_are_read() {
        let one = parse("suppress race unordered k.cu:3 *").unwrap();
        assert_eq!((one.kind.as_str(), one.class.as_str()), ("race", "unordered"));
        assert_eq!(one.places, [Some(("k.cu".into(), Some(3))), None]);
        assert_eq!(parse("suppress * * k.cu:*").unwrap().places, [Some(("k.cu".into(), None))]);
        for wrong in ["suppress race unordered", "race unordered k.cu:3", "suppress race unordered k.cu", "suppress"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
    #[test]
    fn stars_in_files_stand_for_any_text() {
        for pattern in ["k.cu", "*.cu", "k*", "*", "a/*/k.cu", "a*b*k.cu", "*/b/*", "**"] {
            assert!(fits(pattern, if pattern.contains(['a', 'b', '/']) { "a/b/k.cu" } else { "k.cu" }), "{pattern}");
        }
        for (pattern, text) in
            [("k.cu", "kk.cu"), ("*.cu", "k.cu.h"), ("a/*/k.cu", "a/k.cu"), ("k*u", "k"), ("kk*k", "kk")]
        {
            assert!(!fits(pattern, text), "{pattern}");
        }
    }
}
