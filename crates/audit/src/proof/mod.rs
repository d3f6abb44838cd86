//! What can be said of a launch before it runs: that no check could find anything in it.
//!
//! A block is played through once, all threads together, for all blocks of the grid, or of parts of it where its rim is a doubt: registers hold what is known of them in each thread (`value`), as
//! multiples of the block's coordinates. What memory holds is not known, but for parameters. Where a branch is not known, threads go both ways, and what they
//! do there *may* happen: where that is no race, less is none either. So accesses are taken for more than they are, and what is written for less.
//!
//! Then nothing is found in the launch if no two threads of a block are in each other's way between two barriers (`own` for shared memory, `grid` for
//! global memory), if the accesses of blocks lie apart (`grid`), if all that is read of shared memory was written, and if barriers and member masks name all
//! who come there. Where races are not looked for, warps may be in each other's way in shared memory: their order is the seed's then. Where the order of threads of a block decides more than who is first (atomics with results, sums of floats), the seed has a say in what is left, though nothing is found ([`Clean`]). Fences, strong accesses but atomics, and order among lanes count for nothing, which errs on the side of a doubt. Reads of
//! global memory at places that memory decides are no doubt if the ranges are known that the launch changes: whoever runs it then holds reads apart from these
//! ([`Clean::if_apart`]). Loops whose end memory decides are played until a round is as the one before (`rounds`). What this does not
//! follow (calls, printing, asynchronous copies, clusters) is a doubt too, so is what takes too long.
//!
//! Does not know: who runs the launch if it is doubted, or how races are told.

mod area;
mod grid;
mod mask;
mod own;
mod rounds;
mod value;

use std::collections::{BTreeMap, HashSet};

use handloom_ir::simt::{BarKind, BlockId, Builtin, FrameLayout, Function, Inst, Op, Pure, Reg, Term, Val};
use handloom_ir::types::{AtomOp, Order, Scope, Sreg, StateSpace, Ty, TypeClass};

use crate::checks::{Check, Checks};
pub use area::{Area, Areas};
use grid::{Global, How, is_shared};
use mask::Mask;
use own::{Anywhere, Atomics, Cells, Kind, LanesOfWarps, Now, OwnBytes, Written};
use rounds::{Rounds, reads_of_memory};
use value::{Known, LOCAL, LOW, Lanes, SHARED, Shape, Value};

/// Most steps of a thread, all threads together.
const MOST_STEPS: u64 = 1 << 24;

/// Most blocks of code that are gone through, and branches that part threads by what nobody knows: a loop that waits has no end here.
const MOST_VISITS: u64 = 1 << 14;
const MOST_UNKNOWN: u64 = 256;

/// A launch.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The entry, as it was lowered, with calls inlined.
    pub code: &'a Function,
    /// By symbol: its address, or its offset in shared memory.
    pub symbols: &'a [u64],
    /// Parameters: their address, and what lies there.
    pub params: (u64, &'a [u8]),
    /// `%nctaid`.
    pub nctaid: [u32; 3],
    /// `%ntid`.
    pub ntid: [u32; 3],
    /// Bytes of shared memory, and how many of them, at its start, have contents.
    pub shared: (u32, u32),
    /// What is looked for.
    pub checks: Checks,
    /// What it touches is wanted too.
    pub wants_areas: bool,
    /// Where slots lie in the memory of a thread.
    pub frame: &'a FrameLayout,
    /// By block and instruction: the variable that an access must stay in, its address or offset and its bytes.
    pub variables: &'a [Vec<Option<(u64, u64)>>],
}

/// Why more must be looked at.
type Doubt = &'static str;

/// Why a block is played through again: accesses are to parts of words, or loops have no end that is known.
const PARTS_OF_WORDS: Doubt = "accesses are to parts of words";
const DOES_MUCH: Doubt = "a block does much";

/// Why it is played through once more if races are not looked for.
const MEET: Doubt = "threads of a block access one place in shared memory";

/// A launch in which no check can find anything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clean {
    /// That holds only while no read of global memory is of an allocation in which one of these ranges lies, which are all that the launch may change there: memory
    /// decides what it reads. `None`: it holds anyway.
    pub if_apart: Option<Vec<(u64, u64)>>,
    /// What it leaves depends on the order of threads, which the seed decides: there are atomics whose results are used, which do different things, or add floats, and
    /// more than one thread of a block does some. If one alone does, the order of blocks decides, which all code keeps.
    pub order_decides: bool,
    /// What it surely touches of global memory, if that is wanted.
    pub areas: Areas,
}

