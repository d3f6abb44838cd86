//! Mask registers: words in memory, or vectors whose lanes are all ones or zero, or both.
//!
//! `k1` to `k4` are the lanes of a block from 0, 8, 16 and 24 on: parts of one word, whatever else happens to them. That word is all that a label keeps.

use iced_x86::{Code, Register};
use smallvec::SmallVec;

use super::super::operand::Base;
use super::super::{Asm, Mem, Out, Rm};
use super::Ops;
use super::state::{Lanes, Mask, Pieces, Value, WORDS, Word, number_of, slot};

fn word(k: u8) -> Mem {
    slot(WORDS + 8 * i32::from(k))
}

/// The host's number of a comparison of integers in parts: whether sources change places, and whether the answer is turned around.
fn parts_of(n: u32) -> (bool, bool, bool) {
    // Equal; else `a > b`, of sources that may change places, and turned around.
    match n {
        0 => (true, false, false),
        4 => (true, false, true),
        1 => (false, true, false),
        2 => (false, false, true),
        5 => (false, true, true),
        _ => (false, false, false),
    }
}

impl Asm {
    /// Forgets vectors of masks that are no mask any more.
    pub(super) fn drop_masks(&mut self) {
        let Some(n) = &mut self.narrow else { return };
        if std::mem::take(&mut n.has_stale_masks) && n.ids != 0 {
            n.words.retain(|w| n.cache.has_all(w.pieces));
            n.ids = n.words.ids() | n.ids_of_masks();
            n.cache.keep_masks(n.ids);
        }
    }

    /// Bits in memory were made from a mask that has as many lanes as they are.
    pub fn remember_word(&mut self, m: Mem, k: Register) {
        let (Some(at), Some(n)) = (self.place_in_context(m), &mut self.narrow) else { return };
        let pieces = n.masks[number_of(k)].d;
        if pieces.n == 4 {
            for (i, pair) in (0..).zip(pieces.list().chunks(2)) {
                n.words.add(Word { at: at + 2 * i, lanes: Lanes::D, pieces: Pieces::of(pair) });
            }
        }
    }

    /// Bytes from the context of the warp on, if it is a place there.
    fn place_in_context(&self, m: Mem) -> Option<i32> {
        let is_there = m.base == Base::Reg(Register::RBP) && m.index == Register::None;
        is_there.then(|| self.reach(m)).flatten()
    }

    /// An instruction writes so many bytes of memory, at most: words there are others from now on.
    pub(in super::super) fn writes_memory(&mut self, to: Option<Mem>, bytes: i32) {
        let Some(m) = to.filter(|m| m.base == Base::Reg(Register::RBP)) else { return };
        match (self.place_in_context(m), &mut self.narrow) {
            (Some(at), Some(n)) => n.words.written(at, bytes),
            _ => self.forget_words(),
        }
    }

    /// Any words may be others from now on.
    pub(in super::super) fn forget_words(&mut self) {
        if let Some(n) = &mut self.narrow {
            n.words.clear();
        }
    }

    fn mask(&mut self, k: Register) -> Mask {
        self.n().masks[number_of(k)]
    }

    fn set_mask(&mut self, k: Register, mask: Mask) {
        let n = self.n();
        n.masks[number_of(k)] = mask;
        n.has_stale_masks = true;
    }

    /// A register as pieces of a mask that are being made. `taken`: numbers that are in use besides those of masks.
    fn name(&mut self, r: Register, taken: &mut u32) -> u8 {
        let id = (self.n().ids | *taken).trailing_ones();
        if id >= 32 {
            self.lacks("a bug: more masks than there are slots");
            return 0;
        }
        *taken |= 1 << id;
        self.n().ids |= 1 << id;
        self.set(Value::mask(id as u8), r);
        id as u8
    }

