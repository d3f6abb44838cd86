//! `test`: which files are tests, what they show, documents, mistakes.

use std::path::Path;

use crate::common::{Folder, SCALE, results};

/// The test that `TESTING.md` begins with.
fn documented() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../TESTING.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("```ptx\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// Two threads write different values to one word.
const RACY: &str = ".version 8.0\n.target sm_80\n.address_size 64
.visible .entry race(.param .u64 to)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, %tid.x;
    and.b32 %r1, %r1, 0;
    st.global.u32 [%rd1], %r1;
    ret;
}
";

#[test]
fn the_page_has_a_test_that_passes() {
    let f = Folder::new("suite_page");
    f.write("scale.ptx", documented());
    for engine in ["", "--engine interp", "--backend cranelift", "--check"] {
        let ran = f.run(&format!("test {engine} scale.ptx")).ends(0);
        assert!(ran.out.contains("ok      scale.ptx") && ran.out.contains("1 passed, 0 failed"), "{ran:?}");
    }
}

#[test]
fn folders_are_searched_and_failures_told() {
    let f = Folder::with("suite_folder", SCALE);
    std::fs::create_dir_all(f.path().join("deep/er")).unwrap();
    f.write("deep/good.ptx", documented());
    f.write("deep/er/bad.ptx", documented().replace("7.5", "7"));
    f.write("deep/data.json", "{\"expect\": 5}");
    let wrong = documented().replace("mul.f32", "mul.u64").replace("test: run", "test: check");
    f.write("wrong.ptx", &wrong);
    f.write("noted.ptx", wrong.replace("mul.u64 %v, %v, %a;", "mul.u64 %v, %v, %a; //~ E0301 no `.u64` form"));
    let ran = f.run("test . -j 2").ends(1);
    assert!(ran.out.contains("2 passed, 2 failed"), "{ran:?}");
    assert!(ran.out.contains("x[2] is 7.5 (0x40f00000), expected 7 (0x40e00000)"), "{ran:?}");
    assert!(ran.out.contains("Run one again: handloom test deep/er/bad.ptx"), "{ran:?}");
    let ran = f.run("test deep --format json").ends(1);
    let objects = ran.objects();
    assert_eq!(objects.len(), 3);
    let of = |file: &str| objects.iter().find(|o| o["test"] == file).unwrap();
    assert_eq!((&of("deep/good.ptx")["status"], &of("deep/er/bad.ptx")["status"]), (&"ok".into(), &"failed".into()));
    assert_eq!((&objects[2]["passed"], &objects[2]["failed"]), (&1.into(), &1.into()));
    let ran = f.run("test deep --format junit").ends(1);
    assert!(ran.out.contains("tests=\"2\" failures=\"1\"") && ran.out.contains("<failure type=\"test\""), "{ran:?}");
    let ran = f.run("test deep --format sarif").ends(1);
    let results = results(&ran.out);
    assert_eq!(results.len(), 1);
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "deep/er/bad.ptx");
    assert_eq!(place["region"]["startLine"], 5, "the line of the expectation");
}

#[test]
fn checks_look_for_races_too() {
    let f = Folder::new("suite_check");
    let test = "//@ test: run\n//@ buf x: u32 = [5]\n//@ launch: race<<<1, 64>>>(x)\n//@ expect x == [0]\n";
    f.write(
        "race.ptx",
        format!("{test}{}", RACY.replace("and.b32 %r1, %r1, 0", "shr.u32 %r1, %r1, 5")).replace("[0]", "[_]"),
    );
    f.run("test race.ptx").ends(0);
    let ran = f.run("test race.ptx --check").ends(1);
    assert!(ran.out.contains("race"), "{ran:?}");
    // What to do next: the same options, and what the finding means.
    assert!(ran.out.contains("Run one again: handloom test --check race.ptx\n"), "{ran:?}");
    assert!(ran.out.contains("What it means: handloom explain unordered\n"), "{ran:?}");
}

#[test]
fn jobs_are_tests() {
    let f = Folder::with("suite_jobs", SCALE);
    let job = r#"{"module": "k.ptx", "buffers": {"x": {"values": [1, 2], "type": "f32"}, "y": {"zero": 8}},
        "launches": [{"grid": 1, "block": 2, "args": [{"buffer": "x"}, {"buffer": "y"}, {"scalar": 2.5}, {"scalar": 2}]}],
        "expect": {"y": {"values": [2.5, 5], "type": "f32"}}}"#;
    f.write("good.json", job);
    f.write("bad.json", job.replace("[2.5, 5]", "[2.5, 6]"));
    f.write("none.json", job.replace("\"expect\"", "\"outputs\""));
    f.run("test good.json --check").ends(0);
    let ran = f.run("test .").ends(1);
    assert!(ran.out.contains("1 passed, 1 failed") && ran.out.contains("exit status 1"), "{ran:?}");
    assert!(ran.out.contains("Run one again: handloom run --job bad.json"), "{ran:?}");
    f.run("test none.json").ends(2).says("`none.json` is no test");
    // One that cannot be read is a test that fails, and not one that is left out.
    f.write("broken.json", &job[..job.len() - 1]);
    let ran = f.run("test broken.json").ends(1);
    assert!(ran.out.contains("broken.json"), "{ran:?}");
    let ran = f.run("test --backend cranelift .").ends(1);
    assert!(ran.out.contains("handloom run --job bad.json --backend cranelift\n"), "{ran:?}");
}

#[test]
fn what_is_no_test_is_told() {
    let f = Folder::with("suite_none", SCALE);
    f.run("test k.ptx").ends(2).says("`k.ptx` is no test");
    f.run("test .").ends(2).says("no tests");
    f.run("test nowhere").ends(5).says("`nowhere` cannot be read");
    f.write("odd.ptx", "//@ test: run\n//@ lunch: k<<<1, 1>>>()\n");
    let ran = f.run("test odd.ptx").ends(1);
    assert!(ran.out.contains("line 2: unknown directive `lunch"), "{ran:?}");
    f.write("vast.ptx", "//@ test: run\n//@ buf x: u8 = zero 99999999999\n");
    f.run("test vast.ptx").ends(1);
    f.run("test").ends(2);
}
