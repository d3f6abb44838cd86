//! Rows of a tile that a way takes from device memory to shared memory, and reads from there.
//!
//! # The model
//! Products of tiles bring rows of both to shared memory, wait at a barrier, and read a row for each step of their sums. Where one way does all that for all warps, and the addresses in shared
//! memory are constants, it is known which warp stores what a load reads. So a row goes into the vectors of the load from device memory, and to shared memory from there: it is read
//! once, and stores, of which hosts have few under way, stand between the steps of the sums instead of all before them.
//!
//! Nothing is stored to device memory between the place of a load and where it is done, and nothing that may be the same to shared memory; the warps of a way see barriers all at once.

use handloom_ir::simt::{Inst, Op, Reg, Val};
use handloom_ir::types::StateSpace;
use handloom_plan::access::AccessClass;

use super::GangAccess;
use super::way::{Gang, Passed};
use crate::access::Form;
use crate::alloc::{Place, n_parts};
use crate::asked::reg;
use crate::emit::*;
use crate::values::{load_code, store_code};

/// What the lanes of all warps have of an address, with its offset.
type Addresses = Vec<[i64; 32]>;

/// A load from device memory and the store to shared memory behind it.
struct Tile {
    from: (usize, usize),
    store: (usize, usize),
    /// The registers that they go by.
    addresses: [Reg; 2],
    class: AccessClass,
    /// Where the store goes.
    to: Addresses,
}

impl Tile {
    /// Whether all that a load or store of shared memory touches is elsewhere.
    fn is_apart(&self, class: &AccessClass, at: &Addresses) -> bool {
        let ends = |of: &Addresses, bytes: i64| {
            let all = || of.iter().flatten().copied();
            Some((all().min()?, all().max()? + bytes))
        };
        let both = ends(&self.to, self.class.bytes()).zip(ends(at, class.bytes()));
        both.is_some_and(|(a, b)| a.1 <= b.0 || b.1 <= a.0)
    }

    /// The warp, and the part of its vectors, that stores what a load reads in each of its parts.
    fn source(&self, at: &[i64; 32]) -> Option<(usize, usize)> {
        let (low, high) = at.split_at(16);
        let part = |warp: &[i64; 32]| warp.chunks(16).position(|part| part == low);
        let found = self.to.iter().enumerate().find_map(|(m, warp)| Some((m, part(warp)?)));
        found.filter(|_| low == high && low.windows(2).all(|w| w[1] - w[0] == self.class.bytes()))
    }
}

