//! Kernels beside C, in turns.

use handloom_runtime::{Arg, Bounds, Device, DeviceBuffer, Function, LaunchConfig, Module, PreparedLaunch, launch};
use serde_json::json;

use crate::algorithms;
use crate::cases::{CASES, Case, Input, Job, Scale};
use crate::convert;
use crate::matrices;
use crate::measure::{Sample, on_one_processor, ratio, time, typical};
use crate::memory;
use crate::native::{CUDA_HEADERS, Compiler, Partner};
use crate::options::{Clock, Options};
use crate::table::{Good, Section, figure, floor_cell, verdict};

/// Least time of a round, in nanoseconds; shorter work is repeated.
const ROUND_NS: f64 = 3e7;
/// Most repeats of a round.
const MOST_REPEATS: u64 = 20_000;

/// Runs all kernels that are wanted.
pub fn run(options: &Options, compiler: Option<&Compiler>) -> Section {
    let clock = if options.clock == Clock::Cpu { "CPU time" } else { "wall time" };
    let title = format!(
        "kernels: one thread, contained bounds, medians (rounds: {}); ratio = time of C / our time ({clock})",
        options.rounds()
    );
    let heads = ["kernel", "size", "ours", "C", "ratio", "floor", "goal", "exact", "2 threads", "ratio to OpenMP"];
    let mut section = Section::new(&title, &heads);
    let scales = options.scales();
    for case in CASES.iter().chain(memory::CASES).chain(convert::CASES).chain(algorithms::CASES).chain(matrices::CASES)
    {
        let name = format!("kernel/{}", case.name);
        if !options.wants(&name) {
            continue;
        }
        let has_headers = std::env::var_os(CUDA_HEADERS).is_some();
        if case.c.needs_cuda_headers && !has_headers && compiler.is_some() {
            section
                .skip(&format!("C of {name}"), &format!("{CUDA_HEADERS} does not name a folder with the CUDA headers"));
        }
        let compiler = compiler.filter(|_| has_headers || !case.c.needs_cuda_headers);
        for &scale in scales {
            // All contestants meet at one size.
            let is_main = scale == scales[0];
            match measure(case, scale, is_main, options, compiler) {
                Ok(found) => show(&mut section, case, scale, is_main, options, &found),
                Err(why) => section.fail(&name, &why),
            }
        }
    }
    if !section.rows.is_empty() {
        if compiler.is_none() {
            section.skip("all ratios", "no C compiler");
        }
        section
            .notes
            .push("exact: time with exact bounds / with contained bounds; 2 threads: gain in wall time".into());
    }
    section
}

