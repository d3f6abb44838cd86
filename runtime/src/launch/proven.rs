//! Checked launches in which nothing can be found, so that the code of a launch without checks runs.

use std::sync::Arc;

use handloom_audit::proof::Area;
use handloom_audit::{Check, Checks, proof};
use handloom_ir::simt::{FrameLayout, SymKind};
use handloom_plan::Bounds;
use handloom_plan::analysis::variables::{Trace, Variable, traces_of_addresses};

use super::config::shared_total;
use super::{Engine, LaunchConfig, audited};
use crate::finding::{CheckConfig, Footprint};
use crate::lock::lock;
use crate::memory::{AllocKind, Blank, access};
use crate::module::{Answer, Function, ModuleInner, Proof, Proven};
use crate::run::Beside;

/// Most launches of a module whose answers are kept.
const MOST: usize = 256;

/// Most bytes that are kept of a launch that may have to be taken back.
const MOST_KEPT: u64 = 1 << 28;

/// Where parameters are taken to lie: no address of a device.
const PARAMS: u64 = 1 << 62;

/// Whether no check of a launch can find anything, with parameters as they lie in memory, and what it touches then. It is looked at once.
pub(super) fn answer(function: &Function, config: &LaunchConfig, params: &[u8]) -> (Answer, Arc<Footprint>) {
    if may_be_known(function, config) && tells_nothing(function, config) {
        return (Answer::Clean, Arc::default());
    }
    let known = known(function, config, params);
    let (answer, footprint) = match &known {
        Some(known) => (answer_of(function, config, known), Arc::clone(&known.footprint)),
        None => (Answer::Doubted, Arc::default()),
    };
    (answer, footprint)
}

fn answer_of(function: &Function, config: &LaunchConfig, known: &Proven) -> Answer {
    // Where work of several streams is compared, or that of grids that launch grids, all that a launch touches must be known.
    let is_compared = config.beside == Beside::Streams || function.module().inner.launches;
    let wants_all = is_compared && config.check.is_some_and(|check| check.races.keeps_footprint);
    if wants_all && !known.footprint.areas().is_all || reads_blank(function, config, known) {
        return Answer::Doubted;
    }
    match (&known.if_apart, known.order_decides) {
        (None, false) => Answer::Clean,
        (None, true) if audited::why_interpreted(function, &in_order(config)).is_none() => Answer::InOrder,
        (Some(changes), false) if may_be_taken_back(&function.module_of(config), config, changes) => {
            Answer::Apart(Arc::clone(changes))
        }
        _ => Answer::Doubted,
    }
}

/// Whether somebody compares what launches touch, or follows what nobody has written.
fn wants_areas(function: &Function, config: &LaunchConfig) -> bool {
    config.check.is_some_and(|check| check.races.keeps_footprint) || audited::follows_blank(function, config)
}

/// Whether a launch may read bytes of the device that nobody wrote, or may write some of which that is not known.
fn reads_blank(function: &Function, config: &LaunchConfig, known: &Proven) -> bool {
    let blank = function.module().device().inner.memory.blank();
    if !blank.is_any() || !audited::follows_blank(function, config) {
        return false;
    }
    let areas = known.footprint.areas();
    let meets = |area: &Area| {
        let (from, end) = area.reach();
        area.reads && blank.has(from, end) && area.touched().iter().any(|t| blank.has(t.addr, t.addr + t.bytes))
    };
    // Reads that must lie apart from what is changed are held apart from this too.
    areas.is_anywhere
        || areas.reads_anywhere && known.if_apart.is_none()
        || areas.others.iter().any(|(from, end)| blank.has(*from, *end))
        || areas.list.iter().any(meets)
}

/// A launch has run in which nothing could be found: what it has surely written is written now.
pub(super) fn settle_blank(footprint: &Footprint, blank: &Blank) {
    for area in footprint.areas().list.iter().filter(|area| area.writes) {
        let (from, end) = area.reach();
        if blank.has(from, end) {
            area.touched().iter().for_each(|t| blank.settle(t.addr, t.bytes));
        }
    }
}

/// What is known of a launch, unless it is a doubt.
fn known(function: &Function, config: &LaunchConfig, params: &[u8]) -> Option<Proven> {
    let key = key(function, config, params)?;
    if !may_be_known(function, config) || tells_nothing(function, config) {
        return None;
    }
    let module = function.module_of(config);
    if let Some(known) = lock(&module.proven).get(&key) {
        return known.clone();
    }
    let proven = prove(&module, function, config, params).ok().map(|clean| Proven {
        order_decides: clean.order_decides,
        if_apart: clean.if_apart.map(Into::into),
        footprint: Arc::new(Footprint::of_areas(clean.areas)),
    });
    keep(&module, key, proven.clone());
    proven
}

/// Whether it makes a difference what is known of a launch.
fn may_be_known(function: &Function, config: &LaunchConfig) -> bool {
    let clusters: u32 = config.cluster_of(function.entry()).iter().product();
    let is_told = config.check.is_none_or(|check| check.races.keeps_events || !check.races.proves);
    !is_told && config.engine != Engine::Interp && config.count.is_none() && clusters <= 1
}

/// Whether nobody is told what threads do, whatever that is: traps are all that can be found.
fn tells_nothing(function: &Function, config: &LaunchConfig) -> bool {
    !audited::must_tell(function, config) && audited::why_interpreted(function, config).is_none()
}

