//! Room of `alloca` and `stacksave`.

use handloom_interp::stack::{Room, step};
use handloom_ir::simt::StackOp;

#[test]
fn allocations_grow_down_and_are_given_back() {
    let room = Room { low: 1000, end: 2000 };
    let mut used = 0;
    assert_eq!(step(StackOp::Save, room, &mut used, 0), Ok(2000));
    assert_eq!(step(StackOp::Alloca { align: 16 }, room, &mut used, 100), Ok(1888));
    assert_eq!(step(StackOp::Alloca { align: 64 }, room, &mut used, 0), Ok(1856));
    assert_eq!(used, 144);
    assert!(step(StackOp::Alloca { align: 16 }, room, &mut used, 857).is_err());
    assert!(step(StackOp::Alloca { align: 16 }, room, &mut used, u64::MAX).is_err());
    assert_eq!(step(StackOp::Restore, room, &mut used, 2000), Ok(2000));
    assert_eq!(used, 0);
    assert!(step(StackOp::Restore, room, &mut used, 999).is_err());
    assert!(step(StackOp::Restore, room, &mut used, 2001).is_err());
}
