//! `handloom exec`: what the program finds, what is passed on, what is refused.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, results};

/// A folder that looks like that of the libraries to those who only look for names.
fn libraries(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("libcuda.so.1", "");
    folder
}

fn exec(folder: &Folder, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_handloom"));
    command.arg("exec").args(args).env("HANDLOOM_LIBRARIES", folder.path()).env("HANDLOOM_CACHE", "off");
    let done = command.output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[test]
fn the_exit_status_is_the_programs() {
    let folder = libraries("exec-status");
    assert_eq!(exec(&folder, &["--", "sh", "-c", "exit 0"]).0, Some(0));
    assert_eq!(exec(&folder, &["--", "sh", "-c", "exit 7"]).0, Some(7));
    assert_eq!(exec(&folder, &["--", "sh", "-c", "kill -SEGV $$"]).0, Some(139));
    let (status, _, err) = exec(&folder, &["--", "no-such-program"]);
    assert_eq!((status, err.trim_end()), (Some(127), "error: cannot run `no-such-program`: no such file or directory"));
}

#[test]
fn the_environment_is_set() {
    let folder = libraries("exec-environment");
    let print = "echo \"$LD_LIBRARY_PATH|$HANDLOOM_CC|$HANDLOOM_MEMORY|$HANDLOOM_TRACE_API|$HANDLOOM_OPEN_ADDRESSES|$HANDLOOM_BACKEND|$TRITON_DEFAULT_BACKEND\"";
    let options = ["--cc", "9.0", "--memory", "2G", "--trace-api", "--open-addresses", "--backend", "cranelift"];
    let args = [&options[..], &["--", "sh", "-c", print]].concat();
    let (status, out, _) = exec(&folder, &args);
    assert_eq!(status, Some(0));
    let path = folder.path();
    assert!(out.starts_with(path.to_str().unwrap()), "{out}");
    assert!(out.ends_with("|9.0|2G|1|1|cranelift|nvidia\n"), "{out}");
}

/// A program that names another folder for its runtime library, before all others, gets ours all the same.
#[test]
fn the_runtime_library_comes_before_those_that_a_program_names() {
    let folder = libraries("exec-first");
    std::fs::create_dir(folder.path().join("own")).unwrap();
    folder.write("own/which.c", "int which(void) { return N; }");
    folder.write("own/main.c", "int which(void); int main(void) { return which(); }");
    let own = folder.path().join("own");
    let cc = |args: &[&str]| {
        let done = Command::new("cc").current_dir(&own).args(args).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    for (n, to) in [("-DN=13", "../libcudart.so.13"), ("-DN=7", "libcudart.so.13")] {
        cc(&["-shared", "-fPIC", n, "-o", to, "which.c", "-Wl,-soname,libcudart.so.13"]);
    }
    cc(&["-o", "main", "main.c", "-L.", "-l:libcudart.so.13", "-Wl,--disable-new-dtags,-rpath,$ORIGIN"]);
    let main = own.join("main");
    assert_eq!(Command::new(&main).status().unwrap().code(), Some(7));
    assert_eq!(exec(&folder, &["--", main.to_str().unwrap()]).0, Some(13));
}

#[test]
fn what_was_found_is_summed_up() {
    let folder = libraries("exec-found");
    let note = "echo '{\"event\":\"trap\",\"code\":\"CUDA_ERROR_ASSERT\"}' >> $HANDLOOM_FINDINGS; exit 3";
    let (status, _, err) = exec(&folder, &["--", "sh", "-c", note]);
    assert_eq!(
        (status, err.as_str()),
        (Some(3), "handloom: 1 trap: CUDA_ERROR_ASSERT; `handloom explain CUDA_ERROR_ASSERT` says more\n")
    );
    assert_eq!(exec(&folder, &["--error-exit", "9", "--", "sh", "-c", note]).0, Some(9));
    assert_eq!(exec(&folder, &["--error-exit", "9", "--", "sh", "-c", "exit 3"]).0, Some(3));
}

/// A race, as the library notes it.
const FOUND: &str = r#"{"event":"finding","pid":7,"number":0,"found":{"finding":"race","class":"unordered","message":"nothing orders them","first":{"access":"write","file":"k.ptx","line":3,"column":1,"source_file":"k.cu","source_line":9,"statement":"st.u32 [a], b;","block":[0,0,0],"thread":[1,0,0],"order":"weak"},"second":{"access":"read","file":"k.ptx","line":4,"column":1,"statement":"ld.u32 b, [a];","block":[0,0,0],"thread":[2,0,0],"order":"relaxed","scope":"gpu"},"data":{"what":"argument 1 (`x`)","size":64,"offset":4,"bytes":4},"pairs":64}}"#;

#[test]
fn findings_are_told_in_full_and_summed_up() {
    let folder = libraries("exec-checks");
    let given = r#"{"event":"given"}"#;
    let over = r#"{"event":"checked","seed":3,"unchecked":null}"#;
    let again = r#"{"event":"again","pid":7,"number":0,"pairs":36}"#;
    let early = r#"{"event":"checked","seed":3,"unchecked":"no room"}"#;
    let run = |options: &[&str], notes: &[&str], own: u8| {
        folder.write("notes", notes.join("\n") + "\n");
        let from = folder.path().join("notes");
        let line = format!(
            "cat {} >> $HANDLOOM_FINDINGS; echo $HANDLOOM_CHECK $HANDLOOM_CHECK_VOLATILE; exit {own}",
            from.display()
        );
        exec(&folder, &[options, &["--", "sh", "-c", &line]].concat())
    };
    let check = ["--check=race,sync", "--check-volatile"];
    let both = [given, given, given, FOUND, over, again, over, over];
    let (status, out, err) = run(&check, &both, 0);
    assert_eq!((status, out.as_str()), (Some(1), "race,sync 1\n"));
    let lines = ["race: nothing orders them [unordered]", "k.cu:9  k.ptx:3", "bytes 4..7", "handloom: 1 finding: race"];
    assert!(lines.iter().all(|line| err.contains(line)), "{err}");
    assert!(err.contains("100 pairs at these two lines in 2 of 3 launches; replay: --seed 3"), "{err}");
    // A status of its own stays, and one that is asked for wins.
    assert_eq!(run(&check, &both, 7).0, Some(7));
    assert_eq!(run(&["--check=race", "--error-exit", "9"], &both, 7).0, Some(9));
    assert_eq!(run(&check, &[given, over], 0).0, Some(0));
    let refused = r#"{"event":"refused","why":"an image was refused (CUDA_ERROR_NO_BINARY_FOR_GPU), and none of its kernels ran"}"#;
    let (status, _, err) = run(&check, &[refused], 0);
    assert!(status == Some(5) && err.contains("an image was refused (CUDA_ERROR_NO_BINARY_FOR_GPU)"), "{err}");
    assert_eq!(run(&[], &[refused], 0).0, Some(0));
    // What is found of two launches together comes when both are over.
    let (status, _, err) = run(&check, &[given, over, FOUND], 0);
    assert!(status == Some(1) && err.contains("64 pairs at these two lines; replay: --seed 3"), "{err}");
    let (status, _, err) = run(&check, &[given, early], 0);
    assert!(status == Some(5) && err.contains("no room"), "{err}");
    let (status, _, err) = run(&check, &[given, given, over], 0);
    assert!(status == Some(5) && err.contains("1 launch was not over when the program ended"), "{err}");
    let trap = r#"{"event":"trap","code":"CUDA_ERROR_ASSERT"}"#;
    assert_eq!(run(&check, &[given, over, trap], 0).0, Some(1));
    assert_eq!(run(&[], &[trap], 0).0, Some(0));
    let (_, out, _) = run(&["--check=race", "--format", "json"], &both, 0);
    let object: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((&object["finding"], &object["pairs"]), (&"race".into(), &100.into()));
    assert_eq!((&object["second"]["scope"], &object["first"]["source_line"]), (&"gpu".into(), &9.into()));
    assert_eq!(run(&["--check"], &[], 0).1, "memory,init,race,sync\n");
    assert_eq!(run(&["--check", "--check-leaks"], &[], 0).0, Some(0));
}

/// Whether a process has ended. One for which nobody waits is still in the list.
fn is_over(pid: &str) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.is_empty() || text.contains(") Z ")
}

/// A program is stopped with all that it started, and what was found until then is told.
#[test]
fn a_program_is_stopped_in_time() {
    let folder = libraries("exec-timeout");
    folder.write("notes", format!("{FOUND}\n"));
    let notes = folder.path().join("notes");
    let started = folder.path().join("started");
    let line =
        format!("cat {} >> $HANDLOOM_FINDINGS; sleep 600 & echo $! > {}; wait", notes.display(), started.display());
    let begin = Instant::now();
    let (status, _, err) = exec(&folder, &["--timeout", "0.5", "--check=race", "--", "sh", "-c", &line]);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    assert_eq!(status, Some(1));
    assert!(
        err.contains("the program was stopped after 0.5 seconds") && err.contains("handloom: 1 finding: race"),
        "{err}"
    );
    let pid = std::fs::read_to_string(&started).unwrap();
    assert!(
        (0..100).any(|_| is_over(pid.trim()) || {
            std::thread::sleep(Duration::from_millis(50));
            false
        }),
        "{pid} goes on"
    );
    // A program that does not want to be stopped is, without a check too.
    let deaf = "trap '' TERM; while true; do sleep 0.1; done";
    assert_eq!(exec(&folder, &["--timeout", "0.2", "--error-exit", "9", "--", "sh", "-c", deaf]).0, Some(9));
    assert_eq!(exec(&folder, &["--timeout", "60", "--", "sh", "-c", "exit 4"]).0, Some(4));
}

/// What does not want to end when its program does is ended too, wherever it belongs then, and nothing else is.
#[test]
fn what_a_stopped_program_started_is_ended() {
    let folder = libraries("exec-descendants");
    folder.write("notes", format!("{FOUND}\n"));
    let (notes, started) = (folder.path().join("notes"), folder.path().join("started"));
    let (notes, started) = (notes.display(), started.display());
    // A child that nothing but SIGKILL ends, and one of its own whose parent has ended.
    let deaf = "trap \"\" TERM; echo $$ >> $0; while :; do sleep 0.1; done";
    let start = format!(
        "sh -c '{deaf}' {started} > /dev/null 2>&1 & (setsid sh -c '{deaf}' {started} > /dev/null 2>&1 &); sleep 0.3"
    );
    let pids = || std::fs::read_to_string(folder.path().join("started")).unwrap();
    let ended = |options: &[&str], line: &str| {
        let _ = std::fs::remove_file(folder.path().join("started"));
        let (status, _, err) = exec(&folder, &[options, &["--check", "--", "sh", "-c", line]].concat());
        assert_eq!(pids().lines().count(), 2);
        (status, pids().lines().filter(|pid| !is_over(pid)).map(str::to_owned).collect::<Vec<String>>(), err)
    };
    // The program ends when it is told to, or by itself after its time.
    for line in [format!("{start}; exec sleep 60"), format!("trap '' TERM; {start}; sleep 0.8")] {
        let (status, left, err) = ended(&["--timeout", "0.5"], &line);
        assert_eq!((status, left), (Some(1), vec![]), "{err}");
    }
    let (status, left, err) = ended(&["--first"], &format!("{start}; cat {notes} >> $HANDLOOM_FINDINGS; sleep 60"));
    assert_eq!((status, left), (Some(1), vec![]), "{err}");
    // Without a limit a program may leave something behind.
    let (status, left, err) = ended(&[], &start);
    assert_eq!((status, left.len()), (Some(0), 2), "{err}");
    left.iter().for_each(|pid| drop(Command::new("kill").args(["-KILL", pid]).status()));
}

/// Launches that were under way when a program was stopped are no news.
#[test]
fn launches_of_a_stopped_program_are_not_missed() {
    let folder = libraries("exec-under-way");
    folder.write("notes", format!("{{\"event\":\"given\"}}\n{FOUND}\n"));
    let notes = folder.path().join("notes");
    let line = format!("cat {} >> $HANDLOOM_FINDINGS; sleep 60", notes.display());
    for options in [["--first", "--check"], ["--timeout=0.5", "--check"]] {
        let (status, _, err) = exec(&folder, &[&options[..], &["--", "sh", "-c", &line]].concat());
        assert!(status == Some(1) && err.contains("1 finding: race") && !err.contains("not over"), "{err}");
    }
}

/// `--first` ends the program with the first finding that is not left out.
#[test]
fn a_program_is_stopped_by_its_first_finding() {
    let folder = libraries("exec-first-finding");
    folder.write("notes", format!("{FOUND}\n"));
    folder.write("known", "suppress race unordered k.cu:9 k.ptx:4\n");
    let notes = folder.path().join("notes");
    let known = folder.path().join("known");
    let line =
        format!("echo first $HANDLOOM_CHECK_FIRST; cat {} >> $HANDLOOM_FINDINGS; sleep 1; echo over", notes.display());
    let run = |options: &[&str]| exec(&folder, &[options, &["--", "sh", "-c", &line]].concat());
    let (status, out, err) = run(&["--check=race", "--first"]);
    assert_eq!((status, out.as_str()), (Some(1), "first 1\n"), "{err}");
    assert!(err.contains("race: nothing orders them [unordered]"), "{err}");
    let (status, out, err) = run(&["--check=race", "--first", "--suppressions", known.to_str().unwrap()]);
    assert_eq!((status, out.as_str()), (Some(0), "first\nover\n"), "{err}");
    assert!(err.contains("1 finding left out by suppressions"), "{err}");
    let (status, _, err) = run(&["--check=race", "--gen-suppressions", "--print-limit", "1"]);
    assert!(status == Some(1) && err.contains("suppress race unordered k.cu:9 k.ptx:4"), "{err}");
    assert!(run(&["--check=race", "--print-limit", "0"]).2.contains("1 more finding not shown"), "{err}");
}

/// A program with many seeds: what they found is put together, the words are those of the first, and so is the status unless only another one fails.
#[test]
fn a_program_runs_with_many_seeds() {
    let folder = libraries("exec-many-seeds");
    folder.write("notes", format!("{FOUND}\n"));
    let notes = folder.path().join("notes");
    let notes = notes.display();
    // Every other seed finds something, and the fifth one fails.
    let line = format!(
        r#"echo "seed $HANDLOOM_SEED"; [ $((HANDLOOM_SEED % 2)) = 0 ] || {{ cat {notes}; echo '{{"event":"checked","seed":'$HANDLOOM_SEED',"unchecked":null}}'; }} >> $HANDLOOM_FINDINGS; [ $HANDLOOM_SEED != 5 ] || exit 7"#
    );
    let run = |options: &[&str]| exec(&folder, &[options, &["--", "sh", "-c", &line]].concat());
    let (status, out, err) = run(&["--check=race", "--many-seeds", "0..5"]);
    assert_eq!((status, out.as_str()), (Some(1), "seed 0\n"), "{err}");
    assert!(err.contains("2 of 5 seeds") && err.contains("replay: --seed 1"), "{err}");
    assert!(err.contains("handloom: 1 finding: race"), "{err}");
    let (status, _, err) = run(&["--check=race", "--many-seeds", "0..=5"]);
    assert!(status == Some(7) && err.contains("3 of 6 seeds"), "{err}");
    assert!(err.contains("with seed 5 the program ended with status 7"), "{err}");
    // One that finds nothing has nothing to say.
    let (status, out, err) = run(&["--check=race", "--many-seeds", "4..=4"]);
    assert_eq!((status, out.as_str(), err.as_str()), (Some(0), "seed 4\n", ""));
    // The first one is enough, if no more are asked for.
    let (status, out, err) = run(&["--check=race", "--first", "--many-seeds", "1..1000000"]);
    assert_eq!((status, out.as_str()), (Some(1), "seed 1\n"), "{err}");
    // Documents name the seed of a run.
    let (status, out, err) = run(&["--check=race", "--format", "junit", "--many-seeds", "0..=5"]);
    assert!(status == Some(7) && out.contains("(seed 5)"), "{out}{err}");
    let (status, _, err) = run(&["--many-seeds", "0..2"]);
    assert!(status == Some(2) && err.contains("--check"), "{err}");
}

/// A trap that only some seeds show is told with its text, and with how many it was seen.
#[test]
fn traps_of_many_seeds_are_told() {
    let folder = libraries("exec-seed-traps");
    let trap = r#"{"event":"trap","code":"CUDA_ERROR_ASSERT","entry":"k","text":"trap: it failed","trap":{"kind":"assert","file":"k.ptx","line":7,"column":2,"message":"it failed"}}"#;
    folder.write("notes", format!("{trap}\n"));
    let notes = folder.path().join("notes");
    let line = format!("[ $HANDLOOM_SEED != 1 ] || cat {0} {0} >> $HANDLOOM_FINDINGS", notes.display());
    let run =
        |seeds: &str| exec(&folder, &["--check", "--many-seeds", seeds, "--format", "json", "--", "sh", "-c", &line]);
    let told = |seeds: &str| exec(&folder, &["--check", "--many-seeds", seeds, "--", "sh", "-c", &line]);
    let (status, _, err) = told("0..4");
    assert_eq!((status, err.matches("trap: it failed").count()), (Some(1), 1), "{err}");
    assert!(err.contains("CUDA_ERROR_ASSERT seen with 1 of 4 seeds; replay: --seed 1"), "{err}");
    // The first run says it itself.
    let (_, _, err) = told("1..4");
    assert!(!err.contains("it failed") && err.contains("1 of 3 seeds"), "{err}");
    let (_, out, _) = run("0..4");
    let object: serde_json::Value = serde_json::from_str(out.trim()).unwrap();
    assert_eq!(["seed", "seen", "seeds"].map(|name| object[name].as_u64()), [Some(1), Some(1), Some(4)]);
}

/// Documents of a whole program: standard output is theirs alone, and traps, findings and the program itself are in them.
#[test]
fn programs_have_documents() {
    let folder = libraries("exec-documents");
    let trap = r#"{"event":"trap","code":"CUDA_ERROR_ASSERT","entry":"_Z4failPi","text":"trap: it failed","trap":{"kind":"assert","file":"k.ptx","line":7,"column":2,"block":[0,0,0],"thread":[0,0,0],"other_threads":0,"message":"it failed"}}"#;
    folder.write("notes", format!("{FOUND}\n{trap}\n"));
    let from = folder.path().join("notes");
    let line = format!("cat {} >> $HANDLOOM_FINDINGS; echo words", from.display());
    let run = |format: &str, line: &str| exec(&folder, &["--check", "--format", format, "--", "sh", "-c", line]);
    let (status, out, err) = run("sarif", &line);
    assert!(status == Some(1) && err.contains("words"), "{err}");
    let all = results(&out);
    let rules: Vec<_> = all.iter().map(|r| r["ruleId"].as_str().unwrap()).collect();
    assert_eq!(rules, ["race/unordered", "trap/assert"]);
    let region = &all[1]["locations"][0]["physicalLocation"]["region"];
    assert_eq!(region["startLine"], 7);
    let (_, out, _) = run("junit", &line);
    assert!(out.contains("tests=\"3\" failures=\"2\"") && out.contains("<testcase classname=\"program\""), "{out}");
    assert!(out.contains("<testcase classname=\"launch\" name=\"_Z4failPi\""), "{out}");
    // With objects, one is the trap, as of a launch of `run`.
    let (status, out, _) = run("json", &line);
    let objects: Vec<serde_json::Value> = out.lines().skip(1).map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((status, objects.len()), (Some(1), 2), "{out}");
    let field = |name: &str| objects[0][name].as_str().unwrap();
    assert_eq!(
        ["entry", "demangled", "status", "code"].map(field),
        ["_Z4failPi", "fail(int*)", "trap", "CUDA_ERROR_ASSERT"]
    );
    assert_eq!(objects[0]["trap"]["kind"], "assert");
    // Without a fault there is one too, and a status is a failure.
    let (status, out, _) = run("junit", "exit 0");
    assert!(status == Some(0) && out.contains("tests=\"1\" failures=\"0\""), "{out}");
    let (status, out, _) = run("junit", "exit 6");
    assert!(status == Some(6) && out.contains("the program ended with status 6"), "{out}");
    // What the host did has no line: its place is the program, and of two sides the one that has a line comes first.
    let (of_host, mut sides) = (
        r#"{"access":"free","file":"(program)","line":1,"column":1,"statement":"cuMemFree","block":[0,0,0],"thread":[0,0,0],"order":"weak"}"#,
        FOUND.to_owned(),
    );
    let end = sides.find(",\"second\"").unwrap();
    let begin = sides.find("\"first\":").unwrap() + 8;
    sides.replace_range(begin..end, of_host);
    let second = sides.find(",\"second\"").unwrap();
    let data = sides.find(",\"data\"").unwrap();
    let alone = format!("{}{}", &sides[..second], &sides[data..]).replace("\"number\":0", "\"number\":1");
    folder.write("notes", format!("{sides}\n{alone}\n"));
    let (_, out, _) = run("sarif", &format!("{line}; exit 6"));
    let places: Vec<String> = results(&out)
        .iter()
        .map(|r| r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].to_string())
        .collect();
    assert_eq!(places, ["\"k.ptx\"", "\"sh\"", "\"sh\""]);
    // A check that ended early must not look like a clean one.
    folder.write("notes", "{\"event\":\"given\"}\n{\"event\":\"checked\",\"seed\":3,\"unchecked\":\"no room\"}\n");
    let (status, out, _) = run("sarif", &line);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    let told = &document["runs"][0]["invocations"][0];
    assert_eq!((status, &told["executionSuccessful"]), (Some(5), &false.into()));
    assert!(told["toolExecutionNotifications"][0]["message"]["text"].as_str().unwrap().contains("no room"), "{told}");
    let (_, out, _) = run("junit", &line);
    assert!(
        out.contains("tests=\"2\" failures=\"0\" errors=\"1\"") && out.contains("<error type=\"unfinished\""),
        "{out}"
    );
}

