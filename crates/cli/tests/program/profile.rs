//! `profile` and `cover`: counts of small kernels by hand and against plain counts, comparisons, pages, lcov, mistakes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use crate::common::{Folder, Ran, SCALE};

/// A warp that parts, a guard, and a switch.
const PARTS: &str = r"
.visible .entry parts(.param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    mov.u32 %r1, %tid.x;
    ld.param.u32 %r2, [n];
    setp.lt.u32 %p1, %r1, %r2;
    @%p1 bra then;
    mov.u32 %r3, 7;
    bra.uni out;
then:
    mov.u32 %r3, 9;
out:
    @!%p1 add.u32 %r3, %r3, 1;
    rem.u32 %r4, %r1, 3;
list: .branchtargets a, b, c;
    brx.idx %r4, list;
a:
    ret;
b:
    ret;
c:
    ret;
}
";

/// The statements of the only launch, by the begin of their text.
fn statements(ran: &Ran) -> Vec<Value> {
    let objects = ran.objects();
    assert_eq!(objects.len(), 1, "{ran:?}");
    objects[0]["launches"][0]["statements"].as_array().unwrap().clone()
}

#[track_caller]
fn row<'v>(rows: &'v [Value], text: &str) -> &'v Value {
    let mut found = rows.iter().filter(|row| row["text"].as_str().unwrap().starts_with(text));
    let row = found.next().unwrap_or_else(|| panic!("no `{text}`"));
    assert!(found.next().is_none(), "several `{text}`");
    row
}

fn numbers(row: &Value, keys: &[&str]) -> Vec<u64> {
    keys.iter().map(|key| row[*key].as_u64().unwrap_or_else(|| panic!("no `{key}` in {row}"))).collect()
}

const RUNS: [&str; 3] = ["warps", "lanes", "active"];

#[test]
fn lanes_part_and_meet() {
    let f = Folder::with("profile_parts", PARTS);
    let ran = f.run("profile k.ptx --grid 1 --block 64 40 --format json").ends(0).says("interpreter");
    let rows = statements(&ran);
    // The second warp parts: 8 lanes below 40, 24 not.
    assert_eq!(numbers(row(&rows, "@%p1 bra"), &RUNS), [2, 64, 64]);
    let branch = &row(&rows, "@%p1 bra")["branch"];
    assert_eq!((&branch["ways"], &branch["divergent"]), (&[40, 24].into(), &1.into()));
    assert_eq!(numbers(row(&rows, "mov.u32 %r3, 7"), &RUNS), [1, 24, 24]);
    assert_eq!(numbers(row(&rows, "mov.u32 %r3, 9"), &RUNS), [2, 40, 40]);
    // They have met again; the guard holds for 24.
    assert_eq!(numbers(row(&rows, "@!%p1 add"), &RUNS), [2, 64, 24]);
    assert_eq!(row(&rows, "@!%p1 add")["which"], 0xffff_ff00_u32);
    let branch = &row(&rows, "brx.idx")["branch"];
    assert_eq!((&branch["ways"], &branch["divergent"]), (&[22, 21, 21].into(), &2.into()));
    let totals = &ran.objects()[0]["launches"][0]["totals"];
    assert_eq!(numbers(totals, &["branches", "divergent_branches", "guarded_off"]), [4, 3, 40]);
    // 3 + 1 branch, 1 + 1 of one way, 2 of the other, then 3 together and 3 returns of each warp.
    assert_eq!(totals["warp_instructions"], 2 * 4 + 2 + 2 + 2 * 3 + 2 * 3);
}

#[test]
fn strides_touch_sectors() {
    let text = r"
.visible .entry strided(.param .u64 x, .param .u32 stride)
{
    .reg .b32 %r<4>; .reg .f32 %f<2>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [x];
    ld.param.u32 %r1, [stride];
    mov.u32 %r2, %tid.x;
    mul.lo.u32 %r3, %r2, %r1;
    mul.wide.u32 %rd2, %r3, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
    ret;
}
";
    let f = Folder::with("profile_stride", text);
    for (stride, sectors, bytes) in
        [(0, 1, 4), (1, 4, 128), (2, 8, 128), (3, 12, 128), (4, 16, 128), (8, 32, 128), (16, 32, 128)]
    {
        let ran = f.run(&format!("profile k.ptx --grid 1 --block 32 zero:2048 {stride} --format json")).ends(0);
        let rows = statements(&ran);
        let load = &row(&rows, "ld.global")["traffic"][0];
        assert_eq!(
            numbers(load, &["requests", "lanes", "bytes", "touched", "sectors", "width"]),
            [1, 32, 128, bytes, sectors, 4],
            "stride {stride}"
        );
    }
}

