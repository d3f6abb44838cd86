//! Ends of blocks, in full and masked copies.

use std::mem::offset_of;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::analysis::shape::PACKS;

use super::rep::{Compare, Logic, Rep};
use super::scalar::int_cc;
use super::whole::{constant, is_uniform};
use super::{Emit, FULL};

/// A comparison in the lowest and in the highest lane of a group.
struct Ends {
    first: Value,
    last: Value,
    /// Whether the lanes between do not wrap, if that is not known.
    ordered: Option<Value>,
}

/// Whether a predicate can hold in all lanes of a warp, and in none.
#[derive(Clone, Copy)]
struct Possible {
    all: bool,
    none: bool,
}

/// What ranges tell of a predicate: lanes that differ do not all stand on the same side of a constant that is near enough.
fn possible_ends(l: &Logic) -> Possible {
    let anything = Possible { all: true, none: true };
    match l {
        Logic::Uniform(_) => anything,
        Logic::Not(a) => {
            let p = possible_ends(a);
            Possible { all: p.none, none: p.all }
        }
        Logic::And(a, b) => Possible { all: possible_ends(a).all && possible_ends(b).all, none: true },
        Logic::Or(a, b) => Possible { all: true, none: possible_ends(a).none && possible_ends(b).none },
        Logic::Compare(c) => {
            let (x, y, cmp) =
                if c.b.0.is_uniform() { (&c.a.0, &c.b.0, c.cmp) } else { (&c.b.0, &c.a.0, c.cmp.swapped()) };
            let bits = c.int.bits();
            if !y.is_uniform() || bits < 32 {
                return anything;
            }
            match cmp {
                Cmp::Eq if x.stride != 0 => return Possible { all: false, none: true },
                Cmp::Ne if x.stride != 0 => return Possible { all: true, none: false },
                _ => {}
            }
            if y.low != y.high || !x.no_wrap(bits, c.int.signed) {
                return anything;
            }
            let shift = 64 - bits;
            let y = if c.int.signed { i128::from((y.low << shift) as i64 >> shift) } else { i128::from(y.low) };
            let reach = (0..x.groups()).map(|g| x.span(g)).map(|(low, high)| i128::from(high - low)).max().unwrap_or(0);
            // The highest lane is at least this, the lowest at most that.
            let (top, bottom) = (i128::from(x.low) + reach, i128::from(x.high) - reach);
            match cmp {
                Cmp::Lt => Possible { all: top < y, none: bottom >= y },
                Cmp::Le => Possible { all: top <= y, none: bottom > y },
                Cmp::Gt => Possible { all: bottom > y, none: top <= y },
                Cmp::Ge => Possible { all: bottom >= y, none: top < y },
                _ => anything,
            }
        }
    }
}

impl Emit<'_, '_> {
    /// Before a back edge: leaves if the launch is to stop. The context is then not run again.
    pub(crate) fn stop_check(&mut self, header: usize) {
        let at = self.load_cta(types::I64, offset_of!(CtaCtx, stop));
        let stop = self.b.ins().load(types::I32, Self::trusted(), at, 0);
        let (cold, go) = (self.cold_block(), self.b.create_block());
        self.b.ins().brif(stop, cold, &[], go, &[]);
        self.b.switch_to_block(cold);
        let state = self.i32(header as i64);
        self.store_warp(state, offset_of!(WarpCtx, state));
        self.give_back(Reason::Stop);
        self.b.switch_to_block(go);
    }

