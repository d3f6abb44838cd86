//! `explore`: the page is HTML, its columns are linked, and it works in a browser.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::browser::visit;
use crate::common::{EMPTY, Folder, HEAD, SCALE, UNSUPPORTED, WRONG};

/// A kernel with line information, and its source.
fn book_kernel(name: &str) -> Folder {
    let f = Folder::new(name);
    let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("book/code");
    for file in ["row_sums.cu", "row_sums.ptx"] {
        f.write(file, std::fs::read(code.join(file)).unwrap());
    }
    f
}

/// What Python's HTML parser finds in a page. `None` where there is no Python.
#[expect(clippy::print_stderr, reason = "a test that starts nothing says so")]
fn parsed(f: &Folder, page: &str) -> Option<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/page.py");
    let Ok(done) = Command::new("python3").arg(script).arg(f.path().join(page)).output() else {
        eprintln!("not tested: there is no python3");
        return None;
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(serde_json::from_slice(&done.stdout).unwrap())
}

fn rows<'a>(page: &'a Value, column: &str) -> &'a [Value] {
    page["columns"][column].as_array().unwrap_or_else(|| panic!("no column {column}"))
}

fn text(row: &Value) -> &str {
    row["text"].as_str().unwrap()
}

#[test]
fn statuses_and_sentences() {
    let f = Folder::with("explore", SCALE);
    let ran = f.run("explore k.ptx").ends(0);
    assert!(ran.out.starts_with("k.html: 1 entry, "), "{ran:?}");
    assert!(f.has("k.html"));
    f.run("explore k.ptx -o none/page.html").ends(5).says("`none/page.html` cannot be written");
    f.run("explore none.ptx").ends(5);
    f.run("explore k.ptx other").ends(2).says("other");
    f.run("explore k.ptx --format json").ends(2).says("writes a page");
    assert!(f.run("explore k.ptx -o -").ends(0).out.starts_with("<!DOCTYPE html>\n"));
    f.write("wrong.ptx", format!("{HEAD}{WRONG}"));
    f.run("explore wrong.ptx").ends(3).says("E0301");
    f.write("unsupported.ptx", format!("{HEAD}{UNSUPPORTED}"));
    f.run("explore unsupported.ptx").ends(4);
    f.write("nothing.ptx", HEAD);
    f.run("explore nothing.ptx").ends(2).says("`nothing.ptx` has no entry");
    // What can be shown of a file is shown.
    f.write("part.ptx", format!("{HEAD}{EMPTY}{WRONG}"));
    f.run("explore part.ptx").ends(3);
    assert!(String::from_utf8(f.read("part.html")).unwrap().contains("empty"));
    assert!(!f.has("wrong.html") && !f.has("nothing.html"));
}

#[test]
fn pages_are_html_without_anything_from_elsewhere() {
    let f = book_kernel("explore_html");
    f.write("k.ptx", format!("{HEAD}{EMPTY}{SCALE}"));
    for (file, page) in [("row_sums.ptx", "row_sums.html"), ("k.ptx", "k.html")] {
        f.run(&format!("explore {file}")).ends(0);
        f.run(&format!("explore --backend cranelift -o cranelift.html {file}")).ends(0);
        for page in [page, "cranelift.html"] {
            let Some(page) = parsed(&f, page) else { return };
            assert_eq!(page["wrong"], Value::Array(vec![]), "{file}");
            assert!(page["title"].as_str().unwrap().starts_with(file));
            for column in ["source", "ptx", "ir", "plan", "asm"] {
                assert!(page["columns"][column].is_array(), "{file}: {column}");
            }
        }
    }
    assert!(String::from_utf8(f.read("k.html")).unwrap().contains("The PTX has no line information. Compile with"));
}

/// `compile --emit ir` names the line of PTX over what was made of it.
#[test]
fn each_statement_is_linked_to_its_ops() {
    let f = book_kernel("explore_links");
    f.run("explore row_sums.ptx --block 64").ends(0);
    let printed = f.run("compile --emit ir --block 64 row_sums.ptx").ends(0).out;
    let mut wanted: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut statement = None;
    for line in printed.lines().skip(1) {
        let note = line.strip_prefix("    ; ").and_then(|n| n.split_once(": "));
        match note {
            Some((number, _)) => statement = Some(number.to_owned()),
            // A jump to the block behind belongs to no statement.
            None if line.starts_with("    ") && !line.starts_with("    jump ") => {
                wanted.entry(statement.clone().unwrap()).or_default().push(line);
            }
            None => {}
        }
    }
    assert!(wanted.len() > 20, "{wanted:?}");
    let Some(page) = parsed(&f, "row_sums.html") else { return };
    let source = String::from_utf8(f.read("row_sums.cu")).unwrap();
    for (number, ops) in &wanted {
        let of = |column: &str| -> Vec<&Value> {
            rows(&page, column).iter().filter(|r| r["s"] == number.as_str()).collect()
        };
        let shown: Vec<&str> =
            of("ir").into_iter().flat_map(|r| text(r).lines()).filter(|l| !l.starts_with("    jump ")).collect();
        assert_eq!(&shown, ops, "statement {number}");
        let ptx = of("ptx");
        assert_eq!(ptx[0]["id"], format!("p{number}"));
        assert_eq!(ptx[0]["to"], format!("#i{number}"));
        assert!(of("ir").iter().all(|r| r["to"] == format!("#p{number}")));
        assert!(!of("plan").is_empty(), "statement {number}");
    }
    // The PTX is all there, and so is the line of the source that `.loc` names.
    let ptx: Vec<&str> = rows(&page, "ptx").iter().map(text).collect();
    assert_eq!(ptx.join("\n"), String::from_utf8(f.read("row_sums.ptx")).unwrap().trim_end_matches('\n'));
    let store = rows(&page, "ptx").iter().find(|r| text(r).contains("st.shared")).unwrap();
    let line = rows(&page, "source").iter().find(|r| r["l"] == store["l"]).unwrap();
    assert_eq!(text(line), "        part[threadIdx.x] = x[row * 64 + threadIdx.x];");
    assert!(source.contains(text(line)));
    // Of machine code, accesses to memory are linked.
    assert!(rows(&page, "asm").iter().any(|r| r["s"] == store["s"]), "no machine code of {}", store["s"]);
}

