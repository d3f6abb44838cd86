//! `handloom explore`: the source, the PTX, the SIMT IR, the plan and the machine code of a file side by side, as one HTML page.
//!
//! What was made of a statement has the statement's first line of PTX as its key in all columns, and the colour of the line of the source that `.loc`
//! names, or of the statement where there is none.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use handloom_diag::{FileId, SourceMap, Span};
use handloom_ir::simt::text::Line;
use handloom_profile::html::prose;
use handloom_profile::{NOT_TIME, escape};
use handloom_runtime::{Backend, ErrorKind, Function, LaunchConfig, LaunchError, Listing, Stage};

use crate::args::{Emit, ExploreArgs};
use crate::bug::Panic;
use crate::compile::shown_tier;
use crate::counts::{self, Counts};
use crate::entries::{Parts, parts};
use crate::image;
use crate::launch::{self, source_text};
use crate::names;
use crate::outputs::{Store, open_all};
use crate::page::{Column, Row, page};
use crate::report::{Failure, Format, Out, Status};
use crate::run;

/// Lines of a source that are shown before the first one that the PTX names, and after the last one.
const AROUND: u32 = 12;

/// Writes the page of a file.
///
/// # Errors
/// The file cannot be read, holds several modules or no entry, or the page cannot be written.
pub fn explore(args: &ExploreArgs, out: &mut Out) -> Result<Status, Failure> {
    if out.format == Format::Json {
        return Err(Failure::usage("`explore` writes a page: leave `--format json` out"));
    }
    if args.grid.is_none() && args.rest.len() > 1 {
        return Err(Failure::usage("arguments of a kernel are for a launch: `--grid` says how many blocks"));
    }
    let told = args.counts.as_deref().map(counts::read).transpose()?;
    let mut inputs = image::read(&args.file, &args.file)?;
    if inputs.len() > 1 {
        let name = &args.file;
        return Err(Failure::usage(format!(
            "`{name}` holds {} modules: name one, as `{name}#1`; `handloom info` lists them",
            inputs.len()
        )));
    }
    let path = args.output.clone().unwrap_or_else(|| format!("{}.html", stem(&args.file)));
    let store = Store::to(&path);
    let Some(output) = open_all(std::iter::once(&store))?.pop() else { return Ok(Status::Done) };
    let Some(input) = inputs.pop() else { return Err(Failure::usage(format!("`{}` holds no module", args.file))) };
    let mut sources = SourceMap::new();
    let name = input.name.clone();
    let text = input.add(&mut sources, out);
    let file = text.file;
    let checked = text.check(&sources);
    let Parts { module, entries, diagnostics } = parts(checked, sources.text(file), file);
    out.diagnostics(&diagnostics, &sources);
    let mut status = Status::of_all(&diagnostics);
    let Some(module) = module else { return Err(Failure::told(status)) };
    let usable: Vec<&str> =
        entries.iter().filter(|(_, fault)| fault.is_none()).map(|(name, _)| name.as_str()).collect();
    if usable.is_empty() {
        return match status {
            Status::Done => Err(Failure::usage(format!("`{name}` has no entry"))),
            status => Err(Failure::told(status)),
        };
    }
    let launched = args.grid.as_deref().map(|grid| counts::launch(args, grid, out)).transpose()?;
    let counted = match (&launched, &told) {
        (Some((_, launches)), _) | (None, Some((_, launches))) => Some(Counts::of(launches, sources.text(file), &name)),
        (None, None) => None,
    };
    let counted = counted.transpose().map_err(|why| match &told {
        Some((path, _)) => Failure::usage(format!("`{path}` does not fit: {why}")),
        None => Failure::usage(why),
    })?;
    let device = run::device()?;
    let sources = Arc::new(sources);
    let loaded = launch::load(&device, &module, Arc::clone(&sources), false)?;
    let wanted: Vec<Option<&str>> = match (&launched, args.rest.first()) {
        (Some((_, launches)), _) if !launches.is_empty() => launches.iter().map(|l| Some(l.entry.as_str())).collect(),
        (None, Some(entry)) => vec![Some(entry)],
        _ => usable.iter().map(|e| Some(*e)).collect(),
    };
    status = launched.as_ref().map_or(status, |(of_launch, _)| status.max(*of_launch));
    let mut making = Making::new(&sources, file);
    making.counts = counted;
    for entry in wanted {
        let function = names::function(&loaded.module, entry)?;
        if let Err(e) = making.entry(&function, args) {
            match e.kind() {
                ErrorKind::Unsupported => {
                    out.say(&format!("error: {}: {e}", names::plain(function.name())));
                    status = status.max(Status::Unsupported);
                }
                _ => {
                    out.bug(&Panic::new(&e.to_string()), Some(name.as_str()));
                    status = Status::Bug;
                }
            }
        }
    }
    let html = making.page(&name);
    output.write(html.as_bytes())?;
    if store.path.is_some() {
        let entries = match making.entries.len() {
            1 => "1 entry".to_owned(),
            n => format!("{n} entries"),
        };
        out.line(&format!("{path}: {entries}, {} lines of PTX, {} KiB", making.n_lines(), html.len() / 1024));
    }
    Ok(status)
}

