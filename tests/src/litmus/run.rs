//! Launches cases and counts outcomes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use handloom_runtime::{Arg, Device, Engine, LaunchConfig, Module, launch};

use super::file::{Case, Fact, Shape, What};
use super::kernel::{Kernel, Layout};
use crate::engines::Way;

/// How instances of a case are laid out, and whether threads give way inside of their bodies.
pub const MANNERS: &[(Layout, bool)] = &[(Layout::Packed, false), (Layout::Scattered, false), (Layout::Spread, true)];

/// Most instances of a launch.
const LAUNCH: u32 = 1 << 13;

/// Longest time of a launch: threads that never meet are a failure.
const LIMIT: Duration = Duration::from_secs(60);

/// Turns of the loop in which blocks wait for each other before the first round, some tens of milliseconds: as long as the host may need to wake
/// the second thread.
const PAUSE: u32 = 10_000_000;
/// The same where more blocks than host threads wait: they never all run at the same time.
const SHORT_PAUSE: u32 = 100_000;

/// Outcomes with their numbers: registers thread by thread, then the last values of locations.
pub type Outcomes = BTreeMap<Vec<u32>, u64>;

/// Runs instances of a case in launches whose seeds count up from `seed`.
///
/// # Errors
/// A sentence: the module or a launch is wrong, or a launch trapped.
pub fn run(
    device: &Device,
    shape: &Shape,
    case: &Case,
    (layout, shaken): (Layout, bool),
    way: Way,
    runs: u32,
    seed: u64,
) -> Result<Outcomes, String> {
    let kernel = Kernel::new(shape, case, layout, shaken, runs.min(LAUNCH));
    let told = |e: String| format!("{}: {e}\n{}", case.name, kernel.text);
    let module = Module::from_text(device, "litmus.ptx", &kernel.text).map_err(|e| told(e.to_string()))?;
    let function = module.function(Some("litmus")).map_err(|e| told(e.to_string()))?;
    let (n, n_regs) = (kernel.n_instances() as usize, shape.n_regs());
    let room = |bytes: usize| device.zeroed(bytes as u64).map_err(|e| told(e.to_string()));
    let mut memory = room(kernel.memory_bytes() as usize)?;
    let results = room((shape.threads.len() * n_regs * n * 4).max(4))?;
    let mut meeting = room(64 * kernel.groups as usize)?;
    let mut start = vec![0; kernel.memory_bytes() as usize];
    for (l, (_, value)) in shape.locations.iter().enumerate() {
        for i in 0..kernel.n_instances() {
            let at = kernel.place(l as u32, i) as usize;
            start[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
    }
    let pause = match (way.engine, kernel.blocks) {
        (Engine::Jit, 2) => PAUSE,
        (Engine::Jit, 3..) => SHORT_PAUSE,
        (Engine::Jit | Engine::Interp, _) => 0,
    };
    let mut outcomes = Outcomes::new();
    for k in 0..u64::from(runs.div_ceil(kernel.n_instances())) {
        memory.write(0, &start);
        meeting.fill(0);
        let seed = seed + k;
        let config = LaunchConfig {
            seed,
            engine: way.engine,
            backend: way.backend,
            bounds: way.bounds,
            tier: way.tier,
            timeout: Some(LIMIT),
            threads: if way.engine == Engine::Jit { 2 } else { 1 },
            ..LaunchConfig::new([kernel.blocks * kernel.groups, 1, 1], [kernel.block, 1, 1])
        };
        // The kernel takes rotations from the low bits; 32 bits of the seed are enough to tell launches apart.
        let word = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
        let args = [Arg::from(&memory), Arg::from(&results), Arg::from(&meeting), Arg::from(word), Arg::from(pause)];
        let _report = launch(&function, &config, &args).map_err(|e| told(format!("seed {seed}: {e}")))?;
        let (last, regs) = (memory.to_vec(), results.to_vec());
        let word =
            |bytes: &[u8], at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut seen = Vec::new();
        for i in 0..n {
            seen.clear();
            seen.extend((0..shape.threads.len() * n_regs).map(|r| word(&regs, (r * n + i) * 4)));
            let place = |l: usize| kernel.place(l as u32, i as u32) as usize;
            seen.extend((0..shape.locations.len()).map(|l| word(&last, place(l))));
            match outcomes.get_mut(&seen) {
                Some(n) => *n += 1,
                None => drop(outcomes.insert(seen.clone(), 1)),
            }
        }
    }
    Ok(outcomes)
}

/// Whether an outcome is the one that the shape forbids.
pub fn is_forbidden(shape: &Shape, outcome: &[u32]) -> bool {
    let holds = |f: &Fact| {
        let at = match f.what {
            What::Reg { thread, reg } => thread * shape.n_regs() + reg,
            What::Location(l) => shape.threads.len() * shape.n_regs() + l,
        };
        (outcome[at] == f.value) == f.equal
    };
    shape.forbidden.iter().any(|all| all.iter().all(holds))
}

/// How often the forbidden outcome was seen.
pub fn n_forbidden(shape: &Shape, outcomes: &Outcomes) -> u64 {
    outcomes.iter().filter(|(o, _)| is_forbidden(shape, o)).map(|(_, n)| n).sum()
}

/// A table of outcomes for people; the forbidden ones have a star.
pub fn table(shape: &Shape, outcomes: &Outcomes) -> String {
    let mut text = String::new();
    for (o, n) in outcomes {
        let mut line = String::new();
        let (regs, locations) = o.split_at(shape.threads.len() * shape.n_regs());
        for (i, v) in regs.iter().enumerate() {
            let _ = write!(line, " {}:r{}={v}", i / shape.n_regs(), i % shape.n_regs());
        }
        for ((name, _), v) in shape.locations.iter().zip(locations) {
            let _ = write!(line, " {name}={v}");
        }
        let _ = writeln!(text, "  {}{line}: {n} times", if is_forbidden(shape, o) { '*' } else { ' ' });
    }
    text
}

/// Runs cases of a shape, each at least `runs` times: in every manner, or if not `all` in one.
///
/// # Errors
/// The first case in which the forbidden outcome was seen, or that did not run.
pub fn check(
    device: &Device,
    shape: &Shape,
    cases: &[Case],
    all: bool,
    way: Way,
    runs: u32,
    seed: u64,
) -> Result<Outcomes, String> {
    let mut sum = Outcomes::new();
    for (c, case) in cases.iter().enumerate() {
        let (manners, runs) = if all {
            (MANNERS, runs.div_ceil(MANNERS.len() as u32))
        } else {
            (&MANNERS[c % MANNERS.len()..][..1], runs)
        };
        for (m, manner) in manners.iter().enumerate() {
            let seed = seed.wrapping_mul(1_000_003).wrapping_add((c * MANNERS.len() + m) as u64 * 64);
            let outcomes = run(device, shape, case, *manner, way, runs, seed)?;
            if case.claims && n_forbidden(shape, &outcomes) > 0 {
                return Err(format!(
                    "the forbidden outcome was seen\n  {}\n  {manner:?}, {}, seeds from {seed}\n{}{}",
                    case.name,
                    way.name,
                    table(shape, &outcomes),
                    case.threads.iter().enumerate().map(|(i, t)| format!("thread {i}:\n{t}\n")).collect::<String>(),
                ));
            }
            outcomes.into_iter().for_each(|(o, n)| *sum.entry(o).or_default() += n);
        }
    }
    Ok(sum)
}
