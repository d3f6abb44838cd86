//! Operands: values of sources, addresses, and writing of results.
//!
//! Semantics see each operand at its instruction type. A wider register is chopped to it before, and a result is extended to a wider
//! register behind (Operand Size Exceeding Instruction-Type Size).

use handloom_check::module as checked;
use handloom_check::module::{AddrBase, Fit, LocalKind, Operand};
use handloom_diag::Span;
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_isa::form::{self, Arg, Cx, Role, Semantics};
use smallvec::{SmallVec, smallvec};

use crate::function::{FunctionCx, Home, Place};
use crate::{rank_masks, short_addresses};

/// Offsets below this, as most are, are added to an address of local memory when it is whole.
const FAR: i64 = 1 << 20;

/// One result: where it goes.
struct Target {
    to: Reg,
    value: Val,
}

/// Results of an instruction: one or two as a rule.
type Targets = SmallVec<[Target; 2]>;

/// Sources of an instruction.
type Args = SmallVec<[Arg; 3]>;

impl FunctionCx<'_> {
    /// Expands an instruction in the current block. `guard` is 1 in the lanes that act; the others keep what they have.
    pub(crate) fn expand(&mut self, inst: &checked::Inst, run: fn(&mut Cx<'_, '_>), guard: Option<Val>) {
        let first_inst = self.func.blocks[self.block.idx()].insts.len();
        let first_reg = self.func.regs.len();
        let held = if let Semantics::WarpUpdate(_) = inst.form.semantics { &inst.dst[..] } else { &[] };
        let sources = inst.src.iter().chain(held).enumerate();
        let mut args: Args = sources.map(|(i, o)| self.source(o, takes_shared_offset(inst, i), inst.span)).collect();
        self.complete_short_addresses(inst, &mut args);
        self.mask_ranks(inst, &mut args);
        let dst_sinks: SmallVec<[_; 1]> = inst.dst.iter().map(sinks).collect();
        let results = self.build(inst.span, guard, |b| {
            let mut cx = Cx { u: &inst.u, b, args: &args, dst_sinks: &dst_sinks, results: smallvec![] };
            run(&mut cx);
            cx.results
        });
        self.resolve_param_space(inst, first_inst);
        self.leave_out_sinks(inst, first_inst);
        let targets = self.targets(inst, &results);
        self.write_targets(targets, guard, first_inst, first_reg, inst.span);
        self.split_behind_warp_ops(first_inst, inst.span);
    }

    /// A loop around an attempt.
    pub(crate) fn attempt(&mut self, inst: &checked::Inst, run: fn(&mut Cx<'_, '_>) -> Val) {
        let (again, behind) = (self.new_block(), self.new_block());
        self.build(inst.span, None, |b| b.push(Op::BarWarp, smallvec![], smallvec![Val::Imm(0xffff_ffff, Ty::B32)]));
        self.end_block(Term::Jump(again), inst.span, Some(again));
        let sources = inst.src.iter().enumerate();
        let args: Args = sources.map(|(i, o)| self.source(o, takes_shared_offset(inst, i), inst.span)).collect();
        let cond = self.build(inst.span, None, |b| {
            run(&mut Cx { u: &inst.u, b, args: &args, dst_sinks: &[], results: smallvec![] })
        });
        self.end_block(Term::Branch { cond, then: behind, otherwise: again }, inst.span, Some(behind));
    }

    /// Gives addresses of local memory and of parameters that come from 32-bit registers their upper half.
    ///
    /// Choice: what makes an address generic may get a whole address too, which the distance to a slot leaves as it is (see [`short_addresses`]).
    fn complete_short_addresses(&mut self, inst: &checked::Inst, args: &mut [Arg]) {
        if self.short_stack.is_none() && !self.short_params {
            return;
        }
        let near = match inst.u.space(Role::Space) {
            StateSpace::Local => self.short_stack.map(Op::SlotAddr),
            StateSpace::ParamEntry | StateSpace::ParamFunc => self.short_params.then_some(Op::ParamAddr { offset: 0 }),
            _ => None,
        };
        let Some(near) = near else { return };
        let is_cvta = short_addresses::makes_generic(inst);
        for (operand, arg) in inst.src.iter().zip(args) {
            let mut none = 0;
            let (address, offset) = match (operand, arg) {
                (Operand::Addr { base: AddrBase::Reg(r), .. }, Arg::Addr(a)) if self.home(*r).ty.bits() == 32 => {
                    (&mut a.base, &mut a.offset)
                }
                (Operand::Reg { ty, .. }, Arg::Vals(v)) if is_cvta && ty.bits() == 64 => (&mut v[0], &mut none),
                _ => continue,
            };
            let short = *address;
            // The sum with the offset wraps at 32 bits. With one that is as small as usual it does so far from all local memory.
            let far = if (-FAR..FAR).contains(offset) { 0 } else { std::mem::take(offset) };
            *address = self.build(inst.span, None, |b| {
                let near = address_op(b, near);
                let (mut low, near_low) = (b.half(short, false), b.half(near, false));
                if far != 0 {
                    low = b.add(low, Val::Imm(far as u64 & Ty::B32.mask(), Ty::B32));
                }
                let distance = b.sub(low, near_low);
                let distance = b.ext(distance, 32, true, Ty::B64);
                b.add(near, distance)
            });
        }
    }

    /// Addresses of shared memory of which the program has masked bits of the rank out are those in the cta that is meant.
    fn mask_ranks(&mut self, inst: &checked::Inst, args: &mut [Arg]) {
        for (kept, arg) in rank_masks::kept_ranks(self.body, inst).into_iter().zip(args) {
            if let (Some(kept), Arg::Addr(a)) = (kept, arg) {
                let base = a.base;
                a.base = self.build(inst.span, None, |b| rank_masks::masked(b, base, kept));
            }
        }
    }

    fn source(&mut self, operand: &Operand, keep_32: bool, span: Span) -> Arg {
        match operand {
            Operand::Addr { base, offset } => {
                let addr = self.address(*base, *offset, keep_32, span);
                Arg::Addr(addr)
            }
            Operand::Point(p) => {
                let mut place = |(base, offset): (AddrBase, i64)| {
                    let is_param = matches!(base, AddrBase::Var(v) if matches!(self.place(v), Place::Param(_)));
                    form::Place { addr: self.address(base, offset, false, span), is_param }
                };
                let (at, sampler) = (place(p.at), p.sampler.map(&mut place));
                let mut coordinates = Vals::new();
                self.source_values(&p.coordinates, span, &mut coordinates);
                let coordinates = coordinates.into_vec();
                Arg::Point(form::Point { at, sampler, coordinates })
            }
            other => {
                let mut values = Vals::new();
                self.source_values(other, span, &mut values);
                Arg::Vals(values)
            }
        }
    }

    /// The only value of a source operand.
    pub(crate) fn source_value(&mut self, operand: &Operand, span: Span) -> Val {
        let mut values = Vals::new();
        self.source_values(operand, span, &mut values);
        values[0]
    }

    fn source_values(&mut self, operand: &Operand, span: Span, out: &mut Vals) {
        match operand {
            Operand::Reg { reg, ty, fit: _, negated } => {
                let home = self.home(*reg);
                let value = self.build(span, None, |b| {
                    let v = chop(b, Val::Reg(home.lo), home.ty.bits(), *ty);
                    if *negated { b.not(v) } else { v }
                });
                out.push(value);
                if ty.bits() == 128 {
                    out.extend(home.hi.map(Val::Reg));
                }
            }
            Operand::Imm { bits, high, ty } => {
                out.push(immediate(*bits, *ty));
                if ty.bits() == 128 {
                    out.push(Val::Imm(*high, Ty::B64));
                }
            }
            Operand::Sreg { sreg, ty, to } => {
                let v = self.build(span, None, |b| special_register(b, *sreg, *ty, *to));
                out.push(v);
            }
            Operand::Vector(parts) => {
                let known = parts.iter().find_map(|p| match p {
                    Operand::Reg { ty, .. } | Operand::Imm { ty, .. } => Some(*ty),
                    _ => None,
                });
                for p in parts {
                    match (p, known) {
                        // An element that a store leaves out.
                        (Operand::Sink, Some(ty)) => out.push(immediate(0, ty)),
                        _ => self.source_values(p, span, out),
                    }
                }
            }
            Operand::AddrOf { base, offset, ty } => {
                let v = self.address_value(*base, *offset, *ty, span);
                out.push(v);
            }
            Operand::Sink
            | Operand::Addr { .. }
            | Operand::Point(_)
            | Operand::Label(_)
            | Operand::Labels(_)
            | Operand::Call(_) => {
                panic!("bug: lower: {operand:?} is read as a value")
            }
        }
    }

    /// An address operand: a base of 64 bits, or of 32 bits where `keep_32` says that an offset in shared memory may stay one.
    fn address(&mut self, base: AddrBase, offset: i64, keep_32: bool, span: Span) -> Addr {
        let narrow = self.names.module.address_size == 32;
        let base = match base {
            AddrBase::Reg(r) => {
                let home = self.home(r);
                let v = Val::Reg(home.lo);
                self.build(span, None, |b| match b.ty(v) {
                    Ty::B32 if keep_32 => v,
                    Ty::B64 if !narrow => v,
                    ty => b.ext(v, ty.bits().min(if narrow { 32 } else { 64 }), false, Ty::B64),
                })
            }
            AddrBase::Symbol(_) | AddrBase::Var(_) => {
                let (base, at) = self.base_address(base, span);
                return Addr { base, offset: offset + i64::from(at) };
            }
            AddrBase::Absolute => return Addr { base: Val::Imm(offset.cast_unsigned(), Ty::B64), offset: 0 },
        };
        Addr { base, offset }
    }

    /// The address of a variable or symbol: a value of 64 bits, and bytes to add to it.
    pub(crate) fn base_address(&mut self, base: AddrBase, span: Span) -> (Val, u32) {
        let (op, at) = match base {
            AddrBase::Symbol(s) if self.names.space(s) == Some(StateSpace::Shared) => (Op::SharedAddr(SymId(s.0)), 0),
            AddrBase::Symbol(s) => (Op::SymAddr(SymId(s.0)), 0),
            AddrBase::Var(v) => match self.place(v) {
                Place::Slot(slot, at) => (Op::SlotAddr(slot), at),
                Place::Arg(offset) => (Op::ArgAddr { offset }, 0),
                Place::Param(offset) => (Op::ParamAddr { offset }, 0),
            },
            AddrBase::Reg(_) | AddrBase::Absolute => panic!("bug: lower: {base:?} has no address of its own"),
        };
        (self.build(span, None, |b| address_op(b, op)), at)
    }

    fn address_value(&mut self, base: AddrBase, offset: i64, ty: ScalarType, span: Span) -> Val {
        let (v, offset) = match base {
            AddrBase::Reg(r) => (Val::Reg(self.home(r).lo), offset),
            AddrBase::Absolute => return immediate(offset.cast_unsigned(), ty),
            AddrBase::Symbol(_) | AddrBase::Var(_) => {
                let (v, at) = self.base_address(base, span);
                (v, offset + i64::from(at))
            }
        };
        self.build(span, None, |b| {
            let from = b.ty(v);
            let v = b.ext(v, from.bits().min(ty.bits()), false, ty.ty());
            if offset == 0 {
                return v;
            }
            let offset = b.imm(offset.cast_unsigned(), ty.ty());
            let sum = b.add(v, offset);
            // A byte lives in 16 bits.
            if ty.bits() == 8 { b.ext(sum, 8, false, ty.ty()) } else { sum }
        })
    }

    /// `.param` means the entry's parameters, the arguments of this function or those of a call, as the variable says. Only the first has
    /// a space of its own here; the others lie in frames, which are local memory.
    fn resolve_param_space(&mut self, inst: &checked::Inst, first_inst: usize) {
        let named = inst.src.iter().find_map(|o| match o {
            Operand::Addr { base: AddrBase::Var(v), .. } => Some(*v),
            _ => None,
        });
        let in_frame = named.is_some_and(|v| match self.body.vars[v.0 as usize].kind {
            LocalKind::Local | LocalKind::CallParam | LocalKind::Result(_) => true,
            LocalKind::Param(_) => !self.decl.is_entry,
        });
        for i in &mut self.func.blocks[self.block.idx()].insts[first_inst..] {
            if let Op::Load { access, .. } | Op::Store { access, .. } = &mut i.op {
                match access.space {
                    StateSpace::ParamFunc if named.is_some() && !in_frame => access.space = StateSpace::ParamEntry,
                    StateSpace::ParamFunc => access.space = StateSpace::Local,
                    StateSpace::ParamEntry if in_frame => access.space = StateSpace::Local,
                    _ => {}
                }
            }
        }
    }

    /// Elements of a store that are sinks are not written.
    fn leave_out_sinks(&mut self, inst: &checked::Inst, first_inst: usize) {
        let Some(Operand::Vector(parts)) = inst.src.iter().find(|o| matches!(o, Operand::Vector(_))) else { return };
        let left_out =
            parts.iter().enumerate().filter(|(_, p)| matches!(p, Operand::Sink)).fold(0, |m, (i, _)| m | 1 << i);
        for i in &mut self.func.blocks[self.block.idx()].insts[first_inst..] {
            if let Op::Store { access, .. } = &mut i.op {
                access.elements &= !left_out;
            }
        }
    }

    /// Pairs destinations with results, widening the results.
    fn targets(&mut self, inst: &checked::Inst, results: &[SmallVec<[Option<Val>; 2]>]) -> Targets {
        let mut targets = Targets::new();
        for (i, operand) in inst.dst.iter().enumerate() {
            let mut at = 0;
            self.target(inst, operand, results.get(i).map_or(&[], |r| r), &mut at, &mut targets);
        }
        targets
    }

    fn target(
        &mut self,
        inst: &checked::Inst,
        operand: &Operand,
        results: &[Option<Val>],
        at: &mut usize,
        out: &mut Targets,
    ) {
        let mut next = || {
            *at += 1;
            match results.get(*at - 1) {
                Some(Some(v)) => *v,
                _ => panic!("bug: lower: `{}` does not set a result that is wanted", inst.form.opcode),
            }
        };
        match operand {
            Operand::Reg { reg, ty, fit, negated: _ } => {
                let lo = next();
                let hi = (ty.bits() == 128).then(next);
                let home = self.home(*reg);
                self.widen(home, lo, hi, *ty, *fit, inst.span, out);
            }
            Operand::Vector(parts) => {
                for p in parts {
                    self.target(inst, p, results, at, out);
                }
            }
            Operand::Sink => *at += 1,
            Operand::Imm { .. }
            | Operand::Sreg { .. }
            | Operand::Addr { .. }
            | Operand::Point(_)
            | Operand::AddrOf { .. }
            | Operand::Label(_)
            | Operand::Labels(_)
            | Operand::Call(_) => panic!("bug: lower: {operand:?} is a destination"),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "each is a part of one destination operand")]
    fn widen(&mut self, home: Home, lo: Val, hi: Option<Val>, ty: ScalarType, fit: Fit, span: Span, out: &mut Targets) {
        // A register of 8 bits is zero above them, whatever the sign of the result.
        let signed = fit == Fit::Sign && home.ty.bits() > 8;
        let to = self.func.ty(Val::Reg(home.lo));
        let whole =
            ty.bits().min(64) == self.func.ty(lo).bits() || (!signed && ty.bits() == 8 && self.is_byte_load(lo));
        let value = self.build(span, None, |b| match b.ty(lo) {
            from if whole && from == to => lo,
            from => b.ext(lo, ty.bits().min(from.bits()), signed, to),
        });
        out.push(Target { to: home.lo, value });
        if let Some(to) = home.hi {
            let value = hi.unwrap_or_else(|| {
                if !signed {
                    return Val::Imm(0, Ty::B64);
                }
                self.build(span, None, |b| b.pure(Pure::Shr(Int::S64), Ty::B64, &[value, Val::Imm(63, Ty::B32)]))
            });
            out.push(Target { to, value });
        }
    }

    /// Whether a value comes from a load of bytes, which are zero-extended already.
    fn is_byte_load(&self, v: Val) -> bool {
        let Val::Reg(r) = v else { return false };
        let mut insts = self.func.blocks[self.block.idx()].insts.iter().rev();
        insts.find(|i| i.dst.contains(&r)).is_some_and(|i| matches!(i.op, Op::Load { access, .. } if access.bits == 8))
    }

    /// Writes all results at once: none of them sees another one written.
    pub(crate) fn write_results(&mut self, results: &[(Home, Val)], span: Span) {
        let mut targets = Targets::new();
        for (home, value) in results {
            self.widen(*home, *value, None, home.ty, Fit::Same, span, &mut targets);
        }
        let (first_inst, first_reg) = (self.func.blocks[self.block.idx()].insts.len(), self.func.regs.len());
        self.write_targets(targets, None, first_inst, first_reg, span);
    }

    fn write_targets(
        &mut self,
        mut targets: Targets,
        guard: Option<Val>,
        first_inst: usize,
        first_reg: usize,
        span: Span,
    ) {
        let mut guard = guard;
        if targets.len() > 1 {
            let written: Regs = targets.iter().map(|t| t.to).collect();
            let mut save = |v: &mut Val| {
                if matches!(v, Val::Reg(r) if written.contains(r)) {
                    *v = self.build(span, None, |b| {
                        let copy = b.reg(b.ty(*v));
                        b.copy(copy, *v);
                        Val::Reg(copy)
                    });
                }
            };
            guard.iter_mut().for_each(&mut save);
            targets.iter_mut().filter(|t| t.value != Val::Reg(t.to)).for_each(|t| save(&mut t.value));
        }
        for (i, t) in targets.iter().enumerate() {
            if t.value == Val::Reg(t.to) {
                continue;
            }
            let only = targets.iter().enumerate().all(|(j, u)| j == i || u.value != t.value);
            match guard {
                Some(g) => {
                    let ty = self.func.ty(Val::Reg(t.to));
                    self.build(span, None, |b| {
                        b.push(Op::Pure(Pure::Select(ty)), smallvec![t.to], smallvec![g, t.value, Val::Reg(t.to)])
                    });
                }
                None if only && self.retarget(t, first_inst, first_reg) => {}
                None => self.build(span, None, |b| b.copy(t.to, t.value)),
            }
        }
    }

    /// Lets the instruction that made a result write it directly, if nothing after it minds.
    fn retarget(&mut self, t: &Target, first_inst: usize, first_reg: usize) -> bool {
        let Val::Reg(from) = t.value else { return false };
        if from.idx() < first_reg || self.is_carry(from) {
            return false;
        }
        let insts = &mut self.func.blocks[self.block.idx()].insts[first_inst..];
        let makes = |i: &Inst| i.dst.contains(&from);
        let Some(k) = insts.iter().position(makes) else { return false };
        let touches = |i: &Inst| i.dst.contains(&t.to) || i.src.contains(&Val::Reg(t.to));
        if insts[k].dst.contains(&t.to) || insts[k + 1..].iter().any(|i| makes(i) || touches(i)) {
            return false;
        }
        insts[k].dst.iter_mut().filter(|d| **d == from).for_each(|d| *d = t.to);
        for i in &mut insts[k + 1..] {
            i.src.iter_mut().filter(|s| **s == t.value).for_each(|s| *s = Val::Reg(t.to));
        }
        true
    }

    /// Starts a new block after each warp-synchronising op of the instruction just expanded.
    fn split_behind_warp_ops(&mut self, first_inst: usize, span: Span) {
        let mut from = first_inst;
        while let Some(k) = self.func.blocks[self.block.idx()].insts[from..].iter().position(|i| i.op.is_warp_sync()) {
            let rest = self.func.blocks[self.block.idx()].insts.split_off(from + k + 1);
            let next = self.new_block();
            self.end_block(Term::Jump(next), span, Some(next));
            self.func.blocks[next.idx()].insts = rest;
            from = 0;
        }
    }
}

