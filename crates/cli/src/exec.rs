//! `handloom exec`: a program that uses CUDA, on Handloom's driver library.
//!
//! The program is a child with an environment of its own. Its signals and its exit status are passed on, and what kernels did wrong is summed up
//! at the end, from a file in which the library notes it ([`notes`](crate::notes)).

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args as ClapArgs;

use handloom_ir::simt::Counting;
use handloom_runtime::{AsyncOrder, Backend, user_folder};

use crate::args::{AsyncArg, BackendArg, BoundsArg, FindArgs, Seeds, seconds, seeds};
use crate::documents::{Case, Trapped};
use crate::findings::Collected;
use crate::notes::{FINDINGS, Notes, Read, Summary};
use crate::outputs::{Store, open_all};
use crate::profile::Reports;
use crate::program::{self, Signals, Why};
use crate::report::{Failure, Out, Status, reason};
use crate::seeds::{cores, side_by_side};
use crate::traces::document;

/// The library that a program asks for.
const LIBRARY: &str = "libcuda.so.1";

/// Names the folder of the libraries.
const FOLDER_VARIABLE: &str = "HANDLOOM_LIBRARIES";

/// Libraries that a program gets first, wherever it looks for others of their names, as PyTorch does in folders of its own: the runtime libraries, and empty
/// ones, so that programs which would make machine code with them link by the driver instead.
const FIRST: [&str; 4] = ["libcudart.so.13", "libcudart.so.12", "libnvJitLink.so.13", "libnvJitLink.so.12"];

