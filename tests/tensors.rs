//! Copies of boxes of tensors, on all engines: tiles of one to five dimensions, im2col, rows; every interleave, swizzle, fill and direction, at places inside and outside of the
//! tensor. What is expected is made here element by element: from coordinates by the definition of a box, and in shared memory by the manual's tables of
//! chunks. A barrier that did not get the exact bytes would wait for ever.

use std::fmt::Write;

use handloom_ir::tensor_map::{Atomicity, ElementType, Fill, Interleave, Promotion, Shape, Swizzle, TensorMap};
use handloom_runtime::Bounds;
use handloom_tests::engines::{Argument, Job, Launch, plain};
use handloom_tests::rng::Rng;

/// Bytes of shared memory that a copy may use here, and of `out`.
const ROOM: usize = 32768;
/// Bytes of the tensor's memory.
const MEMORY: usize = 65536;
/// Pixels of a map for copies of 128 pixels, which do not look at this number.
const WIDE_128: u32 = 1;
/// What shared memory holds before a load.
const BEFORE: u8 = 0xee;

/// Chunks of 16 bytes in lines of 128, as the manual's tables of swizzling modes have them: the chunk that is found at each place.
const SWIZZLE_32: &[[usize; 8]] = &[[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6]];
const SWIZZLE_64: &[[usize; 8]] =
    &[[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6], [2, 3, 0, 1, 6, 7, 4, 5], [3, 2, 1, 0, 7, 6, 5, 4]];
const SWIZZLE_128: &[[usize; 8]] = &[
    [0, 1, 2, 3, 4, 5, 6, 7],
    [1, 0, 3, 2, 5, 4, 7, 6],
    [2, 3, 0, 1, 6, 7, 4, 5],
    [3, 2, 1, 0, 7, 6, 5, 4],
    [4, 5, 6, 7, 0, 1, 2, 3],
    [5, 4, 7, 6, 1, 0, 3, 2],
    [6, 7, 4, 5, 2, 3, 0, 1],
    [7, 6, 5, 4, 3, 2, 1, 0],
];
const SWIZZLE_128_BY_32: &[[usize; 8]] =
    &[[0, 1, 2, 3, 4, 5, 6, 7], [2, 3, 0, 1, 6, 7, 4, 5], [4, 5, 6, 7, 0, 1, 2, 3], [6, 7, 4, 5, 2, 3, 0, 1]];
const SWIZZLE_128_BY_64: &[[usize; 8]] = &[[0, 1, 2, 3, 4, 5, 6, 7], [4, 5, 6, 7, 0, 1, 2, 3]];

/// Where a byte of shared memory goes.
fn swizzled(map: &TensorMap, at: usize) -> usize {
    let table = match (map.swizzle, map.atomicity) {
        (Swizzle::None, _) => return at,
        (Swizzle::Bytes32 | Swizzle::Bytes96, _) => SWIZZLE_32,
        (Swizzle::Bytes64, _) => SWIZZLE_64,
        (Swizzle::Bytes128, Atomicity::Bytes16) => SWIZZLE_128,
        (Swizzle::Bytes128, Atomicity::Bytes32 | Atomicity::Bytes32Flip8) => SWIZZLE_128_BY_32,
        (Swizzle::Bytes128, Atomicity::Bytes64) => SWIZZLE_128_BY_64,
    };
    let (line, chunk, byte) = (at / 128, at / 16 % 8, at % 16);
    let place = table[line % table.len()].iter().position(|c| *c == chunk).unwrap();
    // The halves of a chunk change places in every other line.
    let is_flipped = map.atomicity == Atomicity::Bytes32Flip8 && line % 2 == 1;
    line * 128 + place * 16 + if is_flipped { (byte + 8) % 16 } else { byte }
}

/// What becomes of two words.
type Reduction = fn(u32, u32) -> u32;

/// A copy.
#[derive(Clone)]
struct Case {
    map: TensorMap,
    at: Vec<i64>,
    /// Offsets of im2col.
    offsets: Vec<i64>,
}

/// An element: its bytes in global memory, if it lies in the tensor, and its bytes in shared memory.
struct Found {
    global: Option<usize>,
    shared: usize,
}

