//! Calls, and the parameters of functions.
//!
//! Arguments and results of a call lie in one block of the caller's frame, laid out like the parameter block of the callee: parameters, then
//! results.

use handloom_check::module as checked;
use handloom_check::module::{CallArg, CallTarget, Operand, ParamLayout, RegId};
use handloom_diag::Span;
use handloom_ir::simt::*;
use handloom_ir::types::*;
use smallvec::smallvec;

use crate::function::{FunctionCx, Home, Place};
use crate::operand::{address_op, immediate};

impl FunctionCx<'_> {
    pub(crate) fn call(&mut self, inst: &checked::Inst) {
        let call = inst.dst.iter().chain(&inst.src).find_map(|o| match o {
            Operand::Call(call) => Some(&**call),
            _ => None,
        });
        let (Some(call), Some(args)) = (call, self.call_slots.next()) else {
            panic!("bug: lower: `call` without its operands");
        };
        self.around(inst, |cx| {
            for (arg, layout) in call.args.iter().zip(&call.params) {
                cx.pass_argument(arg, layout, args, inst.span);
            }
            cx.transfer(call, args, inst.span);
            for (result, layout) in call.results.iter().zip(&call.result_params) {
                cx.take_result(result, layout, args, inst.span);
            }
        });
    }

    fn transfer(&mut self, call: &checked::Call, args: SlotId, span: Span) {
        let result_start = call.result_params.iter().map(|r| r.offset).min().unwrap_or(call.param_bytes);
        let signature = (call.param_bytes, call.param_bytes - result_start);
        let (callee, target) = match call.target {
            CallTarget::Builtin(builtin) => {
                return self.build(span, None, |b| {
                    let block = address_op(b, Op::SlotAddr(args));
                    b.push(Op::Builtin(builtin), smallvec![], smallvec![block]);
                });
            }
            CallTarget::Direct(s) => (Callee::Direct(self.names.func(s)), None),
            CallTarget::Indirect(r) => {
                let handle = Val::Reg(self.home(r).lo);
                let handle = self.build(span, None, |b| b.ext(handle, b.ty(handle).bits(), false, Ty::B64));
                (Callee::Indirect, Some(handle))
            }
        };
        let next = self.new_block();
        self.end_block(Term::Call { callee, target, signature, args, next }, span, Some(next));
    }

    fn pass_argument(&mut self, arg: &CallArg, layout: &ParamLayout, block: SlotId, span: Span) {
        let to = Place::Slot(block, layout.offset);
        match arg {
            CallArg::Var(v) => self.copy_bytes(self.place(*v), to, layout, span),
            CallArg::Reg(r) => self.store_registers(*r, layout, to, span),
            CallArg::Imm(bits) => {
                let value = immediate(*bits, layout.ty);
                self.store_values(&[value, Val::Imm(0, Ty::B64)], to, layout.ty, span);
            }
            CallArg::Sink => {}
        }
    }

    fn take_result(&mut self, result: &CallArg, layout: &ParamLayout, block: SlotId, span: Span) {
        let from = Place::Slot(block, layout.offset);
        match result {
            CallArg::Var(v) => self.copy_bytes(from, self.place(*v), layout, span),
            CallArg::Reg(r) => self.load_registers(*r, layout, from, span),
            CallArg::Imm(_) | CallArg::Sink => {}
        }
    }

    /// Register parameters of this function, from the incoming parameter block.
    pub(crate) fn load_register_params(&mut self) {
        for p in &self.decl.params {
            if let Some(r) = p.reg {
                let from = if self.decl.is_entry { Place::Param(p.offset) } else { Place::Arg(p.offset) };
                self.load_registers(r, p, from, self.decl_span());
            }
        }
    }

    /// Register results of this function, into the incoming parameter block.
    pub(crate) fn store_register_results(&mut self, span: Span) {
        for p in &self.decl.results {
            if let Some(r) = p.reg {
                self.store_registers(r, p, Place::Arg(p.offset), span);
            }
        }
    }

    fn decl_span(&self) -> Span {
        self.func.span
    }

    /// A register, or the components of a vector one after the other.
    fn store_registers(&mut self, first: RegId, layout: &ParamLayout, to: Place, span: Span) {
        for (reg, at) in components(first, layout) {
            self.store_register(self.home(reg), to.plus(at), layout.ty, span);
        }
    }

    fn load_registers(&mut self, first: RegId, layout: &ParamLayout, from: Place, span: Span) {
        for (reg, at) in components(first, layout) {
            self.load_register(self.home(reg), from.plus(at), layout.ty, span);
        }
    }

    fn store_register(&mut self, home: Home, to: Place, ty: ScalarType, span: Span) {
        let lo = Val::Reg(home.lo);
        let lo = self.build(span, None, |b| match (b.ty(lo), ty) {
            (Ty::P, _) => b.pure(Pure::FromPred(Ty::B16), Ty::B16, &[lo]),
            (from, _) => {
                let bits = from.bits().min(ty.bits());
                b.ext(lo, bits, false, ty.ty())
            }
        });
        let hi = home.hi.map_or(Val::Imm(0, Ty::B64), Val::Reg);
        self.store_values(&[lo, hi], to, ty, span);
    }

    /// Stores the first value, or both of a `.b128`.
    fn store_values(&mut self, values: &[Val; 2], to: Place, ty: ScalarType, span: Span) {
        let access = element_access(ty, self.space_of(to));
        let addr = self.place_address(to, span);
        self.build(span, None, |b| b.store(access, addr, &values[..usize::from(access.count)]));
    }

    fn load_register(&mut self, home: Home, from: Place, ty: ScalarType, span: Span) {
        let access = element_access(ty, self.space_of(from));
        let addr = self.place_address(from, span);
        let to = self.func.ty(Val::Reg(home.lo));
        let loaded = self.build(span, None, |b| {
            let mut v = b.load(access, addr);
            v[0] = match to {
                Ty::P => b.pure(Pure::ToPred(b.ty(v[0])), Ty::P, &[v[0]]),
                _ => {
                    let signed = ty.is_signed() && home.ty.bits() > 8;
                    b.ext(v[0], b.ty(v[0]).bits().min(ty.bits()).min(to.bits()), signed, to)
                }
            };
            v
        });
        let halves = [Some(home.lo), home.hi];
        for (reg, value) in halves.into_iter().flatten().zip(loaded) {
            self.build(span, None, |b| b.copy(reg, value));
        }
    }

    fn copy_bytes(&mut self, from: Place, to: Place, layout: &ParamLayout, span: Span) {
        if from == to {
            return;
        }
        let (source, dest) = (self.place_address(from, span), self.place_address(to, span));
        let (load_space, store_space) = (self.space_of(from), self.space_of(to));
        let mut at = 0;
        while at < layout.size {
            let left = layout.size - at;
            let unit = [8, 4, 2, 1].into_iter().find(|&u| u <= left && u <= layout.align && at % u == 0).unwrap_or(1);
            let access = |space| Access::weak(space, (unit * 8) as u8);
            self.build(span, None, |b| {
                let v = b.load(access(load_space), Addr { offset: source.offset + i64::from(at), ..source });
                b.store(access(store_space), Addr { offset: dest.offset + i64::from(at), ..dest }, &v);
            });
            at += unit;
        }
    }

    fn space_of(&self, place: Place) -> StateSpace {
        match place {
            Place::Slot(..) | Place::Arg(_) => StateSpace::Local,
            Place::Param(_) => StateSpace::ParamEntry,
        }
    }

    fn place_address(&mut self, place: Place, span: Span) -> Addr {
        let (op, at) = match place {
            Place::Slot(slot, at) => (Op::SlotAddr(slot), at),
            Place::Arg(offset) => (Op::ArgAddr { offset }, 0),
            Place::Param(offset) => (Op::ParamAddr { offset }, 0),
        };
        let base = self.build(span, None, |b| address_op(b, op));
        Addr { base, offset: i64::from(at) }
    }
}

/// The registers of a parameter, and how far each lies from its start.
fn components(first: RegId, layout: &ParamLayout) -> impl Iterator<Item = (RegId, u32)> + use<> {
    let bytes = layout.ty.bytes();
    (0..u32::from(layout.components)).map(move |c| (RegId(first.0 + c), c * bytes))
}

/// The access to one element of a parameter block.
fn element_access(ty: ScalarType, space: StateSpace) -> Access {
    match ty.bits() {
        128 => Access::weak_vector(space, 64, 2),
        bits => Access::weak(space, bits.max(8) as u8),
    }
}