/// What a caller and a function hand each other is no traffic of local memory, and what the function keeps there is.
#[test]
fn parameters_of_functions_are_no_local_memory() {
    let text = r"
.func (.param .b32 sum) add(.param .b32 a, .param .b32 b)
{
    .local .align 4 .b8 kept[4];
    .reg .b32 %r<4>;
    ld.param.b32 %r1, [a];
    ld.param.b32 %r2, [b];
    st.local.b32 [kept], %r1;
    ld.local.b32 %r1, [kept];
    add.u32 %r3, %r1, %r2;
    st.param.b32 [sum], %r3;
    ret;
}
.visible .entry caller(.param .u64 x)
{
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    {
        .param .b32 one; .param .b32 two; .param .b32 back;
        st.param.b32 [one], %r1;
        st.param.b32 [two], %r1;
        call.uni (back), add, (one, two);
        ld.param.b32 %r2, [back];
    }
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd1, %rd2;
    st.global.b32 [%rd2], %r2;
    ret;
}
";
    let f = Folder::with("profile_params", text);
    for engine in ["", " --engine interp"] {
        let ran = f.run(&format!("profile k.ptx --grid 1 --block 32 zero:128 --format json{engine}")).ends(0);
        // One word of each lane, written and read.
        assert_eq!(ran.objects()[0]["launches"][0]["totals"]["local_sectors"], 8);
        let rows = statements(&ran);
        for text in ["ld.param.b32 %r2, [b]", "st.param.b32 [sum]", "st.param.b32 [one]", "ld.param.b32 %r2, [back]"] {
            let moved = &row(&rows, text)["traffic"][0];
            assert_eq!(numbers(moved, &["lanes", "bytes", "sectors"]), [32, 128, 0], "{text}");
            assert_eq!(moved["space"], "param", "{text}");
        }
    }
}

#[test]
fn words_of_shared_memory_meet_in_banks() {
    let text = r"
.visible .entry banks(.param .u32 one, .param .u32 two, .param .u32 four)
{
    .reg .b32 %r<8>;
    .shared .align 16 .b8 s[8192];
    mov.u32 %r1, %tid.x;
    ld.param.u32 %r2, [one];
    ld.param.u32 %r3, [two];
    ld.param.u32 %r4, [four];
    mul.lo.u32 %r2, %r2, %r1;
    mul.lo.u32 %r3, %r3, %r1;
    mul.lo.u32 %r4, %r4, %r1;
    st.shared.u32 s[%r2], %r1;
    st.shared.v2.u32 s[%r3], {%r1, %r1};
    st.shared.v4.u32 s[%r4], {%r1, %r1, %r1, %r1};
    ret;
}
"
    .replace("s[%r2]", "[%r5]")
    .replace("s[%r3]", "[%r6]")
    .replace("s[%r4]", "[%r7]")
    .replace(
        "    st.shared.u32 ",
        "    mov.u32 %r5, s;\n    add.u32 %r6, %r5, %r3;\n    add.u32 %r7, %r5, %r4;\n    add.u32 %r5, %r5, %r2;\n    st.shared.u32 ",
    );
    let f = Folder::with("profile_banks", &text);
    // Bytes between lanes for accesses of 4, 8 and 16 bytes, and the passes of each.
    for (strides, passes) in [
        ([4, 8, 16], [1, 2, 4]),
        ([8, 16, 32], [2, 4, 8]),
        ([128, 128, 128], [32, 32, 32]),
        ([132, 136, 144], [1, 2, 4]),
        ([0, 0, 0], [1, 2, 4]),
    ] {
        let [one, two, four] = strides;
        let ran = f.run(&format!("profile k.ptx --grid 1 --block 32 {one} {two} {four} --format json")).ends(0);
        let rows = statements(&ran);
        for ((text, least), want) in [("st.shared.u32", 1), ("st.shared.v2", 2), ("st.shared.v4", 4)].iter().zip(passes)
        {
            let sums = &row(&rows, text)["traffic"][0];
            let got = numbers(sums, &["passes", "least_passes", "sectors"]);
            assert_eq!(got, [want, *least, 0], "{text} with {strides:?}");
        }
    }
}

