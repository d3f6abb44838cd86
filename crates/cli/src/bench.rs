//! `handloom bench`: how long launches take on this host, timed so that the numbers can be trusted.
//!
//! What is compared runs in turns, in one process; which one goes first changes from round to round. Code is made before, and memory that a run
//! changes is put back before the next one. What the numbers say, and what not, stands in `TIMING.md`.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use clap::Parser;
use handloom_profile::Form;
use handloom_runtime::{LaunchConfig, LaunchError, Module, PreparedLaunch, Sink, TrapReport};

use crate::args::{Args, BenchArgs, Command};
use crate::bench_page::{self, Told};
use crate::buffers::Buffers;
use crate::compared::{self, Measured, Row};
use crate::host::{self, Host};
use crate::job::{self, Opened};
use crate::launch::{self, Launched};
use crate::outputs::Output;
use crate::profile;
use crate::report::{Failure, Out, Status};
use crate::run::{self, Prepared, Ready};
use crate::sweep::Sweep;
use crate::watch::{Rounds, Watch, Work};

/// How long it measures each of what is compared, if nobody says how often.
const TIME: Duration = Duration::from_secs(2);

/// Fewest and most runs, if nobody says how many: with seven there is an interval for the median.
const RUNS: (usize, usize) = (7, 1000);

/// Times launches.
///
/// # Errors
/// What kept it from running, or ended it early; what was measured until then is told.
pub fn bench(args: &BenchArgs, words: &[OsString], out: &mut Out) -> Result<Status, Failure> {
    if args.run.checks.check.is_some() {
        return Err(Failure::usage("`bench` times launches as they run without checks: leave `--check` out"));
    }
    out.set_limit(args.run.limit.error_limit);
    for path in &args.output {
        if profile::form_of(path)? == Form::Json {
            return Err(Failure::usage(format!(
                "`{path}`: `bench` writes pages (.html); `--format json` prints the data"
            )));
        }
    }
    let pages = profile::open(&args.output)?;
    let watch = Watch::start(out)?;
    let host = host::describe();
    let Some(sweep) = &args.sweep else {
        let (measured, ended) = of_job_or_files(args, &watch, out)?;
        compared::report(&host, &measured, out);
        write(pages, &host, &Told::Once(&measured))?;
        return ended.map_or(Ok(Status::Done), Err);
    };
    // A mistake in one of them runs nothing.
    let sizes = sweep.values.iter().map(|value| Ok((*value, of_size(sweep, words, *value)?)));
    let sizes = sizes.collect::<Result<Vec<_>, Failure>>()?;
    let (mut all, mut ended) = (Vec::new(), None);
    for (value, args) in &sizes {
        let measured = of_job_or_files(args, &watch, out).map_err(|f| at_size(sweep, *value, f));
        let (measured, early) = measured.unwrap_or_else(|failure| (Measured::default(), Some(failure)));
        all.push((*value, measured));
        ended = early;
        if ended.is_some() {
            break;
        }
    }
    compared::report_sweep(&host, &sweep.name, &all, out);
    write(pages, &host, &Told::Sweep(&sweep.name, &all))?;
    ended.map_or(Ok(Status::Done), Err)
}

fn write(pages: Vec<Output>, host: &Host, told: &Told<'_>) -> Result<(), Failure> {
    pages.into_iter().try_for_each(|output| output.write(bench_page::page(host, told).as_bytes()))
}

/// The command line for a size.
fn of_size(sweep: &Sweep, words: &[OsString], value: u64) -> Result<BenchArgs, Failure> {
    let words = sweep.words(words, value).map_err(Failure::usage)?;
    let read = Args::try_parse_from(words).map_err(|e| {
        let text = e.to_string();
        let first = text.lines().next().unwrap_or("").trim_start_matches("error: ");
        at_size(sweep, value, Failure::usage(first))
    })?;
    match read.command {
        Command::Bench(args) => Ok(*args),
        _ => Err(Failure::usage("`--sweep` is for `bench`")),
    }
}

