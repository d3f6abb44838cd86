//! Shapes of values: how lanes relate, and what ops make of it.

use handloom_ir::num::eval;
use handloom_ir::simt::{LaunchShape, Pure};
use handloom_ir::types::{Int, Sreg, Ty};
use handloom_plan::analysis::shape::{Arg, May, Shape, pure, sreg};

use super::read::entry;
use super::{LOCAL_STRIDE, ROW, SQUARE, class, facts, range, shape, speculative};

/// The class of the last register of some instructions in blocks of this shape.
fn last(ntid: [u32; 3], insts: &str) -> String {
    let f = entry(&format!("b0:\n{insts}\nexit"));
    class(&facts(&f, ntid), f.regs.len() - 1)
}

const TID: &str = "v0:b32 = sreg.tid.x\n";

/// With a parameter, of which nothing is known but that it is the same everywhere, as v2.
const TID_AND_PARAM: &str = "v0:b32 = sreg.tid.x\nv1:b64 = param_address 0\nv2:b32 = load.param::entry.b32 [v1]\n";

#[test]
fn a_row_of_threads_is_linear() {
    let f = entry("b0:\nv0:b32 = sreg.tid.x\nv1:b32 = sreg.laneid\nv2:b32 = sreg.tid.y\nexit");
    let facts = facts(&f, ROW);
    // Warp w holds the threads 32 w to 32 w + 31 of the 256: a base that 32 divides, and the lane.
    assert_eq!(class(&facts, 0), "linear 1");
    assert_eq!((range(&facts, 0), shape(&facts, 0).align), ((0, 255), 5));
    // Here the base is 0 in every warp.
    assert_eq!((class(&facts, 1).as_str(), range(&facts, 1)), ("linear 1", (0, 31)));
    assert_eq!((class(&facts, 2).as_str(), range(&facts, 2)), ("uniform", (0, 0)));
}

#[test]
fn two_rows_in_a_warp() {
    let f = entry("b0:\nv0:b32 = sreg.tid.x\nv1:b32 = sreg.tid.y\nexit");
    let facts = facts(&f, SQUARE);
    // The first half of the warp is one row of 16, the second the next: x starts over, y is one more, and the base of y is even.
    assert_eq!(class(&facts, 0), "pieces of 16 lanes at [0, 0] stride 1");
    assert_eq!(class(&facts, 1), "pieces of 16 lanes at [0, 1] stride 0");
    assert_eq!((range(&facts, 1), shape(&facts, 1).align), ((0, 15), 1));
}

#[test]
fn rows_that_end_inside_a_piece_or_warp_have_no_shape() {
    // 24 threads to a row: warps begin at x = 0, 8 and 16 in turn, so no constant offsets fit all warps.
    assert_eq!(last([24, 4, 1], TID), "varying");
    // 6 to a row: they divide no warp.
    assert_eq!(last([6, 16, 1], TID), "varying");
    // 4 to a row make eight pieces; 2 to a row would make 16, which are more than are kept.
    assert_eq!(last([4, 16, 1], TID), "pieces of 4 lanes at [0, 0, 0, 0, 0, 0, 0, 0] stride 1");
    assert_eq!(last([2, 16, 1], TID), "varying");
    // A single row may end anywhere: lanes after the end do not exist.
    assert_eq!(last([33, 1, 1], TID), "linear 1");
}

#[test]
fn sums_and_products_by_constants_keep_the_line() {
    assert_eq!(last(ROW, &format!("{TID_AND_PARAM}v3:b32 = add.b32 v2, v0")), "linear 1");
    assert_eq!(last(ROW, &format!("{TID_AND_PARAM}v3:b32 = sub.b32 v2, v0")), "linear -1");
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = mul.b32 v0, 12")), "linear 12");
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = shl.b32 v0, 3")), "linear 8");
    // 0xfffffffd is -3 at 32 bits.
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = mul.b32 v0, 0xfffffffd")), "linear -3");
    // The lanes cancel out.
    assert_eq!(last(ROW, &format!("{TID_AND_PARAM}v3:b32 = add.b32 v0, v2\nv4:b32 = sub.b32 v3, v0")), "uniform");
}

