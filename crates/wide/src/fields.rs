//! Fields, bytes and funnel shifts of words whose places are constants, or at most words in turn.

use handloom_ir::types::{Int, Ty};
use iced_x86::Code;

use crate::asm::Out;
use crate::emit::*;
use crate::ops::{and, ternary};
use crate::values::{At, Src, by_width, load_code};

impl Emit<'_> {
    /// `lo, hi, amount`: shifts of the host give zero from 32 on, so that the halves add up.
    pub(crate) fn funnel(&mut self, right: bool, wrap: bool, q: usize, src: &[Src], out: Out) {
        use Code::{EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32 as LEFT, EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32 as RIGHT};
        let ty = Ty::B32;
        let lo = self.reg(&src[0], q, 0);
        let hi = self.reg(&src[1], q, 1);
        let (n, rest) = (zmm(4), zmm(5));
        match src[2].at {
            At::Imm(x) => {
                let by = if wrap { x & 31 } else { x.min(32) };
                if lo == hi && wrap {
                    let code = if right {
                        Code::EVEX_Vprord_zmm_k1z_zmmm512b32_imm8
                    } else {
                        Code::EVEX_Vprold_zmm_k1z_zmmm512b32_imm8
                    };
                    self.a.op2i(code, out, lo, by as u32);
                    return;
                }
                for (to, by) in [(n, by), (rest, 32 - by)] {
                    let c = self.constant(ty, by);
                    self.a.op2(load_code(ty), to, c);
                }
            }
            _ => {
                let by = self.reg(&src[2], q, 2);
                let (code, most) = if wrap {
                    (Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, 31)
                } else {
                    (Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32, 32)
                };
                let c = self.constant(ty, most);
                self.a.op3(code, n, by, c);
                let c = self.constant(ty, 32);
                self.a.op2(load_code(ty), rest, c);
                self.a.op3(Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32, rest, rest, n);
            }
        }
        let (first, second) = if right { (RIGHT, LEFT) } else { (LEFT, RIGHT) };
        let (shifted, other) = if right { (lo, hi) } else { (hi, lo) };
        self.a.op3(first, n, shifted, n);
        self.a.op3(second, rest, other, rest);
        self.a.op3(Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, out, n, rest);
    }

    /// A field at a constant place.
    pub(crate) fn field(&mut self, int: Int, q: usize, src: &[Src], out: Out) {
        let (At::Imm(pos), At::Imm(len)) = (src[1].at, src[2].at) else { panic!("a field at {:?}", self.at) };
        let (ty, width) = (int.ty, int.bits());
        let (pos, len) = ((pos & 0xff) as u32, (len & 0xff) as u32);
        let a = self.reg(&src[0], q, 0);
        let left = by_width(ty, Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8);
        let sra = by_width(ty, Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8, Code::EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8);
        let srl = by_width(ty, Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8, Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8);
        if len == 0 || (!int.signed && pos >= width) {
            let c = self.constant(ty, 0);
            self.copy(ty, out, c.into());
        } else if int.signed {
            // From the top on there is only the sign.
            let pos = pos.min(width - 1);
            let len = len.min(width - pos);
            self.a.op2i(left, zmm(4), a, width - pos - len);
            self.a.op2i(sra, out, zmm(4), width - len);
        } else {
            self.a.op2i(srl, zmm(4), a, pos);
            let kept = if len < width { (1u64 << len) - 1 } else { ty.mask() };
            let c = self.constant(ty, kept);
            self.a.op3(and(ty), out, zmm(4), c);
        }
    }

    pub(crate) fn insert(&mut self, ty: Ty, q: usize, src: &[Src], out: Out) {
        let (At::Imm(pos), At::Imm(len)) = (src[2].at, src[3].at) else { panic!("a field at {:?}", self.at) };
        let (pos, len) = ((pos & 0xff) as u32, (len & 0xff) as u32);
        let field = self.reg(&src[0], q, 0);
        let base = self.rm(&src[1], q, 1);
        let ones = if pos >= ty.bits() { 0 } else { (if len < 64 { (1u64 << len) - 1 } else { u64::MAX }) << pos };
        let left = by_width(ty, Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8);
        self.a.op2i(left, zmm(4), field, pos);
        let c = self.constant(ty, ones & ty.mask());
        self.a.op2(load_code(ty), zmm(5), c);
        self.a.op3i(ternary(ty), zmm(5), zmm(4), base, 0xca);
        self.copy(ty, out, zmm(5).into());
    }

    /// Bytes of two words by a constant selector without signs: each source is shuffled, what is not its own is zero.
    pub(crate) fn permute(&mut self, q: usize, src: &[Src], out: Out) {
        let At::Imm(selector) = src[2].at else { panic!("a selector at {:?}", self.at) };
        let mut bytes = [[0x80u8; 64]; 2];
        for (at, nibble) in (0..64).map(|i| (i, (selector >> (4 * (i % 4)) & 7) as usize)) {
            bytes[nibble / 4][at] = ((at % 16) / 4 * 4 + nibble % 4) as u8;
        }
        let code = Code::EVEX_Vpshufb_zmm_k1z_zmm_zmmm512;
        let (a, b) = (self.reg(&src[0], q, 0), self.reg(&src[1], q, 1));
        for (to, from, bytes) in [(zmm(4), a, bytes[0]), (zmm(5), b, bytes[1])] {
            let c = self.a.bytes(bytes);
            self.a.op3(code, to, from, crate::asm::Mem::constant(c, 0));
        }
        self.a.op3(Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, out, zmm(4), zmm(5));
    }
}
