//! `handloom info`: what a file holds, without running anything.

use std::collections::BTreeMap;

use handloom_check::module::{Func, GlobalVar, Linkage, ParamLayout, Symbol, SymbolKind};
use handloom_check::outline;
use handloom_diag::names::readable;
use handloom_diag::{Diagnostic, Kind, SourceMap, Span};
use handloom_images::{Image, open};
use handloom_ir::types::StateSpace;
use handloom_syntax::ast::{Function, Item};
use serde::Serialize;

use crate::args::InfoArgs;
use crate::entries::parts;
use crate::report::{Failure, Format, Out, Status, errors};
use crate::{image, input, names};

#[derive(Serialize)]
struct File {
    file: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<MemberRow>,
    modules: Vec<Module>,
}

#[derive(Serialize)]
struct MemberRow {
    member: usize,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    packing: &'static str,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    archive_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    section: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<String>,
    used: bool,
}

#[derive(Serialize)]
struct Module {
    name: String,
    version: String,
    target: String,
    address_size: u8,
    entries: Vec<Entry>,
    functions: Vec<Named>,
    globals: Vec<Global>,
    externs: Vec<Named>,
    unsupported: Vec<Unsupported>,
    /// Errors of the text itself.
    errors: usize,
}

#[derive(Serialize)]
struct Named {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    demangled: Option<String>,
    kind: &'static str,
    line: u32,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    demangled: Option<String>,
    line: u32,
    status: &'static str,
    params: Vec<Param>,
    param_bytes: u32,
    /// Static shared memory; absent where the entry cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    shared_bytes: Option<u32>,
    /// Directives of the header by their names without the dot.
    directives: BTreeMap<String, Vec<u64>>,
}

#[derive(Serialize)]
struct Param {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    offset: u32,
    size: u32,
    align: u32,
    array: bool,
}

#[derive(Serialize)]
struct Global {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    demangled: Option<String>,
    space: &'static str,
    #[serde(rename = "type")]
    ty: String,
    size: u64,
    align: u32,
    initialised: bool,
    /// Its size is given at the launch.
    dynamic: bool,
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
}

