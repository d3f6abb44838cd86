//! Elements at one distance from each other through the whole warp, where that is a few elements: members of structures, one colour of a picture, rows read backwards.
//!
//! # The model
//! Lanes of a part lie within a few *chunks* of 64 bytes. A load reads these, the last one so that it ends with the last element, and picks the elements from them: what lies
//! between elements of one run that was tested as a whole may be read. A store puts elements where they belong in each chunk, and writes them alone.
//!
//! Gathers and scatters of the host take a step for each element.

use handloom_ir::simt::Inst;
use handloom_ir::types::{Order, Ty};
use handloom_plan::access::{AccessClass, Kind};
use iced_x86::{Code, Register};

use crate::access::{Access, Limits, Runs};
use crate::alloc::n_parts;
use crate::asm::{Label, Mem};
use crate::emit::*;
use crate::values::{by_width, load_code, store_code};

const K6: Register = Register::K6;
const CHUNK: i64 = 64;
/// The most elements from one lane to the next.
const MOST: u64 = 4;

/// How the elements of a part lie.
struct Layout {
    /// Bytes of an element.
    size: i64,
    /// Bytes from the lowest address to the element of each lane.
    places: Vec<i64>,
    /// Bytes from the lowest address to the end of the highest element.
    reach: i64,
}

impl Layout {
    fn new(x: &Access, stride: i64) -> Layout {
        let (lanes, size) = (32 / n_parts(x.ty) as i64, i64::from(x.size()));
        let lowest = (stride * (lanes - 1)).min(0);
        let places = (0..lanes).map(|l| l * stride - lowest).collect();
        Layout { size, places, reach: (lanes - 1) * stride.abs() + size }
    }

    fn chunks(&self) -> i64 {
        (self.reach + CHUNK - 1) / CHUNK
    }

    /// Where a chunk of a load begins: the last one ends with the last element.
    fn start(&self, chunk: i64) -> i64 {
        (CHUNK * chunk).min(self.reach - CHUNK)
    }

    /// The chunk that a lane is read from, and its element there by number.
    fn source(&self, lane: usize) -> (i64, u64) {
        let chunk = (self.places[lane] / CHUNK).min(self.chunks() - 1);
        (chunk, ((self.places[lane] - self.start(chunk)) / self.size).cast_unsigned())
    }

    /// By element of a chunk of a store, the lane that it is of.
    fn lanes_of(&self, chunk: i64) -> Vec<Option<usize>> {
        let of = |i: i64| self.places.iter().position(|p| *p == CHUNK * chunk + self.size * i);
        (0..CHUNK / self.size).map(of).collect()
    }
}

