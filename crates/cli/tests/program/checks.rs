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
