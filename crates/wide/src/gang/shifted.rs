//! Rows that lie a few elements beside one that registers hold.
//!
//! # The model
//! What looks at its neighbours in a row reads the same row several times, a few elements further on each time. A vector that begins inside of a line of memory takes two lines, and a host as long as
//! for two vectors. Where a way has read a row and nothing has been written since, what it reads of that row again is put together from the vectors that hold it, but for the part that
//! sticks out of it: of two parts one is read, of four one.
//!
//! As with rows that stay (`carried`), what others write meanwhile may be seen or not, and what a lane writes itself it is to see: a store ends what is known.

use handloom_ir::simt::{Inst, Op, Reg};
use handloom_plan::access::AccessClass;
use iced_x86::Code;

use super::GangAccess;
use super::way::{Gang, Shifted};
use crate::access::Form;
use crate::alloc::{Place, n_parts};
use crate::asked::reg;
use crate::emit::*;
use crate::head::Going;
use crate::values::is_wide;

/// A row that a way has read.
struct Row {
    at: (usize, usize),
    reg: Reg,
    address: Reg,
    class: AccessClass,
}

impl Emit<'_> {
    /// The same way with the loads that lie beside others, if there are any.
    pub(super) fn with_shifted(&mut self, way: &Gang) -> Option<Gang> {
        let shifted = if self.a.has_wide_vectors() { self.shifted_of(way) } else { Vec::new() };
        if shifted.is_empty() {
            return None;
        }
        let mut with = way.clone();
        with.folds.retain(|at, _| !shifted.iter().any(|s| s.at == *at || s.row == *at));
        Some(Gang { shifted, ..with })
    }

    fn shifted_of(&mut self, way: &Gang) -> Vec<Shifted> {
        let mut rows: Vec<Row> = Vec::new();
        let mut shifted = Vec::new();
        let mut block = way.start;
        for (at, inst) in way.all_insts(self.f) {
            if std::mem::replace(&mut block, at.0) != at.0 && self.plain_barrier(block).is_some() {
                rows.clear();
            }
            self.at = at;
            rows.retain(|row| !inst.dst.contains(&row.address));
            match inst.op {
                _ if self.is_of_head(inst) => {}
                Op::Pure(_) | Op::Sreg(_) | Op::Mark | Op::Count(_) => {}
                Op::Load { .. } => {
                    let Some(row) = self.row_of_way(way, inst) else { continue };
                    let by = rows.iter().find_map(|before| Some((before, beside(before, &row)?)));
                    match by {
                        Some((before, by)) => {
                            shifted.push(Shifted { at, row: before.at, of: before.reg, by });
                        }
                        None => rows.push(row),
                    }
                }
                _ => rows.clear(),
            }
        }
        shifted
    }

    /// A load of a row whose vectors hold it as it is in memory.
    fn row_of_way(&mut self, way: &Gang, inst: &Inst) -> Option<Row> {
        let is_apart = |going| matches!(going, Going::Known(lanes) if lanes != u32::MAX);
        if way.guarded.get(&self.at.0).is_some_and(|g| is_apart(g.going)) {
            return None;
        }
        let (d, class) = self.own_row(way, inst)?;
        let is_whole = u32::from(class.bits) == self.f.regs[d.idx()].bits() && matches!(class.bits, 32 | 64);
        is_whole.then_some(Row { at: self.at, reg: d, address: reg(&class.address)?, class })
    }

    /// A load of a row beside one that registers hold, part by part.
    pub(super) fn load_shifted(&mut self, inst: &Inst, g: &GangAccess, shifted: &Shifted) {
        let n = n_parts(g.x.ty);
        let lanes = (32 / n) as i32;
        for q in 0..n {
            let at = q as i32 * lanes + shifted.by;
            let (low, by) = (at.div_euclid(lanes), at.rem_euclid(lanes));
            let both = usize::try_from(low).ok().filter(|low| low + 1 < n);
            match (both, self.place(inst.dst[0]), self.place(shifted.of)) {
                (Some(low), Place::Vectors(to), Place::Vectors(from)) => {
                    let code = if is_wide(g.x.ty) {
                        Code::EVEX_Valignq_zmm_k1z_zmm_zmmm512b64_imm8
                    } else {
                        Code::EVEX_Valignd_zmm_k1z_zmm_zmmm512b32_imm8
                    };
                    self.a.op3i(code, zmm(to[q]), zmm(from[low + 1]), zmm(from[low]), by.cast_unsigned());
                }
                _ => {
                    let (m, _) = self.part_of_run(&g.x, &g.runs, Form::Row, q);
                    self.move_part(inst, &g.x, q, m);
                }
            }
        }
    }
}

/// How many elements a row lies behind another one, if parts of it are in the vectors of that one.
fn beside(row: &Row, load: &Row) -> Option<i32> {
    let (a, b) = (&row.class, &load.class);
    let is_alike = row.address == load.address && (a.space, a.bits) == (b.space, b.bits);
    let by = b.offset.checked_sub(a.offset).filter(|by| is_alike && *by % a.bytes() == 0)? / a.bytes();
    let n = if a.bits == 64 { 8 } else { 16 };
    (by != 0 && by.abs() < n).then_some(by as i32)
}
