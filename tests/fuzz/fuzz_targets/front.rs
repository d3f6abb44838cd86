//! Any text: the parser, the printer and the checker do not panic. `cargo fuzz run front --fuzz-dir tests/fuzz`.

#![no_main]

use handloom_diag::FileId;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let tree = handloom_syntax::parse(text, FileId(0));
    let printed = handloom_syntax::print(&tree.module);
    let again = handloom_syntax::parse(&printed, FileId(0));
    if tree.errors.is_empty() {
        assert!(again.errors.is_empty() && handloom_syntax::same(&tree.module, &again.module));
    }
    let _ = handloom_check::check_text(text, FileId(0));
});