#[test]
fn atomics_barriers_and_products_are_counted() {
    let text = r"
.visible .entry mixed(.param .u64 y)
{
    .reg .pred %p<2>; .reg .b32 %r<12>; .reg .f32 %f<12>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [y];
    red.global.add.u32 [%rd1+8], 1;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 32;
    @%p1 bra meet;
    add.u32 %r2, %r1, 1;
    add.u32 %r2, %r2, 1;
    add.u32 %r2, %r2, 1;
meet:
    bar.sync 0;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r3,%r4,%r5,%r6}, {%r7,%r8}, {%f5,%f6,%f7,%f8};
    fma.rn.f32 %f9, %f1, %f2, %f3;
    @%p1 mul.f32 %f10, %f1, %f2;
    ret;
}
";
    let f = Folder::with("profile_mixed", text);
    let ran = f.run("profile k.ptx --grid 2 --block 64 zero:64 --format json --device sm_90 --regs 64").ends(0);
    let rows = statements(&ran);
    let red = row(&rows, "red.global");
    assert_eq!(numbers(&red["traffic"][0], &["requests", "lanes", "most_on_one", "sectors"]), [4, 128, 128, 4]);
    assert_eq!((&red["addresses"], &red["hot"][0]["lanes"]), (&1.into(), &128.into()));
    assert_eq!(red["hot"][0]["place"], "argument 1 (`y`)+8");
    // In each block one warp has executed three statements more than the other: 6 and 9.
    assert_eq!(numbers(&row(&rows, "bar.sync")["waits"], &["warps", "work", "waited"]), [4, 30, 6]);
    let launch = &ran.objects()[0]["launches"][0];
    let totals = &launch["totals"];
    assert_eq!(numbers(totals, &["barriers", "barrier_waits", "matrix_instructions"]), [4, 6, 4]);
    // Two for each of 16 by 8 by 16 products of each warp; two for each lane and fma; one for half of the lanes.
    assert_eq!(numbers(totals, &["matrix_operations", "f32_operations"]), [4 * 2 * 16 * 8 * 16, 2 * 128 + 64]);
    assert_eq!(numbers(&launch["warps"], &["count", "work", "busiest"]), [4, 2 * (10 + 13), 2 * 2 * 13]);
    let occupancy = &launch["occupancy"];
    assert_eq!(numbers(occupancy, &["blocks", "warps", "most_warps"]), [16, 32, 64]);
    assert_eq!(occupancy["limited_by"], serde_json::json!(["registers"]));
}

/// Numbers that look random.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A body of branches, loops and guarded statements, one a line; labels have lines of their own.
fn body(rng: &mut Rng, depth: u32, labels: &mut u32, out: &mut Vec<String>) {
    for _ in 0..2 + rng.below(4) {
        let bits = rng.below(8);
        out.push(format!("shr.u32 %r5, %r2, {bits};"));
        out.push(format!("and.b32 %r5, %r5, {};", 1 + rng.below(7)));
        out.push(format!("setp.lt.u32 %p1, %r5, {};", rng.below(6)));
        *labels += 1;
        let n = *labels;
        match rng.below(if depth > 0 { 3 } else { 1 }) {
            0 => {
                let not = if rng.below(2) == 0 { "" } else { "!" };
                out.push(format!("@{not}%p1 mad.lo.u32 %r2, %r2, 1664525, 1013904223;"));
            }
            1 => {
                out.push(format!("@%p1 bra else{n};"));
                body(rng, depth - 1, labels, out);
                out.push(format!("bra end{n};"));
                out.push(format!("else{n}:"));
                body(rng, depth - 1, labels, out);
                out.push(format!("end{n}:"));
            }
            _ => {
                out.push(format!("mov.u32 %c{depth}, %r5;"));
                out.push(format!("top{n}:"));
                body(rng, depth - 1, labels, out);
                out.push(format!("setp.eq.u32 %p2, %c{depth}, 0;"));
                out.push(format!("@%p2 bra out{n};"));
                out.push(format!("sub.u32 %c{depth}, %c{depth}, 1;"));
                out.push(format!("bra top{n};"));
                out.push(format!("out{n}:"));
            }
        }
    }
}

fn kernel(lines: &[String], variables: &str) -> String {
    let body: String = lines.iter().map(|line| format!("    {line}\n")).collect();
    format!(
        "{variables}\n.visible .entry k(.param .u64 y)\n{{\n.reg .pred %p<4>; .reg .b32 %r<8>, %c<4>; .reg .b64 %rd<4>, %at;\n{body}}}\n"
    )
}

