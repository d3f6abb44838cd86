//! Places in source text.

use serde::{Deserialize, Serialize};

/// Number of a file in a [`SourceMap`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileId(pub u32);

/// A range of bytes of one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// No place: made by Handloom itself.
    pub const NONE: Span = Span { file: FileId(u32::MAX), start: 0, end: 0 };

    /// Bytes `start..end` of `file`.
    pub const fn new(file: FileId, start: u32, end: u32) -> Span {
        Span { file, start, end }
    }

    /// From the start of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        if self == Span::NONE {
            return other;
        }
        Span { file: self.file, start: self.start, end: self.end.max(other.end) }
    }
}

/// Line and column, both from 1; the column counts bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct LineColumn {
    /// Line from 1.
    pub line: u32,
    /// Column in bytes from 1.
    pub column: u32,
}

/// Names and texts of all files of a run.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<File>,
}

#[derive(Clone, Debug)]
struct File {
    name: String,
    text: String,
    line_starts: Vec<u32>,
}

impl SourceMap {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file under the name as it was given.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let mut line_starts = vec![0];
        line_starts.extend(text.match_indices('\n').map(|(i, _)| i as u32 + 1));
        self.files.push(File { name: name.into(), text, line_starts });
        FileId(self.files.len() as u32 - 1)
    }

    /// Name of a file as it was given; empty for [`Span::NONE`].
    pub fn name(&self, file: FileId) -> &str {
        self.files.get(file.0 as usize).map_or("", |f| &f.name)
    }

    /// Whole text of a file; empty for [`Span::NONE`].
    pub fn text(&self, file: FileId) -> &str {
        self.files.get(file.0 as usize).map_or("", |f| &f.text)
    }

    /// The text of a place.
    pub fn slice(&self, span: Span) -> &str {
        self.text(span.file).get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// The bytes of the whole lines from the one that holds byte `start` to the one that holds byte `end`, without
    /// the last line's newline. Empty for [`Span::NONE`].
    pub fn lines(&self, file: FileId, start: usize, end: usize) -> std::ops::Range<usize> {
        let Some(f) = self.files.get(file.0 as usize) else { return 0..0 };
        let first = f.line_starts.partition_point(|&s| s as usize <= start).max(1) - 1;
        let behind = f.line_starts.partition_point(|&s| s as usize <= end.max(start)).max(1);
        // The byte before the start of the next line is the newline.
        let end = f.line_starts.get(behind).map_or(f.text.len(), |&s| s as usize - 1);
        f.line_starts[first] as usize..end
    }

    /// Line and column of a byte.
    pub fn position(&self, file: FileId, byte: u32) -> LineColumn {
        let Some(f) = self.files.get(file.0 as usize) else { return LineColumn { line: 1, column: 1 } };
        let line = f.line_starts.partition_point(|&s| s <= byte).max(1);
        LineColumn { line: line as u32, column: byte.saturating_sub(f.line_starts[line - 1]) + 1 }
    }
}
