//! Damaged images: a fault or fewer members, never a panic, never more memory than the limit, never a hang.

use std::path::Path;
use std::time::{Duration, Instant};

use handloom_images::fatbin::container;
use handloom_images::{Extent, Fault, Place, Want, Wrapper, extent, open, parts};

const SAMPLES: &[&str] = &[
    "raw.fatbin",
    "lz4.fatbin",
    "zstd.fatbin",
    "cubins.fatbin",
    "lto.fatbin",
    "lineinfo.cubin",
    "lineinfo.sm_100a.cubin",
    "linked.cubin",
    "first.o",
    "two",
    "two.a",
    "linked",
    "nvvm.ltoir",
    "saxpy.compute_75.ptx",
];

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/images").join(name)).unwrap()
}

/// Does everything that can be done with bytes.
fn all_of(bytes: &[u8]) {
    let _ = extent(bytes);
    let _ = Wrapper::read(bytes);
    let _ = container(bytes, &Place::default());
    let Ok(image) = open(bytes) else { return };
    for (i, member) in image.members.iter().enumerate() {
        let _ = member.unpack(i + 1);
        let _ = member.texts(i + 1);
        assert!(member.payload().len() <= bytes.len());
    }
    for want in [Want::Capability(89), Want::Target("sm_80".parse().unwrap()), Want::Member(1), Want::Member(99)] {
        if let Err(fault) = parts(&image, want) {
            assert!(!fault.to_string().is_empty());
        }
    }
}

#[test]
fn truncated_images() {
    for name in SAMPLES {
        let bytes = sample(name);
        let step = (bytes.len() / 400).max(1);
        (0..bytes.len()).step_by(step).for_each(|n| all_of(&bytes[..n]));
        // Every length of the headers.
        (0..bytes.len().min(200)).for_each(|n| all_of(&bytes[..n]));
    }
}

#[test]
fn images_with_other_bits() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % u64::try_from(n).unwrap()).unwrap()
    };
    let start = Instant::now();
    for name in SAMPLES {
        let bytes = sample(name);
        for round in 0..600 {
            let mut damaged = bytes.clone();
            // Half of the time in the first headers, where it hurts.
            let range = if round % 2 == 0 { bytes.len() } else { bytes.len().min(256) };
            for _ in 0..=random(4) {
                let (at, bit) = (random(range), random(8));
                damaged[at] ^= 1 << bit;
                if random(4) == 0 {
                    damaged[at] = [0, 0xff, 0x7f, 0x80][random(4)];
                }
            }
            all_of(&damaged);
        }
    }
    assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
}

#[test]
fn headers_are_not_believed() {
    // Offsets in the header of the second member, which is the first PTX.
    let bytes = sample("lz4.fatbin");
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let second = 16 + 64 + usize::try_from(word(24)).unwrap();
    assert_eq!(u16::from_le_bytes([bytes[second], bytes[second + 1]]), 1);
    let with = |at: usize, value: u64| {
        let mut bytes = bytes.clone();
        bytes[second + at..second + at + 8].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    for huge in [1 << 40, u64::MAX, 1 << 31, 200_000] {
        let bytes = with(56, huge);
        let wrong = parts(&open(&bytes).unwrap(), Want::Member(2)).unwrap_err();
        assert!(matches!(wrong, Fault::TooLarge { bytes, .. } if bytes == huge), "{wrong}");
    }
    for other in [1, word(second + 56) - 1, word(second + 56) + 1] {
        let bytes = with(56, other);
        assert!(matches!(parts(&open(&bytes).unwrap(), Want::Member(2)), Err(Fault::Packed { .. })));
    }
    for size in [u64::MAX, u64::MAX - 79, 1 << 20] {
        assert!(matches!(open(&with(8, size)), Err(Fault::Header { .. })));
    }
    let mut whole = bytes.clone();
    whole[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(open(&whole), Err(Fault::Truncated { .. })));
}

#[test]
fn a_small_frame_that_becomes_large_is_read_as_far_as_promised() {
    // A frame of zstd with a run of 128 KiB in each block, four bytes a block: 400 MB in 13 KB.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    let blocks = 3200;
    for i in 0..blocks {
        let last = u32::from(i + 1 == blocks);
        let header = last | 1 << 1 | 131_072 << 3;
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.push(b' ');
    }
    let mut bytes = sample("zstd.fatbin");
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let second = 16 + 64 + usize::try_from(word(&bytes, 24)).unwrap();
    let mut head = bytes[second..second + 80].to_vec();
    frame.resize(frame.len().next_multiple_of(8), 0);
    let length = u64::try_from(frame.len()).unwrap();
    head[8..16].copy_from_slice(&length.to_le_bytes());
    head[16..20].copy_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
    head[56..64].copy_from_slice(&1000_u64.to_le_bytes());
    bytes.truncate(16);
    bytes.extend(head);
    bytes.extend(frame);
    let size = u64::try_from(bytes.len() - 16).unwrap();
    bytes[8..16].copy_from_slice(&size.to_le_bytes());
    let start = Instant::now();
    let wrong = parts(&open(&bytes).unwrap(), Want::Member(1)).unwrap_err();
    assert!(wrong.to_string().contains("more bytes than the 1000"), "{wrong}");
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn lengths_of_images_without_one() {
    for name in SAMPLES {
        let bytes = sample(name);
        // As a driver does: with as many bytes as it is told to look at.
        let mut n = 4;
        let found = loop {
            match extent(&bytes[..n]) {
                Extent::Needs(more) => {
                    let more = usize::try_from(more).unwrap();
                    assert!(more > n && more <= bytes.len(), "{name}: {more}");
                    n = more;
                }
                found => break found,
            }
        };
        let whole = u64::try_from(bytes.len()).unwrap();
        match *name {
            // A host's file has a table of sections at its end.
            "first.o" | "two" | "linked" => assert_eq!(found, Extent::Bytes(whole), "{name}"),
            n if n.ends_with(".fatbin") || n.ends_with(".cubin") => assert_eq!(found, Extent::Bytes(whole), "{name}"),
            _ => assert_eq!(found, Extent::Text, "{name}"),
        }
    }
}

#[test]
fn wrappers_are_read() {
    let mut bytes = [0; Wrapper::BYTES];
    bytes[..4].copy_from_slice(&0x4662_43b1_u32.to_le_bytes());
    bytes[4] = 2;
    bytes[8..16].copy_from_slice(&0x1122_u64.to_le_bytes());
    bytes[16..].copy_from_slice(&0x3344_u64.to_le_bytes());
    assert_eq!(Wrapper::read(&bytes), Some(Wrapper { version: 2, data: 0x1122, list: 0x3344 }));
    assert_eq!(Wrapper::read(&bytes[..23]), None);
    bytes[0] = 0;
    assert_eq!(Wrapper::read(&bytes), None);
}
