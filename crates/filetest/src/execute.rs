//! Launches on all engines, and their results against the expectations.

use std::fmt::Write;

use handloom_check::check_text;
use handloom_diag::{FileId, Style};
use handloom_ir::simt::Param;
use handloom_runtime::{Bounds, Finding};

use crate::directives::{Argument, Directives, Expect, Launch, Note, Object};
use crate::engines::{self, CHECKED, CODE_CHECKED, CODE_TOLD, Job, Outcome, Way};
use crate::values::{Elem, bytes};
use crate::{FileTest, Suite};

/// Most wrong elements that are shown of one buffer.
const SHOWN: usize = 8;

/// All launches must end, the expectations hold, and all engines leave the same bytes.
pub fn run(test: &FileTest, d: &Directives, text: &str, suite: &Suite<'_>) -> Result<(), String> {
    let name = test.file_name();
    let job = job(&name, d, text)?;
    let mut reference: Option<Outcome> = None;
    for seed in d.seeds.clone() {
        for way in ways(d, suite) {
            let outcome = job.run(way, seed).map_err(|e| on(way, seed, &e))?;
            if let Some(trap) = &outcome.trap {
                return Err(on(way, seed, &trap.human(Style::Plain, None)));
            }
            holds(d, &job, &outcome).map_err(|e| on(way, seed, &e))?;
            match &reference {
                None => reference = Some(outcome),
                Some(r) => agree(d, r, &outcome).map_err(|e| on(way, seed, &e))?,
            }
        }
    }
    let late = if d.async_order.is_none() && d.faulty.is_none() { (suite.more)(text) } else { vec![] };
    for (way, seed) in late {
        let outcome = job.run(way, seed).map_err(|e| on(way, seed, &e))?;
        if let Some(trap) = &outcome.trap {
            return Err(on(way, seed, &trap.human(Style::Plain, None)));
        }
        holds(d, &job, &outcome).map_err(|e| on(way, seed, &e))?;
        if let Some(r) = &reference {
            agree(d, r, &outcome).map_err(|e| on(way, seed, &e))?;
        }
    }
    if d.faulty.is_none() && (suite.also_checked)(test) {
        let outcome = job.run(CHECKED, d.seeds.start).map_err(|e| on(CHECKED, d.seeds.start, &e))?;
        if !outcome.findings.is_empty() {
            return Err(on(CHECKED, d.seeds.start, &texts(&outcome.findings)));
        }
        tells_alike(&job, d.seeds.start, suite)?;
    }
    if d.faulty.is_none() && suite.ways.len() > 1 && (suite.also_counted)(test) {
        job.counts_alike(d.seeds.start)?;
    }
    Ok(())
}

/// Where several engines are compared: compiled code tells a check what the interpreter tells, and finds what it finds.
fn tells_alike(job: &Job<'_>, seed: u64, suite: &Suite<'_>) -> Result<(), String> {
    if suite.ways.len() < 2 {
        return Ok(());
    }
    job.tells_alike(seed).map(drop).map_err(|e| on(CODE_TOLD, seed, &e))?;
    job.finds_alike(seed).map(drop).map_err(|e| on(CODE_CHECKED, seed, &e))
}

fn texts(findings: &[Finding]) -> String {
    findings.iter().map(Finding::human).collect::<Vec<_>>().join("\n")
}

/// A checked run must find what is noted, with every seed, and nothing else: a note with the class stands on each of the two lines.
pub fn find(test: &FileTest, d: &Directives, text: &str, suite: &Suite<'_>) -> Result<(), String> {
    let name = test.file_name();
    let job = job(&name, d, text)?;
    for seed in d.seeds.clone() {
        let outcome = job.run(suite.finder, seed).map_err(|e| on(CHECKED, seed, &e))?;
        (suite.opinion)(text, &outcome).map_err(|e| on(CHECKED, seed, &e))?;
        if let Some(trap) = &outcome.trap {
            return Err(on(CHECKED, seed, &trap.human(Style::Plain, None)));
        }
        holds(d, &job, &outcome).map_err(|e| on(CHECKED, seed, &e))?;
        tells_alike(&job, seed, suite)?;
        let is_of = |n: &Note, f: &Finding| {
            let mut lines = std::iter::once(&f.first).chain(&f.second).map(|at| at.line);
            n.code == f.kind && n.text == f.class && lines.any(|line| line == n.line)
        };
        let is_noted = |f: &&Finding| {
            let mut places = std::iter::once(&f.first).chain(&f.second);
            places.all(|at| d.notes.iter().any(|n| n.line == at.line && is_of(n, f)))
        };
        let stray: Vec<Finding> = outcome.findings.iter().filter(|f| !is_noted(f)).cloned().collect();
        if !stray.is_empty() {
            return Err(on(CHECKED, seed, &format!("found without notes:\n{}", texts(&stray))));
        }
        if let Some(n) = d.notes.iter().find(|n| !outcome.findings.iter().any(|f| is_of(n, f))) {
            let all = texts(&outcome.findings);
            return Err(on(CHECKED, seed, &format!("not found: line {}: {} {}; but\n{all}", n.line, n.code, n.text)));
        }
    }
    Ok(())
}

