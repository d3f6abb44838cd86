//! Programs of other people that use CUDA, on `libcuda.so.1`, where they are installed.
//!
//! `ci/clients` installs them and sets `HANDLOOM_CLIENTS`, the folder of their Python environment. Without it each test says by name what it did not
//! start. `HANDLOOM_PROGRAM` is the `handloom` to use, with its libraries beside it.

use std::path::{Path, PathBuf};
use std::process::Command;

use handloom_tests::workspace::root;

/// The folder of the Python environment, if there is one; else says what is not started.
#[expect(clippy::print_stderr, reason = "a test that starts nothing says so")]
fn clients(what: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("HANDLOOM_CLIENTS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("not started: {what} is not installed (ci/clients installs it)");
    }
    folder
}

/// The `handloom` to use.
fn program() -> PathBuf {
    std::env::var_os("HANDLOOM_PROGRAM").map_or(root().join("target/release/handloom"), PathBuf::from)
}

/// Runs a script of `tests/clients` if the package that it uses is installed.
fn client(package: &str, script: &str, variables: &[(&str, &str)]) {
    client_with(package, script, &[], variables);
}

/// The same with arguments.
fn client_with(package: &str, script: &str, args: &[&Path], variables: &[(&str, &str)]) {
    let Some(folder) = clients(package) else { return };
    let python = folder.join("bin/python");
    let find =
        Command::new(&python).args(["-c", &format!("import {package}")]).output().expect("Python can be started");
    assert!(
        find.status.success(),
        "{package} is not in {}: {}",
        folder.display(),
        String::from_utf8_lossy(&find.stderr)
    );
    let script = root().join("tests/clients").join(script);
    let mut run = Command::new(program());
    run.args(["exec", "--poison", "--cache", "off", "--"])
        .arg(python)
        .arg(script)
        .args(args)
        .envs(variables.iter().copied());
    let output = run.output().expect("handloom can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{package}: {}\n{out}{err}", output.status);
    assert!(out.contains("ok"), "{package} says nothing:\n{out}{err}");
}

/// Our own package for Python, as `ci/python` installed it: `HANDLOOM_PYTHON` is the folder of that environment.
#[test]
#[expect(clippy::print_stderr, reason = "a test that starts nothing says so")]
fn the_python_package() {
    let Some(folder) = std::env::var_os("HANDLOOM_PYTHON").map(PathBuf::from) else {
        eprintln!("not started: the tests of the Python package (ci/python builds, installs and tests it)");
        return;
    };
    let mut run = Command::new(folder.join("bin/python"));
    let output = run.args(["-m", "pytest", "-q"]).arg(root().join("crates/python/tests")).output();
    let output = output.expect("Python can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}{err}", output.status);
}

#[test]
fn tinygrad() {
    client("tinygrad", "tinygrad_ops.py", &[("DEV", "CUDA:PTX")]);
}

/// `ptx_run` in the place of the emulator that tinygrad's mock GPU calls: `ci/capi` builds the library that `HANDLOOM_CAPI` names.
#[test]
#[expect(clippy::print_stderr, reason = "a test that starts nothing says so")]
fn tinygrad_by_ptx_run() {
    let Some(folder) = clients("tinygrad") else { return };
    let library = root().join("target/release/capi/lib/libhandloom.so.0");
    let library = std::env::var_os("HANDLOOM_CAPI").map_or(library, PathBuf::from);
    if !library.is_file() {
        return eprintln!("not started: there is no libhandloom (ci/capi builds it)");
    }
    let mut run = Command::new(folder.join("bin/python"));
    run.arg(root().join("tests/clients/tinygrad_mock.py")).env("HANDLOOM_CAPI", library).env("HANDLOOM_CACHE", "off");
    let output = run.output().expect("Python can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.ends_with("launches: ok\n"), "{}\n{out}{err}", output.status);
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

/// Kernels use arrays of numpy as they are.
#[test]
fn triton_with_plain_pointers() {
    client("triton", "triton_kernels.py", &[("HANDLOOM_OPEN_ADDRESSES", "1")]);
}

/// Kernels use tensors of a PyTorch on the CPU as they are. It is linked to libraries of NVIDIA's, for which others stand in.
#[test]
#[expect(clippy::print_stderr, reason = "a test that starts nothing says so")]
fn triton_with_torch() {
    let Some(folder) = clients("torch") else { return };
    let libraries = folder.join("stand-ins");
    if !libraries.is_dir() {
        return eprintln!("not started: torch is not installed (ci/clients --torch installs it)");
    }
    let libraries = libraries.to_str().expect("the folder has a name of UTF-8");
    let variables = [("HANDLOOM_OPEN_ADDRESSES", "1"), ("LD_LIBRARY_PATH", libraries)];
    client_with("triton", "triton_torch.py", &[], &variables);
}

#[test]
fn halide() {
    client("halide", "halide_pipeline.py", &[]);
}

#[test]
fn drjit() {
    client("drjit", "drjit_arrays.py", &[]);
}

#[test]
fn taichi() {
    client("taichi", "taichi_fields.py", &[]);
}

#[test]
fn cuda_core() {
    client("cuda.core", "cuda_core.py", &[]);
}

/// Device code in two files, linked by nvcc, and a program with the static runtime library, which is told what to do.
#[test]
fn other_ways_to_link() {
    let library = program().with_file_name("libraries").join("libcudart.so.13");
    client_with("nvidia", "nvcc_links.py", &[&library], &[]);
}

/// The programs of `tests/examples/cuda`, built by nvcc and linked to the runtime library.
#[test]
fn cuda_programs() {
    let Some(folder) = clients("nvcc") else { return };
    let (program, examples) = (program(), root().join("tests/examples/cuda"));
    let library = program.with_file_name("libraries").join("libcudart.so.13");
    let made = std::env::temp_dir().join(format!("handloom-cuda-{}", std::process::id()));
    let mut run = Command::new(folder.join("bin/python"));
    run.arg(examples.join("make.py")).arg("--library").arg(library);
    run.arg("--run").arg(format!("{} exec --poison --", program.display())).arg(&made);
    let output = run.output().expect("Python can be started");
    // What cannot be removed stays in the folder of temporary files.
    let _ = std::fs::remove_dir_all(&made);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}{err}", output.status);
}
