//! Programs of other people that use CUDA, on `libcuda.so.1`, where they are installed.
//!
//! `ci/clients` installs them and sets `HANDLOOM_CLIENTS`, the folder of their Python environment. Without it each test says by name what it did not
//! start. `HANDLOOM_PROGRAM` is the `handloom` to use, with its libraries beside it.

use std::path::PathBuf;
use std::process::Command;

use handloom_tests::workspace::root;

/// Runs a script of `tests/clients` if the package that it uses is installed.
fn client(package: &str, script: &str, variables: &[(&str, &str)]) {
    let folder = std::env::var_os("HANDLOOM_CLIENTS").map(PathBuf::from);
    let Some(folder) = folder else {
        eprintln!("not started: {package} is not installed (ci/clients installs it)");
        return;
    };
    let python = folder.join("bin/python");
    let find =
        Command::new(&python).args(["-c", &format!("import {package}")]).output().expect("Python can be started");
    assert!(
        find.status.success(),
        "{package} is not in {}: {}",
        folder.display(),
        String::from_utf8_lossy(&find.stderr)
    );
    let program = std::env::var_os("HANDLOOM_PROGRAM").map_or(root().join("target/release/handloom"), PathBuf::from);
    let script = root().join("tests/clients").join(script);
    let mut run = Command::new(program);
    run.args(["exec", "--poison", "--"]).arg(python).arg(script).envs(variables.iter().copied());
    let output = run.output().expect("handloom can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{package}: {}\n{out}{err}", output.status);
    assert!(out.contains("ok"), "{package} says nothing:\n{out}{err}");
}

#[test]
fn tinygrad() {
    client("tinygrad", "tinygrad_ops.py", &[("DEV", "CUDA:PTX")]);
}

#[test]
fn numba() {
    client("numba_cuda", "numba_kernels.py", &[]);
}

#[test]
fn triton() {
    client("triton", "triton_kernels.py", &[]);
}

#[test]
fn triton_of_older_devices() {
    client("triton", "triton_kernels.py", &[("HANDLOOM_CC", "8.0")]);
}

#[test]
fn cuda_core() {
    client("cuda.core", "cuda_core.py", &[]);
}
