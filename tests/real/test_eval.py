#!/usr/bin/env python3
"""`eval improve` with the real claude: a candidate that wins on the cases that it was improved by, and loses on the held-out ones.

    tests/real/install.sh claude && cargo build && python3 tests/real/test_eval.py
"""
import json
import re
import unittest

from place import Place, says

TEXTS = {"first": "apples and pears", "second": "plums and cherries", "third": "bread and butter"}


def passes(score=1.0):
    return says(json.dumps({"pass": True, "score": score, "issues": [], "suggestions": []}))


def fails(issue, suggestion):
    return says(json.dumps({"pass": False, "score": 0.2, "issues": [issue], "suggestions": [suggestion]}))


def answers(prompt, text, answer):
    """What the model says to a prompt on a text; in a request's body newlines are escaped."""
    return {"when": f"Task: lists.*{re.escape(prompt)}.*Input:.{{1,4}}{re.escape(text)}", "turns": [says(answer)] * 3}


def judges(answer, turn):
    return {"when": f"You judge the output.*{re.escape(answer)}", "turns": [turn] * 3}


ORIGINAL, SECOND = "List the things.", "List the things with bullets."
THIRD = "List the things with bullets, sorted backwards."


class Improve(unittest.TestCase):
    def test_a_prompt_that_is_better_on_its_training_cases_only_does_not_win(self):
        scripts = {"default": {"turns": [says("nobody asked this")]}}
        # The improver, generation after generation.
        scripts["improver"] = {"when": "You rewrite a prompt", "turns": [says(f"```\n{SECOND}\n```"), says(f"```markdown\n{THIRD}\n```")]}
        for name, text in TEXTS.items():
            for generation, prompt in enumerate((THIRD, SECOND, ORIGINAL)):
                answer = f"answer-{name}-{2 - generation}"
                scripts[f"{generation}-{name}"] = answers(prompt, text, answer)
                held_out = name == "third"
                good = held_out if generation > 0 else not held_out
                scripts[f"judge-{generation}-{name}"] = judges(
                    answer, passes() if good else fails(f"the bullets are wrong in {name}-{generation}", "use bullets"))
        place = Place({"scripts": scripts})
        self.addCleanup(place.close)
        place.config({"writer": place.agent("claude"), "critic": place.agent("claude")})
        cases = [{"id": name, "text": text} for name, text in TEXTS.items()]
        (place.work / "prompt.md").write_text(ORIGINAL + "\n")
        (place.work / "suite.json").write_text(json.dumps({
            "taskType": "lists", "promptFile": "prompt.md", "executor": "writer", "evaluator": "critic", "improver": "writer",
            "cases": cases}))
        line = ["eval", "improve", "suite.json", "--holdout", "0.3", "--write"]
        seed = next(str(seed) for seed in range(50)
                    if "held out   third\n" in place.run(*line, "--seed", str(seed), "--dry-run")[1])
        code, stdout, stderr = place.run(*line, "--seed", seed, "-j", "2")
        self.assertEqual(code, 1, stdout + stderr)
        self.assertIn("the original prompt is kept: generation 2 is better on the training cases", stdout, stderr)
        self.assertEqual((place.work / "prompt.md").read_text(), ORIGINAL + "\n")
        results = json.loads(place.run("eval", "show", "--json")[1])
        scores = [(one["training"]["passed"], (one["heldOut"] or {}).get("passed")) for one in results["generations"]]
        self.assertEqual(scores, [(0, 1), (0, None), (2, 0)])
        # What the improver was told: issues of training cases, no text, and nothing of the held-out one.
        told = [place.said(request) for request in place.requests() if "You rewrite a prompt" in place.said(request)]
        self.assertIn("the bullets are wrong in first-2", told[0])
        self.assertEqual([text for text in (*TEXTS.values(), "third") if text in told[0]], [])
        self.assertIn("at most 42" if results["generations"][0]["tokens"] == 2 else "at most 44", told[0])
        self.assertEqual(place.left(), [])
        # A second time nothing is paid for but the improver.
        before = len(place.requests())
        place.run(*line, "--seed", seed)
        again = [request for request in place.requests()[before:] if "You rewrite a prompt" not in place.said(request)]
        self.assertEqual(again, [])


if __name__ == "__main__":
    unittest.main()
