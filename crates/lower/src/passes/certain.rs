//! Guards of a loop that all threads of a CTA pass, asked once for all of them.
//!
//! # The model
//! A product by tiles reads `t * 16 + %tid.x < n ? a[..] : 0` in each turn. All threads pass in all turns but the last, and what says so is the same in all of them: a value that is made of
//! thread numbers by sums and constant factors lies between what it is where these are zero, which is computed beside it, and a constant distance from there, if the sum of both does not wrap.
//! So a branch on such comparisons gets one in front of it that is the same in all threads, and leads to a copy of what is guarded. It is right for each thread by itself, whatever way it came.
//!
//! Guards outside of loops, and those whose values stay, are left: engines decide them once a CTA.

use handloom_diag::hash::FastMap;
use handloom_ir::simt::*;
use handloom_ir::types::{Cmp, Int, Sreg, StateSpace, Ty};
use smallvec::smallvec;

use super::values::definitions;
use crate::graph::{Dominators, Edges, Loops};

/// Instructions, at most, of what is guarded: they are copied.
const MOST_COPIED: usize = 16;
/// The longest distance between two threads' values.
const MOST_APART: u64 = 1 << 30;
/// Instructions that make a predicate, at most.
const MOST_MAKERS: usize = 16;
/// How often, at most, a function is gone through to find out what registers are made of: once more than loops that lead values to each other are inside each other.
const MOST_WALKS: usize = 12;

/// Puts such branches into an ordered function. Returns whether there were any; new blocks are at the end: order them.
pub fn ask_once(f: &mut Function, shape: &LaunchShape) -> bool {
    let preds = Edges::into_blocks(f);
    let mut candidates: Vec<(usize, usize)> =
        (0..f.blocks.len()).filter_map(|b| Some((b, guarded(f, &preds, b)?))).collect();
    if candidates.is_empty() {
        return false;
    }
    let doms = Dominators::of(f, &preds);
    let loops = Loops::of(f, &preds, &doms);
    let mut is_in_loop = vec![false; f.blocks.len()];
    loops.loops.iter().flat_map(|l| &l.blocks).for_each(|b| is_in_loop[*b] = true);
    candidates.retain(|(b, _)| is_in_loop[*b]);
    if candidates.is_empty() {
        return false;
    }
    let Some(mut maker) = Maker::of(f, shape) else { return false };
    let reads = f.n_reads();
    let mut asked: Vec<[usize; 3]> = Vec::new();
    for (b, s) in candidates {
        let Term::Branch { cond: Val::Reg(cond), then, .. } = f.blocks[b].term else { continue };
        let passes_if = then.idx() == s;
        if !maker.is_worth_it(f, cond) {
            continue;
        }
        let Some(all) = maker.certain(f, cond, passes_if) else { continue };
        let copy = copied(f, s, |r| maker.of[r.idx()].len() == 1, &reads);
        let id = |n: usize| BlockId(n as u32);
        let rest = Block { insts: Vec::new(), term: f.blocks[b].term.clone(), term_span: f.blocks[b].term_span };
        f.blocks.push(copy);
        f.blocks.push(rest);
        let n = f.blocks.len();
        f.blocks[b].term = Term::Branch { cond: all, then: id(n - 2), otherwise: id(n - 1) };
        asked.push([b, n - 2, n - 1]);
    }
    // Also what was made for guards that it was not enough for: nobody reads that.
    maker.insert(f);
    sink(f, &asked);
    !asked.is_empty()
}

