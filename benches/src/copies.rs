//! Copies between the host and a device, beside a copy on the host.

use handloom_runtime::Device;
use serde_json::json;

use crate::measure::{ratio, time, typical};
use crate::options::Options;
use crate::table::{Good, Section, figure, floor_cell, verdict};

/// Bytes of a copy, and how many copies are a round.
const SIZES: [(usize, u64); 3] = [(1 << 20, 64), (8 << 20, 8), (64 << 20, 1)];

/// The least speed, as a part of the host's own.
const FLOOR: f64 = 0.9;

/// Times copies.
pub fn run(options: &Options) -> Section {
    let heads = ["copy", "to the device", "floor", "from it", "floor", "on the host"];
    let mut section = Section::new("copies: speed beside a copy on the host, medians of rounds", &heads);
    for (bytes, repeats) in SIZES {
        let name = format!("copy/{} MiB", bytes >> 20);
        // Large ones only where speed is judged: they touch much memory for the first time.
        if !options.wants(&name) || (bytes > 1 << 20 && !options.judges()) {
            continue;
        }
        match ratios(bytes, repeats, options) {
            Ok([to, from, host]) => {
                let judged = |ratio| floor_cell(ratio, Some(FLOOR), Good::Above, options.judges());
                section.rows.push(vec![
                    format!("{} MiB", bytes >> 20),
                    figure(to),
                    judged(to),
                    figure(from),
                    judged(from),
                    format!("{} GB/s", figure(host)),
                ]);
                section.objects.push(json!({
                    "name": name,
                    "status": "ok",
                    "to_device": to,
                    "from_device": from,
                    "host_gb_s": host,
                    "floor": FLOOR,
                    "verdict": options.judges().then(|| verdict(to.min(from), FLOOR, Good::Above)),
                }));
            }
            Err(why) => section.fail(&name, &why),
        }
    }
    section
}

/// Speed to the device and from it as parts of the host's own, and that in bytes a nanosecond. The three take turns.
fn ratios(bytes: usize, repeats: u64, options: &Options) -> Result<[f64; 3], String> {
    let device = Device::new().map_err(|e| e.to_string())?;
    let from: Vec<u8> = (0..bytes).map(|i| (i * 7 % 251) as u8).collect();
    let mut to = vec![0; bytes];
    let mut buffer = device.copy_of(&from).map_err(|e| e.to_string())?;
    let repeats = if options.judges() { repeats } else { 1 };
    let (mut host, mut there, mut back) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..=options.rounds() {
        let rounds = |work: &mut dyn FnMut()| time(|| (0..repeats).for_each(|_| work())).1.over(repeats);
        host.push(rounds(&mut || to.copy_from_slice(std::hint::black_box(&from))));
        there.push(rounds(&mut || buffer.write(0, std::hint::black_box(&from))));
        to.fill(0);
        back.push(rounds(&mut || buffer.read(0, std::hint::black_box(&mut to))));
        if to != from {
            return Err("wrong result: what came back differs from what was sent".to_owned());
        }
    }
    // The first round warmed up.
    let (host, there, back) = (&host[1..], &there[1..], &back[1..]);
    let of_host = |ours| ratio(host, ours, options.clock);
    Ok([of_host(there), of_host(back), bytes as f64 / typical(host, options.clock)])
}
