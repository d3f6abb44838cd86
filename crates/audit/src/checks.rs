//! Which checks are asked for.

use std::fmt;

/// A kind of check.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Check {
    /// Accesses outside of memory, to freed memory, and misaligned ones.
    Memory,
    /// Bytes that nobody wrote.
    Init,
    /// Accesses that nothing orders.
    Race,
    /// Barriers and other meetings of threads.
    Sync,
}

impl Check {
    /// All of them.
    pub const ALL: [Check; 4] = [Check::Memory, Check::Init, Check::Race, Check::Sync];

    /// Its word on command lines.
    pub const fn word(self) -> &'static str {
        match self {
            Check::Memory => "memory",
            Check::Init => "init",
            Check::Race => "race",
            Check::Sync => "sync",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A set of checks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Checks(u8);

impl Checks {
    /// All checks.
    pub const fn all() -> Checks {
        Checks(0b1111)
    }

    /// No check.
    pub const fn none() -> Checks {
        Checks(0)
    }

    /// These and one more.
    #[must_use]
    pub const fn with(self, check: Check) -> Checks {
        Checks(self.0 | 1 << check as u8)
    }

    /// Whether a check is among them.
    pub const fn has(self, check: Check) -> bool {
        self.0 >> check as u8 & 1 == 1
    }

    /// Reads a list of words: `race,sync`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Checks, String> {
        let mut checks = Checks::default();
        for word in text.split(',') {
            let known = Check::ALL.into_iter().find(|c| c.word() == word.trim());
            let all = || Check::ALL.map(Check::word).join(", ");
            checks =
                checks.with(known.ok_or_else(|| format!("no check `{}`: expected some of {}", word.trim(), all()))?);
        }
        Ok(checks)
    }
}

impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = Check::ALL.into_iter().filter(|c| self.has(*c)).map(Check::word).collect();
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_words_are_read() {
        let some = Checks::parse("race, sync").unwrap();
        assert!(some.has(Check::Race) && some.has(Check::Sync) && !some.has(Check::Init) && !some.has(Check::Memory));
        assert_eq!(Checks::parse("memory,init,race,sync"), Ok(Checks::all()));
        assert_eq!(some.to_string(), "race,sync");
        assert!(Checks::parse("races").unwrap_err().contains("expected some of memory, init, race, sync"));
        assert!(Checks::parse("").is_err());
    }
}
