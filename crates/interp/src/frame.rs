//! Call frames: where the slots of a function lie in a thread's local memory.

use handloom_ir::simt::{BlockId, FuncId, Function};

/// Least alignment and size of a frame in bytes. A frame without slots takes room too, so that endless recursion ends
/// in a trap.
const FRAME_UNIT: u64 = 16;

/// Offsets of the slots of a function's frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameLayout {
    /// Byte offset of each slot from the base of the frame.
    pub offsets: Vec<u64>,
    /// Size of the frame in bytes.
    pub size: u64,
    /// Alignment of the base of the frame in bytes.
    pub align: u64,
}

impl FrameLayout {
    /// Slots in order, each at its alignment.
    pub fn new(func: &Function) -> FrameLayout {
        let mut layout = FrameLayout { offsets: Vec::new(), size: 0, align: FRAME_UNIT };
        for slot in &func.slots {
            let align = u64::from(slot.align.max(1));
            let offset = layout.size.next_multiple_of(align);
            layout.offsets.push(offset);
            layout.size = offset + u64::from(slot.size);
            layout.align = layout.align.max(align);
        }
        layout.size = layout.size.max(1).next_multiple_of(FRAME_UNIT);
        layout
    }

    /// Base and end of a frame above the address `top`; `None` if it does not end below `limit`.
    pub fn place(&self, top: u64, limit: u64) -> Option<(u64, u64)> {
        let base = top.checked_next_multiple_of(self.align)?;
        let end = base.checked_add(self.size)?;
        (end <= limit).then_some((base, end))
    }
}

/// One call in progress in one thread.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// The function.
    pub func: FuncId,
    /// Values of its registers in this thread. Choice: a register that was never written holds zero.
    pub regs: Vec<u64>,
    /// Generic address of the first byte of the frame.
    pub base: u64,
    /// One past the last byte of the frame.
    pub end: u64,
    /// Generic address of the incoming argument block.
    pub args: u64,
    /// Block of the caller where it goes on.
    pub next: BlockId,
}
