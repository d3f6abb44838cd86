//! What the compiler makes of every entry of many files, as lines that can be compared.
//!
//! A line is a name and a hash. The names are of a file, an entry, a block shape, a bounds setting and a tier; the hash is of the Cranelift IR
//! and the tables beside it. Nothing but the text and the code generator decides a line, so a change that must not change code is shown to be
//! one by two listings.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use handloom_check::check_text;
use handloom_diag::{Severity, SourceMap};
use handloom_runtime::{Bounds, Device, LaunchConfig, Listing, Module, Stage, Tier};

use crate::engines::device;

/// A PTX file: its name in the listing, and where it is.
pub type File = (String, PathBuf);

/// What is listed.
#[derive(Clone, Debug)]
pub struct Request {
    /// Files in any order.
    pub files: Vec<File>,
    /// Threads of a block, for entries without `.reqntid`.
    pub shapes: Vec<[u32; 3]>,
    /// Only entries whose line would name this.
    pub only: String,
    /// Where to write the texts, a file for each line.
    pub folder: Option<PathBuf>,
    /// Host threads.
    pub threads: usize,
}

/// An entry for a block shape, or why a file has none.
struct Item {
    name: String,
    entry: String,
    module: Result<(Module, LaunchConfig), String>,
}

/// PTX files at or below a path. Names begin with the last part of that path.
///
/// # Errors
/// A folder cannot be read.
pub fn files(path: &Path) -> Result<Vec<File>, String> {
    let mut found = Vec::new();
    let mut open = vec![path.to_path_buf()];
    while let Some(next) = open.pop() {
        let fail = |e: std::io::Error| format!("{}: {e}", next.display());
        if next.is_dir() {
            for entry in std::fs::read_dir(&next).map_err(fail)? {
                let entry = entry.map_err(fail)?.path();
                if entry.is_dir() || entry.extension() == Some(OsStr::new("ptx")) {
                    open.push(entry);
                }
            }
        } else {
            let below = next.strip_prefix(path.parent().unwrap_or(path)).unwrap_or(&next);
            found.push((below.display().to_string(), next));
        }
    }
    Ok(found)
}

/// The lines, sorted.
///
/// # Errors
/// The host has no room for a device.
pub fn list(request: &Request) -> Result<Vec<String>, String> {
    let device = device()?;
    let items =
        in_parallel(request.threads, &request.files, |(name, path)| items(&device, name, path, &request.shapes));
    let mut items: Vec<Item> = items.into_iter().flatten().filter(|i| i.name.contains(&request.only)).collect();
    // The largest first, so that no thread ends long after the others.
    let size =
        |i: &Item| i.module.as_ref().map_or(0, |(m, _)| m.ir().funcs.iter().map(|f| f.regs.len()).sum::<usize>());
    items.sort_by_key(|i| std::cmp::Reverse(size(i)));
    let lines = in_parallel(request.threads, &items, |item| lines(item, request.folder.as_deref()));
    let mut lines: Vec<String> = lines.into_iter().flatten().collect();
    lines.sort();
    Ok(lines)
}

/// The entries of a file for each shape.
fn items(device: &Device, name: &str, path: &Path, shapes: &[[u32; 3]]) -> Vec<Item> {
    let none = |why: String| vec![Item { name: name.to_owned(), entry: String::new(), module: Err(why) }];
    let text = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) => return none(format!("cannot be read: {e}")),
    };
    let mut sources = SourceMap::new();
    let file = sources.add(name, text.as_str());
    let checked = check_text(&text, file);
    let Some(module) = checked.module else {
        let error = checked.diagnostics.iter().find(|d| d.severity == Severity::Error);
        return none(error.map_or("no module".into(), |d| format!("{}: {}", d.code.name(), d.message)));
    };
    // As `handloom compile` does: what another module must bring may be missing.
    let module = match Module::from_ir(device, handloom_lower::lower(&module), Arc::new(sources), Vec::new()) {
        Ok(module) => module,
        Err(e) => return none(e.to_string()),
    };
    let mut out: Vec<Item> = Vec::new();
    for (entry, e) in &module.ir().entries {
        for shape in shapes {
            let block = e.reqntid.unwrap_or(*shape);
            let name = format!("{name}: {entry} {}", block.map(|n| n.to_string()).join(","));
            // One with `.reqntid` has a single shape.
            if out.iter().all(|i| i.name != name) {
                let config = LaunchConfig::new([1; 3], block);
                out.push(Item { name, entry: entry.clone(), module: Ok((module.clone(), config)) });
            }
        }
    }
    out
}

