//! The book: each command that a chapter shows prints what the chapter shows, and the pictures of README are what the program prints.
//!
//! A block `console` holds commands, each after `$ `, and what they print. They run one after another in a folder with the files of
//! `crates/cli/book/code`, which all blocks of a chapter share. In what is shown, `...` in a line stands for any text, and a line of it for any lines.
//! `UPDATE_EXPECT=1` writes what was printed, with `...` for times.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::Folder;

fn book() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("book")
}

fn updates() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some_and(|v| v == "1")
}

fn names(folder: &Path, ending: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.filter(|n| n.ends_with(ending)).collect();
    names.sort();
    names
}

/// A folder with the files that the book's commands use.
fn folder(name: &str) -> Folder {
    let f = Folder::new(name);
    let code = book().join("code");
    for file in names(&code, "") {
        f.write(&file, std::fs::read(code.join(&file)).unwrap());
    }
    f
}

/// Runs a line of a shell; what it prints to both streams in the order in which it does, and its exit status. `status` is that of the line before.
fn shell(f: &Folder, line: &str, status: i32) -> (String, i32) {
    let program = Path::new(env!("CARGO_BIN_EXE_handloom")).parent().unwrap();
    let path = std::env::join_paths(
        std::iter::once(program.to_owned()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("exec 2>&1; (exit {status}); {line}"));
    command.current_dir(f.path()).env("PATH", path.unwrap()).env("HANDLOOM_CACHE", "off").env_remove("CLICOLOR_FORCE");
    let done = command.stdin(Stdio::null()).output().unwrap();
    (String::from_utf8_lossy(&done.stdout).into_owned(), done.status.code().unwrap_or(-1))
}

/// A command and what is shown of it.
struct Shown {
    line: String,
    printed: Vec<String>,
}

/// A chapter: its text around blocks of commands.
struct Chapter {
    /// Lines up to a block, with the line that begins it.
    pieces: Vec<(Vec<String>, Vec<Shown>)>,
    rest: Vec<String>,
}

impl Chapter {
    fn of(text: &str) -> Chapter {
        let (mut pieces, mut rest) = (Vec::new(), Vec::new());
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            rest.push(line.to_owned());
            if line != "```console" {
                continue;
            }
            let mut commands: Vec<Shown> = Vec::new();
            for line in lines.by_ref().take_while(|l| *l != "```") {
                match (line.strip_prefix("$ "), commands.last_mut()) {
                    (Some(command), _) => commands.push(Shown { line: command.to_owned(), printed: Vec::new() }),
                    (None, Some(last)) => last.printed.push(line.to_owned()),
                    (None, None) => panic!("a block `console` begins with `$ `, not with `{line}`"),
                }
            }
            pieces.push((std::mem::take(&mut rest), commands));
        }
        Chapter { pieces, rest }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for (before, commands) in &self.pieces {
            before.iter().for_each(|l| writeln!(out, "{l}").unwrap());
            for c in commands {
                writeln!(out, "$ {}", c.line).unwrap();
                c.printed.iter().for_each(|l| writeln!(out, "{l}").unwrap());
            }
            out.push_str("```\n");
        }
        self.rest.iter().for_each(|l| writeln!(out, "{l}").unwrap());
        out
    }
}

/// Whether a line is what is shown, where `...` stands for any text.
fn fits(shown: &str, line: &str) -> bool {
    let parts: Vec<&str> = shown.split("...").collect();
    let (Some((first, rest)), last) = (parts.split_first(), parts[parts.len() - 1]) else { return false };
    if rest.is_empty() {
        return shown == line;
    }
    let Some(mut left) = line.strip_prefix(first).and_then(|l| l.strip_suffix(last)) else { return false };
    for part in &rest[..rest.len() - 1] {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    true
}

/// Whether lines are what is shown, where a line `...` stands for any lines.
fn all_fit(shown: &[&str], lines: &[&str]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((&"...", rest)) => (0..=lines.len()).any(|n| all_fit(rest, &lines[n..])),
        Some((first, rest)) => lines.first().is_some_and(|l| fits(first, l)) && all_fit(rest, &lines[1..]),
    }
}

