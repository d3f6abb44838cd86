//! `libcuda.so.1` and the libraries of the runtime API as programs see them: the names that they export with their versions, and C programs that use them.
//!
//! The libraries are built by `ci/libraries` with the profile of the tests, once for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use handloom_tests::programs;
use handloom_tests::workspace::root;
use object::read::elf::{ElfFile64, FileHeader, Sym};
use object::{Endianness, elf};

/// Seconds that the threads work; `HANDLOOM_STRESS=SECONDS` lets them work longer.
const STRESS: u32 = 3;

/// How many functions the documentation of the driver API has, and the headers of the runtime API.
const DOCUMENTED: (usize, usize) = (488, 365);

/// The folder of the libraries.
fn libraries() -> &'static Path {
    programs::libraries(env!("CARGO_TARGET_TMPDIR"))
}

/// Rows of the table: symbol, twin, and whether it works.
fn table() -> Vec<(String, Option<String>, bool)> {
    let text = std::fs::read_to_string(root().join("crates/libcuda/api/driver.txt")).expect("the table can be read");
    let rows = text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let twin = (words[2] != "-").then(|| format!("{}_{}", words[0], words[2]));
        (words[0].to_owned(), twin, words[3] != "-")
    });
    rows.collect()
}

/// Builds a C program and runs it.
fn program(name: &str, args: &[&str], variables: &[(&str, &str)]) -> Output {
    program_on("libcuda.so.1", name, &[], args, variables)
}

/// Builds a C program that uses a library, with options for the compiler, and runs it.
fn program_on(library: &str, name: &str, options: &[&str], args: &[&str], variables: &[(&str, &str)]) -> Output {
    run_source(library, (name, &root().join("tests/driver").join(format!("{name}.c"))), options, args, variables)
}

/// The same of a file.
fn run_source(
    library: &str,
    (name, source): (&str, &Path),
    options: &[&str],
    args: &[&str],
    variables: &[(&str, &str)],
) -> Output {
    let folder = libraries();
    let built = programs::built(folder, library, (name, source), options);
    let mut run = Command::new("timeout");
    run.args(["-s", "KILL", "120"]).arg(&built).args(args).env("LD_LIBRARY_PATH", folder).env("HANDLOOM_CACHE", "off");
    run.envs(variables.iter().copied()).output().expect("the program can be started")
}

/// Runs a C program, which says `ok`.
fn passes(name: &str, args: &[&str], variables: &[(&str, &str)]) -> String {
    let output = program(name, args, variables);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.ends_with("ok\n"), "{name} {args:?}: {}\n{out}{err}", output.status);
    err.into_owned()
}

#[test]
fn code_is_kept_for_later_programs() {
    // Code is kept for a build, which is the file that the library was loaded from. Processes of other tests may link that anew between the two programs, or do the same as this one:
    // both have a copy, and a folder, of their own.
    let own = libraries().join(format!("kept-{}", std::process::id()));
    let kept = own.join("code");
    let _ = std::fs::remove_dir_all(&own);
    std::fs::create_dir_all(&own).expect("a folder can be made");
    std::fs::copy(libraries().join("libcuda.so.1"), own.join("libcuda.so.1")).expect("the library can be copied");
    // What is written again is another file.
    let files = || -> BTreeSet<(PathBuf, u64)> {
        let parts = std::fs::read_dir(&kept).into_iter().flatten().flatten();
        let all = parts.flat_map(|part| std::fs::read_dir(part.path()).into_iter().flatten().flatten());
        all.map(|file| (file.path(), file.metadata().map_or(0, |m| m.ino()))).collect()
    };
    let [of_code, of_library] = [&kept, &own].map(|f| f.to_str().expect("the folder has a name of UTF-8"));
    let variables = [("HANDLOOM_CACHE", of_code), ("LD_LIBRARY_PATH", of_library)];
    passes("launch", &[], &variables);
    let made = files();
    assert!(!made.is_empty());
    passes("launch", &[], &variables);
    assert_eq!(files(), made, "the second program compiled nothing");
    std::fs::remove_dir_all(&own).expect("the folder can be removed");
}

#[test]
fn launches_modules_and_names() {
    let told = passes("launch", &[], &[]);
    assert!(told.contains("there is no opcode `frob`") && told.contains("--cc 9.0"), "{told}");
}

