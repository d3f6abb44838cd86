//! What is compiled is kept for later processes.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::{Folder, Ran, SCALE, floats};

const LINE: &str = "run k.ptx scale --format json --grid 1 --block 32 in:x.bin out:y.bin:16 2.5 4";

fn folder(name: &str) -> Folder {
    let f = Folder::with(name, SCALE);
    f.write("x.bin", floats(&[1.0, 2.0, -3.0, 0.5]));
    f
}

/// Runs a line with some variables, and returns whether the code was kept before.
fn run(f: &Folder, line: &str, variables: &[(&str, &str)]) -> bool {
    let mut command = f.command(line);
    command.env_remove("HANDLOOM_CACHE").env("HOME", f.path().join("home")).env_remove("XDG_CACHE_HOME");
    let ran = Ran::of(&command.envs(variables.iter().copied()).output().unwrap()).ends(0);
    let [o] = &ran.objects()[..] else { panic!("{ran:?}") };
    assert_eq!(o["status"], "ok");
    if line == LINE {
        assert_eq!(f.read("y.bin"), floats(&[2.5, 5.0, -7.5, 1.25]));
    }
    o.get("cached").is_some_and(|c| c == true)
}

/// The names of all files in a folder. A tier of an entry is one; what runs long on a host that holds it up may want one tier more than elsewhere.
fn names(folder: &Path) -> BTreeSet<String> {
    let list = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|i| i.path());
    let name = |p: &Path| p.file_name().unwrap().to_string_lossy().into_owned();
    list.flat_map(|p| if p.is_dir() { names(&p) } else { BTreeSet::from([name(&p)]) }).collect()
}

#[test]
fn a_second_process_compiles_nothing() {
    let f = folder("cache-second");
    for backend in ["cranelift", "wide"] {
        let here = [("HANDLOOM_CACHE", "kept"), ("HANDLOOM_BACKEND", backend)];
        assert!(!run(&f, LINE, &here));
        assert!(run(&f, LINE, &here));
        // `compile` says so too, for people as well, and for another shape there is nothing.
        assert!(run(&f, "compile k.ptx --format json --block 32", &here));
        assert!(!run(&f, "compile k.ptx --format json --block 64", &here));
    }
    let mut command = f.command("compile k.ptx --block 32");
    let ran = Ran::of(&command.env("HANDLOOM_CACHE", "kept").output().unwrap()).ends(0);
    assert!(ran.out.contains("taken from the cache in "), "{ran:?}");
}

#[test]
fn the_folder_is_that_of_the_user() {
    let f = folder("cache-folder");
    assert!(!run(&f, LINE, &[("HANDLOOM_CACHE", "off")]));
    assert!(!f.has("home"), "nothing is written");
    assert!(!run(&f, LINE, &[]));
    // One file for each tier that was needed.
    let made = names(&f.path().join("home/.cache/handloom/code"));
    assert!(!made.is_empty());
    assert!(run(&f, LINE, &[]));
    assert!(names(&f.path().join("home")).is_superset(&made));
    let xdg = f.path().join("xdg");
    let xdg = [("XDG_CACHE_HOME", xdg.to_str().unwrap())];
    assert!(!run(&f, LINE, &xdg));
    assert!(!names(&f.path().join("xdg/handloom/code")).is_disjoint(&made));
    // A relative one does not count.
    assert!(run(&f, LINE, &[("XDG_CACHE_HOME", "relative")]));
    // Where nothing can be written, everything else goes on.
    f.write("file", "");
    for nowhere in ["file", "file/below", "/proc/nowhere"] {
        assert!(!run(&f, LINE, &[("HANDLOOM_CACHE", nowhere)]));
    }
}

#[test]
fn processes_at_once() {
    let f = folder("cache-at-once");
    let start = |i: usize| {
        let line = LINE.replace("y.bin", &format!("y{i}.bin"));
        let mut command = f.command(&line);
        command.env("HANDLOOM_CACHE", "kept").stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..8).map(start).collect();
    for (i, child) in children.into_iter().enumerate() {
        Ran::of(&child.wait_with_output().unwrap()).ends(0);
        assert_eq!(f.read(&format!("y{i}.bin")), floats(&[2.5, 5.0, -7.5, 1.25]));
    }
    assert!(run(&f, LINE, &[("HANDLOOM_CACHE", "kept")]));
    assert!(!run(&f, LINE, &[("HANDLOOM_CACHE", "alone")]));
    // They left what one of them would have, and nothing half written.
    let kept = names(&f.path().join("kept"));
    assert!(!kept.is_disjoint(&names(&f.path().join("alone"))), "{kept:?}");
    assert!(kept.len() <= 3 && kept.iter().all(|n| n.ends_with(".code") && n.len() == 32 + 5), "{kept:?}");
}
