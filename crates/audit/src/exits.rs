//! Blocks of a cluster that end while others may still access their shared memory, which is gone then.

use crate::checks::Check;
use crate::ctas::Cta;
use crate::event::{Access, Site, Thread};
use crate::misuse::{Misuse, Wrong};
use crate::order::Audit;
use crate::shadow::Entry;

use handloom_ir::types::StateSpace;

impl Audit {
    /// A block has ended: accesses of others to its shared memory of which none of its threads knows may come later just as well.
    pub(crate) fn leaves_cluster(&mut self, number: u32, ended: &Cta) {
        if !self.checks.has(Check::Race) || !self.checks.has(Check::Sync) || !self.has_clusters() {
            return;
        }
        let (base, bytes) = ended.shared;
        self.settle_range(base, bytes);
        let mut list: Vec<Entry> = Vec::new();
        for at in (base & !3..base + bytes).step_by(4) {
            if !self.shadow.has_page(at) {
                continue;
            }
            list.clear();
            self.shadow.read(at, &mut list);
            for e in list.iter().filter(|e| e.cta() != number) {
                let me = Thread { cta: number, warp: 0, lane: 0 };
                let left = ended.clocks.iter().fold(e.lanes, |left, clock| left & clock.unordered(me, *e));
                let site = usize::try_from(e.tag().site()).ok().and_then(|i| self.sites.get(i)).copied();
                let Some(site) = site.filter(|_| left != 0) else { continue };
                let lane = u8::try_from(left.trailing_zeros() & 31).unwrap_or(0);
                self.tell_exit(&site, Thread { cta: e.cta(), warp: e.warp(), lane }, (at, at - base));
            }
        }
    }

    /// An access to shared memory: that of a block that has ended?
    pub(crate) fn looks_for_exit(&mut self, site: &Site, access: &Access) {
        if site.space != StateSpace::Shared || !self.checks.has(Check::Sync) || !self.has_clusters() {
            return;
        }
        if self.shared_offset(access.thread.cta, access.addr).is_none() {
            let of = self.ended.iter().find(|(base, bytes)| access.addr.wrapping_sub(*base) < *bytes);
            if let Some((base, _)) = of {
                self.tell_exit(site, access.thread, (access.addr, access.addr - base));
            }
        }
    }

    fn tell_exit(&mut self, site: &Site, who: Thread, object: (u64, u64)) {
        let misuse =
            Misuse { wrong: Wrong::BlockEnded, first: (site.span, who), second: None, object: Some(object), times: 1 };
        self.misuses().into_iter().for_each(|all| all.add(misuse.clone()));
    }
}