/// Whether no check can find anything in a launch.
///
/// # Errors
/// Why that is not sure.
pub fn prove(launch: &Launch<'_>) -> Result<Clean, &'static str> {
    let ends = launch.nctaid.map(|n| n.saturating_sub(1));
    let whole = prove_parts(launch, &[([0; 3], ends)]);
    if whole.as_ref().is_ok_and(|clean| clean.areas.is_all || !launch.wants_areas) {
        return whole;
    }
    let in_parts = || {
        // Blocks at the rim of a grid mostly leave out what others do.
        let axis = |i: usize| match ends[i] {
            0 => vec![(0, 0)],
            1 => vec![(0, 0), (1, 1)],
            end => vec![(0, 0), (1, end - 1), (end, end)],
        };
        let [x, y, z] = [0, 1, 2].map(axis);
        let mut parts: Vec<Part> = Vec::new();
        for z in &z {
            for y in &y {
                parts.extend(x.iter().map(|x| ([x.0, y.0, z.0], [x.1, y.1, z.1])));
            }
        }
        (parts.len() > 1).then(|| prove_parts(launch, &parts))
    };
    match (whole, in_parts()) {
        (Err(_), Some(parts)) => parts,
        (Ok(_), Some(Ok(parts))) if parts.areas.is_all => Ok(parts),
        (whole, _) => whole,
    }
}

/// The first and the last coordinates of some blocks.
type Part = ([u32; 3], [u32; 3]);

/// The same where blocks are looked at in parts of the grid.
fn prove_parts(launch: &Launch<'_>, parts: &[Part]) -> Result<Clean, Doubt> {
    let registers = Registers::of(launch.code);
    let mut all = Global::default();
    for part in parts {
        let (mut grain, mut widens, mut warps_meet) = (4, false, false);
        let global = loop {
            match Walk::new(launch, &registers, (*part, grain, widens, warps_meet))?.run() {
                Err(MEET) if !warps_meet && !launch.checks.has(Check::Race) => warps_meet = true,
                Err(why) if why == PARTS_OF_WORDS && grain > 1 => grain = 1,
                Err(why) if why == DOES_MUCH && !widens => widens = true,
                done => break done?,
            }
        };
        all.add(global)?;
    }
    let [x, y, z] = launch.ntid;
    let ends = launch.nctaid.map(|n| n.saturating_sub(1));
    let order_decides = all.order_decides || all.atomics.order_decides() || all.gives_way && all.atomics.depends;
    let areas = if launch.wants_areas { all.areas(launch.code, launch.nctaid) } else { Areas::default() };
    let if_apart = all.settle(&Shape { blocks: ([0; 3], ends), threads: (x * y * z) as usize })?;
    Ok(Clean { if_apart, order_decides, areas })
}

/// What is known of the registers of code, whichever blocks run it.
struct Registers {
    /// Something reads them.
    read: Vec<bool>,
    /// What global memory holds may decide them.
    of_memory: Vec<bool>,
}

impl Registers {
    fn of(code: &Function) -> Registers {
        let mut read = vec![false; code.regs.len()];
        for block in &code.blocks {
            let of_end = block.term.sources();
            for v in block.insts.iter().flat_map(|inst| &inst.src).chain(&of_end) {
                if let Val::Reg(r) = v {
                    read[r.idx()] = true;
                }
            }
        }
        Registers { read, of_memory: reads_of_memory(code) }
    }
}

/// Threads that are about to run a block, with their registers. Those of other threads mean nothing.
#[derive(Clone, PartialEq, Debug)]
struct State {
    threads: Mask,
    regs: Vec<Value>,
    /// Cells of shared memory that threads have written on the way here, though they may have gone another way: from, to, who.
    wrote: HashSet<(u32, u32, u16)>,
}

struct Walk<'a> {
    launch: &'a Launch<'a>,
    registers: &'a Registers,
    /// What blocks began with, if what changes from one round of a loop to the next is no longer followed.
    rounds: Option<Rounds>,
    shape: Shape,
    tid: [Known; 3],
    pending: BTreeMap<usize, State>,
    /// Those who wait for a barrier at the end of a block.
    waiting: Option<(usize, State)>,
    /// Those who may have exited.
    exited: Mask,
    now: Now,
    /// Bytes of a cell.
    grain: u64,
    cells: Cells,
    /// Instead of these, where warps may be in each other's way.
    lanes: Option<LanesOfWarps>,
    written: Written,
    anywhere: Anywhere,
    /// What threads have written of their own memory.
    own_bytes: OwnBytes,
    /// What atomics of shared memory do.
    atomics: Atomics,
    global: Global,
    steps: u64,
    visits: u64,
    n_unknown: u64,
}

