//! Loads, stores and atomics: what may be touched, and the touching.
//!
//! All lanes of a group are checked before the first one has an effect.

use handloom_audit::init::{Decides, Shade};
use handloom_audit::misuse::Wrong;
use handloom_audit::{Does, Proxy, Turn};
use handloom_ir::mbarrier;
use handloom_ir::simt::Does as Manner;
use handloom_ir::simt::{Access, AtomAccess, Inst, Val};
use handloom_ir::trap::{AccessKind, Trap, TrapKind};
use handloom_ir::types::{AtomOp, Order, ScalarType, Scope, StateSpace, Ty};

use crate::atom::{atom_value, atom_value_128, flushes};
use crate::cta::{Cta, Group};
use crate::env::CLUSTER_STRIDE;
use crate::lane::Refused;
use crate::late::{self, Unwaited};
use crate::memory::{Denied, Memory};
use crate::numbers::number;
use crate::shades::after_atomic;
use crate::transfer::reach::Part;
use crate::witness::Witness;

/// What an access asks for, the same in all lanes.
pub(crate) struct Request {
    kind: AccessKind,
    space: StateSpace,
    order: Order,
    /// Bytes of the whole access.
    bytes: u32,
    /// Bytes of one element.
    element: u32,
    /// The elements that are touched, by number.
    touched: Vec<u32>,
}

impl Request {
    /// Bytes of a transfer.
    pub(crate) fn of_part(part: &Part) -> Request {
        let Part { kind, space, bytes, .. } = *part;
        Request { kind, space, order: Order::Weak, bytes, element: bytes, touched: vec![0] }
    }

    /// The scalar accesses that it is made of: the first element of each, and its bytes. `is_single`: all of it is one.
    fn scalars(&self, is_single: bool) -> impl Iterator<Item = (u32, u32)> + use<> {
        let all =
            if is_single { vec![(0, self.bytes)] } else { self.touched.iter().map(|i| (*i, self.element)).collect() };
        all.into_iter()
    }

    /// From where on, and how many bytes, of the whole access are touched.
    pub(crate) fn extent(&self) -> Option<(u64, u32)> {
        let (first, last) = (self.touched.first()?, self.touched.last()?);
        Some((u64::from(first * self.element), (last + 1 - first) * self.element))
    }

    /// The state space that a generic address lies in.
    pub(crate) fn falls_into(&self, addr: u64, mem: &dyn Memory) -> StateSpace {
        if self.space == StateSpace::Generic { mem.space(addr) } else { self.space }
    }
}

impl From<Denied> for TrapKind {
    fn from(why: Denied) -> TrapKind {
        match why {
            Denied::OutOfBounds => TrapKind::OutOfBounds,
            Denied::WriteProtected => TrapKind::WriteProtected,
        }
    }
}

/// What an arrival that adds to an `mbarrier` object does to its phase.
fn turn(old: u64, delta: u64) -> Turn {
    let has_ended = (old ^ mbarrier::step(old, delta)) >> mbarrier::PHASE_BIT & 1 == 1;
    if has_ended { Turn::Ends } else { Turn::Arrives }
}