/// Bytes of an element, or of a slice of an interleaved tensor.
fn unit(map: &TensorMap) -> usize {
    match map.interleave {
        Interleave::None => map.element.group_bytes() as usize,
        Interleave::Bytes16 => 16,
        Interleave::Bytes32 => 32,
    }
}

fn global(map: &TensorMap, place: &[i64]) -> Option<usize> {
    let inside = place.iter().zip(&map.dims).all(|(c, n)| (0..*n as i64).contains(c));
    let strides = std::iter::once(unit(map) as i64).chain(map.strides.iter().map(|s| *s as i64));
    inside.then(|| place.iter().zip(strides).map(|(c, s)| c * s).sum::<i64>() as usize)
}

/// Places of the lines of a copy, and the units of a line.
fn lines(case: &Case) -> (Vec<Vec<i64>>, usize) {
    let map = &case.map;
    let rank = map.rank;
    match map.shape {
        Shape::Tiled { size } => {
            let step = |d: usize| {
                if d == 0 && map.interleave == Interleave::None { 1 } else { map.element_strides[d] as usize }
            };
            let n = |d: usize| {
                if map.interleave != Interleave::None && d == rank - 2 {
                    1
                } else {
                    (size[d] as usize).div_ceil(step(d))
                }
            };
            if case.at.len() > rank {
                return (case.at[1..].iter().map(|row| vec![case.at[0], *row]).collect(), n(0));
            }
            let mut all = vec![vec![case.at[0]]];
            for d in 1..rank {
                let next = (0..n(d)).flat_map(|i| {
                    all.iter()
                        .map(move |line: &Vec<i64>| [line.clone(), vec![case.at[d] + (i * step(d)) as i64]].concat())
                });
                all = next.collect();
            }
            (all, n(0))
        }
        Shape::Im2col { lower, upper, channels, pixels } => {
            let plain = map.interleave == Interleave::None;
            let first = usize::from(plain);
            let n = rank - 2;
            let mut all: Vec<Vec<i64>> = Vec::new();
            let mut from: Vec<i64> = case.at[first..first + n].to_vec();
            from.resize(3, 0);
            let end = |i: usize| if i < n { map.dims[first + i] as i64 - 1 + i64::from(upper[i]) } else { 0 };
            let low = |i: usize| if i < n { i64::from(lower[i]) } else { 0 };
            let by = |i: usize| if i < n { map.element_strides[first + i] as usize } else { 1 };
            for image in case.at[rank - 1].. {
                if all.len() >= pixels as usize {
                    break;
                }
                for z in (from[2]..=end(2)).step_by(by(2)) {
                    for y in (from[1]..=end(1)).step_by(by(1)) {
                        for x in (from[0]..=end(0)).step_by(by(0)) {
                            let spatial: Vec<i64> = [x, y, z][..n]
                                .iter()
                                .enumerate()
                                .map(|(i, c)| c + case.offsets.get(i).copied().unwrap_or(0))
                                .collect();
                            all.push(if plain {
                                [vec![case.at[0]], spatial, vec![image]].concat()
                            } else {
                                [spatial, vec![case.at[rank - 2], image]].concat()
                            });
                        }
                        from[0] = low(0);
                    }
                    from[1] = low(1);
                }
                from[2] = low(2);
            }
            all.truncate(pixels as usize);
            (all, if plain { channels as usize } else { 1 })
        }
        Shape::Wide { lower, upper, channels, pixels } => {
            let (halo, by) = (case.offsets[0], case.offsets[1]);
            let step = map.element_strides[1] as usize;
            let end = map.dims[1] as i64 - 1 + i64::from(upper) + by;
            let n = if pixels == WIDE_128 { 128 } else { pixels as usize };
            let line = |w: i64, image: i64| {
                let mut place = case.at.clone();
                (place[1], place[rank - 1]) = (w, image);
                place
            };
            let mut main: Vec<(i64, i64)> = Vec::new();
            let mut from = case.at[1] + by;
            for image in case.at[rank - 1].. {
                if main.len() >= n {
                    break;
                }
                main.extend((from..=end).step_by(step).map(|w| (w, image)));
                from = i64::from(lower) + by;
            }
            main.truncate(n);
            let parts = main.chunks(if pixels == WIDE_128 { 32 } else { n });
            let all = parts.flat_map(|part| {
                let (w, image) = *part.last().unwrap();
                let behind = (1..=halo).map(move |k| (w + k * step as i64, image));
                part.iter().copied().chain(behind).map(|(w, image)| line(w, image)).collect::<Vec<_>>()
            });
            (all.collect(), channels as usize)
        }
    }
}

