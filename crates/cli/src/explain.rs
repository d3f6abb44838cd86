//! `handloom explain`: what an error, a warning, a trap, a finding or an error of CUDA's driver interface means, with a wrong and a right example.
//!
//! The texts are the pages of `crates/cli/explain`, one a code, as Markdown: what it means, then fenced blocks. The words after a block's language
//! say what it is: `job.json` is a file that both examples are launched with; `wrong` and `right` are modules, with the command that shows it
//! (`check`, if there is none). Examples in C are the body of a function that returns a result of the driver, with options of `exec`; `bare` is one before
//! `cuInit`. An error of the driver that traps give has the examples of the first of them.

use handloom_diag::{Code, DriverError};
use handloom_ir::trap::TrapKind;
use handloom_isa::nearest;
use handloom_runtime::{Class, MisuseClass};
use serde::Serialize;

use crate::report::{Failure, Format, Out, Status};

macro_rules! pages {
    ($($name:literal)*) => {
        /// The pages by name.
        const PAGES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../explain/", $name, ".md")))),*];
    };
}

pages! {
    "E0101" "E0102" "E0103" "E0104" "E0105" "E0201" "E0202" "E0203" "E0301" "E0302" "E0303" "E0304" "E0305" "E0306" "E0307" "E0401" "E0402"
    "E0501" "E0502" "E0901" "W0102" "W0301" "W0401" "W0601"
    "out_of_bounds" "misaligned" "bad_space" "write_protected" "trap" "assert" "deadlock" "barrier" "timeout" "stack" "bad_transfer" "bad_tensor"
    "bad_call" "bad_object" "out_of_surface" "breakpoint"
    "scope_too_narrow" "atomic_scopes" "mixed_size" "missing_proxy_fence" "same_warp" "same_value" "unordered" "mask_without_caller" "divergent_warp"
    "shared_barrier" "wait_without_arrival" "mbarrier_count" "mbarrier_completed" "mbarrier_overwritten" "mbarrier_phase" "async_unwaited" "async_source" "async_open" "block_ended"
    "uninitialised" "freed" "leak" "variable" "refused"
    "CUDA_ERROR_INVALID_VALUE" "CUDA_ERROR_OUT_OF_MEMORY" "CUDA_ERROR_NOT_INITIALIZED" "CUDA_ERROR_NO_DEVICE" "CUDA_ERROR_INVALID_DEVICE"
    "CUDA_ERROR_INVALID_IMAGE" "CUDA_ERROR_INVALID_CONTEXT" "CUDA_ERROR_MAP_FAILED" "CUDA_ERROR_NO_BINARY_FOR_GPU" "CUDA_ERROR_UNSUPPORTED_LIMIT"
    "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED" "CUDA_ERROR_INVALID_PTX" "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY" "CUDA_ERROR_FILE_NOT_FOUND"
    "CUDA_ERROR_OPERATING_SYSTEM" "CUDA_ERROR_INVALID_HANDLE" "CUDA_ERROR_ILLEGAL_STATE" "CUDA_ERROR_LOSSY_QUERY" "CUDA_ERROR_NOT_FOUND"
    "CUDA_ERROR_NOT_READY" "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED" "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"
    "CUDA_ERROR_CONTEXT_IS_DESTROYED" "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED" "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE" "CUDA_ERROR_NOT_PERMITTED" "CUDA_ERROR_NOT_SUPPORTED" "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
    "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED" "CUDA_ERROR_STREAM_CAPTURE_MERGE" "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"
    "CUDA_ERROR_STREAM_CAPTURE_UNJOINED" "CUDA_ERROR_STREAM_CAPTURE_ISOLATION" "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT" "CUDA_ERROR_CAPTURED_EVENT"
    "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD" "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE" "CUDA_ERROR_INVALID_CLUSTER_SIZE" "CUDA_ERROR_UNKNOWN"
    "CUDA_ERROR_ILLEGAL_ADDRESS" "CUDA_ERROR_LAUNCH_TIMEOUT" "CUDA_ERROR_ASSERT" "CUDA_ERROR_HARDWARE_STACK_ERROR" "CUDA_ERROR_ILLEGAL_INSTRUCTION"
    "CUDA_ERROR_MISALIGNED_ADDRESS" "CUDA_ERROR_INVALID_ADDRESS_SPACE" "CUDA_ERROR_INVALID_PC" "CUDA_ERROR_LAUNCH_FAILED"
}

