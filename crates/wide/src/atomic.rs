//! Atomics on integers of 32 and 64 bits, and sums of floats, of 16 bits and pairs of them too, without a call: lane by lane in ascending order, or as one where all lanes
//! name one address and nobody wants the old value.
//!
//! Shared memory is that of one host thread: a plain read and write is atomic there. Elsewhere the host's locked instructions are, which also order all
//! accesses. A generic address that passes the test of the heap is one to global memory. All lanes are tested before the first has an effect. Folding
//! is sound: that the lanes of a warp come one directly after the other is one of the orders that the model allows.

use std::mem::offset_of;

use handloom_ir::simt::{FMode, Inst, Pure, Reg, Val};
use handloom_ir::types::{AtomOp, Float, Int, Order, Rounding, ScalarType, StateSpace, Ty};
use handloom_plan::Plan;
use handloom_plan::abi::{CtaCtx, Loc};
use handloom_plan::access::{AccessClass, Kind};
use iced_x86::{Code, Register};

use crate::access::{Access, Limits};
use crate::alloc::{Place, n_parts};
use crate::asm::{Mem, Out, low, low32};
use crate::emit::*;
use crate::half::Half;
use crate::table::simple;
use crate::values::{At, Src, by_width, is_wide, load_code, store_code};

const RDI: Register = Register::RDI;
const R8: Register = Register::R8;
const R9: Register = Register::R9;
const R10: Register = Register::R10;
const R11: Register = Register::R11;

/// An operation on the words of a type.
#[derive(Clone, Copy)]
struct Words {
    op: AtomOp,
    ty: ScalarType,
    /// The memory is that of one host thread.
    is_private: bool,
    /// Somebody wants to know whether memory changed.
    tells: bool,
    /// It orders nothing but itself.
    is_relaxed: bool,
}

impl Words {
    fn is_float(self) -> bool {
        Float::of(self.ty).is_some()
    }

    /// Bytes of an element of a row of such words.
    fn bytes_in_row(self) -> u32 {
        if self.is_wide() { 8 } else { 4 }
    }

    fn is_wide(self) -> bool {
        self.ty.bits() == 64
    }

    /// A register at the width of the words.
    fn of(self, r: Register) -> Register {
        if self.is_wide() { r } else { low32(r) }
    }

    fn pick(self, narrow: Code, wide: Code) -> Code {
        if self.is_wide() { wide } else { narrow }
    }

    /// Sums of `.f32` in global memory flush.
    fn flushes(self) -> bool {
        self.ty == ScalarType::F32 && !self.is_private
    }

    /// The instruction that does it to memory, if nobody wants the old value.
    fn to_memory(self) -> Option<Code> {
        if self.is_float() || self.tells {
            return None;
        }
        Some(match self.op {
            AtomOp::Add => self.pick(Code::Add_rm32_r32, Code::Add_rm64_r64),
            AtomOp::And => self.pick(Code::And_rm32_r32, Code::And_rm64_r64),
            AtomOp::Or => self.pick(Code::Or_rm32_r32, Code::Or_rm64_r64),
            AtomOp::Xor => self.pick(Code::Xor_rm32_r32, Code::Xor_rm64_r64),
            _ => return None,
        })
    }

    /// The op that makes one value of those of all lanes, and a value that changes nothing.
    fn fold(self) -> Option<(Pure, u64)> {
        let ty = if self.is_wide() { Ty::B64 } else { Ty::B32 };
        if self.is_float() { None } else { fold(self.op, Int { ty, signed: self.ty.is_signed() }) }
    }
}

/// The op that makes one value of those of all lanes, as integers, and a value that changes nothing.
pub(crate) fn fold(op: AtomOp, int: Int) -> Option<(Pure, u64)> {
    let ty = int.ty;
    let (least, most) = if int.signed { (1 << (ty.bits() - 1), ty.mask() >> 1) } else { (0, ty.mask()) };
    Some(match op {
        AtomOp::Add => (Pure::Add(ty), 0),
        AtomOp::And => (Pure::And(ty), ty.mask()),
        AtomOp::Or => (Pure::Or(ty), 0),
        AtomOp::Xor => (Pure::Xor(ty), 0),
        AtomOp::Min => (Pure::Min(int), most),
        AtomOp::Max => (Pure::Max(int), least),
        AtomOp::Exch | AtomOp::Cas | AtomOp::Inc | AtomOp::Dec | AtomOp::Step => return None,
    })
}

