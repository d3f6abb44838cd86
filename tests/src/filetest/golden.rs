//! Side files that are compared whole, and rewritten when `UPDATE_EXPECT` is set.

use std::path::Path;

use handloom_ir::simt;
use handloom_runtime::{Bounds, Device, LaunchConfig, Module, Stage};

use super::FileTest;
use super::directives::{Directives, Golden, Test};

/// The printed stages that a test asks for.
pub fn stages(test: &FileTest, d: &Directives, text: &str) -> Result<(), String> {
    let wants = |golden: Golden, kind: Test| d.goldens.contains(&golden) || d.test == kind;
    let (ir, clif) = (wants(Golden::Ir, Test::Ir), wants(Golden::Clif, Test::Clif));
    if !ir && !clif {
        return Ok(());
    }
    let device = Device::new().map_err(|e| e.to_string())?;
    let module = Module::from_text(&device, &test.file_name(), text).map_err(|e| e.to_string())?;
    if ir {
        compare(test, Golden::Ir, &simt::text::print(module.ir()))?;
    }
    if clif {
        let launch = d.launches.first().ok_or("a golden of Cranelift IR needs a `//@ launch:` line for its shape")?;
        let config = LaunchConfig { bounds: Bounds::Exact, ..LaunchConfig::new(launch.grid, launch.block) };
        let function = module.function(Some(&launch.entry)).map_err(|e| e.to_string())?;
        compare(test, Golden::Clif, &function.print(&config, Stage::Clif).map_err(|e| e.to_string())?)?;
    }
    Ok(())
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
