//! The pages of `profile`, `cover` and `bench` in a browser: sorting, folding, links between columns, pages of large kernels.

use std::fmt::Write as _;
use std::path::Path;

use crate::browser::visit;
use crate::common::{Folder, HEAD, SCALE};

/// A kernel with line information, and its source.
fn book_kernel(name: &str) -> Folder {
    let f = Folder::new(name);
    let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("book/code");
    for file in ["row_sums.cu", "row_sums.ptx", "row_sums_fixed.cu", "row_sums_fixed.ptx"] {
        f.write(file, std::fs::read(code.join(file)).unwrap());
    }
    f
}

/// Sorts all tables by all columns, both ways, folds and unfolds all parts.
const SORT_AND_FOLD: &str = r##"
const number = (row, column) => { const v = row.cells[column].getAttribute("data-v"); return v === null ? NaN : parseFloat(v); };
const tables = [...document.querySelectorAll("table.sorts")];
check("there are tables that sort", tables.length > 0);
for (const table of tables) {
  const rows = () => [...table.tBodies[0].rows];
  const all = rows().length;
  [...table.tHead.rows[0].cells].forEach((th, column) => {
    const button = th.querySelector("button");
    check("a heading is a button", button);
    const first = th.getAttribute("aria-sort");
    button.click();
    const one = th.getAttribute("aria-sort");
    check("a click sorts " + th.textContent, one !== null && one !== first);
    check("one column is marked", table.querySelectorAll("[aria-sort]").length === 1);
    const order = (up) => { const list = rows().map((r) => number(r, column)); return list.every((n, i) => i === 0 || isNaN(n) || isNaN(list[i - 1]) || (up ? list[i - 1] <= n : list[i - 1] >= n)); };
    check(th.textContent + " is sorted", order(one === "ascending"));
    button.click();
    check("a second click turns " + th.textContent, th.getAttribute("aria-sort") !== one && order(one !== "ascending"));
    check("no row is lost", rows().length === all);
  });
}
for (const part of document.querySelectorAll("details.part")) {
  const inside = part.querySelector("table, p");
  check("a part is open", part.open && inside.checkVisibility());
  part.querySelector("summary").click();
  check("a part folds", !part.open && !inside.checkVisibility());
  part.querySelector("summary").click();
  check("a part unfolds", part.open);
}
"##;

/// Goes from the PTX to the source and back.
const LINKS: &str = r##"
const ptx = [...document.querySelectorAll(".ptx tr[data-s]")].find((r) => r.textContent.includes("st.shared"));
const lit = (side) => [...document.querySelectorAll(side + " .lit")];
ptx.cells[ptx.cells.length - 1].click();
check("a click lights the statement", ptx.classList.contains("lit"));
check("and its line of the source", lit(".src").length === 1 && lit(".src")[0].textContent.includes("part[threadIdx.x] = x"));
check("all of the line, nothing else", lit(".ptx").length > 1 && lit(".ptx").every((r) => r.dataset.s === ptx.dataset.s));
const box = document.querySelector(".src").getBoundingClientRect(), row = lit(".src")[0].getBoundingClientRect();
check("the line is in sight of its column", row.top >= box.top - 1 && row.bottom <= box.bottom + 1);
document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
check("Escape leaves nothing", document.querySelectorAll(".lit").length === 0);
const source = [...document.querySelectorAll(".src tr[data-s]")].find((r) => r.textContent.includes("sum +="));
source.querySelector("a").click();
check("a line of the source lights its statements", lit(".ptx").length > 0 && lit(".ptx").some((r) => r.textContent.includes("add.f32")));
const seen = lit(".ptx")[0].getBoundingClientRect();
check("they are in sight", seen.top >= 0 && seen.bottom <= innerHeight);
for (const part of document.querySelectorAll("details")) part.open = false;
location.hash = "#" + ptx.id;
await pause();
check("a link unfolds what it leads to", ptx.checkVisibility() && ptx.getBoundingClientRect().top >= 0 && ptx.getBoundingClientRect().bottom <= innerHeight);
for (const link of document.querySelectorAll('a[href^="#"]')) check("a link to " + link.hash, document.getElementById(link.hash.slice(1)));
check("what its numbers are", document.querySelector(".badge").textContent === "Counts, not time");
"##;