    /// All pieces of a mask in lanes of a width, at least `n`.
    fn pieces_of(&mut self, k: Register, lanes: Lanes, n: u32) -> Pieces {
        let mut mask = self.mask(k);
        let have = *mask.pieces(lanes);
        if have.n >= n {
            return have;
        }
        let mut taken = mask.ids();
        let mut made = Pieces::default();
        match (lanes, mask) {
            // A word may have more lanes than were asked for until now.
            (Lanes::D, Mask { q, word: None, .. }) if q.n >= 2 => {
                for pair in q.list().chunks(2) {
                    let pins = self.n().cache.pins();
                    let [low, high] = [pair[0], pair[1]].map(|id| self.load(Value::mask(id)));
                    let r = self.narrow_pair(low, high);
                    made.push(self.name(r, &mut taken));
                    self.n().cache.unpin(pins);
                }
                // A mask of eight lanes has none above them.
                while made.n < n {
                    let zero = self.zero();
                    made.push(self.name(zero, &mut taken));
                }
            }
            (Lanes::Q, Mask { d, .. }) if 2 * d.n >= n => {
                for id in d.list() {
                    let pins = self.n().cache.pins();
                    let r = self.load(Value::mask(*id));
                    for h in 0..2 {
                        let half = self.quarter(r, h);
                        let r = self.x2(Code::VEX_Vpmovsxdq_ymm_xmmm128, half);
                        made.push(self.name(r, &mut taken));
                    }
                    self.n().cache.unpin(pins);
                }
            }
            (Lanes::D | Lanes::Q, Mask { word: Some((from, first)), .. }) => {
                let per = if lanes == Lanes::D { 8 } else { 4 };
                let bits = self.spread_from(word(from), Lanes::D);
                for i in 0..n {
                    let r = self.lanes_of_bits(bits, lanes, first + per * i);
                    made.push(self.name(r, &mut taken));
                }
            }
            _ => {
                self.lacks(format!("a bug: {k:?} is read as {lanes:?} and was not written"));
                let r = self.zero();
                (0..n).for_each(|_| made.push(self.name(r, &mut taken)));
            }
        }
        let n = self.n();
        *n.masks[number_of(k)].pieces(lanes) = made;
        n.has_stale_masks = true;
        made
    }

    /// Lanes of ones where bits of a word, which each lane has, are set.
    fn lanes_of_bits(&mut self, bits: Register, lanes: Lanes, first: u32) -> Register {
        let c = self.bits_of_lanes(lanes, first);
        if first + if lanes == Lanes::Q { 4 } else { 8 } > 32 {
            self.lacks("a bug: a mask of lanes above the last one");
        }
        let kept = self.x3(Code::VEX_Vpand_ymm_ymm_ymmm256, bits, c);
        self.x3(Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, kept, c)
    }

    /// The bit of each lane from one on, in lanes of 32 or 64 bits.
    pub(super) fn bits_of_lanes(&mut self, lanes: Lanes, first: u32) -> Mem {
        let bit = |i: u32| 1u32.checked_shl(first + i).unwrap_or(0);
        let c = match lanes {
            Lanes::Q => self.words(std::array::from_fn(|i| bit(i as u32 % 8 / 2))),
            _ => self.words(std::array::from_fn(|i| bit(i as u32 % 8))),
        };
        Mem::constant(c, 0)
    }

    /// A piece of a mask in a register, which must not be written.
    pub(super) fn piece(&mut self, k: Register, lanes: Lanes, h: usize) -> Register {
        let pieces = self.pieces_of(k, lanes, 2);
        self.load(Value::mask(pieces.ids[h]))
    }

    /// The first eight lanes of a mask in a register, in lanes of 32 bits.
    pub(super) fn piece_of_eight(&mut self, k: Register) -> Register {
        let pieces = self.pieces_of(k, Lanes::D, 1);
        self.load(Value::mask(pieces.ids[0]))
    }

    /// Sets a mask from the two vectors of a comparison, for lanes of another mask if `out` names one.
    fn set_compared(&mut self, out: Out, lanes: Lanes, made: [Register; 2]) {
        let mut pieces = Pieces::default();
        let mut taken = 0;
        for (h, r) in made.into_iter().enumerate() {
            let mut r = r;
            if out.mask != Register::None {
                let also = self.piece(out.mask, lanes, h);
                r = self.x3(Code::VEX_Vpand_ymm_ymm_ymmm256, r, also);
            }
            pieces.push(self.name(r, &mut taken));
        }
        self.set_mask(out.reg, Mask::of(lanes, pieces));
    }

