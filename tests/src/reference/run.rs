//! A kernel launched in every way that must give the same result: both engines, both kinds of bounds, one thread and two, several orders.

use std::path::{Path, PathBuf};
use std::time::Duration;

use handloom_plan::host::Vectors;
use handloom_runtime::{
    Arg, AsyncOrder, Backend, Bounds, Check, Device, DeviceBuffer, Engine, Finding, LaunchConfig, LaunchError, Module,
    Tier, launch,
};

use super::data::{Element, bytes_of, values_of};
use crate::engines::{device_with, is_there};

/// How a kernel is run.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Who runs it.
    pub engine: Engine,
    /// Who makes its code.
    pub backend: Backend,
    /// The widest vectors that code and routines use.
    pub vectors: Vectors,
    /// How strictly compiled code checks addresses.
    pub bounds: Bounds,
    /// The lowest tier of code.
    pub tier: Tier,
    /// Host threads.
    pub threads: usize,
    /// Order of scheduling.
    pub seed: u64,
    /// When results of asynchronous instructions come, if the environment doesn't say.
    pub async_order: Option<AsyncOrder>,
    /// All checks look for faults, and must find none.
    pub is_checked: bool,
}

impl Way {
    /// Unchecked, with the widest vectors, and with all that wide code has.
    fn new(engine: Engine, backend: Backend, bounds: Bounds, threads: usize, seed: u64) -> Way {
        let tier = if backend == Backend::Wide { Tier::Quick } else { Tier::Lean };
        let (vectors, async_order, is_checked) = (Vectors::V512, None, false);
        Way { engine, backend, vectors, bounds, tier, threads, seed, async_order, is_checked }
    }

    /// The same with all checks and a seed, by code of Cranelift or the interpreter.
    pub fn checked(self, engine: Engine, seed: u64) -> Way {
        let (backend, bounds) = (Backend::Cranelift, Bounds::Exact);
        Way { engine, backend, bounds, threads: 1, seed, is_checked: true, ..self }
    }
}

/// All ways, each with several orders: for kernels whose threads wait for each other.
pub fn many_ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for seed in [0, 1, 7] {
        for threads in [1, 2] {
            for bounds in [Bounds::Exact, Bounds::Contained] {
                for backend in Backend::ALL {
                    let way = Way::new(Engine::Jit, backend, bounds, threads, seed);
                    // The first ways of a program, which later ones only raise.
                    let tier = if (seed, threads) == (0, 1) { Tier::Lean } else { way.tier };
                    ways.push(Way { tier, ..way });
                }
            }
            ways.push(Way::new(Engine::Interp, Backend::Cranelift, Bounds::Exact, threads, seed));
        }
    }
    // Code of AVX2: both bounds and both numbers of threads, but not each with each.
    let narrow = Way { vectors: Vectors::V256, backend: Backend::Wide, ..ways[0] };
    for (seed, threads, bounds) in [(0, 1, Bounds::Exact), (1, 2, Bounds::Contained), (7, 2, Bounds::Exact)] {
        ways.push(Way { bounds, threads, seed, ..narrow });
    }
    ways.retain(|way| is_there(way.backend, way.vectors));
    ways
}

/// Each engine, each kind of bounds, one thread and two, at least once.
pub fn ways() -> Vec<Way> {
    use Backend::{Cranelift, Wide};
    use Engine::{Interp, Jit};
    let way = Way::new;
    let all = [
        way(Interp, Cranelift, Bounds::Exact, 1, 0),
        way(Interp, Cranelift, Bounds::Exact, 2, 5),
        way(Jit, Cranelift, Bounds::Exact, 1, 0),
        way(Jit, Cranelift, Bounds::Exact, 2, 7),
        way(Jit, Cranelift, Bounds::Contained, 1, 3),
        // Before the ways that raise the program.
        Way { tier: Tier::Lean, ..way(Jit, Wide, Bounds::Exact, 1, 0) },
        way(Jit, Wide, Bounds::Exact, 1, 0),
        way(Jit, Wide, Bounds::Contained, 2, 7),
        Way { vectors: Vectors::V256, ..way(Jit, Wide, Bounds::Exact, 2, 3) },
    ];
    all.into_iter().filter(|way| is_there(way.backend, way.vectors)).collect()
}

/// A loaded module, to be launched in one way.
#[derive(Debug)]
pub struct Kernels<'a> {
    device: &'a Device,
    module: &'a Module,
    name: &'a str,
    /// How launches go.
    pub way: Way,
}

/// The folder of our own kernels.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels")
}

