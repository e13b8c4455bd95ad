#!/usr/bin/env python3
"""Evaluations with the real claude: a candidate that wins on the cases that it was improved by, and loses on the held-out ones; the
suites of the built-in prompts, on trees of files.

    tests/real/install.sh claude && cargo build && python3 tests/real/test_eval.py
"""
import json
import os
import pathlib
import re
import shutil
import unittest

from place import MARKER, Place, says

EVALS = pathlib.Path(__file__).resolve().parent.parent.parent / "evals"

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


# How each fault in evals/trees is fixed, with words of its case.
FIXES = {
    "median": "sed -i 's|    sorted.get(sorted.len() / 2).copied()|    let middle = sorted.len() / 2;\\n"
              "    let upper = sorted.get(middle).copied()?;\\n"
              "    Some(if sorted.len() % 2 == 1 { upper } else { (sorted[middle - 1] + upper) / 2.0 })|' src/lib.rs",
    "The last page": "sed -i 's|len(items) // size|-(-len(items) // size)|' listing.py",
    "a dash at the end of titles": "sed -i 's|.replace(.*;|.match(/[a-z0-9]+/g)?.join(\"-\") ?? \"\";|' slug.js",
}


class Trees(unittest.TestCase):
    """Recorded answers to the built-in prompts, and to worse ones."""

    def place(self, scripts):
        place = Place({"scripts": {"default": {"turns": [says("nobody asked this")] * 99}, **scripts}})
        self.addCleanup(place.close)
        # cargo, found by rustup, looks for its toolchains in the real home.
        home = pathlib.Path.home()
        place.variables.update(CARGO_HOME=os.environ.get("CARGO_HOME", str(home / ".cargo")),
                               RUSTUP_HOME=os.environ.get("RUSTUP_HOME", str(home / ".rustup")))
        for name in ("evals", "prompts", "schemas"):
            shutil.copytree(EVALS.parent / name, place.work / name)
        return place

    def lost(self, place, suite, worse, role):
        """The suite with the built-in prompt, and then with a worse one."""
        line = ["-C", "evals", "eval", "run", suite, "--repeat", "2", "-j", "2"]
        code, stdout, stderr = place.run(*line)
        self.assertEqual(code, 0, stdout + stderr)
        (place.work / f"prompts/{role}.md").write_text(worse)
        code, stdout, stderr = place.run(*line, "--baseline", "1")
        self.assertEqual(code, 1, stdout + stderr)
        self.assertRegex(stdout, r"compared with run 1 \([34] cases\): worse by 0\.\d+; by chance, it looks as bad in [0-4]", stderr)
        self.assertEqual(place.left(), [])
        self.assertEqual(list((place.folder / "tmp").glob("forkhestra-*")), [], "no copy of a tree is left")

    def test_a_worse_prompt_of_the_coder_loses(self):
        scripts = {"worse": {"mode": "history", "when": "Do as little as you can", "turns": [says(f"It is fine.\n{MARKER}")]}}
        for index, (words, command) in enumerate(FIXES.items()):
            turns = [{"text": "I change it.", "do": "shell", "command": command}, says(f"Fixed.\n{MARKER}")]
            scripts[f"good-{index}"] = {"mode": "history", "when": f"(?s)(?=.*What you may answer)(?=.*{words})", "turns": turns}
        self.lost(self.place(scripts), "coder.json5", "# Do as little as you can\n\n{{task_prompt}}\n", "coder")

    def test_a_worse_prompt_of_the_reviewer_loses(self):
        approves, rejects = says("I read it all.\n\nVERDICT: approve"), says("- wrong at the end\n\nVERDICT: reject")
        scripts = {"worse": {"mode": "history", "when": "Approve everything", "turns": [approves]},
                   "wrong": {"mode": "history", "when": r"middle \+ 1|// size \+ 1", "turns": [rejects]},
                   "right": {"mode": "history", "when": "What was changed", "turns": [approves]}}
        self.lost(self.place(scripts), "reviewer.json5", "# Approve everything\n\n{{git_diff_output}}\n", "reviewer")


if __name__ == "__main__":
    unittest.main()
