//! Programs of an entry in which parameters are constants: loops around barriers whose turns they count are written out there, as if the numbers stood in the text.
//!
//! Better code tells which parameters those are. A program that launches with the same numbers run for long enough is made for these, beside them, and
//! blocks of launches with them start in it from then on.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use handloom_codegen::Failure;
use handloom_ir::simt::{ParamPlace, ParamValue};

use super::ModuleInner;
use super::pace::ThreadTime;
use super::program::{Key, Origin, Program, Specialised};
use super::task::{self, Left, Patience, Place, Task};
use crate::lock::lock;
use crate::run::Tier;

/// Programs for certain numbers that an entry has, at most. Who launches it with more of them has no numbers that stay.
const MOST: usize = 4;

/// The programs of an entry for certain numbers.
#[derive(Debug, Default)]
pub(super) struct Specials {
    places: OnceLock<Vec<ParamPlace>>,
    made: Mutex<Vec<Arc<Special>>>,
}

/// A program for certain numbers.
#[derive(Debug)]
pub(crate) struct Special {
    values: Vec<ParamValue>,
    /// `None` where nothing is gained.
    program: Task<Option<Arc<Program>>>,
    /// How long threads ran with these numbers in code that does not know them.
    time: ThreadTime,
}

impl Specials {
    /// Says which parameters are worth to be constants.
    pub(super) fn know(&self, places: Vec<ParamPlace>) {
        // Who says it again says the same.
        _ = self.places.set(places);
    }

    /// Bytes of machine code.
    pub(super) fn code_bytes(&self) -> usize {
        lock(&self.made).iter().filter_map(|s| s.program()).map(|p| p.code_bytes()).sum()
    }
}

impl Program {
    /// The parameters that are worth to be constants, as far as known.
    #[inline]
    pub(crate) fn places(&self) -> &[ParamPlace] {
        self.specials.places.get().map_or(&[], Vec::as_slice)
    }

    /// The program for the numbers that places hold, which may have to be made yet; `None` if there are too many of those.
    pub(crate) fn special(&self, module: &ModuleInner, value: impl Fn(ParamPlace) -> u64) -> Option<Arc<Special>> {
        let mut made = lock(&self.specials.made);
        if let Some(special) = made.iter().find(|s| s.is_of(&value)) {
            return Some(Arc::clone(special));
        }
        if made.len() == MOST {
            return None;
        }
        let values: Vec<ParamValue> =
            self.places().iter().map(|place| ParamValue { place: *place, value: value(*place) }).collect();
        // What another process kept is there at once.
        let loaded = if self.is_loaded {
            let (key, outline) = self.knowing(&values);
            Program::load(&module.device.inner.code, &key, &Arc::new(outline))
        } else {
            None
        };
        let program = loaded.map_or_else(Task::default, |p| Task::done(Some(Arc::new(p))));
        let special = Arc::new(Special { values, program, time: ThreadTime::default() });
        made.push(Arc::clone(&special));
        Some(special)
    }

    /// Makes a program for certain numbers, or finds it on disk.
    fn make_special(&self, origin: &Origin, values: &[ParamValue]) -> Result<Option<Program>, Failure> {
        let start = Instant::now();
        let (key, outline) = self.knowing(values);
        let outline = Arc::new(outline);
        if let Some(program) = Program::load(&origin.cache, &key, &outline) {
            return Ok(Some(program));
        }
        let source = Specialised::make(&origin.ir, &key, &outline);
        let Some(better) = source.better(&origin.ir, &key, &outline, Tier::Quick) else { return Ok(None) };
        let sources = (source, Some(better));
        let made =
            Program::compile(&origin.cache, (&key, &outline), sources, (Tier::Quick, start), &|| true).transpose()?;
        // Another generator would gain nothing.
        Ok(made.filter(Program::made_by_wide))
    }

    fn knowing(&self, values: &[ParamValue]) -> (Key, super::Outline) {
        (Key { known: values.to_vec(), ..self.key.clone() }, self.outline.knowing(values))
    }
}

impl Special {
    /// Whether it is for the numbers at these places.
    #[inline]
    pub(crate) fn is_of(&self, value: impl Fn(ParamPlace) -> u64) -> bool {
        self.values.iter().all(|known| known.value == value(known.place))
    }

    /// Whether it is known whether something is gained.
    pub(crate) fn is_settled(&self) -> bool {
        self.program.get().is_some()
    }

    /// The program, if it was made and something is gained.
    pub(crate) fn program(&self) -> Option<&Arc<Program>> {
        self.program.get()?.ok()?.as_ref()
    }

    /// Notes that so many workers ran a launch with its numbers for so long in code that does not know them, and lets it be made if that is long with those before.
    pub(crate) fn note(self: &Arc<Self>, general: &Arc<Program>, module: &ModuleInner, time: Duration, workers: usize) {
        if self.is_settled() {
            return;
        }
        if general.is_long(self.time.add(time, workers)) {
            self.start(general, module, Place::Aside);
        }
    }

    /// Makes it, or waits for who makes it.
    pub(crate) fn obtain(
        self: &Arc<Self>,
        general: &Arc<Program>,
        module: &ModuleInner,
        patience: Patience<'_>,
    ) -> Result<(), Left> {
        task::obtain(&self.program, patience, || self.start(general, module, Place::Here))
    }

    fn start(self: &Arc<Self>, general: &Arc<Program>, module: &ModuleInner, place: Place) {
        let owner = (Arc::clone(self), Arc::clone(general), module.origin());
        task::start(
            &owner,
            |(special, ..)| &special.program,
            place,
            |(special, general, origin), _| {
                let made = general.make_special(origin, &special.values);
                if let Ok(Some(program)) = &made {
                    general.note_bytes(&origin.cache, program.code_bytes());
                }
                Some(made.map(|made| made.map(Arc::new)))
            },
        );
    }
}
