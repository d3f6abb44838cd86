//! Every warp-level op in all engines against its one definition, `interp::warp::complete`: by whole warps, by warps of which part has exited, and by
//! ctas whose last warp is not whole; with sources that vary, that are the same for all and that are constants.

use handloom_interp::warp::complete;
use handloom_ir::simt::{
    Access, Addr, Addresses, BlockId, Inst, Lines, MatrixOp, Module as Ir, Op, Pure, Reg, Term, Val,
};
use handloom_ir::types::{AtomOp, Cmp, Int, ShflMode, StateSpace, Ty, VoteMode};
use handloom_tests::engines::ways;
use handloom_tests::kernel::{self, SPAN, bits};
use handloom_tests::rng::Rng;

/// How many threads stand where.
#[derive(Clone, Copy, Debug)]
struct Shape {
    threads: usize,
    /// Threads of this number modulo 7 exit before the op; none for 7.
    gone: usize,
    /// The membermask comes from memory.
    read_members: bool,
}

/// An op with the types of its sources before the membermask and of its results, and constants that sources may be.
#[derive(Clone, Debug)]
struct Case {
    op: Op,
    src: Vec<Ty>,
    dst: Vec<Ty>,
    constants: Vec<Option<u64>>,
}

fn case(op: Op, src: &[Ty], dst: &[Ty]) -> Case {
    Case { op, src: src.to_vec(), dst: dst.to_vec(), constants: vec![None; src.len()] }
}

const BLOCKS: usize = 3;
const MOST: usize = 5;

fn kernel_of(c: &Case, shape: Shape) -> Ir {
    let all = BLOCKS * shape.threads;
    let mut func = kernel::function(4);
    func.blocks[0].term = Term::Jump(BlockId(1));
    func.blocks[1].term = Term::Jump(BlockId(2));
    let mut b = kernel::builder(&mut func);
    let start = kernel::start(&mut b, shape.threads);
    let word = |b: &mut handloom_ir::simt::Builder<'_>, base, i: usize| {
        b.load(Access::weak(StateSpace::Global, 64), Addr { base, offset: (8 * all * i) as i64 })[0]
    };
    let mut src = Vec::new();
    for (i, (ty, constant)) in c.src.iter().zip(&c.constants).enumerate() {
        let value = match constant {
            Some(x) => Val::Imm(x & ty.mask(), *ty),
            None => {
                let word = word(&mut b, start.sources, i);
                kernel::of_type(&mut b, word, *ty)
            }
        };
        src.push(value);
    }
    src.push(if shape.read_members {
        let word = word(&mut b, start.sources_of_cta, MOST);
        kernel::of_type(&mut b, word, Ty::B32)
    } else {
        Val::Imm(0xffff_ffff, Ty::B32)
    });
    if shape.gone < 7 {
        let (seven, gone) = (b.imm(7, Ty::B32), b.imm(shape.gone as u64, Ty::B32));
        let rest = b.pure(Pure::Rem(Int::U32), Ty::B32, &[start.tid, seven]);
        let cond = b.pure(Pure::ICmp(Cmp::Ne, Int::U32), Ty::P, &[rest, gone]);
        b.func.blocks[0].term = Term::Branch { cond, then: BlockId(1), otherwise: BlockId(3) };
    }
    let dst: Vec<Reg> = c.dst.iter().map(|ty| b.reg(*ty)).collect();
    b.func.blocks[1].insts.push(Inst {
        op: c.op,
        dst: dst.clone().into(),
        src: src.into(),
        guarded: false,
        span: SPAN,
    });
    b.block = BlockId(2);
    for (k, r) in dst.into_iter().enumerate() {
        kernel::put(&mut b, Addr { base: start.results, offset: (8 * all * k) as i64 }, r);
    }
    kernel::module(func)
}

