#!/usr/bin/env python3
"""Agent CLIs that the program does not know, by the entries of docs/backends.md, offline (stub_llm.py).

    tests/real/install.sh droid cn grok kilo && cargo build && python3 tests/real/test_backends.py

Those that are not installed are left out.
"""
import json
import pathlib
import shlex
import sys
import unittest

import place as places
from place import MARKER, Cli, Place, is_installed, says

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/backends.md"
WRITE = {"do": "write", "path": "${WORK}/hello.txt", "content": "hi\n"}
# A file with a marker in it, which is read and not said.
READ = {"do": "shell", "command": "cat marker.txt"}


class Droid(Cli):
    name, model = "droid", "custom:stub-model"
    variables = {"FACTORY_API_KEY": "dummy"}
    files = {".factory/settings.json": json.dumps({"customModels": [{
        "model": "stub-model", "displayName": "stub", "baseUrl": "BASE/v1", "apiKey": "dummy",
        "provider": "generic-chat-completion-api", "maxOutputTokens": 4096}]})}


class Cn(Cli):
    name, model = "cn", None
    files = {"cn.yaml": "name: stub\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: stub\n    provider: openai\n"
                        "    model: stub-model\n    apiBase: BASE/v1\n    apiKey: dummy\n"}


class Grok(Cli):
    name = "grok"
    variables = {"GROK_API_KEY": "dummy", "GROK_BASE_URL": "BASE/v1"}


class Kilo(Cli):
    name, model = "kilo", "stub/stub-model"
    files = {".config/kilo/kilo.json": json.dumps({
        "small_model": "stub/stub-model", "autoupdate": False, "share": "disabled",
        "provider": {"stub": {"npm": "@ai-sdk/openai-compatible", "name": "stub", "options": {"baseURL": "BASE/v1", "apiKey": "dummy"},
                              "models": {"stub-model": {"name": "stub-model"}}}}})}


places.CLIS.update({cli.name: cli for cli in (Droid, Cn, Grok, Kilo)})
NAMES = ("droid", "cn", "grok", "kilo")


def entries():
    """The example of the page with the entries that were tried, as it is there."""
    return next(block.split("```")[0] for block in PAGE.read_text().split("```json5\n") if '"droid"' in block)


class Real:
    """The tests of one CLI."""
    name = ""

    def place(self, script):
        place = Place(script, self.name)
        self.addCleanup(place.close)
        own = place.folder / "home/.config/forkhestra/chains.json"
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(entries())
        (place.work / "marker.txt").write_text(f"{MARKER}\n")
        more = {"args": ["--config", str(place.folder / "home/cn.yaml")]} if self.name == "cn" else {}
        place.config({"w": place.agent(self.name, permissions="full", **more)})
        return place

    def test_it_works_to_its_marker_and_a_file_with_one_ends_nothing(self):
        place = self.place([READ, says("I have read it."), WRITE, says(f"hello.txt is there.\n\n{MARKER}")])
        code, stdout, stderr = place.run("w:3", "-p", "Write hello.txt containing hi")
        self.assertEqual(code, 0, stderr + stdout)
        self.assertIn("no marker yet", stderr)
        self.assertIn("done, marker seen", stderr)
        self.assertEqual((place.work / "hello.txt").read_text(), "hi\n")
        self.assertIn("You run unattended", place.said(place.requests()[0]))
        self.assertEqual(place.left(), [])


def main():
    wanted = [name for name in NAMES if is_installed(name)]
    print("CLIs by the entries of the page:", shlex.join(wanted) or "none", flush=True)
    loader, suite = unittest.TestLoader(), unittest.TestSuite()
    for name in wanted:
        suite.addTests(loader.loadTestsFromTestCase(type(name.capitalize(), (Real, unittest.TestCase), {"name": name})))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)


if __name__ == "__main__":
    main()
