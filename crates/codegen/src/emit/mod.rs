//! From SIMT IR to CLIF.
//!
//! # The shape of emitted code
//! `dispatch` takes a warp context and goes to the block in its `state`. Each block that lanes may wait at has a *prologue*: it takes the
//! block's pending lanes; none → the next such block in order; all 32 → the *full* copy; else the *masked* copy. Full copies are straight code
//! over eight packs, without masks. Masked copies loop over the packs that have lanes and blend what they write. `advance` goes to the next context.
//!
//! # Invariants
//! - A register that is live across blocks has one home: a row (`Varying`) or one 64-bit word for each group of its shape.
//! - Homes are written at the end of a block, after all of its side effects, and read at first use.
//! - Device memory is reached only behind a check that failed into a routine.

mod atomics;
mod convert;
mod float;
mod group;
mod lanes;
mod line;
mod masked;
mod memory;
mod rep;
mod scalar;
mod scattered;
mod sreg;
mod term;
mod tree;
mod vector;
mod verify;
mod video;
mod video_simd;
mod whole;

use std::collections::{HashMap, HashSet};
use std::mem::offset_of;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, SourceLoc, Value, types};
use cranelift_frontend::FunctionBuilder;
use handloom_ir::simt::*;
use handloom_ir::types::Ty;
use handloom_plan::abi::*;
use handloom_plan::analysis::classes::Facts;
use handloom_plan::{Options, Plan};

pub use rep::Rep;

/// All lanes.
pub const FULL: i64 = 0xffff_ffff;

/// Bytes of the constant pool in front of the tables of a function: masks by nibble, lane masks.
pub const POOL_LANEMASKS: u32 = 256;
/// Bytes of the constant pool.
pub const POOL_BYTES: u32 = POOL_LANEMASKS + 5 * 128;

/// State of the emission of one function.
pub struct Emit<'a, 'b> {
    pub(crate) b: FunctionBuilder<'b>,
    /// What was decided about the function.
    pub(crate) plan: &'a Plan,
    /// The function: [`Plan::func`].
    pub(crate) f: &'a Function,
    /// What is known of it: [`Plan::facts`].
    pub(crate) facts: &'a Facts,
    /// What the code is made for: [`Plan::options`].
    pub(crate) opt: &'a Options,
    pub(crate) tables: Tables,
    pub(crate) cta: Value,
    pub(crate) pool_ptr: Value,
    pub(crate) warp: Value,
    pub(crate) full: Vec<clif::Block>,
    pub(crate) prologue: Vec<clif::Block>,
    pub(crate) dispatch: clif::Block,
    pub(crate) advance: clif::Block,
    pub(crate) idle: clif::Block,
    /// Values of registers in the copy being emitted.
    pub(crate) reps: HashMap<Reg, Rep>,
    /// Registers written in the copy being emitted.
    pub(crate) written: Vec<Reg>,
    /// The position in the copy being emitted: SIMT block and instruction.
    pub(crate) at: (usize, usize),
    pub(crate) sig: clif::SigRef,
    pub(crate) n_scratch_used: u32,
    /// Loose registers that were made canonical in the copy being emitted.
    pub(crate) cleaned: HashSet<Reg>,
    /// Vectors that were put in another order, with those they were made of.
    pub(crate) turned: HashMap<Vec<Value>, Vec<Value>>,
    /// Lanes of the masked copy being emitted.
    pub(crate) mask: Option<Value>,
    /// Values that blocks before the full copy being emitted hold in registers.
    pub(crate) held: Vec<(Reg, Rep)>,
    /// Where a full copy is given up, for each block that is.
    pub(crate) given_up: HashMap<usize, clif::Block>,
    /// Registers whose value stands in their row in the masked copy being emitted.
    pub(crate) in_row: HashSet<Reg>,
    /// Addresses whose accesses in the block being emitted were tested together.
    pub(crate) verified: HashMap<Reg, verify::Verified>,
    /// Values of the straight code being emitted.
    pub(crate) line: line::Line,
}

impl Emit<'_, '_> {
    /// The function, block and instruction being emitted, for the text of a bug.
    pub(crate) fn here(&self) -> String {
        let (b, i) = self.at;
        let block = &self.f.blocks[b];
        match block.insts.get(i) {
            Some(inst) => format!("`{}` block {b}, {:?}", self.f.name, inst.op),
            None => format!("`{}` block {b}, {:?}", self.f.name, block.term),
        }
    }

    pub(crate) fn trusted() -> MemFlagsData {
        MemFlagsData::trusted()
    }

