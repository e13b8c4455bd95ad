"""A place of one test with a real agent CLI: folders, a scripted model on loopback, the CLI's own settings, and forkhestra."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
FORKHESTRA = os.environ.get("FORKHESTRA_BIN", str(HERE.parent.parent / "target/debug/forkhestra"))
CACHE = pathlib.Path(os.environ.get("FORKHESTRA_REAL") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "forkhestra-real")
MARKER = "FORKHESTRA_COMPLETE"


class Cli:
    """What a CLI needs to find the scripted model instead of its own service."""
    name = ""
    model = "stub-model"
    variables = {}
    files = {}

    def environment(self, base):
        return {name: value.replace("BASE", base) for name, value in self.variables.items()}

    def prepare(self, home, base):
        for name, content in self.files.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content.replace("BASE", base))


class Claude(Cli):
    name, model = "claude", None
    variables = {"ANTHROPIC_BASE_URL": "BASE", "ANTHROPIC_API_KEY": "dummy", "CLAUDECODE": "1"}


class Codex(Cli):
    name = "codex"
    variables = {"STUB_KEY": "dummy"}
    files = {".codex/config.toml": 'model_provider = "stub"\n[model_providers.stub]\nname = "stub"\nbase_url = "BASE/v1"\n'
                                   'env_key = "STUB_KEY"\nwire_api = "responses"\n'}


class Gemini(Cli):
    name, model = "gemini", "gemini-3.8-flash"
    variables = {"GOOGLE_GEMINI_BASE_URL": "BASE", "GEMINI_API_KEY": "dummy"}
    files = {".gemini/settings.json": json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}},
                                                  "privacy": {"usageStatisticsEnabled": False}})}


class Opencode(Cli):
    name, model = "opencode", "stub/stub-model"
    variables = {"OPENCODE_DISABLE_MODELS_FETCH": "1"}
    files = {".config/opencode/opencode.json": json.dumps({
        "small_model": "stub/stub-model", "autoupdate": False, "share": "disabled",
        "provider": {"stub": {"npm": "@ai-sdk/openai-compatible", "name": "stub", "options": {"baseURL": "BASE/v1", "apiKey": "dummy"},
                              "models": {"stub-model": {"name": "stub-model"}}}}})}


class Qwen(Cli):
    name = "qwen"
    variables = {"OPENAI_BASE_URL": "BASE/v1", "OPENAI_API_KEY": "dummy"}
    files = {".qwen/settings.json": json.dumps({"security": {"auth": {"selectedType": "openai"}}})}


class Pi(Cli):
    name, model = "pi", "stub/stub-model"
    files = {".pi/agent/models.json": json.dumps({"providers": {"stub": {
        "baseUrl": "BASE/v1", "api": "openai-completions", "apiKey": "dummy", "models": [{"id": "stub-model"}]}}})}


class Copilot(Cli):
    name = "copilot"
    variables = {"COPILOT_PROVIDER_BASE_URL": "BASE/v1", "COPILOT_PROVIDER_API_KEY": "dummy", "COPILOT_MODEL": "stub-model",
                 "COPILOT_OFFLINE": "true"}


class Aider(Cli):
    name, model = "aider", "openai/stub-model"
    variables = {"OPENAI_API_BASE": "BASE/v1", "OPENAI_API_KEY": "dummy", "AIDER_SHOW_MODEL_WARNINGS": "false"}


CLIS = {cli.name: cli for cli in (Claude, Codex, Gemini, Opencode, Qwen, Pi, Copilot, Aider)}


def programs(names):
    """Folders for PATH, of the CLIs that are installed in the cache; Node 22 for those that want it."""
    folders = [CACHE / "node22/node_modules/.bin"] if "qwen" in names else []
    folders += [CACHE / name / "node_modules/.bin" for name in names] + [CACHE / name / "venv/bin" for name in names]
    return [str(folder) for folder in folders if folder.exists()]


def is_installed(name):
    return any((pathlib.Path(folder) / name).exists() for folder in programs([name]))


class Place:
    """Folders of one test, a scripted model, and the program."""

    def __init__(self, script, *names, below=None):
        self.names = names or ("claude",)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="forkhestra-real-", dir=below))
        for name in ("home", "work", "tmp"):
            (self.folder / name).mkdir()
        self.work = self.folder / "work"
        (self.folder / "script.json").write_text(json.dumps(script).replace("${WORK}", str(self.work)))
        self.log = self.folder / "requests.jsonl"
        self.stub = subprocess.Popen(
            [sys.executable, str(HERE / "stub_llm.py"), "--script", str(self.folder / "script.json"), "--log", str(self.log)],
            stdout=subprocess.PIPE, text=True)
        self.base = f"http://127.0.0.1:{self.stub.stdout.readline().split()[1]}"
        self.variables = {}
        # Folders that stand before all others on PATH.
        self.first = []
        agents = {}
        for name in self.names:
            cli = CLIS[name]()
            cli.prepare(self.folder / "home", self.base)
            self.variables.update(cli.environment(self.base))
            agents[name] = {"backend": name, **({"model": cli.model} if cli.model else {})}
        self.config(agents)

    def config(self, agents, **more):
        """A config with an agent of each CLI's own name."""
        (self.work / "forge").mkdir(exist_ok=True)
        (self.work / "forge/chains.json").write_text(json.dumps({"agents": agents, "chains": {}, **more}))

    def agent(self, name, **keys):
        """An agent of this CLI with more keys."""
        cli = CLIS[name]()
        return {"backend": name, **({"model": cli.model} if cli.model else {}), **keys}

    def environment(self):
        return {
            "PATH": ":".join([*self.first, *programs(self.names), os.environ["PATH"]]),
            "HOME": str(self.folder / "home"), "TMPDIR": str(self.folder / "tmp"), "LANG": "C.UTF-8",
            "FORKHESTRA_TEST_TAG": self.folder.name, "FORKHESTRA_TEST_GRACE_MS": "3000", **self.variables,
        }

    def start(self, *arguments):
        return subprocess.Popen([FORKHESTRA, *arguments], cwd=self.work, env=self.environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def run(self, *arguments, timeout=400):
        process = self.start(*arguments)
        stdout, stderr = process.communicate(timeout=timeout)
        return process.returncode, stdout.decode(errors="replace"), stderr.decode(errors="replace")

    def requests(self):
        """Requests that the agent itself made; not those for titles and the like."""
        if not self.log.exists():
            return []
        lines = [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if line.get("kind") == "main"]

    def said(self, request):
        """Everything in a request that the program or the person said, as one text."""
        texts = request["system"] if isinstance(request["system"], list) else [request["system"] or ""]
        return "\n".join([*texts, *request["users"]])

    def finished(self, run=1):
        """The ends of attempts, from the journal."""
        code, stdout, stderr = self.run("runs", "events", str(run))
        assert code == 0, stderr
        events = [json.loads(line)["event"] for line in stdout.splitlines()]
        return [event for event in events if event["type"] == "attemptFinished"]

    def file(self, run, attempt, name):
        """A file of an attempt's folder, or nothing."""
        path = self.work / f".forkhestra/runs/{run}/{attempt}/{name}"
        return path.read_text() if path.exists() else None

    def wait_for(self, name, process):
        deadline = time.time() + 90
        while not (self.work / name).exists():
            if time.time() > deadline or process.poll() is not None:
                raise AssertionError(f"{name} never came: {process.communicate(timeout=9)}")
            time.sleep(0.02)

    def left(self):
        """Living processes of this test, the model server aside."""
        tag = f"FORKHESTRA_TEST_TAG={self.folder.name}".encode()
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if tag in (entry / "environ").read_bytes().split(b"\0") and b") Z " not in (entry / "stat").read_bytes():
                    found.append((entry.name, (entry / "cmdline").read_bytes().replace(b"\0", b" ")))
            except OSError:
                pass
        return found

    def close(self):
        self.stub.terminate()
        self.stub.wait()
        self.stub.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def says(text):
    return {"text": text}
