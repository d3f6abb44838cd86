//! A function: its registers, variables and blocks.
//!
//! Each PTX register is one register here (a `.b128` one is two, low half first). Statements are walked once; each label starts a block, and
//! so does what follows a change of control flow.

use handloom_check::module as checked;
use handloom_check::module::{Body, LocalKind, RegId, Stmt, SymbolId, SymbolKind, VarId};
use handloom_diag::Span;
use handloom_ir::simt::*;
use handloom_ir::trap::TrapKind;
use handloom_ir::types::*;
use handloom_isa::form::Semantics;
use smallvec::smallvec;

use crate::graph::order_blocks;
use crate::late::results::Late;
use crate::names::Names;
use crate::{passes, short_addresses, yields};

/// Lowers the function of a symbol. One without a body traps when it is called.
pub(crate) fn lower_function(names: &Names, id: SymbolId) -> Function {
    let symbol = names.symbol(id);
    let SymbolKind::Func(decl) = &symbol.kind else {
        panic!("bug: lower: `{}` is no function", symbol.name);
    };
    let mut func = empty_function(symbol, decl);
    let Some(body) = &decl.body else {
        func.blocks[0].term = Term::Trap(TrapKind::BadCall);
        return func;
    };
    let mut cx = FunctionCx::new(names, decl, body, func);
    cx.save_stack();
    cx.load_register_params();
    for stmt in &body.stmts {
        cx.statement(stmt);
    }
    cx.all_loads();
    cx.leave_function(body.end);
    cx.place_late_results();
    func = cx.func;
    order_blocks(&mut func);
    passes::jumps::tidy(&mut func);
    yields::insert(&mut func, false);
    passes::check("lower", &func);
    func
}

fn empty_function(symbol: &checked::Symbol, decl: &checked::Func) -> Function {
    let param_end = decl.results.iter().map(|r| r.offset).min().unwrap_or(decl.param_bytes);
    Function {
        name: symbol.name.clone(),
        is_entry: decl.is_entry,
        blocks: vec![empty_block()],
        regs: vec![],
        slots: vec![],
        param_bytes: decl.param_bytes,
        result_bytes: decl.param_bytes - param_end,
        span: symbol.span,
    }
}

fn empty_block() -> Block {
    Block { insts: vec![], term: Term::Exit, term_span: Span::NONE }
}

/// The registers that stand for a PTX register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home {
    pub(crate) lo: Reg,
    /// The upper half of a `.b128` register.
    pub(crate) hi: Option<Reg>,
    /// Declared type.
    pub(crate) ty: ScalarType,
}

/// Where a variable of the body lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In a slot of the frame.
    Slot(SlotId, u32),
    /// In the incoming parameter block of a function.
    Arg(u32),
    /// In the parameters of the entry.
    Param(u32),
}

impl Place {
    /// The place so many bytes farther on.
    pub(crate) const fn plus(self, bytes: u32) -> Place {
        match self {
            Place::Slot(slot, at) => Place::Slot(slot, at + bytes),
            Place::Arg(at) => Place::Arg(at + bytes),
            Place::Param(at) => Place::Param(at + bytes),
        }
    }
}

/// The lowering of one function, between two statements.
pub(crate) struct FunctionCx<'m> {
    pub(crate) names: &'m Names<'m>,
    pub(crate) decl: &'m checked::Func,
    pub(crate) body: &'m Body,
    pub(crate) func: Function,
    /// The block that the next statement goes to.
    pub(crate) block: BlockId,
    /// Whether that block has its end already: what follows cannot be reached.
    closed: bool,
    homes: Vec<Home>,
    places: Vec<Place>,
    labels: Vec<BlockId>,
    carry: Option<Reg>,
    /// Where the stack stood when the function was entered, if it allocates there.
    pub(crate) stack_at_entry: Option<Reg>,
    /// A slot of this function if its code may hold addresses of local memory in 32 bits.
    pub(crate) short_stack: Option<SlotId>,
    /// An entry that holds addresses of its parameters in 32 bits.
    pub(crate) short_params: bool,
    /// Slots of the argument blocks of the calls that are still to come, in order.
    pub(crate) call_slots: std::vec::IntoIter<SlotId>,
    /// Instructions that come later than they stand.
    pub(crate) late: Late,
}

