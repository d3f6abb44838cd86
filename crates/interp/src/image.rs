//! Textures and surfaces: objects by their handles, and what reading and writing through them does to memory.
//!
//! What is computed stands in `ir::num::image`. Here are the rules of memory: a handle must be the address of an object of the right kind, whose memory
//! must lie in one piece where the program may read it.
//!
//! # PTX ISA
//! Texture Instructions; Surface Instructions.

use handloom_ir::num::image::{self, ALIGN, Asked, BYTES, Kind, Object, Texels};
use handloom_ir::simt::{Fetch, ImageOp, Inst, OutOfRange, Surface};
use handloom_ir::trap::{AccessKind, Trap, TrapKind};
use handloom_ir::types::StateSpace;

use crate::cta::{Cta, Group};
use crate::memory::{Denied, Memory};

/// Why an op cannot be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// What the report calls it.
    pub kind: TrapKind,
    /// First byte of what was to be reached; a handle.
    pub address: u64,
    /// How many bytes.
    pub bytes: u32,
    /// What was to be done there.
    pub access: AccessKind,
    /// A clause for the report, where there is more to say.
    pub detail: String,
}

impl Refused {
    /// Fills in what a trap says of it.
    pub fn tell(&self, trap: &mut Trap) {
        trap.address = Some(self.address);
        trap.bytes = self.bytes;
        trap.access = Some(self.access);
        trap.space = Some(StateSpace::Global);
        trap.detail.clone_from(&self.detail);
    }
}

/// The objects that the lanes of an op named last.
#[derive(Debug, Default)]
pub struct Objects {
    known: [Option<(u64, Object)>; 2],
}

impl Objects {
    /// Does an op for one lane. Returns its results, in the order of the op.
    ///
    /// # Errors
    /// A handle names no object, or memory that the program may not reach; or a place outside of a surface that is to trap.
    pub fn step<M: Memory + ?Sized>(&mut self, op: ImageOp, src: &[u64], memory: &mut M) -> Result<[u64; 4], Refused> {
        let handle = src[0];
        match op {
            ImageOp::Fetch(f) => self.fetch(f, src, memory),
            ImageOp::Query { query, of_level } => {
                let object = object(handle, memory)?;
                let level = if of_level { low(src[1]) } else { 0 };
                Ok([u64::from(image::ask(&object, query, level)), 0, 0, 0])
            }
            ImageOp::Is(kind) => Ok([u64::from(object(handle, memory).is_ok_and(|o| o.kind == kind)), 0, 0, 0]),
            ImageOp::Place(at) => {
                let (object, found) = self.place(at, &src[1..], handle, memory)?;
                let signed = object.image.channel.is_signed();
                Ok([found.address, u64::from(found.is_inside), u64::from(signed), 0])
            }
            ImageOp::Store { at, .. } => {
                let (coordinates, values) = src[1..].split_at(at.geometry.n_coordinates());
                let (object, found) = self.place(at, coordinates, handle, memory)?;
                if found.is_inside {
                    let refused = |kind| Refused {
                        kind,
                        address: found.address,
                        bytes: found.bytes,
                        access: AccessKind::Write,
                        detail: String::new(),
                    };
                    reach(memory, found.address, u64::from(found.bytes), true).map_err(|(_, _, kind)| refused(kind))?;
                    let values: Vec<u32> = values.iter().map(|v| low(*v)).collect();
                    image::write_formatted(&object, &mut Through(memory), found.address, &values);
                }
                Ok([0; 4])
            }
        }
    }

