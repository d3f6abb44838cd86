//! Arithmetic, divergence and reconvergence, budgets, yields, special registers.

use crate::common::*;
use handloom_interp::{Cta, Status};
use handloom_ir::simt::*;
use handloom_ir::types::*;

#[test]
fn arithmetic_over_a_three_dimensional_cta() {
    let mut f = entry(1);
    let mut b = at(&mut f, 0);
    let [x, y, z] = [0, 1, 2].map(|i| b.sreg(Sreg::Tid(i)));
    let yz = b.pure(Pure::Mul(Ty::B32), Ty::B32, &[z, imm32(5)]);
    let yz = b.add(yz, y);
    let row = b.pure(Pure::Mul(Ty::B32), Ty::B32, &[yz, imm32(7)]);
    let linear = b.add(row, x);
    let warp = b.sreg(Sreg::Warpid);
    let lane = b.sreg(Sreg::Laneid);
    let high = b.pure(Pure::Shl(Ty::B32), Ty::B32, &[warp, imm32(8)]);
    let value = b.or(high, lane);
    b.out(linear, value);
    let module = module(vec![f]);
    let (status, mem) = drive(&module, env([7, 5, 2]));
    assert_eq!(status, Status::Done);
    let expected: Vec<u32> = (0..70).map(|t| ((t / 32) << 8) | (t % 32)).collect();
    assert_eq!(mem.words(OUT, 70), expected);
}

#[test]
fn lanes_meet_again_behind_a_branch() {
    // 0: odd lanes to 1, even lanes to 2; both go to 3. Each place records who runs it together.
    let mut f = entry(4);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let odd = b.and(tid, imm32(1));
    let is_odd = b.same(odd, 1);
    end(&mut f, 0, branch(is_odd, 1, 2));
    for arm in [1, 2] {
        let mut b = at(&mut f, arm);
        let mask = b.op(Op::Activemask, Ty::B32, &[]);
        b.out(tid, mask);
        end(&mut f, arm, jump(3));
    }
    let mut b = at(&mut f, 3);
    let mask = b.op(Op::Activemask, Ty::B32, &[]);
    let index = b.add(tid, imm32(64));
    b.out(index, mask);
    let got = words(f, 48, 64 + 48);
    for (t, arm) in got[..32].iter().enumerate() {
        assert_eq!(*arm, if t % 2 == 1 { 0xaaaa_aaaa } else { 0x5555_5555 });
    }
    assert_eq!(got[32], 0x5555, "the last warp has 16 lanes");
    assert_eq!(got[64..96], [u32::MAX; 32]);
    assert_eq!(got[96..], [0xffff; 16]);
}

#[test]
fn loops_of_different_length_end_together() {
    // Lane t turns t times; behind the loop all 32 are together again.
    let mut f = entry(3);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let i = b.reg(Ty::B32);
    b.copy(i, imm32(0));
    end(&mut f, 0, jump(1));
    let mut b = at(&mut f, 1);
    let more = b.pure(Pure::ICmp(Cmp::Lt, Int::U32), Ty::P, &[Val::Reg(i), tid]);
    let next = b.add(Val::Reg(i), imm32(1));
    let next = b.select(more, next, Val::Reg(i));
    b.copy(i, next);
    end(&mut f, 1, branch(more, 1, 2));
    let mut b = at(&mut f, 2);
    let mask = b.op(Op::Activemask, Ty::B32, &[]);
    let sum = b.xor(mask, Val::Reg(i));
    b.out(tid, sum);
    let expected: Vec<u32> = (0..32).map(|t| u32::MAX ^ t).collect();
    assert_eq!(words(f, 32, 32), expected);
}

