//! Random loops that read a stream by an index of each thread: the turns of warps part in the middle of a warp or a block, indices wrap, accesses run out of bounds in one
//! place, and what is counted does not depend on the order of warps. All engines must give the same bytes or the same report.
//!
//! `HANDLOOM_KERNELS=1000` runs that many, `HANDLOOM_SEED=77` starts there. A failure prints its seed and its text.

use std::fmt::Write;

use handloom_tests::agree::{agree, agree_on};
use handloom_tests::engines::{Argument, Job, Launch, Way};
use handloom_tests::rng::Rng;

/// Kernels of a plain run.
const KERNELS: u64 = 100;

/// Words of shared memory that are counted in, and of the counts in device memory.
const COUNTS: usize = 256;

/// Blocks of one warp and of many, whole warps and others.
const BLOCKS: &[u32] = &[1, 31, 32, 33, 64, 64, 96, 128, 128, 160, 256, 256, 256, 512, 1000, 1024];

struct Kernel {
    text: String,
    block: u32,
    grid: u32,
    /// What is added to the number of a thread, from how many bytes of the buffer on, up to which index, and by which step.
    start: u32,
    first: u64,
    n: u32,
    step: u32,
    words: usize,
}

/// What is done with a value that was read, in `%v`.
fn use_of_value(rng: &mut Rng, stores: bool) -> String {
    let mut text = String::new();
    let (op, ty) = *rng.pick(&[
        ("add", "u32"),
        ("add", "u32"),
        ("add", "u32"),
        ("or", "b32"),
        ("xor", "b32"),
        ("max", "u32"),
        ("min", "s32"),
    ]);
    let by = *rng.pick(&["1", "1", "3", "%v", "%n"]);
    let to = match rng.below(6) {
        // A mask that keeps the address aligned and inside, with and without something added.
        0 | 1 => "shr.u32 %t, %v, 22; and.b32 %t, %t, 1020; add.u32 %t, %t, %tile;",
        2 => "and.b32 %t, %v, 508; add.u32 %t, %t, %tile; add.u32 %t, %t, 512;",
        // The same place for many, or for all.
        3 => "and.b32 %t, %v, 12; add.u32 %t, %t, %tile;",
        4 => "mov.u32 %t, %tile;",
        // Neither does the mask say so, nor is it so without the shift.
        _ => "shr.u32 %t, %v, 24; mul.lo.u32 %t, %t, 4; add.u32 %t, %t, %tile;",
    };
    let skip = rng.one_in(3);
    if skip {
        let _ = writeln!(text, "    and.b32 %t, %v, {}; setp.eq.u32 %q, %t, 0; @%q bra $SKIP;", rng.pick(&[1, 2, 31]));
    }
    match rng.below(8) {
        0 => {
            let _ = writeln!(text, "    and.b32 %t, %v, 1020; cvt.u64.u32 %l1, %t; add.s64 %l1, %counts, %l1;");
            let _ = writeln!(text, "    red.global.add.u32 [%l1], {by};");
        }
        1 => {
            let _ = writeln!(text, "    mad.lo.u32 %sum, %sum, 5, %v;");
        }
        _ => {
            let _ = writeln!(text, "    {to}\n    red.shared.{op}.{ty} [%t], {by};");
        }
    }
    if skip {
        let _ = writeln!(text, "$SKIP:");
    }
    if stores {
        let _ = writeln!(text, "    mul.wide.u32 %l2, %i, 4; add.s64 %l2, %out, %l2; st.global.u32 [%l2], %v;");
    }
    text
}

