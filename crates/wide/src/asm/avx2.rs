//! AVX2: what emitters write with vectors of 512 bits and mask registers, in the instructions that such a host has.
//!
//! # The model
//! The vectors 0 to 31 and the masks `k1` to `k7` of the emitters are *virtual* here. A vector is two halves of 256 bits, each with a slot in the block
//! of the CTA. Along a straight piece of code the sixteen registers of the host hold what was last used (`cache`), and a half may share one with a copy of it;
//! before a jump, slots get what changed. What registers hold at a label besides is what they hold wherever code comes from (`labels`).
//! A mask is a word, or vectors whose lanes are all ones or zero (`masks`): forms are made from each other when they are asked for.
//!
//! # What emitters can rely on
//! What they rely on with AVX-512: general registers other than operands stay, and so do flags, but for scatters, and masked loads and stores of bytes
//! and halves. `k5` to `k7` end at a label, and at the end of an instruction so do vectors 0 to 7: reading one after that is an error, never
//! something else than was written.
//!
//! An instruction without an expansion makes [`Asm::lack`] name it; the function then has no code here.

mod cache;
mod convert;
mod cross;
mod labels;
mod lanes;
mod masks;
mod memory;
mod pairs;
mod state;
mod table;
mod tuples;

use iced_x86::{Code, Register, RoundingControl};

use super::operand::{Form, Ops};
use super::{Asm, Mem, Out, Rm};
pub(super) use state::Narrow;
use state::{Lanes, Mask, SAVED, Source, Value, halves, is_vector, number_of, slot};
use table::{Way, way};

impl Mem {
    fn uses(self, r: Register) -> bool {
        self.base == super::Base::Reg(r) || self.index == r
    }

    /// Whether it is the code's own: constants, contexts and the stack.
    fn is_own(self) -> bool {
        match self.base {
            super::Base::Reg(r) => {
                self.index == Register::None && matches!(r, Register::RBP | Register::RSP | Register::RBX)
            }
            super::Base::Const(_) | super::Base::Label(_) => true,
        }
    }
}

impl Rm {
    fn has_vectors(self) -> bool {
        match self {
            Rm::Reg(r) => is_vector(r),
            Rm::Mem(m) => is_vector(m.index),
        }
    }
}

impl Asm {
    /// The first instruction that AVX2 code could not be made for.
    pub fn lack(&self) -> Option<&str> {
        self.narrow.as_ref()?.lack.as_deref()
    }

    /// Whether vectors are registers of the host, so that a call has to keep them.
    pub fn has_wide_vectors(&self) -> bool {
        self.narrow.is_none()
    }

    /// The start of an instruction of the SIMT IR: `live` are the vectors from 8 on, by bit, that somebody reads after it.
    pub fn begin_instruction(&mut self, live: u32) {
        if let Some(n) = &mut self.narrow {
            n.live = live;
        }
    }

    /// The end of an instruction of the SIMT IR: `live` are the vectors from 8 on, by bit, that somebody reads later.
    pub fn end_instruction(&mut self, live: u32) {
        let Some(n) = &mut self.narrow else { return };
        n.written = 0;
        n.live = u32::MAX;
        n.masks[5..].iter_mut().for_each(|m| *m = Mask::default());
        n.has_stale_masks = true;
        n.cache.keep(live);
        self.drop_masks();
    }

    /// From here on, nobody reads what vectors 0 to 7 had until now.
    pub(super) fn drop_temporaries(&mut self) {
        if let Some(n) = &mut self.narrow {
            n.written = 0;
            n.cache.keep(u32::MAX);
        }
    }

    /// Behind a label that is called: the first so many vectors are what the caller wrote to them, which their slots have.
    pub fn takes_vectors(&mut self, n: u32) {
        if let Some(narrow) = &mut self.narrow {
            narrow.written |= (1 << n) - 1;
        }
    }

    #[inline]
    fn n(&mut self) -> &mut Narrow {
        self.narrow.get_or_insert_default()
    }

    fn lacks(&mut self, what: impl Into<String>) {
        let what = what.into();
        self.n().lack.get_or_insert(what);
    }

    /// Whether an instruction is one for [`narrow`](Self::narrow).
    pub(super) fn is_narrowed(&self, o: &Ops) -> bool {
        self.narrow.is_some() && (is_vector(o.out.reg) || is_vector(o.a) || o.rm.has_vectors())
    }

    /// An instruction with vectors.
    pub(super) fn narrow(&mut self, o: Ops) {
        self.n().cache.begin();
        if o.round != RoundingControl::None && !self.rounds_by_itself(o.code) {
            self.set_rounding(o.round);
            self.expand(o);
            self.set_rounding(RoundingControl::RoundToNearest);
        } else {
            self.expand(o);
        }
        self.drop_masks();
    }

