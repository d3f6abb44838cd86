//! What a launch asks for, and whether the device and the entry allow it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use handloom_interp::AsyncOrder;
use handloom_ir::simt;
use handloom_plan::Bounds;

use super::counted::Tally;
use crate::children::DeviceFacts;
use crate::error::{Wrong, wrong};
use crate::finding::{Check, CheckConfig, CheckSink, Checks};
use crate::memory::Budget;
use crate::memory::space::SLAB_OPEN;
use crate::run::{Backend, Beside, Progress, Sink, StopHandle, Tier, Trace};

/// Most threads of a block.
pub const MAX_BLOCK_THREADS: u64 = 1024;
/// Most threads of a block in x, y, z.
pub const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Most blocks of a grid in x, y, z.
pub const MAX_GRID: [u32; 3] = [0x7fff_ffff, 65_535, 65_535];
/// Most static shared memory in bytes.
pub const MAX_STATIC_SHARED: u32 = 48 << 10;
/// Most shared memory of a block in bytes.
pub const MAX_SHARED: u32 = 227 << 10;
/// Most blocks of a cluster.
pub const MAX_CLUSTER: u64 = 16;

const _: () = assert!(MAX_SHARED as u64 + simt::SharedRules::REGION as u64 <= SLAB_OPEN);

/// How long launches of streams may be quiet, if nothing else is said ([`LaunchConfig::quiet`]).
pub const QUIET: Duration = Duration::from_secs(10);

/// Who runs a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum Engine {
    /// Compiled code.
    #[default]
    Jit,
    /// The reference executor.
    Interp,
}

/// Shape and manner of a launch.
#[derive(Clone, Debug)]
pub struct LaunchConfig {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u32,
    /// Bytes of local memory that a thread has for calls whose depth nobody knows (recursion, calls through pointers) and, once more, for what `alloca` takes: at least
    /// [`STACK`](Self::STACK) and at most [`MOST_STACK`](Self::MOST_STACK), whatever it says.
    pub stack_bytes: u32,
    /// What `malloc` of kernels may take together with all launches that have the same; without one each block has at most 64 MiB, and all have what the device has.
    pub heap: Option<Arc<Budget>>,
    /// All blocks may wait for each other.
    pub cooperative: bool,
    /// Blocks of a cluster in x, y, z; `None` for what the entry asks for.
    pub cluster: Option<[u32; 3]>,
    /// Order of scheduling; 0 is ascending.
    pub seed: u64,
    /// When the results of asynchronous instructions come; `None` for at once, or as the seed says where something is checked.
    pub async_order: Option<AsyncOrder>,
    /// Who runs it.
    pub engine: Engine,
    /// How strictly compiled code checks addresses.
    pub bounds: Bounds,
    /// The lowest tier of compiled code that blocks start in. It stays so for later launches of the code, as after a block that needed it.
    pub tier: Tier,
    /// Its first code is made for the numbers among its parameters that are worth to be constants, as code of launches that run for long is.
    pub knows_params: bool,
    /// Who makes its code.
    pub backend: Backend,
    /// Longest time it may take: to make its code, and to run.
    pub timeout: Option<Duration>,
    /// Host threads; 0 for one a core.
    pub threads: usize,
    /// Ends it from outside.
    pub stop: StopHandle,
    /// Counts the blocks that have ended.
    pub progress: Option<Progress>,
    /// Who else may change memory while it runs. If nobody does, it is a deadlock when all of its threads wait for memory to change.
    pub beside: Beside,
    /// How long all threads of a launch beside which others work may wait for memory to change, while the host waits for streams and nothing else happens in the
    /// process: then that is a deadlock too. `None` for as long as they like.
    pub quiet: Option<Duration>,
    /// Takes what the kernel prints, while it runs; without one [`Device::take_output`](crate::Device::take_output) has it.
    pub output: Option<Sink>,
    /// What is checked while it runs. A checked launch runs on one thread; what compiled code cannot tell, the reference executor does, whatever `engine` says.
    pub check: Option<CheckConfig>,
    /// Counts what it does, by code of its own, or by the reference executor where there is none that counts ([`Tally::interpreted`]).
    pub count: Option<Tally>,
    /// Is told what the host does for it, and when.
    pub trace: Option<Trace>,
    /// Takes what was found, of launches whose report nobody waits for.
    pub found: Option<CheckSink>,
    /// What kernels that ask CUDA's device runtime are told of the device; without it, what is true of any.
    pub facts: Option<Arc<dyn DeviceFacts>>,
}

