//! The generators of code.

use std::sync::OnceLock;

use handloom_plan::host::Host;

/// Who makes code of an entry. An entry that one of them cannot take goes to Cranelift with all functions that it can reach.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Backend {
    /// Cranelift, with vectors of 128 bits: every op, every host.
    Cranelift,
    /// Wide code: vectors of 512 bits, or pairs of 256 on hosts without AVX-512, and one copy of each block under a mask.
    Wide,
}

impl Backend {
    /// All of them.
    pub const ALL: [Backend; 2] = [Backend::Cranelift, Backend::Wide];

    /// Its word: `cranelift` or `wide`.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Cranelift => "cranelift",
            Backend::Wide => "wide",
        }
    }

    /// The one that makes the faster code on a host: wide code where the host has what it needs, else Cranelift.
    pub fn best(host: &Host) -> Backend {
        if Backend::Wide.missing_feature(host).is_none() { Backend::Wide } else { Backend::Cranelift }
    }

    /// The one that the variable `HANDLOOM_BACKEND` names when the process first asks, else [`Backend::best`] of this host.
    pub fn of_environment() -> Backend {
        static ASKED: OnceLock<Backend> = OnceLock::new();
        *ASKED.get_or_init(|| Backend::named().ok().flatten().unwrap_or_else(|| Backend::best(&Host::detect())))
    }

    /// The one that the variable `HANDLOOM_BACKEND` names now, if it names any.
    ///
    /// # Errors
    /// Its word, if there is no such generator.
    pub fn named() -> Result<Option<Backend>, String> {
        let word = std::env::var_os("HANDLOOM_BACKEND").unwrap_or_default();
        let found = Backend::ALL.into_iter().find(|b| word == b.name());
        if found.is_none() && !word.is_empty() { Err(word.to_string_lossy().into_owned()) } else { Ok(found) }
    }

    /// What its code needs and a host lacks.
    pub fn missing_feature(self, host: &Host) -> Option<&'static str> {
        match self {
            Backend::Cranelift => host.missing(),
            Backend::Wide => host.missing().or(handloom_wide::missing_feature(host)),
        }
    }
}
