//! From text to runnable code, and how fast texts are read and checked.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use handloom_diag::{FileId, SourceMap, render_json};
use handloom_runtime::{Arg, Bounds, Device, DeviceBuffer, LaunchConfig, LoadError, Module, PreparedLaunch, front};
use serde_json::json;

use crate::cases::kernel;
use crate::measure::{Sample, median, time, typical};
use crate::options::Options;
use crate::table::{Good, Section, figure, floor_cell, verdict};

/// A kernel whose way from text to code is timed.
#[derive(Clone, Copy)]
struct Subject {
    name: &'static str,
    ptx: &'static str,
    entry: &'static str,
    block: [u32; 3],
    /// Longest time, in milliseconds.
    floor_ms: f64,
    /// Leading arguments of a run of one block in which lanes differ, if the kernel has such; all others are buffers.
    words: &'static [u32],
    buffers: usize,
}

/// A kernel with 512 ops on matrices.
static MATRIX_OPS: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry matrix_ops(.param .u64 sums)\n{\n\
         .reg .b64 %at;\n.reg .b32 %t, %r<22>;\n.reg .f32 %f<16>;\n\
         ld.param.u64 %at, [sums];\nmov.u32 %t, %tid.x;\nmad.wide.u32 %at, %t, 16, %at;\n",
    );
    for i in 0..22 {
        text += &format!("ld.global.b32 %r{i}, [%at+{}];\n", 4 * i);
    }
    for i in 0..16 {
        text += &format!("mov.b32 %f{i}, %r{i};\n");
    }
    for i in 0..512 {
        let c: Vec<String> = (0..4).map(|j| format!("%f{}", 4 * (i % 4) + j)).collect();
        let (c, b) = (c.join(", "), 14 + 2 * (i / 4 % 4));
        text += &format!(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{c}}}, {{%r10, %r11, %r12, %r13}}, {{%r{b}, %r{}}}, {{{c}}};\n",
            b + 1
        );
    }
    for i in 0..16 {
        text += &format!("st.global.f32 [%at+{}], %f{i};\n", 4 * i);
    }
    text + "ret;\n}\n"
});

fn subjects() -> impl Iterator<Item = Subject> {
    let matrix_ops = Subject {
        name: "512 matrix ops",
        ptx: &MATRIX_OPS,
        entry: "matrix_ops",
        block: [32, 1, 1],
        floor_ms: 30.0,
        words: &[],
        buffers: 1,
    };
    SUBJECTS.iter().copied().chain([matrix_ops])
}

const SUBJECTS: &[Subject] = &[
    Subject {
        name: "empty",
        ptx: kernel!("empty"),
        entry: "empty",
        block: [32, 1, 1],
        floor_ms: 0.5,
        words: &[],
        buffers: 0,
    },
    // 250 of 256 threads: the last warp differs.
    Subject {
        name: "saxpy",
        ptx: kernel!("saxpy"),
        entry: "saxpy",
        block: [256, 1, 1],
        floor_ms: 1.0,
        words: &[250, 0],
        buffers: 2,
    },
    Subject {
        name: "reduce",
        ptx: kernel!("reduce"),
        entry: "reduce256",
        block: [256, 1, 1],
        floor_ms: 2.0,
        words: &[],
        buffers: 2,
    },
    Subject {
        name: "sgemm16",
        ptx: kernel!("sgemm"),
        entry: "sgemm16",
        block: [16, 16, 1],
        floor_ms: 4.0,
        words: &[16],
        buffers: 3,
    },
];

/// Texts of our own for the speed of the front end.
const TEXTS: &[&str] = &[
    kernel!("barrier_cost"),
    kernel!("hash"),
    kernel!("histogram"),
    kernel!("lookback"),
    kernel!("mandelbrot"),
    kernel!("matvec"),
    kernel!("nbody"),
    kernel!("reduce"),
    kernel!("scan"),
    kernel!("sgemm"),
    kernel!("sgemm_guarded"),
    kernel!("sha256"),
    kernel!("softmax"),
    kernel!("spin_lock"),
    kernel!("transpose"),
];

