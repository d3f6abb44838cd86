//! `handloom test`: PTX files that say what they should do, and jobs with `expect`, many at a time. `TESTING.md` says what can stand in them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use handloom_filetest::engines::{CHECKED, INTERP, JIT_EXACT, Way};
use handloom_filetest::{FileTest, Suite, run_file};
use handloom_runtime::{Engine, LaunchConfig};
use rayon::prelude::*;
use serde::Serialize;

use crate::args::{EngineArg, TestArgs};
use crate::report::{Document, Failure, Format, Out, Status, reason};
use crate::sarif::sarif_of_tests;
use crate::watch::Watch;
use crate::{bug, documents, explain};

/// Tests that run side by side where nobody says how many: each takes a window of addresses, of which a process has few.
const MOST: usize = 7;

/// How often a job is looked at.
const TICK: Duration = Duration::from_millis(2);

/// A test.
enum Case {
    /// Driven by its own lines.
    Ptx(FileTest),
    /// A job with `expect`.
    Job(PathBuf),
}

/// What a test showed.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// Its file.
    pub file: String,
    /// How long it took.
    pub seconds: f64,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// Runs tests.
///
/// # Errors
/// There is none, or a file cannot be read.
pub fn test(args: &TestArgs, out: &mut Out) -> Result<Status, Failure> {
    let cases = collect(&args.paths)?;
    let watch = Watch::start(out)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.jobs.map_or(cores, usize::from).min(MOST).min(cases.len());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| Failure::file(format!("the host has no threads for the tests: {e}")))?;
    let begin = Instant::now();
    let (send, results) = std::sync::mpsc::channel();
    let all = std::thread::scope(|scope| {
        let watch = &watch;
        scope.spawn(move || {
            pool.install(|| {
                cases.par_iter().enumerate().for_each_with(send, |send, (i, case)| {
                    if !watch.stop().is_stopped() {
                        // Nobody listens any more only where this thread's result is not wanted either.
                        let _ = send.send((i, one(case, args, watch)));
                    }
                });
            });
        });
        let mut all: Vec<(usize, Verdict)> = Vec::new();
        for (i, verdict) in results {
            tell(&verdict, out);
            all.push((i, verdict));
        }
        all
    });
    if watch.stop().is_stopped() {
        return Err(watch.stopped("the tests"));
    }
    let mut all = all;
    all.sort_by_key(|(i, _)| *i);
    let all: Vec<Verdict> = all.into_iter().map(|(_, verdict)| verdict).collect();
    match out.document {
        Some(Document::Junit) => out.write_document(&documents::junit_of_tests(&all)),
        Some(Document::Sarif) => out.write_document(&sarif_of_tests(&all)),
        None => {}
    }
    Ok(summary(&all, begin.elapsed(), args, out))
}

/// The tests that paths name: of folders, all that are there.
fn collect(paths: &[PathBuf]) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut files = Vec::new();
            walk(path, &mut files)?;
            files.sort();
            for file in files {
                // As one would type it.
                cases.extend(case(file.strip_prefix("./").unwrap_or(&file))?);
            }
        } else {
            let found = case(path)?;
            let shown = path.display();
            cases.push(found.ok_or_else(|| {
                Failure::usage(format!(
                    "`{shown}` is no test: a PTX file is one with a line `//@ test:`, a job (.json) one with `expect`"
                ))
            })?);
        }
    }
    if cases.is_empty() {
        return Err(Failure::usage(
            "no tests: a PTX file is one with a line `//@ test:`, a job (.json) one with `expect`",
        ));
    }
    Ok(cases)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let unread = |e: std::io::Error| Failure::file(format!("`{}` cannot be read: {}", folder.display(), reason(&e)));
    for entry in std::fs::read_dir(folder).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        // Links to folders may lead in circles.
        if entry.file_type().map_err(unread)?.is_dir() {
            walk(&entry.path(), files)?;
        } else if entry.path().extension().is_some_and(|e| e == "ptx" || e == "json") {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// The test in a file, if it is one.
fn case(path: &Path) -> Result<Option<Case>, Failure> {
    let read = std::fs::read(path);
    let bytes = read.map_err(|e| Failure::file(format!("`{}` cannot be read: {}", path.display(), reason(&e))))?;
    let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
    if path.extension().is_some_and(|e| e == "json") {
        let is_test = match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(job) => job.get("launches").is_some() && job.get("expect").is_some(),
            // A job that is damaged is a test that fails.
            Err(_) => text.contains("\"launches\"") && text.contains("\"expect\""),
        };
        return Ok(is_test.then(|| Case::Job(path.to_owned())));
    }
    if !text.lines().any(|l| l.trim_start().starts_with("//@ test:")) {
        return Ok(None);
    }
    let name = path.with_extension("").display().to_string();
    Ok(Some(Case::Ptx(FileTest { path: path.to_owned(), name, text })))
}