#[test]
fn streams_events_and_graphs() {
    passes("streams", &[], &[]);
    passes("streams", &[], &[("HANDLOOM_POISON", "1")]);
}

#[test]
fn text_of_kernels_while_the_host_waits() {
    passes("printing", &[], &[]);
}

#[test]
fn bad_input_and_bad_kernels() {
    let told = passes("errors", &[], &[]);
    let trap = "trap: out of bounds: write of 4 bytes at 0x40, through a null pointer";
    assert_eq!(told.matches(trap).count(), 2, "{told}");
}

#[test]
fn programs_of_the_runtime_api() {
    for (library, version) in [("libcudart.so.13", "-DVERSION=13050"), ("libcudart.so.12", "-DVERSION=12090")] {
        let output = program_on(library, "runtime", &[version], &[], &[("HANDLOOM_POISON", "1")]);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out == "ok\n", "{library}: {}\n{out}{err}", output.status);
        let refused = "the kernel `refused` cannot run here:";
        assert!(err.contains(refused) && err.contains("indexed by a register"), "{err}");
        assert!(!err.contains("no version information"), "{err}");
    }
}

/// An example in C of a page of `handloom explain`.
struct Explained {
    /// Its name, and whether it is the wrong one.
    of: (String, bool),
    /// It comes before any other call.
    is_bare: bool,
    /// Options of `exec`, as variables.
    variables: Vec<(String, String)>,
    body: String,
}

/// Examples in C, from the pages.
fn explained() -> Vec<Explained> {
    let pages = std::fs::read_dir(root().join("crates/cli/explain")).expect("the pages are there").flatten();
    let mut all = Vec::new();
    for page in pages.map(|entry| entry.path()) {
        let name = page.file_stem().expect("a page has a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&page).expect("a page can be read");
        for block in text.split("\n```c ").skip(1) {
            let (head, rest) = block.split_once('\n').expect("a block has lines");
            let (words, body) = (head.split(' '), rest.split("\n```").next().unwrap_or_default());
            let options: Vec<&str> = words.clone().skip(1).filter(|word| *word != "bare").collect();
            let variable = |pair: &[&str]| {
                (format!("HANDLOOM_{}", pair[0].trim_start_matches("--").to_uppercase()), pair[1].to_owned())
            };
            all.push(Explained {
                of: (name.clone(), head.starts_with("wrong")),
                is_bare: words.clone().any(|word| word == "bare"),
                variables: options.chunks(2).map(variable).collect(),
                body: body.to_owned(),
            });
        }
    }
    all.sort_by(|a, b| a.of.cmp(&b.of));
    all
}

/// A program of all of them: its first argument is the number of one, a second one asks for a context before.
fn explained_program(all: &[Explained]) -> String {
    let mut text = String::from("#include \"explained.h\"\n");
    let mut list = String::new();
    for (i, Explained { of: (name, _), body, .. }) in all.iter().enumerate() {
        text += &format!("// {name}\nstatic CUresult example{i}(CUdevice dev, CUcontext ctx) {{\n{body}\n}}\n");
        list += &format!("example{i}, ");
    }
    let main = r#"int main(int n, char **args) {
    CUdevice dev = 0;
    CUcontext ctx = 0;
    const char *name;
    if (n > 2) {
        OK(cuInit(0));
        OK(cuDeviceGet(&dev, 0));
        OK(cuCtxCreate(&ctx, 0, dev));
    }
    CUresult got = all[atoi(args[1])](dev, ctx);
    OK(cuGetErrorName(got, &name));
    puts(name);
    return 0;
}
"#;
    format!("{text}static CUresult (*const all[])(CUdevice, CUcontext) = {{{list}}};\n{main}")
}

