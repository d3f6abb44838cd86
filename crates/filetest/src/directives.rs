//! The `//@` lines and `//~` notes of a test file.

use std::ops::Range;

use handloom_ir::num::image;
use handloom_runtime::{AsyncOrder, Tier};

use crate::engines;
use crate::values::{Elem, Values, Within, integer, values};

/// Last stage of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    /// The tree, or the errors of the text.
    Syntax,
    /// The diagnostics.
    Check,
    /// The SIMT IR.
    Ir,
    /// The Cranelift IR.
    Clif,
    /// Results on all engines.
    Run,
    /// A stop on all engines.
    Trap,
    /// What a checked run finds.
    Find,
}

/// A side file that is compared whole. Launches count from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Golden {
    /// The printed tree.
    Ast,
    /// The SIMT IR that the code of a launch is made from: for its block shape, after the passes.
    Ir(usize),
    /// The plan of a launch with exact bounds: of a tier, or of the one that the launch runs first.
    Plan(usize, Option<Tier>),
    /// The Cranelift IR of a launch with exact bounds: of a tier, or of the one that the launch runs first.
    Clif(usize, Option<Tier>),
    /// The diagnostics as people read them.
    Stderr,
}

impl Golden {
    /// `ast`, `stderr`, `ir`, `plan`, `clif`, `plan.TIER` or `clif.TIER`; with `@N` for the launch of that number, from 1.
    fn parse(text: &str) -> Result<Golden, String> {
        let (stage, launch) = match text.split_once('@') {
            None => (text, 0),
            Some((stage, n)) => {
                let n = n.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
                (stage, n.ok_or_else(|| format!("`{text}`: launches count from 1"))?)
            }
        };
        match (stage.split_once('.'), stage) {
            (Some((kind @ ("plan" | "clif"), tier)), _) => {
                let known = Tier::ALL.into_iter().find(|t| t.name() == tier);
                let tier = Some(known.ok_or_else(|| format!("no tier `{tier}`"))?);
                Ok(if kind == "plan" { Golden::Plan(launch, tier) } else { Golden::Clif(launch, tier) })
            }
            (None, "plan") => Ok(Golden::Plan(launch, None)),
            (None, "clif") => Ok(Golden::Clif(launch, None)),
            (None, "ir") => Ok(Golden::Ir(launch)),
            (None, "ast") if text == stage => Ok(Golden::Ast),
            (None, "stderr") if text == stage => Ok(Golden::Stderr),
            _ => Err(format!("no golden `{text}`")),
        }
    }

    /// Ending of the side file: `2.lean.clif`.
    pub fn ending(self) -> String {
        let number = |launch: usize| if launch == 0 { String::new() } else { format!("{}.", launch + 1) };
        match self {
            Golden::Ast => "ast".into(),
            Golden::Ir(launch) => format!("{}ir", number(launch)),
            Golden::Plan(launch, None) => format!("{}plan", number(launch)),
            Golden::Plan(launch, Some(tier)) => format!("{}{}.plan", number(launch), tier.name()),
            Golden::Clif(launch, None) => format!("{}clif", number(launch)),
            Golden::Clif(launch, Some(tier)) => format!("{}{}.clif", number(launch), tier.name()),
            Golden::Stderr => "stderr".into(),
        }
    }
}

/// A device buffer.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its name in launches.
    pub name: String,
    /// Type of its elements.
    pub elem: Elem,
    /// What it holds before the first launch.
    pub init: Values,
}

/// A texture, a sampler or a surface: a buffer that holds its record.
#[derive(Clone, Debug)]
pub struct Object {
    /// What it is.
    pub kind: image::Kind,
    /// As written.
    pub spec: image::Spec,
    /// The buffer with the record, by index.
    pub record: usize,
    /// The buffer with the texels.
    pub texels: Option<usize>,
}

impl Object {
    /// Where the record holds the address of its texels.
    pub fn address(&self) -> Option<engines::Address> {
        let at = (self.record, u64::from(image::BASE_AT));
        self.texels.map(|texels| engines::Address { at, to: (texels, self.spec.offset) })
    }
}

