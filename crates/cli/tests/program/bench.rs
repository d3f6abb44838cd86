//! `bench`: what is timed, what is put back, sizes, comparisons, mistakes.

use crate::common::{EMPTY, Folder, HEAD, SCALE};

/// Adds 1 to a word, and traps if it was not 0: a run that finds the memory of the run before does not come through.
const ONCE: &str = r"
.visible .entry once(.param .u64 to)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [to];
    ld.global.u32 %r1, [%rd1];
    setp.ne.u32 %p1, %r1, 0;
    @%p1 trap;
    add.u32 %r1, %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}
";

#[test]
fn memory_is_put_back_before_each_run() {
    let f = Folder::with("bench_memory", ONCE);
    let ran = f.run("bench k.ptx --grid 1 --block 1 zero:4 --repeat 20 --format json").ends(0);
    let objects = ran.objects();
    let (once, host) = (&objects[0], &objects[1]);
    assert_eq!((&once["entry"], &once["runs"], &once["caches"]), (&"once".into(), &20.into(), &"warm".into()));
    assert_eq!(once["times_us"].as_array().map(Vec::len), Some(20));
    let run = |key: &str| once["run_us"][key].as_f64().unwrap();
    assert!(run("least") <= run("low") && run("low") <= run("median"));
    assert!(run("median") <= run("high") && run("high") <= run("most"));
    assert!(once["run_us"]["interval"][0].as_f64() <= Some(run("median")));
    assert!(host["host"]["cores"].as_u64() >= Some(1));
    // One that runs on finds what the run before left.
    let ran = f.run("bench k.ptx --grid 1 --block 1 zero:4 --repeat 20 --keep").ends(1);
    assert!(ran.err.contains("trap"), "{ran:?}");
}

#[test]
fn nothing_is_written() {
    let f = Folder::with("bench_outputs", SCALE);
    let ran = f.run("bench k.ptx --grid 1 --block 32 zero:128 out:y.bin:128 2.5 32 --repeat 7 --bytes 256").ends(0);
    assert!(ran.out.contains("B/s") && ran.out.contains("7 runs"), "{ran:?}");
    assert!(!f.has("y.bin"));
}

#[test]
fn files_are_compared_in_turns() {
    let f = Folder::with("bench_against", LOOP);
    f.write("ten.ptx", format!("{HEAD}{}", LOOP.replace("1000;", "100000;")));
    let line = "bench k.ptx --against ten.ptx --grid 1 --block 32 --threads 1 --repeat 9 zero:4";
    let ran = f.run(&format!("{line} --format json")).ends(0);
    let objects = ran.objects();
    let [first, second, ratio, _] = &objects[..] else { panic!("{ran:?}") };
    assert_eq!((&first["file"], &second["file"]), (&"k.ptx".into(), &"ten.ptx".into()));
    assert_eq!((&ratio["file"], &ratio["against"]), (&"ten.ptx".into(), &"k.ptx".into()));
    // A hundred times the work.
    assert!(ratio["time_ratio"]["interval"][0].as_f64() > Some(2.0), "{ratio}");
    let ran = f.run(line).ends(0);
    assert!(ran.out.contains("ten.ptx takes ") && ran.out.trim_end().ends_with("slower"), "{ran:?}");
    f.write("bad.ptx", "no PTX");
    f.run("bench k.ptx --against bad.ptx --grid 1 --block 32 zero:4").ends(3);
    f.run("bench k.ptx --against none.ptx --grid 1 --block 32 zero:4").ends(5).says("none.ptx");
}

/// Counts in a way that no compiler can shorten: each value depends on the one before.
const LOOP: &str = r"
.visible .entry count(.param .u64 to)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, 0;
    mov.u32 %r2, %tid.x;
again:
    mad.lo.u32 %r2, %r2, %r2, %r1;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 1000;
    @%p1 bra again;
    atom.global.xor.b32 %r3, [%rd1], %r2;
    ret;
}
";

