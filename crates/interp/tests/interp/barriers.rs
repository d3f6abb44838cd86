//! Barriers of the cta and of the cluster.

use crate::common::*;
use handloom_interp::barrier::{Arrival, Barriers, Misuse};
use handloom_interp::{Cta, Status};
use handloom_ir::simt::*;
use handloom_ir::trap::{Trap, TrapKind};
use handloom_ir::types::*;

const SHARED_WORD: Access = Access::weak(StateSpace::Shared, 32);

/// Shared word `index`.
fn shared(b: &mut Builder<'_>, index: Val) -> Addr {
    let base = b.pure(Pure::Shl(Ty::B32), Ty::B32, &[index, imm32(2)]);
    Addr { base, offset: 0 }
}

#[test]
fn a_cta_reverses_an_array_through_shared_memory() {
    let n = 100;
    let mut f = entry(2);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let cell = shared(&mut b, tid);
    let value = b.add(tid, imm32(1000));
    b.store(SHARED_WORD, cell, &[value]);
    end(&mut f, 0, bar_sync(0, 1));
    let mut b = at(&mut f, 1);
    let other = b.sub(imm32(n - 1), tid);
    let cell = shared(&mut b, other);
    let v = b.load(SHARED_WORD, cell)[0];
    b.out(tid, v);
    let expected: Vec<u32> = (0..n as u32).map(|t| 1000 + n as u32 - 1 - t).collect();
    assert_eq!(words(f, n as u32, n as usize), expected);
}

#[test]
fn threads_that_have_ended_are_not_waited_for() {
    // Every second thread ends before the barrier, and so does all of warp 1.
    let mut f = entry(4);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let odd = b.and(tid, imm32(1));
    let odd = b.same(odd, 1);
    let warp = b.sreg(Sreg::Warpid);
    let second = b.same(warp, 1);
    let gone = b.or(odd, second);
    end(&mut f, 0, branch(gone, 3, 1));
    end(&mut f, 1, bar_sync(5, 2));
    let mut b = at(&mut f, 2);
    b.out(tid, imm32(1));
    let got = words(f, 96, 96);
    for (t, v) in got.iter().enumerate() {
        assert_eq!(*v, u32::from(t % 2 == 0 && t / 32 != 1), "thread {t}");
    }
}

#[test]
fn producers_arrive_and_consumers_wait() {
    // Warp 0 stores and arrives at barrier 1; warp 1 waits there for 64 threads and reads. Warp 0 then waits at barrier
    // 2 for warp 1.
    let mut f = entry(6);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let lane = b.and(tid, imm32(31));
    let producer = b.less(tid, 32);
    end(&mut f, 0, branch(producer, 1, 3));
    let mut b = at(&mut f, 1);
    let cell = shared(&mut b, lane);
    let value = b.add(tid, imm32(500));
    b.store(SHARED_WORD, cell, &[value]);
    end(&mut f, 1, barrier(BarKind::Arrive, 1, Some(64), 2));
    end(&mut f, 2, barrier(BarKind::Sync, 2, Some(64), 5));
    end(&mut f, 3, barrier(BarKind::Sync, 1, Some(64), 4));
    let mut b = at(&mut f, 4);
    let cell = shared(&mut b, lane);
    let v = b.load(SHARED_WORD, cell)[0];
    b.out(lane, v);
    end(&mut f, 4, barrier(BarKind::Arrive, 2, Some(64), 5));
    assert_eq!(words(f, 64, 32), (500..532).collect::<Vec<u32>>());
}

#[test]
fn reductions_at_a_barrier() {
    let n = 70;
    let reduce = |kind, below: u64, ty| {
        let mut f = entry(2);
        let mut b = at(&mut f, 0);
        let tid = b.tid();
        let p = b.less(tid, below);
        let d = b.reg(ty);
        let term = Term::Barrier { kind, id: imm32(3), count: None, pred: Some(p), dst: Some(d), next: BlockId(1) };
        end(&mut f, 0, term);
        let mut b = at(&mut f, 1);
        let v = if ty == Ty::P { b.bit(Val::Reg(d)) } else { Val::Reg(d) };
        b.out(tid, v);
        let got = words(f, n, n as usize);
        assert!(got.iter().all(|v| *v == got[0]));
        got[0]
    };
    assert_eq!(reduce(BarKind::RedPopc, 45, Ty::B32), 45);
    assert_eq!(reduce(BarKind::RedAnd, 69, Ty::P), 0);
    assert_eq!(reduce(BarKind::RedAnd, 70, Ty::P), 1);
    assert_eq!(reduce(BarKind::RedOr, 1, Ty::P), 1);
    assert_eq!(reduce(BarKind::RedOr, 0, Ty::P), 0);
}