impl<'m> Cta<'m> {
    /// A load; elements whose bit is clear are not read and are zero.
    pub(crate) fn load(
        &mut self,
        inst: &'m Inst,
        access: Access,
        offset: i64,
        group: Group,
        mem: &mut dyn Memory,
    ) -> Result<(), Box<Trap>> {
        let request = plain(AccessKind::Read, access);
        self.access_decides(inst, group);
        let located = self.locate_all(inst, &request, offset, group, mem)?;
        self.check_variables(inst, &request, &located, Does::Read, mem);
        self.count_access(inst.span, &request, &located, Manner::Load, mem);
        let audit = self.audit.clone();
        let order = (access.order, access.scope);
        for (t, addr) in located.iter().copied() {
            if let Some((object, state)) = self.threads[t].asks.filter(|(object, _)| *object == addr) {
                self.check_state(inst.span, t, object, state);
            }
        }
        let proxy = if access.is_async { Proxy::Async } else { Proxy::Generic };
        let witness = Witness::of(audit.as_ref(), &self.env, inst.span, Does::Read, order);
        let mut witness = witness.map(|witness| witness.through(proxy, 0));
        for (t, addr) in located {
            let asks = self.threads[t].asks.take();
            if let Some(witness) = &mut witness {
                let space = request.falls_into(addr, mem);
                if let Some((_, word)) = asks.filter(|(object, _)| *object == addr) {
                    let found = mem.read(addr, 8);
                    let has_ended = (found ^ word) >> mbarrier::PHASE_BIT & 1 == 1;
                    self.threads[t].refused =
                        (!has_ended).then_some(Refused { object: addr, word: found, is_new: true });
                    witness.tell_turn(t, addr, space, if has_ended { Turn::Yes } else { Turn::No });
                } else {
                    for (first, bytes) in request.scalars(access.is_single) {
                        witness.tell(t, addr + u64::from(first * request.element), bytes, space, false, false);
                    }
                }
            }
            for i in &request.touched {
                let at = addr + u64::from(i * request.element);
                let value = mem.read(at, request.element);
                if let Some(reg) = usize::try_from(*i).ok().and_then(|i| inst.dst.get(i)) {
                    self.set(t, *reg, value);
                    if self.is_shaded()
                        && let Some(witness) = &mut witness
                    {
                        let shade = witness.load(t, at, request.element, request.falls_into(addr, mem));
                        self.set_shade(t, *reg, shade);
                    }
                }
            }
        }
        Ok(())
    }

    /// A store.
    pub(crate) fn store(
        &mut self,
        inst: &'m Inst,
        access: Access,
        offset: i64,
        group: Group,
        mem: &mut dyn Memory,
    ) -> Result<(), Box<Trap>> {
        let request = plain(AccessKind::Write, access);
        self.access_decides(inst, group);
        let values = &inst.operands()[1..];
        let located = self.locate_all(inst, &request, offset, group, mem)?;
        self.check_variables(inst, &request, &located, Does::Write, mem);
        self.count_access(inst.span, &request, &located, Manner::Store, mem);
        let audit = self.audit.clone();
        let order = (access.order, access.scope);
        let mut witness = Witness::of(audit.as_ref(), &self.env, inst.span, Does::Write, order);
        for (t, addr) in located {
            if let Some(witness) = &mut witness {
                let space = request.falls_into(addr, mem);
                for (first, bytes) in request.scalars(access.is_single) {
                    let same_value = (first..first + bytes / request.element).all(|i| {
                        let value = usize::try_from(i).ok().and_then(|i| values.get(i)).map(|v| self.get(t, *v));
                        let there = mem.read(addr + u64::from(i * request.element), request.element);
                        value.map(|v| v & low_bytes(request.element)) == Some(there)
                    });
                    witness.tell(t, addr + u64::from(first * request.element), bytes, space, same_value, false);
                }
                if self.is_shaded() {
                    let element = |i: &u32| {
                        let value = usize::try_from(*i).ok().and_then(|i| values.get(i)).copied();
                        let shade =
                            value.map_or(Shade::default(), |v| self.shade(t, v).cut(low_bytes(request.element)));
                        (addr + u64::from(i * request.element), request.element, witness.rooted(t, shade))
                    };
                    let elements: Vec<_> = request.touched.iter().map(element).collect();
                    witness.store(t, &elements, space);
                }
            }
            for i in &request.touched {
                if let Some(v) = usize::try_from(*i).ok().and_then(|i| values.get(i)) {
                    let value = self.get(t, *v) & low_bytes(request.element);
                    self.write(mem, addr + u64::from(i * request.element), request.element, value);
                }
            }
        }
        Ok(())
    }

    /// Tells of accesses before the wait for a copy.
    fn check_copies(&self, inst: &Inst, request: &Request, located: &[(usize, u64)], does: Does) {
        let Some(under_way) = self.env.late.as_ref().filter(|all| late::is_open(all, &self.env)) else { return };
        for (t, addr) in located.iter().copied() {
            let Some((skip, bytes)) = request.extent() else { continue };
            let part = (addr + skip, u64::from(bytes));
            if let Some((copy, why)) = late::unwaited(under_way, &self.env, part, does != Does::Read) {
                let wrong = match why {
                    Unwaited::Target => Wrong::AsyncUnwaited,
                    Unwaited::Source => Wrong::AsyncSource,
                };
                self.tell_copy(wrong, copy, Some((inst.span, t)));
            }
        }
    }