    /// The end of a full copy.
    pub(crate) fn full_term(&mut self, b: usize) {
        let f = self.f;
        let span = f.blocks[b].term_span;
        self.n_scratch_used = 0;
        // Read what the end needs before homes are written: the values are the same.
        match &f.blocks[b].term {
            Term::Jump(t) => self.go_full(b, t.idx()),
            Term::Branch { cond, then, otherwise } => {
                let c = self.rep(*cond);
                self.full_branch(b, &c, then.idx(), otherwise.idx());
            }
            Term::Switch { index, targets } => {
                let i = self.rep(*index);
                self.write_back(b);
                self.written.clear();
                self.full_switch(b, &i, targets);
            }
            Term::Ret | Term::Exit => {
                if self.f.is_entry || matches!(f.blocks[b].term, Term::Ret) {
                    self.retire_all();
                } else {
                    let lanes = self.i32(FULL);
                    self.leave(Stop::Exit { lanes });
                }
            }
            Term::Trap(kind) => self.trap(*kind, span, None),
            Term::Barrier { kind, id, count, pred, dst: _, next } => {
                let simple = *kind == BarKind::Sync
                    && constant(*id) == Some(0)
                    && count.is_none()
                    && pred.is_none()
                    && self.f.is_entry
                    && !self.opt.is_callee;
                if simple {
                    self.write_back(b);
                    self.arrive(next.idx());
                    return;
                }
                let id = self.rep(*id);
                let id = self.lane_of(&id, 0, 0, Ty::B32);
                let count = count.map(|c| {
                    let c = self.rep(c);
                    self.lane_of(&c, 0, 0, Ty::B32)
                });
                let predicates = pred.map(|p| {
                    let p = self.rep(p);
                    self.bits(&p)
                });
                self.write_back(b);
                let lanes = self.i32(FULL);
                self.leave(Stop::Barrier { site: self.plan.sites.number(b), lanes, id, count, predicates });
            }
            Term::Call { callee, target, signature, args, next } => {
                let target = target.map(|t| self.loc(t));
                self.write_back(b);
                let site = CallSite {
                    callee: *callee,
                    target,
                    signature: *signature,
                    args: self.plan.layout.slot_offsets[args.idx()],
                    frame_end: self.frame_end(*args),
                    next: next.0,
                    span,
                };
                let all = self.i32(FULL);
                self.call(site, all);
            }
            Term::Yield { .. } => {
                self.write_back(b);
                let lanes = self.i32(FULL);
                self.leave(Stop::Yield { site: self.plan.sites.number(b), lanes });
            }
        }
    }

    fn retire_all(&mut self) {
        let zero = self.i32(0);
        self.store_warp(zero, offset_of!(WarpCtx, live));
        self.retired();
    }

    /// The context has no live lane: on to the next one.
    fn retired(&mut self) {
        let skip = self.i32(i64::from(self.tables.skip()));
        self.store_warp(skip, offset_of!(WarpCtx, state));
        let n = self.load_cta(types::I32, offset_of!(CtaCtx, retired));
        let n = self.b.ins().iadd_imm_s(n, 1);
        self.store_cta(n, offset_of!(CtaCtx, retired));
        let a = self.advance;
        self.b.ins().jump(a, &[]);
    }

    /// A plain barrier reached by all lanes.
    fn arrive(&mut self, next: usize) {
        let state = self.i32(next as i64);
        self.store_warp(state, offset_of!(WarpCtx, state));
        let all = self.i32(FULL);
        self.store_warp(all, self.pend(next));
        let site = self.i32(i64::from(self.plan.sites.number(self.at.0)));
        self.store_warp(site, WarpCtx::PLAIN_BARRIER);
        let epoch = self.load_cta(types::I32, offset_of!(CtaCtx, epoch));
        self.store_warp(epoch, offset_of!(WarpCtx, wait_epoch));
        let n = self.load_cta(types::I32, offset_of!(CtaCtx, arrived));
        let n = self.b.ins().iadd_imm_s(n, 1);
        self.store_cta(n, offset_of!(CtaCtx, arrived));
        let a = self.advance;
        self.b.ins().jump(a, &[]);
    }

    /// Where the frame of a callee begins whose arguments lie in a slot.
    fn frame_end(&self, args: SlotId) -> u64 {
        let at = self.f.slots[args.idx()].at;
        u64::from(at.map_or(self.tables.frame_bytes, |at| at.frame_end))
    }

    fn call(&mut self, call: CallSite, lanes: Value) {
        let site = self.tables.calls.len() as u32;
        self.tables.calls.push(call);
        self.leave(Stop::Call { site, lanes });
    }

