//! `run --job`: many launches in one process.

use crate::common::{EMPTY, ENGINES, Folder, HEAD, LONG, SCALE, UNSUPPORTED, WRONG, floats, results};
use serde_json::{Value, json};

/// A launch of `scale` from buffer `x` to buffer `y`.
fn scale(factor: &str, n: u32) -> Value {
    let args = json!([{"buffer": "x"}, {"buffer": "y"}, {"scalar": factor}, {"scalar": n}]);
    json!({"entry": "scale", "grid": [1, 1, 1], "block": [32, 1, 1], "args": args})
}

fn job(launches: Value) -> Value {
    let buffers = json!({"x": {"file": "x.bin"}, "y": {"zero": 16}});
    json!({"module": "k.ptx", "buffers": buffers, "launches": launches, "outputs": {"y": "y.bin"}})
}

fn folder(name: &str, module: &str) -> Folder {
    let f = Folder::with(name, module);
    f.write("x.bin", floats(&[1.0, 2.0, 3.0, 4.0]));
    f
}

/// Objects of launches.
fn launches(ran: &crate::common::Ran) -> Vec<Value> {
    ran.objects().into_iter().filter(|o| o.get("severity").is_none()).collect()
}

#[test]
fn launches_run_one_after_another() {
    let f = folder("order", SCALE);
    let second = json!({"entry": "scale", "grid": [1], "block": [4], "args":
        [{"buffer": "y", "offset": 4}, {"buffer": "y"}, {"bytes": "00000040"}, {"scalar": "1"}], "repeat": 3});
    f.write("j.json", job(json!([scale("3", 4), second])).to_string());
    for engine in ENGINES {
        let ran = f.run(&format!("run --job j.json --threads 2 --engine {engine} --format json")).ends(0);
        let all = launches(&ran);
        assert_eq!(all.len(), 2);
        assert!(all[0]["run_us"].is_number());
        assert_eq!(all[1]["run_us"].as_array().unwrap().len(), 3);
        assert_eq!(f.read("y.bin"), floats(&[12.0, 6.0, 9.0, 12.0]));
        assert!(f.run(&format!("run --job j.json --engine {engine}")).ends(0).out.contains("ran 3 times"));
    }
}

#[test]
fn of_many_runs_people_see_what_they_come_to() {
    let f = folder("many", SCALE);
    let mut often = scale("3", 4);
    often["repeat"] = 12.into();
    f.write("j.json", job(json!([often])).to_string());
    let ran = f.run("run --job j.json").ends(0);
    let line = ran.out.lines().find(|l| l.contains("ran 12 times in ")).unwrap_or_else(|| panic!("{ran:?}"));
    assert!(
        line.contains(" at first; fastest ") && line.contains(", median ") && line.contains(", slowest "),
        "{line}"
    );
    let ran = f.run("run --job j.json --format json").ends(0);
    assert_eq!(launches(&ran)[0]["run_us"].as_array().unwrap().len(), 12);
}

/// Calls itself 5,000 times.
const DEEP: &str = "
.visible .func (.param .b32 result) deep(.param .b32 n)
{
    .reg .pred %p; .reg .b32 %r<4>;
    ld.param.u32 %r1, [n];
    setp.eq.u32 %p, %r1, 0;
    @%p bra end;
    sub.u32 %r2, %r1, 1;
    {
        .param .b32 a; .param .b32 r;
        st.param.b32 [a], %r2;
        call.uni (r), deep, (a);
        ld.param.b32 %r3, [r];
    }
    add.u32 %r1, %r1, %r3;
end:
    st.param.b32 [result], %r1;
    ret;
}
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r; .reg .b64 %rd;
    ld.param.u64 %rd, [out];
    {
        .param .b32 a; .param .b32 r;
        st.param.b32 [a], 5000;
        call.uni (r), deep, (a);
        ld.param.b32 %r, [r];
    }
    st.global.u32 [%rd], %r;
    ret;
}";

#[test]
fn launches_of_a_job_have_the_stack_that_is_asked_for() {
    let f = Folder::with("stack", DEEP);
    let launch = json!({"grid": [1, 1, 1], "block": [1, 1, 1], "args": [{"buffer": "y"}]});
    let buffers = json!({"y": {"zero": 4}});
    let job = json!({"module": "k.ptx", "buffers": buffers, "launches": [launch], "outputs": {"y": "y.bin"}});
    f.write("j.json", job.to_string());
    for engine in ENGINES {
        let line = format!("run --job j.json --engine {engine}");
        assert!(f.run(&line).ends(1).err.contains("local memory are used up"), "{engine}");
        f.run(&format!("{line} --stack 524288")).ends(0);
        assert_eq!(f.read("y.bin"), 12_502_500_u32.to_le_bytes());
    }
}