/// Findings whose classes one page explains: the word of the page, the title, the words of the classes.
const GROUPS: &[(&str, &str, &[&str])] = &[
    (
        "uninitialised",
        "something that nobody wrote decides something",
        &["branch", "guard", "address", "operand", "output", "result"],
    ),
    ("freed", "memory is used after it was freed", &["use", "double_free"]),
    ("leak", "memory that is never freed", &["malloc"]),
    ("variable", "an access through the address of a variable that lies outside of it", &[]),
    ("refused", "a copy, fill or free of a program that names memory that is not there", &[]),
];

/// What can be explained.
#[derive(Serialize)]
struct Row {
    code: &'static str,
    /// `diagnostic`, `trap`, `finding` or `driver error`.
    kind: &'static str,
    title: &'static str,
    /// Of an error of the driver: what programs see of it.
    #[serde(flatten)]
    driver: Option<Driver>,
}

/// What an error of the driver is to programs.
#[derive(Serialize)]
struct Driver {
    number: u32,
    /// Its name in the runtime API.
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<&'static str>,
    /// The traps that programs see as this error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    traps: Vec<&'static str>,
}

impl Row {
    fn new(code: &'static str, kind: &'static str, title: &'static str) -> Row {
        Row { code, kind, title, driver: None }
    }

    /// Of an error of the driver, whether anything of Handloom returns it or not.
    fn of_driver(error: DriverError) -> Row {
        let c_text = |text: Option<&'static str>| text.map_or("", |t| t.trim_end_matches('\0'));
        let traps = TrapKind::ALL.iter().filter(|t| t.driver_error() == error).map(|t| t.word()).collect();
        let driver = Driver { number: error.0, runtime: error.runtime_name(), traps };
        Row { driver: Some(driver), ..Row::new(c_text(error.name()), "driver error", c_text(error.text())) }
    }

    /// Whether it is an error of the driver that programs call so: by its number, its name in the runtime API, or its text.
    fn is_called(&self, words: &str) -> bool {
        let Some(driver) = &self.driver else { return false };
        let named = |name: &str| name.replace(' ', "_").eq_ignore_ascii_case(words);
        driver.number.to_string() == words || driver.runtime.is_some_and(named) || named(self.title)
    }
}

/// All codes, in the order of their tables.
fn rows() -> impl Iterator<Item = Row> {
    let codes = Code::ALL.iter().map(|c| Row::new(c.name(), "diagnostic", c.title()));
    let traps = TrapKind::ALL.iter().map(|t| Row::new(t.word(), "trap", t.about()));
    let classes = Class::ALL.iter().map(|c| Row::new(c.word(), "finding", c.about()));
    let wrongs = MisuseClass::ALL.iter().map(|w| Row::new(w.word(), "finding", w.about()));
    let groups = GROUPS.iter().map(|&(code, title, _)| Row::new(code, "finding", title));
    codes.chain(traps).chain(classes).chain(wrongs).chain(groups).chain(errors().filter(|row| page(row.code).is_some()))
}

/// The errors of CUDA's driver interface.
fn errors() -> impl Iterator<Item = Row> {
    DriverError::ALL.iter().map(|e| Row::of_driver(*e))
}

/// The text of a page.
fn page(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(name, _)| *name == code).map(|(_, text)| *text)
}

/// A module that shows a code, or that shows it no longer.
#[derive(Serialize)]
struct Example {
    /// What is typed.
    command: String,
    #[serde(flatten)]
    text: Source,
}

