//! How values depend on the CTA and on the number of the warp.

use handloom_ir::simt::{Function, Inst, LaunchShape, Op, Pure, Reg, Val, shape_constant};
use handloom_ir::types::{Int, Order, Sreg, StateSpace, Ty};
use handloom_plan::access::AccessClass;
use handloom_plan::analysis::cfg::Set;
use handloom_plan::analysis::n_definitions;
use smallvec::SmallVec;

use crate::asked::reg;
use crate::table::has_scalar_code;

/// Steps of a value: from a warp to the one beside it, and from a rank of warps to the next one.
pub(super) type Steps<T> = [T; 2];
/// From warp to warp inside of a rank.
pub(super) const ACROSS: usize = 0;
/// From rank to rank.
pub(super) const DOWN: usize = 1;

/// Warps of a CTA in ranks: `%tid` goes up evenly along each of them, and evenly from one to the next. Where all warps are alike, each is a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ranks {
    /// Warps of one: a power of two.
    pub(crate) across: u32,
    /// How many there are.
    pub(crate) down: u32,
}

impl Ranks {
    /// Those of a launch, in which a function finds its way by thread numbers.
    pub(super) fn of(f: &Function, launch: &LaunchShape) -> Ranks {
        let ([nx, ny, nz], n) = (launch.ntid, launch.n_warps());
        let across = match nx {
            _ if !launch.threads().is_multiple_of(32) => 1,
            _ if nx == launch.threads() => Ranks::cut(f, nx),
            _ if nz > 1 && fits_in_warp(nx) && (nx * ny).is_multiple_of(32) => nx * ny / 32,
            _ if nx.is_multiple_of(32) => nx / 32,
            _ => 1,
        };
        let across = if across.is_power_of_two() && n.is_multiple_of(across) { across } else { 1 };
        Ranks { across, down: n / across }
    }

    /// Warps of the tiles that masks and shifts cut out of the numbers of threads, the narrowest, if these are wider than a warp; else 1.
    fn cut(f: &Function, threads: u32) -> u32 {
        let insts = || f.blocks.iter().flat_map(|b| &b.insts);
        let numbers: Vec<Reg> =
            insts().filter(|i| matches!(i.op, Op::Sreg(Sreg::Tid(0)))).flat_map(|i| i.dst.clone()).collect();
        let width = |i: &Inst| {
            let by = crate::table::constant(*i.src.get(1)?)?;
            let width = match i.op {
                Op::Pure(Pure::And(Ty::B32)) => by.checked_add(1)?,
                Op::Pure(Pure::Shr(Int { ty: Ty::B32, .. })) => 1 << by.min(31),
                _ => return None,
            };
            let fits = reg(&i.src[0]).is_some_and(|r| numbers.contains(&r)) && width.is_power_of_two();
            u32::try_from(width).ok().filter(|w| fits && (33..threads).contains(w))
        };
        insts().filter_map(width).min().map_or(1, |w| w / 32)
    }

    /// The steps of a value that goes up evenly from each warp to the next.
    pub(super) fn in_order(self, step: i64) -> Steps<i64> {
        [if self.across == 1 { 0 } else { step }, step * i64::from(self.across)]
    }

    /// Where a warp stands: in its rank, and which that is.
    pub(super) fn place(self, warp: usize) -> Steps<i64> {
        let across = self.across as usize;
        [warp % across, warp / across].map(|n| n as i64)
    }

    /// How far the last warp stands from the first one in both ways.
    pub(super) fn last(self) -> Steps<i64> {
        [i64::from(self.across) - 1, i64::from(self.down) - 1]
    }

    /// Of a value in a warp, by its steps: how far it is from that of warp 0.
    pub(super) fn distance(self, steps: Steps<i64>, warp: usize) -> i64 {
        let at = self.place(warp);
        steps[ACROSS].wrapping_mul(at[ACROSS]).wrapping_add(steps[DOWN].wrapping_mul(at[DOWN]))
    }

