//! What the optimiser leaves of strong accesses: all of them, in their order, at their width.

use handloom_diag::FileId;
use handloom_ir::simt::{Function, LaunchShape, Op};
use handloom_lower::passes::Strengths;

/// Pairs that a careless pass would merge, drop, reorder, widen or hoist.
const TEXT: &str = "
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 d)
{
    .reg .b64 %p;
    .reg .b32 %r<8>;
    .reg .pred %q;
    .shared .align 8 .b32 s[4];
    ld.param.u64 %p, [d];
    // The same place twice; the second value is not read.
    ld.relaxed.gpu.global.u32 %r0, [%p];
    ld.relaxed.gpu.global.u32 %r1, [%p];
    ld.volatile.global.u32 %r2, [%p];
    // Neighbours.
    ld.acquire.sys.global.u32 %r3, [%p+4];
    ld.relaxed.cta.global.u32 %r4, [%p+8];
    // A store that the next one covers, and one of what was just loaded.
    st.relaxed.gpu.global.u32 [%p+16], %r0;
    st.relaxed.gpu.global.u32 [%p+16], %r0;
    st.release.cluster.global.u32 [%p], %r0;
    st.volatile.shared.u32 [s], %r4;
    ld.volatile.shared.u32 %r4, [s];
    ld.volatile.shared.u32 %r5, [s];
    fence.sc.gpu;
    fence.sc.gpu;
    membar.cta;
    fence.acq_rel.cta;
    ld.mmio.relaxed.sys.global.u32 %r5, [%p+20];
    st.mmio.relaxed.sys.global.u32 [%p+20], 7;
    mov.u32 %r6, 0;
$TURN:
    // Nothing in the loop changes the address.
    ld.relaxed.gpu.global.u32 %r1, [%p+24];
    st.relaxed.gpu.global.u32 [%p+28], 5;
    atom.relaxed.gpu.global.add.u32 %r7, [%p+32], 1;
    atom.acquire.gpu.global.add.u32 %r7, [%p+32], 0;
    red.release.gpu.global.or.b32 [%p+36], 0;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %q, %r6, 4;
    @%q bra $TURN;
    ret;
}
";

/// Memory ops and fences in order, in words: kind, access, offset. An atomic whose value nobody reads may stand as a reduction.
fn strong<'f>(funcs: impl Iterator<Item = &'f Function>) -> Vec<String> {
    let insts = funcs.flat_map(|f| &f.blocks).flat_map(|b| &b.insts);
    insts
        .filter_map(|i| match i.op {
            Op::Load { access, .. } if access.order.is_strong() => Some(format!("load {access:?}")),
            Op::Store { access, .. } if access.order.is_strong() => Some(format!("store {access:?}")),
            Op::Atom { access, .. } | Op::Red { access, .. } => Some(format!("atomic {access:?}")),
            Op::Fence { order, scope } => Some(format!("fence {order:?} {scope:?}")),
            _ => None,
        })
        .collect()
}

#[test]
fn strong_accesses_stay() {
    let checked = handloom_check::check_text(TEXT, FileId(0));
    let checked = checked.module.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    let before = handloom_lower::lower(&checked);
    let shape = LaunchShape { ntid: [64, 1, 1], small_grid: true };
    let behind = handloom_lower::specialise(&before, "k", &shape, &[], Strengths::default());
    assert_eq!(strong(before.funcs.iter()).len(), 22);
    assert_eq!(strong(before.funcs.iter()), strong(behind.values()));
    let is_kept = |o: &Op| matches!(o, Op::Atom { .. });
    let atoms = behind.values().flat_map(|f| &f.blocks).flat_map(|b| &b.insts).filter(|i| is_kept(&i.op));
    assert_eq!(atoms.count(), 1, "one that acquires stays an `atom`");
}
