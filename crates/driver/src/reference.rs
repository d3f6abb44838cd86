//! Texture and surface references: variables of modules that a program lays over memory by calls.
//!
//! The variable is the record that kernels read, so each change writes it, after the work that may still read the old one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use handloom_ir::num::image::Kind;
use handloom_ir::num::image::{AddressMode, BYTES, Filter, Object, Sampler};

use crate::code::{Code, Result};
use crate::context;
use crate::gpu::{Gpu, LINEAR_TEXELS};
use crate::module::Mod;
use crate::process::{may_wait, process};
use crate::texture::{Reading, Resource, image, sampler};

/// What textures of rows of memory begin with, and from row to row (`CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT`, `_TEXTURE_PITCH_ALIGNMENT`).
const ALIGN: (i32, i32) = (14, 51);

/// A reference.
#[derive(Debug)]
pub struct Reference {
    /// Whether it is a texture or a surface.
    kind: Kind,
    /// The variable of a module: handle of the context, device, and address. A program may also make a texture reference that no kernel reads.
    variable: Option<(u64, Arc<Gpu>, u64)>,
    state: Mutex<State>,
}

/// What was said of a reference.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// What it lies over.
    pub resource: Option<Resource>,
    /// `CUarray_format` and components.
    pub format: (u32, u32),
    /// How it is read.
    pub reading: Reading,
}

/// `CU_AD_FORMAT_FLOAT`
const FLOAT: u32 = 0x20;

/// What a declaration says of how a texture is read.
fn declared(s: &Sampler) -> Reading {
    const NORMALIZED: u32 = 2;
    let filter = |f| u32::from(f == Filter::Linear);
    let address = |mode| match mode {
        AddressMode::Wrap => 0,
        AddressMode::ClampToEdge | AddressMode::ClampOgl => 1,
        AddressMode::Mirror => 2,
        AddressMode::ClampToBorder => 3,
    };
    Reading {
        address: s.address.map(address),
        filter: filter(s.filter),
        flags: if s.is_normalized { NORMALIZED } else { 0 },
        max_anisotropy: 0,
        mip_filter: filter(s.mip_filter),
        lod_bias: s.lod_bias,
        min_lod: s.min_lod,
        max_lod: s.max_lod,
        border: s.border,
    }
}

impl Reference {
    fn new(kind: Kind, variable: Option<(u64, Arc<Gpu>, u64)>, reading: Reading) -> Reference {
        let state = Mutex::new(State { resource: None, format: (FLOAT, 1), reading });
        Reference { kind, variable, state }
    }

    /// The variable of a name in a module.
    ///
    /// # Errors
    /// There is none of that kind.
    pub fn of_module(module: &Mod, kind: Kind, name: &str) -> Result<Reference> {
        let (address, bytes) = module.global(name)?;
        let mut record = [0; BYTES as usize];
        if bytes != u64::from(BYTES) {
            return Err(Code::NOT_FOUND);
        }
        module.gpu.device.memory().read(address, &mut record)?;
        let object = Object::decode(&record).filter(|o| o.kind == kind).ok_or(Code::NOT_FOUND)?;
        Ok(Reference::new(kind, Some((module.ctx, Arc::clone(&module.gpu), address)), declared(&object.sampler)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was said of it.
    pub fn now(&self) -> State {
        *self.state()
    }

    /// Changes what is said of it. If kernels could not read it then, nothing is changed.
    ///
    /// # Errors
    /// As `change`, or what was said does not fit.
    pub fn change(&self, change: impl FnOnce(&mut State) -> Result) -> Result {
        let mut state = self.state();
        let mut new = *state;
        change(&mut new)?;
        if let Some(resource) = new.resource {
            self.write(resource, new.reading)?;
        }
        *state = new;
        Ok(())
    }

    fn write(&self, resource: Resource, mut reading: Reading) -> Result {
        let mut image = image(resource)?;
        if matches!(resource, Resource::Linear { .. }) {
            // Filters mean nothing for a line of memory.
            reading.filter = 0;
        }
        let sampler = if self.kind == Kind::Texture { sampler(&reading, &mut image)? } else { Sampler::default() };
        let Some((ctx, gpu, address)) = &self.variable else { return Ok(()) };
        // The part of a library lies in the current one.
        if let Some(ctx) = process()?.contexts.get(*ctx).or_else(|| context::current_any().ok()) {
            may_wait()?;
            // What fails there is told by another call.
            let _ = ctx.rt.synchronize();
        }
        let object = Object { kind: self.kind, image, sampler };
        gpu.device.memory().write(*address, &object.encode())?;
        Ok(())
    }

    /// Lays it over a line of memory. Returns how many bytes after its start the line begins.
    ///
    /// # Errors
    /// There is no memory, more than a texture may have, or it begins elsewhere than a texel may.
    pub fn set_line(&self, address: u64, bytes: u64, may_begin_earlier: bool) -> Result<u64> {
        let mut before = 0;
        self.change(|state| {
            let (format, channels) = state.format;
            let channel = crate::array::channel(format)?;
            let texel = u64::from(channel.bytes()) * u64::from(channels);
            before = address % texel.max(1);
            let bytes = bytes + before;
            let is_too_much = bytes / texel.max(1) > u64::from(LINEAR_TEXELS.unsigned_abs());
            if is_too_much || before > 0 && !may_begin_earlier || process()?.memory.find(address).is_none() {
                return Err(Code::INVALID_VALUE);
            }
            state.resource = Some(Resource::Linear { address: address - before, format, channels, bytes });
            Ok(())
        })?;
        Ok(before)
    }

    /// Lays it over rows of memory.
    ///
    /// # Errors
    /// There is no memory, or it does not begin where rows of a texture may.
    pub fn set_rows(&self, address: u64, format: u32, channels: u32, size: [u64; 2], pitch: u64) -> Result {
        let ctx = context::current()?;
        let aligned = |n: u64, attribute| -> Result<bool> {
            Ok(n.is_multiple_of(u64::from(ctx.gpu.attribute(attribute)?.unsigned_abs())))
        };
        if !aligned(address, ALIGN.0)? || !aligned(pitch, ALIGN.1)? || process()?.memory.find(address).is_none() {
            return Err(Code::INVALID_VALUE);
        }
        self.change(|state| {
            let [width, height] = size;
            state.format = (format, channels);
            state.resource = Some(Resource::Pitched { address, format, channels, width, height, pitch });
            Ok(())
        })
    }
}

/// A texture reference that belongs to no module.
///
/// # Errors
/// There is no context, or there are too many.
pub fn create() -> Result<u64> {
    context::current()?;
    let new = Reference::new(Kind::Texture, None, declared(&Sampler::default()));
    process()?.references.add(new).ok_or(Code::OUT_OF_MEMORY)
}

/// Ends a texture reference that belongs to no module.
///
/// # Errors
/// There is none.
pub fn destroy(handle: u64) -> Result {
    if by_handle(handle, Kind::Texture)?.variable.is_some() {
        return Err(Code::INVALID_VALUE);
    }
    process()?.references.remove(handle).map(drop).ok_or(Code::INVALID_VALUE)
}

/// A reference by its handle.
///
/// # Errors
/// There is none of that kind.
pub fn by_handle(handle: u64, kind: Kind) -> Result<Arc<Reference>> {
    process()?.references.get(handle).filter(|r| r.kind == kind).ok_or(Code::INVALID_VALUE)
}
