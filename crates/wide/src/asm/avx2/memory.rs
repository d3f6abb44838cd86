//! Moves to and from memory and general registers, gathers and scatters.
//!
//! What lies in contexts, on the stack and among constants is the code's own: it is read and written as a whole and blended. Of other memory nothing is touched
//! outside of a mask.

use iced_x86::{Code, Register};

use super::super::{Asm, Mem, Ops2, Rm, low32};
use super::masks::low;
use super::state::Value;
use super::state::{BYTES, Lanes, Source, halves, slot};
use super::{Form, Ops};

const LOAD: Code = Code::VEX_Vmovdqu_ymm_ymmm256;
const STORE: Code = Code::VEX_Vmovdqu_ymmm256_ymm;
/// General registers that loops over lanes use.
const SPARE: [Register; 6] = [Register::RAX, Register::RCX, Register::RDX, Register::RSI, Register::R9, Register::R10];

/// `N` general registers that a memory operand does not have.
fn spare<const N: usize>(m: Mem) -> [Register; N] {
    let mut list = SPARE.into_iter().filter(|r| !m.uses(*r));
    std::array::from_fn(|_| list.next().unwrap_or(Register::RAX))
}

/// The lowest 8 or 16 bits of a general register.
fn narrow(r: Register, bits: u32) -> Register {
    let n = r as u32 - Register::RAX as u32;
    match (bits, n) {
        (8, 0..4) => Register::AL + n,
        (8, _) => Register::SPL + (n - 4),
        _ => Register::AX + n,
    }
}

impl Asm {
    pub(super) fn moved(&mut self, o: Ops) -> bool {
        use Code::*;
        match o.code {
            EVEX_Vmovdqu32_zmm_k1z_zmmm512 => self.loaded(o, Lanes::D, VEX_Vpmaskmovd_ymm_ymm_m256),
            EVEX_Vmovdqu64_zmm_k1z_zmmm512 => self.loaded(o, Lanes::Q, VEX_Vpmaskmovq_ymm_ymm_m256),
            EVEX_Vmovdqu8_zmm_k1z_zmmm512 => {
                let b = self.source(o.rm, Lanes::B);
                self.each(o.out, Lanes::B, |s, h| s.in_register(b, h));
            }
            EVEX_Vmovd_rm32_xmm | EVEX_Vmovq_rm64_xmm => {
                let Rm::Reg(r) = o.rm else { return false };
                let x = self.half(r, 0);
                let code = if o.code == EVEX_Vmovd_rm32_xmm { VEX_Vmovd_rm32_xmm } else { VEX_Vmovq_rm64_xmm };
                self.raw2(code, o.out.reg, low(x).into());
            }
            EVEX_Vmovd_xmm_rm32 => self.loaded_some(o, VEX_Vmovd_xmm_rm32),
            EVEX_Vmovq_xmm_rm64 => self.loaded_some(o, VEX_Vmovq_xmm_rm64),
            EVEX_Vmovq_xmm_xmmm64 => self.loaded_some(o, VEX_Vmovq_xmm_xmmm64),
            EVEX_Vmovdqu32_xmm_k1z_xmmm128 => self.loaded_some(o, VEX_Vmovdqu_xmm_xmmm128),
            EVEX_Vmovdqu32_ymm_k1z_ymmm256 => self.loaded_some(o, LOAD),
            VEX_Vaddss_xmm_xmm_xmmm32 | VEX_Vaddsd_xmm_xmm_xmmm64 => {
                let a = self.half(o.a, 0);
                let b = self.low_of(o.rm);
                let t = self.temp();
                self.raw3(o.code, low(t), low(a), b);
                self.set_halves(o.out, Lanes::D, &[t]);
            }
            VEX_Vucomiss_xmm_xmmm32 | VEX_Vucomisd_xmm_xmmm64 => {
                let a = self.half(o.out.reg, 0);
                let b = self.low_of(o.rm);
                self.raw2(o.code, low(a), b);
            }
            EVEX_Vpgatherdd_zmm_k1_vm32z => return self.gathered(o, VEX_Vpgatherdd_ymm_vm32y_ymm, Lanes::D, false),
            EVEX_Vpgatherqq_zmm_k1_vm64z => return self.gathered(o, VEX_Vpgatherqq_ymm_vm64y_ymm, Lanes::Q, false),
            EVEX_Vpgatherdq_zmm_k1_vm32y => return self.gathered(o, VEX_Vpgatherdq_ymm_vm32x_ymm, Lanes::Q, true),
            EVEX_Vpgatherqd_ymm_k1_vm64z => return self.gathered_words(o),
            _ => return false,
        }
        true
    }

