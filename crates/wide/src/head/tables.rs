//! Guards of thread numbers and constants: which lanes of each warp go on is known when code is made.
//!
//! # The model
//! A step of a scan reads what stands some elements before, in the threads that have so many before them. What such a guard guards is done under the masks of these lanes, and the head asks
//! of its accesses only what is right for them: the lowest address is that of the first lane that goes. So an access for other lanes may lie anywhere.

use handloom_ir::num::eval;
use handloom_ir::simt::{Op, Pure, Val};
use handloom_ir::types::Ty;
use handloom_plan::Plan;

use super::lanes::{guarded, is_done_if_true};
use super::{Group, Guard, Head, Table, reg};
use crate::emit::*;
use crate::values::load_code;

/// The distances of all lanes of a CTA from the first one, in a value.
pub(super) struct Reach {
    places: Vec<[i64; 32]>,
}

impl Reach {
    /// How far the lowest of some lanes, by warp, is above the lowest of all, and the highest below the highest. `None` where there are none.
    pub(super) fn of(&self, lanes: &[u32]) -> Option<(i64, i64)> {
        let all = || self.places.iter().flatten().copied();
        let some = || {
            let of_warp = |(places, lanes): (&[i64; 32], &u32)| {
                let lanes = *lanes;
                let places = *places;
                (0..32).filter(move |l| lanes >> l & 1 == 1).map(move |l| places[l])
            };
            self.places.iter().zip(lanes).flat_map(of_warp)
        };
        Some((some().min()? - all().min()?, all().max()? - some().max()?))
    }
}

/// What a value is in all threads of a CTA.
pub(crate) struct KnownValues {
    /// In the first lane, by warp.
    pub(crate) warps: Vec<i64>,
    /// How far other lanes are from that.
    pub(crate) lanes: [i64; 32],
    /// The bits that it has.
    mask: u64,
}

impl Head {
    /// What a value is, if the shape of the launch decides it.
    pub(crate) fn known_values(&self, plan: &Plan, v: Val) -> Option<KnownValues> {
        let n_warps = plan.facts.shape.n_warps() as usize;
        Some(match v {
            Val::Imm(x, ty) => {
                let warps = vec![(x & ty.mask()).cast_signed(); n_warps];
                KnownValues { warps, lanes: [0; 32], mask: ty.mask() }
            }
            Val::Reg(r) => {
                let (base, steps) = self.courses[r.idx()].filter(|c| !c.by_cta)?.known?;
                let shape = plan.facts.class[r.idx()].shape().filter(|s| s.groups() == 1)?;
                let warps = (0..n_warps).map(|w| base + self.ranks.distance(steps, w)).collect();
                let lanes = std::array::from_fn(|lane| shape.delta(lane) - shape.delta(0));
                KnownValues { warps, lanes, mask: plan.func.regs[r.idx()].mask() }
            }
        })
    }

    /// The lanes of each warp in which a guard lets go on, if the shape of the launch decides it.
    pub(super) fn known_table(&self, plan: &Plan, b: usize, guard: Guard) -> Option<Vec<u32>> {
        let insts = &plan.func.blocks[b].insts[guard.from..];
        let n_warps = plan.facts.shape.n_warps() as usize;
        let mut tables: Vec<Vec<u32>> = Vec::new();
        for inst in insts {
            let of = |i: usize| {
                let v = inst.src.get(i)?;
                tables.get(insts.iter().position(|x| reg(*v).is_some_and(|r| x.dst.contains(&r)))?)
            };
            let compared = match inst.op {
                Op::Pure(op @ Pure::ICmp(..)) => {
                    let of = |v: Val| self.known_values(plan, v);
                    Some((op, of(inst.src[0])?, of(inst.src[1])?))
                }
                _ => None,
            };
            let table: Option<Vec<u32>> = (0..n_warps)
                .map(|w| match (inst.op, &compared) {
                    (_, Some((op, a, b))) => {
                        let of = |x: &KnownValues, l: usize| (x.warps[w] + x.lanes[l]).cast_unsigned() & x.mask;
                        let holds = |l: usize| eval(*op, &[of(a, l), of(b, l)])[0] as u32 & 1;
                        Some((0..32).fold(0, |lanes, l| lanes | holds(l) << l))
                    }
                    (Op::Pure(Pure::And(Ty::P)), _) => Some(of(0)?[w] & of(1)?[w]),
                    (Op::Pure(Pure::Or(Ty::P)), _) => Some(of(0)?[w] | of(1)?[w]),
                    (Op::Pure(Pure::Not(Ty::P)), _) => Some(!of(0)?[w]),
                    _ => None,
                })
                .collect();
            tables.push(table?);
        }
        let cond = insts.iter().position(|x| x.dst.contains(&guard.cond))?;
        let holds = tables.swap_remove(cond);
        let goes = |lanes: u32| if is_done_if_true(&plan.func, b) { lanes } else { !lanes };
        Some(holds.into_iter().map(goes).collect())
    }

