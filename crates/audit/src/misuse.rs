//! Misuse of what lets threads wait for each other, as far as it is no trap.

use std::collections::HashMap;

use handloom_diag::Span;

use crate::event::Thread;

macro_rules! wrongs {
    ($($name:ident $kind:literal $word:literal $about:literal)*) => {
        /// What is wrong. One row a class.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Wrong { $(#[doc = $about] $name,)* }

        impl Wrong {
            /// All rows.
            pub const ALL: &'static [Wrong] = &[$(Wrong::$name),*];
            /// The stable word of its kind of finding.
            pub fn kind(self) -> &'static str { match self { $(Wrong::$name => $kind),* } }
            /// The stable word of reports.
            pub fn word(self) -> &'static str { match self { $(Wrong::$name => $word),* } }
            /// What it means.
            pub fn about(self) -> &'static str { match self { $(Wrong::$name => $about),* } }
        }
    };
}

wrongs! {
    MaskWithoutCaller "sync" "mask_without_caller" "the member mask does not name the thread that executes the instruction"
    DivergentWarp "barrier" "divergent_warp" "threads of one warp wait for a barrier at different instructions that all threads of a warp must execute together"
    BarrierShared "barrier" "shared_barrier" "two groups of threads meet at one barrier, and nothing keeps threads of the second from coming before the first have met"
    MbarrierCount "barrier" "mbarrier_count" "more threads arrive at an `mbarrier` object than its phase expects, or more bytes are expected than it can count"
    MbarrierCompleted "barrier" "mbarrier_completed" "an arrival that is `.noComplete` completes the phase of its `mbarrier` object"
    WaitWithoutArrival "barrier" "wait_without_arrival" "a thread waits for the barrier of its cluster and has not arrived at it"
    MbarrierOverwritten "sync" "mbarrier_overwritten" "an `mbarrier` object is written or invalidated while a thread waits for it"
    MbarrierPhase "sync" "mbarrier_phase" "a thread waits for a phase of an `mbarrier` object that ended two phases ago, and can never see its end"
    AsyncUnwaited "sync" "async_unwaited" "bytes that an asynchronous copy writes are accessed, and nothing has waited for the copy"
    AsyncSource "sync" "async_source" "the source of an asynchronous copy is written, and nothing has waited until it was read"
    BlockEnded "sync" "block_ended" "shared memory of another block of the cluster is accessed, and nothing keeps that block from having ended before"
    AsyncOpen "sync" "async_open" "a block ends, and nothing has waited for an asynchronous copy"
}

/// Something that is wrong, and the first time that it was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misuse {
    /// What.
    pub wrong: Wrong,
    /// The statement, and who executed it.
    pub first: (Span, Thread),
    /// The other one, where there are two.
    pub second: Option<(Span, Thread)>,
    /// Generic address of an `mbarrier` object, and its offset in shared memory.
    pub object: Option<(u64, u64)>,
    /// How often.
    pub times: u64,
}

/// All that was seen.
#[derive(Clone, Debug, Default)]
pub struct Misuses {
    list: Vec<Misuse>,
    by_place: HashMap<(Wrong, Span, Option<Span>), usize>,
}

impl Misuses {
    /// Counts one for its places.
    pub fn add(&mut self, new: Misuse) {
        let key = (new.wrong, new.first.0, new.second.map(|s| s.0));
        match self.by_place.get(&key) {
            Some(i) => self.list[*i].times += new.times,
            None => {
                self.by_place.insert(key, self.list.len());
                self.list.push(new);
            }
        }
    }

    /// Those that were seen.
    pub fn list(&self) -> &[Misuse] {
        &self.list
    }
}