/// The last launch must trap at the noted line on all engines, with the same report.
pub fn trap(test: &FileTest, d: &Directives, text: &str, suite: &Suite<'_>) -> Result<(), String> {
    let name = test.file_name();
    let job = job(&name, d, text)?;
    let [note] = d.notes.as_slice() else { return Err("a trap test needs exactly one `//~ trap KIND` note".into()) };
    let (kind, says) = note.text.split_once(' ').unwrap_or((&note.text, ""));
    let mut told: Option<String> = None;
    for seed in d.seeds.clone() {
        for way in ways(d, suite) {
            let outcome = job.run(way, seed).map_err(|e| on(way, seed, &e))?;
            let Some(trap) = &outcome.trap else { return Err(on(way, seed, "nothing trapped")) };
            let human = trap.human(Style::Plain, None);
            let place = trap.place().map(|p| p.1.line);
            if note.code != "trap" || trap.kind().word() != kind || place != Some(note.line) || !tells(&human, says) {
                let want = format!("expected `trap {kind} {says}` on line {}, but:\n{human}", note.line);
                return Err(on(way, seed, &want));
            }
            let human = without_window(&human);
            match &told {
                Some(other) if *other != human => {
                    return Err(on(way, seed, &format!("the report differs:\n{human}\nand before:\n{other}")));
                }
                _ => told = Some(human),
            }
            holds(d, &job, &outcome).map_err(|e| on(way, seed, &e))?;
        }
    }
    Ok(())
}

/// Whether a report says a text. The guilty line is shown in it, with the note behind it, which says nothing.
fn tells(report: &str, text: &str) -> bool {
    report.lines().any(|l| l.split_once("//~").map_or(l, |(code, _)| code).contains(text))
}

/// The text with addresses counted from the start of their device's window, which is 64 GiB large. Each run has a device of its own.
pub fn without_window(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let digits = part.chars().take_while(char::is_ascii_hexdigit).count();
        let skip = digits.saturating_sub(9);
        out.push_str("0x");
        out.push_str(&part[if digits > 11 { skip } else { 0 }..]);
    }
    out
}

fn ways(d: &Directives, suite: &Suite<'_>) -> impl Iterator<Item = Way> {
    let exact = d.exact_bounds_only;
    let async_order = d.async_order;
    let all = suite.ways.iter().copied().filter(move |w| !exact || w.bounds == Bounds::Exact);
    all.map(move |way| Way { async_order, ..way })
}

fn on(way: Way, seed: u64, what: &str) -> String {
    format!("[{}, seed {seed}] {what}", way.name)
}

/// The job of a test with a name and a text.
///
/// # Errors
/// The text is wrong, or its launches do not fit it.
pub fn job<'t>(name: &'t str, d: &'t Directives, text: &'t str) -> Result<Job<'t>, String> {
    let checked = check_text(text, FileId(0));
    let module = handloom_lower::lower(&checked.module.ok_or("the module has errors")?);
    let one = |l: &'t Launch| {
        let entry = module.entries.get(&l.entry).ok_or_else(|| format!("no entry `{}`", l.entry))?;
        Ok(engines::Launch {
            entry: &l.entry,
            grid: l.grid,
            block: l.block,
            shared_bytes: l.shared_bytes,
            args: args(l, &entry.params)?,
            cooperative: l.cooperative,
            cluster: l.cluster,
        })
    };
    let is_variable = |e: &&Expect| d.buffers.iter().all(|b| b.name != e.name);
    Ok(Job {
        name,
        text,
        buffers: d.buffers.iter().map(|b| bytes(b.elem, &b.init)).collect(),
        addresses: d.objects.iter().filter_map(Object::address).collect(),
        launches: d.launches.iter().map(one).collect::<Result<_, String>>()?,
        variables: d.expects.iter().filter(is_variable).map(|e| e.name.clone()).collect(),
    })
}

