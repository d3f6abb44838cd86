//! One function from SIMT IR to code.

use std::fmt;
use std::sync::OnceLock;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::{AbiParam, Signature, UserFuncName, types};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, TargetFrontendConfig};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{CodegenError, CompiledCode, Context};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use handloom_ir::simt::Function;
use handloom_plan::abi::Tables;
use handloom_plan::host::{Architecture, CallConvention, Feature, Host};
use handloom_plan::{Options, Plan};

use crate::emit::{Emit, POOL_BYTES};
use crate::load::Code;

/// A stage that can be printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// What was decided about a function before code is emitted: [`Plan`].
    Plan,
    /// Cranelift IR.
    Clif,
    /// What the runtime must know of the code: [`Tables`].
    Tables,
    /// Machine code as Cranelift prints it.
    Asm,
}

/// Why there is no code, or none that does what it must.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// This host lacks what code needs.
    Unsupported(String),
    /// The function or its code is larger than the compiler or the host allows.
    Limit(String),
    /// A fault of ours.
    Bug(String),
}

impl Failure {
    /// The sentence.
    pub fn text(&self) -> &str {
        match self {
            Failure::Unsupported(text) | Failure::Limit(text) | Failure::Bug(text) => text,
        }
    }

    /// What Cranelift refused in the function `name`; `clif` is asked for the function as text where that helps.
    pub fn of(name: &str, error: &CodegenError, clif: impl FnOnce() -> String) -> Failure {
        match error {
            CodegenError::CodeTooLarge | CodegenError::ImplLimitExceeded => {
                Failure::Limit(format!("`{name}` is too large to compile: {error}"))
            }
            CodegenError::Unsupported(_)
            | CodegenError::Verifier(_)
            | CodegenError::RegisterMappingError(_)
            | CodegenError::Regalloc(_) => Failure::Bug(format!("codegen: {error:?}\n{}", clif())),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Failure {}

/// Compiles a function.
///
/// # Errors
/// The host lacks what code needs, the function is too large, or a fault of ours.
pub fn compile(func: &Function, options: &Options) -> Result<Code, Failure> {
    let isa = target(&options.host)?;
    let (mut cx, tables) = build(&Plan::new(func, options));
    let compiled = finish(&func.name, &mut cx, &isa)?;
    Code::load(compiled, tables, pool())
}

/// The text of a stage. Only [`Stage::Asm`] needs a host that there is code for, and depends on its features.
///
/// # Errors
/// As [`compile`].
pub fn print(func: &Function, options: &Options, stage: Stage) -> Result<String, Failure> {
    let plan = Plan::new(func, options);
    match stage {
        Stage::Plan => Ok(plan.to_string()),
        Stage::Clif => Ok(build(&plan).0.func.display().to_string()),
        Stage::Tables => Ok(format!("{:#?}\n", build(&plan).1)),
        Stage::Asm => {
            let isa = target(&options.host)?;
            let (mut cx, _) = build(&plan);
            cx.set_disasm(true);
            let compiled = finish(&func.name, &mut cx, &isa)?;
            Ok(compiled.vcode.clone().unwrap_or_default())
        }
    }
}

fn finish<'c>(name: &str, cx: &'c mut Context, isa: &OwnedTargetIsa) -> Result<&'c CompiledCode, Failure> {
    let mut control = cranelift_codegen::control::ControlPlane::default();
    cx.compile(isa.as_ref(), &mut control).map_err(|e| Failure::of(name, &e.inner, || e.func.display().to_string()))
}

/// The instruction set of a host. That of the first one that is asked for, mostly the only one, is kept.
fn target(host: &Host) -> Result<OwnedTargetIsa, Failure> {
    static FIRST: OnceLock<(Host, Result<OwnedTargetIsa, Failure>)> = OnceLock::new();
    let (first, isa) = FIRST.get_or_init(|| (*host, make_target(host)));
    if first == host { isa.clone() } else { make_target(host) }
}

fn make_target(host: &Host) -> Result<OwnedTargetIsa, Failure> {
    let mut flags = settings::builder();
    let verify = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [
        ("opt_level", "none"),
        ("regalloc_algorithm", "backtracking"),
        ("enable_verifier", verify),
        ("unwind_info", "false"),
    ] {
        flags.set(name, value).map_err(|e| Failure::Bug(format!("setting {name}: {e}")))?;
    }
    let unfit = |why: &dyn fmt::Display| Failure::Unsupported(format!("this host is not supported: {why}"));
    if host.architecture != Architecture::X86_64 {
        return Err(unfit(&format!("it is {}", host.architecture.name())));
    }
    if let Some(missing) = host.missing() {
        return Err(unfit(&format!("it lacks {missing} (AVX2, FMA, F16C and cmpxchg16b are needed)")));
    }
    // Features come from the record, which may be capped; the package knows the kind of machine that this is.
    let mut builder = cranelift_native::builder_with_options(false).map_err(|e| unfit(&e))?;
    if builder.triple().architecture != target_lexicon::Architecture::X86_64 {
        return Err(unfit(builder.triple()));
    }
    for flag in Feature::ALL.iter().filter(|f| host.has(**f)).filter_map(|f| flag(*f)) {
        builder.enable(flag).map_err(|e| Failure::Bug(format!("setting {flag}: {e}")))?;
    }
    builder.finish(settings::Flags::new(flags)).map_err(|e| Failure::Bug(format!("host settings: {e}")))
}

/// What Cranelift may use of a host, as `name=value`: the same as where it looks by itself, unless the host is capped.
///
/// # Errors
/// There is no code for the host.
pub fn settings_of(host: &Host) -> Result<Vec<String>, Failure> {
    Ok(target(host)?.isa_flags().iter().map(ToString::to_string).collect())
}

/// The setting of Cranelift that says that the host has a feature; `None` for what it does not ask for.
fn flag(feature: Feature) -> Option<&'static str> {
    Some(match feature {
        Feature::Sse3 => "has_sse3",
        Feature::Ssse3 => "has_ssse3",
        Feature::Sse41 => "has_sse41",
        Feature::Sse42 => "has_sse42",
        Feature::Popcnt => "has_popcnt",
        Feature::Lzcnt => "has_lzcnt",
        Feature::Bmi1 => "has_bmi1",
        Feature::Bmi2 => "has_bmi2",
        Feature::Cmpxchg16b => "has_cmpxchg16b",
        Feature::Avx => "has_avx",
        Feature::Avx2 => "has_avx2",
        Feature::Fma => "has_fma",
        Feature::AvxVnni => "has_avx_vnni",
        Feature::Avx512f => "has_avx512f",
        Feature::Avx512dq => "has_avx512dq",
        Feature::Avx512vl => "has_avx512vl",
        Feature::Avx512vbmi => "has_avx512vbmi",
        Feature::Avx512bitalg => "has_avx512bitalg",
        Feature::Avx512vnni => "has_avx512vnni",
        Feature::F16c | Feature::Avx512bw => return None,
    })
}