#[test]
fn paths_are_relative_to_the_job() {
    let f = folder("paths", SCALE);
    f.write("j.json", job(json!([scale("2", 4)])).to_string());
    let mut command = f.command("run --engine interp --job");
    let folder = f.command("").get_current_dir().unwrap().to_owned();
    let status = command.arg(folder.join("j.json")).current_dir("/").status().unwrap();
    assert!(status.success());
    assert_eq!(f.read("y.bin"), floats(&[2.0, 4.0, 6.0, 8.0]));
}

#[test]
fn modules_share_the_buffers() {
    let f = folder("modules", EMPTY);
    f.write("s.ptx", format!("{HEAD}{SCALE}"));
    let mut other = scale("2", 4);
    other["module"] = "s.ptx".into();
    let empty = json!({"grid": [1, 1, 1], "block": [1, 1, 1]});
    f.write("j.json", job(json!([empty, other])).to_string());
    for engine in ENGINES {
        f.run(&format!("run --job j.json --engine {engine}")).ends(0);
        assert_eq!(f.read("y.bin"), floats(&[2.0, 4.0, 6.0, 8.0]));
    }
}

#[test]
fn entries_that_do_not_compile_fail_their_own_launches() {
    let f = folder("own", &format!("{WRONG}{SCALE}{UNSUPPORTED}"));
    let plain = |entry: &str| json!({"entry": entry, "grid": [1, 1, 1], "block": [1, 1, 1]});
    for (others, status) in [(json!(["unsupported"]), 4), (json!(["unsupported", "wrong"]), 3)] {
        let mut list: Vec<Value> = others.as_array().unwrap().iter().map(|e| plain(e.as_str().unwrap())).collect();
        list.push(scale("2", 4));
        f.write("j.json", job(json!(list)).to_string());
        for engine in ENGINES {
            let ran = f.run(&format!("run --job j.json --engine {engine} --format json")).ends(status);
            let all = launches(&ran);
            assert_eq!((&all[0]["status"], &all[0]["entry"]), (&"error".into(), &"unsupported".into()));
            assert!(all[0]["message"].is_string());
            assert_eq!(all.last().unwrap()["status"], "ok");
            assert_eq!(ran.objects().iter().filter(|o| o.get("severity").is_some()).count(), 2);
            assert_eq!(f.read("y.bin"), floats(&[2.0, 4.0, 6.0, 8.0]));
        }
    }
}

#[test]
fn a_trap_stops_the_job_and_outputs_are_written() {
    let f = folder("trapped", &format!("{SCALE}{UNSUPPORTED}"));
    let unsupported = json!({"entry": "unsupported", "grid": [1, 1, 1], "block": [1, 1, 1]});
    let mut text = job(json!([scale("2", 4), scale("2", 32), scale("5", 4), unsupported]));
    for engine in ENGINES {
        f.write("j.json", text.to_string());
        let ran = f.run(&format!("run --job j.json --engine {engine} --format json")).ends(1);
        let status = |ran: &crate::common::Ran| launches(ran).iter().map(|o| o["status"].clone()).collect::<Vec<_>>();
        assert_eq!(status(&ran), ["ok", "trap"]);
        assert_eq!(f.read("y.bin"), floats(&[2.0, 4.0, 6.0, 8.0]));
        f.run(&format!("run --job j.json --engine {engine}"))
            .ends(1)
            .says("launch 2 of 4 (`scale`) trapped; 2 not run");
        text["on_trap"] = "continue".into();
        f.write("j.json", text.to_string());
        let ran = f.run(&format!("run --job j.json --engine {engine} --format json")).ends(1);
        assert_eq!(status(&ran), ["ok", "trap", "ok", "error"]);
        assert_eq!(f.read("y.bin"), floats(&[5.0, 10.0, 15.0, 20.0]));
        text["on_trap"] = "stop".into();
    }
}

