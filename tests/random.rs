//! Random kernels on all engines.
//!
//! `HANDLOOM_KERNELS=1000` runs that many, however long it takes; `HANDLOOM_SEED=77` starts there. A failure prints its seed, so
//! `HANDLOOM_SEED=77 HANDLOOM_KERNELS=1` repeats it. Some of them are checked for races too, as they are and without one of their barriers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use handloom_plan::host::{Host, Vectors};
use handloom_runtime::Backend;
use handloom_tests::engines::ways;
use handloom_tests::generate::{OF_DEVICES, audit, compare, kernel};

/// Kernels of a plain run.
const KERNELS: u64 = 150;

/// Time after which a plain run starts no further kernel.
const LIMIT: Duration = Duration::from_secs(20);

/// Most failures that are reduced and shown.
const SHOWN: usize = 3;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|v| v.parse().unwrap_or_else(|_| panic!("{name}={v} is no number")))
}

/// Kernels of a plain run that are checked for races.
const AUDITED: u64 = 12;

/// Kernels of a plain run that are looked at with a barrier less: that makes a race in one of ten.
const WITHOUT_BARRIERS: u64 = 48;

/// `HANDLOOM_AUDITED=10000` takes that many, on all cores. Of those with a barrier less, some must have races, or nothing is shown.
#[test]
#[allow(clippy::print_stdout, reason = "how many were looked at")]
fn checks_find_the_races_of_random_kernels() {
    let asked = number("HANDLOOM_AUDITED");
    let (found, wrong) = on_all_cores(asked.is_some(), asked.unwrap_or(WITHOUT_BARRIERS), LIMIT / 2, audit);
    let [ended, races] = [|(ended, _): &(usize, usize)| *ended, |(_, races): &(usize, usize)| usize::from(*races > 0)]
        .map(|of| found.iter().map(of).sum::<usize>());
    println!("{} seeds, {ended} texts ended, {races} of them with races", found.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(races > 0 || found.len() < 36, "no barrier mattered in {} kernels", found.len());
    assert!(2 * ended >= found.len(), "{ended} texts of {} kernels ended", found.len());
}

/// `HANDLOOM_TOLD=1000` takes that many.
#[test]
fn compiled_code_tells_what_the_interpreter_tells() {
    let first = number("HANDLOOM_SEED").unwrap_or(0);
    let asked = number("HANDLOOM_TOLD");
    let start = Instant::now();
    let seeds =
        (first..first + asked.unwrap_or(AUDITED)).take_while(|_| asked.is_some() || start.elapsed() < LIMIT / 4);
    let told = |seed| {
        let (kernel, text) = (kernel(seed), kernel(seed).text());
        kernel.job(&text).tells_alike(seed).unwrap_or_else(|why| panic!("seed {seed}: {why}\n{text}"))
    };
    let told: Vec<(usize, Vec<&str>)> = seeds.map(told).collect();
    let n = told.iter().filter(|(compiled, _)| *compiled > 0).count();
    // Half of them have clusters.
    assert!(3 * n >= told.len(), "compiled code ran {n} of {} kernels: {told:?}", told.len());
}

/// `HANDLOOM_COUNTED=1000` takes that many.
#[test]
fn compiled_code_counts_what_the_interpreter_counts() {
    let first = number("HANDLOOM_SEED").unwrap_or(0);
    let asked = std::env::var("HANDLOOM_COUNTED").ok().and_then(|v| v.parse::<u64>().ok());
    let start = Instant::now();
    let seeds =
        (first..first + asked.unwrap_or(AUDITED)).take_while(|_| asked.is_some() || start.elapsed() < LIMIT / 4);
    let counted = |seed| {
        let (kernel, text) = (kernel(seed), kernel(seed).text());
        kernel.job(&text).counts_alike(seed).unwrap_or_else(|why| panic!("seed {seed}: {why}\n{text}"))
    };
    let counted: Vec<usize> = seeds.map(counted).collect();
    let n = counted.iter().filter(|compiled| **compiled > 0).count();
    // Half of them have clusters, and of the others many call functions or wait in loops. How many is known of the seeds of an ordinary run.
    let enough = if first == 0 { 8 * n >= counted.len() } else { n > 0 };
    assert!(enough, "compiled code counted {n} of {} kernels", counted.len());
}

#[test]
fn engines_agree_on_random_kernels() {
    let asked = number("HANDLOOM_KERNELS");
    let (_, wrong) = on_all_cores(asked.is_some(), asked.unwrap_or(KERNELS), LIMIT, compare);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Does some work for so many seeds from `HANDLOOM_SEED` on, until the time is over if nobody asked for a number or three of them failed. What it gave, and
/// what failed.
fn on_all_cores<T: Send>(
    is_asked: bool,
    seeds: u64,
    limit: Duration,
    work: impl Fn(u64) -> Result<T, String> + Sync,
) -> (Vec<T>, Vec<String>) {
    let first = number("HANDLOOM_SEED").unwrap_or(OF_DEVICES);
    let next = AtomicU64::new(first);
    let start = Instant::now();
    let worker = || {
        let (mut done, mut wrong) = (Vec::new(), Vec::new());
        while wrong.len() < SHOWN && (is_asked || start.elapsed() < limit) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds {
                break;
            }
            match work(seed) {
                Ok(one) => done.push(one),
                Err(why) => wrong.push(why),
            }
        }
        (done, wrong)
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    std::thread::scope(|s| {
        let handles: Vec<_> = (0..workers).map(|_| s.spawn(worker)).collect();
        let all = handles.into_iter().map(|h| h.join().expect("a worker does not panic"));
        all.fold((Vec::new(), Vec::new()), |(mut done, mut wrong), (more, also)| {
            done.extend(more);
            wrong.extend(also);
            (done, wrong)
        })
    })
}

/// Says which instruction sets the tests of wide code ran on, and by name on hosts where they leave it out.
#[test]
#[allow(clippy::print_stdout, reason = "what ran, and the name of what is skipped")]
fn wide_code_is_tested_with_all_instruction_sets_of_the_host() {
    let host = Host::detect();
    for most in [Vectors::V256, Vectors::V512] {
        let runs = ways().any(|way| way.backend == Backend::Wide && host.capped(way.vectors).vectors == most);
        match Backend::Wide.missing_feature(&host.capped(most)) {
            _ if host.vectors < most => println!("skipped: wide code of {}", most.isa()),
            Some(missing) => {
                assert!(!runs);
                println!("skipped: wide code of {}, since this host lacks {missing}", most.isa());
            }
            None => {
                assert!(runs || std::env::var_os("HANDLOOM_WAYS").is_some());
                println!("tested: wide code of {}", most.isa());
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_kernel() {
    for seed in 0..20 {
        assert_eq!(kernel(seed).text(), kernel(seed).text());
    }
    assert_ne!(kernel(1).text(), kernel(2).text());
}
