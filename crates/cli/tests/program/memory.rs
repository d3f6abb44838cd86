//! Structures, addresses in memory and variables of modules: in jobs and on the command line.

use crate::common::{ENGINES, Folder, HEAD, Ran, floats};
use serde_json::{Value, json};

/// y[i] = a * x[i] for i < n, all from one structure: x at 0, n at 8, a at 12, y at 16.
const BY_VALUE: &str = r"
.visible .entry scale(.param .align 8 .b8 s[24])
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [s];
    ld.param.u32 %r1, [s+8];
    ld.param.f32 %f1, [s+12];
    ld.param.u64 %rd2, [s+16];
    mov.u32 %r2, %tid.x;
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 ret;
    mul.wide.u32 %rd3, %r2, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    mul.f32 %f3, %f2, %f1;
    st.global.f32 [%rd5], %f3;
    ret;
}
";

/// Thread i writes the first word behind the i-th of n addresses, or 7 for a null pointer.
const GATHER: &str = r"
.visible .entry gather(.param .u64 list, .param .u64 out)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [list];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 8;
    add.u64 %rd4, %rd1, %rd3;
    ld.global.u64 %rd5, [%rd4];
    mul.wide.u32 %rd6, %r1, 4;
    add.u64 %rd7, %rd2, %rd6;
    setp.eq.u64 %p1, %rd5, 0;
    mov.u32 %r2, 7;
    @!%p1 ld.u32 %r2, [%rd5];
    st.global.u32 [%rd7], %r2;
    ret;
}
";

/// Thread i adds table[i] to where[i], and counts itself.
const VARIABLES: &str = r"
.const .align 4 .f32 table[4] = {1.0, 2.0, 3.0, 4.0};
.visible .global .align 8 .u64 where;
.visible .global .align 4 .u32 counter = 5;
.visible .entry add()
{
    .reg .b32 %r<3>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<8>;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd1, %r1, 4;
    mov.u64 %rd2, table;
    add.u64 %rd3, %rd2, %rd1;
    ld.const.f32 %f1, [%rd3];
    ld.global.u64 %rd4, [where];
    add.u64 %rd5, %rd4, %rd1;
    ld.global.f32 %f2, [%rd5];
    add.f32 %f3, %f1, %f2;
    st.global.f32 [%rd5], %f3;
    atom.global.add.u32 %r2, [counter], 1;
    ret;
}
";

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Runs a job on both engines.
fn run_job(f: &Folder, job: &Value, status: i32) -> Vec<Ran> {
    f.write("j.json", job.to_string());
    ENGINES.iter().map(|e| f.run(&format!("run --job j.json --engine {e}")).ends(status)).collect()
}

fn by_value(args: Value) -> Value {
    json!({
        "module": "k.ptx",
        "buffers": {"x": {"values": [1, 2, -3, 0.5], "type": "f32"}, "y": {"zero": 16}},
        "launches": [{"grid": 1, "block": 4, "args": [args]}],
        "outputs": {"y": "y.bin"},
    })
}

#[test]
fn a_structure_is_an_argument() {
    let f = Folder::with("structure", BY_VALUE);
    let want = floats(&[2.5, 5.0, -7.5, 1.25]);
    let n = json!({"scalar": "4", "type": "s32"});
    let a = json!({"scalar": 2.5, "type": "f32"});
    for fields in [
        json!([{"buffer": "x"}, n, a, {"buffer": "y"}]),
        json!([{"buffer": "x", "at": 0}, {"scalar": 4, "type": "u32", "at": 8}, a, {"buffer": "y", "at": 16}]),
        json!([{"buffer": "y", "at": 16}, {"bytes": "0400000000002040", "at": 8}, {"buffer": "x", "at": 0}]),
        json!([{"struct": [{"buffer": "x"}, {"struct": [n, a]}]}, {"buffer": "y"}]),
    ] {
        run_job(&f, &by_value(json!({"struct": fields})), 0);
        assert_eq!(f.read("y.bin"), want, "{fields}");
    }
    f.write("x.bin", floats(&[1.0, 2.0, -3.0, 0.5]));
    for engine in ENGINES {
        for arg in
            ["struct:in:x.bin,s32:4,f32:2.5,out:z.bin:16", "struct:[@16:out:z.bin:16,@0:in:x.bin,[s32:4,f32:2.5]]"]
        {
            f.run(&format!("run k.ptx --engine {engine} --grid 1 --block 4 {arg}")).ends(0);
            assert_eq!(f.read("z.bin"), want, "{arg}");
        }
    }
}

