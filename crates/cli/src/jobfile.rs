//! The text of a job: many launches in one process. Unknown keys are refused.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use handloom_ir::num::image::{Kind, Spec};
use handloom_runtime::{AsyncOrder, Backend, Bounds, Engine, LaunchConfig};
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

use crate::args::{AsyncArg, RunArgs, thread_count, time_limit};
use crate::specs::{ContentSpec, ExpectSpec, ValueSpec};
use crate::tensor_maps::TensorMapSpec;

/// A job.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "an object with `launches`")]
pub struct Job {
    /// The PTX file of launches that name none.
    pub module: Option<String>,
    /// Further PTX files whose symbols the modules may use.
    #[serde(default)]
    pub link: Vec<String>,
    /// Buffers by name.
    #[serde(default)]
    pub buffers: BTreeMap<String, ContentSpec>,
    /// Textures by name; an argument that names one is its handle.
    #[serde(default)]
    textures: BTreeMap<String, Spec>,
    /// Samplers by name.
    #[serde(default)]
    samplers: BTreeMap<String, Spec>,
    /// Surfaces by name.
    #[serde(default)]
    surfaces: BTreeMap<String, Spec>,
    /// What variables of the modules are filled with before the first launch.
    #[serde(default)]
    pub globals: BTreeMap<String, ContentSpec>,
    /// Tensor maps by name.
    #[serde(default)]
    pub tensor_maps: BTreeMap<String, TensorMapSpec>,
    /// Launches in order.
    pub launches: Vec<LaunchSpec>,
    /// Files by the name of the buffer or variable that is written to them.
    #[serde(default)]
    pub outputs: BTreeMap<String, String>,
    /// What buffers and variables are compared with after the launches.
    #[serde(default)]
    pub expect: BTreeMap<String, ExpectSpec>,
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

/// A launch.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "an object with `grid` and `block`")]
pub struct LaunchSpec {
    /// Its PTX file, if it is not the job's.
    pub module: Option<String>,
    /// Further PTX files, if they are not the job's.
    pub link: Option<Vec<String>>,
    /// Its entry; the only one if it names none.
    pub entry: Option<String>,
    grid: Dimensions,
    block: Dimensions,
    #[serde(default)]
    shared: u32,
    /// Arguments in order.
    #[serde(default)]
    pub args: Vec<ValueSpec>,
    /// What variables of its module are filled with before it.
    #[serde(default)]
    pub globals: BTreeMap<String, ContentSpec>,
    /// How often it runs.
    pub repeat: Option<u32>,
    #[serde(default)]
    cooperative: bool,
    cluster: Option<Dimensions>,
    seed: Option<u64>,
    async_order: Option<AsyncArg>,
    timeout: Option<f64>,
    /// Bytes that a run moves, for the throughput that `bench` tells.
    pub bytes: Option<f64>,
    /// Operations that a run does, for the same.
    pub operations: Option<f64>,
}

/// Dimensions: a number, or a list of one to three.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Dimensions(Vec<u32>);

impl<'de> Deserialize<'de> for Dimensions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Dimensions, D::Error> {
        struct Numbers;
        impl<'de> Visitor<'de> for Numbers {
            type Value = Dimensions;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number from 0 to 2^32 - 1 or a list of one to three")
            }
            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Dimensions, E> {
                let wrong = || E::invalid_value(de::Unexpected::Unsigned(n), &self);
                Ok(Dimensions(vec![u32::try_from(n).map_err(|_| wrong())?]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Dimensions, A::Error> {
                let mut all = Vec::new();
                while let Some(n) = list.next_element()? {
                    all.push(n);
                }
                Ok(Dimensions(all))
            }
        }
        from.deserialize_any(Numbers)
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

fn dimensions(key: &str, Dimensions(list): &Dimensions) -> Result<[u32; 3], String> {
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
        let mut job: Job = serde_json::from_slice(text).map_err(|e| in_words_of_json(&e.to_string()))?;
        if let Some(n) = job.threads
            && thread_count(n).is_none()
        {
            return Err(format!("{n} threads: expected a number from 1 to 1024"));
        }
        job.take_objects()?;
        for (name, b) in &job.buffers {
            b.check().map_err(|why| format!("buffer `{name}`: {why}"))?;
            if b.offset.is_some() {
                return Err(format!("buffer `{name}`: `offset` belongs to a variable in `globals`"));
            }
        }
        let of_launches = job.launches.iter().flat_map(|l| &l.globals);
        for (name, g) in job.globals.iter().chain(of_launches) {
            g.check().map_err(|why| format!("variable `{name}`: {why}"))?;
        }
        Ok(job)
    }

    /// Puts textures, samplers and surfaces among the buffers, which hold their records.
    fn take_objects(&mut self) -> Result<(), String> {
        let textures = std::mem::take(&mut self.textures).into_iter().map(|o| (Kind::Texture, o));
        let samplers = std::mem::take(&mut self.samplers).into_iter().map(|o| (Kind::Sampler, o));
        let surfaces = std::mem::take(&mut self.surfaces).into_iter().map(|o| (Kind::Surface, o));
        for (kind, (name, spec)) in textures.chain(samplers).chain(surfaces) {
            spec.object(kind).map_err(|why| format!("{} `{name}`: {why}", kind.word()))?;
            if self.buffers.insert(name.clone(), ContentSpec::of_object(kind, spec)).is_some() {
                return Err(format!("two things are called `{name}`"));
            }
        }
        Ok(())
    }

    /// Shape and manner of a launch. What the command line says wins over the job's keys, and a launch's own over both.
    ///
    /// # Errors
    /// What was expected.
    pub fn config(&self, launch: &LaunchSpec, args: &RunArgs) -> Result<LaunchConfig, String> {
        let mut config = LaunchConfig::new(dimensions("grid", &launch.grid)?, dimensions("block", &launch.block)?);
        config.shared_bytes = launch.shared;
        config.cooperative = launch.cooperative;
        config.cluster = launch.cluster.as_ref().map(|c| dimensions("cluster", c)).transpose()?;
        config.seed = launch.seed.or(args.seed).unwrap_or(0);
        let async_order = launch.async_order.or(args.async_order);
        config.async_order = async_order.map(AsyncOrder::from).or(config.async_order);
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
        config.backend = args.backend.map_or(config.backend, Backend::from);
        config.stack_bytes = args.stack.unwrap_or(config.stack_bytes);
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
        assert!(why("{\"launches\": [], \"globals\": {\"x\": {}}}").contains("variable `x`: expected either `file`"));
        assert!(why("{\"launches\": [], \"buffers\": {\"x\": {\"addresses\": [5]}}}").contains("the name of a buffer"));
        assert!(why("{\"launches\": [], \"threads\": 0}").contains("from 1"));
        assert!(why("null").contains("expected an object with `launches`"));
        assert!(why("{\"launches\": {}}").contains("expected a list"));
        let launch = |rest: &str| why(&format!("{{\"launches\": [{{\"grid\": [1], \"block\": [1], {rest}}}]}}"));
        assert!(launch("\"shared\": -1").contains("expected a whole number from 0 to 2^32 - 1"));
        assert!(launch("\"args\": [{\"scalar\": true}]").contains("a `scalar` that is no text and no number"));
        assert!(launch("\"args\": [5]").contains("an object with `buffer`, `scalar` or `bytes`"));
        assert!(launch("\"cluster\": \"2\"").contains("a whole number from 0 to 2^32 - 1 or a list of one to three"));
        assert!(launch("\"cluster\": 4294967296").contains("a whole number"));
        assert!(launch("\"cluster\": [1, -1]").contains("expected a whole number from 0 to 2^32 - 1"));
    }

    #[test]
    fn shapes_are_numbers_or_lists() {
        let text = "{\"launches\": [{\"grid\": 4, \"block\": [32, 2], \"cluster\": [2]}]}";
        let job = Job::parse(text.as_bytes()).unwrap();
        let launch = &job.launches[0];
        assert_eq!((&launch.grid.0, &launch.block.0), (&vec![4], &vec![32, 2]));
        assert_eq!(launch.cluster, Some(Dimensions(vec![2])));
    }
}
