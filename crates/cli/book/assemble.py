#!/usr/bin/env python3
"""Lays out the folder that mdbook reads: the chapters, the pages of the repository, and the reference as the program prints it.

    assemble.py PROGRAM OUT        called by ci/docs

Links between pages go to their places in the book; links to other files of the repository become their names.
"""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

BOOK = pathlib.Path(__file__).resolve().parent
ROOT = BOOK.parents[2]

# Pages of the repository that SUMMARY.md names, and where links to files that it does not name go.
ELSEWHERE = {"README.md": "introduction.md", "ISA.md": "reference/isa.md"}


def pages():
    """Pages that SUMMARY.md takes from the repository, by their paths there. A page `README.md` is `index.md` in the book."""
    summary = (BOOK / "src/SUMMARY.md").read_text()
    return [re.sub(r"\bindex\.md$", "README.md", page) for page in re.findall(r"\(pages/([^)]+)\)", summary)]


def place(page):
    """Where a page lies in the book."""
    return "pages/" + re.sub(r"\bREADME\.md$", "index.md", page)


def with_links(text, page, known):
    """A page with the links of the book."""

    def link(match):
        name, target = match.group(1), match.group(2)
        if re.match(r"[a-z]+:|#", target):
            return match.group(0)
        file, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), file))
        to = place(path) if path in known else ELSEWHERE.get(path)
        if to is None:
            return name
        here = os.path.dirname(place(page))
        return f"[{name}]({os.path.relpath(to, here)}{'#' + anchor if anchor else ''})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(p if p.startswith("```") else re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", link, p) for p in parts)


def printed(program, *words):
    """What the program prints."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "110"}
    return subprocess.run([program, *words], check=True, capture_output=True, text=True, env=environment).stdout.rstrip()


def objects(program, *words):
    return [json.loads(line) for line in printed(program, *words, "--format", "json").splitlines()]


def command_line(program):
    """`handloom help`, and that of each command."""
    own = printed(program, "help")
    listed = own.split("\nCommands:\n")[1].split("\n\n")[0]
    names = [line.split()[0] for line in listed.splitlines() if re.match(r"  \w", line)]
    out = ["# Command line", "", "As `handloom help` prints it.", "", "```text", own, "```"]
    for name in names:
        if name != "help":
            out += ["", f"## handloom {name}", "", "```text", printed(program, "help", name), "```"]
    return "\n".join(out)


def explained(program):
    """`handloom explain` for each code."""
    rows = objects(program, "explain")
    out = ["# Errors, traps and findings", "", "As `handloom explain CODE` prints it, by kind."]
    titles = {
        "diagnostic": "Errors and warnings",
        "trap": "Traps",
        "finding": "Findings of checked runs",
        "driver error": "Errors of the CUDA driver interface",
    }
    heading = lambda row: f"{row['code']}: {html.escape(row['title'], quote=False)}"
    # As mdBook names them.
    anchors = {row["code"]: re.sub(r"[^\w -]", "", f"{row['code']}: {row['title']}").lower().replace(" ", "-") for row in rows}
    for kind, title in titles.items():
        out += ["", f"## {title}"]
        for row in (r for r in rows if r["kind"] == kind):
            page = objects(program, "explain", row["code"])[0]
            out += ["", f"### {heading(page)}", "", page["text"]]
            if "number" in page:
                out += ["", f"Its number is {page['number']}, and its name in the runtime API `{page.get('runtime', 'none')}`."]
            if "traps" in page:
                traps = ", ".join(f"[{trap}](#{anchors[trap]})" for trap in page["traps"])
                out += ["", f"Traps that programs see so: {traps}."]
                continue
            if page.get("about"):
                out += ["", page["about"]]
            if page.get("job"):
                out += ["", "`job.json`:", "", "```json", page["job"], "```"]
            for which in ["wrong", "right"]:
                if which in page:
                    example = page[which]
                    language = "c" if "c" in example else "ptx"
                    out += ["", f"{which.capitalize()}: `{example['command']}`", "", f"```{language}", example[language], "```"]
    return "\n".join(out)


def instructions(program):
    """`handloom isa` for each opcode."""
    opcodes = dict.fromkeys(row["opcode"] for row in objects(program, "isa"))
    out = ["# Instructions", "", "As `handloom isa OPCODE` prints it: each form, whether it runs, and what it needs."]
    for opcode in opcodes:
        out += ["", f"## {opcode}", "", "```text", printed(program, "isa", opcode), "```"]
    return "\n".join(out)


def main():
    program, out = sys.argv[1], pathlib.Path(sys.argv[2])
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(BOOK, out, ignore=shutil.ignore_patterns("assemble.py"))
    known = pages()
    for page in known:
        to = out / "src" / place(page)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(with_links((ROOT / page).read_text(), page, known))
    reference = out / "src/reference"
    reference.mkdir()
    for name, text in [("command-line", command_line), ("explain", explained), ("isa", instructions)]:
        (reference / f"{name}.md").write_text(text(program) + "\n")
    print(f"{len(known)} pages and the reference in {out}")


if __name__ == "__main__":
    main()
