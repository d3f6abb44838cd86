//! How the lanes of an access lie, and what is done for those that all do it and do not stand in one row.

use handloom_ir::simt::Inst;
use handloom_ir::types::{Order, Ty};
use handloom_plan::access::{AccessClass, Kind};
use handloom_plan::analysis::shape::Shape;
use iced_x86::{Code, Register};

use crate::access::{Access, Form, Limits};
use crate::alloc::n_parts;
use crate::asm::Mem;
use crate::bands::{is_banded, is_half_banded};
use crate::emit::*;
use crate::strided::is_close;
use crate::tuples::lanes_of_runs;
use crate::values::is_wide;

/// Registers for the addresses of four runs of lanes.
const OF_RUNS: [Register; 4] = [RCX, RSI, Register::R11, Register::RDI];

/// Whether there is code for lanes that lie so, where all of them do the access.
pub(crate) fn by_all(form: Form) -> bool {
    matches!(form, Form::Parts | Form::Halves | Form::Bands | Form::HalfBands | Form::Strided(_) | Form::Tuples(_))
}

impl Emit<'_> {
    /// Where lanes of a weak load or store lie, of addresses that differ in a known way.
    pub(crate) fn form_of(&self, s: Shape, x: &Access) -> Form {
        let (class, by_all) = (&x.class, !self.is_of_part(x));
        if by_all && class.bits >= 32 && is_banded(&s, x.ty) {
            return Form::Bands;
        }
        if by_all && self.lies_by_half_bands(class, &s, x.ty) {
            return Form::HalfBands;
        }
        if class.count == 1 && s.is_linear() && s.stride == i64::from(x.size()) {
            return Form::Row;
        }
        if class.count == 1 && self.is_by_parts(&s, x) {
            return Form::Parts;
        }
        if by_all && self.lies_by_halves(class, &s, x.ty) && x.limits != Limits::Own {
            return Form::Halves;
        }
        if by_all && self.is_strided(x, &s) {
            return Form::Strided(s);
        }
        match lanes_of_runs(&s, x) {
            Some(run) if run == 32 || by_all => Form::Tuples(run),
            _ => Form::Scattered,
        }
    }

    /// Whether each part's elements follow each other, in a block that all lanes execute.
    fn is_by_parts(&self, s: &Shape, x: &Access) -> bool {
        let n = if is_wide(x.ty) { 8 } else { 16 };
        !self.is_of_part(x) && follows(s, x.class.bytes(), n)
    }

    /// Whether lanes of an access lie by halves of parts, where all of them do it.
    pub(crate) fn lies_by_halves(&self, class: &AccessClass, shape: &Shape, ty: Ty) -> bool {
        matches!(class.kind, Kind::Load | Kind::Store)
            && class.order == Order::Weak
            && (class.count, class.bits, ty) == (1, 32, Ty::B32)
            && follows(shape, 4, 8)
            && !follows(shape, 4, 16)
    }

    /// Whether a load finds an element for each half of a part, where all lanes do it.
    pub(crate) fn lies_by_half_bands(&self, class: &AccessClass, shape: &Shape, ty: Ty) -> bool {
        let fits = class.kind == Kind::Load && class.order == Order::Weak && (class.count, class.bits) == (1, 32);
        fits && is_half_banded(shape, ty) && !is_banded(shape, ty)
    }

    /// Whether there is code for lanes that lie so where only some of them do the access.
    pub(crate) fn by_some(&self, class: &AccessClass, form: Form) -> bool {
        let is_load = class.kind == Kind::Load;
        class.count == 1
            && match form {
                // Stores under a mask are slow on some hosts without wide vectors.
                Form::Parts => is_load || self.a.has_wide_vectors(),
                Form::Halves => true,
                Form::Bands | Form::HalfBands => is_load,
                Form::Strided(shape) => class.bits >= 32 && is_close(&shape, class.bytes(), is_load),
                _ => false,
            }
    }

    /// An access of some lanes that lie by parts or halves of parts, or closely, with its own tests: of each run as a whole. One of which no lane takes part goes where another one goes: so its tests pass, and
    /// nobody wants what is read there.
    pub(crate) fn of_some(&mut self, inst: &Inst, x: &Access, form: Form) {
        if let Form::Strided(shape) = form {
            self.strided(inst, x, &shape);
            return;
        }
        let n_parts = n_parts(x.ty);
        let is_by_halves = matches!(form, Form::Halves | Form::HalfBands);
        let runs = if is_by_halves { 2 * n_parts } else { n_parts };
        let n = 32 / runs;
        let reach = if matches!(form, Form::Parts | Form::Halves) { (n as i64 - 1) * i64::from(x.size()) } else { 0 };
        let first = self.first_of_alike(x, runs);
        let lanes_of = |k: usize| {
            let of_run = |j: usize| (u32::MAX >> (32 - n)) << (j * n);
            (0..runs).filter(|j| first[*j] == k).fold(0, |all, j| all | of_run(j)).cast_signed()
        };
        let apart: Vec<usize> = (0..runs).filter(|k| first[*k] == *k).collect();
        for &k in &apart {
            self.lane_address(x, k * n);
            self.a.op2(Code::Mov_r64_rm64, OF_RUNS[k], RAX);
        }
        if apart.len() > 1 {
            // The last address stays in `rax`, unless a run before has lanes.
            for &k in apart.iter().rev().skip(1) {
                self.a.imm(Code::Test_rm32_imm32, x.lanes, lanes_of(k));
                self.a.op2(Code::Cmovne_r64_rm64, RAX, OF_RUNS[k]);
            }
            for &k in &apart {
                self.a.imm(Code::Test_rm32_imm32, x.lanes, lanes_of(k));
                self.a.op2(Code::Cmove_r64_rm64, OF_RUNS[k], RAX);
            }
        }
        if x.limits != Limits::Safe {
            self.limits_of_run(x, reach);
            apart.iter().for_each(|k| self.test_start(x, OF_RUNS[*k]));
        }
        apart.iter().for_each(|k| self.host(x, OF_RUNS[*k]));
        let at = |k: usize| Mem::at(OF_RUNS[first[k]], 0);
        for q in 0..n_parts {
            match form {
                Form::Halves => self.move_halves(inst, x, q, [at(2 * q), at(2 * q + 1)]),
                Form::HalfBands => self.half_bands(inst, x, q, [at(2 * q), at(2 * q + 1)]),
                Form::Bands => self.spread_part(inst.dst[0], q, at(q), x),
                _ => self.move_part(inst, x, q, at(q)),
            }
        }
    }

    /// By run of lanes, of so many in a warp: the first one whose lanes have the same addresses.
    fn first_of_alike(&self, x: &Access, runs: usize) -> Vec<usize> {
        let place = |k: usize| self.address_shape(x).map(|s| (s.group_of(k * 32 / runs), s.delta(k * 32 / runs)));
        let places: Vec<_> = (0..runs).map(place).collect();
        (0..runs).map(|k| places.iter().position(|p| *p == places[k]).unwrap_or(k)).collect()
    }

    /// An access of lanes that all do it, but one of a row, with its own tests.
    pub(crate) fn of_all(&mut self, inst: &Inst, x: &Access, form: Form) {
        match form {
            Form::Parts | Form::Halves => self.parts(inst, x, form),
            Form::Bands => self.bands(inst, x),
            Form::HalfBands => self.all_half_bands(inst, x),
            Form::Strided(shape) => self.strided(inst, x, &shape),
            Form::Tuples(run) => self.runs_of_tuples(inst, x, run.into()),
            Form::Same | Form::Row | Form::Scattered => {}
        }
    }

    /// Elements that follow each other within each part of a vector, or within each half of one, in a block that all lanes execute.
    fn parts(&mut self, inst: &Inst, x: &Access, form: Form) {
        let n_parts = n_parts(x.ty);
        let runs = if form == Form::Halves { 2 * n_parts } else { n_parts };
        let n = 32 / runs;
        let first = self.first_of_alike(x, runs);
        if x.limits != Limits::Safe {
            let skip = self.around_tests(x);
            self.limits_of_run(x, (n as i64 - 1) * i64::from(x.size()));
            for k in (0..runs).filter(|k| first[*k] == *k) {
                self.lane_address(x, k * n);
                self.test_start(x, RAX);
            }
            self.after_tests(skip);
        }
        for k in (0..runs).filter(|k| first[*k] == *k) {
            self.lane_address(x, k * n);
            self.host(x, RAX);
            self.a.op2(Code::Mov_r64_rm64, OF_RUNS[k], RAX);
        }
        let at = |k: usize| Mem::at(OF_RUNS[first[k]], 0);
        for q in 0..n_parts {
            match form {
                Form::Halves => self.move_halves(inst, x, q, [at(2 * q), at(2 * q + 1)]),
                _ => self.move_part(inst, x, q, at(q)),
            }
        }
    }

    /// A part whose halves lie at two places. A store in part of the warp goes by the masks of eight lanes each. Uses vectors 4 and 5.
    pub(crate) fn move_halves(&mut self, inst: &Inst, x: &Access, q: usize, [low, high]: [Mem; 2]) {
        if x.class.kind == Kind::Load {
            self.tuple_result(inst.dst[0], q, x, |s, to| {
                if !s.a.has_wide_vectors() {
                    s.a.load_halves(to, [low, high]);
                    return;
                }
                s.a.op2(Code::EVEX_Vmovdqu32_ymm_k1z_ymmm256, ymm(to), low);
                s.a.op3i(Code::EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8, to, to, high, 1);
            });
            return;
        }
        let s = self.clean_src(inst.src[1]);
        let from = self.reg(&s, q, 4);
        // Masks of eight lanes are those of parts of 64 bits.
        let mask = self.lanes_mask(x.lanes, Ty::B64, 2 * q);
        self.a.store(Code::EVEX_Vmovdqu32_ymmm256_k1z_ymm, low, ymm(from), mask);
        self.a.op2i(Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8, ymm(zmm(5)), from, 1);
        let mask = self.lanes_mask(x.lanes, Ty::B64, 2 * q + 1);
        self.a.store(Code::EVEX_Vmovdqu32_ymmm256_k1z_ymm, high, ymm(zmm(5)), mask);
    }
}

/// Whether elements of so many bytes follow each other in every `n` lanes.
fn follows(s: &Shape, bytes: i64, n: usize) -> bool {
    // Those of a piece do.
    s.stride == bytes
        && !s.is_flipped()
        && (0..32).step_by(s.piece_len()).all(|l| {
            let first = l / n * n;
            s.group_of(l) == s.group_of(first) && s.delta(l) - s.delta(first) == bytes * (l - first) as i64
        })
}