impl LaunchConfig {
    /// Bytes of the stack of a thread, where nobody asks for more.
    pub const STACK: u32 = 64 << 10;
    /// Bytes of the stack of a thread, at most: what local memory a thread has on any device.
    pub const MOST_STACK: u32 = 512 << 10;

    /// Bytes of the stack of a thread.
    pub(crate) fn stack(&self) -> u32 {
        self.stack_bytes.clamp(LaunchConfig::STACK, LaunchConfig::MOST_STACK)
    }

    /// A launch of compiled code with exact bounds on all cores.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> LaunchConfig {
        LaunchConfig {
            grid,
            block,
            shared_bytes: 0,
            stack_bytes: LaunchConfig::STACK,
            heap: None,
            cooperative: false,
            cluster: None,
            seed: 0,
            async_order: asked_order(),
            engine: Engine::Jit,
            bounds: Bounds::Exact,
            tier: Tier::Lean,
            knows_params: false,
            backend: Backend::of_environment(),
            timeout: None,
            threads: 0,
            stop: StopHandle::new(),
            progress: None,
            beside: Beside::Nobody,
            quiet: Some(QUIET),
            output: None,
            check: None,
            count: None,
            trace: None,
            found: None,
            facts: None,
        }
    }

    /// A launch of at least so many threads, in blocks of 256 in one row.
    pub fn for_num_elems(n: u32) -> LaunchConfig {
        LaunchConfig::new([n.div_ceil(256).max(1), 1, 1], [256, 1, 1])
    }

    /// The same with checks.
    #[must_use]
    pub fn checked(mut self, checks: impl IntoIterator<Item = Check>) -> LaunchConfig {
        let all = checks.into_iter().fold(Checks::default(), Checks::with);
        self.check = Some(CheckConfig { checks: all, ..CheckConfig::default() });
        self
    }

    /// When the results of its asynchronous instructions come.
    pub(crate) fn results_come(&self) -> AsyncOrder {
        let default = if self.check.is_some() { AsyncOrder::Seed } else { AsyncOrder::Earliest };
        self.async_order.unwrap_or(default)
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|n| u64::from(*n)).product()
    }

    /// What code for it is specialised on.
    pub fn shape(&self) -> simt::LaunchShape {
        let small = |i: usize| u64::from(self.grid[i]) * u64::from(self.block[i]) < 1 << 31;
        simt::LaunchShape { ntid: self.block, small_grid: (0..3).all(small) }
    }

    /// The cluster shape for an entry.
    pub(crate) fn cluster_of(&self, entry: &simt::Entry) -> [u32; 3] {
        self.cluster.or(entry.reqcluster).unwrap_or([1; 3])
    }
}

/// What the variable `HANDLOOM_ASYNC_ORDER` names now.
///
/// # Errors
/// Its word, if it names none.
pub fn async_order_of_environment() -> Result<Option<AsyncOrder>, String> {
    let word = std::env::var_os("HANDLOOM_ASYNC_ORDER").unwrap_or_default();
    let found = word.to_str().and_then(AsyncOrder::named);
    if found.is_none() && !word.is_empty() { Err(word.to_string_lossy().into_owned()) } else { Ok(found) }
}