/// An instruction of wide code with its mnemonic alone: the encoder's names of forms have the kinds of operands too, and pages of large kernels are mostly
/// machine code. Other lines stay as they are.
fn short(line: &str) -> String {
    let Some(instruction) = line.strip_prefix("    ") else { return line.to_owned() };
    let (prefix, instruction) = match instruction.strip_prefix("lock ") {
        Some(rest) => ("lock ", rest),
        None => ("", instruction),
    };
    let (form, operands) = instruction.split_once(' ').unwrap_or((instruction, ""));
    let form = ["VEX_", "EVEX_"].iter().find_map(|p| form.strip_prefix(p)).unwrap_or(form);
    let mnemonic = form.split('_').next().unwrap_or(form).to_ascii_lowercase();
    format!("  {prefix}{mnemonic} {operands}").trim_end().to_owned()
}

/// Most bytes of the column of machine code: a page is to stay one that opens at once.
const MOST_ASM: usize = 3_000_000;

/// Rows of machine code with so few lines of each statement that all of them have no more bytes than a page may have. Returns how many lines were left, if any
/// had to go.
fn cut(rows: &mut [Row]) -> Option<usize> {
    let bytes = |rows: &[Row], most: usize| -> usize {
        rows.iter().flat_map(|row| row.text.split('\n').take(most)).map(|line| line.len() + 1).sum()
    };
    if bytes(rows, usize::MAX) <= MOST_ASM {
        return None;
    }
    let fits = (1..=64).rev().find(|most| bytes(rows, *most) <= MOST_ASM).unwrap_or(1);
    for row in rows {
        let all = row.text.split('\n').count();
        if all > fits {
            let kept: Vec<&str> = row.text.split('\n').take(fits).collect();
            row.text = format!("{}\n  … {} more", kept.join("\n"), all - fits);
        }
    }
    Some(fits)
}

/// The name of a file without folders and what follows the last dot.
fn stem(file: &str) -> String {
    let name = Path::new(file).file_stem().map_or_else(|| file.to_owned(), |s| s.to_string_lossy().into_owned());
    if name == "-" { "page".into() } else { name }
}

/// A page in the making.
struct Making<'a> {
    sources: &'a SourceMap,
    file: FileId,
    /// By the line of a statement: the last line, and the line of the source, which has a number in `files`.
    statements: BTreeMap<u32, Statement>,
    /// Files that `.loc` names.
    files: Vec<String>,
    /// Colours of lines of the source, or of statements, in the order in which they were met.
    tints: HashMap<(Option<(usize, u32)>, u32), usize>,
    /// Names, with what their code is for.
    entries: Vec<(String, String)>,
    ir: Vec<Row>,
    plan: Vec<Row>,
    asm: Vec<Row>,
    /// Something in the column of machine code belongs to a statement.
    asm_is_linked: bool,
    /// What a run counted.
    counts: Option<Counts>,
}

struct Statement {
    last: u32,
    source: Option<(usize, u32)>,
    tint: usize,
    /// Something in the column of the IR has its name.
    has_ir: bool,
}

