//! `--check`: exit statuses, text and JSON of findings, jobs.

use crate::common::Folder;

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
fn what_cannot_be_checked_is_no_success() {
    let f = Folder::with("check_wrong", TWINS);
    let line = |more: &str| format!("run k.ptx clean --grid 1 --block 64 {more} zero:4");
    f.run(&line("--check")).ends(4).says("the check `init` is not supported yet").says("`--check=memory,race,sync`");
    f.run(&line("--check=init")).ends(4).says("the check `init` is not supported yet");
    f.run(&line("--check=races")).ends(2).says("no check `races`").says("memory, init, race, sync");
    f.run(&line("--check=race --engine jit")).ends(2).says("leave `--engine jit` out");
    f.run(&line("--print-limit 3")).ends(2).says("--check");
    f.run(&line("--check=race --engine interp")).ends(0);
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
