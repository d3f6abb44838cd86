//! Where bits that nobody wrote decide something.
//!
//! Engines carry with each value which of its bits nobody wrote ([`Shade`]): through registers by [`carry`], through memory by [`Init::load`] and
//! [`Init::store`]. Nothing is told of that. Told is where a value decides something ([`Decides`]), with the place where its bits were read first.
//!
//! What is stored to memory that the host sees is told when the launch is over, if it is still there: a value that was computed, or an access of which
//! no byte is known and that is no copy of padding.

pub mod carry;
mod filled;
mod written;

use std::collections::HashMap;

use handloom_diag::Span;
use handloom_ir::types::StateSpace;

use crate::event::Thread;
pub use filled::Filled;
use written::Written;

/// Most places that origins are told apart by address.
const MOST_ORIGINS: usize = 1 << 20;

/// Most stores to memory of the host that are looked at when the launch is over.
const MOST_STORES: usize = 1 << 22;

/// The bits of a value that nobody wrote, and where they come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shade {
    /// The bits.
    pub undef: u64,
    /// Where from: see [`Init::origin`].
    pub root: Root,
}

impl Shade {
    /// A value of which no bit was written, in a register.
    pub const fn never(mask: u64) -> Shade {
        Shade { undef: mask, root: Root(0) }
    }

    /// The same of some of the bits.
    #[must_use]
    pub const fn cut(self, bits: u64) -> Shade {
        Shade { undef: self.undef & bits, root: self.root }
    }

    /// Whether its unknown bits were read nowhere yet: they are those of a register.
    pub const fn is_new(self) -> bool {
        self.root.0 == 0
    }

    /// Whether all bits are known.
    pub const fn is_known(self) -> bool {
        self.undef == 0
    }
}

/// The number of an origin, and whether something was computed from what was read there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Root(u32);

impl Root {
    const COMPUTED: u32 = 1 << 30;

    /// The same, of something that was computed from it.
    #[must_use]
    pub const fn computed(self) -> Root {
        Root(self.0 | Root::COMPUTED)
    }

    /// Whether it is no plain copy.
    const fn is_computed(self) -> bool {
        self.0 & Root::COMPUTED != 0
    }
}

/// Where bits that nobody wrote were read first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The statement.
    pub span: Span,
    /// Who executed it.
    pub thread: Thread,
    /// What was read.
    pub what: Source,
}

/// What has bits that nobody wrote.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// Memory.
    Memory {
        /// Generic address.
        addr: u64,
        /// How many bytes were read.
        bytes: u32,
        /// State space.
        space: StateSpace,
        /// Offset in the shared memory of a block, if it lies there.
        shared_offset: Option<u64>,
        /// It may be padding of a structure.
        is_padding: bool,
    },
    /// A register.
    Register,
    /// A lane that took no part in an exchange.
    Lane,
}

macro_rules! decides {
    ($($name:ident $word:literal $about:literal)*) => {
        /// What a value decides. One row a class.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Decides { $(#[doc = $about] $name,)* }

        impl Decides {
            /// All rows.
            pub const ALL: &'static [Decides] = &[$(Decides::$name),*];
            /// The stable word of reports.
            pub fn word(self) -> &'static str { match self { $(Decides::$name => $word),* } }
            /// What it means.
            pub fn about(self) -> &'static str { match self { $(Decides::$name => $about),* } }
        }
    };
}

decides! {
    Branch "branch" "which way a branch goes"
    Guard "guard" "whether a guarded access is done"
    Address "address" "the address of an access"
    Barrier "barrier" "an `mbarrier` object that nobody initialised"
    Operand "operand" "what an instruction does: the number of a barrier, the members of a mask, the target of a call, a size"
    Output "output" "what is printed"
    Result "result" "memory that the host reads"
}

/// A value with bits that nobody wrote decides something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Use {
    /// What.
    pub class: Decides,
    /// Where its bits were read; `None` for a register that this statement itself reads.
    pub origin: Option<Origin>,
    /// The statement.
    pub span: Span,
    /// Who executed it first.
    pub thread: Thread,
    /// Where it was stored, and how many bytes; of a result.
    pub stored: Option<(u64, u32)>,
    /// How often.
    pub times: u64,
}

