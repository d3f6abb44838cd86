//! Files of arguments and results: element types, standard output, files that stay whole.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use crate::common::{ENGINES, Folder, LONG, Ran, SCALE, UNSUPPORTED, floats};

/// Elements of a `.npy` with a type string, in one dimension.
fn npy(descr: &str, n: usize, data: &[u8]) -> Vec<u8> {
    crate::common::npy(descr, &format!("({n},)"), data)
}

fn names(f: &Folder) -> Vec<String> {
    let folder = f.command("").get_current_dir().unwrap().to_owned();
    let mut all: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

#[test]
fn arrays_of_another_type_than_the_kernel_reads_are_warned_of() {
    let f = Folder::with("types", SCALE);
    f.write("d.npy", npy("<f8", 4, &[0; 32]));
    f.write("i.npy", npy("<i8", 4, &[0; 32]));
    f.write("h.npy", npy("<f2", 8, &[0; 16]));
    f.write("f.npy", npy("<f4", 4, &[0; 16]));
    f.write("u.npy", npy("<u4", 4, &[0; 16]));
    f.write("d.bin", [0; 32]);
    let line = |x: &str, rest: &str| format!("run k.ptx --grid 1 --block 4 in:{x} zero:32 2 4 {rest}");
    for engine in ENGINES {
        for (x, ty) in [("d.npy", "f64"), ("i.npy", "i64"), ("h.npy", "f16")] {
            let ran = f.run(&line(x, &format!("--engine {engine}"))).ends(0);
            let ran = ran.says(&format!("warning[W0601]: argument 1: `{x}` holds {ty}, and the kernel reads f32"));
            assert!(ran.says("--> k.ptx:24:").err.contains("ld.global.f32 %f2, [%rd4];"));
        }
        for x in ["f.npy", "u.npy", "d.bin"] {
            assert_eq!(f.run(&line(x, &format!("--engine {engine}"))).ends(0).err, "", "{x}");
        }
    }
    let ran = f.run(&line("d.npy", "--format json")).ends(0);
    let objects = ran.objects();
    assert_eq!(
        (&objects[0]["severity"], &objects[0]["line"], &objects[0]["code"]),
        (&"warning".into(), &24.into(), &"W0601".into())
    );
    assert_eq!(objects[1]["status"], "ok");
    let launch = r#"{"grid": 1, "block": 4, "args": [{"buffer": "x"}, {"buffer": "y"}, {"scalar": 2}, {"scalar": 4}]}"#;
    let buffers = r#"{"x": {"file": "d.npy"}, "y": {"zero": 32}}"#;
    f.write("j.json", format!(r#"{{"module": "k.ptx", "buffers": {buffers}, "launches": [{launch}, {launch}]}}"#));
    let ran = f.run("run --job j.json").ends(0).says("`x` holds f64");
    assert_eq!(ran.err.matches("warning").count(), 1, "{ran:?}");
}

#[test]
fn traps_speak_of_the_elements_of_files() {
    let f = Folder::with("elements", SCALE);
    f.write("x.npy", npy("<f4", 64, &[0; 256]));
    for engine in ENGINES {
        let ran = f.run(&format!("run k.ptx --engine {engine} --grid 1 --block 128 in:x.npy zero:512 1 128")).ends(1);
        ran.says("`x` is argument 1: 64 elements of f32, made by `in:x.npy`")
            .says("the access begins at element 64 of 64 elements of f32")
            .says("128 threads for 64 elements");
        let ran = f.run(&format!("run k.ptx --engine {engine} --grid 1 --block 128 zero:512 out:y.npy:f32:8x8 1 128"));
        ran.ends(1).says("`y` is argument 2: 64 elements of f32 (8x8)").says("at element 64 of 64");
        // Half an element past the end, and in the middle of one.
        let ran = f.run(&format!("run k.ptx --engine {engine} --grid 1 --block 2 zero:8 out:y.npy:f64:1 1 4"));
        assert!(!ran.ends(0).err.contains("element"));
        let ran = f.run(&format!("run k.ptx --engine {engine} --grid 1 --block 3 zero:12 out:y.npy:f64:1 1 4"));
        ran.ends(1).says("1 element of f64").says("at element 1 of 1 element of f64");
    }
    f.write("k.ptx", format!("{}{}", crate::common::HEAD, SCALE.replace("[%rd5], %f3", "[%rd5+2], %f3")));
    for engine in ENGINES {
        let ran = f.run(&format!("run k.ptx --engine {engine} --grid 1 --block 8 zero:64 out:y.npy:f32:2x4 1 8"));
        ran.ends(1).says("misaligned").says("the access begins 2 bytes into element [0, 0] of 8 elements of f32");
    }
}

#[test]
fn element_types_have_all_their_names() {
    let f = Folder::with("names", SCALE);
    let run = |ty: &str| f.run(&format!("run k.ptx --grid 1 --block 1 zero:8 out:y.npy:{ty} 1 0")).ends(0);
    for (ty, descr) in [
        ("float32:2", "<f4"),
        ("<f4:2", "<f4"),
        ("int64:1", "<i8"),
        ("uint8:8", "|u1"),
        ("bool:8", "|b1"),
        ("bf16:4", "<V2"),
        ("bfloat16:4", "<V2"),
        ("e4m3:8", "|V1"),
        ("float8_e4m3fn:8", "|V1"),
        ("e5m2:8", "|V1"),
        ("float8_e5m2:8", "|V1"),
        ("complex64:1", "<c8"),
    ] {
        run(ty);
        let file = f.read("y.npy");
        let n = ty.rsplit(':').next().unwrap().parse().unwrap();
        assert_eq!(file, npy(descr, n, &[0; 8]), "{ty}");
    }
    f.run("run k.ptx --grid 1 --block 1 zero:8 out:y.npy:bf17:4 1 0").ends(2).says("f16, f32, f64, bf16, e4m3, e5m2");
}

#[test]
fn one_output_goes_to_standard_output() {
    let f = Folder::with("stdout", SCALE);
    f.write("x.bin", floats(&[1.0, 2.0]));
    f.write("x.npy", npy("<f4", 2, &floats(&[1.0, 2.0])));
    let doubled = floats(&[2.0, 4.0]);
    let run = |line: &str| f.command(&format!("run k.ptx --grid 1 --block 2 {line}")).output().unwrap();
    for (line, want) in [
        ("in:x.bin out:-:8 2 2", doubled.clone()),
        ("in:x.bin out:/dev/stdout:8 2 2", doubled.clone()),
        ("in:x.bin out:-:f32:2 2 2", npy("<f4", 2, &doubled)),
    ] {
        let out = run(line);
        assert!(out.status.success());
        assert_eq!(out.stdout, want, "{line}");
        assert!(Ran::of(&out).err.contains("scale: ok"), "{line}");
        let out = run(&format!("{line} --format json"));
        assert_eq!(out.stdout, want, "{line}");
        assert!(Ran::of(&out).err.starts_with("{\"entry\":\"scale\""), "{line}");
    }
    let out = run("in:x.bin inout:x.npy:- 2 2");
    assert_eq!(out.stdout, npy("<f4", 2, &doubled));
    f.run("run k.ptx --grid 1 --block 2 inout:x.bin:- out:-:8 2 2").ends(2).says("two outputs to standard output");
    let launch = r#"{"grid": 1, "block": 2, "args": [{"buffer": "x"}, {"buffer": "y"}, {"scalar": 2}, {"scalar": 2}]}"#;
    let buffers = r#"{"x": {"file": "x.bin"}, "y": {"zero": 8}}"#;
    f.write(
        "j.json",
        format!(r#"{{"module": "k.ptx", "buffers": {buffers}, "launches": [{launch}], "outputs": {{"y": "-"}}}}"#),
    );
    assert_eq!(f.command("run --job j.json").output().unwrap().stdout, doubled);
}

#[test]
fn outputs_that_cannot_be_written_are_told_before_the_launch() {
    let f = Folder::with("before", LONG);
    f.write("folder.txt", "");
    for to in ["no/such/y.bin", "folder.txt/y.bin", "/proc/no/y.bin", "."] {
        let ran = f.run(&format!("run k.ptx --grid 1 --block 1 out:{to}:8 --timeout 30"));
        assert!(!ran.ends(5).says("cannot be written").err.contains("timeout"), "{to}");
    }
    f.run("run k.ptx --grid 1 --block 1 out:folder.txt:8 --global-out x=y").ends(2);
    assert_eq!(names(&f), ["folder.txt", "k.ptx"]);
}

#[test]
fn old_files_survive_a_failed_run() {
    let f = Folder::with("old", LONG);
    f.write("y.bin", "old");
    for signal in ["INT", "KILL"] {
        let mut command = f.command("run k.ptx --grid 1 --block 1 out:y.bin:8");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(700));
        let kill = std::process::Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
        assert!(kill.unwrap().success());
        child.wait_with_output().unwrap();
        assert_eq!(f.read("y.bin"), b"old");
        assert_eq!(names(&f), ["k.ptx", "y.bin"], "{signal}");
    }
    f.write("k.ptx", format!("{}{UNSUPPORTED}", crate::common::HEAD));
    f.run("run k.ptx --grid 1 --block 1").ends(4);
    assert_eq!(f.read("y.bin"), b"old");
}

#[test]
fn outputs_keep_what_a_file_is() {
    let f = Folder::with("kinds", SCALE);
    let folder = f.command("").get_current_dir().unwrap().to_owned();
    let run = |to: &str| f.run(&format!("run k.ptx --grid 1 --block 2 zero:8 out:{to}:8 2 2"));
    run("/dev/null").ends(0);
    // A link stays a link, also one that leads nowhere yet; the mode of the file stays.
    f.write("real.bin", "old");
    std::fs::set_permissions(folder.join("real.bin"), std::fs::Permissions::from_mode(0o640)).unwrap();
    for (link, target) in [("link.bin", "real.bin"), ("new.bin", "fresh.bin")] {
        symlink(target, folder.join(link)).unwrap();
        run(link).ends(0);
        assert!(folder.join(link).is_symlink());
        assert_eq!(f.read(target), [0; 8]);
    }
    assert_eq!(std::fs::metadata(folder.join("real.bin")).unwrap().permissions().mode() & 0o777, 0o640);
    symlink("loop.bin", folder.join("loop.bin")).unwrap();
    run("loop.bin").ends(5);
    let two = "run k.ptx --grid 1 --block 2 inout:real.bin:a.bin out:./a.bin:8 2 2";
    f.run(two).ends(2).says("two outputs to `./a.bin`");
    f.run("run k.ptx --grid 1 --block 2 inout:real.bin:/dev/null out:/dev/null:8 2 2").ends(0);
    // A pipe that somebody reads.
    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap();
    assert!(made.success());
    let reader = std::process::Command::new("cat").arg(folder.join("pipe")).stdout(Stdio::piped()).spawn().unwrap();
    run("pipe").ends(0);
    assert_eq!(reader.wait_with_output().unwrap().stdout, [0; 8]);
    // A file that the shell has opened.
    let line = "exec 3> third.bin; \"$0\" run k.ptx --grid 1 --block 2 zero:8 out:/dev/fd/3:8 2 2";
    let status = std::process::Command::new("sh")
        .args(["-c", line, env!("CARGO_BIN_EXE_handloom")])
        .current_dir(&folder)
        .status();
    assert!(status.unwrap().success());
    assert_eq!(f.read("third.bin"), [0; 8]);
}
