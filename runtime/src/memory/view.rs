//! What one cta may touch: the device's allocations, its shared and local memory, and the parameters of its launch.

use std::sync::Arc;

use handloom_ir::simt::{CODE_BASE, CODE_END};
use handloom_ir::trap::TrapKind;
use handloom_ir::types::StateSpace;

use super::linear::DeviceMemory;
use super::space::{AllocKind, Space, SpaceKind};

/// A range that an address was found in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hit {
    pub(crate) base: u64,
    pub(crate) size: u64,
    pub(crate) kind: AllocKind,
}

impl Hit {
    pub(crate) const NONE: Hit = Hit { base: 0, size: 0, kind: AllocKind::Buffer };

    #[inline]
    pub(crate) fn holds(&self, addr: u64, bytes: u64) -> bool {
        let at = addr.wrapping_sub(self.base);
        at < self.size && bytes <= self.size - at
    }
}

/// Local memory of the thread that accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Own {
    pub(crate) base: u64,
    pub(crate) size: u64,
}

/// What a cta may touch.
#[derive(Debug)]
pub(crate) struct View {
    memory: Arc<DeviceMemory>,
    kind: SpaceKind,
    /// Parameters of the launch: base and size.
    pub(crate) param: (u64, u64),
    /// Shared memory of the cta: base and size.
    pub(crate) shared: (u64, u64),
    /// Bases of the shared memory of the cluster's ctas, by rank; empty for a cluster of one.
    pub(crate) peers: Vec<u64>,
    /// Local memory of the cta: base and size.
    pub(crate) local: (u64, u64),
    /// Ranges hit lately, the latest first.
    hits: [Hit; 4],
    generation: u64,
}

impl View {
    pub(crate) fn new(memory: Arc<DeviceMemory>, kind: SpaceKind) -> View {
        let generation = memory.generation();
        View {
            memory,
            kind,
            param: (0, 0),
            shared: (0, 0),
            peers: Vec::new(),
            local: (0, 0),
            hits: [Hit::NONE; 4],
            generation,
        }
    }

    /// The space that the program's own memory lies in.
    pub(crate) fn space(&self) -> &Space {
        self.memory.space(self.kind).unwrap_or(&self.memory.wide)
    }

    /// Forgets cached ranges if an allocation has ended. The result is a number that stays as long as none does.
    pub(crate) fn newest(&mut self) -> u64 {
        self.refresh();
        self.generation
    }

    /// A number that is the same as long as cached ranges are not forgotten.
    pub(crate) fn age(&self) -> u64 {
        self.generation
    }

    /// Forgets cached ranges if an allocation has ended. Says whether it did.
    pub(crate) fn refresh(&mut self) -> bool {
        let now = self.memory.generation();
        if now == self.generation {
            return false;
        }
        self.generation = now;
        self.hits = [Hit::NONE; 4];
        true
    }

    /// The range that holds `addr .. addr + bytes`, if it may be read, or written.
    ///
    /// `own` is the local memory of the thread; without it all local memory of the cta passes.
    ///
    /// # Errors
    /// Why not: `OutOfBounds` or `WriteProtected`.
    #[inline]
    pub(crate) fn resolve(&mut self, addr: u64, bytes: u64, write: bool, own: Option<Own>) -> Result<Hit, TrapKind> {
        if let [first, ..] = &self.hits
            && first.holds(addr, bytes)
            && (!write || first.kind.is_writable())
        {
            return Ok(*first);
        }
        self.resolve_slow(addr, bytes, write, own)
    }

    /// The range among those hit lately and small allocations that holds `addr .. addr + bytes`, if it may be read, or written.
    #[inline]
    pub(crate) fn at_hand(&self, addr: u64, bytes: u64, write: bool) -> Option<Hit> {
        let fits = |h: &Hit| h.holds(addr, bytes) && (!write || h.kind.is_writable());
        self.hits.iter().copied().find(fits).or_else(|| self.small(addr).filter(fits))
    }

    /// The small allocation that holds an address.
    #[inline]
    fn small(&self, addr: u64) -> Option<Hit> {
        let (base, size, kind) = self.space().small(addr)?;
        Some(Hit { base, size, kind })
    }

    fn resolve_slow(&mut self, addr: u64, bytes: u64, write: bool, own: Option<Own>) -> Result<Hit, TrapKind> {
        let space = self.space();
        let hit = if space.is_shared(addr) {
            let own = Hit { base: self.shared.0, size: self.shared.1, kind: AllocKind::Shared };
            let of = |base: &u64| Hit { base: *base, ..own };
            std::iter::once(own).chain(self.peers.iter().map(of)).find(|h| h.holds(addr, bytes))
        } else if space.is_local(addr) {
            let (base, size) = own.map_or(self.local, |o| (o.base, o.size));
            Some(Hit { base, size, kind: AllocKind::Local })
        } else if space.is_param(addr) {
            Some(Hit { base: self.param.0, size: self.param.1, kind: AllocKind::Param })
        } else {
            self.allocation(addr)
        };
        match hit {
            Some(h) if h.holds(addr, bytes) => match h.kind {
                AllocKind::Const | AllocKind::Param | AllocKind::MappedForReading | AllocKind::HostForReading
                    if write =>
                {
                    Err(TrapKind::WriteProtected)
                }
                AllocKind::Const
                | AllocKind::Param
                | AllocKind::Mapped
                | AllocKind::MappedForReading
                | AllocKind::Host
                | AllocKind::HostForReading
                | AllocKind::Buffer
                | AllocKind::Linear
                | AllocKind::Global
                | AllocKind::Malloc
                | AllocKind::Shared
                | AllocKind::Local => Ok(h),
            },
            None if write && (CODE_BASE..CODE_END).contains(&addr) => Err(TrapKind::WriteProtected),
            Some(_) | None => Err(TrapKind::OutOfBounds),
        }
    }

