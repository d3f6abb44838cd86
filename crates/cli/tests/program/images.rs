//! PTX out of other files, entries by the names of the source, and `info`: over what NVIDIA's compiler made (`tests/images`).

use std::path::Path;

use crate::common::{ENGINES, Folder, HEAD, SCALE, floats};

/// A folder with samples.
fn samples(name: &str, files: &[&str]) -> Folder {
    let f = Folder::new(name);
    for file in files {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/images").join(file);
        f.write(file, std::fs::read(path).unwrap());
    }
    f
}

fn words(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks(4).map(|w| i32::from_le_bytes(w.try_into().unwrap())).collect()
}

#[test]
fn every_image_runs() {
    let images = [
        "raw.fatbin",
        "lz4.fatbin",
        "zstd.fatbin",
        "zstd.fatbin#sm_90a",
        "zstd.fatbin#4",
        "lineinfo.fatbin",
        "cubins.fatbin",
        "lineinfo.cubin",
        "debug.cubin",
        "lineinfo.sm_100a.cubin",
    ];
    let files: Vec<&str> = images.iter().map(|i| i.split('#').next().unwrap()).collect();
    let f = samples("every", &files);
    f.write("x.bin", floats(&[1.0, 2.0, 3.0, 4.0]));
    f.write("y.bin", floats(&[10.0, 20.0, 30.0, 40.0]));
    for image in images {
        let engine = ENGINES[image.len() % 2];
        let ran = f.run(&format!(
            "run {image} saxpy --grid 1 --block 32 --engine {engine} 4 2.0 in:x.bin inout:y.bin:out.bin"
        ));
        ran.ends(0).says(&format!("note: `{image}` is PTX for sm_"));
        assert_eq!(f.read("out.bin"), floats(&[12.0, 24.0, 36.0, 48.0]), "{image}");
        f.run(&format!("check {image}")).ends(0);
    }
    let note = f.run("check zstd.fatbin").ends(0).err;
    assert!(note.contains("member 2") && note.contains("`zstd.fatbin#sm_90a`"), "{note}");
    let json = f.run("check --format json zstd.fatbin").ends(0).objects();
    assert_eq!((&json[0]["severity"], &json[0]["file"]), (&"note".into(), &"zstd.fatbin".into()));
}

#[test]
fn the_module_with_the_entry_is_taken() {
    let f = samples("modules", &["two", "two.a", "linked", "linked.cubin"]);
    f.write("p.bin", [1_i32, 2, 3, 4].map(i32::to_le_bytes).concat());
    let expect = |file: &str, entry: &str, wanted: [i32; 4]| {
        let mut command = f.command(&format!("run {file}"));
        let ran = command.arg(entry).args(["--grid", "1", "--block", "4", "--engine", "interp", "inout:p.bin:q.bin"]);
        crate::common::Ran::of(&ran.output().unwrap()).ends(0);
        assert_eq!(words(&f.read("q.bin")), wanted, "{file} {entry}");
    };
    for file in ["two", "two.a"] {
        expect(file, "first", [0, 1, 2, 3]);
        expect(file, "first(int*)", [0, 1, 2, 3]);
        expect(file, "ns::scale<int>", [2, 4, 6, 8]);
        expect(file, "_ZN2ns5scaleIiEEvPT_", [2, 4, 6, 8]);
    }
    // The callee is in the other translation unit.
    for file in ["linked", "linked.cubin"] {
        expect(file, "both", [0, 2, 4, 6]);
    }
    f.run("run two --grid 1 --block 4 zero:16").ends(2).says("which entry").says("`first(int*)` (`_Z5firstPi`)");
    f.run("run two scale --grid 1 --block 4 zero:16").ends(2).says("`void ns::scale<float>(float*)`");
    f.run("run two frob --grid 1 --block 4 zero:16").ends(2).says("no entry `frob`");
    f.write(
        "job.json",
        r#"{"module": "two", "buffers": {"p": {"file": "p.bin"}}, "outputs": {"p": "q.bin"}, "launches": [
            {"entry": "ns::scale<int>", "grid": [1], "block": [4], "args": [{"buffer": "p"}]},
            {"entry": "scale<int>(int*)", "grid": [1], "block": [4], "args": [{"buffer": "p"}]},
            {"entry": "first", "grid": [1], "block": [2], "args": [{"buffer": "p"}]}]}"#,
    );
    let ran = f.run("run --job job.json --format json").ends(0).objects();
    let names: Vec<_> = ran.iter().filter_map(|o| o["demangled"].as_str()).collect();
    assert_eq!(names, ["void ns::scale<int>(int*)", "void ns::scale<int>(int*)", "first(int*)"]);
    assert_eq!(words(&f.read("q.bin")), [0, 1, 12, 16]);
    let entries = f.run("compile --format json two").ends(0).objects();
    assert_eq!(entries.iter().filter(|o| o["status"] == "ok").count(), 3);
}

