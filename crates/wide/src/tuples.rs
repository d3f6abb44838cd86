//! Loads and stores of several elements a lane (`.v2`, `.v4`, `.v8`): a lane's elements are a *tuple*.
//!
//! # The model
//! Tuples of lanes that follow each other lie in *chunks* of 64 bytes. A load reads chunks as vectors and takes them apart: halves of tuples first, then halves of those, until each
//! vector has one element of its lanes. A store puts them together the other way around. Elements of 8 and 16 bits are taken from words of 32 bits, or joined to them.
//!
//! Where nobody asks for an element by itself, chunks stay as they are (`together`).
//!
//! Tuples that lie anywhere are copied lane by lane, each as a whole, between their places and a row of tuples in the scratch space, whose chunks are as above.

use handloom_ir::simt::{Inst, Op, Reg, Regs, Val};
use handloom_ir::types::Ty;
use handloom_plan::access::{AccessClass, Kind};
use handloom_plan::analysis::shape::Shape;
use iced_x86::{Code, Register};

use crate::access::{Access, Form, Limits, Runs};
use crate::alloc::{Place, n_parts};
use crate::asm::{Mem, Out};
use crate::emit::*;
use crate::values::store_code;

const K6: Register = Register::K6;
/// Registers for the addresses of the runs of one part.
const RUNS: [Register; 4] = [Register::RCX, Register::RSI, Register::R11, Register::RDI];

/// Whether an access is one of tuples that there is code for.
pub(crate) fn is_of_tuples(class: &AccessClass) -> bool {
    let bytes = class.bytes();
    class.count > 1 && if class.bits < 32 { bytes <= 8 } else { bytes <= 32 }
}

/// How many lanes follow each other wherever some do, if chunks can be read: at least four of them and a chunk.
pub(crate) fn lanes_of_runs(s: &Shape, x: &Access) -> Option<u8> {
    if !is_of_tuples(&x.class) {
        return None;
    }
    let follows = |l: usize, first: usize| {
        s.group_of(l) == s.group_of(first) && s.delta(l) - s.delta(first) == x.class.bytes() * (l - first) as i64
    };
    let run = [32, 16, 8, 4].into_iter().find(|n| (0..32).all(|l| follows(l, l / n * n)))?;
    (run >= chunk(x).0).then_some(run as u8)
}

/// Lanes of a chunk, and chunks of a part of the warp.
fn chunk(x: &Access) -> (usize, usize) {
    let n = 32 / n_parts(x.ty);
    let lanes = n.min(64 / x.class.bytes() as usize);
    (lanes, n / lanes)
}

/// The registers among values.
fn registers(values: &[Val]) -> Regs {
    let of = |v: &Val| match v {
        Val::Reg(r) => Some(*r),
        Val::Imm(..) => None,
    };
    values.iter().filter_map(of).collect()
}