/// What distinguishes uses: class, statement, and the statement that read first.
type Key = (Decides, Span, Option<Span>);

#[derive(Debug)]
struct Stored {
    addr: u64,
    bytes: u32,
    what: usize,
}

/// What is known of unwritten bits in a launch.
#[derive(Debug, Default)]
pub struct Init {
    written: Written,
    origins: Vec<Origin>,
    numbers: HashMap<(Span, Option<Source>), u32>,
    found: Vec<Use>,
    by_place: HashMap<Key, usize>,
    /// Uses that are none if what was stored is written later.
    results: Vec<Use>,
    by_store: HashMap<Key, usize>,
    stored: Vec<Stored>,
}

impl Init {
    /// A range is memory without contents from now on.
    pub fn renew(&mut self, addr: u64, bytes: u64) {
        self.written.renew(addr, bytes);
    }

    /// A range is no memory any more, or was written by somebody who is not seen.
    pub fn settle(&mut self, addr: u64, bytes: u64) {
        self.written.settle(addr, bytes);
    }

    /// Bytes of memory that this takes, nearly.
    pub(crate) fn cost(&self) -> u64 {
        Written::PAGE_COST * self.written.n_pages() as u64
    }

    /// The number of an origin.
    fn number(&mut self, new: Origin) -> u32 {
        let what = (self.origins.len() < MOST_ORIGINS).then_some(new.what);
        if let Some(known) = self.numbers.get(&(new.span, what)) {
            return *known;
        }
        self.origins.push(new);
        let number = u32::try_from(self.origins.len()).unwrap_or(1) & (Root::COMPUTED - 1);
        self.numbers.insert((new.span, what), number);
        number
    }

    /// The place where a value was read that a thread reads in a register that it never wrote, or from a lane that is not there.
    pub fn origin(&mut self, span: Span, thread: Thread, what: Source) -> Root {
        Root(self.number(Origin { span, thread, what }))
    }

    /// A thread reads at most 8 bytes. `place`: state space, and offset in shared memory.
    pub fn load(
        &mut self,
        span: Span,
        thread: Thread,
        addr: u64,
        bytes: u32,
        place: (StateSpace, Option<u64>),
    ) -> Shade {
        let (undef, note) = self.written.load(addr, bytes);
        if undef == 0 {
            return Shade::default();
        }
        let root = match note.origin() {
            Some(origin) => Root(origin),
            None => {
                let first = u64::from(undef.trailing_zeros() / 8);
                let (space, shared_offset) = place;
                // Local memory of threads lies side by side: what repeats there are threads.
                let has_many = !matches!(space, StateSpace::Local | StateSpace::ParamFunc);
                let is_padding = self.written.is_padding(addr + first, has_many);
                self.origin(span, thread, Source::Memory { addr, bytes, space, shared_offset, is_padding })
            }
        };
        Shade { undef, root }
    }

    /// A thread writes at most 8 bytes, with an access of `whole` bytes.
    pub fn store(&mut self, addr: u64, bytes: u32, whole: u32, shade: Shade) {
        let bits = u64::MAX >> (64 - 8 * bytes.clamp(1, 8));
        self.written.store(addr, bytes, whole, shade.undef & bits, shade.root.0);
    }

    /// Bytes are written with what is known.
    pub fn fill(&mut self, addr: u64, bytes: u64) {
        for at in (0..bytes).step_by(8) {
            let n = u32::try_from((bytes - at).min(8)).unwrap_or(8);
            self.written.store(addr + at, n, 16, 0, 0);
        }
    }

    /// A value decides something.
    pub fn decides(&mut self, class: Decides, span: Span, thread: Thread, shade: Shade) {
        if shade.is_known() {
            return;
        }
        let new = self.new_use(class, span, thread, shade);
        count(&mut self.found, &mut self.by_place, new);
    }

