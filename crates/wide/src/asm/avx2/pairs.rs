//! What emitters ask AVX2 for in other steps than they do with vectors of 512 bits, where those would take many instructions each. Nobody else has these.

use iced_x86::{Code, Register};

use super::super::{Asm, Mem, Out};
use super::masks::low;
use super::state::Lanes;

impl Asm {
    /// Makes both halves of a vector.
    fn made_of_halves(&mut self, to: Register, make: impl FnMut(&mut Asm, usize) -> Register) {
        self.n().cache.begin();
        let made = self.both(make);
        self.set_halves(to.into(), Lanes::D, &made);
        self.drop_masks();
    }

    /// The lower, or the upper, 32 bits of sixteen lanes of 64 bits, of two vectors.
    pub fn words_of_pairs(&mut self, to: Register, from: [Register; 2], upper: bool) {
        let kept = if upper { 0xdd } else { 0x88 };
        self.made_of_halves(to, |s, h| {
            let [a, b] = [0, 1].map(|i| s.half(from[h], i));
            let words = s.x3i(Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8, a, b, kept);
            s.x2i(Code::VEX_Vpermq_ymm_ymmm256_imm8, words, 0xd8)
        });
    }

    /// Eight lanes of 64 bits, of the first or last eight of two vectors of 32 bits: the lower and the upper halves.
    pub fn pairs_of_words(&mut self, out: Out, [lower, upper]: [Register; 2], h: usize) {
        self.n().cache.begin();
        let (a, b) = (self.half(lower, h), self.half(upper, h));
        let [x, y] = [Code::VEX_Vpunpckldq_ymm_ymm_ymmm256, Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256]
            .map(|code| self.x3(code, a, b));
        let made = [0x20, 0x31].map(|n| self.x3i(Code::VEX_Vperm2i128_ymm_ymm_ymmm256_imm8, x, y, n));
        self.set_halves(out, Lanes::Q, &made);
        self.drop_masks();
    }

    /// Lanes of `.f32` as `.f16`, each in the lower half of its lane.
    pub fn f16_of_lanes(&mut self, to: Register, from: Register, round: u32) {
        self.made_of_halves(to, |s, h| {
            let (x, t) = (s.half(from, h), s.temp());
            s.raw2i(Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8, low(t), x.into(), round);
            s.x2(Code::VEX_Vpmovzxwd_ymm_xmmm128, low(t))
        });
    }

    /// A vector whose halves lie at two places.
    pub fn load_halves(&mut self, to: Register, at: [Mem; 2]) {
        self.made_of_halves(to, |s, h| s.x2(Code::VEX_Vmovdqu_ymm_ymmm256, at[h]));
    }

    /// Lanes of 32 bits by number, those of each half of the result from one half of a vector: `order` has the numbers within it.
    pub fn picked_from_halves(&mut self, to: Register, from: Register, order: Mem, of: [usize; 2]) {
        self.made_of_halves(to, |s, h| {
            let order = s.x2(Code::VEX_Vmovdqu_ymm_ymmm256, order.behind(32 * h as i32));
            let x = s.half(from, of[h]);
            s.x3(Code::VEX_Vpermd_ymm_ymm_ymmm256, order, x)
        });
    }
}
