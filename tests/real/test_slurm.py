#!/usr/bin/env python3
"""`task run --on slurm` with the real Slurm: a controller and two nodes on this machine, with scripted agents.

    tests/real/install.sh slurm && cargo build && python3 tests/real/test_slurm.py

Needs root: a node starts its jobs as their user.
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
FORKHESTRA = os.environ.get("FORKHESTRA_BIN", str(HERE.parent.parent / "target/debug/forkhestra"))
CONFIG = """
ClusterName=forkhestra
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={base}/munge/socket
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool-%n
SlurmctldPidFile={base}/controller.pid
SlurmdPidFile={base}/node-%n.pid
SlurmctldLogFile={base}/controller.log
SlurmdLogFile={base}/node-%n.log
SlurmctldPort={ports[0]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
KillWait=10
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=8 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=8 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def until(condition, what, seconds=90):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.1)


class Cluster:
    """A controller and two nodes, with a folder of their own."""

    def __init__(self):
        # A path for a socket is short.
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="fs", dir="/tmp"))
        self.base.chmod(0o755)
        for name in ["munge", "state", "spool-n1", "spool-n2"]:
            (self.base / name).mkdir(mode=0o755)
        key = self.base / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        text = CONFIG.format(base=self.base, host=socket.gethostname(), ports=free_ports(3))
        (self.base / "slurm.conf").write_text(text)
        self.environment = {**os.environ, "SLURM_CONF": str(self.base / "slurm.conf")}
        munge = self.base / "munge"
        self.ask("munged", "--force", f"--socket={munge}/socket", f"--key-file={key}", f"--pid-file={munge}/pid",
                 f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        self.ask("slurmctld")
        for name in ["n1", "n2"]:
            self.start_node(name)
        until(lambda: self.ask("sinfo", "--noheader", "--format=%T %D").strip() == "idle 2", "two idle nodes")

    def ask(self, *words):
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.stderr}")
        return done.stdout

    def start_node(self, name):
        self.ask("slurmd", "-N", name)

    def jobs(self):
        """The jobs that have not ended, as (number, name, state, node)."""
        lines = self.ask("squeue", "--noheader", "--format=%i %j %T %N").splitlines()
        return [tuple((line + " ").split(" ")[:4]) for line in lines]

    def tree_of(self, node):
        """The processes of a node: its daemon and all that its jobs have started."""
        pid = int((self.base / f"node-{node}.pid").read_text())
        children = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                parent = int((entry / "stat").read_text().rsplit(") ", 1)[1].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
            # A step leaves its daemon.
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if line.startswith("slurmstepd") and parent == 1:
                environment = (entry / "environ").read_bytes().split(b"\0")
                if f"SLURMD_NODENAME={node}".encode() in environment or len(self.jobs()) == 1:
                    children.setdefault(pid, []).append(int(entry.name))
        found, todo = [], [pid]
        while todo:
            found.append(todo.pop())
            todo += children.get(found[-1], [])
        return found

    def close(self):
        for job, *_ in self.jobs():
            subprocess.run(["scancel", "--full", "--signal=KILL", job], env=self.environment, check=False)
        for name in ["node-n1.pid", "node-n2.pid", "controller.pid", "munge/pid"]:
            try:
                pid = int((self.base / name).read_text())
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGTERM)
            except (OSError, ValueError):
                continue
            try:
                until(lambda pid=pid: not pathlib.Path(f"/proc/{pid}").exists(), name, 15)
            except AssertionError:
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.base, ignore_errors=True)


