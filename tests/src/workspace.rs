//! The workspace as files and as packages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The folder of the root manifest.
///
/// # Panics
/// This package has no parent folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace").to_path_buf()
}

/// A file with its path below the root, with `/` between folders.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Path below the root.
    pub path: String,
    /// Its text; what is no text is left out by [`files`].
    pub text: String,
}

/// All text files of the workspace but those that git ignores, by path.
///
/// # Panics
/// A folder cannot be read.
pub fn files() -> Vec<SourceFile> {
    let root = root();
    let mut out = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the workspace can be read") {
            let path = entry.expect("an entry of a folder can be read").path();
            let name = path.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
            // In a work tree of git's, `.git` is a file that names a folder of this machine.
            if name == ".git" {
                continue;
            }
            if path.is_dir() {
                if name != "target" {
                    folders.push(path);
                }
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let below = path.strip_prefix(&root).unwrap_or(&path);
            let parts: Vec<_> = below.iter().map(|p| p.to_string_lossy()).collect();
            out.push(SourceFile { path: parts.join("/"), text });
        }
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    out
}

/// A package of `cargo metadata`.
#[derive(Clone, Debug)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// SPDX expression.
    pub license: Option<String>,
    /// Whether it is one of ours.
    pub is_member: bool,
    /// Names of what it is built with.
    pub dependencies: Vec<String>,
    /// Names of what only its tests use.
    pub dev_dependencies: Vec<String>,
}

/// All packages that the lock file names.
///
/// # Panics
/// `cargo metadata` fails.
pub fn packages() -> Vec<Package> {
    let out = cargo(&["metadata", "--format-version", "1"]);
    let data: Value = serde_json::from_slice(&out).expect("cargo prints JSON");
    let members: Vec<&str> = list(&data["workspace_members"]).iter().filter_map(Value::as_str).collect();
    list(&data["packages"]).iter().map(|p| package(p, &members)).collect()
}

/// Outside packages with the features that they are built with, for a selection of `cargo tree`.
///
/// # Panics
/// `cargo tree` fails.
pub fn features(selection: &[&str]) -> BTreeSet<String> {
    let out = cargo(&[&["tree", "--prefix", "none", "--format", "{p} [{f}]"], selection].concat());
    let text = String::from_utf8(out).expect("cargo prints text");
    let lines = text.lines().map(|l| l.trim_end_matches(" (*)").replace(" (proc-macro)", ""));
    lines.filter(|l| !l.starts_with("handloom")).collect()
}

/// What cargo prints.
fn cargo(arguments: &[&str]) -> Vec<u8> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let out = Command::new(cargo).args(arguments).arg("--locked").current_dir(root()).output();
    let out = out.expect("cargo can be started");
    assert!(out.status.success(), "cargo {}: {}", arguments.join(" "), String::from_utf8_lossy(&out.stderr));
    out.stdout
}

fn package(p: &Value, members: &[&str]) -> Package {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let of_kind = |dev: bool| {
        let all = list(&p["dependencies"]).iter().filter(|d| (d["kind"] == "dev") == dev);
        all.map(|d| text(&d["name"])).collect()
    };
    Package {
        name: text(&p["name"]),
        license: p["license"].as_str().map(str::to_owned),
        is_member: members.contains(&p["id"].as_str().unwrap_or_default()),
        dependencies: of_kind(false),
        dev_dependencies: of_kind(true),
    }
}

fn list(v: &Value) -> &[Value] {
    v.as_array().map_or(&[], Vec::as_slice)
}
