//! Modules of a job: each is loaded once, and one that is partly wrong or not supported still serves its other entries.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use handloom_check::link;
use handloom_diag::SourceMap;
use handloom_runtime::{Device, Module};

use crate::bug;
use crate::entries::{Fault, parts};
use crate::image::{self, Input};
use crate::jobfile::Job;
use crate::launch::{self, Loaded};
use crate::names::{self, Found};
use crate::report::{Failure, Out, Status, errors};
use crate::values::{global, variable};

/// A module of a file with those that are linked to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key<'j> {
    /// The file, as the job names it.
    pub module: &'j str,
    /// Which of the file's modules it is, counted from 0.
    part: usize,
    /// The others.
    link: &'j [String],
}

/// The modules of a job.
pub type Units<'j> = BTreeMap<Key<'j>, Unit>;

/// A module of a job.
pub struct Unit {
    /// `None` if nothing in it can be used.
    pub loaded: Option<Loaded>,
    /// Entries that cannot be used.
    faults: BTreeMap<String, Fault>,
    /// Why an entry that is not known cannot be used, if the text could not be read as a whole.
    broken: Option<Fault>,
    /// The text in that case: what it does not mention is no entry of it.
    text: String,
}

/// Loads all modules that launches name; also tells which of them each launch is of. Of a file with several modules, a launch takes the
/// one with its entry. `marked`: launches are counted.
///
/// # Errors
/// A file cannot be read, or a launch names none.
pub fn load_units<'j>(
    job: &'j Job,
    base: &Path,
    (device, marked): (&Device, bool),
    out: &mut Out,
) -> Result<(Units<'j>, Vec<Key<'j>>), Failure> {
    let (mut units, mut keys) = (BTreeMap::new(), Vec::new());
    let read = |name: &str| image::read(&base.join(name).to_string_lossy(), name);
    let mut files: HashMap<&str, Vec<Vec<Input>>> = HashMap::new();
    for (i, launch) in job.launches.iter().enumerate() {
        let number = |f: Failure| Failure { message: format!("launch {}: {}", i + 1, f.message), ..f };
        let module = launch.module.as_deref().or(job.module.as_deref());
        let module =
            module.ok_or_else(|| Failure::usage(format!("launch {} names no module, and the job has none", i + 1)))?;
        if !files.contains_key(module) {
            files.insert(module, image::groups(read(module)?));
        }
        let part = image::group_with(&files[module], launch.entry.as_deref()).map_err(number)?;
        let key = Key { module, part, link: launch.link.as_deref().unwrap_or(&job.link) };
        keys.push(key);
        if units.contains_key(&key) {
            continue;
        }
        let mut inputs = files[module].get(part).cloned().unwrap_or_default();
        for name in key.link {
            inputs.extend(read(name)?);
        }
        let unit = bug::catch(|| load_unit(inputs, (device, marked), out)).unwrap_or_else(|panic| {
            out.bug(&panic, Some(module));
            let fault = Fault { status: Status::Bug, message: panic.message };
            Ok(Unit { loaded: None, faults: BTreeMap::new(), broken: Some(fault), text: String::new() })
        })?;
        units.insert(key, unit);
    }
    Ok((units, keys))
}

