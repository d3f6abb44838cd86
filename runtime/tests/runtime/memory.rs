//! Device memory by address: what is refused and why, and copies and fills against the same on the host.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use handloom_ir::trap::TrapKind;
use handloom_runtime::{
    AllocKind, Arg, Device, DeviceMemory, Engine, ErrorKind, Found, LaunchConfig, MemoryError, Module, NoRoom, Rows,
    Word, launch,
};

use crate::SM_80 as HEAD;

/// Adds one to a word for each thread.
const INCREMENT: &str = ".visible .entry k(.param .u64 out)
{
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r2, [%rd1];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd1], %r2;
    ret;
}";

fn bytes_of(memory: &DeviceMemory, address: u64, n: usize) -> Vec<u8> {
    let mut out = vec![0; n];
    memory.read(address, &mut out).unwrap();
    out
}

/// Bytes that differ from their neighbours.
fn noise(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 251) as u8).collect()
}

#[test]
fn what_is_allocated_is_zero_and_found() {
    let device = Device::new().unwrap();
    let memory = device.memory();
    let a = memory.allocate(1000).unwrap();
    assert_eq!(a % 512, 0);
    assert_eq!(bytes_of(memory, a, 1000), vec![0; 1000]);
    for at in [a, a + 1, a + 999] {
        assert_eq!(memory.range_of(at), Some((a, 1000)));
        assert!(matches!(memory.find(at), Found::Live(x) if x.base == a && x.kind == AllocKind::Linear));
    }
    for at in [a - 1, a + 1000, 0, u64::MAX] {
        assert_eq!((memory.range_of(at), memory.find(at)), (None, Found::Nothing), "{at:#x}");
    }
    assert_eq!(memory.nearest(a + 1003).unwrap().base, a);
    memory.write(a, &noise(1000)).unwrap();
    memory.free(a).unwrap();
    assert_eq!(memory.range_of(a), None);
    assert!(matches!(memory.find(a + 5), Found::Freed(x) if x.base == a && x.size == 1000));
    // An address of 4 GiB or more is of no use to a program of 32-bit addresses.
    if let Ok(low) = memory.allocate_low(100) {
        assert!(low + 100 < 1 << 32);
        memory.copy(low, memory.allocate(100).unwrap(), 100).unwrap();
        memory.free(low).unwrap();
    }
}

#[test]
fn wrong_ranges_are_refused_and_touch_nothing() {
    let device = Device::new().unwrap();
    let memory = device.memory();
    let (a, b) = (memory.allocate(100).unwrap(), memory.allocate(100).unwrap());
    let before = noise(100);
    memory.write(a, &before).unwrap();
    memory.write(b, &before).unwrap();
    let past = |e: &MemoryError| matches!(e, MemoryError::PastEnd { allocation, .. } if allocation.size == 100);
    let nothing = |e: &MemoryError| matches!(e, MemoryError::Nothing { .. });
    let mut two_hundred = [7; 200];
    for (at, n, is_it) in [
        (a + 1, 100, &past as &dyn Fn(&MemoryError) -> bool),
        (a + 99, 2, &past),
        (a, 200, &past),
        (a + 100, 1, &nothing),
        (a - 1, 2, &nothing),
        (0, 1, &nothing),
        (64, 1, &nothing),
        (u64::MAX, 1, &nothing),
        (u64::MAX - 1, 100, &nothing),
    ] {
        let results = [
            memory.read(at, &mut two_hundred[..n]),
            memory.write(at, &two_hundred[..n]),
            memory.copy(at, b, n as u64),
            memory.copy(b, at, n as u64),
            memory.fill(at, Word::B8(7), n as u64),
        ];
        for (i, result) in results.into_iter().enumerate() {
            // The other side of a copy may be what is wrong.
            let e = result.unwrap_err();
            assert!(is_it(&e) || (n > 100 && past(&e)), "{i} {at:#x} {n}: {e:?}");
            assert_eq!(e.kind(), ErrorKind::InvalidValue);
        }
    }
    assert_eq!(two_hundred, [7; 200]);
    assert_eq!(bytes_of(memory, a, 100), before);
    assert_eq!(bytes_of(memory, b, 100), before);
    let text = memory.fill(a + 90, Word::B8(1), 11).unwrap_err().to_string();
    assert_eq!(text, format!("11 bytes at {:#x}: the allocation of 100 bytes ends after 10", a + 90));
}

