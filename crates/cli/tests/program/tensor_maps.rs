//! Tensor maps of jobs.

use crate::common::{ENGINES, Folder};
use serde_json::{Value, json};

/// Loads a box of a tensor whose map is a parameter, a field of memory, or both, and writes 64 bytes of it.
const BOX: &str = r"
.version 8.6
.target sm_90
.address_size 64
.visible .entry load(.param .align 64 .b8 map[128], .param .u64 out, .param .s32 x, .param .s32 y)
{
    .shared .align 128 .b8 box[128];
    .shared .align 8 .b64 bar;
    .reg .pred %p;
    .reg .b32 %x, %y;
    .reg .b64 %m, %o;
    ld.param.u64 %o, [out];
    ld.param.s32 %x, [x];
    ld.param.s32 %y, [y];
    mov.b64 %m, map;
    cvta.param.u64 %m, %m;
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [box], [%m, {%x, %y}], [bar];
wait:
    mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
    @!%p bra wait;
    cp.async.bulk.global.shared::cta.bulk_group [%o], [box], 64;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
";

fn job(map: &Value) -> Value {
    let x: Vec<u32> = (0..64).collect();
    json!({
        "module": "t.ptx",
        "buffers": {"x": {"values": x, "type": "u32"}, "y": {"zero": 64}},
        "tensor_maps": {"a": map},
        "launches": [{"grid": 1, "block": 1, "args": [
            {"tensor_map": "a"}, {"buffer": "y"}, {"scalar": 2, "type": "s32"}, {"scalar": 3, "type": "s32"}]}],
        // Columns 2 to 9 of rows 3 and 4 of 8 words; what is not there is 0.
        "expect": {"y": {"values": [26, 27, 28, 29, 30, 31, 0, 0, 34, 35, 36, 37, 38, 39, 0, 0], "type": "u32"}},
    })
}

#[test]
fn a_tensor_map_is_an_argument() {
    let f = Folder::with("tensor_map", "");
    f.write("t.ptx", BOX);
    for map in [
        json!({"buffer": "x", "type": "u32", "dims": [8, 8], "box": [8, 2]}),
        json!({"buffer": "x", "type": "f32", "dims": [8, 8], "strides": [32], "box": [8, 2], "swizzle": "none"}),
    ] {
        f.write("j.json", job(&map).to_string());
        for engine in ENGINES {
            f.run(&format!("run --job j.json --engine {engine}")).ends(0);
        }
    }
}

#[test]
fn a_wrong_tensor_map_runs_nothing() {
    let f = Folder::with("wrong_tensor_map", "");
    f.write("t.ptx", BOX);
    let wrong = |map: Value, sentence: &str| {
        f.write("j.json", job(&map).to_string());
        f.run("run --job j.json").ends(2).says("tensor map `a`: ").says(sentence);
    };
    wrong(json!({"buffer": "z", "type": "u32", "dims": [8], "box": [4]}), "`z` is no buffer of the job");
    wrong(json!({"buffer": "x", "type": "u33", "dims": [8], "box": [4]}), "`type` is `u33`: expected one of");
    wrong(
        json!({"buffer": "x", "type": "u32", "dims": [8, 8], "box": [257, 1]}),
        "the box has 257 elements in dimension 0",
    );
    wrong(json!({"type": "u32", "dims": [8], "box": [4]}), "expected either `buffer` or `global`");
    let mut unknown = job(&json!({"buffer": "x", "type": "u32", "dims": [8], "box": [4]}));
    unknown["launches"][0]["args"][0] = json!({"tensor_map": "b"});
    f.write("j.json", unknown.to_string());
    f.run("run --job j.json").ends(2).says("`b` is no tensor map of the job, which has `a`");
}
