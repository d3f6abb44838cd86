//! How the lanes of an access lie, and what is done for those that all do it and do not stand in one row.

use handloom_ir::simt::Inst;
use handloom_plan::analysis::shape::Shape;
use iced_x86::{Code, Register};

use crate::access::{Access, Form, Limits};
use crate::alloc::n_parts;
use crate::asm::Mem;
use crate::bands::is_banded;
use crate::emit::*;
use crate::tuples::lanes_of_runs;
use crate::values::is_wide;

/// Whether there is code for lanes that lie so, where all of them do the access.
pub(crate) fn by_all(form: Form) -> bool {
    matches!(form, Form::Parts | Form::Bands | Form::Strided(_) | Form::Tuples(_))
}

impl Emit<'_> {
    /// Where lanes of a weak load or store lie, of addresses that differ in a known way.
    pub(crate) fn form_of(&self, s: Shape, x: &Access) -> Form {
        let (class, by_all) = (&x.class, !self.in_part && x.lanes == LANES);
        if by_all && class.bits >= 32 && is_banded(&s, x.ty) {
            return Form::Bands;
        }
        if class.count == 1 && s.is_linear() && s.stride == i64::from(x.size()) {
            return Form::Row;
        }
        if class.count == 1 && self.is_by_parts(&s, x) {
            return Form::Parts;
        }
        if by_all && self.is_strided(x, &s) {
            return Form::Strided(s);
        }
        match lanes_of_runs(&s, x) {
            Some(run) if run == 32 || by_all => Form::Tuples(run),
            _ => Form::Scattered,
        }
    }

    /// Whether each part's elements follow each other, in a block that all lanes execute.
    fn is_by_parts(&self, s: &Shape, x: &Access) -> bool {
        let n = if is_wide(x.ty) { 8 } else { 16 };
        !self.in_part
            && x.lanes == LANES
            && s.stride == i64::from(x.size())
            && (0..32).all(|l| {
                let first = l / n * n;
                s.group_of(l) == s.group_of(first) && s.delta(l) - s.delta(first) == s.stride * (l - first) as i64
            })
    }

    /// An access of lanes that all do it, but one of a row, with its own tests.
    pub(crate) fn of_all(&mut self, inst: &Inst, x: &Access, form: Form) {
        match form {
            Form::Parts => self.parts(inst, x),
            Form::Bands => self.bands(inst, x),
            Form::Strided(shape) => self.strided(inst, x, &shape),
            Form::Tuples(run) => self.runs_of_tuples(inst, x, run.into()),
            Form::Same | Form::Row | Form::Scattered => {}
        }
    }

    /// Elements that follow each other within each part of a vector, in a block that all lanes execute.
    fn parts(&mut self, inst: &Inst, x: &Access) {
        let n_parts = n_parts(x.ty);
        let n = 32 / n_parts as i32;
        let regs = [RCX, RSI, Register::R11, Register::RDI];
        let place = |q: usize| self.address_shape(x).map(|s| (s.group_of(q * n as usize), s.delta(q * n as usize)));
        let places: Vec<_> = (0..n_parts).map(place).collect();
        let first = |q: usize| places.iter().position(|p| *p == places[q]).unwrap_or(q);
        if x.limits != Limits::Safe {
            let skip = self.around_tests(x);
            self.limits_of_run(x, i64::from((n - 1) * x.size()));
            for q in (0..n_parts).filter(|q| first(*q) == *q) {
                self.lane_address(x, q * n as usize);
                self.test_start(x, RAX);
            }
            self.after_tests(skip);
        }
        for q in (0..n_parts).filter(|q| first(*q) == *q) {
            self.lane_address(x, q * n as usize);
            self.host(x, RAX);
            self.a.op2(Code::Mov_r64_rm64, regs[q], RAX);
        }
        for q in 0..n_parts {
            self.move_part(inst, x, q, Mem::at(regs[first(q)], 0));
        }
    }
}
