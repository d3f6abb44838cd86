//! Tuples that go from global to shared memory as they are: a load, zeros in the lanes where a condition fails, and a store, one after the other, as `cp.async` is.
//!
//! # The model
//! Where nothing is known of how the lanes of the load lie (nor those of the store, if no zeros come between), such a *move* is done by code that the function has once: it tests the addresses of the load and of the store as
//! vectors, and then goes through the lanes and copies each tuple as a whole. No vector holds an element of all lanes. What a test refuses is done as the IR says it, in
//! code after all blocks, before which nothing was read or written.

use std::mem::offset_of;

use handloom_diag::Span;
use handloom_ir::simt::{Inst, Op, Pure, Reg, Val};
use handloom_ir::types::{Order, StateSpace, Ty};
use handloom_plan::Plan;
use handloom_plan::abi::CtaCtx;
use handloom_plan::access::{AccessClass, Kind};
use iced_x86::{Code, Register};

use crate::access::{Access, Form, Limits};
use crate::asm::Mem;
use crate::emit::*;
use crate::once::{ColdMove, Move, Mover};
use crate::uses::Uses;
use crate::values::{load_code, store_code};

const R8: Register = Register::R8;
const R9: Register = Register::R9;
const R10: Register = Register::R10;
const R11: Register = Register::R11;
const RDI: Register = Register::RDI;

/// Bytes of the addresses of all lanes, behind which their offsets in shared memory lie.
const OFFSETS: i32 = 256;
/// Where the lanes that load are, behind both.
const MASK: i32 = OFFSETS + 128;
/// Lanes of a turn where all lanes copy.
const AT_ONCE: i32 = 4;

/// A tuple that is loaded or stored by a move, by its kind.
fn tuple_of(inst: &Inst, kind: Kind, space: StateSpace) -> Option<AccessClass> {
    AccessClass::of(inst).filter(|c| {
        c.kind == kind
            && c.space == space
            && c.bits == 32
            && matches!(c.count, 2 | 4)
            && c.order == Order::Weak
            && c.wants_all()
            && !c.is_single
    })
}

/// The move that begins with an instruction, if one does.
fn move_at(plan: &Plan, uses: &Uses, insts: &[Inst], load: usize) -> Option<Move> {
    let first = &insts[load];
    let from = tuple_of(first, Kind::Load, StateSpace::Global)?;
    let n = first.dst.len();
    let is_for_one = |r: &Reg| uses.count(*r) == 1;
    if plan.options.audited || n != usize::from(from.count) || !first.dst.iter().all(is_for_one) {
        return None;
    }
    let selects = insts.get(load + 1..=load + n)?;
    let has_selects = matches!(selects[0].op, Op::Pure(Pure::Select(Ty::B32)));
    let store = if has_selects { load + n + 1 } else { load + 1 };
    let last = insts.get(store)?;
    let to = tuple_of(last, Kind::Store, StateSpace::Shared)?;
    if to.count != from.count || plan.func.ty(to.address) != Ty::B32 {
        return None;
    }
    let is_stored = |regs: &mut dyn Iterator<Item = Reg>| regs.map(Val::Reg).eq(last.operands()[1..].iter().copied());
    if !has_selects {
        return (is_stored(&mut first.dst.iter().copied()) && first.guard() == last.guard()).then_some(Move {
            load,
            store,
            from,
            to,
        });
    }
    let condition = selects[0].src[0];
    let is_zeroed = |(inst, d): (&Inst, &Reg)| {
        inst.op == Op::Pure(Pure::Select(Ty::B32))
            && !inst.guarded
            && inst.src[..] == [condition, Val::Reg(*d), Val::Imm(0, Ty::B32)]
            && is_for_one(&inst.dst[0])
    };
    let is_of_both = |guard: Val, outer: Val| {
        let Val::Reg(guard) = guard else { return false };
        plan.origin(guard).is_some_and(|inst| {
            inst.op == Op::Pure(Pure::And(Ty::P))
                && (inst.src[..] == [outer, condition] || inst.src[..] == [condition, outer])
        })
    };
    let loads_where_it_holds = match (first.guard(), last.guard()) {
        (Some(guard), None) => guard == condition,
        (Some(guard), Some(outer)) => is_of_both(guard, outer),
        (None, _) => false,
    };
    let fits = selects.iter().zip(&first.dst).all(is_zeroed)
        && is_stored(&mut selects.iter().map(|s| s.dst[0]))
        && loads_where_it_holds;
    fits.then_some(Move { load, store, from, to })
}