    /// Lanes turned around.
    fn not(&mut self, r: Register) -> Register {
        let ones = self.all(Lanes::D, u64::MAX);
        self.x3(Code::VEX_Vpxor_ymm_ymm_ymmm256, r, ones)
    }

    /// What writes or reads a mask.
    pub(super) fn mask_op(&mut self, o: Ops) -> bool {
        use Code::*;
        match o.code {
            VEX_Kmovd_kr_r32 => self.mask_from_word(o),
            VEX_Kmovb_kr_km8 | VEX_Kmovw_kr_km16 => match o.rm {
                Rm::Reg(k) => {
                    let mask = self.mask(k);
                    self.set_mask(o.out.reg, mask);
                }
                Rm::Mem(m) => {
                    let is_byte = o.code == VEX_Kmovb_kr_km8;
                    let (spread, lanes, per) = if is_byte {
                        (VEX_Vpbroadcastb_ymm_xmmm8, Lanes::Q, 4)
                    } else {
                        (VEX_Vpbroadcastw_ymm_xmmm16, Lanes::D, 8)
                    };
                    let at = self.place_in_context(m);
                    let n = self.n();
                    let known = at.and_then(|at| n.words.find(at, lanes)).filter(|w| n.cache.has_all(w.pieces));
                    if let Some(word) = known {
                        self.set_mask(o.out.reg, Mask::of(lanes, word.pieces));
                        return true;
                    }
                    let bits = self.x2(spread, m);
                    let made = [0, 1].map(|i| self.lanes_of_bits(bits, lanes, per * i));
                    self.set_compared(o.out, lanes, made);
                    if let Some(at) = at {
                        let pieces = *self.n().masks[number_of(o.out.reg)].pieces(lanes);
                        self.n().words.add(Word { at, lanes, pieces });
                    }
                }
            },
            VEX_Kmovd_r32_kr | VEX_Kmovw_r32_kr => self.word_from_mask(o),
            VEX_Kshiftrd_kr_kr_imm8 => {
                let Rm::Reg(k) = o.rm else { return false };
                match self.mask(k).word {
                    Some((from, first)) => {
                        self.set_mask(o.out.reg, Mask { word: Some((from, first + o.n)), ..Mask::default() });
                    }
                    None => self.lacks("a shift of a mask that is no word"),
                }
            }
            VEX_Kandw_kr_kr_kr => self.combined(o, VEX_Vpand_ymm_ymm_ymmm256),
            VEX_Korw_kr_kr_kr => self.combined(o, VEX_Vpor_ymm_ymm_ymmm256),
            VEX_Kxnorw_kr_kr_kr => {
                // A mask with itself.
                let ones = self.ones();
                let mut taken = 0;
                let id = self.name(ones, &mut taken);
                let both = Pieces::twice(id);
                self.set_mask(o.out.reg, Mask { word: None, d: both, q: both, b: both });
            }
            VEX_Kunpckbw_kr_kr_kr | VEX_Kunpckwd_kr_kr_kr => {
                let Rm::Reg(low) = o.rm else { return false };
                let is_byte = o.code == VEX_Kunpckbw_kr_kr_kr;
                let (high, q) = (self.mask(o.a), if is_byte { 2 } else { 4 });
                let mask = if self.mask(low).q.n == q && high.q.n == q {
                    Mask::of(Lanes::Q, self.mask(low).q.and(high.q))
                } else {
                    let [low, high] = [low, o.a].map(|k| self.pieces_of(k, Lanes::D, q / 2));
                    Mask::of(Lanes::D, low.and(high))
                };
                self.set_mask(o.out.reg, mask);
            }
            VEX_Kortestw_kr_kr => {
                let k = o.out.reg;
                let pieces = if self.mask(k).d.n > 0 { self.mask(k).d } else { self.pieces_of(k, Lanes::Q, 2) };
                let mut all = self.load(Value::mask(pieces.ids[0]));
                for id in &pieces.list()[1..] {
                    let r = self.load(Value::mask(*id));
                    all = self.x3(VEX_Vpor_ymm_ymm_ymmm256, all, r);
                }
                self.raw2(VEX_Vptest_ymm_ymmm256, all, all.into());
            }
            EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8 => self.compared(o, Lanes::D, true),
            EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8 => self.compared(o, Lanes::D, false),
            EVEX_Vpcmpq_kr_k1_zmm_zmmm512b64_imm8 => self.compared(o, Lanes::Q, true),
            EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8 => self.compared(o, Lanes::Q, false),
            EVEX_Vpcmpeqd_kr_k1_zmm_zmmm512b32 => self.compared(Ops { n: 0, ..o }, Lanes::D, true),
            EVEX_Vpcmpeqq_kr_k1_zmm_zmmm512b64 => self.compared(Ops { n: 0, ..o }, Lanes::Q, true),
            EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae => {
                self.compared_floats(o, VEX_Vcmpps_ymm_ymm_ymmm256_imm8, Lanes::D)
            }
            EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae => {
                self.compared_floats(o, VEX_Vcmppd_ymm_ymm_ymmm256_imm8, Lanes::Q)
            }
            EVEX_Vfpclassps_kr_k1_zmmm512b32_imm8 => {
                // Subnormal numbers alone: from 1 to the greatest of them without its sign.
                if o.n != 0x20 {
                    return false;
                }
                let b = self.source(o.rm, Lanes::D);
                let [sign, one, most] = [0x7fff_ffff, u64::from(u32::MAX), 0x007f_fffe].map(|x| self.all(Lanes::D, x));
                let made = self.both(|this, h| {
                    let x = this.in_register(b, h);
                    let x = this.x3(VEX_Vpand_ymm_ymm_ymmm256, x, sign);
                    let x = this.x3(VEX_Vpaddd_ymm_ymm_ymmm256, x, one);
                    let least = this.x3(VEX_Vpminud_ymm_ymm_ymmm256, x, most);
                    this.x3(VEX_Vpcmpeqd_ymm_ymm_ymmm256, least, x)
                });
                self.set_compared(o.out, Lanes::D, made);
            }
            EVEX_Vptestmd_kr_k1_zmm_zmmm512b32 => self.tested(o, Lanes::D, true),
            EVEX_Vptestmq_kr_k1_zmm_zmmm512b64 => self.tested(o, Lanes::Q, true),
            EVEX_Vptestmb_kr_k1_zmm_zmmm512 => self.tested(o, Lanes::B, true),
            EVEX_Vptestnmd_kr_k1_zmm_zmmm512b32 => self.tested(o, Lanes::D, false),
            EVEX_Vptestnmq_kr_k1_zmm_zmmm512b64 => self.tested(o, Lanes::Q, false),
            EVEX_Vpmovd2m_kr_zmm => self.signs(o, VEX_Vpcmpgtd_ymm_ymm_ymmm256, Lanes::D),
            EVEX_Vpmovq2m_kr_zmm => self.signs(o, VEX_Vpcmpgtq_ymm_ymm_ymmm256, Lanes::Q),
            EVEX_Vpmovb2m_kr_zmm => self.signs(o, VEX_Vpcmpgtb_ymm_ymm_ymmm256, Lanes::B),
            EVEX_Vpmovm2d_zmm_kr => self.lanes_of_mask(o, Lanes::D),
            EVEX_Vpmovm2q_zmm_kr => self.lanes_of_mask(o, Lanes::Q),
            EVEX_Vpmovm2b_zmm_kr => self.lanes_of_mask(o, Lanes::B),
            EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32 => self.chosen(o, Lanes::D),
            EVEX_Vpblendmq_zmm_k1z_zmm_zmmm512b64 => self.chosen(o, Lanes::Q),
            _ => return false,
        }
        true
    }