    fn low_of(&mut self, rm: Rm) -> Rm {
        match rm {
            Rm::Reg(r) => low(self.half(r, 0)).into(),
            mem => mem,
        }
    }

    /// The first lanes of a vector, from memory or a general register; the others are zero.
    fn loaded_some(&mut self, o: Ops, code: Code) {
        if matches!(o.rm, Rm::Reg(r) if r.is_vector_register()) {
            self.lacks(format!("{:?} between vectors", o.code));
        }
        let t = self.temp();
        self.raw2(code, if code == LOAD { t } else { low(t) }, o.rm);
        self.set_halves(o.out, Lanes::D, &[t]);
    }

    fn loaded(&mut self, o: Ops, lanes: Lanes, masked: Code) {
        let b = self.source(o.rm, lanes);
        let is_masked = o.out.mask != Register::None;
        let is_masked_load = is_masked && matches!(o.rm, Rm::Mem(m) if !m.is_own());
        // What the code owns is read as the blend reads it.
        if is_masked
            && !is_masked_load
            && let Source::Mem(m) = b
        {
            let (v, n) = halves(o.out.reg);
            for h in 0..n {
                let pins = self.n().cache.pins();
                self.write_some(v, h, m.behind(32 * h as i32).into(), o.out.mask, lanes);
                self.n().cache.unpin(pins);
            }
            self.end_write(v, n);
            return;
        }
        self.each(o.out, lanes, |s, h| match s.rm_of(b, h) {
            Rm::Mem(m) if is_masked_load => {
                let mask = s.piece(o.out.mask, lanes, h);
                s.x3(masked, mask, m)
            }
            Rm::Mem(m) => s.x2(LOAD, m),
            Rm::Reg(r) => r,
        });
    }

    /// A store of a vector.
    pub(in super::super) fn narrow_store(&mut self, o: Ops2) {
        use Code::*;
        self.n().cache.begin();
        match o.code {
            EVEX_Vmovdqu32_zmmm512_k1z_zmm => self.stored(o, Lanes::D, VEX_Vpmaskmovd_m256_ymm_ymm),
            EVEX_Vmovdqu64_zmmm512_k1z_zmm => self.stored(o, Lanes::Q, VEX_Vpmaskmovq_m256_ymm_ymm),
            EVEX_Vmovd_rm32_xmm => self.stored_some(o, VEX_Vmovd_rm32_xmm),
            EVEX_Vmovq_xmmm64_xmm => self.stored_some(o, VEX_Vmovq_xmmm64_xmm),
            EVEX_Vmovdqu32_xmmm128_k1z_xmm => self.stored_some(o, VEX_Vmovdqu_xmmm128_xmm),
            EVEX_Vmovdqu32_ymmm256_k1z_ymm => self.stored_some(o, STORE),
            EVEX_Vpmovdb_xmmm128_k1z_zmm if o.mask == Register::None => {
                let x = self.bytes_of(o.reg);
                self.raw_store(VEX_Vmovdqu_xmmm128_xmm, o.mem, x);
            }
            EVEX_Vpmovdw_ymmm256_k1z_zmm if o.mask == Register::None => {
                let x = self.words_of(o.reg);
                self.raw_store(STORE, o.mem, x);
            }
            EVEX_Vpmovdb_xmmm128_k1z_zmm => self.lanes_to(o, 8),
            EVEX_Vpmovdw_ymmm256_k1z_zmm => self.lanes_to(o, 16),
            EVEX_Vpscatterdd_vm32z_k1_zmm => self.scattered(o, 16, 4, 4),
            EVEX_Vpscatterdq_vm32y_k1_zmm => self.scattered(o, 8, 4, 8),
            EVEX_Vpscatterqd_vm64z_k1_ymm => self.scattered(o, 8, 8, 4),
            EVEX_Vpscatterqq_vm64z_k1_zmm => self.scattered(o, 8, 8, 8),
            other => self.lacks(format!("{other:?}")),
        }
        self.drop_masks();
    }

    /// The first lanes of a vector.
    fn stored_some(&mut self, o: Ops2, code: Code) {
        let r = self.half(o.reg, 0);
        if o.mask != Register::None {
            if o.code != Code::EVEX_Vmovdqu32_ymmm256_k1z_ymm {
                self.lacks(format!("{:?} under a mask", o.code));
            }
            let mask = self.piece_of_eight(o.mask);
            self.raw_store_some(Code::VEX_Vpmaskmovd_m256_ymm_ymm, o.mem, mask, r);
            return;
        }
        self.raw_store(code, o.mem, if code == STORE { r } else { low(r) });
    }