#[test]
fn a_barrier_in_a_loop_starts_over() {
    // Each turn a thread reads its neighbour's word and writes it as its own: after 5 turns values have moved by 5.
    let n = 64;
    let mut f = entry(5);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let i = b.reg(Ty::B32);
    let held = b.reg(Ty::B32);
    b.copy(i, imm32(0));
    let own = shared(&mut b, tid);
    b.store(SHARED_WORD, own, &[tid]);
    end(&mut f, 0, bar_sync(0, 1));
    let mut b = at(&mut f, 1);
    let next = b.add(tid, imm32(1));
    let next = b.and(next, imm32(n - 1));
    let cell = shared(&mut b, next);
    let v = b.load(SHARED_WORD, cell)[0];
    b.copy(held, v);
    end(&mut f, 1, bar_sync(0, 2));
    let mut b = at(&mut f, 2);
    b.store(SHARED_WORD, own, &[Val::Reg(held)]);
    let turn = b.add(Val::Reg(i), imm32(1));
    b.copy(i, turn);
    end(&mut f, 2, bar_sync(0, 3));
    let mut b = at(&mut f, 3);
    let more = b.less(Val::Reg(i), 5);
    end(&mut f, 3, branch(more, 1, 4));
    let mut b = at(&mut f, 4);
    b.out(tid, Val::Reg(held));
    let expected: Vec<u32> = (0..n as u32).map(|t| (t + 5) % n as u32).collect();
    assert_eq!(words(f, n as u32, n as usize), expected);
}

#[test]
fn lanes_of_a_warp_may_reach_a_barrier_in_different_places() {
    let mut f = entry(4);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let low = b.less(tid, 7);
    end(&mut f, 0, branch(low, 1, 2));
    end(&mut f, 1, bar_sync(0, 3));
    end(&mut f, 2, bar_sync(0, 3));
    let mut b = at(&mut f, 3);
    let mask = b.op(Op::Activemask, Ty::B32, &[]);
    b.out(tid, mask);
    assert_eq!(words(f, 32, 32), [u32::MAX; 32]);
}

/// Warp 0 ends block 1, the others block 2.
fn two_terms(first: Term, second: Term) -> Function {
    let mut f = entry(4);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let low = b.less(tid, 32);
    end(&mut f, 0, branch(low, 1, 2));
    end(&mut f, 1, first);
    end(&mut f, 2, second);
    f
}

fn misuse(first: Term, second: Term, detail: &str) -> Trap {
    let t = trap(two_terms(first, second), 64);
    assert_eq!((t.kind, t.detail.as_str()), (TrapKind::Barrier, detail));
    t
}

#[test]
fn misuse_traps() {
    let ok = || barrier(BarKind::Sync, 0, Some(64), 3);
    let t = misuse(barrier(BarKind::Sync, 0, Some(40), 3), ok(), "a thread count of 40, which is not a multiple of 32");
    assert_eq!((t.span, t.other_lanes), (line(1001), 0xffff_fffe));
    misuse(barrier(BarKind::Arrive, 0, Some(0), 3), ok(), "a thread count of 0");
    misuse(barrier(BarKind::Sync, 16, None, 3), ok(), "barrier 16 does not exist, the last one is 15");
    let t = misuse(
        barrier(BarKind::Sync, 0, Some(96), 3),
        ok(),
        "barrier 0 with 64 threads, while others wait there for 96",
    );
    assert_eq!((t.span, t.thread), (line(1002), [32, 0, 0]));
    misuse(ok(), barrier(BarKind::RedOr, 0, Some(64), 3), "`red.or` at barrier 0, while others are there with `sync`");
}

#[test]
fn the_count_of_all_threads_is_the_same_as_none() {
    let f = two_terms(barrier(BarKind::Sync, 0, Some(64), 3), bar_sync(0, 3));
    assert_eq!(drive(&module(vec![f]), env([64, 1, 1])).0, Status::Done);
}

