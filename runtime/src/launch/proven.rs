//! Checked launches in which nothing can be found, so that the code of a launch without checks runs.

use handloom_audit::{Check, Checks, proof};
use handloom_ir::simt::{FrameLayout, SymKind};
use handloom_plan::Bounds;
use handloom_plan::analysis::variables::{Trace, Variable, traces_of_addresses};

use super::config::shared_total;
use super::{Engine, LaunchConfig, audited};
use crate::finding::CheckConfig;
use crate::lock::lock;
use crate::module::{Answer, Function, ModuleInner, Proof};

/// Most launches of a module whose answers are kept.
const MOST: usize = 256;

/// Where parameters are taken to lie: no address of a device.
const PARAMS: u64 = 1 << 62;

/// Whether no check of a launch can find anything, with parameters as they lie in memory. It is looked at once.
pub(super) fn answer(function: &Function, config: &LaunchConfig, params: &[u8]) -> Answer {
    let Some(check) = config.check else { return Answer::Doubted };
    let is_told = check.races.keeps_events || check.races.keeps_footprint;
    let clusters: u32 = config.cluster_of(function.entry()).iter().product();
    if is_told || config.engine == Engine::Interp || config.count.is_some() || clusters > 1 {
        return Answer::Doubted;
    }
    if !audited::must_tell(function, config) && audited::why_interpreted(function, config).is_none() {
        return Answer::Doubted;
    }
    let module = function.module_of(config);
    let key = Proof {
        entry: function.entry().func,
        shape: [config.grid, config.block],
        shared_bytes: config.shared_bytes,
        checks: check.checks,
        params: params.to_vec(),
    };
    if let Some(known) = lock(&module.proven).get(&key) {
        return *known;
    }
    let answer = match prove(&module, function, config, params) {
        Ok(clean) if !clean.order_decides => Answer::Clean,
        Ok(_) if audited::why_interpreted(function, &in_order(config)).is_none() => Answer::InOrder,
        Ok(_) | Err(_) => Answer::Doubted,
    };
    let mut proven = lock(&module.proven);
    if proven.len() >= MOST {
        proven.clear();
    }
    proven.insert(key, answer);
    answer
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
    LaunchConfig { check: config.check.map(|c| CheckConfig { checks: races, ..c }), ..config.clone() }
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
    let ir = handloom_lower::as_lowered(&module.ir, function.name());
    let code = &ir.funcs[function.entry().func.idx()];
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
                        let symbol = &ir.syms[sym.idx()];
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
        frame: &frame,
        variables: &variables,
    })
}
