//! Verdicts of NVIDIA's assembler on declarations, directives and small modules, which `tests/oracle/modules.py` recorded, against the checker.
//!
//! That something does not run yet is no refusal. Where the two differ on purpose, a line of [`EXCEPTIONS`] says which modules and why; a line
//! that no difference needs is a failure too.

use handloom_check::check_text;
use handloom_diag::{FileId, Kind, Severity};

/// Differences that are meant: why, whether the assembler accepts these modules, and which they are.
type Exception = (&'static str, bool, fn(&str) -> bool);

const EXCEPTIONS: &[Exception] = &[
    ("a cluster of no blocks: the assembler takes it, and no launch could", true, |c| {
        c.contains(".reqnctapercluster 0")
    }),
    ("parameters of functions that are only declared: the assembler looks at them where they are defined", true, |c| {
        c.starts_with(".extern .func (")
    }),
    (
        "a vector of a bit register and one that the instruction alone would not take: the assembler looks at the first or the wider kind",
        true,
        |c| c.contains("{ .reg .") && c.contains(" x; .reg .") && c.contains(" y; "),
    ),
    ("`.target` in a body: the assembler takes it", true, |c| c.contains("{ .target")),
    ("samplers want `texmode_independent`: they are refused as unsupported all the same", false, |c| {
        c.contains(".samplerref")
    }),
    (
        "registers of predicates as parameters: the manual has them, the binary interface of the assembler does not",
        false,
        |c| c.contains("(.reg .pred a)"),
    ),
    ("literals beyond 64 bits: the assembler cuts some and refuses others; the checker warns", false, |c| {
        c.contains("99999999999999999999")
    }),
    (
        "32-bit addresses in a module of 64-bit ones: the assembler warns, and stops for want of 32-bit code on sm_90",
        false,
        |c| c.contains("b32 y; mov.b32 y, g;") || c.contains("ld.global.b32 x, [x];"),
    ),
    ("an index behind a variable that is no array: its address is what it would be", false, |c| {
        c.contains("g[0]") || c.contains("g[1]")
    }),
    (
        "what a pragma means is the matter of whoever compiles, says the manual: one that nobody knows is passed over",
        false,
        |c| c.starts_with(".pragma \"x\";"),
    ),
    ("the size of an array is a constant expression, as the manual says", false, |c| {
        c.contains("[1+1]") || c.contains("[(2)]")
    }),
    (
        "vectors of other components than the function has: of some the assembler compares how many bytes they have together, of some it does not",
        true,
        |c| c.contains("call f, (t)") || c.contains("call (t), f"),
    ),
    ("a constant for a whole vector: plainly a fault", true, |c| c.contains("f, (5)")),
    ("registers that a call must keep are no matter of a CPU", false, |c| c.contains(".abi_preserve_control 15")),
    ("where a line was inlined from is not looked at", false, |c| c.contains("inlined_at")),
];

#[test]
fn modules_agree_with_the_assembler() {
    let packed = include_bytes!("oracle/modules.zlib");
    let bytes = miniz_oxide::inflate::decompress_to_vec_zlib(packed).expect("the verdicts are a zlib stream");
    let text = String::from_utf8(bytes).expect("the verdicts are text");
    let mut used = vec![0; EXCEPTIONS.len()];
    let mut different = Vec::new();
    let mut n = 0;
    let mut head = String::new();
    for line in text.lines() {
        let (accepted, case) = match line.split_at(1) {
            ("+", case) => (true, case),
            ("-", case) => (false, case),
            ("=", rest) => {
                let (version, target) = rest.trim().split_once(' ').expect("a version and a target");
                head = format!(".version {version}\n.target {target}\n.address_size 64\n");
                continue;
            }
            _ => continue,
        };
        n += 1;
        let module = format!("{head}{}\n", case.replace("\\n", "\n"));
        let told = check_text(&module, FileId(0)).diagnostics;
        let error = told.iter().find(|d| d.severity == Severity::Error && d.kind == Kind::Program);
        if accepted == error.is_none() {
            continue;
        }
        match EXCEPTIONS.iter().position(|(_, of, fits)| *of == accepted && fits(case)) {
            Some(i) => used[i] += 1,
            None => {
                let what = error.map_or("accepted".to_owned(), |d| format!("{} {}", d.code.name(), d.message));
                different.push(format!("{line}  // {what}; {}", head.replace('\n', " ")));
            }
        }
    }
    assert!(n > 4000, "only {n} modules");
    assert!(different.is_empty(), "{} of {n} modules differ\n{}", different.len(), different.join("\n"));
    let idle: Vec<&str> = EXCEPTIONS.iter().zip(&used).filter(|(_, n)| **n == 0).map(|(e, _)| e.0).collect();
    assert!(idle.is_empty(), "exceptions that nothing needs: {idle:?}");
}
