//! Warp-synchronising ops: their values, and who waits for whom.

use crate::common::*;
use handloom_interp::Status;
use handloom_ir::simt::*;
use handloom_ir::trap::TrapKind;
use handloom_ir::types::*;
use smallvec::smallvec;

const MODES: [ShflMode; 4] = [ShflMode::Up, ShflMode::Down, ShflMode::Bfly, ShflMode::Idx];

/// The manual's text of `shfl.sync`, with all numbers signed.
fn reference_source(mode: ShflMode, lane: i32, b: i32, c: i32) -> (i32, bool) {
    let bval = b & 0x1f;
    let cval = c & 0x1f;
    let segmask = (c >> 8) & 0x1f;
    let max_lane = (lane & segmask) | (cval & !segmask);
    let min_lane = lane & segmask;
    let (j, pval) = match mode {
        ShflMode::Up => (lane - bval, lane - bval >= max_lane),
        ShflMode::Down => (lane + bval, lane + bval <= max_lane),
        ShflMode::Bfly => (lane ^ bval, (lane ^ bval) <= max_lane),
        ShflMode::Idx => {
            let j = min_lane | (bval & !segmask);
            (j, j <= max_lane)
        }
    };
    if pval { (j, true) } else { (lane, false) }
}

#[test]
fn shfl_reads_the_lane_that_the_manual_names() {
    for mode in MODES {
        for lane in 0..32 {
            for b in 0..40 {
                for c in 0..0x2000 {
                    let expected = reference_source(mode, lane as i32, b as i32, c as i32);
                    let (j, p) = mode.source(lane, b, c);
                    assert_eq!((j as i32, p), expected, "{mode:?} lane {lane} b {b} c {c:#x}");
                }
            }
        }
    }
}

#[test]
fn shfl_of_all_lanes() {
    for mode in MODES {
        for (distance, c) in [(1, 0x1f), (3, 0x1f), (1, 0), (2, 0x181f), (5, 0x1c03), (9, 0x1800)] {
            let mut f = entry(1);
            let mut b = at(&mut f, 0);
            let tid = b.tid();
            let value = b.add(tid, imm32(100));
            let args = [value, imm32(distance), imm32(c), imm32(u64::MAX)];
            let (v, p) = b.op2(Op::Shfl(mode), [Ty::B32, Ty::P], &args);
            end(&mut f, 0, Term::Exit);
            // The op ends its block; the stores stand in the next one.
            f.blocks.push(Block { insts: vec![], term: Term::Exit, term_span: line(1001) });
            end(&mut f, 0, jump(1));
            let mut b = at(&mut f, 1);
            b.out(tid, v);
            let index = b.add(tid, imm32(32));
            let bit = b.bit(p);
            b.out(index, bit);
            let got = words(f, 32, 64);
            for lane in 0..32 {
                let (j, p) = reference_source(mode, lane as i32, distance as i32, c as i32);
                assert_eq!(got[lane], 100 + j as u32, "{mode:?} {distance} {c:#x} lane {lane}");
                assert_eq!(got[32 + lane], u32::from(p), "{mode:?} {distance} {c:#x} lane {lane}");
            }
        }
    }
}

