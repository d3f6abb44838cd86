//! The unit test of a kernel: what it computes, at the edges too, and that it stays inside of its buffers.
//!
//! In a crate of yours the functions below are marked `#[test]`, and `cargo test` runs them.

#![expect(clippy::print_stdout, reason = "it says how it went")]

use handloom::{Device, Error, ErrorKind, LaunchConfig, TrapKind};

const PTX: &str = include_str!("../../../tests/kernels/saxpy.ptx");

/// `y + a * x` by the kernel, which is told that there are `n` elements.
fn saxpy(n: u32, a: f32, x: &[f32], y: &[f32]) -> Result<Vec<f32>, Error> {
    let device = Device::new()?;
    let kernel = device.load_module(PTX)?.load_function("saxpy")?;
    let (x, y) = (device.copy_of(x)?, device.copy_of(y)?);
    let stream = device.default_stream();
    let config = LaunchConfig::for_num_elems(n);
    let report = stream.launch_builder(&kernel).arg(&n).arg(&a).arg(&x).arg(&y).launch(config)?;
    assert_eq!(report.blocks, u64::from(n.div_ceil(256)));
    Ok(y.to_vec())
}

// #[test]
fn adds_what_it_is_given() -> Result<(), Error> {
    assert_eq!(saxpy(3, 2.0, &[1.0, 2.0, 3.0], &[10.0; 3])?, [12.0, 14.0, 16.0]);
    // One element more than a block has threads.
    let (x, y) = ([0.5; 257], [1.0; 257]);
    assert_eq!(saxpy(257, 4.0, &x, &y)?, [3.0; 257]);
    Ok(())
}

// #[test]
fn a_wrong_count_is_caught() {
    let error = saxpy(4, 2.0, &[1.0; 3], &[1.0; 3]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Trap(TrapKind::OutOfBounds));
    println!("{error}");
}

/// Runs it.
pub fn main() -> Result<(), Error> {
    adds_what_it_is_given()?;
    a_wrong_count_is_caught();
    println!("ok");
    Ok(())
}
