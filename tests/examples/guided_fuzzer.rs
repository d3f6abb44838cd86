//! A fuzzer that coverage guides: it finds a fault behind four conditions, which random inputs do not meet.
//!
//! `cargo run -p handloom-tests --example guided_fuzzer`. Each lane of a warp reads one input. What a launch reached says by lane who came to a statement
//! (`which`), so an input that came to one that none before it had reached is kept, and later inputs are made from those that were kept.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

use handloom_diag::SourceMap;
use handloom_runtime::{Arg, Device, LaunchConfig, LaunchError, Module, Tally, launch};

/// Bytes of an input.
const BYTES: usize = 8;

/// Inputs of a launch: one for each lane.
const LANES: usize = 32;

/// Reads an input of 8 bytes for each thread. One that begins with `PTX` and whose fourth byte is above 200 stores where it should not.
const KERNEL: &str = "
.version 8.0
.target sm_80
.address_size 64

.visible .entry parse(.param .u64 inputs, .param .u64 kinds)
{
    .reg .pred %p;
    .reg .b32 %t, %c, %at;
    .reg .b64 %in, %out, %a;
    ld.param.u64 %in, [inputs];
    ld.param.u64 %out, [kinds];
    cvta.to.global.u64 %in, %in;
    cvta.to.global.u64 %out, %out;
    mov.u32 %t, %tid.x;
    mul.wide.u32 %a, %t, 8;
    add.u64 %in, %in, %a;
    mov.u32 %at, %t;
    ld.global.u8 %c, [%in];
    setp.ne.u32 %p, %c, 80;
    @%p bra PLAIN;
    ld.global.u8 %c, [%in+1];
    setp.ne.u32 %p, %c, 84;
    @%p bra PLAIN;
    ld.global.u8 %c, [%in+2];
    setp.ne.u32 %p, %c, 88;
    @%p bra PLAIN;
    ld.global.u8 %c, [%in+3];
    setp.le.u32 %p, %c, 200;
    @%p bra PLAIN;
    mad.lo.u32 %at, %c, 1024, %t;
PLAIN:
    mul.wide.u32 %a, %at, 4;
    add.u64 %out, %out, %a;
    st.global.u32 [%out], %c;
    ret;
}
";

/// The input that met a fault, and the launch that did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The input.
    pub input: [u8; BYTES],
    /// The number of the launch, from 0.
    pub launch: u32,
    /// What the fault was.
    pub message: String,
}

/// Launches the kernel on inputs until one meets a fault, so many times at most. `is_guided`: by what earlier inputs reached; else inputs are random.
///
/// # Errors
/// The kernel cannot be loaded or launched.
pub fn hunt(is_guided: bool, seed: u64, launches: u32) -> Result<Option<Found>, Box<dyn Error>> {
    let device = Device::new()?;
    let mut sources = SourceMap::new();
    let file = sources.add("parse.ptx", KERNEL);
    let module = Module::load_marked(&device, Arc::new(sources), &[file], |_| {})?;
    let function = module.function(Some("parse"))?;
    let kinds = device.zeroed(4 * LANES as u64)?;
    let mut random = Random(seed);
    let (mut kept, mut reached) = (vec![[0; BYTES]], BTreeSet::new());
    for number in 0..launches {
        let mut make = |_| if is_guided { random.changed(&kept) } else { random.input() };
        let inputs: Vec<[u8; BYTES]> = (0..LANES).map(&mut make).collect();
        let buffer = device.copy_of(inputs.as_flattened())?;
        let tally = Tally::coverage();
        let config = LaunchConfig::new([1, 1, 1], [LANES as u32, 1, 1]).counted(&tally);
        match launch(&function, &config, &[Arg::from(&buffer), Arg::from(&kinds)]) {
            Ok(_) => {}
            Err(LaunchError::Trap(trap)) => {
                let [lane, ..] = trap.trap().thread;
                let (input, message) = (inputs[lane as usize], trap.message().to_owned());
                return Ok(Some(Found { input, launch: number, message }));
            }
            Err(other) => return Err(other.into()),
        }
        for (statement, row) in tally.launches().iter().flat_map(|launch| &launch.statements).enumerate() {
            if row.which != 0 && reached.insert(statement) {
                kept.push(inputs[row.which.trailing_zeros() as usize]);
            }
        }
    }
    Ok(None)
}

/// Numbers that a seed decides.
struct Random(u64);

impl Random {
    /// One below a bound.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap_or(0)
    }

    fn input(&mut self) -> [u8; BYTES] {
        std::array::from_fn(|_| self.byte())
    }

    /// One of those that were kept, with another byte.
    fn changed(&mut self, kept: &[[u8; BYTES]]) -> [u8; BYTES] {
        let mut input = kept[self.below(kept.len())];
        input[self.below(BYTES)] = self.byte();
        input
    }
}

#[allow(clippy::print_stdout, reason = "it says what it found")]
#[allow(dead_code, reason = "the test that runs this has a main of its own")]
fn main() -> Result<(), Box<dyn Error>> {
    for is_guided in [false, true] {
        let inputs = if is_guided { "guided by coverage" } else { "random" };
        match hunt(is_guided, 1, 20_000)? {
            Some(found) => {
                println!("{inputs}: launch {} met a fault with {:02x?}: {}", found.launch, found.input, found.message)
            }
            None => println!("{inputs}: 20,000 launches met no fault"),
        }
    }
    Ok(())
}
