"""The action, step by step, with the environment of a runner: tests/real/test_action.py ARCHIVE, a release archive."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
ARCHIVE = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None


class Runner:
    """What GitHub's runner does with a composite action: files for commands, expressions, one shell for each step."""

    def __init__(self, case):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="action-"))
        case.addCleanup(subprocess.run, ["rm", "-rf", self.folder], check=False)
        self.project = self.folder / "project"
        (self.project / "forge").mkdir(parents=True)
        self.path = os.environ["PATH"]
        self.outputs = {}
        self.log = ""
        self.kept = None

    def commit(self):
        for words in [["init", "--quiet"], ["add", "."], ["-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "--message=m"]]:
            subprocess.run(["git", *words], cwd=self.project, check=True)

    def filled(self, text, inputs):
        values = {f"inputs.{name}": value for name, value in inputs.items()}
        values |= {f"steps.run.outputs.{name}": value for name, value in self.outputs.items()}
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: str(values.get(found[1], "")), text)

    def use(self, cancel=None, **given):
        """Runs the steps. Returns the code of the first that failed, else 0. Once a file is there, the run is cancelled."""
        inputs = {name: described.get("default", "") for name, described in ACTION["inputs"].items()}
        inputs |= {"working-directory": self.project, "archive": ARCHIVE} | {name.replace("_", "-"): value for name, value in given.items()}
        (self.folder / "temp").mkdir(exist_ok=True)
        code = 0
        for step in ACTION["runs"]["steps"]:
            if code and not step.get("if", "").startswith("always()"):
                continue
            if "uses" in step:
                results = self.filled(step["with"]["path"], inputs)
                self.kept = {file.name for file in pathlib.Path(results).iterdir()} if results else None
                continue
            files = {name: self.folder / "temp" / name.lower() for name in ["GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_ENV", "GITHUB_STEP_SUMMARY"]}
            for file in files.values():
                file.touch()
            environment = {"PATH": self.path, "HOME": str(self.folder), "GITHUB_ACTIONS": "true", "RUNNER_TEMP": str(self.folder / "temp"),
                           "GITHUB_ACTION_PATH": str(ROOT)}
            environment |= {name: str(file) for name, file in files.items()}
            environment |= {name: self.filled(value, inputs) for name, value in step.get("env", {}).items()}
            words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            where = self.filled(step.get("working-directory", str(self.folder)), inputs)
            with subprocess.Popen(words, env=environment, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ran:
                if cancel and step.get("id") == "run":
                    until = time.monotonic() + 60
                    while not (self.project / cancel).exists():
                        assert time.monotonic() < until, cancel
                        time.sleep(0.05)
                    ran.send_signal(signal.SIGINT)
                self.log += ran.communicate(timeout=120)[0]
            code = code or ran.returncode
            self.path = ":".join([*files["GITHUB_PATH"].read_text().split(), os.environ["PATH"]])
            if step.get("id") == "run":
                self.outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
        return code


class Action(unittest.TestCase):
    def runner(self, script):
        runner = Runner(self)
        config = {"agents": {"worker": {"command": ["sh", "-c", script]}}, "chains": {"ship": {"steps": ["worker:2"], "prompt": "p"}}}
        (runner.project / "forge/chains.json").write_text(json.dumps(config))
        runner.commit()
        return runner

    def test_a_complete_run_has_its_outputs_its_report_and_a_patch_that_applies(self):
        runner = self.runner("echo hello > new.txt; env > seen.txt; echo evil=1 >> ${GITHUB_OUTPUT:-/dev/null}; echo FORKHESTRA_COMPLETE")
        self.assertEqual(runner.use(chain="ship"), 0, runner.log)
        said = {name: runner.outputs.get(name) for name in ["state", "exit-code", "cost", "run", "evil"]}
        self.assertEqual(said, {"state": "complete", "exit-code": "0", "cost": "", "run": "1", "evil": None})
        self.assertEqual(runner.kept, {"summary.json", "report.html", "changes.patch"})
        seen = (runner.project / "seen.txt").read_text()
        self.assertFalse([line for line in seen.splitlines() if line.startswith(("GITHUB_ENV=", "GITHUB_PATH=", "GITHUB_OUTPUT="))], seen)
        subprocess.run(["git", "clean", "-fdq"], cwd=runner.project, check=True)
        subprocess.run(["git", "apply", "--index", runner.outputs["patch"]], cwd=runner.project, check=True)
        self.assertEqual((runner.project / "new.txt").read_text(), "hello\n")
        self.assertIn("complete", (runner.folder / "temp/github_step_summary").read_text())

    def test_what_an_agent_commits_is_in_the_patch(self):
        runner = self.runner("echo x > a; git add a; git -c user.name=n -c user.email=e commit -qm m; echo FORKHESTRA_COMPLETE")
        self.assertEqual(runner.use(chain="ship"), 0, runner.log)
        self.assertIn("+++ b/a", pathlib.Path(runner.outputs["patch"]).read_text())

    def test_the_patch_deletes_nothing_that_git_has_and_ignores(self):
        runner = self.runner("rm gone; echo x > ignored.new; echo FORKHESTRA_COMPLETE")
        for name, text in {".gitignore": "*.new\nkept\n", "kept": "k", "gone": "g"}.items():
            (runner.project / name).write_text(text)
        subprocess.run(["git", "add", "--force", "."], cwd=runner.project, check=True)
        runner.commit()
        self.assertEqual(runner.use(chain="ship"), 0, runner.log)
        patch = pathlib.Path(runner.outputs["patch"]).read_text()
        self.assertEqual(re.findall(r"^diff --git a/(\S+)", patch, re.M), ["gone"])

    def test_a_job_that_is_cancelled_ends_its_run_in_order_and_keeps_what_it_has(self):
        runner = self.runner("echo x > work; touch up; exec sleep 60")
        self.assertEqual(runner.use(chain="ship", cancel="up"), 143, runner.log)
        self.assertEqual((runner.outputs["state"], runner.outputs["exit-code"]), ("interrupted", "143"))
        self.assertIn("+++ b/work", pathlib.Path(runner.outputs["patch"]).read_text())

    def test_a_run_that_is_not_complete_fails_the_step_and_is_kept(self):
        runner = self.runner("true")
        self.assertEqual(runner.use(chain="ship"), 1, runner.log)
        self.assertEqual((runner.outputs["state"], runner.outputs["exit-code"], runner.outputs["patch"]), ("iterationsExhausted", "1", ""))
        self.assertEqual(runner.kept, {"summary.json", "report.html"})

    def test_with_fail_false_the_outputs_say_it(self):
        runner = self.runner("true")
        self.assertEqual(runner.use(chain="ship", fail="false"), 0, runner.log)
        self.assertEqual(runner.outputs["exit-code"], "1")

    def test_limits_and_arguments_are_one_per_line_and_words_are_never_a_script(self):
        runner = self.runner("true")
        code = runner.use(chain="ship", prompt="$(touch pwned); `touch pwned`", limits="attempts=1\ntime=1m", arguments="--model\na b\n")
        self.assertEqual(code, 4, runner.log)
        self.assertEqual(runner.outputs["state"], "limitReached", runner.log)
        self.assertFalse((runner.project / "pwned").exists())

    def test_a_chain_that_is_refused_is_told_so(self):
        runner = self.runner("true")
        self.assertEqual(runner.use(chain="shop"), 2, runner.log)
        self.assertEqual((runner.outputs["state"], runner.outputs["run"]), ("refused", ""))
        self.assertIn("shop", runner.log)
        self.assertEqual(runner.use(chain="--help"), 2, runner.log)

    def test_a_checkout_that_holds_a_token_is_refused(self):
        for name, value in [("http.https://example.org/.extraheader", "AUTHORIZATION: basic x"), ("http.extraheader", "x"),
                            ("remote.origin.url", "https://me:token@example.org/shop")]:
            runner = self.runner("echo FORKHESTRA_COMPLETE")
            subprocess.run(["git", "config", name, value], cwd=runner.project, check=True)
            self.assertEqual(runner.use(chain="ship"), 2, runner.log)
            self.assertIn("persist-credentials: false", runner.log)
            self.assertFalse((runner.project / ".forkhestra").exists())
            self.assertIsNone(runner.kept)

    def test_a_directory_that_is_no_repository_is_refused(self):
        runner = self.runner("echo FORKHESTRA_COMPLETE")
        subprocess.run(["rm", "-rf", runner.project / ".git"], check=True)
        self.assertEqual(runner.use(chain="ship"), 2, runner.log)
        self.assertIn("git cannot read the checkout", runner.log)

    def test_no_expression_is_in_a_script(self):
        for step in ACTION["runs"]["steps"]:
            self.assertNotIn("${{", step.get("run", ""))

    def test_the_job_of_the_example_that_runs_agents_may_only_read(self):
        text = re.search(r"```yaml\n(.*?)```", (ROOT / "docs/github.md").read_text(), re.S)[1]
        workflow = yaml.safe_load(text)
        agents, propose = workflow["jobs"]["agents"], workflow["jobs"]["propose"]
        self.assertEqual((workflow["permissions"], agents["permissions"]), ({}, {"contents": "read"}))
        self.assertIs(agents["steps"][0]["with"]["persist-credentials"], False)
        [used] = [step for step in agents["steps"] if "forkhestra@" in step.get("uses", "")]
        self.assertLessEqual(set(used["with"]), set(ACTION["inputs"]))
        named = set(re.findall(r"steps\.forkhestra\.outputs\.([\w-]+)", text))
        self.assertLessEqual(named, set(ACTION["outputs"]))
        self.assertFalse([step for step in propose["steps"] if "forkhestra@" in step.get("uses", "")])


if __name__ == "__main__":
    unittest.main(verbosity=2)