#[test]
fn what_holds_no_ptx_gets_one_sentence() {
    let f = samples(
        "none",
        &["plain.cubin", "sass.fatbin", "lto.fatbin", "nvvm.ltoir", "saxpy.cu", "make.py", "zstd.fatbin"],
    );
    f.write("a.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00");
    f.write("a.ll", "; ModuleID = 'a'\ntarget triple = \"nvptx64-nvidia-cuda\"\n");
    f.write("cut.fatbin", &f.read("zstd.fatbin")[..700]);
    f.write("elf", b"\x7fELF\x02\x01\x01\x00");
    for (file, says, help) in [
        ("plain.cubin", "this is a cubin without PTX", "-lineinfo"),
        ("sass.fatbin", "this is a fat binary without PTX", "nvcc -ptx"),
        ("lto.fatbin", "`-dlto`", "nvcc -ptx"),
        ("nvvm.ltoir", "not PTX", "nvcc -ptx"),
        ("saxpy.cu", "this is CUDA C++, not PTX", "nvcc -ptx"),
        ("make.py", "this is Python, not PTX", "inspect_asm"),
        ("a.gz", "this is a gzip file, not PTX", "gunzip"),
        ("a.ll", "this is LLVM IR, not PTX", "llc"),
        ("cut.fatbin", "cut off", "again"),
        ("elf", "damaged", "again"),
    ] {
        let objects = f.run(&format!("check --format json {file}")).ends(3).objects();
        let [only] = &objects[..] else { panic!("{file}: {objects:?}") };
        assert_eq!((&only["code"], &only["line"], &only["file"]), (&"E0105".into(), &1.into(), &file.into()), "{file}");
        assert!(only["message"].as_str().unwrap().contains(says), "{only}");
        assert!(only["help"].as_str().unwrap().contains(help), "{only}");
        f.run(&format!("run {file} --grid 1 --block 1")).ends(3).says("error[E0105]");
        f.run(&format!("compile {file}")).ends(3);
        f.run(&format!("info {file}")).ends(3);
    }
    f.run("check zstd.fatbin#9").ends(2).says("has no member 9");
    f.run("check zstd.fatbin#sm_70").ends(2).says("has no PTX for sm_70");
    f.run("check zstd.fatbin#what").ends(2).says("expected the number of a member or a target");
    f.run("check absent.fatbin#2").ends(5);
}

#[test]
fn info_lists_modules_and_members() {
    let f = samples("info", &["zstd.fatbin", "two"]);
    let body = "
.visible .global .align 8 .b8 _ZN2ns5tableE[16] = {1, 2};
.extern .shared .align 16 .b8 dynamic[];
.extern .func other(.param .b32 a);
.func _Z4sidei(.param .b32 a) { ret; }
.visible .entry _Z4mainPfi(.param .u64 p, .param .align 4 .b8 s[12], .param .u8 c)
.maxntid 128, 2
.minnctapersm 2
{
    .shared .align 4 .b8 tile[64];
    .reg .b32 %r<2>;
    mov.u32 %r1, tile;
    ret;
}
.visible .entry textured() { .reg .b32 %r; .global .b32 z[4]; ld.global.b32 %r, z[%r]; ret; }
";
    f.write("k.ptx", format!("{HEAD}{body}"));
    let all = f.run("info --format json k.ptx").ends(0).objects();
    let [file] = &all[..] else { panic!("{all:?}") };
    let module = &file["modules"][0];
    assert_eq!((&file["kind"], &module["version"], &module["target"]), (&"ptx".into(), &"8.0".into(), &"sm_80".into()));
    assert_eq!(module["address_size"], 64);
    let main = &module["entries"][0];
    assert_eq!((&main["name"], &main["demangled"]), (&"_Z4mainPfi".into(), &"main(float*, int)".into()));
    assert_eq!((&main["line"], &main["param_bytes"], &main["shared_bytes"]), (&9.into(), &21.into(), &64.into()));
    assert_eq!(main["directives"]["maxntid"], serde_json::json!([128, 2]));
    assert_eq!(main["directives"]["minnctapersm"], serde_json::json!([2]));
    let param = |i: usize, key: &str| main["params"][i][key].clone();
    assert_eq!([param(1, "offset"), param(1, "size"), param(1, "align")], [8.into(), 12.into(), serde_json::json!(4)]);
    assert_eq!((param(1, "array"), param(2, "offset"), param(0, "type")), (true.into(), 20.into(), ".u64".into()));
    assert_eq!(module["entries"][1]["status"], "unsupported");
    assert_eq!(
        (&module["unsupported"][0]["line"], &module["unsupported"][0]["opcode"]),
        (&18.into(), &"ld.global.b32".into())
    );
    let globals = module["globals"].as_array().unwrap();
    let of = |name: &str| globals.iter().find(|g| g["name"] == name).unwrap();
    let table = of("_ZN2ns5tableE");
    assert_eq!((&table["space"], &table["size"], &table["initialised"]), (&"global".into(), &16.into(), &true.into()));
    assert_eq!(table["demangled"], "ns::table");
    assert_eq!(of("dynamic")["dynamic"], true);
    assert_eq!(module["externs"][0]["name"], "other");
    assert_eq!(module["functions"][0]["demangled"], "side(int)");
    let human = f.run("info k.ptx").ends(0).out;
    for text in [
        "entry _Z4mainPfi (main(float*, int)) (line 9)",
        ".maxntid 128, 2",
        "offset 8, 12 bytes, aligned to 4",
        "unsupported: line 18",
    ] {
        assert!(human.contains(text), "no `{text}` in {human}");
    }
    let fat = &f.run("info --format json zstd.fatbin").ends(0).objects()[0];
    assert_eq!((&fat["kind"], fat["members"].as_array().unwrap().len()), (&"fatbin".into(), 4));
    let member = &fat["members"][1];
    assert_eq!(
        (&member["kind"], &member["target"], &member["packing"]),
        (&"ptx".into(), &"sm_75".into(), &"zstd".into())
    );
    assert_eq!((&member["used"], &fat["members"][2]["used"]), (&true.into(), &false.into()));
    assert_eq!(fat["modules"][0]["entries"][0]["demangled"], "saxpy(int, float, float const*, float*)");
    assert_eq!(f.run("info --format json two").ends(0).objects()[0]["modules"].as_array().unwrap().len(), 2);
    assert!(f.run("info --ptx two#3").ends(0).out.contains(".entry _Z5firstPi"));
    f.run("info absent").ends(5);
}

