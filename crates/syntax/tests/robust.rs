//! No text makes the parser panic, overflow the stack, or take more than linear time.

mod common;

use std::time::{Duration, Instant};

use common::{SAMPLES, in_body, read};
use handloom_syntax::{print, same};

/// A fixed sequence of numbers (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ":",
    "::",
    ".",
    "..",
    "|",
    "@",
    "!",
    "-",
    "+",
    "%",
    "_",
    "\"",
    "/*",
    "*/",
    "//",
    "\n",
    "#",
    "0f",
    "0x",
    "1e",
    "é",
    "\0",
    "\\",
    "$",
    "<",
    ">",
    "=",
    "?",
    ".entry",
    ".func",
    ".reg",
    ".visible",
    ".section",
    ".loc",
    ".pragma",
    ".callprototype",
    ".branchtargets",
    "WARP_SZ",
    "generic(",
    "ret",
    "call",
];

#[test]
fn changed_samples_are_read_without_panic() {
    let mut numbers = Numbers(20_260_101);
    let mut recovered = 0;
    for case in 0..20_000 {
        let sample = SAMPLES[numbers.below(SAMPLES.len())];
        // A window keeps cases small; its ends cut through whatever stands there.
        let from = numbers.below(sample.len());
        let to = (from + 40 + numbers.below(600)).min(sample.len());
        let mut bytes = sample.as_bytes()[if case % 4 == 0 { 0 } else { from }..to].to_vec();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(bytes.len());
            match numbers.below(6) {
                0 => bytes.truncate(at),
                1 if !bytes.is_empty() => bytes[at] = (numbers.next() & 0x7f) as u8,
                2 if !bytes.is_empty() => drop(bytes.remove(at)),
                3 => {
                    let end = (at + numbers.below(30)).min(bytes.len());
                    let copy = bytes[at..end].to_vec();
                    let to = numbers.below(bytes.len());
                    bytes.splice(to..to, copy);
                }
                _ => {
                    let piece = PIECES[numbers.below(PIECES.len())];
                    bytes.splice(at..at, piece.bytes());
                }
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let parsed = read(&text);
        let mut last = 0;
        for d in &parsed.errors {
            assert!(!d.message.is_empty());
            assert!(d.span().start >= last, "errors are in the order of the text");
            last = d.span().start;
            for (span, _) in &d.labels {
                let range = span.start as usize..span.end as usize;
                assert!(text.get(range.clone()).is_some(), "case {case}: {range:?} of {text:?}");
            }
        }
        if !parsed.errors.is_empty() {
            recovered += 1;
        }
        if text.contains('\0') {
            // Strings keep their NULs, so the printed text is as wrong.
            continue;
        }
        // What was read prints to text that is read the same, with errors elsewhere or without.
        let printed = print(&parsed.module);
        let again = read(&printed);
        assert!(again.errors.is_empty(), "case {case}: {:?} in\n{printed}", again.errors);
        assert!(same(&parsed.module, &again.module), "case {case}:\n{printed}");
    }
    assert!(recovered > 5_000, "{recovered}");
}

#[test]
fn deep_nesting_is_an_error() {
    let n = 200_000;
    let deep = [
        in_body(&"{".repeat(n)),
        in_body(&format!("{}{}", "{".repeat(n), "}".repeat(n))),
        in_body(&format!("mov.b32 a, {}1{};", "(".repeat(n), ")".repeat(n))),
        in_body(&format!("mov.b32 a, {}1;", "(".repeat(n))),
        in_body(&format!("mov.b32 a, {}1;", "-".repeat(n))),
        in_body(&format!("mov.b32 a, {}1;", "(.s64)".repeat(n))),
        in_body(&format!("mov.b32 a, 1{};", "+1".repeat(n))),
        in_body(&format!("mov.b32 a, {}1;", "1?1:".repeat(n))),
        in_body(&format!("mov.b32 a, {}1;", "1?".repeat(n))),
        in_body(&format!("mov.b32 a, 1{};", "+(1+1)".repeat(n))),
        in_body(&format!("mov.b32 {}a;", "{".repeat(n))),
        in_body(&format!("mov.b32 {}a;", "[".repeat(n))),
        in_body(&format!("call {}a;", "(".repeat(n))),
        format!(".global .b32 a[] = {}1{};", "{".repeat(n), "}".repeat(n)),
        format!(".global .b8 a = {}b{};", "0xFF(".repeat(n), ")".repeat(n)),
        format!(".global .b8 a = {}b{};", "0xFF(1+2+".repeat(n), ")".repeat(n)),
        format!(".func {}", "(".repeat(n)),
        ".entry a() {".repeat(n),
    ];
    for text in deep {
        let parsed = read(&text);
        assert!(!parsed.errors.is_empty(), "{}", &text[..60]);
        print(&parsed.module);
    }
}

#[test]
fn usual_nesting_is_no_error() {
    for text in [
        in_body(&format!("{}{}", "{".repeat(200), "}".repeat(200))),
        in_body(&format!("mov.b32 a, {}1{};", "(".repeat(120), ")".repeat(120))),
        in_body(&format!("mov.b32 a, 1{};", "+1".repeat(200))),
        format!(".global .b32 a[] = {}1{};", "{".repeat(200), "}".repeat(200)),
    ] {
        assert_eq!(common::errors(&text), "");
    }
}

/// The lesser of two measurements.
fn time(text: &str) -> Duration {
    let once = || {
        let clock = Instant::now();
        std::hint::black_box(read(text));
        clock.elapsed()
    };
    once().min(once())
}

#[test]
fn time_is_linear() {
    let bodies: &[&str] = &[
        "add.s32 %r1, %r2, %r3;\n",
        "add.s32 %r1 %r2;\n",
        "add.s32 %r1, {%r2;\n",
        "add.s32 %r1\n",
        "}\n",
        "{ } ;",
        "@",
        "#\n",
        "# ",
        "# 1",
        "/* ",
        "\"",
        "\"\n",
        "é",
        "\0a",
        "a:",
        ".reg .b32 a\n",
        ".entry",
        ".entry e(",
        ".entry e() {",
        ".section .d {",
        ".visible ",
        "mov a, (",
        "1 ",
        "call (",
        "::",
        ".a::b:c",
        "( { ; ",
        "a . ",
        "0x",
        "-",
        "!",
    ];
    for piece in bodies {
        for prefix in
            ["", ".entry k() {\n", ".global .b32 a[] = {", ".entry k(", "mov.b32 a, ", ".entry k() { mov.b32 a, "]
        {
            let text = |bytes: usize| format!("{prefix}{}", piece.repeat(bytes / piece.len()));
            // Twenty times the text. A quadratic reader would need four hundred times as long. A busy machine may
            // disturb a measurement, but not each of several.
            let is_linear = (0..20).any(|_| {
                let small = time(&text(20_000)).max(Duration::from_micros(200));
                time(&text(400_000)) < 200 * small
            });
            assert!(is_linear, "{prefix:?} {piece:?}");
        }
    }
}

#[test]
fn errors_are_counted_up_to_a_bound() {
    let text = in_body(&"add.s32 ,;\n".repeat(120_000));
    let errors = read(&text).errors;
    assert_eq!(errors.len(), 100_001);
    assert_eq!(read(&in_body(&"add.s32 ,;\n".repeat(20_000))).errors.len(), 20_000);
}