fn at_size(sweep: &Sweep, value: u64, failure: Failure) -> Failure {
    if failure.message.is_empty() {
        return failure;
    }
    Failure { message: format!("with {} = {value}: {}", sweep.name, failure.message), ..failure }
}

/// Measures what a command line says.
fn of_job_or_files(args: &BenchArgs, watch: &Watch, out: &mut Out) -> Result<(Measured, Option<Failure>), Failure> {
    if let Some(path) = &args.run.job {
        let (job, base) = job::read(path)?;
        let opened = job::open(path, (&job, &base), &args.run, watch, out)?;
        return measure(vec![Subject::of_job(path, opened, watch, out)?], args, watch, out);
    }
    let files = args.run.file.iter().chain(&args.against);
    let subjects = files.map(|file| Subject::of_file(file, args, watch, out)).collect::<Result<Vec<_>, _>>()?;
    measure(subjects, args, watch, out)
}

/// What is timed as a whole: a launch, or all launches of a job.
struct Subject<'a> {
    file: String,
    launches: Vec<Timed>,
    memory: Memory<'a>,
    /// What buffers hold before a run; none of those that no run has changed.
    saved: Vec<Option<Vec<u8>>>,
}

/// One launch of a subject.
struct Timed {
    entry: String,
    prepared: PreparedLaunch,
    threads: usize,
    /// Time to make its code, and whether it came from the cache instead.
    compile: Duration,
    cached: bool,
    /// How often it runs; one timing is the mean.
    repeat: u32,
    bytes: Option<f64>,
    operations: Option<f64>,
}

/// Whose buffers and variables it works on.
enum Memory<'a> {
    File { ready: Box<Ready>, module: Module },
    Job(Opened<'a>),
}

impl Memory<'_> {
    fn buffers(&mut self) -> &mut Buffers {
        match self {
            Memory::File { ready, .. } => &mut ready.buffers,
            Memory::Job(opened) => &mut opened.buffers,
        }
    }

    /// Fills the variables that are to be filled before all launches.
    fn fill(&self) -> Result<(), Failure> {
        match self {
            Memory::File { ready, module } => ready.fill_globals(module),
            Memory::Job(opened) => opened.fill(),
        }
    }

    /// Fills those that are to be filled before one.
    fn fill_for(&self, launch: usize) -> Result<(), Failure> {
        match self {
            Memory::File { .. } => Ok(()),
            Memory::Job(opened) => match opened.plan.get(launch).map(|p| &p.ready) {
                Some(Ok(ready)) => ready.fill(&opened.buffers),
                Some(Err(_)) | None => Ok(()),
            },
        }
    }
}

/// A configuration whose launches are timed: signals stop it, and what kernels print goes nowhere.
fn quiet(mut config: LaunchConfig, watch: &Watch) -> LaunchConfig {
    config.stop = watch.stop().clone();
    config.output = Some(Sink::new(|_| {}));
    config
}