/// `handloom exec`.
#[derive(ClapArgs, Debug)]
pub struct ExecArgs {
    /// Capability of the devices. Default: 8.9.
    #[arg(long, value_name = "MAJOR.MINOR", value_parser = capability)]
    pub cc: Option<String>,
    /// Number of devices. Default: 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=8))]
    pub devices: Option<u32>,
    /// Memory of a device, as 4G. Default: the memory of the host.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<String>,
    /// Host threads of a launch. Default: one for each core.
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroU16>,
    /// How strictly compiled code checks addresses. Default: exact.
    #[arg(long, value_enum)]
    pub bounds: Option<BoundsArg>,
    /// Who makes the code. Default: what HANDLOOM_BACKEND names, else wide where the host has AVX-512 or AVX2.
    #[arg(long, value_enum)]
    pub backend: Option<BackendArg>,
    /// Order of scheduling. Default: 0, which is ascending.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Run the program with all seeds from A to B - 1 (`A..=B`: to B), side by side, and say in how many each finding was seen.
    #[arg(long, value_name = "A..B", value_parser = seeds, requires = "check", conflicts_with_all = ["seed", "trace"])]
    pub many_seeds: Option<Seeds>,
    /// When the results of asynchronous copies and products come. Default: earliest, or seed with --check.
    #[arg(long, value_enum)]
    pub async_order: Option<AsyncArg>,
    /// Stop the program, and its kernels, when it takes longer.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Let kernels use all memory of the program, as plain pointers of the host, and let launches end before the call returns.
    #[arg(long)]
    pub open_addresses: bool,
    /// Tell each call of the driver interface on standard error.
    #[arg(long)]
    pub trace_api: bool,
    /// Write every image that is loaded into a folder.
    #[arg(long, value_name = "DIR")]
    pub dump_images: Option<PathBuf>,
    /// Folder in which compiled code is kept for later runs, or off. Default: one in the cache folder of the user.
    #[arg(long, value_name = "DIR|off")]
    pub cache: Option<PathBuf>,
    /// Fill device memory with a pattern when it is allocated and when it is freed.
    #[arg(long)]
    pub poison: bool,
    /// Write a line of JSON for every launch, trap and finding.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Exit status when a kernel trapped or a check found something, in place of the program's own.
    #[arg(long, value_name = "N")]
    pub error_exit: Option<u8>,
    #[command(flatten)]
    pub checks: FindArgs,
    /// Count what launches of all processes do, as `profile` does, and write a page (.html) or data (.json).
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub profile: Vec<String>,
    /// Count what launches of all processes reach, as `cover` does, and write a page (.html) or data (.json).
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub cover: Vec<String>,
    /// Write what launches reach as a tracefile of lcov.
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub lcov: Vec<String>,
    /// Add what other runs reached: reports of --cover in JSON that were written before.
    #[arg(long, value_name = "FILE.json", requires = "cover")]
    pub merge: Vec<String>,
    /// Write what the host does and when, launches, code that is made, copies, blocks over threads, as a Chrome trace: time of the host.
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<String>,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

fn capability(text: &str) -> Result<String, String> {
    let wrong = || "expected a capability, as 8.9".to_owned();
    handloom_runtime::words::capability(text).map(|_| text.to_owned()).ok_or_else(wrong)
}

fn size(text: &str) -> Result<String, String> {
    let wrong = || "expected a size, as 4G or 512M".to_owned();
    handloom_runtime::words::size_bytes(text).map(|_| text.to_owned()).ok_or_else(wrong)
}

/// Runs the program.
///
/// # Errors
/// The libraries or the program are not there, or a report cannot be written.
pub fn exec(args: &ExecArgs, out: &mut Out) -> Result<Status, Failure> {
    let asked = Collected::new(&args.checks)?;
    let folder = libraries()?;
    let reports = Reports::open([&args.profile, &args.cover, &args.lcov, &args.merge])?;
    let store = args.trace.as_deref().map(Store::to);
    let trace = open_all(store.iter())?.pop();
    let signals = Signals::watch()?;
    let place = Place { args, folder: &folder, reports: &reports, signals: &signals, asked: &asked };
    let seed = args.many_seeds.map(|seeds| seeds.first);
    let first = match place.run(seed, out.document.is_some().then_some(Output::Errors))? {
        Ok(first) => first,
        Err((status, why)) => {
            out.say(&why);
            return Ok(Status::Passed(status));
        }
    };
    if first.why == Some(Why::Time) {
        out.error(&first.late);
    }
    let mut read = first.notes.read(asked.empty(), &args.checks, seed, (first.case(args, None), first.why.is_some()));
    let mut ends = Ends { own: first.own, is_past: first.is_past, why: first.why };
    if let Some(seeds) = args.many_seeds.filter(|_| !read.is_enough() && signals.ending().is_none()) {
        place.run_others(seeds, &mut read, &mut ends, out)?;
    }
    let level = reports.level();
    let mut found = read.report(&args.checks, out);
    if level != Counting::Nothing {
        reports.write(first.notes.counted(), out)?;
        if found.left > 0 {
            let (s, was) = if found.left == 1 { ("", "was") } else { ("es", "were") };
            let why = "the program ended before they did, or by a signal or `_exit` before that was written";
            out.error(&format!("{} launch{s} {was} not counted: {why}", found.left));
            found.checks = found.checks.max(Status::File);
        }
    }
    if let Some(output) = trace {
        output.write(document(&first.notes.traced()).as_bytes())?;
    }
    Ok(Status::Passed(match ends.why {
        Some(Why::Time) => args.error_exit.unwrap_or(Status::Found.code()),
        Some(Why::Enough) => ended(0, &found, args, false),
        None => ended(ends.own, &found, args, ends.is_past),
    }))
}

/// How runs of a program ended, taken together: the first end that is no success counts.
struct Ends {
    own: u8,
    is_past: bool,
    why: Option<Why>,
}

/// Where the standard output of a program goes if not to that of the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Output {
    /// To standard error: standard output is for a document.
    Errors,
    /// Nowhere, as its standard error and input.
    Nowhere,
}

/// What all runs of a program have in common.
struct Place<'a> {
    args: &'a ExecArgs,
    folder: &'a Path,
    reports: &'a Reports,
    signals: &'a Signals,
    /// An empty collection, which knows what is left out.
    asked: &'a Collected,
}

/// A run that has ended.
struct Ran {
    notes: Notes,
    seed: Option<u64>,
    /// The exit status, or 128 and the signal.
    own: u8,
    why: Option<Why>,
    /// Its time was over before it ended.
    is_past: bool,
    seconds: f64,
    /// What is said of one whose time was over.
    late: String,
}