    /// Tells of accesses that leave the variables that their addresses were made from, or come before the wait for a copy.
    fn check_variables(&self, inst: &Inst, request: &Request, located: &[(usize, u64)], does: Does, mem: &dyn Memory) {
        self.check_copies(inst, request, located, does);
        for (t, addr) in located.iter().copied().filter(|_| self.traced) {
            let Some((skip, bytes)) = request.extent() else { continue };
            self.check_variable(inst, t, (addr + skip, bytes), does, request.falls_into(addr, mem));
        }
    }

    /// Arrivals at `mbarrier` objects that their phases do not expect, and more bytes than they can count.
    fn check_arrivals(&self, inst: &Inst, located: &[(usize, u64)], mem: &mut dyn Memory) {
        let Some(step) = inst.operands().get(1) else { return };
        let mut words: Vec<(u64, u64)> = Vec::new();
        for (t, addr) in located.iter().copied() {
            let old = match words.iter().find(|(at, _)| *at == addr) {
                Some((_, word)) => *word,
                None => mem.read(addr, 8),
            };
            let delta = self.get(t, *step);
            let new = mbarrier::step(old, delta);
            if delta.wrapping_neg() & mbarrier::PENDING > old & mbarrier::PENDING
                || !mbarrier::has_too_many_bytes(old) && mbarrier::has_too_many_bytes(new)
            {
                self.tell_misuse(Wrong::MbarrierCount, (inst.span, t), None, Some(addr));
            }
            words.retain(|(at, _)| *at != addr);
            words.push((addr, new));
        }
    }

    /// An atomic; a `red` is one without results. Elements are atomic one by one, lane after lane.
    pub(crate) fn atomic(
        &mut self,
        inst: &'m Inst,
        access: AtomAccess,
        offset: i64,
        group: Group,
        mem: &mut dyn Memory,
    ) -> Result<(), Box<Trap>> {
        let element = access.ty.bytes();
        let count = u32::from(access.count);
        let request = Request {
            kind: AccessKind::Atomic,
            space: access.space,
            order: access.order,
            bytes: element * count,
            element,
            touched: (0..count).collect(),
        };
        self.access_decides(inst, group);
        let values = &inst.operands()[1..];
        let located = self.locate_all(inst, &request, offset, group, mem)?;
        self.check_variables(inst, &request, &located, Does::Update, mem);
        self.count_access(inst.span, &request, &located, Manner::Atomic, mem);
        let audit = self.audit.clone();
        let does = if inst.dst.is_empty() { Does::Reduce } else { Does::Update };
        // An `mbarrier` object belongs to the asynchronous copies of the cluster, whatever scope the program gives its own arrivals.
        let is_step = access.op == AtomOp::Step;
        let (does, scope) = if is_step { (Does::Step, access.scope.max(Scope::Cluster)) } else { (does, access.scope) };
        let order = (access.order, scope);
        if is_step && audit.is_some() {
            self.check_arrivals(inst, &located, mem);
        }
        let mut witness = Witness::of(audit.as_ref(), &self.env, inst.span, does, order);
        for (t, addr) in located {
            let space = request.falls_into(addr, mem);
            if access.ty == ScalarType::B128 {
                let failed = !self.atomic_128(inst, access.op, t, addr, mem);
                if let Some(witness) = &mut witness {
                    witness.tell(t, addr, 16, space, false, failed);
                    for (reg, at) in inst.dst.iter().zip([addr, addr + 8]) {
                        let shade = witness.load(t, at, 8, space);
                        self.set_shade(t, *reg, shade);
                    }
                    if self.shaded && !failed {
                        let all = [(addr, 8, Shade::default()), (addr + 8, 8, Shade::default())];
                        witness.store(t, &all, space);
                    }
                }
                continue;
            }
            let ftz = flushes(access.ty, space);
            for i in 0..usize::from(access.count) {
                let addr = addr + u64::from(element) * u64::try_from(i).unwrap_or(0);
                let operand = |k: usize| values.get(k).map_or(0, |v: &Val| self.get(t, *v));
                // `cas` compares with the first operand and writes the second; it has no vector form.
                let (a, b) = match access.op {
                    AtomOp::Cas => (operand(0), operand(1)),
                    AtomOp::And
                    | AtomOp::Or
                    | AtomOp::Xor
                    | AtomOp::Add
                    | AtomOp::Inc
                    | AtomOp::Dec
                    | AtomOp::Min
                    | AtomOp::Max
                    | AtomOp::Exch
                    | AtomOp::Step => (operand(i), 0),
                };
                let old = mem.read(addr, element);
                let mut state = old;
                if let Some(witness) = &mut witness {
                    let failed = access.op == AtomOp::Cas && old != a & low_bytes(element);
                    if is_step {
                        state = witness.state(addr, old);
                        witness.tell_turn(t, addr, space, turn(old, a));
                    } else {
                        // A packed type is accessed element by element.
                        let part = element / access.ty.elements();
                        let parts = (addr..addr + u64::from(element)).step_by(part as usize);
                        parts.for_each(|at| witness.tell(t, at, part, space, false, failed));
                    }
                }
                self.write(mem, addr, element, atom_value(access.op, access.ty, ftz, old, a, b));
                let shade = |k: usize| {
                    values.get(k).map_or(Shade::default(), |v: &Val| self.shade(t, *v)).cut(low_bytes(element))
                };
                let is_cas = access.op == AtomOp::Cas;
                let shades = if is_cas { [shade(0), shade(1)] } else { [shade(i), Shade::default()] };
                if let Some(reg) = inst.dst.get(i) {
                    self.set(t, *reg, state);
                }
                if self.shaded
                    && let Some(witness) = &mut witness
                {
                    let memory = witness.load(t, addr, element, space);
                    let ty = access.ty.ty();
                    let [of_a, of_b] = shades.map(|shade| witness.rooted(t, shade));
                    let mut new = after_atomic(access.op, ty, (old, memory), (a, of_a), (b, of_b));
                    if access.op == AtomOp::Step {
                        witness.decides(Decides::Barrier, t, memory);
                        new = Shade::default();
                    }
                    witness.store(t, &[(addr, element, new.cut(low_bytes(element)))], space);
                    if let Some(reg) = inst.dst.get(i) {
                        self.set_shade(t, *reg, memory);
                    }
                }
            }
        }
        Ok(())
    }

