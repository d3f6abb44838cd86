//! How threads of a block find their row and column: by `%tid` as it is, by tiles that masks cut out of it, or in three dimensions.

use crate::rng::Rng;

/// Blocks of three dimensions: those in which a warp has several slabs, several warps have one, and others.
const CUBES: &[[u32; 3]] = &[
    [4, 4, 4],
    [8, 2, 4],
    [4, 8, 4],
    [8, 8, 8],
    [8, 4, 4],
    [16, 4, 4],
    [32, 2, 2],
    [32, 4, 4],
    [32, 1, 4],
    [64, 1, 4],
    [64, 2, 2],
    [4, 6, 8],
    [128, 1, 2],
];

/// Threads of blocks that tiles are cut out of, and widths of these as powers of two.
const CUT: ([u32; 4], [u32; 6]) = ([128, 256, 512, 1024], [3, 4, 5, 6, 7, 8]);

/// What makes the number of a thread of rows and columns.
pub const NUMBER: &str = "mov.u32 %lin, %tid.y;\n    mad.lo.s32 %lin, %lin, %t1, %t2;\n    ";

/// A block as the kernel sees it: columns and rows of threads.
#[derive(Clone, Debug)]
pub struct Block {
    /// Both.
    pub seen: [u32; 2],
    /// What the launch asks for.
    pub launched: [u32; 3],
    /// What makes `%tx` and `%ty`, if they are not `%tid.x` and `%tid.y`.
    start: Option<String>,
}

impl Block {
    /// One of rows and columns.
    pub fn plain(seen: [u32; 2]) -> Block {
        Block { seen, launched: [seen[0], seen[1], 1], start: None }
    }

    /// Another one.
    pub fn other(rng: &mut Rng) -> Block {
        if rng.one_in(2) {
            let [nx, ny, nz] = *rng.pick(CUBES);
            let by_slab = rng.one_in(2);
            let [outer, inner, n] = if by_slab { ["z", "y", &ny.to_string()] } else { ["y", "z", &nz.to_string()] };
            let start = format!(
                "mov.u32 %tx, %tid.x;\n    mov.u32 %t0, %tid.{outer};\n    mov.u32 %ty, %tid.{inner};\n    mad.lo.u32 %ty, %t0, {n}, %ty;"
            );
            return Block { seen: [nx, ny * nz], launched: [nx, ny, nz], start: Some(start) };
        }
        let (n, by) = (*rng.pick(&CUT.0), *rng.pick(&CUT.1));
        let (by, width) = if 1 << by < n { (by, 1 << by) } else { (6, 64) };
        let start = format!("mov.u32 %t0, %tid.x;\n    and.b32 %tx, %t0, {};\n    shr.u32 %ty, %t0, {by};", width - 1);
        Block { seen: [width, n / width], launched: [n, 1, 1], start: Some(start) }
    }

    /// The text of a kernel of rows and columns for this block.
    pub fn text(&self, text: String, first: &str) -> String {
        let Some(start) = &self.start else { return text };
        let [width, height] = self.seen.map(|n| n.to_string());
        let names = [("%tid.x", "%tx"), ("%tid.y", "%ty"), ("%ntid.x", &width), ("%ntid.y", &height)];
        // Number of the thread as the hardware counts, whatever rows are.
        let flat = "mov.u32 %lin, %tid.z;\n    mov.u32 %ty, %ntid.y;\n    mov.u32 %tx, %tid.y;\n    mad.lo.s32 %lin, %lin, %ty, %tx;\n    \
                    mov.u32 %ty, %ntid.x;\n    mov.u32 %tx, %tid.x;\n    mad.lo.s32 %lin, %lin, %ty, %tx;";
        let text = text.replacen(NUMBER, "", 1);
        let text = names.into_iter().fold(text, |text, (from, to)| text.replace(from, to));
        text.replacen(first, &format!(".reg .b32 %tx, %ty;\n    {flat}\n    {start}\n    {first}"), 1)
    }
}
