//! Textures and surfaces, lane by lane. The rules are the interpreter's.

use handloom_interp::image::{Objects, Refused};
use handloom_ir::simt::ImageOp;
use handloom_ir::types::Ty;

use super::Call;
use super::memory::lanes;

/// Most sources of an op.
const MAX_SOURCES: usize = 24;

/// Does the op for each lane of the call. Gives 1, or 0 after recording a trap.
pub(super) fn image(c: &mut Call<'_>, op: ImageOp) -> u64 {
    let site = &c.tables.mems[c.site];
    if matches!(op, ImageOp::Store { .. }) {
        c.touched();
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
