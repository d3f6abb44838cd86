//! The crates of the tree: what each takes and returns, which crates and which outside packages it may use.
//!
//! `tests/tidy.rs` holds the tree to this table, and the table in `ARCHITECTURE.md` is printed from it.

/// A crate of the workspace.
#[derive(Clone, Copy, Debug)]
pub struct Crate {
    /// Name without `handloom-`; that of the library is `handloom` alone.
    pub name: &'static str,
    /// What it takes and what it returns, or is for.
    pub about: &'static str,
    /// The crates that it may use; all of them stand before it in the table.
    pub crates: &'static [&'static str],
    /// The outside packages that it may use.
    pub outside: &'static [&'static str],
}

/// All crates, from the bottom up, but those that may use anything. A new edge is a reviewed line here.
pub const CRATES: &[Crate] = &[
    Crate {
        name: "diag",
        about: "data about a fault; text or JSON; readable names; tables with a fast hash",
        crates: &[],
        // The demanglers make names of C++ and Rust readable.
        outside: &["annotate-snippets", "serde", "serde_json", "cpp_demangle", "rustc-demangle"],
    },
    Crate {
        name: "syntax",
        about: "text; tree, errors, printed text. Lexer and parser are written by hand",
        crates: &["diag"],
        outside: &[],
    },
    Crate {
        name: "ir",
        about: "types, value arithmetic (`num`), SIMT IR (`simt`), table of traps",
        crates: &["diag"],
        // Ops stand in tables of code, which are kept on disk; so in `plan`. Operands of instructions are small vectors, for who makes them too.
        outside: &["serde", "smallvec"],
    },
    Crate {
        name: "isa",
        about: "one record for each instruction form, special registers, gates",
        crates: &["ir"],
        outside: &["smallvec"],
    },
    Crate {
        name: "check",
        about: "tree; `CheckedModule` or diagnostics",
        crates: &["diag", "syntax", "ir", "isa"],
        outside: &[],
    },
    Crate {
        name: "lower",
        about: "`CheckedModule`; SIMT IR; `specialise`; passes; `float_reads`, the types that memory is read as",
        crates: &["diag", "ir", "isa", "check"],
        outside: &["smallvec"],
    },
    Crate {
        name: "audit",
        about: "what threads of a launch do, event by event; the races among them, uses of unwritten bits, strays, misuse; launches in which there can be none",
        crates: &["diag", "ir"],
        outside: &[],
    },
    Crate {
        name: "counts",
        about: "what a launch does, statement by statement, while it runs; counts by rules of memory",
        crates: &["diag", "ir"],
        outside: &["serde"],
    },
    Crate {
        name: "profile",
        about: "counts of a launch, for a person: data, text, a page, the coverage, the difference of two",
        crates: &["diag", "ir", "counts"],
        outside: &["serde", "serde_json"],
    },
    Crate {
        name: "interp",
        about: "SIMT IR, a `Memory`; a state machine for one cta",
        crates: &["diag", "ir", "audit", "counts"],
        outside: &["smallvec"],
    },
    Crate {
        name: "plan",
        about: "a SIMT function; a `Plan` for every generator of code: facts, decisions, the ABI; and a `Strategy` of copies over packs for one",
        crates: &["diag", "ir"],
        outside: &["serde", "smallvec"],
    },
    Crate {
        name: "codegen",
        about: "a SIMT function; `Code` with tables",
        crates: &["diag", "ir", "plan"],
        // `cranelift-native` knows which backend is that of this machine. `smallvec` stands here for its features too.
        outside: &[
            "cranelift-codegen",
            "cranelift-frontend",
            "cranelift-jit",
            "cranelift-native",
            "target-lexicon",
            "smallvec",
        ],
    },
    Crate {
        name: "wide",
        about: "a SIMT function; bytes of machine code for AVX-512 or AVX2 with tables, or the op that it has no code for",
        crates: &["diag", "ir", "plan"],
        // The encoder of instructions alone.
        outside: &["iced-x86", "smallvec"],
    },
    Crate {
        name: "store",
        about: "bytes by key, in a folder of the user, from one process to the next",
        crates: &[],
        // `libc` is a flag of files, `rustix` the number of the user.
        outside: &["libc", "rustix"],
    },
    Crate {
        name: "runtime",
        about: "text or IR, launch shape, arguments; a report or a trap",
        crates: &[
            "diag", "syntax", "ir", "isa", "check", "lower", "audit", "counts", "profile", "interp", "plan", "codegen",
            "wide", "store",
        ],
        // `postcard` writes the tables of code that is kept, `serde_json` findings.
        outside: &["rayon", "rustix", "libc", "serde", "serde_json", "postcard"],
    },
    Crate {
        name: "handloom",
        about: "the library: typed buffers, arguments, launches, one error; what tests of kernels in Rust need",
        crates: &["diag", "ir", "runtime"],
        // The types `f16` and `bf16`.
        outside: &["half"],
    },
    Crate {
        name: "capi",
        about: "`libhandloom`: the library for C and C++, handles in tables, `ptx_run`; `ci/capi` installs it",
        crates: &["diag", "runtime", "handloom"],
        outside: &[],
    },
    Crate {
        name: "python",
        about: "the module of the Python package `handloom`: NumPy arrays, exceptions, reports, counts; `ci/python` builds and tests it",
        crates: &["diag", "ir", "profile", "runtime", "handloom"],
        // `pyo3` is the interface of the interpreter, `libc` has signals, `half` the numbers that Python has no type for.
        outside: &["pyo3", "libc", "half"],
    },
    Crate {
        name: "filetest",
        about: "a PTX file with directives, who is to run it; what is wrong with it, for a person",
        crates: &["audit", "diag", "syntax", "ir", "check", "lower", "plan", "profile", "runtime"],
        outside: &["serde_json"],
    },
    Crate {
        name: "images",
        about: "bytes of a file; what it is, its members, the PTX in them. Made for a driver too: choice by capability, \
                wrappers, lengths",
        crates: &[],
        outside: &["object", "ruzstd", "lz4_flex"],
    },
    Crate {
        name: "driver",
        about: "handles, addresses and images that a program passes; results of the CUDA driver API, effects on devices; counts of programs",
        crates: &["diag", "syntax", "ir", "lower", "profile", "runtime", "images"],
        outside: &[],
    },
    Crate {
        name: "libcuda",
        about: "`libcuda.so.1`: the C interface of `driver`, every documented name from one table",
        crates: &["runtime", "driver"],
        outside: &["libc"],
    },
    Crate {
        name: "libcudart",
        about: "`libcudart.so.13` and `.12`: the CUDA runtime API, by calls of `libcuda.so.1`",
        crates: &[],
        outside: &[],
    },
    Crate {
        name: "cli",
        about: "the program `handloom`",
        crates: &[
            "diag", "syntax", "ir", "isa", "check", "lower", "profile", "interp", "plan", "codegen", "wide", "runtime",
            "images", "filetest",
        ],
        // `signal-hook` sets the stop flag of a launch without `unsafe` of ours; `rustix` passes signals on; `rayon` runs seeds side by side.
        outside: &[
            "clap",
            "clap_complete",
            "anstream",
            "indicatif",
            "rayon",
            "serde",
            "serde_json",
            "signal-hook",
            "rustix",
        ],
    },
];

/// Packages that may use any crate and any package, and what they are for.
pub const FREE: &[(&str, &str)] = &[
    ("tests", "the runner of file tests, generators, references, the tests of the whole"),
    ("benches", "Handloom beside C on the same work"),
];

/// The table as Markdown.
pub fn table() -> String {
    let words = |list: &[&str]| if list.is_empty() { "–".to_owned() } else { list.join(", ") };
    let mut rows =
        vec!["| crate | takes, returns | may use | outside packages |".to_owned(), "|---|---|---|---|".to_owned()];
    for (i, c) in CRATES.iter().enumerate() {
        let may = if i > 2 && c.crates.len() == i { "all above".to_owned() } else { words(c.crates) };
        rows.push(format!("| `{}` | {} | {may} | {} |", c.name, c.about, words(c.outside)));
    }
    rows.extend(FREE.iter().map(|(name, about)| format!("| `{name}` | {about} | anything | anything |")));
    rows.join("\n") + "\n"
}