    /// A `.b128` atomic: operands and results are pairs of 64-bit words, the low one first. Says whether it wrote: a `cas` may find another value.
    fn atomic_128(&mut self, inst: &Inst, op: AtomOp, t: usize, addr: u64, mem: &mut dyn Memory) -> bool {
        let words = &inst.operands()[1..];
        let word = |k: usize| words.get(k).map_or(0, |v| self.get(t, *v));
        let pair = |lo: u64, hi: u64| u128::from(hi) << 64 | u128::from(lo);
        let (a, b) = (pair(word(0), word(1)), pair(word(2), word(3)));
        let (lo, hi) = (mem.read(addr, 8), mem.read(addr + 8, 8));
        let new = atom_value_128(op, pair(lo, hi), a, b);
        let half = |shift: u32| u64::try_from(new >> shift & u128::from(u64::MAX)).unwrap_or(0);
        self.write(mem, addr, 8, half(0));
        self.write(mem, addr + 8, 8, half(64));
        for (reg, old) in inst.dst.iter().zip([lo, hi]) {
            self.set(t, *reg, old);
        }
        op != AtomOp::Cas || pair(lo, hi) == a
    }

    /// Writes and notes whether a byte changed.
    fn write(&mut self, mem: &mut dyn Memory, addr: u64, bytes: u32, value: u64) {
        if mem.read(addr, bytes) != value {
            self.touched = true;
            mem.write(addr, bytes, value);
        }
    }

