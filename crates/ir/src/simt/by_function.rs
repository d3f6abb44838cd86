//! What there is of some functions of a module: an entry reaches few of them, and a module may have thousands.

use std::ops::{Index, IndexMut};

use super::FuncId;

/// What there is of some functions, by number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ByFunction<T>(Vec<(FuncId, T)>);

impl<T> ByFunction<T> {
    /// That of one of them.
    pub fn get(&self, f: FuncId) -> Option<&T> {
        self.place(f).map(|at| &self.0[at].1)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, f: FuncId) -> Option<&mut T> {
        self.place(f).map(|at| &mut self.0[at].1)
    }

    /// That of one of them which stood at a place when it was looked up last, if `place` says so; else where it stands now is kept there.
    pub fn get_at(&self, f: FuncId, place: &mut u32) -> Option<&T> {
        self.place_at(f, place).map(|at| &self.0[at].1)
    }

    /// The same, to be changed.
    pub fn get_mut_at(&mut self, f: FuncId, place: &mut u32) -> Option<&mut T> {
        self.place_at(f, place).map(|at| &mut self.0[at].1)
    }

    fn place_at(&self, f: FuncId, place: &mut u32) -> Option<usize> {
        if self.0.get(*place as usize).is_none_or(|(other, _)| *other != f) {
            *place = self.place(f)? as u32;
        }
        Some(*place as usize)
    }

    fn place(&self, f: FuncId) -> Option<usize> {
        self.0.binary_search_by_key(&f, |(f, _)| *f).ok()
    }

    /// All, in the order of their functions, with these.
    pub fn iter(&self) -> impl Iterator<Item = (FuncId, &T)> {
        self.0.iter().map(|(f, x)| (*f, x))
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (FuncId, &mut T)> {
        self.0.iter_mut().map(|(f, x)| (*f, x))
    }

    /// All, in the order of their functions.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, x)| x)
    }

    /// The same, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, x)| x)
    }

    /// Forgets the functions that `is_kept` does not hold for.
    pub fn retain(&mut self, is_kept: impl Fn(FuncId) -> bool) {
        self.0.retain(|(f, _)| is_kept(*f));
    }

    /// Something else of the same functions.
    pub fn map<U>(&self, mut of: impl FnMut(&T) -> U) -> ByFunction<U> {
        ByFunction(self.0.iter().map(|(f, x)| (*f, of(x))).collect())
    }
}

/// Panics for a function that nothing is known of.
impl<T> Index<FuncId> for ByFunction<T> {
    type Output = T;

    fn index(&self, f: FuncId) -> &T {
        self.get(f).unwrap_or_else(|| panic!("bug: nothing is known of function {}", f.0))
    }
}

/// The same.
impl<T> IndexMut<FuncId> for ByFunction<T> {
    fn index_mut(&mut self, f: FuncId) -> &mut T {
        self.get_mut(f).unwrap_or_else(|| panic!("bug: nothing is known of function {}", f.0))
    }
}

/// Of functions that are named once each.
impl<T> FromIterator<(FuncId, T)> for ByFunction<T> {
    fn from_iter<I: IntoIterator<Item = (FuncId, T)>>(all: I) -> ByFunction<T> {
        let mut all: Vec<(FuncId, T)> = all.into_iter().collect();
        all.sort_unstable_by_key(|(f, _)| *f);
        ByFunction(all)
    }
}
