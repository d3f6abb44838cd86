//! Random kernels that fetch tiles by `cp.async`: all sizes, whole, in part and not at all, of places that lie in many ways.
//!
//! Takes: a seed. Gives: a [`Kernel`], PTX text with its launches. The same seed gives the same kernel. A place in shared memory is written by one thread alone, so that
//! it does not matter which warp comes first.

use std::fmt::Write;

use crate::engines::{Argument, Job, Launch};
use crate::rng::Rng;

/// Threads of a block.
const BLOCKS: &[u32] = &[32, 32, 64, 64, 128, 256, 96, 40, 33, 8, 1];

/// A random kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// PTX.
    pub text: String,
    /// Threads of a block.
    pub block: u32,
    /// Blocks.
    pub grid: u32,
    /// Of each launch: bytes of the source that are wanted, and from one row of it to the next.
    pub launches: Vec<[u32; 2]>,
    /// Bytes of the source.
    bytes: usize,
}

impl Kernel {
    /// Its launches, one after the other.
    pub fn job(&self) -> Job<'_> {
        let input = (0..self.bytes).map(|i| (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
        let launch = |&[wanted, pitch]: &[u32; 2]| Launch {
            entry: "k",
            grid: [self.grid, 1, 1],
            block: [self.block, 1, 1],
            shared_bytes: 0,
            args: vec![
                Argument::Buffer(0, 0),
                Argument::Buffer(1, 0),
                Argument::Scalar(wanted.into()),
                Argument::Scalar(pitch.into()),
            ],
            cooperative: false,
            cluster: None,
        };
        Job {
            name: "copies.ptx",
            text: &self.text,
            buffers: vec![vec![0; (32 * self.block * self.grid) as usize], input],
            addresses: vec![],
            launches: self.launches.iter().map(launch).collect(),
            variables: vec![],
        }
    }
}

/// Where a thread reads, in bytes from the begin of the source, in `%at`.
fn place(rng: &mut Rng, text: &mut String) {
    let wide = *rng.pick(&[2, 4, 8, 32]);
    let line = match rng.below(6) {
        // Elements that follow each other, in the block and in the grid.
        0 => "shl.b32 %at, %t, 4;".to_owned(),
        1 => "mad.lo.u32 %at, %c, %all, %t;\n    shl.b32 %at, %at, 4;".to_owned(),
        // Rows of a tile, as compilers lay threads out.
        2 | 3 => format!(
            "div.u32 %x0, %t, {wide};\n    rem.u32 %at, %t, {wide};\n    shl.b32 %at, %at, 4;\n    \
             mad.lo.u32 %at, %x0, %pitch, %at;\n    mad.lo.u32 %at, %c, 64, %at;"
        ),
        // Anywhere, and one place for all.
        4 => "mul.lo.u32 %at, %t, 37;\n    add.u32 %at, %at, %c;\n    and.b32 %at, %at, 63;\n    shl.b32 %at, %at, 4;"
            .to_owned(),
        _ => "mov.u32 %at, 32;".to_owned(),
    };
    let _ = writeln!(text, "    {line}");
}

/// A copy to the 16 bytes of the thread, at `%to`.
fn copy(rng: &mut Rng, text: &mut String) {
    let size = *rng.pick(&[16, 16, 16, 8, 4]);
    let level = if size == 16 && !rng.one_in(3) { "cg" } else { "ca" };
    let inside = size * rng.below(16 / size as usize) as u32;
    let off = if rng.one_in(25) { 4 } else { inside + *rng.pick(&[0, 0, 0, 16, 64]) };
    let guard = match rng.below(6) {
        0 => "setp.gt.u32 %q, %t, 5;\n    @%q ",
        1 => "and.b32 %x1, %t, 3;\n    setp.ne.u32 %q, %x1, 1;\n    @%q ",
        _ => "",
    };
    let (before, operand) = match rng.below(7) {
        0 => (String::new(), String::new()),
        // All or nothing, as compilers ask.
        1 | 2 => (format!("setp.lt.u32 %p, %at, %wanted;\n    selp.b32 %n, {size}, 0, %p;"), ", %n".to_owned()),
        // What is left.
        3 => (
            format!("sub.s32 %n, %wanted, %at;\n    max.s32 %n, %n, 0;\n    min.s32 %n, %n, {size};"),
            ", %n".to_owned(),
        ),
        4 => (
            format!(
                "mul.lo.u32 %n, %t, 7;\n    add.u32 %n, %n, %c;\n    and.b32 %n, %n, 31;\n    min.u32 %n, %n, {size};"
            ),
            ", %n".to_owned(),
        ),
        5 => (String::new(), format!(", {}", rng.below(size as usize + 1))),
        _ => ("setp.ge.u32 %p, %at, %wanted;".to_owned(), ", %p".to_owned()),
    };
    let _ = writeln!(
        text,
        "    {before}\n    cvt.u64.u32 %a, %at;\n    add.s64 %a, %in, %a;\n    \
         {guard}cp.async.{level}.shared.global [%to+{inside}], [%a+{off}], {size}{operand};"
    );
}

/// The kernel of a seed.
pub fn kernel(seed: u64) -> Kernel {
    let mut rng = Rng::new(seed ^ 0xc091_e5ed);
    let block = *rng.pick(BLOCKS);
    let grid = 1 + rng.below(4) as u32;
    let half = 16 * block;
    let mut text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 wanted, .param .u32 pitch)\n{{\n    \
         .shared .align 16 .b8 buf[{}];\n    .reg .pred %p, %q, %again;\n    .reg .b32 %t, %c, %all, %to, %n, %wanted, %pitch, %at, %x<4>, %turn;\n    \
         .reg .b64 %in, %out, %a;\n    \
         ld.param.u64 %out, [out];\n    ld.param.u64 %in, [in];\n    ld.param.u32 %wanted, [wanted];\n    ld.param.u32 %pitch, [pitch];\n    \
         mov.u32 %t, %tid.x;\n    mov.u32 %c, %ctaid.x;\n    mov.u32 %all, %ntid.x;\n    \
         mov.u32 %x1, buf;\n    shl.b32 %x0, %t, 4;\n    add.u32 %to, %x1, %x0;\n    mov.u32 %x0, 0xa5a5a5a5;\n    \
         st.shared.v4.u32 [%to], {{%x0, %x0, %x0, %x0}};\n    st.shared.v4.u32 [%to+{half}], {{%x0, %x0, %x0, %x0}};\n    bar.sync 0;\n",
        2 * half
    );
    // Another thread's place, as tiles are swizzled.
    let swizzle = if block.is_multiple_of(8) { *rng.pick(&[0, 0, 1, 5, 7]) } else { 0 };
    let _ = writeln!(
        text,
        "    xor.b32 %x0, %t, {swizzle};\n    shl.b32 %x0, %x0, 4;\n    mov.u32 %x1, buf;\n    add.u32 %to, %x1, %x0;"
    );
    let turns = *rng.pick(&[1, 1, 2, 3]);
    text.push_str("    mov.u32 %turn, 0;\nTOP:\n");
    for part in 0..2 {
        if part == 1 {
            let _ = writeln!(text, "    add.u32 %to, %to, {half};");
        }
        for _ in 0..1 + rng.below(2) {
            place(&mut rng, &mut text);
            let step = *rng.pick(&[0, 16, 512]);
            let _ = writeln!(text, "    mad.lo.u32 %at, %turn, {step}, %at;");
            copy(&mut rng, &mut text);
        }
    }
    let wait = *rng.pick(&["cp.async.wait_all;", "cp.async.commit_group;\n    cp.async.wait_group 0;"]);
    let _ = write!(
        text,
        "    sub.u32 %to, %to, {half};\n    {wait}\n    bar.sync 0;\n    \
         add.u32 %turn, %turn, 1;\n    setp.lt.u32 %again, %turn, {turns};\n    @%again bra TOP;\n    \
         mad.lo.u32 %x0, %c, %all, %t;\n    mul.wide.u32 %a, %x0, 32;\n    add.s64 %out, %out, %a;\n    \
         ld.shared.v4.u32 {{%x0, %x1, %x2, %x3}}, [%to];\n    st.global.v4.u32 [%out], {{%x0, %x1, %x2, %x3}};\n    \
         ld.shared.v4.u32 {{%x0, %x1, %x2, %x3}}, [%to+{half}];\n    st.global.v4.u32 [%out+16], {{%x0, %x1, %x2, %x3}};\n    ret;\n}}\n"
    );
    let launches: Vec<[u32; 2]> = (0..1 + rng.below(2))
        .map(|_| [*rng.pick(&[0, 7, 16, 100, 512, 1000, 4096, 1 << 20]), *rng.pick(&[64, 128, 512, 1024])])
        .collect();
    let most = launches.iter().map(|l| l[1] * block / 2).max().unwrap_or(0) + 16 * block * grid + 2048;
    let bytes = if rng.one_in(5) { most / 16 + 5 } else { most } as usize;
    Kernel { text, block, grid, launches, bytes }
}