    fn fetch<M: Memory + ?Sized>(&mut self, f: Fetch, src: &[u64], memory: &mut M) -> Result<[u64; 4], Refused> {
        let texture = self.known(0, src[0], Kind::Texture, memory)?;
        let n_handles = 1 + usize::from(f.has_sampler);
        let sampler =
            if f.has_sampler { self.known(1, src[1], Kind::Sampler, memory)?.sampler } else { texture.sampler };
        let mut words = [0; 16];
        words.iter_mut().zip(&src[n_handles..]).for_each(|(to, from)| *to = low(*from));
        let [n_coordinates, n_lod, n_offsets, n_depth] = f.words();
        let (coordinates, rest) = words.split_at(n_coordinates);
        let (lod, rest) = rest.split_at(n_lod);
        let (offsets, rest) = rest.split_at(n_offsets);
        let asked = Asked { coordinates, lod, offsets, depth: rest.first().copied().filter(|_| n_depth == 1) };
        let read = if f.gather.is_some() { image::gather } else { image::fetch };
        Ok(read(&texture, &sampler, f, &asked, &mut Through(memory)).map(u64::from))
    }

    /// The object that a handle names, whose memory may be read.
    fn known<M: Memory + ?Sized>(
        &mut self,
        slot: usize,
        handle: u64,
        kind: Kind,
        memory: &mut M,
    ) -> Result<Object, Refused> {
        if let Some((_, object)) = self.known[slot].filter(|(known, _)| *known == handle) {
            return Ok(object);
        }
        let object = resolve(handle, kind, memory)?;
        self.known[slot] = Some((handle, object));
        Ok(object)
    }

    fn place<M: Memory + ?Sized>(
        &mut self,
        at: Surface,
        coordinates: &[u64],
        handle: u64,
        memory: &mut M,
    ) -> Result<(Object, image::Found), Refused> {
        let object = self.known(0, handle, Kind::Surface, memory)?;
        let mut words = [0; 4];
        words.iter_mut().zip(coordinates).for_each(|(to, from)| *to = low(*from));
        let coordinates = &words[..coordinates.len()];
        let found = image::place(&object, at, coordinates);
        if found.is_inside || at.outside != OutOfRange::Trap {
            return Ok((object, found));
        }
        let [w, h, d] = object.image.size;
        let signed: Vec<String> = coordinates.iter().map(|c| c.cast_signed().to_string()).collect();
        let size = match object.image.dims {
            1 => format!("{w}"),
            2 => format!("{w} x {h}"),
            _ => format!("{w} x {h} x {d}"),
        };
        let detail = format!(
            "the place ({}) with {} byte{} is outside of a surface of {size} elements of {} byte{}",
            signed.join(", "),
            found.bytes,
            if found.bytes == 1 { "" } else { "s" },
            object.image.texel(),
            if object.image.texel() == 1 { "" } else { "s" },
        );
        let access = AccessKind::Read;
        Err(Refused { kind: TrapKind::OutOfSurface, address: found.address, bytes: found.bytes, access, detail })
    }
}

/// The object of a handle, whose memory may be read.
///
/// # Errors
/// It names none of that kind, or memory that the program may not reach.
pub fn resolve<M: Memory + ?Sized>(handle: u64, kind: Kind, memory: &mut M) -> Result<Object, Refused> {
    let object = object_of(handle, kind, memory)?;
    if kind == Kind::Texture {
        readable(&object, handle, memory)?;
    }
    Ok(object)
}

/// Does a fetch for the lanes of a mask at once; `None` if a lane reads the border, and then nothing was done. The texture was
/// [resolved](resolve).
#[inline(always)]
pub fn fetch_row<M: Memory + ?Sized>(
    flat: &image::Flat,
    coordinates: &[image::Row],
    mask: u32,
    memory: &mut M,
) -> Option<[image::Row; 4]> {
    image::fetch_row(flat, coordinates, mask, &mut Through(memory))
}

