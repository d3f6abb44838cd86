//! A cta: its threads, and who of them runs next.
//!
//! A round runs lanes until none is ready. Then each lane that is left is at a yield point or waits for others. The
//! next round lets the yielded ones go on. If nobody is at a yield point, nobody inside the cta can ever go on.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use handloom_audit::init::Shade;
use handloom_audit::memory::Variable;
use handloom_diag::Span;
use handloom_ir::simt::{Block, BlockId, FrameLayout, FuncId, Module, Reg, Val};
use handloom_ir::trap::{Trap, TrapKind, WarpTraps};

use crate::barrier::Barriers;
use crate::cluster::ClusterBarrier;
use crate::env::CtaEnv;
use crate::frame::{Frame, Trace};
use crate::lane::{Lane, Paths, Place, State};
use crate::memory::Memory;
use crate::numbers::{low32, number};
use crate::order::StartOrder;
use crate::pace::{Pace, may_pause, splitmix};
use crate::warp::{WARP_SIZE, lanes};
use crate::witness::{SharedAudit, SharedCounter};

/// Instructions, one for each lane, that other warps have after a trap until nobody waits for them any more.
const GRACE: u64 = 1 << 24;

/// Rounds in which nothing changed, after which threads give way no more in the middle of a block.
const STILL: u32 = 64;

/// How far a cta has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Status {
    /// All threads have ended.
    Done,
    /// The budget is used up; the cta can go on.
    Budget,
    /// A round is over: all threads that are left are at yield points or wait for others. Running again starts the
    /// next round.
    Waiting {
        /// Whether the round changed a byte of memory, the state of a thread, or read a clock. If no cta of the grid
        /// changed anything in a round, none ever will.
        changed: bool,
    },
    /// The kernel has stopped.
    Trap(Box<Trap>),
}

/// The state of all threads of one cta.
#[derive(Clone, Debug)]
pub struct Cta<'m> {
    pub(crate) module: &'m Module,
    pub(crate) layouts: Vec<FrameLayout>,
    pub(crate) env: CtaEnv,
    /// Threads by linear number: 32 consecutive ones are a warp.
    pub(crate) threads: Vec<Lane<'m>>,
    pub(crate) paths: Paths,
    pub(crate) barriers: Barriers,
    pub(crate) cluster: ClusterBarrier,
    /// Instructions executed, one for each lane.
    pub(crate) clock: u64,
    /// The round changed memory, printed, or read a clock.
    pub(crate) touched: bool,
    /// Rounds since one touched something.
    still: u32,
    /// State of all threads at the end of the last round, if that round touched nothing.
    fingerprint: Option<u64>,
    /// Who goes on in which round.
    pace: Pace,
    /// The position in the order of warps whose turn it is: until that warp waits or ends, as in compiled code.
    turn: usize,
    /// Warps in the order of their turns, where that is not ascending.
    pub(crate) order: Option<StartOrder>,
    /// Traps of warps, while the others go on.
    traps: WarpTraps,
    /// The clock at which nobody waits for the others any more.
    grace: u64,
    trap: Option<Box<Trap>>,
    /// Who is told what happens.
    pub(crate) audit: Option<SharedAudit>,
    /// Who counts it.
    pub(crate) counter: Option<SharedCounter>,
    /// Whether it is told of bits that nobody wrote.
    pub(crate) shaded: bool,
    /// Whether threads give way after strong reads.
    pub(crate) pauses: bool,
    /// Whether it is told of accesses that leave the variables that their addresses were made from.
    pub(crate) traced: bool,
    /// Those variables, in the order in which they were met.
    pub(crate) variables: Vec<Variable>,
    pub(crate) variable_numbers: HashMap<Variable, Trace>,
}

/// Lanes of a warp that execute together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub warp: usize,
    pub lanes: u32,
}

impl Group {
    /// Linear numbers of the threads.
    pub(crate) fn threads(self) -> impl Iterator<Item = usize> {
        lanes(self.lanes).map(move |lane| thread_number(self.warp, lane))
    }
}

/// Linear number of a lane's thread.
pub(crate) fn thread_number(warp: usize, lane: usize) -> usize {
    warp * 32 + lane
}

