//! Special registers.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::shape_constant;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::analysis::shape::{self as shapes, LANES, PACKS, Shape};

use super::rep::Rep;
use super::{Emit, POOL_LANEMASKS};

/// How a special register is made.
pub(crate) enum Source {
    /// The same in all lanes.
    Scalar,
    /// By shape.
    Shaped(Shape),
    /// A row of the pool.
    Mask(usize),
    /// `%tid` of a cta whose rows do not fit packs.
    Tid(u8),
}

pub(crate) fn source(s: Sreg, shape: &handloom_ir::simt::LaunchShape) -> Source {
    let mask = |n| Source::Mask(n);
    match s {
        Sreg::LanemaskEq => mask(0),
        Sreg::LanemaskLe => mask(1),
        Sreg::LanemaskLt => mask(2),
        Sreg::LanemaskGe => mask(3),
        Sreg::LanemaskGt => mask(4),
        Sreg::Tid(i) if i < 3 => match shapes::sreg(s, shape) {
            Some(x) => Source::Shaped(x),
            None => Source::Tid(i),
        },
        Sreg::Laneid => Source::Shaped(shapes::sreg(s, shape).unwrap_or(Shape::UNIFORM)),
        _ => Source::Scalar,
    }
}

impl Emit<'_, '_> {
    pub(crate) fn sreg_rep(&mut self, s: Sreg) -> Rep {
        match source(s, &self.facts.shape) {
            Source::Scalar => {
                let v = self.sreg_scalar(s);
                Rep::Affine(shapes::sreg(s, &self.facts.shape).unwrap_or(Shape::UNIFORM), vec![v])
            }
            Source::Shaped(shape) => {
                let v = self.shaped_base(s);
                Rep::Affine(shape, vec![v])
            }
            Source::Mask(n) => {
                let at = POOL_LANEMASKS as usize + 128 * n;
                let pool = self.pool_ptr;
                let rows = (0..PACKS)
                    .map(|p| self.b.ins().load(types::I32X4, Self::trusted(), pool, (at + 16 * p) as i32))
                    .collect();
                Rep::Rows(rows)
            }
            Source::Tid(i) => {
                let rows = (0..PACKS)
                    .map(|p| {
                        let first = self.i32((p * LANES) as i64);
                        self.tid_pack(i, first)
                    })
                    .collect();
                Rep::Rows(rows)
            }
        }
    }

    /// Value of lane 0 of pack 0 of a register with a shape.
    pub(crate) fn shaped_base(&mut self, s: Sreg) -> Value {
        let i = match s {
            Sreg::Laneid => return self.i32(0),
            Sreg::Tid(i) => i,
            other => panic!("{other:?} has no base of a shape"),
        };
        let [nx, ny, _] = self.facts.shape.ntid.map(i64::from);
        if self.facts.shape.ntid[i as usize] == 1 {
            return self.i32(0);
        }
        let warp = self.load_warp(types::I32, offset_of!(WarpCtx, warp));
        let linear = self.b.ins().ishl_imm_s(warp, 5);
        let row = self.divide(linear, nx);
        match i {
            0 => self.remainder(linear, nx),
            1 => self.remainder(row, ny),
            _ => self.divide(row, ny),
        }
    }

    fn divide(&mut self, v: Value, by: i64) -> Value {
        if by.count_ones() == 1 {
            self.b.ins().ushr_imm_s(v, i64::from(by.trailing_zeros()))
        } else {
            let d = self.i32(by);
            self.b.ins().udiv(v, d)
        }
    }

    fn remainder(&mut self, v: Value, by: i64) -> Value {
        if by.count_ones() == 1 {
            self.b.ins().band_imm_s(v, by - 1)
        } else {
            let d = self.i32(by);
            self.b.ins().urem(v, d)
        }
    }

    /// A component of `%tid` for the four lanes from lane `first` on, by exact division in f32.
    ///
    /// Thread numbers are below 1024: `(n + 1/2) / d` differs from every whole number by at least `1 / 2048`, relative to 1024 far more
    /// than the two roundings.
    pub(crate) fn tid_pack(&mut self, i: u8, first: Value) -> Value {
        let [nx, ny, _] = self.facts.shape.ntid;
        let warp = self.load_warp(types::I32, offset_of!(WarpCtx, warp));
        let linear = self.b.ins().ishl_imm_s(warp, 5);
        let linear = self.b.ins().iadd(linear, first);
        let n = self.spread(linear, 1, Ty::B32)[0];
        let row = self.quotient(n, nx);
        match i {
            0 => self.rest(n, row, nx),
            1 => {
                let plane = self.quotient(row, ny);
                self.rest(row, plane, ny)
            }
            _ => self.quotient(row, ny),
        }
    }

    fn quotient(&mut self, n: Value, by: u32) -> Value {
        let f = self.b.ins().fcvt_from_sint(types::F32X4, n);
        let half = self.vector_const32([0.5f32.to_bits(); 4]);
        let half = self.bitcast(half, types::F32X4);
        let f = self.b.ins().fadd(f, half);
        let inverse = self.vector_const32([(1.0f32 / by as f32).to_bits(); 4]);
        let inverse = self.bitcast(inverse, types::F32X4);
        let q = self.b.ins().fmul(f, inverse);
        self.b.ins().fcvt_to_sint_sat(types::I32X4, q)
    }

    fn rest(&mut self, n: Value, q: Value, by: u32) -> Value {
        let d = self.vector_const32([by; 4]);
        let whole = self.b.ins().imul(q, d);
        self.b.ins().isub(n, whole)
    }

    /// A register that is the same in all lanes.
    fn sreg_scalar(&mut self, s: Sreg) -> Value {
        if let Some(c) = shape_constant(s, &self.facts.shape) {
            return self.i32(c as i64);
        }
        match s {
            Sreg::Ctaid(i) if i < 3 => self.load_cta(types::I32, offset_of!(CtaCtx, ctaid) + 4 * usize::from(i)),
            Sreg::Nctaid(i) if i < 3 => self.load_cta(types::I32, offset_of!(CtaCtx, nctaid) + 4 * usize::from(i)),
            Sreg::Warpid => self.load_warp(types::I32, offset_of!(WarpCtx, warp)),
            Sreg::DynamicSmemSize => self.load_cta(types::I32, offset_of!(CtaCtx, dynamic_shared)),
            _ => {
                let site = self.tables.sregs.len();
                self.tables.sregs.push(s);
                let m = self.i32(1);
                let v = self.routine(Routine::Sreg, site, m, None, None);
                match s {
                    Sreg::Clock64 | Sreg::Globaltimer | Sreg::Gridid | Sreg::Pm64(_) | Sreg::CurrentGraphExec => v,
                    _ => self.b.ins().ireduce(types::I32, v),
                }
            }
        }
    }
}
