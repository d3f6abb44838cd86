//! What sort of failure it is when Cranelift refuses a function.

use cranelift_codegen::CodegenError;
use handloom_codegen::Failure;

#[test]
fn what_cranelift_refuses_is_a_limit_or_a_bug() {
    for error in [CodegenError::CodeTooLarge, CodegenError::ImplLimitExceeded] {
        let failure = Failure::of("k", &error, String::new);
        assert!(matches!(&failure, Failure::Limit(text) if text.starts_with("`k` is too large")), "{failure:?}");
    }
    // An op that Cranelift does not know on this host is one that we should not have emitted.
    let failure = Failure::of("k", &CodegenError::Unsupported("x".into()), || "clif".into());
    assert_eq!(failure, Failure::Bug("codegen: Unsupported(\"x\")\nclif".into()));
}
