//! Kernels made as SIMT IR, so that nothing stands between an op and its code: two parameters, the address of source words and that of result words.
//!
//! The word of a source is at `8 * (number * threads of the grid + thread)`, and so is that of a result.

use std::sync::Arc;

use handloom_diag::{FileId, SourceMap, Span};
use handloom_ir::simt::{
    Access, Addr, Block, BlockId, Builder, Entry, FuncId, Function, Module as Ir, Op, Param, Pure, Reg, RegisterBounds,
    Term, Val,
};
use handloom_ir::types::{Int, ScalarType, Sreg, StateSpace, Ty};
use handloom_runtime::{Arg, LaunchConfig, Module, launch};
use smallvec::smallvec;

use crate::engines::{Way, device_with};
use crate::rng::Rng;

/// The place of all statements.
pub const SPAN: Span = Span { file: FileId(0), start: 0, end: 0 };

/// An entry of so many blocks, all of which end the thread.
pub fn function(blocks: usize) -> Function {
    let block = Block { insts: Vec::new(), term: Term::Exit, term_span: SPAN };
    Function {
        name: "k".into(),
        is_entry: true,
        blocks: vec![block; blocks],
        regs: vec![],
        slots: vec![],
        param_bytes: 16,
        result_bytes: 0,
        span: SPAN,
    }
}

/// A builder in the first block.
pub fn builder(func: &mut Function) -> Builder<'_> {
    Builder { func, block: BlockId(0), span: SPAN, guard: None, carry: None }
}

/// What kernels begin with.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// `%tid.x`
    pub tid: Val,
    /// The number of the thread in the grid.
    pub index: Val,
    /// Address of the thread's first source.
    pub sources: Val,
    /// Address of the first source of the thread whose number is that of the cta.
    pub sources_of_cta: Val,
    /// Address of the thread's first result.
    pub results: Val,
}

/// Makes it.
pub fn start(b: &mut Builder<'_>, threads: usize) -> Start {
    let parameter = |b: &mut Builder<'_>, offset| {
        let at = b.reg(Ty::B64);
        b.push(Op::ParamAddr { offset }, smallvec![at], smallvec![]);
        b.load(Access::weak(StateSpace::ParamEntry, 64), Addr { base: Val::Reg(at), offset: 0 })[0]
    };
    let (from, to) = (parameter(b, 0), parameter(b, 8));
    let sreg = |b: &mut Builder<'_>, s| {
        let r = b.reg(Ty::B32);
        b.push(Op::Sreg(s), smallvec![r], smallvec![]);
        Val::Reg(r)
    };
    let (tid, cta) = (sreg(b, Sreg::Tid(0)), sreg(b, Sreg::Ctaid(0)));
    let threads = b.imm(threads as u64, Ty::B32);
    let first = b.pure(Pure::Mul(Ty::B32), Ty::B32, &[cta, threads]);
    let index = b.add(first, tid);
    let eight = b.imm(8, Ty::B32);
    let own = b.pure(Pure::MulWide(Int::U32), Ty::B64, &[index, eight]);
    let of_cta = b.pure(Pure::MulWide(Int::U32), Ty::B64, &[cta, eight]);
    let [sources, sources_of_cta, results] = [(from, own), (from, of_cta), (to, own)].map(|(base, by)| b.add(base, by));
    Start { tid, index, sources, sources_of_cta, results }
}

/// A word cut to a type.
pub fn of_type(b: &mut Builder<'_>, word: Val, ty: Ty) -> Val {
    match ty {
        Ty::P => {
            let one = b.imm(1, Ty::B64);
            let bit = b.and(word, one);
            b.pure(Pure::ToPred(Ty::B64), Ty::P, &[bit])
        }
        Ty::B16 => b.ext(word, 16, false, Ty::B16),
        Ty::B32 => b.ext(word, 32, false, Ty::B32),
        Ty::B64 => word,
    }
}

/// Stores a result.
pub fn put(b: &mut Builder<'_>, at: Addr, r: Reg) {
    let (value, bits) = match b.func.regs[r.idx()] {
        Ty::P => (b.pure(Pure::FromPred(Ty::B32), Ty::B32, &[Val::Reg(r)]), 32),
        ty => (Val::Reg(r), ty.bits() as u8),
    };
    b.store(Access::weak(StateSpace::Global, bits), at, &[value]);
}

/// The module of a kernel.
pub fn module(func: Function) -> Ir {
    let param = |name: &str, offset| Param {
        name: name.into(),
        offset,
        size: 8,
        align: 8,
        ty: ScalarType::U64,
        is_array: false,
    };
    let params = vec![param("from", 0), param("to", 8)];
    let entry = Entry {
        func: FuncId(0),
        params,
        reqntid: None,
        maxntid: None,
        reqcluster: None,
        registers: RegisterBounds::default(),
        shared_bytes: 0,
    };
    let entries = [("k".to_owned(), entry)].into();
    Ir { funcs: vec![func], entries, address_size: 64, ..Ir::default() }
}