/// What is wrong or right.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    /// The text of `k.ptx`.
    Ptx(&'static str),
    /// The body of a function in C.
    C(&'static str),
}

/// What is said before the first example in C, and before one that nothing comes before.
const IN_C: &str = "The examples are the body of a function in C, with <cuda.h>: `dev` is a device and `ctx` its context, which is current; `ptx` is the text of a\nmodule with a kernel `k`. They return the result of the call that matters.";
const BARE: &str = "The examples are the body of a function in C, with <cuda.h>, before any other call.";

/// A page, taken apart.
#[derive(Serialize)]
struct Page {
    #[serde(flatten)]
    row: Row,
    text: &'static str,
    /// The text of `job.json`, if the examples are launched by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'static str>,
    /// What the examples rest on.
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wrong: Option<Example>,
    #[serde(skip_serializing_if = "Option::is_none")]
    right: Option<Example>,
}

const FENCE: &str = "```";

impl Page {
    fn of(row: Row) -> Option<Page> {
        let parts = |code: &str| page(code).map(|text| text.trim_end().split("\n\n```"));
        let mut own = parts(row.code)?;
        let text = own.next()?;
        let examples = match row.driver.as_ref().and_then(|d| d.traps.first()) {
            Some(trap) => parts(trap)?.skip(1).collect(),
            None => own.collect::<Vec<_>>(),
        };
        let mut page = Page { row, text, job: None, about: None, wrong: None, right: None };
        for part in examples {
            page.add(part)?;
        }
        // A page has both, or, where it would take another process or thread, none.
        (page.wrong.is_some() == page.right.is_some()).then_some(page)
    }

    /// Adds a fenced block, without its first fence.
    fn add(&mut self, part: &'static str) -> Option<()> {
        let (head, rest) = part.split_once('\n')?;
        let block = rest.trim_end().strip_suffix(FENCE)?;
        let (language, words) = head.split_once(' ')?;
        if words == "job.json" {
            self.job = Some(block);
            return Some(());
        }
        let (which, words) = words.split_once(' ').unwrap_or((words, ""));
        let example = if language == "c" {
            let bare = words.strip_prefix("bare");
            self.about = Some(if bare.is_some() { BARE } else { IN_C });
            let options = bare.unwrap_or(words).trim();
            let blank = if options.is_empty() { "" } else { " " };
            Example { command: format!("handloom exec{blank}{options} -- ./a.out"), text: Source::C(block) }
        } else {
            let words = if words.is_empty() { "check" } else { words };
            let (name, options) = words.split_once(' ').unwrap_or((words, ""));
            let file = if self.job.is_some() { "" } else { " k.ptx" };
            let command = format!("handloom {name}{file} {options}").trim_end().to_owned();
            Example { command, text: Source::Ptx(block) }
        };
        *(if which == "wrong" { &mut self.wrong } else { &mut self.right }) = Some(example);
        Some(())
    }

    fn print(&self, out: &mut Out) {
        let Row { code, kind, title, driver } = &self.row;
        out.line(&format!("{code} ({kind}): {title}\n\n{}\n", self.text));
        if let Some(driver) = driver {
            let runtime = driver.runtime.map_or(String::new(), |name| format!(", `{name}` in the runtime API"));
            out.line(&format!("Its number is {}{runtime}.\n", driver.number));
            if !driver.traps.is_empty() {
                let traps: Vec<String> = driver.traps.iter().map(|t| format!("`handloom explain {t}`")).collect();
                let s = if traps.len() == 1 { "" } else { "s" };
                out.line(&format!("Trap{s} that programs see so: {}.\n", traps.join(", ")));
            }
        }
        if let Some(about) = self.about {
            out.line(&format!("{about}\n"));
        }
        if let Some(job) = self.job {
            out.line(&format!("job.json:\n\n{}", indented(job)));
        }
        for (which, example) in [("Wrong", &self.wrong), ("Right", &self.right)] {
            let Some(Example { command, text: Source::Ptx(text) | Source::C(text) }) = example else { continue };
            out.line(&format!("{which}: {command}\n\n{}", indented(text)));
        }
    }
}

/// The lines of an example, four blanks in.
fn indented(text: &str) -> String {
    let lines = text.lines().map(|l| if l.is_empty() { "\n".to_owned() } else { format!("    {l}\n") });
    lines.collect()
}

/// The classes of a kind of findings that has no page of its own.
fn classes(kind: &str) -> Vec<Row> {
    let races = Class::ALL.iter().filter(|_| kind == "race").map(|c| c.word());
    let wrongs = MisuseClass::ALL.iter().filter(|w| w.kind() == kind).map(|w| w.word());
    let words: Vec<&str> = races.chain(wrongs).collect();
    rows().filter(|row| words.contains(&row.code)).collect()
}

/// Lists codes with their titles.
fn list(heading: &str, rows: Vec<Row>, out: &mut Out) {
    let width = rows.iter().map(|r| r.code.len()).max().unwrap_or(0);
    if out.format == Format::Human && !heading.is_empty() {
        out.line(&format!("{heading}\n"));
    }
    for row in &rows {
        match out.format {
            Format::Json => out.json(row),
            Format::Human => out.line(&format!("{:width$}  {}", row.code, row.title)),
        }
    }
    if let (Format::Human, false, Some(row)) = (out.format, heading.is_empty(), rows.first()) {
        out.line(&format!(
            "\n`handloom explain {}` and so on: what it means, with a wrong and a right example",
            row.code
        ));
    }
}

/// What a class of findings, or a kind of traps, means: the code to ask for, the title and the text.
pub fn about(class: &str) -> Option<(&'static str, &'static str, &'static str)> {
    let group = GROUPS.iter().find(|(_, _, classes)| classes.contains(&class));
    let page = Page::of(rows().find(|row| row.code == group.map_or(class, |(page, ..)| *page))?)?;
    Some((page.row.code, page.row.title, page.text))
}

/// The first code of a report that can be explained: an error as `error[E0301]`, a class at the end of a finding's line as `[same warp]`.
pub fn code_in(report: &str) -> Option<&'static str> {
    report.lines().find_map(|line| {
        let (_, rest) = line.split_once("error[").or_else(|| line.rsplit_once('['))?;
        let word = rest.split_once(']')?.0.replace(' ', "_");
        rows().map(|r| r.code).find(|code| *code == word)
    })
}

