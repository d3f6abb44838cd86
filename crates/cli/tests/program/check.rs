//! `check` and `compile`: exit statuses, JSON, every error with its place.

use crate::common::{EMPTY, Folder, HEAD, Ran, SCALE, UNSUPPORTED, WRONG};
use serde_json::Value;

#[test]
fn exit_statuses_tell_right_wrong_and_unsupported() {
    let f = Folder::with("statuses", SCALE);
    f.write("wrong.ptx", format!("{HEAD}{WRONG}"));
    f.write("unsupported.ptx", format!("{HEAD}{UNSUPPORTED}"));
    let silent = f.run("check k.ptx").ends(0);
    assert_eq!((silent.out.as_str(), silent.err.as_str()), ("", ""));
    f.run("check wrong.ptx").ends(3).says("error[E0301]").says("wrong.ptx:5:");
    f.run("check unsupported.ptx").ends(4).says("error[E0901]");
    f.run("check unsupported.ptx wrong.ptx k.ptx").ends(3).says("2 errors in 2 files");
    f.run("check absent.ptx").ends(5).says("`absent.ptx` cannot be read");
    f.run("check .").ends(5);
    f.run("check absent.ptx wrong.ptx").ends(5).says("error[E0301]");
}

#[test]
fn wrong_use_is_2() {
    let f = Folder::with("use", EMPTY);
    for line in
        ["", "check", "chek k.ptx", "check --nonsense k.ptx", "compile --block 0x k.ptx", "run", "run k.ptx", "isa foo"]
    {
        f.run(line).ends(2);
    }
    f.run("run k.ptx --grid 1 --block 1 --threads 0").ends(2);
    f.run("run k.ptx --grid 1 --block 1 --timeout -1").ends(2);
    f.run("run --job j.json --grid 1").ends(2);
    f.run("compile --emit ir --format json k.ptx").ends(2);
    for line in [
        "--help",
        "check --help",
        "compile --help",
        "run --help",
        "isa --help",
        "traps --help",
        "completions --help",
        "info --help",
    ] {
        assert!(f.run(line).ends(0).out.contains(if line == "--help" { "Exit status" } else { "Example:" }), "{line}");
    }
    f.run("--version").ends(0);
}

#[test]
fn check_gives_one_object_for_each_diagnostic() {
    let f = Folder::with("objects", &format!("{WRONG}{UNSUPPORTED}"));
    let all = f.run("check --format json k.ptx").ends(3).objects();
    assert_eq!(all.len(), 2, "{all:?}");
    let [wrong, unsupported] = &all[..] else { panic!() };
    for (field, value) in [("file", "k.ptx"), ("severity", "error"), ("kind", "program"), ("code", "E0301")] {
        assert_eq!(wrong[field], value);
    }
    assert_eq!((wrong["line"].as_u64(), wrong["end_line"].as_u64()), (Some(5), Some(5)));
    assert!(wrong["column"].as_u64() < wrong["end_column"].as_u64());
    assert!(wrong["message"].is_string() && wrong["section"].is_string());
    assert_eq!(wrong.get("opcode"), None);
    assert_eq!((&unsupported["kind"], &unsupported["opcode"]), (&"unsupported".into(), &"ld.global.b32".into()));
}

#[test]
fn standard_input_is_called_as_it_was_given() {
    let f = Folder::new("stdin");
    let ran = f.run_with_input("check - --format json", format!("{HEAD}{WRONG}").as_bytes()).ends(3);
    assert_eq!(ran.objects()[0]["file"], "-");
    f.run_with_input("check -", format!("{HEAD}{SCALE}").as_bytes()).ends(0);
    f.run_with_input("check -", b"").ends(3);
}