/// Whether an atomic is done here.
pub(crate) fn is_inline(class: &AccessClass, plan: &Plan) -> bool {
    use ScalarType::{B32, B64, BF16, BF16x2, F16, F16x2, F32, F64, S32, S64, U32, U64};
    let Kind::Atomic(op, ty) = class.kind else { return false };
    let known = match ty {
        B32 | U32 | S32 | B64 | U64 | S64 => op != AtomOp::Step,
        F16 | BF16 | F16x2 | BF16x2 | F32 | F64 => op == AtomOp::Add,
        _ => false,
    };
    let reached = match class.space {
        StateSpace::Shared => !plan.options.cluster,
        StateSpace::Global | StateSpace::Generic => true,
        _ => false,
    };
    known && reached && class.count == 1
}

impl Emit<'_> {
    fn words_of(&self, x: &Access) -> Words {
        let Kind::Atomic(op, ty) = x.class.kind else { panic!("{:?} is no atomic", x.class) };
        let (is_private, tells) = (x.class.space == StateSpace::Shared, self.plan.tells_dirty);
        Words { op, ty, is_private, tells, is_relaxed: x.class.order == Order::Relaxed }
    }

    /// Whether an atomic is one operation for all lanes.
    pub(crate) fn is_folded(&self, inst: &Inst, x: &Access) -> bool {
        let alike = self.shape(x.class.address).is_some_and(|s| s.is_uniform());
        let w = self.words_of(x);
        alike && inst.dst.is_empty() && (w.fold().is_some() || w.is_float())
    }

    /// All lanes at one address.
    pub(crate) fn folded_atomic(&mut self, inst: &Inst, x: &Access) {
        let w = self.words_of(x);
        if x.limits != Limits::Safe {
            self.lane_address(x, 0);
            self.limits(x);
            self.test(x, RAX, false);
        }
        let s = self.clean_src(inst.src[1]);
        let Some((op, neutral)) = w.fold() else {
            self.folded_sum(x, w, &s);
            return;
        };
        self.reduced(&s, op, neutral, x.lanes);
        self.a.op2(Code::Mov_r64_rm64, RSI, RAX);
        self.one_address(x);
        match w.to_memory() {
            Some(code) => self.a.store_locked(code, Mem::at(R9, 0), w.of(RSI), !w.is_private),
            None => self.one_word(w, false),
        }
    }

    /// The host address of lane 0, in `r9`.
    fn one_address(&mut self, x: &Access) {
        self.lane_address(x, 0);
        self.host(x, RAX);
        self.a.op2(Code::Mov_r64_rm64, R9, RAX);
    }

    /// The values of some lanes made one by an op, in `rax`; others count as `neutral`. Uses vectors 0 to 5, `k5`.
    pub(crate) fn reduced(&mut self, s: &Src, op: Pure, neutral: u64, lanes: Register) {
        let ty = op.results().0;
        let Some(code) = simple(op).map(|c| by_width(ty, c.narrow, c.wide)) else { panic!("{op:?} is no instruction") };
        let n = n_parts(ty);
        let (sum, other) = (zmm(4), zmm(5));
        for q in 0..n {
            let mut part = self.reg(s, q, 0);
            let mask = self.lanes_mask(lanes, ty, q);
            if mask != ALL {
                let (to, c) = (zmm(1), self.constant(ty, neutral));
                self.a.op2(load_code(ty), to, c);
                self.a.op2(load_code(ty), Out::masked(to, mask), part);
                part = to;
            }
            if q == 0 {
                self.a.op2(load_code(ty), sum, part);
            } else {
                self.a.op3(code, sum, sum, part);
            }
        }
        // Halves of what is left.
        for order in [0x4e, 0xb1] {
            self.a.op3i(Code::EVEX_Vshufi64x2_zmm_k1z_zmm_zmmm512b64_imm8, other, sum, sum, order);
            self.a.op3(code, sum, sum, other);
        }
        let orders: &[u32] = if is_wide(ty) { &[0x4e] } else { &[0x4e, 0xb1] };
        for order in orders {
            self.a.op2i(Code::EVEX_Vpshufd_zmm_k1z_zmmm512b32_imm8, other, sum, *order);
            self.a.op3(code, sum, sum, other);
        }
        if is_wide(ty) {
            self.a.op2(Code::EVEX_Vmovq_rm64_xmm, RAX, xmm(sum));
        } else {
            self.a.op2(Code::EVEX_Vmovd_rm32_xmm, EAX, xmm(sum));
        }
    }

    /// A sum of floats at one address, in the order of lanes, as one read and one write.
    fn folded_sum(&mut self, x: &Access, w: Words, s: &Src) {
        let row = self.take_scratch(256);
        self.put_row(s, row);
        self.one_address(x);
        let (start, again) = (self.a.label(), self.a.label());
        self.read_word(w);
        self.a.bind(start);
        self.a.op2(Code::Mov_r64_rm64, R8, RAX);
        self.a.op2(Code::Mov_r32_rm32, ECX, x.lanes);
        self.a.bind(again);
        self.a.op2(Code::Tzcnt_r32_rm32, EDX, ECX);
        self.operand(w, row, RSI);
        self.sum(w);
        self.a.op2(Code::VEX_Blsr_r32_rm32, ECX, ECX);
        self.a.jump(Code::Jne_rel32_64, again);
        if w.is_private {
            self.write_word(w);
        } else {
            self.exchange_word(w);
            self.a.jump(Code::Jne_rel32_64, start);
        }
        self.tell_if_changed(w);
    }

    /// The word at `r9`, to `rax`.
    fn read_word(&mut self, w: Words) {
        let narrow = if w.ty.bits() == 16 { Code::Movzx_r32_rm16 } else { Code::Mov_r32_rm32 };
        self.a.op2(w.pick(narrow, Code::Mov_r64_rm64), w.of(RAX), Mem::at(R9, 0));
    }

    /// The word in `r8`, to memory at `r9`.
    fn write_word(&mut self, w: Words) {
        let (code, bits) = match w.ty.bits() {
            16 => (Code::Mov_rm16_r16, 16),
            32 => (Code::Mov_rm32_r32, 32),
            _ => (Code::Mov_rm64_r64, 64),
        };
        self.a.store(code, Mem::at(R9, 0), low(R8, bits), ALL);
    }

    /// The same if the one in `rax` is still there; else that one is in `rax`, and the flags say so.
    fn exchange_word(&mut self, w: Words) {
        let (code, bits) = match w.ty.bits() {
            16 => (Code::Cmpxchg_rm16_r16, 16),
            32 => (Code::Cmpxchg_rm32_r32, 32),
            _ => (Code::Cmpxchg_rm64_r64, 64),
        };
        self.a.store_locked(code, Mem::at(R9, 0), low(R8, bits), true);
    }

    /// The lane of a row whose number is in `edx`.
    fn operand(&mut self, w: Words, row: u32, to: Register) {
        let m = Mem::indexed(WARP, RDX, w.bytes_in_row(), row.cast_signed());
        self.a.op2(w.pick(Code::Mov_r32_rm32, Code::Mov_r64_rm64), w.of(to), m);
    }

    /// Lane by lane: addresses are in vectors 0 to `n`, the base of the space in `r11`.
    pub(crate) fn atomics(&mut self, inst: &Inst, x: &Access, n: usize) {
        let w = self.words_of(x);
        let simple = w.to_memory().filter(|_| inst.dst.is_empty());
        // One value for all lanes stays in a register.
        let is_alike = simple.is_some() && self.shape(inst.operands()[1]).is_some_and(|s| s.is_uniform());
        // Where every lane takes part, each is known.
        let is_known = !self.is_of_part(x);
        if let Some(code) = simple.filter(|_| is_alike && is_known && x.short && self.a.has_wide_vectors()) {
            self.lane_value(inst.operands()[1], 0, RSI);
            self.words_of_vectors(code, w, n);
            return;
        }
        let (addresses, rows) = if is_alike {
            let addresses = self.lane_addresses(x, n);
            self.lane_value(inst.operands()[1], 0, RSI);
            (addresses, Vec::new())
        } else {
            self.lane_rows(inst, x, n)
        };
        let result = inst.dst.first().map(|d| (*d, self.take_scratch(256)));
        let in_order = |e: &mut Self| {
            if x.short {
                e.load32(low32(R9), Mem::indexed(WARP, RDX, 4, addresses.cast_signed()));
            } else {
                e.load64(R9, Mem::indexed(WARP, RDX, 8, addresses.cast_signed()));
            }
            e.a.op2(Code::Add_r64_rm64, R9, R11);
        };
        let done = self.a.label();
        if let Some(code) = simple {
            let some = self.a.label();
            if !is_known {
                self.a.imm(Code::Cmp_rm32_imm32, x.lanes, -1);
                self.a.jump(Code::Jne_rel32_64, some);
            }
            for lane in 0..32 {
                let (size, word) = (if x.short { 4 } else { 8 }, w.ty.bits() / 8);
                let at = ctx(addresses + size * lane);
                if x.short {
                    self.load32(EAX, at)
                } else {
                    self.load64(RAX, at)
                }
                if !is_alike {
                    let value = ctx(rows[0] + word * lane);
                    self.a.op2(w.pick(Code::Mov_r32_rm32, Code::Mov_r64_rm64), w.of(RSI), value);
                }
                self.a.store_locked(code, Mem::indexed(R11, RAX, 1, 0), w.of(RSI), !w.is_private);
            }
            if is_known {
                self.a.bind(done);
                return;
            }
            self.a.jump(Code::Jmp_rel32_64, done);
            self.a.bind(some);
        }
        if w.is_float() && result.is_none() && !w.is_private {
            self.sums_of_runs(x, w, addresses, rows[0]);
        } else {
            self.each_word(x, w, &rows, result, in_order);
        }
        self.a.bind(done);
    }

    /// Sums of floats lane by lane, those of lanes one after the other with one address as one read and one write, as in [`folded_sum`](Self::folded_sum). Host addresses of
    /// 64 bits are in a row.
    fn sums_of_runs(&mut self, x: &Access, w: Words, addresses: u32, row: u32) {
        let [run, again, out, done] = std::array::from_fn(|_| self.a.label());
        let address = Mem::indexed(WARP, RDX, 8, addresses.cast_signed());
        self.a.op2(Code::Mov_r32_rm32, ECX, x.lanes);
        self.a.bind(run);
        self.a.op2(Code::Mov_r32_rm32, low32(RDI), ECX);
        self.a.op2(Code::Tzcnt_r32_rm32, EDX, ECX);
        self.load64(R9, address);
        self.read_word(w);
        self.a.op2(Code::Mov_r64_rm64, R8, RAX);
        self.a.bind(again);
        self.operand(w, row, RSI);
        self.sum(w);
        self.a.op2(Code::VEX_Blsr_r32_rm32, ECX, ECX);
        self.a.op2(Code::Tzcnt_r32_rm32, EDX, ECX);
        self.a.jump(Code::Jb_rel32_64, out);
        self.a.op2(Code::Cmp_r64_rm64, R9, address);
        self.a.jump(Code::Je_rel32_64, again);
        self.a.bind(out);
        self.exchange_word(w);
        self.a.jump(Code::Je_rel32_64, done);
        // Another thread wrote in between: the same lanes once more.
        self.a.op2(Code::Mov_r32_rm32, ECX, low32(RDI));
        self.a.jump(Code::Jmp_rel32_64, run);
        self.a.bind(done);
        self.tell_if_changed(w);
        self.a.op2(Code::Test_rm32_r32, ECX, ECX);
        self.a.jump(Code::Jne_rel32_64, run);
    }

    /// Changes the words of all lanes by `rsi`, each at an offset of 32 bits in vectors 0 to `n` from `r11`. Offsets that go through memory wait for their store.
    fn words_of_vectors(&mut self, code: Code, w: Words, n: usize) {
        for v in 0..n as u8 {
            for quarter in 0..4 {
                let mut four = xmm(zmm(v));
                if quarter > 0 {
                    four = xmm(zmm(4));
                    self.a.op2i(Code::EVEX_Vextracti32x4_xmmm128_k1z_zmm_imm8, four, zmm(v), quarter);
                }
                self.a.op2(Code::EVEX_Vmovq_rm64_xmm, RAX, four);
                self.a.op2i(Code::EVEX_Vpextrq_rm64_xmm_imm8, RDX, four, 1);
                for pair in [RAX, RDX] {
                    self.a.op2(Code::Mov_r32_rm32, ECX, low32(pair));
                    self.a.imm8(Code::Shr_rm64_imm8, pair, 32);
                    for at in [RCX, pair] {
                        self.a.store_locked(code, Mem::indexed(R11, at, 1, 0), w.of(RSI), !w.is_private);
                    }
                }
            }
        }
    }

    /// Lane by lane at one address, whose old values somebody wants, or of an operation that does not fold.
    pub(crate) fn atomics_at_one(&mut self, inst: &Inst, x: &Access) {
        let w = self.words_of(x);
        if x.limits != Limits::Safe {
            self.lane_address(x, 0);
            self.limits(x);
            self.test(x, RAX, false);
        }
        if let (AtomOp::Add, [d]) = (w.op, &inst.dst[..])
            && !w.is_float()
            && self.a.has_wide_vectors()
            && self.shape(inst.operands()[1]).is_some_and(|s| s.is_uniform())
        {
            self.counted_up(*d, inst.operands()[1], x, w);
            return;
        }
        let values = &inst.operands()[1..];
        let rows: Vec<u32> = values.iter().map(|_| self.take_scratch(256)).collect();
        for (at, v) in rows.iter().zip(values) {
            let s = self.clean_src(*v);
            self.put_row(&s, *at);
        }
        let result = inst.dst.first().map(|d| (*d, self.take_scratch(256)));
        self.one_address(x);
        self.each_word(x, w, &rows, result, |_| {});
    }

    /// All lanes that take part add the same to one word, as to a counter: one read and one write, after which each finds the sum as the lanes before it have left it.
    fn counted_up(&mut self, d: Reg, by: Val, x: &Access, w: Words) {
        let ty = if w.is_wide() { Ty::B64 } else { Ty::B32 };
        self.one_address(x);
        self.lane_value(by, 0, RSI);
        self.a.op2(Code::Popcnt_r32_rm32, EDX, x.lanes);
        self.a.op2(Code::Imul_r64_rm64, RDX, RSI);
        if w.is_private {
            self.read_word(w);
        } else {
            self.a.op2(Code::Mov_r64_rm64, RAX, RDX);
            self.a.store_locked(w.pick(Code::Xadd_rm32_r32, Code::Xadd_rm64_r64), Mem::at(R9, 0), w.of(RAX), true);
        }
        if w.is_private || w.tells {
            self.a.op2(Code::Mov_r64_rm64, R8, RDX);
            self.a.op2(Code::Add_r64_rm64, R8, RAX);
        }
        if w.is_private {
            self.write_word(w);
        }
        self.tell_if_changed(w);
        let (old, step, rank) = (zmm(4), zmm(5), zmm(6));
        let spread = w.pick(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, Code::EVEX_Vpbroadcastq_zmm_k1z_r64);
        self.a.op2(spread, old, w.of(RAX));
        self.a.op2(spread, step, w.of(RSI));
        let row = self.take_scratch(256);
        let n = n_parts(ty);
        let (lanes, add) =
            (32 / n, w.pick(Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64));
        for q in 0..n {
            if self.is_of_part(x) {
                let numbers = self.lane_numbers(ty, 0);
                self.a.op2(load_code(ty), zmm(0), numbers);
                let mask = self.lanes_mask(x.lanes, ty, q);
                let expand = w.pick(Code::EVEX_Vpexpandd_zmm_k1z_zmmm512, Code::EVEX_Vpexpandq_zmm_k1z_zmmm512);
                self.a.op2(expand, Out::masked(rank, mask), zmm(0));
                if q > 0 {
                    // So many are before this part.
                    self.a.op2(Code::Mov_r32_rm32, EAX, x.lanes);
                    self.a.imm(Code::And_rm32_imm32, EAX, (1 << (lanes * q)) - 1);
                    self.a.op2(Code::Popcnt_r32_rm32, EAX, EAX);
                    self.a.op2(spread, zmm(0), w.of(RAX));
                    self.a.op3(add, rank, rank, zmm(0));
                }
            } else {
                let numbers = self.lane_numbers(ty, q);
                self.a.op2(load_code(ty), rank, numbers);
            }
            let times = w.pick(Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64);
            self.a.op3(times, rank, rank, step);
            self.a.op3(add, rank, rank, old);
            self.a.store(store_code(ty), ctx(row + 64 * q as u32), rank, ALL);
        }
        self.take_result(d, if w.is_wide() { Loc::Row64(row) } else { Loc::Row32(row) }, x.lanes);
    }

    /// Goes through the lanes that take part, in ascending order. `address` leaves in `r9` where the lane is whose number is in `edx`.
    fn each_word(
        &mut self,
        x: &Access,
        w: Words,
        rows: &[u32],
        result: Option<(Reg, u32)>,
        address: impl Fn(&mut Self),
    ) {
        let again = self.a.label();
        self.a.op2(Code::Mov_r32_rm32, ECX, x.lanes);
        self.a.bind(again);
        self.a.op2(Code::Tzcnt_r32_rm32, EDX, ECX);
        address(self);
        for (row, to) in rows.iter().zip([RSI, RDI]) {
            self.operand(w, *row, to);
        }
        match w.to_memory().filter(|_| result.is_none()) {
            Some(code) => self.a.store_locked(code, Mem::at(R9, 0), w.of(RSI), !w.is_private),
            None => self.one_word(w, result.is_some()),
        }
        if let Some((_, row)) = result {
            let m = Mem::indexed(WARP, RDX, w.bytes_in_row(), row.cast_signed());
            self.a.store(w.pick(Code::Mov_rm32_r32, Code::Mov_rm64_r64), m, w.of(RAX), ALL);
        }
        self.a.op2(Code::VEX_Blsr_r32_rm32, ECX, ECX);
        self.a.jump(Code::Jne_rel32_64, again);
        if let Some((d, row)) = result {
            self.take_result(d, if w.is_wide() { Loc::Row64(row) } else { Loc::Row32(row) }, x.lanes);
        }
    }

    /// One word at `r9` with the operands in `rsi` and `rdi`; the old value in `rax`. Clobbers `r8`, and what [`sum`](Self::sum) does.
    fn one_word(&mut self, w: Words, wants_old: bool) {
        let m = Mem::at(R9, 0);
        if w.is_private {
            self.read_word(w);
            self.new_word(w);
            self.write_word(w);
            self.tell_if_changed(w);
            return;
        }
        match w.op {
            AtomOp::Cas => {
                self.a.op2(Code::Mov_r64_rm64, RAX, RSI);
                self.a.op2(Code::Mov_r64_rm64, R8, RDI);
                self.exchange_word(w);
                if w.tells {
                    // Where they were not equal, nothing was written.
                    self.a.op2(Code::Cmovne_r64_rm64, R8, RAX);
                    self.tell_if_changed(w);
                }
            }
            AtomOp::Exch => {
                self.a.op2(Code::Mov_r64_rm64, RAX, RSI);
                // Locked without a prefix.
                self.a.store(w.pick(Code::Xchg_rm32_r32, Code::Xchg_rm64_r64), m, w.of(RAX), ALL);
                self.a.op2(Code::Mov_r64_rm64, R8, RSI);
                self.tell_if_changed(w);
            }
            AtomOp::Add if !w.is_float() && wants_old && !w.tells => {
                self.a.op2(Code::Mov_r64_rm64, RAX, RSI);
                self.a.store_locked(w.pick(Code::Xadd_rm32_r32, Code::Xadd_rm64_r64), m, w.of(RAX), true);
            }
            _ => {
                let (again, stays) = (self.a.label(), self.a.label());
                self.read_word(w);
                self.a.bind(again);
                self.new_word(w);
                if w.is_relaxed && matches!(w.op, AtomOp::Min | AtomOp::Max) {
                    // What is nearer already stays, mostly: a read is enough.
                    self.a.op2(w.pick(Code::Cmp_r32_rm32, Code::Cmp_r64_rm64), w.of(R8), w.of(RAX));
                    self.a.jump(Code::Je_rel32_64, stays);
                }
                self.exchange_word(w);
                self.a.jump(Code::Jne_rel32_64, again);
                self.tell_if_changed(w);
                self.a.bind_if_wanted(stays);
            }
        }
    }

    /// Says that memory changed if the new value in `r8` is not the old one in `rax`.
    fn tell_if_changed(&mut self, w: Words) {
        if !w.tells {
            return;
        }
        let same = self.a.label();
        self.a.op2(w.pick(Code::Cmp_r32_rm32, Code::Cmp_r64_rm64), w.of(R8), w.of(RAX));
        self.a.jump(Code::Je_rel32_64, same);
        self.store_number(cta(offset_of!(CtaCtx, dirty)), 1);
        self.a.bind(same);
    }

    /// The new value in `r8` of the old one in `rax` and the operands in `rsi` and `rdi`.
    fn new_word(&mut self, w: Words) {
        let [new, old, x, y, spare] = [R8, RAX, RSI, RDI, R10].map(|r| w.of(r));
        let compare = w.pick(Code::Cmp_r32_rm32, Code::Cmp_r64_rm64);
        let by_one = |e: &mut Self, by| e.a.op2(w.pick(Code::Lea_r32_m, Code::Lea_r64_m), new, Mem::at(RAX, by));
        match w.op {
            AtomOp::Add if w.is_float() => {
                self.a.op2(Code::Mov_r64_rm64, R8, RAX);
                self.sum(w);
            }
            AtomOp::Add | AtomOp::And | AtomOp::Or | AtomOp::Xor => {
                self.a.op2(Code::Mov_r64_rm64, R8, RAX);
                let code = match w.op {
                    AtomOp::Add => w.pick(Code::Add_r32_rm32, Code::Add_r64_rm64),
                    AtomOp::And => w.pick(Code::And_r32_rm32, Code::And_r64_rm64),
                    AtomOp::Or => w.pick(Code::Or_r32_rm32, Code::Or_r64_rm64),
                    _ => w.pick(Code::Xor_r32_rm32, Code::Xor_r64_rm64),
                };
                self.a.op2(code, new, x);
            }
            AtomOp::Exch => self.a.op2(Code::Mov_r64_rm64, R8, RSI),
            AtomOp::Min | AtomOp::Max => {
                self.a.op2(Code::Mov_r64_rm64, R8, RSI);
                self.a.op2(compare, old, x);
                // The old value stays where it is less, or more.
                let code = match (w.op == AtomOp::Max, w.ty.is_signed()) {
                    (false, true) => Code::Cmovl_r64_rm64,
                    (true, true) => Code::Cmovg_r64_rm64,
                    (false, false) => Code::Cmovb_r64_rm64,
                    (true, false) => Code::Cmova_r64_rm64,
                };
                self.a.op2(code, R8, RAX);
            }
            AtomOp::Cas => {
                self.a.op2(Code::Mov_r64_rm64, R8, RDI);
                self.a.op2(compare, old, x);
                self.a.op2(Code::Cmovne_r64_rm64, R8, RAX);
            }
            AtomOp::Inc => {
                by_one(self, 1);
                self.a.number(R10, 0);
                self.a.op2(compare, old, x);
                self.a.op2(w.pick(Code::Cmovae_r32_rm32, Code::Cmovae_r64_rm64), new, spare);
            }
            AtomOp::Dec => {
                by_one(self, -1);
                self.a.op2(compare, old, x);
                let code = w.pick(Code::Cmova_r32_rm32, Code::Cmova_r64_rm64);
                self.a.op2(code, new, x);
                self.a.op2(w.pick(Code::Test_rm32_r32, Code::Test_rm64_r64), old, old);
                self.a.op2(w.pick(Code::Cmove_r32_rm32, Code::Cmove_r64_rm64), new, x);
            }
            AtomOp::Step => panic!("{:?} of {y:?} has no code here", w.op),
        }
    }

    /// Adds the float in `rsi` to the one in `r8`. Clobbers `rsi`, `r10`, vectors 4 and 5; of floats of 16 bits vectors 0 to 7, `k5` to `k7`.
    fn sum(&mut self, w: Words) {
        if let Some(ty) = Float::of(w.ty).filter(|ty| Half::of(*ty).is_some()) {
            let mode = FMode { ty, round: Rounding::Nearest, ftz: false, sat: false, relu: false };
            let src = [(0, R8), (1, RSI)].map(|(i, word)| {
                self.a.op2(Code::EVEX_Vmovd_xmm_rm32, xmm(zmm(i)), low32(word));
                Src::new(At::Given(zmm(i)), Ty::B32)
            });
            self.half_op(Pure::FAdd(mode), 0, &src, zmm(4).into());
            self.a.op2(Code::EVEX_Vmovd_rm32_xmm, low32(R8), xmm(zmm(4)));
            return;
        }
        let (a, b) = (xmm(zmm(4)), xmm(zmm(5)));
        if w.flushes() {
            self.flush_word(R8);
            self.flush_word(RSI);
        }
        let into = w.pick(Code::EVEX_Vmovd_xmm_rm32, Code::EVEX_Vmovq_xmm_rm64);
        self.a.op2(into, a, w.of(R8));
        self.a.op2(into, b, w.of(RSI));
        self.a.op3(w.pick(Code::VEX_Vaddss_xmm_xmm_xmmm32, Code::VEX_Vaddsd_xmm_xmm_xmmm64), a, a, b);
        self.a.op2(w.pick(Code::EVEX_Vmovd_rm32_xmm, Code::EVEX_Vmovq_rm64_xmm), w.of(R8), a);
        self.a.number(R10, if w.is_wide() { u64::MAX >> 1 } else { 0x7fff_ffff });
        self.a.op2(w.pick(Code::VEX_Vucomiss_xmm_xmmm32, Code::VEX_Vucomisd_xmm_xmmm64), a, a);
        self.a.op2(Code::Cmovp_r64_rm64, R8, R10);
        if w.flushes() {
            self.flush_word(R8);
        }
    }

    /// Makes a subnormal `.f32` zero of its sign. Clobbers `r10`.
    fn flush_word(&mut self, r: Register) {
        let r = low32(r);
        self.a.op2(Code::Mov_r32_rm32, low32(R10), r);
        self.a.imm(Code::And_rm32_imm32, low32(R10), i32::MIN);
        self.a.imm(Code::Test_rm32_imm32, r, 0x7f80_0000);
        self.a.op2(Code::Cmove_r32_rm32, r, low32(R10));
    }

    /// Whether results are where code here leaves them.
    pub(crate) fn results_vary(&self, inst: &Inst) -> bool {
        inst.dst.iter().all(|d| !matches!(self.place(*d), Place::Words(_)))
    }
}