/// Each thread takes a lock, adds one to a plain counter, and gives the lock back.
fn spin_lock_kernel() -> Function {
    let mut f = entry(4);
    let word = Access::weak(StateSpace::Global, 32);
    let lock = Addr { base: imm64(OUT + 4), offset: 0 };
    let count = Addr { base: imm64(OUT), offset: 0 };
    end(&mut f, 0, jump(1));
    let mut b = at(&mut f, 1);
    let cas = atomic(AtomOp::Cas, ScalarType::B32, StateSpace::Global);
    let old = b.op(Op::Atom { access: cas, offset: 0 }, Ty::B32, &[lock.base, imm32(0), imm32(1)]);
    let taken = b.same(old, 0);
    // The critical section stands behind the loop in block order, the back edge is a yield point.
    end(&mut f, 1, branch(taken, 3, 2));
    end(&mut f, 2, Term::Yield { next: BlockId(1) });
    let mut b = at(&mut f, 3);
    let old = b.load(word, count)[0];
    let new = b.add(old, imm32(1));
    b.store(word, count, &[new]);
    b.store(word, lock, &[imm32(0)]);
    f
}

#[test]
fn lanes_of_a_warp_take_turns_with_a_spin_lock() {
    assert_eq!(words(spin_lock_kernel(), 96, 2), [96, 0]);
}

#[test]
fn a_lock_that_nobody_gives_back_changes_nothing() {
    let module = module(vec![spin_lock_kernel()]);
    let env = env([40, 1, 1]);
    let mut mem = memory(&env);
    mem.put(OUT + 4, &[1]);
    let mut cta = Cta::new(&module, FuncId(0), env);
    assert_eq!(cta.run(&mut mem, u64::MAX), Status::Waiting { changed: true });
    assert_eq!(cta.run(&mut mem, u64::MAX), Status::Waiting { changed: false });
    assert_eq!(cta.run(&mut mem, u64::MAX), Status::Waiting { changed: false });
    let waiters = cta.waiters();
    assert_eq!(waiters.len(), 2);
    assert_eq!((waiters[0].count, waiters[0].what.as_str(), waiters[0].span), (32, "memory", line(1002)));
    assert_eq!((waiters[1].count, waiters[1].thread), (8, [32, 0, 0]));
    // Somebody outside gives it back.
    mem.put(OUT + 4, &[0]);
    while cta.run(&mut mem, u64::MAX) != Status::Done {}
    assert_eq!(mem.words(OUT, 1), [40]);
}

#[test]
fn a_bounded_wait_is_no_standstill() {
    // Turns ten times at a yield point, looking at a flag that nobody sets, then gives up.
    let mut f = entry(4);
    let mut b = at(&mut f, 0);
    let i = b.reg(Ty::B32);
    b.copy(i, imm32(0));
    end(&mut f, 0, jump(1));
    let mut b = at(&mut f, 1);
    let next = b.add(Val::Reg(i), imm32(1));
    b.copy(i, next);
    let more = b.less(Val::Reg(i), 10);
    end(&mut f, 1, branch(more, 2, 3));
    end(&mut f, 2, Term::Yield { next: BlockId(1) });
    let mut b = at(&mut f, 3);
    b.out(imm32(0), Val::Reg(i));
    assert_eq!(words(f, 1, 1), [10]);
}

#[test]
fn a_budget_stops_an_endless_loop_and_the_rest_goes_on() {
    let mut f = entry(2);
    end(&mut f, 0, jump(0));
    let module = module(vec![f]);
    let env = env([32, 1, 1]);
    let mut mem = memory(&env);
    let mut cta = Cta::new(&module, FuncId(0), env);
    assert_eq!(cta.run(&mut mem, 1000), Status::Budget);
    assert_eq!(cta.run(&mut mem, 1000), Status::Budget);
    assert_eq!(cta.instructions(), 2048, "a block of all lanes at a time");
}