impl<'a> Walk<'a> {
    fn new(
        launch: &'a Launch<'a>,
        registers: &'a Registers,
        (blocks, grain, widens, warps_meet): (Part, u64, bool, bool),
    ) -> Result<Walk<'a>, Doubt> {
        let [x, y, z] = launch.ntid.map(|n| n as usize);
        let threads = x * y * z;
        if threads == 0 || threads > mask::MOST || launch.nctaid.contains(&0) {
            return Err("the launch has a shape of its own");
        }
        let of = |t: usize| [t % x, t / x % y, t / x / y];
        let tid = [0, 1, 2].map(|i| match launch.ntid[i] {
            1 => Known::all(0),
            _ => Known::each((0..threads).map(|t| of(t)[i] as u64)),
        });
        let n_cells = u64::from(launch.shared.0).div_ceil(grain) as usize;
        let with_contents = (u64::from(launch.shared.1) / grain) as usize;
        // What nobody has written yet is zero.
        let regs = vec![Some(Known::all(0)); launch.code.regs.len()];
        let start = State { threads: Mask::first(threads), regs, wrote: HashSet::new() };
        Ok(Walk {
            launch,
            registers,
            rounds: widens.then(Rounds::default),
            shape: Shape { blocks, threads },
            tid,
            pending: BTreeMap::from([(0, start)]),
            waiting: None,
            exited: Mask::NONE,
            now: Now { stretch: 1, met: vec![0; threads.div_ceil(32)] },
            grain,
            cells: Cells::new(n_cells),
            lanes: warps_meet.then(LanesOfWarps::default),
            written: Written::new(n_cells, with_contents),
            anywhere: Anywhere::default(),
            own_bytes: OwnBytes::new(launch.frame.size),
            atomics: Atomics::default(),
            global: Global::default(),
            steps: 0,
            visits: 0,
            n_unknown: 0,
        })
    }

    /// Plays a block through. The result is what it does to global memory.
    fn run(mut self) -> Result<Global, Doubt> {
        loop {
            let Some((b, mut state)) = self.pending.pop_first() else {
                let Some((b, state)) = self.waiting.take() else { break };
                self.pass_barrier(b, state)?;
                continue;
            };
            let block = &self.launch.code.blocks[b];
            self.steps += self.shape.threads as u64 * (block.insts.len() as u64 + 1);
            self.visits += 1;
            if self.steps > MOST_STEPS || self.visits > MOST_VISITS || self.n_unknown > MOST_UNKNOWN {
                return Err(DOES_MUCH);
            }
            if let Some(rounds) = &mut self.rounds
                && !rounds.is_new(b, (self.now.stretch, self.n_unknown), &mut state)
            {
                continue;
            }
            let elsewhere = self.elsewhere();
            // All ways have met: what was written on each of them was written.
            let (left, sure): (HashSet<_>, HashSet<_>) =
                state.wrote.drain().partition(|(.., t)| elsewhere.has(usize::from(*t)));
            state.wrote = left;
            for (from, to, t) in sure {
                self.written.write(&self.now, (from as usize, to as usize), usize::from(t));
            }
            for (i, inst) in block.insts.iter().enumerate() {
                self.step(&mut state, inst, &elsewhere, (b, i))?;
            }
            self.end(b, state)?;
        }
        self.global.order_decides = self.atomics.order_decides() || self.lanes.is_some();
        Ok(self.global)
    }

    /// Threads that may be somewhere else than in the state that runs.
    fn elsewhere(&self) -> Mask {
        let others = self.pending.values().chain(self.waiting.as_ref().map(|(_, state)| state));
        others.fold(self.exited, |all, state| all.or(&state.threads))
    }

    fn value(&self, state: &State, v: Val) -> Value {
        match v {
            Val::Reg(r) => state.regs[r.idx()].clone(),
            Val::Imm(n, ty) => Some(Known::all(n & ty.mask())),
        }
    }

    fn ty(&self, v: Val) -> Ty {
        match v {
            Val::Reg(r) => self.launch.code.regs[r.idx()],
            Val::Imm(_, ty) => ty,
        }
    }

    /// Threads come to a block.
    fn go(&mut self, to: BlockId, state: State) {
        if state.threads.is_empty() {
            return;
        }
        let both = match self.pending.remove(&to.idx()) {
            Some(there) => self.join(there, state),
            None => state,
        };
        self.pending.insert(to.idx(), both);
    }

    fn join(&self, a: State, b: State) -> State {
        let first = |t: usize| match (a.threads.has(t), b.threads.has(t)) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        };
        let regs = a.regs.iter().zip(&b.regs).map(|(x, y)| self.shape.by_thread(x, y, first));
        let regs = regs.collect();
        // Of those who come both ways: what they wrote on both.
        let has = |s: &State, t: u16| s.threads.has(usize::from(t));
        let of_a = a.wrote.iter().filter(|w| !has(&b, w.2) || b.wrote.contains(*w));
        let of_b = b.wrote.iter().filter(|w| !has(&a, w.2));
        let wrote = of_a.chain(of_b).copied().collect();
        State { regs, threads: a.threads.or(&b.threads), wrote }
    }

    fn end(&mut self, b: usize, state: State) -> Result<(), Doubt> {
        match &self.launch.code.blocks[b].term {
            Term::Jump(to) => self.go(*to, state),
            Term::Yield { next } => {
                self.global.gives_way = true;
                self.go(*next, state);
            }
            Term::Branch { cond, then, otherwise } => {
                let (mut yes, mut no) = (Mask::NONE, Mask::NONE);
                let cond = self.value(&state, *cond);
                for t in state.threads.iter() {
                    let holds = cond.as_ref().filter(|c| c.is_known(t)).map(|c| c.lanes.of(t) != 0);
                    if holds != Some(false) {
                        yes.add(t);
                    }
                    if holds != Some(true) {
                        no.add(t);
                    }
                }
                if !no.is_empty() && !yes.is_empty() {
                    self.n_unknown += u64::from(cond.as_ref().is_none_or(|c| c.unknown.is_some()));
                    self.go(*then, State { threads: yes, ..state.clone() });
                    self.go(*otherwise, State { threads: no, ..state });
                } else {
                    let to = if no.is_empty() { then } else { otherwise };
                    self.go(*to, state);
                }
            }
            Term::Switch { index, targets } => {
                let index = self.value(&state, *index).and_then(|v| v.number()).ok_or("a way depends on a table")?;
                let to = usize::try_from(index).ok().and_then(|i| targets.get(i)).ok_or("an index has no target")?;
                self.go(*to, state);
            }
            Term::Ret | Term::Exit | Term::Trap(_) => self.exited = self.exited.or(&state.threads),
            Term::Barrier { kind, id, count, .. } => {
                match kind {
                    BarKind::Sync | BarKind::RedPopc | BarKind::RedAnd | BarKind::RedOr => {}
                    BarKind::Arrive
                    | BarKind::ClusterArrive
                    | BarKind::ClusterArriveRelaxed
                    | BarKind::ClusterWait
                    | BarKind::Warpgroup
                    | BarKind::WarpgroupStart => return Err("there are barriers of other kinds"),
                }
                let number = |v: Val| self.value(&state, v).and_then(|v| v.number());
                let counts_all = count.is_none_or(|n| number(n) == Some(self.shape.threads as u64));
                if number(*id).is_none() || !counts_all || count.is_some() && !self.exited.is_empty() {
                    return Err("barriers are not for the whole block");
                }
                let all = match self.waiting.take() {
                    Some((at, there)) if at == b => self.join(there, state),
                    Some(_) => return Err("threads wait for barriers at different places"),
                    None => state,
                };
                self.waiting = Some((b, all));
            }
            Term::Call { .. } => return Err("functions are called"),
        }
        Ok(())
    }

    /// All who have not exited wait at the end of one block.
    fn pass_barrier(&mut self, b: usize, mut state: State) -> Result<(), Doubt> {
        let Term::Barrier { dst, next, .. } = &self.launch.code.blocks[b].term else { return Err("no barrier") };
        if let Some(d) = dst {
            state.regs[d.idx()] = None;
        }
        self.now.stretch += 1;
        self.anywhere = Anywhere::default();
        self.go(*next, state);
        Ok(())
    }

    fn set(state: &mut State, all: &[Reg], value: Value) {
        if let Some((first, rest)) = all.split_first() {
            state.regs[first.idx()] = value;
            rest.iter().for_each(|r| state.regs[r.idx()] = None);
        }
    }

    fn step(&mut self, state: &mut State, inst: &Inst, elsewhere: &Mask, at: (usize, usize)) -> Result<(), Doubt> {
        let value = match inst.op {
            Op::Pure(op) => {
                let src: Vec<Value> = inst.src.iter().map(|v| self.value(state, *v)).collect();
                self.shape.eval(op, &src)
            }
            Op::Sreg(sreg) => self.sreg(sreg),
            Op::SymAddr(sym) | Op::SharedAddr(sym) => {
                self.launch.symbols.get(sym.idx()).map(|value| Known::all(*value))
            }
            Op::ParamAddr { offset } => Some(Known::all(self.launch.params.0 + u64::from(offset))),
            Op::Cvta { space, to_space } => {
                let address = self.value(state, inst.src[0]);
                match space {
                    StateSpace::Shared => address.and_then(|mut a| {
                        a.by[SHARED] += if to_space { -1 } else { 1 };
                        matches!(a.by[SHARED], 0 | 1).then_some(a)
                    }),
                    StateSpace::SharedCluster => None,
                    // That of own memory is the same.
                    _ => address,
                }
            }
            Op::Load { access, .. } => {
                if access.is_async {
                    return Err("there are accesses through other proxies");
                }
                self.load(state, inst, elsewhere, at)?
            }
            Op::Store { access, .. } => {
                if access.is_async {
                    return Err("there are accesses through other proxies");
                }
                let is_whole = access.elements == u8::MAX >> (8 - access.count.clamp(1, 8));
                self.access(state, inst, elsewhere, at, (access.space, Kind::Write, access.bytes(), is_whole))?;
                None
            }
            Op::Atom { access, .. } | Op::Red { access, .. } => {
                if access.op == AtomOp::Step {
                    return Err("there are `mbarrier` objects");
                }
                // What an atomic returns, what a sum of floats is, and what is left where different things are done, depends on who comes first, which the
                // seed decides.
                let is_any_order = matches!(
                    access.op,
                    AtomOp::Add | AtomOp::And | AtomOp::Or | AtomOp::Xor | AtomOp::Min | AtomOp::Max
                ) && access.ty.class() != TypeClass::Float;
                let depends = !is_any_order || inst.dst.iter().any(|d| self.registers.read[d.idx()]);
                let all = Atomics::of((access.op, access.ty), depends, &self.doers(state, inst).0);
                if access.space != StateSpace::Global {
                    self.atomics.add(all);
                }
                if access.space != StateSpace::Shared {
                    self.global.atomics.add(all);
                }
                let is_one = access.count == 1 && access.ty.elements() == 1;
                if !is_one
                    || access.order == Order::Weak
                    || access.space != StateSpace::Shared && access.scope < Scope::Gpu
                {
                    return Err("there are atomics of other kinds");
                }
                // Who compares and finds something else writes nothing.
                let what = (access.space, Kind::Atomic, access.ty.bytes(), access.op != AtomOp::Cas);
                self.access(state, inst, elsewhere, at, what)?;
                None
            }
            Op::Shfl(_)
            | Op::Vote(_)
            | Op::Match { .. }
            | Op::Redux { .. }
            | Op::Elect
            | Op::Matrix(_)
            | Op::BarWarp => {
                self.meet(state, inst, elsewhere)?;
                None
            }
            Op::Builtin(Builtin::Assertfail) if !self.launch.checks.has(Check::Init) => None,
            Op::SlotAddr(slot) => self.launch.frame.offsets.get(slot.idx()).map(|offset| {
                let mut address = Known::all(*offset);
                address.by[LOCAL] = 1;
                address
            }),
            Op::ArgAddr { .. } | Op::IsSpace(_) => None,
            Op::Fence { .. } | Op::Activemask | Op::Nanosleep => None,
            Op::Builtin(_)
            | Op::Transfer(_)
            | Op::Stack(_)
            | Op::Image(_)
            | Op::Tensor(_)
            | Op::Mark
            | Op::Count(_) => return Err("there are instructions that are not looked at"),
        };
        Walk::set(state, &inst.dst, value);
        Ok(())
    }

    fn sreg(&self, sreg: Sreg) -> Value {
        let lanes = |f: &dyn Fn(u64) -> u64| Some(Known::each((0..self.shape.threads).map(|t| f(t as u64))));
        match sreg {
            Sreg::Tid(i) => Some(self.tid.get(usize::from(i)).cloned().unwrap_or(Known::all(0))),
            Sreg::Ntid(i) => Some(Known::all(self.launch.ntid.get(usize::from(i)).copied().unwrap_or(0).into())),
            Sreg::Nctaid(i) => Some(Known::all(self.launch.nctaid.get(usize::from(i)).copied().unwrap_or(0).into())),
            Sreg::Ctaid(i) => {
                let mut value = Known::all(0);
                if self.launch.nctaid.get(usize::from(i)).is_some_and(|n| *n > 1) {
                    value.by[usize::from(i)] = 1;
                }
                Some(value)
            }
            Sreg::Laneid => lanes(&|t| t % 32),
            Sreg::Warpid => lanes(&|t| t / 32),
            Sreg::LanemaskEq => lanes(&|t| 1 << (t % 32)),
            Sreg::LanemaskLt => lanes(&|t| (1 << (t % 32)) - 1),
            Sreg::LanemaskLe => lanes(&|t| (2 << (t % 32)) - 1),
            _ => None,
        }
    }

    /// Threads that may do a guarded op where they are, and those of them that do.
    fn doers(&self, state: &State, inst: &Inst) -> (Mask, Mask) {
        let Some(guard) = inst.guard() else { return (state.threads, state.threads) };
        let guard = self.value(state, guard);
        let (mut may, mut do_it) = (Mask::NONE, Mask::NONE);
        for t in state.threads.iter() {
            let holds = guard.as_ref().filter(|g| g.is_known(t)).map(|g| g.lanes.of(t) != 0);
            if holds != Some(false) {
                may.add(t);
            }
            if holds == Some(true) {
                do_it.add(t);
            }
        }
        (may, do_it)
    }

    fn load(&mut self, state: &mut State, inst: &Inst, elsewhere: &Mask, at: (usize, usize)) -> Result<Value, Doubt> {
        let Op::Load { access, offset } = inst.op else { return Ok(None) };
        if access.space != StateSpace::ParamEntry {
            let is_whole = access.elements == u8::MAX >> (8 - access.count.clamp(1, 8));
            self.access(state, inst, elsewhere, at, (access.space, Kind::Read, access.bytes(), is_whole))?;
            let is_small = access.bits < 16 && !inst.guarded;
            return Ok(is_small.then(|| Known::below((1 << access.bits) - 1)));
        }
        let (base, bytes) = self.launch.params;
        if access.count != 1 || inst.guarded {
            return Ok(None);
        }
        let known = self.value(state, inst.src[0]).and_then(|v| v.number());
        let from =
            known.map(|v| v.wrapping_add_signed(offset).wrapping_sub(base)).and_then(|n| usize::try_from(n).ok());
        let read = |from: usize| {
            let bytes = bytes.get(from..from.checked_add(access.bytes() as usize)?)?;
            Some(Known::all(bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))))
        };
        Ok(from.and_then(read))
    }

    /// Threads access memory.
    fn access(
        &mut self,
        state: &mut State,
        inst: &Inst,
        elsewhere: &Mask,
        (b, i): (usize, usize),
        (space, kind, bytes, is_whole): (StateSpace, Kind, u32, bool),
    ) -> Result<(), Doubt> {
        let (Op::Load { offset, .. } | Op::Store { offset, .. } | Op::Atom { offset, .. } | Op::Red { offset, .. }) =
            inst.op
        else {
            return Ok(());
        };
        let bytes = u8::try_from(bytes).map_err(|_| "an access is large")?;
        let (may, do_it) = self.doers(state, inst);
        if may.is_empty() {
            return Ok(());
        }
        let ty = self.ty(inst.src[0]);
        let address = self.value(state, inst.src[0]).and_then(|a| {
            let far = Known::all(offset.cast_unsigned() & ty.mask());
            let moved = self.shape.eval(Pure::Add(ty), &[Some(a), Some(far)])?;
            match (ty, space) {
                (Ty::B64, _) | (_, StateSpace::Shared) => Some(moved),
                _ => self.shape.widen(&moved, false),
            }
        });
        let address = address.filter(|a| may.iter().all(|t| a.has_range(t)));
        let variable = self.launch.variables.get(b).and_then(|of| of.get(i)).copied().flatten();
        if let Some(variable) = variable
            && !address.as_ref().is_some_and(|a| self.stays(a, &may, bytes, variable))
        {
            return Err("an access may leave its variable");
        }
        match space {
            StateSpace::Global | StateSpace::Shared | StateSpace::Generic => {}
            StateSpace::Const if kind == Kind::Read && self.launch.wants_areas => {
                let is_sure = is_whole && may == do_it && may.without(elsewhere) == may && self.rounds.is_none();
                let how = How { kind, bytes, stretch: self.now.stretch, inst: (b, i), is_sure };
                self.global.read_constant(&self.shape, address, may, how);
                return Ok(());
            }
            StateSpace::Const | StateSpace::ParamEntry if kind == Kind::Read => return Ok(()),
            StateSpace::Local | StateSpace::ParamFunc if !self.launch.checks.has(Check::Init) => return Ok(()),
            StateSpace::Local => {}
            _ => return Err("there are accesses to other memory"),
        }
        let is_own = address.as_ref().is_some_and(|a| a.by[LOCAL] != 0 || a.by[LOW] != 0);
        if is_own || space == StateSpace::Local {
            if space == StateSpace::Global || space == StateSpace::Shared || kind == Kind::Atomic {
                return Err("an address is none");
            }
            let address = address.filter(|a| a.by == std::array::from_fn(|i| i64::from(i == LOCAL)));
            // A generic address beside the frame might be one of other memory; others are held to own memory when they run.
            if space == StateSpace::Generic && !address.as_ref().is_some_and(|a| self.is_in_frame(a, &may, bytes)) {
                return Err("an address may be anywhere");
            }
            return self.access_own(address, (&may, &do_it, elsewhere), (kind, bytes, is_whole));
        }
        let is_shared = match (space, &address) {
            (StateSpace::Shared, _) => true,
            (StateSpace::Global, Some(a)) if is_shared(&a.by) == Some(false) => false,
            (StateSpace::Generic, Some(a)) => is_shared(&a.by).ok_or("an address is none")?,
            (StateSpace::Global, None) => false,
            _ => return Err("an address may be anywhere"),
        };
        if !is_shared {
            let of_memory = match inst.src[0] {
                Val::Reg(r) => self.registers.of_memory[r.idx()],
                Val::Imm(..) => false,
            };
            if address.is_none() && kind == Kind::Read && of_memory {
                self.global.apart.reads = true;
                return Ok(());
            }
            self.global.apart.changes_of_memory |= of_memory && kind != Kind::Read;
            // Who goes both ways may do it on neither.
            let is_there = address.as_ref().is_some_and(|a| a.span == 0) && may.without(elsewhere) == may;
            let is_sure = is_there && is_whole && may == do_it && self.rounds.is_none();
            let how = How { kind, bytes, stretch: self.now.stretch, inst: (b, i), is_sure };
            return self.global.touch(&self.shape, address, may, how);
        }
        let own = address.filter(|a| a.by[..SHARED] == [0; SHARED] && a.span == 0);
        let follows_bits = self.launch.checks.has(Check::Init);
        if !self.anywhere.access(own.is_some(), kind, bytes) {
            return Err("places in shared memory are not known");
        }
        let Some(own) = own else {
            return if follows_bits && !self.written.has_all(&self.now) {
                Err("bytes may be unwritten")
            } else {
                Ok(())
            };
        };
        self.access_shared(state, &own.lanes, (&may, &do_it, elsewhere), (kind, bytes, is_whole))
    }

    /// Whether accesses of some bytes lie in a variable, in all blocks.
    fn stays(&self, at: &Known, may: &Mask, bytes: u8, (base, size): (u64, u64)) -> bool {
        let (low, high) = self.shape.reach(&at.by);
        let high = high + i128::from(at.span);
        let (base, end) = (i128::from(base), i128::from(base) + i128::from(size));
        may.iter().map(|t| i128::from(at.lanes.of(t))).all(|x| x + low >= base && x + high + i128::from(bytes) <= end)
    }

    /// Whether all that threads may access of their own memory is in the frame.
    fn is_in_frame(&self, at: &Known, may: &Mask, bytes: u8) -> bool {
        let past = at.span.saturating_add(u64::from(bytes));
        may.iter().all(|t| at.lanes.of(t).saturating_add(past) <= self.launch.frame.size)
    }

    /// Threads access memory of their own, which nobody else does: what they read of it must have been written. `at`: from the start of the frame.
    fn access_own(
        &mut self,
        at: Value,
        (may, do_it, elsewhere): (&Mask, &Mask, &Mask),
        (kind, bytes, is_whole): (Kind, u8, bool),
    ) -> Result<(), Doubt> {
        if !self.launch.checks.has(Check::Init) {
            return Ok(());
        }
        let Some(at) = at else {
            // Who writes somewhere in his own memory leaves no byte less written than it was.
            return if kind == Kind::Write { Ok(()) } else { Err("bytes of own memory may be unwritten") };
        };
        for t in may.iter() {
            let from = at.lanes.of(t);
            let end = from.checked_add(at.span).and_then(|end| end.checked_add(u64::from(bytes)));
            let end = end.ok_or("an access is out of bounds")?;
            match kind {
                Kind::Write if at.span == 0 && is_whole && do_it.has(t) && !elsewhere.has(t) => {
                    self.own_bytes.write((from, end), t);
                }
                Kind::Write => {}
                _ if !self.own_bytes.has((from, end), t) => return Err("bytes of own memory may be unwritten"),
                _ => {}
            }
        }
        Ok(())
    }

    /// Threads access known places in shared memory.
    fn access_shared(
        &mut self,
        state: &mut State,
        at: &Lanes,
        (may, do_it, elsewhere): (&Mask, &Mask, &Mask),
        (kind, bytes, is_whole): (Kind, u8, bool),
    ) -> Result<(), Doubt> {
        let follows_bits = self.launch.checks.has(Check::Init);
        let n = u64::from(bytes);
        if !n.is_multiple_of(self.grain) {
            return Err(PARTS_OF_WORDS);
        }
        for t in may.iter() {
            let addr = at.of(t);
            let end = addr.checked_add(n).filter(|end| *end <= u64::from(self.launch.shared.0));
            let end = end.ok_or("an access is out of bounds")?;
            if !addr.is_multiple_of(n) {
                return Err("an access is misaligned");
            }
            let cells = ((addr / self.grain) as usize, (end / self.grain) as usize);
            let is_apart = match &mut self.lanes {
                Some(lanes) => lanes.access(&self.now, cells, t, kind),
                None => self.cells.access(&self.now, cells, t, (kind, bytes)),
            };
            if !is_apart {
                return Err(MEET);
            }
            if !follows_bits {
                continue;
            }
            let way = (cells.0 as u32, cells.1 as u32, t as u16);
            if kind != Kind::Write && !self.written.has(&self.now, cells, t) && !state.wrote.contains(&way) {
                return Err("bytes may be unwritten");
            }
            if kind != Kind::Read && is_whole && do_it.has(t) {
                match elsewhere.has(t) {
                    true => _ = state.wrote.insert(way),
                    false => self.written.write(&self.now, cells, t),
                }
            }
        }
        Ok(())
    }

    /// Lanes of warps meet.
    fn meet(&mut self, state: &State, inst: &Inst, elsewhere: &Mask) -> Result<(), Doubt> {
        let named = match inst.op {
            // A leader is chosen by the mask alone.
            Op::Elect | Op::BarWarp => inst.operands().first(),
            _ => inst.operands().last(),
        };
        let named = named.and_then(|v| self.value(state, *v)).ok_or("who meets is not known")?;
        for t in state.threads.iter() {
            if !named.is_known(t) || !named.is_alike() || named.lanes.of(t) >> (t % 32) & 1 == 0 {
                return Err("a member mask may leave out its thread");
            }
        }
        let sure = state.threads.without(elsewhere);
        for warp in 0..self.now.met.len() {
            let here = state.threads.warp(warp);
            let all = Mask::first(self.shape.threads).warp(warp);
            let names_all =
                || (0..32).filter(|l| all >> l & 1 == 1).all(|l| named.lanes.of(32 * warp + l) as u32 & all == all);
            let is_whole = here != 0 && sure.warp(warp) == all && names_all();
            match inst.op {
                Op::BarWarp if is_whole => self.now.met[warp] += 1,
                // What a lane takes from one that takes no part is not known.
                Op::Shfl(_) if here != 0 && self.launch.checks.has(Check::Init) && (!is_whole || all != u32::MAX) => {
                    return Err("values may come from lanes that take no part");
                }
                _ => {}
            }
        }
        Ok(())
    }
}