    /// How far the lowest and the highest value of all warps are from that of warp 0; `None` where that is too long.
    pub(super) fn reach(self, steps: Steps<i64>) -> Option<(i64, i64)> {
        let last = self.last();
        let by = [steps[ACROSS].checked_mul(last[ACROSS])?, steps[DOWN].checked_mul(last[DOWN])?];
        Some((by[0].min(0).checked_add(by[1].min(0))?, by[0].max(0).checked_add(by[1].max(0))?))
    }
}

/// Whether rows of so many threads fill a warp.
fn fits_in_warp(nx: u32) -> bool {
    nx == 32 || nx < 32 && 32u32.is_multiple_of(nx) && nx.is_multiple_of(4)
}

/// How a value depends on what is not a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Course {
    /// It differs between warps, by even steps.
    pub(super) is_linear: bool,
    /// It differs between CTAs.
    pub(super) by_cta: bool,
    /// What it is in lane 0 of warp 0, and its steps, if all are constants below 2^31.
    pub(super) known: Option<(i64, Steps<i64>)>,
}

impl Course {
    /// Of a constant.
    pub(super) fn constant(x: u64) -> Course {
        let known = i64::try_from(x).ok().filter(|x| *x <= MOST).map(|x| (x, [0; 2]));
        Course { is_linear: false, by_cta: false, known }
    }
}

/// The largest number that is followed.
const MOST: i64 = i32::MAX as i64;

/// What an op makes of numbers of threads: masks and shifts cut rows, columns and tiles out of them.
fn known(op: Pure, sources: &[Course], ranks: Ranks) -> Option<(i64, Steps<i64>)> {
    let of = |k: usize, warp: usize| sources.get(k)?.known.map(|(base, steps)| base + ranks.distance(steps, warp));
    let at = |warp: usize| -> Option<i64> {
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
    let (across, down) = (ranks.across as usize, ranks.down as usize);
    let step = |exists: bool, warp: usize| if exists { Some(at(warp)? - first) } else { Some(0) };
    let steps = [step(across > 1, 1)?, step(down > 1, across)?];
    (0..across * down).all(|w| at(w) == Some(first + ranks.distance(steps, w))).then_some((first, steps))
}

/// The registers of a function that a head may test.
pub(crate) fn testable(f: &Function, launch: &LaunchShape) -> Set {
    let courses = courses(f, launch, Ranks::of(f, launch), &n_definitions(f));
    let mut set = Set::new(f.regs.len());
    courses.iter().enumerate().filter(|(_, c)| c.is_some()).for_each(|(r, _)| {
        set.add(r);
    });
    set
}

pub(super) fn courses(f: &Function, launch: &LaunchShape, ranks: Ranks, defs: &[u32]) -> Vec<Option<Course>> {
    let mut of: Vec<Option<Course>> = vec![None; f.regs.len()];
    let mut params: Vec<Option<u32>> = vec![None; f.regs.len()];
    let warp_ops = f.blocks.iter().flat_map(|b| &b.insts).filter(|i| i.op.is_warp_sync());
    // Lanes that are parked find their operands in the context.
    let mut kept = Set::new(f.regs.len());
    warp_ops.flat_map(|i| &i.src).filter_map(reg).for_each(|r| {
        kept.add(r.idx());
    });
    let may_have = |op: Op| match op {
        Op::Sreg(_) | Op::ParamAddr { .. } | Op::SymAddr(_) | Op::SharedAddr(_) | Op::Cvta { .. } | Op::Pure(_) => true,
        Op::Load { access, .. } => access.space == StateSpace::ParamEntry,
        _ => false,
    };
    let is_alone = |i: &&Inst| {
        may_have(i.op)
            && !i.guarded
            && !i.dst.is_empty()
            && i.dst.iter().all(|d| defs[d.idx()] == 1 && !kept.has(d.idx()))
    };
    let mut left: Vec<&Inst> = f.blocks.iter().flat_map(|b| &b.insts).filter(is_alone).collect();
    // Registers that may still be found to have a course: what reads any other is found to have none.
    let mut may_get = vec![false; f.regs.len()];
    left.iter().flat_map(|i| &i.dst).for_each(|d| may_get[d.idx()] = true);
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
            let is_value = matches!(inst.op, Op::Pure(_) | Op::Cvta { .. });
            let waits = is_value && !inst.src.iter().all(has);
            let found = if waits { None } else { course(f, inst, (launch, ranks), &source, &params) };
            if let Some(c) = found {
                inst.dst.iter().for_each(|d| of[d.idx()] = Some(c));
                return false;
            }
            // What has all of its sources finds no more later.
            let stays = if waits { inst.src.iter().filter_map(reg).all(|r| may_get[r.idx()]) } else { !is_value };
            if !stays {
                inst.dst.iter().for_each(|d| may_get[d.idx()] = false);
            }
            stays
        });
        if left.len() == before {
            return of;
        }
    }
}

