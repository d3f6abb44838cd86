//! Writes the questions for a GPU as jobs.
//!
//! `cargo run --release -p handloom-tests --example device_jobs -- FOLDER` writes a file of JSON lines for each kind of question, which
//! `tests/device/ask.py` takes to a machine with a GPU, and says which questions are not asked and why. `--only WORD` keeps those whose name
//! begins with it.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;
use handloom_tests::device::jobs::{Written, job};
use handloom_tests::device::questions;

/// Writes the questions for a GPU as jobs.
#[derive(Parser, Debug)]
struct Args {
    /// Where the files go.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Only what begins with this.
    #[arg(long, value_name = "WORD", default_value = "")]
    only: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    std::fs::create_dir_all(&args.folder)?;
    let all: Vec<_> =
        questions().into_iter().map(|q| (q.name(), q)).filter(|(name, _)| name.starts_with(&args.only)).collect();
    let next = AtomicUsize::new(0);
    // What is written by kind, and blobs that each file has.
    let files: Mutex<BTreeMap<String, (String, HashSet<u64>)>> = Mutex::default();
    let counts: Mutex<BTreeMap<String, usize>> = Mutex::default();
    let work = || -> Result<(), String> {
        while let Some((name, question)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let kind = name.split(' ').next().unwrap_or_default().to_owned();
            // Lines are made apart, so that a file has a blob where it is first named.
            let mut blobs = HashSet::new();
            let what = match job(question, &mut blobs).map_err(|e| format!("{name}: {e}"))? {
                Written::Job(lines, fault) => {
                    let mut files = files.lock().map_err(|e| e.to_string())?;
                    let (text, known) = files.entry(kind.clone()).or_default();
                    for line in lines.lines() {
                        let id = line.strip_prefix("{\"blob\":\"").and_then(|l| u64::from_str_radix(&l[..16], 16).ok());
                        if id.is_none_or(|id| known.insert(id)) {
                            text.push_str(line);
                            text.push('\n');
                        }
                    }
                    fault.map_or("asked".to_owned(), |why| format!("asked, but here {name} cannot be run: {why}"))
                }
                Written::None => "none for a GPU".to_owned(),
                Written::Found(why) => why.split_inclusive(": ").take(2).collect(),
            };
            *counts.lock().map_err(|e| e.to_string())?.entry(format!("{kind}: {what}")).or_default() += 1;
        }
        Ok(())
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|s| {
        let workers: Vec<_> = (0..cores).map(|_| s.spawn(work)).collect();
        workers.into_iter().try_for_each(|w| w.join().expect("a worker does not panic"))
    })?;
    for (kind, (text, _)) in files.into_inner()? {
        std::fs::write(args.folder.join(format!("{kind}.jsonl")), text)?;
    }
    let mut out = std::io::stdout().lock();
    for (what, n) in counts.into_inner()? {
        writeln!(out, "{n} {what}")?;
    }
    Ok(())
}
