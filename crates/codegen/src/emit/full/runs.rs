//! Runs of plain accesses and value ops of a full copy, done for a few packs at a time.
//!
//! Packs side by side keep eight vectors of every value alive, more than the host has registers. A run of loads, ops and stores that needs nothing of
//! other lanes is done for two packs from its first load to its last store, then for the next two. All addresses of the run are tested first.
//! Within a run no load is after a store, so lanes see memory as if they had gone side by side.

use cranelift_codegen::ir::Value;
use handloom_diag::hash::{FastMap, FastSet};
use handloom_ir::simt::*;
use handloom_plan::ValueOp;
use handloom_plan::analysis::shape::{self as shapes, Arg, Shape};
use handloom_plan::packs::{PACKS, TOGETHER, pack_start};
use handloom_plan::ways::{Vector, Way};

use crate::emit::asm::width;
use crate::emit::bounds::mem_op;
use crate::emit::copy::Emit;
use crate::emit::device::MemOp;
use crate::emit::exits::tell_dirty;
use crate::emit::full::inst::full_inst;
use crate::emit::full::joint_bounds::verify_at;
use crate::emit::full::memory::check_affine;
use crate::emit::value::{Rep, constant, is_uniform};
use crate::emit::value_op::{Form, Sources, value_op};

/// What a run does with packs.
enum Step {
    Pure { inst: usize, v: ValueOp, way: Vector },
    Load { inst: usize, mem: MemOp, shape: Shape, at: Vec<(Value, i64)> },
    Store { inst: usize, mem: MemOp, shape: Shape, at: Vec<(Value, i64)> },
}

/// Does a run that starts at instruction `i` of block `b`. Returns the instruction after it; `i` itself if there is no run.
pub(crate) fn full_run(cx: &mut Emit<'_, '_>, b: usize, i: usize) -> usize {
    let Some(end) = cx.packs.run_end(b, i) else { return i };
    let mut steps = Vec::new();
    let mut pending: FastSet<Reg> = FastSet::default();
    // Registers that steps read as they are now.
    let mut reads: FastSet<Reg> = FastSet::default();
    let mut k = i;
    while k < end {
        cx.set_loc(b, k);
        let f = &cx.plan.func;
        let inst = &f.blocks[b].insts[k];
        if inst.dst.iter().any(|d| reads.contains(d) || pending.contains(d)) {
            break;
        }
        match step(cx, b, k, &pending) {
            Some(Some(step)) => {
                let dst = &inst.dst;
                reads.extend(inst.src.iter().filter_map(|v| match v {
                    Val::Reg(r) if !pending.contains(r) => Some(*r),
                    Val::Reg(_) | Val::Imm(..) => None,
                }));
                pending.extend(dst);
                // What they were stays known until the run is done: a step may read a register that it writes.
                for d in dst {
                    cx.copy.verified.remove(d);
                }
                steps.push(step);
            }
            Some(None) => {}
            None => break,
        }
        k += 1;
    }
    run_steps(cx, b, &steps);
    k.max(i)
}

/// Takes instruction `k` into a run: `Some(None)` if it is done by scalars at once, `None` if it does not fit.
fn step(cx: &mut Emit<'_, '_>, b: usize, k: usize, pending: &FastSet<Reg>) -> Option<Option<Step>> {
    let f = &cx.plan.func;
    let inst = &f.blocks[b].insts[k];
    let waits = |v: &Val| matches!(v, Val::Reg(r) if pending.contains(r));
    match inst.op {
        Op::Pure(op) => {
            let waiting = inst.src.iter().any(waits);
            if !waiting && is_scalar(cx, b, k) {
                full_inst(cx, b, k);
                return Some(None);
            }
            let uniform: Vec<bool> = inst.src.iter().map(|v| !waits(v) && is_uniform(&cx.rep(*v))).collect();
            let v = cx.plan.value_op(inst, op);
            match v.way_of_all(&uniform) {
                Way::Vector(way) if inst.dst.len() == 1 => Some(Some(Step::Pure { inst: k, v, way })),
                Way::Vector(_) | Way::Routine => None,
            }
        }
        Op::Load { .. } | Op::Store { .. } => {
            if inst.src.first().is_some_and(waits) {
                return None;
            }
            let addr = cx.rep(inst.src[0]);
            let Rep::Affine(s, base) = &addr else { return None };
            let mem = mem_op(cx, inst);
            let is_load = matches!(inst.op, Op::Load { .. });
            if is_load && s.stride == 0 && s.is_uniform() {
                full_inst(cx, b, k);
                return Some(None);
            }
            if !mem.class.joins_run_at(s, cx.may_start_over()) {
                return None;
            }
            verify_at(cx, b, k);
            let at = check_affine(cx, &mem, s, base);
            let (inst, shape) = (k, *s);
            Some(Some(if is_load { Step::Load { inst, mem, shape, at } } else { Step::Store { inst, mem, shape, at } }))
        }
        _ if inst.src.iter().any(waits) => None,
        _ => {
            full_inst(cx, b, k);
            Some(None)
        }
    }
}

/// Whether a value op is done by scalars.
fn is_scalar(cx: &mut Emit<'_, '_>, b: usize, k: usize) -> bool {
    let f = &cx.plan.func;
    let inst = &f.blocks[b].insts[k];
    let Op::Pure(op) = inst.op else { return false };
    let mut args = Vec::new();
    for v in &inst.src {
        let Rep::Affine(s, _) = cx.rep(*v) else { return false };
        args.push(Arg { shape: Some(s), value: constant(*v) });
    }
    shapes::pure(op, &args, cx.plan.facts.may_at(b, k)).is_some()
}

