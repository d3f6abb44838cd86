//! What can be typed.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use handloom_ir::simt::Counting;
use handloom_runtime::{
    AsyncOrder, Backend, Bounds, Checks, Engine, LaunchConfig, MAX_BLOCK, MAX_BLOCK_THREADS, Tier, Trace,
};
use serde::Deserialize;

use crate::exec::ExecArgs;
use crate::report::FormatArg;
use crate::sweep::Sweep;

/// Runs PTX on a CPU: checks it, compiles it, launches its kernels.
#[derive(Parser, Debug)]
#[command(name = "handloom", version, max_term_width = 120, after_help = AFTER)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Text for people, or one JSON object a line on standard output.
    #[arg(long, global = true, value_enum, default_value_t = FormatArg::Human)]
    pub format: FormatArg,
}

const AFTER: &str = "\
Exit status: 0 nothing to report; 1 a trap or another finding; 2 wrong use of the command line or wrong launch; 3 the PTX is wrong;
4 the PTX needs something that is not supported yet; 5 a file could not be read or written, or a buffer does not fit; 101 a bug;
130 and 143 ended by SIGINT and SIGTERM.";

const CHECK_EXAMPLE: &str = "\
Example: one JSON object for each error and warning of two files, as an editor or a test wants them:
  handloom check --format json saxpy.ptx reduce.ptx";

const COMPILE_EXAMPLE: &str = "\
Example: the machine code of all entries for blocks of 16 by 16 threads:
  handloom compile --block 16,16 --emit asm sgemm.ptx";

const RUN_EXAMPLE: &str = "\
One ARG for each kernel parameter, in order:
  1024  -3  2.5  0x10  0f3F800000  0d...   a scalar of the parameter's type (write -- before one such as -inf)
  bytes:HEX                the bytes of a parameter of any size and type
  in:PATH                  a device buffer with the file's bytes
  out:PATH:BYTES           a zero-filled buffer, written to PATH after the launch
  out:PATH.npy:TYPE:SHAPE  the same as a NumPy array, as out:y.npy:f32:64x64
  inout:PATH:OUTPATH       a buffer from PATH, written to OUTPATH after the launch
  zero:BYTES               a zero-filled buffer
  TYPE:VALUE[:VALUE...]    numbers of a type, as f32:2.5 or s32:1:2:3
  struct:FIELD,FIELD,...   a structure passed by value; fields lie as C lays them out, or at a byte, as @16:s32:5.
                           A field is TYPE:VALUE, bytes:, a buffer (its address), global:NAME, null, or [FIELD,...]
  addresses:FIELD,...      a buffer that holds the addresses of buffers
  global:NAME  null        the address of a variable of the module; the null pointer
A path that ends in .npy is a NumPy array; types are f16 f32 f64 bf16 e4m3 e5m2 i8 ... u64 bool c64 c128, or NumPy's
names of them. - as the path of one output is standard output. An output is written beside its path and renamed when
it is complete. ENTRY may be left out when the module has one entry.

Variables of the module (__constant__, __device__), by their names in the PTX, filled before the launch and written after it:
  --global NAME=in:PATH    also zero:BYTES, bytes:HEX, TYPE:VALUE, struct: and addresses:; NAME+OFFSET= fills a part
  --global-out NAME=PATH   or NAME=PATH.npy:TYPE:SHAPE

Of each launch, --format json tells compile_us, cached (the code was kept by an earlier process), run_us (the launch alone), recompile_us (what it waited for code of further tiers meanwhile), tier (the
highest that ran: lean, quick or careful; the interpreter has none), and output (what the kernel printed). For people, that is written while it runs.

Example: y = 2 x + y for 1,000 floats in blocks of 256 threads:
  handloom run saxpy.ptx saxpy --grid 4 --block 256 1000 2.0 in:x.npy inout:y.npy:result.npy";

