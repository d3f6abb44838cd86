//! Clocks, samples and what is made of them.

use std::time::Instant;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

use crate::options::Clock;

/// The thread that asks.
const THIS: Pid = Pid::from_raw(0);

/// Time of one run, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sample {
    /// Wall time.
    pub wall_ns: f64,
    /// CPU time of the process.
    pub cpu_ns: f64,
}

impl Sample {
    /// What a clock says.
    pub fn by(self, clock: Clock) -> f64 {
        match clock {
            Clock::Cpu => self.cpu_ns,
            Clock::Wall => self.wall_ns,
        }
    }

    /// The share of one of `n` equal parts.
    pub fn over(self, n: u64) -> Sample {
        Sample { wall_ns: self.wall_ns / n as f64, cpu_ns: self.cpu_ns / n as f64 }
    }
}

/// Times a piece of work.
pub fn time<T>(work: impl FnOnce() -> T) -> (T, Sample) {
    let (wall, cpu) = (Instant::now(), cpu_ns());
    let result = work();
    let cpu_ns = cpu_ns() - cpu;
    (result, Sample { wall_ns: wall.elapsed().as_nanos() as f64, cpu_ns })
}

/// Does a piece of work on one processor, the last that this thread may use; what it starts stays there.
///
/// Those who take turns and need one processor share the same one: it never rests, so a virtual machine keeps it in its place. Where the
/// system does not obey, the work is done anywhere.
pub fn on_one_processor<T>(work: impl FnOnce() -> T) -> T {
    let all = sched_getaffinity(THIS).ok();
    let last = all.and_then(|all| (0..CpuSet::count()).rev().find(|&cpu| all.is_set(cpu).unwrap_or(false)));
    if let Some(last) = last {
        let mut one = CpuSet::new();
        // Refused: the work is done anywhere.
        let _ = one.set(last);
        let _ = sched_setaffinity(THIS, &one);
    }
    let result = work();
    if let Some(all) = all {
        let _ = sched_setaffinity(THIS, &all);
    }
    result
}

/// CPU time that this process has used.
fn cpu_ns() -> f64 {
    let t = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("the system has a clock of the process");
    t.tv_sec() as f64 * 1e9 + t.tv_nsec() as f64
}

/// The value in the middle; of an even number the mean of the two. Zero of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut v: Vec<f64> = values.into_iter().collect();
    v.sort_by(f64::total_cmp);
    match v.len() {
        0 => 0.0,
        n if n % 2 == 1 => v[n / 2],
        n => f64::midpoint(v[n / 2 - 1], v[n / 2]),
    }
}

/// The median over rounds of one side's time by the other's.
pub fn ratio(over: &[Sample], under: &[Sample], clock: Clock) -> f64 {
    median(over.iter().zip(under).map(|(a, b)| a.by(clock) / b.by(clock)))
}

/// The median time of samples.
pub fn typical(samples: &[Sample], clock: Clock) -> f64 {
    median(samples.iter().map(|s| s.by(clock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        let s = |ns: f64| Sample { wall_ns: ns, cpu_ns: ns };
        // Round by round: 2, 4, 1.
        assert_eq!(ratio(&[s(2.0), s(8.0), s(5.0)], &[s(1.0), s(2.0), s(5.0)], Clock::Wall), 2.0);
    }
}
