//! Every value op in compiled code against its one definition, `num::eval`: on edges of all widths and on random bits, with sources that vary, that
//! all lanes share and that are constants, and in a block that part of the warp executes.
//!
//! The kernels are made as SIMT IR, so that nothing stands between an op and its code. `HANDLOOM_VALUE_OPS=all` takes every modifier; a plain run
//! takes a part of those whose code is the same but for data. `HANDLOOM_VALUE_OPS=TEXT` takes those whose text has it. Video instructions have a
//! test of their own (`video.rs`), and so have conversions (`cvt_results.rs`), of which some are here too, since sources that all lanes share and masks
//! are not asked there about all of them.

use std::collections::BTreeMap;

use handloom_ir::num::eval;
use handloom_ir::simt::video::{Elements, Negated, Part, PartOf, SimdOp, Video, VideoEnd, VideoOp, VideoSimd, Vmad};
use handloom_ir::simt::{Access, Addr, BlockId, Cvt, Exactness, FMode, Inst, Module as Ir, Op, Pure, Reg, Term, Val};
use handloom_ir::types::{Cmp, Float, Int, PrmtMode, Rounding, ScalarType, StateSpace, TestProperty, Ty};
use handloom_tests::engines::{INTERP, Way, ways};
use handloom_tests::kernel::{self, SPAN, bits};
use handloom_tests::rng::Rng;
use handloom_wide::approx::{AWAY, circular, exponentials, logarithms, powers};
use handloom_wide::is_for_routine;

/// Ops of a kernel.
const CHUNK: usize = 24;
/// Threads of a block, and blocks.
const THREADS: usize = 64;
const BLOCKS: usize = 6;
const ALL: usize = THREADS * BLOCKS;
/// More sources than any op has.
const SOURCES: usize = 9;
/// What lanes that do not execute an op keep.
const KEPT: u64 = 0x0123_4567_89ab_cdef;

/// How sources reach an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// Each lane has its own.
    Varying,
    /// All lanes of a block of threads share them.
    Uniform,
    /// This source is a constant, the others vary.
    Constant(usize),
    /// All but the first are constants.
    Constants,
    /// Lanes have their own, and part of them execute the op.
    Masked,
}

/// The source values of an op at a thread: the same for all ops of a kernel, cut to their types.
fn source(data: &[u64], how: How, i: usize, thread: usize, ty: Ty, constants: &[u64]) -> u64 {
    let bits = match how {
        How::Constant(k) if k == i => constants[i],
        How::Constants if i > 0 => constants[i],
        How::Uniform => data[i * ALL + thread / THREADS],
        How::Varying | How::Masked | How::Constant(_) | How::Constants => data[i * ALL + thread],
    };
    bits & ty.mask()
}

/// Whether a thread executes the op.
fn takes_part(how: How, thread: usize) -> bool {
    how != How::Masked || thread % 5 != 1
}