const BENCH_EXAMPLE: &str = "\
ARG, --job and all other options are those of `run`; nothing is written. Files named by --against run the same launch in turns with FILE.
Keys of a job's launches: \"bytes\" and \"operations\" for throughput; \"repeat\" times the mean of several runs.

With --sweep, words may hold braces: {len}, {4*len}, {len/256}; a quotient is rounded up. Quote them for the shell.
TIMING.md says how it is measured, and what the time on a host tells about a GPU.

Examples: two versions of a kernel on one thread, also as a page; and a throughput for each of seven sizes:
  handloom bench new.ptx k --against old.ptx --threads 1 --grid 64 --block 256 zero:65536 zero:65536 -o bench.html
  handloom bench saxpy.ptx --sweep len=1K..=4M*4 --grid '{len/256}' --block 256 --bytes '{12*len}' '{len}' 2.0 'zero:{4*len}' 'zero:{4*len}'";

const PROFILE_EXAMPLE: &str = "\
ARG, --job and all other options are those of `run`; what launches write is written. PROFILE.md says what each count means.

Examples: a summary and a file for later; and a comparison with it that fails where a count grew by more than 2 percent:
  handloom profile k.ptx k --grid 64 --block 256 zero:65536 zero:65536 -o profile.html -o base.json
  handloom profile k.ptx k --grid 64 --block 256 zero:65536 zero:65536 --compare base.json --threshold 2";

const COVER_EXAMPLE: &str = "\
ARG, --job and all other options are those of `run`; what launches write is written. PROFILE.md says more.

Example: two launches with different sizes, merged, as a page and as a tracefile for lcov:
  handloom cover k.ptx k --grid 1 --block 64 zero:256 64 -o first.json
  handloom cover k.ptx k --grid 1 --block 64 zero:256 7 --merge first.json -o cover.html --lcov cover.info";

const TEST_EXAMPLE: &str = "\
A PTX file is a test by lines such as these, anywhere in it; TESTING.md has them all:
  //@ test: run
  //@ buf x: f32 = [1, 2, 3, 4]
  //@ launch: scale<<<1, 4>>>(x, 2.5)
  //@ expect x == [2.5, 5, 7.5, 10]

Examples: all tests of a folder, looking for races too; and as a document for continuous integration:
  handloom test --check kernels/
  handloom test --format junit kernels/ > results.xml";

const EXEC_EXAMPLE: &str = "\
The program finds Handloom's libcuda.so.1 where it looks for NVIDIA's. Its exit status is passed on. Options may also be given as variables:
HANDLOOM_CC, HANDLOOM_DEVICES, HANDLOOM_MEMORY ... HANDLOOM_LIBRARIES names the folder that ci/libraries made, if it does not lie beside handloom.

Example: the kernels of a Python program, on a device with 2 GiB of memory:
  handloom exec --memory 2G -- python train.py";

const INFO_EXAMPLE: &str = "\
FILE may be anything that holds PTX: a fat binary, a cubin made with -lineinfo, a program or an archive that nvcc built.
FILE#3 names a member by its number, FILE#sm_90 by its target, in every command.

Example: the entries of a program, with their parameters, as one JSON object:
  handloom info --format json a.out";

const ISA_EXAMPLE: &str = "\
Example: all forms of one opcode with their qualifiers, and whether they are supported:
  handloom isa shfl";

const TRAPS_EXAMPLE: &str = "\
Example: the kinds that the field `kind` of a trap report can have, one JSON object each:
  handloom traps --format json";

const EXPLAIN_EXAMPLE: &str = "\
Examples: what an error means, what a finding means, and all codes as JSON objects:
  handloom explain E0303
  handloom explain scope_too_narrow
  handloom explain CUDA_ERROR_ILLEGAL_ADDRESS
  handloom explain --format json";

const EXPLORE_EXAMPLE: &str = "\
Lines that belong together have one colour, and a click on one shows the others. The page needs nothing from elsewhere, and can be read without JavaScript.
The source is shown where `.loc` names a file that is there, or lies beside the PTX.