#[test]
fn barriers_that_are_never_met_are_a_deadlock() {
    let f = two_terms(bar_sync(0, 3), bar_sync(1, 3));
    let t = trap(f, 96);
    assert_eq!(t.kind, TrapKind::Deadlock);
    let waits: Vec<_> = t.waiters.iter().map(|w| (w.what.as_str(), w.count, w.thread[0], w.span)).collect();
    assert_eq!(
        waits,
        [("barrier 0", 32, 0, line(1001)), ("barrier 1", 32, 32, line(1002)), ("barrier 1", 32, 64, line(1002))]
    );
}

#[test]
fn half_a_warp_at_another_barrier_is_a_deadlock() {
    let mut f = entry(4);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let low = b.less(tid, 16);
    end(&mut f, 0, branch(low, 1, 2));
    end(&mut f, 1, bar_sync(0, 3));
    end(&mut f, 2, bar_sync(1, 3));
    assert_eq!(trap(f, 32).kind, TrapKind::Deadlock);
}

#[test]
fn a_cluster_of_one_waits_for_its_own_threads() {
    let mut f = entry(3);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let cell = shared(&mut b, tid);
    b.store(SHARED_WORD, cell, &[tid]);
    end(&mut f, 0, barrier(BarKind::ClusterArrive, 0, None, 1));
    end(&mut f, 1, barrier(BarKind::ClusterWait, 0, None, 2));
    let mut b = at(&mut f, 2);
    let other = b.sub(imm32(63), tid);
    let cell = shared(&mut b, other);
    let v = b.load(SHARED_WORD, cell)[0];
    b.out(tid, v);
    assert_eq!(words(f, 64, 64), (0..64).rev().collect::<Vec<u32>>());
}

#[test]
fn a_larger_cluster_waits_for_the_runtime() {
    let mut f = entry(3);
    end(&mut f, 0, barrier(BarKind::ClusterArrive, 0, None, 1));
    end(&mut f, 1, barrier(BarKind::ClusterWait, 0, None, 2));
    let module = module(vec![f]);
    let mut env = env([64, 1, 1]);
    env.cluster.nctaid = [2, 1, 1];
    let mut mem = memory(&env);
    let mut cta = Cta::new(&module, FuncId(0), env);
    assert_eq!(cta.run(&mut mem, u64::MAX), Status::Waiting { changed: true });
    assert_eq!(cta.cluster_phases(), 1);
    assert_eq!(cta.run(&mut mem, u64::MAX), Status::Waiting { changed: false });
    cta.set_cluster_phases(1);
    assert_eq!(cta.run(&mut mem, u64::MAX), Status::Done);
    assert_eq!(cta.cluster_phases(), u64::MAX);
}

#[test]
fn a_thread_arrives_once_at_the_cluster_barrier() {
    let mut f = entry(4);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let low = b.less(tid, 4);
    end(&mut f, 0, branch(low, 1, 3));
    end(&mut f, 1, barrier(BarKind::ClusterArrive, 0, None, 2));
    end(&mut f, 2, barrier(BarKind::ClusterArrive, 0, None, 3));
    end(&mut f, 3, bar_sync(0, 3));
    assert_eq!(trap(f, 32).kind, TrapKind::Barrier);
}

#[test]
fn the_state_machine_alone() {
    let mut bars = Barriers::new(&[u32::MAX, u32::MAX, 0xff]);
    let sync = Arrival::Sync;
    // Half a warp arrives: nothing. The rest follows, and only this warp has arrived.
    bars.arrive(0, 0xffff, sync, 2, Some(64), 0).unwrap();
    bars.arrive(2, 0xff, Arrival::Arrive, 2, Some(64), 0).unwrap();
    let released = bars.take_released();
    assert_eq!(released.len(), 1, "lanes that only arrive go on: {released:?}");
    assert_eq!((released[0].warp, released[0].lanes), (2, 0xff));
    bars.exit(0, 0xff00_0000).unwrap();
    assert_eq!(bars.take_released(), []);
    bars.arrive(0, 0x00ff_0000, sync, 2, Some(64), 0).unwrap();
    let released = bars.take_released();
    assert_eq!((released.len(), released[0].warp, released[0].lanes), (1, 0, 0x00ff_ffff));
    // The next phase begins with nothing.
    bars.arrive(1, u32::MAX, sync, 2, Some(32), 0).unwrap();
    assert_eq!(bars.take_released().len(), 1);
    assert_eq!(bars.arrive(1, 1, sync, 99, None, 0), Err(Misuse::NoSuchBarrier { id: 99 }));
}
