//! Accesses of lanes that constants name: as wide as these lanes are, so that what they write is read back from where the host keeps it until it is in the cache.

use handloom_ir::simt::Inst;
use handloom_ir::types::Ty;
use handloom_plan::access::Kind;
use iced_x86::{Code, Register};
use smallvec::SmallVec;

use crate::access::Access;
use crate::alloc::{Place, n_parts};
use crate::asm::Mem;
use crate::emit::*;
use crate::head::Going;
use crate::values::{is_wide, store_code};

/// The lanes of a part, from its first on.
fn lanes_of_part(lanes: u32, ty: Ty, q: usize) -> u32 {
    let n = 32 / n_parts(ty);
    lanes >> (q * n) & ((1 << n) - 1)
}

impl Emit<'_> {
    /// The parts of a register that hold lanes which do what is being emitted.
    pub(crate) fn parts_in_use(&self, ty: Ty) -> SmallVec<[usize; 4]> {
        let is_idle = |q: usize| matches!(self.going, Some(Going::Known(lanes)) if lanes_of_part(lanes, ty, q) == 0);
        (0..n_parts(ty)).filter(|q| !is_idle(*q)).collect()
    }

    /// A part of a load or store of neighbours for some lanes. All lanes may be read, but only theirs written.
    pub(crate) fn move_some(&mut self, inst: &Inst, x: &Access, q: usize, m: Mem, lanes: u32) {
        let lanes = lanes_of_part(lanes, x.ty, q);
        if lanes == 0 {
            return;
        }
        let n = lanes.trailing_ones();
        let bytes = if lanes >> n == 0 && x.class.bits >= 32 { x.size().cast_unsigned() * n } else { 0 };
        if x.class.kind == Kind::Load {
            let (Place::Vectors(v), true) = (self.place(inst.dst[0]), matches!(bytes, 4 | 8 | 16 | 32)) else {
                self.load_part(inst.dst[0], q, m, x);
                return;
            };
            let to = zmm(v[q]);
            match bytes {
                4 => self.a.op2(Code::EVEX_Vmovd_xmm_rm32, xmm(to), m),
                8 => self.a.op2(Code::EVEX_Vmovq_xmm_xmmm64, xmm(to), m),
                16 => self.a.op2(Code::EVEX_Vmovdqu32_xmm_k1z_xmmm128, xmm(to), m),
                _ => self.a.op2(Code::EVEX_Vmovdqu32_ymm_k1z_ymmm256, ymm(to), m),
            }
            return;
        }
        let s = self.clean_src(inst.src[1]);
        let r = self.reg(&s, q, 4);
        match bytes {
            4 => self.a.store(Code::EVEX_Vmovd_rm32_xmm, m, xmm(r), ALL),
            8 => self.a.store(Code::EVEX_Vmovq_xmmm64_xmm, m, xmm(r), ALL),
            16 => self.a.store(Code::EVEX_Vmovdqu32_xmmm128_k1z_xmm, m, xmm(r), ALL),
            32 => self.a.store(Code::EVEX_Vmovdqu32_ymmm256_k1z_ymm, m, ymm(r), ALL),
            64 => self.a.store(store_code(x.ty), m, r, ALL),
            _ => {
                self.a.number(RAX, u64::from(lanes));
                self.a.op2(Code::VEX_Kmovd_kr_r32, Register::K5, EAX);
                let code = match x.class.bits {
                    8 => Code::EVEX_Vpmovdb_xmmm128_k1z_zmm,
                    16 => Code::EVEX_Vpmovdw_ymmm256_k1z_zmm,
                    _ => store_code(x.ty),
                };
                self.a.store(code, m, r, Register::K5);
            }
        }
    }

    /// A store of the first lane alone, to the place that all lanes name.
    pub(crate) fn store_first(&mut self, inst: &Inst, x: &Access, m: Mem) {
        for (e, v) in (0..).zip(&inst.operands()[1..]) {
            let s = self.clean_src(*v);
            let r = self.reg(&s, 0, 4);
            let m = m.behind(e * x.size());
            if is_wide(x.ty) {
                self.a.store(Code::EVEX_Vmovq_xmmm64_xmm, m, xmm(r), ALL);
            } else {
                self.a.store(Code::EVEX_Vmovd_rm32_xmm, m, xmm(r), ALL);
            }
        }
    }
}