    /// The allocation that holds an address, from the cache or the map. Only these are cached: the others depend on the thread or the cta.
    fn allocation(&mut self, addr: u64) -> Option<Hit> {
        if let Some(i) = self.hits.iter().position(|h| h.holds(addr, 1)) {
            self.hits[..=i].rotate_right(1);
            return Some(self.hits[0]);
        }
        // Those need no cache.
        if let Some(small) = self.small(addr) {
            return Some(small);
        }
        let (base, size, kind) = self.memory.extent(addr)?;
        self.hits.rotate_right(1);
        self.hits[0] = Hit { base, size, kind };
        Some(self.hits[0])
    }

    /// The state space that a generic address falls into.
    pub(crate) fn state_space(&self, addr: u64) -> StateSpace {
        let space = self.space();
        if space.is_shared(addr) {
            StateSpace::Shared
        } else if space.is_local(addr) {
            StateSpace::Local
        } else if space.is_const(addr) {
            StateSpace::Const
        } else if space.is_param(addr) {
            StateSpace::ParamEntry
        } else {
            StateSpace::Global
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_by_space_and_protects() {
        let memory = Arc::new(DeviceMemory::claim().unwrap());
        let a = memory.wide.allocate(AllocKind::Buffer, 100, 1, "", "").unwrap();
        let c = memory.wide.allocate(AllocKind::Const, 8, 1, "", "").unwrap();
        let (slab, (l, _)) = memory.wide.take_seat(64).unwrap();
        let mut v = View::new(Arc::clone(&memory), SpaceKind::Wide);
        v.shared = (slab, 128);
        v.local = (l, 64);
        assert!(v.resolve(a + 96, 4, true, None).is_ok());
        assert_eq!(v.resolve(a + 97, 4, true, None), Err(TrapKind::OutOfBounds));
        assert_eq!(v.resolve(u64::MAX - 1, 4, false, None), Err(TrapKind::OutOfBounds));
        assert!(v.resolve(c, 8, false, None).is_ok());
        assert_eq!(v.resolve(c, 8, true, None), Err(TrapKind::WriteProtected));
        assert_eq!(v.resolve(slab + 124, 8, false, None), Err(TrapKind::OutOfBounds));
        assert_eq!(v.resolve(0, 1, false, None), Err(TrapKind::OutOfBounds));
        assert!(v.resolve(l + 16, 16, true, Some(Own { base: l + 16, size: 16 })).is_ok());
        assert!(v.resolve(l, 16, true, Some(Own { base: l + 16, size: 16 })).is_err());
        assert_eq!(v.state_space(slab), StateSpace::Shared);
        assert_eq!(v.state_space(12), StateSpace::Global);
        memory.wide.free(a, None);
        assert!(v.refresh());
        assert!(v.resolve(a, 4, false, None).is_err());
    }

    #[test]
    fn small_allocations_are_at_hand_until_they_end() {
        let memory = Arc::new(DeviceMemory::claim().unwrap());
        let objects: Vec<u64> =
            (0..200).map(|_| memory.wide.allocate(AllocKind::Malloc, 24, 1, "", "").unwrap()).collect();
        let fixed = memory.wide.allocate(AllocKind::Const, 24, 1, "", "").unwrap();
        let large = memory.wide.allocate(AllocKind::Buffer, 32 << 20, 1, "", "").unwrap();
        let mut v = View::new(Arc::clone(&memory), SpaceKind::Wide);
        assert!(objects.iter().all(|a| v.at_hand(*a + 20, 4, true).is_some()));
        assert!(objects.iter().all(|a| v.at_hand(*a + 21, 4, true).is_none()));
        for a in [fixed, large] {
            assert!(v.at_hand(a, 4, false).is_none());
            assert!(v.resolve(a, 4, false, None).is_ok());
        }
        assert!(v.at_hand(fixed, 24, false).is_some());
        assert!(v.at_hand(fixed, 24, true).is_none());
        assert!(v.at_hand(fixed, 25, false).is_none());
        assert!(v.at_hand(large + (32 << 20) - 8, 8, true).is_some());
        memory.wide.free(objects[0], None);
        assert!(v.at_hand(objects[0], 4, false).is_none());
        assert!(v.at_hand(objects[1], 4, false).is_some());
        assert!(v.refresh());
        assert!(v.at_hand(large, 4, false).is_none());
        assert!(v.resolve(objects[0], 4, false, None).is_err());
    }
}
