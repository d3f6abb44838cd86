//! Launches of one entry in one shape, again and again.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use super::{LaunchConfig, LaunchError, PreparedLaunch, bind, config};
use crate::device::Resting;
use crate::error::wrong;
use crate::grid::LaunchReport;
use crate::launch::Arg;
use crate::lock::lock;
use crate::module::Function;
use crate::run::Beside;
use crate::trap::Binding;

/// Time of a launch that a thread which sleeps is not woken for at once.
const SHORT: Duration = Duration::from_micros(50);

/// An entry with the shape and the manner of its launches, checked once, with its code and, as long as few others were used since, memory for its blocks. Streams launch it with parameters
/// that differ, also several at the same time.
///
/// Threads that wait for memory to change are not taken for a deadlock at once, since other streams and the host may change it
/// ([`LaunchConfig::quiet`]).
pub struct Launcher {
    function: Function,
    config: LaunchConfig,
    param_bytes: usize,
    /// Launches that do not run now.
    idle: Mutex<Vec<PreparedLaunch>>,
    /// The last one took less than [`SHORT`].
    is_short: AtomicBool,
}

impl fmt::Debug for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launcher").field("function", &self.function.name()).finish_non_exhaustive()
    }
}

/// Parameters of a launch as they lie in memory, and the buffers that were bound to some of them.
#[derive(Debug)]
pub(crate) struct Params {
    pub(crate) block: Vec<u8>,
    pub(crate) bindings: Vec<Binding>,
}

impl Launcher {
    /// Checks a shape and makes its code.
    ///
    /// # Errors
    /// As [`PreparedLaunch::new`].
    pub fn new(function: &Function, config: &LaunchConfig) -> Result<Arc<Launcher>, LaunchError> {
        let config = LaunchConfig { beside: Beside::stream(), ..config.clone() };
        config::check_shape(function.name(), function.entry(), function.dynamic_start(), &config)?;
        let ends = function.params().iter().map(|p| p.offset as usize + p.size as usize);
        let param_bytes = ends.max().unwrap_or(0);
        let first = PreparedLaunch::of_shape(function, &config, &vec![0; param_bytes], Vec::new())?;
        let new = Launcher {
            function: function.clone(),
            config,
            param_bytes,
            idle: Mutex::new(vec![first]),
            is_short: AtomicBool::new(false),
        };
        let new = Arc::new(new);
        new.rests();
        Ok(new)
    }

    /// Says that it keeps memory.
    fn rests(self: &Arc<Self>) {
        let this: Weak<Launcher> = Arc::downgrade(self);
        self.function.module().device().inner.add_resting(this);
    }

    /// Its entry.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Parameters from arguments.
    pub(crate) fn bind(&self, args: &[Arg<'_>]) -> Result<Params, LaunchError> {
        let mut block = Vec::new();
        let bindings = bind(&self.function, args, &mut block)?;
        Ok(Params { block, bindings })
    }

    /// Parameters that lie there as they are.
    pub(crate) fn params(&self, block: Vec<u8>) -> Result<Params, LaunchError> {
        if block.len() != self.param_bytes {
            let (name, want, got) = (self.function.name(), self.param_bytes, block.len());
            return Err(wrong!(ArgumentSize, "{got} bytes of parameters: `{name}` takes {want}").into());
        }
        // Reports of checks and counts of atomics say which argument they are about; to look for it takes time.
        let is_told = self.config.check.is_some() || self.config.count.is_some();
        let bindings = if is_told { self.pointers(&block) } else { Vec::new() };
        Ok(Params { block, bindings })
    }

    /// Parameters that are addresses in allocations.
    fn pointers(&self, block: &[u8]) -> Vec<Binding> {
        let memory = &self.function.module().device().inner.memory;
        let words = self.function.params().iter().zip(1..).filter(|(p, _)| !p.is_array && p.size == 8);
        let bindings = words.filter_map(|(p, number)| {
            let word = block.get(p.offset as usize..)?.first_chunk()?;
            let address = u64::from_le_bytes(*word);
            let (base, ..) = memory.of(address)?.extent(address)?;
            Some(Binding { number, name: p.name.clone(), base })
        });
        bindings.collect()
    }

    /// Runs it once on the calling thread, with all parameters as they lie in memory: part of what a stream does in
    /// [steps](crate::Stream::steps).
    ///
    /// # Errors
    /// They are not as many bytes as the entry takes, or it did not come to its end.
    pub fn launch_now(self: &Arc<Self>, params: Vec<u8>) -> Result<(), LaunchError> {
        self.run(self.params(params)?).map(drop)
    }

    /// Whether it takes little time, as the last one did.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Runs it once.
    pub(crate) fn run(self: &Arc<Self>, params: Params) -> Result<LaunchReport, LaunchError> {
        let idle = lock(&self.idle).pop();
        let Params { block, bindings } = params;
        let mut launch = match idle {
            Some(mut launch) => {
                launch.set_block(&block, bindings, Beside::stream())?;
                launch
            }
            None => {
                let config = LaunchConfig { beside: Beside::stream(), ..self.config.clone() };
                let new = PreparedLaunch::of_shape(&self.function, &config, &block, bindings)?;
                self.rests();
                new
            }
        };
        // What came to no end is not used again.
        let report = launch.run()?;
        self.is_short.store(report.run < SHORT, Ordering::Relaxed);
        launch.rest();
        lock(&self.idle).push(launch);
        Ok(report)
    }
}

impl Resting for Launcher {
    fn give_back(&self) {
        let idle = std::mem::take(&mut *lock(&self.idle));
        drop(idle);
    }
}