/// The same when the process first asks.
fn asked_order() -> Option<AsyncOrder> {
    static ASKED: OnceLock<Option<AsyncOrder>> = OnceLock::new();
    *ASKED.get_or_init(|| async_order_of_environment().ok().flatten())
}

/// `x,y,z` for people.
fn dims(d: [u32; 3]) -> String {
    format!("{},{},{}", d[0], d[1], d[2])
}

/// Shared memory of a launch that is the program's own: bytes in all, static part included. `dynamic_start` is where in it dynamic shared memory
/// begins, if the entry has any.
pub(crate) fn shared_total(entry: &simt::Entry, dynamic_start: Option<u32>, dynamic: u32) -> u64 {
    let start = dynamic_start.map_or(entry.shared_bytes, |s| s.max(entry.shared_bytes));
    if dynamic == 0 { u64::from(entry.shared_bytes) } else { u64::from(start) + u64::from(dynamic) }
}

/// Whether an entry may be launched so. The error is a sentence that says what was expected.
pub(crate) fn check_shape(
    name: &str,
    entry: &simt::Entry,
    dynamic_start: Option<u32>,
    c: &LaunchConfig,
) -> Result<(), Wrong> {
    if c.grid.contains(&0) {
        return Err(wrong!(InvalidValue, "a grid of {} blocks: each dimension must be at least 1", dims(c.grid)));
    }
    if c.block.contains(&0) {
        return Err(wrong!(InvalidValue, "a block of {} threads: each dimension must be at least 1", dims(c.block)));
    }
    for (i, axis) in ["x", "y", "z"].into_iter().enumerate() {
        if c.grid[i] > MAX_GRID[i] {
            return Err(wrong!(
                InvalidValue,
                "a grid of {} blocks in {axis}: at most {} are allowed",
                c.grid[i],
                MAX_GRID[i]
            ));
        }
    }
    let threads: u64 = c.block.iter().map(|n| u64::from(*n)).product();
    if threads > MAX_BLOCK_THREADS {
        return Err(wrong!(
            InvalidValue,
            "a block of {} has {threads} threads: at most {MAX_BLOCK_THREADS} are allowed",
            dims(c.block)
        ));
    }
    if c.block[2] > MAX_BLOCK[2] {
        return Err(wrong!(
            InvalidValue,
            "a block of {} threads in z: at most {} are allowed",
            c.block[2],
            MAX_BLOCK[2]
        ));
    }
    if let Some(want) = entry.reqntid
        && want != c.block
    {
        return Err(wrong!(
            InvalidValue,
            "a block of {}: `{name}` must be launched with {} (`.reqntid`)",
            dims(c.block),
            dims(want)
        ));
    }
    if let Some(most) = entry.maxntid {
        // The manual bounds the number of threads, not each dimension.
        let limit: u64 = most.iter().map(|n| u64::from(*n)).product();
        if threads > limit {
            return Err(wrong!(
                InvalidValue,
                "a block of {threads} threads: `{name}` allows at most {limit} (`.maxntid {}`)",
                dims(most)
            ));
        }
    }
    check_shared(name, entry, dynamic_start, c)?;
    check_cluster(name, entry, c)
}

fn check_shared(name: &str, entry: &simt::Entry, start: Option<u32>, c: &LaunchConfig) -> Result<(), Wrong> {
    if entry.shared_bytes > MAX_STATIC_SHARED {
        return Err(wrong!(
            TooManyResources,
            "`{name}` has {} bytes of static shared memory: at most {MAX_STATIC_SHARED} are allowed",
            entry.shared_bytes
        ));
    }
    let total = shared_total(entry, start, c.shared_bytes);
    if total > u64::from(MAX_SHARED) {
        return Err(wrong!(
            TooManyResources,
            "{total} bytes of shared memory ({} static, {} dynamic): at most {MAX_SHARED} are allowed",
            total - u64::from(c.shared_bytes),
            c.shared_bytes
        ));
    }
    Ok(())
}

