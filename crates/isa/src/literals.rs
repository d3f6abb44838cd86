//! Rules for the values of literal operands, which no record can state: a record sees which operands are written, not their values.

use crate::form::{Form, Operand, Reason};

/// What a literal must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Literal {
    /// At least and at most.
    Between(u64, u64),
    /// A multiple of a number, at least and at most.
    Multiple(u64, u64, u64),
    /// This value.
    Exactly(u64),
}

/// Opcode, operand name, rule.
pub const LITERALS: &[(&str, &str, Literal)] = &[
    ("bar", "a", Literal::Between(0, 15)),
    ("bar", "b", Literal::Multiple(32, 0, 1024)),
    ("barrier", "a", Literal::Between(0, 15)),
    ("barrier", "b", Literal::Multiple(32, 0, 1024)),
    ("bfe", "b", Literal::Between(0, 255)),
    ("bfe", "c", Literal::Between(0, 255)),
    ("bfi", "c", Literal::Between(0, 255)),
    ("bfi", "d", Literal::Between(0, 255)),
    ("fence.proxy", "size", Literal::Exactly(128)),
    ("applypriority", "size", Literal::Exactly(128)),
    ("discard", "size", Literal::Exactly(128)),
    ("pmevent", "a", Literal::Between(0, 15)),
    ("pmevent", "mask", Literal::Between(0, 0xffff)),
    ("setmaxnreg", "imm-reg-count", Literal::Multiple(8, 24, 256)),
];

/// Whether a literal may be written for an operand of a form.
pub fn check_literal(form: &Form, operand: &Operand, value: u64) -> Result<(), Reason> {
    let Some((_, _, rule)) = LITERALS.iter().find(|(o, name, _)| *o == form.opcode && *name == operand.name) else {
        return Ok(());
    };
    let (fits, wanted) = match *rule {
        Literal::Between(least, most) => ((least..=most).contains(&value), format!("from {least} to {most}")),
        Literal::Multiple(of, least, most) => (
            value.is_multiple_of(of) && (least..=most).contains(&value),
            format!("a multiple of {of} from {least} to {most}"),
        ),
        Literal::Exactly(only) => (value == only, format!("{only}")),
    };
    if fits { Ok(()) } else { Err(Reason::new(format!("operand `{}` must be {wanted}", operand.name))) }
}