impl<'a> Making<'a> {
    fn new(sources: &'a SourceMap, file: FileId) -> Making<'a> {
        Making {
            sources,
            file,
            statements: BTreeMap::new(),
            files: Vec::new(),
            tints: HashMap::new(),
            entries: Vec::new(),
            ir: Vec::new(),
            plan: Vec::new(),
            asm: Vec::new(),
            asm_is_linked: false,
            counts: None,
        }
    }

    /// Adds what an entry becomes.
    fn entry(&mut self, function: &Function, args: &ExploreArgs) -> Result<(), LaunchError> {
        let block = function.entry().reqntid.or(args.block).unwrap_or([256, 1, 1]);
        let mut config = LaunchConfig::new([1; 3], block);
        let named = args.backend.map(Backend::from).or_else(|| Backend::named().ok().flatten());
        config.backend = named.unwrap_or(config.backend);
        let asm_of = |config: &LaunchConfig, listing: &Listing<'_>| {
            listing.lines(shown_tier(listing, config.backend, Emit::Asm), Stage::Asm)
        };
        let mut listing = function.listing(&config)?;
        let asm = match asm_of(&config, &listing) {
            // What a launch would run then.
            Err(e) if e.kind() == ErrorKind::Unsupported && named.is_none() && config.backend == Backend::Wide => {
                config.backend = Backend::Cranelift;
                listing = function.listing(&config)?;
                asm_of(&config, &listing)?
            }
            asm => asm?,
        };
        let plan = listing.lines(shown_tier(&listing, config.backend, Emit::Plan), Stage::Plan)?;
        let ir = listing.ir_lines();
        let number = self.entries.len();
        let shape = block.map(|n| n.to_string()).join(",");
        let generator = config.backend.name();
        self.entries.push((function.name().to_owned(), format!("blocks of {shape}, {generator} code")));
        // First the order of the PTX, so that neighbours have different colours.
        let mut spans: Vec<Span> =
            ir.iter().chain(plan.iter().flatten()).chain(asm.iter().flatten()).map(|l| l.span).collect();
        spans.sort_by_key(|s| s.start);
        spans.dedup();
        spans.into_iter().for_each(|span| self.meet(span, &listing));
        self.asm_is_linked |= asm.iter().flatten().any(|l| self.statement(l.span).is_some());
        let heading = names::both(function.name()).replace('`', "");
        let ir = self.rows(&heading, number, ir.into_iter(), true);
        let plan = self.rows(&heading, number, plan.into_iter().flatten(), false);
        let asm = asm.into_iter().flatten().map(|l| Line { text: short(&l.text), ..l });
        let asm = self.rows(&heading, number, asm, false);
        self.ir.extend(ir);
        self.plan.extend(plan);
        self.asm.extend(asm);
        Ok(())
    }

    /// Takes up a statement.
    fn meet(&mut self, span: Span, listing: &Listing<'_>) {
        if span == Span::NONE || span.file != self.file {
            return;
        }
        let line_of = |byte| self.sources.position(self.file, byte).line;
        let (first, last) = (line_of(span.start), line_of(span.end.saturating_sub(1).max(span.start)));
        if let Some(known) = self.statements.get_mut(&first) {
            known.last = known.last.max(last);
            return;
        }
        let source = listing.source_line(span).map(|(name, line)| {
            let number = self.files.iter().position(|f| *f == name).unwrap_or_else(|| {
                self.files.push(name);
                self.files.len() - 1
            });
            (number, line)
        });
        let key = (source, if source.is_some() { 0 } else { first });
        let next = self.tints.len();
        let tint = *self.tints.entry(key).or_insert(next);
        self.statements.insert(first, Statement { last, source, tint, has_ir: false });
    }

    fn statement(&self, span: Span) -> Option<u32> {
        let is_here = span != Span::NONE && span.file == self.file;
        is_here.then(|| self.sources.position(self.file, span.start).line)
    }

