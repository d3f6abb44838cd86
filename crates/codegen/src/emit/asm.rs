//! How a function is said in CLIF: the assembler.
//!
//! It knows the builder, the contexts, calls of routines and what was made once. It does not know blocks of the IR, registers and copies. Other
//! files add to it: vectors in another order ([`super::vectors`]), value ops ([`super::ops`]), registers as lanes ([`super::value`]), device memory
//! ([`super::device`]), what is known of predicates ([`super::full::branch`]). None of them asks anything of a file above it.

use std::mem::offset_of;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::{AbiParam, Endianness, InstBuilder, MemFlagsData, Signature, Value, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::FunctionBuilder;
use handloom_diag::hash::FastMap;
use handloom_ir::types::*;
use handloom_plan::abi::*;
use handloom_plan::host::Architecture;
use handloom_plan::packs::LANES;

use crate::emit::once::{Key, Line};

/// All lanes.
pub const FULL: i64 = 0xffff_ffff;

/// Bytes of the constant pool in front of the tables of a function: masks by nibble, lane masks.
pub const POOL_LANEMASKS: u32 = 256;

/// Bytes of the constant pool.
pub const POOL_BYTES: u32 = POOL_LANEMASKS + 5 * 128;

/// How a function is said in CLIF: the builder, the values that all of its code reads, and what was made once.
///
/// It knows contexts and calls of routines, and nothing of blocks of the IR, registers and copies. Other files add what they know how to say:
/// vectors in another order ([`super::vectors`]), value ops ([`super::ops`]), registers as lanes ([`super::value`]), memory ([`super::device`]).
pub(crate) struct Asm<'b> {
    /// Where instructions go.
    pub(crate) b: FunctionBuilder<'b>,
    /// The context of the cta.
    pub(crate) cta: Value,
    /// The pool of constants.
    pub(crate) pool_ptr: Value,
    /// The context of the warp.
    pub(crate) warp: Value,
    /// What was made once.
    pub(crate) line: Line,
    /// Vectors that were put in another order, with those they were made of.
    pub(crate) turned: FastMap<Vec<Value>, Vec<Value>>,
    /// The signature of routines.
    sig: clif::SigRef,
    /// The kind of host.
    pub(crate) architecture: Architecture,
}

impl<'b> Asm<'b> {
    /// An assembler that writes with `b`. `calls`: how routines are called. `params`: the parameters of the function. `warp`: the context, where
    /// it is dispatched to.
    pub(crate) fn new(
        mut b: FunctionBuilder<'b>,
        architecture: Architecture,
        calls: CallConv,
        params: [Value; 2],
        warp: Value,
    ) -> Asm<'b> {
        let mut routine = Signature::new(calls);
        for t in [types::I64, types::I64, types::I32, types::I32, types::I64, types::I64] {
            routine.params.push(AbiParam::new(t));
        }
        routine.returns.push(AbiParam::new(types::I64));
        let sig = b.import_signature(routine);
        let [cta, pool_ptr] = params;
        Asm { b, cta, pool_ptr, warp, line: Line::default(), turned: FastMap::default(), sig, architecture }
    }
}