    fn full_branch(&mut self, b: usize, cond: &Rep, then: usize, otherwise: usize) {
        let (yes, no) = (self.b.create_block(), self.b.create_block());
        if !self.plan.chained.has(then) && !self.plan.chained.has(otherwise) {
            self.write_back(b);
            self.written.clear();
        }
        let view = self.view();
        let mut possible = Possible { all: true, none: true };
        if is_uniform(cond)
            && let Rep::Affine(_, base) = cond
        {
            self.b.ins().brif(base[0], yes, &[], no, &[]);
        } else {
            let mut told = false;
            if let Rep::Logic(l) = cond {
                possible = possible_ends(l);
                told = self.branch_if_known(l, possible, yes, no);
            }
            let bits = self.bits(cond);
            if !told && possible.all {
                let all = self.b.ins().icmp_imm_s(IntCC::Equal, bits, i64::from(FULL as u32 as i32));
                let some = self.b.create_block();
                self.b.ins().brif(all, yes, &[], some, &[]);
                self.b.switch_to_block(some);
            }
            if !told && possible.none {
                let mixed = self.b.create_block();
                self.b.ins().brif(bits, mixed, &[], no, &[]);
                self.b.switch_to_block(mixed);
            }
            self.write_back(b);
            self.part(b, &[(then, bits)], otherwise);
        }
        if possible.all {
            self.branch_off(yes, &view);
            self.go_full(b, then);
        }
        if possible.none {
            self.branch_off(no, &view);
            self.go_full(b, otherwise);
        }
    }

    /// Lanes go different ways: sets of lanes to their blocks, the rest to another.
    fn part(&mut self, b: usize, ways: &[(usize, Value)], rest: usize) {
        let mut left = self.i32(FULL);
        for (block, bits) in ways {
            self.add_pending(*block, *bits);
            left = self.b.ins().band_not(left, *bits);
        }
        self.add_pending(rest, left);
        let first = ways.iter().map(|w| w.0).chain([rest]).min().unwrap_or(rest);
        if first <= b {
            self.stop_check(first);
        }
        let p = self.prologue[first];
        self.b.ins().jump(p, &[]);
    }

    /// Branches if scalars tell that a predicate holds in all lanes or in none. Says whether they tell of every warp, so that behind this some
    /// lanes do and some do not.
    fn branch_if_known(&mut self, l: &Logic, possible: Possible, yes: clif::Block, no: clif::Block) -> bool {
        let mut ends = Vec::new();
        if !(possible.all || possible.none) || !self.ends(l, &mut ends) {
            return false;
        }
        if possible.none {
            let any = self.known(l, &mut ends.iter(), false);
            let some = self.b.create_block();
            self.b.ins().brif(any, some, &[], no, &[]);
            self.b.switch_to_block(some);
        }
        if possible.all {
            let all = self.known(l, &mut ends.iter(), true);
            let open = self.b.create_block();
            self.b.ins().brif(all, yes, &[], open, &[]);
            self.b.switch_to_block(open);
        }
        matches!((l, &ends[..]), (Logic::Compare(_), [e]) if e.len() == 1 && e[0].ordered.is_none())
    }

    /// What scalars tell of the comparisons of a predicate, in order. `false`: nothing of one of them.
    fn ends(&mut self, l: &Logic, out: &mut Vec<Vec<Ends>>) -> bool {
        match l {
            Logic::Uniform(v) => {
                out.push(vec![Ends { first: *v, last: *v, ordered: None }]);
                true
            }
            Logic::Not(a) => self.ends(a, out),
            Logic::And(a, b) | Logic::Or(a, b) => self.ends(a, out) && self.ends(b, out),
            Logic::Compare(c) => match self.ends_of(c) {
                Some(e) => {
                    out.push(e);
                    true
                }
                None => false,
            },
        }
    }

    /// `all`: whether a predicate is known to hold in all lanes; else, whether it may hold in any.
    fn known(&mut self, l: &Logic, ends: &mut std::slice::Iter<'_, Vec<Ends>>, all: bool) -> Value {
        match l {
            Logic::Not(a) => {
                let v = self.known(a, ends, !all);
                self.b.ins().bxor_imm_s(v, 1)
            }
            Logic::And(a, b) | Logic::Or(a, b) => {
                let (x, y) = (self.known(a, ends, all), self.known(b, ends, all));
                if matches!(l, Logic::And(..)) { self.b.ins().band(x, y) } else { self.b.ins().bor(x, y) }
            }
            Logic::Uniform(_) | Logic::Compare(_) => {
                let mut sum: Option<Value> = None;
                for e in ends.next().into_iter().flatten() {
                    let v = match (all, e.first == e.last) {
                        (_, true) => e.first,
                        (true, false) => self.b.ins().band(e.first, e.last),
                        (false, false) => self.b.ins().bor(e.first, e.last),
                    };
                    let v = match (e.ordered, all) {
                        (None, _) => v,
                        (Some(o), true) => self.b.ins().band(v, o),
                        (Some(o), false) => {
                            let wraps = self.b.ins().bxor_imm_s(o, 1);
                            self.b.ins().bor(v, wraps)
                        }
                    };
                    sum = Some(match sum {
                        None => v,
                        Some(s) if all => self.b.ins().band(s, v),
                        Some(s) => self.b.ins().bor(s, v),
                    });
                }
                match sum {
                    Some(v) => v,
                    None => self.b.ins().iconst(types::I8, 0),
                }
            }
        }
    }

