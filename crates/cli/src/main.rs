//! The binary `handloom`.
//!
//! Takes: a command line. Gives: text or JSON on standard output, diagnostics, an exit status.
//! Does not know: how PTX is read, checked, compiled or run; it calls the other crates.
//!
//! Invariants: nothing but this crate prints or opens files; the exit status is that of [`report::Status`], the same for all commands;
//! a panic anywhere becomes the text of a bug and status 101.
//!
//! How to read it: [`args`] is what can be typed, then one file a command. [`input`] reads texts, [`image`] takes them out of other files,
//! [`names`] finds entries by what people call them, [`entries`] finds what of a wrong module can still be used. Arguments of kernels are
//! [`words`] that are typed or specs of a [`jobfile`]; both become [`values`], with structures laid out by [`layout`], numbers by [`elements`]
//! and [`scalar`], memory by [`buffers`] and files by [`npy`] and [`outputs`]. [`dtype`] warns of files of another type than the kernel's.
//! [`launch`] is one launch and its report, [`expect`] compares results, [`seeds`] runs it with several seeds, [`findings`] is what checks found, less what files [`suppress`],
//! [`documents`] of it, among them [`sarif`], [`suite`] runs tests, [`mod@profile`] counts what launches do, [`mod@cover`] what they reach, [`traces`] when, [`mod@bench`] times them, [`compared`] what the times say by [`timing`], for sizes of a [`sweep`] and on a [`host`], [`notes`] what libraries say of it to `exec`, [`explain`] what its words mean, [`explore`] shows what a kernel becomes as a [`mod@page`], [`printed`] is what kernels print, [`watch`] are signals and
//! progress, [`report`] is everything else that is written.

#![forbid(unsafe_code)]

mod args;
mod bench;
mod bench_page;
mod buffers;
mod bug;
mod check;
mod compared;
mod compile;
mod counts;
mod cover;
mod documents;
mod dtype;
mod elements;
mod entries;
mod exec;
mod expect;
mod explain;
mod explore;
mod findings;
mod host;
mod image;
mod info;
mod input;
mod isa;
mod job;
mod jobfile;
mod launch;
mod layout;
mod names;
mod notes;
mod npy;
mod outputs;
mod page;
mod plot;
mod printed;
mod profile;
mod program;
mod report;
mod run;
mod sarif;
mod scalar;
mod seeds;
mod specs;
mod suite;
mod suppress;
mod sweep;
mod tensor_maps;
mod timing;
mod traces;
mod traps;
mod units;
mod values;
mod watch;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use handloom_runtime::{Backend, Vectors, async_order_of_environment};

use args::{Args, Command};
use report::{Failure, Out, Status};
use sweep::Sweep;

fn main() -> ExitCode {
    bug::install();
    let words: Vec<OsString> = std::env::args_os().collect();
    let args = read(&words);
    let mut out = Out::new(args.format);
    let result = bug::catch(|| command(&args.command, &words, &mut out));
    let result = result.unwrap_or_else(|panic| {
        out.bug(&panic, None);
        Ok(Status::Bug)
    });
    let status = result.unwrap_or_else(|failure| out.failure(&failure));
    ExitCode::from(out.finish(status).code())
}

/// Reads a command line; of one with a sweep, for its first size.
fn read(words: &[OsString]) -> Args {
    let Some(sweep) = Sweep::of_words(words) else { return Args::parse_from(words) };
    match sweep.words(words, sweep.values[0]) {
        Ok(words) => Args::parse_from(words),
        Err(why) => Args::command().error(clap::error::ErrorKind::InvalidValue, why).exit(),
    }
}

fn command(command: &Command, words: &[OsString], out: &mut Out) -> Result<Status, Failure> {
    if let Err(word) = Backend::named() {
        return Err(Failure::usage(format!("HANDLOOM_BACKEND is `{word}`: expected `cranelift` or `wide`")));
    }
    if let Err(word) = async_order_of_environment() {
        let text = format!("HANDLOOM_ASYNC_ORDER is `{word}`: expected `earliest`, `latest` or `seed`");
        return Err(Failure::usage(text));
    }
    if let Err(word) = Vectors::named() {
        return Err(Failure::usage(format!("HANDLOOM_ISA is `{word}`: expected `plain`, `avx2` or `avx512`")));
    }
    if out.document.is_some() && !matches!(command, Command::Run(_) | Command::Test(_) | Command::Exec(_)) {
        return Err(Failure::usage("`--format sarif` and `--format junit` are for `run`, `exec` and `test`"));
    }
    match command {
        Command::Check(args) => check::check(args, out),
        Command::Compile(args) => compile::compile(args, out),
        Command::Run(args) => seeds::run(args, out),
        Command::Bench(args) => bench::bench(args, words, out),
        Command::Profile(args) => profile::profile(args, out),
        Command::Cover(args) => cover::cover(args, out),
        Command::Test(args) => suite::test(args, out),
        Command::Exec(args) => exec::exec(args, out),
        Command::Info(args) => info::info(args, out),
        Command::Isa { opcode } => isa::isa(opcode.as_deref(), out),
        Command::Explain { code } => explain::explain(code, out),
        Command::Explore(args) => explore::explore(args, out),
        Command::Traps => {
            traps::traps(out);
            Ok(Status::Done)
        }
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "handloom", &mut text);
            out.write(&text);
            Ok(Status::Done)
        }
    }
}
