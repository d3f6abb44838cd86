//! Syntax errors beside the faults of what could be read.

use std::ops::Range;

use handloom_diag::{Code, Diagnostic};

use crate::context::index;
use handloom_diag::hash::FastSet as Set;

/// Adds the syntax errors and takes away undeclared names that a lost statement may have declared.
pub(crate) fn merge(text: &str, errors: Vec<Diagnostic>, all: &mut Vec<Diagnostic>) {
    let mut lost: Set<&str> = Set::default();
    let mut places: Vec<usize> = errors.iter().map(|e| index(e.span().start)).collect();
    places.sort_unstable();
    // A statement without an end may hold all errors behind it: each is read once.
    let mut read = 0;
    for at in places {
        if at < read {
            continue;
        }
        let lost_here = statement(text, at);
        lost.extend(words(&text[lost_here.clone()]));
        read = lost_here.end;
    }
    all.retain(|d| d.code != Code::Unknown || !may_be_lost(name_in(text, d), &lost));
    all.extend(errors);
    all.sort_by_key(|d| (d.span().start, d.span().end));
}

/// The statement around a byte.
fn statement(text: &str, at: usize) -> Range<usize> {
    let at = (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    let start = text[..at].rfind([';', '{', '}']).map_or(0, |i| i + 1);
    let end = text[at..].find([';', '}']).map_or(text.len(), |i| at + i);
    start..end
}

fn words(statement: &str) -> impl Iterator<Item = &str> {
    statement.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%'))).filter(|w| !w.is_empty())
}

fn name_in<'t>(text: &'t str, d: &Diagnostic) -> &'t str {
    text.get(index(d.span().start)..index(d.span().end)).unwrap_or("")
}

/// A lost word is the name, or the prefix of a numbered register.
fn may_be_lost(name: &str, lost: &Set<&str>) -> bool {
    let name = name.split('.').next().unwrap_or(name);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    lost.contains(name) || (stem.len() < name.len() && lost.contains(stem))
}