fn elements(case: &Case) -> Vec<Found> {
    let map = &case.map;
    let (lines, units) = lines(case);
    let pitch = (units * unit(map)).max(map.swizzle.span() as usize);
    let step = if map.interleave == Interleave::None { 1 } else { i64::from(map.element_strides[0]) };
    let mut all = Vec::new();
    for (l, line) in lines.iter().enumerate() {
        for i in 0..units {
            let mut place = line.clone();
            place[0] += i as i64 * step;
            all.push(Found { global: global(map, &place), shared: l * pitch + i * unit(map) });
        }
    }
    all
}

/// What a load leaves in `out`.
fn loaded(case: &Case, memory: &[u8]) -> (Vec<u8>, usize) {
    let mut out = vec![BEFORE; ROOM];
    let (n, mut bytes) = (unit(&case.map), 0);
    for e in elements(case) {
        for b in 0..n {
            out[swizzled(&case.map, e.shared + b)] = match (e.global, case.map.fill) {
                (Some(at), _) => memory[at + b],
                (None, Fill::Zero) => 0,
                // The NaN that `fma.oob` knows.
                (None, Fill::Nan) => [0xf7, 0x7f][b % 2],
            };
        }
        bytes += n;
    }
    (out, bytes)
}

/// What a store leaves in memory.
fn stored(case: &Case, memory: &[u8], shared: &[u8], op: Reduction) -> Vec<u8> {
    let mut out = memory.to_vec();
    let n = unit(&case.map);
    for e in elements(case) {
        let Some(at) = e.global else { continue };
        let new: Vec<u8> = (0..n).map(|b| shared[swizzled(&case.map, e.shared + b)]).collect();
        if n == 4 {
            let word = |b: &[u8]| u32::from_le_bytes(b.try_into().unwrap());
            let sum = op(word(&out[at..at + 4]), word(&new));
            out[at..at + 4].copy_from_slice(&sum.to_le_bytes());
        } else {
            out[at..at + n].copy_from_slice(&new);
        }
    }
    out
}

/// A kernel that fills shared memory from `out`, does a copy, and, for a load, writes shared memory to `out`. The map gets its address here.
fn kernel(copy: &str, is_load: bool, n: usize, offsets: usize) -> String {
    let mut text = String::from(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 map, .param .u64 x, .param .u64 out, .param .u32 bytes",
    );
    (0..n).for_each(|i| write!(text, ", .param .s32 c{i}").unwrap());
    (0..offsets).for_each(|i| write!(text, ", .param .u32 o{i}").unwrap());
    text += ")\n{\n.shared .align 1024 .b8 box[32768];\n.shared .align 8 .b64 bar;\n.reg .b64 %m, %x, %out;\n.reg .b32 %n, %c<5>;\n\
             .reg .b16 %o<3>;\n.reg .pred %q;\n\
             ld.param.u64 %m, [map];\nld.param.u64 %x, [x];\nld.param.u64 %out, [out];\nld.param.u32 %n, [bytes];\n";
    (0..n).for_each(|i| writeln!(text, "ld.param.s32 %c{i}, [c{i}];").unwrap());
    (0..offsets).for_each(|i| writeln!(text, "ld.param.u16 %o{i}, [o{i}];").unwrap());
    text += "tensormap.replace.tile.global_address.global.b1024.b64 [%m], %x;\n\
             fence.proxy.tensormap::generic.release.gpu;\nfence.proxy.tensormap::generic.acquire.gpu [%m], 128;\n\
             mbarrier.init.shared.b64 [bar], 1;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], 32768;\n\
             cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [box], [%out], 32768, [bar];\n\
             W0:\nmbarrier.try_wait.parity.shared.b64 %q, [bar], 0;\n@!%q bra W0;\n";
    let list = |name: char, n: usize| (0..n).map(|i| format!("%{name}{i}")).collect::<Vec<_>>().join(", ");
    let copy = copy.replace("COORDINATES", &list('c', n)).replace("OFFSETS", &list('o', offsets));
    if is_load {
        let _ = write!(
            text,
            "{copy}\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], %n;\n\
             W1:\nmbarrier.try_wait.parity.shared.b64 %q, [bar], 1;\n@!%q bra W1;\n\
             cp.async.bulk.global.shared::cta.bulk_group [%out], [box], 32768;\n"
        );
    } else {
        let _ = writeln!(text, "{copy}");
    }
    text + "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;\n}\n"
}

