//! `--sweep NAME=VALUES`: the same command line for several sizes. What stands in braces in its words is computed from the size.

use std::ffi::OsString;
use std::str::FromStr;

use handloom_runtime::words::size_bytes;

/// A size that changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sweep {
    /// Its name in braces.
    pub name: String,
    /// Its values in order.
    pub values: Vec<u64>,
}

/// Most values.
const MOST: usize = 1000;

impl FromStr for Sweep {
    type Err = String;

    /// `n=1024,4096`, `n=1K..=16M*4`, `n=100..=500+100`.
    fn from_str(text: &str) -> Result<Sweep, String> {
        let expected = "expected NAME=VALUES, as n=1K,4K,16K or n=1K..=16M*4 or n=100..=500+100";
        let (name, list) = text.split_once('=').ok_or(expected)?;
        let is_name = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
        if !is_name || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(expected.into());
        }
        let mut values = Vec::new();
        for part in list.split(',') {
            match part.split_once("..=") {
                None => values.push(size(part)?),
                Some((first, rest)) => {
                    let at = rest.find(['*', '+']).ok_or(expected)?;
                    let (last, step) = (size(&rest[..at])?, size(&rest[at + 1..])?);
                    let grows = rest.as_bytes()[at] == b'*';
                    if grows && step == 1 {
                        return Err(format!("`{part}` does not grow"));
                    }
                    let next = |v: &u64| if grows { v.checked_mul(step) } else { v.checked_add(step) };
                    let all = std::iter::successors(Some(size(first)?), next).take_while(|v| *v <= last);
                    values.extend(all.take(MOST + 1));
                }
            }
            if values.len() > MOST {
                return Err(format!("more than {MOST} values"));
            }
        }
        if values.is_empty() { Err(expected.into()) } else { Ok(Sweep { name: name.to_owned(), values }) }
    }
}

impl Sweep {
    /// What a word of the command line becomes with a value: `{4*n}` and `{n/256}` are numbers; a quotient is rounded up, as the blocks of a grid are.
    ///
    /// # Errors
    /// Braces hold something else, or it is too large.
    fn word(&self, word: &str, value: u64) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = word;
        while let Some(open) = rest.find('{') {
            let close = rest[open..].find('}').ok_or_else(|| format!("`{word}`: a brace is not closed"))? + open;
            let inside = &rest[open + 1..close];
            let number = self.value_of(inside, value).map_err(|why| format!("`{word}`: {why}"))?;
            out += &rest[..open];
            out += &number.to_string();
            rest = &rest[close + 1..];
        }
        Ok(out + rest)
    }

    fn value_of(&self, text: &str, value: u64) -> Result<u64, String> {
        let factor = |word: &str| {
            let word = word.trim();
            if word == self.name {
                return Ok(value);
            }
            size(word).map_err(|_| format!("`{word}` in braces is neither a number nor `{}`", self.name))
        };
        let first_end = text.find(['*', '/']).unwrap_or(text.len());
        let mut number = factor(&text[..first_end])?;
        let mut rest = &text[first_end..];
        while let Some(op) = rest.chars().next() {
            let end = rest[1..].find(['*', '/']).map_or(rest.len(), |at| at + 1);
            let with = factor(&rest[1..end])?;
            let result = if op == '*' { number.checked_mul(with) } else { Some(number.div_ceil(with)) };
            number = result.ok_or_else(|| format!("`{text}` has no value below 2^64 for {value}"))?;
            rest = &rest[end..];
        }
        Ok(number)
    }

    /// A command line with a value in its braces; the words of `--sweep` itself stay.
    ///
    /// # Errors
    /// Braces hold something else.
    pub fn words(&self, words: &[OsString], value: u64) -> Result<Vec<OsString>, String> {
        let one = |word: &OsString| match word.to_str() {
            Some(text) if text.contains('{') => self.word(text, value).map(OsString::from),
            _ => Ok(word.clone()),
        };
        words.iter().map(one).collect()
    }

    /// The sweep of a command line that has not been read, if there is one that can be read.
    pub fn of_words(words: &[OsString]) -> Option<Sweep> {
        let texts = words.iter().map(|w| w.to_str().unwrap_or(""));
        let mut texts = texts.take_while(|t| *t != "--").skip_while(|t| !t.starts_with("--sweep"));
        let first = texts.next()?;
        match first.strip_prefix("--sweep")? {
            "" => texts.next()?.parse().ok(),
            rest => rest.strip_prefix('=')?.parse().ok(),
        }
    }
}

/// A number above 0, with K, M or G for 2^10, 2^20 and 2^30.
fn size(text: &str) -> Result<u64, String> {
    size_bytes(text).ok_or_else(|| format!("`{text}`: expected a whole number above 0, as 1024, 64K or 16M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_lists_and_ranges() {
        let values = |text: &str| text.parse::<Sweep>().map(|s| s.values);
        assert_eq!(values("n=1K,4K"), Ok(vec![1024, 4096]));
        assert_eq!(values("n=1..=64*4"), Ok(vec![1, 4, 16, 64]));
        assert_eq!(values("n=100..=350+100,7"), Ok(vec![100, 200, 300, 7]));
        for wrong in [
            "",
            "n",
            "n=",
            "=4",
            "n=x",
            "n=1..=8",
            "n=1..=8*1",
            "n=0..=8*2",
            "n=1..=8+0",
            "n=9..=8+1",
            "1=4",
            "n=1..=1G+1",
        ] {
            assert!(values(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn braces_are_computed() {
        let sweep: Sweep = "n=5".parse().unwrap();
        let word = |text: &str| sweep.word(text, 1000);
        assert_eq!(word("zero:{4*n}").as_deref(), Ok("zero:4000"));
        assert_eq!(word("{n/256},{n}").as_deref(), Ok("4,1000"));
        assert_eq!(word("{ 2 * n / 3 * 1K }").as_deref(), Ok("683008"));
        assert_eq!(word("plain").as_deref(), Ok("plain"));
        for wrong in ["{m}", "{n", "{}", "{n*}", "{n/0}", "{n*18446744073709551615}", "{n+1}"] {
            assert!(word(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn it_is_found_before_the_command_line_is_read() {
        let of = |words: &[&str]| Sweep::of_words(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(of(&["bench", "--sweep", "n=4", "k.ptx"]).map(|s| s.values), Some(vec![4]));
        assert_eq!(of(&["bench", "k.ptx", "--sweep=n=4"]).map(|s| s.values), Some(vec![4]));
        assert_eq!(of(&["bench", "k.ptx", "--", "--sweep=n=4"]), None);
        assert_eq!(of(&["bench", "k.ptx", "--sweep"]), None);
    }
}
