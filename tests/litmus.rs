//! One trial for each shape of `litmus`, and trials that show that the harness sees what there is to see.
//!
//! A plain run takes some cases of each shape, in which every choice is met, some thousand times each. `HANDLOOM_LITMUS=all` takes all cases,
//! 100,000 times each; `HANDLOOM_LITMUS_SEED=N` begins at another seed and so takes other cases;
//! `HANDLOOM_LITMUS_SHOW=1` prints the outcomes of each shape.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use handloom_runtime::Bounds;
use handloom_tests::engines::{INTERP, compiled, device, plain};
use handloom_tests::litmus::file::{Shape, parse};
use handloom_tests::litmus::run::{MANNERS, check, n_forbidden, run, table};
use handloom_tests::rng::Rng;
use libtest_mimic::{Arguments, Failed, Trial};

/// Runs of each case if all are asked for.
const ALL: u32 = 100_000;
/// Runs of each case otherwise.
const SOME: u32 = 8192;
/// Runs of each case by the interpreter, which is one thread and always the same.
const FEW: u32 = 120;

fn main() -> ExitCode {
    let args = Arguments::from_args();
    let mut trials: Vec<Trial> = files().into_iter().map(trial).collect();
    trials.push(Trial::test("store_buffering_is_seen", || seen(SB)));
    trials.push(Trial::test("store_buffering_with_weaker_orders_is_seen", || seen(SB_ACQ_REL)));
    trials.push(Trial::test("a_wrong_claim_is_caught", a_wrong_claim_is_caught));
    trials.push(Trial::test("threads_of_all_placements_interleave", threads_interleave));
    libtest_mimic::run(&args, trials).exit_code()
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    files.sort();
    files
}

#[allow(clippy::print_stdout, reason = "the outcomes were asked for")]
fn trial(path: PathBuf) -> Trial {
    let name = path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    Trial::test(name, move || {
        let text = std::fs::read_to_string(&path)?;
        let shape = parse(&text)?;
        let device = device()?;
        let all = std::env::var("HANDLOOM_LITMUS").is_ok_and(|v| v == "all");
        let cases = if all { shape.cases() } else { shape.some_cases(&mut Rng::new(seed())) };
        check(&device, &shape, &cases, all, INTERP, FEW, seed())?;
        let runs = if all { ALL } else { SOME };
        for way in compiled(Bounds::Exact) {
            let outcomes = check(&device, &shape, &cases, all, way, runs, seed())?;
            if std::env::var("HANDLOOM_LITMUS_SHOW").is_ok() {
                println!(
                    "{}: {} of {} cases by {}\n{}",
                    path.display(),
                    cases.len(),
                    shape.cases().len(),
                    way.name,
                    table(&shape, &outcomes)
                );
            }
        }
        Ok(())
    })
}

fn seed() -> u64 {
    std::env::var("HANDLOOM_LITMUS_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1)
}

/// Store buffering without fences. The host shows it, and the model allows it.
const SB: &str = "
locations x y
place 0 | 1
thread 0
    st.relaxed.gpu.global.u32 [x], 1;
    ld.relaxed.gpu.global.u32 r0, [y];
thread 1
    st.relaxed.gpu.global.u32 [y], 1;
    ld.relaxed.gpu.global.u32 r0, [x];
forbidden 0:r0 == 0 && 1:r0 == 0
";

/// Store buffering with orders that are too weak against it: a full barrier where none is asked for would hide it.
const SB_ACQ_REL: &str = "
locations x y
place 0 | 1
thread 0
    st.release.gpu.global.u32 [x], 1;
    fence.acq_rel.gpu;
    ld.acquire.gpu.global.u32 r0, [y];
thread 1
    st.release.gpu.global.u32 [y], 1;
    fence.acq_rel.gpu;
    ld.acquire.gpu.global.u32 r0, [x];
forbidden 0:r0 == 0 && 1:r0 == 0
";

/// The harness can see a forbidden outcome: it sees one that the host really has, if two threads run at the same time.
fn seen(text: &str) -> Result<(), Failed> {
    if std::thread::available_parallelism().is_ok_and(|n| n.get() < 2) {
        return Ok(());
    }
    let shape = parse(text)?;
    let device = device()?;
    let cases = shape.cases();
    compiled(Bounds::Contained).try_for_each(|way| {
        let started = Instant::now();
        let mut seed = seed();
        while started.elapsed() < Duration::from_secs(120) {
            for manner in MANNERS {
                let outcomes = run(&device, &shape, &cases[0], *manner, way, 8192, seed)?;
                if n_forbidden(&shape, &outcomes) > 0 {
                    return Ok(());
                }
                seed += 1;
            }
        }
        Err(format!("the host's own reordering was not seen by {}", way.name).into())
    })
}

/// A shape that forbids what surely happens fails, with the case and the seed.
fn a_wrong_claim_is_caught() -> Result<(), Failed> {
    let text = "
locations x=5
place 0, 1
with order
    relaxed
thread 0
    ld.{order}.gpu.global.u32 r0, [x];
thread 1
    st.{order}.gpu.global.u32 [x], 7;
forbidden 0:r0 == 5 && x == 7 || 0:r0 == 7
";
    let shape = parse(text)?;
    let device = device()?;
    for way in plain(Bounds::Exact) {
        let told = check(&device, &shape, &shape.cases(), true, way, 64, 1).err().unwrap_or_default();
        if !(told.contains("place 0, 1; memory .global; order `relaxed`") && told.contains("seed")) {
            return Err(format!("by {}: {told}", way.name).into());
        }
    }
    Ok(())
}

/// Wherever the threads stand, either of two stores comes last in some instances, and a load sees each of them.
fn threads_interleave() -> Result<(), Failed> {
    let text = "
locations x
mem global shared generic
place 0 1 2
place 0, 1, 2
place 0, 1 | 2
place 0 | 1 | 2
thread 0
    st.relaxed.gpu{mem}.u32 [x], 1;
thread 1
    st.relaxed.gpu{mem}.u32 [x], 2;
thread 2
    ld.relaxed.gpu{mem}.u32 r0, [x];
forbidden 0:r0 != 0 || 1:r0 != 0
";
    let shape: Shape = parse(text)?;
    let device = device()?;
    let wanted = [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)];
    for (way, case) in compiled(Bounds::Exact).flat_map(|way| shape.cases().into_iter().map(move |case| (way, case))) {
        let mut kinds = BTreeSet::new();
        // Three paths of one warp do not come in all orders: the body of each stands in two places.
        let enough = if case.picks[0] == 0 { 4 } else { wanted.len() };
        for seed in seed()..seed() + 200 {
            for manner in MANNERS {
                let outcomes = run(&device, &shape, &case, *manner, way, 4096, seed)?;
                kinds.extend(outcomes.keys().map(|o| (o[2], o[3])));
            }
            if kinds.len() >= enough {
                break;
            }
        }
        if kinds.len() < enough || !kinds.iter().all(|k| wanted.contains(k)) {
            return Err(format!("{} by {}: only {kinds:?}", case.name, way.name).into());
        }
    }
    Ok(())
}
