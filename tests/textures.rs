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
    let job = Job { name: "textures", text: &text, buffers, addresses, launches: vec![launch], variables: vec![] };
    for way in plain(Bounds::Exact) {
        let outcome = job.run(way, 0).unwrap_or_else(|e| panic!("{}: {e}", way.name));
        assert!(outcome.trap.is_none(), "{}: a trap", way.name);
        let got = outcome.buffers.last().expect("there are results").chunks_exact(4);
        for (thread, (got, want)) in got.zip(&want).enumerate() {
            let got = f32::from_le_bytes([got[0], got[1], got[2], got[3]]);
            let t = &textures[thread % textures.len()];
            assert!(
                got.to_bits() == *want,
                "{}: {geometry}, thread {thread}, {:?}, {}, linear {}, normalized {}: {got}, not {}",
                way.name,
                t.size,
                t.mode,
                t.is_linear,
                t.is_normalized,
                f32::from_bits(*want)
            );
        }
    }
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
