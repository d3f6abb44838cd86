//! Initialisers of textures, samplers and surfaces: members by name.
//!
//! # PTX ISA
//! Texture Sampler and Surface Types: Texture and Surface Properties, Sampler Properties.

use handloom_diag::{Code, Diagnostic};
use handloom_ir::num::image::{AddressMode, BYTES, Filter, Kind, Object};
use handloom_syntax::ast::{self, ExprKind};

use crate::consts::{Const, eval};
use crate::context::{Cx, Told};
use crate::layout::Extent;

const SECTION: &str = "Texture Sampler and Surface Types";

/// Initial bytes of a variable: its record, with what the initialiser says.
pub(crate) fn record<'a>(cx: &mut Cx<'a>, kind: Kind, var: &'a ast::Var<'a>, shape: &Extent) -> Result<Vec<u8>, Told> {
    let mut object = Object::unbound(kind);
    match &var.init {
        None => {}
        Some(ast::Init::Members(members, _)) => {
            let mut failed = false;
            for m in members {
                if let Err(d) = set(&mut object, m) {
                    cx.push(d.section(SECTION));
                    failed = true;
                }
            }
            if failed {
                return Err(Told);
            }
        }
        Some(ast::Init::List(_, span)) => {
            let d =
                Diagnostic::error(Code::Layout, *span, format!("a `.{}` is initialised by its members", kind.word()));
            return Err(cx.push(d.help("as `{ filter_mode = nearest }`").section(SECTION)));
        }
        Some(ast::Init::Value(e)) => {
            let d =
                Diagnostic::error(Code::Layout, e.span, format!("a `.{}` is initialised by its members", kind.word()));
            return Err(cx.push(d.help("as `{ filter_mode = nearest }`").section(SECTION)));
        }
    }
    let n = usize::try_from(shape.size / u64::from(BYTES)).unwrap_or(0);
    Ok(object.encode().repeat(n))
}

/// Sets one member.
fn set(object: &mut Object, m: &ast::Member<'_>) -> Result<(), Box<Diagnostic>> {
    let wrong = |message: String| Box::new(Diagnostic::error(Code::Layout, m.value.span, message));
    let number = || match eval(&m.value) {
        Ok(Const::Int { value, .. }) => {
            u32::try_from(value).map_err(|_| wrong(format!("`{}` has 32 bits", m.name.text)))
        }
        Ok(_) => Err(wrong(format!("`{}` is an integer", m.name.text))),
        Err(d) => Err(d),
    };
    let (image, sampler) = (&mut object.image, &mut object.sampler);
    let of_image = object.kind != Kind::Sampler;
    let of_sampler = object.kind != Kind::Surface;
    match m.name.text {
        "width" if of_image => image.size[0] = number()?,
        "height" if of_image => image.size[1] = number()?,
        "depth" if of_image => image.size[2] = number()?,
        "array_size" if of_image => image.layers = number()?,
        // They are what is bound; the values of other languages mean nothing here.
        "channel_data_type" | "channel_order" | "memory_layout" if of_image => {
            number()?;
        }
        "num_mipmap_levels" | "num_samples" if object.kind == Kind::Texture => {
            number()?;
        }
        "normalized_coords" if object.kind == Kind::Texture => sampler.is_normalized = number()? != 0,
        "force_unnormalized_coords" if object.kind == Kind::Sampler => sampler.forces_texels = number()? != 0,
        "filter_mode" if of_sampler => {
            sampler.filter = word(m, &Filter::ALL, Filter::word)?;
        }
        name @ ("addr_mode_0" | "addr_mode_1" | "addr_mode_2") if of_sampler => {
            let dimension = usize::from(name.as_bytes()[name.len() - 1] - b'0');
            sampler.address[dimension] = word(m, &AddressMode::ALL, AddressMode::word)?;
        }
        other => {
            let message = format!("a `.{}` has no member `{other}`", object.kind.word());
            return Err(Box::new(Diagnostic::error(Code::Layout, m.name.span, message)));
        }
    }
    Ok(())
}

/// The value that a word names.
fn word<T: Copy>(m: &ast::Member<'_>, all: &[T], name: fn(T) -> &'static str) -> Result<T, Box<Diagnostic>> {
    let found = match &m.value.kind {
        ExprKind::Name(text) => all.iter().copied().find(|v| name(*v) == *text),
        _ => None,
    };
    found.ok_or_else(|| {
        let words: Vec<String> = all.iter().map(|v| format!("`{}`", name(*v))).collect();
        let message = format!("`{}` is one of {}", m.name.text, words.join(", "));
        Box::new(Diagnostic::error(Code::Layout, m.value.span, message))
    })
}
