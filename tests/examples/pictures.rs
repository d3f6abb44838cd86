//! Runs the kernels on pictures and writes what they make as PNG files.
//!
//! `cargo run --release -p handloom-tests --example pictures -- FOLDER` makes a scene from numbers and its twin a moment later, then:
//! `scene.png`, `matched.png` (the scene put together from blocks of the twin that `block_match` found), `blended.png` (a disc that fades
//! out, laid over the scene by `alpha_blend`) and `converted.png` (the scene turned into planes and back by `yuv_to_rgb`).

use std::fs::{File, create_dir_all};
use std::io::{BufWriter, Write};
use std::path::Path;

use handloom_runtime::{Arg, Device, DeviceBuffer, LaunchConfig, Module, launch};
use handloom_tests::reference::data::values_of;
use handloom_tests::reference::pictures::{grey, moved_blocks, planes, scene, with_rim};
use handloom_tests::reference::run::folder;

const WIDTH: usize = 640;
const HEIGHT: usize = 480;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let to = std::env::args().nth(1).ok_or("usage: pictures FOLDER")?;
    let to = Path::new(&to);
    create_dir_all(to)?;
    let (now, later) = (scene(WIDTH, HEIGHT, 0, 0), scene(WIDTH, HEIGHT, 3, -2));
    write(&to.join("scene.png"), png::ColorType::Rgb, &now.concat())?;
    write(&to.join("matched.png"), png::ColorType::Grayscale, &matched(&grey(&now), &grey(&later))?)?;
    write(&to.join("blended.png"), png::ColorType::Rgba, &blended(&now)?)?;
    write(&to.join("converted.png"), png::ColorType::Rgba, &converted(&now)?)
}

fn matched(now: &[u8], later: &[u8]) -> Result<Vec<u8>, Failure> {
    let searched = with_rim(later, WIDTH, HEIGHT);
    let words = Arg::from((WIDTH / 4) as u32);
    let grid = [(WIDTH / 8) as u32, (HEIGHT / 8) as u32, 1];
    let best = run("block_match", grid, 96, words, &[now, &searched], WIDTH * HEIGHT / 16)?;
    Ok(moved_blocks(&values_of(&best), &searched, WIDTH, HEIGHT))
}

fn blended(now: &[[u8; 3]]) -> Result<Vec<u8>, Failure> {
    let below: Vec<u8> = now.iter().flat_map(|p| [p[0], p[1], p[2], 255]).collect();
    let disc = |i: usize| {
        let (x, y) = ((i % WIDTH).abs_diff(WIDTH / 3), (i / WIDTH).abs_diff(HEIGHT / 2));
        let alpha = 255 - (x * x + y * y).isqrt().min(255) as u8;
        // Colours times alpha.
        [alpha, alpha / 2 + alpha / 4, 0, alpha]
    };
    let above: Vec<u8> = (0..now.len()).flat_map(disc).collect();
    let n = Arg::from(now.len() as u32);
    run("alpha_blend", [now.len().div_ceil(256) as u32, 1, 1], 256, n, &[&above, &below], 4 * now.len())
}

fn converted(now: &[[u8; 3]]) -> Result<Vec<u8>, Failure> {
    let [y, u, v] = planes(now, WIDTH, HEIGHT);
    let words = WIDTH / 4;
    let grid = [words.div_ceil(32) as u32, HEIGHT as u32, 1];
    run("yuv_to_rgb", grid, 32, Arg::from(words as u32), &[&y, &u, &v], 4 * now.len())
}

/// Launches the kernel of a file on a size, buffers to read and one to write, which it gives back.
fn run(
    name: &str,
    grid: [u32; 3],
    threads: u32,
    size: Arg<'_>,
    read: &[&[u8]],
    written: usize,
) -> Result<Vec<u8>, Failure> {
    let text = std::fs::read_to_string(folder().join(format!("{name}.ptx")))?;
    let device = Device::new().map_err(|e| e.to_string())?;
    let module = Module::from_text(&device, name, &text).map_err(|e| e.to_string())?;
    let function = module.function(Some(name)).map_err(|e| e.to_string())?;
    let room = |e: handloom_runtime::NoRoom| e.to_string();
    let inputs: Vec<DeviceBuffer> = read.iter().map(|b| device.copy_of(b).map_err(room)).collect::<Result<_, _>>()?;
    let output = device.zeroed(written as u64).map_err(room)?;
    let mut args = vec![size];
    args.extend(inputs.iter().map(Arg::from));
    args.push(Arg::from(&output));
    launch(&function, &LaunchConfig::new(grid, [threads, 1, 1]), &args).map(drop).map_err(|e| e.to_string())?;
    Ok(output.to_vec())
}

fn write(path: &Path, colours: png::ColorType, bytes: &[u8]) -> Result<(), Failure> {
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), WIDTH as u32, HEIGHT as u32);
    encoder.set_color(colours);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(bytes)?;
    writeln!(std::io::stdout(), "{}", path.display())?;
    Ok(())
}
