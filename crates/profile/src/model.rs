//! A profile as data: what `handloom profile` writes as JSON, and reads again to compare.
//!
//! `PROFILE.md` says what each count means. Names of fields are part of the schema: a change of one is a new [`VERSION`].

use serde::{Deserialize, Serialize};

use handloom_ir::simt::Does;

use crate::kind::Kind;
use crate::timeline::Timeline;
use handloom_counts::sums;
use handloom_counts::{Space, Traffic, Waits, Warps};

/// What a file of this schema says of itself.
pub const SCHEMA: &str = "handloom-profile";

/// Version of the schema.
pub const VERSION: u32 = 1;

/// What stands on all that is shown.
pub const NOT_TIME: &str = "Counts, not time";

/// The profile of a command.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Profile {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`].
    pub version: u32,
    /// Version of Handloom that counted.
    pub handloom: String,
    /// [`NOT_TIME`].
    pub note: String,
    /// The launches in order.
    pub launches: Vec<Launch>,
}

impl Profile {
    /// One of this version.
    pub fn new(handloom: &str, launches: Vec<Launch>) -> Profile {
        Profile { schema: SCHEMA.into(), version: VERSION, handloom: handloom.into(), note: NOT_TIME.into(), launches }
    }
}

/// The counts of a launch, or of all runs of a repeated one together.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Launch {
    /// The entry.
    pub entry: String,
    /// Its name as it was in the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demangled: Option<String>,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of shared memory of a block, static and dynamic.
    pub shared_bytes: [u32; 2],
    /// How often it ran.
    pub runs: u64,
    /// Blocks that ran to their end.
    pub blocks: u64,
    /// How it ended: `ok`, or the kind of a trap; then counts end where it did.
    pub ended: String,
    /// Sums over all statements.
    pub totals: Totals,
    /// How even the work of warps is.
    pub warps: Warps,
    /// Sums by kind of instruction; those that ran.
    pub kinds: Vec<OfKind>,
    /// Sums by space and manner.
    pub traffic: Vec<Moved>,
    /// The statements in the order of the text.
    pub statements: Vec<Row>,
    /// Sums by line of the source, if the PTX has `.loc`.
    pub sources: Vec<SourceRow>,
    /// How many blocks a multiprocessor holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupancy: Option<Occupancy>,
    /// What bounds it on a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline: Option<Roofline>,
    /// What its entry says of registers, for its occupancy.
    #[serde(skip)]
    pub most_registers: MostRegisters,
    /// When the host ran its blocks, for a page alone: it is no count, and another run has another one.
    #[serde(skip)]
    pub timeline: Option<Timeline>,
}

sums! {
    /// Sums over a launch.
    pub struct Totals {
        /// Statements that warps executed.
        warp_instructions,
        /// Statements that lanes executed, those without effect because of their guard left out.
        thread_instructions,
        /// Lanes that came to a statement and that its guard kept from acting.
        guarded_off,
        /// Branches under a guard, and `brx.idx`, that warps executed.
        branches,
        /// Those of them at which lanes of a warp parted.
        divergent_branches,
        /// Bytes that lanes loaded from global memory, each for itself.
        global_load_bytes,
        /// Bytes that lanes stored to global memory.
        global_store_bytes,
        /// Requests to global memory, atomics too.
        global_requests,
        /// Sectors of 32 bytes of these.
        global_sectors,
        /// Bytes of these that somebody wanted.
        global_touched,
        /// Sectors of requests to local memory.
        local_sectors,
        /// Requests to shared memory.
        shared_requests,
        /// Passes of shared memory.
        shared_passes,
        /// Those of them that wait for a bank.
        bank_conflicts,
        /// Atomics that warps executed, in any memory.
        atomic_requests,
        /// Lanes of these.
        atomic_lanes,
        /// Most lanes on one address, added over all atomics.
        atomic_turns,
        /// Times that a warp was let go by a barrier.
        barriers,
        /// Statements that warps could have executed while they waited for the busiest one.
        barrier_waits,
        /// Instructions on matrices that warps executed.
        matrix_instructions,
        /// Operations on `.f16` and `.bf16`; a fused one is two.
        half_operations,
        /// Operations on `.f32`.
        f32_operations,
        /// Operations on `.f64`.
        f64_operations,
        /// Operations of matrix products: two for each product of elements.
        matrix_operations,
        /// Bytes that asynchronous copies read and wrote.
        copied_bytes,
    }
}

impl Totals {
    /// Lanes that acted, of 32 a statement of a warp.
    pub fn lane_efficiency(&self) -> f64 {
        handloom_counts::ratio(self.thread_instructions, 32 * self.warp_instructions)
    }

    /// All operations on floats and of matrix products.
    pub fn operations(&self) -> u64 {
        self.half_operations + self.f32_operations + self.f64_operations + self.matrix_operations
    }

    /// Operations for each byte that moves between global memory and the chip, as if there were no cache; `None` if nothing moves.
    pub fn intensity(&self) -> Option<f64> {
        (self.global_sectors > 0)
            .then(|| handloom_counts::ratio(self.operations(), handloom_counts::rules::SECTOR * self.global_sectors))
    }
}

