//! Versions, targets and gates.

use std::fmt;

/// A version of the PTX language.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Version {
    /// Major number.
    pub major: u8,
    /// Minor number.
    pub minor: u8,
}

impl Version {
    /// `major.minor`.
    pub const fn new(major: u8, minor: u8) -> Version {
        Version { major, minor }
    }
}

/// The newest version that is known: a newer one is accepted with a warning.
pub const NEWEST: Version = Version::new(9, 5);

/// The suffix of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Suffix {
    /// `sm_90`.
    None,
    /// `sm_90a`: exactly this architecture.
    Arch,
    /// `sm_100f`: its family.
    Family,
}

/// A target architecture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Target {
    /// 80 for `sm_80`.
    pub sm: u16,
    /// `a`, `f` or nothing.
    pub suffix: Suffix,
}

/// Gates: what a module must state so that something may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// At least this version.
    pub version: Version,
    /// Targets that have it; any of them is enough.
    pub targets: &'static [TargetGate],
}

/// One way for a target to satisfy a gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TargetGate {
    /// `sm_X` or higher.
    AtLeast(u16),
    /// Exactly `sm_Xa`.
    Arch(u16),
    /// `sm_Xf`, `sm_Xa` or a later member of the same family, from this version on.
    Family(u16, Version),
}

/// As it is written: `sm_90a`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.suffix {
            Suffix::None => "",
            Suffix::Arch => "a",
            Suffix::Family => "f",
        };
        write!(f, "sm_{}{suffix}", self.sm)
    }
}

/// What a module has to say: `.target sm_90a`.
impl fmt::Display for TargetGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetGate::AtLeast(sm) => write!(f, "`.target sm_{sm}` or higher"),
            TargetGate::Arch(sm) => write!(f, "`.target sm_{sm}a`"),
            TargetGate::Family(sm, since) => {
                write!(f, "`.target sm_{sm}f` or its family (from `.version {}.{}`)", since.major, since.minor)
            }
        }
    }
}

impl Needs {
    /// Only a version.
    pub const fn ptx(major: u8, minor: u8) -> Needs {
        Needs { version: Version::new(major, minor), targets: &[] }
    }

    /// A version and targets.
    pub const fn on(major: u8, minor: u8, targets: &'static [TargetGate]) -> Needs {
        Needs { version: Version::new(major, minor), targets }
    }

    /// No gate: every module passes.
    pub const NONE: Needs = Needs::ptx(1, 0);

    /// What a module of that version and target lacks, as the end of a sentence; `None` if it passes.
    pub fn lacking(self, version: Version, target: Target) -> Option<String> {
        if version < self.version {
            let (n, m) = (self.version, version);
            return Some(format!(
                "needs `.version {}.{}` or newer; this module says {}.{}",
                n.major, n.minor, m.major, m.minor
            ));
        }
        if self.targets.is_empty() || self.targets.iter().any(|g| g.allows(target, version)) {
            return None;
        }
        let wanted: Vec<String> = self.targets.iter().map(ToString::to_string).collect();
        Some(format!("needs {}; this module says `{target}`", wanted.join(" or ")))
    }
}

/// The lowest target of the family that a target belongs to: `sm_103` belongs to the family of `sm_100`.
pub const fn family(sm: u16) -> u16 {
    match sm {
        100..=109 => 100,
        110..=119 => 110,
        120..=129 => 120,
        _ => sm,
    }
}

impl TargetGate {
    /// Whether a target passes, for a module of `version`.
    pub fn allows(self, target: Target, version: Version) -> bool {
        match self {
            TargetGate::AtLeast(sm) => target.sm >= sm,
            TargetGate::Arch(sm) => target.suffix == Suffix::Arch && target.sm == sm,
            TargetGate::Family(sm, since) => {
                version >= since && target.suffix != Suffix::None && family(target.sm) == family(sm) && target.sm >= sm
            }
        }
    }
}