    /// Generic addresses of the lanes whose guard is on.
    fn locate_all(
        &self,
        inst: &Inst,
        request: &Request,
        offset: i64,
        group: Group,
        mem: &dyn Memory,
    ) -> Result<Vec<(usize, u64)>, Box<Trap>> {
        let base = inst.src[0];
        let mut found = Vec::new();
        let mut refused: Vec<(usize, u64, TrapKind)> = Vec::new();
        for t in group.threads() {
            if inst.guard().is_some_and(|g| self.get(t, g) & 1 == 0) {
                continue;
            }
            let ty = self.module.funcs[self.threads[t].frame().func.idx()].ty(base);
            let addr = self.get(t, base).wrapping_add_signed(offset);
            // A 32-bit address wraps at its own width.
            let addr = if ty == Ty::B64 { addr } else { addr & Ty::B32.mask() };
            match self.locate(request, t, addr, mem) {
                Ok(host) => found.push((t, host)),
                Err(why) => refused.push((t, addr, why)),
            }
        }
        // The lanes of an access come in no order; an odd seed turns that of the one before it round.
        if self.audit.is_some() && self.env.seed & 1 == 1 {
            found.reverse();
        }
        let Some((first, addr, kind)) = refused.first().copied() else { return Ok(found) };
        let same = refused.iter().filter(|(_, _, k)| *k == kind).map(|(t, _, _)| *t);
        let mut trap = self.trap_of(kind, inst.span, same);
        trap.address = Some(addr);
        trap.bytes = request.bytes;
        trap.access = Some(request.kind);
        trap.space = Some(request.space);
        trap.own = self.env.aim(number(first), request.space, addr, mem.space(addr));
        if kind == TrapKind::BadSpace {
            trap.detail = format!("the address lies in `.{}`", mem.space(addr).name());
        }
        Err(trap)
    }

    /// Generic address of an access of one lane, if it is allowed: its alignment first, then its bounds, then its state
    /// space.
    fn locate(&self, request: &Request, t: usize, addr: u64, mem: &dyn Memory) -> Result<u64, TrapKind> {
        if !addr.is_multiple_of(u64::from(request.bytes)) {
            return Err(TrapKind::Misaligned);
        }
        let count = request.bytes / request.element;
        let whole = [0];
        // Elements that are not touched may lie outside.
        let all = request.touched.len() == usize::try_from(count).unwrap_or(0);
        let (parts, bytes) =
            if all { (whole.as_slice(), request.bytes) } else { (request.touched.as_slice(), request.element) };
        let mut host = addr;
        for part in parts {
            let skip = u64::from(part * request.element);
            host = self.locate_part(request, t, addr.wrapping_add(skip), bytes, mem)?.wrapping_sub(skip);
        }
        Ok(host)
    }

    /// The same of bytes with an alignment of their own.
    pub(crate) fn locate_bytes(
        &self,
        request: &Request,
        align: u32,
        t: usize,
        addr: u64,
        mem: &dyn Memory,
    ) -> Result<u64, TrapKind> {
        if !addr.is_multiple_of(u64::from(align)) {
            return Err(TrapKind::Misaligned);
        }
        self.locate_part(request, t, addr, request.bytes, mem)
    }

    /// Generic address of one contiguous part of an access.
    fn locate_part(
        &self,
        request: &Request,
        t: usize,
        addr: u64,
        bytes: u32,
        mem: &dyn Memory,
    ) -> Result<u64, TrapKind> {
        let write = request.kind == AccessKind::Write;
        match request.space {
            StateSpace::Shared => self.shared_part(addr, bytes, self.env.shared_base),
            StateSpace::SharedCluster => {
                let (base, offset) = self.env.cluster_part(addr).ok_or(TrapKind::OutOfBounds)?;
                self.shared_part(offset, bytes, base)
            }
            StateSpace::Local | StateSpace::ParamFunc => {
                if self.is_own(t, addr, bytes) {
                    Ok(addr)
                } else {
                    Err(TrapKind::OutOfBounds)
                }
            }
            StateSpace::Generic => {
                let atomic = request.kind == AccessKind::Atomic;
                check(request, addr, bytes, write, mem)?;
                if !may_fall_into(request, mem.space(addr)) {
                    return Err(TrapKind::BadSpace);
                }
                check(request, addr, bytes, write || atomic, mem)?;
                // Local memory is each thread's own.
                let foreign = mem.space(addr) == StateSpace::Local && !self.is_own(t, addr, bytes);
                if foreign { Err(TrapKind::OutOfBounds) } else { Ok(addr) }
            }
            StateSpace::Global => {
                check(request, addr, bytes, write || request.kind == AccessKind::Atomic, mem)?;
                // Choice: `.global` with an address of another space is undefined; it is told like a generic address there.
                if mem.space(addr) == StateSpace::Global { Ok(addr) } else { Err(TrapKind::BadSpace) }
            }
            StateSpace::Const | StateSpace::ParamEntry => {
                mem.check(addr, bytes, false)?;
                if write { Err(TrapKind::WriteProtected) } else { Ok(addr) }
            }
            StateSpace::Reg | StateSpace::Sreg | StateSpace::Tex => Err(TrapKind::BadSpace),
        }
    }