#[test]
fn the_page_of_a_profile_works() {
    let f = book_kernel("pages_profile");
    let launch = "--grid 2 --block 64 zero:1536 zero:24 6";
    f.run(&format!("profile row_sums.ptx {launch} -o base.json -o page.html --device h100-sxm5")).ends(0);
    visit(&f, "page.html", &format!("{SORT_AND_FOLD}{LINKS}"));
    // With a comparison: only the barrier is new.
    f.run(&format!("profile row_sums_fixed.ptx {launch} --compare base.json --threshold 1000 -o compared.html"))
        .ends(0);
    let lines = r##"
const changed = [...document.querySelectorAll("details.part")].find((p) => p.textContent.includes("Compared with the base"));
check("the new barrier is told", [...changed.querySelectorAll("td.code")].some((c) => c.textContent === "row_sums_fixed.cu:17"));
check("lines that only moved are not", ![...changed.querySelectorAll("td.code")].some((c) => c.textContent.endsWith(".cu:14")));
"##;
    visit(&f, "compared.html", &format!("{SORT_AND_FOLD}{lines}"));
}

#[test]
fn the_page_of_a_coverage_works() {
    let f = book_kernel("pages_cover");
    f.run("cover row_sums.ptx --grid 2 --block 64 zero:1536 zero:24 6 -o page.html").ends(0);
    visit(&f, "page.html", &format!("{SORT_AND_FOLD}{LINKS}"));
    // With no rows most of it never ran.
    f.run("cover row_sums.ptx --grid 2 --block 64 zero:1536 zero:24 0 -o missed.html").ends(0);
    let missed = r##"
const never = [...document.querySelectorAll(".places a")];
check("what never ran is told", never.length > 0);
check("it leads to a line that never ran", never.every((a) => document.getElementById(a.hash.slice(1)).classList.contains("missed")));
"##;
    visit(&f, "missed.html", &format!("{SORT_AND_FOLD}{missed}"));
}

#[test]
fn the_pages_of_a_bench_work() {
    let f = Folder::with("pages_bench", SCALE);
    f.write("other.ptx", format!("{HEAD}{SCALE}"));
    let one = "--grid 1 --block 32 zero:128 zero:128 2.5 32 --repeat 7 --bytes 256";
    f.run(&format!("bench k.ptx --against other.ptx {one} -o page.html")).ends(0);
    let plots = r##"
const plots = [...document.querySelectorAll(".plot svg")];
check("a plot of the comparison and of each file", plots.length === 3);
check("plots have names", plots.every((p) => p.getAttribute("aria-label").length > 3));
check("a mark for each run", plots[1].querySelectorAll(".mark").length === 7);
const inside = (p) => { const box = p.getBoundingClientRect(); return [...p.querySelectorAll("text, .mark, rect")].every((e) => { const b = e.getBoundingClientRect(); return b.left >= box.left - 1 && b.right <= box.right + 1 && b.top >= box.top - 1 && b.bottom <= box.bottom + 1; }); };
check("nothing leaves its plot", plots.every(inside));
check("what its numbers are", document.querySelector(".badge").textContent === "Time on this host, not on a GPU");
"##;
    let tables = SORT_AND_FOLD;
    visit(&f, "page.html", &format!("{tables}{plots}"));
    let sizes = "--sweep n=16..=4096*4 --grid {n/32} --block 32 zero:{4*n} zero:{4*n} 2.5 {n} --repeat 3 --bytes {8*n}";
    f.run(&format!("bench k.ptx {sizes} -o sweep.html")).ends(0);
    let plot = r##"
check("a mark for each size", document.querySelectorAll(".plot .mark").length === 5);
check("sizes have names", ["16", "64", "256", "1K", "4K"].every((n) => [...document.querySelectorAll(".plot text")].some((t) => t.textContent === n)));
"##;
    visit(&f, "sweep.html", &format!("{tables}{plot}"));
    f.run(&format!("bench k.ptx {one} -o page.json")).ends(2).says("`--format json` prints the data");
    f.run(&format!("bench k.ptx {one} -o none/page.html")).ends(5);
}

