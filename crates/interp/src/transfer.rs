//! Transfers: copies of bytes and of boxes of tensors, asynchronous stores and reductions, and what they tell their barriers.
//!
//! A transfer has two halves. [`prepare`] looks at all rules and finds all addresses; it changes nothing, so that all lanes are checked before the first
//! one has an effect. [`late::begin`] moves the bytes, then tells the barriers: at once, or where the launch says so, later ([`crate::late`]).
//!
//! Choice: by default a transfer is performed at once, as it may be: the manual orders it with nothing but what waits for its completion. That a barrier
//! lies in the same CTA as the bytes is not asked for.

pub(crate) mod reach;
mod tensor;
pub(crate) mod work;

use handloom_audit::init::Decides;
use handloom_audit::misuse::Wrong;
use handloom_audit::{Does, Proxy, Turn};
use handloom_diag::Span;
use handloom_ir::mbarrier;
use handloom_ir::simt::{Inst, ProxyFence, Transfer};
use handloom_ir::trap::{Trap, TrapKind};
use handloom_ir::types::{Order, Scope, StateSpace};

use crate::access::Request;
use crate::cta::{Cta, Group};
use crate::env::CtaEnv;
use crate::late;
use crate::memory::Memory;
use crate::numbers::number;
use crate::under_way::Who;
use crate::witness::Witness;

pub use reach::{Fault, Part, Reach};
pub use work::{Work, prepare};

/// What a thread of the interpreter reaches.
pub(crate) struct Thread<'a, 'm> {
    pub(crate) cta: &'a Cta<'m>,
    pub(crate) mem: &'a mut dyn Memory,
    pub(crate) thread: usize,
    /// The statement, for an audit.
    pub(crate) span: Span,
    /// Its own number and statement, while it acts for another thread.
    pub(crate) own: Option<(usize, Span)>,
    /// By which way it reaches memory.
    pub(crate) proxy: Proxy,
    /// When that was begun, as an audit has numbered it.
    pub(crate) begun: u32,
}

impl<'a, 'm> Thread<'a, 'm> {
    pub(crate) fn new(cta: &'a Cta<'m>, mem: &'a mut dyn Memory, thread: usize, span: Span) -> Thread<'a, 'm> {
        Thread { cta, mem, thread, span, own: None, proxy: Proxy::Generic, begun: 0 }
    }
}

impl Thread<'_, '_> {
    /// Tells a counter and an audit of bytes that are moved now: as if the thread itself moved them.
    fn tell(&mut self, at: u64, bytes: usize, from: Option<&[u8]>, (does, order): (Does, Order)) {
        self.cta.count_copy(self.span, bytes, self.mem.space(at));
        self.look_at(at, bytes, from, (does, order));
    }

    /// Tells an audit of bytes alone.
    fn look_at(&mut self, at: u64, bytes: usize, from: Option<&[u8]>, (does, order): (Does, Order)) {
        let order = (order, Scope::Sys);
        let Some(witness) = Witness::of(self.cta.audit.as_ref(), &self.cta.env, self.span, does, order) else {
            return;
        };
        let mut witness = witness.through(self.proxy, self.begun);
        let (start, mut done) = (at, 0);
        while done < bytes {
            let at = start + u64::try_from(done).unwrap_or(0);
            let n = piece(at, bytes - done);
            let there = self.mem.read(at, width(n)).to_le_bytes();
            let same_value = from.is_some_and(|from| from[done..done + n] == there[..n]);
            witness.tell(self.thread, at, width(n), self.mem.space(at), same_value, false);
            done += n;
        }
    }
}

impl Thread<'_, '_> {
    /// Bytes have no contents any more: the same as a weak write of what nobody knows.
    fn discard(&mut self, at: u64) {
        let bytes = work::DISCARDED;
        self.tell(at, bytes as usize, None, (Does::Write, Order::Weak));
        self.cta.with_init(|init| init.renew(at, bytes.into()));
    }
}

impl Reach for Thread<'_, '_> {
    fn env(&self) -> &CtaEnv {
        &self.cta.env
    }

    fn locate(&mut self, part: &Part) -> Result<u64, TrapKind> {
        self.cta.locate_bytes(&Request::of_part(part), part.align, self.thread, part.addr, self.mem)
    }

    fn space(&mut self, addr: u64) -> StateSpace {
        self.mem.space(addr)
    }