impl Emit<'_> {
    /// The same way, of so many warps, with the loads that get what others bring to shared memory, if there are any.
    pub(super) fn with_passed(&mut self, way: &Gang, size: usize) -> Option<Gang> {
        let is_of_all = size == self.plan.facts.shape.n_warps() as usize;
        let fits = self.a.has_wide_vectors() && way.is_whole && !way.by_warp && is_of_all;
        if !fits || !way.guarded.is_empty() || !way.exits.is_empty() {
            return None;
        }
        let insts: Vec<((usize, usize), &Inst)> = way.all_insts(self.f).collect();
        let mut passed = Vec::new();
        for (k, pair) in insts.windows(2).enumerate() {
            if let Some(tile) = self.tile_of(way, pair[0], pair[1]) {
                passed.extend(self.readers_of(way, &tile, &insts[k + 2..]).into_iter().flatten());
            }
        }
        (!passed.is_empty()).then(|| Gang { passed, ..way.clone() })
    }

    /// What two instructions of a way bring from device memory to shared memory: nobody else reads what the first one makes.
    fn tile_of(&mut self, way: &Gang, load: ((usize, usize), &Inst), store: ((usize, usize), &Inst)) -> Option<Tile> {
        let is_pair = matches!((load.1.op, store.1.op), (Op::Load { .. }, Op::Store { .. })) && load.0.0 == store.0.0;
        let &[d] = load.1.dst.as_slice() else { return None };
        let is_alone = !way.common.has(d.idx()) && self.plan.def_count[d.idx()] == 1 && self.uses.count(d) == 1;
        let is_whole = !self.plan.may_hold_odd_nan[d.idx()] && self.is_in_vectors(d);
        if !is_pair || !is_alone || !is_whole || store.1.guarded || store.1.operands().get(1) != Some(&Val::Reg(d)) {
            return None;
        }
        let read = self.row_of_tile(load)?;
        let written = self.row_of_tile(store)?;
        let spaces = (read.space, written.space);
        if !matches!(spaces, (StateSpace::Global | StateSpace::Const, StateSpace::Shared)) {
            return None;
        }
        let to = self.addresses_of(&written)?;
        let addresses = [reg(&read.address)?, reg(&written.address)?];
        Some(Tile { from: load.0, store: store.0, addresses, class: written, to })
    }

    /// An access of a gang to rows of 32 bits an element.
    fn row_of_tile(&mut self, (at, inst): ((usize, usize), &Inst)) -> Option<AccessClass> {
        self.at = at;
        if self.is_of_head(inst) {
            return None;
        }
        let g = self.access_of_gang(inst)?;
        let class = g.x.class;
        let is_row = matches!(g.form, Form::Row | Form::Parts) && !g.scalars && g.bit.is_some();
        let is_plain = class.count == 1 && class.bits == 32 && n_parts(g.x.ty) == 2 && !class.is_told;
        (is_row && is_plain).then_some(class)
    }

    /// Where the lanes of all warps access shared memory, if constants say it.
    fn addresses_of(&self, class: &AccessClass) -> Option<Addresses> {
        let values = self.head.as_ref()?.known_values(self.plan, class.address)?;
        let of_warp = |base: &i64| std::array::from_fn(|l| base + values.lanes[l] + class.offset);
        Some(values.warps.iter().map(of_warp).collect())
    }

    /// The first loads of all rows of a tile, in what follows in its way; `None` if they cannot get them so.
    fn readers_of(&mut self, way: &Gang, tile: &Tile, behind: &[((usize, usize), &Inst)]) -> Option<Vec<Passed>> {
        let mut passed: Vec<Passed> = Vec::new();
        for &(at, inst) in behind {
            if passed.len() == 2 * tile.to.len() {
                break;
            }
            if inst.dst.iter().any(|d| tile.addresses.contains(d)) {
                return None;
            }
            let class = match inst.op {
                _ if self.is_of_head(inst) => continue,
                Op::Pure(_) | Op::Sreg(_) | Op::Mark | Op::Count(_) => continue,
                Op::Load { .. } | Op::Store { .. } => AccessClass::of(inst)?,
                _ => return None,
            };
            let is_load = matches!(inst.op, Op::Load { .. });
            match class.space {
                StateSpace::Global | StateSpace::Const if is_load => continue,
                StateSpace::Shared => {}
                _ => return None,
            }
            let addresses = self.addresses_of(&class)?;
            if tile.is_apart(&class, &addresses) {
                continue;
            }
            let &[d] = inst.dst.as_slice() else { return None };
            let (member, part) = addresses.first().and_then(|a| tile.source(a))?;
            let is_common = way.common.has(d.idx()) && self.plan.def_count[d.idx()] == 1 && self.is_in_vectors(d);
            if !is_load
                || !is_common
                || inst.guarded
                || way.folds.contains_key(&at)
                || self.row_of_tile((at, inst)).is_none()
            {
                return None;
            }
            if !passed.iter().any(|p| (p.member, p.part) == (member, part)) {
                passed.push(Passed { at, from: tile.from, store: tile.store, member, part });
            }
        }
        (passed.len() == 2 * tile.to.len()).then_some(passed)
    }

    /// A load of a row that goes to shared memory only here.
    pub(super) fn load_passed(
        &mut self,
        gang: &Gang,
        inst: &Inst,
        g: &GangAccess,
        passed: &Passed,
    ) -> Result<(), Refusal> {
        let refused = || Refusal { what: "a bug: a row of a tile".to_owned(), span: inst.span };
        let Place::Vectors([to, ..]) = self.place(inst.dst[0]) else { return Err(refused()) };
        let (here, f) = (self.at, self.f);
        self.go_to_member(passed.member);
        for at in [passed.from, passed.store] {
            self.at = at;
            let g = self.access_of_gang(&gang.insts(f, at.0)[at.1]).ok_or_else(refused)?;
            let (m, _) = self.part_of_run(&g.x, &g.runs, g.form, passed.part);
            if at == passed.store {
                self.a.store(store_code(g.x.ty), m, zmm(to), ALL);
            } else {
                self.a.op2(load_code(g.x.ty), zmm(to), m);
                if passed.part == 0 {
                    self.fetch_next(&g);
                }
            }
        }
        self.go_to_member(0);
        self.at = here;
        self.take_part_before(inst, &g.x, 1);
        Ok(())
    }
}