With --grid and the arguments of a launch, as for `run`, the launch runs, and its counts stand at the lines.

Examples: what an entry becomes for blocks of 16 by 16 threads; and what a launch of it did, too:
  handloom explore sgemm.ptx sgemm --block 16,16 -o sgemm.html
  handloom explore sgemm.ptx sgemm --grid 2,2 --block 16,16 zero:4096 zero:4096 zero:4096 32 -o sgemm.html";

const COMPLETIONS_EXAMPLE: &str = "\
Example:
  handloom completions bash > ~/.local/share/bash-completion/completions/handloom";

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Check PTX and run nothing: every error with its place and the rule behind it.
    #[command(after_help = CHECK_EXAMPLE)]
    Check(CheckArgs),
    /// Compile every entry to machine code and say how long it took.
    #[command(after_help = COMPILE_EXAMPLE)]
    Compile(CompileArgs),
    /// Launch a kernel, or the launches of a job file.
    #[command(after_help = RUN_EXAMPLE, override_usage = "\
handloom run [OPTIONS] FILE [ENTRY] --grid X[,Y[,Z]] --block X[,Y[,Z]] [ARG]...
       handloom run [OPTIONS] --job JOB.json")]
    Run(Box<RunArgs>),
    /// Time launches on this host: median, spread, comparisons, throughput by size.
    #[command(after_help = BENCH_EXAMPLE, override_usage = "\
handloom bench [OPTIONS] FILE [ENTRY] --grid X[,Y[,Z]] --block X[,Y[,Z]] [ARG]...
       handloom bench [OPTIONS] --job JOB.json", mut_args(without_checks))]
    Bench(Box<BenchArgs>),
    /// Count what launches do: instructions, divergence, sectors, bank conflicts, atomics, barriers. Counts, not time.
    #[command(after_help = PROFILE_EXAMPLE, override_usage = "\
handloom profile [OPTIONS] FILE [ENTRY] --grid X[,Y[,Z]] --block X[,Y[,Z]] [ARG]...
       handloom profile [OPTIONS] --job JOB.json", mut_args(without_checks))]
    Profile(Box<ProfileArgs>),
    /// Say which PTX lines, source lines, branches and lanes launches reach; merge runs; write lcov.
    #[command(after_help = COVER_EXAMPLE, override_usage = "\
handloom cover [OPTIONS] FILE [ENTRY] --grid X[,Y[,Z]] --block X[,Y[,Z]] [ARG]...
       handloom cover [OPTIONS] --job JOB.json", mut_args(without_checks))]
    Cover(Box<CoverArgs>),
    /// Run tests: PTX files that say what they should do, and jobs with expected results.
    #[command(after_help = TEST_EXAMPLE)]
    Test(TestArgs),
    /// Run a program that uses CUDA, as it is, on the CPU.
    #[command(after_help = EXEC_EXAMPLE)]
    Exec(Box<ExecArgs>),
    /// Say what a file holds: members, entries with their parameters, variables, what is not supported.
    #[command(after_help = INFO_EXAMPLE)]
    Info(InfoArgs),
    /// List the instruction forms with their support state, or show the forms of one opcode.
    #[command(after_help = ISA_EXAMPLE)]
    Isa {
        /// An opcode, as `add` or `cp.async`.
        opcode: Option<String>,
    },
    /// Explain an error, a warning, a trap or a finding, with a wrong and a right example; or list them all.
    #[command(after_help = EXPLAIN_EXAMPLE)]
    Explain {
        /// A code, as reports show it: `E0303`, `out_of_bounds`, `unordered`.
        code: Vec<String>,
    },
    /// Show the source, the PTX, the IR, the plan and the machine code of a file side by side, as one HTML page.
    #[command(after_help = EXPLORE_EXAMPLE)]
    Explore(ExploreArgs),
    /// List the kinds of traps.
    #[command(after_help = TRAPS_EXAMPLE)]
    Traps,
    /// Print a completion script for a shell.
    #[command(after_help = COMPLETIONS_EXAMPLE)]
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: Shell,
    },
}

