//! `handloom run`, once or with many seeds: those after the first side by side, each in a device of its own, with files that are read anew, without
//! a word. What they found is put together by place. `exec` runs its program so too.

use rayon::prelude::*;

use crate::args::{RunArgs, Seeds};
use crate::findings::Collected;
use crate::profile::Reports;
use crate::report::{Failure, Format, Out, Status};
use crate::traces::Traces;
use crate::watch::Watch;
use crate::{bug, job, run};

/// Most seeds that run side by side: each takes a window of addresses, of which a process has at least this many.
const MOST: usize = 7;

/// What is done between the launches of a command and its outputs: their files may be those that other seeds read. It adds what is found.
pub type Others<'a> = dyn FnMut(&mut Collected) -> Result<Status, Failure> + 'a;

/// Runs a launch, or a job.
///
/// # Errors
/// What kept it from running.
pub fn run(args: &RunArgs, out: &mut Out) -> Result<Status, Failure> {
    let reports = Reports::open([&args.profile, &args.cover, &[], &[]])?;
    let traces = Traces::open(args.trace.as_deref())?.for_page(reports.has_page());
    let args = &RunArgs { counts: reports.level(), tracing: traces.trace(), ..args.clone() };
    let watch = Watch::start(out)?;
    let mut found = Collected::new(&args.checks)?;
    let ended = match args.many_seeds {
        None => once(args, &watch, &mut found, &mut |_| Ok(Status::Done), out),
        Some(seeds) => {
            // What is wrong with the launch is wrong with all seeds, and the first says it. It also writes the results.
            let format = out.format;
            let mut others = |found: &mut Collected| rest(args, seeds, &watch, format, found);
            once(&with(args, seeds.first), &watch, &mut found, &mut others, out)
        }
    };
    // What ended early may have found something too.
    let reported = found.report(&args.checks, out);
    let mut counted = found.take_counted();
    traces.draw(&mut counted.launches);
    reports.write(counted, out)?;
    traces.write()?;
    ended.map(|status| status.max(reported))
}

/// Runs all seeds but the first.
fn rest(args: &RunArgs, seeds: Seeds, watch: &Watch, format: Format, found: &mut Collected) -> Result<Status, Failure> {
    found.end();
    let none = found.empty();
    let other = |seed: u64| {
        let (mut found, mut out) = (none.empty(), Out::quiet(format));
        let ended = bug::catch(|| once(&with(args, seed), watch, &mut found, &mut |_| Ok(Status::Done), &mut out));
        (found, ended)
    };
    let threads = args.threads.map_or_else(cores, usize::from).min(MOST);
    let mut status = Status::Done;
    if found.is_enough() {
        return Ok(status);
    }
    side_by_side(seeds, threads, other, |(of_seed, ended)| {
        found.join(of_seed);
        let bug = |panic: bug::Panic| Failure { status: Status::Bug, message: panic.message };
        status = status.max(ended.map_err(bug)??);
        Ok(!found.is_enough())
    })?;
    Ok(status)
}

/// Threads that the host has for seeds.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does something for all seeds but the first, on so many threads, and takes what it gave in their order, until `take` wants no more.
///
/// # Errors
/// The host has no threads, or what `take` says.
pub fn side_by_side<T: Send>(
    seeds: Seeds,
    threads: usize,
    work: impl Fn(u64) -> T + Sync,
    mut take: impl FnMut(T) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| Failure::file(format!("the host has no threads for the seeds: {e}")))?;
    // In pieces, so that what the seeds of a long range found takes no room but for its places.
    let (mut go_on, mut next) = (true, seeds.first);
    while next < seeds.last && go_on {
        let first = next + 1;
        next = seeds.last.min(next.saturating_add(64));
        let piece: Vec<T> = pool.install(|| (first..=next).into_par_iter().map(&work).collect());
        for of_seed in piece {
            go_on &= take(of_seed)?;
        }
    }
    Ok(())
}

/// The same command with a seed.
fn with(args: &RunArgs, seed: u64) -> RunArgs {
    RunArgs { seed: Some(seed), ..args.clone() }
}

/// Runs it with the seed that it names.
///
/// # Errors
/// What kept it from running.
pub fn once(
    args: &RunArgs,
    watch: &Watch,
    found: &mut Collected,
    others: &mut Others<'_>,
    out: &mut Out,
) -> Result<Status, Failure> {
    found.begin(args.seed.unwrap_or(0));
    let ended = match &args.job {
        Some(job) => job::run_job(job, args, watch, (found, others), out),
        None => run::run(args, watch, (found, others), out),
    };
    found.end();
    ended
}