impl Asm<'_> {
    pub(crate) fn i32(&mut self, v: i64) -> Value {
        self.b.ins().iconst(types::I32, v & 0xffff_ffff)
    }

    pub(crate) fn i64(&mut self, v: i64) -> Value {
        self.b.ins().iconst(types::I64, v)
    }

    /// A constant as a scalar of a type.
    pub(crate) fn scalar_const(&mut self, v: u64, ty: Ty) -> Value {
        let t = scalar_type(ty);
        let v = match ty {
            Ty::P => (v & 1) as i64,
            Ty::B16 | Ty::B32 => (v & ty.mask()) as i64,
            Ty::B64 => v as i64,
        };
        self.b.ins().iconst(t, v)
    }

    pub(crate) fn vector_const32(&mut self, lanes: [u32; LANES]) -> Value {
        let bytes: Vec<u8> = lanes.iter().flat_map(|l| l.to_le_bytes()).collect();
        self.vector_constant(types::I32X4, &bytes)
    }

    pub(crate) fn vector_const64(&mut self, lanes: [u64; 2]) -> Value {
        let bytes: Vec<u8> = lanes.iter().flat_map(|l| l.to_le_bytes()).collect();
        self.vector_constant(types::I64X2, &bytes)
    }

    fn vector_constant(&mut self, ty: clif::Type, bytes: &[u8]) -> Value {
        let key = bytes.iter().rev().fold(0u128, |k, b| k << 8 | u128::from(*b));
        self.one(Key::Vector(ty, key), |e| {
            let c = e.b.func.dfg.constants.insert(clif::ConstantData::from(bytes));
            e.b.ins().vconst(ty, c)
        })
    }

    pub(crate) fn splat32(&mut self, v: u32) -> Value {
        self.vector_const32([v; 4])
    }

    /// A scalar plus a constant.
    pub(crate) fn moved(&mut self, v: Value, by: i64) -> Value {
        if by == 0 { v } else { self.b.ins().iadd_imm_s(v, by) }
    }

    /// A scalar plus a constant, at the width of its type.
    pub(crate) fn plus(&mut self, v: Value, c: i64, ty: Ty) -> Value {
        if c == 0 {
            return v;
        }
        let sum = self.b.ins().iadd_imm_s(v, c);
        if ty == Ty::B16 { self.b.ins().band_imm_s(sum, 0xffff) } else { sum }
    }

    /// A scalar as a 64-bit word, zero above its width.
    pub(crate) fn as_word(&mut self, v: Value, ty: Ty) -> Value {
        if ty == Ty::B64 { v } else { self.b.ins().uextend(types::I64, v) }
    }

    pub(crate) fn cast(&mut self, v: Value, to: clif::Type) -> Value {
        if self.b.func.dfg.value_type(v) == to {
            return v;
        }
        self.b.ins().bitcast(to, MemFlagsData::new().with_endianness(Endianness::Little), v)
    }

    pub(crate) fn trusted() -> MemFlagsData {
        MemFlagsData::trusted()
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

    /// A 64-bit field of the CTA's context that does not change while a copy runs.
    pub(crate) fn cta_field(&mut self, offset: usize) -> Value {
        self.one(Key::Field(offset), |e| e.load_cta(clif::types::I64, offset))
    }

    /// Base of the cta's shared memory.
    pub(crate) fn shared_base(&mut self) -> Value {
        self.cta_field(offset_of!(CtaCtx, shared_base))
    }

    /// A block for code that is rarely run.
    pub(crate) fn cold_block(&mut self) -> clif::Block {
        let b = self.b.create_block();
        self.b.set_cold_block(b);
        b
    }

    /// Values made before on the line, or made now.
    pub(crate) fn once(&mut self, key: Key, make: impl FnOnce(&mut Self) -> Vec<Value>) -> Vec<Value> {
        if let Some(v) = self.line.made(key) {
            return v.to_vec();
        }
        let v = make(self);
        if self.on_line() {
            self.line.keep(key, v.clone());
        }
        v
    }

    /// As [`Asm::once`], for a single value.
    pub(crate) fn one(&mut self, key: Key, make: impl FnOnce(&mut Self) -> Value) -> Value {
        if let Some(v) = self.line.made(key) {
            return v[0];
        }
        let v = make(self);
        if self.on_line() {
            self.line.keep(key, vec![v]);
        }
        v
    }

    /// Begins a line at the current block.
    pub(crate) fn begin_line(&mut self) {
        self.line = Line::beginning_at(self.b.current_block());
    }

    /// No line: what follows is reached in other ways.
    pub(crate) fn end_line(&mut self) {
        self.line = Line::default();
    }

    /// Whether the current block is the line's.
    pub(crate) fn on_line(&self) -> bool {
        self.line.is_at(self.b.current_block())
    }

    /// Goes on in `block`. `on`: whether the blocks that jump to it left the line where it had come to.
    pub(crate) fn rejoin(&mut self, block: clif::Block, on: bool) {
        self.b.switch_to_block(block);
        if on {
            self.line.rejoin_at(block);
        }
    }

    /// Goes on in `block`, which is reached from where the line had come to when it was `line`.
    pub(crate) fn branch_off(&mut self, block: clif::Block, line: Line) {
        self.b.switch_to_block(block);
        self.line = line;
        self.line.continue_at(block);
    }

    /// Forgets vectors before a call on the line: no vector register of the host outlives one.
    fn drop_vectors(&mut self) {
        if self.on_line() {
            self.line.drop_vectors();
        }
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

    /// Goes on if a routine said yes; else returns with the trap.
    pub(crate) fn go_on_if(&mut self, ok: Value) {
        let (go, on) = (self.b.create_block(), self.on_line());
        self.return_unless(ok, go);
        self.rejoin(go, on);
    }

    /// Goes to `go` if a routine said yes; else returns with the trap.
    pub(crate) fn return_unless(&mut self, ok: Value, go: clif::Block) {
        let fail = self.cold_block();
        self.b.ins().brif(ok, go, &[], fail, &[]);
        self.b.switch_to_block(fail);
        self.leave(Stop::Trap(TrapSource::Routine));
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

    /// Returns a reason for the current context.
    pub(crate) fn give_back(&mut self, reason: Reason) {
        let w = self.warp;
        self.store_cta(w, offset_of!(CtaCtx, cur));
        let r = self.i32(reason as i64);
        self.b.ins().return_(&[r]);
    }

    /// Before a back edge: leaves if the launch is to stop. The context is then not run again.
    pub(crate) fn stop_check(&mut self, header: usize) {
        let at = self.load_cta(types::I64, offset_of!(CtaCtx, stop));
        let stop = self.b.ins().load(types::I32, Self::trusted(), at, 0);
        let (cold, go) = (self.cold_block(), self.b.create_block());
        self.b.ins().brif(stop, cold, &[], go, &[]);
        self.b.switch_to_block(cold);
        let state = self.i32(header as i64);
        self.store_warp(state, offset_of!(WarpCtx, state));
        self.give_back(Reason::Stopped);
        self.b.switch_to_block(go);
    }
}

/// Vectors of a pack.
pub(crate) fn width(ty: Ty) -> usize {
    if ty == Ty::B64 { 2 } else { 1 }
}

/// Type of a uniform value.
pub(crate) fn scalar_type(ty: Ty) -> clif::Type {
    match ty {
        Ty::P => types::I8,
        Ty::B16 | Ty::B32 => types::I32,
        Ty::B64 => types::I64,
    }
}

/// Type of the vectors of a pack.
pub(crate) fn vector_type(ty: Ty) -> clif::Type {
    if ty == Ty::B64 { types::I64X2 } else { types::I32X4 }
}