/// The wrong one returns the error of its page, the right one none.
#[test]
fn explained_errors() {
    let all = explained();
    assert!(all.len() > 70 && all.iter().filter(|e| e.of.1).count() * 2 == all.len(), "{}", all.len());
    let source = libraries().join(format!("explained-{}.c", std::process::id()));
    std::fs::write(&source, explained_program(&all)).expect("a program can be written");
    let include = format!("-I{}", root().join("tests/driver").display());
    // Examples say what matters, and no more.
    let options = [include.as_str(), "-Wno-unused", "-Wno-maybe-uninitialized"];
    let mut wrong = Vec::new();
    for (i, example) in all.iter().enumerate() {
        let number = i.to_string();
        let args = if example.is_bare { vec![number.as_str()] } else { vec![number.as_str(), "ready"] };
        let variables: Vec<(&str, &str)> = example.variables.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let output = run_source("libcuda.so.1", ("explained", &source), &options, &args, &variables);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let wanted = if example.of.1 { example.of.0.as_str() } else { "CUDA_SUCCESS" };
        if !output.status.success() || out.trim_end() != wanted {
            wrong.push(format!("{:?}: {out}{err}", example.of));
        }
    }
    std::fs::remove_file(&source).expect("the program can be removed");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names of the runtime API, which the table has for those who explain errors, are those that its library has.
#[test]
fn errors_have_the_names_of_the_runtime_library() {
    let text = std::fs::read_to_string(root().join("crates/libcudart/src/error.rs")).expect("the source is there");
    let rows = text.lines().filter_map(|line| {
        let (name, number) = line.trim().split_once(" = cudaError")?.1.split_once(' ')?;
        Some((number.parse::<u32>().ok()?, format!("cudaError{name}")))
    });
    let known: BTreeMap<u32, String> = rows.collect();
    assert!(known.len() > 100, "{}", known.len());
    for error in handloom_diag::DriverError::ALL {
        assert_eq!(error.runtime_name(), known.get(&error.0).map(String::as_str), "{error:?}");
    }
}

/// Also that work which waits in vain ends: a kernel, a stream, and a kernel that takes longer than it may.
#[test]
fn nodes_memory_of_graphs_and_waits() {
    let told = passes("nodes", &[], &[("HANDLOOM_QUIET", "0.3"), ("HANDLOOM_POISON", "1")]);
    let who = "32 threads from (32,0,0) on wait for memory";
    assert!(told.contains("trap: deadlock") && told.matches(who).count() == 2, "{told}");
    let told = passes("nodes", &[], &[("HANDLOOM_QUIET", "0.3"), ("WAIT_BY", "stream")]);
    assert!(told.contains("nothing will ever change what the stream waits for"), "{told}");
    for by in ["query", "event"] {
        passes("nodes", &[], &[("HANDLOOM_QUIET", "0.2"), ("WAIT_BY", by)]);
    }
    let told = passes("nodes", &[], &[("HANDLOOM_QUIET", "0"), ("HANDLOOM_TIMEOUT", "1.5")]);
    assert!(told.contains("trap: timeout"), "{told}");
}

#[test]
fn tensor_maps() {
    passes("tensor_maps", &[], &[("HANDLOOM_CC", "9.0")]);
}

#[test]
fn arrays_textures_and_surfaces() {
    // Of a small memory, what is free does not depend on the host.
    passes("textures", &[], &[("HANDLOOM_POISON", "1"), ("HANDLOOM_MEMORY", "64M")]);
}

#[test]
fn references_of_modules() {
    passes("references", &[], &[("HANDLOOM_POISON", "1")]);
}

#[test]
fn nodes_of_any_kind_and_graphs_in_graphs() {
    let told = passes("graphs", &[], &[("HANDLOOM_TRACE_API", "1")]);
    assert!(told.contains("a node of a graph with a semaphore is not supported"), "{told}");
}

/// Graphs that run as a condition says, which kernels set.
#[test]
fn conditions_of_graphs() {
    let told = passes("conditions", &[], &[("HANDLOOM_POISON", "1"), ("HANDLOOM_MEMORY", "64M")]);
    assert!(told.contains("through a null pointer"), "{told}");
}

#[test]
fn batches_of_copies_and_advice() {
    passes("many", &[], &[("HANDLOOM_POISON", "1")]);
}

/// `dlclose` at any time, and exit handlers: the program ends as it means to.
#[test]
fn a_library_that_is_closed() {
    for library in ["libcuda.so.1", "libcudart.so.13"] {
        for how in ["unused", "again", "running", "handler", "thread", "early", "late"] {
            // Linked to nothing: the program opens the library by itself. Another library finds the driver beside it.
            let opened = libraries().join(library);
            let opened = opened.to_str().expect("the folder has a name of UTF-8");
            if library != "libcuda.so.1" && how != "unused" {
                continue;
            }
            let variables = [("HANDLOOM_QUIET", "0")];
            let output = program_on("libcuda.so.1", "unload", &["-Wl,--as-needed"], &[opened, how], &variables);
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success() && out == "ok\n", "{library} {how}: {}\n{out}{err}", output.status);
        }
    }
}