/// What was printed, with `...` for times.
fn without_times(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_time = |i: usize, w: &str| {
        let unit = words.get(i + 1).map(|u| u.trim_end_matches([',', ')', ';']));
        w.trim_start_matches('(').parse::<f64>().is_ok() && matches!(unit, Some("ms" | "us" | "s"))
    };
    let kept = words.iter().enumerate().map(|(i, w)| match is_time(i, w) {
        true if w.starts_with('(') => "(...",
        true => "...",
        false => w,
    });
    kept.collect::<Vec<_>>().join(" ")
}

#[test]
fn dots_stand_for_any_text() {
    assert!(
        fits("a ... b", "a 1.5 b")
            && fits("...", "")
            && fits("x", "x")
            && fits("...y...", "xyz")
            && fits("a...c", "ac")
    );
    assert!(!fits("a ... b", "a 1.5 c") && !fits("aba...aba", "aba") && !fits("x", "xy"));
    assert!(
        all_fit(&["a", "...", "d"], &["a", "b", "c", "d"]) && all_fit(&["..."], &[]) && !all_fit(&["a"], &["a", "b"])
    );
    assert_eq!(without_times("k: ok, compiled in 4.2 ms, ran (42 ms)"), "k: ok, compiled in ... ms, ran (... ms)");
}

#[test]
fn commands_print_what_the_book_shows() {
    let (mut wrong, mut n_commands) = (String::new(), 0);
    for name in names(&book().join("src"), ".md") {
        let path = book().join("src").join(&name);
        let mut chapter = Chapter::of(&std::fs::read_to_string(&path).unwrap());
        let f = folder(&format!("book_{}", name.trim_end_matches(".md")));
        let (mut status, mut is_old) = (0, false);
        for shown in chapter.pieces.iter_mut().flat_map(|(_, commands)| commands) {
            n_commands += 1;
            let (printed, ended) = shell(&f, &shown.line, status);
            status = ended;
            let lines: Vec<&str> = printed.trim_end().lines().collect();
            let wanted: Vec<&str> = shown.printed.iter().map(String::as_str).collect();
            if !all_fit(&wanted, &lines) {
                writeln!(wrong, "{name}: $ {} (exit status {ended})\n{printed}", shown.line).unwrap();
                is_old = true;
                shown.printed = lines.iter().map(|l| without_times(l)).collect();
            }
        }
        if is_old && updates() {
            std::fs::write(&path, chapter.text()).unwrap();
        }
    }
    assert!(n_commands > 20, "{n_commands}");
    assert!(wrong.is_empty() || updates(), "what the book shows is not what is printed:\n{wrong}");
}

#[test]
fn chapters_and_files_are_used() {
    let src = book().join("src");
    let summary = std::fs::read_to_string(src.join("SUMMARY.md")).unwrap();
    let mut all = summary.clone();
    for name in names(&src, ".md").iter().filter(|n| *n != "SUMMARY.md") {
        assert!(summary.contains(&format!("({name})")), "{name} is not in SUMMARY.md");
        all.push_str(&std::fs::read_to_string(src.join(name)).unwrap());
    }
    for name in names(&book().join("code"), "") {
        assert!(all.contains(&name), "no chapter uses code/{name}");
    }
    for name in names(&src.join("pictures"), "") {
        assert!(all.contains(&format!("pictures/{name}")), "no chapter shows pictures/{name}");
    }
}

/// Text for XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// How a run of characters is drawn, by the codes of a terminal.
fn class(codes: &[&str]) -> &'static str {
    match (codes.contains(&"91"), codes.contains(&"94"), codes.contains(&"1")) {
        (true, ..) => "e",
        (_, true, _) => "n",
        (.., true) => "b",
        _ => "",
    }
}

