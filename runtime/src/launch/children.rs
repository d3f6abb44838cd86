//! Launches that threads made, run after the one that they belong to.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use handloom_audit::Check;

use super::config::{MAX_BLOCK, MAX_BLOCK_THREADS, MAX_GRID, MAX_SHARED, MAX_STATIC_SHARED, check_shape};
use super::family::{Family, Number, Pair, Parent};
use super::{LaunchConfig, LaunchError, PreparedLaunch};
use crate::children::{Child, Children, DeviceFacts, Judge, Nesting, Order, Unfit, Work};
use crate::error::{ErrorKind, Wrong};
use crate::finding::{CheckReport, Finding};
use crate::grid::{Grid, LaunchReport};
use crate::memory::Word;
use crate::module::{Function, Module, ModuleInner};
use crate::trap::found;

/// Most launches of the device that keep their memory for the next one of the same shape.
const KEPT: usize = 16;

/// A launch of the device that has run.
struct RanChild {
    report: LaunchReport,
    asked: VecDeque<(Work, Order)>,
    parent: Option<Parent>,
}

/// What launches have to agree in to use the same memory: entry, grid, block, dynamic shared memory.
type Shape = (Arc<str>, [u32; 3], [u32; 3], u32);

/// A device of which nobody said more: the only one, with the limits that CUDA has at first.
#[derive(Debug)]
struct Plain;

impl DeviceFacts for Plain {
    fn ordinal(&self) -> i32 {
        0
    }

    fn count(&self) -> i32 {
        1
    }

    fn attribute(&self, number: i32, _: i32) -> Option<i32> {
        let value = match number {
            1 => u32::try_from(MAX_BLOCK_THREADS).ok()?,
            2..=4 => MAX_BLOCK[usize::try_from(number - 2).ok()?],
            5..=7 => MAX_GRID[usize::try_from(number - 5).ok()?],
            8 => MAX_STATIC_SHARED,
            10 => 32,
            16 => super::N_SM,
            97 => MAX_SHARED,
            _ => return None,
        };
        i32::try_from(value).ok()
    }

    fn limit(&self, number: u32) -> Option<u64> {
        match number {
            4 => Some(2048),
            _ => None,
        }
    }
}

/// What the threads of a launch may ask for, if its module asks for anything.
pub(super) fn children(module: &Arc<ModuleInner>, config: &LaunchConfig, nesting: Nesting) -> Option<Arc<Children>> {
    let facts = || config.facts.clone().unwrap_or_else(|| Arc::new(Plain));
    let judge: Judge = |module, child| {
        let function = function(module, child);
        match check_shape(&child.entry, function.entry(), function.dynamic_start(), &shape(child)) {
            Ok(()) => Ok(()),
            Err(wrong) if wrong.kind() == ErrorKind::TooManyResources => Err(Unfit::Resources),
            Err(_) => Err(Unfit::Shape),
        }
    };
    module.launches.then(|| Arc::new(Children::new(facts(), judge, nesting)))
}

fn function(module: &Arc<ModuleInner>, child: &Child) -> Function {
    Function { module: Module { inner: Arc::clone(module) }, name: Arc::clone(&child.entry) }
}

fn shape(child: &Child) -> LaunchConfig {
    LaunchConfig { shared_bytes: child.shared_bytes, ..LaunchConfig::new(child.grid, child.block) }
}

/// Takes what the threads of a grid asked for, in order.
pub(super) fn asked(grid: &Grid) -> VecDeque<(Work, Order)> {
    let module = &grid.module;
    let space = module.device.inner.memory.space(module.space_kind());
    grid.children.as_ref().zip(space).map(|(children, space)| children.take(space)).unwrap_or_default()
}

/// A configuration with what is needed to hold a grid against those that its threads launch.
pub(super) fn with_footprint<'c>(module: &ModuleInner, config: &'c LaunchConfig) -> Cow<'c, LaunchConfig> {
    let Some(mut check) = config.check.filter(|check| module.launches && check.checks.has(Check::Race)) else {
        return Cow::Borrowed(config);
    };
    check.races.keeps_footprint = true;
    Cow::Owned(LaunchConfig { check: Some(check), ..config.clone() })
}

impl PreparedLaunch {
    /// Runs `todo`, what the threads of its grid asked for, and what the threads of those launches ask for: each with all of its own before the next one.
    /// `start`: when the launch of the host began, if it has a time limit.
    pub(super) fn run_children(
        &mut self,
        todo: VecDeque<(Work, Order)>,
        start: Option<Instant>,
        report: &mut LaunchReport,
    ) -> Result<(), LaunchError> {
        let Some(children) = self.grid.children.clone().filter(|_| !todo.is_empty()) else { return Ok(()) };
        let pending = &children.nesting().pending;
        let memory = Arc::clone(&self.function.module.device().inner);
        let mut kept = BTreeMap::new();
        let parent = self.take_parent();
        let touched = report.check.as_ref().map_or_else(Arc::default, |check| Arc::clone(&check.touched));
        // Nobody looks at races where nothing is known of what the launch itself did.
        let mut family = parent.map(|parent| Family::new(touched, Some(parent)));
        let first = self.config.check.is_some_and(|check| check.races.first);
        let mut todo: VecDeque<(Number, Work, Order)> =
            todo.into_iter().map(|(work, order)| (0, work, order)).collect();
        while let Some((of, work, order)) = todo.pop_front() {
            pending.fetch_sub(1, Ordering::Relaxed);
            let mut touched = family.as_ref().map_or_else(Arc::default, |family| family.touched_by(of, &work, &order));
            let (mut more, mut parent) = (VecDeque::new(), None);
            let done = match work {
                Work::Copy { to, from, width, height } => memory.memory.copy_rows(to, from, width, height),
                Work::Fill { to, byte, width, height } => memory.memory.fill_rows(to, Word::B8(byte), width, height),
                Work::Launch(child) => {
                    let ran = self.run_child(&child, start, &mut kept)?;
                    touched = ran.report.check.as_ref().map_or(touched, |check| Arc::clone(&check.touched));
                    report.add(ran.report);
                    (more, parent) = (ran.asked, ran.parent);
                    Ok(())
                }
            };
            done.map_err(|e| Wrong::new(e.kind(), format!("work that a kernel gave a stream: {e}")))?;
            let number = match &mut family {
                Some(family) => {
                    let (number, pairs) = family.add(of, order, touched, parent);
                    self.tell(&pairs, report);
                    number
                }
                None => 0,
            };
            more.into_iter().rev().for_each(|(work, order)| todo.push_front((number, work, order)));
            if first && report.check.as_ref().is_some_and(|check| !check.findings.is_empty()) {
                break;
            }
        }
        if let (Some(family), Some(check)) = (family, &mut report.check) {
            check.touched = family.touched();
        }
        Ok(())
    }

