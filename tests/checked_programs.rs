//! `handloom exec --check` with programs on the libraries as users run them: what is told of calls and of work of streams, and how a program is stopped.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use handloom_tests::programs;
use handloom_tests::workspace::root;

/// How a command ended: its status, and what it wrote.
struct Ended {
    status: Option<i32>,
    out: String,
    err: String,
}

impl Ended {
    /// Whether it said all of these.
    fn says(&self, texts: &[&str]) -> bool {
        texts.iter().all(|text| self.err.contains(text))
    }

    fn times(&self, text: &str) -> usize {
        self.err.matches(text).count()
    }
}

fn libraries() -> &'static Path {
    programs::libraries(env!("CARGO_TARGET_TMPDIR"))
}

/// The program of all faults, with tables of lines or without.
fn faults(has_lines: bool) -> PathBuf {
    let (name, options): (_, &[&str]) =
        if has_lines { ("faults-lines", &["-g"]) } else { ("faults", &["-fno-optimize-sibling-calls"]) };
    programs::built(libraries(), "libcuda.so.1", (name, &root().join("tests/driver/faults.c")), options)
}

/// Runs a program under `exec` with options.
fn exec(options: &[&str], program: &Path, mode: &str) -> Ended {
    // The program that was built beside the libraries.
    let handloom = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("debug").join("handloom");
    let mut run = Command::new("timeout");
    run.args(["-s", "KILL", "120"]).arg(handloom).arg("exec").args(options).arg("--").arg(program).arg(mode);
    run.env("HANDLOOM_LIBRARIES", libraries()).env("HANDLOOM_CACHE", "off");
    let done = run.output().expect("handloom can be started");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    Ended { status: done.status.code(), out: text(done.stdout), err: text(done.stderr) }
}

/// The line of the program that holds a text.
fn line_of(text: &str) -> String {
    let source = std::fs::read_to_string(root().join("tests/driver/faults.c")).expect("the program can be read");
    let mut lines = (1..).zip(source.lines()).filter(|(_, line)| line.contains(text));
    let (number, _) = lines.next().expect("there is such a line");
    assert!(lines.next().is_none(), "`{text}` stands in several lines");
    format!("faults.c:{number}")
}

#[test]
fn programs_without_a_fault_are_clean() {
    let program = faults(false);
    for mode in ["clean", "in order", "partly"] {
        for _ in 0..3 {
            let ended = exec(&["--check"], &program, mode);
            assert_eq!((ended.status, ended.out.as_str(), ended.err.as_str()), (Some(0), "ok\n", ""), "{mode}");
        }
    }
}

/// Memory that a call freed and a kernel or a call uses then: both places, by the names of the calls and by lines where the program has some.
#[test]
fn memory_that_a_call_freed() {
    let ended = exec(&["--check"], &faults(true), "freed");
    let line = line_of("static void give_back");
    let texts = [
        "trap: out of bounds: read of 4 bytes",
        "freed: read of 4 bytes at +0 of an allocation of 256 bytes, after it was freed [use]",
        "  free   cuMemFree      ",
        &line,
        "(program)\n",
        "  read   ld.global.u32  ",
        "1 finding: freed; 1 trap: CUDA_ERROR_ILLEGAL_ADDRESS",
    ];
    assert!(ended.status == Some(1) && ended.says(&texts), "{}", ended.err);
    // Without tables of lines there is the function, which the compiler may have made a part of another one.
    let ended = exec(&["--check=memory"], &faults(false), "freed");
    assert!(ended.says(&["  free   cuMemFree    ", "  (program) in `"]), "{}", ended.err);
    let ended = exec(&["--check=memory"], &faults(true), "freed later");
    assert!(ended.says(&["after it was freed [use]", "  free   cuMemFreeAsync  ", "faults.c:"]), "{}", ended.err);
    let ended = exec(&["--check=memory"], &faults(true), "twice");
    let line = line_of("EXPECT(1, cuMemFreeAsync(c, s))");
    assert!(ended.status == Some(1) && ended.out == "ok\n", "{}", ended.err);
    assert!(ended.says(&["was freed [double free]", "  free   cuMemFreeAsync  ", &line]), "{}", ended.err);
    assert_eq!(ended.times("  free   "), 2, "{}", ended.err);
    // Nothing of it without the check.
    assert!(!exec(&["--check=race"], &faults(true), "freed").err.contains("freed: "));
}

#[test]
fn memory_that_is_never_freed_has_its_call() {
    let ended = exec(&["--check=memory", "--check-leaks"], &faults(true), "clean");
    let texts = ["leak: 256 bytes at ", "  make   cuMemAlloc  ", &line_of("OK(cuMemAlloc_v2(&p, 256));"), "2 times"];
    assert!(ended.status == Some(1) && ended.says(&texts) && ended.times("leak: 256 bytes") == 1, "{}", ended.err);
}