/// Runs a kernel on cases by all who can, and compares `x` and `out`.
fn check(
    text: &str,
    cases: &[Case],
    want: impl Fn(&Case) -> Vec<(usize, Vec<u8>)>,
    buffers: impl Fn(&Case) -> Vec<Vec<u8>>,
) {
    for case in cases {
        let want = want(case);
        let bytes = elements(case).len() * unit(&case.map);
        let mut all = vec![case.map.encode().unwrap().to_vec()];
        all.extend(buffers(case));
        let mut args = vec![Argument::Buffer(0, 0), Argument::Buffer(1, 0), Argument::Buffer(2, 0)];
        args.push(Argument::Scalar(bytes as u64));
        let words = case.at.iter().chain(&case.offsets).map(|c| Argument::Scalar(u64::from(*c as i32 as u32)));
        args.extend(words);
        let launch = Launch {
            entry: "k",
            grid: [1; 3],
            block: [1; 3],
            shared_bytes: 0,
            args,
            cooperative: false,
            cluster: None,
        };
        let job =
            Job { name: "tensor", text, buffers: all, addresses: vec![], launches: vec![launch], variables: vec![] };
        for way in plain(Bounds::Exact) {
            let told = || format!("{}: {:?} at {:?} {:?}\n{text}", way.name, case.map, case.at, case.offsets);
            let outcome = job.run(way, 0).unwrap_or_else(|e| panic!("{e}: {}", told()));
            assert!(outcome.trap.is_none(), "a trap: {}", told());
            for (i, want) in &want {
                let at = outcome.buffers[*i].iter().zip(want).position(|(got, want)| got != want);
                assert!(at.is_none(), "byte {} of buffer {i} differs: {}", at.unwrap(), told());
            }
        }
    }
}

fn random_bytes(rng: &mut Rng, n: usize) -> Vec<u8> {
    (0..n).map(|_| rng.below(256) as u8).collect()
}

/// Elements with the swizzles and atomicities, which take turns.
const SWIZZLES: &[(Swizzle, Atomicity)] = &[
    (Swizzle::None, Atomicity::Bytes16),
    (Swizzle::Bytes32, Atomicity::Bytes16),
    (Swizzle::Bytes64, Atomicity::Bytes16),
    (Swizzle::Bytes128, Atomicity::Bytes16),
    (Swizzle::Bytes128, Atomicity::Bytes32),
    (Swizzle::Bytes128, Atomicity::Bytes32Flip8),
    (Swizzle::Bytes128, Atomicity::Bytes64),
];
const ELEMENTS: &[(ElementType, Fill)] = &[
    (ElementType::U8, Fill::Zero),
    (ElementType::F16, Fill::Nan),
    (ElementType::S32, Fill::Zero),
    (ElementType::F32, Fill::Nan),
    (ElementType::U64, Fill::Zero),
    (ElementType::BF16, Fill::Zero),
    (ElementType::F64, Fill::Nan),
];

/// A map of a dense tensor with padding, whose box has so many bytes in a line.
fn map(rank: usize, turn: usize) -> TensorMap {
    let (element, fill) = ELEMENTS[turn % ELEMENTS.len()];
    let (swizzle, atomicity) = SWIZZLES[turn % SWIZZLES.len()];
    let bytes = element.group_bytes();
    let line = match swizzle.span() {
        0 => 48,
        // A line as long as the span, or half of it.
        span => span / (1 + turn as u32 / 2 % 2),
    }
    .max(16);
    let dims = [[u64::from(line / bytes) + 5, 6, 4, 3, 2], [u64::from(2 * line / bytes), 9, 3, 2, 3]][turn % 2];
    let mut strides = [0; 4];
    let mut stride = (dims[0] * u64::from(bytes)).next_multiple_of(16) + 16 * (turn as u64 % 3);
    for (s, n) in strides.iter_mut().zip(&dims[1..]) {
        *s = stride;
        stride *= n;
    }
    let steps = [[1, 1, 1, 1, 1], [1, 2, 1, 3, 1]][turn / 3 % 2];
    TensorMap {
        element,
        rank,
        address: 0,
        dims,
        strides,
        element_strides: steps,
        interleave: Interleave::None,
        swizzle,
        atomicity,
        promotion: Promotion::None,
        fill,
        shape: Shape::Tiled { size: [line / bytes, 5, 3, 2, 2] },
    }
}