impl Ran {
    /// What documents say of it.
    fn case(&self, args: &ExecArgs, seed: Option<u64>) -> Case {
        let trap = match self.why {
            Some(Why::Time) => Some(Trapped::placeless("timeout", self.late.clone())),
            Some(Why::Enough) => None,
            None if self.own == 0 => None,
            None => Some(Trapped::placeless("exit", format!("the program ended with status {}", self.own))),
        };
        let mut entry = args.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        if let Some(seed) = seed {
            entry = format!("{entry} (seed {seed})");
        }
        let program = args.command.first().map(|word| word.to_string_lossy().into_owned());
        Case { what: "program", entry, seconds: self.seconds, trap, program }
    }
}

impl Place<'_> {
    /// Runs the program, with a seed of several, or as the command line says. The inner error is the exit status of a program that cannot be run, and why.
    fn run(&self, seed: Option<u64>, output: Option<Output>) -> Result<Result<Ran, (u8, String)>, Failure> {
        let Place { args, folder, reports, signals, asked } = *self;
        let notes = Notes::new(seed)?;
        let mut command = Command::new(&args.command[0]);
        command.args(&args.command[1..]);
        let begin = SystemTime::now();
        let is_quiet = output == Some(Output::Nowhere);
        environment(&mut command, args, folder, (&notes, reports), (begin, seed, is_quiet))?;
        match output {
            None => {}
            Some(Output::Errors) => {
                let to = std::io::stderr().as_fd().try_clone_to_owned();
                command.stdout(to.map_err(|e| Failure::file(format!("standard error: {}", reason(&e))))?);
            }
            Some(Output::Nowhere) => {
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            }
        }
        let started = Instant::now();
        let child = match command.spawn() {
            Ok(child) => child,
            Err(e) => {
                let name = args.command[0].to_string_lossy();
                let is_there = e.kind() != std::io::ErrorKind::NotFound;
                let status = if is_there { 126 } else { 127 };
                return Ok(Err((status, format!("error: cannot run `{name}`: {}", reason(&e)))));
            }
        };
        let mut looked = 0;
        // Nobody waits for one of many whose command was told to end.
        let is_unwanted = || is_quiet && signals.ending().is_some();
        let mut is_enough = || is_unwanted() || args.checks.first && notes.has_finding(asked, &mut looked);
        let (status, why) = program::wait(child, &notes.mark(), signals, args.timeout, &mut is_enough)
            .map_err(|e| Failure::file(format!("cannot wait for the program: {}", reason(&e))))?;
        let own = status.code().and_then(|c| u8::try_from(c).ok());
        let by_signal = || status.signal().and_then(|s| u8::try_from(s).ok()).map(|s| 128 + s);
        let own = own.or_else(by_signal).unwrap_or(1);
        // A program may take a kernel that the deadline stopped for an error of its own, and go on to its end.
        let is_past = args.timeout.is_some_and(|limit| started.elapsed() >= limit);
        let limit = args.timeout.unwrap_or_default().as_secs_f64();
        let late = format!("the program was stopped after {limit} seconds, and there may be more to find");
        Ok(Ok(Ran { notes, seed, own, why, is_past, seconds: started.elapsed().as_secs_f64(), late }))
    }

    /// Runs it with all seeds but the first, side by side and without a word, and adds what they found.
    fn run_others(&self, seeds: Seeds, read: &mut Read, ends: &mut Ends, out: &mut Out) -> Result<(), Failure> {
        let (args, signals) = (self.args, self.signals);
        let mut n_ran = 1_u64;
        let other = |seed: u64| match signals.ending() {
            Some(_) => None,
            None => Some(self.run(Some(seed), Some(Output::Nowhere))),
        };
        side_by_side(seeds, cores(), other, |ran| {
            let Some(ran) = ran else { return Ok(false) };
            let ran = ran?.map_err(|(_, why)| Failure::file(why))?;
            n_ran += 1;
            let program = (ran.case(args, ran.seed), ran.why.is_some());
            read.join(ran.notes.read(self.asked.empty(), &args.checks, ran.seed, program));
            let with = ran.seed.map_or_else(String::new, |seed| format!("with seed {seed} "));
            if ran.why == Some(Why::Time) {
                out.error(&format!("{with}{}", ran.late));
            } else if ran.why.is_none() && ran.own != 0 && ran.own != ends.own {
                out.error(&format!("{with}the program ended with status {}", ran.own));
            }
            if ends.own == 0 && ran.why.is_none() {
                ends.own = ran.own;
            }
            ends.is_past |= ran.is_past;
            if ran.why == Some(Why::Time) {
                ends.why = ran.why;
            }
            Ok(!read.is_enough() && signals.ending().is_none())
        })?;
        if let Some(signal) = signals.ending() {
            let all = seeds.last - seeds.first + 1;
            out.error(&format!("a signal ended the command after {n_ran} of {all} seeds"));
            (ends.own, ends.why) = (128 + signal, None);
        }
        Ok(())
    }
}

