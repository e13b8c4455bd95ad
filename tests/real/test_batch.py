#!/usr/bin/env python3
"""`task run --jobs` with the real claude and codex: six tasks in a small Rust project, two of them in conflict, and two
tries at one task.

    tests/real/install.sh claude codex && cargo build && python3 tests/real/test_batch.py
"""
import hashlib
import json
import os
import pathlib
import subprocess
import unittest

from place import Place, says

MANIFEST = '[package]\nname = "numbers"\nversion = "0.1.0"\nedition = "2021"\n'
LIB = """pub fn one() -> i32 {
    1
}

#[cfg(test)]
mod tests {
    #[test]
    fn is_one() {
        assert_eq!(super::one(), 1);
    }
}
"""
# What has landed, which is what the work is compared with now.
LANDED = "git show HEAD:src/lib.rs > src/lib.new && mv src/lib.new src/lib.rs"


def shell(command):
    return {"text": "I change it.", "do": "shell", "command": command}


def adds(name):
    """Both functions go to the same place of the same file: whoever is second has a conflict to resolve."""
    add = f"sed -i '0,/^}}/s//}}\\n\\npub fn {name}(n: i32) -> i32 {{\\n    n * {len(name)}\\n}}/' src/lib.rs"
    return [shell(add), says(f"I added {name}."), shell(f"{LANDED} && {add}"), says("I kept both.")]


class Batch(unittest.TestCase):
    def place(self):
        scripts = {"reviewer": {"when": "You are the reviewer", "turns": [says("I read it.\n\nVERDICT: approve")]},
                   "double": {"when": "true # double", "turns": adds("double")},
                   "triple": {"when": "true # triple", "turns": adds("triple")}}
        for number in range(3, 7):
            command = f"mkdir -p docs && echo 'Part {number}' > docs/part{number}.md"
            scripts[f"part{number}"] = {"when": f"true # part{number}", "turns": [shell(command), says("Written.")]}
        place = Place({"scripts": {**scripts, "default": {"turns": [says("?")]}}})
        self.addCleanup(place.close)
        # cargo, found by rustup, looks for its toolchains in the real home.
        home = pathlib.Path.home()
        place.variables.update(CARGO_HOME=os.environ.get("CARGO_HOME", str(home / ".cargo")),
                               RUSTUP_HOME=os.environ.get("RUSTUP_HOME", str(home / ".rustup")))
        (place.work / "src").mkdir()
        (place.work / "forge").mkdir(exist_ok=True)
        (place.work / "Cargo.toml").write_text(MANIFEST)
        (place.work / "src/lib.rs").write_text(LIB)
        (place.work / ".gitignore").write_text("target\nCargo.lock\n.forkhestra\n")
        for words in (["init", "-q", "-b", "main"], ["config", "user.name", "t"], ["config", "user.email", "t@t"], ["add", "."],
                      ["commit", "-qm", "begin"]):
            self.git(place, *words)
        # The CLI tells its model the last commits, so a title is no mark of a task.
        tasks = {"double": "Add the function double", "triple": "Add the function triple",
                 **{f"part{number}": f"Write part {number}" for number in range(3, 7)}}
        for mark, title in tasks.items():
            self.assertEqual(place.run("task", "add", title, "--tests", f"true # {mark}")[0], 0)
        return place

    def git(self, place, *words):
        return subprocess.run(["git", "-C", str(place.work), *words], check=True, capture_output=True, text=True).stdout

    def user_git(self, place):
        """The bytes and times of everything below .git."""
        digest = hashlib.sha256()
        for path in sorted((place.work / ".git").rglob("*")):
            facts = path.lstat()
            digest.update(f"{path} {facts.st_size} {facts.st_mtime_ns}".encode())
            digest.update(path.read_bytes() if path.is_file() else b"")
        return digest.hexdigest()

    def test_six_tasks_land_verified_and_the_users_git_is_as_it_was_until_they_are_brought_in(self):
        place = self.place()
        before = self.user_git(place)
        code, _, stderr = place.run("task", "run", "--jobs", "3", "--permissions", "full", "--limit-each", "attempts=12")
        self.assertEqual(code, 0, stderr)
        self.assertIn("6 of 6 tasks landed", stderr)
        self.assertIn("goes back: conflicts in src/lib.rs with what has landed", stderr)
        self.assertEqual(self.user_git(place), before)
        self.assertEqual(self.git(place, "status", "--porcelain"), "")
        told = "\n".join("\n".join(request["users"]) for request in place.requests())
        self.assertIn("<<<<<<<", told, "the agent is told of both sides")
        self.assertEqual(place.run("task", "land", "--into", "main")[0], 0)
        text = (place.work / "src/lib.rs").read_text()
        self.assertTrue("fn double" in text and "fn triple" in text, text)
        self.assertEqual(sorted(path.name for path in (place.work / "docs").iterdir()), [f"part{n}.md" for n in range(3, 7)])
        test = subprocess.run(["cargo", "test", "-q"], cwd=place.work, capture_output=True, env={**os.environ, **place.variables})
        self.assertEqual(test.returncode, 0, test.stderr)
        self.assertEqual(place.left(), [])

    def test_tries_by_claude_and_codex_are_compared_by_a_judge_and_one_lands(self):
        scripts = {"chooser": {"when": "Several tries were made", "turns": [says("Both are right; the second is shorter.\n\nCHOICE: 2")]},
                   "reviewer": {"when": "You are the reviewer", "turns": [says("I read it.\n\nVERDICT: approve")]},
                   "coder": {"when": "You are the coder", "mode": "history", "turns": [shell("echo try $FORKHESTRA_TRY > answer.txt"), says("Done.")]}}
        place = Place({"scripts": {**scripts, "default": {"turns": [says("?")]}}}, "claude", "codex")
        self.addCleanup(place.close)
        (place.work / "forge").mkdir(exist_ok=True)
        (place.work / "forge/chains.json").write_text(json.dumps(
            {"checks": {"t": "test -s answer.txt"}, "chains": {"task": "coder -> t -> reviewer"}}))
        for words in (["init", "-q", "-b", "main"], ["config", "user.name", "t"], ["config", "user.email", "t@t"], ["add", "."],
                      ["commit", "-qm", "begin"]):
            self.git(place, *words)
        self.assertEqual(place.run("task", "add", "Write the answer")[0], 0)
        code, _, stderr = place.run("task", "run", "--jobs", "2", "--tries", "claude,codex", "--permissions", "full",
                                    "--limit-each", "attempts=12")
        self.assertEqual(code, 0, stderr)
        self.assertIn("try 2 by codex is taken: Both are right; the second is shorter.", stderr)
        self.assertEqual(place.run("task", "land", "--into", "main")[0], 0)
        self.assertEqual((place.work / "answer.txt").read_text(), "try 2\n")
        asked = next("\n".join(request["users"]) for request in place.requests() if "Several tries" in "\n".join(request["users"]))
        for words in ("## Try 1, by claude", "## Try 2, by codex", "+try 1", "+try 2"):
            self.assertIn(words, asked)
        self.assertEqual(place.left(), [])


if __name__ == "__main__":
    unittest.main()
