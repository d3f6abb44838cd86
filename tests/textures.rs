//! Fetches from textures at random places, by all who can run kernels, against formulas of the *CUDA Programming Guide* (Texture Fetching), computed here
//! in another way: each texel by the address mode of its own coordinate, weights by fractions.
//!
//! Texels are small integers and coordinates multiples of 1/4096, so that the exact value is a number of `.f32`, and must come out.

use std::fmt::Write;

use handloom_ir::num::image::{BASE_AT, Kind, Spec};
use handloom_runtime::Bounds;
use handloom_tests::engines::{Address, Argument, Job, Launch, plain};
use handloom_tests::rng::Rng;

/// Threads that each fetch once.
const THREADS: usize = 2048;
const BLOCK: usize = 64;

/// A texture and how it is read.
struct Texture {
    size: [usize; 3],
    layers: usize,
    is_linear: bool,
    is_normalized: bool,
    mode: &'static str,
}

/// Texels of an axis and their weights, for a coordinate in texels; `None` for the border.
fn axis(t: &Texture, size: usize, x: f64) -> Vec<(Option<usize>, f64)> {
    let n = size as f64;
    // The texel whose middle is at `centre`.
    let texel = |centre: f64| -> Option<usize> {
        let share = centre / n;
        let inside = match (t.mode, t.is_normalized) {
            ("wrap", true) => share - share.floor(),
            ("mirror", true) if share.floor().rem_euclid(2.0) == 0.0 => share - share.floor(),
            ("mirror", true) => 1.0 - (share - share.floor()),
            ("clamp_to_border", _) if !(0.0..n).contains(&centre) => return None,
            _ => centre.clamp(0.5, n - 0.5) / n,
        };
        Some((inside * n).floor() as usize)
    };
    if !t.is_linear {
        return vec![(texel(x.floor() + 0.5), 1.0)];
    }
    let from = x - 0.5;
    let fraction = ((from - from.floor()) * 256.0 + 0.5).floor() / 256.0;
    let middle = from.floor() + 0.5;
    vec![(texel(middle), 1.0 - fraction), (texel(middle + 1.0), fraction)]
}

/// What lies at a texel.
fn value(at: [usize; 3], layer: usize) -> f64 {
    ((at[0] * 7 + at[1] * 13 + at[2] * 29 + layer * 5) % 64) as f64
}

fn expected(t: &Texture, n_axes: usize, layer: usize, place: [f32; 3]) -> f32 {
    let mut sum = 0.0;
    let axes: Vec<_> = (0..3)
        .map(|i| {
            let x = f64::from(place[i]);
            match (i < n_axes, t.is_normalized) {
                (false, _) => vec![(Some(0), 1.0)],
                (true, true) => axis(t, t.size[i], x * t.size[i] as f64),
                (true, false) => axis(t, t.size[i], x),
            }
        })
        .collect();
    for (x, wx) in &axes[0] {
        for (y, wy) in &axes[1] {
            for (z, wz) in &axes[2] {
                let texel = match (x, y, z) {
                    (Some(x), Some(y), Some(z)) => value([*x, *y, *z], layer),
                    // The border's colour.
                    _ => 100.0,
                };
                sum += wx * wy * wz * texel;
            }
        }
    }
    sum as f32
}

