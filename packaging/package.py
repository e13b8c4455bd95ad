#!/usr/bin/env python3
"""Makes the packages of a built program: packaging/package.py --help.

The same program, at the same commit, always gives the same bytes: no time, user or path of the machine is in them.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MANIFEST = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]
VERSION = MANIFEST["version"]
ABOUT = MANIFEST["description"]
LICENSES = ["LICENSE", "LICENSE-MIT", "LICENSE-APACHE"]

# What each packager calls an architecture.
ARCHITECTURES = {
    "x86_64": {"deb": "amd64", "npm": "x64", "wheel": "x86_64"},
    "aarch64": {"deb": "arm64", "npm": "arm64", "wheel": "aarch64"},
}


def said(*words, **options):
    return subprocess.run(words, check=True, capture_output=True, cwd=ROOT, **options).stdout


# A version of each ecosystem: 1.2.0-rc.1 is before 1.2.0 in all of them.
DEB_VERSION = VERSION.replace("-", "~")
WHEEL_VERSION = re.sub(r"-(alpha|beta|rc)\.?", lambda found: {"alpha": "a", "beta": "b", "rc": "rc"}[found[1]], VERSION)

# What is linked into the program beside crates.
SYSTEM_LIBRARIES = """the standard library of Rust: MIT OR Apache-2.0
the GNU C Library: LGPL-2.1-or-later; Copyright (C) the Free Software Foundation and others. The source of forkhestra
is available under the licenses beside this file: with it, forkhestra can be linked with another version of that library.
"""


def epoch():
    """The time that every packed file gets: that of the commit, unless SOURCE_DATE_EPOCH says otherwise."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or said("git", "log", "-1", "--format=%ct"))


def build_facts(machine):
    """What somebody needs to build the same bytes."""
    commit, compiler = said("git", "rev-parse", "HEAD", text=True), said("rustc", "--version", text=True)
    return f"forkhestra {VERSION} for {machine} Linux\ncommit {commit}{compiler}built by packaging/build\n".encode()


def third_party():
    """The licenses of everything that is linked into the program, each text once."""
    about = json.loads(said("cargo", "metadata", "--format-version=1", "--locked"))
    places = {(package["name"], package["version"]): package for package in about["packages"]}
    lines = said("cargo", "tree", "--locked", "--edges=normal", "--prefix=none", "--format={p}", text=True).splitlines()
    linked = sorted({tuple(line.split()[:2]) for line in lines if line} - {("forkhestra", f"v{VERSION}")})
    texts = {}
    index = []
    for name, version in linked:
        package = places[name, version.removeprefix("v")]
        index.append(f"{name} {version}: {package['license'] or 'see below'}")
        folder = pathlib.Path(package["manifest_path"]).parent
        for file in sorted(folder.iterdir()):
            if file.is_file() and file.name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE")):
                texts.setdefault(file.read_text(errors="replace").strip(), []).append(f"{name} {version}")
    parts = [f"{', '.join(names)}\n{'=' * 80}\n\n{text}\n" for text, names in texts.items()]
    return "\n".join(["forkhestra contains these libraries:\n", *index, SYSTEM_LIBRARIES, *parts]).encode()


def shared(runs_here, machine):
    """What belongs beside the program, by its path below a prefix."""
    files = {f"share/doc/forkhestra/{name}": (ROOT / name).read_bytes() for name in [*LICENSES, "README.md", "CHANGELOG.md"]}
    files["share/doc/forkhestra/THIRD-PARTY-LICENSES"] = third_party()
    files["share/doc/forkhestra/BUILD"] = build_facts(machine)
    for shell, path in [
        ("bash", "bash-completion/completions/forkhestra"),
        ("zsh", "zsh/site-functions/_forkhestra"),
        ("fish", "fish/vendor_completions.d/forkhestra.fish"),
    ]:
        files[f"share/{path}"] = said(runs_here, "completions", shell)
    with tempfile.TemporaryDirectory() as pages:
        said(runs_here, "man", "--out", pages)
        for page in sorted(pathlib.Path(pages).iterdir()):
            files[f"share/man/man1/{page.name}"] = page.read_bytes()
    return files


def tarball(path, files, when):
    """Writes {path: (bytes, mode)} as a tar.gz with nobody's name in it."""
    with path.open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=when, compresslevel=9) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name, (content, mode) in sorted(files.items()):
                member = tarfile.TarInfo(name)
                member.size, member.mtime, member.mode = len(content), when, mode
                archive.addfile(member, io.BytesIO(content))
    return path


def archive(out, machine, program, files, when):
    top = f"forkhestra-{VERSION}"
    content = {f"{top}/{name}": (data, 0o644) for name, data in files.items()}
    content[f"{top}/bin/forkhestra"] = (program, 0o755)
    return tarball(out / f"{top}-{machine}-unknown-linux-gnu.tar.gz", content, when)