/// A kernel of 12,000 lines, with lines of a source and long names.
fn large() -> String {
    let name = format!("_Z{}", "a_kernel_with_a_long_name_that_a_template_made_".repeat(8));
    let mut text = format!(
        "{}.file 1 \"large.cu\"\n.visible .entry {name}(.param .u64 to)\n{{\n.reg .pred %p<2>; .reg .b32 %r<4000>; .reg .b64 %rd<4>;\n\
         ld.param.u64 %rd1, [to];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %rd2, %r0, 4;\nadd.u64 %rd1, %rd1, %rd2;\n",
        HEAD
    );
    for i in 0..3000_u32 {
        let (a, b) = (1 + i, i);
        let _ = writeln!(
            text,
            ".loc 1 {} 3\nld.global.u32 %r3999, [%rd1];\nmad.lo.u32 %r{a}, %r{b}, %r{b}, %r3999;\nst.global.u32 [%rd1], %r{a};",
            1 + i / 8
        );
    }
    text + "ret;\n}\n"
}

/// A page is open within two seconds. Where a page with nothing in it takes longer than on a host that does nothing else, that many times longer is allowed: the
/// tests of a workspace run side by side.
fn opens_at_once(f: &Folder, page: &str) {
    const EMPTY_MS: f64 = 100.0;
    let empty = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>-</title></head><body></body></html>\n";
    f.write("empty.html", empty);
    let mut told = Vec::new();
    for _ in 0..5 {
        let (Some(empty), Some(ms)) = (visit(f, "empty.html", ""), visit(f, page, "")) else { return };
        if ms < 2000.0 * (empty / EMPTY_MS).max(1.0) {
            return;
        }
        told.push((empty, ms));
    }
    panic!("{page}: milliseconds of an empty page and of this one: {told:?}");
}

#[test]
fn pages_of_large_kernels_are_small_and_open_at_once() {
    const MOST: usize = 10_000_000;
    let f = Folder::with("pages_large", "");
    f.write("k.ptx", large());
    f.write("large.cu", "x[i] = x[i] * x[i] + x[i];\n".repeat(400));
    let launch = "k.ptx --grid 2 --block 64";
    f.run(&format!("profile {launch} zero:256 -o profile.html -o counts.json --engine interp")).ends(0);
    f.run(&format!("cover {launch} zero:256 -o cover.html --engine interp")).ends(0);
    f.run("explore k.ptx --block 64 --counts counts.json -o explore.html").ends(0);
    for page in ["profile.html", "cover.html", "explore.html"] {
        let size = f.read(page).len();
        assert!(size > 1_000_000 && size < MOST, "{page} has {size} bytes");
        opens_at_once(&f, page);
    }
    // Many launches do not make it larger: those with less to tell are left out line by line, and the page says so.
    f.write(
        "job.json",
        format!(
            "{{\"module\": \"k.ptx\", \"engine\": \"interp\", \"buffers\": {{\"x\": {{\"zero\": 256}}}}, \"launches\": [{}]}}",
            vec!["{\"grid\": 1, \"block\": 32, \"args\": [{\"buffer\": \"x\"}]}"; 40].join(",")
        ),
    );
    f.run("profile --job job.json -o many.html").ends(0);
    let text = String::from_utf8(f.read("many.html")).unwrap();
    assert!(
        text.len() < MOST && text.contains("Left out: a page lists") && text.contains("40 launches"),
        "{}",
        text.len()
    );
    opens_at_once(&f, "many.html");
}
