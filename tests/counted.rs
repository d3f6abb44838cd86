//! Compiled code counts what the interpreter counts.

use handloom_tests::counted::kernels;

#[path = "examples/guided_fuzzer.rs"]
mod guided_fuzzer;

#[test]
fn kernels_are_counted_alike() {
    for kernel in kernels(false) {
        let compiled = kernel.job().counts_alike(0).unwrap_or_else(|why| panic!("{}: {why}", kernel.entry));
        assert!(compiled > 0, "compiled code did not count `{}`", kernel.entry);
    }
}

#[test]
fn coverage_guides_a_fuzzer_to_a_planted_fault() {
    const LAUNCHES: u32 = 6000;
    let found = guided_fuzzer::hunt(true, 1, LAUNCHES).expect("the kernel runs").expect("coverage leads to the fault");
    assert!(found.input.starts_with(b"PTX") && found.input[3] > 200, "{found:?}");
    assert!(found.message.starts_with("out of bounds: write of 4 bytes"), "{found:?}");
    // As many random inputs, of which one in 78 million would do.
    assert_eq!(guided_fuzzer::hunt(false, 1, LAUNCHES).expect("the kernel runs"), None);
}
