//! Loads, stores and atomics: values, checks, traps with their lanes.

use crate::common::*;
use handloom_interp::Status;
use handloom_interp::atom::atom_value;
use handloom_ir::simt::*;
use handloom_ir::trap::{AccessKind, Trap, TrapKind};
use handloom_ir::types::*;
use smallvec::smallvec;

#[test]
fn narrow_loads_are_zero_extended_and_narrow_stores_cut() {
    let mut f = entry(1);
    let mut b = at(&mut f, 0);
    let base = Addr { base: imm64(OUT), offset: 64 };
    b.store(Access::weak(StateSpace::Global, 64), base, &[imm64(0x8877_6655_f3f2_f1f0)]);
    b.store(Access::weak(StateSpace::Global, 8), Addr { offset: 65, ..base }, &[Val::Imm(0x12ab, Ty::B16)]);
    for (i, bits) in [8, 16, 32].into_iter().enumerate() {
        let v = b.load(Access::weak(StateSpace::Global, bits), base)[0];
        let v = b.ext(v, if bits == 32 { 32 } else { 16 }, false, Ty::B32);
        b.out(imm32(i as u64), v);
    }
    assert_eq!(words(f, 1, 3), [0xf0, 0xabf0, 0xf3f2_abf0]);
}

#[test]
fn sinks_are_not_read_but_the_whole_is_aligned() {
    // Four words of which only 0 and 1 are taken: the others lie behind the end of memory.
    let access = |elements| Access { count: 4, elements, ..Access::weak(StateSpace::Global, 32) };
    let end_of_out = OUT + OUT_SIZE as u64;
    let read = |addr: u64, elements| {
        let mut f = entry(1);
        let mut b = at(&mut f, 0);
        let v = b.load(access(elements), Addr { base: imm64(addr), offset: 0 });
        b.out(imm32(0), v[0]);
        drive(&module(vec![f]), env([1, 1, 1])).0
    };
    assert_eq!(read(end_of_out - 16, 0b1111), Status::Done);
    let kind = |status| match status {
        Status::Trap(trap) => (trap.kind, trap.address, trap.bytes),
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(read(end_of_out - 8, 0b0011)).0, TrapKind::Misaligned);
    assert_eq!(kind(read(end_of_out, 0b0001)), (TrapKind::OutOfBounds, Some(end_of_out), 16));
    // Memory whose end is no multiple of 16.
    let mut f = entry(1);
    let mut b = at(&mut f, 0);
    let v = b.load(access(0b0011), Addr { base: imm64(0x50_0010), offset: 0 });
    b.out(imm32(0), v[1]);
    let mut mem = memory(&env([1, 1, 1]));
    mem.add(0x50_0000, 24, StateSpace::Global, true);
    mem.put(0x50_0014, &[5]);
    let module = module(vec![f]);
    let mut cta = handloom_interp::Cta::new(&module, FuncId(0), env([1, 1, 1]));
    assert_eq!(cta.run(&mut mem, u64::MAX), Status::Done);
    assert_eq!(mem.words(OUT, 1), [5]);
}