impl<'m> Cta<'m> {
    /// A cta before its first instruction: all threads are at the start of `entry`.
    pub fn new(module: &'m Module, entry: FuncId, env: CtaEnv) -> Cta<'m> {
        let layouts = FrameLayout::of_module(module);
        let func = &module.funcs[entry.idx()];
        let count = env.threads();
        let mut trap = None;
        let threads: Vec<Lane<'m>> = (0..count)
            .map(|thread| {
                let local = env.local_base(thread);
                let placed = layouts[entry.idx()].place(local, local.saturating_add(env.local_size));
                // An entry without slots needs no local memory.
                if placed.is_none() && !func.slots.is_empty() && trap.is_none() {
                    let mut t = Trap::new(TrapKind::Stack, func.span, env.ctaid, env.tid(thread));
                    t.detail = format!("the entry needs {} bytes of local memory", layouts[entry.idx()].size);
                    trap = Some(Box::new(t));
                }
                let (base, end) = placed.unwrap_or((local, local));
                let regs = vec![0; func.regs.len()];
                Lane {
                    state: State::Ready,
                    place: Place { path: Paths::ROOT, func: entry, block: BlockId(0), inst: 0 },
                    frames: vec![Frame {
                        func: entry,
                        regs,
                        shades: Vec::new(),
                        traces: Vec::new(),
                        base,
                        end,
                        args: 0,
                        next: BlockId(0),
                    }],
                    span: Span::NONE,
                    cluster_phase: None,
                    asks: None,
                    refused: None,
                    stack_used: 0,
                }
            })
            .collect();
        let live: Vec<u32> = (0..count.div_ceil(WARP_SIZE)).map(|warp| full_mask(count - warp * WARP_SIZE)).collect();
        Cta {
            module,
            layouts,
            threads,
            paths: Paths::default(),
            barriers: Barriers::new(&live),
            cluster: ClusterBarrier::new(&live, env.cluster_size() <= 1),
            env,
            clock: 0,
            touched: false,
            still: 0,
            fingerprint: None,
            pace: Pace::default(),
            turn: 0,
            order: None,
            traps: WarpTraps::default(),
            grace: u64::MAX,
            trap,
            audit: None,
            counter: None,
            shaded: false,
            pauses: false,
            traced: false,
            variables: Vec::new(),
            variable_numbers: HashMap::new(),
        }
    }

    /// Runs until the round is over, about `budget` instructions (one for each lane) are done, or a trap.
    ///
    /// The budget is looked at between blocks, so it can be passed by the length of one.
    pub fn run(&mut self, mem: &mut dyn Memory, budget: u64) -> Status {
        if let Some(trap) = &self.trap {
            return Status::Trap(trap.clone());
        }
        self.pass_cluster_waits();
        if !self.threads.iter().any(Lane::is_ready) {
            // A round begins with the first warp of the order, as in compiled code.
            self.turn = 0;
            let resumed = self.resume_yielded(self.pace.leaves_out());
            // Where all of them are left out, other ctas of the cluster may run; else it would be a round for nobody.
            if !resumed && self.env.cluster_size() <= 1 {
                self.resume_yielded(false);
            }
        }
        let limit = self.clock.saturating_add(budget);
        while let Some(group) = self.pick() {
            if self.clock >= self.grace {
                break;
            }
            if self.clock >= limit {
                return Status::Budget;
            }
            match self.step(group, mem) {
                Ok(()) => {}
                Err(trap) if trap.kind.is_of_one_warp() => self.stop_warp(group.warp, trap),
                Err(trap) => return self.stop(trap),
            }
        }
        match self.end_round() {
            Status::Done => match self.end_transfers(mem) {
                Ok(()) => {
                    self.tell_end();
                    self.count_end();
                    Status::Done
                }
                Err(trap) => self.stop(trap),
            },
            going_on @ (Status::Budget | Status::Waiting { .. } | Status::Trap(_)) => going_on,
        }
    }

    /// Lets threads go on that gave way: all, or those that are not left out. Says whether there were any.
    fn resume_yielded(&mut self, leaves_out: bool) -> bool {
        let mut any = false;
        for (warp, threads) in (0..).zip(self.threads.chunks_mut(32)) {
            let go = if leaves_out { self.pace.lanes(warp) } else { u32::MAX };
            for (_, lane) in (0..32).zip(threads).filter(|(i, _)| go >> i & 1 == 1) {
                if matches!(lane.state, State::Yielded) {
                    lane.state = State::Ready;
                    any = true;
                }
            }
        }
        any
    }

    /// A warp traps; the others go on until they trap, wait or end.
    fn stop_warp(&mut self, warp: usize, trap: Box<Trap>) {
        if self.traps.is_empty() {
            self.grace = self.clock.saturating_add(GRACE);
        }
        self.traps.add(number(warp), trap);
        for (thread, _) in self.warp_threads(warp) {
            let lane = &mut self.threads[thread];
            if !lane.is_exited() {
                lane.state = State::Stopped;
            }
        }
    }

    /// The kernel stops: by the trap of a warp if there was one, which may have led to this.
    fn stop(&mut self, trap: Box<Trap>) -> Status {
        let all_done = self.clock < self.grace && !self.threads.iter().any(Lane::is_ready);
        let trap = self.traps.report(all_done).unwrap_or(trap);
        self.trap = Some(trap.clone());
        Status::Trap(trap)
    }

    /// The launch as it sees it.
    pub fn env(&self) -> &CtaEnv {
        &self.env
    }

    /// Instructions executed so far, one for each lane.
    pub fn instructions(&self) -> u64 {
        self.clock
    }

    /// Phases of the cluster barrier that this cta has completed.
    pub fn cluster_phases(&self) -> u64 {
        self.cluster.local_phases()
    }

    /// Says how many phases of the cluster barrier all ctas of the cluster have completed.
    pub fn set_cluster_phases(&mut self, phases: u64) {
        self.cluster.set_cluster_phases(phases);
    }

    /// The lanes that run next: of the warp whose turn it is, those at the earliest place.
    fn pick(&mut self) -> Option<Group> {
        let warps = self.threads.len().div_ceil(32);
        for _ in 0..warps {
            let warp = self.warp_at(self.turn);
            if let Some(lanes) = self.earliest(warp) {
                return Some(Group { warp, lanes });
            }
            self.turn = (self.turn + 1) % warps;
        }
        None
    }

    /// The warp at a position of their order.
    fn warp_at(&self, position: usize) -> usize {
        let at = |order: StartOrder| u64::try_from(position).ok().and_then(|p| usize::try_from(order.at(p)).ok());
        self.order.and_then(at).unwrap_or(position)
    }

    /// The ready lanes of a warp that are at its earliest place.
    fn earliest(&self, warp: usize) -> Option<u32> {
        let mut best: Option<(Place, u32)> = None;
        for (thread, bit) in self.warp_threads(warp) {
            let lane = &self.threads[thread];
            if !lane.is_ready() {
                continue;
            }
            best = match best {
                Some((place, mask)) if place == lane.place => Some((place, mask | bit)),
                Some((place, mask)) if !self.paths.before(&lane.place, &place) => Some((place, mask)),
                Some(_) | None => Some((lane.place, bit)),
            };
        }
        best.map(|(_, mask)| mask)
    }

    /// Threads of a warp with their bits.
    pub(crate) fn warp_threads(&self, warp: usize) -> impl Iterator<Item = (usize, u32)> + use<> {
        let first = warp * 32;
        let end = self.threads.len().min(first + 32);
        (first..end).zip((0..WARP_SIZE).map(|lane| 1 << lane))
    }

    /// Lanes of a warp that have not exited.
    pub(crate) fn live(&self, warp: usize) -> u32 {
        self.warp_threads(warp).filter(|(t, _)| !self.threads[*t].is_exited()).fold(0, |mask, (_, bit)| mask | bit)
    }

    /// Runs a group from its place to the end of the block, or to a warp-synchronising op.
    fn step(&mut self, group: Group, mem: &mut dyn Memory) -> Result<(), Box<Trap>> {
        let Some(place) = group.threads().next().map(|t| self.threads[t].place) else { return Ok(()) };
        let block: &'m Block = &self.module.funcs[place.func.idx()].blocks[place.block.idx()];
        for (i, inst) in block.insts.iter().enumerate().skip(place.inst) {
            self.clock += u64::from(group.lanes.count_ones());
            if inst.op.is_warp_sync() {
                for thread in group.threads() {
                    self.threads[thread].place.inst = i;
                    self.reach_warp_sync(thread, inst);
                }
                self.pass_warp_syncs(group.warp);
                return Ok(());
            }
            self.exec(inst, group, mem)?;
            if self.pauses && may_pause(inst.op) && self.pauses_now(group) {
                group.threads().for_each(|t| self.threads[t].pause(i + 1, inst.span));
                return Ok(());
            }
        }
        self.clock += u64::from(group.lanes.count_ones());
        self.end_block(block, group)
    }

    /// Whether lanes give way in the middle of a block: as the seed and the time say. Where nothing has changed for long, nobody does before something changes: who waits
    /// in a loop then stands at one place at the end of each round, and it is seen that nobody can go on.
    fn pauses_now(&self, group: Group) -> bool {
        if self.still >= STILL && !self.touched {
            return false;
        }
        let place = self.env.linear_ctaid() << 5 | u64::from(number(group.warp));
        splitmix(&mut (self.env.seed ^ place.rotate_left(32) ^ self.clock)) & 1 == 1
    }

    /// What it means that no lane is ready.
    fn end_round(&mut self) -> Status {
        if self.threads.iter().all(Lane::is_exited) {
            return Status::Done;
        }
        let can_go_on = self.threads.iter().any(|lane| match lane.state {
            State::Yielded => true,
            State::ClusterWait { .. } => self.env.cluster_size() > 1,
            State::Ready | State::WarpSync { .. } | State::Barrier { .. } | State::Stopped | State::Exited => false,
        });
        if !can_go_on || self.clock >= self.grace {
            return self.stop(self.deadlock());
        }
        // Choice: a waiting loop that counts its turns may end by itself, so the state of threads counts as a change,
        // not only memory.
        let now = if self.touched { None } else { Some(self.thread_state()) };
        // Who was left out might have changed something.
        let changed = now.is_none() || now != self.fingerprint || self.pace.leaves_out();
        self.fingerprint = now;
        self.pace.next_round(&self.env, self.touched);
        self.still = if self.touched { 0 } else { self.still.saturating_add(1) };
        self.touched = false;
        // After a trap, only who has given way may still trap too.
        let gave_way = |lane: &Lane| matches!(lane.state, State::Yielded);
        match (self.traps.is_empty(), changed && self.threads.iter().any(gave_way)) {
            (true, _) => Status::Waiting { changed },
            (false, true) => Status::Budget,
            (false, false) => self.stop(self.deadlock()),
        }
    }

    /// A number that is the same for the same state of all threads. The hasher has no seed.
    fn thread_state(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        for lane in &self.threads {
            let place = lane.place;
            (place.func, place.block, place.inst, std::mem::discriminant(&lane.state)).hash(&mut hash);
            lane.stack_used.hash(&mut hash);
            for frame in &lane.frames {
                (frame.func, frame.next, &frame.regs).hash(&mut hash);
            }
        }
        hash.finish()
    }

    /// Value of a source in a thread.
    pub(crate) fn get(&self, thread: usize, v: Val) -> u64 {
        match v {
            Val::Reg(r) => self.threads[thread].frame().regs[r.idx()],
            Val::Imm(value, _) => value,
        }
    }

    /// Value of a 32-bit source in a thread.
    pub(crate) fn get32(&self, thread: usize, v: Val) -> u32 {
        low32(self.get(thread, v))
    }

    /// Writes a register of a thread.
    pub(crate) fn set(&mut self, thread: usize, reg: Reg, value: u64) {
        let frame = self.threads[thread].frame_mut();
        let ty = self.module.funcs[frame.func.idx()].regs[reg.idx()];
        frame.regs[reg.idx()] = value & ty.mask();
        if let Some(shade) = frame.shades.get_mut(reg.idx()) {
            *shade = Shade::default();
        }
        if let Some(trace) = frame.traces.get_mut(reg.idx()) {
            *trace = 0;
        }
    }
}

/// The lanes of a warp with that many threads left for it.
fn full_mask(threads: u32) -> u32 {
    1_u32.checked_shl(threads).map_or(u32::MAX, |top| top - 1)
}
