//! The code of launches: its key, and how it is made and waited for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use handloom_interp::AsyncOrder;
use handloom_ir::simt::Counting;
use handloom_plan::Bounds;

use super::counted::{self, Tally};
use super::{Engine, LaunchConfig, LaunchError, audited};
use crate::module::{CodeCell, Function, Key, Left, Module, ModuleInner, Patience, Program};
use crate::run::{Backend, Progress, Tier};
use crate::trap::TrapReport;

/// How compiling an entry went.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Its name.
    pub entry: String,
    /// Time from checked module to runnable code; zero if the code was there.
    pub time: Duration,
    /// Bytes of machine code.
    pub code_bytes: usize,
    /// Who made it; `None` of the interpreter.
    pub backend: Option<Backend>,
    /// What kept it from the generator that was asked for.
    pub refused: Option<String>,
    /// The code was not compiled but read from disk, where another process kept it.
    pub cached: bool,
}

impl Module {
    /// Makes the code of launches beforehand, in parallel. One result a launch, in order, as of [`Function::compile`]; an entry is made once for a
    /// shape.
    pub fn compile_all(&self, launches: &[(&str, &LaunchConfig)]) -> Vec<Result<Compiled, LaunchError>> {
        let function = |name: &str| self.function(Some(name));
        let jit =
            launches.iter().filter(|(name, config)| function(name).is_ok_and(|f| f.runs_on(config) == Engine::Jit));
        let cells = jit.filter_map(|(name, config)| {
            let function = function(name).ok()?;
            Some((function.cell(config), function.module_of(config), config.tier))
        });
        let absent: Vec<(Arc<CodeCell>, Arc<ModuleInner>, Tier)> =
            cells.filter(|(cell, ..)| cell.get().is_none()).collect();
        // While others are waited for, none is given up.
        let _wanted: Vec<_> = absent.iter().map(|(cell, ..)| cell.ticket()).collect();
        absent.iter().for_each(|(cell, module, tier)| cell.start(module, *tier, absent.len() > 1));
        let compile = |(name, config): &(&str, &LaunchConfig)| {
            let function = function(name)?;
            match absent.iter().find(|(cell, ..)| cell.is_of(&function.key(config))) {
                Some((cell, ..)) if function.runs_on(config) == Engine::Jit => {
                    Ok(function.compiled(function.make(cell, config)?))
                }
                Some(_) | None => function.compile(config),
            }
        };
        launches.iter().map(compile).collect()
    }
}

impl Function {
    pub(crate) fn key(&self, config: &LaunchConfig) -> Key {
        let cluster: u32 = config.cluster_of(self.entry()).iter().product();
        let checked = config.check.is_some();
        let audited = checked && audited::must_tell(self, config);
        Key {
            entry: Arc::clone(&self.name),
            shape: config.shape(),
            bounds: if checked { Bounds::Exact } else { config.bounds },
            stack: config.stack(),
            cluster: cluster > 1,
            host: self.module.inner.device.inner.host,
            late: config.results_come() != AsyncOrder::Earliest,
            // One generator tells what threads do.
            backend: match config.count {
                _ if audited => Backend::Cranelift,
                // One generator counts.
                Some(_) => Backend::Wide,
                None => config.backend,
            },
            audited,
            in_order: false,
            counted: config.count.as_ref().map_or(Counting::Nothing, Tally::level),
            known: Vec::new(),
        }
    }

    /// Who runs a launch. Checks need an engine that tells what threads do, which compiled code does for most kernels.
    pub(crate) fn runs_on(&self, config: &LaunchConfig) -> Engine {
        match config.check {
            _ if config.count.is_some() && counted::why_interpreted(self, config).is_some() => Engine::Interp,
            Some(_) if audited::why_interpreted(self, config).is_some() => Engine::Interp,
            Some(_) | None => config.engine,
        }
    }

