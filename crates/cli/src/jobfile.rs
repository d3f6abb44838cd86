//! The text of a job: many launches in one process. Unknown keys are refused.

use std::collections::BTreeMap;
use std::time::Duration;

use handloom_runtime::{Bounds, Engine, LaunchConfig};
use serde::Deserialize;

use crate::args::{RunArgs, thread_count, time_limit};

/// A job.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "an object with `launches`")]
pub struct Job {
    /// The PTX file of launches that name none.
    pub module: Option<String>,
    /// Buffers by name.
    #[serde(default)]
    pub buffers: BTreeMap<String, BufferSpec>,
    /// Launches in order.
    pub launches: Vec<LaunchSpec>,
    /// Files by the name of the buffer that is written to them.
    #[serde(default)]
    pub outputs: BTreeMap<String, String>,
    /// Whether a trap ends the job.
    #[serde(default)]
    pub on_trap: OnTrap,
    bounds: Option<BoundsSpec>,
    engine: Option<EngineSpec>,
    threads: Option<usize>,
}

/// What a trap does.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[serde(rename_all = "lowercase")]
pub enum OnTrap {
    /// Ends the job.
    #[default]
    Stop,
    /// Goes on with the next launch.
    Continue,
}

#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
enum BoundsSpec {
    Exact,
    Contained,
}

#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
enum EngineSpec {
    Jit,
    Interp,
}

/// A buffer: one of the two.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "an object with `file` or `zero`")]
pub struct BufferSpec {
    /// A file with its bytes.
    pub file: Option<String>,
    /// So many zeros.
    pub zero: Option<u64>,
}

/// A launch.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "an object with `grid` and `block`")]
pub struct LaunchSpec {
    /// Its PTX file, if it is not the job's.
    pub module: Option<String>,
    /// Its entry; the only one if it names none.
    pub entry: Option<String>,
    grid: Vec<u32>,
    block: Vec<u32>,
    #[serde(default)]
    shared: u32,
    /// Arguments in order.
    #[serde(default)]
    pub args: Vec<ArgSpec>,
    /// How often it runs.
    pub repeat: Option<u32>,
    #[serde(default)]
    cooperative: bool,
    cluster: Option<Vec<u32>>,
    seed: Option<u64>,
    timeout: Option<f64>,
}

/// An argument: one of `buffer`, `scalar`, `bytes`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "an object with `buffer`, `scalar` or `bytes`")]
pub struct ArgSpec {
    /// Name of a buffer.
    pub buffer: Option<String>,
    /// Byte of the buffer.
    pub offset: Option<u64>,
    /// A scalar of the parameter's type.
    pub scalar: Option<Scalar>,
    /// Bytes as hexadecimal digits.
    pub bytes: Option<String>,
}

/// A scalar as text, or as a number of JSON.
#[derive(Deserialize, Debug)]
#[serde(untagged, expecting = "a `scalar` that is no text and no number")]
pub enum Scalar {
    /// `"5"`.
    Text(String),
    /// `5`.
    Number(serde_json::Number),
}

impl Scalar {
    /// As it would be typed.
    pub fn text(&self) -> String {
        match self {
            Scalar::Text(text) => text.clone(),
            Scalar::Number(n) => n.to_string(),
        }
    }
}

/// What the reader says, without its names of types.
fn in_words_of_json(why: &str) -> String {
    let words = [
        ("u32", "a whole number from 0 to 2^32 - 1"),
        ("u64", "a whole number from 0 to 2^64 - 1"),
        ("usize", "a whole number from 0 to 2^64 - 1"),
        ("f64", "a number"),
        ("a sequence", "a list"),
        ("a map", "an object"),
    ];
    let named = words.iter().find_map(|(name, word)| {
        let (before, after) = why.split_once(&format!("expected {name} at line"))?;
        Some(format!("{before}expected {word} at line{after}"))
    });
    named
        .unwrap_or_else(|| why.to_owned())
        .replace("invalid type: sequence", "a list")
        .replace("invalid type: map", "an object")
}

fn dimensions(key: &str, list: &[u32]) -> Result<[u32; 3], String> {
    let mut out = [1; 3];
    if list.is_empty() || list.len() > 3 {
        return Err(format!("`{key}` has {} numbers: expected one to three", list.len()));
    }
    out.iter_mut().zip(list).for_each(|(to, from)| *to = *from);
    Ok(out)
}

