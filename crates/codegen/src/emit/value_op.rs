//! Value ops on values of registers: by scalars where shapes allow, as vectors, or by the routine.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::ValueOp;
use handloom_plan::abi::*;
use handloom_plan::analysis::shape::{self as shapes, Arg, Shape};
use handloom_plan::packs::{PACKS, first_pack};
use handloom_plan::ways::{Vector, Way, scalar};

use crate::emit::asm::{FULL, scalar_type, width};
use crate::emit::copy::Emit;
use crate::emit::exits::start_over;
use crate::emit::ops::Source;
use crate::emit::value::{Compare, Logic, Rep, is_uniform, logic_of};

/// A value op for all lanes of a full copy: by scalars where the shape allows, as vectors, or by the routine.
pub(crate) fn for_all_lanes(cx: &mut Emit<'_, '_>, v: &ValueOp, args: &[Rep], may_test: bool) -> (Rep, Option<Rep>) {
    if let Some(out) = by_scalars(cx, v, args, may_test) {
        return out;
    }
    if let (Pure::ICmp(cmp, int), [Rep::Affine(sa, a), Rep::Affine(sb, b)]) = (v.op, args)
        && (sa.is_uniform() || sb.is_uniform())
    {
        let c = Compare { cmp, int, a: (*sa, a.clone()), b: (*sb, b.clone()) };
        return (Rep::Logic(Rc::new(Logic::Compare(Box::new(c)))), None);
    }
    if let Some(l) = logic_of(v.op, args) {
        return (Rep::Logic(Rc::new(l)), None);
    }
    let uniform: Vec<bool> = args.iter().map(is_uniform).collect();
    let (one, two) = match v.way(&uniform) {
        Way::Vector(way) => on_all_packs(cx, v, way, args),
        Way::Routine => by_routine(cx, v, args),
    };
    (finished(cx, v, one), two)
}

/// A value op by scalars, once for each group of the result's shape; none if the shapes of its sources do not allow it.
pub(crate) fn by_scalars(
    cx: &mut Emit<'_, '_>,
    v: &ValueOp,
    args: &[Rep],
    may_test: bool,
) -> Option<(Rep, Option<Rep>)> {
    let affine: Vec<(Shape, Vec<Value>)> = args
        .iter()
        .map(|r| match r {
            Rep::Affine(s, b) => Some((*s, b.clone())),
            Rep::Rows(_) | Rep::Logic(_) => None,
        })
        .collect::<Option<_>>()?;
    let shapes: Vec<Arg> =
        affine.iter().zip(&v.constants).map(|((s, _), c)| Arg { shape: Some(*s), value: *c }).collect();
    let result = shapes::pure(v.op, &shapes, may_test)?;
    if let Some((k, signed)) = result.check {
        test_wrap(cx, &affine[k], signed);
    }
    let (_, second) = v.op.results();
    let mut base = Vec::new();
    let mut carry = Vec::new();
    for g in 0..result.shape.groups() {
        let p = first_pack(&result.shape, g);
        let at: Vec<Value> = affine.iter().zip(&v.types).map(|(a, t)| cx.asm.first_lane(a, p, *t)).collect();
        match scalar(v.op) {
            Some(way) if second.is_none() => base.push(cx.asm.scalar_op(way, &at)),
            _ => {
                let (x, y) = uniform_by_vector(cx, v, &at);
                base.push(x);
                carry.extend(y);
            }
        }
    }
    let one = finished(cx, v, Rep::Affine(result.shape, base));
    Some((one, second.map(|_| Rep::Affine(Shape::UNIFORM, carry))))
}

/// A value op on the vectors of one pack, by the way that was found for it. `scalars`: those of the sources that are the same in all lanes.
pub(crate) fn on_pack(
    cx: &mut Emit<'_, '_>,
    v: &ValueOp,
    way: Vector,
    packs: &[Vec<Value>],
    scalars: &[Option<Value>],
) -> (Vec<Value>, Vec<Value>) {
    let (one, two) = cx.asm.vector_op(way, packs, &sources(v, scalars.iter().copied()));
    match v.canonical {
        Some(float) => (one.into_iter().map(|x| cx.asm.canonical(x, float)).collect(), two),
        None => (one, two),
    }
}

/// The result with its NaNs as they are to be.
fn finished(cx: &mut Emit<'_, '_>, v: &ValueOp, result: Rep) -> Rep {
    match v.canonical {
        Some(float) => cx.asm.canonical_rep(&result, float),
        None => result,
    }
}

/// What is known of the sources beside their lanes.
fn sources(v: &ValueOp, scalars: impl Iterator<Item = Option<Value>>) -> Vec<Source> {
    v.constants.iter().zip(scalars).map(|(c, scalar)| Source { constant: *c, scalar }).collect()
}