    /// Whether a range lies in the local memory of a thread.
    fn is_own(&self, t: usize, addr: u64, bytes: u32) -> bool {
        let inside = addr.wrapping_sub(self.env.local_base(number(t)));
        inside.checked_add(u64::from(bytes)).is_some_and(|end| end <= self.env.local_size)
    }

    fn shared_part(&self, offset: u64, bytes: u32, base: u64) -> Result<u64, TrapKind> {
        let fits = offset.checked_add(u64::from(bytes)).is_some_and(|end| end <= u64::from(self.env.shared_size));
        if fits { Ok(base.wrapping_add(offset)) } else { Err(TrapKind::OutOfBounds) }
    }

    /// `isspacep`: whether a generic address lies in the window of a space.
    pub(crate) fn is_in_space(&self, space: StateSpace, addr: u64, mem: &dyn Memory) -> bool {
        let falls_into = mem.space(addr);
        let shared = matches!(falls_into, StateSpace::Shared | StateSpace::SharedCluster);
        match space {
            StateSpace::Shared => shared && addr.wrapping_sub(self.env.shared_base) < CLUSTER_STRIDE,
            StateSpace::SharedCluster => {
                let near = |base: &u64| addr.wrapping_sub(*base) < CLUSTER_STRIDE;
                shared && (near(&self.env.shared_base) || self.env.cluster.shared_bases.iter().any(near))
            }
            StateSpace::ParamEntry | StateSpace::ParamFunc => falls_into == StateSpace::ParamEntry,
            // Parameters of an entry are there too: their window is contained in that of global memory.
            StateSpace::Global => [space, StateSpace::ParamEntry].contains(&falls_into),
            StateSpace::Const | StateSpace::Local => falls_into == space,
            StateSpace::Generic => true,
            StateSpace::Reg | StateSpace::Sreg | StateSpace::Tex => false,
        }
    }
}

/// Whether memory allows a part of an access, which may be a word that ends behind an object.
fn check(request: &Request, addr: u64, bytes: u32, write: bool, mem: &dyn Memory) -> Result<(), Denied> {
    match mem.check(addr, bytes, write) {
        Err(Denied::OutOfBounds)
            if request.kind.may_end_behind(request.order, bytes) && mem.space(addr) == StateSpace::Global =>
        {
            mem.check(addr, 1, write)
        }
        known => known,
    }
}

/// Whether the access may reach a space through a generic address.
fn may_fall_into(request: &Request, space: StateSpace) -> bool {
    let shared = matches!(space, StateSpace::Shared | StateSpace::SharedCluster);
    let global = space == StateSpace::Global;
    match (request.kind, request.order) {
        (AccessKind::Atomic, _) => global || shared,
        (AccessKind::Read | AccessKind::Write, Order::Weak) => true,
        (AccessKind::Read | AccessKind::Write, Order::Volatile) => global || shared || space == StateSpace::Local,
        (AccessKind::Read | AccessKind::Write, Order::Mmio) => global,
        (
            AccessKind::Read | AccessKind::Write,
            Order::Relaxed | Order::Acquire | Order::Release | Order::AcqRel | Order::Sc,
        ) => global || shared,
    }
}

/// The request of a load or store.
fn plain(kind: AccessKind, access: Access) -> Request {
    Request {
        kind,
        space: access.space,
        order: access.order,
        bytes: access.bytes(),
        element: u32::from(access.bits) / 8,
        touched: (0..u32::from(access.count)).filter(|i| access.elements >> i & 1 == 1).collect(),
    }
}

/// All ones in that many bytes.
fn low_bytes(bytes: u32) -> u64 {
    1_u64.checked_shl(bytes * 8).map_or(u64::MAX, |top| top - 1)
}
