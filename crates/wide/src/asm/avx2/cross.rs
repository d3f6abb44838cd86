//! What moves lanes to other places.

use iced_x86::{Code, Register};

use super::super::{Asm, Mem, Out, Rm};
use super::Ops;
use super::masks::low;
use super::state::Value;
use super::state::{BYTES, Lanes, Source, halves, number_of, slot};

impl Asm {
    /// Permutations, parts of vectors, and lanes of other widths.
    pub(super) fn cross(&mut self, o: Ops) -> bool {
        use Code::*;
        match o.code {
            EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8 => {
                let Rm::Reg(r) = o.rm else { return false };
                let half = self.half(r, o.n as usize);
                self.set_halves(o.out, Lanes::Q, &[half]);
            }
            EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8 | EVEX_Vinserti32x8_zmm_k1z_zmm_ymmm256_imm8 => {
                let b = self.source(o.rm, Lanes::D);
                let (new, old) = (self.in_register(b, 0), self.half(o.a, usize::from(o.n & 1 == 0)));
                let made = if o.n & 1 == 1 { [old, new] } else { [new, old] };
                self.set_halves(o.out, Lanes::D, &made);
            }
            EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32 => {
                let b = self.source(o.rm, Lanes::D);
                let made = self.both(|s, h| {
                    let order = s.half(o.a, h);
                    s.picked(order, [b, b], 1)
                });
                self.set_halves(o.out, Lanes::D, &made);
            }
            EVEX_Vpermq_zmm_k1z_zmm_zmmm512b64 => {
                let b = self.source(o.rm, Lanes::Q);
                let one = self.doubles([1 << 32; 8]);
                let made = self.both(|s, h| {
                    // The numbers of both halves of each lane.
                    let order = s.half(o.a, h);
                    let twice = s.x2i(VEX_Vpslld_ymm_ymm_imm8, order, 1);
                    let both = s.x2i(VEX_Vpshufd_ymm_ymmm256_imm8, twice, 0xa0);
                    let order = s.x3(VEX_Vpor_ymm_ymm_ymmm256, both, Mem::constant(one, 0));
                    s.picked(order, [b, b], 1)
                });
                self.set_halves(o.out, Lanes::Q, &made);
            }
            EVEX_Vpermi2d_zmm_k1z_zmm_zmmm512b32 => {
                let (a, b) = (Source::Vector(halves(o.a).0), self.source(o.rm, Lanes::D));
                let made = self.both(|s, h| {
                    let order = s.half(o.out.reg, h);
                    s.picked(order, [a, b], 2)
                });
                self.set_halves(o.out, Lanes::D, &made);
            }
            EVEX_Vpermi2w_zmm_k1z_zmm_zmmm512 => return self.halves_picked(o),
            EVEX_Vshufi32x4_zmm_k1z_zmm_zmmm512b32_imm8 | EVEX_Vshufi64x2_zmm_k1z_zmm_zmmm512b64_imm8 => {
                let b = self.source(o.rm, Lanes::Q);
                let a = [0, 1].map(|h| self.half(o.a, h));
                let b = [0, 1].map(|h| self.in_register(b, h));
                let made = [(a, o.n), (b, o.n >> 4)].map(|([x, y], n)| {
                    let order = n & 3 | (n >> 2 & 3) << 4;
                    self.x3i(VEX_Vperm2i128_ymm_ymm_ymmm256_imm8, x, y, order)
                });
                self.set_halves(o.out, Lanes::D, &made);
            }
            EVEX_Vpmovqd_ymmm256_k1z_zmm => {
                let Rm::Reg(r) = o.rm else { return false };
                let [x, y] = [0, 1].map(|h| self.half(r, h));
                let made = self.narrow_pair(x, y);
                self.set_halves(o.out, Lanes::D, &[made]);
            }
            EVEX_Vpmovdw_ymmm256_k1z_zmm => {
                let Rm::Reg(r) = o.rm else { return false };
                let made = self.words_of(r);
                self.set_halves(o.out, Lanes::D, &[made]);
            }
            EVEX_Vpmovsxdq_zmm_k1z_ymmm256 => self.widened(o, VEX_Vpmovsxdq_ymm_xmmm128, Lanes::Q, 16),
            EVEX_Vpmovzxdq_zmm_k1z_ymmm256 => self.widened(o, VEX_Vpmovzxdq_ymm_xmmm128, Lanes::Q, 16),
            EVEX_Vpmovzxwd_zmm_k1z_ymmm256 => self.widened(o, VEX_Vpmovzxwd_ymm_xmmm128, Lanes::D, 16),
            EVEX_Vpmovzxbd_zmm_k1z_xmmm128 => self.widened(o, VEX_Vpmovzxbd_ymm_xmmm64, Lanes::D, 8),
            EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae => self.widened(o, VEX_Vcvtps2pd_ymm_xmmm128, Lanes::Q, 16),
            EVEX_Vcvtdq2pd_zmm_k1z_ymmm256b32_er => self.widened(o, VEX_Vcvtdq2pd_ymm_xmmm128, Lanes::Q, 16),
            EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae => self.widened(o, VEX_Vcvtph2ps_ymm_xmmm128, Lanes::D, 16),
            _ => return self.spread_or_taken(o),
        }
        true
    }