/// A kernel of which half of the lanes go one way.
const HALF: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x) {\n .reg .pred %p; .reg .b32 %t; .reg .b64 %x;\n \
    mov.u32 %t, %tid.x;\n setp.lt.u32 %p, %t, 16;\n @%p bra L;\n ld.param.u64 %x, [x];\n red.global.add.u32 [%x], 1;\nL: ret;\n}\n";

#[test]
fn counts_of_all_processes_are_one_report() {
    let folder = libraries("exec-counts");
    folder.write("k.ptx", HALF);
    let profile = folder.run("profile k.ptx --grid 3 --block 32 zero:4 --format json").ends(0);
    let launches = &profile.objects()[0]["launches"];
    let drawn = r#"[{"entry":"k","grid":[3,1,1],"block":[32,1,1],"timeline":{"took_us":8.0,"pieces":[{"thread":4,"first":0,"last":2,"blocks":3,"begin_us":1.0,"took_us":6.0}]}}]"#;
    let part = |texts: &str, interpreted: &str| {
        format!("{{\"launches\":{launches},\"texts\":{texts},\"interpreted\":{interpreted},\"timelines\":{drawn}}}")
    };
    let text = serde_json::to_string(&HALF.lines().collect::<Vec<_>>()).unwrap();
    folder.write("1.json", part(&format!("{{\"k.ptx\":{text}}}"), "[]"));
    folder.write("2.json", part("{}", r#"[["k","it has clusters"]]"#));
    std::fs::remove_file(folder.path().join("k.ptx")).unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let given = r#"{\"event\":\"given\"}\n"#;
    let over = r#"{\"event\":\"counted\",\"launches\":1}\n"#;
    let event =
        r#"{\"name\":\"k\",\"cat\":\"launch\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1.0,\"dur\":2.0,\"args\":{}}"#;
    let run = |options: &[&str], notes: &str, own: u8| {
        let program = format!(
            "to=${{HANDLOOM_COUNTS#*:}}; echo ${{HANDLOOM_COUNTS%%:*}}; printf \"{notes}\" >> $HANDLOOM_FINDINGS; cp {} $to/1.json; cp {} $to/2.json; \
             test -z \"$HANDLOOM_TRACE\" || printf '[\\n%s,\\n' \"{event}\" > $to/7.trace; exit {own}",
            path("1.json"),
            path("2.json")
        );
        exec(&folder, &[options, &["--", "sh", "-c", &program]].concat())
    };
    let both = [given, given, over, over].concat();
    let (html, json, cover, lcov) = (path("p.html"), path("p.json"), path("c.json"), path("c.info"));
    let trace = path("t.json");
    let options = ["--profile", &html, "--profile", &json, "--cover", &cover, "--lcov", &lcov, "--trace", &trace];
    let (status, out, err) = run(&options, &both, 0);
    assert_eq!((status, out.as_str()), (Some(0), "page\n"), "{err}");
    assert!(err.contains("`k` was counted by the interpreter") && err.contains("it has clusters"), "{err}");
    let read = |name: &str| String::from_utf8(folder.read(name)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&read("p.json")).unwrap();
    let (all, one) = (&json["launches"], &launches[0]);
    assert_eq!((all.as_array().unwrap().len(), &all[0]["runs"]), (1, &2.into()));
    let twice = |of: &serde_json::Value| 2 * of.as_u64().unwrap();
    for (what, n) in one["totals"].as_object().unwrap() {
        assert_eq!(all[0]["totals"][what], twice(n), "{what}");
    }
    assert_eq!((&all[0]["totals"]["warp_instructions"], &all[0]["totals"]["atomic_lanes"]), (&36.into(), &96.into()));
    assert_eq!(all[0]["statements"][4]["hot"][0]["lanes"], 96);
    assert!(read("p.html").contains("setp.lt.u32 %p, %t, 16;"), "the PTX came with the counts");
    let line = "One thread of the host ran blocks, for 75 % to 75 % of the 8.0 us of the launch.";
    assert!(read("p.html").contains(line) && read("p.html").contains("<title>blocks 0 to 2: from 1.0 us"));
    assert!(read("c.info").contains("SF:k.ptx") && read("c.info").contains("BRDA:"));
    let trace: serde_json::Value = serde_json::from_str(&read("t.json")).unwrap();
    assert_eq!((&trace["traceEvents"][0]["name"], trace["traceEvents"].as_array().unwrap().len()), (&"k".into(), 1));
    // A coverage goes on where another one ended.
    let (status, out, err) = run(&["--cover", &cover, "--merge", &cover], &both, 7);
    assert_eq!((status, out.as_str()), (Some(7), "coverage\n"), "{err}");
    let merged: serde_json::Value = serde_json::from_str(&read("c.json")).unwrap();
    assert_eq!((&merged["launches"], &merged["statements"][0]["warps"]), (&4.into(), &12.into()));
    // A launch whose end nobody noted makes a report that is not whole.
    let (status, out, err) = run(&["--profile", &path("p.json")], &[given, &both].concat(), 0);
    assert!(
        status == Some(5) && out == "all\n" && err.contains("1 launch was not counted: the program ended before"),
        "{err}"
    );
    let (status, out, err) = run(&["--profile", "/no/such/folder/p.json"], &both, 0);
    assert_eq!((status, out.as_str()), (Some(5), ""), "the program does not run: {err}");
}

#[test]
fn the_cache_is_named() {
    let folder = libraries("exec-cache");
    let print = ["--", "sh", "-c", "echo \"$HANDLOOM_CACHE\""];
    let (_, out, _) = exec(&folder, &print);
    assert_eq!(out, "off\n", "what was set is passed on");
    let (_, out, _) = exec(&folder, &[&["--cache", "off"], &print[..]].concat());
    assert_eq!(out, "off\n");
    let (_, out, _) = exec(&folder, &[&["--cache=some/where"], &print[..]].concat());
    assert_eq!(out, format!("{}\n", std::env::current_dir().unwrap().join("some/where").display()));
}

#[test]
fn wrong_use_is_told() {
    let folder = libraries("exec-wrong");
    for option in ["--profile=x", "--cover=x"] {
        let (status, _, err) = exec(&folder, &[option, "--", "true"]);
        assert_eq!(status, Some(2), "{option}");
        assert!(err.contains("expected a file that ends in .html or .json"), "{err}");
    }
    assert_eq!(
        exec(&folder, &["--check", "--profile=x.json", "--", "true"]).0,
        Some(2),
        "checks are a run of their own"
    );
    for wrong in [["--cc", "nine"], ["--memory", "0"], ["--devices", "9"], ["--threads", "0"]] {
        assert_eq!(exec(&folder, &[wrong[0], wrong[1], "--", "true"]).0, Some(2), "{wrong:?}");
    }
    let empty = Folder::new("exec-empty");
    let (status, _, err) = exec(&empty, &["--", "true"]);
    assert_eq!(status, Some(2));
    assert!(err.contains("ci/libraries"), "{err}");
}

#[test]
fn signals_are_passed_on() {
    let folder = libraries("exec-signals");
    let mut command = Command::new(env!("CARGO_BIN_EXE_handloom"));
    command.args(["exec", "--", "sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"]);
    command.env("HANDLOOM_LIBRARIES", folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 6]).unwrap();
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(5));
}