impl<'m> FunctionCx<'m> {
    fn new(names: &'m Names<'m>, decl: &'m checked::Func, body: &'m Body, mut func: Function) -> Self {
        let mut fresh = |ty: Ty| {
            func.regs.push(ty);
            Reg(func.regs.len() as u32 - 1)
        };
        let homes = body.regs.iter().map(|r| Home {
            lo: fresh(r.ty.ty()),
            hi: (r.ty.bits() == 128).then(|| fresh(Ty::B64)),
            ty: r.ty,
        });
        let homes = homes.collect();
        let first_label = func.blocks.len() as u32;
        let labels: Vec<BlockId> = (0..body.n_labels).map(|i| BlockId(first_label + i)).collect();
        func.blocks.extend(labels.iter().map(|_| empty_block()));
        let (places, call_slots) = place_variables(decl, body, &mut func);
        let call_slots = call_slots.into_iter();
        let short_stack = (names.short_locals && short_addresses::uses_short_addresses(body))
            .then(|| short_addresses::anchor(&mut func));
        let short_params =
            names.module.address_size == 64 && decl.is_entry && short_addresses::makes_short_params(body);
        FunctionCx {
            names,
            decl,
            body,
            func,
            block: BlockId(0),
            closed: false,
            homes,
            places,
            labels,
            carry: None,
            stack_at_entry: None,
            short_stack,
            short_params,
            call_slots,
            late: Late::default(),
        }
    }

    pub(crate) fn home(&self, r: RegId) -> Home {
        self.homes[r.0 as usize]
    }

    /// A register of the lowering's own that operands can name.
    pub(crate) fn another_home(&mut self, like: Home) -> RegId {
        let lo = self.build(Span::NONE, None, |b| b.reg(like.ty.ty()));
        self.homes.push(Home { lo, ..like });
        RegId(self.homes.len() as u32 - 1)
    }

    pub(crate) fn place(&self, v: VarId) -> Place {
        self.places[v.0 as usize]
    }

    pub(crate) fn label(&self, l: checked::LabelId) -> BlockId {
        self.labels[l.0 as usize]
    }

    /// Builds in the current block.
    pub(crate) fn build<R>(&mut self, span: Span, guard: Option<Val>, f: impl FnOnce(&mut Builder) -> R) -> R {
        let mut b = Builder { func: &mut self.func, block: self.block, span, guard, carry: self.carry };
        let r = f(&mut b);
        self.carry = b.carry;
        r
    }

    pub(crate) fn is_carry(&self, r: Reg) -> bool {
        self.carry == Some(r)
    }

    pub(crate) fn new_block(&mut self) -> BlockId {
        self.func.blocks.push(empty_block());
        BlockId(self.func.blocks.len() as u32 - 1)
    }

    /// Ends the current block. What follows goes to `next`, or cannot be reached.
    pub(crate) fn end_block(&mut self, term: Term, span: Span, next: Option<BlockId>) {
        if !self.closed {
            let block = &mut self.func.blocks[self.block.idx()];
            block.term = term;
            block.term_span = span;
        }
        self.closed = next.is_none();
        self.block = next.unwrap_or_else(|| self.new_block());
    }

    /// Notes where the stack ends, in a function that allocates on it and returns.
    fn save_stack(&mut self) {
        let allocates = |s: &Stmt| matches!(s, Stmt::Inst(i) if matches!(i.form.opcode, "alloca" | "stackrestore"));
        if !self.decl.is_entry && self.body.stmts.iter().any(allocates) {
            self.stack_at_entry = Some(self.build(Span::NONE, None, |b| {
                let at = b.reg(Ty::B64);
                b.push(Op::Stack(StackOp::Save), smallvec![at], smallvec![]);
                at
            }));
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Label(l) => {
                self.all_loads();
                let to = self.label(*l);
                self.end_block(Term::Jump(to), Span::NONE, Some(to));
            }
            Stmt::Inst(inst) => {
                if self.names.marked {
                    self.mark(inst);
                }
                self.instruction(inst);
            }
            Stmt::Loc { .. } | Stmt::Pragma(_) => {}
        }
    }

    /// Marks the begin of a statement, with its guard.
    fn mark(&mut self, inst: &checked::Inst) {
        let guard = inst.guard.map(|g| self.guard_value(g, inst.span));
        self.build(inst.span, None, |b| b.push(Op::Mark, smallvec![], smallvec![]));
        if let (Some(guard), Some(mark)) = (guard, self.func.blocks[self.block.idx()].insts.last_mut()) {
            mark.src.push(guard);
            mark.guarded = true;
        }
    }

    fn instruction(&mut self, inst: &checked::Inst) {
        if !self.late.loads.is_empty() {
            self.loads_before(inst);
        }
        let late = if self.names.late { inst.form.in_registers() } else { None };
        if let Some(late) = late {
            return self.late_results(inst, late);
        }
        self.at_once(inst);
    }

