//! The front half on real and on damaged modules: what compilers wrote is accepted and survives printing, nothing makes it panic, and many
//! errors take little time.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use handloom_check::check_text;
use handloom_diag::{FileId, Kind, Severity};
use handloom_syntax::{parse, print, same};
use handloom_tests::rng::Rng;
use handloom_tests::workspace::root;

/// All `.ptx` files below a folder.
fn modules(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            modules(&path, found);
        } else if path.extension().is_some_and(|e| e == "ptx") {
            found.push(path);
        }
    }
}

fn real_modules() -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    modules(&root().join("tests/kernels"), &mut paths);
    paths.sort();
    assert!(paths.len() > 50, "only {} modules", paths.len());
    paths.into_iter().map(|p| (p.clone(), std::fs::read_to_string(p).expect("a module is text"))).collect()
}

#[test]
fn what_compilers_wrote_is_accepted_and_survives_printing() {
    for (path, text) in real_modules() {
        let tree = parse(&text, FileId(0));
        let printed = print(&tree.module);
        let again = parse(&printed, FileId(0));
        assert!(tree.errors.is_empty() && again.errors.is_empty(), "{}", path.display());
        assert!(same(&tree.module, &again.module), "{} changes when it is printed", path.display());
        let wrong = check_text(&text, FileId(0)).diagnostics.into_iter();
        let wrong: Vec<_> = wrong.filter(|d| d.severity == Severity::Error && d.kind == Kind::Program).collect();
        // Its f64 forms of `.approx` do not exist; the assembler refuses it too.
        let is_wrong = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("trig_f64.0.ptxrender"));
        assert_eq!(!wrong.is_empty(), is_wrong, "{}: {wrong:?}", path.display());
    }
}

#[test]
fn twenty_thousand_wrong_lines_take_little_time() {
    let mut text = String::from(".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .b32 %r<9>;\n");
    for i in 0..20_000 {
        let line = match i % 5 {
            0 => format!("add.u32 %r0, %r1, %nothing{i};"),
            1 => "add.f32 %r0, %r1, 1;".to_owned(),
            2 => "frobnicate.u32 %r0;".to_owned(),
            3 => "mul.u32 %r0, %r1, %r2;".to_owned(),
            _ => "ld.global.u32 %r0, %r1 %r2;".to_owned(),
        };
        let _ = writeln!(text, "{line}");
    }
    text.push_str("ret;\n}\n");
    let start = Instant::now();
    let told = check_text(&text, FileId(0)).diagnostics.len();
    let took = start.elapsed();
    assert!(told >= 20_000, "{told} diagnostics");
    // Ten times what it takes at rest, since tests run side by side.
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn bodies_that_never_end_take_little_time() {
    let text = ".entry e() {\n".repeat(20_000);
    let start = Instant::now();
    assert!(check_text(&text, FileId(0)).diagnostics.len() >= 20_000);
    let took = start.elapsed();
    // Ten times what it takes at rest. A reader that looks at the rest of the text for each of them would take longer.
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// Changes bytes, doubles and drops pieces, and moves pieces of one module into another.
fn damaged(text: &str, other: &str, rng: &mut Rng) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=rng.below(6) {
        let at = rng.below(bytes.len().max(1));
        let end = (at + rng.below(40)).min(bytes.len());
        match rng.below(5) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            2 => {
                let from = rng.below(other.len().max(1));
                let to = (from + rng.below(60)).min(other.len());
                bytes.splice(at..end, other.as_bytes()[from..to].iter().copied());
            }
            3 => bytes.splice(at..at, [b"{([<@%.;:,|!~-+0"[rng.below(16)]; 3]).for_each(drop),
            _ => {
                if let Some(b) = bytes.get_mut(at) {
                    *b = b' ' + (*b).wrapping_mul(31) % 95;
                }
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn damaged_modules_make_nothing_panic() {
    let all: Vec<String> = real_modules().into_iter().map(|(_, t)| t).filter(|t| t.len() < 12_000).collect();
    let mut rng = Rng::new(0x6a61_636b);
    for round in 0..600 {
        let (a, b) = (&all[rng.below(all.len())], &all[rng.below(all.len())]);
        let text = damaged(a, b, &mut rng);
        let tree = parse(&text, FileId(0));
        let printed = print(&tree.module);
        let _ = parse(&printed, FileId(0));
        let start = Instant::now();
        let _ = check_text(&text, FileId(0));
        assert!(start.elapsed() < Duration::from_secs(5), "round {round} takes too long:\n{text}");
    }
}