fn bytes_of(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn check(geometry: &str, n_axes: usize, is_array: bool) {
    let mut rng = Rng::new(17 + n_axes as u64);
    let mut textures = Vec::new();
    for mode in ["wrap", "mirror", "clamp_to_edge", "clamp_ogl", "clamp_to_border"] {
        for choice in 0..4 {
            let sizes = [[8, 5, 3], [5, 4, 2], [1, 3, 4]][textures.len() % 3];
            let size = std::array::from_fn(|i| if i < n_axes { sizes[i] } else { 1 });
            let (is_linear, is_normalized) = (choice & 1 == 1, choice & 2 == 2);
            textures.push(Texture { size, layers: 3, is_linear, is_normalized, mode });
        }
    }
    // Buffers: texels and record of each texture, the handles, the places, the results.
    let (mut buffers, mut addresses) = (Vec::new(), Vec::new());
    let handles = 2 * textures.len();
    for (i, t) in textures.iter().enumerate() {
        let mut texels = Vec::new();
        for layer in 0..if is_array { t.layers } else { 1 } {
            for z in 0..t.size[2] {
                for y in 0..t.size[1] {
                    texels.extend((0..t.size[0]).map(|x| (value([x, y, z], layer) as f32).to_bits()));
                }
            }
        }
        let mut spec = serde_json::json!({
            "width": t.size[0],
            "address": [t.mode],
            "border": [100.0, 0.0, 0.0, 0.0],
            "normalized": t.is_normalized,
            "filter": if t.is_linear { "linear" } else { "nearest" },
        });
        if n_axes > 1 {
            spec["height"] = t.size[1].into();
        }
        if n_axes > 2 {
            spec["depth"] = t.size[2].into();
        }
        if is_array {
            spec["layers"] = t.layers.into();
        }
        let spec: Spec = serde_json::from_value(spec).expect("a texture in words");
        buffers.push(bytes_of(texels));
        buffers.push(spec.object(Kind::Texture).expect("a texture").encode().to_vec());
        addresses.push(Address { at: (2 * i + 1, u64::from(BASE_AT)), to: (2 * i, 0) });
        addresses.push(Address { at: (handles, 8 * i as u64), to: (2 * i + 1, 0) });
    }
    let (mut places, mut want) = (Vec::new(), Vec::new());
    for thread in 0..THREADS {
        let t = &textures[thread % textures.len()];
        let layer = rng.below(5);
        let mut place = [0.0; 3];
        for (i, p) in place.iter_mut().enumerate().take(n_axes) {
            // From two sizes before the texture to two after it, often on a texel's edge or middle.
            let span = if t.is_normalized { 1.0 } else { t.size[i] as f32 };
            let steps = rng.below(5 * 4096) as f32;
            let fine = (steps - 2.0 * 4096.0) / 4096.0 * span;
            let coarse = ((steps - 2.0 * 4096.0) / 512.0).floor() / 8.0 * span;
            *p = if rng.one_in(3) { coarse } else { fine };
        }
        let index = if is_array { layer.min(t.layers - 1) } else { 0 };
        // Some lanes do not take part.
        let fetched = if thread % 4 == 3 { -1.0 } else { expected(t, n_axes, index, place) };
        want.push(fetched.to_bits());
        places.extend([layer as u32, place[0].to_bits(), place[1].to_bits(), place[2].to_bits()]);
    }
    buffers.push(vec![0; 8 * textures.len()]);
    buffers.push(bytes_of(places));
    buffers.push(vec![0; 4 * THREADS]);
    let coordinates = match (is_array, n_axes) {
        (false, 1) => "{%c1}",
        (false, 2) => "{%c1, %c2}",
        (false, _) => "{%c1, %c2, %c3, %c3}",
        (true, 1) => "{%c0, %c1}",
        (true, _) => "{%c0, %c1, %c2, %c2}",
    };
    let mut text = String::from(".version 8.0\n.target sm_80\n.address_size 64\n");
    let _ = write!(
        text,
        ".visible .entry k(.param .u64 handles, .param .u64 places, .param .u64 out)\n{{\n\
         .reg .b64 %h, %p, %o, %t;\n.reg .b32 %i, %n, %c<4>;\n.reg .f32 %r<4>;\n.reg .pred %q;\n\
         ld.param.u64 %h, [handles];\nld.param.u64 %p, [places];\nld.param.u64 %o, [out];\n\
         mov.u32 %i, %ctaid.x;\nmov.u32 %n, %tid.x;\nmad.lo.u32 %i, %i, {BLOCK}, %n;\n\
         mad.wide.u32 %p, %i, 16, %p;\nmad.wide.u32 %o, %i, 4, %o;\nrem.u32 %i, %i, {};\nmad.wide.u32 %h, %i, 8, %h;\n\
         ld.global.u64 %t, [%h];\nld.global.v4.b32 {{%c0, %c1, %c2, %c3}}, [%p];\n\
         and.b32 %n, %n, 3;\nsetp.ne.u32 %q, %n, 3;\nmov.f32 %r0, 0fBF800000;\n\
         @%q tex.{geometry}.v4.f32.f32 {{%r0, %r1, %r2, %r3}}, [%t, {coordinates}];\nst.global.f32 [%o], %r0;\nret;\n}}\n",
        textures.len()
    );
    for (name, got) in run(&text, buffers, addresses, handles) {
        for (thread, (got, want)) in got.iter().zip(&want).enumerate() {
            let t = &textures[thread % textures.len()];
            assert!(
                got.to_bits() == *want,
                "{name}: {geometry}, thread {thread}, {:?}, {}, linear {}, normalized {}: {got}, not {}",
                t.size,
                t.mode,
                t.is_linear,
                t.is_normalized,
                f32::from_bits(*want)
            );
        }
    }
}

/// Runs the kernel by all who can on the handles, places and results, which are the last three buffers; what it left in the last one.
fn run(text: &str, buffers: Vec<Vec<u8>>, addresses: Vec<Address>, handles: usize) -> Vec<(String, Vec<f32>)> {
    let args = [0, 1, 2].map(|i| Argument::Buffer(handles + i, 0)).to_vec();
    let launch = Launch {
        entry: "k",
        grid: [u32::try_from(THREADS / BLOCK).expect("few blocks"), 1, 1],
        block: [u32::try_from(BLOCK).expect("few threads"), 1, 1],
        shared_bytes: 0,
        args,
        cooperative: false,
        cluster: None,
    };
    let job = Job { name: "textures", text, buffers, addresses, launches: vec![launch], variables: vec![] };
    let by = |way| {
        let outcome = job.run(way, 0).unwrap_or_else(|e| panic!("{}: {e}", way.name));
        assert!(outcome.trap.is_none(), "{}: a trap", way.name);
        let got = outcome.buffers.last().expect("there are results").chunks_exact(4);
        (way.name.to_string(), got.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    };
    plain(Bounds::Exact).map(by).collect()
}

#[test]
fn textures_of_one_to_three_dimensions() {
    check("1d", 1, false);
    check("2d", 2, false);
    check("3d", 3, false);
}

#[test]
fn arrays_of_textures() {
    check("a1d", 1, true);
    check("a2d", 2, true);
}

/// The axes of the faces of a cube, as the table of the OpenGL specification has them (Cube Map Texture Selection): to the face, along its rows, along its columns.
const FACES: [[[i64; 3]; 3]; 6] = [
    [[1, 0, 0], [0, 0, -1], [0, -1, 0]],
    [[-1, 0, 0], [0, 0, 1], [0, -1, 0]],
    [[0, 1, 0], [1, 0, 0], [0, 0, 1]],
    [[0, -1, 0], [1, 0, 0], [0, 0, -1]],
    [[0, 0, 1], [1, 0, 0], [0, -1, 0]],
    [[0, 0, -1], [-1, 0, 0], [0, -1, 0]],
];

/// What lies at a texel of a cube of `n` by `n` texels a face; `None` where two faces meet a third.
fn texel_of_cube(n: i64, is_seamless: bool, face: usize, at: [i64; 2]) -> Option<f64> {
    let inside = at.map(|c| c.clamp(0, n - 1));
    if !is_seamless || at == inside {
        return Some(value([inside[0] as usize, inside[1] as usize, face], 0));
    }
    if at[0] != inside[0] && at[1] != inside[1] {
        return None;
    }
    // A cube of the size 2 n: the texel's middle on the plane of the face, bent over the edge.
    let [s, t] = at.map(|c| 2 * c + 1 - n);
    let held = [s.clamp(-n, n), t.clamp(-n, n)];
    let depth = n - (s - held[0]).abs() - (t - held[1]).abs();
    let [to, along_s, along_t] = FACES[face];
    let point = [0, 1, 2].map(|i| depth * to[i] + held[0] * along_s[i] + held[1] * along_t[i]);
    let dot = |axis: [i64; 3]| (0..3).map(|i| axis[i] * point[i]).sum::<i64>();
    let beside = (0..6).find(|f| dot(FACES[*f][0]) == n).expect("a face on whose plane it lies");
    let [x, y] = [1, 2].map(|i| ((dot(FACES[beside][i]) + n) / 2) as usize);
    Some(value([x, y, beside], 0))
}

/// The four texels around a place of a face, first row first. At a corner of the cube one is the mean of the others.
fn around(n: i64, is_seamless: bool, face: usize, first: [i64; 2]) -> [f64; 4] {
    let found = [0, 1, 2, 3].map(|i| texel_of_cube(n, is_seamless, face, [first[0] + i % 2, first[1] + i / 2]));
    let mean = found.iter().flatten().sum::<f64>() / 3.0;
    found.map(|texel| texel.unwrap_or(f64::from(mean as f32)))
}

#[test]
fn filters_of_cubes_go_over_edges_if_they_are_asked_to() {
    let mut rng = Rng::new(23);
    let (mut buffers, mut addresses, mut cubes) = (Vec::new(), Vec::new(), Vec::new());
    for n in [1_i64, 2, 4, 7] {
        cubes.extend([(n, false), (n, true)]);
    }
    let handles = 2 * cubes.len();
    for (i, (n, is_seamless)) in cubes.iter().enumerate() {
        let side = *n as usize;
        let texels =
            (0..6 * side * side).map(|t| (value([t % side, t / side % side, t / side / side], 0) as f32).to_bits());
        buffers.push(bytes_of(texels));
        let spec = serde_json::json!({
            "width": n, "height": n, "cube": true, "seamless": is_seamless, "filter": "linear", "normalized": true,
            // Seamless, the mode does not count.
            "address": [if *is_seamless { "clamp_to_border" } else { "clamp_to_edge" }],
        });
        let spec: Spec = serde_json::from_value(spec).expect("a cube in words");
        buffers.push(spec.object(Kind::Texture).expect("a texture").encode().to_vec());
        addresses.push(Address { at: (2 * i + 1, u64::from(BASE_AT)), to: (2 * i, 0) });
        addresses.push(Address { at: (handles, 8 * i as u64), to: (2 * i + 1, 0) });
    }
    let (mut places, mut want) = (Vec::new(), Vec::new());
    for thread in 0..THREADS {
        let (n, is_seamless) = cubes[thread % cubes.len()];
        let face = rng.below(6);
        // Often near an edge, not on it: there the face would be another one.
        let minor = [(); 2].map(|()| {
            let far = 256 - 1 - if rng.one_in(2) { rng.below(40) } else { rng.below(256) } as i64;
            if rng.one_in(2) { far } else { -far }
        });
        let [to, s, t] = FACES[face];
        let place = [0, 1, 2].map(|i| (256 * to[i] + minor[0] * s[i] + minor[1] * t[i]) as f32 / 256.0);
        places.extend([0, place[0].to_bits(), place[1].to_bits(), place[2].to_bits()]);
        // With 8 fraction bits, as the programming guide says.
        let centre = minor.map(|m| ((m as f64 / 256.0 + 1.0) / 2.0 * n as f64 - 0.5) * 256.0);
        let centre = centre.map(|c| (c + 0.5).floor() / 256.0);
        let first = centre.map(|c| c.floor() as i64);
        let weight = centre.map(|c| c - c.floor());
        let texels = around(n, is_seamless, face, first);
        let [x, y] = weight;
        let weights = [(1.0 - x) * (1.0 - y), x * (1.0 - y), (1.0 - x) * y, x * y];
        let mean: f64 = texels.iter().zip(weights).map(|(texel, weight)| texel * weight).sum();
        // A gather begins at the lower left.
        let gathered = [2, 3, 1, 0].map(|i| texels[i]);
        want.extend([mean, gathered[0], gathered[1], gathered[2], gathered[3]].map(|v| v as f32));
    }
    buffers.push(vec![0; 8 * cubes.len()]);
    buffers.push(bytes_of(places));
    buffers.push(vec![0; 20 * THREADS]);
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 handles, .param .u64 places, .param .u64 out)\n{{\n\
         .reg .b64 %h, %p, %o, %t;\n.reg .b32 %i, %n;\n.reg .f32 %c<4>, %r<4>, %g<4>;\n\
         ld.param.u64 %h, [handles];\nld.param.u64 %p, [places];\nld.param.u64 %o, [out];\n\
         mov.u32 %i, %ctaid.x;\nmov.u32 %n, %tid.x;\nmad.lo.u32 %i, %i, {BLOCK}, %n;\n\
         mad.wide.u32 %p, %i, 16, %p;\nmad.wide.u32 %o, %i, 20, %o;\nrem.u32 %i, %i, {};\nmad.wide.u32 %h, %i, 8, %h;\n\
         ld.global.u64 %t, [%h];\nld.global.v4.f32 {{%c0, %c1, %c2, %c3}}, [%p];\n\
         tex.cube.v4.f32.f32 {{%r0, %r1, %r2, %r3}}, [%t, {{%c1, %c2, %c3, %c3}}];\nst.global.f32 [%o], %r0;\n\
         tld4.r.cube.v4.f32.f32 {{%g0, %g1, %g2, %g3}}, [%t, {{%c1, %c2, %c3, %c3}}];\n\
         st.global.f32 [%o+4], %g0;\nst.global.f32 [%o+8], %g1;\nst.global.f32 [%o+12], %g2;\nst.global.f32 [%o+16], %g3;\nret;\n}}\n",
        cubes.len()
    );
    let got = run(&text, buffers, addresses, handles);
    for (name, got) in got {
        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
            let cube = cubes[i / 5 % cubes.len()];
            assert!(got == want, "{name}: thread {}, number {}, {cube:?}: {got}, not {want}", i / 5, i % 5);
        }
    }
}
