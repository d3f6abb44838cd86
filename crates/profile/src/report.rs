//! Reports as the text of files, by the ending of their names.

use std::path::Path;

use serde::Serialize;

use crate::compare::Changes;
use crate::cover::Coverage;
use crate::model::{Profile, Row};
use crate::page::{Texts, cover_page, profile_page};

/// What a report is written as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Data.
    Json,
    /// A page.
    Html,
    /// A tracefile of lcov, of a coverage.
    Lcov,
}

impl Form {
    /// That of a file, by the ending of its name.
    pub fn of(path: &Path) -> Option<Form> {
        match path.extension().and_then(|e| e.to_str()) {
            Some("json") => Some(Form::Json),
            Some("html" | "htm") => Some(Form::Html),
            Some("info") => Some(Form::Lcov),
            _ => None,
        }
    }
}

/// Reads a file that a page shows: by its name, and for a source the name of its PTX.
pub type ReadText<'r> = &'r dyn Fn(&str, Option<&str>) -> Option<String>;

/// Lines of a text as a page shows them.
pub fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// The PTX and the source files of statements, as far as they can be read, beside those that are known.
pub fn texts_of<'r>(rows: impl IntoIterator<Item = &'r Row>, known: &Texts, read: ReadText<'_>) -> Texts {
    let mut texts = known.clone();
    let mut missing = std::collections::BTreeSet::new();
    for row in rows {
        let source = row.source.as_ref().map(|place| place.file.as_str());
        let of_source = source.map(|name| (name, Some(row.file.as_str())));
        for (name, beside) in std::iter::once((row.file.as_str(), None)).chain(of_source) {
            if texts.contains_key(name) || missing.contains(name) {
                continue;
            }
            match read(name, beside) {
                Some(text) => texts.insert(name.to_owned(), lines(&text)).is_some(),
                None => missing.insert(name),
            };
        }
    }
    texts
}

/// Data as one line of JSON.
///
/// # Errors
/// It cannot be written as JSON, which is a fault of ours.
pub fn json_line(data: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(data).map(|text| text + "\n").map_err(|e| e.to_string())
}

impl Profile {
    /// As the text of a file. `known`: texts that need not be read.
    ///
    /// # Errors
    /// A sentence: it has no such form, or a fault of ours.
    pub fn report(&self, form: Form, known: &Texts, read: ReadText<'_>, changes: &[Changes]) -> Result<String, String> {
        match form {
            Form::Json => json_line(self),
            Form::Html => {
                let rows = self.launches.iter().flat_map(|l| &l.statements);
                Ok(profile_page(self, &texts_of(rows, known, read), changes))
            }
            Form::Lcov => Err("a profile is written as .html or .json".to_owned()),
        }
    }
}

impl Coverage {
    /// As the text of a file. `known`: texts that need not be read.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn report(&self, form: Form, known: &Texts, read: ReadText<'_>) -> Result<String, String> {
        match form {
            Form::Json => json_line(self),
            Form::Html => Ok(cover_page(self, &texts_of(&self.statements, known, read))),
            Form::Lcov => Ok(self.lcov()),
        }
    }
}