    /// A thread has stored a value to memory that the host reads: one that is a result, if it stays there. `elements`: addresses, bytes, and shades.
    pub fn stored(&mut self, span: Span, thread: Thread, elements: &[(u64, u32, Shade)]) {
        let is_unknown = |(_, bytes, shade): &(u64, u32, Shade)| {
            let undef = shade.undef.to_le_bytes();
            (0..*bytes).zip(undef).all(|(_, byte)| byte != 0)
        };
        let is_whole = elements.iter().all(is_unknown);
        for (addr, bytes, shade) in elements.iter().copied().filter(|(_, _, shade)| !shade.is_known()) {
            let is_padding =
                self.origin_of(shade).is_some_and(|o| matches!(o.what, Source::Memory { is_padding: true, .. }));
            if self.written.is_fresh(addr) {
                continue;
            }
            if !shade.root.is_computed() && (!is_whole || is_padding) || self.stored.len() >= MOST_STORES {
                continue;
            }
            let new =
                Use { stored: Some((addr, bytes)), times: 0, ..self.new_use(Decides::Result, span, thread, shade) };
            let what = count(&mut self.results, &mut self.by_store, new);
            self.stored.push(Stored { addr, bytes, what });
        }
    }

    fn origin_of(&self, shade: Shade) -> Option<Origin> {
        let number = usize::try_from(shade.root.0 & (Root::COMPUTED - 1)).ok()?;
        self.origins.get(number.checked_sub(1)?).copied()
    }

    fn new_use(&self, class: Decides, span: Span, thread: Thread, shade: Shade) -> Use {
        Use { class, origin: self.origin_of(shade), span, thread, stored: None, times: 1 }
    }

    /// Whether something was found already.
    pub(crate) fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// What was found, the launch being over.
    pub fn finish(mut self) -> Vec<Use> {
        // The last ones first: what is written again is counted once.
        for stored in std::mem::take(&mut self.stored).into_iter().rev() {
            let (mut left, mut at) = (stored.bytes, stored.addr);
            let mut is_unknown = false;
            while left > 0 {
                let now = left.min(8);
                is_unknown |= self.written.load(at, now).0 != 0;
                (left, at) = (left - now, at + u64::from(now));
            }
            if is_unknown {
                self.results[stored.what].times += 1;
                self.results[stored.what].stored = Some((stored.addr, stored.bytes));
                self.written.store(stored.addr, stored.bytes.min(8), 8, 0, 0);
            }
        }
        self.found.extend(self.results.into_iter().filter(|u| u.times > 0));
        self.found
    }
}

/// Counts a use at its places. Returns its number.
fn count(list: &mut Vec<Use>, by_place: &mut HashMap<Key, usize>, new: Use) -> usize {
    let key = (new.class, new.span, new.origin.map(|o| o.span));
    match by_place.get(&key) {
        Some(i) => {
            list[*i].times += new.times;
            *i
        }
        None => {
            by_place.insert(key, list.len());
            list.push(new);
            list.len() - 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(init: &mut Init, addr: u64) -> Shade {
        init.load(Span::NONE, Thread::new(0, 0), addr, 4, (StateSpace::Shared, None))
    }

    #[test]
    fn copies_are_told_where_they_decide_something() {
        let mut init = Init::default();
        init.renew(64, 64);
        let shade = load(&mut init, 64);
        assert_eq!(shade.undef, 0xffff_ffff);
        init.store(128, 4, 4, shade);
        let again = load(&mut init, 128);
        assert_eq!(again, shade);
        init.decides(Decides::Branch, Span::NONE, Thread::new(0, 0), again);
        let [found] = &init.finish()[..] else { panic!("not one") };
        assert!(matches!(found.origin.unwrap().what, Source::Memory { addr: 64, .. }));
    }

    #[test]
    fn results_are_those_that_stay() {
        let mut init = Init::default();
        init.renew(64, 64);
        for at in [256, 260] {
            let shade = load(&mut init, 64);
            init.store(at, 4, 4, shade);
            init.stored(Span::NONE, Thread::new(0, 0), &[(at, 4, shade)]);
        }
        init.store(256, 4, 4, Shade::default());
        let [found] = &init.finish()[..] else { panic!("not one") };
        assert_eq!((found.class, found.stored, found.times), (Decides::Result, Some((260, 4)), 1));
    }
}
