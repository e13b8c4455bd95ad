#!/usr/bin/env python3
"""Every system call of forkhestra and its lifeline fails once, by strace: no panic, no hang, nothing left behind, and a run that is complete
or can go on.

    cargo build && python3 tests/real/test_errors.py
"""
import collections
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
FORKHESTRA = os.environ.get("FORKHESTRA_BIN", str(HERE.parent.parent / "target/debug/forkhestra"))
# Which error each call is given; EIO where nothing says otherwise.
ERRORS = {
    "openat": ("ENOSPC", "EMFILE"), "write": ("ENOSPC", "EIO"), "pwrite64": ("ENOSPC",), "fsync": ("EIO",), "fdatasync": ("EIO",),
    "ftruncate": ("ENOSPC",), "fallocate": ("ENOSPC",), "mmap": ("ENOMEM",), "clone": ("EAGAIN",), "clone3": ("EAGAIN",),
    "vfork": ("EAGAIN",), "socketpair": ("EMFILE",), "pipe2": ("EMFILE",), "dup": ("EMFILE",), "dup2": ("EMFILE",), "dup3": ("EMFILE",),
    "fcntl": ("EMFILE",), "mkdirat": ("ENOSPC",), "renameat": ("ENOSPC",), "unlinkat": ("EIO",), "flock": ("ENOLCK",),
    "sendto": ("EPIPE",), "sendmsg": ("EPIPE",), "recvmsg": ("ECONNRESET",), "recvfrom": ("ECONNRESET",), "epoll_create1": ("EMFILE",),
    "epoll_ctl": ("ENOMEM",), "eventfd2": ("EMFILE",), "memfd_create": ("EMFILE",), "pidfd_open": ("EMFILE",),
    "pidfd_send_signal": ("EPERM",), "kill": ("EPERM",), "setsid": ("EPERM",), "setpgid": ("EPERM",), "prctl": ("EINVAL",),
    "getrandom": ("ENOSYS",), "signalfd4": ("EMFILE",), "timerfd_create": ("EMFILE",),
}
# What cannot fail with arguments that are right (their man pages), what ends a process, and what strace itself depends on.
LEFT_OUT = {
    "execve", "exit", "exit_group", "rt_sigreturn", "restart_syscall", "brk", "munmap", "arch_prctl", "set_tid_address", "set_robust_list",
    "rseq", "futex", "sched_yield", "epoll_wait", "rt_sigprocmask", "rt_sigaction", "sigaltstack", "getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "clock_gettime",
}
# Before main, of the loader's and the runtime's own: a program that cannot be loaded says so by itself.
EARLY = {"mmap": 25, "openat": 8, "read": 8, "fstat": 8, "close": 8, "prlimit64": 3, "poll": 1, 
         "sched_getaffinity": 2, "pread64": 4, "access": 2, "newfstatat": 4, "getrandom": 2, "statx": 0}
# tokio's own: an eventfd that takes no write (it cannot, eventfd(2)), and the pair of sockets that it makes for signals once, before a run
# begins, of which it panics where there is no descriptor to be had. Nothing is lost by that. The standard library panics where a folder that was
# read cannot be closed, which close(2) does not do to a folder.
KNOWN = ("failed to wake I/O driver", "failed to create UnixStream", "unexpected error during closedir")
CONFIG = """{ "agents": { "a": { "command": ["sh", "-c", "echo work; echo x >> done; test $(wc -l < done) -gt 1 && echo FORKHESTRA_COMPLETE; true"] } },
  "checks": { "c": "true" }, "chains": { "night": "a:3 -> c" } }"""
LONG = 30