/// Uses the page as a person would.
const VISIT: &str = r##"
const lit = (column) => [...document.querySelectorAll(`#${column} .on`)];
const store = [...document.querySelectorAll("#ptx .r")].find((r) => r.textContent.includes("st.shared"));
store.click();
const s = store.dataset.s;
check("the click lights the row", store.classList.contains("on"));
for (const c of ["ir", "plan", "asm"]) check("ops in " + c, lit(c).length > 0 && lit(c).every((r) => r.dataset.s === s));
check("one line of the source", lit("source").length === 1 && lit("source")[0].textContent.includes("part[threadIdx.x] = x"));
check("the name is in the address", location.hash === "#p" + s);
const box = document.querySelector("#ir .lines").getBoundingClientRect(), row = lit("ir")[0].getBoundingClientRect();
check("the ops are in sight", row.top >= box.top - 1 && row.top < box.bottom);
const key = (k) => document.dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true }));
key("j");
check("j goes on", lit("ptx").length > 0 && Number(lit("ptx")[0].dataset.s) > Number(s));
key("k");
check("k goes back", lit("ptx")[0].dataset.s === s);
lit("source")[0].click();
check("a line of the source lights its statements", lit("ptx").length > 1 && lit("ptx").every((r) => r.dataset.l === store.dataset.l));
key("Escape");
check("Escape leaves nothing", document.querySelectorAll(".on").length === 0);
key("4");
check("a column folds", getComputedStyle(document.getElementById("plan")).display === "none");
document.getElementById("show-plan").click();
check("a column comes back", getComputedStyle(document.getElementById("plan")).display !== "none");
"##;

#[test]
fn a_browser_shows_what_belongs_together() {
    let f = book_kernel("explore_browser");
    f.run("explore row_sums.ptx --block 64").ends(0);
    visit(&f, "row_sums.html", VISIT);
}

#[test]
fn counts_of_a_run_stand_at_the_lines() {
    let f = book_kernel("explore_counts");
    let launch = "row_sums.ptx row_sums --grid 2 --block 64 zero:1536 zero:24 6";
    f.run(&format!("explore {launch} -o page.html")).ends(0);
    f.run(&format!("profile {launch} -o counts.json")).ends(0);
    f.run("explore row_sums.ptx --block 64 --counts counts.json -o told.html").ends(0);
    let page = |name: &str| String::from_utf8(f.read(name)).unwrap();
    assert_eq!(page("page.html"), page("told.html"), "a launch and the data of one show the same");
    assert!(
        page("page.html").contains("Counts, not time")
            && page("page.html").contains("1 launch, 2,540 instructions of warps")
    );
    let data: Value = serde_json::from_slice(&f.read("counts.json")).unwrap();
    let text = page("page.html");
    let (_, ptx) = text.split_once("<section id=\"ptx\"").unwrap();
    for row in data["launches"][0]["statements"].as_array().unwrap() {
        let (line, warps) = (&row["line"], row["warps"].as_u64().unwrap());
        let (_, here) = ptx.split_once(&format!(">{line}</")).unwrap_or_else(|| panic!("no line {line}"));
        let (_, count) = here.split_once("<i class=\"w").unwrap();
        let shown = count.split_once('>').unwrap().1.split_once('<').unwrap().0;
        assert_eq!(shown.replace(',', ""), warps.to_string(), "line {line}");
    }
    // What does not fit is refused with what differs.
    f.run("explore row_sums.ptx row_sums 5").ends(2).says("`--grid` says how many blocks");
    f.run("explore row_sums.ptx --counts none.json").ends(5);
    f.run("explore row_sums.ptx --grid 2").ends(2);
    f.write("k.ptx", format!("{HEAD}{EMPTY}"));
    f.run("explore k.ptx --counts counts.json").ends(2).says("what was counted is `row_sums.ptx`, and not `k.ptx`");
    let text = String::from_utf8(f.read("row_sums.ptx")).unwrap();
    f.write("row_sums.ptx", text.replacen("bar.sync", "barrier.sync", 1));
    f.run("explore row_sums.ptx --counts counts.json").ends(2).says("when it was counted");
    // A launch that traps still shows what it did, and says so.
    f.run("explore row_sums.ptx --grid 2 --block 64 zero:4 zero:24 6 -o trap.html").ends(1).says("out of bounds");
    assert!(f.has("trap.html"));
}
