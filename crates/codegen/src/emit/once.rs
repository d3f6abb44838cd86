//! Values that straight code makes once.
//!
//! Cranelift compiles here without its optimiser, so what is asked for twice would be made twice. The *line* is the CLIF block that a full copy has come
//! to: each block of the line is reached only from the one before. What is made on the line serves all that is emitted later in the same copy, side
//! blocks too: those branch off the line after it.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::Value;
use handloom_diag::hash::FastMap;
use handloom_ir::types::Ty;

/// What tells values apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Key {
    /// A vector constant.
    Vector(clif::Type, u128),
    /// A field of the CTA's context that does not change while a copy runs.
    Field(usize),
    /// Bytes of the arena and so many more.
    Room(i64),
    /// The same, in units of `2^k` bytes.
    Units(i64, u32),
    /// Vectors of a pack: the value of its first lane, the stride, the type.
    Spread(Value, i64, Ty),
}

impl Key {
    /// Whether the values are vectors of the host.
    fn is_vector(self) -> bool {
        matches!(self, Key::Vector(..) | Key::Spread(..))
    }
}

/// Values of the line.
#[derive(Clone, Default)]
pub(crate) struct Line {
    at: Option<clif::Block>,
    scalars: FastMap<Key, Vec<Value>>,
    vectors: FastMap<Key, Vec<Value>>,
}

impl Line {
    /// A line that begins at a block, with nothing made.
    pub(crate) fn beginning_at(block: Option<clif::Block>) -> Line {
        Line { at: block, ..Line::default() }
    }

    /// The line goes on in a block that is reached from it.
    pub(crate) fn continue_at(&mut self, block: clif::Block) {
        if self.at.is_some() {
            self.at = Some(block);
        }
    }

    /// The line goes on in a block that all blocks which jump to it left where it had come to.
    pub(crate) fn rejoin_at(&mut self, block: clif::Block) {
        self.at = Some(block);
    }

    /// Whether a block is the line's.
    pub(crate) fn is_at(&self, block: Option<clif::Block>) -> bool {
        self.at.is_some() && block == self.at
    }

    /// Forgets vectors.
    pub(crate) fn drop_vectors(&mut self) {
        self.vectors = FastMap::default();
    }

    /// Values made before.
    pub(crate) fn made(&self, key: Key) -> Option<&[Value]> {
        let made = if key.is_vector() { &self.vectors } else { &self.scalars };
        made.get(&key).map(Vec::as_slice)
    }

    /// Keeps values that were made on the line.
    pub(crate) fn keep(&mut self, key: Key, values: Vec<Value>) {
        let made = if key.is_vector() { &mut self.vectors } else { &mut self.scalars };
        made.insert(key, values);
    }
}
