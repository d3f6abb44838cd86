//! `compile` on what other compilers wrote, entry by entry: one that uses something unsupported hides none of the others.
//!
//! `HANDLOOM_CORPUS=FOLDER` adds all modules below a folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::{ENGINES, Folder};
use serde_json::{Value, json};

/// Files with entries that are wrong: their compiler writes instructions that do not exist. All others must compile.
const WRONG: &[&str] = &["trig_f64.0.ptxrender", "trig_f64.1.ptxrender"];

/// All modules below a folder.
fn modules(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            modules(&path, found);
        } else if path.extension().is_some_and(|e| e == "ptx") {
            found.insert(path);
        }
    }
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/corpus")
}

/// What is wrong with the result of an entry.
fn fault(object: &Value) -> Option<String> {
    let (file, entry) = (object["file"].as_str()?, object["entry"].as_str()?);
    let name = Path::new(file).file_name()?.to_str()?;
    let refused = WRONG.iter().any(|w| name.starts_with(w));
    let ok = object["status"] == "ok";
    (ok == refused).then(|| format!("{name}: {entry}: {}", if ok { "compiles" } else { "does not compile" }))
}

#[test]
fn every_entry_that_can_be_compiled_is() {
    let mut files = BTreeSet::new();
    modules(&corpus(), &mut files);
    if let Some(more) = std::env::var_os("HANDLOOM_CORPUS") {
        modules(Path::new(&more), &mut files);
    }
    assert!(files.len() > 100, "only {} modules", files.len());
    let folder = Folder::new("corpus");
    let mut entries = 0;
    let mut wrong = Vec::new();
    // Blocks of one warp, of rows that are parts of a warp, and of no whole number of warps.
    for (i, file) in files.iter().enumerate() {
        let block = ["256", "16,16", "33", "8,4,3"][i % 4];
        let mut command = folder.command(&format!("compile --format json --block {block}"));
        let ran = crate::common::Ran::of(&command.arg(file).output().unwrap());
        if !matches!(ran.status, 0 | 3 | 4) {
            wrong.push(format!("{} ends with {}: {}", file.display(), ran.status, ran.err));
        }
        let objects = ran.objects();
        // Those with a severity are diagnostics.
        let results = objects.iter().filter(|o| o.get("severity").is_none());
        entries += results.clone().count();
        wrong.extend(results.filter_map(fault));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(entries > 150, "only {entries} entries");
}

#[test]
fn clusters_of_compiled_programs_run() {
    let folder = Folder::new("hopper");
    let job = json!({"module": "hopper.ptx", "buffers": {"o": {"zero": 512}}, "outputs": {"o": "o.bin"},
        "launches": [{"entry": "cluster_x", "grid": [4], "block": [32], "args": [{"buffer": "o"}]}]});
    for target in ["sm90", "sm90a", "sm100", "sm100a"] {
        let file = corpus().join(format!("nvrtc/hopper.{target}.ptx"));
        folder.write("hopper.ptx", std::fs::read(file).unwrap());
        folder.write("j.json", job.to_string());
        for engine in ENGINES {
            // Each block reads the number of the other one of its cluster, 2 blocks, and its own number plus 1 that the other left.
            folder.run(&format!("run --job j.json --engine {engine}")).ends(0);
            let want: Vec<u8> = [4_u32, 4, 8, 8].iter().flat_map(|v| v.to_le_bytes().repeat(32)).collect();
            assert_eq!(folder.read("o.bin"), want, "{target} on {engine}");
        }
    }
}

#[test]
fn copies_of_compiled_programs_run() {
    let folder = Folder::new("hopper_copies");
    let numbers: Vec<u32> = (0..1024).collect();
    let [doubled, row]: [Vec<u32>; 2] = [numbers.iter().map(|n| 4 * n).collect(), numbers.clone()];
    let job = json!({"module": "hopper.ptx",
        "buffers": {"g": {"values": numbers, "type": "f32"}, "o": {"zero": 4096}, "t": {"zero": 4096}},
        "tensor_maps": {"m": {"buffer": "g", "type": "f32", "dims": [32, 32], "box": [32, 32]}},
        // What is copied is doubled, written, and added to what was written.
        "launches": [{"entry": "bulk", "grid": 1, "block": 1024, "args": [{"buffer": "g"}, {"buffer": "o"}]},
            {"entry": "tma2d", "grid": 1, "block": 1024, "args": [{"tensor_map": "m"}, {"buffer": "t"}]}],
        "expect": {"o": {"values": doubled, "type": "f32"}, "t": {"values": row, "type": "f32"}}});
    for target in ["sm90", "sm100a"] {
        let file = corpus().join(format!("nvrtc/hopper.{target}.ptx"));
        folder.write("hopper.ptx", std::fs::read(file).unwrap());
        folder.write("j.json", job.to_string());
        for engine in ENGINES {
            folder.run(&format!("run --job j.json --engine {engine}")).ends(0);
        }
    }
}
