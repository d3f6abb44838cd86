//! What of a launch is under way: when it comes, who began it, and where [`late`](crate::late) keeps it.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use handloom_diag::Span;

/// When the results of asynchronous instructions come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum AsyncOrder {
    /// At once.
    #[default]
    Earliest,
    /// Where something waits for them.
    Latest,
    /// In between, as the seed of the launch says.
    Seed,
}

impl AsyncOrder {
    /// All of them.
    pub const ALL: [AsyncOrder; 3] = [AsyncOrder::Earliest, AsyncOrder::Latest, AsyncOrder::Seed];

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            AsyncOrder::Earliest => "earliest",
            AsyncOrder::Latest => "latest",
            AsyncOrder::Seed => "seed",
        }
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<AsyncOrder> {
        AsyncOrder::ALL.into_iter().find(|order| order.name() == name)
    }
}

/// Who began something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Who {
    /// Linear number of the CTA in the grid.
    pub cta: u64,
    /// Linear number of the thread in the CTA.
    pub thread: u32,
    /// The statement.
    pub span: Span,
    /// When, as an audit has numbered it; 0 if nobody did.
    pub begun: u32,
}

/// What of a launch is under way. A clone is the same.
#[derive(Clone, Debug)]
pub struct UnderWay(Arc<Shared>);

/// What the CTAs of a cluster have begun. Only [`late`](crate::late) knows what it is, and so the environment of a CTA need not.
type Kept = Arc<dyn Any + Send + Sync>;

#[derive(Debug)]
struct Shared {
    seed: Option<u64>,
    watches: bool,
    /// By the base of the shared memory of the first CTA of a cluster.
    kept: Mutex<BTreeMap<u64, Kept>>,
}

impl PartialEq for UnderWay {
    fn eq(&self, other: &UnderWay) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for UnderWay {}

impl UnderWay {
    /// For a launch: `None` if everything happens at once. `watches`: who accesses what before it was waited for can be asked.
    pub fn of(order: AsyncOrder, seed: u64, watches: bool) -> Option<UnderWay> {
        let seed = match order {
            AsyncOrder::Earliest => return None,
            AsyncOrder::Latest => None,
            AsyncOrder::Seed => Some(seed),
        };
        Some(UnderWay(Arc::new(Shared { seed, watches, kept: Mutex::default() })))
    }

    /// The seed, if it decides; else everything is as late as can be.
    pub(crate) fn seed(&self) -> Option<u64> {
        self.0.seed
    }

    /// Whether copies are remembered until they are waited for.
    pub(crate) fn watches(&self) -> bool {
        self.0.watches
    }

    /// What is kept for a cluster, made when it is first asked for.
    pub(crate) fn kept<T: Send + Sync + 'static>(&self, cluster: u64, make: impl FnOnce() -> T) -> Arc<T> {
        let mut all = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = Arc::clone(all.entry(cluster).or_insert_with(|| Arc::new(make())));
        kept.downcast().unwrap_or_else(|_| panic!("bug: late: a cluster keeps things of one type"))
    }
}
