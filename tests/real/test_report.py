#!/usr/bin/env python3
"""The report in a real, headless Chromium: it renders, says nothing to its console, its folds open, 5 MB of a transcript stay usable,
in both themes.

    tests/real/install.sh chromium axe && cargo build && python3 tests/real/test_report.py [FOLDER FOR PICTURES]
"""
import html
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
FORKHESTRA = os.environ.get("FORKHESTRA_BIN", str(HERE.parent.parent / "target/debug/forkhestra"))
PICTURES = pathlib.Path(sys.argv.pop()) if len(sys.argv) > 1 and not sys.argv[-1].startswith("-") else None
# Appended to a copy of the page: it opens every fold, as a person would, and writes down what came of it.
LOOK = """<script>
window.onerror = words => { document.title = 'error: ' + words; };
window.onload = () => {
  const began = performance.now();
  const folds = [...document.querySelectorAll('details')];
  folds.forEach(fold => { fold.open = true; });
  const height = document.body.getBoundingClientRect().height;
  const last = [...document.querySelectorAll('pre')].pop();
  last.scrollTop = last.scrollHeight;
  const shown = folds.filter(fold => fold.querySelector('pre, table').getBoundingClientRect().height > 0).length;
  const style = getComputedStyle(document.body);
  const wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
  document.body.setAttribute('data-found', JSON.stringify({
    folds: folds.length, shown, height, wide, took: performance.now() - began,
    plots: [...document.querySelectorAll('figure')].map(figure => {
      const [box, bars] = ['svg', 'path'].map(name => figure.querySelector(name).getBoundingClientRect());
      return {name: figure.className, width: box.width, height: bars.height / box.height, inside: bars.width <= box.width,
        text: parseFloat(getComputedStyle(figure.querySelector('figcaption')).fontSize),
        fill: getComputedStyle(figure.querySelector('path')).fill};
    }),
    ground: style.backgroundColor, ink: style.color, links: [...document.querySelectorAll('a[href^="#"]')]
      .filter(link => !document.querySelector(link.getAttribute('href'))).length}));
};
</script>"""


