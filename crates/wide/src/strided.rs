//! Elements a few elements apart: members of structures, one colour of a picture, rows read backwards, what each thread of a row of threads takes of a tile.
//!
//! # The model
//! Lanes of a part, all of one group, lie within a few *chunks* of 64 bytes. A load reads these, the last one so that it ends with the last element of the group, and picks the elements
//! from them: what lies between elements of one run that was tested as a whole may be read. A store puts elements where they belong in each chunk, and writes them alone.
//!
//! Gathers and scatters of the host take a step for each element.

use handloom_ir::simt::Inst;
use handloom_ir::types::{Order, Ty};
use handloom_plan::access::{AccessClass, Kind};
use handloom_plan::analysis::shape::Shape;
use iced_x86::{Code, Register};

use crate::access::{Access, Limits, Runs};
use crate::alloc::{Place, n_parts};
use crate::asm::{Mem, Out};
use crate::emit::*;
use crate::head::Going;
use crate::values::{by_width, load_code, store_code};

const K6: Register = Register::K6;
/// The most bytes of a part: eight chunks.
const MOST: i64 = 512;
/// The most bytes of a run, which is tested as a whole.
const MOST_OF_RUN: i64 = 1 << 16;

/// How the elements of a part lie.
#[derive(PartialEq)]
struct Layout {
    /// The lane of the group that lies lowest: the run begins there.
    lowest: usize,
    /// Bytes of an element.
    size: i64,
    /// Bytes from the first byte of the run to the element of each lane.
    places: Vec<i64>,
    /// Bytes of the whole run, of all lanes of the group.
    run: i64,
    /// Bytes of a chunk that is read.
    chunk: i64,
}

impl Layout {
    fn new(shape: &Shape, x: &Access, q: usize) -> Layout {
        let (lanes, size) = (32 / n_parts(x.ty), i64::from(x.size()));
        let (lowest, reach) = run_of(shape, shape.group_of(lanes * q));
        let places = (lanes * q..lanes * (q + 1)).map(|l| shape.delta(l) - shape.delta(lowest)).collect();
        let run = reach + size;
        Layout { lowest, size, places, run, chunk: if run < 64 { 32 } else { 64 } }
    }

    /// The first byte of a part, and how many there are up to its end.
    fn span(&self) -> (i64, i64) {
        let (first, last) = self.places.iter().fold((i64::MAX, 0), |(a, b), p| (a.min(*p), b.max(*p)));
        (first, last + self.size - first)
    }

    fn chunks(&self) -> i64 {
        (self.span().1 + self.chunk - 1) / self.chunk
    }

    /// Where a chunk of a load begins: none ends behind the run.
    fn start(&self, chunk: i64) -> i64 {
        (self.span().0 + self.chunk * chunk).min(self.run - self.chunk)
    }

    /// The chunk that a lane is read from, and the byte of its element there.
    fn source(&self, lane: usize) -> (i64, i64) {
        let chunk = ((self.places[lane] - self.span().0) / self.chunk).min(self.chunks() - 1);
        (chunk, self.places[lane] - self.start(chunk))
    }

    /// By element of a chunk of a store, which begins so many bytes behind the first one of the part, the last lane that it is of.
    fn lanes_of(&self, from: i64) -> Vec<Option<usize>> {
        let first = self.span().0 + from;
        let of = |i: i64| self.places.iter().rposition(|p| *p == first + self.size * i);
        (0..64 / self.size).map(of).collect()
    }
}

/// The lane of a group that lies lowest, and bytes from its element to the highest one.
pub(crate) fn run_of(shape: &Shape, group: usize) -> (usize, i64) {
    let lowest = (0..32).filter(|l| shape.group_of(*l) == group).min_by_key(|l| shape.delta(*l)).unwrap_or(0);
    let (low, high) = shape.span(group);
    (lowest, high.saturating_sub(low))
}

/// Whether lanes lie so: each part in one group, within a few chunks, neither at one address nor one behind the other.
fn is_apart(shape: &Shape, size: i64, n_parts: usize) -> bool {
    let n = 32 / n_parts;
    let (_, reach) = run_of(shape, 0);
    let run = reach.saturating_add(size);
    let fits = |first: usize| {
        let d: Vec<i64> = (first..first + n).map(|l| shape.delta(l)).collect();
        let (low, high) = d.iter().fold((d[0], d[0]), |(a, b), d| (a.min(*d), b.max(*d)));
        (first..first + n).all(|l| shape.group_of(l) == shape.group_of(first))
            && d.iter().all(|d| d % size == 0)
            && high - low + size <= MOST
    };
    let is_one_row = |first: usize| {
        let step = shape.delta(first + 1) - shape.delta(first);
        let follows = |l: usize| shape.delta(l + 1) - shape.delta(l) == step;
        (step == 0 || step == size) && (first..first + n - 1).all(follows)
    };
    (32..=MOST_OF_RUN).contains(&run)
        && (0..shape.groups()).all(|g| run_of(shape, g).1 == reach)
        && (0..32).step_by(n).all(fits)
        && !(0..32).step_by(n).all(is_one_row)
}

