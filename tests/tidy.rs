//! Rules of the tree that no compiler checks: who uses whom, sizes of files, a test for each form, licences, forbidden words.

use std::collections::BTreeSet;

use handloom_tests::circles::{self, By};
use handloom_tests::crates::{self, CRATES, Crate, FREE};
use handloom_tests::workspace::{SourceFile, features, files, packages, root};
use handloom_tests::{coverage, filetest};

/// Files and folders of `runtime/src` from the bottom up: each uses only itself and those before it.
const RUNTIME: &[&str] = &[
    "words", "error", "finding", "heap", "lock", "run", "memory", "kept", "device", "module", "children", "grid",
    "warp", "rows", "sched", "engine", "trap", "launch", "stream",
];

/// What only tests of a crate may use beside its own packages.
const DEV: &[&str] = &["rustc_apfloat", "half", "handloom-diag", "rustix"];

/// Folders of sources where imports run one way, and in some of them calls of methods too: no circle of files.
const ONE_WAY: &[(&str, By)] = &[
    ("crates/diag/src/", By::NamesAndCalls),
    ("crates/syntax/src/", By::Names),
    ("crates/ir/src/", By::NamesAndCalls),
    ("crates/isa/src/", By::NamesAndCalls),
    ("crates/check/src/", By::Names),
    ("crates/lower/src/", By::Names),
    ("crates/counts/src/", By::Names),
    ("crates/profile/src/", By::Names),
    ("crates/interp/src/", By::Names),
    ("crates/plan/src/", By::NamesAndCalls),
    ("crates/codegen/src/", By::NamesAndCalls),
    ("crates/wide/src/", By::Names),
    ("crates/store/src/", By::NamesAndCalls),
];

/// What of `plan` is for one generator of code, how others would name it, and who may.
const STRATEGY: (&str, &str, &[&str]) = (
    "crates/plan/src/packs/",
    "packs",
    &["crates/plan/src/lib.rs", "crates/plan/tests/", "crates/codegen/", "tests/tidy.rs"],
);

/// Licences whose text asks for nothing that a binary of ours does not do. One choice of an `OR` is enough.
const LICENCES: &[&str] =
    &["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "Zlib", "Unicode-3.0"];

/// Longest file in lines.
const LINES: usize = 800;

/// Files that may be longer, and why.
const LONG: &[(&str, &str)] = &[
    ("Cargo.lock", "written by cargo"),
    ("ISA.md", "printed from the table of forms"),
    ("tests/filetests/launch/launches.ptx", "written by nvcc"),
];

/// Folders of data that other programs wrote, where no rule on sizes or words holds.
const DATA: &[&str] = &["tests/kernels/", "benches/c/"];

/// Endings of the files that people write.
const WRITTEN: &[&str] = &[".rs", ".toml", ".md", ".ptx", ".sh", ".py", ".cu", ".c"];

/// Words that must not stand in Rust code, in halves so that this file may name them.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("to", "do!("), "finish it, or refuse it with a diagnostic"),
    (concat!("unimple", "mented!("), "finish it, or refuse it with a diagnostic"),
    (concat!("#[ig", "nore"), "assert what it gives today, with a note"),
    (concat!("FIX", "ME"), "fix it or open an issue"),
    (concat!("X", "XX"), "say what is meant"),
];

/// Beginnings of paths that exist on one machine only.
const PATHS: &[&str] = &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

/// Where `unsafe` may stand: memory and code of devices, the loader of code, pointers of programs that call a C interface, memory of arrays and signals of Python.
const UNSAFE: &[&str] = &[
    "runtime/src/",
    "crates/codegen/src/load.rs",
    "crates/libcuda/",
    "crates/libcudart/",
    "crates/capi/",
    "crates/python/src/",
];

fn fail(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n  {}", wrong.join("\n  "));
}

fn written(f: &SourceFile) -> bool {
    WRITTEN.iter().any(|e| f.path.ends_with(e)) && !DATA.iter().any(|d| f.path.starts_with(d))
}

