//! How values depend on the CTA and on the number of the warp.

use handloom_ir::simt::{Function, Inst, LaunchShape, Op, Pure, Val, shape_constant};
use handloom_ir::types::{Int, Order, Sreg, StateSpace, Ty};
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::cfg::Set;
use handloom_plan::analysis::n_definitions;

use crate::asked::reg;
use crate::table::has_scalar_code;

/// How a value depends on what is not a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Course {
    /// It differs between warps, by an even step.
    pub(super) is_linear: bool,
    /// It differs between CTAs.
    pub(super) by_cta: bool,
    /// What it is in lane 0 of warp 0, and the step from warp to warp, if both are constants below 2^31.
    pub(super) known: Option<(i64, i64)>,
}

impl Course {
    /// Of a constant.
    pub(super) fn constant(x: u64) -> Course {
        let known = i64::try_from(x).ok().filter(|x| *x <= MOST).map(|x| (x, 0));
        Course { is_linear: false, by_cta: false, known }
    }
}

/// The largest number that is followed.
const MOST: i64 = i32::MAX as i64;

/// What an op makes of numbers of threads: masks and shifts cut rows, columns and tiles out of them.
fn known(op: Pure, sources: &[Course], n_warps: u32) -> Option<(i64, i64)> {
    let of = |k: usize, warp: i64| sources.get(k)?.known.map(|(base, step)| base + step * warp);
    let at = |warp: i64| -> Option<i64> {
        let x = of(0, warp)?;
        let is_mov = matches!(op, Pure::Mov(_) | Pure::Ext { bits: 32, .. });
        let y = if is_mov { 0 } else { of(1, warp)? };
        let r = match op {
            _ if is_mov => x,
            Pure::Add(_) => x + y,
            Pure::Sub(_) => x - y,
            Pure::Mul(_) | Pure::MulWide(_) => x * y,
            Pure::And(_) => x & y,
            Pure::Shl(_) if y < 31 => x << y,
            Pure::Shr(_) if y < 31 => x >> y,
            _ => return None,
        };
        (0..=MOST).contains(&r).then_some(r)
    };
    let first = at(0)?;
    let step = if n_warps > 1 { at(1)? - first } else { 0 };
    (0..i64::from(n_warps)).all(|w| at(w) == Some(first + step * w)).then_some((first, step))
}

/// The registers of a function that a head may test.
pub(crate) fn testable(f: &Function, launch: &LaunchShape) -> Set {
    let courses = courses(f, launch, &n_definitions(f));
    let mut set = Set::new(f.regs.len());
    courses.iter().enumerate().filter(|(_, c)| c.is_some()).for_each(|(r, _)| {
        set.add(r);
    });
    set
}

pub(super) fn courses(f: &Function, launch: &LaunchShape, defs: &[u32]) -> Vec<Option<Course>> {
    let mut of: Vec<Option<Course>> = vec![None; f.regs.len()];
    let mut params: Vec<Option<u32>> = vec![None; f.regs.len()];
    let warp_ops = f.blocks.iter().flat_map(|b| &b.insts).filter(|i| i.op.is_warp_sync());
    // Lanes that are parked find their operands in the context.
    let mut kept = Set::new(f.regs.len());
    warp_ops.flat_map(|i| &i.src).filter_map(reg).for_each(|r| {
        kept.add(r.idx());
    });
    let is_alone =
        |i: &&Inst| !i.guarded && !i.dst.is_empty() && i.dst.iter().all(|d| defs[d.idx()] == 1 && !kept.has(d.idx()));
    let mut left: Vec<&Inst> = f.blocks.iter().flat_map(|b| &b.insts).filter(is_alone).collect();
    loop {
        let before = left.len();
        left.retain(|inst| {
            if let (Op::ParamAddr { offset }, [d]) = (inst.op, inst.dst.as_slice()) {
                params[d.idx()] = Some(offset);
            }
            let source = |v: &Val| match v {
                Val::Imm(x, _) => Some(Course::constant(*x)),
                Val::Reg(r) => of[r.idx()],
            };
            let has = |v: &Val| matches!(v, Val::Imm(..)) || reg(v).is_some_and(|r| of[r.idx()].is_some());
            let waits = matches!(inst.op, Op::Pure(_) | Op::Cvta { .. }) && !inst.src.iter().all(has);
            let found = if waits { None } else { course(f, inst, launch, &source, &params) };
            if let Some(c) = found {
                inst.dst.iter().for_each(|d| of[d.idx()] = Some(c));
            }
            found.is_none()
        });
        if left.len() == before {
            return of;
        }
    }
}

