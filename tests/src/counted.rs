//! Kernels that are counted: by tests at a small size, and by the example that measures what counting costs at a large one. Those that are checked, to
//! measure what that costs.

use handloom_filetest::engines::{Argument, Job, Launch};

/// A gather at random places, and additions at random places: of each element, its number decides which.
fn scattered() -> String {
    let head = ".reg .b32 %i, %n, %c, %h, %m;
    .reg .b64 %in, %out, %a;
    mov.u32 %i, %tid.x;
    mov.u32 %n, %ntid.x;
    mov.u32 %c, %ctaid.x;
    mad.lo.u32 %i, %c, %n, %i;
    mul.lo.u32 %h, %i, 0x9e3779b1;
    shr.u32 %m, %h, 15;
    xor.b32 %h, %h, %m;
    ld.param.u64 %out, [out];
    cvta.to.global.u64 %out, %out;";
    format!(
        "
.version 8.0
.target sm_80
.address_size 64

.visible .entry gather(.param .u32 mask, .param .u64 in, .param .u64 out)
{{
    {head}
    mul.lo.u32 %h, %h, 0x85ebca77;
    shr.u32 %m, %h, 13;
    xor.b32 %h, %h, %m;
    ld.param.u32 %m, [mask];
    and.b32 %h, %h, %m;
    ld.param.u64 %in, [in];
    cvta.to.global.u64 %in, %in;
    mul.wide.u32 %a, %h, 4;
    add.u64 %a, %in, %a;
    ld.global.u32 %m, [%a];
    mul.wide.u32 %a, %i, 4;
    add.u64 %a, %out, %a;
    st.global.u32 [%a], %m;
    ret;
}}

.visible .entry additions(.param .u32 mask, .param .u64 out)
{{
    {head}
    ld.param.u32 %m, [mask];
    and.b32 %h, %h, %m;
    mul.wide.u32 %a, %h, 4;
    add.u64 %a, %out, %a;
    red.global.add.u32 [%a], 1;
    ret;
}}

.visible .entry tickets(.param .u32 mask, .param .u64 counts, .param .u64 out)
{{
    {head}
    ld.param.u32 %m, [mask];
    and.b32 %h, %h, %m;
    ld.param.u64 %in, [counts];
    mul.wide.u32 %a, %h, 4;
    add.u64 %a, %in, %a;
    atom.global.add.u32 %m, [%a], 1;
    mul.wide.u32 %a, %i, 4;
    add.u64 %a, %out, %a;
    st.global.u32 [%a], %m;
    ret;
}}

.visible .entry own_memory(.param .u32 mask, .param .u64 in, .param .u64 out)
{{
    .local .align 4 .b8 own[64];
    .reg .pred %p;
    .reg .b32 %k, %l;
    {head}
    ld.param.u32 %m, [mask];
    and.b32 %h, %i, %m;
    ld.param.u64 %in, [in];
    mul.wide.u32 %a, %h, 4;
    add.u64 %a, %in, %a;
    ld.global.u32 %h, [%a];
    mov.u32 %l, own;
    mov.u32 %k, 0;
FILL:
    add.u32 %m, %h, %k;
    st.local.u32 [%l], %m;
    add.u32 %l, %l, 4;
    add.u32 %k, %k, 1;
    setp.lt.u32 %p, %k, 16;
    @%p bra FILL;
    and.b32 %h, %h, 15;
    mov.u32 %l, own;
    mad.lo.u32 %l, %h, 4, %l;
    ld.local.u32 %m, [%l];
    mul.wide.u32 %a, %i, 4;
    add.u64 %a, %out, %a;
    st.global.u32 [%a], %m;
    ret;
}}
"
    )
}

/// A scalar argument, or a buffer of so many 32-bit words.
#[derive(Clone, Copy, Debug)]
enum Given {
    Int(u32),
    Float(f32),
    Words(u32),
    /// Words that are 0.
    Zeros(u32),
}

/// A kernel with its launch.
#[derive(Debug)]
pub struct Kernel {
    /// Its entry.
    pub entry: &'static str,
    /// Where its text is.
    pub name: String,
    text: String,
    grid: [u32; 3],
    block: [u32; 3],
    given: Vec<Given>,
}

impl Kernel {
    /// The run of it.
    pub fn job(&self) -> Job<'_> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8 & !(1 << 23) | (state & 0xff) << 24
        };
        let (mut buffers, mut args) = (Vec::new(), Vec::new());
        for g in &self.given {
            args.push(match g {
                Given::Int(v) => Argument::Scalar(u64::from(*v)),
                Given::Float(v) => Argument::Scalar(u64::from(v.to_bits())),
                Given::Words(n) => {
                    buffers.push((0..*n).flat_map(|_| next().to_le_bytes()).collect());
                    Argument::Buffer(buffers.len() - 1, 0)
                }
                Given::Zeros(n) => {
                    buffers.push(vec![0; 4 * *n as usize]);
                    Argument::Buffer(buffers.len() - 1, 0)
                }
            });
        }
        let (grid, block) = (self.grid, self.block);
        let launch =
            Launch { entry: self.entry, grid, block, args, shared_bytes: 0, cooperative: false, cluster: None };
        Job {
            name: &self.name,
            text: &self.text,
            buffers,
            addresses: Vec::new(),
            launches: vec![launch],
            variables: Vec::new(),
        }
    }
}

