//! Textures and surfaces: fetches and places of surfaces for all lanes at once where one object is named, else lane by lane. The rules are the interpreter's.

use handloom_interp::image::{Objects, Refused};
use handloom_ir::num::image::{self, Flat, Kind, Row};
use handloom_ir::simt::{Fetch, ImageOp, OutOfRange, Surface};
use handloom_ir::types::Ty;
use handloom_plan::abi::Loc;

use super::Call;
use super::memory::lanes;
#[cfg(target_arch = "x86_64")]
use super::texels;
use crate::warp::context::{Ctx, predicate};
use crate::warp::host::CtaHost;

/// Most sources of an op.
const MAX_SOURCES: usize = 24;
/// Most coordinates of a surface.
const MAX_COORDINATES: usize = 4;

/// Does the op for each lane of the call. Gives 1, or 0 after recording a trap.
pub(super) fn image(c: &mut Call<'_>, op: ImageOp) -> u64 {
    let site = &c.tables.mems[c.site];
    if matches!(op, ImageOp::Store { .. }) {
        c.touched();
    }
    if let ImageOp::Fetch(f) = op
        && c.host.machine.has_row_loops()
    {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the record of a device says nothing that was not detected, and so the host has the features that the function asks for.
        if unsafe { fetch_row(c, f) } {
            return 1;
        }
    }
    if let ImageOp::Place(at) = op
        && place_row(c, at)
    {
        return 1;
    }
    let types = op.results();
    let n = site.src.len() + 1;
    let mut objects = Objects::default();
    let mut refused: Option<(u32, Refused)> = None;
    let mut src = [0; MAX_SOURCES];
    for lane in lanes(c.mask) {
        src[0] = c.ctx.read(site.addr, lane);
        src[1..n].iter_mut().zip(&site.src).for_each(|(to, from)| *to = c.ctx.read(*from, lane));
        match objects.step(op, &src[..n], &mut c.host.memory) {
            Ok(values) => {
                for ((d, ty), value) in site.dst.iter().zip(types).zip(values) {
                    if *ty == Ty::P {
                        c.ctx.write_pred(*d, lane, value != 0);
                    } else {
                        c.ctx.write(*d, lane, value);
                    }
                }
            }
            Err(why) => match &mut refused {
                None => refused = Some((1 << lane, why)),
                Some((lanes, first)) if first.kind == why.kind => *lanes |= 1 << lane,
                Some(_) => {}
            },
        }
    }
    let Some((lanes, why)) = refused else { return 1 };
    let mut trap = c.host.trap_of(why.kind, site.span, c.warp(), lanes);
    why.tell(&mut trap);
    c.host.trap = Some(trap);
    0
}

/// Whether all lanes of a mask have a value.
fn is_same(ctx: Ctx, loc: Loc, mask: u32, value: u64) -> bool {
    if matches!(loc, Loc::Imm(_) | Loc::Scalar(_)) {
        return true;
    }
    let mut row = [value; 32];
    ctx.read_row(loc, mask, &mut row);
    (0..32).fold(0, |other, l| other | (row[l] ^ value) & u64::from(mask >> l & 1).wrapping_neg()) == 0
}

/// Finds the places in a surface that all lanes name, unless one of them is to trap.
fn place_row(c: &mut Call<'_>, at: Surface) -> bool {
    let site = &c.tables.mems[c.site];
    let Some(first) = lanes(c.mask).next() else { return false };
    let handle = c.ctx.read(site.addr, first);
    if !is_same(c.ctx, site.addr, c.mask, handle) {
        return false;
    }
    let CtaHost { images, memory, .. } = &mut *c.host;
    let Ok(surface) = images.find(handle, Kind::Surface, memory) else { return false };
    let mut coordinates = [[0; 32]; MAX_COORDINATES];
    for (row, loc) in coordinates.iter_mut().zip(&site.src) {
        *row = super::fast::row(c.ctx, *loc);
    }
    let (mut addresses, mut inside) = ([0; 32], [0; 32]);
    for lane in lanes(c.mask) {
        let of_lane: [u32; MAX_COORDINATES] = std::array::from_fn(|i| coordinates[i][lane]);
        let found = image::place(surface, at, &of_lane[..site.src.len()]);
        if !found.is_inside && at.outside == OutOfRange::Trap {
            return false;
        }
        (addresses[lane], inside[lane]) = (found.address, predicate(found.is_inside));
    }
    let signed = [predicate(surface.image.channel.is_signed()); 32];
    for (d, row) in site.dst.iter().zip([addresses, inside, signed]) {
        c.ctx.write_row(*d, c.mask, &row);
    }
    true
}

