//! Pages: one file of HTML each, with style and script inside, which can be read without the script.

mod cover;
pub mod html;
mod listing;
mod profile;
mod timeline;

use std::collections::BTreeMap;

pub use cover::cover_page;
pub use html::escape;
pub use profile::profile_page;

/// The lines of files that a page shows: those of the PTX for its labels, those of the source. A file that is missing is named instead.
pub type Texts = BTreeMap<String, Vec<String>>;