    /// An ordering of an affine integer and a uniform one: the ends decide for all lanes, if they agree. One for each group.
    fn ends_of(&mut self, c: &Compare) -> Option<Vec<Ends>> {
        let (swapped, affine, other) = if c.b.0.is_uniform() { (false, &c.a, &c.b) } else { (true, &c.b, &c.a) };
        if !matches!(c.cmp, Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge) || c.int.ty == Ty::B16 {
            return None;
        }
        let (cc, le) = (int_cc(c.cmp, c.int.signed), int_cc(Cmp::Le, c.int.signed));
        let y = other.1[0];
        let mut out = Vec::new();
        for g in 0..affine.0.groups() {
            let (low, high) = affine.0.span(g);
            let first = self.plus(affine.1[g], low, c.int.ty);
            let last = self.plus(affine.1[g], high, c.int.ty);
            let test = |e: &mut Self, x: Value| {
                if swapped { e.b.ins().icmp(cc, y, x) } else { e.b.ins().icmp(cc, x, y) }
            };
            let (t0, t1) = (test(self, first), test(self, last));
            let straight = affine.0.no_wrap(32, c.int.signed) && c.int.ty == Ty::B32;
            let ordered = if straight { None } else { Some(self.b.ins().icmp(le, first, last)) };
            out.push(Ends { first: t0, last: t1, ordered });
        }
        Some(out)
    }

    fn full_switch(&mut self, b: usize, index: &Rep, targets: &[BlockId]) {
        let span = self.f.blocks[b].term_span;
        let bad = self.cold_block();
        if is_uniform(index)
            && let Rep::Affine(_, base) = index
        {
            let arms: Vec<clif::Block> = targets.iter().map(|_| self.b.create_block()).collect();
            let calls: Vec<clif::BlockCall> = arms.iter().map(|a| self.b.func.dfg.block_call(*a, &[])).collect();
            let default = self.b.func.dfg.block_call(bad, &[]);
            let table = self.b.create_jump_table(clif::JumpTableData::new(default, &calls));
            self.b.ins().br_table(base[0], table);
            for (a, t) in arms.into_iter().zip(targets) {
                self.b.switch_to_block(a);
                self.go_full(b, t.idx());
            }
            self.b.switch_to_block(bad);
            self.trap_of_index(span, index, targets.len(), None);
            return;
        }
        let rows = self.rows(index, Ty::B32);
        let m = self.i32(FULL);
        self.scatter(b, &rows, targets, m, bad);
    }

    /// Lanes of `m` to their targets by index.
    fn scatter(&mut self, b: usize, rows: &[Value], targets: &[BlockId], m: Value, bad: clif::Block) {
        let span = self.f.blocks[b].term_span;
        let mut left = m;
        let mut ways: Vec<(usize, Value)> = Vec::new();
        for (k, t) in targets.iter().enumerate() {
            let want = self.vector_const32([k as u32; 4]);
            let hit: Vec<Value> = (0..PACKS).map(|p| self.b.ins().icmp(IntCC::Equal, rows[p], want)).collect();
            let bits = self.bits_of_rows(&hit);
            let bits = self.b.ins().band(bits, m);
            left = self.b.ins().band_not(left, bits);
            ways.push((t.idx(), bits));
        }
        let go = self.b.create_block();
        self.b.ins().brif(left, bad, &[], go, &[]);
        self.b.switch_to_block(bad);
        self.trap_of_index(span, &Rep::Rows(rows.to_vec()), targets.len(), Some(left));
        self.b.switch_to_block(go);
        for (t, bits) in &ways {
            self.add_pending(*t, *bits);
        }
        let first = ways.iter().map(|w| w.0).min().unwrap_or(b + 1);
        if first <= b {
            self.stop_check(first);
            let p = self.prologue[first];
            self.b.ins().jump(p, &[]);
        } else {
            let next = self.next_pendable(b);
            self.b.ins().jump(next, &[]);
        }
    }

