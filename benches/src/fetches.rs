//! Fetches from textures: time of one lane.

use handloom_ir::num::image::{BASE_AT, Kind, Spec};
use handloom_runtime::{Arg, Device, LaunchConfig, Module, PreparedLaunch};
use serde_json::json;

use crate::data::{Expected, float_bytes};
use crate::measure::{on_one_processor, time, typical};
use crate::options::Options;
use crate::table::{Good, Section, figure, floor_cell, verdict};

/// Texels of a side.
const SIDE: u16 = 256;
const BLOCKS: u16 = 16;
const THREADS: u16 = 256;
/// Longest time of a lane, in nanoseconds.
const FLOOR_NS: f64 = 8.0;

/// Times fetches.
pub fn run(options: &Options) -> Section {
    let mut section = Section::new("textures: one thread, medians", &["fetch", "", "a lane", "floor"]);
    if options.wants("fetch/bilinear")
        && let Err(why) = bilinear(&mut section, options)
    {
        section.fail("fetch/bilinear", &why);
    }
    section
}

fn bilinear(section: &mut Section, options: &Options) -> Result<(), String> {
    let times: u16 = if options.judges() { 64 } else { 4 };
    let device = Device::new().map_err(|e| e.to_string())?;
    // What lies at a texel is linear, so that each fetch is exact.
    let texels: Vec<f32> = (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| f32::from(x) + 4.0 * f32::from(y))).collect();
    let texels = device.copy_of(&float_bytes(&texels)).map_err(|e| e.to_string())?;
    let spec = json!({ "width": SIDE, "height": SIDE, "filter": "linear" });
    let spec: Spec = serde_json::from_value(spec).map_err(|e| e.to_string())?;
    let mut record = spec.object(Kind::Texture).map_err(|e| e.to_string())?.encode();
    record[BASE_AT as usize..][..8].copy_from_slice(&texels.address().to_le_bytes());
    let record = device.copy_of(&record).map_err(|e| e.to_string())?;
    let n = usize::from(BLOCKS) * usize::from(THREADS);
    let out = device.zeroed(4 * n as u64).map_err(|e| e.to_string())?;

    let module = Module::from_text(&device, "fetch", include_str!("../ptx/fetch.ptx")).map_err(|e| e.to_string())?;
    let function = module.function(Some("fetch_bilinear")).map_err(|e| e.to_string())?;
    let config = LaunchConfig {
        threads: 1,
        engine: options.engine(),
        ..LaunchConfig::new([BLOCKS.into(), 1, 1], [THREADS.into(), 1, 1])
    };
    let args = [Arg::from(&record), Arg::from(&out), Arg::from(u32::from(times))];
    let mut launch = PreparedLaunch::new(&function, &config, &args).map_err(|e| e.to_string())?;
    let _ = launch.run().map_err(|e| e.to_string())?;
    let want = (0..BLOCKS).flat_map(|block| {
        (0..THREADS).map(move |thread| {
            let (x, y) = (f32::from(thread) / 2.0 + 1.0, f32::from(block) + 1.0);
            let value = |i: u16| {
                let (x, y) = (x + 17.0 / 256.0 * f32::from(i), y + 13.0 / 256.0 * f32::from(i));
                (x - 0.5) + 4.0 * (y - 0.5)
            };
            (0..times).fold(0, |bits, i| bits ^ value(i).to_bits())
        })
    });
    Expected::Words(want.collect()).check(&out.to_vec()).map_err(|e| format!("wrong result: {e}"))?;

    let mut samples = Vec::new();
    for _ in 0..options.rounds() * options.repeats(3) {
        let (ran, sample) = on_one_processor(|| time(|| launch.run().map(|_| ())));
        ran.map_err(|e| e.to_string())?;
        samples.push(sample);
    }
    let ns = typical(&samples, options.clock) / (n as f64 * f64::from(times));
    section.rows.push(vec![
        "bilinear".to_owned(),
        "2D, one f32".to_owned(),
        format!("{} ns", figure(ns)),
        floor_cell(ns, Some(FLOOR_NS), Good::Below, options.judges()),
    ]);
    section.objects.push(json!({
        "name": "fetch/bilinear",
        "status": "ok",
        "ns_a_lane": ns,
        "floor_ns": FLOOR_NS,
        "verdict": options.judges().then(|| verdict(ns, FLOOR_NS, Good::Below)),
    }));
    Ok(())
}