    /// Rows of lines, those of one statement together. `names`: the first row of each statement gets its name.
    fn rows(&mut self, heading: &str, number: usize, lines: impl Iterator<Item = Line>, names: bool) -> Vec<Row> {
        let mut rows = vec![Row { is_heading: true, entry: Some(number), text: heading.to_owned(), ..Row::default() }];
        for line in lines {
            let statement = self.statement(line.span);
            match rows.last_mut() {
                Some(last) if !last.is_heading && last.statement == statement => {
                    last.text.push('\n');
                    last.text.push_str(&line.text);
                    continue;
                }
                _ => {}
            }
            let mut row = Row { statement, text: line.text, ..Row::default() };
            if let Some(at) = statement
                && let Some(s) = self.statements.get_mut(&at)
            {
                row.tint = Some(s.tint);
                row.number = Some((at, Some(format!("p{at}"))));
                if names && !s.has_ir {
                    s.has_ir = true;
                    row.id = Some(format!("i{at}"));
                }
            }
            rows.push(row);
        }
        rows
    }

    fn n_lines(&self) -> usize {
        self.sources.text(self.file).lines().count()
    }

    /// The column of the PTX.
    fn ptx(&self) -> Column {
        let text = self.sources.text(self.file);
        let mut now: Option<(u32, &Statement)> = None;
        let rows = (1..).zip(text.lines()).map(|(number, line)| {
            now = self.statements.get(&number).map(|s| (number, s)).or(now.filter(|(_, s)| number <= s.last));
            let mut row = Row { number: Some((number, None)), text: line.to_owned(), ..Row::default() };
            if let Some((first, s)) = now {
                row.id = (first == number).then(|| format!("p{number}"));
                row.number = Some((number, s.has_ir.then(|| format!("i{first}"))));
                row.statement = Some(first);
                row.source = s.source.map(|(file, line)| format!("{file}-{line}"));
                row.tint = Some(s.tint);
            }
            row.count = self.counts.as_ref().and_then(|c| c.of_line(number));
            row
        });
        let rows = rows.collect();
        let about = self.sources.name(self.file).to_owned();
        Column { id: "ptx", title: "PTX", about, note: None, rows }
    }

    /// The column of the source: of each file that is there, the lines around those that statements name.
    fn source(&self) -> Column {
        let mut rows = Vec::new();
        let mut missing = Vec::new();
        let ptx = Path::new(self.sources.name(self.file));
        for (number, name) in self.files.iter().enumerate() {
            let mut used: BTreeMap<u32, (u32, usize)> = BTreeMap::new();
            for (at, s) in &self.statements {
                if let Some((_, line)) = s.source.filter(|(file, _)| *file == number) {
                    used.entry(line).or_insert((*at, s.tint));
                }
            }
            let (Some(first), Some(last)) = (used.keys().next(), used.keys().next_back()) else { continue };
            let Some(text) = source_text(name, Some(ptx)) else {
                missing.push(format!("`{name}`"));
                continue;
            };
            let shown = first.saturating_sub(AROUND).max(1)..=last.saturating_add(AROUND);
            if self.files.len() > 1 {
                rows.push(Row { is_heading: true, text: name.clone(), ..Row::default() });
            }
            let lines = (1..).zip(text.lines()).filter(|(n, _)| shown.contains(n));
            let count = |n| self.counts.as_ref().and_then(|c| c.of_source(name, n));
            rows.extend(lines.map(|(n, line)| {
                let at = used.get(&n);
                Row {
                    id: at.map(|_| format!("s{number}-{n}")),
                    number: Some((n, at.map(|(at, _)| format!("p{at}")))),
                    source: at.map(|_| format!("{number}-{n}")),
                    tint: at.map(|(_, tint)| *tint),
                    count: count(n),
                    text: line.to_owned(),
                    ..Row::default()
                }
            }));
        }
        let note = if self.files.is_empty() {
            Some("The PTX has no line information. Compile with `-lineinfo` (nvcc, NVRTC) or `lineinfo=True` (Numba); Triton writes it by itself.".into())
        } else if missing.is_empty() {
            None
        } else {
            Some(format!("Not found, neither where the PTX says nor beside it: {}.", missing.join(", ")))
        };
        let about = self.files.first().map_or_else(String::new, |f| match self.files.len() {
            1 => f.clone(),
            n => format!("{f} and {} more", n - 1),
        });
        Column { id: "source", title: "Source", about, note, rows }
    }