def deb(out, machine, program, files, when):
    """A Debian package (deb(5)), written by dpkg-deb."""
    known = ARCHITECTURES[machine]["deb"]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder, "root")
        for name, data in files.items():
            if "/man1/" in name:
                name, data = name + ".gz", gzip.compress(data, mtime=0)
            # Debian's zsh looks there.
            name = name.replace("zsh/site-functions", "zsh/vendor-completions")
            file = root / "usr" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        docs = root / "usr/share/doc/forkhestra"
        (docs / "copyright").write_text("\n\n".join((ROOT / name).read_text() for name in LICENSES))
        (root / "usr/bin").mkdir()
        (root / "usr/bin/forkhestra").write_bytes(program)
        (root / "usr/bin/forkhestra").chmod(0o755)
        size = sum(file.stat().st_size for file in root.rglob("*") if file.is_file()) // 1024
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN/control").write_text(
            f"Package: forkhestra\nVersion: {DEB_VERSION}\nArchitecture: {known}\n"
            "Maintainer: the forkhestra developers <forkhestra@example.invalid>\n"
            f"Installed-Size: {size}\nRecommends: git (>= 1:2.38)\nSuggests: bubblewrap\nSection: devel\n"
            f"Priority: optional\nDescription: runs coding agents unattended, in chains\n {ABOUT}.\n")
        for file in [root, *root.rglob("*")]:
            file.chmod(0o755 if file.is_dir() or file.parent.name == "bin" else 0o644)
            os.utime(file, (when, when))
        made = out / f"forkhestra_{DEB_VERSION}_{known}.deb"
        said("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, made, env={**os.environ, "SOURCE_DATE_EPOCH": str(when)})
        return made


def wheel(out, machine, program, files, when):
    """A wheel (PEP 427) whose script is the program. It needs no C library, so it runs with any."""
    known = ARCHITECTURES[machine]["wheel"]
    tags = [f"manylinux_2_17_{known}", f"manylinux2014_{known}", f"musllinux_1_1_{known}"]
    info, installed = f"forkhestra-{WHEEL_VERSION}.dist-info", f"forkhestra-{WHEEL_VERSION}.data"
    content = {f"{installed}/data/{name}": data for name, data in files.items()}
    content[f"{installed}/scripts/forkhestra"] = program
    content |= {f"{info}/licenses/{name}": (ROOT / name).read_bytes() for name in LICENSES}
    content[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: forkhestra\nVersion: {WHEEL_VERSION}\nSummary: {ABOUT}\nLicense: {MANIFEST['license']}\n"
        f"Description-Content-Type: text/markdown\n\n{(ROOT / 'README.md').read_text()}").encode()
    content[f"{info}/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: forkhestra\nRoot-Is-Purelib: false\n"
                                + "".join(f"Tag: py3-none-{tag}\n" for tag in tags)).encode()
    record = [f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')},{len(data)}"
              for name, data in sorted(content.items())]
    content[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    made = out / f"forkhestra-{WHEEL_VERSION}-py3-none-{'.'.join(tags)}.whl"
    # A zip file has no time before 1980, and none of its times has a zone.
    moment = time.gmtime(max(when, 315_532_800))[:6]
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, data in sorted(content.items()):
            member = zipfile.ZipInfo(name, moment)
            member.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(member, data)
    return made


def npm(out, machine, program, files, when):
    """A pair: the program of this platform, and the package that people install."""
    known = ARCHITECTURES[machine]["npm"]
    common = {"version": VERSION, "description": ABOUT, "license": MANIFEST["license"]}
    platform = {"name": f"forkhestra-linux-{known}", **common, "os": ["linux"], "cpu": [known], "files": ["bin", "share"]}
    pages = sorted(name for name in files if "/man1/" in name)
    main = {
        "name": "forkhestra", **common,
        "bin": {"forkhestra": "launcher.js"},
        "man": [f"./{name}" for name in pages],
        "scripts": {"postinstall": "node install.js"},
        "optionalDependencies": {f"forkhestra-linux-{names['npm']}": VERSION for names in ARCHITECTURES.values()},
        "engines": {"node": ">=18"},
    }
    described = lambda package: (json.dumps(package, indent=2).encode() + b"\n", 0o644)
    texts = {f"package/{name}": ((ROOT / name).read_bytes(), 0o644) for name in [*LICENSES, "README.md"]}
    of_platform = {f"package/{name}": (data, 0o644) for name, data in files.items() if name not in pages}
    of_platform |= {"package/bin/forkhestra": (program, 0o755), "package/package.json": described(platform)}
    of_main = {f"package/{name}": (files[name], 0o644) for name in pages} | {"package/package.json": described(main)}
    for name in ["launcher.js", "program.js", "install.js"]:
        of_main[f"package/{name}"] = ((ROOT / "packaging/npm" / name).read_bytes(), 0o755 if name == "launcher.js" else 0o644)
    return [tarball(out / f"{platform['name']}-{VERSION}.tgz", texts | of_platform, when),
            tarball(out / f"forkhestra-{VERSION}.tgz", texts | of_main, when)]


def main():
    parser = argparse.ArgumentParser(description="Makes the packages of a built program.")
    parser.add_argument("--program", type=pathlib.Path, required=True, help="the program to pack; it should be static")
    parser.add_argument("--machine", choices=ARCHITECTURES, default=os.uname().machine, help="what the program runs on")
    parser.add_argument("--runs-here", type=pathlib.Path, help="the same program for this machine, if it is another one")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/packages")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    files = shared((args.runs_here or args.program).resolve(), args.machine)
    parts = (args.out, args.machine, args.program.read_bytes(), files, epoch())
    made = [archive(*parts), wheel(*parts), *npm(*parts)]
    if shutil.which("dpkg-deb"):
        made.append(deb(*parts))
    else:
        print("left out: no dpkg-deb, so no Debian package")
    packed = sorted(file for file in args.out.iterdir() if file.name != "SHA256SUMS")
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in packed)
    (args.out / "SHA256SUMS").write_text(sums)
    for file in made:
        print(f"{file.stat().st_size / 1e6:6.2f} MB  {file.name}")


if __name__ == "__main__":
    main()
