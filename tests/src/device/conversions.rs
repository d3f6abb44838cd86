//! Questions about `cvt`: each form that the chip takes, on the sources of `tests/cvt_results.rs`.

use std::sync::{Arc, OnceLock};

use handloom_check::check_text;
use handloom_diag::{FileId, Severity};

use super::digest::{Nans, digest};
use super::{BLOCK, HEADER, Part, plain_launch};
use crate::convert::bulk::{Shape, Step, entry, groups, steps};
use crate::convert::forms::{Elem, F32, F64, Form, Round, all};
use crate::convert::inputs;
use crate::engines::{Argument, Job};
use crate::rng::Rng;

/// Forms of a kernel.
const TOGETHER: usize = 16;

/// What the kernels of `convert::bulk` begin with: they are for a chip that has all forms.
const THEIR_HEADER: &str = ".version 9.2\n.target sm_100a\n.address_size 64\n";

/// Forms with the same sources.
#[derive(Clone, Debug)]
pub struct Conversions {
    /// Forms, and whether their registers have 64 bits.
    forms: Vec<(Form, bool)>,
    sources: Arc<OnceLock<Sources>>,
}

/// Sources of some forms, made when they are first asked for.
#[derive(Debug)]
struct Sources {
    buffers: Vec<Vec<u8>>,
    digest: u64,
}

fn text_of(some: &[Step<'_>], rows: usize) -> String {
    entry(some, Shape::Whole, rows).replace(THEIR_HEADER, HEADER)
}

/// Whether NVIDIA's translator (of driver 580) fails in it: a wider destination than that of a directed `cvt.ftz.f32.f64` has, which the manual
/// allows (*Operand Size Exceeding Instruction-Type Size*).
fn fails_there(s: &Step<'_>) -> bool {
    let f = s.form;
    s.wide && f.ftz && f.to == F32 && f.from == F64 && f.round != Some(Round::Nearest)
}

/// All forms that the chip takes.
pub fn conversions() -> Vec<Conversions> {
    let is_known = |s: &Step<'_>| {
        let told = check_text(&text_of(&[*s], BLOCK), FileId(0)).diagnostics;
        told.iter().all(|d| d.severity != Severity::Error)
    };
    let forms = all();
    let one = |group: Vec<&Form>| {
        let known = group.iter().flat_map(|f| steps(f)).filter(|s| is_known(s) && !fails_there(s));
        let known: Vec<(Form, bool)> = known.map(|s| (s.form.clone(), s.wide)).collect();
        let sources = Arc::default();
        let together = |some: &[(Form, bool)]| Conversions { forms: some.to_vec(), sources: Arc::clone(&sources) };
        known.chunks(TOGETHER).map(together).collect::<Vec<_>>()
    };
    groups(&forms).into_iter().flat_map(one).collect()
}

impl Conversions {
    fn steps(&self) -> Vec<Step<'_>> {
        self.forms.iter().map(|(form, wide)| Step { form, wide: *wide }).collect()
    }

    /// The sources, as many rows of them as fill whole blocks, with garbage above single elements.
    fn make_sources(&self) -> Sources {
        let form = &self.forms[0].0;
        let lists = inputs::sources(form, inputs::ORDINARY, &mut Rng::new(4));
        let rows = lists[0].len().next_multiple_of(BLOCK);
        let bits = form.from.step();
        let one = |(k, list): (usize, &Vec<u64>)| {
            let garbage = if k > 0 || form.packed || bits >= 64 { 0 } else { 0x5aa5_c33c_9669_f00f_u64 << bits };
            (0..rows).flat_map(|i| (list[i.min(list.len() - 1)] ^ garbage).to_le_bytes()).collect()
        };
        let buffers: Vec<Vec<u8>> = lists.iter().enumerate().map(one).collect();
        Sources { digest: digest(&buffers.concat()), buffers }
    }

    /// What the first of its forms is called.
    pub fn name(&self) -> String {
        format!("cvt {}", self.steps()[0].name())
    }

    /// Does something with its job and its parts.
    pub fn with<T>(&self, name: &str, work: impl FnOnce(&Job<'_>, &[Part]) -> T) -> T {
        let sources = self.sources.get_or_init(|| self.make_sources());
        let mut buffers = sources.buffers.clone();
        let (out, slots) = (buffers.len(), buffers[0].len());
        let text = text_of(&self.steps(), slots / 8);
        let part = |(k, step): (usize, &Step<'_>)| Part {
            name: format!("cvt {}", step.name()),
            key: digest(format!("{} {}", sources.digest, step.name()).as_bytes()),
            pieces: vec![(out, k * slots..(k + 1) * slots)],
            nans: match step.form.to {
                Elem::Float(word, _) => Nans::of_word(word),
                Elem::Int(..) | Elem::Ue8m0 | Elem::S2f6 => Nans::None,
            },
            is_its_nan: false,
        };
        let parts: Vec<Part> = self.steps().iter().enumerate().map(part).collect();
        // Slots are not written in full.
        buffers.push(vec![0; parts.len() * slots]);
        let args = (0..=out).map(|i| Argument::Buffer(i, 0)).collect();
        let launches = vec![plain_launch("convert", slots / 8 / BLOCK, args)];
        work(&Job { name, text: &text, buffers, addresses: vec![], launches, variables: vec![] }, &parts)
    }
}