class Project:
    """A repository with tasks, whose agent is a script."""

    def __init__(self, cluster, script, tasks, iterations=""):
        self.cluster, self.work = cluster, pathlib.Path(tempfile.mkdtemp(prefix="fp", dir="/tmp"))
        self.notes = self.work / "notes"
        self.notes.mkdir()
        root = self.work / "shop"
        (root / "forge").mkdir(parents=True)
        self.root = root
        config = {
            "workspace": {"root": str(self.work / "workspaces")},
            "agents": {"worker": {"command": ["sh", "-c", f"NOTES={self.notes}\n{script}"]}},
            "checks": {"check": "ls file-*.txt > /dev/null"},
            "chains": {"task": f"worker{iterations} -> check"},
            "engines": {"slurm": {"program": FORKHESTRA, "workspaces": str(self.work / "nodes"), "poll": "1s"}},
        }
        (root / "forge/chains.json").write_text(json.dumps(config))
        for words in [["init", "-q", "-b", "main"], ["add", "-A"],
                      ["-c", "user.name=n", "-c", "user.email=a@b.c", "commit", "-q", "-m", "begin"]]:
            subprocess.run(["git", *words], cwd=root, check=True)
        self.environment = {**cluster.environment, "HOME": str(self.work / "home"), "SHOP_API_KEY": "canary-4711-4711"}
        for number in range(1, tasks + 1):
            self.run("task", "add", f"Task {number}")

    def start(self, *words):
        return subprocess.Popen([FORKHESTRA, *words], cwd=self.root, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True)

    def run(self, *words):
        process = self.start(*words)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    def hub(self, *words):
        return subprocess.run(["git", "--git-dir", str(self.root / ".forkhestra/hub.git"), *words], check=True,
                              capture_output=True, text=True).stdout

    def fences(self, unit):
        """The fences of a unit, from its first claim on."""
        text = self.hub("log", "--first-parent", "--reverse", "--format=%(trailers:key=Forkhestra-Fence,valueonly)",
                        f"refs/forkhestra/units/{unit}")
        return [int(line) for line in text.split()]

    def calls(self):
        return len((self.notes / "calls").read_text().splitlines()) if (self.notes / "calls").exists() else 0

    def living(self):
        """The command lines of living processes that work for this project."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                stat, where = (entry / "stat").read_text(), os.readlink(entry / "cwd")
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if ") Z " not in stat and (where.startswith(str(self.work)) or str(self.work) in line):
                found.append(f"{entry.name} {line}")
        return found

    def close(self):
        shutil.rmtree(self.work, ignore_errors=True)


WRITES = 'echo . >> "$NOTES/calls"; sleep 0.2; echo work > "file-$FORKHESTRA_TASK.txt"'
# Three iterations; the third one waits for a file, and leaves processes in sessions of their own.
LOOPS = '''echo . >> "$NOTES/calls"; echo "$FORKHESTRA_ITERATION" >> file-1.txt
[ "$(wc -l < file-1.txt)" -ge 3 ] || exit 0
setsid sleep 3600 & (setsid sleep 3600 &)
touch "$NOTES/up"
while [ ! -e "$NOTES/go" ]; do sleep 0.1; done
echo FORKHESTRA_COMPLETE'''


@unittest.skipIf(os.getuid() != 0, "needs root: a node starts its jobs as their user")
class Slurm(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)

    def project(self, *words, **options):
        project = Project(self.cluster, *words, **options)
        self.addCleanup(project.close)
        return project

    def begun(self):
        """A batch whose only job waits in its third iteration, with its project and its node."""
        project = self.project(LOOPS, 1, iterations=":9")
        batch = project.start("task", "run", "--on", "slurm")
        until((project.notes / "up").exists, "the third iteration")
        (job, _, _, node), = self.cluster.jobs()
        return project, batch, job, node

    def assert_landed_once(self, project, batch, calls):
        out, err = batch.communicate(timeout=300)
        self.assertEqual(batch.returncode, 0, out + err)
        self.assertEqual(project.calls(), calls, err)
        self.assertEqual(project.hub("show", "forkhestra/line:file-1.txt").split()[:3], ["1", "2", "3"])
        until(lambda: self.cluster.jobs() == [], "an empty queue")
        until(lambda: project.living() == [], f"the end of {project.living()}", 30)
        return err

    def assert_replaced(self, project):
        """A second worker has claimed the unit, nothing of an earlier one came after it, and the unit was done once."""
        log = project.hub("log", "--first-parent", "--reverse", "--format=%ci %s", "refs/forkhestra/units/1-1-1")
        fences = project.fences("1-1-1")
        self.assertEqual(fences, sorted(fences), log)
        # Slurm itself may replace a job once more, where a node is slow to answer.
        self.assertEqual(sorted(set(fences))[:3], [0, 1, 2], log)
        self.assertEqual(log.count(": done"), 1, log)
        self.assertTrue(log.rstrip().endswith(": done"), log)

    def test_forty_tasks_land_and_no_secret_leaves_the_shell(self):
        project = self.project(WRITES, 40)
        begun = time.monotonic()
        code, out, err = project.run("task", "run", "--on", "slurm")
        took = time.monotonic() - begun
        self.assertEqual(code, 0, out + err)
        self.assertIn("40 of 40 tasks landed", err)
        self.assertEqual(project.calls(), 40)
        self.assertEqual(self.cluster.jobs(), [])
        canary = b"canary-4711"
        objects = subprocess.run(["git", "--git-dir", str(project.root / ".forkhestra/hub.git"), "cat-file",
                                  "--batch-all-objects", "--batch"], check=True, capture_output=True).stdout
        self.assertGreater(len(objects), 1000)
        self.assertNotIn(canary, objects)
        self.assertNotIn(canary.decode(), self.cluster.ask("scontrol", "show", "job"))
        begun = time.monotonic()
        for _ in range(20):
            self.cluster.ask("sbatch", "--parsable", "--export=NONE", "--chdir=/", "--output=/dev/null", "--wrap", "true")
        each = (time.monotonic() - begun) / 20
        print(f"40 tasks of 0.2 s in {took:.1f} s; {each * 1000:.0f} ms to submit one job ... ", end="")

    def test_a_suite_in_slices_has_the_same_table_although_two_of_them_are_killed(self):
        project = self.project(WRITES, 1)
        cases = int(os.environ.get("FORKHESTRA_SLURM_CASES", "600"))
        config = json.loads((project.root / "forge/chains.json").read_text())
        config["agents"]["echo"] = {"command": ["sh", "-c", f"echo . >> {project.notes}/calls; sleep 0.03; tail -n 1"], "deliver": "stdin"}
        (project.root / "forge/chains.json").write_text(json.dumps(config))
        criteria = [{"type": "exact"}]
        suite = {"taskType": "echo", "prompt": "Repeat the text.", "executor": "echo", "cases": [
            {"id": f"case {number}", "text": f"text {number}", "expected": f"text {number if number % 3 else 'x'}",
             "criteria": criteria} for number in range(cases)]}
        (project.root / "suite.json").write_text(json.dumps(suite))
        begun = time.monotonic()
        evaluation = project.start("eval", "run", "suite.json", "--on", "slurm", "--slice", "50", "-j", "4")
        killed = set()
        while len(killed) < 2 and evaluation.poll() is None:
            running = [job for job, name, state, _ in self.cluster.jobs() if "slice" in name and state == "RUNNING"]
            for job in [job for job in running if job not in killed][:1]:
                # By now, its worker is in the middle of its cases.
                before = project.calls()
                until(lambda before=before: project.calls() >= before + 60, "sixty more calls")
                words = ["scancel", "--full", "--signal=KILL", job]
                # It may have ended in this moment.
                if subprocess.run(words, env=self.cluster.environment, capture_output=True, check=False).returncode == 0:
                    killed.add(job)
        out, err = evaluation.communicate(timeout=3000)
        took = time.monotonic() - begun
        self.assertEqual((evaluation.returncode, len(killed)), (1, 2), out + err)
        asked = project.calls()
        self.assertTrue(cases <= asked <= cases + 100, asked)
        begun = time.monotonic()
        code, _, err = project.run("eval", "run", "suite.json", "--fresh", "-j", "2")
        here = time.monotonic() - begun
        self.assertEqual(code, 1, err)

        def table(run):
            return project.run("eval", "show", run, "-v")[1].rsplit("(", 1)[0]

        self.assertEqual(table("1"), table("2"))
        self.assertEqual(table("1").count("pass 1.00"), cases - (cases + 2) // 3)
        until(lambda: self.cluster.jobs() == [], "an empty queue")
        until(lambda: project.living() == [], f"the end of {project.living()}", 30)
        print(f"{cases} cases, {asked} asked: {took:.1f} s with Slurm, {here:.1f} s with -j 2 ... ", end="")

    def test_a_node_that_dies_with_all_its_processes_is_replaced_after_the_last_attempt(self):
        project, batch, job, node = self.begun()
        for pid in self.cluster.tree_of(node):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        (project.notes / "go").touch()
        # Slurm lets a job that it has requeued wait for two minutes.
        until(lambda: [state for _, _, state, _ in self.cluster.jobs()] == ["PENDING"], "the job in the queue again", 60)
        self.cluster.ask("scontrol", "update", f"JobId={job}", "StartTime=now")
        self.assert_landed_once(project, batch, 4)
        self.assert_replaced(project)

    def test_a_node_that_stands_still_is_replaced_and_what_it_brings_late_is_refused(self):
        project, batch, job, node = self.begun()
        stopped = self.cluster.tree_of(node)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        until(lambda: [state for _, _, state, _ in self.cluster.jobs()] == ["PENDING"], "the job in the queue again", 60)
        self.cluster.ask("scontrol", "update", f"JobId={job}", "StartTime=now")
        until(lambda: project.fences("1-1-1")[-1] == 2, "the claim of the replacement")
        (project.notes / "go").touch()
        for pid in stopped:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        self.assert_landed_once(project, batch, 4)
        self.assert_replaced(project)

    def test_scancel_leaves_no_process_and_the_unit_continues_in_another_job(self):
        project, batch, job, _ = self.begun()
        first = project.living()
        self.assertTrue(any("sleep 3600" in line for line in first), first)
        begun = time.monotonic()
        self.cluster.ask("scancel", job)
        ended = {line.split()[0] for line in first if "work --hub" in line or "sleep 3600" in line}
        until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in ended), "the end of its processes", 13)
        took = time.monotonic() - begun
        (project.notes / "go").touch()
        self.assert_landed_once(project, batch, 4)
        print(f"nothing left after {took:.1f} s ... ", end="")

    def test_ctrl_c_cancels_the_jobs_and_resume_continues_them(self):
        project, batch, _, _ = self.begun()
        os.killpg(batch.pid, signal.SIGINT)
        _, err = batch.communicate(timeout=60)
        self.assertEqual(batch.returncode, 130, err)
        until(lambda: self.cluster.jobs() == [], "an empty queue")
        (project.notes / "go").touch()
        self.assert_landed_once(project, project.start("resume"), 4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