/// A kernel of some ops: parameters are the address of the sources and that of the results.
fn kernel_of(ops: &[Pure], how: How, constants: &[u64]) -> Ir {
    let mut func = kernel::function(3);
    func.blocks[0].term = Term::Jump(BlockId(1));
    func.blocks[1].term = Term::Jump(BlockId(2));
    let mut b = kernel::builder(&mut func);
    let start = kernel::start(&mut b, THREADS);
    let (index, results) = (start.index, start.results);
    let sources = if how == How::Uniform { start.sources_of_cta } else { start.sources };
    // Words of the sources, and their forms by type.
    let n = ops.iter().map(|op| op.sources().len()).max().unwrap_or(0);
    let mut made: BTreeMap<(usize, Ty), Val> = BTreeMap::new();
    for i in 0..n {
        let at = Addr { base: sources, offset: (8 * ALL * i) as i64 };
        let word = b.load(Access::weak(StateSpace::Global, 64), at)[0];
        for ty in [Ty::P, Ty::B16, Ty::B32, Ty::B64] {
            let wanted = ops.iter().any(|op| op.sources().get(i) == Some(&ty));
            if !wanted {
                continue;
            }
            let value = kernel::of_type(&mut b, word, ty);
            made.insert((i, ty), value);
        }
    }
    let mut dst: Vec<Vec<Reg>> = Vec::new();
    for op in ops {
        let (one, two) = op.results();
        let list: Vec<Reg> = [Some(one), two].into_iter().flatten().map(|ty| b.reg(ty)).collect();
        if how == How::Masked {
            for d in &list {
                let ty = b.func.regs[d.idx()];
                // Not a constant that passes see.
                b.copy(*d, Val::Imm(KEPT & ty.mask(), ty));
            }
        }
        dst.push(list);
    }
    if how == How::Masked {
        let (five, one) = (b.imm(5, Ty::B32), b.imm(1, Ty::B32));
        let rest = b.pure(Pure::Rem(Int::U32), Ty::B32, &[index, five]);
        let cond = b.pure(Pure::ICmp(Cmp::Ne, Int::U32), Ty::P, &[rest, one]);
        b.func.blocks[0].term = Term::Branch { cond, then: BlockId(1), otherwise: BlockId(2) };
    }
    b.block = BlockId(1);
    for (op, d) in ops.iter().zip(&dst) {
        let types = op.sources();
        let src = types.iter().enumerate().map(|(i, ty)| match how {
            How::Constant(k) if k == i => Val::Imm(constants[i] & ty.mask(), *ty),
            How::Constants if i > 0 => Val::Imm(constants[i] & ty.mask(), *ty),
            _ => made[&(i, *ty)],
        });
        let inst = Inst { op: Op::Pure(*op), dst: d.clone().into(), src: src.collect(), guarded: false, span: SPAN };
        b.func.blocks[1].insts.push(inst);
    }
    b.block = BlockId(2);
    for (k, r) in
        dst.iter().enumerate().flat_map(|(i, list)| list.iter().enumerate().map(move |(j, r)| (2 * i + j, *r)))
    {
        kernel::put(&mut b, Addr { base: results, offset: (8 * ALL * k) as i64 }, r);
    }
    kernel::module(func)
}

/// Sources that are near each other, so that sums cancel and quotients are small.
fn data(seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    let mut data: Vec<u64> = (0..SOURCES * ALL).map(|_| bits(&mut rng)).collect();
    for t in (0..ALL).step_by(7) {
        for i in 1..SOURCES {
            let by = rng.next() >> rng.below(64);
            let turn = if rng.one_in(2) { 0x8000_8000_8000_8000 } else { 0 };
            data[i * ALL + t] = data[t].wrapping_add(by) ^ turn;
        }
    }
    data
}