#[derive(Serialize)]
struct Unsupported {
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    opcode: Option<String>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

/// Lists what files hold, or prints the PTX in them.
///
/// # Errors
/// None at present: each file's fault is told on its own.
pub fn info(args: &InfoArgs, out: &mut Out) -> Result<Status, Failure> {
    let mut status = Status::Done;
    for name in &args.files {
        let one = if args.ptx { print(name, out) } else { file(name, out) };
        status = status.max(one.unwrap_or_else(|failure| out.failure(&failure)));
    }
    Ok(status)
}

/// The PTX as it would be used.
fn print(name: &str, out: &mut Out) -> Result<Status, Failure> {
    let mut status = Status::Done;
    for input in image::read(name, name)? {
        let mut sources = SourceMap::new();
        let text = input.add(&mut sources, out);
        if text.refused.is_some() {
            let wrong = text.check(&sources).diagnostics;
            out.diagnostics(&wrong, &sources);
            status = status.max(Status::of_all(&wrong));
        }
        out.write(sources.text(text.file).as_bytes());
    }
    Ok(status)
}

fn file(name: &str, out: &mut Out) -> Result<Status, Failure> {
    let (path, member) = image::split(name);
    let bytes = input::read(path)?;
    let image = open(&bytes).ok();
    let mut modules = Vec::new();
    let (mut status, mut used) = (Status::Done, Vec::new());
    for input in image::take(bytes.clone(), name, member)? {
        used.extend(input.member());
        let mut sources = SourceMap::new();
        let text = input.silent().add(&mut sources, out);
        if text.refused.is_some() {
            let wrong = text.check(&sources).diagnostics;
            out.diagnostics(&wrong, &sources);
            status = status.max(Status::of_all(&wrong));
            continue;
        }
        modules.push(module(&text, &sources));
        let told = text.check(&sources).diagnostics;
        let wrong: Vec<Diagnostic> = errors(&told).filter(|d| d.kind == Kind::Program).cloned().collect();
        out.diagnostics(&wrong, &sources);
        status = status.max(Status::of_all(&wrong));
    }
    let members = image.as_ref().map_or(Vec::new(), |image| members(image, &used));
    let kind = image.map_or("damaged", |image| image.what.word());
    let file = File { file: name.to_owned(), kind, members, modules };
    match out.format {
        Format::Json => out.json(&file),
        Format::Human => show(&file, out),
    }
    Ok(status)
}

fn members(image: &Image<'_>, used: &[usize]) -> Vec<MemberRow> {
    let rows = image.members.iter().enumerate().filter(|_| image.what != handloom_images::What::Ptx);
    let row = |(i, m): (usize, &handloom_images::Member<'_>)| MemberRow {
        member: i + 1,
        kind: m.kind.word(),
        target: m.arch.map(|a| a.to_string()),
        version: (m.version != (0, 0)).then(|| format!("{}.{}", m.version.0, m.version.1)),
        packing: m.packing.word(),
        bytes: m.bytes,
        archive_file: m.place.file.clone(),
        section: m.place.section.clone(),
        source: m.source.clone(),
        options: m.options.clone(),
        used: used.contains(&(i + 1)),
    };
    rows.map(row).collect()
}

fn module(text: &input::Text, sources: &SourceMap) -> Module {
    let source = sources.text(text.file);
    let parsed = handloom_syntax::parse(source, text.file);
    let outline = outline(&parsed.module, source, text.file);
    let functions: Vec<&Function<'_>> = parsed.module.items.iter().filter_map(function).collect();
    let parts = parts(text.check(sources), source, text.file);
    let lowered = parts.module.as_ref().map(handloom_lower::lower);
    let faults = parts.faults();
    let line = |span: Span| sources.position(text.file, span.start).line;
    let named =
        |s: &Symbol, kind| Named { name: s.name.clone(), demangled: readable(&s.name), kind, line: line(s.span) };
    let mut out = Module {
        name: sources.name(text.file).to_owned(),
        version: format!("{}.{}", outline.version.major, outline.version.minor),
        target: outline.target,
        address_size: outline.address_size,
        entries: Vec::new(),
        functions: Vec::new(),
        globals: Vec::new(),
        externs: Vec::new(),
        unsupported: Vec::new(),
        errors: errors(&parts.diagnostics).filter(|d| d.kind == Kind::Program).count(),
    };
    for symbol in &outline.symbols {
        match &symbol.kind {
            SymbolKind::Func(f) if f.is_entry && f.body.is_some() => {
                let written = functions.iter().find(|w| w.name.text == symbol.name && w.body.is_some());
                let shared = lowered.as_ref().and_then(|m| m.entries.get(&symbol.name)).map(|e| e.shared_bytes);
                let status = match faults.get(symbol.name.as_str()) {
                    None => "ok",
                    Some(fault) if fault.status == Status::Unsupported => "unsupported",
                    Some(_) => "error",
                };
                out.entries.push(entry(symbol, f, written.copied(), shared, status, line(symbol.span)));
            }
            SymbolKind::Func(f) if f.body.is_some() => out.functions.push(named(symbol, "function")),
            SymbolKind::Func(_) => out.externs.push(named(symbol, "function")),
            SymbolKind::Alias(_) => out.functions.push(named(symbol, "alias")),
            SymbolKind::Var(v) if symbol.linkage == Linkage::Extern && !v.unsized_array => {
                out.externs.push(named(symbol, "variable"));
            }
            SymbolKind::Var(v) => {
                let owner = v.owner.and_then(|id| outline.symbols.get(usize::try_from(id.0).ok()?));
                out.globals.push(global(symbol, v, owner, line(symbol.span)));
            }
        }
    }
    let unsupported = errors(&parts.diagnostics).filter(|d| d.kind == Kind::Unsupported);
    out.unsupported.extend(unsupported.map(|d| Unsupported {
        line: line(d.span()),
        opcode: d.opcode.clone(),
        message: d.message.clone(),
        help: d.help.clone(),
    }));
    out
}

fn function<'m, 'a>(item: &'m Item<'a>) -> Option<&'m Function<'a>> {
    match item {
        Item::Function(f) => Some(f),
        _ => None,
    }
}

fn entry(
    symbol: &Symbol,
    f: &Func,
    written: Option<&Function<'_>>,
    shared_bytes: Option<u32>,
    status: &'static str,
    line: u32,
) -> Entry {
    let directives = written.map_or(&[][..], |w| &w.directives).iter().filter(|d| !d.name.text.starts_with(".pragma"));
    Entry {
        name: symbol.name.clone(),
        demangled: readable(&symbol.name),
        line,
        status,
        params: f.params.iter().map(param).collect(),
        param_bytes: f.param_bytes,
        shared_bytes,
        directives: directives.map(|d| (d.name.text.trim_start_matches('.').to_owned(), d.values.clone())).collect(),
    }
}

fn param(p: &ParamLayout) -> Param {
    Param {
        name: p.name.clone(),
        ty: p.ty.to_string(),
        offset: p.offset,
        size: p.size,
        align: p.align,
        array: p.is_array,
    }
}

fn global(symbol: &Symbol, v: &GlobalVar, owner: Option<&Symbol>, line: u32) -> Global {
    Global {
        name: symbol.name.clone(),
        demangled: readable(&symbol.name),
        space: space(v.space),
        ty: v.ty.to_string(),
        size: v.size,
        align: v.align,
        initialised: !v.init.is_empty() || !v.relocs.is_empty(),
        dynamic: v.unsized_array && v.space == StateSpace::Shared,
        line,
        function: owner.map(|o| o.name.clone()),
    }
}

fn space(space: StateSpace) -> &'static str {
    match space {
        StateSpace::Global => "global",
        StateSpace::Const => "const",
        StateSpace::Shared => "shared",
        _ => "other",
    }
}

