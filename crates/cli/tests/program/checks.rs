//! `--check`: exit statuses, text and JSON of findings, jobs.

use std::process::Stdio;
use std::time::Duration;

use crate::common::{Folder, Ran, results};
use crate::live::signal;

/// `racy` writes a word and reads that of another thread without a barrier; `clean` has it. Both have lines of a source file.
const TWINS: &str = r#"
.visible .entry racy(.param .u64 out)
{
    .reg .b32 %r<6>;
    .shared .align 4 .b8 tile[256];
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 2;
    mov.u32 %r2, tile;
    add.u32 %r3, %r2, %r1;
    .loc 1 31 3
    st.shared.u32 [%r3], %r0;
    xor.b32 %r4, %r1, 128;
    add.u32 %r4, %r2, %r4;
    .loc 1 32 3
    ld.shared.u32 %r5, [%r4];
    ret;
}
.visible .entry clean(.param .u64 out)
{
    .reg .b32 %r<6>;
    .shared .align 4 .b8 tile2[256];
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 2;
    mov.u32 %r2, tile2;
    add.u32 %r3, %r2, %r1;
    st.shared.u32 [%r3], %r0;
    bar.sync 0;
    xor.b32 %r4, %r1, 128;
    add.u32 %r4, %r2, %r4;
    ld.shared.u32 %r5, [%r4];
    ret;
}
.visible .entry two(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %d<2>;
    ld.param.u64 %d0, [out];
    mov.u32 %r0, %tid.x;
    st.global.u32 [%d0], %r0;
    ld.global.u32 %r1, [%d0];
    ret;
}
.file 1 "twins.cu"
"#;

#[test]
fn findings_are_told_once_with_both_places() {
    let f = Folder::with("check_text", TWINS);
    let ran = f.run("run k.ptx racy --grid 1 --block 64 --check=race zero:4").ends(1);
    let ran = ran.says("race: nothing orders the ").says("[unordered]").says("st.shared.u32").says("ld.shared.u32");
    let ran =
        ran.says("twins.cu:31").says("twins.cu:32").says("thread (32,0,0)").says("shared variable `tile`, 256 bytes");
    let ran = ran.says("64 pairs at these two lines; replay: --seed 0");
    assert_eq!(ran.err.matches("race: ").count(), 1, "{ran:?}");
    f.run("run k.ptx clean --grid 2 --block 64 --check=memory,race,sync zero:4").ends(0);
    // Without the option nothing is looked for.
    f.run("run k.ptx racy --grid 1 --block 64 zero:4").ends(0);
}

/// A place in inlined code is told with the line of the call that the kernel has, where there is one alone.
#[test]
fn inlined_code_has_the_line_of_its_call() {
    let inlined = TWINS
        .replace(".loc 1 31 3\n", ".loc 1 31 3\n.loc 2 8 1, function_name n, inlined_at 1 31 3\n.loc 2 5 1, function_name n, inlined_at 2 8 1\n")
        .replace(".loc 1 32 3\n", ".loc 2 6 1, function_name n, inlined_at 1 32 3\n");
    let text = format!("{inlined}.file 2 \"tile.h\"\n.section .debug_str\n{{\nn:\n.b8 110,0\n}}\n");
    let f = Folder::with("check_inlined", &text);
    let line = "run k.ptx racy --grid 1 --block 64 --check=race zero:4";
    let ran = f.run(line).ends(1).says("tile.h:5").says("tile.h:6");
    assert!(ran.err.contains("\n  from   twins.cu:31\n") && ran.err.contains("\n  from   twins.cu:32\n"), "{ran:?}");
    let ran = f.run(&format!("{line} --format json")).ends(1);
    let sides = ["first", "second"].map(|side| ran.objects()[1][side]["caller"]["line"].as_u64().unwrap());
    assert_eq!(sides.iter().sum::<u64>(), 31 + 32);
    let ran = f.run(&format!("{line} --format sarif")).ends(1);
    assert!(ran.out.contains("thread (0,0,0), from twins.cu:3"), "{ran:?}");
    f.write("known", "suppress race unordered twins.cu:31 *.cu:32\n");
    f.run(&format!("{line} --suppressions known")).ends(0).says("1 finding left out");
    // The same line of the header was inlined by two calls: either may be meant.
    let twice = text.replace(".loc 2 5 1,", ".loc 2 8 1, function_name n, inlined_at 1 30 3\n.loc 2 5 1,");
    let f = Folder::with("check_inlined_twice", &twice);
    let ran = f.run(line).ends(1).says("tile.h:5");
    assert!(!ran.err.contains("twins.cu:31") && ran.err.contains("twins.cu:32"), "{ran:?}");
}