/// How many errors are shown.
#[derive(ClapArgs, Clone, Copy, Debug)]
pub struct Limit {
    /// Show at most so many errors of each file; 0 for all. Default: 20, and all with `--format json`.
    #[arg(long, value_name = "N", value_parser = count)]
    pub error_limit: Option<usize>,
}

/// `handloom check`.
#[derive(ClapArgs, Debug)]
pub struct CheckArgs {
    /// PTX files; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    #[command(flatten)]
    pub limit: Limit,
}

/// `handloom info`.
#[derive(ClapArgs, Debug)]
pub struct InfoArgs {
    /// PTX files, or files that hold PTX; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Print the PTX that would be used, and nothing else.
    #[arg(long)]
    pub ptx: bool,
}

/// A stage that can be printed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Emit {
    /// SIMT IR, specialised on the block shape and optimised.
    Ir,
    /// What was decided about it: where values are kept, which code blocks get, how ops and accesses are done.
    Plan,
    /// Cranelift IR.
    Clif,
    /// Machine code.
    Asm,
}

/// What code is made for. When it meets something else, a block goes on in the next.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum TierArg {
    /// Lanes of a warp stay together.
    Lean,
    /// Everything, resting on tests that hardly ever fail.
    Quick,
    /// Code that rests on no assumption.
    Careful,
}

impl From<TierArg> for Tier {
    fn from(t: TierArg) -> Tier {
        match t {
            TierArg::Lean => Tier::Lean,
            TierArg::Quick => Tier::Quick,
            TierArg::Careful => Tier::Careful,
        }
    }
}

/// `handloom compile`.
#[derive(ClapArgs, Debug)]
pub struct CompileArgs {
    /// PTX files; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Block shape that code is made for; the `.reqntid` of an entry wins.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = block, default_value = "256")]
    pub block: [u32; 3],
    /// Who makes the code. Default: what HANDLOOM_BACKEND names, else wide where the host has AVX-512 or AVX2.
    #[arg(long, value_enum)]
    pub backend: Option<BackendArg>,
    /// How strictly the code checks addresses. Default: exact.
    #[arg(long, value_enum)]
    pub bounds: Option<BoundsArg>,
    /// Print a stage of every entry, of the code of the backend.
    #[arg(long, value_enum)]
    pub emit: Option<Emit>,
    /// Whose of Cranelift's code to print. Default: that of the tier that a launch would run first.
    #[arg(long, value_enum, requires = "emit")]
    pub tier: Option<TierArg>,
    #[command(flatten)]
    pub limit: Limit,
}

/// `handloom explore`.
#[derive(ClapArgs, Debug)]
pub struct ExploreArgs {
    /// A PTX file, or a file that holds PTX; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub file: String,
    /// The entry to show, default: all of them; with `--grid`, then one argument for each of its parameters.
    #[arg(value_name = "ENTRY] [ARG", allow_negative_numbers = true)]
    pub rest: Vec<String>,
    /// Blocks of a grid: the launch runs, and the page has what it counted.
    #[arg(long, value_name = "X[,Y[,Z]]", requires = "block")]
    pub grid: Option<String>,
    /// Dynamic shared memory of that launch.
    #[arg(long, value_name = "BYTES", requires = "grid")]
    pub shared: Option<u32>,
    /// Show the counts of a run: data that `profile -o FILE.json` wrote.
    #[arg(long, value_name = "FILE.json", conflicts_with = "grid")]
    pub counts: Option<String>,
    /// The page; `-` is standard output. Default: the name of the file, with `.html`, in the current folder.
    #[arg(short, long, value_name = "PAGE.html")]
    pub output: Option<String>,
    /// Block shape that code is made for; the `.reqntid` of an entry wins. Default: 256.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = block)]
    pub block: Option<[u32; 3]>,
    /// Who makes the code. Default: what HANDLOOM_BACKEND names, else wide where the host has AVX-512 or AVX2.
    #[arg(long, value_enum)]
    pub backend: Option<BackendArg>,
}

