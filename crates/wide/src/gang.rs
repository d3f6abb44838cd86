//! Several warps side by side: straight ways of a turn, emitted for a *gang* of warps at once.
//!
//! # The model
//! A turn mostly goes one way: from its start through guards that hold in all lanes to the next barrier or the end, over accesses that the head decided about. Such a
//! way is emitted once more, after all blocks, for 2, 4 or 8 warps whose contexts follow each other, instruction by instruction: each warp has vectors of its own, chosen for
//! this way alone; what is the same in all warps is loaded once; addresses are made once and lie at distances from each other where the step from warp to warp is
//! a constant. Chains of operations that wait for each other so stand beside others, and what is done once a warp is done once a gang.
//!
//! A turn takes this way if the head has set all bits that it rests on. Warps that are left over, and all of
//! them where a bit is missing, go through the blocks one after the other.
//!
//! Where a branch asks what is the same in all warps (`common`), the way ends, and goes on with one of two others, which find values in their homes. Accesses that the head could not
//! decide about are tested for all warps of the gang at the start of their way, when nothing of it has happened: if a test refuses, the turn is settled with the
//! warps of the gang waiting at the first block of the way, and the CTA goes on by headers.
//!
//! Where a gang has all warps of the CTA, and the head has decided about everything up to the end, nobody waits at a plain barrier: ways go on behind it (`is_whole`), and values stay in
//! vectors over the barriers of a loop. Then no turn but the first one has gangs.

mod alone;
mod bare;
mod carried;
mod code;
mod common;
mod constants;
mod exits;
mod far;
mod passed;
mod places;
mod shifted;
mod strips;
pub(crate) mod way;

use handloom_diag::hash::{FastMap, FastSet};
use handloom_ir::simt::{Count, Inst, Op, Reg, Term, Val};
use handloom_ir::types::{Order, Sreg, StateSpace, Ty};
use handloom_plan::access::{AccessClass, Kind};
use handloom_plan::analysis::cfg::Set;

use way::{End, Exit, Gang, Guarded, SIZES};

use crate::access::{Access, Form, Runs};
use crate::alloc::Place;
use crate::asked::reg;
use crate::emit::*;
use crate::head::{Going, Table};
use crate::ops::has_vector_code;
use crate::table::{arithmetic, has_scalar_code, simple};
use crate::values::is_wide;

/// As [`SIZES`], in pairs of vectors of 256 bits, of which sixteen registers hold few.
const SIZES_OF_PAIRS: [(usize, usize); 3] = [(8, 240), (4, 64), (2, 400)];
/// Vectors in use at one time up to which instructions of several warps stand side by side in such pairs.
const MOST_OF_PAIRS: u32 = 7;
/// Most instructions times warps of a way of all warps of a CTA.
const MOST_OF_WHOLE: usize = 1500;
/// Where only the first warp does something in a turn.
const ALONE: [(usize, usize); 1] = [(1, 400)];
/// More warps than this go side by side only where nothing is tested.
const LARGE: usize = 4;
/// Most instructions of a way that warps go one after the other.
const SHORT: usize = 32;
/// Ways of a function.
const MOST_WAYS: usize = 24;
/// Most ways that are looked for to find those of one turn: where ways part again and again and fail at their ends, each is looked for anew.
const MOST_STEPS: usize = 8 * MOST_WAYS;

/// A turn that gangs may go.
#[derive(Clone)]
pub(crate) struct Team {
    /// The block that it starts at.
    start: usize,
    /// The first of its ways.
    first: usize,
    /// The first blocks of all of them.
    ways: Vec<usize>,
    /// The bits of the head that all its ways rest on.
    bits: u32,
    /// Where it ends, if there is one place.
    place: Option<Option<usize>>,
    /// Whether headers are written before the turn has ended: what says that warps live is to be there.
    needs_live: bool,
    /// How many warps go, if a constant says so, all of them go the same way, and nothing stops them on it.
    fixed: Option<usize>,
}

/// An access of a gang: all that is to be known for its code.
pub(crate) struct GangAccess {
    x: Access,
    runs: Runs,
    form: Form,
    scalars: bool,
    /// The bit that says that it is right; else it is to be tested.
    bit: Option<u32>,
}