fn args(l: &Launch, params: &[Param]) -> Result<Vec<engines::Argument>, String> {
    if l.args.len() != params.len() {
        return Err(format!("`{}` takes {} arguments, not {}", l.entry, params.len(), l.args.len()));
    }
    let one = |(a, p): (&Argument, &Param)| {
        Ok(match a {
            Argument::Buffer(i, offset) => engines::Argument::Buffer(*i, *offset),
            Argument::Bytes(bytes) => engines::Argument::Bytes(bytes.clone()),
            Argument::Literal(text) => {
                engines::Argument::Scalar(Elem::parse(p.ty.name().trim_start_matches('.'))?.literal(text)?)
            }
        })
    };
    l.args.iter().zip(params).map(one).collect()
}

/// The expectations of a test.
fn holds(d: &Directives, job: &Job<'_>, outcome: &Outcome) -> Result<(), String> {
    let mut wrong = String::new();
    for e in &d.expects {
        let got = match d.buffers.iter().position(|b| b.name == e.name) {
            Some(i) => Some(&outcome.buffers[i]),
            None => {
                let i = job.variables.iter().position(|v| *v == e.name);
                i.and_then(|i| outcome.variables[i].as_ref())
            }
        };
        let Some(got) = got else { return Err(format!("line {}: the module has no variable `{}`", e.line, e.name)) };
        differences(e, got, &mut wrong);
    }
    if let Some(want) = &d.output {
        let got = String::from_utf8_lossy(&outcome.output);
        if got != *want {
            let _ = writeln!(wrong, "printed {got:?} instead of {want:?}");
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn differences(e: &Expect, got: &[u8], wrong: &mut String) {
    let (n, bytes) = (e.want.len(), e.elem.bytes());
    if got.len() != n * bytes {
        let _ = writeln!(wrong, "line {}: `{}` has {} elements, not {n}", e.line, e.name, got.len() / bytes);
        return;
    }
    let mut count = 0;
    for (i, want) in e.want.iter().enumerate() {
        let (Some(want), Some(bits)) = (*want, e.elem.get(got, i)) else { continue };
        if e.within.holds(e.elem, bits, want) {
            continue;
        }
        count += 1;
        if count <= SHOWN {
            let (got, want) = (e.elem.show(bits), e.elem.show(want));
            let _ = writeln!(wrong, "line {}: {}[{i}] is {got}, expected {want}", e.line, e.name);
        }
    }
    if count > SHOWN {
        let _ = writeln!(wrong, "line {}: {} more elements of `{}` are wrong", e.line, count - SHOWN, e.name);
    }
}

/// Both must have left the same bytes.
fn agree(d: &Directives, reference: &Outcome, other: &Outcome) -> Result<(), String> {
    for (i, b) in d.buffers.iter().enumerate() {
        let (want, got) = (&reference.buffers[i], &other.buffers[i]);
        if want == got {
            continue;
        }
        let all = 0..want.len() / b.elem.bytes();
        let first = all.clone().find(|i| b.elem.get(want, *i) != b.elem.get(got, *i)).unwrap_or(0);
        let show = |bytes| b.elem.get(bytes, first).map_or(String::new(), |v| b.elem.show(v));
        return Err(format!("{}[{first}] is {}, but {} on the reference", b.name, show(got), show(want)));
    }
    if reference.variables != other.variables {
        return Err("the module's variables differ from the reference".into());
    }
    if reference.output == other.output { Ok(()) } else { Err("the printed text differs from the reference".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_does_not_prove_itself() {
        let report =
            "trap: out of bounds\n3 |     st.u32 [%a], %b;   //~ trap out_of_bounds lanes 1-4\n  = note: lanes 1-5\n";
        assert!(tells(report, "lanes 1-5") && tells(report, "st.u32") && tells(report, ""));
        assert!(!tells(report, "lanes 1-4"));
    }
}
