//! Sums in device memory that nobody may look at before the code is left.
//!
//! # The model
//! What a reduction adds without an order of its own is to be seen by whoever is ordered behind it, and at some time by all others. Where a kernel ends in such sums, nothing in the launch is ordered behind
//! them: no fence, barrier or op between lanes follows, the thread itself reads and writes no device memory any more, and nobody waits for a value, since the
//! kernel has no strong read at all. So the runtime may collect them, line by line (`Routine::Add`), and bring them to memory when code comes back to it: CTAs of a host thread that add to the same words take
//! the host's locked instructions once for all of them.

use handloom_diag::hash::FastSet;
use handloom_ir::simt::{AtomAccess, Counting, Inst, Op, Term};
use handloom_ir::types::{AtomOp, Order, ScalarType, StateSpace};
use handloom_plan::Plan;
use handloom_plan::abi::Routine;
use iced_x86::{Code, Register};

use crate::access::{Access, Limits};
use crate::emit::*;

/// Whether an access is a sum that may be collected.
fn is_sum(a: &AtomAccess) -> bool {
    let is_word = matches!(a.ty, ScalarType::U32 | ScalarType::S32 | ScalarType::B32);
    a.op == AtomOp::Add && is_word && a.count == 1 && a.space == StateSpace::Global && a.order == Order::Relaxed
}

/// Whether an instruction may stand before such a sum: it neither waits for others nor frees memory.
fn may_come_before(op: &Op) -> bool {
    match op {
        Op::Load { access, .. } | Op::Store { access, .. } => access.order == Order::Weak && !access.is_async,
        Op::Atom { access, .. } => access.space == StateSpace::Shared && access.order == Order::Relaxed,
        Op::Red { access, .. } => access.order == Order::Relaxed,
        Op::Sreg(_) | Op::Shfl(_) | Op::Vote(_) | Op::Redux { .. } | Op::BarWarp | Op::Activemask | Op::Mark => true,
        op => op.is_value(),
    }
}

/// Whether an instruction may stand behind one: it touches other memory, or adds too.
fn may_follow(op: &Op) -> bool {
    use StateSpace::{Const, Local, ParamEntry, ParamFunc, Shared};
    let is_elsewhere = |s: StateSpace| matches!(s, Const | Local | ParamEntry | ParamFunc | Shared);
    match op {
        Op::Load { access, .. } | Op::Store { access, .. } => is_elsewhere(access.space),
        Op::Atom { access, .. } => access.space == StateSpace::Shared,
        Op::Red { access, .. } => access.space == StateSpace::Shared || is_sum(access),
        Op::Sreg(_) | Op::Mark => true,
        op => op.is_value(),
    }
}

/// The sums of a function that may be collected, by block and instruction.
pub(crate) fn late_sums(plan: &Plan) -> FastSet<(usize, usize)> {
    let (f, o) = (&plan.func, &plan.options);
    let is_plain = f.is_entry
        && !o.is_callee
        && !o.cluster
        && !o.audited
        && o.counted == Counting::Nothing
        && !plan.tells_dirty
        && f.blocks.iter().all(|b| is_plain_end(&b.term) && b.insts.iter().all(|i| may_come_before(&i.op)));
    if !is_plain {
        return FastSet::default();
    }
    let is_late = |b: usize, i: usize| {
        let follows = |from: &[Inst]| from.iter().all(|i| may_follow(&i.op));
        let mut seen = vec![false; f.blocks.len()];
        let mut work: Vec<usize> = vec![b];
        let mut is_right = follows(&f.blocks[b].insts[i..]);
        while let Some(x) = work.pop() {
            is_right &= !matches!(f.blocks[x].term, Term::Barrier { .. });
            for t in f.blocks[x].term.successors() {
                if !std::mem::replace(&mut seen[t.idx()], true) {
                    is_right &= follows(&f.blocks[t.idx()].insts);
                    work.push(t.idx());
                }
            }
        }
        is_right
    };
    let sums = f.blocks.iter().enumerate().flat_map(|(b, x)| {
        let in_block =
            x.insts.iter().enumerate().filter(|(_, i)| matches!(&i.op, Op::Red { access, .. } if is_sum(access)));
        in_block.map(move |(i, _)| (b, i))
    });
    sums.filter(|(b, i)| is_late(*b, *i)).collect()
}

fn is_plain_end(term: &Term) -> bool {
    matches!(
        term,
        Term::Jump(_) | Term::Branch { .. } | Term::Switch { .. } | Term::Ret | Term::Exit | Term::Barrier { .. }
    )
}

impl Emit<'_> {
    /// Whether an access is a sum of words that follow each other through the warp, which may be collected.
    pub(crate) fn is_late_sum(&self, x: &Access) -> bool {
        let is_row = self.shape(x.class.address).is_some_and(|s| s.is_linear() && s.stride == 4);
        is_row && !x.short && self.late.contains(&self.at)
    }

    /// Hands such a sum to the runtime.
    pub(crate) fn late_sum(&mut self, inst: &Inst, x: &Access) {
        let s = self.clean_src(inst.src[1]);
        let row = self.take_scratch(128);
        self.put_row(&s, row);
        self.lane_address(x, 0);
        if x.limits != Limits::Safe {
            self.limits(x);
            self.test_row(x);
        }
        self.a.op2(Code::Mov_r64_rm64, Register::R8, RAX);
        self.a.number(Register::R9, u64::from(row));
        self.routine(Routine::Add, 0, x.lanes);
        self.go_on_if_right();
    }
}
