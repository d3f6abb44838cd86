//! Kernels that other compilers wrote, in `tests/kernels/corpus`, against references on the host, in every way in which they can be run.
//!
//! Files of one kernel differ by the target, the compiler's options, or both; two that differ only in the lines of version and target
//! are kept once. Sections of debug information are cut off; nothing else was changed.

use std::cell::Cell;

use handloom_runtime::{Backend, Bounds, Device, Engine, LoadError, Module};
use handloom_tests::reference::run::{Kernels, Way, each_way, folder, ways};
use handloom_tests::reference::{numba, nvrtc, products, tinygrad, triton};

/// The files of a kernel, without their ending.
fn variants(compiler: &str, kernel: &str) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder().join("corpus").join(compiler)).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        if let Some(stem) = file.strip_suffix(".ptx")
            && stem.split('.').next() == Some(kernel)
        {
            names.push(format!("corpus/{compiler}/{stem}"));
        }
    }
    names.sort_unstable();
    assert!(!names.is_empty(), "no file for {kernel} of {compiler}");
    names
}

/// Runs all files of a kernel, the first in all ways and with all checks, which find nothing (all files with four seeds: `HANDLOOM_CHECKED=all`). The others have no second code of Cranelift, for which most of the time would go by.
fn check(compiler: &str, kernel: &str, test: impl Fn(&Kernels<'_>)) {
    let mut ways = ways();
    let all_are_checked = std::env::var_os("HANDLOOM_CHECKED").is_some_and(|v| v == "all");
    for (i, name) in variants(compiler, kernel).into_iter().enumerate() {
        each_way(&ways, &name, &test);
        let checked = match (all_are_checked, i) {
            (true, _) => vec![(Engine::Jit, 0), (Engine::Jit, 1), (Engine::Jit, 8), (Engine::Interp, 3)],
            (false, 0) => vec![(Engine::Jit, 1)],
            (false, _) => vec![],
        };
        // Rightly told, by the manual: one folds by `a * b + a`, which is not the same for both lanes of a pair, and all lanes write what they have to one word then. In
        // the other a copy overwrites what `tcgen05.alloc` wrote, whose store is weak, without a proxy fence.
        let checked = if matches!(kernel, "scan_sort" | "persistent_ws") { vec![] } else { checked };
        let checked: Vec<Way> = checked.into_iter().map(|(engine, seed)| ways[0].checked(engine, seed)).collect();
        each_way(&checked, &name, &test);
        ways.retain(|way| {
            (way.engine, way.backend, way.bounds) != (Engine::Jit, Backend::Cranelift, Bounds::Contained)
        });
    }
}

/// The part of a computation that a file holds: `1` in `corpus/tinygrad/rand.1.nvrtc.sm80`.
fn part<'a>(k: &'a Kernels<'_>) -> &'a str {
    k.name().split('.').nth(1).unwrap_or_default()
}

#[test]
fn every_file_has_a_test() {
    let own = include_str!("corpus_results.rs");
    for compiler in ["numba", "nvrtc", "tinygrad", "triton"] {
        for entry in std::fs::read_dir(folder().join("corpus").join(compiler)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let kernel = name.split('.').next().unwrap_or_default();
            assert!(own.contains(&format!("\"{compiler}\", \"{kernel}\"")), "no test names {compiler}/{name}");
        }
    }
}

#[test]
fn nvrtc_saxpy() {
    check("nvrtc", "saxpy", |k| nvrtc::saxpy(k, !k.name().ends_with(".G")));
}

#[test]
fn nvrtc_layernorm() {
    check("nvrtc", "layernorm", |k| nvrtc::layernorm(k, k.name().ends_with(".fast")));
}

#[test]
fn nvrtc_math64() {
    check("nvrtc", "math64", nvrtc::math64);
}

#[test]
fn nvrtc_devcall() {
    for name in variants("nvrtc", "devcall") {
        let launched = [const { Cell::new(0) }; 3];
        each_way(&ways(), &name, |k| nvrtc::devcall(k, &launched[k.way.vectors as usize]));
    }
}

#[test]
fn nvrtc_printf() {
    check("nvrtc", "printf", nvrtc::printf);
}

#[test]
fn nvrtc_assert() {
    check("nvrtc", "assert", nvrtc::assert);
}

#[test]
fn nvrtc_files_of_clusters_and_products_load() {
    // Their entries are compiled and run one by one: `crates/cli/tests/program/corpus.rs`.
    for (compiler, kernel) in [("nvrtc", "hopper"), ("nvrtc", "mma_sync")] {
        for name in variants(compiler, kernel) {
            let text = std::fs::read_to_string(folder().join(format!("{name}.ptx"))).unwrap();
            if let Err(why) = Module::from_text(&Device::new().unwrap(), &name, &text) {
                panic!("{name}: {why}");
            }
        }
    }
}

#[test]
fn numba_axpy_strided() {
    check("numba", "axpy_strided", numba::axpy_strided);
}

#[test]
fn numba_matmul_shared() {
    check("numba", "matmul_shared", numba::matmul_shared);
}

#[test]
fn numba_reduce_shfl() {
    check("numba", "reduce_shfl", numba::reduce_shfl);
}

#[test]
fn numba_jacobi() {
    check("numba", "jacobi", numba::jacobi);
}

#[test]
fn numba_mandel() {
    check("numba", "mandel", numba::mandel);
}

#[test]
fn numba_blackscholes() {
    check("numba", "blackscholes", numba::blackscholes);
}

#[test]
fn numba_warp() {
    check("numba", "warp", numba::warp);
}

#[test]
fn numba_idiv() {
    check("numba", "idiv", numba::idiv);
}

#[test]
fn numba_math64() {
    check("numba", "math64", numba::math64);
}

#[test]
fn numba_devfn() {
    check("numba", "devfn", numba::devfn);
}

#[test]
fn numba_prints() {
    check("numba", "prints", numba::prints);
}

#[test]
fn tinygrad_add() {
    check("tinygrad", "add", tinygrad::add);
}

#[test]
fn tinygrad_idiv() {
    check("tinygrad", "idiv", |k| tinygrad::idiv(k, part(k)));
}

#[test]
fn tinygrad_casts() {
    check("tinygrad", "casts", |k| tinygrad::casts(k, part(k)));
}

#[test]
fn tinygrad_argmax() {
    check("tinygrad", "argmax", |k| tinygrad::argmax(k, part(k)));
}

#[test]
fn tinygrad_logsoftmax() {
    check("tinygrad", "logsoftmax", |k| tinygrad::logsoftmax(k, part(k)));
}

#[test]
fn tinygrad_maxpool() {
    check("tinygrad", "maxpool", tinygrad::maxpool);
}

#[test]
fn tinygrad_sum_big() {
    check("tinygrad", "sum_big", |k| tinygrad::sum_big(k, part(k)));
}

#[test]
fn tinygrad_matmul_f32() {
    check("tinygrad", "matmul_f32", tinygrad::matmul_f32);
}

#[test]
fn tinygrad_conv2d_wino() {
    check("tinygrad", "conv2d_wino", tinygrad::conv2d_wino);
}

#[test]
fn tinygrad_rand() {
    check("tinygrad", "rand", |k| tinygrad::random(k, part(k), 256));
}

#[test]
fn tinygrad_randn() {
    check("tinygrad", "randn", |k| tinygrad::random(k, part(k), 8192));
}

#[test]
fn tinygrad_trig_f64() {
    for name in variants("tinygrad", "trig_f64") {
        if name.contains("nvrtc") {
            each_way(&ways(), &name, tinygrad::trig_f64);
        }
    }
}

#[test]
fn tinygrad_wrong_ptx_is_refused() {
    // Its own renderer writes `ex2.approx.f64` and the like, which there is not: each is told at its line.
    let path = folder().join("corpus/tinygrad/trig_f64.0.ptxrender.sm80.ptx");
    let text = std::fs::read_to_string(path).unwrap();
    let device = Device::new().unwrap();
    let Err(LoadError::Diagnostics(list)) = Module::from_text(&device, "trig_f64", &text) else {
        panic!("the file was not refused");
    };
    let wrong = ["ex2.approx.f64", "lg2.approx.f64", "sin.approx.f64"];
    let lines: Vec<usize> = list.iter().map(|d| text[..d.labels[0].0.start as usize].lines().count()).collect();
    let want: Vec<usize> =
        text.lines().enumerate().filter(|(_, l)| wrong.iter().any(|w| l.contains(w))).map(|(i, _)| i + 1).collect();
    assert_eq!(lines, want);
}

#[test]
fn triton_softmax_f16() {
    check("triton", "softmax_f16", triton::softmax_f16);
}

#[test]
fn triton_scan_sort() {
    check("triton", "scan_sort", triton::scan_sort);
}

#[test]
fn triton_mathfn() {
    check("triton", "mathfn", triton::mathfn);
}

#[test]
fn triton_casts() {
    check("triton", "casts", triton::casts);
}

#[test]
fn triton_dbg() {
    check("triton", "dbg", triton::dbg);
}

#[test]
fn triton_matmul() {
    check("triton", "matmul_f16", products::matmul_f16);
    check("triton", "matmul_tf32", products::matmul_tf32);
    check("triton", "matmul_e5m2", products::matmul_e5m2);
    check("triton", "matmul_s8", products::matmul_s8);
}

#[test]
fn triton_attention() {
    check("triton", "attention", products::attention);
    check("triton", "attention_causal", products::attention);
}

#[test]
fn triton_scaled() {
    check("triton", "mxfp4", products::scaled);
    check("triton", "mxfp8", products::scaled);
}

#[test]
fn triton_persistent() {
    check("triton", "persistent", products::persistent);
    check("triton", "persistent_ws", products::persistent);
    check("triton", "made_maps", products::persistent);
}
