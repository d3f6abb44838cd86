//! Textures and surfaces as CUDA C++ uses them. Coordinates and texels are such that filtered values are exact.

use handloom_ir::num::image::{BASE_AT, Kind, Spec};
use handloom_runtime::{Arg, DeviceBuffer};
use handloom_tests::reference::data::{bytes_of, mixed, n32, same};
use handloom_tests::reference::run::{Kernels, each_way, read, ways};

/// An object over a buffer.
fn object(k: &Kernels<'_>, kind: Kind, texels: &DeviceBuffer, spec: serde_json::Value) -> DeviceBuffer {
    let spec: Spec = serde_json::from_value(spec).expect("an image in words");
    let mut bytes = spec.object(kind).expect("an image").encode();
    bytes[BASE_AT as usize..][..8].copy_from_slice(&texels.address().to_le_bytes());
    k.copy_of(&bytes)
}

/// Two texels of an axis, held to its ends, and the weight of the second: a fraction of 8 bits.
fn pair(x: f64, n: usize) -> ([usize; 2], f64) {
    let from = x - 0.5;
    let texel = |i: f64| i.clamp(0.0, (n - 1) as f64) as usize;
    ([texel(from.floor()), texel(from.floor() + 1.0)], ((from - from.floor()) * 256.0 + 0.5).floor() / 256.0)
}

fn points(v: &[[f32; 3]]) -> Vec<f32> {
    v.concat()
}

#[test]
fn textures() {
    each_way(&ways(), "textures", |k| {
        resize(k);
        rays(k);
        sky(k);
        details(k);
        neighbours(k);
        turn(k);
    });
}

/// 24 x 20 texels of four bytes to 64 x 32: all coordinates are exact.
fn resize(k: &Kernels<'_>) {
    let (w, h, width, height) = (24, 20, 64, 32);
    let picture: Vec<u8> = (0..n32(w * h * 4)).map(|i| mixed(i).to_le_bytes()[1]).collect();
    let texels = k.copy_of(&picture);
    let spec = serde_json::json!({"width": w, "height": h, "channel": "unorm8", "components": 4, "filter": "linear", "normalized": true});
    let (from, to) = (object(k, Kind::Texture, &texels, spec), k.zeros::<u8>(width * height * 4));
    let args = [(&from).into(), (&to).into(), Arg::from(n32(width)), n32(height).into()];
    k.launch("resize", [4, 4, 1], [16, 8, 1], &args);
    for (i, got) in read::<u8>(&to).into_iter().enumerate() {
        let (x, y, channel) = (i / 4 % width, i / 4 / width, i % 4);
        let (columns, wx) = pair((x as f64 + 0.5) / width as f64 * w as f64, w);
        let (rows, wy) = pair((y as f64 + 0.5) / height as f64 * h as f64, h);
        let texel = |row: usize, column: usize| f64::from(picture[(rows[row] * w + columns[column]) * 4 + channel]);
        let line = |row: usize| texel(row, 0) * (1.0 - wx) + texel(row, 1) * wx;
        let exact = line(0) * (1.0 - wy) + line(1) * wy;
        // The kernel rounds to bytes, by a product of .f32 with 255 of a quotient by 255: within 255 units of 2^-23 or so of the exact value.
        let error = (f64::from(got) - exact).abs();
        assert!(error <= 0.5 + 1e-4, "{}: [{i}] is {got}, not {exact}", k.what("resize"));
    }
}

fn rays(k: &Kernels<'_>) {
    let ([w, h, d], n, steps) = ([9, 7, 5], 100, 12);
    let value = |x: usize, y: usize, z: usize| (x * 7 + y * 13 + z * 29) % 64;
    let texels: Vec<f32> = (0..w * h * d).map(|i| value(i % w, i / w % h, i / w / h) as f32).collect();
    let texels = k.copy_of(&texels);
    let spec = serde_json::json!({"width": w, "height": h, "depth": d, "filter": "linear"});
    let volume = object(k, Kind::Texture, &texels, spec);
    // Eighths: from two texels before the volume to two behind it.
    let place = |i: u32, span: u32| (mixed(i) % (8 * (span + 4))) as f32 / 8.0 - 2.0;
    let from: Vec<[f32; 3]> =
        (0..n).map(|i| [place(3 * i, n32(w)), place(3 * i + 1, n32(h)), place(3 * i + 2, n32(d))]).collect();
    let step: Vec<[f32; 3]> = (0..n).map(|i| [7, 8, 9].map(|j| (mixed(90 * i + j) % 17) as f32 / 8.0 - 1.0)).collect();
    let want: Vec<f32> = from
        .iter()
        .zip(&step)
        .map(|(from, step)| {
            let sample = |s: usize| {
                let at: [f64; 3] = std::array::from_fn(|axis| f64::from(from[axis]) + s as f64 * f64::from(step[axis]));
                let axes = [pair(at[0], w), pair(at[1], h), pair(at[2], d)];
                let corner = |i: usize| {
                    let part = |axis: usize| axes[axis].0[i >> axis & 1];
                    let weight = |axis: usize| if i >> axis & 1 == 1 { axes[axis].1 } else { 1.0 - axes[axis].1 };
                    value(part(0), part(1), part(2)) as f64 * weight(0) * weight(1) * weight(2)
                };
                (0..8).map(corner).sum::<f64>()
            };
            (0..steps).map(sample).sum::<f64>() as f32
        })
        .collect();
    let (from, step, out) = (k.copy_of(&points(&from)), k.copy_of(&points(&step)), k.zeros::<f32>(n as usize));
    let args = [(&volume).into(), (&from).into(), (&step).into(), Arg::from(n32(steps)), (&out).into(), n.into()];
    k.launch("rays", [4, 1, 1], [32, 1, 1], &args);
    same(&k.what("rays"), &read(&out), &want);
}

