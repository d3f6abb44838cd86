//! Call frames: where the slots of a function lie in a thread's local memory.

use super::{ByFunction, Callee, Function, Module, Placed, Term};

/// Least alignment and size of a frame in bytes. A frame without slots takes room too, so that endless recursion ends
/// in a trap.
const FRAME_UNIT: u64 = 16;

/// Offsets of the slots of a function's frame.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct FrameLayout {
    /// Byte offset of each slot from the base of the frame.
    pub offsets: Vec<u64>,
    /// Size of the frame in bytes.
    pub size: u64,
    /// Alignment of the base of the frame in bytes.
    pub align: u64,
    /// Bytes that must be there when the function is called: its frame, and those of all that it calls which never call themselves. Such
    /// calls cannot fail then, whether they were inlined or not.
    pub reach: u64,
}

impl FrameLayout {
    /// Slots in order, each at its alignment, unless they have a place.
    pub fn new(func: &Function) -> FrameLayout {
        let mut layout = FrameLayout { offsets: Vec::new(), size: 0, align: FRAME_UNIT, reach: 0 };
        for slot in &func.slots {
            let align = u64::from(slot.align.max(1));
            let offset = slot.at.map_or_else(|| layout.size.next_multiple_of(align), |at| u64::from(at.offset));
            layout.offsets.push(offset);
            layout.size = layout.size.max(offset + u64::from(slot.size));
            layout.align = layout.align.max(align);
        }
        layout.size = layout.size.max(1).next_multiple_of(FRAME_UNIT);
        layout.reach = layout.size;
        layout
    }

    /// The frames of all functions. They have one alignment, so that the distance of two frames does not depend on where the first one lies.
    pub fn of_module(module: &Module) -> Vec<FrameLayout> {
        let mut frames: Vec<FrameLayout> = module.funcs.iter().map(FrameLayout::new).collect();
        align(frames.iter_mut());
        set_reach(module, &mut frames);
        frames
    }

    /// The same of some functions, each by itself: frames reach over no calls.
    pub fn of_functions(funcs: &ByFunction<Function>) -> ByFunction<FrameLayout> {
        let mut frames = funcs.map(FrameLayout::new);
        align(frames.values_mut());
        frames
    }

    /// Settles the places of a function's slots.
    pub fn settle(&self, func: &mut Function) {
        let bytes = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        for (slot, offset) in func.slots.iter_mut().zip(&self.offsets) {
            slot.at = Some(Placed { offset: bytes(*offset), frame_end: bytes(self.size) });
        }
    }

    /// Base and end of a frame above the address `top`; `None` if it does not end below `limit`.
    pub fn place(&self, top: u64, limit: u64) -> Option<(u64, u64)> {
        let base = top.checked_next_multiple_of(self.align)?;
        let end = base.checked_add(self.size)?;
        (base.checked_add(self.reach)? <= limit).then_some((base, end))
    }
}

/// Gives frames the largest alignment among them.
fn align<'f>(frames: impl Iterator<Item = &'f mut FrameLayout>) {
    let frames: Vec<&mut FrameLayout> = frames.collect();
    let align = frames.iter().map(|f| f.align).max().unwrap_or(FRAME_UNIT);
    frames.into_iter().for_each(|f| f.align = align);
}

/// Sums frames along calls, callees first; without recursion of our own, since a program may nest calls as deep as it likes.
fn set_reach(module: &Module, frames: &mut [FrameLayout]) {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Seen {
        Not,
        Open,
        Done,
        /// It can reach a function that can reach itself.
        Recursive,
    }
    let callees = |f: usize| -> Vec<usize> {
        let terms = module.funcs[f].blocks.iter().map(|b| &b.term);
        let direct = |t: &Term| if let Term::Call { callee: Callee::Direct(c), .. } = t { Some(c.idx()) } else { None };
        terms.filter_map(direct).collect()
    };
    let mut seen = vec![Seen::Not; frames.len()];
    for root in (0..frames.len()).filter(|f| !module.funcs[*f].blocks.is_empty()) {
        let mut work = if seen[root] == Seen::Not { vec![(root, callees(root), 0)] } else { vec![] };
        seen[root] = if seen[root] == Seen::Not { Seen::Open } else { seen[root] };
        while let Some((f, rest, i)) = work.last_mut() {
            let Some(&callee) = rest.get(*i) else {
                seen[*f] = if seen[*f] == Seen::Open { Seen::Done } else { seen[*f] };
                work.pop();
                continue;
            };
            match seen[callee] {
                Seen::Not => {
                    seen[callee] = Seen::Open;
                    work.push((callee, callees(callee), 0));
                    // It is looked at once more behind its visit.
                    continue;
                }
                Seen::Done => {
                    let own = frames[*f].size.next_multiple_of(frames[*f].align);
                    frames[*f].reach = frames[*f].reach.max(own.saturating_add(frames[callee].reach));
                }
                // An open one may be known to be recursive already.
                Seen::Open | Seen::Recursive => seen[*f] = Seen::Recursive,
            }
            *i += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Block, BlockId, FuncId, Slot, SlotId};
    use super::*;
    use handloom_diag::Span;
    use std::collections::BTreeMap;

    fn func(slots: Vec<Slot>, callee: Option<u32>) -> Function {
        let term = match callee {
            Some(f) => Term::Call {
                callee: Callee::Direct(FuncId(f)),
                target: None,
                signature: (0, 0),
                args: SlotId(0),
                next: BlockId(0),
            },
            None => Term::Ret,
        };
        let block = Block { insts: vec![], term, term_span: Span::NONE };
        Function {
            name: "f".into(),
            is_entry: false,
            blocks: vec![block],
            regs: vec![],
            slots,
            param_bytes: 0,
            result_bytes: 0,
            span: Span::NONE,
        }
    }

    #[test]
    fn settled_slots_keep_their_places() {
        let mut f = func(vec![Slot::new(4, 4), Slot::new(8, 8), Slot::new(1, 1)], None);
        let layout = FrameLayout::new(&f);
        assert_eq!((layout.offsets.as_slice(), layout.size), (&[0, 8, 16][..], 32));
        layout.settle(&mut f);
        f.slots.remove(0);
        assert_eq!(FrameLayout::new(&f).offsets, [8, 16]);
        assert_eq!(f.slots[0].at, Some(Placed { offset: 8, frame_end: 32 }));
    }

    #[test]
    fn a_frame_reaches_over_calls_that_end() {
        let slot = |size| vec![Slot::new(size, 4)];
        // 0 calls 1, which calls 2, which calls nobody; 3 calls itself.
        let funcs = vec![func(slot(4), Some(1)), func(slot(20), Some(2)), func(slot(60), None), func(slot(4), Some(3))];
        let module = Module {
            funcs,
            syms: vec![],
            entries: BTreeMap::new(),
            address_size: 64,
            lines: vec![],
            line_files: vec![],
            shared: crate::simt::SharedRules::default(),
            late: vec![],
            statements: vec![],
        };
        let reach: Vec<u64> = FrameLayout::of_module(&module).iter().map(|f| f.reach).collect();
        assert_eq!(reach, [16 + 32 + 64, 32 + 64, 64, 16]);
    }
}
