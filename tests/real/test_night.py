#!/usr/bin/env python3
"""A night with the real claude: a budget, a service that is down, a login that expires.

    tests/real/install.sh claude && cargo build && python3 tests/real/test_night.py
"""
import json
import unittest

from place import MARKER, Place, says

PROMPT = "Write hello.txt containing hi"
WRITES = {"text": "I will write the file.", "do": "write", "path": "${WORK}/hello.txt", "content": "hi\n"}
DONE = says(f"hello.txt is there.\n\n{MARKER}\n")


def expensive(turn):
    """The same turn, for which the model used 600,000 tokens."""
    return {**turn, "usage": {"input": 600_000, "output": 100}}


class Night(unittest.TestCase):
    def place(self, script):
        place = Place(script)
        place.variables["CLAUDE_CODE_MAX_RETRIES"] = "0"
        self.addCleanup(place.close)
        return place

    def test_claude_keeps_to_what_is_left_of_the_cost(self):
        reads = {"text": "I look.", "do": "shell", "command": "git status"}
        place = self.place([expensive(reads)] * 6 + [DONE])
        code, stdout, stderr = place.run("coder", "-p", PROMPT, "--limit", "cost=1")
        self.assertEqual(code, 4, stderr + stdout)
        self.assertIn("the limit `cost` of $1 was reached", stderr)
        # One request of 600,000 tokens costs more than all that is left: there is no second one.
        self.assertLessEqual(len(place.requests()), 2, stderr)
        print(f"six turns of 600,000 tokens under cost=1: {len(place.requests())} requests", flush=True)

    def test_what_is_finished_counts_although_it_cost_more(self):
        place = self.place([expensive(DONE)])
        code, stdout, stderr = place.run("coder:3", "-p", PROMPT, "--limit", "cost=1")
        self.assertEqual(code, 0, stderr + stdout)
        self.assertIn("the limit `cost` of $1 was exceeded by", stderr)

    def test_a_service_that_is_down_is_waited_for(self):
        down = [{"error": {"status": status, "message": "down"}} for status in (500, 503, 502)]
        place = self.place([*down, WRITES, DONE])
        code, stdout, stderr = place.run("coder:1", "-p", PROMPT, "--limit", "attempts=1")
        self.assertEqual(code, 0, stderr + stdout)
        self.assertIn("coder: waiting for the service, 4.0 s, then the same iteration again", stderr)
        self.assertEqual((place.work / "hello.txt").read_text(), "hi\n")
        outcomes = [attempt["outcome"] for attempt in place.finished()]
        self.assertEqual(outcomes, [{"type": "unavailable", "reason": "service"}] * 3 + [{"type": "completed"}])

    def test_a_server_that_is_not_there_is_waited_for(self):
        place = self.place([WRITES, DONE])
        base, place.variables["ANTHROPIC_BASE_URL"] = place.base, "http://127.0.0.1:9"
        process = place.start("coder:1", "-p", PROMPT)
        place.wait_for(".forkhestra/runs/1/1-coder/2", process)
        process.kill()
        process.communicate()
        place.variables["ANTHROPIC_BASE_URL"] = base
        code, stdout, stderr = place.run("resume")
        self.assertEqual(code, 0, stderr + stdout)

    def test_a_login_that_expires_in_a_queue_of_three_is_waited_for(self):
        refused = {"error": {"status": 401, "message": "OAuth token has expired"}}
        place = self.place([WRITES, says("Done."), refused, refused, WRITES, says("Done."), WRITES, says("Done.")])
        place.variables["FORKHESTRA_TEST_WAIT_MS"] = "300"
        told = place.folder / "tmp/told"
        place.config({"coder": {"backend": "claude"}}, hooks={"onHuman": f"cat >> {told}"},
                     chains={"task": {"steps": [{"agent": "coder"}]}})
        for title in ("One", "Two", "Three"):
            place.run("task", "add", title)
        code, stdout, stderr = place.run("task", "run", "--all")
        self.assertEqual(code, 0, stderr + stdout)
        self.assertIn("coder: waiting for a login, 5 min 0 s", stderr)
        self.assertIn("3 tasks: 3 completed", stderr)
        self.assertEqual(told.read_text().count("waitStarted"), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
