//! One test for all accesses of a block through the same address.
//!
//! In a full copy every access of a block happens, so a program without faults passes the test of all of them together. If the test fails, nothing of
//! the block has happened yet: it starts over in code that tests each access by itself, which finds the fault or that there is none.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use handloom_ir::simt::*;
use handloom_ir::types::{Order, Scope, StateSpace, Ty};
use handloom_plan::JointTest;
use handloom_plan::abi::*;
use handloom_plan::access::{AccessClass, Kind};

use super::Emit;
use super::memory::MemOp;
use super::rep::Rep;

/// An address register whose accesses in the block were tested together.
#[derive(Clone, Debug)]
pub(crate) struct Verified {
    space: StateSpace,
    /// Bytes relative to the register that passed.
    low: i64,
    high: i64,
    align: i64,
    /// Host address that the register's lowest lane of each group stands for, and its difference to the group's base.
    at: Vec<(Value, i64)>,
}

impl Emit<'_, '_> {
    /// Tests, at the start of block `b`, the addresses that it got from other blocks.
    pub(crate) fn verify_incoming(&mut self, b: usize) {
        self.verified.clear();
        for r in self.plan.incoming_addresses(b) {
            self.verify_uses(b, 0, r);
        }
    }

    /// Tests, at the first use of an address that block `b` made, all its accesses, if nothing has happened in the block before.
    pub(crate) fn verify_at(&mut self, b: usize, i: usize) {
        let Some(Val::Reg(r)) = self.f.blocks[b].insts[i].src.first().copied() else { return };
        if self.plan.may_test_at(b, i) && !self.verified.contains_key(&r) {
            self.verify_uses(b, i, r);
        }
    }

    fn verify_uses(&mut self, b: usize, from: usize, r: Reg) {
        let Some(uses) = self.plan.joint_test(b, from, r) else { return };
        let Rep::Affine(s, base) = self.rep(Val::Reg(r)) else { return };
        if !uses.fits(&s) {
            return;
        }
        let a = uses.align;
        let inst = &self.f.blocks[b].insts[uses.inst];
        let Some(own) = AccessClass::of(inst) else { return };
        let class = AccessClass {
            kind: if uses.writes { Kind::Store } else { Kind::Load },
            bits: 8,
            count: 1,
            elements: 1,
            order: Order::Weak,
            scope: Scope::Cta,
            is_single: false,
            offset: 0,
            ..own
        };
        let mem = self.mem_op_of(inst, class);
        self.tables.mems[mem.site].op = class.op();
        let at = (0..s.groups())
            .map(|g| {
                let (low, high) = s.span(g);
                let length = high - low + uses.high - uses.low;
                let site = self.site_of_group(&mem, g);
                let mem = MemOp { site, ..mem };
                let own = class.is_own_by_lane(&s, self.facts.local_stride) && s.stride % a == 0;
                let lowest = self.verify_group(b, &mem, r, base[g], low, (length, own), &uses);
                let host = match uses.space {
                    StateSpace::Shared => {
                        let shared = self.shared_base();
                        self.b.ins().iadd(lowest, shared)
                    }
                    _ => lowest,
                };
                (host, low)
            })
            .collect();
        self.verified.insert(r, Verified { space: uses.space, low: uses.low, high: uses.high, align: a, at });
    }

    /// Tests `length` bytes from the lowest lane of a group; gives its address.
    #[allow(clippy::too_many_arguments, reason = "an address, its reach, and where the test stands")]
    fn verify_group(
        &mut self,
        b: usize,
        mem: &MemOp,
        r: Reg,
        base: Value,
        low: i64,
        (length, own): (i64, bool),
        uses: &JointTest,
    ) -> Value {
        let lane = self.moved(base, low);
        let lane = if self.f.regs[r.idx()] == Ty::B64 { lane } else { self.b.ins().uextend(types::I64, lane) };
        let first = self.moved(lane, uses.low);
        let odd = if uses.align > 1 {
            let low_bits = self.b.ins().band_imm_s(lane, uses.align - 1);
            Some(self.b.ins().icmp_imm_s(IntCC::NotEqual, low_bits, 0))
        } else {
            None
        };
        // In local memory each lane has the same bytes of its own.
        let over = if own { self.own_refused(first, uses.high - uses.low, 1) } else { self.refuse(mem, first, length) };
        let bad = match odd {
            Some(o) => self.b.ins().bor(o, over),
            None => over,
        };
        let (cold, go) = (self.cold_block(), self.b.create_block());
        let on = self.on_line();
        self.b.ins().brif(bad, cold, &[], go, &[]);
        self.b.switch_to_block(cold);
        if uses.space != StateSpace::Shared && !own {
            let one = self.i32(1);
            let len = self.i64(length);
            let ok = self.routine(Routine::Range, mem.site, one, Some(first), Some(len));
            let ok = match odd {
                Some(o) => {
                    let zero = self.i64(0);
                    self.b.ins().select(o, zero, ok)
                }
                None => ok,
            };
            let fail = self.cold_block();
            self.b.ins().brif(ok, go, &[], fail, &[]);
            self.b.switch_to_block(fail);
        }
        self.start_over(b);
        self.rejoin(go, on);
        lane
    }

    /// The addresses of an access that was tested with others of its block.
    pub(crate) fn verified_address(&mut self, mem: &MemOp) -> Option<Vec<(Value, i64)>> {
        let Val::Reg(r) = mem.class.address else { return None };
        let v = self.verified.get(&r)?.clone();
        let bytes = mem.bytes();
        let covered = v.space == mem.class.space
            && v.low <= mem.class.offset
            && mem.class.offset + bytes <= v.high
            && bytes <= v.align
            && self.mask.is_none();
        covered.then(|| v.at.iter().map(|(host, low)| (self.moved(*host, mem.class.offset), *low)).collect())
    }
}
