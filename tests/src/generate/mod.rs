//! Random legal kernels from a seed, for comparing engines.
//!
//! Takes: a seed. Gives: a [`Kernel`], PTX text with its launch and buffers. The same seed gives the same kernel as long as the records
//! stay the same.
//!
//! Invariants: a kernel is free of races, so that its result does not depend on the order of threads; all its addresses are within its
//! buffers; all its loops end; threads meet at barriers and warp-synchronising instructions.
//!
//! How to read it: `templates` draws instructions, `grow` makes a tree of statements, `emit` writes the tree as text with some of its
//! statements left out, [`compare`] runs it, `reduce` leaves out what a failure does not need.

mod compiled;
mod emit;
mod grow;
mod pressure;
pub mod templates;

use std::collections::HashSet;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use handloom_isa::target::{Suffix, Target, Version};

use crate::engines::{Argument, Job, Launch, TRACED, tiers};
use crate::filetest::values::edge;
use crate::reference::order::agrees;
use crate::rng::Rng;
use templates::{Special, Template};

/// A statement of a kernel.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Lines that belong together.
    Lines(Vec<String>),
    /// Two ways by a predicate, which the lines set; the second may be empty.
    If { set: Vec<String>, cond: String, then: Vec<Node>, otherwise: Vec<Node> },
    /// A loop that runs as often as register `count` says and leaves early where `leave` holds.
    Loop { count: String, leave: Option<String>, body: Vec<Node> },
    /// One of several ways by the low bits of a register.
    Switch { index: String, arms: Vec<Vec<Node>> },
}

/// A function that kernels call: takes a `.b32` and a `.b64`, gives a `.b32`.
#[derive(Clone, Debug)]
pub(crate) struct Func {
    pub(crate) name: String,
    pub(crate) body: Vec<Node>,
}

/// A random kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    seed: u64,
    header: &'static str,
    funcs: Vec<Func>,
    body: Vec<Node>,
    grid: [u32; 3],
    block: [u32; 3],
    cluster: Option<[u32; 3]>,
    shared_bytes: u32,
    scalar: u64,
}

/// Longest time of one launch. A kernel needs a few milliseconds; more is a hang.
const LIMIT: Duration = Duration::from_secs(20);

/// Longest time for leaving statements out.
const REDUCING: Duration = Duration::from_secs(60);

/// Most events of a trace that the plain analysis looks at: it takes time by their square, and by their cube where there are races.
const MOST_EVENTS: usize = 50_000;

/// Registers of each class that statements use.
pub(crate) const REGS: usize = 8;
/// Bytes of the buffer that all threads read.
pub(crate) const INPUT_BYTES: usize = 4096;
/// Bytes of each thread's own part of the result.
pub(crate) const OWN_BYTES: usize = 256;
/// Words that all threads change by atomics.
pub(crate) const TALLIES: usize = 16;
/// Rows of 16 bytes of the table of constants.
pub(crate) const TABLE_ROWS: usize = 32;

/// A target with its templates.
struct Dialect {
    header: &'static str,
    templates: Vec<Vec<Template>>,
    /// Readings of special registers, by register.
    specials: Vec<Vec<Special>>,
}

/// The targets that kernels are made for: one with the common instructions, one with most of the rest.
fn dialects() -> &'static [Dialect] {
    static ALL: OnceLock<Vec<Dialect>> = OnceLock::new();
    ALL.get_or_init(|| {
        let make = |header, version: (u8, u8), sm, suffix| {
            let version = Version { major: version.0, minor: version.1 };
            let target = Target { sm, suffix };
            let templates = templates::templates(version, target, header, 1);
            Dialect { header, templates, specials: templates::specials(header) }
        };
        vec![
            make(".version 8.0\n.target sm_90\n.address_size 64\n", (8, 0), 90, Suffix::None),
            make(".version 9.2\n.target sm_100a\n.address_size 64\n", (9, 2), 100, Suffix::Arch),
        ]
    })
}

/// Shapes of blocks: full warps, part of one, more than one, in up to three dimensions.
const BLOCKS: &[[u32; 3]] = &[
    [32, 1, 1],
    [1, 1, 1],
    [3, 1, 1],
    [31, 1, 1],
    [33, 1, 1],
    [48, 1, 1],
    [100, 1, 1],
    [64, 1, 1],
    [128, 1, 1],
    [5, 3, 2],
    [16, 16, 1],
    [8, 4, 1],
    [7, 9, 1],
    [4, 8, 2],
    [8, 2, 6],
    [2, 16, 2],
    [1, 1, 33],
    [16, 3, 1],
    [64, 2, 1],
    [16, 4, 1],
    [4, 4, 8],
];

