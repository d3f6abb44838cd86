//! The host that timings are taken on, in words.

use serde::Serialize;

/// A host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Host {
    /// The name of its processor, if the system tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Cores that this process may use.
    pub cores: usize,
    /// Programs that ran or wanted to run, on average over the last minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
}

/// This host, now.
pub fn describe() -> Host {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let name = |text: String| {
        let line = text.lines().find_map(|l| l.strip_prefix("model name"))?;
        Some(line.trim_start_matches([' ', '\t', ':']).to_owned())
    };
    Host {
        processor: read("/proc/cpuinfo").and_then(name),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        load: read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
    }
}

/// Bytes of the largest cache of a core, if the system tells them.
pub fn last_cache() -> Option<u64> {
    let sizes = (0..8).filter_map(|i| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{i}/size");
        handloom_runtime::words::size_bytes(&std::fs::read_to_string(path).ok()?)
    });
    sizes.max()
}

impl Host {
    /// A line for people.
    pub fn line(&self, threads: usize) -> String {
        let processor = self.processor.as_deref().unwrap_or("unknown processor");
        let load = self.load.map_or(String::new(), |l| format!(", load {l:.2} before"));
        let s = |n: usize| if n == 1 { "" } else { "s" };
        let (cores, n) = (self.cores, threads);
        format!("{processor}, {cores} core{}, {n} host thread{}{load}", s(cores), s(n))
    }

    /// Whether so much else runs that timings of so many threads tell little.
    pub fn is_busy(&self, threads: usize) -> bool {
        self.load.is_some_and(|load| load + threads as f64 > self.cores as f64 + 0.5)
    }
}