/// Sums of a kind of instruction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OfKind {
    /// The kind.
    pub kind: Kind,
    /// Statements that warps executed.
    pub warps: u64,
    /// Lanes that acted.
    pub active: u64,
}

/// Sums of the accesses of a kind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Moved {
    /// Where.
    pub space: Space,
    /// What is done.
    pub does: Does,
    /// Bytes of a lane, of one statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// The sums.
    #[serde(flatten)]
    pub sums: Traffic,
}

/// A place in a source file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct SourcePlace {
    /// As `.file` names it.
    pub file: String,
    /// From 1.
    pub line: u32,
}

sums! {
    /// Operations of a statement.
    pub struct Operations {
        /// On `.f16` and `.bf16`.
        half,
        /// On `.f32`.
        f32,
        /// On `.f64`.
        f64,
        /// Of matrix products.
        matrix,
    }
}

/// Which way lanes went at a branch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Branch {
    /// Lanes by way: taken and not taken of a `bra`, one for each label of a `brx.idx`.
    pub ways: Vec<u64>,
    /// Times that lanes of a warp parted.
    pub divergent: u64,
}

/// Lanes of atomics on one address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hot {
    /// What lies there: `argument 1 ('x')+16`.
    pub place: String,
    /// Lanes.
    pub lanes: u64,
}

/// A statement with its counts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The PTX file.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// In bytes, from 1.
    pub column: u32,
    /// Its function.
    pub function: String,
    /// The statement.
    pub text: String,
    /// What it is for.
    pub kind: Kind,
    /// The line of the source that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourcePlace>,
    /// Times that a warp executed it.
    pub warps: u64,
    /// Lanes that came to it.
    pub lanes: u64,
    /// Lanes that acted: all without a guard, and all at a branch, whose guard says where they go.
    pub active: u64,
    /// Lanes of a warp that ever acted, as a mask.
    pub which: u32,
    /// Of a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Branch>,
    /// Of an access to memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<Moved>,
    /// Of an atomic: the addresses with most lanes, and how many different ones there were (at most 65,536).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hot: Vec<Hot>,
    /// Different addresses of an atomic.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub addresses: u64,
    /// Of a barrier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// Of arithmetic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<Operations>,
    /// Bytes that asynchronous copies read and wrote.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copied_bytes: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Row {
    /// Lanes that acted, of 32 each time.
    pub fn lane_efficiency(&self) -> f64 {
        handloom_counts::ratio(self.active, 32 * self.warps)
    }

    /// The sum of its accesses to a space.
    pub fn of_space(&self, space: Space) -> Traffic {
        let mut sum = Traffic::default();
        self.traffic.iter().filter(|t| t.space == space).for_each(|t| sum.add(&t.sums));
        sum
    }
}

/// Sums of a line of the source.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SourceRow {
    /// The line.
    #[serde(flatten)]
    pub place: SourcePlace,
    /// Statements of warps.
    pub warps: u64,
    /// Lanes that acted.
    pub active: u64,
    /// Sectors of global memory.
    pub sectors: u64,
    /// Statements of the PTX that came from it, and those of them that ran.
    pub statements: u64,
    /// Those that ran.
    pub ran: u64,
}

/// How many blocks of a launch a multiprocessor holds at a time, and why not more.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Occupancy {
    /// The row of the table.
    pub device: String,
    /// Blocks that fit; 0 if one does not.
    pub blocks: u32,
    /// Warps of these.
    pub warps: u32,
    /// Warps that a multiprocessor holds.
    pub most_warps: u32,
    /// What allows no more: `warps`, `blocks`, `shared memory`, `registers`.
    pub limited_by: Vec<String>,
    /// Blocks that each limit allows by itself.
    pub limits: Vec<LimitOf>,
    /// Registers of a thread, if they were told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
    /// Who told them: `--regs`, or a directive, which says how many there are at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers_by: Option<String>,
}

/// What the entry of a launch says of the registers of a thread: so many at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MostRegisters {
    /// `.maxnreg`.
    pub maxnreg: Option<u32>,
    /// `.minnctapersm`: blocks that a multiprocessor is to hold.
    pub min_blocks: Option<u32>,
    /// The most threads of a block, which `.minnctapersm` goes with: `.maxntid` or `.reqntid`.
    pub threads: Option<u32>,
}

/// Blocks that a limit allows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LimitOf {
    /// What is limited.
    pub what: String,
    /// Blocks.
    pub blocks: u32,
}

/// Where a launch lies under the roof of a device: whether its memory or its arithmetic would be busy first.
///
/// No cache is modelled: what is read again counts again, so the device may do better than this says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Roofline {
    /// The row of the table.
    pub device: String,
    /// What most of its operations are on: `f32`, `f64`, `matrix`.
    pub on: String,
    /// Operations for each byte of the sectors of global memory.
    pub intensity: f64,
    /// The intensity from which on arithmetic is busy first.
    pub ridge: f64,
    /// `memory` or `arithmetic`.
    pub bound: String,
    /// Share of the rate of arithmetic that its intensity allows, at most 1.
    pub attainable: f64,
    /// Where the rates of the device come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Occupancy {
    /// Share of the warps that a multiprocessor holds.
    pub fn share(&self) -> f64 {
        handloom_counts::ratio(self.warps.into(), self.most_warps.into())
    }
}
