//! What a thread knew when it released something.
//!
//! Mostly nobody asks: a thread that takes a lock again and again executes fences, each of which releases all that the one before it did. So what it knew of
//! others and what it had done itself stand side by side, and are put together when somebody else looks ([`Told::settle`]). Until then the next release takes
//! the place of the last one by a few numbers.

use std::sync::Arc;

use crate::event::Thread;
use crate::known::{Known, Own, Time};

/// What a thread had done itself, and knew of its block and its warp as a whole, when it released something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Who, until when, and the fences of sequential consistency that it executed and heard of.
    pub own: Own,
    /// All that its block did until then.
    pub cta: Time,
    /// The same of its warp.
    pub warp: Time,
    /// How often it had learned something.
    pub learned: u32,
    /// It has released nothing else at this time.
    pub is_first: bool,
}

/// What a thread knew when it released something, or several of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Told {
    /// What it knew of others. Who has learned as often knew the same.
    more: Option<Arc<Known>>,
    /// What comes to that; none if nothing does.
    mark: Option<Mark>,
}

impl From<Arc<Known>> for Told {
    fn from(known: Arc<Known>) -> Told {
        Told { more: Some(known), mark: None }
    }
}

impl Told {
    /// By a thread that knows so much of others.
    pub fn new(more: Option<&Arc<Known>>, mark: Mark) -> Told {
        Told { more: more.cloned(), mark: Some(mark) }
    }

    /// What the same thread releases later takes the place of it, if it has learned nothing since. Says whether.
    #[inline]
    pub fn renew(&mut self, new: &Mark) -> bool {
        let is_same = self.mark.is_some_and(|old| (old.own.who, old.learned) == (new.own.who, new.learned));
        if is_same {
            self.mark = Some(*new);
        }
        is_same
    }

    /// Puts it together, in place.
    pub fn settle(&mut self) -> &Arc<Known> {
        if let Some(mark) = self.mark.take() {
            self.more = Some(Arc::new(with(self.more.as_deref(), &mark)));
        }
        self.more.get_or_insert_default()
    }

    /// The same of several that mostly are the same.
    pub fn settle_all<'a>(all: impl Iterator<Item = &'a mut Told>) {
        let mut last: Option<(Mark, Arc<Known>)> = None;
        for told in all {
            let Some(mark) = told.mark else { continue };
            match &last {
                Some((same, known)) if *same == mark => *told = Arc::clone(known).into(),
                _ => last = Some((mark, Arc::clone(told.settle()))),
            }
        }
    }

    /// All of it.
    pub fn whole(&self) -> Arc<Known> {
        match (&self.mark, &self.more) {
            (None, Some(known)) => Arc::clone(known),
            (None, None) => Arc::default(),
            (Some(mark), more) => Arc::new(with(more.as_deref(), mark)),
        }
    }

    /// Whether it is not put together, by another thread than one that asks.
    pub fn is_apart(&self, asks: Thread) -> bool {
        self.mark.is_some_and(|mark| mark.own.who != asks)
    }

    /// Whether it may be known to a thread that has learned nothing since a time.
    #[inline]
    pub fn is_before(&self, me: Thread, until: Time) -> bool {
        let last = match (&self.mark, &self.more) {
            (Some(mark), _) => Some((mark.own.who, mark.own.until)),
            (None, more) => more.as_ref().and_then(|more| more.last()),
        };
        last.is_none_or(|(who, time)| who == me || time <= until)
    }

    /// Whether somebody knows all of it who knows so much of others, and is one who has done something until a time.
    pub fn is_known(&self, more: Option<&Known>, own: Option<&Own>) -> bool {
        let Some(mark) = &self.mark else {
            return self.more.as_ref().is_none_or(|known| more.is_some_and(|more| more.has(known, own)));
        };
        if own.is_some_and(|own| own.has(&mark.own)) {
            return true;
        }
        let Some(more) = more else { return false };
        let Own { who, until, .. } = mark.own;
        if more.unknown(who.cta, who.warp, who.bit(), until) != 0 {
            return false;
        }
        // Who knows of a thread by itself knows all that it knew then.
        if mark.is_first && more.time_of(who) >= until && more.has_fences(self.more.as_deref(), mark.own, own) {
            return true;
        }
        more.has(&self.whole(), own)
    }

    /// Whether it says all that another one says.
    pub fn has(&self, other: &Told) -> bool {
        let own = self.mark.as_ref().map(|mark| &mark.own);
        other.is_known(self.more.as_deref(), own)
    }

    /// Adds another one.
    pub fn learn(&mut self, other: &Told) {
        if other.mark.is_some_and(|mark| self.renew_by(&mark)) || self.has(other) {
        } else if other.has(self) {
            self.clone_from(other);
        } else {
            self.settle();
            Known::learn(self.more.get_or_insert_default(), &other.whole());
        }
    }

    /// The same where that is a later one of the same thread.
    fn renew_by(&mut self, new: &Mark) -> bool {
        self.mark.is_some_and(|old| old.own.until <= new.own.until) && self.renew(new)
    }
}

/// What somebody knew of others, and what he had done.
fn with(more: Option<&Known>, mark: &Mark) -> Known {
    let mut known = more.map_or_else(Known::default, Known::clone);
    let Own { who, until, fences } = mark.own;
    known.pass(known.passed().max(fences.0));
    known.hear(known.heard().max(fences.1));
    known.learn_cta(who.cta, mark.cta);
    known.learn_warp(who.cta, who.warp, mark.warp);
    known.learn_thread(who, until);
    known.release(who, until, mark.is_first);
    known
}
