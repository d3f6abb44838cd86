//! Memory that the host still has for this process.

use std::fs::read_to_string;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// A line of `/proc/meminfo` in bytes, by its name with the colon. `None` where there is no such line.
pub fn meminfo(name: &str) -> Option<u64> {
    line_of("/proc/meminfo", name)
}

/// Bytes that this process may still take: what the host has, what the limits of the process leave, and what the groups that it is in leave. `None` if nobody says.
pub fn memory_left() -> Option<u64> {
    let limits = [(Resource::As, "VmSize:"), (Resource::Data, "VmData:")];
    let of_limits = limits.map(|(limit, used)| {
        Some(getrlimit(limit).current?.saturating_sub(line_of("/proc/self/status", used).unwrap_or(0)))
    });
    of_limits.into_iter().chain([meminfo("MemAvailable:"), left_in_groups()]).flatten().min()
}

/// A line of a file that counts in KiB, in bytes.
fn line_of(file: &str, name: &str) -> Option<u64> {
    let text = read_to_string(file).ok()?;
    let kib: u64 = text.lines().find_map(|l| l.strip_prefix(name))?.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// What control groups (version 2) leave: that of the process and those around it.
fn left_in_groups() -> Option<u64> {
    let all = read_to_string("/proc/self/cgroup").ok()?;
    let group = all.lines().find_map(|l| l.strip_prefix("0::/"))?;
    let number = |folder: &Path, file: &str| read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
    let left = |folder: &Path| {
        Some(number(folder, "memory.max")?.saturating_sub(number(folder, "memory.current").unwrap_or(0)))
    };
    let root = Path::new("/sys/fs/cgroup");
    root.join(group).ancestors().take_while(|folder| folder.starts_with(root)).filter_map(left).min()
}