/// Memory begins and ends in the order of a stream: another stream uses it in order with that, or it is a race.
#[test]
fn memory_in_the_order_of_another_stream() {
    for (mode, does, call) in
        [("allocated apart", "alloc", "cuMemAllocAsync"), ("freed apart", "free", "cuMemFreeAsync")]
    {
        let ended = exec(&["--check=race"], &faults(false), mode);
        let call = format!("  {does:6} {call}");
        let texts =
            ["race: nothing orders the ", " of an allocation+0 and its ", &call, "st.global.u32", "bytes 0..255"];
        assert!(ended.status == Some(1) && ended.says(&texts), "{mode}: {}", ended.err);
        assert_eq!(ended.times("race: "), 1, "{mode}: {}", ended.err);
    }
}

/// Nodes of a graph come in the order of its edges, and launches of one executable graph one after the other (`cuGraphLaunch`); a stream that is gone has its
/// work done all the same.
#[test]
fn graphs_and_streams_that_are_gone() {
    for mode in ["graph", "gone and waited for"] {
        let ended = exec(&["--check"], &faults(true), mode);
        assert_eq!((ended.status, ended.out.as_str(), ended.err.as_str()), (Some(0), "ok\n", ""), "{mode}");
    }
    let ended = exec(&["--check"], &faults(true), "graph forks");
    let texts = [
        "race: nothing orders the read of an allocation+0 and its write in another node of the graph [unordered]",
        "  read   ld.global.u32  ",
        "  write  st.global.u32  ",
        "  fix    let one node of the graph depend on the other one",
    ];
    assert!(ended.status == Some(1) && ended.says(&texts) && ended.times("race: ") == 1, "{}", ended.err);
    // A launch reads what a node writes, and writes half of what others read and write.
    let ended = exec(&["--check"], &faults(true), "graph apart");
    // Which of the two comes first is up to the threads of the host.
    let either = ["the read of an allocation+128 and its write", "the write of an allocation+128 and its read"]
        .map(|text| format!("{text} in another stream, or by the host"));
    assert!(ended.status == Some(1) && ended.says(&["  seen   3 pairs"]), "{}", ended.err);
    assert!(either.iter().any(|text| ended.says(&[text])), "{}", ended.err);
    assert!(!ended.says(&["node of the graph"]), "{}", ended.err);
    let ended = exec(&["--check"], &faults(true), "gone");
    let text = "nothing orders the write of an allocation+0 and its write in another stream, or by the host";
    assert!(ended.status == Some(1) && ended.says(&[text]) && ended.times("race: ") == 1, "{}", ended.err);
}

/// `cudaMemcpy` inside the device does not let the host wait (API synchronization behavior), so that other streams may come before it.
#[test]
fn copies_inside_the_device() {
    let ended = exec(&["--check=race"], &faults(true), "copied inside");
    let texts = ["race: nothing orders the ", "  write  cuMemcpyDtoD  ", "  read   ld.global.u32  "];
    assert!(ended.status == Some(1) && ended.says(&texts) && ended.times("race: ") == 1, "{}", ended.err);
    let ended = exec(&["--check"], &faults(true), "copied inside and waited for");
    assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
}

/// Constants that a kernel reads, and a copy of another stream to them: which ones, also where memory says so.
#[test]
fn constants_in_another_stream() {
    for mode in ["constants", "picked constants"] {
        let ended = exec(&["--check=race"], &faults(true), mode);
        let texts = ["race: nothing orders the ", "  write  cuMemcpyDtoDAsync  ", "  read   ld.const.u32  "];
        assert!(ended.status == Some(1) && ended.says(&texts) && ended.times("race: ") == 1, "{mode}: {}", ended.err);
        for clean in ["half of", "in order:"] {
            let mode = format!("{clean} {mode}");
            let ended = exec(&["--check=race"], &faults(true), &mode);
            assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""), "{mode}");
        }
    }
}

#[test]
fn memory_that_another_call_frees() {
    let ended = exec(&["--check=memory"], &faults(true), "freed otherwise");
    let texts = [
        "out_of_bounds: a free that the program asked for is refused: ",
        " is memory that `cudaFree` or `cuMemFree` frees",
    ];
    assert!(
        ended.status == Some(1) && ended.says(&texts) && ended.says(&["  free   cuMemFreeHost  "]),
        "{}",
        ended.err
    );
}

#[test]
fn copies_of_what_nobody_wrote() {
    let ended = exec(&["--check=init"], &faults(true), "unwritten");
    let line = line_of("IS(\"unwritten\")");
    let texts = [
        "uninitialised: what nobody wrote of an allocation+0 is copied to the host [result]",
        "  copy   cuMemcpyDtoH  ",
        &line,
        "256 bytes, bytes 0..255",
        "  seen   1 time\n",
    ];
    assert!(ended.status == Some(1) && ended.says(&texts), "{}", ended.err);
    let ended = exec(&["--check=init"], &faults(true), "unwritten pinned");
    let texts = ["what nobody wrote of an allocation+128 is copied to the host", "bytes 128..255"];
    assert!(ended.status == Some(1) && ended.says(&texts), "{}", ended.err);
}

