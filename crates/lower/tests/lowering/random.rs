//! Random functions do the same before and behind the passes.

use crate::common::{eval, span};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_lower::passes::Strengths;
use smallvec::smallvec;

/// xorshift: the same programs each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

const TYPES: [Ty; 4] = [Ty::P, Ty::B16, Ty::B32, Ty::B64];

/// A function with blocks in random order of jumps; loops are left by a counter, so that it ends.
struct Maker {
    r: Random,
    f: Function,
    insts: Vec<Inst>,
    /// Registers that hold addresses of slots: their values may change, so nothing else reads them.
    hidden: Vec<Reg>,
}

impl Maker {
    fn value(&mut self, ty: Ty) -> Val {
        if self.r.below(4) == 0 {
            let bits = [0, 1, 2, 8, 255, 0xffff, u64::MAX, self.r.0][self.r.below(8) as usize];
            return Val::Imm(bits & ty.mask(), ty);
        }
        let fits = |r: &u32| self.f.regs[*r as usize] == ty && !self.hidden.contains(&Reg(*r));
        let all: Vec<u32> = (0..self.f.regs.len() as u32).filter(fits).collect();
        Val::Reg(Reg(all[self.r.below(all.len() as u64) as usize]))
    }

    /// A fresh register, or one that is written elsewhere too. The first register of each type is the counter of loops.
    fn target(&mut self, ty: Ty) -> Reg {
        if self.r.below(3) > 0 {
            self.f.regs.push(ty);
            return Reg(self.f.regs.len() as u32 - 1);
        }
        let all: Vec<u32> = (4..20).filter(|r| self.f.regs[*r as usize] == ty).collect();
        Reg(all[self.r.below(all.len() as u64) as usize])
    }

    fn hidden_reg(&mut self) -> Reg {
        self.f.regs.push(Ty::B64);
        self.hidden.push(Reg(self.f.regs.len() as u32 - 1));
        Reg(self.f.regs.len() as u32 - 1)
    }

    fn push(&mut self, op: Op, dst: Regs, src: Vals, guarded: bool) {
        self.insts.push(Inst { op, dst, src, guarded, span: span(0) });
    }