/// `NAME = { "buffer": "texels", "width": 4 }`.
fn object(d: &mut Directives, kind: image::Kind, text: &str) -> Result<(), String> {
    let (name, spec) = text.split_once('=').ok_or("expected `NAME = { .. }`")?;
    let spec: image::Spec = serde_json::from_str(spec.trim()).map_err(|e| e.to_string())?;
    let record = spec.object(kind)?.encode();
    let texels = match &spec.buffer {
        Some(name) => {
            Some(d.buffers.iter().position(|b| b.name == *name).ok_or_else(|| format!("no buffer `{name}`"))?)
        }
        None => None,
    };
    let elem = Elem::parse("u8")?;
    let init = record.iter().map(|b| Some(u64::from(*b))).collect();
    d.objects.push(Object { kind, spec, record: d.buffers.len(), texels });
    d.buffers.push(Buffer { name: name.trim().into(), elem, init });
    Ok(())
}

/// An argument of a launch, as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// A buffer by index, and a byte of it.
    Buffer(usize, u64),
    /// A literal of the parameter's type.
    Literal(String),
    /// The parameter's bytes.
    Bytes(Vec<u8>),
}

/// A launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Name of the entry.
    pub entry: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u32,
    /// Arguments in order.
    pub args: Vec<Argument>,
    /// All blocks may wait for each other.
    pub cooperative: bool,
    /// Blocks of a cluster.
    pub cluster: Option<[u32; 3]>,
}

/// What must hold after the launches.
#[derive(Clone, Debug)]
pub struct Expect {
    /// Line of the directive.
    pub line: usize,
    /// A buffer, or a variable of the module.
    pub name: String,
    /// Type of its elements.
    pub elem: Elem,
    /// Wanted values.
    pub want: Values,
    /// How near.
    pub within: Within,
}

/// A `//~` note.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// The guilty line, from 1.
    pub line: u32,
    /// A diagnostic code, or `trap`.
    pub code: String,
    /// Must stand in the message, a label, or the help.
    pub text: String,
}

/// All that a test file asks for.
#[derive(Clone, Debug)]
pub struct Directives {
    /// Last stage.
    pub test: Test,
    /// Side files.
    pub goldens: Vec<Golden>,
    /// Buffers in order.
    pub buffers: Vec<Buffer>,
    /// Textures, samplers and surfaces.
    pub objects: Vec<Object>,
    /// Launches in order.
    pub launches: Vec<Launch>,
    /// Wanted results.
    pub expects: Vec<Expect>,
    /// Wanted text of the device's `printf`.
    pub output: Option<String>,
    /// Orders of scheduling.
    pub seeds: Range<u64>,
    /// When results of asynchronous instructions come; `None` for all orders.
    pub async_order: Option<AsyncOrder>,
    /// Targets that replace the one of the text; empty for that one.
    pub targets: Vec<String>,
    /// Why the results are wrong today.
    pub known_wrong: Option<String>,
    /// Where the wanted values come from, if not from the manual.
    pub recorded: Option<String>,
    /// Why there are no wanted values: only that the engines agree is tested.
    pub agree: Option<String>,
    /// Why a check finds something in its launches.
    pub faulty: Option<String>,
    /// Whether contained bounds give the same.
    pub exact_bounds_only: bool,
    /// Guilty lines.
    pub notes: Vec<Note>,
}

