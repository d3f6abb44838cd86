//! Generic addresses of the shared memory of other ctas of a cluster, taken into `.shared`.
//!
//! The manual lets `cvta.to.shared` take addresses of the own cta alone; compilers write it for those that a generic `mapa` makes too, and mean the address in
//! `.shared::cluster`. The two are the same for the own cta. So where a module makes such generic addresses, the one instruction is taken for the other, which costs more.

use handloom_ir::simt::{Function, Inst, Op};
use handloom_ir::types::StateSpace;

/// Lets functions of a module take addresses in other ctas into `.shared`, if one of them makes any.
pub(crate) fn reach(funcs: &mut [Function]) {
    fn insts(f: &mut Function) -> impl Iterator<Item = &mut Inst> {
        f.blocks.iter_mut().flat_map(|block| &mut block.insts)
    }
    let makes = |i: &mut Inst| matches!(i.op, Op::Cvta { space: StateSpace::SharedCluster, to_space: false });
    if !funcs.iter_mut().flat_map(insts).any(makes) {
        return;
    }
    for inst in funcs.iter_mut().flat_map(insts) {
        if let Op::Cvta { space: space @ StateSpace::Shared, to_space: true } = &mut inst.op {
            *space = StateSpace::SharedCluster;
        }
    }
}