/// Moves what is wanted only where the guard is asked there: what it asks, and what the guarded block writes anew. `asked`: blocks, the copies of what they guard, and those that ask.
fn sink(f: &mut Function, asked: &[[usize; 3]]) {
    let reads = f.n_reads();
    for &[b, copy, rest] in asked {
        let writes_anew = |r: Reg| {
            let at = f.blocks[copy].insts.iter().position(|i| i.dst.contains(&r));
            let before = at.map(|at| &f.blocks[copy].insts[..=at]);
            before.is_some_and(|all| !all.iter().any(|i| i.src.contains(&Val::Reg(r))))
        };
        let anew: Vec<Reg> =
            f.blocks[copy].insts.iter().flat_map(|i| &i.dst).copied().filter(|r| writes_anew(*r)).collect();
        let mut insts = std::mem::take(&mut f.blocks[b].insts);
        let mut moved: Vec<Inst> = Vec::new();
        for i in (0..insts.len()).rev() {
            let (inst, behind) = (&insts[i], &insts[i + 1..]);
            let &[d] = &inst.dst[..] else { continue };
            let reads_it = |v: &&Val| **v == Val::Reg(d);
            let sources = f.blocks[rest].term.sources();
            let n = moved.iter().flat_map(|i| &i.src).chain(&sources).filter(reads_it).count();
            let is_changed = |v: &Val| matches!(v, Val::Reg(r) if behind.iter().any(|i| i.dst.contains(r)));
            let is_asked = f.regs[d.idx()] == Ty::P && n > 0 && reads[d.idx()] as usize == n;
            let is_used = |i: &Inst| i.dst.contains(&d) || i.src.contains(&Val::Reg(d));
            let is_old =
                anew.contains(&d) && !behind.iter().any(is_used) && !f.blocks[b].term.sources().contains(&Val::Reg(d));
            if (is_asked || is_old)
                && matches!(inst.op, Op::Pure(_))
                && !inst.guarded
                && !inst.src.iter().any(is_changed)
            {
                moved.insert(0, insts.remove(i));
            }
        }
        f.blocks[b].insts = insts;
        f.blocks[rest].insts = moved;
    }
}

/// The block that a branch guards, if that is short and all lanes meet behind it.
fn guarded(f: &Function, preds: &Edges, b: usize) -> Option<usize> {
    let Term::Branch { cond: Val::Reg(_), then, otherwise } = f.blocks[b].term else { return None };
    if f.blocks[b].insts.last().is_some_and(|i| i.op.is_warp_sync()) || then == otherwise {
        return None;
    }
    let fits = |s: BlockId, meet: BlockId| {
        let block = &f.blocks[s.idx()];
        let is_plain = |i: &Inst| matches!(i.op, Op::Pure(_) | Op::Load { .. } | Op::Store { .. }) && !i.guarded;
        block.term == Term::Jump(meet)
            && preds.of_node(s.idx()).len() == 1
            && block.insts.len() <= MOST_COPIED
            && block.insts.iter().all(is_plain)
            && block.insts.iter().any(|i| matches!(i.op, Op::Load { .. }))
    };
    [(then, otherwise), (otherwise, then)].into_iter().find(|(s, meet)| fits(*s, *meet)).map(|(s, _)| s.idx())
}

/// A copy of a block, in which what is made and read there alone has other names. `is_made_once` and `reads` are of registers of the function as it was.
fn copied(f: &mut Function, s: usize, is_made_once: impl Fn(Reg) -> bool, reads: &[u32]) -> Block {
    let mut copy = f.blocks[s].clone();
    let n_reads = |r: Reg| copy.insts.iter().flat_map(|i| &i.src).filter(|v| **v == Val::Reg(r)).count();
    let own: Vec<Reg> = copy.insts.iter().flat_map(|i| &i.dst).copied().collect();
    let own = own.into_iter().filter(|r| is_made_once(*r) && reads[r.idx()] as usize == n_reads(*r));
    let mut names: FastMap<Reg, Reg> = FastMap::default();
    for r in own.collect::<Vec<_>>() {
        names.insert(r, f.register(f.regs[r.idx()]));
    }
    for i in &mut copy.insts {
        i.dst.iter_mut().for_each(|d| *d = names.get(d).copied().unwrap_or(*d));
        for v in &mut i.src {
            if let Val::Reg(r) = v {
                *r = names.get(r).copied().unwrap_or(*r);
            }
        }
    }
    copy
}

