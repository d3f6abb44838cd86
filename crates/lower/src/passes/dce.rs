//! Instructions whose results nobody reads, and registers and slots that are not used any more.

use handloom_ir::simt::*;
use handloom_ir::types::{AtomOp, Order, StateSpace};

use super::values::for_each_source;

/// Removes instructions without effect whose results are not read.
///
/// An atomic whose old value is not read becomes a reduction, unless that value takes part in an acquire.
/// A load from global or shared memory stays, because it may trap. So does an op that waits for other lanes.
pub fn remove_dead(f: &mut Function) {
    let rooms = rooms(f);
    let needed = needed_registers(f, &rooms);
    for i in f.blocks.iter_mut().flat_map(|b| &mut b.insts) {
        if let Op::Atom { access, offset } = i.op
            && is_reducible(access)
            && i.dst.iter().all(|d| !needed[d.idx()])
        {
            i.op = Op::Red { access, offset };
            i.dst.clear();
        }
    }
    for b in &mut f.blocks {
        b.insts.retain(|i| !is_removable(i, &rooms) || i.dst.iter().any(|d| needed[d.idx()]));
    }
}

/// Whether a reduction can do what an atomic does to memory, and orders as much.
fn is_reducible(access: AtomAccess) -> bool {
    matches!(access.order, Order::Relaxed | Order::Release) && !matches!(access.op, AtomOp::Exch | AtomOp::Cas)
}

/// Renumbers registers and slots so that all numbers are used.
pub fn renumber(f: &mut Function) {
    let mut new_regs: Vec<Option<Reg>> = vec![None; f.regs.len()];
    let mut types = Vec::new();
    let mut new_slots: Vec<Option<SlotId>> = vec![None; f.slots.len()];
    let mut slots = Vec::new();
    let old_types = std::mem::take(&mut f.regs);
    let old_slots = std::mem::take(&mut f.slots);
    let mut reg = |r: Reg| {
        *new_regs[r.idx()].get_or_insert_with(|| {
            types.push(old_types[r.idx()]);
            Reg(types.len() as u32 - 1)
        })
    };
    let mut slot = |s: SlotId| {
        *new_slots[s.idx()].get_or_insert_with(|| {
            slots.push(old_slots[s.idx()]);
            SlotId(slots.len() as u32 - 1)
        })
    };
    let mut val = |v: Val| if let Val::Reg(r) = v { Val::Reg(reg(r)) } else { v };
    for b in &mut f.blocks {
        for i in &mut b.insts {
            i.src.iter_mut().for_each(|s| *s = val(*s));
            for d in &mut i.dst {
                if let Val::Reg(r) = val(Val::Reg(*d)) {
                    *d = r;
                }
            }
            if let Op::SlotAddr(s) = &mut i.op {
                *s = slot(*s);
            }
        }
        b.term.map_sources(&mut val);
        match &mut b.term {
            Term::Barrier { dst: Some(d), .. } => {
                if let Val::Reg(r) = val(Val::Reg(*d)) {
                    *d = r;
                }
            }
            Term::Call { args, .. } => *args = slot(*args),
            Term::Barrier { dst: None, .. }
            | Term::Jump(_)
            | Term::Branch { .. }
            | Term::Switch { .. }
            | Term::Ret
            | Term::Exit
            | Term::Trap(_)
            | Term::Yield { .. } => {}
        }
    }
    f.regs = types;
    f.slots = slots;
}

/// A place in the parameters of an entry, the arguments of a function, or a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Room {
    /// From the first byte of all.
    at: u32,
    /// Bytes in all.
    bytes: u32,
    /// What the first byte is a multiple of, at least.
    align: u32,
}

impl Room {
    /// Of parameters and arguments.
    const ALIGN: u32 = 16;

    fn of(f: &Function, op: Op) -> Option<Room> {
        match op {
            Op::ParamAddr { offset: at } | Op::ArgAddr { offset: at } => {
                Some(Room { at, bytes: f.param_bytes, align: Room::ALIGN })
            }
            Op::SlotAddr(slot) => f.slots.get(slot.idx()).map(|s| Room { at: 0, bytes: s.size, align: s.align }),
            _ => None,
        }
    }