impl<'a> Subject<'a> {
    fn of_file(file: &str, args: &BenchArgs, watch: &Watch, out: &mut Out) -> Result<Subject<'a>, Failure> {
        let Prepared { loaded, function, config, ready } = run::prepare(&args.run, file, watch, out)?;
        let config = quiet(config, watch);
        let make = || PreparedLaunch::new(&function, &config, &ready.args());
        let prepared = watch.during(function.name(), Work::Compile, make);
        let timed = Timed {
            entry: function.name().to_owned(),
            prepared: prepared.map_err(|e| launch::failed(e, watch))?,
            threads: config.threads,
            compile: loaded.lower,
            cached: false,
            repeat: 1,
            bytes: args.bytes,
            operations: args.operations,
        };
        let memory = Memory::File { ready: Box::new(ready), module: loaded.module };
        Ok(Subject::new(file, vec![timed], memory))
    }

    fn of_job(path: &str, opened: Opened<'a>, watch: &Watch, out: &mut Out) -> Result<Subject<'a>, Failure> {
        let mut launches = Vec::new();
        opened.warn(out);
        for (i, p) in opened.plan.iter().enumerate() {
            let number = |f: Failure| Failure { message: format!("launch {}: {}", i + 1, f.message), ..f };
            let ready = p.ready.as_ref().map_err(|fault| {
                number(Failure { status: fault.status, message: format!("`{}` {}", p.entry, fault.message) })
            })?;
            let config = quiet(ready.config.clone(), watch);
            let make = || PreparedLaunch::new(&ready.function, &config, &ready.args(&opened.buffers));
            let prepared = watch.during(&p.entry, Work::Compile, make);
            launches.push(Timed {
                entry: p.entry.clone(),
                prepared: prepared.map_err(|e| number(launch::failed(e, watch)))?,
                threads: config.threads,
                compile: Duration::ZERO,
                cached: false,
                repeat: p.spec.repeat.unwrap_or(1),
                bytes: p.spec.bytes,
                operations: p.spec.operations,
            });
        }
        if launches.is_empty() {
            return Err(Failure::usage(format!("`{path}` has no launches")));
        }
        Ok(Subject::new(path, launches, Memory::Job(opened)))
    }

    fn new(file: &str, launches: Vec<Timed>, memory: Memory<'a>) -> Subject<'a> {
        Subject { file: file.to_owned(), launches, memory, saved: Vec::new() }
    }

    /// Keeps what the buffers hold, to be put back.
    fn save(&mut self) {
        self.saved = self.memory.buffers().0.iter().map(|b| Some(b.device.to_vec())).collect();
    }

    /// Puts memory back as it was before the first run.
    fn restore(&mut self) -> Result<(), Failure> {
        for (buffer, saved) in self.memory.buffers().0.iter_mut().zip(&self.saved) {
            if let Some(bytes) = saved {
                buffer.device.write(0, bytes);
            }
        }
        self.memory.fill()
    }

    /// Forgets what the buffers held that no run has changed: there is nothing to be put back.
    fn keep_changed(&mut self) {
        for (buffer, saved) in self.memory.buffers().0.iter().zip(&mut self.saved) {
            if saved.as_ref().is_some_and(|bytes| *bytes == buffer.device.to_vec()) {
                *saved = None;
            }
        }
    }

    /// Runs all launches once. Gives seconds for each, and whether code was made meanwhile.
    fn run(&mut self, watch: &Watch) -> Result<(Vec<f64>, bool), Early> {
        let (mut times, mut made) = (Vec::new(), false);
        for (i, timed) in self.launches.iter_mut().enumerate() {
            self.memory.fill_for(i)?;
            let mut sum = Duration::ZERO;
            for _ in 0..timed.repeat {
                let report = match timed.prepared.run() {
                    Ok(report) => report,
                    Err(LaunchError::Trap(trap)) => return Err(Early::Trap(timed.entry.clone(), trap)),
                    Err(e) => return Err(Early::Failure(launch::failed(e, watch))),
                };
                timed.compile += report.compile;
                timed.cached |= report.cached;
                made |= !report.recompile.is_zero();
                sum += report.run;
            }
            times.push(sum.as_secs_f64() / f64::from(timed.repeat));
        }
        Ok((times, made))
    }
}

/// Why a run did not come to its end.
enum Early {
    Failure(Failure),
    /// Of an entry.
    Trap(String, Box<TrapReport>),
}

impl From<Failure> for Early {
    fn from(failure: Failure) -> Early {
        Early::Failure(failure)
    }
}

impl Early {
    /// Tells of a trap.
    fn told(self, out: &mut Out) -> Failure {
        match self {
            Early::Failure(failure) => failure,
            Early::Trap(entry, trap) => {
                launch::report(&entry, &Launched::trapped(trap), false, out);
                Failure::told(Status::Found)
            }
        }
    }
}

/// Takes the caches away from what is timed.
struct Cold(Vec<u64>);

impl Cold {
    fn new() -> Cold {
        let bytes = host::last_cache().unwrap_or(64 << 20).saturating_mul(2);
        Cold(vec![1; usize::try_from(bytes / 8).unwrap_or(1 << 24)])
    }

    fn take(&mut self) {
        for word in self.0.iter_mut().step_by(8) {
            *word = std::hint::black_box(*word + 1);
        }
    }
}

/// Measures all subjects in turns.
///
/// # Errors
/// A subject does not come through its first run. Later ones end the measurement: what was measured comes with the failure.
fn measure(
    mut subjects: Vec<Subject<'_>>,
    args: &BenchArgs,
    watch: &Watch,
    out: &mut Out,
) -> Result<(Measured, Option<Failure>), Failure> {
    let mut cold = args.cold.then(Cold::new);
    for subject in &mut subjects {
        subject.memory.fill()?;
        if !args.keep {
            subject.save();
        }
        for _ in 0..args.warm_up.max(1) {
            let name = subject.file.clone();
            let ran = watch.during(&name, Work::Rounds(Rounds::default()), || subject.run(watch));
            ran.map_err(|early| early.told(out))?;
            if !args.keep {
                subject.keep_changed();
                subject.restore()?;
            }
        }
    }
    let mut times: Vec<Vec<Vec<f64>>> = subjects.iter().map(|s| vec![Vec::new(); s.launches.len()]).collect();
    let rounds = Rounds::new(args.repeat.map(NonZeroUsize::get));
    let name = subjects.first().map_or(String::new(), |s| s.file.clone());
    let mut again = 0;
    let ended = watch.during(&name, Work::Rounds(rounds.clone()), || {
        let begin = Instant::now();
        let mut done = 0;
        while !is_enough(args, done, begin.elapsed(), subjects.len()) {
            let mut round = Vec::new();
            for turn in 0..subjects.len() {
                let i = if done % 2 == 0 { turn } else { subjects.len() - 1 - turn };
                if let Some(cold) = &mut cold {
                    cold.take();
                }
                match subjects[i].run(watch) {
                    Ok((seconds, made)) => round.push((i, seconds, made)),
                    Err(early) => return Some(early),
                }
                if !args.keep
                    && let Err(failure) = subjects[i].restore()
                {
                    return Some(failure.into());
                }
            }
            // A run that waited for code is none of those that are meant; but a kernel that always does is one.
            if round.iter().any(|(_, _, made)| *made) && again < RUNS.1 {
                again += 1;
                continue;
            }
            for (i, seconds, _) in round {
                times[i].iter_mut().zip(seconds).for_each(|(list, t)| list.push(t));
            }
            done += 1;
            rounds.add();
        }
        None
    });
    let mut measured = Measured { is_cold: args.cold, keeps: args.keep, subjects: Vec::new() };
    for (subject, lists) in subjects.into_iter().zip(times) {
        let row = |(timed, seconds): (Timed, Vec<f64>)| Row {
            entry: timed.entry,
            threads: timed.threads,
            compile: timed.compile,
            cached: timed.cached,
            bytes: timed.bytes,
            operations: timed.operations,
            seconds,
        };
        measured.subjects.push((subject.file, subject.launches.into_iter().zip(lists).map(row).collect()));
    }
    Ok((measured, ended.map(|early| early.told(out))))
}

/// Whether so many rounds in so much time will do for so many subjects.
fn is_enough(args: &BenchArgs, done: usize, time: Duration, subjects: usize) -> bool {
    match args.repeat {
        Some(n) => done >= n.get(),
        None => {
            let most = TIME.saturating_mul(u32::try_from(subjects).unwrap_or(u32::MAX));
            done >= RUNS.1 || (done >= RUNS.0 && time >= most)
        }
    }
}