/// How strictly compiled code checks addresses.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoundsArg {
    /// An access that misses an allocation by one byte traps.
    Exact,
    /// An access stays inside device memory as a whole.
    Contained,
}

impl From<BoundsArg> for Bounds {
    fn from(b: BoundsArg) -> Bounds {
        match b {
            BoundsArg::Exact => Bounds::Exact,
            BoundsArg::Contained => Bounds::Contained,
        }
    }
}

/// When the results of asynchronous instructions come.
#[derive(ValueEnum, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum AsyncArg {
    /// At once.
    Earliest,
    /// Where something waits for them.
    Latest,
    /// In between, as the seed says.
    Seed,
}

impl From<AsyncArg> for AsyncOrder {
    fn from(order: AsyncArg) -> AsyncOrder {
        match order {
            AsyncArg::Earliest => AsyncOrder::Earliest,
            AsyncArg::Latest => AsyncOrder::Latest,
            AsyncArg::Seed => AsyncOrder::Seed,
        }
    }
}

/// Who makes machine code.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackendArg {
    /// Vectors of 128 bits: every op, every host.
    Cranelift,
    /// Vectors of 512 bits, or pairs of 256 without AVX-512; entries that it has no code for go to cranelift.
    Wide,
}

impl From<BackendArg> for Backend {
    fn from(b: BackendArg) -> Backend {
        match b {
            BackendArg::Cranelift => Backend::Cranelift,
            BackendArg::Wide => Backend::Wide,
        }
    }
}

/// Who runs a kernel.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineArg {
    /// Machine code.
    Jit,
    /// The reference interpreter: slow and plain.
    Interp,
}

impl From<EngineArg> for Engine {
    fn from(e: EngineArg) -> Engine {
        match e {
            EngineArg::Jit => Engine::Jit,
            EngineArg::Interp => Engine::Interp,
        }
    }
}

