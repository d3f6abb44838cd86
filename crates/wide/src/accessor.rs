//! Loads and stores of lanes anywhere by code that a function has once for each kind of them.
//!
//! # The model
//! An access in place (`scattered`) is up to 330 instructions, as it looks for lanes that are neighbours or at one place, in several ways. The first ones of a function and those in loops are
//! done so ([`InPlace`](handloom_plan::access::InPlace)). Any other one has its addresses and operands in rows, calls the code of its kind, and takes its result from a row. The rows
//! are those of its site, so that a refused one is the call of a routine.

use std::mem::{offset_of, size_of};

use handloom_ir::simt::Inst;
use handloom_ir::types::{Order, StateSpace, Ty};
use handloom_plan::abi::{CtaCtx, Loc, SiteCache};
use handloom_plan::access::Kind;
use iced_x86::{Code, Register};

use crate::access::{Access, Limits};
use crate::alloc::n_parts;
use crate::asm::{Mem, Out};
use crate::emit::*;
use crate::once::{AccessKind, Accessor, Called, Tested};
use crate::routine::{row, row_bytes};
use crate::values::{At, Src, load_code, store_code};

const R8: Register = Register::R8;
const R9: Register = Register::R9;
const R10: Register = Register::R10;
const R11: Register = Register::R11;
const RDI: Register = Register::RDI;
const R8D: Register = Register::R8D;

