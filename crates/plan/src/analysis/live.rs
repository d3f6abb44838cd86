//! Liveness of registers at the ends of blocks.

use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Function, Op, Pure, Reg, Val};

use super::cfg::{Cfg, Set};
use super::n_definitions;

/// Registers of a function whose sets are made with room for all.
const FEW: usize = 2048;

/// Live registers at the start and end of each block.
#[derive(Debug)]
pub struct Live {
    /// Live at the start.
    pub entry: Vec<Set>,
    /// Live at the start of any block.
    pub across: Set,
    exit: Vec<Exit>,
}

/// What lives at the end of a block.
#[derive(Debug)]
enum Exit {
    /// What does at the start of the one block behind it.
    AsEntry(usize),
    Own(Set),
}

impl Live {
    /// Backward data flow over the blocks.
    pub fn new(f: &Function, cfg: &Cfg) -> Live {
        let n = f.blocks.len();
        // Room for all is made at once where that is little, and else for those that come.
        let none = if f.regs.len() <= FEW { Set::new(f.regs.len()) } else { Set::default() };
        // What a block reads before it writes it lives at its start, whatever comes behind it.
        let mut entry = vec![none.clone(); n];
        let mut writes = vec![none.clone(); n];
        let mut across = Set::new(f.regs.len());
        let read_where_written = read_where_written(f);
        for (b, block) in f.blocks.iter().enumerate() {
            let mut read = |v: &Val, written: &Set| {
                if let Val::Reg(r) = v
                    && !written.has(r.idx())
                {
                    entry[b].add(r.idx());
                    across.add(r.idx());
                }
            };
            for inst in &block.insts {
                inst.src.iter().for_each(|v| read(v, &writes[b]));
                // A guarded result keeps its old value in lanes whose guard is 0: the old value is read.
                if inst.guarded {
                    let kept = inst.dst.iter().filter(|d| !read_where_written.has(d.idx()));
                    kept.for_each(|d| read(&Val::Reg(*d), &writes[b]));
                }
                inst.dst.iter().for_each(|d| {
                    writes[b].add(d.idx());
                });
            }
            block.term.sources().iter().for_each(|v| read(v, &writes[b]));
        }
        let mut exit: Vec<Exit> = (0..n)
            .map(|b| match (cfg.succs[b].as_slice(), f.blocks[b].term.result()) {
                ([next], None) => Exit::AsEntry(*next),
                _ => Exit::Own(none.clone()),
            })
            .collect();
        // Blocks that a block leads to have changed since it was looked at.
        let mut is_stale = vec![true; n];
        while is_stale.contains(&true) {
            for b in (0..n).rev() {
                if !std::mem::replace(&mut is_stale[b], false) {
                    continue;
                }
                let mut own = std::mem::take(&mut entry[b]);
                let changed = match &mut exit[b] {
                    // It has what itself has at the start.
                    Exit::AsEntry(next) if *next == b => false,
                    Exit::AsEntry(next) => own.union_without(&entry[*next], &writes[b]),
                    Exit::Own(exit) => {
                        let all = cfg.succs[b].iter().map(|s| if *s == b { &own } else { &entry[*s] });
                        all.for_each(|s| _ = exit.union(s));
                        // The result of a barrier is written on the way to the next block.
                        f.blocks[b].term.result().iter().for_each(|r| exit.remove(r.idx()));
                        own.union_without(exit, &writes[b])
                    }
                };
                entry[b] = own;
                if changed {
                    cfg.preds[b].iter().for_each(|p| is_stale[*p] = true);
                }
            }
        }
        Live { entry, across, exit }
    }

    /// What lives at the end of a block.
    pub fn exit(&self, b: usize) -> &Set {
        match &self.exit[b] {
            Exit::AsEntry(next) => &self.entry[*next],
            Exit::Own(set) => set,
        }
    }
}

/// The registers that a guarded instruction alone writes, and that are read behind it in its block only in lanes where its guard holds: what they had before in other lanes nobody
/// asks for. (A guarded load and a choice between what it read and something else are what masked loads of Triton become.)
fn read_where_written(f: &Function) -> Set {
    let mut found = Set::new(f.regs.len());
    if !f.blocks.iter().flat_map(|b| &b.insts).any(|i| i.guarded && !i.dst.is_empty()) {
        return found;
    }
    let mut n_reads = vec![0_u32; f.regs.len()];
    let mut note = |v: &Val| {
        if let Val::Reg(r) = v {
            n_reads[r.idx()] += 1;
        }
    };
    for block in &f.blocks {
        block.insts.iter().flat_map(|i| &i.src).for_each(&mut note);
        block.term.sources().iter().for_each(&mut note);
    }
    let n_definitions = n_definitions(f);
    // By register: where it was written last, and the guard if there was one.
    let mut written: FastMap<Reg, (usize, Option<Val>)> = FastMap::default();
    for block in &f.blocks {
        written.clear();
        for (i, inst) in block.insts.iter().enumerate() {
            for v in &inst.src {
                let Val::Reg(r) = *v else { continue };
                let Some((at, Some(guard))) = written.get(&r).copied() else { continue };
                let is_chosen = matches!(inst.op, Op::Pure(Pure::Select(_)))
                    && inst.src[..2] == [guard, Val::Reg(r)]
                    && inst.src[2] != Val::Reg(r);
                let is_same = is_chosen || inst.guard() == Some(guard) && guard != Val::Reg(r);
                let stays = match guard {
                    Val::Reg(g) => written.get(&g).is_none_or(|(since, _)| *since < at),
                    Val::Imm(..) => true,
                };
                if is_same && stays {
                    n_reads[r.idx()] -= 1;
                }
            }
            for d in &inst.dst {
                let guard = inst.guard().filter(|_| n_definitions[d.idx()] == 1);
                written.insert(*d, (i, guard));
                if guard.is_some() {
                    found.add(d.idx());
                }
            }
        }
    }
    let others: Vec<usize> = found.iter().filter(|r| n_reads[*r] > 0).collect();
    others.into_iter().for_each(|r| found.remove(r));
    found
}
