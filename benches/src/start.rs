//! Compile time over all kernels that there are, and the first use of a kernel with and without what earlier processes kept.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use handloom_diag::SourceMap;
use handloom_runtime::{CodeCache, Device, Engine, LaunchConfig, LoadError, Module, Store};
use handloom_syntax::ast::{Item, Stmt};
use handloom_syntax::parse;
use serde_json::json;

use crate::cases::kernel;
use crate::compile::texts_at;
use crate::measure::{Sample, median, time, typical};
use crate::options::Options;
use crate::table::{Section, figure};

/// The newest target whose kernels count: later ones use what does not run.
const NEWEST: u32 = 89;

/// Longest time of a quick round.
const QUICK: Duration = Duration::from_secs(3);

/// Bytes that the cache of a round may hold.
const ROOM: u64 = 512 << 20;

/// Times both.
pub fn run(options: &Options) -> Section {
    let title = "first use: from text to runnable code, one thread, with an empty and a filled cache on disk, medians";
    let mut section = Section::new(title, &["first use", "", "empty", "filled", "times"]);
    if options.engine() == Engine::Interp {
        return section;
    }
    let attention = options.corpus.join("triton/attn_bf16.sm80.ptx");
    let subjects = [
        ("saxpy", Some(kernel!("saxpy").to_owned()), [256, 1, 1]),
        ("softmax of Triton", Some(kernel!("corpus/triton/softmax_f16.sm80").to_owned()), [128, 1, 1]),
        ("attention of Triton", fs::read_to_string(attention).ok(), [128, 1, 1]),
    ];
    for (name, text, block) in subjects {
        let name = format!("first/{name}");
        match text {
            _ if !options.wants(&name) => {}
            Some(text) => {
                if let Err(why) = first(&mut section, &name, &text, block, options) {
                    section.fail(&name, &why);
                }
            }
            None => section.skip(&name, &format!("no such file at {}", options.corpus.display())),
        }
    }
    section
}

/// A folder that is removed again.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("handloom-bench-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn first(section: &mut Section, name: &str, text: &str, block: [u32; 3], options: &Options) -> Result<(), String> {
    let (mut empty, mut filled) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds() * options.repeats(3) {
        let folder = Folder::new();
        for (is_filled, samples) in [(false, &mut empty), (true, &mut filled)] {
            // What a process finds that has nothing but the folder.
            let cache = CodeCache::new(Store::at(&folder.0, ROOM));
            let device = Device::with_code(&cache).map_err(|e| e.to_string())?;
            let (made, sample) = time(|| make(&device, text, block, options));
            let counts = cache.counts();
            made?;
            if (counts.compiled == 0) != is_filled {
                return Err(format!("{counts:?}"));
            }
            samples.push(sample);
        }
    }
    let ms = |samples: &[Sample]| typical(samples, options.clock) / 1e6;
    let (cold, warm) = (ms(&empty), ms(&filled));
    section.rows.push(vec![
        name.trim_start_matches("first/").to_owned(),
        format!("{} KiB of text", text.len() >> 10),
        format!("{} ms", figure(cold)),
        format!("{} ms", figure(warm)),
        figure(cold / warm),
    ]);
    section.objects.push(json!({ "name": name, "status": "ok", "empty_ms": cold, "filled_ms": warm }));
    Ok(())
}

/// From text to runnable code of the only entry.
fn make(device: &Device, text: &str, block: [u32; 3], options: &Options) -> Result<(), String> {
    let module = Module::from_text(device, "text", text).map_err(|e| e.to_string())?;
    let function = module.function(None).map_err(|e| e.to_string())?;
    let shape = function.entry().reqntid.unwrap_or(block);
    let config = LaunchConfig { engine: options.engine(), threads: 1, ..LaunchConfig::new([1; 3], shape) };
    function.compile(&config).map(drop).map_err(|e| e.to_string())
}

/// Compiles each entry of the corpus by itself.
pub fn run_corpus(options: &Options) -> Section {
    let title = "the whole corpus: compile time of an entry, from checked module to runnable code";
    let heads = ["corpus", "entries", "median", "90 %", "worst", "sum", "which is worst"];
    let mut section = Section::new(title, &heads);
    let name = "compile/all";
    if !options.wants(name) || options.engine() == Engine::Interp {
        return section;
    }
    if let Err(why) = corpus(&mut section, name, options) {
        section.fail(name, &why);
    }
    section
}