/// A program ends however much is under way, and whoever ends it.
#[test]
fn a_program_that_ends_with_work_under_way() {
    // A signal comes at any time.
    let ways = [
        ["function", "function handler", "callback", "quick", "lasting"],
        ["kernel", "kernel handler", "thread", "waits", "signal"],
        ["signal"; 5],
    ];
    for how in ways.into_iter().flatten() {
        let output = program_on(
            "libcudart.so.13",
            "ending",
            &["-Wl,--no-as-needed", "-l:libcuda.so.1"],
            &[how],
            &[("HANDLOOM_QUIET", "0")],
        );
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*err), (Some(7), ""), "{how}");
    }
}

/// From destructors of threads and exit handlers.
#[test]
fn calls_that_come_late() {
    let output = program_on("libcudart.so.13", "late", &["-Wl,--no-as-needed", "-l:libcuda.so.1"], &[], &[]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out == "ok\n" && err.is_empty(), "{}\n{out}{err}", output.status);
}

#[test]
fn several_devices() {
    let told = passes("devices", &[], &[("HANDLOOM_DEVICES", "3")]);
    assert!(told.contains("in the memory of another device") && told.contains("past the end of memory"), "{told}");
    passes("devices", &[], &[("HANDLOOM_DEVICES", "5"), ("CUDA_VISIBLE_DEVICES", "4,0,2")]);
    let output = program_on("libcudart.so.13", "runtime_devices", &[], &[], &[("HANDLOOM_DEVICES", "2")]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out == "ok\n", "{}\n{out}{err}", output.status);
}

/// Also between processes: the program starts itself once more.
#[test]
fn virtual_memory_and_memory_between_processes() {
    let told = passes("memory", &[], &[("HANDLOOM_MEMORY", "1G")]);
    assert!(told.contains("mapped for reading"), "{told}");
    passes("memory", &[], &[("HANDLOOM_POISON", "1"), ("HANDLOOM_MEMORY", "1G")]);
}

#[test]
fn events_and_pools_between_processes() {
    passes("processes", &[], &[("HANDLOOM_POISON", "1")]);
}

/// What the program registered, and all that it has where that is asked for.
#[test]
fn memory_of_the_process() {
    for (generator, bounds) in
        [("wide", "exact"), ("wide", "contained"), ("cranelift", "exact"), ("cranelift", "contained")]
    {
        let variables = [("HANDLOOM_BACKEND", generator), ("HANDLOOM_BOUNDS", bounds), ("HANDLOOM_POISON", "1")];
        passes("host", &[], &variables);
        let told = passes("host", &["open"], &[&variables[..], &[("HANDLOOM_OPEN_ADDRESSES", "1")]].concat());
        assert!(told.contains("in memory of the process that can only be read"), "{told}");
    }
}

#[test]
fn calls_of_older_programs() {
    passes("older", &[], &[]);
    passes("older", &[], &[("HANDLOOM_DEVICES", "3")]);
}

/// `HANDLOOM_CHECK`, with launches of both interfaces: told once on standard error, or noted for who runs the program.
#[test]
fn checked_launches() {
    let notes = libraries().join("notes");
    let file = notes.to_str().expect("the folder has a name of UTF-8");
    let run = |library: &str, mode: &str, more: &[(&str, &str)]| {
        let options: &[&str] = if library == "libcuda.so.1" { &[] } else { &["-DRUNTIME"] };
        let variables = [&[("HANDLOOM_CHECK", "memory,race,sync"), ("HANDLOOM_SEED", "3")], more].concat();
        let output = program_on(library, "checks", options, &[mode], &variables);
        let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert!(output.status.success() && !out.is_empty(), "{library} {mode}: {}\n{out}{err}", output.status);
        err
    };
    for library in ["libcuda.so.1", "libcudart.so.13"] {
        let told = run(library, "racy", &[]);
        let places = ["st.global.u32", "ld.global.u32", "argument 1 (`out`), 512 bytes", "[unordered]"];
        assert!(places.iter().all(|text| told.contains(text)) && told.matches("race: ").count() == 1, "{told}");
        assert_eq!(run(library, "clean", &[]), "");
        let _ = std::fs::remove_file(&notes);
        assert_eq!(run(library, "racy clean left", &[("HANDLOOM_FINDINGS", file)]), "");
        let noted = std::fs::read_to_string(&notes).expect("there are notes");
        let count = |event: &str| noted.matches(&format!("{{\"event\":\"{event}\"")).count();
        assert_eq!([count("finding"), count("again"), count("checked"), count("given")], [1, 2, 12, 13], "{noted}");
        assert!(noted.contains("\"pairs\":64") && noted.contains("\"seed\":3,\"unchecked\":null"), "{noted}");
    }
}