#[test]
fn json_has_an_object_for_each_finding() {
    let f = Folder::with("check_json", TWINS);
    let line = "run k.ptx racy --grid 1 --block 64 --check=race --seed 7 --format json zero:4";
    let ran = f.run(line).ends(1);
    let [launch, o] = &ran.objects()[..] else { panic!("{ran:?}") };
    assert_eq!(launch["status"], "ok");
    assert_eq!((&o["finding"], &o["class"], &o["seed"]), (&"race".into(), &"unordered".into(), &7.into()));
    assert_eq!((&o["replay"], &o["pairs"]), (&"--seed 7".into(), &64.into()));
    let lines = ["first", "second"].map(|side| o[side]["line"].as_u64().unwrap());
    assert!(lines.contains(&14) && lines.contains(&18), "{o}");
    for side in ["first", "second"] {
        assert_eq!((&o[side]["file"], &o[side]["source_file"]), (&"k.ptx".into(), &"twins.cu".into()));
        assert_eq!((&o[side]["order"], &o[side]["block"]), (&"weak".into(), &serde_json::json!([0, 0, 0])));
        assert!(o[side].get("scope").is_none() && o[side]["statement"].as_str().unwrap().ends_with(';'));
    }
    assert_eq!((&o["data"]["size"], &o["data"]["bytes"]), (&256.into(), &4.into()));
    // The same seed, the same findings.
    let again = f.run(line).ends(1);
    assert_eq!(ran.objects()[1], again.objects()[1]);
}

#[test]
fn wrong_checks_are_told() {
    let f = Folder::with("check_wrong", TWINS);
    let line = |more: &str| format!("run k.ptx clean --grid 1 --block 64 {more} zero:4");
    f.run(&line("--check=races")).ends(2).says("no check `races`").says("memory, init, race, sync");
    f.run(&line("--check=race --engine jit")).ends(0);
    for more in ["--print-limit 3", "--first", "--check-leaks", "--suppressions x", "--gen-suppressions"] {
        f.run(&line(more)).ends(2).says("--check");
    }
    f.run(&line("--check=race --engine interp")).ends(0);
    f.run("check k.ptx --format sarif").ends(2).says("`--format sarif` and `--format junit` are for `run`");
}

/// `part` stores a word of shared memory that no thread writes; `stale` uses memory that it freed; `kept` never frees; `endless` races, then never ends.
const OTHERS: &str = r#"
.extern .func (.param .b64 result) malloc(.param .b64 size);
.extern .func free(.param .b64 pointer);
.visible .entry part(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %d<2>;
    .shared .align 4 .b32 tile[64];
    ld.param.u64 %d0, [out];
    .loc 1 7 1
    ld.shared.u32 %r0, [tile+4];
    .loc 1 8 1
    st.global.u32 [%d0], %r0;
    ret;
}
.visible .entry stale(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %d<2>;
    { .param .b64 s; st.param.b64 [s], 16; .param .b64 p; call (p), malloc, (s); ld.param.b64 %d0, [p]; }
    { .param .b64 q; st.param.b64 [q], %d0;
    .loc 1 20 1
    call free, (q); }
    .loc 1 21 1
    st.u32 [%d0+4], 0;
    ret;
}
.visible .entry kept(.param .u64 out)
{
    .reg .b64 %d<2>;
    { .param .b64 s; st.param.b64 [s], 16; .param .b64 p;
    .loc 1 30 1
    call (p), malloc, (s); ld.param.b64 %d0, [p]; }
    ret;
}
.visible .entry endless(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %d<2>;
    .reg .pred %p;
    ld.param.u64 %d0, [out];
    mov.u32 %r0, %tid.x;
    .loc 1 40 1
    st.global.u32 [%d0], %r0;
    mov.u32 %r1, 0;
again:
    add.u32 %r1, %r1, 2;
    setp.ne.u32 %p, %r1, 1;
    @%p bra again;
    ret;
}
.file 1 "others.cu"
"#;