    fn pure(&mut self) {
        let ty = TYPES[1 + self.r.below(3) as usize];
        let int = Int { ty, signed: self.r.below(2) == 0 };
        let cmp = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge][self.r.below(6) as usize];
        let wide = TYPES[1 + self.r.below(3) as usize];
        let bits = [8, 16, 32, 64][self.r.below(4) as usize].min(ty.bits()) as u8;
        let narrow = if ty == Ty::B64 { Int { ty: Ty::B32, ..int } } else { int };
        let op = match self.r.below(26) {
            0 => Pure::Mov(ty),
            1 | 2 => Pure::Add(ty),
            3 => Pure::Sub(ty),
            4 => Pure::Mul(ty),
            5 => Pure::MulWide(Int { ty: if narrow.ty == Ty::B64 { Ty::B32 } else { narrow.ty }, ..narrow }),
            6 => Pure::Div(int),
            7 => Pure::Rem(int),
            8 => Pure::And(ty),
            9 => Pure::Or(ty),
            10 => Pure::Xor(ty),
            11 => Pure::Not(ty),
            12 => Pure::Not(Ty::P),
            13 => Pure::Shl(ty),
            14 => Pure::Shr(int),
            15 | 16 => Pure::ICmp(cmp, int),
            17 | 18 => Pure::Select(ty),
            19 => Pure::Select(Ty::P),
            20 | 21 => Pure::Ext { bits, signed: int.signed, from: ty, to: wide },
            22 => Pure::Pack(if ty == Ty::B64 { Ty::B32 } else { ty }),
            23 => Pure::Half { from: if ty == Ty::B16 { Ty::B32 } else { ty }, hi: int.signed },
            24 => Pure::FromPred(ty),
            _ => Pure::ToPred(ty),
        };
        let src = op.sources().iter().map(|t| self.value(*t)).collect();
        let dst = self.target(op.results().0);
        self.push(Op::Pure(op), smallvec![dst], src, false);
    }

    fn memory(&mut self) {
        let slot = SlotId(self.r.below(3) as u32);
        let base = self.hidden_reg();
        self.push(Op::SlotAddr(slot), smallvec![base], smallvec![], false);
        let mut at = Val::Reg(base);
        if self.r.below(3) == 0 {
            let sum = self.hidden_reg();
            self.push(Op::Pure(Pure::Add(Ty::B64)), smallvec![sum], smallvec![at, Val::Imm(8, Ty::B64)], false);
            at = Val::Reg(sum);
        }
        if slot.0 == 2 {
            let guard = self.value(Ty::P);
            let either = smallvec![guard, at, Val::Reg(base)];
            let escaped = self.hidden_reg();
            self.push(Op::Pure(Pure::Select(Ty::B64)), smallvec![escaped], either, false);
            at = Val::Reg(escaped);
        }
        // Slot 0 is accessed in one width a place, slot 1 in any; the address of slot 2 is used otherwise.
        let bits = match slot.0 {
            0 => 32,
            _ => [8, 16, 32, 64][self.r.below(4) as usize],
        };
        let count = [1, 1, 2][self.r.below(3) as usize];
        let access = Access::weak_vector(StateSpace::Local, bits, count);
        let ty = if bits < 32 {
            Ty::B16
        } else if bits == 32 {
            Ty::B32
        } else {
            Ty::B64
        };
        let offset = self.r.below(2) as i64 * 8;
        let guard = (self.r.below(3) == 0).then(|| self.value(Ty::P));
        if self.r.below(2) == 0 {
            let mut src: Vals = smallvec![at];
            src.extend((0..count).map(|_| self.value(ty)));
            src.extend(guard);
            self.push(Op::Store { access, offset }, smallvec![], src, guard.is_some());
            return;
        }
        let fresh: Regs = (0..count)
            .map(|_| {
                self.f.regs.push(ty);
                Reg(self.f.regs.len() as u32 - 1)
            })
            .collect();
        self.push(Op::Load { access, offset }, fresh.clone(), [at].into_iter().chain(guard).collect(), guard.is_some());
        for v in fresh {
            let d = self.target(ty);
            let select = [guard.unwrap_or(Val::Imm(1, Ty::P)), Val::Reg(v), Val::Reg(d)];
            self.push(Op::Pure(Pure::Select(ty)), smallvec![d], Vals::from_slice(&select), false);
        }
    }

    /// An unset slot may hold anything.
    fn clear_slot(&mut self, slot: SlotId) {
        let base = self.hidden_reg();
        self.push(Op::SlotAddr(slot), smallvec![base], smallvec![], false);
        let (bits, ty) = if slot.0 == 0 { (32, Ty::B32) } else { (64, Ty::B64) };
        for k in 0..32 / i64::from(bits / 8) {
            let access = Access::weak_vector(StateSpace::Local, bits, 1);
            let op = Op::Store { access, offset: k * i64::from(bits / 8) };
            self.push(op, smallvec![], smallvec![Val::Reg(base), Val::Imm(0, ty)], false);
        }
    }

    fn global_store(&mut self) {
        let ty = TYPES[1 + self.r.below(3) as usize];
        let access = Access::weak_vector(StateSpace::Global, ty.bits() as u8, 1);
        let v = self.value(ty);
        let guard = self.value(Ty::P);
        let base = Val::Imm(0x9000_0000, Ty::B64);
        self.push(Op::Store { access, offset: 8 }, smallvec![], smallvec![base, v, guard], true);
    }

    fn block(&mut self, n_blocks: u64) -> Block {
        for _ in 0..self.r.below(8) {
            match self.r.below(6) {
                0 => self.memory(),
                1 => self.global_store(),
                _ => self.pure(),
            }
        }
        let mut to = || BlockId(1 + self.r.below(n_blocks - 1) as u32);
        let (a, b, c) = (to(), to(), to());
        let term = match self.r.below(5) {
            0 => Term::Jump(a),
            1 => Term::Switch { index: self.value(Ty::B32), targets: vec![a, b, c] },
            _ => Term::Branch { cond: self.value(Ty::P), then: a, otherwise: b },
        };
        Block { insts: std::mem::take(&mut self.insts), term, term_span: span(0) }
    }
}