#[test]
fn structures_are_checked_against_the_parameter() {
    let f = Folder::with("checked", BY_VALUE);
    let wrong = |fields: Value, sentence: &str| {
        for ran in run_job(&f, &by_value(json!({"struct": fields})), 2) {
            ran.says("launch 1: argument 1: ").says(sentence);
        }
        assert!(!f.has("y.bin"));
    };
    let x = json!({"buffer": "x"});
    wrong(
        json!([x, {"scalar": 4, "type": "s32"}]),
        "a structure of 16 bytes, with fields of 8 bytes at 0, 4 at 8, for `s`, which has 24 bytes",
    );
    wrong(json!([x, {"scalar": 4}]), "field 2: a `scalar` in a structure needs a `type`");
    wrong(json!([x, {"scalar": 4, "type": "s31"}]), "field 2: `s31` is no element type");
    wrong(
        json!([x, {"buffer": "x", "at": 4}, {"zero": 8}]),
        "field 2: 8 bytes at 4, where a field of 8 bytes at 0 lies",
    );
    wrong(json!([x, {"buffer": "z"}]), "field 2: `z` is no buffer of the job, which has `x`, `y`");
    wrong(json!([x, {"global": "g"}, x]), "no `.global` or `.const` variable `g`: the module has none");
    wrong(json!([x, {"buffer": "x", "offset": 17}, x]), "an offset of 17 in a buffer of 16 bytes");
    wrong(json!([x, {}]), "field 2: expected one of `buffer`, `scalar` and `bytes`");
    f.run("run k.ptx --grid 1 --block 4 struct:zero:4,5").ends(2).says("needs its type, as s32:5");
    f.run("run k.ptx --grid 1 --block 4 struct:zero:4,s32:5").ends(2).says("which has 24 bytes");
}

#[test]
fn a_trap_through_a_structure_names_the_buffer() {
    let f = Folder::with("named", BY_VALUE);
    let fields = json!([{"buffer": "x"}, {"scalar": 5, "type": "s32"}, {"zero": 4}, {"buffer": "y"}]);
    let mut job = by_value(json!({"struct": fields}));
    job["launches"][0]["block"] = 32.into();
    for ran in run_job(&f, &job, 1) {
        ran.says("read of 4 bytes at x+16, 0 bytes past the end")
            .says("`x` is a buffer: 4 elements of f32")
            .says("the access begins at element 4 of 4 elements of f32");
    }
}

