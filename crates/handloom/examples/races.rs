//! Races: a kernel that exchanges values through shared memory, without its barrier and with it.

#![expect(clippy::print_stdout, reason = "it says how it went")]

use handloom::{Check, Counts, Device, Error, LaunchConfig, LaunchReport};

const RACY: &str = handloom::doc::RACY;

/// Runs it with checks.
fn checked(text: &str) -> Result<LaunchReport, Error> {
    let device = Device::new()?;
    let kernel = device.load_module(text)?.load_function("neighbour")?;
    let x: Vec<u32> = (0..64).collect();
    let (x, y) = (device.copy_of(&x)?, device.zeroed::<u32>(64)?);
    let mut config = LaunchConfig::new([1, 1, 1], [64, 1, 1]).checked([Check::Race, Check::Sync]);
    if let Some(check) = &mut config.check {
        check.races.keeps_events = true;
    }
    device.default_stream().launch_builder(&kernel).arg(&x).arg(&y).launch(config)
}

/// Runs it.
pub fn main() -> Result<(), Error> {
    let told = checked(RACY)?.clean().unwrap_err();
    println!("{told}\n");
    assert!(told.contains("race: nothing orders the write of"), "{told}");

    let with_barrier = RACY.replace("xor.b32", "bar.sync 0;\n    xor.b32");
    let report = checked(&with_barrier)?;
    report.clean().expect("nothing is found");
    // Each thread reads and writes 4 bytes of both memories.
    let counts = report.check.and_then(|check| check.counts()).expect("events were kept");
    let bytes = Counts { global_read: 256, global_written: 256, shared_read: 256, shared_written: 256 };
    assert_eq!(counts, bytes);
    println!("with a barrier nothing is found: {counts:?}");
    Ok(())
}
