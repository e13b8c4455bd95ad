//! Whatever a project's files say, its commands are found, its tests are counted, and nothing panics.
#![no_main]

use forkhestra::checks::{commands_of, detect, files_named, lines_of, tests_of};
use forkhestra::source::{Files, Kind};
use std::hint::black_box;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

const NAMES: [&str; 16] = [
    "package.json",
    "Cargo.toml",
    "pyproject.toml",
    "go.mod",
    "Makefile",
    "justfile",
    "pom.xml",
    "build.gradle",
    "composer.json",
    "Gemfile",
    "Rakefile",
    "mix.exs",
    "deno.json",
    "CMakeLists.txt",
    "tox.ini",
    "src/a.test.ts",
];

struct One<'a>(PathBuf, &'a str);

impl Files for One<'_> {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        if path == self.0 { Ok(self.1.into()) } else { Err(Error::from(ErrorKind::NotFound)) }
    }

    fn head(&self, path: &Path, bytes: usize) -> std::io::Result<Vec<u8>> {
        self.read(path).map(|mut all| {
            all.truncate(bytes);
            all
        })
    }

    fn kind(&self, path: &Path) -> std::io::Result<Kind> {
        self.read(path).map(|all| Kind::File { executable: false, bytes: all.len() as u64 })
    }
}

libfuzzer_sys::fuzz_target!(|input: (u8, &str)| {
    let (name, text) = input;
    let name = NAMES[usize::from(name) % NAMES.len()];
    black_box(detect(Path::new("/p"), &One(Path::new("/p").join(name), text)));
    black_box(commands_of(name, text));
    black_box(lines_of(name, text));
    black_box(files_named(text));
    for path in [name, "a_test.go", "test_a.py", "src/lib.rs", "a.test.ts", "spec/a_spec.rb"] {
        black_box(tests_of(path, text));
    }
});
