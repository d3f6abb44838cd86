//! Questions for a GPU, and what one answered.
//!
//! Takes: the generators of the tree. Gives: [`Question`]s, jobs with the parts of what they leave that are looked at; jobs as
//! lines for `tests/device/ask.py`, which runs them on a GPU; its [`Answers`], digests by part.
//!
//! Invariants: a question is the same whenever it is made; what its parts hold is fixed by the manual, or the manual leaves open no more
//! than which NaN a result is; answers come from the GPU alone. An answer has the key of its question, so that one whose question has
//! changed is known.
//!
//! How to read it: `sheets`, `conversions` and `defined` make questions, `digest` what is kept of bytes, `jobs` lines for the GPU.

mod conversions;
mod defined;
mod digest;
pub mod jobs;
mod sheets;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use crate::engines::{Argument, Job, Launch, Outcome};
use crate::filetest::{Directives, Expect, FileTest, Test, collect, parse, root};
use crate::{generate, once_a_cta};
use conversions::{Conversions, conversions};
use digest::Nans;
pub use digest::digest;
use handloom_filetest::values::{Elem, Within};
use sheets::{Sheet, sheets};

/// What questions about instructions begin with.
const HEADER: &str = ".version 8.7\n.target sm_90a\n.address_size 64\n";
/// Threads of a block of questions about instructions.
const BLOCK: usize = 256;
/// Seeds of random kernels that are asked about, if a checked run finds nothing in them.
const RANDOM: Range<u64> = 0..3000;
/// The same, of kernels whose guards fail in part.
const GUARDED: Range<u64> = 0..2500;

/// A part of what a job leaves that is looked at.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it is called in answers.
    pub name: String,
    /// What it depends on, as a number.
    pub key: u64,
    /// Where it lies: buffers, and bytes of them.
    pub pieces: Vec<(usize, Range<usize>)>,
    /// What its elements are, if they are floats.
    pub nans: Nans,
    /// Whether its NaNs must be the chip's own.
    pub is_its_nan: bool,
}

impl Part {
    /// Its bytes.
    fn bytes(&self, buffers: &[Vec<u8>]) -> Vec<u8> {
        self.pieces.iter().flat_map(|(b, range)| &buffers[*b][range.clone()]).copied().collect()
    }

    /// Digests of what buffers hold: of the bytes, and with all NaNs made one value.
    pub fn answer(&self, buffers: &[Vec<u8>]) -> Answer {
        let bytes = self.bytes(buffers);
        Answer { key: self.key, raw: digest(&bytes), calm: digest(&self.nans.calm(&bytes)) }
    }
}

/// What a device left of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The key of its question.
    pub key: u64,
    /// Digest of the bytes.
    pub raw: u64,
    /// Digest with all NaNs made one value.
    pub calm: u64,
}

/// Recorded answers.
#[derive(Clone, Debug)]
pub struct Answers {
    /// Script, chip, driver, version of CUDA and day.
    pub head: Vec<String>,
    /// Answers by name of the part.
    pub by_name: HashMap<String, Answer>,
}

impl Answers {
    /// Reads what `tests/device/ask.py` wrote.
    ///
    /// # Errors
    /// The line that is no answer.
    pub fn read(text: &str) -> Result<Answers, String> {
        let (head, lines): (Vec<&str>, Vec<&str>) = text.lines().partition(|l| l.starts_with("# "));
        let hex = |word: &str| u64::from_str_radix(word, 16).ok();
        let one = |line: &&str| {
            let [name, key, raw, calm] = line.split('\t').collect::<Vec<_>>()[..] else { return None };
            let raw = hex(raw)?;
            let answer = Answer { key: hex(key)?, raw, calm: if calm == "-" { raw } else { hex(calm)? } };
            Some((name.to_owned(), answer))
        };
        let by_name = lines.iter().map(|l| one(l).ok_or_else(|| format!("no answer: `{l}`")));
        Ok(Answers { head: head.into_iter().map(str::to_owned).collect(), by_name: by_name.collect::<Result<_, _>>()? })
    }
}

/// The answers to the jobs of other tests.
fn of_others() -> &'static Answers {
    static ALL: OnceLock<Answers> = OnceLock::new();
    ALL.get_or_init(|| Answers::read(include_str!("../../device/matrices.txt")).expect("they are answers"))
}

/// A job of another test as a question: all that it leaves, named by what it depends on.
fn of_job(job: &Job<'_>) -> Part {
    Part { name: format!("{} {:016x}", job.name, key(job)), ..whole("", job) }
}

/// Holds what a job of another test left against what a GPU answered, if it was asked.
///
/// # Errors
/// They differ.
///
/// # Panics
/// The answers are damaged.
pub fn holds(job: &Job<'_>, left: &Outcome) -> Result<(), String> {
    let part = of_job(job);
    match of_others().by_name.get(&part.name) {
        Some(answer) if *answer != part.answer(&left.buffers) => Err("a GPU answered something else".into()),
        _ => Ok(()),
    }
}

/// A question.
#[derive(Clone, Debug)]
pub enum Question {
    /// Value instructions.
    Sheet(Sheet),
    /// Forms of `cvt`.
    Conversions(Conversions),
    /// The random kernel of a seed.
    Random(u64),
    /// The random kernel of a seed whose guards fail in part.
    Guarded(u64),
    /// A file test.
    File(FileTest),
}