/// What is known of a register: factors of the thread numbers that are added in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// Nothing yet.
    Open,
    /// The same in all threads but for so many times their numbers.
    Threads([u64; 3]),
    /// Anything.
    Any,
}

const SAME: Form = Form::Threads([0; 3]);

/// Makes values of the thread zero, and what they say.
struct Maker<'s> {
    shape: &'s LaunchShape,
    forms: Vec<Form>,
    /// By register: its definitions, as blocks and instructions.
    of: Vec<Vec<(usize, usize)>>,
    /// By register: the one that has its value of thread zero.
    lowest: FastMap<Reg, Reg>,
    /// By predicate, and by what is certain of it.
    known: FastMap<(Reg, bool), Option<Val>>,
    /// What is put behind instructions: their blocks, their numbers.
    made: Vec<(usize, usize, Inst)>,
}

impl<'s> Maker<'s> {
    /// `None` where loops inside each other keep it from being found out soon.
    fn of(f: &Function, shape: &'s LaunchShape) -> Option<Maker<'s>> {
        let of = definitions(f);
        let mut forms = vec![Form::Open; f.regs.len()];
        f.blocks.iter().filter_map(|b| b.term.result()).for_each(|r| forms[r.idx()] = Form::Any);
        // What nobody writes is a parameter of a function.
        forms.iter_mut().zip(&of).filter(|(_, of)| of.is_empty()).for_each(|(form, _)| *form = Form::Any);
        let mut changed = true;
        for _ in 0..MOST_WALKS {
            changed = false;
            for inst in f.blocks.iter().flat_map(|b| &b.insts) {
                let found = form_of(inst, &forms, shape);
                for d in &inst.dst {
                    let form = &mut forms[d.idx()];
                    let next = match (*form, found) {
                        (_, Form::Open) => *form,
                        (Form::Open, found) => found,
                        (form, found) if form == found => form,
                        _ => Form::Any,
                    };
                    changed |= *form != next;
                    *form = next;
                }
            }
            if !changed {
                break;
            }
        }
        let (lowest, known) = (FastMap::default(), FastMap::default());
        (!changed).then(|| Maker { shape, forms, of, lowest, known, made: Vec::new() })
    }

    /// How far the greatest value of all threads is from that of thread zero.
    fn apart(&self, v: Val) -> Option<u64> {
        match v {
            Val::Imm(..) => Some(0),
            Val::Reg(r) => match self.forms.get(r.idx())? {
                Form::Threads(by) => Some(distance(by, self.shape)),
                Form::Open | Form::Any => None,
            },
        }
    }

    /// Whether a predicate is made of comparisons alone, with one of a value that differs between threads and changes in the loop.
    fn is_worth_it(&self, f: &Function, cond: Reg) -> bool {
        let (mut work, mut changes, mut n) = (vec![cond], false, 0);
        while let Some(p) = work.pop() {
            n += 1;
            let &[(b, i)] = &self.of[p.idx()][..] else { return false };
            let inst = &f.blocks[b].insts[i];
            match inst.op {
                _ if n > MOST_MAKERS || inst.guarded => return false,
                Op::Pure(Pure::ICmp(_, Int { ty: Ty::B32, .. })) => {
                    let is_changing = |v: &Val| {
                        matches!(v, Val::Reg(r) if self.of[r.idx()].len() > 1) && self.apart(*v).is_some_and(|n| n > 0)
                    };
                    changes |= inst.src.iter().any(is_changing);
                }
                Op::Pure(Pure::And(Ty::P) | Pure::Or(Ty::P) | Pure::Not(Ty::P)) => {
                    for v in &inst.src {
                        let Val::Reg(r) = v else { return false };
                        work.push(*r);
                    }
                }
                _ => return false,
            }
        }
        changes
    }

    /// A predicate that holds only if another one is `holds` in all threads.
    fn certain(&mut self, f: &mut Function, p: Reg, holds: bool) -> Option<Val> {
        if let Some(known) = self.known.get(&(p, holds)) {
            return *known;
        }
        let made = self.made_certain(f, p, holds);
        self.known.insert((p, holds), made);
        made
    }

    fn made_certain(&mut self, f: &mut Function, p: Reg, holds: bool) -> Option<Val> {
        let &[(b, i)] = &self.of[p.idx()][..] else { return None };
        let inst = f.blocks[b].insts[i].clone();
        let at = (b, i);
        let Op::Pure(op) = inst.op else { return None };
        match (op, &inst.src[..]) {
            (Pure::ICmp(cmp, int), &[x, y]) => {
                let cmp = if holds { cmp } else { cmp.opposite()? };
                self.compared(f, at, cmp, int, [x, y])
            }
            (Pure::Not(_), &[Val::Reg(x)]) => self.certain(f, x, !holds),
            (Pure::And(_) | Pure::Or(_), &[Val::Reg(x), Val::Reg(y)]) => {
                let is_both = matches!(op, Pure::And(_)) == holds;
                match (self.certain(f, x, holds), self.certain(f, y, holds)) {
                    (Some(x), Some(y)) => {
                        let op = if is_both { Pure::And(Ty::P) } else { Pure::Or(Ty::P) };
                        Some(self.make(f, at, op, &[x, y], Ty::P))
                    }
                    (x, y) if !is_both => x.or(y),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// A predicate that holds only if a comparison does in all threads.
    fn compared(&mut self, f: &mut Function, at: (usize, usize), cmp: Cmp, int: Int, src: [Val; 2]) -> Option<Val> {
        let apart = [self.apart(src[0])?, self.apart(src[1])?];
        if apart.iter().any(|n| *n > 0) && int.ty != Ty::B32 {
            return None;
        }
        let low = src.map(|v| self.lowest(f, v));
        let mut high = low;
        let mut all: Vec<Val> = Vec::new();
        for k in (0..2).filter(|k| apart[*k] > 0) {
            high[k] = self.make(f, at, Pure::Add(int.ty), &[low[k], Val::Imm(apart[k], int.ty)], int.ty);
            all.push(self.make(f, at, Pure::ICmp(Cmp::Le, int), &[low[k], high[k]], Ty::P));
        }
        let src = match cmp {
            Cmp::Lt | Cmp::Le => [high[0], low[1]],
            Cmp::Gt | Cmp::Ge => [low[0], high[1]],
            Cmp::Eq | Cmp::Ne if all.is_empty() => low,
            _ => return None,
        };
        all.push(self.make(f, at, Pure::ICmp(cmp, int), &src, Ty::P));
        all.into_iter().reduce(|a, b| self.make(f, at, Pure::And(Ty::P), &[a, b], Ty::P))
    }

    /// The value of thread zero, beside which the thread's own one lies.
    fn lowest(&mut self, f: &mut Function, v: Val) -> Val {
        let Val::Reg(r) = v else { return v };
        if self.forms[r.idx()] == SAME {
            return v;
        }
        if let Some(low) = self.lowest.get(&r) {
            return Val::Reg(*low);
        }
        let low = f.register(f.regs[r.idx()]);
        self.lowest.insert(r, low);
        for (b, i) in self.of[r.idx()].clone() {
            let inst = f.blocks[b].insts[i].clone();
            let made = match inst.op {
                Op::Sreg(_) => Inst {
                    op: Op::Pure(Pure::Mov(Ty::B32)),
                    dst: smallvec![low],
                    src: smallvec![Val::Imm(0, Ty::B32)],
                    ..inst
                },
                _ => {
                    let src = inst.src.iter().map(|v| self.lowest(f, *v)).collect();
                    Inst { dst: smallvec![low], src, ..inst }
                }
            };
            self.made.push((b, i, made));
        }
        Val::Reg(low)
    }

    fn make(&mut self, f: &mut Function, (b, i): (usize, usize), op: Pure, src: &[Val], ty: Ty) -> Val {
        let d = f.register(ty);
        let span = f.blocks[b].insts[i].span;
        let inst = Inst { op: Op::Pure(op), dst: smallvec![d], src: src.into(), guarded: false, span };
        self.made.push((b, i, inst));
        Val::Reg(d)
    }

    /// Puts what was made behind what it was made of.
    fn insert(self, f: &mut Function) {
        let mut by_block: FastMap<usize, Vec<(usize, Inst)>> = FastMap::default();
        self.made.into_iter().for_each(|(b, i, inst)| by_block.entry(b).or_default().push((i, inst)));
        for (b, mut made) in by_block {
            // What was made for one instruction stays in its order.
            made.sort_by_key(|(i, _)| *i);
            let mut made = made.into_iter().peekable();
            let insts = std::mem::take(&mut f.blocks[b].insts);
            for (i, inst) in insts.into_iter().enumerate() {
                f.blocks[b].insts.push(inst);
                while let Some((_, inst)) = made.next_if(|m| m.0 == i) {
                    f.blocks[b].insts.push(inst);
                }
            }
        }
    }
}

/// How far apart values are that are made of thread numbers.
fn distance(by: &[u64; 3], shape: &LaunchShape) -> u64 {
    by.iter().zip(shape.ntid).map(|(by, n)| by * u64::from(n.saturating_sub(1))).sum()
}

/// What is known of the result of an instruction, by what is known of its sources.
fn form_of(inst: &Inst, forms: &[Form], shape: &LaunchShape) -> Form {
    let of = |v: &Val| match v {
        Val::Imm(..) => SAME,
        Val::Reg(r) => forms[r.idx()],
    };
    let is_plain = !inst.guarded && inst.dst.len() == 1;
    match inst.op {
        Op::Sreg(Sreg::Tid(i @ 0..3)) => {
            let mut by = [0; 3];
            by[usize::from(i)] = 1;
            return Form::Threads(by);
        }
        Op::Sreg(Sreg::Ctaid(_) | Sreg::Ntid(_) | Sreg::Nctaid(_)) | Op::ParamAddr { .. } => return SAME,
        Op::Load { access, .. } if is_plain && access.space == StateSpace::ParamEntry => {}
        Op::Pure(_) if is_plain => {}
        _ => return Form::Any,
    }
    if inst.src.iter().any(|v| of(v) == Form::Any) {
        return Form::Any;
    }
    if inst.src.iter().all(|v| of(v) == SAME) {
        return SAME;
    }
    if inst.src.iter().any(|v| of(v) == Form::Open) {
        return Form::Open;
    }
    let by = |k: usize| match of(&inst.src[k]) {
        Form::Threads(by) => by,
        Form::Open | Form::Any => [0; 3],
    };
    let times = |by: [u64; 3], n: u64| by.map(|x| x.saturating_mul(n));
    let number = |k: usize| match inst.src[k] {
        Val::Imm(n, _) => Some(n),
        Val::Reg(_) => None,
    };
    let made = match inst.op {
        Op::Pure(Pure::Mov(Ty::B32)) => Some(by(0)),
        Op::Pure(Pure::Add(Ty::B32)) => {
            let (x, y) = (by(0), by(1));
            Some(std::array::from_fn(|k| x[k] + y[k]))
        }
        Op::Pure(Pure::Sub(Ty::B32)) if of(&inst.src[1]) == SAME => Some(by(0)),
        Op::Pure(Pure::Shl(Ty::B32)) => number(1).filter(|n| *n < 24).map(|n| times(by(0), 1 << n)),
        Op::Pure(Pure::Mul(Ty::B32)) => number(1).filter(|n| *n < 1 << 24).map(|n| times(by(0), n)),
        _ => None,
    };
    match made {
        Some(by) if by.iter().all(|n| *n < MOST_APART) && distance(&by, shape) < MOST_APART => Form::Threads(by),
        _ => Form::Any,
    }
}
