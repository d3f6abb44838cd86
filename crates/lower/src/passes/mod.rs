//! Passes over the SIMT IR.
//!
//! Registers may have several definitions. A pass treats one as a *value* only if it has a single definition that dominates all uses.
//! A pass that moves or merges memory accesses touches only memory that nobody writes (`.const` and the entry's parameters) and frame slots
//! whose address is known to stay in the function; all other accesses keep their order and stay where they are, so no ordering rule can be broken (but those of
//! the matrices of joined products come before the first of these, which has nothing to do with memory).
//! Each pass wants ordered blocks ([`order_blocks`]) and takes time about linear in the instructions.

mod bits;
mod certain;
mod chains;
pub mod dce;
mod fold;
mod guards;
pub mod inline;
mod joined;
pub mod jumps;
pub mod licm;
mod ranges;
mod runs;
pub mod simplify;
pub mod split;
pub mod sroa;
mod unroll;
pub(crate) mod values;

use handloom_ir::simt::*;

pub use unroll::may_unroll;

use crate::graph::order_blocks;
use crate::yields;

/// What whoever makes code of a function does well.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Strengths {
    /// Several warps go side by side through straight code: stores under a predicate, and branches that all threads take alike, are worth more than short blocks in which lanes part.
    pub side_by_side: bool,
    /// Long code is worth its time: loops around barriers are written out where constants count their turns.
    pub unrolls: bool,
}

/// Optimises functions for launches of one shape: an entry, the first of `roots`, and what it calls, other `roots` by pointers. Functions that
/// nobody calls afterwards are left out.
pub fn optimise(funcs: &mut ByFunction<Function>, roots: &[FuncId], shape: &LaunchShape, strengths: Strengths) {
    // Loops change, so yields are taken out and put in again at the end.
    funcs.values_mut().for_each(yields::remove);
    inline::inline_calls(funcs, roots);
    funcs.values_mut().for_each(|f| optimise_function(f, shape, strengths));
}

/// The passes on one function.
pub fn optimise_function(f: &mut Function, shape: &LaunchShape, strengths: Strengths) {
    if f.blocks.is_empty() {
        return;
    }
    step("tidy", f, |f| _ = jumps::tidy(f));
    step("split_ranges", f, split::split_ranges);
    step("simplify", f, simplify::simplify);
    let mut again = jumps::tidy(f);
    if !f.slots.is_empty() {
        // Additions to a slot's address that moved into offsets would count as other uses of it.
        step("remove_dead", f, dce::remove_dead);
        step("promote_slots", f, |f| again |= sroa::promote_slots(f));
    }
    step("fold_ranges", f, |f| {
        if ranges::fold_ranges(f, shape) {
            jumps::tidy(f);
            again = true;
        }
    });
    step("predicate_stores", f, |f| {
        if strengths.side_by_side && guards::predicate_stores(f) {
            jumps::tidy(f);
            again = true;
        }
    });
    step("ask_once", f, |f| {
        if strengths.side_by_side && certain::ask_once(f, shape) {
            jumps::tidy(f);
            again = true;
        }
    });
    if again {
        find_values(f);
    }
    while strengths.unrolls && unroll::unroll(f) {
        jumps::tidy(f);
        find_values(f);
    }
    step("remove_dead", f, dce::remove_dead);
    step("hoist", f, licm::hoist);
    step("tidy", f, |f| {
        order_blocks(f);
        jumps::tidy(f);
    });
    step("join_products", f, |f| {
        if join_products(f) {
            jumps::tidy(f);
        }
    });
    step("yields", f, |f| yields::insert(f, true));
    step("renumber", f, dce::renumber);
}

/// What passes that changed blocks leave to do.
fn find_values(f: &mut Function) {
    step("split_ranges", f, split::split_ranges);
    step("simplify", f, simplify::simplify);
    jumps::tidy(f);
}

/// Joins products of a whole warp where none needs a result of another, or where each adds to the sums of the one before. Returns whether there were any.
fn join_products(f: &mut Function) -> bool {
    let runs = joined::join::<runs::Products>(f);
    joined::join::<chains::Chain>(f) || runs
}

fn step(name: &str, f: &mut Function, pass: impl FnOnce(&mut Function)) {
    pass(f);
    check(name, f);
}

/// Asserts in debug builds that a function is sound after a step.
pub(crate) fn check(step: &str, f: &Function) {
    if cfg!(debug_assertions)
        && let Err(why) = verify::verify(f)
    {
        panic!("bug: {step}: `{}`: {why}", f.name);
    }
}