fn course(
    f: &Function,
    inst: &Inst,
    (launch, ranks): (&LaunchShape, Ranks),
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
            let of = |steps| Course { known: Some((0, steps)), ..if steps == [0; 2] { constant } else { linear } };
            tid_steps(i, launch, ranks).map(of)
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
            let sources: SmallVec<[Course; 3]> = inst.src.iter().map(source).collect::<Option<_>>()?;
            if !has_scalar_code(op, &inst.src) {
                return None;
            }
            let by_cta = sources.iter().any(|s| s.by_cta);
            let n_linear = sources.iter().filter(|s| s.is_linear).count();
            let known = known(op, &sources, ranks);
            let is_linear = match op {
                _ if n_linear == 0 => false,
                Pure::Mov(Ty::B32 | Ty::B64) | Pure::Add(Ty::B32 | Ty::B64) | Pure::Sub(Ty::B32 | Ty::B64) => true,
                Pure::Mul(Ty::B32 | Ty::B64) if n_linear == 1 => true,
                Pure::MulWide(Int { ty: Ty::B32, .. }) if n_linear == 1 => true,
                Pure::Shl(ty @ (Ty::B32 | Ty::B64)) if crate::table::constant(inst.src[1])? < u64::from(ty.bits()) => {
                    true
                }
                Pure::Ext { bits: 32, from: Ty::B32, to: Ty::B64, .. } => true,
                Pure::Ext { bits: 32, from: Ty::B64, to: Ty::B32, .. } => true,
                Pure::And(Ty::B32 | Ty::B64) | Pure::Shr(Int { ty: Ty::B32 | Ty::B64, .. }) => known?.1 != [0; 2],
                _ => return None,
            };
            Some(Course { is_linear, by_cta, known })
        }
        _ => None,
    }
}

/// The steps of a component of `%tid` of lane 0; `None` if they are not even.
pub(super) fn tid_steps(i: u8, launch: &LaunchShape, ranks: Ranks) -> Option<Steps<i64>> {
    let [nx, ny, nz] = launch.ntid;
    let flat = nx * ny;
    match i {
        _ if launch.ntid[usize::from(i)] == 1 => Some([0; 2]),
        0 if nx == launch.threads() => Some(ranks.in_order(32)),
        // The rest is of whole ranks.
        _ if nx > 32 => {
            let is_wide = nx.is_multiple_of(32) && ranks.across == nx / 32;
            let is_next = i == 1 && nz == 1 || i == 2 && ny == 1;
            (is_wide && (i == 0 || is_next)).then_some(if i == 0 { [32, 0] } else { [0, 1] })
        }
        _ if !fits_in_warp(nx) => None,
        0 => Some([0; 2]),
        1 if nz == 1 => Some([0, i64::from(32 / nx)]),
        1 if 32u32.is_multiple_of(flat) => Some([0; 2]),
        2 if 32u32.is_multiple_of(flat) => Some([0, i64::from(32 / flat)]),
        _ if flat.is_multiple_of(32) && ranks.across == flat / 32 => {
            Some(if i == 1 { [i64::from(32 / nx), 0] } else { [0, 1] })
        }
        _ => None,
    }
}