#[test]
fn buffers_hold_addresses() {
    let f = Folder::with("addresses", GATHER);
    let job = json!({
        "module": "k.ptx",
        "buffers": {
            "x": {"values": [10, 11, 12], "type": "u32"},
            "y": {"values": [20], "type": "u32"},
            "list": {"addresses": ["y", {"buffer": "x", "offset": 8}, null, "x", {"buffer": "list", "offset": 32}, {"global": "g"}]},
            "nodes": {"struct": [{"buffer": "x"}, {"buffer": "y"}, null, {"scalar": 0, "type": "u64"}, {"buffer": "y"}, {"global": "g", "offset": 4}]},
            "out": {"zero": 24}, "out2": {"zero": 24},
        },
        "launches": [
            {"grid": 1, "block": 6, "args": [{"buffer": "list"}, {"buffer": "out"}]},
            {"grid": 1, "block": 6, "args": [{"buffer": "nodes"}, {"buffer": "out2"}]},
        ],
        "outputs": {"out": "out.bin", "out2": "out2.bin"},
    });
    f.write("k.ptx", format!("{HEAD}.visible .global .u32 g[2] = {{30, 31}};\n{GATHER}"));
    run_job(&f, &job, 0);
    let out = f.read("out.bin");
    assert_eq!((&out[..16], &out[20..]), (&words(&[20, 12, 7, 10])[..], &words(&[30])[..]));
    assert_eq!(f.read("out2.bin"), words(&[10, 20, 7, 7, 20, 31]));
    f.write("x.bin", words(&[10, 11]));
    for engine in ENGINES {
        let line = format!(
            "run k.ptx --engine {engine} --grid 1 --block 4 addresses:in:x.bin,null,global:g,zero:4 out:o.bin:16"
        );
        f.run(&line).ends(0);
        assert_eq!(f.read("o.bin"), words(&[10, 7, 30, 0]));
        // What a kernel writes to such a buffer comes back.
        let line = format!("run k.ptx --engine {engine} --grid 1 --block 1 addresses:in:x.bin struct:out:o2.bin:4");
        f.run(&line).ends(0);
        assert_eq!(f.read("o2.bin"), words(&[10]));
    }
}

#[test]
fn addresses_of_32_bits_have_4_bytes() {
    let f = Folder::new("narrow");
    f.write(
        "k.ptx",
        ".version 8.0\n.target sm_80\n.address_size 32\n.visible .entry k(.param .u32 list, .param .u32 to) {
    .reg .b32 %r<5>;
    ld.param.u32 %r1, [list];
    ld.param.u32 %r2, [to];
    ld.global.u32 %r3, [%r1+4];
    ld.global.u32 %r4, [%r3];
    st.global.u32 [%r2], %r4;
    ret;
}\n",
    );
    f.write("x.bin", words(&[9]));
    for engine in ENGINES {
        f.run(&format!("run k.ptx --engine {engine} --grid 1 --block 1 addresses:null,in:x.bin out:y.bin:4")).ends(0);
        assert_eq!(f.read("y.bin"), words(&[9]));
    }
}

#[test]
fn variables_are_filled_and_read_back() {
    let f = Folder::with("variables", VARIABLES);
    f.write("x.bin", floats(&[10.0, 20.0, 30.0, 40.0]));
    f.write("table.bin", floats(&[0.5, 0.25, 0.125, 0.0]));
    let job = json!({
        "module": "k.ptx",
        "buffers": {"x": {"file": "x.bin", "type": "f32"}},
        "globals": {"where": {"addresses": ["x"]}, "table": {"file": "table.bin"}},
        "launches": [
            {"grid": 1, "block": 4},
            {"grid": 1, "block": [2], "globals": {"table": {"values": [100], "type": "f32", "offset": 4}}},
        ],
        "outputs": {"x": "y.npy", "counter": "counter.npy:u32:1", "table": "t.bin"},
    });
    for ran in run_job(&f, &job, 0) {
        assert!(ran.out.contains("y.npy: f32 4: 11 120.25 30.125 40\n"), "{ran:?}");
        assert!(ran.out.contains("counter.npy: u32 1: 11\n"), "{ran:?}");
    }
    assert_eq!(f.read("t.bin"), floats(&[0.5, 100.0, 0.125, 0.0]));
    for engine in ENGINES {
        let line = format!(
            "run k.ptx --engine {engine} --grid 1 --block 4 --global where=addresses:inout:x.bin:y.bin \
             --global table+8=f32:7:8 --global-out table=t.npy:f32:4 --global counter=u32:0 --global-out counter=c.bin"
        );
        let ran = f.run(&line).ends(0);
        assert!(ran.out.contains("t.npy: f32 4: 1 2 7 8\n"), "{ran:?}");
        assert_eq!(f.read("y.bin"), floats(&[11.0, 22.0, 37.0, 48.0]));
        assert_eq!(f.read("c.bin"), words(&[4]));
    }
}