/// Speed at which text should be read and checked, in MB/s.
const FRONT_TARGET: f64 = 50.0;

/// Runs for each round of `--rounds`: compiling takes little time.
const REPEATS: u32 = 3;

/// Times compilation of single kernels and of the largest file.
pub fn run(options: &Options) -> Section {
    let title = "compilation: from text to runnable code of one entry, one thread, medians";
    let heads =
        ["compile", "", "text to code", "floor", "front end", "the rest", "code", "first ever", "first run adds"];
    let mut section = Section::new(title, &heads);
    for subject in &subjects().collect::<Vec<Subject>>() {
        let name = format!("compile/{}", subject.name);
        if options.wants(&name)
            && let Err(why) = one(&mut section, subject, options)
        {
            section.fail(&name, &why);
        }
    }
    if options.wants("compile/corpus") {
        match texts_at(&options.corpus).pop().map(|(_, path)| path) {
            None => section.skip("compile/corpus", &format!("no PTX at {}", options.corpus.display())),
            Some(file) => {
                if let Err(why) = whole_file(&mut section, &file, options) {
                    section.fail("compile/corpus", &why);
                }
            }
        }
    }
    if !section.rows.is_empty() {
        section.notes.push("first ever: the first time in this process".into());
        section.notes.push(
            "first run adds: first run less second, of one block whose lanes differ where the kernel has such".into(),
        );
        section.notes.push("(code that is made on first divergence included)".into());
    }
    section
}

/// Times of one way from text to code.
struct Made {
    total: Sample,
    front: Sample,
    code_bytes: usize,
    first_run_adds_ns: f64,
}

fn one(section: &mut Section, subject: &Subject, options: &Options) -> Result<(), String> {
    let first = make(subject, options)?;
    let more: Result<Vec<Made>, String> =
        (0..options.rounds() * options.repeats(REPEATS)).map(|_| make(subject, options)).collect();
    let more = more?;
    let totals: Vec<Sample> = more.iter().map(|m| m.total).collect();
    let fronts: Vec<Sample> = more.iter().map(|m| m.front).collect();
    let ms = |ns: f64| ns / 1e6;
    let total = ms(typical(&totals, options.clock));
    let front = ms(typical(&fronts, options.clock));
    let adds = ms(median(more.iter().map(|m| m.first_run_adds_ns)));
    section.rows.push(vec![
        subject.name.to_owned(),
        String::new(),
        format!("{} ms", figure(total)),
        floor_cell(total, Some(subject.floor_ms), Good::Below, options.judges()),
        format!("{} ms", figure(front)),
        format!("{} ms", figure(total - front)),
        format!("{} B", first.code_bytes),
        format!("{} ms", figure(ms(first.total.by(options.clock)))),
        format!("{} ms", figure(adds)),
    ]);
    section.objects.push(json!({
        "name": format!("compile/{}", subject.name),
        "status": "ok",
        "total_ms": total,
        "front_ms": front,
        "first_ms": ms(first.total.by(options.clock)),
        "first_run_adds_ms": adds,
        "code_bytes": first.code_bytes,
        "floor_ms": subject.floor_ms,
        "verdict": options.judges().then(|| verdict(total, subject.floor_ms, Good::Below)),
    }));
    Ok(())
}

/// Goes the way once, with nothing kept from before, and runs the code.
fn make(subject: &Subject, options: &Options) -> Result<Made, String> {
    // Modules of one device share what was compiled.
    let device = &Device::new().map_err(|e| e.to_string())?;
    let mut config = LaunchConfig::new([1, 1, 1], subject.block);
    config.bounds = Bounds::Contained;
    config.threads = 1;
    config.engine = options.engine();
    let (made, total) = time(|| {
        let module = Module::from_text(device, subject.name, subject.ptx).map_err(|e| e.to_string())?;
        let function = module.function(Some(subject.entry)).map_err(|e| e.to_string())?;
        let compiled = function.compile(&config).map_err(|e| e.to_string())?;
        Ok::<_, String>((function, compiled.code_bytes))
    });
    let (function, code_bytes) = made?;
    let (_, front) = time(|| check(subject.ptx));

    let buffers: Result<Vec<DeviceBuffer>, _> = (0..subject.buffers).map(|_| device.zeroed(4096)).collect();
    let buffers = buffers.map_err(|e| e.to_string())?;
    let args: Vec<Arg<'_>> = subject.words.iter().map(|w| Arg::from(*w)).chain(buffers.iter().map(Arg::from)).collect();
    let mut launch = PreparedLaunch::new(&function, &config, &args).map_err(|e| e.to_string())?;
    let mut run = || {
        let (ran, sample) = time(|| launch.run());
        ran.map(|_| sample.by(options.clock)).map_err(|e| e.to_string())
    };
    let first_run_adds_ns = run()? - run()?;
    Ok(Made { total, front, code_bytes, first_run_adds_ns })
}

