//! Names of a function body: nested scopes with shadowing, numbered registers, labels.
//!
//! `.reg .b32 %r<100>` is one entry: a name is looked up by its prefix and its number. A register gets its place in
//! [`Body::regs`] when it is first used, so that large unused declarations cost nothing.
//!
//! # PTX ISA
//! Identifiers; Parameterized Variable Names.

use handloom_diag::Span;
use handloom_ir::types::ScalarType;
use handloom_syntax::ast;

use crate::module::{Body, LabelId, RegDecl, RegId, SymbolId, VarId};
use handloom_diag::hash::FastMap as Map;

/// What a name of a body stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bind<'a> {
    /// A register; for a vector register its first component.
    Reg(Reg),
    /// A variable in the thread's own memory.
    Var(VarId),
    /// A `.shared`, `.global` or `.const` variable of the body.
    Symbol(SymbolId),
    /// A label.
    Label(LabelId),
    /// `.branchtargets` or `.calltargets`.
    Targets(&'a [ast::Name<'a>], bool),
    /// `.callprototype`.
    Prototype(&'a ast::Prototype<'a>),
    /// A declaration with an error, which has been told.
    Poison,
}

/// A register, or the components of a vector register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reg {
    /// The (first) register.
    pub id: RegId,
    /// Type of a component.
    pub ty: ScalarType,
    /// Number of components; 1 for a scalar register.
    pub n: u8,
}

#[derive(Clone, Copy, Debug)]
enum Meaning<'a> {
    Bound(Bind<'a>),
    /// A register that nobody has used yet.
    Unused {
        ty: ScalarType,
        n: u8,
    },
}

#[derive(Clone, Copy, Debug)]
struct Entry<'a> {
    meaning: Meaning<'a>,
    depth: u32,
    span: Span,
}

/// `%r<100>`.
#[derive(Clone, Debug)]
struct Range {
    ty: ScalarType,
    /// Components of each register; 0 after an error in the declaration.
    n: u8,
    count: u64,
    depth: u32,
    span: Span,
    /// Register of each number, as far as used; [`NOT_USED`] between.
    ids: Vec<u32>,
    /// The same for numbers too large for a list.
    far: Map<u64, u32>,
}

const NOT_USED: u32 = u32::MAX;
/// Numbers below this are kept in a list.
const NEAR: u64 = 1 << 16;

enum Undo<'a> {
    Name(&'a str, Option<Entry<'a>>),
    Range(&'a str),
}

/// The names of one function body.
#[derive(Default)]
pub(crate) struct Scopes<'a> {
    names: Map<&'a str, Entry<'a>>,
    /// Ranges by prefix, the innermost last. An inner range hides only the numbers that it has.
    ranges: Map<&'a str, Vec<Range>>,
    undo: Vec<Undo<'a>>,
    /// Length of `undo` at the start of each open scope.
    marks: Vec<usize>,
}

impl<'a> Scopes<'a> {
    /// Opens a scope.
    pub fn enter(&mut self) {
        self.marks.push(self.undo.len());
    }

    /// Closes the innermost scope.
    pub fn leave(&mut self) {
        let Some(mark) = self.marks.pop() else { return };
        for u in self.undo.drain(mark..).rev() {
            match u {
                Undo::Name(name, Some(old)) => drop(self.names.insert(name, old)),
                Undo::Name(name, None) => drop(self.names.remove(name)),
                Undo::Range(name) => {
                    if let Some(stack) = self.ranges.get_mut(name) {
                        stack.pop();
                    }
                }
            }
        }
    }

    fn depth(&self) -> u32 {
        u32::try_from(self.marks.len()).unwrap_or(u32::MAX)
    }

    /// Declares a name. Returns the earlier declaration if this scope has one; that one stays.
    pub fn declare(&mut self, name: ast::Name<'a>, bind: Bind<'a>) -> Result<(), Span> {
        self.put(name, Meaning::Bound(bind))
    }

    /// Declares a register of `n` components without giving it a place.
    pub fn declare_reg(&mut self, name: ast::Name<'a>, ty: ScalarType, n: u8) -> Result<(), Span> {
        self.put(name, Meaning::Unused { ty, n })
    }

    fn put(&mut self, name: ast::Name<'a>, meaning: Meaning<'a>) -> Result<(), Span> {
        let depth = self.depth();
        if let Some(old) = self.names.get(name.text).filter(|e| e.depth == depth) {
            return Err(old.span);
        }
        if let Some((prefix, number)) = split_number(name.text)
            && let Some(range) = self.ranges.get(prefix).and_then(|stack| stack.last())
            && range.depth == depth
            && number < range.count
        {
            return Err(range.span);
        }
        let old = self.names.insert(name.text, Entry { meaning, depth, span: name.span });
        self.undo.push(Undo::Name(name.text, old));
        Ok(())
    }

    /// Declares `prefix0` to `prefix(count-1)`.
    pub fn declare_range(&mut self, name: ast::Name<'a>, ty: ScalarType, n: u8, count: u64) -> Result<(), Span> {
        let depth = self.depth();
        if let Some(old) = self.ranges.get(name.text).and_then(|stack| stack.last()).filter(|r| r.depth == depth) {
            return Err(old.span);
        }
        let start = self.marks.last().copied().unwrap_or(0);
        for u in &self.undo[start..] {
            if let Undo::Name(other, _) = u
                && other.starts_with(name.text)
                && split_number(other).is_some_and(|(prefix, number)| prefix == name.text && number < count)
                && let Some(e) = self.names.get(other)
            {
                return Err(e.span);
            }
        }
        let range = Range { ty, n, count, depth, span: name.span, ids: Vec::new(), far: Map::default() };
        self.ranges.entry(name.text).or_default().push(range);
        self.undo.push(Undo::Range(name.text));
        Ok(())
    }

