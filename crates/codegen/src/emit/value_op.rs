//! Value ops on values of registers: by scalars where shapes allow, as vectors, or by the routine.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::analysis::shape::{self as shapes, Arg, PACKS, Shape};
use handloom_plan::ways::{Way, scalar, way};

use crate::emit::asm::{FULL, scalar_type, width};
use crate::emit::copy::Emit;
use crate::emit::exits::start_over;
use crate::emit::ops::Source;
use crate::emit::value::{Compare, Logic, Rep, is_uniform, logic_of};

/// A value op on values without constants.
pub(crate) fn pure_value(
    cx: &mut Emit<'_, '_>,
    op: Pure,
    args: &[Rep],
    tys: &[Ty],
    may_test: bool,
) -> (Rep, Option<Rep>) {
    pure_values(cx, op, args, tys, &vec![None; args.len()], may_test)
}

/// A value op: by scalars where the shape allows, as vectors, or by the routine.
pub(crate) fn pure_values(
    cx: &mut Emit<'_, '_>,
    op: Pure,
    args: &[Rep],
    tys: &[Ty],
    consts: &[Option<u64>],
    may_test: bool,
) -> (Rep, Option<Rep>) {
    if let Some(out) = pure_scalar(cx, op, args, tys, consts, may_test) {
        return out;
    }
    if let (Pure::ICmp(cmp, int), [Rep::Affine(sa, a), Rep::Affine(sb, b)]) = (op, args)
        && (sa.is_uniform() || sb.is_uniform())
    {
        let c = Compare { cmp, int, a: (*sa, a.clone()), b: (*sb, b.clone()) };
        return (Rep::Logic(Rc::new(Logic::Compare(Box::new(c)))), None);
    }
    if let Some(l) = logic_of(op, args) {
        return (Rep::Logic(Rc::new(l)), None);
    }
    let uniform: Vec<bool> = args.iter().map(is_uniform).collect();
    let way = match way(op, consts, &uniform) {
        Way::Vector(way) => way,
        Way::Routine => return pure_by_routine(cx, op, args, tys),
    };
    let sources: Vec<Source> = args
        .iter()
        .zip(consts)
        .map(|(r, c)| Source {
            constant: *c,
            scalar: match r {
                Rep::Affine(s, base) if s.is_uniform() => Some(base[0]),
                _ => None,
            },
        })
        .collect();
    let rows: Vec<Vec<Value>> = args.iter().zip(tys).map(|(r, t)| cx.asm.rows(r, *t)).collect();
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for p in 0..PACKS {
        let packs: Vec<Vec<Value>> = rows
            .iter()
            .zip(tys)
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

/// The op on scalars, once for each group of the result's shape.
pub(crate) fn pure_scalar(
    cx: &mut Emit<'_, '_>,
    op: Pure,
    args: &[Rep],
    tys: &[Ty],
    consts: &[Option<u64>],
    may_test: bool,
) -> Option<(Rep, Option<Rep>)> {
    let affine: Vec<(Shape, Vec<Value>)> = args
        .iter()
        .map(|r| match r {
            Rep::Affine(s, b) => Some((*s, b.clone())),
            Rep::Rows(_) | Rep::Logic(_) => None,
        })
        .collect::<Option<_>>()?;
    let shapes: Vec<Arg> = affine.iter().zip(consts).map(|((s, _), c)| Arg { shape: Some(*s), value: *c }).collect();
    let result = shapes::pure(op, &shapes, may_test)?;
    if let Some((k, signed)) = result.check {
        test_wrap(cx, &affine[k], signed);
    }
    let (ty, second) = op.results();
    let mut base = Vec::new();
    let mut carry = Vec::new();
    for g in 0..result.shape.groups() {
        let p = result.shape.first(g);
        let at: Vec<Value> = affine.iter().zip(tys).map(|(a, t)| cx.asm.first_lane(a, p, *t)).collect();
        match scalar(op) {
            Some(way) if second.is_none() => base.push(cx.asm.scalar_op(way, &at)),
            _ => {
                let (x, y) = scalar_by_vector(cx, op, &at, tys, consts, ty, second)?;
                base.push(x);
                carry.extend(y);
            }
        }
    }
    let two = second.map(|_| Rep::Affine(Shape::UNIFORM, carry));
    Some((Rep::Affine(result.shape, base), two))
}

/// A uniform op without scalar form: on one pack, or by the routine for one lane.
fn scalar_by_vector(
    cx: &mut Emit<'_, '_>,
    op: Pure,
    at: &[Value],
    tys: &[Ty],
    consts: &[Option<u64>],
    ty: Ty,
    second: Option<Ty>,
) -> Option<(Value, Option<Value>)> {
    if let Way::Vector(way) = way(op, consts, &vec![true; at.len()]) {
        let packs: Vec<Vec<Value>> = at.iter().zip(tys).map(|(v, t)| cx.asm.spread(*v, 0, *t)).collect();
        let sources: Vec<Source> =
            at.iter().zip(consts).map(|(v, c)| Source { constant: *c, scalar: Some(*v) }).collect();
        let (x, y) = cx.asm.vector_op(way, &packs, &sources);
        let x = lane0(cx, x[0], ty);
        let y = second.map(|t| lane0(cx, y[0], t));
        return Some((x, y));
    }
    cx.copy.n_scratch_used = 0;
    let src: Vec<Loc> = at
        .iter()
        .zip(tys)
        .map(|(v, t)| {
            let (off, loc) = cx.scratch_row(*t);
            let word = if *t == Ty::P {
                let w = cx.asm.b.ins().uextend(types::I32, *v);
                cx.asm.b.ins().ineg(w)
            } else {
                *v
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
    cx.code.tables.evals.push(EvalSite { op, dst, src });
    let one = cx.asm.i32(1);
    cx.asm.routine(Routine::Eval, site, one, None, None);
    let x = scalar_from(cx, d, ty);
    let y = d2.zip(second).map(|(at, t)| scalar_from(cx, at, t));
    Some((x, y))
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

fn pure_by_routine(cx: &mut Emit<'_, '_>, op: Pure, args: &[Rep], tys: &[Ty]) -> (Rep, Option<Rep>) {
    cx.copy.n_scratch_used = 0;
    let src: Vec<Loc> = args.iter().zip(tys).map(|(r, t)| cx.loc_of(r, *t)).collect();
    let (ty, second) = op.results();
    let (d, dl) = cx.scratch_row(ty);
    let mut dst = vec![dl];
    let d2 = second.map(|t| {
        let (at, loc) = cx.scratch_row(t);
        dst.push(loc);
        (at, t)
    });
    let site = cx.code.tables.evals.len();
    cx.code.tables.evals.push(EvalSite { op, dst, src });
    let m = cx.asm.i32(FULL);
    cx.asm.routine(Routine::Eval, site, m, None, None);
    let one = cx.read_scratch(d, ty);
    let two = d2.map(|(at, t)| cx.read_scratch(at, t));
    (one, two)
}