/// Loads the texts that are one module.
fn load_unit(inputs: Vec<Input>, (device, marked): (&Device, bool), out: &mut Out) -> Result<Unit, Failure> {
    let mut sources = SourceMap::new();
    let texts: Vec<_> = inputs.into_iter().map(|input| input.add(&mut sources, out)).collect();
    let (mut modules, mut faults, mut broken) = (Vec::new(), BTreeMap::new(), None);
    let mut whole = true;
    for text in &texts {
        let parts = parts(text.check(&sources), sources.text(text.file), text.file);
        out.diagnostics(&parts.diagnostics, &sources);
        faults.extend(parts.faults().into_iter().map(|(name, fault)| (name.to_owned(), fault.clone())));
        broken = broken.or(fault_of(&parts.diagnostics));
        // Without its first file or with a hole in another one nothing is linked.
        whole &= parts.module.is_some();
        modules.extend(parts.module);
    }
    let joined = if whole { link(modules, true).map(Some) } else { Ok(None) };
    let joined = joined.unwrap_or_else(|wrong| {
        out.diagnostics(&wrong, &sources);
        broken = fault_of(&wrong);
        None
    });
    let text = if broken.is_some() {
        texts.iter().map(|t| sources.text(t.file)).collect::<Vec<_>>().join("\n")
    } else {
        String::new()
    };
    let loaded = joined.map(|checked| launch::load(device, &checked, Arc::new(sources), marked)).transpose()?;
    Ok(Unit { loaded, faults, broken, text })
}

fn fault_of(list: &[handloom_diag::Diagnostic]) -> Option<Fault> {
    let first = errors(list).next()?;
    Some(Fault { status: Status::of_all(list), message: first.message.clone() })
}

impl Unit {
    /// The entry that a name means, whether it can be used or not; the name itself if there is none or there are several.
    pub fn name_of<'a>(&'a self, wanted: &'a str) -> &'a str {
        let sound = self.loaded.iter().flat_map(|l| l.module.entries());
        match names::find(sound.chain(self.faults.keys().map(String::as_str)), wanted) {
            Found::One(name) => name,
            Found::None | Found::Many(_) => wanted,
        }
    }

    /// Why an entry cannot be used.
    pub fn fault(&self, entry: Option<&str>) -> Option<&Fault> {
        let known = entry.and_then(|name| self.faults.get(name));
        let only = if entry.is_none() { self.faults.values().next() } else { None };
        let missing = match &self.loaded {
            None => true,
            Some(l) => entry.is_some_and(|name| !l.module.entries().any(|e| e == name)),
        } && entry.is_none_or(|name| self.text.is_empty() || self.text.contains(name));
        known.or(only).or(self.broken.as_ref().filter(|_| missing))
    }
}

/// The modules that have a variable: `NAME`, or `MODULE:NAME` for one module of several.
pub fn with_global<'u, 'k>(units: &'u Units<'_>, key: &'k str) -> (Vec<&'u Module>, &'k str) {
    let of = |module: &str| key.strip_prefix(module)?.strip_prefix(':');
    let name = units.keys().find_map(|k| of(k.module));
    let named = units.iter().filter(|(k, _)| name.is_none() || of(k.module).is_some());
    let modules = named.filter_map(|(_, u)| Some(&u.loaded.as_ref()?.module));
    let name = name.unwrap_or(key);
    (modules.filter(|m| variable(m, name).is_some()).collect(), name)
}

/// Whether a module could not be used, so that variables may be missing that are there.
pub fn any_missing(units: &Units<'_>) -> bool {
    units.values().any(|u| u.loaded.is_none())
}

/// The module that has a variable, and the name of the variable in it.
///
/// # Errors
/// None has it, or several.
pub fn the_global<'u, 'k>(units: &'u Units<'_>, key: &'k str) -> Result<(&'u Module, &'k str), Failure> {
    match with_global(units, key) {
        (found, name) if found.len() == 1 => Ok((found[0], name)),
        (found, name) if found.is_empty() => {
            let only = units.values().filter_map(|u| u.loaded.as_ref());
            let all: Vec<&Module> = only.map(|l| &l.module).collect();
            match all.as_slice() {
                [one] => {
                    Err(global(one, name).err().unwrap_or_else(|| Failure::usage(format!("no module for `{key}`"))))
                }
                _ => Err(Failure::usage(format!("no module of the job has a `.global` or `.const` variable `{name}`"))),
            }
        }
        (_, name) => {
            let of: Vec<String> = units.keys().map(|k| format!("`{}:{name}`", k.module)).collect();
            Err(Failure::usage(format!("`{name}` is a variable of several modules: write one of {}", of.join(", "))))
        }
    }
}