/// The kernel of a seed.
fn kernel(seed: u64) -> Kernel {
    let mut rng = Rng::new(seed);
    let (block, grid) = (*rng.pick(BLOCKS), *rng.pick(&[1, 1, 2, 3, 5, 9]));
    let total = block * grid;
    let few = u32::try_from(rng.below(70)).unwrap_or(0);
    let turns = u32::try_from(rng.below(7)).unwrap_or(0);
    let n = (total * turns).saturating_add_signed(*rng.pick(&[0, 0, 1, -1, 32, few as i32, -(few as i32)]));
    let step = *rng.pick(&[total, total, total, total, total + 1, 32, block, few + 1]);
    // Not too many turns.
    let step = step.max(n / 24 + 1);
    let signed = rng.one_in(3);
    // Indices below zero, or which wrap from lane to lane.
    let back = *rng.pick(&[0, 0, 0, 0, 1, 5, 32, 40, few]);
    let start = 0_u32.wrapping_sub(back);
    let sign = if signed { "s32" } else { "u32" };
    // The buffer begins before the pointer, as far as indices with a sign may lie.
    let first = if signed { u64::from(back) } else { 0 };
    let short = *rng.pick(&[0, 0, 0, 0, 0, 1, few]);
    let offset = *rng.pick(&[0, 0, 0, 1, 3]);
    let words = (u64::from(n) + first + offset + 4).saturating_sub(u64::from(short)).max(first + 1);
    let stores = step == total && back == 0 && rng.one_in(4);
    let address = match (rng.below(3), signed) {
        (0, false) => "cvt.u64.u32 %l1, %i; shl.b64 %l1, %l1, 2; add.s64 %l1, %in, %l1;".to_owned(),
        (0, true) => "cvt.s64.s32 %l1, %i; shl.b64 %l1, %l1, 2; add.s64 %l1, %l1, %in;".to_owned(),
        _ => format!("mul.wide.{sign} %l1, %i, 4; add.s64 %l1, %in, %l1;"),
    };
    let mut body = format!("    {address}\n    ld.global.u32 %v, [%l1+{}];\n", 4 * offset);
    if rng.one_in(4) {
        let _ = writeln!(body, "    ld.global.u32 %t, [%l1+{}]; add.u32 %v, %v, %t;", 4 * rng.below(4));
    }
    if rng.one_in(4) {
        // What is written over once it was read.
        let _ = writeln!(body, "    add.u32 %i, %i, 0;");
    }
    body.push_str(&use_of_value(&mut rng, stores));
    if rng.one_in(6) {
        let _ = writeln!(body, "    and.b32 %t, %v, 63; setp.eq.u32 %q, %t, 5; @%q bra $OUT;");
    }
    let guard = match (rng.below(3), signed) {
        (0, _) => String::new(),
        (_, true) => "    setp.ge.s32 %p, %i, %n; @%p bra $OUT;\n".into(),
        (_, false) => "    setp.ge.u32 %p, %i, %n; @%p bra $OUT;\n".into(),
    };
    let (cmp, leave) = (*rng.pick(&["lt", "lt", "lt", "le"]), *rng.pick(&["", "!"]));
    let (cmp, leave) = if leave.is_empty() { (cmp, "") } else { (if cmp == "lt" { "ge" } else { "gt" }, "!") };
    let test = if rng.one_in(4) {
        // The other way round.
        let turned = match cmp {
            "lt" => "gt",
            "le" => "ge",
            "ge" => "le",
            _ => "lt",
        };
        format!("setp.{turned}.{sign} %p, %n, %i;")
    } else {
        format!("setp.{cmp}.{sign} %p, %i, %n;")
    };
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 out, .param .u64 in, .param .u64 counts, .param .u32 n, .param .u32 step, .param .u32 start)\n{{\n    \
         .reg .pred %p, %q;\n    .reg .b32 %i, %j, %n, %t, %v, %sum, %step, %lin, %threads, %tile;\n    \
         .reg .b64 %l1, %l2, %in, %out, %counts;\n    .shared .align 16 .b8 tile[{bytes}];\n    \
         ld.param.u64 %out, [out];\n    ld.param.u64 %in, [in];\n    ld.param.u64 %counts, [counts];\n    ld.param.u32 %n, [n];\n    \
         ld.param.u32 %step, [step];\n    ld.param.u32 %i, [start];\n    mov.u32 %tile, tile;\n    mov.u32 %lin, %tid.x;\n    \
         mov.u32 %threads, %ntid.x;\n    mov.u32 %t, %ctaid.x;\n    mad.lo.u32 %t, %t, %threads, %lin;\n    add.u32 %i, %i, %t;\n    \
         mov.u32 %sum, %i;\n    mov.u32 %j, %lin;\n\
         $ZERO:\n    setp.ge.u32 %p, %j, {COUNTS};\n    @%p bra $ZEROED;\n    shl.b32 %t, %j, 2;\n    add.u32 %t, %t, %tile;\n    \
         st.shared.u32 [%t], 0;\n    add.u32 %j, %j, %threads;\n    bra $ZERO;\n\
         $ZEROED:\n    bar.sync 0;\n{guard}\
         $AGAIN:\n{body}    add.u32 %i, %i, %step;\n    {test}\n    @{leave}%p bra $AGAIN;\n\
         $OUT:\n    bar.sync 0;\n    mov.u32 %j, %lin;\n\
         $SUM:\n    setp.ge.u32 %p, %j, {COUNTS};\n    @%p bra $END;\n    shl.b32 %t, %j, 2;\n    add.u32 %t, %t, %tile;\n    \
         ld.shared.u32 %v, [%t];\n    mul.wide.u32 %l1, %j, 4;\n    add.s64 %l1, %counts, %l1;\n    red.global.add.u32 [%l1], %v;\n    \
         add.u32 %j, %j, %threads;\n    bra $SUM;\n\
         $END:\n    xor.b32 %sum, %sum, %i;\n    mov.u32 %t, %ctaid.x;\n    mad.lo.u32 %t, %t, %threads, %lin;\n    \
         mul.wide.u32 %l1, %t, 4;\n    add.s64 %l1, %counts, %l1;\n    st.global.u32 [%l1+{bytes}], %sum;\n    ret;\n}}\n",
        bytes = 4 * COUNTS,
    );
    Kernel { text, block, grid, start, first: 4 * first, n, step, words: usize::try_from(words).unwrap_or(1) }
}

/// Says what differs.
fn compare(seed: u64) -> Result<(), String> {
    let k = kernel(seed);
    let total = (k.block * k.grid) as usize;
    let input = (0..k.words).flat_map(|i| (i as u32).wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let last = k.n as usize + 2 * k.step as usize;
    let job = Job {
        name: "streams.ptx",
        text: &k.text,
        buffers: vec![vec![0; 4 * last.max(total)], input, vec![0; 4 * (COUNTS + total)]],
        addresses: vec![],
        launches: vec![Launch {
            entry: "k",
            grid: [k.grid, 1, 1],
            block: [k.block, 1, 1],
            shared_bytes: 0,
            args: vec![
                Argument::Buffer(0, 0),
                Argument::Buffer(1, k.first),
                Argument::Buffer(2, 0),
                Argument::Scalar(u64::from(k.n)),
                Argument::Scalar(u64::from(k.step)),
                Argument::Scalar(u64::from(k.start)),
            ],
            cooperative: false,
            cluster: None,
        }],
        variables: vec![],
    };
    let told = |way: Way, what: &str| {
        format!("seed {seed}, grid {}, block {}, n {}: [{}] {what}\n{}", k.grid, k.block, k.n, way.name, k.text)
    };
    agree(&job, &told)
}

#[test]
fn engines_agree_on_loops_over_streams() {
    agree_on(KERNELS, compare);
}