fn check(c: &Case, shape: Shape, rng: &mut Rng) -> Result<(), String> {
    let all = BLOCKS * shape.threads;
    // Few different values, so that some match.
    let few: Vec<u64> = (0..3).map(|_| bits(rng)).collect();
    let mut data: Vec<u64> = (0..MOST * all).map(|_| if rng.one_in(3) { bits(rng) } else { *rng.pick(&few) }).collect();
    // Sometimes all are the same.
    if rng.one_in(4) {
        data[..all].fill(few[0]);
    }
    data.resize((MOST + 1) * all, 0xffff_ffff);
    for way in ways().filter(|w| !w.name.contains("contained")) {
        let empty = vec![0; c.dst.len().max(1) * all];
        let found = kernel::run(way, kernel_of(c, shape), &data, &empty, (BLOCKS, shape.threads))
            .map_err(|why| format!("{c:?} {shape:?} {}: {why}", way.name))?;
        for warp in 0..BLOCKS * shape.threads.div_ceil(32) {
            let per_cta = shape.threads.div_ceil(32);
            let first = warp / per_cta * shape.threads;
            let thread = |lane: usize| warp % per_cta * 32 + lane;
            let is_live = |lane: usize| thread(lane) < shape.threads && thread(lane) % 7 != shape.gone;
            let active = (0..32).filter(|l| is_live(*l)).fold(0, |m, l| m | 1u32 << l);
            let mut src = vec![[0u64; 32]; c.src.len()];
            for (i, (row, ty)) in src.iter_mut().zip(&c.src).enumerate() {
                for (l, v) in row.iter_mut().enumerate().filter(|(l, _)| is_live(*l)) {
                    *v = c.constants[i].unwrap_or(data[i * all + first.min(all) + thread(l)]) & ty.mask();
                }
            }
            let mut dst = vec![[0u64; 32]; c.dst.len()];
            complete(c.op, active, &src, &mut dst);
            for (k, (row, ty)) in dst.iter().zip(&c.dst).enumerate() {
                for (l, want) in row.iter().enumerate().filter(|(l, _)| is_live(*l)) {
                    let (got, want) = (found[k * all + first + thread(l)], want & ty.mask());
                    if got != want {
                        return Err(format!(
                            "{c:?} {shape:?} {}: result {k} of lane {l} of warp {warp} is {got:#x}, not {want:#x}",
                            way.name
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}

fn compare(cases: &[Case], seed: u64) {
    let mut rng = Rng::new(seed);
    let mut wrong = Vec::new();
    for c in cases {
        for (threads, gone, read_members) in
            [(64, 7, false), (64, 3, false), (64, 2, true), (45, 7, false), (40, 0, true)]
        {
            wrong.extend(check(c, Shape { threads, gone, read_members }, &mut rng).err());
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn shuffles() {
    let mut cases = Vec::new();
    let segments = [(1, 0x1f), (31, 0x1f), (16, 0x1f), (2, 0x1c03), (5, 0x100f), (0, 0), (9, 0x1800), (3, 0x0807)];
    for mode in [ShflMode::Up, ShflMode::Down, ShflMode::Bfly, ShflMode::Idx] {
        for (b, c) in segments {
            for (b, c) in [(Some(b), Some(c)), (None, Some(c))] {
                // The mode `.up` has its clamp at the other end.
                let c = c.map(|c| if mode == ShflMode::Up { c & !0x1f } else { c });
                let constants = vec![None, b, c];
                cases.push(Case { constants, ..case(Op::Shfl(mode), &[Ty::B32; 3], &[Ty::B32, Ty::P]) });
            }
        }
        cases.push(case(Op::Shfl(mode), &[Ty::B32; 3], &[Ty::B32, Ty::P]));
        cases.push(Case {
            constants: vec![Some(7), None, None],
            ..case(Op::Shfl(mode), &[Ty::B32; 3], &[Ty::B32, Ty::P])
        });
    }
    compare(&cases, 1);
}

#[test]
fn votes_and_matches() {
    let mut cases: Vec<Case> = [VoteMode::All, VoteMode::Any, VoteMode::Uni]
        .into_iter()
        .flat_map(|mode| {
            let c = case(Op::Vote(mode), &[Ty::P], &[Ty::P]);
            [None, Some(0), Some(1)].map(|constant| Case { constants: vec![constant], ..c.clone() })
        })
        .collect();
    cases.push(case(Op::Vote(VoteMode::Ballot), &[Ty::P], &[Ty::B32]));
    for ty in [Ty::B32, Ty::B64] {
        cases.push(case(Op::Match { ty, all: false }, &[ty], &[Ty::B32]));
        cases.push(case(Op::Match { ty, all: true }, &[ty], &[Ty::B32, Ty::P]));
    }
    cases.push(case(Op::Elect, &[], &[Ty::B32, Ty::P]));
    cases.push(case(Op::BarWarp, &[], &[]));
    for seed in 0..4 {
        compare(&cases, seed);
    }
}

#[test]
fn reductions() {
    let ops = [AtomOp::And, AtomOp::Or, AtomOp::Xor, AtomOp::Add, AtomOp::Min, AtomOp::Max];
    let all = ops.into_iter().flat_map(|op| [false, true].map(|signed| Op::Redux { op, signed }));
    let cases: Vec<Case> = all.map(|op| case(op, &[Ty::B32], &[Ty::B32])).collect();
    for seed in 0..4 {
        compare(&cases, seed);
    }
}

#[test]
fn exchanges_of_matrices() {
    let mut cases = vec![case(Op::Matrix(MatrixOp::Transpose), &[Ty::B32], &[Ty::B32])];
    for (ty, count, lines) in [
        (Ty::B32, 1, Lines::One),
        (Ty::B32, 2, Lines::Two),
        (Ty::B32, 4, Lines::One),
        (Ty::B32, 4, Lines::Two),
        (Ty::B32, 1, Lines::Four),
        (Ty::B64, 1, Lines::Two),
        (Ty::B64, 2, Lines::One),
        (Ty::B64, 4, Lines::Two),
        (Ty::B64, 4, Lines::One),
        (Ty::B64, 2, Lines::Four),
    ] {
        let op = MatrixOp::Addresses(Addresses { ty, count, lines });
        cases.push(case(Op::Matrix(op), &[ty], &op.results()));
    }
    compare(&cases, 9);
}