/// Each statement counts itself by an atomic in front of it, in compiled code: what the counter says must be the same.
#[test]
fn random_kernels_count_themselves_alike() {
    for seed in 0..8 {
        let mut rng = Rng(seed);
        let mut lines: Vec<String> =
            ["ld.param.u64 %rd1, [y];", "mov.u32 %r1, %tid.x;", "mov.u32 %r3, %ctaid.x;"].map(str::to_owned).to_vec();
        lines.push("mad.lo.u32 %r2, %r3, 977, %r1;".into());
        body(&mut rng, 2, &mut 0, &mut lines);
        lines.push("ret;".into());
        let statements_of = |lines: &[String]| lines.iter().filter(|l| !l.ends_with(':')).count();
        let n = statements_of(&lines);
        let mut told = vec!["mov.u64 %at, counts;".to_owned()];
        let mut next = 0;
        for line in &lines {
            if !line.ends_with(':') {
                told.push(format!("red.global.add.u32 [%at+{}], 1;", 8 * next));
                let guard = line.split_once(' ').filter(|(g, rest)| g.starts_with('@') && !rest.starts_with("bra"));
                if let Some((guard, _)) = guard {
                    told.push(format!("{guard} red.global.add.u32 [%at+{}], 1;", 8 * next + 4));
                }
                next += 1;
            }
            told.push(line.clone());
        }
        let f = Folder::with("profile_random", &kernel(&lines, ""));
        f.write(
            "told.ptx",
            format!("{}{}", crate::common::HEAD, kernel(&told, &format!(".global .u32 counts[{}];", 2 * n))),
        );
        f.run("run told.ptx --grid 3 --block 80 zero:8 --global-out counts=counts.bin").ends(0);
        let counts: Vec<u64> = f
            .read("counts.bin")
            .chunks_exact(4)
            .map(|c| u64::from(u32::from_le_bytes([c[0], c[1], c[2], c[3]])))
            .collect();
        let rows = statements(&f.run("profile k.ptx --grid 3 --block 80 zero:8 --format json").ends(0));
        assert_eq!(rows.len(), n, "seed {seed}");
        for (i, row) in rows.iter().enumerate() {
            let text = row["text"].as_str().unwrap();
            let guarded = text.starts_with('@') && !text.contains("bra");
            let want = [counts[2 * i], if guarded { counts[2 * i + 1] } else { counts[2 * i] }];
            assert_eq!(numbers(row, &["lanes", "active"]), want, "seed {seed}: {row}");
        }
    }
}

/// Random accesses against sets of addresses that the test makes by itself.
#[test]
fn random_accesses_touch_what_plain_sets_say() {
    let mut rng = Rng(42);
    let (mut text, mut wanted) = (String::new(), Vec::new());
    for i in 0..12 {
        let width = [1, 2, 4, 8][usize::try_from(rng.below(4)).unwrap()];
        let (factor, add, turn, keep) = (rng.below(40), rng.below(64), rng.below(256), 1 + rng.below(32));
        let _ = write!(
            text,
            ".visible .entry k{i}(.param .u64 x)\n{{\n.reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<6>;\n\
             ld.param.u64 %rd1, [x];\nmov.u32 %r1, %tid.x;\nmad.lo.u32 %r2, %r1, {factor}, {add};\nxor.b32 %r2, %r2, {turn};\n\
             and.b32 %r2, %r2, 2047;\nrem.u32 %r3, %r1, 32;\nsetp.lt.u32 %p1, %r3, {keep};\nmul.wide.u32 %rd2, %r2, {width};\n\
             add.u64 %rd3, %rd1, %rd2;\n@%p1 ld.global.u{} %rd4, [%rd3];\nret;\n}}\n",
            8 * width
        );
        let mut want = [0_u64; 4];
        for warp in 0..3_u64 {
            let lanes = (0..32_u64).filter(|lane| 32 * warp + lane < 70 && *lane < keep);
            let places: Vec<u64> =
                lanes.map(|lane| ((((32 * warp + lane) * factor + add) ^ turn) & 2047) * width).collect();
            let bytes: BTreeSet<u64> = places.iter().flat_map(|at| *at..at + width).collect();
            let sectors: BTreeSet<u64> = bytes.iter().map(|b| b / 32).collect();
            want[0] += u64::from(!places.is_empty());
            want[1] += u64::try_from(places.len()).unwrap();
            want[2] += u64::try_from(bytes.len()).unwrap();
            want[3] += u64::try_from(sectors.len()).unwrap();
        }
        wanted.push(want);
    }
    let f = Folder::with("profile_sets", &text);
    for (i, want) in wanted.iter().enumerate() {
        let rows =
            statements(&f.run(&format!("profile k.ptx k{i} --grid 1 --block 70 zero:16384 --format json")).ends(0));
        let load = &row(&rows, "@%p1 ld.global")["traffic"][0];
        assert_eq!(numbers(load, &["requests", "lanes", "touched", "sectors"]), want, "kernel {i}");
    }
}

#[test]
fn a_report_that_cannot_be_written_runs_nothing() {
    let f = Folder::with("profile_files", SCALE);
    let launch = "k.ptx scale --grid 1 --block 32 zero:128 out:y.bin:128 2.0 32";
    for command in ["profile", "cover"] {
        f.run(&format!("{command} {launch} -o nowhere/p.json")).ends(5).says("nowhere/p.json");
        f.run(&format!("{command} {launch} -o p.txt")).ends(2).says(".html or .json");
        f.run(&format!("{command} {launch} --check")).ends(2);
        assert!(!f.has("y.bin"), "{command} ran");
    }
    f.run(&format!("cover {launch} --lcov nowhere/c.info")).ends(5);
    f.run(&format!("profile {launch} --device nothing")).ends(2).says("no device `nothing` in the table");
    f.run(&format!("profile {launch} --compare none.json")).ends(5);
    assert!(!f.has("y.bin"));
    f.run(&format!("profile {launch} -o p.json")).ends(0);
    assert!(f.has("y.bin") && f.has("p.json"), "what the launch writes is written");
}