/// All registers are set in the first block; each other block first counts, and leaves for the last one when it has counted enough.
fn function(seed: u64, is_entry: bool) -> Function {
    let f = Function {
        name: "k".into(),
        is_entry,
        blocks: vec![],
        regs: (0..20).map(|i| TYPES[i % 4]).collect(),
        slots: (0..3).map(|_| Slot::new(32, 8)).collect(),
        param_bytes: 16,
        result_bytes: 8,
        span: span(0),
    };
    let mut m = Maker { r: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1), f, insts: vec![], hidden: vec![] };
    for i in 0..20 {
        let ty = TYPES[i % 4];
        let v = if i < 4 { Val::Imm(0, ty) } else { Val::Imm((i as u64 * 0x1234_5679) & ty.mask(), ty) };
        m.push(Op::Pure(Pure::Mov(ty)), smallvec![Reg(i as u32)], smallvec![v], false);
    }
    for slot in 0..3 {
        m.clear_slot(SlotId(slot));
    }
    if !is_entry {
        let access = Access::weak_vector(StateSpace::Local, 64, 1);
        let at = m.hidden_reg();
        m.push(Op::ArgAddr { offset: 0 }, smallvec![at], smallvec![], false);
        m.push(Op::Load { access, offset: 0 }, smallvec![Reg(11)], smallvec![Val::Reg(at)], false);
        m.push(Op::Store { access, offset: 8 }, smallvec![], smallvec![Val::Reg(at), Val::Reg(Reg(11))], false);
    }
    let start = Block { insts: std::mem::take(&mut m.insts), term: Term::Jump(BlockId(1)), term_span: span(0) };
    let n = 3 + m.r.below(9);
    let mut blocks = vec![start];
    for _ in 1..n {
        let block = m.block(n);
        blocks.push(block);
    }
    let end = BlockId(n as u32 * 2 - 1);
    // Block i counts and goes to its body, which is moved behind.
    let bodies: Vec<Block> = blocks.drain(1..).collect();
    for i in 1..n {
        let count = Inst {
            op: Op::Pure(Pure::Add(Ty::B32)),
            dst: smallvec![Reg(2)],
            src: smallvec![Val::Reg(Reg(2)), Val::Imm(1, Ty::B32)],
            guarded: false,
            span: span(0),
        };
        let src = smallvec![Val::Reg(Reg(2)), Val::Imm(30, Ty::B32)];
        let test = Inst { op: Op::Pure(Pure::ICmp(Cmp::Lt, Int::U32)), dst: smallvec![Reg(0)], src, ..count.clone() };
        let term = Term::Branch { cond: Val::Reg(Reg(0)), then: BlockId((n - 1 + i) as u32), otherwise: end };
        blocks.push(Block { insts: vec![count, test], term, term_span: span(0) });
    }
    blocks.extend(bodies);
    let mut m = Maker { insts: vec![], ..m };
    (0..4).for_each(|_| m.global_store());
    let term = if is_entry { Term::Exit } else { Term::Ret };
    blocks.push(Block { insts: m.insts, term, term_span: span(0) });
    m.f.blocks = blocks;
    m.f
}