/// Places inside and outside of a tensor.
fn places(map: &TensorMap, turn: usize, is_store: bool) -> Vec<i64> {
    let all: [&[i64]; 4] = [&[0; 5], &[3, 2, 1, 0, 1], &[-4, -2, -1, -1, -1], &[7, 5, 3, 2, 1]];
    let at = &all[turn % if is_store { 2 } else { 4 }][..map.rank];
    at.to_vec()
}

#[test]
fn tiles_are_loaded() {
    let mut rng = Rng::new(3);
    let memory = random_bytes(&mut rng, MEMORY);
    for rank in 1..=5 {
        let cases: Vec<Case> = (0..8)
            .map(|i| {
                let turn = 5 * i + rank;
                let map = map(rank, turn);
                Case { map, at: places(&map, i, false), offsets: vec![] }
            })
            .collect();
        let to = if rank % 2 == 0 { "cta" } else { "cluster" };
        let copy = format!(
            "cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [%m, {{COORDINATES}}];\n\
             cp.async.bulk.tensor.{rank}d.shared::{to}.global.tile.mbarrier::complete_tx::bytes [box], [%m, {{COORDINATES}}], [bar];"
        );
        let text = kernel(&copy, true, rank, 0);
        check(&text, &cases, |c| vec![(2, loaded(c, &memory).0)], |_| vec![memory.clone(), vec![BEFORE; ROOM]]);
    }
}

#[test]
fn tiles_are_stored_and_reduced() {
    let mut rng = Rng::new(4);
    let (memory, shared) = (random_bytes(&mut rng, MEMORY), random_bytes(&mut rng, ROOM));
    let ops: &[(&str, Reduction)] = &[
        ("", |_, new| new),
        (".add", u32::wrapping_add),
        (".min", |a, b| a.cast_signed().min(b.cast_signed()).cast_unsigned()),
        (".max", |a, b| a.cast_signed().max(b.cast_signed()).cast_unsigned()),
        (".xor", |a, b| a ^ b),
        (".and", |a, b| a & b),
        (".or", |a, b| a | b),
    ];
    for rank in 1..=5 {
        for (k, (word, op)) in ops.iter().enumerate().filter(|(k, _)| *k == 0 || k % 5 == rank % 5) {
            let cases: Vec<Case> = (0..if k == 0 { 5 } else { 2 })
                .map(|i| {
                    let mut map = map(rank, 4 * i + rank + k);
                    if map.atomicity == Atomicity::Bytes32Flip8 {
                        map.atomicity = Atomicity::Bytes32;
                    }
                    if k > 0 {
                        let line = map.element.group_bytes();
                        let Shape::Tiled { size } = &mut map.shape else { unreachable!() };
                        size[0] = size[0] * line / 4;
                        map.dims[0] = map.dims[0] * u64::from(line) / 4;
                        map.element = ElementType::S32;
                        map.fill = Fill::Zero;
                    }
                    Case { map, at: places(&map, i, true), offsets: vec![] }
                })
                .collect();
            let reduce = if k == 0 { "cp" } else { "cp.reduce" };
            let copy = format!(
                "{reduce}.async.bulk.tensor.{rank}d.global.shared::cta{word}.tile.bulk_group [%m, {{COORDINATES}}], [box];"
            );
            let text = kernel(&copy, false, rank, 0);
            let want = |c: &Case| vec![(1, stored(c, &memory, &shared, *op))];
            check(&text, &cases, want, |_| vec![memory.clone(), shared.clone()]);
        }
    }
}

