//! A bench for small functions: a module made with the builder, memory at fixed places, and a loop that runs one cta.

use handloom_diag::{FileId, Span};
use handloom_interp::{Cta, CtaEnv, Status, VecMemory};
use handloom_ir::simt::*;
use handloom_ir::trap::Trap;
use handloom_ir::types::*;
use smallvec::smallvec;

/// Global memory that results go to.
pub const OUT: u64 = 0x1_0000;
/// Bytes of it.
pub const OUT_SIZE: usize = 0x4000;
/// Constant memory.
pub const CONST: u64 = 0x8_0000;
/// Shared memory.
pub const SHARED: u64 = 0x10_0000;
/// Bytes of it.
pub const SHARED_SIZE: u32 = 4096;
/// Local memory of thread 0.
pub const LOCAL: u64 = 0x100_0000;
/// Bytes of local memory of each thread.
pub const LOCAL_SIZE: u64 = 1024;
/// Parameters.
pub const PARAM: u64 = 0x9_0000;

/// The place of a numbered statement.
pub fn line(n: u32) -> Span {
    Span::new(FileId(0), n * 10, n * 10 + 5)
}

/// A function with that many blocks, all ending in `exit`; the span of block `i`'s end is line `1000 + i`.
pub fn function(name: &str, is_entry: bool, blocks: u32) -> Function {
    Function {
        name: name.into(),
        is_entry,
        blocks: (0..blocks).map(|i| Block { insts: vec![], term: Term::Exit, term_span: line(1000 + i) }).collect(),
        regs: vec![],
        slots: vec![],
        param_bytes: 0,
        result_bytes: 0,
        span: line(999),
    }
}

/// An entry with that many blocks.
pub fn entry(blocks: u32) -> Function {
    function("kernel", true, blocks)
}

/// A builder at the end of a block; its span is line `block`.
pub fn at(f: &mut Function, block: u32) -> Builder<'_> {
    Builder { func: f, block: BlockId(block), span: line(block), guard: None, carry: None }
}

/// Ends a block.
pub fn end(f: &mut Function, block: u32, term: Term) {
    f.blocks[block as usize].term = term;
}

/// To a block.
pub fn jump(b: u32) -> Term {
    Term::Jump(BlockId(b))
}

/// By a predicate.
pub fn branch(cond: Val, then: u32, otherwise: u32) -> Term {
    Term::Branch { cond, then: BlockId(then), otherwise: BlockId(otherwise) }
}

/// A barrier of all threads.
pub fn bar_sync(id: u64, next: u32) -> Term {
    barrier(BarKind::Sync, id, None, next)
}

/// A barrier without predicate.
pub fn barrier(kind: BarKind, id: u64, count: Option<u64>, next: u32) -> Term {
    Term::Barrier { kind, id: imm32(id), count: count.map(imm32), pred: None, dst: None, next: BlockId(next) }
}

/// A 32-bit constant.
pub fn imm32(v: u64) -> Val {
    Val::Imm(v & 0xffff_ffff, Ty::B32)
}

/// A 64-bit constant.
pub fn imm64(v: u64) -> Val {
    Val::Imm(v, Ty::B64)
}

/// An atomic of one element in relaxed order.
pub fn atomic(op: AtomOp, ty: ScalarType, space: StateSpace) -> AtomAccess {
    AtomAccess { op, ty, space, order: Order::Relaxed, scope: Scope::Gpu, count: 1 }
}

/// What tests write often.
pub trait Write {
    /// A special register of 32 bits.
    fn sreg(&mut self, s: Sreg) -> Val;
    /// Linear thread number of a one-dimensional cta.
    fn tid(&mut self) -> Val;
    /// `a < b`, unsigned.
    fn less(&mut self, a: Val, b: u64) -> Val;
    /// `a == b`.
    fn same(&mut self, a: Val, b: u64) -> Val;
    /// Address of word `index` of the result.
    fn out_addr(&mut self, index: Val) -> Val;
    /// Stores a word of the result.
    fn out(&mut self, index: Val, value: Val);
    /// An op with one result.
    fn op(&mut self, op: Op, ty: Ty, src: &[Val]) -> Val;
    /// An op with two results.
    fn op2(&mut self, op: Op, ty: [Ty; 2], src: &[Val]) -> (Val, Val);
    /// A predicate as 0 or 1.
    fn bit(&mut self, p: Val) -> Val;
}

