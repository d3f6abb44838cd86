//! How a special register is read.

use handloom_ir::simt::LaunchShape;
use handloom_ir::types::{Sreg, Varies};

use crate::analysis::shape::{self, Shape};

/// How a special register is read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SregWay {
    /// It is the same in all lanes.
    Scalar,
    /// By its shape: only the value of the first lane is made.
    Shaped(Shape),
    /// It is a row of the pool of constants: `%lanemask_eq`, `_le`, `_lt`, `_ge` and `_gt` by number.
    Mask(usize),
    /// A component of `%tid` of a cta whose rows are no pieces of a shape: by division.
    Tid(u8),
}

/// How a special register is read in a launch of some shape.
pub fn sreg_way(s: Sreg, launch: &LaunchShape) -> SregWay {
    match s {
        Sreg::LanemaskEq => SregWay::Mask(0),
        Sreg::LanemaskLe => SregWay::Mask(1),
        Sreg::LanemaskLt => SregWay::Mask(2),
        Sreg::LanemaskGe => SregWay::Mask(3),
        Sreg::LanemaskGt => SregWay::Mask(4),
        Sreg::Tid(i) if i < 3 => match shape::sreg(s, launch) {
            Some(x) => SregWay::Shaped(x),
            None => SregWay::Tid(i),
        },
        Sreg::Laneid => SregWay::Shaped(shape::sreg(s, launch).unwrap_or(Shape::UNIFORM)),
        other => {
            let is_known = other.varies() != Varies::ByLane || matches!(other, Sreg::Tid(_));
            assert!(is_known, "bug: no way to read {other:?}, which differs between lanes");
            SregWay::Scalar
        }
    }
}