/// A tensor of images for im2col.
fn images(rank: usize, turn: usize) -> TensorMap {
    let n = rank - 2;
    let mut dims = [16, 7, 6, 5, 3];
    dims[rank - 1] = 3;
    let mut strides = [0; 4];
    let mut stride = 48;
    for (s, n) in strides.iter_mut().zip(&dims[1..]) {
        *s = stride;
        stride *= n;
    }
    let corner = |c: i16| std::array::from_fn(|i| if i < n { c } else { 0 });
    let steps = if turn.is_multiple_of(2) { [1; 5] } else { [1, 2, 2, 1, 1] };
    TensorMap {
        element: ElementType::F16,
        dims,
        strides,
        rank,
        element_strides: steps,
        swizzle: SWIZZLES[turn % 3].0,
        fill: if turn.is_multiple_of(3) { Fill::Nan } else { Fill::Zero },
        atomicity: Atomicity::Bytes16,
        shape: Shape::Im2col { lower: corner(-1), upper: corner(-1), channels: 16, pixels: 40 + turn as u32 },
        ..map(rank, 0)
    }
}

#[test]
fn pixels_are_loaded_and_stored() {
    let mut rng = Rng::new(6);
    let (memory, shared) = (random_bytes(&mut rng, MEMORY), random_bytes(&mut rng, ROOM));
    for rank in 3..=5 {
        let n = rank - 2;
        let starts = [vec![0; rank], vec![3; rank], vec![-1; rank]];
        let cases = |is_load: bool| {
            (0..6).map(move |turn| {
                let map = images(rank, turn);
                (map, turn, is_load)
            })
        };
        let loads: Vec<Case> = cases(true)
            .map(|(map, turn, _)| {
                let mut at = starts[turn % 3].clone();
                (at[0], at[rank - 1]) = ([0, 8, -3][turn % 3], [0, 1, 2][turn / 2]);
                Case { map, at, offsets: vec![[0, 1, 2][turn / 2]; n] }
            })
            .collect();
        let copy = format!(
            "cp.async.bulk.prefetch.tensor.{rank}d.L2.global.im2col [%m, {{COORDINATES}}], {{OFFSETS}};\n\
             cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [box], [%m, {{COORDINATES}}], [bar], {{OFFSETS}};"
        );
        let text = kernel(&copy, true, rank, n);
        check(&text, &loads, |c| vec![(2, loaded(c, &memory).0)], |_| vec![memory.clone(), vec![BEFORE; ROOM]]);
        let stores: Vec<Case> = cases(false)
            .map(|(map, turn, _)| {
                let mut at = vec![turn as i64 % 3; rank];
                at[0] = 8 * (turn as i64 % 2);
                Case { map, at, offsets: vec![] }
            })
            .collect();
        let copy = format!(
            "cp.async.bulk.tensor.{rank}d.global.shared::cta.im2col_no_offs.bulk_group [%m, {{COORDINATES}}], [box];"
        );
        let text = kernel(&copy, false, rank, 0);
        let want = |c: &Case| vec![(1, stored(c, &memory, &shared, |_, new| new))];
        check(&text, &stores, want, |_| vec![memory.clone(), shared.clone()]);
    }
}

#[test]
fn rows_are_gathered_and_scattered() {
    let mut rng = Rng::new(8);
    let (memory, shared) = (random_bytes(&mut rng, MEMORY), random_bytes(&mut rng, ROOM));
    let cases: Vec<Case> = (0..7)
        .map(|turn| {
            let mut map = map(2, turn);
            if map.atomicity == Atomicity::Bytes32Flip8 {
                map.atomicity = Atomicity::Bytes16;
            }
            map.element_strides = [1; 5];
            let Shape::Tiled { size } = &mut map.shape else { unreachable!() };
            size[1] = 1;
            Case { map, at: [vec![2, 1, 5, 0, 3], vec![3, 4, 4, 20, 2]][turn % 2].clone(), offsets: vec![] }
        })
        .collect();
    let load = "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%m, {COORDINATES}];\n\
                cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [box], [%m, {COORDINATES}], [bar];";
    let text = kernel(load, true, 5, 0);
    check(&text, &cases, |c| vec![(2, loaded(c, &memory).0)], |_| vec![memory.clone(), vec![BEFORE; ROOM]]);
    let store = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%m, {COORDINATES}], [box];";
    let text = kernel(store, false, 5, 0);
    let want = |c: &Case| vec![(1, stored(c, &memory, &shared, |_, new| new))];
    check(&text, &cases, want, |_| vec![memory.clone(), shared.clone()]);
}