    pub(crate) fn device() -> MemFlagsData {
        MemFlagsData::new().with_notrap()
    }

    pub(crate) fn load_warp(&mut self, ty: clif::Type, offset: usize) -> Value {
        let w = self.warp;
        self.b.ins().load(ty, Self::trusted(), w, offset as i32)
    }

    pub(crate) fn store_warp(&mut self, v: Value, offset: usize) {
        let w = self.warp;
        self.b.ins().store(Self::trusted(), v, w, offset as i32);
    }

    pub(crate) fn load_cta(&mut self, ty: clif::Type, offset: usize) -> Value {
        let c = self.cta;
        self.b.ins().load(ty, Self::trusted(), c, offset as i32)
    }

    pub(crate) fn store_cta(&mut self, v: Value, offset: usize) {
        let c = self.cta;
        self.b.ins().store(Self::trusted(), v, c, offset as i32);
    }

    pub(crate) fn i32(&mut self, v: i64) -> Value {
        self.b.ins().iconst(types::I32, v & 0xffff_ffff)
    }

    pub(crate) fn i64(&mut self, v: i64) -> Value {
        self.b.ins().iconst(types::I64, v)
    }

    pub(crate) fn pend(&self, b: usize) -> usize {
        self.tables.pend_offset as usize + 4 * b
    }

    /// Returns a reason for the current context.
    pub(crate) fn give_back(&mut self, reason: Reason) {
        let w = self.warp;
        self.store_cta(w, offset_of!(CtaCtx, cur));
        let r = self.i32(reason as i64);
        self.b.ins().return_(&[r]);
    }

    /// Leaves the code with all that belongs to the reason.
    pub(crate) fn leave(&mut self, stop: Stop<Value>) {
        let reason = stop.reason();
        for (at, word) in stop.words() {
            let v = match word {
                Word::Number(n) => self.i32(i64::from(n)),
                Word::Value(v) => v,
            };
            self.store_warp(v, at);
        }
        self.give_back(reason);
    }

    /// Calls a routine with the current context.
    pub(crate) fn routine(
        &mut self,
        r: Routine,
        site: usize,
        mask: Value,
        x: Option<Value>,
        y: Option<Value>,
    ) -> Value {
        self.drop_vectors();
        let table = self.load_cta(types::I64, offset_of!(CtaCtx, routines));
        let target = self.b.ins().load(types::I64, Self::trusted(), table, r as i32 * 8);
        let site = self.i32(site as i64);
        let zero = self.i64(0);
        let (cta, warp, sig) = (self.cta, self.warp, self.sig);
        let call =
            self.b.ins().call_indirect(sig, target, &[cta, warp, site, mask, x.unwrap_or(zero), y.unwrap_or(zero)]);
        self.b.inst_results(call)[0]
    }

    /// A block for code that is rarely run.
    pub(crate) fn cold_block(&mut self) -> clif::Block {
        let b = self.b.create_block();
        self.b.set_cold_block(b);
        b
    }

    /// Next block after `b` that lanes may be pending at, or `idle`.
    pub(crate) fn next_pendable(&self, b: usize) -> clif::Block {
        match (b + 1..self.f.blocks.len()).find(|&x| self.plan.pendable.has(x)) {
            Some(x) => self.prologue[x],
            None => self.idle,
        }
    }

    pub(crate) fn set_loc(&mut self, b: usize, i: usize) {
        self.at = (b, i);
        self.b.set_srcloc(SourceLoc::new((b as u32) << 16 | (i as u32 & 0xffff)));
    }

    /// Emits everything.
    pub(crate) fn run(&mut self, entry: clif::Block) {
        let n = self.f.blocks.len();
        self.b.switch_to_block(entry);
        self.cta = self.b.block_params(entry)[0];
        self.pool_ptr = self.b.block_params(entry)[1];
        let cur = self.load_cta(types::I64, offset_of!(CtaCtx, cur));
        let d = self.dispatch;
        self.b.ins().jump(d, &[cur.into()]);
        self.emit_dispatch();
        self.emit_advance();
        // The chain runs in order of position, so prologues and masked copies follow each other.
        for b in 0..n {
            if self.plan.pendable.has(b) {
                self.emit_prologue(b);
            }
        }
        for b in 0..n {
            if !self.plan.chained.has(b) {
                self.emit_full_tree(b);
            }
        }
        let idle = self.idle;
        self.b.switch_to_block(idle);
        let skip = self.i32(i64::from(self.tables.skip()));
        self.store_warp(skip, offset_of!(WarpCtx, state));
        self.give_back(Reason::Idle);
        self.b.seal_all_blocks();
    }