#[test]
fn a_trap_is_told_with_what_was_counted_before() {
    let f = Folder::with("profile_trap", SCALE);
    let ran = f.run("profile k.ptx scale --grid 1 --block 32 zero:128 zero:64 2.0 32 --format json").ends(1);
    let launch = &ran.says("out of bounds").objects()[0]["launches"][0].clone();
    assert_eq!(launch["ended"], "out_of_bounds");
    assert_eq!(launch["totals"]["global_load_bytes"], 128);
}

#[test]
fn comparisons_gate() {
    let f = Folder::with("profile_compare", &format!("{SCALE}{PARTS}"));
    let scale = "profile k.ptx scale --grid 2 --block 32 zero:256 zero:256 2.0";
    f.run(&format!("{scale} 32 -o base.json")).ends(0);
    let same = f.run(&format!("{scale} 32 --compare base.json")).ends(0);
    assert!(same.out.contains("no count differs"), "{same:?}");
    // Twice the elements: twice the bytes.
    let more = f.run(&format!("{scale} 64 --compare base.json --threshold 5")).ends(1);
    assert!(more.out.contains("global_load_bytes") && more.out.contains("+100.00 %"), "{more:?}");
    f.run(&format!("{scale} 64 --compare base.json --threshold 100")).ends(0);
    f.run(&format!("{scale} 64 --compare base.json --threshold 100 -o page.html")).ends(0);
    assert!(String::from_utf8(f.read("page.html")).unwrap().contains("Compared with the base"));
    // What differs is said.
    f.run("profile k.ptx parts --grid 1 --block 32 1 --compare base.json")
        .ends(2)
        .says("launch 1 of the base has the kernel `scale`, and now it has `parts`");
    f.run("profile k.ptx scale --grid 1 --block 32 zero:256 zero:256 2.0 32 --compare base.json")
        .ends(2)
        .says("has the grid 2,1,1, and now it has 1,1,1");
    let text = String::from_utf8(f.read("base.json")).unwrap();
    f.write("new.json", text.replace("\"version\":1", "\"version\":2"));
    f.run(&format!("{scale} 32 --compare new.json")).ends(5).says("it has version 2 of the schema");
    f.write(
        "older.json",
        text.replace(concat!("\"handloom\":\"", env!("CARGO_PKG_VERSION"), "\""), "\"handloom\":\"0.0.1\""),
    );
    f.run(&format!("{scale} 32 --compare older.json")).ends(0).says("was counted by Handloom 0.0.1, and this is");
    f.write("no.json", "{\"a\":1}");
    f.run(&format!("{scale} 32 --compare no.json")).ends(5).says("it is no profile");
}

