//! The benchmarks: `cargo run --release -p handloom-benches -- [FILTER]...`, or `ci/bench`.
//!
//! Takes: kernels of `tests/kernels`, C programs of `benches/c`, a C compiler. Gives: tables, or JSON.
//! Does not know: what is inside the engines; it uses the public words of `runtime` only.
//!
//! The model: ours and C take turns in one run, round by round, so that both see the same machine. A ratio is the median of the rounds'
//! ratios. C is a child process that does one round for each line on its standard input and answers with nanoseconds. On
//! one thread CPU time is compared, since other work on the machine hardly changes it; for two threads it is wall time.
//!
//! Invariants:
//! - nothing is timed whose result was not compared with a reference first, on each engine, bounds setting and number of threads;
//! - what cannot run is named: no C compiler, no second core, no corpus;
//! - floors and goals are in `cases` and are printed beside the figures; only full sizes are judged.
//!
//! How to read it: `cases` has the kernels and their data, `convert` those of conversions, `memory` those of memory, `matrices` products of matrices, `kernels` the turns, `native` the C side, `compile`, `start`,
//! `launches`, `copies`, `fetches` and `matmul` the
//! other figures, `table` what is printed.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a report is what this program is for")]

mod algorithms;
mod cases;
mod compile;
mod convert;
mod copies;
mod data;
mod fetches;
mod kernels;
mod launches;
mod matmul;
mod matrices;
mod measure;
mod memory;
mod native;
mod options;
mod start;
mod table;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use native::Compiler;
use options::Options;
use table::Section;

fn main() -> ExitCode {
    let options = Options::parse();
    let compiler = Compiler::find();
    say_where(&options, &compiler);
    let compiler = compiler.ok();
    let parts: [(&str, &dyn Fn() -> Section); 10] = [
        ("kernels", &|| kernels::run(&options, compiler.as_ref())),
        ("compilation", &|| compile::run(&options)),
        ("corpus", &|| start::run_corpus(&options)),
        ("first use", &|| start::run(&options)),
        ("front end", &|| compile::run_front(&options)),
        ("launches", &|| launches::run(&options)),
        ("barriers", &|| launches::run_barriers(&options)),
        ("copies", &|| copies::run(&options)),
        ("textures", &|| fetches::run(&options)),
        ("matmul", &|| matmul::run(&options)),
    ];
    let mut failed = Vec::new();
    let mut shown = 0;
    for (name, part) in parts {
        if std::io::stderr().is_terminal() {
            eprintln!("{name} ...");
        }
        let section = part();
        shown += section.objects.len();
        if options.json {
            section.objects.iter().for_each(|o| println!("{o}"));
        } else {
            let text = section.text();
            if !text.is_empty() {
                println!("{text}");
            }
        }
        failed.extend(section.failed);
    }
    if shown == 0 {
        eprintln!("no benchmark has a name like {}", options.filter.join(" or "));
        return ExitCode::from(2);
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("failed: {}", failed.join(", "));
    ExitCode::FAILURE
}

/// What the figures depend on.
fn say_where(options: &Options, compiler: &Result<Compiler, String>) {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name"))
        .map_or("unknown CPU", |m| m.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let flags = native::instructions().join(" ");
    let cc = compiler.as_ref().map_or_else(|why| format!("no cc: {why}"), |c| format!("{} {flags}", c.version()));
    let build = if cfg!(debug_assertions) { "debug build: figures mean nothing" } else { "release build" };
    if options.json {
        let object = serde_json::json!({ "name": "host", "cpu": cpu, "cores": cores, "cc": cc, "build": build });
        println!("{object}");
    } else {
        println!("{cpu}, {cores} cores; {cc}; engine {:?}; {build}\n", options.engine());
    }
}
