//! Copies and fills, between any two places: memory of devices, pinned memory, which is of the same kind, and other memory of the process.

use std::sync::Arc;
use std::time::Instant;

use handloom_runtime::{Check, MemoryError, Rows, StreamError, Touched, Word};

use crate::caller::Caller;
use crate::checked;
use crate::code::{Code, Result};
use crate::context::Ctx;
use crate::gpu::Gpu;
use crate::host::HostMemory;
use crate::memory::Use;
use crate::process::{Process, process};
use crate::stream::Stream;
use crate::work::Op;

/// Bytes that lie on the host for a moment on their way from one device to another.
const HOP: usize = 256 << 10;

/// The most bytes of other memory of the process that are set aside so that the caller may go on.
const STAGE: u64 = 64 << 20;

/// Rows in planes: where they begin, and how far apart they are, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Region {
    /// The first byte.
    pub address: u64,
    /// From a row to the next.
    pub pitch: u64,
    /// From a plane to the next.
    pub slice: u64,
}

impl Region {
    /// Bytes that follow each other.
    pub fn line(address: u64) -> Region {
        Region { address, pitch: 0, slice: 0 }
    }

    /// Bytes from the first to the last one of so many rows.
    fn extent(&self, size: Size) -> Option<u64> {
        let rows = self.pitch.checked_mul(size.height.checked_sub(1)?)?;
        let planes = self.slice.checked_mul(size.depth.checked_sub(1)?)?;
        rows.checked_add(planes)?.checked_add(size.width)
    }
}

/// How much is copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Bytes of a row.
    pub width: u64,
    /// Rows of a plane.
    pub height: u64,
    /// Planes.
    pub depth: u64,
}

impl Size {
    /// So many bytes.
    pub fn line(bytes: u64) -> Size {
        Size { width: bytes, height: 1, depth: 1 }
    }

    fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    fn bytes(&self) -> Option<u64> {
        self.width.checked_mul(self.height)?.checked_mul(self.depth)
    }
}

/// What the program says a place is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Said {
    /// Memory of a device, or other memory that a device reaches.
    Device,
    /// Memory of the process.
    Host,
    /// Whatever its address says.
    Any,
}

/// Where bytes come from or go.
#[derive(Clone)]
enum Place {
    Device(Arc<Gpu>),
    Host,
    /// They were set aside.
    Staged(Arc<Vec<u8>>),
}

/// A copy that was found to be right.
#[derive(Clone)]
pub struct Copy {
    /// Where to.
    pub to: Region,
    /// Where from.
    pub from: Region,
    /// How much.
    pub size: Size,
    to_place: Place,
    from_place: Place,
}

/// Finds out where an address lies, and whether all of a region lies there.
fn place(said: Said, region: &Region, size: Size) -> Result<Place> {
    let process = process()?;
    let bytes = region.extent(size).ok_or(Code::INVALID_VALUE)?;
    let overlaps = (size.height > 1 && region.pitch < size.width) || (size.depth > 1 && region.slice < size.width);
    if overlaps {
        return Err(Code::INVALID_VALUE);
    }
    match process.gpu_of(region.address) {
        Some(gpu) => {
            gpu.device.memory().check(region.address, bytes).map_err(|why| checked::refused("copy", &why))?;
            Ok(Place::Device(Arc::clone(gpu)))
        }
        None if region.address == 0 => Err(Code::INVALID_VALUE),
        None if said == Said::Device && !process.memory.is_registered(region.address, bytes) => {
            Err(Code::INVALID_VALUE)
        }
        None => Ok(Place::Host),
    }
}

impl Copy {
    /// Checks a copy; `None` if there is nothing to copy.
    ///
    /// # Errors
    /// A region does not lie in one allocation, or its rows overlap.
    pub fn new(to: (Said, Region), from: (Said, Region), size: Size) -> Result<Option<Copy>> {
        if size.is_empty() {
            return Ok(None);
        }
        let (to_place, from_place) = (place(to.0, &to.1, size)?, place(from.0, &from.1, size)?);
        Ok(Some(Copy { to: to.1, from: from.1, size, to_place, from_place }))
    }

    /// Whether it goes to memory of a device, and whether it comes from there.
    pub fn is_of_device(&self) -> (bool, bool) {
        (matches!(self.to_place, Place::Device(_)), matches!(self.from_place, Place::Device(_)))
    }