impl Emit<'_> {
    /// Where the chunks of a part lie, of an access whose tests are made elsewhere.
    pub(crate) fn chunks_of_run(&mut self, x: &Access, runs: &Runs, q: usize) -> Vec<Mem> {
        let (lanes, n) = chunk(x);
        (0..n).map(|c| self.run_element(x, runs, (q * n + c) * lanes)).collect()
    }

    /// Where 64 bytes each of a load lie, to be asked for.
    pub(crate) fn lines_of_run(&mut self, x: &Access, runs: &Runs, form: Form) -> Vec<Mem> {
        match form {
            Form::Row => {
                let m = self.run_element(x, runs, 0);
                (0..32 * x.size()).step_by(64).map(|at| m.behind(at)).collect()
            }
            Form::Tuples(_) => (0..n_parts(x.ty)).flat_map(|q| self.chunks_of_run(x, runs, q)).collect(),
            Form::Parts => (0..n_parts(x.ty)).map(|q| self.part_of_run(x, runs, form, q).0).collect(),
            Form::Halves => [0, 8, 16, 24].map(|lane| self.run_element(x, runs, lane)).to_vec(),
            Form::Strided(_) => self.lines_of_strides(x, runs),
            Form::Same | Form::Bands | Form::HalfBands | Form::Scattered => Vec::new(),
        }
    }

    /// Tuples that follow each other through the warp, from the address in a register on.
    pub(crate) fn row_of_tuples(&mut self, inst: &Inst, x: &Access, at: Register) {
        self.tuples_from(inst, x, Mem::at(at, 0), true);
    }

    fn tuples_from(&mut self, inst: &Inst, x: &Access, m: Mem, is_masked: bool) {
        let (lanes, n) = chunk(x);
        let by = lanes as i32 * x.class.bytes() as i32;
        for q in 0..n_parts(x.ty) {
            let at: Vec<Mem> = (0..n).map(|c| m.behind((q * n + c) as i32 * by)).collect();
            self.tuples(inst, x, q, &at, is_masked);
        }
    }

    /// Runs of tuples of so many lanes, in a block that all lanes execute, with their own tests.
    pub(crate) fn runs_of_tuples(&mut self, inst: &Inst, x: &Access, run: usize) {
        if x.limits != Limits::Safe {
            let skip = self.around_tests(x);
            self.limits_of_run(x, (run as i64 - 1) * x.class.bytes());
            for lane in (0..32).step_by(run) {
                self.lane_address(x, lane);
                self.test_start(x, RAX);
            }
            self.after_tests(skip);
        }
        let (lanes, n) = chunk(x);
        let part = lanes * n;
        for q in 0..n_parts(x.ty) {
            let step = run.min(part);
            for (lane, to) in (q * part..(q + 1) * part).step_by(step).zip(RUNS) {
                self.lane_address(x, lane);
                self.host(x, RAX);
                self.a.op2(Code::Mov_r64_rm64, to, RAX);
            }
            let place = |lane: usize| Mem::at(RUNS[lane / step], (lane % step) as i32 * x.class.bytes() as i32);
            let at: Vec<Mem> = (0..n).map(|c| place(c * lanes)).collect();
            self.tuples(inst, x, q, &at, true);
        }
    }

    /// A part of the warp, whose chunks lie where `at` says. `is_masked`: lanes that take no part may lie outside of memory. Clobbers `rax`, `rdx`.
    pub(crate) fn tuples(&mut self, inst: &Inst, x: &Access, q: usize, at: &[Mem], is_masked: bool) {
        if x.class.kind == Kind::Load {
            self.load_tuples(inst, x, q, at, is_masked);
        } else {
            self.store_tuples(inst, x, q, at, is_masked);
        }
    }

    /// The mask of the words of a chunk.
    fn chunk_mask(&mut self, x: &Access, q: usize, c: usize, is_masked: bool) -> Register {
        if !is_masked || !self.is_of_part(x) {
            return ALL;
        }
        let words = x.class.bytes() as u32 / 4;
        if words <= 1 {
            return self.lanes_mask(x.lanes, Ty::B32, q);
        }
        let (lanes, n) = chunk(x);
        self.a.op2(Code::Mov_r32_rm32, EAX, x.lanes);
        let first = (q * n + c) * lanes;
        if first > 0 {
            self.a.imm8(Code::Shr_rm32_imm8, EAX, first as u32);
        }
        // The bit of a lane goes to its first word, then to all of them.
        let firsts = (0..16).step_by(words as usize).fold(0u64, |m, i| m | 1 << i);
        self.a.number(RDX, firsts);
        self.a.op3(Code::VEX_Pdep_r32_r32_rm32, EAX, EAX, Register::EDX);
        self.a.op2i(Code::Imul_r32_rm32_imm32, EAX, EAX, (1 << words) - 1);
        self.a.op2(Code::VEX_Kmovd_kr_r32, K6, EAX);
        K6
    }

    /// A part of a result, which `make` writes to the vector that it is given. Uses vectors 6 and 7.
    pub(crate) fn tuple_result(&mut self, d: Reg, q: usize, x: &Access, make: impl FnOnce(&mut Self, Register)) {
        if !matches!(self.place(d), Place::Vectors(_) | Place::Row(_)) {
            return;
        }
        if x.lanes != LANES {
            make(self, zmm(6));
            self.put(d, q, zmm(6), x.lanes);
            return;
        }
        let out = self.out(d, q);
        if out.mask == ALL {
            make(self, out.reg);
        } else {
            make(self, zmm(6));
            self.copy(self.f.regs[d.idx()], out, zmm(6).into());
        }
        self.commit(d, q);
    }

    fn load_chunk(&mut self, x: &Access, q: usize, c: usize, at: &[Mem], is_masked: bool, to: u8) {
        let mask = self.chunk_mask(x, q, c, is_masked);
        if x.class.bytes() == 2 {
            self.a.op2(Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256, Out::masked(zmm(to), mask), at[c]);
        } else {
            self.a.load_some(zmm(to), at[c], mask);
        }
    }

    fn load_tuples(&mut self, inst: &Inst, x: &Access, q: usize, at: &[Mem], is_masked: bool) {
        if self.is_of_bundle(inst.dst.first()) {
            self.load_bundle(&inst.dst, x, q, at, is_masked);
        } else if x.size() < 4 {
            self.load_small_tuples(inst, x, q, at, is_masked);
        } else {
            self.load_apart(&inst.dst, x, q, at, is_masked);
        }
    }

    /// An element to each register.
    fn load_apart(&mut self, dst: &[Reg], x: &Access, q: usize, at: &[Mem], is_masked: bool) {
        let unit = x.size() as u32;
        match *dst {
            [first, second] => {
                self.load_chunk(x, q, 0, at, is_masked, 2);
                self.load_chunk(x, q, 1, at, is_masked, 3);
                for (odd, d) in [(false, first), (true, second)] {
                    self.tuple_result(d, q, x, |s, to| s.a.every_second(unit, odd, to, zmm(2), zmm(3)));
                }
                self.a.done_with(&[2, 3, 6, 7]);
            }
            [_, _, _, _] => {
                for c in 0..4 {
                    self.load_chunk(x, q, c, at, is_masked, 2 + c as u8);
                }
                self.take_apart(dst, q, x);
            }
            _ => {
                for (odd, of) in [false, true].into_iter().zip(dst.chunks(4)) {
                    for c in 0..4 {
                        self.load_chunk(x, q, 2 * c, at, is_masked, 0);
                        self.load_chunk(x, q, 2 * c + 1, at, is_masked, 1);
                        self.a.every_second(4 * unit, odd, zmm(2 + c as u8), zmm(0), zmm(1));
                    }
                    self.take_apart(of, q, x);
                }
            }
        }
    }

    /// Four elements of each tuple in vectors 2 to 5.
    fn take_apart(&mut self, to: &[Reg], q: usize, x: &Access) {
        let unit = x.size() as u32;
        self.a.every_second(2 * unit, false, zmm(0), zmm(2), zmm(3));
        self.a.every_second(2 * unit, true, zmm(1), zmm(2), zmm(3));
        self.a.every_second(2 * unit, false, zmm(2), zmm(4), zmm(5));
        self.a.every_second(2 * unit, true, zmm(3), zmm(4), zmm(5));
        self.a.done_with(&[4, 5]);
        for (e, d) in (0..).zip(to) {
            let (odd, from) = (e % 2 == 1, e / 2);
            self.tuple_result(*d, q, x, |s, to| s.a.every_second(unit, odd, to, zmm(from), zmm(2 + from)));
        }
        self.a.done_with(&[0, 1, 2, 3, 6, 7]);
    }

    /// Elements of 8 and 16 bits, in words of vectors 0 and 1.
    fn load_small_tuples(&mut self, inst: &Inst, x: &Access, q: usize, at: &[Mem], is_masked: bool) {
        if x.class.bytes() == 8 {
            self.load_chunk(x, q, 0, at, is_masked, 2);
            self.load_chunk(x, q, 1, at, is_masked, 3);
            self.a.every_second(4, false, zmm(0), zmm(2), zmm(3));
            self.a.every_second(4, true, zmm(1), zmm(2), zmm(3));
        } else {
            self.load_chunk(x, q, 0, at, is_masked, 0);
        }
        let bits = u32::from(x.class.bits);
        for (at, d) in (0..).step_by(bits as usize).zip(&inst.dst) {
            let from = zmm((at / 32) as u8);
            self.tuple_result(*d, q, x, |s, to| {
                let mut r = from;
                if at % 32 > 0 {
                    s.a.op2i(Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8, to, r, at % 32);
                    r = to;
                }
                if at % 32 + bits < 32 {
                    let kept = s.constant(Ty::B32, (1 << bits) - 1);
                    s.a.op3(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, to, r, kept);
                }
            });
        }
    }

    fn store_chunk(&mut self, x: &Access, q: usize, c: usize, at: &[Mem], is_masked: bool, from: u8) {
        let mask = self.chunk_mask(x, q, c, is_masked);
        let code = if x.class.bytes() == 2 { Code::EVEX_Vpmovdw_ymmm256_k1z_zmm } else { store_code(Ty::B32) };
        self.a.store(code, at[c], zmm(from), mask);
        self.a.done_with(&[from]);
    }

    /// An element of the tuples to be stored, in a vector.
    fn tuple_source(&mut self, of: &[Val], e: usize, q: usize, scratch: u8) -> Register {
        let s = self.clean_src(of[e]);
        self.reg(&s, q, scratch)
    }

    fn store_tuples(&mut self, inst: &Inst, x: &Access, q: usize, at: &[Mem], is_masked: bool) {
        let src = &inst.src[1..];
        if self.is_of_bundle(registers(src).first()) {
            self.store_bundle(src, x, q, at, is_masked);
        } else if x.size() < 4 {
            self.store_small_tuples(inst, x, q, at, is_masked);
        } else {
            self.store_joined(src, x, q, at, is_masked);
        }
    }

    /// Elements, each from its register.
    fn store_joined(&mut self, src: &[Val], x: &Access, q: usize, at: &[Mem], is_masked: bool) {
        let unit = x.size() as u32;
        // Two elements each, of the lower or the upper half of the lanes.
        let pair = |s: &mut Self, e: usize, upper: bool, to: u8| {
            let (a, b) = (s.tuple_source(src, e, q, 2), s.tuple_source(src, e + 1, q, 3));
            s.a.in_turns(unit, upper, zmm(to), a, b);
            s.a.done_with(&[2, 3]);
        };
        for upper in [false, true] {
            let half = usize::from(upper);
            match x.class.count {
                2 => {
                    pair(self, 0, upper, 0);
                    self.store_chunk(x, q, half, at, is_masked, 0);
                }
                4 => {
                    pair(self, 0, upper, 0);
                    pair(self, 2, upper, 1);
                    for k in 0..2 {
                        self.a.in_turns(2 * unit, k == 1, zmm(4), zmm(0), zmm(1));
                        self.store_chunk(x, q, 2 * half + k, at, is_masked, 4);
                    }
                }
                _ => {
                    for four in 0..2 {
                        pair(self, 4 * four, upper, 0);
                        pair(self, 4 * four + 2, upper, 1);
                        let to = 4 + 2 * four as u8;
                        self.a.in_turns(2 * unit, false, zmm(to), zmm(0), zmm(1));
                        self.a.in_turns(2 * unit, true, zmm(to + 1), zmm(0), zmm(1));
                    }
                    for k in 0..4 {
                        let from = 4 + k as u8 / 2;
                        self.a.in_turns(4 * unit, k % 2 == 1, zmm(0), zmm(from), zmm(from + 2));
                        self.store_chunk(x, q, 4 * half + k, at, is_masked, 0);
                    }
                }
            }
        }
    }

    pub(crate) fn is_of_bundle(&self, r: Option<&Reg>) -> bool {
        r.is_some_and(|r| self.bundles.has(r.idx()))
    }

    /// Chunks as they lie in memory, one to a part of each register of a bundle.
    fn load_bundle(&mut self, bundle: &[Reg], x: &Access, q: usize, at: &[Mem], is_masked: bool) {
        for (c, d) in bundle.iter().enumerate() {
            // Nobody else has anything there.
            match self.place(*d) {
                Place::Vectors(v) => self.load_chunk(x, q, c, at, is_masked, v[q]),
                Place::Row(row) => {
                    self.load_chunk(x, q, c, at, is_masked, 6);
                    self.a.store(store_code(Ty::B32), ctx(row + 64 * q as u32), zmm(6), ALL);
                }
                other => panic!("{d:?} of a bundle in {other:?} at {:?}", self.at),
            }
        }
    }

    fn store_bundle(&mut self, bundle: &[Val], x: &Access, q: usize, at: &[Mem], is_masked: bool) {
        for (c, m) in at.iter().enumerate().take(bundle.len()) {
            let r = self.tuple_source(bundle, c, q, 2);
            let mask = self.chunk_mask(x, q, c, is_masked);
            self.a.store(store_code(Ty::B32), *m, r, mask);
        }
        self.a.done_with(&[2]);
    }

    /// A row of tuples in the scratch space, by chunk.
    fn row_of_chunks(&mut self, x: &Access) -> Vec<Vec<Mem>> {
        let row = self.take_scratch(32 * x.class.bytes() as u32);
        let n = chunk(x).1;
        (0..n_parts(x.ty)).map(|q| (0..n).map(|c| ctx(row + 64 * (q * n + c) as u32)).collect()).collect()
    }

    /// Before the routine stores a bundle: its registers become what each says it is. Returns where the chunks are meanwhile.
    pub(crate) fn take_bundle_apart(&mut self, inst: &Inst) -> Option<Vec<Vec<Mem>>> {
        let bundle = if matches!(inst.op, Op::Store { .. }) { registers(&inst.src[1..]) } else { Regs::new() };
        let x = self.bundle_access(inst, &bundle)?;
        let row = self.row_of_chunks(&x);
        for (q, at) in row.iter().enumerate() {
            self.store_bundle(&inst.src[1..], &x, q, at, false);
        }
        for (q, at) in row.iter().enumerate() {
            self.load_apart(&bundle, &x, q, at, false);
        }
        Some(row)
    }

    /// After the routine loaded or stored a bundle: its registers become chunks, those that it stored from where they are meanwhile.
    pub(crate) fn put_bundle_together(&mut self, inst: &Inst, kept: Option<Vec<Vec<Mem>>>) {
        let bundle = match inst.op {
            Op::Load { .. } => inst.dst.clone(),
            Op::Store { .. } => registers(&inst.src[1..]),
            _ => return,
        };
        let Some(x) = self.bundle_access(inst, &bundle) else { return };
        let row = kept.unwrap_or_else(|| {
            let elements: Vec<Val> = bundle.iter().map(|r| Val::Reg(*r)).collect();
            let row = self.row_of_chunks(&x);
            for (q, at) in row.iter().enumerate() {
                self.store_joined(&elements, &x, q, at, false);
            }
            row
        });
        for (q, at) in row.iter().enumerate() {
            self.load_bundle(&bundle, &x, q, at, false);
        }
    }

    /// The access of a bundle to a row of its own.
    fn bundle_access(&mut self, inst: &Inst, bundle: &[Reg]) -> Option<Access> {
        let class = AccessClass::of(inst).filter(|_| self.is_of_bundle(bundle.first()))?;
        let (ty, cold) = (self.f.regs[bundle[0].idx()], self.a.label());
        Some(Access {
            class,
            limits: Limits::Safe,
            lanes: LANES,
            cold,
            ty,
            short: false,
            is_proven: true,
            decided: None,
        })
    }

    /// Elements of 8 and 16 bits, joined to words in vectors 0 and 1.
    fn store_small_tuples(&mut self, inst: &Inst, x: &Access, q: usize, at: &[Mem], is_masked: bool) {
        const AND: Code = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
        let bits = u32::from(x.class.bits);
        let kept = self.constant(Ty::B32, (1 << bits) - 1);
        for e in 0..u32::from(x.class.count) {
            let (to, shift) = (zmm((e * bits / 32) as u8), e * bits % 32);
            let r = self.tuple_source(&inst.src[1..], e as usize, q, 2);
            if shift == 0 {
                self.a.op3(AND, to, r, kept);
                continue;
            }
            self.a.op3(AND, zmm(3), r, kept);
            self.a.op2i(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, zmm(3), zmm(3), shift);
            self.a.op3(Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, to, to, zmm(3));
        }
        if x.class.bytes() < 8 {
            self.store_chunk(x, q, 0, at, is_masked, 0);
            return;
        }
        for c in 0..2 {
            self.a.in_turns(4, c == 1, zmm(4), zmm(0), zmm(1));
            self.store_chunk(x, q, c, at, is_masked, 4);
        }
    }

    /// Tuples anywhere, at the addresses in vectors 0 to `n`, from what `r11` holds on.
    pub(crate) fn tuples_by_lane(&mut self, inst: &Inst, x: &Access, n: usize) {
        let addresses = self.lane_addresses(x, n);
        let row = self.take_scratch(32 * x.class.bytes() as u32);
        let bytes = x.class.bytes() as i32;
        if x.class.kind == Kind::Load && self.is_read_by_units(inst, x) {
            self.units_by_lane(inst, x, addresses, n);
            return;
        }
        if x.class.kind == Kind::Store {
            self.tuples_from(inst, x, ctx(row), false);
        }
        self.each_lane(x, addresses, |s| {
            s.a.imm8(Code::Shl_rm32_imm8, Register::EDX, bytes.trailing_zeros());
            for at in (0..bytes).step_by(8) {
                let own = Mem::indexed(WARP, RDX, 1, row as i32 + at);
                let (from, to) =
                    if x.class.kind == Kind::Load { (Mem::at(RAX, at), own) } else { (own, Mem::at(RAX, at)) };
                let (load, store, by) = match bytes {
                    2 => (Code::Movzx_r32_rm16, Code::Mov_rm16_r16, [Register::ESI, Register::SI]),
                    4 => (Code::Mov_r32_rm32, Code::Mov_rm32_r32, [Register::ESI; 2]),
                    _ => (Code::Mov_r64_rm64, Code::Mov_rm64_r64, [RSI; 2]),
                };
                s.a.op2(load, by[0], from);
                s.a.store(store, to, by[1], ALL);
            }
        });
        if x.class.kind == Kind::Load {
            self.tuples_from(inst, x, ctx(row), false);
        }
    }

    /// Whether tuples anywhere are read by whole vectors: four words each, one to a register.
    fn is_read_by_units(&self, inst: &Inst, x: &Access) -> bool {
        x.class.bits == 32 && x.class.count == 4 && !self.is_of_bundle(inst.dst.first()) && self.a.has_wide_vectors()
    }

    /// Reads tuples of four words whose `n` vectors of addresses lie in the scratch space. Words that are written one by one and read as a vector would have
    /// to wait for the cache. Lanes that take no part read what the first one reads that does.
    fn units_by_lane(&mut self, inst: &Inst, x: &Access, addresses: u32, n: usize) {
        let aty = if x.short { Ty::B32 } else { Ty::B64 };
        let bytes = aty.bits() / 8;
        if self.is_of_part(x) {
            self.a.op2(Code::Tzcnt_r32_rm32, Register::EDX, x.lanes);
            let first = Mem::indexed(WARP, RDX, bytes, addresses as i32);
            let (spread, from) = if x.short {
                self.load32(Register::ESI, first);
                (Code::EVEX_Vpbroadcastd_zmm_k1z_r32, Register::ESI)
            } else {
                self.load64(RSI, first);
                (Code::EVEX_Vpbroadcastq_zmm_k1z_r64, RSI)
            };
            for q in 0..n {
                let own = self.lanes_mask(x.lanes, aty, q);
                self.a.op2(Code::VEX_Knotw_kr_kr, K6, own);
                self.a.op2(spread, Out::masked(zmm(q as u8), K6), from);
                self.a.store(store_code(aty), ctx(addresses + 64 * q as u32), zmm(q as u8), ALL);
            }
        }
        let read = self.units[usize::from(!x.short)];
        for q in 0..2 {
            self.a.op2(Code::Lea_r64_m, RSI, ctx(addresses + 16 * bytes * q as u32));
            self.a.jump(Code::Call_rel32_64, read);
            for (from, d) in (4..).zip(&inst.dst) {
                self.put(*d, q, zmm(from), x.lanes);
            }
        }
    }

    /// The code that reads the units of 16 lanes, whose addresses follow each other from `rsi` on, from `r11` on: words by number in vectors 4 to 7.
    /// Uses vectors 0 to 3, `k5` to `k7`; clobbers `rax`, `rcx`, `rdx`.
    pub(crate) fn read_units(&mut self) {
        use Code::{
            EVEX_Vpunpckhdq_zmm_k1z_zmm_zmmm512b32 as HIGH, EVEX_Vpunpckhqdq_zmm_k1z_zmm_zmmm512b64 as HIGH_PAIRS,
            EVEX_Vpunpckldq_zmm_k1z_zmm_zmmm512b32 as LOW, EVEX_Vpunpcklqdq_zmm_k1z_zmm_zmmm512b64 as LOW_PAIRS,
        };
        const ADDRESSES: [(Register, Register); 3] = [(EAX, RAX), (ECX, Register::RCX), (Register::EDX, Register::RDX)];
        /// The words of the quarters of a vector after the first one.
        const QUARTERS: [(Register, u64); 3] = [(Register::K5, 0xf0), (Register::K6, 0xf00), (Register::K7, 0xf000)];
        for (label, is_short) in self.units.into_iter().zip([true, false]) {
            if !self.a.is_wanted(label) {
                continue;
            }
            self.a.bind(label);
            for (quarter, words) in QUARTERS {
                self.a.number(RAX, words);
                self.a.op2(Code::VEX_Kmovd_kr_r32, quarter, EAX);
            }
            // Vector `4 + j` has the units of lanes `j`, `4 + j`, `8 + j` and `12 + j`.
            for unit in 0..16 {
                let (j, quarter) = (unit % 4, unit / 4);
                let ((short, long), to) = (ADDRESSES[unit % 3], zmm(4 + j as u8));
                if is_short {
                    self.load32(short, Mem::at(RSI, 4 * unit as i32));
                } else {
                    self.load64(long, Mem::at(RSI, 8 * unit as i32));
                }
                let m = Mem::indexed(Register::R11, long, 1, 0);
                if quarter == 0 {
                    self.a.op2(Code::EVEX_Vmovdqu32_xmm_k1z_xmmm128, xmm(to), m);
                } else {
                    // No shuffle of the host: those that follow have enough to do.
                    let quarter = QUARTERS[quarter - 1].0;
                    self.a.op2(Code::EVEX_Vbroadcasti32x4_zmm_k1z_m128, Out::masked(to, quarter), m);
                }
            }
            for (to, code, x) in [(0, LOW, 4), (1, HIGH, 4), (2, LOW, 6), (3, HIGH, 6)] {
                self.a.op3(code, zmm(to), zmm(x), zmm(x + 1));
            }
            for (to, code, x) in [(4, LOW_PAIRS, 0), (5, HIGH_PAIRS, 0), (6, LOW_PAIRS, 1), (7, HIGH_PAIRS, 1)] {
                self.a.op3(code, zmm(to), zmm(x), zmm(x + 2));
            }
            self.a.op0(Code::Retnq);
        }
    }
}
