//! The table of forms: facts that hold for every record, matching, and values.

mod matching;
mod records;
mod values;

use handloom_diag::Span;
use handloom_ir::simt::{Block, Function, Term};

/// What records are built into.
fn empty_function() -> Function {
    Function {
        name: "f".to_string(),
        is_entry: true,
        blocks: vec![Block { insts: vec![], term: Term::Ret, term_span: Span::NONE }],
        regs: vec![],
        slots: vec![],
        param_bytes: 0,
        result_bytes: 0,
        span: Span::NONE,
    }
}
