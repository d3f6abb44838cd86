//! The table of forms: facts that hold for every record, matching, and values.

mod matching;
mod records;
mod values;