    fn lanes_of_mask(&mut self, o: Ops, lanes: Lanes) {
        let Rm::Reg(k) = o.rm else { return };
        self.each(o.out, lanes, |s, h| s.piece(k, lanes, h));
    }

    /// `rm` where the mask is set, else `a`.
    fn chosen(&mut self, o: Ops, lanes: Lanes) {
        let b = self.source(o.rm, lanes);
        let out = Out::from(o.out.reg);
        self.each(out, lanes, |s, h| {
            let (no, yes) = (s.half(o.a, h), s.in_register(b, h));
            let mask = s.piece(o.out.mask, lanes, h);
            s.blend(no, yes, mask)
        });
    }

    fn mask_from_word(&mut self, o: Ops) {
        let Rm::Reg(r) = o.rm else { return };
        let k = number_of(o.out.reg) as u8;
        self.raw_store(Code::Mov_rm32_r32, word(k), r);
        for mask in &mut self.n().masks {
            if mask.word.is_some_and(|(of, _)| of == k) {
                mask.word = None;
            }
        }
        self.set_mask(o.out.reg, Mask { word: Some((k, 0)), ..Mask::default() });
    }

    /// The bits of a mask in a general register.
    fn word_from_mask(&mut self, o: Ops) {
        let Rm::Reg(k) = o.rm else { return };
        let mask = self.mask(k);
        let n = match (mask.d.n, mask.q.n) {
            (0, q) => q / 2,
            (d, _) => d,
        };
        if let (0, Some((from, first))) = (n, mask.word) {
            let m = word(from).behind(first as i32 / 8);
            match (o.code, first) {
                (Code::VEX_Kmovd_r32_kr, 0) => self.raw2(Code::Mov_r32_rm32, o.out.reg, m.into()),
                (Code::VEX_Kmovw_r32_kr, 0 | 8 | 16) => self.raw2(Code::Movzx_r32_rm16, o.out.reg, m.into()),
                _ => self.lacks("bits of a mask above the last lane"),
            }
            return;
        }
        self.bits_of(k, n, o.out.reg);
    }

