//! Accesses whose lanes are in several small allocations, or in another one each time: what a site hit last is one of them, so code asks the table of granules
//! (`plan::abi::Granule`) before the runtime.
//!
//! # The model
//! Where the test of a site fails, code after all blocks calls one of two pieces of code, which a function has once for accesses of so many bytes: one for a place, and one for
//! the lanes that take part, which gathers their words. Both leave the allocation of the place, or of the first lane, to the site. What they refuse goes where it went before.

use std::mem::{offset_of, size_of};

use handloom_ir::types::{StateSpace, Ty};
use handloom_plan::abi::{CtaCtx, Granule, SiteCache};
use iced_x86::{Code, Register};

use crate::access::{Access, Limits};
use crate::asm::{Label, Mem, Out};
use crate::emit::*;
use crate::once::{Asked, Asker};
use crate::scattered::NOT_BELOW;
use crate::values::store_code;

const R8: Register = Register::R8;
const R9: Register = Register::R9;
const R10: Register = Register::R10;
const R11: Register = Register::R11;

impl Emit<'_> {
    /// The site of an access that asks the table where its test fails. Code that is to be there soon asks the routine.
    pub(crate) fn site_that_asks(&self, x: &Access) -> Option<usize> {
        let Limits::Heap(site) = x.limits else { return None };
        let asks = self.plan.options.gangs
            && !self.is_within_heap(x)
            && x.class.space != StateSpace::Const
            && !x.short
            && self.members.is_empty()
            && !self.in_head;
        asks.then_some(site)
    }

    /// Calls the code for a place, or for lanes.
    fn call_asker(&mut self, x: &Access, by_lanes: bool) {
        let known = self.granules.askers.iter().position(|a| a.of.class.bytes() == x.class.bytes());
        let k = known.unwrap_or_else(|| {
            let [place, lanes] = std::array::from_fn(|_| self.a.label());
            self.granules.askers.push(Asker { of: *x, place, lanes, by_lanes });
            self.granules.askers.len() - 1
        });
        let asker = &mut self.granules.askers[k];
        asker.by_lanes |= by_lanes;
        let Asker { lanes, place, .. } = *asker;
        if by_lanes {
            self.a.jump(Code::Call_rel32_64, lanes);
        } else {
            self.a.call_scalar(place);
        }
    }

    fn push_asked(&mut self, x: &Access, site: usize, by_lanes: bool) -> (Label, Label) {
        let [start, passed] = std::array::from_fn(|_| self.a.label());
        self.granules.asked.push(Asked { start, passed, x: *x, site, by_lanes });
        (start, passed)
    }

    /// Where tests of lanes whose addresses are in vectors 0 to 3 go that fail, and where they go on then if the table of granules knows better: with the addresses where they were.
    pub(crate) fn ask_of_lanes(&mut self, x: &Access) -> Option<(Label, Label)> {
        let site = self.site_that_asks(x)?;
        Some(self.push_asked(x, site, true))
    }

    /// Tests the address in `rax` of an access that all lanes do there, whose limits are known. Uses `rcx`, `rdx` and `r8` to `r11`.
    pub(crate) fn test_place(&mut self, x: &Access) {
        let Some(site) = self.site_that_asks(x) else {
            self.test(x, RAX, false);
            return;
        };
        let (start, passed) = self.push_asked(x, site, false);
        self.test(&Access { cold: start, ..*x }, RAX, false);
        self.a.bind(passed);
    }

    /// The code after all blocks: asks for what tests refused.
    pub(crate) fn ask_granules(&mut self) {
        for a in std::mem::take(&mut self.granules.asked) {
            self.a.bind(a.start);
            self.a.number(RCX, (a.site * size_of::<SiteCache>()) as u64);
            if a.by_lanes {
                self.a.op2(Code::Mov_r32_rm32, EDX, a.x.lanes);
            }
            self.call_asker(&a.x, a.by_lanes);
            self.a.jump(Code::Jne_rel32_64, a.passed);
            self.a.jump(Code::Jmp_rel32_64, a.x.cold);
        }
    }

    /// Calls the code for lanes from code that has the place of the site's cache in `rcx` and the lanes in `edx`, which it keeps, as it does `r10`. Flags are of zero if it refuses.
    pub(crate) fn ask_from_code(&mut self, x: &Access) {
        [RDX, R10].iter().for_each(|r| self.a.op1(Code::Push_r64, *r));
        self.call_asker(x, true);
        [R10, RDX].iter().for_each(|r| self.a.op1(Code::Pop_r64, *r));
    }

    /// The code that asks. In: `rcx`, where the site's cache lies in the table of those; `rax`, a place, or `edx`, lanes, whose addresses are in vectors 0 to 3. Out: flags of zero if it refuses.
    /// Of lanes it uses vectors 4 to 7, `k5` to `k7`, `rax` and `r11`; both clobber `rdx`, `r8` to `r10`.
    pub(crate) fn granules_code(&mut self) {
        for Asker { of, place, lanes, by_lanes } in std::mem::take(&mut self.granules.askers) {
            let refused = self.a.label();
            let x = Access { lanes: EDX, cold: refused, ..of };
            if by_lanes {
                self.a.bind(lanes);
                self.a.takes_vectors(4);
                self.granules_of_lanes(&x);
                self.return_passed();
            }
            self.a.bind(place);
            self.granule_of_place(&x);
            // Flags of one, and `rax` as it was.
            self.a.op2(Code::Test_rm64_r64, RSP, RSP);
            self.a.op0(Code::Retnq);
            self.a.bind(refused);
            self.a.number(RDX, 0);
            self.a.op2(Code::Test_rm64_r64, RDX, RDX);
            self.a.op0(Code::Retnq);
        }
    }

    /// Asks for the lanes in `edx`: for the first of them alone at first, since mostly that is the one of a large allocation too, if another one is.
    fn granules_of_lanes(&mut self, x: &Access) {
        self.a.imm(Code::Sub_rm64_imm32, RSP, 256);
        for q in 0..4 {
            self.a.store(store_code(Ty::B64), Mem::at(RSP, 64 * q), zmm(q as u8), ALL);
        }
        self.a.op2(Code::Tzcnt_r32_rm32, Register::R8D, EDX);
        self.load64(RAX, Mem::indexed(RSP, R8, 8, 0));
        self.a.imm(Code::Add_rm64_imm32, RSP, 256);
        self.a.op2(Code::Mov_r32_rm32, Register::R11D, EDX);
        self.granule_of_place(x);
        self.a.op2(Code::Mov_r32_rm32, EDX, Register::R11D);
        self.load64(R8, cta(offset_of!(CtaCtx, heap_low)));
        self.load64(R9, cta(offset_of!(CtaCtx, granules_size)));
        self.test_vectors(x, 4);
        self.load64(R11, cta(offset_of!(CtaCtx, granules)));
        let [shift_right, shift_left] =
            [Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8, Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8];
        let [word, at, start] = [zmm(4), zmm(6), zmm(7)];
        for q in 0..4 {
            // Vector 5 has the start of the heap.
            self.a.op3(Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64, at, zmm(q as u8), zmm(5));
            self.a.op2i(shift_right, start, at, Granule::BITS);
            self.own_mask(x, Ty::B64, q);
            self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, word, word, word);
            let m = Mem::indexed(R11, start, 8, 0);
            self.a.op2(Code::EVEX_Vpgatherqq_zmm_k1_vm64z, Out::masked(word, Register::K6), m);
            self.a.op2i(shift_right, start, word, Granule::START_AT);
            self.a.op2i(shift_left, start, start, Granule::BITS);
            // The last byte of the access, from the start of the allocation on.
            self.a.op3(Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64, at, at, start);
            let c = self.constant(Ty::B64, x.class.bytes().cast_unsigned() - 1);
            self.a.op3(Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64, at, at, c);
            let c = self.constant(Ty::B64, Granule::MOST);
            self.a.op3(Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64, word, word, c);
            let mask = self.lanes_mask(x.lanes, Ty::B64, q);
            self.add_to_k7(Code::EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8, q, mask, [at, word], NOT_BELOW);
        }
        self.a.op2(Code::VEX_Kortestw_kr_kr, Register::K7, Register::K7);
        self.a.jump(Code::Jne_rel32_64, x.cold);
    }

    /// Asks for the place in `rax`, and tells the site of its allocation.
    fn granule_of_place(&mut self, x: &Access) {
        self.load64(R8, cta(offset_of!(CtaCtx, heap_low)));
        self.a.op2(Code::Mov_r64_rm64, RDX, RAX);
        self.a.op2(Code::Sub_r64_rm64, RDX, R8);
        self.a.op2(Code::Cmp_r64_rm64, RDX, cta(offset_of!(CtaCtx, granules_size)));
        self.a.jump(Code::Jae_rel32_64, x.cold);
        self.a.imm8(Code::Shr_rm64_imm8, RDX, Granule::BITS);
        self.load64(R9, cta(offset_of!(CtaCtx, granules)));
        self.load64(R9, Mem::indexed(R9, RDX, 8, 0));
        self.a.op2(Code::Mov_r64_rm64, RDX, R9);
        self.a.imm8(Code::Shr_rm64_imm8, RDX, Granule::START_AT);
        self.a.imm8(Code::Shl_rm64_imm8, RDX, Granule::BITS);
        self.a.op2(Code::Add_r64_rm64, R8, RDX);
        // As `SiteCache::new` has it, of one access.
        let whole = Granule::MOST as i32 & -(x.class.bytes() as i32);
        self.a.imm(Code::And_rm64_imm32, R9, whole);
        self.test(x, RAX, false);
        self.load64(RDX, cta(offset_of!(CtaCtx, sites)));
        let cache = Mem::indexed(RDX, RCX, 1, 0);
        self.store64(cache, R8);
        self.store64(cache.behind(8), R9);
    }
}