/// Explains a code, as it stands in reports: `E0303`, `out_of_bounds` or, of a finding for people, `scope too narrow`. Without words: lists the codes.
///
/// # Errors
/// There is no such code.
pub fn explain(words: &[String], out: &mut Out) -> Result<Status, Failure> {
    let wanted = words.join("_").replace([' ', '-'], "_");
    if wanted.is_empty() {
        list("", rows().collect(), out);
        return Ok(Status::Done);
    }
    let group = GROUPS.iter().find(|(_, _, classes)| classes.contains(&wanted.as_str()));
    let wanted = group.map_or(wanted, |(page, ..)| (*page).to_owned());
    let lower = wanted.to_ascii_lowercase();
    let named = |r: &Row| r.code == lower || r.code.eq_ignore_ascii_case(&wanted) || r.is_called(&wanted);
    let Some(row) = rows().find(named) else {
        if let Some(row) = errors().find(named) {
            let Row { code, title, .. } = row;
            return Err(Failure::usage(format!("`{code}` is `{title}`, which nothing of Handloom returns")));
        }
        let of_kind: Vec<Row> = classes(&lower);
        if !of_kind.is_empty() {
            list(&format!("{lower} (finding): its classes, which reports name in brackets"), of_kind, out);
            return Ok(Status::Done);
        }
        let close = |word: &str| nearest(word, rows().map(|r| r.code));
        let meant = match close(&lower).or_else(|| close(&wanted.to_ascii_uppercase())) {
            Some(code) => format!("did you mean `{code}`?"),
            None => "`handloom explain` lists the codes".to_owned(),
        };
        return Err(Failure::usage(format!("there is no code `{wanted}`; {meant}")));
    };
    let page = Page::of(row).expect("bug: a code without a page");
    match out.format {
        Format::Json => out.json(&page),
        Format::Human => page.print(out),
    }
    Ok(Status::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_in_reports() {
        assert_eq!(
            code_in("[jit, seed 0] line 5: x[0] is 1\nrace: nothing orders a and b [same warp]\n  x"),
            Some("same_warp")
        );
        assert_eq!(code_in("error[E0301]: no form"), Some("E0301"));
        assert_eq!(code_in("x[2] is 5, expected 4"), None);
    }

    #[test]
    fn each_code_has_its_page_and_each_page_its_code() {
        let without: Vec<_> = rows().map(|r| r.code).filter(|c| !PAGES.iter().any(|(name, _)| name == c)).collect();
        assert_eq!(without, [""; 0]);
        let unknown: Vec<_> = PAGES.iter().filter(|(name, _)| !rows().any(|r| r.code == *name)).collect();
        assert_eq!(unknown, [&("", ""); 0]);
        for row in rows() {
            let code = row.code;
            assert!(Page::of(row).is_some(), "{code}");
        }
    }
}