#[test]
fn no_bytes_are_right_anywhere() {
    let device = Device::new().unwrap();
    let memory = device.memory();
    for at in [0, 12, u64::MAX] {
        memory.read(at, &mut []).unwrap();
        memory.write(at, &[]).unwrap();
        memory.copy(at, at, 0).unwrap();
        memory.fill(at, Word::B8(1), 0).unwrap();
        let rows = Rows { address: at, pitch: 1 };
        memory.fill_rows(rows, Word::B8(1), 0, u64::MAX).unwrap();
        memory.copy_rows(rows, rows, 5, 0).unwrap();
        memory.copy_rows(rows, rows, 0, u64::MAX).unwrap();
    }
    assert_eq!(memory.allocate(0), Err(MemoryError::Empty));
}

#[test]
fn only_what_was_allocated_by_address_is_freed_by_address_and_once() {
    let device = Device::new().unwrap();
    let memory = device.memory();
    let a = memory.allocate(64).unwrap();
    assert!(matches!(memory.free(a + 8), Err(MemoryError::NotBase { address, .. }) if address == a + 8));
    memory.free(a).unwrap();
    assert!(matches!(memory.free(a), Err(MemoryError::Freed { address, .. }) if address == a));
    assert!(matches!(memory.read(a, &mut [0]), Err(MemoryError::Freed { .. })));
    assert!(matches!(memory.fill(a + 5, Word::B8(1), 1), Err(MemoryError::Freed { .. })));
    assert!(matches!(memory.free(0), Err(MemoryError::Nothing { address: 0, .. })));
    let owned = device.copy_of(&[1, 2, 3]).unwrap();
    let mine = |e: MemoryError, kind| matches!(e, MemoryError::NotYours { allocation: a } if a.kind == kind);
    assert!(mine(memory.free(owned.address()).unwrap_err(), AllocKind::Buffer));
    let text = ".global .u32 g = 5; .const .u32 c = 6; .visible .entry k() { ret; }";
    let m = Module::from_text(&device, "test.ptx", &format!("{HEAD}{text}")).unwrap();
    for (name, kind, value) in [("g", AllocKind::Global, 5), ("c", AllocKind::Const, 6)] {
        let (at, size) = m.global(name).unwrap();
        assert!(mine(memory.free(at).unwrap_err(), kind));
        // They are copied and filled as any other memory, constants too.
        assert_eq!((bytes_of(memory, at, 4), size), (vec![value, 0, 0, 0], 4));
        memory.fill(at, Word::B32(0x0102_0304), 1).unwrap();
        assert_eq!(m.read_global(name).unwrap(), [4, 3, 2, 1]);
    }
    memory.write(owned.address() + 1, &[9]).unwrap();
    assert_eq!(owned.to_vec(), [1, 9, 3]);
}

#[test]
fn memory_that_a_kernel_allocated_is_not_the_hosts() {
    let device = Device::new().unwrap();
    let memory = device.memory();
    let text = ".extern .func (.param .b64 r) malloc(.param .b64 n);
        .visible .entry k(.param .u64 out)
        {
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out];
            mov.b64 %rd2, 64;
            { .param .b64 n; .param .b64 r; st.param.b64 [n], %rd2; call (r), malloc, (n); ld.param.b64 %rd3, [r]; }
            st.u64 [%rd3], 7;
            st.global.u64 [%rd1], %rd3;
            ret;
        }";
    let m = Module::from_text(&device, "test.ptx", &format!("{HEAD}{text}")).unwrap();
    let out = memory.allocate(8).unwrap();
    let _ = launch(&m.function(None).unwrap(), &LaunchConfig::new([1; 3], [1; 3]), &[Arg::from(out)]).unwrap();
    let at = u64::from_le_bytes(bytes_of(memory, out, 8).try_into().unwrap());
    assert!(matches!(memory.find(at), Found::Live(a) if a.kind == AllocKind::Malloc));
    assert!(matches!(memory.free(at), Err(MemoryError::NotYours { .. })));
    assert!(matches!(memory.read(at, &mut [0; 8]), Err(MemoryError::NotYours { .. })));
}

#[test]
fn copies_are_those_of_the_host_at_every_alignment() {
    let device = Device::new().unwrap();
    let memory = device.memory();
    let a = memory.allocate(256).unwrap();
    for (start, n) in (0..17).flat_map(|start| (0..40).map(move |n| (start, n))) {
        let mut host = vec![0xee; 256];
        memory.write(a, &host).unwrap();
        let data = noise(n);
        memory.write(a + start as u64, &data).unwrap();
        host[start..start + n].copy_from_slice(&data);
        assert_eq!(bytes_of(memory, a, 256), host, "{start} {n}");
        assert_eq!(bytes_of(memory, a + start as u64, n), data);
    }
}

