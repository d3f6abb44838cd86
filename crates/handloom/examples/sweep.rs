//! A sweep of launch shapes: the same result whatever the blocks are, and in whatever order they start.

#![expect(clippy::print_stdout, reason = "it says how it went")]

use handloom::{Device, Error, LaunchConfig};

const PTX: &str = include_str!("../../../tests/kernels/saxpy.ptx");

/// Runs it.
pub fn main() -> Result<(), Error> {
    let device = Device::new()?;
    let kernel = device.load_module(PTX)?.load_function("saxpy")?;
    let stream = device.default_stream();
    let n = 1000_u32;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let want: Vec<f32> = x.iter().map(|x| 1.0 + 0.5 * x).collect();
    let x = device.copy_of(&x)?;
    for threads in [1, 31, 32, 33, 256, 1024] {
        for seed in 0..4 {
            let y = device.copy_of(&vec![1.0_f32; n as usize])?;
            let shape = LaunchConfig::new([n.div_ceil(threads), 1, 1], [threads, 1, 1]);
            let config = LaunchConfig { seed, ..shape };
            let report = stream.launch_builder(&kernel).arg(&n).arg(&0.5_f32).arg(&x).arg(&y).launch(config)?;
            assert_eq!(y.to_vec(), want, "{threads} threads, seed {seed}");
            println!("{threads:4} threads, seed {seed}: {} blocks, {:?}", report.blocks, report.run);
        }
    }
    Ok(())
}
