//! Which build of the program this is.
//!
//! What one build kept, another must not take: its code generator, and the tables that it writes, may be others, also where the version is the same. So
//! the file that this code was loaded from is part of every key: a program, or a library in somebody else's process. A file that is written or
//! replaced has another time of change, which nobody can set; two copies of one build share nothing, which costs time only.

use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use crate::digest::Digest;

/// The build that this code belongs to; `None` where that cannot be told.
pub fn build() -> Option<Digest> {
    static BUILD: OnceLock<Option<Digest>> = OnceLock::new();
    *BUILD.get_or_init(|| {
        let here: fn() -> Option<Digest> = build;
        let maps = std::fs::read("/proc/self/maps").ok()?;
        let path = file_of(&String::from_utf8_lossy(&maps), here as usize)?;
        let m = std::fs::metadata(path).ok()?;
        let times = [m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec()];
        Some(Digest::of(&(env!("CARGO_PKG_VERSION"), m.ino(), m.len(), times)))
    })
}

/// The file that is mapped at an address, if it is still there.
fn file_of(maps: &str, address: usize) -> Option<String> {
    let holds = |line: &&str| {
        let range = line.split(' ').next().and_then(|r| r.split_once('-'));
        let ends =
            range.and_then(|(a, b)| Some((usize::from_str_radix(a, 16).ok()?, usize::from_str_radix(b, 16).ok()?)));
        ends.is_some_and(|(start, end)| (start..end).contains(&address))
    };
    let line = maps.lines().find(holds)?;
    // Five fields, then the path, which may hold blanks.
    let path = &line[line.find('/')?..];
    (!path.ends_with(" (deleted)")).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0a000-55d0b000 r--p 00000000 fe:01 1234                 /usr/bin/a program\n\
55d0b000-55d0c000 r-xp 00001000 fe:01 1234                 /usr/bin/a program\n\
7f000000-7f001000 r-xp 00000000 fe:01 99                   /opt/lib.so (deleted)\n\
7f100000-7f101000 rw-p 00000000 00:00 0\n";

    #[test]
    fn the_file_of_an_address_is_found() {
        assert_eq!(file_of(MAPS, 0x55d0_b010).as_deref(), Some("/usr/bin/a program"));
        assert_eq!(file_of(MAPS, 0x7f00_0010), None);
        assert_eq!(file_of(MAPS, 0x7f10_0010), None);
        assert_eq!(file_of(MAPS, 0x10), None);
    }

    #[test]
    fn this_build_is_known() {
        assert!(build().is_some());
        assert_eq!(build(), build());
    }
}
