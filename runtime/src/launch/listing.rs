//! What an entry becomes for a launch, stage by stage, as text.

use std::panic::{AssertUnwindSafe, catch_unwind};

use handloom_codegen::{Failure, Stage};
use handloom_diag::Span;
use handloom_ir::simt::text::{self, Line};

use super::{LaunchConfig, LaunchError};
use crate::error::panic_text;
use crate::module::{Function, Key, ModuleInner, Specialised};
use crate::run::Tier;
use crate::trap::cuda_line;

/// The functions that a launch of an entry may run, and what each tier makes of them. Nothing of it is kept or run.
#[derive(Debug)]
pub struct Listing<'m> {
    module: &'m ModuleInner,
    key: Key,
    source: Specialised,
}

impl Function {
    /// What the entry becomes for a launch.
    ///
    /// # Errors
    /// There is no code, or a fault of ours: [`LaunchError::Failed`].
    pub fn listing(&self, config: &LaunchConfig) -> Result<Listing<'_>, LaunchError> {
        let module = &*self.module.inner;
        let key = self.key(config);
        let outline = module.outline(&key);
        let source = Specialised::make(&module.ir, &key, &outline);
        let better = source.better(&module.ir, &key, &outline, Tier::Quick);
        let source = better.unwrap_or(source);
        Ok(Listing { module, key, source })
    }
}

impl Listing<'_> {
    /// The tier that a launch runs first.
    pub fn first_tier(&self) -> Tier {
        self.source.first_tier(&self.key)
    }

    /// The SIMT IR that code of every tier is made from, with the PTX line over what was made of it.
    pub fn ir(&self) -> String {
        let sources = &self.module.sources;
        let line = |span: Span| {
            if span == Span::NONE {
                return None;
            }
            let text = sources.slice(span).split_whitespace().collect::<Vec<_>>().join(" ");
            Some(format!("{}: {text}", sources.position(span.file, span.start).line))
        };
        let texts: Vec<String> = self.source.functions().map(|f| text::print_function_with(f, line)).collect();
        texts.join("\n")
    }

    /// The lines of the SIMT IR, each with the statement that it was made from: of all functions, one after another.
    pub fn ir_lines(&self) -> Vec<Line> {
        self.source.functions().flat_map(text::function_lines).collect()
    }

    /// A stage of the code of a tier.
    ///
    /// # Errors
    /// There is no code, or a fault of ours: [`LaunchError::Failed`].
    pub fn code(&self, tier: Tier, stage: Stage) -> Result<String, LaunchError> {
        let texts: Vec<String> = self.lines(tier, stage)?.iter().map(|f| text::joined(f)).collect();
        Ok(texts.join("\n"))
    }

    /// The lines of a stage of the code of a tier, each with the statement that it was made from: of each function that the entry may run, itself first.
    ///
    /// # Errors
    /// There is no code, or a fault of ours: [`LaunchError::Failed`].
    pub fn lines(&self, tier: Tier, stage: Stage) -> Result<Vec<Vec<Line>>, LaunchError> {
        let made = catch_unwind(AssertUnwindSafe(|| self.source.lines(&self.key, tier, stage)));
        Ok(made.unwrap_or_else(|p| Err(Failure::Bug(format!("codegen: {}", panic_text(p.as_ref())))))?)
    }

    /// The line of the source that a `.loc` names for a statement: the file and the line.
    pub fn source_line(&self, statement: Span) -> Option<(String, u32)> {
        cuda_line(&self.module.ir, statement)
    }
}