/// The exit status of a program that ended with `own`. What was found is no success, nor what could not be checked, nor kernels that were stopped since time was over (`is_past`).
fn ended(own: u8, found: &Summary, args: &ExecArgs, is_past: bool) -> u8 {
    let is_checked = args.checks.check.is_some() || is_past;
    let is_found = found.checks == Status::Found || found.has_traps;
    match (args.error_exit, found.checks) {
        (Some(n), _) if is_found => n,
        (_, Status::Done) if is_checked && is_found && own == 0 => Status::Found.code(),
        (_, checks) if own == 0 => checks.code(),
        _ => own,
    }
}

/// The folder of the libraries: the one that is named, or one beside the program.
fn libraries() -> Result<PathBuf, Failure> {
    let has = |folder: &Path| folder.join(LIBRARY).is_file();
    if let Some(named) = std::env::var_os(FOLDER_VARIABLE).filter(|v| !v.is_empty()) {
        let folder = PathBuf::from(named);
        if !has(&folder) {
            let folder = folder.display();
            return Err(Failure::usage(format!(
                "{FOLDER_VARIABLE} is `{folder}`, where there is no {LIBRARY}: build it by `ci/libraries {folder}`"
            )));
        }
        return std::path::absolute(&folder).map_err(|e| Failure::usage(reason(&e)));
    }
    let program = std::env::current_exe().map_err(|e| Failure::usage(reason(&e)))?;
    let beside = program.parent().unwrap_or(Path::new("."));
    let places = [beside.join("libraries"), beside.join("../lib/handloom")];
    places.iter().find(|p| has(p)).cloned().ok_or_else(|| {
        let place = places[0].display();
        Failure::usage(format!(
            "no {LIBRARY} in `{place}`: build it by `ci/libraries`, or name its folder by {FOLDER_VARIABLE}"
        ))
    })
}