    fn read(&mut self, mut at: u64, mut to: &mut [u8]) {
        self.tell(at, to.len(), None, (Does::Read, Order::Weak));
        while !to.is_empty() {
            let n = piece(at, to.len());
            let (now, rest) = to.split_at_mut(n);
            now.copy_from_slice(&self.mem.read(at, width(n)).to_le_bytes()[..n]);
            at += u64::from(width(n));
            to = rest;
        }
    }

    fn write(&mut self, mut at: u64, mut from: &[u8]) {
        self.tell(at, from.len(), Some(from), (Does::Write, Order::Weak));
        let bytes = u64::try_from(from.len()).unwrap_or(0);
        self.cta.with_init(|init| init.fill(at, bytes));
        while !from.is_empty() {
            let n = piece(at, from.len());
            let (now, rest) = from.split_at(n);
            let mut word = [0; 8];
            word[..n].copy_from_slice(now);
            self.mem.write(at, width(n), u64::from_le_bytes(word));
            at += u64::from(width(n));
            from = rest;
        }
    }

    fn copied(&mut self, from: u64, to: u64, bytes: u64) {
        if !self.cta.is_shaded() {
            return;
        }
        let (audit, env) = (self.cta.audit.as_ref(), &self.cta.env);
        let order = (Order::Weak, Scope::Sys);
        let Some(mut witness) = Witness::of(audit, env, self.span, Does::Write, order) else { return };
        witness.copy(self.thread, from, to, bytes, self.mem.space(to) == StateSpace::Global);
    }

    fn done_by_now(&mut self, at: u64, bytes: u64, writes: bool) {
        let does = if writes { Does::Write } else { Does::Read };
        self.look_at(at, usize::try_from(bytes).unwrap_or(0), None, (does, Order::Weak));
    }

    fn act_for(&mut self, who: Option<Who>) {
        let (thread, span) = *self.own.get_or_insert((self.thread, self.span));
        (self.thread, self.span, self.begun) = (thread, span, 0);
        if let Some(who) = who {
            self.span = who.span;
            self.begun = who.begun;
            // Another CTA's thread is told as the one that waits for it.
            if who.cta == self.cta.env.linear_ctaid() {
                self.thread = usize::try_from(who.thread).unwrap_or(thread);
            }
        }
    }

    fn look(&mut self, at: u64) -> u64 {
        self.mem.read(at, 8)
    }

    fn update(&mut self, at: u64, bytes: u32, new: &mut dyn FnMut(u64) -> u64) {
        self.tell(at, usize::try_from(bytes).unwrap_or(0), None, (Does::Reduce, Order::Release));
        let old = self.mem.read(at, bytes);
        self.mem.write(at, bytes, new(old));
    }

    fn step(&mut self, at: u64, new: &mut dyn FnMut(u64) -> u64) {
        let old = self.mem.read(at, 8);
        let turn = if (old ^ new(old)) >> mbarrier::PHASE_BIT & 1 == 1 { Turn::Ends } else { Turn::Arrives };
        let order = (Order::Release, Scope::Sys);
        let witness = Witness::of(self.cta.audit.as_ref(), &self.cta.env, self.span, Does::Step, order);
        if let Some(mut witness) = witness {
            witness.tell_turn(self.thread, at, self.mem.space(at), turn);
        }
        let (span, who) = (self.span, self.cta.who(self.thread));
        let mut offset = None;
        self.cta.tell(|audit, _| offset = audit.shared_offset(who.cta, at));
        self.cta.with_init(|init| {
            let shade = init.load(span, who, at, 8, (StateSpace::Shared, offset));
            init.decides(Decides::Barrier, span, who, shade);
        });
        self.mem.write(at, 8, new(old));
    }

    fn through(&mut self, proxy: Proxy) {
        self.proxy = proxy;
    }

    fn begin(&mut self, thread: u32) -> u32 {
        let mut number = 0;
        let thread = usize::try_from(thread).unwrap_or(0);
        self.cta.tell(|audit, _| number = audit.begin(self.cta.who(thread)));
        number
    }
}

/// How many bytes from an address on are one aligned access, of those that are left.
fn piece(at: u64, left: usize) -> usize {
    [8, 4, 2].into_iter().find(|n| *n <= left && at.is_multiple_of(u64::from(width(*n)))).unwrap_or(1)
}

fn width(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(1)
}