fn corpus(section: &mut Section, name: &str, options: &Options) -> Result<(), String> {
    let begin = Instant::now();
    let device = Device::new().map_err(|e| e.to_string())?;
    let mut times: Vec<(f64, String)> = Vec::new();
    // Microseconds of a statement, of long entries.
    let mut each: Vec<(f64, String)> = Vec::new();
    let (mut refused, mut left) = (0, 0);
    for (_, path) in texts_at(&options.corpus) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        if target(&text).is_none_or(|t| t > NEWEST) {
            continue;
        }
        if options.quick && begin.elapsed() > QUICK {
            left += 1;
            continue;
        }
        let file = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let module = match Module::from_text(&device, &file, &text) {
            Ok(module) => module,
            Err(LoadError::Diagnostics(_)) => {
                refused += 1;
                continue;
            }
            Err(e) => return Err(e.to_string()),
        };
        let lengths = lengths(&text);
        for entry in module.entries() {
            let function = module.function(Some(entry)).map_err(|e| e.to_string())?;
            let shape = function.entry().reqntid.unwrap_or([256, 1, 1]);
            let config = LaunchConfig { engine: options.engine(), ..LaunchConfig::new([1; 3], shape) };
            let (made, sample) = time(|| function.compile(&config));
            made.map_err(|e| format!("{file}: {entry}: {e}"))?;
            let (ns, name) = (sample.by(options.clock), format!("{entry} of {file}"));
            if let Some(n) = lengths.iter().find(|(name, n)| name == entry && *n > LONG).map(|(_, n)| *n) {
                each.push((ns / 1e3 / n as f64, name.clone()));
            }
            times.push((ns / 1e6, name));
        }
    }
    let Some(all) = Spread::of(&mut times) else {
        section.skip(name, &format!("no PTX at {}", options.corpus.display()));
        return Ok(());
    };
    section.rows.push(all.row(format!("targets up to sm_{NEWEST}"), "ms", format!("{} ms", figure(all.sum))));
    let long = Spread::of(&mut each);
    if let Some(long) = &long {
        section.rows.push(long.row(format!("a statement, of more than {LONG}"), "us", String::new()));
    }
    section.notes.push(format!("{refused} files use what is not supported"));
    if left > 0 {
        section.notes.push(format!("a quick round: {left} larger files were left out"));
    }
    section.objects.push(json!({
        "name": name, "status": "ok", "entries": all.n, "median_ms": all.median, "ninety_ms": all.ninety,
        "worst_ms": all.worst, "worst": all.which, "sum_ms": all.sum, "refused_files": refused, "left_files": left,
        "long_entries": long.as_ref().map(|l| l.n), "median_us_a_statement": long.as_ref().map(|l| l.median),
        "ninety_us_a_statement": long.as_ref().map(|l| l.ninety), "worst_us_a_statement": long.as_ref().map(|l| l.worst),
    }));
    Ok(())
}

/// Statements from which an entry is long.
const LONG: usize = 200;

/// The entries of a text with their instructions, if it has no other functions, whose instructions would count too.
fn lengths(text: &str) -> Vec<(String, usize)> {
    fn count(body: &[Stmt<'_>]) -> usize {
        let of = |s: &Stmt<'_>| match s {
            Stmt::Inst(_) => 1,
            Stmt::Block(body, _) => count(body),
            _ => 0,
        };
        body.iter().map(of).sum()
    }
    let file = SourceMap::new().add("text", text);
    let module = parse(text, file).module;
    let functions = module.items.iter().filter_map(|i| if let Item::Function(f) = i { Some(f) } else { None });
    let bodies: Vec<_> = functions.filter_map(|f| Some((f, f.body.as_ref()?))).collect();
    if bodies.iter().any(|(f, _)| !f.is_entry) {
        return Vec::new();
    }
    bodies.iter().map(|(f, body)| (f.name.text.to_owned(), count(body))).collect()
}

/// How figures lie.
struct Spread {
    n: usize,
    median: f64,
    ninety: f64,
    worst: f64,
    which: String,
    sum: f64,
}

impl Spread {
    /// Of named figures, which are put in order; `None` of none.
    fn of(figures: &mut [(f64, String)]) -> Option<Spread> {
        figures.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (worst, which) = figures.last()?.clone();
        let ninety = figures[(figures.len() * 9 / 10).min(figures.len() - 1)].0;
        let each = || figures.iter().map(|f| f.0);
        Some(Spread { n: figures.len(), median: median(each()), ninety, worst, which, sum: each().sum() })
    }

    fn row(&self, name: String, unit: &str, sum: String) -> Vec<String> {
        let with = |x: f64| format!("{} {unit}", figure(x));
        let Spread { n, median, ninety, worst, which, .. } = self;
        vec![name, n.to_string(), with(*median), with(*ninety), with(*worst), sum, which.clone()]
    }
}

/// The number of the first target that a text names.
fn target(text: &str) -> Option<u32> {
    let line = text.lines().find(|l| l.trim_start().starts_with(".target"))?;
    let digits = line.split_once("sm_")?.1;
    digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())].parse().ok()
}