#[test]
fn crates_use_whom_they_may() {
    let mut wrong = Vec::new();
    for p in packages().iter().filter(|p| p.is_member) {
        let short = if p.name == "handloom" { Some("handloom") } else { p.name.strip_prefix("handloom-") };
        let Some(short) = short else {
            wrong.push(format!("`{}` is not called handloom-FOLDER", p.name));
            continue;
        };
        if FREE.iter().any(|(name, _)| *name == short) {
            continue;
        }
        let Some(&Crate { crates, outside, .. }) = CRATES.iter().find(|c| c.name == short) else {
            wrong.push(format!("`{short}` has no line in the table"));
            continue;
        };
        let may = |d: &str| {
            d.strip_prefix("handloom-").map_or(outside.contains(&d) || crates.contains(&d), |c| crates.contains(&c))
        };
        wrong.extend(p.dependencies.iter().filter(|d| !may(d)).map(|d| format!("`{short}` uses `{d}`")));
        let may_in_tests = |d: &str| may(d) || DEV.contains(&d);
        let dev = p.dev_dependencies.iter().filter(|d| !may_in_tests(d));
        wrong.extend(dev.map(|d| format!("the tests of `{short}` use `{d}`")));
    }
    fail("edges that no line of the table allows", &wrong);
}

#[test]
fn crates_stand_above_those_that_they_use() {
    let place = |name: &str| CRATES.iter().position(|c| c.name == name);
    let mut wrong = Vec::new();
    for (i, c) in CRATES.iter().enumerate() {
        let above = c.crates.iter().filter(|used| place(used).is_none_or(|there| there >= i));
        wrong.extend(above.map(|used| format!("`{}` uses `{used}`", c.name)));
    }
    fail("edges to a crate that does not stand above in the table", &wrong);
}

#[test]
fn the_table_of_crates_is_printed() {
    let (begin, end) = ("<!-- printed from tests/src/crates.rs -->\n\n", "\n<!-- end -->");
    let path = root().join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path).expect("ARCHITECTURE.md can be read");
    let (before, rest) = text.split_once(begin).expect("the table has a beginning");
    let (written, after) = rest.split_once(end).expect("the table has an end");
    let printed = crates::table();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, [before, begin, &printed, end, after].concat()).expect("ARCHITECTURE.md can be written");
        return;
    }
    assert!(
        written == printed,
        "the table in ARCHITECTURE.md differs from tests/src/crates.rs; UPDATE_EXPECT=1 writes it"
    );
}

#[test]
fn imports_run_one_way() {
    let all = files();
    let mut wrong = Vec::new();
    for (folder, by) in ONE_WAY {
        let own = all.iter().filter_map(|f| {
            let path = f.path.strip_prefix(folder).filter(|path| path.ends_with(".rs"))?;
            Some((path.to_owned(), f.text.clone()))
        });
        for circle in circles::circles(&own.collect::<Vec<_>>(), *by) {
            let arrows: Vec<String> =
                circle.iter().map(|(from, to, what)| format!("{from} -> {to} ({what})")).collect();
            wrong.push(format!("{folder}\n    {}", arrows.join("\n    ")));
        }
    }
    fail("files that import or call each other in a circle: move what both need below both", &wrong);
}

/// The words of a text that speak of packs, but for the ops of that name (`Pack64`).
fn words_of_packs(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.split('_').any(|part| ["pack", "packs", "PACK", "PACKS"].contains(&part)))
}

#[test]
fn facts_know_no_pack_width() {
    let (folder, module, may) = STRATEGY;
    let import = format!("handloom_plan::{module}");
    let mut wrong = Vec::new();
    let mut strategy = 0;
    for f in files().iter().filter(|f| f.path.ends_with(".rs")) {
        if f.path.starts_with(folder) {
            strategy += 1;
        } else if may.iter().all(|m| !f.path.starts_with(m)) {
            if f.text.contains(&import) {
                wrong.push(format!("{}: `{import}`", f.path));
            }
            if f.path.starts_with("crates/plan/src/") {
                wrong.extend(words_of_packs(&f.text).map(|word| format!("{}: `{word}`", f.path)));
            }
        }
    }
    assert!(strategy > 0, "no file in {folder}");
    fail("what every generator of code reads speaks of the packs of one of them", &wrong);
    // The rule sees what it is to see.
    assert_eq!(words_of_packs("by_pack(PACKS); Vector::Pack64 unpacked").collect::<Vec<_>>(), ["by_pack", "PACKS"]);
}

#[test]
fn folders_of_the_runtime_use_those_below() {
    let mut wrong = Vec::new();
    let place = |name: &str| RUNTIME.iter().position(|r| *r == name);
    for f in files().iter().filter(|f| f.path.ends_with(".rs")) {
        let Some(path) = f.path.strip_prefix("runtime/src/").filter(|p| *p != "lib.rs") else { continue };
        let own = path.split(['/', '.']).next().unwrap_or_default();
        let Some(here) = place(own) else {
            wrong.push(format!("`{own}` has no place in the order"));
            continue;
        };
        let code = f.text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for used in code.flat_map(|line| line.split("crate::").skip(1)) {
            let used: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            match place(&used) {
                None => wrong.push(format!("{}: `crate::{used}`, where its folder should be named", f.path)),
                Some(there) if there > here => wrong.push(format!("{}: `{own}` uses `{used}`", f.path)),
                Some(_) => {}
            }
        }
    }
    fail("imports against the order of the runtime's folders", &wrong);
}