class Place:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="forkhestra-errors-"))
        self.work = self.folder / "work"
        (self.work / "forge").mkdir(parents=True)
        (self.work / "forge/chains.json").write_text(CONFIG)
        (self.folder / "home").mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder / "home"), "LANG": "C.UTF-8",
                            "FORKHESTRA_TEST_TAG": self.folder.name}

    def run(self, *words, strace=()):
        """The exit code and what was printed; none for one that hangs."""
        process = subprocess.Popen([*strace, FORKHESTRA, *words], cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=LONG)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return None, output.decode(errors="replace")
        return process.returncode, output.decode(errors="replace")

    def left(self):
        """Living processes of this place, after a moment for those that are being ended."""
        until = time.monotonic() + 5
        while True:
            found = []
            for entry in pathlib.Path("/proc").iterdir():
                try:
                    tagged = entry.name.isdigit() and f"FORKHESTRA_TEST_TAG={self.folder.name}".encode() in (entry / "environ").read_bytes()
                    if tagged and (entry / "stat").read_text().rsplit(") ", 1)[1][0] != "Z":
                        found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                except OSError:
                    pass
            if not found or time.monotonic() > until:
                return found
            time.sleep(0.02)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def calls(log):
    """How often each call was made by forkhestra itself and its lifelines; not by the agents."""
    counts, ours = collections.Counter(), set()
    for line in log.read_text(errors="replace").splitlines():
        found = re.match(r"(\d+) +(?:<\.\.\. )?(\w+)", line)
        if not found:
            continue
        pid, call = found.groups()
        if call == "execve" and "= 0" in line:
            (ours.add if FORKHESTRA in line or "/proc/" in line else ours.discard)(pid)
        elif pid in ours and "resumed>" not in line:
            counts[call] += 1
    return counts


class Errors(unittest.TestCase):
    def test_no_system_call_that_fails_leaves_a_panic_a_hang_or_a_run_that_cannot_go_on(self):
        place = Place()
        log = place.folder / "calls"
        code, output = place.run("night", "-q", strace=["strace", "-f", "-o", str(log)])
        self.assertEqual(code, 0, output)
        counts = calls(log)
        place.close()
        self.assertGreater(len(counts), 30, counts)
        tried, bad, outcomes = 0, [], collections.Counter()
        for call, count in sorted(counts.items()):
            if call in LEFT_OUT:
                continue
            first = EARLY.get(call, 0) + 1
            places = sorted({first, first + 1, max(first, (first + count) // 2), max(first, count - 1), max(first, count)})
            for error in ERRORS.get(call, ("EIO",)):
                for when in places:
                    why = self.fails(call, error, when, outcomes)
                    tried += 1
                    if why:
                        bad.append(f"{call}:{error}:{when}: {why}")
        print(f"{tried} errors injected into {len(counts)} calls: {dict(outcomes)}", flush=True)
        self.assertEqual(bad, [], "\n".join(bad))

    def fails(self, call, error, when, outcomes):
        """What is wrong after this error; none if nothing is."""
        place = Place()
        self.addCleanup(place.close)
        # The number is counted in each process by itself (strace(1)).
        inject = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}"]
        code, output = place.run("night", "-q", strace=inject)
        if code is None:
            return f"it hangs: {output[-300:]}"
        if any(words in output for words in KNOWN):
            outcomes["a library's own panic"] += 1
        elif "panicked" in output or code in (101, 134, -6):
            return f"it panics: {output[-600:]}"
        left = place.left()
        if left:
            return f"left running: {left}"
        outcomes["complete" if code == 0 else f"exit {code}"] += 1
        if code != 0:
            again, said = place.run("resume", "-q")
            never_began = "resume/none" in said or "no run" in said or "history" in said
            if again != 0 and not never_began:
                return f"exit {code}, then resume ends with {again}: {output[-300:]} / {said[-400:]}"
            if never_began:
                again, said = place.run("night", "-q")
                if again != 0:
                    return f"exit {code}, and a new run ends with {again}: {said[-300:]}"
        return None


if __name__ == "__main__":
    probe = shutil.which("strace") and subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode == 0
    if not probe:
        print("left out: no strace, or it may not trace")
        sys.exit(0)
    unittest.main(verbosity=2)