/// `handloom run`.
#[derive(ClapArgs, Clone, Debug)]
pub struct RunArgs {
    /// A PTX file; `-` is standard input.
    #[arg(required_unless_present = "job", value_name = "FILE")]
    pub file: Option<String>,
    /// The entry, then one argument for each of its parameters.
    #[arg(value_name = "ENTRY] [ARG", allow_negative_numbers = true)]
    pub rest: Vec<String>,
    /// Run the launches of a job file; `-` is standard input.
    #[arg(
        long,
        value_name = "JOB.json",
        conflicts_with_all = ["file", "rest", "grid", "block", "shared", "cooperative", "cluster", "link", "global", "global_out"]
    )]
    pub job: Option<String>,
    /// Blocks of the grid.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = shape, required_unless_present = "job")]
    pub grid: Option<[u32; 3]>,
    /// Threads of a block.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = shape, required_unless_present = "job")]
    pub block: Option<[u32; 3]>,
    /// Dynamic shared memory.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub shared: u32,
    /// Host threads. Default: one for each core.
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<NonZeroUsize>,
    /// All blocks may wait for each other.
    #[arg(long)]
    pub cooperative: bool,
    /// Blocks of a cluster.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = shape)]
    pub cluster: Option<[u32; 3]>,
    /// Order of scheduling: the same seed, the same order. Default: 0, which is ascending.
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<u64>,
    /// Check with all seeds from A to B - 1 (`A..=B`: to B), side by side, and say in how many each finding was seen.
    #[arg(long, value_name = "A..B", value_parser = seeds, requires = "check", conflicts_with = "seed")]
    pub many_seeds: Option<Seeds>,
    /// When the results of asynchronous copies and products come. Default: what HANDLOOM_ASYNC_ORDER names, else earliest, or seed with --check.
    #[arg(long, value_enum)]
    pub async_order: Option<AsyncArg>,
    /// How strictly compiled code checks addresses. Default: exact.
    #[arg(long, value_enum)]
    pub bounds: Option<BoundsArg>,
    /// Who runs the kernel. Default: jit.
    #[arg(long, value_enum)]
    pub engine: Option<EngineArg>,
    /// Who makes the code. Default: what HANDLOOM_BACKEND names, else wide where the host has AVX-512 or AVX2.
    #[arg(long, value_enum)]
    pub backend: Option<BackendArg>,
    /// Stop a launch that takes longer to compile and run.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Bytes of the stack of a thread, for recursion and calls through pointers, and once more for `alloca`: at least 65536, at most 524288
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=i64::from(LaunchConfig::MOST_STACK)))]
    pub stack: Option<u32>,
    /// Fill a variable of the module before the launch.
    #[arg(long, value_name = "NAME=CONTENT")]
    pub global: Vec<String>,
    /// Write a variable of the module to a file after the launch.
    #[arg(long, value_name = "NAME=PATH")]
    pub global_out: Vec<String>,
    /// Another PTX file whose symbols the module may use.
    #[arg(long, value_name = "FILE")]
    pub link: Vec<String>,
    #[command(flatten)]
    pub checks: FindArgs,
    #[command(flatten)]
    pub limit: Limit,
    /// Count what launches do, as `profile` does, and write a page (.html) or data (.json).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "many_seeds"])]
    pub profile: Vec<String>,
    /// Count what launches reach, as `cover` does, and write a page (.html) or data (.json).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "many_seeds"])]
    pub cover: Vec<String>,
    /// Write what the host does and when, launches, code that is made, copies, blocks over threads, as a Chrome trace: time of the host.
    #[arg(long, value_name = "FILE.json", conflicts_with = "many_seeds")]
    pub trace: Option<String>,
    /// What launches do is counted.
    #[arg(skip)]
    pub counts: Counting,
    /// Who is told what the host does.
    #[arg(skip)]
    pub tracing: Option<Trace>,
}

/// `handloom bench`.
#[derive(ClapArgs, Clone, Debug)]
pub struct BenchArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// Time so many runs. Default: what 2 seconds take, at least 7 and at most 1000.
    #[arg(long, value_name = "N")]
    pub repeat: Option<NonZeroUsize>,
    /// Runs that are not counted, before all others.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub warm_up: u32,
    /// Another PTX file for the same launch, timed in turns with the first.
    #[arg(long, value_name = "OTHER.ptx", conflicts_with = "job")]
    pub against: Vec<String>,
    /// Empty the caches before each run.
    #[arg(long)]
    pub cold: bool,
    /// Leave memory to each run as the one before it left it. Default: what runs change is put back.
    #[arg(long)]
    pub keep: bool,
    /// Bytes that a run moves, for a throughput.
    #[arg(long, value_name = "N", value_parser = amount, conflicts_with = "job")]
    pub bytes: Option<f64>,
    /// Operations that a run does, for a throughput.
    #[arg(long, value_name = "N", value_parser = amount, conflicts_with = "job")]
    pub operations: Option<f64>,
    /// Do it for several sizes: a list, or a range with a factor or a step.
    #[arg(long, value_name = "NAME=VALUES", conflicts_with = "job")]
    pub sweep: Option<Sweep>,
    /// Draw what was measured as a page (.html): all runs, comparisons, throughput by size.
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Vec<String>,
}

/// `handloom profile`.
#[derive(ClapArgs, Clone, Debug)]
pub struct ProfileArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// Write a report: a page (.html) or data (.json).
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<String>,
    /// Compare with a report in JSON that was written before.
    #[arg(long, value_name = "BASE.json")]
    pub compare: Option<String>,
    /// Exit with status 1 if a count is more than so many percent above the base.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "0", requires = "compare")]
    pub threshold: f64,
    /// Say how many blocks a multiprocessor holds, and what bounds the kernel, on a device: sm_80, sm_90, h100-sxm5 ...
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Registers of a thread, as the assembler tells them: they limit how many blocks a multiprocessor holds.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255), requires = "device")]
    pub regs: Option<u32>,
}

