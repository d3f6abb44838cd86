//! Grades checks by labelled kernels (`tests/labelled`): what is found, missed and told wrongly, by class, and the same for the plain analysis of races.
//!
//! A label says that a kernel has a fault of a class, by a rule of the manual. A kernel without one must be clean. A fault counts as found if it is
//! with every seed of its file, and as told wrongly if it is with any.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;

use handloom_filetest::engines::{Outcome, TRACED};
use handloom_filetest::{Suite, collect, parse, run_file};
use handloom_tests::reference::order::races_of;

/// A kernel of a file, and what was seen there.
#[derive(Default)]
struct Kernel {
    /// The first line and the one behind the last.
    lines: (u32, u32),
    labels: BTreeSet<String>,
    /// By class: seeds that showed it.
    found: BTreeMap<String, usize>,
    /// Seeds with which the plain analysis calls it racy.
    plain: usize,
    seeds: usize,
}

/// One line of the table.
#[derive(Default, Clone, Copy)]
struct Row {
    labelled: usize,
    found: usize,
    missed: usize,
    wrong: usize,
}

impl Row {
    fn add(&mut self, is_labelled: bool, seen: usize, seeds: usize) {
        self.labelled += usize::from(is_labelled);
        self.found += usize::from(is_labelled && seen == seeds);
        self.missed += usize::from(is_labelled && seen < seeds);
        self.wrong += usize::from(!is_labelled && seen > 0);
    }
}

/// The kernels of a text, with their labels.
fn kernels(text: &str) -> Vec<Kernel> {
    let directives = parse(text).expect("the file tests hold that it can be read");
    let begins = text.lines().zip(1..).filter(|(line, _)| line.contains(".entry ")).map(|(_, n)| n);
    let mut begins: Vec<u32> = begins.collect();
    begins.push(u32::MAX);
    let kernel = |lines: &[u32]| {
        let lines = (lines[0], lines[1]);
        let notes = directives.notes.iter().filter(|n| (lines.0..lines.1).contains(&n.line));
        let labels = notes.map(|n| format!("{} {}", n.code, n.text)).collect();
        Kernel { lines, labels, ..Kernel::default() }
    };
    begins.windows(2).map(kernel).collect()
}

/// Adds what a run with one seed has shown.
fn note(kernels: &mut [Kernel], text: &str, outcome: &Outcome) {
    let pairs = races_of(text, &outcome.events);
    for kernel in kernels {
        let has = |line: u32| (kernel.lines.0..kernel.lines.1).contains(&line);
        let here = outcome.findings.iter().filter(|f| has(f.first.line));
        let classes: BTreeSet<String> = here.map(|f| format!("{} {}", f.kind, f.class)).collect();
        classes.into_iter().for_each(|class| *kernel.found.entry(class).or_default() += 1);
        kernel.plain += usize::from(pairs.iter().any(|(line, _)| has(*line)));
        kernel.seeds += 1;
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "the table is what this is for")]
fn labelled_kernels_are_graded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let tests = collect(&root).expect("the folder can be read");
    let (mut checks, mut plain): (BTreeMap<String, Row>, Row) = (BTreeMap::new(), Row::default());
    let (mut n_kernels, mut n_clean, mut n_families) = (0, 0, 0);
    let mut wrong = Vec::new();
    // Families, programs of nvcc, and those that were written one by one.
    for test in tests.iter().filter(|test| test.name.starts_with("find/")) {
        let seen = Mutex::new(kernels(&test.text));
        let suite = Suite {
            ways: vec![],
            finder: TRACED,
            also_checked: &|_| false,
            also_counted: &|_| false,
            more: &|_| vec![],
            opinion: &|text, outcome| {
                note(&mut seen.lock().expect("nobody panics"), text, outcome);
                Ok(())
            },
        };
        // What the labels do not say is told by the file test; here it is counted.
        if let Err(why) = run_file(test, &suite) {
            wrong.push(format!("{}: {why}", test.name));
        }
        n_families += usize::from(test.text.lines().next().is_some_and(|line| line.ends_with("(families.py)")));
        for kernel in seen.into_inner().expect("nobody panics") {
            n_kernels += 1;
            n_clean += usize::from(kernel.labels.is_empty());
            let classes: BTreeSet<&String> = kernel.labels.iter().chain(kernel.found.keys()).collect();
            for class in classes {
                let seen = kernel.found.get(class).copied().unwrap_or(0);
                checks.entry(class.clone()).or_default().add(kernel.labels.contains(class), seen, kernel.seeds);
            }
            let is_racy = kernel.labels.iter().any(|label| label.starts_with("race "));
            plain.add(is_racy, kernel.plain, kernel.seeds);
        }
    }
    let line = |name: &str, row: Row| {
        println!("{name:32} {:8} {:8} {:8} {:8}", row.labelled, row.found, row.missed, row.wrong);
    };
    println!("{n_kernels} kernels, {n_clean} of them clean; {n_families} families");
    println!("{:32} {:>8} {:>8} {:>8} {:>8}", "class", "labelled", "found", "missed", "false");
    checks.iter().for_each(|(class, row)| line(class, *row));
    line("all races, plain analysis", plain);
    let rows = || checks.values().copied().chain([plain]);
    assert_eq!((rows().map(|row| row.missed).sum::<usize>(), rows().map(|row| row.wrong).sum::<usize>()), (0, 0));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_families >= 16 && n_kernels >= 400 && n_clean >= 150, "labelled kernels are missing");
    assert!(rows().all(|row| row.labelled > 0), "a class that no label has");
}
