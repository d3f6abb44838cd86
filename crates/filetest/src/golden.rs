//! Side files that are compared whole, and rewritten when `UPDATE_EXPECT` is set.

use std::path::Path;

use handloom_runtime::{Bounds, LaunchConfig, Module, Stage};

use crate::FileTest;
use crate::directives::{Directives, Golden};
use crate::engines::device;

/// The printed stages of launches that a test asks for.
pub fn stages(test: &FileTest, d: &Directives, text: &str) -> Result<(), String> {
    let wanted: Vec<Golden> = d
        .goldens
        .iter()
        .copied()
        .filter(|g| matches!(g, Golden::Ir(_) | Golden::Plan(..) | Golden::Clif(..)))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let device = device()?;
    let module = Module::from_text(&device, &test.file_name(), text).map_err(|e| e.to_string())?;
    for golden in wanted {
        compare(test, golden, &stage(&module, d, golden)?)?;
    }
    Ok(())
}

/// What is in the side file: a line that says what is printed, and the stage.
fn stage(module: &Module, d: &Directives, golden: Golden) -> Result<String, String> {
    let (Golden::Ir(number) | Golden::Plan(number, _) | Golden::Clif(number, _)) = golden else {
        return Err("no stage of a launch".into());
    };
    let launch = d.launches.get(number).ok_or("a golden of a launch that is not there: its block shape is unknown")?;
    let config = LaunchConfig {
        bounds: Bounds::Exact,
        cluster: launch.cluster,
        cooperative: launch.cooperative,
        ..LaunchConfig::new(launch.grid, launch.block)
    };
    let function = module.function(Some(&launch.entry)).map_err(|e| e.to_string())?;
    let listing = function.listing(&config).map_err(|e| e.to_string())?;
    let shape = launch.block.map(|n| n.to_string()).join(",");
    let of = format!("; {} for blocks of {shape}", launch.entry);
    let first = listing.first_tier();
    match golden {
        Golden::Plan(_, tier) | Golden::Clif(_, tier) => {
            let tier = tier.unwrap_or(first);
            let stage = if matches!(golden, Golden::Plan(..)) { Stage::Plan } else { Stage::Clif };
            let text = listing.code(tier, stage).map_err(|e| e.to_string())?;
            Ok(format!(
                "{of}: {} code with exact bounds; a launch runs {} code first\n{text}",
                tier.name(),
                first.name()
            ))
        }
        Golden::Ir(_) | Golden::Ast | Golden::Stderr => Ok(format!("{of}\n{}", listing.ir())),
    }
}

/// Compares a text with the side file, or writes the side file.
pub fn compare(test: &FileTest, golden: Golden, got: &str) -> Result<(), String> {
    let path = test.path.with_extension(golden.ending());
    if std::env::var_os("UPDATE_EXPECT").is_some_and(|v| v != "0") {
        return std::fs::write(&path, got).map_err(|e| format!("{}: {e}", path.display()));
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    if want == got { Ok(()) } else { Err(difference(&path, &want, got)) }
}

/// The first lines that differ.
fn difference(path: &Path, want: &str, got: &str) -> String {
    let mut lines = want.lines().zip(got.lines()).enumerate();
    let (line, want, got) = match lines.find(|(_, (w, g))| w != g) {
        Some((i, (w, g))) => (i + 1, w, g),
        None => {
            let n = want.lines().count().min(got.lines().count());
            let at = |t: &'static str, text: &str| if text.lines().count() > n { "more lines" } else { t };
            (n + 1, at("the end", want), at("the end", got))
        }
    };
    let path = path.display();
    format!("{path}:{line} differs; UPDATE_EXPECT=1 rewrites it\n  file: {want}\n  now:  {got}")
}