/// A kernel that applies a warp-synchronising op to `tid` in all lanes and stores the first result at `tid`, the second
/// at `32 + tid`.
fn apply(op: Op, types: &[Ty], src: impl FnOnce(&mut Builder<'_>, Val) -> Vec<Val>) -> Function {
    let mut f = entry(2);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let src = src(&mut b, tid);
    let dst: Vec<Reg> = types.iter().map(|t| b.reg(*t)).collect();
    b.push(op, dst.clone().into(), src.into());
    end(&mut f, 0, jump(1));
    let mut b = at(&mut f, 1);
    for (i, (d, ty)) in dst.into_iter().zip(types).enumerate() {
        let v = if *ty == Ty::P { b.bit(Val::Reg(d)) } else { Val::Reg(d) };
        let index = b.add(tid, imm32(i as u64 * 32));
        b.out(index, v);
    }
    f
}

#[test]
fn votes() {
    let below = |n: u64| move |b: &mut Builder<'_>, tid: Val| vec![b.less(tid, n), imm32(u64::MAX)];
    let vote = |mode, n| words(apply(Op::Vote(mode), &[Ty::P], below(n)), 32, 32);
    assert_eq!(vote(VoteMode::All, 32), [1; 32]);
    assert_eq!(vote(VoteMode::All, 31), [0; 32]);
    assert_eq!(vote(VoteMode::Any, 1), [1; 32]);
    assert_eq!(vote(VoteMode::Any, 0), [0; 32]);
    assert_eq!(vote(VoteMode::Uni, 0), [1; 32]);
    assert_eq!(vote(VoteMode::Uni, 32), [1; 32]);
    assert_eq!(vote(VoteMode::Uni, 5), [0; 32]);
    assert_eq!(words(apply(Op::Vote(VoteMode::Ballot), &[Ty::B32], below(5)), 32, 32), [31; 32]);
}

#[test]
fn matches_and_reductions() {
    let third = |b: &mut Builder<'_>, tid: Val| {
        let r = b.pure(Pure::Rem(Int::U32), Ty::B32, &[tid, imm32(3)]);
        vec![r, imm32(u64::MAX)]
    };
    let got = words(apply(Op::Match { ty: Ty::B32, all: false }, &[Ty::B32], third), 32, 32);
    let group = |r: u32| (0..32).filter(|l| l % 3 == r).fold(0, |m, l| m | 1 << l);
    assert_eq!(got, (0..32).map(|l| group(l % 3)).collect::<Vec<u32>>());
    let all = Op::Match { ty: Ty::B32, all: true };
    let got = words(apply(all, &[Ty::B32, Ty::P], third), 32, 64);
    assert_eq!(got, [0; 64]);
    let got = words(apply(all, &[Ty::B32, Ty::P], |_, _| vec![imm32(7), imm32(u64::MAX)]), 32, 64);
    assert_eq!(got[..32], [u32::MAX; 32]);
    assert_eq!(got[32..], [1; 32]);

    let values: Vec<u32> = (0..32_u32).map(|l| l.wrapping_mul(0x1357_9bdf) ^ 0x8000_0001).collect();
    let redux = |op, signed| {
        let f = apply(Op::Redux { op, signed }, &[Ty::B32], |b, tid| {
            let v = b.pure(Pure::Mul(Ty::B32), Ty::B32, &[tid, imm32(0x1357_9bdf)]);
            vec![b.xor(v, imm32(0x8000_0001)), imm32(u64::MAX)]
        });
        words(f, 32, 1)[0]
    };
    assert_eq!(redux(AtomOp::And, false), values.iter().fold(u32::MAX, |x, y| x & y));
    assert_eq!(redux(AtomOp::Or, false), values.iter().fold(0, |x, y| x | y));
    assert_eq!(redux(AtomOp::Xor, false), values.iter().fold(0, |x, y| x ^ y));
    assert_eq!(redux(AtomOp::Add, false), values.iter().fold(0, |x, y| y.wrapping_add(x)));
    assert_eq!(redux(AtomOp::Min, false), *values.iter().min().unwrap());
    assert_eq!(redux(AtomOp::Max, false), *values.iter().max().unwrap());
    assert_eq!(redux(AtomOp::Min, true), values.iter().map(|v| *v as i32).min().unwrap() as u32);
    assert_eq!(redux(AtomOp::Max, true), values.iter().map(|v| *v as i32).max().unwrap() as u32);
}

#[test]
fn election_takes_the_lowest_lane_that_takes_part() {
    // Lanes 0 to 3 have ended.
    let mut f = entry(3);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let gone = b.less(tid, 4);
    end(&mut f, 0, branch(gone, 2, 1));
    f.blocks.push(Block { insts: vec![], term: Term::Exit, term_span: line(1003) });
    let mut b = at(&mut f, 1);
    let (leader, am) = b.op2(Op::Elect, [Ty::B32, Ty::P], &[imm32(0xffff_ffff)]);
    end(&mut f, 1, jump(3));
    let mut b = at(&mut f, 3);
    b.out(tid, leader);
    let index = b.add(tid, imm32(32));
    let bit = b.bit(am);
    b.out(index, bit);
    let got = words(f, 32, 64);
    assert_eq!(got[4..32], [4; 28]);
    assert_eq!(got[36], 1);
    assert_eq!(got[37..], [0; 27]);
}

/// Lanes below 16 run block 1, the others block 2; each arm does `op` with its mask; all store in block 3.
fn two_arms(masks: [u64; 2]) -> Function {
    let mut f = entry(4);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let low = b.less(tid, 16);
    let value = b.add(tid, imm32(100));
    let (d, p) = (b.reg(Ty::B32), b.reg(Ty::P));
    end(&mut f, 0, branch(low, 1, 2));
    for (arm, mask) in [1, 2].into_iter().zip(masks) {
        let mut b = at(&mut f, arm);
        b.push(Op::Shfl(ShflMode::Bfly), smallvec![d, p], smallvec![value, imm32(8), imm32(0x1f), imm32(mask)]);
        end(&mut f, arm, jump(3));
    }
    let mut b = at(&mut f, 3);
    b.out(tid, Val::Reg(d));
    let mask = b.op(Op::Activemask, Ty::B32, &[]);
    let index = b.add(tid, imm32(32));
    b.out(index, mask);
    f
}