fn show(file: &File, out: &mut Out) {
    if !file.members.is_empty() {
        out.line(&format!("{}: {} with {}", file.file, file.kind, count(file.members.len(), "member")));
    }
    for m in &file.members {
        let mut words = vec![m.kind.to_owned()];
        words.extend(m.target.iter().cloned());
        words.extend(m.version.as_ref().map(|v| format!("version {v}")));
        words.push(format!("{} bytes", m.bytes));
        words.extend((m.packing != "raw").then(|| m.packing.to_owned()));
        words.extend(m.archive_file.as_ref().map(|f| format!("in `{f}`")));
        words.extend(m.section.as_ref().map(|s| format!("section `{s}`")));
        words.extend(m.source.as_ref().map(|s| format!("from `{s}`")));
        words.extend(m.options.as_ref().map(|o| format!("options `{o}`")));
        words.extend(m.used.then(|| "used".to_owned()));
        out.line(&format!("  member {}: {}", m.member, words.join(", ")));
    }
    for m in &file.modules {
        out.line(&format!("{}: PTX {} for {}, {}-bit addresses", m.name, m.version, m.target, m.address_size));
        for e in &m.entries {
            show_entry(e, out);
        }
        for f in &m.functions {
            out.line(&format!("  {} {} (line {})", f.kind, names::plain(&f.name), f.line));
        }
        for g in &m.globals {
            let mut words = vec![format!(".{}", g.space), g.ty.clone()];
            words.push(if g.dynamic { "size given at the launch".to_owned() } else { format!("{} bytes", g.size) });
            words.push(format!("aligned to {}", g.align));
            words.extend(g.initialised.then(|| "initialised".to_owned()));
            words.extend(g.function.as_ref().map(|f| format!("in {f}")));
            out.line(&format!("  variable {}: {} (line {})", names::plain(&g.name), words.join(", "), g.line));
        }
        for e in &m.externs {
            out.line(&format!("  extern {} {} (line {})", e.kind, names::plain(&e.name), e.line));
        }
        for u in &m.unsupported {
            out.line(&format!("  unsupported: line {}: {}", u.line, u.message));
        }
    }
}

fn show_entry(e: &Entry, out: &mut Out) {
    let mut words =
        vec![format!("{} of parameters", count(usize::try_from(e.param_bytes).unwrap_or(usize::MAX), "byte"))];
    words.extend(e.shared_bytes.map(|n| format!("{n} of static shared memory")));
    let numbers = |v: &[u64]| v.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    words.extend(e.directives.iter().map(|(name, v)| format!(".{name} {}", numbers(v)).trim_end().to_owned()));
    words.extend((e.status != "ok").then(|| e.status.to_owned()));
    out.line(&format!("  entry {} (line {}): {}", names::plain(&e.name), e.line, words.join("; ")));
    for p in &e.params {
        let array = if p.array { "[]" } else { "" };
        let layout = format!("offset {}, {} bytes, aligned to {}", p.offset, p.size, p.align);
        out.line(&format!("    {} {}{array}: {layout}", p.ty, p.name));
    }
}

/// `1 member`, `2 members`.
fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