    /// Vectors that follow each other in memory, for the lanes of a word in memory: without a mask where that names all of them. Clobbers flags.
    pub fn store_row(&mut self, m: Mem, rows: &[Register], lanes: Mem, is_wide: bool) {
        self.n().cache.begin();
        let (width, per, masked) = if is_wide {
            (Lanes::Q, 4, Code::VEX_Vpmaskmovq_m256_ymm_ymm)
        } else {
            (Lanes::D, 8, Code::VEX_Vpmaskmovd_m256_ymm_ymm)
        };
        // All registers that either way needs are there before they part.
        let [bits, mask] = [self.temp(), self.temp()];
        let list: Vec<(usize, Register)> = (0..2 * rows.len()).map(|k| (k, self.half(rows[k / 2], k % 2))).collect();
        let at = |k: usize| m.behind(32 * k as i32);
        let [some, done] = [self.label(), self.label()];
        self.imm(Code::Cmp_rm32_imm8, lanes, -1);
        self.jump_inside(Code::Jne_rel32_64, some);
        list.iter().for_each(|(k, r)| self.raw_store(STORE, at(*k), *r));
        self.jump_inside(Code::Jmp_rel32_64, done);
        self.bind_inside(some);
        self.raw2(Code::VEX_Vpbroadcastd_ymm_xmmm32, bits, lanes.into());
        for (k, r) in list {
            let c = self.bits_of_lanes(width, per * k as u32);
            let [part, next] = [self.label(), self.label()];
            // A byte of the word is what one register has.
            if !is_wide {
                self.imm(Code::Cmp_rm8_imm8, lanes.behind(k as i32), -1);
                self.jump_inside(Code::Jne_rel32_64, part);
                self.raw_store(STORE, at(k), r);
                self.jump_inside(Code::Jmp_rel32_64, next);
                self.bind_inside(part);
            }
            self.raw3(Code::VEX_Vpand_ymm_ymm_ymmm256, mask, bits, c.into());
            self.raw3(Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, mask, mask, c.into());
            self.raw_store_some(masked, at(k), mask, r);
            self.bind_inside(next);
        }
        self.bind_inside(done);
    }

    fn stored(&mut self, o: Ops2, lanes: Lanes, masked: Code) {
        for h in 0..2 {
            let pins = self.n().cache.pins();
            let m = o.mem.behind(32 * h as i32);
            let r = self.half(o.reg, h);
            if o.mask == Register::None {
                self.raw_store(STORE, m, r);
            } else {
                let mask = self.piece(o.mask, lanes, h);
                if m.is_own() {
                    let old = self.x2(LOAD, m);
                    let new = self.blend(old, r, mask);
                    self.raw_store(STORE, m, new);
                } else {
                    self.raw_store_some(masked, m, mask, r);
                }
            }
            self.n().cache.unpin(pins);
        }
    }

    /// Goes through the lanes of a mask in ascending order. `each` gets the number of a lane in a register, and others that it may write.
    fn for_lanes<const N: usize>(
        &mut self,
        k: Register,
        pieces: u32,
        m: Mem,
        each: impl FnOnce(&mut Asm, Register, [Register; N]),
    ) {
        let [again, done] = [self.label(), self.label()];
        let list: [Register; 5] = spare(m);
        let [left, lane] = [list[0], list[1]];
        let used = &list[..2 + N];
        self.with_saved(used, |s| {
            s.bits_of(k, pieces, low32(left));
            s.raw2(Code::Test_rm32_r32, low32(left), low32(left).into());
            s.jump_inside(Code::Je_rel32_64, done);
            s.bind_inside(again);
            s.raw2(Code::Tzcnt_r32_rm32, low32(lane), low32(left).into());
            each(s, lane, std::array::from_fn(|i| list[2 + i]));
            s.raw2(Code::VEX_Blsr_r32_rm32, low32(left), low32(left).into());
            s.jump_inside(Code::Jne_rel32_64, again);
            s.bind_inside(done);
        });
    }

    /// Bytes or halves of the lanes of a mask, from memory into the space for bytes as lanes of 32 bits.
    pub(super) fn lanes_from(&mut self, o: Ops, m: Mem, is_byte: bool) {
        let zero = self.zero();
        (0..2).for_each(|h| self.raw_store(STORE, slot(BYTES + 32 * h), zero));
        let (code, scale) = if is_byte { (Code::Movzx_r32_rm8, 1) } else { (Code::Movzx_r32_rm16, 2) };
        self.for_lanes(o.out.mask, 2, m, |s, lane, [value]| {
            s.raw2(code, low32(value), m.plus_scaled(lane, scale).into());
            s.raw_store(Code::Mov_rm32_r32, slot(BYTES).plus_scaled(lane, 4), low32(value));
        });
    }

