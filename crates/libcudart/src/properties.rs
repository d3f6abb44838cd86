//! `cudaDeviceProp`: the properties of a device as one structure, which versions 12 and 13 lay out differently.

use std::ffi::c_char;

use crate::cu;
use crate::device::{attribute, exists};
use crate::error::{Answer, Error, driver};

/// Which versions have a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    Both,
    Twelve,
    Thirteen,
}

/// Where the value of a field comes from.
#[derive(Clone, Copy)]
enum Source {
    /// 256 bytes of name.
    Name,
    /// 16 bytes.
    Uuid,
    /// This many bytes of zeros.
    Zeros(usize),
    /// 64 bits: all memory of the device.
    Memory,
    /// 32 bits: attributes of the driver API by their numbers, one after the other.
    Int(&'static [u32]),
    /// 64 bits: an attribute.
    Size(u32),
}

use In::*;
use Source::*;

/// The fields in their order.
const FIELDS: &[(In, Source)] = &[
    (Both, Name),
    (Both, Uuid),
    // Locally unique identifier and its mask.
    (Both, Zeros(12)),
    (Both, Memory),
    // Shared memory of a block; registers, warp.
    (Both, Size(8)),
    (Both, Int(&[12, 10])),
    (Both, Size(11)),
    // Threads of a block, sizes of a block and of a grid.
    (Both, Int(&[1, 2, 3, 4, 5, 6, 7])),
    // Clock.
    (Twelve, Int(&[13])),
    (Both, Size(9)),
    (Both, Int(&[75, 76])),
    // Alignment of textures.
    (Both, Size(14)),
    (Both, Size(51)),
    // Overlap of copies and kernels.
    (Twelve, Int(&[15])),
    (Both, Int(&[16])),
    // Time limit of kernels.
    (Twelve, Int(&[17])),
    (Both, Int(&[18, 19])),
    // Compute mode.
    (Twelve, Int(&[20])),
    // Sizes of textures.
    (Both, Int(&[21, 77])),
    (Twelve, Int(&[69])),
    (Both, Int(&[22, 23, 73, 74, 70, 71, 72, 45, 46, 24, 25, 26, 47, 48, 49, 52, 42, 43, 27, 28, 29, 53, 54])),
    // Sizes of surfaces, and their alignment.
    (Both, Int(&[55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68])),
    (Both, Size(30)),
    // Concurrent kernels, error correction, place on the bus, driver mode, copy engines, unified addresses.
    (Both, Int(&[31, 32, 33, 34, 50, 35, 40, 41])),
    // Clock of memory.
    (Twelve, Int(&[36])),
    // Bus, caches, threads of a multiprocessor, priorities, L1.
    (Both, Int(&[37, 38, 108, 39, 78, 79, 80])),
    (Both, Size(81)),
    // Registers of a multiprocessor, managed memory, boards, host atomics.
    (Both, Int(&[82, 83, 84, 85, 86])),
    // Single to double precision.
    (Twelve, Int(&[87])),
    // Pageable and managed memory, preemption, registered memory, cooperative launches.
    (Both, Int(&[88, 89, 90, 91, 95])),
    // Cooperative launches on several devices.
    (Twelve, Int(&[96])),
    (Both, Size(97)),
    // Page tables, managed memory from the host, blocks of a multiprocessor, access policy.
    (Both, Int(&[100, 101, 106, 109])),
    (Both, Size(111)),
    // Registration, sparse arrays, semaphores, pools, direct access.
    (Both, Int(&[99, 112, 113, 114, 115, 116, 117, 118, 119, 121, 125, 120, 129])),
    // Memory of the host's nodes, servers, place on the bus.
    (Thirteen, Int(&[130, 131, 133, 134, 139, 140, 143])),
    (Thirteen, Zeros(224)),
    (Twelve, Zeros(252)),
];

/// The bytes of the structure, as C lays it out.
fn layout(version: In, device: i32) -> Answer<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::new();
    let fit = |bytes: &mut Vec<u8>, align: usize| bytes.resize(bytes.len().next_multiple_of(align), 0);
    // An attribute that the driver does not have is one that the device does not have.
    let value = |number: u32| attribute(number, device).unwrap_or(0);
    for (versions, from) in FIELDS {
        if *versions != Both && *versions != version {
            continue;
        }
        match from {
            Name => {
                let mut name: [c_char; 256] = [0; 256];
                // SAFETY: 256 bytes may be written there.
                driver(unsafe { cu::cuDeviceGetName(name.as_mut_ptr(), 256, device) })?;
                bytes.extend(name.map(|c| c.to_ne_bytes()[0]));
            }
            Uuid => {
                let mut uuid = [0; 16];
                driver(cu::cuDeviceGetUuid_v2(&mut uuid, device))?;
                bytes.extend(uuid);
            }
            Zeros(count) => bytes.resize(bytes.len() + count, 0),
            Memory => {
                let mut size = 0;
                driver(cu::cuDeviceTotalMem_v2(&mut size, device))?;
                fit(&mut bytes, 8);
                bytes.extend(size.to_ne_bytes());
            }
            Int(numbers) => {
                fit(&mut bytes, 4);
                bytes.extend(numbers.iter().flat_map(|n| value(*n).to_ne_bytes()));
            }
            Size(number) => {
                fit(&mut bytes, 8);
                bytes.extend(i64::from(value(*number)).to_ne_bytes());
            }
        }
    }
    fit(&mut bytes, 8);
    Ok(bytes)
}

fn fill<const N: usize>(out: Option<&mut std::mem::MaybeUninit<[u8; N]>>, version: In, device: i32) -> Answer {
    let out = out.ok_or(Error::INVALID_VALUE)?;
    exists(device)?;
    let bytes = layout(version, device)?;
    // The table of fields is wrong if the sizes differ: rather no answer than a wrong one.
    out.write(bytes.try_into().map_err(|_| Error::UNKNOWN)?);
    Ok(())
}

calls! {
    in "13" fn cudaGetDeviceProperties as properties_13(properties: Option<&mut std::mem::MaybeUninit<[u8; 1008]>>, device: i32) {
        fill(properties, Thirteen, device)
    }

    fn cudaGetDeviceProperties_v2(properties: Option<&mut std::mem::MaybeUninit<[u8; 1032]>>, device: i32) {
        fill(properties, Twelve, device)
    }
}