#[test]
fn a_product_of_two_unknowns_is_no_shape() {
    // The stride would be a number that is known at run time only.
    assert_eq!(last(ROW, &format!("{TID_AND_PARAM}v3:b32 = mul.b32 v0, v2")), "varying");
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = mul.b32 v0, v0")), "varying");
    assert_eq!(last(ROW, &format!("{TID_AND_PARAM}v3:b32 = mul.b32 v2, v2")), "uniform");
}

#[test]
fn a_row_times_a_pitch_has_a_base_for_each_row() {
    // y is the same within each half of a warp: their products are two unrelated bases. The index adds x.
    let index = "v0:b32 = sreg.tid.x\nv1:b32 = sreg.tid.y\nv2:b64 = param_address 0\nv3:b32 = load.param::entry.b32 [v2]\n\
        v4:b32 = mul.b32 v1, v3\nv5:b32 = add.b32 v4, v0";
    assert_eq!(last(SQUARE, index), "pieces of 16 lanes of groups [0, 1] at [0, 0] stride 1");
}

#[test]
fn more_than_four_bases_are_too_many() {
    // Rows of 4 threads: y has eight values in a warp.
    let product =
        "v0:b32 = sreg.tid.y\nv1:b64 = param_address 0\nv2:b32 = load.param::entry.b32 [v1]\nv3:b32 = mul.b32 v0, v2";
    assert_eq!(last([4, 64, 1], product), "varying");
    assert_eq!(last([8, 32, 1], product), "pieces of 8 lanes of groups [0, 1, 2, 3] at [0, 0, 0, 0] stride 0");
}

#[test]
fn an_index_in_range_does_not_wrap() {
    // 0 to 255 stays in order at any width.
    assert_eq!(last(ROW, &format!("{TID}v1:b64 = mul_wide.s32 v0, 4")), "linear 4");
    assert_eq!(last(ROW, &format!("{TID}v1:b64 = ext.u32.b32.b64 v0")), "linear 1");
}

#[test]
fn an_index_that_may_wrap_needs_a_test() {
    // The parameter may be 2^32 - 1: then lane 0 is 2^32 - 1 and lane 1 is 0, and in 64 bits they are no neighbours.
    let wide = format!("{TID_AND_PARAM}v3:b32 = add.b32 v0, v2\nv4:b64 = ext.u32.b32.b64 v3");
    let f = entry(&format!("b0:\n{wide}\nexit"));
    assert_eq!(class(&facts(&f, ROW), 4), "varying");
    assert_eq!(class(&speculative(&f, ROW), 4), "linear 1");
    // Signed it may be 2^31 - 1.
    let f = entry(&format!("b0:\n{TID_AND_PARAM}v3:b32 = add.b32 v0, v2\nv4:b64 = mul_wide.s32 v3, 4\nexit"));
    assert_eq!(class(&facts(&f, ROW), 4), "varying");
    assert_eq!(class(&speculative(&f, ROW), 4), "linear 4");
}

#[test]
fn no_test_after_a_store() {
    // A block that fails a test starts over: what was stored would be stored twice.
    let f = entry(&format!(
        "b0:\n{TID_AND_PARAM}store.global.b32 [v1], v0\nv3:b32 = add.b32 v0, v2\nv4:b64 = ext.u32.b32.b64 v3\nexit"
    ));
    assert_eq!(class(&speculative(&f, ROW), 4), "varying");
    // In the next block nothing has happened yet.
    let f = entry(&format!(
        "b0:\n{TID_AND_PARAM}store.global.b32 [v1], v0\nv3:b32 = add.b32 v0, v2\njump b1\nb1:\nv4:b64 = ext.u32.b32.b64 v3\nexit"
    ));
    assert_eq!(class(&speculative(&f, ROW), 4), "linear 1");
}

#[test]
fn cutting_off_the_upper_half_keeps_the_line() {
    // Sums modulo 2^64 are sums modulo 2^32.
    let f = format!("{TID}v1:b64 = ext.u32.b32.b64 v0\nv2:b32 = ext.u32.b64.b32 v1");
    assert_eq!(last(ROW, &f), "linear 1");
}