    /// Bytes or halves of the lanes of a mask to memory.
    fn lanes_to(&mut self, o: Ops2, bits: u32) {
        for h in 0..2 {
            let r = self.half(o.reg, h);
            self.raw_store(STORE, slot(BYTES + 32 * h as i32), r);
        }
        let code = if bits == 8 { Code::Mov_rm8_r8 } else { Code::Mov_rm16_r16 };
        self.for_lanes(o.mask, 2, o.mem, |s, lane, [value]| {
            s.raw2(Code::Mov_r32_rm32, low32(value), slot(BYTES).plus_scaled(lane, 4).into());
            s.raw_store(code, o.mem.plus_scaled(lane, bits / 8), narrow(value, bits));
        });
    }

    /// Lane by lane, the last one wins. `index` and `data`: bytes of a lane of each.
    fn scattered(&mut self, o: Ops2, n: u32, index: u32, data: u32) {
        let rows = [o.mem.index, o.reg].map(|r| {
            let (v, parts) = halves(r);
            for h in 0..parts {
                let pins = self.n().cache.pins();
                let _ = self.half_of_vector(v, h);
                let _ = self.at_slot(Value::half(v, h as u8));
                self.n().cache.unpin(pins);
            }
            Value::half(v, 0).slot()
        });
        let get = if index == 4 { Code::Movsxd_r64_rm32 } else { Code::Mov_r64_rm64 };
        self.for_lanes(o.mask, n / 8, o.mem, |s, lane, [at, value]| {
            s.raw2(get, at, rows[0].plus_scaled(lane, index).into());
            let to = o.mem.plus_scaled(at, 1);
            if data == 4 {
                s.raw2(Code::Mov_r32_rm32, low32(value), rows[1].plus_scaled(lane, 4).into());
                s.raw_store(Code::Mov_rm32_r32, to, low32(value));
            } else {
                s.raw2(Code::Mov_r64_rm64, value, rows[1].plus_scaled(lane, 8).into());
                s.raw_store(Code::Mov_rm64_r64, to, value);
            }
        });
        self.clear_mask(o.mask);
    }

    /// A gather of whole halves; `narrow_index`: from half as many bytes of numbers.
    fn gathered(&mut self, o: Ops, code: Code, lanes: Lanes, narrow_index: bool) -> bool {
        let Rm::Mem(m) = o.rm else { return false };
        let made = self.both(|s, h| {
            let index = if narrow_index {
                let x = s.half(m.index, 0);
                s.quarter(x, h)
            } else {
                s.half(m.index, h)
            };
            let mask = s.piece(o.out.mask, lanes, h);
            let mask = s.x2(Code::VEX_Vmovaps_ymm_ymmm256, mask);
            let old = s.half(o.out.reg, h);
            let t = s.x2(Code::VEX_Vmovaps_ymm_ymmm256, old);
            s.gather(code, t, Mem { index, ..m }, mask);
            t
        });
        self.set_halves(o.out.reg.into(), lanes, &made);
        self.clear_mask(o.out.mask);
        true
    }

    /// Eight lanes of 32 bits at numbers of 64 bits.
    fn gathered_words(&mut self, o: Ops) -> bool {
        let Rm::Mem(m) = o.rm else { return false };
        let [x, y] = self.both(|s, h| {
            let index = s.half(m.index, h);
            let mask = s.piece_of_eight(o.out.mask);
            let mask = s.quarter(mask, h);
            let t_mask = s.temp();
            s.raw2(Code::VEX_Vmovaps_xmm_xmmm128, low(t_mask), mask.into());
            let old = s.half(o.out.reg, 0);
            let old = s.quarter(old, h);
            let t = s.temp();
            s.raw2(Code::VEX_Vmovaps_xmm_xmmm128, low(t), old.into());
            s.gather(Code::VEX_Vpgatherqd_xmm_vm64y_xmm, low(t), Mem { index, ..m }, low(t_mask));
            t
        });
        let r = self.x3i(Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8, x, low(y), 1);
        self.set_halves(o.out.reg.into(), Lanes::D, &[r]);
        self.clear_mask(o.out.mask);
        true
    }

    fn gather(&mut self, code: Code, to: Register, m: Mem, mask: Register) {
        self.encode(Form::Gather, Ops::new(code, to, mask, m, 0));
    }
}
