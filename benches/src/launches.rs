//! What a launch costs, and what a barrier costs.

use handloom_runtime::{Arg, Bounds, Context, Device, LaunchConfig, Launcher, Module, PreparedLaunch, launch};
use serde_json::json;

use crate::cases::kernel;
use crate::data::{Expected, float_bytes, floats};
use crate::measure::{Sample, time, typical};
use crate::options::{EngineName, Options};
use crate::table::{Good, Section, figure, floor_cell, verdict};

/// Longest time of a cached launch of one small block, in nanoseconds.
const LAUNCH_FLOOR_NS: f64 = 1000.0;
/// The same of a prepared one of an empty kernel, from the library for Rust.
const LIBRARY_FLOOR_NS: f64 = 500.0;
/// The same of one that a stream is given, from the call to its end, when many are given.
const STREAM_FLOOR_NS: f64 = 3000.0;
/// Launches of a round.
const LAUNCHES: u64 = 2000;
/// Threads of the block for barriers.
const BARRIER_THREADS: u32 = 1024;

/// Values that live across the barrier, and what the hand-built code of the design took, in nanoseconds a barrier and thread.
const BARRIERS: &[(u32, Option<f64>)] = &[(1, None), (4, Some(0.17)), (16, Some(0.92)), (32, Some(2.3))];

/// Times launches of small blocks.
pub fn run(options: &Options) -> Section {
    let heads = ["launch", "", "time", "floor"];
    let mut section = Section::new("launches: code is cached, calling thread, medians", &heads);
    let kinds: &[(&str, &str, Kind)] = &[
        ("launch/prepared", "saxpy, 1 block of 64: run again", Kind::Prepared),
        ("launch/arguments", "the same with new arguments", Kind::Arguments),
        ("launch/whole", "the same by `launch`", Kind::Whole),
        ("launch/empty", "empty kernel, 1 block of 32: run again", Kind::Empty),
        ("launch/default", "the same with default settings", Kind::Default),
        ("launch/library", "the same by the library `handloom`", Kind::Library),
        ("launch/stream", "the same given to a stream, all waited for once", Kind::Stream),
    ];
    for (name, what, kind) in kinds {
        if !options.wants(name) {
            continue;
        }
        match launches(*kind, options) {
            Ok(samples) => {
                let floor = match kind {
                    Kind::Stream => STREAM_FLOOR_NS,
                    Kind::Library => LIBRARY_FLOOR_NS,
                    Kind::Prepared | Kind::Arguments | Kind::Whole | Kind::Empty | Kind::Default => LAUNCH_FLOOR_NS,
                };
                let ns = typical(&samples, options.clock);
                section.rows.push(vec![
                    name["launch/".len()..].to_owned(),
                    (*what).to_owned(),
                    format!("{} ns", figure(ns)),
                    floor_cell(ns, Some(floor), Good::Below, options.judges()),
                ]);
                section.objects.push(json!({
                    "name": name,
                    "status": "ok",
                    "what": what,
                    "ns": ns,
                    "floor_ns": floor,
                    "verdict": options.judges().then(|| verdict(ns, floor, Good::Below)),
                }));
            }
            Err(why) => section.fail(name, &why),
        }
    }
    section
}

/// How a launch is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Prepared,
    Arguments,
    Whole,
    Empty,
    /// On all cores and with exact bounds, as a user's first try.
    Default,
    /// As `Default`, through the library that Rust programs use.
    Library,
    /// As `Default`, without a wait between them.
    Stream,
}

fn launches(kind: Kind, options: &Options) -> Result<Vec<Sample>, String> {
    let told = |e: &dyn std::fmt::Display| e.to_string();
    let device = Device::new().map_err(|e| told(&e))?;
    let is_empty = matches!(kind, Kind::Empty | Kind::Default | Kind::Library | Kind::Stream);
    let (name, text) = if is_empty { ("empty", kernel!("empty")) } else { ("saxpy", kernel!("saxpy")) };
    let module = Module::from_text(&device, name, text).map_err(|e| told(&e))?;
    let function = module.function(Some(name)).map_err(|e| told(&e))?;
    let mut config = LaunchConfig::new([1, 1, 1], [if is_empty { 32 } else { 64 }, 1, 1]);
    config.engine = options.engine();
    if !matches!(kind, Kind::Default | Kind::Library | Kind::Stream) {
        config.threads = 1;
        config.bounds = Bounds::Contained;
    }
    let (x, y) = (floats(0, 64), floats(64, 64));
    let buffers = [device.copy_of(&float_bytes(&x)), device.copy_of(&float_bytes(&y))];
    let [from, to] = buffers;
    let (from, to) = (from.map_err(|e| told(&e))?, to.map_err(|e| told(&e))?);
    let args: Vec<Arg<'_>> = if is_empty {
        Vec::new()
    } else {
        vec![Arg::from(64_u32), Arg::from(0.5_f32), Arg::from(&from), Arg::from(&to)]
    };
    let mut prepared = PreparedLaunch::new(&function, &config, &args).map_err(|e| told(&e))?;
    let _ = prepared.run().map_err(|e| told(&e))?;
    if !is_empty {
        let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 0.5_f32.mul_add(*x, *y)).collect();
        Expected::exactly(&want).check(&to.to_vec()).map_err(|e| format!("wrong result: {e}"))?;
    }
    let stream = Context::new(&device).non_blocking_stream();
    let launcher = Launcher::new(&function, &config).map_err(|e| told(&e))?;
    let mut of_library = match kind {
        Kind::Library => Some(by_library(text, name, &config).map_err(|e| told(&e))?),
        _ => None,
    };
    let mut once = || {
        if let Some(prepared) = &mut of_library {
            return prepared.run().map(|_| ()).map_err(|e| told(&e));
        }
        let report = match kind {
            Kind::Stream => return stream.launch_again(&launcher, Vec::new()).map_err(|e| told(&e)),
            Kind::Prepared | Kind::Empty | Kind::Default | Kind::Library => prepared.run(),
            Kind::Arguments => prepared.set_args(&args).and_then(|()| prepared.run()),
            Kind::Whole => launch(&function, &config, &args),
        };
        report.map(|_| ()).map_err(|e| told(&e))
    };
    let n = if options.judges() { LAUNCHES } else { 20 };
    let mut samples = Vec::new();
    for _ in 0..=options.rounds() {
        let (ran, sample) = time(|| {
            (0..n).try_for_each(|_| once())?;
            stream.synchronize().map_err(|e| told(&e))
        });
        ran?;
        samples.push(sample.over(n));
    }
    // The first round warmed up.
    samples.remove(0);
    Ok(samples)
}

