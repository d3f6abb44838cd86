//! A launch as its engine sees it, and how it ended.

use std::sync::Arc;
use std::time::Duration;

use handloom_codegen::Failure;
use handloom_diag::Span;
use handloom_interp::{CtaEnv, SharedAudit, SharedCounter};
use handloom_ir::simt::{FuncId, ParamPlace};
use handloom_ir::trap::{Trap, TrapKind};

use crate::children::Children;
use crate::error::{Lack, NoRoom};
use crate::finding::{CheckReport, Finding};
use crate::memory::{Budget, Undo, access};
use crate::module::ModuleInner;
use crate::run::{Beside, Order, Printer, Progress, Recompile, StopHandle, Sums, Tier, TurnLog};

/// What a launch did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct LaunchReport {
    /// Time to make its code; zero if the code was there.
    pub compile: Duration,
    /// Time of the launch alone: without what it waited for code.
    pub run: Duration,
    /// Time that the launch waited for code of further tiers: none of its threads did anything else.
    pub recompile: Duration,
    /// The highest tier of code that ran; the interpreter has none.
    pub tier: Option<Tier>,
    /// Blocks that ran to their end.
    pub blocks: u64,
    /// Its code was not compiled but read from disk, where another process kept it.
    pub cached: bool,
    /// What the check of a checked launch found.
    pub check: Option<Box<CheckReport>>,
}

impl LaunchReport {
    /// What the check of a checked launch found, in the order in which it was met.
    pub fn findings(&self) -> &[Finding] {
        self.check.as_ref().map_or(&[], |check| &check.findings)
    }

    /// Whether a check found nothing, and saw all of the launch.
    ///
    /// # Errors
    /// The text of all findings, and why the check ended early if it did.
    pub fn clean(&self) -> Result<(), String> {
        let Some(check) = &self.check else { return Ok(()) };
        let unchecked = check.unchecked.iter().map(|why| format!("the check ended before the launch did: {why}"));
        let told: Vec<String> = check.findings.iter().map(Finding::human).chain(unchecked).collect();
        if told.is_empty() { Ok(()) } else { Err(told.join("\n\n")) }
    }
}

/// Why an engine gave a grid up. Two words: it is part of what each turn of a unit returns, which then comes in registers. What comes in memory was written in
/// pieces and is read as a vector, for which a host waits until all of them are there.
#[derive(Debug)]
pub(crate) enum Ended {
    Trap(Box<Trap>),
    Stopped,
    NoRoom(Lack),
    Failed(Box<Failure>),
}

impl Ended {
    /// A fault of ours.
    pub(crate) fn bug(why: impl Into<String>) -> Ended {
        Failure::Bug(why.into()).into()
    }
}

impl From<NoRoom> for Ended {
    fn from(e: NoRoom) -> Self {
        Ended::NoRoom(Lack::Memory(e))
    }
}

impl From<Failure> for Ended {
    fn from(e: Failure) -> Self {
        Ended::Failed(Box::new(e))
    }
}

/// What both engines must know of a launch.
#[derive(Debug)]
pub(crate) struct Grid {
    pub(crate) module: Arc<ModuleInner>,
    /// The entry.
    pub(crate) entry: (Arc<str>, FuncId),
    /// As each cta sees it, but for its own number and memory.
    pub(crate) env: CtaEnv,
    /// Bytes of parameters.
    pub(crate) param_bytes: u64,
    /// Bytes of the stack of a thread.
    pub(crate) stack: u32,
    /// Units of scheduling: ctas, or clusters of them.
    pub(crate) units: u64,
    /// Ctas of a unit.
    pub(crate) unit_size: u32,
    /// In which order.
    pub(crate) order: Order,
    pub(crate) stop: StopHandle,
    pub(crate) beside: Beside,
    /// How long a launch that is not alone may wait while nothing happens in the process.
    pub(crate) quiet: Option<Duration>,
    pub(crate) progress: Option<Progress>,
    /// Takes what is printed; `None` if no function of the module can print.
    pub(crate) printer: Option<Arc<Printer>>,
    pub(crate) recompile: Arc<Recompile>,
    /// Host threads.
    pub(crate) threads: usize,
    /// Blocks of compiled code start with local memory that reads as zero.
    pub(crate) clears_local: bool,
    /// Who is told what threads do, of a checked launch that runs.
    pub(crate) audit: Option<SharedAudit>,
    /// What it has written, if it may have to be run again by the interpreter because code cannot tell all that its check asks for.
    pub(crate) undo: Option<Undo>,
    /// Allocations that hold one of these ranges must not be read: who does so is stopped, and the launch begins anew with somebody who looks closer.
    pub(crate) unread: Option<Arc<[(u64, u64)]>>,
    /// Who counts what threads do, of a counted launch that runs.
    pub(crate) counter: Option<SharedCounter>,
    /// Where compiled code of a counted launch leaves what it counted.
    pub(crate) sums: Option<Arc<Sums>>,
    /// Where workers of a traced launch note what they run.
    pub(crate) turns: Option<Arc<TurnLog>>,
    /// What its threads launch, if the module launches anything.
    pub(crate) children: Option<Arc<Children>>,
    /// What `malloc` may take.
    pub(crate) heap: Option<Arc<Budget>>,
}

