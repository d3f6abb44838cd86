//! Which edges of a branch all lanes of a warp may take together.
//!
//! A comparison of an affine integer with a uniform one is kept as an expression, and at a branch the ends of each group decide for all lanes, if they
//! agree. Ranges tell beforehand that they cannot: with 32 threads of `%tid.x` in a warp, `tid < 16` never holds in all of them. An edge that no
//! warp takes is not emitted.

use handloom_ir::simt::{Op, Pure, Term, Val};
use handloom_ir::types::{Cmp, Int, Ty};

use crate::analysis::shape::Shape;
use crate::packs::Strategy;

/// The most ops and comparisons that a predicate is kept as an expression of. One of more is made as lanes: a predicate that is used twice by the next one, and so on, would have as
/// many parts as two to the power of their number.
pub const MOST_OPS: usize = 64;

/// Whether a predicate can hold in all lanes of a warp, and in none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edges {
    /// In all lanes: the edge that is taken if it holds is one for a warp.
    pub all: bool,
    /// In none.
    pub none: bool,
}

impl Edges {
    /// Nothing is known.
    pub const BOTH: Edges = Edges { all: true, none: true };

    /// Of the opposite of a predicate.
    #[must_use]
    pub fn opposite(self) -> Edges {
        Edges { all: self.none, none: self.all }
    }

    /// Of both of two predicates.
    #[must_use]
    pub fn and(self, other: Edges) -> Edges {
        Edges { all: self.all && other.all, none: true }
    }

    /// Of either of two predicates.
    #[must_use]
    pub fn or(self, other: Edges) -> Edges {
        Edges { all: true, none: self.none && other.none }
    }

    /// Of a comparison: lanes that differ do not all stand on the same side of a constant that is near enough.
    pub fn of_comparison(cmp: Cmp, int: Int, a: &Shape, b: &Shape) -> Edges {
        let (x, y, cmp) = if b.is_uniform() { (a, b, cmp) } else { (b, a, cmp.swapped()) };
        let bits = int.bits();
        if !y.is_uniform() || bits < 32 {
            return Edges::BOTH;
        }
        match cmp {
            Cmp::Eq if x.stride != 0 => return Edges { all: false, none: true },
            Cmp::Ne if x.stride != 0 => return Edges { all: true, none: false },
            _ => {}
        }
        if y.low != y.high || !x.no_wrap(bits, int.signed) {
            return Edges::BOTH;
        }
        let shift = 64 - bits;
        let y = if int.signed { i128::from((y.low << shift) as i64 >> shift) } else { i128::from(y.low) };
        let reach = (0..x.groups()).map(|g| x.span(g)).map(|(low, high)| i128::from(high - low)).max().unwrap_or(0);
        // The highest lane is at least this, the lowest at most that.
        let (top, bottom) = (i128::from(x.low) + reach, i128::from(x.high) - reach);
        match cmp {
            Cmp::Lt => Edges { all: top < y, none: bottom >= y },
            Cmp::Le => Edges { all: top <= y, none: bottom > y },
            Cmp::Gt => Edges { all: bottom > y, none: top <= y },
            Cmp::Ge => Edges { all: bottom >= y, none: top < y },
            _ => Edges::BOTH,
        }
    }
}

impl Strategy<'_> {
    /// The edges of the branch at the end of a block, as the classes of registers decide them. An emitter that knows more of a value asks with that.
    pub fn edges(&self, b: usize) -> Edges {
        let block = &self.plan.func.blocks[b];
        match block.term {
            Term::Branch { cond, .. } => {
                self.edges_of(cond, (b, block.insts.len()), &mut { MOST_OPS }).unwrap_or(Edges::BOTH)
            }
            _ => Edges::BOTH,
        }
    }

    /// Of a predicate as it is before instruction `end` of block `b`, in the chain of full copies that the block belongs to. `None`: it is made as lanes.
    /// `left`: how many more ops and comparisons it may be made of.
    fn edges_of(&self, v: Val, (mut b, mut end): (usize, usize), left: &mut usize) -> Option<Edges> {
        *left = left.checked_sub(1)?;
        let class = |v: Val| self.plan.facts.arg(v).shape;
        if let Some(s) = class(v) {
            // One by piece is made as lanes.
            return s.is_uniform().then_some(Edges::BOTH);
        }
        let Val::Reg(r) = v else { return None };
        let (insts, i) = loop {
            let insts = &self.plan.func.blocks[b].insts;
            if let Some(i) = insts[..end].iter().rposition(|inst| inst.dst.contains(&r)) {
                break (insts, i);
            }
            b = *self.plan.facts.cfg.preds[b].first().filter(|_| self.chained.has(b))?;
            end = self.plan.func.blocks[b].insts.len();
        };
        let mut part = |k: usize| self.edges_of(insts[i].src[k], (b, i), left);
        match insts[i].op {
            Op::Pure(Pure::ICmp(cmp, int)) => {
                let (x, y) = (class(insts[i].src[0])?, class(insts[i].src[1])?);
                (x.is_uniform() || y.is_uniform()).then(|| Edges::of_comparison(cmp, int, &x, &y))
            }
            Op::Pure(Pure::Not(Ty::P)) => Some(part(0)?.opposite()),
            Op::Pure(Pure::And(Ty::P)) => Some(part(0)?.and(part(1)?)),
            Op::Pure(Pure::Or(Ty::P)) => Some(part(0)?.or(part(1)?)),
            _ => None,
        }
    }
}
