#!/usr/bin/env python3
"""Every relative link of the Markdown files leads to a file, and to a heading in it where it names one."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def anchors(path):
    headings = re.findall(r"^#+ +(.*)$", path.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


wrong = []
files = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
for name in files:
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
print(f"{len(files)} Markdown files, {len(wrong)} broken links")
sys.exit("\n".join(wrong) or None)
