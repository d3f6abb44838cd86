//! Warp contexts: memory for them, and what the scheduler does with one.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;

use handloom_plan::abi::{Loc, Tables, WarpCtx};
use handloom_plan::analysis::shape::MOST_PIECES;

/// Memory that is never uninitialised.
#[derive(Debug)]
struct Memory {
    start: *mut u8,
    layout: Layout,
}

thread_local! {
    /// What the last contexts of this thread left: many launches in a row want the same.
    static SPARE: Cell<Option<Memory>> = const { Cell::new(None) };
}

impl Memory {
    fn zeroed(layout: Layout) -> Memory {
        // SAFETY: callers ask for at least the size of a header.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        Memory { start, layout }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this layout.
        unsafe { dealloc(self.start, self.layout) }
    }
}

/// An array of contexts of one function.
#[derive(Debug)]
pub(crate) struct Contexts {
    /// `None` only while it is dropped.
    memory: Option<Memory>,
    start: *mut u8,
    layout: Layout,
    /// Bytes of one.
    pub(crate) stride: u64,
    /// By warp: the place of its context, where they do not stand in ascending order.
    places: Option<Box<[usize]>>,
}

// SAFETY: the memory belongs to this object alone; whoever has it may move it to another thread.
unsafe impl Send for Contexts {}

impl Contexts {
    /// Contexts for a function, with nothing in their headers and no lane pending.
    pub(crate) fn new(tables: &Tables, n: usize) -> Contexts {
        let stride = (tables.ctx_bytes as usize).max(size_of::<WarpCtx>()).next_multiple_of(64);
        let layout = Layout::from_size_align(stride * n.max(1), 64).unwrap_or(Layout::new::<WarpCtx>());
        let spare = SPARE.try_with(Cell::take).ok().flatten().filter(|m| m.layout == layout);
        let memory = match spare {
            Some(memory) => {
                let head =
                    (tables.pend_offset as usize + 4 * tables.n_blocks as usize).clamp(size_of::<WarpCtx>(), stride);
                for i in 0..layout.size() / stride {
                    // SAFETY: the head of a context lies in its stride, and all strides in the memory.
                    unsafe { memory.start.add(i * stride).write_bytes(0, head) }
                }
                memory
            }
            None => Memory::zeroed(layout),
        };
        Contexts { start: memory.start, memory: Some(memory), layout, stride: stride as u64, places: None }
    }

    /// Lets warps take their turns in an order: the first context is that of warp `order[0]`.
    pub(crate) fn arrange(&mut self, order: &[usize]) {
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, warp)| places[*warp] = place);
        self.places = Some(places.into());
    }

    /// Address of the first.
    pub(crate) fn first(&self) -> u64 {
        self.start as u64
    }

    /// One past the last.
    pub(crate) fn end(&self) -> u64 {
        self.start as u64 + self.layout.size() as u64
    }

    /// The context of a number.
    pub(crate) fn at(&self, i: usize, tables: *const Tables) -> Ctx {
        let i = self.places.as_ref().map_or(i, |places| places[i]);
        debug_assert!((i as u64) * self.stride < self.layout.size() as u64);
        // SAFETY: callers pass numbers below the `n` of `new`, so the result lies in the allocation.
        Ctx { warp: unsafe { self.start.add(i * self.stride as usize) }.cast(), tables }
    }

    /// Puts all contexts of an entry at block 0, where `lanes` says which lanes each has.
    ///
    /// What does not differ from cta to cta was written before, and code left no lane pending: a context whose lanes have all exited has none.
    pub(crate) fn start_all(&self, tables: *const Tables, lanes: &[u32]) {
        for (w, live) in lanes.iter().enumerate() {
            let ctx = self.at(w, tables);
            debug_assert!((0..ctx.tables().n_blocks).all(|b| ctx.pend(b) == 0), "lanes of the cta before are left");
            ctx.update(|h| {
                h.live = *live;
                h.state = 0;
                h.wait_epoch = 0;
            });
            ctx.set_pend(0, *live);
        }
    }

    /// A number that is the same for the same bytes.
    pub(crate) fn hash(&self, mut h: u64) -> u64 {
        let words = self.start.cast::<u64>();
        for i in 0..self.layout.size() / 8 {
            // SAFETY: below the size of the allocation, which is aligned to 64; no code runs on it now.
            h = mix(h, unsafe { words.add(i).read() });
        }
        h
    }
}

/// The low bits of a value.
fn cut(value: u64, bits: u8) -> u64 {
    value & 1_u64.checked_shl(u32::from(bits)).map_or(u64::MAX, |t| t - 1)
}

