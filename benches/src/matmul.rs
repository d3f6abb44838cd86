//! A whole product of matrices as Triton makes it, beside its products of fragments alone.

use std::path::Path;

use half::f16;
use handloom_runtime::{Arg, Device, DeviceBuffer, LaunchConfig, Module, PreparedLaunch};
use serde_json::json;

use crate::cases::kernel;
use crate::data::{index, mixed};
use crate::measure::{on_one_processor, ratio, time, typical};
use crate::options::Options;
use crate::table::{Good, Section, figure, floor_cell, verdict};

/// The text in the corpus: blocks of 64 by 64 by 32 elements, four warps.
const TEXT: &str = "triton/matmul_f16.sm80.ptx";
const SHARED_BYTES: u32 = 16 << 10;
/// Least part of the speed of its products alone.
const FLOOR: f64 = 0.5;

/// Times it.
pub fn run(options: &Options) -> Section {
    let heads = ["matmul", "size", "ours", "its products alone", "ratio", "floor"];
    let mut section = Section::new("Triton's product of matrices: one thread, medians", &heads);
    let name = "matmul/f16";
    let path = options.corpus.join(TEXT);
    if !options.wants(name) {
        return section;
    }
    if !path.is_file() {
        section.skip(name, &format!("no {}", path.display()));
    } else if let Err(why) = measure(&mut section, name, &path, options) {
        section.fail(name, &why);
    }
    section
}

/// Eighths between -1 and 1: sums of their products are exact.
fn eighths(first: u32, n: u32) -> Vec<f32> {
    (first..first + n).map(|i| (mixed(i) % 17) as f32 / 8.0 - 1.0).collect()
}

fn measure(section: &mut Section, name: &str, path: &Path, options: &Options) -> Result<(), String> {
    let n: u32 = if options.judges() { 1024 } else { 128 };
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let device = Device::new().map_err(|e| e.to_string())?;
    let (a, b) = (eighths(0, n * n), eighths(n * n, n * n));
    let half_bytes = |v: &[f32]| v.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect::<Vec<u8>>();
    let copy = |v: &[f32]| device.copy_of(&half_bytes(v)).map_err(|e| e.to_string());
    let zeroed = |bytes: u32| device.zeroed(bytes.into()).map_err(|e| e.to_string());
    let (of_a, of_b, out) = (copy(&a)?, copy(&b)?, zeroed(2 * n * n)?);
    let config = LaunchConfig {
        threads: 1,
        shared_bytes: SHARED_BYTES,
        engine: options.engine(),
        ..LaunchConfig::new([n / 64, n / 64, 1], [128, 1, 1])
    };
    let none = Arg::from(0_u64);
    let mut args = vec![Arg::from(&of_a), Arg::from(&of_b), Arg::from(&out)];
    args.extend([Arg::from(n); 6]);
    args.extend([none; 2]);
    let mut whole = prepared(&device, "matmul", &text, &config, &args)?;
    let _ = whole.run().map_err(|e| e.to_string())?;
    check(&a, &b, &out, index(n))?;

    // As many products, all of fragments in registers: four of 16 by 16 by 8 in each turn of a warp.
    let (warps, turns) = (32, n.pow(3) / (32 * 8192));
    let (from_a, from_b, sums) = (zeroed(warps * 1024)?, zeroed(warps * 2048)?, zeroed(warps * 2048)?);
    let config =
        LaunchConfig { threads: 1, engine: options.engine(), ..LaunchConfig::new([warps / 4, 1, 1], [128, 1, 1]) };
    let args = [Arg::from(&from_a), Arg::from(&from_b), Arg::from(&sums), Arg::from(turns)];
    let mut alone = prepared(&device, "mma_sums", kernel!("mma_sums"), &config, &args)?;
    let steps = |turns: u32| f64::from(warps) * f64::from(turns) * 8192.0;
    let work = f64::from(n) * f64::from(n) * f64::from(n);
    if steps(turns) != work {
        return Err(format!("{} multiply-adds are not {work}", steps(turns)));
    }

    let (mut of_whole, mut of_alone) = (Vec::new(), Vec::new());
    for _ in 0..=options.rounds() {
        for (launch, samples) in [(&mut whole, &mut of_whole), (&mut alone, &mut of_alone)] {
            let (ran, sample) = on_one_processor(|| time(|| launch.run().map(|_| ())));
            ran.map_err(|e| e.to_string())?;
            samples.push(sample);
        }
    }
    // The first round warmed up.
    let (of_whole, of_alone) = (&of_whole[1..], &of_alone[1..]);
    let share = ratio(of_alone, of_whole, options.clock);
    let speed = |samples| 2.0 * work / typical(samples, options.clock);
    section.rows.push(vec![
        "f16".to_owned(),
        format!("{n} cubed"),
        format!("{} GFLOP/s", figure(speed(of_whole))),
        format!("{} GFLOP/s", figure(speed(of_alone))),
        figure(share),
        floor_cell(share, Some(FLOOR), Good::Above, options.judges()),
    ]);
    section.objects.push(json!({
        "name": name,
        "status": "ok",
        "size": n,
        "gflop_s": speed(of_whole),
        "products_gflop_s": speed(of_alone),
        "ratio": share,
        "floor": FLOOR,
        "verdict": options.judges().then(|| verdict(share, FLOOR, Good::Above)),
    }));
    Ok(())
}

fn prepared(
    device: &Device,
    entry: &str,
    text: &str,
    config: &LaunchConfig,
    args: &[Arg<'_>],
) -> Result<PreparedLaunch, String> {
    let module = Module::from_text(device, entry, text).map_err(|e| e.to_string())?;
    let function = module.function(Some(entry)).map_err(|e| e.to_string())?;
    PreparedLaunch::new(&function, config, args).map_err(|e| e.to_string())
}

/// Compares some rows with sums made here.
fn check(a: &[f32], b: &[f32], out: &DeviceBuffer, n: usize) -> Result<(), String> {
    let got = out.to_vec();
    for row in (0..n).step_by(37) {
        let mut sums = vec![0.0_f32; n];
        for (k, a) in a[row * n..][..n].iter().enumerate() {
            sums.iter_mut().zip(&b[k * n..][..n]).for_each(|(sum, b)| *sum += a * b);
        }
        for (column, sum) in sums.iter().enumerate() {
            let at = 2 * (row * n + column);
            let got = f16::from_le_bytes([got[at], got[at + 1]]);
            if got != f16::from_f32(*sum) {
                return Err(format!("wrong result: {got} instead of {sum} at row {row}, column {column}"));
            }
        }
    }
    Ok(())
}