#[test]
fn sizes_are_put_into_braces() {
    let f = Folder::with("bench_sweep", SCALE);
    let line = |sweep: &str, more: &str| {
        let args = "zero:{4*n} zero:{4*n} 2.5 {n}";
        format!("bench k.ptx --sweep {sweep} --grid {{n/32}} --block 32 --repeat 3 --bytes {{8*n}} {args} {more}")
    };
    let ran = f.run(&line("n=16..=4096*16", "--format json")).ends(0);
    let objects = ran.objects();
    let sizes: Vec<_> = objects.iter().map(|o| o["sweep"][1].as_u64().unwrap()).collect();
    assert_eq!(sizes, [16, 256, 4096]);
    for o in &objects {
        let (n, rate) = (o["sweep"][1].as_f64().unwrap(), o["bytes_per_second"].as_f64().unwrap());
        let median = o["run_us"]["median"].as_f64().unwrap();
        assert!((rate * median / 1e6 / (8.0 * n) - 1.0).abs() < 1e-9, "{o}");
    }
    let ran = f.run(&line("n=16,256", "")).ends(0);
    assert_eq!(ran.out.lines().filter(|l| l.contains('#')).count(), 2, "{ran:?}");
    f.run(&line("m=16", "")).ends(2).says("neither a number nor `m`");
    f.run(&line("n=", "")).ends(2).says("--sweep");
    // What is wrong with a later size is told with it, before anything is timed.
    f.run(&line("n=16,18446744073709551615", "")).ends(2).says("no value below 2^64");
}

#[test]
fn launches_of_a_job_see_those_before_them() {
    let f = Folder::with("bench_job", ONCE);
    f.write("e.ptx", format!("{HEAD}{EMPTY}"));
    f.write(
        "job.json",
        r#"{"module": "k.ptx", "buffers": {"x": {"zero": 4}, "y": {"zero": 4}}, "launches": [
            {"grid": 1, "block": 1, "args": [{"buffer": "x"}], "operations": 1},
            {"module": "e.ptx", "grid": 8, "block": 32, "repeat": 5},
            {"grid": 1, "block": 1, "args": [{"buffer": "y"}]}]}"#,
    );
    let ran = f.run("bench --job job.json --repeat 8 --format json").ends(0);
    let entries: Vec<_> = ran.objects().iter().filter_map(|o| o["entry"].as_str().map(str::to_owned)).collect();
    assert_eq!(entries, ["once", "empty", "once"]);
    assert!(ran.objects()[0]["operations_per_second"].is_number());
    f.write(
        "twice.json",
        r#"{"module": "k.ptx", "buffers": {"x": {"zero": 4}}, "launches": [
        {"grid": 1, "block": 1, "args": [{"buffer": "x"}], "repeat": 2}]}"#,
    );
    f.run("bench --job twice.json").ends(1);
    f.run("bench --job twice.json --bytes 4").ends(2);
    f.run("bench --job none.json").ends(5);
    // `run` knows the keys.
    f.run("run --job job.json").ends(0);
}

#[test]
fn what_cannot_be_timed_is_refused() {
    let f = Folder::with("bench_wrong", EMPTY);
    f.run("bench k.ptx --grid 1 --block 1 --check").ends(2).says("without checks");
    f.run("bench k.ptx --grid 1 --block 1 5").ends(2);
    f.run("bench k.ptx --grid 1 --block 1 --repeat 0").ends(2);
    f.run("bench k.ptx --grid 1 --block 1 --bytes -1").ends(2);
    f.run("bench k.ptx --grid 1 --block 1 --format sarif").ends(2);
    let ran = f.run("bench k.ptx --grid 1 --block 1 --repeat 3 --cold --warm-up 0").ends(0);
    assert!(ran.out.contains("cold caches") && ran.out.contains("3 runs"), "{ran:?}");
}
