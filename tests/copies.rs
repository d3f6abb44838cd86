//! Random kernels that fetch tiles by `cp.async`: all engines must give the same bytes or the same report.
//!
//! `HANDLOOM_KERNELS=1000` runs that many, `HANDLOOM_SEED=77` starts there. A failure prints its seed and its text.

use handloom_tests::agree::{agree, agree_on};
use handloom_tests::copies::kernel;
use handloom_tests::engines::Way;

/// Kernels of a plain run.
const KERNELS: u64 = 100;

#[test]
fn engines_agree_on_copies_of_a_few_bytes() {
    agree_on(KERNELS, |seed| {
        let k = kernel(seed);
        let told = |way: Way, what: &str| {
            format!(
                "seed {seed}, grid {}, block {}, launches {:?}: [{}] {what}\n{}",
                k.grid, k.block, k.launches, way.name, k.text
            )
        };
        agree(&k.job(), &told)
    });
}
