//! Pictures made from numbers, and what the kernels on pictures must make of them.

/// Bytes around the picture that is searched.
pub const RIM: usize = 8;

/// A scene of soft hills, a disc and fine grain, moved to the right and down by `dx` and `dy`.
pub fn scene(width: usize, height: usize, dx: i64, dy: i64) -> Vec<[u8; 3]> {
    let pixel = |x: usize, y: usize| {
        let (x, y) = (x as i64 - dx, y as i64 - dy);
        // A ramp up and down, so that neighbouring places differ and far ones do too.
        let wave = |at: i64, length: i64| {
            let p = at.rem_euclid(2 * length);
            (255 * if p < length { p } else { 2 * length - p } / length) as u8
        };
        let (cx, cy) = (x - width as i64 / 2, y - height as i64 / 2);
        let is_inside = cx * cx + cy * cy < (height as i64 / 4).pow(2);
        let seed = (x as u32).wrapping_mul(7919) ^ (y as u32).wrapping_mul(104_729);
        let grain = (super::data::mixed(seed) >> 27) as u8;
        let [r, g, b] = [wave(x + 2 * y, 150), wave(3 * x - y, 190), wave(y - x / 2, 110)];
        let [r, g, b] = if is_inside { [255 - g, b, r] } else { [r, g, b] };
        [r, g, b].map(|c| c.saturating_sub(31) + grain)
    };
    (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).map(|(x, y)| pixel(x, y)).collect()
}

/// The brightness of each pixel.
pub fn grey(pixels: &[[u8; 3]]) -> Vec<u8> {
    pixels.iter().map(|p| ((77 * u32::from(p[0]) + 150 * u32::from(p[1]) + 29 * u32::from(p[2])) >> 8) as u8).collect()
}

/// A grey picture with its edge pixels repeated outwards.
pub fn with_rim(grey: &[u8], width: usize, height: usize) -> Vec<u8> {
    let inner = |at: usize, size: usize| at.saturating_sub(RIM).min(size - 1);
    let row = |y: usize| (0..width + 2 * RIM).map(move |x| grey[inner(y, height) * width + inner(x, width)]);
    (0..height + 2 * RIM).flat_map(row).collect()
}

/// For each block of 8x8 bytes the sum of distances at its best place (upper half) and the number of that place (lower half).
pub fn block_match(picture: &[u8], searched: &[u8], width: usize, height: usize) -> Vec<u32> {
    let row = width + 2 * RIM;
    let place = |bx: usize, by: usize, place: usize| {
        let (dx, dy) = (place % 9 + 4, place / 9 + 4);
        let pixels = (0..64).map(|i| (8 * bx + i % 8, 8 * by + i / 8));
        let sum: u32 =
            pixels.map(|(x, y)| u32::from(picture[y * width + x].abs_diff(searched[(y + dy) * row + x + dx]))).sum();
        sum << 16 | place as u32
    };
    let blocks = (0..height / 8).flat_map(|by| (0..width / 8).map(move |bx| (bx, by)));
    blocks.map(|(bx, by)| (0..81).map(|p| place(bx, by, p)).min().unwrap_or(0)).collect()
}

/// The picture put together from the best places of the one that was searched.
pub fn moved_blocks(best: &[u32], searched: &[u8], width: usize, height: usize) -> Vec<u8> {
    let row = width + 2 * RIM;
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let place = |x: usize, y: usize| best[y / 8 * (width / 8) + x / 8] as usize & 0xffff;
    pixels.map(|(x, y)| searched[(y + place(x, y) / 9 + 4) * row + x + place(x, y) % 9 + 4]).collect()
}

/// One picture of bytes red, green, blue, alpha over another one.
pub fn blend(above: &[[u8; 4]], below: &[[u8; 4]]) -> Vec<[u8; 4]> {
    let over = |a: &[u8; 4], b: &[u8; 4]| {
        let rest = u32::from(255 - a[3]);
        std::array::from_fn(|i| {
            // The nearest integer to a fraction of 255, in integers.
            let t = u32::from(b[i]) * rest + 128;
            let part = (t + (t >> 8)) >> 8;
            (u32::from(a[i]) + part).min(255) as u8
        })
    };
    above.iter().zip(below).map(|(a, b)| over(a, b)).collect()
}

/// Planes of a picture by BT.601 in integers: brightness, and two colours at half the width and height.
pub fn planes(pixels: &[[u8; 3]], width: usize, height: usize) -> [Vec<u8>; 3] {
    let sum = |p: [i32; 3], f: [i32; 3], base: i32| ((f[0] * p[0] + f[1] * p[1] + f[2] * p[2] + 128) >> 8) + base;
    let brightness = pixels.iter().map(|p| sum(p.map(i32::from), [66, 129, 25], 16) as u8).collect();
    let four = |x: usize, y: usize| {
        let at = |dx: usize, dy: usize| pixels[(2 * y + dy) * width + 2 * x + dx].map(i32::from);
        let all = [at(0, 0), at(1, 0), at(0, 1), at(1, 1)];
        [0, 1, 2].map(|c| all.iter().map(|p| p[c]).sum::<i32>() / 4)
    };
    let colour = |f: [i32; 3]| {
        let places = (0..height / 2).flat_map(|y| (0..width / 2).map(move |x| (x, y)));
        places.map(|(x, y)| sum(four(x, y), f, 128) as u8).collect()
    };
    [brightness, colour([-38, -74, 112]), colour([112, -94, -18])]
}

/// The way back from [`planes`]: red, green, blue, 255.
pub fn colours(planes: &[Vec<u8>; 3], width: usize, height: usize) -> Vec<[u8; 4]> {
    let pixel = |x: usize, y: usize| {
        let colour = y / 2 * (width / 2) + x / 2;
        let (c, d, e) = (
            i32::from(planes[0][y * width + x]) - 16,
            i32::from(planes[1][colour]) - 128,
            i32::from(planes[2][colour]) - 128,
        );
        let byte = |v: i32| ((v + 128) >> 8).clamp(0, 255) as u8;
        [byte(298 * c + 409 * e), byte(298 * c - 100 * d - 208 * e), byte(298 * c + 516 * d), 255]
    };
    (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).map(|(x, y)| pixel(x, y)).collect()
}
