//! Checks the files named on the command line, prints their diagnostics and how fast it went.
//!
//! `cargo run --release -p handloom-check --example check_files -- FILE...`; `-q` prints sums only, `-r` takes the
//! best time of ten.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use handloom_check::check;
use handloom_diag::{Kind, Severity, SourceMap, Style, render_human};

fn main() {
    let (flags, files): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|a| a.starts_with('-'));
    let repeats = if flags.iter().any(|f| f == "-r") { 10 } else { 1 };
    let quiet = flags.iter().any(|f| f == "-q");
    let mut sources = SourceMap::new();
    let (mut bytes, mut parsing, mut checking) = (0usize, Duration::ZERO, Duration::ZERO);
    let (mut bad, mut unsupported) = (0, BTreeMap::<String, u32>::new());
    for name in &files {
        let Ok(text) = std::fs::read_to_string(name) else {
            println!("{name}: cannot be read");
            continue;
        };
        let id = sources.add(name.clone(), text.clone());
        let (mut parse_time, mut check_time) = (Duration::MAX, Duration::MAX);
        for _ in 1..repeats {
            let start = Instant::now();
            let parse = handloom_syntax::parse(&text, id);
            parse_time = parse_time.min(start.elapsed());
            let start = Instant::now();
            std::hint::black_box(check(&parse.module, &text, id));
            check_time = check_time.min(start.elapsed());
        }
        let start = Instant::now();
        let parse = handloom_syntax::parse(&text, id);
        parsing += parse_time.min(start.elapsed());
        let start = Instant::now();
        let checked = check(&parse.module, &text, id);
        checking += check_time.min(start.elapsed());
        bytes += text.len();
        let mut program = false;
        for d in parse.errors.iter().chain(&checked.diagnostics) {
            if let Some(opcode) = d.opcode.as_ref().filter(|_| d.kind == Kind::Unsupported) {
                *unsupported.entry(opcode.clone()).or_default() += 1;
                continue;
            }
            program |= d.severity == Severity::Error;
            if !quiet {
                println!("{}", render_human(d, &sources, Style::Plain));
            }
        }
        bad += u32::from(program);
    }
    for (opcode, n) in &unsupported {
        println!("unsupported: {n:6} {opcode}");
    }
    let rate = |t: Duration| bytes as f64 / 1e6 / t.as_secs_f64();
    println!(
        "{} files, {bytes} bytes, {bad} wrong; parse {:.1} MB/s, check {:.1} MB/s, both {:.1} MB/s",
        files.len(),
        rate(parsing),
        rate(checking),
        rate(parsing + checking)
    );
}
