//! C programs on the libraries that programs of CUDA find: `libcuda.so.1` and those of the runtime API, as `ci/libraries` builds them.

use std::collections::BTreeSet;
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
        std::fs::rename(&made, &built).expect("the program can be moved");
        known.insert(built.clone());
    }
    built
}
