//! The machine that code is made for and runs on.
//!
//! One record says all that decisions depend on. It is made once, when a device is opened ([`Host::detect`]), and passed down: plans, generators and
//! the routines of the runtime ask it, and nobody asks the machine. What code may use is capped by a smaller value of [`Host::vectors`], as
//! the variable `HANDLOOM_ISA` asks for it; a test writes down a machine that it does not run on. Support for another kind of host begins here: its row of
//! [`Architecture`], its features, and what its plain moves keep of the order of memory.

use std::sync::OnceLock;

/// A kind of host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Architecture {
    /// x86-64.
    X86_64,
    /// AArch64, also known as ARM64.
    Aarch64,
    /// One that nothing here knows.
    Other,
}

impl Architecture {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x86-64",
            Architecture::Aarch64 => "aarch64",
            Architecture::Other => "of an unknown kind",
        }
    }

    /// What plain moves keep of the order of memory.
    pub const fn order(self) -> MemoryOrder {
        match self {
            Architecture::X86_64 => MemoryOrder::Strong,
            Architecture::Aarch64 | Architecture::Other => MemoryOrder::Weak,
        }
    }

    /// How functions are called.
    pub const fn calls(self) -> CallConvention {
        match self {
            Architecture::X86_64 => CallConvention::SystemV,
            Architecture::Aarch64 | Architecture::Other => CallConvention::Aapcs64,
        }
    }
}

/// What plain moves of a host keep of the order of memory, as other threads see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum MemoryOrder {
    /// A load happens before all that follows it, a store after all before it: each load acquires and each store releases.
    Strong,
    /// Nothing: what must be ordered takes an instruction for it.
    Weak,
}

/// How functions are called on a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum CallConvention {
    /// System V, x86-64.
    SystemV,
    /// Procedure Call Standard for the Arm 64-bit Architecture.
    Aapcs64,
}

/// Bits of a vector.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Vectors {
    /// Of 128 bits.
    V128,
    /// Of 256 bits.
    V256,
    /// Of 512 bits.
    V512,
}

impl Vectors {
    /// All of them.
    pub const ALL: [Vectors; 3] = [Vectors::V128, Vectors::V256, Vectors::V512];

    /// The word for the instructions that come with them, of the variable `HANDLOOM_ISA`: `plain`, `avx2` or `avx512`.
    pub const fn isa(self) -> &'static str {
        match self {
            Vectors::V128 => "plain",
            Vectors::V256 => "avx2",
            Vectors::V512 => "avx512",
        }
    }

    /// The cap that the variable `HANDLOOM_ISA` names now; none if it names nothing.
    ///
    /// # Errors
    /// Its word, if it is none of theirs.
    pub fn named() -> Result<Option<Vectors>, String> {
        let word = std::env::var_os("HANDLOOM_ISA").unwrap_or_default();
        if word.is_empty() {
            return Ok(None);
        }
        let found = Vectors::ALL.into_iter().find(|v| word == v.isa());
        found.map(Some).ok_or_else(|| word.to_string_lossy().into_owned())
    }

    /// The number.
    pub const fn bits(self) -> u32 {
        match self {
            Vectors::V128 => 128,
            Vectors::V256 => 256,
            Vectors::V512 => 512,
        }
    }
}

/// What says which lanes of a vector take part in an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Masks {
    /// Another vector: results are blended.
    Blended,
    /// A register of a bit for each lane, which most instructions take.
    Registers,
}

macro_rules! features {
    ($($name:ident = $text:tt, $vectors:ident;)*) => {
        /// Something that only some hosts of a kind have.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[allow(missing_docs, reason = "each name is the maker's own")]
        pub enum Feature {
            $($name,)*
        }

        impl Feature {
            /// All of them.
            pub const ALL: &[Feature] = &[$(Feature::$name),*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Feature::$name => $text,)*
                }
            }

            /// The vectors that it comes with: a host that is capped below them does not have it.
            pub const fn vectors(self) -> Vectors {
                match self {
                    $(Feature::$name => Vectors::$vectors,)*
                }
            }
        }

        /// What this machine has.
        fn detect() -> Features {
            #[cfg(target_arch = "x86_64")]
            return Features::NONE$(.and_if(Feature::$name, std::is_x86_feature_detected!($text)))*;
            #[cfg(not(target_arch = "x86_64"))]
            Features::NONE
        }
    };
}

features! {
    Sse3 = "sse3", V128;
    Ssse3 = "ssse3", V128;
    Sse41 = "sse4.1", V128;
    Sse42 = "sse4.2", V128;
    Popcnt = "popcnt", V128;
    Lzcnt = "lzcnt", V128;
    Bmi1 = "bmi1", V128;
    Bmi2 = "bmi2", V128;
    Cmpxchg16b = "cmpxchg16b", V128;
    Avx = "avx", V256;
    Avx2 = "avx2", V256;
    Fma = "fma", V256;
    F16c = "f16c", V256;
    AvxVnni = "avxvnni", V256;
    Avx512f = "avx512f", V512;
    Avx512bw = "avx512bw", V512;
    Avx512cd = "avx512cd", V512;
    Avx512dq = "avx512dq", V512;
    Avx512vl = "avx512vl", V512;
    Avx512vbmi = "avx512vbmi", V512;
    Avx512bitalg = "avx512bitalg", V512;
    Avx512vnni = "avx512vnni", V512;
}