/// All keys of a value.
fn keys(value: &Value, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            all.insert(key.clone());
            keys(value, all);
        }),
        Value::Array(list) => list.iter().for_each(|v| keys(v, all)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_page_of_the_manual_names_each_field() {
    let f = Folder::with("profile_schema", SCALE);
    let ran =
        f.run("profile k.ptx scale --grid 1 --block 32 zero:128 zero:128 2.0 31 --format json --device h100-sxm5");
    let mut all = BTreeSet::new();
    ran.ends(0).objects().iter().for_each(|o| keys(o, &mut all));
    let manual = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../PROFILE.md")).unwrap();
    let missing: Vec<_> = all.iter().filter(|key| !manual.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "PROFILE.md has no {missing:?}");
    assert!(all.contains("totals") && all.contains("roofline"));
}

#[test]
fn pages_stand_by_themselves() {
    let text = format!(".file 1 \"k.cu\"\n{}", SCALE.replace("    mul.f32", "    .loc 1 3 5\n    mul.f32"));
    let f = Folder::with("profile_page", &text);
    f.write("k.cu", "// first\n// second\ny[i] = a * x[i] < 1 ? 2 : \"<b>\";\n");
    let launch = "k.ptx scale --grid 1 --block 32 zero:128 zero:128 2.0 31";
    f.run(&format!("profile {launch} -o p.html --device h100-sxm5")).ends(0);
    f.run(&format!("cover {launch} -o c.html")).ends(0);
    for page in ["p.html", "c.html"] {
        let page = String::from_utf8(f.read(page)).unwrap();
        assert!(page.starts_with("<!doctype html>") && page.contains("Counts, not time"));
        for outside in ["http:", "https:", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(
            page.contains("y[i] = a * x[i] &lt; 1 ? 2 : &quot;&lt;b&gt;&quot;;"),
            "the source, with its signs as text"
        );
        assert_eq!(page.matches("<table").count(), page.matches("</table>").count());
    }
    // Without `.loc` the page says how to get it.
    let f = Folder::with("profile_no_loc", SCALE);
    f.run(&format!("profile {launch} -o p.html")).ends(0);
    assert!(String::from_utf8(f.read("p.html")).unwrap().contains("nvcc -lineinfo"));
}

/// A tracefile of lcov: by file, by line, runs; and ways of branches by line.
type Traced = BTreeMap<String, (BTreeMap<u32, u64>, Vec<(u32, Option<u64>)>)>;

/// Reads a tracefile and checks its sums, as `genhtml` would.
fn traced(text: &str) -> Traced {
    let (mut all, mut name) = (Traced::new(), String::new());
    for line in text.lines() {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        let number = |s: &str| s.parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
        if key == "SF" {
            name = value.to_owned();
            assert!(all.insert(name.clone(), Default::default()).is_none(), "{name} twice");
        }
        let fields: Vec<&str> = value.split(',').collect();
        let Some((lines, ways)) = all.get_mut(&name) else { continue };
        match key {
            "DA" => assert!(lines.insert(u32::try_from(number(fields[0])).unwrap(), number(fields[1])).is_none()),
            "BRDA" => {
                let n = (fields[3] != "-").then(|| number(fields[3]));
                ways.push((u32::try_from(number(fields[0])).unwrap(), n));
            }
            "LF" => assert_eq!(number(value), lines.len() as u64),
            "LH" => assert_eq!(number(value), lines.values().filter(|n| **n > 0).count() as u64),
            "BRF" => assert_eq!(number(value), ways.len() as u64),
            "BRH" => assert_eq!(number(value), ways.iter().filter(|(_, n)| n.is_some_and(|n| n > 0)).count() as u64),
            _ => assert!(["TN", "SF", "FN", "FNDA", "FNF", "FNH", "end_of_record"].contains(&key), "{line}"),
        }
    }
    all
}

#[test]
fn coverage_is_read_back_and_merged() {
    let text = PARTS.replace("    mov.u32 %r3, 9;", "    .loc 1 20 1\n    mov.u32 %r3, 9;\n    .loc 1 21 1");
    let f = Folder::with("cover", &format!(".file 1 \"k.cu\"\n{text}{SCALE}"));
    let launch = "cover k.ptx parts --grid 1 --block 32";
    let first = f.run(&format!("{launch} 0 -o first.json --lcov c.info")).ends(0);
    assert!(first.out.contains("never ran") && first.out.contains("branch ways  4 of 5"), "{first:?}");
    let info = traced(&String::from_utf8(f.read("c.info")).unwrap());
    let (lines, ways) = &info["k.ptx"];
    let module = String::from_utf8(f.read("k.ptx")).unwrap();
    let line = |text: &str| u32::try_from(1 + module.lines().position(|l| l.contains(text)).unwrap()).unwrap();
    assert_eq!((lines[&line("mov.u32 %r3, 7")], lines[&line("mov.u32 %r3, 9")]), (1, 0));
    // All statements of the module are there, those of a kernel that nobody launched too.
    assert_eq!(lines[&line("mul.f32")], 0);
    let of = |ways: &[(u32, Option<u64>)], text: &str| -> Vec<Option<u64>> {
        ways.iter().filter(|(at, _)| *at == line(text)).map(|(_, n)| *n).collect()
    };
    assert_eq!(of(ways, "@%p1 bra then"), [Some(0), Some(32)]);
    assert_eq!(of(ways, "brx.idx"), [Some(11), Some(11), Some(10)]);
    assert_eq!(info["k.cu"].0, BTreeMap::from([(20, 0), (21, 1)]));
    // A second run takes the other way.
    let both = f.run(&format!("{launch} 32 --merge first.json --lcov c.info")).ends(0);
    assert!(both.out.starts_with("coverage of 2 launches") && both.out.contains("branch ways  5 of 5"), "{both:?}");
    let info = traced(&String::from_utf8(f.read("c.info")).unwrap());
    assert_eq!(of(&info["k.ptx"].1, "@%p1 bra then"), [Some(32), Some(32)]);
    assert_eq!(info["k.cu"].0, BTreeMap::from([(20, 1), (21, 2)]));
    // Of another version of the file nothing is merged.
    f.write("k.ptx", module.replace("mov.u32 %r3, 7", "mov.u32 %r3, 5"));
    f.run(&format!("{launch} 32 --merge first.json")).ends(2).says("another version of the file");
    f.write("p.json", "{\"schema\":\"handloom-profile\",\"version\":1}");
    f.run(&format!("{launch} 32 --merge p.json")).ends(5).says("handloom-coverage");
}

#[test]
fn jobs_are_counted_launch_by_launch() {
    let f = Folder::with("profile_job", &format!("{SCALE}{PARTS}"));
    f.write(
        "job.json",
        r#"{"module": "k.ptx", "buffers": {"x": {"zero": 128}}, "launches": [
            {"entry": "scale", "grid": [1,1,1], "block": [32,1,1], "args": [{"buffer": "x"}, {"buffer": "x"}, {"scalar": "1.0"}, {"scalar": "32"}], "repeat": 3},
            {"entry": "parts", "grid": [1,1,1], "block": [32,1,1], "args": [{"scalar": "4"}]}]}"#,
    );
    let ran = f.run("profile --job job.json --format json").ends(0);
    let launches = ran.objects()[0]["launches"].clone();
    assert_eq!((&launches[0]["entry"], &launches[0]["runs"]), (&"scale".into(), &3.into()));
    assert_eq!(launches[0]["totals"]["global_load_bytes"], 3 * 128);
    assert_eq!((&launches[1]["entry"], &launches[1]["totals"]["divergent_branches"]), (&"parts".into(), &2.into()));
}