#[test]
fn messages_have_both_names() {
    let f = Folder::with("both", &SCALE.replace("entry scale(", "entry _Z5scalePKfPffi("));
    let trap = f.run("run k.ptx scale --grid 1 --block 32 --engine interp zero:4 zero:128 2.0 32").ends(1);
    assert!(
        trap.err.contains("in the entry `_Z5scalePKfPffi`, which is `scale(float const*, float*, float, int)`"),
        "{trap:?}"
    );
    let json =
        f.run("run k.ptx scale --grid 1 --block 32 --engine interp --format json zero:4 zero:128 2.0 32").ends(1);
    let launch = &json.objects()[0];
    let name = "scale(float const*, float*, float, int)";
    assert_eq!((&launch["entry"], &launch["demangled"]), (&"_Z5scalePKfPffi".into(), &name.into()));
    assert_eq!(launch["trap"]["names"]["_Z5scalePKfPffi"], name);
    f.run("run k.ptx scale --grid 1 --block 32 1").ends(2).says("`_Z5scalePKfPffi` is `scale(");
    f.write("wrong.ptx", format!("{HEAD}.entry k() {{ call _Z4funcPi; ret; }}\n"));
    f.run("check wrong.ptx").ends(3).says("= note: `_Z4funcPi` is `func(int*)`");
    let object = &f.run("check --format json wrong.ptx").ends(3).objects()[0];
    assert_eq!(object["names"]["_Z4funcPi"], "func(int*)");
}

#[test]
fn what_runs_on_gpus_only_is_unsupported() {
    let launch = "
.extern .func (.param .b32 r) cudaGraphLaunch(.param .b64 a, .param .b64 b);
.extern .func (.param .b32 r) cudaDeviceSynchronize();
.visible .entry parent()
{
    .param .b64 a; .param .b64 b; .param .b32 r;
    st.param.b64 [a], 0;
    st.param.b64 [b], 0;
    call (r), cudaGraphLaunch, (a, b);
    call (r), cudaDeviceSynchronize;
    ret;
}
.visible .entry child() { ret; }
";
    let f = Folder::with("gpus", launch);
    for line in ["check k.ptx", "compile k.ptx", "run k.ptx parent --grid 1 --block 1"] {
        f.run(line).ends(4).says("error[E0901]: a kernel that works on graphs is not supported yet").says("k.ptx:12:");
    }
    let told = f.run("check --format json k.ptx").ends(4).objects();
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|d| d["kind"] == "unsupported" && d["help"].is_string()));
    let wrong = ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b32 a, .param .b64 b);
.visible .entry parent()
{
    .param .b32 a; .param .b64 b; .param .b32 r;
    call (r), cudaLaunchDeviceV2, (a, b);
    ret;
}
";
    f.write("wrong.ptx", format!("{HEAD}{wrong}"));
    f.run("check wrong.ptx").ends(3).says("has other parameters than are declared").says("cuda_device_runtime_api.h");
}
