//! Calls: frames, recursion, indirect calls, the stack.

use crate::common::*;
use handloom_interp::Status;
use handloom_ir::simt::*;
use handloom_ir::trap::TrapKind;
use handloom_ir::types::*;

const LOCAL32: Access = Access::weak(StateSpace::Local, 32);

fn call(callee: Callee, target: Option<Val>, args: u32, next: u32) -> Term {
    Term::Call { callee, target, signature: (8, 4), args: SlotId(args), next: BlockId(next) }
}

/// Reads the 32-bit argument of a function.
fn argument(b: &mut Builder<'_>) -> Val {
    let base = b.op(Op::ArgAddr { offset: 0 }, Ty::B64, &[]);
    b.load(LOCAL32, Addr { base, offset: 0 })[0]
}

/// Writes the 32-bit result of a function.
fn result(b: &mut Builder<'_>, v: Val) {
    let base = b.op(Op::ArgAddr { offset: 4 }, Ty::B64, &[]);
    b.store(LOCAL32, Addr { base, offset: 0 }, &[v]);
}

/// Writes the argument of a call into slot 0.
fn pass(b: &mut Builder<'_>, v: Val) {
    let base = b.op(Op::SlotAddr(SlotId(0)), Ty::B64, &[]);
    b.store(LOCAL32, Addr { base, offset: 0 }, &[v]);
}

/// Reads the result of a call from slot 0.
fn returned(b: &mut Builder<'_>) -> Val {
    let base = b.op(Op::SlotAddr(SlotId(0)), Ty::B64, &[]);
    b.load(LOCAL32, Addr { base, offset: 4 })[0]
}

fn callable(name: &str, blocks: u32) -> Function {
    Function { param_bytes: 8, result_bytes: 4, ..function(name, false, blocks) }
}

/// The argument block of a call.
const BLOCK: Slot = Slot::new(8, 4);

