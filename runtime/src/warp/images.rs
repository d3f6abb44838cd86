//! Textures and samplers that fetches of a cta named lately, decoded.

use handloom_interp::image::{Refused, resolve};
use handloom_ir::num::image::{BYTES, Kind, Object};

use super::KernelMemory;
use crate::memory::access;

/// How many are remembered.
const SLOTS: usize = 8;

type Record = [u8; BYTES as usize];

/// Objects, by the lower bits of their handles.
#[derive(Debug, Default)]
pub(crate) struct Images {
    known: [Option<Box<Known>>; SLOTS],
}

#[derive(Debug)]
struct Known {
    handle: u64,
    kind: Kind,
    /// Of the memory, when the record and all texels could be read.
    generation: u64,
    record: Record,
    object: Object,
}

impl Images {
    /// The object that a handle names, whose memory may be read.
    pub(crate) fn find(&mut self, handle: u64, kind: Kind, memory: &mut KernelMemory) -> Result<&Object, Refused> {
        let slot = &mut self.known[(handle / u64::from(BYTES)) as usize % SLOTS];
        let generation = memory.view.get_mut().newest();
        // A program may have written to the record: what was decoded holds as long as its bytes do.
        let holds = |k: &Known| k.handle == handle && k.kind == kind && k.generation == generation;
        let is_known = slot.as_ref().is_some_and(|k| holds(k) && is_same(&k.record, &record(handle)));
        if !is_known {
            let object = resolve(handle, kind, memory)?;
            *slot = Some(Box::new(Known { handle, kind, generation, record: record(handle), object }));
        }
        match slot {
            Some(known) => Ok(&known.object),
            None => unreachable!("it was just put there"),
        }
    }
}

/// Whether records are the same, without a call.
fn is_same(a: &Record, b: &Record) -> bool {
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    words.fold(0, |other, (a, b)| other | u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b)) == 0
}

/// The bytes of a record, which may be read.
fn record(handle: u64) -> Record {
    let mut record = [0; BYTES as usize];
    // SAFETY: the memory of the record was found readable, and no allocation has ended since.
    unsafe { access::copy_out(handle, &mut record) };
    record
}