fn course(
    f: &Function,
    inst: &Inst,
    launch: &LaunchShape,
    source: &dyn Fn(&Val) -> Option<Course>,
    params: &[Option<u32>],
) -> Option<Course> {
    let constant = Course { is_linear: false, by_cta: false, known: None };
    let linear = Course { is_linear: true, ..constant };
    match inst.op {
        Op::Sreg(s) if shape_constant(s, launch).is_some() => shape_constant(s, launch).map(Course::constant),
        Op::Sreg(Sreg::Ctaid(0..3)) => Some(Course { by_cta: true, ..constant }),
        Op::Sreg(Sreg::Nctaid(0..3) | Sreg::DynamicSmemSize | Sreg::Laneid) => Some(constant),
        Op::Sreg(Sreg::Warpid) => Some(linear),
        Op::Sreg(Sreg::Tid(i @ 0..3)) => {
            let of = |step| Course { known: Some((0, step)), ..if step == 0 { constant } else { linear } };
            tid_step(i, launch).map(of)
        }
        Op::ParamAddr { .. } | Op::SymAddr(_) | Op::SharedAddr(_) => Some(constant),
        Op::Cvta { space, .. } if space != StateSpace::SharedCluster => source(&inst.src[0]),
        Op::Load { .. } => {
            let class = AccessClass::of(inst)?;
            let offset = params[reg(&class.address)?.idx()]?;
            let at = i64::from(offset).checked_add(class.offset)?;
            let fits = class.space == StateSpace::ParamEntry
                && class.order == Order::Weak
                && !class.is_single
                && class.wants_all()
                && at >= 0
                && at + class.bytes() <= i64::from(f.param_bytes)
                && at % class.bytes() == 0;
            fits.then_some(constant)
        }
        Op::Pure(op) if inst.dst.len() == 1 => {
            let sources: Vec<Course> = inst.src.iter().map(source).collect::<Option<_>>()?;
            let values: Vec<Option<u64>> = inst.src.iter().map(|v| crate::table::constant(*v)).collect();
            if !has_scalar_code(op, &values) {
                return None;
            }
            let by_cta = sources.iter().any(|s| s.by_cta);
            let n_linear = sources.iter().filter(|s| s.is_linear).count();
            let known = known(op, &sources, launch.n_warps());
            let is_linear = match op {
                _ if n_linear == 0 => false,
                Pure::Mov(Ty::B32 | Ty::B64) | Pure::Add(Ty::B32 | Ty::B64) | Pure::Sub(Ty::B32 | Ty::B64) => true,
                Pure::Mul(Ty::B32 | Ty::B64) if n_linear == 1 => true,
                Pure::MulWide(Int { ty: Ty::B32, .. }) if n_linear == 1 => true,
                Pure::Shl(ty @ (Ty::B32 | Ty::B64)) if values[1]? < u64::from(ty.bits()) => true,
                Pure::Ext { bits: 32, from: Ty::B32, to: Ty::B64, .. } => true,
                Pure::Ext { bits: 32, from: Ty::B64, to: Ty::B32, .. } => true,
                Pure::And(Ty::B32 | Ty::B64) | Pure::Shr(Int { ty: Ty::B32 | Ty::B64, .. }) => known?.1 != 0,
                _ => return None,
            };
            Some(Course { is_linear, by_cta, known })
        }
        _ => None,
    }
}

/// The step of a component of `%tid` of lane 0 from warp to warp; `None` if it is not even.
pub(super) fn tid_step(i: u8, launch: &LaunchShape) -> Option<i64> {
    let [nx, ny, nz] = launch.ntid;
    let rows = |n: u32| (nz == 1).then_some(i64::from(n));
    match i {
        _ if launch.ntid[usize::from(i)] == 1 => Some(0),
        0 if nx == nx * ny * nz => Some(32),
        0 if nx == 32 || nx < 32 && 32u32.is_multiple_of(nx) && nx.is_multiple_of(4) => Some(0),
        1 if nx == 32 => rows(1),
        1 if nx < 32 && 32u32.is_multiple_of(nx) && nx.is_multiple_of(4) => rows(32 / nx),
        _ => None,
    }
}