#[test]
fn variables_of_several_modules() {
    let f = Folder::with("several", VARIABLES);
    f.write("b.ptx", format!("{HEAD}{VARIABLES}"));
    f.write("c.ptx", format!("{HEAD}{}", crate::common::EMPTY));
    let launch = |module: &str| json!({"module": module, "grid": 1, "block": 1});
    let mut job = json!({
        "buffers": {"x": {"zero": 16}},
        // The first one is for both modules.
        "globals": {"where": {"addresses": ["x"]}, "b.ptx:counter": {"values": [100], "type": "u32"}},
        "launches": [launch("k.ptx"), launch("b.ptx"), launch("c.ptx")],
        "outputs": {"k.ptx:counter": "k.bin", "b.ptx:counter": "b.bin"},
    });
    run_job(&f, &job, 0);
    assert_eq!((f.read("k.bin"), f.read("b.bin")), (words(&[6]), words(&[101])));
    job["outputs"] = json!({"counter": "c.bin"});
    for ran in run_job(&f, &job, 2) {
        ran.says("several modules").says("`b.ptx:counter`");
    }
}

#[test]
fn variables_by_the_names_of_the_source() {
    let f =
        Folder::with("readable", &VARIABLES.replace("table", "_ZN2ns5tableE").replace("counter", "_ZN2ns7counterE"));
    let mut job = json!({
        "module": "k.ptx",
        "buffers": {"x": {"zero": 16}},
        "globals": {"where": {"addresses": ["x"]}, "ns::counter": {"values": [100], "type": "u32"}},
        "launches": [{"grid": 1, "block": 1}],
        "outputs": {"counter": "c.bin"},
    });
    run_job(&f, &job, 0);
    assert_eq!(f.read("c.bin"), words(&[101]));
    job["outputs"] = json!({"ns::": "c.bin"});
    for ran in run_job(&f, &job, 2) {
        ran.says("which variable: `ns::` may be `ns::table` (`_ZN2ns5tableE`), `ns::counter` (`_ZN2ns7counterE`)");
    }
}

#[test]
fn wrong_variables_get_a_sentence() {
    let f = Folder::with("wrong", VARIABLES);
    f.write("x.bin", floats(&[1.0]));
    let wrong = |key: &str, value: Value, status: i32, sentence: &str| {
        let mut job = json!({"module": "k.ptx", "launches": [{"grid": 1, "block": 1}]});
        job[key] = value;
        for ran in run_job(&f, &job, status) {
            ran.says(sentence);
        }
    };
    let table = |content: Value| json!({"table": content});
    wrong("globals", json!({"tabel": {"zero": 16}}), 2, "variable `tabel`: the module has `table`, `where`, `counter`");
    wrong("globals", table(json!({"zero": 8})), 2, "8 bytes for `table`, which has 16 bytes; an offset fills a part");
    wrong("globals", table(json!({"file": "x.bin"})), 5, "4 bytes for `table`");
    wrong("globals", table(json!({"zero": 8, "offset": 12})), 2, "8 bytes from byte 12 on");
    wrong("globals", table(json!({"values": [1, 2, 3, 4]})), 2, "variable `table`: `values` need a `type`");
    wrong(
        "globals",
        table(json!({"addresses": ["x", "x"]})),
        2,
        "address 1: `x` is no buffer of the job, which has none",
    );
    wrong("globals", table(json!({"values": [1, [2]], "type": "f32"})), 2, "different lengths");
    wrong("outputs", json!({"tabel": "t.bin"}), 2, "output of `tabel`, which is no buffer of the job: ");
    wrong("outputs", json!({"table": "t.npy"}), 2, "a type and a shape");
    let run = |rest: &str| f.run(&format!("run k.ptx --grid 1 --block 1 {rest}")).ends(2);
    run("--global table").says("--global `table`: expected NAME=");
    run("--global table=f32:1").says("4 bytes for `table`");
    run("--global tabel=f32:1").says("no `.global` or `.const` variable `tabel`");
    run("--global-out tabel=x.bin").says("no `.global` or `.const` variable `tabel`");
}