    /// Whether an access so far from it cannot trap.
    fn has(self, access: Access, offset: i64) -> bool {
        let size = i64::from(access.bytes().max(1));
        let at = i64::from(self.at).checked_add(offset);
        let is_inside = at.is_some_and(|at| at >= 0 && at % size == 0 && at <= i64::from(self.bytes) - size);
        is_inside && i64::from(self.align) % size == 0
    }
}

/// For each register that only ever holds one address of a parameter, an argument or a slot: where that is.
pub(super) fn rooms(f: &Function) -> Vec<Option<Room>> {
    let mut rooms: Vec<Option<Option<Room>>> = vec![None; f.regs.len()];
    for i in f.blocks.iter().flat_map(|b| &b.insts) {
        let room = Room::of(f, i.op);
        for d in &i.dst {
            let known = &mut rooms[d.idx()];
            *known = Some(room.filter(|_| known.is_none_or(|known| known == room)));
        }
    }
    rooms.into_iter().map(Option::flatten).collect()
}

/// Whether a load from parameters, arguments or a slot cannot trap.
pub(super) fn is_safe(i: &Inst, access: Access, offset: i64, rooms: &[Option<Room>]) -> bool {
    matches!(i.src[0], Val::Reg(r) if rooms[r.idx()].is_some_and(|room| room.has(access, offset)))
}

fn is_removable(i: &Inst, rooms: &[Option<Room>]) -> bool {
    match i.op {
        Op::Load { access, offset } => {
            let own = matches!(access.space, StateSpace::ParamEntry | StateSpace::Local) && access.order == Order::Weak;
            own && is_safe(i, access, offset, rooms)
        }
        Op::Sreg(_) | Op::Activemask | Op::Mark => true,
        Op::Pure(_)
        | Op::SymAddr(_)
        | Op::SharedAddr(_)
        | Op::ParamAddr { .. }
        | Op::SlotAddr(_)
        | Op::ArgAddr { .. }
        | Op::Cvta { .. }
        | Op::IsSpace(_) => true,
        Op::Count(_)
        | Op::Store { .. }
        | Op::Atom { .. }
        | Op::Red { .. }
        | Op::Fence { .. }
        | Op::Shfl(_)
        | Op::Vote(_)
        | Op::Match { .. }
        | Op::Redux { .. }
        | Op::Matrix(_)
        | Op::Elect
        | Op::BarWarp
        | Op::Nanosleep
        | Op::Transfer(_)
        | Op::Stack(_)
        | Op::Image(_)
        | Op::Tensor(_)
        | Op::Builtin(_) => false,
    }
}

/// Registers that something with an effect reads, or that such a register is computed from.
fn needed_registers(f: &Function, rooms: &[Option<Room>]) -> Vec<bool> {
    let insts: Vec<&Inst> = f.blocks.iter().flat_map(|b| &b.insts).collect();
    // The writers of a register form a list through `next`, one link for each result.
    let mut first: Vec<Option<usize>> = vec![None; f.regs.len()];
    let mut links: Vec<(usize, Option<usize>)> = Vec::with_capacity(insts.len());
    let mut needed = vec![false; f.regs.len()];
    let mut work: Vec<Reg> = Vec::new();
    let mut need = |v: Val, work: &mut Vec<Reg>| {
        if let Val::Reg(r) = v
            && !std::mem::replace(&mut needed[r.idx()], true)
        {
            work.push(r);
        }
    };
    for (k, i) in insts.iter().enumerate() {
        for d in &i.dst {
            links.push((k, first[d.idx()]));
            first[d.idx()] = Some(links.len() - 1);
        }
        if !is_removable(i, rooms) {
            i.src.iter().for_each(|s| need(*s, &mut work));
        }
    }
    f.blocks.iter().for_each(|b| for_each_source(&b.term, |v| need(v, &mut work)));
    while let Some(r) = work.pop() {
        let mut at = first[r.idx()];
        while let Some(link) = at {
            let (k, next) = links[link];
            insts[k].src.iter().for_each(|s| need(*s, &mut work));
            at = next;
        }
    }
    needed
}