/// `handloom cover`.
#[derive(ClapArgs, Clone, Debug)]
pub struct CoverArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// Write a report: a page (.html) or data (.json).
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<String>,
    /// Write a tracefile of lcov.
    #[arg(long, value_name = "FILE")]
    pub lcov: Vec<String>,
    /// Add what other runs reached: reports in JSON that were written before.
    #[arg(long, value_name = "FILE.json")]
    pub merge: Vec<String>,
}

/// `handloom test`.
#[derive(ClapArgs, Clone, Debug)]
pub struct TestArgs {
    /// Files, or folders with files: PTX with a line `//@ test:`, jobs (.json) with `expect`.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Tests that run side by side. Default: one for each core.
    #[arg(short, long, value_name = "N", value_parser = threads)]
    pub jobs: Option<NonZeroUsize>,
    /// Look for faults of memory, unwritten bytes, races and wrong barriers too, in all tests that run something.
    #[arg(long)]
    pub check: bool,
    /// Who runs kernels. Default: jit.
    #[arg(long, value_enum)]
    pub engine: Option<EngineArg>,
    /// Who makes the code. Default: what HANDLOOM_BACKEND names, else wide where the host has AVX-512 or AVX2.
    #[arg(long, value_enum)]
    pub backend: Option<BackendArg>,
}

/// What is checked while kernels run.
#[derive(ClapArgs, Clone, Debug)]
pub struct FindArgs {
    /// Look for faults while kernels run: some of memory, init, race, sync, separated by commas. Default: all of them.
    #[arg(long, value_name = "CHECKS", num_args = 0..=1, require_equals = true, default_missing_value = "memory,init,race,sync",
          value_parser = Checks::parse)]
    pub check: Option<Checks>,
    /// Take `volatile` for what the manual calls it, a relaxed access of the whole system; else it counts as plain.
    #[arg(long, requires = "check")]
    pub check_volatile: bool,
    /// Report unordered writes of the same value too.
    #[arg(long, requires = "check")]
    pub check_same_values: bool,
    /// Report memory that kernels, or a program, allocate and never free.
    #[arg(long, requires = "check")]
    pub check_leaks: bool,
    /// Stop at the first finding.
    #[arg(long, requires = "check")]
    pub first: bool,
    /// Leave out findings that a file names: lines as `--gen-suppressions` writes them.
    #[arg(long, value_name = "FILE", requires = "check")]
    pub suppressions: Vec<String>,
    /// Write a line for a file of suppressions below each finding.
    #[arg(long, requires = "check")]
    pub gen_suppressions: bool,
    /// Show at most so many findings.
    #[arg(long, value_name = "N", default_value_t = 100, requires = "check")]
    pub print_limit: usize,
}

impl FindArgs {
    /// Whether a launch ends with its first finding. Where some do not count, that may be one of those.
    pub fn ends_launches(&self) -> bool {
        self.first && self.suppressions.is_empty()
    }
}

/// Hides options of `run` that timed launches have no use for.
fn without_checks(arg: clap::Arg) -> clap::Arg {
    const CHECKS: [&str; 11] = [
        "check",
        "check_volatile",
        "check_same_values",
        "check_leaks",
        "first",
        "suppressions",
        "gen_suppressions",
        "print_limit",
        "many_seeds",
        "profile",
        "cover",
    ];
    let is_hidden = CHECKS.contains(&arg.get_id().as_str());
    arg.hide(is_hidden)
}

/// `X`, `X,Y` or `X,Y,Z`.
fn shape(text: &str) -> Result<[u32; 3], String> {
    let parts: Vec<&str> = text.split(',').collect();
    let mut shape = [1; 3];
    if parts.len() > 3 {
        return Err("expected X or X,Y or X,Y,Z".into());
    }
    for (to, part) in shape.iter_mut().zip(parts) {
        *to = part.trim().parse().map_err(|_| "expected X or X,Y or X,Y,Z with whole numbers below 2^32".to_owned())?;
    }
    Ok(shape)
}

