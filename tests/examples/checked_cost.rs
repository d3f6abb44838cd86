//! What checks cost: kernels on one host thread, by checks, as times of the run without any with the same generator.
//!
//! `cargo run --release -p handloom-tests --example checked_cost -- ROUNDS [ENTRY [CHECKS]]`. Runs take turns; medians of CPU times are shown, so that other
//! work of the machine matters little. In columns with the
//! word `exact` a launch tells all that it does also where it was shown before that nothing can be found.

use std::error::Error;
use std::time::{Duration, Instant};

use handloom_runtime::{
    Backend, CheckConfig, Checks, Device, DeviceBuffer, Engine, LaunchConfig, Module, PreparedLaunch, RaceOptions,
};
use handloom_tests::counted::checked_kernels;
use nix::time::{ClockId, clock_gettime};

/// The checks of a column; none for the run that others are compared with.
const COLUMNS: [&str; 7] =
    ["", "memory", "memory,init", "race", "memory,init,race,sync", "exact memory,init,race,sync", "interp"];

/// What this process has used.
fn cpu_time() -> nix::Result<Duration> {
    Ok(Duration::from(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?))
}

#[allow(clippy::print_stdout, reason = "the table is what it is for")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let rounds: usize = words.next().map_or(Ok(5), |n| n.parse())?;
    let (only, column) = (words.next(), words.next());
    let mut columns = COLUMNS.to_vec();
    columns.retain(|c| c.is_empty() || column.as_ref().is_none_or(|column| column == c));
    println!("| kernel | unchecked, us | {} | prepared, us |", columns[1..].join(" | "));
    println!("|---|---|{}---|", "---|".repeat(columns.len() - 1));
    for kernel in checked_kernels() {
        if only.as_ref().is_some_and(|only| only != kernel.entry) {
            continue;
        }
        let job = kernel.job();
        let device = Device::new()?;
        let module = Module::from_text(&device, job.name, job.text)?;
        let function = module.function(Some(kernel.entry))?;
        let buffers: Result<Vec<DeviceBuffer>, _> = job.buffers.iter().map(|bytes| device.copy_of(bytes)).collect();
        let (buffers, launch) = (buffers?, &job.launches[0]);
        let args = launch.args(&buffers);
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); columns.len()];
        let (mut launches, mut prepared) = (Vec::new(), Vec::new());
        for word in columns.iter().copied() {
            let plain = LaunchConfig::new(launch.grid, launch.block);
            let mut config = LaunchConfig { threads: 1, backend: Backend::Cranelift, ..plain };
            match word {
                "" => {}
                "interp" => config.engine = Engine::Interp,
                word => {
                    let (exact, checks) = word.strip_prefix("exact ").map_or((false, word), |checks| (true, checks));
                    let races = RaceOptions { proves: !exact, ..RaceOptions::default() };
                    config.check = Some(CheckConfig { checks: Checks::parse(checks)?, races });
                }
            }
            let start = Instant::now();
            launches.push(PreparedLaunch::new(&function, &config, &args)?);
            prepared.push(start.elapsed());
        }
        for _ in 0..rounds {
            for (times, launch) in times.iter_mut().zip(&mut launches) {
                let start = cpu_time()?;
                let report = launch.run()?;
                times.push(cpu_time()?.saturating_sub(start));
                if let Some(check) = &report.check {
                    check.unchecked.as_ref().map_or(Ok(()), |why| Err(why.clone()))?;
                }
            }
        }
        let medians: Vec<f64> = times
            .iter_mut()
            .map(|all| {
                all.sort_unstable();
                all[all.len() / 2].as_secs_f64()
            })
            .collect();
        let ratios: Vec<String> = medians[1..].iter().map(|t| format!("{:.2}", t / medians[0])).collect();
        let prepared: Vec<String> = prepared.iter().map(|t| t.as_micros().to_string()).collect();
        println!("| {} | {:.0} | {} | {} |", kernel.entry, medians[0] * 1e6, ratios.join(" | "), prepared.join(" "));
    }
    Ok(())
}
