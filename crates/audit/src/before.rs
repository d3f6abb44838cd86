//! What comes before something that a thread begins and that goes on beside it: a grid that it launches, a copy that it gives a stream.
//!
//! All that the thread did and knew when it began it comes before that; what it does later does not, and nothing that others do of which it did not know.

use std::sync::Arc;

use crate::event::{Site, Thread};
use crate::finding::Place;
use crate::footprint::Touched;
use crate::known::Known;
use crate::order::Audit;
use crate::shadow::Entry;

/// What comes before something that a thread has begun.
#[derive(Clone, Debug)]
pub struct Before {
    known: Arc<Known>,
    /// Where it was begun, and by whom.
    pub place: Place,
}

impl Audit {
    /// A thread begins something that goes on beside it, if somebody looks at races.
    pub fn begins(&mut self, who: Thread, site: Site) -> Option<Before> {
        if !self.has_races() {
            return None;
        }
        self.interrupt();
        let known = self.snapshot(who).whole();
        self.end_op();
        Some(Before { known, place: Place { site, thread: who } })
    }

    /// What of some ranges of global memory, by first byte and end, the launch touched that does not come before something that one of its threads began.
    /// To be asked when the launch is over and its [`footprint`](Self::footprint) was taken.
    pub fn touched_beside(&self, before: &Before, ranges: &[(u64, u64)]) -> Vec<Touched> {
        let is_beside = |e: &Entry| before.known.unknown(e.cta(), e.warp(), e.lanes, e.time) != 0;
        ranges.iter().flat_map(|(from, end)| self.touched_in(*from, *end, is_beside)).collect()
    }
}