    /// An instruction whose results are there when it is done.
    pub(crate) fn at_once(&mut self, inst: &checked::Inst) {
        match inst.form.semantics {
            Semantics::Timed { now, late } => {
                let guard = inst.guard.map(|g| self.guard_value(g, inst.span));
                self.expand(inst, if self.names.late { late } else { now }, guard);
            }
            Semantics::Wait(run) if self.names.late => {
                let guard = inst.guard.map(|g| self.guard_value(g, inst.span));
                self.expand(inst, run, guard);
            }
            Semantics::Wait(_) => {}
            Semantics::Build(run) => {
                let guard = inst.guard.map(|g| self.guard_value(g, inst.span));
                self.expand(inst, run, guard);
            }
            Semantics::Warp(run) | Semantics::WarpUpdate(run) => self.around(inst, |cx| cx.expand(inst, run, None)),
            Semantics::Attempt(run) => self.around(inst, |cx| cx.attempt(inst, run)),
            Semantics::Hint => {}
            Semantics::Control(control) => self.control(inst, control),
            Semantics::Unsupported(why) => panic!("bug: lower: `{}` passed the checker: {why}", inst.form.opcode),
        }
    }

    /// The guard as a predicate that is 1 in the lanes that act.
    fn guard_value(&mut self, (reg, negated): (RegId, bool), span: Span) -> Val {
        let p = Val::Reg(self.home(reg).lo);
        if negated { self.build(span, None, |b| b.not(p)) } else { p }
    }

    /// Ends the block so that lanes whose guard holds go to `then` and the others to `otherwise`.
    pub(crate) fn branch_on_guard(&mut self, inst: &checked::Inst, then: BlockId, otherwise: BlockId, next: BlockId) {
        let term = match inst.guard {
            None => Term::Jump(then),
            Some((p, negated)) => {
                let (then, otherwise) = if negated { (otherwise, then) } else { (then, otherwise) };
                Term::Branch { cond: Val::Reg(self.home(p).lo), then, otherwise }
            }
        };
        self.end_block(term, inst.span, Some(next));
    }

    /// Builds something that takes no guard; lanes whose guard does not hold go around it.
    pub(crate) fn around(&mut self, inst: &checked::Inst, build: impl FnOnce(&mut Self)) {
        if inst.guard.is_none() {
            return build(self);
        }
        let (inside, behind) = (self.new_block(), self.new_block());
        self.branch_on_guard(inst, inside, behind, inside);
        build(self);
        self.end_block(Term::Jump(behind), inst.span, Some(behind));
    }
}

/// Finds a place for each variable of the body, and an argument block for each call.
///
/// A `.param` variable of a call lies directly in the argument block of the first call that takes it; the call has nothing to copy then.
fn place_variables(decl: &checked::Func, body: &Body, func: &mut Function) -> (Vec<Place>, Vec<SlotId>) {
    let mut places: Vec<Option<Place>> = body.vars.iter().map(|v| own_place(decl, v.kind)).collect();
    let mut slot = |size: u32, align: u32| {
        func.slots.push(Slot::new(size.max(1), align.max(1)));
        SlotId(func.slots.len() as u32 - 1)
    };
    let mut call_slots = Vec::new();
    for stmt in &body.stmts {
        let Stmt::Inst(inst) = stmt else { continue };
        for operand in inst.dst.iter().chain(&inst.src) {
            let checked::Operand::Call(call) = operand else { continue };
            let layouts = || call.params.iter().chain(&call.result_params);
            let block = slot(call.param_bytes, layouts().map(|p| p.align).max().unwrap_or(1));
            call_slots.push(block);
            for (arg, layout) in call.args.iter().chain(&call.results).zip(layouts()) {
                let checked::CallArg::Var(v) = arg else { continue };
                let var = &body.vars[v.0 as usize];
                let fits = var.size <= layout.size && layout.offset.is_multiple_of(var.align.max(1));
                if var.kind == LocalKind::CallParam && fits {
                    places[v.0 as usize].get_or_insert(Place::Slot(block, layout.offset));
                }
            }
        }
    }
    let vars = body.vars.iter().zip(places);
    let places = vars.map(|(v, p)| p.unwrap_or_else(|| Place::Slot(slot(v.size, v.align), 0)));
    (places.collect(), call_slots)
}

fn own_place(decl: &checked::Func, kind: LocalKind) -> Option<Place> {
    let at = |offset| Some(if decl.is_entry { Place::Param(offset) } else { Place::Arg(offset) });
    match kind {
        LocalKind::Local | LocalKind::CallParam => None,
        LocalKind::Param(i) => at(decl.params[i as usize].offset),
        LocalKind::Result(i) => at(decl.results[i as usize].offset),
    }
}