#[test]
fn a_mask_of_low_bits_needs_aligned_bases() {
    // The base of tid is a multiple of 32: the low five bits are the lane.
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = and.b32 v0, 31")), "linear 1");
    // Of three bits: 0 to 7, four times.
    let eights = "pieces of 8 lanes at [0, 0, 0, 0] stride 1";
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = and.b32 v0, 7")), eights);
    // Two bits: 0 1 2 3, eight times. One bit, 0 1, would make 16 pieces.
    let fours = "pieces of 4 lanes at [0, 0, 0, 0, 0, 0, 0, 0] stride 1";
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = and.b32 v0, 3")), fours);
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = and.b32 v0, 1")), "varying");
    // Bits 5 and up are the same in all lanes: whatever a mask takes of them, no lane carries into them.
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = and.b32 v0, 63")), "linear 1");
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = and.b32 v0, 0xffffffe0")), "uniform");
    let halves = "pieces of 16 lanes at [0, 16] stride 0";
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = and.b32 v0, 0xfffffff0")), halves);
    // So it is with the number of a thread in the grid, and where a row of many threads is cut out of it.
    let index = format!("{TID_AND_PARAM}v3:b32 = shl.b32 v2, 8\nv4:b32 = add.b32 v0, v3\n");
    assert_eq!(last(ROW, &format!("{index}v5:b32 = and.b32 v4, 127")), "linear 1");
    assert_eq!(last(ROW, &format!("{index}v5:b32 = shr.s32 v4, 7")), "uniform");
    assert_eq!(last(ROW, &format!("{index}v5:b32 = shr.u32 v4, 4")), "pieces of 16 lanes at [0, 1] stride 0");
    // 0, 1, 0, 1, 4, 5 and so on: not even within four lanes.
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = and.b32 v0, 5")), "varying");
    // A base that nothing is known of carries into the low bits somewhere.
    assert_eq!(last(ROW, &format!("{TID_AND_PARAM}v3:b32 = add.b32 v0, v2\nv4:b32 = and.b32 v3, 31")), "varying");
}

#[test]
fn an_or_of_free_bits_is_a_sum() {
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = shl.b32 v0, 3\nv2:b32 = or.b32 v1, 5")), "linear 8");
    // Bit 0 is set in every other lane already.
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = or.b32 v0, 1")), "varying");
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = xor.b32 v0, 1")), "varying");
}

#[test]
fn a_shift_right_that_drops_the_lane() {
    let f = entry(&format!("b0:\n{TID}v1:b32 = shr.u32 v0, 5\nexit"));
    let found = facts(&f, ROW);
    // The number of the warp, 0 to 7.
    assert_eq!((class(&found, 1).as_str(), range(&found, 1)), ("uniform", (0, 7)));
    // By two: one more for each four lanes.
    let fours = "pieces of 4 lanes at [0, 1, 2, 3, 4, 5, 6, 7] stride 0";
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = shr.u32 v0, 2")), fours);
    // By one: 0 0 1 1, and so on, in 16 pieces.
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = shr.u32 v0, 1")), "varying");
    // A base that is no multiple of 32 may have a carry between any two lanes.
    assert_eq!(last(ROW, &format!("{TID_AND_PARAM}v3:b32 = add.b32 v0, v2\nv4:b32 = shr.u32 v3, 5")), "varying");
}

#[test]
fn values_by_piece_stay_so_in_other_ops() {
    // The larger of two values that are the same inside each piece is, too.
    let f = format!("{TID_AND_PARAM}v3:b32 = shr.u32 v0, 4\nv4:b32 = min.u32 v3, v2");
    assert_eq!(last(ROW, &f), "pieces of 16 lanes of groups [0, 1] at [0, 0] stride 0");
}