/// All questions.
///
/// # Panics
/// The file tests cannot be read.
pub fn questions() -> Vec<Question> {
    let files = collect(&root()).expect("the file tests can be read");
    let files = files.into_iter().filter(|f| ["isa/", "launch/", "golden/"].iter().any(|w| f.name.starts_with(w)));
    let random = RANDOM.filter(|seed| generate::kernel(*seed).is_common());
    sheets()
        .into_iter()
        .map(Question::Sheet)
        .chain(conversions().into_iter().map(Question::Conversions))
        .chain(random.map(Question::Random))
        .chain(GUARDED.map(Question::Guarded))
        .chain(files.map(Question::File))
        .collect()
}

/// A launch of a row of blocks.
fn plain_launch(entry: &str, blocks: usize, args: Vec<Argument>) -> Launch<'_> {
    Launch {
        entry,
        grid: [u32::try_from(blocks).unwrap_or(1), 1, 1],
        block: [BLOCK as u32, 1, 1],
        shared_bytes: 0,
        args,
        cooperative: false,
        cluster: None,
    }
}

/// The key of a job that is looked at as a whole.
fn key(job: &Job<'_>) -> u64 {
    let launches = format!("{:?} {:?}", job.launches, job.addresses);
    let buffers = job.buffers.iter().map(|b| digest(b));
    let parts = [digest(job.text.as_bytes()), digest(launches.as_bytes())].into_iter().chain(buffers);
    digest(&parts.flat_map(u64::to_le_bytes).collect::<Vec<_>>())
}

/// All that a job leaves, as one part.
fn whole(name: &str, job: &Job<'_>) -> Part {
    let pieces = job.buffers.iter().enumerate().map(|(i, b)| (i, 0..b.len())).collect();
    Part { name: name.to_owned(), key: key(job), pieces, nans: Nans::None, is_its_nan: true }
}

impl Question {
    /// What it is called.
    pub fn name(&self) -> String {
        match self {
            Question::Sheet(sheet) => sheet.parts().first().map_or(String::new(), |p| p.name.clone()),
            Question::Conversions(c) => c.name(),
            Question::Random(seed) => format!("random {seed}"),
            Question::Guarded(seed) => format!("guarded {seed}"),
            Question::File(file) => format!("file {}", file.name),
        }
    }

    /// Whether it is only asked if a checked run of it finds nothing.
    pub fn wants_check(&self) -> bool {
        matches!(self, Question::Random(_) | Question::Guarded(_))
    }

    /// Does something with its job and its parts; `None` if it is none for a GPU.
    pub fn with<T>(&self, work: impl FnOnce(&Job<'_>, &[Part]) -> T) -> Option<T> {
        match self {
            Question::Sheet(sheet) => Some(work(&sheet.job("value"), &sheet.parts())),
            Question::Conversions(c) => Some(c.with("cvt", work)),
            Question::Random(seed) => {
                let kernel = generate::kernel(*seed);
                let text = defined::defined(&kernel.text(), kernel.has_whole_warps());
                let job = kernel.job(&text);
                Some(work(&job, &[whole(&self.name(), &job)]))
            }
            Question::Guarded(seed) => {
                let kernel = once_a_cta::kernel(*seed);
                let [x, y] = kernel.block.seen;
                let text = defined::with_tile(&kernel.text, once_a_cta::TILE / 4, x * y);
                let job = kernel.job(&text);
                Some(work(&job, &[whole(&self.name(), &job)]))
            }
            Question::File(file) => of_file(file, work),
        }
    }
}

/// Words of file tests whose results are not fixed, or which a program for the driver API cannot launch as they are.
const OPEN: &[&str] = &[
    "%clock",
    "%globaltimer",
    "%smid",
    "%nsmid",
    "%warpid",
    "%nwarpid",
    "%gridid",
    "activemask",
    ".approx",
    "tanh",
    "div.full",
    "cudaCDP2",
    "cudaGetParameterBuffer",
    "%envreg",
    "smem_size",
    ".texref",
    ".surfref",
    ".samplerref",
];

/// File tests whose results depend on where variables and parameters lie, or on how deep stacks are.
const PLACED: &[&str] =
    &["isa/data_movement/address_sum_wraps", "isa/data_movement/param_in_32_bits", "isa/stack/alloca"];

/// The buffers of a run test whose values are fixed by the file are its parts.
fn of_file<T>(file: &FileTest, work: impl FnOnce(&Job<'_>, &[Part]) -> T) -> Option<T> {
    let d: Directives = parse(&file.text).ok()?;
    let is_run = d.test == Test::Run && d.objects.is_empty() && d.known_wrong.is_none();
    if !is_run
        || d.faulty.is_some()
        || PLACED.contains(&file.name.as_str())
        || OPEN.iter().any(|w| file.text.contains(w))
    {
        return None;
    }
    let name = file.file_name();
    let job = handloom_filetest::job(&name, &d, &file.text).ok()?;
    let is_fixed = |e: &&Expect| e.within == Within::Bits && e.want.iter().all(Option::is_some);
    let key = key(&job);
    let part = |e: &Expect| {
        let buffer = d.buffers.iter().position(|b| b.name == e.name)?;
        let nans = match e.elem {
            Elem::Int { .. } => Nans::None,
            Elem::F16 => Nans::F16,
            Elem::Bf16 => Nans::Bf16,
            Elem::F32 => Nans::F32,
            Elem::F64 => Nans::F64,
        };
        let pieces = vec![(buffer, 0..job.buffers[buffer].len())];
        Some(Part { name: format!("file {}: {}", file.name, e.name), key, pieces, nans, is_its_nan: false })
    };
    let parts: Vec<Part> = d.expects.iter().filter(is_fixed).filter_map(part).collect();
    (!parts.is_empty()).then(|| work(&job, &parts))
}