/// Grids with their clusters.
const GRIDS: &[([u32; 3], Option<[u32; 3]>)] = &[
    ([1, 1, 1], None),
    ([1, 1, 1], None),
    ([3, 1, 1], None),
    ([2, 2, 1], None),
    ([2, 1, 3], None),
    ([4, 1, 1], Some([2, 1, 1])),
    ([6, 1, 1], Some([3, 1, 1])),
    ([2, 2, 2], Some([1, 2, 2])),
    ([2, 1, 1], Some([1, 1, 1])),
];

/// Kernels of seeds below it stay as they are: devices were asked about them.
pub const OF_DEVICES: u64 = 10_000;

/// The kernel of a seed.
pub fn kernel(seed: u64) -> Kernel {
    let mut rng = Rng::new(seed);
    let all = dialects();
    let dialect = &all[if rng.one_in(4) { 1 } else { 0 }];
    let block = *rng.pick(BLOCKS);
    let (grid, cluster) = *rng.pick(GRIDS);
    let shared_bytes = *rng.pick(&[0, 0, 40, 4096]);
    let (funcs, body) = grow::grow(&mut rng, &dialect.templates, &dialect.specials, block, seed >= OF_DEVICES);
    Kernel { seed, header: dialect.header, funcs, body, grid, block, cluster, shared_bytes, scalar: rng.next() }
}

impl Kernel {
    /// Its text.
    pub fn text(&self) -> String {
        self.text_without(&HashSet::new())
    }

    fn text_without(&self, dropped: &HashSet<usize>) -> String {
        emit::emit(self.header, &self.funcs, &self.body, dropped)
    }

    /// Number of statements.
    fn statements(&self) -> usize {
        emit::count(&self.funcs, &self.body)
    }

    /// Whether it is for a chip that has only the common instructions.
    pub fn is_common(&self) -> bool {
        self.header == dialects()[0].header
    }

    /// Whether all its warps are whole.
    pub fn has_whole_warps(&self) -> bool {
        self.block.iter().product::<u32>().is_multiple_of(32)
    }

    fn threads(&self) -> usize {
        let product = |d: [u32; 3]| d.iter().map(|n| usize::try_from(*n).unwrap_or(1)).product::<usize>();
        product(self.grid) * product(self.block)
    }

    /// It as a job.
    pub fn job<'t>(&'t self, text: &'t str) -> Job<'t> {
        let mut rng = Rng::new(self.seed);
        let input: Vec<u8> = (0..INPUT_BYTES / 8).flat_map(|_| edge(&mut rng).to_le_bytes()).collect();
        let args = vec![
            Argument::Buffer(0, 0),
            Argument::Buffer(1, 0),
            Argument::Buffer(2, 0),
            Argument::Scalar(self.scalar),
            Argument::Bytes(Self::rows()),
        ];
        Job {
            name: "random.ptx",
            text,
            buffers: vec![input, vec![0; self.threads() * OWN_BYTES], vec![0; TALLIES * 8]],
            addresses: vec![],
            launches: vec![Launch {
                entry: "k",
                grid: self.grid,
                block: self.block,
                shared_bytes: self.shared_bytes,
                args,
                cooperative: false,
                cluster: self.cluster,
            }],
            variables: vec![],
        }
    }

    /// The parameter that is an array.
    fn rows() -> Vec<u8> {
        (0..TABLE_ROWS * 16).map(|i| (i * 37 % 251) as u8).collect()
    }

    /// A text of the kernel as a file test that can be kept.
    fn file_test(&self, text: &str) -> String {
        let dims = |d: [u32; 3]| format!("({},{},{})", d[0], d[1], d[2]);
        let (seed, grid, block, shared) = (self.seed, dims(self.grid), dims(self.block), self.shared_bytes);
        let rows: Vec<String> = Self::rows().iter().map(|b| format!("{b:02x}")).collect();
        let cluster = self.cluster.map_or(String::new(), |c| format!(" cluster={}", dims(c)));
        format!(
            "//@ test: run\n//@ agree: random kernel {seed}, reduced\n\n{text}\n//@ buf input: u64 = edges({seed}) {}\n\
             //@ buf own: u32 = zero {}\n//@ buf tallies: u64 = zero {TALLIES}\n\
             //@ launch: k<<<{grid}, {block}, {shared}>>>(input, own, tallies, {:#x}, bytes:{}){cluster}\n",
            INPUT_BYTES / 8,
            self.threads() * OWN_BYTES / 4,
            self.scalar,
            rows.concat(),
        )
    }