/// Whether the front end takes a text.
fn check(text: &str) -> bool {
    let mut sources = SourceMap::new();
    let file = sources.add("text", text);
    front(&sources, &[file]).is_ok()
}

/// All entries of a file, on all cores.
fn whole_file(section: &mut Section, file: &Path, options: &Options) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let name = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let (mut walls, mut fronts) = (Vec::new(), Vec::new());
    let (mut entries, mut code_bytes) = (0, 0);
    for _ in 0..options.rounds().min(5) {
        let device = Device::new().map_err(|e| e.to_string())?;
        let (module, front) = time(|| Module::from_text(&device, &name, &text));
        let module = match module {
            Ok(module) => module,
            Err(e @ LoadError::Diagnostics(_)) => {
                section.skip("compile/corpus", &format!("{name} is refused: {e}"));
                return Ok(());
            }
            Err(e) => return Err(e.to_string()),
        };
        let config = |entry: &str| {
            let shape = module.function(Some(entry)).ok().and_then(|f| f.entry().reqntid).unwrap_or([256, 1, 1]);
            LaunchConfig { engine: options.engine(), ..LaunchConfig::new([1, 1, 1], shape) }
        };
        let configs: Vec<(String, LaunchConfig)> = module.entries().map(|e| (e.to_owned(), config(e))).collect();
        let list: Vec<(&str, &LaunchConfig)> = configs.iter().map(|(n, c)| (n.as_str(), c)).collect();
        let (results, rest) = time(|| module.compile_all(&list));
        code_bytes = 0;
        for result in results {
            code_bytes += result.map_err(|e| format!("{name}: {e}"))?.code_bytes;
        }
        entries = list.len();
        fronts.push(front.wall_ns);
        walls.push(front.wall_ns + rest.wall_ns);
    }
    let (total, front) = (median(walls) / 1e6, median(fronts) / 1e6);
    section.rows.push(vec![
        name.clone(),
        format!("{entries} entries, all cores"),
        format!("{} ms", figure(total)),
        String::new(),
        format!("{} ms", figure(front)),
        format!("{} ms", figure(total - front)),
        format!("{code_bytes} B"),
    ]);
    section.objects.push(json!({
        "name": "compile/corpus",
        "status": "ok",
        "file": name,
        "entries": entries,
        "total_ms": total,
        "front_ms": front,
        "code_bytes": code_bytes,
    }));
    Ok(())
}

/// The PTX files at a path, whether it is one or a folder of them, with their sizes, the smallest first.
pub fn texts_at(path: &Path) -> Vec<(u64, PathBuf)> {
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        if folder.is_file() {
            found.push((0, folder));
            continue;
        }
        for item in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = item.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "ptx") {
                found.push((item.metadata().map(|m| m.len()).unwrap_or(0), path));
            }
        }
    }
    // Of several of one size always in the same order.
    found.sort();
    found
}