#[test]
fn mistakes_run_nothing_and_get_a_sentence() {
    let f = folder("mistakes", &format!("{SCALE}{EMPTY}"));
    let wrong = |text: String, sentence: &str| {
        f.write("j.json", text);
        f.run("run --job j.json").ends(2).says("`j.json`").says(sentence);
        assert!(!f.has("y.bin"));
    };
    let good = job(json!([scale("2", 4)]));
    let with = |change: &dyn Fn(&mut Value)| {
        let mut text = good.clone();
        change(&mut text);
        text.to_string()
    };
    wrong("{".into(), "line 1");
    wrong(with(&|j| j["moduel"] = "k.ptx".into()), "unknown field `moduel`");
    wrong(with(&|j| j["launches"][0]["gird"] = json!([1])), "unknown field `gird`");
    wrong(with(&|j| j["launches"][0]["entry"] = "scole".into()), "launch 1: no entry `scole`");
    wrong(with(&|j| j["launches"][0]["grid"] = json!([0, 1, 1])), "launch 1: a grid of 0,1,1");
    wrong(with(&|j| j["launches"][0]["block"] = json!([2048, 1, 1])), "at most 1024");
    wrong(with(&|j| j["launches"][0]["grid"] = json!([])), "one to three");
    wrong(with(&|j| j["launches"][0]["repeat"] = 0.into()), "`repeat` is 0");
    wrong(with(&|j| j["launches"][0]["timeout"] = 0.into()), "above 0");
    wrong(
        with(&|j| j["launches"][0]["args"][0] = json!({"buffer": "z"})),
        "`z` is no buffer of the job, which has `x`, `y`",
    );
    wrong(with(&|j| j["launches"][0]["args"][0] = json!({"buffer": "x", "offset": 17})), "an offset of 17 for");
    wrong(with(&|j| j["launches"][0]["args"][2] = json!({"scalar": "two"})), "argument 3: `two` is no .f32");
    wrong(with(&|j| j["launches"][0]["args"][2] = json!({})), "expected one of `buffer`, `scalar` and `bytes`");
    wrong(with(&|j| j["launches"][0]["args"] = json!([])), "`scale` takes 4");
    wrong(with(&|j| j["buffers"]["x"] = json!({})), "either `file` or `zero`");
    wrong(with(&|j| j["outputs"] = json!({"z": "z.bin"})), "no buffer of the job");
    wrong(with(&|j| j["engine"] = "gpu".into()), "unknown variant `gpu`");
    wrong(with(&|j| j["on_trap"] = "ignore".into()), "unknown variant `ignore`");
    wrong(with(&|j| j["module"] = Value::Null), "names no module");
    wrong(with(&|j| j["outputs"] = json!({"y": "y.npy"})), "a type and a shape");
    wrong(with(&|j| j["outputs"] = json!({"y": "y.npy:f32:5"})), "16 bytes is no f32 5");
    f.write("j.json", with(&|j| j["buffers"]["x"] = json!({"file": "absent.bin"})));
    f.run("run --job j.json").ends(5).says("absent.bin");
    f.write("j.json", with(&|j| j["module"] = "absent.ptx".into()));
    f.run("run --job j.json").ends(5).says("absent.ptx");
    f.run("run --job absent.json").ends(5);
}

#[test]
fn an_entry_that_is_nowhere_is_a_mistake_of_the_job() {
    let f = folder("nowhere", UNSUPPORTED);
    for module in [format!("{HEAD}{UNSUPPORTED}"), format!("{HEAD}{UNSUPPORTED}{SCALE}")] {
        f.write("k.ptx", module);
        let launch = json!({"entry": "absent", "grid": [1], "block": [1]});
        f.write("j.json", json!({"module": "k.ptx", "launches": [launch]}).to_string());
        f.run("run --job j.json").ends(2).says("launch 1: no entry `absent`");
    }
}

#[test]
fn outputs_may_be_numpy_arrays() {
    let f = folder("arrays", SCALE);
    let mut text = job(json!([scale("2", 4)]));
    text["outputs"] = json!({"y": "y.npy:f32:2x2"});
    f.write("j.json", text.to_string());
    for engine in ENGINES {
        f.run(&format!("run --job j.json --engine {engine}")).ends(0);
        let y = f.read("y.npy");
        assert!(y.starts_with(b"\x93NUMPY") && y.ends_with(&floats(&[2.0, 4.0, 6.0, 8.0])));
    }
}

#[test]
fn keys_of_the_job_and_of_a_launch() {
    let f = folder("keys", LONG);
    for engine in ENGINES {
        let launch = json!({"grid": [1], "block": [1], "args": [{"buffer": "y"}], "timeout": 0.1, "seed": 7, "shared": 16,
            "cooperative": true, "cluster": [1, 1, 1]});
        let mut text = job(json!([launch]));
        text["engine"] = engine.into();
        text["bounds"] = "contained".into();
        text["threads"] = 1.into();
        f.write("j.json", text.to_string());
        let ran = f.run("run --job j.json --format json").ends(1);
        assert_eq!(launches(&ran)[0]["trap"]["kind"], "timeout");
    }
}

/// A launch that did not run, and a result that is not as expected, are no passed cases of a document.
#[test]
fn documents_tell_what_did_not_run_or_hold() {
    let f = folder("documents", UNSUPPORTED);
    f.write("k.ptx", format!("{HEAD}{UNSUPPORTED}{SCALE}"));
    let unsupported = json!({"entry": "unsupported", "grid": [1], "block": [1]});
    f.write("j.json", job(json!([scale("2", 4), unsupported])).to_string());
    let ran = f.run("run --job j.json --format junit").ends(4);
    assert!(ran.out.contains("tests=\"2\" failures=\"1\"") && ran.out.contains("type=\"trap/not_run\""), "{ran:?}");
    let ran = f.run("run --job j.json --format sarif").ends(4);
    assert!(ran.out.contains("\"executionSuccessful\": false") && results(&ran.out).is_empty(), "{ran:?}");
    let mut text = job(json!([scale("2", 4)]));
    text["expect"] = json!({"y": {"values": [2, 4, 6, 9], "type": "f32"}});
    f.write("j.json", text.to_string());
    let ran = f.run("run --job j.json --format junit").ends(1);
    assert!(ran.out.contains("failures=\"1\"") && ran.out.contains("`y` is not as expected"), "{ran:?}");
}
