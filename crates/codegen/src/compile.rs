//! One function from SIMT IR to code.

use std::fmt;
use std::sync::OnceLock;

use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{CompiledCode, Context};
use handloom_diag::Span;
use handloom_ir::simt::text::Line;
use handloom_ir::simt::{Counting, Function};
use handloom_plan::abi::Tables;
use handloom_plan::host::{Architecture, Feature, Host};
use handloom_plan::packs::Strategy;
use handloom_plan::{Options, Plan};

use crate::blocks::keep_order;
use crate::emit::{POOL_BYTES, emit};
use crate::failure::Failure;
use crate::lives::values_at_blocks;
use crate::load::Code;

/// A stage that can be printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// What was decided about a function before code is emitted: [`Plan`] and [`Strategy`] of fast code. That it is short instead is known when that has been emitted.
    Plan,
    /// Cranelift IR.
    Clif,
    /// What the runtime must know of the code: its [tables](handloom_plan::abi::Tables).
    Tables,
    /// Machine code as Cranelift prints it.
    Asm,
}

/// Compiles a function.
///
/// # Errors
/// The host lacks what code needs, the function is too large, or a fault of ours.
pub fn compile(func: &Function, options: &Options) -> Result<Code, Failure> {
    // Before anything is done for a host that there is no code for.
    target(&options.host, Allocator::Backtracking)?;
    let (plan, (mut cx, tables)) = emitted(func, options);
    let compiled = finish(&plan, &mut cx)?;
    Code::load(compiled, tables, pool())
}

/// How Cranelift gives registers of the host to values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Allocator {
    /// It takes the whole function into account, and takes decisions back.
    Backtracking,
    /// Instruction by instruction, from the last to the first.
    SinglePass,
}

/// Instructions of Cranelift IR a statement of a long function, at most, for fast code. A single pass takes .5 to .8 us for each, and a third of that is their emission.
/// Masked copies alone, whose value ops are a loop over packs, have a fifth to a half of what they replace: they run 3 times as fast where values do not fit into registers
/// (`.f64`), and take 4 times as long where a function branches at every tenth statement (SHA-256, 29 instructions) or swaps words of shared memory (a bitonic sort, 33).
const PER_STATEMENT: usize = 35;

/// Values at the starts of blocks from which code is short instead, which keeps them in memory: a single pass takes some 50 ns for each. An attention of Triton, the longest
/// kernel of the corpus, has 4,000,000.
const AT_BLOCKS: u64 = 40_000_000;

impl Allocator {
    /// The allocator for the code of a plan.
    ///
    /// Backtracking takes 2 to 8 us for each instruction of Cranelift IR, of which statements have 10 to 35, and more than that where many values are kept; a single
    /// pass .5 to .8. Its code takes 1.1 to 3 times as long to run: nbody and matrix products 1.1, SHA-256 1.7, a loop of hashes 3. Long functions are compiled within 60 us
    /// a statement, as nearly none is by backtracking; short ones, of loops mostly, get the better code.
    fn of(plan: &Plan) -> Allocator {
        if plan.is_long { Allocator::SinglePass } else { Allocator::Backtracking }
    }

    /// Cranelift's name for it.
    fn name(self) -> &'static str {
        match self {
            Allocator::Backtracking => "backtracking",
            Allocator::SinglePass => "single_pass",
        }
    }
}

/// Instructions of Cranelift IR of fast code, at most: those of full copies and of accesses that are tested and done in place. A function that has more gets
/// [short](Plan::short) code, all of it masked copies, in which routines do most accesses.
///
/// Cranelift takes 2 to 3 s for them in a single pass. A megabyte of loads at addresses that were loaded has 2,800,000, one of vectors 8,600,000, which took 8 to
/// more than 20 s; in short code they have 600,000 to 950,000. What is emitted in vain takes half a second.
const MOST: usize = 1_000_000;

/// The plan of a function, and what was emitted by it.
fn emitted(func: &Function, options: &Options) -> (Plan, (Context, Tables)) {
    // Tiers hand their registers on to each other: they agree about what is in a home, as plans of one form do. So lean code decides for all.
    let lean = Options { masked: false, speculate: true, ..*options };
    // Who is told what happens, and who counts it, is told the same by all code.
    let as_written = options.audited || options.counted != Counting::Nothing;
    if *options == lean && !as_written {
        return fitting(func, &lean);
    }
    let mut plan = Plan::new(func, options);
    // What is not long is never too much.
    if plan.is_long && !as_written && fitting(func, &lean).0.is_short {
        plan = Plan::short(func, options);
    }
    let emitted = emit_all(&plan);
    (plan, emitted)
}

/// What is emitted by a plan, however much it is.
fn emit_all(plan: &Plan) -> (Context, Tables) {
    emit(&Strategy::new(plan), usize::MAX).expect("there is no limit")
}