/// The low word of a source.
fn low(source: u64) -> u32 {
    let [a, b, c, d, ..] = source.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// The object of a record.
fn object<M: Memory + ?Sized>(handle: u64, memory: &mut M) -> Result<Object, Refused> {
    let refused = |detail: &str| Refused {
        kind: TrapKind::BadObject,
        address: handle,
        bytes: BYTES,
        access: AccessKind::Read,
        detail: detail.into(),
    };
    if !handle.is_multiple_of(u64::from(ALIGN)) || memory.check(handle, BYTES, false).is_err() {
        return Err(refused("it is no handle"));
    }
    let mut bytes = [0; BYTES as usize];
    let mut at = handle;
    for eight in bytes.chunks_exact_mut(8) {
        eight.copy_from_slice(&memory.read(at, 8).to_le_bytes());
        at = at.wrapping_add(8);
    }
    Object::decode(&bytes).ok_or_else(|| refused("what lies there is no texture, sampler or surface"))
}

/// The object of a record, if it is of a kind and has memory.
fn object_of<M: Memory + ?Sized>(handle: u64, kind: Kind, memory: &mut M) -> Result<Object, Refused> {
    let object = object(handle, memory)?;
    let refused = |detail: String| {
        let access = AccessKind::Read;
        Err(Refused { kind: TrapKind::BadObject, address: handle, bytes: BYTES, access, detail })
    };
    if object.kind != kind {
        return refused(format!("a `.{}` is wanted, and there is a `.{}`", kind.word(), object.kind.word()));
    }
    if kind != Kind::Sampler && object.image.base == 0 {
        return refused(format!("nothing was bound to this `.{}`", kind.word()));
    }
    Ok(object)
}

/// Whether all of a texture may be read.
fn readable<M: Memory + ?Sized>(object: &Object, handle: u64, memory: &mut M) -> Result<(), Refused> {
    let access = AccessKind::Read;
    let Some(extent) = object.image.extent() else {
        let detail = "the sizes of the texture are more than memory can hold".to_owned();
        return Err(Refused { kind: TrapKind::BadObject, address: handle, bytes: BYTES, access, detail });
    };
    reach(memory, object.image.base, extent, false).map_err(|(address, bytes, kind)| {
        let detail = format!("the texture at {handle:#x} has {extent} bytes from {:#x} on", object.image.base);
        Refused { kind, address, bytes, access, detail }
    })
}

/// Whether a range may be reached; else the part of it that may not.
fn reach<M: Memory + ?Sized>(memory: &mut M, from: u64, bytes: u64, write: bool) -> Result<(), (u64, u32, TrapKind)> {
    let (mut at, mut rest) = (from, bytes);
    while rest > 0 {
        let part = u32::try_from(rest).unwrap_or(1 << 31);
        memory.check(at, part, write).map_err(|denied| match denied {
            Denied::OutOfBounds => (at, part, TrapKind::OutOfBounds),
            Denied::WriteProtected => (at, part, TrapKind::WriteProtected),
        })?;
        at = at.wrapping_add(u64::from(part));
        rest -= u64::from(part);
    }
    Ok(())
}

/// Memory as texels lie in it.
struct Through<'m, M: Memory + ?Sized>(&'m mut M);

impl<M: Memory + ?Sized> Texels for Through<'_, M> {
    #[inline]
    fn read(&mut self, address: u64, bytes: u32) -> u64 {
        self.0.read(address, bytes)
    }

    #[inline]
    fn write(&mut self, address: u64, bytes: u32, value: u64) {
        self.0.write(address, bytes, value);
    }
}

impl Cta<'_> {
    pub(crate) fn image(
        &mut self,
        inst: &Inst,
        op: ImageOp,
        group: Group,
        memory: &mut dyn Memory,
    ) -> Result<(), Box<Trap>> {
        let mut objects = Objects::default();
        let mut refused: Vec<(usize, Refused)> = Vec::new();
        for t in group.threads() {
            let src: Vec<u64> = inst.src.iter().map(|v| self.get(t, *v)).collect();
            match objects.step(op, &src, memory) {
                Ok(values) => {
                    let unknown = self.unknown_source(inst, t);
                    inst.dst.iter().zip(values).for_each(|(d, v)| self.set(t, *d, v));
                    self.shade_results(inst, t, unknown);
                }
                Err(why) => refused.push((t, why)),
            }
        }
        let Some((_, why)) = refused.first() else { return Ok(()) };
        let alike = refused.iter().filter(|(_, other)| other.kind == why.kind);
        let mut trap = self.trap_of(why.kind, inst.span, alike.map(|(t, _)| *t));
        why.tell(&mut trap);
        Err(trap)
    }
}