/// Masks by nibble, then lane masks `eq le lt ge gt`.
fn pool() -> Vec<u8> {
    let mut out = Vec::with_capacity(POOL_BYTES as usize);
    for nibble in 0..16u32 {
        for lane in 0..4 {
            out.extend((if nibble >> lane & 1 == 1 { u32::MAX } else { 0 }).to_le_bytes());
        }
    }
    let eq = |l: u32| 1u32 << l;
    let lt = move |l: u32| eq(l) - 1;
    let masks: [&dyn Fn(u32) -> u32; 5] =
        [&eq, &move |l| lt(l) | eq(l), &lt, &move |l| !lt(l), &move |l| !(lt(l) | eq(l))];
    for mask in masks {
        (0..32).for_each(|l| out.extend(mask(l).to_le_bytes()));
    }
    out
}

/// How functions are called.
fn call_conv(host: &Host) -> CallConv {
    match host.calls {
        // Cranelift's name for the convention of C on both.
        CallConvention::SystemV | CallConvention::Aapcs64 => CallConv::SystemV,
    }
}

/// What the builder of functions asks of a target: the same on every host with the same calls, so that Cranelift IR is too.
fn frontend(host: &Host) -> TargetFrontendConfig {
    TargetFrontendConfig {
        default_call_conv: call_conv(host),
        pointer_width: target_lexicon::PointerWidth::U64,
        page_size_align_log2: 12,
    }
}

fn build(plan: &Plan) -> (Context, Tables) {
    let f = &plan.func;
    let mut tables = plan.tables();
    let calls = call_conv(&plan.options.host);
    let mut sig = Signature::new(calls);
    sig.params.extend([AbiParam::new(types::I64), AbiParam::new(types::I64)]);
    sig.returns.push(AbiParam::new(types::I32));
    let mut cx = Context::for_function(clif::Function::with_name_signature(UserFuncName::user(0, 0), sig));
    let mut fb = FunctionBuilderContext::new();
    {
        let mut b = FunctionBuilder::new(&mut cx.func, &mut fb);
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        let dispatch = b.create_block();
        let warp = b.append_block_param(dispatch, types::I64);
        let (advance, idle) = (b.create_block(), b.create_block());
        let full = f.blocks.iter().map(|_| b.create_block()).collect();
        let prologue = f.blocks.iter().map(|_| b.create_block()).collect();
        let mut routine = Signature::new(calls);
        for t in [types::I64, types::I64, types::I32, types::I32, types::I64, types::I64] {
            routine.params.push(AbiParam::new(t));
        }
        routine.returns.push(AbiParam::new(types::I64));
        let sig = b.import_signature(routine);
        let params = b.block_params(entry).to_vec();
        let mut emit = Emit {
            b,
            plan,
            f,
            facts: &plan.facts,
            opt: &plan.options,
            tables,
            cta: params[0],
            pool_ptr: params[1],
            warp,
            full,
            prologue,
            dispatch,
            advance,
            idle,
            reps: Default::default(),
            written: Vec::new(),
            at: (0, 0),
            sig,
            n_scratch_used: 0,
            cleaned: Default::default(),
            turned: Default::default(),
            mask: None,
            held: Vec::new(),
            given_up: Default::default(),
            in_row: Default::default(),
            verified: Default::default(),
            line: Default::default(),
        };
        emit.run(entry);
        tables = emit.tables;
        emit.b.finalize(frontend(&plan.options.host));
    }
    (cx, tables)
}