#[test]
fn licences_are_allowed() {
    let mut wrong = Vec::new();
    for p in packages() {
        match &p.license {
            None => wrong.push(format!("{}: none", p.name)),
            Some(text) if !is_allowed(text) => wrong.push(format!("{}: {text}", p.name)),
            Some(_) => {}
        }
    }
    fail("licences that are not in the list", &wrong);
}

/// Whether an SPDX expression can be met with the list. `/` is the old way to write `OR`.
fn is_allowed(text: &str) -> bool {
    let text = text.replace(" / ", " OR ").replace('/', " OR ");
    let group = |t: &str| {
        t.trim().trim_start_matches('(').trim_end_matches(')').split(" OR ").any(|l| LICENCES.contains(&l.trim()))
    };
    text.split(" AND ").all(group)
}

#[test]
fn spdx_expressions_are_understood() {
    assert!(is_allowed("Apache-2.0 / MIT") && is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(is_allowed("GPL-3.0 OR MIT"));
    assert!(!is_allowed("GPL-3.0") && !is_allowed("MIT AND GPL-3.0"));
}

#[test]
fn files_are_short() {
    let too_long = |f: &&SourceFile| f.text.lines().count() > LINES && LONG.iter().all(|(path, _)| *path != f.path);
    let files = files();
    let wrong = files.iter().filter(|f| written(f)).filter(too_long);
    let wrong: Vec<String> = wrong.map(|f| format!("{}: {} lines", f.path, f.text.lines().count())).collect();
    fail("files of more than 800 lines", &wrong);
}

#[test]
fn each_test_is_compiled() {
    let mut wrong = Vec::new();
    let files = files();
    for f in files.iter().filter(|f| f.path.ends_with(".rs")) {
        let (folder, name) = f.path.rsplit_once('/').unwrap_or_default();
        // A file of a test program that has several is a module of its `main.rs`.
        let main = files.iter().find(|m| m.path == format!("{folder}/main.rs") && folder.contains("/tests/"));
        let module = format!("mod {};", name.trim_end_matches(".rs"));
        if main.is_some_and(|m| name != "main.rs" && m.text.lines().all(|line| line != module)) {
            wrong.push(format!("{}: no module of its test program", f.path));
        }
        // Packages whose library has no tests of its own say so, and are then not compiled for them.
        let package = f.path.split_once("/src/").map(|(package, _)| format!("{package}/Cargo.toml"));
        let without = package.is_some_and(|p| files.iter().any(|m| m.path == p && m.text.contains("test = false")));
        if without && f.text.lines().any(|line| line.trim() == "#[test]") {
            wrong.push(format!("{}: tests, where the package promised none", f.path));
        }
    }
    fail("tests that are never compiled", &wrong);
}

#[test]
fn each_form_has_a_file_test() {
    let tests = filetest::collect(&filetest::root()).expect("the file tests can be read");
    let runs = tests.iter().filter(|t| t.text.contains("//@ test: run") || t.text.contains("//@ test: trap"));
    let texts: Vec<&str> = runs.map(|t| t.text.as_str()).collect();
    fail("forms without a file test", &coverage::missing(texts.into_iter()));
}

#[test]
fn each_form_that_cannot_run_has_a_check_test() {
    let tests = filetest::collect(&filetest::root()).expect("the file tests can be read");
    let checks = tests.iter().filter(|t| t.text.contains("//@ test: check"));
    let texts: Vec<&str> = checks.map(|t| t.text.as_str()).collect();
    fail("forms without a check test", &coverage::unchecked(texts.into_iter()));
}

#[test]
fn side_files_are_goldens_of_a_test() {
    let tests = filetest::collect(&filetest::root()).expect("the file tests can be read");
    let wanted: BTreeSet<String> = tests
        .iter()
        .filter_map(|t| Some((t, filetest::parse(&t.text).ok()?)))
        .flat_map(|(t, d)| {
            d.goldens.iter().map(|g| format!("tests/filetests/{}.{}", t.name, g.ending())).collect::<Vec<_>>()
        })
        .collect();
    let is_side_file = |f: &&SourceFile| f.path.starts_with("tests/filetests/") && !f.path.ends_with(".ptx");
    let wrong = files()
        .iter()
        .filter(is_side_file)
        .filter(|f| !wanted.contains(&f.path))
        .map(|f| f.path.clone())
        .collect::<Vec<_>>();
    fail("side files that no test asks for", &wrong);
}

#[test]
fn chapters_of_file_tests_are_those_of_the_records() {
    let chapters: BTreeSet<String> = files()
        .iter()
        .filter_map(|f| f.path.strip_prefix("crates/isa/src/")?.split_once('/').map(|(chapter, _)| chapter.to_owned()))
        .collect();
    let wrong: BTreeSet<String> = files()
        .iter()
        .filter_map(|f| f.path.strip_prefix("tests/filetests/isa/")?.split_once('/').map(|(c, _)| c.to_owned()))
        .filter(|c| !chapters.contains(c))
        .collect();
    fail("folders that are no chapter", &wrong.into_iter().collect::<Vec<_>>());
}

#[test]
fn no_forbidden_words() {
    let mut wrong = Vec::new();
    for f in files().iter().filter(|f| f.path.ends_with(".rs")) {
        for (i, line) in f.text.lines().enumerate() {
            let found = FORBIDDEN.iter().filter(|(word, _)| line.contains(word));
            wrong.extend(found.map(|(word, help)| format!("{}:{}: `{word}`: {help}", f.path, i + 1)));
        }
    }
    fail("words that must not stand", &wrong);
}

#[test]
fn no_paths_of_one_machine() {
    let mut wrong = Vec::new();
    for f in files().iter().filter(|f| !f.path.ends_with("Cargo.lock")) {
        for (i, line) in f.text.lines().enumerate() {
            // `x` stands for anybody in examples.
            let somebody = |p: &str| line.match_indices(p).any(|(at, _)| !line[at + p.len()..].starts_with("x/"));
            if PATHS.iter().any(|p| somebody(p)) {
                wrong.push(format!("{}:{}: {}", f.path, i + 1, line.trim()));
            }
        }
    }
    fail("paths that exist on one machine only", &wrong);
}

#[test]
fn unsafe_stands_where_it_may() {
    let keyword = concat!("un", "safe");
    let mut wrong = Vec::new();
    for f in files().iter().filter(|f| f.path.ends_with(".rs") && !UNSAFE.iter().any(|u| f.path.starts_with(u))) {
        for (i, line) in f.text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let uses = [" {", " fn", " impl", " extern", " trait", "("].map(|after| format!("{keyword}{after}"));
            if uses.iter().any(|u| code.contains(u.as_str())) && !code.contains(&format!("forbid({keyword}")) {
                wrong.push(format!("{}:{}: {}", f.path, i + 1, line.trim()));
            }
        }
    }
    fail("unsafe code outside the runtime, the loader and the C interface", &wrong);
}