#[test]
fn all_checks_are_done_where_none_is_named() {
    let f = Folder::with("check_all", OTHERS);
    let ran = f.run("run k.ptx part --grid 1 --block 32 --check zero:4").ends(1);
    let ran =
        ran.says("uninitialised: what nobody wrote of shared variable `tile`+4 is stored to argument 1 (`out`)+0");
    ran.says("others.cu:7").says("others.cu:8").says("at these two lines; replay: --seed 0");
    f.run("run k.ptx part --grid 1 --block 1 --check=race zero:4").ends(0);
    let ran = f.run("run k.ptx stale --grid 1 --block 1 --check zero:4").ends(1).says("trap: out of bounds");
    ran.says("freed: write of 4 bytes at +4 of memory of 16 bytes").says("others.cu:20").says("others.cu:21");
    f.run("run k.ptx kept --grid 1 --block 2 --check zero:4").ends(0);
    let ran = f.run("run k.ptx kept --grid 1 --block 2 --check --check-leaks zero:4").ends(1);
    ran.says("leak: 16 bytes from `malloc` are never freed").says("others.cu:30").says("2 times at this line");
}

/// One launch allocates, one frees, and one uses what was freed, or frees it again; or the last one is one that has allocated other memory.
const HEAP: &str = r#"
.extern .func (.param .b64 result) malloc(.param .b64 size);
.extern .func free(.param .b64 pointer);
.global .u64 shared_pointer;
.visible .entry make()
{
    .reg .b64 %d<2>;
    { .param .b64 s; st.param.b64 [s], 16; .param .b64 p; call (p), malloc, (s); ld.param.b64 %d0, [p]; }
    st.global.u64 [shared_pointer], %d0;
    st.u32 [%d0], 5;
    ret;
}
.visible .entry drop()
{
    .reg .b64 %d<2>;
    ld.global.u64 %d0, [shared_pointer];
    { .param .b64 q; st.param.b64 [q], %d0;
    .loc 1 20 1
    call free, (q); }
    ret;
}
.visible .entry look()
{
    .reg .b32 %r<2>;
    .reg .b64 %d<2>;
    ld.global.u64 %d0, [shared_pointer];
    .loc 1 31 1
    ld.u32 %r0, [%d0];
    st.global.u32 [shared_pointer+4], %r0;
    ret;
}
.file 1 "heap.cu"
"#;

