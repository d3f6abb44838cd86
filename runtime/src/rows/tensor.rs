//! Ops on tensor memory, lane by lane or once for a warp. The rules are the interpreter's.

use handloom_interp::tensor::{Doer, Done, Held};
use handloom_interp::transfer::Fault;
use handloom_interp::{Memory, late};
use handloom_ir::simt::TensorOp;
use handloom_ir::types::Ty;

use super::Call;
use super::memory::lanes;
use super::transfer::{Thread, record};
use crate::warp::host::CtaHost;

/// Most sources of an op.
const MAX_SOURCES: usize = 24;

/// Does the op. Gives 1, or 0 after recording a trap.
pub(super) fn tensor(c: &mut Call<'_>, op: TensorOp) -> u64 {
    let site = &c.tables.mems[c.site];
    let header = c.ctx.header();
    let held = Held::of(op, &c.host.env, &c.host.memory.tensors());
    let types = op.results();
    let n = site.src.len() + 1;
    let mut src = [0; MAX_SOURCES];
    let mut refused: Vec<(usize, Fault)> = Vec::new();
    let mut shared: Option<Done> = None;
    for lane in lanes(c.mask) {
        let done = match (&held, shared) {
            (_, Some(done)) => Ok(done),
            (Err(fault), None) => Err(fault.clone()),
            (Ok(held), None) => {
                src[0] = c.ctx.read(site.addr, lane);
                src[1..n].iter_mut().zip(&site.src).for_each(|(to, from)| *to = c.ctx.read(*from, lane));
                let thread = CtaHost::thread(&header, lane);
                let who = Doer { thread, span: site.span };
                late::step(held, op, &src[..n], who, &mut Thread::new(c.host, thread, site.span))
            }
        };
        match done {
            Ok(done) => {
                for ((d, ty), value) in site.dst.iter().zip(&types).zip(done.values) {
                    if *ty == Ty::P {
                        c.ctx.write_pred(*d, lane, value != 0);
                    } else {
                        c.ctx.write(*d, lane, value);
                    }
                }
                if done.changed {
                    c.touched();
                }
                shared = op.is_of_warp().then_some(done);
            }
            Err(fault) => refused.push((lane, fault)),
        }
    }
    record(c, &refused)
}
