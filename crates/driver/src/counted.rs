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

use handloom_ir::simt::Counting;
use handloom_profile::cover::Coverage;
use handloom_profile::{Launch, Part, Profile, Timelines, json_line};
use handloom_runtime::{Tally, Trace, Traced};

use crate::config::{Config, CountConfig, CountsTo};
use crate::process::{Process, process, say};

/// What is counted in the process.
pub struct Counts {
    /// Counts launches.
    pub tally: Tally,
    to: CountsTo,
    /// The file of the part, while it is written, and when it is complete.
    part: [PathBuf; 2],
    /// Launches that were told of in notes.
    noted: AtomicU64,
    /// When blocks ran, if a page shows it.
    timelines: Option<Arc<Mutex<Timelines>>>,
    /// Held while files are written: the process may end while somebody else does.
    writing: Mutex<()>,
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
        let timelines = config.is_drawn.then(Arc::default);
        Counts { tally, to, part, noted: AtomicU64::new(0), timelines, writing: Mutex::default() }
    }

    /// All that was counted until now.
    fn all(&self) -> Part {
        let timelines = self.timelines.as_ref().map(|all| all.lock().unwrap_or_else(PoisonError::into_inner).clone());
        Part { timelines: timelines.unwrap_or_default(), ..self.tally.part() }
    }

    fn write(&self, process: &Process) -> Result<(), String> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let over = self.tally.n_over();
        let part = self.all();
        match &self.to {
            CountsTo::Folder(_) => {
                let [unfinished, finished] = &self.part;
                replace(finished, unfinished, &json_line(&part)?)?;
                let new = over - self.noted.swap(over, Ordering::SeqCst);
                process.note(&format!("{{\"event\":\"counted\",\"launches\":{new}}}"));
            }
            CountsTo::Reports([profile, cover]) => {
                let Part { mut launches, texts, timelines, .. } = part;
                let version = env!("CARGO_PKG_VERSION");
                let read = |name: &str, _: Option<&str>| fs::read_to_string(name).ok();
                if let Some((path, form)) = cover {
                    let text = Coverage::of(version, &launches).report(*form, &texts, &read)?;
                    replace(path, &beside(path), &text)?;
                }
                if let Some((path, form)) = profile {
                    launches.retain(|launch| launch.runs > 0);
                    launches.iter_mut().for_each(Launch::keep_functions_that_ran);
                    timelines.draw(&mut launches);
                    let text = Profile::new(version, launches).report(*form, &texts, &read, &[])?;
                    replace(path, &beside(path), &text)?;
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

/// Where a file is written before it is complete: beside it.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    name.into()
}

/// Replaces a file by a complete one, also if the process ends meanwhile. What is no file, a pipe or a terminal, is written as it is.
fn replace(path: &Path, unfinished: &Path, text: &str) -> Result<(), String> {
    let done = match fs::metadata(path) {
        Ok(there) if !there.is_file() => fs::write(path, text),
        _ => fs::write(unfinished, text).and_then(|()| fs::rename(unfinished, path)),
    };
    done.map_err(|e| cannot(path, &e))
}

/// The process ends.
pub fn at_exit() {
    if let Ok(process) = process() {
        write(process);
    }
}

/// The trace of the process, if a file is asked for, or a page shows some of it.
pub fn trace(config: &Config, counts: Option<&Counts>) -> Option<Trace> {
    let path = config.trace_file.clone().filter(|path| {
        // The format allows a list without an end, and events may come at any time.
        fs::write(path, "[\n").inspect_err(|e| say(&cannot(path, e))).is_ok()
    });
    let timelines = counts.and_then(|counts| counts.timelines.clone());
    if path.is_none() && timelines.is_none() {
        return None;
    }
    let id = std::process::id();
    Some(Trace::since(config.trace_begin, move |traced: Traced| {
        if let Some(timelines) = &timelines {
            traced.draw(&mut timelines.lock().unwrap_or_else(PoisonError::into_inner));
        }
        if let Some(path) = &path {
            let text = traced.events(id).join(",\n") + ",\n";
            let file = fs::OpenOptions::new().append(true).open(path);
            // It was written to before; who reads it sees that it ends early.
            let _ = file.and_then(|mut file| file.write_all(text.as_bytes()));
        }
    }))
}