    /// Each half from half of the lanes of the source, or from so many bytes of memory.
    fn widened(&mut self, o: Ops, code: Code, lanes: Lanes, bytes: i32) {
        let made = match o.rm {
            Rm::Reg(r) => {
                let x = self.half(r, 0);
                self.both(|s, h| {
                    let half = s.quarter(x, h);
                    s.x2(code, half)
                })
            }
            Rm::Mem(m) if o.out.mask == Register::None || m.is_own() => {
                [0, 1].map(|h| self.x2(code, m.behind(bytes * h)))
            }
            Rm::Mem(m) => {
                // Lanes that take no part may lie outside of memory.
                self.lanes_from(o, m, bytes == 8);
                [0, 1].map(|h| self.x2(Code::VEX_Vmovdqu_ymm_ymmm256, slot(BYTES + 32 * h)))
            }
        };
        self.set_halves(o.out, lanes, &made);
    }

    /// Lanes of one vector, or of two of them, by number: the three lowest bits are the lane of a half, the next one the half, the next one the
    /// vector.
    fn picked(&mut self, order: Register, from: [Source; 2], n: usize) -> Register {
        let pick = |s: &mut Asm, of: Source| {
            let [x, y] = [0, 1].map(|h| {
                let half = s.rm_of(of, h);
                s.x3(Code::VEX_Vpermd_ymm_ymm_ymmm256, order, half)
            });
            let upper = s.x2i(Code::VEX_Vpslld_ymm_ymm_imm8, order, 28);
            s.blend_by_sign(x, y, upper)
        };
        let pins = self.n().cache.pins();
        let first = pick(self, from[0]);
        if n == 1 {
            return first;
        }
        self.n().cache.unpin(pins | 1 << number_of(first));
        let second = pick(self, from[1]);
        let other = self.x2i(Code::VEX_Vpslld_ymm_ymm_imm8, order, 27);
        self.blend_by_sign(first, second, other)
    }

    /// `yes` in lanes of 32 bits whose first bit is set in `mask`.
    fn blend_by_sign(&mut self, no: Register, yes: Register, mask: Register) -> Register {
        self.choice(Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm, no, yes, mask)
    }

    /// The lower halves of sixteen lanes, one after the other.
    pub(super) fn words_of(&mut self, r: Register) -> Register {
        let kept = self.all(Lanes::D, 0xffff);
        let [x, y] = [0, 1].map(|h| {
            let x = self.half(r, h);
            self.x3(Code::VEX_Vpand_ymm_ymm_ymmm256, x, kept)
        });
        let packed = self.x3(Code::VEX_Vpackusdw_ymm_ymm_ymmm256, x, y);
        self.x2i(Code::VEX_Vpermq_ymm_ymmm256_imm8, packed, 0xd8)
    }

    /// The lowest bytes of sixteen lanes, in 128 bits.
    pub(super) fn bytes_of(&mut self, r: Register) -> Register {
        let kept = self.all(Lanes::D, 0xff);
        let [x, y] = [0, 1].map(|h| {
            let x = self.half(r, h);
            self.x3(Code::VEX_Vpand_ymm_ymm_ymmm256, x, kept)
        });
        let words = self.x3(Code::VEX_Vpackusdw_ymm_ymm_ymmm256, x, y);
        let bytes = self.x3(Code::VEX_Vpackuswb_ymm_ymm_ymmm256, words, words);
        let ordered = self.in_order(bytes);
        low(ordered)
    }

    /// Elements of 16 bits of two vectors by number, one after the other through memory.
    fn halves_picked(&mut self, o: Ops) -> bool {
        let Rm::Reg(second) = o.rm else { return false };
        let out = halves(o.out.reg).0;
        let slots = [out, halves(o.a).0, halves(second).0].map(|v| {
            let [m, _] = [0, 1].map(|h| {
                let _ = self.half_of_vector(v, h);
                self.at_slot(Value::half(v, h as u8))
            });
            m
        });
        let (count, at) = (Register::RAX, Register::RCX);
        let [again, first, done] = [self.label(), self.label(), self.label()];
        let indexed = |m: Mem, index: Register| m.plus_scaled(index, 2);
        self.with_saved(&[count, at], |s| {
            s.number(count, 31);
            s.bind_inside(again);
            s.raw2(Code::Movzx_r32_rm16, Register::ECX, indexed(slots[0], count).into());
            s.imm(Code::And_rm32_imm32, Register::ECX, 63);
            s.imm(Code::Cmp_rm32_imm32, Register::ECX, 32);
            s.jump_inside(Code::Jb_rel32_64, first);
            s.raw2(Code::Movzx_r32_rm16, Register::ECX, indexed(slots[2].behind(-64), at).into());
            s.jump_inside(Code::Jmp_rel32_64, done);
            s.bind_inside(first);
            s.raw2(Code::Movzx_r32_rm16, Register::ECX, indexed(slots[1], at).into());
            s.bind_inside(done);
            s.raw_store(Code::Mov_rm16_r16, indexed(slot(BYTES), count), Register::CX);
            s.imm(Code::Sub_rm32_imm32, Register::EAX, 1);
            s.jump_inside(Code::Jns_rel32_64, again);
        });
        let made = [0, 1].map(|h| self.x2(Code::VEX_Vmovdqu_ymm_ymmm256, slot(BYTES + 32 * h)));
        self.set_halves(Out::from(o.out.reg), Lanes::D, &made);
        o.out.mask == Register::None
    }
}
