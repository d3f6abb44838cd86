//! Values that straight code makes once.
//!
//! Cranelift compiles here without its optimiser, so what is asked for twice would be made twice. The *line* is the CLIF block that a full copy has come
//! to: each block of the line is reached only from the one before. What is made on the line serves all that is emitted later in the same copy, side
//! blocks too: those branch off the line behind it.

use std::collections::HashMap;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::Value;
use handloom_ir::types::Ty;

use super::Emit;

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

/// Values of the line.
#[derive(Clone, Default)]
pub(crate) struct Line {
    at: Option<clif::Block>,
    made: HashMap<Key, Vec<Value>>,
}

impl Line {
    /// The line goes on in a block that is reached from it.
    pub(crate) fn continue_at(&mut self, block: clif::Block) {
        if self.at.is_some() {
            self.at = Some(block);
        }
    }
}

impl Emit<'_, '_> {
    /// Begins a line at the current block.
    pub(crate) fn begin_line(&mut self) {
        self.line.made.clear();
        self.line.at = self.b.current_block();
    }

    /// No line: what follows is reached in other ways.
    pub(crate) fn end_line(&mut self) {
        self.line.made.clear();
        self.line.at = None;
    }

    /// Whether the current block is the line's.
    pub(crate) fn on_line(&self) -> bool {
        self.line.at.is_some() && self.b.current_block() == self.line.at
    }

    /// Goes on in `block`. `on`: whether the blocks that jump to it left the line where it had come to.
    pub(crate) fn rejoin(&mut self, block: clif::Block, on: bool) {
        self.b.switch_to_block(block);
        if on {
            self.line.at = Some(block);
        }
    }

    /// Forgets vectors before a call on the line: no vector register of the host outlives one.
    pub(crate) fn drop_vectors(&mut self) {
        if self.on_line() {
            self.line.made.retain(|k, _| !matches!(k, Key::Vector(..) | Key::Spread(..)));
        }
    }

    /// Values made before on the line, or made now.
    pub(crate) fn once(&mut self, key: Key, make: impl FnOnce(&mut Self) -> Vec<Value>) -> Vec<Value> {
        if let Some(v) = self.line.made.get(&key) {
            return v.clone();
        }
        let v = make(self);
        if self.on_line() {
            self.line.made.insert(key, v.clone());
        }
        v
    }

    /// As [`Emit::once`], for a single value.
    pub(crate) fn one(&mut self, key: Key, make: impl FnOnce(&mut Self) -> Value) -> Value {
        if let Some(v) = self.line.made.get(&key) {
            return v[0];
        }
        let v = make(self);
        if self.on_line() {
            self.line.made.insert(key, vec![v]);
        }
        v
    }

    /// A 64-bit field of the CTA's context that does not change while a copy runs.
    pub(crate) fn cta_field(&mut self, offset: usize) -> Value {
        self.one(Key::Field(offset), |e| e.load_cta(clif::types::I64, offset))
    }
}