/// A kernel that stores `f(tid)` at `tid`, and behind 32 words who came back together.
fn caller(callee: Callee, target: impl FnOnce(&mut Builder<'_>, Val) -> Option<Val>) -> Function {
    let mut f = entry(2);
    f.slots.push(BLOCK);
    let mut b = at(&mut f, 0);
    let tid = b.tid();
    pass(&mut b, tid);
    let target = target(&mut b, tid);
    end(&mut f, 0, call(callee, target, 0, 1));
    let mut b = at(&mut f, 1);
    let v = returned(&mut b);
    b.out(tid, v);
    let mask = b.op(Op::Activemask, Ty::B32, &[]);
    let index = b.add(tid, imm32(32));
    b.out(index, mask);
    f
}

/// `fib(n)` by plain recursion.
fn fibonacci(id: u32) -> Function {
    let mut f = callable("fib", 5);
    f.slots.push(BLOCK);
    let mut b = at(&mut f, 0);
    let n = argument(&mut b);
    let sum = b.reg(Ty::B32);
    let small = b.less(n, 2);
    end(&mut f, 0, branch(small, 1, 2));
    let mut b = at(&mut f, 1);
    result(&mut b, n);
    end(&mut f, 1, Term::Ret);
    let mut b = at(&mut f, 2);
    let m = b.sub(n, imm32(1));
    pass(&mut b, m);
    end(&mut f, 2, call(Callee::Direct(FuncId(id)), None, 0, 3));
    let mut b = at(&mut f, 3);
    let v = returned(&mut b);
    b.copy(sum, v);
    let m = b.sub(n, imm32(2));
    pass(&mut b, m);
    end(&mut f, 3, call(Callee::Direct(FuncId(id)), None, 0, 4));
    let mut b = at(&mut f, 4);
    let v = returned(&mut b);
    let v = b.add(v, Val::Reg(sum));
    result(&mut b, v);
    end(&mut f, 4, Term::Ret);
    f
}

#[test]
fn recursion_of_different_depth_in_each_lane() {
    let kernel = caller(Callee::Direct(FuncId(1)), |_, _| None);
    let got = words_of(&module(vec![kernel, fibonacci(1)]), 12, 44);
    assert_eq!(got[..12], [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]);
    assert_eq!(got[32..], [0xfff; 12], "all lanes come back together");
}

/// A function that gives its argument times `k`.
fn times(k: u64) -> Function {
    let mut f = callable("times", 1);
    let mut b = at(&mut f, 0);
    let n = argument(&mut b);
    let v = b.pure(Pure::Mul(Ty::B32), Ty::B32, &[n, imm32(k)]);
    result(&mut b, v);
    end(&mut f, 0, Term::Ret);
    f
}

#[test]
fn an_indirect_call_goes_to_each_lane_s_own_function() {
    // By tid % 3: functions 1, 2 and 3.
    let kernel = caller(Callee::Indirect, |b, tid| {
        let r = b.pure(Pure::Rem(Int::U32), Ty::B32, &[tid, imm32(3)]);
        let wide = b.ext(r, 32, false, Ty::B64);
        let step = b.pure(Pure::Mul(Ty::B64), Ty::B64, &[wide, imm64(FuncId(1).handle() - FuncId(0).handle())]);
        Some(b.add(step, imm64(FuncId(1).handle())))
    });
    let module = module(vec![kernel, times(10), times(100), times(1000)]);
    let got = words_of(&module, 32, 64);
    let expected: Vec<u32> = (0..32).map(|t| t * [10, 100, 1000][t as usize % 3]).collect();
    assert_eq!(got[..32], expected);
    assert_eq!(got[32..], [u32::MAX; 32]);
}

#[test]
fn a_function_address_is_its_handle() {
    let kernel = caller(Callee::Indirect, |b, _| Some(b.op(Op::SymAddr(SymId(0)), Ty::B64, &[])));
    let mut module = module(vec![kernel, times(10), times(7)]);
    module.syms.push(Symbol {
        name: "times".into(),
        kind: SymKind::Func(FuncId(2)),
        size: 0,
        align: 1,
        init: vec![],
        relocs: vec![],
        managed: false,
        span: line(0),
    });
    assert_eq!(words_of(&module, 4, 4), [0, 7, 14, 21]);
}

#[test]
fn bad_handles_trap() {
    let bad = |handle: u64, func: Function| {
        let kernel = caller(Callee::Indirect, |b, tid| {
            let odd = b.and(tid, imm32(1));
            let odd = b.same(odd, 1);
            Some(b.select(odd, imm64(handle), imm64(FuncId(1).handle())))
        });
        let t = trap_of(&module(vec![kernel, times(1), func]), 6);
        assert_eq!((t.kind, t.span), (TrapKind::BadCall, line(1000)));
        assert_eq!((t.thread, t.other_lanes), ([1, 0, 0], 0b10_1000));
        t.detail
    };
    assert_eq!(bad(0, times(1)), "0x0 is no function of the module");
    assert_eq!(bad(FuncId(3).handle(), times(1)), "0x10030 is no function of the module");
    assert_eq!(bad(FuncId(1).handle() + 1, times(1)), "0x10011 is no function of the module");
    assert_eq!(bad(FuncId(0).handle(), times(1)), "`kernel` is a kernel");
    let other = Function { param_bytes: 12, ..times(1) };
    assert_eq!(
        bad(FuncId(2).handle(), other),
        "`times` has 12 bytes of parameters and results, 4 of them results; the call has 8 and 4"
    );
}

#[test]
fn endless_recursion_uses_up_the_stack() {
    let mut f = callable("f", 2);
    f.slots.push(BLOCK);
    end(&mut f, 0, call(Callee::Direct(FuncId(1)), None, 0, 1));
    end(&mut f, 1, Term::Ret);
    let kernel = caller(Callee::Direct(FuncId(1)), |_, _| None);
    let t = trap_of(&module(vec![kernel, f]), 3);
    assert_eq!((t.kind, t.span, t.other_lanes), (TrapKind::Stack, line(1000), 0b110));
    assert_eq!(t.detail, "1024 bytes of local memory are used up 64 calls deep");
}

#[test]
fn a_function_without_slots_does_not_recurse_for_ever() {
    let mut f = callable("f", 2);
    end(
        &mut f,
        0,
        Term::Call {
            callee: Callee::Direct(FuncId(1)),
            target: None,
            signature: (8, 4),
            args: SlotId(0),
            next: BlockId(1),
        },
    );
    f.slots.push(Slot::new(0, 1));
    let kernel = caller(Callee::Direct(FuncId(1)), |_, _| None);
    assert_eq!(trap_of(&module(vec![kernel, f]), 1).kind, TrapKind::Stack);
}

#[test]
fn an_exit_inside_a_function_ends_the_thread() {
    // Odd lanes end inside the function; even lanes come back.
    let mut f = callable("f", 3);
    let mut b = at(&mut f, 0);
    let n = argument(&mut b);
    let odd = b.and(n, imm32(1));
    let odd = b.same(odd, 1);
    end(&mut f, 0, branch(odd, 1, 2));
    let mut b = at(&mut f, 2);
    result(&mut b, imm32(9));
    end(&mut f, 2, Term::Ret);
    let kernel = caller(Callee::Direct(FuncId(1)), |_, _| None);
    let module = module(vec![kernel, f]);
    let (status, mem) = drive(&module, env([4, 1, 1]));
    assert_eq!(status, Status::Done);
    assert_eq!(mem.words(OUT, 4), [9, 0, 9, 0]);
}

#[test]
fn an_entry_whose_frame_does_not_fit_traps() {
    let mut f = entry(1);
    f.slots.push(Slot::new(2000, 8));
    let t = trap(f, 2);
    assert_eq!((t.kind, t.span), (TrapKind::Stack, line(999)));
}

#[test]
fn a_wait_inside_a_called_function_is_a_standstill_too() {
    // The function looks at a flag that nobody sets, and yields; the kernel calls it again and again.
    let mut f = callable("look", 2);
    end(&mut f, 0, Term::Yield { next: BlockId(1) });
    end(&mut f, 1, Term::Ret);
    let mut kernel = entry(2);
    kernel.slots.push(BLOCK);
    end(&mut kernel, 0, call(Callee::Direct(FuncId(1)), None, 0, 1));
    end(&mut kernel, 1, jump(0));
    let (status, _) = drive(&module(vec![kernel, f]), env([64, 1, 1]));
    assert_eq!(status, Status::Waiting { changed: false });
}