/// Memory that a program allocates begins without contents: told where a kernel reads it before somebody has written it, and only there.
#[test]
fn memory_that_nobody_wrote() {
    let run = |mode: &str, checks: &str| passes("blank", &[mode], &[("HANDLOOM_CHECK", checks)]);
    for checks in ["memory,init,race,sync", "init"] {
        assert_eq!(run("written", checks), "", "{checks}");
        for (mode, first, what, class) in [
            ("copy", "ld.global.u32", "argument 1 (`a`)+0", "[result]"),
            ("count", "red.relaxed.gpu.global.add.u32", "argument 1 (`a`)+0", "[result]"),
            ("odd", "ld.global.u32", "argument 1 (`a`)+0", "[result]"),
            ("find", "ld.global.u32", "argument 1 (`a`)+252", "[branch]"),
            ("copied", "ld.global.u32", "argument 1 (`a`)+64", "[result]"),
            ("freed", "ld.global.u32", "argument 1 (`a`)+0", "[result]"),
        ] {
            let told = run(mode, checks);
            let texts = [first, &format!("what nobody wrote of {what}"), class, "256 bytes"];
            let is_there = texts.iter().all(|text| told.contains(text));
            assert!(is_there && told.matches("uninitialised: ").count() == 1, "{checks} {mode}: {told}");
        }
    }
}

/// Calls that name memory that is not there are told where memory is checked, whatever the program makes of their errors, and so is what is never freed.
#[test]
fn calls_that_are_refused() {
    let run = |mode: &str, checks: &str| {
        passes("blank", &[mode], &[("HANDLOOM_CHECK", checks), ("HANDLOOM_CHECK_LEAKS", "1")])
    };
    let count = |told: &str, words: &[&str]| words.iter().map(|word| told.matches(word).count()).collect::<Vec<_>>();
    let kinds = ["out_of_bounds: ", "freed: ", "leak: "];
    let past = run("past", "memory");
    // The third allocation is freed by nobody.
    assert_eq!(count(&past, &kinds), [4, 0, 1], "{past}");
    let texts = [
        "a copy that the program asked for is refused: 256 bytes",
        "a copy that the program asked for is refused: 260 bytes",
        "the allocation of 256 bytes ends after 252",
        "a fill that the program asked for is refused: 260 bytes",
        "byte 16 of an allocation",
        "[refused]",
        "  fill   cuMemsetD32    (program) in `main`\n",
    ];
    assert!(texts.iter().all(|text| past.contains(text)), "{past}");
    let twice = run("twice", "memory");
    assert_eq!(count(&twice, &kinds), [1, 2, 1], "{twice}");
    assert!(["[double free]", "[use]"].iter().all(|text| twice.contains(text)), "{twice}");
    assert_eq!(count(&run("left", "memory"), &kinds), [0, 0, 3]);
    assert_eq!(count(&run("past", "race"), &kinds), [0, 0, 1]);
}

/// Work of two streams, or of a stream and the host, on the same bytes: told where nothing orders it, and only there.
#[test]
fn work_of_several_streams() {
    let run = |mode: &str| {
        let output = program_on("libcuda.so.1", "checks", &[], &[mode], &[("HANDLOOM_CHECK", "race")]);
        let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert!(output.status.success() && out.ends_with("ok\n"), "{mode}: {}\n{out}{err}", output.status);
        err
    };
    for _ in 0..10 {
        assert_eq!(run("ordered"), "");
    }
    let others = ["st.global.u32", "cuMemcpyHtoDAsync", "cuMemsetD32Async", "cuMemcpyDtoH", "st.global.u32"];
    let bytes = ["bytes 128..255", "bytes 0..255", "bytes 252..255", "bytes 0..255", "bytes 0..255"];
    for (which, (other, bytes)) in others.iter().zip(bytes).enumerate() {
        let told = run(&format!("unordered{which}"));
        let texts = [
            "race: nothing orders the",
            "in another stream, or by the host [unordered]",
            "st.global.u32",
            other,
            bytes,
        ];
        assert!(texts.iter().all(|text| told.contains(text)) && told.matches("race: ").count() == 1, "{which}: {told}");
    }
}

