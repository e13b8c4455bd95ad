#!/usr/bin/env python3
"""Verdicts by typed tools, and evaluations by a schema, with the real agent CLIs at the level `read`, offline (stub_llm.py).

    tests/real/install.sh claude codex && cargo build && python3 tests/real/test_mcp.py claude codex

Without names: all of the five that are installed.
"""
import json
import sys
import unittest

from place import MARKER, Place, is_installed, says

NAMES = ("claude", "codex", "opencode", "qwen", "copilot")
LOOKED = says("I looked at it.")
EVALUATION = {"pass": False, "score": 0.25, "issues": ["it is short"], "suggestions": ["write more"]}
# How a model gives what its schema asks for: by a tool, or as its message.
BY_SCHEMA = {"claude": {"tool": "StructuredOutput", "input": EVALUATION}, "codex": says(json.dumps(EVALUATION)),
             "qwen": {"tool": "structured_output", "input": EVALUATION}}


def tool(name, **arguments):
    return {"do": "mcp", "tool": name, "input": arguments}


class Real:
    """The tests of one CLI."""
    name = ""

    def place(self, script):
        place = Place(script, self.name)
        self.addCleanup(place.close)
        return place

    def test_a_judge_at_read_rejects_and_approves_by_tool(self):
        finding = {"file": "work.txt", "line": 1, "what": "it is empty"}
        place = self.place([tool("reject", findings=[finding]), LOOKED, tool("approve", notes="Now it is right."), LOOKED])
        place.config({"coder": {"command": ["sh", "-c", "date +%N >> work.txt"]},
                      "judge": place.agent(self.name, role="judge", permissions="read")})
        code, stdout, stderr = place.run("(coder -> judge):2", "-p", "Judge it.")
        self.assertEqual(code, 0, stderr + stdout)
        self.assertIn("✗ rejects (rejection 1)\n    work.txt:1: it is empty", stderr)
        self.assertIn("✓ approves", stderr)
        shown = json.loads(place.run("runs", "show", "--json")[1])
        self.assertEqual([(f["state"], f["file"], f["line"]) for f in shown["findings"]], [("fixed", "work.txt", 1)])
        self.assertIn('"from": "call"', place.file(1, "2-judge/2", "verdict.json"))
        self.assertEqual(place.left(), [])

    def test_a_worker_cannot_approve_by_tool(self):
        place = self.place([tool("approve"), says(f"I tried.\n{MARKER}")])
        place.config({"coder": place.agent(self.name), "judge": {"command": ["echo", "VERDICT: dispute"], "role": "judge"}})
        code, stdout, stderr = place.run("(coder:1 -> judge):1", "-p", "Work.")
        self.assertEqual(code, 3, stderr + stdout)
        self.assertNotIn("approves", stderr)
        self.assertFalse((place.work / ".forkhestra/runs/1/1-coder/1/verdict.json").exists())

    def test_a_tool_call_that_contradicts_the_line_is_unclear(self):
        place = self.place([tool("approve"), says("It is broken.\nVERDICT: reject")])
        place.config({"judge": place.agent(self.name, role="judge", permissions="read")})
        code, stdout, stderr = place.run("judge", "-p", "Judge it.", "--limit", "attempts=1")
        self.assertIn("it gave different verdicts: approve, reject", stderr, stdout)
        self.assertNotEqual(code, 0)


class Evaluating(unittest.TestCase):
    def evaluates(self, name):
        if not is_installed(name):
            self.skipTest("not installed")
        place = Place([BY_SCHEMA[name], says("Done.")], name)
        self.addCleanup(place.close)
        place.config({"judge": place.agent(name, role="judge", verdict="evaluation", permissions="read")})
        code, stdout, stderr = place.run("judge", "-p", "Judge it.")
        self.assertEqual(code, 1, stderr + stdout)
        self.assertIn("✗ rejects (rejection 1)", stderr)
        self.assertIn("it is short", stderr)
        self.assertIn("additionalProperties", json.dumps(place.requests()[0]["body"]))

    def test_claude_is_held_to_the_schema_of_an_evaluation(self):
        self.evaluates("claude")

    def test_codex_is_held_to_the_schema_of_an_evaluation(self):
        self.evaluates("codex")

    def test_qwen_is_held_to_the_schema_of_an_evaluation(self):
        self.evaluates("qwen")


def main():
    wanted = [name for name in sys.argv[1:] if name in NAMES] or [name for name in NAMES if is_installed(name)]
    loader, suite = unittest.TestLoader(), unittest.TestSuite()
    for name in wanted:
        suite.addTests(loader.loadTestsFromTestCase(type(name.capitalize(), (Real, unittest.TestCase), {"name": name})))
    suite.addTests(loader.loadTestsFromTestCase(Evaluating))
    print("real CLIs:", ", ".join(wanted) or "none", flush=True)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)


if __name__ == "__main__":
    main()
