#!/usr/bin/env python3
"""The chain `task` with the real claude: a failing Rust project, diagnosed, mended, rejected once, approved; a coder that lies; a
coder that deletes the failing test.

    tests/real/install.sh claude && cargo build && python3 tests/real/test_flow.py
"""
import os
import pathlib
import subprocess
import unittest

from place import Place, says

MANIFEST = '[package]\nname = "sum"\nversion = "0.1.0"\nedition = "2021"\n'
BROKEN = """pub fn sum(all: &[i32]) -> i32 {
    all.iter().product()
}

#[cfg(test)]
mod tests {
    #[test]
    fn adds() {
        assert_eq!(super::sum(&[2, 3]), 5);
    }
}
"""
MENDED = BROKEN.replace("product", "sum")
DOCUMENTED = "/// Adds all of them.\n" + MENDED
WITHOUT_TEST = BROKEN.split("#[cfg(test)]")[0]


READS = {"text": "I read it.", "tool": "Read", "input": {"file_path": "${WORK}/src/lib.rs"}}


def writes(content):
    """It writes over no file that it has not read."""
    return [READS, {"text": "I change it.", "do": "write", "path": "${WORK}/src/lib.rs", "content": content}]


class Flow(unittest.TestCase):
    def place(self, coder, reviewer=None):
        """Turns of the coder and of the reviewer are told apart by what each is told."""
        place = Place({"scripts": {"reviewer": {"when": "You are the reviewer", "turns": reviewer or [says("never")]},
                                   "default": {"turns": coder}}})
        self.addCleanup(place.close)
        # cargo, found by rustup, looks for its toolchains in the real home.
        home = pathlib.Path.home()
        place.variables.update(CARGO_HOME=os.environ.get("CARGO_HOME", str(home / ".cargo")),
                               RUSTUP_HOME=os.environ.get("RUSTUP_HOME", str(home / ".rustup")))
        (place.work / "src").mkdir()
        (place.work / "Cargo.toml").write_text(MANIFEST)
        (place.work / "src/lib.rs").write_text(BROKEN)
        (place.work / ".gitignore").write_text("target\nCargo.lock\n")
        for words in (["init", "-q"], ["add", "."], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "begin"]):
            subprocess.run(["git", "-C", str(place.work), *words], check=True)
        self.assertEqual(place.run("task", "add", "Mend the sum")[0], 0)
        return place

    def asked(self, place, who):
        return [request for request in place.requests() if ("You are the reviewer" in place.said(request)) == (who == "reviewer")]

    def test_a_failing_project_is_diagnosed_mended_rejected_once_and_approved(self):
        place = self.place(
            [*writes(BROKEN.replace("product", "max().copied().unwrap_or(0); all.iter().product")), says("Mended."),
             *writes(MENDED), says("Now it adds."), *writes(DOCUMENTED), says("F1: mended")],
            [says("- src/lib.rs:1: no documentation\n\nVERDICT: reject"), says("Right now.\n\nVERDICT: approve")])
        code, _, stderr = place.run("task", "run")
        self.assertEqual(code, 0, stderr)
        coders = self.asked(place, "coder")
        self.assertIn("adds", "\n".join(coders[0]["users"]), "the first errors come with the prompt")
        self.assertIn("no documentation", "\n".join(coders[6]["users"]))
        self.assertEqual([word for word in ("round 1 of", "round 2 of", "round 3 of") if word not in stderr], [], stderr)
        self.assertIn("rejects (rejection 1)", stderr)
        self.assertIn("completed", place.run("task", "list")[1])
        self.assertEqual(place.left(), [])

    def test_of_a_coder_that_lies_no_reviewer_is_paid(self):
        place = self.place([*writes(BROKEN + "// 1\n"), says("All tests pass!"), *writes(BROKEN + "// 2\n"), says("All tests pass, really!")])
        code, _, stderr = place.run("task", "run", "--limit", "attempts=5")
        self.assertIn(code, (1, 4), stderr)
        self.assertEqual(self.asked(place, "reviewer"), [], stderr)
        self.assertIn("verify: failed with exit code", stderr)
        self.assertIn("in_progress", place.run("task", "list")[1])

    def test_a_coder_that_deletes_the_failing_test_is_caught(self):
        place = self.place([*writes(WITHOUT_TEST), says("Green now.")], [says("A test is gone.\n\nVERDICT: dispute")])
        code, _, stderr = place.run("task", "run")
        self.assertEqual(code, 3, stderr)
        self.assertIn("src/lib.rs has 0 tests; it had 1", stderr)
        self.assertIn("src/lib.rs has 0 tests; it had 1", "\n".join(self.asked(place, "reviewer")[0]["users"]))
        strict = self.place([*writes(WITHOUT_TEST), says("Green now.")])
        (strict.work / "forge").mkdir(exist_ok=True)
        (strict.work / "forge/chains.json").write_text('{"checks": {"build": {"run": "cargo build"}, "test": {"run": "cargo test"}, '
                                                       '"lint": {"run": "true"}}, "chains": {}}')
        code, _, stderr = strict.run("task", "run", "--profile", "strict", "--limit", "attempts=4")
        self.assertNotEqual(code, 0, stderr)
        self.assertEqual(self.asked(strict, "reviewer"), [], stderr)


if __name__ == "__main__":
    unittest.main()
