#!/usr/bin/env python3
"""A hub that workers reach over HTTP, with git's own server program and a password.

    cargo build && python3 tests/real/test_http.py
"""
import base64
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import unittest

HERE = pathlib.Path(__file__).resolve().parent
FORKHESTRA = os.environ.get("FORKHESTRA_BIN", str(HERE.parent.parent / "target/debug/forkhestra"))
PASSWORD = "worker:s3cret-4711"
# What docs/machines.md tells a web server to set.
SETTINGS = {
    "GIT_HTTP_EXPORT_ALL": "1",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "http.receivepack", "GIT_CONFIG_VALUE_0": "true",
    "GIT_CONFIG_KEY_1": "receive.hideRefs", "GIT_CONFIG_VALUE_1": "!refs/forkhestra",
}


class Server(http.server.ThreadingHTTPServer):
    """Passes each request to `git http-backend`, as a web server does."""

    def __init__(self, folder, settings):
        self.environment = {**os.environ, "GIT_PROJECT_ROOT": str(folder), "REMOTE_USER": "worker", **settings}
        super().__init__(("127.0.0.1", 0), Request)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Request(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = b""
        while size := int(self.rfile.readline(), 16):
            text += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return text

    def answer(self):
        body = self.body()
        if self.headers.get("Authorization") != "Basic " + base64.b64encode(PASSWORD.encode()).decode():
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="hub"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        environment = {**self.server.environment, "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command,
                       "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
                       "GIT_PROTOCOL": self.headers.get("Git-Protocol", "")}
        if self.headers.get("Content-Encoding"):
            environment["HTTP_CONTENT_ENCODING"] = self.headers["Content-Encoding"]
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False).stdout
        head, _, content = done.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answer


class Http(unittest.TestCase):
    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="fh"))
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.root = self.work / "shop"
        (self.root / "forge").mkdir(parents=True)
        (self.work / "home").mkdir()
        config = {"agents": {"worker": {"command": ["sh", "-c", 'echo work > "file-$FORKHESTRA_TASK.txt"']}},
                  "checks": {"check": "ls file-*.txt > /dev/null"}, "chains": {"task": "worker -> check"},
                  "workspace": {"root": str(self.work / "workspaces")}}
        (self.root / "forge/chains.json").write_text(json.dumps(config))
        self.environment = {**os.environ, "HOME": str(self.work / "home")}
        for words in [["init", "-q", "-b", "main"], ["add", "-A"],
                      ["-c", "user.name=n", "-c", "user.email=a@b.c", "commit", "-q", "-m", "begin"]]:
            subprocess.run(["git", *words], cwd=self.root, check=True)
        for number in range(3):
            self.run_here("task", "add", f"Task {number}")

    def serve(self, settings):
        server = Server(self.root / ".forkhestra", settings)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def start(self, *words, home="home"):
        return subprocess.Popen([FORKHESTRA, *words], cwd=self.root, env={**self.environment, "HOME": str(self.work / home)},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_here(self, *words, **more):
        process = self.start(*words, **more)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def machine(self, name, url):
        """Another machine, whose git knows the password."""
        (self.work / name).mkdir()
        (self.work / name / ".gitconfig").write_text("[credential]\n\thelper = store\n")
        (self.work / name / ".git-credentials").write_text(url.replace("//", f"//{PASSWORD}@") + "\n")

    def test_workers_reach_the_hub_with_the_password_that_their_git_knows(self):
        batch = self.start("task", "run", "--on", "workers", "-j", "3")
        server = self.serve(SETTINGS)
        hub = f"{server.url}/hub.git"
        self.machine("there", server.url)
        worker = self.start("work", "--next", "--wait", "--hub", hub, home="there")
        out, err = batch.communicate(timeout=120)
        worker.terminate()
        worker.communicate(timeout=60)
        self.assertEqual(batch.returncode, 0, out + err)
        self.assertIn("3 of 3 tasks landed", err)
        code, out, _ = self.run_here("doctor", "--hub", hub, home="there")
        self.assertIn("refused the other, as it must", out)
        code, _, err = self.run_here("work", "--next", "--hub", hub)
        self.assertEqual(code, 69)
        self.assertIn("cannot reach the hub", err)

    def test_a_server_that_takes_no_changes_is_found_by_doctor(self):
        self.run_here("task", "run", "-j", "1")
        server = self.serve({"GIT_HTTP_EXPORT_ALL": "1"})
        self.machine("there", server.url)
        code, out, err = self.run_here("doctor", "--hub", f"{server.url}/hub.git", home="there")
        self.assertEqual(code, 1, out + err)
        words = f"hub          the hub {server.url}/hub.git rejects a change: deny updating a hidden ref\n"
        self.assertIn(words, out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