    /// Runs a text of the kernel on all engines. `Err` says what differs.
    fn differs(&self, text: &str) -> Result<(), String> {
        let job = self.job(text);
        let mut reference = None;
        for way in tiers() {
            // The first line is enough: faults of ours carry whole listings.
            let got = job
                .run_within(way, 0, LIMIT)
                .map_err(|e| format!("[{}] {}", way.name, e.lines().next().unwrap_or_default()))?;
            if let Some(trap) = &got.trap {
                return Err(format!("[{}] trap: {}", way.name, trap.message()));
            }
            let Some(want) = &reference else {
                reference = Some(got);
                continue;
            };
            for (name, (w, g)) in ["input", "own", "tallies"].iter().zip(want.buffers.iter().zip(&got.buffers)) {
                if let Some(at) = w.iter().zip(g).position(|(a, b)| a != b) {
                    let at = at / 4 * 4;
                    let (w, g) = (&w[at..at + 4], &g[at..at + 4]);
                    return Err(format!("[{}] `{name}` byte {at}: {g:02x?} instead of {w:02x?}", way.name));
                }
            }
        }
        Ok(())
    }
}

/// Runs the kernel of a seed on all engines and compares all bytes.
///
/// # Errors
/// What differs, with the seed, the shape, and the shortest text that was found to differ too.
pub fn compare(seed: u64) -> Result<(), String> {
    let kernel = kernel(seed);
    let Err(what) = kernel.differs(&kernel.text()) else { return Ok(()) };
    let (text, what_then) = reduce(&kernel, &what);
    Err(format!("seed {seed}: {what}\nreduced: {what_then}\n{}", kernel.file_test(&text)))
}

/// Runs the kernel of a seed checked: nothing may be found, nor by the plain analysis of the trace. Then the same with one of its barriers left out:
/// both must find the same. Compiled code must tell the same of one of the two texts for two seeds of three: to compile that is most of the work. Returns how
/// many texts ran to their end and were not too long to be looked at, and how many races the second one had.
///
/// # Errors
/// What differs, with the seed and the text.
pub fn audit(seed: u64) -> Result<(usize, usize), String> {
    let kernel = kernel(seed);
    let text = kernel.text();
    let look = |text: &str, tells: bool| -> Result<Option<usize>, String> {
        let got = match kernel.job(text).run_within(TRACED, 0, LIMIT) {
            Ok(got) if got.trap.is_none() => got,
            // Without a barrier, threads may wait for ever.
            Ok(_) | Err(_) => return Ok(None),
        };
        if tells {
            kernel.job(text).tells_alike(seed).map_err(|e| format!("seed {seed}: {e}\n{text}"))?;
        }
        if got.events.iter().map(Vec::len).sum::<usize>() > MOST_EVENTS {
            return Ok(None);
        }
        agrees(text, &got.events, &got.findings).map(Some).map_err(|e| format!("seed {seed}: {e}\n{text}"))
    };
    let whole = look(&text, seed.is_multiple_of(3))?;
    if let Some(n) = whole.filter(|n| *n > 0) {
        return Err(format!("seed {seed}: {n} races in a kernel that has none\n{text}"));
    }
    let is_barrier =
        |line: &str| ["bar.sync ", "barrier.sync ", "bar.warp.sync "].iter().any(|b| line.trim_start().starts_with(b));
    let barriers: Vec<usize> = text.lines().enumerate().filter(|(_, line)| is_barrier(line)).map(|(i, _)| i).collect();
    let ended = usize::from(whole.is_some());
    if barriers.is_empty() {
        return Ok((ended, 0));
    }
    let left_out = *Rng::new(seed ^ 0x5eed).pick(&barriers);
    let without: String = text
        .lines()
        .enumerate()
        .map(|(i, line)| if i == left_out { "\n".into() } else { format!("{line}\n") })
        .collect();
    Ok(look(&without, seed % 3 == 1)?.map_or((ended, 0), |races| (ended + 1, races)))
}

/// What kind of failure a text tells of: all before its first number.
fn kind(what: &str) -> &str {
    what.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default()
}

/// Leaves out statements as long as the failure stays of its kind. Gives the text and what it says then.
fn reduce(kernel: &Kernel, first: &str) -> (String, String) {
    let n = kernel.statements();
    let mut dropped = HashSet::new();
    let mut what = first.to_owned();
    let mut size = n.next_power_of_two();
    let begun = Instant::now();
    while size > 0 && begun.elapsed() < REDUCING {
        for start in (0..n).step_by(size) {
            let more: Vec<usize> = (start..(start + size).min(n)).filter(|i| !dropped.contains(i)).collect();
            if more.is_empty() || begun.elapsed() > REDUCING {
                continue;
            }
            let mut fewer = dropped.clone();
            fewer.extend(&more);
            if let Err(e) = kernel.differs(&kernel.text_without(&fewer))
                && kind(&e) == kind(first)
            {
                dropped = fewer;
                what = e;
            }
        }
        size /= 2;
    }
    (kernel.text_without(&dropped), what)
}