    /// Whether it goes from memory of a device to memory of the same one, neither of which the host can use.
    fn stays_in_device(&self) -> bool {
        let is_of_device = |address| {
            let found = process().ok().and_then(|process| process.memory.find(address));
            found.is_some_and(|a| matches!(a.kind, Use::Device | Use::Pool(_)))
        };
        self.stays() == Some(true) && is_of_device(self.to.address) && is_of_device(self.from.address)
    }

    /// Whether it touches memory of the process that no device owns.
    fn is_pageable(&self) -> bool {
        matches!(self.to_place, Place::Host) || matches!(self.from_place, Place::Host)
    }

    /// Does it now: the caller waits for what comes before.
    ///
    /// # Errors
    /// Memory was freed meanwhile.
    pub fn run(&self) -> std::result::Result<(), StreamError> {
        let Ok(process) = process() else { return Ok(()) };
        let begin = Instant::now();
        self.check_written(process);
        let done = self.run_rows(process);
        if let Err(StreamError::Memory(why)) = &done {
            checked::refused("copy", why);
        }
        if let Some(trace) = &process.trace {
            let way = match self.is_of_device() {
                (true, false) => "copy to the device",
                (false, true) => "copy from the device",
                (true, true) => "copy on the device",
                (false, false) => "copy on the host",
            };
            trace.tell("copy", way, begin, vec![("bytes", self.size.bytes().unwrap_or(0).to_string())]);
        }
        done
    }

    /// Tells a check if it takes nothing to the host but what nobody has written.
    fn check_written(&self, process: &Process) {
        let is_pinned = || process.memory.find(self.to.address).is_some_and(|a| matches!(a.kind, Use::Host(_)));
        if let Place::Device(gpu) = &self.from_place
            && process.config.checks(Check::Init)
            && (matches!(self.to_place, Place::Host) || is_pinned())
        {
            let memory = gpu.device.memory();
            if memory.is_blank(self.from.address, self.size.width) {
                let touched = self.touched();
                let from: Vec<(u64, u64)> =
                    touched.iter().filter(|t| !t.writes).map(|t| (t.address, t.bytes)).collect();
                checked::copied(memory, &from);
            }
        }
    }

    fn run_rows(&self, process: &Process) -> std::result::Result<(), StreamError> {
        let Copy { to, from, size, .. } = self;
        let dense = |r: &Region| size.height == 1 || r.pitch == size.width;
        let whole = size.depth == 1 || (to.slice == from.slice && to.slice == size.width.saturating_mul(size.height));
        if dense(to) && dense(from) && whole {
            let bytes = size.bytes().unwrap_or(0);
            return Ok(self.row(process.host, to.address, from.address, bytes)?);
        }
        let mut staged = 0;
        for z in 0..size.depth {
            for y in 0..size.height {
                let at = |r: &Region| r.address + z * r.slice + y * r.pitch;
                let from = if let Place::Staged(_) = self.from_place { staged } else { at(from) };
                self.row(process.host, at(to), from, size.width)?;
                staged += size.width;
            }
        }
        Ok(())
    }

    /// What of the memory of devices it touches, row by row.
    pub fn touched(&self) -> Vec<Touched> {
        let Copy { to, from, size, .. } = self;
        let (to_device, from_device) = self.is_of_device();
        let rows = (0..size.depth).flat_map(|z| (0..size.height).map(move |y| (z, y)));
        let at = |r: &Region, (z, y): (u64, u64)| r.address + z * r.slice + y * r.pitch;
        let caller = Caller::now();
        let (reads, writes) = (caller.touches("read", "copy"), caller.touches("write", "copy"));
        let sides = [(from, false, from_device, &reads), (to, true, to_device, &writes)];
        let sides = sides.into_iter().filter(|side| side.2);
        rows.flat_map(|row| {
            let one = move |(region, writes, _, by)| Touched::by_call(at(region, row), size.width, writes, by);
            sides.clone().map(one)
        })
        .collect()
    }