    /// What its audit knows, for what its threads began.
    fn take_parent(&mut self) -> Option<Parent> {
        let audit = self.beside.take()?;
        Some(Parent { audit, module: Arc::clone(&self.grid.module), env: self.grid.env.clone() })
    }

    /// Tells what nothing orders among grids.
    fn tell(&self, pairs: &[Pair], report: &mut LaunchReport) {
        let mut findings: Vec<Finding> = Vec::new();
        for pair in pairs {
            let finding = pair.finding(|addr, bytes| found::memory_at(addr, bytes, &self.grid, &self.bindings));
            match findings.iter_mut().find(|known| known.is_same(&finding)) {
                Some(known) => known.pairs += finding.pairs,
                None => findings.push(finding),
            }
        }
        if findings.is_empty() {
            return;
        }
        let told = CheckReport { findings, ..CheckReport::default() };
        if let Some(sink) = &self.config.found {
            sink.take(&self.function.name, &told);
        }
        if let Some(check) = &mut report.check {
            check.findings.extend(told.findings);
        }
    }

    /// Why the launch did not come to its end because one of those that its threads made did not. What checks had found until then is told with it.
    pub(super) fn ended_by(&mut self, mut why: LaunchError, mut until: LaunchReport) -> LaunchError {
        if let LaunchError::Trap(trap) = &mut why {
            until.add(std::mem::take(trap.launch_mut()));
            *trap.launch_mut() = until;
        } else if let Some(left) = self.left.take() {
            until.add(LaunchReport { check: Some(left), ..LaunchReport::default() });
            self.left = until.check;
        } else {
            self.left = until.check;
        }
        why
    }

    /// Runs one of them.
    fn run_child(
        &mut self,
        child: &Child,
        start: Option<Instant>,
        kept: &mut BTreeMap<Shape, PreparedLaunch>,
    ) -> Result<RanChild, LaunchError> {
        let key = (Arc::clone(&child.entry), child.grid, child.block, child.shared_bytes);
        let spent = start.map_or(Duration::ZERO, |start| start.elapsed());
        let timeout = self.config.timeout.map(|limit| limit.saturating_sub(spent));
        let mut launch = match kept.remove(&key) {
            Some(mut launch) => {
                launch.set_block(&child.params, Vec::new(), self.config.beside)?;
                launch
            }
            None => {
                let shape = shape(child);
                let (grid, block, shared_bytes) = (shape.grid, shape.block, shape.shared_bytes);
                let (cluster, progress) = (None, None);
                let config = LaunchConfig {
                    grid,
                    block,
                    shared_bytes,
                    cluster,
                    progress,
                    timeout,
                    cooperative: false,
                    ..self.config.clone()
                };
                let function = function(&self.grid.module, child);
                let mut launch = PreparedLaunch::of_shape(&function, &config, &child.params, Vec::new())?;
                let pending = self.grid.children.as_ref().map(|c| Arc::clone(&c.nesting().pending));
                let nesting = Nesting { pending: pending.unwrap_or_default(), ..Nesting::default() };
                // It has not run yet: afterwards its ctas know whom they ask.
                launch.grid.children = children(&self.grid.module, &self.config, nesting);
                launch
            }
        };
        launch.config.timeout = timeout;
        if let Some(children) = &launch.grid.children {
            children.nesting().depth.store(child.depth, Ordering::Relaxed);
        }
        let ran = launch.run_grid();
        let asked = asked(&launch.grid);
        let parent = launch.take_parent().filter(|_| !asked.is_empty());
        if ran.is_err() {
            self.left = launch.take_check();
        }
        let ran = RanChild { report: ran?, asked, parent };
        launch.rest();
        if kept.len() == KEPT {
            kept.clear();
        }
        kept.insert(key, launch);
        Ok(ran)
    }
}

impl LaunchReport {
    /// Adds that of a launch that one of its threads made.
    fn add(&mut self, child: LaunchReport) {
        self.compile += child.compile;
        self.run += child.run;
        self.recompile += child.recompile;
        self.tier = self.tier.max(child.tier);
        self.blocks += child.blocks;
        if let (Some(own), Some(mut child)) = (&mut self.check, child.check) {
            own.findings.append(&mut child.findings);
            own.events.append(&mut child.events);
            own.unchecked = own.unchecked.take().or(child.unchecked);
        }
    }
}