/// One of those who take turns.
struct Contestant {
    who: Who,
    side: Side,
    repeats: u64,
    samples: Vec<Sample>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Who {
    Ours,
    Exact,
    TwoThreads,
    C(&'static str),
    OpenMp,
}

enum Side {
    Ours(Box<PreparedLaunch>),
    C(Partner, &'static str),
}

impl Contestant {
    fn round(&mut self) -> Result<Sample, String> {
        let repeats = self.repeats;
        match &mut self.side {
            Side::C(partner, variant) => partner.round(variant, repeats),
            Side::Ours(launch) => {
                let mut rounds = || time(|| (0..repeats).try_for_each(|_| launch.run().map(|_| ())));
                let (ran, sample) = if self.who == Who::TwoThreads { rounds() } else { on_one_processor(rounds) };
                ran.map_err(|e| e.to_string())?;
                Ok(sample.over(repeats))
            }
        }
    }

    /// Finds how often short work must be repeated.
    fn calibrate(&mut self, least_ns: f64) -> Result<(), String> {
        let once = self.round()?.wall_ns.max(1.0);
        // At most 20,000, so the conversion is exact.
        self.repeats = (least_ns / once).ceil().clamp(1.0, MOST_REPEATS as f64) as u64;
        Ok(())
    }
}

/// What was measured of a case.
struct Found {
    label: String,
    work: f64,
    samples: Vec<(Who, Vec<Sample>)>,
    /// Why there is no figure for two threads in C.
    no_openmp: Option<String>,
}

impl Found {
    fn of(&self, who: Who) -> Option<&[Sample]> {
        self.samples.iter().find(|(w, _)| *w == who).map(|(_, s)| s.as_slice())
    }
}

fn measure(
    case: &Case,
    scale: Scale,
    is_main: bool,
    options: &Options,
    compiler: Option<&Compiler>,
) -> Result<Found, String> {
    let job = (case.job)(scale);
    let device = Device::new().map_err(|e| e.to_string())?;
    let module = Module::from_text(&device, case.name, case.ptx).map_err(|e| e.to_string())?;
    let function = module.function(Some(case.entry)).map_err(|e| e.to_string())?;
    let mut buffers = buffers(&device, &job)?;
    if let (Some(first), Some(Some(buffer))) = (case.first, buffers.first()) {
        let first = module.function(Some(first)).map_err(|e| e.to_string())?;
        let config = LaunchConfig { engine: options.engine(), ..LaunchConfig::new([1; 3], [1; 3]) };
        let _ = launch(&first, &config, &[Arg::from(buffer)]).map_err(|e| e.to_string())?;
    }
    let two = is_main && std::thread::available_parallelism().is_ok_and(|n| n.get() >= 2);

    let mut contestants = Vec::new();
    let mut add = |who, side| contestants.push(Contestant { who, side, repeats: 1, samples: Vec::new() });
    for (who, bounds, threads) in
        [(Who::Ours, Bounds::Contained, 1), (Who::Exact, Bounds::Exact, 1), (Who::TwoThreads, Bounds::Contained, 2)]
    {
        if who != Who::TwoThreads || two {
            let config = LaunchConfig {
                bounds,
                threads,
                shared_bytes: job.shared,
                engine: options.engine(),
                ..LaunchConfig::new(job.grid, job.block)
            };
            add(who, Side::Ours(Box::new(checked_launch(&function, &config, &job, &mut buffers)?)));
        }
    }
    let mut no_openmp = None;
    if let Some(compiler) = compiler {
        let program = compiler.build(case.c, false)?;
        for &variant in std::iter::once(&case.judged).chain(case.beside) {
            if variant == case.judged || is_main {
                add(
                    Who::C(variant),
                    checked_partner(on_one_processor(|| program.start(&job.sizes, 1))?, variant, &job)?,
                );
            }
        }
        if two {
            let started = compiler.build(case.c, true).and_then(|p| p.start(&job.sizes, 2));
            match started {
                Ok(partner) => add(Who::OpenMp, checked_partner(partner, case.judged, &job)?),
                Err(why) => no_openmp = Some(why),
            }
        }
    }

    let least_ns = if options.judges() { ROUND_NS } else { ROUND_NS / 300.0 };
    contestants.iter_mut().try_for_each(|c| c.calibrate(least_ns))?;
    for _ in 0..options.rounds() {
        for c in &mut contestants {
            let sample = c.round()?;
            c.samples.push(sample);
        }
    }
    let samples = contestants.into_iter().map(|c| (c.who, c.samples)).collect();
    Ok(Found { label: job.label, work: job.work, samples, no_openmp })
}

/// By argument: its buffer, if it is one.
fn buffers(device: &Device, job: &Job) -> Result<Vec<Option<DeviceBuffer>>, String> {
    let one = |input: &Input| match input {
        Input::Buffer(bytes) => device.copy_of(bytes).map(Some).map_err(|e| e.to_string()),
        Input::Word(_) | Input::Float(_) | Input::Double(_) => Ok(None),
    };
    job.inputs.iter().map(one).collect()
}

/// A launch whose result was found right, once.
fn checked_launch(
    function: &Function,
    config: &LaunchConfig,
    job: &Job,
    buffers: &mut [Option<DeviceBuffer>],
) -> Result<PreparedLaunch, String> {
    if let (Input::Buffer(bytes), Some(buffer)) = (&job.inputs[job.output], &mut buffers[job.output]) {
        buffer.write(0, bytes);
    }
    let args: Vec<Arg<'_>> = job
        .inputs
        .iter()
        .zip(&*buffers)
        .map(|(input, buffer)| match (input, buffer) {
            (_, Some(buffer)) => Arg::from(buffer),
            (Input::Float(v), None) => Arg::from(*v),
            (Input::Double(v), None) => Arg::from(*v),
            (Input::Word(v), None) => Arg::from(*v),
            (Input::Buffer(_), None) => Arg::from(0_u64),
        })
        .collect();
    let mut launch = PreparedLaunch::new(function, config, &args).map_err(|e| e.to_string())?;
    let _ = launch.run().map_err(|e| e.to_string())?;
    let result = buffers[job.output].as_ref().map(DeviceBuffer::to_vec).unwrap_or_default();
    job.expected.check(&result).map_err(|e| format!("wrong result: {e}"))?;
    Ok(launch)
}

/// A C program whose result was found right, once.
fn checked_partner(mut partner: Partner, variant: &'static str, job: &Job) -> Result<Side, String> {
    let result = partner.check(variant)?;
    job.expected_c.check(&result).map_err(|e| format!("C `{variant}` gives a wrong result: {e}"))?;
    Ok(Side::C(partner, variant))
}

/// Adds the rows of a case.
fn show(section: &mut Section, case: &Case, scale: Scale, is_main: bool, options: &Options, found: &Found) {
    let Some(ours) = found.of(Who::Ours) else { return };
    let clock = options.clock;
    let judged = scale == Scale::Full && options.judges();
    let floor = if scale == Scale::Small { None } else { case.floor };
    // Work in units over time in nanoseconds is thousands of millions a second.
    let speed = |samples: &[Sample], clock| found.work / typical(samples, clock).max(1.0);
    let c = found.of(Who::C(case.judged));
    let value = c.map(|c| ratio(c, ours, clock));
    let exact = found.of(Who::Exact).map(|e| ratio(e, ours, clock));
    let two = found.of(Who::TwoThreads);
    let gain = two.map(|t| ratio(ours, t, Clock::Wall));
    let to_openmp = found.of(Who::OpenMp).zip(two).map(|(c, t)| ratio(c, t, Clock::Wall));
    let times = |v: Option<f64>| v.map_or(String::new(), |v| format!("{}x", figure(v)));
    section.rows.push(vec![
        if is_main { case.name.to_owned() } else { String::new() },
        found.label.clone(),
        format!("{} {}", figure(speed(ours, clock)), case.unit),
        c.map_or("no cc".into(), |c| format!("{} {}", figure(speed(c, clock)), case.judged)),
        value.map_or(String::new(), figure),
        floor_cell(value.unwrap_or_default(), floor, Good::Above, judged && value.is_some()),
        if floor.is_some() { case.goal.map_or(String::new(), figure) } else { String::new() },
        times(exact),
        times(gain),
        to_openmp.map_or(String::new(), figure),
    ]);
    let mut others = serde_json::Map::new();
    for &variant in case.beside {
        let Some(samples) = found.of(Who::C(variant)) else { continue };
        let to = ratio(samples, ours, clock);
        section.rows.push(vec![
            String::new(),
            String::new(),
            String::new(),
            format!("{} {variant}", figure(speed(samples, clock))),
            figure(to),
        ]);
        others.insert(variant.to_owned(), json!({ "speed": speed(samples, clock), "ratio": to }));
    }
    if let Some(why) = &found.no_openmp {
        section.skip(&format!("{} with OpenMP", case.name), why);
    }
    section.objects.push(json!({
        "name": format!("kernel/{}", case.name),
        "status": "ok",
        "size": found.label,
        "unit": case.unit,
        "clock": if clock == Clock::Cpu { "cpu" } else { "wall" },
        "rounds": ours.len(),
        "speed": speed(ours, clock),
        "wall_ns": typical(ours, Clock::Wall),
        "cpu_ns": typical(ours, Clock::Cpu),
        "c": case.judged,
        "c_speed": c.map(|c| speed(c, clock)),
        "ratio": value,
        "floor": floor,
        "goal": floor.and(case.goal),
        "verdict": floor.zip(value).filter(|_| judged).map(|(floor, v)| verdict(v, floor, Good::Above)),
        "beside": others,
        "exact_over_contained": exact,
        "gain_of_two_threads": gain,
        "ratio_to_openmp": to_openmp,
    }));
}