/// Reads the directives of a text.
///
/// # Errors
/// A sentence with the line of the first bad directive.
pub fn parse(text: &str) -> Result<Directives, String> {
    let mut d = Directives {
        test: Test::Check,
        goldens: Vec::new(),
        buffers: Vec::new(),
        objects: Vec::new(),
        launches: Vec::new(),
        expects: Vec::new(),
        output: None,
        seeds: 0..1,
        async_order: None,
        targets: Vec::new(),
        known_wrong: None,
        recorded: None,
        agree: None,
        faulty: None,
        exact_bounds_only: false,
        notes: notes(text)?,
    };
    let mut kind = None;
    for (line, directive) in directives(text) {
        one(&mut d, &mut kind, line, &directive).map_err(|e| format!("line {line}: {e}"))?;
    }
    d.test = kind.ok_or("there is no `//@ test:` line")?;
    match d.test {
        Test::Ir if !d.goldens.contains(&Golden::Ir(0)) => d.goldens.push(Golden::Ir(0)),
        Test::Clif if !d.goldens.iter().any(|g| matches!(g, Golden::Clif(..))) => d.goldens.push(Golden::Clif(0, None)),
        Test::Ir | Test::Clif | Test::Syntax | Test::Check | Test::Run | Test::Trap | Test::Find => {}
    }
    let runs = matches!(d.test, Test::Run | Test::Trap | Test::Find);
    if runs && d.launches.is_empty() {
        return Err("there is no `//@ launch:` line".into());
    }
    if d.test == Test::Run && d.expects.is_empty() && d.output.is_none() && d.agree.is_none() {
        return Err("a `run` test without `//@ expect` or `//@ agree` shows nothing".into());
    }
    Ok(d)
}

/// The `//@` lines with their numbers. A list in brackets may go on over several of them.
fn directives(text: &str) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (i, line) in text.lines().enumerate() {
        let Some(directive) = line.trim_start().strip_prefix("//@") else { continue };
        match out.last_mut() {
            Some((_, last)) if open => {
                last.push(' ');
                last.push_str(directive.trim());
            }
            _ => out.push((i + 1, directive.trim().to_owned())),
        }
        let last = out.last().map_or("", |l| l.1.as_str());
        open = last.matches('[').count() > last.matches(']').count();
    }
    out
}

fn one(d: &mut Directives, kind: &mut Option<Test>, line: usize, text: &str) -> Result<(), String> {
    if let Some(rest) = text.strip_prefix("buf ") {
        let (head, init) = rest.split_once('=').ok_or("expected `buf NAME: TYPE = VALUES`")?;
        let (name, ty) = head.split_once(':').ok_or("expected `buf NAME: TYPE = VALUES`")?;
        let elem = Elem::parse(ty.trim())?;
        let init = values(elem, init)?;
        if init.contains(&None) {
            return Err("`_` stands only in expectations".into());
        }
        d.buffers.push(Buffer { name: name.trim().into(), elem, init });
        return Ok(());
    }
    if let Some(rest) = text.strip_prefix("expect ") {
        d.expects.push(expect(d, line, rest)?);
        return Ok(());
    }
    let (word, rest) = text.split_once(':').ok_or_else(|| format!("unknown directive `{text}`"))?;
    let rest = rest.trim();
    match word.trim() {
        "test" => {
            *kind = Some(match rest {
                "syntax" => Test::Syntax,
                "check" => Test::Check,
                "ir" => Test::Ir,
                "clif" => Test::Clif,
                "run" => Test::Run,
                "trap" => Test::Trap,
                "find" => Test::Find,
                other => return Err(format!("no test kind `{other}`")),
            });
        }
        "golden" => {
            for word in rest.split_whitespace() {
                d.goldens.push(Golden::parse(word)?);
            }
        }
        "launch" => {
            let launch = launch(d, rest)?;
            d.launches.push(launch);
        }
        "texture" => object(d, image::Kind::Texture, rest)?,
        "sampler" => object(d, image::Kind::Sampler, rest)?,
        "surface" => object(d, image::Kind::Surface, rest)?,
        "output" => d.output = Some(quoted(rest)?),
        "seeds" => {
            let (from, to) = rest.split_once("..").ok_or("expected `seeds: FROM..TO`")?;
            let number = |t: &str| t.trim().parse::<u64>().map_err(|_| format!("`{t}` is no seed"));
            d.seeds = number(from)?..number(to)?;
        }
        "async" => {
            let order = AsyncOrder::named(rest).ok_or("expected `async: earliest`, `latest` or `seed`")?;
            d.async_order = Some(order);
        }
        "target" => d.targets = rest.split_whitespace().map(str::to_owned).collect(),
        "known_wrong" => d.known_wrong = Some(reason(rest)?),
        "recorded" => d.recorded = Some(reason(rest)?),
        "faulty" => d.faulty = Some(reason(rest)?),
        "agree" => d.agree = Some(reason(rest)?),
        "bounds" if rest == "exact" => d.exact_bounds_only = true,
        other => return Err(format!("unknown directive `{other}`")),
    }
    Ok(())
}

