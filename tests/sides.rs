//! Random kernels whose lanes part and go through loops with registers that sides share: all engines must give the same bytes.
//!
//! `HANDLOOM_KERNELS=1000` runs that many, `HANDLOOM_SEED=77` starts there. A failure prints its seed and its text.

use handloom_tests::agree::{agree, agree_on};
use handloom_tests::engines::Way;
use handloom_tests::sides::kernel;

/// Kernels of a plain run.
const KERNELS: u64 = 150;

#[test]
fn engines_agree_on_lanes_that_part() {
    agree_on(KERNELS, |seed| {
        let k = kernel(seed);
        let told = |way: Way, what: &str| {
            format!("seed {seed}, block {:?}, {}: [{}] {what}\n{}", k.block, k.n, way.name, k.text)
        };
        agree(&k.job(), &told)
    });
}