    fn page(&mut self, name: &str) -> String {
        let of = |id, title, about: &str, note: Option<&str>, rows: &[Row]| Column {
            id,
            title,
            about: about.to_owned(),
            note: note.map(str::to_owned),
            rows: rows.to_owned(),
        };
        let apart = (!self.asm_is_linked).then(|| "Cranelift's code is not linked to statements.".to_owned());
        let short = cut(&mut self.asm).map(|n| {
            format!("Of each statement, the first {n} instructions: all of them are more than a page should hold. `handloom compile --emit asm` prints them.")
        });
        let about_asm: Vec<String> = apart.into_iter().chain(short).collect();
        let about_asm = (!about_asm.is_empty()).then(|| about_asm.join(" "));
        let columns = [
            self.source(),
            self.ptx(),
            of("ir", "SIMT IR", "specialised and optimised", None, &self.ir),
            of("plan", "Plan", "what is known and decided", None, &self.plan),
            of("asm", "Machine code", "", about_asm.as_deref(), &self.asm),
        ];
        let mut body = String::from("<header>\n");
        let _ = writeln!(body, "<h1>{}</h1>", escape(name));
        match &self.entries[..] {
            [(entry, about)] => {
                let _ = writeln!(body, "<p>{}: {}</p>", prose(&names::both(entry)), escape(about));
            }
            many => {
                body.push_str("<nav aria-label=\"Entries\">\n");
                for (number, (entry, about)) in many.iter().enumerate() {
                    let (entry, about) = (escape(&names::plain(entry)), escape(about));
                    let _ = writeln!(body, "<a href=\"#ir\" data-e=\"{number}\" title=\"{about}\">{entry}</a>");
                }
                body.push_str("</nav>\n");
            }
        }
        if let Some(counts) = &self.counts {
            let _ = writeln!(body, "<p class=\"badge\">{NOT_TIME}</p><p>{}</p>", escape(&counts.about));
        }
        body.push_str("<p class=\"keys\">click a line; <kbd>j</kbd> <kbd>k</kbd> next and previous statement, <kbd>Esc</kbd> none, <kbd>1</kbd>–<kbd>5</kbd> columns</p>\n<fieldset aria-label=\"Columns\">\n");
        for Column { id, title, .. } in &columns {
            let _ = writeln!(body, "<label><input type=\"checkbox\" id=\"show-{id}\" checked> {title}</label>");
        }
        body.push_str("</fieldset>\n</header>\n<main>\n");
        columns.iter().for_each(|c| c.write(&mut body));
        body.push_str("</main>\n");
        page(name, include_str!("../page/explore.css"), &body, include_str!("../page/explore.js"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_machine_code_is_cut() {
        let row =
            |lines: usize| Row { text: vec!["  vmovdqu32 zmm7, [rbp+568832]"; lines].join("\n"), ..Row::default() };
        let mut few = vec![row(200), row(3)];
        assert_eq!((cut(&mut few), few[0].text.lines().count()), (None, 200));
        let mut many: Vec<Row> = (0..10_000).map(|i| row(1 + i % 60)).collect();
        let n = cut(&mut many).unwrap();
        assert!(n < 60 && many.iter().map(|r| r.text.len()).sum::<usize>() < MOST_ASM + 200_000);
        assert!(many[59].text.ends_with(&format!("\n  … {} more", 60 - n)));
        assert_eq!(many[0].text.lines().count(), 1);
    }

    #[test]
    fn instructions_are_short() {
        assert_eq!(short("    Mov_r64_rm64 rbp, [rbx]"), "  mov rbp, [rbx]");
        assert_eq!(
            short("    EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er zmm1{k1}, zmm2, zmm3"),
            "  vaddps zmm1{k1}, zmm2, zmm3"
        );
        assert_eq!(short("    lock Xadd_rm32_r32 [rax], ecx"), "  lock xadd [rax], ecx");
        assert_eq!((short("l12:"), short("    Retnq")), ("l12:".to_owned(), "  retnq".to_owned()));
    }
}