impl<'m> Cta<'m> {
    /// A transfer in each lane.
    pub(crate) fn transfer(
        &mut self,
        inst: &'m Inst,
        op: Transfer,
        group: Group,
        mem: &mut dyn Memory,
    ) -> Result<(), Box<Trap>> {
        let acts = |t: &usize| inst.guard().is_none_or(|g| self.get(*t, g) & 1 == 1);
        if let Transfer::Proxies(fence) = op {
            self.tell_proxy_fence(fence, group.threads().filter(acts));
            return Ok(());
        }
        if let Transfer::Inval(space) = op {
            for t in group.threads().filter(acts) {
                let addr = self.get(t, inst.src[0]);
                // What is no object is not made invalid.
                if let Ok(at) = reach::barrier(&mut Thread::new(self, mem, t, inst.span), space, addr) {
                    self.tell(|audit, _| audit.invalidate(at, (inst.span, self.who(t))));
                }
            }
            return Ok(());
        }
        if let Transfer::Open(space) = op {
            self.check_open(inst, space, group.threads().filter(acts), mem);
            return Ok(());
        }
        let mut works = Vec::new();
        let mut refused: Vec<(usize, Fault)> = Vec::new();
        for t in group.threads() {
            if inst.guard().is_some_and(|g| self.get(t, g) & 1 == 0) {
                continue;
            }
            let src: Vec<u64> = inst.operands().iter().map(|v| self.get(t, *v)).collect();
            match prepare(op, &src, &mut Thread::new(self, mem, t, inst.span)) {
                Ok(work) => works.push((t, work)),
                Err(fault) => refused.push((t, fault)),
            }
        }
        if let Some((first, fault)) = refused.first() {
            let same = refused.iter().filter(|(_, f)| f.kind == fault.kind).map(|(t, _)| *t);
            return Err(self.refused_transfer(fault, *first, inst.span, same, mem));
        }
        for (t, work) in works {
            if self.audit.is_some() {
                self.threads[t].asks = work.asks();
            }
            let is_map = work.is_map();
            let mut thread = Thread::new(self, mem, t, inst.span);
            if let Transfer::Discard(_) = op {
                thread.discard(thread.cta.get(t, inst.src[0]));
            }
            let begun = if work.proxy() != Proxy::Generic { thread.begin(number(t)) } else { 0 };
            let who = Who { begun, ..self.env.who(number(t), inst.span) };
            match late::begin(work, who, &mut thread) {
                Ok(changed) => {
                    self.touched |= changed;
                    if is_map {
                        self.tell_proxy_fence(ProxyFence::MapRelease, std::iter::once(t));
                    }
                }
                Err(fault) => return Err(self.refused_transfer(&fault, t, inst.span, std::iter::once(t), mem)),
            }
        }
        Ok(())
    }

    /// Arrivals of which the program says that they end no phase.
    fn check_open(&self, inst: &Inst, space: StateSpace, threads: impl Iterator<Item = usize>, mem: &mut dyn Memory) {
        let mut words: Vec<(u64, u64)> = Vec::new();
        for t in threads {
            let (addr, delta) = (self.get(t, inst.src[0]), self.get(t, inst.src[1]));
            // The arrival itself says what is wrong with an address.
            let Ok(at) = reach::barrier(&mut Thread::new(self, mem, t, inst.span), space, addr) else { continue };
            let there = words.iter().find(|(there, _)| *there == at);
            let old = there.map_or_else(|| mem.read(at, 8), |(_, word)| *word);
            let new = mbarrier::step(old, delta);
            if (old ^ new) >> mbarrier::PHASE_BIT & 1 == 1 {
                self.tell_misuse(Wrong::MbarrierCompleted, (inst.span, t), None, Some(at));
            }
            words.retain(|(there, _)| *there != at);
            words.push((at, new));
        }
    }

    /// The trap of a transfer.
    fn refused_transfer(
        &self,
        fault: &Fault,
        thread: usize,
        span: Span,
        same: impl Iterator<Item = usize>,
        mem: &mut dyn Memory,
    ) -> Box<Trap> {
        let mut trap = self.trap_of(fault.kind, span, same);
        fault.clone().tell(&mut trap, &self.env, number(thread), |addr| mem.space(addr));
        trap
    }

    /// All threads have ended: what they have begun happens.
    pub(crate) fn end_transfers(&mut self, mem: &mut dyn Memory) -> Result<(), Box<Trap>> {
        let Some(under_way) = self.env.late.clone() else { return Ok(()) };
        for copy in late::left_open(&under_way, &self.env) {
            self.tell_copy(Wrong::AsyncOpen, copy, None);
        }
        let done = late::end(&under_way, &mut Thread::new(self, mem, 0, Span::NONE));
        done.map_err(|fault| self.refused_transfer(&fault, 0, Span::NONE, std::iter::once(0), mem))
    }
}