fn reason(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("a reason is missing".into()) } else { Ok(text.to_owned()) }
}

fn quoted(text: &str) -> Result<String, String> {
    let inner = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).ok_or("expected a text in quotes")?;
    Ok(inner.replace("\\n", "\n").replace("\\\"", "\""))
}

fn expect(d: &Directives, line: usize, text: &str) -> Result<Expect, String> {
    let (head, near, rest) = match (text.split_once("~="), text.split_once("==")) {
        (Some((head, rest)), _) => (head, true, rest),
        (None, Some((head, rest))) => (head, false, rest),
        (None, None) => return Err("expected `expect NAME == VALUES` or `~=`".into()),
    };
    let (list, within) = match rest.split_once("within") {
        Some((list, within)) if near => (list, Within::parse(within)?),
        None if !near => (rest, Within::Bits),
        _ => return Err("`~=` needs `within`, and `==` does not take it".into()),
    };
    let (name, elem) = match head.split_once(':') {
        Some((name, ty)) => (name.trim(), Elem::parse(ty.trim())?),
        None => {
            let name = head.trim();
            let buffer = d.buffers.iter().find(|b| b.name == name).ok_or_else(|| format!("no buffer `{name}`"))?;
            (name, buffer.elem)
        }
    };
    Ok(Expect { line, name: name.into(), elem, want: values(elem, list)?, within })
}

fn launch(d: &Directives, text: &str) -> Result<Launch, String> {
    const SHAPE: &str = "expected `ENTRY<<<grid, block, shared_bytes>>>(args)`";
    let (entry, rest) = text.split_once("<<<").ok_or(SHAPE)?;
    let (config, rest) = rest.split_once(">>>").ok_or(SHAPE)?;
    let open = rest.trim_start().strip_prefix('(').ok_or(SHAPE)?;
    let close = open.rfind(')').ok_or(SHAPE)?;
    let (args, options) = options(&open[..close], &open[close + 1..])?;
    let config = split(config);
    let [grid, block, shared @ ..] = config.as_slice() else { return Err(SHAPE.into()) };
    let shared_bytes = match shared {
        [] => 0,
        [bytes] => bytes.parse().map_err(|_| format!("`{bytes}` is no number of bytes"))?,
        _ => return Err(SHAPE.into()),
    };
    let mut launch = Launch {
        entry: entry.trim().into(),
        grid: dims(grid)?,
        block: dims(block)?,
        shared_bytes,
        args: split(args).into_iter().map(|a| argument(d, a)).collect::<Result<_, _>>()?,
        cooperative: false,
        cluster: None,
    };
    for option in options {
        match option.split_once('=') {
            None if option == "cooperative" => launch.cooperative = true,
            Some(("cluster", shape)) => launch.cluster = Some(dims(shape)?),
            _ => return Err(format!("unknown option `{option}` of a launch")),
        }
    }
    Ok(launch)
}

/// Arguments, and the words behind them: `(args) cooperative cluster=(2,1,1)`. The closing parenthesis of the arguments is the
/// first that matches.
fn options<'t>(before: &'t str, after: &'t str) -> Result<(&'t str, Vec<&'t str>), String> {
    let mut depth = 1_i32;
    for (i, c) in before.char_indices() {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth == 0 {
            // What follows ends in a shape whose own parenthesis was cut off.
            let words = before[i + 1..].split_whitespace().collect();
            return if after.trim().is_empty() {
                Ok((&before[..i], words))
            } else {
                Err("unbalanced parentheses".into())
            };
        }
    }
    Ok((before, after.split_whitespace().collect()))
}

