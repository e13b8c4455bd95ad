#!/usr/bin/env python3
"""The real agent CLIs, headless and offline: a model server on loopback answers them by a script (stub_llm.py).

    tests/real/install.sh claude codex && cargo build && python3 tests/real/test_clis.py claude codex

Without names: all that are installed. FORKHESTRA_REAL_SLOW=1 waits for those that retry for minutes.
"""
import datetime
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

from place import CLIS, MARKER, Place, is_installed, says

SLOW = os.environ.get("FORKHESTRA_REAL_SLOW") == "1"
PROMPT = "Write hello.txt containing hi"
DONE = says(f"hello.txt is there.\n\n{MARKER}\n")
# Those that let a tool write without a shell, or with one at the level `edit`.
WRITE = {"text": "I will write the file.", "do": "write", "path": "${WORK}/hello.txt", "content": "hi\n"}
NO_TOOLS = {"aider"}
NO_EDIT_LEVEL = {"pi"}
NO_READ_LEVEL = set()
NO_TOKENS = {"copilot", "aider"}
NO_SESSION = {"aider"}
# Namespaces within namespaces are refused to root.
OWN_SANDBOX = {"codex"}
# Folders that they make themselves when they are first run, which nothing in a sandbox may.
STATE = {"opencode": (".local/share/opencode", ".local/state/opencode", ".cache/opencode"), "copilot": (".copilot", ".cache/copilot")}
# They change the ends of a prompt, or wrap it.
LOOSE_PROMPT = {"pi", "aider"}
# They retry for minutes, and no setting shortens it.
PATIENT = {"gemini", "opencode", "qwen", "copilot", "aider"}
ALWAYS_0 = {"aider"}


def sandboxes():
    """Whether this machine lets us make a sandbox."""
    words = ["bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"]
    return shutil.which("bwrap") and subprocess.run(words, capture_output=True).returncode == 0