/// A line of a terminal as text of SVG: runs between codes for colour. Findings have none: their first word is drawn as that of a trap.
fn drawn(line: &str) -> String {
    let mut out = String::new();
    let mut codes: Vec<&str> = Vec::new();
    for (i, part) in line.split("\x1b[").enumerate() {
        let text = match part.split_once('m') {
            Some((code, text)) if i > 0 => {
                if code == "0" {
                    codes.clear()
                } else {
                    codes.push(code)
                }
                text
            }
            _ => part,
        };
        match (class(&codes), text.split_once(": ")) {
            _ if text.is_empty() => {}
            ("", Some((word @ ("race" | "expectation failed"), rest))) if i == 0 => {
                write!(out, "<tspan class=\"e\">{word}</tspan><tspan class=\"b\">: {}</tspan>", escaped(rest)).unwrap();
            }
            ("", _) => out.push_str(&escaped(text)),
            (class, _) => write!(out, "<tspan class=\"{class}\">{}</tspan>", escaped(text)).unwrap(),
        }
    }
    out
}

/// A line without colours as a terminal of 112 columns shows it, wrapped between words.
fn wrapped(line: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    if line.contains('\x1b') || line.chars().count() <= 112 {
        return vec![line.to_owned()];
    }
    for word in line.split_inclusive(' ') {
        if lines[lines.len() - 1].len() + word.trim_end().len() > 112 {
            lines.push("    ".to_owned());
        }
        let last = lines.len() - 1;
        lines[last].push_str(word);
    }
    lines
}

/// What a command prints on a terminal, as a picture.
fn picture(f: &Folder, line: &str) -> String {
    let (printed, _) = shell(f, &format!("export CLICOLOR_FORCE=1; {line}"), 0);
    let plain = |l: &str| {
        l.split("\x1b[")
            .enumerate()
            .map(|(i, p)| if i == 0 { p } else { p.split_once('m').unwrap().1 })
            .collect::<String>()
    };
    let lines: Vec<String> = std::iter::once(format!("\x1b[1m$ {line}\x1b[0m"))
        .chain(printed.trim_end().lines().map(without_times).flat_map(|l| wrapped(&l)))
        .collect();
    let columns = lines.iter().map(|l| plain(l).chars().count()).max().unwrap();
    let (width, height) = (columns * 42 / 5 + 40, lines.len() * 20 + 56);
    let label =
        escaped(&lines.iter().skip(1).map(|l| plain(l)).find(|l| l.contains(": ") && !l.contains("ok,")).unwrap());
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{label}\">
<style>
.p {{ fill: #f6f8fa; stroke: #d0d7de }} .d {{ fill: #d0d7de }} text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #24292f; white-space: pre }}
.e {{ fill: #b3261e; font-weight: 600 }} .n {{ fill: #0b57a4; font-weight: 600 }} .b {{ font-weight: 600 }}
@media (prefers-color-scheme: dark) {{
.p {{ fill: #161b22; stroke: #3d444d }} .d {{ fill: #3d444d }} text {{ fill: #d7dde3 }} .e {{ fill: #ff8f85 }} .n {{ fill: #7cb7ff }} }}
</style>
<rect class=\"p\" x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"8\"/>
<g class=\"d\"><circle cx=\"20\" cy=\"18\" r=\"5\"/><circle cx=\"38\" cy=\"18\" r=\"5\"/><circle cx=\"56\" cy=\"18\" r=\"5\"/></g>
",
        width - 1,
        height - 1
    );
    for (i, line) in lines.iter().enumerate().filter(|(_, l)| !l.is_empty()) {
        writeln!(out, "<text x=\"20\" y=\"{}\" xml:space=\"preserve\">{}</text>", i * 20 + 52, drawn(line)).unwrap();
    }
    out + "</svg>\n"
}

#[test]
fn pictures_show_what_the_program_prints() {
    let f = folder("book_pictures");
    let pictures = [
        ("trap.svg", "handloom run add.ptx --grid 4 --block 128 zero:4000 zero:4000 zero:4000 1000 null null"),
        ("race.svg", "handloom run row_sums.ptx --check=race --grid 2 --block 64 in:x.npy zero:24 6"),
    ];
    for (name, line) in pictures {
        let path = book().join("src/pictures").join(name);
        let new = picture(&f, line);
        if updates() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &new).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(&path).unwrap_or_default(),
            new,
            "{name} is not what is printed; UPDATE_EXPECT=1 draws it anew"
        );
    }
}
