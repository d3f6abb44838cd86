//! What a GPU answered: questions of `tests/src/device`, whose answers `tests/device/ask.py` recorded on a GPU, asked here again.
//!
//! A plain run asks each question of one engine, in turn, and a share of those that take long. `HANDLOOM_DEVICE=all` asks all of them of all engines
//! of the host. Parts of answers that differ on purpose are [`EXCEPTIONS`], each with the reason; an exception that no difference needs is a failure too.
//! Questions that have changed since they were recorded are counted.
//!
//! To record answers anew, on a machine with a GPU: `cargo run --release -p handloom-tests --example device_jobs -- FOLDER`, then
//! `tests/device/ask.py tests/device/answers.zlib FOLDER/*.jsonl`. Tests of products of
//! matrices (`wmma`, `wgmma`, `mma_runs`) write their jobs with `HANDLOOM_DEVICE_JOBS=FOLDER`; they look at `tests/device/matrices.txt`.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use handloom_runtime::Bounds;
use handloom_tests::device::{Answers, Part, Question, questions};
use handloom_tests::engines::{Way, ways};

#[path = "device/exceptions.rs"]
mod exceptions;

use exceptions::EXCEPTIONS;

/// A plain run asks one of so many random kernels, which take long to compile, and of kernels that convert, which have many rows.
const KERNELS: usize = 23;
const CONVERSIONS: usize = 3;

/// Fewest parts that must have been recorded as they are asked now.
const RECORDED: usize = 10_000;

fn recorded() -> Answers {
    let packed = include_bytes!("device/answers.zlib");
    let bytes = miniz_oxide::inflate::decompress_to_vec_zlib(packed).expect("the answers are a zlib stream");
    Answers::read(std::str::from_utf8(&bytes).expect("the answers are text")).expect("they are answers")
}

/// What became of the parts that were asked.
#[derive(Default)]
struct Tally {
    equal: usize,
    /// Parts without an answer: the GPU refused them, or they have changed since.
    unanswered: usize,
    /// Names and ways that differ, and whether that is expected, with the number of the exception.
    differs: Vec<(String, &'static str, Option<usize>)>,
    /// What could not be run.
    failed: Vec<String>,
    /// Parts of each exception that were asked.
    excepted: BTreeMap<usize, usize>,
}

/// Asks a question of an engine.
fn ask(question: &Question, way: Way, answers: &Answers, tally: &Mutex<Tally>) {
    question.with(|job, parts| {
        let known = |p: &&Part| answers.by_name.get(&p.name).is_some_and(|a| a.key == p.key);
        let asked: Vec<_> = parts.iter().filter(known).collect();
        // Random kernels in which a check finds something were never asked.
        let was_asked = |p: &&Part| !question.wants_check() || answers.by_name.contains_key(&p.name);
        let unanswered = parts.iter().filter(was_asked).count() - asked.len();
        if asked.is_empty() {
            tally.lock().expect("no worker panics").unanswered += unanswered;
            return;
        }
        let left = match job.run(way, 0) {
            Ok(left) if left.trap.is_none() => Ok(left),
            Ok(left) => Err(left.trap.map_or(String::new(), |t| t.message().to_owned())),
            Err(why) => Err(why),
        };
        let mut tally = tally.lock().expect("no worker panics");
        tally.unanswered += unanswered;
        let left = match left {
            Ok(left) => left,
            Err(why) => return tally.failed.push(format!("{} [{}]: {why}", parts[0].name, way.name)),
        };
        for part in asked {
            let exception = EXCEPTIONS.iter().position(|e| (e.matches)(&part.name));
            if let Some(number) = exception {
                *tally.excepted.entry(number).or_default() += 1;
            }
            let (want, got) = (answers.by_name[&part.name], part.answer(&left.buffers));
            let is_equal = if part.is_its_nan { want.raw == got.raw } else { want.calm == got.calm };
            if is_equal {
                tally.equal += 1;
            } else {
                tally.differs.push((part.name.clone(), way.name, exception));
            }
        }
    });
}

#[test]
#[allow(clippy::print_stdout, reason = "what was asked, and what has changed")]
fn engines_answer_what_a_gpu_answered() {
    let all = std::env::var_os("HANDLOOM_DEVICE").is_some_and(|v| v == "all");
    let answers = recorded();
    let questions = questions();
    let ways: Vec<Way> = ways().filter(|w| w.bounds == Bounds::Exact).collect();
    let next = AtomicUsize::new(0);
    let tally = Mutex::<Tally>::default();
    let work = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(question) = questions.get(i) else { break };
            let one = [ways[i % ways.len()]];
            let every = match question {
                Question::Random(_) | Question::Guarded(_) => KERNELS,
                Question::Conversions(_) => CONVERSIONS,
                Question::Sheet(_) | Question::File(_) => 1,
            };
            let share = if i.is_multiple_of(every) { &one[..] } else { &[] };
            for way in if all { &ways[..] } else { share } {
                ask(question, *way, &answers, &tally);
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|s| (0..cores).for_each(|_| _ = s.spawn(work)));
    let tally = tally.into_inner().expect("no worker panics");
    let n_ways = if all { ways.len() } else { 1 };
    let asked = (tally.equal + tally.differs.len()) / n_ways;
    println!("{}", answers.head.join("\n"));
    println!("{asked} parts asked, {} equal, {} differ", tally.equal / n_ways, tally.differs.len() / n_ways);
    println!("{} not recorded as they are now", tally.unanswered / n_ways);
    let wrong = tally.differs.iter().filter(|d| d.2.is_none());
    let wrong: Vec<String> = wrong.map(|(name, way, _)| format!("{name} [{way}]")).chain(tally.failed).collect();
    let shown = if all { wrong.len() } else { 40 };
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..shown.min(wrong.len())].join("\n"));
    assert!(asked >= RECORDED, "only {asked} parts are recorded as they are asked now");
    for (number, exception) in EXCEPTIONS.iter().enumerate() {
        let of = answers.by_name.keys().filter(|name| (exception.matches)(name)).count();
        let is_asked = tally.excepted.get(&number).is_some_and(|asked| *asked >= of);
        let differs = tally.differs.iter().any(|d| d.2 == Some(number));
        assert!(differs || !is_asked, "nothing differs any more: {}", exception.reason);
    }
}