    /// The end of a masked copy. `taken`: bits of the branch's predicate, if the block made it.
    pub(crate) fn masked_term(&mut self, b: usize, m: Value, taken: Option<Value>) {
        let f = self.f;
        let span = f.blocks[b].term_span;
        self.n_scratch_used = 0;
        match &f.blocks[b].term {
            Term::Jump(t) => {
                self.add_pending(t.idx(), m);
                self.go_on(b, (t.idx() <= b).then_some((t.idx(), m)));
            }
            Term::Branch { cond, then, otherwise } => {
                let taken = match taken {
                    Some(t) => t,
                    None => self.masked_bits(*cond),
                };
                let yes = self.b.ins().band(taken, m);
                let no = self.b.ins().band_not(m, taken);
                self.add_pending(then.idx(), yes);
                self.add_pending(otherwise.idx(), no);
                let back = [(then.idx(), yes), (otherwise.idx(), no)].into_iter().find(|w| w.0 <= b);
                self.go_on(b, back);
            }
            Term::Switch { index, targets } => {
                let rows = match self.scalar_source(*index) {
                    Some((s, base)) => self.rows(&Rep::Affine(s, base), Ty::B32),
                    None => self.row_vectors(*index),
                };
                let bad = self.cold_block();
                self.scatter(b, &rows, targets, m, bad);
            }
            Term::Ret | Term::Exit => {
                if !self.f.is_entry && matches!(f.blocks[b].term, Term::Exit) {
                    self.leave(Stop::Exit { lanes: m });
                    return;
                }
                let live = self.load_warp(types::I32, offset_of!(WarpCtx, live));
                let live = self.b.ins().band_not(live, m);
                self.store_warp(live, offset_of!(WarpCtx, live));
                let gone = self.b.create_block();
                let next = self.next_pendable(b);
                self.b.ins().brif(live, next, &[], gone, &[]);
                self.b.switch_to_block(gone);
                self.retired();
            }
            Term::Trap(kind) => self.trap(*kind, span, Some(m)),
            Term::Barrier { kind: _, id, count, pred, dst: _, next: _ } => {
                let id = self.first_active(*id, m);
                let count = count.map(|c| self.first_active(c, m));
                let predicates = pred.map(|p| {
                    let bits = self.masked_bits(p);
                    self.b.ins().band(bits, m)
                });
                self.leave(Stop::Barrier { site: self.plan.sites.number(b), lanes: m, id, count, predicates });
            }
            Term::Call { callee, target, signature, args, next } => {
                let target = target.map(|t| match (self.scalar_source(t), t) {
                    (None, Val::Reg(r)) => self.row_of(r),
                    _ => self.loc(t),
                });
                let site = CallSite {
                    callee: *callee,
                    target,
                    signature: *signature,
                    args: self.plan.layout.slot_offsets[args.idx()],
                    frame_end: self.frame_end(*args),
                    next: next.0,
                    span,
                };
                self.call(site, m);
            }
            Term::Yield { .. } => self.leave(Stop::Yield { site: self.plan.sites.number(b), lanes: m }),
        }
    }

    fn row_vectors(&mut self, v: Val) -> Vec<Value> {
        let Val::Reg(r) = v else { panic!("{v:?} is no scalar at {}", self.here()) };
        let at = self.word_row(r);
        (0..PACKS).map(|p| self.load_warp(types::I32X4, at as usize + 16 * p)).collect()
    }

    /// A 32-bit value of the first lane of a mask.
    fn first_active(&mut self, v: Val, m: Value) -> Value {
        if let Some((s, base)) = self.scalar_source(v)
            && s.is_uniform()
        {
            return base[0];
        }
        let at = match v {
            Val::Reg(r) if self.scalar_source(v).is_none() => self.word_row(r),
            _ => {
                let rep = self.rep(v);
                let (at, _) = self.scratch_row(Ty::B32);
                let rows = self.rows(&rep, Ty::B32);
                for (i, x) in rows.into_iter().enumerate() {
                    self.store_warp(x, at as usize + 16 * i);
                }
                at
            }
        };
        let lane = self.b.ins().ctz(m);
        let lane = self.b.ins().uextend(types::I64, lane);
        let by = self.b.ins().ishl_imm_s(lane, 2);
        let from = self.b.ins().iadd(self.warp, by);
        self.b.ins().load(types::I32, Self::trusted(), from, at as i32)
    }
}