/// The shape of a block that can be launched.
fn block(text: &str) -> Result<[u32; 3], String> {
    let block = shape(text)?;
    let threads = block.iter().map(|n| u64::from(*n)).try_fold(1, u64::checked_mul);
    let fits = threads.is_some_and(|n| (1..=MAX_BLOCK_THREADS).contains(&n)) && block[2] <= MAX_BLOCK[2];
    let most = MAX_BLOCK[2];
    fits.then_some(block)
        .ok_or_else(|| format!("expected 1 to {MAX_BLOCK_THREADS} threads, at most {most} of them in z"))
}

fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a whole number".to_owned())
}

/// Most host threads.
const MAX_THREADS: usize = 1024;

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let n = text.parse().ok().filter(|n: &NonZeroUsize| n.get() <= MAX_THREADS);
    n.ok_or_else(|| format!("expected a number of threads from 1 to {MAX_THREADS}"))
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "expected a whole number from 0 to 2^64 - 1".to_owned())
}

/// A range of seeds that is not empty: the first and the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seeds {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// A range of seeds as it is written.
///
/// # Errors
/// What it should be.
pub fn seeds(text: &str) -> Result<Seeds, String> {
    let range = match text.split_once("..=") {
        Some((a, b)) => a.parse().ok().zip(b.parse().ok()),
        None => {
            text.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse::<u64>().ok()?.checked_sub(1)?)))
        }
    };
    let seeds = range.map(|(first, last)| Seeds { first, last }).filter(|s| s.first <= s.last);
    seeds.ok_or_else(|| "expected a range of seeds that is not empty, as 0..8 or 0..=7".to_owned())
}

/// A number of bytes or operations above 0.
fn amount(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    number.ok_or_else(|| "expected a number above 0, as 4096 or 2e9".to_owned())
}

/// A number of percent.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
    number.ok_or_else(|| "expected a number of percent, as 2 or 0.5".to_owned())
}

/// A time limit in seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    text.parse().ok().and_then(time_limit).ok_or_else(|| "expected a number of seconds above 0".to_owned())
}

/// A time limit in seconds, if it is one.
pub fn time_limit(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|d| !d.is_zero())
}

/// Checks a number of host threads of a job file.
pub fn thread_count(n: usize) -> Option<usize> {
    (1..=MAX_THREADS).contains(&n).then_some(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn shapes_have_up_to_three_dimensions() {
        assert_eq!(shape("4"), Ok([4, 1, 1]));
        assert_eq!(shape("4,2,3"), Ok([4, 2, 3]));
        assert!(shape("4,2,3,1").is_err());
        assert!(shape("-1").is_err());
        assert!(shape("").is_err());
        assert_eq!(block("16,8,8"), Ok([16, 8, 8]));
        for wrong in ["0", "1025", "1,0", "32,33", "1,1,65", "65536,65536,65536"] {
            assert!(block(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_of_seeds_are_read() {
        assert_eq!(seeds("0..8"), Ok(Seeds { first: 0, last: 7 }));
        assert_eq!(seeds("3..=3"), Ok(Seeds { first: 3, last: 3 }));
        for wrong in ["", "8", "8..8", "8..2", "0..0", "a..b", "..4", "-1..4", "3..=2"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn options_may_follow_arguments() {
        let a = Args::parse_from(["handloom", "run", "k.ptx", "k", "1", "--grid", "2", "-3", "--block=4", "-2.5e3"]);
        let Command::Run(run) = a.command else { panic!() };
        assert_eq!(run.rest, ["k", "1", "-3", "-2.5e3"]);
        assert_eq!((run.grid, run.block), (Some([2, 1, 1]), Some([4, 1, 1])));
    }
}