#[test]
fn errors_are_limited_for_people_only() {
    let line = "    frob.u32 %r1, %r2;\n";
    let f = Folder::with("limit", &format!(".entry k()\n{{\n    .reg .b32 %r<3>;\n{}}}\n", line.repeat(20_000)));
    let start = std::time::Instant::now();
    let count = |ran: &crate::common::Ran| ran.err.matches("error[").count();
    assert_eq!(count(&f.run("check k.ptx").ends(3).says("19980 more errors")), 20);
    assert_eq!(count(&f.run("check --error-limit 3 k.ptx").ends(3)), 3);
    let all = f.run("check --format json k.ptx").ends(3).objects();
    assert_eq!(all.len(), 20_000);
    assert_eq!(all[19_999]["line"], 20_006);
    assert_eq!(f.run("check --format json --error-limit 3 k.ptx").ends(3).objects().len(), 3);
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
fn a_newer_version_is_a_warning() {
    let f = Folder::new("newer");
    f.write("k.ptx", format!(".version 99.1\n.target sm_80\n.address_size 64\n{EMPTY}"));
    let all = f.run("check --format json k.ptx").ends(0).objects();
    assert_eq!((&all[0]["severity"], &all[0]["code"]), (&"warning".into(), &"W0401".into()));
}

#[test]
fn compile_gives_one_object_an_entry() {
    let f = Folder::with("compile", &format!("{SCALE}{WRONG}{EMPTY}{UNSUPPORTED}"));
    let ran = f.run("compile --format json k.ptx").ends(3);
    let (diagnostics, entries): (Vec<Value>, Vec<Value>) =
        ran.objects().into_iter().partition(|o| o.get("severity").is_some());
    assert_eq!(diagnostics.len(), 2);
    let names: Vec<&str> = entries.iter().map(|e| e["entry"].as_str().unwrap()).collect();
    assert_eq!(names, ["scale", "wrong", "empty", "unsupported"]);
    for e in &entries {
        assert_eq!(e["file"], "k.ptx");
        assert!(e["parse_us"].as_f64().unwrap() > 0.0);
        let ok = e["status"] == "ok";
        assert_eq!(ok, ["scale", "empty"].contains(&e["entry"].as_str().unwrap()));
        assert_eq!((e.get("compile_us").is_some(), e.get("code_bytes").is_some()), (ok, ok));
        assert_eq!(e.get("message").is_some(), !ok);
    }
    assert!(entries[0]["code_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn compile_says_which_generator_took_an_entry() {
    let f = Folder::with("backends", &format!("{SCALE}{EMPTY}"));
    for (asked, may_be) in [("cranelift", &["cranelift"][..]), ("wide", &["wide", "cranelift"][..])] {
        for e in f.run(&format!("compile --backend {asked} --format json k.ptx")).ends(0).objects() {
            let made = e["backend"].as_str().unwrap();
            assert!(may_be.contains(&made), "{e}");
            // Where the other one made it, there is a reason: a host without AVX-512 has one for all entries.
            assert_eq!(e.get("refused").is_some(), made != asked, "{e}");
        }
    }
}

#[test]
fn a_generator_that_there_is_not_is_an_error() {
    let f = Folder::with("no_backend", EMPTY);
    let with = |word: &str| {
        let output = f.command("compile k.ptx").env("HANDLOOM_BACKEND", word).output().expect("the program runs");
        Ran::of(&output)
    };
    with("widest").ends(2).says("HANDLOOM_BACKEND").says("`cranelift` or `wide`");
    with("").ends(0);
    with("wide").ends(0);
}

#[test]
fn an_instruction_set_that_there_is_not_is_an_error() {
    let f = Folder::with("no_isa", EMPTY);
    let with = |word: &str| {
        let mut command = f.command("compile --format json k.ptx");
        Ran::of(&command.env("HANDLOOM_ISA", word).output().expect("the program runs"))
    };
    with("sse").ends(2).says("HANDLOOM_ISA").says("`plain`, `avx2` or `avx512`");
    with("").ends(0);
    for word in ["plain", "avx2"] {
        assert_eq!(with(word).ends(0).objects()[0]["isa"], word);
    }
}

#[test]
fn a_caller_of_what_is_unsupported_is_unsupported() {
    let body =
        ".func f() { .reg .b32 %r; .global .b32 z[4]; ld.global.b32 %r, z[%r]; ret; }\n.entry a() { call f; ret; }\n";
    let f = Folder::with("callers", &format!("{body}{EMPTY}"));
    let ran = f.run("compile --format json k.ptx").ends(4);
    let entries: Vec<Value> = ran.objects().into_iter().filter(|o| o.get("entry").is_some()).collect();
    assert_eq!((&entries[0]["status"], &entries[1]["status"]), (&"error".into(), &"ok".into()));
}

#[test]
fn compile_needs_no_other_module() {
    let f = Folder::with("extern", ".extern .func f();\n.visible .entry k() { call f; ret; }\n");
    f.run("check k.ptx").ends(0);
    f.run("compile k.ptx").ends(0);
    f.run("run k.ptx --grid 1 --block 1").ends(3).says("`f`");
}

#[test]
fn each_stage_can_be_printed() {
    let f = Folder::with("emit", &format!("{SCALE}\n.visible .entry fixed() .reqntid 8, 4 {{ ret; }}\n"));
    let ir = f.run("compile --emit ir --block 64 k.ptx").ends(0).out;
    assert!(ir.contains("for blocks of 64,1,1") && ir.contains("for blocks of 8,4,1"), "{ir}");
    assert!(ir.contains("; 25: mul.f32 %f3, %f2, %f1;") && ir.contains("store.global"), "{ir}");
    let plan = f.run("compile --emit plan --backend cranelift --block 64 k.ptx").ends(0).out;
    assert!(
        plan.starts_with("; k.ptx: scale, for blocks of 64,1,1, lean code, which a launch runs first\nplan scale: "),
        "{plan}"
    );
    // A lane has the word beside that of its neighbour.
    assert!(plan.contains("at linear 4, inline"), "{plan}");
    assert!(f.run("compile --emit clif k.ptx").ends(0).out.contains("function u0:0"));
    assert!(f.run("compile --emit asm --backend cranelift k.ptx").ends(0).out.contains("ret"));
    // By itself it is the code that a launch would run.
    let made = &f.run("compile --format json k.ptx").ends(0).objects()[0];
    let by_itself = f.run("compile --emit asm k.ptx").ends(0).out;
    assert_eq!(by_itself.contains(", wide code\n"), made["backend"] == "wide", "{by_itself}");
}

#[test]
fn wide_code_can_be_printed() {
    let f = Folder::with("wide", SCALE);
    let plan = f.run("compile --emit plan --backend wide k.ptx").ends(0).out;
    assert!(plan.starts_with("; k.ptx: scale, for blocks of 256,1,1, wide code\nplan scale: "), "{plan}");
    let ran = f.run("compile --emit asm --backend wide k.ptx");
    if ran.status == 0 {
        // A product of vectors, and the end.
        assert!(ran.out.contains("Vmulps_") && ran.out.contains("Retnq"), "{}", ran.out);
    } else {
        // A host without it says so.
        f.run("compile --emit asm --backend wide k.ptx").ends(4).says("AVX-512");
    }
    f.run("compile --emit clif --backend wide k.ptx").ends(2).says("--backend cranelift");
    f.run("compile --emit asm --tier lean --backend wide k.ptx").ends(2);
}

#[test]
fn the_code_of_each_tier_can_be_printed() {
    let f = Folder::with("tiers", SCALE);
    let print = |options: &str| f.run(&format!("compile --emit clif {options} k.ptx")).ends(0).out;
    let (lean, quick, careful) = (print("--tier lean"), print("--tier quick"), print("--tier careful"));
    // Lean code has no masked copies; careful code tests each access by itself.
    assert!(lean.len() < quick.len() && quick != careful);
    assert!(
        lean.starts_with("; k.ptx: scale, for blocks of 256,1,1, lean code, which a launch runs first\n"),
        "{lean}"
    );
    assert!(
        careful.starts_with("; k.ptx: scale, for blocks of 256,1,1, careful code; a launch runs lean code first\n")
    );
    // A launch starts in lean code, if all warps are whole.
    assert_eq!(print(""), lean);
    assert_eq!(print("--block 33"), print("--block 33 --tier quick"));
    let (asm, other) = (
        f.run("compile --emit asm --backend cranelift k.ptx").ends(0).out,
        f.run("compile --emit asm --tier quick k.ptx").ends(0).out,
    );
    assert!(asm.len() < other.len());
    // All tiers are made from the same IR.
    assert_eq!(
        f.run("compile --emit ir --tier careful k.ptx").ends(0).out,
        f.run("compile --emit ir k.ptx").ends(0).out
    );
    f.run("compile --tier lean k.ptx").ends(2);
}

#[test]
fn tables_are_printed() {
    let f = Folder::new("tables");
    let isa = f.run("isa --format json").ends(0).objects();
    assert!(isa.len() > 200);
    assert!(isa.iter().all(|r| ["yes", "hint"].contains(&r["support"].as_str().unwrap())));
    let sad = f.run("isa sad").ends(0).out;
    assert!(sad.contains("sad.type d, a, b, c") && sad.contains(".s64"), "{sad}");
    assert!(!f.run("isa wmma.mma").ends(0).out.contains("not supported yet"));
    let traps = f.run("traps --format json").ends(0).objects();
    assert!(traps.iter().any(|t| t["kind"] == "out_of_bounds" && t["about"].is_string()));
    assert!(f.run("traps").ends(0).out.contains("deadlock"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(f.run(&format!("completions {shell}")).ends(0).out.contains("handloom"));
    }
}

#[test]
fn a_closed_pipe_is_no_fault() {
    let f = Folder::new("pipe");
    let line = format!("'{}' isa | head -1", env!("CARGO_BIN_EXE_handloom"));
    let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    drop(f);
}

#[test]
fn pipes_and_no_color_are_plain() {
    let f = Folder::with("plain", WRONG);
    assert!(!f.run("check k.ptx").ends(3).err.contains('\x1b'));
    let forced = f.command("check k.ptx").env("CLICOLOR_FORCE", "1").output().unwrap();
    let none = f.command("check k.ptx").env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().unwrap();
    assert!(forced.stderr.contains(&0x1b) && !none.stderr.contains(&0x1b));
}
