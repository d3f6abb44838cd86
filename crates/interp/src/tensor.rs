//! Tensor memory: who has which, and what `tcgen05` does with it.
//!
//! Each CTA has tensor memory of its own, found by the base of its shared memory, so that the CTAs of a pair find each other's. It is made when an op first
//! asks for it. [`Held::step`] is the meaning of all ops, for both engines; `tensor/product.rs` has that of products.
//!
//! Choice: by default what is asynchronous is done at once, as it may be: a program must not look at results before it waits, so that it cannot tell
//! (else [`crate::late`]). An allocation
//! waits in a loop that the lowering makes; tensor memory of a CTA is not shared with other CTAs that would be on the same processor.
//!
//! Choice: tensor memory that is still allocated when its CTA ends is a trap, since the manual demands that it is deallocated.
//!
//! # PTX ISA
//! TensorCore 5th Generation Family Instructions.

mod aligned;
mod descriptor;
pub(crate) mod held;
pub(crate) mod memory;
mod product;
pub(crate) mod step;

use handloom_ir::simt::{Inst, TensorOp};
use handloom_ir::trap::Trap;

use crate::cta::{Cta, Group};
use crate::late;
use crate::memory::Memory;
use crate::numbers::number;
use crate::transfer::{Fault, Thread};

pub use held::Held;
pub use memory::{Tensor, Tensors};
pub use step::{Doer, Done};

impl<'m> Cta<'m> {
    /// An op on tensor memory, in each lane or for all of them.
    pub(crate) fn tensor(
        &mut self,
        inst: &'m Inst,
        op: TensorOp,
        group: Group,
        mem: &mut dyn Memory,
    ) -> Result<(), Box<Trap>> {
        let held = Held::of(op, &self.env, &mem.tensors());
        let mut refused: Vec<(usize, Fault)> = Vec::new();
        let mut shared: Option<Done> = None;
        for t in group.threads() {
            let done = match (&held, shared) {
                (_, Some(done)) => Ok(done),
                (Err(fault), None) => Err(fault.clone()),
                (Ok(held), None) => {
                    let src: Vec<u64> = inst.src.iter().map(|v| self.get(t, *v)).collect();
                    let who = Doer { thread: number(t), span: inst.span };
                    late::step(held, op, &src, who, &mut Thread::new(self, mem, t, inst.span))
                }
            };
            match done {
                Ok(done) => {
                    self.touched |= done.changed;
                    inst.dst.iter().zip(done.values).for_each(|(d, v)| self.set(t, *d, v));
                    shared = op.is_of_warp().then_some(done);
                }
                Err(fault) => refused.push((t, fault)),
            }
        }
        let Some((first, fault)) = refused.first() else { return Ok(()) };
        let same = refused.iter().filter(|(_, f)| f.kind == fault.kind).map(|(t, _)| *t);
        let mut trap = self.trap_of(fault.kind, inst.span, same);
        fault.clone().tell(&mut trap, &self.env, number(*first), |addr| mem.space(addr));
        Err(trap)
    }
}
