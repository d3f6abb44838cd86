//! What a check tells of copies, fills and frees that a program asked for and that name memory that is not there.

use super::linear::MemoryError;
use super::space::Allocation;
use crate::finding::{Finding, FoundAt, FoundIn, Word};

impl MemoryError {
    /// What a check of memory tells of a call of a program that was refused for this. `does`: `copy`, `fill` or `free`; `freed`: the call that freed the memory,
    /// if it is known. `None` if it names no memory that is not there.
    pub fn finding(&self, does: Word, call: FoundAt, freed: Option<FoundAt>) -> Option<Finding> {
        let of = |a: &Allocation, address: u64, bytes: u64| FoundIn::of_allocation(a.size, address - a.base, bytes);
        let is_free = does == "free";
        let (kind, class, data) = match self {
            MemoryError::Freed { address, allocation } => {
                let class = if is_free { "double_free" } else { "use" };
                ("freed", class, of(allocation, *address, 0))
            }
            MemoryError::PastEnd { address, bytes, allocation } => {
                ("out_of_bounds", "refused", of(allocation, *address, *bytes))
            }
            MemoryError::NotBase { address, allocation } | MemoryError::OtherCall { address, allocation, .. } => {
                ("out_of_bounds", "refused", of(allocation, *address, 0))
            }
            MemoryError::Nothing { .. } => {
                ("out_of_bounds", "refused", FoundIn { what: "no allocation".into(), ..FoundIn::default() })
            }
            _ => return None,
        };
        let message = format!("a {does} that the program asked for is refused: {self}");
        let places = match freed.filter(|_| kind == "freed") {
            Some(freed) => (freed, Some(call)),
            None => (call, None),
        };
        Some(Finding::new(kind, class, message, places, data))
    }
}
