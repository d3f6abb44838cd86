//! `explain`: each page shows what it says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Folder, Ran};

/// Codes, kinds of traps and classes of findings among the objects of a run, and diagnostics alone.
fn shown(ran: &Ran) -> (Vec<String>, Vec<String>) {
    let objects = ran.objects();
    let of = |key: &str| objects.iter().filter_map(|o| o[key].as_str()).map(str::to_owned).collect::<Vec<_>>();
    let codes = of("code");
    let traps = objects.iter().filter_map(|o| o["trap"]["kind"].as_str().or(o["kind"].as_str())).map(str::to_owned);
    let all = codes.iter().cloned().chain(traps).chain(of("class")).chain(of("finding")).collect();
    (all, codes)
}

fn text<'a>(o: &'a Value, key: &str) -> &'a str {
    o[key].as_str().unwrap_or_else(|| panic!("no `{key}` in {o}"))
}

#[test]
fn each_wrong_example_shows_its_code_and_each_right_one_nothing() {
    let f = Folder::new("explain");
    let rows = f.run("explain --format json").ends(0).objects();
    assert!(rows.len() > 40, "{}", rows.len());
    for row in &rows {
        let code = text(row, "code");
        let page = &f.run(&format!("explain --format json {code}")).ends(0).objects()[0];
        assert_eq!(page["title"], row["title"]);
        // Examples of traps were seen to be right at the traps; those in C are run by the tests of the driver library.
        if row["kind"] == "driver error" {
            assert!(page["about"].is_string() || page["wrong"].is_null() || row["traps"].is_array(), "{page}");
            continue;
        }
        // Calls of programs are seen by the tests of the driver library.
        if page["wrong"].is_null() {
            assert_eq!(code, "refused");
            continue;
        }
        if let Some(job) = page["job"].as_str() {
            f.write("job.json", job);
        }
        let run = |which: &str| {
            f.write("k.ptx", text(&page[which], "ptx"));
            let line = text(&page[which], "command").strip_prefix("handloom ").expect("a command of handloom");
            f.run(&format!("{line} --format json"))
        };
        let (all, codes) = shown(&run("wrong"));
        assert!(all.iter().any(|c| c == code), "{code}: {all:?}");
        assert!(codes.iter().all(|c| c == code), "{code}: {codes:?}");
        let right = run("right").ends(0);
        let (all, codes) = shown(&right);
        assert!(codes.is_empty() && !all.iter().any(|c| c == code), "{code}: {right:?}");
    }
}

/// Errors that the sources of the driver name, and those alone, have pages. The words by which programs tell of them lead there.
#[test]
fn each_error_of_the_driver_is_explained() {
    let f = Folder::new("explain_driver");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("crates/ir/src/trap.rs")];
    ["runtime/src", "crates/driver/src", "crates/libcuda/src"].iter().for_each(|p| sources(&root.join(p), &mut files));
    let mut named = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let is_driver = file.components().any(|c| c.as_os_str() == "driver" || c.as_os_str() == "libcuda");
        for rest in text.split(if is_driver { "Code::" } else { "DriverError::" }).skip(1) {
            let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
            if name.len() > 2 && name != "SUCCESS" && name.chars().all(|c| c.is_ascii_uppercase() || c == '_') {
                named.insert(format!("CUDA_ERROR_{name}"));
            }
        }
    }
    let rows = f.run("explain --format json").ends(0).objects();
    let pages = rows.iter().filter(|row| row["kind"] == "driver error").map(|row| text(row, "code").to_owned());
    assert_eq!(pages.collect::<BTreeSet<_>>(), named);
    let wanted = "CUDA_ERROR_ILLEGAL_ADDRESS (driver error): an illegal memory access was encountered\n";
    for word in
        ["cuda_error_illegal_address", "cudaErrorIllegalAddress", "700", "an illegal memory access was encountered"]
    {
        let ran = f.run(&format!("explain {word}")).ends(0);
        assert!(ran.out.starts_with(wanted) && ran.out.contains("`handloom explain out_of_bounds`"), "{ran:?}");
    }
    let refused = f.run("explain cudaErrorECCUncorrectable").ends(2);
    refused.says(
        "`CUDA_ERROR_ECC_UNCORRECTABLE` is `uncorrectable ECC error encountered`, which nothing of Handloom returns",
    );
}

/// All files of Rust below a folder.
fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        match entry.is_dir() {
            true => sources(&entry, all),
            false if entry.extension().is_some_and(|e| e == "rs") => all.push(entry),
            false => {}
        }
    }
}

/// Tables of classes are held against the pages by a unit test; some words of findings stand in the code that makes them. Each word has a page, or a list of
/// those of its classes.
#[test]
fn each_word_of_a_finding_is_explained() {
    let f = Folder::new("explain_findings");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    ["runtime/src", "crates/audit/src", "crates/driver/src"].iter().for_each(|p| sources(&root.join(p), &mut files));
    let mut words = BTreeSet::from(["race", "sync", "barrier", "uninitialised"].map(str::to_owned));
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for made in text.split("Finding::new(").skip(1) {
            // Kind and class, where they are literals.
            let literals = made.split(',').take(2).filter_map(|w| w.trim().strip_prefix('"')?.strip_suffix('"'));
            words.extend(literals.map(str::to_owned));
        }
    }
    assert!(["leak", "malloc", "freed", "variable", "unordered"].iter().all(|w| words.contains(*w)), "{words:?}");
    for word in words {
        let ran = f.run(&format!("explain {word}")).ends(0);
        assert!(ran.out.contains(" (finding)") || ran.out.contains(" (trap)"), "{ran:?}");
    }
    let ran = f.run("explain race").ends(0);
    assert!(ran.out.starts_with("race (finding): its classes") && ran.out.contains("\nunordered "), "{ran:?}");
    let ran = f.run("explain sync --format json").ends(0);
    assert!(ran.objects().iter().any(|o| o["code"] == "async_unwaited"), "{ran:?}");
}

#[test]
fn codes_are_found_as_reports_write_them() {
    let f = Folder::new("explain_words");
    let ran = f.run("explain scope too narrow").ends(0);
    assert!(ran.out.starts_with("scope_too_narrow (finding): ordered by release and acquire"), "{ran:?}");
    assert!(
        ran.out.contains("\nWrong: handloom run k.ptx --check=race --grid 2 --block 1 zero:8\n\n    .version 8.0\n")
    );
    assert!(f.run("explain e0303").ends(0).out.starts_with("E0303 (diagnostic): an operand of the wrong type\n"));
    assert!(f.run("explain double free").ends(0).out.starts_with("freed (finding): "));
    f.run("explain out_of_bound").ends(2).says("there is no code `out_of_bound`; did you mean `out_of_bounds`?");
    f.run("explain cuda_error_illegal_adress").ends(2).says("did you mean `CUDA_ERROR_ILLEGAL_ADDRESS`?");
    f.run("explain nonsense").ends(2).says("`handloom explain` lists the codes");
    f.write("k.ptx", format!("{}{}", crate::common::HEAD, crate::common::WRONG));
    f.run("check k.ptx").ends(3).says("1 error in 1 file; `handloom explain E0301` says more");
}