#[test]
fn ranges_follow_uniform_values() {
    let f = entry(&format!("b0:\n{TID_AND_PARAM}v3:b32 = rem.u32 v2, 7\nv4:b32 = min.u32 v2, 9\nexit"));
    let found = facts(&f, ROW);
    assert_eq!(range(&found, 2), (0, u64::MAX));
    // A remainder by 7 is at most 6; the smaller of something and 9 is at most 9.
    assert_eq!(range(&found, 3), (0, 6));
    assert_eq!(range(&found, 4), (0, 9));
}

#[test]
fn a_comparison_of_lanes_is_no_shape() {
    // True in some lanes: predicates have no sums.
    assert_eq!(last(ROW, &format!("{TID_AND_PARAM}v3:p = cmp.lt.u32 v0, v2")), "varying");
    assert_eq!(last(ROW, &format!("{TID_AND_PARAM}v3:p = cmp.lt.u32 v2, 5")), "uniform");
}

#[test]
fn a_stride_of_a_terabyte_is_too_long() {
    // Differences are added up in 64 bits; more than 2^40 is not kept, and the last of eight pieces begins 28 strides after the first.
    let scaled = |by: &str| last(ROW, &format!("{TID}v1:b64 = ext.u32.b32.b64 v0\nv2:b64 = mul.b64 v1, {by}"));
    assert_eq!(scaled("0x800000000"), format!("linear {}", 1_u64 << 35));
    assert_eq!(scaled("0x1000000000"), "varying");
}

#[test]
fn differences_that_wrap_are_pieces_of_their_own() {
    // Lane 4 has 2^31, which is -2^31 at 32 bits, and lane 8 has 2^32, which is 0.
    let top = -(1_i64 << 31);
    let wrapped = format!("pieces of 4 lanes at {:?} stride {}", [0, top, 0, top, 0, top, 0, top], 1 << 29);
    assert_eq!(last(ROW, &format!("{TID}v1:b32 = shl.b32 v0, 29")), wrapped);
    // At 64 bits nothing wraps.
    let wide = format!("{TID}v1:b64 = ext.u32.b32.b64 v0\nv2:b64 = shl.b64 v1, 29");
    assert_eq!(last(ROW, &wide), format!("linear {}", 1 << 29));
}

#[test]
fn a_shape_says_where_each_lane_is() {
    // Two rows of 16 threads whose bases are unrelated, 4 bytes to a thread.
    let index = "v0:b32 = sreg.tid.x\nv1:b32 = sreg.tid.y\nv2:b64 = param_address 0\nv3:b32 = load.param::entry.b32 [v2]\n\
        v4:b32 = mul.b32 v1, v3\nv5:b32 = mul.b32 v0, 4\nv6:b32 = add.b32 v4, v5";
    let found = facts(&entry(&format!("b0:\n{index}\nexit")), SQUARE);
    let s = shape(&found, 6);
    assert_eq!((0..2).map(|g| s.first_lane(g)).collect::<Vec<_>>(), [0, 16]);
    assert_eq!((0..2).map(|g| s.lanes_of(g)).collect::<Vec<_>>(), [0xffff, 0xffff_0000]);
    assert_eq!([0, 5, 16, 31].map(|l| (s.group_of(l), s.delta(l))), [(0, 0), (0, 20), (1, 0), (1, 60)]);
    assert_eq!((0..2).map(|g| s.span(g)).collect::<Vec<_>>(), [(0, 60), (0, 60)]);
}

#[test]
fn special_registers_that_differ_by_lane_in_other_ways() {
    // Lane l has 2^l - 1.
    assert_eq!(last(ROW, "v0:b32 = sreg.lanemask_lt"), "varying");
    assert_eq!(last(ROW, "v0:b32 = sreg.ctaid.x"), "uniform");
}

#[test]
fn frames_of_lanes_follow_each_other() {
    assert_eq!(last(ROW, "v0:b64 = address slot0"), format!("linear {LOCAL_STRIDE}"));
}

