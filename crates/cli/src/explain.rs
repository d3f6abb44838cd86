//! `handloom explain`: what an error, a warning, a trap or a finding means, with a wrong and a right example.
//!
//! The texts are the pages of `crates/cli/explain`, one a code, as Markdown: what it means, then fenced blocks. The words after a block's language
//! say what it is: `job.json` is a file that both examples are launched with; `wrong` and `right` are modules, with the command that shows it
//! (`check`, if there is none).

use handloom_diag::Code;
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
    "mbarrier_count" "mbarrier_overwritten" "mbarrier_phase" "async_unwaited" "async_source" "async_open"
    "uninitialised" "freed" "leak" "variable"
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
];

/// What can be explained.
#[derive(Serialize)]
struct Row {
    code: &'static str,
    /// `diagnostic`, `trap` or `finding`.
    kind: &'static str,
    title: &'static str,
}

/// All codes, in the order of their tables.
fn rows() -> impl Iterator<Item = Row> {
    let codes = Code::ALL.iter().map(|c| Row { code: c.name(), kind: "diagnostic", title: c.title() });
    let traps = TrapKind::ALL.iter().map(|t| Row { code: t.word(), kind: "trap", title: t.about() });
    let classes = Class::ALL.iter().map(|c| Row { code: c.word(), kind: "finding", title: c.about() });
    let wrongs = MisuseClass::ALL.iter().map(|w| Row { code: w.word(), kind: "finding", title: w.about() });
    let groups = GROUPS.iter().map(|&(code, title, _)| Row { code, kind: "finding", title });
    codes.chain(traps).chain(classes).chain(wrongs).chain(groups)
}

/// A module that shows a code, or that shows it no longer.
#[derive(Serialize)]
struct Example {
    /// What is typed.
    command: String,
    /// The text of `k.ptx`.
    ptx: &'static str,
}

/// A page, taken apart.
#[derive(Serialize)]
struct Page {
    #[serde(flatten)]
    row: Row,
    text: &'static str,
    /// The text of `job.json`, if the examples are launched by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'static str>,
    wrong: Example,
    right: Example,
}

const FENCE: &str = "```";

impl Page {
    fn of(row: Row) -> Option<Page> {
        let (_, page) = PAGES.iter().find(|(name, _)| *name == row.code)?;
        let mut parts = page.split("\n\n```");
        let text = parts.next()?;
        let (mut job, mut wrong, mut right) = (None, None, None);
        for part in parts {
            let (head, rest) = part.split_once('\n')?;
            let block = rest.trim_end().strip_suffix(FENCE)?;
            match head.split_once(' ')?.1 {
                "job.json" => job = Some(block),
                words => {
                    let (which, command) = words.split_once(' ').unwrap_or((words, "check"));
                    let (name, options) = command.split_once(' ').unwrap_or((command, ""));
                    let file = if job.is_some() { "" } else { " k.ptx" };
                    let command = format!("handloom {name}{file} {options}").trim_end().to_owned();
                    *(if which == "wrong" { &mut wrong } else { &mut right }) = Some(Example { command, ptx: block });
                }
            }
        }
        Some(Page { row, text, job, wrong: wrong?, right: right? })
    }

    fn print(&self, out: &mut Out) {
        let Row { code, kind, title } = self.row;
        out.line(&format!("{code} ({kind}): {title}\n\n{}\n", self.text));
        if let Some(job) = self.job {
            out.line(&format!("job.json:\n\n{}", indented(job)));
        }
        for (which, Example { command, ptx }) in [("Wrong", &self.wrong), ("Right", &self.right)] {
            out.line(&format!("{which}: {command}\n\n{}", indented(ptx)));
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
    let Some(row) = rows().find(|r| r.code == lower || r.code.eq_ignore_ascii_case(&wanted)) else {
        let of_kind: Vec<Row> = classes(&lower);
        if !of_kind.is_empty() {
            list(&format!("{lower} (finding): its classes, which reports name in brackets"), of_kind, out);
            return Ok(Status::Done);
        }
        let meant = match nearest(&lower, rows().map(|r| r.code)) {
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
