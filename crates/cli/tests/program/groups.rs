//! `run` with blocks that belong together: cooperative launches, clusters, and shared memory above 48 KiB, from the command line and from a
//! job file.

use crate::common::{ENGINES, Folder};
use serde_json::json;

/// Each block writes its number, waits for the whole grid, and writes the sum of all numbers.
const GRID: &str = "
.extern .func (.param .b64 h) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 e) cudaCGSynchronize(.param .b64 h, .param .b32 flags);
.visible .entry sums(.param .u64 cells, .param .u64 out)
{
    .reg .b64 %rd<8>;
    .reg .b32 %r<8>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [cells];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %nctaid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u32 %r3, %r1, 1;
    st.global.u32 [%rd4], %r3;
    { .param .b32 s; .param .b64 h; st.param.b32 [s], 1; call (h), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %rd5, [h]; }
    { .param .b64 h; .param .b32 f; .param .b32 e; st.param.b64 [h], %rd5; st.param.b32 [f], 0;
      call (e), cudaCGSynchronize, (h, f); ld.param.b32 %r4, [e]; }
    mov.b32 %r5, 0;
    mov.b32 %r6, 0;
add_up:
    ld.global.u32 %r7, [%rd1];
    add.u32 %r5, %r5, %r7;
    add.u64 %rd1, %rd1, 4;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r6, %r2;
    @%p1 bra add_up;
    setp.ne.u32 %p1, %r4, 0;
    @%p1 mov.b32 %r5, 0xffffffff;
    add.u64 %rd6, %rd2, %rd3;
    st.global.u32 [%rd6], %r5;
    ret;
}
";

/// Each block takes the number of the cluster's first block from its shared memory.
const CLUSTER: &str = "
.extern .shared .align 4 .b8 memory[];
.visible .entry firsts(.param .u64 out, .param .u32 at)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<8>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [at];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, memory;
    add.u32 %r3, %r3, %r1;
    st.shared.u32 [%r3], %r2;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mapa.shared::cluster.u32 %r4, %r3, 0;
    ld.shared::cluster.u32 %r5, [%r4];
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r5;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
}
";

fn numbers(list: &[u32]) -> Vec<u8> {
    list.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn cluster_folder(name: &str) -> Folder {
    let f = Folder::new(name);
    f.write("k.ptx", format!(".version 8.0\n.target sm_90\n.address_size 64\n{CLUSTER}"));
    f
}

#[test]
fn a_cooperative_grid_waits_for_all_its_blocks() {
    let f = Folder::with("cooperative", GRID);
    let sum = 70 * 71 / 2;
    let job = json!({"module": "k.ptx", "buffers": {"c": {"zero": 280}, "o": {"zero": 280}}, "outputs": {"o": "j.bin"},
        "launches": [{"entry": "sums", "grid": [70], "block": [1], "cooperative": true, "args": [{"buffer": "c"}, {"buffer": "o"}]}]});
    f.write("j.json", job.to_string());
    for engine in ENGINES {
        f.run(&format!(
            "run k.ptx --engine {engine} --threads 2 --cooperative --grid 70 --block 1 zero:280 out:o.bin:280"
        ))
        .ends(0);
        assert_eq!(f.read("o.bin"), numbers(&[sum; 70]));
        f.run(&format!("run --job j.json --engine {engine}")).ends(0);
        assert_eq!(f.read("j.bin"), numbers(&[sum; 70]));
        // Without the flag there is no barrier, and the function says so.
        f.run(&format!("run k.ptx --engine {engine} --grid 2 --block 1 zero:8 out:o.bin:8")).ends(0);
        assert_eq!(f.read("o.bin"), numbers(&[u32::MAX; 2]));
    }
    f.run("run k.ptx --cooperative --grid 100000 --block 1 zero:280 zero:280").ends(2).says("can run at the same time");
}

#[test]
fn clusters_share_their_memory() {
    let f = cluster_folder("clusters");
    let last = (227 << 10) - 4;
    let launch = |cluster: &[u32], shared: u32| {
        json!({"module": "k.ptx", "buffers": {"o": {"zero": 24}}, "outputs": {"o": "j.bin"},
            "launches": [{"entry": "firsts", "grid": [6], "block": [1], "cluster": cluster, "shared": shared,
                "args": [{"buffer": "o"}, {"scalar": last}]}]})
    };
    f.write("j.json", launch(&[3, 1, 1], 227 << 10).to_string());
    for engine in ENGINES {
        let run = format!("run k.ptx --engine {engine} --grid 6 --block 1");
        f.run(&format!("{run} --cluster 2 --shared 8 out:o.bin:24 4")).ends(0);
        assert_eq!(f.read("o.bin"), numbers(&[0, 0, 2, 2, 4, 4]));
        f.run(&format!("{run} --cluster 3,1,1 --shared 232448 out:o.bin:24 {last}")).ends(0);
        assert_eq!(f.read("o.bin"), numbers(&[0, 0, 0, 3, 3, 3]));
        f.run(&format!("run --job j.json --engine {engine}")).ends(0);
        assert_eq!(f.read("j.bin"), numbers(&[0, 0, 0, 3, 3, 3]));
        // One byte too many is seen.
        f.run(&format!("{run} --shared 232444 out:o.bin:24 {last}"))
            .ends(1)
            .says("0 bytes past the end of shared memory");
    }
    f.run("run k.ptx --grid 6 --block 1 --cluster 4 --shared 8 out:o.bin:24 4")
        .ends(2)
        .says("multiple of the cluster's");
    f.run("run k.ptx --grid 34 --block 1 --cluster 17 --shared 8 out:o.bin:24 4").ends(2).says("at most 16");
    f.run("run k.ptx --grid 6 --block 1 --shared 232449 out:o.bin:24 4").ends(2).says("at most 232448");
    f.write("bad.json", launch(&[3, 0, 1], 8).to_string());
    f.run("run --job bad.json").ends(2).says("cluster");
}