#[test]
fn slices_of_interleaved_tensors_are_copied() {
    let mut rng = Rng::new(9);
    let (memory, shared) = (random_bytes(&mut rng, MEMORY), random_bytes(&mut rng, ROOM));
    for rank in 3..=5 {
        // W, then H and D, slices of channels, images.
        let cases: Vec<Case> = (0..5)
            .map(|turn| {
                let (interleave, swizzle) = [
                    (Interleave::Bytes16, Swizzle::None),
                    (Interleave::Bytes32, Swizzle::Bytes32),
                    (Interleave::Bytes16, Swizzle::Bytes32),
                ][turn % 3];
                let mut dims = [5, 4, 3, 2, 2];
                dims[rank - 1] = 2;
                let mut strides = [0; 4];
                let mut stride = 5 * 32;
                for (s, n) in strides.iter_mut().zip(&dims[1..]) {
                    *s = stride;
                    stride *= n;
                }
                let map = TensorMap {
                    element: ElementType::BF16,
                    dims,
                    strides,
                    rank,
                    element_strides: [[1; 5], [2, 1, 1, 1, 1]][turn % 2],
                    interleave,
                    swizzle,
                    atomicity: Atomicity::Bytes16,
                    fill: if turn == 3 { Fill::Nan } else { Fill::Zero },
                    shape: Shape::Tiled { size: [6, 3, 2, 2, 2] },
                    ..map(rank, 0)
                };
                Case { map, at: vec![turn as i64 % 2; rank], offsets: vec![] }
            })
            .collect();
        let load = format!(
            "cp.async.bulk.tensor.{rank}d.shared::cta.global.mbarrier::complete_tx::bytes [box], [%m, {{COORDINATES}}], [bar];"
        );
        let text = kernel(&load, true, rank, 0);
        check(&text, &cases, |c| vec![(2, loaded(c, &memory).0)], |_| vec![memory.clone(), vec![BEFORE; ROOM]]);
        let store = format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group [%m, {{COORDINATES}}], [box];");
        let text = kernel(&store, false, rank, 0);
        let want = |c: &Case| vec![(1, stored(c, &memory, &shared, |_, new| new))];
        check(&text, &cases, want, |_| vec![memory.clone(), shared.clone()]);
    }
}

#[test]
fn pixels_along_a_line_are_loaded() {
    let mut rng = Rng::new(11);
    let memory = random_bytes(&mut rng, MEMORY);
    for rank in 3..=5 {
        for (mode, pixels) in [("w", 21), ("w::128", WIDE_128)] {
            let cases: Vec<Case> = (0..4)
                .map(|turn| {
                    let (lower, upper) = [(-1, 0), (0, 0), (-1, -1), (0, -2)][turn];
                    let (swizzle, atomicity) = SWIZZLES[2 + turn % 3];
                    let map = TensorMap {
                        swizzle,
                        atomicity,
                        element_strides: [1, [1, 2, 3, 1][turn], 1, 1, 1],
                        fill: Fill::Nan,
                        shape: Shape::Wide { lower, upper, channels: 16, pixels },
                        ..images(rank, turn)
                    };
                    let mut at = vec![1; rank];
                    (at[0], at[1], at[rank - 1]) = (0, [-1, 2, -1, 0][turn], 0);
                    Case { map, at, offsets: [vec![1, 0], vec![2, 0], vec![0, 2], vec![3, 1]][turn].clone() }
                })
                .collect();
            let copy = format!(
                "cp.async.bulk.prefetch.tensor.{rank}d.L2.global.im2col::{mode} [%m, {{COORDINATES}}], {{OFFSETS}};\n\
                 cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col::{mode}.mbarrier::complete_tx::bytes [box], [%m, {{COORDINATES}}], [bar], {{OFFSETS}};"
            );
            let text = kernel(&copy, true, rank, 2);
            check(&text, &cases, |c| vec![(2, loaded(c, &memory).0)], |_| vec![memory.clone(), vec![BEFORE; ROOM]]);
        }
    }
}