#[test]
fn one_load_serves_lanes_with_one_address() {
    let loads = "v0:b32 = sreg.tid.y\nv1:b64 = param_address 0\nv2:b64 = load.param::entry.b64 [v1]\nv3:b64 = mul_wide.u32 v0, 4\n\
        v4:b64 = add.b64 v2, v3\nv5:b32 = load.global.b32 [v4]";
    // Two rows read two words.
    assert_eq!(last(SQUARE, loads), "pieces of 16 lanes of groups [0, 1] at [0, 0] stride 0");
    // A word for each lane.
    assert_eq!(last(ROW, &loads.replace("tid.y", "tid.x")), "varying");
    // A strong load may see another value in each lane.
    assert_eq!(last(ROW, &loads.replace("load.global.b32", "load.global.relaxed.gpu.b32")), "varying");
}

/// What an op of 32 bits makes of the shape and the values of each lane of each warp, with a constant or with itself.
fn step(op: Pure, by: Option<u64>, (of, values): (&Shape, &[u64])) -> Option<(Shape, Vec<u64>)> {
    let arg = Arg { shape: Some(*of), value: None };
    let other = by.map_or(arg, |x| Arg { shape: Some(Shape::constant(x)), value: Some(x) });
    let result = pure(op, &[arg, other], May { test: false, flip: true })?;
    assert_eq!(result.check, None);
    Some((result.shape, values.iter().map(|x| eval(op, &[*x, by.unwrap_or(*x)])[0]).collect()))
}

#[test]
fn lanes_that_change_places_have_a_shape() {
    let launch = LaunchShape { ntid: ROW, small_grid: false };
    let int = Int { ty: Ty::B32, signed: false };
    let mut ops: Vec<(Pure, Option<u64>)> = vec![(Pure::Add(Ty::B32), None), (Pure::Sub(Ty::B32), None)];
    ops.extend([1, 2, 3, 5, 8, 21, 31, 32, 67, 256, 0xffff_fffc].map(|c| (Pure::Xor(Ty::B32), Some(c))));
    ops.extend([1, 3, 200].map(|c| (Pure::Add(Ty::B32), Some(c))));
    ops.extend([1, 7, 24, 31].map(|c| (Pure::And(Ty::B32), Some(c))));
    ops.extend([1, 2, 3].map(|c| (Pure::Shr(int), Some(c))));
    ops.extend([(Pure::Shl(Ty::B32), Some(2)), (Pure::Mul(Ty::B32), Some(12)), (Pure::Or(Ty::B32), Some(64))]);
    // Lane l of warp w has 32 w + l.
    let first = (sreg(Sreg::Tid(0), &launch).unwrap(), (0..256).collect::<Vec<u64>>());
    let (mut n_flipped, mut last) = (0, vec![first]);
    for _ in 0..3 {
        let all = last.iter().flat_map(|(s, v)| ops.iter().filter_map(|(op, by)| step(*op, *by, (s, v))));
        last = all.collect();
        for (s, values) in &last {
            n_flipped += usize::from(s.is_flipped());
            for warp in values.chunks(32) {
                for (l, x) in warp.iter().enumerate() {
                    let base = warp[s.first_lane(s.group_of(l))];
                    assert_eq!(*x, base.wrapping_add_signed(s.delta(l)) & Ty::B32.mask(), "lane {l} of {s:?}");
                    assert!((s.low..=s.high).contains(x), "{x} of {s:?}");
                    assert!(base.trailing_zeros() >= u32::from(s.align).min(31), "{base} of {s:?}");
                }
            }
        }
    }
    assert!(n_flipped > 1_000, "{n_flipped}");
}

#[test]
fn only_whom_it_may_concern_has_lanes_in_other_places() {
    let mut of_threads = Shape::linear(1);
    of_threads.align = 5;
    let args: Vec<Arg> = [of_threads, Shape::constant(1)]
        .into_iter()
        .zip([None, Some(1)])
        .map(|(s, value)| Arg { shape: Some(s), value })
        .collect();
    let of = |flip| pure(Pure::Xor(Ty::B32), &args, May { test: false, flip }).map(|r| r.shape);
    assert_eq!(of(false), None);
    let s = of(true).unwrap();
    assert_eq!((0..4).map(|l| s.delta(l)).collect::<Vec<_>>(), [1, 0, 3, 2]);
    assert_eq!((s.first_lane(0), s.is_linear(), s.is_uniform(), s.span(0)), (1, false, false, (0, 31)));
}