/// Loads `NAME.ptx` below [`folder`] once and calls `test` for each way.
///
/// # Panics
/// The file does not load.
pub fn each_way(ways: &[Way], name: &str, test: impl Fn(&Kernels<'_>)) {
    let path = folder().join(format!("{name}.ptx"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    for vectors in Vectors::ALL {
        let mut ways = ways.iter().filter(|way| way.vectors == vectors).peekable();
        if ways.peek().is_some() {
            let device = device_with(vectors).expect("there is room for a device");
            let module = Module::from_text(&device, name, &text).unwrap_or_else(|e| panic!("{name}: {e}"));
            let late: Vec<Way> = ways.clone().next().map_or(vec![], |way| late_ways(way, &module));
            ways.copied().chain(late).for_each(|way| test(&Kernels { device: &device, module: &module, name, way }));
        }
    }
}

/// Ways in which results come late, for modules in which that makes a difference.
fn late_ways(way: &Way, module: &Module) -> Vec<Way> {
    if module.ir().late.is_empty() || way.vectors != Vectors::V512 {
        return vec![];
    }
    let n_seeds = if std::env::var_os("HANDLOOM_ASYNC").is_some_and(|v| v == "all") { 20 } else { 2 };
    let late = |backend, order, seed| {
        let bounds = Bounds::Exact;
        Way { engine: Engine::Jit, backend, bounds, threads: 2, seed, async_order: Some(order), ..*way }
    };
    let by_seed = (0..n_seeds).map(|seed| late(Backend::Wide, AsyncOrder::Seed, seed));
    let latest = Backend::ALL.into_iter().map(|backend| late(backend, AsyncOrder::Latest, 0));
    by_seed.chain(latest).filter(|way| is_there(way.backend, way.vectors)).collect()
}

impl Kernels<'_> {
    /// What to call a result in messages.
    pub fn what(&self, entry: &str) -> String {
        format!("{} {entry} {:?}", self.name, self.way)
    }

    /// The name of the file, without its ending.
    pub fn name(&self) -> &str {
        self.name
    }

    /// A buffer with values.
    ///
    /// # Panics
    /// There is no room.
    pub fn copy_of<T: Element>(&self, values: &[T]) -> DeviceBuffer {
        self.device.copy_of(&bytes_of(values)).expect("there is room for a buffer")
    }

    /// A buffer of `n` zeros.
    ///
    /// # Panics
    /// There is no room.
    pub fn zeros<T: Element>(&self, n: usize) -> DeviceBuffer {
        self.device.zeroed((n * T::BYTES) as u64).expect("there is room for a buffer")
    }

    /// What kernels printed.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.device.take_output()).into_owned()
    }

    /// Launches an entry, the only one for `""`, and expects it to end well.
    ///
    /// # Panics
    /// It does not.
    #[track_caller]
    pub fn launch(&self, entry: &str, grid: [u32; 3], block: [u32; 3], args: &[Arg<'_>]) {
        if let Err(e) = self.try_launch(entry, grid, block, 0, args) {
            panic!("{}: {e}", self.what(entry));
        }
    }

    /// Launches an entry with dynamic shared memory, and expects it to end well.
    ///
    /// # Panics
    /// It does not.
    #[track_caller]
    pub fn launch_shared(&self, entry: &str, grid: [u32; 3], block: [u32; 3], shared_bytes: u32, args: &[Arg<'_>]) {
        if let Err(e) = self.try_launch(entry, grid, block, shared_bytes, args) {
            panic!("{}: {e}", self.what(entry));
        }
    }

    /// Launches an entry, all of whose blocks may wait for each other.
    ///
    /// # Panics
    /// It does not end well.
    #[track_caller]
    pub fn launch_cooperative(&self, entry: &str, grid: [u32; 3], block: [u32; 3], args: &[Arg<'_>]) {
        let config = LaunchConfig { cooperative: true, ..self.config(grid, block) };
        if let Err(e) = self.run(entry, &config, args) {
            panic!("{}: {e}", self.what(entry));
        }
    }

    /// Launches an entry in clusters with dynamic shared memory, and expects it to end well.
    ///
    /// # Panics
    /// It does not.
    #[track_caller]
    pub fn launch_clusters(
        &self,
        entry: &str,
        grid: [u32; 3],
        block: [u32; 3],
        cluster: [u32; 3],
        shared_bytes: u32,
        args: &[Arg<'_>],
    ) {
        let config = LaunchConfig { cluster: Some(cluster), shared_bytes, ..self.config(grid, block) };
        if let Err(e) = self.run(entry, &config, args) {
            panic!("{}: {e}", self.what(entry));
        }
    }

    /// Launches an entry that need not end well.
    ///
    /// # Errors
    /// What the launch says.
    pub fn try_launch(
        &self,
        entry: &str,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        args: &[Arg<'_>],
    ) -> Result<(), LaunchError> {
        self.run(entry, &LaunchConfig { shared_bytes, ..self.config(grid, block) }, args)
    }

    fn config(&self, grid: [u32; 3], block: [u32; 3]) -> LaunchConfig {
        let default = LaunchConfig::new(grid, block);
        let default = if self.way.is_checked { default.checked(Check::ALL) } else { default };
        LaunchConfig {
            async_order: self.way.async_order.or(default.async_order),
            engine: self.way.engine,
            backend: self.way.backend,
            bounds: self.way.bounds,
            tier: self.way.tier,
            threads: self.way.threads,
            seed: self.way.seed,
            // So that a kernel that never ends fails its test instead of hanging it.
            timeout: Some(Duration::from_secs(120)),
            ..default
        }
    }

    fn run(&self, entry: &str, config: &LaunchConfig, args: &[Arg<'_>]) -> Result<(), LaunchError> {
        let name = (!entry.is_empty()).then_some(entry);
        let function = self.module.function(name).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let report = launch(&function, config, args)?;
        if let Some(check) = &report.check {
            let found: Vec<String> = check.findings.iter().map(Finding::human).collect();
            assert!(found.is_empty(), "{}: {}", self.what(entry), found.join("\n"));
            assert_eq!(check.unchecked, None, "{}", self.what(entry));
        }
        Ok(())
    }
}

/// The values of a buffer.
pub fn read<T: Element>(buffer: &DeviceBuffer) -> Vec<T> {
    values_of(&buffer.to_vec())
}
