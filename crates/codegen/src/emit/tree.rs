//! Full copies of blocks that follow each other.
//!
//! A block that only one other block goes to stands, in straight code, behind that block: what the one made the other finds in registers of the host.
//! Homes are then written where the tree of copies ends, where lanes part, and where a copy is given up.

use std::collections::{HashMap, HashSet};

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::InstBuilder;
use handloom_ir::simt::*;

use super::Emit;
use super::line::Line;
use super::rep::Rep;
use super::verify::Verified;

/// What is known of values at the end of a block, for each way to go on.
pub(crate) struct View {
    reps: HashMap<Reg, Rep>,
    written: Vec<Reg>,
    cleaned: HashSet<Reg>,
    held: Vec<(Reg, Rep)>,
    verified: HashMap<Reg, Verified>,
    line: Line,
}

impl Emit<'_, '_> {
    /// Emits the full copy of `head` and of the blocks that only it goes to.
    pub(crate) fn emit_full_tree(&mut self, head: usize) {
        let block = self.full[head];
        self.b.switch_to_block(block);
        self.reps.clear();
        self.written.clear();
        self.cleaned.clear();
        self.held.clear();
        self.mask = None;
        self.begin_line();
        self.full_copy(head);
        self.end_line();
    }

    fn full_copy(&mut self, b: usize) {
        self.set_loc(b, 0);
        self.verify_incoming(b);
        let mut i = 0;
        while i < self.f.blocks[b].insts.len() {
            let next = self.full_run(b, i);
            if next == i {
                self.set_loc(b, i);
                self.full_inst(b, i);
            }
            i = next.max(i + 1);
        }
        self.set_loc(b, self.f.blocks[b].insts.len());
        self.full_term(b);
    }

    /// Goes on with the full copy of `target`, here, behind that of `b`.
    fn descend(&mut self, target: usize) {
        let mut held: Vec<Reg> = self.written.clone();
        held.sort_unstable();
        held.dedup();
        self.held = held.into_iter().filter_map(|r| Some((r, self.reps.get(&r)?.clone()))).collect();
        self.full_copy(target);
    }

    /// Goes from the full copy of `b` to that of `target`.
    pub(crate) fn go_full(&mut self, b: usize, target: usize) {
        if self.plan.chained.has(target) {
            self.descend(target);
            return;
        }
        self.write_back(b);
        if target <= b {
            self.stop_check(target);
        }
        let t = self.full[target];
        self.b.ins().jump(t, &[]);
    }

    pub(crate) fn view(&self) -> View {
        View {
            reps: self.reps.clone(),
            written: self.written.clone(),
            cleaned: self.cleaned.clone(),
            held: self.held.clone(),
            verified: self.verified.clone(),
            line: self.line.clone(),
        }
    }

    /// Goes on in `block`, reached from where the view was taken, with nothing known but what was known there.
    pub(crate) fn branch_off(&mut self, block: clif::Block, from: &View) {
        self.b.switch_to_block(block);
        self.reps.clone_from(&from.reps);
        self.written.clone_from(&from.written);
        self.cleaned.clone_from(&from.cleaned);
        self.held.clone_from(&from.held);
        self.verified.clone_from(&from.verified);
        self.line.clone_from(&from.line);
        self.line.continue_at(block);
    }

    /// Writes back what lives on behind block `b`.
    pub(crate) fn write_back(&mut self, b: usize) {
        let mut regs = self.written.clone();
        regs.sort_unstable();
        regs.dedup();
        for r in regs {
            if self.facts.live.exit[b].has(r.idx())
                && let Some(rep) = self.reps.get(&r).cloned()
            {
                self.store_home(r, &rep);
            }
        }
    }
}