#[test]
fn a_run_writes_reports_too() {
    let f = Folder::with("profile_beside", SCALE);
    let launch = "k.ptx scale --grid 2 --block 32 zero:256 out:y.bin:256 2.0 40";
    f.run(&format!("run {launch} --profile p.json --profile p.html --cover c.json --cover c.html")).ends(0);
    assert!(f.has("y.bin"));
    let json = |name: &str| serde_json::from_slice::<Value>(&f.read(name)).unwrap();
    let of_profile = f.run(&format!("profile {launch} --format json")).ends(0).objects()[0].clone();
    assert_eq!(json("p.json"), of_profile);
    assert_eq!(json("c.json"), f.run(&format!("cover {launch} --format json")).ends(0).objects()[0].clone());
    for page in ["p.html", "c.html"] {
        assert!(String::from_utf8(f.read(page)).unwrap().starts_with("<!doctype html>"), "{page}");
    }
    // What is asked for is found out before anything runs.
    f.run(&format!("run {launch} --profile p.txt")).ends(2).says("ends in .html or .json");
    f.run(&format!("run {launch} --cover none/c.json")).ends(5);
    f.run(&format!("run {launch} --cover c.json --check=race")).ends(2);
    f.run(&format!("profile {launch} --profile p.json")).ends(2).says("-o FILE");
}