impl Grid {
    /// What a place in its parameters holds; 0 behind their end, where no thread reads.
    pub(crate) fn param(&self, place: ParamPlace) -> u64 {
        let bytes = usize::from(place.bits) / 8;
        let mut value = [0; 8];
        if u64::from(place.offset) + bytes as u64 <= self.param_bytes {
            // SAFETY: these bytes are of the launch's own parameters.
            unsafe { access::copy_out(self.env.param_base + u64::from(place.offset), &mut value[..bytes]) }
        }
        u64::from_le_bytes(value)
    }

    /// `%ctaid` of a cta of a unit, by rank in it.
    #[inline]
    pub(crate) fn ctaid(&self, unit: u64, rank: u32) -> [u32; 3] {
        // Most grids: one dimension, no clusters. Division is slow beside what else a small block costs.
        match u32::try_from(unit) {
            Ok(unit) if self.unit_size == 1 && unit < self.env.nctaid[0] => [unit, 0, 0],
            Ok(_) | Err(_) => self.ctaid_in_shape(unit, rank),
        }
    }

    #[inline]
    /// The place of a cta in the order in which text is printed.
    pub(crate) fn number(&self, unit: u64, rank: u32) -> u64 {
        unit * u64::from(self.unit_size) + u64::from(rank)
    }

    /// The trap of a launch whose time limit passed while it waited for code.
    pub(crate) fn compiling_trap(&self) -> Trap {
        let span = self.module.ir.funcs.get(self.entry.1.idx()).map_or(Span::NONE, |f| f.span);
        compiling_trap(&self.entry.0, span)
    }

    /// A cta prints no more.
    pub(crate) fn end_text(&self, number: u64) {
        if let Some(printer) = &self.printer {
            printer.end(number);
        }
    }

    fn ctaid_in_shape(&self, unit: u64, rank: u32) -> [u32; 3] {
        let shape = self.env.cluster.nctaid;
        // Division is slow: a unit of one block needs none by the shape, and most grids have fewer blocks than 2^32.
        let grid = match self.unit_size {
            1 => self.env.nctaid,
            _ => [0, 1, 2].map(|i| self.env.nctaid[i] / shape[i].max(1)),
        };
        let first = match u32::try_from(unit) {
            Ok(unit) if unit < grid[0] => [unit, 0, 0],
            Ok(unit) => {
                let row = unit / grid[0];
                let plane = if row < grid[1] { 0 } else { row / grid[1] };
                [unit - row * grid[0], row - plane * grid[1], plane]
            }
            Err(_) => {
                let [x, y, _] = grid.map(u64::from);
                [unit % x, unit / x % y, unit / x / y].map(|v| u32::try_from(v).unwrap_or(0))
            }
        };
        if self.unit_size == 1 {
            return first;
        }
        let inner = [rank % shape[0], rank / shape[0] % shape[1], rank / shape[0] / shape[1]];
        [0, 1, 2].map(|i| first[i] * shape[i] + inner[i])
    }
}

/// The trap of a launch whose time limit passed while code of an entry was made. `span`: the entry.
pub(crate) fn compiling_trap(name: &str, span: Span) -> Trap {
    Trap { detail: format!("while compiling {name}"), ..Trap::new(TrapKind::Timeout, span, [0; 3], [0; 3]) }
}