/// Times parsing and checking.
pub fn run_front(options: &Options) -> Section {
    let heads = ["front end", "", "parse", "parse and check", "target"];
    let mut section = Section::new("front end: speed on one thread, medians", &heads);
    if options.wants("front/own") {
        front_speed(&mut section, "front/own", "tests/kernels", TEXTS, None, options);
    }
    if options.wants("front/corpus") {
        let read = |path: PathBuf| std::fs::read_to_string(path).ok().filter(|text| check(text));
        let texts: Vec<String> = texts_at(&options.corpus).into_iter().filter_map(|(_, path)| read(path)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        if texts.is_empty() {
            section.skip("front/corpus", &format!("no PTX at {}", options.corpus.display()));
        } else {
            let label = format!("{} corpus files", texts.len());
            front_speed(&mut section, "front/corpus", &label, &texts, Some(FRONT_TARGET), options);
        }
    }
    if options.wants("front/wrong") {
        wrong_lines(&mut section, options);
    }
    section
}

/// Wrong statements in one module, and in how many milliseconds they should be reported.
const WRONG_LINES: usize = 20_000;
const WRONG_TARGET_MS: f64 = 2000.0;

/// Times the report about a module in which each line is wrong.
fn wrong_lines(section: &mut Section, options: &Options) {
    let mut text = String::from(".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .b32 %r<9>;\n");
    for i in 0..WRONG_LINES {
        // A name is told once.
        let unknown = format!("add.u32 %r0, %r1, %nothing{i};\n");
        let line = ["add.f32 %r0, %r1, 1;\n", "frobnicate.u32 %r0;\n", "mul.u32 %r0, %r1, %r2;\n", &unknown][i % 4];
        text.push_str(line);
    }
    text.push_str("ret;\n}\n");
    let mut samples = Vec::new();
    let mut n = 0;
    for _ in 0..options.rounds() {
        let (told, sample) = time(|| {
            let mut sources = SourceMap::new();
            let file = sources.add("text", text.as_str());
            let told = front(&sources, &[file]).err().unwrap_or_default();
            told.iter().filter(|d| !render_json(d, &sources).is_empty()).count()
        });
        n = told;
        samples.push(sample);
    }
    if n < WRONG_LINES {
        section.fail("front/wrong", &format!("{n} of {WRONG_LINES} wrong lines are told"));
        return;
    }
    let ms = typical(&samples, options.clock) / 1e6;
    section.rows.push(vec![
        format!("{WRONG_LINES} wrong lines"),
        format!("{} KiB", text.len() >> 10),
        String::new(),
        format!("{} ms", figure(ms)),
        floor_cell(ms, Some(WRONG_TARGET_MS), Good::Below, options.judges()),
    ]);
    section.objects.push(json!({
        "name": "front/wrong",
        "status": "ok",
        "lines": WRONG_LINES,
        "ms": ms,
        "target_ms": WRONG_TARGET_MS,
        "verdict": options.judges().then(|| verdict(ms, WRONG_TARGET_MS, Good::Below)),
    }));
}

fn front_speed(section: &mut Section, name: &str, label: &str, texts: &[&str], target: Option<f64>, options: &Options) {
    let bytes: usize = texts.iter().map(|t| t.len()).sum();
    let refused = texts.iter().filter(|t| !check(t)).count();
    if refused > 0 {
        section.fail(name, &format!("{refused} of {} texts are refused", texts.len()));
        return;
    }
    let (mut parses, mut checks) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds() * options.repeats(REPEATS) {
        parses.push(time(|| texts.iter().filter(|t| handloom_syntax::parse(t, FileId(0)).errors.is_empty()).count()).1);
        checks.push(time(|| texts.iter().filter(|t| check(t)).count()).1);
    }
    // Bytes over nanoseconds are thousands of MB/s.
    let speed = |samples: &[Sample]| 1e3 * bytes as f64 / typical(samples, options.clock);
    let (parse, both) = (speed(&parses), speed(&checks));
    section.rows.push(vec![
        label.to_owned(),
        format!("{} KiB", bytes >> 10),
        format!("{} MB/s", figure(parse)),
        format!("{} MB/s", figure(both)),
        floor_cell(both, target, Good::Above, options.judges()),
    ]);
    section.objects.push(json!({
        "name": name,
        "status": "ok",
        "bytes": bytes,
        "parse_mb_s": parse,
        "parse_and_check_mb_s": both,
        "target_mb_s": target,
        "verdict": target.filter(|_| options.judges()).map(|t| verdict(both, t, Good::Above)),
    }));
}
