//! `wgmma.mma_async` as products of `mma`: each warp of a warpgroup computes 16 of the 64 rows, as blocks of eight columns. It loads what it needs of `a` in
//! shared memory as a fragment of `mma`, and all of `b` by units of 16 bytes, each of them once.
//!
//! Choice: it is done at once. A program must not look at results, nor write what is multiplied, before it waits, so that it cannot tell. Where results may
//! be late, all of it is done later.
//!
//! # PTX ISA
//! Register Fragments and Shared Memory Matrix Layouts.

use handloom_ir::simt::tile::Major;
use handloom_ir::simt::{Access, Addr, Blocks, Element, HeldB, MatrixOp, Op, Product, Pure, Step, Val};
use handloom_ir::types::{Int, Sreg, StateSpace, Ty};
use smallvec::smallvec;

use super::tile::Tile;
use crate::form::*;
use crate::matrix::ldmatrix::{group_and_lane, times, warp_op};
use crate::matrix::product::{of_instruction, selector};
use crate::matrix::shape::mnk;

/// Operands after the matrices, the metadata and the selector.
struct Immediates {
    scale_d: Val,
    /// Products are subtracted.
    is_negative: bool,
    /// How `a` and `b` lie.
    majors: [Major; 2],
}

impl Immediates {
    fn of<const IN_REGISTERS: bool>(x: &Cx<'_, '_>, first: usize) -> Immediates {
        // What the destination holds comes last.
        let n = x.args.len() - 1 - first;
        let is = |i: usize, bits: u64| i < n && x.src(first + i) == Val::Imm(bits, Ty::B32);
        let (trans_a, trans_b) = if IN_REGISTERS { (n, 3) } else { (3, 4) };
        let major = |i: usize| if is(i, 1) { Major::Mn } else { Major::K };
        Immediates {
            scale_d: x.src(first),
            is_negative: is(1, 0xffff_ffff) != is(2, 0xffff_ffff),
            majors: [major(trans_a), major(trans_b)],
        }
    }
}

/// `wgmma.mma_async`, and `wgmma.mma_async.sp`.
pub(super) fn product<const IN_REGISTERS: bool, const IS_SPARSE: bool>(x: &mut Cx<'_, '_>) {
    let (_, n, _) = mnk(x.u.text(Role::Shape));
    let more = if IS_SPARSE { 2 } else { 0 };
    let options = Immediates::of::<IN_REGISTERS>(x, 2 + more);
    let sparse = if IS_SPARSE { Some(selector(x, 3)) } else { None };
    let metadata = if IS_SPARSE { x.srcs(2) } else { vec![] };
    let p = of_instruction(x.u);
    let step = if p.a == Element::B1 { Step::AndPopc } else { p.step };
    let p = Product { m: 16, sparse, step, ..p };
    let mut a = if IN_REGISTERS { x.srcs(0) } else { fragment_of_a(x, p, options.majors[0]) };
    if options.is_negative {
        let signs = Val::Imm(signs(p.a), Ty::B32);
        a = a.into_iter().map(|word| x.b.xor(word, signs)).collect();
    }
    let blocks = Blocks {
        product: p,
        count: u8::try_from(n / 8).expect("bug: more than 256 columns"),
        times: 1,
        b: if options.majors[1] == Major::K { HeldB::Columns } else { HeldB::Depths },
    };
    let b = units_of_b(x, blocks, options.majors[1]);
    let c = x.srcs(x.args.len() - 1);
    let keep = match options.scale_d {
        Val::Imm(keep, _) => word(u32::from(keep != 0)),
        Val::Reg(_) => x.b.select(options.scale_d, word(1), word(0)),
    };
    let src = [&a[..], &b, &c, &[keep], &metadata].concat();
    let sums = warp_op(x, MatrixOp::Blocks(blocks), src);
    sums.into_iter().enumerate().for_each(|(i, v)| x.set_at(0, i, v));
}

fn word(n: u32) -> Val {
    Val::Imm(n.into(), Ty::B32)
}