/// The plan of a function, and what was emitted by it: if it is too long, in short form.
fn fitting(func: &Function, options: &Options) -> (Plan, (Context, Tables)) {
    let plan = Plan::new(func, options);
    let most = if plan.is_long { MOST.min(PER_STATEMENT * plan.n_statements()) } else { MOST };
    let mut emitted = emit(&Strategy::new(&plan), most);
    let at_blocks = |(cx, _): &(Context, Tables)| values_at_blocks(&cx.func);
    // There are no more blocks, and no more values at an instruction, than there are instructions.
    let is_small = |(cx, _): &(Context, Tables)| (cx.func.dfg.num_insts() as u64).pow(2) < AT_BLOCKS;
    let fits = |made: &(Context, Tables)| is_small(made) || at_blocks(made) < AT_BLOCKS;
    if let Some(emitted) = emitted.take_if(|made| fits(made)) {
        return (plan, emitted);
    }
    drop(plan);
    let plan = Plan::short(func, options);
    let short = emit_all(&plan);
    // Of many blocks with many values the code that is twice as long is compiled faster.
    if !fits(&short) {
        let plan = Plan::new(func, options);
        let emitted = emitted.or_else(|| emit(&Strategy::new(&plan), 2 * MOST));
        if let Some(emitted) = emitted.filter(|made| at_blocks(made) < at_blocks(&short)) {
            return (plan, emitted);
        }
    }
    (plan, short)
}

/// The text of a stage. Only [`Stage::Asm`] needs a host that there is code for, and depends on its features.
///
/// # Errors
/// As [`compile`].
pub fn print(func: &Function, options: &Options, stage: Stage) -> Result<String, Failure> {
    match stage {
        Stage::Plan => Ok(Strategy::new(&Plan::new(func, options)).to_string()),
        Stage::Clif => {
            let (plan, (cx, _)) = emitted(func, options);
            let clif = cx.func;
            let mut text = clif.display().to_string();
            // What is usual is not said.
            if plan.is_short {
                text += "; fast code takes too long to compile: this is short code\n";
            }
            if Allocator::of(&plan) == Allocator::SinglePass {
                text += &format!("; {} instructions: registers are given in a single pass\n", clif.dfg.num_insts());
            }
            Ok(text)
        }
        Stage::Tables => Ok(format!("{:#?}\n", emitted(func, options).1.1)),
        Stage::Asm => {
            target(&options.host, Allocator::Backtracking)?;
            let (plan, (mut cx, _)) = emitted(func, options);
            cx.set_disasm(true);
            let compiled = finish(&plan, &mut cx)?;
            Ok(compiled.vcode.clone().unwrap_or_default())
        }
    }
}

/// The lines of a stage, each with the statement that it was made from. Of what Cranelift writes, no line has one.
///
/// # Errors
/// As [`compile`].
pub fn lines(func: &Function, options: &Options, stage: Stage) -> Result<Vec<Line>, Failure> {
    if stage == Stage::Plan {
        return Ok(Strategy::new(&Plan::new(func, options)).lines());
    }
    let text = print(func, options, stage)?;
    Ok(text.lines().map(|l| Line { span: Span::NONE, text: l.to_owned() }).collect())
}

fn finish<'c>(plan: &Plan, cx: &'c mut Context) -> Result<&'c CompiledCode, Failure> {
    let allocator = Allocator::of(plan);
    if allocator == Allocator::SinglePass {
        keep_order(&mut cx.func);
    }
    let isa = target(&plan.options.host, allocator)?;
    let mut control = cranelift_codegen::control::ControlPlane::default();
    cx.compile(isa.as_ref(), &mut control)
        .map_err(|e| Failure::of(&plan.func.name, &e.inner, || e.func.display().to_string()))
}

/// The instruction set of a host, with an allocator. Those of the first host that is asked for, mostly the only one, are kept.
fn target(host: &Host, allocator: Allocator) -> Result<OwnedTargetIsa, Failure> {
    type Kept = OnceLock<(Host, Result<OwnedTargetIsa, Failure>)>;
    static FIRST: [Kept; 2] = [const { OnceLock::new() }; 2];
    let (first, isa) = FIRST[allocator as usize].get_or_init(|| (*host, make_target(host, allocator)));
    if first == host { isa.clone() } else { make_target(host, allocator) }
}

fn make_target(host: &Host, allocator: Allocator) -> Result<OwnedTargetIsa, Failure> {
    let mut flags = settings::builder();
    let verify = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [
        ("opt_level", "none"),
        ("regalloc_algorithm", allocator.name()),
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
    for flag in Feature::ALL.iter().filter(|f| host.has_in_narrow_code(**f)).filter_map(|f| flag(*f)) {
        builder.enable(flag).map_err(|e| Failure::Bug(format!("setting {flag}: {e}")))?;
    }
    builder.finish(settings::Flags::new(flags)).map_err(|e| Failure::Bug(format!("host settings: {e}")))
}

/// What Cranelift may use of a host, as `name=value`: the same as where it looks by itself, unless the host is capped.
///
/// # Errors
/// There is no code for the host.
pub fn settings_of(host: &Host) -> Result<Vec<String>, Failure> {
    Ok(target(host, Allocator::Backtracking)?.isa_flags().iter().map(ToString::to_string).collect())
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
        Feature::F16c | Feature::Avx512bw | Feature::Avx512cd => return None,
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