/// The search for the ways of a function.
struct Search {
    /// By register: whether it is the same in all warps wherever these are at the same place.
    common: Vec<bool>,
    /// By first block, and whether a turn starts with it: the way, without places.
    known: FastMap<(usize, bool), Option<Gang>>,
    ways: Vec<Gang>,
    /// The first blocks of ways that lead to the one that is looked at.
    path: Vec<usize>,
    /// Whether ways go on behind barriers.
    is_whole: bool,
    /// How often a way was looked for in this turn.
    n_steps: usize,
}

impl Emit<'_> {
    /// Whether gangs are looked for at all: in CTAs of whole warps whose turns begin in the code.
    pub(crate) fn may_have_gangs(&self) -> bool {
        self.plan.facts.shape.threads().is_multiple_of(32) && self.turns.is_some() && self.head.is_some()
    }

    /// The ways of gangs of a function, and the turns that go them. Asked after all blocks have been emitted, since only then it is known what the head decides.
    /// With the way that rows of CTAs may go in strips.
    pub(crate) fn find_gangs(&mut self) -> (Vec<Gang>, Vec<Team>, Option<(Gang, i32)>) {
        let mut teams = Vec::new();
        let n_warps = self.plan.facts.shape.threads() as usize / 32;
        let mut search = Search {
            common: self.common_values(),
            known: FastMap::default(),
            ways: Vec::new(),
            path: Vec::new(),
            is_whole: false,
            n_steps: 0,
        };
        if let Some(team) = self.whole_team(n_warps, &mut search) {
            return (search.ways, vec![team], None);
        }
        for start in self.starts_of_turns() {
            // Those that have something to do in the turn, where that is a constant.
            let head = self.head.as_ref().filter(|_| !self.counts());
            let active = head.and_then(|h| h.n_active(self.plan, start)).unwrap_or(n_warps);
            let sizes = match active {
                1 if n_warps > 1 => &ALONE[..],
                _ if self.a.has_wide_vectors() => &SIZES,
                _ => &SIZES_OF_PAIRS,
            };
            for &(size, most) in sizes.iter().filter(|s| s.0 <= n_warps.min(active)) {
                let before = search.ways.len();
                search.path.clear();
                search.n_steps = 0;
                let found = self.ways_from(start, size, most, &mut search);
                let team = found.and_then(|first| self.team(start, first, &search.ways));
                if let Some(team) = team {
                    teams.push(team);
                    break;
                }
                search.ways.truncate(before);
            }
        }
        let strip = self.find_strip(&search);
        (search.ways, teams, strip)
    }

    /// The turn of a whole CTA, if all its warps go side by side behind the barriers of a loop.
    fn whole_team(&mut self, n_warps: usize, search: &mut Search) -> Option<Team> {
        let has_barrier = |body: &Set| body.iter().any(|b| self.plain_barrier(b).is_some());
        let waits = self.plan.facts.cfg.loops.iter().any(|(_, body)| has_barrier(body));
        if !waits || !(2..=SIZES[0].0).contains(&n_warps) {
            return None;
        }
        search.is_whole = true;
        let found = self.ways_from(0, n_warps, MOST_OF_WHOLE, search);
        let team = found.and_then(|first| self.team(0, first, &search.ways));
        search.is_whole = false;
        search.known.clear();
        // To go on behind barriers alone is not worth that later turns have no gangs.
        let comes_back = |w: &Gang| w.comes_back() && w.blocks.iter().any(|(b, _)| self.plain_barrier(*b).is_some());
        let team = team.filter(|t| t.place == Some(None) && search.ways.iter().any(comes_back));
        if team.is_none() {
            search.ways.clear();
        }
        team
    }

    /// Whether a way of all warps goes on behind a barrier with a block.
    fn goes_on_behind(&self, next: usize) -> bool {
        let n_warps = self.plan.facts.shape.threads() as usize / 32;
        let head = self.head.as_ref().filter(|_| !self.counts());
        head.is_some_and(|h| h.n_active(self.plan, next) == Some(n_warps)) && !self.goes_in_turn(next)
    }

    /// The number of the way that begins at a block, with all that it may go on with. (That of a way that leads to it is not known yet.)
    fn ways_from(&mut self, start: usize, size: usize, most: usize, search: &mut Search) -> Option<usize> {
        let is_first = search.path.is_empty();
        if let Some(k) =
            search.ways.iter().position(|w| w.start == start && w.warps == size && (is_first || !w.is_first))
        {
            return Some(k);
        }
        if search.path.contains(&start) {
            // A loop: warps go round it together, if they aren't to go through it in turn, and values stay in registers where there are few of these.
            let stays = self.a.has_wide_vectors() || search.path.last() == Some(&start);
            return (stays && !self.goes_in_turn(start)).then_some(search.ways.len());
        }
        if search.ways.len() + search.path.len() >= MOST_WAYS || search.n_steps >= MOST_STEPS {
            return None;
        }
        search.n_steps += 1;
        if !search.known.contains_key(&(start, is_first)) {
            // Who counts lanes knows them when code is made.
            let way = self.way_from(start, search, is_first, !self.counts());
            let way = way.or_else(|| self.way_from(start, search, is_first, false));
            search.known.insert((start, is_first), way);
        }
        let way = search.known[&(start, is_first)].as_ref()?;
        // Tests are long, and gain nothing by more warps; so few registers hold what more warps need only where these go one after the other.
        let is_large = size > LARGE && !way.by_warp && !way.is_whole && !self.a.has_wide_vectors();
        if self.length(way) * size > most || is_large || (size > LARGE || way.is_whole) && !way.tests.is_empty() {
            return None;
        }
        let mut gang = self.places_with_chains(way, size)?;
        let is_crowded = !self.a.has_wide_vectors() && gang.most_in_use() > MOST_OF_PAIRS;
        if is_crowded && !way.by_warp && self.may_go_by_warp(way) {
            gang = self.places_of_gang(&Gang { by_warp: true, ..way.clone() }, size).unwrap_or(gang);
        }
        if is_crowded && gang.comes_back() {
            return None;
        }
        gang.label = self.a.label();
        // A way may be found for several numbers of warps.
        for exit in &mut gang.exits {
            (exit.label, exit.refused) = (self.a.label(), self.a.label());
        }
        if gang.comes_back() {
            gang.again = Some(self.a.label());
        }
        let (depth, n_ways) = (search.path.len(), search.ways.len());
        search.path.push(start);
        let mut others = gang.successors();
        let is_asked = matches!(gang.end, End::Branch(..)) && !gang.is_whole;
        for to in gang.successors() {
            let before = search.ways.len();
            if self.ways_from(to, size, most, search).is_none() {
                search.path.truncate(depth + 1);
                search.ways.truncate(before);
                gang.stops.push((to, self.a.label()));
                others.retain(|o| *o != to);
            }
        }
        search.path.truncate(depth);
        // Where warps go on one by one on one side, the other one is to be worth it.
        if !gang.stops.is_empty() && (!is_asked || others.is_empty()) {
            search.ways.truncate(n_ways);
            return None;
        }
        search.ways.push(gang);
        Some(search.ways.len() - 1)
    }

    /// The turn from a block, if gangs may go it.
    fn team(&self, start: usize, first: usize, ways: &[Gang]) -> Option<Team> {
        let mut all: Vec<usize> = vec![first];
        let mut at = 0;
        while let Some(&k) = all.get(at) {
            at += 1;
            for to in ways[k].successors().into_iter().filter(|to| !ways[k].stops_before(*to)) {
                let k = ways.iter().position(|w| w.start == to && w.warps == ways[k].warps && !w.is_first)?;
                if !all.contains(&k) {
                    all.push(k);
                }
            }
        }
        let mut places: Vec<Option<usize>> = Vec::new();
        for k in &all {
            if let End::Place(place) = ways[*k].end
                && !places.contains(&place)
            {
                places.push(place);
            }
        }
        // To stop and settle the turn is worth it where a loop was gone round together.
        let stops = all.iter().any(|k| !ways[*k].stops.is_empty());
        if stops && !all.iter().any(|k| ways[*k].comes_back()) {
            return None;
        }
        // Warps that do nothing in the turn come to where the others do.
        let head = self.head.as_ref().filter(|_| !self.counts());
        let idle = head.and_then(|h| h.idle(start));
        let does = all.iter().any(|k| self.length(&ways[*k]) > 0);
        if !does || idle.is_some_and(|i| places.iter().any(|p| *p != i.barrier)) {
            return None;
        }
        let first_way = &ways[first];
        let is_straight =
            matches!(first_way.end, End::Place(_)) && first_way.tests.is_empty() && first_way.exits.is_empty();
        let n_active = match head {
            Some(h) => h.n_active(self.plan, start),
            None => Some(self.plan.facts.shape.threads() as usize / 32),
        };
        Some(Team {
            fixed: n_active.filter(|n| is_straight && n.is_multiple_of(first_way.warps)),
            start,
            first,
            ways: all.iter().map(|k| ways[*k].start).collect(),
            bits: all.iter().fold(0, |m, k| m | ways[*k].bits),
            place: if let [place] = places[..] { Some(place) } else { None },
            needs_live: start == 0
                && all
                    .iter()
                    .map(|k| &ways[*k])
                    .any(|w| !w.tests.is_empty() || !w.exits.is_empty() || w.end != End::Place(None)),
        })
    }

    /// Instructions of a way that code is emitted for.
    fn length(&self, way: &Gang) -> usize {
        let is_nothing = |inst: &&Inst| matches!(inst.op, Op::Count(_)) || self.is_of_head(inst);
        way.blocks.iter().map(|&(b, n)| way.insts(self.f, b)[..n].iter().filter(|i| !is_nothing(i)).count()).sum()
    }

    /// The way from a block, without places for registers. `is_first`: a turn starts with it. `for_some`: it may go through what is guarded for some lanes.
    fn way_from(&mut self, start: usize, search: &Search, is_first: bool, for_some: bool) -> Option<Gang> {
        let (f, common) = (self.f, &search.common);
        let mut way = Gang {
            start,
            warps: 0,
            by_warp: false,
            blocks: Vec::new(),
            bare: FastMap::default(),
            bits: 0,
            tests: Vec::new(),
            is_first: false,
            is_whole: search.is_whole,
            end: End::Place(None),
            common: Set::default(),
            guarded: FastMap::default(),
            folds: FastMap::default(),
            carried: Vec::new(),
            shifted: Vec::new(),
            passed: Vec::new(),
            entered: Vec::new(),
            moves: Vec::new(),
            alive: Vec::new(),
            spare: Vec::new(),
            alone: Vec::new(),
            stops: Vec::new(),
            exits: Vec::new(),
            leaves: Vec::new(),
            label: self.a.label(),
            again: None,
        };
        let mut written: Vec<Reg> = Vec::new();
        let mut b = start;
        loop {
            let block = &f.blocks[b];
            let guard = self.head.as_ref().and_then(|h| h.guard_of(b));
            let n = guard.map_or(block.insts.len(), |g| g.from);
            let bare = self.bare(b);
            let insts = bare.as_ref().map_or(&block.insts, |(insts, _)| insts);
            way.bits |= bare.as_ref().map_or(0, |(_, bits)| *bits);
            for (i, inst) in insts[..n].iter().enumerate() {
                self.at = (b, i);
                let going = way.guarded.get(&b).map(|g| g.going);
                if !self.fits_merging(&way, inst) {
                    return None;
                }
                let bit = self.fits_gang(inst)?;
                // What the way may leave for is tested there, if its address is known.
                let is_made_here = |r| insts[..i].iter().any(|x| x.dst.contains(&r));
                let is_there = inst.src.first().and_then(reg).is_some_and(|r| !is_made_here(r));
                let is_access = matches!(inst.op, Op::Load { .. } | Op::Store { .. }) && bit != Some(0);
                if let Some(exit) = way.exits.last_mut().filter(|x| x.stay == b && is_access && is_there) {
                    exit.tests.push(((b, i), bit));
                    if going.is_some() || inst.guarded {
                        return None;
                    }
                } else if let Some(bit) = bit {
                    way.bits |= bit;
                    if !self.fits_lanes(inst, going) {
                        return None;
                    }
                } else if going.is_some() {
                    return None;
                } else {
                    // Tested at the start, where its address must be known.
                    let is_late = inst.src.first().and_then(reg).is_none_or(|r| written.contains(&r));
                    if is_late || f.blocks.len() == 1 {
                        return None;
                    }
                    way.tests.push((b, i));
                }
                let is_nothing = self.is_of_head(inst);
                if !is_nothing {
                    written.extend(&inst.dst);
                }
                let of_all = |v: &Val| match v {
                    Val::Imm(..) => true,
                    Val::Reg(r) => way.common.has(r.idx()) || self.is_same_in_warps(*r),
                };
                let is_alone = inst.dst.iter().all(|d| self.plan.def_count[d.idx()] == 1 && self.is_in_vectors(*d));
                let is_common = !inst.dst.is_empty()
                    && self.table_of_merging(&way, inst).is_none()
                    && is_alone
                    && matches!(inst.op, Op::Load { .. } | Op::Pure(_))
                    && inst.src.iter().all(of_all);
                if is_common && !is_nothing {
                    inst.dst.iter().for_each(|d| _ = way.common.add(d.idx()));
                }
            }
            way.blocks.push((b, n));
            if let Some((insts, _)) = bare {
                way.bare.insert(b, insts);
            }
            let next = match &block.term {
                Term::Jump(t) => t.idx(),
                Term::Branch { cond: cond @ Val::Reg(c), then, otherwise } => {
                    let (then, otherwise) = (then.idx(), otherwise.idx());
                    if let Some(guard) = guard {
                        // What is guarded stands before what follows.
                        let low = then < otherwise;
                        let head = self.head.as_ref().filter(|_| for_some);
                        let going = head.and_then(|h| h.going(self.plan, b, is_first && b == start));
                        if let Some((going, blocks, meet)) = going {
                            match going {
                                Going::Written(table) => way.bits |= table.bit,
                                Going::Known(_) => way.is_first = true,
                            }
                            way.guarded.extend(blocks.into_iter().map(|x| (x, Guarded { going, meet })));
                        } else if self.head.as_ref().is_some_and(|h| h.always_parts(self.plan, b)) {
                            return None;
                        } else {
                            way.bits |= if low { guard.bits.0 } else { guard.bits.1 };
                        }
                        then.min(otherwise)
                    } else if common[c.idx()] && then != otherwise {
                        let (stay, to) =
                            if self.has_no_way(otherwise, common) { (then, otherwise) } else { (otherwise, then) };
                        if self.counts() || !self.has_no_way(to, common) || self.has_no_way(stay, common) || stay <= b {
                            way.end = End::Branch(b, *cond, then, otherwise);
                            break;
                        }
                        let (label, refused) = (self.a.label(), self.a.label());
                        let (stays_if, tests) = (stay == then, Vec::new());
                        way.exits.push(Exit { from: b, cond: *cond, stays_if, stay, tests, to, label, refused });
                        stay
                    } else {
                        return None;
                    }
                }
                Term::Ret | Term::Exit if f.is_entry => break,
                _ => {
                    let next = self.plain_barrier(b)?;
                    if !way.is_whole || !self.goes_on_behind(next) {
                        way.end = End::Place(Some(b));
                        break;
                    }
                    next
                }
            };
            if next <= b || way.is_whole && self.plan.facts.cfg.body(next).is_some() {
                way.end = End::Back(b, next);
                break;
            }
            b = next;
        }
        self.find_folds_of(&mut way);
        way.by_warp = self.goes_by_warp(&way);
        way.alone = self.kept_alone(&way, common);
        Some(way)
    }

    /// Whether no way goes from a block: it is short, and its warps part at its end.
    fn has_no_way(&self, b: usize, common: &[bool]) -> bool {
        let block = &self.f.blocks[b];
        let parts = matches!(block.term, Term::Branch { cond: Val::Reg(c), .. } if !common[c.idx()]);
        let is_guard = self.head.as_ref().is_some_and(|h| h.guard_of(b).is_some());
        parts && !is_guard && block.insts.iter().all(|i| matches!(i.op, Op::Pure(_)))
    }

    /// Whether warps go a way one after the other, although their code stands side by side: a host reads and writes several streams of memory faster if what lies
    /// at one place is read and written before what follows it, and a short way needs no other warp to keep it busy. With one or two reads that is no gain.
    fn goes_by_warp(&self, way: &Gang) -> bool {
        let insts = || way.blocks.iter().flat_map(|&(b, n)| &way.insts(self.f, b)[..n]);
        let is_far = |i: &Inst| AccessClass::of(i).is_some_and(|c| c.space != StateSpace::Shared);
        let n_reads = insts().filter(|i| matches!(i.op, Op::Load { .. }) && is_far(i)).count();
        let writes = insts().any(|i| matches!(i.op, Op::Store { .. }) && is_far(i));
        let pays = !self.a.has_wide_vectors() || n_reads > 2 && writes;
        self.may_go_by_warp(way) && pays && self.length(way) <= SHORT
    }

    /// Whether no warp of a way waits for another one in it.
    fn may_go_by_warp(&self, way: &Gang) -> bool {
        let passes = |b: usize| way.end != End::Place(Some(b)) && self.plain_barrier(b).is_some();
        matches!(way.end, End::Place(_)) && way.exits.is_empty() && !way.blocks.iter().any(|(b, _)| passes(*b))
    }

    fn is_in_vectors(&self, r: Reg) -> bool {
        matches!(self.place(r), Place::Vectors(_))
    }

    fn is_same_in_warps(&self, r: Reg) -> bool {
        self.head.as_ref().is_some_and(|h| h.is_same_in_warps(r))
    }

    /// Whether a gang may do an instruction: the bits that it rests on, or nothing if it is to be tested.
    fn fits_gang(&mut self, inst: &Inst) -> Option<Option<u32>> {
        if self.is_of_head(inst) {
            return Some(Some(0));
        }
        let fits = match inst.op {
            Op::Pure(op) if inst.dst.len() == 1 && !inst.guarded => {
                if self.is_affine(inst.dst[0]) {
                    let is_odd = |v: &Val| reg(v).is_some_and(|r| self.plan.may_hold_odd_nan[r.idx()]);
                    let is_clean = op.facts().takes_loose || !inst.src.iter().any(is_odd);
                    is_clean && has_scalar_code(op, &inst.src)
                } else {
                    has_vector_code(op)
                }
            }
            Op::Sreg(Sreg::Tid(0..3) | Sreg::Laneid) => true,
            Op::Load { .. } | Op::Store { .. } => match self.fixed_of_gang(inst) {
                Some((_, bit)) => return Some(Some(bit)),
                None => return self.access_of_gang(inst).map(|g| g.bit),
            },
            Op::Mark => true,
            Op::Count(Count::Block { .. } | Count::Branch { .. }) => !self.is_counted(),
            _ => false,
        };
        fits.then_some(Some(0))
    }

    /// Where a load or store at a constant address of shared memory is, and the bit that it rests on, if its value varies.
    fn fixed_of_gang(&self, inst: &Inst) -> Option<(i32, u32)> {
        let (at, bit) = self.head.as_ref()?.fixed(inst)?;
        inst.dst.iter().all(|d| self.is_in_vectors(*d)).then_some((at, bit))
    }

    /// Whether an access may be done for some lanes: loads are done for all of them.
    fn fits_lanes(&mut self, inst: &Inst, going: Option<Going>) -> bool {
        // One under a predicate has a mask in any case.
        let going = going.filter(|_| matches!(inst.op, Op::Store { .. }) && !inst.guarded);
        let Some(going) = going else { return true };
        let is_fixed = self.fixed_of_gang(inst).is_some();
        let form = if is_fixed { Some(Form::Same) } else { self.access_of_gang(inst).map(|g| g.form) };
        match (form, going) {
            (Some(Form::Row | Form::Parts), _)
            | (Some(Form::Same | Form::Bands | Form::Halves), Going::Written(..)) => true,
            // Of several lanes the last one is right.
            (Some(Form::Same), Going::Known(lanes)) => {
                lanes == 1 && AccessClass::of(inst).is_some_and(|c| c.bits >= 32)
            }
            _ => false,
        }
    }

    /// Whether the head does an instruction, and gangs have no code for it.
    fn is_of_head(&self, inst: &Inst) -> bool {
        self.head.as_ref().is_some_and(|h| h.has(inst) || h.is_linear(inst))
    }

    /// Whether lanes that do not go through a block of a way keep what they have of a register, since it is read where all lanes meet.
    fn is_kept_by_others(&self, way: &Gang, b: usize, d: Reg) -> bool {
        way.guarded.get(&b).is_some_and(|g| self.plan.facts.live.entry[g.meet].has(d.idx()))
    }

    /// The table of the lanes for which alone an instruction is done, at the place being emitted: those behind keep what they have, or it need not be right for them.
    fn table_of_merging(&self, way: &Gang, inst: &Inst) -> Option<Table> {
        let b = self.at.0;
        let Going::Written(table) = way.guarded.get(&b)?.going else { return None };
        let is_kept = inst.dst.iter().any(|d| self.is_kept_by_others(way, b, *d));
        let is_load = matches!(inst.op, Op::Load { .. });
        (!self.is_of_head(inst) && (is_kept || table.is_known && is_load)).then_some(table)
    }

    /// Whether an instruction may be done for some lanes alone where it is to be: a load of neighbours, or an op on vectors of one width. What guards a turn for the first warp leaves nothing behind.
    fn fits_merging(&mut self, way: &Gang, inst: &Inst) -> bool {
        let is_kept = |e: &Self, d: &Reg| e.is_kept_by_others(way, e.at.0, *d);
        if self.table_of_merging(way, inst).is_none() {
            return self.is_of_head(inst) || !inst.dst.iter().any(|d| is_kept(self, d));
        }
        let in_vectors = |d: &Reg| self.is_in_vectors(*d) && (self.places.is_own[d.idx()] || !is_kept(self, d));
        inst.dst.iter().all(in_vectors)
            && match inst.op {
                Op::Load { .. } => {
                    let is_row = |g: GangAccess| g.form == Form::Row && g.x.class.count == 1 && !g.scalars;
                    self.fixed_of_gang(inst).is_none() && self.access_of_gang(inst).is_some_and(is_row)
                }
                Op::Pure(op) => {
                    let wide = inst.dst.first().map(|d| is_wide(self.f.regs[d.idx()]));
                    let is_alike = |v: &Val| Some(is_wide(self.ty(*v))) == wide && self.ty(*v) != Ty::P;
                    (arithmetic(op).is_some() || simple(op).is_some()) && inst.src.iter().all(is_alike)
                }
                _ => false,
            }
    }

    /// What is to be known of an access of a gang: one that the head may decide about.
    fn access_of_gang(&mut self, inst: &Inst) -> Option<GangAccess> {
        use StateSpace::{Const, Generic, Global, Shared};
        let class = AccessClass::of(inst)?;
        let short = self.ty(class.address) != Ty::B64;
        let n_scalars = inst.dst.iter().filter(|d| matches!(self.place(**d), Place::Words(_))).count();
        let fits = matches!(class.kind, Kind::Load | Kind::Store)
            && matches!(class.space, Global | Const | Generic | Shared)
            && class.order == Order::Weak
            && !class.is_single
            && (!inst.guarded || class.kind == Kind::Store)
            && class.wants_all()
            && (n_scalars == 0 || n_scalars == inst.dst.len())
            && (!short || class.space == Shared);
        if !fits {
            return None;
        }
        let Val::Reg(r) = class.address else { return None };
        let bit = self.head.as_ref()?.bit_of(&class, r);
        if bit.is_none() && !self.limits_of.contains_key(&self.at) {
            return None;
        }
        let was = std::mem::replace(&mut self.in_part, false);
        let (x, form, scalars) = self.kind_of_access(inst, class, crate::access::Limits::Safe, LANES);
        let x = Access { is_proven: true, ..x };
        let has_code = !inst.guarded || matches!(form, Form::Row | Form::Parts | Form::Halves);
        let runs = self.runs(inst, &x, form, scalars).filter(|_| has_code);
        self.in_part = was;
        Some(GangAccess { x, runs: runs?, form, scalars, bit })
    }

    /// Finds loads that are done where they are read, in a way.
    fn find_folds_of(&mut self, way: &mut Gang) {
        for &(b, n) in &way.blocks {
            let insts = match way.bare.get(&b) {
                Some(bare) => &bare[..n],
                None => &self.f.blocks[b].insts[..n],
            };
            // Fewer lanes than a vector has are read on their own.
            let is_apart = |g: &Guarded| match g.going {
                Going::Known(lanes) => lanes != u32::MAX,
                Going::Written(table) => table.is_known,
            };
            if way.guarded.get(&b).is_some_and(is_apart) {
                continue;
            }
            let mut readers: FastSet<usize> = FastSet::default();
            for i in 0..n {
                let is_common = insts[i].dst.iter().any(|d| way.common.has(d.idx()));
                if is_common || !matches!(insts[i].op, Op::Load { .. }) {
                    continue;
                }
                if let Some(j) = self.reader_of(insts, i, &|_| false, &|j| readers.contains(&j)) {
                    way.folds.insert((b, i), (b, j));
                    readers.insert(j);
                }
            }
        }
    }
}
