//! Every atomic of one warp in all engines against its one definition, `interp::atom::atom_value`, lane by lane in ascending order: with and without the
//! old values, of all lanes and of some, at addresses of their own, at few addresses and at one, in global and in shared memory.

use handloom_interp::atom::{atom_value, flushes};
use handloom_ir::simt::{Access, Addr, AtomAccess, BlockId, Inst, Module as Ir, Op, Pure, Term, Val};
use handloom_ir::types::{AtomOp, Cmp, Int, Order, ScalarType, Scope, StateSpace, Ty};
use handloom_tests::engines::ways;
use handloom_tests::kernel::{self, SPAN, bits};
use handloom_tests::rng::Rng;

/// Where lanes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Places {
    Own,
    Few,
    One,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    op: AtomOp,
    ty: ScalarType,
    space: StateSpace,
    places: Places,
    wants_old: bool,
    /// Lanes may have a guard of 0.
    guarded: bool,
    /// Part of the warp is elsewhere.
    in_part: bool,
}

const LANES: usize = 32;

/// The word that a lane goes to.
fn place(places: Places, lane: usize) -> usize {
    match places {
        Places::Own => lane,
        Places::Few => lane % 5 * 3,
        Places::One => 2,
    }
}

/// Results: the old values, then the words of memory.
fn kernel_of(c: Case) -> Ir {
    let bytes = (c.ty.bits() / 8) as usize;
    let ty = if bytes == 8 { Ty::B64 } else { Ty::B32 };
    let n = if c.op == AtomOp::Cas { 2 } else { 1 };
    let mut func = kernel::function(4);
    for (b, to) in [(0, 1), (1, 2)] {
        func.blocks[b].term = Term::Jump(BlockId(to));
    }
    let mut b = kernel::builder(&mut func);
    let start = kernel::start(&mut b, LANES);
    let load = |b: &mut handloom_ir::simt::Builder<'_>, i: usize| {
        b.load(Access::weak(StateSpace::Global, 64), Addr { base: start.sources, offset: (8 * LANES * i) as i64 })[0]
    };
    let mut src = Vec::new();
    for i in 0..n {
        let word = load(&mut b, i);
        src.push(kernel::of_type(&mut b, word, ty));
    }
    let guard = load(&mut b, 2);
    let guard = kernel::of_type(&mut b, guard, Ty::P);
    let is_shared = c.space == StateSpace::Shared;
    // In shared memory words lie as in the results, after as many bytes.
    let (width, at) = if is_shared { (Ty::B32, LANES * 8) } else { (Ty::B64, LANES * 8) };
    let own = {
        let size = b.imm(bytes as u64, Ty::B32);
        let by = b.pure(Pure::Mul(Ty::B32), Ty::B32, &[start.tid, size]);
        b.ext(by, 32, false, width)
    };
    let index = match c.places {
        Places::Own => own,
        Places::Few => {
            let [five, three] = [5, 3 * bytes as u64].map(|x| b.imm(x, Ty::B32));
            let lane = b.pure(Pure::Rem(Int::U32), Ty::B32, &[start.tid, five]);
            let by = b.pure(Pure::Mul(Ty::B32), Ty::B32, &[lane, three]);
            b.ext(by, 32, false, width)
        }
        Places::One => b.imm(2 * bytes as u64, width),
    };
    let first = if is_shared {
        b.imm(0, width)
    } else {
        // The first result of the grid.
        let eight = b.imm(8, Ty::B32);
        let by = b.pure(Pure::MulWide(Int::U32), Ty::B64, &[start.index, eight]);
        b.sub(start.results, by)
    };
    let (words, of_lane) = (b.add(first, index), b.add(first, own));
    let offset = at as i64;
    let (bits, result) = ((8 * bytes) as u8, b.reg(ty));
    let word = Access::weak(StateSpace::Global, bits);
    if is_shared {
        // What the words hold before comes with the sources.
        let before = load(&mut b, 3);
        let before = kernel::of_type(&mut b, before, ty);
        b.store(Access::weak(StateSpace::Shared, bits), Addr { base: of_lane, offset }, &[before]);
    }
    b.copy(result, Val::Imm(0, ty));
    if c.in_part {
        let [seven, three] = [7, 3].map(|x| b.imm(x, Ty::B32));
        let rest = b.pure(Pure::Rem(Int::U32), Ty::B32, &[start.tid, seven]);
        let cond = b.pure(Pure::ICmp(Cmp::Ne, Int::U32), Ty::P, &[rest, three]);
        b.func.blocks[0].term = Term::Branch { cond, then: BlockId(1), otherwise: BlockId(2) };
    }
    let (order, scope) = (Order::Relaxed, Scope::Gpu);
    let a = AtomAccess { op: c.op, ty: c.ty, space: c.space, order, scope, count: 1 };
    let (op, dst) = if c.wants_old {
        (Op::Atom { access: a, offset }, vec![result])
    } else {
        (Op::Red { access: a, offset }, vec![])
    };
    let mut operands = vec![words];
    operands.extend(src);
    if c.guarded {
        operands.push(guard);
    }
    b.func.blocks[1].insts.push(Inst { op, dst: dst.into(), src: operands.into(), guarded: c.guarded, span: SPAN });
    b.block = BlockId(2);
    kernel::put(&mut b, Addr { base: start.results, offset: 0 }, result);
    if is_shared {
        let value = b.load(Access::weak(StateSpace::Shared, bits), Addr { base: of_lane, offset })[0];
        let eight = b.imm(8, Ty::B32);
        let by = b.pure(Pure::MulWide(Int::U32), Ty::B64, &[start.index, eight]);
        let out = b.sub(start.results, by);
        let wide = b.ext(own, 32, false, Ty::B64);
        let base = b.add(out, wide);
        b.store(word, Addr { base, offset }, &[value]);
    }
    let mut module = kernel::module(func);
    for entry in module.entries.values_mut() {
        entry.shared_bytes = 2 * (LANES * 8) as u32;
    }
    module
}

