//! Questions as lines of JSON, for `tests/device/ask.py`.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{Part, Question, digest, of_job};
use crate::engines::{Argument, CODE_CHECKED, JIT_EXACT, Job, Outcome, WIDE_EXACT, is_there};

/// Shortest buffer that is written once for all jobs of a file.
const BLOB: usize = 1024;

/// What became of a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Written {
    /// A job, and why it could not be run here: a fault of Handloom's.
    Job(String, Option<String>),
    /// Nothing: it is none for a GPU.
    None,
    /// Nothing: a checked run ends early or finds something, which is said in a line.
    Found(String),
}

/// The job of a question, with the digests that a run of it here gives, so that the answers that differ can be looked at.
///
/// # Errors
/// It cannot be run.
pub fn job(question: &Question, blobs: &mut HashSet<u64>) -> Result<Written, String> {
    let written = question.with(|job, parts| {
        if question.wants_check() {
            let outcome = job.run(CODE_CHECKED, 0)?;
            if let Some(trap) = &outcome.trap {
                return Ok(Written::Found(format!("a trap: {}", trap.message())));
            }
            if let Some(found) = outcome.findings.first() {
                return Ok(Written::Found(found.human().lines().next().unwrap_or_default().to_owned()));
            }
        }
        let way = if is_there(WIDE_EXACT.backend, WIDE_EXACT.vectors) { WIDE_EXACT } else { JIT_EXACT };
        let outcome = job.run(way, 0);
        if let Ok(Outcome { trap: Some(trap), .. }) = &outcome {
            return Ok(Written::Found(format!("a trap: {}", trap.message())));
        }
        let fault = outcome.as_ref().err().cloned();
        // What cannot be run here is asked all the same.
        let expected = outcome.map(|o| parts.iter().map(|p| p.answer(&o.buffers).raw).collect::<Vec<_>>()).ok();
        Ok(Written::Job(lines(&question.name(), job, parts, expected.as_deref(), blobs), fault))
    });
    written.unwrap_or(Ok(Written::None))
}

/// Adds a job of another test, if `HANDLOOM_DEVICE_JOBS` names a folder for it.
///
/// # Panics
/// It cannot be written.
pub fn add(job: &Job<'_>) {
    let Some(folder) = std::env::var_os("HANDLOOM_DEVICE_JOBS") else { return };
    let path = Path::new(&folder).join(format!("{}.{}.jsonl", job.name, std::process::id()));
    let part = of_job(job);
    let text = lines(&part.name, job, std::slice::from_ref(&part), None, &mut HashSet::new());
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut f| f.write_all(text.as_bytes())).expect("jobs can be written");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

/// The line of a job, after those of its large buffers.
fn lines(name: &str, job: &Job<'_>, parts: &[Part], expected: Option<&[u64]>, blobs: &mut HashSet<u64>) -> String {
    let mut before = String::new();
    let mut buffer = |bytes: &Vec<u8>| -> Value {
        let first = bytes.first().copied().unwrap_or(0);
        if bytes.iter().all(|b| *b == first) {
            return json!({ "byte": first, "n": bytes.len() });
        }
        if bytes.len() < BLOB {
            return Value::String(hex(bytes));
        }
        let id = digest(bytes);
        if blobs.insert(id) {
            // The reader knows these lines by how they begin.
            let _ = writeln!(before, "{{\"blob\":\"{id:016x}\",\"hex\":\"{}\"}}", hex(bytes));
        }
        json!({ "blob": format!("{id:016x}") })
    };
    let buffers: Vec<Value> = job.buffers.iter().map(&mut buffer).collect();
    let arg = |a: &Argument| match a {
        Argument::Buffer(i, offset) => json!({ "buffer": i, "offset": offset }),
        Argument::Bytes(bytes) => json!({ "bytes": hex(bytes) }),
        Argument::Scalar(bits) => json!({ "bytes": hex(&bits.to_le_bytes()) }),
    };
    let launches = job.launches.iter().map(|l| {
        json!({ "entry": l.entry, "grid": l.grid, "block": l.block, "shared": l.shared_bytes, "cluster": l.cluster,
                "cooperative": l.cooperative, "args": l.args.iter().map(arg).collect::<Vec<_>>() })
    });
    let part = |(i, p): (usize, &Part)| {
        let pieces: Vec<_> = p.pieces.iter().map(|(b, range)| json!([b, range.start, range.end])).collect();
        json!({ "name": p.name, "key": format!("{:016x}", p.key), "pieces": pieces, "nans": p.nans.name(),
                "expected": expected.map(|all| all[i]) })
    };
    let addresses = job.addresses.iter().map(|a| json!([a.at.0, a.at.1, a.to.0, a.to.1]));
    let line = json!({
        "name": name, "text": job.text, "buffers": buffers, "launches": launches.collect::<Vec<_>>(),
        "addresses": addresses.collect::<Vec<_>>(),
        "parts": parts.iter().enumerate().map(part).collect::<Vec<_>>(),
    });
    format!("{before}{line}\n")
}