fn one(case: &Case, args: &TestArgs, watch: &Watch) -> Verdict {
    let begin = Instant::now();
    let (file, result) = match case {
        Case::Job(path) => (path.display().to_string(), job(path, args, watch)),
        Case::Ptx(test) => {
            let suite = Suite {
                ways: vec![way(args)],
                finder: CHECKED,
                also_checked: &|_| args.check,
                also_counted: &|_| false,
                more: &|_| Vec::new(),
                opinion: &|_, _| Ok(()),
            };
            let bug = |panic: bug::Panic| Err(format!("a fault of Handloom, not of the test: {}", panic.message));
            (test.path.display().to_string(), bug::catch(|| run_file(test, &suite)).unwrap_or_else(bug))
        }
    };
    Verdict { file, seconds: begin.elapsed().as_secs_f64(), failure: result.err() }
}

/// Who runs the launches of a test.
fn way(args: &TestArgs) -> Way {
    let usual = LaunchConfig::new([1; 3], [1; 3]);
    match args.engine.map(Engine::from) {
        Some(Engine::Interp) => INTERP,
        Some(Engine::Jit) | None => {
            Way { name: "jit", tier: usual.tier, backend: args.backend.map_or(usual.backend, Into::into), ..JIT_EXACT }
        }
    }
}

/// Runs a job in a process of its own, as `run --job` does.
fn job(path: &Path, args: &TestArgs, watch: &Watch) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|e| format!("this program is not to be found: {}", reason(&e)))?;
    let mut command = Command::new(program);
    command.arg("run").arg("--job").arg(path).args(options(args, true)).env("NO_COLOR", "1");
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|e| format!("it cannot be started: {}", reason(&e)))?;
    // What it writes is read beside it: a full pipe would stop it.
    let read = |from: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            from.map(|mut from| from.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let stdout = read(child.stdout.take().map(|p| Box::new(p) as _));
    let stderr = read(child.stderr.take().map(|p| Box::new(p) as _));
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if watch.stop().is_stopped() => {
                // It may just have ended.
                let _ = child.kill();
            }
            Ok(None) => {}
            Err(e) => return Err(format!("it cannot be waited for: {}", reason(&e))),
        }
        std::thread::sleep(TICK);
    };
    let told = [stderr, stdout].map(|reader| reader.join().unwrap_or_default());
    if status.success() {
        return Ok(());
    }
    let how = status.code().map_or("ended by a signal".to_owned(), |code| format!("exit status {code}"));
    Err(format!("{how}\n{}", told.concat().trim()))
}

/// The options that say how a test runs. A checked job is run by who checks it.
fn options(args: &TestArgs, of_job: bool) -> Vec<&'static str> {
    let mut all = if args.check { vec!["--check"] } else { vec![] };
    if !(args.check && of_job) {
        let engine = args.engine.map(|e| if e == EngineArg::Interp { "interp" } else { "jit" });
        all.extend(engine.into_iter().flat_map(|e| ["--engine", e]));
        let backend = args.backend.map(|b| handloom_runtime::Backend::from(b).name());
        all.extend(backend.into_iter().flat_map(|b| ["--backend", b]));
    }
    all
}

/// Tells how a test ended.
fn tell(verdict: &Verdict, out: &mut Out) {
    #[derive(Serialize)]
    struct Object<'a> {
        test: &'a str,
        status: &'static str,
        seconds: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
    }
    let Verdict { file, seconds, failure } = verdict;
    match out.format {
        Format::Json => out.json(&Object {
            test: file,
            status: if failure.is_some() { "failed" } else { "ok" },
            seconds: *seconds,
            message: failure.as_deref(),
        }),
        Format::Human => {
            let word = if failure.is_some() { "FAILED" } else { "ok" };
            out.line(&format!("{word:<6}  {file}  ({:.0} ms)", seconds * 1e3));
            for line in failure.iter().flat_map(|f| f.lines()) {
                out.line(&format!("    {line}"));
            }
        }
    }
    out.flush();
}

fn summary(all: &[Verdict], took: Duration, args: &TestArgs, out: &mut Out) -> Status {
    #[derive(Serialize)]
    struct Object {
        passed: usize,
        failed: usize,
        seconds: f64,
    }
    let failed: Vec<&Verdict> = all.iter().filter(|v| v.failure.is_some()).collect();
    let passed = all.len() - failed.len();
    match out.format {
        Format::Json => out.json(&Object { passed, failed: failed.len(), seconds: took.as_secs_f64() }),
        Format::Human => {
            out.line(&format!("{passed} passed, {} failed in {:.1} s", failed.len(), took.as_secs_f64()));
            if let Some(first) = failed.first() {
                out.line("Failed:");
                failed.iter().for_each(|v| out.line(&format!("  {}", v.file)));
                let of_job = first.file.ends_with(".json");
                let options = options(args, of_job).join(" ");
                let again = if of_job {
                    format!("run --job {} {options}", first.file)
                } else {
                    format!("test {options} {}", first.file).replace("  ", " ")
                };
                out.line(&format!("Run one again: handloom {}", again.trim_end()));
                let codes = failed.iter().find_map(|v| explain::code_in(v.failure.as_deref()?));
                if let Some(code) = codes {
                    out.line(&format!("What it means: handloom explain {code}"));
                }
            }
        }
    }
    if failed.is_empty() { Status::Done } else { Status::Found }
}