/// Larger than what is copied at once, both up and down, so that parts overlap in each way.
#[test]
fn copies_onto_themselves_read_before_they_write() {
    let device = Device::new().unwrap();
    let memory = device.memory();
    let size = (1 << 20) + 70_001;
    let a = memory.allocate(size as u64).unwrap();
    for (to, from, n) in [
        (0, 3, 200),
        (5, 0, 200),
        (0, 16_384, 40_000),
        (16_000, 0, 70_000),
        (1, 0, size - 1),
        (0, 1, size - 1),
        (9, 9, 100),
        (60_000, 20, 40_000),
    ] {
        let mut host = noise(size);
        memory.write(a, &host).unwrap();
        memory.copy(a + to as u64, a + from as u64, n as u64).unwrap();
        host.copy_within(from..from + n, to);
        assert!(bytes_of(memory, a, size) == host, "{to} {from} {n}");
    }
}

#[test]
fn fills_repeat_their_word() {
    let device = Device::new().unwrap();
    let memory = device.memory();
    let size = (2 << 20) + 100;
    let a = memory.allocate(size as u64).unwrap();
    for (start, count) in [(0, 0), (0, 1), (4, 1), (8, 5), (12, 300_000), (4, 500_000)] {
        for (word, bytes) in [
            (Word::B8(0xa1), vec![0xa1]),
            (Word::B16(0xb2a1), vec![0xa1, 0xb2]),
            (Word::B32(0xd4c3_b2a1), vec![0xa1, 0xb2, 0xc3, 0xd4]),
        ] {
            memory.fill(a, Word::B8(0x11), size as u64).unwrap();
            memory.fill(a + start as u64, word, count as u64).unwrap();
            let mut host = vec![0x11; size];
            let filled = host[start..].iter_mut().zip(bytes.iter().cycle());
            filled.take(count * bytes.len()).for_each(|(to, from)| *to = *from);
            assert!(bytes_of(memory, a, size) == host, "{start} {count} {word:?}");
        }
    }
    memory.fill(a + 3, Word::B8(0x77), 2).unwrap();
    assert_eq!(memory.fill(a + 1, Word::B16(1), 1), Err(MemoryError::Misaligned { value: a + 1, element: 2 }));
    assert_eq!(memory.fill(a + 6, Word::B32(1), 1), Err(MemoryError::Misaligned { value: a + 6, element: 4 }));
    let many = memory.fill(a, Word::B32(1), u64::MAX / 2);
    assert!(matches!(many, Err(MemoryError::PastEnd { bytes: u64::MAX, .. })), "{many:?}");
}

#[test]
fn rows_have_a_pitch() {
    let device = Device::new().unwrap();
    let memory = device.memory();
    let (a, b) = (memory.allocate(160).unwrap(), memory.allocate(120).unwrap());
    let of = |address, pitch| Rows { address, pitch };
    memory.fill_rows(of(a + 2, 40), Word::B16(0x0201), 3, 4).unwrap();
    let mut host = vec![0; 160];
    for row in 0..4 {
        host[row * 40 + 2..][..6].copy_from_slice(&[1, 2, 1, 2, 1, 2]);
    }
    assert_eq!(bytes_of(memory, a, 160), host);
    memory.copy_rows(of(b, 30), of(a, 40), 10, 4).unwrap();
    let mut there = vec![0; 120];
    for row in 0..4 {
        there[row * 30..][..10].copy_from_slice(&host[row * 40..][..10]);
    }
    assert_eq!(bytes_of(memory, b, 120), there);
    // The last row needs no whole pitch; one byte more does not fit.
    memory.fill_rows(of(b, 30), Word::B8(1), 30, 4).unwrap();
    memory.copy_rows(of(b + 20, 30), of(a, 40), 10, 4).unwrap();
    let past = memory.copy_rows(of(b + 21, 30), of(a, 40), 10, 4);
    assert!(matches!(past, Err(MemoryError::PastEnd { bytes: 100, .. })), "{past:?}");
    let wide = memory.fill_rows(of(a, 4), Word::B8(1), 5, 2);
    assert_eq!(wide, Err(MemoryError::Pitch { pitch: 4, width: 5 }));
    let odd = memory.fill_rows(of(a, 6), Word::B32(1), 1, 2);
    assert_eq!(odd, Err(MemoryError::Misaligned { value: 6, element: 4 }));
    // A single row has no pitch.
    memory.fill_rows(of(a, 1), Word::B32(1), 5, 1).unwrap();
    let huge = memory.fill_rows(of(a, u64::MAX / 2), Word::B8(1), 1, u64::MAX);
    assert!(matches!(huge, Err(MemoryError::PastEnd { .. })), "{huge:?}");
}

