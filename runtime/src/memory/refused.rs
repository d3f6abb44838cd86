//! What a check tells of copies, fills and frees that a program asked for and that name memory that is not there.

use super::linear::MemoryError;
use super::space::Allocation;
use crate::finding::{Finding, FoundAt, FoundIn, Word};

impl MemoryError {
    /// What a check of memory tells of a call of a program that was refused for this. `does`: `copy`, `fill` or `free`. `None` if it names no memory that is not
    /// there.
    pub fn finding(&self, does: Word) -> Option<Finding> {
        let of = |a: &Allocation, address: u64, bytes: u64| FoundIn {
            what: "an allocation".into(),
            size: a.size,
            offset: address - a.base,
            bytes,
            element: None,
        };
        let is_free = does == "free";
        let (kind, class, data) = match self {
            MemoryError::Freed { address, allocation } => {
                let class = if is_free { "double_free" } else { "use" };
                ("freed", class, of(allocation, *address, 0))
            }
            MemoryError::PastEnd { address, bytes, allocation } => {
                ("out_of_bounds", "refused", of(allocation, *address, *bytes))
            }
            MemoryError::NotBase { address, allocation } => ("out_of_bounds", "refused", of(allocation, *address, 0)),
            MemoryError::Nothing { .. } => {
                ("out_of_bounds", "refused", FoundIn { what: "no allocation".into(), ..FoundIn::default() })
            }
            _ => return None,
        };
        let message = format!("a {does} that the program asked for is refused: {self}");
        Some(Finding::new(kind, class, message, (FoundAt::of_program(does, does), None), data))
    }
}