    /// The host's rounding, for instructions that cannot name one.
    fn set_rounding(&mut self, round: RoundingControl) {
        let bits = match round {
            RoundingControl::RoundDown => 1,
            RoundingControl::RoundUp => 2,
            RoundingControl::RoundTowardZero => 3,
            _ => 0,
        };
        let c = self.words([0x1f80 | bits << 13; 16]);
        self.op1(Code::VEX_Vldmxcsr_m32, Mem::constant(c, 0));
    }

    fn expand(&mut self, o: Ops) {
        match way(o.code) {
            // Zero, whatever the source has.
            Some(Way::Two(Code::VEX_Vpxor_ymm_ymm_ymmm256, lanes)) if o.rm == Rm::Reg(o.a) => {
                let zero = self.zero();
                self.each(o.out, lanes, |_, _| zero);
            }
            Some(Way::Two(code, lanes)) => {
                let b = self.source(o.rm, lanes);
                self.each(o.out, lanes, |s, h| {
                    let a = s.half(o.a, h);
                    let b = s.rm_of(b, h);
                    s.x3(code, a, b)
                });
            }
            Some(Way::One(code, lanes)) => {
                let b = self.source(o.rm, lanes);
                self.each(o.out, lanes, |s, h| {
                    let b = s.rm_of(b, h);
                    s.x2(code, b)
                });
            }
            Some(Way::Number(code, lanes)) => {
                let b = self.source(o.rm, lanes);
                self.each(o.out, lanes, |s, h| {
                    let b = s.in_register(b, h);
                    s.x2i(code, b, o.n)
                });
            }
            Some(Way::Sum(code, lanes)) => self.multiply_add(code, lanes, o),
            None => {
                // The most frequent first.
                let done = self.moved(o) || self.mask_op(o) || self.cross(o) || self.emulate(o) || self.conversion(o);
                if !done {
                    self.lacks(format!("{:?}", o.code));
                }
            }
        }
    }

    // Instructions of the host, with the result in a register that nothing is in.

    fn x2(&mut self, code: Code, rm: impl Into<Rm>) -> Register {
        let t = self.temp();
        self.raw2(code, t, rm.into());
        t
    }

    fn x2i(&mut self, code: Code, rm: impl Into<Rm>, n: u32) -> Register {
        let t = self.temp();
        self.raw2i(code, t, rm.into(), n);
        t
    }

    fn x3(&mut self, code: Code, a: Register, rm: impl Into<Rm>) -> Register {
        let t = self.temp();
        self.raw3(code, t, a, rm.into());
        t
    }

    fn x3i(&mut self, code: Code, a: Register, rm: impl Into<Rm>, n: u32) -> Register {
        let t = self.temp();
        self.raw3i(code, t, a, rm.into(), n);
        t
    }

    fn raw2(&mut self, code: Code, out: Register, rm: Rm) {
        self.encode(Form::Two, Ops::new(code, out, Register::None, rm, 0));
    }

    fn raw2i(&mut self, code: Code, out: Register, rm: Rm, n: u32) {
        self.encode(Form::TwoNumber, Ops::new(code, out, Register::None, rm, n));
    }

    fn raw3(&mut self, code: Code, out: Register, a: Register, rm: Rm) {
        self.encode(Form::Three, Ops::new(code, out, a, rm, 0));
    }

    fn raw3i(&mut self, code: Code, out: Register, a: Register, rm: Rm, n: u32) {
        self.encode(Form::ThreeNumber, Ops::new(code, out, a, rm, n));
    }

    fn raw_store(&mut self, code: Code, m: Mem, r: Register) {
        self.encode(Form::Store, Ops::new(code, r, Register::None, m, 0));
    }

    fn raw_store_some(&mut self, code: Code, m: Mem, mask: Register, r: Register) {
        self.encode(Form::StoreSome, Ops::new(code, r, mask, m, 0));
    }

    /// `yes` where the lanes of the mask are ones, else `no`.
    fn blend(&mut self, no: Register, yes: impl Into<Rm>, mask: Register) -> Register {
        self.choice(Code::VEX_Vpblendvb_ymm_ymm_ymmm256_ymm, no, yes, mask)
    }

    /// `yes` where an element of the mask begins with a one, else `no`.
    fn choice(&mut self, code: Code, no: Register, yes: impl Into<Rm>, mask: Register) -> Register {
        let t = self.temp();
        self.encode(Form::Choice, Ops::new(code, t, no, yes, number_of(mask) as u32));
        t
    }

    /// A constant for every lane, as memory.
    fn all(&mut self, lanes: Lanes, x: u64) -> Mem {
        let word = match lanes {
            Lanes::Q => x,
            Lanes::D => u64::from(x as u32) * 0x1_0000_0001,
            Lanes::B => u64::from(x as u8) * 0x0101_0101_0101_0101,
        };
        Mem::constant(self.repeated(word), 0)
    }

    fn zero(&mut self) -> Register {
        let t = self.temp();
        self.raw3(Code::VEX_Vpxor_ymm_ymm_ymmm256, t, t, t.into());
        t
    }

    fn ones(&mut self) -> Register {
        let t = self.temp();
        self.raw3(Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, t, t, t.into());
        t
    }

    // Halves of operands.