/// `4`, `(4,2)` or `(4,2,1)`; the closing parenthesis may have been cut off.
fn dims(text: &str) -> Result<[u32; 3], String> {
    let mut out = [1; 3];
    let inner = text.trim().trim_start_matches('(').trim_end_matches(')');
    let parts: Vec<&str> = inner.split(',').collect();
    if parts.len() > 3 {
        return Err(format!("`{text}` has more than three dimensions"));
    }
    for (to, part) in out.iter_mut().zip(parts) {
        *to = part.trim().parse().map_err(|_| format!("`{text}` is no shape"))?;
    }
    Ok(out)
}

/// Parts between commas outside parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut out) = (0_i32, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(text[start..].trim());
    out.retain(|t| !t.is_empty());
    out
}

fn argument(d: &Directives, text: &str) -> Result<Argument, String> {
    if let Some(hex) = text.strip_prefix("bytes:") {
        let byte = |i: usize| u8::from_str_radix(hex.get(i..i + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
        return bytes.map(Argument::Bytes).ok_or_else(|| format!("`{hex}` are no bytes"));
    }
    let (name, offset) = text.split_once('+').unwrap_or((text, "0"));
    if let Some(i) = d.buffers.iter().position(|b| b.name == name.trim()) {
        let offset = integer(offset).and_then(|o| u64::try_from(o).ok());
        return offset.map(|o| Argument::Buffer(i, o)).ok_or_else(|| format!("`{text}` is no byte of a buffer"));
    }
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') || ["inf", "nan"].contains(&text) {
        return Ok(Argument::Literal(text.into()));
    }
    Err(format!("no buffer `{text}`"))
}

/// The `//~` notes; each caret behind the mark means one line further up.
fn notes(text: &str) -> Result<Vec<Note>, String> {
    let mut out = Vec::new();
    for (line, content) in (1_u32..).zip(text.lines()) {
        let Some((_, marks)) = content.split_once("//~") else { continue };
        for mark in marks.split("//~") {
            let up = u32::try_from(mark.len() - mark.trim_start_matches('^').len()).unwrap_or(0);
            let note = mark.trim_start_matches('^').trim();
            let (code, text) = note.split_once(' ').unwrap_or((note, ""));
            let guilty = line.checked_sub(up).filter(|l| *l > 0 && !code.is_empty());
            let guilty = guilty.ok_or_else(|| format!("line {line}: a note without a code or above the file"))?;
            out.push(Note { line: guilty, code: code.into(), text: text.trim().into() });
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read() {
        let text = "//@ test: run\n//@ buf a: u32 = [1,\n//@   2]\n//@ launch: k<<<(2,3), 32, 64>>>(a+4, 5) cluster=(2,1,1)\n\
                    //@ expect a == [_, 2]\n st.bad; //~ E0301 no\n //~^ E0302\n";
        let d = parse(text).unwrap();
        assert_eq!(d.test, Test::Run);
        assert_eq!(d.buffers[0].init, [Some(1), Some(2)]);
        let l = &d.launches[0];
        assert_eq!((l.grid, l.block, l.shared_bytes), ([2, 3, 1], [32, 1, 1], 64));
        assert_eq!(l.args, [Argument::Buffer(0, 4), Argument::Literal("5".into())]);
        assert_eq!(l.cluster, Some([2, 1, 1]));
        assert_eq!(d.expects[0].want, [None, Some(2)]);
        assert_eq!((d.notes[0].line, d.notes[1].line), (6, 6));
    }

    #[test]
    fn mistakes_are_told() {
        assert!(parse("").unwrap_err().contains("test:"));
        assert!(parse("//@ test: run").unwrap_err().contains("launch"));
        assert!(parse("//@ test: check\n//@ tset: x").unwrap_err().starts_with("line 2"));
    }
}