/// Programs whose kernels did not run, and that make nothing of it, were not checked.
#[test]
fn what_did_not_run_was_not_checked() {
    for (mode, why) in [("static", "the static CUDA runtime library"), ("refused", "an image was refused (CUDA_ERROR_")]
    {
        let ended = exec(&["--check"], &faults(false), mode);
        let line = format!("error: not all was checked: {}", if mode == "static" { "this program uses " } else { "" });
        assert!(ended.status == Some(5) && ended.out == "ok\n", "{mode}: {}", ended.err);
        assert!(ended.says(&[&line, why]), "{mode}: {}", ended.err);
        assert_eq!(exec(&[], &faults(false), mode).status, Some(0), "{mode}");
    }
}

/// Whether a program goes on, by its command line.
fn is_running(program: &Path, mode: &str) -> bool {
    let all = std::fs::read_dir("/proc").expect("the host lists its processes").flatten();
    let wanted = format!("{}\0{mode}\0", program.display());
    all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok()).any(|line| line == wanted.as_bytes())
}

#[test]
fn programs_are_stopped_in_time() {
    let program = faults(false);
    // A kernel that never ends is stopped first, and the program may go on to its end.
    for (mode, n_races) in [("endless", 0), ("racy and endless", 1)] {
        let ended = exec(&["--check=race,init", "--timeout", "2"], &program, mode);
        assert_eq!(ended.status, Some(1), "{mode}: {}", ended.err);
        assert!(ended.says(&["trap: timeout: ", "1 trap: CUDA_ERROR_LAUNCH_TIMEOUT"]), "{mode}: {}", ended.err);
        assert_eq!((ended.times("race: nothing"), ended.times("not over")), (n_races, 0), "{mode}: {}", ended.err);
    }
    // A program that waits, and one with a child that does not want to end.
    for mode in ["racy and waiting", "child"] {
        let begin = Instant::now();
        let ended = exec(&["--check=race", "--timeout", "1"], &program, mode);
        assert!(begin.elapsed() < Duration::from_secs(30), "{mode}: {:?}", begin.elapsed());
        assert!(ended.status == Some(1) && ended.says(&["the program was stopped after 1 seconds"]), "{}", ended.err);
        assert_eq!(ended.times("race: nothing"), usize::from(mode != "child"), "{mode}: {}", ended.err);
        assert!(!is_running(&program, mode), "{mode}");
    }
}

#[test]
fn programs_are_stopped_by_their_first_finding() {
    for mode in ["racy and waiting", "racy and endless"] {
        let begin = Instant::now();
        let ended = exec(&["--check", "--first"], &faults(false), mode);
        assert!(begin.elapsed() < Duration::from_secs(30), "{mode}: {:?}", begin.elapsed());
        assert_eq!((ended.status, ended.out.as_str()), (Some(1), ""), "{mode}: {}", ended.err);
        assert!(ended.says(&["handloom: 1 finding: race\n"]) && ended.times("not over") == 0, "{mode}: {}", ended.err);
    }
}

#[test]
fn programs_run_with_many_seeds() {
    let program = faults(false);
    let ended = exec(&["--check", "--many-seeds", "0..4"], &program, "late");
    let texts = ["race: nothing orders the ", "2 of 4 seeds; ", "replay: --seed 1"];
    assert!(ended.status == Some(1) && ended.says(&texts) && ended.out == "ok\n", "{}", ended.err);
    assert_eq!(exec(&["--check", "--seed", "0"], &program, "late").status, Some(0));
    assert_eq!(exec(&["--check", "--seed", "1"], &program, "late").status, Some(1));
    // A trap of other seeds than the first one.
    let ended = exec(&["--check", "--many-seeds", "0..4"], &program, "stop");
    let texts = ["trap: trap: ", "CUDA_ERROR_LAUNCH_FAILED seen with 2 of 4 seeds; replay: --seed 1"];
    assert!(ended.status == Some(1) && ended.says(&texts) && ended.times("trap: trap") == 1, "{}", ended.err);
    // The same with each generator, and with several processes.
    for generator in ["wide", "cranelift"] {
        let ended = exec(&["--check", "--many-seeds", "0..3", "--backend", generator], &program, "processes");
        assert!(ended.status == Some(1) && ended.says(&["3 of 3 seeds; 384 pairs"]), "{generator}: {}", ended.err);
    }
}

/// A document has the kernel that stopped by its name.
#[test]
fn documents_name_kernels() {
    let ended = exec(&["--check=memory", "--format", "junit"], &faults(true), "freed");
    let texts = ["<testcase classname=\"launch\" name=\"get\"", "type=\"trap/out_of_bounds\"", "type=\"freed/use\""];
    assert!(texts.iter().all(|text| ended.out.contains(text)), "{}", ended.out);
    let ended = exec(&["--check=memory", "--format", "sarif"], &faults(true), "freed");
    let document: serde_json::Value = serde_json::from_str(&ended.out).expect("it is JSON");
    let results = document["runs"][0]["results"].as_array().expect("results are a list");
    let rules: Vec<&str> = results.iter().filter_map(|result| result["ruleId"].as_str()).collect();
    assert_eq!(rules, ["freed/use", "trap/out_of_bounds"]);
    assert_eq!(results[0]["locations"][0]["message"]["text"], "free: cuMemFree by the program");
}
