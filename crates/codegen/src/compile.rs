//! One function from SIMT IR to code.

use std::fmt;
use std::mem::size_of;
use std::sync::OnceLock;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::{AbiParam, Signature, UserFuncName, types};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, TargetFrontendConfig};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{CodegenError, CompiledCode, Context};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use handloom_diag::Span;
use handloom_ir::simt::{self, Block, FrameLayout, Op, Reg, Term, Val};
use handloom_ir::types::Ty;

use crate::abi::{Loc, Tables, WarpCtx};
use crate::analysis::cfg::Set;
use crate::analysis::shape::{Class, Facts, analyse};
use crate::emit::{Emit, Home, POOL_BYTES, SCRATCH_ROWS, WORD_SLOTS, inlined, inlined_blocks, is_loose, takes_loose};
use crate::load::Code;
use crate::prepare::{addresses_first, single_latches, zero_first};

/// How strictly accesses are checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Bounds {
    /// A stray of one byte traps.
    Exact,
    /// An access stays inside device memory as a whole.
    Contained,
}

/// What code is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Options {
    /// Shape of the cta.
    pub shape: simt::LaunchShape,
    /// Bounds.
    pub bounds: Bounds,
    /// Bytes of local memory of a thread: the stride between lanes. The same for all functions of a launch. A multiple of 16.
    pub local_stride: u32,
    /// Bytes of the frame as the program wrote it.
    pub frame_bytes: u64,
    /// The function is run as a callee: plain barriers leave the code too.
    pub is_callee: bool,
    /// The launch is one of clusters of more than one cta: shared memory is seen by others.
    pub cluster: bool,
    /// Blocks have masked copies. Without them, lanes that go different ways give [`crate::abi::Reason::Deopt`].
    pub masked: bool,
    /// Affine values may rest on run-time tests; a failed one gives [`crate::abi::Reason::Deopt`].
    pub speculate: bool,
}

/// A stage that can be printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
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
pub fn compile(module: &simt::Module, func: &simt::Function, options: &Options) -> Result<Code, Failure> {
    let isa = host()?;
    let (mut cx, tables) = build(module, func, options);
    let compiled = finish(&func.name, &mut cx, &isa)?;
    Code::load(compiled, tables, pool())
}

