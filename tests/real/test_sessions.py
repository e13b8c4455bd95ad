#!/usr/bin/env python3
"""Sessions that are continued by the real agent CLIs, offline: what the first request of a repair sends anew.

    tests/real/install.sh claude codex && cargo build && python3 tests/real/test_sessions.py claude codex

Without names: all that can continue a session and are installed.
"""
import json
import sys
import unittest

from place import Place, is_installed, says

NAMES = ("claude", "codex", "opencode")
# The most that the first request of a continued round may send anew, as a share of the whole.
MOST = 0.05
READ = {"do": "shell", "command": "cat big.txt"}
WRITE = {"do": "write", "path": "${WORK}/hello.txt", "content": "hi\n"}
REPAIR = {"do": "shell", "command": "echo hello > hello.txt"}
# Without a model of its own, claude continues with another variant of its default model, and sends everything anew.
MODELS = {"claude": {"model": "opus"}}


def without_marks(value):
    """A request without the marks for the cache, which move from request to request."""
    if isinstance(value, dict):
        return {key: without_marks(inner) for key, inner in value.items() if key != "cache_control"}
    return [without_marks(inner) for inner in value] if isinstance(value, list) else value


def parts(request):
    """What a cache compares, in its order: tools, instructions, messages."""
    body = request["body"] if isinstance(request["body"], dict) else json.loads(request["body"])
    body = without_marks(body)
    fixed = [body.get("tools"), body.get("system"), body.get("instructions")]
    return [json.dumps(part, sort_keys=True) for part in fixed + (body.get("messages") or body.get("input"))]


def sent_anew(before, after):
    """How much of a request is no prefix of what an earlier one has sent, as a share."""
    before, after = parts(before), parts(after)
    same = next((at for at, (one, other) in enumerate(zip(before, after)) if one != other), min(len(before), len(after)))
    return sum(map(len, after[same:])) / sum(map(len, after))


class Real:
    """The tests of one CLI."""
    name = ""

    def place(self, script, judge, **keys):
        place = Place(script, self.name)
        self.addCleanup(place.close)
        (place.work / "big.txt").write_text("".join(f"line {number}: all work and no play\n" for number in range(400)))
        (place.work / "judge.sh").write_text(judge)
        place.config({"coder": place.agent(self.name, permissions="full", session="continue", **MODELS.get(self.name, {}), **keys),
                      "judge": {"command": ["sh", "judge.sh"], "role": "judge"}})
        return place

    JUDGE = ('if [ "$FORKHESTRA_ROUND" = 1 ]; then echo "- hello.txt:1: say hello"; echo "VERDICT: reject"; '
             'else echo "VERDICT: approve"; fi\n')

    def test_a_repair_sends_hardly_anything_anew(self):
        place = self.place([READ, WRITE, says("Done."), REPAIR, says("Repaired.")], self.JUDGE)
        code, stdout, stderr = place.run("(coder -> judge):2", "-p", "Write hello.txt.")
        self.assertEqual(code, 0, stderr + stdout)
        self.assertIn("continuing the session", stderr)
        requests = place.requests()
        share = sent_anew(requests[2], requests[3])
        print(f"{self.name}: a continued round sends {100 * share:.2f} % anew, "
              f"{len(json.dumps(requests[3]['body'])) / 1000:.1f} kB in all", flush=True)
        self.assertLessEqual(share, MOST)
        self.assertIn("say hello", place.said(requests[3]))
        self.assertEqual(place.left(), [])

    def test_a_stale_session_is_begun_anew_uncharged(self):
        lose = "rm -rf $HOME/.claude/projects $HOME/.codex/sessions $HOME/.codex/*.sqlite* $HOME/.local/share/opencode\n"
        place = self.place([WRITE, says("Done."), REPAIR, says("Repaired.")], lose + self.JUDGE)
        code, stdout, stderr = place.run("(coder -> judge):2", "-p", "Write hello.txt.", "--limit", "attempts=4")
        self.assertEqual(code, 0, stderr + stdout)
        self.assertIn("could not continue its session", stderr)
        self.assertIn("Write hello.txt.", place.said(place.requests()[-1]))
        self.assertEqual(place.left(), [])


def main():
    wanted = [name for name in sys.argv[1:] if name in NAMES] or [name for name in NAMES if is_installed(name)]
    loader, suite = unittest.TestLoader(), unittest.TestSuite()
    for name in wanted:
        suite.addTests(loader.loadTestsFromTestCase(type(name.capitalize(), (Real, unittest.TestCase), {"name": name})))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)


if __name__ == "__main__":
    main()
