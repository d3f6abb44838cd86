//! Architectures: `sm_80`, `sm_90a`, `sm_100f`.

use std::fmt;
use std::str::FromStr;

/// What the code of an architecture is bound to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub enum Bound {
    /// Runs on this and on newer architectures.
    #[default]
    None,
    /// `f`: runs on newer ones of the same family.
    Family,
    /// `a`: runs on this one only.
    Arch,
}

/// An architecture.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct Arch {
    /// Ten times the major number, plus the minor one: 80, 103.
    pub sm: u32,
    /// What its code is bound to.
    pub bound: Bound,
}

impl Arch {
    /// Without a suffix.
    pub fn new(sm: u32) -> Arch {
        Arch { sm, bound: Bound::None }
    }

    /// Whether PTX for this architecture runs on a device of a capability (ten times major, plus minor).
    ///
    /// # PTX ISA
    /// PTX Module Directives: .target.
    pub fn runs_on(self, capability: u32) -> bool {
        match self.bound {
            Bound::None => self.sm <= capability,
            Bound::Family => self.sm <= capability && self.sm / 10 == capability / 10,
            Bound::Arch => self.sm == capability,
        }
    }

    /// The target of a PTX text, from its `.target` directive.
    pub fn of_ptx(text: &str) -> Option<Arch> {
        // Before the directive stand comments, which may mention anything, and `.version`.
        let directive = text.lines().find_map(|l| l.trim_start().strip_prefix(".target"))?;
        let word = directive.split([',', '/']).next()?.trim();
        word.parse().ok()
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.bound {
            Bound::None => "",
            Bound::Family => "f",
            Bound::Arch => "a",
        };
        write!(f, "sm_{}{suffix}", self.sm)
    }
}

impl FromStr for Arch {
    type Err = ();

    /// `sm_90a`, `compute_90a` or `90a`.
    fn from_str(text: &str) -> Result<Arch, ()> {
        let digits = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_")).unwrap_or(text);
        let (digits, bound) = match digits.as_bytes().last() {
            Some(b'a') => (&digits[..digits.len() - 1], Bound::Arch),
            Some(b'f') => (&digits[..digits.len() - 1], Bound::Family),
            _ => (digits, Bound::None),
        };
        let is_number = !digits.is_empty() && digits.len() <= 4 && digits.bytes().all(|b| b.is_ascii_digit());
        if !is_number {
            return Err(());
        }
        digits.parse().map(|sm| Arch { sm, bound }).map_err(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for name in ["sm_80", "sm_90a", "sm_100f", "sm_121"] {
            assert_eq!(name.parse::<Arch>().unwrap().to_string(), name);
        }
        assert_eq!("compute_75".parse(), Ok(Arch::new(75)));
        for wrong in ["", "sm_", "sm_a", "sm_-1", "sm_99999", "x"] {
            assert_eq!(wrong.parse::<Arch>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn suffixes_bind() {
        let runs = |name: &str, capability| name.parse::<Arch>().unwrap().runs_on(capability);
        assert!(runs("sm_80", 89) && runs("sm_80", 120) && !runs("sm_90", 89));
        assert!(runs("sm_90a", 90) && !runs("sm_90a", 100));
        assert!(runs("sm_100f", 103) && !runs("sm_100f", 110) && !runs("sm_100f", 120));
    }

    #[test]
    fn targets_of_texts() {
        assert_eq!(Arch::of_ptx("// for sm_70\n.version 8.0\n.target sm_80, debug\n"), Some(Arch::new(80)));
        assert_eq!(Arch::of_ptx(".version 8.0\n .target\tsm_90a // x\n").unwrap().to_string(), "sm_90a");
        assert_eq!(Arch::of_ptx(".version 8.0\n"), None);
    }
}
