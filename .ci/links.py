#!/usr/bin/env python3
"""Checks links. Without arguments: each relative link of the Markdown files leads to a file, and to a heading in it where it names
one. With `--book FOLDER`: each relative link of the built pages leads to a file of the book."""
import html.parser
import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent


def anchors(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    headings = re.findall(r"^#+ +(.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def in_markdown():
    wrong = []
    files = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in files.stdout.split():
        # This page is laid out for the book.
        if name == "docs/SUMMARY.md":
            continue
        text = re.sub(r"```.*?```", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.S)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            path = (ROOT / name).parent / target if target else ROOT / name
            if not path.exists():
                wrong.append(f"{name}: {link}: no such file")
            elif anchor and path.suffix == ".md" and anchor not in anchors(path):
                wrong.append(f"{name}: {link}: no such heading")
    return len(files.stdout.split()), "Markdown files", wrong


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.ids = [], set()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if given.get("id"):
            self.ids.add(given["id"])


def in_book(book):
    pages = {}
    for path in book.rglob("*.html"):
        pages[path.resolve()] = page = Page()
        page.feed(path.read_text(encoding="utf-8"))
    wrong = []
    for path, page in pages.items():
        # All pages as one, for a printer; its links are those of the others.
        if path.name == "print.html":
            continue
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = urllib.parse.unquote(link).partition("#")
            to = (path.parent / target).resolve() if target else path
            if not to.exists():
                wrong.append(f"{path.relative_to(book)}: {link}: no such page")
            elif anchor and to in pages and anchor not in pages[to].ids:
                wrong.append(f"{path.relative_to(book)}: {link}: no such heading")
    return len(pages), "pages of the book", wrong


checks_book = sys.argv[1:2] == ["--book"]
count, what, wrong = in_book(pathlib.Path(sys.argv[2]).resolve()) if checks_book else in_markdown()
print(f"{count} {what}, {len(wrong)} broken links")
sys.exit("\n".join(wrong) or None if count else f"no {what}")