/// The text of a stage. Only [`Stage::Asm`] depends on the host.
///
/// # Errors
/// As [`compile`].
pub fn print(module: &simt::Module, func: &simt::Function, options: &Options, stage: Stage) -> Result<String, Failure> {
    let (mut cx, tables) = build(module, func, options);
    match stage {
        Stage::Clif => Ok(cx.func.display().to_string()),
        Stage::Tables => Ok(format!("{tables:#?}\n")),
        Stage::Asm => {
            let isa = host()?;
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

/// The host's instruction set, set up once.
fn host() -> Result<OwnedTargetIsa, Failure> {
    static HOST: OnceLock<Result<OwnedTargetIsa, Failure>> = OnceLock::new();
    HOST.get_or_init(|| {
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
        let builder = cranelift_native::builder().map_err(|e| unfit(&e))?;
        if builder.triple().architecture != target_lexicon::Architecture::X86_64 {
            return Err(unfit(builder.triple()));
        }
        if let Some(missing) = missing_feature() {
            return Err(unfit(&format!("it lacks {missing} (AVX2, FMA, F16C and cmpxchg16b are needed)")));
        }
        builder.finish(settings::Flags::new(flags)).map_err(|e| Failure::Bug(format!("host settings: {e}")))
    })
    .clone()
}

/// The first feature that compiled code needs and the host lacks.
pub fn missing_feature() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let have = [
            ("AVX2", std::is_x86_feature_detected!("avx2")),
            ("FMA", std::is_x86_feature_detected!("fma")),
            ("F16C", std::is_x86_feature_detected!("f16c")),
            ("cmpxchg16b", std::is_x86_feature_detected!("cmpxchg16b")),
        ];
        have.into_iter().find(|(_, have)| !have).map(|(name, _)| name)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        Some("the x86-64 instruction set")
    }
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

/// What the builder of functions asks of a target: the same on every x86-64 host, so that Cranelift IR is too.
const FRONTEND: TargetFrontendConfig = TargetFrontendConfig {
    default_call_conv: CallConv::SystemV,
    pointer_width: target_lexicon::PointerWidth::U64,
    page_size_align_log2: 12,
};

fn build(_module: &simt::Module, func: &simt::Function, options: &Options) -> (Context, Tables) {
    let mut f = single_latches(func);
    addresses_first(&mut f);
    let mut facts = analyse(&f, &options.shape, options.local_stride, options.speculate);
    let written = def_count(&f);
    let early = facts.live.entry[0].iter().filter(|r| written[*r] > 0);
    let early: Vec<Reg> = early.map(|r| Reg(r as u32)).collect();
    if !early.is_empty() {
        zero_first(&mut f, &early);
        facts = analyse(&f, &options.shape, options.local_stride, options.speculate);
    }
    let f = &f;
    let mut tables = Tables { name: f.name.clone(), n_blocks: f.blocks.len() as u32, ..Tables::default() };
    let place = place(f, &facts, &mut tables);
    let known = |span: &Span| *span != Span::NONE;
    let first_span = |b: &Block| {
        let mut spans = b.insts.iter().map(|i| i.span).chain([b.term_span]);
        spans.find(known).unwrap_or(f.span)
    };
    tables.block_spans = f.blocks.iter().map(first_span).collect();
    tables.in_part = (0..f.blocks.len()).map(|b| facts.masked.has(b)).collect();
    tables.term_spans = f.blocks.iter().map(|b| b.term_span).collect();
    let layout = FrameLayout::new(f);
    let slot_offsets = layout.offsets.iter().map(|o| *o as u32).collect();
    tables.frame_bytes = layout.size.max(options.frame_bytes) as u32;

    let mut sig = Signature::new(CallConv::SystemV);
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
        let mut routine = Signature::new(CallConv::SystemV);
        for t in [types::I64, types::I64, types::I32, types::I32, types::I64, types::I64] {
            routine.params.push(AbiParam::new(t));
        }
        routine.returns.push(AbiParam::new(types::I64));
        let sig = b.import_signature(routine);
        let params = b.block_params(entry).to_vec();
        let pendable = pendable(f, &facts, options.masked);
        let inlined = inlined_blocks(f, &facts, &pendable);
        let mut emit = Emit {
            b,
            f,
            facts: &facts,
            opt: options,
            tables,
            homes: place.homes,
            slot_offsets,
            scratch: place.scratch,
            cta: params[0],
            pool_ptr: params[1],
            warp,
            pendable,
            full,
            prologue,
            dispatch,
            advance,
            idle,
            reps: Default::default(),
            written: Vec::new(),
            at: (0, 0),
            loose: loose(f, &facts),
            tells_dirty: f.blocks.iter().any(|b| matches!(b.term, Term::Yield { .. })),
            sig,
            n_scratch_used: 0,
            def_count: def_count(f),
            origins: origins(f),
            cleaned: Default::default(),
            turned: Default::default(),
            mask: None,
            inlined,
            held: Vec::new(),
            given_up: Default::default(),
            in_row: Default::default(),
            verified: Default::default(),
            line: Default::default(),
            temp_rows: place.temp_rows,
            words: place.words,
        };
        emit.run(entry);
        tables = emit.tables;
        emit.b.finalize(FRONTEND);
    }
    (cx, tables)
}

struct Place {
    homes: Vec<Option<Home>>,
    temp_rows: Vec<u32>,
    scratch: u32,
    words: u32,
}

/// Lays out the context: header, pending words, scratch rows, homes, rows of values of single blocks.
fn place(f: &simt::Function, facts: &Facts, tables: &mut Tables) -> Place {
    let n_regs = f.regs.len();
    tables.pend_offset = size_of::<WarpCtx>() as u32;
    let mut at = (tables.pend_offset + 4 * tables.n_blocks).next_multiple_of(64);
    let mut take = |bytes: u32| {
        let here = at;
        at += bytes;
        here
    };
    let scratch = take(256 * SCRATCH_ROWS);
    let words = take(64 * WORD_SLOTS);
    let mut crosses = Set::new(n_regs);
    facts.live.entry.iter().for_each(|s| {
        crosses.union(s);
    });
    f.blocks.iter().filter_map(|b| b.term.result()).for_each(|r| {
        crosses.add(r.idx());
    });
    let written = def_count(f);
    let mut homes = vec![None; n_regs];
    for r in crosses.iter() {
        if written[r] == 0 {
            continue;
        }
        homes[r] = Some(match facts.class[r] {
            Class::Affine(s) => Home::Words(take((8 * s.groups() as u32).next_multiple_of(16))),
            Class::Unknown => continue,
            Class::Varying if f.regs[r] == Ty::B64 => Home::Row64(take(256)),
            Class::Varying => Home::Row32(take(128)),
        });
    }
    // Values of one block: the blocks share the space.
    let mut temp_rows = vec![0; n_regs];
    let start = take(0);
    let mut most = 0;
    for b in facts.masked.iter() {
        let mut used = 0;
        for inst in &f.blocks[b].insts {
            for d in &inst.dst {
                if homes[d.idx()].is_none() && temp_rows[d.idx()] == 0 {
                    temp_rows[d.idx()] = start + used;
                    used += if f.regs[d.idx()] == Ty::B64 { 256 } else { 128 };
                }
            }
        }
        most = most.max(used);
    }
    take(most);
    tables.ctx_bytes = spread(start + most);
    tables.homes = homes
        .iter()
        .enumerate()
        .map(|(r, h)| {
            h.map(|h| match (h, facts.class[r]) {
                (Home::Row32(at), _) => Loc::Row32(at),
                (Home::Row64(at), _) => Loc::Row64(at),
                (Home::Words(at), Class::Affine(s)) => {
                    Loc::Groups { at, group: s.group, off: s.off, stride: s.stride, bits: f.regs[r].bits() as u8 }
                }
                (Home::Words(at), _) => Loc::Scalar(at),
            })
        })
        .collect();
    Place { homes, temp_rows, scratch, words }
}

/// The distance of contexts that need so many bytes: an odd number of cache lines that is 5 more than a multiple of 8.
///
/// A block walks over the headers of its warps in turn. At distances near a multiple of a page they would all lie in a few sets of the first
/// cache, and be driven out of it by the data that the kernel streams.
fn spread(bytes: u32) -> u32 {
    let lines = bytes.div_ceil(64);
    64 * (lines + (13 - lines % 8) % 8)
}

fn def_count(f: &simt::Function) -> Vec<u32> {
    let mut n = vec![0; f.regs.len()];
    for b in &f.blocks {
        b.insts.iter().flat_map(|i| &i.dst).chain(b.term.result().iter()).for_each(|d| n[d.idx()] += 1);
    }
    n
}

fn origins(f: &simt::Function) -> Vec<Option<Op>> {
    let count = def_count(f);
    let mut out = vec![None; f.regs.len()];
    for inst in f.blocks.iter().flat_map(|b| &b.insts) {
        for d in &inst.dst {
            if count[d.idx()] == 1 {
                out[d.idx()] = Some(inst.op);
            }
        }
    }
    out
}

/// Blocks that lanes may be pending at. `any`: code of an earlier tier may have stopped at each of them.
fn pendable(f: &simt::Function, facts: &Facts, any: bool) -> Set {
    let mut set = Set::new(f.blocks.len());
    if any {
        (0..f.blocks.len()).for_each(|b| {
            set.add(b);
        });
        return set;
    }
    set.add(0);
    for (b, block) in f.blocks.iter().enumerate() {
        let parts = facts.masked.has(b) || facts.diverges[b] || block.term.suspends();
        if facts.masked.has(b) {
            set.add(b);
        }
        if parts {
            block.term.successors().iter().for_each(|s| {
                set.add(s.idx());
            });
        }
    }
    set
}

/// Registers that hold float results only, whose NaNs become canonical where their bits are used.
fn loose(f: &simt::Function, facts: &Facts) -> Vec<bool> {
    let mut loose = vec![true; f.regs.len()];
    let mut seen = vec![false; f.regs.len()];
    for (b, block) in f.blocks.iter().enumerate() {
        for inst in &block.insts {
            let by_op = matches!(inst.op, Op::Pure(p) if is_loose(p));
            for d in &inst.dst {
                seen[d.idx()] = true;
                loose[d.idx()] &= by_op;
            }
            if !facts.masked.has(b) {
                continue;
            }
            // Masked copies hand rows to routines as they are.
            let consts: Vec<Option<u64>> = inst.src.iter().map(|_| None).collect();
            let never: Vec<bool> = inst.src.iter().map(|_| false).collect();
            let in_loop = matches!(inst.op, Op::Pure(p) if inlined(p, &consts, &never));
            for (i, v) in inst.src.iter().enumerate() {
                let fine = in_loop || matches!(inst.op, Op::Pure(p) if takes_loose(p, i) && is_loose(p));
                if let Val::Reg(r) = v
                    && !fine
                {
                    loose[r.idx()] = false;
                }
            }
        }
        if let Some(d) = block.term.result() {
            loose[d.idx()] = false;
        }
    }
    loose.iter().zip(seen).map(|(l, s)| *l && s).collect()
}