impl Emit<'_> {
    /// Does the move that begins with an instruction of a block, if there is one; says with which it ends.
    pub(crate) fn moves_tuples(&mut self, b: usize, i: usize) -> Option<usize> {
        let insts = &self.f.blocks[b].insts;
        let found = move_at(self.plan, &self.uses, insts, i)?;
        let (load, store) = (&insts[found.load], &insts[found.store]);
        let is_found_later = |i: usize| self.indices.of.contains_key(&(b, i));
        if is_found_later(found.load) || is_found_later(found.store) {
            return None;
        }
        // A row that is stored wants what is loaded as vectors, unless zeros come between.
        let is_chosen = found.store > found.load + 1;
        if self.form_for_all(load, found.from) != Form::Scattered
            || !is_chosen && self.form_for_all(store, found.to) != Form::Scattered
        {
            return None;
        }
        let site = self.mem_site(load, &[], vec![]);
        // What nobody reads behind it needs no place.
        self.at = (b, found.store);
        self.a.of(load.span);
        self.begin_instruction();
        self.move_tuples(b, found, site);
        self.drop_held();
        self.end_instruction();
        Some(found.store)
    }

    fn move_tuples(&mut self, b: usize, m: Move, site: usize) {
        let insts = &self.f.blocks[b].insts;
        let (load, store) = (&insts[m.load], &insts[m.store]);
        let (start, back) = (self.a.label(), self.a.label());
        let lanes = self.takers(store, back);
        let access = |class, limits, short| Access {
            class,
            limits,
            lanes,
            cold: start,
            ty: Ty::B32,
            short,
            is_proven: false,
            decided: None,
        };
        let (x, y) = (access(m.from, Limits::Heap(site), false), access(m.to, Limits::Shared, true));
        for (i, limits) in [(m.load, x.limits), (m.store, y.limits)] {
            self.at = (b, i);
            self.note_limits(None, limits);
        }
        // What is read first is written first.
        let rows = self.take_scratch(MASK.cast_unsigned() + 4);
        match load.guard() {
            Some(guard) if load.guard() != store.guard() => {
                let guard = self.src(guard);
                self.bits(&guard);
                self.a.op2(Code::And_r32_rm32, EAX, LANES);
                self.store32(ctx(rows + MASK.cast_unsigned()), EAX);
            }
            _ => self.store32(ctx(rows + MASK.cast_unsigned()), lanes),
        }
        self.each_address(&x, |s, q, r| s.a.store(store_code(Ty::B64), ctx(rows + 64 * q as u32), r, ALL));
        let offsets = rows + OFFSETS.cast_unsigned();
        self.each_address(&y, |s, q, r| s.a.store(store_code(Ty::B32), ctx(offsets + 64 * q as u32), r, ALL));
        self.limits(&x);
        self.a.op2(Code::Mov_r32_rm32, EDX, lanes);
        self.a.op2(Code::Lea_r64_m, RSI, ctx(rows));
        let label = self.a.label();
        let mover = self.movers[usize::from(m.from.count == 4)].get_or_insert(Mover { label, load: x, store: y }).label;
        self.a.jump(Code::Call_rel32_64, mover);
        self.a.jump(Code::Je_rel32_64, start);
        self.a.bind(back);
        self.tell_store(store);
        self.cold_moves.push(ColdMove { start, back, block: b, of: m, site, in_part: self.in_part });
    }

    /// The code after all blocks: moves that tests refused.
    pub(crate) fn cold_moves(&mut self) -> Result<(), Refusal> {
        let f = self.f;
        for c in std::mem::take(&mut self.cold_moves) {
            self.in_part = c.in_part;
            self.a.bind(c.start);
            for (i, inst) in f.blocks[c.block].insts.iter().enumerate().take(c.of.store + 1).skip(c.of.load) {
                self.at = (c.block, i);
                self.scratch.0 = 0;
                if matches!(inst.op, Op::Pure(_)) {
                    self.instruction(c.block, inst)?;
                    continue;
                }
                let skip = self.a.label();
                let lanes = self.takers(inst, skip);
                self.memory_routine(inst, lanes, (i == c.of.load).then_some(c.site));
                self.a.bind_if_wanted(skip);
            }
            self.a.of(Span::NONE);
            self.a.jump(Code::Jmp_rel32_64, c.back);
        }
        Ok(())
    }

    /// The code of moves, by bytes of a tuple. In: `rsi`, where the addresses of all lanes lie, behind them their offsets in shared memory and the lanes that load;
    /// `edx`, the lanes that store; `r8` and `r9`, what the load is tested against. Out: flags of zero if a test failed, before anything else happened. Uses vectors 0 to
    /// 6, `k5` to `k7`; clobbers `rax`, `rcx`, `rdx`, `rdi`, `r8` to `r11`.
    pub(crate) fn move_code(&mut self) {
        for mover in self.movers.into_iter().flatten() {
            let refused = self.a.label();
            let x = Access { lanes: ECX, cold: refused, ..mover.load };
            let y = Access { lanes: EDX, cold: refused, ..mover.store };
            self.a.bind(mover.label);
            self.load32(ECX, Mem::at(RSI, MASK));
            for q in 0..4 {
                self.a.op2(load_code(Ty::B64), zmm(q), Mem::at(RSI, 64 * i32::from(q)));
            }
            self.test_vectors(&x, 4);
            self.limits(&y);
            for q in 0..2 {
                self.a.op2(load_code(Ty::B32), zmm(q), Mem::at(RSI, OFFSETS + 64 * i32::from(q)));
            }
            self.test_vectors(&y, 2);
            self.load64(R11, cta(offset_of!(CtaCtx, shared_base)));
            self.move_lanes(x.class.bytes() as i32);
            self.return_from_test(refused);
        }
    }

    /// Moves tuples of so many bytes.
    fn move_lanes(&mut self, bytes: i32) {
        let [again, some, next, done] = std::array::from_fn(|_| self.a.label());
        self.a.imm(Code::Cmp_rm32_imm8, ECX, -1);
        self.a.jump(Code::Jne_rel32_64, some);
        self.a.number(RAX, 0);
        self.a.bind(again);
        for lane in 0..AT_ONCE {
            self.load64(R9, Mem::indexed(RSI, RAX, 8, 8 * lane));
            self.load32(Register::R8D, Mem::indexed(RSI, RAX, 4, OFFSETS + 4 * lane));
            self.move_tuple(bytes);
        }
        self.a.imm(Code::Add_rm32_imm32, EAX, AT_ONCE);
        self.a.imm(Code::Cmp_rm32_imm32, EAX, 32);
        self.a.jump(Code::Jb_rel32_64, again);
        self.a.jump(Code::Jmp_rel32_64, done);
        // Who does not load takes zeros.
        self.a.bind(some);
        let zeros = self.a.bytes([0; 64]);
        self.a.op2(Code::Lea_r64_m, R10, Mem::constant(zeros, 0));
        self.a.bind(next);
        self.a.op2(Code::Tzcnt_r32_rm32, EAX, EDX);
        self.load64(R9, Mem::indexed(RSI, RAX, 8, 0));
        self.load32(Register::R8D, Mem::indexed(RSI, RAX, 4, OFFSETS));
        self.a.op2(Code::Bt_rm32_r32, ECX, EAX);
        self.a.op2(Code::Cmovae_r64_rm64, R9, R10);
        self.move_tuple(bytes);
        self.a.op2(Code::VEX_Blsr_r32_rm32, EDX, EDX);
        self.a.jump(Code::Jne_rel32_64, next);
        self.a.bind(done);
    }

    /// A tuple, from the address in `r9` to the offset in `r8`.
    fn move_tuple(&mut self, bytes: i32) {
        let to = Mem::indexed(R11, R8, 1, 0);
        if bytes == 16 && self.a.has_wide_vectors() {
            let t = xmm(zmm(0));
            self.a.op2(Code::EVEX_Vmovdqu32_xmm_k1z_xmmm128, t, Mem::at(R9, 0));
            self.a.store(Code::EVEX_Vmovdqu32_xmmm128_k1z_xmm, to, t, ALL);
            return;
        }
        for at in (0..bytes).step_by(8) {
            self.load64(RDI, Mem::at(R9, at));
            self.store64(to.behind(at), RDI);
        }
    }
}
