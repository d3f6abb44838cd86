//! The file tests of Handloom: on all engines, with a second opinion of races. [`job`] writes a test out for the command line.

pub mod job;

use std::path::{Path, PathBuf};

use handloom_runtime::{AsyncOrder, Bounds};

use crate::engines::{self, TRACED, Way, tiers, ways};
use crate::reference::order::agrees;

pub use handloom_filetest::{
    Argument, Buffer, Directives, Expect, FileTest, Golden, Launch, Note, Suite, Test, collect, parse, values,
    without_window,
};

/// The folder of the file tests.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests")
}

/// Runs a test file.
///
/// # Errors
/// What is wrong, for a person.
pub fn run_file(test: &FileTest) -> Result<(), String> {
    let all = std::env::var_os("HANDLOOM_TIERS").is_some();
    let suite = Suite {
        ways: if all { tiers().collect() } else { ways().collect() },
        finder: TRACED,
        also_checked: &is_checked,
        also_counted: &is_counted,
        more: &late_runs,
        // The plain analysis knows of no grids that launch grids; labels tell what is right there.
        opinion: &|text, outcome| match text.contains("cudaCDP2LaunchDevice") {
            true => Ok(()),
            false => agrees(text, &outcome.events, &outcome.findings).map(drop),
        },
    };
    handloom_filetest::run_file(test, &suite)
}

/// Runs of a program with results that come late: what waits for them is the same on all engines.
fn late_runs(text: &str) -> Vec<(Way, u64)> {
    let is_asynchronous = ["async", "tcgen05", "clusterlaunchcontrol"].iter().any(|word| text.contains(word));
    if !is_asynchronous {
        return vec![];
    }
    let n_seeds = if std::env::var_os("HANDLOOM_ASYNC").is_some_and(|v| v == "all") { 20 } else { 2 };
    let orders = (0..n_seeds).map(|seed| (AsyncOrder::Seed, seed)).chain([(AsyncOrder::Latest, 0)]);
    let plain: Vec<Way> = engines::plain(Bounds::Exact).collect();
    orders
        .flat_map(|(order, seed)| plain.iter().map(move |way| (Way { async_order: Some(order), ..*way }, seed)))
        .collect()
}

/// Whether a run is counted too: one in eight, or all with `HANDLOOM_COUNTED=all`.
fn is_counted(test: &FileTest) -> bool {
    let all = std::env::var_os("HANDLOOM_COUNTED").is_some_and(|v| v == "all");
    let sum: u32 = test.name.bytes().map(u32::from).sum();
    all || sum.is_multiple_of(8)
}

/// A test whose threads read what others write meanwhile.
const WITH_RACES: &str = "launch/rows_of_others";

/// Whether a run is checked too: one in sixteen, or all with `HANDLOOM_CHECKED=all`.
fn is_checked(test: &FileTest) -> bool {
    let all = std::env::var_os("HANDLOOM_CHECKED").is_some_and(|v| v == "all");
    let sum: u32 = test.name.bytes().map(u32::from).sum();
    (all || sum.is_multiple_of(16)) && test.name != WITH_RACES
}