    /// What a launch runs of its module.
    pub(crate) fn module_of(&self, config: &LaunchConfig) -> Arc<ModuleInner> {
        self.module.inner.of_order(config.results_come())
    }

    fn cell(&self, config: &LaunchConfig) -> Arc<CodeCell> {
        self.module_of(config).cell(&self.key(config))
    }

    /// The code of a checked launch in which nothing can be found and the order of threads matters, and the time that making it took.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub(crate) fn program_in_order(&self, config: &LaunchConfig) -> Result<(Arc<Program>, Duration), LaunchError> {
        let cell = self.module_of(config).cell(&Key { in_order: true, ..self.key(config) });
        self.program_of(&cell, config)
    }

    /// The code of a launch, made if it is not there, and the time that took.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub(crate) fn program(&self, config: &LaunchConfig) -> Result<(Arc<Program>, Duration), LaunchError> {
        self.program_of(&self.cell(config), config)
    }

    fn program_of(&self, cell: &Arc<CodeCell>, config: &LaunchConfig) -> Result<(Arc<Program>, Duration), LaunchError> {
        let (program, time) = match cell.get() {
            Some(made) => (made?, Duration::ZERO),
            None => self.make(cell, config)?,
        };
        if program.preferred() >= config.tier {
            return Ok((program, time));
        }
        let start = Instant::now();
        let patience = Patience { stop: &config.stop, limit: config.timeout };
        let raised = program.obtain(&self.module_of(config), config.tier, patience);
        let time = time + start.elapsed();
        raised.map_err(|Left| self.left(config, time))?;
        Ok((program, time))
    }

    /// Why nobody waited any longer for code.
    fn left(&self, config: &LaunchConfig, spent: Duration) -> LaunchError {
        if config.stop.is_stopped() {
            return LaunchError::Stopped;
        }
        LaunchError::Trap(Box::new(TrapReport::of_compiling(self, config.block, spent)))
    }

    /// The code of a launch that was not there, and the time that took.
    fn make(&self, cell: &Arc<CodeCell>, config: &LaunchConfig) -> Result<(Arc<Program>, Duration), LaunchError> {
        let start = Instant::now();
        let patience = Patience { stop: &config.stop, limit: config.timeout };
        let module = self.module_of(config);
        let wait = || cell.obtain(&module, config.tier, patience);
        let program = match Progress::while_compiling(config.progress.as_ref(), wait) {
            Ok(made) => made?,
            Err(Left) => return Err(self.left(config, start.elapsed())),
        };
        let time = program.compile_time;
        // It may have been made in good time for others only.
        if config.timeout.is_some_and(|limit| time > limit) {
            return Err(LaunchError::Trap(Box::new(TrapReport::of_compiling(self, config.block, time))));
        }
        Ok((program, time))
    }

    /// Makes the code of a launch beforehand, if it is not there. The interpreter needs none. The time limit and the stop handle of the launch hold
    /// for that too; what was being made is then finished later, or dropped.
    ///
    /// # Errors
    /// It takes longer than the limit: [`LaunchError::Trap`]. It was stopped: [`LaunchError::Stopped`]. There is no code: [`LaunchError::Failed`].
    pub fn compile(&self, config: &LaunchConfig) -> Result<Compiled, LaunchError> {
        if self.runs_on(config) == Engine::Interp {
            return Ok(Compiled {
                entry: self.name.to_string(),
                time: Duration::ZERO,
                code_bytes: 0,
                backend: None,
                refused: None,
                cached: false,
            });
        }
        Ok(self.compiled(self.program(config)?))
    }

    fn compiled(&self, (program, time): (Arc<Program>, Duration)) -> Compiled {
        let entry = self.name.to_string();
        let (backend, refused) = program.made_by();
        let (code_bytes, cached) = (program.code_bytes(), program.is_loaded);
        Compiled { entry, time, code_bytes, backend: Some(backend), refused, cached }
    }
}
