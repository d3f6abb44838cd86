//! What checks cost: kernels of `tests/kernels` on one host thread, by checks, as times of the run without any with the same generator.
//!
//! `cargo run --release -p handloom-tests --example checked_cost -- ROUNDS [ENTRY [CHECKS]]`. Runs take turns; medians are shown.

use std::error::Error;
use std::time::Duration;

use handloom_runtime::{
    Arg, Backend, CheckConfig, Checks, Device, DeviceBuffer, Engine, LaunchConfig, Module, PreparedLaunch,
};

/// The checks of a column; none for the run that others are compared with.
const COLUMNS: [&str; 7] = ["", "memory", "race", "memory,race,sync", "memory,init", "memory,init,race,sync", "interp"];

/// A file, its entry, blocks, threads of a block, arguments.
type Case = (&'static str, &'static str, [u32; 3], [u32; 3], Vec<Given>);

/// A scalar argument, or a buffer of so many 32-bit words.
enum Given {
    Int(u32),
    Float(f32),
    Words(usize),
}

#[allow(clippy::print_stdout, reason = "the table is what it is for")]
fn main() -> Result<(), Box<dyn Error>> {
    use Given::{Float, Int, Words};
    let rounds: usize = std::env::args().nth(1).map_or(Ok(5), |n| n.parse())?;
    let n = 1 << 16;
    let cases: [Case; 6] = [
        ("saxpy", "saxpy", [256, 1, 1], [256, 1, 1], vec![Int(1 << 16), Float(2.0), Words(n), Words(n)]),
        (
            "stencil",
            "stencil5",
            [16, 16, 1],
            [16, 16, 1],
            vec![Int(256), Int(256), Float(0.5), Float(0.1), Words(n), Words(n)],
        ),
        ("reduce", "reduce256", [128, 1, 1], [256, 1, 1], vec![Words(n), Words(128)]),
        ("scan", "scan_blocks", [64, 1, 1], [1024, 1, 1], vec![Int(1 << 16), Words(n), Words(n), Words(64)]),
        (
            "sgemm",
            "sgemm16",
            [8, 8, 1],
            [16, 16, 1],
            vec![Int(128), Words(128 * 128), Words(128 * 128), Words(128 * 128)],
        ),
        ("histogram", "histogram256", [64, 1, 1], [256, 1, 1], vec![Int(1 << 16), Words(n), Words(256)]),
    ];
    let (only, column) = (std::env::args().nth(2), std::env::args().nth(3));
    let mut columns = COLUMNS.to_vec();
    columns.retain(|c| c.is_empty() || column.as_ref().is_none_or(|column| column == c));
    println!("| kernel | unchecked, us | {} |", columns[1..].join(" | "));
    println!("|---|---|{}", "---|".repeat(columns.len() - 1));
    for (file, entry, grid, block, given) in cases {
        if only.as_ref().is_some_and(|only| only != entry) {
            continue;
        }
        let path = format!("{}/kernels/{file}.ptx", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path)?;
        let device = Device::new()?;
        let module = Module::from_text(&device, &path, &text)?;
        let function = module.function(Some(entry))?;
        let mut buffers: Vec<DeviceBuffer> = Vec::new();
        for words in given.iter().filter_map(|g| if let Words(n) = g { Some(*n) } else { None }) {
            let mut state = 1_u32;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 8 & !(1 << 23) | (state & 0xff) << 24
            };
            let bytes: Vec<u8> = (0..words).flat_map(|_| next().to_le_bytes()).collect();
            buffers.push(device.copy_of(&bytes)?);
        }
        let mut left = buffers.iter();
        let mut args = Vec::new();
        for g in &given {
            args.push(match g {
                Int(v) => Arg::from(*v),
                Float(v) => Arg::from(*v),
                Words(_) => Arg::from(left.next().ok_or("a buffer is missing")?),
            });
        }
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); columns.len()];
        let mut launches = Vec::new();
        for checks in columns.iter().copied() {
            let mut config = LaunchConfig { threads: 1, backend: Backend::Cranelift, ..LaunchConfig::new(grid, block) };
            match checks {
                "" => {}
                "interp" => config.engine = Engine::Interp,
                checks => config.check = Some(CheckConfig { checks: Checks::parse(checks)?, ..CheckConfig::default() }),
            }
            launches.push(PreparedLaunch::new(&function, &config, &args)?);
        }
        for _ in 0..rounds {
            for (i, launch) in launches.iter_mut().enumerate() {
                let report = launch.run()?;
                report.clean()?;
                times[i].push(report.run);
            }
        }
        let medians: Vec<f64> = times
            .iter_mut()
            .map(|all| {
                all.sort_unstable();
                all[all.len() / 2].as_secs_f64()
            })
            .collect();
        let ratios: Vec<String> = medians[1..].iter().map(|t| format!("{:.0}", t / medians[0])).collect();
        println!("| {entry} | {:.0} | {} |", medians[0] * 1e6, ratios.join(" | "));
    }
    Ok(())
}
