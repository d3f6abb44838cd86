//! What counts cost: kernels of arrays that no cache holds, as times of the run that counts nothing.
//!
//! `cargo run --release -p handloom-tests --example counted_cost -- ROUNDS THREADS`. Runs take turns; medians are shown.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use handloom_diag::SourceMap;
use handloom_runtime::{Device, DeviceBuffer, LaunchConfig, Module, PreparedLaunch, Tally, front};
use handloom_tests::counted::kernels;

#[allow(clippy::print_stdout, reason = "the table is what it is for")]
fn main() -> Result<(), Box<dyn Error>> {
    let number = |i, default| std::env::args().nth(i).map_or(Ok(default), |n| n.parse::<usize>());
    let (rounds, threads) = (number(1, 5)?, number(2, 1)?);
    println!("| kernel | uncounted, ms | cover | profile | counted by |");
    println!("|---|---|---|---|---|");
    for kernel in kernels(true) {
        let job = kernel.job();
        let device = Device::new()?;
        let mut sources = SourceMap::new();
        let file = sources.add(job.name, job.text);
        let (checked, _) = front(&sources, &[file]).map_err(|told| format!("{told:?}"))?;
        let plain = handloom_lower::lower(&checked);
        let marked = handloom_lower::lower_marked(&checked);
        let sources = Arc::new(sources);
        let [plain, marked] = [plain, marked].map(|ir| Module::from_ir(&device, ir, Arc::clone(&sources), vec![]));
        let (plain, marked) = (plain?, marked?);
        let made: Result<Vec<DeviceBuffer>, _> = job.buffers.iter().map(|bytes| device.copy_of(bytes)).collect();
        let buffers = made?;
        let l = &job.launches[0];
        let args = l.args(&buffers);
        let tallies = [None, Some(Tally::coverage()), Some(Tally::default())];
        let mut launches = Vec::new();
        for tally in &tallies {
            let module = if tally.is_some() { &marked } else { &plain };
            let config = LaunchConfig { threads, count: tally.clone(), ..LaunchConfig::new(l.grid, l.block) };
            launches.push(PreparedLaunch::new(&module.function(Some(l.entry))?, &config, &args)?);
        }
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); launches.len()];
        for _ in 0..=rounds {
            for (times, launch) in times.iter_mut().zip(&mut launches) {
                times.push(launch.run()?.run);
            }
        }
        let medians: Vec<f64> = times
            .iter_mut()
            .map(|all| {
                // The first one touches memory.
                let all = &mut all[1..];
                all.sort_unstable();
                all[all.len() / 2].as_secs_f64()
            })
            .collect();
        let by = tallies.iter().flatten().flat_map(Tally::interpreted).next().map_or("code", |(_, why)| why);
        let [base, cover, profile] = medians[..] else { return Err("three runs".into()) };
        println!("| {} | {:.1} | {:.2} | {:.2} | {by} |", l.entry, base * 1e3, cover / base, profile / base);
    }
    Ok(())
}