# Runs axe-core (https://github.com/dequelabs/axe-core) on a copy of the page and writes down what it finds.
CHECK = """<script>%s</script><script>
window.onload = () => axe.run(document).then(found => document.body.setAttribute('data-found', JSON.stringify(
  found.violations.map(one => one.id + ': ' + one.nodes.map(node => node.html).slice(0, 3).join(' | ')))));
</script>"""
CACHE = pathlib.Path(os.environ.get("FORKHESTRA_REAL") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "forkhestra-real")
AXE = CACHE / "axe/node_modules/axe-core/axe.min.js"


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    raise unittest.SkipTest("no chromium")


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="forkhestra-report-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_ours(self, *words):
        done = subprocess.run([FORKHESTRA, *words], cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr

    def look(self, page, dark=False, width=1000, picture=None, script=LOOK):
        """What the page is after its folds were opened, and what it said to the console."""
        words = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
                 f"--window-size={width},1400", f"--user-data-dir={self.folder / 'profile'}", "--virtual-time-budget=20000"]
        words += ["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]
        if picture:
            subprocess.run([*words, f"--screenshot={picture}", page.as_uri()], capture_output=True, timeout=120, check=True)
            return None, ""
        copy = self.folder / "looked-at.html"
        copy.write_text(page.read_text().replace("</body>", script + "</body>"))
        done = subprocess.run([*words, "--dump-dom", copy.as_uri()], capture_output=True, text=True, timeout=120, check=True)
        said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        found = html.unescape(done.stdout.split('data-found="')[1].split('"')[0])
        return json.loads(found), said

    def test_it_renders_in_both_themes_without_a_word_and_its_folds_open(self):
        code, _, stderr = self.run_ours("--chain", "demo")
        self.assertEqual(code, 0, stderr)
        root = stderr.split("transcripts: ")[1].split("/.forkhestra")[0]
        self.addCleanup(shutil.rmtree, root, ignore_errors=True)
        page = self.folder / "report.html"
        self.assertEqual(self.run_ours("report", "--cwd", root, "-o", str(page))[0], 0)
        grounds = set()
        for dark in (False, True):
            found, said = self.look(page, dark)
            self.assertEqual((said, found["links"], found["wide"]), ([], 0, False))
            self.assertGreater(found["folds"], 10)
            self.assertEqual(found["shown"], found["folds"])
            self.assertNotEqual(found["ground"], found["ink"])
            grounds.add(found["ground"])
            if PICTURES:
                self.look(page, dark, picture=PICTURES / f"report-{'dark' if dark else 'light'}.png")
        self.assertEqual(len(grounds), 2, "two themes")
        found, _ = self.look(page, width=420)
        self.assertFalse(found["wide"], "nothing sticks out on a narrow screen")

    def night(self):
        """Three runs in a repository, one of them rejected, with HTML in everything that an agent can name."""
        for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "begin", "--allow-empty"]):
            subprocess.run(["git", *words], cwd=self.folder, check=True)
        (self.folder / "forge").mkdir()
        writer = ["sh", "-c", "printf '<script>alert(1)</script>\\n' > '<img src=x>.txt'; echo '<b>written</b>'"]
        judge = ["sh", "-c", "echo '- <i>a.txt</i>:1: <script>alert(2)</script>'; echo 'VERDICT: reject'"]
        (self.folder / "forge/chains.json").write_text(json.dumps({
            "agents": {"writer": {"command": writer}, "judge": {"command": judge, "role": "judge"}},
            "checks": {"t": "echo 'error: <u>no</u>'; exit 1"}, "chains": {}}))
        self.assertEqual(self.run_ours("writer", "-p", "Add <b>it</b>.")[0], 0)
        self.assertEqual(self.run_ours("(writer -> judge):2", "-p", "Do <i>more</i>.")[0], 3)
        self.assertEqual(self.run_ours("writer -> t", "-p", "Check.")[0], 1)
        page = self.folder / "night.html"
        code, _, stderr = self.run_ours("report", "--all", "-o", str(page))
        self.assertEqual(code, 0, stderr)
        return page

    def test_a_night_on_one_page_is_readable_on_a_desk_and_on_a_phone_and_html_of_agents_stays_text(self):
        page = self.night()
        for dark in (False, True):
            for width in (1280, 360):
                found, said = self.look(page, dark, width)
                self.assertEqual((said, found["links"], found["wide"]), ([], 0, False), width)
        tags = page.read_text()
        for tag in ("<script", "<img", "<b>", "<u>"):
            self.assertNotIn(tag, tags)

    def test_an_accessibility_checker_finds_nothing(self):
        page = self.night()
        for dark in (False, True):
            found, _ = self.look(page, dark, script=CHECK % AXE.read_text())
            self.assertEqual(found, [])

    def rounds(self):
        """A run of five rounds, with fewer errors from round to round, of a backend that says what it costs."""
        (self.folder / "forge").mkdir()
        (self.folder / "bin").mkdir()
        claude = self.folder / "bin/claude"
        claude.write_text("""#!/bin/sh
cat > /dev/null; echo x >> n; n=$(wc -l < n); sleep 0.$((6 - n))
printf '{"type":"result","result":"done","is_error":false,"total_cost_usd":0.%s,"usage":{"input_tokens":100}}\\n' $((n * 2))
""")
        claude.chmod(0o755)
        check = "left=$((5 - $(wc -l < n))); seq -f 'a.c:%.0f:1: error: wrong' 1 $left; exit $left"
        (self.folder / "forge/chains.json").write_text(json.dumps({
            "agents": {"coder": {"backend": "claude"}}, "checks": {"t": check}, "chains": {}}))
        os.environ["PATH"] = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        code, _, stderr = self.run_ours("(coder -> t):9", "-p", "Do it.")
        self.assertEqual(code, 0, stderr)
        page = self.folder / "rounds.html"
        self.assertEqual(self.run_ours("report", "-o", str(page))[0], 0)
        return page

    def test_plots_are_seen_in_both_themes_and_on_a_phone(self):
        page, fills = self.rounds(), set()
        for dark in (False, True):
            for width in (1280, 360):
                found, said = self.look(page, dark, width)
                self.assertEqual((said, found["wide"]), ([], False), width)
                self.assertEqual([plot["name"] for plot in found["plots"]], ["time", "cost", "errors"])
                for plot in found["plots"]:
                    self.assertGreater(plot["width"], 200, plot)
                    self.assertTrue(plot["inside"] and plot["height"] > 0.9 and plot["text"] >= 14, plot)
                fills.add(found["plots"][0]["fill"])
                if PICTURES:
                    self.look(page, dark, width, picture=PICTURES / f"plots-{'dark' if dark else 'light'}-{width}.png")
            self.assertEqual(self.look(page, dark, script=CHECK % AXE.read_text())[0], [])
        self.assertEqual(len(fills), 2, "two themes")

    def batch(self):
        """A batch with tries at one task, which a judge chooses from, and HTML in the title of the task."""
        (self.folder / "forge").mkdir()
        judge = "if [ -n \"$FORKHESTRA_TASK\" ]; then echo 'VERDICT: approve'; else echo '<b>Two.</b>'; echo 'CHOICE: 2'; fi"
        (self.folder / "forge/chains.json").write_text(json.dumps({
            "workspace": {"root": str(self.folder.parent / f"{self.folder.name}-workspaces")},
            "agents": {"worker": {"command": ["sh", "-c", "sleep 0.$FORKHESTRA_TRY; echo $FORKHESTRA_TRY > answer"]},
                       "judge": {"command": ["sh", "-c", judge], "role": "judge"}},
            "checks": {"t": "test -s answer"}, "chains": {"task": "worker -> t -> judge"}}))
        self.addCleanup(shutil.rmtree, self.folder.parent / f"{self.folder.name}-workspaces", ignore_errors=True)
        for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "begin"]):
            subprocess.run(["git", *words], cwd=self.folder, check=True)
        self.assertEqual(self.run_ours("task", "add", "Find <i>it</i>")[0], 0)
        code, _, stderr = self.run_ours("task", "run", "-j", "2", "--tries", "3")
        self.assertEqual(code, 0, stderr)
        page = self.folder / "batch.html"
        self.assertEqual(self.run_ours("report", "1", "-o", str(page))[0], 0)
        return page

    def test_a_batch_shows_its_lanes_over_time_in_both_themes_and_on_a_phone(self):
        page = self.batch()
        text = page.read_text()
        for words in ("Lanes over time", "1, try 3", "1, choice", "try 2 is taken", "Find &lt;i&gt;it"):
            self.assertIn(words, text)
        self.assertNotIn("<b>Two", text)
        for dark in (False, True):
            for width in (1280, 360):
                found, said = self.look(page, dark, width)
                self.assertEqual((said, found["links"], found["wide"]), ([], 0, False), width)
                lanes = next(plot for plot in found["plots"] if plot["name"] == "lanes")
                self.assertTrue(lanes["width"] > 200 and lanes["inside"] and lanes["text"] >= 14, lanes)
                if PICTURES:
                    self.look(page, dark, width, picture=PICTURES / f"batch-{'dark' if dark else 'light'}-{width}.png")
            self.assertEqual(self.look(page, dark, script=CHECK % AXE.read_text())[0], [])

    def test_five_megabytes_of_transcript_stay_usable(self):
        (self.folder / "forge").mkdir()
        agent = ["sh", "-c", "seq -f 'line %.0f of a long transcript, with some words in it' 1 100000"]
        (self.folder / "forge/chains.json").write_text(json.dumps({"agents": {"talker": {"command": agent, "deliver": "stdin"}}, "chains": {}}))
        self.assertEqual(self.run_ours("-q", "talker", "-p", "x")[0], 0)
        self.assertEqual(self.run_ours("report", "-o", "report.html")[0], 0)
        page = self.folder / "report.html"
        self.assertGreater(page.stat().st_size, 5_000_000)
        began = time.monotonic()
        found, said = self.look(page)
        self.assertEqual((said, found["shown"], found["wide"]), ([], found["folds"], False))
        # How long that takes is told, and judged by nobody: machines differ.
        print(f"  5 MB: opened and at its end in {found['took']:.0f} ms, the browser from start to end {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    unittest.main()