#[test]
fn a_limit_holds_for_all_memory_of_a_device() {
    let device = Device::new().unwrap();
    let memory = device.memory();
    let (_, all) = memory.room();
    assert!(all > 1 << 30);
    memory.set_limit(10_000);
    assert_eq!(memory.room(), (10_000, 10_000));
    let a = memory.allocate(6000).unwrap();
    assert_eq!(memory.room(), (4000, 10_000));
    let e = memory.allocate(4001).unwrap_err();
    assert_eq!((e.kind(), &e), (ErrorKind::OutOfMemory, &MemoryError::NoRoom(NoRoom { bytes: 4001 })));
    let buffer = device.zeroed(3000).unwrap();
    assert!(device.zeroed(1001).is_err());
    let text = ".global .b8 g[1001]; .visible .entry k() { ret; }";
    assert_eq!(
        Module::from_text(&device, "test.ptx", &format!("{HEAD}{text}")).map(drop).unwrap_err().kind(),
        ErrorKind::OutOfMemory
    );
    drop(buffer);
    memory.free(a).unwrap();
    assert_eq!(memory.room(), (10_000, 10_000));
    for _ in 0..100 {
        let all = memory.allocate(10_000).unwrap();
        assert!(memory.allocate(1).is_err());
        memory.free(all).unwrap();
    }
    assert_eq!(memory.allocate(u64::MAX), Err(MemoryError::NoRoom(NoRoom { bytes: u64::MAX })));
    memory.set_limit(u64::MAX);
    assert!(memory.allocate(1 << 50).is_err());
    assert_eq!(memory.room(), (all, all), "what failed takes no room");
}

#[test]
fn kernels_use_memory_by_address_while_it_is_there() {
    let device = Device::new().unwrap();
    let memory = device.memory();
    let m = Module::from_text(&device, "test.ptx", &format!("{HEAD}{INCREMENT}")).unwrap();
    let f = m.function(None).unwrap();
    for engine in [Engine::Interp, Engine::Jit] {
        let config = LaunchConfig { engine, ..LaunchConfig::new([1; 3], [64, 1, 1]) };
        let run = |at: u64, n| launch(&f, &LaunchConfig { block: [n, 1, 1], ..config.clone() }, &[Arg::from(at)]);
        let a = memory.allocate(256).unwrap();
        memory.fill(a, Word::B32(41), 64).unwrap();
        let _ = run(a, 64).unwrap();
        assert_eq!(bytes_of(memory, a, 256), [42, 0, 0, 0].repeat(64));
        assert_eq!(run(a, 65).unwrap_err().kind(), ErrorKind::Trap(TrapKind::OutOfBounds));
        memory.free(a).unwrap();
        assert_eq!(run(a, 1).unwrap_err().kind(), ErrorKind::Trap(TrapKind::OutOfBounds));
    }
}

/// Threads allocate, fill, copy, check and free; each sees its own bytes only. One more reads wherever it finds something.
#[test]
fn threads_share_the_memory() {
    let device = Device::new().unwrap();
    let memory = device.memory();
    let over = AtomicBool::new(false);
    thread::scope(|s| {
        let workers: Vec<_> = (0..4_u8)
            .map(|t| {
                s.spawn(move || {
                    for i in 0..150_u64 {
                        let n = 1 + (i * 7919 + u64::from(t) * 104_729) % 70_000;
                        let (a, b) = (memory.allocate(n).unwrap(), memory.allocate(n).unwrap());
                        assert!(bytes_of(memory, a, n as usize).iter().all(|x| *x == 0));
                        memory.fill(a, Word::B8(t + 1), n).unwrap();
                        memory.copy(b, a, n).unwrap();
                        assert!(bytes_of(memory, b, n as usize).iter().all(|x| *x == t + 1));
                        memory.free(a).unwrap();
                        assert!(memory.free(a).is_err());
                        memory.free(b).unwrap();
                    }
                })
            })
            .collect();
        let over = &over;
        s.spawn(move || {
            let at = memory.allocate(1).unwrap();
            let mut seen = [0; 512];
            while !over.load(Ordering::Relaxed) {
                for k in 0..200 {
                    if let Some((base, size)) = memory.range_of(at + 512 * k) {
                        // It may have ended since: then it is refused.
                        let n = size.min(512) as usize;
                        let _ = memory.read(base, &mut seen[..n]);
                    }
                }
            }
        });
        // The one that reads must end too when another has failed.
        let failed = workers.into_iter().filter_map(|w| w.join().err()).count();
        over.store(true, Ordering::Relaxed);
        assert_eq!(failed, 0);
    });
    let (free, all) = memory.room();
    assert_eq!(all - free, 1);
}
