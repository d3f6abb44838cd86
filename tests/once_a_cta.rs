//! Random kernels whose guards fail in the middle of a warp, a CTA or a grid, and whose accesses run out of bounds in one place: all engines must give
//! the same bytes or the same report.
//!
//! `HANDLOOM_KERNELS=1000` runs that many, `HANDLOOM_SEED=77` starts there. A failure prints its seed and its text.

use handloom_tests::agree::{agree, agree_on};
use handloom_tests::engines::{Argument, INTERP, Job, Launch, Way};
use handloom_tests::once_a_cta::kernel;

/// Kernels of a plain run.
const KERNELS: u64 = 120;

/// Says what differs.
fn compare(seed: u64) -> Result<(), String> {
    let k = kernel(seed);
    let job = k.job(&k.text);
    let told = |way: Way, what: &str| {
        format!(
            "seed {seed}, grid {:?}, block {:?}, n {}: [{}] {what}\n{}",
            k.grid, k.block.launched, k.n, way.name, k.text
        )
    };
    agree(&job, &told)
}

#[test]
fn engines_agree_on_guards_and_bounds_that_fail_in_part() {
    agree_on(KERNELS, compare);
}

/// A loop of so many turns in each of which every thread reads an element of its own, counted in one of the ways that there are.
fn counted(ty: &str, again: &str, first: i64, by: i64, turns: i64) -> String {
    let behind = first + by * turns;
    // The furthest bound from the count behind the last turn that still ends the loop there.
    let bound = match again {
        "ne" => behind,
        "lt" | "gt" => behind - by + by.signum(),
        _ => behind - by,
    };
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 bound)\n{{\n    \
         .reg .pred %p;\n    .reg .b32 %t<4>, %s, %c, %b;\n    .reg .b64 %in, %out, %d;\n    \
         ld.param.u64 %out, [out];\n    ld.param.u64 %in, [in];\n    ld.param.u32 %b, [bound];\n    \
         mov.u32 %t0, %ctaid.x;\n    mov.u32 %t1, %tid.x;\n    mad.lo.s32 %t2, %t0, 64, %t1;\n    \
         mul.wide.u32 %d, %t2, 4;\n    add.s64 %in, %in, %d;\n    add.s64 %out, %out, %d;\n    \
         mov.u32 %s, 0;\n    mov.u32 %c, {};\n    add.u32 %b, %b, {};\nTOP:\n    \
         ld.global.u32 %t3, [%in];\n    mad.lo.u32 %s, %s, 3, %t3;\n    add.s64 %in, %in, 1024;\n    \
         add.u32 %c, %c, {by};\n    setp.{again}.{ty} %p, %c, %b;\n    @%p bra TOP;\n    \
         st.global.u32 [%out], %s;\n    ret;\n}}\n",
        first as i32, bound as i32
    )
}

#[test]
fn the_last_turn_of_a_loop_is_known_to_the_element() {
    let ways = [("ne", 1), ("lt", 1), ("le", 1), ("ne", -1), ("gt", -1), ("ge", -1)];
    let firsts: [(&str, i64); 4] = [("u32", 200), ("u32", 0xffff_ff00), ("s32", -200), ("s32", 0x7fff_ff00)];
    let mut wrong = Vec::new();
    for ((again, up), (ty, first), size, turns, short) in ways.into_iter().flat_map(|w| {
        let rest = firsts.into_iter().flat_map(|f| [1, 3, 16].map(|by| (f, by)));
        rest.flat_map(move |(f, by)| [(1, 0), (1, 1), (4, 0), (4, 1)].map(|(turns, short)| (w, f, by, turns, short)))
    }) {
        let text = counted(ty, again, first, up * size, turns);
        let words = 256 * usize::try_from(turns).unwrap_or(0) - short;
        let input: Vec<u32> = (0..words).map(|i| (i as u32).wrapping_mul(2_654_435_761)).collect();
        let job = Job {
            name: "counted.ptx",
            text: &text,
            buffers: vec![vec![0; 1024], input.iter().flat_map(|x| x.to_le_bytes()).collect()],
            addresses: vec![],
            launches: vec![Launch {
                entry: "k",
                grid: [4, 1, 1],
                block: [64, 1, 1],
                shared_bytes: 0,
                args: vec![Argument::Buffer(0, 0), Argument::Buffer(1, 0), Argument::Scalar(0)],
                cooperative: false,
                cluster: None,
            }],
            variables: vec![],
        };
        let told = |way: Way, what: &str| format!("{short} words short: [{}] {what}\n{text}", way.name);
        let sum = |i: usize| (i..words).step_by(256).fold(0_u32, |s, k| s.wrapping_mul(3).wrapping_add(input[k]));
        let right: Vec<u8> = (0..256).flat_map(|i| sum(i).to_le_bytes()).collect();
        match job.run(INTERP, 0) {
            Ok(got) if got.trap.is_some() == (short > 0) && (short > 0 || got.buffers[0] == right) => {}
            Ok(_) => wrong.push(told(INTERP, "it is not as reckoned")),
            Err(why) => wrong.push(told(INTERP, &why)),
        }
        wrong.extend(agree(&job, &told).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.into_iter().take(3).collect::<Vec<_>>().join("\n\n"));
}