    /// Words for the lanes that such guards let go on, but those at the start of a turn that leave whole warps nothing to do: see `lanes`.
    pub(super) fn give_known_lanes(&mut self, plan: &Plan) {
        for b in 0..plan.func.blocks.len() {
            let is_open = |g: &Guard| g.lanes.is_none() && self.bits < 31 && Head::has_tables(plan);
            let Some(guard) = self.guards[b].filter(|g| self.idle[b].is_none() && is_open(g)) else { continue };
            let parts = |lanes: &Vec<u32>| lanes.iter().any(|l| *l != lanes[0] || !matches!(*l, 0 | u32::MAX));
            let is_straight = guarded(plan, b).is_some();
            if let Some(lanes) = self.known_table(plan, b, guard).filter(|lanes| is_straight && parts(lanes)) {
                self.give_table(b, guard, true);
                self.tables[b] = Some(lanes);
            }
        }
    }

    /// By block: the lanes of each warp that may execute it, where such a guard says so.
    pub(super) fn tables_of_blocks(&self, plan: &Plan) -> Vec<Option<&[u32]>> {
        let mut tables = vec![None; plan.func.blocks.len()];
        for (b, table) in self.tables.iter().enumerate().filter_map(|(b, table)| Some((b, table.as_deref()?))) {
            let blocks = guarded(plan, b).map_or_else(Vec::new, |(blocks, _)| blocks);
            blocks.into_iter().for_each(|x| tables[x] = Some(table));
        }
        tables
    }

    /// Where lanes find the elements of a group of accesses, if they stand next to each other in a warp and a constant says how far it is to the next warp.
    pub(super) fn reach_of_lanes(&self, plan: &Plan, g: &Group) -> Option<Reach> {
        let r = g.key.0;
        let steps = if self.same[r.idx()].is_some() { [0; 2] } else { self.linear[r.idx()]?.known()? };
        let shape = plan.facts.class[r.idx()].shape()?;
        let is_row = shape.groups() == 1 && (0..32).all(|l| shape.delta(l) - shape.delta(0) == l as i64 * g.key.3);
        if g.from != r || !is_row || g.key.3 < 4 {
            return None;
        }
        let n_warps = plan.facts.shape.n_warps() as usize;
        let of_warp = |w: usize| std::array::from_fn(|l| self.ranks.distance(steps, w) + shape.delta(l));
        Some(Reach { places: (0..n_warps).map(of_warp).collect() })
    }
}

impl Emit<'_> {
    /// Writes down the lanes that such a guard lets go on.
    pub(super) fn write_known_lanes(&mut self, head: &Head, b: usize, table: Table) {
        let Some(lanes) = &head.tables[b] else { return };
        let words: Vec<u64> = (0..16).map(|w| lanes.get(w).map_or(0, |l| u64::from(*l))).collect();
        let c = self.lanes_constant(Ty::B32, &words);
        self.a.op2(load_code(Ty::B32), zmm(0), c);
        self.write_lanes(table);
    }
}