/// The lines of an entry.
fn lines(item: &Item, folder: Option<&Path>) -> Vec<String> {
    let (module, config) = match &item.module {
        Ok(m) => m,
        Err(why) => return vec![format!("{}: {why}", item.name)],
    };
    let mut lines = Vec::new();
    for (word, bounds) in [("exact", Bounds::Exact), ("contained", Bounds::Contained)] {
        let config = LaunchConfig { bounds, ..config.clone() };
        let function = module.function(Some(&item.entry));
        let listing =
            function.as_ref().map_err(ToString::to_string).and_then(|f| f.listing(&config).map_err(|e| e.to_string()));
        let listing = match listing {
            Ok(listing) => listing,
            Err(why) => return vec![format!("{}: {why}", item.name)],
        };
        if bounds == Bounds::Exact {
            lines.push(line(
                &format!("{} ir, first {}", item.name, listing.first_tier().name()),
                &Ok(listing.ir()),
                folder,
            ));
        }
        for tier in Tier::ALL {
            lines.push(line(&format!("{} {word} {}", item.name, tier.name()), &code(&listing, tier), folder));
        }
    }
    lines
}

/// Cranelift IR and tables.
fn code(listing: &Listing<'_>, tier: Tier) -> Result<String, String> {
    let stage = |stage| listing.code(tier, stage).map_err(|e| e.to_string());
    Ok(format!("{}\n{}", stage(Stage::Clif)?, stage(Stage::Tables)?))
}

fn line(name: &str, text: &Result<String, String>, folder: Option<&Path>) -> String {
    match text {
        Ok(text) => {
            if let Some(folder) = folder {
                let file: String =
                    name.chars().map(|c| if c.is_alphanumeric() || ".-_".contains(c) { c } else { '_' }).collect();
                let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(folder.join(&file), text));
                if let Err(e) = written {
                    return format!("{name}: {file} cannot be written: {e}");
                }
            }
            format!("{name}: {:016x} {} lines", fnv(text.as_bytes()), text.lines().count())
        }
        // One line: what follows may be the whole function.
        Err(why) => format!("{name}: {}", why.lines().next().unwrap_or_default()),
    }
}

/// FNV-1a: the same with every release of the standard library.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// What `work` makes of each thing, in their order.
fn in_parallel<T: Sync, R: Send>(threads: usize, things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((i, thing)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, things.get(i)?)))
                {
                    let result = work(thing);
                    made.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((i, result));
                }
            });
        }
    });
    let mut made = made.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    made.sort_by_key(|(i, _)| *i);
    made.into_iter().map(|(_, r)| r).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filetest;

    fn golden(only: &str, threads: usize) -> Vec<String> {
        let files = files(&filetest::root().join("golden")).unwrap();
        list(&Request { files, shapes: vec![[64, 1, 1], [16, 16, 1]], only: only.into(), folder: None, threads })
            .unwrap()
    }

    #[test]
    fn an_entry_has_a_line_for_each_shape_bounds_and_tier() {
        let lines = golden("guarded_store", 2);
        // Two shapes: IR, then two settings of bounds in three tiers.
        assert_eq!(lines.len(), 2 * (1 + 2 * 3), "{lines:#?}");
        let names: Vec<&str> = lines.iter().filter_map(|l| l.rsplit_once(": ")).map(|(name, _)| name).collect();
        assert_eq!(names[0], "golden/guarded_store.ptx: k 16,16,1 contained careful");
        assert_eq!(names[6], "golden/guarded_store.ptx: k 16,16,1 ir, first lean");
        let hash = |i: usize| lines[i].rsplit_once(": ").map(|(_, hash)| hash);
        assert!((1..7).all(|i| hash(i) != hash(0)), "{lines:#?}");
    }

    #[test]
    fn a_listing_is_the_same_again() {
        assert_eq!(golden("loop", 1), golden("loop", 2));
    }

    #[test]
    fn what_cannot_be_compiled_says_why() {
        let file = filetest::root().join("check/nowhere.ptx");
        let request = Request {
            files: vec![("nowhere.ptx".into(), file)],
            shapes: vec![[32, 1, 1]],
            only: String::new(),
            folder: None,
            threads: 1,
        };
        let lines = list(&request).unwrap();
        assert!(lines.len() == 1 && lines[0].starts_with("nowhere.ptx: cannot be read"), "{lines:?}");
    }
}