#[test]
fn a_trace_has_launches_and_blocks_and_a_page_draws_them() {
    let f = Folder::with("profile_trace", SCALE);
    let launch = "k.ptx scale --grid 5 --block 32 zero:640 out:y.bin:640 2.0 160";
    let events = |name: &str| {
        let trace: Value = serde_json::from_slice(&f.read(name)).unwrap();
        assert!(trace["otherData"]["note"].as_str().unwrap().contains("not time of a GPU"));
        trace["traceEvents"].as_array().unwrap().clone()
    };
    let of =
        |events: &[Value], sort: &str| -> Vec<Value> { events.iter().filter(|e| e["cat"] == sort).cloned().collect() };
    for (command, copies) in [("run", 2), ("profile", 2), ("cover", 2), ("run --engine interp", 2)] {
        f.run(&format!("{command} {launch} --trace t.json")).ends(0);
        let all = events("t.json");
        let (launches, blocks) = (of(&all, "launch"), of(&all, "blocks"));
        assert_eq!((launches.len(), of(&all, "copy").len()), (1, copies), "{command}: {all:?}");
        // A small grid runs block by block, and each of its blocks once.
        let mut names: Vec<&str> = blocks.iter().map(|e| e["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["block 0", "block 1", "block 2", "block 3", "block 4"], "{command}");
        let end = |e: &Value| e["ts"].as_f64().unwrap() + e["dur"].as_f64().unwrap();
        let within = |b: &Value| b["ts"].as_f64() >= launches[0]["ts"].as_f64() && end(b) <= end(&launches[0]) + 1.0;
        assert!(blocks.iter().all(within), "{command}: {all:?}");
    }
    for command in ["profile --format json -o p.html", "run --profile p.html"] {
        f.run(&format!("{command} {launch}")).ends(0);
        let page = String::from_utf8(f.read("p.html")).unwrap();
        assert!(page.contains("Time of the host that ran the kernel, not of a GPU"), "{command}");
        // Blocks that are short beside the launch are drawn together.
        let drawn = |name: &str| page.contains(&format!("<title>{name}"));
        assert!(drawn("block 0: from") || drawn("blocks 0 to"), "{command}");
    }
    f.run(&format!("run {launch} --trace none/t.json")).ends(5);
}

/// `__launch_bounds__` is written as `.maxntid` and `.minnctapersm`.
#[test]
fn directives_bound_registers_for_occupancy() {
    let f = Folder::with("profile_registers", &SCALE.replacen("\n{", "\n.maxntid 256\n.minnctapersm 4\n{", 1));
    let launch = "profile k.ptx scale --grid 1 --block 256 zero:1024 zero:1024 2.0 170 --device sm_90";
    let told = |options: &str| f.run(&format!("{launch} {options}")).ends(0).out;
    let by_directive = told("");
    assert!(
        by_directive.contains("limited by registers (at most 64 registers a thread, by .minnctapersm)"),
        "{by_directive}"
    );
    assert!(by_directive.contains("4 blocks, 32 of 64 warps"), "{by_directive}");
    let told = told("--regs 32");
    assert!(told.contains("8 blocks, 64 of 64 warps") && !told.contains(".minnctapersm"), "{told}");
}

#[test]
fn both_engines_count_the_same() {
    let f = Folder::with("profile_engines", SCALE);
    let launch = "profile k.ptx scale --grid 3 --block 64 zero:1024 zero:1024 2.0 170 --format json";
    let code = f.run(launch).ends(0);
    assert!(!code.err.contains("interpreter"), "{code:?}");
    let slow = f.run(&format!("{launch} --engine interp")).ends(0).says("the interpreter was asked for");
    assert_eq!(code.objects()[0], slow.objects()[0]);
}

/// Functions that call themselves, that are called by address (which a table of the module has) by some lanes, and in which warps meet; and copies that go by themselves.
const CALLS: &str = r"
.visible .func (.param .b32 sum) down(.param .b32 n);
.visible .func (.param .b32 y) twice(.param .b32 x)
{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [x];
    shl.b32 %r2, %r1, 1;
    st.param.b32 [y], %r2;
    ret;
}
.visible .func (.param .b32 y) meet(.param .b32 x)
{
    .reg .b32 %r<3>; .reg .pred %p;
    ld.param.b32 %r1, [x];
    bar.sync 0;
    setp.gt.u32 %p, %r1, 1000;
    @%p bra L;
    add.u32 %r1, %r1, 3;
L:
    st.param.b32 [y], %r1;
    ret;
}
.visible .func (.param .b32 sum) down(.param .b32 n)
{
    .reg .b32 %r<4>; .reg .pred %p;
    ld.param.b32 %r1, [n];
    mov.b32 %r2, 0;
    setp.eq.u32 %p, %r1, 0;
    @%p bra L;
    sub.u32 %r3, %r1, 1;
    {
        .param .b32 a; .param .b32 b;
        st.param.b32 [a], %r3;
        call (b), down, (a);
        ld.param.b32 %r2, [b];
    }
    add.u32 %r2, %r2, %r1;
L:
    st.param.b32 [sum], %r2;
    ret;
}
.global .u64 table[2] = { twice, down };
.visible .entry calls(.param .u64 x)
{
    .reg .b32 %r<8>; .reg .b64 %rd<5>; .reg .pred %p;
    .shared .align 16 .b8 kept[256];
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 7;
    and.b32 %r3, %r1, 1;
    mul.wide.u32 %rd2, %r3, 8;
    mov.u64 %rd3, table;
    add.u64 %rd2, %rd2, %rd3;
    ld.global.u64 %rd2, [%rd2];
    setp.lt.u32 %p, %r1, 40;
    @!%p bra past;
    {
        .param .b32 a; .param .b32 b;
        st.param.b32 [a], %r2;
        proto: .callprototype (.param .b32 _) _ (.param .b32 _);
        call (b), %rd2, (a), proto;
        ld.param.b32 %r2, [b];
    }
past:
    {
        .param .b32 a; .param .b32 b;
        st.param.b32 [a], %r2;
        call (b), meet, (a);
        ld.param.b32 %r2, [b];
    }
    mov.u32 %r4, kept;
    mad.lo.u32 %r5, %r1, 4, %r4;
    st.shared.b32 [%r5], %r2;
    bar.sync 0;
    setp.ne.u32 %p, %r1, 0;
    @%p bra end;
    fence.proxy.async.shared::cta;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r4], 256;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
end:
    ret;
}
";

#[test]
fn calls_and_copies_are_counted_by_code() {
    let f = Folder::new("profile_calls");
    f.write("k.ptx", format!(".version 8.6\n.target sm_90\n.address_size 64\n{CALLS}"));
    let launch = "profile k.ptx calls --grid 3 --block 64 zero:256 --format json";
    let code = f.run(launch).ends(0);
    assert!(!code.err.contains("interpreter"), "{code:?}");
    let slow = f.run(&format!("{launch} --engine interp")).ends(0).says("the interpreter was asked for");
    assert_eq!(code.objects()[0], slow.objects()[0]);
    let rows = statements(&code);
    // In each block 20 lanes go down from 1, 3, 5 or 7: each once more than its number says.
    let lanes: u64 = (0..40).filter(|t| t % 2 == 1).map(|t| t % 8 + 1).sum();
    assert_eq!(row(&rows, "setp.eq.u32 %p, %r1, 0")["lanes"], 3 * lanes);
    assert_eq!(row(&rows, "shl.b32 %r2, %r1, 1")["lanes"], 3 * 20);
    // Read and written.
    assert_eq!(row(&rows, "cp.async.bulk.global")["copied_bytes"], 3 * 2 * 256);
}