class Real:
    """The tests of one CLI."""
    name = ""

    def place(self, script, **keys):
        place = Place(script, self.name)
        self.addCleanup(place.close)
        if self.name in NO_EDIT_LEVEL:
            keys.setdefault("permissions", "full")
        place.config({self.name: place.agent(self.name, **keys)})
        return place

    def test_it_works_to_its_marker(self):
        script = [DONE] if self.name in NO_TOOLS else [WRITE, DONE]
        main = {"turns": script, "main": "any"} if self.name in NO_TOOLS else script
        place = self.place(main, systemPromptText="You are W, the writer.")
        code, stdout, stderr = place.run(f"{self.name}:3", "-p", PROMPT)
        self.assertEqual(code, 0, stderr + stdout)
        self.assertIn("done, marker seen", stderr)
        if self.name not in NO_TOOLS:
            self.assertEqual((place.work / "hello.txt").read_text(), "hi\n")
            self.assertIn("I will write the file.\n[", stdout)
        first = place.requests()[0]
        said = place.said(first)
        self.assertIn("You are W, the writer.", said)
        self.assertIn("You run unattended", said)
        self.assertIn(PROMPT, said)
        finished = place.finished()[-1]["finished"]
        if self.name not in NO_TOKENS:
            self.assertGreater(finished["tokens"]["input"] + finished["tokens"]["output"], 1000, finished)
        if self.name not in NO_SESSION:
            self.assertTrue(finished["session"], finished)
            self.assertEqual(place.file(1, f"1-{self.name}/1", "final.md"), DONE["text"])
        self.assertEqual(finished["denials"], [])
        self.assertEqual(place.left(), [])

    def test_it_works_in_the_sandbox(self):
        if not sandboxes():
            self.skipTest("no bubblewrap, or no user namespaces")
        if self.name in NO_TOOLS:
            self.skipTest("it has no tools")
        # Not in /tmp, of which a sandbox has its own.
        place = Place([WRITE, DONE], self.name, below="/var/tmp")
        self.addCleanup(place.close)
        for folder in STATE.get(self.name, ()):
            (place.folder / "home" / folder).mkdir(parents=True, exist_ok=True)
        keys = {"permissions": "full"} if self.name in NO_EDIT_LEVEL | OWN_SANDBOX else {}
        place.config({self.name: place.agent(self.name, sandbox="project", **keys)})
        code, stdout, stderr = place.run(f"{self.name}:3", "-p", PROMPT)
        self.assertEqual(code, 0, stderr + stdout)
        self.assertEqual((place.work / "hello.txt").read_text(), "hi\n")
        self.assertNotIn("left running", stderr)
        self.assertEqual(place.left(), [])

    def test_prompts_arrive_byte_for_byte(self):
        for prompt in ("-p --help", "two\nlines\n\nend", "\"q\" '$HOME' `x` \\n ünï 🚀\t<x>&amp;</x>", "y" * 200_000 + "\nend"):
            place = self.place({"turns": [DONE], "main": "any"} if self.name in NO_TOOLS else [DONE])
            (place.work / "prompt.md").write_text(prompt)
            code, stdout, stderr = place.run(f"{self.name}:1", "--prompt-file", "prompt.md")
            self.assertEqual(code, 0, stderr + stdout)
            delivered = place.file(1, f"1-{self.name}/1", "prompt.md")
            users = place.requests()[0]["users"]
            exact = any(delivered == user for user in users)
            whole = any(delivered.strip() in user for user in users)
            self.assertTrue(whole if self.name in LOOSE_PROMPT else exact or whole, prompt[:40])
            self.assertTrue(prompt in delivered)

    def fails(self, status, message, expected, code=1, more=()):
        place = self.place({"turns": [{"error": {"status": status, "message": message}}], "main": "any"})
        place.variables.update({"CLAUDE_CODE_MAX_RETRIES": "0"})
        ended, stdout, stderr = place.run(f"{self.name}:3", "-p", PROMPT, *more)
        self.assertEqual(ended, code, stderr + stdout)
        attempts = place.finished()
        self.assertEqual(attempts[0]["finished"]["errorClass"], expected, attempts[0])
        self.assertEqual(place.left(), [])
        return attempts

    def test_401_is_not_tried_again(self):
        if self.name in ALWAYS_0:
            self.skipTest("it ends with 0 and plain words")
        self.assertEqual(len(self.fails(401, "no such key", "credentials")), 1)

    def test_a_model_that_is_refused_is_not_tried_again(self):
        if self.name in ALWAYS_0:
            self.skipTest("it ends with 0 and plain words")
        attempts = self.fails(404, "The model `stub-model` does not exist or you do not have access to it.", "model")
        self.assertEqual(len(attempts), 1)

    def test_429_is_waited_out(self):
        if self.name in ALWAYS_0 or (self.name in PATIENT and not SLOW):
            self.skipTest("it retries for minutes")
        self.fails(429, "slow down", "usageLimit", 4, ["--limit", "wait=500ms"])

    def test_500_is_a_failure_of_the_service_and_is_waited_out(self):
        if self.name in ALWAYS_0 or (self.name in PATIENT and not SLOW):
            self.skipTest("it retries for minutes")
        self.fails(500, "it broke", "service", 4, ["--limit", "wait=500ms"])

    def test_529_is_an_overload(self):
        if self.name != "claude":
            self.skipTest("its service does not say that")
        self.fails(529, "overloaded", "usageLimit", 4, ["--limit", "wait=500ms"])

    def test_a_server_that_is_down_ends_in_time(self):
        if self.name in PATIENT and not SLOW:
            self.skipTest("it retries for minutes")
        place = self.place([DONE], idleTimeout="6s")
        place.stub.terminate()
        place.stub.wait()
        place.variables.update({"CLAUDE_CODE_MAX_RETRIES": "0"})
        code, stdout, stderr = place.run(self.name, "-p", PROMPT, "--limit", "wait=500ms")
        self.assertEqual(code, 4, stderr + stdout)
        self.assertIn("the limit `wait` of 500ms was reached", stderr)
        self.assertEqual(place.left(), [])

    def test_a_stream_that_stalls_ends_within_its_idle_timeout(self):
        if self.name in ALWAYS_0:
            self.skipTest("its output says nothing before the end")
        # Shorter than the pauses of a CLI that starts on a slow machine, it would end one that works.
        idle = 60 if self.name == "opencode" else 40
        place = self.place({"turns": [{"text": "I begin.", "hang": True}], "main": "any"}, idleTimeout=f"{idle}s")
        code, stdout, stderr = place.run(self.name, "-p", PROMPT)
        self.assertEqual(code, 1, stderr + stdout)
        self.assertIn("has expired: no output and no CPU time", stderr)
        events = [json.loads(line) for line in place.run("runs", "events", "1")[1].splitlines()]
        # From its last request on it waits.
        asked = max(request["t"] for request in place.requests())
        ended = next(event["at"] for event in events if event["event"]["type"] == "attemptTimedOut")
        ended = datetime.datetime.fromisoformat(ended.replace("Z", "+00:00")).timestamp()
        # What a CLI computes after its request counts as work, and a busy machine makes that longer: this only bounds a hang.
        self.assertLess(ended - asked, 3 * idle, f"{self.name}: {ended - asked:.1f} s")
        print(f"{self.name}: a stalled stream ended {ended - asked:.1f} s after its request (idleTimeout {idle} s)", flush=True)
        self.assertEqual(place.left(), [])

    def test_a_turn_limit_is_honoured_or_refused(self):
        place = self.place([{"do": "shell", "command": "git status"}], maxTurns=1)
        code, stdout, stderr = place.run(self.name, "-p", PROMPT)
        if self.name in ("claude", "qwen"):
            self.assertEqual(code, 1, stderr + stdout)
            self.assertLessEqual(len(place.requests()), 2)
        else:
            self.assertEqual(code, 2, stderr + stdout)
            self.assertIn("does not support `maxTurns`", stderr)

    def test_signals_end_it_and_its_tools(self):
        if self.name in NO_TOOLS:
            self.skipTest("it has no tools")
        for number, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            place = self.place([{"do": "shell", "command": "echo up > up; sleep 1000"}], permissions="full")
            process = place.start(self.name, "-p", PROMPT)
            place.wait_for("up", process)
            process.send_signal(number)
            _, stderr = process.communicate(timeout=60)
            self.assertEqual(process.returncode, expected, stderr.decode())
            self.assertEqual(place.left(), [])

    def test_permissions_are_kept(self):
        if self.name in NO_TOOLS:
            self.skipTest("it has no tools")
        shell = lambda command: {"do": "shell", "command": command}
        # read: nothing is written, git may be asked.
        place = self.place([WRITE, shell("echo x > by-shell"), DONE], permissions="read")
        code, _, stderr = place.run(self.name, "-p", PROMPT)
        if self.name in NO_READ_LEVEL:
            self.assertEqual(code, 2, stderr)
        self.assertFalse((place.work / "hello.txt").exists() or (place.work / "by-shell").exists())
        if self.name in NO_EDIT_LEVEL:
            return
        place = self.place([shell("git log --output=by-git"), DONE], permissions="read")
        os.system(f"cd {place.work} && git init -q && git -c user.name=x -c user.email=x@x commit -q --allow-empty -m first")
        place.run(self.name, "-p", PROMPT)
        self.assertFalse((place.work / "by-git").exists())
        # edit: files are written, git is committed to.
        place = self.place([WRITE, shell("git add hello.txt"), shell("git commit -m made"), DONE])
        os.system(f"cd {place.work} && git init -q && git config user.name x && git config user.email x@x")
        code, stdout, stderr = place.run(f"{self.name}:1", "-p", PROMPT)
        self.assertEqual(code, 0, stderr + stdout)
        self.assertTrue((place.work / "hello.txt").exists(), stdout + stderr)
        committed = os.popen(f"cd {place.work} && git log --oneline 2>&1").read()
        self.assertIn("made", committed, stdout + stderr)