/// Runs a kernel with source words and what the words of the results hold before, for a number of ctas of a number of threads. Returns the results.
///
/// # Errors
/// It cannot be compiled by the generator that was asked for, or not be run.
pub fn run(way: Way, ir: Ir, sources: &[u64], results: &[u64], grid: (usize, usize)) -> Result<Vec<u64>, String> {
    let device = device_with(way.vectors)?;
    let module = Module::from_ir(&device, ir, Arc::new(SourceMap::new()), vec![]).map_err(|e| e.to_string())?;
    let raw = |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    let from = device.copy_of(&raw(sources)).map_err(|e| e.to_string())?;
    let to = device.copy_of(&raw(results)).map_err(|e| e.to_string())?;
    let config = LaunchConfig {
        engine: way.engine,
        bounds: way.bounds,
        tier: way.tier,
        knows_params: way.knows_params,
        backend: way.backend,
        ..LaunchConfig::new([grid.0 as u32, 1, 1], [grid.1 as u32, 1, 1])
    };
    let function = module.function(Some("k")).map_err(|e| e.to_string())?;
    let compiled = function.compile(&config).map_err(|e| e.to_string())?;
    if let Some(why) = compiled.refused {
        return Err(format!("refused: {why}"));
    }
    let args = [Arg::Buffer { buffer: &from, offset: 0 }, Arg::Buffer { buffer: &to, offset: 0 }];
    let _ = launch(&function, &config, &args).map_err(|e| e.to_string())?;
    let bytes = to.to_vec();
    Ok(bytes.chunks_exact(8).map(|c| u64::from_le_bytes(std::array::from_fn(|i| c[i]))).collect())
}

/// A word in which every width has an edge, more often than not.
pub fn bits(rng: &mut Rng) -> u64 {
    const HALVES: &[u16] = &[
        0, 1, 2, 0x8000, 0x8001, 0x03ff, 0x0400, 0x83ff, 0x3c00, 0xbc00, 0x3bff, 0x3c01, 0x7bff, 0xfbff, 0x7c00,
        0xfc00, 0x7c01, 0x7fff, 0xfe00, 0xffff, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7f7f, 0x7f81, 0x007f, 0x0080, 0x00ff,
        31, 32, 33,
    ];
    const WORDS: &[u32] = &[
        0,
        1,
        2,
        3,
        7,
        8,
        15,
        16,
        31,
        32,
        33,
        63,
        64,
        255,
        256,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0001,
        0xffff_ffff,
        0xffff_fffe,
        0x0080_0000,
        0x007f_ffff,
        0x807f_ffff,
        0x3f80_0000,
        0xbf80_0000,
        0x3f7f_ffff,
        0x7f7f_ffff,
        0xff7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7f80_0001,
        0xffc0_0000,
        0x7fff_ffff,
        0x4b00_0000,
        0x4f00_0000,
        0x5f00_0000,
        0x7e80_0000,
        0x7f00_0000,
        0x7e80_0001,
        0x0000_ffff,
        0xffff_0000,
        0x477f_e000,
        0x477f_f000,
        0x3300_0000,
        0x3300_0001,
        0x3880_0000,
    ];
    const DOUBLES: &[u64] = &[
        0,
        1,
        2,
        63,
        64,
        65,
        u64::MAX,
        u64::MAX - 1,
        1 << 63,
        (1 << 63) + 1,
        u64::MAX >> 1,
        1 << 32,
        (1 << 32) - 1,
        1 << 31,
        0x3ff0_0000_0000_0000,
        0xbff0_0000_0000_0000,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
        0x7ff0_0000_0000_0001,
        0xfff8_0000_0000_0000,
        0x7fef_ffff_ffff_ffff,
        0x0010_0000_0000_0000,
        0x000f_ffff_ffff_ffff,
        0x800f_ffff_ffff_ffff,
        0x4330_0000_0000_0000,
        0x43e0_0000_0000_0000,
        0xc3e0_0000_0000_0000,
        0x380f_ffff_ffff_ffff,
        0x47ef_ffff_e000_0000,
        0x47ef_ffff_f000_0000,
        0x3810_0000_0000_0000,
        0x36a0_0000_0000_0000,
        0x3fef_ffff_ffff_ffff,
    ];
    match rng.below(8) {
        0 => rng.next(),
        1 => rng.next() >> rng.below(64),
        2 => (rng.next() >> rng.below(64)).wrapping_neg(),
        3 | 4 => (0..4).fold(0, |x, _| x << 16 | u64::from(*rng.pick(HALVES))),
        5 | 6 => u64::from(*rng.pick(WORDS)) << 32 | u64::from(*rng.pick(WORDS)),
        _ => *rng.pick(DOUBLES),
    }
}