fn keep(module: &ModuleInner, key: Proof, known: Option<Proven>) {
    let mut proven = lock(&module.proven);
    if proven.len() >= MOST {
        proven.clear();
    }
    proven.insert(key, known);
}

/// A launch has read what it changes: the next one with the same parameters need not try.
pub(super) fn doubt(function: &Function, config: &LaunchConfig, params: &[u8]) {
    if let Some(key) = key(function, config, params) {
        keep(&function.module_of(config), key, None);
    }
}

fn key(function: &Function, config: &LaunchConfig, params: &[u8]) -> Option<Proof> {
    Some(Proof {
        entry: function.entry().func,
        shape: [config.grid, config.block],
        shared_bytes: config.shared_bytes,
        checks: config.check?.checks,
        wants_areas: wants_areas(function, config),
        params: params.to_vec(),
    })
}

/// Whether what a launch may change can be kept, so that another one can begin as it did: nobody else changes it meanwhile, and it lies in memory of the device alone.
fn may_be_taken_back(module: &ModuleInner, config: &LaunchConfig, changes: &[(u64, u64)]) -> bool {
    let memory = &module.device.inner.memory;
    let is_inside = |(from, end): &(u64, u64)| {
        memory.extent(*from).is_some_and(|(base, size, kind)| {
            matches!(kind, AllocKind::Buffer | AllocKind::Linear | AllocKind::Global) && end - base <= size
        })
    };
    let bytes: u64 = changes.iter().map(|(from, end)| end - from).sum();
    config.beside != Beside::Streams && !config.cooperative && bytes <= MOST_KEPT && changes.iter().all(is_inside)
}

/// What memory held before a launch changes it.
#[derive(Debug)]
pub(super) struct Snapshot(Vec<(u64, Vec<u8>)>);

impl Snapshot {
    /// Of ranges that lie in allocations.
    pub(super) fn of(changes: &[(u64, u64)]) -> Snapshot {
        let read = |(from, end): &(u64, u64)| {
            let mut bytes = vec![0; (end - from) as usize];
            // SAFETY: `may_be_taken_back` found the range in an allocation of the device, which outlives the launch that it is changed by.
            unsafe { access::read_words(*from, &mut bytes, end - from) }
            (*from, bytes)
        };
        Snapshot(changes.iter().map(read).collect())
    }

    /// Writes it back. No code of the launch runs.
    pub(super) fn restore(&self) {
        for (from, bytes) in &self.0 {
            // SAFETY: as in `of`; kernels may write there.
            unsafe { access::write_words(*from, bytes, bytes.len() as u64) }
        }
    }
}

/// The launch without its checks, which changes nothing else.
pub(super) fn unchecked(config: &LaunchConfig) -> LaunchConfig {
    LaunchConfig {
        check: None,
        bounds: Bounds::Exact,
        async_order: Some(config.results_come()),
        threads: 1,
        ..config.clone()
    }
}

/// The launch as one whose code keeps to the seed's order, as code of all that is told does.
pub(super) fn in_order(config: &LaunchConfig) -> LaunchConfig {
    let races = Checks::default().with(Check::Race);
    // Nobody sees whether threads give way where nothing can be found.
    LaunchConfig { seed: 0, check: config.check.map(|c| CheckConfig { checks: races, ..c }), ..config.clone() }
}

fn prove(
    module: &ModuleInner,
    function: &Function,
    config: &LaunchConfig,
    params: &[u8],
) -> Result<proof::Clean, &'static str> {
    let checks = config.check.map(|c| c.checks).unwrap_or_default();
    if checks.has(Check::Init)
        && let Some(why) = audited::unknown_bits(function, config)
    {
        return Err(why);
    }
    let funcs = handloom_lower::as_lowered(&module.ir, function.name());
    let code = &funcs[function.entry().func];
    let frame = FrameLayout::new(code);
    let symbols = module.symbol_values();
    let mut variables = Vec::new();
    if checks.has(Check::Memory) && audited::may_stray(function, config) {
        for block in traces_of_addresses(code) {
            let mut of_block = Vec::with_capacity(block.len());
            for trace in block {
                of_block.push(match trace {
                    Trace::None | Trace::Mixed => None,
                    Trace::Unknown => return Err("an address may leave its variable"),
                    Trace::Of(Variable::Slot(slot)) => {
                        Some((frame.offsets[slot.idx()], u64::from(code.slots[slot.idx()].size)))
                    }
                    Trace::Of(Variable::Symbol(sym)) => {
                        let symbol = &module.ir.syms[sym.idx()];
                        let has_end = !matches!(symbol.kind, SymKind::DynamicShared { .. } | SymKind::Func(_));
                        (has_end && symbol.size > 0).then_some((symbols[sym.idx()], symbol.size))
                    }
                });
            }
            variables.push(of_block);
        }
    }
    let reserved = module.ir.shared.reserved;
    let shared = shared_total(function.entry(), function.dynamic_start(), config.shared_bytes) + u64::from(reserved);
    proof::prove(&proof::Launch {
        code,
        symbols,
        params: (PARAMS, params),
        nctaid: config.grid,
        ntid: config.block,
        shared: (u32::try_from(shared).unwrap_or(u32::MAX), reserved),
        checks,
        wants_areas: wants_areas(function, config),
        frame: &frame,
        variables: &variables,
    })
}
