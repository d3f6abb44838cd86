//! What scalars tell of a predicate for all lanes, so that a branch needs no vectors.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::types::*;
use handloom_plan::packs::Edges;

use crate::emit::asm::Asm;
use crate::emit::ops::condition::int_cc;
use crate::emit::value::{Compare, Logic};

/// A comparison in the lowest and in the highest lane of a group.
struct Ends {
    first: Value,
    last: Value,
    /// Whether the lanes between do not wrap, if that is not known.
    ordered: Option<Value>,
}

impl Asm<'_> {
    /// Branches if scalars tell that a predicate holds in all lanes or in none. Says whether they tell of every warp, so that after this some
    /// lanes do and some do not.
    pub(crate) fn branch_if_known(&mut self, l: &Logic, possible: Edges, yes: clif::Block, no: clif::Block) -> bool {
        let mut ends = Vec::new();
        if !(possible.all || possible.none) || !self.ends(l, &mut ends) {
            return false;
        }
        if possible.none {
            let any = self.known(l, &mut ends.iter(), false);
            let some = self.b.create_block();
            self.b.ins().brif(any, some, &[], no, &[]);
            self.b.switch_to_block(some);
        }
        if possible.all {
            let all = self.known(l, &mut ends.iter(), true);
            let open = self.b.create_block();
            self.b.ins().brif(all, yes, &[], open, &[]);
            self.b.switch_to_block(open);
        }
        matches!((l, &ends[..]), (Logic::Compare(_), [e]) if e.len() == 1 && e[0].ordered.is_none())
    }

    /// What scalars tell of the comparisons of a predicate, in order. `false`: nothing of one of them.
    fn ends(&mut self, l: &Logic, out: &mut Vec<Vec<Ends>>) -> bool {
        match l {
            Logic::Uniform(v) => {
                out.push(vec![Ends { first: *v, last: *v, ordered: None }]);
                true
            }
            Logic::Not(a) => self.ends(a, out),
            Logic::And(a, b) | Logic::Or(a, b) => self.ends(a, out) && self.ends(b, out),
            Logic::Compare(c) => match self.ends_of(c) {
                Some(e) => {
                    out.push(e);
                    true
                }
                None => false,
            },
        }
    }

    /// `all`: whether a predicate is known to hold in all lanes; else, whether it may hold in any.
    fn known(&mut self, l: &Logic, ends: &mut std::slice::Iter<'_, Vec<Ends>>, all: bool) -> Value {
        match l {
            Logic::Not(a) => {
                let v = self.known(a, ends, !all);
                self.b.ins().bxor_imm_s(v, 1)
            }
            Logic::And(a, b) | Logic::Or(a, b) => {
                let (x, y) = (self.known(a, ends, all), self.known(b, ends, all));
                if matches!(l, Logic::And(..)) { self.b.ins().band(x, y) } else { self.b.ins().bor(x, y) }
            }
            Logic::Uniform(_) | Logic::Compare(_) => {
                let mut sum: Option<Value> = None;
                for e in ends.next().into_iter().flatten() {
                    let v = match (all, e.first == e.last) {
                        (_, true) => e.first,
                        (true, false) => self.b.ins().band(e.first, e.last),
                        (false, false) => self.b.ins().bor(e.first, e.last),
                    };
                    let v = match (e.ordered, all) {
                        (None, _) => v,
                        (Some(o), true) => self.b.ins().band(v, o),
                        (Some(o), false) => {
                            let wraps = self.b.ins().bxor_imm_s(o, 1);
                            self.b.ins().bor(v, wraps)
                        }
                    };
                    sum = Some(match sum {
                        None => v,
                        Some(s) if all => self.b.ins().band(s, v),
                        Some(s) => self.b.ins().bor(s, v),
                    });
                }
                match sum {
                    Some(v) => v,
                    None => self.b.ins().iconst(types::I8, 0),
                }
            }
        }
    }

    /// An ordering of an affine integer and a uniform one: the ends decide for all lanes, if they agree. One for each group.
    fn ends_of(&mut self, c: &Compare) -> Option<Vec<Ends>> {
        let (swapped, affine, other) = if c.b.0.is_uniform() { (false, &c.a, &c.b) } else { (true, &c.b, &c.a) };
        if !matches!(c.cmp, Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge) || c.int.ty == Ty::B16 {
            return None;
        }
        let (cc, le) = (int_cc(c.cmp, c.int.signed), int_cc(Cmp::Le, c.int.signed));
        let y = other.1[0];
        let mut out = Vec::new();
        for g in 0..affine.0.groups() {
            let (low, high) = affine.0.span(g);
            // Lanes so far apart pass the end of the numbers more than once, and the ends say nothing.
            let most = if c.int.ty == Ty::B32 { i64::from(u32::MAX) } else { i64::MAX };
            high.checked_sub(low).filter(|by| *by <= most)?;
            let first = self.plus(affine.1[g], low, c.int.ty);
            let last = self.plus(affine.1[g], high, c.int.ty);
            let test = |e: &mut Self, x: Value| {
                if swapped { e.b.ins().icmp(cc, y, x) } else { e.b.ins().icmp(cc, x, y) }
            };
            let (t0, t1) = (test(self, first), test(self, last));
            let straight = affine.0.no_wrap(32, c.int.signed) && c.int.ty == Ty::B32;
            let ordered = if straight { None } else { Some(self.b.ins().icmp(le, first, last)) };
            out.push(Ends { first: t0, last: t1, ordered });
        }
        Some(out)
    }
}

/// The edges that a warp may take by a predicate.
pub(crate) fn edges(l: &Logic) -> Edges {
    match l {
        Logic::Uniform(_) => Edges::BOTH,
        Logic::Not(a) => edges(a).opposite(),
        Logic::And(a, b) => edges(a).and(edges(b)),
        Logic::Or(a, b) => edges(a).or(edges(b)),
        Logic::Compare(c) => Edges::of_comparison(c.cmp, c.int, &c.a.0, &c.b.0),
    }
}