/// Reads of registers that may be unset become reads of 0: an unset register may hold anything.
fn set_all(f: &mut Function) {
    let n = f.blocks.len();
    let mut set: Vec<Vec<bool>> = vec![vec![true; f.regs.len()]; n];
    set[0].fill(false);
    let mut changed = true;
    while changed {
        changed = false;
        for b in 0..n {
            let mut now = set[b].clone();
            f.blocks[b].insts.iter().flat_map(|i| &i.dst).for_each(|d| now[d.idx()] = true);
            for s in f.blocks[b].term.successors() {
                for (to, from) in set[s.idx()].iter_mut().zip(&now) {
                    changed |= *to && !from;
                    *to &= from;
                }
            }
        }
    }
    let regs = f.regs.clone();
    for (b, block) in f.blocks.iter_mut().enumerate() {
        let now = &mut set[b];
        let fix = |v: Val, now: &[bool]| match v {
            Val::Reg(r) if !now[r.idx()] => Val::Imm(0, regs[r.idx()]),
            other => other,
        };
        for i in &mut block.insts {
            i.src.iter_mut().for_each(|v| *v = fix(*v, now));
            i.dst.iter().for_each(|d| now[d.idx()] = true);
        }
        block.term.map_sources(|v| fix(v, now));
    }
}

/// An entry that calls the function from one of its blocks.
fn module(seed: u64) -> Module {
    let mut entry = function(seed, true);
    entry.slots.push(Slot::new(16, 8));
    let caller = entry.blocks.len() / 2;
    let after = entry.blocks[caller].clone();
    entry.blocks.push(after);
    entry.regs.push(Ty::B64);
    let at = Reg(entry.regs.len() as u32 - 1);
    let store = Op::Store { access: Access::weak_vector(StateSpace::Local, 64, 1), offset: 0 };
    let load = Op::Load { access: Access::weak_vector(StateSpace::Local, 64, 1), offset: 8 };
    let inst = |op, dst, src| Inst { op, dst, src, guarded: false, span: span(0) };
    let last = entry.blocks.len() - 1;
    entry.blocks[caller].insts.push(inst(Op::SlotAddr(SlotId(3)), smallvec![at], smallvec![]));
    entry.blocks[caller].insts.push(inst(store, smallvec![], smallvec![Val::Reg(at), Val::Reg(Reg(15))]));
    entry.blocks[last].insts.insert(0, inst(load, smallvec![Reg(19)], smallvec![Val::Reg(at)]));
    entry.blocks[caller].term = Term::Call {
        callee: Callee::Direct(FuncId(1)),
        target: None,
        signature: (16, 8),
        args: SlotId(3),
        next: BlockId(entry.blocks.len() as u32 - 1),
    };
    let callee = function(seed ^ 0xabcd, false);
    let e = Entry {
        func: FuncId(0),
        params: vec![],
        reqntid: None,
        maxntid: None,
        reqcluster: None,
        registers: RegisterBounds::default(),
        shared_bytes: 0,
    };
    Module { funcs: vec![entry, callee], entries: [("k".into(), e)].into(), address_size: 64, ..Module::default() }
}

#[test]
fn passes_change_nothing() {
    let mut ended = 0;
    for seed in 1..3000 {
        let mut before = module(seed);
        before.funcs.iter_mut().for_each(handloom_lower::order_blocks);
        before.funcs.iter_mut().for_each(set_all);
        before.funcs.iter().for_each(|f| verify::verify(f).unwrap());
        let mut after = before.clone();
        let roots: Vec<FuncId> = (0..before.funcs.len() as u32).map(FuncId).collect();
        // The thread's coordinates are 5.
        let shape = LaunchShape { ntid: [8, 6, 6], small_grid: seed % 2 == 0 };
        let funcs = std::mem::take(&mut after.funcs);
        let mut funcs = roots.iter().copied().zip(funcs).collect();
        let strengths = Strengths { side_by_side: seed % 3 != 0, unrolls: seed % 2 == 0 };
        handloom_lower::passes::optimise(&mut funcs, &roots, &shape, strengths);
        after.funcs = funcs.values().cloned().collect();
        let (a, b) = (eval::run(&before, FuncId(0), 2000), eval::run(&after, FuncId(0), 4000));
        ended += usize::from(a.ended);
        assert!(a == b || !a.ended, "seed {seed}\n{}\n{}\n{a:?}\n{b:?}", text::print(&before), text::print(&after));
    }
    assert!(ended > 2000, "{ended}");
}
