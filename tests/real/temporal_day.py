#!/usr/bin/env python3
"""A day of a team in ten minutes: workers, the server, the network, agents and the batch are killed, stopped and cut by chance, and
healed. Each unit has one result, no finished attempt runs twice, and all spending is counted.

    python3 tests/real/temporal_day.py [SECONDS [SEED]]
"""
import json
import random
import signal
import subprocess
import sys
import time

from test_temporal import COST, Proxy, Server, Team, until

# Three iterations, each of which adds its line. An attempt that is repeated does not add it again.
SCRIPT = f"""echo . >> "$NOTES/calls"; file="file-$FORKHESTRA_TASK.txt"; sleep "$(shuf -i 1-4 -n 1).$(shuf -i 0-9 -n 1)"
line=$FORKHESTRA_ITERATION; grep -qx "$line" "$file" 2> /dev/null || echo "$line" >> "$file"
[ "$(wc -l < "$file")" -ge 3 ] || {{ echo '{COST}'; exit 0; }}
setsid sleep 3600 &
echo '{COST.replace("done", "FORKHESTRA_COMPLETE")}'"""
WORKERS = 3


class Day:
    def __init__(self, seconds, seed):
        self.chance, self.seconds = random.Random(seed), seconds
        self.tasks = max(6, seconds // 3)
        self.server = Server()
        self.team = Team(self.server, SCRIPT, self.tasks, iterations=":9")
        self.proxies = [Proxy(self.server.port) for _ in range(WORKERS)]
        self.workers = [self.worker(place) for place in range(WORKERS)]
        self.done = {}
        self.batch = None

    def worker(self, place):
        return self.team.worker(slots=4, port=self.proxies[place].port)

    def begin(self, *words):
        self.batch = self.team.start(*words)

    def fault(self):
        kind = self.chance.choice(["kill", "kill", "end", "stop", "cut", "cut", "server", "agent", "batch"])
        self.done[kind] = self.done.get(kind, 0) + 1
        place = self.chance.randrange(WORKERS)
        worker, proxy = self.workers[place], self.proxies[place]
        if kind in ("kill", "end"):
            worker.send_signal(signal.SIGKILL if kind == "kill" else signal.SIGTERM)
            worker.wait(timeout=60)
            time.sleep(self.chance.uniform(0, 2))
            self.workers[place] = self.worker(place)
        elif kind == "stop":
            worker.send_signal(signal.SIGSTOP)
            time.sleep(self.chance.uniform(0, 12))
            worker.send_signal(signal.SIGCONT)
        elif kind == "cut":
            proxy.is_cut = True
            time.sleep(self.chance.uniform(0, 12))
            proxy.heal()
        elif kind == "server":
            self.server.kill()
            time.sleep(self.chance.uniform(0, 2))
            self.server.start()
        elif kind == "agent":
            lines = [line for line in self.team.living() if "NOTES=" in line]
            if lines:
                subprocess.run(["kill", "-KILL", self.chance.choice(lines).split()[0]], check=False, capture_output=True)
        elif kind == "batch" and self.batch.poll() is None:
            self.batch.kill()
            self.batch.communicate()
            self.begin("resume", "--wait")

    def all_have_landed(self):
        _, out, _ = self.team.run("task", "list", "--json")
        tasks = json.loads(out)
        tasks = tasks["tasks"] if isinstance(tasks, dict) else tasks
        return all("landed as" in (task.get("place") or "") for task in tasks)

    def work(self):
        self.begin("task", "run", "--on", "temporal", "-j", "24")
        deadline = time.monotonic() + self.seconds
        while time.monotonic() < deadline:
            time.sleep(self.chance.uniform(0, 2))
            self.fault()
            if self.batch.poll() is not None:
                self.batch.communicate()
                if self.all_have_landed():
                    break
                self.begin("task", "run", "--on", "temporal", "-j", "24")
        # Nothing fails any more; what was lost too often is begun again.
        for _ in range(8):
            out, err = self.batch.communicate(timeout=300)
            if self.all_have_landed():
                return
            if "resume" in err:
                self.begin("resume", "--wait")
            else:
                self.begin("task", "run", "--on", "temporal", "-j", "24")
        raise AssertionError(f"not all have landed: {out}{err}")

    def check(self):
        self.team.oracle()
        until(lambda: not self.team.living(), f"the end of {self.team.living()}", 30)
        for number in range(1, self.tasks + 1):
            text = self.team.hub("show", f"forkhestra/line:file-{number}.txt")
            lines = [int(line) for line in text.split()]
            # An iteration whose agent was killed has added nothing.
            assert len(lines) == 3 and lines == sorted(set(lines)), (number, text)
        # What the journal has counted is what the hub's runs have spent.
        in_hub, units = 0.0, 0
        for name in self.team.hub("for-each-ref", "--format=%(refname)", "refs/forkhestra/units").split():
            shown = subprocess.run(["git", "--git-dir", self.team.hub_path, "show", f"{name}:events.ndjson"], capture_output=True,
                                   text=True, check=False).stdout
            units += 1
            for line in shown.splitlines():
                event = json.loads(line)["event"]
                if event["type"] == "attemptFinished":
                    in_hub += ((event["finished"].get("tokens") or {}).get("costUsd")) or 0
        _, out, _ = self.team.run("runs", "--json")
        counted = sum(run["costUsd"] or 0 for run in json.loads(out) if run["kind"] != "batch")
        assert abs(in_hub - counted) < 0.01, (in_hub, counted)
        return units, in_hub

    def close(self):
        if self.batch and self.batch.poll() is None:
            self.batch.kill()
            self.batch.communicate()
        self.team.close()
        for proxy in self.proxies:
            proxy.close()
        self.server.close()


def main(seconds=60, seed=1):
    day, begun = Day(int(seconds), int(seed)), time.monotonic()
    try:
        day.work()
        units, cost = day.check()
    finally:
        day.close()
    faults = ", ".join(f"{count} {kind}" for kind, count in sorted(day.done.items()))
    print(f"{day.tasks} tasks in {units} units landed once each in {time.monotonic() - begun:.0f} s; "
          f"${cost:.2f} in the hub and in the journal; faults: {faults}")


if __name__ == "__main__":
    main(*sys.argv[1:])