/// A prepared launch of an entry without parameters, as a Rust program makes it.
fn by_library(text: &str, name: &str, config: &LaunchConfig) -> Result<handloom::Prepared, handloom::Error> {
    let device = handloom::Device::new()?;
    let entry = device.load_module(text)?.load_function(name)?;
    device.default_stream().launch_builder(&entry).prepare(config.clone())
}

/// Times barriers.
pub fn run_barriers(options: &Options) -> Section {
    let title = format!(
        "barriers: a loop of `bar.sync` and one fma for each live value, {BARRIER_THREADS} threads on one host thread, medians"
    );
    let mut section = Section::new(&title, &["barrier", "", "a barrier and thread", "by hand"]);
    for &(values, by_hand) in BARRIERS {
        let name = format!("barrier/{values}");
        if !options.wants(&name) {
            continue;
        }
        match barriers(values, options) {
            Ok(ns) => {
                section.rows.push(vec![
                    values.to_string(),
                    "live values".to_owned(),
                    format!("{} ns", figure(ns)),
                    by_hand.map_or(String::new(), |ns| format!("{} ns", figure(ns))),
                ]);
                section.objects.push(json!({ "name": name, "status": "ok", "ns": ns, "by_hand_ns": by_hand }));
            }
            Err(why) => section.fail(&name, &why),
        }
    }
    section
}

/// Nanoseconds for each barrier and thread: from the difference of two loops, so that the launch is not in it.
fn barriers(values: u32, options: &Options) -> Result<f64, String> {
    let told = |e: &dyn std::fmt::Display| e.to_string();
    let device = Device::new().map_err(|e| told(&e))?;
    let module = Module::from_text(&device, "barrier_cost", kernel!("barrier_cost")).map_err(|e| told(&e))?;
    let function = module.function(Some(&format!("barrier{values}"))).map_err(|e| told(&e))?;
    let threads = if options.engine == EngineName::Interp { 64 } else { BARRIER_THREADS };
    let mut config = LaunchConfig::new([1, 1, 1], [threads, 1, 1]);
    config.engine = options.engine();
    config.threads = 1;
    config.bounds = Bounds::Contained;
    let out = device.zeroed(4 * u64::from(threads)).map_err(|e| told(&e))?;
    let scale = 0.5_f32;
    let (few, many) = if options.judges() { (100_u32, 2100_u32) } else { (2, 12) };
    let prepare = |count: u32| {
        PreparedLaunch::new(&function, &config, &[Arg::from(count), Arg::from(scale), Arg::from(&out)])
            .map_err(|e| e.to_string())
    };
    let (mut short, mut long) = (prepare(few)?, prepare(many)?);
    let run = |l: &mut PreparedLaunch| {
        let (ran, sample) = time(|| l.run());
        ran.map(|_| sample).map_err(|e| e.to_string())
    };
    for (launch, count) in [(&mut short, few), (&mut long, many)] {
        let _ = run(launch)?;
        let want: Vec<f32> = (0..threads).map(|t| sum_of(t, values, count, scale)).collect();
        Expected::exactly(&want).check(&out.to_vec()).map_err(|e| format!("wrong result: {e}"))?;
    }
    let mut samples = Vec::new();
    for _ in 0..options.rounds() {
        let (a, b) = (run(&mut short)?, run(&mut long)?);
        samples.push(Sample { wall_ns: b.wall_ns - a.wall_ns, cpu_ns: b.cpu_ns - a.cpu_ns });
    }
    Ok(typical(&samples, options.clock) / f64::from(many - few) / f64::from(threads))
}

/// What a thread of the kernel writes.
fn sum_of(thread: u32, values: u32, count: u32, scale: f32) -> f32 {
    let last = |j: u32| (0..count).fold((thread + j) as f32, |v, _| v.mul_add(scale, 1.0));
    (0..values).map(last).fold(0.0, |sum, v| sum + v)
}