/// Runs a chunk on a way, and says what is wrong.
fn run(way: Way, ops: &[Pure], how: How, seed: u64, data: &[u64]) -> Result<(), String> {
    let mut rng = Rng::new(seed ^ 0x55);
    let constants: Vec<u64> = (0..SOURCES).map(|_| bits(&mut rng)).collect();
    let ir = kernel_of(ops, how, &constants);
    let found = kernel::run(way, ir, data, &vec![0; 2 * ALL * ops.len()], (BLOCKS, THREADS))?;
    let word = |k: usize, t: usize| found[k * ALL + t];
    let mut wrong = Vec::new();
    for (k, op) in ops.iter().enumerate() {
        let (one, two) = op.results();
        for t in 0..ALL {
            let src: Vec<u64> =
                op.sources().iter().enumerate().map(|(i, ty)| source(data, how, i, t, *ty, &constants)).collect();
            let want = if takes_part(how, t) {
                eval(*op, &src)
            } else {
                [one, two.unwrap_or(Ty::P)].map(|ty| KEPT & ty.mask())
            };
            let mut found = [word(2 * k, t), word(2 * k + 1, t)];
            if two.is_none() {
                found[1] = want[1];
            }
            if found != want {
                wrong.push(format!("{op} {how:?} thread {t}: {src:x?} is {found:x?}, not {want:x?}"));
                break;
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

const INTS: [Int; 6] = [Int::U16, Int::S16, Int::U32, Int::S32, Int::U64, Int::S64];
const CMPS: [Cmp; 14] = [
    Cmp::Eq,
    Cmp::Ne,
    Cmp::Lt,
    Cmp::Le,
    Cmp::Gt,
    Cmp::Ge,
    Cmp::Equ,
    Cmp::Neu,
    Cmp::Ltu,
    Cmp::Leu,
    Cmp::Gtu,
    Cmp::Geu,
    Cmp::Num,
    Cmp::Nan,
];
const BOTH: [bool; 2] = [false, true];

fn integer_ops() -> Vec<Pure> {
    let mut ops = Vec::new();
    for ty in [Ty::P, Ty::B16, Ty::B32, Ty::B64] {
        ops.extend([Pure::Mov(ty), Pure::And(ty), Pure::Or(ty), Pure::Xor(ty), Pure::Not(ty), Pure::Select(ty)]);
    }
    for ty in [Ty::B16, Ty::B32, Ty::B64] {
        ops.extend([Pure::FromPred(ty), Pure::ToPred(ty), Pure::Add(ty), Pure::Sub(ty), Pure::Mul(ty), Pure::Abs(ty)]);
        ops.extend([Pure::Neg(ty), Pure::Cnot(ty), Pure::Shl(ty), Pure::Popc(ty), Pure::Clz(ty), Pure::Brev(ty)]);
        ops.extend([Pure::AddCarry(ty), Pure::SubBorrow(ty)]);
        for (bits, signed) in [8, 16, 32, 64].into_iter().flat_map(|b| BOTH.map(|s| (b, s))) {
            let all = [Ty::B16, Ty::B32, Ty::B64].map(|to| Pure::Ext { bits, signed, from: ty, to });
            ops.extend(all.into_iter().filter(|_| u32::from(bits) <= ty.bits()));
        }
    }
    ops.extend([Pure::Bfi(Ty::B32), Pure::Bfi(Ty::B64), Pure::Pack(Ty::B16), Pure::Pack(Ty::B32), Pure::Fns]);
    for int in INTS {
        ops.extend([Pure::MulHi(int), Pure::Div(int), Pure::Rem(int), Pure::Min(int), Pure::Max(int)]);
        ops.extend([Pure::AbsDiff(int), Pure::AddSat(int), Pure::SubSat(int), Pure::Shr(int)]);
        if int.ty != Ty::B64 {
            ops.push(Pure::MulWide(int));
        }
        if int.ty != Ty::B16 {
            ops.push(Pure::Bfe(int));
            ops.extend(BOTH.map(|shiftamt| Pure::Bfind { int, shiftamt }));
        }
        ops.extend(CMPS[..6].iter().map(|cmp| Pure::ICmp(*cmp, int)));
    }
    for a in BOTH {
        ops.extend([Ty::B64, Ty::B32].map(|from| Pure::Half { from, hi: a }));
        ops.push(Pure::Bmsk { wrap: a });
        for b in BOTH {
            ops.extend([Pure::Mul24 { signed: a, hi: b }, Pure::Szext { signed: a, wrap: b }]);
            ops.extend([Pure::Shf { right: a, wrap: b }, Pure::Dp4a { a_signed: a, b_signed: b }]);
            ops.extend(BOTH.map(|hi| Pure::Dp2a { a_signed: a, b_signed: b, hi }));
        }
    }
    ops.extend([0x00, 0x1b, 0x96, 0xca, 0xe8, 0xff].map(Pure::Lop3));
    use PrmtMode::{B4e, Default, Ecl, Ecr, F4e, Rc8, Rc16};
    ops.extend([Default, F4e, B4e, Rc8, Ecl, Ecr, Rc16].map(Pure::Prmt));
    ops
}

fn modes(ty: Float) -> Vec<FMode> {
    let rounds = match ty {
        Float::F32 | Float::F64 | Float::F32x2 => {
            vec![Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up]
        }
        Float::F16 | Float::F16x2 | Float::BF16 | Float::BF16x2 => vec![Rounding::Nearest],
    };
    let flags = BOTH.into_iter().flat_map(|ftz| [(ftz, false, false), (ftz, true, false), (ftz, false, true)]);
    let flags: Vec<_> = flags.filter(|(ftz, ..)| !ftz || ty != Float::F64).collect();
    let all = rounds.into_iter().flat_map(|r| flags.iter().map(move |f| (r, *f)));
    all.map(|(round, (ftz, sat, relu))| FMode { ty, round, ftz, sat, relu }).collect()
}

const FLOATS: [Float; 7] = [Float::F16, Float::BF16, Float::F32, Float::F64, Float::F16x2, Float::BF16x2, Float::F32x2];

fn float_ops() -> Vec<Pure> {
    let mut ops = Vec::new();
    for ty in FLOATS {
        for mode in modes(ty) {
            ops.extend([Pure::FAdd(mode), Pure::FSub(mode), Pure::FMul(mode), Pure::FFma(mode)]);
            if !(ty.is_of_host()) || mode.relu || mode.sat {
                continue;
            }
            let mut exact = vec![Exactness::Ieee(mode.round)];
            if ty == Float::F32 && mode.round == Rounding::Nearest {
                exact.extend([Exactness::Approx, Exactness::Full]);
            }
            for exact in exact {
                ops.push(Pure::FDiv { mode, exact });
                if exact != Exactness::Full {
                    ops.extend([Pure::FRcp { mode, exact }, Pure::FSqrt { mode, exact }]);
                }
            }
            if mode.round == Rounding::Nearest {
                ops.push(Pure::FRsqrt(mode));
            }
        }
        for ftz in BOTH.into_iter().filter(|ftz| !ftz || ty != Float::F64) {
            for (nan, xorsign) in BOTH.into_iter().flat_map(|n| BOTH.map(|x| (n, x))) {
                ops.extend([Pure::FMin { ty, ftz, nan, xorsign }, Pure::FMax { ty, ftz, nan, xorsign }]);
            }
            ops.extend([Pure::FAbs { ty, ftz }, Pure::FNeg { ty, ftz }]);
            if ty == ty.element() {
                ops.extend(CMPS.map(|cmp| Pure::FCmp { cmp, ty, ftz }));
            }
            if ty != Float::F64 && ty != Float::F32x2 {
                ops.push(Pure::Ex2 { ty, ftz });
            }
        }
        if ty != Float::F64 && ty != Float::F32x2 {
            ops.push(Pure::Tanh { ty });
        }
    }
    for ty in [Float::F32, Float::F64] {
        ops.push(Pure::Copysign(ty));
        use TestProperty::{Finite, Infinite, Normal, NotANumber, Number, Subnormal};
        ops.extend(
            [Finite, Infinite, Number, NotANumber, Normal, Subnormal].map(|property| Pure::Testp { property, ty }),
        );
    }
    let gross = FMode { ty: Float::F64, round: Rounding::Nearest, ftz: true, sat: false, relu: false };
    ops.extend([Pure::FRcp { mode: gross, exact: Exactness::Approx }, Pure::FRsqrt(gross)]);
    ops.extend(BOTH.into_iter().flat_map(|ftz| [Pure::Sin { ftz }, Pure::Cos { ftz }, Pure::Lg2 { ftz }]));
    ops
}

fn conversions() -> Vec<Pure> {
    use ScalarType::{BF16, BF16x2, E4M3x2, E5M2x2, F16, F16x2, F32, F64, S8, S16, S32, S64, TF32, U8, U16, U32, U64};
    const SCALARS: [ScalarType; 12] = [U8, U16, U32, U64, S8, S16, S32, S64, F16, BF16, F32, F64];
    let mut pairs: Vec<(ScalarType, ScalarType)> =
        SCALARS.into_iter().flat_map(|from| SCALARS.map(|to| (from, to))).collect();
    pairs.extend([F16x2, BF16x2, TF32, E4M3x2, E5M2x2].map(|to| (F32, to)));
    pairs.extend([(E4M3x2, F16x2), (E5M2x2, F16x2), (F16x2, E4M3x2), (F16x2, E5M2x2)]);
    let is_float = |t: ScalarType| Float::of(t).is_some();
    let mut ops = Vec::new();
    for (from, to) in pairs {
        for round in [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up] {
            for flags in 0..16 {
                let [ftz, sat, relu, satfinite] = [1, 2, 4, 8].map(|bit| flags & bit != 0);
                let integral = is_float(from) && (from == to || !is_float(to));
                let c = Cvt { to, from, round, integral, ftz, sat, relu, satfinite };
                let is_small = matches!(to, E4M3x2 | E5M2x2);
                // As the manual has them.
                let fits = (!(relu || satfinite)
                    || is_small
                    || from == F32 && matches!(to, F16 | BF16 | F16x2 | BF16x2 | TF32))
                    && (!is_small || satfinite)
                    && (!ftz || (from == F32 || to == F32) && to.elements() == 1 && to != TF32)
                    && (round == Rounding::Nearest || is_float(from) && is_float(to) || integral || is_float(to))
                    && (!sat || to != BF16 && to != TF32 && to.elements() == 1)
                    && (round == Rounding::Nearest || from.elements() == 1 && !is_small)
                    && !(to == TF32 && matches!(round, Rounding::Down | Rounding::Up))
                    && !(sat && (relu || satfinite));
                if fits {
                    ops.push(Pure::Cvt(c));
                }
            }
        }
    }
    ops
}

/// Conversions of packed types: of small floats all forms.
fn packed_conversions() -> Vec<Pure> {
    use ScalarType::{
        BF16x2, E2M1x2, E2M1x4, E2M3x2, E2M3x4, E3M2x2, E3M2x4, E4M3x2, E4M3x4, E5M2x2, E5M2x4, F16x2, F32, S2F6x2,
        UE8M0x2,
    };
    const PAIRS: [ScalarType; 5] = [E4M3x2, E5M2x2, E2M3x2, E3M2x2, E2M1x2];
    let plain = |from, to, round| Cvt { round, ..Cvt::plain(to, from) };
    let (nearest, random) = (Rounding::Nearest, Rounding::Stochastic);
    let (mut list, mut ops) = (Vec::new(), Vec::new());
    for pair in PAIRS {
        list.extend([F32, F16x2, BF16x2].map(|from| (plain(from, pair, nearest), true)));
        list.push((plain(pair, BF16x2, nearest), false));
        ops.extend(BOTH.map(|relu| Pure::Cvt(Cvt { relu, ..plain(pair, F16x2, nearest) })));
    }
    list.extend([E4M3x4, E5M2x4, E2M3x4, E3M2x4, E2M1x4].map(|to| (plain(F32, to, random), true)));
    list.extend([F16x2, BF16x2].map(|to| (plain(F32, to, random), false)));
    list.extend([F32, BF16x2].into_iter().flat_map(|from| [(plain(from, S2F6x2, nearest), true)]));
    list.push((plain(S2F6x2, BF16x2, nearest), false));
    for (c, is_finite) in list {
        for (relu, satfinite) in BOTH.into_iter().flat_map(|r| BOTH.map(|s| (r, s))).filter(|(_, s)| *s || !is_finite) {
            ops.push(Pure::Cvt(Cvt { relu, satfinite, ..c }));
        }
    }
    for (from, satfinite) in [F32, BF16x2].into_iter().flat_map(|from| BOTH.map(|s| (from, s))) {
        ops.extend([Rounding::Zero, Rounding::Up].map(|r| Pure::Cvt(Cvt { satfinite, ..plain(from, UE8M0x2, r) })));
    }
    ops.push(Pure::Cvt(plain(UE8M0x2, BF16x2, nearest)));
    ops
}

/// Some video instructions: random modifiers, among them selectors that leave elements where they are.
fn video_ops() -> Vec<Pure> {
    let mut rng = Rng::new(11);
    let mut ops = Vec::new();
    for n in 0..600 {
        let yes = |rng: &mut Rng| rng.one_in(2);
        let part = |rng: &mut Rng| PartOf { part: Part::ALL[rng.below(7)], signed: rng.one_in(2) };
        let cmp = CMPS[rng.below(6)];
        ops.push(match n % 5 {
            0 | 1 => {
                let wrap = yes(&mut rng);
                let op = [
                    VideoOp::Add,
                    VideoOp::Sub,
                    VideoOp::AbsDiff,
                    VideoOp::Min,
                    VideoOp::Max,
                    VideoOp::Shl { wrap },
                    VideoOp::Shr { wrap },
                    VideoOp::Set(cmp),
                ][rng.below(8)];
                let end = match rng.below(5) {
                    0 => VideoEnd::Plain,
                    1 => VideoEnd::Add,
                    2 => VideoEnd::Min,
                    3 => VideoEnd::Max,
                    _ => VideoEnd::Merge(Part::ALL[rng.below(6)]),
                };
                let (a, b) = (part(&mut rng), part(&mut rng));
                Pure::Video(Video { op, signed: yes(&mut rng), a, b, sat: yes(&mut rng), end })
            }
            2 => {
                let (a, b) = (part(&mut rng), part(&mut rng));
                let negated = [Negated::None, Negated::Product, Negated::Addend][rng.below(3)];
                let (plus_one, sat) = (negated == Negated::None && yes(&mut rng), yes(&mut rng));
                Pure::Vmad(Vmad { a, b, negated, plus_one, sat, shift: [0, 7, 15][rng.below(3)] })
            }
            _ => {
                let n = if yes(&mut rng) { 2 } else { 4 };
                let op = [
                    SimdOp::Add,
                    SimdOp::Sub,
                    SimdOp::Avrg,
                    SimdOp::AbsDiff,
                    SimdOp::Min,
                    SimdOp::Max,
                    SimdOp::Set(cmp),
                ][rng.below(7)];
                let elements = |rng: &mut Rng, first: u8| {
                    let is_plain = rng.one_in(2);
                    let select = std::array::from_fn(|i| {
                        if is_plain { first + i as u8 % n } else { rng.below(2 * usize::from(n)) as u8 }
                    });
                    Elements { select, signed: rng.one_in(2) }
                };
                let (a, b) = (elements(&mut rng, 0), elements(&mut rng, n));
                let all = (1 << n) - 1;
                let mask = if yes(&mut rng) { all } else { 1 + rng.below(usize::from(all)) as u8 };
                let (sat, accumulate) = [(false, false), (true, false), (false, true)][rng.below(3)];
                Pure::VideoSimd(VideoSimd { op, n, signed: yes(&mut rng), a, b, mask, sat, accumulate })
            }
        });
    }
    ops
}

/// Compares ops on all compiled ways; of each kind of sources, some constants.
fn compare(ops: &[Pure], hows: &[How], seed: u64) {
    compare_on(ops, hows, seed, &data);
}

/// The same on sources of one's own, by seed.
fn compare_on(ops: &[Pure], hows: &[How], seed: u64, data: &dyn Fn(u64) -> Vec<u64>) {
    let word = std::env::var("HANDLOOM_VALUE_OPS").unwrap_or_default();
    let ops: Vec<Pure> =
        ops.iter().copied().filter(|op| matches!(&word[..], "" | "all") || op.to_string().contains(&word)).collect();
    let mut wrong = Vec::new();
    for how in hows {
        let ops: Vec<Pure> = ops
            .iter()
            .copied()
            .filter(|op| match how {
                How::Constant(k) => *k < op.sources().len() && op.sources().len() > 1,
                How::Constants => op.sources().len() > 1,
                _ => true,
            })
            .collect();
        for (n, chunk) in ops.chunks(CHUNK).enumerate() {
            for way in ways().filter(|w| *w != INTERP && w.name.contains("exact")) {
                if let Err(why) = run(way, chunk, *how, seed + n as u64, &data(seed + n as u64)) {
                    wrong.push(format!("{}: {why}", way.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} chunks:\n{}", wrong.len(), ops.len().div_ceil(CHUNK), wrong.join("\n"));
}

/// What wide code leaves to the runtime, which takes ten to a hundred times as long: the beginnings of the names of these ops.
const FOR_THE_ROUTINE: [&str; 9] = [
    "add_carry.b16",
    "sub_borrow.b16",
    "add_sat.u",
    "add_sat.s16",
    "add_sat.s64",
    "sub_sat.u",
    "sub_sat.s16",
    "sub_sat.s64",
    "fns",
];

#[test]
fn few_ops_are_for_the_routine() {
    let all = [integer_ops(), float_ops(), video_ops(), conversions(), packed_conversions()].concat();
    for op in all {
        let name = op.to_string();
        // Of 16 bits, whose results are looked up.
        let is_function = ["tanh.", "ex2."].iter().any(|start| name.starts_with(start)) && !name.ends_with(".f32");
        let is_left = is_function || FOR_THE_ROUTINE.iter().any(|start| name.starts_with(start));
        assert_eq!(is_for_routine(op), is_left, "{name}");
    }
}

const HOWS: [How; 3] = [How::Varying, How::Uniform, How::Masked];

#[test]
fn integers() {
    compare(&integer_ops(), &HOWS, 1);
}

#[test]
fn integers_with_constants() {
    let ops = integer_ops();
    for seed in 0..4 {
        compare(&ops, &[How::Constant(0), How::Constant(1), How::Constant(2), How::Constants], 100 * seed);
    }
}

#[test]
fn floats() {
    let ops = float_ops();
    compare(&ops, &HOWS, 2);
    compare(&ops, &[How::Constant(0), How::Constant(1)], 3);
}

#[test]
fn some_conversions() {
    let all = conversions();
    let ops: Vec<Pure> =
        if std::env::var_os("HANDLOOM_VALUE_OPS").is_some() { all } else { all.into_iter().step_by(5).collect() };
    compare(&ops, &HOWS, 4);
}

#[test]
fn conversions_of_packed_types() {
    let ops = packed_conversions();
    compare(&ops, &HOWS, 5);
    compare(&ops, &[How::Constant(0), How::Constant(1), How::Constants], 6);
}

#[test]
fn video_instructions() {
    let ops = video_ops();
    compare(&ops, &HOWS, 7);
    compare(&ops, &[How::Constant(0), How::Constant(1), How::Constant(2), How::Constants], 8);
}

/// Functions whose code is a polynomial, of far more numbers than other ops are asked about, among them many of ordinary size.
#[test]
fn functions_of_many_numbers() {
    let gross = FMode { ty: Float::F64, round: Rounding::Nearest, ftz: true, sat: false, relu: false };
    let mut ops = vec![Pure::FRcp { mode: gross, exact: Exactness::Approx }, Pure::FRsqrt(gross)];
    for ftz in BOTH {
        ops.push(Pure::FRsqrt(FMode { ty: Float::F32, ftz, ..gross }));
        ops.extend([Pure::Ex2 { ty: Float::F32, ftz }, Pure::Lg2 { ftz }, Pure::Sin { ftz }, Pure::Cos { ftz }]);
    }
    // Both words are of all sizes, from what rounds away to what overflows.
    let ordinary = |seed| {
        let mut rng = Rng::new(seed);
        let sizes = [1.0, 10.0, 200.0, 1e6, 1e-6];
        let mut float = || {
            let x = rng.next() as u32 as f32 / u32::MAX as f32 * rng.pick(&sizes);
            u64::from((if rng.one_in(2) { -x } else { x }).to_bits())
        };
        (0..SOURCES * ALL).map(|_| float() << 32 | float()).collect()
    };
    for seed in 0..40 {
        compare_on(&ops, &[How::Varying, How::Masked], 1000 + 10 * seed, &ordinary);
    }
}

/// Quotients at whole numbers and next to them, by divisors that are the same in all lanes.
#[test]
fn quotients_near_whole_numbers() {
    let ops: Vec<Pure> = INTS.into_iter().flat_map(|int| [Pure::Div(int), Pure::Rem(int)]).collect();
    let near = |seed: u64| {
        // As `run` draws its constants: the second one is the divisor.
        let mut rng = Rng::new(seed ^ 0x55);
        let constant = [bits(&mut rng), bits(&mut rng)][1];
        let divisors: Vec<u64> = (0..ALL).map(|_| bits(&mut rng)).collect();
        let of = |i: usize| match i / ALL {
            0 => {
                // A multiple of a divisor at its own width, or what is next to it.
                let by = if i < BLOCKS && seed.is_multiple_of(2) { divisors[i] } else { constant };
                let mask = [Ty::B16, Ty::B32, Ty::B64].map(|ty| ty.mask())[i % 3];
                let by = (by & mask).max(1);
                (mask / by * by)
                    .wrapping_sub(by.wrapping_mul(i as u64 / 9))
                    .wrapping_add(i as u64 / 3 % 3)
                    .wrapping_sub(1)
            }
            1 => divisors[i % ALL],
            _ => 0,
        };
        (0..SOURCES * ALL).map(of).collect()
    };
    for seed in 0..40 {
        compare_on(&ops, &[How::Constant(1), How::Uniform], 1000 * seed, &near);
    }
}

/// Quotients of 64 bits at whole numbers and next to them, of numbers that `.f64` holds as they are and of those where that ends.
#[test]
fn quotients_of_words_that_are_small() {
    let ops: Vec<Pure> = [Int::U64, Int::S64].into_iter().flat_map(|int| [Pure::Div(int), Pure::Rem(int)]).collect();
    const END: u64 = 1 << 53;
    let small = |seed: u64| {
        let mut rng = Rng::new(seed ^ 0x77);
        let mut pairs = Vec::new();
        for i in 0..ALL {
            let by = ((rng.next() % END) >> (rng.next() % 53)).max(1);
            let whole = (rng.next() % (END / by).max(1)) >> (rng.next() % 20);
            let near = (whole * by).wrapping_add(i as u64 % 3).wrapping_sub(1);
            let turn = |x: u64| if rng.next().is_multiple_of(4) && seed % 4 == 1 { x.wrapping_neg() } else { x };
            let mut pair = [near, by].map(turn);
            // The last ones, the first ones that are too large, and zero, in few lanes: all eight of a vector go by lanes then.
            if seed % 4 >= 2 && i % 11 == 3 {
                pair[i % 2] = [END - 1, END, END + 1, 0, END.wrapping_neg(), (END + 1).wrapping_neg()][i / 22 % 6];
            }
            pairs.push(pair);
        }
        let of = |i: usize| if i < 2 * ALL { pairs[i % ALL][i / ALL] } else { 0 };
        (0..SOURCES * ALL).map(of).collect()
    };
    for seed in 0..40 {
        compare_on(&ops, &[How::Varying, How::Masked], 1000 * seed, &small);
    }
}

/// How far `1 / sqrt(x)` is from the middle between two numbers of 24 bits, relative to itself, for `x` from 2^23 to 2^25.
fn from_the_middle(x: u64) -> f64 {
    let root = 1.0 / (x as f64).sqrt();
    // So many bits behind the point are 24 in all.
    let places = if root >= 2f64.powi(-12) { 35 } else { 36 };
    let middle = 2 * (root * 2f64.powi(places)) as u128 + 1;
    // Its square times x would be this power of two if the root lay there.
    let one: u128 = 1 << (2 * (places + 1));
    (middle * middle * u128::from(x)).abs_diff(one) as f64 / one as f64 / 2.0
}

/// Inverse roots that lie next to the middle between two results are rounded to the right one: no other is nearer.
#[test]
fn inverse_roots_near_the_middle() {
    let all = (1u64 << 23..1 << 24).flat_map(|x| [x, 2 * x]);
    let mut nearest: Vec<(f64, u64)> =
        all.map(|x| (from_the_middle(x), x)).filter(|(off, _)| *off < 2f64.powi(-41)).collect();
    nearest.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(nearest.len() >= 100 && nearest[0].0 > 2f64.powf(-51.8), "{:?}", nearest[0]);
    let modes = BOTH.map(|ftz| FMode { ty: Float::F32, round: Rounding::Nearest, ftz, sat: false, relu: false });
    let hard = |seed: u64| {
        let of = |i: usize| {
            let x = nearest[i % nearest.len()].1 as f32;
            // A power of four leaves the digits as they are.
            u64::from((x * 4f32.powi((i / nearest.len()) as i32 - seed as i32)).to_bits())
        };
        (0..SOURCES * ALL).map(of).collect()
    };
    for seed in 0..4 {
        compare_on(&modes.map(Pure::FRsqrt), &[How::Varying], 20 * seed, &hard);
    }
}

/// Polynomials of code are nearer to the functions of the host than an eighth of what is allowed for them.
#[test]
fn polynomials_are_near() {
    let sum = |list: &[f64], x: f64| list.iter().rev().fold(0.0, |sum: f64, c| sum.mul_add(x, *c));
    let near = |found: f64, want: f64| (found - want).abs() <= want.abs() * AWAY / 8.0;
    for i in -1000..=1000 {
        let f = f64::from(i) / 2000.0;
        assert!(near(sum(&powers(), f), f.exp2()), "2^{f}");
        let m = f.exp2();
        let s = (m - 1.0) / (m + 1.0);
        assert!(near(s * sum(&logarithms(), s * s), m.log2()), "log2 {m}");
        let r = f * std::f64::consts::FRAC_PI_2;
        assert!(near(r * sum(&circular(1), r * r), r.sin()), "sin {r}");
        assert!(near(sum(&circular(0), r * r), r.cos()), "cos {r}");
        let r = f * std::f64::consts::LN_2;
        assert!(near(r * sum(&exponentials(), r), r.exp_m1()), "e^{r} - 1");
    }
}