fn check(c: Case, rng: &mut Rng) -> Result<(), String> {
    let bytes = (c.ty.bits() / 8) as usize;
    let mask = u64::MAX >> (64 - c.ty.bits());
    let few: Vec<u64> = (0..2).map(|_| bits(rng)).collect();
    // Values that are the same now and then, for `cas`.
    let mut data: Vec<u64> = (0..4 * LANES).map(|_| if rng.one_in(2) { *rng.pick(&few) } else { bits(rng) }).collect();
    data.iter_mut().for_each(|w| *w &= mask);
    let takes_part = |l: usize| !(c.guarded && data[2 * LANES + l] & 1 == 0 || c.in_part && l % 7 == 3);
    let mut memory: Vec<u64> = data[3 * LANES..].to_vec();
    let mut before = vec![0u64; 2 * LANES];
    let raw: Vec<u8> = memory.iter().flat_map(|w| w.to_le_bytes()[..bytes].to_vec()).collect();
    for (word, chunk) in before[LANES..].iter_mut().zip(raw.chunks(8)) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(eight);
    }
    let space = if c.space == StateSpace::Generic { StateSpace::Global } else { c.space };
    let mut old = vec![0; LANES];
    for lane in (0..LANES).filter(|l| takes_part(*l)) {
        let word = &mut memory[place(c.places, lane)];
        if c.wants_old {
            old[lane] = *word;
        }
        *word = atom_value(c.op, c.ty, flushes(c.ty, space), *word, data[lane], data[LANES + lane]);
    }
    // Both settings of bounds for a third of the cases.
    for way in ways().filter(|w| c.places == Places::Few || !w.name.contains("contained")) {
        let found = kernel::run(way, kernel_of(c), &data, &before, (1, LANES))
            .map_err(|why| format!("{c:?} {}: {why}", way.name))?;
        let raw: Vec<u8> = found[LANES..].iter().flat_map(|w| w.to_le_bytes()).collect();
        for lane in 0..LANES {
            let mut eight = [0; 8];
            eight[..bytes].copy_from_slice(&raw[lane * bytes..(lane + 1) * bytes]);
            let word = u64::from_le_bytes(eight);
            if word != memory[lane] || found[lane] != old[lane] {
                return Err(format!(
                    "{c:?} {}: lane {lane}: the word is {word:#x}, not {:#x}; the old value {:#x}, not {:#x}",
                    way.name, memory[lane], found[lane], old[lane]
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn atomics_of_one_warp() {
    use AtomOp::{Add, And, Cas, Dec, Exch, Inc, Max, Min, Or, Xor};
    use ScalarType::{B32, B64, F32, F64, S32, S64, U32, U64};
    let mut kinds: Vec<(AtomOp, ScalarType)> = vec![(Inc, U32), (Dec, U32), (Add, F32), (Add, F64)];
    kinds.extend([And, Or, Xor, Exch, Cas].into_iter().flat_map(|op| [B32, B64].map(|ty| (op, ty))));
    kinds.extend([Min, Max].into_iter().flat_map(|op| [U32, S32, U64, S64].map(|ty| (op, ty))));
    kinds.extend([U32, U64].map(|ty| (Add, ty)));
    let mut rng = Rng::new(1);
    let mut wrong = Vec::new();
    for (op, ty) in kinds {
        for space in [StateSpace::Global, StateSpace::Shared, StateSpace::Generic] {
            for places in [Places::Own, Places::Few, Places::One] {
                for flags in 0..8 {
                    let [wants_old, guarded, in_part] = [1, 2, 4].map(|bit| flags & bit != 0);
                    if !wants_old && matches!(op, Exch | Cas) {
                        continue;
                    }
                    wrong.extend(check(Case { op, ty, space, places, wants_old, guarded, in_part }, &mut rng).err());
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
