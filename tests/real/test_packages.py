"""Every package, installed into an empty prefix without a network: tests/real/test_packages.py [FOLDER], of packaging/build."""
import gzip
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else ROOT / "target/packages").resolve()
# As users get it: a program of a quick build is larger.
IS_RELEASE = os.environ.get("FORKHESTRA_RELEASE") == "1"
MOST = 6_000_000
WITHOUT_NETWORK = ["unshare", "--net"] if os.getuid() == 0 else ["unshare", "--map-root-user", "--net"]


def run(*words, **options):
    ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=600, **options)
    if ran.returncode != 0:
        raise AssertionError(f"{words}: {ran.returncode}\n{ran.stdout}")
    return ran.stdout


def only(pattern):
    [file] = FOLDER.glob(pattern)
    return file


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


class Packages(unittest.TestCase):
    def setUp(self):
        self.prefix = pathlib.Path(tempfile.mkdtemp(prefix="prefix-"))
        self.addCleanup(shutil.rmtree, self.prefix)

    def assert_works(self, program, share, is_bare=True):
        """The demo runs, and the pages and completions are where man and the shells look below a prefix."""
        environment = {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(self.prefix), "TMPDIR": str(self.prefix)}
        self.assertIn("demo: complete", run(*WITHOUT_NETWORK, "forkhestra", "--chain", "demo", env=environment, cwd=self.prefix))
        if is_bare:
            self.assertEqual(digest(program), digest(self.bare()))
        page = next(file for name in ["forkhestra-task-add.1", "forkhestra-task-add.1.gz"] if (file := share / "man/man1" / name).exists())
        text = gzip.decompress(page.read_bytes()) if page.suffix == ".gz" else page.read_bytes()
        self.assertIn(b".TH forkhestra-task-add 1", text)
        return environment

    def assert_completes(self, share, environment):
        for pattern in ["bash-completion/completions/forkhestra", "zsh/*/_forkhestra", "fish/vendor_completions.d/forkhestra.fish"]:
            [file] = share.glob(pattern)
            self.assertIn("__complete", file.read_text())
        script = f"source {share}/bash-completion/completions/forkhestra; COMP_LINE='forkhestra resu'; COMP_POINT=15; _forkhestra; echo $COMPREPLY"
        self.assertEqual(run("bash", "-c", script, env=environment, cwd=self.prefix), "resume\n")

    def bare(self):
        """The program of the archive."""
        folder = self.prefix / "bare"
        if not folder.exists():
            folder.mkdir()
            run("tar", "-xzf", only("*-unknown-linux-gnu.tar.gz"), "-C", folder, "--strip-components=1")
        return folder / "bin/forkhestra"

    def test_the_archive(self):
        program = self.bare()
        share = program.parent.parent / "share"
        self.assert_completes(share, self.assert_works(program, share))
        licenses = (share / "doc/forkhestra/THIRD-PARTY-LICENSES").read_text()
        self.assertIn("serde_json", licenses)
        self.assertIn("Permission is hereby granted, free of charge", licenses)
        self.assertIn("the GNU C Library: LGPL-2.1-or-later", licenses)
        self.assertIn("commit ", (share / "doc/forkhestra/BUILD").read_text())
        if IS_RELEASE:
            self.assertNotIn("INTERP", run("readelf", "--program-headers", program), "it is static")

    def test_the_debian_package(self):
        run("dpkg-deb", "--extract", only("*.deb"), self.prefix)
        self.assert_completes(self.prefix / "usr/share", self.assert_works(self.prefix / "usr/bin/forkhestra", self.prefix / "usr/share"))
        fields = run("dpkg-deb", "--field", only("*.deb"))
        self.assertIn("Recommends: git (>= 1:2.38)", fields)
        self.assertNotIn("Depends:", fields, "it is static")
        names = run("dpkg-deb", "--contents", only("*.deb")).splitlines()
        self.assertFalse([name for name in names if "root/root" not in name])

    def test_the_wheel(self):
        run(sys.executable, "-m", "venv", self.prefix / "venv")
        run(*WITHOUT_NETWORK, self.prefix / "venv/bin/pip", "install", "--no-index", only("*.whl"))
        share = self.prefix / "venv/share"
        self.assert_completes(share, self.assert_works(self.prefix / "venv/bin/forkhestra", share))
        run(self.prefix / "venv/bin/pip", "uninstall", "--yes", "forkhestra")
        self.assertFalse((self.prefix / "venv/bin/forkhestra").exists())

    def npm(self, *options):
        environment = {**os.environ, "HOME": str(self.prefix), "npm_config_cache": str(self.prefix / "cache"), "npm_config_update_notifier": "false"}
        words = ["npm", "install", "--global", "--offline", "--no-audit", "--no-fund", "--prefix", self.prefix, *options]
        [main] = [file for file in FOLDER.glob("forkhestra-[0-9]*.tgz")]
        run(*WITHOUT_NETWORK, *words, only("forkhestra-linux-*.tgz"), main, env=environment)
        return self.prefix / "bin/forkhestra"

    def test_the_npm_packages_install_the_program_itself(self):
        self.npm()
        # Again, as an upgrade does.
        program = self.npm("--force")
        self.assertFalse(list((self.prefix / "lib/node_modules/forkhestra").glob("*.new")))
        environment = self.assert_works(program, self.prefix / "share")
        [share] = (self.prefix / "lib/node_modules").glob("forkhestra-linux-*/share")
        self.assert_completes(share, environment)

    def test_the_npm_launcher_stays_without_scripts_and_passes_arguments_codes_and_signals_on(self):
        program = self.npm("--ignore-scripts")
        self.assertIn(b"node", program.read_bytes()[:30])
        self.assert_works(program, self.prefix / "share", is_bare=False)
        ran = subprocess.run([program, "nosuch chain"], capture_output=True, text=True, check=False, cwd=self.prefix)
        self.assertEqual(ran.returncode, 2, ran.stderr)
        # A Ctrl-C in a terminal reaches the launcher and the program.
        (self.prefix / "forge").mkdir()
        config = {"chains": {}, "agents": {"waits": {"command": ["sh", "-c", "touch up; exec sleep 60"]}}}
        (self.prefix / "forge/chains.json").write_text(json.dumps(config))
        with subprocess.Popen([program, "waits", "-q", "-p", "x"], cwd=self.prefix, process_group=0) as launched:
            until = time.monotonic() + 30
            while not (self.prefix / "up").exists():
                self.assertLess(time.monotonic(), until)
                time.sleep(0.05)
            os.killpg(launched.pid, signal.SIGINT)
            self.assertEqual(launched.wait(30), 130)
        # A supervisor's signal reaches only the launcher.
        (self.prefix / "up").unlink()
        with subprocess.Popen([program, "resume", "-q"], cwd=self.prefix, process_group=0) as launched:
            until = time.monotonic() + 30
            while not (self.prefix / "up").exists():
                self.assertLess(time.monotonic(), until)
                time.sleep(0.05)
            launched.terminate()
            self.assertEqual(launched.wait(30), 143)

    @unittest.skipUnless(IS_RELEASE, "it compiles everything again")
    def test_the_crate(self):
        target = self.prefix / "target"
        run("cargo", "package", "--no-verify", "--allow-dirty", "--quiet", "--target-dir", target, cwd=ROOT)
        [crate] = (target / "package").glob("forkhestra-*.crate")
        run("tar", "-xzf", crate, "-C", self.prefix)
        [source] = self.prefix.glob("forkhestra-*/")
        run("cargo", "install", "--debug", "--locked", "--offline", "--quiet", "--path", source, "--root", self.prefix,
            "--target-dir", ROOT / "target", cwd=self.prefix)
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.prefix), "TMPDIR": str(self.prefix)}
        self.assertIn("demo: complete", run(self.prefix / "bin/forkhestra", "--chain", "demo", env=environment, cwd=self.prefix))
        self.assertEqual([file.name for file in (self.prefix / "bin").iterdir()], ["forkhestra"])

    def test_the_sums_are_right_and_no_package_is_too_large(self):
        run("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS", cwd=FOLDER)
        packed = [file for file in FOLDER.iterdir() if file.name != "SHA256SUMS"]
        self.assertEqual(len((FOLDER / "SHA256SUMS").read_text().splitlines()), len(packed))
        for file in packed if IS_RELEASE else []:
            self.assertLess(file.stat().st_size, MOST, file.name)

    def test_the_same_program_gives_the_same_packages(self):
        machine = os.uname().machine
        run(sys.executable, ROOT / "packaging/package.py", "--program", self.bare(), "--machine", machine, "--out", self.prefix / "again",
            env={**os.environ, "HOME": "/nonexistent", "TZ": "Asia/Tokyo", "LC_ALL": "C", "CARGO_HOME": os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo")), "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))})
        for file in (self.prefix / "again").iterdir():
            self.assertEqual(digest(file), digest(FOLDER / file.name), file.name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
