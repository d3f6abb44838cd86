//! Words of small matrices in shared memory, as `ldmatrix` reads them: four loads or more at places that other lanes gave.
//!
//! Where all lanes of a warp read, code that the function has once tests the places and reads them. A kernel has dozens of such loads, and what they take longer is less than a
//! twentieth of a product of matrices.
//!
//! Reading each row as a whole, which takes a quarter of the loads of a gather, takes longer where the host gathers fast: a fifteenth of a product on a Xeon (family 6, model 207).

use handloom_ir::simt::{Inst, Lines, MatrixOp, Op, Val};
use handloom_ir::types::{Order, StateSpace, Ty};
use handloom_plan::abi::CtaCtx;
use handloom_plan::access::Kind;
use iced_x86::{Code, Register};
use std::mem::offset_of;

use crate::access::{Access, Limits};
use crate::asm::Mem;
use crate::emit::*;
use crate::once::Reader;
use crate::values::load_code;

const R11: Register = Register::R11;

impl Emit<'_> {
    /// Whether an access is a load of one word a lane of rows whose addresses other lanes gave, done by all lanes.
    fn is_of_matrix(&self, x: &Access) -> bool {
        let Val::Reg(address) = x.class.address else { return false };
        let is_row = |inst: &Inst| {
            let all = Val::Imm(u64::from(u32::MAX), Ty::B32);
            matches!(inst.op, Op::Matrix(MatrixOp::Addresses(a)) if a.lines == Lines::One)
                && inst.src.get(1) == Some(&all)
        };
        x.class.kind == Kind::Load
            && x.class.space == StateSpace::Shared
            && x.limits == Limits::Shared
            && (x.class.bits, x.class.count, x.class.order) == (32, 1, Order::Weak)
            && x.short
            && !self.is_of_part(x)
            && self.a.has_wide_vectors()
            && self.plan.origin(address).is_some_and(is_row)
    }

    /// Reads words of a matrix; says whether the access does that.
    pub(crate) fn reads_matrix(&mut self, inst: &Inst, x: &Access) -> bool {
        if !self.is_of_matrix(x) {
            return false;
        }
        self.each_address(x, |s, q, r| {
            let to = zmm(q as u8);
            if r != to {
                s.a.op2(load_code(Ty::B32), to, r);
            }
        });
        let label = self.a.label();
        let reader = self.matrix_reader.get_or_insert(Reader { label, load: *x }).label;
        self.a.jump(Code::Call_rel32_64, reader);
        self.a.jump(Code::Je_rel32_64, x.cold);
        for q in 0..2 {
            self.put(inst.dst[0], q, zmm(4 + q as u8), x.lanes);
        }
        true
    }

    /// The code that reads words of a matrix. In: offsets in shared memory in vectors 0 and 1. Out: words in vectors 4 and 5; flags of zero if a test failed. Uses vectors 0 to
    /// 6, `k5` to `k7`; clobbers `rax`, `r8`, `r9` and `r11`.
    pub(crate) fn matrix_words_code(&mut self) {
        let Some(reader) = self.matrix_reader else { return };
        let refused = self.a.label();
        let x = Access { cold: refused, ..reader.load };
        self.in_part = false;
        self.a.bind(reader.label);
        self.limits(&x);
        self.test_vectors(&x, 2);
        self.load64(R11, cta(offset_of!(CtaCtx, shared_base)));
        for q in 0..2 {
            self.gather_words(&x, usize::from(q), Mem::indexed(R11, zmm(q), 1, 0), zmm(4 + q));
        }
        self.return_from_test(refused);
    }
}