/// Lanes 4 and 5 and 9 of 12 access `bad`, the others `OUT`.
fn some_bad(bad: u64, act: impl FnOnce(&mut Builder<'_>, Val)) -> Trap {
    let mut f = entry(1);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let mut p = b.same(tid, 9);
    for t in [4, 5] {
        let q = b.same(tid, t);
        p = b.or(p, q);
    }
    let addr = b.select(p, imm64(bad), imm64(OUT));
    b.span = line(77);
    act(&mut b, addr);
    let t = trap(f, 12);
    assert_eq!((t.span, t.thread, t.other_lanes), (line(77), [4, 0, 0], 1 << 5 | 1 << 9));
    t
}

#[test]
fn traps_name_the_lanes_the_address_and_the_access() {
    let load = |access| move |b: &mut Builder<'_>, base| drop(b.load(access, Addr { base, offset: 0 }));
    let store = |access| move |b: &mut Builder<'_>, base| b.store(access, Addr { base, offset: 0 }, &[imm32(1)]);
    let global = Access::weak(StateSpace::Global, 32);
    let t = some_bad(0x40, load(global));
    assert_eq!((t.kind, t.address, t.bytes), (TrapKind::OutOfBounds, Some(0x40), 4));
    assert_eq!((t.access, t.space), (Some(AccessKind::Read), Some(StateSpace::Global)));
    let t = some_bad(OUT + 2, store(global));
    assert_eq!((t.kind, t.access), (TrapKind::Misaligned, Some(AccessKind::Write)));
    let generic = Access::weak(StateSpace::Generic, 32);
    assert_eq!(some_bad(CONST, store(generic)).kind, TrapKind::WriteProtected);
    assert_eq!(some_bad(PARAM, store(generic)).kind, TrapKind::WriteProtected);
    let strong = Access { order: Order::Relaxed, scope: Scope::Gpu, ..generic };
    assert_eq!(some_bad(CONST, load(strong)).kind, TrapKind::BadSpace);
    assert_eq!(some_bad(LOCAL, load(strong)).kind, TrapKind::BadSpace);
    let mmio = Access { order: Order::Mmio, ..generic };
    let t = some_bad(SHARED, load(mmio));
    assert_eq!((t.kind, t.detail.as_str()), (TrapKind::BadSpace, "the address lies in `.shared`"));
    let add = atomic(AtomOp::Add, ScalarType::U32, StateSpace::Generic);
    let atom = |b: &mut Builder<'_>, base| {
        b.op(Op::Atom { access: add, offset: 0 }, Ty::B32, &[base, imm32(1)]);
    };
    let t = some_bad(CONST + 4, atom);
    assert_eq!((t.kind, t.access), (TrapKind::BadSpace, Some(AccessKind::Atomic)));
    assert_eq!(some_bad(LOCAL, atom).kind, TrapKind::BadSpace);
    assert_eq!(some_bad(0, atom).kind, TrapKind::OutOfBounds);
}

#[test]
fn volatile_loads_may_reach_local_memory() {
    let mut f = entry(1);
    let mut b = at(&mut f, 0);
    let access = Access { order: Order::Volatile, ..Access::weak(StateSpace::Generic, 32) };
    let v = b.load(access, Addr { base: imm64(LOCAL), offset: 0 })[0];
    b.out(imm32(0), v);
    assert_eq!(words(f, 1, 1), [0]);
}

#[test]
fn a_guard_switches_lanes_off() {
    // Lanes from 4 on have a bad address and a false guard, and keep the old value.
    let mut f = entry(1);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let good = b.less(tid, 4);
    let base = b.select(good, imm64(OUT + 400), imm64(3));
    let d = b.reg(Ty::B32);
    b.copy(d, imm32(55));
    let access = Access::weak(StateSpace::Global, 32);
    b.push_inst_guarded(Op::Load { access, offset: 0 }, vec![d], vec![base], good);
    b.out(tid, Val::Reg(d));
    assert_eq!(words(f, 8, 8), [0, 0, 0, 0, 55, 55, 55, 55]);
}

/// Pushes with a guard into given registers.
trait PushGuarded {
    fn push_inst_guarded(&mut self, op: Op, dst: Vec<Reg>, src: Vec<Val>, guard: Val);
}

impl PushGuarded for Builder<'_> {
    fn push_inst_guarded(&mut self, op: Op, dst: Vec<Reg>, src: Vec<Val>, guard: Val) {
        self.guard = Some(guard);
        self.push_guarded(op, dst.into(), src.into());
        self.guard = None;
    }
}

#[test]
fn shared_and_local_memory_end_where_they_end() {
    let shared = |offset: u64| {
        let mut f = entry(1);
        let mut b = at(&mut f, 0);
        b.store(Access::weak(StateSpace::Shared, 32), Addr { base: imm32(offset), offset: 4 }, &[imm32(1)]);
        drive(&module(vec![f]), env([1, 1, 1])).0
    };
    assert_eq!(shared(u64::from(SHARED_SIZE) - 8), Status::Done);
    assert_eq!(shared(0xffff_fffc), Status::Done, "32-bit offsets wrap");
    let Status::Trap(t) = shared(u64::from(SHARED_SIZE) - 4) else { panic!("no trap") };
    assert_eq!((t.kind, t.address), (TrapKind::OutOfBounds, Some(u64::from(SHARED_SIZE))));
    // Thread 1 reaches into the local memory of thread 0.
    let mut f = entry(1);
    let mut b = at(&mut f, 0);
    b.load(Access::weak(StateSpace::Local, 32), Addr { base: imm64(LOCAL), offset: 0 });
    let t = trap(f, 2);
    assert_eq!((t.kind, t.thread), (TrapKind::OutOfBounds, [1, 0, 0]));
}