/// What the program finds in its environment.
fn environment(
    command: &mut Command,
    args: &ExecArgs,
    folder: &Path,
    (notes, reports): (&Notes, &Reports),
    (begin, seed, is_quiet): (SystemTime, Option<u64>, bool),
) -> Result<(), Failure> {
    let joined = |variable: &str, first: OsString| {
        let mut all = first;
        if let Some(old) = std::env::var_os(variable).filter(|v| !v.is_empty()) {
            all.push(":");
            all.push(old);
        }
        all
    };
    // The loader takes both as ends of a path, and has no way to write them.
    if folder.to_string_lossy().contains([':', ' ']) {
        let folder = folder.display();
        return Err(Failure::usage(format!(
            "`{folder}` has a blank or a colon in its name, which the loader cannot take"
        )));
    }
    let first: Vec<PathBuf> = FIRST.iter().map(|name| folder.join(name)).filter(|path| path.is_file()).collect();
    let preload = first.iter().map(|p| p.as_os_str()).collect::<Vec<_>>().join(":".as_ref());
    command.env("LD_LIBRARY_PATH", joined("LD_LIBRARY_PATH", folder.into()));
    if !preload.is_empty() {
        command.env("LD_PRELOAD", joined("LD_PRELOAD", preload));
    }
    command.env("TRITON_LIBCUDA_PATH", folder).env("TRITON_DEFAULT_BACKEND", "nvidia");
    command.env("DRJIT_LIBCUDA_PATH", folder.join(LIBRARY));
    // What programs compile for our devices must not reach a GPU.
    if let Some(cache) = user_folder() {
        command.env("TRITON_CACHE_DIR", cache.join("triton"));
    }
    command.env(FINDINGS, &notes.file);
    let mut set = |name: &str, value: Option<OsString>| {
        if let Some(value) = value {
            command.env(name, value);
        }
    };
    let text = |t: String| Some(OsString::from(t));
    set("HANDLOOM_CC", args.cc.clone().and_then(text));
    set("HANDLOOM_DEVICES", args.devices.and_then(|n| text(n.to_string())));
    set("HANDLOOM_MEMORY", args.memory.clone().and_then(text));
    set("HANDLOOM_THREADS", args.threads.and_then(|n| text(n.to_string())));
    let bounds = |b| if b == BoundsArg::Exact { "exact" } else { "contained" };
    set("HANDLOOM_BOUNDS", args.bounds.and_then(|b| text(bounds(b).to_owned())));
    set("HANDLOOM_BACKEND", args.backend.map(|b| Backend::from(b).name().into()));
    set("HANDLOOM_SEED", seed.or(args.seed).and_then(|n| text(n.to_string())));
    set("HANDLOOM_ASYNC_ORDER", args.async_order.map(|o| AsyncOrder::from(o).name().into()));
    set("HANDLOOM_OPEN_ADDRESSES", args.open_addresses.then(|| "1".into()));
    set("HANDLOOM_TRACE_API", args.trace_api.then(|| "1".into()));
    let FindArgs { check, check_volatile, check_same_values, check_leaks, .. } = args.checks;
    set("HANDLOOM_CHECK_FIRST", args.checks.ends_launches().then(|| "1".into()));
    let since = |moment: SystemTime| moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string();
    let deadline = args.timeout.and_then(|limit| begin.checked_add(limit));
    set("HANDLOOM_DEADLINE", deadline.map(since).and_then(text));
    set("HANDLOOM_CHECK", check.and_then(|checks| text(checks.to_string())));
    set("HANDLOOM_CHECK_VOLATILE", check_volatile.then(|| "1".into()));
    set("HANDLOOM_CHECK_SAME_VALUES", check_same_values.then(|| "1".into()));
    set("HANDLOOM_CHECK_LEAKS", check_leaks.then(|| "1".into()));
    let counts = |level: &str| {
        let mut text = OsString::from(level);
        text.push(&notes.folder);
        text
    };
    set(
        "HANDLOOM_COUNTS",
        match reports.level() {
            Counting::Nothing => None,
            Counting::Coverage => Some(counts("coverage:")),
            Counting::All => Some(counts(if reports.has_page() { "page:" } else { "all:" })),
        },
    );
    set("HANDLOOM_TRACE", args.trace.as_ref().map(|_| notes.folder.join("%p.trace").into_os_string()));
    set("HANDLOOM_TRACE_BEGIN", args.trace.as_ref().and_then(|_| text(since(begin))));
    set("HANDLOOM_POISON", args.poison.then(|| "1".into()));
    let absolute = |p: &PathBuf| std::path::absolute(p).unwrap_or_else(|_| p.clone()).into_os_string();
    let off = Path::new("off");
    set("HANDLOOM_CACHE", args.cache.as_ref().map(|p| if p == off { off.into() } else { absolute(p) }));
    // Of many runs the first one writes files.
    set("HANDLOOM_DUMP_IMAGES", args.dump_images.as_ref().filter(|_| !is_quiet).map(absolute));
    set("HANDLOOM_REPORT", args.report.as_ref().filter(|_| !is_quiet).map(absolute));
    Ok(())
}
