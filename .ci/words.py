#!/usr/bin/env python3
"""Words: fails on the words that docs/glossary.md says we do not use, on tags of documents that are not here, on doc comments of one
word, and on long lines. Looks at docs, prompts, comments, and the texts that the program prints."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONGEST = 120
# Documents that the project does not have: `(V-26)`, `C43`, `T3-09`, `seed 003`, `spec/…`.
TAGS = [
    r"\((?:[A-Z]{1,2}\d?-?\d{1,3}[a-z]?)(?:, (?:[A-Z]{1,2}\d?-?\d{1,3}[a-z]?))*\)",
    r"///? (?:[A-Z]\d?-?\d{1,3})(?:, [A-Z]\d?-?\d{1,3})*\.?$",
    r"\bseed \d{3}\b",
    r"\b(?:spec|findings|corpus|seeds)/[a-z-]+\.md\b",
    r"\bDESIGN\.md\b",
]
# What stands in the code for another reason: the words of tests' own material.
MATERIAL = ("tests/outputs", "tests/verdicts", "tests/captures", "tests/it/snapshots", "tests/it/fixtures", "proptest-regressions")


def unused_words():
    """The rows of the table below the heading "Words that we do not use"."""
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    section = text.split("## Words that we do not use")[1]
    rows = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", section, re.M)[1:]
    return [(word.strip(), instead) for words, instead in rows for word in words.split(",")]


def prose_of_rust(line):
    """The comment of a line, and its texts of more than one word: those of one word are data."""
    comment = re.search(r"(?:^|\s)//[/!]?(.*)", line)
    code = line[: comment.start()] if comment else line
    texts = re.findall(r'"((?:[^"\\]|\\.)*)"', code)
    texts = [re.sub(r"\{\w*(:[^}]*)?\}", "", text) for text in texts if " " in text.strip()]
    # A line that goes on with a text of the line before.
    if not comment and not texts and not re.match(r"\s+(return|let|if|match) ", line) and re.match(r"\s+[a-z`{][^;{}=()]* [^;{}=]*(?:\\|\"[,)]?.*)$", line):
        texts = [line]
    return re.sub(r"`[^`]*`", "", comment.group(1)) if comment else "", texts


def lines_of(name):
    in_fence = False
    for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
        if name.endswith(".rs"):
            comment, texts = prose_of_rust(line)
            yield number, line, " ".join([comment, *texts])
        else:
            fence = line.lstrip().startswith("```")
            in_fence ^= fence
            yield number, line, "" if in_fence or fence else re.sub(r"`[^`]*`", "", line)


def main():
    unused = [(re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])", re.I), word, instead) for word, instead in unused_words()]
    tags = [re.compile(tag) for tag in TAGS]
    listed = subprocess.run(["git", "ls-files", "*.md", "src", "temporal", "benches", "tests/it", "tests/fake_agent"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split()
    names = [name for name in listed if name.endswith((".rs", ".md")) and not name.startswith(MATERIAL)]
    wrong = []
    for name in names:
        before, above = "", ""
        is_test = name.startswith("tests/") or name.endswith("tests.rs")
        for number, line, prose in lines_of(name):
            if name != "docs/glossary.md" and not (is_test and name.endswith(".rs")):
                # A word of several parts may begin on the line above.
                both = f"{above.rstrip()} {prose.lstrip(' >*-')}"
                found = lambda pattern: pattern.search(prose) or pattern.search(both) and not pattern.search(above)
                wrong += [f"{name}:{number}: `{word}`: {instead}" for pattern, word, instead in unused if found(pattern)]
                above = prose
            if name.endswith(".rs"):
                wrong += [f"{name}:{number}: a tag of a document that is not here: {line.strip()}" for tag in tags if tag.search(line)]
                if re.match(r"\s*/// \w+[.!]?$", line) and not before.lstrip().startswith("///"):
                    wrong.append(f"{name}:{number}: a doc comment of one word: {line.strip()}")
                if len(line) > LONGEST and re.match(r"\s*//", line):
                    wrong.append(f"{name}:{number}: a comment of {len(line)} characters, and {LONGEST} at most")
                before = line
            elif len(line) > LONGEST and not name.startswith("prompts/") and line[:2] not in ("| ", "  ") and "](" not in line:
                wrong.append(f"{name}:{number}: {len(line)} characters, and {LONGEST} at most")
    print(f"{len(names)} files, {len(unused)} words that we do not use, {len(wrong)} errors")
    sys.exit("\n".join(wrong) or None)


main()