/// Whether elements of 32 or 64 bits that lie apart lie within one chunk for each part, of a store each at a place of its own: which of some lanes is the last one is not known.
pub(crate) fn is_close(shape: &Shape, bytes: i64, is_load: bool) -> bool {
    let n = (64 / bytes) as usize;
    (0..32).step_by(n).all(|first| {
        let mut d: Vec<i64> = (first..first + n).map(|l| shape.delta(l)).collect();
        d.sort_unstable();
        d[n - 1] - d[0] + bytes <= 64 && (is_load || d.windows(2).all(|w| w[0] < w[1]))
    })
}

impl Emit<'_> {
    /// Whether an access whose lanes lie as a shape says is done so where all lanes do it.
    pub(crate) fn lies_apart(&self, class: &AccessClass, shape: &Shape, ty: Ty) -> bool {
        self.a.has_wide_vectors()
            && matches!(class.kind, Kind::Load | Kind::Store)
            && class.order == Order::Weak
            && class.count == 1
            && is_apart(shape, class.bytes(), n_parts(ty))
    }

    /// Whether an access is. Objects in local memory lie at distances of their own, and none of them is the next lane's.
    pub(crate) fn is_strided(&self, x: &Access, shape: &Shape) -> bool {
        let is_own = self.may_be_own(x) && (!shape.is_linear() || shape.stride == self.plan.facts.local_stride);
        !is_own && x.limits != Limits::Own && self.lies_apart(&x.class, shape, x.ty)
    }

    /// The runs of such an access, if the head may have decided about it.
    pub(crate) fn runs_of_strides(&self, x: &Access, shape: &Shape) -> Option<Runs> {
        let lowest: Vec<usize> = (0..shape.groups()).map(|g| run_of(shape, g).0).collect();
        self.decided_runs(x, &lowest, run_of(shape, 0).1)
    }

    /// With its own tests.
    pub(crate) fn strided(&mut self, inst: &Inst, x: &Access, shape: &Shape) {
        if x.limits != Limits::Safe {
            let skip = self.around_tests(x);
            self.limits_of_run(x, run_of(shape, 0).1);
            for g in 0..shape.groups() {
                self.lane_address(x, run_of(shape, g).0);
                self.test_start(x, RAX);
            }
            self.after_tests(skip);
        }
        for q in 0..n_parts(x.ty) {
            let layout = Layout::new(shape, x, q);
            self.lane_address(x, layout.lowest);
            self.host(x, RAX);
            self.a.op2(Code::Mov_r64_rm64, Register::R8, RAX);
            self.strided_part(inst, x, q, &layout, Mem::at(Register::R8, 0));
        }
    }

    /// A part whose tests are made elsewhere.
    pub(crate) fn strided_of_run(&mut self, inst: &Inst, x: &Access, runs: &Runs, q: usize) {
        let layout = Layout::new(&runs.shape, x, q);
        let is_repeated = q > 0 && Layout::new(&runs.shape, x, q - 1) == layout;
        if !is_repeated || !self.take_part_before(inst, x, q) {
            let m = self.run_element(x, runs, layout.lowest);
            self.strided_part(inst, x, q, &layout, m);
        }
    }

    /// Lets a part of what is read be what the part before it read, if vectors hold that.
    pub(crate) fn take_part_before(&mut self, inst: &Inst, x: &Access, q: usize) -> bool {
        let Some(&d) = inst.dst.first() else { return false };
        let Place::Vectors(v) = self.place(d) else { return false };
        // Of some lanes the part before may have read others than this one wants.
        if matches!(self.going, Some(Going::Known(lanes)) if lanes != u32::MAX) {
            return false;
        }
        if n_parts(x.ty) == 2 && self.may_be_alike(d) {
            self.alike.push(d);
        } else {
            self.a.op2(load_code(x.ty), zmm(v[q]), zmm(v[q - 1]));
        }
        true
    }

    /// Where 64 bytes each of such a load lie.
    pub(crate) fn lines_of_strides(&mut self, x: &Access, runs: &Runs) -> Vec<Mem> {
        let mut lines = Vec::new();
        for q in 0..n_parts(x.ty) {
            let layout = Layout::new(&runs.shape, x, q);
            let m = self.run_element(x, runs, layout.lowest);
            let (first, reach) = layout.span();
            lines.extend((first..first + reach).step_by(64).map(|at| m.behind(at as i32)));
        }
        lines.dedup();
        lines
    }

    /// A part of a run that begins at `m`. Clobbers `rax`, `k6`, vectors 3 to 6.
    fn strided_part(&mut self, inst: &Inst, x: &Access, q: usize, layout: &Layout, m: Mem) {
        if x.class.kind == Kind::Load {
            self.tuple_result(inst.dst[0], q, x, |s, to| s.pick(x.ty, layout, m, to));
            return;
        }
        let s = self.clean_src(inst.src[1]);
        let from = self.reg(&s, q, 4);
        let (first, reach) = layout.span();
        for by in (0..reach).step_by(64) {
            let lanes = layout.lanes_of(by);
            if layout.size < 4 {
                self.arrange_small(&lanes, layout.size, from)
            } else {
                self.arrange(x.ty, &lanes, from)
            }
            let some = (0..).zip(&lanes).fold(0, |m, (i, l)| m | u64::from(l.is_some()) << i);
            let mut mask = if lanes.iter().all(Option::is_some) { ALL } else { K6 };
            if mask != ALL {
                self.a.number(RAX, some);
                self.a.op2(Code::VEX_Kmovq_kr_r64, K6, RAX);
            }
            if self.is_of_part(x) {
                self.arrange_mask(x, q, &lanes, mask);
                mask = K6;
            }
            let code = match layout.size {
                1 => Code::EVEX_Vmovdqu8_zmmm512_k1z_zmm,
                2 => Code::EVEX_Vmovdqu16_zmmm512_k1z_zmm,
                _ => store_code(x.ty),
            };
            self.a.store(code, m.behind((first + by) as i32), zmm(5), mask);
        }
    }

    /// Elements of 32 or 64 bits to where their lanes stand, in vector 5.
    fn arrange(&mut self, ty: Ty, lanes: &[Option<usize>], from: Register) {
        self.order(ty, &sources(lanes), zmm(5));
        self.a.op3(permutation(ty), zmm(5), zmm(5), from);
    }

    /// In `k6` the elements of 32 or 64 bits, of those in a mask, whose lanes take part. Uses vectors 3 and 6.
    fn arrange_mask(&mut self, x: &Access, q: usize, lanes: &[Option<usize>], of: Register) {
        let (ones, ty) = (zmm(3), x.ty);
        self.a.op3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, ones, ones, ones);
        let fill = by_width(
            ty,
            Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8,
            Code::EVEX_Vpternlogq_zmm_k1z_zmm_zmmm512b64_imm8,
        );
        let taking = self.lanes_mask(x.lanes, ty, q);
        self.a.op3i(fill, Out::masked(ones, taking), ones, ones, 0xff);
        self.order(ty, &sources(lanes), zmm(6));
        self.a.op3(permutation(ty), ones, zmm(6), ones);
        let test = by_width(ty, Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32, Code::EVEX_Vptestmq_kr_k1_zmm_zmmm512b64);
        self.a.op3(test, Out::masked(K6, of), ones, ones);
    }

    /// Elements of 8 or 16 bits to where their lanes stand, in vector 5: the first one of each word, then the others of it. Uses vectors 3 and 6.
    fn arrange_small(&mut self, lanes: &[Option<usize>], size: i64, from: Register) {
        let bits = 8 * size as u64;
        let words: Vec<Vec<(u64, u64)>> = lanes
            .chunks(4 / size as usize)
            .map(|of| (0..).zip(of).filter_map(|(k, l)| l.map(|l| (l as u64, bits * k))).collect())
            .collect();
        for k in 0..words.iter().map(Vec::len).max().unwrap_or(0) {
            let of = |w: &Vec<(u64, u64)>| w.get(k).copied();
            let order: Vec<u64> = words.iter().map(|w| of(w).map_or(0, |(lane, _)| lane)).collect();
            let shifts: Vec<u64> = words.iter().map(|w| of(w).map_or(0, |(_, by)| by)).collect();
            let to = zmm(if k == 0 { 5 } else { 6 });
            self.order(Ty::B32, &order, to);
            self.a.op3(permutation(Ty::B32), to, to, from);
            let shifts = self.lanes_constant(Ty::B32, &shifts);
            self.a.op3(Code::EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32, to, to, shifts);
            if k > 0 {
                // What is of these alone, and what was there elsewhere.
                let kept: Vec<u64> = words.iter().map(|w| of(w).map_or(0, |(_, by)| ((1 << bits) - 1) << by)).collect();
                let kept = self.lanes_constant(Ty::B32, &kept);
                self.a.op3i(Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8, zmm(5), to, kept, 0xd8);
            }
        }
    }

    /// Picks the elements of a part from its chunks. Uses vectors 3 to 5; `rax` and `k6` where they are many.
    fn pick(&mut self, ty: Ty, layout: &Layout, m: Mem, to: Register) {
        let at = |chunk: i64| m.behind(layout.start(chunk) as i32);
        // Elements of 8 and 16 bits are in words.
        let unit = layout.size.max(4);
        let n = (64 / unit).cast_unsigned();
        let sources: Vec<(i64, i64)> = (0..layout.places.len()).map(|l| layout.source(l)).collect();
        let number = |at: i64| (at / unit).cast_unsigned();
        // Of two chunks, from the lower one on. Elements of others are any.
        let of_two = |first: i64| -> Vec<u64> {
            sources.iter().map(|(chunk, at)| if *chunk == first + 1 { n + number(*at) } else { number(*at) }).collect()
        };
        let two = |s: &mut Self, first: i64, order: &[u64], to: Register| {
            s.a.op2(load_code(ty), zmm(4), at(first));
            s.order(ty, order, to);
            s.a.op3(permutation_of_two(ty), to, zmm(4), at(first + 1));
        };
        match layout.chunks() {
            1 => {
                self.order(ty, &of_two(0), zmm(4));
                if layout.chunk == 64 {
                    self.a.op3(permutation(ty), to, zmm(4), at(0));
                } else {
                    self.a.op2(Code::VEX_Vmovdqu_ymm_ymmm256, ymm(zmm(5)), at(0));
                    self.a.op3(permutation(ty), to, zmm(4), zmm(5));
                }
            }
            2 if layout.chunk < 64 => {
                let order: Vec<u64> =
                    sources.iter().map(|(chunk, at)| chunk.cast_unsigned() * n / 2 + number(*at)).collect();
                self.order(ty, &order, zmm(4));
                self.a.op2(Code::VEX_Vmovdqu_ymm_ymmm256, ymm(zmm(5)), at(0));
                self.a.op3i(Code::EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8, zmm(5), zmm(5), at(1), 1);
                self.a.op3(permutation(ty), to, zmm(4), zmm(5));
            }
            2 => two(self, 0, &of_two(0), to),
            3 => {
                two(self, 0, &of_two(0), zmm(5));
                let order: Vec<u64> =
                    (0..).zip(&sources).map(|(l, (chunk, at))| if *chunk == 2 { n + number(*at) } else { l }).collect();
                self.order(ty, &order, to);
                self.a.op3(permutation_of_two(ty), to, zmm(5), at(2));
            }
            4 => {
                two(self, 0, &of_two(0), zmm(5));
                two(self, 2, &of_two(2), zmm(3));
                let order: Vec<u64> =
                    (0..).zip(&sources).map(|(l, (chunk, _))| if *chunk >= 2 { n + l } else { l }).collect();
                self.order(ty, &order, to);
                self.a.op3(permutation_of_two(ty), to, zmm(5), zmm(3));
            }
            chunks => {
                // What is of none of the first two comes chunk by chunk.
                two(self, 0, &of_two(0), zmm(5));
                let order: Vec<u64> = sources.iter().map(|(_, at)| number(*at) % n).collect();
                self.order(ty, &order, zmm(4));
                for chunk in 2..chunks {
                    let of_it = (0..).zip(&sources).filter(|(_, s)| s.0 == chunk);
                    self.a.number(RAX, of_it.fold(0, |m, (l, _)| m | 1 << l));
                    self.a.op2(Code::VEX_Kmovd_kr_r32, K6, EAX);
                    self.a.op3(permutation(ty), Out::masked(zmm(5), K6), zmm(4), at(chunk));
                }
                self.a.op2(load_code(ty), to, zmm(5));
            }
        }
        if layout.size < 4 {
            let shifts: Vec<u64> = sources.iter().map(|(_, at)| (8 * (at % 4)).cast_unsigned()).collect();
            let shifts = self.lanes_constant(ty, &shifts);
            self.a.op3(Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32, to, to, shifts);
            let kept = self.constant(ty, (1 << (8 * layout.size)) - 1);
            self.a.op3(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, to, to, kept);
        }
    }

    /// Numbers of elements in a vector.
    fn order(&mut self, ty: Ty, order: &[u64], to: Register) {
        let c = self.lanes_constant(ty, order);
        self.a.op2(load_code(ty), to, c);
    }
}

/// The lane that each element of a chunk is of; any one where it is of none.
fn sources(lanes: &[Option<usize>]) -> Vec<u64> {
    lanes.iter().map(|l| l.unwrap_or(0) as u64).collect()
}

/// Elements by number, of one vector.
fn permutation(ty: Ty) -> Code {
    by_width(ty, Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpermq_zmm_k1z_zmm_zmmm512b64)
}

/// Elements by number, of two vectors; the numbers are in the result.
fn permutation_of_two(ty: Ty) -> Code {
    by_width(ty, Code::EVEX_Vpermi2d_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpermi2q_zmm_k1z_zmm_zmmm512b64)
}