#[test]
fn memory_that_another_launch_freed_has_both_places() {
    let f = Folder::with("check_heap", HEAP);
    let job = |entries: &[&str]| {
        let launch = |entry| format!(r#"{{"entry": "{entry}", "grid": 1, "block": 1}}"#);
        let launches: Vec<String> = entries.iter().map(launch).collect();
        f.write("j.json", format!(r#"{{"module": "k.ptx", "launches": [{}]}}"#, launches.join(", ")));
        f.run("run --job j.json --check=memory")
    };
    let ran = job(&["make", "drop", "look"]).ends(1).says("trap: out of bounds");
    let ran = ran.says("freed: read of 4 bytes at +0 of memory of 16 bytes that `malloc` returned at k.ptx:11");
    ran.says("after it was freed [use]").says("heap.cu:20").says("heap.cu:31");
    let ran = job(&["make", "drop", "drop"]).ends(1).says("is freed twice [double free]");
    assert_eq!(ran.err.matches("heap.cu:20").count(), 3, "{ran:?}");
    job(&["make", "look"]).ends(0);
    job(&["make", "drop", "make", "look"]).ends(0);
}

#[test]
fn what_was_found_before_the_end_is_kept() {
    let f = Folder::with("check_end", OTHERS);
    let ran = f.run("run k.ptx endless --grid 1 --block 2 --check --timeout 1 zero:4").ends(1);
    ran.says("trap: timeout").says("race: nothing orders the write").says("others.cu:40");
    // With `--first` nobody waits for the end.
    let ran = f.run("run k.ptx endless --grid 1 --block 2 --check --first zero:4").ends(1);
    ran.says("race: nothing orders the write");
    let mut command = f.command("run k.ptx endless --grid 1 --block 2 --check zero:4");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1000));
    signal(&child, "INT");
    let ran = Ran::of(&child.wait_with_output().unwrap()).ends(130);
    ran.says("race: nothing orders the write").says("was stopped by a signal");
}

#[test]
fn suppressions_leave_findings_out() {
    let f = Folder::with("check_suppress", TWINS);
    let line = "run k.ptx racy --grid 1 --block 64 --check=race";
    let ran = f.run(&format!("{line} --gen-suppressions zero:4")).ends(1);
    let suppression = "suppress race unordered twins.cu:31 twins.cu:32";
    let other = "suppress race unordered twins.cu:32 twins.cu:31";
    let told = ran.err.lines().find(|l| l.contains("suppress ")).map(str::trim).unwrap_or_default().to_owned();
    assert!([suppression, other].contains(&told.as_str()), "{ran:?}");
    f.write("s.txt", format!("# Known.\n\n{other} # both ways\n"));
    f.run(&format!("{line} --suppressions s.txt zero:4")).ends(0).says("1 finding left out by suppressions");
    // A pair of places is one finding, in how many launches it may be.
    f.write(
        "j.json",
        r#"{"module": "k.ptx", "buffers": {"x": {"zero": 4}}, "launches": [
        {"entry": "racy", "grid": 1, "block": 64, "repeat": 3, "args": [{"buffer": "x"}]}]}"#,
    );
    f.run("run --job j.json --check=race").ends(1).says("in 3 of 3 launches");
    f.run("run --job j.json --check=race --suppressions s.txt").ends(0).says("note: 1 finding left out");
    f.write("s.txt", "suppress race * k.ptx:*\n");
    f.run(&format!("{line} --suppressions s.txt zero:4")).ends(0);
    f.write("s.txt", "suppress race same_warp *\nsuppress race unordered twins.cu:31 twins.cu:30\n");
    f.run(&format!("{line} --suppressions s.txt zero:4")).ends(1);
    f.write("s.txt", "suppress race\n");
    f.run(&format!("{line} --suppressions s.txt zero:4")).ends(2).says("`s.txt`, line 1").says("suppress KIND CLASS");
    f.run(&format!("{line} --suppressions absent.txt zero:4")).ends(5).says("`absent.txt` cannot be read");
    let ran = f.run(&format!("{line} --gen-suppressions --format json zero:4")).ends(1);
    assert!(ran.objects()[1]["suppression"].as_str().unwrap().starts_with("suppress race unordered twins.cu:3"));
}

/// `broken` looks whether its lock is free, and takes it then; `sound` does both at once. In each, four threads add to a word.
const LOCKS: &str = r#"
.visible .entry broken(.param .u64 word, .param .u64 lock)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    .reg .pred %p;
    ld.param.u64 %d0, [word];
    ld.param.u64 %d1, [lock];
wait:
    ld.acquire.gpu.global.u32 %r0, [%d1];
    setp.ne.u32 %p, %r0, 0;
    @%p bra wait;
    st.relaxed.gpu.global.u32 [%d1], 1;
    ld.global.u32 %r1, [%d0];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%d0], %r1;
    st.release.gpu.global.u32 [%d1], 0;
    ret;
}
.visible .entry sound(.param .u64 word, .param .u64 lock)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    .reg .pred %p;
    ld.param.u64 %d0, [word];
    ld.param.u64 %d1, [lock];
wait:
    atom.acquire.gpu.global.cas.b32 %r0, [%d1], 0, 1;
    setp.ne.u32 %p, %r0, 0;
    @%p bra wait;
    ld.global.u32 %r1, [%d0];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%d0], %r1;
    st.release.gpu.global.u32 [%d1], 0;
    ret;
}
"#;

/// As long as whoever has looked goes on at once, nobody else looks meanwhile. Half of the seeds let threads of a block, and blocks, give way there.
#[test]
fn some_seeds_let_threads_give_way_after_strong_reads() {
    let f = Folder::with("check_pauses", LOCKS);
    for shape in ["--grid 4 --block 1", "--grid 1 --block 97"] {
        let line = |entry: &str, seeds: &str| {
            f.run(&format!("run k.ptx {entry} {shape} --check=race --many-seeds {seeds} zero:4 zero:4"))
        };
        line("sound", "0..16").ends(0);
        if shape.contains("grid 4") {
            line("broken", "0..8").ends(0);
        }
        line("broken", "8..16").ends(1).says("race: nothing orders the write");
    }
    let replay = |engine: &str| {
        f.run(&format!(
            "run k.ptx broken --grid 4 --block 1 --check=race --format json --engine {engine} --seed 11 zero:4 zero:4"
        ))
    };
    let of = |ran: &Ran| ran.objects()[1..].to_vec();
    assert_eq!(of(&replay("jit")), of(&replay("interp")));
}