fn on_all_packs(cx: &mut Emit<'_, '_>, v: &ValueOp, way: Vector, args: &[Rep]) -> (Rep, Option<Rep>) {
    let scalars = args.iter().map(|r| match r {
        Rep::Affine(s, base) if s.is_uniform() => Some(base[0]),
        Rep::Affine(..) | Rep::Rows(_) | Rep::Logic(_) => None,
    });
    let sources = sources(v, scalars);
    let rows: Vec<Vec<Value>> = args.iter().zip(&v.types).map(|(r, t)| cx.asm.rows(r, *t)).collect();
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for p in 0..PACKS {
        let packs: Vec<Vec<Value>> = rows
            .iter()
            .zip(&v.types)
            .map(|(r, t)| {
                let w = width(*t);
                r[p * w..(p + 1) * w].to_vec()
            })
            .collect();
        let (x, y) = cx.asm.vector_op(way, &packs, &sources);
        one.extend(x);
        two.extend(y);
    }
    (Rep::Rows(one), if two.is_empty() { None } else { Some(Rep::Rows(two)) })
}

/// A uniform op without scalar form: on one pack, or by the routine for one lane.
fn uniform_by_vector(cx: &mut Emit<'_, '_>, v: &ValueOp, at: &[Value]) -> (Value, Option<Value>) {
    let (ty, second) = v.op.results();
    if let Way::Vector(way) = v.way(&vec![true; at.len()]) {
        let packs: Vec<Vec<Value>> = at.iter().zip(&v.types).map(|(x, t)| cx.asm.spread(*x, 0, *t)).collect();
        let (x, y) = cx.asm.vector_op(way, &packs, &sources(v, at.iter().map(|x| Some(*x))));
        let x = lane0(cx, x[0], ty);
        let y = second.map(|t| lane0(cx, y[0], t));
        return (x, y);
    }
    cx.copy.n_scratch_used = 0;
    let src: Vec<Loc> = at
        .iter()
        .zip(&v.types)
        .map(|(x, t)| {
            let (off, loc) = cx.scratch_row(*t);
            let word = if *t == Ty::P {
                let w = cx.asm.b.ins().uextend(types::I32, *x);
                cx.asm.b.ins().ineg(w)
            } else {
                *x
            };
            cx.asm.store_warp(word, off as usize);
            loc
        })
        .collect();
    let (d, dl) = cx.scratch_row(ty);
    let mut dst = vec![dl];
    let d2 = second.map(|t| {
        let (at, loc) = cx.scratch_row(t);
        dst.push(loc);
        at
    });
    let site = cx.code.tables.evals.len();
    cx.code.tables.evals.push(EvalSite { op: v.op, dst, src });
    let one = cx.asm.i32(1);
    cx.asm.routine(Routine::Eval, site, one, None, None);
    let x = scalar_from(cx, d, ty);
    let y = d2.zip(second).map(|(at, t)| scalar_from(cx, at, t));
    (x, y)
}

fn lane0(cx: &mut Emit<'_, '_>, v: Value, ty: Ty) -> Value {
    let x = cx.asm.b.ins().extractlane(v, 0);
    if ty == Ty::P { cx.asm.b.ins().icmp_imm_s(IntCC::NotEqual, x, 0) } else { x }
}

fn scalar_from(cx: &mut Emit<'_, '_>, at: u32, ty: Ty) -> Value {
    if ty == Ty::P {
        let v = cx.asm.load_warp(types::I32, at as usize);
        return cx.asm.b.ins().icmp_imm_s(IntCC::NotEqual, v, 0);
    }
    cx.asm.load_warp(scalar_type(ty), at as usize)
}

/// Goes on only if no group of a 32-bit value wraps between its lanes; else the block starts over in code that assumes nothing.
fn test_wrap(cx: &mut Emit<'_, '_>, v: &(Shape, Vec<Value>), signed: bool) {
    let (b, _) = cx.copy.at;
    for g in 0..v.0.groups() {
        let (low, high) = v.0.span(g);
        if high == low {
            continue;
        }
        let bottom = if signed { i64::from(i32::MIN) } else { 0 };
        let start = cx.asm.b.ins().iadd_imm_s(v.1[g], low - bottom);
        let last = i64::from(u32::MAX) - (high - low);
        let bad = cx.asm.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, start, i64::from(last as u32 as i32));
        let (cold, go) = (cx.asm.cold_block(), cx.asm.b.create_block());
        let on = cx.asm.on_line();
        cx.asm.b.ins().brif(bad, cold, &[], go, &[]);
        cx.asm.b.switch_to_block(cold);
        start_over(cx, b);
        cx.asm.rejoin(go, on);
    }
}

fn by_routine(cx: &mut Emit<'_, '_>, v: &ValueOp, args: &[Rep]) -> (Rep, Option<Rep>) {
    cx.copy.n_scratch_used = 0;
    let src: Vec<Loc> = args.iter().zip(&v.types).map(|(r, t)| cx.loc_of(r, *t)).collect();
    let (ty, second) = v.op.results();
    let (d, dl) = cx.scratch_row(ty);
    let mut dst = vec![dl];
    let d2 = second.map(|t| {
        let (at, loc) = cx.scratch_row(t);
        dst.push(loc);
        (at, t)
    });
    let site = cx.code.tables.evals.len();
    cx.code.tables.evals.push(EvalSite { op: v.op, dst, src });
    let m = cx.asm.i32(FULL);
    cx.asm.routine(Routine::Eval, site, m, None, None);
    let one = cx.read_scratch(d, ty);
    let two = d2.map(|(at, t)| cx.read_scratch(at, t));
    (one, two)
}