#[test]
fn addresses_of_spaces() {
    let mut f = entry(1);
    let mut b = at(&mut f, 0);
    let cvta = |to_space| Op::Cvta { space: StateSpace::Shared, to_space };
    let generic = b.op(cvta(false), Ty::B64, &[imm64(0x24)]);
    let back = b.op(cvta(true), Ty::B64, &[generic]);
    for (i, v) in [generic, back].into_iter().enumerate() {
        let low = b.half(v, false);
        b.out(imm32(i as u64), low);
    }
    let mut i = 2;
    for space in [StateSpace::Global, StateSpace::Shared, StateSpace::Local, StateSpace::Const] {
        for addr in [OUT, generic_of(SHARED), LOCAL, CONST, 0] {
            let p = b.op(Op::IsSpace(space), Ty::P, &[imm64(addr)]);
            let v = b.bit(p);
            b.out(imm32(i), v);
            i += 1;
        }
    }
    let got = words(f, 1, 22);
    assert_eq!(got[..2], [SHARED as u32 + 0x24, 0x24]);
    assert_eq!(got[2..], [1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0]);
}

/// An address in shared memory.
fn generic_of(base: u64) -> u64 {
    base + 8
}

#[test]
fn cluster_offsets_name_the_shared_memory_of_others() {
    const PEER: u64 = 0x60_0000;
    let mut f = entry(1);
    let mut b = at(&mut f, 0);
    let access = Access::weak(StateSpace::SharedCluster, 32);
    // This is rank 1; rank 0 is the peer.
    let addresses = [8, 0x10_0000 + 8, 0x20_0000 + 8];
    for (i, a) in addresses.into_iter().enumerate() {
        b.store(access, Addr { base: imm32(a), offset: 0 }, &[imm32(10 + i as u64)]);
    }
    let space = StateSpace::SharedCluster;
    let to = b.op(Op::Cvta { space, to_space: true }, Ty::B64, &[imm64(PEER + 16)]);
    let from = b.op(Op::Cvta { space, to_space: false }, Ty::B64, &[to]);
    for (i, v) in [to, from].into_iter().enumerate() {
        let v = b.half(v, false);
        b.out(imm32(i as u64), v);
    }
    let mut env = env([1, 1, 1]);
    env.cluster.nctaid = [2, 1, 1];
    env.ctaid = [1, 0, 0];
    env.cluster.shared_bases = vec![PEER, SHARED];
    let mut mem = memory(&env);
    mem.add(PEER, SHARED_SIZE as usize, StateSpace::Shared, true);
    let module = module(vec![f]);
    let mut cta = handloom_interp::Cta::new(&module, FuncId(0), env);
    assert_eq!(cta.run(&mut mem, u64::MAX), Status::Done);
    assert_eq!(mem.words(SHARED + 8, 1), [12]);
    assert_eq!(mem.words(PEER + 8, 1), [11]);
    assert_eq!(mem.words(OUT, 2), [0x10_0010, PEER as u32 + 16]);
}

#[test]
fn atomics_of_a_whole_cta_add_up() {
    let mut f = entry(1);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    let add = atomic(AtomOp::Add, ScalarType::U32, StateSpace::Global);
    let old = b.op(Op::Atom { access: add, offset: 0 }, Ty::B32, &[imm64(OUT), imm32(3)]);
    let index = b.add(tid, imm32(1));
    b.out(index, old);
    b.push(
        Op::Red { access: AtomAccess { op: AtomOp::Max, ..add }, offset: 512 },
        smallvec![],
        smallvec![imm64(OUT), tid],
    );
    let got = words(f, 100, 129);
    assert_eq!(got[0], 300);
    assert_eq!(got[1..101], (0..100).map(|t| 3 * t).collect::<Vec<u32>>());
    assert_eq!(got[128], 99);
}

#[test]
fn vector_and_128_bit_atomics() {
    let mut f = entry(1);
    let mut b = at(&mut f, 0);
    let pair = AtomAccess { count: 2, ..atomic(AtomOp::Add, ScalarType::F32, StateSpace::Global) };
    let one = |v: f32| imm32(u64::from(v.to_bits()));
    for _ in 0..2 {
        let d = [b.reg(Ty::B32), b.reg(Ty::B32)];
        b.push(Op::Atom { access: pair, offset: 8 }, d[..].into(), smallvec![imm64(OUT), one(1.5), one(-2.0)]);
        b.out(imm32(0), Val::Reg(d[0]));
        b.out(imm32(1), Val::Reg(d[1]));
    }
    let wide = atomic(AtomOp::Cas, ScalarType::B128, StateSpace::Global);
    let d = [b.reg(Ty::B64), b.reg(Ty::B64)];
    let src = |words: [u64; 4]| [vec![imm64(OUT + 32)], words.map(imm64).to_vec()].concat().into();
    b.push(Op::Atom { access: wide, offset: 0 }, d[..].into(), src([0, 0, 7, 8]));
    b.push(Op::Atom { access: wide, offset: 0 }, d[..].into(), src([7, 0, 1, 1]));
    let exch = AtomAccess { op: AtomOp::Exch, ..wide };
    b.push(Op::Atom { access: exch, offset: 16 }, d[..].into(), smallvec![imm64(OUT + 32), imm64(5), imm64(6)]);
    let got = words(f, 1, 16);
    assert_eq!(got[..4].iter().map(|v| f32::from_bits(*v)).collect::<Vec<_>>(), [1.5, -2.0, 3.0, -4.0]);
    assert_eq!(got[8..], [7, 0, 8, 0, 5, 0, 6, 0]);
}