impl Emit<'_> {
    /// Bytes from lane to lane of an access that is done so where all lanes do it.
    pub(crate) fn stride_of(&self, class: &AccessClass) -> Option<i64> {
        let shape = self.shape(class.address)?;
        let size = class.bytes();
        let fits = self.a.has_wide_vectors()
            && matches!(class.kind, Kind::Load | Kind::Store)
            && class.order == Order::Weak
            && class.count == 1
            && class.bits >= 32
            && shape.is_linear()
            && shape.stride % size == 0
            && shape.stride != size
            && (1..=MOST).contains(&(shape.stride / size).unsigned_abs());
        fits.then_some(shape.stride)
    }

    /// The lane that lies lowest, and bytes from its element to the highest one.
    pub(crate) fn run_of_strides(&self, class: &AccessClass) -> (usize, i64) {
        let stride = self.stride_of(class).unwrap_or(0);
        (if stride < 0 { 31 } else { 0 }, 31 * stride.abs())
    }

    /// The one run of such an access, if the head may have decided about it.
    pub(crate) fn runs_of_strides(&self, x: &Access) -> Option<Runs> {
        let (lowest, reach) = self.run_of_strides(&x.class);
        self.decided_runs(x, &[lowest], reach)
    }

    /// With its own tests.
    pub(crate) fn strided(&mut self, inst: &Inst, x: &Access) {
        let Some(stride) = self.stride_of(&x.class) else { return };
        if x.limits != Limits::Safe {
            let skip = self.around_tests(x);
            let (lowest, reach) = self.run_of_strides(&x.class);
            self.limits_of_run(x, reach);
            self.lane_address(x, lowest);
            self.test_start(x, RAX);
            self.after_tests(skip);
        }
        self.lane_address(x, 0);
        self.host(x, RAX);
        self.a.op2(Code::Mov_r64_rm64, Register::R8, RAX);
        for q in 0..n_parts(x.ty) {
            let by = (32 / n_parts(x.ty) * q) as i32 * stride as i32;
            self.strided_part(inst, x, q, Mem::at(Register::R8, by));
        }
    }

    /// In a block that some lanes may execute: if all of them do, and stand where one run may be. Goes to `done` then.
    pub(crate) fn strided_by_all(&mut self, inst: &Inst, x: &Access, done: Label) {
        if x.lanes != LANES || x.limits == Limits::Own || self.stride_of(&x.class).is_none() {
            return;
        }
        let apart = self.a.label();
        self.a.imm(Code::Cmp_rm32_imm8, LANES, -1);
        self.a.jump(Code::Jne_rel32_64, apart);
        let in_part = std::mem::replace(&mut self.in_part, false);
        self.strided(inst, &Access { cold: apart, ..*x });
        self.in_part = in_part;
        self.a.jump(Code::Jmp_rel32_64, done);
        self.a.bind(apart);
    }

    /// A part whose tests are made elsewhere.
    pub(crate) fn strided_of_run(&mut self, inst: &Inst, x: &Access, runs: &Runs, q: usize) {
        let m = self.run_element(x, runs, 32 / n_parts(x.ty) * q);
        self.strided_part(inst, x, q, m);
    }

    /// A part, whose first lane lies at `m`. Clobbers `rax`, `k6`.
    fn strided_part(&mut self, inst: &Inst, x: &Access, q: usize, m: Mem) {
        let Some(stride) = self.stride_of(&x.class) else { return };
        let layout = Layout::new(x, stride);
        let lowest = m.behind(-(layout.places[0] as i32));
        if x.class.kind == Kind::Load {
            self.tuple_result(inst.dst[0], q, x, |s, to| s.pick(x.ty, &layout, lowest, to));
            return;
        }
        let s = self.clean_src(inst.src[1]);
        let from = self.reg(&s, q, 4);
        for chunk in 0..layout.chunks() {
            let lanes = layout.lanes_of(chunk);
            let order: Vec<u64> = lanes.iter().map(|l| l.unwrap_or(0) as u64).collect();
            let some = (0..).zip(&lanes).fold(0, |m, (i, l)| m | u64::from(l.is_some()) << i);
            self.order(x.ty, &order, zmm(5));
            self.a.op3(permutation(x.ty), zmm(5), zmm(5), from);
            let mask = if lanes.iter().all(Option::is_some) { ALL } else { K6 };
            if mask != ALL {
                self.a.number(RAX, some);
                self.a.op2(Code::VEX_Kmovw_kr_r32, K6, EAX);
            }
            self.a.store(store_code(x.ty), lowest.behind((CHUNK * chunk) as i32), zmm(5), mask);
        }
    }

    /// Picks the elements of a part from its chunks. Uses vectors 3 to 5.
    fn pick(&mut self, ty: Ty, layout: &Layout, lowest: Mem, to: Register) {
        let at = |chunk: i64| lowest.behind(layout.start(chunk) as i32);
        let n = layout.places.len() as u64;
        let sources: Vec<(i64, u64)> = (0..layout.places.len()).map(|l| layout.source(l)).collect();
        // Of two chunks, from the lower one on. Elements of others are any.
        let of_two = |first: i64| -> Vec<u64> {
            sources.iter().map(|(chunk, i)| if *chunk == first + 1 { n + i } else { *i }).collect()
        };
        let two = |s: &mut Self, first: i64, order: &[u64], to: Register| {
            s.a.op2(load_code(ty), zmm(4), at(first));
            s.order(ty, order, to);
            s.a.op3(permutation_of_two(ty), to, zmm(4), at(first + 1));
        };
        match layout.chunks() {
            1 => {
                self.order(ty, &of_two(0), zmm(4));
                self.a.op3(permutation(ty), to, zmm(4), at(0));
            }
            2 => two(self, 0, &of_two(0), to),
            3 => {
                two(self, 0, &of_two(0), zmm(5));
                let order: Vec<u64> =
                    (0..n).zip(&sources).map(|(l, (chunk, i))| if *chunk == 2 { n + i } else { l }).collect();
                self.order(ty, &order, to);
                self.a.op3(permutation_of_two(ty), to, zmm(5), at(2));
            }
            _ => {
                two(self, 0, &of_two(0), zmm(5));
                two(self, 2, &of_two(2), zmm(3));
                let order: Vec<u64> =
                    (0..n).zip(&sources).map(|(l, (chunk, _))| if *chunk >= 2 { n + l } else { l }).collect();
                self.order(ty, &order, to);
                self.a.op3(permutation_of_two(ty), to, zmm(5), zmm(3));
            }
        }
    }

    /// Numbers of elements in a vector.
    fn order(&mut self, ty: Ty, order: &[u64], to: Register) {
        let c = self.lanes_constant(ty, order);
        self.a.op2(load_code(ty), to, c);
    }
}

/// Elements by number, of one vector.
fn permutation(ty: Ty) -> Code {
    by_width(ty, Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpermq_zmm_k1z_zmm_zmmm512b64)
}

/// Elements by number, of two vectors; the numbers are in the result.
fn permutation_of_two(ty: Ty) -> Code {
    by_width(ty, Code::EVEX_Vpermi2d_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpermi2q_zmm_k1z_zmm_zmmm512b64)
}
