//! Where values are kept: the warp context, byte by byte.
//!
//! A context is a header, a word of pending lanes for each block, scratch rows for routines, words for loops over packs, the homes of registers
//! that live across blocks, and rows of registers that live in one block only.

use std::mem::size_of;

use handloom_ir::simt;
use handloom_ir::types::Ty;

use crate::abi::{Loc, WarpCtx, spread};
use crate::analysis::classes::{Class, Facts};

/// Where a register lives between blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// 32 lanes of 32 bits.
    Row32(u32),
    /// 32 lanes of 64 bits.
    Row64(u32),
    /// One 64-bit word for each group of the class's shape.
    Words(u32),
}

/// Sets of eight words for loops over packs.
pub const WORD_SLOTS: u32 = 128;

/// Scratch rows that there always are. Ops on many matrices want more.
const SCRATCH_ROWS: usize = 24;

/// The context of a warp.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Offset of the pending words.
    pub pend_offset: u32,
    /// Scratch rows of 256 bytes for routines: offset of the first.
    pub scratch: u32,
    /// How many there are.
    pub scratch_rows: u32,
    /// Words of affine operands for loops over packs: offset of the first.
    pub words: u32,
    /// Homes of registers; `None` for those that live in one block, and for those that are never written.
    pub homes: Vec<Option<Home>>,
    /// Rows of registers that live in one block at a time, for masked copies; 0 for none.
    pub temp_rows: Vec<u32>,
    /// Bytes of a context.
    pub ctx_bytes: u32,
}

impl Layout {
    /// Lays out the context: header, pending words, scratch rows, homes, rows of values of single blocks.
    pub fn new(f: &simt::Function, facts: &Facts, def_count: &[u32]) -> Layout {
        let n_regs = f.regs.len();
        let pend_offset = size_of::<WarpCtx>() as u32;
        let mut at = (pend_offset + 4 * f.blocks.len() as u32).next_multiple_of(64);
        let mut take = |bytes: u32| {
            let here = at;
            at += bytes;
            here
        };
        let matrix_ops = f.blocks.iter().flat_map(|b| &b.insts).filter(|i| matches!(i.op, simt::Op::Matrix(_)));
        let scratch_rows = matrix_ops.fold(SCRATCH_ROWS, |most, i| most.max(i.src.len() + i.dst.len())) as u32;
        let scratch = take(256 * scratch_rows);
        let words = take(64 * WORD_SLOTS);
        let mut crosses = facts.live.across.clone();
        f.blocks.iter().filter_map(|b| b.term.result()).for_each(|r| {
            crosses.add(r.idx());
        });
        let mut homes = vec![None; n_regs];
        let written: Vec<usize> = crosses.iter().filter(|r| def_count[*r] != 0).collect();
        for &r in &written {
            if let Class::Affine(s) = facts.class[r] {
                homes[r] = Some(Home::Words(take((8 * s.groups() as u32).next_multiple_of(16))));
            }
        }
        // Rows in lines of the cache: vectors of 512 bits are one each.
        let filled = take(0);
        take(filled.next_multiple_of(64) - filled);
        for &r in &written {
            if facts.class[r] == Class::Varying {
                let is_wide = f.regs[r] == Ty::B64;
                homes[r] = Some(if is_wide { Home::Row64(take(256)) } else { Home::Row32(take(128)) });
            }
        }
        // Values that live in one block at a time, but in several: a row that no other block has for something else.
        let mut temp_rows = vec![0; n_regs];
        let mut block_of = vec![None; n_regs];
        for (b, block) in f.blocks.iter().enumerate() {
            for d in block.insts.iter().flat_map(|i| &i.dst).map(|d| d.idx()) {
                let is_elsewhere = block_of[d].replace(b).is_some_and(|first| first != b);
                if is_elsewhere && homes[d].is_none() && temp_rows[d] == 0 {
                    temp_rows[d] = take(if f.regs[d] == Ty::B64 { 256 } else { 128 });
                }
            }
        }
        // Values of one block: the blocks share the space.
        let start = take(0);
        let mut most = 0;
        for b in facts.masked.iter() {
            let mut used = 0;
            for inst in &f.blocks[b].insts {
                for d in &inst.dst {
                    if homes[d.idx()].is_none() && temp_rows[d.idx()] == 0 {
                        temp_rows[d.idx()] = start + used;
                        used += if f.regs[d.idx()] == Ty::B64 { 256 } else { 128 };
                    }
                }
            }
            most = most.max(used);
        }
        Layout { pend_offset, scratch, scratch_rows, words, homes, temp_rows, ctx_bytes: spread(start + most) }
    }

    /// Where the runtime finds each register between blocks.
    pub fn locs(&self, f: &simt::Function, facts: &Facts) -> Vec<Option<Loc>> {
        let loc = |(r, h): (usize, &Option<Home>)| {
            h.map(|h| match (h, facts.class[r]) {
                (Home::Row32(at), _) => Loc::Row32(at),
                (Home::Row64(at), _) => Loc::Row64(at),
                (Home::Words(at), Class::Affine(shape)) => Loc::Shaped { at, shape, bits: f.regs[r].bits() as u8 },
                (Home::Words(at), _) => Loc::Scalar(at),
            })
        };
        self.homes.iter().enumerate().map(loc).collect()
    }
}