    /// Half `h` of a vector, in a register of the host.
    fn half(&mut self, r: Register, h: usize) -> Register {
        let (v, _) = halves(r);
        self.half_of_vector(v, h)
    }

    fn half_of_vector(&mut self, v: u8, h: usize) -> Register {
        if v < 8 && self.n().written >> v & 1 == 0 {
            self.lacks(format!("a bug: vector {v} is read and was not written"));
        }
        self.load(Value::half(v, h as u8))
    }

    /// An operand for both halves: one element for all lanes becomes a vector here.
    fn source(&mut self, rm: Rm, lanes: Lanes) -> Source {
        match rm {
            Rm::Reg(r) => Source::Vector(halves(r).0),
            Rm::Mem(m) if m.is_spread() => Source::Made(self.spread_from(m.single(), lanes)),
            Rm::Mem(m) => Source::Mem(m),
        }
    }

    fn spread_from(&mut self, m: Mem, lanes: Lanes) -> Register {
        let code = match lanes {
            Lanes::Q => Code::VEX_Vpbroadcastq_ymm_xmmm64,
            Lanes::D => Code::VEX_Vpbroadcastd_ymm_xmmm32,
            Lanes::B => Code::VEX_Vpbroadcastb_ymm_xmmm8,
        };
        self.x2(code, m)
    }

    fn rm_of(&mut self, s: Source, h: usize) -> Rm {
        match s {
            // What is read for the last time, or where all registers hold something, is read from its slot.
            Source::Vector(v) if v >= 8 && self.reads_slot(Value::half(v, h as u8)) => {
                Rm::Mem(Value::half(v, h as u8).slot())
            }
            Source::Vector(v) => Rm::Reg(self.half_of_vector(v, h)),
            Source::Mem(m) => Rm::Mem(m.behind(32 * h as i32)),
            Source::Made(r) => Rm::Reg(r),
        }
    }

    fn in_register(&mut self, s: Source, h: usize) -> Register {
        match s {
            Source::Vector(v) => self.half_of_vector(v, h),
            Source::Mem(m) => self.x2(Code::VEX_Vmovdqu_ymm_ymmm256, m.behind(32 * h as i32)),
            Source::Made(r) => r,
        }
    }

    /// Writes each half of a result as it is made.
    fn each(&mut self, out: Out, lanes: Lanes, mut make: impl FnMut(&mut Asm, usize) -> Register) {
        let (v, n) = halves(out.reg);
        for h in 0..n {
            let pins = self.n().cache.pins();
            let new = make(self, h);
            self.write(v, h, new, out.mask, lanes);
            self.n().cache.unpin(pins);
        }
        self.end_write(v, n);
    }

    /// Makes something; registers that only the making uses are free again after it.
    fn only(&mut self, make: impl FnOnce(&mut Asm) -> Register) -> Register {
        let pins = self.n().cache.pins();
        let r = make(self);
        self.n().cache.unpin(pins | 1 << number_of(r));
        r
    }

    /// Makes both halves of something. Registers that only the making uses are free again after each.
    fn both(&mut self, mut make: impl FnMut(&mut Asm, usize) -> Register) -> [Register; 2] {
        [0, 1].map(|h| self.only(|s| make(s, h)))
    }

    /// Writes halves that were all made before.
    fn set_halves(&mut self, out: Out, lanes: Lanes, made: &[Register]) {
        let (v, _) = halves(out.reg);
        for (h, r) in made.iter().enumerate() {
            self.write(v, h, *r, out.mask, lanes);
        }
        self.end_write(v, made.len());
    }

    fn write(&mut self, v: u8, h: usize, new: Register, mask: Register, lanes: Lanes) {
        let half = Value::half(v, h as u8);
        if mask == Register::None {
            self.set(half, new);
            return;
        }
        self.write_some(v, h, new.into(), mask, lanes);
    }

    /// Writes the lanes of a mask.
    fn write_some(&mut self, v: u8, h: usize, new: Rm, mask: Register, lanes: Lanes) {
        let half = Value::half(v, h as u8);
        let mask = self.piece(mask, lanes, h);
        // Lanes outside of the mask may never have been written.
        let old = self.load(half);
        let r = self.blend(old, new, mask);
        self.set(half, r);
    }

    /// What is above a result of 256 bits is zero.
    fn end_write(&mut self, v: u8, n: usize) {
        if n == 1 {
            let zero = self.zero();
            self.set(Value::half(v, 1), zero);
        }
        if v < 8 {
            self.n().written |= 1 << v;
        }
    }

    /// Keeps general registers over code that uses them.
    fn with_saved(&mut self, list: &[Register], code: impl FnOnce(&mut Asm)) {
        for (i, r) in (0..).zip(list) {
            self.raw_store(Code::Mov_rm64_r64, slot(SAVED + 8 * i), *r);
        }
        code(self);
        for (i, r) in (0..).zip(list) {
            self.raw2(Code::Mov_r64_rm64, *r, slot(SAVED + 8 * i).into());
        }
    }
}
