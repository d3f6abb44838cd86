//! Damaged PTX is wrong PTX: a diagnostic with a place within seconds, never a panic, never a hang.

use std::time::{Duration, Instant};

use crate::common::{EMPTY, Folder, HEAD, SCALE};

/// Checks a text and gives the objects; each error has a place.
#[track_caller]
fn wrong(f: &Folder, data: impl AsRef<[u8]>) -> Vec<serde_json::Value> {
    f.write("k.ptx", data);
    let start = Instant::now();
    let all = f.run("check --format json k.ptx").ends(3).objects();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert!(!all.is_empty());
    assert!(all.iter().all(|o| o["line"].as_u64() > Some(0) && o["column"].as_u64() > Some(0)), "{all:?}");
    assert!(all.iter().all(|o| o["kind"] == "program"), "{all:?}");
    let human = f.run("run k.ptx --grid 1 --block 1 --engine interp").ends(3);
    assert!(human.err.contains("--> k.ptx:"), "{human:?}");
    f.run("compile k.ptx").ends(3);
    all
}

#[test]
fn empty_files() {
    let f = Folder::new("empty");
    for text in ["", "\n", "// nothing\n", "\0"] {
        wrong(&f, text);
    }
}

#[test]
fn nul_bytes() {
    let f = Folder::with("nul", "");
    let all = wrong(&f, format!("{HEAD}.entry k() {{ re\0t; }}\n"));
    assert_eq!((&all[0]["code"], &all[0]["line"], &all[0]["column"]), (&"E0103".into(), &4.into(), &16.into()));
    f.write("k.ptx", format!("{HEAD}{EMPTY}\0"));
    f.run("check k.ptx").ends(0);
}

#[test]
fn bytes_that_are_no_text() {
    let f = Folder::new("bytes");
    let mut text = format!("{HEAD}// caf").into_bytes();
    text.extend(b"\xe9\n.entry k() { frob; ret; }\n");
    let all = wrong(&f, &text);
    let codes: Vec<&str> = all.iter().map(|o| o["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["E0103", "E0307"]);
    assert_eq!((&all[0]["line"], &all[0]["column"], &all[0]["end_column"]), (&4.into(), &7.into(), &8.into()));
    f.write("k.ptx", format!("{HEAD}// caf\u{e9}\n{EMPTY}"));
    f.run("check k.ptx").ends(0);
}

#[test]
fn truncated_files() {
    let f = Folder::new("truncated");
    let text = format!("{HEAD}{SCALE}");
    for length in (1..text.trim_end().len()).step_by(97) {
        if length > HEAD.len() || length < ".version 8.0\n.target".len() {
            wrong(&f, &text[..length]);
        }
    }
}

#[test]
fn binary_noise() {
    let f = Folder::new("noise");
    let mut state = 1_u32;
    let noise: Vec<u8> = (0..1 << 20)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()[3]
        })
        .collect();
    wrong(&f, noise);
    wrong(&f, b"\x7fELF\x02\x01\x01\x00\x00\x00");
}

#[test]
fn deep_nesting() {
    let f = Folder::new("deep");
    wrong(&f, format!("{HEAD}.entry k() {}", "{".repeat(200_000)));
    wrong(
        &f,
        format!(
            "{HEAD}.entry k() {{ .reg .b32 %r<2>; mov.b32 %r1, {}1{}; }}",
            "(".repeat(200_000),
            ")".repeat(200_000)
        ),
    );
    wrong(&f, format!("{HEAD}.entry k() {{ .reg .b32 %r<2>; mov.b32 %r1, {}1; }}", "-".repeat(200_000)));
    wrong(&f, format!("{HEAD}.global .u32 a[1] = {}", "{".repeat(200_000)));
}

#[test]
fn huge_files() {
    let f = Folder::new("huge");
    let line = "    add.u32 %r1, %r1, %r2;\n";
    f.write("k.ptx", format!("{HEAD}.entry k() {{ .reg .b32 %r<3>;\n{}    ret;\n}}\n", line.repeat(200_000)));
    let start = Instant::now();
    f.run("check k.ptx").ends(0);
    wrong(&f, "%".repeat(5_000_000));
    wrong(&f, format!("{HEAD}.entry {}() {{ ret }}", "k".repeat(1_000_000)));
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}