def case(name):
    return type(name.capitalize(), (Real, unittest.TestCase), {"name": name})


class Together(unittest.TestCase):
    def test_a_coder_and_a_reviewer_of_two_makes(self):
        place = Place([dict(WRITE), DONE, says(f"The file is right.\n{MARKER}")], "claude", "codex")
        self.addCleanup(place.close)
        place.config({"coder": {"backend": "claude", "systemPromptText": "You code."},
                      "reviewer": place.agent("codex", systemPromptText="You review.", permissions="read")})
        code, stdout, stderr = place.run("coder:3 -> reviewer:1", "-p", PROMPT)
        self.assertEqual(code, 0, stderr + stdout)
        self.assertEqual((place.work / "hello.txt").read_text(), "hi\n")
        self.assertEqual(place.file(1, "2-reviewer/1", "final.md"), f"The file is right.\n{MARKER}")
        self.assertIn("You review.", place.said(place.requests()[2]))
        code, stdout, stderr = place.run("runs", "show")
        self.assertIn("cost", stdout)


def main():
    wanted = [name for name in sys.argv[1:] if name in CLIS] or [name for name in CLIS if is_installed(name)]
    loader, suite = unittest.TestLoader(), unittest.TestSuite()
    pattern = os.environ.get("FORKHESTRA_REAL_TEST", "")
    cases = [case(name) for name in wanted] + ([Together] if {"claude", "codex"} <= set(wanted) else [])
    for tests in (loader.loadTestsFromTestCase(one) for one in cases):
        suite.addTests(test for test in tests if pattern in test.id())
    if suite.countTestCases() == 0:
        sys.exit("no test ran")
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())


if __name__ == "__main__":
    main()
