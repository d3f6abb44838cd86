//! Traps and waiters: what is said of threads that stopped.

use handloom_diag::Span;
use handloom_ir::mbarrier;
use handloom_ir::simt::{SymKind, Symbol};
use handloom_ir::trap::{Trap, TrapKind, Waiter};

use crate::cta::{Cta, Group};
use crate::lane::{Lane, Refused, State};
use crate::numbers::number;

impl<'m> Cta<'m> {
    /// Where the threads that have not ended are, and what they wait for. Lanes of a warp at one place are one entry.
    pub fn waiters(&self) -> Vec<Waiter> {
        let mut found: Vec<(usize, Waiter)> = Vec::new();
        for (t, lane) in self.threads.iter().enumerate() {
            let Some((span, what)) = self.waits_for(lane) else { continue };
            let warp = t / 32;
            match found.iter_mut().find(|(w, f)| *w == warp && f.span == span && f.what == what) {
                Some((_, f)) => f.count += 1,
                None => {
                    let thread = self.env.tid(number(t));
                    found.push((warp, Waiter { cta: self.env.ctaid, thread, count: 1, span, what }));
                }
            }
        }
        found.into_iter().map(|(_, waiter)| waiter).collect()
    }

    fn waits_for(&self, lane: &Lane<'m>) -> Option<(Span, String)> {
        match &lane.state {
            State::Exited | State::Stopped => None,
            State::Ready => {
                let block = &self.module.funcs[lane.place.func.idx()].blocks[lane.place.block.idx()];
                let span = block.insts.get(lane.place.inst).map_or(block.term_span, |inst| inst.span);
                Some((span, "its turn".into()))
            }
            State::Yielded => Some((lane.span, lane.refused.map_or_else(|| "memory".into(), |r| self.object_of(&r)))),
            State::WarpSync { mask, .. } => Some((lane.span, format!("lanes {mask:#010x}"))),
            State::Barrier { id, .. } => Some((lane.span, crate::barrier::waits_for(*id))),
            State::ClusterWait { .. } => Some((lane.span, "the cluster barrier".into())),
        }
    }

    /// An `mbarrier` object, and what its phase lacks.
    fn object_of(&self, r: &Refused) -> String {
        let offset = r.object.wrapping_sub(self.env.shared_base);
        let found = self.module.syms.iter().filter_map(|s| match s.kind {
            SymKind::Shared { offset: at } => {
                offset.checked_sub(at.into()).filter(|inside| *inside < s.size).map(|inside| (s, inside))
            }
            SymKind::Global | SymKind::Const | SymKind::DynamicShared { .. } | SymKind::Func(_) => None,
        });
        // Variables of several kernels lie at one place: those of this one carry its name.
        let entry =
            self.threads.iter().find_map(|t| t.frames.first()).map(|f| self.module.funcs[f.func.idx()].name.as_str());
        let is_own =
            |s: &Symbol| entry.is_some_and(|e| s.name.strip_prefix(e).is_some_and(|rest| rest.starts_with('$')));
        let name = match found.max_by_key(|(s, _)| is_own(s)) {
            Some((s, 0)) => format!("`{}`", self.module.declared_name(&s.name)),
            Some((s, inside)) => format!("`{}`+{inside}", self.module.declared_name(&s.name)),
            None => format!("{:#x}", r.object),
        };
        let (lacks, of) = (r.word & mbarrier::PENDING, r.word >> mbarrier::COUNT_BITS & mbarrier::PENDING);
        // Bytes under way are a number with a sign.
        let bytes = r.word.cast_signed() >> mbarrier::BYTES_BIT;
        let bytes = match bytes {
            0 => String::new(),
            n if n > 0 => format!(" and {n} bytes"),
            n => format!(", and {} bytes came that nobody expects", n.unsigned_abs()),
        };
        format!("the `mbarrier` object {name}, whose phase lacks {lacks} of {of} arrivals{bytes}")
    }

    /// The trap of a cta in which nobody can ever go on. The runtime also raises it when a round of the whole grid
    /// changed nothing.
    pub fn deadlock(&self) -> Box<Trap> {
        let waiting = self.threads.iter().position(|lane| !lane.is_exited()).unwrap_or(0);
        let span = self.threads.get(waiting).map_or(Span::NONE, |lane| lane.span);
        let mut trap = self.trap_of(TrapKind::Deadlock, span, std::iter::once(waiting));
        trap.waiters = self.waiters();
        trap
    }

    /// A trap of all lanes of a group.
    pub(crate) fn trap_in(&self, kind: TrapKind, span: Span, group: Group) -> Box<Trap> {
        self.trap_of(kind, span, group.threads())
    }

    /// A trap of threads of one warp, the lowest first.
    pub(crate) fn trap_of(&self, kind: TrapKind, span: Span, threads: impl Iterator<Item = usize>) -> Box<Trap> {
        let mut threads = threads.peekable();
        let first = threads.next().unwrap_or(0);
        let mut trap = Trap::new(kind, span, self.env.ctaid, self.env.tid(number(first)));
        trap.other_lanes = threads.fold(0, |mask, t| mask | 1 << (t % 32));
        Box::new(trap)
    }
}