/// Whether source `i` of an instruction, if it is an address, is an offset in shared memory, which may stay 32 bits wide: its only address, or where `cp.async` writes to.
fn takes_shared_offset(inst: &checked::Inst, i: usize) -> bool {
    let addresses = inst.src.iter().filter(|o| matches!(o, Operand::Addr { .. })).count();
    let is_of_shared = matches!(inst.u.space(Role::Space), StateSpace::Shared | StateSpace::SharedCluster);
    addresses == 1 && is_of_shared || i == 0 && inst.form.opcode == "cp.async"
}

/// Which elements of a destination nobody wants.
fn sinks(operand: &Operand) -> SmallVec<[bool; 4]> {
    match operand {
        Operand::Vector(parts) => parts.iter().flat_map(sinks).collect(),
        Operand::Sink => smallvec![true],
        Operand::Reg { ty, .. } if ty.bits() == 128 => smallvec![false; 2],
        Operand::Reg { .. }
        | Operand::Imm { .. }
        | Operand::Sreg { .. }
        | Operand::Addr { .. }
        | Operand::Point(_)
        | Operand::AddrOf { .. }
        | Operand::Label(_)
        | Operand::Labels(_)
        | Operand::Call(_) => smallvec![false],
    }
}

/// The low bits of a register, as wide as the instruction type.
fn chop(b: &mut Builder, v: Val, declared_bits: u32, ty: ScalarType) -> Val {
    let bits = declared_bits.min(ty.bits()).min(64);
    if b.ty(v) == ty.ty() && bits == declared_bits.min(64) {
        return v;
    }
    b.ext(v, bits, false, ty.ty())
}

/// A constant of a scalar type.
pub(crate) fn immediate(bits: u64, ty: ScalarType) -> Val {
    let keep = if ty.bits() >= 64 { u64::MAX } else { (1 << ty.bits()) - 1 };
    Val::Imm(bits & keep, ty.ty())
}

pub(crate) fn address_op(b: &mut Builder, op: Op) -> Val {
    let r = b.reg(Ty::B64);
    b.push(op, smallvec![r], smallvec![]);
    Val::Reg(r)
}

fn special_register(b: &mut Builder, sreg: Sreg, ty: ScalarType, to: ScalarType) -> Val {
    // The op gives no predicates; `%is_explicit_cluster` is one.
    let is_pred = ty == ScalarType::Pred;
    let r = b.reg(if is_pred { Ty::B32 } else { ty.ty() });
    b.push(Op::Sreg(sreg), smallvec![r], smallvec![]);
    let v = Val::Reg(r);
    match (is_pred, to == ScalarType::Pred) {
        (true, true) => b.pure(Pure::ToPred(Ty::B32), Ty::P, &[v]),
        (true, false) => chop(b, v, 32, to),
        (false, _) => chop(b, v, ty.bits(), to),
    }
}
