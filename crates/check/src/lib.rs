//! Names, forms, operand types, target gates, layout.
//!
//! Takes: [`ast::Module`] and its text. Gives: [`Checked`], a [`CheckedModule`] if no error is left, and all diagnostics by place.
//! Does not know: how anything is executed.
//!
//! Invariants: a module with an error has no `CheckedModule`; each error is told once, and a bad declaration is not blamed
//! on its uses; a name is used after its declaration (labels excepted).
//!
//! How to read it: [`check`] here walks the module; `func`, `body` and `inst` go down to one instruction; `forms` finds its
//! record, `operands`, `address` and `call` check what it is given, by the tables of `fit`, with what `scope` holds; `blame` says what is wrong. `globals`, `layout`, `init`, `params`
//! are the declarations, `consts` the constant expressions, `link` joins modules.

#![forbid(unsafe_code)]

mod address;
mod blame;
mod body;
mod call;
pub mod consts;
mod context;
mod elsewhere;
pub mod fit;
mod forms;
mod func;
mod gates;
mod globals;
mod header;
mod init;
mod inst;
mod layout;
mod library;
mod link;
pub mod module;
mod names;
mod opaque;
mod operands;
mod params;
mod report;
mod scope;
mod special;
mod suggest;
mod syntax_faults;
mod video;
mod words;

use handloom_diag::hash::{FastMap, FastSet};
use handloom_diag::{Code, Diagnostic, FileId, Span};
use handloom_isa::target::{NEWEST, Suffix, Target, Version};
use handloom_syntax::ast;

pub use link::{link, link_to_run};
pub use module::CheckedModule;

use context::Cx;

/// How many undeclared names of a module are looked up for what may have been meant.
const SUGGESTIONS: u32 = 64;

/// What a check returns.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The module; `None` if there is any error.
    pub module: Option<CheckedModule>,
    /// Errors and warnings, by place.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses and checks a text. Its syntax errors are among the diagnostics, and names that may have been declared in what could
/// not be read are not called undeclared.
pub fn check_text(text: &str, file: FileId) -> Checked {
    let parse = handloom_syntax::parse(text, file);
    let text = text.strip_suffix('\0').unwrap_or(text);
    let mut checked = check(&parse.module, text, file);
    if !parse.errors.is_empty() {
        checked.module = None;
        let mut errors = parse.errors;
        for d in &mut errors {
            d.function = function_around(&parse.module, d.span()).map(str::to_owned);
        }
        syntax_faults::merge(text, errors, &mut checked.diagnostics);
    }
    checked
}

/// Name of the function that is not an entry and whose body a place lies in, as far as items tell: after its header and before the next one.
fn function_around<'a>(module: &ast::Module<'a>, place: Span) -> Option<&'a str> {
    // Items are in the order of the text.
    let behind = module.items.partition_point(|i| header::span_of(i).start <= place.start);
    match module.items.get(behind.checked_sub(1)?)? {
        ast::Item::Function(f) if !f.is_entry && f.body.is_some() => Some(f.name.text),
        _ => None,
    }
}

/// What a module declares, also where it has errors: for listings, never to be run.
#[derive(Clone, Debug)]
pub struct Outline {
    /// `.version`.
    pub version: Version,
    /// `.target`, as it is written: `sm_90a`.
    pub target: String,
    /// `.address_size`: 32 or 64.
    pub address_size: u8,
    /// Variables and functions as far as their declarations can be read.
    pub symbols: Vec<module::Symbol>,
}

/// Says what a module declares. `text` is what it was parsed from.
pub fn outline(module: &ast::Module<'_>, text: &str, file: FileId) -> Outline {
    let (m, _) = walk(module, text, file);
    Outline { version: m.version, target: m.target.to_string(), address_size: m.address_size, symbols: m.symbols }
}

/// Checks a module. `text` is what it was parsed from.
pub fn check(module: &ast::Module<'_>, text: &str, file: FileId) -> Checked {
    let (checked, report) = walk(module, text, file);
    let is_sound = report.n_errors() == 0;
    Checked { module: is_sound.then_some(checked), diagnostics: report.finish() }
}

/// Goes through a module: what it declares, which has no meaning where there are errors, and what was found.
fn walk(module: &ast::Module<'_>, text: &str, file: FileId) -> (CheckedModule, report::Report) {
    let mut cx = Cx {
        text,
        file,
        report: report::Report::default(),
        version: NEWEST,
        // Without a target, no gate is blamed.
        target: Target { sm: u16::MAX, suffix: Suffix::None },
        address_size: 32,
        symbols: Vec::new(),
        globals: FastMap::default(),
        unified: FastSet::default(),
        defined: FastMap::default(),
        forms: forms::FormCache::default(),
        files: Vec::new(),
        file_numbers: Default::default(),
        told: FastSet::default(),
        const_bytes: 0,
        suggestions_left: SUGGESTIONS,
    };
    header::header(&mut cx, &module.items);
    for item in &module.items {
        if let ast::Item::Function(f) = item
            && f.body.is_some()
        {
            cx.defined.entry(f.name.text).or_insert(f.name.span);
        }
    }
    for item in &module.items {
        self::item(&mut cx, item);
    }
    let checked = CheckedModule {
        version: cx.version,
        target: cx.target,
        address_size: cx.address_size,
        symbols: cx.symbols,
        files: cx.files,
    };
    (checked, cx.report)
}

fn item<'a>(cx: &mut Cx<'a>, item: &'a ast::Item<'a>) {
    match item {
        ast::Item::Version { .. } | ast::Item::Target { .. } | ast::Item::AddressSize { .. } => {}
        ast::Item::Vars(decl) => globals::module_vars(cx, decl),
        ast::Item::Function(f) => func::function(cx, f),
        ast::Item::File { index, name, span, .. } => {
            if !cx.file_numbers.insert(*index) {
                let d = Diagnostic::error(Code::Duplicate, *span, format!("there is a `.file` {index} already"));
                cx.push(d.section("Debugging Directives: .file"));
            }
            cx.files.push((*index, (*name).to_owned()));
        }
        // Sections hold debug data for other tools; module pragmas concern NVIDIA's own compiler.
        ast::Item::Pragma(p) => gates::word(cx, ".pragma", p.span),
        ast::Item::Section { .. } => {}
        ast::Item::Alias { alias, target, span } => {
            gates::word(cx, ".alias", *span);
            func::alias(cx, *alias, *target);
        }
    }
}