/// One that a file leaves out is not the first one that is wanted, and does not end the launch.
#[test]
fn the_first_finding_is_one_that_is_not_left_out() {
    let twice = TWINS.replacen("st.shared.u32", "st.shared.u32 [tile+4], %r0;\n    st.shared.u32", 1);
    let f = Folder::with("check_first_suppressed", &twice);
    let line = "run k.ptx racy --grid 1 --block 64 --check=race --gen-suppressions";
    let all = f.run(&format!("{line} zero:4")).ends(1);
    let known = |ran: &Ran| -> Vec<String> {
        ran.err.lines().filter(|l| l.contains("suppress ")).map(|l| l.trim().to_owned()).collect()
    };
    let (all, first) = (known(&all), known(&f.run(&format!("{line} --first zero:4")).ends(1)));
    assert!(all.len() > 1 && first.len() == 1, "{all:?} {first:?}");
    f.write("s.txt", &first[0]);
    let second = known(&f.run(&format!("{line} --first --suppressions s.txt zero:4")).ends(1));
    assert!(second.len() == 1 && second != first, "{second:?}");
    f.write("s.txt", all.join("\n"));
    f.run(&format!("{line} --first --suppressions s.txt zero:4")).ends(0);
}

#[test]
fn documents_are_alone_on_standard_output() {
    let f = Folder::with("check_documents", OTHERS);
    let ran = f.run("run k.ptx stale --grid 1 --block 1 --check --format sarif zero:4").ends(1).says("trap: ");
    let results = results(&ran.out);
    let [freed, trap] = &results[..] else { panic!("{ran:?}") };
    assert_eq!((&freed["ruleId"], &trap["ruleId"]), (&"freed/use".into(), &"trap/out_of_bounds".into()));
    let line = |place: &serde_json::Value| place["physicalLocation"]["region"]["startLine"].as_u64();
    assert_eq!((line(&freed["locations"][0]), line(&freed["relatedLocations"][0])), (Some(20), Some(21)));
    assert_eq!(freed["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "others.cu");
    let ran = f.run("run k.ptx part --grid 1 --block 1 --check --format junit zero:4").ends(1);
    assert!(ran.out.starts_with("<?xml") && ran.out.contains("tests=\"2\" failures=\"1\""), "{ran:?}");
    assert!(ran.out.contains("classname=\"uninitialised\" name=\"result others.cu:7 others.cu:"), "{ran:?}");
    let ran = f.run("run k.ptx kept --grid 1 --block 1 --format junit zero:4").ends(0);
    assert!(ran.out.contains("tests=\"1\" failures=\"0\""), "{ran:?}");
}

/// Fingerprints do not know lines, and tell twins apart; what several seeds met is one result.
#[test]
fn fingerprints_outlive_moves() {
    let twice = TWINS.replacen(".loc 1 32 3", ".loc 1 32 3\n    ld.shared.u32 %r5, [%r4];\n    .loc 1 33 3", 1);
    let marks = |name: &str, text: &str| -> Vec<String> {
        let f = Folder::with(name, text);
        let ran =
            f.run("run k.ptx racy --grid 1 --block 64 --check=race --many-seeds 0..3 --format sarif zero:4").ends(1);
        let mark = |r: &serde_json::Value| r["partialFingerprints"]["primaryLocationLineHash"].to_string();
        results(&ran.out).iter().map(mark).collect()
    };
    let (once, moved) = (marks("check_marks", TWINS), marks("check_marks_moved", &TWINS.replace("{", "{\n\n")));
    assert!(once.len() == 1 && once == moved, "{once:?} {moved:?}");
    let twice = marks("check_marks_twice", &twice);
    assert!(twice.len() == 2 && twice.contains(&once[0]), "{once:?} {twice:?}");
}

#[test]
fn launches_of_a_job_are_merged() {
    let f = Folder::with("check_job", TWINS);
    let launch =
        |entry: &str| format!("{{\"entry\":\"{entry}\",\"grid\":[1],\"block\":[64],\"args\":[{{\"buffer\":\"x\"}}]}}");
    let launches = ["racy", "clean", "racy", "two"].map(launch).join(",");
    f.write(
        "j.json",
        format!("{{\"module\":\"k.ptx\",\"buffers\":{{\"x\":{{\"zero\":4}}}},\"launches\":[{launches}]}}"),
    );
    let ran = f.run("run --job j.json --check=race").ends(1);
    let ran =
        ran.says("128 pairs at these two lines in 2 of 4 launches").says("argument 1 (`out`), 4 bytes, bytes 0..3");
    let all = ran.err.matches("race: ").count();
    let ran = f.run("run --job j.json --check=race --print-limit 1").ends(1);
    let hidden = format!("{} more finding", all - 1);
    assert_eq!(ran.err.matches("race: ").count(), 1, "{ran:?}");
    ran.says(&hidden);
}

/// The first of two warps or blocks writes `out`, then both add to `out + 4` with release and acquire. If the second comes first it writes `out` too, after
/// that: a race that only half of the orders show, or a trap.
const TURNS: &str = r#"
.visible .entry late(.param .u64 out, .param .u32 traps)
{
    .reg .pred %p, %q;
    .reg .b32 %r<6>;
    .reg .b64 %d<2>;
    ld.param.u64 %d0, [out];
    ld.param.u32 %r5, [traps];
    mov.u32 %r0, %tid.x;
    and.b32 %r1, %r0, 31;
    setp.ne.u32 %p, %r1, 0;
    @%p ret;
    shr.u32 %r0, %r0, 5;
    mov.u32 %r1, %ctaid.x;
    add.u32 %r0, %r0, %r1;
    setp.eq.u32 %p, %r0, 0;
    @%p st.global.u32 [%d0], 1;
    atom.acq_rel.gpu.global.add.u32 %r2, [%d0+4], 1;
    @%p ret;
    setp.ne.u32 %q, %r2, 0;
    @%q ret;
    setp.ne.u32 %q, %r5, 0;
    @%q trap;
    st.global.u32 [%d0], 2;
    ret;
}
"#;

#[test]
fn many_seeds_show_what_some_orders_hide() {
    let f = Folder::with("check_seeds", TURNS);
    for shape in ["--grid 2 --block 32", "--grid 1 --block 64"] {
        let run = |more: &str| f.run(&format!("run k.ptx late {shape} --check=race {more}"));
        run("--seed 0 zero:8 0").ends(0);
        run("--seed 1 zero:8 0").ends(1).says("replay: --seed 1");
        // Of two neighbours one starts the second first.
        let ran = run("--many-seeds 0..4 out:first.bin:8 0").ends(1);
        let ran = ran.says("seen   2 of 4 seeds; 2 pairs at these two lines; replay: --seed 1");
        assert_eq!(ran.err.matches("race: ").count(), 1, "{ran:?}");
        // What is written is what the first seed leaves.
        assert_eq!(f.read("first.bin"), [1, 0, 0, 0, 2, 0, 0, 0]);
        // All seeds read what was there before.
        f.write("same.bin", [0; 8]);
        run("--many-seeds 0..4 inout:same.bin:same.bin 0").ends(1).says("2 of 4 seeds");
        assert_eq!(f.read("same.bin"), [1, 0, 0, 0, 2, 0, 0, 0]);
        let ran = run("--many-seeds 0..=3 --format json zero:8 0").ends(1);
        let [launch, o] = &ran.objects()[..] else { panic!("{ran:?}") };
        assert_eq!(launch["status"], "ok");
        assert_eq!((&o["seen"], &o["seeds"], &o["seed"]), (&2.into(), &4.into(), &1.into()));
        let ran = run("--many-seeds 0..2 zero:8 1").ends(1);
        ran.says("trap: ").says("seen with 1 of 2 seeds; replay: --seed 1");
        run("--many-seeds 0..1 zero:8 1").ends(0);
    }
    let launch = |seed: u32| {
        format!(
            "{{\"entry\":\"late\",\"grid\":[2],\"block\":[32],\"seed\":{seed},\"args\":[{{\"buffer\":\"x\"}},{{\"scalar\":\"0\"}}]}}"
        )
    };
    f.write(
        "j.json",
        format!("{{\"module\":\"k.ptx\",\"buffers\":{{\"x\":{{\"zero\":8}}}},\"launches\":[{}]}}", launch(0)),
    );
    f.run("run --job j.json --check=race").ends(0);
    f.run("run --job j.json --check=race --many-seeds 0..6").ends(1).says("3 of 6 seeds");
    f.run("run --job j.json --many-seeds 0..6").ends(2).says("--check");
    f.run("run --job j.json --check=race --many-seeds 6..6").ends(2).says("a range of seeds that is not empty");
    f.run("run --job j.json --check=race --many-seeds 0..6 --seed 1").ends(2).says("cannot be used with");
}

/// Adds one to each word of `sums`, far from what the lane beside it adds to. `order` holds zeros, which no proof knows.
const SCATTERED: &str = r#"
.visible .entry scattered(.param .u64 order, .param .u64 sums)
{
    .reg .b32 %i, %n, %to;
    .reg .b64 %d<3>;
    ld.param.u64 %d0, [order];
    ld.param.u64 %d1, [sums];
    mov.u32 %i, %ctaid.x;
    mov.u32 %n, %tid.x;
    mad.lo.u32 %i, %i, 256, %n;
    mad.wide.u32 %d0, %i, 4, %d0;
    ld.global.u32 %to, [%d0];
    mul.lo.u32 %i, %i, 40503;
    and.b32 %i, %i, 0x1fffff;
    xor.b32 %to, %to, %i;
    mad.wide.u32 %d1, %to, 4, %d1;
    ld.global.u32 %n, [%d1];
    add.u32 %n, %n, 1;
    st.global.u32 [%d1], %n;
    ret;
}
"#;

#[cfg(target_os = "linux")]
#[test]
fn a_check_without_memory_says_so() {
    let f = Folder::with("check_memory", SCATTERED);
    let line = "run k.ptx scattered --grid 8192 --block 256 --check=race,init zero:8388608 zero:8388608";
    f.run(line).ends(0);
    // The check wants some 40 MiB of its own, more than half of what is left.
    let command = f.command(line);
    let mut limited = std::process::Command::new("sh");
    limited.current_dir(f.path()).env("HANDLOOM_CACHE", "off").args(["-c", "ulimit -d 100000 && exec \"$0\" \"$@\""]);
    limited.arg(command.get_program()).args(command.get_args());
    let ran = Ran::of(&limited.output().unwrap()).ends(5);
    ran.says("the check ended before the launch did").says("what is remembered of accesses takes more than");
}

/// A copy that nothing has waited for comes before the access or after it, by the seed: that is one fault, which has one name.
#[test]
fn copies_that_nothing_waited_for_are_no_races_beside() {
    let f = Folder::with(
        "check_unwaited",
        ".visible .entry k(.param .u64 buf) {
    .reg .b32 %r<4>; .reg .b64 %d<4>; .shared .align 16 .b32 box[128];
    ld.param.u64 %d0, [buf];
    mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 4; mov.u32 %r2, box; add.u32 %r1, %r1, %r2;
    cp.async.ca.shared.global [%r1], [%d0], 16;
    bar.sync 0;
    xor.b32 %r0, %r1, 16;
    ld.shared.u32 %r3, [%r0];
    st.global.u32 [%d0+32], %r3;
    cp.async.wait_all;
    ret; }",
    );
    let kinds = |checks: &str| {
        let line = format!(
            "run k.ptx k --grid 1 --block 2 --check={checks} --check-same-values --many-seeds 0..6 --format json zero:64"
        );
        let ran = f.run(&line).ends(1);
        let pairs = ran.objects().into_iter().skip(1).map(|o| (o["class"].to_string(), o["seen"].as_u64()));
        pairs.filter(|(class, _)| !class.contains("same")).collect::<Vec<_>>()
    };
    assert_eq!(kinds("race,sync"), [("\"async_unwaited\"".to_owned(), Some(6))]);
    let races = kinds("race");
    assert!(matches!(&races[..], [(class, Some(1..=6))] if class.contains("unordered")), "{races:?}");
}