    /// The bits of `n` pieces of eight lanes.
    pub(super) fn bits_of(&mut self, k: Register, n: u32, to: Register) {
        use Code::*;
        let pieces = self.pieces_of(k, Lanes::D, n);
        let list: SmallVec<[Register; 4]> =
            pieces.list().iter().take(n as usize).map(|id| self.load(Value::mask(*id))).collect();
        match list[..] {
            [one] => self.raw2(VEX_Vmovmskps_r32_ymm, to, one.into()),
            [a, b] => {
                let words = self.x3(VEX_Vpackssdw_ymm_ymm_ymmm256, a, b);
                let bytes = self.x3(VEX_Vpacksswb_ymm_ymm_ymmm256, words, words);
                let ordered = self.in_order(bytes);
                self.raw2(VEX_Vpmovmskb_r32_xmm, to, low(ordered).into());
            }
            [a, b, c, d] => {
                let x = self.x3(VEX_Vpackssdw_ymm_ymm_ymmm256, a, b);
                let y = self.x3(VEX_Vpackssdw_ymm_ymm_ymmm256, c, d);
                let bytes = self.x3(VEX_Vpacksswb_ymm_ymm_ymmm256, x, y);
                let ordered = self.in_order(bytes);
                self.raw2(VEX_Vpmovmskb_r32_ymm, to, ordered.into());
            }
            _ => self.lacks("a bug: bits of a mask that has none"),
        }
    }

    /// Groups of four bytes in the order of lanes, after both packs.
    pub(super) fn in_order(&mut self, bytes: Register) -> Register {
        let order = self.words(std::array::from_fn(|i| [0, 4, 1, 5, 2, 6, 3, 7][i % 8]));
        let order = self.x2(Code::VEX_Vmovdqu_ymm_ymmm256, Mem::constant(order, 0));
        self.x3(Code::VEX_Vpermd_ymm_ymm_ymmm256, order, bytes)
    }

    fn combined(&mut self, o: Ops, code: Code) {
        let Rm::Reg(b) = o.rm else { return };
        let (x, y) = (self.mask(o.a), self.mask(b));
        let lanes = if x.q.n == 2 && y.q.n == 2 { Lanes::Q } else { Lanes::D };
        let made = self.both(|this, h| {
            let (p, q) = (this.piece(o.a, lanes, h), this.piece(b, lanes, h));
            this.x3(code, p, q)
        });
        self.set_compared(Out::from(o.out.reg), lanes, made);
    }

