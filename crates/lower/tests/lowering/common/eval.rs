//! One thread of SIMT IR, executed in the plainest way: what passes must not change.

use std::collections::BTreeMap;

use handloom_ir::num;
use handloom_ir::simt::*;
use handloom_ir::types::*;

/// What a thread did to the world.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// Stores to global memory in order: address, bits, value.
    pub stores: Vec<(u64, u8, u64)>,
    /// Whether it came to its end.
    pub ended: bool,
}

/// Runs an entry until its end or for so many blocks.
pub fn run(m: &Module, entry: FuncId, n_blocks: usize) -> Trace {
    let mut world = World { m, memory: BTreeMap::new(), frame_top: 0x1000, trace: Trace::default(), left: n_blocks };
    world.trace.ended = world.call(entry, 0).is_some();
    world.trace
}

struct World<'m> {
    m: &'m Module,
    memory: BTreeMap<u64, u8>,
    frame_top: u64,
    trace: Trace,
    left: usize,
}

impl World<'_> {
    fn call(&mut self, f: FuncId, args: u64) -> Option<()> {
        let f = &self.m.funcs[f.idx()];
        let mut slots = Vec::new();
        let old_top = self.frame_top;
        for s in &f.slots {
            slots.push(self.frame_top);
            self.frame_top += u64::from(s.size).next_multiple_of(16);
        }
        let mut regs = vec![0u64; f.regs.len()];
        let mut block = BlockId(0);
        loop {
            self.left = self.left.checked_sub(1)?;
            let b = &f.blocks[block.idx()];
            for i in &b.insts {
                self.step(i, &mut regs, &slots, args);
            }
            let value = |v: Val| read(&regs, v);
            block = match &b.term {
                Term::Jump(b) | Term::Yield { next: b } => *b,
                Term::Branch { cond, then, otherwise } => {
                    if value(*cond) != 0 {
                        *then
                    } else {
                        *otherwise
                    }
                }
                Term::Switch { index, targets } => targets[value(*index) as usize % targets.len()],
                Term::Call { callee: Callee::Direct(c), args, next, .. } => {
                    self.call(*c, slots[args.idx()])?;
                    *next
                }
                Term::Ret | Term::Exit => {
                    self.frame_top = old_top;
                    return Some(());
                }
                other => panic!("{other:?} is not executed here"),
            };
        }
    }

    fn step(&mut self, i: &Inst, regs: &mut [u64], slots: &[u64], args: u64) {
        let src: Vec<u64> = i.operands().iter().map(|v| read(regs, *v)).collect();
        if i.guard().is_some_and(|g| read(regs, g) == 0) {
            return;
        }
        match i.op {
            Op::Pure(p) => {
                let r = num::eval(p, &src);
                i.dst.iter().zip(r).for_each(|(d, v)| regs[d.idx()] = v);
            }
            Op::Sreg(_) => regs[i.dst[0].idx()] = 5,
            Op::ParamAddr { offset } => regs[i.dst[0].idx()] = 0x100 + u64::from(offset),
            Op::ArgAddr { offset } => regs[i.dst[0].idx()] = args + u64::from(offset),
            Op::SlotAddr(s) => regs[i.dst[0].idx()] = slots[s.idx()],
            Op::Load { access, offset } => {
                for (k, d) in i.dst.iter().enumerate() {
                    let n = u64::from(access.bits / 8);
                    let at = src[0].wrapping_add_signed(offset) + k as u64 * n;
                    let byte = |a: u64| u64::from(self.memory.get(&a).copied().unwrap_or(a as u8 ^ 0x5a));
                    regs[d.idx()] = (0..n).map(|j| byte(at + j) << (8 * j)).sum();
                }
            }
            Op::Store { access, offset } => {
                for (k, v) in src[1..].iter().enumerate() {
                    let n = u64::from(access.bits / 8);
                    let at = src[0].wrapping_add_signed(offset) + k as u64 * n;
                    (0..n).for_each(|j| _ = self.memory.insert(at + j, (v >> (8 * j)) as u8));
                    if access.space == StateSpace::Global {
                        let cut = if n == 8 { *v } else { v & ((1 << (8 * n)) - 1) };
                        self.trace.stores.push((at, access.bits, cut));
                    }
                }
            }
            other => panic!("{other:?} is not executed here"),
        }
    }
}

fn read(regs: &[u64], v: Val) -> u64 {
    match v {
        Val::Reg(r) => regs[r.idx()],
        Val::Imm(i, _) => i,
    }
}
