//! `libhandloom` as programs in C and C++ see it: built and installed by `ci/capi` with the profile of the tests, its examples run by both kinds of library.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use handloom_tests::workspace::root;

/// Where it is installed.
fn prefix() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        // Processes of several tests may do this at the same time: the script lets one of them.
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("capi");
        let done = Command::new(root().join("ci/capi")).args(["--profile", "test"]).arg(&folder).output();
        let done = done.expect("ci/capi can be started");
        assert!(done.status.success(), "ci/capi: {}", String::from_utf8_lossy(&done.stderr));
        folder
    })
}

/// What `pkg-config` says, as words.
fn flags(what: &[&str]) -> Vec<String> {
    let path = prefix().join("lib/pkgconfig");
    let said = Command::new("pkg-config").args(what).arg("handloom").env("PKG_CONFIG_PATH", &path).output();
    let said = said.expect("pkg-config can be started");
    assert!(said.status.success(), "pkg-config: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8_lossy(&said.stdout).split_whitespace().map(str::to_owned).collect()
}

/// Builds a program with a compiler and runs it.
fn run(compiler: &[&str], source: &str, link: &[String]) -> Output {
    let source = root().join(source);
    let name = source.file_name().and_then(|n| n.to_str()).expect("a source has a name");
    let built = prefix().join(format!("{name}-{}-{}", link.len(), std::process::id()));
    let mut cc = Command::new(compiler[0]);
    cc.args(&compiler[1..]).args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&built).arg(&source).args(link);
    let done = cc.output().expect("the compiler can be started");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut run = Command::new("timeout");
    run.args(["-s", "KILL", "120"]).arg(&built).env("LD_LIBRARY_PATH", prefix().join("lib"));
    let output = run.env("HANDLOOM_CACHE", "off").output().expect("the program can be started");
    std::fs::remove_file(&built).expect("the program can be removed");
    output
}

fn text(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}{err}", output.status);
    out.into_owned()
}

#[test]
fn the_example_in_c() {
    let shared = flags(&["--cflags", "--libs"]);
    let mut linked = flags(&["--cflags"]);
    linked.push(prefix().join("lib/libhandloom.a").display().to_string());
    linked.extend(flags(&["--libs", "--static"]).into_iter().filter(|f| f.starts_with("-l") && f != "-lhandloom"));
    for link in [shared, linked] {
        let told = text(&run(&["cc", "-std=c11"], "crates/capi/examples/saxpy.c", &link));
        assert!(told.starts_with("12 14 16\nsaxpy: 1 block\nout_of_bounds\ntrap: out of bounds: "), "{told}");
        assert!(told.contains("0 bytes past the end of memory of the process of 12 bytes"), "{told}");
        // y was 0, and 100 times x was added.
        assert!(told.ends_with("\n100 200 300\n"), "{told}");
    }
}

#[test]
fn the_example_in_cpp() {
    let told = text(&run(&["c++", "-std=c++17"], "crates/capi/examples/races.cpp", &flags(&["--cflags", "--libs"])));
    assert!(told.starts_with("race"), "{told}");
    assert!(told.contains("exchange.ptx:") && told.ends_with("clean: 32 31\n"), "{told}");
}

#[test]
fn what_is_wrong_is_an_error() {
    let mut link = flags(&["--cflags", "--libs"]);
    link.push("-lpthread".into());
    let told = text(&run(&["cc", "-std=gnu11"], "tests/capi/misuse.c", &link));
    assert!(told.ends_with("ok\n"), "{told}");
}

#[test]
fn streams_events_and_stops() {
    let mut link = flags(&["--cflags", "--libs"]);
    link.push("-lpthread".into());
    let told = text(&run(&["cc", "-std=gnu11"], "tests/capi/streams.c", &link));
    assert!(told.ends_with("ok\n"), "{told}");
}

/// What `ci/bench` does not time, since it knows no C library: by hand, with a release build. Here the sums are looked at.
#[test]
fn the_program_that_times_launches() {
    let told = text(&run(&["cc", "-std=gnu11"], "tests/capi/speed.c", &flags(&["--cflags", "--libs"])));
    assert!(told.ends_with("ok\n"), "{told}");
}

/// The page for users begins with a program.
#[test]
fn the_page() {
    let page = std::fs::read_to_string(root().join("crates/capi/README.md")).expect("the page can be read");
    let program = page.split("```c\n").nth(1).and_then(|p| p.split("```").next()).expect("the page has a program");
    let source = prefix().join(format!("page-{}.c", std::process::id()));
    std::fs::write(&source, program).expect("the program can be written");
    let source = source.to_str().expect("the folder has a name of UTF-8");
    let told = text(&run(&["cc"], source, &flags(&["--cflags", "--libs"])));
    assert_eq!(told, "12 14 16\n");
}

/// `cbindgen` takes long to build: who changed the interface makes the header again.
#[test]
fn the_header_is_current() {
    let sum = "cat crates/capi/cbindgen.toml crates/capi/src/*.rs | cksum | cut -d ' ' -f 1";
    let sum = Command::new("sh").args(["-c", sum]).current_dir(root()).env("LC_ALL", "C").output();
    let sum = sum.expect("the shell can be started");
    let want = format!("// made from sources with the sum {}", String::from_utf8_lossy(&sum.stdout).trim());
    let header = std::fs::read_to_string(root().join("crates/capi/include/handloom.h")).expect("there is a header");
    assert!(header.trim_end().ends_with(&want), "the header is not made from these sources: run `ci/capi --header`");
}