impl Job {
    /// Reads a job.
    ///
    /// # Errors
    /// A sentence with the place.
    pub fn parse(text: &[u8]) -> Result<Job, String> {
        let job: Job = serde_json::from_slice(text).map_err(|e| in_words_of_json(&e.to_string()))?;
        if let Some(n) = job.threads
            && thread_count(n).is_none()
        {
            return Err(format!("{n} threads: expected a number from 1 to 1024"));
        }
        for (name, b) in &job.buffers {
            if b.file.is_some() == b.zero.is_some() {
                return Err(format!("buffer `{name}`: expected either `file` or `zero`"));
            }
        }
        if let Some(name) = job.outputs.keys().find(|name| !job.buffers.contains_key(*name)) {
            return Err(format!("output of `{name}`, which is no buffer of the job"));
        }
        Ok(job)
    }

    /// Shape and manner of a launch. What the command line says wins over the job's keys, and a launch's own over both.
    ///
    /// # Errors
    /// What was expected.
    pub fn config(&self, launch: &LaunchSpec, args: &RunArgs) -> Result<LaunchConfig, String> {
        let mut config = LaunchConfig::new(dimensions("grid", &launch.grid)?, dimensions("block", &launch.block)?);
        config.shared_bytes = launch.shared;
        config.cooperative = launch.cooperative;
        config.cluster = launch.cluster.as_deref().map(|c| dimensions("cluster", c)).transpose()?;
        config.seed = launch.seed.or(args.seed).unwrap_or(0);
        config.engine = match (args.engine, self.engine) {
            (Some(engine), _) => engine.into(),
            (None, Some(EngineSpec::Interp)) => Engine::Interp,
            (None, Some(EngineSpec::Jit) | None) => Engine::Jit,
        };
        config.bounds = match (args.bounds, self.bounds) {
            (Some(bounds), _) => bounds.into(),
            (None, Some(BoundsSpec::Contained)) => Bounds::Contained,
            (None, Some(BoundsSpec::Exact) | None) => Bounds::Exact,
        };
        config.threads = args.threads.map(std::num::NonZeroUsize::get).or(self.threads).unwrap_or(0);
        config.timeout = match launch.timeout {
            Some(seconds) => Some(limit(seconds)?),
            None => args.timeout,
        };
        if launch.repeat == Some(0) {
            return Err("`repeat` is 0: expected 1 or more".into());
        }
        Ok(config)
    }
}

fn limit(seconds: f64) -> Result<Duration, String> {
    time_limit(seconds).ok_or_else(|| format!("`timeout` is {seconds}: expected a number of seconds above 0"))
}

impl ArgSpec {
    /// Checks that it says one thing.
    ///
    /// # Errors
    /// What was expected.
    pub fn check(&self, job: &Job) -> Result<(), String> {
        let said = [self.buffer.is_some(), self.scalar.is_some(), self.bytes.is_some()];
        if said.iter().filter(|s| **s).count() != 1 {
            return Err("expected one of `buffer`, `scalar` and `bytes`".into());
        }
        if self.offset.is_some() && self.buffer.is_none() {
            return Err("`offset` belongs to `buffer`".into());
        }
        match &self.buffer {
            Some(name) if !job.buffers.contains_key(name) => {
                let all: Vec<String> = job.buffers.keys().map(|n| format!("`{n}`")).collect();
                let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
                Err(format!("`{name}` is no buffer of the job, which has {all}"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_get_a_sentence() {
        let why = |text: &str| Job::parse(text.as_bytes()).unwrap_err();
        assert!(why("").contains("line 1"));
        assert!(why("{\"launches\": [], \"buffer\": {}}").contains("unknown field `buffer`"));
        assert!(why("{\"launches\": [{\"entry\": \"k\"}]}").contains("missing field `grid`"));
        assert!(why("{\"launches\": [], \"buffers\": {\"x\": {}}}").contains("either `file` or `zero`"));
        assert!(why("{\"launches\": [], \"outputs\": {\"x\": \"x.bin\"}}").contains("no buffer"));
        assert!(why("{\"launches\": [], \"threads\": 0}").contains("from 1"));
        assert!(why("null").contains("expected an object with `launches`"));
        assert!(why("{\"launches\": {}}").contains("expected a list"));
        let launch = |rest: &str| why(&format!("{{\"launches\": [{{\"grid\": [1], \"block\": [1], {rest}}}]}}"));
        assert!(launch("\"shared\": -1").contains("expected a whole number from 0 to 2^32 - 1"));
        assert!(launch("\"args\": [{\"scalar\": true}]").contains("a `scalar` that is no text and no number"));
        assert!(launch("\"args\": [5]").contains("an object with `buffer`, `scalar` or `bytes`"));
    }
}