#[test]
fn crates_forbid_unsafe_code() {
    let forbid = concat!("#![forbid(un", "safe_code)]");
    let is_root = |p: &str| p.ends_with("src/lib.rs") || p.ends_with("src/main.rs");
    let may = |p: &str| {
        let all =
            ["runtime/", "crates/codegen/", "crates/libcuda/", "crates/libcudart/", "crates/capi/", "crates/python/"];
        all.iter().any(|f| p.starts_with(f))
    };
    let files = files();
    let roots = files.iter().filter(|f| is_root(&f.path) && !may(&f.path) && !f.text.contains(forbid));
    fail("crates without `forbid`", &roots.map(|f| f.path.clone()).collect::<Vec<_>>());
}

/// Packages that are asked for other features are built again, and all that is built on them.
#[test]
fn everything_is_built_once() {
    let with_tests = features(&["--workspace", "--edges", "normal,build,dev"]);
    let parts: [&[&str]; 5] = [
        &["--workspace"],
        &["-p", "handloom-cli"],
        &["-p", "handloom-benches"],
        // `ci/libraries` for the tests.
        &["-p", "handloom-libcuda", "-p", "handloom-libcudart", "-p", "handloom-cli", "-p", "handloom-tests"],
        // `ci/capi`.
        &["-p", "handloom-capi", "-p", "handloom-cli", "-p", "handloom-tests"],
    ];
    for part in parts {
        let own = features(&[part, &["--edges", "normal,build"]].concat());
        let other: Vec<String> = own.difference(&with_tests).cloned().collect();
        fail(&format!("features that only {part:?} asks for"), &other);
    }
}