/// The kernels. `is_large`: of arrays that no cache holds.
pub fn kernels(is_large: bool) -> Vec<Kernel> {
    use Given::{Float, Int, Words};
    let pick = |large: u32, small: u32| if is_large { large } else { small };
    // Not a multiple of the block in small ones: some guards do not hold.
    let n = pick(1 << 24, 5000);
    let blocks = n.div_ceil(256);
    let side = pick(4096, 250);
    let tiles = pick(512, 64);
    let masked = pick((1 << 24) - 1, 4095);
    let all = [
        ("saxpy", "saxpy", [blocks, 1, 1], [256, 1, 1], vec![Int(n), Float(2.0), Words(n), Words(n)]),
        (
            "stencil",
            "stencil5",
            [side.div_ceil(16), side.div_ceil(16), 1],
            [16, 16, 1],
            vec![Int(side), Int(side), Float(0.5), Float(0.1), Words(side * side), Words(side * side)],
        ),
        (
            "sgemm",
            "sgemm16",
            [tiles / 16, tiles / 16, 1],
            [16, 16, 1],
            vec![Int(tiles), Words(tiles * tiles), Words(tiles * tiles), Words(tiles * tiles)],
        ),
        ("", "gather", [blocks, 1, 1], [256, 1, 1], vec![Int(masked), Words(masked + 1), Words(blocks * 256)]),
        ("", "additions", [blocks, 1, 1], [256, 1, 1], vec![Int(masked), Words(masked + 1)]),
        ("histogram", "histogram256", [blocks, 1, 1], [256, 1, 1], vec![Int(n), Words(n), Words(256)]),
        ("reduce", "reduce256", [n / 512, 1, 1], [256, 1, 1], vec![Words(n / 512 * 512), Words(n / 512)]),
        (
            "scan",
            "scan_blocks",
            [n.div_ceil(1024), 1, 1],
            [1024, 1, 1],
            vec![Int(n), Words(n), Words(n), Words(n.div_ceil(1024))],
        ),
        ("vector_add", "vector_add", [blocks, 1, 1], [256, 1, 1], vec![Int(n), Words(n), Words(n), Words(n)]),
        (
            "mandelbrot",
            "mandelbrot",
            [pick(64, 3), pick(64, 3), 1],
            [16, 16, 1],
            vec![
                Int(pick(1024, 41)),
                Int(pick(1024, 40)),
                Int(100),
                Float(-2.0),
                Float(-1.5),
                Float(3.0 / pick(1024, 41) as f32),
                Words(pick(1024, 48) * pick(1024, 48)),
            ],
        ),
    ];
    all.map(Kernel::new).into()
}

/// Kernels whose checks are measured, of 65,536 threads or elements: the first six as they are mostly written, the others of what a launch is doubted for.
pub fn checked_kernels() -> Vec<Kernel> {
    use Given::{Float, Int, Words, Zeros};
    let n = 1 << 16;
    let all = [
        ("saxpy", "saxpy", [256, 1, 1], [256, 1, 1], vec![Int(n), Float(2.0), Words(n), Words(n)]),
        (
            "stencil",
            "stencil5",
            [16, 16, 1],
            [16, 16, 1],
            vec![Int(256), Int(256), Float(0.5), Float(0.1), Words(n), Words(n)],
        ),
        ("reduce", "reduce256", [128, 1, 1], [256, 1, 1], vec![Words(n), Words(128)]),
        ("scan", "scan_blocks", [64, 1, 1], [1024, 1, 1], vec![Int(n), Words(n), Words(n), Words(64)]),
        ("sgemm", "sgemm16", [8, 8, 1], [16, 16, 1], vec![Int(128), Words(1 << 14), Words(1 << 14), Words(1 << 14)]),
        ("histogram", "histogram256", [64, 1, 1], [256, 1, 1], vec![Int(n), Words(n), Words(256)]),
        ("", "gather", [256, 1, 1], [256, 1, 1], vec![Int(n - 1), Words(n), Words(n)]),
        ("", "additions", [256, 1, 1], [256, 1, 1], vec![Int(n - 1), Words(n)]),
        ("", "tickets", [256, 1, 1], [256, 1, 1], vec![Int(n - 1), Words(n), Words(n)]),
        ("", "own_memory", [256, 1, 1], [256, 1, 1], vec![Int(n - 1), Words(n), Words(n)]),
        ("spin_lock", "spin_warps", [64, 1, 1], [256, 1, 1], vec![Int(16), Words(64)]),
        ("spin_lock", "spin_lanes", [8, 1, 1], [256, 1, 1], vec![Int(4), Zeros(64), Zeros(64)]),
        ("spin_lock", "spin_blocks", [512, 1, 1], [32, 1, 1], vec![Int(16), Zeros(64), Zeros(64)]),
    ];
    all.map(Kernel::new).into()
}

impl Kernel {
    /// A kernel of `tests/kernels`, or of those here if no file is named.
    fn new((file, entry, grid, block, given): (&str, &'static str, [u32; 3], [u32; 3], Vec<Given>)) -> Kernel {
        let path = format!("{}/kernels/{file}.ptx", env!("CARGO_MANIFEST_DIR"));
        let (name, text) = match file {
            "" => ("scattered.ptx".to_owned(), scattered()),
            _ => (format!("{file}.ptx"), std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))),
        };
        Kernel { entry, name, text, grid, block, given }
    }
}
