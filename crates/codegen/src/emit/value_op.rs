//! Value ops on values of registers: by scalars where shapes allow, as vectors, or by the routine.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::*;
use handloom_plan::ValueOp;
use handloom_plan::abi::*;
use handloom_plan::analysis::shape::{self as shapes, Arg, May, Shape};
use handloom_plan::packs::{PACKS, first_pack};
use handloom_plan::ways::{Vector, Way, scalar};

use crate::emit::asm::{FULL, scalar_type};
use crate::emit::copy::Emit;
use crate::emit::exits::start_over;
use crate::emit::ops::Source;
use crate::emit::value::{Compare, Logic, Rep, is_uniform, logic_of};

/// In which form a value op is done, with its sources in that form.
pub(crate) enum Form<'a> {
    /// By scalars, once for each group of the result's shape.
    Scalars(&'a Scalars),
    /// On the vectors of some packs side by side, by the way that was found for it.
    Packs { way: Vector, n_packs: usize, sources: Sources<'a> },
}

/// Sources that have shapes, and what that makes of the result.
pub(crate) struct Scalars {
    sources: Vec<(Shape, Vec<Value>)>,
    result: shapes::Result,
}

/// Sources as vectors.
pub(crate) struct Sources<'a> {
    /// The vectors of each source, pack after pack.
    pub(crate) vectors: &'a [Vec<Value>],
    /// Those of them that are the same in all lanes.
    pub(crate) scalars: &'a [Option<Value>],
}

/// A value op in some form: the words of the result's groups, or its vectors, and those of a second result. Full copies, scalars of masked copies, the
/// loop over packs and runs all come here.
pub(crate) fn value_op(cx: &mut Emit<'_, '_>, v: &ValueOp, form: &Form<'_>) -> (Vec<Value>, Vec<Value>) {
    let (mut one, mut two) = (Vec::new(), Vec::new());
    match form {
        Form::Scalars(Scalars { sources, result }) => {
            if let Some((k, signed)) = result.check {
                test_wrap(cx, &sources[k], signed);
            }
            for g in 0..result.shape.groups() {
                let p = first_pack(&result.shape, g);
                let at: Vec<Value> = sources.iter().zip(&v.types).map(|(s, t)| cx.asm.first_lane(s, p, *t)).collect();
                match scalar(v.op) {
                    Some(way) if v.op.results().1.is_none() => one.push(cx.asm.scalar_op(way, &at)),
                    _ => {
                        let (x, y) = uniform_by_vector(cx, v, &at);
                        one.push(x);
                        two.extend(y);
                    }
                }
            }
        }
        Form::Packs { way, n_packs, sources: Sources { vectors, scalars } } => {
            let known = known_sources(v, scalars.iter().copied());
            for p in 0..*n_packs {
                let part = |x: &Vec<Value>| {
                    let w = x.len() / n_packs;
                    x[p * w..(p + 1) * w].to_vec()
                };
                let packs: Vec<Vec<Value>> = vectors.iter().map(part).collect();
                let (x, y) = cx.asm.vector_op(*way, &packs, &known);
                one.extend(x);
                two.extend(y);
            }
        }
    }
    if let Some(float) = v.canonical {
        one = match form {
            Form::Scalars(_) => one.into_iter().map(|x| cx.asm.canonical_scalar(x, float)).collect(),
            Form::Packs { .. } => one.into_iter().map(|x| cx.asm.canonical(x, float)).collect(),
        };
    }
    (one, two)
}

/// The sources of a value op as scalars, if all of them are and the result has a shape too.
pub(crate) fn as_scalars(v: &ValueOp, args: &[Rep], may_test: bool) -> Option<Scalars> {
    let source = |r: &Rep| match r {
        Rep::Affine(s, b) => Some((*s, b.clone())),
        Rep::Rows(_) | Rep::Logic(_) => None,
    };
    let sources: Vec<(Shape, Vec<Value>)> = args.iter().map(source).collect::<Option<_>>()?;
    let known: Vec<Arg> =
        sources.iter().zip(&v.constants).map(|((s, _), c)| Arg { shape: Some(*s), value: *c }).collect();
    let result = shapes::pure(v.op, &known, May { test: may_test, flip: false })?;
    Some(Scalars { sources, result })
}

/// A value op by scalars; none if the shapes of its sources do not allow it.
pub(crate) fn by_scalars(
    cx: &mut Emit<'_, '_>,
    v: &ValueOp,
    args: &[Rep],
    may_test: bool,
) -> Option<(Rep, Option<Rep>)> {
    let scalars = as_scalars(v, args, may_test)?;
    let (base, carry) = value_op(cx, v, &Form::Scalars(&scalars));
    let second = v.op.results().1.map(|_| Rep::Affine(Shape::UNIFORM, carry));
    Some((Rep::Affine(scalars.result.shape, base), second))
}

/// A value op for all lanes of a full copy: by scalars where the shape allows, as a predicate that is not needed as lanes yet, on the vectors of all
/// packs, or by the routine.
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
    match v.way_of_all(&uniform) {
        Way::Vector(way) => {
            let scalar = |r: &Rep| match r {
                Rep::Affine(s, base) if s.is_uniform() => Some(base[0]),
                Rep::Affine(..) | Rep::Rows(_) | Rep::Logic(_) => None,
            };
            let scalars: Vec<Option<Value>> = args.iter().map(scalar).collect();
            let rows: Vec<Vec<Value>> = args.iter().zip(&v.types).map(|(r, t)| cx.asm.rows(r, *t)).collect();
            let sources = Sources { vectors: &rows, scalars: &scalars };
            let (one, two) = value_op(cx, v, &Form::Packs { way, n_packs: PACKS, sources });
            (Rep::Rows(one), if two.is_empty() { None } else { Some(Rep::Rows(two)) })
        }
        // The NaNs that it makes are canonical.
        Way::Routine => by_routine(cx, v, args),
    }
}

/// What is known of the sources beside their lanes.
fn known_sources(v: &ValueOp, scalars: impl Iterator<Item = Option<Value>>) -> Vec<Source> {
    v.constants.iter().zip(scalars).map(|(c, scalar)| Source { constant: *c, scalar }).collect()
}

/// A uniform op without scalar form: on one pack, or by the routine for one lane.
fn uniform_by_vector(cx: &mut Emit<'_, '_>, v: &ValueOp, at: &[Value]) -> (Value, Option<Value>) {
    let (ty, second) = v.op.results();
    if let Way::Vector(way) = v.way(&vec![true; at.len()]) {
        let packs: Vec<Vec<Value>> = at.iter().zip(&v.types).map(|(x, t)| cx.asm.spread(*x, 0, *t)).collect();
        let (x, y) = cx.asm.vector_op(way, &packs, &known_sources(v, at.iter().map(|x| Some(*x))));
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
        let by = high.checked_sub(low).and_then(|by| u32::try_from(by).ok());
        let bad = match by {
            Some(by) => {
                let last = u32::MAX - by;
                cx.asm.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, start, i64::from(last as i32))
            }
            // Lanes so far apart pass the end of the numbers wherever they start.
            None => cx.asm.b.ins().iconst(types::I8, 1),
        };
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