impl Write for Builder<'_> {
    fn sreg(&mut self, s: Sreg) -> Val {
        self.op(Op::Sreg(s), Ty::B32, &[])
    }

    fn tid(&mut self) -> Val {
        self.sreg(Sreg::Tid(0))
    }

    fn less(&mut self, a: Val, b: u64) -> Val {
        self.pure(Pure::ICmp(Cmp::Lt, Int::U32), Ty::P, &[a, imm32(b)])
    }

    fn same(&mut self, a: Val, b: u64) -> Val {
        self.pure(Pure::ICmp(Cmp::Eq, Int::U32), Ty::P, &[a, imm32(b)])
    }

    fn out_addr(&mut self, index: Val) -> Val {
        let scaled = self.pure(Pure::MulWide(Int::U32), Ty::B64, &[index, imm32(4)]);
        self.add(scaled, imm64(OUT))
    }

    fn out(&mut self, index: Val, value: Val) {
        let base = self.out_addr(index);
        self.store(Access::weak(StateSpace::Global, 32), Addr { base, offset: 0 }, &[value]);
    }

    fn op(&mut self, op: Op, ty: Ty, src: &[Val]) -> Val {
        let d = self.reg(ty);
        self.push(op, smallvec![d], src.into());
        Val::Reg(d)
    }

    fn op2(&mut self, op: Op, ty: [Ty; 2], src: &[Val]) -> (Val, Val) {
        let d = ty.map(|t| self.reg(t));
        self.push(op, d[..].into(), src.into());
        (Val::Reg(d[0]), Val::Reg(d[1]))
    }

    fn bit(&mut self, p: Val) -> Val {
        self.pure(Pure::FromPred(Ty::B32), Ty::B32, &[p])
    }
}

/// A module of these functions.
pub fn module(funcs: Vec<Function>) -> Module {
    Module { funcs, address_size: 64, ..Module::default() }
}

/// The environment of a cta of that shape.
pub fn env(ntid: [u32; 3]) -> CtaEnv {
    CtaEnv {
        ntid,
        shared_base: SHARED,
        shared_size: SHARED_SIZE,
        local_base: LOCAL,
        local_stride: LOCAL_SIZE,
        local_size: LOCAL_SIZE,
        param_base: PARAM,
        nsmid: 4,
        ..CtaEnv::default()
    }
}

/// Memory for that environment.
pub fn memory(env: &CtaEnv) -> VecMemory {
    let mut mem = VecMemory::new();
    mem.add(OUT, OUT_SIZE, StateSpace::Global, true);
    mem.add(CONST, 256, StateSpace::Const, false);
    mem.add(PARAM, 256, StateSpace::ParamEntry, false);
    mem.add(SHARED, SHARED_SIZE as usize, StateSpace::Shared, true);
    mem.add(LOCAL, (env.local_stride * u64::from(env.threads())) as usize, StateSpace::Local, true);
    mem
}

/// Runs one cta until it ends, stands still for a round, or traps.
pub fn drive(module: &Module, env: CtaEnv) -> (Status, VecMemory) {
    let mut mem = memory(&env);
    let mut cta = Cta::new(module, FuncId(0), env);
    for _ in 0..100_000 {
        match cta.run(&mut mem, 10_000) {
            Status::Budget | Status::Waiting { changed: true } => {}
            status @ (Status::Done | Status::Waiting { changed: false } | Status::Trap(_)) => return (status, mem),
        }
    }
    panic!("the cta does not come to an end");
}

/// Runs a kernel that must end well, and gives the first words of its result.
pub fn words(f: Function, threads: u32, count: usize) -> Vec<u32> {
    words_of(&module(vec![f]), threads, count)
}

/// As [`words`], for a module whose first function is the kernel.
pub fn words_of(module: &Module, threads: u32, count: usize) -> Vec<u32> {
    let (status, mem) = drive(module, env([threads, 1, 1]));
    assert_eq!(status, Status::Done);
    mem.words(OUT, count)
}

/// Runs a kernel that must trap.
pub fn trap(f: Function, threads: u32) -> Trap {
    trap_of(&module(vec![f]), threads)
}

/// As [`trap`], for a module whose first function is the kernel.
pub fn trap_of(module: &Module, threads: u32) -> Trap {
    match drive(module, env([threads, 1, 1])).0 {
        Status::Trap(trap) => *trap,
        other => panic!("no trap but {other:?}"),
    }
}
