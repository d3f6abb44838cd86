//! Compiled code counts what the interpreter counts.

use handloom_tests::counted::kernels;

#[test]
fn kernels_are_counted_alike() {
    for kernel in kernels(false) {
        let compiled = kernel.job().counts_alike(0).unwrap_or_else(|why| panic!("{}: {why}", kernel.entry));
        assert!(compiled > 0, "compiled code did not count `{}`", kernel.entry);
    }
}