#[test]
fn jobs_link_modules() {
    let f = Folder::with(
        "linked",
        ".extern .func (.param .u32 r) number();
.visible .entry k(.param .u64 to) {
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    .param .u32 got;
    call (got), number;
    ld.param.u32 %r1, [got];
    ld.param.u64 %rd1, [to];
    st.global.u32 [%rd1], %r1;
    ret;
}\n",
    );
    for (file, n) in [("five.ptx", 5), ("six.ptx", 6)] {
        f.write(file, format!("{HEAD}.visible .func (.param .u32 r) number() {{ st.param.u32 [r], {n}; ret; }}\n"));
    }
    let to = |name: &str| json!({"grid": 1, "block": 1, "args": [{"buffer": name}]});
    let mut second = to("b");
    second["link"] = json!(["six.ptx"]);
    let mut job = json!({
        "module": "k.ptx", "link": ["five.ptx"],
        "buffers": {"a": {"zero": 4}, "b": {"zero": 4}},
        "launches": [to("a"), second],
        "expect": {"a": {"values": [5], "type": "u32"}, "b": {"values": [6], "type": "u32"}},
    });
    run_job(&f, &job, 0);
    job["link"] = json!([]);
    for ran in run_job(&f, &job, 3) {
        ran.says("`number`").says("nothing is compared with `expect`");
    }
    job["link"] = json!(["absent.ptx"]);
    run_job(&f, &job, 5);
}

/// Reads a texture of an argument by the sampler of another one, and one of the module, and writes a surface.
const IMAGES: &str = r"
.visible .global .texref own;
.visible .entry images(.param .u64 t, .param .u64 s, .param .u64 to)
{
    .reg .b64 %t, %s, %to;
    .reg .b32 %at, %v;
    .reg .f32 %x, %r<4>, %q<4>;
    ld.param.u64 %t, [t];
    ld.param.u64 %s, [s];
    ld.param.u64 %to, [to];
    mov.u32 %at, %tid.x;
    cvt.rn.f32.u32 %x, %at;
    add.f32 %x, %x, 0f3F800000;
    tex.1d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, %s, {%x}];
    tex.1d.v4.f32.s32 {%q0, %q1, %q2, %q3}, [own, {%at}];
    add.f32 %r0, %r0, %q0;
    shl.b32 %at, %at, 2;
    mov.b32 %v, %r0;
    sust.b.1d.b32.trap [%to, {%at}], %v;
    ret;
}
";

#[test]
fn jobs_have_textures() {
    let f = Folder::with("textures", IMAGES);
    f.write("k.ptx", format!("{HEAD}{IMAGES}").replace(".target sm_80", ".target sm_80, texmode_independent"));
    let job = |texture: Value| {
        json!({
            "module": "k.ptx",
            "buffers": { "a": { "type": "f32", "values": [1, 3, 5, 9] }, "out": { "zero": 16 } },
            "textures": { "t": texture },
            "samplers": { "s": { "filter": "linear", "address": ["clamp_to_edge"] } },
            "surfaces": { "to": { "buffer": "out", "width": 4 } },
            "globals": { "own": { "texture": { "buffer": "a", "offset": 8, "width": 2, "linear": true } } },
            "launches": [{ "grid": 1, "block": 4, "args": [{ "buffer": "t" }, { "buffer": "s" }, { "buffer": "to" }] }],
            "expect": { "out": { "type": "f32", "values": [7, 13, 7, 9] } }
        })
    };
    run_job(&f, &job(json!({ "buffer": "a", "width": 4 })), 0);
    for (texture, sentence) in [
        (json!({ "buffer": "a" }), "texref `t`: `width` is missing"),
        (json!({ "buffer": "b", "width": 4 }), "`b` is no buffer of the job"),
        (json!({ "buffer": "a", "width": 4, "channel": "u9" }), "expected one of `u8`"),
        (json!({ "buffer": "a", "wide": 4 }), "unknown field `wide`"),
    ] {
        for ran in run_job(&f, &job(texture), 2) {
            ran.says(sentence);
        }
    }
}
