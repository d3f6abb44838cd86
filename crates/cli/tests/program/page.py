"""Reads a page with Python's HTML parser and prints what is in it, as JSON: what is wrong with it, and the rows of each column."""

import html.parser
import json
import sys

VOID = {"meta", "input", "br", "link", "img", "hr"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.wrong, self.ids, self.links = [], [], [], []
        self.columns, self.column, self.row, self.text = {}, None, None, {}

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(set(names)) != len(names):
            self.wrong.append(f"{self.getpos()}: an attribute twice")
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        for name in ("href", "src"):
            if name in attrs:
                self.links.append(attrs[name])
        if tag == "section":
            self.column = self.columns.setdefault(attrs["id"], [])
        if tag == "div" and "r" in attrs.get("class", "").split():
            self.row = {"id": attrs.get("id"), "s": attrs.get("data-s"), "l": attrs.get("data-l"), "to": None, "text": ""}
            self.column.append(self.row)
        if tag == "a" and self.row is not None:
            self.row["to"] = attrs["href"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"{self.getpos()}: </{tag}> closes nothing")
        if tag == "div":
            self.row = None

    def handle_data(self, data):
        if self.row is not None and self.open[-1] == "code":
            self.row["text"] += data
        if self.open and self.open[-1] in ("script", "style", "title"):
            self.text[self.open[-1]] = self.text.get(self.open[-1], "") + data


page = Page()
page.feed(open(sys.argv[1], encoding="utf-8").read())
page.close()
page.wrong += [f"<{tag}> is not closed" for tag in page.open]
page.wrong += [f"the name {i} twice" for i in sorted(set(i for i in page.ids if page.ids.count(i) > 1))]
page.wrong += [f"a link to {to}" for to in page.links if not (to.startswith("#") and to[1:] in page.ids)]
page.wrong += [f"{name}: something from elsewhere" for name, text in page.text.items() if "http" in text or "url(" in text or "@import" in text]
json.dump({"wrong": page.wrong, "columns": page.columns, "title": page.text.get("title", "")}, sys.stdout)
