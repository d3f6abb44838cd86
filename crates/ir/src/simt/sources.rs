//! Lists of the types of sources.

use std::ops::Deref;

use crate::types::Ty;

/// The types of the sources of an op: a slice of at most nine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Types {
    types: [Ty; 9],
    count: u8,
}

impl Types {
    /// Adds one at the end.
    pub(super) fn push(&mut self, ty: Ty) {
        self.types[usize::from(self.count)] = ty;
        self.count += 1;
    }
}

impl<const N: usize> From<[Ty; N]> for Types {
    fn from(types: [Ty; N]) -> Types {
        let mut list = Types { types: [Ty::P; 9], count: 0 };
        types.into_iter().for_each(|ty| list.push(ty));
        list
    }
}

impl Deref for Types {
    type Target = [Ty];

    fn deref(&self) -> &[Ty] {
        &self.types[..usize::from(self.count)]
    }
}