#[test]
fn f32_sums_flush_in_global_memory_only() {
    // A generic address counts as the space that it falls into.
    let tiny = 1_u64;
    let sum = |space, base: Val| {
        let mut f = entry(1);
        let mut b = at(&mut f, 0);
        let add = atomic(AtomOp::Add, ScalarType::F32, space);
        b.push(Op::Red { access: add, offset: 0 }, smallvec![], smallvec![base, imm32(tiny)]);
        let from = Access::weak(space, 32);
        let v = b.load(from, Addr { base, offset: 0 })[0];
        b.out(imm32(9), v);
        words(f, 1, 10)[9]
    };
    assert_eq!(sum(StateSpace::Global, imm64(OUT)), 0);
    assert_eq!(sum(StateSpace::Generic, imm64(OUT)), 0);
    assert_eq!(sum(StateSpace::Shared, imm32(0)), 1);
    assert_eq!(sum(StateSpace::Generic, imm64(SHARED)), 1);
}

#[test]
fn new_values_of_atomics() {
    use AtomOp::*;
    use ScalarType as T;
    let v = |op, ty, old: u64, a: u64, b: u64| atom_value(op, ty, false, old, a, b);
    assert_eq!(v(Add, T::U32, 0xffff_ffff, 2, 0), 1);
    assert_eq!(v(Add, T::U64, u64::MAX, 2, 0), 1);
    assert_eq!(v(And, T::B32, 0b1100, 0b1010, 0), 0b1000);
    assert_eq!(v(Or, T::B64, 0b1100, 0b1010, 0), 0b1110);
    assert_eq!(v(Xor, T::B32, 0b1100, 0b1010, 0), 0b0110);
    assert_eq!(v(Exch, T::B32, 1, 0x1_0000_0002, 0), 2);
    assert_eq!(v(Cas, T::B16, 5, 5, 9), 9);
    assert_eq!(v(Cas, T::B16, 5, 6, 9), 5);
    assert_eq!([0, 3, 4, 5].map(|old| v(Inc, T::U32, old, 4, 0)), [1, 4, 0, 0]);
    assert_eq!([0, 3, 4, 5].map(|old| v(Dec, T::U32, old, 4, 0)), [4, 2, 3, 4]);
    let minus = u64::from(-1_i32 as u32);
    assert_eq!((v(Min, T::S32, 1, minus, 0), v(Max, T::S32, 1, minus, 0)), (minus, 1));
    assert_eq!((v(Min, T::U32, 1, minus, 0), v(Max, T::U32, 1, minus, 0)), (1, minus));
    assert_eq!((v(Min, T::S64, 1, u64::MAX, 0), v(Max, T::U64, 1, u64::MAX, 0)), (u64::MAX, u64::MAX));
    let f64_sum = v(Add, T::F64, 0.5_f64.to_bits(), 0.25_f64.to_bits(), 0);
    assert_eq!(f64::from_bits(f64_sum), 0.75);
    // 1.0 + 2.0 = 3.0, and 2.0 + 2.0 = 4.0, in halves.
    assert_eq!(v(Add, T::F16, 0x3c00, 0x4000, 0), 0x4200);
    assert_eq!(v(Add, T::F16x2, 0x3c00_4000, 0x4000_4000, 0), 0x4200_4400);
    assert_eq!(v(Add, T::BF16x2, 0x3f80_4000, 0x4000_4000, 0), 0x4040_4080);
    assert_eq!(v(Min, T::F16, 0x3c00, 0x4000, 0), 0x3c00);
    assert_eq!(v(Max, T::BF16, 0x3f80, 0x4000, 0), 0x4000);
}