/// Many programs share the machine; those that are killed while a kernel runs leave nothing behind.
#[test]
fn programs_beside_each_other() {
    let folder = libraries();
    // Once alone, which builds it.
    passes("devices", &[], &[("HANDLOOM_DEVICES", "3")]);
    let own = folder.join("temporary");
    std::fs::create_dir_all(&own).expect("a folder can be made");
    let start = |name: &str| {
        let mut run = Command::new(folder.join(format!("{name}-libcuda.so.1")));
        run.env("LD_LIBRARY_PATH", folder).env("HANDLOOM_DEVICES", "3").env("TMPDIR", &own).stdout(Stdio::piped());
        run.stderr(Stdio::null()).spawn().expect("the program can be started")
    };
    let _ = program("nodes", &[], &[("HANDLOOM_QUIET", "0.1")]);
    let running: Vec<Child> = (0..8).map(|_| start("devices")).collect();
    // Each of these comes to a kernel that waits for ever.
    let mut killed: Vec<Child> = (0..3).map(|_| start("nodes")).collect();
    for child in running {
        let output = child.wait_with_output().expect("the program ends");
        assert!(output.status.success() && output.stdout == b"ok\n", "{output:?}");
    }
    for child in &mut killed {
        child.kill().expect("the program can be killed");
        let _ = child.wait();
    }
    let shared = std::fs::read_dir("/dev/shm").into_iter().flatten();
    let mut left = std::fs::read_dir(&own).expect("the folder is there").chain(shared).flatten();
    let left =
        left.find(|entry| entry.path().starts_with(&own) || entry.file_name().to_string_lossy().contains("handloom"));
    assert!(left.is_none(), "{left:?}");
}

#[test]
fn random_calls() {
    for seed in ["1", "2", "3"] {
        passes("fuzz", &[seed, "10"], &[("HANDLOOM_MEMORY", "64M")]);
    }
}