/// A predicate as a row has it.
pub(crate) fn predicate(value: bool) -> u64 {
    if value { 0xffff_ffff } else { 0 }
}

/// Adds a word to a hash.
pub(crate) fn mix(h: u64, word: u64) -> u64 {
    (h.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

impl Drop for Contexts {
    fn drop(&mut self) {
        let memory = self.memory.take();
        // Where the thread ends, it is freed.
        let _ = SPARE.try_with(|spare| spare.set(memory));
    }
}

/// A context and the tables of the code that runs it. Valid as long as its [`Contexts`] and the program live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ctx {
    pub(crate) warp: *mut WarpCtx,
    pub(crate) tables: *const Tables,
}

impl Ctx {
    /// The tables of its code.
    pub(crate) fn tables<'t>(self) -> &'t Tables {
        // SAFETY: tables belong to the program, which the cta's host state keeps alive; they are never written.
        unsafe { &*self.tables }
    }

    /// A copy of the header.
    pub(crate) fn header(self) -> WarpCtx {
        // SAFETY: a context begins with a header, and no code runs on it while the runtime does.
        unsafe { self.warp.read() }
    }

    /// Something of its header. What code wrote piece by piece is read so: a copy of the whole waits until all pieces are in memory.
    pub(crate) fn of_header<R>(self, f: impl FnOnce(&WarpCtx) -> R) -> R {
        // SAFETY: as in `header`; the reference ends here.
        f(unsafe { &*self.warp })
    }

    /// Its lanes that have not ended.
    pub(crate) fn live(self) -> u32 {
        // SAFETY: as in `header`.
        unsafe { (*self.warp).live }
    }

    /// Changes the header.
    pub(crate) fn update(self, f: impl FnOnce(&mut WarpCtx)) {
        // SAFETY: as in `header`; the reference ends here.
        f(unsafe { &mut *self.warp });
    }

    /// The lanes pending at a block.
    pub(crate) fn pend(self, block: u32) -> u32 {
        // SAFETY: `pend_ptr` points into the context.
        unsafe { self.pend_ptr(block).read() }
    }

    /// Replaces the lanes pending at a block.
    pub(crate) fn set_pend(self, block: u32, lanes: u32) {
        // SAFETY: as in `pend`.
        unsafe { self.pend_ptr(block).write(lanes) }
    }

    fn pend_ptr(self, block: u32) -> *mut u32 {
        let t = self.tables();
        let block = block.min(t.n_blocks.saturating_sub(1));
        let at = t.pend_offset as usize + 4 * block as usize;
        // SAFETY: the pending words lie in the context, one for each block.
        unsafe { self.warp.cast::<u8>().add(at).cast() }
    }

    /// Lets lanes go on at a block.
    pub(crate) fn resume(self, block: u32, lanes: u32) {
        if lanes != 0 {
            self.set_pend(block, self.pend(block) | lanes);
            self.update(|h| h.state = h.state.min(block));
        }
    }

    /// Sets `state` to the lowest block with lanes. Says whether there is one.
    pub(crate) fn settle(self) -> bool {
        let n = self.tables().n_blocks;
        // SAFETY: the pending words lie in the context, one for each block, and no code runs on it now.
        let words = unsafe { std::slice::from_raw_parts(self.pend_ptr(0), n as usize) };
        let lowest = (0..n).zip(words).find(|(_, lanes)| **lanes != 0).map_or(n, |(b, _)| b);
        self.update(|h| h.state = lowest);
        lowest < n
    }

    /// Takes all lanes out: code passes it over.
    pub(crate) fn clear(self) {
        (0..self.tables().n_blocks).for_each(|b| self.set_pend(b, 0));
        self.update(|h| (h.state, h.wait_epoch) = (self.tables().skip(), 0));
    }

    /// Whether code would run something in it.
    pub(crate) fn is_runnable(self) -> bool {
        // SAFETY: as in `header`.
        unsafe { (*self.warp).state < self.tables().n_blocks }
    }

    /// Prepares a zeroed one for a start at block 0.
    pub(crate) fn start(self, header: WarpCtx) {
        // SAFETY: as in `update`.
        unsafe { self.warp.write(WarpCtx { state: 0, ..header }) }
        self.set_pend(0, header.live);
    }

    /// A value in a lane.
    pub(crate) fn read(self, loc: Loc, lane: usize) -> u64 {
        let at = |offset: usize| self.warp.cast::<u8>().wrapping_add(offset);
        match loc {
            // SAFETY: codegen's tables name rows inside the context, 32 lanes long.
            Loc::Row32(o) => u64::from(unsafe { at(o as usize + 4 * lane).cast::<u32>().read() }),
            // SAFETY: as above.
            Loc::Row64(o) => unsafe { at(o as usize + 8 * lane).cast::<u64>().read() },
            // SAFETY: as above, for one word.
            Loc::Scalar(o) => unsafe { at(o as usize).cast::<u64>().read() },
            Loc::Imm(v) => v,
            Loc::Linear { at: o, stride, bits } => {
                // SAFETY: as above, for one word.
                let base = unsafe { at(o as usize).cast::<u64>().read() };
                cut(base.wrapping_add_signed(stride.wrapping_mul(lane as i64)), bits)
            }
            Loc::Shaped { at: o, shape, bits } => {
                // SAFETY: as above, for one word of each group.
                let base = unsafe { at(o as usize + 8 * shape.group_of(lane)).cast::<u64>().read() };
                cut(base.wrapping_add_signed(shape.delta(lane)), bits)
            }
            Loc::Pieces { at: o, len, stride, bits } => {
                let len = usize::from(len);
                // SAFETY: as above, for one word of each piece.
                let base = unsafe { at(o as usize + 8 * (lane / len)).cast::<u64>().read() };
                cut(base.wrapping_add_signed(stride.wrapping_mul((lane % len) as i64)), bits)
            }
        }
    }

    /// Writes a value in a lane.
    pub(crate) fn write(self, loc: Loc, lane: usize, value: u64) {
        let at = |offset: usize| self.warp.cast::<u8>().wrapping_add(offset);
        match loc {
            // SAFETY: as in `read`. The cast cuts a value that fits.
            Loc::Row32(o) => unsafe { at(o as usize + 4 * lane).cast::<u32>().write(value as u32) },
            // SAFETY: as in `read`.
            Loc::Row64(o) => unsafe { at(o as usize + 8 * lane).cast::<u64>().write(value) },
            // SAFETY: as in `read`.
            Loc::Scalar(o) => unsafe { at(o as usize).cast::<u64>().write(value) },
            // The word is the value of the first lane.
            Loc::Linear { at: o, .. } if lane == 0 => {
                // SAFETY: as in `read`.
                unsafe { at(o as usize).cast::<u64>().write(value) }
            }
            // The word of a piece is the value of its first lane.
            Loc::Pieces { at: o, len, .. } if lane.is_multiple_of(usize::from(len)) => {
                // SAFETY: as in `read`.
                unsafe { at(o as usize + 8 * (lane / usize::from(len))).cast::<u64>().write(value) }
            }
            // The word of a group is the value of its first lane.
            Loc::Shaped { at: o, shape, .. } if shape.first_lane(shape.group_of(lane)) == lane => {
                // SAFETY: as in `read`.
                unsafe { at(o as usize + 8 * shape.group_of(lane)).cast::<u64>().write(value) }
            }
            Loc::Imm(_) | Loc::Linear { .. } | Loc::Shaped { .. } | Loc::Pieces { .. } => {}
        }
    }

    /// The values of the first lanes of equal parts of a warp in which lanes follow each other at one distance: how many lanes a part has, and the distance.
    /// `None` where tables do not say that.
    pub(crate) fn pieces(self, loc: &Loc, first: &mut [u64; MOST_PIECES]) -> Option<(usize, i64)> {
        let at = |offset: usize| self.warp.cast::<u8>().wrapping_add(offset);
        match *loc {
            Loc::Imm(_) | Loc::Scalar(_) => {
                first[0] = self.read(*loc, 0);
                Some((32, 0))
            }
            Loc::Linear { stride, .. } => {
                first[0] = self.read(*loc, 0);
                Some((32, stride))
            }
            Loc::Pieces { at: o, len, stride, bits } => {
                let len = usize::from(len);
                if len * MOST_PIECES < 32 {
                    return None;
                }
                for (i, value) in first.iter_mut().enumerate().take(32 / len) {
                    // SAFETY: as in `read`, for one word of each piece.
                    *value = cut(unsafe { at(o as usize + 8 * i).cast::<u64>().read() }, bits);
                }
                Some((len, stride))
            }
            Loc::Shaped { ref shape, .. } if shape.is_flipped() => None,
            Loc::Shaped { at: o, ref shape, bits } => {
                for (value, (group, off)) in first.iter_mut().zip(shape.pieces()) {
                    // SAFETY: as in `read`, for one word of each group.
                    let base = unsafe { at(o as usize + 8 * group).cast::<u64>().read() };
                    *value = cut(base.wrapping_add_signed(off), bits);
                }
                Some((shape.piece_len(), shape.stride))
            }
            Loc::Row32(_) | Loc::Row64(_) => None,
        }
    }

    /// All lanes of a row of 32 bits.
    pub(crate) fn row32(self, at: u32) -> [u32; 32] {
        // SAFETY: as in `read`: a row of the context, 32 lanes long and aligned.
        unsafe { self.warp.cast::<u8>().wrapping_add(at as usize).cast::<[u32; 32]>().read() }
    }

    /// The values of the lanes of a mask; other entries keep what they hold, or get some value of the row.
    #[inline]
    pub(crate) fn read_row(self, loc: Loc, mask: u32, out: &mut [u64; 32]) {
        let at = |offset: u32| self.warp.cast::<u8>().wrapping_add(offset as usize);
        match loc {
            Loc::Row32(o) => {
                out.iter_mut().zip(self.row32(o)).for_each(|(v, x)| *v = u64::from(x));
            }
            // SAFETY: as above.
            Loc::Row64(o) => *out = unsafe { at(o).cast::<[u64; 32]>().read() },
            Loc::Imm(v) => *out = [v; 32],
            Loc::Scalar(_) => *out = [self.read(loc, 0); 32],
            Loc::Linear { bits, .. } | Loc::Shaped { bits, .. } | Loc::Pieces { bits, .. } => {
                let mut first = [0; MOST_PIECES];
                let Some((len, stride)) = self.pieces(&loc, &mut first) else {
                    return (0..32).filter(|l| mask >> l & 1 == 1).for_each(|l| out[l] = self.read(loc, l));
                };
                for (piece, first) in out.chunks_exact_mut(len).zip(first) {
                    for (value, lane) in piece.iter_mut().zip(0_i64..) {
                        *value = cut(first.wrapping_add_signed(stride.wrapping_mul(lane)), bits);
                    }
                }
            }
        }
    }

    /// Writes the values of the lanes of a mask.
    #[inline]
    pub(crate) fn write_row(self, loc: Loc, mask: u32, values: &[u64; 32]) {
        match loc {
            Loc::Row32(o) if mask == u32::MAX => {
                let row: [u32; 32] = std::array::from_fn(|l| values[l] as u32);
                // SAFETY: as in `read_row`.
                unsafe { self.warp.cast::<u8>().wrapping_add(o as usize).cast::<[u32; 32]>().write(row) }
            }
            Loc::Row32(o) => {
                // SAFETY: as in `read_row`; nothing else refers to the row while the runtime runs.
                let row = unsafe { &mut *self.warp.cast::<u8>().wrapping_add(o as usize).cast::<[u32; 32]>() };
                for (lane, to) in row.iter_mut().enumerate() {
                    *to = if mask >> lane & 1 == 1 { values[lane] as u32 } else { *to };
                }
            }
            Loc::Row64(o) => {
                // SAFETY: as above.
                let row = unsafe { &mut *self.warp.cast::<u8>().wrapping_add(o as usize).cast::<[u64; 32]>() };
                for (lane, to) in row.iter_mut().enumerate() {
                    *to = if mask >> lane & 1 == 1 { values[lane] } else { *to };
                }
            }
            _ => (0..32).filter(|l| mask >> l & 1 == 1).for_each(|l| self.write(loc, l, values[l])),
        }
    }

    /// Writes a value in each of some lanes, one after the other.
    #[inline(always)]
    pub(crate) fn write_lanes(self, loc: Loc, lanes: impl Iterator<Item = usize>, value: impl Fn(usize) -> u64) {
        match loc {
            Loc::Row32(o) => {
                // SAFETY: as in `write_row`.
                let row = unsafe { &mut *self.warp.cast::<u8>().wrapping_add(o as usize).cast::<[u32; 32]>() };
                lanes.for_each(|lane| row[lane] = value(lane) as u32);
            }
            Loc::Row64(o) => {
                // SAFETY: as in `write_row`.
                let row = unsafe { &mut *self.warp.cast::<u8>().wrapping_add(o as usize).cast::<[u64; 32]>() };
                lanes.for_each(|lane| row[lane] = value(lane));
            }
            _ => lanes.for_each(|lane| self.write(loc, lane, value(lane))),
        }
    }

    /// Writes a predicate in a lane: 0 or all ones.
    pub(crate) fn write_pred(self, loc: Loc, lane: usize, value: bool) {
        self.write(loc, lane, predicate(value));
    }
}
