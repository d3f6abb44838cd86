//! What emitters ask AVX2 for in other steps than they do with vectors of 512 bits, where those would take many instructions each. Nobody else has these.

use iced_x86::{Code, Register};

use super::super::{Asm, Mem};
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