impl Emit<'_> {
    /// Whether an access of lanes of which nothing is known is done by code that the function has once.
    pub(crate) fn is_called(&mut self, inst: &Inst, x: &Access) -> bool {
        let fits = matches!(x.class.kind, Kind::Load | Kind::Store)
            && x.class.count == 1
            && x.class.order == Order::Weak
            && self.members.is_empty()
            && !self.in_head
            && !self.is_known(x)
            && self.index_of(x).is_none_or(|i| i.shape(self.plan).is_none())
            && self.results_vary(inst);
        let is_in_loop = self.plan.facts.cfg.loop_of[self.at.0].is_some();
        fits && !self.in_place.takes(is_in_loop)
    }

    /// Calls it.
    pub(crate) fn call_accessor(&mut self, inst: &Inst, x: &Access) -> Called {
        if let Some(indexed) = self.index_of(x).cloned() {
            self.make_delayed(x, &indexed);
        }
        let aty = if x.short { Ty::B32 } else { Ty::B64 };
        self.ensure_words(x.class.address);
        let s = self.src(x.class.address);
        let addresses = self.row_of(&s);
        let (data, src, dst) = match inst.dst.first() {
            Some(d) => {
                let loc = self.result_loc(*d, true);
                let (Loc::Row32(at) | Loc::Row64(at)) = loc else { panic!("{d:?} in {loc:?} at {:?}", self.at) };
                (at, vec![], vec![loc])
            }
            None => {
                let s = self.clean_src(inst.operands()[1]);
                let at = self.row_of(&s);
                (at, vec![row(s.ty, at)], vec![])
            }
        };
        let src: Vec<Loc> = [row(aty, addresses)].into_iter().chain(src).collect();
        let known = if let Limits::Heap(of) = x.limits { Some(of) } else { None };
        let site = self.fill_site(inst, &src, dst.clone(), known);
        let within = self.is_within_heap(x);
        let tested = Tested::by(x.limits, within, self.may_be_own(x));
        if matches!(tested, Tested::Heap { within: false, .. }) {
            self.a.number(RCX, (site * size_of::<SiteCache>()) as u64);
        }
        self.a.number(R10, x.class.offset.cast_unsigned() & aty.mask());
        self.a.op2(Code::Mov_r32_rm32, EDX, x.lanes);
        self.a.op2(Code::Lea_r64_m, RSI, ctx(addresses));
        self.a.op2(Code::Lea_r64_m, RDI, ctx(data));
        let (is_store, is_shared) = (x.class.kind == Kind::Store, x.class.space == StateSpace::Shared);
        let kind = AccessKind { is_store, is_shared, bits: x.class.bits, short: x.short, tested };
        let label = match self.accessors.iter().find(|a| a.kind == kind) {
            Some(known) => known.label,
            None => {
                let label = self.a.label();
                self.accessors.push(Accessor { kind, label, of: *x });
                label
            }
        };
        self.a.jump(Code::Call_rel32_64, label);
        if x.limits != Limits::Safe {
            self.a.jump(Code::Je_rel32_64, x.cold);
        }
        let back = self.a.label();
        self.a.bind(back);
        if let (Some(d), Some(loc)) = (inst.dst.first(), dst.first()) {
            self.take_result(*d, *loc, x.lanes);
        }
        Called { site, back }
    }

    /// A row with a source in it.
    fn row_of(&mut self, s: &Src) -> u32 {
        match s.at {
            At::Row(at) if !s.odd => at,
            _ => {
                let at = self.take_scratch(row_bytes(s.ty));
                self.put_row(s, at);
                at
            }
        }
    }

    /// The code of accesses, by kind. In: `rsi`, the row of addresses; `rdi`, that of what is stored or loaded; `edx`, the lanes; `r10`, what is added to each address; `rcx`, where the site's allocation
    /// lies, if that is what is tested. Out: flags of zero if a test failed, before anything else happened. Uses vectors 0 to 7, `k5` to `k7`; clobbers `rax`, `rcx`, `rdx`,
    /// `r8` to `r11`.
    pub(crate) fn accessor_code(&mut self) {
        for Accessor { kind, label, of } in std::mem::take(&mut self.accessors) {
            let [refused, apart, passed] = std::array::from_fn(|_| self.a.label());
            let asks = self.site_that_asks(&of).is_some();
            let x = Access { lanes: EDX, cold: refused, ..of };
            self.a.bind(label);
            self.addresses_of_row(&x);
            self.test_kind(&Access { cold: if asks { apart } else { refused }, ..x }, kind.tested);
            if asks {
                self.a.bind(passed);
            }
            if x.class.space == StateSpace::Shared {
                self.load64(R11, cta(offset_of!(CtaCtx, shared_base)));
            } else {
                self.a.number(R11, 0);
            }
            if kind.bits >= 32 {
                self.neighbours(&x, kind.is_store);
            }
            let ty = x.ty;
            let at = |q: usize| Mem::at(RDI, 64 * q as i32);
            if !kind.is_store {
                self.gather(&x, 0, &mut |s, q, r| {
                    let mask = s.lanes_mask(EDX, ty, q);
                    s.a.store(store_code(ty), at(q), r, mask);
                });
            } else if kind.bits >= 32 {
                self.scatter(&x, 0, &mut |s, q| {
                    s.a.op2(load_code(ty), zmm(4), at(q));
                    zmm(4)
                });
            } else {
                self.store_small_of_row(&x);
            }
            self.return_from_test(refused);
            if asks {
                self.a.bind(apart);
                self.ask_from_code(&x);
                self.a.jump(Code::Jne_rel32_64, passed);
                self.a.jump(Code::Jmp_rel32_64, refused);
            }
        }
    }

    /// Addresses out of the row in `rsi`, with `r10` added to each, in vectors 0 to 3.
    fn addresses_of_row(&mut self, x: &Access) {
        let (aty, spread, by, add) = if x.short {
            (Ty::B32, Code::EVEX_Vpbroadcastd_zmm_k1z_r32, Register::R10D, Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32)
        } else {
            (Ty::B64, Code::EVEX_Vpbroadcastq_zmm_k1z_r64, R10, Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64)
        };
        self.a.op2(spread, zmm(4), by);
        for q in 0..n_parts(aty) {
            self.a.op3(add, zmm(q as u8), zmm(4), Mem::at(RSI, 64 * q as i32));
        }
    }

    fn test_kind(&mut self, x: &Access, tested: Tested) {
        let n = n_parts(if x.short { Ty::B32 } else { Ty::B64 });
        match tested {
            Tested::Not => {}
            Tested::Shared | Tested::Own => {
                self.limits(x);
                self.test_vectors(x, n);
            }
            Tested::Heap { within, or_own } => {
                if within {
                    self.limits(x);
                } else {
                    self.limits_in(Mem::indexed(R9, RCX, 1, 0));
                }
                let [own, passed] = [self.a.label(), self.a.label()];
                self.test_vectors(&Access { cold: if or_own { own } else { x.cold }, ..*x }, n);
                if or_own {
                    self.a.jump(Code::Jmp_rel32_64, passed);
                    self.a.bind(own);
                    let own = Access { limits: Limits::Own, ..*x };
                    self.limits(&own);
                    self.test_vectors(&own, n);
                }
                self.a.bind_if_wanted(passed);
            }
        }
    }

    /// Does an access whose lanes are neighbours as vectors, and returns; else it goes on.
    fn neighbours(&mut self, x: &Access, is_store: bool) {
        let apart = self.a.label();
        self.a.op2(Code::Tzcnt_r32_rm32, ECX, EDX);
        self.address_of_row(x);
        self.a.imm8(Code::Shl_rm32_imm8, ECX, x.class.bytes().trailing_zeros());
        self.a.op2(Code::Sub_r64_rm64, R8, RCX);
        if x.short {
            self.in_front_too(R8);
        }
        self.follow(x, R8, apart);
        self.a.op2(Code::Add_r64_rm64, R8, R11);
        for q in 0..n_parts(x.ty) {
            let (memory, row) = (Mem::at(R8, 64 * q as i32), Mem::at(RDI, 64 * q as i32));
            let mask = self.lanes_mask(EDX, x.ty, q);
            let (from, to) = if is_store { (row, memory) } else { (memory, row) };
            self.a.op2(load_code(x.ty), Out::masked(zmm(4), mask), from);
            self.a.store(store_code(x.ty), to, zmm(4), mask);
        }
        self.return_passed();
        self.a.bind(apart);
    }

    /// The address of the lane in `ecx`, in `r8`: that of the row in `rsi`, with `r10` added.
    fn address_of_row(&mut self, x: &Access) {
        if x.short {
            self.load32(R8D, Mem::indexed(RSI, RCX, 4, 0));
            self.a.op2(Code::Add_r32_rm32, R8D, Register::R10D);
        } else {
            self.load64(R8, Mem::indexed(RSI, RCX, 8, 0));
            self.a.op2(Code::Add_r64_rm64, R8, R10);
        }
    }

    /// Stores elements of 8 or 16 bits, which lie in the row in `rdi`, lane by lane in ascending order.
    fn store_small_of_row(&mut self, x: &Access) {
        let again = self.a.label();
        self.a.bind(again);
        self.a.op2(Code::Tzcnt_r32_rm32, ECX, EDX);
        self.address_of_row(x);
        self.load32(EAX, Mem::indexed(RDI, RCX, 4, 0));
        self.store_element(x, Mem::indexed(R8, R11, 1, 0), RAX);
        self.a.op2(Code::VEX_Blsr_r32_rm32, EDX, EDX);
        self.a.jump(Code::Jne_rel32_64, again);
    }
}
