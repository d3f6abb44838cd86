//! What was found: one finding for each pair of places and class.

use std::collections::HashMap;

use handloom_ir::types::Scope;

use crate::event::{Site, Thread};

macro_rules! classes {
    ($($name:ident $word:literal $about:literal)*) => {
        /// Why two accesses are a race. One row a class.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Class { $(#[doc = $about] $name,)* }

        impl Class {
            /// All rows.
            pub const ALL: &'static [Class] = &[$(Class::$name),*];
            /// The stable word of reports.
            pub fn word(self) -> &'static str { match self { $(Class::$name => $word),* } }
            /// What it means.
            pub fn about(self) -> &'static str { match self { $(Class::$name => $about),* } }
        }
    };
}

classes! {
    ScopeTooNarrow "scope_too_narrow" "ordered by release and acquire, but the scope of one of them does not reach the other thread"
    AtomicScopes "atomic_scopes" "strong accesses to one location whose scopes do not include each other"
    MixedSize "mixed_size" "accesses that overlap in part, which nothing orders"
    MissingProxyFence "missing_proxy_fence" "a write and a later access to it through another proxy, without a proxy fence between them"
    SameWarp "same_warp" "threads of one warp, without `bar.warp.sync` between their accesses"
    SameValue "same_value" "writes of the same value, which nothing orders"
    Unordered "unordered" "accesses to one location, at least one of them a write, which nothing orders"
}

/// One side of a finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The instruction.
    pub site: Site,
    /// Who executed it.
    pub thread: Thread,
}

/// Why a release and an acquire that met did not order the threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// The release, and its scope.
    pub release: (Site, Scope),
    /// The acquire, and its scope.
    pub acquire: (Site, Scope),
}

/// A race: two places, and the first time that it was seen there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Why.
    pub class: Class,
    /// The access that came first in this run.
    pub first: Place,
    /// The other one.
    pub second: Place,
    /// Generic address of the bytes that both touched.
    pub addr: u64,
    /// How many bytes.
    pub bytes: u32,
    /// Offset in the shared memory of a block, if they lie there.
    pub shared_offset: Option<u64>,
    /// What the program tried.
    pub tried: Option<Attempt>,
    /// It would be none if `volatile` counted as the manual says.
    pub is_by_volatile: bool,
    /// How many pairs of accesses it stands for.
    pub pairs: u64,
}

/// All findings of a launch, in the order in which they were met.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    by_place: HashMap<(Class, Site, Site), usize>,
}

impl Findings {
    /// Counts a finding for its pair of places. Returns whether it is the first one there.
    pub fn add(&mut self, new: Finding) -> bool {
        let key = (new.class, new.first.site, new.second.site);
        let turned = (new.class, new.second.site, new.first.site);
        match self.by_place.get(&key).or_else(|| self.by_place.get(&turned)) {
            Some(i) => {
                self.list[*i].pairs += new.pairs;
                false
            }
            None => {
                self.by_place.insert(key, self.list.len());
                self.list.push(new);
                true
            }
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them.
    pub fn into_list(self) -> Vec<Finding> {
        self.list
    }
}