    fn emit_dispatch(&mut self) {
        let d = self.dispatch;
        self.b.switch_to_block(d);
        self.warp = self.b.block_params(d)[0];
        let waits = self.load_warp(types::I32, offset_of!(WarpCtx, wait_epoch));
        let epoch = self.load_cta(types::I32, offset_of!(CtaCtx, epoch));
        let waiting = self.b.ins().icmp(clif::condcodes::IntCC::Equal, waits, epoch);
        let go = self.b.create_block();
        let advance = self.advance;
        self.b.ins().brif(waiting, advance, &[], go, &[]);
        self.b.switch_to_block(go);
        let state = self.load_warp(types::I32, offset_of!(WarpCtx, state));
        let targets: Vec<clif::BlockCall> = (0..self.f.blocks.len())
            .map(|b| {
                let t = if self.plan.pendable.has(b) { self.prologue[b] } else { advance };
                self.b.func.dfg.block_call(t, &[])
            })
            .collect();
        let default = self.b.func.dfg.block_call(advance, &[]);
        let data = clif::JumpTableData::new(default, &targets);
        let table = self.b.create_jump_table(data);
        self.b.ins().br_table(state, table);
    }

    fn emit_advance(&mut self) {
        let a = self.advance;
        self.b.switch_to_block(a);
        let (w, step) = (self.warp, i64::from(self.tables.ctx_bytes));
        let next = self.b.ins().iadd_imm_s(w, step);
        let end = self.load_cta(types::I64, offset_of!(CtaCtx, end));
        let more = self.b.ins().icmp(clif::condcodes::IntCC::UnsignedLessThan, next, end);
        let phase = self.b.create_block();
        let d = self.dispatch;
        self.b.ins().brif(more, d, &[next.into()], phase, &[]);
        self.b.switch_to_block(phase);
        let arrived = self.load_cta(types::I32, offset_of!(CtaCtx, arrived));
        let flip = self.b.create_block();
        let check = self.b.create_block();
        let out = self.b.create_block();
        self.b.ins().brif(arrived, check, &[], out, &[]);
        self.b.switch_to_block(check);
        let retired = self.load_cta(types::I32, offset_of!(CtaCtx, retired));
        let all = self.load_cta(types::I32, offset_of!(CtaCtx, n_warps));
        let sum = self.b.ins().iadd(arrived, retired);
        let met = self.b.ins().icmp(clif::condcodes::IntCC::Equal, sum, all);
        self.b.ins().brif(met, flip, &[], out, &[]);
        self.b.switch_to_block(flip);
        let zero = self.i32(0);
        self.store_cta(zero, offset_of!(CtaCtx, arrived));
        let epoch = self.load_cta(types::I32, offset_of!(CtaCtx, epoch));
        let epoch = self.b.ins().iadd_imm_s(epoch, 1);
        self.store_cta(epoch, offset_of!(CtaCtx, epoch));
        let first = self.load_cta(types::I64, offset_of!(CtaCtx, first));
        self.b.ins().jump(d, &[first.into()]);
        self.b.switch_to_block(out);
        self.give_back(Reason::Phase);
    }

    /// Takes the pending lanes of a block and goes to the copy that fits.
    fn emit_prologue(&mut self, b: usize) {
        let p = self.prologue[b];
        self.b.switch_to_block(p);
        self.set_loc(b, 0);
        let m = self.load_warp(types::I32, self.pend(b));
        let some = self.b.create_block();
        let next = self.next_pendable(b);
        self.b.ins().brif(m, some, &[], next, &[]);
        self.b.switch_to_block(some);
        let zero = self.i32(0);
        self.store_warp(zero, self.pend(b));
        if !self.plan.chained.has(b) {
            let all = self.b.ins().icmp_imm_s(clif::condcodes::IntCC::Equal, m, FULL as u32 as i32 as i64);
            let partial = self.b.create_block();
            let full = self.full[b];
            self.b.ins().brif(all, full, &[], partial, &[]);
            self.b.switch_to_block(partial);
        }
        if self.facts.masked.has(b) && !self.opt.masked {
            self.reps.clear();
            self.mask = Some(m);
            self.held.clear();
            self.start_over(b);
            self.mask = None;
        } else if self.facts.masked.has(b) {
            self.emit_masked(b, m);
        } else {
            // Cannot happen: all lanes come here together. Told as a fault of ours if it does.
            self.leave(Stop::Trap(TrapSource::Apart { lanes: m }));
        }
    }

    pub(crate) fn ty(&self, v: Val) -> Ty {
        self.f.ty(v)
    }
}
