#!/usr/bin/env python3
"""What only claude has: the dry run is what its model gets, settings, denied tools (test_clis.py has what all have).

    tests/real/install.sh claude && cargo build && python3 tests/real/test_claude.py
"""
import json
import re
import unittest

from place import MARKER, Place, says

PROMPT = "Write hello.txt containing hi"
WRITES = {"text": "I will write the file.", "do": "write", "path": "${WORK}/hello.txt", "content": "hi\n"}
DONE = says(f"hello.txt is there.\n\n{MARKER}\n")


class Claude(unittest.TestCase):
    def place(self, script):
        place = Place(script)
        self.addCleanup(place.close)
        return place

    def test_coder_and_reviewer_run_to_their_markers(self):
        place = self.place([WRITES, DONE, says("The file is right.\n\nVERDICT: approve")])
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
            # What the dry run shows is what the model gets, byte for byte; what only a run knows stands in braces.
            users, at = "\n".join(request["users"]), 0
            for piece in re.split(r"\{\{\w+\}\}", step["prompt"]["text"]):
                self.assertIn(piece, users[at:])
                at = users.index(piece, at) + len(piece)
            system = step["args"][step["args"].index("--append-system-prompt") + 1]
            self.assertIn(system, request["system"])
        runs = place.work / ".forkhestra/runs/1"
        self.assertIn((runs / "1-coder/1/prompt.md").read_text().rstrip(), "\n".join(first["users"]))
        self.assertIn("  ✓ approves\n", stderr)
        self.assertEqual((runs / "2-reviewer/1/final.md").read_text(), "The file is right.\n\nVERDICT: approve")
        self.assertEqual(place.left(), [])

    def test_a_model_that_never_ends_is_stopped_after_three(self):
        place = self.place([says(f"Still working; I will say {MARKER} later.")])
        code, _, stderr = place.run("coder:3", "-p", PROMPT)
        self.assertEqual((code, len(place.requests())), (1, 3), stderr)
        self.assertIn(f"coder did not print {MARKER} in 3 iterations", stderr)

    def test_a_denied_tool_is_shown(self):
        place = self.place([{"do": "shell", "command": "python3 -c pass"}, DONE])
        code, _, stderr = place.run("coder:1", "-p", PROMPT)
        self.assertIn("refused: Bash(", stderr)
        self.assertEqual(code, 0, stderr)

    def test_a_message_of_a_person_reaches_the_next_iteration_of_a_run_in_the_background(self):
        waits = {"do": "shell", "command": "touch up; while [ ! -e go ]; do sleep 0.05; done"}
        place = self.place([waits, says("Not done yet."), WRITES, DONE])
        place.config({"coder": place.agent("claude", permissions="full")})
        code, stdout, stderr = place.run("run", "--detach", "coder:3", "-p", PROMPT)
        self.assertEqual(code, 0, stderr)
        self.assertIn("run 1 is running in the background", stdout)
        attached = place.start("attach")
        place.wait_for("up", attached)
        code, stdout, stderr = place.run("tell", "Say hi in lower case.")
        self.assertEqual(code, 0, stderr)
        (place.work / "go").touch()
        stdout, stderr = attached.communicate(timeout=60)
        self.assertEqual(attached.returncode, 0, stderr)
        self.assertIn("message from a person: Say hi in lower case.", stdout.decode())
        self.assertIn("coder:3: complete", stdout.decode())
        asked = ["> Say hi in lower case." in place.said(request) for request in place.requests()]
        self.assertEqual(asked, [False, False, True, True])
        self.assertEqual(place.left(), [])

    def test_an_error_of_the_model_server_is_a_failure_in_its_words(self):
        place = self.place({"turns": [{"error": {"status": 401, "message": "no such key"}}], "main": "any"})
        code, _, stderr = place.run("coder", "-p", PROMPT)
        self.assertEqual(code, 1, stderr)
        self.assertIn("its program reports: ", stderr)

    def test_settings_of_an_agent_reach_the_program(self):
        place = self.place([{"do": "shell", "command": "printf ok > made"}, DONE])
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