fn check_cluster(name: &str, entry: &simt::Entry, c: &LaunchConfig) -> Result<(), Wrong> {
    let cluster = c.cluster_of(entry);
    if cluster.contains(&0) {
        return Err(wrong!(InvalidCluster, "a cluster of {} blocks: each dimension must be at least 1", dims(cluster)));
    }
    if let (Some(want), Some(got)) = (entry.reqcluster, c.cluster)
        && want != got
    {
        return Err(wrong!(
            InvalidCluster,
            "a cluster of {}: `{name}` must be launched with {} (`.reqnctapercluster`)",
            dims(got),
            dims(want)
        ));
    }
    let blocks: u64 = cluster.iter().map(|n| u64::from(*n)).product();
    if blocks > MAX_CLUSTER {
        return Err(wrong!(InvalidCluster, "a cluster of {blocks} blocks: at most {MAX_CLUSTER} are allowed"));
    }
    if (0..3).any(|i| !c.grid[i].is_multiple_of(cluster[i])) {
        return Err(wrong!(
            InvalidCluster,
            "a grid of {} blocks: each dimension must be a multiple of the cluster's, {}",
            dims(c.grid),
            dims(cluster)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> simt::Entry {
        simt::Entry {
            func: simt::FuncId(0),
            params: vec![],
            reqntid: None,
            maxntid: None,
            reqcluster: None,
            registers: simt::RegisterBounds::default(),
            shared_bytes: 0,
        }
    }

    fn complaint(e: &simt::Entry, grid: [u32; 3], block: [u32; 3], shared: u32) -> String {
        let c = LaunchConfig { shared_bytes: shared, ..LaunchConfig::new(grid, block) };
        check_shape("k", e, Some(e.shared_bytes), &c).err().map(|wrong| wrong.to_string()).unwrap_or_default()
    }

    #[test]
    fn limits_are_told() {
        let e = entry();
        assert_eq!(complaint(&e, [1, 1, 1], [1024, 1, 1], 227 << 10), "");
        assert_eq!(complaint(&e, [0x7fff_ffff, 65_535, 65_535], [1, 1, 1], 0), "");
        assert!(complaint(&e, [1, 0, 1], [1, 1, 1], 0).starts_with("a grid of 1,0,1 blocks"));
        assert!(complaint(&e, [1, 1, 1], [0, 1, 1], 0).starts_with("a block of 0,1,1 threads"));
        assert!(complaint(&e, [1, 1, 1], [32, 33, 1], 0).contains("1056 threads"));
        assert!(complaint(&e, [1, 1, 1], [1, 1, 65], 0).contains("65 threads in z"));
        assert!(complaint(&e, [0x8000_0000, 1, 1], [1, 1, 1], 0).contains("in x"));
        assert!(complaint(&e, [1, 65_536, 1], [1, 1, 1], 0).contains("in y"));
        assert!(complaint(&e, [1, 1, 1], [1, 1, 1], (227 << 10) + 1).contains("at most 232448"));
    }

    #[test]
    fn directives_are_kept() {
        let e = simt::Entry { reqntid: Some([64, 1, 1]), ..entry() };
        assert!(complaint(&e, [1, 1, 1], [32, 1, 1], 0).contains(".reqntid"));
        let e = simt::Entry { maxntid: Some([16, 4, 1]), ..entry() };
        assert_eq!(complaint(&e, [1, 1, 1], [64, 1, 1], 0), "");
        assert!(complaint(&e, [1, 1, 1], [65, 1, 1], 0).contains("at most 64"));
        let e = simt::Entry { shared_bytes: (48 << 10) + 1, ..entry() };
        assert!(complaint(&e, [1, 1, 1], [1, 1, 1], 0).contains("static"));
        let e = simt::Entry { reqcluster: Some([2, 1, 1]), ..entry() };
        assert!(complaint(&e, [3, 1, 1], [1, 1, 1], 0).contains("multiple of the cluster's"));
    }
}
