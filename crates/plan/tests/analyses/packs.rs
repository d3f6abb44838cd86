//! What shapes are to packs of four lanes.

use super::read::entry;
use super::{ROW, SQUARE, facts, shape};
use handloom_plan::packs::{PACKS, first_pack, pack_start, packs_differ};

/// Group and offset of each pack of the last register of some instructions.
fn packs(ntid: [u32; 3], insts: &str) -> ([(usize, i64); PACKS], bool) {
    let f = entry(&format!("b0:\n{insts}\nexit"));
    let s = shape(&facts(&f, ntid), f.regs.len() - 1);
    (std::array::from_fn(|p| pack_start(&s, p)), packs_differ(&s))
}

#[test]
fn packs_of_a_row_are_four_lanes_apart() {
    let row = [0, 4, 8, 12, 16, 20, 24, 28].map(|off| (0, off));
    assert_eq!(packs(ROW, "v0:b32 = sreg.tid.x"), (row, true));
}

#[test]
fn packs_of_two_rows_start_over() {
    let x = [0, 4, 8, 12, 0, 4, 8, 12].map(|off| (0, off));
    assert_eq!(packs(SQUARE, "v0:b32 = sreg.tid.x"), (x, false));
    let y = [0, 0, 0, 0, 1, 1, 1, 1].map(|off| (0, off));
    assert_eq!(packs(SQUARE, "v0:b32 = sreg.tid.y"), (y, false));
}

#[test]
fn packs_of_unrelated_rows_have_groups() {
    let index = "v0:b32 = sreg.tid.x\nv1:b32 = sreg.tid.y\nv2:b64 = param_address 0\nv3:b32 = load.param::entry.b32 [v2]\n\
        v4:b32 = mul.b32 v1, v3\nv5:b32 = add.b32 v4, v0";
    let rows = [(0, 0), (0, 4), (0, 8), (0, 12), (1, 0), (1, 4), (1, 8), (1, 12)];
    assert_eq!(packs(SQUARE, index), (rows, true));
    let f = entry(&format!("b0:\n{index}\nexit"));
    let s = shape(&facts(&f, SQUARE), 5);
    assert_eq!([0, 1].map(|g| first_pack(&s, g)), [0, 4]);
}
