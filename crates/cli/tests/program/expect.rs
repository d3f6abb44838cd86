//! `"expect"` in jobs.

use crate::common::{ENGINES, Folder, Ran, SCALE, floats};
use serde_json::{Value, json};

/// y = 2 x for four floats.
fn job(expect: Value) -> Value {
    let args = json!([{"buffer": "x"}, {"buffer": "y"}, {"scalar": 2}, {"scalar": 4}]);
    json!({
        "module": "k.ptx",
        "buffers": {"x": {"values": [1, 2.5, -3, "nan"], "type": "f32"}, "y": {"zero": 16}},
        "launches": [{"grid": 1, "block": 4, "args": args}],
        "expect": expect,
    })
}

fn run(f: &Folder, job: &Value, rest: &str, status: i32) -> Vec<Ran> {
    f.write("j.json", job.to_string());
    ENGINES.iter().map(|e| f.run(&format!("run --job j.json --engine {e} {rest}")).ends(status)).collect()
}

#[test]
fn what_is_expected_is_told() {
    let f = Folder::with("expected", SCALE);
    f.write("want.bin", floats(&[2.0, 5.0, -6.0, f32::NAN]));
    for y in [
        json!({"values": [2, 5, -6, "nan"], "type": "f32"}),
        json!({"values": [[2, 5], [-6, "nan"]], "type": "f32"}),
        json!({"values": [5, -6], "type": "float32", "offset": 4}),
        json!({"values": [2.25, 5, -6, "nan"], "type": "f32", "abs": 0.25}),
        json!({"values": [2, 5.5, -6, "nan"], "type": "f32", "rel": 0.1}),
        json!({"values": ["0f40000001", 5, -6, "nan"], "type": "f32", "ulp": 1}),
        json!({"file": "want.bin", "type": "f32"}),
    ] {
        for ran in run(&f, &job(json!({"y": y})), "", 0) {
            assert!(ran.out.contains(" f32 as expected"), "{ran:?}");
        }
    }
    // The type of the buffer.
    run(&f, &job(json!({"x": {"values": [1, 2.5, -3, "nan"]}})), "", 0);
}

#[test]
fn what_is_not_expected_is_a_table() {
    let f = Folder::with("table", SCALE);
    let wrong = job(json!({"y": {"values": [[2, 4], [-6.5, 1]], "type": "f32", "abs": 0.125}}));
    for ran in run(&f, &wrong, "", 1) {
        let lines: Vec<Vec<&str>> = ran.err.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(
            lines[0].join(" "),
            "expectation failed: `y`: 3 of 4 elements are not as expected (within abs 0.125)"
        );
        assert_eq!(lines[1], ["index", "got", "expected", "difference", "ulp"]);
        assert_eq!(lines[2], ["[1,", "1]", "NaN", "1", "-", "-"]);
        assert_eq!(lines[3], ["[0,", "1]", "5", "4", "1", "2097152"]);
        assert_eq!(lines[4], ["[1,", "0]", "-6", "-6.5", "0.5", "1048576"]);
    }
    for ran in run(&f, &wrong, "--format json", 1) {
        let o = &ran.objects()[1];
        assert_eq!(
            (&o["expect"], &o["status"], &o["failed"], &o["elements"]),
            (&"y".into(), &"failed".into(), &3.into(), &4.into())
        );
        assert_eq!((&o["type"], &o["tolerance"]), (&"f32".into(), &json!({"abs": 0.125})));
        assert_eq!(o["worst"][0], json!({"index": [1, 1], "got": "NaN", "expected": "1"}));
        assert_eq!(o["worst"][1]["difference"], 1.0);
        assert_eq!(o["worst"][2]["ulp"], 1_048_576);
    }
}

#[test]
fn expectations_that_make_no_sense_are_told() {
    let f = Folder::with("senseless", SCALE);
    f.write("short.bin", floats(&[2.0]));
    let wrong = |expect: Value, status: i32, sentence: &str| {
        for ran in run(&f, &job(expect), "", status) {
            ran.says(sentence);
        }
    };
    wrong(json!({"z": {"values": [1], "type": "f32"}}), 2, "expect of `z`, which is no buffer of the job");
    wrong(json!({"y": {}}), 2, "expect of `y`: expected either `values` or `file`");
    wrong(json!({"y": {"values": [1, 2, 3, 4]}}), 2, "expect of `y`: `values` need a `type`");
    wrong(
        json!({"y": {"values": [1], "type": "f32"}}),
        2,
        "4 bytes for `y`, which has 16 bytes; `offset` compares a part",
    );
    wrong(json!({"y": {"values": [1], "type": "f32", "offset": 13}}), 2, "4 bytes from byte 13 on");
    wrong(json!({"y": {"values": [1, 2, 3, 4], "type": "s32", "ulp": 1}}), 2, "`ulp` is for floats");
    wrong(json!({"y": {"values": [1, 2, 3, 4], "type": "f32", "abs": -1}}), 2, "`abs` is -1");
    wrong(json!({"y": {"values": [1, 2, 3, "x"], "type": "f32"}}), 2, "`x` is no .f32");
    wrong(json!({"y": {"values": 5, "type": "f32"}}), 2, "no list");
    wrong(json!({"y": {"value": [5], "type": "f32"}}), 2, "unknown field `value`");
    wrong(json!({"y": {"file": "short.bin"}}), 5, "4 bytes for `y`");
    wrong(json!({"y": {"file": "absent.bin"}}), 5, "absent.bin");
}

#[test]
fn after_a_trap_nothing_is_compared() {
    let f = Folder::with("trapped", SCALE);
    let mut wrong = job(json!({"y": {"values": [9, 9, 9, 9], "type": "f32"}}));
    wrong["launches"][0]["args"][3]["scalar"] = 5.into();
    wrong["launches"][0]["block"] = 8.into();
    for ran in run(&f, &wrong, "", 1) {
        assert!(!ran.says("nothing is compared").err.contains("expectation failed"));
    }
    wrong["on_trap"] = "continue".into();
    for ran in run(&f, &wrong, "", 1) {
        ran.says("expectation failed");
    }
}