/// Does a fetch for all lanes at once, if it is one of those that are done so.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,lzcnt,popcnt")]
fn fetch_row(c: &mut Call<'_>, f: Fetch) -> bool {
    let site = &c.tables.mems[c.site];
    let Some(first) = lanes(c.mask).next() else { return false };
    let n_handles = usize::from(f.has_sampler);
    let [n_coordinates, ..] = f.words();
    let mut handles = [c.ctx.read(site.addr, first), 0];
    let same = |loc, handle| is_same(c.ctx, loc, c.mask, handle);
    if f.has_sampler {
        handles[1] = c.ctx.read(site.src[0], first);
    }
    if n_coordinates > 3 || !same(site.addr, handles[0]) || f.has_sampler && !same(site.src[0], handles[1]) {
        return false;
    }
    let CtaHost { images, memory, machine, .. } = &mut *c.host;
    let own = if f.has_sampler { images.find(handles[1], Kind::Sampler, memory).ok().copied() } else { None };
    let Ok(texture) = images.find(handles[0], Kind::Texture, memory) else { return false };
    if f.has_sampler && own.is_none() {
        return false;
    }
    let sampler = own.map_or(texture.sampler, |o| o.sampler);
    let Some(flat) = Flat::new(texture, &sampler, f) else { return false };
    let of_coordinates = &site.src[n_handles..][..n_coordinates];
    let is_texels = texels::is_here(machine, &flat);
    let (mut from, mut to) = ([None; 3], [None; 4]);
    from.iter_mut().zip(of_coordinates).for_each(|(from, loc)| *from = super::fast::place_of_row(c.ctx, *loc));
    to.iter_mut().zip(&site.dst).for_each(|(to, loc)| *to = super::fast::place_of_row(c.ctx, *loc));
    if is_texels
        && c.mask == u32::MAX
        && let [Some(a), Some(b), Some(g), Some(r)] = to
        && from[..n_coordinates].iter().all(Option::is_some)
    {
        let from = from.map(|row| row.unwrap_or(std::ptr::null_mut()).cast_const().cast());
        // SAFETY: the host has the features, and the texture was found readable; the places are rows of the context, on which no code runs now.
        unsafe { texels::fetch(&flat, &from, c.mask, &[a, b, g, r].map(<*mut u32>::cast)) };
        return true;
    }
    let mut coordinates: [Row; 3] = [[0; 32]; 3];
    for (row, loc) in coordinates.iter_mut().zip(of_coordinates) {
        *row = super::fast::row(c.ctx, *loc);
    }
    let mut rows: [Row; 4] = [[0; 32]; 4];
    if is_texels {
        let (from, to) = (coordinates.each_ref().map(std::ptr::from_ref), rows.each_mut().map(std::ptr::from_mut));
        // SAFETY: the host has the features, and the texture was found readable.
        unsafe { texels::fetch(&flat, &from, c.mask, &to) };
    } else {
        match handloom_interp::image::fetch_row(&flat, &coordinates[..n_coordinates], c.mask, memory) {
            Some(found) => rows = found,
            None => return false,
        }
    }
    for (d, row) in site.dst.iter().zip(&rows) {
        super::fast::put_row(c.ctx, c.mask, *d, *row);
    }
    true
}