#[test]
fn halves_of_a_warp_shuffle_on_their_own() {
    let got = words(two_arms([0xffff, 0xffff_0000]), 32, 64);
    assert_eq!(got[..32], (0..32).map(|l| 100 + (l ^ 8)).collect::<Vec<u32>>());
    assert_eq!(got[32..], [u32::MAX; 32], "they meet again");
}

#[test]
fn lanes_at_different_instructions_shuffle_together() {
    let got = words(two_arms([0xffff_ffff; 2]), 32, 64);
    assert_eq!(got[..32], (0..32).map(|l| 100 + (l ^ 8)).collect::<Vec<u32>>());
}

#[test]
fn lanes_that_name_each_other_with_different_masks_wait_for_ever() {
    let t = trap(two_arms([0xffff_ffff, 0xffff_0001]), 32);
    assert_eq!(t.kind, TrapKind::Deadlock);
    let whats: Vec<(&str, u32)> = t.waiters.iter().map(|w| (w.what.as_str(), w.count)).collect();
    assert_eq!(whats, [("lanes 0xffffffff", 16), ("lanes 0xffff0001", 16)]);
    assert_eq!((t.span, t.waiters[1].span, t.waiters[1].thread), (line(1), line(2), [16, 0, 0]));
}

#[test]
fn a_mask_that_names_lanes_which_end_later_is_met_then() {
    // The upper half does not name the lower one, goes on and ends; the lower half named it and is then let go.
    let got = words(two_arms([0xffff_ffff, 0xffff_0000]), 32, 16);
    assert_eq!(got, (0..16).map(|l| 100 + (l ^ 8)).collect::<Vec<u32>>());
}

#[test]
fn a_lane_reads_its_own_value_where_the_source_takes_no_part() {
    // Lanes 8 to 15 and 24 to 31 have ended; the others read across.
    let mut f = entry(4);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let bit3 = b.and(tid, imm32(8));
    let gone = b.same(bit3, 8);
    end(&mut f, 0, branch(gone, 3, 1));
    let mut b = at(&mut f, 1);
    let args = [tid, imm32(8), imm32(0x1f), imm32(0xffff_ffff)];
    let (v, _) = b.op2(Op::Shfl(ShflMode::Bfly), [Ty::B32, Ty::P], &args);
    end(&mut f, 1, jump(2));
    let mut b = at(&mut f, 2);
    b.out(tid, v);
    let got = words(f, 32, 32);
    let expected: Vec<u32> = (0..32).map(|l| if l & 8 == 0 { l } else { 0 }).collect();
    assert_eq!(got, expected);
}

#[test]
fn a_lane_may_use_a_mask_that_does_not_name_it() {
    // Choice: the behaviour is undefined; nobody hangs, the lane takes part.
    let f = apply(Op::Vote(VoteMode::Ballot), &[Ty::B32], |b, tid| vec![b.less(tid, 32), imm32(0x00ff_ffff)]);
    assert_eq!(words(f, 32, 32), [u32::MAX; 32]);
}

#[test]
fn bar_warp_orders_lanes() {
    // Lane 0 stores late; the others wait for it at the warp barrier and read.
    let mut f = entry(4);
    let word = Access::weak(StateSpace::Shared, 32);
    let cell = Addr { base: imm32(0), offset: 16 };
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let zero = b.same(tid, 0);
    end(&mut f, 0, branch(zero, 1, 2));
    let mut b = at(&mut f, 1);
    b.store(word, cell, &[imm32(42)]);
    end(&mut f, 1, jump(2));
    let mut b = at(&mut f, 2);
    b.push(Op::BarWarp, smallvec![], smallvec![imm32(u64::MAX)]);
    end(&mut f, 2, jump(3));
    let mut b = at(&mut f, 3);
    let v = b.load(word, cell)[0];
    b.out(tid, v);
    assert_eq!(words(f, 32, 32), [42; 32]);
}

#[test]
fn exits_let_waiting_lanes_go_on() {
    // Lane 31 ends in a later block, after the others have come to the vote.
    let mut f = entry(4);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let last = b.same(tid, 31);
    end(&mut f, 0, branch(last, 3, 1));
    let mut b = at(&mut f, 1);
    let p = b.less(tid, 64);
    let ballot = b.op(Op::Vote(VoteMode::Ballot), Ty::B32, &[p, imm32(u64::MAX)]);
    end(&mut f, 1, jump(2));
    let mut b = at(&mut f, 2);
    b.out(tid, ballot);
    let module = module(vec![f]);
    let (status, mem) = drive(&module, env([32, 1, 1]));
    assert_eq!(status, Status::Done);
    assert_eq!(mem.words(OUT, 32)[..31], [0x7fff_ffff; 31]);
}
