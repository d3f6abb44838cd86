//! What release patterns give to acquire patterns.
//!
//! The two ends must include each other in their scopes. Who may take what is therefore sorted by *domains*: what was released with a scope lies in
//! the domain of each scope up to it around the releasing thread, and who acquires takes from the domains of each scope up to his around him. Both
//! hold exactly when the scopes include each other.

use std::sync::Arc;

use handloom_ir::types::Scope;

use crate::event::Thread;
use crate::told::Told;

/// As many domains are no reason to look for those of whom none is left.
const FEW: usize = 8;

/// Threads that a scope means.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Domain {
    /// A block.
    Cta(u32),
    /// A cluster of several blocks, by number.
    Cluster(u32),
    /// All threads.
    All,
}

impl Domain {
    /// The domains of a scope around a thread, whose cluster has a number if it is more than its block, and of all smaller scopes.
    pub fn within(scope: Scope, who: Thread, cluster: Option<u32>) -> impl Iterator<Item = Domain> {
        let cta = Some(Domain::Cta(who.cta));
        let cluster = cluster.map(Domain::Cluster);
        let (middle, all) = match scope {
            Scope::Cta => (None, None),
            Scope::Cluster => (cluster, None),
            Scope::Gpu | Scope::Sys => (cluster, Some(Domain::All)),
        };
        [cta, middle, all].into_iter().flatten()
    }
}

/// What was released, by who may take it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bag {
    /// In the order of domains, of which there are few.
    domains: Vec<(Domain, Told)>,
    /// The site of a release in it and its scope, for explanations.
    pub from: Option<(u32, Scope)>,
}

impl Bag {
    /// Whether it gives nothing.
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    /// Adds what one knew who tells a domain.
    pub fn tell(&mut self, domain: Domain, told: &Told) {
        self.put_in(domain, told);
    }

    /// Adds what a thread knew when it released with a scope at a site.
    pub fn put(&mut self, told: &Told, scope: Scope, who: Thread, cluster: Option<u32>, site: u32) {
        for domain in Domain::within(scope, who, cluster) {
            self.put_in(domain, told);
        }
        self.from = Some((site, scope));
    }

    /// Whether it says already what a thread knew that releases with a scope.
    pub fn holds(&self, told: &Told, scope: Scope, who: Thread, cluster: Option<u32>) -> bool {
        Domain::within(scope, who, cluster).all(|domain| self.of(&domain).is_some_and(|there| there.has(told)))
    }

    /// Whether it says all that another one says.
    pub fn includes(&self, other: &Bag) -> bool {
        let has = |(domain, told): &(Domain, Told)| self.of(domain).is_some_and(|there| there.has(told));
        (self.from.is_some() || other.from.is_none()) && other.domains.iter().all(has)
    }

    /// Leaves what blocks told their own threads that have ended, as far as it was told to all: nobody takes it any more. It is looked at now and then.
    pub fn prune(&mut self, runs: impl Fn(u32) -> bool) {
        let n = self.domains.len();
        let Some(all) = self.of(&Domain::All).filter(|_| n >= FEW && n.is_power_of_two()).cloned() else { return };
        self.domains.retain(|(domain, told)| match domain {
            Domain::Cta(cta) => runs(*cta) || !all.has(told),
            Domain::Cluster(_) | Domain::All => true,
        });
    }

    /// Puts together what another thread released than one that asks, so that it is done once.
    pub fn settle(bag: &mut Arc<Bag>, asks: Thread) {
        if bag.all().any(|told| told.is_apart(asks)) {
            Told::settle_all(Arc::make_mut(bag).domains.iter_mut().map(|(_, told)| told));
        }
    }

    fn of(&self, domain: &Domain) -> Option<&Told> {
        self.domains.iter().find(|(d, _)| d == domain).map(|(_, told)| told)
    }

    fn put_in(&mut self, domain: Domain, told: &Told) {
        match self.domains.binary_search_by_key(&domain, |(d, _)| *d) {
            Err(place) => self.domains.insert(place, (domain, told.clone())),
            Ok(place) => self.domains[place].1.learn(told),
        }
    }

    /// Adds all of another one.
    pub fn join(&mut self, other: &Bag) {
        other.domains.iter().for_each(|(domain, told)| self.put_in(*domain, told));
        self.from = other.from.or(self.from);
    }

    /// What a thread takes that acquires with a scope.
    pub fn take(&self, scope: Scope, who: Thread, cluster: Option<u32>) -> impl Iterator<Item = &Told> {
        Domain::within(scope, who, cluster).filter_map(|domain| self.of(&domain))
    }

    /// All that somebody may take.
    pub fn all(&self) -> impl Iterator<Item = &Told> {
        self.domains.iter().map(|(_, told)| told)
    }

    /// What it cannot take.
    pub fn left(&self, scope: Scope, who: Thread, cluster: Option<u32>) -> impl Iterator<Item = &Told> {
        let mine = move |domain: &Domain| Domain::within(scope, who, cluster).any(|d| d == *domain);
        self.domains.iter().filter(move |(domain, _)| !mine(domain)).map(|(_, told)| told)
    }
}

/// What a strong write left at its location for those who read it.
#[derive(Clone, Debug)]
pub struct Message {
    /// Who wrote it.
    pub writer: Thread,
    /// Scope of the write.
    pub scope: Scope,
    /// Its site.
    pub site: u32,
    /// Bytes of the location.
    pub bytes: u8,
    /// It is an `mbarrier` object.
    pub is_barrier: bool,
    /// What it gives.
    pub bag: Arc<Bag>,
    /// Of an `mbarrier` object: what it gives to those who see that a phase has ended.
    pub done: Option<Arc<Bag>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::Known;

    #[test]
    fn scopes_must_include_each_other() {
        let who = |cta| Thread { cta, warp: 0, lane: 0 };
        let mut known = Known::default();
        known.learn_cta(0, 7);
        let known = Told::from(Arc::new(known));
        let released = |scope| {
            let mut bag = Bag::default();
            bag.put(&known, scope, who(0), Some(0), 1);
            bag
        };
        // Blocks 0 and 1 are a cluster, 2 is in another one.
        let takes =
            |release, acquire, cta: u32| released(release).take(acquire, who(cta), Some(cta / 2)).next().is_some();
        for scope in [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys] {
            assert!(takes(Scope::Cta, scope, 0) && takes(scope, Scope::Cta, 0));
            assert!(!takes(Scope::Cta, scope, 1) && !takes(scope, Scope::Cta, 1));
            assert!(!takes(Scope::Cluster, scope, 2) && !takes(scope, Scope::Cluster, 2));
        }
        assert!(takes(Scope::Cluster, Scope::Gpu, 1) && takes(Scope::Gpu, Scope::Cluster, 1));
        assert!(takes(Scope::Gpu, Scope::Sys, 2));
    }
}
