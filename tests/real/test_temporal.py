#!/usr/bin/env python3
"""A team's queue on the real Temporal server: workers, servers and networks that fail, with scripted agents.

    tests/real/install.sh temporal && cargo build && cargo build -p forkhestra-temporal && python3 tests/real/test_temporal.py
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(os.environ.get("FORKHESTRA_BIN", str(HERE.parent.parent / "target/debug/forkhestra"))).resolve()
TEMPORAL = BIN.with_name("forkhestra-temporal")
CACHE = pathlib.Path(os.environ.get("FORKHESTRA_REAL") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "forkhestra-real")
SERVER = CACHE / "temporal/bin/temporal"
# Short ones, so that a lost worker is noticed soon.
BEAT, LEASE = 0.5, 6
# The output of claude, so that an attempt has a cost.
COST = '{"type":"result","result":"done","is_error":false,"total_cost_usd":0.1,"usage":{"input_tokens":100}}'
WRITES = f"""echo . >> "$NOTES/calls"; sleep 0.1; echo work > "file-$FORKHESTRA_TASK.txt"; echo '{COST}'"""
# Three iterations; the third one waits for a file, and leaves processes in sessions of their own.
LOOPS = f"""echo . >> "$NOTES/calls"; echo "$FORKHESTRA_ITERATION" >> "file-$FORKHESTRA_TASK.txt"
[ "$(wc -l < "file-$FORKHESTRA_TASK.txt")" -ge 3 ] || {{ echo '{COST}'; exit 0; }}
setsid sleep 3600 & (setsid sleep 3600 &)
echo '{{"type":"assistant","message":{{"content":[{{"type":"text","text":"waiting for go"}}]}}}}'
touch "$NOTES/up-$FORKHESTRA_TASK"
while [ ! -e "$NOTES/go" ]; do sleep 0.05; done
echo '{COST.replace("done", "FORKHESTRA_COMPLETE")}'"""


def until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.02)
    return found


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


class Server:
    """Temporal's development server, with its state in a file."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ft"))
        self.port, self.page = free_port(), free_port()
        self.process = None
        self.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [SERVER, "server", "start-dev", "--db-filename", self.folder / "team.db", "--port", str(self.port), "--ui-port",
                 str(self.page), "--log-level", "error"], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        until(lambda: self.ask("operator", "namespace", "describe", "default", check=False).returncode == 0, "the server")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, *words, check=True):
        return subprocess.run([SERVER, *words, "--address", self.address], capture_output=True, text=True, check=check, timeout=60)

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Proxy:
    """A way to a port that can be cut: what is on its way is lost, and new connections get no answer."""

    def __init__(self, port):
        self.target, self.is_cut, self.pairs = port, False, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            try:
                other = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:
                one.close()
                continue
            other.settimeout(None)
            self.pairs.append((one, other))
            for pair in ((one, other), (other, one)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(65536):
                while self.is_cut:
                    time.sleep(0.05)
                    if source.fileno() < 0:
                        return
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def heal(self):
        # Connections of before the cut are dead, as after a router has forgotten them.
        for pair in self.pairs:
            for one in pair:
                one.close()
        self.pairs, self.is_cut = [], False

    def close(self):
        self.heal()
        self.listener.close()


class Team:
    """A project with tasks, whose agent is a script, and workers."""

    def __init__(self, server, script, tasks, iterations=""):
        self.server, self.work = server, pathlib.Path(tempfile.mkdtemp(prefix="fw"))
        self.notes, self.root = self.work / "notes", self.work / "shop"
        self.notes.mkdir()
        (self.root / "forge").mkdir(parents=True)
        (self.work / "home").mkdir()
        submit = ["submit", "--hub", "${HUB}", "--job", "${JOB}", "--labels", "${LABELS}", *self.timing(), "${UNIT}"]
        config = {
            "workspace": {"root": str(self.work / "workspaces")},
            "agents": {"worker": {"command": ["sh", "-c", f"NOTES={self.notes}\n{script}"], "output": "claude-stream"}},
            "checks": {"check": "ls file-*.txt > /dev/null"},
            "chains": {"task": f"worker{iterations} -> check"},
            "engines": {"temporal": {"submit": [str(TEMPORAL), *submit], "list": [str(TEMPORAL), "list", "--job", "${JOB}"],
                                     "cancel": [str(TEMPORAL), "cancel", "${JOB}"], "poll": "1s"}},
        }
        self.config(config)
        self.environment = {**os.environ, "HOME": str(self.work / "home"), "TEMPORAL_ADDRESS": server.address,
                            "SHOP_API_KEY": "canary-4711-4711"}
        for words in [["init", "-q", "-b", "main"], ["add", "-A"],
                      ["-c", "user.name=n", "-c", "user.email=a@b.c", "commit", "-q", "-m", "begin"]]:
            subprocess.run(["git", *words], cwd=self.root, check=True)
        lines = "".join(json.dumps({"title": f"Task {number}"}) + "\n" for number in range(1, tasks + 1))
        subprocess.run([BIN, "task", "import", "-"], input=lines, text=True, cwd=self.root, env=self.environment, check=True,
                       stdout=subprocess.DEVNULL)
        self.workers = []

    def config(self, config):
        (self.root / "forge/chains.json").write_text(json.dumps(config))

    @staticmethod
    def timing():
        return ["--beat", f"{int(BEAT * 1000)}ms", "--lease", f"{LEASE}s"]

    @property
    def hub_path(self):
        return self.root / ".forkhestra/hub.git"

    def start(self, *words, program=BIN, address=None):
        environment = {**self.environment, "TEMPORAL_ADDRESS": address or self.server.address}
        return subprocess.Popen([program, *words], cwd=self.root, env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True)

    def run(self, *words, program=BIN):
        process = self.start(*words, program=program)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    def ask(self, *words):
        code, out, err = self.run(*words, program=TEMPORAL)
        if code != 0:
            raise AssertionError(f"{words}: {out}{err}")
        return out

    def worker(self, *words, slots=8, port=None, is_broken=False):
        """Starts a worker, and waits until it takes units. A broken one can make no workspaces."""
        name = f"worker-{len(self.workers)}"
        address = f"127.0.0.1:{port}" if port else None
        home = self.work / name
        home.mkdir()
        if is_broken:
            (home / "workspaces").write_text("")
        environment = {**self.environment, "HOME": str(home), "TEMPORAL_ADDRESS": address or self.server.address}
        with open(self.work / f"{name}.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [TEMPORAL, "worker", "--slots", str(slots), "--program", BIN, "--workspaces", home / "workspaces", *words],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        process.log = self.work / f"{name}.log"
        self.workers.append(process)
        until(lambda: "waiting for units" in process.log.read_text(), f"{name}: {process.log.read_text()}")
        return process

    def hub(self, *words):
        return subprocess.run(["git", "--git-dir", self.hub_path, *words], check=True, capture_output=True, text=True).stdout

    def fences(self, unit):
        """The fences of a unit, from its first claim on."""
        text = self.hub("log", "--first-parent", "--reverse", "--format=%(trailers:key=Forkhestra-Fence,valueonly)",
                        f"refs/forkhestra/units/{unit}")
        return [int(line) for line in text.split()]

    def calls(self):
        return len((self.notes / "calls").read_text().splitlines()) if (self.notes / "calls").exists() else 0

    def rows(self):
        return [json.loads(line) for line in self.ask("status", "--all", "--json").splitlines()]

    def living(self):
        """The processes of units: those that work in a workspace, or below the notes of this project."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                stat, where = (entry / "stat").read_text(), os.readlink(entry / "cwd")
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            is_of_unit = "/workspaces" in where and where.startswith(str(self.work)) or f"NOTES={self.notes}" in line
            if ") Z " not in stat and is_of_unit:
                state, parent = stat.rsplit(") ", 1)[1].split()[:2]
                found.append(f"{entry.name} {line[:80]} (state {state}, parent {parent})")
        return found

    def oracle(self):
        """What has to hold for each unit at any time: fences rise, and there is one result."""
        for name in self.hub("for-each-ref", "--format=%(refname:lstrip=3)", "refs/forkhestra/units").split():
            fences = self.fences(name)
            assert fences == sorted(fences), (name, fences)
            text = self.hub("log", "--first-parent", "--format=%s", f"refs/forkhestra/units/{name}")
            assert sum(line.endswith(": done") for line in text.splitlines()) <= 1, (name, text)

    def close(self):
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
        until(lambda: not self.living(), f"the end of {self.living()}", 30)
        shutil.rmtree(self.work, ignore_errors=True)


class Temporal(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        if not SERVER.exists():
            raise unittest.SkipTest("no Temporal: tests/real/install.sh temporal")

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)

    def team(self, *words, **options):
        team = Team(self.server, *words, **options)
        self.addCleanup(team.close)
        return team

    def proxy(self, port):
        proxy = Proxy(port)
        self.addCleanup(proxy.close)
        return proxy

    def begun(self, *words, **worker):
        """A batch whose only unit waits in its third iteration, with its project and its worker."""
        team = self.team(LOOPS, 1, iterations=":9")
        first = team.worker(**worker)
        batch = team.start("task", "run", "--on", "temporal", *words)
        until((team.notes / "up-1").exists, "the third iteration")
        return team, batch, first

    def assert_landed(self, team, batch, calls):
        out, err = batch.communicate(timeout=120)
        self.assertEqual(batch.returncode, 0, out + err + "".join(one.log.read_text() for one in team.workers))
        self.assertEqual(team.calls(), calls, err)
        team.oracle()
        until(lambda: not team.living(), f"the end of {team.living()}", 30)
        return err

    def test_a_hundred_units_of_two_submitters_that_overlap_run_once_each(self):
        team = self.team(WRITES, 100)
        batch = team.start("task", "run", "--on", "workers", "-j", "100")
        units = [f"1-{number}-1" for number in range(1, 101)]
        until(lambda: len(team.hub("for-each-ref", "refs/forkhestra/units").splitlines()) == 100 if team.hub_path.exists() else 0,
              "a hundred units")
        begun = time.monotonic()
        both = [team.start("submit", "--hub", str(team.hub_path), *team.timing(), *part, program=TEMPORAL)
                for part in (units[:75], units[25:])]
        for one in both:
            out, err = one.communicate(timeout=60)
            self.assertEqual((one.returncode, len(out.split())), (0, 75), err)
        submitted = time.monotonic() - begun
        # What the server lists lags behind.
        until(lambda: len(team.rows()) == 100, "the list")
        begun = time.monotonic()
        team.worker()
        team.worker()
        until(lambda: team.calls() >= 1, "the first unit")
        first = time.monotonic() - begun
        until(lambda: team.calls() >= 100, "all units", 120)
        # The verifications are units, too.
        last = team.start("work", "--next", "--all", "--hub", str(team.hub_path))
        self.assert_landed(team, batch, 100)
        last.communicate(timeout=60)
        objects = subprocess.run(["git", "--git-dir", team.hub_path, "cat-file", "--batch-all-objects", "--batch"], check=True,
                                 capture_output=True).stdout
        self.assertNotIn(b"canary-4711", objects)
        self.assertNotIn("canary-4711", self.server.ask("activity", "list", "-o", "json").stdout)
        print(f"150 submissions in {submitted:.1f} s; the first unit {first:.1f} s after the workers began ... ", end="")

    def test_a_unit_whose_worker_is_killed_continues_on_another_one_and_its_spending_is_known(self):
        team, batch, first = self.begun()
        until(lambda: [row["progress"]["attempts"] for row in team.rows()] == [3], "its progress")
        first.kill()
        until(lambda: not team.living(), "the end of its agents", LEASE)
        team.worker()
        (lost,) = until(lambda: [row for row in team.rows() if row["state"] == "lost"], "its loss", 30)
        self.assertEqual(round(lost["progress"]["costUsd"], 2), 0.2)
        (team.notes / "go").touch()
        err = self.assert_landed(team, batch, 4)
        # What the killed attempt has spent is not known.
        self.assertIn(", at least 300 tokens, at least $0.30)", err)

    def test_retry_gives_a_unit_to_another_worker_without_the_batch(self):
        team = self.team(LOOPS, 1, iterations=":9")
        batch = team.start("task", "run", "--on", "workers", "-j", "1")
        until(lambda: team.hub_path.exists() and team.hub("for-each-ref", "refs/forkhestra/units"), "a unit")
        team.ask("submit", "--hub", str(team.hub_path), "--retry", "1", *team.timing(), "1-1-1")
        first = team.worker()
        until((team.notes / "up-1").exists, "the third iteration")
        team.worker()
        first.kill()
        killed = time.monotonic()
        until(lambda: team.fences("1-1-1")[-1] == 2, "the claim of the replacement", 30)
        took = time.monotonic() - killed
        (team.notes / "go").touch()
        last = team.start("work", "--next", "--all", "--hub", str(team.hub_path))
        self.assert_landed(team, batch, 4)
        last.communicate(timeout=60)
        print(f"replaced after {took:.1f} s with a lease of {LEASE} s ... ", end="")

    def test_agents_work_on_while_the_server_is_killed_and_restarted(self):
        team, batch, _ = self.begun()
        def agents():
            return [line.split(" (state")[0] for line in team.living() if "NOTES=" in line or "3600" in line]
        until(lambda: len(agents()) == 3, "the agent and its two sleeps")
        before = agents()
        self.server.kill()
        self.server.start()
        until(lambda: [row["state"] for row in team.rows()] == ["at work"], "its report", 30)
        self.assertEqual(agents(), before)
        (team.notes / "go").touch()
        self.assert_landed(team, batch, 3)
        self.assertEqual(sorted(set(team.fences("1-1-1"))), [0, 1])

    def test_a_worker_that_is_cut_off_ends_its_unit_before_the_server_gives_it_away(self):
        proxy = self.proxy(self.server.port)
        # With a single slot, it asks for no other unit while it has one: the server would give it to the dead connection.
        team, batch, _ = self.begun(port=proxy.port, slots=1)
        proxy.is_cut, cut = True, time.monotonic()
        until(lambda: not team.living(), "the end of its agents", LEASE)
        took = time.monotonic() - cut
        states = [row["state"] for row in team.rows()]
        self.assertEqual(states, ["at work"], "the server has not noticed it")
        team.worker()
        until(lambda: team.fences("1-1-1")[-1] == 2, "the claim of the replacement", 60)
        proxy.heal()
        (team.notes / "go").touch()
        self.assert_landed(team, batch, 4)
        print(f"nothing left {took:.1f} s after the cut, with a lease of {LEASE} s ... ", end="")

    def test_a_unit_is_handed_over_once_the_network_to_the_hub_is_back(self):
        team = self.team(LOOPS, 1, iterations=":9")
        port = free_port()
        proxy = self.proxy(port)
        url = f"git://127.0.0.1:{proxy.port}/hub.git"
        config = json.loads((team.root / "forge/chains.json").read_text())
        config["engines"]["temporal"]["hub"] = url
        team.config(config)
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=a@b.c", "commit", "-qam", "url"], cwd=team.root, check=True)
        settings = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "receive.hideRefs", "GIT_CONFIG_VALUE_0": "!refs/forkhestra"}
        daemon = subprocess.Popen(
            ["git", "daemon", "--listen=127.0.0.1", f"--port={port}", "--export-all", "--enable=receive-pack", "--reuseaddr",
             f"--base-path={team.root / '.forkhestra'}"], env={**os.environ, **settings}, stderr=subprocess.DEVNULL,
            start_new_session=True)
        self.addCleanup(daemon.wait)
        self.addCleanup(os.killpg, daemon.pid, signal.SIGKILL)
        batch = team.start("task", "run", "--on", "temporal")
        until(lambda: team.hub_path.exists() and team.hub("for-each-ref", "refs/forkhestra/units"), "a unit")
        team.worker("--hub", url)
        until((team.notes / "up-1").exists, "the third iteration")
        proxy.is_cut = True
        (team.notes / "go").touch()
        until(lambda: team.calls() == 3 and not [line for line in team.living() if "sleep 3600" in line], "the end of the agents")
        self.assertEqual([row["state"] for row in team.rows()], ["at work"])
        proxy.heal()
        self.assert_landed(team, batch, 3)

    def test_cancel_leaves_no_process_and_pause_holds_all_of_them(self):
        team, batch, _ = self.begun()
        (job,) = [row["job"] for row in team.rows()]
        run = json.loads(self.server.ask("activity", "describe", "--activity-id", job, "-o", "json").stdout)["runId"]
        which = ["--activity-id", job, "--run-id", run]
        self.server.ask("activity", "pause", *which, "--reason", "look")
        until(lambda: [row["state"] for row in team.rows()] == ["held"], "that it is held")

        def states():
            numbers = [line.split()[0] for line in team.living() if "NOTES=" in line]
            return {pathlib.Path(f"/proc/{number}/stat").read_text().rsplit(") ", 1)[1][0] for number in numbers}
        self.assertEqual(states(), {"T"})
        self.server.ask("activity", "unpause", *which)
        until(lambda: [row["state"] for row in team.rows()] == ["at work"], "that it continues")
        until(lambda: states() == {"S"}, "its processes")
        begun = time.monotonic()
        team.ask("cancel", job)
        until(lambda: not team.living(), "the end of all processes", 2 * BEAT + 10)
        took = time.monotonic() - begun
        until(lambda: [row["state"] for row in team.rows()][-1] == "cancelled", "its state")
        # Its work is kept, and the batch offers it again.
        (team.notes / "go").touch()
        self.assert_landed(team, batch, 4)
        print(f"nothing left {took:.1f} s after the cancel, with beats of {BEAT} s ... ", end="")

    def test_the_place_the_cost_and_the_last_line_of_a_unit_can_be_read_by_everybody(self):
        team, batch, _ = self.begun()
        (job,) = until(lambda: [row["job"] for row in team.rows() if row["progress"]["lastLine"] == "waiting for go"], "its line")
        details = json.loads(self.server.ask("activity", "describe", "--activity-id", job, "-o", "json").stdout)
        found = details["info"]["heartbeatDetails"][0]
        self.assertEqual([found[key] for key in ("place", "iteration", "attempts", "lastLine")],
                         ["1/2 worker", 3, 3, "waiting for go"])
        self.assertAlmostEqual(found["costUsd"], 0.2)
        self.assertIn(job, self.server.ask("activity", "list").stdout)
        out = team.ask("status")
        self.assertRegex(out, rf"{job} +at work +1/2 worker, round 1, iteration 3 +\$0.20 +waiting for go\n")
        (team.notes / "go").touch()
        self.assert_landed(team, batch, 3)

    def test_a_unit_is_seen_and_cancelled_on_the_web_page(self):
        playwright, browser = CACHE / "playwright/node_modules/playwright-core/index.mjs", shutil.which("chromium")
        if not playwright.exists() or not browser:
            self.skipTest("no browser: tests/real/install.sh chromium playwright")
        team, batch, _ = self.begun()
        (job,) = until(lambda: [row["job"] for row in team.rows() if row["progress"]["lastLine"] == "waiting for go"], "its line")
        run = json.loads(self.server.ask("activity", "describe", "--activity-id", job, "-o", "json").stdout)["runId"]
        page = f"http://127.0.0.1:{self.server.page}/namespaces/default/activities/{job}/{run}"
        done = subprocess.run(["node", HERE / "temporal_page.mjs", playwright, browser, page, "waiting for go"], capture_output=True,
                              text=True, timeout=120, check=False)
        clicked = time.monotonic()
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr)
        for words in ('"place": "1/2 worker"', '"round": 1', '"costUsd": 0.2', "RUNNING"):
            self.assertIn(words, done.stdout)
        until(lambda: not team.living(), "the end of all processes", 2 * BEAT + 10)
        took = time.monotonic() - clicked
        (team.notes / "go").touch()
        self.assert_landed(team, batch, 4)
        print(f"nothing left {took:.1f} s after the browser had ended ... ", end="")

    def assert_hands_back(self, number):
        # A worker of another project that waits at the same queue would take the unit: there is one project per test.
        team, batch, first = self.begun()
        first.send_signal(number)
        self.assertEqual(first.wait(timeout=30), 0, first.log.read_text())
        until(lambda: not team.living(), f"the end of {team.living()}", 2)
        self.assertIn("unit 1-1-1: stopped with its worker; what was done is in the hub", first.log.read_text())
        team.worker()
        (team.notes / "go").touch()
        self.assert_landed(team, batch, 4)

    def test_a_worker_that_is_terminated_hands_its_units_back(self):
        self.assert_hands_back(signal.SIGTERM)

    def test_a_worker_that_is_hung_up_hands_its_units_back(self):
        self.assert_hands_back(signal.SIGHUP)

    def test_a_worker_on_a_broken_machine_leaves_the_units_to_others_and_waits_between_them(self):
        team = self.team(WRITES, 3)
        broken = team.worker(slots=1, is_broken=True)
        batch = team.start("task", "run", "--on", "temporal")
        until(lambda: broken.log.read_text().count("this worker failed") >= 3, "three failures")
        self.assertIn("failed with exit code 69, and the hub has no result. cannot ", broken.log.read_text())
        self.assertEqual([line.split()[-2] for line in broken.log.read_text().splitlines() if "taking the next" in line][:3],
                         ["1", "2", "4"])
        team.worker()
        self.assert_landed(team, batch, 3)

    def test_units_that_need_a_label_wait_for_a_worker_with_it(self):
        team = self.team(WRITES, 1)
        config = json.loads((team.root / "forge/chains.json").read_text())
        config["workspace"]["needs"] = {"labels": ["gpu"]}
        team.config(config)
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=a@b.c", "commit", "-qam", "gpu"], cwd=team.root, check=True)
        team.worker()
        batch = team.start("task", "run", "--on", "temporal")
        until(lambda: [row["state"] for row in team.rows()] == ["queued"], "the unit in the queue")
        team.worker("--label", "gpu")
        self.assert_landed(team, batch, 1)

    def test_a_long_queue(self):
        units = [f"1-{number}-1" for number in range(int(os.environ.get("FORKHESTRA_TEMPORAL_QUEUE", "500")))]
        team = self.team("exit 1", 0)

        def resident(pid):
            text = pathlib.Path(f"/proc/{pid}/status").read_text()
            return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS"))) // 1024
        begun = time.monotonic()
        out = team.ask("submit", "--hub", str(team.work / "none.git"), *units)
        took = time.monotonic() - begun
        self.assertEqual(len(out.split()), len(units))
        until(lambda: int(self.server.ask("activity", "count", "-o", "json").stdout.split('"')[3]) == len(units), "all of them", 300)
        worker = team.worker(slots=1)
        until(lambda: "the hub has no result" in worker.log.read_text(), "the first one")
        print(f"{len(units)} units: {len(units) / took:.0f} submissions a second; the server holds {resident(self.server.process.pid)} "
              f"MB, a worker {resident(worker.pid)} MB ... ", end="")

    def test_a_worker_refuses_a_hub_that_it_cannot_reach_and_a_server_that_is_not_there(self):
        team = self.team(WRITES, 1)
        code, _, err = team.run("worker", "--slots", "1", "--program", str(BIN), "--hub", str(team.work / "none.git"), program=TEMPORAL)
        self.assertEqual(code, 1)
        self.assertIn("this machine cannot work with the hub", err)
        process = team.start("status", program=TEMPORAL, address=f"127.0.0.1:{free_port()}")
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("cannot reach the Temporal server; is TEMPORAL_ADDRESS right?", err)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