    fn compared(&mut self, o: Ops, lanes: Lanes, signed: bool) {
        use Code::*;
        let (is_equal, swapped, turned) = parts_of(o.n);
        let (equal, greater) = match lanes {
            Lanes::Q => (VEX_Vpcmpeqq_ymm_ymm_ymmm256, VEX_Vpcmpgtq_ymm_ymm_ymmm256),
            _ => (VEX_Vpcmpeqd_ymm_ymm_ymmm256, VEX_Vpcmpgtd_ymm_ymm_ymmm256),
        };
        let b = self.source(o.rm, lanes);
        let sign = if lanes == Lanes::Q { 1 << 63 } else { 1 << 31 };
        let sign = self.all(lanes, sign);
        let made = self.both(|this, h| {
            let x = this.half(o.a, h);
            if is_equal {
                let y = this.rm_of(b, h);
                let r = this.x3(equal, x, y);
                return if turned { this.not(r) } else { r };
            }
            let y = this.in_register(b, h);
            if !signed && lanes == Lanes::D && turned {
                // Not above, or not below: equal to the smaller, or to the larger one.
                let code = if swapped { VEX_Vpmaxud_ymm_ymm_ymmm256 } else { VEX_Vpminud_ymm_ymm_ymmm256 };
                let end = this.x3(code, x, y);
                return this.x3(equal, end, x);
            }
            let [x, y] = if signed { [x, y] } else { [x, y].map(|r| this.x3(VEX_Vpxor_ymm_ymm_ymmm256, r, sign)) };
            let r = if swapped { this.x3(greater, y, x) } else { this.x3(greater, x, y) };
            if turned { this.not(r) } else { r }
        });
        self.set_compared(o.out, lanes, made);
    }

    fn compared_floats(&mut self, o: Ops, code: Code, lanes: Lanes) {
        let b = self.source(o.rm, lanes);
        let made = self.both(|this, h| {
            let x = this.half(o.a, h);
            let y = this.rm_of(b, h);
            this.x3i(code, x, y, o.n)
        });
        self.set_compared(o.out, lanes, made);
    }

    /// Lanes where both have a bit, or where they have none.
    fn tested(&mut self, o: Ops, lanes: Lanes, some: bool) {
        use Code::*;
        let equal = match lanes {
            Lanes::B => VEX_Vpcmpeqb_ymm_ymm_ymmm256,
            Lanes::D => VEX_Vpcmpeqd_ymm_ymm_ymmm256,
            Lanes::Q => VEX_Vpcmpeqq_ymm_ymm_ymmm256,
        };
        let b = self.source(o.rm, lanes);
        let zero = self.zero();
        let made = self.both(|this, h| {
            let x = this.half(o.a, h);
            let y = this.rm_of(b, h);
            let both = if y == Rm::Reg(x) { x } else { this.x3(VEX_Vpand_ymm_ymm_ymmm256, x, y) };
            let r = this.x3(equal, both, zero);
            if some { this.not(r) } else { r }
        });
        self.set_compared(o.out, lanes, made);
    }

    fn signs(&mut self, o: Ops, greater: Code, lanes: Lanes) {
        let b = self.source(o.rm, lanes);
        let zero = self.zero();
        let made = self.both(|this, h| {
            let x = this.in_register(b, h);
            this.x3(greater, zero, x)
        });
        self.set_compared(o.out, lanes, made);
    }

    /// The mask of a gather is clear after it.
    pub(super) fn clear_mask(&mut self, k: Register) {
        self.set_mask(k, Mask::default());
    }

    /// Lower halves of the lanes of two vectors of 64 bits.
    pub(super) fn narrow_pair(&mut self, low: Register, high: Register) -> Register {
        let x = self.x3i(Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8, low, high, 0x88);
        self.x2i(Code::VEX_Vpermq_ymm_ymmm256_imm8, x, 0xd8)
    }

    /// The lower or the upper 128 bits of a register.
    pub(super) fn quarter(&mut self, r: Register, h: usize) -> Register {
        if h == 0 {
            return low(r);
        }
        let t = self.temp();
        self.raw2i(Code::VEX_Vextracti128_xmmm128_ymm_imm8, low(t), r.into(), 1);
        low(t)
    }
}

/// The lower halves of the registers of the host.
const LOWER: [Register; 16] = {
    use Register::*;
    [XMM0, XMM1, XMM2, XMM3, XMM4, XMM5, XMM6, XMM7, XMM8, XMM9, XMM10, XMM11, XMM12, XMM13, XMM14, XMM15]
};

/// The lower half of a register of the host.
pub(super) fn low(r: Register) -> Register {
    LOWER[number_of(r) % 16]
}
