#!/usr/bin/env python3
"""The real claude CLI, headless and offline: a model server on loopback answers it by a script (stub_llm.py).

    tests/real/install.sh claude && cargo build && python3 tests/real/test_claude.py
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
FORKHESTRA = os.environ.get("FORKHESTRA_BIN", str(HERE.parent.parent / "target/debug/forkhestra"))
CACHE = pathlib.Path(os.environ.get("FORKHESTRA_REAL") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "forkhestra-real")
MARKER = "FORKHESTRA_COMPLETE"
PROMPT = "Write hello.txt containing hi"


class Place:
    """Folders of one test, a scripted model, and the program."""

    def __init__(self, script):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="forkhestra-real-"))
        for name in ("home", "work", "tmp"):
            (self.folder / name).mkdir()
        self.work = self.folder / "work"
        (self.folder / "script.json").write_text(json.dumps(script))
        self.log = self.folder / "requests.jsonl"
        self.stub = subprocess.Popen(
            [sys.executable, str(HERE / "stub_llm.py"), "--script", str(self.folder / "script.json"), "--log", str(self.log)],
            stdout=subprocess.PIPE, text=True)
        self.port = int(self.stub.stdout.readline().split()[1])

    def environment(self):
        return {
            "PATH": f"{CACHE / 'claude/node_modules/.bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder / "home"), "TMPDIR": str(self.folder / "tmp"), "LANG": "C.UTF-8",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.port}", "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "0",
            "CLAUDECODE": "1", "FORKHESTRA_TEST_TAG": self.folder.name,
        }

    def start(self, *arguments):
        return subprocess.Popen([FORKHESTRA, *arguments], cwd=self.work, env=self.environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def run(self, *arguments):
        process = self.start(*arguments)
        stdout, stderr = process.communicate(timeout=120)
        return process.returncode, stdout.decode(), stderr.decode()

    def requests(self):
        if not self.log.exists():
            return []
        lines = [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if line.get("kind") == "main"]

    def left(self):
        """Living processes of this test, the model server aside."""
        tag = f"FORKHESTRA_TEST_TAG={self.folder.name}".encode()
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if tag in (entry / "environ").read_bytes().split(b"\0") and b") Z " not in (entry / "stat").read_bytes():
                    found.append((entry.name, (entry / "cmdline").read_bytes().replace(b"\0", b" ")))
            except OSError:
                pass
        return found

    def close(self):
        self.stub.terminate()
        self.stub.wait()
        self.stub.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def says(text):
    return {"text": text}


WRITES = {"text": "I will write the file.", "do": "write", "path": "hello.txt", "content": "hi\n"}
DONE = says(f"hello.txt is there.\n\n{MARKER}\n")


class Claude(unittest.TestCase):
    def place(self, script):
        place = Place(script)
        self.addCleanup(place.close)
        return place

    def test_coder_and_reviewer_run_to_their_markers(self):
        place = self.place([dict(WRITES, path="${WORK}/hello.txt"), DONE, says(f"The file is right.\n{MARKER}")])
        # The write tool wants an absolute path.
        script = json.loads((place.folder / "script.json").read_text().replace("${WORK}", str(place.work)))
        self.reload(place, script)
        code, _, _ = place.run("coder:3 -> reviewer:1", "-p", PROMPT, "--dry-run")
        self.assertEqual(code, 0)
        shown = json.loads(place.run("coder:3 -> reviewer:1", "-p", PROMPT, "--dry-run", "--json")[1])
        code, stdout, stderr = place.run("coder:3 -> reviewer:1", "-p", PROMPT)
        self.assertEqual(code, 0, stderr)
        self.assertEqual((place.work / "hello.txt").read_text(), "hi\n")
        self.assertIn("I will write the file.\n[Write] ", stdout)
        self.assertIn("done, marker seen", stderr)
        self.assertIn("3,150 tokens", stderr)
        first, reviewer = place.requests()[0], place.requests()[2]
        for request, step in ((first, shown["steps"][0]), (reviewer, shown["steps"][1])):
            # What the dry run shows is what the model gets, byte for byte.
            self.assertIn(step["prompt"]["text"], request["users"])
            system = step["args"][step["args"].index("--append-system-prompt") + 1]
            self.assertIn(system, request["system"])
        runs = place.work / ".forkhestra/runs/1"
        self.assertEqual((runs / "1-coder/1/prompt.md").read_text(), PROMPT)
        self.assertEqual((runs / "2-reviewer/1/final.md").read_text(), f"The file is right.\n{MARKER}")
        self.assertEqual(place.left(), [])

    def reload(self, place, script):
        import urllib.request
        url = f"http://127.0.0.1:{place.port}/__stub/script"
        urllib.request.urlopen(urllib.request.Request(url, data=json.dumps(script).encode(), method="POST")).read()

    def test_a_model_that_never_ends_is_stopped_after_three(self):
        place = self.place([says(f"Still working; I will say {MARKER} later.")])
        code, _, stderr = place.run("coder:3", "-p", PROMPT)
        self.assertEqual((code, len(place.requests())), (1, 3), stderr)
        self.assertIn(f"coder did not print {MARKER} in 3 iterations", stderr)

    def test_prompts_arrive_byte_for_byte(self):
        for prompt in ("-p --help", "two\nlines\n\n", "\"q\" '$HOME' `x` \\n ünï 🚀\t<x>&amp;</x>\n", "y" * 200_000 + "\nend"):
            place = self.place([DONE])
            (place.work / "prompt.md").write_text(prompt)
            code, _, stderr = place.run("coder:1", "--prompt-file", "prompt.md")
            self.assertEqual(code, 0, stderr)
            self.assertTrue(prompt in place.requests()[0]["users"], prompt[:40])

    def test_a_denied_tool_is_shown(self):
        place = self.place([{"do": "shell", "command": "python3 -c pass"}, DONE])
        code, _, stderr = place.run("coder:1", "-p", PROMPT)
        self.assertIn("refused tools: Bash", stderr)
        self.assertEqual(code, 0, stderr)

    def test_an_error_of_the_model_server_is_a_failure_in_its_words(self):
        place = self.place({"turns": [{"error": {"status": 401, "message": "no such key"}}], "main": "any"})
        code, _, stderr = place.run("coder", "-p", PROMPT)
        self.assertEqual(code, 1, stderr)
        self.assertIn("its program reports: ", stderr)

    def test_settings_of_an_agent_reach_the_program(self):
        place = self.place([{"do": "shell", "command": "printf ok > made"}, DONE])
        (place.work / "forge").mkdir()
        (place.work / "forge/chains.json").write_text(json.dumps({"agents": {"w": {
            "systemPromptText": "You are W.", "model": "claude-sonnet-4-5", "maxTurns": 5, "allowedTools": ["Bash", "Read"],
            "disallowedTools": ["WebSearch"]}}, "chains": {"c": {"steps": [{"agent": "w", "iterations": 1}]}}}))
        code, _, stderr = place.run("--chain", "c", "-p", PROMPT)
        self.assertEqual(code, 0, stderr)
        self.assertEqual((place.work / "made").read_text(), "ok")
        request = place.requests()[0]
        self.assertEqual(request["model"], "claude-sonnet-4-5")
        self.assertIn("You are W.", request["system"])
        self.assertNotIn("WebSearch", request["tools"])

    def test_a_signal_ends_claude_and_its_tools(self):
        for number, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            place = self.place([{"do": "shell", "command": "echo up > up; sleep 1000"}])
            (place.work / "forge").mkdir()
            (place.work / "forge/chains.json").write_text(json.dumps(
                {"agents": {"coder": {"allowedTools": ["Bash"]}}, "chains": {}}))
            process = place.start("coder", "-p", PROMPT)
            deadline = time.time() + 60
            while not (place.work / "up").exists() and time.time() < deadline:
                time.sleep(0.02)
            process.send_signal(number)
            _, stderr = process.communicate(timeout=60)
            self.assertEqual(process.returncode, expected, stderr.decode())
            self.assertEqual(place.left(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