    fn row(&self, host: &dyn HostMemory, to: u64, from: u64, bytes: u64) -> std::result::Result<(), MemoryError> {
        let n = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut done = Ok(());
        match (&self.to_place, &self.from_place) {
            (Place::Device(a), Place::Device(b)) if Arc::ptr_eq(a, b) => done = a.device.memory().copy(to, from, bytes),
            (Place::Device(a), Place::Device(b)) => {
                let mut hop = vec![0; HOP.min(n)];
                let mut at = 0;
                while at < bytes {
                    let part = usize::try_from(bytes - at).unwrap_or(HOP).min(HOP);
                    b.device.memory().read(from + at, &mut hop[..part])?;
                    a.device.memory().write(to + at, &hop[..part])?;
                    at += part as u64;
                }
            }
            (Place::Device(a), Place::Host) => host.read(from, n, &mut |b| done = a.device.memory().write(to, b)),
            (Place::Host, Place::Device(a)) => host.write(to, n, &mut |b| done = a.device.memory().read(from, b)),
            (Place::Host, Place::Host) => {
                let mut bytes = Vec::new();
                host.read(from, n, &mut |b| bytes.extend_from_slice(b));
                host.write(to, n, &mut |b| b.copy_from_slice(&bytes));
            }
            (to_place, Place::Staged(all)) => {
                // Staged bytes follow each other, so their address is a number of them.
                let start = if all.len() == n { 0 } else { usize::try_from(from).unwrap_or(0) };
                let part = all.get(start..start + n).unwrap_or_default();
                match to_place {
                    Place::Device(a) => done = a.device.memory().write(to, part),
                    Place::Host => host.write(to, n, &mut |b| b.copy_from_slice(part)),
                    Place::Staged(_) => {}
                }
            }
            (Place::Staged(_), _) => {}
        }
        done
    }

    /// Sets aside what is read from memory of the process, so that the program may change it.
    fn stage(&self) -> Copy {
        let Ok(process) = process() else { return self.clone() };
        let Size { width, height, depth } = self.size;
        let mut all = Vec::with_capacity(usize::try_from(self.size.bytes().unwrap_or(0)).unwrap_or(0));
        let n = usize::try_from(width).unwrap_or(0);
        for z in 0..depth {
            for y in 0..height {
                let at = self.from.address + z * self.from.slice + y * self.from.pitch;
                process.host.read(at, n, &mut |b| all.extend_from_slice(b));
            }
        }
        let from = Region { address: 0, pitch: width, slice: width * height };
        Copy { from, from_place: Place::Staged(Arc::new(all)), ..self.clone() }
    }

    /// Whether it touches memory of a device.
    fn touches(&self, gpu: &Arc<Gpu>) -> bool {
        [&self.to_place, &self.from_place].iter().any(|place| matches!(place, Place::Device(a) if Arc::ptr_eq(a, gpu)))
    }

    /// Whether it goes from memory of a device to that of the same one; `None` if one end of it is not of a device.
    fn stays(&self) -> Option<bool> {
        match (&self.to_place, &self.from_place) {
            (Place::Device(a), Place::Device(b)) => Some(Arc::ptr_eq(a, b)),
            _ => None,
        }
    }

    /// Waits for all that a context's device and those that it touches have to do, in whatever stream, if it touches another one: then it comes behind all of that.
    fn wait_for_devices(&self, ctx: &Ctx) -> Result {
        let (to_device, from_device) = self.is_of_device();
        let is_of_own = self.touches(&ctx.gpu);
        if !to_device && !from_device || is_of_own && self.stays() != Some(false) {
            return Ok(());
        }
        let is_meant = |other: &Ctx| Arc::ptr_eq(&other.gpu, &ctx.gpu) || self.touches(&other.gpu);
        process()?
            .contexts
            .all()
            .iter()
            .filter(|(_, other)| is_meant(other))
            .try_for_each(|(_, other)| other.synchronize())
    }

    /// Copies in the order of a stream, and waits.
    ///
    /// # Errors
    /// The context failed, or memory was freed meanwhile.
    pub fn now(&self, ctx: &Ctx, stream: &Arc<Stream>) -> Result {
        stream.refuse_capture()?;
        if stream.is_legacy() {
            crate::capture::refuse_implicit(ctx)?;
        }
        self.wait_for_devices(ctx)?;
        if self.stays_in_device() && !ctx.rt.touched(|| self.touched()).is_empty() {
            // The host does not wait for such copies (API synchronization behavior). It makes no difference but to who looks at the order of work.
            return crate::stream::submit(ctx, stream, Op::Copy(self.clone()));
        }
        ctx.result(ctx.while_waiting(|| stream.rt().synchronize()))?;
        ctx.rt.touches(|| self.touched());
        self.run().map_err(|e| Code::from(&e))
    }