    /// Declares a range whose declaration has an error: uses of it are silent.
    pub fn declare_poisoned_range(&mut self, name: ast::Name<'a>, count: u64) -> Result<(), Span> {
        self.declare_range(name, ScalarType::B32, 0, count)
    }

    /// What a name stands for in the innermost scope that knows it. A register used for the first time gets its place in `body`.
    pub fn find(&mut self, name: &'a str, body: &mut Body) -> Option<Bind<'a>> {
        let exact = self.names.get_mut(name);
        let depth = exact.as_ref().map(|e| e.depth);
        if let Some((prefix, number)) = split_number(name)
            && let Some(stack) = self.ranges.get_mut(prefix)
            && let Some(range) = stack.iter_mut().rev().find(|r| number < r.count)
            && depth.is_none_or(|d| d < range.depth)
        {
            return Some(range.bind(number, name, body));
        }
        let Some(entry) = exact else { return self.find_padded(name, body) };
        match entry.meaning {
            Meaning::Bound(b) => Some(b),
            Meaning::Unused { ty, n } => {
                let bind = Bind::Reg(Reg { id: RegId(materialise(name, ty, n, body)), ty, n });
                entry.meaning = Meaning::Bound(bind);
                Some(bind)
            }
        }
    }

    /// `%r07` as the register 7 of `%r`, which is how the assembler reads it where nothing else has that name.
    fn find_padded(&mut self, name: &str, body: &mut Body) -> Option<Bind<'a>> {
        let (prefix, number) = split_number(name)?;
        let mut shorter = prefix;
        // No more zeros than digits of a number: each one is a look-up, and names may be long.
        for _ in 0..MAX_DIGITS {
            shorter = shorter.strip_suffix('0')?;
            if let Some(stack) = self.ranges.get_mut(shorter)
                && let Some(range) = stack.iter_mut().rev().find(|r| number < r.count)
            {
                return Some(range.bind(number, &format!("{shorter}{number}"), body));
            }
        }
        None
    }

    /// How many registers the innermost range of a prefix has.
    pub fn range_count(&self, prefix: &str) -> Option<u64> {
        self.ranges.get(prefix)?.last().map(|r| r.count)
    }

    /// Names in sight but for ranges, for suggestions.
    pub fn in_sight(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.names.keys().copied()
    }
}

impl Range {
    /// The register of a number; nothing, silently, where the declaration has an error.
    fn bind<'a>(&mut self, number: u64, name: &str, body: &mut Body) -> Bind<'a> {
        if self.n == 0 {
            return Bind::Poison;
        }
        Bind::Reg(Reg { id: RegId(self.place(number, name, body)), ty: self.ty, n: self.n })
    }

    fn place(&mut self, number: u64, name: &str, body: &mut Body) -> u32 {
        if let Some(i) = usize::try_from(number).ok().filter(|_| number < NEAR) {
            if self.ids.len() <= i {
                self.ids.resize(i + 1, NOT_USED);
            }
            if self.ids[i] == NOT_USED {
                self.ids[i] = materialise(name, self.ty, self.n, body);
            }
            return self.ids[i];
        }
        let (ty, n) = (self.ty, self.n);
        *self.far.entry(number).or_insert_with(|| materialise(name, ty, n, body))
    }
}

/// Gives a register its place; the components of a vector register follow each other.
fn materialise(name: &str, ty: ScalarType, n: u8, body: &mut Body) -> u32 {
    // A body has fewer registers than bytes of text, and text is below 4 GiB.
    let first = u32::try_from(body.regs.len()).unwrap_or(NOT_USED);
    if n == 1 {
        body.regs.push(RegDecl { name: name.to_owned(), ty });
    } else {
        for word in ["x", "y", "z", "w"].iter().take(usize::from(n)) {
            body.regs.push(RegDecl { name: format!("{name}.{word}"), ty });
        }
    }
    first
}

/// `%r17` as `%r` and 17. Numbers with a leading zero are no numbers of a range.
fn split_number(name: &str) -> Option<(&str, u64)> {
    let bytes = name.as_bytes();
    let digits = bytes.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let mut start = bytes.len() - digits;
    // `%r007`: the zeros belong to the prefix.
    while start + 1 < bytes.len() && bytes[start] == b'0' {
        start += 1;
    }
    Some((&name[..start], number_of(&name[start..])?))
}

/// Digits of the largest number of a range.
const MAX_DIGITS: usize = 18;

fn number_of(digits: &str) -> Option<u64> {
    let leading_zero = digits.len() > 1 && digits.starts_with('0');
    if digits.is_empty() || digits.len() > MAX_DIGITS || leading_zero {
        return None;
    }
    Some(digits.bytes().fold(0, |n, b| n * 10 + u64::from(b - b'0')))
}

#[cfg(test)]
mod tests {
    use super::{number_of, split_number};

    #[test]
    fn numbers_of_ranges() {
        assert_eq!(split_number("%r17"), Some(("%r", 17)));
        assert_eq!(split_number("%r0"), Some(("%r", 0)));
        assert_eq!(split_number("%r007"), Some(("%r00", 7)));
        assert_eq!(split_number("%r"), None);
        assert_eq!(number_of("01"), None);
    }
}
