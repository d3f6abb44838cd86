//! C programs on the libraries that programs of CUDA find: `libcuda.so.1` and those of the runtime API, as `ci/libraries` builds them.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::workspace::root;

/// The folder of the libraries, below a folder of the tests for what they make. They are built with the profile of the tests, once for all.
///
/// # Panics
/// They cannot be built.
pub fn libraries(temporary: &str) -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        // Processes of several tests may do this at the same time: each links elsewhere and moves what it made here.
        let folder = PathBuf::from(temporary).join("libraries");
        let done = Command::new(root().join("ci/libraries")).args(["--profile", "test"]).arg(&folder).output();
        let done = done.expect("ci/libraries can be started");
        assert!(done.status.success(), "ci/libraries: {}", String::from_utf8_lossy(&done.stderr));
        folder
    })
}

/// Builds a C program that uses a library of the folder, with options for the compiler.
///
/// # Panics
/// It cannot be built.
pub fn built(folder: &Path, library: &str, (name, source): (&str, &Path), options: &[&str]) -> PathBuf {
    let built = folder.join(format!("{name}-{library}"));
    // Several tests run the same program: it is built once, since nobody can start what somebody writes.
    static BUILT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut known = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if !known.contains(&built) {
        let made = folder.join(format!("{name}-{library}.{}", std::process::id()));
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall", "-Werror", "-Wno-unused-const-variable", "-o"]).arg(&made).args(options).arg(source);
        cc.arg("-L").arg(folder).args([&format!("-l:{library}"), "-lpthread"]);
        let done = cc.output().expect("the C compiler can be started");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        moved_once(&made, &built);
        known.insert(built.clone());
    }
    built
}

/// Moves a program that was made to where it is started, unless the same lies there already: a process of another test may be running that one, and would no
/// longer find the names and lines of its own code once another file, even with the same bytes, had its name.
fn moved_once(made: &Path, built: &Path) {
    let lock = File::create(built.with_extension("lock")).expect("a lock can be made");
    lock.lock().expect("no other process moves a program meanwhile");
    let bytes = |path| std::fs::read(path).ok();
    if bytes(made) == bytes(built) {
        std::fs::remove_file(made).expect("what is there twice can be removed");
    } else {
        std::fs::rename(made, built).expect("the program can be moved");
    }
}
