//! What launches of the process did and reached, counted, and what the host did when.
//!
//! A program may end at any time, so what was counted is written soon after each launch ([`Tally::telling`]), again and again, and once more when the process
//! ends by itself. For `handloom exec` it is a part, which is put together with those of other processes; else the reports that variables name.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use handloom_diag::SourceMap;
use handloom_diag::hash::FastHasher;
use handloom_ir::simt::{self, Counting};
use handloom_profile::cover::Coverage;
use handloom_profile::{Counter, Facts, Launch, Part, Profile, Texts, describe, json_line, lines};
use handloom_runtime::{Tally, Trace, Traced};

use crate::config::{Config, CountConfig, CountsTo};
use crate::image::Text;
use crate::process::{Process, process, say};

/// What is counted in the process.
pub struct Counts {
    /// Counts launches.
    pub tally: Tally,
    to: CountsTo,
    /// The file of the part, while it is written, and when it is complete.
    part: [PathBuf; 2],
    /// Modules that were loaded, by the name of their first text.
    modules: Mutex<Vec<(String, simt::Module, Arc<SourceMap>)>>,
    /// Launches that were told of in notes.
    noted: AtomicU64,
}

impl Counts {
    /// As the settings say.
    pub fn new(config: &CountConfig) -> Counts {
        let tally = if config.level == Counting::Coverage { Tally::coverage() } else { Tally::default() };
        let tell = || {
            if let Ok(process) = process() {
                write(process);
            }
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{}-{}", std::process::id(), since.as_nanos());
        let folder = if let CountsTo::Folder(folder) = &config.to { folder.as_path() } else { Path::new("") };
        let part = ["part", "json"].map(|ending| folder.join(format!("{name}.{ending}")));
        let (to, tally) = (config.to.clone(), tally.telling(tell));
        Counts { tally, to, part, modules: Mutex::default(), noted: AtomicU64::new(0) }
    }

    /// Notes that a module was loaded.
    pub fn loaded(&self, module: &simt::Module, sources: &Arc<SourceMap>, texts: &[Text]) {
        let Some(first) = texts.first() else { return };
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let name = name_of(first);
        if modules.iter().all(|(known, ..)| *known != name) {
            modules.push((name, module.clone(), Arc::clone(sources)));
        }
    }

    /// All of it.
    fn part(&self) -> Part {
        let mut launches = self.tally.launches();
        let mut texts = Texts::new();
        for (name, module, sources) in self.modules.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let of_module = |launch: &Launch| launch.statements.iter().any(|row| row.file == *name);
            if !launches.iter().any(of_module) {
                let none = Counter::default();
                launches.push(describe(&Facts::default(), &none, (module, sources), &|_| String::new()));
            }
            for file in module.statements.iter().map(|s| s.span.file) {
                if !texts.contains_key(sources.name(file)) {
                    texts.insert(sources.name(file).to_owned(), lines(sources.text(file)));
                }
            }
        }
        let interpreted = self.tally.interpreted().into_iter().map(|(entry, why)| (entry, why.to_owned())).collect();
        Part { launches, texts, interpreted }
    }

    fn write(&self, process: &Process) -> Result<(), String> {
        let over = self.tally.n_over();
        let part = self.part();
        match &self.to {
            CountsTo::Folder(_) => {
                let [unfinished, finished] = &self.part;
                let done = fs::write(unfinished, json_line(&part)?).and_then(|()| fs::rename(unfinished, finished));
                done.map_err(|e| cannot(finished, &e))?;
                let new = over - self.noted.swap(over, Ordering::SeqCst);
                process.note(&format!("{{\"event\":\"counted\",\"launches\":{new}}}"));
            }
            CountsTo::Reports([profile, cover]) => {
                let Part { mut launches, texts, .. } = part;
                let version = env!("CARGO_PKG_VERSION");
                let read = |name: &str, _: Option<&str>| fs::read_to_string(name).ok();
                if let Some((path, form)) = cover {
                    let text = Coverage::of(version, &launches).report(*form, &texts, &read)?;
                    fs::write(path, text).map_err(|e| cannot(path, &e))?;
                }
                if let Some((path, form)) = profile {
                    launches.retain(|launch| launch.runs > 0);
                    launches.iter_mut().for_each(Launch::keep_functions_that_ran);
                    let text = Profile::new(version, launches).report(*form, &texts, &read, &[])?;
                    fs::write(path, text).map_err(|e| cannot(path, &e))?;
                }
            }
        }
        Ok(())
    }
}

fn cannot(path: &Path, e: &std::io::Error) -> String {
    format!("`{}` cannot be written: {e}", path.display())
}

/// Writes what was counted until now, if something is counted.
pub fn write(process: &Process) {
    static TOLD: Once = Once::new();
    let Some(counts) = &process.counts else { return };
    if let Err(why) = counts.write(process) {
        TOLD.call_once(|| say(&why));
    }
}

/// The process ends.
pub fn at_exit() {
    if let Ok(process) = process() {
        write(process);
    }
}

/// What a text is called in counts: with a digest, so that texts of different processes are known to be the same or not.
pub fn name_of(text: &Text) -> String {
    use std::hash::Hasher;
    let mut digest = FastHasher::default();
    digest.write(text.ptx.as_bytes());
    let name = text.name.strip_suffix(".ptx").unwrap_or(&text.name);
    format!("{name}-{:012x}.ptx", digest.finish() >> 16)
}

/// The trace of the process, if one is asked for.
pub fn trace(config: &Config) -> Option<Trace> {
    let path = config.trace_file.clone()?;
    // The format allows a list without an end, and events may come at any time.
    if let Err(e) = fs::write(&path, "[\n") {
        say(&cannot(&path, &e));
        return None;
    }
    let id = std::process::id();
    Some(Trace::new(move |traced: Traced| {
        let text = traced.events(id).join(",\n") + ",\n";
        let file = fs::OpenOptions::new().append(true).open(&path);
        // It was written to before; who reads it sees that it ends early.
        let _ = file.and_then(|mut file| file.write_all(text.as_bytes()));
    }))
}