/// The middle of each texel of each face, by directions of three lengths.
fn sky(k: &Kernels<'_>) {
    let n = 8;
    let texels: Vec<u32> = (0..6 * n * n).map(mixed).collect();
    let spec =
        serde_json::json!({"width": n, "height": n, "cube": true, "layers": 1, "channel": "s32", "normalized": true});
    let memory = k.copy_of(&texels);
    let cube = object(k, Kind::Texture, &memory, spec);
    let mut towards = Vec::new();
    for i in 0..6 * n * n {
        let length = [1.0, 0.25, 16.0][i as usize % 3];
        let middle = |i: u32| ((2 * i + 1) as f32 / n as f32 - 1.0) * length;
        let (s, t) = (middle(i % n), middle(i / n % n));
        // The table of the CUDA programming guide, turned round: faces are +x, -x, +y, -y, +z, -z.
        towards.push(
            [[length, -t, -s], [-length, -t, s], [s, length, t], [s, -length, -t], [s, -t, length], [-s, -t, -length]]
                [(i / n / n) as usize],
        );
    }
    let (places, out) = (k.copy_of(&points(&towards)), k.zeros::<u32>(towards.len()));
    k.launch(
        "sky",
        [7, 1, 1],
        [64, 1, 1],
        &[(&cube).into(), (&places).into(), (&out).into(), n32(towards.len()).into()],
    );
    same(&k.what("sky"), &read(&out), &texels);
}

/// Between the levels of a pyramid: 16 x 16, 8 x 8 and 4 x 4 texels.
fn details(k: &Kernels<'_>) {
    let value = |level: usize, x: usize, y: usize| (level * 32 + x + 2 * y) as f32;
    let mut texels = Vec::new();
    for (level, n) in [(0, 16), (1, 8), (2, 4)] {
        texels.extend((0..n * n).map(|i| value(level, i % n, i / n)));
    }
    let spec = serde_json::json!({"width": 16, "height": 16, "levels": 3, "normalized": true, "mip_filter": "linear"});
    let memory = k.copy_of(&texels);
    let pyramid = object(k, Kind::Texture, &memory, spec);
    let places: Vec<[f32; 3]> = (0..200)
        .map(|i| {
            // Middles of the texels of the finest level, and levels by eighths from before the first to behind the last.
            let middle = |i: u32| ((mixed(i) % 16) as f32 + 0.5) / 16.0;
            [middle(3 * i), middle(3 * i + 1), (mixed(3 * i + 2) % 32) as f32 / 8.0 - 1.0]
        })
        .collect();
    let want: Vec<f32> = places
        .iter()
        .map(|[x, y, lod]| {
            let lod = lod.clamp(0.0, 2.0);
            let (fine, share) = (lod.floor() as usize, lod - lod.floor());
            let at = |level: usize| {
                let n = 16 >> level;
                value(level, (x * n as f32) as usize, (y * n as f32) as usize)
            };
            at(fine) * (1.0 - share) + at((fine + 1).min(2)) * share
        })
        .collect();
    let (at, out) = (k.copy_of(&points(&places)), k.zeros::<f32>(want.len()));
    k.launch(
        "details",
        [4, 1, 1],
        [64, 1, 1],
        &[(&pyramid).into(), (&at).into(), (&out).into(), n32(want.len()).into()],
    );
    same(&k.what("details"), &read(&out), &want);
}

/// The four texels around each corner of a grid, from below on the left against the clock.
fn neighbours(k: &Kernels<'_>) {
    let (w, h) = (6, 5);
    let texels: Vec<f32> = (0..w * h).map(|i| i as f32).collect();
    let spec = serde_json::json!({"width": w, "height": h, "filter": "linear"});
    let memory = k.copy_of(&texels);
    let picture = object(k, Kind::Texture, &memory, spec);
    let mut places = Vec::new();
    let mut want = Vec::new();
    for i in 0..(w + 1) * (h + 1) {
        let (x, y) = (i % (w + 1), i / (w + 1));
        places.extend([x as f32, y as f32]);
        let texel = |dx: usize, dy: usize| {
            let (x, y) = ((x + dx).clamp(1, w) - 1, (y + dy).clamp(1, h) - 1);
            texels[y * w + x]
        };
        want.extend([texel(0, 1), texel(1, 1), texel(1, 0), texel(0, 0)]);
    }
    let (at, out) = (k.copy_of(&places), k.zeros::<f32>(want.len()));
    let n = n32(places.len() / 2);
    k.launch("neighbours", [2, 1, 1], [32, 1, 1], &[(&picture).into(), (&at).into(), (&out).into(), n.into()]);
    same(&k.what("neighbours"), &read(&out), &want);
}

/// Threads outside of the pictures read zeros and write nothing.
fn turn(k: &Kernels<'_>) {
    let (w, h) = (13, 10);
    let texels: Vec<u16> = (1..=w * h).map(|i| mixed(i) as u16).collect();
    let (from, to) = (k.copy_of(&bytes_of(&texels)), k.zeros::<u16>(texels.len()));
    let spec = |w: u32, h: u32| serde_json::json!({"width": w, "height": h, "channel": "u16", "components": 1});
    let surfaces = [object(k, Kind::Surface, &from, spec(w, h)), object(k, Kind::Surface, &to, spec(h, w))];
    k.launch("turn", [2, 2, 1], [8, 8, 1], &[(&surfaces[0]).into(), (&surfaces[1]).into(), Arg::from(w), h.into()]);
    let want: Vec<u16> = (0..w * h).map(|i| texels[((h - 1 - i % h) * w + i / h) as usize]).collect();
    same(&k.what("turn"), &read(&to), &want);
}