/// A set of features.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct Features(u32);

impl Features {
    /// A host with no feature that is asked for.
    pub const NONE: Features = Features(0);

    /// With one more.
    #[must_use]
    pub const fn and(self, feature: Feature) -> Features {
        Features(self.0 | 1 << feature as u32)
    }

    /// With one more, if the machine has it.
    #[must_use]
    pub const fn and_if(self, feature: Feature, has: bool) -> Features {
        if has { self.and(feature) } else { self }
    }

    /// Whether one is in it.
    #[inline]
    pub const fn has(self, feature: Feature) -> bool {
        self.0 >> feature as u32 & 1 == 1
    }

    /// Whether all of others are in it.
    pub const fn has_all(self, others: Features) -> bool {
        self.0 & others.0 == others.0
    }
}

/// What compiled code cannot do without, with the names that people know.
const NEEDED: &[(Feature, &str)] =
    &[(Feature::Avx2, "AVX2"), (Feature::Fma, "FMA"), (Feature::F16c, "F16C"), (Feature::Cmpxchg16b, "cmpxchg16b")];

/// What the loops over rows of the runtime ask for.
const ROW_LOOPS: Features =
    Features::NONE.and(Feature::Avx2).and(Feature::Fma).and(Feature::F16c).and(Feature::Lzcnt).and(Feature::Popcnt);

/// A machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Host {
    /// Its kind.
    pub architecture: Architecture,
    /// The widest vectors that it has and code may use.
    pub vectors: Vectors,
    /// What plain moves keep of the order of memory.
    pub order: MemoryOrder,
    /// How functions are called.
    pub calls: CallConvention,
    /// What it has. Ask [`has`](Host::has), which knows the cap of `vectors`.
    pub features: Features,
    /// Bytes of its last cache, as far as one thread finds its data there; 0 if nobody knows.
    pub last_cache: u64,
}

/// Bytes of this machine's last cache, as Linux tells; 0 if it does not.
fn last_cache() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    let ask = || {
        let text = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index3/size").ok()?;
        text.trim().strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024)
    };
    *BYTES.get_or_init(|| ask().unwrap_or(0))
}

impl Host {
    /// The machine that this program runs on, capped as the variable `HANDLOOM_ISA` says.
    pub fn detect() -> Host {
        let architecture = if cfg!(target_arch = "x86_64") {
            Architecture::X86_64
        } else if cfg!(target_arch = "aarch64") {
            Architecture::Aarch64
        } else {
            Architecture::Other
        };
        let host = Host { last_cache: last_cache(), ..Host::new(architecture, detect()) };
        Vectors::named().ok().flatten().map_or(host, |most| host.capped(most))
    }

    /// The same without vectors that are wider.
    #[must_use]
    pub fn capped(self, most: Vectors) -> Host {
        Host { vectors: self.vectors.min(most), ..self }
    }

    /// A machine of a kind with these features.
    pub fn new(architecture: Architecture, features: Features) -> Host {
        let vectors = if features.has(Feature::Avx512f) {
            Vectors::V512
        } else if features.has(Feature::Avx2) {
            Vectors::V256
        } else {
            Vectors::V128
        };
        let (order, calls) = (architecture.order(), architecture.calls());
        Host { architecture, vectors, order, calls, features, last_cache: 0 }
    }

    /// Whether it has a feature, and may use vectors as wide as those that the feature comes with.
    #[inline]
    pub fn has(&self, feature: Feature) -> bool {
        self.features.has(feature) && feature.vectors() <= self.vectors
    }

    /// Whether Cranelift's code may use a feature. Its vectors have 128 bits, and it cannot do without AVX2: a cap below that is one for all others.
    pub fn has_in_narrow_code(&self, feature: Feature) -> bool {
        self.features.has(feature) && feature.vectors() <= self.vectors.max(Vectors::V256)
    }

    /// What says which lanes of its widest vectors take part.
    pub fn masks(&self) -> Masks {
        if self.vectors == Vectors::V512 { Masks::Registers } else { Masks::Blended }
    }

    /// The first feature that compiled code needs and the host lacks; its kind, where there is no code for that.
    pub fn missing(&self) -> Option<&'static str> {
        if self.architecture != Architecture::X86_64 {
            return Some("the x86-64 instruction set");
        }
        NEEDED.iter().find(|(feature, _)| !self.has_in_narrow_code(*feature)).map(|(_, name)| *name)
    }

    /// Whether the vector code of the runtime's loops over rows runs here.
    #[inline]
    pub fn has_row_loops(&self) -> bool {
        // None of the features comes with wider vectors.
        self.features.has_all(ROW_LOOPS) && self.vectors >= Vectors::V256
    }

    /// Whether the vector code of the runtime that is 512 bits wide runs here.
    #[inline]
    pub fn has_wide_row_loops(&self) -> bool {
        self.has_row_loops() && self.has(Feature::Avx512f) && self.has(Feature::Avx512bw)
    }
}