/// All of `b`, as [`HeldB`] says: each lane loads whole units.
fn units_of_b(x: &mut Cx<'_, '_>, blocks: Blocks, major: Major) -> Vec<Val> {
    let descriptor = x.src(1);
    let tile = Tile::new(x, descriptor, major);
    let lane = x.b.reg(Ty::B32);
    x.b.push(Op::Sreg(Sreg::Laneid), smallvec![lane], smallvec![]);
    let line = x.b.and(Val::Reg(lane), word(7));
    let line = tile.line(x, line);
    // Which of the four units that eight lanes have each, as a number of depths and of blocks.
    let eight = x.b.pure(Pure::Shr(Int::U32), Ty::B32, &[Val::Reg(lane), word(3)]);
    let depths = blocks.product.depth_registers() as u32;
    let depth = x.b.and(eight, word(depths - 1));
    let block = x.b.pure(Pure::Shr(Int::U32), Ty::B32, &[eight, word(depths.trailing_zeros())]);
    let (along, across) = match major {
        Major::K => (tile.unit(x, depth), tile.eights(x, block)),
        Major::Mn => (tile.eights(x, depth), tile.unit(x, block)),
    };
    let first = x.b.add(line, along);
    let both = x.b.add(first, across);
    let (count, at_once) = (u32::from(blocks.count), 4 / depths);
    let mut words = Vec::new();
    for block in (0..count).step_by(at_once as usize) {
        // Lanes that have no block load those of the first one again.
        let own = if block + at_once <= count { both } else { first };
        let across = match major {
            Major::K => tile.eights(x, word(block)),
            Major::Mn => tile.unit(x, word(block)),
        };
        let base = tile.address(x, &[across, own]);
        let access = Access { is_async: true, ..Access::weak_vector(StateSpace::Shared, 32, 4) };
        words.extend(x.b.load(access, Addr { base, offset: 0 }));
    }
    words
}

/// The signs of the floats in a register.
fn signs(e: Element) -> u64 {
    (0..e.per_register()).fold(0, |signs, i| signs | 1 << ((i as u32 + 1) * e.bits() - 1))
}

/// Of `a`. Registers of a fragment hold neighbouring elements along the depth: in a matrix whose lines go another way, these lie apart.
struct Fragments {
    tile: Tile,
    major: Major,
    /// What a lane adds: for the whole word, or for each of its two elements.
    own: Vec<Val>,
    /// What it adds for each register of eight rows or columns.
    depths: Vec<Val>,
}

impl Fragments {
    fn new(x: &mut Cx<'_, '_>, descriptor: Val, major: Major, depths: usize, (g, t): (Val, Val)) -> Fragments {
        let tile = Tile::new(x, descriptor, major);
        let own = match major {
            Major::K => {
                let (line, byte) = (tile.line(x, g), times(x, t, 4));
                vec![x.b.add(line, byte)]
            }
            Major::Mn => {
                let (first, byte) = (times(x, t, 2), times(x, g, 2));
                let lines = [0, 1].map(|e| x.b.add(first, Val::Imm(e, Ty::B32)));
                lines
                    .into_iter()
                    .map(|line| {
                        let line = tile.line(x, line);
                        x.b.add(line, byte)
                    })
                    .collect()
            }
        };
        // A register is 16 bytes of the depth of all lanes, or eight depths.
        let depths = (0..depths as u64).map(|q| match major {
            Major::K => tile.unit(x, Val::Imm(q, Ty::B32)),
            Major::Mn => tile.eights(x, Val::Imm(q, Ty::B32)),
        });
        let depths = depths.collect();
        Fragments { tile, major, own, depths }
    }

    /// How far so many times eight rows or columns are.
    fn across(&self, x: &mut Cx<'_, '_>, n: Val) -> Val {
        match self.major {
            Major::K => self.tile.eights(x, n),
            Major::Mn => self.tile.unit(x, n),
        }
    }

    fn register(&self, x: &mut Cx<'_, '_>, across: Val, q: usize) -> Val {
        let both = x.b.add(across, self.depths[q]);
        let bits = if self.own.len() == 1 { 32 } else { 16 };
        let parts: Vec<Val> = self
            .own
            .iter()
            .map(|own| {
                let base = self.tile.address(x, &[both, *own]);
                x.b.load(access(bits), Addr { base, offset: 0 })[0]
            })
            .collect();
        if let [low, high] = parts[..] { x.b.pack(low, high) } else { parts[0] }
    }
}

/// The fragment of the warp's 16 rows of `a`, from shared memory.
fn fragment_of_a(x: &mut Cx<'_, '_>, p: Product, major: Major) -> Vec<Val> {
    let n = p.registers()[0] / 2;
    let descriptor = x.src(0);
    let lane = group_and_lane(x);
    let fragments = Fragments::new(x, descriptor, major, n, lane);
    let warp = x.b.reg(Ty::B32);
    x.b.push(Op::Sreg(Sreg::Warpid), smallvec![warp], smallvec![]);
    let warp = x.b.and(Val::Reg(warp), Val::Imm(3, Ty::B32));
    let first = x.b.add(warp, warp);
    let rows = [0, 1].map(|h| {
        let eights = x.b.add(first, Val::Imm(h, Ty::B32));
        fragments.across(x, eights)
    });
    (0..n).flat_map(|q| rows.map(|across| (across, q))).map(|(across, q)| fragments.register(x, across, q)).collect()
}

fn access(bits: u8) -> Access {
    Access { is_async: true, ..Access::weak(StateSpace::Shared, bits) }
}
