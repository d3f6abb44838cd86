//! What an access finds of how its lanes lie, where nothing was known: others of its block that start from the same register, as unrolled loops have
//! them, need not look again. A word of the stack holds for each such register where lane 0 lies, without an offset, if the lanes follow each other; the same
//! with its highest bit set, if they have one address; and 0 otherwise.

use handloom_diag::hash::FastMap;
use handloom_ir::simt::{Function, Inst, Op, Reg};
use handloom_ir::types::{Order, StateSpace};
use handloom_plan::access::AccessClass;

use crate::access::reg;

/// Words of the stack for that.
pub(crate) const N_FOUND: usize = 4;
/// The bit of a word that says that there is one address. No address has it.
pub(crate) const ONE_PLACE: u32 = 63;

/// Offsets that are added to words lie between this and its negative.
const FAR: i64 = 1 << 30;

/// What an access has to do with a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub(crate) word: usize,
    /// It writes the word; the others read it.
    pub(crate) is_first: bool,
    pub(crate) offset: i32,
}

/// By place in a block, accesses that share words. Each register has a word of its own, until there are no more. `is_known`: of an instruction and its address, whether it
/// needs none.
pub(crate) fn found_in(f: &Function, b: usize, is_known: &dyn Fn(usize, Reg) -> bool) -> FastMap<usize, Found> {
    let mut found: FastMap<usize, Found> = FastMap::default();
    // Registers with the bytes of an element, and their first accesses.
    let mut firsts: Vec<(Reg, i64, usize, i32)> = Vec::new();
    let mut n_words = 0;
    for (i, inst) in f.blocks[b].insts.iter().enumerate() {
        if let Some((r, bytes, offset)) = alone(inst).filter(|a| !is_known(i, a.0)) {
            match firsts.iter().find(|(other, of, ..)| *other == r && *of == bytes) {
                None => firsts.push((r, bytes, i, offset)),
                Some(&(.., first, offset_of_first)) => {
                    let word = match found.get(&first) {
                        Some(known) => known.word,
                        None if n_words < N_FOUND => {
                            found.insert(first, Found { word: n_words, is_first: true, offset: offset_of_first });
                            n_words += 1;
                            n_words - 1
                        }
                        None => continue,
                    };
                    found.insert(i, Found { word, is_first: false, offset });
                }
            }
        }
        firsts.retain(|(r, ..)| !inst.dst.contains(r));
    }
    found
}

/// The register, the bytes and the offset of a plain load or store of one element of at least 32 bits in the heap, done by all lanes of a block.
fn alone(inst: &Inst) -> Option<(Reg, i64, i32)> {
    if inst.guarded || !matches!(inst.op, Op::Load { .. } | Op::Store { .. }) {
        return None;
    }
    let class = AccessClass::of(inst)?;
    let is_in_heap = matches!(class.space, StateSpace::Global | StateSpace::Const | StateSpace::Generic);
    let is_plain = is_in_heap && class.order == Order::Weak && class.count == 1 && class.bits >= 32;
    let is_near = (-FAR..FAR).contains(&class.offset);
    Some((reg(class.address)?, class.bytes(), class.offset as i32)).filter(|_| is_plain && is_near)
}
