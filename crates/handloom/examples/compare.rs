//! Two versions of a kernel: the largest difference of their results, in units in the last place.

#![expect(clippy::print_stdout, reason = "it says how it went")]

use handloom::{Device, Error, LaunchConfig};

/// With a fused multiply and add.
const FUSED: &str = include_str!("../../../tests/kernels/saxpy.ptx");

/// `saxpy` of a text, of `x` and ones.
fn run(device: &Device, text: &str, x: &[f32]) -> Result<Vec<f32>, Error> {
    let kernel = device.load_module(text)?.load_function("saxpy")?;
    let n = x.len() as u32;
    let (x, y) = (device.copy_of(x)?, device.copy_of(&vec![1.0_f32; x.len()])?);
    let stream = device.default_stream();
    let config = LaunchConfig::for_num_elems(n);
    let report = stream.launch_builder(&kernel).arg(&n).arg(&0.1_f32).arg(&x).arg(&y).launch(config)?;
    println!("compiled in {:?}, ran in {:?}", report.compile, report.run);
    Ok(y.to_vec())
}

/// Runs it.
pub fn main() -> Result<(), Error> {
    let device = Device::new()?;
    // Rounded twice: after the product and after the sum.
    let fused = "fma.rn.f32 \t%f4, %f2, %f1, %f3;";
    assert!(FUSED.contains(fused));
    let plain = FUSED.replace(fused, "mul.rn.f32 %f4, %f2, %f1; add.rn.f32 %f4, %f4, %f3;");
    let x: Vec<f32> = (0..10_000).map(|i| i as f32 * 0.37).collect();
    let (a, b) = (run(&device, FUSED, &x)?, run(&device, &plain, &x)?);
    let far = |(a, b): (&f32, &f32)| a.to_bits().abs_diff(b.to_bits());
    let differ = a.iter().zip(&b).filter(|(a, b)| a != b).count();
    let most = a.iter().zip(&b).map(far).max().unwrap_or(0);
    println!("{differ} of {} elements differ, by at most {most} ulp", x.len());
    assert!(differ > 0 && most <= 1);
    Ok(())
}
