//! What a launch did, for a person: statements, lanes, branches, sectors, banks, atomics, barriers.
//!
//! Takes: what the crate `counts` counted while a launch ran, and the module with its lines ([`describe`]).
//!
//! Gives: a [`Profile`], as data that is written and read as JSON; its text, its page, the difference of two of them; the coverage of lines, branches and lanes.
//!
//! Does not know: engines, memory, files, options. Nothing in it is sampled or estimated, and no count becomes a duration; the one thing with time in it, the
//! blocks over threads of a page, is that of the host and says so.
//!
//! To read it: `kind` what an instruction is for, `launch` puts names to counts, `model` is the
//! result and its schema, `join` puts several together, `device` the table of devices, `remarks` what matters most, `text` what a terminal shows, `compare` the difference of two,
//! `cover` what ran at all, `timeline` when the host did it, `page` both as HTML, `report` what files get.

#![forbid(unsafe_code)]

pub mod compare;
pub mod cover;
mod device;
mod join;
mod kind;
mod launch;
mod model;
mod page;
mod remarks;
mod report;
mod text;
mod timeline;

pub use device::{CAPABILITIES, Capability, Device, PRODUCTS, Product, occupancy, place_on, roofline};
pub use handloom_counts::{Counter, MOST_ADDRESSES, Site, Space, Traffic, Waits, Warps, Words, rules};
pub use handloom_ir::simt::Does;
pub use join::{Part, join, unique_name};
pub use kind::Kind;
pub use launch::{Facts, describe};
pub use model::{
    Branch, Hot, Launch, LimitOf, MostRegisters, Moved, NOT_TIME, Occupancy, OfKind, Operations, Profile, Roofline,
    Row, SCHEMA, SourcePlace, SourceRow, Totals, VERSION,
};
pub use page::{Texts, cover_page, escape, html, profile_page};
pub use remarks::{Remark, grouped, remarks};
pub use report::{Form, ReadText, json_line, lines};
pub use text::summary;
pub use timeline::{Piece, Timeline, Timelines};