#[test]
fn another_warp_has_its_turn_beside_an_endless_loop() {
    // Warp 1 turns until warp 0 has stored, without a yield point.
    let mut f = entry(4);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let first = b.less(tid, 32);
    end(&mut f, 0, branch(first, 3, 1));
    let mut b = at(&mut f, 1);
    let flag = b.load(Access::weak(StateSpace::Global, 32), Addr { base: imm64(OUT), offset: 0 })[0];
    let set = b.same(flag, 7);
    end(&mut f, 1, branch(set, 2, 1));
    let mut b = at(&mut f, 3);
    b.out(imm32(0), imm32(7));
    assert_eq!(words(f, 64, 1), [7]);
}

#[test]
fn a_switch_goes_where_its_index_says() {
    let mut f = entry(4);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    end(&mut f, 0, Term::Switch { index: tid, targets: vec![BlockId(3), BlockId(1), BlockId(2)] });
    for arm in 1..=3 {
        let mut b = at(&mut f, arm);
        b.out(tid, imm32(u64::from(arm)));
    }
    assert_eq!(words(f.clone(), 3, 3), [3, 1, 2]);
    let trap = trap(f, 6);
    assert_eq!(trap.kind, handloom_ir::trap::TrapKind::BadCall);
    assert_eq!((trap.thread, trap.other_lanes), ([3, 0, 0], 0b11_0000));
    assert_eq!(trap.detail, "index 3 of a branch with 3 targets");
}

#[test]
fn special_registers() {
    let list = [
        Sreg::Ntid(0),
        Sreg::Ntid(3),
        Sreg::Ctaid(0),
        Sreg::Ctaid(1),
        Sreg::Nctaid(0),
        Sreg::Laneid,
        Sreg::Nwarpid,
        Sreg::Smid,
        Sreg::Nsmid,
        Sreg::LanemaskEq,
        Sreg::LanemaskLe,
        Sreg::LanemaskLt,
        Sreg::LanemaskGe,
        Sreg::LanemaskGt,
        Sreg::DynamicSmemSize,
        Sreg::TotalSmemSize,
        Sreg::Envreg(3),
        Sreg::Clusterid(0),
        Sreg::Nclusterid(0),
        Sreg::ClusterCtaid(0),
        Sreg::ClusterCtarank,
        Sreg::ClusterNctarank,
    ];
    let mut f = entry(1);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    for (i, s) in list.iter().enumerate() {
        let v = b.sreg(*s);
        // Only thread 33, lane 1 of warp 1, writes.
        b.guard = Some(b.same(tid, 33));
        b.out(imm32(i as u64), v);
        b.guard = None;
    }
    let module = module(vec![f]);
    let mut env = env([40, 1, 1]);
    env.ctaid = [5, 1, 0];
    env.nctaid = [8, 2, 1];
    env.shared_size = 200;
    env.dynamic_shared = 72;
    env.envregs[3] = 99;
    env.cluster.nctaid = [4, 2, 1];
    env.cluster.explicit = true;
    let (status, mem) = drive(&module, env);
    assert_eq!(status, Status::Done);
    let expected = [40, 0, 5, 1, 8, 1, 2, 1, 4, 2, 3, 1, !1, !3, 72, 256, 99, 1, 2, 1, 5, 8];
    assert_eq!(mem.words(OUT, list.len()), expected);
}

#[test]
fn clocks_go_on() {
    let mut f = entry(1);
    let mut b = at(&mut f, 0);
    let before = b.op(Op::Sreg(Sreg::Clock64), Ty::B64, &[]);
    let time = b.op(Op::Sreg(Sreg::Globaltimer), Ty::B64, &[]);
    let after = b.op(Op::Sreg(Sreg::Clock64), Ty::B64, &[]);
    let later = b.op(Op::Sreg(Sreg::Globaltimer), Ty::B64, &[]);
    for (i, (x, y)) in [(before, after), (time, later)].into_iter().enumerate() {
        let p = b.pure(Pure::ICmp(Cmp::Lt, Int::U64), Ty::P, &[x, y]);
        let v = b.bit(p);
        b.out(imm32(i as u64), v);
    }
    assert_eq!(words(f, 1, 2), [1, 1]);
}