#[test]
fn threads_with_streams_of_their_own() {
    let seconds = std::env::var("HANDLOOM_STRESS").unwrap_or_else(|_| STRESS.to_string());
    let output = program("threads", &["1", &seconds], &[("HANDLOOM_MEMORY", "64M")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The functions that a library exports, and the version of each.
fn exported(library: &str) -> BTreeMap<String, String> {
    let bytes = std::fs::read(libraries().join(library)).expect("the library can be read");
    let file = ElfFile64::<Endianness>::parse(&*bytes).expect("the library is an ELF file");
    let endian = Endianness::Little;
    assert_eq!(file.elf_header().e_type(endian), elf::ET_DYN);
    let versions = file.elf_section_table().versions(endian, &*bytes).expect("versions can be read");
    let versions = versions.expect("the library has versions");
    let symbols = file.elf_section_table().symbols(endian, &*bytes, elf::SHT_DYNSYM).expect("symbols can be read");
    let mut exported = BTreeMap::new();
    for (i, symbol) in symbols.enumerate() {
        let name = symbols.symbol_name(endian, symbol).expect("a symbol has a name");
        if symbol.st_shndx(endian) == elf::SHN_UNDEF || symbol.st_type() != elf::STT_FUNC {
            continue;
        }
        let version = versions.version(versions.version_index(endian, i)).expect("a version can be read");
        let version = version.map_or(String::new(), |v| String::from_utf8_lossy(v.name()).into_owned());
        exported.insert(String::from_utf8_lossy(name).into_owned(), version);
    }
    exported
}

/// Whether a library exports exactly these names, all of them with its own name as their version.
fn exports(library: &str, wanted: &BTreeSet<String>) {
    let exported = exported(library);
    let found: BTreeSet<String> = exported.keys().cloned().collect();
    assert_eq!(found.symmetric_difference(wanted).collect::<Vec<_>>(), Vec::<&String>::new(), "{library}");
    assert!(exported.values().all(|v| v == library), "{exported:?}");
}

#[test]
fn every_name_is_exported_with_its_version() {
    let wanted = table().into_iter().flat_map(|(s, twin, _)| [Some(s), twin]).flatten().collect();
    exports("libcuda.so.1", &wanted);
    for version in ["12", "13"] {
        let list = root().join(format!("crates/libcudart/names/{version}.txt"));
        let names = std::fs::read_to_string(list).expect("the list can be read");
        exports(&format!("libcudart.so.{version}"), &names.lines().map(str::to_owned).collect());
    }
}

/// The names that the documentation and the headers have (`tests/driver/documented`): each is exported, or is a macro for one that is.
#[test]
fn documented_names_are_exported() {
    let list = |name: &str| -> Vec<String> {
        let text = std::fs::read_to_string(root().join("tests/driver/documented").join(name));
        text.expect("the list can be read").lines().map(str::to_owned).collect()
    };
    let bases: BTreeSet<String> = table().into_iter().map(|(symbol, _, _)| symbol).collect();
    let newer = |name: &str| (2..=4).any(|n| bases.contains(&format!("{name}_v{n}")));
    let driver = list("driver.txt");
    let lacks: Vec<&String> = driver.iter().filter(|name| !bases.contains(*name) && !newer(name)).collect();
    assert_eq!((driver.len(), lacks), (DOCUMENTED.0, vec![]));
    let runtime = list("runtime.txt");
    let exported = exported("libcudart.so.13");
    let lacks: Vec<&String> = runtime.iter().filter(|name| !exported.contains_key(*name)).collect();
    assert_eq!((runtime.len(), lacks), (DOCUMENTED.1, vec![]));
}

#[test]
fn the_table_is_in_order_and_in_the_documentation() {
    let rows = table();
    let names: Vec<&String> = rows.iter().map(|(symbol, _, _)| symbol).collect();
    let once: BTreeSet<&&String> = names.iter().collect();
    assert_eq!(once.len(), names.len(), "a name stands twice");
    let works = rows.iter().filter(|(_, _, works)| *works).count();
    let all = rows.len();
    let page = std::fs::read_to_string(root().join("RUNNING.md")).expect("RUNNING.md can be read");
    let line = format!("{works} of {all} functions");
    assert!(page.contains(&line), "RUNNING.md does not say `{line}`");
    // Of the runtime API those work that are not in the list of those that do not.
    let source = std::fs::read_to_string(root().join("crates/libcudart/src/names.rs")).expect("names.rs can be read");
    let list = source.rsplit("not_supported! {").next().and_then(|s| s.split('}').next()).unwrap_or_default();
    let lacks: BTreeSet<&str> = list.split_whitespace().chain(["cudaGetDeviceProperties"]).collect();
    for (version, own) in [("13", 1), ("12", 0)] {
        let names = std::fs::read_to_string(root().join(format!("crates/libcudart/names/{version}.txt")));
        let names = names.expect("the list can be read");
        // Version 13 has a `cudaGetDeviceProperties` that works.
        let works = names.lines().filter(|name| !lacks.contains(name)).count() + own;
        let line = format!("{works} of {}", names.lines().count());
        assert!(page.contains(&line), "RUNNING.md does not say `{line}`");
    }
}

/// Launches of a report as data: entry, runs, threads of a block, statements of warps, lanes of atomics.
fn counted_launches(launches: &serde_json::Value) -> Vec<(String, u64, u64, u64, u64)> {
    let number = |v: &serde_json::Value| v.as_u64().expect("a count is a number");
    let one = |l: &serde_json::Value| {
        let (totals, entry) = (&l["totals"], l["entry"].as_str().unwrap_or_default().to_owned());
        let (warps, lanes) = (&totals["warp_instructions"], &totals["atomic_lanes"]);
        (entry, number(&l["runs"]), number(&l["block"][0]), number(warps), number(lanes))
    };
    launches.as_array().expect("launches are a list").iter().map(one).collect()
}

/// What tests/driver/counted.c does, by hand: `k` has five statements, each executed by each warp, and 40 lanes of a block of 64 add; another `k` has three.
fn by_hand() -> Vec<(String, u64, u64, u64, u64)> {
    let k = || "k".to_owned();
    vec![(k(), 3, 64, 3 * 2 * 2 * 5, 3 * 2 * 40), (k(), 1, 32, 5, 32), (k(), 1, 64, 2 * 3, 64)]
}

#[test]
fn launches_are_counted_for_who_runs_the_program() {
    // A program that ends by itself, and one whose libraries are not told that it ends.
    for args in [&[][..], &["at once"]] {
        let folder = libraries().join(format!("counts-{}-{}", args.len(), std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a folder can be made");
        let text = |path: &Path| path.to_str().expect("a name of UTF-8").to_owned();
        let level = if args.is_empty() { "page" } else { "all" };
        let (to, notes) = (format!("{level}:{}", text(&folder)), folder.join("notes"));
        passes("counted", args, &[("HANDLOOM_COUNTS", &to), ("HANDLOOM_FINDINGS", &text(&notes))]);
        let files = std::fs::read_dir(&folder).expect("the folder is there").flatten().map(|entry| entry.path());
        let parts: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
        assert_eq!(parts.len(), 1, "one process");
        let part: serde_json::Value = read_json(&parts[0]);
        let counted = counted_launches(&part["launches"]);
        assert_eq!(counted[..3], by_hand());
        // The last run of each entry and shape is drawn.
        let drawn = part["timelines"].as_array().expect("timelines are a list");
        let blocks = |of: &serde_json::Value| -> u64 {
            of["timeline"]["pieces"].as_array().into_iter().flatten().filter_map(|p| p["blocks"].as_u64()).sum()
        };
        let mut drawn: Vec<u64> = drawn.iter().map(blocks).collect();
        drawn.sort_unstable();
        assert_eq!(drawn, if args.is_empty() { vec![1, 1, 2] } else { vec![] });
        assert_eq!(counted[3], (String::new(), 0, 0, 0, 0), "what nobody launched is there for its statements");
        let (first, last) = (&part["launches"][0]["statements"], &part["launches"][3]["statements"]);
        assert_eq!(
            (&first[3]["hot"][0]["place"], &first[3]["hot"][0]["lanes"]),
            (&"argument 1 (`x`)+0".into(), &240.into())
        );
        assert_eq!((&last[0]["function"], &last[0]["warps"]), (&"unused".into(), &0.into()));
        let texts = part["texts"].as_object().expect("texts by name");
        assert!(texts.len() == 3 && texts.keys().all(|name| name.starts_with("image-") && name.ends_with(".ptx")));
        let notes = std::fs::read_to_string(&notes).expect("there are notes");
        assert_eq!(notes.matches("\"given\"").count(), 5);
        let over = notes.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        assert_eq!(over.filter_map(|note| note["launches"].as_u64()).sum::<u64>(), 5);
        std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    }
}

fn read_json(path: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).expect("the file is there");
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn variables_ask_for_reports() {
    let folder = libraries();
    let file = |name: &str| folder.join(format!("{}-{name}", std::process::id()));
    let name = |name: &str| file(name).to_str().expect("a name of UTF-8").to_owned();
    let (profile, cover, trace) = (name("p.json"), name("c.info"), name("t.json"));
    passes("counted", &[], &[("HANDLOOM_PROFILE", &profile), ("HANDLOOM_COVER", &cover), ("HANDLOOM_TRACE", &trace)]);
    let report = read_json(Path::new(&profile));
    assert_eq!(report["schema"], "handloom-profile");
    assert_eq!(counted_launches(&report["launches"]), by_hand());
    let lcov = std::fs::read_to_string(&cover).expect("there is a coverage");
    assert_eq!((lcov.matches("SF:image-").count(), lcov.matches("FNDA:0,unused").count()), (3, 1));
    // A trace may end early, without the end of its list.
    let text = std::fs::read_to_string(&trace).expect("there is a trace");
    let events: serde_json::Value =
        serde_json::from_str(&(text.trim_end().trim_end_matches(',').to_owned() + "]")).expect("it is JSON");
    let sorts = |sort: &str| events.as_array().into_iter().flatten().filter(|e| e["cat"] == sort).count();
    assert_eq!((sorts("launch"), sorts("blocks"), sorts("fill"), sorts("copy")), (5, 3 * 2 + 1 + 1, 1, 1));
    let page = name("p.html");
    passes("counted", &[], &[("HANDLOOM_PROFILE", &page)]);
    let page = std::fs::read_to_string(&page).expect("there is a page");
    assert!(
        page.contains("Counts, not time") && page.contains("setp.lt.u32 %p, %t, 40;"),
        "the PTX stands in the page"
    );
    assert_eq!(page.matches("Blocks over threads of the host").count(), 3);
    let told = passes("counted", &[], &[("HANDLOOM_PROFILE", "/no/such/folder/p.json")]);
    assert_eq!(told.matches("cannot be written").count(), 1, "{told}");
    for path in [profile, cover, trace, name("p.html")] {
        std::fs::remove_file(path).expect("a report can be removed");
    }
}