    /// Copies in the order of a stream; from device to device in the default stream as [`now`](Self::now), since that comes behind all work of both. Memory of
    /// the process that is not pinned may be used again after the call, as on a GPU: what is read is set aside, and what is written is waited for.
    ///
    /// # Errors
    /// As [`now`](Self::now).
    pub fn later(&self, ctx: &Ctx, stream: &Arc<Stream>) -> Result {
        if stream.is_legacy() && !stream.is_capturing() && self.stays() == Some(false) {
            return self.now(ctx, stream);
        }
        if stream.is_capturing() || !self.is_pageable() {
            return crate::stream::submit(ctx, stream, Op::Copy(self.clone()));
        }
        let is_small = self.size.bytes().is_some_and(|n| n <= STAGE);
        if is_small && matches!((&self.to_place, &self.from_place), (Place::Device(_), Place::Host)) {
            return crate::stream::submit(ctx, stream, Op::Copy(self.stage()));
        }
        self.now(ctx, stream)
    }
}

/// A fill that was found to be right.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// The first byte.
    pub address: u64,
    /// Bytes from a row to the next.
    pub pitch: u64,
    /// What it is filled with.
    pub word: Word,
    /// Words of a row.
    pub width: u64,
    /// Rows.
    pub height: u64,
}

impl Fill {
    /// Checks a fill; `None` if there is nothing to fill.
    ///
    /// # Errors
    /// The rows do not lie in one allocation, overlap, or are not aligned to the words.
    pub fn new(address: u64, pitch: u64, word: Word, width: u64, height: u64) -> Result<Option<Fill>> {
        if width == 0 || height == 0 {
            return Ok(None);
        }
        let bytes = match word {
            Word::B8(_) => 1,
            Word::B16(_) => 2,
            Word::B32(_) => 4,
        };
        let row = width.checked_mul(bytes).ok_or(Code::INVALID_VALUE)?;
        let all = Region { address, pitch, slice: 0 }.extent(Size { width: row, height, depth: 1 });
        let all = all.ok_or(Code::INVALID_VALUE)?;
        let is_aligned = address.is_multiple_of(bytes) && (height == 1 || pitch.is_multiple_of(bytes));
        if !is_aligned || (height > 1 && pitch < row) {
            return Err(Code::INVALID_VALUE);
        }
        let process = process()?;
        match process.gpu_of(address) {
            Some(gpu) => gpu.device.memory().check(address, all).map_err(|why| checked::refused("fill", &why))?,
            None if process.memory.is_registered(address, all) => {}
            None if process.gpus.iter().any(|gpu| gpu.device.memory().reaches(address)) => {}
            None => return Err(Code::INVALID_VALUE),
        }
        Ok(Some(Fill { address, pitch, word, width, height }))
    }

    /// What it touches, row by row.
    pub fn touched(&self) -> Vec<Touched> {
        let bytes = match self.word {
            Word::B8(_) => self.width,
            Word::B16(_) => 2 * self.width,
            Word::B32(_) => 4 * self.width,
        };
        let by = Caller::now().touches("write", "fill");
        let row = |y: u64| Touched::by_call(self.address + y * self.pitch, bytes, true, &by);
        (0..self.height).map(row).collect()
    }

    /// Does it now.
    ///
    /// # Errors
    /// Memory was freed meanwhile.
    pub fn run(&self) -> std::result::Result<(), StreamError> {
        let Ok(process) = process() else { return Ok(()) };
        let begin = Instant::now();
        let done = match process.gpu_of(self.address) {
            None => {
                self.run_on_host(process.host);
                Ok(())
            }
            Some(gpu) => {
                let rows = Rows { address: self.address, pitch: self.pitch };
                gpu.device.memory().fill_rows(rows, self.word, self.width, self.height).map_err(StreamError::from)
            }
        };
        if let Err(StreamError::Memory(why)) = &done {
            checked::refused("fill", why);
        }
        if let Some(trace) = &process.trace {
            trace.tell(
                "fill",
                "fill",
                begin,
                vec![("rows", self.height.to_string()), ("elements", self.width.to_string())],
            );
        }
        done
    }

    /// The same in memory of the process.
    fn run_on_host(&self, host: &dyn HostMemory) {
        let word: &[u8] = match &self.word {
            Word::B8(v) => &[*v],
            Word::B16(v) => &v.to_le_bytes(),
            Word::B32(v) => &v.to_le_bytes(),
        };
        let row = usize::try_from(self.width).unwrap_or(0) * word.len();
        for y in 0..self.height {
            host.write(self.address + y * self.pitch, row, &mut |to| {
                to.chunks_exact_mut(word.len()).for_each(|to| to.copy_from_slice(word));
            });
        }
    }

    /// Fills in the order of a stream.
    ///
    /// # Errors
    /// The context failed.
    pub fn later(&self, ctx: &Ctx, stream: &Arc<Stream>) -> Result {
        crate::stream::submit(ctx, stream, Op::Fill(*self))
    }
}