fn run_steps(cx: &mut Emit<'_, '_>, b: usize, steps: &[Step]) {
    let f = &cx.plan.func;
    let insts = &f.blocks[b].insts;
    let mut done: FastMap<Reg, Vec<Value>> = FastMap::default();
    let mut splats: FastMap<Val, Vec<Value>> = FastMap::default();
    // Registers in the order in which they are first written.
    let mut order: Vec<Reg> = Vec::new();
    let mut ordered: FastSet<Reg> = FastSet::default();
    for step in steps {
        let inst = match step {
            Step::Pure { inst, .. } | Step::Load { inst, .. } | Step::Store { inst, .. } => *inst,
        };
        order.extend(insts[inst].dst.iter().filter(|d| ordered.insert(**d)));
    }
    for first in (0..PACKS).step_by(TOGETHER) {
        // The latest value of each register in each pack of the group.
        let mut now: FastMap<(Reg, usize), Vec<Value>> = FastMap::default();
        for step in steps {
            for p in first..first + TOGETHER {
                match step {
                    Step::Pure { inst, v, way } => {
                        let inst = &insts[*inst];
                        let made = step_pure(cx, inst, (v, *way), p, &now, &mut splats);
                        now.insert((inst.dst[0], p), made);
                    }
                    Step::Load { inst, mem, shape, at } => {
                        let (group, off) = pack_start(shape, p);
                        let (base, low) = at[group];
                        let out = cx.asm.load_pack(mem, base, off - low, shape.stride);
                        for (d, v) in insts[*inst].dst.iter().zip(out) {
                            now.insert((*d, p), v);
                        }
                    }
                    Step::Store { inst, mem, shape, at } => {
                        let data: Vec<Vec<Value>> = insts[*inst].operands()[1..]
                            .iter()
                            .map(|v| step_source(cx, *v, p, false, &now, &mut splats))
                            .collect();
                        let packs: Vec<&[Value]> = data.iter().map(Vec::as_slice).collect();
                        let (group, off) = pack_start(shape, p);
                        let (base, low) = at[group];
                        cx.asm.store_pack(mem, &packs, base, off - low, shape.stride);
                    }
                }
            }
        }
        for d in &order {
            for p in first..first + TOGETHER {
                if let Some(v) = now.get(&(*d, p)) {
                    done.entry(*d).or_default().extend(v);
                }
            }
        }
    }
    for d in order {
        if let Some(v) = done.remove(&d) {
            cx.copy.cleaned.remove(&d);
            cx.set(d, Rep::Rows(v));
        }
    }
    if steps.iter().any(|s| matches!(s, Step::Store { inst, .. } if cx.plan.tells_store(&insts[*inst]))) {
        tell_dirty(cx);
    }
}

fn step_pure(
    cx: &mut Emit<'_, '_>,
    inst: &Inst,
    (v, way): (&ValueOp, Vector),
    p: usize,
    now: &FastMap<(Reg, usize), Vec<Value>>,
    splats: &mut FastMap<Val, Vec<Value>>,
) -> Vec<Value> {
    let mut packs = Vec::new();
    let mut scalars = Vec::new();
    for source in &inst.src {
        packs.push(step_source(cx, *source, p, v.takes_odd_nans, now, splats));
        scalars.push(match source {
            Val::Imm(x, ty) => Some(cx.asm.scalar_const(*x, *ty)),
            Val::Reg(r) if now.contains_key(&(*r, p)) => None,
            Val::Reg(r) => match cx.copy.reps.get(r) {
                Some(Rep::Affine(s, base)) if s.is_uniform() => Some(base[0]),
                _ => None,
            },
        });
    }
    let sources = Sources { vectors: &packs, scalars: &scalars };
    value_op(cx, v, &Form::Packs { way, n_packs: 1, sources }).0
}

/// The vectors of a source for pack `p`.
fn step_source(
    cx: &mut Emit<'_, '_>,
    v: Val,
    p: usize,
    loose: bool,
    now: &FastMap<(Reg, usize), Vec<Value>>,
    splats: &mut FastMap<Val, Vec<Value>>,
) -> Vec<Value> {
    let ty = cx.ty(v);
    if let Val::Reg(r) = v
        && let Some(x) = now.get(&(r, p))
    {
        return match cx.plan.odd_nans_of(v) {
            Some(float) if !loose => x.iter().map(|y| cx.asm.canonical(*y, float)).collect(),
            _ => x.clone(),
        };
    }
    if let Some(x) = splats.get(&v) {
        return x.clone();
    }
    let rep = if loose { cx.rep(v) } else { cx.clean(v) };
    match &rep {
        Rep::Affine(s, base) => {
            let first = cx.asm.first_lane(&(*s, base.clone()), p, ty);
            let x = cx.asm.spread(first, s.stride, ty);
            if s.is_uniform() && !loose {
                splats.insert(v, x.clone());
            }
            x
        }
        Rep::Rows(_) | Rep::Logic(_) => {
            let rows = cx.asm.rows(&rep, ty);
            if let (Rep::Logic(_), Val::Reg(r)) = (&rep, v) {
                cx.copy.reps.insert(r, Rep::Rows(rows.clone()));
            }
            rows[p * width(ty)..(p + 1) * width(ty)].to_vec()
        }
    }
}
