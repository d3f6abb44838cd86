//! What there is of some functions of a module: a program knows few of them, and a module may have thousands.

use handloom_ir::simt::FuncId;

/// What there is of some functions, by number.
#[derive(Clone, Debug)]
pub(crate) struct ByFunction<T>(Vec<(FuncId, T)>);

impl<T> ByFunction<T> {
    /// That of one of them.
    pub(crate) fn get(&self, f: FuncId) -> Option<&T> {
        self.place(f).map(|at| &self.0[at].1)
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, f: FuncId) -> Option<&mut T> {
        self.place(f).map(|at| &mut self.0[at].1)
    }

    fn place(&self, f: FuncId) -> Option<usize> {
        self.0.binary_search_by_key(&f, |(f, _)| *f).ok()
    }

    /// All, in the order of their functions, with these.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (FuncId, &T)> {
        self.0.iter().map(|(f, x)| (*f, x))
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (FuncId, &mut T)> {
        self.0.iter_mut().map(|(f, x)| (*f, x))
    }

    /// All, in the order of their functions.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, x)| x)
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
